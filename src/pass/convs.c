// SPDX-License-Identifier: Apache-2.0
// convs.c — bring convolutions into the form the tensor engine takes.
// needs: values defined before use
// gives: convolutions of operands of one type whose taps all lie inside the input: zeros around it are a pad of its
//        own; a kernel that was reversed first is read backwards instead; kernels, results and images with few channels
//        whose taps lie next to each other are transposed, so that channels do; those that are plain products (1x1, conv_dot.c)
//        are such
// stale: nothing
//
// The zeros go into memory because then every tap is the same strided view of the input (tile/conv.c), and because
// they are few. Convolutions of other types (integers, f64, complex) are left for GpSimd.
#include <string.h>

#include "base/dtype.h"
#include "pass/convs.h"
#include "pass/rules.h"

// --- rewriting -------------------------------------------------------------------------------------

// A kernel that a reverse of spatial dimensions made is read backwards where it lies.
static void take_reversal(Hlo *h, OpId id, const ConvForm *f) {
    HloOp op = *hlo_at(h, id);
    const HloOp *reverse = hlo_def_as(h, hlo_operand(h, &op, 1), HLO_REVERSE);
    if (!reverse)
        return;
    uint32_t n;
    const int64_t *dims = hlo_ints(reverse, AK_DIMENSIONS, &n);
    int64_t flags[CONV_SPACE_MAX];
    for (int i = 0; i < f->ns; i++)
        flags[i] = f->axis[i].reversed;
    for (uint32_t k = 0; k < n; k++) {
        bool spatial = false;
        for (int i = 0; i < f->ns; i++)
            if (f->axis[i].kernel_dim == dims[k]) {
                flags[i] ^= 1;
                spatial = true;
            }
        if (!spatial)
            return;
    }
    hlo_set_ints(h, id, AK_WINDOW_REVERSAL, flags, (uint32_t)f->ns);
    h->operands.at[op.operands + 1] = hlo_operand(h, reverse, 0);
}

// Zeros cost memory: not much more of it than the tensors have.
static bool pad_is_small(const HloType *x, const HloType *w, const HloType *y, const int64_t *dims) {
    double elems = 1;
    for (int i = 0; i < x->rank; i++)
        elems *= (double)dims[i];
    return elems < (double)INT32_MAX && elems <= 4 * ((double)x->elems + (double)w->elems + (double)y->elems) + 65536;
}

// What the taps need of the input and no more, zeros where there is none. An axis whose taps meet nothing at all
// keeps one element.
static void pad_input(Walk *w, OpId id, const ConvForm *f) {
    Hlo *h = w->hlo;
    HloOp op = *hlo_at(h, id);
    ValueId x = hlo_operand(h, &op, 0);
    HloType t = *hlo_value_type(h, x);
    int64_t low[OTRN_MAX_RANK] = {0}, high[OTRN_MAX_RANK] = {0}, inner[OTRN_MAX_RANK] = {0}, dims[OTRN_MAX_RANK];
    int64_t padding[2 * CONV_SPACE_MAX];
    memcpy(dims, t.dims, t.rank * sizeof *dims);
    for (int i = 0; i < f->ns; i++) {
        const ConvAxis *a = &f->axis[i];
        int64_t first, last;
        conv_span(a, &first, &last);
        if (last < first)
            last = first;
        low[a->in_dim] = -first;
        high[a->in_dim] = last - (a->in - 1);
        dims[a->in_dim] = last - first + 1;
        int64_t inside = (last - first) * a->in_gap + 1; // of the dilated input
        assert(inside >= 1 && dims[a->in_dim] >= 1);
        padding[2 * i] = a->low + first * a->in_gap;
        padding[2 * i + 1] = (a->out - 1) * a->stride + (a->kernel - 1) * a->kernel_gap + 1 - inside - padding[2 * i];
    }
    if (!pad_is_small(&t, hlo_value_type(h, hlo_operand(h, &op, 1)), hlo_value_type(h, op.results), dims))
        return;
    ValueId zero = walk_number(w, hlo_type_tensor(h, t.dtype, 0, NULL), 0);
    ValueId padded = walk_pad(w, x, zero, low, high, inner, hlo_type_tensor(h, t.dtype, t.rank, dims));
    h->operands.at[op.operands] = padded;
    hlo_set_ints(h, id, AK_PADDING, padding, 2 * (uint32_t)f->ns);
}

// --- order of dimensions ---------------------------------------------------------------------------

#define FEW_TAPS 16
#define FEW_RESULTS 64 // of a gradient by the kernel, its taps
#define FEW_FEATURES 16
#define SHORT_ROWS 257 // places

