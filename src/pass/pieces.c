// SPDX-License-Identifier: Apache-2.0
// pieces.c — attention over rows too long for PSUM, in pieces of columns.
// needs: row programs
// gives: a row program over products with few contracted elements, whose rows only products read, works on as many columns
//        as PSUM has room for at a time; its scores and weights need not reach HBM at any length
// stale: nothing
//
//   level 1   max ◄── max(piece 0) ◄── max(piece 1) …         numbers a row go from piece to piece,
//   level 2   sum ◄── sum(exp(piece 0 - max)) ◄── …            a level for each reduction that needs another's result
//   results   exp(piece - max) / sum ──product──► a term each of what contracts columns, a part each of what keeps them
//
// Each piece computes its scores again from the product's operands: the tensor engine has time for that, HBM has none for
// the scores. tile/block.c then finds each program with its products around it. Sums over pieces are added in fp32, in order.
#include <string.h>

#include "hlo/dot.h"
#include "pass/pieces.h"
#include "pass/rows.h"

#define PARTS 128
#define BANK_COLS 512
#define BANKS 8
#define WHOLE_MAX 2048 // columns of rows that stay whole when PSUM has room
#define PIECES_MAX 64
#define ROWS_MIN 1024 // of a batch: fewer are not worth taking the other side apart
#define TERMS_MAX 12 // that one program adds up
#define RESULTS_MAX 16

static ValueId push(Pieces *s, OpId id) { return walk_push(&s->w, id); }

// --- the pattern -------------------------------------------------------------------------------------

static bool is_full(const Hlo *h, ValueId inner) { return hlo_value_type(h, inner)->rank == 1; }

// The last dimension is the columns; the product contracts it, or keeps it.
static bool behind_fits(const Cut *k, Behind *b) {
    const Hlo *h = k->s->h;
    const HloOp *dot = hlo_at(h, b->op);
    const HloType *t = hlo_value_type(h, hlo_operand(h, dot, b->operand));
    uint32_t nc, nb;
    const int64_t *c = hlo_ints(dot, b->operand ? AK_RHS_CONTRACTING_DIMENSIONS : AK_LHS_CONTRACTING_DIMENSIONS, &nc);
    const int64_t *batch = hlo_ints(dot, b->operand ? AK_RHS_BATCHING_DIMENSIONS : AK_LHS_BATCHING_DIMENSIONS, &nb);
    if (t->rank < 2 || t->dims[t->rank - 1] != k->n || nc != 1)
        return false;
    for (uint32_t i = 0; i < nb; i++)
        if (batch[i] == t->rank - 1)
            return false;
    b->over_rows = c[0] != t->rank - 1;
    return hlo_operand(h, dot, 0) != hlo_operand(h, dot, 1) &&
           users_there_before(&k->s->u, hlo_operand(h, dot, !b->operand), k->rows);
}

static bool collect_behind(Cut *k, ValueId v, uint32_t result) {
    const Pieces *s = k->s;
    uint32_t n;
    const OpId *users = users_of(&s->u, v, &n);
    for (uint32_t i = 0; i < n; i++) {
        const HloOp *op = hlo_at(s->h, users[i]);
        if (s->u.region[users[i]] != s->u.region[k->rows])
            return false;
        if (op->code == HLO_RESHAPE) {
            if (!collect_behind(k, op->results, result))
                return false;
            continue;
        }
        if (!dot_on_tensor_engine(s->h, op) || k->nbehind == BEHIND_MAX)
            return false;
        Behind *b = &k->behind[k->nbehind++];
        *b = (Behind){.op = users[i], .result = result, .operand = hlo_operand(s->h, op, 1) == v};
        if (!behind_fits(k, b))
            return false;
    }
    return n > 0;
}

// The side of a product before the program that brings the columns: one free dimension, the last of the result.
static bool score_fits(const Cut *k, OpId score) {
    const Hlo *h = k->s->h;
    const HloOp *dot = hlo_at(h, score);
    const HloType *rhs = hlo_value_type(h, hlo_operand(h, dot, 1)), *out = hlo_value_type(h, dot->results);
    int64_t dims[OTRN_MAX_RANK];
    return dot_free_dims(rhs, dot, true, dims) == 1 && rhs->dims[dims[0]] == k->n && out->dims[out->rank - 1] == k->n &&
           out->rank >= 2 && out->dims[out->rank - 2] >= ROWS_MIN;
}

