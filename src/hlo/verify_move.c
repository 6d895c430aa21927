// SPDX-License-Identifier: Apache-2.0
// verify_move.c — ops that move elements: the result's shape follows from operand and attributes.
#include "hlo/verify.h"

// Raises unless the result has these dimensions.
static void result_dims(Verify *v, const char *rule, int rank, const int64_t *dims) {
    const HloType *r = verify_out(v, 0);
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 && dims[i] != HLO_DYNAMIC)
            verify_break(v, rule, "dimension %d of the result would be negative", i);
    HloType want = {.kind = HT_TENSOR, .dtype = r->dtype, .rank = (uint8_t)rank, .dims = dims};
    if (verify_shape_same(&want, r))
        return;
    TypeId t = hlo_type_intern(v->h, &want);
    verify_break(v, rule, "the result must be %s, but is %s", verify_type_text(v, hlo_type(v->h, t)),
                 verify_type_text(v, verify_out(v, 0)));
}

// A result's shape is known, or unknown in one dimension that has a bound: ops of other names take shapes as data.
static void result_known(Verify *v) {
    const HloType *r = verify_out(v, 0);
    int unknown = 0;
    for (int i = 0; i < r->rank; i++)
        unknown += r->dims[i] == HLO_DYNAMIC;
    verify_that(v, !unknown || (unknown == 1 && r->text && r->text[0] == '#'), NULL,
                "the shape of the result must be known, or all but one bounded dimension of it");
}

// Element types are the same; scales may have moved to another dimension (verify_quant_moved looks at those).
static void moved_elem(Verify *v, const char *rule) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    verify_same_elem(v, rule, a, r);
    if (a->dtype != r->dtype)
        verify_exact_elem(v, rule, a, r);
    verify_quant_moved(v);
}

static void check_reshape(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    result_known(v);
    if (!a->dynamic && !r->dynamic && a->elems != r->elems)
        verify_break(v, "C2", "%s has %lld elements and %s has %lld", verify_type_text(v, a), (long long)a->elems,
                     verify_type_text(v, r), (long long)r->elems);
    moved_elem(v, "C1");
}

static void check_broadcast_in_dim(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    uint32_t n;
    const int64_t *d = verify_ints(v, AK_BROADCAST_DIMENSIONS, &n);
    verify_same_elem(v, "C1", a, r);
    verify_size(v, "C2", AK_BROADCAST_DIMENSIONS, a->rank);
    verify_dims_in(v, "C3", AK_BROADCAST_DIMENSIONS, r->rank);
    verify_unique(v, "C4", AK_BROADCAST_DIMENSIONS);
    for (uint32_t i = 0; i < n; i++)
        if (a->dims[i] != 1 && !verify_dim_same(a->dims[i], r->dims[d[i]]))
            verify_break(v, "C5", "dimension %u of %s does not fit dimension %lld of %s", i, verify_type_text(v, a),
                         (long long)d[i], verify_type_text(v, r));
    moved_elem(v, "C1");
    if (v->op->code == HLO_BROADCAST_IN_DIM)
        result_known(v);
}

static void check_broadcast(Verify *v) { // an older op: no numbers
    const HloType *a = verify_in(v, 0);
    uint32_t n;
    const int64_t *sizes = verify_ints(v, AK_BROADCAST_SIZES, &n);
    int64_t dims[OTRN_MAX_RANK];
    verify_exact_elem(v, NULL, a, verify_out(v, 0));
    verify_that(v, n + a->rank <= OTRN_MAX_RANK, NULL, "too many dimensions");
    for (uint32_t i = 0; i < n; i++)
        dims[i] = sizes[i] < 0 ? -1 : sizes[i];
    for (int i = 0; i < a->rank; i++)
        dims[n + (uint32_t)i] = a->dims[i];
    result_dims(v, NULL, (int)n + a->rank, dims);
}

