// SPDX-License-Identifier: Apache-2.0
// reduce.c — who folds what, inside a process and over several; see reduce.h.
//
// Inside a process a large sum is shared: each member folds its slice of the elements into its own result, all wait, then each copies
// the other slices from where they were made. That is two passes over the data in all; when every member folded everything it
// would be as many as there are members. Small ones are not worth the extra wait.
//
// Over several processes the tree is cut into *pieces*, its largest nodes whose members are all in one process. A process folds its
// pieces for every *target* that needs them, sends them, and the target's process finishes the tree. Targets are the members of a
// scatter, or, for an all-reduce, the processes: each finishes a slice of the elements, and a second exchange gives everybody the
// slices; a small one goes whole to every process, in one exchange, and a large one in blocks, so that what comes in is folded
// while it is in the cache. A piece that is one operand is sent as it is.
//
// The leader's memory:  pointers to what came in | messages and segments | pieces to send | what comes in
#include "coll/reduce.h"

#include <assert.h>
#include <string.h>

#include "coll/comm_in.h"

#define SHARE_MIN_BYTES 16384 // below this every member folds everything
#define WHOLE_MAX_BYTES 16384 // up to this an all-reduce goes whole to every process
#define BLOCK_BYTES ((size_t)1 << 20) // of an all-reduce in slices

#define LINE(bytes) (((bytes) + 63) & ~(size_t)63)

// Part `part` of `parts` of n elements.
static void slice(int64_t n, uint32_t parts, uint32_t part, int64_t *begin, int64_t *end) {
    *begin = (int64_t)((__int128)n * part / parts);
    *end = (int64_t)((__int128)n * (part + 1) / parts);
}

static CommPart slice_part(int64_t elems, uint32_t parts, uint32_t part) {
    int64_t begin, end;
    slice(elems, parts, part, &begin, &end);
    return (CommPart){.n = end - begin, .chunk = elems ? elems : 1, .offset = begin};
}

static char *out_of(const CommRank *rank, uint32_t k) { return rank->post->bufs[k].out; }

static size_t total_bytes(const CommReduce *r) {
    size_t bytes = 0;
    for (uint32_t k = 0; k < r->n; k++)
        bytes += (size_t)r->of[k].elems * r->of[k].out;
    return bytes;
}

// --- inside a process ----------------------------------------------------------------------------

static uint32_t member_terms(const CommRank *me, uint32_t k, TreeSpan span, CommTerm *out) {
    for (uint32_t p = span.begin; p < span.end; p++)
        *out++ = (CommTerm){.span = tree_leaf(p), .data = comm_post(me, p)->bufs[k].in, .raw = true};
    return span.end - span.begin;
}

static uint32_t my_position(const CommRank *me) {
    uint32_t p = 0;
    while (me->members.at[p] * me->members.cores + me->members.core != me->rank)
        p++;
    return p;
}

static void fold_members(CommRank *me, const CommReduce *r, uint32_t k, CommPart part, char *dst) {
    CommTerm terms[COMM_RANKS_MAX];
    uint32_t n = me->members.n;
    if (part.n > 0)
        r->fold(r->arg, k, terms, member_terms(me, k, (TreeSpan){0, n}, terms), n, &part, 0, part.n, dst);
}

static bool all_reduce_here(CommRank *me, const CommReduce *r) {
    uint32_t n = me->members.n, mine = my_position(me);
    if (total_bytes(r) < SHARE_MIN_BYTES) {
        for (uint32_t k = 0; k < r->n; k++)
            fold_members(me, r, k, slice_part(r->of[k].elems, 1, 0), out_of(me, k));
        return true;
    }
    for (uint32_t k = 0; k < r->n; k++) {
        CommPart part = slice_part(r->of[k].elems, n, mine);
        fold_members(me, r, k, part, out_of(me, k) + (size_t)part.offset * r->of[k].out);
    }
    if (!comm_sync(me))
        return false;
    for (uint32_t k = 0; k < r->n; k++)
        for (uint32_t p = 0; p < n; p++) {
            CommPart part = slice_part(r->of[k].elems, n, p);
            size_t off = (size_t)part.offset * r->of[k].out;
            if (p != mine)
                r->copy(r->arg, out_of(me, k) + off, (const char *)comm_post(me, p)->bufs[k].out + off,
                        (size_t)part.n * r->of[k].out);
        }
    return true;
}

