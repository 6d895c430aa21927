// SPDX-License-Identifier: Apache-2.0
// scores.c — compute attention's scores again for its gradients instead of keeping them.
// needs: row programs
// gives: a row program over a product with few contracted elements gives no rows to work that comes much later: its
//        readers there compute them again, from the product's operands and the numbers per row that the first one keeps
// stale: nothing
//
//   forward   S = q k ──► R1: max, exp, sum, weights ──► weights v
//   backward  S' = q k, dP = dy v ──► R2: weights again, dS ──► weights dy, dS k, dS q
//
// The same goes for rows that cost little: what a few instructions make of operands no wider than the result, such as
// the centred and the normal values of a layer norm, is not stored for its gradient. And where R2 reads several rows that
// follow from fewer, R1 stores those (scores_cut.c).
//
// R1's rows that R2 reads become part of R2; a product that reads them and needs something made after R1 reads R2's copy,
// and moves behind it. tile/block.c then finds both programs with all their products around them.
#include <string.h>

#include "hlo/dot.h"
#include "hlo/query.h"
#include "pass/epilogue.h"
#include "pass/rows.h"
#include "pass/rows_make.h"
#include "pass/scores.h"

// --- the pattern -------------------------------------------------------------------------------------

// A product makes them beside the program, which short ones are too few for alone.
static bool has_score(const Scores *s, OpId rows) {
    bool few = hlo_int(hlo_at(s->h, rows), AK_DIMENSION, 0) <= rows_short(s->c->chip);
    for (uint32_t i = 0; i < hlo_at(s->h, rows)->noperands; i++) {
        OpId dot = rows_score(s->h, &s->u, rows, i, SCORE_NARROW);
        if (dot && (!few || rows_batches_of(s->c->chip, s->h, hlo_at(s->h, dot)) > 1))
            return true;
    }
    return false;
}

static bool same_rows(const Scores *s, OpId a, OpId b) {
    int64_t ra, ca, rb, cb;
    return rows_shape(s->h, hlo_at(s->h, a), &ra, &ca) && rows_shape(s->h, hlo_at(s->h, b), &rb, &cb) && ra == rb && ca == cb;
}

// Sorts the readers of R1's result k: products that can follow R1 at once are left alone.
static bool sort_readers(Scores *s, Pair *p, ValueId v, uint32_t k) {
    for (Reader by = readers_of(&s->u, v); reader_next(&by);) {
        HloOp op = *by.op;
        if (s->u.region[by.id] != s->u.region[p->first] || by.id >= s->nops || s->taken[by.id])
            return false;
        if (op.code == HLO_RESHAPE) {
            if (!sort_readers(s, p, op.results, k))
                return false;
            continue;
        }
        if (op.code == HLO_ROWS) {
            if ((p->second && p->second != by.id) || !same_rows(s, p->first, by.id))
                return false;
            p->second = by.id;
            p->again[k] = true;
            continue;
        }
        if (!dot_on_tensor_engine(s->h, &op))
            return false;
        uint32_t at = hlo_operand(s->h, &op, 1) == v;
        ValueId other = hlo_operand(s->h, &op, !at);
        if (other == v)
            return false;
        if (!p->whole && users_there_before(&s->u, other, p->first))
            continue;
        if (p->nlate == LATE_MAX)
            return false;
        p->late[p->nlate++] = (Late){by.id, at, k};
        p->again[k] = true;
    }
    return true;
}

// Readers of a value that will be made behind R2 stand there already, or only move it and can follow.
static bool may_follow(const Scores *s, Pair *p, ValueId v) {
    for (Reader by = readers_of(&s->u, v); reader_next(&by);) {
        if (s->u.region[by.id] != s->u.region[p->second])
            return false;
        if (s->u.position[by.id] > s->u.position[p->second])
            continue;
        bool moves = by.op->code == HLO_RESHAPE || by.op->code == HLO_TRANSPOSE || by.op->code == HLO_CONVERT;
        if (!moves || by.id >= s->nops || s->taken[by.id] || p->nfollow == FOLLOW_MAX)
            return false;
        p->follow[p->nfollow++] = by.id;
        if (!may_follow(s, p, by.op->results))
            return false;
    }
    return true;
}

