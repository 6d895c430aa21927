// SPDX-License-Identifier: Apache-2.0
// pieces_soft.c — a softmax and the product behind it, each piece once.
//
//   piece c    m = max x, e = exp(x - m), l = sum e, o = e v            of its own columns
//   together   M = max m, a = exp(m - M);  (sum a o) / (sum a l)         numbers a row bring the pieces to one scale
//
// m is held above what is masked (tile/mask.c): a row of which everything is masked in a piece has e and a of zero there.
#include <assert.h>
#include <string.h>

#include "pass/pieces.h"
#include "pass/rows.h"

#define TOGETHER 4 // pieces that one program brings together
#define LOWEST (-3.0e38f) // where nothing is masked

typedef struct Soft {
    OpId max, exp, sum; // in the region
    Behind *b;
    int64_t d; // columns of the product's result
} Soft;

static OpId def(const Hlo *h, ValueId v) { return h->values.at[v].def; }

static bool is_code(const Hlo *h, ValueId v, HloOpcode code) { return def(h, v) && hlo_at(h, def(h, v))->code == code; }

static ValueId operand(const Hlo *h, ValueId v, uint32_t i) { return hlo_operand(h, hlo_at(h, def(h, v)), i); }

static ValueId before_converts(const Hlo *h, ValueId v) {
    while (is_code(h, v, HLO_CONVERT))
        v = operand(h, v, 0);
    return v;
}

// A number a row that is the maximum, or the larger of it and a constant.
static bool is_maximum(const Hlo *h, ValueId v, OpId max) {
    if (is_code(h, v, HLO_MAXIMUM))
        return is_maximum(h, operand(h, v, 0), max) ? is_code(h, operand(h, v, 1), HLO_CONSTANT)
                                                   : is_code(h, operand(h, v, 0), HLO_CONSTANT) && is_maximum(h, operand(h, v, 1), max);
    return def(h, v) == max;
}

static uint32_t readers(const Cut *k, ValueId v) { // ops of the region
    uint32_t n = 0;
    for (uint32_t i = 0; i + 1 < k->body->ops.n; i++) {
        const HloOp *op = hlo_at(k->s->h, k->body->ops.at[i]);
        for (uint32_t j = 0; j < op->noperands; j++)
            n += hlo_operand(k->s->h, op, j) == v;
    }
    return n;
}

// exp(x - max) / sum, as the type of the result says: nothing else uses rows of it.
static bool is_softmax(const Cut *k, ValueId result, Soft *f) {
    const Hlo *h = k->s->h;
    ValueId v = before_converts(h, result);
    if (!is_code(h, v, HLO_DIVIDE) || !is_code(h, operand(h, v, 1), HLO_BROADCAST_IN_DIM))
        return false;
    ValueId sum = operand(h, operand(h, v, 1), 0), e = before_converts(h, operand(h, v, 0));
    if (!is_code(h, sum, HLO_REDUCE) || !is_code(h, e, HLO_EXPONENTIAL) || hlo_value_type(h, e)->dtype != DT_F32)
        return false;
    f->sum = def(h, sum), f->exp = def(h, e);
    ValueId x = operand(h, e, 0);
    if (f->sum == f->max || reduce_body(h, hlo_at(h, f->sum)) != HLO_ADD || before_converts(h, operand(h, sum, 0)) != e ||
        !is_code(h, x, HLO_SUBTRACT) || !is_code(h, operand(h, x, 1), HLO_BROADCAST_IN_DIM))
        return false;
    ValueId m = operand(h, x, 1);
    return is_maximum(h, operand(h, m, 0), f->max) && operand(h, x, 0) == operand(h, hlo_at(h, f->max)->results, 0) &&
           readers(k, m) == 1 && readers(k, e) <= 3;
}

static bool is_soft(Cut *k, Soft *f) {
    const Hlo *h = k->s->h;
    uint32_t full = 0, reductions = 0;
    *f = (Soft){.b = &k->behind[0]};
    for (uint32_t i = 0; i + 1 < k->body->ops.n; i++) {
        const HloOp *op = hlo_at(h, k->body->ops.at[i]);
        if (op->code == HLO_REDUCE && reduce_body(h, op) == HLO_MAXIMUM)
            f->max = k->body->ops.at[i];
        reductions += op->code == HLO_REDUCE;
    }
    for (uint32_t r = 0; r < k->op.nresults; r++)
        full += hlo_value_type(h, rows_returned(h, k->rows, r))->rank == 1;
    if (!f->max || reductions != 2 || full != 1 || k->nbehind != 1 || f->b->over_rows ||
        !is_softmax(k, rows_returned(h, k->rows, f->b->result), f))
        return false;
    // the product's rows are the program's, in order
    const HloOp *dot = hlo_at(h, f->b->op);
    const HloType *own = hlo_value_type(h, hlo_operand(h, dot, f->b->operand));
    uint32_t nb;
    const int64_t *batch = hlo_ints(dot, f->b->operand ? AK_RHS_BATCHING_DIMENSIONS : AK_LHS_BATCHING_DIMENSIONS, &nb);
    for (uint32_t i = 0; i < nb; i++)
        if (batch[i] != i)
            return false;
    f->d = hlo_value_type(h, dot->results)->elems / k->nrows;
    return own->rank == (int)nb + 2;
}

