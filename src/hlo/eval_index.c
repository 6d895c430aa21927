// SPDX-License-Identifier: Apache-2.0
// eval_index.c — data-dependent addressing: gather, scatter, dynamic slices.
//
// Index tensors may be of any integer type. Values are widened to int64; a ui64 above its range is
// treated as the largest one, which clamps or skips alike.
#include "hlo/eval_in.h"

static int64_t index_at(int dtype, const void *p) {
    int64_t v = dtype_to_i64(dtype, p);
    return dtype == DT_UI64 && v < 0 ? INT64_MAX : v;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

static bool has(const int64_t *list, uint32_t n, int64_t v) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

// --- dynamic_slice, dynamic_update_slice
// -------------------------------------------------------------

// Byte offset of the window at the clamped start operands in[0..rank).
static int64_t window_offset(Eval *e, OpId id, const HloType *t, const int64_t *size,
                             const Tensor *start) {
    int64_t step[OTRN_MAX_RANK], base = 0;
    eval_strides(t, step);
    for (int i = 0; i < t->rank; i++) {
        const HloType *it = eval_type(e, start[i]);
        eval_need(e, id, dtype_is_int(it->dtype) && it->rank == 0,
                  "start indices are integer scalars");
        eval_need(e, id, size[i] >= 0 && size[i] <= t->dims[i],
                  "the slice is larger than the operand");
        base += clamp(index_at(it->dtype, start[i].data), 0, t->dims[i] - size[i]) * step[i];
    }
    return base;
}

void eval_dynamic_slice(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    eval_need(e, id,
              s->dtype == t->dtype && s->rank == t->rank &&
                  eval_op_at(e, id)->noperands == 1u + s->rank,
              "takes one start index per dimension");
    eval_need_dims(e, id, t, t->rank, eval_ints(e, id, AK_SLICE_SIZES, t->rank, -1));
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    int64_t base = window_offset(e, id, s, t->dims, in + 1);
    eval_strides(s, from);
    eval_strides(t, to);
    out[0].data = eval_new(e, out[0].type);
    if (t->elems)
        eval_copy_box(dtype_bytes(t->dtype), t->rank, t->dims, out[0].data, to,
                      (const uint8_t *)in[0].data + base, from);
}

void eval_dynamic_update_slice(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]), *u = eval_type(e, in[1]);
    eval_need(e, id,
              in[0].type == out[0].type && u->dtype == t->dtype && u->rank == t->rank &&
                  eval_op_at(e, id)->noperands == 2u + t->rank,
              "takes an update of the operand's rank and one start index per dimension");
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    int64_t base = window_offset(e, id, t, u->dims, in + 2);
    eval_strides(u, from);
    eval_strides(t, to);
    out[0].data = eval_new(e, out[0].type);
    memcpy(out[0].data, in[0].data, hlo_type_bytes(t));
    if (u->elems)
        eval_copy_box(dtype_bytes(t->dtype), t->rank, u->dims, (uint8_t *)out[0].data + base, to,
                      in[1].data, from);
}

// --- gather and scatter: dimension numbers
// ------------------------------------------------------------
//
// Both walk a "moved" tensor (gather's result, scatter's updates) whose axes split into window axes
// W and batch axes B. The index vector S sits in the indices tensor at B, along index_vector_dim.
// The coordinate of the indexed tensor (gather's operand, scatter's input) on dim d is
//   S[k] if d = map[k]   +   B[…] if d is a batching dim   +   next of W unless d has no window
//   axis.

typedef struct Numbers {
    const HloType *space; // the indexed tensor
    const HloType *index; // the indices
    const HloType *moved;
    const int64_t *window_axes, *dropped, *batching, *index_batching, *map;
    uint32_t nwindow, ndropped, nbatching, nindex_batching, nmap;
    int64_t vector_dim;
    int64_t batch_axis[OTRN_MAX_RANK]; // axes of `moved` that are not window axes, in order
    uint32_t nbatch;
    int64_t index_step[OTRN_MAX_RANK]; // bytes per batch axis in the indices
    int64_t vector_step;               // bytes along index_vector_dim (0 when implicit)
    int64_t window_of[OTRN_MAX_RANK];  // per dim of `space`: its axis in `moved`, or -1
    int64_t batch_of[OTRN_MAX_RANK];   // per dim of `space`: its batch axis number, or -1
    int64_t start[OTRN_MAX_RANK];      // filled by numbers_start: S spread over `space` dims
} Numbers;

