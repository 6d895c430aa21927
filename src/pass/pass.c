// SPDX-License-Identifier: Apache-2.0
// pass.c — the list of graph passes and the walk they share.
#include "pass/pass.h"

#include "pass/expand.h"
#include "pass/walk.h"

const PassRow pass_rows[] = {
    {"inline", pass_inline, "put callees and composites into the entry, drop casts and tuples", true},
    {"formats", pass_formats, "decide in which order arguments and results lie that leave it open", true},
    {"spmd", pass_spmd, "cut tensors into the parts devices have, let parts meet where needed", true},
    {"layouts", pass_layouts, "take arguments and give results in the order they lie in memory", true},
    {"shapes", pass_shapes, "give every dimension its size, now that the arguments' shapes are known", true},
    {"quant", pass_quant, "write operations on quantised tensors as integer and float operations", true},
    {"expand", pass_expand, "write rare operations with common ones", true},
    {"autocast", pass_autocast, "compute in narrower types where the options say so", false},
    {"unroll", pass_unroll, "short loops of elementwise work in one piece", false},
    {"loops", pass_loops, "let loops carry only what changes, and make inside them what costs nothing", false},
    {"parts", pass_parts, "compute with large complex tensors by real and imaginary parts", false},
    {"fold", pass_fold, "evaluate exact operations on constants, keep splats small", false},
    {"cse", pass_cse, "compute equal operations once", false},
    {"counters", pass_counters, "count elements in 32 bits", false},
    {"narrow", pass_narrow, "do elementwise work before its operands are broadcast", false},
    {"remat", pass_remat, "compute again in a loop what costs less than a stack another loop keeps for it", false},
    {"assoc", pass_assoc, "take sums of a product's rows from another product that has them", false},
    {"inner", pass_inner, "write inner products as elementwise products and sums along rows", false},
    {"turns", pass_turns, "put the transposes around products where they move least", false},
    {"simplify", pass_simplify, "drop movement and arithmetic that change nothing", false},
    {"draws", pass_draws, "ask of random bits, not of the numbers made of them, whether they are below a bound", false},
    {"functions", pass_functions, "write functions the engines lack with those they have", false},
    {"places", pass_places, "write argmax and argmin along rows with reductions the engines do", false},
    {"sums", pass_sums, "write reductions across rows as products with ones, or in two steps", false},
    {"dots", pass_dots, "bring matrix products into the form the tensor engine takes", false},
    {"convs", pass_convs, "bring convolutions into the form the tensor engine takes", false},
    {"windows", pass_windows, "bring pooling into the form the vector engine takes", false},
    {"dce", pass_dce, "drop what nothing uses", false},
    {"rows", pass_row_programs, "join elementwise work and reductions along rows into programs for the engines", false},
    {"early", pass_early, "let what products need beside rows be there when the rows are made", false},
    {"scores", pass_scores, "compute scores of attention again where its gradients need them, so that they stay on the chip", false},
    {"order", pass_order, "put products that nobody waits for behind those that somebody does", false},
    {"buckets", pass_buckets, "join collectives over the same devices where nobody waits longer for them", false},
    {"integers", pass_row_integers, "join long chains of integer operations, as random numbers are, into programs for the engines", false},
    {"fuse", pass_fuse, "join elementwise operations so that what is between them stays out of memory", false},
    {"siblings", pass_siblings, "let small kernels that do not need each other be one", false},
    {"ahead", pass_ahead, "make random numbers before somebody waits for them", false},
    {"epilogue", pass_epilogue, "let row programs take the tiles of products where these leave the tensor engine", false},
};
const int pass_count = sizeof pass_rows / sizeof *pass_rows;

bool pass_joins(const PassRow *row) { return row->fn == pass_row_programs || row->fn == pass_row_integers || row->fn == pass_fuse; }

