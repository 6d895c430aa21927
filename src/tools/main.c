// SPDX-License-Identifier: Apache-2.0
// main.c — the otrn program as a call: the table of commands, option parsing, help, exit status.
//
// It lies in the library, so that the program (otrn.c) and the command of the Python package are the same code.
// Output meant for programs goes to stdout and is stable; output meant for people goes to stderr.
// Exit status: 0 fine, 1 the input or the run is at fault, 2 wrong usage.
#include "tools/tools.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "pass/pass.h"
#include "rt/parallel.h"
#include "rt/rt.h"

#define WORDS_MAX 1000000
static const ToolRow rows[] = {
    {"compile", 'c', cmd_compile, 1, WORDS_MAX, "PROG [-o OUT.otrn] [--emit=mlir|mlirbc] | PROG|DIR|@LIST … [-o DIR]",
     "compile a program and write the artifact; several at once, into the cache"},
    {"run", 'r', cmd_run, 1, 1, "PROG|OUT.otrn|KERNEL.s [--input=[NAME=]FILE.npy …] [--output=DIR]",
     "execute on the chip, or on all devices of a program over several; a failing check.* op gives status 1"},
    {"eval", 'e', cmd_eval, 1, 1, "PROG [--input=[NAME=]FILE.npy …] [--output=DIR]",
     "execute with the plain evaluator, same meaning"},
    {"prof", 'p', cmd_prof, 1, 2, "PROG|OUT.otrn|KERNEL.s [--target=…] [--trace=FILE] [--json] | --diff A [B]",
     "modelled time, engines, roofs, memories, source lines; needs no data"},
    {"predict", 'P', cmd_predict, 1, 1, "PROG|OUT.otrn --instance=NAME --nodes=N [--tokens=…] [--json]",
     "a step of a program over devices on a fleet: time, memory, dollars; status 3 above --max-comm"},
    {"cost", 'P', cmd_cost, 1, 1, "PROG|OUT.otrn --instance=NAME --nodes=N --tokens=… --days=N [--price=USD/h] [--json]",
     "dollars of a program over devices: per step, per 1M tokens, of a run of days; what the cache saves"},
    {"bakeoff", 'P', cmd_bakeoff, 1, WORDS_MAX, "PROG|OUT.otrn NAME NAME … [--tokens=…] [--json]",
     "the same program on two instances or more: time, throughput, dollars, break-even prices, what another precision gives"},
    {"check", 'k', cmd_check, 1, 1, "PROG | OUT.otrn|KERNEL.s [--input=FILE.npy …] | --train STEP_DIR",
     "a program: will it run well (status 0, 3 slow, 4 too large, 5 not supported); a kernel: are its waits enough"},
    {"train", 't', cmd_train, 0, 1, "[STEP_DIR] [--model=…] [--steps=N] [--data=FILE] [--checkpoint=DIR] [--resume]",
     "train a model, ours or an exported step: checkpoints, logs, a page; without words a small GPT on our documents"},
    {"precision", 'y', cmd_precision, 0, 1, "[STEP_DIR] [--model=…] [--steps=N] [--seeds=K] [--json]",
     "the same training in double precision, f32 and what the chip computes faster: gradients by part, losses, a verdict; status 3: one is worse"},
    {"generate", 'g', cmd_generate, 1, 1, "CHECKPOINT_DIR [--prompt=TEXT] [--sample=BYTES]", "text from a trained language model"},
    {"reduce", 'R', cmd_reduce, 1, 1, "PROG --test='COMMAND with %s' [-o OUT.mlir]",
     "shrink a program while a command on it succeeds"},
    {"dis", 'd', cmd_dis, 1, 1, "PROG|OUT.otrn|KERNEL.s", "print an artifact as assembly"},
    {"as", 'x', cmd_as, 1, 1, "FILE.s -o OUT.otrn", "assemble a kernel, or what dis prints"},
    {"ls", 'l', cmd_ls, 0, 0, "[--instance=NAME|--target=CHIP] [--json]", "the devices a program would see here"},
    {"launch", 'L', cmd_launch, 1, WORDS_MAX, "[-n COUNT] [--devices=N] [--hosts=A,B] [--restarts=K] COMMAND …",
     "start the processes of a job, here or on several hosts; ends all when one fails"},
    {"health", 'H', cmd_health, 0, 0, "[--root=HOST:PORT] [--slower=PERCENT] [--picture=FILE.svg] [--json], under any launcher",
     "the hosts of a job and the network between them: compute, memory, clocks, latency, bandwidth; status 3: one is behind"},
    {"top", 'T', cmd_top, 0, 0, "[--once] [--json]", "your processes on this host that run programs: devices, memory, steps, loss, engines; live on a terminal"},
    {"info", 'i', cmd_info, 0, 2, "[chips|instances|passes|rules|ops|options|isa|commands|bash|zsh|fish|man [COMMAND]]",
     "print what this program knows; completions and manual pages"},
    {"cache", 'C', cmd_cache, 1, 2, "ls|why FILE|verify|prune|clear", "look after the cache of compiled programs"},
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

static void overview_print(FILE *out) {
    fprintf(out, "otrn %s — an open Trainium\n\nusage: otrn COMMAND …\n\n", OTRN_RELEASE);
    for (size_t i = 0; i < ROW_COUNT; i++)
        fprintf(out, "  %-9s %s\n", rows[i].name, rows[i].help);
    fprintf(out, "\nPROG is StableHLO text or bytecode, told apart by content; KERNEL.s is assembly.\n"
                 "`otrn COMMAND --help` shows a command's options and their defaults.\n"
                 "Exit status: 0 fine, 1 the input or the run is at fault, 2 wrong usage.\n");
}

const ToolRow *tool_row(size_t i) { return i < ROW_COUNT ? &rows[i] : NULL; }

bool tool_takes(const ToolRow *row, const OptRow *opt) {
    return strchr(opt->cmds, row->letter) || strchr(opt->cmds, '*');
}

// "--target=trn1|trn2" as the left column shows it; returns its width in characters.
static int option_left(const OptRow *opt, char *out, size_t out_bytes) {
    const char *dash = opt->name[1] ? "--" : "-", *gap = opt->name[1] ? "=" : " ";
    bool plain = opt->kind == 'B';
    snprintf(out, out_bytes, "%s%s%s%s", dash, opt->name, plain ? "" : gap, plain ? "" : opt->values);
    int width = 0;
    for (const char *c = out; *c; c++)
        width += (*c & 0xc0) != 0x80; // count characters, not UTF-8 bytes
    return width;
}

static void help_print(const Tool *t, const ToolRow *row) {
    char left[128];
    int widest = 0;
    printf("usage: otrn %s %s\n  %s\n", row->name, row->usage, row->help);
    for (int i = 0; i < OPT_COUNT; i++) {
        int width = option_left(&opt_rows[i], left, sizeof left);
        if (tool_takes(row, &opt_rows[i]) && width > widest)
            widest = width;
    }
    if (widest)
        printf("\n");
    for (int i = 0; i < OPT_COUNT; i++) {
        const OptRow *opt = &opt_rows[i];
        if (!tool_takes(row, opt))
            continue;
        int pad = widest - option_left(opt, left, sizeof left);
        printf("  %s%*s  %s", left, pad, "", opt->help);
        if (*opt->dflt)
            printf(" [%s]", opt->dflt);
        if (strcmp(t->opt.from[i], "environment") == 0)
            printf(" (now %s, by %s)", t->opt.val[i], opt->env);
        printf("\n");
    }
}

// --- parsing ---------------------------------------------------------------------------------------

static const ToolRow *row_find(Ctx *ctx, const char *name) {
    const char *near = NULL;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (!strcmp(rows[i].name, name))
            return &rows[i];
        near = opt_nearer(name, near, rows[i].name);
    }
    if (near)
        ctx_hint(ctx, "did you mean '%s'?", near);
    else
        ctx_hint(ctx, "`otrn --help` lists the commands");
    ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "there is no command '%s'", name);
}

