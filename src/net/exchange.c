// SPDX-License-Identifier: Apache-2.0
// exchange.c — messages: sent from and received into the caller's memory; see net_in.h.
//
// All under one lock. Who exchanges moves bytes of every message there is, its own and others'; when nothing moves one thread
// polls for all, and the rest sleep until it has moved something of theirs. Nothing here ever waits inside a read or write, so
// two processes that send to each other both get on.
//
// A message goes straight into the memory of who asked for it, or, when nobody did yet, into memory of its own. One whose
// launch failed is still read, into nothing, so that the next begins where it should. One that does not fit into a ring, to a process
// that may read our memory, is only offered (direct.c): who asks for it reads it, without the lock, and it is sent once it was taken.
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/now.h"
#include "base/pulse.h"
#include "net/net_in.h"

// Looks before a sleep, which costs tens of microseconds: first with pauses in between when there is a CPU for every process of the
// host, then giving the CPU to whoever wants it.
#define SPINS 300
#define YIELDS 50
#define POLL_MS 100 // between looks at whether the run is to end
#define BLIND_MS 1  // where the network's card cannot be slept on
#define FEW 16      // messages of an exchange that need no memory
#define UNREAD_MS 5000 // until a process whose memory cannot be read is known to be gone, or to have failed

// --- segments ------------------------------------------------------------------------------------

static uint64_t segs_bytes(const NetSeg *segs, uint32_t n) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += segs[i].bytes;
    return total;
}

static void cursor_fill(Cursor *c, const uint8_t *from, size_t n) {
    while (n) {
        size_t room;
        void *to = cursor_at(c, &room);
        room = room < n ? room : n;
        memcpy(to, from, room);
        cursor_move(c, room);
        from += room;
        n -= room;
    }
}

// --- bytes ---------------------------------------------------------------------------------------

