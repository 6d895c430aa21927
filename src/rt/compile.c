// SPDX-License-Identifier: Apache-2.0
// compile.c — the road from one end to the other: read, verify, passes, tile, artifact.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "chip/core/chip.h"
#include "net/net.h"
#include "pass/autocast.h"
#include "read/read.h"
#include "rt/rt.h"
#include "tile/tile.h"
#include "write/write.h"

#define SPARE_BYTES (1u << 20) // used by a compilation whose memory is kept

typedef struct Run {
    Ctx *ctx;
    Arena compile, scratch;
    const RtCompile *in;
    double since;
    const char *dir, *inputs; // of the cache: "" = nowhere; what the key was made of
    char key[RT_CACHE_KEY];
    Sha256 name; // the same
    int claim;
    Net *makes; // the others wait for what is made of the key; NULL: nobody
    Pool *pool; // our own, or NULL
    const uint8_t *program; // what the artifact keeps of it, or NULL
    size_t program_bytes;
} Run;

#define POOL_LEAST 512 // operations of a program that is worth threads of its own

static void count_ops(const Hlo *h, RegionId r, bool inside, RtStage *st) {
    const HloRegion *region = &h->regions.at[r];
    *(inside ? &st->inside : &st->ops) += region->ops.n;
    for (uint32_t i = 0; i < region->ops.n; i++) {
        const HloOp *op = hlo_at(h, region->ops.at[i]);
        bool flow = op->code == HLO_WHILE || op->code == HLO_IF || op->code == HLO_CASE;
        st->broadcasts += !inside && (op->code == HLO_BROADCAST_IN_DIM || op->code == HLO_BROADCAST);
        st->constants += !inside && op->code == HLO_CONSTANT;
        for (uint32_t k = 0; k < op->nregions; k++)
            count_ops(h, h->op_regions.at[op->regions + k], inside || !flow, st);
    }
}

static void stage_done(Run *r, const char *name, Hlo *h, const Artifact *art) {
    RtStats *s = r->in->stats;
    double now = now_seconds();
    assert(!s || s->count < RT_STAGES_MAX);
    if (s && s->count < RT_STAGES_MAX) {
        RtStage *st = &s->stages[s->count++];
        *st = (RtStage){.name = name, .seconds = now - r->since};
        if (art)
            st->ops = art->ncode;
        else
            for (uint32_t i = 0; h && i < h->funcs.n; i++)
                if (h->funcs.at[i].body)
                    count_ops(h, h->funcs.at[i].body, false, st);
    }
    if (r->in->hook)
        r->in->hook(r->in->hook_arg, name, h, art);
    r->since = now_seconds();
    pulse_stage(name);
}

const char *rt_stage_name(int i) {
    static const char *const behind[] = {"nest", "placed", "tile"};
    if (i == 0)
        return "read";
    return i <= pass_count ? pass_rows[i - 1].name : i <= pass_count + 3 ? behind[i - pass_count - 1] : NULL;
}

static bool is_disabled(const Options *o, const char *pass) {
    size_t n = strlen(pass);
    for (const char *s = o->val[OPT_DISABLE]; *s; s += strcspn(s, ","), s += *s == ',')
        if (strcspn(s, ",") == n && !memcmp(s, pass, n))
            return true;
    return false;
}

// Behind --passes-until only those that a program cannot do without.
static bool is_behind(const Options *o, int pass) {
    for (int i = 0; i < pass && *o->val[OPT_UNTIL]; i++)
        if (!strcmp(pass_rows[i].name, o->val[OPT_UNTIL]))
            return !pass_rows[pass].needed;
    return false;
}

static bool is_left_out(const Options *o, int pass) { return is_disabled(o, pass_rows[pass].name) || is_behind(o, pass); }