// Products that move behind R2: their operands are there, nobody needs them earlier.
static bool may_move(const Scores *s, Pair *p) {
    for (uint32_t i = 0; i < p->nlate; i++) {
        const HloOp *op = hlo_at(s->h, p->late[i].op);
        if (!users_there_before(&s->u, hlo_operand(s->h, op, !p->late[i].operand), p->second) ||
            !may_follow(s, p, op->results))
            return false;
    }
    return true;
}

// What the slice that makes an inner value keeps of R1 can be kept: numbers per row, of float types.
static bool slice_fits(const Scores *s, ValueId v, uint32_t depth) {
    OpId def = s->h->values.at[v].def;
    if (!def)
        return true;
    const HloOp *op = hlo_at(s->h, def);
    if (op->code == HLO_CONSTANT)
        return true;
    if (!is_full(s, v))
        return dtype_is_float(hlo_value_type(s->h, v)->dtype);
    for (uint32_t k = 0; k < op->noperands; k++)
        if (depth > 64 || !slice_fits(s, hlo_operand(s->h, op, k), depth + 1))
            return false;
    return op->nregions == 0;
}

// A number per row that few instructions make of others which R1 stores: transfers of a few bytes a partition take longer.
#define NUMBER_OPS 4
#define NUMBER_COLUMNS 512 // of fewer the program waits for each such instruction: few tiles of rows, with nothing beside them

static bool is_number_known(const Scores *s, const Pair *p, ValueId v, bool top, uint32_t *ops) {
    OpId def = s->h->values.at[v].def;
    if (is_full(s, v) || !def || (!top && (is_kept_result(s, p, v) || values_have(&p->numbers, v))))
        return !is_full(s, v) && def != 0;
    const HloOp *op = hlo_at(s->h, def);
    if (op->code == HLO_CONSTANT)
        return true;
    if (op->nregions || !dtype_is_float(hlo_value_type(s->h, v)->dtype) || ++*ops > NUMBER_OPS)
        return false;
    for (uint32_t k = 0; k < op->noperands; k++)
        if (!is_number_known(s, p, hlo_operand(s->h, op, k), false, ops))
            return false;
    return true;
}

// --- cheap rows --------------------------------------------------------------------------------------

#define CHEAP_OPS 3 // instructions over rows, about
#define ALIKE_DEPTH 12
#define LARGE_MIN (1 << 19) // elements: of fewer, HBM's time is short beside what instructions wait for each other

bool scores_is_large(const Scores *s, OpId rows) {
    int64_t r, c;
    return rows_shape(s->h, hlo_at(s->h, rows), &r, &c) && r * c >= LARGE_MIN;
}

// The argument of R2's region that is this value, 0: none.
ValueId scores_argument(const Scores *s, OpId second, ValueId v, int64_t kind) {
    HloOp r2 = op_of(s, second);
    const int64_t *kinds = rows_kinds(&r2);
    for (uint32_t i = 0; i < r2.noperands; i++)
        if (kinds[i] == kind && before_reshapes(s->h, hlo_operand(s->h, &r2, i)) == before_reshapes(s->h, v))
            return body_of(s, second)->args + i;
    return 0;
}

