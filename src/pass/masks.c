// SPDX-License-Identifier: Apache-2.0
// masks.c — masks that compare iotas, as the graph writes them.
#include "pass/masks.h"

#include "pass/rows.h"

#define MASK_MIN_ELEMS 4096
#define PLACE_MAX ((int64_t)1 << 30)

static bool affine(const Hlo *h, ValueId v, int depth, Affine *out) {
    OpId def = h->values.at[v].def;
    const HloType *t = hlo_value_type(h, v);
    if (!def || depth > 8 || t->rank < 1 || !dtype_is_int(t->dtype) || dtype_row(t->dtype)->bits < 32) // narrower ones wrap
        return false;
    const HloOp *op = hlo_at(h, def);
    if (op->code == HLO_SUBTRACT && dtype_row(t->dtype)->cls != DC_SINT)
        return false;
    Affine a, b;
    const HloAttr *splat = splat_value(h, v);
    *out = (Affine){0};
    if (splat) {
        out->k = dtype_to_i64(t->dtype, splat->data);
        return out->k > -(1 << 30) && out->k < 1 << 30;
    }
    switch (op->code) {
    case HLO_IOTA: {
        int64_t dim = hlo_int(op, AK_IOTA_DIMENSION, -1);
        out->c = dim == t->rank - 1;
        out->r = dim == t->rank - 2;
        return out->c || out->r || t->dims[dim] == 1;
    }
    case HLO_ADD:
    case HLO_SUBTRACT:
        if (!affine(h, hlo_operand(h, op, 0), depth + 1, &a) || !affine(h, hlo_operand(h, op, 1), depth + 1, &b))
            return false;
        *out = op->code == HLO_ADD ? (Affine){a.r + b.r, a.c + b.c, a.k + b.k} : (Affine){a.r - b.r, a.c - b.c, a.k - b.k};
        return true;
    default:
        return false;
    }
}

bool mask_affine(const Hlo *h, ValueId v, Affine *out) { return affine(h, v, 0, out); }

bool mask_sign(const Hlo *h, ValueId v, MaskSign *out) {
    OpId def = h->values.at[v].def;
    const HloOp *op = def ? hlo_at(h, def) : NULL;
    Affine x, y;
    if (!op || op->code != HLO_COMPARE || !affine(h, hlo_operand(h, op, 0), 0, &x) || !affine(h, hlo_operand(h, op, 1), 0, &y))
        return false;
    *out = (MaskSign){x.r - y.r, x.c - y.c, x.k - y.k, hlo_int(op, AK_COMPARISON_DIRECTION, -1)};
    return out->direction >= 0;
}

static int64_t size_of(int64_t v) { return v < 0 ? -v : v; }

bool mask_is_made(const Hlo *h, const HloOp *op) {
    const HloType *t = hlo_value_type(h, op->results);
    MaskSign sign;
    if (op->code != HLO_COMPARE || t->kind != HT_TENSOR || t->dynamic || t->text || t->rank < 2 || t->elems < MASK_MIN_ELEMS ||
        t->elems > PLACE_MAX || !mask_sign(h, op->results, &sign))
        return false;
    return size_of(sign.row) * t->dims[t->rank - 2] + size_of(sign.column) * t->dims[t->rank - 1] + size_of(sign.add) < PLACE_MAX;
}

bool mask_only(const Users *u, ValueId v) {
    const Hlo *h = u->h;
    OpId def = h->values.at[v].def;
    uint16_t code = def ? hlo_at(h, def)->code : HLO_NONE;
    Affine a;
    if ((code != HLO_IOTA && code != HLO_ADD && code != HLO_SUBTRACT) || !affine(h, v, 0, &a))
        return false;
    uint32_t count;
    const OpId *at = users_of(u, v, &count);
    for (uint32_t i = 0; i < count; i++) {
        const HloOp *op = hlo_at(h, at[i]);
        if (!mask_is_made(h, op) && (op->nresults != 1 || !mask_only(u, op->results)))
            return false;
    }
    return count > 0;
}
