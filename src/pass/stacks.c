// SPDX-License-Identifier: Apache-2.0
// stacks.c — elementwise work on what a loop stacks up is done in the loop, piece by piece.
// needs: loops that carry only what changes (pass_loops); equal operations once (pass_cse)
// gives: elementwise ops behind a loop that need nothing but its stacks and what is there before it stand in its body, over one
//        piece; stacks that only they read are gone, and their results are stacks of the loop
// stale: nothing
//
//   for i: …; G[i] = g                          for i: …; W'[i] = update(W[i], g)
//   W' = update(W, G)                   ──►
//
// The gradients of a model that scans over its layers are such stacks, and an optimizer's update is such work. Behind the loop it is transfers and
// nothing else: gradients go to HBM and back, and no product hides the rest. In the body it is the epilogue of the product that makes the gradient, as
// it is without a loop (pass/epilogue.c). Every element is computed as before, so no bit changes.
//
// What needs more than pieces (a norm over all gradients) stays where it is, and so does work that would add a stack where it takes none away.
#include "pass/loops.h"

#include <assert.h>
#include <string.h>

#include "hlo/loop.h"
#include "hlo/query.h"
#include "hlo/users.h"

#define ROUNDS 64
#define SMALL_MAX 1024         // elements of a value that is made before the loop now
#define PIECE_LEAST (1 << 15)  // elements of a piece: fewer are quicker together
#define DEPTH_MAX 64

typedef enum Kind {
    UNKNOWN,
    NO,     // the loop must be over before it is there
    PART,   // a piece of it can be made, or read, in any iteration
    MEMBER, // … when the loop has made the piece of a stack
} Kind;

typedef struct Stacks {
    Compile *c;
    Hlo *h;
    Walk w;
    Users u;
    RegionId region, body; // of the loop in hand
    OpId loop;
    int64_t trips;
    ValueId index;        // in the body: where the pieces of this iteration are
    ValueId *piece_of;    // per result of the loop: what becomes its piece, 0: it is no stack
    uint8_t *kind;        // per value
    uint8_t *sooner;      // per op: 1 no, 2 yes, it can be made before the loop
    uint32_t *group;      // per value: members that need each other, as a forest
    uint32_t nvalues;     // … before any was made
    ValueMap inside;      // values behind the loop -> their pieces in the body
    OpList reads, made;   // of the group in hand, for the body
    bool *early;          // per op: is made before the loop now
} Stacks;

static bool is_behind(const Stacks *s, ValueId v) { return !users_there_before(&s->u, v, s->loop); }

static bool is_result(const Stacks *s, ValueId v) { return s->h->values.at[v].def == s->loop; }

// --- what can be done in the body ---------------------------------------------------------------------

// Small, and nothing that it is made of waits for the loop.
static bool is_sooner(Stacks *s, ValueId v, int depth) {
    OpId def = s->h->values.at[v].def;
    if (!is_behind(s, v))
        return true;
    const HloOp *op = hlo_at(s->h, def);
    if (def == s->loop || !depth || op->nregions || op_has_effect(s->h, op) || hlo_value_type(s->h, v)->elems > SMALL_MAX)
        return false;
    if (!s->sooner[def]) {
        bool all = true;
        for (uint32_t k = 0; k < op->noperands && all; k++)
            all = is_sooner(s, hlo_operand(s->h, op, k), depth - 1);
        s->sooner[def] = 1 + all;
    }
    return s->sooner[def] == 2;
}

static bool is_stack_type(const Stacks *s, ValueId v) {
    const HloType *t = hlo_value_type(s->h, v);
    return t->kind == HT_TENSOR && !t->dynamic && !t->text && t->rank > 0 && t->dims[0] == s->trips;
}

// The dimension of a broadcast's operand that becomes the first; -1: none, each piece is alike.
static int first_from(const Stacks *s, const HloOp *op) {
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    for (uint32_t d = 0; d < n; d++)
        if (dims[d] == 0 && hlo_value_type(s->h, hlo_operand(s->h, op, 0))->dims[d] != 1)
            return (int)d;
    return -1;
}

static Kind kind_of(Stacks *s, ValueId v, int depth);

