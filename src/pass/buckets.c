// SPDX-License-Identifier: Apache-2.0
// buckets.c — collectives of one kind over the same devices become one.
// needs: values defined before use
// gives: all_reduce, reduce_scatter, all_gather and all_to_all of several operands each; those that sum stand right behind
//        the last of their operands, those that gather so far before the first of their readers that it does not wait
// stale: nothing
//
// A small collective is nearly all latency. Each has a stretch of the program in which it may stand: from its operands to its
// first reader. Those whose stretches have a place in common are joined there, in the order of the program, up to a size where by the
// chip's prices latency counts no more: nobody waits for a value that was there sooner without. Sums stand early, so that they
// run beside the work behind them, and gathers no sooner than the links need, because what is gathered takes memory. Movement that reads one
// stands before its own reader, movement and row programs that make its operand go up with it. Every element is summed as before. Control flow
// waits for all of them, so a sum that would not be hidden before it stands behind it.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "mach/cost.h"
#include "pass/walk.h"

#define SUM_BYTES (25u << 20)     // of a bucket that sums or moves
#define GATHER_BYTES (4u << 20)   // of one that gathers for somebody, who waits for all of it
#define RESULT_BYTES (100u << 20) // of one that gathers results: nobody waits
#define SMALL_PART 16 // one that is so much smaller than a bucket may join it beyond its size, by as much
#define MEMBERS_MAX 64
#define ALONG_MAX 16 // ops of a chain that come along with a collective
#define GAIN 1.1 // so much longer two must take than one of both

typedef struct Coll { // a collective of the region
    OpId op;
    uint32_t at, from, to; // its place; before which places it may stand: from … to
    uint64_t bytes;
} Coll;

typedef struct Bucket {
    VEC(OpId) ops;
    uint32_t from, to, place;
    uint64_t bytes;
    bool put;
} Bucket;

typedef struct Buckets {
    Compile *c;
    Hlo *h;
    bool scatters; // reduce_scatter too
    Walk w;
    RegionId region;  // in hand
    uint32_t *first;  // per value: first place of the region that reads it
    uint32_t *at;     // per op of the region: its place, from 1
    uint32_t *bucket; // per op: number of its bucket, from 1
    VEC(Coll) colls;
    VEC(Bucket) all;
    bool *late;      // per op: it waits for its reader
    uint32_t *along; // per op that stands before its first reader, wherever that goes: the place behind which it can be, from 1
} Buckets;

// --- what may be joined ------------------------------------------------------------------------------

static bool gathers(const HloOp *op) { return op->code == HLO_ALL_GATHER; }

// The op that a region of two arguments applies to them; 0: it is something else.
static HloOpcode combiner(const Hlo *h, const HloOp *op) {
    const HloRegion *r = hlo_op_region(h, op, 0);
    uint16_t code = region_combiner(h, r);
    return code && hlo_operand(h, hlo_at(h, r->ops.at[0]), 0) == r->args ? (HloOpcode)code : 0;
}

static bool is_candidate(const Buckets *b, const HloOp *op) {
    bool sums = op->code == HLO_ALL_REDUCE || (op->code == HLO_REDUCE_SCATTER && b->scatters);
    if (op->noperands != 1 || op->nresults != 1 || !(sums || gathers(op) || op->code == HLO_ALL_TO_ALL))
        return false;
    const HloType *in = hlo_value_type(b->h, hlo_operand(b->h, op, 0)), *out = hlo_value_type(b->h, op->results);
    return in->kind == HT_TENSOR && !in->dynamic && !in->text && in->dtype == out->dtype && (!sums || combiner(b->h, op));
}

static bool is_movement(const HloOp *op) {
    return (op->code == HLO_TRANSPOSE || op->code == HLO_RESHAPE || op->code == HLO_CONVERT) && op->noperands == 1;
}

// The collective that makes a value, also behind movement; 0: none of this region does.
static OpId maker(const Buckets *b, ValueId v) {
    OpId def = b->h->values.at[v].def;
    while (def && b->at[def] && is_movement(hlo_at(b->h, def)))
        def = b->h->values.at[hlo_operand(b->h, hlo_at(b->h, def), 0)].def;
    return def && b->at[def] && is_candidate(b, hlo_at(b->h, def)) ? def : 0;
}

static bool attr_same(const HloAttr *x, const HloAttr *y) {
    if (x->kind != y->kind || x->n != y->n || x->cols != y->cols)
        return false;
    if (x->kind == HA_INTS2)
        return !memcmp(x->ints, y->ints, x->n * sizeof *x->ints);
    return (x->kind == HA_NONE || x->kind == HA_INT || x->kind == HA_BOOL) && x->i == y->i;
}

