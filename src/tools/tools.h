// SPDX-License-Identifier: Apache-2.0
// tools.h — what the commands of the otrn program share.
//
// A command is a row of the table in main.c and one file. main parses options and words, owns the
// arena and catches errors; a command returns the exit status: 0 fine, 1 the input or the run is at
// fault. It may raise through t->ctx at any time; wrong usage (status 2) is raised as USAGE.
#ifndef OTRN_TOOLS_TOOLS_H
#define OTRN_TOOLS_TOOLS_H

#include <pthread.h>
#include <stdio.h>

#include "artifact/artifact.h"
#include "base/arena.h"
#include "base/ctx.h"
#include "base/opt.h"
#include "base/pulse.h"
#include "otrn.h"

typedef struct Progress { // a line on the terminal, rewritten by a thread of its own
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool on, stop, is_log; // is_log: whole lines, seldom
    const char *what;
    Pulse *pulse, *before, own; // what it looks at; own: of what no environment runs
} Progress;

typedef struct ToolInput {
    const char *name, *path; // name: the argument it is for; NULL: the next in order
} ToolInput;

typedef struct ToolValue { // an argument or a result, as a file holds it
    otrn_type type;
    const char *name; // "" when the program gives it none
} ToolValue;

typedef struct Tool { // one invocation
    Ctx *ctx;
    Arena *arena; // until the program ends
    Options opt;
    VEC(const char *) words;  // what is neither command nor option
    VEC(ToolInput) inputs;    // the --input files
    struct Npy *npys;         // their contents, once tensors_load has read them
    otrn_env *env;            // opened by tool_env, closed by main
    otrn_exe *exe;            // made by tool_exe, freed by main
    struct RtParallel *parallel; // made by `run` for a program that is several, freed by main
    Progress progress;
    struct RtWarn *warn; // of programs compiled without the environment
} Tool;

typedef int ToolFn(Tool *t);
typedef struct ToolRow { // a command
    const char *name;
    char letter; // as in the option table's commands column
    ToolFn *fn;
    int min_words, max_words;
    const char *usage, *help;
} ToolRow;
const ToolRow *tool_row(size_t i); // main.c has the table; NULL past its end
bool tool_takes(const ToolRow *row, const OptRow *opt);
ToolFn cmd_compile, cmd_run, cmd_eval, cmd_prof, cmd_reduce, cmd_dis, cmd_as, cmd_info, cmd_cache, cmd_check, cmd_ls, cmd_predict, cmd_cost, cmd_bakeoff, cmd_train, cmd_top,
    cmd_generate, cmd_precision, cmd_launch, cmd_health;

// Raises a library error again as ours.
void tool_check(Tool *t, otrn_status s, const otrn_error *err);
// The bytes of a program's file, NUL-terminated; a folder is an error that says what to do.
const void *tool_read(Tool *t, const char *path, size_t *size);
// The library's environment with this invocation's options.
otrn_env *tool_env(Tool *t);
// Compiles or loads a file; the executable lives until the program ends.
otrn_exe *tool_exe(Tool *t, const char *path);
// An artifact from a file that is one, or compiled from a program.
Artifact *tool_artifact(Tool *t, const char *path);

// --- compile_many.c: several programs at once -------------------------------------------------------
bool compile_is_many(const Tool *t); // do the words name more than one?
int compile_many(Tool *t);

// --- shell.c: for the shell, from the tables of commands and options ---------------------------------
void shell_bash(Tool *t);
void shell_zsh(Tool *t);
void shell_fish(Tool *t);
void shell_man(Tool *t);

// While something takes long a line on the terminal tells how far it is; with --verbose and no terminal, a line in the log
// from time to time.
void progress_begin(Tool *t, const char *what);
void progress_end(Tool *t);

// --- tensors.c: arguments from files, results to files --------------------------------------------
bool tensors_are_named(const Tool *t); // are files given by the names of arguments?
// Their types, and the values of integer scalars (which may be sizes), as otrn_compile_for takes them; in order.
const otrn_type *tensors_types(Tool *t);
const void *const *tensors_values(Tool *t);
// Takes one file per argument and holds it against the program's types. Raises ARGUMENT.
otrn_buffer *tensors_read(Tool *t, const ToolValue *values, size_t count);
// Raises IO now, before long work, when --output could not be written later.
void tensors_output_check(Tool *t);
// Prints a line per result and writes result_N.npy when --output is given.
void tensors_write(Tool *t, const ToolValue *values, size_t count, const otrn_buffer *results);
// Zeroed memory for a value of each type.
otrn_buffer *tensors_make(Tool *t, const ToolValue *values, size_t count);

// --- execute.c: a run on all devices of a program ---------------------------------------------------
typedef struct ToolRun {
    size_t nargs, nresults;
    ToolValue *args, *results; // whole, wherever their parts lie
    otrn_buffer *data;         // of the results
} ToolRun;
// Runs it on the --input files, or on zeros.
void tool_execute(Tool *t, otrn_exe *exe, bool zeros, ToolRun *out);
ToolValue *tool_args(Tool *t, const otrn_exe *exe);
ToolValue *tool_results(Tool *t, const otrn_exe *exe);

#endif
