// SPDX-License-Identifier: Apache-2.0
// pool_test.c — every index exactly once, whoever calls, from wherever.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/parts.h"
#include "base/pool.h"
#include "unit.h"

#define N_MAX 4096
typedef struct Marks {
    _Atomic uint32_t seen[N_MAX];
    _Atomic size_t calls, shortest;
    Pool *nested;
} Marks;

static void mark(void *arg, size_t begin, size_t end) {
    Marks *m = arg;
    atomic_fetch_add(&m->calls, 1);
    size_t n = end - begin, low = atomic_load(&m->shortest);
    while (n < low && !atomic_compare_exchange_weak(&m->shortest, &low, n))
        ;
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add_explicit(&m->seen[i], 1, memory_order_relaxed);
}

static void mark_nested(void *arg, size_t begin, size_t end) {
    Marks *m = arg;
    mark(m, begin, end);
    Marks *inner = calloc(1, sizeof *inner);
    pool_run(m->nested, 100, 1, mark, inner);
    for (size_t i = 0; i < 100; i++)
        if (inner->seen[i] != 1)
            atomic_fetch_add(&m->seen[begin], 1000);
    free(inner);
}

static bool each_once(const Marks *m, size_t count) {
    for (size_t i = 0; i < N_MAX; i++)
        if (m->seen[i] != (i < count))
            return false;
    return true;
}

static void test_ranges(Pool *p, const char *name) {
    bool once = true, grains = true;
    static Marks m;
    static const size_t counts[] = {0, 1, 2, 7, 63, 64, 65, 100, 1000, N_MAX};
    for (size_t round = 0; round < 300; round++) {
        size_t count = counts[round % 10], grain = round / 10 % 5 * 13;
        memset(&m, 0, sizeof m);
        m.shortest = SIZE_MAX;
        pool_run(p, count, grain, mark, &m);
        once = once && each_once(&m, count);
        grains = grains && (count <= grain ? m.calls == (count > 0) : m.shortest >= grain);
    }
    expect(once && grains, name,
           once ? "a chunk was shorter than the grain" : "index lost or repeated");
}

static void test_nested(Pool *p) {
    static Marks m;
    bool ok = true;
    for (int round = 0; round < 50; round++) {
        memset(&m, 0, sizeof m);
        m.nested = p;
        pool_run(p, 64, 1, mark_nested, &m);
        ok = ok && each_once(&m, 64);
    }
    expect(ok, "nested calls", "index lost or repeated");
}

static void *caller_main(void *arg) {
    Pool *p = arg;
    Marks *m = calloc(1, sizeof *m);
    intptr_t bad = 0;
    for (int round = 0; round < 500; round++) {
        memset(m, 0, sizeof *m);
        pool_run(p, 257, 3, mark, m);
        bad += !each_once(m, 257);
    }
    free(m);
    return (void *)bad;
}

static void test_many_callers(Pool *p) {
    pthread_t t[4];
    intptr_t bad = 0;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&t[i], NULL, caller_main, p))
            abort();
    for (int i = 0; i < 4; i++) {
        void *r;
        pthread_join(t[i], &r);
        bad += (intptr_t)r;
    }
    expect(bad == 0, "several callers", "index lost or repeated");
}

// Workers asleep when a job comes: the job must not need them.
static void test_after_sleep(Pool *p) {
    static Marks m;
    bool ok = true;
    for (int round = 0; round < 10; round++) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        memset(&m, 0, sizeof m);
        pool_run(p, 1000, 10, mark, &m);
        ok = ok && each_once(&m, 1000);
    }
    expect(ok, "after sleep", "index lost or repeated");
}