// What R2 has of R1's inner value already, 0: it has not; `top`: nor does it count that R2 reads it.
static ValueId there_already(const Scores *s, const Pair *p, ValueId v, bool top, uint32_t depth) {
    const Hlo *h = s->h;
    OpId def = h->values.at[v].def;
    HloOp r1 = op_of(s, p->first);
    uint32_t n;
    if (!def) {
        uint32_t i = v - body_of(s, p->first)->args;
        return scores_argument(s, p->second, hlo_operand(h, &r1, i), hlo_ints(&r1, AK_BROADCAST_DIMENSIONS, &n)[i]);
    }
    for (uint32_t k = 0; k < r1.nresults && !top; k++) {
        bool stored = rows_returned(h, p->first, k) == v && !p->again[k];
        ValueId arg = stored ? scores_argument(s, p->second, r1.results + k, is_full(s, v) ? FUSED_SAME : FUSED_ROWS) : 0;
        if (arg)
            return arg;
    }
    const HloOp *op = hlo_at(h, def);
    ValueId has[4];
    if (!depth || op->noperands > 4)
        return 0;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (!(has[i] = there_already(s, p, hlo_operand(h, op, i), false, depth - 1)))
            return 0;
    const HloRegion *body = body_of(s, p->second);
    for (uint32_t i = 0; i < body->ops.n; i++) {
        const HloOp *other = hlo_at(h, body->ops.at[i]);
        if (cse_alike(h, op, other) && !memcmp(has, &h->operands.at[other->operands], op->noperands * sizeof *has))
            return other->results;
    }
    return 0;
}

// What computing an inner value again takes: instructions, bytes of an element's operands. False: it is not a matter of
// operands and numbers per row.
static bool again_cost(const Scores *s, const Pair *p, ValueId v, bool top, uint32_t *ops, uint32_t *bytes) {
    const Hlo *h = s->h;
    OpId def = h->values.at[v].def;
    HloOp r1 = op_of(s, p->first);
    if (!is_full(s, v))
        return dtype_is_float(hlo_value_type(h, v)->dtype);
    if (scores_is_large(s, p->first) && there_already(s, p, v, top, ALIKE_DEPTH))
        return true;
    if (!def || (!top && is_kept_result(s, p, v))) {
        uint32_t i = def ? 0 : v - body_of(s, p->first)->args;
        const int64_t *kinds = rows_kinds(&r1);
        Epilogue e;
        if (!def && kinds[i] != FUSED_SAME)
            return true; // little to load
        if (!def && epilogue_suits(&s->u, p->first, i, &e) && !e.keeps)
            return false; // such a product is not stored itself
        *bytes += (uint32_t)dtype_bytes(hlo_value_type(h, v)->dtype);
        return true;
    }
    const HloOp *op = hlo_at(h, def);
    if (op->nregions || *ops > CHEAP_OPS)
        return false;
    *ops += op->code != HLO_CONVERT && op->code != HLO_CONSTANT && op->code != HLO_BROADCAST_IN_DIM;
    for (uint32_t k = 0; k < op->noperands; k++)
        if (!again_cost(s, p, hlo_operand(h, op, k), false, ops, bytes))
            return false;
    return *ops <= CHEAP_OPS;
}

// The one row program that reads a result, through reshapes, and nobody else; 0: not so.
OpId scores_reader(const Scores *s, OpId first, ValueId v, OpId so_far) {
    for (Reader by = readers_of(&s->u, v); reader_next(&by);) {
        HloOp op = *by.op;
        if (s->u.region[by.id] != s->u.region[first] || by.id >= s->nops || s->taken[by.id])
            return 0;
        if (op.code == HLO_RESHAPE)
            so_far = scores_reader(s, first, op.results, so_far);
        else if (op.code == HLO_ROWS && (!so_far || so_far == by.id) && same_rows(s, first, by.id))
            so_far = by.id;
        else
            return 0;
        if (!so_far)
            return 0;
    }
    return so_far;
}

static void add_value(const Scores *s, Values *list, ValueId v) {
    if (!values_have(list, v))
        VEC_PUSH(s->c->scratch, list, v);
}

// What a number per row is made of: others that no few instructions make.
static void roots_of(const Scores *s, ValueId v, uint32_t *ops, Values *roots) {
    OpId def = s->h->values.at[v].def;
    const HloOp *op = def ? hlo_at(s->h, def) : NULL;
    if (op && op->code == HLO_CONSTANT)
        return;
    if (!op || op->nregions || is_full(s, v) || ++*ops > NUMBER_OPS) {
        add_value(s, roots, v);
        return;
    }
    for (uint32_t k = 0; k < op->noperands; k++)
        roots_of(s, hlo_operand(s->h, op, k), ops, roots);
}

