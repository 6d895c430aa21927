// SPDX-License-Identifier: Apache-2.0
// dots.c — bring matrix products into the form the tensor engine takes.
// needs: values defined before use
// gives: every product the tensor engine can do is a dot_general with operands of one type, in which the
//        batch dimensions come as they are and the free and the contracting dimensions of each operand
//        collapse to one stride each
// stale: nothing
//
// A group of dimensions collapses when each one's stride is the next one's stride times its size. Where a
// group does not, a transpose puts the operand into [batch, free, contracting] or [batch, contracting, free] order, and a
// reshape is not needed: strides tell. Products of other types (integers, f64, complex) are left for GpSimd.
#include <assert.h>
#include <string.h>

#include "hlo/dot.h"
#include "pass/walk.h"

typedef struct Dots {
    Compile *c;
    Hlo *h;
    Walk w;
} Dots;

static ValueId push(Dots *d, OpId id) { return walk_push(&d->w, id); }

// stablehlo.dot is a dot_general over the last dimension of lhs and the first of rhs.
static OpId widen_dot(Dots *d, OpId id) {
    Hlo *h = d->h;
    HloOp op = *hlo_at(h, id);
    ValueId in[2] = {hlo_operand(h, &op, 0), hlo_operand(h, &op, 1)};
    int64_t last = hlo_value_type(h, in[0])->rank - 1, first = 0;
    TypeId type = h->values.at[op.results].type;
    OpId made = hlo_op_dot(h, op.loc, in[0], in[1], (DotPairs){.nc = 1, .lc = &last, .rc = &first}, type, hlo_attr(&op, AK_PRECISION_CONFIG));
    walk_grow(&d->w);
    walk_replace(&d->w, op.results, hlo_at(h, made)->results);
    return made;
}

static void set_iota(Hlo *h, OpId op, HloAttrKey key, int64_t first, uint32_t n) {
    int64_t v[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++)
        v[i] = first + i;
    *hlo_attr_slot(h, op, key) = (HloAttr){.kind = HA_INTS, .n = n, .ints = hlo_ints_dup(h, v, n)};
}

static int64_t strided(const HloType *t, const int64_t *dims, uint32_t n) {
    int64_t size, stride;
    return dot_group(t, dims, n, &size, &stride) ? 0 : t->elems;
}

// The contracting dimensions are pairs in any order: the one in which the operands, or the larger of them, need not be transposed.
static void order_pairs(Dots *d, OpId id) {
    static const HloAttrKey keys[2] = {AK_LHS_CONTRACTING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS};
    Hlo *h = d->h;
    HloOp op = *hlo_at(h, id);
    uint32_t n;
    const int64_t *now[2] = {hlo_ints(&op, keys[0], &n), hlo_ints(&op, keys[1], &n)};
    const HloType *t[2] = {hlo_value_type(h, hlo_operand(h, &op, 0)), hlo_value_type(h, hlo_operand(h, &op, 1))};
    int64_t best = strided(t[0], now[0], n) + strided(t[1], now[1], n), to[2][OTRN_MAX_RANK];
    for (int by = 0; by < 2 && best; by++) { // as they lie in one of them
        for (int side = 0; side < 2; side++)
            memcpy(to[side], now[side], n * sizeof *to[side]);
        for (uint32_t i = 1; i < n; i++)
            for (uint32_t k = i; k > 0 && to[by][k] < to[by][k - 1]; k--)
                for (int side = 0; side < 2; side++) {
                    int64_t swap = to[side][k];
                    to[side][k] = to[side][k - 1];
                    to[side][k - 1] = swap;
                }
        int64_t cost = strided(t[0], to[0], n) + strided(t[1], to[1], n);
        if (cost < best) {
            best = cost;
            hlo_set_ints(h, id, keys[0], to[0], n);
            hlo_set_ints(h, id, keys[1], to[1], n);
        }
    }
}

