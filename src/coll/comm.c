// SPDX-License-Identifier: Apache-2.0
// comm.c — meetings and messages under one lock; see comm.h.
//
// A rank waits on a word of its own, and whoever lets it go on writes that word. So a rank that
// wakes late looks only at its own seat, never at a meeting that others may have ended long ago,
// and it needs no lock for that. Sleepers are woken behind the lock, for they would only wait for
// it.
//
//   1. Everything but the words is read and written under the lock; a seat's fields also by its
//   owner
//      once it was let go.
//   2. A meeting lives in the slot of the rank that opened it. That rank cannot open another before
//      all members have left, so one slot each is enough.
//   3. `waiting` counts ranks that only another rank's arrival (or message) can help: those in
//      incomplete meetings and in comm_recv. Ranks in comm_sync and comm_leave wait for members
//      that are at work. So when waiting + ended is everybody, nobody can help any more.
#define _GNU_SOURCE // syscall
#include "coll/comm_in.h"

#include <assert.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cpu.h"

// Looks at the word before a sleep, which costs tens of microseconds: first with pauses in between
// when there is a CPU for every rank, then giving the CPU to whoever wants it.
#define SPINS 500
#define YIELDS 50

typedef struct Name {
    char text[40];
} Name;

static Name name_of(const Comm *c, uint32_t seat) {
    Name n;
    if (c->cores == 1)
        snprintf(n.text, sizeof n.text, "device %u", seat);
    else if (c->n == c->cores)
        snprintf(n.text, sizeof n.text, "core %u", seat);
    else
        snprintf(n.text, sizeof n.text, "core %u of device %u", seat % c->cores, seat / c->cores);
    return n;
}

// --- waiting -----------------------------------------------------------------------------------

static void word_wait(CommRank *me) {
    int spins = me->comm->crowded ? 0 : SPINS;
    for (int i = 0; i < spins + YIELDS; i++) {
        if (atomic_load_explicit(&me->word, memory_order_acquire) == WORD_GO)
            return;
        if (i < spins)
            cpu_pause();
        else
            sched_yield();
    }
    uint32_t old = WORD_WAIT;
    atomic_compare_exchange_strong(&me->word, &old, WORD_ASLEEP);
    while (atomic_load_explicit(&me->word, memory_order_acquire) != WORD_GO)
        syscall(SYS_futex, &me->word, FUTEX_WAIT_PRIVATE, WORD_ASLEEP, NULL, NULL, 0);
}

