// SPDX-License-Identifier: Apache-2.0
// many.c — one program on several devices: a core, or two of a logical one, and a host thread for each, and what connects them.
//
// Cores are numbered through: those of device 0, of device 1 and so on. Number 0 is the caller's thread on the environment's own
// core. The others are made when a run first needs them and stay, asleep between runs. When there are more host threads than cores
// these share the environment's pool: whichever asks first gets its help (base/pool.c). The two cores of a device have one memory; they
// run by turns on one thread, which spares the host their meetings, unless they exchange data there or are watched.
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "rt/exe.h"

// Helpers whose chips have large pages, which save a run a few percent. A program uses a few KB of each partition, and large pages of SBUF
// are all touched then, three times what is used: with 64 devices clearing them took longer than four steps.
#define LARGE_PAGES_MAX 7

typedef struct Job { // what one core does in a run
    otrn_exe *exe;
    const ExeSlot *slot; // of its device
    ChipProg *prog;      // of the slot: the one of this core; NULL: it has nothing to do
    bool turns;          // both cores' programs, by turns
    uint32_t rank;       // of its device
    CommRank *comm;
    otrn_status status;
    uint32_t core, pc;   // where it failed; core: of those by turns
    char why[COMM_WHY_BYTES];
    ExeWatch watch;
} Job;

typedef struct Helper { // core 1 and up
    Many *many;
    uint32_t number;
    pthread_t thread;
    Core core;
} Helper;

struct Many {
    otrn_env *env;
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    uint64_t run;    // number of the run; helpers wait for the next
    uint32_t active; // cores in it
    uint32_t left;   // helpers still at work
    bool stop;
    uint32_t nhelpers;
    Helper *helpers[COMM_SEATS_MAX];
    Job *jobs; // of the active cores
    uint32_t jobs_cap;
    Comm *comm;
    Grid grid;      // of comm
    uint32_t cores; // of a device
};

// --- cores -------------------------------------------------------------------------------------

static Core *core_of(otrn_env *env, uint32_t number) {
    return number ? &env->many->helpers[number - 1]->core : &env->core;
}

static void job_run(otrn_env *env, uint32_t number) {
    Job *j = &env->many->jobs[number];
    if (!j->prog)
        j->status = OTRN_OK;
    else if (j->turns)
        j->status = exe_run_turns(env, core_of(env, number), j->slot, &j->core, &j->pc, j->why, sizeof j->why);
    else
        j->status = exe_run(env, core_of(env, number), j->prog, j->slot->segs, &j->pc, j->why, sizeof j->why, &j->watch);
    if (j->status == OTRN_OK)
        comm_end(j->comm);
    else
        comm_fail(j->comm, j->why);
    if (j->watch.pair)
        check_pair_end(j->watch.pair, (int)number & 1);
}

static void *helper_main(void *arg) {
    Helper *h = arg;
    Many *m = h->many;
    uint64_t seen = 0;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        while (!m->stop && (m->run == seen || h->number >= m->active))
            pthread_cond_wait(&m->begin, &m->lock);
        if (m->stop)
            break;
        seen = m->run;
        pthread_mutex_unlock(&m->lock);
        job_run(m->env, h->number);
        pthread_mutex_lock(&m->lock);
        if (--m->left == 0)
            pthread_cond_signal(&m->end);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

// Signals of the program that loaded us are for its own threads.
static bool thread_make(Helper *h) {
    sigset_t all, old;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    sigdelset(&all, SIGPROF);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&h->thread, NULL, helper_main, h) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

static bool helper_add(Many *m) {
    Helper *h = calloc(1, sizeof *h);
    if (!h)
        return false;
    *h = (Helper){.many = m, .number = m->nhelpers + 1};
    h->core.small_pages = m->nhelpers >= LARGE_PAGES_MAX;
    h->core.chip = chip_make(NULL, m->env->level);
    if (h->core.chip) {
        if (h->core.small_pages)
            chip_small_pages(h->core.chip);
        chip_set_host(h->core.chip, &m->env->host);
        chip_set_plan(h->core.chip, chip_plan_of(m->env->opts.val[OPT_PLAN]));
        chip_set_pulse(h->core.chip, &m->env->pulse, false);
    }
    if (!h->core.chip || !thread_make(h)) {
        core_fini(&h->core);
        free(h);
        return false;
    }
    m->helpers[m->nhelpers++] = h;
    return true;
}

static Many *many_make(otrn_env *env) {
    Many *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->env = env;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->begin, NULL);
    pthread_cond_init(&m->end, NULL);
    return m;
}

