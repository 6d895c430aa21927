// SPDX-License-Identifier: Apache-2.0
// eval_sort.c — sort (a stable merge sort driven by the comparator region) and top_k.
#include "hlo/eval_in.h"

typedef struct Line { // one line along the sorted dimension
    Eval *e;
    const Body *less;
    const Tensor *in;
    uint32_t count;
    int64_t base, step; // element numbers
} Line;

// comparator(a0, b0, a1, b1, …): must element a come before element b?
static bool before(const Line *l, int64_t a, int64_t b) {
    const void *args[EVAL_MAX_BODY];
    for (uint32_t k = 0; k < l->count; k++) {
        int64_t elem = (int64_t)dtype_bytes(eval_type(l->e, l->in[k])->dtype);
        const uint8_t *p = l->in[k].data;
        args[2 * k] = p + (l->base + a * l->step) * elem;
        args[2 * k + 1] = p + (l->base + b * l->step) * elem;
    }
    uint8_t yes = 0;
    eval_body_call(l->e, l->less, args, (void *[]){&yes});
    return yes;
}

// Bottom-up merge sort of the positions in `order`; `spare` has the same size. An element of the
// right half goes first only when it must come before: equal elements keep their order.
static void merge_sort(const Line *l, int64_t n, int64_t *order, int64_t *spare) {
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * run) {
            int64_t mid = lo + run < n ? lo + run : n, hi = mid + run < n ? mid + run : n;
            int64_t i = lo, j = mid;
            for (int64_t k = lo; k < hi; k++) {
                bool right = i == mid || (j < hi && before(l, order[j], order[i]));
                spare[k] = right ? order[j++] : order[i++];
            }
        }
        memcpy(order, spare, (size_t)n * sizeof *order);
    }
}

static void sort_lines(Eval *e, const Body *less, uint32_t count, int dim, const Tensor *in,
                       Tensor *out) {
    const HloType *t = eval_type(e, in[0]);
    int64_t n = t->dims[dim], inner = 1;
    for (int i = dim + 1; i < t->rank; i++)
        inner *= t->dims[i];
    Arena *a = eval_open(e);
    int64_t *order = ARENA_NEWN(a, int64_t, (size_t)n), *spare = ARENA_NEWN(a, int64_t, (size_t)n);
    for (int64_t line = 0; line < t->elems / n; line++) {
        Line l = {e, less, in, count, line / inner * inner * n + line % inner, inner};
        for (int64_t i = 0; i < n; i++)
            order[i] = i;
        merge_sort(&l, n, order, spare);
        for (uint32_t k = 0; k < count; k++) {
            int64_t elem = (int64_t)dtype_bytes(eval_type(e, in[k])->dtype);
            for (int64_t i = 0; i < n; i++)
                memcpy((uint8_t *)out[k].data + (l.base + i * inner) * elem,
                       (const uint8_t *)in[k].data + (l.base + order[i] * inner) * elem,
                       (size_t)elem);
        }
    }
    eval_close(e);
}

void eval_sort(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *t = eval_type(e, in[0]);
    uint32_t count = op->noperands;
    eval_need(e, id, count >= 1 && op->nresults == count, "as many results as operands");
    int64_t dim = hlo_int(op, AK_DIMENSION, -1);
    dim += dim < 0 ? t->rank : 0;
    eval_need(e, id, dim >= 0 && dim < t->rank, "dimension must name an axis");
    Body less = eval_body(e, id, 0, 2 * count, 1);
    const HloOp *ret = eval_op_at(e, less.region->ops.at[less.region->ops.n - 1]);
    eval_need(e, id, hlo_value_type(e->h, hlo_operand(e->h, ret, 0))->dtype == DT_I1,
              "the comparator returns i1");
    for (uint32_t k = 0; k < count; k++) {
        const HloType *s = eval_type(e, in[k]);
        eval_need(e, id, hlo_same_dims(s, t) && in[k].type == out[k].type,
                  "operands must have one shape");
        eval_need(e, id,
                  eval_body_arg(e, &less, 2 * k)->dtype == s->dtype &&
                      eval_body_arg(e, &less, 2 * k + 1)->dtype == s->dtype,
                  "the comparator takes two elements of each operand");
        out[k].data = eval_new(e, out[k].type);
    }
    if (t->elems)
        sort_lines(e, &less, count, (int)dim, in, out);
}

// --- top_k
// -------------------------------------------------------------------------------------------

// A key whose unsigned order is the order of the values; floats in total order, NaN at the ends.
static uint64_t order_key(int dtype, const void *p) {
    const uint64_t top = 1ull << 63;
    if (eval_wide_kind(dtype) == WIDE_I) {
        uint64_t u = (uint64_t)dtype_to_i64(dtype, p);
        return dtype_row(dtype)->cls == DC_SINT ? u ^ top : u;
    }
    double v = dtype_to_f64(dtype, p);
    uint64_t u;
    memcpy(&u, &v, 8);
    return u & top ? ~u : u | top;
}

// The k largest (or smallest) of each row of the last axis, in order; ties to the lower index.
void eval_top_k(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]), *x = eval_type(e, out[1]);
    int64_t k = hlo_int(op, AK_K, -1);
    bool largest = hlo_int(op, AK_LARGEST, 1);
    int last = s->rank - 1;
    bool ok = s->rank >= 1 && k >= 0 && k <= s->dims[last] && t->rank == s->rank &&
              hlo_same_dims(t, x) && t->dims[last] == k && t->dtype == s->dtype &&
              x->dtype == DT_I32 && !dtype_is_complex(s->dtype);
    for (int i = 0; ok && i < last; i++)
        ok = s->dims[i] == t->dims[i];
    eval_need(e, id, ok, "results hold k values and i32 positions of each row");
    int64_t n = s->dims[last], elem = (int64_t)dtype_bytes(s->dtype);
    out[0].data = eval_new(e, out[0].type);
    out[1].data = eval_new(e, out[1].type);
    Arena *a = eval_open(e);
    bool *taken = ARENA_NEWN(a, bool, (size_t)n);
    const uint8_t *row = in[0].data;
    int64_t at = 0;
    for (int64_t r = 0; n && k && r < s->elems / n; r++, row += n * elem) {
        memset(taken, 0, (size_t)n);
        for (int64_t j = 0; j < k; j++, at++) { // selection: k is small
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++) {
                if (taken[i])
                    continue;
                uint64_t u = order_key(s->dtype, row + i * elem);
                uint64_t v = best < 0 ? 0 : order_key(s->dtype, row + best * elem);
                if (best < 0 || (largest ? u > v : u < v))
                    best = i;
            }
            taken[best] = true;
            memcpy((uint8_t *)out[0].data + at * elem, row + best * elem, (size_t)elem);
            dtype_from_i64(DT_I32, (uint8_t *)out[1].data + at * 4, best);
        }
    }
    eval_close(e);
}