static Kind kind_elementwise(Stacks *s, const HloOp *op, int depth) {
    Kind kind = PART;
    for (uint32_t k = 0; k < op->noperands && kind != NO; k++) {
        ValueId v = hlo_operand(s->h, op, k);
        bool single = !hlo_value_type(s->h, v)->rank; // a predicate, a bound
        Kind of = single ? is_sooner(s, v, depth) ? PART : NO : kind_of(s, v, depth);
        kind = of == NO || of > kind ? of : kind;
    }
    return kind;
}

static Kind kind_of_op(Stacks *s, const HloOp *op, int depth) {
    if (op->nresults != 1 || op->nregions || !depth)
        return NO;
    if (op->code == HLO_CONSTANT)
        return splat_value(s->h, op->results) ? PART : NO;
    if (hlo_is_elementwise(op))
        return kind_elementwise(s, op, depth - 1);
    ValueId from = op->noperands ? hlo_operand(s->h, op, 0) : 0;
    if (op->code == HLO_BROADCAST_IN_DIM && first_from(s, op) < 0)
        return is_sooner(s, from, depth - 1) ? PART : NO;
    bool moves = op->code == HLO_RESHAPE || (op->code == HLO_BROADCAST_IN_DIM && !first_from(s, op));
    return moves && is_stack_type(s, from) ? kind_of(s, from, depth - 1) : NO;
}

static Kind kind_of(Stacks *s, ValueId v, int depth) {
    if (s->kind[v])
        return (Kind)s->kind[v];
    Kind kind = PART;
    if (!is_stack_type(s, v))
        kind = NO;
    else if (is_result(s, v))
        kind = s->piece_of[s->h->values.at[v].index] ? MEMBER : NO;
    else if (is_behind(s, v))
        kind = kind_of_op(s, hlo_def(s->h, v), depth);
    s->kind[v] = (uint8_t)kind;
    return kind;
}

// --- groups -------------------------------------------------------------------------------------------

static uint32_t group_of(const Stacks *s, ValueId v) {
    while (s->group[v] != v)
        v = s->group[v] = s->group[s->group[v]];
    return v;
}

static bool is_member(const Stacks *s, ValueId v) { return s->kind[v] == MEMBER; }

static void note_members(Stacks *s) {
    const HloRegion *r = &s->h->regions.at[s->region];
    for (uint32_t i = s->u.position[s->loop] + 1; i < r->ops.n; i++) {
        const HloOp *op = hlo_at(s->h, r->ops.at[i]);
        if (op->nresults != 1 || kind_of(s, op->results, DEPTH_MAX) != MEMBER)
            continue;
        for (uint32_t k = 0; k < op->noperands; k++)
            if (is_member(s, hlo_operand(s->h, op, k)))
                s->group[group_of(s, hlo_operand(s->h, op, k))] = group_of(s, op->results);
    }
}

typedef struct Readers {
    bool members, returned, others;
} Readers;

static Readers who_reads(const Stacks *s, ValueId v) {
    Readers r = {0};
    for (Reader by = readers_of(&s->u, v); reader_next(&by);) {
        bool here = s->u.region[by.id] == s->region;
        *(here && by.op->nresults == 1 && is_member(s, by.op->results) ? &r.members
          : here && by.op->code == HLO_RETURN                       ? &r.returned
                                                                 : &r.others) = true;
    }
    return r;
}

// Bytes that are not written and read then, against those of results that nobody kept before.
static bool is_worth_it(Stacks *s, uint32_t group) {
    const HloOp *loop = hlo_at(s->h, s->loop);
    const HloRegion *r = &s->h->regions.at[s->region];
    int64_t saved = 0, added = 0;
    for (uint32_t k = 0; k < loop->nresults; k++) {
        ValueId v = loop->results + k;
        Readers by = is_member(s, v) && group_of(s, v) == group ? who_reads(s, v) : (Readers){0};
        if (by.members)
            saved += (by.returned || by.others ? 1 : 2) * (int64_t)hlo_type_bytes(hlo_value_type(s->h, v));
    }
    for (uint32_t i = s->u.position[s->loop] + 1; i < r->ops.n && saved; i++) {
        const HloOp *op = hlo_at(s->h, r->ops.at[i]);
        if (op->nresults == 1 && is_member(s, op->results) && group_of(s, op->results) == group && who_reads(s, op->results).others)
            added += 2 * (int64_t)hlo_type_bytes(hlo_value_type(s->h, op->results));
    }
    return saved > 0 && added <= saved;
}

// --- the body -----------------------------------------------------------------------------------------

