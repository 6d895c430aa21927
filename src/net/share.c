// SPDX-License-Identifier: Apache-2.0
// share.c — what one process makes for all: compiled programs, each under a key that says all it is made of.
//
// Process 0 decides who makes it: the first that asks. Whoever asks later waits until it is made, and has the maker send it: words on
// the control connections, its bytes on those for data, by a thread of the maker. A maker that failed, or is gone, leaves the others to
// make it; so does one that takes longer than a collective may. So nobody waits for anything but work that is going on, and a lost
// answer costs a compilation.
//
//   ASK to 0: who makes it?         its answers: MAKE, you do; THERE, that one has made it
//   MADE to 0: it is here           FAILED to 0: it cannot be made, or not be kept
//   SEND to the maker               its answers: COMES; NONE, not any more
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/now.h"
#include "net/net_in.h"

#define KEPT_MAX ((size_t)256 << 20) // bytes kept for others
#define WAIT_MS 600000               // for a maker, where the job says nothing
#define LOOK_MS 500

enum { SHARE_ASK = 1, SHARE_MAKE, SHARE_THERE, SHARE_MADE, SHARE_FAILED, SHARE_SEND, SHARE_COMES, SHARE_NONE };

typedef struct ShareRow { // at process 0: what was asked for
    struct ShareRow *next;
    WireShare made; // bytes 0: not yet
    uint32_t maker;
    bool waits[NET_PROCESSES_MAX];
} ShareRow;

typedef struct Kept { // at the maker
    struct Kept *next;
    WireShare what;
    void *data;
    uint32_t given, users; // users: those who are sent it right now
} Kept;

typedef struct Gift { // to be sent
    struct Gift *next;
    Kept *kept;
    uint32_t to;
} Gift;

typedef struct Asker { // a thread that waits for an answer about its key
    struct Asker *next;
    Sha256 key;
    uint32_t asked;
    WireShare answer; // verb 0: there is none yet
} Asker;

struct NetShare {
    ShareRow *rows;
    Kept *kept; // the youngest first
    size_t kept_bytes;
    Gift *gifts;
    Asker *askers;
    pthread_t giver;
    bool has_giver, ends;
    pthread_cond_t more;
};

static void hear_locked(Net *n, uint32_t from, const WireShare *w);

static bool same_key(const Sha256 *a, const Sha256 *b) { return !memcmp(a->at, b->at, sizeof a->at); }

static void say_locked(Net *n, uint32_t to, uint32_t verb, WireShare w) {
    uint8_t body[WIRE_NOTE_MAX];
    w.verb = verb;
    if (to == n->me)
        hear_locked(n, to, &w);
    else
        net_tell_locked(n, to, (WireHead){.kind = WIRE_SHARE, .bytes = wire_put_share(&w, body)}, body);
}

// --- process 0 -----------------------------------------------------------------------------------

static ShareRow **row_find(NetShare *s, const Sha256 *key) {
    ShareRow **at = &s->rows;
    while (*at && !same_key(&(*at)->made.key, key))
        at = &(*at)->next;
    return at;
}

static ShareRow *row_make(NetShare *s, const Sha256 *key, uint32_t maker) {
    ShareRow *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    *r = (ShareRow){.next = s->rows, .made = {.key = *key}, .maker = maker};
    return s->rows = r;
}

static bool is_there(const Net *n, uint32_t process) { return process == n->me || !n->peers[process].gone; }

static void asked_locked(Net *n, uint32_t from, const WireShare *w) {
    ShareRow *r = *row_find(n->share, &w->key);
    bool other = r && r->maker != from && is_there(n, r->maker);
    if (other && r->made.bytes)
        say_locked(n, from, SHARE_THERE, r->made);
    else if (other)
        r->waits[from] = true;
    else {
        if (r)
            r->maker = from, r->made.bytes = 0;
        else
            row_make(n->share, &w->key, from); // without memory everybody makes it
        say_locked(n, from, SHARE_MAKE, (WireShare){.key = w->key});
    }
}

// Those who wait get this answer.
static void answer_locked(Net *n, ShareRow *r, uint32_t verb) {
    for (uint32_t i = 0; i < n->n; i++)
        if (r->waits[i]) {
            r->waits[i] = false;
            say_locked(n, i, verb, r->made);
        }
}

static void made_locked(Net *n, uint32_t from, const WireShare *w) {
    ShareRow *r = *row_find(n->share, &w->key);
    if (!r && !(r = row_make(n->share, &w->key, from)))
        return;
    r->made = *w;
    r->made.maker = r->maker = from;
    answer_locked(n, r, SHARE_THERE);
}

