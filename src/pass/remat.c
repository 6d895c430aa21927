// SPDX-License-Identifier: Apache-2.0
// remat.c — what one loop stacks up for a later one: kept where that is cheaper, else computed again there.
// needs: loops that carry only what changes (pass_loops); equal operations once (pass_cse)
// gives: a loop that reads stacks of another computes again from few of them what takes less time than HBM does
// stale: nothing
//
//   for i: x[i] … y = f(x); Y[i] = y        for i: x[i] … X[i] = x
//   for j: use(Y[n-1-j])              ──►   for j: use(f(X[n-1-j]))
//
// A scan and its gradient are such loops. Without loops a gradient finds what its operands are made of, and row programs and
// attention take what they need (scores.c); here it found stacks. Each value of the first loop's body may be stored and read (HBM's
// time), or made again (the engines' time, and the same question for its operands): a minimum cut answers for all of them at once.
#include <math.h>
#include <string.h>

#include "clock/clock.h"
#include "hlo/dot.h"
#include "hlo/loop.h"
#include "hlo/query.h"
#include "hlo/users.h"
#include "mach/cost.h"
#include "pass/cut.h"
#include "pass/loops.h"
#include "pass/rows.h"

#define GAIN 0.97       // of the time that stacks take, at most, or nothing changes
#define SCORE_MOST 128  // contracted elements of a product that may be made again
#define ROUNDS 8
#define VALUES_MAX 4096 // of a body that are looked at
#define LANES 128
#define CHAIN_MAX 12     // operations between scores and what is made of them

typedef struct Stack { // carried value k of the first loop
    uint32_t k;
    ValueId piece; // what is put there, [1, …]
    bool later;    // only the second loop reads it, a piece a turn
} Stack;

typedef struct Remat {
    Compile *c;
    Hlo *h;
    Walk w;
    Users u;
    double unit, byte; // ps: an element of elementwise work, a byte to or from HBM
    double draw;  // … a random number
    double start; // … a transfer before its first byte
    double lag; // elements of a row that an engine does while an instruction's result is on its way to the next
    OpId first, second;
    RegionId body, later; // of both loops
    uint32_t counter;     // of the first
    int64_t trips;
    ValueId index;        // in the second: which piece it reads
    VEC(Stack) stacks;
    VEC(ValueId) values;  // nodes
    uint32_t *node;       // per value, from 1
    bool *read_whole;     // per value: somebody reads it in memory
    ValueMap again;       // values of the first body -> of the second
    ValueId *stack_of;    // per node: where it is kept, 0: it is not
} Remat;

static double bytes_of(const Remat *r, ValueId v) { return (double)hlo_type_bytes(hlo_value_type(r->h, v)); }

// --- stacks -------------------------------------------------------------------------------------------

// A piece of [1, …] of the whole, at an index of the first dimension.
static bool is_piece(const Remat *r, ValueId piece, ValueId whole) {
    const HloType *p = hlo_value_type(r->h, piece), *w = hlo_value_type(r->h, whole);
    bool same = p->rank == w->rank && p->rank > 0 && p->dims[0] == 1 && w->dims[0] == r->trips && !w->text;
    for (int d = 1; same && d < p->rank; d++)
        same = p->dims[d] == w->dims[d];
    return same;
}

static bool reads_piece(const Remat *r, const HloOp *op, ValueId whole) {
    return op->code == HLO_DYNAMIC_SLICE && hlo_operand(r->h, op, 0) == whole && is_piece(r, op->results, whole);
}

// Only the second loop reads the result, a piece at the same index each time.
static bool only_later(Remat *r, ValueId whole) {
    for (Reader by = readers_of(&r->u, whole); reader_next(&by);) {
        if (r->u.region[by.id] != r->later || !reads_piece(r, by.op, whole))
            return false;
        if (r->index && r->index != hlo_operand(r->h, by.op, 1))
            return false;
        r->index = hlo_operand(r->h, by.op, 1);
    }
    return users_reads(&r->u, whole) > 0;
}

static void find_stacks(Remat *r) {
    const Hlo *h = r->h;
    const HloOp *loop = hlo_at(h, r->first);
    ValueId args = h->regions.at[r->body].args;
    r->stacks.n = 0, r->index = 0;
    for (uint32_t k = 0; k < loop->noperands; k++) {
        const HloOp *op = loop_stacks(&r->u, loop, k);
        if (op && hlo_operand(h, op, 2) == args + r->counter && is_piece(r, hlo_operand(h, op, 1), args + k))
            VEC_PUSH(r->c->scratch, &r->stacks, ((Stack){k, hlo_operand(h, op, 1), only_later(r, loop->results + k)}));
    }
}