void pass_settle(Compile *c) {
    expand_groups(c);
    if (shapes_needed(c->hlo, true)) {
        pass_inline(c);
        pass_shapes(c);
    }
    pass_quant(c);
    bool rare = expand_needed(c->hlo);
    for (uint32_t i = 0; rare && i < c->hlo->funcs.n; i++) // those that devices run by themselves too
        if (c->hlo->funcs.at[i].body)
            expand_body(c, c->hlo->funcs.at[i].body);
}

bool pass_rewrites(HloOpcode code) {
    switch (code) {
    case HLO_AFTER_ALL: // tokens order nothing in a program that runs in order
    case HLO_CREATE_TOKEN:
    case HLO_ASYNC_START:
    case HLO_ASYNC_DONE:
    case HLO_CALL:
    case HLO_COMPOSITE:
    case HLO_CROSS_REPLICA_SUM:
    case HLO_GET_TUPLE_ELEMENT:
    case HLO_SDY_NAMED_COMPUTATION:
    case HLO_TUPLE:
    case HLO_INTERPRETER_PRINT:
    case HLO_INTERPRETER_PROBE:
    case HLO_EINSUM:
    case HLO_UNARY_EINSUM:
    case HLO_TORCH_INDEX_SELECT:
    case HLO_SET_DIMENSION_SIZE:
    case HLO_UNIFORM_QUANTIZE:
    case HLO_UNIFORM_DEQUANTIZE:
        return true;
    default:
        return expand_rewrites(code);
    }
}

void walk_init(Walk *w, Compile *c) {
    *w = (Walk){.hlo = c->hlo, .arena = c->scratch};
    walk_grow(w);
}

void walk_grow(Walk *w) {
    uint32_t want = w->hlo->values.n;
    if (want <= w->repl.cap && want <= w->repl.n)
        return;
    VEC_RESERVE(w->arena, &w->repl, want);
    for (uint32_t v = w->repl.n; v < want; v++)
        w->repl.at[v] = v;
    w->repl.n = want;
}

void walk_region(Walk *w, RegionId r) {
    for (uint32_t i = 0; i < w->hlo->regions.at[r].ops.n; i++) {
        OpId id = w->hlo->regions.at[r].ops.at[i];
        walk_operands(w, id);
        const HloOp *op = hlo_at(w->hlo, id);
        for (uint32_t k = 0; k < op->nregions; k++)
            walk_region(w, w->hlo->op_regions.at[op->regions + k]);
    }
}

void walk_regions(const Hlo *h, RegionId r, WalkRegion visit, void *pass) {
    visit(pass, r);
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        const HloOp op = *hlo_at(h, h->regions.at[r].ops.at[i]);
        for (uint32_t k = 0; k < op.nregions && hlo_row(&op)->cls == HC_CTRL; k++)
            walk_regions(h, h->op_regions.at[op.regions + k], visit, pass);
    }
}

ValueId walk_push(Walk *w, OpId id) {
    VEC_PUSH(w->arena, &w->out, id);
    walk_grow(w);
    return hlo_at(w->hlo, id)->results;
}

ValueId walk_reshape(Walk *w, LocId loc, ValueId v, int rank, const int64_t *dims) {
    const HloType *t = hlo_value_type(w->hlo, v);
    int64_t elems = t->elems;
    TypeId type = hlo_type_tensor(w->hlo, t->dtype, rank, dims);
    assert(hlo_type(w->hlo, type)->elems == elems);
    return w->hlo->values.at[v].type == type ? v : walk_push(w, hlo_op(w->hlo, HLO_RESHAPE, loc, 1, &v, 1, &type));
}

ValueId walk_convert(Walk *w, LocId loc, ValueId v, int dtype) {
    const HloType *t = hlo_value_type(w->hlo, v);
    assert(t->kind == HT_TENSOR);
    if (t->dtype == dtype)
        return v;
    TypeId type = hlo_type_tensor(w->hlo, dtype, t->rank, t->dims);
    return walk_push(w, hlo_op(w->hlo, HLO_CONVERT, loc, 1, &v, 1, &type));
}

