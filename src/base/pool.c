// SPDX-License-Identifier: Apache-2.0
// pool.c — workers that join an open job if they are awake, and never hold one up if they are not.
//
// One 32-bit word tells everything a worker must know:
//
//   31 ........... 10 | 9    | 8 ........... 0
//   job number        | open | workers inside
//
//   1. The job's fields are written while the word is closed and no worker is inside, then the word
//      is opened under a new number. They are read only by threads inside.
//   2. A worker enters by raising the count of an open word (compare and swap), takes chunks by an
//      atomic counter until none is left, and leaves by lowering the count.
//   3. The caller takes chunks too, closes the word when none is left, and waits until the count is
//      zero. A worker that slept through the job finds it closed: nobody waits for a wake-up.
//   4. The word is also what workers sleep on (futex), so a job opened between a worker's last look
//      and its sleep keeps it awake.
//
// A caller that finds the pool taken (a task calling again, or a second thread) runs its range
// itself. A forked child has no workers: a page that the kernel clears on fork tells it so.
#define _GNU_SOURCE // sched_getaffinity
#include "base/pool.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/host.h"
#include "base/now.h"
#include "base/pulse.h"

#define POOL_MAX_THREADS 256
#define POOL_SPIN_NS                                                                               \
    100000                // a wake-up costs 27 to 41 us on virtual machines: spin longer than that
#define POOL_SPIN_STEP 64 // pauses between two looks at the clock
#define POOL_CHUNKS 4     // chunks per thread when the grain allows: evens out unequal cores
#define ALONE_PIECES 64 // of a job on one thread, between which it may end

#define WORD_INSIDE 0x1ffu
#define WORD_OPEN 0x200u
#define WORD_JOB 0x400u // one job number

struct Pool {
    _Alignas(64) _Atomic uint32_t word;
    _Alignas(64) _Atomic size_t next; // chunk to take
    _Alignas(64) _Atomic bool taken;  // a caller owns the job fields
    _Atomic uint32_t sleepers;
    _Atomic bool stop;
    PoolFn *fn; // the job: fields of rule 1
    void *arg;
    size_t count, chunk, chunks;
    int threads;        // with the caller
    Pulse *pulse;       // of the job: what the caller executes for
    int spinners;       // workers that may spin: the CPUs left beside the caller
    _Atomic int *alive; // in a page of its own, reads zero in a forked child; NULL: ask the pid
    pid_t pid;
    _Atomic int next_worker; // numbers handed to starting workers
    pthread_t worker[POOL_MAX_THREADS];
};

int cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static void take_chunks(Pool *p) {
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (i >= p->chunks)
            return;
        size_t begin = i * p->chunk;
        if (!pulse_stops(p->pulse)) // else nobody wants the results
            p->fn(p->arg, begin, i + 1 == p->chunks ? p->count : begin + p->chunk);
    }
}