// --- what a value costs -------------------------------------------------------------------------------

static bool is_counter(const Remat *r, ValueId v) { return v == r->h->regions.at[r->body].args + r->counter; }

static bool is_inside(const Remat *r, ValueId v) { // of the first loop's body, or its argument
    OpId def = r->h->values.at[v].def;
    return def ? r->u.region[def] == r->body : r->h->values.at[v].region == r->body;
}

// There in every turn of the second loop too, for nothing.
static bool is_free(const Remat *r, ValueId v) {
    const HloOp *op = hlo_def(r->h, v);
    if (!is_inside(r, v) || is_counter(r, v))
        return true;
    if (!op)
        return false;
    if (op->code == HLO_DYNAMIC_SLICE && is_counter(r, hlo_operand(r->h, op, 1)) && !is_inside(r, hlo_operand(r->h, op, 0)))
        return is_piece(r, v, hlo_operand(r->h, op, 0));
    return op->code == HLO_CONSTANT || op->code == HLO_IOTA;
}

static int64_t product_of(const HloType *t, const int64_t *dims, uint32_t n) {
    int64_t p = 1;
    for (uint32_t i = 0; i < n; i++)
        p *= t->dims[dims[i]];
    return p;
}

// Scores, or what is made of them element by element: rows of each batch have tiles of their own.
static bool is_of_scores(const Remat *r, ValueId v, int depth) {
    const HloOp *op = hlo_def(r->h, v);
    if (!op || !depth || (!hlo_is_elementwise(op) && op->code != HLO_DOT_GENERAL && op->code != HLO_TRANSPOSE))
        return false;
    if (op->code == HLO_DOT_GENERAL)
        return dot_dims(op).nb > 0;
    return is_of_scores(r, hlo_operand(r->h, op, op->code == HLO_SELECT), depth - 1);
}

// Batches of rows and columns that share a tile (tile/block.c); 0: it has no such dimensions.
static int64_t batches_of(const Remat *r, ValueId v) {
    const HloType *t = hlo_value_type(r->h, v);
    if (t->rank <= 2 || !t->elems)
        return 0;
    int64_t rows = t->dims[t->rank - 2], columns = t->dims[t->rank - 1];
    return rows_batches(r->c->chip, t->dtype, t->elems / (rows * columns), rows, columns);
}

// Instructions of a chain wait for each other: in short rows longer than they work.
static double row_elems(const Remat *r, ValueId v) {
    const HloType *t = hlo_value_type(r->h, v);
    int64_t columns = t->rank && t->dims[t->rank - 1] > 1 ? t->dims[t->rank - 1] : LANES, n = batches_of(r, v);
    columns *= n && is_of_scores(r, v, CHAIN_MAX) ? n : 1;
    return (double)t->elems * (1 + r->lag / (double)columns);
}

// Rows and columns of each batch are so few that the product and the program that reads it are apart: it is stored.
static bool is_short(const Remat *r, const HloOp *dot) {
    DotDims by = dot_dims(dot);
    const HloType *a = hlo_value_type(r->h, hlo_operand(r->h, dot, 0)), *b = hlo_value_type(r->h, hlo_operand(r->h, dot, 1));
    int64_t inside = product_of(a, by.batch[0], by.nb) * dot_contracted(r->h, dot), most = rows_short(r->c->chip) * inside;
    return a->elems <= most && b->elems <= most && rows_batches_of(r->c->chip, r->h, dot) < 2;
}

static double dot_cost(const Remat *r, const HloOp *op, double elems) {
    ValueId a = hlo_operand(r->h, op, 0), b = hlo_operand(r->h, op, 1);
    int dtype = hlo_value_type(r->h, a)->dtype;
    if (!dot_dims(op).nb || dot_contracted(r->h, op) > SCORE_MOST || !dtype_is_float(dtype))
        return -1;
    if (is_of_scores(r, a, CHAIN_MAX) || is_of_scores(r, b, CHAIN_MAX)) // weights times values: no scores
        return -1;
    double cost = elems * 1000 * cost_columns(r->c->chip, dtype, 1) / LANES / 2; // beside the engines
    cost += is_short(r, op) ? bytes_of(r, op->results) * r->byte * 2 : 0;
    for (uint32_t k = 0; k < 2; k++) { // queries and keys are there for the gradients; what is larger is read once more
        double reads = bytes_of(r, hlo_operand(r->h, op, k));
        cost += reads > bytes_of(r, op->results) ? reads * r->byte : 0;
    }
    return cost;
}

