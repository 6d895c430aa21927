// SPDX-License-Identifier: Apache-2.0
// shapes_ops.c — ops that take shapes as operands become the ops that have them as attributes.
//
// The op keeps its id and its results; only code, operands and attributes change. An op whose shape
// operand is known only at run time stays as it is: its result may have a static type all the same.
#include <stdio.h>
#include <string.h>

#include "pass/shapes.h"

static ValueId operand(const Shapes *s, OpId id, uint32_t i) {
    return hlo_operand(s->h, hlo_at(s->h, id), i);
}

static const HloType *operand_type(const Shapes *s, OpId id, uint32_t i) {
    return hlo_value_type(s->h, operand(s, id, i));
}

static int result_rank(const Shapes *s, OpId id) {
    return hlo_value_type(s->h, hlo_at(s->h, id)->results)->rank;
}

// The op gets another code and its first operands only; attributes that both rows have stay.
static void become(Shapes *s, OpId id, HloOpcode code, uint32_t operands) {
    HloOp *op = hlo_at(s->h, id);
    const HloOpRow *from = hlo_row(op), *to = &hlo_op_rows[code];
    HloAttr *attrs = to->nattrs ? ARENA_NEWN(s->h->arena, HloAttr, to->nattrs) : NULL;
    for (int i = 0; i < to->nattrs; i++)
        for (int k = 0; k < from->nattrs; k++)
            if (from->attrs[k] == to->attrs[i])
                attrs[i] = op->attrs[k];
    op->code = (uint16_t)code;
    op->noperands = operands;
    op->attrs = attrs;
}

static void set_pairs(Shapes *s, OpId id, HloAttrKey key, const int64_t *v, uint32_t rows) {
    *hlo_attr_slot(s->h, id, key) =
        (HloAttr){.kind = HA_INTS2,
                  .n = 2 * rows,
                  .cols = 2,
                  .ints = hlo_ints_dup(s->h, v, 2 * (size_t)rows)};
}

// Result k has the shape that this operand lists.
static void result_from(Shapes *s, OpId id, uint32_t k, uint32_t shape) {
    ValueId v = hlo_at(s->h, id)->results + k;
    const HloType *t = hlo_value_type(s->h, v);
    int64_t dims[OTRN_MAX_RANK];
    if (t->kind == HT_TENSOR && shapes_ints(s, operand(s, id, shape), t->rank, dims))
        shapes_refine(s, v, dims);
}

static bool result_is_static(const Shapes *s, OpId id) {
    return !hlo_value_type(s->h, hlo_at(s->h, id)->results)->dynamic;
}

// --- ops -------------------------------------------------------------------------------------------

static bool dimension_size(Shapes *s, OpId id) {
    int64_t size = operand_type(s, id, 0)->dims[hlo_int(hlo_at(s->h, id), AK_DIMENSION, 0)];
    if (size == HLO_DYNAMIC)
        return true;
    if (size > INT32_MAX)
        hlo_fail(s->h, id, OTRN_CAPACITY, "the size %lld does not fit its result", (long long)size);
    become(s, id, HLO_CONSTANT, 0);
    TypeId type = s->h->values.at[hlo_at(s->h, id)->results].type;
    int32_t *data = ARENA_NEW(s->h->arena, int32_t);
    dtype_from_i64(DT_I32, data, size);
    *hlo_attr_slot(s->h, id, AK_VALUE) =
        (HloAttr){.kind = HA_TENSOR, .type = type, .n = 4, .data = data};
    return true;
}