static void check_transpose(Verify *v) {
    const HloType *a = verify_in(v, 0);
    uint32_t n;
    const int64_t *d = verify_ints(v, AK_PERMUTATION, &n);
    verify_size(v, "C2", AK_PERMUTATION, a->rank);
    verify_dims_in(v, "C2", AK_PERMUTATION, a->rank);
    verify_unique(v, "C2", AK_PERMUTATION);
    int64_t dims[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++)
        dims[i] = a->dims[d[i]];
    result_dims(v, "C3", (int)n, dims);
    moved_elem(v, "C1");
}

static void check_reverse(Verify *v) {
    const HloType *a = verify_in(v, 0);
    verify_exact_type(v, "C1", a, verify_out(v, 0));
    verify_dims_in(v, "C3", AK_DIMENSIONS, a->rank);
    verify_unique(v, "C2", AK_DIMENSIONS);
}

static void check_exchange(Verify *v) {
    const HloType *a = verify_in(v, 0);
    verify_exact_type(v, NULL, a, verify_out(v, 0));
    verify_that(v, a->rank && a->dims[a->rank - 1] % 2 == 0, NULL, "the last dimension must have halves");
}

static void check_slice(Verify *v) {
    const HloType *a = verify_in(v, 0);
    uint32_t n;
    const int64_t *start = verify_ints(v, AK_START_INDICES, &n);
    const int64_t *limit = verify_ints(v, AK_LIMIT_INDICES, &n);
    const int64_t *stride = verify_ints(v, AK_STRIDES, &n);
    verify_exact_elem(v, "C1", a, verify_out(v, 0));
    verify_size(v, "C2", AK_START_INDICES, a->rank);
    verify_size(v, "C2", AK_LIMIT_INDICES, a->rank);
    verify_size(v, "C2", AK_STRIDES, a->rank);
    int64_t dims[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        bool inside = a->dims[i] == HLO_DYNAMIC || limit[i] <= a->dims[i];
        if (start[i] < 0 || start[i] > limit[i] || !inside)
            verify_break(v, "C3", "dimension %u: [%lld, %lld) is not inside %s", i, (long long)start[i], (long long)limit[i],
                         verify_type_text(v, a));
        verify_that(v, stride[i] > 0, "C4", "strides must be positive");
        int64_t span = limit[i] - start[i];
        dims[i] = span ? (span - 1) / stride[i] + 1 : 0;
    }
    result_dims(v, "C5", (int)n, dims);
}

// Start indices from operand `first` on: one scalar per dimension, all of one integer type.
static void start_indices(Verify *v, uint32_t first, const HloType *a, const char *count, const char *same) {
    if (v->op->noperands != first + a->rank)
        verify_break(v, count, "%u start indices for %d dimensions", v->op->noperands - first, a->rank);
    for (uint32_t i = first; i < v->op->noperands; i++) {
        const HloType *t = verify_in(v, i);
        verify_that(v, t->rank == 0 && verify_is_index(t), verify_input_name(first), "start indices must be integer scalars");
        verify_same_type(v, same, verify_in(v, first), t);
    }
}

static void check_dynamic_slice(Verify *v) {
    const HloType *a = verify_in(v, 0);
    uint32_t n;
    const int64_t *sizes = verify_ints(v, AK_SLICE_SIZES, &n);
    verify_exact_elem(v, "C1", a, verify_out(v, 0));
    start_indices(v, 1, a, "C2", "C3");
    verify_size(v, "C2", AK_SLICE_SIZES, a->rank);
    for (uint32_t i = 0; i < n; i++)
        if (sizes[i] < 0 || (a->dims[i] != HLO_DYNAMIC && sizes[i] > a->dims[i]))
            verify_break(v, "C4", "a slice of %lld along dimension %u of %s", (long long)sizes[i], i, verify_type_text(v, a));
    result_dims(v, "C5", (int)n, sizes);
}

