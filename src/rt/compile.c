// SPDX-License-Identifier: Apache-2.0
// compile.c — the road from one end to the other: read, verify, passes, tile, artifact.
#include <string.h>
#include <time.h>

#include "chip/chip.h"
#include "read/read.h"
#include "rt/rt.h"
#include "tile/tile.h"

double rt_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct Run {
    Ctx *ctx;
    Arena compile, scratch;
    const RtCompile *in;
    double since;
} Run;

static uint32_t count_ops(const Hlo *h, RegionId r) {
    const HloRegion *region = &h->regions.at[r];
    uint32_t n = region->ops.n;
    for (uint32_t i = 0; i < region->ops.n; i++) {
        const HloOp *op = hlo_at(h, region->ops.at[i]);
        for (uint32_t k = 0; k < op->nregions; k++)
            n += count_ops(h, h->op_regions.at[op->regions + k]);
    }
    return n;
}

static void stage_done(Run *r, const char *name, Hlo *h, const Artifact *art) {
    RtStats *s = r->in->stats;
    double now = rt_seconds();
    if (s && s->count < RT_STAGES_MAX) {
        RtStage *st = &s->stages[s->count++];
        *st = (RtStage){.name = name, .seconds = now - r->since};
        if (art)
            st->ops = art->ncode;
        else
            for (uint32_t i = 0; h && i < h->funcs.n; i++)
                st->ops += h->funcs.at[i].body ? count_ops(h, h->funcs.at[i].body) : 0;
    }
    if (r->in->hook)
        r->in->hook(r->in->hook_arg, name, h, art);
    r->since = rt_seconds();
}

const char *rt_stage_name(int i) {
    if (i == 0)
        return "read";
    return i <= pass_count ? pass_rows[i - 1].name : i == pass_count + 1 ? "tile" : NULL;
}

static bool is_disabled(const Options *o, const char *pass) {
    size_t n = strlen(pass);
    for (const char *s = o->val[OPT_DISABLE]; *s; s += strcspn(s, ","), s += *s == ',')
        if (strcspn(s, ",") == n && !memcmp(s, pass, n))
            return true;
    return false;
}

static void run_passes(Run *r, Compile *c) {
    for (int i = 0; i < pass_count; i++) {
        if (is_disabled(r->in->opts, pass_rows[i].name))
            continue;
        pass_rows[i].fn(c);
        arena_reset(c->scratch);
#ifndef NDEBUG
        hlo_verify(c->hlo);
#endif
        stage_done(r, pass_rows[i].name, c->hlo, NULL);
    }
}

// True when the artifact came out of the cache; *dir and key say where a new one belongs ("" = nowhere).
static bool try_cache(Run *r, bool bound, const ChipFile *chip, Buf *out, const char **dir,
                      char key[33]) {
    const RtCompile *in = r->in;
    *dir = opt_on(in->opts, OPT_CACHE) && !in->prepare ? rt_cache_dir(&r->compile, in->opts) : "";
    if (!**dir)
        return false;
    rt_cache_key(&r->scratch, in, bound, chip, key);
    bool hit = !in->hook && rt_cache_get(out->arena, *dir, key, out);
    arena_reset(&r->scratch);
    if (in->stats) {
        memcpy(in->stats->key, key, 33);
        in->stats->cached = hit;
    }
    stage_done(r, "cache", NULL, NULL);
    return hit;
}

static void compile_program(Run *r, Buf *out) {
    const RtCompile *in = r->in;
    r->since = rt_seconds();
    ChipFile chip;
    chipfile_load(r->ctx, &r->compile, in->opts->val[OPT_TARGET], in->opts->val[OPT_CHIPS], &chip);
    const char *dir;
    char key[33] = "";
    if (try_cache(r, false, &chip, out, &dir, key))
        return;
    Hlo *h = read_program(r->ctx, &r->compile, in->name, in->bytes, in->size);
    hlo_verify(h);
    stage_done(r, "read", h, NULL);
    if (in->prepare)
        in->prepare(in->prepare_arg, h);
    if (in->types && pass_bind(h, in->types, in->values, in->count) &&
        try_cache(r, true, &chip, out, &dir, key)) // each set of shapes is a program of its own
        return;
    Compile c = {.ctx = r->ctx, .arena = &r->compile, .scratch = &r->scratch, .hlo = h};
    run_passes(r, &c);
    Artifact *art = tile_lower(&c, &chip);
#ifndef NDEBUG
    artifact_verify(r->ctx, art, in->name);
#endif
    stage_done(r, "tile", h, art);
    chip_check(r->ctx, art); // what cannot run is not compiled, and not cached
    artifact_save(art, out);
    if (*dir)
        rt_cache_put(dir, key, out);
    stage_done(r, "save", h, art);
}

static bool is_assembly(const RtCompile *in) {
    size_t n = in->name ? strlen(in->name) : 0;
    return n > 2 && !strcmp(in->name + n - 2, ".s");
}

// A kernel as text: assembled, not compiled, and quicker than a look into the cache.
static void assemble(Ctx *ctx, Arena *a, const RtCompile *in, Buf *out) {
    const Options *o = in->opts;
    Artifact *art = artifact_assemble(ctx, a, in->name, in->bytes, in->size, o->val[OPT_DEFINE]);
    if (strcmp(o->from[OPT_TARGET], "default"))
        art->target = o->val[OPT_TARGET];
    ChipFile chip;
    chipfile_load(ctx, a, art->target, o->val[OPT_CHIPS], &chip);
    IsaChip limits = chipfile_isa(&chip);
    artifact_verify_for(ctx, art, in->name, &limits);
    artifact_save(art, out);
}

void rt_compile(Ctx *ctx, Arena *a, const RtCompile *in, Buf *out) {
    out->arena = a;
    if (artifact_is(in->bytes, in->size)) {
        buf_put(out, in->bytes, in->size);
        return;
    }
    if (is_assembly(in)) {
        assemble(ctx, a, in, out);
        return;
    }
    Run r = {.ctx = ctx, .in = in};
    arena_init(&r.compile, ctx);
    arena_init(&r.scratch, ctx);
    jmp_buf *outer = ctx->on_fail;
    jmp_buf here;
    Run *volatile run = &r;
    bool ok = CTX_TRY(ctx, here);
    if (ok)
        compile_program(run, out);
    ctx->on_fail = outer;
    arena_fini(&run->compile);
    arena_fini(&run->scratch);
    if (!ok)
        longjmp(*outer, 1); // the error is written already
}