// The first `size` elements along a dimension: nothing is behind them once sizes are exact.
static bool set_dimension_size(Shapes *s, OpId id) {
    const HloType *t = operand_type(s, id, 0);
    int64_t dim = hlo_int(hlo_at(s->h, id), AK_DIMENSION, 0), size;
    if (t->dynamic || !shapes_ints(s, operand(s, id, 1), 1, &size))
        return true;
    if (size < 0 || size > t->dims[dim])
        hlo_fail(s->h, id, OTRN_VERIFY, "size %lld for a dimension of at most %lld",
                 (long long)size, (long long)t->dims[dim]);
    int64_t start[OTRN_MAX_RANK] = {0}, limit[OTRN_MAX_RANK], stride[OTRN_MAX_RANK];
    for (int d = 0; d < t->rank; d++)
        limit[d] = d == dim ? size : t->dims[d], stride[d] = 1;
    become(s, id, HLO_SLICE, 1);
    hlo_set_ints(s->h, id, AK_START_INDICES, start, t->rank);
    hlo_set_ints(s->h, id, AK_LIMIT_INDICES, limit, t->rank);
    hlo_set_ints(s->h, id, AK_STRIDES, stride, t->rank);
    return true;
}

// Operand `keep` lists the result's shape.
static void shaped(Shapes *s, OpId id, HloOpcode to, uint32_t keep) {
    result_from(s, id, 0, keep);
    if (result_is_static(s, id))
        become(s, id, to, keep);
}

// Operands from `keep` on are the attributes, a number for each dimension of the first one.
static void listed(Shapes *s, OpId id, HloOpcode to, uint32_t keep, uint32_t n, const HloAttrKey *keys) {
    int64_t lists[3][OTRN_MAX_RANK];
    uint32_t rank = operand_type(s, id, 0)->rank;
    assert(n <= 3);
    for (uint32_t i = 0; i < n; i++)
        if (!shapes_ints(s, operand(s, id, keep + i), rank, lists[i]))
            return;
    become(s, id, to, keep);
    for (uint32_t i = 0; i < n; i++)
        hlo_set_ints(s->h, id, keys[i], lists[i], rank);
}

// limit = start + sizes, as written for a slice of known size at a place that is data.
static void sizes_from_limit(Shapes *s, OpId id) {
    ValueId start = operand(s, id, 1);
    OpId def = s->h->values.at[operand(s, id, 2)].def;
    if (!def || hlo_at(s->h, def)->code != HLO_ADD)
        return;
    ValueId a = operand(s, def, 0), b = operand(s, def, 1), result = hlo_at(s->h, id)->results;
    int64_t sizes[OTRN_MAX_RANK];
    uint32_t rank = (uint32_t)result_rank(s, id);
    if ((a == start || b == start) && shapes_ints(s, a == start ? b : a, rank, sizes))
        shapes_refine(s, result, sizes);
}

// Where the slice begins is data, how large it is and its steps of one are not: a dynamic_slice.
static bool slice_at_data(Shapes *s, OpId id, const int64_t *strides) {
    Hlo *h = s->h;
    for (int d = 0; d < result_rank(s, id); d++)
        if (strides[d] != 1)
            return true;
    sizes_from_limit(s, id);
    if (!result_is_static(s, id))
        return true;
    ValueId from = operand(s, id, 0), start = operand(s, id, 1);
    const HloType sizes = *hlo_value_type(h, hlo_at(h, id)->results);
    ValueId operands[OTRN_MAX_RANK + 1] = {from};
    int dtype = hlo_value_type(h, start)->dtype;
    int64_t one = 1;
    TypeId list = hlo_type_tensor(h, dtype, 1, &one), scalar = hlo_type_tensor(h, dtype, 0, NULL);
    for (int64_t d = 0; d < sizes.rank; d++) {
        OpId piece = hlo_op(h, HLO_SLICE, hlo_at(h, id)->loc, 1, &start, 1, &list);
        hlo_set_ints(s->h, piece, AK_START_INDICES, &d, 1);
        hlo_set_ints(s->h, piece, AK_LIMIT_INDICES, &(int64_t){d + 1}, 1);
        hlo_set_ints(s->h, piece, AK_STRIDES, &one, 1);
        ValueId cut = hlo_at(h, piece)->results;
        OpId number = hlo_op(h, HLO_RESHAPE, hlo_at(h, id)->loc, 1, &cut, 1, &scalar);
        operands[1 + d] = hlo_at(h, number)->results;
        shapes_push(s, piece);
        shapes_push(s, number);
    }
    shapes_grow(s);
    become(s, id, HLO_DYNAMIC_SLICE, 4);
    hlo_op_set_operands(h, id, 1u + sizes.rank, operands);
    hlo_set_ints(s->h, id, AK_SLICE_SIZES, sizes.dims, sizes.rank);
    return true;
}

