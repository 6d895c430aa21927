// SPDX-License-Identifier: Apache-2.0
// net_test.c — processes as threads: joining among strangers, messages, failures; the tree's order; frames as bytes.
//
// A hang is a failure: the alarm ends it.
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/comm.h"
#include "coll/tree.h"
#include "net/net_in.h"

#define ALARM_SECONDS 120
#define WORLD 4

// What libfabric keeps of an endpoint that was closed (its `net` provider before release 1.18) is not for us to free.
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfabric.so\n"; }

static int failures;

static void check(const char *name, bool ok, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void check(const char *name, bool ok, const char *fmt, ...) {
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

// --- the tree --------------------------------------------------------------------------------------

typedef struct Text { // a sum as it is written: (0+1)+2
    char at[2048];
} Text;

static void sum_text(uint32_t a, uint32_t b, char *out) {
    uint32_t half = 1;
    if (b - a == 1) {
        sprintf(out, "%u", a);
        return;
    }
    while (2 * half < b - a)
        half *= 2;
    char left[2048], right[2048];
    sum_text(a, a + half, left);
    sum_text(a + half, b, right);
    snprintf(out, 2048, "(%.1000s+%.1000s)", left, right);
}

// Nodes of the tree of n at random, folded as they come.
static uint32_t cut_nodes(uint32_t a, uint32_t b, uint32_t *seed, TreeSpan *out) {
    *seed = *seed * 1664525u + 1013904223u;
    if (b - a == 1 || *seed >> 30 == 0) {
        *out = (TreeSpan){a, b};
        return 1;
    }
    uint32_t half = 1;
    while (2 * half < b - a)
        half *= 2;
    uint32_t n = cut_nodes(a, a + half, seed, out);
    return n + cut_nodes(a + half, b, seed, out + n);
}

static void test_tree(void) {
    static Text stack[TREE_DEPTH];
    uint32_t wrong = 0, deepest = 0, seed = 1;
    for (uint32_t n = 1; n <= 70; n++)
        for (int round = 0; round < 20; round++) {
            TreeSpan nodes[70];
            uint32_t count = cut_nodes(0, n, &seed, nodes), depth = 0;
            for (uint32_t i = 0; i < count; i++) {
                sum_text(nodes[i].begin, nodes[i].end, stack[depth++].at);
                deepest = depth > deepest ? depth : deepest;
                for (uint32_t f = tree_folds(nodes[i], n, depth); f; f--, depth--) {
                    Text t;
                    snprintf(t.at, sizeof t.at, "(%.1000s+%.1000s)", stack[depth - 2].at, stack[depth - 1].at);
                    stack[depth - 2] = t;
                }
            }
            char want[2048];
            sum_text(0, n, want);
            wrong += depth != 1 || strcmp(want, stack[0].at);
        }
    check("any cut of the tree folds to the same sum", !wrong && deepest <= TREE_DEPTH, "%u wrong, depth %u", wrong, deepest);
}

// --- bytes -----------------------------------------------------------------------------------------

static void test_wire(void) {
    WireHead h = {.kind = WIRE_DATA, .from = 3, .bytes = 77, .tag = 1, .set = 2, .number = 3, .program = 4, .sign = 5}, got;
    strcpy(h.name, "step");
    strcpy(h.op, "all_reduce");
    uint8_t b[WIRE_HEAD_BYTES];
    wire_put(&h, b);
    check("a head comes back", wire_get(b, 3, true, &got) && !memcmp(&h, &got, sizeof h), "differs");
    check("another sender", !wire_get(b, 2, true, &got), "taken");
    check("data among control", !wire_get(b, 3, false, &got), "taken");
    b[0] ^= 1;
    check("wrong magic", !wire_get(b, 3, true, &got), "taken");
    h.bytes = WIRE_BODY_MAX + 1;
    wire_put(&h, b);
    check("more bytes than can be", !wire_get(b, 3, true, &got), "taken");
    h = (WireHead){.kind = WIRE_BEAT, .from = 3, .bytes = WIRE_NOTE_MAX + 1};
    wire_put(&h, b);
    check("a long heartbeat", !wire_get(b, 3, false, &got), "taken");
    memset(b + 64, 0xff, 128);
    wire_get(b, 3, false, &got);
    check("names end", strnlen(got.name, sizeof got.name) < sizeof got.name && strnlen(got.op, sizeof got.op) < sizeof got.op,
          "they do not");
    WireNote note = {.state = NET_WAITS, .set = 9, .number = 8, .moves = 7}, back;
    uint8_t n[WIRE_NOTE_MAX];
    strcpy(note.where, "train.py:41");
    size_t bytes = wire_put_note(&note, n);
    check("a note comes back", wire_get_note(n, bytes, &back) && !memcmp(&note, &back, sizeof note), "differs");
    check("a short note", !wire_get_note(n, bytes - 1, &back), "taken");
    uint8_t secret[SHA256_BYTES] = {1}, other[SHA256_BYTES] = {2}, nonce[16] = {5};
    WireHello hello = {.from = 1, .to = 0, .channel = 1};
    Sha256 a = wire_proof(secret, 'a', &hello, nonce), c = wire_proof(secret, 'c', &hello, nonce), o = wire_proof(other, 'a', &hello, nonce);
    check("proofs differ by side and secret", !wire_same(a.at, c.at, 32) && !wire_same(a.at, o.at, 32), "they do not");
}

// --- a store, and processes as threads -------------------------------------------------------------

typedef struct Shared {
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct {
        char key[48], value[400];
    } rows[64];
    uint32_t n, asked;
    Net *opened; // by the first process
} Shared;

static bool shared_put(void *arg, const char *key, const char *value, char *why, size_t why_bytes) {
    Shared *s = arg;
    (void)why, (void)why_bytes;
    pthread_mutex_lock(&s->lock);
    snprintf(s->rows[s->n].key, 48, "%s", key);
    snprintf(s->rows[s->n++].value, 400, "%s", value);
    pthread_cond_broadcast(&s->came);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool shared_get(void *arg, const char *key, unsigned timeout_ms, char *value, size_t bytes, char *why, size_t why_bytes) {
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

static void *proc_main(void *arg) {
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

static void shared_init(Shared *s, int shared) {
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

static void procs_start(Proc *procs, uint32_t n, Shared *s, pthread_barrier_t *barrier, void (*run)(Proc *), const char *way) {
    shared_init(s, PTHREAD_PROCESS_PRIVATE);
    pthread_barrier_init(barrier, NULL, n);
    for (uint32_t i = 0; i < n; i++)
        procs[i] = (Proc){.me = i, .n = n, .store = s, .run = run, .barrier = barrier,
                          .self = {.process = i, .processes = n, .devices = i + 1, .release = "1", .chip = "trn2",
                                   .fabric = way, .timeout_ms = 30000}};
}

static void procs_go(Proc *procs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        pthread_create(&procs[i].thread, NULL, proc_main, &procs[i]);
}

static void procs_join(Proc *procs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        pthread_join(procs[i].thread, NULL);
}

static NetLaunch launch_of(const Proc *p, uint64_t program) {
    NetLaunch l = {.set = 42, .program = program};
    snprintf(l.name, sizeof l.name, "program_%llu", (unsigned long long)program);
    for (uint32_t i = 0; i < p->n; i++)
        l.takes_part[i] = true;
    return l;
}

// --- messages --------------------------------------------------------------------------------------

enum { BIG = 3 << 20 };

// Everybody sends everybody two segments, large ones now and then, and checks what comes.
static bool swap(Proc *p, const NetLaunch *l, uint32_t round, size_t bytes, char *why) {
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

static void run_swaps(Proc *p) {
    NetLaunch l = launch_of(p, 1);
    p->ok = net_launch_begin(p->net, &l, p->why, sizeof p->why);
    for (uint32_t round = 0; round < 60 && p->ok; round++) {
        if ((round + p->me) % 16 == 0)
            usleep(2000); // who is late finds what came before
        p->ok = swap(p, &l, round, round % 20 == 7 ? BIG : round * 13 + 1, p->why);
    }
    net_launch_end(p->net, &l, NULL);
}

static void test_messages(const char *way) {
    Proc procs[WORLD];
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, WORLD, &s, &barrier, run_swaps, !strcmp(way, "some rings") ? NULL : way);
    if (!strcmp(way, "some rings")) // one who may not be read among some who may
        procs[1].self.fabric = "rings";
    procs_go(procs, WORLD);
    procs_join(procs, WORLD);
    for (uint32_t i = 0; i < WORLD; i++)
        check("messages", procs[i].ok, "%s, process %u: %s", way, i, procs[i].why);
}

// The first process has heard nobody for longer than anybody may be silent, and has looked since.
static void grow_old(Net *n) {
    uint32_t looks = 0, same;
    pthread_mutex_lock(&n->lock);
    for (uint32_t i = 0; i < n->n; i++)
        n->peers[i].heard_ms -= 4500;
    same = n->same;
    while (looks < 2) { // with each heartbeat
        pthread_mutex_unlock(&n->lock);
        usleep(5000);
        pthread_mutex_lock(&n->lock);
        looks += same != n->same;
        same = n->same;
    }
    pthread_mutex_unlock(&n->lock);
}

// Process 2 meets process 1 long after both have met process 0, which hears nothing of them until they have.
static bool slow_get(void *arg, const char *key, unsigned timeout_ms, char *value, size_t bytes, char *why, size_t why_bytes) {
    Shared *s = arg;
    pthread_mutex_lock(&s->lock);
    Net *old = NULL;
    if (strstr(key, "at/1") && !s->asked++)
        while (!(old = s->opened))
            pthread_cond_wait(&s->came, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (old)
        grow_old(old);
    return shared_get(arg, key, timeout_ms, value, bytes, why, why_bytes);
}

static void run_slow_join(Proc *p) {
    pthread_mutex_lock(&p->store->lock);
    if (p->me == 0)
        p->store->opened = p->net;
    pthread_cond_broadcast(&p->store->came);
    pthread_mutex_unlock(&p->store->lock);
    run_swaps(p);
}

static void test_slow_join(const char *way) {
    Proc procs[3];
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, 3, &s, &barrier, run_slow_join, way);
    for (uint32_t i = 0; i < 3; i++)
        procs[i].get = slow_get;
    procs_go(procs, 3);
    procs_join(procs, 3);
    for (uint32_t i = 0; i < 3; i++)
        check("who still joins is not gone", procs[i].ok, "%s, process %u: %s", way, i, procs[i].why);
}

// Two threads of a process at once, with tags of their own.
typedef struct Lane {
    Proc *p;
    const NetLaunch *l;
    uint64_t tag;
    bool ok;
    char why[NET_WHY_BYTES];
} Lane;

static void *lane_main(void *arg) {
    Lane *v = arg;
    v->ok = true;
    for (uint32_t i = 0; i < 200 && v->ok; i++) {
        uint64_t mine = v->tag * 1000 + i, theirs = 0;
        NetSeg out = {&mine, 8}, in = {&theirs, 8};
        NetMsg o = {.process = 1 - v->p->me, .nsegs = 1, .segs = &out}, n = {.process = 1 - v->p->me, .nsegs = 1, .segs = &in};
        NetCall call = {.launch = v->l, .tag = v->tag, .sign = 1, .op = "lane"};
        v->ok = net_exchange(v->p->net, &call, &o, 1, &n, 1, v->why, sizeof v->why) && theirs == mine;
    }
    return NULL;
}

static void run_lanes(Proc *p) {
    NetLaunch l = launch_of(p, 1);
    Lane lanes[3];
    pthread_t threads[3];
    p->ok = net_launch_begin(p->net, &l, p->why, sizeof p->why);
    for (uint64_t i = 0; i < 3; i++) {
        lanes[i] = (Lane){.p = p, .l = &l, .tag = 100 + i};
        pthread_create(&threads[i], NULL, lane_main, &lanes[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        p->ok = p->ok && lanes[i].ok;
        if (!lanes[i].ok)
            memcpy(p->why, lanes[i].why, sizeof p->why);
    }
    net_launch_end(p->net, &l, NULL);
}

static void test_lanes(const char *way) {
    Proc procs[2];
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, 2, &s, &barrier, run_lanes, way);
    procs_go(procs, 2);
    procs_join(procs, 2);
    check("several threads of a process", procs[0].ok && procs[1].ok, "%s %s", procs[0].why, procs[1].why);
}

// --- failures --------------------------------------------------------------------------------------

// One runs another program; all are told; the next launch works.
static void run_mismatch(Proc *p) {
    NetLaunch l = launch_of(p, p->me == 1 ? 2 : 1), next = launch_of(p, 5);
    char why[NET_WHY_BYTES] = "";
    net_launch_begin(p->net, &l, why, sizeof why);
    bool ok = swap(p, &l, 0, 100000, why);
    net_launch_end(p->net, &l, ok ? NULL : why);
    memcpy(p->why, why, sizeof why);
    p->ok = !ok && strstr(why, "program_1") && strstr(why, "program_2");
    pthread_barrier_wait(p->barrier);
    p->ok = p->ok && net_launch_begin(p->net, &next, p->why, sizeof p->why) && swap(p, &next, 1, 100000, p->why);
    net_launch_end(p->net, &next, NULL);
}

static void test_mismatch(const char *way) {
    Proc procs[WORLD];
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, WORLD, &s, &barrier, run_mismatch, way);
    procs_go(procs, WORLD);
    procs_join(procs, WORLD);
    for (uint32_t i = 0; i < WORLD; i++)
        check("another program is named, and the job goes on", procs[i].ok, "process %u: %s", i, procs[i].why);
}

// Process 1 leaves; process 0 waits for it.
static void run_leaving(Proc *p) {
    NetLaunch l = launch_of(p, 1);
    if (p->me == 1)
        return;
    p->barrier = NULL;
    net_launch_begin(p->net, &l, p->why, sizeof p->why);
    p->ok = !swap(p, &l, 0, 100, p->why) && strstr(p->why, "process 1 (host") && strstr(p->why, "devices 1 to 2") &&
            strstr(p->why, "has ended") && !net_lost(p->net);
    net_launch_end(p->net, &l, NULL);
}

static void test_leaving(const char *way) {
    Proc procs[2];
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, 2, &s, &barrier, run_leaving, way);
    procs[1].barrier = NULL;
    procs_go(procs, 2);
    procs_join(procs, 2);
    check("one that has ended is named", procs[0].ok, "%s", procs[0].why);
}

// Process 1 sends and leaves at once; what it sent is there for who asks later, in several loose launches.
static void run_last_words(Proc *p) {
    char large[4][30000];
    if (p->me == 0)
        pthread_barrier_wait(p->barrier); // here process 1 has gone on to its end
    for (uint32_t i = 0; i < 4 && p->ok; i++) {
        NetLaunch l = launch_of(p, 0);
        l.loose = true;
        memset(large[i], 'a' + (int)i, sizeof large[i]);
        NetSeg seg = {large[i], sizeof large[i]};
        NetMsg msg = {.process = 1 - p->me, .nsegs = 1, .segs = &seg};
        NetCall call = {.launch = &l, .tag = 9, .op = "send"};
        if (p->me == 0)
            memset(large[i], 0, sizeof large[i]);
        p->ok = net_launch_begin(p->net, &l, p->why, sizeof p->why) &&
                net_exchange(p->net, &call, &msg, p->me, &msg, 1 - p->me, p->why, sizeof p->why) &&
                large[i][0] == 'a' + (char)i && large[i][29999] == 'a' + (char)i;
        net_launch_end(p->net, &l, NULL);
    }
    if (p->me == 0)
        p->barrier = NULL;
}

static void test_last_words(const char *way) {
    Proc procs[2];
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, 2, &s, &barrier, run_last_words, way);
    procs_go(procs, 2);
    procs_join(procs, 2);
    check("what one sent before it left arrives", procs[0].ok && procs[1].ok, "%s | %s", procs[0].why, procs[1].why);
}

// Both send more than fits between them, and ask for the other's only then.
static void run_unasked(Proc *p) {
    uint8_t *mine = malloc(BIG), *theirs = calloc(1, BIG);
    NetSeg out = {mine, BIG}, in = {theirs, BIG};
    NetMsg to = {.process = 1 - p->me, .nsegs = 1, .segs = &out}, from = {.process = 1 - p->me, .nsegs = 1, .segs = &in};
    NetLaunch l = launch_of(p, 0);
    l.loose = true;
    memset(mine, (int)p->me + 1, BIG);
    NetCall there = {.launch = &l, .tag = 20 + p->me, .op = "send", .unasked = true}, back = there;
    back.tag = 21 - p->me;
    p->ok = net_launch_begin(p->net, &l, p->why, sizeof p->why) &&
            net_exchange(p->net, &there, &to, 1, NULL, 0, p->why, sizeof p->why) &&
            net_exchange(p->net, &back, NULL, 0, &from, 1, p->why, sizeof p->why) && theirs[0] == 2 - p->me &&
            theirs[BIG - 1] == 2 - p->me;
    net_launch_end(p->net, &l, NULL);
    free(mine);
    free(theirs);
}

static void test_unasked(const char *way) {
    Proc procs[2];
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, 2, &s, &barrier, run_unasked, way);
    procs_go(procs, 2);
    procs_join(procs, 2);
    check("both send first", procs[0].ok && procs[1].ok, "%s | %s", procs[0].why, procs[1].why);
}

// Nobody sends: all wait for each other, and are told.
static bool always(void *arg) {
    (void)arg;
    return true;
}

static void run_dead(Proc *p) {
    NetLaunch l = launch_of(p, 1);
    uint8_t byte;
    NetSeg seg = {&byte, 1};
    NetMsg in = {.process = 1 - p->me, .nsegs = 1, .segs = &seg};
    NetCall call = {.launch = &l, .tag = 1, .op = "all_gather"};
    l.stuck = always;
    net_launch_begin(p->net, &l, p->why, sizeof p->why);
    p->ok = !net_exchange(p->net, &call, NULL, 0, &in, 1, p->why, sizeof p->why) && strstr(p->why, "never completes") &&
            strstr(p->why, "all_gather");
    net_launch_end(p->net, &l, p->why);
}

static void test_dead(const char *way) {
    Proc procs[2];
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, 2, &s, &barrier, run_dead, way);
    procs_go(procs, 2);
    procs_join(procs, 2);
    check("processes that wait for each other", procs[0].ok && procs[1].ok, "%s | %s", procs[0].why, procs[1].why);
}

// Process 0 waits for one that never begins, and gives it up.
static void run_late(Proc *p) {
    NetLaunch l = launch_of(p, 1);
    uint8_t byte;
    NetSeg seg = {&byte, 1};
    NetMsg in = {.process = 1, .nsegs = 1, .segs = &seg};
    NetCall call = {.launch = &l, .tag = 1, .op = "all_reduce"};
    if (p->me == 1)
        return;
    l.stuck = always;
    net_launch_begin(p->net, &l, p->why, sizeof p->why);
    p->ok = !net_exchange(p->net, &call, NULL, 0, &in, 1, p->why, sizeof p->why) &&
            strstr(p->why, "all_reduce has waited 1 s (OTRN_COLL_TIMEOUT); process 1 (host") && strstr(p->why, "is between steps");
    net_launch_end(p->net, &l, p->why);
}

// Two processes, of which the first waits no longer than a second.
static void go_impatient(Proc procs[2], void (*run)(Proc *), const char *way) {
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, 2, &s, &barrier, run, way);
    procs[0].self.coll_timeout_ms = 1000;
    procs_go(procs, 2);
    procs_join(procs, 2);
}

static void test_late(const char *way) {
    Proc procs[2];
    go_impatient(procs, run_late, way);
    check("one that never comes is named", procs[0].ok, "%s", procs[0].why);
}

// Another thread of process 0 waits for what process 1 never sends, and gives it up while the two go on beside it.
typedef struct Beside {
    Proc *p;
    bool ok;
    char why[NET_WHY_BYTES];
    _Atomic bool done;
} Beside;

static void *beside_main(void *arg) {
    Beside *b = arg;
    NetLaunch l = {.set = 7, .loose = true, .name = "transfer", .takes_part = {[1] = true}};
    uint8_t byte;
    NetSeg seg = {&byte, 1};
    NetMsg in = {.process = 1, .nsegs = 1, .segs = &seg};
    NetCall call = {.launch = &l, .tag = 99, .op = "device_put"};
    b->ok = net_launch_begin(b->p->net, &l, b->why, sizeof b->why) &&
            !net_exchange(b->p->net, &call, NULL, 0, &in, 1, b->why, sizeof b->why) &&
            strstr(b->why, "device_put has waited 1 s (OTRN_COLL_TIMEOUT); process 1 (host");
    net_launch_end(b->p->net, &l, b->why);
    b->done = true;
    return NULL;
}

static void run_late_beside(Proc *p) {
    NetLaunch l = launch_of(p, 1);
    Beside b = {.p = p, .ok = true};
    pthread_t thread;
    uint8_t mine = 0, theirs = 0; // 1: the other thread is done
    NetSeg out = {&mine, 1}, in = {&theirs, 1};
    NetMsg to = {.process = 1 - p->me, .nsegs = 1, .segs = &out}, from = {.process = 1 - p->me, .nsegs = 1, .segs = &in};
    NetCall call = {.launch = &l, .tag = 1, .op = "swap"};
    if (p->me == 0)
        pthread_create(&thread, NULL, beside_main, &b);
    bool ok = net_launch_begin(p->net, &l, p->why, sizeof p->why);
    while (ok && !mine && !theirs) {
        mine = p->me == 0 && b.done;
        ok = net_exchange(p->net, &call, &to, 1, &from, 1, p->why, sizeof p->why);
        usleep(1000);
    }
    net_launch_end(p->net, &l, NULL);
    if (p->me == 0)
        pthread_join(thread, NULL);
    if (!b.ok)
        memcpy(p->why, b.why, sizeof p->why);
    p->ok = ok && b.ok;
}

static void test_late_beside(const char *way) {
    Proc procs[2];
    go_impatient(procs, run_late_beside, way);
    check("one that never comes is named while others do", procs[0].ok && procs[1].ok, "%s | %s", procs[0].why, procs[1].why);
}

// Process 0 has a large message for one who does not ask for it, and gives up: its memory is its own again, and the message does not
// come when it is asked for too late.
static void run_withdrawn(Proc *p) {
    NetLaunch l = launch_of(p, 1), next = launch_of(p, 5);
    char why[NET_WHY_BYTES] = "";
    uint8_t *bytes = calloc(1, BIG);
    NetSeg seg = {bytes, BIG};
    NetMsg m = {.process = 1 - p->me, .nsegs = 1, .segs = &seg};
    NetCall call = {.launch = &l, .tag = 9, .op = "late"};
    net_launch_begin(p->net, &l, why, sizeof why);
    if (p->me == 1) {
        usleep(20000);
        net_launch_fail(p->net, &l, "no more");
        pthread_barrier_wait(p->barrier);
    }
    p->ok = !net_exchange(p->net, &call, &m, p->me == 0, &m, p->me == 1, p->why, sizeof p->why) && strstr(p->why, "no more");
    memset(bytes, 0xff, BIG);
    free(bytes);
    if (p->me == 0)
        pthread_barrier_wait(p->barrier);
    net_launch_end(p->net, &l, NULL);
    pthread_barrier_wait(p->barrier);
    p->ok = p->ok && net_launch_begin(p->net, &next, p->why, sizeof p->why) && swap(p, &next, 1, BIG, p->why);
    net_launch_end(p->net, &next, NULL);
}

static void test_withdrawn(const char *way) {
    Proc procs[2];
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, 2, &s, &barrier, run_withdrawn, way);
    procs_go(procs, 2);
    procs_join(procs, 2);
    check("a message that was withdrawn", procs[0].ok && procs[1].ok, "%s | %s", procs[0].why, procs[1].why);
}

