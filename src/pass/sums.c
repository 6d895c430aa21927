// SPDX-License-Identifier: Apache-2.0
// sums.c — reductions that go across rows, written as what the engines do.
// needs: values defined before use
// gives: a sum over leading dimensions, or over some between others, is a product with a row of ones; a reduction of a whole
//        tensor is one along 128 rows and a small one of their results, and so is one along few rows that are long; one over leading and trailing dimensions (numbers
//        per channel of images with channels first) goes along rows first, and a broadcast between such dimensions goes in
//        two steps; numbers per group of channels (group norm) are summed per channel first and repeated per channel last
// stale: nothing
//
// They add in another order than one element after the other, which is the chip's freedom (hlo/tol.c). Sums of 16-bit
// floats gather in fp32 and round once.
#include <string.h>

#include "pass/rules.h"

#define PARTS 128
#define WHOLE_MIN (64 * PARTS) // smaller tensors are one kernel's work
#define SUM_ROWS_MIN 32
#define LONG_MIN 49152 // columns that a partition does not hold
#define TOGETHER_COLUMNS 2048
#define TOGETHER_MAX 256
#define NARROW_COLUMNS 48
#define CHAIN_ROWS 8192 // added one behind the other, 128 at a time; longer chains lose places
#define NEAR 32 // ops looked back at
#define GROUP_MAX 64 // channels of a group; more are summed along rows first
#define BETWEEN_MIN 64 // columns of a sum between others: shorter runs are slow to load

// Sizes of the parts [kept, summed, kept, summed] that the operand's dimensions make, one element where there is none; false when
// they change more often.
enum { KEPT, SUMMED, KEPT_THEN, SUMMED_LAST, PART_COUNT };

static bool parts_of(const Hlo *h, const HloOp *op, int64_t part[PART_COUNT]) {
    const HloType *t = hlo_value_type(h, hlo_operand(h, op, 0));
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_DIMENSIONS, &n);
    bool reduced[OTRN_MAX_RANK] = {0};
    for (uint32_t i = 0; i < n; i++)
        reduced[dims[i]] = true;
    for (int i = 0; i < PART_COUNT; i++)
        part[i] = 1;
    for (int i = 0, at = KEPT; i < t->rank; i++) {
        if (t->dims[i] == 1)
            continue;
        while (at < PART_COUNT && reduced[i] != (at & 1))
            at++;
        if (at == PART_COUNT)
            return false;
        part[at] *= t->dims[i];
    }
    assert(part[KEPT] * part[SUMMED] * part[KEPT_THEN] * part[SUMMED_LAST] == t->elems);
    return true;
}

// What x was before it was widened from 16-bit floats just above: products take it as it is and gather in fp32.
static ValueId before_widening(const Walk *w, ValueId x) {
    const Hlo *h = w->hlo;
    size_t least = w->out.n > NEAR ? w->out.n - NEAR : 0;
    for (size_t i = w->out.n; i-- > least && hlo_value_type(h, x)->dtype == DT_F32;) {
        const HloOp *op = hlo_at(h, w->out.at[i]);
        if (op->code != HLO_CONVERT || op->results != x)
            continue;
        int from = hlo_value_type(h, hlo_operand(h, op, 0))->dtype;
        return from == DT_BF16 || from == DT_F16 ? hlo_operand(h, op, 0) : x;
    }
    return x;
}

// The sum over the first dimension, of `rows` elements, of a tensor whose other dimensions are `dims`.
static ValueId dot_with_ones(Walk *w, ValueId x, int64_t rows, int sum_dtype, int rank, const int64_t *dims) {
    int64_t zero = 0;
    DotPairs by = {.nc = 1, .lc = &zero, .rc = &zero};
    assert(hlo_value_type(w->hlo, x)->dims[0] == rows);
    ValueId row = walk_number(w, hlo_type_tensor(w->hlo, hlo_value_type(w->hlo, x)->dtype, 1, &rows), 1);
    return walk_push(w, hlo_op_dot(w->hlo, w->loc, row, x, by, hlo_type_tensor(w->hlo, sum_dtype, rank, dims), NULL));
}

