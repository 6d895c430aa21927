// SPDX-License-Identifier: Apache-2.0
// exe.h — environments and executables from the inside, for the files of rt.
//
//   otrn.c      the public interface, runs on one device
//   host.c      functions of this process that programs may call
//   time.c      the part of it that tells modelled times
//   many.c      runs on several devices: their cores, threads and communicator
//   parallel.c  test programs that name a function for each device
//   timeline.c  modelled timelines as files, and for jax.profiler
#ifndef OTRN_RT_EXE_H
#define OTRN_RT_EXE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/pulse.h"
#include "chip/core/check_pair.h"
#include "chip/core/chip.h"
#include "coll/comm.h"
#include "mach/instance.h"
#include "rt/status.h"
#include "rt/rt.h"

typedef struct Many Many;
typedef struct RtHosts RtHosts;

typedef struct Core { // a virtual core: its memories
    Chip *chip;
    Chip *second; // of a logical core of two, where both run by turns; NULL: not needed so far
    uint8_t *scratch; // HBM segment 0, shared by all programs
    size_t scratch_bytes;
    bool small_pages; // of its chips
} Core;

// Scratch contents never outlive a run. False when the host has no memory.
bool core_reserve(Core *c, size_t bytes);
bool core_second(otrn_env *env, Core *c); // makes it where it is not there yet; likewise
void core_fini(Core *c);

struct otrn_env {
    atomic_uint refs; // the caller's and one of each executable
    Ctx ctx;
    Arena arena; // option values
    Options opts;
    ChipFile chip;     // the target's
    uint32_t cores;    // of a chip, or of the instance
    uint32_t lnc;      // of them, those of a device
    Instance instance; // name NULL: none was asked for
    HostWays ways;
    int want;          // what the option `host` says
    HostLevel level;   // of programs without narrow products, and
    _Atomic int narrow; // of those with them; -1: no program had any yet, and nobody asked the system for leave
    bool stochastic; // rounding by chance in every program; all use round_seed
    uint64_t round_seed;
    Pool *pool;
    pthread_mutex_t turn; // one run at a time
    Pulse pulse;          // of that run
    bool catches;         // SIGINT ends it
    bool draws_on;        // rng goes on where the last run of one device ended, at
    uint64_t draws;       // this place
    RtHosts *hosts, *own_hosts; // functions the programs may call: another environment's, or its own
    ChipHost host;              // the way there
    Core core;            // device 0
    RtSpare spare;
    RtWriter *writer;     // of the cache; NULL: entries are written at once
    RtWarn warn;
    struct Net *_Atomic net; // its programs are compiled by one of these processes; NULL: alone
    Many *many;           // the others, once a program needed them (many.c)
    Status *status;       // for otrn top; NULL: nothing ran yet, or there is no place for it
    const otrn_exe *told; // the program whose name and memory it has
    bool status_tried;
    pthread_mutex_t log_turn;
    otrn_log_fn *log; // NULL: stderr
    void *log_arg;
};

typedef struct ExeSlot { // what one device needs to run a program
    ChipProg *prog, *peer; // peer: the second core's, of a program that two share
    bool turns;            // both can run on one thread (chip_run_pair)
    uint8_t **segs;
} ExeSlot;

struct otrn_exe {
    otrn_env *env; // held
    atomic_uint refs; // the caller's and one of each profile
    Ctx ctx;
    Arena arena;
    Buf bytes;
    Artifact *art;
    VEC(ExeSlot) slots;   // one is made with the program, more when several devices run it
    uint32_t slots_taken; // while a run of several devices is prepared
    otrn_type *types;     // arguments, then results
    otrn_memory memory;
    bool cached;
    bool may_turn; // it has loops of a length that only the run knows
    bool brief;    // its last run was short (guard.c)
    struct HostFn **host_fns; // functions of the host that it holds
    uint32_t nhost_fns, host_kern;
    char host_fault[256]; // why it may not call one, its kernel host_kern; "": it may
    uint32_t replicas; // of the last run; 0: none yet
};

