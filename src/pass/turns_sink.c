// SPDX-License-Identifier: Apache-2.0
// turns_sink.c — let transposes of products go behind what is computed from them.
//
// Elementwise work, reductions, broadcasts and parts put together do the same in any order of dimensions, so a transpose of a product may wait until
// somebody needs its order: often that is another product, which reads through it (turns.c). A function over heads that vmap maps
// over the heads of a group gives attention of this kind: scores [b k q g t] turned to [g b k q t], softmax, weights turned back.
//
//   op(transpose(x), transpose(y), number, broadcast(z))  ──►  transpose(op(x, y, number, broadcast(z)))
//
// In what follows `perm` says which dimension of x each one of the transpose is.
#include "pass/turns.h"

static Sink sinks(const Turns *s, ValueId v) { return v < s->sinks.n ? (Sink)s->sinks.at[v] : SINK_NONE; }

static Dims perm_of(const Hlo *h, ValueId v) { return turns_dims(hlo_def(h, v), AK_PERMUTATION); }

static ValueId from_of(const Hlo *h, ValueId v) { return hlo_operand(h, hlo_def(h, v), 0); }

// Both come from the same order in memory: dimensions of size one are nowhere in it.
static bool same_order(const HloType *t, const Dims *a, const Dims *b) {
    assert(a->n == b->n && a->n == t->rank);
    int64_t of[2][OTRN_MAX_RANK]; // which dimension of the transpose each one of x is
    for (uint32_t i = 0; i < a->n; i++)
        of[0][a->at[i]] = of[1][b->at[i]] = i;
    for (uint32_t i = 0, k = 0; i < a->n && k < a->n; i++, k++) {
        while (i < a->n && t->dims[of[0][i]] == 1)
            i++;
        while (k < a->n && t->dims[of[1][k]] == 1)
            k++;
        if (i < a->n && k < a->n && of[0][i] != of[1][k])
            return false;
    }
    return true;
}

static TypeId unturned(Turns *s, TypeId type, const Dims *perm) {
    assert(hlo_type(s->h, type)->rank == perm->n);
    HloType t = *hlo_type(s->h, type);
    int64_t dims[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < perm->n; i++)
        dims[perm->at[i]] = t.dims[i];
    return hlo_type_tensor(s->h, t.dtype, t.rank, dims);
}

// --- operands that have no order of their own --------------------------------------------------------

// The broadcast in the order of x, dimensions still ascending; those of size one of a table are left out.
static bool broadcast_fits(const Turns *s, const HloOp *op, const Dims *perm, Dims *to, Dims *sizes) {
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    const HloType *t = hlo_value_type(s->h, hlo_operand(s->h, op, 0));
    *to = *sizes = (Dims){0};
    for (uint32_t i = 0; i < n; i++) {
        if (t->dims[i] == 1 && s->kind == SINK_ALL)
            continue;
        if (to->n && perm->at[dims[i]] < to->at[to->n - 1])
            return false;
        to->at[to->n++] = perm->at[dims[i]];
        sizes->at[sizes->n++] = t->dims[i];
    }
    return true;
}

static bool operand_fits(const Turns *s, ValueId v, const Dims *perm) {
    const Hlo *h = s->h;
    const HloOp *op = hlo_def(h, v);
    Dims other, sizes;
    if (hlo_value_type(h, v)->rank != (int)perm->n || !op)
        return false;
    if (sinks(s, v)) {
        other = perm_of(h, v);
        return same_order(hlo_value_type(h, v), &other, perm);
    }
    return splat_value(h, v) || op->code == HLO_IOTA || (op->code == HLO_BROADCAST_IN_DIM && broadcast_fits(s, op, perm, &other, &sizes));
}

static ValueId operand_for(Turns *s, ValueId v, const Dims *perm) {
    Hlo *h = s->h;
    TypeId type = unturned(s, h->values.at[v].type, perm);
    HloOp op = *hlo_def(h, v);
    ValueId in = op.noperands ? hlo_operand(h, &op, 0) : 0;
    if (sinks(s, v))
        return h->values.at[in].type == type ? in : walk_push(&s->w, hlo_op(h, HLO_RESHAPE, op.loc, 1, &in, 1, &type));
    assert(op.noperands <= 1);
    Dims to, sizes;
    if (op.code == HLO_BROADCAST_IN_DIM && broadcast_fits(s, &op, perm, &to, &sizes))
        return walk_broadcast(&s->w, walk_reshape(&s->w, in, (int)sizes.n, sizes.at), to.at, to.n, type);
    OpId made = hlo_op_like(h, &op, &in, type);
    hlo_op_own_attrs(h, made);
    if (op.code == HLO_CONSTANT)
        hlo_attr_slot(h, made, AK_VALUE)->type = type;
    else if (op.code == HLO_IOTA)
        hlo_attr_slot(h, made, AK_IOTA_DIMENSION)->i = perm->at[hlo_int(&op, AK_IOTA_DIMENSION, 0)];
    return walk_push(&s->w, made);
}