static bool real_dynamic_slice(Shapes *s, OpId id) {
    static const HloAttrKey keys[3] = {AK_START_INDICES, AK_LIMIT_INDICES, AK_STRIDES};
    int64_t lists[3][OTRN_MAX_RANK];
    bool known[3];
    uint32_t rank = operand_type(s, id, 0)->rank;
    for (uint32_t i = 0; i < 3; i++)
        known[i] = shapes_ints(s, operand(s, id, 1 + i), rank, lists[i]);
    if (!known[2])
        return true;
    if (!known[0] || !known[1])
        return slice_at_data(s, id, lists[2]);
    const HloType *a = operand_type(s, id, 0);
    for (uint32_t d = 0; d < rank; d++) { // exporters mean a dynamic_slice, which moves into place
        bool may_move = a->dims[d] != HLO_DYNAMIC && lists[2][d] == 1;
        int64_t over = may_move ? lists[1][d] - a->dims[d] : 0;
        over = over > 0 && lists[0][d] >= over ? over : 0;
        lists[0][d] -= over, lists[1][d] -= over;
    }
    become(s, id, HLO_SLICE, 1);
    for (int i = 0; i < 3; i++)
        hlo_set_ints(s->h, id, keys[i], lists[i], rank);
    return true;
}

static bool convolution(Shapes *s, OpId id) {
    int64_t padding[2 * OTRN_MAX_RANK];
    uint32_t spatial = operand_type(s, id, 0)->rank - 2u;
    if (!shapes_ints(s, operand(s, id, 2), 2 * spatial, padding))
        return true;
    become(s, id, HLO_CONVOLUTION, 2);
    set_pairs(s, id, AK_PADDING, padding, spatial);
    uint32_t n;
    const int64_t *strides = hlo_ints(hlo_at(s->h, id), AK_WINDOW_STRIDES, &n);
    if (n > spatial) // as old JAX wrote them; a convolution has one for each dimension
        hlo_set_ints(s->h, id, AK_WINDOW_STRIDES, strides, spatial);
    return true;
}

// --- custom calls that stand for ops ---------------------------------------------------------------

static const HloAttr *extra(const HloOp *op, const char *name) {
    const HloNamed *n = hlo_named_find(op->extra, op->nextra, name);
    return n ? &n->value : NULL;
}

// The message names operand k+1 as {k}.
static void assertion_text(const Shapes *s, OpId id, const char *from, Buf *out) {
    while (*from) {
        unsigned k = 0;
        int used = 0;
        int64_t v;
        const HloOp *op = hlo_at(s->h, id);
        bool is_slot = sscanf(from, "{%3u}%n", &k, &used) == 1 && used && k + 1 < op->noperands;
        if (is_slot && shapes_ints(s, hlo_operand(s->h, op, k + 1), 1, &v)) {
            buf_printf(out, "%lld", (long long)v);
            from += used;
            continue;
        }
        buf_put(out, from++, 1);
    }
}

static bool shape_assertion(Shapes *s, OpId id) {
    int64_t holds;
    const HloOp *op = hlo_at(s->h, id);
    if (!op->noperands || op->nresults || !shapes_ints(s, hlo_operand(s->h, op, 0), 1, &holds))
        return true;
    if (holds)
        return false;
    const HloAttr *text = extra(op, "error_message");
    Buf out = {.arena = s->h->arena};
    assertion_text(s, id, text && text->kind == HA_STR ? text->s : "a shape assertion fails", &out);
    ctx_fail(s->h->ctx, OTRN_ARGUMENT, hlo_place(s->h, op->loc), "%s", buf_cstr(&out));
}

