// SPDX-License-Identifier: Apache-2.0
// root_test.c — the store of our own: values, waiting, two kinds of addresses, a world that meets there, strangers, and clients
// that know the secret and send what is no question.
//
// A hang is a failure: the alarm ends it.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/net_in.h"
#include "unit.h"

#define ALARM_SECONDS 240
#define SECRET "the job's words"
#define WAIT_MS 60000

static char why[NET_WHY_BYTES];

static NetRoot *serve(const char *at) {
    NetRoot *r = NULL;
    expect(net_root_open(at, SECRET, true, WAIT_MS, &r, why, sizeof why), "root/serve", why);
    if (!r)
        exit(1);
    return r;
}

static bool holds(NetRoot *r, const char *key, const char *want, size_t n) {
    size_t bytes = 0;
    char *value = net_root_get(r, key, WAIT_MS, &bytes, why, sizeof why);
    bool same = value && bytes == n && !memcmp(value, want, n) && !value[n];
    free(value);
    return same;
}

// --- values ----------------------------------------------------------------------------------------

static void test_values(void) {
    NetRoot *r = serve("127.0.0.1:0"), *other = NULL;
    char *large = malloc(WIRE_VALUE_MAX + 1), key[WIRE_KEY_MAX + 2];
    size_t bytes;
    memset(large, 'x', WIRE_VALUE_MAX + 1);
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    expect(net_root_put(r, "a", "one\0two", 7, why, sizeof why) && holds(r, "a", "one\0two", 7), "values/bytes", why);
    expect(net_root_put(r, "a", "", 0, why, sizeof why) && holds(r, "a", "", 0), "values/again", why);
    expect(net_root_put(r, "b", large, WIRE_VALUE_MAX, why, sizeof why) && holds(r, "b", large, WIRE_VALUE_MAX), "values/large", why);
    expect(!net_root_put(r, "b", large, WIRE_VALUE_MAX + 1, why, sizeof why), "values/too-large", "taken");
    expect(!net_root_put(r, key, "", 0, why, sizeof why) && !net_root_put(r, "", "", 0, why, sizeof why), "values/bad-key", "taken");
    expect(!net_root_get(r, "none", 1, &bytes, why, sizeof why) && strstr(why, "knows no none"), "values/none", why);
    expect(holds(r, "b", large, WIRE_VALUE_MAX), "values/after-all-that", why);
    expect(net_root_open(net_root_at(r), SECRET, true, WAIT_MS, &other, why, sizeof why), "values/served-already", why);
    expect(other && holds(other, "a", "", 0), "values/of-another", why);
    net_root_close(other);
    expect(!net_root_open(net_root_at(r), "", false, WAIT_MS, &other, why, sizeof why) && strstr(why, "OTRN_SECRET"), "values/no-secret", why);
    expect(!net_root_open(net_root_at(r), "other", false, WAIT_MS, &other, why, sizeof why) && strstr(why, "secret"), "values/other-secret", why);
    expect(!net_root_open("nonsense", SECRET, false, 1, &other, why, sizeof why) && strstr(why, "HOST:PORT"), "values/no-port", why);
    free(large);
    net_root_close(r);
}

static void test_six(void) {
    NetRoot *r = NULL;
    if (!net_root_open("[::1]:0", SECRET, true, WAIT_MS, &r, why, sizeof why)) {
        printf("skipped: no IPv6 here (%s)\n", why);
        return;
    }
    expect(net_root_put(r, "a", "6", 1, why, sizeof why) && holds(r, "a", "6", 1), "root/ipv6", why);
    net_root_close(r);
    NetAddr four, mapped;
    char text[64] = "";
    expect(addr_parse("10.1.2.3", 5, &four) && addr_print(&four, text, sizeof text) && !strcmp(text, "10.1.2.3"), "root/ipv4", text);
    expect(addr_parse("::ffff:10.1.2.3", 5, &mapped) && addr_print(&mapped, text, sizeof text) && !strcmp(text, "10.1.2.3"),
           "root/ipv4-in-ipv6", text);
}

// --- a port that is taken --------------------------------------------------------------------------

typedef struct Other { // another program, which listens
    Door door;
    char at[32];
    const char *says; // to who calls; NULL: it hangs up
    int calls;        // it answers before it ends; 0: all
    bool ends;
    pthread_t thread;
} Other;

static void *other_main(void *arg) {
    Other *o = arg;
    int kept[64], n = 0;
    for (int i = 0; n < 64 && (!o->calls || i < o->calls); i++) {
        struct pollfd p = {.fd = o->door.listener, .events = POLLIN};
        while (!__atomic_load_n(&o->ends, __ATOMIC_ACQUIRE) && poll(&p, 1, 10) == 0)
            ;
        int fd = accept(o->door.listener, NULL, NULL);
        if (fd < 0)
            break;
        if (!o->says || send(fd, o->says, strlen(o->says), MSG_NOSIGNAL) < 0)
            close(fd);
        else
            kept[n++] = fd;
    }
    while (n)
        close(kept[--n]);
    close(o->door.listener);
    return NULL;
}

