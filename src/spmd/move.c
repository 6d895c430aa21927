// SPDX-License-Identifier: Apache-2.0
// move.c — a value in the form an op wants it: whole, or in parts of some sharding.
//
// The way there is way.c's; here its steps become operations. What was made once is kept beside the value, and the
// next form is made from whatever is nearest.
#include <assert.h>
#include <string.h>

#include "spmd/way.h"

OpId move_op(Spmd *s, HloOpcode code, uint32_t n, const ValueId *operands, TypeId type) {
    assert(s->to); // before there is a region nothing can be added
    OpId id = hlo_op(s->h, code, s->loc, n, operands, 1, &type);
    hlo_region_push(s->h, s->to, id);
    return id;
}

static const int32_t *keep_i32s(Spmd *s, const int32_t *v, int64_t n) {
    void *data = arena_alloc(s->h->arena, (size_t)n * 4);
    return memcpy(data, v, (size_t)n * 4);
}

static ValueId add_i32s(Spmd *s, const int32_t *data, int64_t n, bool scalar) { // which stay as they are
    TypeId type = hlo_type_tensor(s->h, DT_I32, scalar ? 0 : 1, &n);
    OpId id = move_op(s, HLO_CONSTANT, 0, NULL, type);
    *hlo_attr_slot(s->h, id, AK_VALUE) =
        (HloAttr){.kind = HA_TENSOR, .type = type, .data = data, .n = (uint32_t)n * 4};
    return move_result(s, id);
}

ValueId move_number(Spmd *s, int32_t v, int dtype) {
    ValueId n = add_i32s(s, keep_i32s(s, &v, 1), 1, true);
    return dtype == DT_I32 ? n : move_result(s, move_op(s, HLO_CONVERT, 1, &n, hlo_type_tensor(s->h, dtype, 0, NULL)));
}

ValueId move_splat(Spmd *s, ValueId scalar, TypeId type) {
    OpId all = move_op(s, HLO_BROADCAST_IN_DIM, 1, &scalar, type);
    *hlo_attr_slot(s->h, all, AK_BROADCAST_DIMENSIONS) = (HloAttr){.kind = HA_INTS};
    return move_result(s, all);
}

static HloAttr ints_attr(Spmd *s, const int64_t *v, uint32_t n) {
    return (HloAttr){.kind = HA_INTS, .n = n, .ints = hlo_ints_dup(s->h, v, n)};
}

TypeId move_part_type(Spmd *s, TypeId whole, const Shards *sh) {
    HloType t = *hlo_type(s->h, whole);
    assert(sh->rank == t.rank);
    int64_t dims[OTRN_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        dims[i] = t.dims[i] / sh->cut[i].parts;
        if (t.dims[i] % sh->cut[i].parts)
            ctx_fail(s->h->ctx, OTRN_UNSUPPORTED, hlo_place(s->h, s->loc),
                     "dimension %d of size %lld cannot be cut into %lld equal parts", i,
                     (long long)t.dims[i], (long long)sh->cut[i].parts);
    }
    t.dims = dims;
    if (t.text) // an encoding or a quantised type stays
        return hlo_type_intern(s->h, &t);
    return t.kind == HT_TENSOR ? hlo_type_tensor(s->h, t.dtype, t.rank, dims) : whole;
}

// --- collectives -------------------------------------------------------------------------------

static const int64_t *groups_of(Spmd *s, const Shards *sh, uint32_t dim) {
    for (uint32_t i = 0; i < s->met.n; i++)
        if (s->met.at[i].dim == dim && shard_same(s->met.at[i].shards, sh))
            return s->met.at[i].groups;
    ShardRead r = spmd_reader(s, NULL);
    const int64_t *groups = shard_groups(&r, sh, dim);
    VEC_PUSH(s->c->scratch, &s->met, ((Met){sh, dim, groups}));
    return groups;
}