// A process of its own that is killed while large messages go both ways, early or late in one.
static void *killer_main(void *arg) {
    usleep(*(useconds_t *)arg);
    raise(SIGKILL);
    return NULL;
}

static void run_killed(Proc *p) {
    NetLaunch l = launch_of(p, 1);
    useconds_t when = (useconds_t)p->self.devices * 700;
    pthread_t thread;
    if (p->me == 1)
        pthread_create(&thread, NULL, killer_main, &when);
    bool ok = net_launch_begin(p->net, &l, p->why, sizeof p->why);
    for (uint32_t round = 0; ok; round++)
        ok = swap(p, &l, round, BIG, p->why);
    p->ok = strstr(p->why, "process 1 (host") && strstr(p->why, "is gone") && net_lost(p->net);
    net_launch_end(p->net, &l, NULL);
}

// The round's own process has no library of ours open when it forks.
static void killed_round(Shared *s, uint32_t round, const char *way) {
    pid_t child = fork();
    Proc p = {.me = child == 0, .n = 2, .store = s, .run = run_killed,
              .self = {.process = child == 0, .processes = 2, .devices = round, .release = "1", .chip = "trn2", .fabric = way,
                       .timeout_ms = 30000}};
    alarm(ALARM_SECONDS);
    proc_main(&p);
    if (child > 0) {
        waitpid(child, NULL, 0);
        check("one that is killed in a message", p.ok, "%s: %s", way, p.why);
        fflush(stdout);
    }
    _exit(failures != 0);
}