// The number per row is R1's and read by R2 alone.
static OpId number_reader(const Scores *s, const Pair *p, uint32_t k) {
    const HloOp *op = hlo_at(s->h, p->first);
    ValueId inner = rows_returned(s->h, p->first, k);
    OpId reader = is_full(s, inner) || !h_is_op(s, inner) ? 0 : scores_reader(s, p->first, op->results + k, p->second);
    return reader && s->u.position[reader] > s->u.position[p->first] ? reader : 0;
}

// Several such numbers that follow from fewer (a sum's inverse, its square's, its product with a constant): those are stored in their place.
static void find_numbers(Scores *s, Pair *p) {
    uint32_t several = 0, ops = 0, nresults = hlo_at(s->h, p->first)->nresults;
    Values roots = {0};
    for (uint32_t k = 0; k < nresults && p->second; k++) {
        if (number_reader(s, p, k) != p->second)
            continue;
        several++, ops = 0;
        roots_of(s, rows_returned(s->h, p->first, k), &ops, &roots);
    }
    bool fewer = roots.n < several;
    for (uint32_t i = 0; i < roots.n; i++)
        fewer = fewer && h_is_op(s, roots.at[i]) && !is_full(s, roots.at[i]) && dtype_is_float(hlo_value_type(s->h, roots.at[i])->dtype);
    p->numbers = fewer ? roots : (Values){0};
}

// Numbers per row that R2 alone reads.
static void add_numbers(Scores *s, Pair *p) {
    HloOp op = op_of(s, p->first);
    if (hlo_int(&op, AK_DIMENSION, 0) < NUMBER_COLUMNS)
        return;
    find_numbers(s, p);
    for (uint32_t k = 0; k < op.nresults; k++) {
        uint32_t ops = 0;
        ValueId inner = rows_returned(s->h, p->first, k);
        OpId reader = number_reader(s, p, k);
        if (!reader || values_have(&p->numbers, inner) || !is_number_known(s, p, inner, true, &ops))
            continue;
        p->second = reader;
        p->again[k] = true;
    }
}

// Rows that one later program reads and that cost it no more to compute than to load.
static bool match_cheap(Scores *s, OpId first, Pair *p) {
    *p = (Pair){.first = first};
    HloOp op = op_of(s, first);
    if (op.nresults > 64)
        return false;
    for (uint32_t k = 0; k < op.nresults; k++) {
        ValueId inner = rows_returned(s->h, first, k);
        uint32_t ops = 0, bytes = 0;
        if (!is_full(s, inner) || !h_is_op(s, inner))
            continue;
        OpId reader = scores_reader(s, first, op.results + k, 0), before = p->second;
        if (!reader || (before && reader != before) || s->u.position[reader] <= s->u.position[first])
            continue;
        p->second = reader;
        p->again[k] = again_cost(s, p, inner, true, &ops, &bytes) && bytes <= dtype_bytes(hlo_value_type(s->h, inner)->dtype);
        p->second = p->again[k] ? reader : before;
    }
    return p->second != 0;
}

// --- pairs -------------------------------------------------------------------------------------------

// A number per row that follows from those R1 is given.
static bool is_number_given(const Scores *s, ValueId v, uint32_t *ops) {
    OpId def = s->h->values.at[v].def;
    const HloOp *op = def ? hlo_at(s->h, def) : NULL;
    if (!op || op->code == HLO_CONSTANT)
        return !is_full(s, v);
    if (is_full(s, v) || op->nregions || !dtype_is_float(hlo_value_type(s->h, v)->dtype) || ++*ops > NUMBER_OPS)
        return false;
    for (uint32_t k = 0; k < op->noperands; k++)
        if (!is_number_given(s, hlo_operand(s->h, op, k), ops))
            return false;
    return true;
}

