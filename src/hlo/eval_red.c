// SPDX-License-Identifier: Apache-2.0
// eval_red.c — regions applied to elements: reduce, reduce_window, select_and_scatter, map.
//
// The specification lets a reduction associate freely. Here it is sequential: the accumulator
// starts as the init value, elements join it in row-major order as body(accumulator, element), and
// every step is rounded to the body's element type. A region that is a single commutative op of its
// two arguments runs without the graph, with the same result.

#include "hlo/eval_in.h"

// --- regions over scalars
// ----------------------------------------------------------------------------

static bool is_commutative(HloOpcode code) {
    return code == HLO_ADD || code == HLO_MULTIPLY || code == HLO_MAXIMUM || code == HLO_MINIMUM ||
           code == HLO_AND || code == HLO_OR || code == HLO_XOR;
}

// The function of a region { r = op(arg0, arg1); return r } on one type, else NULL.
static WideFn *single_op(Eval *e, const HloRegion *r) {
    if (r->nargs != 2 || r->ops.n != 2)
        return NULL;
    const HloOp *op = eval_op_at(e, r->ops.at[0]), *ret = eval_op_at(e, r->ops.at[1]);
    if (!is_commutative(op->code) || op->noperands != 2 || ret->code != HLO_RETURN ||
        ret->noperands != 1 || hlo_operand(e->h, ret, 0) != op->results)
        return NULL;
    ValueId a = hlo_operand(e->h, op, 0), b = hlo_operand(e->h, op, 1);
    if (!(a == r->args && b == r->args + 1) && !(b == r->args && a == r->args + 1))
        return NULL;
    const HloValue *v = e->h->values.at;
    if (v[a].type != v[b].type || v[a].type != v[op->results].type)
        return NULL;
    return eval_ew(op->code, hlo_value_type(e->h, a)->dtype);
}

Body eval_body(Eval *e, OpId id, uint32_t region, uint32_t nargs, uint32_t nresults) {
    const HloOp *op = eval_op_at(e, id);
    eval_need(e, id, op->nregions > region, "a region is missing");
    const HloRegion *r = hlo_op_region(e->h, op, region);
    eval_need(e, id, r->nargs == nargs, "the region has a wrong number of arguments");
    if (nargs > EVAL_MAX_BODY)
        eval_fail(e, id, OTRN_CAPACITY, "a region of more than %d arguments", EVAL_MAX_BODY);
    eval_need(e, id, r->ops.n > 0, "the region is empty");
    const HloOp *ret = eval_op_at(e, r->ops.at[r->ops.n - 1]);
    eval_need(e, id, ret->code == HLO_RETURN && ret->noperands == nresults,
              "the region returns a wrong number of values");
    for (uint32_t i = 0; i < nargs + nresults; i++) {
        ValueId v = i < nargs ? r->args + i : hlo_operand(e->h, ret, i - nargs);
        const HloType *t = hlo_value_type(e->h, v);
        eval_need(e, id, t->kind == HT_TENSOR && t->rank == 0, "the region works on scalars");
    }
    return (Body){.op = id,
                  .region = r,
                  .nargs = nargs,
                  .nresults = nresults,
                  .fn = single_op(e, r),
                  .dtype = hlo_value_type(e->h, r->args)->dtype};
}

void eval_body_call(Eval *e, const Body *b, const void *const *args, void *const *results) {
    if (b->fn) {
        double x[2], y[2];
        eval_load(b->dtype, args[0], 0, 1, x);
        eval_load(b->dtype, args[1], 0, 1, y);
        b->fn(b->dtype, 1, x, x, y);
        eval_store_computed(b->dtype, results[0], 1, x);
        return;
    }
    Tensor in[EVAL_MAX_BODY], out[EVAL_MAX_BODY];
    for (uint32_t i = 0; i < b->nargs; i++)
        in[i] = (Tensor){e->h->values.at[b->region->args + i].type, (void *)(uintptr_t)args[i]};
    Arena *outer = e->cur;
    e->cur = eval_open(e);
    eval_region(e, b->op, b->region, in, b->nargs, out, b->nresults);
    // A result may be an argument that an earlier result overwrites: copy through here.
    uint8_t copy[EVAL_MAX_BODY][16];
    for (uint32_t i = 0; i < b->nresults; i++)
        memcpy(copy[i], out[i].data, hlo_type_bytes(eval_type(e, out[i])));
    for (uint32_t i = 0; i < b->nresults; i++)
        memcpy(results[i], copy[i], hlo_type_bytes(eval_type(e, out[i])));
    eval_close(e);
    e->cur = outer;
}