static void test_killed(const char *way) {
    Shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    for (uint32_t round = 1; round <= 8; round++) {
        int status = 1;
        shared_init(s, PTHREAD_PROCESS_SHARED);
        pid_t one = fork();
        if (one == 0)
            killed_round(s, round, way);
        waitpid(one, &status, 0);
        failures += status != 0;
    }
    munmap(s, sizeof *s);
}

// A message that would have to come from the other process is refused, and both are told.
static void run_recv(Proc *p) {
    static const uint16_t process[2] = {0, 1};
    NetLaunch l = launch_of(p, 1);
    Comm *c = comm_make((Grid){2, 1}, 1);
    CommWorld w = {.net = p->net, .launch = &l, .process = process};
    uint8_t byte = 0;
    comm_reset(c);
    net_launch_begin(p->net, &l, p->why, sizeof p->why);
    comm_spread(c, &w);
    if (p->me == 0) {
        p->ok = !comm_recv(comm_rank(c, 0), 1, 1, &(CommBuf){.out = &byte, .in_bytes = 1}, 1);
        snprintf(p->why, sizeof p->why, "%s", comm_why(comm_rank(c, 0)));
    } else {
        NetSeg seg = {&byte, 1};
        NetCall call = {.launch = &l, .tag = 1, .op = "all_gather"};
        p->ok = !net_exchange(p->net, &call, NULL, 0, &(NetMsg){.process = 0, .nsegs = 1, .segs = &seg}, 1, p->why, sizeof p->why);
    }
    p->ok = p->ok && strstr(p->why, "from another process is not supported");
    net_launch_end(p->net, &l, NULL);
    comm_free(c);
}