// --- over several processes ----------------------------------------------------------------------

typedef struct Piece {
    TreeSpan span;
    uint32_t process;
} Piece;

typedef enum TargetMode { TARGET_MEMBERS, TARGET_SLICES, TARGET_WHOLE } TargetMode;

typedef struct Spread {
    CommRank *me;
    const CommReduce *r;
    TargetMode mode;
    uint32_t here, mine, size; // this process; my place among its members; of the group
    uint32_t nprocs, procs[NET_PROCESSES_MAX]; // of the group, this one among them
    uint32_t block, nblocks;                   // of every operand
    uint32_t npieces;
    Piece pieces[COMM_RANKS_MAX];
    uint16_t process[COMM_RANKS_MAX]; // of each position
    // where a walk is
    NetSeg *segs;
    size_t nsegs;
    char *out, *in;
    size_t out_bytes, in_bytes;
    const void **brought; // by operand, target here, piece
} Spread;

static void cut_pieces(Spread *s, uint32_t a, uint32_t b) {
    bool one = true;
    for (uint32_t i = a + 1; i < b; i++)
        one = one && s->process[i] == s->process[a];
    if (one) {
        s->pieces[s->npieces++] = (Piece){{a, b}, s->process[a]};
        return;
    }
    uint32_t half = 1;
    while (2 * half < b - a)
        half *= 2;
    cut_pieces(s, a, a + half);
    cut_pieces(s, a + half, b);
}

static void spread_init(Spread *s, CommRank *me, const CommReduce *r, TargetMode mode) {
    s->me = me;
    s->r = r;
    s->mode = mode;
    s->here = comm_here(me->comm);
    s->size = me->members.n;
    s->mine = s->nprocs = s->npieces = s->block = 0;
    s->nblocks = 1;
    uint32_t position = my_position(me);
    bool seen[NET_PROCESSES_MAX] = {false};
    for (uint32_t i = 0; i < s->size; i++) {
        uint32_t p = comm_process(me->comm, me->members.at[i]);
        s->process[i] = (uint16_t)p;
        s->mine += i < position && p == s->here;
        if (!seen[p])
            s->procs[s->nprocs++] = p;
        seen[p] = true;
    }
    cut_pieces(s, 0, s->size);
}

static uint32_t targets(const Spread *s) { return s->mode == TARGET_MEMBERS ? s->size : s->nprocs; }
static uint32_t target_process(const Spread *s, uint32_t t) {
    return s->mode == TARGET_MEMBERS ? s->process[t] : s->procs[t];
}

// What process number t of the group finishes of the block.
static CommPart block_slice(const Spread *s, uint32_t k, uint32_t t) {
    CommPart block = slice_part(s->r->of[k].elems, s->nblocks, s->block), part = slice_part(block.n, s->nprocs, t);
    return (CommPart){.n = part.n, .chunk = block.chunk, .offset = block.offset + part.offset};
}

static CommPart target_part(const Spread *s, uint32_t k, uint32_t t) {
    if (s->mode == TARGET_MEMBERS)
        return s->r->part(s->r->arg, k, t);
    return s->mode == TARGET_SLICES ? block_slice(s, k, t) : slice_part(s->r->of[k].elems, 1, 0);
}

// A piece that is one operand, of which a part lies in a row, needs no fold.
static bool is_raw(const Piece *p, const CommPart *part) {
    return p->span.end - p->span.begin == 1 && part->n <= part->chunk;
}