// A copy of the reduction over dimension `dim` of another operand.
static ValueId reduce_like(Walk *w, const HloOp *op, ValueId x, int64_t dim, TypeId type) {
    return walk_reduce(w, reduce_body(w->hlo, op), x, hlo_operand(w->hlo, op, 1), &dim, 1, type);
}

// How many rows to take as one: narrow ones are slow to load and to multiply, and terms of a long sum are added in as many chains.
static int64_t rows_together(int64_t rows, int64_t columns) {
    int64_t most = TOGETHER_COLUMNS / columns, j = most < TOGETHER_MAX ? most : TOGETHER_MAX;
    if (columns > NARROW_COLUMNS) {
        for (j = 1; j < TOGETHER_MAX && (rows / j > CHAIN_ROWS || rows % j); j++)
            ;
        return rows % j ? 1 : j;
    }
    while (j > 1 && (rows % j || rows / j < SUM_ROWS_MIN))
        j--;
    return j > 1 ? j : 1;
}

static ValueId sum_down(Walk *w, const HloOp *op, ValueId x, int64_t columns) {
    Hlo *h = w->hlo;
    int sum_dtype = hlo_value_type(h, x)->dtype;
    x = before_widening(w, x);
    int64_t rows = hlo_value_type(h, x)->elems / columns, j = sum_dtype == DT_F32 ? rows_together(rows, columns) : 1;
    assert(rows * columns == hlo_value_type(h, x)->elems && rows % j == 0);
    int64_t wide = j * columns, terms[2] = {j, columns};
    x = walk_reshape(w, x, 2, (int64_t[]){rows / j, wide});
    ValueId sum = dot_with_ones(w, x, rows / j, sum_dtype, 1, &wide);
    if (j > 1)
        sum = reduce_like(w, op, walk_reshape(w, sum, 2, terms), 0, hlo_type_tensor(h, sum_dtype, 1, &columns));
    const HloType *out = hlo_value_type(h, op->results);
    return walk_reshape(w, sum, out->rank, out->dims);
}

static ValueId reduce_whole(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    const HloType *t = hlo_value_type(h, hlo_operand(h, op, 0));
    assert(t->elems % PARTS == 0);
    int64_t parts = PARTS, each = t->elems / PARTS;
    TypeId middle = hlo_type_tensor(h, t->dtype, 1, &parts);
    ValueId x = walk_reshape(w, hlo_operand(h, op, 0), 2, (int64_t[]){parts, each});
    x = reduce_like(w, op, x, 1, middle);
    TypeId scalar = hlo_type_tensor(h, hlo_type(h, middle)->dtype, 0, NULL);
    const HloType *out = hlo_value_type(h, op->results);
    bool sums = reduce_body(h, op) == HLO_ADD;
    x = sums ? dot_with_ones(w, x, PARTS, DT_F32, 0, NULL) : reduce_like(w, op, x, 0, scalar);
    return walk_reshape(w, x, out->rank, out->dims);
}

// A sum between others: for each of the leading elements a row of ones times the matrix of the others.
static ValueId sum_between(Walk *w, const HloOp *op, const int64_t part[PART_COUNT]) {
    Hlo *h = w->hlo;
    ValueId x = hlo_operand(h, op, 0);
    int sum_dtype = hlo_value_type(h, x)->dtype;
    x = before_widening(w, x);
    int64_t batch = part[KEPT], rows = part[SUMMED], columns = part[KEPT_THEN] * part[SUMMED_LAST], zero = 0, one = 1;
    x = walk_reshape(w, x, 3, (int64_t[]){batch, rows, columns});
    int64_t all = batch * rows;
    ValueId row = walk_number(w, hlo_type_tensor(h, hlo_value_type(h, x)->dtype, 1, &all), 1);
    row = walk_reshape(w, row, 2, (int64_t[]){batch, rows});
    DotPairs by = {1, 1, &zero, &zero, &one, &one};
    TypeId type = hlo_type_tensor(h, sum_dtype, 2, (int64_t[]){batch, columns});
    ValueId sum = walk_push(w, hlo_op_dot(h, w->loc, row, x, by, type, NULL));
    if (part[SUMMED_LAST] > 1) {
        sum = walk_reshape(w, sum, 3, (int64_t[]){batch, part[KEPT_THEN], part[SUMMED_LAST]});
        sum = reduce_like(w, op, sum, 2, hlo_type_tensor(h, sum_dtype, 2, (int64_t[]){batch, part[KEPT_THEN]}));
    }
    const HloType *out = hlo_value_type(h, op->results);
    return walk_reshape(w, sum, out->rank, out->dims);
}