// The option a word names, or raises with the nearest one that this command takes.
static int option_find(Ctx *ctx, const ToolRow *row, const char *name, size_t n) {
    int id = opt_find(name, n);
    if (id >= 0 && tool_takes(row, &opt_rows[id]))
        return id;
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)n, name);
    const char *near = NULL;
    for (int i = 0; i < OPT_COUNT && id < 0; i++)
        if (tool_takes(row, &opt_rows[i]))
            near = opt_nearer(typed, near, opt_rows[i].name);
    if (near)
        ctx_hint(ctx, "did you mean %s%s?", near[1] ? "--" : "-", near);
    else
        ctx_hint(ctx, "`otrn %s --help` lists its options", row->name);
    ctx_fail(ctx, OTRN_USAGE, NO_PLACE, id >= 0 ? "%s does not take the option '%s'"
                                                : "%s knows no option '%s'",
             row->name, typed);
}

// NAME=FILE is for the argument of that name, unless there is a file called so.
static ToolInput input_of(Tool *t, const char *text) {
    const char *sign = strchr(text, '=');
    if (!sign || sign == text || access(text, F_OK) == 0)
        return (ToolInput){.path = text};
    return (ToolInput){arena_strndup(t->arena, text, (size_t)(sign - text)), sign + 1};
}

// --input=a.npy,b.npy and repeated --input add up.
static void inputs_add(Tool *t, const char *list) {
    for (;;) {
        size_t n = strcspn(list, ",");
        if (!n)
            ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--input: an empty file name");
        VEC_PUSH(t->arena, &t->inputs, input_of(t, arena_strndup(t->arena, list, n)));
        if (!list[n])
            return;
        list += n + 1;
    }
}

