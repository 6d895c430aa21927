// SPDX-License-Identifier: Apache-2.0
// otrn.c — the public interface: environments, executables, runs. Modelled time is in time.c.
//
// An environment is one virtual core with its host threads (more cores when a program runs on several devices:
// many.c). Runs in it take turns: a core has one SBUF, one PSUM and one scratch area in HBM, which grows to
// what the largest loaded program needs.
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/now.h"
#include "chip/host/profile.h"
#include "rt/exe.h"

// --- environments --------------------------------------------------------------------------------------

const char *otrn_version(void) { return OTRN_RELEASE; }
int otrn_abi(void) { return OTRN_ABI; }

otrn_status rt_fail(otrn_error *err, const Ctx *ctx) {
    ctx_give(err, &ctx->err);
    return ctx->err.code;
}

otrn_status rt_missing(otrn_error *err, const char *call, const char *what) {
    return ctx_set(err, OTRN_ARGUMENT, NO_PLACE, "%s: %s is NULL", call, what);
}

otrn_status rt_give(void *out, const void *full, size_t bytes, const char *type, otrn_error *err) {
    size_t room = 0;
    if (out)
        memcpy(&room, out, sizeof room);
    if (room <= sizeof room)
        return ctx_set(err, OTRN_ARGUMENT, NO_PLACE, "%s to fill is NULL or its struct_size is not set to sizeof(%s)", type, type);
    memcpy((char *)out + sizeof room, (const char *)full + sizeof room, (room < bytes ? room : bytes) - sizeof room);
    return OTRN_OK;
}

static void env_init(otrn_env *env, const otrn_option *options, size_t count) {
    opt_init(&env->ctx, &env->opts);
    for (size_t i = 0; i < count; i++)
        if (!options[i].name || !options[i].value)
            ctx_fail(&env->ctx, OTRN_ARGUMENT, NO_PLACE, "otrn_open: name or value of option %zu is NULL", i);
    for (size_t i = 0; i < count; i++)
        opt_set(&env->ctx, &env->opts, options[i].name, options[i].value, "call");
    for (int i = 0; i < OPT_COUNT; i++) // the caller's strings may go away
        env->opts.val[i] = arena_strndup(&env->arena, env->opts.val[i], strlen(env->opts.val[i]));
    bool is_instance = instance_apply(&env->ctx, &env->arena, &env->opts, &env->instance);
    // An unknown target is an error now, not at the first program.
    chipfile_load(&env->ctx, &env->arena, env->opts.val[OPT_TARGET], env->opts.val[OPT_CHIPS], &env->chip);
    env->cores = env->chip.cores_per_chip >= 1 ? (uint32_t)env->chip.cores_per_chip : 1;
    env->cores *= is_instance ? env->instance.chips : 1;
    env->lnc = chip_lnc(&env->ctx, &env->opts, &env->chip);
    env->ways = host_ways();
    env->ways.pairs_pay = mm_pairs_pay;
    env->want = host_parse(env->opts.val[OPT_HOST]);
    int level = host_choose(&env->ways, env->want, false);
    if (level < 0)
        ctx_fail(&env->ctx, OTRN_USAGE, NO_PLACE, "this host has no %s", env->opts.val[OPT_HOST]);
    env->pool = pool_make((int)opt_num(&env->opts, OPT_THREADS));
    env->level = (HostLevel)level;
    env->narrow = -1;
    env->core.chip = env->pool ? chip_make(env->pool, env->level) : NULL;
    if (!env->core.chip)
        ctx_fail(&env->ctx, OTRN_NOMEM, NO_PLACE, "no memory for the virtual core");
    env->hosts = env->own_hosts = hosts_make();
    if (!env->hosts)
        ctx_fail(&env->ctx, OTRN_NOMEM, NO_PLACE, "out of memory");
    env->host = (ChipHost){hosts_call, env->hosts};
    chip_set_host(env->core.chip, &env->host);
    chip_set_plan(env->core.chip, chip_plan_of(env->opts.val[OPT_PLAN]));
    chip_set_pulse(env->core.chip, &env->pulse, true);
    const char *seed = env->opts.val[OPT_STOCHASTIC];
    env->stochastic = *seed;
    errno = 0;
    env->round_seed = strtoull(seed, NULL, 10);
    if (strspn(seed, "0123456789") != strlen(seed))
        ctx_fail(&env->ctx, OTRN_USAGE, NO_PLACE, "stochastic-rounding: `%s` is not a whole number", seed);
    if (errno == ERANGE)
        ctx_fail(&env->ctx, OTRN_USAGE, NO_PLACE, "stochastic-rounding: `%s` is more than 18446744073709551615", seed);
}