// The region folds `count` element streams into `count` accumulators: checks that its results and
// arguments have the accumulators' types.
static Body fold_body(Eval *e, OpId id, uint32_t count, const Tensor *init, const Tensor *out) {
    Body b = eval_body(e, id, 0, 2 * count, count);
    const HloOp *ret = eval_op_at(e, b.region->ops.at[b.region->ops.n - 1]);
    for (uint32_t k = 0; k < count; k++) {
        const HloType *acc = eval_body_arg(e, &b, k), *elem = eval_body_arg(e, &b, count + k);
        const HloType *res = hlo_value_type(e->h, hlo_operand(e->h, ret, k));
        eval_need(e, id, acc->dtype == elem->dtype && acc->dtype == res->dtype,
                  "the region must keep its argument types");
        eval_need(e, id, eval_type(e, out[k])->dtype == acc->dtype,
                  "the result's element type is the region's");
        eval_need(e, id, eval_type(e, init[k])->rank == 0, "init values are scalars");
    }
    return b;
}

// --- reduce
// ------------------------------------------------------------------------------------------

typedef struct Fold { // the operands of a reduction
    Eval *e;
    const Body *body;
    uint32_t count;
    const Tensor *in; // `count` inputs
    Tensor *out;      // `count` accumulators
} Fold;

// Element `src` of every input joins accumulator `dst`.
static void fold_one(const Fold *f, int64_t src, int64_t dst) {
    const void *args[EVAL_MAX_BODY];
    void *acc[EVAL_MAX_BODY];
    uint8_t conv[EVAL_MAX_BODY][16];
    for (uint32_t k = 0; k < f->count; k++) {
        int from = eval_type(f->e, f->in[k])->dtype, to = eval_type(f->e, f->out[k])->dtype;
        const uint8_t *p = (const uint8_t *)f->in[k].data + src * (int64_t)dtype_bytes(from);
        acc[k] = (uint8_t *)f->out[k].data + dst * (int64_t)dtype_bytes(to);
        args[k] = acc[k];
        args[f->count + k] = p;
        if (from != to) { // a body wider than its input
            eval_cast_one(from, to, p, conv[k]);
            args[f->count + k] = conv[k];
        }
    }
    eval_body_call(f->e, f->body, args, acc);
}

// A row of n elements from `src` on joins accumulators dst, dst + step, … (step 0: one of them).
static void fold_row(const Fold *f, int64_t src, int64_t dst, int64_t step, int64_t n) {
    int from = eval_type(f->e, f->in[0])->dtype, to = f->body->dtype;
    if (!f->body->fn || f->count != 1 || from != to) {
        for (int64_t i = 0; i < n; i++)
            fold_one(f, src + i, dst + i * step);
        return;
    }
    int64_t elem = (int64_t)dtype_bytes(to);
    size_t wide = eval_wide_bytes(to);
    double acc[2 * EVAL_CHUNK], x[2 * EVAL_CHUNK];
    const uint8_t *p = (const uint8_t *)f->in[0].data + src * elem;
    uint8_t *q = (uint8_t *)f->out[0].data + dst * elem;
    for (int64_t at = 0; at < n; at += EVAL_CHUNK) {
        size_t part = (size_t)(n - at < EVAL_CHUNK ? n - at : EVAL_CHUNK);
        eval_load(to, p + at * elem, elem, part, x);
        uint8_t *a = q + at * step * elem;
        eval_load(to, a, elem, step ? part : 1, acc);
        if (step)
            f->body->fn(to, part, acc, acc, x);
        else
            for (size_t i = 0; i < part; i++) {
                f->body->fn(to, 1, acc, acc, (uint8_t *)x + i * wide);
                eval_round(to, 1, acc);
            }
        eval_store_computed(to, a, step ? part : 1, acc);
    }
}