// One option at argv[*i]: --name=value, --name value, -n value, or --name for on|off.
static void option_parse(Tool *t, const ToolRow *row, char **argv, int *i) {
    const char *name = argv[*i] + (argv[*i][1] == '-' ? 2 : 1);
    size_t n = strcspn(name, "=");
    int id = option_find(t->ctx, row, name, n);
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    if (!value && (opt_rows[id].kind == 'B' || strstr(opt_rows[id].values, "off|on")))
        value = "on";
    if (!value && !(value = argv[++*i]))
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "%s needs a value (%s)", argv[*i - 1],
                 opt_rows[id].values);
    if ((id == OPT_DEFINE || id == OPT_MEASURED) && *t->opt.val[id]) // repeated ones add up
        value = arena_printf(t->arena, "%s,%s", t->opt.val[id], value);
    opt_set(t->ctx, &t->opt, opt_rows[id].name, value, "command line");
    if (id == OPT_INPUT)
        inputs_add(t, value);
}

// Returns false when help was asked for and given.
static bool words_parse(Tool *t, const ToolRow *row, char **argv) {
    bool options = true;
    for (int i = 0; argv[i]; i++) {
        const char *word = argv[i];
        if (options && !strcmp(word, "--")) {
            options = false;
        } else if (options && (!strcmp(word, "--help") || !strcmp(word, "-h"))) {
            help_print(t, row);
            return false;
        } else if (options && word[0] == '-' && word[1]) {
            option_parse(t, row, argv, &i);
            if (!argv[i])
                break;
        } else {
            VEC_PUSH(t->arena, &t->words, word);
            options = options && row->letter != 'L'; // what follows a command is its own
        }
    }
    if (!strcmp(t->opt.val[OPT_DUMP], "help"))
        return true;
    if ((int)t->words.n < row->min_words || (int)t->words.n > row->max_words) {
        ctx_hint(t->ctx, "usage: otrn %s %s", row->name, row->usage);
        if ((int)t->words.n < row->min_words)
            ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "%s: too few arguments", row->name);
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "%s: one argument too many: '%s'", row->name,
                 t->words.at[row->max_words]);
    }
    return true;
}

// A pass that does not exist cannot be left out: most likely a typo.
static void passes_check(Tool *t, OptId id) {
    for (const char *at = t->opt.val[id]; *at;) {
        size_t n = strcspn(at, ",");
        const char *word = arena_strndup(t->arena, at, n), *near = NULL;
        at += n + (at[n] == ',');
        bool known = false;
        for (int i = 0; i < pass_count; i++) {
            known |= !strcmp(pass_rows[i].name, word);
            near = opt_nearer(word, near, pass_rows[i].name);
        }
        if (known)
            continue;
        if (near)
            ctx_hint(t->ctx, "did you mean '%s'?", near);
        else
            ctx_hint(t->ctx, "`otrn info passes` lists them");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--%s: there is no pass '%s'", opt_rows[id].name, word);
    }
}

static int command_run(Tool *t, char **argv) {
    if (!argv[1]) {
        overview_print(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("otrn %s\n", OTRN_RELEASE);
        return 0;
    }
    bool help = !strcmp(argv[1], "help");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (help && !argv[2])) {
        overview_print(stdout);
        return 0;
    }
    const ToolRow *row = row_find(t->ctx, argv[1 + help]);
    opt_init(t->ctx, &t->opt);
    if (help) {
        help_print(t, row);
        return 0;
    }
    if (!words_parse(t, row, argv + 2))
        return 0;
    passes_check(t, OPT_DISABLE);
    passes_check(t, OPT_UNTIL);
    return row->fn(t);
}

// What did not make the command fail, once.
static void warnings_print(Tool *t) {
    char text[sizeof t->warn->text];
    if (rt_warn_take(t->warn, text, sizeof text) || (t->env && otrn_warning(t->env, text, sizeof text)))
        fprintf(stderr, "otrn: warning: %s\n", text);
}

int otrn_main(int argc, char **argv) {
    (void)argc;
    Ctx ctx = {0};
    Arena arena;
    RtWarn warn;
    Tool tool = {.ctx = &ctx, .arena = &arena, .warn = &warn};
    rt_warn_init(&warn);
    jmp_buf jb;
    arena_init(&arena, &ctx);
    volatile int status = 0;
    signal(SIGXFSZ, SIG_IGN); // a file too large for its user's limit is an error like a full disk, told and tidied up
    if (CTX_TRY(&ctx, jb)) {
        status = command_run(&tool, argv);
        // A full disk or a closed pipe behind stdout is a failed run, not a success.
        if (fflush(stdout) != 0 || ferror(stdout))
            ctx_fail(&ctx, OTRN_IO, NO_PLACE, "cannot write to standard output");
    } else {
        char text[2400];
        progress_end(&tool);
        fflush(stdout);
        otrn_error_print(&ctx.err, text, sizeof text);
        fprintf(stderr, "%s%s", text, text[0] && text[strlen(text) - 1] == '\n' ? "" : "\n");
        status = ctx.err.code == OTRN_USAGE ? 2 : 1;
    }
    warnings_print(&tool);
    rt_warn_fini(&warn);
    otrn_exe_free(tool.exe);
    rt_parallel_free(tool.parallel);
    otrn_close(tool.env);
    arena_fini(&arena);
    return status;
}