// value times other, with the rows first: [batch, rows, columns of other], in fp32.
static ValueId product(Cut *k, const Soft *f, ValueId value, ValueId other) {
    Hlo *h = k->s->h;
    static const HloAttrKey sides[2][2] = {{AK_LHS_BATCHING_DIMENSIONS, AK_LHS_CONTRACTING_DIMENSIONS},
                                           {AK_RHS_BATCHING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS}};
    HloOp dot = *hlo_at(h, f->b->op);
    const HloType *t = hlo_value_type(h, value);
    int64_t dims[OTRN_MAX_RANK];
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[t->rank - 1] = f->d;
    TypeId type = hlo_type_tensor(h, DT_F32, t->rank, dims);
    OpId made = hlo_op(h, HLO_DOT_GENERAL, dot.loc, 2, (ValueId[]){value, other}, 1, &type);
    hlo_at(h, made)->attrs = arena_dup(h->arena, dot.attrs, hlo_row(&dot)->nattrs * sizeof *dot.attrs);
    for (int side = 0; side < 2 && f->b->operand; side++)
        for (int key = 0; key < 2; key++)
            *hlo_attr_slot(h, made, sides[side][key]) = *hlo_attr(&dot, sides[!side][key]);
    return walk_push(&k->s->w, made);
}

static bool is_masked(const Cut *k) {
    uint32_t n;
    const int64_t *kinds = hlo_ints(&k->op, AK_BROADCAST_DIMENSIONS, &n);
    for (uint32_t i = 0; i < n; i++)
        if (kinds[i] != FUSED_ROWS && hlo_value_type(k->s->h, hlo_operand(k->s->h, &k->op, i))->dtype == DT_I1)
            return true;
    for (uint32_t i = 0; i < k->body->ops.n; i++)
        if (hlo_at(k->s->h, k->body->ops.at[i])->code == HLO_COMPARE)
            return true;
    return false;
}

typedef struct Term {
    ValueId o, m, l;
} Term;

static Term piece(Cut *k, const Soft *f, uint32_t c) {
    Pieces *s = k->s;
    Hlo *h = s->h;
    Arena *a = s->c->scratch;
    Part p = part_new(k);
    ValueId max = hlo_at(h, f->max)->results, e = hlo_at(h, f->exp)->results, sum = hlo_at(h, f->sum)->results;
    const HloOp *dot = hlo_at(h, f->b->op);
    HloType own = *hlo_value_type(h, hlo_operand(h, dot, f->b->operand));
    int64_t len = piece_len(k, c), dims[OTRN_MAX_RANK];
    memcpy(dims, own.dims, (size_t)own.rank * sizeof *dims);
    dims[own.rank - 1] = len;
    TypeId types[3] = {hlo_type_tensor(h, own.dtype, own.rank, dims), hlo_type_tensor(h, DT_F32, 1, &k->nrows),
                       hlo_type_tensor(h, DT_F32, 1, &k->nrows)};
    ValueId other = piece_other(k, f->b, c);
    part_take(k, &p, sum);
    RowsMake m = {.c = s->c, .h = h};
    Values yield = {0}, none = {0};
    piece_begin(k, &m, &p, c, &none, 3, types, NULL);
    for (uint32_t i = 0; i + 1 < k->body->ops.n; i++) {
        if (!p.ops[i])
            continue;
        rows_make_copy(&m, k->body->ops.at[i]);
        if (k->body->ops.at[i] != f->max)
            continue;
        float lowest = is_masked(k) ? (float)MASK_LOW : LOWEST;
        TypeId scalar = h->values.at[max].type;
        OpId low = hlo_op_splat(h, k->op.loc, scalar, &lowest);
        hlo_region_push(h, m.region, low);
        OpId held = hlo_op(h, HLO_MAXIMUM, k->op.loc, 2, (ValueId[]){rows_make_get(&m, max), hlo_at(h, low)->results}, 1, &scalar);
        hlo_region_push(h, m.region, held);
        rows_make_set(&m, max, hlo_at(h, held)->results);
    }
    ValueId weights = rows_make_get(&m, e);
    TypeId inner = hlo_type_tensor(h, own.dtype, 1, &len);
    if (h->values.at[weights].type != inner) {
        OpId convert = hlo_op(h, HLO_CONVERT, k->op.loc, 1, &weights, 1, &inner);
        hlo_region_push(h, m.region, convert);
        weights = hlo_at(h, convert)->results;
    }
    VEC_PUSH(a, &yield, weights);
    VEC_PUSH(a, &yield, rows_make_get(&m, max));
    VEC_PUSH(a, &yield, rows_make_get(&m, sum));
    rows_make_end(&m, &yield);
    ValueId made = walk_push(&s->w, m.op);
    return (Term){product(k, f, made, other), made + 1, made + 2};
}