// Fills an accumulator with its init value, converted to the body's type.
static void fill(Eval *e, Tensor init, Tensor *out) {
    const HloType *s = eval_type(e, init), *t = eval_type(e, *out);
    uint8_t v[16];
    int64_t zero[OTRN_MAX_RANK] = {0}, to[OTRN_MAX_RANK];
    eval_cast_one(s->dtype, t->dtype, init.data, v);
    eval_strides(t, to);
    out->data = eval_new(e, out->type);
    eval_copy_box(dtype_bytes(t->dtype), t->rank, t->dims, out->data, to, v, zero);
}

void eval_reduce(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    uint32_t count = op->nresults, ndims, kept = 0;
    eval_need(e, id, count >= 1 && op->noperands == 2 * count,
              "takes inputs and as many init values");
    const HloType *s = eval_type(e, in[0]);
    const int64_t *dims = eval_axes(e, id, AK_DIMENSIONS, s->rank, &ndims);
    bool reduced[OTRN_MAX_RANK] = {false};
    int64_t keep[OTRN_MAX_RANK], step[OTRN_MAX_RANK], acc_step = 1;
    for (uint32_t i = 0; i < ndims; i++)
        reduced[dims[i]] = true;
    for (int i = 0; i < s->rank; i++)
        if (!reduced[i])
            keep[kept++] = s->dims[i];
    for (int i = s->rank - 1; i >= 0; i--) { // elements of the result per step along axis i
        step[i] = reduced[i] ? 0 : acc_step;
        acc_step *= reduced[i] ? 1 : s->dims[i];
    }
    for (uint32_t k = 0; k < count; k++) {
        eval_need(e, id, hlo_same_dims(eval_type(e, in[k]), s), "inputs must have one shape");
        eval_need_dims(e, id, eval_type(e, out[k]), kept, keep);
    }
    Body body = fold_body(e, id, count, in + count, out);
    for (uint32_t k = 0; k < count; k++)
        fill(e, in[count + k], &out[k]);
    Fold f = {e, &body, count, in, out};
    int last = s->rank - 1;
    int64_t row = last < 0 ? 1 : s->dims[last], src = 0;
    Box b;
    for (box_init(&b, last < 0 ? 0 : last, s->dims); b.more && row; box_next(&b), src += row) {
        int64_t dst = 0;
        for (int i = 0; i < last; i++)
            dst += b.at[i] * step[i];
        fold_row(&f, src, dst, last < 0 ? 0 : step[last], row);
    }
}

// --- windows
// -----------------------------------------------------------------------------------------

typedef struct Window { // per axis of the operand
    const int64_t *size, *stride, *base_dilation, *dilation;
    const int64_t *pad; // low, high pairs
} Window;

static void window_read(Eval *e, OpId id, uint32_t rank, Window *w) {
    w->size = eval_ints(e, id, AK_WINDOW_DIMENSIONS, rank, -1);
    w->stride = eval_ints(e, id, AK_WINDOW_STRIDES, rank, 1);
    w->pad = eval_ints(e, id, AK_PADDING, 2 * rank, 0);
    bool dilates = eval_op_at(e, id)->code == HLO_REDUCE_WINDOW;
    w->base_dilation = dilates ? eval_ints(e, id, AK_BASE_DILATIONS, rank, 1) : NULL;
    w->dilation = dilates ? eval_ints(e, id, AK_WINDOW_DILATIONS, rank, 1) : NULL;
}