ValueId walk_transpose(Walk *w, LocId loc, ValueId v, const int64_t *perm) {
    bool moves = false;
    for (int i = 0; i < hlo_value_type(w->hlo, v)->rank; i++)
        moves |= perm[i] != i;
    return moves ? walk_push(w, hlo_op_transpose(w->hlo, loc, v, perm)) : v;
}

ValueId walk_sum(Walk *w, LocId loc, ValueId v, const int64_t *over, uint32_t n, TypeId type) {
    static const float zero = 0;
    Hlo *h = w->hlo;
    TypeId scalar = hlo_type_tensor(h, DT_F32, 0, NULL);
    ValueId start = walk_push(w, hlo_op_splat(h, loc, scalar, &zero));
    OpId made = hlo_op(h, HLO_REDUCE, loc, 2, (ValueId[]){v, start}, 1, &type);
    hlo_set_ints(h, made, AK_DIMENSIONS, over, n);
    hlo_op_add_combiner(h, made, HLO_ADD, scalar);
    return walk_push(w, made);
}

void walk_rewrite(Walk *w, RegionId r, WalkDepth depth, WalkVisit visit, void *pass) {
    Hlo *h = w->hlo;
    OpList outer = w->out;
    w->out = (OpList){0};
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        walk_operands(w, id);
        HloOp op = *hlo_at(h, id);
        for (uint32_t k = 0; k < op.nregions; k++) {
            RegionId inner = h->op_regions.at[op.regions + k];
            if (depth == WALK_ALL || hlo_row(&op)->cls == HC_CTRL)
                walk_rewrite(w, inner, depth, visit, pass);
            else
                walk_region(w, inner); // captured values may have moved
        }
        visit(pass, id);
    }
    walk_set_ops(h, r, &w->out);
    w->out = outer;
}

static uint32_t map_slot(const ValueMap *m, ValueId from) {
    uint32_t i = from * 2654435761u >> 7 & (m->cap - 1);
    while (m->at[i].from && m->at[i].from != from)
        i = (i + 1) & (m->cap - 1);
    return i;
}

ValueId value_map_get(const ValueMap *m, ValueId from) { return m->cap ? m->at[map_slot(m, from)].to : 0; }

void value_map_set(Arena *a, ValueMap *m, ValueId from, ValueId to) {
    assert(from && to); // 0 means that it is not there
    if (2 * m->n >= m->cap) {
        ValueMap more = {.cap = m->cap ? 2 * m->cap : 16};
        more.at = arena_zalloc(a, more.cap * sizeof *more.at);
        for (uint32_t i = 0; i < m->cap; i++)
            if (m->at[i].from)
                value_map_set(a, &more, m->at[i].from, m->at[i].to);
        *m = more;
    }
    uint32_t i = map_slot(m, from);
    m->n += !m->at[i].from;
    m->at[i].from = from;
    m->at[i].to = to;
}

void walk_set_ops(Hlo *h, RegionId r, const OpList *ops) {
    h->regions.at[r].ops.n = 0;
    for (uint32_t i = 0; i < ops->n; i++)
        hlo_region_push(h, r, ops->at[i]);
}

void walk_count_uses(const Hlo *h, RegionId r, uint32_t *uses) {
    const HloRegion *region = &h->regions.at[r];
    for (uint32_t i = 0; i < region->ops.n; i++) {
        const HloOp *op = hlo_at(h, region->ops.at[i]);
        for (uint32_t k = 0; k < op->noperands; k++)
            uses[hlo_operand(h, op, k)]++;
        for (uint32_t k = 0; k < op->nregions; k++)
            walk_count_uses(h, h->op_regions.at[op->regions + k], uses);
    }
}

void walk_operands(Walk *w, OpId id) {
    HloOp *op = hlo_at(w->hlo, id);
    for (uint32_t i = 0; i < op->noperands; i++) {
        ValueId *v = &w->hlo->operands.at[op->operands + i];
        assert(*v < w->repl.n);
        *v = w->repl.at[*v];
    }
}