// Gives up the lock and wakes those that were let go meanwhile. A rank that has woken by itself, or
// waits for something else by now, looks at its word and is not disturbed.
static void unlock_and_wake(Comm *c) {
    uint32_t n = c->nwake, ranks[COMM_SEATS_MAX];
    char why[COMM_WHY_BYTES];
    const CommWorld *tell = c->tell ? c->world : NULL;
    memcpy(ranks, c->wake, n * sizeof *ranks);
    c->nwake = 0;
    c->tell = false;
    if (tell)
        snprintf(why, sizeof why, "%s: %.400s", name_of(c, c->failed).text, c->ranks[c->failed].why);
    pthread_mutex_unlock(&c->lock);
    if (tell)
        net_launch_fail(tell->net, tell->launch, why);
    for (uint32_t i = 0; i < n; i++)
        syscall(SYS_futex, &c->ranks[ranks[i]].word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

// Gives up the lock and waits until some rank calls let_go.
static void wait_unlocked(CommRank *me, SeatState state) {
    me->state = state;
    atomic_store_explicit(&me->word, WORD_WAIT, memory_order_relaxed);
    unlock_and_wake(me->comm);
    word_wait(me);
}

static bool is_waiting(const CommRank *r) { // as rule 3 counts
    return r->state == SEAT_RECV || r->state == SEAT_MEETING;
}

// The last thing done to a seat: its owner may run from here on.
static void let_go(CommRank *r) {
    Comm *c = r->comm;
    c->waiting -= is_waiting(r);
    r->state = SEAT_BUSY;
    if (atomic_exchange(&r->word, WORD_GO) == WORD_ASLEEP)
        c->wake[c->nwake++] = r->rank;
}

// --- failing -----------------------------------------------------------------------------------

static uint32_t seat_at(const Seats *s, uint32_t i) { return s->at[i] * s->cores + s->core; }

static bool includes(const Meet *m, uint32_t seat) {
    for (uint32_t i = 0; i < m->members.n; i++)
        if (seat_at(&m->members, i) == seat)
            return true;
    return false;
}

// Releases everybody who waits for an arrival or a message; they find comm->failed set.
static void fail_all(Comm *c, uint32_t origin) {
    c->failed = origin;
    c->tell = c->world != NULL;
    for (uint32_t i = 0; i < c->n; i++) {
        CommRank *r = &c->ranks[i];
        if (!is_waiting(r))
            continue;
        r->meet = NULL;
        let_go(r);
    }
}

static const char *what_it_does(const CommRank *r, char *out, size_t bytes) {
    if (r->state == SEAT_ENDED)
        snprintf(out, bytes, "has ended");
    else if (r->state == SEAT_RECV && r->channel == COMM_INFEED)
        snprintf(out, bytes, "waits for infeed");
    else if (r->state == SEAT_RECV)
        snprintf(out, bytes, "waits for a message on channel %lld", (long long)r->channel);
    else
        snprintf(out, bytes, "waits in %s of %u %s", r->post->name, r->meet->members.n,
                 r->members.at == r->pair && r->comm->cores > 1 ? "cores" : "devices");
    return out;
}

// Rule 3. Tells what each of the first few ranks does.
static void check_deadlock(Comm *c) {
    if (!c->waiting || c->waiting + c->ended < c->here || c->failed != COMM_NONE)
        return;
    uint32_t origin = 0;
    while (!is_waiting(&c->ranks[origin]))
        origin++;
    char text[COMM_WHY_BYTES], one[160];
    size_t n = (size_t)snprintf(text, sizeof text, "this never completes: ");
    for (uint32_t i = 0; i < c->n && n + 200 < sizeof text; i++)
        if (c->ranks[i].state != SEAT_AWAY)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %s", text[n - 1] == ' ' ? "" : ", ", name_of(c, i).text,
                                  what_it_does(&c->ranks[i], one, sizeof one));
    memcpy(c->ranks[origin].why, text, sizeof text);
    fail_all(c, origin);
}

// A wait that rule 3 counts.
static void wait_for_help(CommRank *me, SeatState state) {
    me->state = state;
    me->comm->waiting++;
    check_deadlock(me->comm);
    if (me->state == state)
        wait_unlocked(me, state);
    else
        unlock_and_wake(me->comm);
}

// --- meetings ----------------------------------------------------------------------------------

static bool same_members(const Seats *a, const Seats *b) {
    return a->n == b->n && a->cores == b->cores && a->core == b->core && !memcmp(a->at, b->at, a->n * sizeof *a->at);
}

static bool same_op(const CommPost *a, const CommPost *b) {
    if (a->signature != b->signature || a->nbufs != b->nbufs ||
        (a->program == b->program && a->op != b->op))
        return false;
    for (uint32_t i = 0; i < a->nbufs; i++)
        if (a->bufs[i].in_bytes != b->bufs[i].in_bytes)
            return false;
    return true;
}

// The meeting to join, NULL when there is none yet. *clash: a member that waits for me at another
// one, so that neither can go on.
static Meet *find_meet(CommRank *me, const CommPost *post, const Seats *members, const CommRank **clash) {
    Meet *found = NULL;
    for (uint32_t i = 0; i < members->n && !*clash; i++) {
        const CommRank *r = &me->comm->ranks[seat_at(members, i)];
        if (r->state != SEAT_MEETING || r->meet == found || !includes(r->meet, me->rank))
            continue;
        if (same_members(&r->meet->members, members) && same_op(r->post, post))
            found = r->meet;
        else
            *clash = r;
    }
    return found;
}

// Lets those members go on that wait in this state. The meeting must not be looked at any more once
// its opener may run: hence the list of our own.
static void release(CommRank *me, SeatState state) {
    for (uint32_t i = 0; i < me->members.n; i++) {
        CommRank *r = &me->comm->ranks[seat_at(&me->members, i)];
        if (r->state == state)
            let_go(r);
    }
}

static bool fail_here(CommRank *me) {
    fail_all(me->comm, me->rank);
    unlock_and_wake(me->comm);
    return false;
}

static uint32_t members_away(const Comm *c, const Seats *s) {
    uint32_t away = 0;
    for (uint32_t i = 0; c->world && i < s->n; i++)
        away += c->ranks[seat_at(s, i)].state == SEAT_AWAY;
    return away;
}

static bool meet(CommRank *me, const CommPost *post, Seats members) {
    Comm *c = me->comm;
    pthread_mutex_lock(&c->lock);
    assert(!me->meet);
    const CommRank *clash = NULL;
    if (c->failed != COMM_NONE) {
        pthread_mutex_unlock(&c->lock);
        return false;
    }
    Meet *m = find_meet(me, post, &members, &clash);
    if (clash) {
        snprintf(
            me->why, sizeof me->why,
            "%s is at %s while %s waits for it in %s: every device of a group must "
            "reach the same collectives in the same order",
            name_of(c, me->rank).text, post->name, name_of(c, clash->rank).text, clash->post->name);
        return fail_here(me);
    }
    if (!m) {
        m = &me->slot;
        *m = (Meet){.members = members, .local = members.n - members_away(c, &members)};
    }
    me->meet = m;
    me->post = post;
    me->members = members;
    if (++m->here < m->local) {
        wait_for_help(me, SEAT_MEETING);
    } else {
        m->leader = me;
        release(me, SEAT_MEETING);
        unlock_and_wake(c);
    }
    return me->meet != NULL;
}

bool comm_meet(CommRank *me, const CommPost *post, const uint32_t *members, uint32_t n) {
    uint32_t cores = me->comm->cores;
    return meet(me, post, (Seats){members, n, cores, me->rank % cores});
}

bool comm_has_pair(const CommRank *me) {
    return me->pair[1] < me->comm->n;
}

bool comm_meet_pair(CommRank *me, const CommPost *post) {
    if (me->comm->ranks[me->pair[0]].away || me->comm->ranks[me->pair[1]].away) {
        snprintf(me->why, sizeof me->why, "its pair is in another process");
        return false;
    }
    return meet(me, post, (Seats){me->pair, 2, 1, 0});
}

const CommPost *comm_post(const CommRank *me, uint32_t position) {
    assert(me->meet);
    assert(position < me->members.n);
    assert(!me->comm->ranks[seat_at(&me->members, position)].away);
    return me->comm->ranks[seat_at(&me->members, position)].post;
}

bool comm_sync(CommRank *me) {
    Comm *c = me->comm;
    pthread_mutex_lock(&c->lock);
    Meet *m = me->meet;
    me->cut_off = m->broken;
    if (!m->broken && ++m->synced < m->local) {
        wait_unlocked(me, SEAT_SYNC);
        return !me->cut_off;
    }
    if (!m->broken) {
        m->synced = 0;
        release(me, SEAT_SYNC);
    }
    unlock_and_wake(c);
    return !me->cut_off;
}

static void leave_and_unlock(CommRank *me) {
    Meet *m = me->meet;
    if (++m->leaving < m->local) {
        wait_unlocked(me, SEAT_LEAVE);
    } else {
        release(me, SEAT_LEAVE);
        unlock_and_wake(me->comm);
    }
    me->meet = NULL;
    me->post = NULL;
}

void comm_leave(CommRank *me) {
    pthread_mutex_lock(&me->comm->lock);
    leave_and_unlock(me);
}

// --- other processes ---------------------------------------------------------------------------

void *comm_room(CommRank *me, size_t bytes) {
    if (me->room_bytes < bytes) {
        free(me->room);
        me->room_bytes = (bytes + 4095) & ~(size_t)4095;
        me->room = aligned_alloc(64, me->room_bytes);
    }
    if (!me->room)
        me->room_bytes = 0, snprintf(me->why, sizeof me->why, "no memory for %zu bytes from other processes", bytes);
    return me->room;
}

static void where(const void *arg, char *out, size_t bytes) {
    const CommPost *p = arg;
    out[0] = 0;
    if (p->where)
        p->where(p, out, bytes);
}

static void set_state(CommRank *me, SeatState state) {
    pthread_mutex_lock(&me->comm->lock);
    me->state = state;
    pthread_mutex_unlock(&me->comm->lock);
}

bool comm_talk(CommRank *me, const NetMsg *out, uint32_t nout, const NetMsg *in, uint32_t nin) {
    const CommWorld *w = me->comm->world;
    const Seats *s = &me->members;
    uint64_t key[3] = {w->launch->set, w->launch->number, s->core};
    NetCall call = {.launch = w->launch, .tag = hash64(hash64(0, key, sizeof key), s->at, s->n * sizeof *s->at),
                    .sign = me->post->signature, .op = me->post->name, .where = where, .arg = me->post};
    set_state(me, SEAT_TALKS);
    bool ok = net_exchange(w->net, &call, out, nout, in, nin, me->why, sizeof me->why);
    set_state(me, SEAT_BUSY);
    return ok;
}

bool comm_stuck(void *comm) {
    Comm *c = comm;
    uint32_t talk = 0, busy = 0;
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < c->n; i++) {
        talk += c->ranks[i].state == SEAT_TALKS;
        busy += c->ranks[i].state == SEAT_BUSY;
    }
    pthread_mutex_unlock(&c->lock);
    return talk && !busy;
}