otrn_status otrn_open(const otrn_option *options, size_t count, otrn_env **out, otrn_error *err) {
    if (!out)
        return rt_missing(err, "otrn_open", "out");
    *out = NULL;
    if (count && !options)
        return rt_missing(err, "otrn_open", "options");
    otrn_env *env = calloc(1, sizeof *env);
    if (!env)
        return ctx_set(err, OTRN_NOMEM, NO_PLACE, "out of memory");
    atomic_init(&env->refs, 1);
    arena_init(&env->arena, &env->ctx);
    rt_spare_init(&env->spare);
    rt_warn_init(&env->warn);
    pthread_mutex_init(&env->turn, NULL);
    pthread_mutex_init(&env->log_turn, NULL);
    jmp_buf here;
    if (CTX_TRY(&env->ctx, here)) {
        env_init(env, options, count);
        *out = env;
        return OTRN_OK;
    }
    otrn_status s = rt_fail(err, &env->ctx);
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

bool core_second(otrn_env *env, Core *c) {
    if (!c->second && (c->second = chip_make(NULL, env->level))) {
        chip_set_host(c->second, &env->host);
        chip_set_plan(c->second, chip_plan_of(env->opts.val[OPT_PLAN]));
        chip_set_pulse(c->second, &env->pulse, false);
        if (c->small_pages)
            chip_small_pages(c->second);
    }
    return c->second != NULL;
}

void core_fini(Core *c) {
    chip_free(c->second);
    chip_free(c->chip);
    scratch_free(c);
}

void otrn_close(otrn_env *env) {
    if (!env || atomic_fetch_sub(&env->refs, 1) > 1)
        return;
    many_free(env->many);
    status_close(env->status);
    rt_writer_free(env->writer);
    rt_spare_fini(&env->spare);
    rt_warn_fini(&env->warn);
    core_fini(&env->core);
    if (env->pool)
        pool_free(env->pool);
    hosts_free(env->own_hosts);
    pthread_mutex_destroy(&env->turn);
    pthread_mutex_destroy(&env->log_turn);
    arena_fini(&env->arena);
    free(env);
}

void otrn_set_log(otrn_env *env, otrn_log_fn *fn, void *arg) {
    if (!env)
        return;
    pthread_mutex_lock(&env->log_turn);
    env->log = fn;
    env->log_arg = arg;
    pthread_mutex_unlock(&env->log_turn);
}

// one message, with its newline
static void env_log(otrn_env *env, const char *text) {
    pthread_mutex_lock(&env->log_turn);
    if (env->log)
        env->log(env->log_arg, text);
    else
        fputs(text, stderr);
    pthread_mutex_unlock(&env->log_turn);
}

void otrn_cache_behind(otrn_env *env) {
    if (env && !env->writer)
        env->writer = rt_writer_make();
}
void otrn_cache_wait(otrn_env *env) { rt_writer_wait(env ? env->writer : NULL); }
int otrn_warning(otrn_env *env, char *out, size_t out_bytes) { return env && rt_warn_take(&env->warn, out, out_bytes); }

uint64_t otrn_hbm_bytes(const otrn_env *env) { return env ? (uint64_t)env->chip.hbm_bytes_per_core * env->lnc : 0; }
const char *otrn_target(const otrn_env *env) { return env ? env->opts.val[OPT_TARGET] : ""; }
uint32_t otrn_devices(const otrn_env *env) { return env ? env->cores / env->lnc : 0; }
uint32_t otrn_device_cores(const otrn_env *env) { return env ? env->lnc : 0; }

// --- executables ---------------------------------------------------------------------------------------

static otrn_type type_of(const ArtValue *v) {
    otrn_type t = {.dtype = v->dtype, .rank = v->rank};
    memcpy(t.dims, v->dims, sizeof t.dims);
    return t;
}

void exe_memory(const Artifact *art, otrn_memory *m) {
    *m = (otrn_memory){.struct_size = sizeof *m};
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

// A slot for one more device: the program is loaded and planned once.
static ExeSlot slot_share(otrn_exe *exe) {
    ExeSlot slot = exe->slots.at[0];
    slot.prog = chip_share(&exe->arena, slot.prog);
    slot.peer = slot.peer ? chip_share(&exe->arena, slot.peer) : NULL;
    return slot;
}

void exe_add_slot(otrn_exe *exe) {
    const Artifact *art = exe->art;
    Pool *pool = exe->env->pool;
    int threads = pool_threads(pool);
    bool by_chance = exe->env->stochastic || art->flags & ART_STOCHASTIC;
    ExeSlot slot = exe->slots.n ? slot_share(exe) : (ExeSlot){.prog = chip_load(&exe->ctx, &exe->arena, art, threads, by_chance, pool)};
    slot.segs = ARENA_NEWN(&exe->arena, uint8_t *, SEG_FIRST_ARG + art->nargs + art->nresults);
    if (artifact_is_shared(art) && !slot.peer) {
        slot.peer = chip_load(&exe->ctx, &exe->arena, art->peer, threads, by_chance, pool);
        slot.turns = chip_takes_turns(slot.prog, slot.peer);
    }
    if (exe->env->narrow < 0 && (chip_prog_narrow(slot.prog) || (slot.peer && chip_prog_narrow(slot.peer))))
        exe->env->narrow = host_choose(&exe->env->ways, exe->env->want, true);
    VEC_PUSH(&exe->arena, &exe->slots, slot);
}

void rt_env_join(otrn_env *env, struct Net *net) { atomic_store(&env->net, net); }

static void exe_init(otrn_exe *exe, RtCompile in) {
    const Options *o = &exe->env->opts;
    RtStats stats = {0};
    in.opts = o;
    in.chip = &exe->env->chip;
    in.writer = exe->env->writer;
    in.warn = &exe->env->warn;
    in.spare = &exe->env->spare;
    in.pool = exe->env->pool;
    in.net = atomic_load(&exe->env->net);
    in.stats = &stats;
    double begin = now_seconds();
    rt_compile(&exe->ctx, &exe->arena, &in, &exe->bytes);
    exe->cached = stats.cached;
    exe->art = artifact_read(&exe->ctx, &exe->arena, in.name, exe->bytes.at, exe->bytes.n, exe->env->pool);
    if (opt_num(o, OPT_VERBOSE) && stats.count)
        env_log(exe->env, arena_printf(&exe->arena, "otrn: %s: %s %s, %u instructions, %.1f ms\n", exe->art->name,
                                       stats.cached     ? "cache hit"
                                       : stats.received ? "compiled by another process"
                                       : *stats.key     ? "cache miss"
                                                        : "cache off",
                                       stats.key, exe->art->ncode,
                                       (now_seconds() - begin) * 1e3));
    const Artifact *art = exe->art;
    ChipFile chip = exe->env->chip;
    if (strcmp(art->target, chip.name))
        chipfile_named(&exe->ctx, &exe->arena, art->target, NULL, o->val[OPT_CHIPS], &chip);
    IsaChip limits = chipfile_isa(&chip);
    artifact_verify_for(&exe->ctx, art, in.name, &limits, exe->env->pool);
    exe_add_slot(exe);
    exe->may_turn = exe_may_turn(art);
    exe->types = ARENA_NEWN(&exe->arena, otrn_type, art->nargs + art->nresults + 1);
    for (uint32_t i = 0; i < art->nargs; i++)
        exe->types[i] = type_of(&art->args[i]);
    for (uint32_t i = 0; i < art->nresults; i++)
        exe->types[art->nargs + i] = type_of(&art->results[i]);
    exe_memory(art, &exe->memory);
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
    atomic_init(&exe->refs, 1);
    atomic_fetch_add(&env->refs, 1);
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
    otrn_status s = rt_fail(err, &exe->ctx);
    otrn_exe_free(exe);
    return s;
}

// What the calls that compile cannot do without.
static otrn_status compile_check(const otrn_env *env, const void *bytes, otrn_exe **out, const char *call, otrn_error *err) {
    if (out)
        *out = NULL;
    return !env ? rt_missing(err, call, "env") : !bytes ? rt_missing(err, call, "the program") : !out ? rt_missing(err, call, "out") : OTRN_OK;
}

otrn_status otrn_compile(otrn_env *env, const void *bytes, size_t size, const char *name, otrn_exe **out,
                         otrn_error *err) {
    otrn_status s = compile_check(env, bytes, out, "otrn_compile", err);
    return s ? s : exe_compile(env, &(RtCompile){.name = name ? name : "", .bytes = bytes, .size = size}, out, err);
}

otrn_status otrn_compile_for(otrn_env *env, const void *bytes, size_t size, const char *name,
                             const otrn_type *types, const void *const *values, size_t count,
                             otrn_exe **out, otrn_error *err) {
    otrn_status s = compile_check(env, bytes, out, "otrn_compile_for", err);
    if (s)
        return s;
    if (count && !types)
        return rt_missing(err, "otrn_compile_for", "types");
    return exe_compile(env,
                       &(RtCompile){.name = name ? name : "", .bytes = bytes, .size = size, .types = types,
                                    .values = values, .count = count},
                       out, err);
}

otrn_status otrn_compile_file(otrn_env *env, const char *path, otrn_exe **out, otrn_error *err) {
    otrn_status bad = compile_check(env, path, out, "otrn_compile_file", err);
    if (bad)
        return bad;
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
    otrn_status s = rt_fail(err, &exe->ctx);
    otrn_exe_free(exe);
    return s;
}

void otrn_exe_free(otrn_exe *exe) {
    if (!exe || atomic_fetch_sub(&exe->refs, 1) > 1)
        return;
    hosts_release(exe);
    otrn_env *env = exe->env;
    arena_fini(&exe->arena);
    free(exe);
    otrn_close(env);
}

const void *otrn_exe_bytes(const otrn_exe *exe, size_t *size) {
    if (size)
        *size = exe ? exe->bytes.n : 0;
    return exe ? exe->bytes.at : NULL;
}

const char *otrn_exe_name(const otrn_exe *exe) { return exe ? exe->art->name : ""; }
size_t otrn_exe_num_args(const otrn_exe *exe) { return exe ? exe->art->nargs : 0; }
size_t otrn_exe_num_results(const otrn_exe *exe) { return exe ? exe->art->nresults : 0; }
const void *rt_exe_program(const otrn_exe *exe, size_t *size) {
    *size = (size_t)exe->art->program_bytes;
    return exe->art->program;
}

uint32_t otrn_exe_partitions(const otrn_exe *exe) {
    return exe && exe->art->partitions ? exe->art->partitions : 1;
}

// Facts about an argument or a result; for one that is not there those of nothing.
static const ArtValue no_value = {.name = "", .alias = -1};
static const ArtValue *arg_of(const otrn_exe *exe, size_t i) {
    return i < otrn_exe_num_args(exe) ? &exe->art->args[i] : &no_value;
}
static const ArtValue *result_of(const otrn_exe *exe, size_t i) {
    return i < otrn_exe_num_results(exe) ? &exe->art->results[i] : &no_value;
}
const otrn_type *otrn_exe_arg_type(const otrn_exe *exe, size_t i) {
    return i < otrn_exe_num_args(exe) ? &exe->types[i] : NULL;
}
const otrn_type *otrn_exe_result_type(const otrn_exe *exe, size_t i) {
    return i < otrn_exe_num_results(exe) ? &exe->types[exe->art->nargs + i] : NULL;
}
const char *otrn_exe_arg_name(const otrn_exe *exe, size_t i) { return arg_of(exe, i)->name; }
const char *otrn_exe_result_name(const otrn_exe *exe, size_t i) { return result_of(exe, i)->name; }
int64_t otrn_exe_result_alias(const otrn_exe *exe, size_t i) { return result_of(exe, i)->alias; }
int otrn_exe_arg_donated(const otrn_exe *exe, size_t i) { return arg_of(exe, i)->donated; }
static const char *sharding_of(const ArtValue *v) { return v->sharding ? v->sharding : ""; }
const char *otrn_exe_arg_sharding(const otrn_exe *exe, size_t i) { return sharding_of(arg_of(exe, i)); }
const char *otrn_exe_result_sharding(const otrn_exe *exe, size_t i) { return sharding_of(result_of(exe, i)); }
int otrn_exe_arg_pinned(const otrn_exe *exe, size_t i) { return arg_of(exe, i)->memory == ART_PINNED_HOST; }
int otrn_exe_result_pinned(const otrn_exe *exe, size_t i) { return result_of(exe, i)->memory == ART_PINNED_HOST; }
int otrn_exe_calls_host(const otrn_exe *exe) { return exe && artifact_calls_host(exe->art); }
otrn_status otrn_exe_memory(const otrn_exe *exe, otrn_memory *out, otrn_error *err) {
    return exe ? rt_give(out, &exe->memory, sizeof exe->memory, "otrn_memory", err) : rt_missing(err, "otrn_exe_memory", "exe");
}
int otrn_exe_cached(const otrn_exe *exe) { return exe && exe->cached; }

// --- running -------------------------------------------------------------------------------------------

void exe_bind(const otrn_exe *exe, const ExeSlot *slot, const Core *core, const otrn_buffer *args,
              const otrn_buffer *results) {
    const Artifact *art = exe->art;
    slot->segs[SEG_SCRATCH] = core->scratch;
    slot->segs[SEG_CONST] = (uint8_t *)art->consts;
    for (uint32_t i = 0; i < art->nargs; i++)
        slot->segs[SEG_FIRST_ARG + i] = args[i].data;
    for (uint32_t i = 0; i < art->nresults; i++)
        slot->segs[SEG_FIRST_ARG + art->nargs + i] = results[i].data;
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

void exe_watch_fini(ExeWatch *w, otrn_env *env) {
    jmp_buf here;
    if (w->notes.n && CTX_TRY(&w->ctx, here))
        env_log(env, buf_cstr(&w->notes));
    arena_fini(&w->arena);
}

bool exe_watches(const otrn_env *env) { return watch_of(&env->opts) != 0; }

static HostLevel level_of(const otrn_env *env, const ChipProg *prog) {
    return chip_prog_narrow(prog) ? (HostLevel)env->narrow : env->level;
}

otrn_status exe_run(const otrn_env *env, const Core *core, ChipProg *prog, uint8_t *const *segs, uint32_t *pc,
                    char *why, size_t why_bytes, ExeWatch *w) {
    unsigned watch = watch_of(&env->opts);
    bool by_chance = env->stochastic || chip_prog_artifact(prog)->flags & ART_STOCHASTIC;
    chip_round(core->chip, by_chance, env->round_seed);
    chip_set_level(core->chip, level_of(env, prog));
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

otrn_status exe_run_turns(const otrn_env *env, const Core *core, const ExeSlot *slot, uint32_t *failed, uint32_t *pc,
                          char *why, size_t why_bytes) {
    Chip *const chips[] = {core->chip, core->second};
    ChipProg *const progs[] = {slot->prog, slot->peer};
    bool by_chance = env->stochastic || chip_prog_artifact(slot->prog)->flags & ART_STOCHASTIC;
    for (int k = 0; k < 2; k++) {
        chip_set_level(chips[k], level_of(env, progs[k]));
        chip_round(chips[k], by_chance, env->round_seed);
    }
    return chip_run_pair(chips, progs, slot->segs, failed, pc, why, why_bytes);
}

static otrn_status values_check(const ArtValue *want, uint32_t n, const otrn_buffer *given, size_t count, const char *what,
                                otrn_error *err) {
    if (count != n)
        return ctx_set(err, OTRN_ARGUMENT, NO_PLACE, "the program has %u %s%s, %zu were given", n, what, n == 1 ? "" : "s", count);
    if (n && !given)
        return ctx_set(err, OTRN_ARGUMENT, NO_PLACE, "the %ss are NULL, the program has %u", what, n);
    for (uint32_t i = 0; i < n; i++) {
        const char *open = *want[i].name ? " (" : "", *close = *want[i].name ? ")" : "";
        if (given[i].bytes != want[i].bytes)
            return ctx_set(err, OTRN_ARGUMENT, NO_PLACE, "%s %u%s%s%s has %llu bytes, its memory %zu", what, i, open,
                           want[i].name, close, (unsigned long long)want[i].bytes, given[i].bytes);
        if (want[i].bytes && !given[i].data)
            return ctx_set(err, OTRN_ARGUMENT, NO_PLACE, "the memory of %s %u%s%s%s is NULL", what, i, open, want[i].name, close);
    }
    return OTRN_OK;
}

otrn_status exe_check(const otrn_exe *exe, const otrn_buffer *args, size_t num_args, const otrn_buffer *results,
                      size_t num_results, otrn_error *err) {
    otrn_status s = values_check(exe->art->args, exe->art->nargs, args, num_args, "argument", err);
    return s ? s : values_check(exe->art->results, exe->art->nresults, results, num_results, "result", err);
}

// Tells where the host's time went.
static void profile_log(otrn_env *env, const ChipProfile *spent) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return;
    profile_print(spent, env->level, env->pool, out);
    fclose(out);
    env_log(env, text);
    free(text);
}

void opentrn_draws_on(otrn_env *env) { env->draws_on = true; }

otrn_status otrn_execute(otrn_exe *exe, const otrn_buffer *args, size_t num_args, const otrn_buffer *results,
                         size_t num_results, otrn_error *err) {
    if (!exe)
        return rt_missing(err, "otrn_execute", "exe");
    if (exe->art->partitions > 1) // one device's part alone would pass for the result
        return ctx_set(err, OTRN_USAGE, NO_PLACE, "the program is that of %u devices, and this is a run on one: JAX runs it on a mesh, C with otrn_execute_many",
                       exe->art->partitions);
    otrn_status s = exe_check(exe, args, num_args, results, num_results, err);
    const otrn_buffer *const all_args[] = {args}, *const all_results[] = {results};
    s = s ? s : exe_apart(exe, 1, all_args, all_results, err);
    if (s)
        return s;
    otrn_env *env = exe->env;
    const Artifact *art = exe->art;
    if (otrn_exe_check_host(exe, err))
        return OTRN_USAGE;
    const ExeSlot *slot = &exe->slots.at[0];
    if (slot->peer && (!slot->turns || exe_watches(env))) // two cores at once
        return many_run(env, &(ManyRun){.grid = {1, 1}, .exes = &exe, .args = all_args, .results = all_results}, err);
    pthread_mutex_lock(&env->turn);
    if (!core_reserve(&env->core, art->scratch_bytes) || (slot->peer && !core_second(env, &env->core))) {
        pthread_mutex_unlock(&env->turn);
        return ctx_set(err, OTRN_NOMEM, NO_PLACE, "no host memory for %llu bytes of HBM scratch",
                       (unsigned long long)art->scratch_bytes);
    }
    exe_bind(exe, slot, &env->core, args, results);
    uint32_t pc = 0, failed = 0;
    char why[512] = "";
    bool profile = opt_on(&env->opts, OPT_PROFILE);
    ChipProfile spent = {0};
    Chip *chips[] = {env->core.chip, slot->peer ? env->core.second : NULL};
    for (int k = 0; k < 2 && chips[k]; k++)
        chip_set_profile(chips[k], profile ? &spent : NULL);
    ExeWatch watch;
    bool watched = exe_watches(env);
    if (watched)
        exe_watch_init(&watch, NULL);
    if (slot->peer)
        chip_attach(env->core.second, env->pool, NULL);
    for (int k = 0; k < 2 && chips[k]; k++)
        chip_draw_from(chips[k], env->draws);
    RunGuard guard;
    guard_begin(&guard, exe, 1);
    s = slot->peer ? exe_run_turns(env, &env->core, slot, &failed, &pc, why, sizeof why)
                   : exe_run(env, &env->core, slot->prog, slot->segs, &pc, why, sizeof why, &watch);
    guard_end(&guard);
    if (watched)
        exe_watch_fini(&watch, env);
    for (int k = 0; k < 2 && chips[k]; k++) {
        chip_set_profile(chips[k], NULL);
        if (env->draws_on && chip_draws(chips[k]) > env->draws)
            env->draws = chip_draws(chips[k]);
        chip_draw_from(chips[k], 0);
    }
    if (profile)
        profile_log(env, &spent);
    pthread_mutex_unlock(&env->turn);
    if (s == OTRN_OK)
        return s;
    if (slot->peer)
        exe_error(failed ? art->peer : art, s, pc, err, "core %u: %s", failed, why);
    else
        exe_error(art, s, pc, err, "%s", why);
    guard_hint(env, s, err);
    return s;
}
