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

#include "pass/rules.h"

typedef struct Kept { // dimensions of the large shape that the narrow one has
    uint32_t n;
    int64_t dim[OTRN_MAX_RANK];
    int64_t size[OTRN_MAX_RANK];
    int place[OTRN_MAX_RANK]; // of each large dimension in the narrow shape; -1: not in it
} Kept;

// Which dimensions the operand tells apart; false: it may be all of them.
static bool operand_uses(const Hlo *h, ValueId v, bool used[OTRN_MAX_RANK], bool *plain) {
    const HloOp *op = hlo_def(h, v);
    if (hlo_value_type(h, v)->rank == 0 || splat_value(h, v))
        return true;
    if (!op)
        return false;
    *plain = false;
    if (op->code == HLO_IOTA) {
        used[hlo_int(op, AK_IOTA_DIMENSION, 0)] = true;
        return true;
    }
    if (op->code != HLO_BROADCAST_IN_DIM)
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
        if (!operand_uses(h, hlo_operand(h, op, i), used, &plain))
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

// What is broadcast, to the narrow shape.
static ValueId broadcast_for(Walk *w, const HloOp *op, const Kept *k, TypeId type) {
    Hlo *h = w->hlo;
    ValueId v = hlo_operand(h, op, 0);
    HloType t = *hlo_value_type(h, v);
    uint32_t n, m = 0;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    int64_t to[OTRN_MAX_RANK], size[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++)
        if (t.dims[i] != 1) {
            assert(k->place[dims[i]] >= 0); // what tells elements apart is kept
            to[m] = k->place[dims[i]];
            size[m++] = t.dims[i];
        }
    v = walk_reshape(w, v, (int)m, size);
    return h->values.at[v].type == type ? v : walk_broadcast(w, v, to, m, type);
}

static ValueId operand_for(Walk *w, ValueId v, const Kept *k) {
    Hlo *h = w->hlo;
    HloType t = *hlo_value_type(h, v);
    const HloAttr *number = splat_value(h, v);
    if (t.rank == 0)
        return v;
    TypeId type = hlo_type_tensor(h, t.dtype, (int)k->n, k->size);
    HloOp op = *hlo_def(h, v);
    assert(number || op.code == HLO_BROADCAST_IN_DIM || op.code == HLO_IOTA);
    LocId here = w->loc;
    w->loc = op.loc;
    ValueId made = number                            ? walk_push(w, hlo_op_splat(h, op.loc, type, number->data))
                   : op.code == HLO_BROADCAST_IN_DIM ? broadcast_for(w, &op, k, type)
                                                     : walk_iota(w, type, k->place[hlo_int(&op, AK_IOTA_DIMENSION, 0)]);
    w->loc = here;
    return made;
}

static ValueId narrowed(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    Kept k;
    if (!hlo_is_elementwise(op) || op->nresults != 1 || op->nregions || !find_kept(h, op, &k))
        return 0;
    assert(op->noperands <= 3);
    ValueId in[3];
    for (uint32_t i = 0; i < op->noperands; i++)
        in[i] = operand_for(w, hlo_operand(h, op, i), &k);
    TypeId type = hlo_type_tensor(h, hlo_value_type(h, op->results)->dtype, (int)k.n, k.size);
    ValueId v = walk_push(w, hlo_op_like(h, op, in, type));
    return walk_broadcast(w, v, k.dim, k.n, h->values.at[op->results].type);
}

const Rule narrow_rules[] = {{"elementwise work on broadcasts: the broadcast of that work", HLO_NONE, RULE_EXACT, narrowed}, {0}};