// --- messages ----------------------------------------------------------------------------------

static bool wants(const CommRank *r, const Message *m) {
    return r->state == SEAT_RECV && r->channel == m->channel && r->from == m->from;
}

static void deliver(Comm *c, Message *m) {
    for (uint32_t i = 0; i < c->n; i++)
        if (wants(&c->ranks[i], m)) {
            c->ranks[i].got = m;
            let_go(&c->ranks[i]);
            return;
        }
    *c->last = m;
    c->last = &m->next;
    c->queued_bytes += m->bytes;
}

static Message *take_message(Comm *c, int64_t channel, uint32_t from) {
    for (Message **at = &c->first; *at; at = &(*at)->next) {
        Message *m = *at;
        if (m->channel != channel || m->from != from)
            continue;
        *at = m->next;
        if (c->last == &m->next)
            c->last = at;
        c->queued_bytes -= m->bytes;
        return m;
    }
    return NULL;
}

static size_t bufs_bytes(const CommBuf *bufs, uint32_t n) {
    size_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        if (__builtin_add_overflow(total, bufs[i].in_bytes, &total))
            return SIZE_MAX;
    return total;
}

bool comm_send(CommRank *me, int64_t channel, uint32_t from, const CommBuf *bufs, uint32_t n) {
    Comm *c = me->comm;
    size_t bytes = bufs_bytes(bufs, n), at = 0;
    Message *m = bytes <= COMM_QUEUED_BYTES_MAX ? malloc(sizeof *m + bytes) : NULL;
    if (m) {
        *m = (Message){.channel = channel, .from = from, .bytes = bytes};
        for (uint32_t i = 0; i < n; at += bufs[i++].in_bytes)
            if (bufs[i].in_bytes)
                memcpy(m->data + at, bufs[i].in, bufs[i].in_bytes);
    }
    pthread_mutex_lock(&c->lock);
    if (c->failed != COMM_NONE) {
        pthread_mutex_unlock(&c->lock);
        free(m);
        return false;
    }
    if (!m || c->queued_bytes + bytes > COMM_QUEUED_BYTES_MAX) {
        free(m);
        snprintf(me->why, sizeof me->why, "no room for a message of %zu bytes", bytes);
        return fail_here(me);
    }
    deliver(c, m);
    unlock_and_wake(c);
    return true;
}