static void other_start(Other *o) {
    NetAddr any;
    o->door.listener = -1;
    expect(addr_parse("127.0.0.1", 0, &any) && door_listen(&o->door, &any), "taken/listen", "it cannot");
    snprintf(o->at, sizeof o->at, "127.0.0.1:%u", door_port(&o->door));
    pthread_create(&o->thread, NULL, other_main, o);
}

static void other_end(Other *o) {
    __atomic_store_n(&o->ends, true, __ATOMIC_RELEASE);
    pthread_join(o->thread, NULL);
}

// The first process and another, when a program that is no root listens there.
static void taken(const char *name, const char *says, unsigned timeout_ms) {
    for (int serve = 0; serve < 2; serve++) {
        Other o = {.says = says};
        NetRoot *r = NULL;
        other_start(&o);
        bool opened = net_root_open(o.at, SECRET, serve, timeout_ms, &r, why, sizeof why);
        const char *word = serve ? "taken by another program" : "answered by another program";
        expect(!opened && strstr(why, word) && strstr(why, o.at) && strstr(why, "OTRN_ROOT"), name, why);
        other_end(&o);
    }
}

static void test_taken(void) {
    taken("taken/it-greets", "SSH-2.0-x\r\n", WAIT_MS);
    taken("taken/it-hangs-up", NULL, 200);
    taken("taken/it-is-silent", "", 200);
    NetRoot *r = serve("127.0.0.1:0"), *again = NULL;
    expect(!net_root_open(net_root_at(r), "another", true, WAIT_MS, &again, why, sizeof why) && strstr(why, "taken by another job"),
           "taken/another-job", why);
    net_root_close(r);
    Other o = {.calls = 1};
    other_start(&o);
    expect(net_root_open(o.at, SECRET, true, WAIT_MS, &again, why, sizeof why), "taken/until-it-ends", why);
    other_end(&o);
    net_root_close(again);
}

// Root may listen everywhere, and so may all where the system says so: then there is nothing to see.
static void test_low_port(void) {
    NetRoot *r = NULL;
    if (!geteuid() && seteuid(65534)) {
        printf("skipped: rights cannot be given up here\n");
        return;
    }
    bool ok = net_root_open("127.0.0.1:1", SECRET, true, WAIT_MS, &r, why, sizeof why);
    expect(ok || (strstr(why, "cannot listen at 127.0.0.1:1") && strstr(why, "below 1024")), "taken/low-port", why);
    net_root_close(r);
    if (!getuid() && seteuid(0))
        exit(1);
}

// --- waiting ---------------------------------------------------------------------------------------

typedef struct Waiter {
    const char *at;
    bool ok;
    pthread_t thread;
} Waiter;

static void *waiter_main(void *arg) {
    Waiter *w = arg;
    char text[NET_WHY_BYTES];
    NetRoot *r = NULL;
    size_t bytes;
    if (!net_root_open(w->at, SECRET, false, WAIT_MS, &r, text, sizeof text) || !net_root_put(r, "ready", "", 0, text, sizeof text))
        return NULL;
    char *value = net_root_get(r, "late", WAIT_MS, &bytes, text, sizeof text);
    w->ok = value && !strcmp(value, "came");
    free(value);
    net_root_close(r);
    return NULL;
}

static void test_waiting(void) {
    NetRoot *r = serve("127.0.0.1:0");
    Waiter w[8];
    for (int i = 0; i < 8; i++) {
        w[i] = (Waiter){.at = net_root_at(r)};
        pthread_create(&w[i].thread, NULL, waiter_main, &w[i]);
    }
    bool ok = holds(r, "ready", "", 0) && net_root_put(r, "late", "came", 4, why, sizeof why);
    for (int i = 0; i < 8; i++) {
        pthread_join(w[i].thread, NULL);
        ok = ok && w[i].ok;
    }
    expect(ok, "root/waiting", why);
    net_root_close(r);
}

// --- a world meets ---------------------------------------------------------------------------------

enum { WORLD = 4 };
typedef struct Proc {
    uint32_t me;
    const char *at, *generation;
    bool ok;
    char why[NET_WHY_BYTES];
    pthread_barrier_t *barrier;
    pthread_t thread;
} Proc;

static void *proc_main(void *arg) {
    Proc *p = arg;
    NetRoot *r = NULL;
    Net *net = NULL;
    NetSelf self = {.process = p->me, .processes = WORLD, .devices = 1, .release = "1", .chip = "trn2", .secret = SECRET,
                    .generation = p->generation, .timeout_ms = WAIT_MS};
    if (net_root_open(p->at, SECRET, false, WAIT_MS, &r, p->why, sizeof p->why)) {
        NetKv kv = net_root_kv(r);
        p->ok = net_open(&self, &kv, &net, p->why, sizeof p->why);
    }
    pthread_barrier_wait(p->barrier);
    net_close(net);
    net_root_close(r);
    return NULL;
}