// R1 finds out no number per row, as where it computes again itself: then R2 can do all of it.
static bool has_no_numbers(const Scores *s, OpId first) {
    const HloRegion *r = body_of(s, first);
    for (uint32_t i = 0; i + 1 < r->ops.n; i++)
        if (hlo_at(s->h, r->ops.at[i])->nregions)
            return false;
    const HloOp *op = hlo_at(s->h, first);
    for (uint32_t k = 0; k < op->nresults; k++) {
        uint32_t ops = 0;
        if (!is_full(s, rows_returned(s->h, first, k)) && !is_number_given(s, rows_returned(s->h, first, k), &ops))
            return false;
    }
    return true;
}

static bool match_pair(Scores *s, OpId first, Pair *p, bool whole) {
    *p = (Pair){.first = first, .whole = whole};
    HloOp op = op_of(s, first);
    if (op.nresults > 64 || !has_score(s, first))
        return false;
    for (uint32_t k = 0; k < op.nresults; k++)
        if (is_full(s, rows_returned(s->h, first, k)) && !sort_readers(s, p, op.results + k, k))
            return false;
    if (!p->second || s->u.position[p->second] <= s->u.position[first] || !may_move(s, p))
        return false;
    for (uint32_t k = 0; k < op.nresults && whole; k++) {
        if (scores_reader(s, first, op.results + k, p->second) != p->second && !is_full(s, rows_returned(s->h, first, k)))
            return false;
        p->again[k] |= !is_full(s, rows_returned(s->h, first, k));
    }
    for (uint32_t k = 0; k < op.nresults; k++)
        if (p->again[k] && !slice_fits(s, rows_returned(s->h, first, k), 0))
            return false;
    add_numbers(s, p);
    return true;
}

static bool match(Scores *s, OpId first, Pair *p) {
    return (has_no_numbers(s, first) && match_pair(s, first, p, true)) || match_pair(s, first, p, false);
}

// --- building ----------------------------------------------------------------------------------------

// R1's inner values that the slices read: arguments, and numbers per row that R1 keeps.
typedef struct Slice {
    Values args, kept; // arguments of R1's region; values one a row
    Values stored;     // rows that R1 stores in any case, or for R2
    bool cheap;        // … are read again rather than computed
    uint32_t *kept_at, *stored_at; // which result of the new R1 each one is
    OpList ops;        // in order of definition once sorted by R1's own order
    bool *in;          // per op of R1's region
} Slice;

static void slice_from(const Scores *s, const Pair *p, Slice *sl, const HloRegion *r, ValueId v, bool top) {
    OpId def = s->h->values.at[v].def;
    if (sl->cheap && !top && def && is_full(s, v) && (p->fewer ? values_have(&p->stores, v) : is_kept_result(s, p, v))) {
        add_value(s, &sl->stored, v);
        return;
    }
    if (!def) {
        add_value(s, &sl->args, v);
        return;
    }
    const HloOp *op = hlo_at(s->h, def);
    uint32_t ops = 0;
    bool made = top || (!is_kept_result(s, p, v) && (p->whole ? is_number_given(s, v, &ops) : is_number_known(s, p, v, true, &ops)));
    if (!is_full(s, v) && op->code != HLO_CONSTANT && !made) {
        add_value(s, &sl->kept, v);
        return;
    }
    for (uint32_t i = 0; i < r->ops.n; i++)
        if (r->ops.at[i] == def) {
            if (sl->in[i])
                return;
            sl->in[i] = true;
        }
    for (uint32_t k = 0; k < op->noperands; k++)
        slice_from(s, p, sl, r, hlo_operand(s->h, op, k), false);
}