static void test_recv(void) {
    Proc procs[2];
    Shared s;
    pthread_barrier_t barrier;
    procs_start(procs, 2, &s, &barrier, run_recv, NULL);
    procs_go(procs, 2);
    procs_join(procs, 2);
    check("a message from another process is refused", procs[0].ok && procs[1].ok, "%s | %s", procs[0].why, procs[1].why);
}

// --- strangers -------------------------------------------------------------------------------------

static int dial(Shared *s) { // where process 0 listens
    char at[200] = "", why[100];
    if (!shared_get(s, "net/at/0", 10000, at, sizeof at, why, sizeof why))
        return -1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(at)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a)) {
        close(fd);
        return -1;
    }
    return fd;
}

typedef struct Strangers {
    Shared *store;
    int called;
} Strangers;

// Silence, random bytes, half a hello, a hello of one who does not know the secret.
static void *strangers_main(void *arg) {
    Strangers *st = arg;
    int open[300], nopen = 0;
    uint32_t seed = 7;
    for (int i = 0; i < 1500; i++) {
        int fd = dial(st->store);
        if (fd < 0)
            break;
        st->called++;
        uint8_t bytes[WIRE_HELLO_BYTES];
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
        if (i % 4 == 3)
            wire_put_hello(&(WireHello){.from = 1 + (uint32_t)i % 3, .to = 0, .channel = (uint32_t)i % 2}, bytes);
        if (i % 4 && send(fd, bytes, i % 4 == 2 ? 40 : sizeof bytes, MSG_NOSIGNAL) < 0)
            nopen += 0;
        if (i % 4 == 3 && recv(fd, bytes, 1, MSG_DONTWAIT) < 0 && send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) < 0)
            nopen += 0;
        if (i % 2 && nopen < 300)
            open[nopen++] = fd; // stays, without a word
        else
            close(fd);
    }
    for (int i = 0; i < nopen; i++)
        close(open[i]);
    return NULL;
}