// --- what the entry points share
otrn_status rt_fail(otrn_error *err, const Ctx *ctx); // what ctx_fail left, as the caller's error
otrn_status rt_missing(otrn_error *err, const char *call, const char *what); // "otrn_open: out is NULL"
// Fills a struct of the caller as far as it has room: its struct_size, with which both begin.
otrn_status rt_give(void *out, const void *full, size_t bytes, const char *type, otrn_error *err);
void exe_memory(const Artifact *art, otrn_memory *out);
// Counts, sizes and NULLs of a call's buffers.
otrn_status exe_check(const otrn_exe *exe, const otrn_buffer *args, size_t num_args, const otrn_buffer *results,
                      size_t num_results, otrn_error *err);
// overlap.c: no result of a device lies on memory of another value, but for the argument it takes over.
otrn_status exe_apart(const otrn_exe *exe, uint32_t devices, const otrn_buffer *const *args, const otrn_buffer *const *results, otrn_error *err);

otrn_status exe_compile(otrn_env *env, const RtCompile *in, otrn_exe **out, otrn_error *err);
void exe_add_slot(otrn_exe *exe); // raises on exe->ctx
void exe_bind(const otrn_exe *exe, const ExeSlot *slot, const Core *core, const otrn_buffer *args,
              const otrn_buffer *results);
typedef struct ExeWatch { // what a watch over a run keeps
    Ctx ctx;
    Arena arena;
    CheckPair *pair; // of the two cores of a logical one, else NULL
    Buf notes;
} ExeWatch;
void exe_watch_init(ExeWatch *w, CheckPair *pair);
void exe_watch_fini(ExeWatch *w, otrn_env *env); // tells its notes
bool exe_watches(const otrn_env *env); // the options ask for a watch
// A run of what is bound, watched as the options say.
otrn_status exe_run(const otrn_env *env, const Core *core, ChipProg *prog, uint8_t *const *segs, uint32_t *pc,
                    char *why, size_t why_bytes, ExeWatch *w);
// A run on both cores of a logical one by turns, not watched.
otrn_status exe_run_turns(const otrn_env *env, const Core *core, const ExeSlot *slot, uint32_t *failed, uint32_t *pc,
                          char *why, size_t why_bytes);
// The error of an instruction of `art`, a core's program, told at its place in the user's program.
otrn_status exe_error(const Artifact *art, otrn_status s, uint32_t pc, otrn_error *err,
                      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

// --- host.c: functions of this process that programs may call ------------------------------------
RtHosts *hosts_make(void); // NULL: no memory
void hosts_free(RtHosts *h);
void hosts_take(otrn_exe *exe, const RtCompile *in); // those a loaded program calls; or fills host_fault
void hosts_release(otrn_exe *exe);
int hosts_call(void *hosts, const char *name, size_t n, const otrn_host_call *call); // of ChipHost

// --- guard.c: a run and what may end it early. With env->turn ---------------------------------------
typedef struct RunGuard {
    otrn_exe *exe;
    PulseTimer timer;
    bool catches;
    double begin;
} RunGuard;
void guard_begin(RunGuard *g, otrn_exe *exe, uint32_t devices);
void guard_end(RunGuard *g);
void guard_hint(const otrn_env *env, otrn_status s, otrn_error *err); // what to do about it
bool exe_may_turn(const Artifact *art);

// --- many.c ------------------------------------------------------------------------------------
typedef struct ManyFeed { // a message from the host, before the run
    const CommBuf *bufs;
    uint32_t n;
} ManyFeed;
typedef struct ManyRun { // device r runs exes[r] on args[r] into results[r], which were checked
    Grid grid;
    const RtSpread *spread; // not NULL: r counts the devices here
    otrn_exe *const *exes;
    const otrn_buffer *const *args, *const *results;
    const ManyFeed *feeds;
    uint32_t nfeeds;
} ManyRun;
otrn_status many_run(otrn_env *env, const ManyRun *run, otrn_error *err);
void many_free(Many *m);


#endif
