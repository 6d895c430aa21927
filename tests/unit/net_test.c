// SPDX-License-Identifier: Apache-2.0
// net_test.c — processes as threads: joining among strangers, messages, what one makes for all.
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "tests/unit/net_procs.h"

// --- messages --------------------------------------------------------------------------------------

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

static void test_way(const char *way) {
    test_messages(way);
    test_lanes(way);
    test_share(MAKERS_GOOD, way);
    test_strangers(way);
}

int main(void) {
    alarm(ALARM_SECONDS);
    bool fabric = has_libfabric(); // before there are threads
    test_way("sockets");
    test_way("auto");
    test_way("rings");
    if (fabric)
        test_way("tcp");
    test_messages("some rings");
    test_slow_join("sockets");
    test_share(MAKERS_FAIL, "auto");
    test_share(MAKERS_LEAVE, "auto");
    test_refused();
    return failures != 0;
}