static void bell(Peer *p) {
    if (ring_asleep(p->rings.out) && send(p->fd[CHANNEL_DATA], "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; // it has bells enough, or is gone, which its control connection tells
}

// Some of the bytes; 0: not now, -1: never.
static ssize_t push_bytes(Peer *p, const void *from, size_t n, bool more) {
    if (p->link)
        return (ssize_t)link_write(p->link, from, n);
    if (p->rings.out) {
        size_t k = ring_write(p->rings.out, from, n);
        if (k)
            bell(p);
        return (ssize_t)k;
    }
    ssize_t k = send(p->fd[CHANNEL_DATA], from, n, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
    return k < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : k;
}

static ssize_t pull_bytes(Peer *p, void *to, size_t n) {
    if (p->link)
        return (ssize_t)link_read(p->link, to, n);
    if (p->rings.in) {
        size_t k = ring_read(p->rings.in, to, n);
        if (k)
            bell(p);
        return (ssize_t)k;
    }
    ssize_t k = recv(p->fd[CHANNEL_DATA], to, n, MSG_DONTWAIT);
    if (k < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return k > 0 ? k : -1;
}

// --- out -----------------------------------------------------------------------------------------

static void one_done(Net *n, Exchange *x) { // a message of it
    x->left--;
    x->moves++;
    n->moves++;
}

static void push_done(Net *n, Peer *p) {
    Push *m = p->first;
    p->first = m->next;
    if (!p->first)
        p->last = &p->first;
    if (m->x && m->offer) {
        m->next = p->offered;
        p->offered = m;
        return;
    }
    if (m->x) {
        one_done(n, m->x);
        return;
    }
    free(m->own.data);
    free(m);
}

static bool push_some(Net *n, Peer *p) {
    bool moved = false;
    while (p->first && !p->gone) {
        Push *m = p->first;
        ssize_t k;
        size_t room;
        if (m->head_at < WIRE_HEAD_BYTES) {
            k = push_bytes(p, m->head + m->head_at, WIRE_HEAD_BYTES - m->head_at, !cursor_done(&m->body));
            m->head_at += k > 0 ? (size_t)k : 0;
        } else if (!cursor_done(&m->body)) {
            const void *at = cursor_at(&m->body, &room);
            k = push_bytes(p, at, room, false);
            if (k > 0)
                cursor_move(&m->body, (size_t)k);
            if (k > 0 && m->x)
                m->x->moves++;
        } else {
            push_done(n, p);
            moved = true;
            continue;
        }
        if (k <= 0)
            break; // a broken connection is the control thread's to tell
        moved = true;
    }
    if (p->link && !p->gone)
        link_flush(p->link);
    return moved;
}

static bool some_taken(const Peer *p) {
    for (const Push *m = p->offered; m; m = m->next)
        if (offer_taken(p->rings.out, m->offer))
            return true;
    return false;
}

static bool offers_done(Net *n, Peer *p) {
    bool moved = false;
    for (Push **at = &p->offered; *at;) {
        Push *m = *at;
        if (!offer_taken(p->rings.out, m->offer)) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        offer_end(p->rings.out, m->offer);
        one_done(n, m->x);
        moved = true;
    }
    return moved;
}

// --- in ------------------------------------------------------------------------------------------

static const char *or_dash(const char *s) { return *s ? s : "a program"; }

static void fail_locked(Net *n, Exchange *x, const char *why) {
    if (x->failed)
        return;
    x->failed = true;
    snprintf(x->why, sizeof x->why, "%s", why);
    net_wake_locked(n);
}

// False: the message is not what this exchange is for, which is an error that names both.
static bool fits(Net *n, uint32_t from, const WireHead *h, Exchange *x, uint64_t bytes) {
    const NetCall *c = x->call;
    const NetProcess *p = &n->peers[from].who;
    char why[NET_WHY_BYTES];
    if (h->program != c->launch->program)
        snprintf(why, sizeof why,
                 "process %u (host %s, pid %ld) runs %s where this one, process %u, runs %s, at %s here and %s there: every process "
                 "must launch the same programs in the same order",
                 from, p->host, p->pid, or_dash(h->name), n->me, or_dash(c->launch->name), c->op, h->op);
    else if (h->sign != c->sign || h->bytes != bytes)
        snprintf(why, sizeof why,
                 "process %u (host %s, pid %ld) is at %s of %s with %llu bytes while this one, process %u, is at %s with %llu: "
                 "every device of a group must reach the same collectives in the same order",
                 from, p->host, p->pid, h->op, or_dash(h->name), (unsigned long long)h->bytes, n->me, c->op,
                 (unsigned long long)bytes);
    else
        return true;
    fail_locked(n, x, why);
    return false;
}

static void want_drop(Peer *p, Want *w) {
    Want **at = &p->wants;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
}

static void want_offered(Want *w, const WireHead *h) {
    w->head = *h;
    w->next = w->x->offers;
    w->x->offers = w;
}

// Where the message that begins goes. A program that differs is found even when its groups do not match ours.
static bool place_message(Net *n, uint32_t from) {
    Peer *p = &n->peers[from];
    const WireHead *h = &p->head;
    p->want = NULL;
    p->arrival = NULL;
    p->body_have = 0;
    for (Exchange *x = n->active; x; x = x->next)
        if (h->set == x->call->launch->set && h->number == x->call->launch->number && h->program != x->call->launch->program)
            fits(n, from, h, x, 0);
    for (Want *w = p->wants; w && !p->want; w = w->next)
        if (w->x->call->tag == h->tag) {
            if (!fits(n, from, h, w->x, w->bytes))
                return true;
            p->want = w;
        }
    if (p->want) {
        want_drop(p, p->want);
        if (h->kind == WIRE_OFFER) {
            want_offered(p->want, h);
            p->want = NULL;
        }
        return true;
    }
    Arrival *a = calloc(1, sizeof *a), **last = &p->arrivals;
    if (a && h->kind == WIRE_DATA && h->bytes && !(a->seg.data = malloc((size_t)h->bytes))) {
        free(a);
        a = NULL;
    }
    if (!a) {
        net_gone_locked(n, from, "sent a message for which there is no memory");
        return false;
    }
    a->head = *h;
    a->seg.bytes = (size_t)h->bytes;
    while (*last)
        last = &(*last)->next;
    *last = p->arrival = a;
    return true;
}

static void message_done(Net *n, Peer *p) {
    if (p->want)
        one_done(n, p->want->x);
    if (p->arrival)
        p->arrival->whole = true;
    p->want = NULL;
    p->arrival = NULL;
    p->head_have = 0;
}

static ssize_t pull_body(Peer *p) {
    char sink[4096];
    uint64_t left = p->head.bytes - p->body_have;
    size_t room = left < sizeof sink ? (size_t)left : sizeof sink;
    void *to = sink;
    if (p->want)
        to = cursor_at(&p->want->body, &room);
    else if (p->arrival)
        to = (char *)p->arrival->seg.data + p->body_have, room = (size_t)left;
    ssize_t k = pull_bytes(p, to, room);
    if (k > 0 && p->want) {
        cursor_move(&p->want->body, (size_t)k);
        p->want->x->moves++;
    }
    p->body_have += k > 0 ? (uint64_t)k : 0;
    return k;
}

static bool pull_some(Net *n, uint32_t from) {
    Peer *p = &n->peers[from];
    bool moved = false;
    while (!p->gone) {
        ssize_t k;
        if (p->head_have < WIRE_HEAD_BYTES) {
            k = pull_bytes(p, p->head_bytes + p->head_have, WIRE_HEAD_BYTES - p->head_have);
            p->head_have += k > 0 ? (size_t)k : 0;
            if (p->head_have == WIRE_HEAD_BYTES) {
                if (!wire_get(p->head_bytes, from, true, &p->head) || (p->head.kind == WIRE_OFFER && !p->direct.reads))
                    net_gone_locked(n, from, "sent what is no message");
                else
                    place_message(n, from);
            }
        } else if (p->head.kind == WIRE_DATA && p->body_have < p->head.bytes) {
            k = pull_body(p);
        } else {
            message_done(n, p);
            moved = true;
            continue;
        }
        if (k <= 0)
            break;
        moved = true;
    }
    if (moved)
        p->heard_ms = now_ms(); // its heartbeats may be behind what it sends, in a slow network
    return moved;
}

void exchange_drain_locked(Net *n, uint32_t process) {
    bool moved = true;
    while (moved) {
        moved = n->fabric && fabric_move(n->fabric);
        moved |= pull_some(n, process);
    }
    if (n->peers[process].link)
        link_tell(n->peers[process].link);
}

// --- asking --------------------------------------------------------------------------------------

static void arrival_free(Peer *p, Arrival *a) {
    Arrival **at = &p->arrivals;
    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    if (p->arrival == a)
        p->arrival = NULL;
    free(a->seg.data);
    free(a);
}

void exchange_forget_locked(Net *n, const NetLaunch *l) {
    for (uint32_t i = 0; i < n->n; i++) {
        Peer *p = &n->peers[i];
        for (Arrival *a = p->arrivals, *next; a; a = next) {
            next = a->next;
            if (!l || (a->head.set == l->set && a->head.number < l->number))
                arrival_free(p, a);
        }
        for (Push *m; !l && (m = p->first);)
            push_done(n, p);
    }
}

static void ask(Net *n, const NetMsg *msg, Exchange *x, Want *w) {
    Peer *p = &n->peers[msg->process];
    *w = (Want){.x = x, .bytes = segs_bytes(msg->segs, msg->nsegs), .peer = p};
    cursor_init(&w->body, msg->segs, msg->nsegs);
    for (Arrival *a = p->arrivals; a; a = a->next) {
        const NetLaunch *l = x->call->launch;
        bool other = a->head.set == l->set && a->head.number == l->number && a->head.program != l->program;
        if (a->head.tag != x->call->tag && !other)
            continue;
        if (!fits(n, msg->process, &a->head, x, w->bytes))
            return;
        if (a->head.kind == WIRE_OFFER) {
            want_offered(w, &a->head);
            arrival_free(p, a);
            return;
        }
        cursor_fill(&w->body, a->seg.data, a->whole ? a->seg.bytes : (size_t)p->body_have);
        if (a->whole)
            x->left--;
        else
            p->want = w; // the rest goes where it belongs
        arrival_free(p, a);
        return;
    }
    Want **last = &p->wants;
    while (*last)
        last = &(*last)->next;
    *last = w;
}

static void post(Net *n, const NetMsg *msg, Exchange *x, Push *m) {
    const NetCall *c = x->call;
    Peer *p = &n->peers[msg->process];
    WireHead h = {.kind = WIRE_DATA, .from = n->me, .bytes = segs_bytes(msg->segs, msg->nsegs), .tag = c->tag,
                  .set = c->launch->set, .number = c->launch->number, .program = c->launch->program, .sign = c->sign};
    snprintf(h.name, sizeof h.name, "%s", c->launch->name);
    snprintf(h.op, sizeof h.op, "%s", c->op);
    *m = (Push){.x = x};
    if (p->direct.is_read && !c->unasked && h.bytes >= RING_BYTES && (m->offer = offer_make(p->rings.out))) {
        h.kind = WIRE_OFFER;
        h.table = (uint64_t)(uintptr_t)msg->segs;
        h.nsegs = msg->nsegs;
        h.offer = m->offer;
    } else {
        cursor_init(&m->body, msg->segs, msg->nsegs);
    }
    wire_put(&h, m->head);
    *p->last = m;
    p->last = &m->next;
}

// The caller's memory is not looked at any more: what is half sent goes on from a copy.
static Push *push_keep(const Push *m) {
    Push *own = malloc(sizeof *own);
    size_t bytes = (size_t)segs_bytes(m->body.segs, m->body.n), done = 0;
    void *copy = malloc(bytes + 1);
    if (!own || !copy) {
        free(own);
        free(copy);
        return NULL;
    }
    for (uint32_t i = 0; i < m->body.n; done += m->body.segs[i++].bytes)
        memcpy((char *)copy + done, m->body.segs[i].data, m->body.segs[i].bytes);
    size_t at = m->body.at;
    for (uint32_t i = 0; i < m->body.seg; i++)
        at += m->body.segs[i].bytes;
    *own = *m;
    own->x = NULL;
    own->own = (NetSeg){copy, bytes};
    own->body = (Cursor){.segs = &own->own, .n = 1, .at = at};
    cursor_skip(&own->body);
    return own;
}

static void cancel(Net *n, Exchange *x) {
    for (uint32_t i = 0; i < n->n; i++) {
        Peer *p = &n->peers[i];
        for (Want *w = p->wants, *next; w; w = next) {
            next = w->next;
            if (w->x == x)
                want_drop(p, w);
        }
        if (p->want && p->want->x == x)
            p->want = NULL;
        for (Push **at = &p->offered; *at;)
            if ((*at)->x == x) {
                offer_end(p->rings.out, (*at)->offer);
                *at = (*at)->next;
            } else {
                at = &(*at)->next;
            }
        for (Push **at = &p->first; *at;) {
            Push *m = *at;
            if (m->x == x && m->offer)
                offer_end(p->rings.out, m->offer);
            Push *kept = m->x == x && m->head_at && !p->gone ? push_keep(m) : NULL;
            if (m->x == x && !kept && m->head_at && !p->gone)
                net_gone_locked(n, i, "could not be sent the rest of a message");
            if (m->x != x)
                at = &m->next;
            else if (kept)
                *at = kept, kept->next = m->next, at = &kept->next;
            else
                *at = m->next;
        }
        for (p->last = &p->first; *p->last;)
            p->last = &(*p->last)->next;
    }
}

// --- waiting -------------------------------------------------------------------------------------

bool exchange_move_locked(Net *n) {
    bool moved = n->fabric && fabric_move(n->fabric);
    for (uint32_t i = 0; i < n->n; i++)
        if (i != n->me) {
            moved |= push_some(n, &n->peers[i]);
            moved |= offers_done(n, &n->peers[i]); // of one that is gone too: it may have taken them
            moved |= pull_some(n, i);
        }
    return moved;
}

// Says in all rings that it sleeps. False: there is something to do in one.
static bool rings_sleep(Net *n) {
    bool idle = true;
    for (uint32_t i = 0; i < n->n; i++) {
        Peer *p = &n->peers[i];
        if (!p->rings.in || p->gone)
            continue;
        ring_sleep(p->rings.in, true);
        idle = idle && ring_empty(p->rings.in) && !(p->first && !ring_full(p->rings.out)) && !some_taken(p);
    }
    return idle;
}

// With the lock, which it gives up while it sleeps.
static void poll_all(Net *n) {
    struct pollfd polls[NET_PROCESSES_MAX + 2];
    int wait = rings_sleep(n) ? POLL_MS : 0, done = n->fabric ? fabric_fd(n->fabric) : -1;
    if (n->fabric && done < 0 && wait)
        wait = BLIND_MS;
    else if (n->fabric && wait && !fabric_may_sleep(n->fabric))
        wait = 0;
    for (uint32_t i = 0; i < n->n; i++) {
        const Peer *p = &n->peers[i];
        bool full = p->first && !p->rings.out && !p->link;
        polls[i] = (struct pollfd){.fd = p->gone ? -1 : p->fd[CHANNEL_DATA], .events = (short)(POLLIN | (full ? POLLOUT : 0))};
    }
    polls[n->n] = (struct pollfd){.fd = n->kick[0], .events = POLLIN};
    polls[n->n + 1] = (struct pollfd){.fd = done, .events = POLLIN};
    pthread_mutex_unlock(&n->lock);
    poll(polls, n->n + 2, wait);
    pthread_mutex_lock(&n->lock);
    if (polls[n->n].revents)
        net_drain(n->kick[0]);
    for (uint32_t i = 0; i < n->n; i++) {
        Peer *p = &n->peers[i];
        if (!p->rings.in || p->gone)
            continue;
        ring_sleep(p->rings.in, false);
        char bells[64];
        while (polls[i].revents && recv(p->fd[CHANNEL_DATA], bells, sizeof bells, MSG_DONTWAIT) == sizeof bells)
            ;
    }
}

// Something of this exchange is still to go to the process, or to come. One may leave when all of its own is sent.
static bool misses(const Peer *p, const Exchange *x) {
    bool found = (p->want && p->want->x == x) || x->unread == p;
    for (const Want *w = p->wants; w; w = w->next)
        found |= w->x == x;
    for (const Want *w = x->offers; w; w = w->next)
        found |= w->peer == p;
    for (const Push *m = p->first; m; m = m->next)
        found |= m->x == x;
    for (const Push *m = p->offered; m; m = m->next)
        found |= m->x == x;
    return found;
}

static void look_for_faults(Net *n, Exchange *x, const NetMsg *msgs, uint32_t count) {
    const char *fault = net_fault_locked(n, x->call->launch);
    if (fault)
        fail_locked(n, x, fault);
    for (uint32_t i = 0; i < count; i++) {
        const Peer *p = &n->peers[msgs[i].process];
        if (p->gone && misses(p, x))
            fail_locked(n, x, p->fault);
    }
    if (x->unread_ms && now_ms() - x->unread_ms > UNREAD_MS)
        fail_locked(n, x, "the memory of another process cannot be read any more");
    if (pulse_stops(pulse_here))
        fail_locked(n, x, "the run was ended");
}

// With the lock, which it gives up while it reads.
static void take_offer(Net *n, Exchange *x) {
    Want *w = x->offers;
    Peer *p = w->peer;
    x->offers = w->next;
    pthread_mutex_unlock(&n->lock);
    bool read = direct_read(p->who.pid, &w->head, &w->body), taken = read && offer_take(p->rings.in, w->head.offer);
    pthread_mutex_lock(&n->lock);
    if (taken) {
        one_done(n, x);
        bell(p);
    } else {
        x->unread = p; // why should be known soon
        x->unread_ms = read ? 0 : now_ms();
    }
}

static void drive(Net *n, Exchange *x) {
    n->driven = true;
    int begin = n->crowded ? SPINS : 0;
    for (int spins = begin; x->left && !x->failed && !x->offers;) {
        if (exchange_move_locked(n)) {
            pthread_cond_broadcast(&n->came);
            spins = begin;
        } else if (++spins < SPINS + YIELDS) {
            pthread_mutex_unlock(&n->lock);
            if (spins < SPINS)
                cpu_pause();
            else
                sched_yield();
            pthread_mutex_lock(&n->lock);
        } else {
            break;
        }
    }
    if (x->left && !x->failed && !x->offers)
        poll_all(n);
    n->driven = false;
    pthread_cond_broadcast(&n->came);
}

static void finish(Net *n, Exchange *x, const NetMsg *out, uint32_t nout, const NetMsg *in, uint32_t nin) {
    exchange_move_locked(n);
    if (n->driven && x->left)
        net_wake_locked(n); // there may be more to send than who polls knows of
    while (x->left && !x->failed) {
        look_for_faults(n, x, out, nout);
        look_for_faults(n, x, in, nin);
        if (x->failed)
            break;
        if (x->offers)
            take_offer(n, x);
        else if (n->driven)
            pthread_cond_wait(&n->came, &n->lock);
        else
            drive(n, x);
    }
    pthread_cond_broadcast(&n->came);
    if (x->failed)
        cancel(n, x);
    net_nudge_locked(n);
}

static void wait_note(Net *n, const NetCall *call, double seconds) {
    n->wait.seconds += seconds;
    if (seconds <= n->wait.longest)
        return;
    char at[64] = "";
    if (call->where)
        call->where(call->arg, at, sizeof at);
    n->wait.longest = seconds;
    snprintf(n->wait.at, sizeof n->wait.at, "%s%s%s", call->op ? call->op : "", *at ? " " : "", at);
}

void net_waited(Net *n, NetWait *out) {
    pthread_mutex_lock(&n->lock);
    *out = n->wait;
    n->wait = (NetWait){0};
    pthread_mutex_unlock(&n->lock);
}

bool net_exchange(Net *n, const NetCall *call, const NetMsg *out, uint32_t nout, const NetMsg *in, uint32_t nin, char *why,
                  size_t why_bytes) {
    Push few_pushes[FEW], *pushes = nout <= FEW ? few_pushes : malloc(nout * sizeof *pushes);
    Want few_wants[FEW], *wants = nin <= FEW ? few_wants : malloc(nin * sizeof *wants);
    Exchange x = {.call = call, .left = nout + nin};
    if (pushes && wants) {
        pthread_mutex_lock(&n->lock);
        x.next = n->active;
        n->active = &x;
        n->moves++;
        for (uint32_t i = 0; i < nin; i++)
            ask(n, &in[i], &x, &wants[i]);
        for (uint32_t i = 0; i < nout; i++)
            post(n, &out[i], &x, &pushes[i]);
        double from = nin ? now_seconds() : 0;
        finish(n, &x, out, nout, in, nin);
        if (nin)
            wait_note(n, call, now_seconds() - from);
        Exchange **at = &n->active;
        while (*at != &x)
            at = &(*at)->next;
        *at = x.next;
        pthread_mutex_unlock(&n->lock);
    } else {
        x.failed = true;
        snprintf(x.why, sizeof x.why, "out of memory");
    }
    if (pushes != few_pushes)
        free(pushes);
    if (wants != few_wants)
        free(wants);
    if (x.failed)
        snprintf(why, why_bytes, "%s", x.why);
    return !x.failed;
}