static void place_early(Stacks *s, ValueId v) {
    OpId def = s->h->values.at[v].def;
    if (!is_behind(s, v) || s->early[def])
        return;
    s->early[def] = true;
    for (uint32_t k = 0; k < hlo_at(s->h, def)->noperands; k++)
        place_early(s, hlo_operand(s->h, hlo_at(s->h, def), k));
}

static TypeId piece_type(Stacks *s, ValueId v) {
    const HloType t = *hlo_value_type(s->h, v);
    assert(t.dims[0] == s->trips);
    return hlo_type_tensor(s->h, t.dtype, t.rank - 1, t.dims + 1);
}

static ValueId piece_of(Stacks *s, ValueId v);

static ValueId push(Stacks *s, OpId id) { return walk_push_to(&s->w, &s->made, id); }

static ValueId whole_of(Stacks *s, ValueId v) {
    place_early(s, v);
    return v;
}

static ValueId piece_broadcast(Stacks *s, const HloOp *op, TypeId type) {
    Hlo *h = s->h;
    uint32_t n, kept = 0;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    int64_t to[OTRN_MAX_RANK], sizes[OTRN_MAX_RANK];
    ValueId from = hlo_operand(h, op, 0);
    bool whole = first_from(s, op) < 0;
    for (uint32_t d = 0; d < n; d++)
        if (dims[d]) {
            sizes[kept] = hlo_value_type(h, from)->dims[d];
            to[kept++] = dims[d] - 1;
        }
    ValueId in = whole ? whole_of(s, from) : piece_of(s, from);
    TypeId shape = hlo_type_tensor(h, hlo_value_type(h, from)->dtype, (int)kept, sizes);
    if (h->values.at[in].type != shape) // its first dimension is a 1
        in = push(s, hlo_op(h, HLO_RESHAPE, op->loc, 1, &in, 1, &shape));
    OpId made = hlo_op(h, HLO_BROADCAST_IN_DIM, op->loc, 1, &in, 1, &type);
    hlo_set_ints(h, made, AK_BROADCAST_DIMENSIONS, to, kept);
    return push(s, made);
}

static ValueId piece_op(Stacks *s, const HloOp *op, TypeId type) {
    Hlo *h = s->h;
    assert(op->noperands <= 3);
    if (op->code == HLO_CONSTANT)
        return push(s, hlo_op_splat(h, op->loc, type, splat_value(h, op->results)->data));
    if (op->code == HLO_BROADCAST_IN_DIM)
        return piece_broadcast(s, op, type);
    ValueId in[3];
    for (uint32_t k = 0; k < op->noperands; k++) {
        ValueId v = hlo_operand(h, op, k);
        in[k] = hlo_value_type(h, v)->rank ? piece_of(s, v) : whole_of(s, v);
    }
    return push(s, hlo_op_like(h, op, in, type));
}

// The value's piece in the body, made of pieces, or read where the whole is.
static ValueId piece_of(Stacks *s, ValueId v) {
    ValueId there = value_map_get(&s->inside, v);
    if (there)
        return there;
    assert(kind_of(s, v, DEPTH_MAX) != NO);
    TypeId type = piece_type(s, v);
    LocId loc = hlo_at(s->h, s->loop)->loc;
    HloOp op = hlo_def(s->h, v) ? *hlo_def(s->h, v) : (HloOp){0};
    ValueId made;
    if (is_result(s, v)) {
        ValueId piece = s->piece_of[s->h->values.at[v].index];
        made = push(s, hlo_op(s->h, HLO_RESHAPE, loc, 1, &piece, 1, &type));
    } else if (op.code && (is_behind(s, v) || (op.code == HLO_CONSTANT && splat_value(s->h, v)))) {
        made = piece_op(s, &op, type);
    } else {
        made = loop_read_piece(&s->w, &s->reads, v, s->index, type, loc);
    }
    value_map_set(s->c->scratch, &s->inside, v, made);
    return made;
}

// --- the loop -----------------------------------------------------------------------------------------

typedef struct Outs { // members that somebody else reads
    ValueId *of, *start, *next;
    uint32_t n;
} Outs;

typedef struct Bodies { // what the body gets
    OpList *behind; // … each of its ops, by place
    OpList last;    // … at its end: updates
    OpList before;  // and what stands before the loop
} Bodies;

