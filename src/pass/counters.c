// SPDX-License-Identifier: Apache-2.0
// counters.c — numbers that count a tensor's elements, in 32 bits and as one count.
// needs: values defined before use, splat constants
// gives: what is affine in the indices and converted to 32 bits is an iota of 32 bits where it counts the elements in order, or
//        sums of such; bits above those that the numbers reach are zero; a comparison of two dimensions' indices, as of a causal
//        mask, is one of two short fp32 vectors
// stale: uses of what was 64 bits wide
//
// JAX's generators count in 64 bits: iota of each dimension times its stride, added up, the upper half shifted down. The upper
// half of a tensor with fewer than 2^32 elements is zero.
#include "hlo/affine.h"
#include "pass/rules.h"

#define NUMBER_MAX ((int64_t)1 << 31)

static bool is_count(const HloType *t) { return hlo_has_elems(t) && dtype_is_int(t->dtype) && dtype_row(t->dtype)->bits >= 32; }

static bool affine(const Hlo *h, ValueId v, Affine *out) { return affine_read(&(AffineReader){.h = h}, v, out); }

// … of fewer than 32 bits and never below zero.
static bool counts(const Hlo *h, ValueId v, Affine *out, int64_t *most) {
    if (!affine(h, v, out))
        return false;
    AffineRange x = affine_range(&(AffineReader){.h = h}, hlo_value_type(h, v), out);
    *most = (int64_t)x.most;
    return x.least >= 0 && x.most < NUMBER_MAX;
}

// --- writing -----------------------------------------------------------------------------------------

// The dimension of an iota that is all of it: steps of one, in order; -1: more than one, -2: it counts all elements.
static int order_of(const HloType *t, const Affine *a) {
    int64_t stride = 1;
    int terms = 0, dim = -1;
    bool all = true;
    for (int i = t->rank; i-- > 0; stride *= t->dims[i]) {
        if (t->dims[i] == 1)
            continue;
        all = all && a->by[i] == stride;
        if (a->by[i])
            terms++, dim = a->by[i] == 1 ? i : -1;
    }
    return all && terms > 1 ? -2 : terms == 1 ? dim : -1;
}

static ValueId count(Walk *w, const HloOp *op, const Affine *a) {
    TypeId type = w->hlo->values.at[op->results].type;
    HloType t = *hlo_type(w->hlo, type);
    int order = order_of(&t, a);
    ValueId v = 0;
    if (order == -2)
        v = walk_shape(w, walk_iota(w, hlo_type_tensor(w->hlo, t.dtype, 1, &t.elems), 0), type);
    for (int i = 0; i < t.rank && order != -2; i++) {
        if (!a->by[i])
            continue;
        ValueId term = walk_iota(w, type, i);
        if (a->by[i] != 1)
            term = walk_binary(w, HLO_MULTIPLY, term, walk_number(w, type, (double)a->by[i]));
        v = v ? walk_binary(w, HLO_ADD, v, term) : term;
    }
    if (!v)
        return walk_number(w, type, (double)a->at.add);
    return a->at.add ? walk_binary(w, HLO_ADD, v, walk_number(w, type, (double)a->at.add)) : v;
}

// --- masks -------------------------------------------------------------------------------------------

#define MASK_MIN 16384           // elements
#define EXACT_MAX ((int64_t)1 << 24) // what fp32 counts to

// by * index + add along one dimension, as fp32, for all of the others.
static ValueId along(Walk *w, const HloType *t, int dim, int64_t by, int64_t add) {
    TypeId line = hlo_type_tensor(w->hlo, DT_F32, 1, &t->dims[dim]), all = hlo_type_tensor(w->hlo, DT_F32, t->rank, t->dims);
    ValueId v = walk_iota(w, line, 0);
    if (by != 1)
        v = walk_binary(w, HLO_MULTIPLY, v, walk_number(w, line, (double)by));
    if (add)
        v = walk_binary(w, HLO_ADD, v, walk_number(w, line, (double)add));
    return walk_broadcast(w, v, (int64_t[]){dim}, 1, all);
}

static ValueId mask(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    ValueId x = hlo_operand(h, op, 0), y = hlo_operand(h, op, 1);
    HloType t = *hlo_value_type(h, x);
    Affine a, b;
    if (t.elems < MASK_MIN || !is_count(&t) || !affine(h, x, &a) || !affine(h, y, &b))
        return 0;
    int dim[2], n = 0;
    a = affine_sum(&a, &b, -1);
    for (int i = 0; i < t.rank; i++) {
        if (!a.by[i])
            continue;
        if (n == 2 || (a.by[i] != 1 && a.by[i] != -1) || t.dims[i] >= EXACT_MAX / 2)
            return 0;
        dim[n++] = i;
    }
    if (n != 2 || a.at.add <= -EXACT_MAX / 2 || a.at.add >= EXACT_MAX / 2)
        return 0;
    ValueId l = along(w, &t, dim[0], a.by[dim[0]], a.at.add), r = along(w, &t, dim[1], -a.by[dim[1]], 0);
    return walk_compare(w, hlo_int(op, AK_COMPARISON_DIRECTION, CMP_EQ), CMPT_FLOAT, l, r);
}

// --- the rules ---------------------------------------------------------------------------------------

static ValueId shift_out(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    const HloType *t = hlo_value_type(h, op->results);
    const HloAttr *by = splat_value(h, hlo_operand(h, op, 1));
    Affine a;
    int64_t most;
    if (!by || !is_count(t) || !counts(h, hlo_operand(h, op, 0), &a, &most))
        return 0;
    int64_t bits = dtype_to_i64(t->dtype, by->data);
    return bits < 0 || bits > 62 || most >> bits == 0 ? walk_number(w, h->values.at[op->results].type, 0) : 0;
}

static bool is_wide(const HloType *t) { return dtype_row(t->dtype)->bits == 64; }

static ValueId count_narrow(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    const HloType *t = hlo_value_type(h, op->results), *from = hlo_value_type(h, hlo_operand(h, op, 0));
    Affine a;
    int64_t most;
    bool narrows = is_count(t) && !is_wide(t) && is_count(from) && is_wide(from);
    return narrows && counts(h, hlo_operand(h, op, 0), &a, &most) ? count(w, op, &a) : 0;
}

const Rule counters_rules[] = {
    {"bits above what a count reaches: 0", HLO_SHIFT_RIGHT_LOGICAL, RULE_EXACT, shift_out},
    {"count of 64 bits, narrowed: counted in 32", HLO_CONVERT, RULE_EXACT, count_narrow},
    {"compare of two dimensions' indices: of two fp32 lines", HLO_COMPARE, RULE_EXACT, mask},
    {0},
};