// Each of those who wait tries for itself, and has its own error.
static void failed_locked(Net *n, uint32_t from, const WireShare *w) {
    ShareRow **at = row_find(n->share, &w->key), *r = *at;
    if (!r || r->maker != from)
        return;
    *at = r->next;
    answer_locked(n, r, SHARE_MAKE);
    free(r);
}

void share_gone_locked(Net *n, uint32_t process) {
    for (ShareRow *r = n->share ? n->share->rows : NULL; r; r = r->next) {
        r->waits[process] = false;
        if (r->maker != process || r->made.bytes)
            continue;
        for (uint32_t i = 0; i < n->n; i++)
            if (r->waits[i]) { // the next one's turn
                r->waits[i] = false;
                r->maker = i;
                say_locked(n, i, SHARE_MAKE, r->made);
                break;
            }
    }
}

// --- the maker -----------------------------------------------------------------------------------

static void kept_drop(NetShare *s, Kept *k) {
    Kept **at = &s->kept;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    s->kept_bytes -= (size_t)k->what.bytes;
    free(k->data);
    free(k);
}

// Room for so many bytes more: the oldest goes.
static void kept_trim(NetShare *s, size_t bytes) {
    while (s->kept_bytes + bytes > KEPT_MAX) {
        Kept *oldest = NULL;
        for (Kept *k = s->kept; k; k = k->next)
            oldest = k->users ? oldest : k;
        if (!oldest)
            return;
        kept_drop(s, oldest);
    }
}

static NetCall transfer(const WireShare *w, NetLaunch *l) {
    *l = (NetLaunch){.set = le_load64(w->key.at) | 1, .loose = true, .program = le_load64(w->key.at + 8), .name = "a compiled program"};
    return (NetCall){.launch = l, .tag = l->set, .sign = l->program, .op = "its artifact"};
}

static void *giver_main(void *arg) {
    Net *n = arg;
    NetShare *s = n->share;
    char why[NET_WHY_BYTES];
    pthread_mutex_lock(&n->lock);
    for (;;) {
        Gift *g = s->gifts;
        if (!g && s->ends)
            break;
        if (!g) {
            pthread_cond_wait(&s->more, &n->lock);
            continue;
        }
        s->gifts = g->next;
        pthread_mutex_unlock(&n->lock);
        NetLaunch launch;
        NetCall call = transfer(&g->kept->what, &launch);
        NetSeg seg = {g->kept->data, (size_t)g->kept->what.bytes};
        net_exchange(n, &call, &(NetMsg){.process = g->to, .nsegs = 1, .segs = &seg}, 1, NULL, 0, why, sizeof why); // or it makes its own
        pthread_mutex_lock(&n->lock);
        g->kept->users--;
        if (++g->kept->given >= n->n - 1 && !g->kept->users)
            kept_drop(s, g->kept);
        free(g);
    }
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

static bool giver_start(Net *n) {
    NetShare *s = n->share;
    if (!s->has_giver && !s->ends)
        s->has_giver = net_thread(&s->giver, giver_main, n);
    return s->has_giver && !s->ends;
}

static void send_locked(Net *n, uint32_t to, const WireShare *w) {
    NetShare *s = n->share;
    Kept *k = s->kept;
    while (k && !same_key(&k->what.key, &w->key))
        k = k->next;
    Gift *g = k && giver_start(n) ? calloc(1, sizeof *g) : NULL, **last = &s->gifts;
    if (!g) {
        say_locked(n, to, SHARE_NONE, *w);
        return;
    }
    *g = (Gift){.kept = k, .to = to};
    k->users++;
    while (*last)
        last = &(*last)->next;
    *last = g;
    pthread_cond_signal(&s->more);
    say_locked(n, to, SHARE_COMES, k->what);
}

void net_share_give(Net *n, const Sha256 *key, const void *bytes, size_t size) {
    WireShare w = {.key = *key};
    Kept *k = bytes && size && size <= KEPT_MAX ? calloc(1, sizeof *k) : NULL;
    void *copy = k ? malloc(size) : NULL;
    if (copy) {
        memcpy(copy, bytes, size);
        w.bytes = size;
        w.sum = sha256(bytes, size);
        *k = (Kept){.what = w, .data = copy};
    } else {
        free(k);
    }
    pthread_mutex_lock(&n->lock);
    NetShare *s = n->share;
    if (copy) {
        kept_trim(s, size);
        k->next = s->kept;
        s->kept = k;
        s->kept_bytes += size;
    }
    say_locked(n, 0, copy ? SHARE_MADE : SHARE_FAILED, w);
    pthread_mutex_unlock(&n->lock);
}

// --- those who wait ------------------------------------------------------------------------------

static bool is_answer(uint32_t asked, uint32_t verb) {
    return asked == SHARE_ASK ? verb == SHARE_MAKE || verb == SHARE_THERE : verb == SHARE_COMES || verb == SHARE_NONE;
}

static void hear_locked(Net *n, uint32_t from, const WireShare *w) {
    if (w->verb == SHARE_SEND)
        send_locked(n, from, w);
    else if (n->me == 0 && w->verb == SHARE_ASK)
        asked_locked(n, from, w);
    else if (n->me == 0 && w->verb == SHARE_MADE)
        made_locked(n, from, w);
    else if (n->me == 0 && w->verb == SHARE_FAILED)
        failed_locked(n, from, w);
    for (Asker *a = n->share->askers; a; a = a->next)
        if (same_key(&a->key, &w->key) && !a->answer.verb && is_answer(a->asked, w->verb))
            a->answer = *w;
    pthread_cond_broadcast(&n->came);
}

void share_heard_locked(Net *n, uint32_t from, const uint8_t *body, size_t bytes) {
    WireShare w;
    if (wire_get_share(body, bytes, &w))
        hear_locked(n, from, &w);
}

// Asks, and waits for the answer: its verb, or 0.
static uint32_t ask_locked(Net *n, uint32_t to, uint32_t verb, Asker *a, int64_t until_ms) {
    WireShare w = {.key = a->key};
    a->asked = verb;
    a->answer.verb = 0;
    say_locked(n, to, verb, w);
    while (!a->answer.verb && is_there(n, to) && now_ms() < until_ms) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += LOOK_MS * 1000000L;
        t.tv_sec += t.tv_nsec / 1000000000L;
        t.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&n->came, &n->lock, &t);
    }
    return a->answer.verb;
}