// Checks the window against the shapes: `full` is the windowed tensor, `grid` has one element per
// window position.
static void window_check(Eval *e, OpId id, const Window *w, const HloType *full,
                         const HloType *grid) {
    const int64_t limit = INT64_C(1) << 40; // keeps the sums below inside 64 bits
    for (int i = 0; i < full->rank; i++) {
        int64_t bd = w->base_dilation ? w->base_dilation[i] : 1;
        int64_t wd = w->dilation ? w->dilation[i] : 1;
        int64_t lo = w->pad[2 * i], hi = w->pad[2 * i + 1];
        bool sane = w->size[i] > 0 && w->stride[i] > 0 && bd > 0 && wd > 0 && bd < 1 << 20 &&
                    wd < 1 << 20 && w->size[i] < limit && w->stride[i] < limit &&
                    full->dims[i] < limit && lo > -limit && lo < limit && hi > -limit && hi < limit;
        eval_need(e, id, sane,
                  "window sizes, strides and dilations must be positive (and below 2^40)");
        int64_t padded = lo + (full->dims[i] ? (full->dims[i] - 1) * bd + 1 : 0) + hi;
        int64_t reach = (w->size[i] - 1) * wd + 1;
        int64_t want = padded < reach ? 0 : (padded - reach) / w->stride[i] + 1;
        eval_need(e, id, grid->dims[i] == want, "the windows do not fit the shape");
    }
}

// Element number under window position `at` at offset `win`, or -1 on padding or a dilation hole.
static int64_t window_elem(const Window *w, const HloType *full, const int64_t *at,
                           const int64_t *win) {
    int64_t elem = 0;
    for (int i = 0; i < full->rank; i++) {
        int64_t bd = w->base_dilation ? w->base_dilation[i] : 1;
        int64_t wd = w->dilation ? w->dilation[i] : 1;
        int64_t p = at[i] * w->stride[i] + win[i] * wd - w->pad[2 * i];
        if (p < 0 || p % bd || p / bd >= full->dims[i])
            return -1;
        elem = elem * full->dims[i] + p / bd;
    }
    return elem;
}

// One window position of a single-op body, on wide elements.
static void window_fold_wide(const Body *body, const Window *w, const HloType *s, const Box *at,
                             const uint8_t *in, const double *init, uint8_t *dst) {
    double acc[2] = {init[0], init[1]}, x[2];
    size_t elem = dtype_bytes(s->dtype);
    Box win;
    for (box_init(&win, s->rank, w->size); win.more; box_next(&win)) {
        int64_t src = window_elem(w, s, at->at, win.at);
        if (src >= 0)
            eval_load(s->dtype, in + (size_t)src * elem, 0, 1, x);
        body->fn(body->dtype, 1, acc, acc, src >= 0 ? x : init);
        eval_round(body->dtype, 1, acc);
    }
    eval_store_computed(body->dtype, dst, 1, acc);
}

// Padding and dilation holes hold the init value and take part like any element.
static void window_fold(Eval *e, const Body *body, const Window *w, uint32_t count,
                        const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    Fold data = {e, body, count, in, out}, pads = {e, body, count, in + count, out};
    bool quick = body->fn && count == 1 && s->dtype == body->dtype &&
                 eval_type(e, in[count])->dtype == body->dtype;
    double init[2] = {0, 0};
    if (quick)
        eval_load(body->dtype, in[count].data, 0, 1, init);
    size_t elem = dtype_bytes(body->dtype);
    int64_t dst = 0;
    Box at, win;
    for (box_init(&at, t->rank, t->dims); at.more; box_next(&at), dst++) {
        if (quick) {
            window_fold_wide(body, w, s, &at, in[0].data, init,
                             (uint8_t *)out[0].data + (size_t)dst * elem);
            continue;
        }
        for (box_init(&win, s->rank, w->size); win.more; box_next(&win)) {
            int64_t src = window_elem(w, s, at.at, win.at);
            fold_one(src < 0 ? &pads : &data, src < 0 ? 0 : src, dst);
        }
    }
}

