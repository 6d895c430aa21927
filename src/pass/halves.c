// SPDX-License-Identifier: Apache-2.0
// halves.c — rows whose halves change places, as rotary positions need them: one form, however it is written.
// needs: values defined before use, constants folded
// gives: such work on whole rows, and on concatenate(b, a) of their halves, which row programs hold as they lie (rows.c)
// stale: nothing (dce drops what became unused)
//
//   concatenate(a * c - b * s, b * c + a * s)                  a, b: the halves of x (JAX)
//   x * C + concatenate(-b, a) * S                             (Transformers)
//   concatenate(0, -a * s) + concatenate(b * s, 0) + x * C     (their gradients)
//     ──►  x * C + concatenate(b, a) * S'
//
// Two values with the same work in them, one for each half, are joined from the end: what is computed of both, then their operands, down to halves
// of one tensor and tables. A sign of one half goes into the table that scales it.
#include <string.h>

#include "pass/rules.h"

#define HALF_MOST 128 // columns of one that row programs hold
#define DEPTH 6       // of work that is joined

typedef struct Join {
    Walk *w;
    bool make;   // else: only whether it is possible
    bool halves; // some of what is joined are halves of a tensor
    int64_t n;   // columns of a half
} Join;

static ValueId join(Join *j, ValueId a, ValueId b, bool a_minus, bool b_minus, int depth);

static TypeId with_columns(const Walk *w, ValueId v, int64_t n) {
    HloType t = *hlo_value_type(w->hlo, v);
    int64_t dims[OTRN_MAX_RANK];
    memcpy(dims, t.dims, t.rank * sizeof *dims);
    dims[t.rank - 1] = n;
    return hlo_type_tensor(w->hlo, t.dtype, t.rank, dims);
}

static ValueId beside(Walk *w, ValueId a, ValueId b) {
    int64_t last = hlo_value_type(w->hlo, a)->rank - 1;
    TypeId type = with_columns(w, a, hlo_value_type(w->hlo, a)->dims[last] + hlo_value_type(w->hlo, b)->dims[last]);
    OpId made = hlo_op(w->hlo, HLO_CONCATENATE, w->loc, 2, (ValueId[]){a, b}, 1, &type);
    hlo_set_int(w->hlo, made, AK_DIMENSION, last);
    return walk_push(w, made);
}

static ValueId columns(Walk *w, ValueId v, int64_t from, int64_t n) {
    const HloType *t = hlo_value_type(w->hlo, v);
    int64_t at[OTRN_MAX_RANK] = {0};
    at[t->rank - 1] = from;
    return n == t->dims[t->rank - 1] ? v : walk_piece(w, v, at, with_columns(w, v, n));
}

// --- signs -------------------------------------------------------------------------------------------

static ValueId signs_like(Walk *w, ValueId v, bool a_minus, bool b_minus) {
    const HloType *t = hlo_value_type(w->hlo, v);
    int64_t n = t->dims[t->rank - 1], last = t->rank - 1;
    int dtype = t->dtype;
    size_t size = dtype_bytes(dtype);
    uint8_t *data = arena_alloc(w->arena, (size_t)n * size);
    for (int64_t i = 0; i < n; i++)
        dtype_from_f64(dtype, data + (size_t)i * size, (i < n / 2 ? a_minus : b_minus) ? -1 : 1);
    TypeId type = w->hlo->values.at[v].type;
    return walk_broadcast(w, walk_push(w, hlo_op_constant(w->hlo, w->loc, hlo_type_tensor(w->hlo, dtype, 1, &n), data, (size_t)n * size)), &last, 1, type);
}

static ValueId with_signs(Walk *w, ValueId v, bool a_minus, bool b_minus) {
    return a_minus || b_minus ? walk_binary(w, HLO_MULTIPLY, v, signs_like(w, v, a_minus, b_minus)) : v;
}