static bool are_alike(const Buckets *b, const HloOp *x, const HloOp *y) {
    const Hlo *h = b->h;
    bool same = x->code == y->code && hlo_value_type(h, x->results)->dtype == hlo_value_type(h, y->results)->dtype &&
                (!x->nregions || combiner(h, x) == combiner(h, y));
    for (int i = 0; same && i < hlo_row(x)->nattrs; i++)
        same = attr_same(&x->attrs[i], &y->attrs[i]);
    return same;
}

// --- where they may stand ----------------------------------------------------------------------------

// Movement and row programs that make a collective's operand come along with it, but for those that wait for another collective.
static bool comes_along(const Buckets *b, OpId id) {
    const HloOp *op = hlo_at(b->h, id);
    bool along = b->at[id] && (is_movement(op) || op->code == HLO_ROWS);
    for (uint32_t i = 0; i < op->noperands && along; i++)
        along = !maker(b, hlo_operand(b->h, op, i));
    return along;
}

// The place behind which a value can be: it comes along with who reads it.
static uint32_t ready(Buckets *b, ValueId v, int deep) {
    OpId id = b->h->values.at[v].def;
    if (!id || b->along[id] || deep == ALONG_MAX || !comes_along(b, id))
        return !id ? 0 : b->along[id] ? b->along[id] - 1 : b->at[id];
    const HloOp *op = hlo_at(b->h, id);
    uint32_t last = 0;
    for (uint32_t i = 0; i < op->noperands; i++) {
        uint32_t at = ready(b, hlo_operand(b->h, op, i), deep + 1);
        last = at > last ? at : last;
    }
    b->late[id] = true;
    b->along[id] = last + 1;
    return last;
}

// Where a collective can be; what another one makes is there at the latest where this one stands.
static uint32_t soonest(Buckets *b, ValueId operand, uint32_t place) { return maker(b, operand) ? place : ready(b, operand, 0); }

static void find(Buckets *b, RegionId r) {
    Hlo *h = b->h;
    uint32_t n = h->regions.at[r].ops.n;
    memset(b->first, 0xff, h->values.n * sizeof *b->first);
    for (uint32_t i = n; i-- > 0;) {
        const HloOp *op = hlo_at(h, h->regions.at[r].ops.at[i]);
        b->at[h->regions.at[r].ops.at[i]] = i + 1;
        walk_first_reads(h, op, is_movement(op) && b->first[op->results] < n ? b->first[op->results] : i, b->first);
    }
    for (uint32_t i = 0; i < n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        const HloOp *op = hlo_at(h, id);
        if (!is_candidate(b, op))
            continue;
        uint64_t in = hlo_type_bytes(hlo_value_type(h, hlo_operand(h, op, 0))), out = hlo_type_bytes(hlo_value_type(h, op->results));
        uint32_t read = b->first[op->results];
        VEC_PUSH(b->c->scratch, &b->colls, ((Coll){id, i, soonest(b, hlo_operand(h, op, 0), i), read < n ? read : n - 1, in > out ? in : out}));
    }
}

// Sums by when they can be, gathers by when they must be; then by place.
static uint32_t when(const Buckets *b, const Coll *c) { return gathers(hlo_at(b->h, c->op)) ? c->to : c->from; }

static void sort(Buckets *b) { // few, and nearly in order
    for (uint32_t i = 1; i < b->colls.n; i++) {
        Coll c = b->colls.at[i];
        uint32_t k = i;
        for (; k > 0 && when(b, &b->colls.at[k - 1]) > when(b, &c); k--)
            b->colls.at[k] = b->colls.at[k - 1];
        b->colls.at[k] = c;
    }
}

static double wire_ns(const Buckets *b, const HloOp *op, uint64_t bytes) { return cost_wire(b->h, b->c->chip, op, bytes); }

// What the region does between two of its places.
static double between_ns(const Buckets *b, uint32_t from, uint32_t to) {
    double ns = 0;
    for (uint32_t i = from; i < to; i++) {
        const HloOp *op = hlo_at(b->h, b->h->regions.at[b->region].ops.at[i]);
        ns += hlo_row(op)->cls == HC_COLL ? 0 : cost_op(b->h, b->c->chip, op);
    }
    return ns;
}

// A bucket had better take one more: latency is a part of the two that counts, or most of what the bucket has, or most of that one, for which it
// waits no longer than is saved. Else it would wait in vain.
static bool gains(const Buckets *b, const Bucket *k, const Coll *c) {
    if (!b->c->chip)
        return true;
    const HloOp *op = hlo_at(b->h, c->op);
    double first = wire_ns(b, op, k->bytes), next = wire_ns(b, op, c->bytes), saved = first + next - wire_ns(b, op, k->bytes + c->bytes);
    return saved > (GAIN - 1) * (first + next - saved) || 2 * saved > first || (2 * saved > next && between_ns(b, k->from, c->from) < saved);
}

