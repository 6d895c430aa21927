// SPDX-License-Identifier: Apache-2.0
// walk.c — the walk that passes share, and the ops they make most.
#include "pass/walk.h"

void walk_init(Walk *w, Compile *c) {
    *w = (Walk){.c = c, .hlo = c->hlo, .arena = c->scratch};
    walk_grow(w);
}

void walk_grow(Walk *w) {
    uint32_t want = w->hlo->values.n;
    assert(w->repl.n <= want);
    if (want <= w->repl.cap && want <= w->repl.n)
        return;
    VEC_RESERVE(w->arena, &w->repl, want);
    for (uint32_t v = w->repl.n; v < want; v++)
        w->repl.at[v] = v;
    w->repl.n = want;
}

void walk_region(Walk *w, RegionId r) {
    assert(r && r < w->hlo->regions.n);
    for (uint32_t i = 0; i < w->hlo->regions.at[r].ops.n; i++) {
        OpId id = w->hlo->regions.at[r].ops.at[i];
        walk_operands(w, id);
        const HloOp *op = hlo_at(w->hlo, id);
        for (uint32_t k = 0; k < op->nregions; k++)
            walk_region(w, w->hlo->op_regions.at[op->regions + k]);
    }
}

void walk_regions(const Hlo *h, RegionId r, WalkRegion visit, void *pass) {
    assert(r && r < h->regions.n);
    visit(pass, r);
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        const HloOp op = *hlo_at(h, h->regions.at[r].ops.at[i]);
        for (uint32_t k = 0; k < op.nregions && hlo_row(&op)->cls == HC_CTRL; k++)
            walk_regions(h, h->op_regions.at[op.regions + k], visit, pass);
    }
}

bool walk_find(const Hlo *h, RegionId r, WalkFind found, void *pass) {
    assert(r && r < h->regions.n);
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        if (found(pass, r, i))
            return true;
        const HloOp op = *hlo_at(h, h->regions.at[r].ops.at[i]);
        for (uint32_t k = 0; k < op.nregions && hlo_row(&op)->cls == HC_CTRL; k++)
            if (walk_find(h, h->op_regions.at[op.regions + k], found, pass))
                return true;
    }
    return false;
}

ValueId walk_push_to(Walk *w, OpList *ops, OpId id) {
    assert(id && id < w->hlo->ops.n);
    VEC_PUSH(w->arena, ops, id);
    walk_grow(w);
    return hlo_at(w->hlo, id)->results;
}

ValueId walk_push(Walk *w, OpId id) { return walk_push_to(w, &w->out, id); }

OpList walk_region_begin(Walk *w) {
    OpList outer = w->out;
    w->out = (OpList){0};
    return outer;
}

void walk_region_end(Walk *w, RegionId r, OpList outer, const ValueId *results, uint32_t n) {
    assert(w->hlo->regions.at[r].ops.n == 0); // a region is filled once
    for (uint32_t i = 0; i < w->out.n; i++)
        hlo_region_push(w->hlo, r, w->out.at[i]);
    hlo_region_push(w->hlo, r, hlo_op(w->hlo, HLO_RETURN, w->loc, n, results, 0, NULL));
    w->out = outer;
}

// --- making ------------------------------------------------------------------------------------------

ValueId walk_op(Walk *w, HloOpcode code, uint32_t n, const ValueId *in, TypeId type) {
    return walk_push(w, hlo_op(w->hlo, code, w->loc, n, in, 1, &type));
}

ValueId walk_unary(Walk *w, HloOpcode code, ValueId x) { return walk_op(w, code, 1, &x, w->hlo->values.at[x].type); }

ValueId walk_binary(Walk *w, HloOpcode code, ValueId x, ValueId y) {
    assert(hlo_value_type(w->hlo, x)->elems == hlo_value_type(w->hlo, y)->elems);
    return walk_op(w, code, 2, (ValueId[]){x, y}, w->hlo->values.at[x].type);
}

ValueId walk_select(Walk *w, ValueId p, ValueId x, ValueId y) {
    assert(hlo_value_type(w->hlo, p)->dtype == DT_I1);
    assert(w->hlo->values.at[x].type == w->hlo->values.at[y].type);
    return walk_op(w, HLO_SELECT, 3, (ValueId[]){p, x, y}, w->hlo->values.at[x].type);
}

ValueId walk_number(Walk *w, TypeId type, double v) {
    uint8_t one[16] = {0};
    assert(hlo_is_plain(hlo_type(w->hlo, type)));
    int dtype = hlo_type(w->hlo, type)->dtype;
    if (dtype_is_float(dtype))
        dtype_from_f64(dtype, one, v);
    else if (v != 0) // which has no bit in any type
        dtype_from_i64(dtype, one, (int64_t)v);
    return walk_push(w, hlo_op_splat(w->hlo, w->loc, type, one));
}