static void world(const char *at, const char *generation, const char *name) {
    Proc procs[WORLD];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, WORLD);
    for (uint32_t i = 0; i < WORLD; i++) {
        procs[i] = (Proc){.me = i, .at = at, .generation = generation, .barrier = &barrier};
        pthread_create(&procs[i].thread, NULL, proc_main, &procs[i]);
    }
    for (uint32_t i = 0; i < WORLD; i++) {
        pthread_join(procs[i].thread, NULL);
        expect(procs[i].ok, name, procs[i].why);
    }
    pthread_barrier_destroy(&barrier);
}

// --- strangers -------------------------------------------------------------------------------------

static int dial(const char *at) {
    NetAddr a;
    int fd = -1;
    if (addr_find(at, &a, 1, why, sizeof why) && (fd = socket(AF_INET, SOCK_STREAM, 0)) >= 0 &&
        connect(fd, &a.any, sizeof a.v4)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

enum { STRANGERS = 10000, KEPT = 300 };
typedef struct Crowd {
    const char *at;
    int called;
    pthread_t thread;
} Crowd;

// Silence, random bytes, half a hello, hellos without the secret; some stay.
static void *crowd_main(void *arg) {
    Crowd *crowd = arg;
    int kept[KEPT], nkept = 0;
    uint64_t seed = 1;
    for (int i = 0; i < STRANGERS; i++) {
        uint8_t bytes[WIRE_HELLO_BYTES];
        int fd = dial(crowd->at);
        if (fd < 0)
            continue;
        crowd->called++;
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)rng_next(&seed);
        if (i % 4 == 3)
            wire_put_hello(&(WireHello){.channel = CHANNEL_ROOT}, bytes);
        size_t n = i % 4 == 0 ? 0 : i % 4 == 2 ? 40 : sizeof bytes;
        if (n && send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n && i % 4 == 3 && send(fd, bytes, n, MSG_NOSIGNAL) < 0)
            crowd->called += 0; // it was sent away already
        if (i % 2 && nkept < KEPT)
            kept[nkept++] = fd;
        else
            close(fd);
    }
    for (int i = 0; i < nkept; i++)
        close(kept[i]);
    return NULL;
}

static void test_strangers(void) {
    NetRoot *r = serve("127.0.0.1:0");
    Crowd crowd = {.at = net_root_at(r)};
    pthread_create(&crowd.thread, NULL, crowd_main, &crowd);
    world(net_root_at(r), NULL, "strangers/a-world-meets-among-them");
    pthread_join(crowd.thread, NULL);
    char text[100];
    snprintf(text, sizeof text, "%d of %d", crowd.called, STRANGERS);
    expect(crowd.called > STRANGERS / 2, "strangers/called", text);
    expect(net_root_put(r, "a", "b", 1, why, sizeof why) && holds(r, "a", "b", 1), "strangers/it-goes-on", why);
    world(net_root_at(r), "1", "root/a-job-started-again-meets-at-the-same");
    net_root_close(r);
}

// --- clients that send what is no question ---------------------------------------------------------

static void test_damaged(void) {
    NetRoot *r = serve("127.0.0.1:0");
    Sha256 secret = sha256(SECRET, strlen(SECRET));
    NetAddr at;
    uint64_t seed = 2;
    bool all = addr_find(net_root_at(r), &at, 1, why, sizeof why) == 1;
    for (int i = 0; i < 1500 && all; i++) {
        uint8_t bytes[WIRE_ASK_BYTES + 64];
        DoorResult result;
        int fd = -1;
        for (int tries = 0; tries < 20 && fd < 0; tries++) // a loaded host may be slow to answer
            fd = door_call(&at, secret.at, (WireHello){.channel = CHANNEL_ROOT}, INT64_MAX, &result);
        all = fd >= 0;
        wire_put_ask(&(WireAsk){.kind = 1 + rng_below(&seed, 2), .key_bytes = 4, .value_bytes = 60, .timeout_ms = rng_below(&seed, 2) * 50},
                     bytes);
        for (size_t k = WIRE_ASK_BYTES; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)rng_next(&seed);
        for (uint32_t k = rng_below(&seed, 4); k > 0; k--)
            bytes[rng_below(&seed, WIRE_ASK_BYTES)] = (uint8_t)rng_next(&seed);
        if (all && send(fd, bytes, 1 + rng_below(&seed, sizeof bytes), MSG_NOSIGNAL) > 0 && i % 3 == 0)
            all = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) != 0; // and goes on before it has an answer
        if (fd >= 0)
            close(fd);
    }
    expect(all, "damaged/called", "one was not let in");
    expect(net_root_put(r, "a", "b", 1, why, sizeof why) && holds(r, "a", "b", 1), "damaged/it-goes-on", why);
    net_root_close(r);
}

int main(void) {
    alarm(ALARM_SECONDS);
    test_values();
    test_six();
    test_taken();
    test_low_port();
    test_waiting();
    test_strangers();
    test_damaged();
    return failures != 0;
}
