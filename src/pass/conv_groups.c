// SPDX-License-Identifier: Apache-2.0
// conv_groups.c — convolutions of many small groups as ones of few large groups.
//
// The array multiplies 128 channels as quickly as 4. So up to 128 channels' groups become one, whose kernel has zeros between
// the channels that do not meet:
//
//   kernel [.., i, .., g o]  ──►  [.., p i, .., g o], zero where output group g is not number p of its pack
//
// The gradient by the kernel (groups of the batch) is computed for all pairs in a pack, and those that meet are picked. Where
// values are finite nothing changes but the order of sums; an infinity or NaN reaches the other groups of its pack.
#include "pass/convs.h"

#include <string.h>

#define PACK 128
#define WORK_MIN (1 << 20) // multiplications; less is one kernel's work
#define PLACES_MIN 4       // for each group in a pack: a kernel's zeros are made and loaded too

typedef struct Pack {
    Walk *w;
    Hlo *h;
    HloOp op;
    int64_t size, groups, outs; // groups in a pack; groups; output features of one
} Pack;

static ValueId broadcast(Pack *p, ValueId v, int rank, const int64_t *dims, const int64_t *at, uint32_t n) {
    return walk_broadcast(p->w, v, at, n, hlo_type_tensor(p->h, hlo_value_type(p->h, v)->dtype, rank, dims));
}

// v where its number in the pack (dimension `pack`) is that of the output feature (dimension `out`), else zero.
static ValueId meeting(Pack *p, ValueId v, int pack, int out) {
    HloType t = *hlo_value_type(p->h, v);
    int64_t features = p->groups * p->outs, dims[2] = {p->size, features}, at[2] = {pack, out};
    if (out < pack)
        dims[0] = features, dims[1] = p->size, at[0] = out, at[1] = pack;
    uint8_t *bits = ARENA_NEWN(p->w->arena, uint8_t, (size_t)(p->size * features));
    for (int64_t i = 0; i < p->size; i++)
        for (int64_t f = 0; f < features; f++)
            bits[out < pack ? f * p->size + i : i * features + f] = f / p->outs % p->size == i;
    TypeId flags = hlo_type_tensor(p->h, DT_I1, 2, dims);
    ValueId mask = walk_push(p->w, hlo_op_constant(p->h, p->op.loc, flags, bits, (size_t)(p->size * features)));
    ValueId none = walk_number(p->w, hlo_type_tensor(p->h, t.dtype, t.rank, t.dims), 0);
    return walk_select(p->w, broadcast(p, mask, t.rank, t.dims, at, 2), v, none);
}

// dims with one more of `size` elements before dimension `at`.
static int split(const HloType *t, int at, int64_t size, int64_t *dims) {
    int n = 0;
    for (int i = 0; i < t->rank; i++) {
        if (i == at)
            dims[n++] = size;
        dims[n++] = t->dims[i];
    }
    return n;
}

static ValueId packed_kernel(Pack *p, const ConvForm *f) {
    ValueId w = hlo_operand(p->h, &p->op, 1);
    HloType t = *hlo_value_type(p->h, w);
    int64_t dims[OTRN_MAX_RANK], at[OTRN_MAX_RANK];
    int rank = split(&t, f->kernel_in, p->size, dims);
    for (int i = 0; i < t.rank; i++)
        at[i] = i + (i >= f->kernel_in);
    w = broadcast(p, w, rank, dims, at, t.rank);
    w = meeting(p, w, f->kernel_in, (int)at[f->kernel_out]);
    memcpy(dims, t.dims, t.rank * sizeof *dims);
    dims[f->kernel_in] *= p->size;
    return walk_reshape(p->w, w, t.rank, dims);
}

// The largest number of groups that divides them and fits the array.
static int64_t pack_size(int64_t groups, int64_t ins, int64_t outs) {
    int64_t best = 1;
    for (int64_t n = 2; n <= groups && n * ins <= PACK && n * outs <= PACK; n++)
        if (groups % n == 0)
            best = n;
    return best;
}

OpId conv_packed(Walk *walk, OpId id, const ConvForm *f, ConvPicked *picked) {
    Hlo *h = walk->hlo;
    HloOp op = *hlo_at(h, id);
    HloType w = *hlo_value_type(h, hlo_operand(h, &op, 1)), y = *hlo_value_type(h, op.results);
    bool by_batch = f->batch_groups > 1;
    Pack p = {.w = walk, .h = h, .op = op, .groups = by_batch ? f->batch_groups : f->feature_groups};
    *picked = (ConvPicked){0};
    if (p.groups < 2 || y.rank >= OTRN_MAX_RANK || w.elems >= INT32_MAX / PACK)
        return 0;
    assert(w.dims[f->kernel_out] % p.groups == 0);
    p.outs = w.dims[f->kernel_out] / p.groups;
    int64_t ins = by_batch ? y.dims[f->out_batch] : w.dims[f->kernel_in];
    p.size = pack_size(p.groups, ins, p.outs);
    assert(p.groups % p.size == 0);
    double work = (double)y.elems * (double)(w.elems / w.dims[f->kernel_out]);
    int64_t places = by_batch ? w.elems / w.dims[f->kernel_out] : y.elems / y.dims[f->out_feature];
    if (p.size < 2 || ins < 2 || p.outs < 2 || work < WORK_MIN || places < PLACES_MIN * p.size)
        return 0;
    ValueId in[2] = {hlo_operand(h, &op, 0), by_batch ? hlo_operand(h, &op, 1) : packed_kernel(&p, f)};
    int64_t dims[OTRN_MAX_RANK];
    memcpy(dims, y.dims, y.rank * sizeof *dims);
    dims[f->out_batch] *= by_batch ? p.size : 1;
    TypeId type = hlo_type_tensor(h, y.dtype, y.rank, dims);
    OpId made = hlo_op_like(h, hlo_at(h, id), in, type);
    walk_grow(walk);
    hlo_op_own_attrs(h, made);
    hlo_attr_slot(h, made, by_batch ? AK_BATCH_GROUP_COUNT : AK_FEATURE_GROUP_COUNT)->i = p.groups / p.size;
    if (by_batch)
        *picked = (ConvPicked){p.size, p.groups, p.outs, f->out_batch, f->out_feature};
    return made;
}

ValueId conv_pick(Walk *walk, OpId from, ValueId v, const ConvPicked *picked) {
    Hlo *h = walk->hlo;
    Pack p = {.w = walk, .h = h, .op = *hlo_at(h, from), .size = picked->size, .groups = picked->groups, .outs = picked->outs};
    assert(picked->size > 1 && picked->groups % picked->size == 0);
    assert(hlo_value_type(h, v)->elems == picked->size * hlo_value_type(h, p.op.results)->elems);
    TypeId type = h->values.at[p.op.results].type;
    const HloType *t = hlo_type(h, type);
    int64_t dims[OTRN_MAX_RANK];
    int rank = split(t, picked->batch, picked->size, dims), out = picked->feature + (picked->feature >= picked->batch);
    v = meeting(&p, walk_reshape(walk, v, rank, dims), picked->batch, out); // all but one element of a pack are zero
    return walk_sum(walk, v, (int64_t[]){picked->batch}, 1, type);
}