// Leading and trailing dimensions go, what is between stays: part is [summed, kept, summed].
static ValueId reduce_around(Walk *w, const HloOp *op, const int64_t part[3]) {
    Hlo *h = w->hlo;
    int dtype = hlo_value_type(h, op->results)->dtype;
    ValueId x = walk_reshape(w, hlo_operand(h, op, 0), 3, part);
    x = reduce_like(w, op, x, 2, hlo_type_tensor(h, dtype, 2, part));
    if (reduce_body(h, op) == HLO_ADD && part[0] >= SUM_ROWS_MIN && part[0] * part[1] >= WHOLE_MIN)
        return sum_down(w, op, x, part[1]);
    const HloType *out = hlo_value_type(h, op->results);
    return walk_reshape(w, reduce_like(w, op, x, 0, hlo_type_tensor(h, dtype, 1, &part[1])), out->rank, out->dims);
}

// Numbers per group of channels, [a, g] as [a, r, g, c]: first per channel, then for every place.
static ValueId broadcast_groups(Walk *w, const HloOp *op, const int64_t *dims, uint32_t n, int last) {
    Hlo *h = w->hlo;
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    int64_t behind = 1, mid[OTRN_MAX_RANK], at[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    int rank = 0;
    for (uint32_t i = 0; i < n; i++) {
        at[i] = rank, to[rank] = dims[i];
        mid[rank++] = in->dims[i];
    }
    for (int i = last + 1; i < out->rank; i++) {
        behind *= out->dims[i];
        to[rank] = i;
        mid[rank++] = out->dims[i];
    }
    if (rank > OTRN_MAX_RANK || behind < 2 || in->elems * behind * SUM_ROWS_MIN > out->elems)
        return 0;
    ValueId v = hlo_operand(h, op, 0);
    TypeId type = h->values.at[op->results].type, middle = hlo_type_tensor(h, in->dtype, rank, mid);
    v = walk_broadcast(w, v, at, n, middle);
    return walk_broadcast(w, v, to, (uint32_t)rank, type);
}

// Few rows, too long for SBUF, are cut to be as many as there are partitions; 1: they are not.
static int64_t cut_long(int64_t rows, int64_t columns) {
    int64_t parts = columns < LONG_MIN ? 1 : PARTS / rows;
    while (parts > 1 && columns % parts)
        parts--;
    return parts > 1 ? parts : 1;
}

// A number for each of them, as one for each part.
static ValueId broadcast_long(Walk *w, const HloOp *op, int64_t rows) {
    Hlo *h = w->hlo;
    HloType in = *hlo_value_type(h, hlo_operand(h, op, 0)), out = *hlo_value_type(h, op->results);
    int64_t columns = out.elems / rows, parts = cut_long(rows, columns);
    if (parts == 1 || in.elems != rows)
        return 0;
    int64_t cut[3] = {rows, parts, columns / parts}, at[2] = {0, 1};
    ValueId v = walk_reshape(w, hlo_operand(h, op, 0), 1, cut);
    TypeId middle = hlo_type_tensor(h, in.dtype, 2, cut), wide = hlo_type_tensor(h, in.dtype, 3, cut);
    v = walk_broadcast(w, v, at, 1, middle);
    v = walk_broadcast(w, v, at, 2, wide);
    return walk_reshape(w, v, out.rank, out.dims);
}

// A broadcast that repeats before and behind what it has: once for the dimensions up to there, then along rows.
static ValueId broadcast_between(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    if (!hlo_is_plain(in) || !hlo_is_plain(out) || out->elems < WHOLE_MIN)
        return 0;
    int last = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (in->dims[i] == 1)
            continue;
        if (dims[i] < last)
            return 0;
        last = (int)dims[i];
    }
    int64_t front = 1, all[OTRN_MAX_RANK];
    for (int i = 0; i <= last; i++) {
        front *= out->dims[i];
        all[i] = i;
    }
    bool mapped_later = n && dims[n - 1] > last; // a dimension of one element behind
    if (last >= 0 && !mapped_later && front == in->elems)
        return broadcast_long(w, op, front);
    if (last < 0 || mapped_later)
        return 0;
    if (front * 16 > out->elems)
        return broadcast_groups(w, op, dims, n, last);
    ValueId v = hlo_operand(h, op, 0);
    TypeId type = h->values.at[op->results].type, middle = hlo_type_tensor(h, in->dtype, last + 1, out->dims);
    v = walk_broadcast(w, v, dims, n, middle);
    return walk_broadcast(w, v, all, (uint32_t)last + 1, type);
}