// --- together ----------------------------------------------------------------------------------------

typedef struct Body { // of a program being written
    Hlo *h;
    RowsMake *m;
    LocId loc;
} Body;

static ValueId add_op(Body *b, HloOpcode code, ValueId x, ValueId y) {
    TypeId type = b->h->values.at[x].type;
    OpId id = hlo_op(b->h, code, b->loc, y ? 2 : 1, (ValueId[]){x, y}, 1, &type);
    hlo_region_push(b->h, b->m->region, id);
    return hlo_at(b->h, id)->results;
}

static ValueId along(Body *b, ValueId x) { // a number a row, for all columns
    TypeId type = hlo_type_tensor(b->h, DT_F32, 1, &b->m->columns);
    OpId id = hlo_op(b->h, HLO_BROADCAST_IN_DIM, b->loc, 1, &x, 1, &type);
    hlo_set_ints(b->h, id, AK_BROADCAST_DIMENSIONS, NULL, 0);
    hlo_region_push(b->h, b->m->region, id);
    return hlo_at(b->h, id)->results;
}

static Term scaled(Body *b, Term t, ValueId m) { // as if m had been its maximum
    ValueId a = add_op(b, HLO_EXPONENTIAL, add_op(b, HLO_SUBTRACT, t.m, m), 0);
    return (Term){add_op(b, HLO_MULTIPLY, t.o, along(b, a)), m, add_op(b, HLO_MULTIPLY, t.l, a)};
}

// Results: when `last` the product in its type, and the row values that the program gave; else a term again.
static ValueId together(Cut *k, const Soft *f, const Term *terms, uint32_t n, bool last) {
    Pieces *s = k->s;
    Hlo *h = s->h;
    Arena *a = s->c->scratch;
    RowsMake m = {.c = s->c, .h = h};
    Body b = {h, &m, k->op.loc};
    Term in[TOGETHER + 1], all;
    for (uint32_t i = 0; i < n; i++) {
        rows_make_operand(&m, terms[i].o, FUSED_SAME);
        rows_make_operand(&m, terms[i].m, FUSED_ROWS);
        rows_make_operand(&m, terms[i].l, FUSED_ROWS);
    }
    HloType t = *hlo_value_type(h, terms[0].o);
    int dtype = last ? hlo_value_type(h, hlo_at(h, f->b->op)->results)->dtype : DT_F32;
    VEC(TypeId) types = {0};
    VEC_PUSH(a, &types, hlo_type_tensor(h, dtype, t.rank, t.dims));
    Part p = part_new(k);
    for (uint32_t r = 0; r < k->op.nresults && last; r++) {
        if (r == f->b->result)
            continue;
        part_take(k, &p, rows_returned(h, k->rows, r));
        VEC_PUSH(a, &types, hlo_type_tensor(h, hlo_value_type(h, rows_returned(h, k->rows, r))->dtype, 1, &k->nrows));
    }
    for (uint32_t i = 0; i < 2 && !last; i++)
        VEC_PUSH(a, &types, hlo_type_tensor(h, DT_F32, 1, &k->nrows));
    rows_make_begin(&m, k->op.loc, f->d, types.n, types.at);
    for (uint32_t i = 0; i < n; i++)
        in[i] = (Term){rows_make_arg(&m, 3 * i), rows_make_arg(&m, 3 * i + 1), rows_make_arg(&m, 3 * i + 2)};
    ValueId max = in[0].m;
    for (uint32_t i = 1; i < n; i++)
        max = add_op(&b, HLO_MAXIMUM, max, in[i].m);
    all = scaled(&b, in[0], max);
    for (uint32_t i = 1; i < n; i++) {
        Term one = scaled(&b, in[i], max);
        all.o = add_op(&b, HLO_ADD, all.o, one.o), all.l = add_op(&b, HLO_ADD, all.l, one.l);
    }
    Values yield = {0};
    if (last) {
        ValueId o = add_op(&b, HLO_DIVIDE, all.o, along(&b, all.l));
        TypeId inner = hlo_type_tensor(h, dtype, 1, &f->d);
        if (dtype != DT_F32) {
            OpId convert = hlo_op(h, HLO_CONVERT, k->op.loc, 1, &o, 1, &inner);
            hlo_region_push(h, m.region, convert);
            o = hlo_at(h, convert)->results;
        }
        VEC_PUSH(a, &yield, o);
        rows_make_set(&m, hlo_at(h, f->max)->results, max);
        rows_make_set(&m, hlo_at(h, f->sum)->results, all.l);
        for (uint32_t i = 0; i + 1 < k->body->ops.n; i++) // of numbers a row
            if (p.ops[i] && !rows_make_get(&m, hlo_at(h, k->body->ops.at[i])->results))
                rows_make_copy(&m, k->body->ops.at[i]);
        for (uint32_t r = 0; r < k->op.nresults; r++)
            if (r != f->b->result)
                VEC_PUSH(a, &yield, rows_make_get(&m, rows_returned(h, k->rows, r)));
    } else {
        VEC_PUSH(a, &yield, all.o);
        VEC_PUSH(a, &yield, max);
        VEC_PUSH(a, &yield, all.l);
    }
    rows_make_end(&m, &yield);
    return walk_push(&s->w, m.op);
}

