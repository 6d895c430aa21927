// SPDX-License-Identifier: Apache-2.0
// otrn.c — the public interface: environments, executables, runs, modelled time.
//
// An environment is one virtual core with its host threads (more cores when a program runs on several devices:
// many.c). Runs in it take turns: a core has one SBUF, one PSUM and one scratch area in HBM, which grows to
// what the largest loaded program needs.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "chip/profile.h"
#include "clock/flow.h"
#include "rt/exe.h"
#include "rt/price.h"

// --- environments --------------------------------------------------------------------------------------

static otrn_status fail_with(otrn_error *err, const Ctx *ctx) {
    if (err)
        *err = ctx->err;
    return ctx->err.code;
}

static void env_init(otrn_env *env, const otrn_option *options, size_t count) {
    opt_init(&env->ctx, &env->opts);
    for (size_t i = 0; i < count; i++)
        opt_set(&env->ctx, &env->opts, options[i].name, options[i].value, "call");
    for (int i = 0; i < OPT_COUNT; i++) // the caller's strings may go away
        env->opts.val[i] = arena_strndup(&env->arena, env->opts.val[i], strlen(env->opts.val[i]));
    bool is_instance = instance_apply(&env->ctx, &env->arena, &env->opts, &env->instance);
    // An unknown target is an error now, not at the first program.
    chipfile_load(&env->ctx, &env->arena, env->opts.val[OPT_TARGET], env->opts.val[OPT_CHIPS], &env->chip);
    env->cores = env->chip.cores_per_chip >= 1 ? (uint32_t)env->chip.cores_per_chip : 1;
    env->cores *= is_instance ? env->instance.chips : 1;
    int want = host_parse(env->opts.val[OPT_HOST]);
    HostLevel level = host_best();
    if (want >= 0 && want < HOST_COUNT) {
        if ((HostLevel)want > level)
            ctx_fail(&env->ctx, OTRN_USAGE, NO_PLACE, "this host has no %s", env->opts.val[OPT_HOST]);
        level = (HostLevel)want;
    }
    env->pool = pool_make((int)opt_num(&env->opts, OPT_THREADS));
    env->level = level;
    env->core.chip = env->pool ? chip_make(env->pool, level) : NULL;
    if (!env->core.chip)
        ctx_fail(&env->ctx, OTRN_NOMEM, NO_PLACE, "no memory for the virtual core");
    env->hosts = env->own_hosts = hosts_make();
    if (!env->hosts)
        ctx_fail(&env->ctx, OTRN_NOMEM, NO_PLACE, "out of memory");
    env->host = (ChipHost){hosts_call, env->hosts};
    chip_set_host(env->core.chip, &env->host);
    chip_set_plan(env->core.chip, chip_plan_of(env->opts.val[OPT_PLAN]));
    const char *seed = env->opts.val[OPT_STOCHASTIC];
    env->stochastic = *seed;
    env->round_seed = strtoull(seed, NULL, 10);
    if (strspn(seed, "0123456789") != strlen(seed))
        ctx_fail(&env->ctx, OTRN_USAGE, NO_PLACE, "stochastic-rounding: `%s` is not a whole number", seed);
}

otrn_status otrn_open(const otrn_option *options, size_t count, otrn_env **out, otrn_error *err) {
    *out = NULL;
    otrn_env *env = calloc(1, sizeof *env);
    if (!env)
        return ctx_set(err, OTRN_NOMEM, NO_PLACE, "out of memory");
    arena_init(&env->arena, &env->ctx);
    rt_spare_init(&env->spare);
    pthread_mutex_init(&env->turn, NULL);
    jmp_buf here;
    if (CTX_TRY(&env->ctx, here)) {
        env_init(env, options, count);
        *out = env;
        return OTRN_OK;
    }
    otrn_status s = fail_with(err, &env->ctx);
    otrn_close(env);
    return s;
}

