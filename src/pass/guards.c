// SPDX-License-Identifier: Apache-2.0
// guards.c — masks of a finite number, as -1e9, do what masks of -inf do where the run finds that scores are far above it.
// needs: row programs, scores computed again
// gives: large attention under such a mask is a choice: the program as it stands, or with -inf, whose masked columns mask.c leaves out
// stale: nothing
//
//   select(mask, q k, -1e9) ──► softmax      ──►     if max|q| max|k| K > bound: as it is    else: select(mask, q k, -inf) ──► softmax
//
// Exact: under the bound the exponential of a masked column is zero and no maximum is one, with either number. What has to be bounded is
// what mask_find_if asks of: scores, by their product's operands, or a number per row that the forward pass has kept. Who prices the program
// takes the second way, which is that of any training run (otrn.usual; a run that took the first is priced so with --trips=run).
#include <math.h>

#include "hlo/dot.h"
#include "hlo/users.h"
#include "pass/mask.h"
#include "pass/rows_make.h"

#define SCORES_LEAST (1 << 25) // fewer take less time than the question, and what is held up by it
#define FILL_MOST (-1e3)
#define BOUND_MOST 1e8
#define BOUND_LEAST 1e3
#define SLACK 0.95 // of the bound: scores are rounded
#define COLUMNS 2048
#define COLUMNS_LEAST 64

typedef struct Guards {
    Compile *c;
    Hlo *h;
    Walk w;
    Users u;
    uint32_t nops; // of the picture
    bool *taken;   // per op: it is in a choice now
} Guards;

typedef struct Group { // a row program with the products before and behind it
    OpId rows;
    OpList ops; // in order; the program among them
    bool feeds[64];
    Masked masked;
    double bound;
} Group;

// --- what goes together ------------------------------------------------------------------------------

static bool finite_fill(const Hlo *h, ValueId v) {
    double x;
    return splat_f64(h, v, &x) && x <= FILL_MOST && x > MASK_NOTHING;
}

static bool has_fill(const Hlo *h, OpId rows) {
    const HloRegion *r = hlo_op_region(h, hlo_at(h, rows), 0);
    for (uint32_t i = 0; i < r->ops.n; i++) {
        const HloOp *op = hlo_at(h, r->ops.at[i]);
        if (op->code == HLO_SELECT && finite_fill(h, hlo_operand(h, op, 2)))
            return true;
    }
    return false;
}

static void take_before(Guards *g, Group *p, ValueId v) { // the product first, then reshapes
    OpId def = g->h->values.at[v].def;
    if (hlo_at(g->h, def)->code == HLO_RESHAPE)
        take_before(g, p, hlo_operand(g->h, hlo_at(g->h, def), 0));
    VEC_PUSH(g->c->scratch, &p->ops, def);
}

// Every reader of the value, through reshapes, is a product that can stand beside the program.
static bool take_behind(Guards *g, Group *p, ValueId v) {
    for (Reader by = readers_of(&g->u, v); reader_next(&by);) {
        if (g->u.region[by.id] != g->u.region[p->rows] || g->taken[by.id])
            return false;
        bool view = by.op->code == HLO_RESHAPE;
        if (!view && !dot_on_tensor_engine(g->h, by.op))
            return false;
        uint32_t at = !view && hlo_operand(g->h, by.op, 1) == v;
        if (!view && !users_there_before(&g->u, hlo_operand(g->h, by.op, !at), p->rows))
            return false;
        VEC_PUSH(g->c->scratch, &p->ops, by.id);
        if (view && !take_behind(g, p, by.op->results))
            return false;
    }
    return users_reads(&g->u, v) > 0;
}