// The product again, with the reshapes behind it; before R2.
static ValueId product_again(Scores *s, OpId first, uint32_t i, OpId second) {
    Hlo *h = s->h;
    OpList chain = {0};
    OpId dot = rows_score(s->h, &s->u, first, i, SCORE_NARROW);
    ValueId v = hlo_operand(h, hlo_at(h, first), i);
    for (; h->values.at[v].def != dot; v = hlo_operand(h, hlo_at(h, h->values.at[v].def), 0))
        VEC_PUSH(s->c->scratch, &chain, h->values.at[v].def);
    OpId made = value_map_copy(h, s->c->scratch, &(ValueMap){0}, hlo_at(h, dot));
    VEC_PUSH(s->c->scratch, &s->before[second], made);
    for (uint32_t k = chain.n; k-- > 0;) {
        HloOp move = *hlo_at(h, chain.at[k]);
        ValueId from = hlo_at(h, made)->results;
        made = hlo_op(h, move.code, move.loc, 1, &from, 1, &h->values.at[move.results].type);
        VEC_PUSH(s->c->scratch, &s->before[second], made);
    }
    return hlo_at(h, made)->results;
}

// R1 without the rows that only late readers had, with the numbers per row they need instead. New results: kept, in order.
static OpId remake_first(Scores *s, const Pair *p, Slice *sl) {
    Hlo *h = s->h;
    RowsMake m = {.c = s->c, .h = s->h};
    RowsResults r = {0};
    int64_t shape[2];
    rows_shape(h, hlo_at(h, p->first), &shape[0], &shape[1]);
    rows_make_results(&m, &r, p->first);
    for (uint32_t k = 0; k < sl->kept.n + sl->stored.n; k++) {
        bool number = k < sl->kept.n;
        ValueId v = number ? sl->kept.at[k] : sl->stored.at[k - sl->kept.n];
        uint32_t there = 0;
        while (there < r.inner.n && r.inner.at[there] != v)
            there++;
        *(number ? &sl->kept_at[k] : &sl->stored_at[k - sl->kept.n]) = there;
        if (there == r.inner.n)
            rows_make_result(&m, &r, v, 0, hlo_type_tensor(h, hlo_value_type(h, v)->dtype, number ? 1 : 2, shape));
    }
    return rows_make_again(&s->w, p->first, &r);
}

static bool is_of_first(const Scores *s, const Pair *p, ValueId v, uint32_t *result) { // v is R1's, through reshapes
    const Hlo *h = s->h;
    v = before_reshapes(h, v);
    const HloOp *op = hlo_at(h, p->first);
    *result = v - op->results;
    return v >= op->results && v < op->results + op->nresults;
}

static bool reads_again(const Scores *s, const Pair *p, ValueId v, uint32_t *result) {
    return is_of_first(s, p, v, result) && p->again[*result];
}