// The devices of a collective that has a dimension's parts meet.
static void meet(Spmd *s, OpId id, const Shards *sh, uint32_t dim) {
    assert(dim <= sh->rank && sh->cut[dim].parts > 1); // one device meets nobody
    *hlo_attr_slot(s->h, id, AK_CHANNEL_ID) = (HloAttr){.kind = HA_INT, .i = 1};
    *hlo_attr_slot(s->h, id, AK_REPLICA_GROUPS) =
        (HloAttr){.kind = HA_INTS2,
                  .n = s->devices,
                  .cols = (uint32_t)sh->cut[dim].parts,
                  .ints = groups_of(s, sh, dim)};
    if (hlo_at(s->h, id)->code != HLO_ALL_TO_ALL)
        *hlo_attr_slot(s->h, id, AK_USE_GLOBAL_DEVICE_IDS) = (HloAttr){.kind = HA_BOOL, .i = 1};
}

static void add_combiner(Spmd *s, OpId id, int dtype, ShardCombine combine) {
    static const HloOpcode codes[] = {[SHARD_ADD] = HLO_ADD, [SHARD_MAX] = HLO_MAXIMUM, [SHARD_MIN] = HLO_MINIMUM};
    Hlo *h = s->h;
    TypeId scalar = hlo_type_tensor(h, dtype, 0, NULL), types[2] = {scalar, scalar};
    RegionId body = hlo_op_add_region(h, id, 2, types);
    ValueId args[2] = {h->regions.at[body].args, h->regions.at[body].args + 1};
    OpId step = hlo_op(h, codes[combine], s->loc, 2, args, 1, &scalar);
    hlo_region_push(h, body, step);
    ValueId out = hlo_at(h, step)->results;
    hlo_region_push(h, body, hlo_op(h, HLO_RETURN, s->loc, 1, &out, 0, NULL));
}

// The op of a step that has devices meet, over a value of the new body. Its result is of type `type`.
static ValueId step_op(Spmd *s, HloOpcode code, const Step *st, ValueId v, TypeId type) {
    OpId id = move_op(s, code, 1, &v, type);
    meet(s, id, st->meet, st->along);
    int dtype = hlo_type(s->h, type)->dtype;
    if (code == HLO_ALL_REDUCE || code == HLO_REDUCE_SCATTER)
        add_combiner(s, id, dtype, st->combine);
    if (code == HLO_REDUCE_SCATTER)
        *hlo_attr_slot(s->h, id, AK_SCATTER_DIMENSION) = (HloAttr){.kind = HA_INT, .i = st->dim};
    if (code == HLO_ALL_GATHER)
        *hlo_attr_slot(s->h, id, AK_ALL_GATHER_DIM) = (HloAttr){.kind = HA_INT, .i = st->dim};
    if (code == HLO_ALL_TO_ALL) {
        *hlo_attr_slot(s->h, id, AK_SPLIT_DIMENSION) = (HloAttr){.kind = HA_INT, .i = st->into};
        *hlo_attr_slot(s->h, id, AK_CONCAT_DIMENSION) = (HloAttr){.kind = HA_INT, .i = st->dim};
        *hlo_attr_slot(s->h, id, AK_SPLIT_COUNT) = (HloAttr){.kind = HA_INT, .i = st->parts};
    }
    return move_result(s, id);
}

// The n-th device that had a part sends it to the n-th that wants it.
static ValueId step_permute(Spmd *s, const Step *st, ValueId v) {
    ShardRead r = spmd_reader(s, NULL);
    const uint32_t *from = shard_order(&r, st->meet), *to = shard_order(&r, st->after);
    int64_t *pairs = ARENA_NEWN(s->h->arena, int64_t, 2 * (size_t)s->devices);
    for (uint32_t i = 0; i < s->devices; i++) {
        pairs[2 * i] = from[i];
        pairs[2 * i + 1] = to[i];
    }
    OpId id = move_op(s, HLO_COLLECTIVE_PERMUTE, 1, &v, s->h->values.at[v].type);
    *hlo_attr_slot(s->h, id, AK_CHANNEL_ID) = (HloAttr){.kind = HA_INT, .i = 1};
    *hlo_attr_slot(s->h, id, AK_SOURCE_TARGET_PAIRS) =
        (HloAttr){.kind = HA_INTS2, .n = 2 * s->devices, .cols = 2, .ints = pairs};
    return move_result(s, id);
}