static uint32_t level_of(const Cut *k, ValueId v) {
    ValueId l = value_map_get(&k->level, v);
    return l ? l - 1 : 0;
}

// Each op's level, and whether all of them can be cut.
static bool find_levels(Cut *k) {
    const Hlo *h = k->s->h;
    for (uint32_t i = 0; i + 1 < k->body->ops.n; i++) {
        const HloOp *op = hlo_at(h, k->body->ops.at[i]);
        uint32_t level = 0;
        for (uint32_t j = 0; j < op->noperands; j++)
            if (level_of(k, hlo_operand(h, op, j)) > level)
                level = level_of(k, hlo_operand(h, op, j));
        if (op->nresults != 1 || op->noperands > 4)
            return false;
        if (op->code == HLO_REDUCE) {
            uint16_t code = reduce_body(h, op);
            if (code != HLO_ADD && code != HLO_MAXIMUM && code != HLO_MINIMUM)
                return false;
            level++;
            k->levels = level > k->levels ? level : k->levels;
        } else if (op->nregions) {
            return false;
        }
        value_map_set(k->s->c->scratch, &k->level, op->results, level + 1);
    }
    return true;
}

// PSUM banks that the program, its products and turned values take with rows of n columns (tile/block.c).
static int64_t banks(const Cut *k, int64_t n) {
    const Hlo *h = k->s->h;
    int64_t each = (n + BANK_COLS - 1) / BANK_COLS, all = k->scores * each;
    bool turns = false;
    for (uint32_t i = 0; i < k->nbehind; i++) {
        const HloOp *dot = hlo_at(h, k->behind[i].op);
        const HloType *t = hlo_value_type(h, hlo_operand(h, dot, !k->behind[i].operand));
        int64_t dims[OTRN_MAX_RANK], d = 1, tiles = (n + PARTS - 1) / PARTS;
        uint32_t nf = dot_free_dims(t, dot, !k->behind[i].operand, dims);
        for (uint32_t j = 0; j < nf; j++)
            d *= t->dims[dims[j]];
        int64_t per = d < BANK_COLS ? BANK_COLS / d : 1;
        turns = turns || !k->behind[i].over_rows;
        all += !k->behind[i].over_rows ? 1 : k->behind[i].operand ? each * ((d + PARTS - 1) / PARTS) : (tiles + per - 1) / per;
    }
    return all + turns;
}

static bool choose_width(Cut *k) {
    if (k->n <= WHOLE_MAX && banks(k, k->n) <= BANKS)
        return false;
    for (k->width = 1024; k->width >= 256; k->width /= 2)
        if (banks(k, k->width) <= BANKS)
            return k->n >= 2 * k->width && npieces(k) <= PIECES_MAX;
    return false;
}

static bool match(Pieces *s, OpId rows, Cut *k) {
    const Hlo *h = s->h;
    *k = (Cut){.s = s, .rows = rows, .op = *hlo_at(h, rows)};
    char why[128];
    k->body = hlo_op_region(h, &k->op, 0);
    if (!hlo_rows_fit(h, &k->op, &k->nrows, &k->n, why) || k->n < 2 * BANK_COLS || k->op.nresults > RESULTS_MAX)
        return false;
    bool wide = false;
    for (uint32_t i = 0; i < k->op.noperands; i++) {
        OpId score = rows_score(h, &s->u, rows, i, SCORE_WIDE);
        if (score && !score_fits(k, score))
            return false;
        k->scores += score != 0;
        wide = wide || (score && !rows_score(h, &s->u, rows, i, SCORE_NARROW));
    }
    bool rows_out = false;
    for (uint32_t r = 0; r < k->op.nresults && k->scores; r++) {
        bool full = is_full(h, rows_returned(h, rows, r));
        rows_out = rows_out || full;
        if (full && !collect_behind(k, k->op.results + r, r))
            return false;
    }
    return k->scores && rows_out && choose_width(k) && find_levels(k) && (!wide || soft_fits(k));
}

// --- pieces of operands ------------------------------------------------------------------------------