// A sum over the places of images, the gradient by the kernel.
static bool sums_places(const ConvForm *f, int64_t *results) {
    int64_t places = 1;
    *results = 1;
    for (int i = 0; i < f->ns; i++)
        places *= f->axis[i].kernel, *results *= f->axis[i].out;
    return places > *results;
}

// … in which rows are too short to be loaded one by one.
static bool sums_short_rows(const ConvForm *f, int last) {
    int64_t places = 1, results, row = SHORT_ROWS;
    bool whole = true; // rows of 1x1 kernels go on over the whole image
    for (int i = 0; i < f->ns; i++) {
        const ConvAxis *a = &f->axis[i];
        places *= a->kernel;
        row = a->kernel_dim == last ? a->kernel : row;
        whole = whole && a->kernel == a->in && a->out == 1;
    }
    return sums_places(f, &results) && (whole ? places : row) < SHORT_ROWS;
}

// The dimension of more than one element that changes fastest is one of `space`.
static bool ends_in_space(const HloType *t, int a, int b) {
    int last = t->rank - 1;
    while (last >= 0 && t->dims[last] == 1)
        last--;
    return last >= 0 && last != a && last != b;
}

typedef struct Order { // dimension numbers of one tensor: two and the spatial ones
    HloAttrKey first, second, space;
} Order;
static const Order in_order = {AK_INPUT_BATCH_DIMENSION, AK_INPUT_FEATURE_DIMENSION, AK_INPUT_SPATIAL_DIMENSIONS};
static const Order kernel_order = {AK_KERNEL_INPUT_FEATURE_DIMENSION, AK_KERNEL_OUTPUT_FEATURE_DIMENSION,
                                   AK_KERNEL_SPATIAL_DIMENSIONS};
static const Order out_order = {AK_OUTPUT_BATCH_DIMENSION, AK_OUTPUT_FEATURE_DIMENSION, AK_OUTPUT_SPATIAL_DIMENSIONS};

// Gives the tensor the order (first, space…, second), or space and then both as they come; perm: where its dimensions
// were.
static void reorder(Hlo *h, OpId id, const Order *o, bool space_first, int64_t *perm) {
    uint32_t n;
    const HloOp *op = hlo_at(h, id);
    const int64_t *space = hlo_ints(op, o->space, &n);
    int64_t to[OTRN_MAX_RANK], first = space_first ? n : 0, second = n + 1, at = space_first ? 0 : 1;
    int64_t was_first = hlo_int(op, o->first, 0), was_second = hlo_int(op, o->second, 0);
    if (space_first && was_first > was_second)
        first = n + 1, second = n;
    perm[first] = was_first;
    perm[second] = was_second;
    for (uint32_t i = 0; i < n; i++) {
        to[i] = at + i;
        perm[at + i] = space[i];
    }
    assert(first != second && was_first != was_second);
    hlo_attr_slot(h, id, o->first)->i = first;
    hlo_attr_slot(h, id, o->second)->i = second;
    hlo_set_ints(h, id, o->space, to, n);
}

// Few channels: they and the taps of a row become one run. Steps along a row: single elements would have to be loaded.
static void order_input(Walk *w, OpId id, const ConvForm *f) {
    HloOp op = *hlo_at(w->hlo, id);
    ValueId x = hlo_operand(w->hlo, &op, 0);
    const HloType *t = hlo_value_type(w->hlo, x);
    if (!ends_in_space(t, f->in_batch, f->in_feature))
        return;
    int64_t taps = 1, places = 1, groups = f->feature_groups * f->batch_groups;
    int64_t features = t->dims[f->in_feature] / f->feature_groups, batch = t->dims[f->in_batch] / f->batch_groups;
    bool steps = false;
    for (int i = 0; i < f->ns; i++) {
        const ConvAxis *a = &f->axis[i];
        taps *= a->kernel, places *= a->in;
        bool by_place = a->out > 1 && a->stride > 1, by_tap = a->kernel >= FEW_TAPS / 2 && a->kernel_gap > 1;
        steps = steps || (a->in_dim == t->rank - 1 && a->in_gap == 1 && (by_place || by_tap));
    }
    steps = steps || sums_short_rows(f, t->rank - 1);
    int64_t results;
    bool sums = sums_places(f, &results); // then channels take the batch's place, and results that of taps
    int64_t channels = sums ? batch : features, window = sums ? results : taps;
    bool few = groups == 1 && channels > 1 && channels < FEW_FEATURES && window > 1 && window * 8 <= places;
    bool worth = steps && (features > batch ? features : batch) >= FEW_FEATURES;
    if (!few && !worth)
        return;
    Order o = in_order;
    if (few ? sums : batch > features)
        o = (Order){in_order.second, in_order.first, in_order.space};
    int64_t perm[OTRN_MAX_RANK];
    reorder(w->hlo, id, &o, false, perm);
    ValueId turned = walk_transpose(w, x, perm); // first: a new op may move the table of operands
    w->hlo->operands.at[op.operands] = turned;
}