// --- cuts --------------------------------------------------------------------------------------

static const int32_t *offsets_of(Spmd *s, const Shards *sh, uint32_t dim, int64_t part_size) {
    Cut cut = shard_cut(sh, dim);
    for (uint32_t i = 0; i < s->offsets.n; i++)
        if (s->offsets.at[i].part == part_size && shard_cut_same(s->offsets.at[i].cut, cut, s->devices))
            return s->offsets.at[i].at;
    int32_t *table = ARENA_NEWN(s->h->arena, int32_t, s->devices);
    for (uint32_t d = 0; d < s->devices; d++)
        table[d] = (int32_t)(shard_index(sh, dim, d) * part_size);
    VEC_PUSH(s->c->scratch, &s->offsets, ((Offsets){cut, part_size, table}));
    return table;
}

// A table, looked up by the device's number.
ValueId move_offset(Spmd *s, const Shards *sh, uint32_t dim, int64_t part_size) {
    assert(sh->devices == s->devices && part_size >= 0);
    if (sh->cut[dim].parts == 1)
        return move_number(s, 0, DT_I32);
    OpId number = move_op(s, HLO_PARTITION_ID, 0, NULL, hlo_type_tensor(s->h, DT_UI32, 0, NULL));
    ValueId from[2] = {add_i32s(s, offsets_of(s, sh, dim, part_size), s->devices, false), move_result(s, number)};
    int64_t one = 1;
    OpId row = move_op(s, HLO_DYNAMIC_SLICE, 2, from, hlo_type_tensor(s->h, DT_I32, 1, &one));
    *hlo_attr_slot(s->h, row, AK_SLICE_SIZES) = ints_attr(s, &one, 1);
    ValueId v = move_result(s, row);
    return move_result(s, move_op(s, HLO_RESHAPE, 1, &v, hlo_type_tensor(s->h, DT_I32, 0, NULL)));
}

ValueId move_cut(Spmd *s, ValueId whole, const Shards *sh) {
    TypeId type = move_part_type(s, s->h->values.at[whole].type, sh);
    if (type == s->h->values.at[whole].type)
        return whole;
    uint32_t rank = sh->rank;
    ValueId operands[OTRN_MAX_RANK + 1] = {whole};
    for (uint32_t i = 0; i < rank; i++)
        operands[i + 1] = move_offset(s, sh, i, hlo_type(s->h, type)->dims[i]);
    OpId id = move_op(s, HLO_DYNAMIC_SLICE, rank + 1, operands, type);
    *hlo_attr_slot(s->h, id, AK_SLICE_SIZES) = ints_attr(s, hlo_type(s->h, type)->dims, rank);
    return move_result(s, id);
}

// A value that is the same everywhere needs no cutting: it is made again in the smaller shape.
static ValueId remade(Spmd *s, ValueId whole, const Shards *sh) {
    OpId def = s->h->values.at[whole].def;
    HloOp op = *hlo_at(s->h, def);
    const HloAttr *value = def && op.code == HLO_CONSTANT ? hlo_attr(&op, AK_VALUE) : NULL;
    bool splat = value && value->kind == HA_TENSOR && hlo_tensor_is_splat(s->h, value);
    bool scalar = def && op.code == HLO_BROADCAST_IN_DIM &&
                  hlo_value_type(s->h, hlo_operand(s->h, &op, 0))->rank == 0;
    if (!splat && !scalar)
        return 0;
    TypeId type = move_part_type(s, s->h->values.at[whole].type, sh);
    ValueId operand = scalar ? hlo_operand(s->h, &op, 0) : 0;
    OpId id = move_op(s, op.code, scalar, &operand, type);
    HloAttr *slot = hlo_attr_slot(s->h, id, scalar ? AK_BROADCAST_DIMENSIONS : AK_VALUE);
    *slot = scalar ? op.attrs[0] : *value;
    if (splat)
        slot->type = type;
    return move_result(s, id);
}