static void test_strangers(const char *way) {
    Proc procs[WORLD];
    Shared s;
    pthread_barrier_t barrier;
    pthread_t thread;
    procs_start(procs, WORLD, &s, &barrier, run_swaps, way);
    Strangers st = {.store = &s};
    pthread_create(&thread, NULL, strangers_main, &st);
    procs_go(procs, WORLD);
    procs_join(procs, WORLD);
    pthread_join(thread, NULL);
    for (uint32_t i = 0; i < WORLD; i++)
        check("strangers are sent away and the job goes on", procs[i].ok, "process %u: %s, %d called", i, procs[i].why, st.called);
    int fd = dial(&s);
    check("nobody listens once all are there", fd < 0, "connected");
}

static void test_refused(void) {
    Proc procs[2];
    Shared s;
    pthread_barrier_t barrier;
    for (int round = 0; round < 3; round++) {
        procs_start(procs, 2, &s, &barrier, NULL, NULL);
        static const char *const names[] = {"another secret", "another release", "another chip"};
        static const char *const texts[] = {"secret", "runs opentrn 2", "has the chip trn1"};
        for (int i = 0; i < 2; i++)
            procs[i].self.timeout_ms = 1500;
        if (round == 0)
            procs[0].self.secret = "one", procs[1].self.secret = "two";
        if (round == 1)
            procs[1].self.release = "2";
        if (round == 2)
            procs[1].self.chip = "trn1";
        procs_go(procs, 2);
        procs_join(procs, 2);
        check(names[round], !procs[0].ok && !procs[1].ok && strstr(procs[round == 0].why, texts[round]), "%s | %s", procs[0].why,
              procs[1].why);
    }
}