// A number for each column, of which either half has one sign.
static bool are_signs(const Hlo *h, ValueId v, bool minus[2]) {
    const HloOp *op = hlo_def_as(h, v, HLO_BROADCAST_IN_DIM), *of = op ? hlo_def_as(h, hlo_operand(h, op, 0), HLO_CONSTANT) : NULL;
    const HloType *t = of ? hlo_value_type(h, of->results) : NULL;
    if (!of || t->rank != 1 || !dtype_is_float(t->dtype) || hlo_int_at(op, AK_BROADCAST_DIMENSIONS, 0, -1) != hlo_value_type(h, v)->rank - 1 || t->dims[0] % 2 ||
        t->dims[0] > 2 * HALF_MOST || hlo_attr(of, AK_VALUE)->n != hlo_type_bytes(t))
        return false;
    const uint8_t *data = hlo_attr(of, AK_VALUE)->data;
    for (int64_t i = 0; i < t->dims[0]; i++) {
        double x = dtype_to_f64(t->dtype, data + (size_t)i * dtype_bytes(t->dtype));
        bool *half = &minus[i >= t->dims[0] / 2];
        if ((x != 1 && x != -1) || (i % (t->dims[0] / 2) && *half != (x < 0)))
            return false;
        *half = x < 0;
    }
    return true;
}

// --- tables ------------------------------------------------------------------------------------------

// A broadcast of something with a number for each column.
static const HloOp *table(const Hlo *h, ValueId v) {
    const HloOp *op = hlo_def_as(h, v, HLO_BROADCAST_IN_DIM);
    const HloType *from = op ? hlo_value_type(h, hlo_operand(h, op, 0)) : NULL, *to = hlo_value_type(h, v);
    bool all = from && from->rank && hlo_int_at(op, AK_BROADCAST_DIMENSIONS, from->rank - 1, -1) == to->rank - 1;
    return all && from->dims[from->rank - 1] == to->dims[to->rank - 1] && from->elems < to->elems ? op : NULL;
}

static ValueId table_of(Walk *w, const HloOp *like, ValueId from, TypeId type) {
    HloOp op = *like;
    return walk_push(w, hlo_op_like(w->hlo, &op, &from, type));
}

static ValueId join_tables(Join *j, ValueId a, ValueId b, bool a_minus, bool b_minus) {
    Hlo *h = j->w->hlo;
    const HloOp *p = table(h, a), *q = table(h, b);
    uint32_t n, m;
    const int64_t *to = p ? hlo_ints(p, AK_BROADCAST_DIMENSIONS, &n) : NULL, *too = q ? hlo_ints(q, AK_BROADCAST_DIMENSIONS, &m) : NULL;
    if (!p || !q || n != m || memcmp(to, too, n * sizeof *to) || h->values.at[hlo_operand(h, p, 0)].type != h->values.at[hlo_operand(h, q, 0)].type)
        return 0;
    if (!j->make)
        return a;
    HloOp like = *p;
    ValueId both = beside(j->w, hlo_operand(h, p, 0), hlo_operand(h, q, 0));
    return table_of(j->w, &like, with_signs(j->w, both, a_minus, b_minus), with_columns(j->w, a, 2 * j->n));
}

// --- halves ------------------------------------------------------------------------------------------

// Halves of the columns of one tensor, or of some of them: where these begin, and which comes first.
static ValueId halves_of(const Hlo *h, ValueId a, ValueId b, int64_t *at, bool *turned) {
    const HloOp *p = hlo_def_as(h, a, HLO_SLICE), *q = hlo_def_as(h, b, HLO_SLICE);
    if (!p || !q || hlo_operand(h, p, 0) != hlo_operand(h, q, 0) || h->values.at[a].type != h->values.at[b].type)
        return 0;
    const HloType *t = hlo_value_type(h, a);
    int last = t->rank - 1;
    for (int i = 0; i < t->rank; i++) {
        int64_t from = hlo_int_at(p, AK_START_INDICES, (uint32_t)i, 0), too = hlo_int_at(q, AK_START_INDICES, (uint32_t)i, 0);
        bool whole = !from && !too && t->dims[i] == hlo_value_type(h, hlo_operand(h, p, 0))->dims[i];
        if (hlo_int_at(p, AK_STRIDES, (uint32_t)i, 1) != 1 || hlo_int_at(q, AK_STRIDES, (uint32_t)i, 1) != 1 || (i < last && !whole))
            return 0;
        *at = from < too ? from : too, *turned = from > too;
        if (i == last && from - too != t->dims[i] && too - from != t->dims[i])
            return 0;
    }
    return hlo_operand(h, p, 0);
}