void eval_reduce_window(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    uint32_t count = op->nresults;
    eval_need(e, id, count >= 1 && op->noperands == 2 * count,
              "takes inputs and as many init values");
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    for (uint32_t k = 0; k < count; k++)
        eval_need(e, id,
                  hlo_same_dims(eval_type(e, in[k]), s) && hlo_same_dims(eval_type(e, out[k]), t),
                  "inputs share a shape, and so do results");
    eval_need(e, id, s->rank == t->rank, "the result has the operand's rank");
    Window w;
    window_read(e, id, s->rank, &w);
    window_check(e, id, &w, s, t);
    Body body = fold_body(e, id, count, in + count, out);
    for (uint32_t k = 0; k < count; k++)
        fill(e, in[count + k], &out[k]);
    window_fold(e, &body, &w, count, in, out);
}

// Each window of the operand selects one element: scanning in row-major order, the current choice
// stays while select(current, candidate) holds; padding never takes part. The source element of
// that window is then scattered onto the chosen place of the result, which starts as init.
void eval_select_and_scatter(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *src = eval_type(e, in[1]), *t = eval_type(e, out[0]);
    eval_need(e, id,
              hlo_same_dims(s, t) && src->rank == s->rank && s->dtype == src->dtype &&
                  eval_type(e, in[2])->rank == 0 && eval_type(e, in[2])->dtype == s->dtype,
              "operand, source, init and result do not fit");
    Window w;
    window_read(e, id, s->rank, &w);
    window_check(e, id, &w, s, src);
    Body select = eval_body(e, id, 0, 2, 1), scat = eval_body(e, id, 1, 2, 1);
    const HloOp *ret = eval_op_at(e, select.region->ops.at[select.region->ops.n - 1]);
    const HloOp *ret2 = eval_op_at(e, scat.region->ops.at[scat.region->ops.n - 1]);
    eval_need(e, id,
              hlo_value_type(e->h, hlo_operand(e->h, ret, 0))->dtype == DT_I1 &&
                  select.dtype == s->dtype && eval_body_arg(e, &select, 1)->dtype == s->dtype,
              "select compares two elements of the operand");
    eval_need(e, id,
              hlo_value_type(e->h, hlo_operand(e->h, ret2, 0))->dtype == t->dtype &&
                  scat.dtype == t->dtype && eval_body_arg(e, &scat, 1)->dtype == t->dtype &&
                  s->dtype == t->dtype,
              "scatter combines two elements of the result's type");
    fill(e, in[2], &out[0]);
    size_t elem = dtype_bytes(s->dtype);
    const uint8_t *p = in[0].data, *from = in[1].data;
    Box at, win;
    for (box_init(&at, src->rank, src->dims); at.more; box_next(&at), from += elem) {
        int64_t chosen = -1;
        for (box_init(&win, s->rank, w.size); win.more; box_next(&win)) {
            int64_t i = window_elem(&w, s, at.at, win.at);
            uint8_t keep = i < 0;
            if (i >= 0 && chosen >= 0)
                eval_body_call(e, &select,
                               (const void *[]){p + (size_t)chosen * elem, p + (size_t)i * elem},
                               (void *[]){&keep});
            if (!keep)
                chosen = i;
        }
        if (chosen < 0)
            continue;
        uint8_t *place = (uint8_t *)out[0].data + (size_t)chosen * elem;
        eval_body_call(e, &scat, (const void *[]){from, place}, (void *[]){place});
    }
}

// --- map
// ---------------------------------------------------------------------------------------------

