// SPDX-License-Identifier: Apache-2.0
// conv.c — convolutions as products through strides (product.h).
//
//   out[b, o…][f] = sum over taps t… and input features i of x[b, (o * stride + t * gap - low) / in_gap, i] * w[t…, i, f]
//
// Once all taps lie inside the input (pass/convs.c) that is a product: k is (t…, i), one side's free axes are (b, o…), the
// other's f. Nothing is unrolled in HBM, the windows overlap there. It covers the gradients too: by the input a reversed
// kernel, by the kernel k is the batch and all positions. A dilated input (in_gap > 1) meets only some taps at each
// position: output positions with the same remainder (a phase) have the same taps, so each phase is a product of its
// own and no zero is multiplied. Groups are products of their own as well.
// Which axes go first and which side is stationary is chosen by what the transfers and the array would take.
#include <assert.h>
#include <string.h>

#include "base/num.h"
#include "hlo/conv.h"
#include "tile/nest_text.h"
#include "tile/product.h"

#define INSTS_MAX (1 << 20)
#define CHUNK_TILES 8
#define SLOTS_MIN 4 // of the moving side at least: larger ones would be waited for
#define CUT_RUN_BYTES 256     // runs that a cut should leave
#define BATCH_CUT 128         // long axes of shared ones are cut at a multiple of it
#define GAIN 1.6              // windows in SBUF: how much longer they may seem to take
#define GAIN_SINGLE 3.5       // … with one channel: windows are single elements then, which transfers take one by one
#define SURE_GAIN 0.9         // of the time that a cut is thought to take: what it does not know of its neighbours is less
#define SMALL_NS 10000.0      // below this nobody counts, unless there are groups

typedef struct Conv {
    ConvForm f;
    const HloType *x, *w, *y;
    int64_t xs[OTRN_MAX_RANK], ws[OTRN_MAX_RANK], ys[OTRN_MAX_RANK]; // strides
    int64_t phases[CONV_SPACE_MAX], nphases, ngroups;
} Conv;

typedef struct Views { // one phase of one group: offsets in elements and axes
    int64_t x, w, y;
    Nest taps;  // src: x, dst: w
    Nest place; // src: x, dst: y
    Nest outs;  // src: w, dst: y
} Views;

static bool conv_init(const Hlo *h, const HloOp *op, Conv *c) {
    if (!conv_read(h, op, &c->f) || !conv_is_inside(&c->f))
        return false;
    c->x = hlo_value_type(h, hlo_operand(h, op, 0)), c->w = hlo_value_type(h, hlo_operand(h, op, 1));
    c->y = hlo_value_type(h, op->results);
    if (c->x->dtype != c->w->dtype)
        return false;
    nest_strides(c->x, c->xs), nest_strides(c->w, c->ws), nest_strides(c->y, c->ys);
    c->nphases = 1;
    for (int i = 0; i < c->f.ns; i++) {
        const ConvAxis *a = &c->f.axis[i];
        if (a->in_gap > 4096)
            return false;
        c->phases[i] = a->in_gap / num_gcd(a->stride, a->in_gap);
        if (c->phases[i] > a->out)
            c->phases[i] = a->out;
        c->nphases *= c->phases[i];
    }
    c->ngroups = c->f.feature_groups > 1 ? c->f.feature_groups : c->f.batch_groups;
    return c->nphases <= 256;
}

static void add(Nest *nest, int64_t n, int64_t src, int64_t dst) {
    assert(nest->rank < VIEW_AXES);
    nest->axis[nest->rank++] = (Axis){n, src, dst};
}

// Axis i at remainder r: positions r, r + period, …; taps first, first + step, …, all of which meet an element.
static void add_space(const Conv *c, int i, int64_t r, Views *v) {
    const ConvAxis *a = &c->f.axis[i];
    int64_t period = a->in_gap / num_gcd(a->stride, a->in_gap), step = a->in_gap / num_gcd(a->kernel_gap, a->in_gap);
    int64_t first = 0, xs = c->xs[a->in_dim], ws = c->ws[a->kernel_dim];
    while (first < step && (a->stride * r + first * a->kernel_gap - a->low) % a->in_gap)
        first++;
    int64_t taps = first < step && first < a->kernel ? (a->kernel - 1 - first) / step + 1 : 0;
    if (taps)
        v->x += (a->stride * r + first * a->kernel_gap - a->low) / a->in_gap * xs;
    v->w += (a->reversed ? a->kernel - 1 - first : first) * ws;
    v->y += r * c->ys[a->out_dim];
    add(&v->taps, taps, step * a->kernel_gap / a->in_gap * xs, a->reversed ? -step * ws : step * ws);
    add(&v->place, (a->out - r - 1) / period + 1, a->stride * period / a->in_gap * xs, period * c->ys[a->out_dim]);
}