static ValueId exchanged(Walk *w, ValueId v) {
    int64_t n = hlo_value_type(w->hlo, v)->dims[hlo_value_type(w->hlo, v)->rank - 1] / 2;
    ValueId upper = columns(w, v, n, n);
    return beside(w, upper, columns(w, v, 0, n));
}

static ValueId join_halves(Join *j, ValueId a, ValueId b, bool a_minus, bool b_minus) {
    Walk *w = j->w;
    Hlo *h = w->hlo;
    int64_t at;
    bool turned;
    ValueId x = halves_of(h, a, b, &at, &turned);
    if (!x)
        return 0;
    j->halves = true;
    if (!j->make)
        return a;
    ValueId v = columns(w, x, at, 2 * j->n);
    if (!turned)
        return with_signs(w, v, a_minus, b_minus);
    HloOp by = hlo_def_as(h, v, HLO_MULTIPLY) ? *hlo_def(h, v) : (HloOp){0};
    for (uint32_t k = 0; k < by.noperands && walk_uses(w, v) == 2; k++) // of what a table scales: before that
        if (table(h, hlo_operand(h, &by, k))) {
            HloOp like = *table(h, hlo_operand(h, &by, k));
            ValueId scale = with_signs(w, exchanged(w, hlo_operand(h, &like, 0)), a_minus, b_minus);
            scale = table_of(w, &like, scale, h->values.at[v].type);
            return walk_binary(w, HLO_MULTIPLY, exchanged(w, hlo_operand(h, &by, 1 - k)), scale);
        }
    return with_signs(w, exchanged(w, v), a_minus, b_minus);
}

// --- work --------------------------------------------------------------------------------------------

// x and y with u and v, in one order or the other.
static ValueId join_two(Join *j, HloOpcode code, const ValueId a[2], const ValueId b[2], const bool a_minus[2], const bool b_minus[2], int depth) {
    bool make = j->make;
    j->make = false;
    uint32_t k = 0;
    while (k < 2 && !(join(j, a[0], b[k], a_minus[0], b_minus[k], depth) && join(j, a[1], b[1 - k], a_minus[1], b_minus[1 - k], depth)))
        k++;
    j->make = make;
    if (k == 2 || !make)
        return k == 2 ? 0 : a[0];
    ValueId x = join(j, a[0], b[k], a_minus[0], b_minus[k], depth);
    return walk_binary(j->w, code, x, join(j, a[1], b[1 - k], a_minus[1], b_minus[1 - k], depth));
}

