// SPDX-License-Identifier: Apache-2.0
// verify_move.c — ops that move elements: the result's shape follows from operand and attributes.
#include "hlo/verify.h"

// Raises unless the result has these dimensions.
static void result_dims(Verify *v, const char *rule, int rank, const int64_t *dims) {
    const HloType *r = verify_out(v, 0);
    bool same = r->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = verify_dim_same(r->dims[i], dims[i]);
    if (same)
        return;
    HloType want = {.kind = HT_TENSOR, .dtype = r->dtype, .rank = (uint8_t)rank, .dims = dims};
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 && dims[i] != HLO_DYNAMIC)
            verify_fail(v, "%s: dimension %d of the result would be negative", rule, i);
    TypeId t = hlo_type_intern(v->h, &want);
    verify_fail(v, "%s: the result must be %s, but is %s", rule,
                verify_type_text(v, hlo_type(v->h, t)), verify_type_text(v, verify_out(v, 0)));
}

static void check_reshape(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    verify_same_elem(v, "C1", a, r);
    if (!a->dynamic && !r->dynamic && a->elems != r->elems)
        verify_fail(v, "C2: %s has %lld elements and %s has %lld", verify_type_text(v, a),
                    (long long)a->elems, verify_type_text(v, r), (long long)r->elems);
}

static void check_broadcast_in_dim(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    uint32_t n;
    const int64_t *d = verify_ints(v, AK_BROADCAST_DIMENSIONS, &n);
    verify_same_elem(v, "C1", a, r);
    verify_size(v, AK_BROADCAST_DIMENSIONS, a->rank);
    verify_dims_in(v, AK_BROADCAST_DIMENSIONS, r->rank);
    verify_unique(v, AK_BROADCAST_DIMENSIONS);
    for (uint32_t i = 0; i < n; i++)
        if (a->dims[i] != 1 && !verify_dim_same(a->dims[i], r->dims[d[i]]))
            verify_fail(v, "C5: dimension %u of %s does not fit dimension %lld of %s", i,
                        verify_type_text(v, a), (long long)d[i], verify_type_text(v, r));
}

static void check_broadcast(Verify *v) {
    const HloType *a = verify_in(v, 0);
    uint32_t n;
    const int64_t *sizes = verify_ints(v, AK_BROADCAST_SIZES, &n);
    int64_t dims[OTRN_MAX_RANK];
    verify_same_elem(v, "operand and result", a, verify_out(v, 0));
    verify_that(v, n + a->rank <= OTRN_MAX_RANK, "too many dimensions");
    for (uint32_t i = 0; i < n; i++)
        dims[i] = sizes[i];
    for (int i = 0; i < a->rank; i++)
        dims[n + (uint32_t)i] = a->dims[i];
    result_dims(v, "broadcast_sizes", (int)n + a->rank, dims);
}

static void check_transpose(Verify *v) {
    const HloType *a = verify_in(v, 0);
    uint32_t n;
    const int64_t *d = verify_ints(v, AK_PERMUTATION, &n);
    verify_same_elem(v, "C1", a, verify_out(v, 0));
    verify_size(v, AK_PERMUTATION, a->rank);
    verify_dims_in(v, AK_PERMUTATION, a->rank);
    verify_unique(v, AK_PERMUTATION);
    int64_t dims[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++)
        dims[i] = a->dims[d[i]];
    result_dims(v, "C3", (int)n, dims);
}

static void check_reverse(Verify *v) {
    const HloType *a = verify_in(v, 0);
    verify_same_type(v, "C1", a, verify_out(v, 0));
    verify_dims_in(v, AK_DIMENSIONS, a->rank);
    verify_unique(v, AK_DIMENSIONS);
}

static void check_slice(Verify *v) {
    const HloType *a = verify_in(v, 0);
    uint32_t n;
    const int64_t *start = verify_ints(v, AK_START_INDICES, &n);
    const int64_t *limit = verify_ints(v, AK_LIMIT_INDICES, &n);
    const int64_t *stride = verify_ints(v, AK_STRIDES, &n);
    verify_same_elem(v, "C1", a, verify_out(v, 0));
    verify_size(v, AK_START_INDICES, a->rank);
    verify_size(v, AK_LIMIT_INDICES, a->rank);
    verify_size(v, AK_STRIDES, a->rank);
    int64_t dims[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        bool inside = a->dims[i] == HLO_DYNAMIC || limit[i] <= a->dims[i];
        if (start[i] < 0 || start[i] > limit[i] || !inside)
            verify_fail(v, "C3: dimension %u: [%lld, %lld) is not inside %s", i, (long long)start[i],
                        (long long)limit[i], verify_type_text(v, a));
        verify_that(v, stride[i] > 0, "C4: strides must be positive");
        int64_t span = limit[i] - start[i];
        dims[i] = span ? (span - 1) / stride[i] + 1 : 0;
    }
    result_dims(v, "C5", (int)n, dims);
}

