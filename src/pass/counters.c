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
#include "pass/rows.h"
#include "pass/walk.h"

#define DEPTH_MAX 12
#define NUMBER_MAX ((int64_t)1 << 31)

typedef struct Counters {
    Hlo *h;
    Walk w;
} Counters;

typedef struct Affine { // sum over dimensions of by[i] * index i, and add
    int64_t by[OTRN_MAX_RANK], add;
} Affine;

static bool is_plain(const HloType *t) {
    return t->kind == HT_TENSOR && !t->dynamic && !t->text && t->elems > 0 && dtype_is_int(t->dtype) && dtype_row(t->dtype)->bits >= 32;
}

// Inside what the type holds, and of fewer than 32 bits: nothing wraps.
static bool reach(const HloType *t, const Affine *a, int64_t *least, int64_t *most) {
    __int128 lo = a->add, hi = a->add;
    for (int i = 0; i < t->rank; i++)
        *(a->by[i] < 0 ? &lo : &hi) += (__int128)a->by[i] * (t->dims[i] - 1);
    *least = (int64_t)lo, *most = (int64_t)hi;
    return lo >= (dtype_row(t->dtype)->cls == DC_SINT ? -NUMBER_MAX : 0) && hi < NUMBER_MAX;
}

static bool affine(const Hlo *h, ValueId v, int depth, Affine *out);

static bool affine_op(const Hlo *h, const HloOp *op, int depth, Affine *out) {
    const HloType *t = hlo_value_type(h, op->results);
    ValueId x = op->noperands ? hlo_operand(h, op, 0) : 0;
    Affine b;
    uint32_t n;
    switch (op->code) {
    case HLO_IOTA:
        out->by[hlo_int(op, AK_IOTA_DIMENSION, 0)] = 1;
        return true;
    case HLO_CONVERT:
        return affine(h, x, depth, out);
    case HLO_BROADCAST_IN_DIM: {
        const HloType *in = hlo_value_type(h, x);
        const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
        if (!affine(h, x, depth, &b))
            return false;
        for (uint32_t i = 0; i < n; i++)
            out->by[dims[i]] = in->dims[i] == 1 ? 0 : b.by[i];
        out->add = b.add;
        return true;
    }
    case HLO_ADD:
    case HLO_SUBTRACT: {
        int64_t sign = op->code == HLO_ADD ? 1 : -1;
        if (!affine(h, x, depth, out) || !affine(h, hlo_operand(h, op, 1), depth, &b))
            return false;
        for (int i = 0; i < t->rank; i++)
            out->by[i] += sign * b.by[i];
        out->add += sign * b.add;
        return true;
    }
    case HLO_MULTIPLY: {
        uint32_t k = splat_value(h, x) ? 0 : 1;
        if (!splat_value(h, hlo_operand(h, op, k)) || !affine(h, hlo_operand(h, op, k), depth, &b) ||
            !affine(h, hlo_operand(h, op, !k), depth, out))
            return false;
        for (int i = 0; i < t->rank; i++)
            out->by[i] *= b.add; // each below 2^31
        out->add *= b.add;
        return true;
    }
    default:
        return false;
    }
}

static bool affine(const Hlo *h, ValueId v, int depth, Affine *out) {
    const HloType *t = hlo_value_type(h, v);
    OpId def = h->values.at[v].def;
    int64_t least, most;
    *out = (Affine){0};
    if (!def || depth > DEPTH_MAX || !is_plain(t))
        return false;
    const HloAttr *splat = splat_value(h, v);
    if (splat)
        out->add = dtype_to_i64(t->dtype, splat->data);
    else if (!affine_op(h, hlo_at(h, def), depth + 1, out))
        return false;
    return reach(t, out, &least, &most);
}

// … and never below zero.
static bool counts(const Hlo *h, ValueId v, Affine *out, int64_t *most) {
    int64_t least;
    return affine(h, v, 0, out) && reach(hlo_value_type(h, v), out, &least, most) && least >= 0;
}

// --- writing -----------------------------------------------------------------------------------------

static ValueId number(Counters *s, TypeId type, int64_t v, LocId loc) {
    uint8_t data[16] = {0};
    dtype_from_i64(hlo_type(s->h, type)->dtype, data, v);
    return walk_push(&s->w, hlo_op_splat(s->h, loc, type, data));
}

static ValueId iota(Counters *s, TypeId type, int64_t dim, LocId loc) {
    OpId id = hlo_op(s->h, HLO_IOTA, loc, 0, NULL, 1, &type);
    *hlo_attr_slot(s->h, id, AK_IOTA_DIMENSION) = (HloAttr){.kind = HA_INT, .i = dim};
    return walk_push(&s->w, id);
}

static ValueId binary(Counters *s, HloOpcode code, ValueId x, ValueId y, LocId loc) {
    return walk_push(&s->w, hlo_op(s->h, code, loc, 2, (ValueId[]){x, y}, 1, &s->h->values.at[x].type));
}

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

