// SPDX-License-Identifier: Apache-2.0
// verify_index.c — gather and scatter: two views of the same index arithmetic.
//
// Both tie an operand, a tensor of index vectors and a tensor of windows together: gather reads
// windows into its result, scatter writes windows of its updates.
//
//   operand dims  = window dims + dropped dims (collapsed, inserted) + batching dims
//   windows dims  = window dims at the positions `window_at`, the indices' other dims elsewhere
#include "hlo/verify.h"

typedef struct Indexing {
    HloAttrKey window_at, dropped, batching, indices_batching, map;
    const HloType *operand, *indices, *windows;
} Indexing;

static bool contains(Verify *v, HloAttrKey key, int64_t d) {
    uint32_t n;
    const int64_t *list = verify_ints(v, key, &n);
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == d)
            return true;
    return false;
}

static void disjoint(Verify *v, HloAttrKey a, HloAttrKey b) {
    uint32_t n;
    const int64_t *list = verify_ints(v, a, &n);
    for (uint32_t i = 0; i < n; i++)
        if (contains(v, b, list[i]))
            verify_fail(v, "dimension %lld is in both %s and %s", (long long)list[i],
                        hlo_attr_rows[a].name, hlo_attr_rows[b].name);
}

static uint32_t count(Verify *v, HloAttrKey key) {
    uint32_t n;
    verify_ints(v, key, &n);
    return n;
}

static void dims_of(Verify *v, HloAttrKey key, int64_t rank, bool sorted) {
    verify_dims_in(v, key, rank);
    verify_unique(v, key);
    if (sorted)
        verify_sorted(v, key);
}

// Everything that does not speak of sizes of windows.
static int64_t check_indexing(Verify *v, const Indexing *x) {
    int rank = x->operand->rank;
    if ((uint32_t)rank != count(v, x->window_at) + count(v, x->dropped) + count(v, x->batching))
        verify_fail(v, "rank %d of %s is not the number of window, %s and batching dimensions", rank,
                    verify_type_text(v, x->operand), hlo_attr_rows[x->dropped].name);
    int64_t ivd = hlo_int(v->op, AK_INDEX_VECTOR_DIM, -1);
    if (ivd < 0 || ivd > x->indices->rank)
        verify_fail(v, "index_vector_dim %lld is not in [0, %d]", (long long)ivd, x->indices->rank);
    verify_that(v, verify_is_index(x->indices), "indices must be integers");
    dims_of(v, x->window_at, x->windows->rank, true);
    dims_of(v, x->dropped, rank, true);
    dims_of(v, x->batching, rank, true);
    dims_of(v, x->indices_batching, x->indices->rank, false);
    dims_of(v, x->map, rank, false);
    disjoint(v, x->dropped, x->batching);
    disjoint(v, x->map, x->batching);
    int64_t vector = ivd == x->indices->rank ? 1 : x->indices->dims[ivd];
    if (!verify_dim_same(vector, count(v, x->map)))
        verify_fail(v, "index vectors of length %lld and %s of length %u", (long long)vector,
                    hlo_attr_rows[x->map].name, count(v, x->map));
    if (contains(v, x->indices_batching, ivd))
        verify_fail(v, "index_vector_dim is a batching dimension");
    uint32_t n;
    const int64_t *a = verify_ints(v, x->batching, &n);
    verify_size(v, x->indices_batching, n);
    const int64_t *b = verify_ints(v, x->indices_batching, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!verify_dim_same(x->operand->dims[a[i]], x->indices->dims[b[i]]))
            verify_fail(v, "batching dimension %u differs between %s and %s", i,
                        verify_type_text(v, x->operand), verify_type_text(v, x->indices));
    return ivd;
}

// The windows' dimensions that come from the indices.
static void check_batch_dims(Verify *v, const Indexing *x, int64_t ivd) {
    int from = 0, batch = x->indices->rank - (ivd < x->indices->rank);
    if (x->windows->rank != batch + (int)count(v, x->window_at))
        verify_fail(v, "%s must have %d batch and %u window dimensions",
                    verify_type_text(v, x->windows), batch, count(v, x->window_at));
    for (int i = 0; i < x->windows->rank; i++) {
        if (contains(v, x->window_at, i))
            continue;
        from += from == ivd;
        if (!verify_dim_same(x->windows->dims[i], x->indices->dims[from]))
            verify_fail(v, "dimension %d of %s does not fit dimension %d of the indices %s", i,
                        verify_type_text(v, x->windows), from, verify_type_text(v, x->indices));
        from++;
    }
}

// --- gather ----------------------------------------------------------------------------------------

