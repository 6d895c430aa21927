// SPDX-License-Identifier: Apache-2.0
// expand_turn.c — Jacobi's rotations of pairs of columns, for eigenvalues and singular values.
//
// A round rotates disjoint pairs at once: with an odd number m of columns i and j are a pair in round r when i + j = r modulo m, and
// one is alone; a further column is the partner of that one. After m rounds each pair has met. Exchanging partners is a product
// with the pairs' matrix of zeros and ones, which is exact.
#include "pass/expand_mats.h"

static ValueId both(Mats *q, ValueId x, ValueId y) { return walk_binary(q->w, HLO_AND, x, y); }

int64_t turn_rounds(int64_t n) { return n < 2 ? 1 : n - !(n % 2); }

ValueId turn_pairs(Mats *s, ValueId step) {
    Walk *w = s->w;
    ValueId i = mats_places(s, s->all, 1), j = mats_places(s, s->all, 2);
    TypeId counts = mats_type_of(s, i), scalar = mats_type_of(s, step);
    ValueId m = walk_number(w, counts, (double)turn_rounds(s->n)), last = walk_number(w, counts, (double)(s->n - 1));
    ValueId round = walk_binary(w, HLO_REMAINDER, step, walk_number(w, scalar, (double)turn_rounds(s->n)));
    round = walk_broadcast(w, round, NULL, 0, counts);
    ValueId lower = walk_binary(w, HLO_MINIMUM, i, j), upper = walk_binary(w, HLO_MAXIMUM, i, j);
    ValueId met = walk_binary(w, HLO_ADD, lower, upper);
    if (s->n % 2 == 0) // the further column meets who would meet itself
        met = walk_select(w, mats_compared(s, CMP_EQ, upper, last), walk_binary(w, HLO_ADD, lower, lower), met);
    return both(s, mats_compared(s, CMP_EQ, walk_binary(w, HLO_REMAINDER, met, m), round), mats_compared(s, CMP_NE, i, j));
}

Turn turn_of(Mats *s, ValueId pair, ValueId own, ValueId element) {
    Walk *w = s->w;
    TypeId real = mats_typed(s, s->rows, s->real);
    ValueId other = mats_total(s, HLO_ADD, mats_where(s, pair, mats_wide(s, own, mats_outer, s->all), 0), 2, s->rows), size = mats_size(s, element);
    // 1 of a pair's first, -1 of its second
    ValueId up = mats_number(s, s->all, s->real, 1);
    up = walk_select(w, mats_compared(s, CMP_LT, mats_places(s, s->all, 1), mats_places(s, s->all, 2)), up, mats_number(s, s->all, s->real, -1));
    ValueId side = mats_total(s, HLO_ADD, mats_where(s, pair, up, 0), 2, s->rows);
    ValueId zero = walk_number(w, real, 0), one = walk_number(w, real, 1), none = mats_compared(s, CMP_EQ, size, zero);
    ValueId safe = walk_select(w, none, one, size);
    ValueId tau = walk_binary(w, HLO_DIVIDE, mats_times(s, side, mats_minus(s, other, own)), walk_binary(w, HLO_ADD, safe, safe));
    ValueId root = walk_unary(w, HLO_SQRT, walk_binary(w, HLO_ADD, one, mats_times(s, tau, tau)));
    ValueId sign = walk_select(w, mats_compared(s, CMP_GE, tau, zero), one, walk_number(w, real, -1));
    ValueId tangent = walk_binary(w, HLO_DIVIDE, sign, walk_binary(w, HLO_ADD, walk_unary(w, HLO_ABS, tau), root));
    tangent = walk_select(w, none, zero, tangent);
    ValueId cosine = walk_binary(w, HLO_DIVIDE, one, walk_unary(w, HLO_SQRT, walk_binary(w, HLO_ADD, one, mats_times(s, tangent, tangent))));
    ValueId sine = walk_unary(w, HLO_NEGATE, mats_times(s, side, mats_times(s, tangent, cosine)));
    ValueId first = walk_binary(w, HLO_OR, none, mats_compared(s, CMP_GE, side, zero));
    ValueId phase = walk_binary(w, HLO_DIVIDE, element, mats_element(s, safe));
    phase = walk_select(w, first, mats_number(s, s->rows, s->dtype, 1), phase);
    ValueId square = mats_where(s, pair, mats_number(s, s->all, s->dtype, 1), 0);
    return (Turn){mats_element(s, cosine), mats_element(s, sine), phase, square, mats_times(s, side, mats_times(s, tangent, size))};
}

static ValueId turned(Mats *q, const Turn *t, ValueId x, const int64_t *dims, ValueId phase) {
    ValueId own = mats_times(q, x, mats_wide(q, phase, dims, q->all));
    ValueId other = dims == mats_outer ? mats_product(q, own, t->square) : mats_product(q, t->square, own);
    return walk_binary(q->w, HLO_ADD, mats_times(q, own, mats_wide(q, t->cosine, dims, q->all)), mats_times(q, other, mats_wide(q, t->sine, dims, q->all)));
}

ValueId turn_columns(Mats *q, const Turn *t, ValueId x) { return turned(q, t, x, mats_outer, t->phase); }
ValueId turn_rows(Mats *q, const Turn *t, ValueId x) { return turned(q, t, x, mats_at, mats_conjugate(q, t->phase)); }

void turn_sort(Mats *s, Mats *q, ValueId *columns, ValueId *values) { // each goes to the place that as many precede
    Walk *w = s->w;
    ValueId i = mats_places(s, s->all, 1), j = mats_places(s, s->all, 2), mine = mats_wide(s, *values, mats_at, s->all);
    ValueId others = mats_wide(s, *values, mats_outer, s->all);
    ValueId before = both(s, mats_compared(s, CMP_EQ, others, mine), mats_compared(s, CMP_LT, j, i));
    before = walk_binary(w, HLO_OR, before, mats_compared(s, CMP_LT, others, mine));
    TypeId counts = mats_type_of(s, i);
    ValueId place = mats_total(s, HLO_ADD, mats_where(s, before, walk_number(w, counts, 1), 0), 2, s->rows);
    ValueId goes = mats_compared(s, CMP_EQ, mats_wide(s, place, mats_at, counts), j); // [from, to]
    *columns = mats_product(q, *columns, mats_where(s, goes, mats_number(s, s->all, s->dtype, 1), 0));
    *values = mats_total(s, HLO_ADD, mats_where(s, goes, mine, 0), 1, s->cols);
}