// Transposes one operand to [batch, free, contracting] when its groups do not collapse, or to [batch, contracting, free], which
// keeps neighbours together that are free.
static void order_operand(Dots *d, OpId id, bool rhs) {
    Hlo *h = d->h;
    HloOp op = *hlo_at(h, id);
    HloAttrKey bk = rhs ? AK_RHS_BATCHING_DIMENSIONS : AK_LHS_BATCHING_DIMENSIONS;
    HloAttrKey ck = rhs ? AK_RHS_CONTRACTING_DIMENSIONS : AK_LHS_CONTRACTING_DIMENSIONS;
    uint32_t nb, nc;
    const int64_t *b = hlo_ints(&op, bk, &nb), *c = hlo_ints(&op, ck, &nc);
    ValueId v = hlo_operand(h, &op, rhs);
    HloType t = *hlo_value_type(h, v);
    int64_t free_dims[OTRN_MAX_RANK], size, stride;
    uint32_t nf = dot_free_dims(&t, &op, rhs, free_dims);
    if (dot_group(&t, free_dims, nf, &size, &stride) && dot_group(&t, c, nc, &size, &stride))
        return;
    int64_t perm[OTRN_MAX_RANK], dims[OTRN_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < nb; i++)
        perm[n++] = b[i];
    bool last = nf && free_dims[nf - 1] == t.rank - 1;
    for (uint32_t i = 0; i < nc && last; i++)
        perm[n++] = c[i];
    for (uint32_t i = 0; i < nf; i++)
        perm[n++] = free_dims[i];
    for (uint32_t i = 0; i < nc && !last; i++)
        perm[n++] = c[i];
    assert(n == t.rank);
    for (uint32_t i = 0; i < n; i++)
        dims[i] = t.dims[perm[i]];
    TypeId type = hlo_type_tensor(h, t.dtype, t.rank, dims);
    OpId made = hlo_op(h, HLO_TRANSPOSE, op.loc, 1, &v, 1, &type);
    *hlo_attr_slot(h, made, AK_PERMUTATION) =
        (HloAttr){.kind = HA_INTS, .n = n, .ints = hlo_ints_dup(h, perm, n)};
    h->operands.at[op.operands + rhs] = push(d, made);
    set_iota(h, id, bk, 0, nb);
    set_iota(h, id, ck, last ? nb : nb + nf, nc);
}

static void canon(Dots *d, OpId id) {
    Hlo *h = d->h;
    HloOp op = *hlo_at(h, id);
    if (!dot_on_tensor_engine(h, &op))
        return;
    int l = hlo_value_type(h, hlo_operand(h, &op, 0))->dtype;
    int r = hlo_value_type(h, hlo_operand(h, &op, 1))->dtype;
    if (l != r) { // the array takes one type: widen both, which loses nothing
        for (uint32_t i = 0; i < 2; i++) {
            ValueId wide = walk_convert(&d->w, op.loc, hlo_operand(h, &op, i), DT_F32);
            h->operands.at[op.operands + i] = wide; // after the call: a new op may move the table
        }
    }
    HloAttr *attrs = arena_dup(h->arena, op.attrs, hlo_row(&op)->nattrs * sizeof *op.attrs);
    hlo_at(h, id)->attrs = attrs; // attributes may be shared with other copies of this op
    order_pairs(d, id);
    order_operand(d, id, false);
    order_operand(d, id, true);
}

static void dots_visit(void *pass, OpId id) {
    Dots *d = pass;
    if (hlo_at(d->h, id)->code == HLO_DOT)
        id = widen_dot(d, id);
    if (hlo_at(d->h, id)->code == HLO_DOT_GENERAL)
        canon(d, id);
    push(d, id);
}

void pass_dots(Compile *c) {
    Dots d = {.c = c, .h = c->hlo};
    walk_init(&d.w, c);
    walk_rewrite(&d.w, hlo_main(c->hlo)->body, WALK_ALL, dots_visit, &d);
}