static void check_dynamic_update_slice(Verify *v) {
    const HloType *a = verify_in(v, 0), *u = verify_in(v, 1);
    verify_exact_type(v, "C1", a, verify_out(v, 0));
    verify_exact_elem(v, "C2", u, a);
    verify_that(v, u->rank == a->rank, "C3", "the update must have the operand's rank");
    start_indices(v, 2, a, "C4", "C5");
    for (int i = 0; i < a->rank; i++)
        if (u->dims[i] != HLO_DYNAMIC && a->dims[i] != HLO_DYNAMIC && u->dims[i] > a->dims[i])
            verify_break(v, "C6", "the update %s does not fit into %s", verify_type_text(v, u), verify_type_text(v, a));
}

// Sizes after padding, from lists of a->rank numbers each.
static void padded_dims(Verify *v, const int64_t *low, const int64_t *high, const int64_t *inner) {
    const HloType *a = verify_in(v, 0);
    int64_t dims[OTRN_MAX_RANK];
    for (int i = 0; i < a->rank; i++) {
        verify_that(v, inner[i] >= 0, "C3", "interior_padding must not be negative");
        int64_t gaps = a->dims[i] > 1 ? a->dims[i] - 1 : 0;
        __int128 size = (__int128)a->dims[i] + (__int128)gaps * inner[i] + low[i] + high[i];
        if (size > INT64_MAX / 2)
            verify_break(v, "C4", "dimension %d of the result is too large", i);
        dims[i] = a->dims[i] == HLO_DYNAMIC ? HLO_DYNAMIC : size < 0 ? -1 : (int64_t)size;
    }
    result_dims(v, "C4", a->rank, dims);
}

static void check_pad(Verify *v) {
    const HloType *a = verify_in(v, 0), *value = verify_in(v, 1);
    uint32_t n;
    verify_that(v, value->rank == 0, "I2", "the padding value must be a scalar");
    verify_exact_elem(v, "C1", a, value);
    verify_exact_elem(v, "C1", a, verify_out(v, 0));
    if (v->op->code == HLO_PAD) {
        verify_size(v, "C2", AK_EDGE_PADDING_LOW, a->rank);
        verify_size(v, "C2", AK_EDGE_PADDING_HIGH, a->rank);
        verify_size(v, "C2", AK_INTERIOR_PADDING, a->rank);
        padded_dims(v, verify_ints(v, AK_EDGE_PADDING_LOW, &n), verify_ints(v, AK_EDGE_PADDING_HIGH, &n),
                    verify_ints(v, AK_INTERIOR_PADDING, &n));
        return;
    }
    verify_that(v, a->rank == verify_out(v, 0)->rank, "C4", "the result must have the operand's rank");
    int64_t known[3][OTRN_MAX_RANK];
    bool all = true;
    for (uint32_t i = 2; i < 5; i++) {
        const HloType *t = verify_in(v, i);
        verify_that(v, t->rank == 1 && verify_is_index(t), verify_input_name(i), "paddings are lists of integers");
        verify_that(v, verify_dim_same(t->dims[0], a->rank), "C2", "a padding needs one number per dimension");
        all = verify_known_ints(v, i, known[i - 2], &n) && all;
        for (uint32_t k = 0; i == 4 && verify_known_ints(v, i, known[2], &n) && k < n; k++)
            verify_that(v, known[2][k] >= 0, "C3", "interior_padding must not be negative");
    }
    if (all)
        padded_dims(v, known[0], known[1], known[2]);
}