static int64_t gather_group(Guards *g, Group *p) { // rows of a batch; 0: it is none
    HloOp rows = *hlo_at(g->h, p->rows);
    int64_t m = 0, scores = 0;
    for (uint32_t i = 0; i < rows.noperands; i++) {
        OpId dot = rows_score(g->h, &g->u, p->rows, i, 2 * SCORE_NARROW);
        if (!dot || g->taken[dot])
            continue;
        const HloType *t = hlo_value_type(g->h, hlo_at(g->h, dot)->results);
        m = t->rank >= 2 ? t->dims[t->rank - 2] : 0, scores = t->elems;
        take_before(g, p, hlo_operand(g->h, &rows, i));
    }
    if (!m || scores < SCORES_LEAST || rows.nresults > 64)
        return 0;
    VEC_PUSH(g->c->scratch, &p->ops, p->rows);
    for (uint32_t k = 0; k < rows.nresults; k++)
        if (hlo_value_type(g->h, rows_returned(g->h, p->rows, k))->rank == 1 && !(p->feeds[k] = take_behind(g, p, rows.results + k)))
            return 0;
    return m;
}

// Each operand that has to be bounded can be: a product's, or a number per row.
static bool may_ask(const Guards *g, const Group *p) {
    const int64_t *kinds = rows_kinds(hlo_at(g->h, p->rows));
    for (uint32_t i = 0; i < hlo_at(g->h, p->rows)->noperands && i < 64; i++)
        if (p->masked.leaves >> i & 1 && kinds[i] != FUSED_ROWS && !rows_score(g->h, &g->u, p->rows, i, 2 * SCORE_NARROW))
            return false;
    return p->masked.leaves != 0;
}

static bool find_group(Guards *g, OpId rows, Group *p) {
    *p = (Group){.rows = rows};
    int64_t all, n, m;
    if (!has_fill(g->h, rows) || !rows_shape(g->h, hlo_at(g->h, rows), &all, &n) || !(m = gather_group(g, p)) ||
        mask_find(g->c, rows, m, n, p->feeds, &p->masked))
        return false;
    for (p->bound = BOUND_MOST; p->bound >= BOUND_LEAST; p->bound /= 10)
        if (mask_find_if(g->c, rows, m, n, p->feeds, p->bound, &p->masked))
            return may_ask(g, p);
    return false;
}

// --- the question ------------------------------------------------------------------------------------

// The largest of |x|, or -x, of all elements, as a number of f32; 0: the tensor cannot be cut into rows.
static ValueId largest(Guards *g, LocId loc, ValueId v, HloOpcode code) {
    Hlo *h = g->h;
    HloType t = *hlo_value_type(h, v);
    int64_t cols = t.elems & -t.elems;
    cols = cols < COLUMNS ? cols : COLUMNS;
    if (cols < COLUMNS_LEAST)
        return 0;
    int64_t rows = t.elems / cols;
    TypeId scalar = hlo_type_tensor(h, DT_F32, 0, NULL);
    RowsMake m = {.c = g->c, .h = h};
    rows_make_operand(&m, walk_reshape(&g->w, v, 2, (int64_t[]){rows, cols}), FUSED_SAME);
    rows_make_begin(&m, loc, cols, 1, (TypeId[]){hlo_type_tensor(h, DT_F32, 1, &rows)});
    OpList outer = walk_region_begin(&g->w);
    ValueId x = walk_unary(&g->w, code, walk_convert(&g->w, rows_make_arg(&m, 0), DT_F32));
    x = walk_reduce(&g->w, HLO_MAXIMUM, x, walk_number(&g->w, scalar, -HUGE_VAL), (int64_t[]){0}, 1, scalar);
    walk_region_end(&g->w, m.region, outer, &x, 1);
    ValueId each = walk_push(&g->w, m.op);
    return walk_reduce(&g->w, HLO_MAXIMUM, each, walk_number(&g->w, scalar, -HUGE_VAL), (int64_t[]){0}, 1, scalar);
}

static ValueId bounded_by(Guards *g, const Group *p, LocId loc, uint32_t i) { // no number of operand i is below minus this
    Hlo *h = g->h;
    OpId dot = rows_score(h, &g->u, p->rows, i, 2 * SCORE_NARROW);
    if (!dot)
        return largest(g, loc, hlo_operand(h, hlo_at(h, p->rows), i), HLO_NEGATE);
    HloOp op = *hlo_at(h, dot);
    double k = (double)dot_contracted(h, &op);
    ValueId a = largest(g, loc, hlo_operand(h, &op, 0), HLO_ABS), b = a ? largest(g, loc, hlo_operand(h, &op, 1), HLO_ABS) : 0;
    return b ? walk_binary(&g->w, HLO_MULTIPLY, walk_binary(&g->w, HLO_MULTIPLY, a, b), walk_number(&g->w, h->values.at[a].type, k)) : 0;
}