ValueId walk_iota(Walk *w, TypeId type, int64_t dim) {
    assert(dim >= 0 && dim < hlo_type(w->hlo, type)->rank);
    OpId made = hlo_op(w->hlo, HLO_IOTA, w->loc, 0, NULL, 1, &type);
    hlo_set_int(w->hlo, made, AK_IOTA_DIMENSION, dim);
    return walk_push(w, made);
}

ValueId walk_compare(Walk *w, int64_t direction, int64_t kind, ValueId x, ValueId y) {
    assert(hlo_value_type(w->hlo, x)->dtype == hlo_value_type(w->hlo, y)->dtype);
    TypeId flags = hlo_type_as(w->hlo, w->hlo->values.at[x].type, DT_I1);
    OpId made = hlo_op(w->hlo, HLO_COMPARE, w->loc, 2, (ValueId[]){x, y}, 1, &flags);
    hlo_set_int(w->hlo, made, AK_COMPARISON_DIRECTION, direction);
    hlo_set_int(w->hlo, made, AK_COMPARE_TYPE, kind);
    return walk_push(w, made);
}

ValueId walk_broadcast(Walk *w, ValueId v, const int64_t *dims, uint32_t n, TypeId type) {
    assert(n == hlo_value_type(w->hlo, v)->rank);
    for (uint32_t i = 0; i < n; i++) {
        assert(dims[i] >= 0 && dims[i] < hlo_type(w->hlo, type)->rank);
        assert(hlo_value_type(w->hlo, v)->dims[i] == 1 || hlo_value_type(w->hlo, v)->dims[i] == hlo_type(w->hlo, type)->dims[dims[i]]);
    }
    OpId made = hlo_op(w->hlo, HLO_BROADCAST_IN_DIM, w->loc, 1, &v, 1, &type);
    hlo_set_ints(w->hlo, made, AK_BROADCAST_DIMENSIONS, dims, n);
    return walk_push(w, made);
}

ValueId walk_pad(Walk *w, ValueId v, ValueId with, const int64_t *low, const int64_t *high, const int64_t *inner, TypeId type) {
    uint32_t rank = hlo_type(w->hlo, type)->rank;
    assert(hlo_value_type(w->hlo, v)->rank == rank && hlo_value_type(w->hlo, with)->rank == 0);
    OpId made = hlo_op(w->hlo, HLO_PAD, w->loc, 2, (ValueId[]){v, with}, 1, &type);
    hlo_set_ints(w->hlo, made, AK_EDGE_PADDING_LOW, low, rank);
    hlo_set_ints(w->hlo, made, AK_EDGE_PADDING_HIGH, high, rank);
    hlo_set_ints(w->hlo, made, AK_INTERIOR_PADDING, inner, rank);
    return walk_push(w, made);
}

