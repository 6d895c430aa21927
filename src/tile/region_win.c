// SPDX-License-Identifier: Apache-2.0
// region_win.c — windows over small tensors inside a region: reduce_window, select_and_scatter, convolution;
// and scatter, whose window is placed by indices of run time.
//
// What a window covers is known when the region is compiled, so each element of the result is a chain of steps over
// the elements below it, in the order of the evaluator. Choices made at run time (which element a window selects, which
// element an index names) become selections over all it could be.
#include "tile/region.h"

#include <string.h>

#include "hlo/conv.h"
#include "hlo/pool.h"

typedef struct Win {
    PoolAxis axis[OTRN_MAX_RANK];
    bool gone[OTRN_MAX_RANK]; // a reduction's window is all of these axes, which the result has not
    RShape in, box; // the operand; places in a window
} Win;

static Win win_of(Region *p, const HloOp *op) {
    Win w = {.in = region_shape(p, hlo_operand(p->h, op, 0))};
    w.box.rank = w.in.rank, w.box.elems = 1;
    for (int i = 0; i < w.in.rank; i++) {
        uint32_t n = 0;
        const int64_t *dims = op->code == HLO_REDUCE ? hlo_ints(op, AK_DIMENSIONS, &n) : NULL;
        w.gone[i] = hlo_among(dims, n, i);
        w.axis[i] = op->code == HLO_REDUCE ? (PoolAxis){.in = w.in.dims[i], .window = w.gone[i] ? w.in.dims[i] : 1, .stride = 1, .gap = 1, .in_gap = 1}
                                           : pool_axis(op, (uint32_t)i, w.in.dims[i], 0);
        w.box.elems *= w.box.dims[i] = w.axis[i].window;
    }
    return w;
}

// The element below window position `at` at `offset` inside the window, or -1 on padding and in holes.
static int64_t win_elem(const Win *w, const int64_t *at, const int64_t *offset) {
    int64_t from[OTRN_MAX_RANK];
    for (int i = 0; i < w->in.rank; i++)
        if ((from[i] = pool_at(&w->axis[i], at[i], offset[i])) < 0)
            return -1;
    return region_number(&w->in, from);
}

// Element by element in row-major order, as body(accumulator, element). Padding and holes hold the init value and take part like any element.
static void add_reduce(Region *p, const HloOp *op) {
    uint32_t n = op->noperands / 2;
    RShape out = region_shape(p, op->results);
    Win w = win_of(p, op);
    Fold f = region_fold(p, n, out.elems);
    for (int64_t e = 0; e < out.elems; e++) {
        int64_t to[OTRN_MAX_RANK], at[OTRN_MAX_RANK], offset[OTRN_MAX_RANK] = {0};
        region_place(&out, e, to);
        for (int i = 0, d = 0; i < w.in.rank; i++)
            at[i] = w.gone[i] ? 0 : to[d++];
        for (uint32_t k = 0; k < n; k++)
            f.regs[k][e] = region_operand(p, op, n + k)[0];
        for (bool more = w.box.elems > 0; more; more = region_next(&w.box, offset)) {
            int64_t from = win_elem(&w, at, offset);
            for (uint32_t k = 0; k < n; k++)
                f.args[n + k] = from < 0 ? region_operand(p, op, n + k) : region_operand(p, op, k) + from;
            region_fold_in(p, &f, op, e);
        }
    }
    region_fold_end(p, &f, op);
}

