// SPDX-License-Identifier: Apache-2.0
// fold.c — evaluate exact operations on constants; keep splats one element small.
// needs: values defined before use
// gives: constants where operands were constants; no reshape, convert or transpose to the same thing
// stale: nothing (dce drops what became unused)
//
// Only operations whose result is fixed to the last bit are folded (integers, data movement, IEEE
// arithmetic), so folding never changes what a program computes on the chip.
#include "hlo/affine.h"
#include "hlo/eval.h"
#include "pass/rules.h"

#define FOLD_BYTES_MAX 4096 // larger results stay in the program unless they are splats

static const HloAttr *constant_of(const Hlo *h, ValueId v) {
    const HloOp *op = hlo_def_as(h, v, HLO_CONSTANT);
    const HloAttr *a = op ? hlo_attr(op, AK_VALUE) : NULL;
    return a && a->kind == HA_TENSOR && hlo_has_elems(hlo_type(h, a->type)) ? a : NULL;
}

static bool one_value(const Hlo *h, const HloAttr *a) { // a splat or a single element
    return a->n == dtype_bytes(hlo_type(h, a->type)->dtype);
}

// Elementwise on splats: evaluate one element with a rank-0 copy of the op.
static ValueId fold_splat(Walk *w, const HloOp *op, const HloAttr *const *in) {
    Hlo *h = w->hlo;
    TypeId type = h->values.at[op->results].type;
    if (hlo_is(op, OT_SPLAT))
        return walk_push(w, hlo_op_splat(h, op->loc, type, in[0]->data));
    if (!hlo_is_elementwise(op))
        return 0;
    assert(op->noperands <= 3);
    Tensor args[3], result;
    ValueId operands[3] = {0};
    for (uint32_t i = 0; i < op->noperands; i++) {
        args[i] = (Tensor){hlo_type_tensor(h, hlo_type(h, in[i]->type)->dtype, 0, NULL), (void *)in[i]->data};
        operands[i] = hlo_value(h, args[i].type);
    }
    OpId probe = hlo_op_like(h, op, operands, hlo_type_tensor(h, hlo_type(h, type)->dtype, 0, NULL));
    return eval_op(h, w->arena, probe, args, &result) ? walk_push(w, hlo_op_splat(h, op->loc, type, result.data)) : 0;
}

static ValueId fold_full(Walk *w, const HloOp *op, const HloAttr *const *in) {
    Hlo *h = w->hlo;
    TypeId type = h->values.at[op->results].type;
    Tensor *args = ARENA_NEWN(w->arena, Tensor, op->noperands + 1), result;
    bool small = hlo_type_bytes(hlo_type(h, type)) <= FOLD_BYTES_MAX;
    for (uint32_t i = 0; i < op->noperands && small; i++) {
        size_t bytes = hlo_type_bytes(hlo_type(h, in[i]->type));
        small = bytes <= FOLD_BYTES_MAX;
        args[i] = (Tensor){in[i]->type, arena_alloc(w->arena, small ? bytes : 1)};
        if (small)
            hlo_tensor_expand(h, in[i], args[i].data);
    }
    if (!small || !eval_op(h, w->arena, w->id, args, &result))
        return 0;
    return walk_push(w, hlo_op_constant(h, op->loc, type, result.data, hlo_type_bytes(hlo_type(h, type))));
}

static ValueId fold(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    if (!hlo_is(op, OT_EXACT) || op->nresults != 1)
        return 0;
    const HloAttr **in = ARENA_NEWN(w->arena, const HloAttr *, op->noperands + 1);
    bool splats = op->noperands > 0 && hlo_value_type(h, op->results)->elems > 1;
    for (uint32_t i = 0; i < op->noperands; i++) {
        in[i] = constant_of(h, hlo_operand(h, op, i));
        if (!in[i])
            return 0;
        splats = splats && one_value(h, in[i]);
    }
    ValueId made = splats ? fold_splat(w, op, in) : 0;
    return made ? made : fold_full(w, op, in);
}

// What a comparison of numbers that count comes to, where it is the same everywhere: packed sequences looked for in positions of one.
static ValueId outcome(Walk *w, const HloOp *op) {
    Affine a;
    bool counts = dtype_is_int(hlo_value_type(w->hlo, hlo_operand(w->hlo, op, 0))->dtype);
    bool known = counts && affine_read(&(AffineReader){.h = w->hlo}, op->results, &a);
    return known ? walk_number(w, w->hlo->values.at[op->results].type, (double)a.at.add) : 0;
}

// Moved elements that are all the same number. Where only the first operand is moved, the others tell places in it.
static ValueId moved(Walk *w, const HloOp *op) {
    if (op->code != HLO_PAD && op->code != HLO_CONCATENATE && op->code != HLO_GATHER)
        return 0;
    const HloAttr *x = splat_value(w->hlo, hlo_operand(w->hlo, op, 0));
    uint32_t n = op->code == HLO_GATHER ? 1 : op->noperands;
    for (uint32_t i = 1; i < n && x; i++) {
        const HloAttr *y = splat_value(w->hlo, hlo_operand(w->hlo, op, i));
        x = y && y->n == x->n && !memcmp(x->data, y->data, x->n) ? x : NULL;
    }
    return x ? walk_push(w, hlo_op_splat(w->hlo, op->loc, w->hlo->values.at[op->results].type, x->data)) : 0;
}

static bool in_order(const HloOp *op, HloAttrKey key) {
    uint32_t n;
    const int64_t *v = hlo_ints(op, key, &n);
    for (uint32_t i = 0; i < n; i++)
        if (v[i] != i)
            return false;
    return true;
}

static ValueId same(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    ValueId v = hlo_operand(h, op, 0);
    bool stays = h->values.at[op->results].type == h->values.at[v].type && in_order(op, AK_PERMUTATION) && in_order(op, AK_BROADCAST_DIMENSIONS);
    return stays ? v : 0;
}

const Rule fold_rules[] = {
    {"convert to its own type: its operand", HLO_CONVERT, RULE_EXACT, same},
    {"reshape to its own shape: its operand", HLO_RESHAPE, RULE_EXACT, same},
    {"bitcast_convert to its own type: its operand", HLO_BITCAST_CONVERT, RULE_EXACT, same},
    {"transpose that moves nothing: its operand", HLO_TRANSPOSE, RULE_EXACT, same},
    {"broadcast_in_dim that repeats nothing: its operand", HLO_BROADCAST_IN_DIM, RULE_EXACT, same},
    {"compare of counts that comes out the same everywhere: a constant", HLO_COMPARE, RULE_EXACT, outcome},
    {"pad, concatenate or gather of one number: that number", HLO_NONE, RULE_EXACT, moved},
    {"an exact operation on constants: a constant", HLO_NONE, RULE_EXACT, fold},
    {0},
};