// Messages do not leave the process. One that would have to come from another is not waited for, and nor is one from anybody.
static bool comes_from_afar(const Comm *c, int64_t channel, uint32_t from) {
    const CommWorld *w = c->world;
    return w && channel != COMM_INFEED && (from == COMM_ANY || w->process[from] != net_me(w->net));
}

bool comm_recv(CommRank *me, int64_t channel, uint32_t from, const CommBuf *bufs, uint32_t n) {
    Comm *c = me->comm;
    pthread_mutex_lock(&c->lock);
    if (c->failed == COMM_NONE && comes_from_afar(c, channel, from)) {
        snprintf(me->why, sizeof me->why, "stablehlo.recv of a message from another process is not supported; collective_permute is");
        return fail_here(me);
    }
    me->got = c->failed == COMM_NONE ? take_message(c, channel, from) : NULL;
    if (!me->got && c->failed == COMM_NONE) {
        me->channel = channel;
        me->from = from;
        wait_for_help(me, SEAT_RECV);
    } else {
        pthread_mutex_unlock(&c->lock);
    }
    Message *m = me->got;
    if (m && m->bytes != bufs_bytes(bufs, n)) {
        pthread_mutex_lock(&c->lock);
        snprintf(me->why, sizeof me->why, "a message of %zu bytes where %zu are expected", m->bytes,
                 bufs_bytes(bufs, n));
        free(m);
        return fail_here(me);
    }
    size_t at = 0;
    for (uint32_t i = 0; m && i < n; at += bufs[i++].in_bytes)
        if (bufs[i].in_bytes)
            memcpy(bufs[i].out, m->data + at, bufs[i].in_bytes);
    free(m);
    return m != NULL;
}