void many_free(Many *m) {
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_broadcast(&m->begin);
    pthread_mutex_unlock(&m->lock);
    for (uint32_t i = 0; i < m->nhelpers; i++) {
        pthread_join(m->helpers[i]->thread, NULL);
        core_fini(&m->helpers[i]->core);
        free(m->helpers[i]);
    }
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->begin);
    pthread_cond_destroy(&m->end);
    comm_free(m->comm);
    free(m->jobs);
    free(m);
}

// Everything that may be missing for a run, from the host. False: it has no memory or no threads
// left.
static bool many_reserve(otrn_env *env, Grid grid, uint32_t devices, uint32_t cores) {
    uint32_t n = devices * cores;
    if (!env->many && !(env->many = many_make(env)))
        return false;
    Many *m = env->many;
    while (m->nhelpers + 1 < n)
        if (!helper_add(m))
            return false;
    if (m->jobs_cap < n) {
        free(m->jobs);
        m->jobs = calloc(n, sizeof *m->jobs);
        m->jobs_cap = m->jobs ? n : 0;
    }
    if (m->comm && (m->grid.replicas != grid.replicas || m->grid.partitions != grid.partitions || m->cores != cores)) {
        comm_free(m->comm);
        m->comm = NULL;
    }
    if (!m->comm)
        m->comm = comm_make(grid, cores);
    else
        comm_reset(m->comm);
    m->grid = grid;
    m->cores = cores;
    return m->jobs && m->comm;
}

// --- a run -------------------------------------------------------------------------------------

// One slot of its program for every device.
static otrn_status slots_take(otrn_exe *const *exes, uint32_t n, otrn_error *err) {
    for (uint32_t r = 0; r < n; r++)
        exes[r]->slots_taken = 0;
    for (uint32_t r = 0; r < n; r++) {
        otrn_exe *exe = exes[r];
        jmp_buf here;
        if (exe->slots_taken++ < exe->slots.n)
            continue;
        if (CTX_TRY(&exe->ctx, here)) {
            exe_add_slot(exe);
            exe->ctx.on_fail = NULL;
            continue;
        }
        exe->ctx.on_fail = NULL;
        return rt_fail(err, &exe->ctx);
    }
    return OTRN_OK;
}

static otrn_status no_room(uint32_t devices, otrn_error *err) {
    return ctx_set(err, OTRN_NOMEM, NO_PLACE, "the host has no memory or threads for %u devices", devices);
}

// Those that share this host's CPUs, in whatever process.
static uint32_t devices_near(const Many *m, const RtSpread *spread) {
    uint32_t near = 0;
    for (uint32_t r = 0; r < grid_ranks(m->grid); r++)
        near += !spread || net_is_near(spread->net, spread->process[r]);
    return near;
}

static otrn_status jobs_make(otrn_env *env, uint32_t devices, const RtSpread *spread, otrn_exe *const *exes,
                             const otrn_buffer *const *args, const otrn_buffer *const *results,
                             otrn_error *err) {
    Many *m = env->many;
    const uint32_t *ranks = spread ? spread->ranks : NULL;
    Pool *pool = devices_near(m, spread) * m->cores < (uint32_t)pool_threads(env->pool) ? env->pool : NULL;
    for (uint32_t d = 0; d < devices; d++) {
        otrn_exe *exe = exes[d];
        const ExeSlot *slot = &exe->slots.at[--exe->slots_taken];
        Core *memory = core_of(env, d * m->cores);
        if (!core_reserve(memory, exe->art->scratch_bytes))
            return ctx_set(err, OTRN_NOMEM, NO_PLACE,
                           "no host memory for %llu bytes of HBM scratch",
                           (unsigned long long)exe->art->scratch_bytes);
        bool turns = slot->peer && m->cores == 1;
        if (turns && !core_second(env, memory))
            return no_room(devices, err);
        exe_bind(exe, slot, memory, args[d], results[d]);
        for (uint32_t k = 0; k < m->cores; k++) {
            uint32_t number = d * m->cores + k, rank = ranks ? ranks[d] : d;
            m->jobs[number] = (Job){.exe = exe, .slot = slot, .prog = k ? slot->peer : slot->prog, .turns = turns,
                                    .rank = rank, .comm = comm_rank(m->comm, rank * m->cores + k)};
            chip_attach(core_of(env, number)->chip, pool, m->jobs[number].comm);
        }
        if (turns)
            chip_attach(memory->second, pool, m->jobs[d].comm);
    }
    return OTRN_OK;
}

static void jobs_run(otrn_env *env, uint32_t n) {
    Many *m = env->many;
    pthread_mutex_lock(&m->lock);
    m->run++;
    m->active = n;
    m->left = n - 1;
    pthread_cond_broadcast(&m->begin);
    pthread_mutex_unlock(&m->lock);
    job_run(env, 0);
    pthread_mutex_lock(&m->lock);
    while (m->left)
        pthread_cond_wait(&m->end, &m->lock);
    pthread_mutex_unlock(&m->lock);
    chip_attach(env->core.chip, env->pool, NULL);
}