// True where some operand may be below the bound, NaN among them; 0: that cannot be asked.
static ValueId ask(Guards *g, const Group *p, LocId loc) {
    ValueId most = 0;
    for (uint32_t i = 0; i < 64; i++) {
        if (!(p->masked.leaves >> i & 1))
            continue;
        ValueId x = bounded_by(g, p, loc, i);
        if (!x)
            return 0;
        most = most ? walk_binary(&g->w, HLO_MAXIMUM, most, x) : x;
    }
    ValueId limit = walk_number(&g->w, g->h->values.at[most].type, SLACK * p->bound);
    return walk_unary(&g->w, HLO_NOT, walk_compare(&g->w, CMP_LE, CMPT_FLOAT, most, limit));
}

// --- the choice --------------------------------------------------------------------------------------

static void copy_with_inf(Guards *g, RowsMake *m, OpId id) { // a select: its number becomes -inf
    HloOp op = *hlo_at(g->h, id);
    ValueId fill = hlo_operand(g->h, &op, 2), was = rows_make_get(m, fill);
    uint8_t bits[8];
    dtype_from_f64(hlo_value_type(g->h, op.results)->dtype, bits, -HUGE_VAL);
    OpId none = hlo_op_splat(g->h, op.loc, g->h->values.at[op.results].type, bits);
    hlo_region_push(g->h, m->region, none);
    rows_make_set(m, fill, hlo_at(g->h, none)->results);
    rows_make_copy(m, id);
    rows_make_set(m, fill, was);
}

static OpId copy_rows(Guards *g, const ValueMap *map, OpId id, ValueId mask) { // mask: masked with -inf; 0: as it is
    Hlo *h = g->h;
    HloOp op = *hlo_at(h, id);
    HloRegion body = *hlo_op_region(h, &op, 0);
    RowsMake m = {.c = g->c, .h = h};
    RowsResults r = {0};
    rows_make_results(&m, &r, id);
    rows_make_like(&m, id, map, r.types.n, r.types.at);
    for (uint32_t i = 0; i + 1 < body.ops.n; i++) {
        const HloOp *inner = hlo_at(h, body.ops.at[i]);
        bool fills = mask && inner->code == HLO_SELECT && hlo_operand(h, inner, 0) == mask && finite_fill(h, hlo_operand(h, inner, 2));
        (fills ? copy_with_inf(g, &m, body.ops.at[i]) : rows_make_copy(&m, body.ops.at[i]));
    }
    rows_make_end(&m, &r, NULL);
    return m.op;
}

static void add_way(Guards *g, OpId choice, const Group *p, const Values *results, ValueId mask) {
    Hlo *h = g->h;
    RegionId r = hlo_op_add_region(h, choice, 0, NULL);
    ValueMap map = {0};
    for (uint32_t i = 0; i < p->ops.n; i++) {
        OpId id = p->ops.at[i], made = id == p->rows ? copy_rows(g, &map, id, mask) : value_map_copy(h, g->c->scratch, &map, hlo_at(h, id));
        hlo_region_push(h, r, made);
        for (uint32_t k = 0; k < hlo_at(h, id)->nresults; k++)
            value_map_set(g->c->scratch, &map, hlo_at(h, id)->results + k, hlo_at(h, made)->results + k);
    }
    ValueId *yield = ARENA_NEWN(g->c->scratch, ValueId, results->n + 1);
    for (uint32_t i = 0; i < results->n; i++)
        yield[i] = value_map_or_same(&map, results->at[i]);
    hlo_region_push(h, r, hlo_op(h, HLO_RETURN, hlo_at(h, choice)->loc, results->n, yield, 0, NULL));
}