// map, and our own fused form of it with several results.
void eval_map(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *t = eval_type(e, out[0]);
    eval_need(e, id, op->nresults >= 1 && op->nresults <= EVAL_MAX_BODY, "too many results");
    Body body = eval_body(e, id, 0, op->noperands, op->nresults);
    const HloOp *ret = eval_op_at(e, body.region->ops.at[body.region->ops.n - 1]);
    for (uint32_t r = 0; r < op->nresults; r++) {
        const HloType *rt = eval_type(e, out[r]);
        eval_need(e, id,
                  hlo_same_dims(rt, t) &&
                      hlo_value_type(e->h, hlo_operand(e->h, ret, r))->dtype == rt->dtype,
                  "the region returns the result's element type");
        out[r].data = eval_new(e, out[r].type);
    }
    uint32_t nkinds;
    const int64_t *kinds = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &nkinds); // of the fused form
    for (uint32_t k = 0; k < op->noperands; k++) {
        const HloType *it = eval_type(e, in[k]);
        eval_need(e, id,
                  hlo_fused_fits(it->dims, it->rank, t->dims, t->rank, k < nkinds ? kinds[k] : FUSED_SAME) &&
                      eval_body_arg(e, &body, k)->dtype == it->dtype,
                  "the region takes one element of each operand");
    }
    for (int64_t i = 0; i < t->elems; i++) {
        const void *args[EVAL_MAX_BODY];
        void *results[EVAL_MAX_BODY];
        for (uint32_t k = 0; k < op->noperands; k++) {
            const HloType *it = eval_type(e, in[k]);
            int64_t kind = k < nkinds ? kinds[k] : FUSED_SAME;
            int64_t at = kind == FUSED_ROWS ? i / (t->elems / it->elems) : kind == FUSED_COLUMNS ? i % it->elems : i;
            args[k] = (const uint8_t *)in[k].data + at * (int64_t)dtype_bytes(it->dtype);
        }
        for (uint32_t r = 0; r < op->nresults; r++)
            results[r] = (uint8_t *)out[r].data + i * (int64_t)dtype_bytes(eval_type(e, out[r])->dtype);
        eval_body_call(e, &body, args, results);
    }
}

// --- rows
// --------------------------------------------------------------------------------------------

static const HloType *row_return(const Eval *e, const HloRegion *r, uint32_t i) {
    const HloOp *ret = eval_op_at(e, r->ops.at[r->ops.n - 1]);
    return hlo_value_type(e->h, hlo_operand(e->h, ret, i));
}

void eval_rows(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    int64_t rows, columns;
    char why[128];
    eval_need(e, id, op->nregions == 1 && hlo_rows_fit(e->h, op, &rows, &columns, why), "not a row program");
    const HloRegion *r = hlo_op_region(e->h, op, 0);
    uint32_t nkinds;
    const int64_t *kinds = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &nkinds);
    for (uint32_t i = 0; i < op->nresults; i++)
        out[i].data = eval_new(e, out[i].type);
    Tensor *args = arena_alloc(e->home, (op->noperands + op->nresults + 1) * sizeof *args);
    Tensor *got = args + op->noperands;
    Arena *outer = e->cur, *inner = eval_open(e);
    for (int64_t row = 0; row < rows; row++) {
        for (uint32_t k = 0; k < op->noperands; k++) {
            const HloType *t = eval_type(e, in[k]);
            int64_t at = kinds[k] != FUSED_ROWS ? row * columns % t->elems : t->elems == 1 ? 0 : row;
            if (kinds[k] == FUSED_BLOCKS)
                at = row / (rows * columns / t->elems) * columns;
            args[k] = (Tensor){e->h->values.at[r->args + k].type,
                               (uint8_t *)in[k].data + at * (int64_t)dtype_bytes(t->dtype)};
        }
        e->cur = inner;
        eval_region(e, id, r, args, op->noperands, got, op->nresults);
        e->cur = outer;
        for (uint32_t i = 0; i < op->nresults; i++) {
            size_t bytes = hlo_type_bytes(row_return(e, r, i));
            memcpy((uint8_t *)out[i].data + (size_t)row * bytes, got[i].data, bytes);
        }
        eval_reset(e, inner);
    }
    eval_close(e);
}
