// SPDX-License-Identifier: Apache-2.0
// cmd_compile.c — otrn compile: a program through every stage, printed at any of them; or the program
// itself in another form.
#include "tools/explain.h"

#include <string.h>

#include "base/file.h"
#include "read/read.h"
#include "rt/rt.h"
#include "write/write.h"

typedef struct Dump {
    Tool *t;
    const char *list; // the --dump value
    bool many;        // more than one stage: each gets a heading
    Reasons reasons;
    Buf nests, placed; // of the stages between passes and instructions
} Dump;

// Is this stage in the list? Stages may be written NAME or after:NAME.
static bool listed(const char *list, const char *stage) {
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        const char *word = at;
        at += n + (at[n] == ',');
        if (n > 6 && !memcmp(word, "after:", 6))
            word += 6, n -= 6;
        if (n == strlen(stage) && !memcmp(word, stage, n))
            return true;
    }
    return false;
}

static void dump_help(void) {
    const char *name;
    for (int i = 0; (name = rt_stage_name(i)); i++) {
        const char *what = i == 0 ? "what the reader made of the file" : !strcmp(name, "nest") ? "the steps, moves and products as nests" : !strcmp(name, "placed") ? "the steps, with their places in HBM, SBUF and PSUM" : "the instructions";
        for (int p = 0; p < pass_count; p++)
            if (!strcmp(pass_rows[p].name, name))
                what = pass_rows[p].purpose;
        printf("%-12s %s\n", name, what);
    }
}

// Every word of the list must be a stage.
static void dump_check(Tool *t, const char *list) {
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        const char *word = arena_strndup(t->arena, at, n), *name, *near = NULL;
        at += n + (at[n] == ',');
        if (!strncmp(word, "after:", 6))
            word += 6;
        bool known = false;
        for (int i = 0; (name = rt_stage_name(i)); i++) {
            known |= !strcmp(name, word);
            near = opt_nearer(word, near, name);
        }
        if (known)
            continue;
        if (near)
            ctx_hint(t->ctx, "did you mean '%s'?", near);
        else
            ctx_hint(t->ctx, "--dump=help lists them");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--dump: there is no stage '%s'", word);
    }
}

static void dump_stage(void *arg, const char *stage, Hlo *hlo, const Artifact *art) {
    Dump *d = arg;
    explain_note(&d->reasons, stage, hlo, art);
    for (int i = 0; i < 2 && !strcmp(stage, "tile"); i++)
        if (listed(d->list, i ? "placed" : "nest")) {
            const Buf *b = i ? &d->placed : &d->nests;
            printf("%s%s", d->many ? "// --- after " : "", d->many ? i ? "placed\n" : "nest\n" : "");
            fwrite(b->at, 1, b->n, stdout);
        }
    if (!listed(d->list, stage))
        return;
    Buf text = {.arena = d->t->arena};
    if (d->many)
        buf_printf(&text, "// --- after %s\n", stage);
    if (art)
        artifact_print(art, &text);
    else
        hlo_print(hlo, &text, false);
    fwrite(text.at, 1, text.n, stdout);
}

static void stats_print(const RtStats *s) {
    double total = 0;
    fprintf(stderr, "stage          ops  inside broadcasts constants          ms\n");
    for (int i = 0; i < s->count; i++) {
        const RtStage *st = &s->stages[i];
        fprintf(stderr, "%-10s %7u %7u %10u %9u %11.3f\n", st->name, st->ops, st->inside, st->broadcasts, st->constants,
                st->seconds * 1e3);
        total += st->seconds;
    }
    fprintf(stderr, "%-10s %7s %7s %10s %9s %11.3f\n", "total", "", "", "", "", total * 1e3);
    fprintf(stderr, "inside: in row programs, fused operations and regions, which are one operation each; behind tile: instructions\n");
}

// The program itself, as it was read, in the form --emit names.
static void emit(Tool *t, const char *path, const void *bytes, size_t size) {
    const char *out = t->opt.val[OPT_OUT];
    bool text = !strcmp(t->opt.val[OPT_EMIT], "mlir");
    if (*t->opt.val[OPT_DUMP])
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--emit writes the program as read: not with --dump");
    if (!text && !*out)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "--emit=mlirbc writes bytes: -o FILE is missing");
    Buf program = {.arena = t->arena};
    Hlo *h = read_program(t->ctx, t->arena, path, bytes, size);
    hlo_verify(h);
    if (text)
        hlo_print(h, &program, opt_on(&t->opt, OPT_LOCS));
    else
        write_bytecode(h, &program);
    if (*out)
        file_write(t->ctx, out, program.at, program.n);
    else
        fwrite(program.at, 1, program.n, stdout);
}

int cmd_compile(Tool *t) {
    const char *list = t->opt.val[OPT_DUMP], *out = t->opt.val[OPT_OUT];
    if (!strcmp(list, "help")) {
        dump_help();
        return 0;
    }
    if (compile_is_many(t))
        return compile_many(t);
    const char *path = t->words.at[0];
    dump_check(t, list);
    Dump dump = {t, list, strchr(list, ',') != NULL, {.arena = t->arena}, {.arena = t->arena}, {.arena = t->arena}};
    RtStats stats = {0};
    RtCompile in = {.opts = &t->opt, .name = path, .stats = &stats, .warn = t->warn};
    if (*list || opt_on(&t->opt, OPT_EXPLAIN)) // reasons are not in the cache
        in.hook = dump_stage, in.hook_arg = &dump, in.nests = listed(list, "nest") ? &dump.nests : NULL,
        in.placed = listed(list, "placed") ? &dump.placed : NULL;
    in.bytes = tool_read(t, path, &in.size);
    if (artifact_is(in.bytes, in.size)) {
        ctx_hint(t->ctx, "`otrn dis` prints it, `otrn run` and `otrn prof` take it");
        ctx_fail(t->ctx, OTRN_PARSE, (Place){.file = path}, "already an artifact");
    }
    if (strcmp(t->opt.val[OPT_EMIT], "artifact")) {
        emit(t, path, in.bytes, in.size);
        return 0;
    }
    Buf bytes = {.arena = t->arena};
    progress_begin(t, "compiling");
    rt_compile(t->ctx, t->arena, &in, &bytes);
    progress_end(t);
    if (*out)
        file_write(t->ctx, out, bytes.at, bytes.n);
    prof_warn_compiled(t->ctx, t->arena, &t->opt, path, &bytes);
    if (opt_num(&t->opt, OPT_VERBOSE))
        fprintf(stderr, "otrn: %s: cache %s %s, %zu bytes\n", path,
                stats.cached ? "hit" : *stats.key ? "miss" : "off", stats.key, bytes.n);
    if (opt_on(&t->opt, OPT_STATS))
        stats_print(&stats);
    if (opt_on(&t->opt, OPT_EXPLAIN)) {
        Prof p;
        prof_price(t, path, &t->opt, &bytes, &p);
        explain_print(t, &p, &dump.reasons, 0);
    }
    return 0;
}