static ValueId slice(Pieces *s, ValueId v, int64_t dim, int64_t from, int64_t len, LocId loc) {
    Hlo *h = s->h;
    HloType t = *hlo_value_type(h, v);
    int64_t begin[OTRN_MAX_RANK] = {0}, end[OTRN_MAX_RANK], ones[OTRN_MAX_RANK], dims[OTRN_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        end[i] = dims[i] = t.dims[i], ones[i] = 1;
    begin[dim] = from, end[dim] = from + len, dims[dim] = len;
    TypeId type = hlo_type_tensor(h, t.dtype, t.rank, dims);
    OpId id = hlo_op(h, HLO_SLICE, loc, 1, &v, 1, &type);
    hlo_set_ints(h, id, AK_START_INDICES, begin, (uint32_t)t.rank);
    hlo_set_ints(h, id, AK_LIMIT_INDICES, end, (uint32_t)t.rank);
    hlo_set_ints(h, id, AK_STRIDES, ones, (uint32_t)t.rank);
    return push(s, id);
}

ValueId piece_reshaped(Pieces *s, ValueId v, TypeId type, LocId loc) {
    return s->h->values.at[v].type == type ? v : push(s, hlo_op(s->h, HLO_RESHAPE, loc, 1, &v, 1, &type));
}

// A product like another, of other operands; `dim` of its result has n elements, dtype its type.
static ValueId product(Pieces *s, OpId like, ValueId a, ValueId b, int dim, int64_t n, int dtype) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, like);
    HloType t = *hlo_value_type(h, op.results);
    int64_t dims[OTRN_MAX_RANK];
    memcpy(dims, t.dims, (size_t)t.rank * sizeof *dims);
    if (dim >= 0)
        dims[dim] = n;
    TypeId type = hlo_type_tensor(h, dtype, t.rank, dims);
    OpId made = hlo_op(h, op.code, op.loc, 2, (ValueId[]){a, b}, 1, &type);
    hlo_at(h, made)->attrs = op.attrs;
    return push(s, made);
}

static ValueId operand_piece(Cut *k, uint32_t i, uint32_t c) {
    Pieces *s = k->s;
    Hlo *h = s->h;
    LocId loc = k->op.loc;
    int64_t from = piece_at(k, c), len = piece_len(k, c);
    uint32_t nk;
    int64_t kind = hlo_ints(&k->op, AK_BROADCAST_DIMENSIONS, &nk)[i];
    ValueId v = hlo_operand(h, &k->op, i), *part = &k->parts[i * npieces(k) + c];
    OpId score = rows_score(h, &s->u, k->rows, i, SCORE_WIDE);
    if (kind == FUSED_ROWS)
        return v;
    if (!score) {
        int64_t dims[2] = {hlo_value_type(h, v)->elems / k->n, k->n};
        if (!*part)
            *part = slice(s, piece_reshaped(s, v, hlo_type_tensor(h, hlo_value_type(h, v)->dtype, 2, dims), loc), 1, from, len, loc);
        return *part;
    }
    HloOp dot = *hlo_at(h, score);
    ValueId rhs = hlo_operand(h, &dot, 1);
    int64_t dims[OTRN_MAX_RANK];
    dot_free_dims(hlo_value_type(h, rhs), &dot, true, dims);
    if (!*part)
        *part = slice(s, rhs, dims[0], from, len, dot.loc);
    const HloType *out = hlo_value_type(h, dot.results);
    return product(s, score, hlo_operand(h, &dot, 0), *part, out->rank - 1, len, out->dtype);
}

// --- programs ----------------------------------------------------------------------------------------

static uint32_t index_of(const Cut *k, OpId id) {
    uint32_t i = 0;
    while (k->body->ops.at[i] != id)
        i++;
    return i;
}

void part_take(const Cut *k, Part *p, ValueId v) {
    const Hlo *h = k->s->h;
    OpId def = h->values.at[v].def;
    if (!def) {
        p->args[v - k->body->args] = true;
        return;
    }
    uint32_t i = index_of(k, def);
    if (value_map_get(&k->total, v)) {
        p->totals[i] = true;
        return;
    }
    if (p->ops[i])
        return;
    p->ops[i] = true;
    const HloOp *op = hlo_at(h, def);
    for (uint32_t j = 0; j < op->noperands; j++)
        part_take(k, p, hlo_operand(h, op, j));
}

Part part_new(const Cut *k) {
    Arena *a = k->s->c->scratch;
    return (Part){ARENA_NEWN(a, bool, k->body->ops.n + 1), ARENA_NEWN(a, bool, k->op.noperands + 1),
                  ARENA_NEWN(a, bool, k->body->ops.n + 1)};
}