static void scratch_free(Core *c) {
    if (c->scratch)
        munmap(c->scratch, c->scratch_bytes);
    c->scratch = NULL;
    c->scratch_bytes = 0;
}

bool core_reserve(Core *c, size_t bytes) {
    if (bytes <= c->scratch_bytes)
        return true;
    scratch_free(c);
    bytes = (bytes + 0x1fffff) & ~(size_t)0x1fffff;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    madvise(p, bytes, MADV_HUGEPAGE);
    c->scratch = p;
    c->scratch_bytes = bytes;
    return true;
}

void core_fini(Core *c) {
    chip_free(c->chip);
    scratch_free(c);
}

void otrn_close(otrn_env *env) {
    if (!env)
        return;
    many_free(env->many);
    rt_writer_free(env->writer);
    rt_spare_fini(&env->spare);
    core_fini(&env->core);
    if (env->pool)
        pool_free(env->pool);
    hosts_free(env->own_hosts);
    pthread_mutex_destroy(&env->turn);
    arena_fini(&env->arena);
    free(env);
}

void otrn_cache_behind(otrn_env *env) { env->writer = env->writer ? env->writer : rt_writer_make(); }
void otrn_cache_wait(otrn_env *env) { rt_writer_wait(env->writer); }

uint64_t otrn_hbm_bytes(const otrn_env *env) { return (uint64_t)env->chip.hbm_bytes_per_core; }
const char *otrn_target(const otrn_env *env) { return env->opts.val[OPT_TARGET]; }
uint32_t otrn_cores(const otrn_env *env) { return env->cores; }

// --- executables ---------------------------------------------------------------------------------------

static otrn_type type_of(const ArtValue *v) {
    otrn_type t = {.dtype = v->dtype, .rank = v->rank};
    memcpy(t.dims, v->dims, sizeof t.dims);
    return t;
}

static void fill_memory(const Artifact *art, otrn_memory *m) {
    for (uint32_t i = 0; i < art->nargs; i++)
        m->arg_bytes += art->args[i].bytes;
    for (uint32_t i = 0; i < art->nresults; i++) {
        m->result_bytes += art->results[i].bytes;
        m->alias_bytes += art->results[i].alias >= 0 ? art->results[i].bytes : 0;
    }
    m->scratch_bytes = art->scratch_bytes;
    m->const_bytes = art->const_bytes;
    m->code_bytes = (uint64_t)art->ncode * sizeof(IsaInst);
    m->peak_bytes = m->arg_bytes + m->result_bytes - m->alias_bytes + m->scratch_bytes + m->const_bytes;
}

void exe_add_slot(otrn_exe *exe) {
    const Artifact *art = exe->art;
    Pool *pool = exe->env->pool;
    int threads = pool_threads(pool);
    bool by_chance = exe->env->stochastic || art->flags & ART_STOCHASTIC;
    ExeSlot slot = {.prog = chip_load(&exe->ctx, &exe->arena, art, threads, by_chance, pool),
                    .peer = art->peer ? chip_load(&exe->ctx, &exe->arena, art->peer, threads, by_chance, pool) : NULL,
                    .segs = ARENA_NEWN(&exe->arena, uint8_t *, SEG_FIRST_ARG + art->nargs + art->nresults)};
    VEC_PUSH(&exe->arena, &exe->slots, slot);
}