static ValueId join_work(Join *j, ValueId a, ValueId b, bool a_minus, bool b_minus, int depth) {
    const Hlo *h = j->w->hlo;
    const HloOp *p = hlo_def(h, a), *q = hlo_def(h, b);
    if (p && p->code == HLO_NEGATE)
        return join(j, hlo_operand(h, p, 0), b, !a_minus, b_minus, depth - 1);
    if (q && q->code == HLO_NEGATE)
        return join(j, a, hlo_operand(h, q, 0), a_minus, !b_minus, depth - 1);
    if (p && q && p->code == HLO_CONVERT && q->code == HLO_CONVERT) {
        int dtype = hlo_value_type(h, a)->dtype;
        ValueId v = join(j, hlo_operand(h, p, 0), hlo_operand(h, q, 0), a_minus, b_minus, depth - 1);
        return v && j->make ? walk_convert(j->w, v, dtype) : v;
    }
    if (!p || !q || walk_uses(j->w, a) > 1 || walk_uses(j->w, b) > 1)
        return 0;
    bool sums = (p->code == HLO_ADD || p->code == HLO_SUBTRACT) && (q->code == HLO_ADD || q->code == HLO_SUBTRACT);
    if (!sums && !(p->code == HLO_MULTIPLY && q->code == HLO_MULTIPLY))
        return 0;
    ValueId x[2] = {hlo_operand(h, p, 0), hlo_operand(h, p, 1)}, y[2] = {hlo_operand(h, q, 0), hlo_operand(h, q, 1)};
    bool less[2][2] = {{sums && a_minus, sums && (a_minus != (p->code == HLO_SUBTRACT))}, {sums && b_minus, sums && (b_minus != (q->code == HLO_SUBTRACT))}};
    uint32_t k = table(h, x[1]) != NULL, i = table(h, y[1]) != NULL;
    if (!sums) // what scales has the signs
        less[0][k] = a_minus, less[1][i] = b_minus;
    return join_two(j, sums ? HLO_ADD : HLO_MULTIPLY, x, y, less[0], less[1], depth - 1);
}

// Both beside each other, each with its sign; 0: they are not alike.
static ValueId join(Join *j, ValueId a, ValueId b, bool a_minus, bool b_minus, int depth) {
    const Hlo *h = j->w->hlo;
    if (depth < 1 || h->values.at[a].type != h->values.at[b].type)
        return 0;
    ValueId v = join_halves(j, a, b, a_minus, b_minus);
    v = v ? v : join_tables(j, a, b, a_minus, b_minus);
    return v ? v : join_work(j, a, b, a_minus, b_minus, depth);
}

// --- rules -------------------------------------------------------------------------------------------