static void put(Buckets *b, const Coll *c) {
    const HloOp *op = hlo_at(b->h, c->op);
    bool waited = gathers(op) && c->to + 1 < b->h->regions.at[b->region].ops.n; // by another than the region's return
    uint64_t limit = waited ? GATHER_BYTES : gathers(op) ? RESULT_BYTES : SUM_BYTES;
    uint32_t i = b->all.n;
    while (i > 0 && !are_alike(b, op, hlo_at(b->h, b->all.at[i - 1].ops.at[0])))
        i--;
    Bucket *to = i ? &b->all.at[i - 1] : NULL; // the last of its kind
    uint32_t from = to && to->from > c->from ? to->from : c->from, end = to && to->to < c->to ? to->to : c->to;
    uint64_t least = to && to->bytes < c->bytes ? to->bytes : c->bytes;
    bool large = to && to->bytes + c->bytes > limit + (least > limit / SMALL_PART ? 0 : limit / SMALL_PART);
    OpId source = maker(b, hlo_operand(b->h, op, 0)); // which it cannot go with
    if (!to || from > end || large || (source && b->bucket[source] == i) || to->ops.n == MEMBERS_MAX || !gains(b, to, c)) {
        VEC_PUSH(b->c->scratch, &b->all, ((Bucket){.from = c->from, .to = c->to}));
        to = &b->all.at[b->all.n - 1];
        from = c->from, end = c->to;
    }
    VEC_PUSH(b->c->scratch, &to->ops, c->op);
    to->from = from, to->to = end, to->bytes += c->bytes;
    to->place = gathers(op) ? end : from;
    b->bucket[c->op] = (uint32_t)(to - b->all.at) + 1;
}

// --- beside what they run ----------------------------------------------------------------------------

static bool is_control(const HloOp *op) { return op->code == HLO_IF || op->code == HLO_CASE || op->code == HLO_WHILE; }

// Control flow waits for every collective. A sum that what is before it would not hide goes behind it, where it may.
static void put_behind_control(Buckets *b, RegionId r, Bucket *k) {
    const HloOp *op = hlo_at(b->h, k->ops.at[0]);
    if (!b->c->chip || gathers(op))
        return;
    double left = wire_ns(b, op, k->bytes);
    for (uint32_t i = k->place; i < k->to && left > 0; i++) {
        const HloOp *at = hlo_at(b->h, b->h->regions.at[r].ops.at[i]);
        if (is_control(at)) {
            k->place = i + 1;
            return;
        }
        left -= cost_op(b->h, b->c->chip, at);
    }
}

// Who reads a gather first should not wait for it: it stands as far before as what is between takes the links' time, but before none that
// is read sooner, and not before control flow.
static void put_ahead(Buckets *b, RegionId r) {
    uint32_t next = UINT32_MAX;
    for (uint32_t i = b->all.n; i-- > 0 && b->c->chip;) {
        Bucket *k = &b->all.at[i];
        const HloOp *op = hlo_at(b->h, k->ops.at[0]);
        if (!gathers(op))
            continue;
        double left = wire_ns(b, op, k->bytes);
        for (; k->place > k->from && (left > 0 || k->place > next); k->place--) {
            const HloOp *before = hlo_at(b->h, b->h->regions.at[r].ops.at[k->place - 1]);
            if (is_control(before))
                break;
            left -= hlo_row(before)->cls == HC_COLL ? 0 : cost_op(b->h, b->c->chip, before);
        }
        next = k->place;
    }
}

// --- putting together --------------------------------------------------------------------------------

static OpId join(Buckets *b, const Bucket *k) {
    Hlo *h = b->h;
    ValueId operands[MEMBERS_MAX];
    TypeId types[MEMBERS_MAX];
    for (uint32_t i = 0; i < k->ops.n; i++) {
        operands[i] = b->w.repl.at[hlo_operand(h, hlo_at(h, k->ops.at[i]), 0)];
        types[i] = h->values.at[hlo_at(h, k->ops.at[i])->results].type;
    }
    assert(k->ops.n && k->ops.n <= MEMBERS_MAX);
    assert(k->from <= k->to);
    const HloOp like = *hlo_at(h, k->ops.at[0]);
    OpId id = hlo_op(h, like.code, like.loc, k->ops.n, operands, k->ops.n, types);
    HloOp *op = hlo_at(h, id);
    op->attrs = like.attrs;
    op->extra = like.extra;
    op->nextra = like.nextra;
    if (like.nregions)
        hlo_op_add_combiner(h, id, combiner(h, &like), h->values.at[hlo_op_region(h, &like, 0)->args].type);
    walk_grow(&b->w);
    for (uint32_t i = 0; i < k->ops.n; i++)
        walk_replace(&b->w, hlo_at(h, k->ops.at[i])->results, hlo_at(h, id)->results + i);
    return id;
}

