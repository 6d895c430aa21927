// SPDX-License-Identifier: Apache-2.0
// infer.c — one rule per op: the result's dimensions from those of the operands.
//
// Rules are the shape constraints of the StableHLO specification read as assignments. A size that
// would be negative or too large to count is left unknown; nothing depends on it being found.
#include "hlo/infer.h"

#include "hlo/query.h"
#include "hlo/verify.h"

typedef struct Infer {
    const Hlo *h;
    const HloOp *op;
    uint32_t k; // which result
    int rank;   // of it
    int64_t *dims;
} Infer;

static const HloType *in(const Infer *x, uint32_t i) {
    return hlo_value_type(x->h, hlo_operand(x->h, x->op, i));
}

static void fill(Infer *x, int64_t at, __int128 size) {
    if (at >= 0 && at < x->rank && x->dims[at] == HLO_DYNAMIC && size >= 0 && size < INT64_MAX / 2)
        x->dims[at] = (int64_t)size;
}

static void like(Infer *x, uint32_t i) {
    if (i >= x->op->noperands)
        return;
    const HloType *t = in(x, i);
    for (int d = 0; t->kind == HT_TENSOR && t->rank == x->rank && d < x->rank; d++)
        fill(x, d, t->dims[d]);
}

static void infer_all(Infer *x) {
    for (uint32_t i = 0; i < x->op->noperands; i++)
        like(x, i);
}
static void infer_first(Infer *x) { like(x, 0); }
static void infer_second(Infer *x) { like(x, 1); }
static void infer_own(Infer *x) { like(x, x->k); }

// chlo's implicit broadcasts: aligned at the ends, or where broadcast_dimensions puts the smaller operand.
static void infer_broadcasting(Infer *x) {
    uint32_t n;
    const int64_t *map = hlo_ints(x->op, AK_BROADCAST_DIMENSIONS, &n);
    bool known[OTRN_MAX_RANK] = {0};
    for (int pass = 0; pass < 2; pass++) // sizes other than 1 first: they win
        for (uint32_t i = 0; i < x->op->noperands; i++) {
            const HloType *t = in(x, i);
            for (int d = 0; t->rank <= x->rank && d < t->rank; d++) {
                int64_t at = n == t->rank && t->rank < x->rank ? map[d] : x->rank - t->rank + d;
                known[at] |= t->dims[d] == HLO_DYNAMIC; // a 1 beside a size that is not known yet says nothing
                if (t->dims[d] != 1 || (pass && !known[at]))
                    fill(x, at, t->dims[d]);
            }
        }
}

uint32_t infer_ragged_prefix(const HloOp *op, int rank, int64_t out[OTRN_MAX_RANK]) {
    uint32_t nb, nc, nr, n = 0;
    const int64_t *batch = hlo_ints(op, AK_LHS_BATCHING_DIMENSIONS, &nb);
    const int64_t *contract = hlo_ints(op, AK_LHS_CONTRACTING_DIMENSIONS, &nc);
    const int64_t *ragged = hlo_ints(op, AK_LHS_RAGGED_DIMENSIONS, &nr);
    for (uint32_t i = 0; i < nb; i++) {
        if (batch[i] == ragged[0])
            return n;
        out[n++] = batch[i];
    }
    if (hlo_among(contract, nc, ragged[0])) {
        for (uint32_t i = 0; contract[i] != ragged[0]; i++)
            out[n++] = contract[i];
        return n;
    }
    for (int64_t d = 0; d < rank && d != ragged[0]; d++)
        if (!hlo_among(batch, nb, d) && !hlo_among(contract, nc, d))
            out[n++] = d;
    return n;
}

// --- movement --------------------------------------------------------------------------------------

// Elements stay: with one dimension open, it takes what the others leave.
static void infer_reshape(Infer *x) {
    const HloType *a = in(x, 0);
    int open = -1;
    int64_t rest = 1;
    for (int d = 0; d < x->rank; d++) {
        if (x->dims[d] != HLO_DYNAMIC && __builtin_mul_overflow(rest, x->dims[d], &rest))
            return;
        if (x->dims[d] == HLO_DYNAMIC && open >= 0)
            return;
        open = x->dims[d] == HLO_DYNAMIC ? d : open;
    }
    if (open >= 0 && !a->dynamic && rest > 0 && a->elems % rest == 0)
        fill(x, open, a->elems / rest);
}