// Where in the body the last piece is there that the group begins with.
static uint32_t group_place(const Stacks *s, uint32_t group) {
    const HloOp *loop = hlo_at(s->h, s->loop);
    OpId def = s->h->values.at[s->index].def;
    uint32_t last = def && s->u.region[def] == s->body ? s->u.position[def] : 0;
    for (uint32_t k = 0; k < loop->nresults; k++) {
        if (!is_member(s, loop->results + k) || group_of(s, loop->results + k) != group)
            continue;
        def = s->h->values.at[s->piece_of[k]].def;
        if (def && s->u.region[def] == s->body && s->u.position[def] > last)
            last = s->u.position[def];
    }
    return last;
}

static void make_group(Stacks *s, uint32_t group, Bodies *b, Outs *o) {
    Hlo *h = s->h;
    uint32_t n = h->regions.at[s->region].ops.n;
    s->inside = (ValueMap){0}, s->reads = s->made = (OpList){0};
    for (uint32_t i = s->u.position[s->loop] + 1; i < n; i++) {
        HloOp op = *hlo_at(h, h->regions.at[s->region].ops.at[i]);
        if (op.nresults != 1 || !is_member(s, op.results) || group_of(s, op.results) != group)
            continue;
        ValueId piece = piece_of(s, op.results);
        Readers by = who_reads(s, op.results);
        if (!by.returned && !by.others)
            continue;
        o->of[o->n] = op.results;
        o->start[o->n] = loop_new_stack(&s->w, &b->before, piece, s->trips, op.loc);
        o->next[o->n] = loop_write_piece(&s->w, &b->last, o->start[o->n], piece, s->index, op.loc);
        o->n++;
    }
    OpList *to = &b->behind[group_place(s, group)];
    for (uint32_t i = 0; i < s->reads.n; i++)
        VEC_PUSH(s->c->scratch, to, s->reads.at[i]);
    for (uint32_t i = 0; i < s->made.n; i++)
        VEC_PUSH(s->c->scratch, to, s->made.at[i]);
}

static void put_body(Stacks *s, const Bodies *b) {
    Hlo *h = s->h;
    OpList ops = {0};
    uint32_t n = h->regions.at[s->body].ops.n;
    for (uint32_t i = 0; i + 1 < n; i++) {
        VEC_PUSH(s->c->scratch, &ops, h->regions.at[s->body].ops.at[i]);
        for (uint32_t k = 0; k < b->behind[i].n; k++)
            VEC_PUSH(s->c->scratch, &ops, b->behind[i].at[k]);
    }
    for (uint32_t i = 0; i < b->last.n; i++)
        VEC_PUSH(s->c->scratch, &ops, b->last.at[i]);
    VEC_PUSH(s->c->scratch, &ops, h->regions.at[s->body].ops.at[n - 1]);
    walk_set_ops(h, s->body, &ops);
}

static void put_region(Stacks *s, OpId made, const OpList *before) {
    Hlo *h = s->h;
    OpList ops = {0};
    uint32_t at = s->u.position[s->loop], n = h->regions.at[s->region].ops.n;
    for (uint32_t i = 0; i < at; i++)
        VEC_PUSH(s->c->scratch, &ops, h->regions.at[s->region].ops.at[i]);
    for (uint32_t i = at + 1; i < n; i++)
        if (s->early[h->regions.at[s->region].ops.at[i]])
            VEC_PUSH(s->c->scratch, &ops, h->regions.at[s->region].ops.at[i]);
    for (uint32_t i = 0; i < before->n; i++)
        VEC_PUSH(s->c->scratch, &ops, before->at[i]);
    VEC_PUSH(s->c->scratch, &ops, made);
    for (uint32_t i = at + 1; i < n; i++)
        if (!s->early[h->regions.at[s->region].ops.at[i]])
            VEC_PUSH(s->c->scratch, &ops, h->regions.at[s->region].ops.at[i]);
    walk_set_ops(h, s->region, &ops);
}