// The combiner of a plain reduction along rows; HLO_NONE: another one.
static HloOpcode row_reduction(const Remat *r, const HloOp *op) {
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_DIMENSIONS, &n);
    if (op->code != HLO_REDUCE || op->noperands != 2)
        return HLO_NONE;
    int rank = hlo_value_type(r->h, hlo_operand(r->h, op, 0))->rank;
    for (uint32_t i = 0; i < n; i++)
        if (dims[i] < rank - (int)n)
            return HLO_NONE;
    uint16_t code = reduce_body(r->h, op);
    return code == HLO_ADD || code == HLO_MAXIMUM || code == HLO_MINIMUM ? (HloOpcode)code : HLO_NONE;
}

// What a slice takes lies apart in memory.
static bool has_gaps(const Remat *r, const HloOp *slice) {
    uint32_t n;
    const int64_t *strides = hlo_ints(slice, AK_STRIDES, &n);
    const HloType *from = hlo_value_type(r->h, hlo_operand(r->h, slice, 0)), *to = hlo_value_type(r->h, slice->results);
    bool several = false; // of something before
    for (int i = 0; i < to->rank; i++) {
        if (strides[i] != 1 || (several && to->dims[i] != from->dims[i]))
            return true;
        several |= to->dims[i] > 1;
    }
    return false;
}

// Scores' tiles, which a program has in hand (tile/block.c); shorter ones are steps of their own.
static bool is_in_block(const Remat *r, ValueId v) {
    const HloType *t = hlo_value_type(r->h, v);
    int64_t few = rows_short(r->c->chip), n = batches_of(r, v);
    return n && (n > 1 || t->dims[t->rank - 1] > few || t->dims[t->rank - 2] > few) && is_of_scores(r, v, CHAIN_MAX);
}

static bool is_number(const Remat *r, ValueId v) {
    const HloOp *by = hlo_def(r->h, v);
    return splat_value(r->h, by && by->code == HLO_BROADCAST_IN_DIM ? hlo_operand(r->h, by, 0) : v) != NULL;
}

// Divided by a number behind a division by one a row, as weights are that dropout scales: the two are one (pass/simplify.c).
static bool is_scaled_before(const Remat *r, const HloOp *op) {
    const HloOp *inner = op->code == HLO_DIVIDE || op->code == HLO_MULTIPLY ? hlo_def(r->h, hlo_operand(r->h, op, 0)) : NULL;
    while (inner && inner->code == HLO_CONVERT)
        inner = hlo_def(r->h, hlo_operand(r->h, inner, 0));
    const HloOp *by = inner && inner->code == HLO_DIVIDE ? hlo_def(r->h, hlo_operand(r->h, inner, 1)) : NULL;
    return by && by->code == HLO_BROADCAST_IN_DIM && is_number(r, hlo_operand(r->h, op, 1));
}

// Who makes the value writes it in the narrower type.
static bool is_rounded_as_written(const Remat *r, const HloOp *op) {
    return op->code == HLO_CONVERT && users_reads(&r->u, hlo_operand(r->h, op, 0)) == 1;
}

// In a block what other instructions take along is for nothing; elsewhere a program waits for transfers.
static double instructions(const Remat *r, const HloOp *op) {
    OpId by = users_only(&r->u, op->results);
    bool taken = (by && hlo_is_taken_along(r->h, op, hlo_at(r->h, by))) || is_scaled_before(r, op) || is_rounded_as_written(r, op);
    return taken && is_in_block(r, op->results) ? 0 : hlo_instructions(r->h, op);
}