void piece_begin(Cut *k, RowsMake *m, const Part *p, uint32_t c, const Values *more, uint32_t nresults, const TypeId *types,
                  uint32_t *more_at) {
    Hlo *h = k->s->h;
    Arena *a = k->s->c->scratch;
    uint32_t nk, nops = k->body->ops.n;
    uint32_t *arg = ARENA_NEWN(a, uint32_t, k->op.noperands + 1), *total = ARENA_NEWN(a, uint32_t, nops + 1);
    for (uint32_t i = 0; i < k->op.noperands; i++) {
        int64_t kind = hlo_ints(&k->op, AK_BROADCAST_DIMENSIONS, &nk)[i];
        if (p->args[i])
            arg[i] = rows_make_operand(m, operand_piece(k, i, c), kind);
    }
    for (uint32_t i = 0; i < nops; i++)
        if (p->totals[i])
            total[i] = rows_make_operand(m, value_map_get(&k->total, hlo_at(h, k->body->ops.at[i])->results), FUSED_ROWS);
    for (uint32_t i = 0; i < more->n; i++)
        more_at[i] = rows_make_operand(m, more->at[i], FUSED_ROWS);
    rows_make_begin(m, k->op.loc, piece_len(k, c), nresults, types);
    for (uint32_t i = 0; i < k->op.noperands; i++)
        if (p->args[i])
            rows_make_set(m, k->body->args + i, rows_make_arg(m, arg[i]));
    for (uint32_t i = 0; i < nops; i++)
        if (p->totals[i])
            rows_make_set(m, hlo_at(h, k->body->ops.at[i])->results, rows_make_arg(m, total[i]));
}

static void copy_part(const Cut *k, RowsMake *m, const Part *p) {
    for (uint32_t i = 0; i + 1 < k->body->ops.n; i++)
        if (p->ops[i])
            rows_make_copy(m, k->body->ops.at[i]);
}

static bool is_of_level(const Cut *k, uint32_t i, uint32_t level) {
    const HloOp *op = hlo_at(k->s->h, k->body->ops.at[i]);
    return op->code == HLO_REDUCE && level_of(k, op->results) == level;
}

// The reductions of one level, piece by piece.
static void reduce_level(Cut *k, uint32_t level) {
    Pieces *s = k->s;
    Hlo *h = s->h;
    Arena *a = s->c->scratch;
    Part p = part_new(k);
    VEC(TypeId) types = {0};
    OpList found = {0};
    for (uint32_t i = 0; i + 1 < k->body->ops.n; i++) {
        if (!is_of_level(k, i, level))
            continue;
        ValueId v = hlo_at(h, k->body->ops.at[i])->results;
        part_take(k, &p, v);
        VEC_PUSH(a, &found, k->body->ops.at[i]);
        VEC_PUSH(a, &types, hlo_type_tensor(h, hlo_value_type(h, v)->dtype, 1, &k->nrows));
    }
    Values so_far = {0};
    uint32_t *at = ARENA_NEWN(a, uint32_t, found.n + 1);
    for (uint32_t c = 0; c < npieces(k); c++) {
        RowsMake m = {.c = s->c, .h = h};
        Values yield = {0};
        piece_begin(k, &m, &p, c, &so_far, types.n, types.at, at);
        copy_part(k, &m, &p);
        for (uint32_t i = 0; i < found.n; i++) {
            const HloOp *op = hlo_at(h, found.at[i]);
            ValueId here = rows_make_get(&m, op->results);
            if (c) {
                TypeId scalar = h->values.at[here].type;
                OpId both = hlo_op(h, reduce_body(h, op), op->loc, 2, (ValueId[]){rows_make_arg(&m, at[i]), here}, 1, &scalar);
                hlo_region_push(h, m.region, both);
                here = hlo_at(h, both)->results;
            }
            VEC_PUSH(a, &yield, here);
        }
        rows_make_end(&m, &yield);
        push(s, m.op);
        so_far = (Values){0};
        for (uint32_t i = 0; i < found.n; i++)
            VEC_PUSH(a, &so_far, hlo_at(h, m.op)->results + i);
    }
    for (uint32_t i = 0; i < found.n; i++)
        value_map_set(a, &k->total, hlo_at(h, found.at[i])->results, so_far.at[i]);
}

