// SPDX-License-Identifier: Apache-2.0
// order.c — products that nobody waits for go behind those that somebody does.
// needs: values defined before use
// gives: of neighbouring products the one whose result is read sooner comes first
// stale: nothing
//
// Gradients of weights are read at the end of a step, gradients of activations at once. The tensor engine takes its products in
// order (tile/sched.c), so the former fill the time in which row programs prepare the next of the latter.
#include <math.h>

#include "hlo/dot.h"
#include "pass/schedule.h"

#define LOOK_AHEAD 96 // ops a product may go up past
#define VIEWS_MOST 8 // reshapes of its operands that go along with a product
#define STACKED_DEPTH 4 // ops on the way into a stack
#define URGENT 48     // ops from a product to its reader, when that one waits for it
#define SUMMED_DEPTH 3 // ops from a product to its sum over devices

static bool passes_on(const Hlo *h, const HloOp *op) { // movement, or a conversion and nothing else
    if (op->code == HLO_ROWS)
        return op->noperands == 1 && hlo_op_region(h, op, 0)->ops.n == 2;
    return op->code == HLO_RESHAPE || op->code == HLO_CONVERT || op->code == HLO_TRANSPOSE;
}

// Operations of random numbers are hundreds that become one.
static bool is_integer(const Hlo *h, const HloOp *op) {
    const HloType *t = op->nresults ? hlo_value_type(h, op->results) : NULL;
    return t && t->kind == HT_TENSOR && t->dtype == DT_UI32;
}

// All that the op makes of the value goes into stacks that its loop carries: nobody waits for that before the loop's end.
static bool is_stacked(const Schedule *o, const HloOp *op, ValueId v, int depth) {
    if (op->code == HLO_DYNAMIC_UPDATE_SLICE)
        return hlo_operand(o->h, op, 1) == v;
    bool all = depth > 0 && op->nresults > 0 && (op->code == HLO_ROWS || op->code == HLO_RESHAPE || hlo_is_elementwise(op));
    for (uint32_t i = 0; i < op->nresults && all; i++) {
        all = users_reads(&o->u, op->results + i) > 0;
        for (Reader by = readers_of(&o->u, op->results + i); all && reader_next(&by);)
            all = is_stacked(o, by.op, op->results + i, depth - 1);
    }
    return all;
}

// Conversions and movement of a late product go right before their own first reader, so that they do not pin it; reshapes on the way into a stack
// always, so that tile/sums.c may make what they reshape further down.
static void sink_movement(Schedule *o, RegionId r) {
    const HloRegion *region = &o->h->regions.at[r];
    uint32_t *integers = ARENA_NEWN(o->c->scratch, uint32_t, region->ops.n + 1); // before each place
    for (uint32_t i = 0; i < region->ops.n; i++)
        integers[i + 1] = integers[i] + is_integer(o->h, hlo_at(o->h, region->ops.at[i]));
    for (uint32_t i = region->ops.n; i-- > 0;) {
        const HloOp *op = hlo_at(o->h, region->ops.at[i]);
        if (op->nresults != 1 || !passes_on(o->h, op))
            continue;
        double use = schedule_first_read(o, r, op->results);
        bool stacked = op->code == HLO_RESHAPE && is_stacked(o, op, hlo_operand(o->h, op, 0), STACKED_DEPTH);
        if (use < INFINITY && use > i && (stacked || use - (integers[(uint32_t)use] - integers[i]) > i + 1 + LOOK_AHEAD))
            o->key[region->ops.at[i]] = use;
    }
}

static bool is_sum(const HloOp *op) { return op->code == HLO_ALL_REDUCE || op->code == HLO_REDUCE_SCATTER; }