static Views views_of(const Conv *c, int64_t phase, int64_t group) {
    const ConvForm *f = &c->f;
    int64_t ins = c->w->dims[f->kernel_in], outs = c->w->dims[f->kernel_out] / c->ngroups;
    int64_t batch = c->y->dims[f->out_batch];
    Views v = {.w = group * outs * c->ws[f->kernel_out], .y = group * outs * c->ys[f->out_feature]};
    v.x = f->feature_groups > 1 ? group * ins * c->xs[f->in_feature] : group * batch * c->xs[f->in_batch];
    add(&v.place, batch, c->xs[f->in_batch], c->ys[f->out_batch]);
    int64_t r[CONV_SPACE_MAX];
    for (int i = f->ns; i-- > 0; phase /= c->phases[i])
        r[i] = phase % c->phases[i];
    for (int i = 0; i < f->ns; i++)
        add_space(c, i, r[i], &v);
    add(&v.taps, ins, c->xs[f->in_feature], c->ws[f->kernel_in]);
    add(&v.outs, outs, c->ws[f->kernel_out], c->ys[f->out_feature]);
    return v;
}

// --- choosing ------------------------------------------------------------------------------------------

static Nest rotated(const Nest *nest, int by) {
    Nest r = *nest;
    for (int i = 0; i < nest->rank; i++)
        r.axis[i] = nest->axis[(i + by) % nest->rank];
    return r;
}

typedef struct Choice {
    bool windows_move; // x is the moving side, w the stationary one
    int taps, place;   // rotations
} Choice;

static Product product_of(const Conv *c, const Views *v, Choice ch) {
    Product r = {.stype = c->x->dtype, .dtype = c->y->dtype};
    Nest taps = rotated(&v->taps, ch.taps), place = rotated(&v->place, ch.place);
    if (ch.windows_move)
        nest_swap(&taps);
    r.k = taps;
    r.m = ch.windows_move ? v->outs : place;
    r.n = ch.windows_move ? place : v->outs;
    return r;
}

// Transfers and nanoseconds that elements with these axes take when `k` is on partitions; share: of transfers that are left.
static double move_cost(const ChipFile *c, const Layout *k, const Layout *f, int64_t tile, int64_t cols, size_t elem, bool loads, double share,
                        int64_t *count) {
    int64_t run = min64(k->at[k->rank - 1].n, tile), last = f->at[f->rank - 1].n;
    double boxes = f->rank > 3 ? (double)(cols / max64(1, layout_inner(f, f->rank - 3))) + 1 : 1;
    double each = (double)ceil_div(tile, max64(1, run)) * boxes * share;
    bool dense = f->at[f->rank - 1].stride == 1, turns = loads && k->at[k->rank - 1].stride == 1;
    double bytes = (double)(tile * cols) * (double)elem, row = dense ? (double)last * (double)elem : (double)elem;
    if (turns && !dense)
        row = c->dma_descriptor_bytes, each /= share; // chips without transposing transfers turn tile by tile
    *count += (int64_t)(each + 0.5);
    return cost_transfers(c, each, bytes, row);
}

// Nanoseconds it is likely to take, and the transfers and products it is made of, when blocks of up to 512 x 512 are multiplied by chunks of 8 tiles of k.
static double product_ns(const ChipFile *c, const Product *p, int64_t *insts) {
    Matrix l = {layout_of(&p->k, false), layout_of(&p->m, false)}, r = {layout_of(&p->k, true), layout_of(&p->n, false)};
    Matrix y = {layout_of(&p->m, true), layout_of(&p->n, true)};
    int64_t k = l.rows.size, m = l.cols.size, n = r.cols.size, tile = product_tile_k(&l.rows, &r.rows);
    int64_t block_m = layout_even(&l.cols, PSUM_BANK_COLS, 384), block_n = layout_even(r.cols.rank >= y.cols.rank ? &r.cols : &y.cols, PSUM_BANK_COLS, 384);
    int64_t tiles = ceil_div(k, tile), blocks = tiles < CHUNK_TILES ? CHUNK_TILES / max64(1, tiles) : 1; // of a slot
    int64_t span = blocks * block_m, span_n = min64(blocks, max64(1, n / (SLOTS_MIN * block_n))) * block_n, rows = min64(CHUNK_TILES * tile, k);
    int64_t blocks_m = ceil_div(m, block_m), blocks_n = ceil_div(n, block_n), spans = ceil_div(m, span), cols = min64(n, block_n);
    int64_t in_l = 0, in_r = 0, out = 0;
    assert(block_m > 0);
    assert(block_n > 0);
    double lhs = move_cost(c, &l.rows, &l.cols, tile, min64(span, m), dtype_bytes(p->stype), true, matrix_joined(&l, tile, rows, min64(span, m)), &in_l);
    double rhs = move_cost(c, &r.rows, &r.cols, tile, min64(span_n, n), dtype_bytes(p->stype), true, matrix_joined(&r, tile, rows, min64(span_n, n)), &in_r);
    int64_t loads_l = tiles * spans * (spans <= 2 && tiles <= CHUNK_TILES ? 1 : blocks_n); // two slots may hold all of it
    int64_t loads_r = tiles <= CHUNK_TILES ? tiles * ceil_div(n, span_n) : tiles * blocks_n * blocks_m;
    int64_t stores = blocks_m * ceil_div(min64(m, block_m), PARTITIONS) * blocks_n;
    double store = move_cost(c, &y.rows, &y.cols, min64(PARTITIONS, m), cols, dtype_bytes(p->dtype), false, 1, &out) * (double)stores;
    double array = (double)(tiles * stores) * cost_columns(c, p->stype, max_f64((double)cols, c->pe_min_cycles));
    *insts += in_l * loads_l + in_r * loads_r + out * stores + 2 * tiles * stores + stores;
    return max_f64(max_f64(lhs * (double)loads_l + rhs * (double)loads_r, store), array);
}

