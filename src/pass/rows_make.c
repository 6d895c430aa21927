// SPDX-License-Identifier: Apache-2.0
// rows_make.c — putting row programs and fused work together.
#include "pass/rows_make.h"

#include <assert.h>

#include "hlo/dot.h"
#include "pass/rows.h"

#define OPERANDS_MAX 4 // of an op inside a row program

uint32_t rows_make_operand(RowsMake *m, ValueId v, int64_t kind) {
    for (uint32_t i = 0; i < m->operands.n; i++)
        if (m->kinds.at[i] == kind && before_reshapes(m->h, m->operands.at[i]) == before_reshapes(m->h, v))
            return i;
    VEC_PUSH(m->c->scratch, &m->operands, v);
    VEC_PUSH(m->c->scratch, &m->kinds, kind);
    return m->operands.n - 1;
}

void rows_make_begin(RowsMake *m, LocId loc, int64_t columns, uint32_t nresults, const TypeId *types) {
    assert(m->operands.n == m->kinds.n);
    assert(m->fused || columns > 0);
    assert(nresults > 0);
    Hlo *h = m->h;
    m->columns = columns;
    m->op = hlo_op(h, m->fused ? HLO_FUSED : HLO_ROWS, loc, m->operands.n, m->operands.at, nresults, types);
    *hlo_attr_slot(h, m->op, AK_BROADCAST_DIMENSIONS) =
        (HloAttr){.kind = HA_INTS, .n = m->kinds.n, .ints = hlo_ints_dup(h, m->kinds.at, m->kinds.n)};
    if (!m->fused)
        hlo_set_int(h, m->op, AK_DIMENSION, columns);
    TypeId *inner = ARENA_NEWN(m->c->scratch, TypeId, m->operands.n + 1);
    for (uint32_t i = 0; i < m->operands.n; i++)
        inner[i] = hlo_type_tensor(h, hlo_value_type(h, m->operands.at[i])->dtype, !m->fused && m->kinds.at[i] != FUSED_ROWS, &columns);
    m->region = hlo_op_add_region(h, m->op, m->operands.n, inner);
}

void rows_make_like(RowsMake *m, OpId rows, const ValueMap *outside, uint32_t nresults, const TypeId *types) {
    const HloOp op = *hlo_at(m->h, rows);
    const int64_t *kinds = rows_kinds(&op);
    assert(!m->operands.n);
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId v = hlo_operand(m->h, &op, i);
        VEC_PUSH(m->c->scratch, &m->operands, outside ? value_map_or_same(outside, v) : v);
        VEC_PUSH(m->c->scratch, &m->kinds, kinds[i]);
    }
    rows_make_begin(m, op.loc, hlo_int(&op, AK_DIMENSION, 0), nresults, types);
    for (uint32_t i = 0; i < op.noperands; i++)
        rows_make_set(m, hlo_op_region(m->h, &op, 0)->args + i, rows_make_arg(m, i));
}

void rows_make_all(RowsMake *m, OpId rows) {
    const HloRegion body = *hlo_op_region(m->h, hlo_at(m->h, rows), 0);
    for (uint32_t i = 0; i + 1 < body.ops.n; i++)
        rows_make_copy(m, body.ops.at[i]);
}

void rows_make_copy(RowsMake *m, OpId id) {
    Hlo *h = m->h;
    HloOp op = *hlo_at(h, id);
    ValueId operands[OPERANDS_MAX];
    assert(op.noperands <= OPERANDS_MAX);
    for (uint32_t k = 0; k < op.noperands; k++)
        operands[k] = rows_make_get(m, hlo_operand(h, &op, k));
    assert(op.nresults == 1);
    HloType t = *hlo_value_type(h, op.results);
    TypeId type = h->values.at[op.results].type;
    bool cut = t.rank == 1 && t.dims[0] != m->columns;
    if (cut)
        type = hlo_type_tensor(h, t.dtype, 1, &m->columns);
    OpId made = hlo_op_like(h, &op, operands, type);
    if (cut && op.code == HLO_CONSTANT) { // one number everywhere, or it would not be a member
        HloAttr value = *hlo_attr(&op, AK_VALUE);
        hlo_op_own_attrs(h, made);
        value.type = type;
        *hlo_attr_slot(h, made, AK_VALUE) = value;
    }
    if (op.code == HLO_REDUCE)
        reduce_region_like(h, &op, made, h->values.at[op.results].type);
    const HloRegion *r = &h->regions.at[m->region];
    for (uint32_t i = 0; i < r->ops.n && m->once; i++)
        if (cse_equal(h, hlo_at(h, r->ops.at[i]), hlo_at(h, made))) { // both parts have it
            rows_make_set(m, op.results, hlo_at(h, r->ops.at[i])->results);
            return;
        }
    hlo_region_push(h, m->region, made);
    rows_make_set(m, op.results, hlo_at(h, made)->results);
}