// Enters the job that `word` shows, works, leaves. False when the word has changed meanwhile.
static bool worker_join(Pool *p, uint32_t word) {
    if (!atomic_compare_exchange_strong_explicit(&p->word, &word, word + 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    pulse_here = p->pulse;
    take_chunks(p);
    pulse_here = NULL;
    atomic_fetch_sub_explicit(&p->word, 1, memory_order_release);
    return true;
}

static void worker_sleep(Pool *p, uint32_t word) {
    atomic_fetch_add(&p->sleepers, 1);
    syscall(SYS_futex, &p->word, FUTEX_WAIT_PRIVATE, word, NULL, NULL, 0);
    atomic_fetch_sub(&p->sleepers, 1);
}

static void *worker_main(void *arg) {
    Pool *p = arg;
    bool spins = atomic_fetch_add(&p->next_worker, 1) < p->spinners;
    host_fp_begin(HOST_FP_IEEE); // a thread inherits its maker's mode
    uint32_t done = UINT32_MAX;  // number of the last job joined
    int64_t idle_since = now_ns();
    for (unsigned step = 1;; step++) {
        uint32_t word = atomic_load(&p->word);
        if (atomic_load(&p->stop))
            return NULL;
        if ((word & WORD_OPEN) && word / WORD_JOB != done) {
            if (worker_join(p, word)) {
                done = word / WORD_JOB;
                idle_since = now_ns();
            }
            continue;
        }
        if (!spins || (step % POOL_SPIN_STEP == 0 && now_ns() - idle_since > POOL_SPIN_NS)) {
            worker_sleep(p, word);
            idle_since = now_ns();
            continue;
        }
        cpu_pause();
    }
}

static void pool_wake(Pool *p) {
    // Sequentially consistent against worker_sleep: either the sleeper is counted here or the futex
    // call sees the new word.
    if (atomic_load(&p->sleepers))
        syscall(SYS_futex, &p->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static bool pool_alive(const Pool *p) {
    return p->alive ? atomic_load_explicit(p->alive, memory_order_relaxed) : getpid() == p->pid;
}

static void alive_page_make(Pool *p) {
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, bytes, MADV_WIPEONFORK)) {
        munmap(page, bytes);
        return;
    }
    p->alive = page;
    atomic_store(p->alive, 1);
}

// Signals of the program that loaded us are not for the workers to handle, except those that a
// thread brings on itself and the profiler's.
static void workers_sigmask(sigset_t *mask) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
    sigfillset(mask);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(mask, own[i]);
}

Pool *pool_make(int threads) {
    int cpus = cpu_count();
    if (threads <= 0)
        threads = cpus;
    if (threads > POOL_MAX_THREADS)
        threads = POOL_MAX_THREADS;
    Pool *p = aligned_alloc(64, (sizeof(Pool) + 63) / 64 * 64);
    if (!p)
        return NULL;
    *p = (Pool){.threads = 1, .spinners = cpus - 1, .pid = getpid()};
    if (threads == 1)
        return p;
    alive_page_make(p);
    sigset_t mask, old;
    workers_sigmask(&mask);
    pthread_sigmask(SIG_SETMASK, &mask, &old);
    while (p->threads < threads) { // fewer threads than asked for is slower, not wrong
        if (pthread_create(&p->worker[p->threads - 1], NULL, worker_main, p))
            break;
        p->threads++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return p;
}

void pool_free(Pool *p) {
    if (!p)
        return;
    if (pool_alive(p)) {
        assert(!atomic_load(&p->taken));
        atomic_store(&p->stop, true);
        atomic_fetch_add(&p->word, WORD_JOB);
        pool_wake(p);
        for (int i = 0; i + 1 < p->threads; i++)
            pthread_join(p->worker[i], NULL);
    }
    if (p->alive)
        munmap((void *)p->alive, (size_t)sysconf(_SC_PAGESIZE));
    free(p);
}

int pool_threads(const Pool *p) {
    return p ? p->threads : 1;
}

// Rule 3: shut the door, then wait for those inside. A worker that lost its CPU gets ours.
static void job_close(Pool *p) {
    atomic_fetch_and_explicit(&p->word, ~WORD_OPEN, memory_order_relaxed);
    for (unsigned spins = 0; atomic_load_explicit(&p->word, memory_order_acquire) & WORD_INSIDE;
         spins++) {
        if (spins < 10000)
            cpu_pause();
        else
            sched_yield();
    }
}

// By the caller alone: in pieces where somebody may want an end.
static void run_alone(size_t count, size_t grain, PoolFn *fn, void *arg) {
    size_t step = pulse_here ? (count / grain / ALONE_PIECES + 1) * grain : count;
    for (size_t begin = 0; begin < count && !pulse_stops(pulse_here); begin += step)
        fn(arg, begin, count - begin < step ? count : begin + step);
}

void pool_run(Pool *p, size_t count, size_t grain, PoolFn *fn, void *arg) {
    if (!count)
        return;
    grain = grain ? grain : 1;
    if (!p || p->threads == 1 || count <= grain || !pool_alive(p) ||
        atomic_exchange_explicit(&p->taken, true, memory_order_acquire)) {
        run_alone(count, grain, fn, arg);
        return;
    }
    // Chunks are whole grains; the last one takes what is left over.
    size_t grains = count / grain, want = (size_t)p->threads * POOL_CHUNKS;
    size_t grains_each = grains > want ? (grains + want - 1) / want : 1;
    p->fn = fn, p->arg = arg, p->count = count, p->pulse = pulse_here;
    p->chunk = grains_each * grain;
    p->chunks = count / p->chunk;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    assert(!(atomic_load(&p->word) & (WORD_OPEN | WORD_INSIDE)));
    if (p->chunks > 1) {
        atomic_fetch_add(&p->word, WORD_JOB | WORD_OPEN);
        pool_wake(p);
        take_chunks(p);
        job_close(p);
    } else {
        fn(arg, 0, count);
    }
    atomic_store_explicit(&p->taken, false, memory_order_release);
}
