// SPDX-License-Identifier: Apache-2.0
// order.c — products that nobody waits for go behind those that somebody does.
// needs: values defined before use
// gives: of neighbouring products the one whose result is read sooner comes first
// stale: nothing
//
// Gradients of weights are read at the end of a step, gradients of activations at once. The tensor engine takes its products in
// order (tile/sched.c), so the former fill the time in which row programs prepare the next of the latter.
#include "hlo/dot.h"
#include "hlo/users.h"
#include "pass/walk.h"

#define LOOK_AHEAD 96 // ops a product may go up past
#define URGENT 48     // ops from a product to its reader, when that one waits for it

typedef struct Order {
    Compile *c;
    Hlo *h;
    Users u;
    VEC(OpId) ops; // of the region, in their new order
    uint32_t *at;  // per op: place in `ops`
    uint32_t *sums; // per place, as it was at first: integer operations before it
} Order;

static bool passes_on(const Hlo *h, const HloOp *op) { // movement, or a conversion and nothing else
    if (op->code == HLO_ROWS)
        return op->noperands == 1 && hlo_op_region(h, op, 0)->ops.n == 2;
    return op->code == HLO_RESHAPE || op->code == HLO_CONVERT || op->code == HLO_TRANSPOSE;
}

// The first place where the value is read; 0 when that is inside another op.
static uint32_t first_use(const Order *o, ValueId v) {
    uint32_t n, first = UINT32_MAX;
    const OpId *users = users_of(&o->u, v, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = o->at[users[i]];
        first = at < first ? at : first;
    }
    return first;
}

static void move_down(Order *o, uint32_t from, uint32_t to) { // to: its new place
    OpId id = o->ops.at[from];
    for (uint32_t i = from; i < to; i++) {
        o->ops.at[i] = o->ops.at[i + 1];
        o->at[o->ops.at[i]] = i;
    }
    o->ops.at[to] = id;
    o->at[id] = to;
}

// Operations of random numbers are hundreds that become one.
static void count_integers(Order *o) {
    o->sums = ARENA_NEWN(o->c->scratch, uint32_t, o->ops.n + 2);
    for (uint32_t i = 0; i < o->ops.n; i++) {
        const HloOp *op = hlo_at(o->h, o->ops.at[i]);
        const HloType *t = op->nresults ? hlo_value_type(o->h, op->results) : NULL;
        o->sums[i + 1] = o->sums[i] + (t && t->kind == HT_TENSOR && t->dtype == DT_UI32);
    }
}

// Conversions and movement of a late product go right before their own first reader, so that they do not pin it.
static void sink_movement(Order *o) {
    for (uint32_t i = o->ops.n; i-- > 0;) {
        const HloOp *op = hlo_at(o->h, o->ops.at[i]);
        if (op->nresults != 1 || !passes_on(o->h, op))
            continue;
        uint32_t use = first_use(o, op->results);
        if (use != UINT32_MAX && use > i && use - (o->sums[use] - o->sums[i]) > i + 1 + LOOK_AHEAD)
            move_down(o, i, use - 1);
    }
}

// The first place where somebody computes with the value; sums over devices stand right behind what they sum, whoever reads them.
static uint32_t awaited(const Order *o, ValueId v) {
    uint32_t n, first = UINT32_MAX;
    const OpId *users = users_of(&o->u, v, &n);
    for (uint32_t i = 0; i < n; i++) {
        const HloOp *op = hlo_at(o->h, users[i]);
        bool sums = (op->code == HLO_ALL_REDUCE || op->code == HLO_REDUCE_SCATTER) && op->nresults == 1;
        uint32_t at = sums ? awaited(o, op->results) : o->at[users[i]];
        first = at < first ? at : first;
    }
    return first;
}

static bool is_urgent(const Order *o, const HloOp *op, uint32_t at) {
    uint32_t use = awaited(o, op->results);
    return use < UINT32_MAX - URGENT && use < at + URGENT;
}

// The first product nobody waits for between the op's operands and the op; its own place when there is none.
static uint32_t place_for(const Order *o, uint32_t at) {
    const HloOp *op = hlo_at(o->h, o->ops.at[at]);
    uint32_t from = 0;
    for (uint32_t k = 0; k < op->noperands; k++) {
        OpId def = o->h->values.at[hlo_operand(o->h, op, k)].def;
        if (def && o->u.region[def] == o->u.region[o->ops.at[at]] && o->at[def] + 1 > from)
            from = o->at[def] + 1;
    }
    from = at > LOOK_AHEAD && from < at - LOOK_AHEAD ? at - LOOK_AHEAD : from;
    for (uint32_t i = from; i < at; i++) {
        const HloOp *other = hlo_at(o->h, o->ops.at[i]);
        if (dot_on_tensor_engine(o->h, other) && !is_urgent(o, other, i))
            return i;
    }
    return at;
}

static void raise_products(Order *o) {
    for (uint32_t i = 0; i < o->ops.n; i++) {
        const HloOp *op = hlo_at(o->h, o->ops.at[i]);
        if (!dot_on_tensor_engine(o->h, op) || !is_urgent(o, op, i))
            continue;
        OpId id = o->ops.at[i];
        uint32_t to = place_for(o, i);
        assert(to <= i);
        for (uint32_t k = i; k > to; k--) {
            o->ops.at[k] = o->ops.at[k - 1];
            o->at[o->ops.at[k]] = k;
        }
        o->ops.at[to] = id;
        o->at[id] = to;
    }
}

static void order_region(void *pass, RegionId r) {
    Order *o = pass;
    Hlo *h = o->h;
    o->ops.n = 0;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        VEC_PUSH(o->c->scratch, &o->ops, h->regions.at[r].ops.at[i]);
        o->at[h->regions.at[r].ops.at[i]] = i;
    }
    count_integers(o);
    sink_movement(o);
    assert(o->ops.n == h->regions.at[r].ops.n);
    raise_products(o);
    for (uint32_t i = 0; i < o->ops.n; i++)
        h->regions.at[r].ops.at[i] = o->ops.at[i];
}

void pass_order(Compile *c) {
    Order o = {.c = c, .h = c->hlo, .at = ARENA_NEWN(c->scratch, uint32_t, c->hlo->ops.n + 1)};
    users_make(&o.u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    walk_regions(c->hlo, hlo_main(c->hlo)->body, order_region, &o);
}