typedef struct Item { // what a target needs of a piece
    uint32_t k, target, piece;
    CommPart part;
    bool raw;
    size_t bytes;
} Item;
typedef void Visit(Spread *s, const Item *i);

static void walk(Spread *s, uint32_t from, uint32_t to, Visit *visit) {
    for (uint32_t k = 0; k < s->r->n; k++)
        for (uint32_t t = 0; t < targets(s); t++) {
            if (target_process(s, t) != to)
                continue;
            CommPart part = target_part(s, k, t);
            for (uint32_t p = 0; p < s->npieces && part.n > 0; p++) {
                bool raw = is_raw(&s->pieces[p], &part);
                Item item = {k, t, p, part, raw, (size_t)part.n * (raw ? s->r->of[k].in : s->r->of[k].out)};
                if (s->pieces[p].process == from)
                    visit(s, &item);
            }
        }
}

static void count_out(Spread *s, const Item *i) {
    s->nsegs++;
    s->out_bytes += i->raw ? 0 : LINE(i->bytes);
}

static void count_in(Spread *s, const Item *i) {
    s->nsegs++;
    s->in_bytes += LINE(i->bytes);
}

static void fold_out(Spread *s, const Item *i) {
    CommTerm terms[COMM_RANKS_MAX];
    int64_t begin, end;
    if (i->raw)
        return;
    slice(i->part.n, s->me->meet->local, s->mine, &begin, &end);
    const Piece *p = &s->pieces[i->piece];
    uint32_t n = member_terms(s->me, i->k, p->span, terms), first = p->span.begin;
    for (uint32_t t = 0; t < n; t++) // a tree of its own, which a node's part of the group's tree is
        terms[t].span.begin -= first, terms[t].span.end -= first;
    if (end > begin)
        s->r->fold(s->r->arg, i->k, terms, n, n, &i->part, begin, end - begin, s->out + (size_t)begin * s->r->of[i->k].out);
    s->out += LINE(i->bytes);
}

static void send_one(Spread *s, const Item *i) {
    NetSeg *seg = &s->segs[s->nsegs++];
    *seg = (NetSeg){s->out, i->bytes};
    if (i->raw)
        seg->data = (char *)comm_post(s->me, s->pieces[i->piece].span.begin)->bufs[i->k].in + (size_t)i->part.offset * s->r->of[i->k].in;
    else
        s->out += LINE(i->bytes);
}

static uint32_t target_index(const Spread *s, uint32_t t) { // among those here
    uint32_t n = 0;
    for (uint32_t i = 0; i < t; i++)
        n += target_process(s, i) == s->here;
    return n;
}

static const void **brought_at(const Spread *s, const void **table, uint32_t k, uint32_t t, uint32_t piece) {
    uint32_t here = s->mode == TARGET_MEMBERS ? s->me->meet->local : 1;
    return &table[((size_t)k * here + target_index(s, t)) * s->npieces + piece];
}

static void take_one(Spread *s, const Item *i) {
    s->segs[s->nsegs++] = (NetSeg){s->in, i->bytes};
    *brought_at(s, s->brought, i->k, i->target, i->piece) = s->in;
    s->in += LINE(i->bytes);
}

// Every process of the group but this one. The same pieces for all are made once.
static void walk_out(Spread *s, Visit *visit) {
    char *out = s->out;
    size_t bytes = s->out_bytes;
    for (uint32_t p = 0; p < s->nprocs; p++) {
        if (s->procs[p] == s->here)
            continue;
        if (s->mode == TARGET_WHOLE)
            s->out = out, s->out_bytes = bytes;
        walk(s, s->here, s->procs[p], visit);
    }
}

// Where things lie in the leader's memory.
typedef struct Room {
    size_t pointers, msgs, segs, out_bytes, in_bytes;
} Room;