static void remake_second(Scores *s, const Pair *p, const Slice *sl, OpId first) {
    Hlo *h = s->h;
    HloOp op = op_of(s, p->second), op1 = op_of(s, p->first);
    HloRegion body = *body_of(s, p->second), body1 = *body_of(s, p->first);
    RowsMake m = {.c = s->c, .h = s->h, .once = sl->cheap};
    uint32_t result;
    const int64_t *kinds = rows_kinds(&op), *kinds1 = rows_kinds(&op1);
    uint32_t *at = ARENA_NEWN(s->c->scratch, uint32_t, op.noperands + sl->args.n + sl->kept.n + sl->stored.n + 1), n = 0;
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId v = hlo_operand(h, &op, i);
        bool own = kinds[i] == FUSED_SAME || kinds[i] == FUSED_ROWS, again = own && reads_again(s, p, v, &result);
        bool shared = kinds[i] == FUSED_SAME || (own && sl->cheap); // slices may read it as well
        if (shared && is_of_first(s, p, v, &result))
            v = hlo_at(h, first)->results + result;
        at[n++] = again ? UINT32_MAX : rows_make_operand(&m, v, kinds[i]);
    }
    for (uint32_t k = 0; k < sl->args.n; k++) {
        uint32_t i = sl->args.at[k] - body1.args;
        ValueId v = !sl->cheap && rows_score(s->h, &s->u, p->first, i, SCORE_NARROW) ? product_again(s, p->first, i, p->second) : hlo_operand(h, &op1, i);
        at[n++] = rows_make_operand(&m, v, kinds1[i]);
    }
    for (uint32_t k = 0; k < sl->kept.n; k++)
        at[n++] = rows_make_operand(&m, hlo_at(h, first)->results + sl->kept_at[k], FUSED_ROWS);
    for (uint32_t k = 0; k < sl->stored.n; k++)
        at[n++] = rows_make_operand(&m, hlo_at(h, first)->results + sl->stored_at[k], FUSED_SAME);
    RowsResults r = {0};
    rows_make_results(&m, &r, p->second);
    for (uint32_t k = 0; k < p->nlate; k++) {
        ValueId read = hlo_operand(h, hlo_at(h, p->late[k].op), p->late[k].operand);
        rows_make_result(&m, &r, rows_returned(h, p->first, p->late[k].result), 0, h->values.at[read].type);
    }
    rows_make_begin(&m, hlo_at(h, p->second)->loc, hlo_int(hlo_at(h, p->second), AK_DIMENSION, 0), r.types.n, r.types.at);
    OpId made = m.op;
    ValueId args = h->regions.at[m.region].args;
    for (uint32_t k = 0; k < sl->args.n; k++)
        rows_make_set(&m, sl->args.at[k], args + at[op.noperands + k]);
    for (uint32_t k = 0; k < sl->kept.n; k++)
        rows_make_set(&m, sl->kept.at[k], args + at[op.noperands + sl->args.n + k]);
    for (uint32_t k = 0; k < sl->stored.n; k++)
        rows_make_set(&m, sl->stored.at[k], args + at[op.noperands + sl->args.n + sl->kept.n + k]);
    for (uint32_t i = 0; i + 1 < body1.ops.n; i++)
        if (sl->in[i])
            rows_make_copy(&m, body1.ops.at[i]);
    for (uint32_t i = 0; i < op.noperands; i++) {
        if (at[i] == UINT32_MAX)
            reads_again(s, p, hlo_operand(h, &op, i), &result);
        rows_make_set(&m, body.args + i, at[i] == UINT32_MAX ? rows_make_get(&m, rows_returned(s->h, p->first, result)) : args + at[i]);
    }
    for (uint32_t i = 0; i + 1 < body.ops.n; i++)
        rows_make_copy(&m, body.ops.at[i]);
    rows_make_end(&m, &r, &s->w);
    for (uint32_t k = 0; k < p->nlate; k++) {
        HloOp *dot = hlo_at(h, p->late[k].op);
        h->operands.at[dot->operands + p->late[k].operand] = hlo_at(h, made)->results + op.nresults + k;
        VEC_PUSH(s->c->scratch, &s->after[p->second], p->late[k].op);
        s->dropped[p->late[k].op] = true;
        s->taken[p->late[k].op] = true;
    }
    for (uint32_t k = 0; k < p->nfollow; k++) {
        VEC_PUSH(s->c->scratch, &s->after[p->second], p->follow[k]);
        s->dropped[p->follow[k]] = s->taken[p->follow[k]] = true;
    }
    s->instead[p->second] = made;
}

static void rewrite(Scores *s, const Pair *p, bool cheap) {
    HloRegion body = *body_of(s, p->first);
    Slice sl = {.cheap = cheap, .in = ARENA_NEWN(s->c->scratch, bool, body.ops.n + 1)};
    for (uint32_t k = 0; k < hlo_at(s->h, p->first)->nresults; k++)
        if (p->again[k])
            slice_from(s, p, &sl, &body, rows_returned(s->h, p->first, k), true);
    sl.kept_at = ARENA_NEWN(s->c->scratch, uint32_t, sl.kept.n + 1);
    sl.stored_at = ARENA_NEWN(s->c->scratch, uint32_t, sl.stored.n + 1);
    OpId first = remake_first(s, p, &sl);
    remake_second(s, p, &sl, first);
    s->instead[p->first] = first;
    s->taken[p->first] = s->taken[p->second] = true;
}

