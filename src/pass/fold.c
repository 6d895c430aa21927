// SPDX-License-Identifier: Apache-2.0
// fold.c — evaluate exact operations on constants; keep splats one element small.
// needs: values defined before use
// gives: constants where operands were constants; no reshape, convert or transpose to the same thing
// stale: nothing (dce drops what became unused)
//
// Only operations whose result is fixed to the last bit are folded (integers, data movement, IEEE
// arithmetic), so folding never changes what a program computes on the chip.
#include <string.h>

#include "hlo/eval.h"
#include "pass/walk.h"

#define FOLD_BYTES_MAX 4096 // larger results stay in the program unless they are splats

typedef struct Fold {
    Compile *c;
    Hlo *h;
    Walk w;
} Fold;

static const HloAttr *constant_of(const Hlo *h, ValueId v) {
    OpId def = h->values.at[v].def;
    if (!def || hlo_at(h, def)->code != HLO_CONSTANT)
        return NULL;
    const HloAttr *a = hlo_attr(hlo_at(h, def), AK_VALUE);
    return a && a->kind == HA_TENSOR && !hlo_type(h, a->type)->text ? a : NULL;
}

static bool is_exact(const HloOp *op) {
    switch (op->code) {
    case HLO_ADD: case HLO_SUBTRACT: case HLO_MULTIPLY: case HLO_DIVIDE: case HLO_NEGATE:
    case HLO_ABS: case HLO_SIGN: case HLO_MAXIMUM: case HLO_MINIMUM: case HLO_AND: case HLO_OR:
    case HLO_XOR: case HLO_NOT: case HLO_SHIFT_LEFT: case HLO_SHIFT_RIGHT_LOGICAL:
    case HLO_SHIFT_RIGHT_ARITHMETIC: case HLO_COMPARE: case HLO_SELECT: case HLO_CLAMP:
    case HLO_CONVERT: case HLO_FLOOR: case HLO_CEIL: case HLO_IS_FINITE: case HLO_REMAINDER:
    case HLO_BITCAST_CONVERT: case HLO_IOTA: case HLO_RESHAPE: case HLO_BROADCAST_IN_DIM:
    case HLO_BROADCAST: case HLO_TRANSPOSE: case HLO_SLICE: case HLO_CONCATENATE: case HLO_PAD:
    case HLO_REVERSE: case HLO_CHLO_SQUARE:
        return true;
    default:
        return false;
    }
}

// Movement that keeps every element: a splat in is the same splat out.
static bool keeps_splat(const HloOp *op) {
    switch (op->code) {
    case HLO_RESHAPE: case HLO_BROADCAST_IN_DIM: case HLO_BROADCAST: case HLO_TRANSPOSE:
    case HLO_SLICE: case HLO_REVERSE:
        return true;
    default:
        return false;
    }
}

static bool one_value(const Hlo *h, const HloAttr *a) { // a splat or a single element
    return a->n == dtype_bytes(hlo_type(h, a->type)->dtype);
}

static OpId make_constant(Fold *f, LocId loc, TypeId type, const void *data, size_t bytes) {
    OpId id = hlo_op(f->h, HLO_CONSTANT, loc, 0, NULL, 1, &type);
    *hlo_attr_slot(f->h, id, AK_VALUE) = (HloAttr){.kind = HA_TENSOR,
                                                   .n = (uint32_t)bytes,
                                                   .type = type,
                                                   .data = arena_dup(f->h->arena, data, bytes)};
    walk_grow(&f->w);
    return id;
}

// Elementwise on splats: evaluate one element with a rank-0 copy of the op.
static OpId fold_splat(Fold *f, const HloOp *op, const HloAttr *const *in) { // op: a copy
    Hlo *h = f->h;
    TypeId type = h->values.at[op->results].type;
    if (keeps_splat(op))
        return make_constant(f, op->loc, type, in[0]->data, in[0]->n);
    if (hlo_row(op)->cls > HC_EW3)
        return 0;
    Tensor args[3], result;
    assert(op->noperands <= 3);
    for (uint32_t i = 0; i < op->noperands; i++)
        args[i] = (Tensor){hlo_type_tensor(h, hlo_type(h, in[i]->type)->dtype, 0, NULL),
                           (void *)in[i]->data};
    TypeId scalar = hlo_type_tensor(h, hlo_type(h, type)->dtype, 0, NULL);
    ValueId operands[3] = {0};
    for (uint32_t i = 0; i < op->noperands; i++)
        operands[i] = hlo_value(h, args[i].type);
    OpId probe = hlo_op(h, op->code, op->loc, op->noperands, operands, 1, &scalar);
    hlo_at(h, probe)->attrs = op->attrs;
    walk_grow(&f->w);
    if (!eval_op(h, f->c->scratch, probe, args, &result))
        return 0;
    return make_constant(f, op->loc, type, result.data,
                         dtype_bytes(hlo_type(h, scalar)->dtype));
}