static Room room_of(Spread *s) {
    s->nsegs = s->out_bytes = s->in_bytes = 0;
    walk_out(s, count_out);
    for (uint32_t p = 0; p < s->nprocs; p++)
        if (s->procs[p] != s->here)
            walk(s, s->procs[p], s->here, count_in);
    uint32_t here = s->mode == TARGET_MEMBERS ? s->me->meet->local : 1;
    return (Room){.pointers = LINE((size_t)s->r->n * here * s->npieces * sizeof(void *)),
                  .msgs = LINE(2 * s->nprocs * sizeof(NetMsg)), .segs = LINE(s->nsegs * sizeof(NetSeg)),
                  .out_bytes = s->out_bytes, .in_bytes = s->in_bytes};
}

static bool exchange(Spread *s, const Room *room) {
    char *at = (char *)s->me->meet->brought;
    NetMsg *msgs = (NetMsg *)(at + room->pointers);
    s->brought = s->me->meet->brought;
    s->segs = (NetSeg *)(at + room->pointers + room->msgs);
    s->in = at + room->pointers + room->msgs + room->segs + room->out_bytes;
    s->nsegs = 0;
    char *out = at + room->pointers + room->msgs + room->segs;
    s->out = out;
    uint32_t nout = 0, nin = 0;
    for (uint32_t i = 0; i < 2 * s->nprocs; i++) {
        bool in = i >= s->nprocs;
        uint32_t p = s->procs[in ? i - s->nprocs : i];
        if (p == s->here)
            continue;
        if (s->mode == TARGET_WHOLE)
            s->out = out;
        size_t first = s->nsegs;
        walk(s, in ? p : s->here, in ? s->here : p, in ? take_one : send_one);
        NetMsg *msg = &msgs[in ? s->nprocs + nin : nout];
        *msg = (NetMsg){.process = p, .nsegs = (uint32_t)(s->nsegs - first), .segs = s->segs + first};
        if (msg->nsegs)
            *(in ? &nin : &nout) += 1;
    }
    return comm_talk(s->me, msgs, nout, msgs + s->nprocs, nin);
}

// Pieces to where they are needed. Behind it every member here may fold its targets.
static bool bring_pieces(Spread *s) {
    Meet *m = s->me->meet;
    Room room = room_of(s);
    size_t all = room.pointers + room.msgs + room.segs + room.out_bytes + room.in_bytes;
    if (m->leader == s->me && !(m->brought = comm_room(s->me, all)))
        return false;
    if (room.out_bytes) { // there is something to fold first, by all
        if (!comm_sync(s->me))
            return false;
        s->out = (char *)m->brought + room.pointers + room.msgs + room.segs;
        if (s->mode == TARGET_WHOLE) // once: for the first other process
            walk(s, s->here, s->procs[s->procs[0] == s->here], fold_out);
        else
            walk_out(s, fold_out);
        if (!comm_sync(s->me))
            return false;
    }
    if (m->leader == s->me && !exchange(s, &room))
        return false;
    return comm_sync(s->me);
}

// The tree of a target's part: members here, pieces of other processes.
static void fold_target(Spread *s, uint32_t k, uint32_t t, int64_t first, int64_t count, char *dst) {
    CommTerm terms[COMM_RANKS_MAX];
    CommPart part = target_part(s, k, t);
    uint32_t n = 0;
    for (uint32_t p = 0; p < s->npieces; p++) {
        const Piece *piece = &s->pieces[p];
        if (piece->process == s->here)
            n += member_terms(s->me, k, piece->span, terms + n);
        else
            terms[n++] = (CommTerm){.span = piece->span, .data = *brought_at(s, s->me->meet->brought, k, t, p),
                                    .raw = is_raw(piece, &part), .packed = true};
    }
    if (count > 0)
        s->r->fold(s->r->arg, k, terms, n, s->size, &part, first, count, dst);
}