// For each window the flags of the elements it chose, then the source goes to where the flag is set.
static void add_select_and_scatter(Region *p, const HloOp *op) {
    RShape source = region_shape(p, hlo_operand(p->h, op, 1));
    RegionId select = p->h->op_regions.at[op->regions], combine = p->h->op_regions.at[op->regions + 1];
    Win w = win_of(p, op);
    int64_t elems = w.in.elems;
    uint16_t *regs = region_regs(p, (uint32_t)elems), *chosen = region_regs(p, (uint32_t)elems), no = region_const_int(p, DT_I1, 0);
    for (int64_t i = 0; i < elems; i++)
        regs[i] = region_operand(p, op, 2)[0];
    for (int64_t e = 0; e < source.elems; e++) {
        int64_t at[OTRN_MAX_RANK], offset[OTRN_MAX_RANK] = {0};
        uint16_t value = 0;
        bool any = false;
        const uint16_t *out;
        region_place(&source, e, at);
        for (int64_t i = 0; i < elems; i++)
            chosen[i] = no;
        do {
            int64_t from = win_elem(&w, at, offset);
            if (from < 0)
                continue;
            uint16_t here = region_operand(p, op, 0)[from], keep = no;
            if (any) {
                const uint16_t *pair[2] = {&value, &here};
                region_inline(p, select, pair, &out);
                keep = out[0];
                for (int64_t i = 0; i < elems; i++)
                    chosen[i] = region_select(p, keep, chosen[i], no);
            }
            value = any ? region_select(p, keep, value, here) : here;
            chosen[from] = region_step(p, HLO_NOT, DT_I1, keep, 0, 0);
            any = true;
        } while (region_next(&w.box, offset));
        for (int64_t i = 0; i < elems; i++) {
            if (chosen[i] == no)
                continue;
            const uint16_t *pair[2] = {region_operand(p, op, 1) + e, &regs[i]};
            region_branch(p, combine, chosen[i], pair, &out);
            regs[i] = region_select(p, chosen[i], out[0], regs[i]);
        }
    }
    region_bind(p, op->results, regs);
}

// --- scatter -----------------------------------------------------------------------------------------

// The update falls on the element `at` of the input: a register, -1 always, -2 never.
static int scatter_here(Region *p, const Places *s, const int *start, const int64_t *more, const int64_t *at) {
    int all = -1;
    for (int d = 0; d < s->whole.rank; d++) {
        if (start[d] < 0 && at[d] != more[d])
            return -2;
        if (start[d] < 0)
            continue;
        uint16_t reg = (uint16_t)start[d];
        int dtype = p->dtypes.at[reg];
        if (at[d] < more[d] && dtype_row(dtype)->cls != DC_SINT)
            return -2;
        uint16_t here = region_compare(p, CMP_EQ, reg, region_const_int(p, dtype, at[d] - more[d]));
        all = all < 0 ? here : region_step(p, HLO_AND, DT_I1, (uint16_t)all, here, 0);
    }
    return all;
}

// Updates in row-major order; one that falls outside is nowhere.
static void add_scatter(Region *p, const HloOp *op) {
    uint32_t n = op->nresults;
    Places s = region_places(p, op, &index_of_scatter, hlo_operand(p->h, op, n), hlo_operand(p->h, op, n + 1));
    Fold f = region_fold(p, n, s.whole.elems);
    for (uint32_t k = 0; k < n; k++)
        memcpy(f.regs[k], region_operand(p, op, k), (size_t)s.whole.elems * sizeof **f.regs);
    for (int64_t u = 0; u < s.windows.elems; u++) {
        int64_t to[OTRN_MAX_RANK], more[OTRN_MAX_RANK], at[OTRN_MAX_RANK];
        int start[OTRN_MAX_RANK];
        region_place(&s.windows, u, to);
        region_places_at(&s, to, start, more);
        for (uint32_t k = 0; k < s.nmap; k++) {
            uint16_t reg = (uint16_t)start[s.map[k]];
            start[s.map[k]] = dtype_row(p->dtypes.at[reg])->bits < 32 ? region_as(p, reg, DT_I32) : reg;
        }
        for (int64_t e = 0; e < s.whole.elems; e++) {
            region_place(&s.whole, e, at);
            int here = scatter_here(p, &s, start, more, at);
            if (here == -2)
                continue;
            uint16_t test = here < 0 ? region_const_int(p, DT_I1, 1) : (uint16_t)here;
            for (uint32_t k = 0; k < n; k++) {
                f.args[k] = &f.regs[k][e];
                f.args[n + k] = region_operand(p, op, n + 1 + k) + u;
            }
            region_branch(p, p->h->op_regions.at[op->regions], test, f.args, f.next);
            for (uint32_t k = 0; k < n; k++)
                f.regs[k][e] = here < 0 ? f.next[k][0] : region_select(p, test, f.next[k][0], f.regs[k][e]);
        }
    }
    region_fold_end(p, &f, op);
}