ValueId walk_piece(Walk *w, ValueId v, const int64_t *from, TypeId type) {
    int64_t ones[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    const HloType *t = hlo_type(w->hlo, type);
    for (int d = 0; d < t->rank; d++)
        ones[d] = 1, to[d] = from[d] + t->dims[d];
    assert(t->rank == hlo_value_type(w->hlo, v)->rank);
    uint32_t rank = t->rank;
    OpId made = hlo_op(w->hlo, HLO_SLICE, w->loc, 1, &v, 1, &type);
    hlo_set_ints(w->hlo, made, AK_START_INDICES, from, rank);
    hlo_set_ints(w->hlo, made, AK_LIMIT_INDICES, to, rank);
    hlo_set_ints(w->hlo, made, AK_STRIDES, ones, rank);
    return walk_push(w, made);
}

ValueId walk_shape(Walk *w, ValueId v, TypeId type) {
    assert(hlo_value_type(w->hlo, v)->elems == hlo_type(w->hlo, type)->elems);
    assert(hlo_value_type(w->hlo, v)->dtype == hlo_type(w->hlo, type)->dtype);
    return w->hlo->values.at[v].type == type ? v : walk_op(w, HLO_RESHAPE, 1, &v, type);
}

ValueId walk_reshape(Walk *w, ValueId v, int rank, const int64_t *dims) {
    return walk_shape(w, v, hlo_type_tensor(w->hlo, hlo_value_type(w->hlo, v)->dtype, rank, dims));
}

ValueId walk_convert(Walk *w, ValueId v, int dtype) {
    assert(hlo_value_type(w->hlo, v)->kind == HT_TENSOR);
    return hlo_value_type(w->hlo, v)->dtype == dtype ? v : walk_op(w, HLO_CONVERT, 1, &v, hlo_type_as(w->hlo, w->hlo->values.at[v].type, dtype));
}

ValueId walk_transpose(Walk *w, ValueId v, const int64_t *perm) {
    bool moves = false;
    assert(walk_is_permutation(perm, hlo_value_type(w->hlo, v)->rank));
    for (int i = 0; i < hlo_value_type(w->hlo, v)->rank; i++)
        moves |= perm[i] != i;
    return moves ? walk_push(w, hlo_op_transpose(w->hlo, w->loc, v, perm)) : v;
}

ValueId walk_reduce(Walk *w, HloOpcode code, ValueId v, ValueId init, const int64_t *over, uint32_t n, TypeId type) {
    Hlo *h = w->hlo;
    int dtype = hlo_type(h, type)->dtype;
    assert(hlo_value_type(h, v)->dtype == dtype && hlo_value_type(h, init)->dtype == dtype);
    assert(hlo_value_type(h, v)->rank == hlo_type(h, type)->rank + n);
    OpId made = hlo_op(h, HLO_REDUCE, w->loc, 2, (ValueId[]){v, init}, 1, &type);
    hlo_set_ints(h, made, AK_DIMENSIONS, over, n);
    hlo_op_add_combiner(h, made, code, hlo_type_tensor(h, dtype, 0, NULL));
    return walk_push(w, made);
}

ValueId walk_sum(Walk *w, ValueId v, const int64_t *over, uint32_t n, TypeId type) {
    ValueId zero = walk_number(w, hlo_type_tensor(w->hlo, hlo_type(w->hlo, type)->dtype, 0, NULL), 0);
    return walk_reduce(w, HLO_ADD, v, zero, over, n, type);
}

// --- walking -----------------------------------------------------------------------------------------

void walk_rewrite(Walk *w, RegionId r, WalkVisit visit, void *pass) {
    Hlo *h = w->hlo;
    OpList outer = w->out;
    w->out = (OpList){0};
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        walk_operands(w, id);
        HloOp op = *hlo_at(h, id);
        for (uint32_t k = 0; k < op.nregions; k++) {
            RegionId inner = h->op_regions.at[op.regions + k];
            if (w->depth == WALK_ALL || hlo_row(&op)->cls == HC_CTRL)
                walk_rewrite(w, inner, visit, pass);
            else
                walk_region(w, inner); // captured values may have moved
        }
        w->id = id, w->loc = op.loc;
        visit(pass, id);
    }
    assert(w->out.n && hlo_at(h, w->out.at[w->out.n - 1])->code == HLO_RETURN);
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

OpId value_map_copy(Hlo *h, Arena *a, const ValueMap *m, const HloOp *op) {
    assert(op->nresults == 1 && !op->nregions);
    ValueId *operands = ARENA_NEWN(a, ValueId, op->noperands + 1);
    for (uint32_t k = 0; k < op->noperands; k++)
        operands[k] = value_map_or_same(m, hlo_operand(h, op, k));
    return hlo_op_like(h, op, operands, h->values.at[op->results].type);
}

void walk_set_ops(Hlo *h, RegionId r, const OpList *ops) {
    assert(r && r < h->regions.n);
    assert(ops->n && hlo_at(h, ops->at[ops->n - 1])->code == HLO_RETURN);
    h->regions.at[r].ops.n = 0;
    for (uint32_t i = 0; i < ops->n; i++)
        hlo_region_push(h, r, ops->at[i]);
}

void walk_first_reads(const Hlo *h, const HloOp *op, uint32_t place, uint32_t *first) {
    for (uint32_t i = 0; i < op->noperands; i++) {
        uint32_t *at = &first[hlo_operand(h, op, i)];
        *at = place < *at ? place : *at;
    }
    for (uint32_t k = 0; k < op->nregions; k++) {
        const HloRegion *r = hlo_op_region(h, op, k);
        for (uint32_t i = 0; i < r->ops.n; i++)
            walk_first_reads(h, hlo_at(h, r->ops.at[i]), place, first);
    }
}

void walk_note_uses(Walk *w, uint32_t room) {
    w->nuses = w->hlo->values.n + room;
    w->uses = ARENA_NEWN(w->arena, uint32_t, w->nuses);
    users_count(w->hlo, hlo_main(w->hlo)->body, w->uses);
}

void walk_operands(Walk *w, OpId id) {
    assert(id && id < w->hlo->ops.n);
    HloOp *op = hlo_at(w->hlo, id);
    for (uint32_t i = 0; i < op->noperands; i++) {
        ValueId *v = &w->hlo->operands.at[op->operands + i];
        assert(*v < w->repl.n);
        *v = w->repl.at[*v];
    }
}