static ValueId count(Counters *s, const HloOp *op, const Affine *a) {
    TypeId type = s->h->values.at[op->results].type;
    HloType t = *hlo_type(s->h, type);
    int order = order_of(&t, a);
    ValueId v = 0;
    if (order == -2) {
        TypeId flat = hlo_type_tensor(s->h, t.dtype, 1, &t.elems);
        ValueId line = iota(s, flat, 0, op->loc);
        v = walk_push(&s->w, hlo_op(s->h, HLO_RESHAPE, op->loc, 1, &line, 1, &type));
    }
    for (int i = 0; i < t.rank && order != -2; i++) {
        if (!a->by[i] || t.dims[i] == 1)
            continue;
        ValueId term = iota(s, type, i, op->loc);
        if (a->by[i] != 1)
            term = binary(s, HLO_MULTIPLY, term, number(s, type, a->by[i], op->loc), op->loc);
        v = v ? binary(s, HLO_ADD, v, term, op->loc) : term;
    }
    if (!v)
        return number(s, type, a->add, op->loc);
    return a->add ? binary(s, HLO_ADD, v, number(s, type, a->add, op->loc), op->loc) : v;
}

// --- masks -------------------------------------------------------------------------------------------

#define MASK_MIN 16384           // elements
#define EXACT_MAX ((int64_t)1 << 24) // what fp32 counts to

// by * index + add along one dimension, as fp32, for all of the others.
static ValueId along(Counters *s, const HloType *t, int dim, int64_t by, int64_t add, LocId loc) {
    TypeId line = hlo_type_tensor(s->h, DT_F32, 1, &t->dims[dim]), all = hlo_type_tensor(s->h, DT_F32, t->rank, t->dims);
    ValueId v = iota(s, line, 0, loc);
    float f[2] = {(float)by, (float)add};
    for (int i = 0; i < 2; i++) {
        if (f[i] == (i ? 0 : 1))
            continue;
        v = binary(s, i ? HLO_ADD : HLO_MULTIPLY, v, walk_push(&s->w, hlo_op_splat(s->h, loc, line, &f[i])), loc);
    }
    OpId id = hlo_op(s->h, HLO_BROADCAST_IN_DIM, loc, 1, &v, 1, &all);
    int64_t to = dim;
    hlo_set_ints(s->h, id, AK_BROADCAST_DIMENSIONS, &to, 1);
    return walk_push(&s->w, id);
}

static ValueId mask(Counters *s, const HloOp *op) {
    Hlo *h = s->h;
    ValueId x = hlo_operand(h, op, 0), y = hlo_operand(h, op, 1);
    HloType t = *hlo_value_type(h, x);
    Affine a, b;
    if (t.elems < MASK_MIN || !affine(h, x, 0, &a) || !affine(h, y, 0, &b))
        return 0;
    int dim[2], n = 0;
    for (int i = 0; i < t.rank; i++) {
        a.by[i] -= b.by[i];
        if (!a.by[i] || t.dims[i] == 1)
            continue;
        if (n == 2 || (a.by[i] != 1 && a.by[i] != -1) || t.dims[i] >= EXACT_MAX / 2)
            return 0;
        dim[n++] = i;
    }
    a.add -= b.add;
    if (n != 2 || a.add <= -EXACT_MAX / 2 || a.add >= EXACT_MAX / 2)
        return 0;
    ValueId sides[2] = {along(s, &t, dim[0], a.by[dim[0]], a.add, op->loc), along(s, &t, dim[1], -a.by[dim[1]], 0, op->loc)};
    OpId made = hlo_op(h, HLO_COMPARE, op->loc, 2, sides, 1, &h->values.at[op->results].type);
    *hlo_attr_slot(h, made, AK_COMPARISON_DIRECTION) = *hlo_attr(op, AK_COMPARISON_DIRECTION);
    *hlo_attr_slot(h, made, AK_COMPARE_TYPE) = (HloAttr){.kind = HA_ENUM, .i = CMPT_FLOAT};
    return walk_push(&s->w, made);
}

// --- the walk ----------------------------------------------------------------------------------------

static bool is_wide(const Hlo *h, ValueId v) { return dtype_row(hlo_value_type(h, v)->dtype)->bits == 64; }

static void visit(void *pass, OpId id) {
    Counters *s = pass;
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    Affine a;
    int64_t most;
    if (op.code == HLO_SHIFT_RIGHT_LOGICAL && is_plain(hlo_value_type(h, op.results)) &&
        counts(h, hlo_operand(h, &op, 0), &a, &most)) {
        const HloAttr *by = splat_value(h, hlo_operand(h, &op, 1));
        int64_t bits = by ? dtype_to_i64(hlo_value_type(h, op.results)->dtype, by->data) : 0;
        if (by && (bits < 0 || bits > 62 || most >> bits == 0)) {
            walk_replace(&s->w, op.results, number(s, h->values.at[op.results].type, 0, op.loc));
            return;
        }
    }
    bool narrows = op.code == HLO_CONVERT && is_plain(hlo_value_type(h, op.results)) && !is_wide(h, op.results) &&
                   is_plain(hlo_value_type(h, hlo_operand(h, &op, 0))) && is_wide(h, hlo_operand(h, &op, 0));
    if (narrows && counts(h, hlo_operand(h, &op, 0), &a, &most)) {
        walk_replace(&s->w, op.results, count(s, &op, &a));
        return;
    }
    ValueId made = op.code == HLO_COMPARE ? mask(s, &op) : 0;
    if (made)
        walk_replace(&s->w, op.results, made);
    else
        walk_push(&s->w, id);
}

void pass_counters(Compile *c) {
    Counters s = {.h = c->hlo};
    walk_init(&s.w, c);
    walk_rewrite(&s.w, hlo_main(c->hlo)->body, WALK_CONTROL, visit, &s);
}