// Identity in its first operand; the second only told a size.
static bool operand_wrapper(Shapes *s, OpId id) {
    const HloOp *op = hlo_at(s->h, id);
    if (op->noperands < 1 || op->nresults != 1)
        return true;
    walk_replace(&s->w, op->results, hlo_operand(s->h, op, 0));
    return false;
}

static bool dynamic_top_k(Shapes *s, OpId id) {
    const HloOp *op = hlo_at(s->h, id);
    int64_t k;
    if (op->noperands != 2 || op->nresults != 2 || !shapes_ints(s, hlo_operand(s->h, op, 1), 1, &k))
        return true;
    become(s, id, HLO_CHLO_TOP_K, 1);
    *hlo_attr_slot(s->h, id, AK_K) = (HloAttr){.kind = HA_INT, .i = k};
    *hlo_attr_slot(s->h, id, AK_LARGEST) = (HloAttr){.kind = HA_BOOL, .i = 1};
    return true;
}

static int64_t rng_algorithm(const HloAttr *a) {
    if (a && (a->kind == HA_INT || a->kind == HA_ENUM))
        return a->i;
    bool is_text = a && (a->kind == HA_OPAQUE || a->kind == HA_STR);
    for (int64_t i = RNGALG_THREE_FRY; is_text && i <= RNGALG_PHILOX; i++)
        if (strstr(a->s, hlo_enum_name(AK_RNG_ALGORITHM, i)))
            return i;
    return RNGALG_DEFAULT;
}

static bool dynamic_rng_bit_generator(Shapes *s, OpId id) {
    const HloOp *op = hlo_at(s->h, id);
    if (op->noperands != 2 || op->nresults != 2)
        return true;
    int64_t algorithm = rng_algorithm(extra(op, "rng_algorithm"));
    result_from(s, id, 1, 1);
    if (hlo_value_type(s->h, hlo_at(s->h, id)->results + 1)->dynamic)
        return true;
    become(s, id, HLO_RNG_BIT_GENERATOR, 1);
    hlo_at(s->h, id)->nextra = 0;
    *hlo_attr_slot(s->h, id, AK_RNG_ALGORITHM) = (HloAttr){.kind = HA_ENUM, .i = algorithm};
    return true;
}

// The function that a custom call reduces with, when it takes 2n scalars.
static const HloFunc *reducer(Shapes *s, OpId id, uint32_t n) {
    const HloAttr *list = hlo_attr(hlo_at(s->h, id), AK_CALLED_COMPUTATIONS);
    if (!list || list->kind != HA_LIST || list->n != 1 || list->list[0].kind != HA_SYM)
        return NULL;
    const HloFunc *f = hlo_func_find(s->h, list->list[0].s);
    return f && f->body && s->h->regions.at[f->body].nargs == 2 * n ? f : NULL;
}

// Operands: N inputs, N initial values, window sizes, strides, base and window dilations, padding.
static bool dynamic_reduce_window(Shapes *s, OpId id) {
    static const HloAttrKey keys[4] = {AK_WINDOW_DIMENSIONS, AK_WINDOW_STRIDES, AK_BASE_DILATIONS,
                                       AK_WINDOW_DILATIONS};
    Hlo *h = s->h;
    const HloOp *op = hlo_at(h, id);
    uint32_t n = op->nresults;
    const HloFunc *f = n ? reducer(s, id, n) : NULL;
    if (!f || op->noperands != 2 * n + 5)
        return true;
    uint32_t rank = (uint32_t)result_rank(s, id);
    int64_t lists[4][OTRN_MAX_RANK], padding[2 * OTRN_MAX_RANK];
    for (uint32_t i = 0; i < 4; i++)
        if (!shapes_ints(s, operand(s, id, 2 * n + i), rank, lists[i]))
            return true;
    if (!shapes_ints(s, operand(s, id, 2 * n + 4), 2 * rank, padding))
        return true;
    become(s, id, HLO_REDUCE_WINDOW, 2 * n);
    for (int i = 0; i < 4; i++)
        hlo_set_ints(s->h, id, keys[i], lists[i], rank);
    set_pairs(s, id, AK_PADDING, padding, rank);
    HloRegion body = h->regions.at[f->body];
    TypeId *types = ARENA_NEWN(s->c->scratch, TypeId, body.nargs + 1);
    for (uint32_t i = 0; i < body.nargs; i++)
        types[i] = h->values.at[body.args + i].type;
    inline_body(s->c, f, hlo_op_add_region(h, id, body.nargs, types));
    shapes_grow(s);
    return true;
}