// The first place where somebody computes with the value; sums over devices stand right behind what they sum, whoever reads them.
static double awaited(const Schedule *o, RegionId r, ValueId v) {
    double first = INFINITY;
    for (Reader by = readers_of(&o->u, v); reader_next(&by);) {
        bool sums = is_sum(by.op) && by.op->nresults == 1;
        if (is_stacked(o, by.op, v, STACKED_DEPTH))
            continue;
        first = fmin(first, sums ? awaited(o, r, by.op->results) : o->u.region[by.id] == r ? o->key[by.id] : -1);
    }
    return first;
}

static double wait_of(const Schedule *o, RegionId r, OpId id) { return awaited(o, r, hlo_at(o->h, id)->results); }
static bool is_urgent(const Schedule *o, RegionId r, OpId id) { return wait_of(o, r, id) < o->key[id] + URGENT; }

// Devices wait for the sum of what the op makes: the sooner it is there, the more goes on beside the links.
static bool is_summed(const Schedule *o, const HloOp *op, int depth) {
    for (uint32_t i = 0; i < op->nresults && depth; i++)
        for (Reader by = readers_of(&o->u, op->results + i); reader_next(&by);)
            if (is_sum(by.op) || ((by.op->code == HLO_ROWS || passes_on(o->h, by.op)) && is_summed(o, by.op, depth - 1)))
                return true;
    return false;
}

static bool is_view(const void *unused, const HloOp *op) { return (void)unused, op->code == HLO_RESHAPE; }
static bool is_little(const void *unused, const HloOp *op) { return is_view(unused, op) || op->code == HLO_TRANSPOSE || op->code == HLO_ROWS; }

// The last of what the operand is made of, where movement and one row program make it.
static double little_from(const Schedule *o, RegionId r, ValueId v, bool rows) {
    OpId def = o->h->values.at[v].def;
    const HloOp *op = def && o->u.region[def] == r ? hlo_at(o->h, def) : NULL;
    if (!op || !is_little(NULL, op) || (op->code == HLO_ROWS && !rows))
        return op ? o->key[def] : -1;
    double from = -1;
    for (uint32_t k = 0; k < op->noperands; k++)
        from = fmax(from, little_from(o, r, hlo_operand(o->h, op, k), rows && op->code != HLO_ROWS));
    return from;
}

// A product that somebody waits for goes before the first one nobody does between its operands and it.
static void raise_products(Schedule *o, RegionId r) {
    const HloRegion *region = &o->h->regions.at[r];
    for (uint32_t i = 0; i < region->ops.n; i++) {
        OpId id = region->ops.at[i];
        const HloOp *op = hlo_at(o->h, id);
        if (!dot_on_tensor_engine(o->h, op) || wait_of(o, r, id) == INFINITY)
            continue;
        bool urgent = is_urgent(o, r, id), summed = urgent && is_summed(o, op, SUMMED_DEPTH);
        double from = -1;
        for (uint32_t k = 0; k < op->noperands; k++) {
            ValueId v = hlo_operand(o->h, op, k);
            OpId def = o->h->values.at[urgent ? v : before_reshapes(o->h, v)].def;
            from = summed ? fmax(from, little_from(o, r, v, true)) : def && o->u.region[def] == r ? fmax(from, o->key[def]) : from;
        }
        for (uint32_t p = (uint32_t)fmax(floor(from) + 1, i > LOOK_AHEAD ? i - LOOK_AHEAD : 0); p < i; p++) {
            OpId other = region->ops.at[p];
            if (dot_on_tensor_engine(o->h, hlo_at(o->h, other)) && !schedule_is_moved(o, other) &&
                (urgent ? !is_urgent(o, r, other) : wait_of(o, r, other) == INFINITY)) {
                schedule_raise(o, id, p - 0.5, summed ? is_little : is_view, NULL, VIEWS_MOST);
                break;
            }
        }
    }
}

static void order_region(void *pass, RegionId r) {
    sink_movement(pass, r);
    raise_products(pass, r);
    schedule_make(pass, r);
}

void pass_order(Compile *c) {
    Schedule o;
    schedule_init(&o, c);
    walk_regions(c->hlo, hlo_main(c->hlo)->body, order_region, &o);
}