// --- what one makes for all -----------------------------------------------------------------------

typedef enum Makers { MAKERS_GOOD, MAKERS_FAIL, MAKERS_LEAVE } Makers;
static struct {
    Makers how;
    atomic_uint made[4];
    pthread_barrier_t asked; // the one that leaves has asked
} sharing;

static void run_share(Proc *p) {
    bool leaves = sharing.how == MAKERS_LEAVE && p->me == 1;
    for (uint32_t k = 0; k < 4 && p->ok; k++) {
        Sha256 key = sha256(&k, sizeof k);
        size_t want = k % 2 ? BIG : 100, size = 0;
        if (sharing.how == MAKERS_LEAVE && !leaves && k == 0)
            pthread_barrier_wait(&sharing.asked);
        uint8_t *got = net_share_take(p->net, &key, &size), *mine = got ? got : malloc(want);
        if (leaves)
            pthread_barrier_wait(&sharing.asked);
        if (!got)
            memset(mine, (int)k + 1, size = want), atomic_fetch_add(&sharing.made[k], 1);
        if (!got && !leaves)
            net_share_give(p->net, &key, sharing.how == MAKERS_FAIL ? NULL : mine, want);
        p->ok = size == want && mine[0] == k + 1 && !memcmp(mine, mine + 1, want - 1);
        free(mine);
        if (leaves)
            return;
    }
}

