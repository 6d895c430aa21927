// SPDX-License-Identifier: Apache-2.0
// again.c — an artifact as somebody else wants it: for another chip, or with other options.
//
// Code is made for one chip and one set of options, and a time of it is a time of that code. So whoever asks about another
// chip gets the program, which the artifact keeps, compiled for that one; where it keeps none that is an error, and never
// the time of code that nobody would run there.
#include <stdio.h>
#include <string.h>

#include "rt/rt.h"

// Options that decide the code, besides the target. (What a number in one of them means may depend on the chip.)
static const OptId code_options[] = {OPT_LNC,       OPT_AUTO_CAST, OPT_AUTO_CAST_TYPE, OPT_CAST_OPS, OPT_ROUNDING,
                                     OPT_DISABLE,   OPT_UNTIL,     OPT_STRICT,         OPT_NAN};
#define CODE_OPTIONS (sizeof code_options / sizeof *code_options)

const char *rt_code_options(Arena *a, const Options *o) {
    Buf text = {.arena = a};
    for (size_t i = 0; i < CODE_OPTIONS; i++) {
        const OptRow *row = &opt_rows[code_options[i]];
        if (strcmp(o->val[code_options[i]], row->dflt))
            buf_printf(&text, "%s=%s\n", row->name, o->val[code_options[i]]);
    }
    return buf_cstr(&text);
}

uint64_t rt_chip_hash(Arena *a, const ChipFile *chip) {
    Buf values = {.arena = a};
    chipfile_put(chip, &values);
    return hash64(0, values.at, values.n);
}

// Its name, and its values: a file of the same name may say something else elsewhere.
void rt_chip_text(Arena *a, const char *target, uint32_t cores, const ChipFile *chip, char *out, size_t bytes) {
    snprintf(out, bytes, "%.40s/%u/%08x", target, cores, (unsigned)rt_chip_hash(a, chip));
}

_Noreturn static void bad_option(Ctx *ctx, const char *name, const char *line, size_t n) {
    ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "the artifact was compiled with `%.*s`, which is no option of code",
             (int)(n > 80 ? 80 : n), line);
}

static bool is_code_option(int id) {
    for (size_t i = 0; i < CODE_OPTIONS; i++)
        if ((int)code_options[i] == id)
            return true;
    return false;
}

void rt_options_of(Ctx *ctx, Arena *a, const Artifact *art, const char *name, bool all, Options *o) {
    Options own = *o;
    for (size_t i = 0; i < CODE_OPTIONS; i++)
        own.val[code_options[i]] = opt_rows[code_options[i]].dflt;
    for (const char *at = art->options ? art->options : ""; *at;) {
        size_t n = strcspn(at, "\n"), key = strcspn(at, "=\n");
        int id = opt_find(at, key);
        if (key == n || !is_code_option(id))
            bad_option(ctx, name, at, n);
        opt_set(ctx, &own, opt_rows[id].name, arena_strndup(a, at + key + 1, n - key - 1), "artifact");
        at += n + (at[n] == '\n');
    }
    for (size_t i = 0; i < CODE_OPTIONS; i++) {
        OptId id = code_options[i];
        if (all || !strcmp(o->from[id], "default"))
            o->val[id] = own.val[id];
    }
}

// An option of the compiler that the command line asks for; NULL: none. A kernel may be priced on one core or on both, and
// how it rounds takes no time.
static const OptRow *compiler_option(const Options *o) {
    for (size_t i = 0; i < CODE_OPTIONS; i++) {
        OptId id = code_options[i];
        if (id != OPT_LNC && id != OPT_ROUNDING && !strcmp(o->from[id], "command line") && strcmp(o->val[id], opt_rows[id].dflt))
            return &opt_rows[id];
    }
    return NULL;
}

static bool is_same(Arena *a, const Artifact *art, const RtCompile *how) {
    if (art->program)
        return art->chip_hash == rt_chip_hash(a, how->chip) && !strcmp(art->options, rt_code_options(a, how->opts));
    return !strcmp(art->target, how->chip->name) || !strcmp(art->target, how->opts->val[OPT_TARGET]);
}

Artifact *rt_again(Ctx *ctx, Arena *a, Artifact *art, const RtCompile *how) {
    const OptRow *asked = art->program ? NULL : compiler_option(how->opts);
    if (asked) {
        ctx_hint(ctx, "leave it out, or give the program itself (.mlir, .mlirbc)");
        ctx_fail(ctx, OTRN_UNSUPPORTED, (Place){.file = how->name}, "--%s changes a program that is compiled; this is code that was not",
                 asked->name);
    }
    if (is_same(a, art, how))
        return art;
    if (!art->program) {
        ctx_hint(ctx, "give the program itself (.mlir, .mlirbc), or the kernel's text (.s), with --target=%s",
                 how->opts->val[OPT_TARGET]);
        ctx_fail(ctx, OTRN_UNSUPPORTED, (Place){.file = how->name},
                 "the artifact is code for %s and holds no program that could be compiled for %s", art->target,
                 how->chip->name);
    }
    RtCompile in = *how;
    in.bytes = art->program;
    in.size = art->program_bytes;
    in.lasting = true;
    Buf bytes = {0};
    rt_compile(ctx, a, &in, &bytes);
    return artifact_load(ctx, a, how->name, bytes.at, bytes.n);
}