// Start indices from operand `first` on: one scalar per dimension, all of one integer type.
static void start_indices(Verify *v, uint32_t first, const HloType *a) {
    if (v->op->noperands != first + a->rank)
        verify_fail(v, "%u start indices for %d dimensions", v->op->noperands - first, a->rank);
    for (uint32_t i = first; i < v->op->noperands; i++) {
        const HloType *t = verify_in(v, i);
        verify_that(v, t->rank == 0 && verify_is_index(t), "start indices must be integer scalars");
        verify_same_type(v, "start indices", verify_in(v, first), t);
    }
}

static void check_dynamic_slice(Verify *v) {
    const HloType *a = verify_in(v, 0);
    uint32_t n;
    const int64_t *sizes = verify_ints(v, AK_SLICE_SIZES, &n);
    verify_same_elem(v, "C1", a, verify_out(v, 0));
    start_indices(v, 1, a);
    verify_size(v, AK_SLICE_SIZES, a->rank);
    for (uint32_t i = 0; i < n; i++)
        if (sizes[i] < 0 || (a->dims[i] != HLO_DYNAMIC && sizes[i] > a->dims[i]))
            verify_fail(v, "C4: a slice of %lld along dimension %u of %s", (long long)sizes[i], i,
                        verify_type_text(v, a));
    result_dims(v, "C5", (int)n, sizes);
}

static void check_dynamic_update_slice(Verify *v) {
    const HloType *a = verify_in(v, 0), *u = verify_in(v, 1);
    verify_same_type(v, "C1", a, verify_out(v, 0));
    verify_same_elem(v, "C2", u, a);
    verify_that(v, u->rank == a->rank, "C3: the update must have the operand's rank");
    start_indices(v, 2, a);
    for (int i = 0; i < a->rank; i++)
        if (u->dims[i] != HLO_DYNAMIC && a->dims[i] != HLO_DYNAMIC && u->dims[i] > a->dims[i])
            verify_fail(v, "C6: the update %s does not fit into %s", verify_type_text(v, u),
                        verify_type_text(v, a));
}

static void check_pad(Verify *v) {
    const HloType *a = verify_in(v, 0), *value = verify_in(v, 1);
    uint32_t n;
    const int64_t *low = verify_ints(v, AK_EDGE_PADDING_LOW, &n);
    const int64_t *high = verify_ints(v, AK_EDGE_PADDING_HIGH, &n);
    const int64_t *inner = verify_ints(v, AK_INTERIOR_PADDING, &n);
    verify_same_elem(v, "C1", a, value);
    verify_same_elem(v, "C1", a, verify_out(v, 0));
    verify_that(v, value->rank == 0, "the padding value must be a scalar");
    verify_size(v, AK_EDGE_PADDING_LOW, a->rank);
    verify_size(v, AK_EDGE_PADDING_HIGH, a->rank);
    verify_size(v, AK_INTERIOR_PADDING, a->rank);
    int64_t dims[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        verify_that(v, inner[i] >= 0, "C3: interior_padding must not be negative");
        int64_t gaps = a->dims[i] > 1 ? a->dims[i] - 1 : 0;
        __int128 size = (__int128)a->dims[i] + (__int128)gaps * inner[i] + low[i] + high[i];
        if (size > INT64_MAX / 2)
            verify_fail(v, "C4: dimension %u of the result is too large", i);
        dims[i] = a->dims[i] == HLO_DYNAMIC ? HLO_DYNAMIC : size < 0 ? -1 : (int64_t)size;
    }
    result_dims(v, "C4", (int)n, dims);
}