void rows_make_result(const RowsMake *m, RowsResults *r, ValueId inner, ValueId old, TypeId type) {
    VEC_PUSH(m->c->scratch, &r->inner, inner);
    VEC_PUSH(m->c->scratch, &r->old, old);
    VEC_PUSH(m->c->scratch, &r->types, type);
}

void rows_make_results(const RowsMake *m, RowsResults *r, OpId rows) {
    const HloOp op = *hlo_at(m->h, rows);
    for (uint32_t k = 0; k < op.nresults; k++)
        rows_make_result(m, r, rows_returned(m->h, rows, k), op.results + k, m->h->values.at[op.results + k].type);
}

void rows_make_end(RowsMake *m, const RowsResults *r, Walk *w) {
    Hlo *h = m->h;
    ValueId *yield = ARENA_NEWN(m->c->scratch, ValueId, r->inner.n + 1);
    assert(r->inner.n == hlo_at(h, m->op)->nresults);
    for (uint32_t k = 0; k < r->inner.n; k++)
        yield[k] = rows_make_get(m, r->inner.at[k]);
    hlo_region_push(h, m->region, hlo_op(h, HLO_RETURN, hlo_at(h, m->op)->loc, r->inner.n, yield, 0, NULL));
    if (w)
        walk_grow(w);
    for (uint32_t k = 0; k < r->old.n && w; k++)
        if (r->old.at[k])
            walk_replace(w, r->old.at[k], hlo_at(h, m->op)->results + k);
}

OpId rows_make_again(Walk *w, OpId rows, const RowsResults *r) {
    RowsMake m = {.c = w->c, .h = w->hlo};
    rows_make_like(&m, rows, NULL, r->types.n, r->types.at);
    rows_make_all(&m, rows);
    rows_make_end(&m, r, w);
    return m.op;
}

void rows_make_group(RowsMake *m, Walk *w, const OpList *members, int64_t columns, const Values *outputs, RowsMember *member, void *of) {
    Hlo *h = m->h;
    TypeId *types = ARENA_NEWN(w->arena, TypeId, outputs->n + 1);
    ValueId *yield = ARENA_NEWN(w->arena, ValueId, outputs->n + 1);
    for (uint32_t i = 0; i < outputs->n; i++)
        types[i] = h->values.at[outputs->at[i]].type;
    rows_make_begin(m, hlo_at(h, members->at[members->n - 1])->loc, columns, outputs->n, types);
    OpList outer = walk_region_begin(w);
    for (uint32_t i = 0; i < members->n; i++) {
        const HloOp op = *hlo_at(h, members->at[i]);
        w->loc = op.loc;
        rows_make_set(m, op.results, member(of, m, &op));
    }
    for (uint32_t i = 0; i < outputs->n; i++) {
        yield[i] = rows_make_get(m, outputs->at[i]);
        assert(yield[i]);
    }
    w->loc = hlo_at(h, m->op)->loc;
    walk_region_end(w, m->region, outer, yield, outputs->n);
    ValueId results = walk_push(w, m->op);
    for (uint32_t i = 0; i < outputs->n; i++)
        walk_replace(w, outputs->at[i], results + i);
}

ValueId rows_returned(const Hlo *h, OpId rows, uint32_t k) {
    assert(hlo_at(h, rows)->code == HLO_ROWS && k < hlo_at(h, rows)->nresults);
    const HloRegion *r = hlo_op_region(h, hlo_at(h, rows), 0);
    return hlo_operand(h, hlo_at(h, r->ops.at[r->ops.n - 1]), k);
}

OpId rows_score(const Hlo *h, const Users *u, OpId rows, uint32_t i, int64_t most) {
    const int64_t *kinds = rows_kinds(hlo_at(h, rows));
    assert(i < hlo_at(h, rows)->noperands);
    ValueId v = hlo_operand(h, hlo_at(h, rows), i);
    for (OpId def = h->values.at[v].def; kinds[i] == FUSED_SAME && def; def = h->values.at[v].def) {
        if (users_reads(u, v) != 1 || u->region[def] != u->region[rows])
            return 0;
        const HloOp *op = hlo_at(h, def);
        if (op->code == HLO_RESHAPE) {
            v = hlo_operand(h, op, 0);
            continue;
        }
        return dot_on_tensor_engine(h, op) && dot_contracted(h, op) <= most ? def : 0;
    }
    return 0;
}
