// SPDX-License-Identifier: Apache-2.0
// windows.c — bring pooling into the form the vector engine takes.
// needs: values defined before use
// gives: reduce_window of sums and extremes whose windows lie inside their operand: what is around and between its
//        elements is a pad of its own
// stale: nothing
#include "hlo/pool.h"
#include "pass/rules.h"

// Along one axis all that lies before an element, or behind it: a scan takes each element once, whatever is around.
static bool is_running(const PoolForm *f) {
    for (int i = 0; i < f->rank; i++) {
        const PoolAxis *a = &f->axis[i];
        if (a->window > 1 && a->window == a->in && a->out == a->in && (a->low == a->window - 1 || a->high == a->window - 1))
            return true;
    }
    return false;
}

static ValueId canon(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    PoolForm f;
    if (!pool_read(h, op, &f) || pool_is_inside(&f) || is_running(&f))
        return 0;
    int64_t low[POOL_RANK_MAX], high[POOL_RANK_MAX], inner[POOL_RANK_MAX], dims[POOL_RANK_MAX], ones[POOL_RANK_MAX];
    int64_t none[2 * POOL_RANK_MAX] = {0};
    int64_t now = hlo_value_type(h, hlo_operand(h, op, 0))->elems + hlo_value_type(h, op->results)->elems;
    double elems = 1, most = 4 * (double)now + 65536;
    for (int i = 0; i < f.rank; i++) {
        const PoolAxis *a = &f.axis[i];
        low[i] = a->low, high[i] = a->high, inner[i] = a->in_gap - 1, ones[i] = 1;
        dims[i] = a->low + (a->in - 1) * a->in_gap + 1 + a->high;
        elems *= (double)dims[i];
        if (dims[i] < 1)
            return 0;
    }
    if (elems > most || elems >= (double)INT32_MAX) // what is around it costs memory
        return 0;
    assert(hlo_value_type(h, hlo_operand(h, op, 0))->rank == f.rank);
    hlo_op_own_attrs(h, w->id);
    ValueId operands[2] = {hlo_operand(h, op, 0), hlo_operand(h, op, 1)};
    TypeId type = hlo_type_tensor(h, hlo_value_type(h, op->results)->dtype, f.rank, dims);
    ValueId padded = walk_pad(w, operands[0], operands[1], low, high, inner, type); // first: it may move the table of operands
    h->operands.at[op->operands] = padded;
    hlo_set_ints(h, w->id, AK_BASE_DILATIONS, ones, (uint32_t)f.rank);
    hlo_set_ints(h, w->id, AK_PADDING, none, 2 * (uint32_t)f.rank);
    return 0;
}

const Rule windows_rules[] = {{"reduce_window beyond its operand: of the operand with a pad around", HLO_REDUCE_WINDOW, RULE_EXACT, canon}, {0}};