static void exe_init(otrn_exe *exe, RtCompile in) {
    const Options *o = &exe->env->opts;
    RtStats stats = {0};
    in.opts = o;
    in.chip = &exe->env->chip;
    in.writer = exe->env->writer;
    in.spare = &exe->env->spare;
    in.pool = exe->env->pool;
    in.stats = &stats;
    double begin = rt_seconds();
    rt_compile(&exe->ctx, &exe->arena, &in, &exe->bytes);
    exe->cached = stats.cached;
    exe->art = artifact_read(&exe->ctx, &exe->arena, in.name, exe->bytes.at, exe->bytes.n, exe->env->pool);
    if (opt_num(o, OPT_VERBOSE) && stats.count)
        fprintf(stderr, "otrn: %s: cache %s %s, %u instructions, %.1f ms\n", exe->art->name,
                stats.cached ? "hit" : *stats.key ? "miss" : "off", stats.key, exe->art->ncode,
                (rt_seconds() - begin) * 1e3);
    const Artifact *art = exe->art;
    ChipFile chip = exe->env->chip;
    if (strcmp(art->target, chip.name))
        chipfile_named(&exe->ctx, &exe->arena, art->target, NULL, o->val[OPT_CHIPS], &chip);
    IsaChip limits = chipfile_isa(&chip);
    artifact_verify_for(&exe->ctx, art, in.name, &limits, exe->env->pool);
    exe_add_slot(exe);
    exe->types = ARENA_NEWN(&exe->arena, otrn_type, art->nargs + art->nresults + 1);
    for (uint32_t i = 0; i < art->nargs; i++)
        exe->types[i] = type_of(&art->args[i]);
    for (uint32_t i = 0; i < art->nresults; i++)
        exe->types[art->nargs + i] = type_of(&art->results[i]);
    fill_memory(art, &exe->memory);
    hosts_take(exe, &in);
    exe->memory.capacity_bytes = (uint64_t)chip.hbm_bytes_per_core * (art->peer ? 2 : 1);
}

static otrn_exe *exe_make(otrn_env *env, otrn_error *err) {
    otrn_exe *exe = calloc(1, sizeof *exe);
    if (!exe) {
        ctx_set(err, OTRN_NOMEM, NO_PLACE, "out of memory");
        return NULL;
    }
    exe->env = env;
    arena_init(&exe->arena, &exe->ctx);
    return exe;
}

otrn_status exe_compile(otrn_env *env, const RtCompile *in, otrn_exe **out, otrn_error *err) {
    *out = NULL;
    otrn_exe *exe = exe_make(env, err);
    if (!exe)
        return OTRN_NOMEM;
    jmp_buf here;
    if (CTX_TRY(&exe->ctx, here)) {
        exe_init(exe, *in);
        exe->ctx.on_fail = NULL;
        *out = exe;
        return OTRN_OK;
    }
    otrn_status s = fail_with(err, &exe->ctx);
    otrn_exe_free(exe);
    return s;
}

otrn_status otrn_compile(otrn_env *env, const void *bytes, size_t size, const char *name, otrn_exe **out,
                         otrn_error *err) {
    return exe_compile(env, &(RtCompile){.name = name, .bytes = bytes, .size = size}, out, err);
}

otrn_status otrn_compile_for(otrn_env *env, const void *bytes, size_t size, const char *name,
                             const otrn_type *types, const void *const *values, size_t count,
                             otrn_exe **out, otrn_error *err) {
    return exe_compile(env,
                       &(RtCompile){.name = name, .bytes = bytes, .size = size, .types = types,
                                    .values = values, .count = count},
                       out, err);
}

otrn_status otrn_compile_file(otrn_env *env, const char *path, otrn_exe **out, otrn_error *err) {
    *out = NULL;
    otrn_exe *exe = exe_make(env, err);
    if (!exe)
        return OTRN_NOMEM;
    jmp_buf here;
    if (CTX_TRY(&exe->ctx, here)) {
        size_t size;
        uint8_t *bytes = file_read(&exe->ctx, &exe->arena, path, &size);
        exe_init(exe, (RtCompile){.name = path, .bytes = bytes, .size = size, .lasting = true});
        exe->ctx.on_fail = NULL;
        *out = exe;
        return OTRN_OK;
    }
    otrn_status s = fail_with(err, &exe->ctx);
    otrn_exe_free(exe);
    return s;
}

void otrn_exe_free(otrn_exe *exe) {
    if (!exe)
        return;
    hosts_release(exe);
    arena_fini(&exe->arena);
    free(exe);
}

const void *otrn_exe_bytes(const otrn_exe *exe, size_t *size) {
    *size = exe->bytes.n;
    return exe->bytes.at;
}