static ValueId finish(Turns *s, OpId made, const Dims *perm) { return turns_behind(s, walk_push(&s->w, made), perm); }

// --- ops ---------------------------------------------------------------------------------------------

static ValueId sink_elementwise(Turns *s, const HloOp *op) {
    Hlo *h = s->h;
    Dims perm = {0};
    for (uint32_t i = 0; i < op->noperands && !perm.n; i++)
        if (sinks(s, hlo_operand(h, op, i)))
            perm = perm_of(h, hlo_operand(h, op, i));
    for (uint32_t i = 0; i < op->noperands; i++)
        if (!perm.n || !operand_fits(s, hlo_operand(h, op, i), &perm))
            return 0;
    ValueId in[3];
    for (uint32_t i = 0; i < op->noperands; i++)
        in[i] = operand_for(s, hlo_operand(h, op, i), &perm);
    TypeId type = unturned(s, h->values.at[op->results].type, &perm);
    return finish(s, hlo_op_like(h, op, in, type), &perm);
}

static ValueId sink_reduce(Turns *s, const HloOp *op) {
    Hlo *h = s->h;
    if (op->noperands != 2 || !sinks(s, hlo_operand(h, op, 0)) || reduce_body(h, op) == HLO_NONE)
        return 0;
    Dims perm = perm_of(h, hlo_operand(h, op, 0)), left = {0};
    uint32_t n, place[OTRN_MAX_RANK], kept = 0;
    const int64_t *dims = hlo_ints(op, AK_DIMENSIONS, &n);
    bool gone[OTRN_MAX_RANK] = {0};
    for (uint32_t i = 0; i < n; i++)
        gone[perm.at[dims[i]]] = true;
    int64_t over[OTRN_MAX_RANK];
    for (uint32_t i = 0, k = 0; i < perm.n; i++) {
        if (gone[i])
            over[k++] = i;
        else
            place[i] = kept++;
    }
    for (uint32_t i = 0; i < perm.n; i++)
        if (!gone[perm.at[i]])
            left.at[left.n++] = place[perm.at[i]];
    TypeId type = unturned(s, h->values.at[op->results].type, &left);
    ValueId from = from_of(h, hlo_operand(h, op, 0));
    return turns_behind(s, walk_reduce(&s->w, reduce_body(h, op), from, hlo_operand(h, op, 1), over, n, type), &left);
}

// Dimensions that a broadcast or a reshape adds stay where they are; the others are those of x in its order.
static Dims spread(const Dims *perm, const Dims *at, uint32_t rank) {
    Dims out = {.n = rank};
    assert(perm->n == at->n && at->n <= rank);
    for (uint32_t i = 0; i < rank; i++)
        out.at[i] = i;
    for (uint32_t i = 0; i < at->n; i++)
        out.at[at->at[i]] = at->at[perm->at[i]];
    return out;
}

static ValueId sink_broadcast(Turns *s, const HloOp *op) {
    Hlo *h = s->h;
    ValueId v = hlo_operand(h, op, 0);
    const HloType *to = hlo_value_type(h, op->results);
    Dims at = turns_dims(op, AK_BROADCAST_DIMENSIONS);
    for (uint32_t i = 0; i < at.n; i++)
        if (i && at.at[i] < at.at[i - 1])
            return 0;
    Dims perm = perm_of(h, v), out = spread(&perm, &at, (uint32_t)to->rank);
    ValueId in = from_of(h, v);
    TypeId type = unturned(s, h->values.at[op->results].type, &out);
    return turns_behind(s, walk_broadcast(&s->w, in, at.at, at.n, type), &out);
}