static Choice choose(const Conv *c, const Views *v, double *ns, int64_t *insts) {
    Choice best = {0};
    for (int side = 0; side < 2; side++)
        for (int t = 0; t < v->taps.rank; t++)
            for (int p = 0; p < v->place.rank; p++) {
                Choice ch = {side, t, p};
                Product r = product_of(c, v, ch);
                int64_t n = 0;
                double cost = product_ns(cost_reference(), &r, &n);
                if ((side || t || p) && cost >= *ns)
                    continue;
                best = ch;
                *ns = cost;
                *insts = n;
            }
    return best;
}

static int64_t tile_k(const Product *p) {
    Layout l = layout_of(&p->k, false), r = layout_of(&p->k, true);
    return product_tile_k(&l, &r);
}

// Which side moves and which of its axes goes first changes no sum: the chip's prices choose, of the cuts that product.c would make, where they
// leave no doubt.
static Choice choose_sides(Emit *e, const Conv *c, const Views *v, Choice ch) {
    Choice best = ch;
    Product as = product_of(c, v, ch);
    ProductJob job = product_job(e, &as);
    double least = SURE_GAIN * product_cut(&job).ns;
    for (int side = 0; side < 2 && nest_size(&as.k); side++)
        for (int p = 0; p < v->place.rank; p++) {
            Choice other = {side, ch.taps, p};
            Product r = product_of(c, v, other);
            job = product_job(e, &r);
            double ns = tile_k(&r) == tile_k(&as) ? product_cut(&job).ns : least;
            if (ns < least)
                least = ns, best = other;
        }
    return best;
}

// --- windows in SBUF -----------------------------------------------------------------------------------

static SlabAxis slab_axis(const Axis *place, const Axis *tap, int64_t unit) {
    return (SlabAxis){place->n, place->n > 1 ? place->src / unit : 1, tap->n, tap->n > 1 ? tap->src / unit : 1, unit, tap->dst, place->dst};
}

static bool slab_of(const Conv *c, const Views *v, Slab *s) {
    int n = c->f.ns;
    if (n < 1 || n > 3)
        return false;
    SlabAxis one = {1, 1, 1, 1, 0, 0, 0}, axes[3] = {one, one, one};
    for (int i = 0; i < n; i++)
        axes[3 - n + i] = slab_axis(&v->place.axis[i + 1], &v->taps.axis[i], c->xs[c->f.axis[i].in_dim]);
    const Axis *ins = &v->taps.axis[n], *batch = &v->place.axis[0], *outs = &v->outs.axis[0];
    *s = (Slab){.stype = c->x->dtype, .dtype = c->y->dtype, .depth = axes[0], .row = axes[1], .col = axes[2], .batch = batch->n,
                .batch_x = batch->src, .batch_y = batch->dst, .ins = ins->n, .ins_x = ins->src, .ins_w = ins->dst, .outs = outs->n,
                .outs_w = outs->src, .outs_y = outs->dst};
    return true;
}

// Whether a phase goes so, and what it takes then; ns, insts: what it is thought to take otherwise, which leaves out how often
// transfers are waited for. The same for every chip: k adds up in another order.
static bool in_slabs(const Conv *c, const Views *v, double *ns, int64_t *insts) {
    Slab s;
    double slab;
    int64_t n;
    double gain = v->taps.axis[c->f.ns].n == 1 ? GAIN_SINGLE : GAIN;
    bool fits = slab_of(c, v, &s) && slab_cost(cost_reference(), &s, &slab, &n);
    if (!fits || slab > gain * *ns)
        return false;
    *ns = slab < *ns ? slab : *ns;
    *insts = n;
    return true;
}