const char *otrn_exe_name(const otrn_exe *exe) { return exe->art->name; }
size_t otrn_exe_num_args(const otrn_exe *exe) { return exe->art->nargs; }
size_t otrn_exe_num_results(const otrn_exe *exe) { return exe->art->nresults; }
const otrn_type *otrn_exe_arg_type(const otrn_exe *exe, size_t i) { return &exe->types[i]; }
const otrn_type *otrn_exe_result_type(const otrn_exe *exe, size_t i) {
    return &exe->types[exe->art->nargs + i];
}
int64_t otrn_exe_result_alias(const otrn_exe *exe, size_t i) { return exe->art->results[i].alias; }
int otrn_exe_arg_donated(const otrn_exe *exe, size_t i) { return exe->art->args[i].donated; }
uint32_t otrn_exe_partitions(const otrn_exe *exe) {
    return exe->art->partitions ? exe->art->partitions : 1;
}
static const char *sharding_of(const ArtValue *v) { return v->sharding ? v->sharding : ""; }
const char *otrn_exe_arg_sharding(const otrn_exe *exe, size_t i) {
    return sharding_of(&exe->art->args[i]);
}
const char *otrn_exe_result_sharding(const otrn_exe *exe, size_t i) {
    return sharding_of(&exe->art->results[i]);
}
int otrn_exe_calls_host(const otrn_exe *exe) { return artifact_calls_host(exe->art); }
int otrn_exe_arg_pinned(const otrn_exe *exe, size_t i) {
    return exe->art->args[i].memory == ART_PINNED_HOST;
}
int otrn_exe_result_pinned(const otrn_exe *exe, size_t i) {
    return exe->art->results[i].memory == ART_PINNED_HOST;
}
void otrn_exe_memory(const otrn_exe *exe, otrn_memory *out) { *out = exe->memory; }
int otrn_exe_cached(const otrn_exe *exe) { return exe->cached; }

// --- running -------------------------------------------------------------------------------------------

void exe_bind(const otrn_exe *exe, const ExeSlot *slot, const Core *core, const void *const *args,
              void *const *results) {
    const Artifact *art = exe->art;
    slot->segs[SEG_SCRATCH] = core->scratch;
    slot->segs[SEG_CONST] = (uint8_t *)art->consts;
    for (uint32_t i = 0; i < art->nargs; i++)
        slot->segs[SEG_FIRST_ARG + i] = (uint8_t *)args[i];
    for (uint32_t i = 0; i < art->nresults; i++)
        slot->segs[SEG_FIRST_ARG + art->nargs + i] = results[i];
}