static void check_concatenate(Verify *v) {
    verify_that(v, v->op->noperands > 0, "C3: there must be an input");
    const HloType *a = verify_in(v, 0);
    int64_t dim = verify_dim_attr(v, AK_DIMENSION, a->rank), dims[OTRN_MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        dims[i] = a->dims[i];
    for (uint32_t k = 1; k < v->op->noperands; k++) {
        const HloType *b = verify_in(v, k);
        verify_same_elem(v, "C1", a, b);
        bool same = a->rank == b->rank;
        for (int i = 0; same && i < a->rank; i++) {
            same = i == dim || verify_dim_same(dims[i], b->dims[i]);
            if (i != dim && dims[i] == HLO_DYNAMIC)
                dims[i] = b->dims[i];
        }
        if (!same)
            verify_fail(v, "C2: %s and %s differ in more than dimension %lld",
                        verify_type_text(v, a), verify_type_text(v, b), (long long)dim);
        if (dims[dim] == HLO_DYNAMIC || b->dims[dim] == HLO_DYNAMIC)
            dims[dim] = HLO_DYNAMIC;
        else if (__builtin_add_overflow(dims[dim], b->dims[dim], &dims[dim]))
            verify_fail(v, "the result is too large");
    }
    verify_same_elem(v, "C5", a, verify_out(v, 0));
    result_dims(v, "C6", a->rank, dims);
}

static void check_iota(Verify *v) {
    const HloType *r = verify_out(v, 0);
    verify_dim_attr(v, AK_IOTA_DIMENSION, r->rank);
    verify_that(v, r->dtype != DT_I1, "iota cannot count in i1");
}

static void check_bitcast(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    int abits = dtype_row(a->dtype)->bits, rbits = dtype_row(r->dtype)->bits;
    const HloType *wide = abits >= rbits ? a : r, *narrow = abits >= rbits ? r : a;
    int ratio = abits >= rbits ? abits / rbits : rbits / abits;
    bool same = abits == rbits;
    if (narrow->rank != wide->rank + !same)
        verify_fail(v, "C1: the ranks of %s and %s do not fit their element sizes",
                    verify_type_text(v, a), verify_type_text(v, r));
    for (int i = 0; i < wide->rank; i++)
        if (!verify_dim_same(wide->dims[i], narrow->dims[i]))
            verify_fail(v, "C1: the shapes of %s and %s do not fit", verify_type_text(v, a),
                        verify_type_text(v, r));
    if (!same && !verify_dim_same(narrow->dims[wide->rank], ratio))
        verify_fail(v, "C1: the last dimension of %s must be %d", verify_type_text(v, narrow), ratio);
    verify_that(v, dtype_is_complex(a->dtype) == dtype_is_complex(r->dtype),
                "C2: complex elements only become complex elements");
}

// --- shapes that are data --------------------------------------------------------------------------

// Operand i lists one number per dimension of a tensor of this rank.
static void shape_operand(Verify *v, uint32_t i, int rank) {
    const HloType *t = verify_in(v, i);
    if (t->rank != 1 || !verify_is_index(t) || !verify_dim_same(t->dims[0], rank))
        verify_fail(v, "operand %u must list %d integers, but is %s", i, rank,
                    verify_type_text(v, t));
}

static void check_dynamic(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    switch (v->op->code) {
    case HLO_DYNAMIC_RESHAPE:
        verify_same_elem(v, "C1", a, r);
        shape_operand(v, 1, r->rank);
        if (!a->dynamic && !r->dynamic && a->elems != r->elems)
            verify_fail(v, "C2: %s and %s differ in size", verify_type_text(v, a),
                        verify_type_text(v, r));
        break;
    case HLO_DYNAMIC_IOTA:
        shape_operand(v, 0, r->rank);
        verify_dim_attr(v, AK_IOTA_DIMENSION, r->rank);
        break;
    case HLO_DYNAMIC_BROADCAST_IN_DIM:
        shape_operand(v, 1, r->rank);
        check_broadcast_in_dim(v);
        verify_dims_in(v, AK_KNOWN_EXPANDING_DIMENSIONS, a->rank);
        verify_dims_in(v, AK_KNOWN_NONEXPANDING_DIMENSIONS, a->rank);
        break;
    case HLO_DYNAMIC_PAD:
        verify_same_elem(v, "C1", a, verify_in(v, 1));
        verify_same_elem(v, "C1", a, r);
        verify_that(v, a->rank == r->rank, "the result must have the operand's rank");
        for (uint32_t i = 2; i < 5; i++)
            shape_operand(v, i, a->rank);
        break;
    default: // real_dynamic_slice
        verify_same_elem(v, "operand and result", a, r);
        verify_that(v, a->rank == r->rank, "the result must have the operand's rank");
        for (uint32_t i = 1; i < 4; i++)
            shape_operand(v, i, a->rank);
    }
}

bool verify_move(Verify *v) {
    static void (*const checks[HLO_OPCODE_COUNT])(Verify *) = {
        [HLO_RESHAPE] = check_reshape,
        [HLO_BROADCAST_IN_DIM] = check_broadcast_in_dim,
        [HLO_BROADCAST] = check_broadcast,
        [HLO_TRANSPOSE] = check_transpose,
        [HLO_REVERSE] = check_reverse,
        [HLO_SLICE] = check_slice,
        [HLO_DYNAMIC_SLICE] = check_dynamic_slice,
        [HLO_DYNAMIC_UPDATE_SLICE] = check_dynamic_update_slice,
        [HLO_PAD] = check_pad,
        [HLO_CONCATENATE] = check_concatenate,
        [HLO_IOTA] = check_iota,
        [HLO_BITCAST_CONVERT] = check_bitcast,
        [HLO_DYNAMIC_RESHAPE] = check_dynamic,
        [HLO_DYNAMIC_IOTA] = check_dynamic,
        [HLO_DYNAMIC_BROADCAST_IN_DIM] = check_dynamic,
        [HLO_DYNAMIC_PAD] = check_dynamic,
        [HLO_REAL_DYNAMIC_SLICE] = check_dynamic,
    };
    if (!checks[v->op->code])
        return false;
    checks[v->op->code](v);
    return true;
}