static void check_slice_sizes(Verify *v, const Indexing *x) {
    uint32_t n, at = 0;
    const int64_t *sizes = verify_ints(v, AK_SLICE_SIZES, &n);
    const int64_t *offsets = verify_ints(v, AK_OFFSET_DIMS, &n);
    verify_size(v, AK_SLICE_SIZES, x->operand->rank);
    for (int i = 0; i < x->operand->rank; i++) {
        int64_t dim = x->operand->dims[i];
        if (sizes[i] < 0 || (dim != HLO_DYNAMIC && sizes[i] > dim))
            verify_fail(v, "C21: a slice of %lld along dimension %d of %s", (long long)sizes[i], i,
                        verify_type_text(v, x->operand));
        if (contains(v, x->dropped, i) || contains(v, x->batching, i)) {
            verify_that(v, sizes[i] <= 1, "C9, C12: slices of dropped dimensions must be 1 or less");
            continue;
        }
        if (!verify_dim_same(x->windows->dims[offsets[at]], sizes[i]))
            verify_fail(v, "C22: dimension %lld of the result %s must be the slice's %lld",
                        (long long)offsets[at], verify_type_text(v, x->windows),
                        (long long)sizes[i]);
        at++;
    }
}

static void check_gather(Verify *v) {
    Indexing x = {AK_OFFSET_DIMS,
                  AK_COLLAPSED_SLICE_DIMS,
                  AK_OPERAND_BATCHING_DIMS,
                  AK_START_INDICES_BATCHING_DIMS,
                  AK_START_INDEX_MAP,
                  verify_in(v, 0),
                  verify_in(v, 1),
                  verify_out(v, 0)};
    verify_same_elem(v, "C23", x.operand, x.windows);
    int64_t ivd = check_indexing(v, &x);
    check_batch_dims(v, &x, ivd);
    if (v->op->code == HLO_GATHER) {
        check_slice_sizes(v, &x);
        return;
    }
    const HloType *sizes = verify_in(v, 2);
    verify_that(v,
                sizes->rank == 1 && verify_is_index(sizes) &&
                    verify_dim_same(sizes->dims[0], x.operand->rank),
                "slice_sizes must list one integer per dimension of the operand");
}

// --- scatter ---------------------------------------------------------------------------------------

static void check_windows(Verify *v, const Indexing *x) {
    uint32_t n, at = 0;
    const int64_t *window = verify_ints(v, x->window_at, &n);
    for (int i = 0; i < x->operand->rank; i++) {
        if (contains(v, x->dropped, i) || contains(v, x->batching, i))
            continue;
        int64_t u = x->windows->dims[window[at]], dim = x->operand->dims[i];
        if (u != HLO_DYNAMIC && dim != HLO_DYNAMIC && u > dim)
            verify_fail(v, "C4: a window of %lld along dimension %d of %s", (long long)u, i,
                        verify_type_text(v, x->operand));
        at++;
    }
}

static void check_scatter(Verify *v) {
    uint32_t n = v->op->noperands / 2;
    if (v->op->noperands % 2 == 0 || !n || v->op->nresults != n)
        verify_fail(v, "%u operands and %u results are not N inputs, indices, N updates, N results",
                    v->op->noperands, v->op->nresults);
    const HloType **types = ARENA_NEWN(v->h->arena, const HloType *, 2 * (size_t)n);
    for (uint32_t i = 0; i < n; i++) {
        types[i] = verify_in(v, i);
        const HloType *u = verify_in(v, n + 1 + i);
        verify_same_shape(v, "C1", types[0], types[i]);
        verify_same_shape(v, "C3", verify_in(v, n + 1), u);
        verify_same_elem(v, "C6", types[i], u);
    }
    Indexing x = {AK_UPDATE_WINDOW_DIMS,
                  AK_INSERTED_WINDOW_DIMS,
                  AK_INPUT_BATCHING_DIMS,
                  AK_SCATTER_INDICES_BATCHING_DIMS,
                  AK_SCATTER_DIMS_TO_OPERAND_DIMS,
                  types[0],
                  verify_in(v, n),
                  verify_in(v, n + 1)};
    int64_t ivd = check_indexing(v, &x);
    check_batch_dims(v, &x, ivd);
    check_windows(v, &x);
    verify_combiner(v, 0, n, types, types + n);
    for (uint32_t i = 0; i < n; i++) {
        verify_same_shape(v, "inputs and results", types[i], verify_out(v, i));
        verify_same_elem(v, "computation and results", types[n + i], verify_out(v, i));
    }
}

bool verify_index(Verify *v) {
    switch (v->op->code) {
    case HLO_GATHER:
    case HLO_DYNAMIC_GATHER:
        check_gather(v);
        return true;
    case HLO_SCATTER:
        check_scatter(v);
        return true;
    default:
        return false;
    }
}
