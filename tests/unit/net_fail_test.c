// SPDX-License-Identifier: Apache-2.0
// net_fail_test.c — processes as threads, and some as processes: what becomes of the others when one fails, waits, leaves or dies.
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "tests/unit/net_procs.h"

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

static void test_way(const char *way) {
    if (strcmp(way, "sockets")) // the system may hold all of it
        test_withdrawn(way);
    test_mismatch(way);
    test_leaving(way);
    test_last_words(way);
    test_unasked(way);
}

int main(void) {
    alarm(ALARM_SECONDS);
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
    test_dead("sockets");
    test_late("sockets");
    test_late_beside("sockets");
    test_late_beside("auto");
    test_recv();
    return failures != 0;
}