// Batch axis numbers count the axes of the indices without index_vector_dim.
static void numbers_batch(Eval *e, OpId id, Numbers *n) {
    int64_t step[OTRN_MAX_RANK];
    eval_strides(n->index, step);
    eval_need(e, id, n->vector_dim >= 0 && n->vector_dim <= n->index->rank,
              "index_vector_dim is out of range");
    bool implicit = n->vector_dim == n->index->rank;
    n->vector_step = implicit ? 0 : step[n->vector_dim];
    int64_t components = implicit ? 1 : n->index->dims[n->vector_dim];
    eval_need(e, id, components == n->nmap, "index vectors have a wrong length");
    for (uint32_t a = 0; a < n->moved->rank; a++)
        if (!has(n->window_axes, n->nwindow, a))
            n->batch_axis[n->nbatch++] = a;
    eval_need(e, id, n->nbatch == n->index->rank - (implicit ? 0u : 1u),
              "batch dimensions do not fit the indices");
    uint32_t b = 0;
    for (int i = 0; i < n->index->rank; i++) {
        if (i == n->vector_dim)
            continue;
        eval_need(e, id, n->moved->dims[n->batch_axis[b]] == n->index->dims[i],
                  "batch dimensions do not fit the indices");
        n->index_step[b++] = step[i];
    }
}

static void numbers_init(Eval *e, OpId id, Numbers *n) {
    eval_need(e, id, dtype_is_int(n->index->dtype), "indices must be integers");
    eval_need(e, id, n->nbatching == n->nindex_batching, "batching dims must come in pairs");
    numbers_batch(e, id, n);
    uint32_t w = 0;
    for (uint32_t d = 0; d < n->space->rank; d++) {
        n->batch_of[d] = n->window_of[d] = -1;
        for (uint32_t i = 0; i < n->nbatching; i++)
            if (n->batching[i] == d) {
                int64_t p = n->index_batching[i];
                eval_need(e, id, p != n->vector_dim, "index_vector_dim cannot be a batching dim");
                n->batch_of[d] = p - (p > n->vector_dim);
            }
        if (!has(n->dropped, n->ndropped, d) && n->batch_of[d] < 0) {
            eval_need(e, id, w < n->nwindow, "too few window dimensions");
            n->window_of[d] = n->window_axes[w++];
        }
    }
    eval_need(e, id, w == n->nwindow, "too many window dimensions");
}

// Reads the index vector at a batch position and spreads it over the dims of `space`.
static void numbers_start(Numbers *n, const void *indices, const int64_t *moved_at) {
    int64_t base = 0;
    for (uint32_t b = 0; b < n->nbatch; b++)
        base += moved_at[n->batch_axis[b]] * n->index_step[b];
    for (uint32_t d = 0; d < n->space->rank; d++)
        n->start[d] = 0;
    for (uint32_t k = 0; k < n->nmap; k++)
        n->start[n->map[k]] = index_at(n->index->dtype, (const uint8_t *)indices + base +
                                                            (int64_t)k * n->vector_step);
}

static int64_t batch_part(const Numbers *n, uint32_t d, const int64_t *moved_at) {
    return n->batch_of[d] < 0 ? 0 : moved_at[n->batch_axis[n->batch_of[d]]];
}

// --- gather
// ------------------------------------------------------------------------------------------