static void change(Stacks *s, const bool *taken) {
    Hlo *h = s->h;
    HloOp loop = *hlo_at(h, s->loop);
    uint32_t room = h->regions.at[s->region].ops.n + 1;
    ValueId *at = ARENA_NEWN(s->c->scratch, ValueId, 3 * room);
    Outs o = {.of = at, .start = at + room, .next = at + 2 * room};
    Bodies b = {.behind = ARENA_NEWN(s->c->scratch, OpList, h->regions.at[s->body].ops.n + 1)};
    for (uint32_t v = 0; v < s->nvalues; v++)
        if (taken[v])
            make_group(s, v, &b, &o);
    LoopChange ch = {.keep = ARENA_NEWN(s->c->scratch, bool, loop.noperands + 1), .more = o.start, .next = o.next, .nmore = o.n};
    for (uint32_t k = 0; k < loop.nresults; k++) {
        ValueId v = loop.results + k;
        Readers by = is_member(s, v) && taken[group_of(s, v)] ? who_reads(s, v) : (Readers){.others = true};
        ch.keep[k] = by.others || by.returned;
    }
    put_body(s, &b);
    OpId made = loop_change(s->c, &s->w, s->loop, &ch);
    uint32_t kept = hlo_at(h, made)->noperands - o.n;
    for (uint32_t i = 0; i < o.n; i++)
        walk_replace(&s->w, o.of[i], hlo_at(h, made)->results + kept + i);
    put_region(s, made, &b.before);
}

// --- the pass -----------------------------------------------------------------------------------------

// What carried value k gets in each iteration, when it is a stack; all of a loop have one index.
static ValueId stack_piece(Stacks *s, const HloOp *loop, const LoopCount *n, uint32_t k) {
    const Hlo *h = s->h;
    ValueId arg = h->regions.at[s->body].args + k;
    const HloOp *op = loop_stacks(&s->u, loop, k);
    if (!op || !is_stack_type(s, arg))
        return 0;
    const HloType *whole = hlo_value_type(h, arg), *piece = hlo_value_type(h, hlo_operand(h, op, 1));
    if (piece->elems * s->trips != whole->elems || piece->dims[0] != 1 || piece->elems < PIECE_LEAST)
        return 0;
    ValueId index = hlo_operand(h, op, 2);
    if (s->index ? s->index != index : !loop_goes_over(h, loop, n, index))
        return 0;
    s->index = index;
    return before_forms(h, hlo_operand(h, op, 1));
}

static bool try_loop(void *pass, RegionId region, uint32_t at) {
    Stacks *s = pass;
    Hlo *h = s->h;
    OpId id = h->regions.at[region].ops.at[at];
    HloOp loop = *hlo_at(h, id);
    LoopCount n;
    if (loop.code != HLO_WHILE || !loop_count(h, &loop, &n))
        return false;
    s->region = region, s->loop = id, s->trips = n.trips, s->index = 0;
    s->body = h->op_regions.at[loop.regions + 1];
    s->piece_of = ARENA_NEWN(s->c->scratch, ValueId, loop.nresults + 1);
    for (uint32_t k = 0; k < loop.nresults; k++)
        s->piece_of[k] = stack_piece(s, &loop, &n, k);
    if (!s->index)
        return false;
    s->kind = ARENA_NEWN(s->c->scratch, uint8_t, h->values.n);
    s->sooner = ARENA_NEWN(s->c->scratch, uint8_t, h->ops.n);
    s->early = ARENA_NEWN(s->c->scratch, bool, h->ops.n);
    s->nvalues = h->values.n;
    s->group = ARENA_NEWN(s->c->scratch, uint32_t, h->values.n);
    for (uint32_t v = 0; v < h->values.n; v++)
        s->group[v] = v;
    for (uint32_t k = 0; k < loop.nresults; k++)
        kind_of(s, loop.results + k, DEPTH_MAX);
    note_members(s);
    bool *taken = ARENA_NEWN(s->c->scratch, bool, h->values.n), any = false;
    for (uint32_t k = 0; k < loop.nresults; k++)
        if (is_member(s, loop.results + k))
            any = (taken[group_of(s, loop.results + k)] = is_worth_it(s, group_of(s, loop.results + k))) || any;
    if (any)
        change(s, taken);
    return any;
}

void pass_stacks(Compile *c) {
    RegionId body = hlo_main(c->hlo)->body;
    for (int i = 0; i < ROUNDS; i++) {
        Stacks s = {.c = c, .h = c->hlo};
        walk_init(&s.w, c);
        users_make(&s.u, c->hlo, c->scratch, body);
        if (!walk_find(c->hlo, body, try_loop, &s))
            return;
        walk_region(&s.w, body);
        pass_dce(c);
    }
}