static void test_share(Makers how, const char *way) {
    Proc procs[WORLD];
    Shared s;
    pthread_barrier_t barrier;
    memset(&sharing, 0, sizeof sharing);
    sharing.how = how;
    pthread_barrier_init(&sharing.asked, NULL, WORLD);
    procs_start(procs, WORLD, &s, &barrier, run_share, way);
    if (how == MAKERS_LEAVE) {
        procs[1].barrier = NULL;
        pthread_barrier_init(&barrier, NULL, WORLD - 1);
    }
    procs_go(procs, WORLD);
    procs_join(procs, WORLD);
    for (uint32_t i = 0; i < WORLD; i++)
        check("shared", procs[i].ok, "maker %d: process %u has something else", how, i);
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t want = how == MAKERS_FAIL ? WORLD : how == MAKERS_LEAVE && k == 0 ? 2 : 1;
        check("made once", sharing.made[k] == want, "maker %d: %u times", how, sharing.made[k]);
    }
}

// Libfabric, where it is installed, in every test of how data goes.
static bool has_libfabric(void) {
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

static void test_way(const char *way) {
    test_messages(way);
    test_lanes(way);
    if (strcmp(way, "sockets")) // the system may hold all of it
        test_withdrawn(way);
    test_mismatch(way);
    test_leaving(way);
    test_last_words(way);
    test_unasked(way);
    test_share(MAKERS_GOOD, way);
    test_strangers(way);
}

int main(void) {
    alarm(ALARM_SECONDS);
    test_tree();
    test_wire();
    bool fabric = has_libfabric();
    test_killed("auto"); // before there are threads
    test_killed("rings");
    if (fabric)
        test_killed("tcp");
    test_way("sockets");
    test_way("auto");
    test_way("rings");
    if (fabric)
        test_way("tcp");
    test_messages("some rings");
    test_slow_join("sockets");
    test_dead("sockets");
    test_late("sockets");
    test_late_beside("sockets");
    test_late_beside("auto");
    test_recv();
    test_share(MAKERS_FAIL, "auto");
    test_share(MAKERS_LEAVE, "auto");
    test_refused();
    return failures != 0;
}
