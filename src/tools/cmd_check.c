// SPDX-License-Identifier: Apache-2.0
// cmd_check.c — otrn check. Of a program: will it run, and well? No data is needed. Of a kernel or an
// artifact, or when inputs are given: one run with the watch on (chip/core/check.h), on the inputs or on zeros.
#include <string.h>

#include "base/file.h"
#include "rt/rt.h"
#include "tools/explain.h"

#define LINES_SHOWN 12

// Compiles; what the compiler refuses is a verdict, what is wrong with the file an error.
static int check_program(Tool *t, const char *path, const void *data, size_t size) {
    Ctx ctx = {0};
    Arena arena;
    jmp_buf here;
    arena_init(&arena, &ctx);
    Arena *volatile keep = &arena;
    Buf bytes = {0}, *volatile out = &bytes;
    Reasons reasons = {.arena = t->arena, .bytes = data, .size = size};
    RtCompile in = {.opts = &t->opt, .name = path, .bytes = data, .size = size, .hook = explain_note, .hook_arg = &reasons};
    progress_begin(t, "compiling");
    bool ok = CTX_TRY(&ctx, here);
    if (ok)
        rt_compile(&ctx, keep, &in, out);
    progress_end(t);
    int status = 0;
    if (ok) {
        Prof p;
        prof_price(t, path, &t->opt, out, &p);
        prof_warn_count(path, p.art, &p.chip);
        status = verdicts[explain_print(t, &p, &reasons, LINES_SHOWN)].status;
    } else if (ctx.err.code == OTRN_CAPACITY || ctx.err.code == OTRN_UNSUPPORTED) {
        status = verdicts[explain_failure(&ctx.err)].status;
    }
    arena_fini(keep);
    if (ok || status)
        return status;
    if (ctx.err.code != OTRN_PARSE && ctx.err.code != OTRN_VERIFY && ctx.err.code != OTRN_VERSION)
        tool_check(t, ctx.err.code, &ctx.err); // says nothing about the program
    char text[2400];
    otrn_error_print(&ctx.err, text, sizeof text);
    fprintf(stderr, "%s%s", text, text[0] && text[strlen(text) - 1] == '\n' ? "" : "\n");
    printf("verdict: not a valid program\n");
    return 1;
}

static bool is_program(const char *path, const void *data, size_t size) {
    size_t n = strlen(path);
    return !artifact_is(data, size) && !(n > 2 && !strcmp(path + n - 2, ".s"));
}

int cmd_check(Tool *t) {
    if (opt_on(&t->opt, OPT_TRAIN))
        return cmd_precision(t);
    size_t size;
    const void *data = tool_read(t, t->words.at[0], &size);
    if (!t->inputs.n && is_program(t->words.at[0], data, size))
        return check_program(t, t->words.at[0], data, size);
    opt_set(t->ctx, &t->opt, "check", "on", "command line");
    otrn_exe *exe = tool_exe(t, t->words.at[0]);
    ToolRun run;
    tool_execute(t, exe, !t->inputs.n, &run);
    printf("%s: all memory is written before it is read, and semaphores order all engines\n",
           *otrn_exe_name(exe) ? otrn_exe_name(exe) : t->words.at[0]);
    return 0;
}