static OpId fold_full(Fold *f, OpId id, const HloAttr *const *in) {
    Hlo *h = f->h;
    HloOp op = *hlo_at(h, id);
    TypeId type = h->values.at[op.results].type;
    if (hlo_type_bytes(hlo_type(h, type)) > FOLD_BYTES_MAX)
        return 0;
    Tensor *args = ARENA_NEWN(f->c->scratch, Tensor, op.noperands + 1);
    for (uint32_t i = 0; i < op.noperands; i++) {
        size_t bytes = hlo_type_bytes(hlo_type(h, in[i]->type));
        if (bytes > FOLD_BYTES_MAX)
            return 0;
        args[i] = (Tensor){in[i]->type, arena_alloc(f->c->scratch, bytes)};
        hlo_tensor_expand(h, in[i], args[i].data);
    }
    Tensor result;
    if (!eval_op(h, f->c->scratch, id, args, &result))
        return 0;
    return make_constant(f, op.loc, type, result.data, hlo_type_bytes(hlo_type(h, type)));
}

static OpId try_fold(Fold *f, OpId id) {
    Hlo *h = f->h;
    HloOp op = *hlo_at(h, id);
    if (!is_exact(&op) || op.nresults != 1)
        return 0;
    const HloType *type = hlo_value_type(h, op.results);
    if (type->kind != HT_TENSOR || type->dynamic || type->text || type->elems == 0)
        return 0;
    const HloAttr **in = ARENA_NEWN(f->c->scratch, const HloAttr *, op.noperands + 1);
    bool splats = op.noperands > 0;
    for (uint32_t i = 0; i < op.noperands; i++) {
        in[i] = constant_of(h, hlo_operand(h, &op, i));
        if (!in[i] || hlo_type(h, in[i]->type)->elems == 0)
            return 0;
        splats = splats && one_value(h, in[i]);
    }
    assert(hlo_is_plain(type));
    OpId made = splats && type->elems > 1 ? fold_splat(f, &op, in) : 0;
    return made ? made : fold_full(f, id, in);
}

static bool is_identity(const Hlo *h, const HloOp *op) {
    if (op->nresults != 1 || op->noperands != 1 ||
        h->values.at[op->results].type != h->values.at[hlo_operand(h, op, 0)].type)
        return false;
    uint32_t n;
    const int64_t *v;
    switch (op->code) {
    case HLO_CONVERT:
    case HLO_RESHAPE:
    case HLO_BITCAST_CONVERT:
        return true;
    case HLO_TRANSPOSE:
        v = hlo_ints(op, AK_PERMUTATION, &n);
        break;
    case HLO_BROADCAST_IN_DIM:
        v = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
        break;
    default:
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (v[i] != i)
            return false;
    return true;
}

static void fold_region(Fold *f, RegionId r) {
    Hlo *h = f->h;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        walk_operands(&f->w, id);
        HloOp op = *hlo_at(h, id);
        for (uint32_t k = 0; k < op.nregions; k++)
            fold_region(f, h->op_regions.at[op.regions + k]);
        if (is_identity(h, &op)) {
            walk_replace(&f->w, op.results, hlo_operand(h, &op, 0));
            continue;
        }
        OpId made = try_fold(f, id);
        if (made) {
            walk_replace(&f->w, op.results, hlo_at(h, made)->results);
            id = made;
        }
        h->regions.at[r].ops.at[kept++] = id;
    }
    h->regions.at[r].ops.n = kept;
}

void pass_fold(Compile *c) {
    Fold f = {.c = c, .h = c->hlo};
    walk_init(&f.w, c);
    fold_region(&f, hlo_main(c->hlo)->body);
}