otrn_status exe_error(const Artifact *art, otrn_status s, uint32_t pc, otrn_error *err,
                      const char *fmt, ...) {
    char text[sizeof err->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const ArtLoc *loc = &art->locs[art->code_loc[pc]];
    return ctx_set(err, s, (Place){*loc->file ? loc->file : NULL, loc->line, loc->col}, "%s", text);
}

static unsigned watch_of(const Options *o) {
    const char *nan = o->val[OPT_NAN];
    return (opt_on(o, OPT_CHECK) ? CHIP_WATCH_ORDER : 0u) | (strcmp(nan, "off") ? CHIP_WATCH_NAN : 0u) |
           (strcmp(nan, "inf") ? 0u : CHIP_WATCH_INF);
}

void exe_watch_init(ExeWatch *w, CheckPair *pair) {
    *w = (ExeWatch){.pair = pair};
    arena_init(&w->arena, &w->ctx);
    w->notes = (Buf){.arena = &w->arena};
}

void exe_watch_fini(ExeWatch *w) {
    if (w->notes.n)
        fwrite(w->notes.at, 1, w->notes.n, stderr);
    arena_fini(&w->arena);
}

bool exe_watches(const otrn_env *env) { return watch_of(&env->opts) != 0; }

otrn_status exe_run(const otrn_env *env, const Core *core, ChipProg *prog, uint8_t *const *segs, uint32_t *pc,
                    char *why, size_t why_bytes, ExeWatch *w) {
    unsigned watch = watch_of(&env->opts);
    bool by_chance = env->stochastic || chip_prog_artifact(prog)->flags & ART_STOCHASTIC;
    chip_round(core->chip, by_chance, env->round_seed);
    if (!watch)
        return chip_run(core->chip, prog, segs, pc, why, why_bytes);
    jmp_buf here;
    if (CTX_TRY(&w->ctx, here))
        return chip_run_watched(core->chip, prog, segs, pc, why, why_bytes,
                                &(ChipWatch){.what = watch, .arena = &w->arena, .pair = w->pair, .notes = &w->notes});
    chip_unwatch(core->chip);
    snprintf(why, why_bytes, "%.400s", w->ctx.err.text);
    return w->ctx.err.code;
}

otrn_status otrn_execute(otrn_exe *exe, const void *const *args, void *const *results, otrn_error *err) {
    otrn_env *env = exe->env;
    const Artifact *art = exe->art;
    if (otrn_exe_check_host(exe, err))
        return OTRN_USAGE;
    if (exe->slots.at[0].peer) // two cores
        return many_run(env, (Grid){1, 1}, &exe, &args, &results, NULL, 0, err);
    pthread_mutex_lock(&env->turn);
    if (!core_reserve(&env->core, art->scratch_bytes)) {
        pthread_mutex_unlock(&env->turn);
        return ctx_set(err, OTRN_NOMEM, NO_PLACE, "no host memory for %llu bytes of HBM scratch",
                       (unsigned long long)art->scratch_bytes);
    }
    const ExeSlot *slot = &exe->slots.at[0];
    exe_bind(exe, slot, &env->core, args, results);
    uint32_t pc = 0;
    char why[512] = "";
    bool profile = opt_on(&env->opts, OPT_PROFILE);
    ChipProfile spent = {0};
    chip_set_profile(env->core.chip, profile ? &spent : NULL);
    ExeWatch watch;
    exe_watch_init(&watch, NULL);
    otrn_status s = exe_run(env, &env->core, slot->prog, slot->segs, &pc, why, sizeof why, &watch);
    exe_watch_fini(&watch);
    chip_set_profile(env->core.chip, NULL);
    if (profile)
        profile_print(&spent, env->level, env->pool, stderr);
    pthread_mutex_unlock(&env->turn);
    return s == OTRN_OK ? s : exe_error(art, s, pc, err, "%s", why);
}

// --- modelled time ---------------------------------------------------------------------------------------

_Static_assert(OTRN_ENGINES == CLOCK_TRACKS, "the report names the clock's tracks");

const char *otrn_engine_name(int engine) {
    return engine >= 0 && engine < CLOCK_TRACKS ? clock_track_names[engine] : "unknown";
}

static void fill_report(const RtPriced *p, otrn_report *out) {
    const Clock *clock = &p->clock;
    const Cost *cost = &p->cost;
    memset(out, 0, sizeof *out);
    snprintf(out->target, sizeof out->target, "%s", p->chip.name);
    out->total_us = clock->total_ns / 1e3;
    for (int i = 0; i < CLOCK_TRACKS; i++) {
        out->busy_us[i] = clock->busy_ns[i] / 1e3;
        out->instructions[i] = clock->insts[i];
    }
    out->flops = clock->flops;
    out->hbm_bytes = clock->hbm_bytes;
    otrn_memory memory = {0};
    fill_memory(p->art, &memory);
    out->hbm_peak_bytes = (double)memory.peak_bytes;
    out->unknown_loops = clock->unknown_loops;
    out->counted_loops = clock->counted_loops;
    out->assumed_trips = clock->unknown_loops ? p->assumed_trips : 0;
    out->usd_per_hour = cost->usd_per_hour;
    out->devices = cost->devices;
    out->cores_per_device = cost->cores_per_device;
    out->machines = cost->machines;
    snprintf(out->instance, sizeof out->instance, "%s", cost->instance.name ? cost->instance.name : "");
    snprintf(out->price_basis, sizeof out->price_basis, "%s", cost->basis);
    out->flops_peak = cost->flops_peak;
    out->utilisation = cost_utilisation(cost, clock->flops, clock->total_ns * 1e-9);
}

void rt_trips(otrn_exe *exe, Arena *a, ClockOptions *out) {
    if (!flow_unknown(exe->art))
        return;
    uint64_t *counts = ARENA_NEWN(a, uint64_t, (size_t)exe->art->ncode + 1);
    bool ran = false;
    pthread_mutex_lock(&exe->env->turn);
    for (uint32_t i = 0; i < exe->slots.n; i++) {
        const uint64_t *of = chip_counts(exe->slots.at[i].prog);
        ran |= of != NULL;
        for (uint32_t pc = 0; of && pc < exe->art->ncode; pc++)
            counts[pc] = of[pc] > counts[pc] ? of[pc] : counts[pc];
    }
    pthread_mutex_unlock(&exe->env->turn);
    if (!ran)
        return;
    uint64_t *trips;
    out->ntrips = clock_trips(a, exe->art, counts, &trips);
    out->trips = trips;
}

static bool has_pairs(const ChipFile *chip) { return chip->generation >= 3; } // logical cores of two, as tile.c asks

// The program as the artifact's own options say, on the target. A chip whose logical cores are single has it on those.
static void price_it(otrn_exe *exe, Ctx *ctx, Arena *a, const char *target, bool events, RtPriced *out) {
    otrn_env *env = exe->env;
    Options opts = env->opts;
    ChipFile chip;
    if (target)
        chipfile_load(ctx, a, target, opts.val[OPT_CHIPS], &chip);
    else
        chipfile_named(ctx, a, exe->art->target, &env->chip, opts.val[OPT_CHIPS], &chip);
    opts.val[OPT_TARGET] = target ? target : exe->art->target;
    if (exe->art->program)
        rt_options_of(ctx, a, exe->art, exe->art->name, true, &opts);
    if (!has_pairs(&chip))
        opts.val[OPT_LNC] = "1";
    RtPricing in = {.how = {.opts = &opts, .chip = &chip, .name = exe->art->name, .pool = env->pool,
                            .spare = &env->spare, .writer = env->writer},
                    .instance = env->instance.name ? &env->instance : NULL,
                    .replicas = exe->replicas,
                    .clock = {.events = events, .stalls = events}};
    rt_trips(exe, a, &in.clock);
    rt_price(ctx, a, exe->art, &in, out);
}

// Runs the clock in an arena of its own; `path` non-NULL also writes the trace.
static otrn_status time_it(otrn_exe *exe, const char *target, otrn_report *out, const char *path,
                           otrn_error *err) {
    Ctx ctx = {0};
    Arena arena;
    arena_init(&arena, &ctx);
    Arena *volatile keep = &arena;
    jmp_buf here;
    otrn_status s = OTRN_OK;
    if (CTX_TRY(&ctx, here)) {
        RtPriced *p = ARENA_NEW(keep, RtPriced);
        price_it(exe, &ctx, keep, target, path != NULL, p);
        if (out)
            fill_report(p, out);
        if (path) {
            Buf text = {.arena = keep};
            clock_trace(p->art, &p->chip, &p->clock, &text);
            clock_trace_write(&ctx, keep, path, &text);
        }
    } else {
        s = fail_with(err, &ctx);
    }
    arena_fini(keep);
    return s;
}

otrn_status otrn_time(otrn_exe *exe, const char *target, otrn_report *out, otrn_error *err) {
    return time_it(exe, target, out, NULL, err);
}

otrn_status otrn_trace(otrn_exe *exe, const char *target, const char *path, otrn_error *err) {
    return time_it(exe, target, NULL, path, err);
}
