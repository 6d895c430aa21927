// SPDX-License-Identifier: Apache-2.0
// narrow.c — do elementwise work before its operands are broadcast, not behind.
// needs: values defined before use, constants folded
// gives: no elementwise op on broadcasts, iotas and numbers alone that leave a dimension out in common
// stale: nothing (dce drops what became unused)
//
//   compare(broadcast [8] -> [8 4096 512], iota along 4096)  ──►  broadcast(compare on [8 4096]) -> [8 4096 512]
//
// Masks are written so: for every element of a large tensor, of which one number per row would do.
#include <string.h>

#include "pass/rows.h"
#include "pass/walk.h"

typedef struct Narrow {
    Hlo *h;
    Walk w;
} Narrow;

typedef struct Kept { // dimensions of the large shape that the narrow one has
    uint32_t n;
    int64_t dim[OTRN_MAX_RANK];
    int64_t size[OTRN_MAX_RANK];
    int place[OTRN_MAX_RANK]; // of each large dimension in the narrow shape; -1: not in it
} Kept;

static bool is_static(const HloType *t) { return t->kind == HT_TENSOR && !t->dynamic && !t->text; }

// Which dimensions the operand tells apart; false: it may be all of them.
static bool operand_uses(const Hlo *h, ValueId v, bool used[OTRN_MAX_RANK], bool *plain) {
    OpId def = h->values.at[v].def;
    if (hlo_value_type(h, v)->rank == 0 || splat_value(h, v))
        return true;
    if (!def)
        return false;
    const HloOp *op = hlo_at(h, def);
    *plain = false;
    if (op->code == HLO_IOTA) {
        used[hlo_int(op, AK_IOTA_DIMENSION, 0)] = true;
        return true;
    }
    if (op->code != HLO_BROADCAST_IN_DIM || !is_static(hlo_value_type(h, hlo_operand(h, op, 0))))
        return false;
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    const HloType *t = hlo_value_type(h, hlo_operand(h, op, 0));
    for (uint32_t i = 0; i < n; i++) {
        if (i && dims[i] < dims[i - 1])
            return false;
        used[dims[i]] = used[dims[i]] || t->dims[i] != 1;
    }
    return true;
}

static bool find_kept(const Hlo *h, const HloOp *op, Kept *k) {
    const HloType *t = hlo_value_type(h, op->results);
    bool used[OTRN_MAX_RANK] = {0}, plain = true;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (!is_static(hlo_value_type(h, hlo_operand(h, op, i))) || !operand_uses(h, hlo_operand(h, op, i), used, &plain))
            return false;
    int64_t elems = 1;
    k->n = 0;
    for (int i = 0; i < t->rank; i++) {
        k->place[i] = -1;
        if (!used[i])
            continue;
        k->place[i] = (int)k->n;
        k->dim[k->n] = i;
        k->size[k->n++] = t->dims[i];
        elems *= t->dims[i];
    }
    return !plain && elems < t->elems;
}

static ValueId number_for(Narrow *s, const HloAttr *number, TypeId type, LocId loc) {
    OpId made = hlo_op(s->h, HLO_CONSTANT, loc, 0, NULL, 1, &type);
    HloAttr value = *number;
    value.type = type;
    *hlo_attr_slot(s->h, made, AK_VALUE) = value;
    return walk_push(&s->w, made);
}

// What is broadcast, to the narrow shape.
static ValueId broadcast_for(Narrow *s, const HloOp *op, const Kept *k, TypeId type) {
    Hlo *h = s->h;
    ValueId v = hlo_operand(h, op, 0);
    HloType t = *hlo_value_type(h, v);
    uint32_t n, m = 0;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    int64_t to[OTRN_MAX_RANK], size[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++)
        if (t.dims[i] != 1) {
            to[m] = k->place[dims[i]];
            size[m++] = t.dims[i];
        }
    if (m != n) {
        TypeId squeezed = hlo_type_tensor(h, t.dtype, (int)m, size);
        v = walk_push(&s->w, hlo_op(h, HLO_RESHAPE, op->loc, 1, &v, 1, &squeezed));
    }
    if (h->values.at[v].type == type)
        return v;
    OpId made = hlo_op(h, HLO_BROADCAST_IN_DIM, op->loc, 1, &v, 1, &type);
    hlo_set_ints(h, made, AK_BROADCAST_DIMENSIONS, to, m);
    return walk_push(&s->w, made);
}

static ValueId operand_for(Narrow *s, ValueId v, const Kept *k) {
    Hlo *h = s->h;
    HloType t = *hlo_value_type(h, v);
    const HloAttr *number = splat_value(h, v);
    if (t.rank == 0)
        return v;
    TypeId type = hlo_type_tensor(h, t.dtype, (int)k->n, k->size);
    HloOp op = *hlo_at(h, h->values.at[v].def);
    if (number)
        return number_for(s, number, type, op.loc);
    if (op.code == HLO_BROADCAST_IN_DIM)
        return broadcast_for(s, &op, k, type);
    OpId made = hlo_op(h, HLO_IOTA, op.loc, 0, NULL, 1, &type);
    *hlo_attr_slot(h, made, AK_IOTA_DIMENSION) = (HloAttr){.kind = HA_INT, .i = k->place[hlo_int(&op, AK_IOTA_DIMENSION, 0)]};
    return walk_push(&s->w, made);
}

static ValueId narrowed(Narrow *s, const HloOp *op) {
    Hlo *h = s->h;
    HloClass cls = hlo_row(op)->cls;
    Kept k;
    if ((cls != HC_EW1 && cls != HC_EW2 && cls != HC_EW3) || op->nresults != 1 || op->nregions || !is_static(hlo_value_type(h, op->results)) ||
        !find_kept(h, op, &k))
        return 0;
    ValueId in[3];
    for (uint32_t i = 0; i < op->noperands; i++)
        in[i] = operand_for(s, hlo_operand(h, op, i), &k);
    TypeId type = hlo_type_tensor(h, hlo_value_type(h, op->results)->dtype, (int)k.n, k.size);
    OpId made = hlo_op(h, op->code, op->loc, op->noperands, in, 1, &type);
    hlo_at(h, made)->attrs = op->attrs;
    ValueId v = walk_push(&s->w, made);
    OpId wide = hlo_op(h, HLO_BROADCAST_IN_DIM, op->loc, 1, &v, 1, &h->values.at[op->results].type);
    hlo_set_ints(h, wide, AK_BROADCAST_DIMENSIONS, k.dim, k.n);
    return walk_push(&s->w, wide);
}

static void narrow_visit(void *pass, OpId id) {
    Narrow *s = pass;
    HloOp op = *hlo_at(s->h, id);
    ValueId to = narrowed(s, &op);
    if (to)
        walk_replace(&s->w, op.results, to);
    else
        walk_push(&s->w, id);
}

void pass_narrow(Compile *c) {
    Narrow s = {.h = c->hlo};
    walk_init(&s.w, c);
    walk_rewrite(&s.w, hlo_main(c->hlo)->body, WALK_CONTROL, narrow_visit, &s);
}