static void check_concatenate(Verify *v) {
    verify_that(v, v->op->noperands > 0, "C3", "there must be an input");
    const HloType *a = verify_in(v, 0);
    int64_t dim = verify_dim_attr(v, "C4", AK_DIMENSION, a->rank), dims[OTRN_MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        dims[i] = a->dims[i];
    for (uint32_t k = 1; k < v->op->noperands; k++) {
        const HloType *b = verify_in(v, k);
        verify_exact_elem(v, "C1", a, b);
        bool same = a->rank == b->rank;
        for (int i = 0; same && i < a->rank; i++) {
            same = i == dim || verify_dim_same(dims[i], b->dims[i]);
            if (i != dim && dims[i] == HLO_DYNAMIC)
                dims[i] = b->dims[i];
        }
        if (!same)
            verify_break(v, "C2", "%s and %s differ in more than dimension %lld", verify_type_text(v, a),
                         verify_type_text(v, b), (long long)dim);
        if (dims[dim] == HLO_DYNAMIC || b->dims[dim] == HLO_DYNAMIC)
            dims[dim] = HLO_DYNAMIC;
        else if (__builtin_add_overflow(dims[dim], b->dims[dim], &dims[dim]))
            verify_break(v, "C6", "the result is too large");
    }
    verify_exact_elem(v, "C5", a, verify_out(v, 0));
    result_dims(v, "C6", a->rank, dims);
}

static void check_iota(Verify *v) {
    const HloType *r = verify_out(v, 0);
    verify_dim_attr(v, "C1", AK_IOTA_DIMENSION, r->rank);
    verify_that(v, r->dtype != DT_I1, NULL, "iota cannot count in i1");
}

static void check_bitcast(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    verify_that(v, dtype_is_complex(a->dtype) == dtype_is_complex(r->dtype), "C2",
                "complex elements only become complex elements");
    int abits = dtype_row(a->dtype)->bits, rbits = dtype_row(r->dtype)->bits;
    const HloType *wide = abits >= rbits ? a : r, *narrow = abits >= rbits ? r : a;
    int ratio = abits >= rbits ? abits / rbits : rbits / abits;
    bool same = abits == rbits;
    if (narrow->rank != wide->rank + !same)
        verify_break(v, "C1", "the ranks of %s and %s do not fit their element sizes", verify_type_text(v, a),
                     verify_type_text(v, r));
    for (int i = 0; i < wide->rank; i++)
        if (!verify_dim_same(wide->dims[i], narrow->dims[i]))
            verify_break(v, "C1", "the shapes of %s and %s do not fit", verify_type_text(v, a), verify_type_text(v, r));
    if (!same && (!verify_dim_same(narrow->dims[wide->rank], ratio) || (abits * ratio != rbits && rbits * ratio != abits)))
        verify_break(v, "C1", "the last dimension of %s must be %d", verify_type_text(v, narrow), ratio);
}

// --- shapes that are data --------------------------------------------------------------------------

// Operand i lists the result's sizes: as many as it has dimensions, and when they are known, those of its type.
static void shape_operand(Verify *v, uint32_t i, const char *rule) {
    const HloType *t = verify_in(v, i), *r = verify_out(v, 0);
    if (t->rank != 1 || !verify_is_index(t))
        verify_break(v, verify_input_name(i), "operand %u must list integers, but is %s", i, verify_type_text(v, t));
    verify_that(v, t->dims[0] != HLO_DYNAMIC, verify_input_name(i), "the list of sizes must have a known length");
    if (t->dims[0] != r->rank)
        verify_break(v, rule, "%s cannot list the sizes of %s", verify_type_text(v, t), verify_type_text(v, r));
    int64_t dims[OTRN_MAX_RANK];
    uint32_t n;
    if (verify_known_ints(v, i, dims, &n)) {
        for (uint32_t k = 0; k < n; k++)
            dims[k] = dims[k] < 0 ? -1 : dims[k];
        result_dims(v, rule, (int)n, dims);
    }
}

static void check_dynamic_reshape(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    int64_t dims[OTRN_MAX_RANK], elems = 1;
    uint32_t n;
    shape_operand(v, 1, "C4");
    if (!a->dynamic && !r->dynamic && a->elems != r->elems)
        verify_break(v, "C2", "%s and %s differ in size", verify_type_text(v, a), verify_type_text(v, r));
    if (!a->dynamic && verify_known_ints(v, 1, dims, &n)) {
        for (uint32_t i = 0; i < n; i++)
            if (__builtin_mul_overflow(elems, dims[i], &elems))
                elems = -1;
        verify_that(v, elems == a->elems, "C2", "the new shape has another number of elements than the operand");
    }
    moved_elem(v, "C1");
}

static void check_dynamic_iota(Verify *v) {
    shape_operand(v, 0, "C2");
    verify_dim_attr(v, "C1", AK_IOTA_DIMENSION, verify_out(v, 0)->rank);
}

static void check_dynamic_broadcast_in_dim(Verify *v) {
    const HloType *a = verify_in(v, 0);
    static const HloAttrKey hints[2] = {AK_KNOWN_EXPANDING_DIMENSIONS, AK_KNOWN_NONEXPANDING_DIMENSIONS};
    bool seen[OTRN_MAX_RANK] = {0};
    int64_t dims[OTRN_MAX_RANK];
    uint32_t n;
    shape_operand(v, 1, "C7");
    check_broadcast_in_dim(v);
    for (int k = 0; k < 2; k++) {
        const int64_t *d = verify_ints(v, hints[k], &n);
        verify_dims_in(v, k ? "C10" : "C9", hints[k], a->rank);
        for (uint32_t i = 0; i < n; i++) {
            verify_that(v, !seen[d[i]], "C8", "a dimension is named twice as expanding or not");
            seen[d[i]] = true;
        }
    }
    bool known = verify_known_ints(v, 1, dims, &n);
    const int64_t *to = verify_ints(v, AK_BROADCAST_DIMENSIONS, &n);
    for (int i = 0; known && i < a->rank; i++)
        verify_that(v, a->dims[i] == 1 || verify_dim_same(a->dims[i], dims[to[i]]), "C5",
                    "a dimension of the operand fits neither 1 nor the given size");
}

static void check_real_dynamic_slice(Verify *v) { // an older op: no numbers
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    verify_exact_elem(v, NULL, a, r);
    verify_that(v, a->rank == r->rank, NULL, "the result must have the operand's rank");
    for (uint32_t i = 1; i < 4; i++) {
        const HloType *t = verify_in(v, i);
        verify_that(v, t->rank == 1 && verify_is_index(t) && verify_dim_same(t->dims[0], a->rank), NULL,
                    "starts, limits and strides list one integer per dimension");
        verify_same_type(v, NULL, verify_in(v, 1), t);
    }
    int64_t list[3][OTRN_MAX_RANK], dims[OTRN_MAX_RANK];
    uint32_t n;
    if (!verify_known_ints(v, 1, list[0], &n) || !verify_known_ints(v, 2, list[1], &n) ||
        !verify_known_ints(v, 3, list[2], &n))
        return;
    for (uint32_t i = 0; i < n; i++) {
        verify_that(v, list[2][i] > 0, NULL, "strides must be positive");
        __int128 span = (__int128)list[1][i] - list[0][i];
        dims[i] = span <= 0 ? span < 0 ? -1 : 0 : (int64_t)((span - 1) / list[2][i]) + 1;
    }
    result_dims(v, NULL, (int)n, dims);
}

bool verify_move(Verify *v) {
    static void (*const checks[HLO_OPCODE_COUNT])(Verify *) = {
        [HLO_RESHAPE] = check_reshape,
        [HLO_BROADCAST_IN_DIM] = check_broadcast_in_dim,
        [HLO_BROADCAST] = check_broadcast,
        [HLO_TRANSPOSE] = check_transpose,
        [HLO_REVERSE] = check_reverse,
        [HLO_EXCHANGE] = check_exchange,
        [HLO_SLICE] = check_slice,
        [HLO_DYNAMIC_SLICE] = check_dynamic_slice,
        [HLO_DYNAMIC_UPDATE_SLICE] = check_dynamic_update_slice,
        [HLO_PAD] = check_pad,
        [HLO_CONCATENATE] = check_concatenate,
        [HLO_IOTA] = check_iota,
        [HLO_BITCAST_CONVERT] = check_bitcast,
        [HLO_DYNAMIC_RESHAPE] = check_dynamic_reshape,
        [HLO_DYNAMIC_IOTA] = check_dynamic_iota,
        [HLO_DYNAMIC_BROADCAST_IN_DIM] = check_dynamic_broadcast_in_dim,
        [HLO_DYNAMIC_PAD] = check_pad,
        [HLO_REAL_DYNAMIC_SLICE] = check_real_dynamic_slice,
    };
    if (!checks[v->op->code])
        return false;
    checks[v->op->code](v);
    return true;
}