// --- convolution -------------------------------------------------------------------------------------

typedef struct Conv {
    ConvForm f;
    RShape in, kernel, out, taps; // taps: kernel positions, then input features of a group
} Conv;

static Conv conv_of(Region *p, const HloOp *op) {
    Conv c = {.in = region_shape(p, hlo_operand(p->h, op, 0)), .kernel = region_shape(p, hlo_operand(p->h, op, 1)), .out = region_shape(p, op->results)};
    conv_form(p->h, op, &c.f);
    c.taps = (RShape){.rank = c.f.ns + 1, .elems = 1};
    for (int i = 0; i <= c.f.ns; i++) {
        c.taps.dims[i] = i < c.f.ns ? c.f.axis[i].kernel : c.kernel.dims[c.f.kernel_in];
        c.taps.elems *= c.taps.dims[i];
    }
    return c;
}

// The elements that meet at output place `to` under `tap`; false on padding.
static bool conv_pair(const Conv *c, const int64_t *to, const int64_t *tap, int64_t *x, int64_t *k) {
    const ConvForm *f = &c->f;
    int64_t from[OTRN_MAX_RANK], with[OTRN_MAX_RANK], feature = to[f->out_feature], ins = c->kernel.dims[f->kernel_in];
    for (int i = 0; i < f->ns; i++) {
        const ConvAxis *a = &f->axis[i];
        int64_t p = conv_at(a, to[a->out_dim], tap[i]);
        if (p < 0)
            return false;
        from[a->in_dim] = p;
        with[a->kernel_dim] = a->reversed ? a->kernel - 1 - tap[i] : tap[i];
    }
    int64_t group = feature / (c->kernel.dims[f->kernel_out] / (f->feature_groups * f->batch_groups));
    from[f->in_batch] = to[f->out_batch] + (f->batch_groups > 1 ? group * c->out.dims[f->out_batch] : 0);
    from[f->in_feature] = tap[f->ns] + (f->feature_groups > 1 ? group * ins : 0);
    with[f->kernel_in] = tap[f->ns];
    with[f->kernel_out] = feature;
    *x = region_number(&c->in, from);
    *k = region_number(&c->kernel, with);
    return true;
}

// Products and sums in the result's type, at least f32; kernel positions in order, features innermost.
static void add_convolution(Region *p, const HloOp *op) {
    Conv c = conv_of(p, op);
    int dtype = hlo_value_type(p->h, op->results)->dtype, wide = dtype;
    if (dtype_is_float(dtype) && dtype_row(dtype)->bits < 32)
        wide = DT_F32;
    uint16_t *regs = region_regs(p, (uint32_t)c.out.elems);
    for (int64_t e = 0; e < c.out.elems; e++) {
        int64_t to[OTRN_MAX_RANK], tap[OTRN_MAX_RANK] = {0}, x, k;
        uint16_t sum = region_const_int(p, wide, 0);
        region_place(&c.out, e, to);
        for (bool more = c.taps.elems > 0; more; more = region_next(&c.taps, tap)) {
            if (!conv_pair(&c, to, tap, &x, &k))
                continue;
            uint16_t a = region_as(p, region_operand(p, op, 0)[x], wide);
            uint16_t b = region_as(p, region_operand(p, op, 1)[k], wide);
            sum = region_step(p, HLO_ADD, wide, sum, region_step(p, HLO_MULTIPLY, wide, a, b, 0), 0);
        }
        regs[e] = region_as(p, sum, dtype);
    }
    region_bind(p, op->results, regs);
}

bool region_window_op(Region *p, OpId id) {
    HloOp op = *hlo_at(p->h, id);
    switch (op.code) {
    case HLO_REDUCE:
    case HLO_REDUCE_WINDOW: add_reduce(p, &op); return true;
    case HLO_SELECT_AND_SCATTER: add_select_and_scatter(p, &op); return true;
    case HLO_SCATTER: add_scatter(p, &op); return true;
    case HLO_CONVOLUTION: add_convolution(p, &op); return true;
    default: return false;
    }
}