#ifndef NDEBUG
static uint64_t mix(uint64_t sum, uint64_t v) {
    sum = (sum ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

// Of everything a region has: one that a pass has left alone is right as it was.
static uint64_t region_sum(const Hlo *h, RegionId r, uint64_t sum) {
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        const HloOp *op = hlo_at(h, h->regions.at[r].ops.at[i]);
        sum = mix(mix(sum, (uint64_t)h->regions.at[r].ops.at[i] << 16 | op->code), (uintptr_t)op->attrs);
        for (uint32_t k = 0; k < op->noperands; k++)
            sum = mix(sum, (uint64_t)hlo_operand(h, op, k) << 32 | h->values.at[hlo_operand(h, op, k)].type);
        for (uint32_t k = 0; k < op->nregions; k++)
            sum = region_sum(h, h->op_regions.at[op->regions + k], sum);
    }
    return mix(sum, r);
}

static uint64_t program_sum(const Hlo *h) {
    uint64_t sum = h->funcs.n;
    for (uint32_t i = 0; i < h->funcs.n; i++)
        sum = h->funcs.at[i].body ? region_sum(h, h->funcs.at[i].body, sum) : sum;
    return sum;
}
#endif

static void run_passes(Run *r, Compile *c) {
    bool apart = strcmp(r->in->opts->val[OPT_NAN], "off"); // what makes a NaN has a line of its own
#ifndef NDEBUG
    uint64_t was = program_sum(c->hlo);
#endif
    for (int i = 0; i < pass_count; i++)
        c->no_epilogue |= !strcmp(pass_rows[i].name, "epilogue") && is_left_out(r->in->opts, i);
    for (int i = 0; i < pass_count; i++) {
        if (is_left_out(r->in->opts, i) || (apart && pass_joins(&pass_rows[i])))
            continue;
        pass_run(&pass_rows[i], c);
        arena_reset(c->scratch);
#ifndef NDEBUG
        uint64_t now = program_sum(c->hlo);
        if (now != was)
            hlo_verify(c->hlo);
        was = now;
#endif
        stage_done(r, pass_rows[i].name, c->hlo, NULL);
        if (r->in->until && !strcmp(pass_rows[i].name, r->in->until))
            return;
    }
}

static void keep_entry(Run *r, const char *module, const Buf *art) {
    const RtCompile *in = r->in;
    const char *about = arena_printf(&r->compile, "module %.200s\n", module);
    RtPut put = {.dir = r->dir, .key = r->key, .inputs = r->inputs, .about = about, .bytes = art->at,
                 .size = art->n, .warn = in->warn, .claim = r->claim, .limit = opt_num(in->opts, OPT_CACHE_LIMIT) << 20};
    if (rt_writer_add(in->writer, &put))
        r->claim = -1; // the writer's now
    else
        rt_cache_put(&put);
}

// What was made of the key goes to those who wait for it; NULL: nothing was.
static void give(Run *r, const void *bytes, size_t n) {
    if (r->makes)
        net_share_give(r->makes, &r->name, bytes, n);
    r->makes = NULL;
}

// Another process of the job has compiled it, or does: true when it came. Else this one is to.
static bool receive(Run *r, Buf *out) {
    size_t n;
    void *bytes = net_share_take(r->in->net, &r->name, &n);
    if (!bytes) {
        r->makes = r->in->net;
        return false;
    }
    jmp_buf here, *outer = r->ctx->on_fail;
    bool ok = CTX_TRY(r->ctx, here);
    if (ok) {
        buf_put(out, bytes, n);
        if (*r->dir)
            keep_entry(r, "of another process", out);
    }
    r->ctx->on_fail = outer;
    free(bytes);
    if (!ok)
        longjmp(*outer, 1);
    return true;
}

// True when the artifact came out of the cache, or from another process. Else, where there is a cache, the key is claimed: another
// process that wants the same program waits for ours.
static bool try_cache(Run *r, bool bound, const ChipFile *chip, Buf *out) {
    const RtCompile *in = r->in;
    r->dir = opt_on(in->opts, OPT_CACHE) && !in->prepare ? rt_cache_dir(&r->compile, in->opts) : "";
    bool alone = !in->net || in->prepare || in->hook, hit = false, came = false;
    if (!*r->dir && alone)
        return false;
    rt_cache_release(r->claim); // of the unbound program
    r->claim = -1;
    give(r, NULL, 0);
    r->inputs = rt_cache_inputs(&r->compile, in, bound, chip);
    r->name = rt_cache_key(r->inputs, r->key);
    if (*r->dir && !in->hook)
        hit = rt_cache_get(out->arena, r->dir, r->key, in->warn, out);
    if (!hit && !alone)
        came = receive(r, out);
    if (*r->dir && !in->hook && !hit && !came) {
        r->claim = rt_cache_claim(r->dir, r->key, in->warn);
        hit = rt_cache_get(out->arena, r->dir, r->key, in->warn, out);
    }
    if (hit)
        give(r, out->at, out->n);
    if (in->stats) {
        memcpy(in->stats->key, r->key, *r->dir ? sizeof r->key : 0);
        in->stats->cached = hit;
        in->stats->received = came;
    }
    stage_done(r, "cache", NULL, NULL);
    return hit || came;
}

// Types the engines of the real chip lack. GpSimd computes with them here, unless told to be strict.
static void check_strict(Ctx *ctx, const Artifact *art) {
    for (uint32_t i = 0; i < art->ncode; i++) {
        const IsaInst *in = artifact_shape(art, i);
        const Kern *k = in->op == ISA_KERNEL && (uint32_t)in->imm < art->nkerns ? &art->kerns[in->imm] : NULL;
        for (uint32_t v = 0; k && v < k->nin + k->nout; v++) {
            const DtypeRow *t = dtype_row(v < k->nin ? k->in[v].dtype : k->out[v - k->nin].dtype);
            if (t->cls != DC_COMPLEX && t->bits < 64)
                continue;
            const ArtLoc *loc = &art->locs[art->code_loc[i]];
            ctx_hint(ctx, "use a narrower type, or leave out --strict (OTRN_STRICT)");
            ctx_fail(ctx, OTRN_UNSUPPORTED, (Place){*loc->file ? loc->file : NULL, loc->line, loc->col},
                     "%s.%s on %s: the chip has no such type",
                     hlo_dialect_names[hlo_op_rows[k->op].dialect], hlo_op_rows[k->op].name, t->name);
        }
    }
}

static void set_precision(Run *r, Artifact *art) {
    art->precision = autocast_text(&r->compile, r->in->opts);
    if (!strcmp(r->in->opts->val[OPT_ROUNDING], "stochastic"))
        art->flags |= ART_STOCHASTIC;
}

#define PROGRAM_MAX ((size_t)64 << 20) // bytes of a program that an artifact keeps

// The program as it is now, before any pass: bytecode as it came, else written as such. `changed`: it is not what came any more.
static void keep_program(Run *r, const Hlo *h, bool changed) {
    const RtCompile *in = r->in;
    Buf code = {.arena = &r->compile};
    jmp_buf here, *outer = r->ctx->on_fail;
    const uint8_t *volatile at = changed ? NULL : in->bytes;
    volatile size_t n = changed ? 0 : in->size;
    if (changed || !read_is_bytecode(in->bytes, in->size)) {
        Buf *volatile kept = &code;
        if (CTX_TRY(r->ctx, here)) {
            write_bytecode(h, kept);
            at = kept->at, n = kept->n;
        } else if (r->ctx->err.code != OTRN_UNSUPPORTED) { // what bytecode has no form for stays as it is
            r->ctx->on_fail = outer;
            longjmp(*outer, 1);
        } else {
            r->ctx->err.hint[0] = 0; // not for the next error
        }
        r->ctx->on_fail = outer;
    }
    r->program = n <= PROGRAM_MAX ? at : NULL;
    r->program_bytes = r->program ? n : 0;
}

static void compile_program(Run *r, Buf *out) {
    const RtCompile *in = r->in;
    r->since = now_seconds();
    ChipFile chip;
    if (in->chip)
        chip = *in->chip;
    else
        chipfile_load(r->ctx, &r->compile, in->opts->val[OPT_TARGET], in->opts->val[OPT_CHIPS], &chip);
    if (try_cache(r, false, &chip, out))
        return;
    Hlo *h = read_program(r->ctx, &r->compile, in->name, in->bytes, in->size);
    hlo_verify(h);
    stage_done(r, "read", h, NULL);
    if (in->prepare)
        in->prepare(in->prepare_arg, h);
    bool bound = in->types && pass_bind(h, in->types, in->values, in->count);
    if (bound && try_cache(r, true, &chip, out)) // each set of shapes is a program of its own
        return;
    keep_program(r, h, bound || in->prepare);
    if (!in->pool && h->ops.n >= POOL_LEAST)
        r->pool = pool_make((int)opt_num(in->opts, OPT_THREADS));
    Compile c = {.ctx = r->ctx, .arena = &r->compile, .scratch = &r->scratch, .hlo = h, .opts = in->opts,
                 .pool = in->pool ? in->pool : r->pool, .chip = &chip, .nests = in->nests, .placed = in->placed};
    run_passes(r, &c);
    if (in->until)
        return;
    Artifact *art = tile_lower(&c, &chip);
    set_precision(r, art);
    art->program = r->program;
    art->program_bytes = r->program_bytes;
    art->options = rt_code_options(&r->compile, in->opts);
    art->chip_hash = rt_chip_hash(&r->compile, &chip);
    if (in->hook)
        artifact_expand(&r->compile, art);
#ifndef NDEBUG
    artifact_verify(r->ctx, art, in->name);
#endif
    stage_done(r, "tile", h, art);
    if (opt_on(in->opts, OPT_STRICT))
        check_strict(r->ctx, art);
    chip_check(r->ctx, art); // what cannot run is not compiled, and not cached
    artifact_save(art, out);
    if (!artifact_calls_host(art)) { // of no use to another process
        give(r, out->at, out->n);
        if (*r->dir)
            keep_entry(r, art->name, out);
    }
    stage_done(r, "save", h, art);
}

static bool is_assembly(const RtCompile *in) {
    size_t n = in->name ? strlen(in->name) : 0;
    return n > 2 && !strcmp(in->name + n - 2, ".s");
}

// A kernel as text: assembled, not compiled, and quicker than a look into the cache.
void rt_assemble(Ctx *ctx, Arena *a, const RtCompile *in, Buf *out) {
    out->arena = a;
    const Options *o = in->opts;
    Artifact *art = artifact_assemble(ctx, a, in->name, in->bytes, in->size, o->val[OPT_DEFINE]);
    if (!strcmp(o->val[OPT_ROUNDING], "stochastic"))
        art->flags |= ART_STOCHASTIC;
    ChipFile chip;
    if (strcmp(o->from[OPT_TARGET], "default")) {
        chipfile_load(ctx, a, o->val[OPT_TARGET], o->val[OPT_CHIPS], &chip);
        art->target = chip.name;
    } else {
        chipfile_named(ctx, a, art->target, in->chip, o->val[OPT_CHIPS], &chip);
    }
    IsaChip limits = chipfile_isa(&chip);
    artifact_verify_for(ctx, art, in->name, &limits, NULL);
    artifact_save(art, out);
}

void rt_spare_init(RtSpare *s) {
    *s = (RtSpare){0};
    pthread_mutex_init(&s->lock, NULL);
}

void rt_spare_fini(RtSpare *s) {
    if (s->has) {
        arena_fini(&s->compile);
        arena_fini(&s->scratch);
    }
    pthread_mutex_destroy(&s->lock);
}

static void arenas_take(Run *r, RtSpare *s) {
    arena_init(&r->compile, r->ctx);
    arena_init(&r->scratch, r->ctx);
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    if (s->has) {
        r->compile = s->compile;
        r->scratch = s->scratch;
        r->compile.ctx = r->scratch.ctx = r->ctx;
        s->has = false;
    }
    pthread_mutex_unlock(&s->lock);
}

// Those of a large program are not kept.
static void arenas_give(Run *r, RtSpare *s) {
    bool small = r->compile.total_bytes + r->scratch.total_bytes <= SPARE_BYTES;
    if (s && small) {
        arena_reset(&r->compile);
        arena_reset(&r->scratch);
        pthread_mutex_lock(&s->lock);
        if (!s->has) {
            s->compile = r->compile;
            s->scratch = r->scratch;
            s->has = true;
            arena_init(&r->compile, r->ctx);
            arena_init(&r->scratch, r->ctx);
        }
        pthread_mutex_unlock(&s->lock);
    }
    arena_fini(&r->compile);
    arena_fini(&r->scratch);
}

void rt_compile(Ctx *ctx, Arena *a, const RtCompile *in, Buf *out) {
    out->arena = a;
    if (artifact_is(in->bytes, in->size)) {
        if (in->lasting)
            *out = (Buf){.arena = a, .at = (uint8_t *)in->bytes, .n = in->size, .cap = in->size};
        else
            buf_put(out, in->bytes, in->size);
        return;
    }
    if (is_assembly(in)) {
        rt_assemble(ctx, a, in, out);
        return;
    }
    Run r = {.ctx = ctx, .in = in, .dir = "", .claim = -1};
    arenas_take(&r, in->spare);
    jmp_buf *outer = ctx->on_fail;
    jmp_buf here;
    Run *volatile run = &r;
    bool ok = CTX_TRY(ctx, here);
    if (ok)
        compile_program(run, out);
    ctx->on_fail = outer;
    rt_cache_release(run->claim); // also when it failed: the next one tries again
    give(run, NULL, 0);
    pool_free(run->pool);
    arenas_give(run, in->spare);
    if (!ok)
        longjmp(*outer, 1); // the error is written already
}