// The watches of a pair look at each other's memory until both cores have ended. False: no memory for what they share.
static bool jobs_run_watched(otrn_env *env, uint32_t n) {
    Many *m = env->many;
    bool paired = m->cores == 2 && exe_watches(env);
    CheckPair *pairs = paired ? calloc(n / 2, sizeof *pairs) : NULL;
    if (paired && !pairs)
        return false;
    for (uint32_t i = 0; paired && i < n / 2; i++)
        check_pair_init(&pairs[i]);
    for (uint32_t i = 0; i < n; i++)
        exe_watch_init(&m->jobs[i].watch, paired ? &pairs[i / 2] : NULL);
    jobs_run(env, n);
    for (uint32_t i = 0; i < n; i++)
        exe_watch_fini(&m->jobs[i].watch, env);
    for (uint32_t i = 0; paired && i < n / 2; i++)
        check_pair_fini(&pairs[i]);
    free(pairs);
    return true;
}

// The first failure, with the core's place where there are several.
static otrn_status failure(const Many *m, uint32_t seat, otrn_error *err) {
    uint32_t number = 0;
    while (m->jobs[number].rank * m->cores + number % m->cores != seat)
        number++;
    const Job *j = &m->jobs[number];
    const Artifact *art = chip_prog_artifact(j->turns && j->core ? j->slot->peer : j->prog);
    uint32_t device = j->rank, core = j->turns ? j->core : number % m->cores;
    if (m->cores == 1 && !j->turns)
        return exe_error(art, j->status, j->pc, err, "device %u: %s", device, j->why);
    if (grid_ranks(m->grid) == 1)
        return exe_error(art, j->status, j->pc, err, "core %u: %s", core, j->why);
    return exe_error(art, j->status, j->pc, err, "device %u, core %u: %s", device, core, j->why);
}

// --- over several processes --------------------------------------------------------------------

// What programs compute, less where in the source they come from and what their callbacks are called: the checksums of code
// and constants, the size of the kernels, which name both.
static uint64_t program_print(const otrn_exe *exe) {
    const uint8_t *bytes = exe->bytes.at;
    uint32_t sections = le_load32(bytes + 12);
    uint64_t print = 0;
    for (const uint8_t *at = bytes + 32; sections--; at += 24) {
        if (!memcmp(at, "CODE", 4) || !memcmp(at, "DATA", 4))
            print = hash64(print, at, 8);
        if (!memcmp(at, "KERN", 4))
            print = hash64(print, at + 16, 8);
    }
    return print;
}

// The first collective with a line in the source, which is where who is gone would be missed.
static uint32_t first_meeting(const Artifact *art) {
    for (uint32_t pc = 0; pc < art->ncode; pc++)
        if (artifact_shape(art, pc)->op == ISA_COLLECTIVE && *art->locs[art->code_loc[pc]].file)
            return pc;
    return 0;
}

static otrn_status jobs_run_spread(otrn_env *env, uint32_t n, const otrn_exe *exe, const RtSpread *spread, otrn_error *err) {
    Many *m = env->many;
    char why[NET_WHY_BYTES];
    // Partitions are of one program. Replicas may have each its own, as torch_xla traces them: they only share collectives, and
    // each of those says what it is when it meets another.
    bool own = spread->loose || m->grid.partitions == 1;
    NetLaunch launch = {.set = spread->set, .program = own ? 0 : program_print(exe), .loose = spread->loose != NULL,
                        .stuck = comm_stuck, .arg = m->comm};
    CommWorld world = {.net = spread->net, .launch = &launch, .process = spread->process};
    snprintf(launch.name, sizeof launch.name, "%s", exe->art->name);
    for (uint32_t r = 0; r < grid_ranks(m->grid); r++)
        launch.takes_part[spread->process[r]] = !spread->loose || spread->loose[spread->process[r]];
    comm_spread(m->comm, &world);
    if (!net_launch_begin(spread->net, &launch, why, sizeof why))
        return exe_error(exe->art, OTRN_CHECK, first_meeting(exe->art), err, "%s", why);
    bool ok = jobs_run_watched(env, n);
    uint32_t failed = comm_failed(m->comm);
    net_launch_end(spread->net, &launch, !ok ? "no memory" : failed != COMM_NONE ? comm_why(comm_rank(m->comm, failed)) : NULL);
    return ok ? OTRN_OK : no_room(n, err);
}

// --- all of it ---------------------------------------------------------------------------------

