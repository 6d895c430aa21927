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
    // the constraints' numbers
    const char *rank, *vector_dim, *map_size, *window_order, *window_range, *dropped_unique, *dropped_sorted,
        *dropped_range, *batching_sorted, *batching_range, *ibatching_unique, *ibatching_range, *ibatching_vector,
        *batching_count, *batching_size, *map_unique, *map_range, *shape;
} Indexing;

#define GATHER_RULES                                                                                                   \
    .rank = "C1", .vector_dim = "C2", .map_size = "C3", .window_order = "C4", .window_range = "C5", .dropped_unique = "C6",        \
    .dropped_sorted = "C7", .dropped_range = "C8", .batching_sorted = "C10", .batching_range = "C11", .ibatching_unique = "C13",   \
    .ibatching_range = "C14", .ibatching_vector = "C15", .batching_count = "C16", .batching_size = "C17", .map_unique = "C18",     \
    .map_range = "C19", .shape = "C22"
#define DYNAMIC_GATHER_RULES                                                                                           \
    .rank = "C1", .vector_dim = "C2", .map_size = "C3", .window_order = "C4", .window_range = "C5", .dropped_unique = "C6",        \
    .dropped_sorted = "C6", .dropped_range = "C7", .map_unique = "C9", .map_range = "C10", .shape = "C13"
#define SCATTER_RULES                                                                                                  \
    .rank = "C2", .vector_dim = "C22", .map_size = "C19", .window_order = "C7", .window_range = "C8", .dropped_unique = "C9",      \
    .dropped_sorted = "C10", .dropped_range = "C11", .batching_sorted = "C12", .batching_range = "C13",                            \
    .ibatching_unique = "C14", .ibatching_range = "C15", .ibatching_vector = "C16", .batching_count = "C17",                       \
    .batching_size = "C18", .map_unique = "C20", .map_range = "C21", .shape = "C4"

static bool contains(Verify *v, HloAttrKey key, int64_t d) {
    uint32_t n;
    const int64_t *list = verify_ints(v, key, &n);
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == d)
            return true;
    return false;
}

static void disjoint(Verify *v, const char *rule, HloAttrKey a, HloAttrKey b) {
    uint32_t n;
    const int64_t *list = verify_ints(v, a, &n);
    for (uint32_t i = 0; i < n; i++)
        if (contains(v, b, list[i]))
            verify_break(v, rule, "dimension %lld is in both %s and %s", (long long)list[i], hlo_attr_rows[a].name,
                         hlo_attr_rows[b].name);
}

static uint32_t count(Verify *v, HloAttrKey key) {
    uint32_t n;
    verify_ints(v, key, &n);
    return n;
}

static void dims_of(Verify *v, HloAttrKey key, int64_t rank, const char *range, const char *unique, const char *sorted) {
    verify_dims_in(v, range, key, rank);
    verify_unique(v, unique, key);
    if (sorted)
        verify_sorted(v, sorted, key);
}

// Everything that does not speak of sizes of windows.
static int64_t check_indexing(Verify *v, const Indexing *x) {
    int rank = x->operand->rank;
    if ((uint32_t)rank != count(v, x->window_at) + count(v, x->dropped) + count(v, x->batching))
        verify_break(v, x->rank, "rank %d of %s is not the number of window, %s and batching dimensions", rank,
                     verify_type_text(v, x->operand), hlo_attr_rows[x->dropped].name);
    int64_t ivd = hlo_int(v->op, AK_INDEX_VECTOR_DIM, -1);
    if (ivd < 0 || ivd > x->indices->rank)
        verify_break(v, x->vector_dim, "index_vector_dim %lld is not in [0, %d]", (long long)ivd, x->indices->rank);
    verify_that(v, verify_is_index(x->indices), "I2", "indices must be integers");
    dims_of(v, x->window_at, x->windows->rank, x->window_range, x->window_order, x->window_order);
    dims_of(v, x->dropped, rank, x->dropped_range, x->dropped_unique, x->dropped_sorted);
    dims_of(v, x->batching, rank, x->batching_range, x->dropped_unique, x->batching_sorted);
    dims_of(v, x->indices_batching, x->indices->rank, x->ibatching_range, x->ibatching_unique, NULL);
    dims_of(v, x->map, rank, x->map_range, x->map_unique, NULL);
    disjoint(v, x->dropped_unique, x->dropped, x->batching);
    disjoint(v, x->map_unique, x->map, x->batching);
    int64_t vector = ivd == x->indices->rank ? 1 : x->indices->dims[ivd];
    if (!verify_dim_same(vector, count(v, x->map)))
        verify_break(v, x->map_size, "index vectors of length %lld and %s of length %u", (long long)vector,
                     hlo_attr_rows[x->map].name, count(v, x->map));
    if (contains(v, x->indices_batching, ivd))
        verify_break(v, x->ibatching_vector, "index_vector_dim is a batching dimension");
    uint32_t n;
    const int64_t *a = verify_ints(v, x->batching, &n);
    verify_size(v, x->batching_count, x->indices_batching, n);
    const int64_t *b = verify_ints(v, x->indices_batching, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!verify_dim_same(x->operand->dims[a[i]], x->indices->dims[b[i]]))
            verify_break(v, x->batching_size, "batching dimension %u differs between %s and %s", i,
                         verify_type_text(v, x->operand), verify_type_text(v, x->indices));
    return ivd;
}