// The product's result from [batch, rows, columns]: turned when the program's value was its second operand, as one
// transpose with the one that may follow.
static void hand_over(Cut *k, const Soft *f, ValueId o) {
    Pieces *s = k->s;
    Hlo *h = s->h;
    HloOp dot = *hlo_at(h, f->b->op);
    ValueId to = dot.results;
    HloType t = *hlo_value_type(h, o), out = *hlo_value_type(h, to);
    int64_t perm[OTRN_MAX_RANK], dims[OTRN_MAX_RANK];
    if (!f->b->operand) {
        walk_replace(&s->w, to, piece_reshaped(s, o, h->values.at[to].type, dot.loc));
        return;
    }
    // [batch, rows, c…] to [batch, c…, rows]
    int nb = t.rank - 2, nc = out.rank - nb - 1;
    memcpy(dims, t.dims, (size_t)(nb + 1) * sizeof *dims);
    memcpy(dims + nb + 1, out.dims + nb, (size_t)nc * sizeof *dims);
    o = piece_reshaped(s, o, hlo_type_tensor(h, t.dtype, out.rank, dims), dot.loc);
    for (int i = 0; i < out.rank; i++)
        perm[i] = i < nb ? i : i < out.rank - 1 ? i + 1 : nb;
    uint32_t n;
    const OpId *users = users_of(&s->u, to, &n);
    if (n == 1 && hlo_at(h, users[0])->code == HLO_TRANSPOSE) {
        const HloOp *next = hlo_at(h, users[0]);
        const int64_t *then = hlo_ints(next, AK_PERMUTATION, &n);
        for (int i = 0; i < out.rank; i++)
            dims[i] = perm[then[i]];
        memcpy(perm, dims, sizeof perm);
        to = next->results;
    }
    OpId move = hlo_op(h, HLO_TRANSPOSE, dot.loc, 1, &o, 1, &h->values.at[to].type);
    hlo_set_ints(h, move, AK_PERMUTATION, perm, (uint32_t)out.rank);
    walk_replace(&s->w, to, walk_push(&s->w, move));
}

bool soft_fits(Cut *k) {
    Soft f;
    return is_soft(k, &f);
}

void soft_cut(Cut *k) {
    Soft f;
    bool fits = is_soft(k, &f);
    assert(fits);
    (void)fits;
    uint32_t n = npieces(k), have = 0, row = 1;
    Term terms[TOGETHER + 1];
    ValueId all = 0;
    for (uint32_t c = 0; c < n; c++) {
        terms[have++] = piece(k, &f, c);
        if (have < TOGETHER && c + 1 < n)
            continue;
        all = together(k, &f, terms, have, c + 1 == n);
        terms[0] = (Term){all, all + 1, all + 2};
        have = 1;
    }
    for (uint32_t r = 0; r < k->op.nresults; r++)
        if (r != f.b->result)
            value_map_set(k->s->c->scratch, &k->total, rows_returned(k->s->h, k->rows, r), all + row++);
    hand_over(k, &f, all);
}