// Making a value again of its operands, in ps; below 0: it cannot be, or never pays.
static double make_cost(const Remat *r, ValueId v) {
    const HloOp *op = hlo_def(r->h, v);
    double elems = row_elems(r, v);
    if (!op || op->nresults != 1 || op_has_effect(r->h, op))
        return -1;
    switch (op->code) {
    case HLO_RESHAPE:
    case HLO_BROADCAST_IN_DIM:
        return 0;
    case HLO_SLICE: // of neighbours: a view; else a step that reads and writes, and its reader comes behind
        return has_gaps(r, op) ? bytes_of(r, v) * r->byte * 3 + r->start : 0;
    case HLO_TRANSPOSE: // the product gives its result in the order that is wanted (pass_turns)
        if (hlo_def(r->h, hlo_operand(r->h, op, 0)) && hlo_def(r->h, hlo_operand(r->h, op, 0))->code == HLO_DOT_GENERAL)
            return 0;
        return bytes_of(r, v) * r->byte * 2;
    case HLO_CONCATENATE:
        return bytes_of(r, v) * r->byte * 2;
    case HLO_DRAW: // by who reads it; a choice by it draws for itself
        return hlo_value_type(r->h, v)->dtype == DT_I1 ? 0 : (double)hlo_value_type(r->h, v)->elems * r->draw;
    case HLO_DOT_GENERAL:
        return dot_cost(r, op, (double)hlo_value_type(r->h, v)->elems);
    case HLO_REDUCE:
        return row_reduction(r, op) ? row_elems(r, hlo_operand(r->h, op, 0)) * r->unit : -1;
    default:
        return hlo_is_elementwise(op) ? elems * r->unit * instructions(r, op) : -1;
    }
}

static const Stack *stack_with(const Remat *r, ValueId piece) {
    for (uint32_t i = 0; i < r->stacks.n; i++)
        if (r->stacks.at[i].piece == piece)
            return &r->stacks.at[i];
    return NULL;
}

static bool is_carried(const Remat *r, ValueId v) { return !hlo_def(r->h, before_forms(r->h, v)); }

// A product that takes the operand, `made` in the first loop, where that is made: tiles of scores, beside them at most a tile of columns
// (tile/block.c).
static bool takes_tiles(const Remat *r, const HloOp *dot, uint32_t operand, ValueId made) {
    DotDims by = dot_dims(dot);
    const HloType *other = hlo_value_type(r->h, hlo_operand(r->h, dot, !operand));
    return by.nb && other->elems / product_of(other, by.batch[!operand], by.nb) / dot_contracted(r->h, dot) <= SCORE_MOST && is_in_block(r, made);
}

// A product of the first loop that would take the value where it is made reads it in memory, once that is stored.
static bool feeds_product(const Remat *r, ValueId v) {
    v = before_forms(r->h, v);
    for (Reader by = readers_of(&r->u, v); reader_next(&by);) {
        if (by.op->code == HLO_DOT_GENERAL && r->u.region[by.id] == r->body && takes_tiles(r, by.op, hlo_operand(r->h, by.op, 1) == v, v))
            return true;
    }
    return false;
}

// Storing it in the one loop and reading it in the other. Carried values lie elsewhere and are copied; what is stored anyway
// is only read.
static double keep_cost(const Remat *r, ValueId v) {
    const Stack *s = stack_with(r, v);
    return bytes_of(r, v) * r->byte * (s && !s->later ? 1 : is_carried(r, v) || feeds_product(r, v) ? 3 : 2);
}

// --- who reads it in memory ---------------------------------------------------------------------------

static bool is_read_whole(const Remat *r, ValueId v, ValueId made, int depth) {
    for (Reader by = readers_of(&r->u, v); reader_next(&by);) {
        bool moves = is_reshape(r->h, by.op) || by.op->code == HLO_TRANSPOSE || by.op->code == HLO_CONVERT;
        if (moves ? depth > 0 && is_read_whole(r, by.op->results, made, depth - 1) : by.op->code == HLO_DOT_GENERAL && !takes_tiles(r, by.op, hlo_operand(r->h, by.op, 1) == v, made))
            return true;
    }
    return false;
}

// Operands of what is made again, and who reads pieces in the second loop.
static void note_readers(Remat *r) {
    for (uint32_t i = 0; i < r->stacks.n; i++) {
        const Stack *s = &r->stacks.at[i];
        for (Reader by = readers_of(&r->u, hlo_at(r->h, r->first)->results + s->k); s->later && reader_next(&by);)
            r->read_whole[s->piece] |= is_read_whole(r, by.op->results, before_forms(r->h, s->piece), 6);
    }
    for (uint32_t i = 0; i < r->values.n; i++) {
        ValueId v = r->values.at[i];
        const HloOp *op = hlo_def(r->h, v);
        if (!op || make_cost(r, v) < 0)
            continue;
        bool in_memory = op->code == HLO_DOT_GENERAL || (is_reshape(r->h, op) && r->read_whole[v]);
        for (uint32_t k = 0; k < op->noperands && in_memory; k++)
            r->read_whole[hlo_operand(r->h, op, k)] = true;
    }
}