// The sum of up to TERMS_MAX terms, in order, as the type says.
static ValueId add_up(Pieces *s, const ValueId *terms, uint32_t n, TypeId type, LocId loc) {
    Hlo *h = s->h;
    RowsMake m = {.c = s->c, .h = h};
    HloType t = *hlo_type(h, type);
    int64_t columns = t.dims[t.rank - 1];
    for (uint32_t i = 0; i < n; i++)
        rows_make_operand(&m, terms[i], FUSED_SAME);
    rows_make_begin(&m, loc, columns, 1, &type);
    ValueId sum = rows_make_arg(&m, 0);
    TypeId wide = h->values.at[sum].type, narrow = hlo_type_tensor(h, t.dtype, 1, &columns);
    for (uint32_t i = 1; i < n; i++) {
        OpId add = hlo_op(h, HLO_ADD, loc, 2, (ValueId[]){sum, rows_make_arg(&m, i)}, 1, &wide);
        hlo_region_push(h, m.region, add);
        sum = hlo_at(h, add)->results;
    }
    if (narrow != wide) {
        OpId convert = hlo_op(h, HLO_CONVERT, loc, 1, &sum, 1, &narrow);
        hlo_region_push(h, m.region, convert);
        sum = hlo_at(h, convert)->results;
    }
    Values yield = {0};
    VEC_PUSH(s->c->scratch, &yield, sum);
    rows_make_end(&m, &yield);
    return push(s, m.op);
}

static ValueId sum_of(Pieces *s, ValueId *terms, uint32_t n, TypeId type, LocId loc) {
    while (n > TERMS_MAX) {
        terms[0] = add_up(s, terms, TERMS_MAX, s->h->values.at[terms[0]].type, loc);
        memmove(terms + 1, terms + TERMS_MAX, (n - TERMS_MAX) * sizeof *terms);
        n -= TERMS_MAX - 1;
    }
    return add_up(s, terms, n, type, loc);
}

// Which dimension of the product's result the columns are, when it keeps them.
static int column_dim(const Cut *k, const Behind *b) {
    const Hlo *h = k->s->h;
    const HloOp *dot = hlo_at(h, b->op);
    const HloType *out = hlo_value_type(h, dot->results), *other = hlo_value_type(h, hlo_operand(h, dot, 1));
    int64_t dims[OTRN_MAX_RANK];
    return out->rank - 1 - (b->operand ? 0 : (int)dot_free_dims(other, dot, true, dims));
}

// The product's other operand for a piece.
ValueId piece_other(Cut *k, const Behind *b, uint32_t c) {
    HloOp dot = *hlo_at(k->s->h, b->op);
    ValueId other = hlo_operand(k->s->h, &dot, !b->operand);
    if (b->over_rows)
        return other;
    uint32_t n;
    int64_t over = hlo_ints(&dot, b->operand ? AK_LHS_CONTRACTING_DIMENSIONS : AK_RHS_CONTRACTING_DIMENSIONS, &n)[0];
    return slice(k->s, other, over, piece_at(k, c), piece_len(k, c), dot.loc);
}

static ValueId piece_behind(Cut *k, const Behind *b, uint32_t c, ValueId value, ValueId other) {
    Pieces *s = k->s;
    Hlo *h = s->h;
    HloOp dot = *hlo_at(h, b->op);
    HloType own = *hlo_value_type(h, hlo_operand(h, &dot, b->operand));
    int64_t dims[OTRN_MAX_RANK], len = piece_len(k, c);
    memcpy(dims, own.dims, (size_t)own.rank * sizeof *dims);
    dims[own.rank - 1] = len;
    value = piece_reshaped(s, value, hlo_type_tensor(h, own.dtype, own.rank, dims), dot.loc);
    int dim = b->over_rows ? column_dim(k, b) : -1, dtype = b->over_rows ? hlo_value_type(h, dot.results)->dtype : DT_F32;
    return b->operand ? product(s, b->op, other, value, dim, len, dtype) : product(s, b->op, value, other, dim, len, dtype);
}

static ValueId concatenated(Pieces *s, const ValueId *parts, uint32_t n, int dim, TypeId type, LocId loc) {
    OpId id = hlo_op(s->h, HLO_CONCATENATE, loc, n, parts, 1, &type);
    *hlo_attr_slot(s->h, id, AK_DIMENSION) = (HloAttr){.kind = HA_INT, .i = dim};
    return push(s, id);
}