// More than one thread really takes part: each chunk waits for a second one to start.
static void meet(void *arg, size_t begin, size_t end) {
    (void)begin, (void)end;
    _Atomic int *inside = arg;
    atomic_fetch_add(inside, 1);
    for (int ms = 0; ms < 5000 && atomic_load(inside) < 2; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void test_parallel(void) {
    Pool *p = pool_make(2);
    _Atomic int inside = 0;
    pool_run(p, 2, 1, meet, &inside);
    expect(pool_threads(p) == 2 && inside == 2, "two threads meet", "the worker never came");
    pool_free(p);
}

static void test_fork(Pool *p) {
    static Marks m;
    memset(&m, 0, sizeof m);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        pool_run(p, 1000, 1, mark, &m);
        bool ok = each_once(&m, 1000);
        pool_free(p); // must not wait for threads that are not there
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    expect(status == 0, "forked child", "hung or lost an index");
    memset(&m, 0, sizeof m);
    pool_run(p, 1000, 1, mark, &m);
    expect(each_once(&m, 1000), "parent after fork", "index lost or repeated");
}

static void test_make_free(void) {
    bool ok = true;
    for (int i = 0; i < 100; i++) {
        Pool *p = pool_make(i % 5);
        ok = ok && p && (i % 5 == 0 || pool_threads(p) == i % 5);
        if (i % 2) {
            static Marks m;
            memset(&m, 0, sizeof m);
            pool_run(p, 50, 1, mark, &m);
            ok = ok && each_once(&m, 50);
        }
        pool_free(p);
    }
    pool_free(NULL);
    expect(ok, "make and free", "wrong thread count or lost index");
}

static void test_host(void) {
    bool ok = host_parse("auto") == HOST_COUNT && host_parse("neon") == -1;
    for (int level = 0; level < HOST_COUNT; level++)
        ok = ok && host_parse(host_name((HostLevel)level)) == level;
    expect(ok && host_best() < HOST_COUNT, "host names", "parse and name disagree");

    volatile float tiny = 0x1p-149f, one = 1.0f;
    HostFp outer = host_fp_begin(HOST_FP_FLUSH);
    HostFp inner = host_fp_begin(HOST_FP_IEEE);
    volatile float kept = tiny * one;
    host_fp_end(inner);
    volatile float flushed = tiny * one;
    host_fp_end(outer);
    volatile float after = tiny * one;
#if defined(__x86_64__)
    bool flush = flushed == 0;
#else
    bool flush = flushed == tiny; // there is no such mode
#endif
    expect(kept == tiny && after == tiny && flush, "float mode", "begin and end do not nest");
}

typedef struct Pieces {
    char *text[40];
    size_t bad, worse; // parts that fail
} Pieces;

static void piece_make(void *arg, size_t part, Arena *a) {
    Pieces *p = arg;
    for (int i = 0; i < 3000; i++) // more than a block of the arena
        p->text[part] = arena_printf(a, "part %zu, %d", part, i);
    if (part == p->bad || part == p->worse)
        ctx_fail(a->ctx, OTRN_UNSUPPORTED, (Place){"file", (uint32_t)part, 1}, "part %zu fails", part);
}

static void test_parts(Pool *pool, const char *name) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf here;
    Pieces p = {.bad = SIZE_MAX, .worse = SIZE_MAX};
    volatile bool ok = true;
    arena_init(&a, &ctx);
    if (CTX_TRY(&ctx, here)) {
        parts_run(&a, pool, 40, piece_make, &p);
        for (size_t i = 0; i < 40; i++) {
            char want[40];
            snprintf(want, sizeof want, "part %zu, 2999", i);
            ok = ok && !strcmp(p.text[i], want);
        }
        p.bad = 31, p.worse = 12;
        parts_run(&a, pool, 40, piece_make, &p);
        ok = false; // never here
    }
    expect(ok && ctx.err.line == 12 && !strcmp(ctx.err.text, "part 12 fails"), name,
           "what parts make is lost, or not the first error is told");
    arena_fini(&a);
}

int main(void) {
    alarm(120); // a hang is a failure
    test_host();
    Pool *one = pool_make(1), *all = pool_make(0), *many = pool_make(9);
    test_ranges(NULL, "no pool");
    test_ranges(one, "one thread");
    test_ranges(all, "one per CPU");
    test_ranges(many, "more threads than CPUs");
    test_nested(all);
    test_nested(many);
    test_parts(NULL, "parts, no pool");
    test_parts(all, "parts");
    test_parts(many, "parts, more threads than CPUs");
    test_many_callers(all);
    test_many_callers(many);
    test_after_sleep(many);
    test_parallel();
    test_fork(all);
    pool_free(many);
    pool_free(all);
    pool_free(one);
    test_make_free();
    return failures != 0;
}