// --- the cut ------------------------------------------------------------------------------------------

static void need(Remat *r, ValueId v) { // operands behind those who read them
    if (r->node[v] || is_free(r, v) || r->values.n == VALUES_MAX)
        return;
    VEC_PUSH(r->c->scratch, &r->values, v);
    r->node[v] = r->values.n;
}

static void find_values(Remat *r) {
    r->values.n = 0;
    memset(r->node, 0, (r->h->values.n + 1) * sizeof *r->node);
    for (uint32_t i = 0; i < r->stacks.n; i++)
        if (r->stacks.at[i].later)
            need(r, r->stacks.at[i].piece);
    for (uint32_t i = 0; i < r->values.n; i++) {
        const HloOp *op = hlo_def(r->h, r->values.at[i]);
        for (uint32_t k = 0; op && make_cost(r, r->values.at[i]) >= 0 && k < op->noperands; k++)
            need(r, hlo_operand(r->h, op, k));
    }
}

static uint32_t in_of(uint32_t node) { return 2 * node; }
static uint32_t out_of(uint32_t node) { return 2 * node + 1; }

// Fills r->stack_of with 1 for what is to be kept; false: what there is costs no more.
static bool choose(Remat *r) {
    Cut g;
    uint32_t n = r->values.n;
    double now = 0;
    bool *side = ARENA_NEWN(r->c->scratch, bool, 2 * n + 2);
    cut_init(&g, r->c->scratch, 2 * n + 2);
    for (uint32_t i = 1; i <= n; i++) {
        ValueId v = r->values.at[i - 1];
        const HloOp *op = hlo_def(r->h, v);
        double make = make_cost(r, v), keep = keep_cost(r, v);
        bool moves = op && is_reshape(r->h, op);
        make += make >= 0 && r->read_whole[v] && !moves ? keep : 0;
        cut_edge(&g, 0, in_of(i), make < 0 ? CUT_NEVER : (int64_t)make);
        cut_edge(&g, in_of(i), out_of(i), (int64_t)keep);
        for (uint32_t k = 0; op && make >= 0 && k < op->noperands; k++)
            if (r->node[hlo_operand(r->h, op, k)])
                cut_edge(&g, out_of(r->node[hlo_operand(r->h, op, k)]), in_of(i), CUT_NEVER);
    }
    for (uint32_t i = 0; i < r->stacks.n; i++)
        if (r->stacks.at[i].later && r->node[r->stacks.at[i].piece]) {
            cut_edge(&g, out_of(r->node[r->stacks.at[i].piece]), 1, CUT_NEVER);
            now += keep_cost(r, r->stacks.at[i].piece);
        }
    if ((double)cut_make(&g, 0, 1, side) > now * GAIN)
        return false;
    r->stack_of = ARENA_NEWN(r->c->scratch, ValueId, n + 1);
    for (uint32_t i = 1; i <= n; i++)
        r->stack_of[i] = side[in_of(i)] && !side[out_of(i)];
    return true;
}

// --- the first loop -----------------------------------------------------------------------------------

typedef struct NewStacks {
    ValueId *of, *start, *next;
    uint32_t n;
} NewStacks;

// New stacks of values that the body carries, or of those that it makes.
static void push_updates(Remat *r, NewStacks *m, OpList *before, OpList *ops, bool carried) {
    LocId loc = hlo_at(r->h, r->first)->loc;
    for (uint32_t i = 1; i <= r->values.n; i++) {
        ValueId v = r->values.at[i - 1];
        const Stack *s = r->stack_of[i] ? stack_with(r, v) : NULL;
        if (!r->stack_of[i] || (s && !s->later) || carried != !hlo_def(r->h, v))
            continue;
        m->of[m->n] = v;
        m->start[m->n] = loop_new_stack(&r->w, before, v, r->trips, loc);
        m->next[m->n] = loop_write_piece(&r->w, ops, m->start[m->n], v, r->h->regions.at[r->body].args + r->counter, loc);
        m->n++;
    }
}