// --- the walk ----------------------------------------------------------------------------------------

static void scores_region(Scores *s, RegionId r) {
    Hlo *h = s->h;
    OpList ops = {0}, out = {0};
    walk_list(s->c->scratch, h, r, &ops);
    for (uint32_t i = 0; i < ops.n; i++) {
        HloOp op = op_of(s, ops.at[i]);
        Pair p;
        if (op.code == HLO_ROWS && !s->taken[ops.at[i]]) {
            if (match(s, ops.at[i], &p))
                rewrite(s, &p, false);
            else if ((!s->again || scores_is_large(s, ops.at[i])) && (match_cheap(s, ops.at[i], &p) || scores_fewer(s, ops.at[i], &p)))
                rewrite(s, &p, true);
        }
        for (uint32_t k = 0; k < op.nregions && hlo_row(&op)->cls == HC_CTRL; k++)
            scores_region(s, h->op_regions.at[op.regions + k]);
    }
    for (uint32_t i = 0; i < ops.n; i++) {
        OpId id = ops.at[i];
        if (s->dropped[id])
            continue;
        for (uint32_t k = 0; k < s->before[id].n; k++)
            VEC_PUSH(s->c->scratch, &out, s->before[id].at[k]);
        VEC_PUSH(s->c->scratch, &out, s->instead[id] ? s->instead[id] : id);
        for (uint32_t k = 0; k < s->after[id].n; k++)
            VEC_PUSH(s->c->scratch, &out, s->after[id].at[k]);
    }
    walk_set_ops(h, r, &out);
}

// Results of row programs that nobody reads.
static void drop_results(void *pass, RegionId r) {
    Scores *s = pass;
    Hlo *h = s->h;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        HloOp op = *hlo_at(h, id);
        if (op.code != HLO_ROWS || id < s->nops)
            continue;
        RowsResults left = {0};
        RowsMake m = {.c = s->c, .h = h};
        for (uint32_t k = 0; k < op.nresults; k++)
            if (users_reads(&s->u, op.results + k))
                rows_make_result(&m, &left, rows_returned(h, id, k), op.results + k, h->values.at[op.results + k].type);
        if (left.inner.n && left.inner.n < op.nresults)
            h->regions.at[r].ops.at[i] = rows_make_again(&s->w, id, &left);
    }
}

// False: nothing was there to do.
static bool scores_once(Compile *c, bool again) {
    Hlo *h = c->hlo;
    Scores s = {.c = c, .h = h, .nops = h->ops.n, .again = again};
    RegionId body = hlo_main(h)->body;
    walk_init(&s.w, c);
    users_make(&s.u, c->hlo, c->scratch, body);
    s.node = ARENA_NEWN(c->scratch, uint32_t, h->values.n + 1);
    s.live = ARENA_NEWN(c->scratch, uint32_t, h->values.n + 1);
    s.taken = ARENA_NEWN(c->scratch, bool, h->ops.n + 1);
    s.dropped = ARENA_NEWN(c->scratch, bool, h->ops.n + 1);
    s.instead = ARENA_NEWN(c->scratch, OpId, h->ops.n + 1);
    s.before = ARENA_NEWN(c->scratch, OpList, h->ops.n + 1);
    s.after = ARENA_NEWN(c->scratch, OpList, h->ops.n + 1);
    scores_region(&s, body);
    if (h->ops.n == s.nops)
        return false;
    walk_region(&s.w, body);
    pass_dce(c);
    users_make(&s.u, c->hlo, c->scratch, body);
    walk_regions(h, body, drop_results, &s);
    walk_region(&s.w, body);
    pass_dce(c);
    return true;
}

void pass_scores(Compile *c) {
    for (int i = 0; i < ROUNDS && scores_once(c, i > 0); i++) // a program goes with one other at a time
        ;
}