static void infer_broadcast_in_dim(Infer *x) {
    const HloType *a = in(x, 0);
    uint32_t n;
    const int64_t *to = hlo_ints(x->op, AK_BROADCAST_DIMENSIONS, &n);
    for (uint32_t i = 0; i < n; i++)
        if (a->dims[i] != 1)
            fill(x, to[i], a->dims[i]);
}

static void infer_broadcast(Infer *x) {
    const HloType *a = in(x, 0);
    uint32_t n;
    const int64_t *sizes = hlo_ints(x->op, AK_BROADCAST_SIZES, &n);
    for (uint32_t i = 0; i < n; i++)
        fill(x, i, sizes[i]);
    for (int i = 0; i < a->rank; i++)
        fill(x, (int64_t)n + i, a->dims[i]);
}

static void infer_transpose(Infer *x) {
    uint32_t n;
    const int64_t *from = hlo_ints(x->op, AK_PERMUTATION, &n);
    for (uint32_t i = 0; i < n; i++)
        fill(x, i, in(x, 0)->dims[from[i]]);
}

static void infer_slice(Infer *x) {
    uint32_t n;
    const int64_t *start = hlo_ints(x->op, AK_START_INDICES, &n);
    const int64_t *limit = hlo_ints(x->op, AK_LIMIT_INDICES, &n);
    const int64_t *stride = hlo_ints(x->op, AK_STRIDES, &n);
    for (uint32_t i = 0; i < n; i++)
        if (stride[i] > 0)
            fill(x, i, ((__int128)limit[i] - start[i] + stride[i] - 1) / stride[i]);
}

static void infer_dynamic_slice(Infer *x) {
    uint32_t n;
    const int64_t *sizes = hlo_ints(x->op, AK_SLICE_SIZES, &n);
    for (uint32_t i = 0; i < n; i++)
        fill(x, i, sizes[i]);
}

static void infer_pad(Infer *x) {
    uint32_t n;
    const int64_t *low = hlo_ints(x->op, AK_EDGE_PADDING_LOW, &n);
    const int64_t *high = hlo_ints(x->op, AK_EDGE_PADDING_HIGH, &n);
    const int64_t *inner = hlo_ints(x->op, AK_INTERIOR_PADDING, &n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t size = in(x, 0)->dims[i];
        if (size != HLO_DYNAMIC)
            fill(x, i, size + (__int128)(size > 1 ? size - 1 : 0) * inner[i] + low[i] + high[i]);
    }
}

static void infer_concatenate(Infer *x) {
    int64_t dim = hlo_int(x->op, AK_DIMENSION, -1);
    __int128 sum = 0;
    for (uint32_t i = 0; i < x->op->noperands; i++) {
        const HloType *t = in(x, i);
        for (int d = 0; d < x->rank; d++)
            if (d != dim)
                fill(x, d, t->dims[d]);
        if (t->dims[dim] == HLO_DYNAMIC)
            return;
        sum += t->dims[dim];
    }
    fill(x, dim, sum);
}

static void infer_bitcast(Infer *x) {
    const HloType *a = in(x, 0);
    for (int d = 0; d < a->rank && d < x->rank; d++)
        fill(x, d, a->dims[d]);
}

static bool holds(const int64_t *list, uint32_t n, int64_t v) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

// Window dimensions come from slice_sizes (a constant for dynamic_gather: none here), others from the
// indices.
static void infer_gather(Infer *x) {
    const HloType *indices = in(x, 1);
    uint32_t noffset, nsizes, ncollapsed, nbatching, at = 0;
    const int64_t *offset = hlo_ints(x->op, AK_OFFSET_DIMS, &noffset);
    const int64_t *sizes = hlo_ints(x->op, AK_SLICE_SIZES, &nsizes);
    const int64_t *collapsed = hlo_ints(x->op, AK_COLLAPSED_SLICE_DIMS, &ncollapsed);
    const int64_t *batching = hlo_ints(x->op, AK_OPERAND_BATCHING_DIMS, &nbatching);
    int64_t vector = hlo_int(x->op, AK_INDEX_VECTOR_DIM, 0), from = 0;
    for (uint32_t i = 0; i < nsizes; i++)
        if (!holds(collapsed, ncollapsed, i) && !holds(batching, nbatching, i) && at < noffset)
            fill(x, offset[at++], sizes[i]);
    for (int d = 0; d < x->rank; d++) {
        if (holds(offset, noffset, d))
            continue;
        from += from == vector;
        if (from < indices->rank)
            fill(x, d, indices->dims[from]);
        from++;
    }
}