// Stacks of what is kept instead of those only the second loop reads. Returns the loop; before: what it begins with.
static OpId change_first(Remat *r, OpList *before) {
    Hlo *h = r->h;
    HloOp loop = *hlo_at(h, r->first);
    HloRegion body = h->regions.at[r->body];
    OpList ops = {0};
    ValueId *room = ARENA_NEWN(r->c->scratch, ValueId, 3 * (r->values.n + 1));
    NewStacks m = {.of = room, .start = room + r->values.n + 1, .next = room + 2 * (r->values.n + 1)};
    LoopChange ch = {.keep = ARENA_NEWN(r->c->scratch, bool, loop.noperands + 1), .more = m.start, .next = m.next};
    memset(ch.keep, 1, loop.noperands);
    for (uint32_t i = 0; i < r->stacks.n; i++)
        ch.keep[r->stacks.at[i].k] = !r->stacks.at[i].later;
    push_updates(r, &m, before, &ops, true); // then the next value may lie where the carried one does
    for (uint32_t i = 0; i + 1 < body.ops.n; i++)
        VEC_PUSH(r->c->scratch, &ops, body.ops.at[i]);
    push_updates(r, &m, before, &ops, false);
    ch.nmore = m.n;
    VEC_PUSH(r->c->scratch, &ops, body.ops.at[body.ops.n - 1]);
    walk_set_ops(h, r->body, &ops);
    assert(m.n <= r->values.n);
    OpId made = loop_change(r->c, &r->w, r->first, &ch);
    uint32_t n = hlo_at(h, made)->noperands - ch.nmore;
    for (uint32_t i = 0; i < ch.nmore; i++)
        r->stack_of[r->node[m.of[i]]] = hlo_at(h, made)->results + n + i;
    for (uint32_t i = 1; i <= r->values.n; i++) {
        const Stack *s = r->stack_of[i] ? stack_with(r, r->values.at[i - 1]) : NULL;
        if (s && !s->later)
            r->stack_of[i] = r->w.repl.at[loop.results + s->k];
    }
    return made;
}

// --- the second loop ----------------------------------------------------------------------------------

static ValueId again(Remat *r, OpList *ops, ValueId v);

static ValueId push_copy(Remat *r, OpList *ops, const HloOp *op) {
    Hlo *h = r->h;
    ValueId *operands = ARENA_NEWN(r->c->scratch, ValueId, op->noperands + 1);
    for (uint32_t k = 0; k < op->noperands; k++)
        operands[k] = again(r, ops, hlo_operand(h, op, k));
    HloOpcode combiner = row_reduction(r, op);
    OpId made = hlo_op_like(h, op, operands, h->values.at[op->results].type);
    if (combiner)
        hlo_op_add_combiner(h, made, combiner, h->values.at[operands[1]].type);
    return walk_push_to(&r->w, ops, made);
}

// The value as the second loop has it.
static ValueId again(Remat *r, OpList *ops, ValueId v) {
    ValueId there = value_map_get(&r->again, v);
    if (there || !is_inside(r, v))
        return there ? there : v;
    assert(is_counter(r, v) || r->node[v] || hlo_def(r->h, v));
    uint32_t node = r->node[v];
    HloOp op = hlo_def(r->h, v) ? *hlo_def(r->h, v) : (HloOp){.loc = hlo_at(r->h, r->first)->loc};
    ValueId made = is_counter(r, v)              ? r->index
                   : node && r->stack_of[node] ? loop_read_piece(&r->w, ops, r->stack_of[node], r->index, r->h->values.at[v].type, op.loc)
                                                 : push_copy(r, ops, &op);
    value_map_set(r->c->scratch, &r->again, v, made);
    return made;
}

// What the op reads of the stacks, made before it.
static void meet_reads(Remat *r, OpList *ops, const ValueMap *pieces, OpId id) {
    HloOp op = *hlo_at(r->h, id);
    for (uint32_t k = 0; k < op.noperands; k++) {
        ValueId v = hlo_operand(r->h, &op, k), piece = value_map_get(pieces, v);
        if (piece)
            walk_replace(&r->w, v, again(r, ops, piece));
    }
    for (uint32_t k = 0; k < op.nregions; k++) {
        RegionId inner = r->h->op_regions.at[op.regions + k];
        for (uint32_t i = 0; i < r->h->regions.at[inner].ops.n; i++)
            meet_reads(r, ops, pieces, r->h->regions.at[inner].ops.at[i]);
    }
}