// A reshape that adds or drops dimensions of size one.
static ValueId sink_reshape(Turns *s, const HloOp *op) {
    Hlo *h = s->h;
    ValueId v = hlo_operand(h, op, 0), in = from_of(h, v);
    const HloType *t = hlo_value_type(h, v), *to = hlo_value_type(h, op->results), *x = hlo_value_type(h, in);
    Dims perm = perm_of(h, v), at = {0}, plain = {0};
    int64_t place[OTRN_MAX_RANK];
    for (int i = 0, k = 0; i < x->rank; i++)
        place[i] = x->dims[i] == 1 ? -1 : k++;
    for (int i = 0; i < to->rank; i++)
        if (to->dims[i] != 1)
            at.at[at.n++] = i;
    for (int i = 0; i < t->rank; i++) {
        if (t->dims[i] == 1)
            continue;
        if (plain.n == at.n || t->dims[i] != to->dims[at.at[plain.n]])
            return 0;
        plain.at[plain.n++] = place[perm.at[i]];
    }
    if (plain.n != at.n)
        return 0;
    Dims out = spread(&plain, &at, (uint32_t)to->rank);
    TypeId type = unturned(s, h->values.at[op->results].type, &out);
    return finish(s, hlo_op(h, HLO_RESHAPE, op->loc, 1, &in, 1, &type), &out);
}

static ValueId sink_slice(Turns *s, const HloOp *op) {
    static const HloAttrKey keys[] = {AK_START_INDICES, AK_LIMIT_INDICES, AK_STRIDES};
    Hlo *h = s->h;
    Dims perm = perm_of(h, hlo_operand(h, op, 0));
    ValueId in = from_of(h, hlo_operand(h, op, 0));
    OpId made = hlo_op_like(h, op, &in, unturned(s, h->values.at[op->results].type, &perm));
    hlo_op_own_attrs(h, made);
    for (int k = 0; k < 3; k++) {
        int64_t to[OTRN_MAX_RANK];
        for (uint32_t i = 0; i < perm.n; i++)
            to[perm.at[i]] = hlo_int_at(op, keys[k], i, 1);
        hlo_set_ints(h, made, keys[k], to, perm.n);
    }
    return finish(s, made, &perm);
}

static ValueId sink_concatenate(Turns *s, const HloOp *op) {
    Hlo *h = s->h;
    Dims perm = sinks(s, hlo_operand(h, op, 0)) ? perm_of(h, hlo_operand(h, op, 0)) : (Dims){0};
    for (uint32_t i = 0; i < op->noperands; i++)
        if (!perm.n || !operand_fits(s, hlo_operand(h, op, i), &perm))
            return 0;
    ValueId *in = ARENA_NEWN(s->w.arena, ValueId, op->noperands);
    for (uint32_t i = 0; i < op->noperands; i++)
        in[i] = operand_for(s, hlo_operand(h, op, i), &perm);
    OpId made = hlo_op(h, HLO_CONCATENATE, op->loc, op->noperands, in, 1, &(TypeId){unturned(s, h->values.at[op->results].type, &perm)});
    hlo_set_int(h, made, AK_DIMENSION, perm.at[hlo_int(op, AK_DIMENSION, 0)]);
    return finish(s, made, &perm);
}

static ValueId sink_transpose(Turns *s, const HloOp *op) {
    ValueId v = hlo_operand(s->h, op, 0);
    Dims first = perm_of(s->h, v), both = {0};
    const int64_t *perm = hlo_ints(op, AK_PERMUTATION, &both.n);
    for (uint32_t i = 0; i < both.n; i++)
        both.at[i] = first.at[perm[i]];
    return turns_behind(s, from_of(s->h, v), &both);
}

ValueId turns_sink(Turns *s, const HloOp *op) {
    s->kind = SINK_NONE;
    for (uint32_t i = 0; i < op->noperands; i++)
        s->kind = sinks(s, hlo_operand(s->h, op, i)) > s->kind ? sinks(s, hlo_operand(s->h, op, i)) : s->kind;
    if (!s->kind || op->nresults != 1)
        return 0;
    switch (op->code) {
    case HLO_REDUCE: return sink_reduce(s, op);
    case HLO_BROADCAST_IN_DIM: return sink_broadcast(s, op);
    case HLO_RESHAPE: return sink_reshape(s, op);
    case HLO_TRANSPOSE: return sink_transpose(s, op);
    case HLO_SLICE: return sink_slice(s, op);
    case HLO_CONCATENATE: return sink_concatenate(s, op);
    default: return hlo_is_elementwise(op) && !op->nregions ? sink_elementwise(s, op) : 0;
    }
}