static void infer_torch_index_select(Infer *x) {
    const HloType *a = in(x, 0), *index = in(x, 1);
    int64_t dim = hlo_int(x->op, AK_DIM, 0), batch = hlo_int(x->op, AK_BATCH_DIMS, 0);
    int64_t extra = index->rank - batch;
    if (batch < 0 || extra < 0 || dim < batch)
        return;
    for (int64_t d = 0; d < a->rank; d++)
        if (d != dim)
            fill(x, d < dim ? d : d + extra - 1, a->dims[d]);
    for (int64_t i = 0; i < extra; i++)
        fill(x, dim + i, index->dims[batch + i]);
}

// --- reductions and windows ------------------------------------------------------------------------

static void infer_reduce(Infer *x) {
    uint32_t n;
    const int64_t *gone = hlo_ints(x->op, AK_DIMENSIONS, &n);
    for (uint32_t i = 0; i < x->op->noperands / 2; i++) { // inputs have one shape
        const HloType *a = in(x, i);
        int at = 0;
        for (int d = 0; d < a->rank; d++)
            if (!holds(gone, n, d))
                fill(x, at++, a->dims[d]);
    }
}

static void infer_reduce_window(Infer *x) {
    uint32_t n;
    const int64_t *window = hlo_ints(x->op, AK_WINDOW_DIMENSIONS, &n);
    const int64_t *stride = hlo_ints(x->op, AK_WINDOW_STRIDES, &n);
    const int64_t *base = hlo_ints(x->op, AK_BASE_DILATIONS, &n);
    const int64_t *dilation = hlo_ints(x->op, AK_WINDOW_DILATIONS, &n);
    const int64_t *pad = hlo_ints(x->op, AK_PADDING, &n);
    const HloType *a = in(x, x->k);
    for (int d = 0; d < x->rank && d < a->rank; d++)
        if (stride[d] > 0)
            fill(x, d, verify_window_steps(a->dims[d], base[d], pad[2 * d], pad[2 * d + 1],
                                           window[d], dilation[d], stride[d]));
}

// --- products --------------------------------------------------------------------------------------

static void infer_dot_general(Infer *x) {
    static const HloAttrKey keys[2][2] = {
        {AK_LHS_BATCHING_DIMENSIONS, AK_LHS_CONTRACTING_DIMENSIONS},
        {AK_RHS_BATCHING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS}};
    int at = 0;
    for (uint32_t side = 0; side < 2; side++) {
        const HloType *t = in(x, side);
        uint32_t nb, nc;
        const int64_t *batch = hlo_ints(x->op, keys[side][0], &nb);
        const int64_t *gone = hlo_ints(x->op, keys[side][1], &nc);
        for (uint32_t i = 0; i < nb; i++)
            fill(x, i, t->dims[batch[i]]);
        at = side ? at : (int)nb;
        for (int d = 0; d < t->rank; d++)
            if (!holds(batch, nb, d) && !holds(gone, nc, d))
                fill(x, at++, t->dims[d]);
    }
}

static void infer_dot(Infer *x) {
    const HloType *a = in(x, 0), *b = in(x, 1);
    if (a->rank == 2)
        fill(x, 0, a->dims[0]);
    if (b->rank == 2)
        fill(x, a->rank - 1, b->dims[1]);
}