static void change_second(Remat *r) {
    Hlo *h = r->h;
    ValueId results = hlo_at(h, r->first)->results;
    ValueMap pieces = {0};
    OpList ops = {0};
    for (uint32_t i = 0; i < r->stacks.n; i++)
        for (Reader by = readers_of(&r->u, results + r->stacks.at[i].k); r->stacks.at[i].later && reader_next(&by);)
            value_map_set(r->c->scratch, &pieces, by.op->results, r->stacks.at[i].piece);
    for (uint32_t i = 0; i < h->regions.at[r->later].ops.n; i++) {
        OpId id = h->regions.at[r->later].ops.at[i];
        const HloOp *op = hlo_at(h, id);
        if (op->nresults == 1 && value_map_get(&pieces, op->results))
            continue;
        meet_reads(r, &ops, &pieces, id);
        VEC_PUSH(r->c->scratch, &ops, id);
    }
    walk_set_ops(h, r->later, &ops);
}

// --- the pass -----------------------------------------------------------------------------------------

static bool try_pair(Remat *r, RegionId region, uint32_t at) {
    LoopCount n;
    HloOp first = *hlo_at(r->h, r->first), second = *hlo_at(r->h, r->second);
    if (!loop_count(r->h, &first, &n) || n.first || n.step != 1)
        return false;
    r->body = r->h->op_regions.at[first.regions + 1], r->later = r->h->op_regions.at[second.regions + 1];
    r->counter = n.counter, r->trips = n.trips;
    find_stacks(r);
    if (!r->index || r->h->values.at[r->index].type != r->h->values.at[r->h->regions.at[r->body].args + n.counter].type)
        return false;
    find_values(r);
    memset(r->read_whole, 0, r->h->values.n + 1);
    note_readers(r);
    if (r->values.n == VALUES_MAX || !choose(r))
        return false;
    r->again = (ValueMap){0};
    OpList ops = {0};
    for (uint32_t i = 0; i < at; i++)
        VEC_PUSH(r->c->scratch, &ops, r->h->regions.at[region].ops.at[i]);
    OpId made = change_first(r, &ops);
    change_second(r);
    VEC_PUSH(r->c->scratch, &ops, made);
    for (uint32_t i = at + 1; i < r->h->regions.at[region].ops.n; i++)
        VEC_PUSH(r->c->scratch, &ops, r->h->regions.at[region].ops.at[i]);
    walk_set_ops(r->h, region, &ops);
    return true;
}

static bool try_loop(void *pass, RegionId region, uint32_t at) { // with those behind it
    Remat *r = pass;
    const Hlo *h = r->h;
    r->first = h->regions.at[region].ops.at[at];
    for (uint32_t k = at + 1; hlo_at(h, r->first)->code == HLO_WHILE && k < h->regions.at[region].ops.n; k++) {
        r->second = h->regions.at[region].ops.at[k];
        if (hlo_at(h, r->second)->code == HLO_WHILE && try_pair(r, region, at))
            return true;
    }
    return false;
}

static bool is_loop(void *hlo, RegionId r, uint32_t at) {
    const Hlo *h = hlo;
    return hlo_at(h, h->regions.at[r].ops.at[at])->code == HLO_WHILE;
}

void pass_remat(Compile *c) {
    RegionId body = hlo_main(c->hlo)->body;
    if (!c->chip || !walk_find(c->hlo, body, is_loop, c->hlo))
        return;
    bool more = true;
    for (int i = 0; i < ROUNDS && more; i++) {
        Remat r = {.c = c, .h = c->hlo};
        r.unit = 1000 * cost_pass(c->chip, ENG_VECTOR, 1) / LANES / 2; // vector and scalar engine share it
        r.byte = 1000 * cost_stream(c->chip, 1);
        r.draw = c->chip->vector_gpsimd_port ? r.unit : 0; // gpsimd has little else to do, but where it keeps the vector engine from SBUF
        r.start = 1000 * cost_reach(c->chip);
        r.lag = (c->chip->vector_latency_ns + c->chip->scalar_latency_ns) / 2 * c->chip->vector_ghz;
        r.node = ARENA_NEWN(c->scratch, uint32_t, c->hlo->values.n + 1);
        r.read_whole = ARENA_NEWN(c->scratch, bool, c->hlo->values.n + 1);
        walk_init(&r.w, c);
        users_make(&r.u, c->hlo, c->scratch, body);
        more = walk_find(c->hlo, body, try_loop, &r);
        walk_region(&r.w, body);
        pass_dce(c);
    }
    loops_narrow_stacks(c);
}