// Movement behind a collective goes right before who reads it: transfers are taken up in order, and those behind it would wait too.
static bool is_late(const Buckets *b, const HloOp *op) {
    return is_movement(op) && maker(b, hlo_operand(b->h, op, 0)) && b->first[op->results] != UINT32_MAX;
}

static void push_late(Buckets *b, const HloOp *reader);

static void push(Buckets *b, OpId id) {
    push_late(b, hlo_at(b->h, id));
    for (uint32_t k = 0; k < hlo_at(b->h, id)->nregions; k++)
        walk_region(&b->w, b->h->op_regions.at[hlo_at(b->h, id)->regions + k]);
    walk_operands(&b->w, id);
    VEC_PUSH(b->c->scratch, &b->w.out, id);
}

static void push_late(Buckets *b, const HloOp *reader) {
    for (uint32_t i = 0; i < reader->noperands; i++) {
        OpId def = b->h->values.at[hlo_operand(b->h, reader, i)].def;
        if (!b->late[def])
            continue;
        b->late[def] = false;
        push(b, def);
    }
    for (uint32_t k = 0; k < reader->nregions; k++) {
        const HloRegion *r = hlo_op_region(b->h, reader, k);
        for (uint32_t i = 0; i < r->ops.n; i++)
            push_late(b, hlo_at(b->h, r->ops.at[i]));
    }
}

// What its operands need of other buckets comes first.
static void put_out(Buckets *b, uint32_t number) {
    Bucket *k = &b->all.at[number];
    if (k->put)
        return;
    for (uint32_t i = 0; i < k->ops.n; i++) {
        OpId from = maker(b, hlo_operand(b->h, hlo_at(b->h, k->ops.at[i]), 0));
        if (from)
            put_out(b, b->bucket[from] - 1);
    }
    for (uint32_t i = 0; i < k->ops.n; i++)
        push_late(b, hlo_at(b->h, k->ops.at[i]));
    push(b, k->ops.n > 1 ? join(b, k) : k->ops.at[0]);
    k->put = true;
}

static void join_region(void *pass, RegionId r) {
    Buckets *b = pass;
    Hlo *h = b->h;
    bool any = false;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n && !any; i++)
        any = is_candidate(b, hlo_at(h, h->regions.at[r].ops.at[i]));
    if (!any)
        return;
    b->colls.n = b->all.n = 0;
    b->region = r;
    b->w.out = (OpList){0};
    find(b, r);
    sort(b);
    for (uint32_t i = 0; i < b->colls.n; i++)
        put(b, &b->colls.at[i]);
    for (uint32_t i = 0; i < b->all.n; i++)
        put_behind_control(b, r, &b->all.at[i]);
    put_ahead(b, r);
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        for (uint32_t k = 0; k < b->all.n; k++)
            if (b->all.at[k].place == i)
                put_out(b, k);
        OpId id = h->regions.at[r].ops.at[i];
        if (b->bucket[id] || b->along[id])
            continue;
        if (is_late(b, hlo_at(h, id)))
            b->late[id] = true;
        else
            push(b, id);
    }
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) // regions inside, which come next, leave them where they are
        b->at[h->regions.at[r].ops.at[i]] = 0;
    walk_set_ops(h, r, &b->w.out);
}

void buckets_join(Compile *c, bool scatters) {
    Hlo *h = c->hlo;
    Buckets b = {.c = c, .h = h, .scatters = scatters};
    b.first = ARENA_NEWN(c->scratch, uint32_t, 2 * h->values.n); // and those that are made here
    b.at = ARENA_NEWN(c->scratch, uint32_t, 2 * h->ops.n);
    b.bucket = ARENA_NEWN(c->scratch, uint32_t, 2 * h->ops.n);
    b.late = ARENA_NEWN(c->scratch, bool, 2 * h->ops.n);
    b.along = ARENA_NEWN(c->scratch, uint32_t, 2 * h->ops.n);
    walk_init(&b.w, c);
    walk_regions(h, hlo_main(h)->body, join_region, &b);
}

void pass_buckets(Compile *c) { buckets_join(c, true); }
