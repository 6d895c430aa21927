// SPDX-License-Identifier: Apache-2.0
// windows.c — bring pooling into the form the vector engine takes.
// needs: values defined before use
// gives: reduce_window of sums and extremes whose windows lie inside their operand: what is around and between its
//        elements is a pad of its own
// stale: nothing
#include "hlo/pool.h"
#include "pass/walk.h"

typedef struct Windows {
    Compile *c;
    Hlo *h;
    Walk w;
} Windows;

static ValueId push(Windows *s, OpId id) { return walk_push(&s->w, id); }

static void canon(Windows *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    PoolForm f;
    if (!pool_read(h, &op, &f) || pool_is_inside(&f))
        return;
    int64_t low[POOL_RANK_MAX], high[POOL_RANK_MAX], inner[POOL_RANK_MAX], dims[POOL_RANK_MAX], ones[POOL_RANK_MAX];
    int64_t none[2 * POOL_RANK_MAX] = {0};
    int64_t now = hlo_value_type(h, hlo_operand(h, &op, 0))->elems + hlo_value_type(h, op.results)->elems;
    double elems = 1, most = 4 * (double)now + 65536;
    for (int i = 0; i < f.rank; i++) {
        const PoolAxis *a = &f.axis[i];
        low[i] = a->low, high[i] = a->high, inner[i] = a->in_gap - 1, ones[i] = 1;
        dims[i] = a->low + (a->in - 1) * a->in_gap + 1 + a->high;
        elems *= (double)dims[i];
        if (dims[i] < 1)
            return;
    }
    if (elems > most || elems >= (double)INT32_MAX) // what is around it costs memory
        return;
    hlo_at(h, id)->attrs = arena_dup(h->arena, op.attrs, hlo_row(&op)->nattrs * sizeof *op.attrs); // may be shared
    TypeId type = hlo_type_tensor(h, hlo_value_type(h, op.results)->dtype, f.rank, dims);
    ValueId operands[2] = {hlo_operand(h, &op, 0), hlo_operand(h, &op, 1)};
    OpId pad = hlo_op(h, HLO_PAD, op.loc, 2, operands, 1, &type);
    hlo_set_ints(s->h, pad, AK_EDGE_PADDING_LOW, low, (uint32_t)f.rank);
    hlo_set_ints(s->h, pad, AK_EDGE_PADDING_HIGH, high, (uint32_t)f.rank);
    hlo_set_ints(s->h, pad, AK_INTERIOR_PADDING, inner, (uint32_t)f.rank);
    h->operands.at[op.operands] = push(s, pad);
    hlo_set_ints(s->h, id, AK_BASE_DILATIONS, ones, (uint32_t)f.rank);
    *hlo_attr_slot(h, id, AK_PADDING) = (HloAttr){.kind = HA_INTS2, .n = 2 * (uint32_t)f.rank, .cols = 2,
                                                  .ints = hlo_ints_dup(h, none, 2 * (size_t)f.rank)};
}

static void windows_visit(void *pass, OpId id) {
    if (hlo_at(((Windows *)pass)->h, id)->code == HLO_REDUCE_WINDOW)
        canon(pass, id);
    push(pass, id);
}

void pass_windows(Compile *c) {
    Windows s = {.c = c, .h = c->hlo};
    walk_init(&s.w, c);
    walk_rewrite(&s.w, hlo_main(c->hlo)->body, WALK_ALL, windows_visit, &s);
}