static void gather(Eval *e, OpId id, Numbers *n, const int64_t *slice, const Tensor *in,
                   Tensor *out) {
    size_t elem = dtype_bytes(n->space->dtype);
    int64_t step[OTRN_MAX_RANK], to[OTRN_MAX_RANK], batch_dims[OTRN_MAX_RANK];
    int64_t from[OTRN_MAX_RANK], win_to[OTRN_MAX_RANK], win_dims[OTRN_MAX_RANK];
    int nwin = 0;
    eval_strides(n->space, step);
    eval_strides(n->moved, to);
    for (uint32_t a = 0; a < n->moved->rank; a++)
        batch_dims[a] = has(n->window_axes, n->nwindow, a) ? 1 : n->moved->dims[a];
    for (uint32_t d = 0; d < n->space->rank; d++) {
        int64_t axis = n->window_of[d];
        eval_need(e, id, slice[d] >= 0 && slice[d] <= n->space->dims[d],
                  "slice_sizes out of range");
        if (axis < 0) {
            eval_need(e, id, slice[d] == 1 || (slice[d] == 0 && n->moved->elems == 0),
                      "a collapsed or batching dim has slice size 1");
            eval_need(e, id,
                      n->batch_of[d] < 0 ||
                          n->moved->dims[n->batch_axis[n->batch_of[d]]] <= n->space->dims[d],
                      "batching dims differ in size");
            continue;
        }
        eval_need(e, id, n->moved->dims[axis] == slice[d], "result shape does not fit slice_sizes");
        from[nwin] = step[d], win_to[nwin] = to[axis], win_dims[nwin++] = slice[d];
    }
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    if (!n->moved->elems)
        return;
    Box b;
    for (box_init(&b, n->moved->rank, batch_dims); b.more; box_next(&b)) {
        int64_t src = 0, at = 0;
        numbers_start(n, in[1].data, b.at);
        for (uint32_t d = 0; d < n->space->rank; d++) // the whole slice stays inside
            src += (clamp(n->start[d], 0, n->space->dims[d] - slice[d]) + batch_part(n, d, b.at)) *
                   step[d];
        for (uint32_t a = 0; a < n->moved->rank; a++)
            at += b.at[a] * to[a];
        eval_copy_box(elem, nwin, win_dims, dst + at, win_to, (const uint8_t *)in[0].data + src,
                      from);
    }
}

void eval_gather(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    Numbers n = {
        .space = eval_type(e, in[0]), .index = eval_type(e, in[1]), .moved = eval_type(e, out[0])};
    eval_need(e, id, n.space->dtype == n.moved->dtype,
              "operand and result must have one element type");
    n.window_axes = eval_axes(e, id, AK_OFFSET_DIMS, n.moved->rank, &n.nwindow);
    n.dropped = eval_axes(e, id, AK_COLLAPSED_SLICE_DIMS, n.space->rank, &n.ndropped);
    n.batching = eval_axes(e, id, AK_OPERAND_BATCHING_DIMS, n.space->rank, &n.nbatching);
    n.index_batching =
        eval_axes(e, id, AK_START_INDICES_BATCHING_DIMS, n.index->rank, &n.nindex_batching);
    n.map = eval_axes(e, id, AK_START_INDEX_MAP, n.space->rank, &n.nmap);
    n.vector_dim = hlo_int(op, AK_INDEX_VECTOR_DIM, 0);
    numbers_init(e, id, &n);
    int64_t sizes[OTRN_MAX_RANK];
    if (op->code == HLO_DYNAMIC_GATHER) { // slice sizes are an operand
        const HloType *st = eval_type(e, in[2]);
        eval_need(e, id, dtype_is_int(st->dtype) && st->rank == 1 && st->dims[0] == n.space->rank,
                  "slice_sizes has one entry per dimension");
        eval_load(st->dtype, in[2].data, (int64_t)dtype_bytes(st->dtype), n.space->rank, sizes);
        gather(e, id, &n, sizes, in, out);
    } else
        gather(e, id, &n, eval_ints(e, id, AK_SLICE_SIZES, n.space->rank, -1), in, out);
}

void eval_torch_index_select(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *s = eval_type(e, in[0]), *x = eval_type(e, in[1]), *t = eval_type(e, out[0]);
    int64_t dim = hlo_int(op, AK_DIM, -1), nb = hlo_int(op, AK_BATCH_DIMS, 0);
    bool ok = dtype_is_int(x->dtype) && s->dtype == t->dtype && nb >= 0 && nb <= dim &&
              dim < s->rank && nb <= x->rank && t->rank == s->rank - 1 + x->rank - nb;
    eval_need(e, id, ok, "dim, batch_dims or result rank do not fit");
    int64_t inner = x->rank - nb; // result axes [dim, dim + inner) come from the index
    for (int a = 0; a < t->rank; a++) {
        int64_t want = a < dim           ? s->dims[a]
                       : a < dim + inner ? x->dims[nb + a - dim]
                                         : s->dims[a - inner + 1];
        ok = ok && t->dims[a] == want && (a >= nb || x->dims[a] == s->dims[a]);
    }
    eval_need(e, id, ok, "result shape does not fit");
    int64_t step[OTRN_MAX_RANK], xstep[OTRN_MAX_RANK];
    eval_strides(s, step);
    eval_strides(x, xstep);
    size_t elem = dtype_bytes(t->dtype);
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    Box b;
    for (box_init(&b, t->rank, t->dims); b.more; box_next(&b), dst += elem) {
        int64_t from = 0, at = 0;
        for (int i = 0; i < x->rank; i++)
            at += b.at[i < nb ? i : dim + i - nb] * xstep[i];
        int64_t pick = index_at(x->dtype, (const uint8_t *)in[1].data + at);
        for (int i = 0; i < s->rank; i++)
            from +=
                (i == dim ? clamp(pick, 0, s->dims[i] - 1) : b.at[i < dim ? i : i + inner - 1]) *
                step[i];
        if (s->dims[dim] == 0)
            memset(dst, 0, elem);
        else
            memcpy(dst, (const uint8_t *)in[0].data + from, elem);
    }
}

