// SPDX-License-Identifier: Apache-2.0
// net_procs.h — processes as threads, with a store they meet in: for tests of net.
//
// A hang is a failure: the alarm ends it.
#ifndef OTRN_TESTS_NET_PROCS_H
#define OTRN_TESTS_NET_PROCS_H

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/comm.h"
#include "net/net_in.h"

#define ALARM_SECONDS 120
#define WORLD 4

// What libfabric keeps of an endpoint that was closed (its `net` provider before release 1.18) is not for us to free.
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfabric.so\n"; }

static int failures;

static inline void check(const char *name, bool ok, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static inline void check(const char *name, bool ok, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    printf(ok ? "ok %s\n" : "FAIL %s: ", name);
    if (!ok) {
        vprintf(fmt, ap);
        printf("\n");
    }
    va_end(ap);
    failures += !ok;
}

typedef struct Shared {
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct {
        char key[48], value[400];
    } rows[64];
    uint32_t n, asked;
    Net *opened; // by the first process
} Shared;

static inline bool shared_put(void *arg, const char *key, const char *value, char *why, size_t why_bytes) {
    Shared *s = arg;
    (void)why, (void)why_bytes;
    pthread_mutex_lock(&s->lock);
    snprintf(s->rows[s->n].key, 48, "%s", key);
    snprintf(s->rows[s->n++].value, 400, "%s", value);
    pthread_cond_broadcast(&s->came);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static inline bool shared_get(void *arg, const char *key, unsigned timeout_ms, char *value, size_t bytes, char *why, size_t why_bytes) {
    Shared *s = arg;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1 + timeout_ms / 1000;
    pthread_mutex_lock(&s->lock);
    bool found = false, late = false;
    while (!found && !late) {
        for (uint32_t i = 0; i < s->n && !found; i++)
            if (!strcmp(s->rows[i].key, key))
                found = true, snprintf(value, bytes, "%s", s->rows[i].value);
        late = !found && pthread_cond_timedwait(&s->came, &s->lock, &until) != 0;
    }
    pthread_mutex_unlock(&s->lock);
    if (!found)
        snprintf(why, why_bytes, "no key %s", key);
    return found;
}

typedef struct Proc {
    uint32_t me, n;
    Shared *store;
    NetSelf self;
    bool (*get)(void *, const char *, unsigned, char *, size_t, char *, size_t); // NULL: shared_get
    void (*run)(struct Proc *p);
    bool ok;
    char why[NET_WHY_BYTES];
    Net *net;
    pthread_barrier_t *barrier;
    pthread_t thread;
} Proc;

static inline void *proc_main(void *arg) {
    Proc *p = arg;
    NetKv kv = {p->store, shared_put, p->get ? p->get : shared_get};
    p->ok = net_open(&p->self, &kv, &p->net, p->why, sizeof p->why);
    if (p->ok && p->run)
        p->run(p);
    if (p->barrier)
        pthread_barrier_wait(p->barrier);
    net_close(p->net);
    return NULL;
}

static inline void shared_init(Shared *s, int shared) {
    pthread_mutexattr_t lock;
    pthread_condattr_t came;
    memset(s, 0, sizeof *s);
    pthread_mutexattr_init(&lock);
    pthread_mutexattr_setpshared(&lock, shared);
    pthread_mutex_init(&s->lock, &lock);
    pthread_condattr_init(&came);
    pthread_condattr_setpshared(&came, shared);
    pthread_cond_init(&s->came, &came);
}

static inline void procs_start(Proc *procs, uint32_t n, Shared *s, pthread_barrier_t *barrier, void (*run)(Proc *), const char *way) {
    shared_init(s, PTHREAD_PROCESS_PRIVATE);
    pthread_barrier_init(barrier, NULL, n);
    for (uint32_t i = 0; i < n; i++)
        procs[i] = (Proc){.me = i, .n = n, .store = s, .run = run, .barrier = barrier,
                          .self = {.process = i, .processes = n, .devices = i + 1, .release = "1", .chip = "trn2",
                                   .fabric = way, .timeout_ms = 30000}};
}

static inline void procs_go(Proc *procs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        pthread_create(&procs[i].thread, NULL, proc_main, &procs[i]);
}

static inline void procs_join(Proc *procs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        pthread_join(procs[i].thread, NULL);
}

static inline NetLaunch launch_of(const Proc *p, uint64_t program) {
    NetLaunch l = {.set = 42, .program = program};
    snprintf(l.name, sizeof l.name, "program_%llu", (unsigned long long)program);
    for (uint32_t i = 0; i < p->n; i++)
        l.takes_part[i] = true;
    return l;
}


// Libfabric, where it is installed, in every test of how data goes.
static inline bool has_libfabric(void) {
    int status = 1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        Fabric *f;
        char why[200] = "";
        bool ok = fabric_open("tcp", "127.0.0.1", 0, 2, 1, &f, why, sizeof why);
        if (!ok)
            printf("skipped libfabric: %s\n", why);
        fflush(stdout);
        _exit(!ok);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

enum { BIG = 3 << 20 };

// Everybody sends everybody two segments, large ones now and then, and checks what comes.
static inline bool swap(Proc *p, const NetLaunch *l, uint32_t round, size_t bytes, char *why) {
    uint8_t *mine = malloc(bytes), *theirs[WORLD] = {0};
    NetSeg out[2] = {{mine, bytes / 3}, {mine + bytes / 3, bytes - bytes / 3}}, in[WORLD][3];
    NetMsg outs[WORLD], ins[WORLD];
    uint32_t n = 0;
    memset(mine, (int)(p->me * 16 + round % 16), bytes);
    for (uint32_t i = 0; i < p->n; i++) {
        if (i == p->me)
            continue;
        theirs[i] = malloc(bytes);
        in[n][0] = (NetSeg){theirs[i], bytes / 2};
        in[n][1] = (NetSeg){NULL, 0};
        in[n][2] = (NetSeg){theirs[i] + bytes / 2, bytes - bytes / 2};
        outs[n] = (NetMsg){.process = i, .nsegs = 2, .segs = out};
        ins[n] = (NetMsg){.process = i, .nsegs = 3, .segs = in[n]};
        n++;
    }
    NetCall call = {.launch = l, .tag = round % 3, .sign = 7, .op = "swap"};
    bool ok = net_exchange(p->net, &call, outs, n, ins, n, why, NET_WHY_BYTES);
    for (uint32_t i = 0; i < p->n && ok; i++)
        for (size_t k = 0; k < bytes && i != p->me && ok; k++)
            ok = theirs[i][k] == i * 16 + round % 16 || !snprintf(why, NET_WHY_BYTES, "byte %zu of process %u", k, i);
    free(mine);
    for (uint32_t i = 0; i < p->n; i++)
        free(theirs[i]);
    return ok;
}

static inline void run_swaps(Proc *p) {
    NetLaunch l = launch_of(p, 1);
    p->ok = net_launch_begin(p->net, &l, p->why, sizeof p->why);
    for (uint32_t round = 0; round < 60 && p->ok; round++) {
        if ((round + p->me) % 16 == 0)
            usleep(2000); // who is late finds what came before
        p->ok = swap(p, &l, round, round % 20 == 7 ? BIG : round * 13 + 1, p->why);
    }
    net_launch_end(p->net, &l, NULL);
}

#endif