static void *fetch(Net *n, const WireShare *w, uint32_t maker) {
    NetLaunch launch;
    NetCall call = transfer(w, &launch);
    char why[NET_WHY_BYTES];
    NetSeg seg = {malloc((size_t)w->bytes), (size_t)w->bytes};
    if (!seg.data) // what comes goes with the world
        return NULL;
    bool ok = net_exchange(n, &call, NULL, 0, &(NetMsg){.process = maker, .nsegs = 1, .segs = &seg}, 1, why, sizeof why);
    Sha256 sum = sha256(seg.data, seg.bytes);
    if (ok && same_key(&sum, &w->sum))
        return seg.data;
    free(seg.data);
    return NULL;
}

void *net_share_take(Net *n, const Sha256 *key, size_t *size) {
    Asker a = {.key = *key};
    int64_t until = now_ms() + (n->coll_timeout_ms ? n->coll_timeout_ms : WAIT_MS);
    if (n->n == 1)
        return NULL;
    pthread_mutex_lock(&n->lock);
    a.next = n->share->askers;
    n->share->askers = &a;
    bool made = ask_locked(n, 0, SHARE_ASK, &a, until) == SHARE_THERE && a.answer.maker < n->n && a.answer.maker != n->me;
    uint32_t maker = a.answer.maker;
    WireShare w = a.answer;
    made = made && ask_locked(n, maker, SHARE_SEND, &a, until) == SHARE_COMES;
    made = made && a.answer.bytes == w.bytes && w.bytes;
    Asker **at = &n->share->askers;
    while (*at != &a)
        at = &(*at)->next;
    *at = a.next;
    pthread_mutex_unlock(&n->lock);
    *size = (size_t)w.bytes;
    return made ? fetch(n, &w, maker) : NULL;
}

// --- life ----------------------------------------------------------------------------------------

bool share_open(Net *n) {
    n->share = calloc(1, sizeof *n->share);
    return n->share && !pthread_cond_init(&n->share->more, NULL);
}

// Who was promised something gets it first, unless it is gone.
void share_close(Net *n) {
    NetShare *s = n->share;
    if (!s)
        return;
    pthread_mutex_lock(&n->lock);
    s->ends = true;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&n->lock);
    if (s->has_giver)
        pthread_join(s->giver, NULL);
}

void share_free(NetShare *s) {
    if (!s)
        return;
    while (s->kept)
        kept_drop(s, s->kept);
    for (ShareRow *r = s->rows, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    pthread_cond_destroy(&s->more);
    free(s);
}