// Slices that were finished in other processes, into the leader's results.
static bool exchange_slices(Spread *s) {
    CommRank *me = s->me;
    const CommReduce *r = s->r;
    size_t msgs = LINE(2 * s->nprocs * sizeof(NetMsg));
    char *room = comm_room(me, msgs + (s->nprocs + 1) * r->n * sizeof(NetSeg));
    if (!room)
        return false;
    NetMsg *msg = (NetMsg *)room;
    NetSeg *segs = (NetSeg *)(room + msgs), *mine = segs;
    uint32_t n = 0;
    for (uint32_t t = 0; t < s->nprocs; t++)
        for (uint32_t k = 0; k < r->n; k++) {
            CommPart part = block_slice(s, k, t);
            if (s->procs[t] == s->here && k == 0)
                mine = segs + t * r->n;
            segs[t * r->n + k] = (NetSeg){out_of(me, k) + (size_t)part.offset * r->of[k].out, (size_t)part.n * r->of[k].out};
        }
    for (uint32_t t = 0; t < s->nprocs; t++)
        if (s->procs[t] != s->here) {
            msg[n] = (NetMsg){.process = s->procs[t], .nsegs = r->n, .segs = mine};
            msg[s->nprocs + n++] = (NetMsg){.process = s->procs[t], .nsegs = r->n, .segs = segs + t * r->n};
        }
    return comm_talk(me, msg, n, msg + s->nprocs, n);
}

static bool finish_slices(Spread *s) {
    CommRank *me = s->me, *leader = me->meet->leader;
    const CommReduce *r = s->r;
    uint32_t t = 0;
    while (s->procs[t] != s->here)
        t++;
    for (uint32_t k = 0; k < r->n; k++) {
        CommPart part = target_part(s, k, t);
        int64_t begin, end;
        slice(part.n, me->meet->local, s->mine, &begin, &end);
        fold_target(s, k, t, begin, end - begin, out_of(leader, k) + (size_t)(part.offset + begin) * r->of[k].out);
    }
    if (!comm_sync(me) || (me == leader && !exchange_slices(s)) || !comm_sync(me))
        return false;
    for (uint32_t k = 0; k < r->n && me != leader; k++) {
        CommPart block = slice_part(r->of[k].elems, s->nblocks, s->block);
        size_t at = (size_t)block.offset * r->of[k].out;
        r->copy(r->arg, out_of(me, k) + at, out_of(leader, k) + at, (size_t)block.n * r->of[k].out);
    }
    return true;
}

// --- all of it -----------------------------------------------------------------------------------

static bool all_here(const CommRank *me) { return me->meet->local == me->members.n; }

bool comm_all_reduce(CommRank *me, const CommReduce *r) {
    if (all_here(me))
        return all_reduce_here(me, r);
    Spread s;
    spread_init(&s, me, r, total_bytes(r) <= WHOLE_MAX_BYTES ? TARGET_WHOLE : TARGET_SLICES);
    if (s.mode == TARGET_SLICES) {
        s.nblocks = (uint32_t)((total_bytes(r) + BLOCK_BYTES - 1) / BLOCK_BYTES);
        for (; s.block < s.nblocks; s.block++)
            if (!bring_pieces(&s) || !finish_slices(&s))
                return false;
        return true;
    }
    if (!bring_pieces(&s))
        return false;
    uint32_t t = 0;
    while (s.procs[t] != s.here)
        t++;
    for (uint32_t k = 0; k < r->n; k++)
        fold_target(&s, k, t, 0, r->of[k].elems, out_of(me, k));
    return true;
}

bool comm_reduce_parts(CommRank *me, const CommReduce *r) {
    uint32_t mine = my_position(me);
    if (all_here(me)) {
        for (uint32_t k = 0; k < r->n; k++)
            fold_members(me, r, k, r->part(r->arg, k, mine), out_of(me, k));
        return true;
    }
    Spread s;
    spread_init(&s, me, r, TARGET_MEMBERS);
    if (!bring_pieces(&s))
        return false;
    for (uint32_t k = 0; k < r->n; k++)
        fold_target(&s, k, mine, 0, r->part(r->arg, k, mine).n, out_of(me, k));
    return true;
}