static ValueId concatenate(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    ValueId *in = ARENA_NEWN(w->arena, ValueId, op->noperands + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (hlo_value_type(h, hlo_operand(h, op, i))->elems)
            in[n++] = hlo_operand(h, op, i);
    const HloType *t = hlo_value_type(h, op->results);
    bool found = n < op->noperands, rows = t->rank && hlo_int(op, AK_DIMENSION, 0) == t->rank - 1 && dtype_on_tensor_engine(t->dtype);
    for (uint32_t i = 0; i + 1 < n && rows; i++) {
        const HloType *part = hlo_value_type(h, in[i]);
        Join j = {.w = w, .n = part->dims[part->rank - 1]};
        int64_t at;
        bool turned;
        if (j.n > HALF_MOST || halves_of(h, in[i], in[i + 1], &at, &turned) || !join(&j, in[i], in[i + 1], false, false, DEPTH) || !j.halves)
            continue;
        j.make = found = true;
        in[i] = join(&j, in[i], in[i + 1], false, false, DEPTH);
        memmove(in + i + 1, in + i + 2, (--n - i - 1) * sizeof *in);
    }
    if (!found || n == 1)
        return found ? in[0] : 0;
    TypeId type = h->values.at[op->results].type;
    OpId made = hlo_op(h, HLO_CONCATENATE, w->loc, n, in, 1, &type);
    hlo_set_int(h, made, AK_DIMENSION, hlo_int(op, AK_DIMENSION, 0));
    return walk_push(w, made);
}

// (y * signs) * table, y converted perhaps: y * (table * signs).
static ValueId signs_into_table(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    for (uint32_t k = 0; k < 2; k++) {
        ValueId x = hlo_operand(h, op, k), scale = hlo_operand(h, op, 1 - k);
        const HloOp *wide = hlo_def_as(h, x, HLO_CONVERT), *by = hlo_def_as(h, wide ? hlo_operand(h, wide, 0) : x, HLO_MULTIPLY);
        bool minus[2];
        for (uint32_t i = 0; by && table(h, scale) && i < 2; i++) {
            ValueId y = hlo_operand(h, by, i);
            if (!are_signs(h, hlo_operand(h, by, 1 - i), minus) || dtype_bytes(hlo_value_type(h, x)->dtype) < dtype_bytes(hlo_value_type(h, y)->dtype))
                continue;
            HloOp like = *table(h, scale);
            ValueId with = table_of(w, &like, with_signs(w, hlo_operand(h, &like, 0), minus[0], minus[1]), h->values.at[scale].type);
            return walk_binary(w, HLO_MULTIPLY, walk_convert(w, y, hlo_value_type(h, x)->dtype), with);
        }
    }
    return 0;
}

// The part of a sum's operand that is not zero, where only one of the last dimension's ends is: its length and where it begins.
static ValueId not_zero(const Hlo *h, ValueId v, int64_t *at) {
    const HloOp *op = hlo_def(h, v);
    int last = hlo_value_type(h, v)->rank - 1;
    *at = 0;
    if (op && op->code == HLO_CONCATENATE && op->noperands == 2 && hlo_int(op, AK_DIMENSION, 0) == last) {
        ValueId a = hlo_operand(h, op, 0), b = hlo_operand(h, op, 1);
        *at = splat_is_zero(h, a) ? hlo_value_type(h, a)->dims[last] : 0;
        return splat_is_zero(h, a) ? b : splat_is_zero(h, b) ? a : 0;
    }
    if (!op || op->code != HLO_PAD || !splat_is_zero(h, hlo_operand(h, op, 1)))
        return 0;
    for (int i = 0; i <= last; i++) {
        int64_t low = hlo_int_at(op, AK_EDGE_PADDING_LOW, (uint32_t)i, 0), high = hlo_int_at(op, AK_EDGE_PADDING_HIGH, (uint32_t)i, 0);
        if (hlo_int_at(op, AK_INTERIOR_PADDING, (uint32_t)i, 0) || low < 0 || high < 0 || (i < last ? low || high : low && high))
            return 0;
        *at = low;
    }
    return hlo_operand(h, op, 0);
}

static ValueId add(Walk *w, const HloOp *op) {
    const Hlo *h = w->hlo;
    const HloType *t = hlo_value_type(h, op->results);
    int64_t at[2];
    ValueId part[2];
    for (uint32_t k = 0; k < 2; k++)
        if (!t->rank || !(part[k] = not_zero(h, hlo_operand(h, op, k), &at[k])))
            return 0;
    uint32_t first = at[0] > at[1];
    int64_t n = hlo_value_type(h, part[first])->dims[t->rank - 1], m = hlo_value_type(h, part[1 - first])->dims[t->rank - 1];
    if (at[first] || at[1 - first] != n || n + m != t->dims[t->rank - 1])
        return 0;
    ValueId both = beside(w, part[first], part[1 - first]);
    HloOp made = *hlo_def(h, both);
    ValueId joined = concatenate(w, &made);
    return joined ? joined : both;
}

static ValueId pad(Walk *w, const HloOp *op) {
    ValueId number = hlo_operand(w->hlo, op, 1);
    return hlo_value_type(w->hlo, hlo_operand(w->hlo, op, 0))->elems ? 0 : walk_broadcast(w, number, NULL, 0, w->hlo->values.at[op->results].type);
}

const Rule halves_rules[] = {
    {"pad of nothing: the number everywhere", HLO_PAD, RULE_EXACT, pad},
    {"concatenate(f(a, b), f(b, -a)), a and b halves of x: f(x, concatenate(b, a) with signs)", HLO_CONCATENATE, RULE_EXACT, concatenate},
    {"(x * signs) * table: x * (signs * table)", HLO_MULTIPLY, RULE_EXACT, signs_into_table},
    {"one end of rows and zeros + zeros and the other end: concatenate", HLO_ADD, RULE_ZERO, add},
    {0},
};

void pass_halves(Compile *c) {
    Walk w;
    walk_init(&w, c);
    walk_note_uses(&w, 0);
    rules_walk(&w, halves_rules);
}