// The rows themselves, piece by piece, each with the products that read it.
static void make_results(Cut *k) {
    Pieces *s = k->s;
    Hlo *h = s->h;
    Arena *a = s->c->scratch;
    uint32_t n = npieces(k);
    ValueId *terms = ARENA_NEWN(a, ValueId, (size_t)BEHIND_MAX * n);
    for (uint32_t c = 0; c < n; c++) {
        Part p = part_new(k);
        VEC(TypeId) types = {0};
        VEC(uint32_t) which = {0};
        for (uint32_t r = 0; r < k->op.nresults; r++) {
            ValueId inner = rows_returned(h, k->rows, r);
            bool full = is_full(h, inner);
            if (!full && (c || value_map_get(&k->total, inner)))
                continue; // known, or made with the first piece
            int64_t dims[2] = {k->nrows, piece_len(k, c)};
            part_take(k, &p, inner);
            VEC_PUSH(a, &types, hlo_type_tensor(h, hlo_value_type(h, inner)->dtype, full ? 2 : 1, dims));
            VEC_PUSH(a, &which, r);
        }
        RowsMake m = {.c = s->c, .h = h};
        Values yield = {0}, none = {0};
        ValueId others[BEHIND_MAX]; // must be there before the program
        for (uint32_t b = 0; b < k->nbehind; b++)
            others[b] = piece_other(k, &k->behind[b], c);
        piece_begin(k, &m, &p, c, &none, types.n, types.at, NULL);
        copy_part(k, &m, &p);
        for (uint32_t i = 0; i < which.n; i++)
            VEC_PUSH(a, &yield, rows_make_get(&m, rows_returned(h, k->rows, which.at[i])));
        rows_make_end(&m, &yield);
        push(s, m.op);
        for (uint32_t i = 0; i < which.n; i++) {
            ValueId made = hlo_at(h, m.op)->results + i;
            if (!is_full(h, rows_returned(h, k->rows, which.at[i])))
                value_map_set(a, &k->total, rows_returned(h, k->rows, which.at[i]), made);
            for (uint32_t b = 0; b < k->nbehind; b++)
                if (k->behind[b].result == which.at[i])
                    terms[b * n + c] = piece_behind(k, &k->behind[b], c, made, others[b]);
        }
    }
    for (uint32_t b = 0; b < k->nbehind; b++) {
        HloOp dot = *hlo_at(h, k->behind[b].op);
        TypeId type = h->values.at[dot.results].type;
        ValueId all = k->behind[b].over_rows ? concatenated(s, terms + b * n, n, column_dim(k, &k->behind[b]), type, dot.loc)
                                             : sum_of(s, terms + b * n, n, type, dot.loc);
        walk_replace(&s->w, dot.results, all);
    }
}

static void cut(Cut *k) {
    Pieces *s = k->s;
    Hlo *h = s->h;
    k->parts = ARENA_NEWN(s->c->scratch, ValueId, (size_t)k->op.noperands * npieces(k) + 1);
    if (soft_fits(k)) {
        soft_cut(k);
    } else {
        for (uint32_t level = 1; level <= k->levels; level++)
            reduce_level(k, level);
        make_results(k);
    }
    for (uint32_t r = 0; r < k->op.nresults; r++) {
        ValueId inner = rows_returned(h, k->rows, r);
        if (!is_full(h, inner))
            walk_replace(&s->w, k->op.results + r,
                         piece_reshaped(s, value_map_get(&k->total, inner), h->values.at[k->op.results + r].type, k->op.loc));
    }
}

// --- the walk ----------------------------------------------------------------------------------------

static bool pieces_region(Pieces *s, RegionId r) {
    Hlo *h = s->h;
    OpList outer = s->w.out, ops = {0};
    bool any = false;
    s->w.out = (OpList){0};
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++)
        VEC_PUSH(s->c->scratch, &ops, h->regions.at[r].ops.at[i]);
    for (uint32_t i = 0; i < ops.n; i++) {
        HloOp op = *hlo_at(h, ops.at[i]);
        Cut k;
        if (op.code == HLO_ROWS && match(s, ops.at[i], &k)) {
            HloRegion body = *k.body; // regions move when others are made
            k.body = &body;
            cut(&k);
            any = true;
        }
        for (uint32_t j = 0; j < op.nregions && hlo_row(&op)->cls == HC_CTRL; j++)
            any = pieces_region(s, h->op_regions.at[op.regions + j]) || any;
        push(s, ops.at[i]); // nobody reads what was replaced
    }
    walk_set_ops(h, r, &s->w.out);
    s->w.out = outer;
    return any;
}

void pass_pieces(Compile *c) {
    Pieces s = {.c = c, .h = c->hlo};
    RegionId body = hlo_main(c->hlo)->body;
    walk_init(&s.w, c);
    users_make(&s.u, c->hlo, c->scratch, body);
    if (!pieces_region(&s, body))
        return;
    walk_region(&s.w, body);
    pass_dce(c);
}