static void infer_convolution(Infer *x) {
    const HloType *a = in(x, 0), *kernel = in(x, 1);
    uint32_t n, npad, nstride, nlhs, nrhs;
    const int64_t *from = hlo_ints(x->op, AK_INPUT_SPATIAL_DIMENSIONS, &n);
    const int64_t *window = hlo_ints(x->op, AK_KERNEL_SPATIAL_DIMENSIONS, &n);
    const int64_t *to = hlo_ints(x->op, AK_OUTPUT_SPATIAL_DIMENSIONS, &n);
    const int64_t *stride = hlo_ints(x->op, AK_WINDOW_STRIDES, &nstride);
    const int64_t *lhs = hlo_ints(x->op, AK_LHS_DILATION, &nlhs);
    const int64_t *rhs = hlo_ints(x->op, AK_RHS_DILATION, &nrhs);
    const int64_t *pad = hlo_ints(x->op, AK_PADDING, &npad);
    int64_t batch = a->dims[hlo_int(x->op, AK_INPUT_BATCH_DIMENSION, 0)];
    int64_t groups = hlo_int(x->op, AK_BATCH_GROUP_COUNT, 1);
    if (batch != HLO_DYNAMIC && groups > 0)
        fill(x, hlo_int(x->op, AK_OUTPUT_BATCH_DIMENSION, 0), batch / groups);
    fill(x, hlo_int(x->op, AK_OUTPUT_FEATURE_DIMENSION, 0),
         kernel->dims[hlo_int(x->op, AK_KERNEL_OUTPUT_FEATURE_DIMENSION, 0)]);
    bool listed = nstride >= n && nlhs >= n && nrhs >= n && npad >= 2 * n; // dynamic_conv is lax
    for (uint32_t i = 0; listed && i < n; i++)
        if (stride[i] > 0)
            fill(x, to[i], verify_window_steps(a->dims[from[i]], lhs[i], pad[2 * i], pad[2 * i + 1],
                                               kernel->dims[window[i]], rhs[i], stride[i]));
}

// --- the rest --------------------------------------------------------------------------------------

static void infer_batch_norm(Infer *x) {
    if (x->k == 0)
        like(x, 0);
    else
        fill(x, 0, in(x, 0)->dims[hlo_int(x->op, AK_FEATURE_INDEX, 0)]);
}

static void infer_fft(Infer *x) {
    const HloType *a = in(x, 0);
    uint32_t n;
    const int64_t *length = hlo_ints(x->op, AK_FFT_LENGTH, &n);
    int64_t type = hlo_int(x->op, AK_FFT_TYPE, 0);
    for (int d = 0; d < x->rank; d++) {
        int k = d - (x->rank - (int)n);
        bool half = d == x->rank - 1 && type == FFT_RFFT;
        fill(x, d, k < 0 ? a->dims[d] : half ? length[k] / 2 + 1 : length[k]);
    }
}

static void infer_top_k(Infer *x) {
    fill(x, x->rank - 1, hlo_int(x->op, AK_K, -1));
    like(x, 0);
}

// Processes of one group; -1 when it is not written as a list.
static int64_t group_size(const Infer *x) {
    const HloAttr *g = hlo_attr(x->op, AK_REPLICA_GROUPS);
    return g && g->kind == HA_INTS2 && g->cols ? (int64_t)g->cols : -1;
}

static void scaled(Infer *x, int64_t dim, int64_t times, int64_t by) {
    const HloType *a = in(x, x->k);
    if (dim >= 0 && dim < a->rank && a->dims[dim] != HLO_DYNAMIC && times > 0 && by > 0)
        fill(x, dim, (__int128)a->dims[dim] * times / by);
}

static void others_like(Infer *x, int64_t but, int64_t and_but) {
    const HloType *a = in(x, x->k);
    for (int d = 0; d < x->rank && d < a->rank; d++)
        if (d != but && d != and_but)
            fill(x, d, a->dims[d]);
}

static void infer_all_gather(Infer *x) {
    int64_t dim = hlo_int(x->op, AK_ALL_GATHER_DIM, -1);
    others_like(x, dim, dim);
    scaled(x, dim, group_size(x), 1);
}

static void infer_reduce_scatter(Infer *x) {
    int64_t dim = hlo_int(x->op, AK_SCATTER_DIMENSION, -1);
    others_like(x, dim, dim);
    scaled(x, dim, 1, group_size(x));
}

