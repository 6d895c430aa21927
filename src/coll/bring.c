// SPDX-License-Identifier: Apache-2.0
// bring.c — what members in other processes brought; see bring.h.
//
// Between two processes one message goes each way: what any member there reads of any member here, by operand, then by the
// member it comes from, then by its reader where each reads another part. Both ends walk through that list alike.
//
// The leader's memory:  pointers (brought) | messages and segments | parts to send | what comes in
#include "coll/bring.h"

#include <assert.h>
#include <stdlib.h>

#include "coll/comm_in.h"

#define LINE(bytes) (((bytes) + 63) & ~(size_t)63)

typedef struct Bring {
    CommRank *me;
    const CommNeed *need;
    const Comm *comm;
    const Seats *members;
    uint32_t nbufs, here, nhere; // here: this process; members here
    NetMsg *msgs;                // out, then in, one for each process of the others
    NetSeg *segs;
    char *parts, *coming;
    size_t nsegs, parts_bytes, coming_bytes; // as far as walked
} Bring;

static uint32_t process_of(const Bring *b, uint32_t position) { return comm_process(b->comm, b->members->at[position]); }

static bool reads(const CommNeed *n, uint32_t k, uint32_t from, uint32_t to) {
    return (!n->root || n->root[k] == from) && (!n->source || n->source[to] == from);
}

static size_t bytes_of(const Bring *b, uint32_t k) {
    return b->need->part ? b->need->part_bytes(b->need->arg, k) : b->me->post->bufs[k].in_bytes;
}

// Whose reader `to` is among those here: parts are kept for each.
static uint32_t local_index(const Bring *b, uint32_t to) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < to; i++)
        n += process_of(b, i) == b->here;
    return n;
}

typedef void Visit(Bring *b, uint32_t k, uint32_t from, uint32_t to); // to: COMM_NONE for all there

static void walk(Bring *b, uint32_t from_process, uint32_t to_process, Visit *visit) {
    for (uint32_t k = 0; k < b->nbufs; k++)
        for (uint32_t from = 0; from < b->members->n; from++) {
            bool some = false;
            if (process_of(b, from) != from_process)
                continue;
            for (uint32_t to = 0; to < b->members->n; to++) {
                if (process_of(b, to) != to_process || !reads(b->need, k, from, to))
                    continue;
                some = true;
                if (b->need->part)
                    visit(b, k, from, to);
            }
            if (some && !b->need->part)
                visit(b, k, from, COMM_NONE);
        }
}

static void count_out(Bring *b, uint32_t k, uint32_t from, uint32_t to) {
    (void)from, (void)to;
    b->nsegs++;
    b->parts_bytes += b->need->part ? LINE(bytes_of(b, k)) : 0;
}

static void count_in(Bring *b, uint32_t k, uint32_t from, uint32_t to) {
    (void)from, (void)to;
    b->nsegs++;
    b->coming_bytes += LINE(bytes_of(b, k));
}

static void send_one(Bring *b, uint32_t k, uint32_t from, uint32_t to) {
    const void *operand = comm_post(b->me, from)->bufs[k].in;
    NetSeg *s = &b->segs[b->nsegs++];
    *s = (NetSeg){(void *)operand, bytes_of(b, k)};
    if (!b->need->part)
        return;
    s->data = b->parts;
    b->parts += LINE(s->bytes);
    b->need->part(b->need->arg, k, to, operand, s->data);
}

static void take_one(Bring *b, uint32_t k, uint32_t from, uint32_t to) {
    NetSeg *s = &b->segs[b->nsegs++];
    *s = (NetSeg){b->coming, bytes_of(b, k)};
    b->coming += LINE(s->bytes);
    size_t at = (size_t)k * b->members->n + from;
    if (b->need->part)
        at = at * b->nhere + local_index(b, to);
    b->me->meet->brought[at] = s->data;
}

// Processes of the group without this one, each once, in the order of their members.
static uint32_t others(const Bring *b, uint32_t *out) {
    uint32_t n = 0;
    bool seen[NET_PROCESSES_MAX] = {false};
    seen[b->here] = true;
    for (uint32_t i = 0; i < b->members->n; i++) {
        uint32_t p = process_of(b, i);
        if (!seen[p])
            out[n++] = p;
        seen[p] = true;
    }
    return n;
}

static bool bring(CommRank *me, const CommNeed *need) {
    Meet *m = me->meet;
    Bring b = {.me = me, .need = need, .comm = me->comm, .members = &me->members, .nbufs = me->post->nbufs,
               .here = comm_here(me->comm), .nhere = m->local};
    uint32_t procs[NET_PROCESSES_MAX], n = others(&b, procs);
    for (uint32_t i = 0; i < n; i++) {
        walk(&b, b.here, procs[i], count_out);
        walk(&b, procs[i], b.here, count_in);
    }
    size_t pointers = LINE((size_t)b.nbufs * me->members.n * (need->part ? b.nhere : 1) * sizeof(void *));
    size_t msgs = LINE(2 * n * sizeof(NetMsg)), segs = LINE(b.nsegs * sizeof(NetSeg));
    char *room = comm_room(me, pointers + msgs + segs + b.parts_bytes + b.coming_bytes);
    if (!room)
        return false;
    m->brought = (const void **)room;
    m->packed = need->part != NULL;
    b.msgs = (NetMsg *)(room + pointers);
    b.segs = (NetSeg *)(room + pointers + msgs);
    b.parts = room + pointers + msgs + segs;
    b.coming = b.parts + b.parts_bytes;
    b.nsegs = 0;
    uint32_t nout = 0, nin = 0;
    for (uint32_t i = 0; i < 2 * n; i++) {
        bool in = i >= n;
        uint32_t p = procs[in ? i - n : i];
        NetMsg *msg = &b.msgs[in ? n + nin : nout];
        size_t first = b.nsegs;
        walk(&b, in ? p : b.here, in ? b.here : p, in ? take_one : send_one);
        *msg = (NetMsg){.process = p, .nsegs = (uint32_t)(b.nsegs - first), .segs = b.segs + first};
        if (msg->nsegs)
            *(in ? &nin : &nout) += 1;
    }
    return comm_talk(me, b.msgs, nout, b.msgs + n, nin);
}

bool comm_is_spread(const CommRank *me) { return me->meet->local < me->members.n; }

bool comm_bring(CommRank *me, const CommNeed *need) {
    Meet *m = me->meet;
    if (!comm_is_spread(me))
        return true;
    if (m->leader == me && !bring(me, need))
        return false;
    return comm_sync(me);
}

const void *comm_in(const CommRank *me, uint32_t position, uint32_t k, bool *part) {
    const Meet *m = me->meet;
    const Comm *c = me->comm;
    *part = false;
    if (!comm_is_spread(me) || comm_process(c, me->members.at[position]) == comm_here(c))
        return comm_post(me, position)->bufs[k].in;
    size_t at = (size_t)k * me->members.n + position;
    *part = m->packed;
    if (!m->packed)
        return m->brought[at];
    uint32_t mine = 0; // among those here
    for (uint32_t i = 0; me->members.at[i] != me->rank / c->cores; i++)
        mine += comm_process(c, me->members.at[i]) == comm_here(c);
    return m->brought[at * m->local + mine];
}