// --- scatter
// -----------------------------------------------------------------------------------------

// Updates are applied in row-major order of the updates tensor; one that falls outside is skipped.
static void scatter(Eval *e, const Body *body, Numbers *n, uint32_t count, const Tensor *in,
                    Tensor *out) {
    int64_t step[OTRN_MAX_RANK];
    const void *args[EVAL_MAX_BODY];
    void *results[EVAL_MAX_BODY];
    int64_t at = 0; // number of the update
    for (uint32_t d = 0, k = n->space->rank; d < n->space->rank; d++)
        step[k - 1 - d] = d == 0 ? 1 : step[k - d] * n->space->dims[k - d];
    Box b;
    for (box_init(&b, n->moved->rank, n->moved->dims); b.more; box_next(&b), at++) {
        numbers_start(n, in[count].data, b.at);
        int64_t target = 0;
        bool inside = true;
        for (uint32_t d = 0; d < n->space->rank && inside; d++) {
            int64_t more =
                batch_part(n, d, b.at) + (n->window_of[d] < 0 ? 0 : b.at[n->window_of[d]]);
            int64_t c;
            inside =
                !__builtin_add_overflow(n->start[d], more, &c) && c >= 0 && c < n->space->dims[d];
            target += inside ? c * step[d] : 0;
        }
        if (!inside)
            continue;
        for (uint32_t k = 0; k < count; k++) {
            size_t elem = dtype_bytes(eval_type(e, out[k])->dtype);
            args[k] = results[k] = (uint8_t *)out[k].data + target * (int64_t)elem;
            args[count + k] = (const uint8_t *)in[count + 1 + k].data + at * (int64_t)elem;
        }
        eval_body_call(e, body, args, results);
    }
}

void eval_scatter(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    uint32_t count = op->nresults;
    eval_need(e, id, count >= 1 && op->noperands == 2 * count + 1,
              "takes inputs, indices, updates");
    Body body = eval_body(e, id, 0, 2 * count, count);
    Numbers n = {.space = eval_type(e, in[0]),
                 .index = eval_type(e, in[count]),
                 .moved = eval_type(e, in[count + 1])};
    for (uint32_t k = 0; k < count; k++) {
        const HloType *s = eval_type(e, in[k]), *u = eval_type(e, in[count + 1 + k]);
        const HloType *a = eval_body_arg(e, &body, k), *a2 = eval_body_arg(e, &body, count + k);
        eval_need(e, id, hlo_same_dims(s, n.space) && hlo_same_dims(u, n.moved),
                  "inputs share a shape, and so do updates");
        if (in[k].type != out[k].type || s->dtype != a->dtype || u->dtype != a2->dtype ||
            s->dtype != u->dtype)
            eval_fail(e, id, OTRN_UNSUPPORTED, "scatter whose region changes the element type");
        out[k].data = eval_new(e, out[k].type);
        memcpy(out[k].data, in[k].data, hlo_type_bytes(s));
    }
    n.window_axes = eval_axes(e, id, AK_UPDATE_WINDOW_DIMS, n.moved->rank, &n.nwindow);
    n.dropped = eval_axes(e, id, AK_INSERTED_WINDOW_DIMS, n.space->rank, &n.ndropped);
    n.batching = eval_axes(e, id, AK_INPUT_BATCHING_DIMS, n.space->rank, &n.nbatching);
    n.index_batching =
        eval_axes(e, id, AK_SCATTER_INDICES_BATCHING_DIMS, n.index->rank, &n.nindex_batching);
    n.map = eval_axes(e, id, AK_SCATTER_DIMS_TO_OPERAND_DIMS, n.space->rank, &n.nmap);
    n.vector_dim = hlo_int(op, AK_INDEX_VECTOR_DIM, 0);
    numbers_init(e, id, &n);
    scatter(e, &body, &n, count, in, out);
}