// The device with term 0 keeps the value, the others take 0; the largest and smallest of equals need nothing.
static ValueId make_terms(Spmd *s, ValueId v, const Shards *sh) {
    if (!shard_has_terms(sh) || sh->combine != SHARD_ADD)
        return v;
    Hlo *h = s->h;
    TypeId type = h->values.at[v].type;
    int dtype = hlo_type(h, type)->dtype;
    ValueId term = move_offset(s, sh, sh->rank, 1);
    ValueId other = move_result(s, move_op(s, HLO_CONVERT, 1, &term, hlo_type_tensor(h, DT_I1, 0, NULL)));
    ValueId pick[3] = {other, move_splat(s, move_number(s, 0, dtype), type), v};
    return move_result(s, move_op(s, HLO_SELECT, 3, pick, type));
}

// --- forms -------------------------------------------------------------------------------------

void move_set(Spmd *s, ValueId v, Form f) {
    assert(v < s->forms.n); // of the old body
    if (s->depth)
        VEC_PUSH(s->c->scratch, &s->undo, ((Undo){v, s->forms.at[v]}));
    s->forms.at[v] = f;
}

static void piece_add(Spmd *s, ValueId v, const Shards *sh, ValueId value) {
    assert(value && sh->rank == hlo_value_type(s->h, v)->rank);
    Form f = s->forms.at[v];
    Piece *p = ARENA_NEW(s->c->scratch, Piece);
    *p = (Piece){sh, value, f.pieces};
    f.pieces = p;
    move_set(s, v, f);
}

void move_set_piece(Spmd *s, ValueId v, const Shards *sh, ValueId value) {
    bool whole = !sh || shard_is_whole(sh);
    move_set(s, v, (Form){.whole = whole ? value : 0});
    if (!whole)
        piece_add(s, v, sh, value);
}

const Piece *move_made(const Spmd *s, ValueId v) {
    const Form *f = &s->forms.at[v];
    const Piece *p = f->whole || f->lazy ? NULL : f->pieces;
    while (p && p->next)
        p = p->next;
    return p;
}

// A part of this type with a dimension larger or smaller.
static TypeId resized(Spmd *s, ValueId v, const Step *st) {
    HloType t = *hlo_value_type(s->h, v);
    int64_t dims[OTRN_MAX_RANK];
    memcpy(dims, t.dims, t.rank * sizeof *dims);
    if (st->kind == STEP_GATHER || st->kind == STEP_SWAP)
        dims[st->dim] *= st->parts;
    if (st->kind == STEP_SCATTER || st->kind == STEP_SWAP)
        dims[st->kind == STEP_SWAP ? st->into : st->dim] /= st->parts;
    return hlo_type_tensor(s->h, t.dtype, t.rank, dims);
}

// From one way to lie to another without terms.
static ValueId reshard(Spmd *s, ValueId v, const Shards *from, const Shards *to) {
    static const HloOpcode codes[] = {[STEP_SCATTER] = HLO_REDUCE_SCATTER, [STEP_REDUCE] = HLO_ALL_REDUCE,
                                      [STEP_SWAP] = HLO_ALL_TO_ALL, [STEP_GATHER] = HLO_ALL_GATHER};
    Step steps[WAY_STEPS_MAX];
    uint32_t n = way_steps(s, from, to, steps);
    for (uint32_t i = 0; i < n; i++) {
        const Step *st = &steps[i];
        if (st->kind == STEP_CUT)
            v = move_cut(s, v, st->meet);
        else if (st->kind == STEP_PERMUTE)
            v = step_permute(s, st, v);
        else
            v = step_op(s, codes[st->kind], st, v, resized(s, v, st));
    }
    return v;
}

// Of what is there of a value, where this form is reached from with the fewest bytes; NULL: from the whole.
static const Piece *nearest(Spmd *s, ValueId v, const Shards *sh, uint64_t *bytes) {
    const Form *f = &s->forms.at[v];
    const Piece *best = NULL;
    *bytes = f->whole || f->lazy ? 0 : UINT64_MAX;
    for (const Piece *p = f->pieces; p; p = p->next) {
        uint64_t n = way_bytes(s, hlo_value_type(s->h, v), p->shards, sh);
        if (n < *bytes || (n == *bytes && best)) { // the oldest of equals
            *bytes = n;
            best = p;
        }
    }
    return best;
}