// The windows' dimensions that come from the indices.
static void check_batch_dims(Verify *v, const Indexing *x, int64_t ivd) {
    int from = 0, batch = x->indices->rank - (ivd < x->indices->rank);
    if (x->windows->rank != batch + (int)count(v, x->window_at))
        verify_break(v, x->shape, "%s must have %d batch and %u window dimensions", verify_type_text(v, x->windows), batch,
                     count(v, x->window_at));
    for (int i = 0; i < x->windows->rank; i++) {
        if (contains(v, x->window_at, i))
            continue;
        from += from == ivd;
        if (!verify_dim_same(x->windows->dims[i], x->indices->dims[from]))
            verify_break(v, x->shape, "dimension %d of %s does not fit dimension %d of the indices %s", i,
                         verify_type_text(v, x->windows), from, verify_type_text(v, x->indices));
        from++;
    }
}

// --- gather ----------------------------------------------------------------------------------------

static void check_slice_sizes(Verify *v, const Indexing *x, const int64_t *sizes, bool dynamic) {
    uint32_t n, at = 0;
    const int64_t *offsets = verify_ints(v, AK_OFFSET_DIMS, &n);
    for (int i = 0; i < x->operand->rank; i++) {
        int64_t dim = x->operand->dims[i];
        if (sizes[i] < 0 || (dim != HLO_DYNAMIC && sizes[i] > dim))
            verify_break(v, dynamic ? "C12" : "C21", "a slice of %lld along dimension %d of %s", (long long)sizes[i], i,
                         verify_type_text(v, x->operand));
        bool dropped = contains(v, x->dropped, i);
        if (dropped || contains(v, x->batching, i)) {
            verify_that(v, sizes[i] <= 1, dynamic ? "C8" : dropped ? "C9" : "C12",
                        "slices of dropped dimensions must be 1 or less");
            continue;
        }
        if (!verify_dim_same(x->windows->dims[offsets[at]], sizes[i]))
            verify_break(v, x->shape, "dimension %lld of the result %s must be the slice's %lld", (long long)offsets[at],
                         verify_type_text(v, x->windows), (long long)sizes[i]);
        at++;
    }
}

static void check_gather(Verify *v) {
    bool dynamic = v->op->code == HLO_DYNAMIC_GATHER;
    const HloType *a = verify_in(v, 0), *indices = verify_in(v, 1), *r = verify_out(v, 0);
    const Indexing rows[2] = {
        {AK_OFFSET_DIMS, AK_COLLAPSED_SLICE_DIMS, AK_OPERAND_BATCHING_DIMS, AK_START_INDICES_BATCHING_DIMS,
         AK_START_INDEX_MAP, a, indices, r, GATHER_RULES},
        {AK_OFFSET_DIMS, AK_COLLAPSED_SLICE_DIMS, AK_OPERAND_BATCHING_DIMS, AK_START_INDICES_BATCHING_DIMS,
         AK_START_INDEX_MAP, a, indices, r, DYNAMIC_GATHER_RULES},
    };
    const Indexing *x = &rows[dynamic];
    verify_exact_elem(v, dynamic ? "C14" : "C23", a, r);
    int64_t ivd = check_indexing(v, x), known[OTRN_MAX_RANK];
    uint32_t n;
    check_batch_dims(v, x, ivd);
    if (!dynamic) {
        verify_size(v, "C20", AK_SLICE_SIZES, a->rank);
        check_slice_sizes(v, x, verify_ints(v, AK_SLICE_SIZES, &n), false);
        return;
    }
    const HloType *sizes = verify_in(v, 2);
    verify_that(v, sizes->rank == 1 && verify_is_index(sizes), "I3", "slice_sizes must list integers");
    verify_that(v, verify_dim_same(sizes->dims[0], a->rank), "C11",
                "slice_sizes must list one integer per dimension of the operand");
    if (verify_known_ints(v, 2, known, &n))
        check_slice_sizes(v, x, known, true);
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
            verify_break(v, "C4", "a window of %lld along dimension %d of %s", (long long)u, i,
                         verify_type_text(v, x->operand));
        at++;
    }
}

static void check_scatter(Verify *v) {
    uint32_t n = v->op->noperands / 2;
    if (v->op->noperands % 2 == 0 || !n || v->op->nresults != n)
        verify_break(v, "C5", "%u operands and %u results are not N inputs, indices, N updates, N results",
                     v->op->noperands, v->op->nresults);
    const HloType **types = ARENA_NEWN(v->h->arena, const HloType *, 2 * (size_t)n);
    for (uint32_t i = 0; i < n; i++) {
        types[i] = verify_in(v, i);
        const HloType *u = verify_in(v, n + 1 + i);
        verify_same_shape(v, "C1", types[0], types[i]);
        verify_same_shape(v, "C3", verify_in(v, n + 1), u);
        verify_exact_elem(v, "C6", types[i], u);
    }
    Indexing x = {AK_UPDATE_WINDOW_DIMS,
                  AK_INSERTED_WINDOW_DIMS,
                  AK_INPUT_BATCHING_DIMS,
                  AK_SCATTER_INDICES_BATCHING_DIMS,
                  AK_SCATTER_DIMS_TO_OPERAND_DIMS,
                  types[0],
                  verify_in(v, n),
                  verify_in(v, n + 1),
                  SCATTER_RULES};
    int64_t ivd = check_indexing(v, &x);
    check_batch_dims(v, &x, ivd);
    check_windows(v, &x);
    verify_combiner(v, "C23", 0, n, types, types + n);
    for (uint32_t i = 0; i < n; i++) {
        verify_same_shape(v, "C24", types[i], verify_out(v, i));
        verify_same_elem(v, "C25", types[n + i], verify_out(v, i));
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