static otrn_status run_locked(otrn_env *env, const ManyRun *run, otrn_error *err) {
    const RtSpread *spread = run->spread;
    uint32_t devices = spread ? spread->nhere : grid_ranks(run->grid), cores = 1;
    for (uint32_t d = 0; d < devices; d++) {
        const ExeSlot *slot = &run->exes[d]->slots.at[0];
        cores = slot->peer && (!slot->turns || exe_watches(env)) ? 2 : cores;
    }
    if (!many_reserve(env, run->grid, devices, cores))
        return no_room(devices, err);
    otrn_status s = slots_take(run->exes, devices, err);
    if (s == OTRN_OK)
        s = jobs_make(env, devices, spread, run->exes, run->args, run->results, err);
    Comm *comm = env->many->comm;
    for (uint32_t i = 0; i < run->nfeeds && s == OTRN_OK; i++)
        comm_send(comm_rank(comm, 0), COMM_INFEED, COMM_ANY, run->feeds[i].bufs, run->feeds[i].n);
    if (s == OTRN_OK && spread)
        s = jobs_run_spread(env, devices * cores, run->exes[0], spread, err);
    else if (s == OTRN_OK && !jobs_run_watched(env, devices * cores))
        s = no_room(devices, err);
    if (s != OTRN_OK) {
        chip_attach(env->core.chip, env->pool, NULL);
        return s;
    }
    uint32_t failed = comm_failed(comm);
    for (uint32_t d = 0; d < devices; d++)
        run->exes[d]->replicas = run->grid.replicas;
    return failed == COMM_NONE ? OTRN_OK : failure(env->many, failed, err);
}

otrn_status many_run(otrn_env *env, const ManyRun *run, otrn_error *err) {
    for (uint32_t d = 0; d < (run->spread ? run->spread->nhere : grid_ranks(run->grid)); d++)
        if (otrn_exe_check_host(run->exes[d], err))
            return OTRN_USAGE;
    pthread_mutex_lock(&env->turn);
    RunGuard guard;
    guard_begin(&guard, run->exes[0], run->spread ? run->spread->nhere : grid_ranks(run->grid));
    otrn_status s = run_locked(env, run, err);
    guard_end(&guard);
    guard_hint(env, s, err);
    pthread_mutex_unlock(&env->turn);
    return s;
}

_Static_assert(OTRN_MAX_DEVICES == COMM_RANKS_MAX, "one limit, told twice");

// The same program on each of n devices, whose buffers are checked first.
static otrn_status execute(otrn_exe *exe, ManyRun *run, uint32_t n, size_t num_args, size_t num_results, otrn_error *err) {
    otrn_exe *exes[COMM_RANKS_MAX];
    for (uint32_t r = 0; r < n; r++) {
        otrn_error why = OTRN_ERROR_INIT;
        otrn_status s = exe_check(exe, run->args[r], num_args, run->results[r], num_results, &why);
        if (s)
            return ctx_set(err, s, NO_PLACE, "device %u: %s", r, why.text);
        exes[r] = exe;
    }
    bool apart = !run->spread || !run->spread->in_place;
    otrn_status s = apart ? exe_apart(exe, n, run->args, run->results, err) : OTRN_OK;
    if (s)
        return s;
    run->exes = exes;
    return many_run(exe->env, run, err);
}

otrn_status otrn_execute_many(otrn_exe *exe, uint32_t replicas, uint32_t partitions,
                              const otrn_buffer *const *args, size_t num_args, const otrn_buffer *const *results,
                              size_t num_results, otrn_error *err) {
    if (!exe)
        return rt_missing(err, "otrn_execute_many", "exe");
    if (!grid_ok(replicas, partitions))
        return ctx_set(err, OTRN_USAGE, NO_PLACE,
                       "%u x %u devices: there can be 1 to OTRN_MAX_DEVICES (%d)", replicas,
                       partitions, OTRN_MAX_DEVICES);
    if (!args || !results)
        return rt_missing(err, "otrn_execute_many", args ? "results" : "args");
    ManyRun run = {.grid = {replicas, partitions}, .args = args, .results = results};
    return execute(exe, &run, replicas * partitions, num_args, num_results, err);
}

otrn_status rt_execute_spread(otrn_exe *exe, uint32_t replicas, uint32_t partitions, const RtSpread *spread,
                              const otrn_buffer *const *args, size_t num_args, const otrn_buffer *const *results,
                              size_t num_results, otrn_error *err) {
    assert(grid_ok(replicas, partitions) && spread->nhere);
    ManyRun run = {.grid = {replicas, partitions}, .spread = spread, .args = args, .results = results};
    return execute(exe, &run, spread->nhere, num_args, num_results, err);
}