uint64_t move_bytes(Spmd *s, ValueId v, const Shards *sh) {
    uint64_t bytes = 0;
    if (!shard_is_whole(sh) || !s->forms.at[v].whole)
        nearest(s, v, shard_without_terms(sh, s->c->scratch), &bytes);
    return bytes;
}

ValueId move_whole(Spmd *s, ValueId v) {
    Form f = s->forms.at[v];
    assert(f.whole || f.pieces || f.lazy);
    if (f.whole)
        return f.whole;
    const Shards *all = shard_whole(s->c->scratch, hlo_value_type(s->h, v)->rank, s->devices);
    uint64_t bytes;
    const Piece *from = f.lazy ? NULL : nearest(s, v, all, &bytes);
    ValueId whole = from ? reshard(s, from->value, from->shards, all) : spmd_lazy(s, f.lazy, all);
    f = s->forms.at[v];
    f.whole = whole;
    move_set(s, v, f);
    return whole;
}

// Parts of a dimension become terms of all of it over the same devices: each has its part among zeros. 0: there is no such
// dimension.
static ValueId spread_terms(Spmd *s, const Piece *made, const Shards *sh) {
    uint32_t rank = sh->rank, dim = 0;
    Cut cuts[OTRN_MAX_RANK], terms = shard_cut(sh, rank), none = CUT_WHOLE;
    if (!shard_has_terms(sh) || sh->combine != SHARD_ADD || shard_has_terms(made->shards))
        return 0;
    while (dim < rank && (sh->cut[dim].parts > 1 || !shard_cut_same(shard_cut(made->shards, dim), terms, s->devices)))
        dim++;
    if (dim == rank)
        return 0;
    for (uint32_t i = 0; i < rank; i++)
        cuts[i] = i == dim ? terms : shard_cut(sh, i);
    const Shards *in_parts = shard_make(s->c->scratch, rank, s->devices, cuts, none, SHARD_ADD);
    ValueId v = reshard(s, made->value, made->shards, in_parts);
    HloType t = *hlo_value_type(s->h, v);
    int64_t dims[OTRN_MAX_RANK];
    memcpy(dims, t.dims, t.rank * sizeof *dims);
    dims[dim] *= terms.parts;
    TypeId type = hlo_type_tensor(s->h, t.dtype, t.rank, dims);
    ValueId operands[OTRN_MAX_RANK + 2] = {move_splat(s, move_number(s, 0, t.dtype), type), v};
    for (uint32_t i = 0; i < rank; i++)
        operands[2 + i] = i == dim ? move_offset(s, in_parts, dim, t.dims[dim]) : move_number(s, 0, DT_I32);
    return move_result(s, move_op(s, HLO_DYNAMIC_UPDATE_SLICE, rank + 2, operands, type));
}

ValueId move_part(Spmd *s, ValueId v, const Shards *sh) {
    assert(sh->devices == s->devices);
    if (shard_is_whole(sh))
        return move_whole(s, v);
    for (const Piece *p = s->forms.at[v].pieces; p; p = p->next)
        if (shard_same(p->shards, sh))
            return p->value;
    const Piece *made = move_made(s, v);
    ValueId part = made ? spread_terms(s, made, sh) : 0;
    if (part) {
        piece_add(s, v, sh, part);
        return part;
    }
    if (s->forms.at[v].lazy) {
        part = spmd_lazy(s, s->forms.at[v].lazy, shard_without_terms(sh, s->c->scratch));
    } else if (made) {
        uint64_t bytes;
        const Piece *from = nearest(s, v, sh, &bytes);
        part = reshard(s, from->value, from->shards, sh);
    } else {
        ValueId whole = s->forms.at[v].whole, again = remade(s, whole, sh);
        part = again ? again : move_cut(s, whole, sh);
    }
    part = make_terms(s, part, sh);
    piece_add(s, v, sh, part);
    return part;
}