static bool refuse(const Hlo *h, const HloOp *op, Why *why) {
    int dtype = hlo_value_type(h, hlo_operand(h, op, 0))->dtype;
    return dtype_on_tensor_engine(dtype) ? why_refuse(why, WHY_CONV_FORM) : why_refuse_elements(why, dtype);
}

bool conv_takes(const Lower *l, const HloOp *op, Why *why) {
    const Hlo *h = l->h;
    Conv c;
    if (op->code != HLO_CONVOLUTION)
        return false;
    if (!conv_init(h, op, &c))
        return refuse(h, op, why);
    double total = 0, insts = 0;
    for (int64_t phase = 0; phase < c.nphases; phase++) {
        Views v = views_of(&c, phase, 0);
        double ns;
        int64_t n;
        choose(&c, &v, &ns, &n);
        in_slabs(&c, &v, &ns, &n);
        total += ns * (double)c.ngroups;
        insts += (double)n * (double)c.ngroups;
    }
    double macs = (double)c.y->elems * (double)(c.w->elems / c.w->dims[c.f.kernel_out]);
    bool small = c.ngroups == 1 && total < SMALL_NS;
    return (insts < INSTS_MAX && (small || total < cost_reference()->gpsimd_hbm_ns + cost_kernel(cost_reference(), macs))) || why_refuse(why, WHY_CONV_SLOW);
}

// How much longer than half of its time the longer part of a shared axis takes; short runs of neighbours take longer than their share.
static double cut_cost(const Axis *axis, size_t size) {
    int64_t half = (axis->n + 1) / 2;
    return 2.0 * (double)half / (double)axis->n + (axis->src == 1 && half * (int64_t)size < CUT_RUN_BYTES ? 0.5 : 0);
}

// A shared one is cut along an axis of the result, by batch where that is as good: k stays whole.
static bool views_share(Emit *e, Views *v, size_t size) {
    Axis *best = &v->outs.axis[0];
    for (int i = v->place.rank; i-- > 0;)
        if (cut_cost(&v->place.axis[i], size) <= cut_cost(best, size))
            best = &v->place.axis[i];
    int64_t lo, hi;
    emit_share(e, best->n, best->n > BATCH_CUT ? BATCH_CUT : 1, &lo, &hi);
    *(best == &v->outs.axis[0] ? &v->w : &v->x) += lo * best->src;
    v->y += lo * best->dst;
    best->n = hi - lo;
    return hi > lo;
}

void conv_nests(const Hlo *h, const HloOp *op, NestEach *on, void *arg) {
    Conv c;
    bool ok = conv_init(h, op, &c);
    assert(ok);
    (void)ok;
    for (int64_t i = 0; i < c.nphases * c.ngroups; i++) {
        Views v = views_of(&c, i / c.ngroups, i % c.ngroups);
        NestOp n = {.is_product = true, .in = {0, 1}, .off = {v.x, v.w}, .out_off = v.y, .p = product_of(&c, &v, (Choice){0})};
        on(arg, &n);
    }
}

void emit_conv(Emit *e, const Step *s) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, s->op);
    const BufId *refs = e->l->refs.at;
    Conv c;
    bool ok = conv_init(h, op, &c);
    assert(ok);
    (void)ok;
    BufId x = refs[s->ins], w = refs[s->ins + 1], y = refs[s->outs];
    uint64_t size = dtype_bytes(c.x->dtype), out_size = dtype_bytes(c.y->dtype);
    for (int64_t phase = 0; phase < c.nphases; phase++) {
        double ns;
        int64_t n;
        Views first = views_of(&c, phase, 0);
        Choice ch = choose(&c, &first, &ns, &n);
        bool slabs = in_slabs(&c, &first, &ns, &n);
        if (!slabs)
            ch = choose_sides(e, &c, &first, ch);
        for (int64_t group = 0; group < c.ngroups; group++) {
            Views v = views_of(&c, phase, group);
            if (!views_share(e, &v, size))
                continue;
            Slab windows;
            Product r = product_of(&c, &v, ch);
            uint64_t at_x = emit_addr(e, x) + (uint64_t)v.x * size, at_w = emit_addr(e, w) + (uint64_t)v.w * size;
            r.lhs = ch.windows_move ? at_w : at_x, r.rhs = ch.windows_move ? at_x : at_w;
            r.out = emit_addr(e, y) + (uint64_t)v.y * out_size;
            if (slabs && slab_of(&c, &v, &windows)) {
                windows.x = at_x, windows.w = at_w, windows.y = r.out;
                slab_emit(e, &windows);
            } else {
                ProductJob j = product_job(e, &r);
                product_emit(&j);
            }
        }
    }
}