// Parts of long rows as rows of their own, then the parts.
static ValueId reduce_long(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    HloType t = *hlo_value_type(h, hlo_operand(h, op, 0)), out = *hlo_value_type(h, op->results);
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_DIMENSIONS, &n);
    for (uint32_t i = 0; i < n; i++)
        if (dims[i] < t.rank - (int64_t)n)
            return 0;
    int64_t rows = out.elems, columns = t.elems / rows, parts = cut_long(rows, columns);
    if (parts == 1)
        return 0;
    assert(columns % parts == 0 && rows * columns == t.elems);
    int64_t cut[2] = {rows * parts, columns / parts}, back[2] = {rows, parts};
    ValueId x = walk_reshape(w, hlo_operand(h, op, 0), 2, cut);
    x = walk_reshape(w, reduce_like(w, op, x, 1, hlo_type_tensor(h, t.dtype, 1, cut)), 2, back);
    return walk_reshape(w, reduce_like(w, op, x, 1, hlo_type_tensor(h, t.dtype, 1, back)), out.rank, out.dims);
}

static ValueId reduction(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    uint16_t code = reduce_body(h, op);
    if (code != HLO_ADD && code != HLO_MAXIMUM && code != HLO_MINIMUM)
        return 0;
    const HloType *t = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    bool narrow = t->dtype == DT_BF16 || t->dtype == DT_F16;
    bool plain = hlo_has_elems(t) && (t->dtype == DT_F32 || narrow) &&
                 out->dtype == t->dtype && !splat_value(h, hlo_operand(h, op, 0));
    if (!plain)
        return 0;
    if (code == HLO_ADD ? !splat_is_zero(h, hlo_operand(h, op, 1)) : !is_neutral(h, code, hlo_operand(h, op, 1)))
        return 0;
    int64_t whole_min = code == HLO_ADD ? 4 * PARTS : WHOLE_MIN;
    if (out->elems == 1)
        return !narrow && t->elems >= whole_min && t->elems % PARTS == 0 ? reduce_whole(w, op) : 0;
    ValueId cut = narrow ? 0 : reduce_long(w, op);
    if (cut)
        return cut;
    int64_t part[PART_COUNT];
    if (t->elems < WHOLE_MIN || !parts_of(h, op, part))
        return 0;
    bool leads = part[KEPT] == 1 && part[SUMMED] > 1 && part[KEPT_THEN] > 1;
    if (leads && part[SUMMED_LAST] > 1)
        return narrow ? 0 : reduce_around(w, op, &part[SUMMED]);
    if (code != HLO_ADD || part[SUMMED] < SUM_ROWS_MIN || part[KEPT_THEN] == 1)
        return 0;
    if (leads)
        return sum_down(w, op, hlo_operand(h, op, 0), part[KEPT_THEN]);
    bool loads_well = part[KEPT_THEN] * part[SUMMED_LAST] >= BETWEEN_MIN && part[SUMMED_LAST] <= GROUP_MAX;
    return loads_well && (part[SUMMED_LAST] == 1 || !narrow) ? sum_between(w, op, part) : 0;
}

const Rule sums_rules[] = {
    {"broadcast between dimensions, or along few long rows: in two steps", HLO_BROADCAST_IN_DIM, RULE_EXACT, broadcast_between},
    {"reduction across rows, of all or of long rows: a product with ones, or in two steps", HLO_REDUCE, RULE_ORDER, reduction},
    {0},
};

void pass_sums(Compile *c) {
    Walk w;
    walk_init(&w, c);
    w.depth = WALK_CONTROL;
    rules_walk(&w, sums_rules);
    pass_cse(c); // sums of as many rows share their ones
}