// --- ends --------------------------------------------------------------------------------------

static void end_locked(CommRank *me) {
    if (me->state != SEAT_ENDED) {
        me->state = SEAT_ENDED;
        me->comm->ended++;
        check_deadlock(me->comm);
    }
    unlock_and_wake(me->comm);
}

void comm_end(CommRank *me) {
    pthread_mutex_lock(&me->comm->lock);
    assert(!me->meet);
    end_locked(me);
}

void comm_fail(CommRank *me, const char *why) {
    Comm *c = me->comm;
    pthread_mutex_lock(&c->lock);
    if (!me->why[0] && why)
        snprintf(me->why, sizeof me->why, "%s", why);
    if (c->failed == COMM_NONE && me->state != SEAT_ENDED)
        fail_all(c, me->rank);
    if (me->meet) {
        me->meet->broken = true;
        for (uint32_t i = 0; i < me->members.n; i++) {
            CommRank *r = &c->ranks[seat_at(&me->members, i)];
            if (r->state == SEAT_SYNC)
                r->cut_off = true;
        }
        release(me, SEAT_SYNC);
        leave_and_unlock(me);
        pthread_mutex_lock(&c->lock);
    }
    end_locked(me);
}

uint32_t comm_failed(const Comm *c) {
    return c->failed;
}

const char *comm_why(CommRank *me) {
    pthread_mutex_lock(&me->comm->lock);
    if (!me->why[0] && me->comm->failed != COMM_NONE)
        snprintf(me->why, sizeof me->why, "%s failed", name_of(me->comm, me->comm->failed).text);
    pthread_mutex_unlock(&me->comm->lock);
    return me->why;
}

Grid comm_grid(const CommRank *me) {
    return me->comm->grid;
}
uint32_t comm_number(const CommRank *me) {
    return me->rank / me->comm->cores;
}
uint32_t comm_core(const CommRank *me) {
    return me->rank & 1;
}
CommRank *comm_rank(Comm *c, uint32_t seat) {
    return &c->ranks[seat];
}

// --- making ------------------------------------------------------------------------------------

Comm *comm_make(Grid grid, uint32_t cores) {
    assert(grid_ok(grid.replicas, grid.partitions));
    assert(cores == 1 || cores == 2);
    Comm *c = calloc(1, sizeof *c);
    uint32_t n = grid_ranks(grid) * cores;
    CommRank *ranks = aligned_alloc(64, n * sizeof *ranks);
    if (!c || !ranks) {
        free(c);
        free(ranks);
        return NULL;
    }
    memset(ranks, 0, n * sizeof *ranks);
    *c = (Comm){.grid = grid, .cores = cores, .n = n, .here = n, .ranks = ranks, .cpus = cpu_count()};
    pthread_mutex_init(&c->lock, NULL);
    for (uint32_t i = 0; i < n; i++) {
        ranks[i].comm = c;
        ranks[i].rank = i;
        ranks[i].pair[0] = i & ~1u, ranks[i].pair[1] = i | 1u;
    }
    comm_reset(c);
    return c;
}

static void messages_free(Comm *c) {
    for (Message *m = c->first, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    c->first = NULL;
    c->last = &c->first;
    c->queued_bytes = 0;
}

void comm_reset(Comm *c) {
    messages_free(c);
    c->waiting = c->ended = 0;
    c->failed = COMM_NONE;
    c->world = NULL;
    c->here = c->n;
    c->crowded = (int)c->n > c->cpus;
    for (uint32_t i = 0; i < c->n; i++) {
        assert(!c->ranks[i].meet);
        c->ranks[i].state = SEAT_BUSY;
        c->ranks[i].why[0] = 0;
    }
}

void comm_spread(Comm *c, const CommWorld *w) {
    c->world = w;
    c->here = 0;
    uint32_t near = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        bool here = w->process[i / c->cores] == net_me(w->net);
        c->ranks[i].away = !here;
        c->ranks[i].state = here ? SEAT_BUSY : SEAT_AWAY;
        c->here += here;
        near += net_is_near(w->net, w->process[i / c->cores]);
    }
    c->crowded = (int)near > c->cpus;
}

void comm_free(Comm *c) {
    if (!c)
        return;
    messages_free(c);
    pthread_mutex_destroy(&c->lock);
    for (uint32_t i = 0; i < c->n; i++)
        free(c->ranks[i].room);
    free(c->ranks);
    free(c);
}