// What others read of the group: products' results, numbers per row.
static void results_of(Guards *g, const Group *p, Values *out) {
    for (uint32_t i = 0; i < p->ops.n; i++) {
        HloOp op = *hlo_at(g->h, p->ops.at[i]);
        for (uint32_t k = 0; k < op.nresults; k++) {
            bool read = false;
            for (Reader by = readers_of(&g->u, op.results + k); reader_next(&by);)
                read = read || !g->taken[by.id];
            if (read)
                VEC_PUSH(g->c->scratch, out, op.results + k);
        }
    }
}

static bool choose(Guards *g, Group *p) {
    Hlo *h = g->h;
    LocId loc = g->w.loc = hlo_at(h, p->rows)->loc;
    uint32_t before = g->w.out.n;
    ValueId low = ask(g, p, loc);
    if (!low) {
        g->w.out.n = before;
        return false;
    }
    for (uint32_t i = 0; i < p->ops.n; i++)
        g->taken[p->ops.at[i]] = true;
    Values results = {0};
    results_of(g, p, &results);
    TypeId *types = ARENA_NEWN(g->c->scratch, TypeId, results.n + 1);
    for (uint32_t i = 0; i < results.n; i++)
        types[i] = h->values.at[results.at[i]].type;
    OpId choice = hlo_op(h, HLO_IF, loc, 1, &low, results.n, types);
    add_way(g, choice, p, &results, 0);
    add_way(g, choice, p, &results, p->masked.mask);
    HloNamed *usual = ARENA_NEW(h->arena, HloNamed);
    *usual = (HloNamed){.name = HLO_USUAL, .value = {.kind = HA_INT, .i = 1}};
    hlo_at(h, choice)->extra = usual, hlo_at(h, choice)->nextra = 1;
    ValueId first = walk_push(&g->w, choice);
    for (uint32_t i = 0; i < results.n; i++)
        walk_replace(&g->w, results.at[i], first + i);
    return true;
}

static void guard_region(Guards *g, RegionId r) {
    OpList ops = {0};
    VEC_RESERVE(g->c->scratch, &ops, g->h->regions.at[r].ops.n + 1);
    bool any = false;
    g->w.out = (OpList){0};
    walk_list(g->c->scratch, g->h, r, &ops);
    for (uint32_t i = 0; i < ops.n; i++) {
        Group p;
        bool found = hlo_at(g->h, ops.at[i])->code == HLO_ROWS && find_group(g, ops.at[i], &p) && choose(g, &p);
        any = any || found;
        if (!found)
            VEC_PUSH(g->c->scratch, &g->w.out, ops.at[i]);
    }
    OpList kept = {0};
    for (uint32_t i = 0; i < g->w.out.n && any; i++)
        if (g->w.out.at[i] >= g->nops || !g->taken[g->w.out.at[i]])
            VEC_PUSH(g->c->scratch, &kept, g->w.out.at[i]);
    if (any)
        walk_set_ops(g->h, r, &kept);
    for (uint32_t i = 0; i < ops.n; i++) {
        const HloOp op = *hlo_at(g->h, ops.at[i]);
        for (uint32_t k = 0; k < op.nregions && hlo_row(&op)->cls == HC_CTRL; k++)
            guard_region(g, g->h->op_regions.at[op.regions + k]);
    }
}

static bool any_fill(void *hlo, RegionId r, uint32_t at) {
    const Hlo *h = hlo;
    OpId id = h->regions.at[r].ops.at[at];
    return hlo_at(h, id)->code == HLO_ROWS && has_fill(h, id);
}

void pass_guards(Compile *c) {
    RegionId body = hlo_main(c->hlo)->body;
    if (!walk_find(c->hlo, body, any_fill, c->hlo))
        return;
    Guards g = {.c = c, .h = c->hlo, .nops = c->hlo->ops.n, .taken = ARENA_NEWN(c->scratch, bool, c->hlo->ops.n + 1)};
    walk_init(&g.w, c);
    users_make(&g.u, c->hlo, c->scratch, body);
    guard_region(&g, body);
    walk_region(&g.w, body);
}