// A custom call of dynamic shape may name the operands that hold its results' shapes.
static void shape_operands(Shapes *s, OpId id) {
    const HloAttr *list = extra(hlo_at(s->h, id), "indices_of_shape_operands");
    if (!list || list->kind != HA_TENSOR)
        return;
    const HloType *t = hlo_type(s->h, list->type);
    if (!dtype_is_int(t->dtype) || t->elems != hlo_at(s->h, id)->nresults)
        return;
    uint8_t *data = arena_alloc(s->c->scratch, hlo_type_bytes(t) + 1);
    hlo_tensor_expand(s->h, list, data);
    for (uint32_t k = 0; k < t->elems; k++) {
        int64_t i = dtype_to_i64(t->dtype, data + k * dtype_bytes(t->dtype));
        if (i >= 0 && i < hlo_at(s->h, id)->noperands)
            result_from(s, id, k, (uint32_t)i);
    }
}

static bool custom_call(Shapes *s, OpId id) {
    static const struct {
        const char *target;
        bool (*fn)(Shapes *s, OpId id);
    } rows[] = {
        {"shape_assertion", shape_assertion},
        {"stablehlo.shape_refinement_operand_wrapper", operand_wrapper},
        {"stablehlo.dynamic_top_k", dynamic_top_k},
        {"stablehlo.dynamic_rng_bit_generator", dynamic_rng_bit_generator},
        {"stablehlo.dynamic_reduce_window", dynamic_reduce_window},
    };
    const char *target = hlo_attr_str(hlo_at(s->h, id), AK_CALL_TARGET_NAME);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(target, rows[i].target))
            return rows[i].fn(s, id);
    shape_operands(s, id);
    return true;
}

bool shapes_rewrite(Shapes *s, OpId id) {
    static const HloAttrKey padding[] = {AK_EDGE_PADDING_LOW, AK_EDGE_PADDING_HIGH, AK_INTERIOR_PADDING}, sizes[] = {AK_SLICE_SIZES};
    assert(id && s->known.n == s->h->values.n);
    switch (hlo_at(s->h, id)->code) {
    case HLO_GET_DIMENSION_SIZE: return dimension_size(s, id);
    case HLO_SET_DIMENSION_SIZE: return set_dimension_size(s, id);
    case HLO_DYNAMIC_RESHAPE: shaped(s, id, HLO_RESHAPE, 1); return true;
    case HLO_DYNAMIC_BROADCAST_IN_DIM: shaped(s, id, HLO_BROADCAST_IN_DIM, 1); return true;
    case HLO_DYNAMIC_IOTA: shaped(s, id, HLO_IOTA, 0); return true;
    case HLO_DYNAMIC_PAD: listed(s, id, HLO_PAD, 2, 3, padding); return true;
    case HLO_REAL_DYNAMIC_SLICE: return real_dynamic_slice(s, id);
    case HLO_DYNAMIC_GATHER: listed(s, id, HLO_GATHER, 2, 1, sizes); return true;
    case HLO_DYNAMIC_CONV: return convolution(s, id);
    case HLO_RNG: result_from(s, id, 0, 2); return true; // bounds, bounds, shape
    case HLO_CUSTOM_CALL: return custom_call(s, id);
    default: return true;
    }
}