static void order_kernel(Walk *w, OpId id, const ConvForm *f) {
    HloOp op = *hlo_at(w->hlo, id);
    ValueId kernel = hlo_operand(w->hlo, &op, 1);
    const HloType *t = hlo_value_type(w->hlo, kernel);
    int64_t taps = 1;
    for (int i = 0; i < f->ns; i++)
        taps *= f->axis[i].kernel;
    bool images = sums_short_rows(f, t->rank - 1) && t->dims[f->kernel_out] >= FEW_FEATURES;
    if ((t->dims[f->kernel_in] < taps && !images) || !ends_in_space(t, f->kernel_in, f->kernel_out))
        return;
    int64_t perm[OTRN_MAX_RANK];
    reorder(w->hlo, id, &kernel_order, !images, perm);
    ValueId turned = walk_transpose(w, kernel, perm); // first: a new op may move the table of operands
    w->hlo->operands.at[op.operands + 1] = turned;
}

// The convolution with its result in another order, and the transpose that brings it back; 0 when it stays as it is.
static ValueId order_result(Walk *w, OpId id, const ConvForm *f) {
    Hlo *h = w->hlo;
    HloOp op = *hlo_at(h, id);
    const HloType *t = hlo_value_type(h, op.results);
    int64_t taps = 1, perm[OTRN_MAX_RANK], back[OTRN_MAX_RANK], dims[OTRN_MAX_RANK];
    bool apart = false; // a dilated input: neighbours in a row are results of different products
    for (int i = 0; i < f->ns; i++) {
        taps *= f->axis[i].out;
        apart = apart || (f->axis[i].out_dim == t->rank - 1 && f->axis[i].in_gap > 1 && t->dims[f->out_feature] >= FEW_FEATURES);
    }
    int64_t results, few = sums_places(f, &results) ? FEW_RESULTS : FEW_TAPS;
    if ((taps >= few && !apart) || !ends_in_space(t, f->out_batch, f->out_feature))
        return 0;
    reorder(w->hlo, id, &out_order, taps < few, perm);
    for (int i = 0; i < t->rank; i++) {
        dims[i] = t->dims[perm[i]];
        back[perm[i]] = i;
    }
    TypeId type = hlo_type_tensor(h, t->dtype, t->rank, dims);
    ValueId operands[2] = {hlo_operand(h, &op, 0), hlo_operand(h, &op, 1)};
    return walk_transpose(w, walk_push(w, hlo_op_like(h, hlo_at(h, id), operands, type)), back);
}

// Puts the convolution into the list, or what stands for it; returns its result.
static ValueId canon(Walk *w, OpId id) {
    Hlo *h = w->hlo;
    HloOp op = *hlo_at(h, id);
    ConvForm f;
    if (!conv_read(h, &op, &f))
        return walk_push(w, id);
    hlo_op_own_attrs(h, id);
    bool mixed = hlo_value_type(h, hlo_operand(h, &op, 0))->dtype != hlo_value_type(h, hlo_operand(h, &op, 1))->dtype;
    take_reversal(h, id, &f);
    for (uint32_t i = 0; i < 2 && mixed; i++) { // the array takes one type: widen both, which loses nothing
        ValueId wide = walk_convert(w, hlo_operand(h, &op, i), DT_F32);
        h->operands.at[op.operands + i] = wide;
    }
    conv_read(h, hlo_at(h, id), &f);
    assert(hlo_value_type(h, hlo_operand(h, hlo_at(h, id), 0))->dtype == hlo_value_type(h, hlo_operand(h, hlo_at(h, id), 1))->dtype);
    ConvPicked picked;
    OpId packed = conv_packed(w, id, &f, &picked);
    if (packed) {
        ValueId v = canon(w, packed);
        return picked.size ? conv_pick(w, id, v, &picked) : v;
    }
    ValueId dot = conv_as_dot(w, id, &f);
    if (dot)
        return dot;
    if (conv_is_depthwise(h, hlo_at(h, id), &f)) // its edges are views (tile/depth.c)
        return walk_push(w, id);
    order_input(w, id, &f);
    order_kernel(w, id, &f);
    conv_read(h, hlo_at(h, id), &f);
    if (!conv_is_inside(&f))
        pad_input(w, id, &f);
    ValueId ordered = order_result(w, id, &f);
    return ordered ? ordered : walk_push(w, id);
}

static ValueId convolution(Walk *w, const HloOp *op) {
    (void)op;
    return canon(w, w->id);
}

const Rule convs_rules[] = {{"convolution: taps inside its input, in the order the array takes, or a product", HLO_CONVOLUTION, RULE_ORDER, convolution}, {0}};