static void infer_all_to_all(Infer *x) {
    int64_t split = hlo_int(x->op, AK_SPLIT_DIMENSION, -1);
    int64_t concat = hlo_int(x->op, AK_CONCAT_DIMENSION, -1);
    int64_t count = hlo_int(x->op, AK_SPLIT_COUNT, -1);
    others_like(x, split == concat ? -1 : split, split == concat ? -1 : concat);
    if (split != concat) {
        scaled(x, split, 1, count);
        scaled(x, concat, count, 1);
    }
}

void infer_dims(const Hlo *h, const HloOp *op, uint32_t k, int64_t dims[OTRN_MAX_RANK]) {
    static void (*const rules[HLO_OPCODE_COUNT])(Infer *) = {
        [HLO_RESHAPE] = infer_reshape,
        [HLO_DYNAMIC_RESHAPE] = infer_reshape,
        [HLO_BROADCAST_IN_DIM] = infer_broadcast_in_dim,
        [HLO_DYNAMIC_BROADCAST_IN_DIM] = infer_broadcast_in_dim,
        [HLO_BROADCAST] = infer_broadcast,
        [HLO_TRANSPOSE] = infer_transpose,
        [HLO_REVERSE] = infer_first,
        [HLO_EXCHANGE] = infer_first,
        [HLO_SLICE] = infer_slice,
        [HLO_DYNAMIC_SLICE] = infer_dynamic_slice,
        [HLO_DYNAMIC_UPDATE_SLICE] = infer_first,
        [HLO_PAD] = infer_pad,
        [HLO_CONCATENATE] = infer_concatenate,
        [HLO_BITCAST_CONVERT] = infer_bitcast,
        [HLO_GATHER] = infer_gather,
        [HLO_DYNAMIC_GATHER] = infer_gather,
        [HLO_TORCH_INDEX_SELECT] = infer_torch_index_select,
        [HLO_SCATTER] = infer_own,
        [HLO_SORT] = infer_own,
        [HLO_MAP] = infer_all,
        [HLO_REDUCE] = infer_reduce,
        [HLO_REDUCE_WINDOW] = infer_reduce_window,
        [HLO_SELECT_AND_SCATTER] = infer_first,
        [HLO_DOT_GENERAL] = infer_dot_general,
        [HLO_DOT] = infer_dot,
        [HLO_CONVOLUTION] = infer_convolution,
        [HLO_DYNAMIC_CONV] = infer_convolution,
        [HLO_BATCH_NORM_GRAD] = infer_batch_norm,
        [HLO_BATCH_NORM_INFERENCE] = infer_batch_norm,
        [HLO_BATCH_NORM_TRAINING] = infer_batch_norm,
        [HLO_CHOLESKY] = infer_first,
        [HLO_TRIANGULAR_SOLVE] = infer_second,
        [HLO_FFT] = infer_fft,
        [HLO_RNG_BIT_GENERATOR] = infer_own, // result 0; there is no operand 1
        [HLO_CHLO_TOP_K] = infer_top_k,
        [HLO_CHLO_CONSTANT_LIKE] = infer_first,
        [HLO_OPTIMIZATION_BARRIER] = infer_own,
        [HLO_ALL_REDUCE] = infer_own,
        [HLO_CROSS_REPLICA_SUM] = infer_own,
        [HLO_COLLECTIVE_PERMUTE] = infer_own,
        [HLO_COLLECTIVE_BROADCAST] = infer_own,
        [HLO_COLLECTIVE_REDUCE] = infer_own,
        [HLO_ALL_GATHER] = infer_all_gather,
        [HLO_REDUCE_SCATTER] = infer_reduce_scatter,
        [HLO_ALL_TO_ALL] = infer_all_to_all,
    };
    const HloType *t = hlo_value_type(h, op->results + k);
    Infer x = {h, op, k, t->rank, dims};
    if (hlo_row(op)->cls <= HC_EW3)
        infer_all(&x);
    else if (rules[op->code])
        rules[op->code](&x);
    else if (!strncmp(hlo_row(op)->name, "broadcast_", 10) && hlo_row(op)->dialect == HD_CHLO)
        infer_broadcasting(&x);
}
