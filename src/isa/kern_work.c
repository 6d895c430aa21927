// SPDX-License-Identifier: Apache-2.0
// kern_work.c — how much a kernel does, from shapes alone: elements, HBM bytes, arithmetic steps.
//
// A step is one 32-bit lane busy for one cycle. The counts are what a plain GpSimd program would
// execute, on the careful side: a lane handles one element of its type at a time, wide types take
// several lanes, functions without an instruction are polynomials of that many steps, and addresses
// that are not plain counting cost extra. The step counts are assumptions of ours; only the order
// of magnitude is claimed.
#include <math.h>
#include <string.h>

#include "base/elem.h"
#include "hlo/coll.h"
#include "isa/kern.h"

enum {
    STEPS_SIMPLE = 1,    // add, compare, select, move
    STEPS_DIVIDE = 8,    // an iterative reciprocal, as the vector engine's 8 cycles an element
    STEPS_FUNCTION = 20, // exp, log, tanh: range reduction and a polynomial
    STEPS_POWER = 48,    // log, multiply, exp with the special cases
    STEPS_SERIES = 250,  // zeta, polygamma: a sum of some ten powers, taken together, and its tail
    STEPS_RANDOM = 24,   // a counter-based generator, per 32-bit word
    STEPS_INDEX = 4,     // working out a gathered element's address
};

static int op_steps(int op) {
    static const uint8_t steps[HLO_OPCODE_COUNT] = {
#define EW(e, dialect, name, operands, types, result, steps, ...) [HLO_##e] = STEPS_##steps,
#include "hlo/ops.def"
    };
    return steps[op] ? steps[op] : STEPS_SIMPLE;
}

// Lanes of 32 bits an element takes, and how much slower its arithmetic is.
static double type_factor(int dtype) {
    double lanes = (double)dtype_bytes(dtype) / 4;
    switch (dtype_row(dtype)->cls) {
    case DC_COMPLEX:
        return lanes * (dtype == DT_C128 ? 16 : 4); // four products, in software for f64
    case DC_FLOAT:
        return dtype == DT_F64 ? 8 : lanes; // no f64 hardware
    default:
        return lanes;
    }
}

double kern_step_cost(int op, int dtype) { return op_steps(op) * type_factor(dtype); }

#define REGION_TURNS 8 // assumed for a loop in a region: how often it turns depends on data

static double region_steps(const Kern *k, uint32_t region) {
    if (region >= k->nregions)
        return 1;
    const KProg *p = &k->regions[region];
    double steps = 0;
    bool loops = kern_prog_loops(p);
    for (int i = 0; i < p->nsteps; i++) {
        double turns = 1;
        for (int w = i; loops && w < p->nsteps; w++)
            if (p->steps[w].op == HLO_WHILE && w - p->steps[w].attr[0] <= i)
                turns *= REGION_TURNS;
        steps += turns * kern_step_cost(p->steps[i].op, p->dtypes[p->steps[i].src[0]]);
    }
    return steps > 1 ? steps : 1;
}

static double bytes_of(const KTensor *t) {
    return (double)t->elems * (double)dtype_bytes(t->dtype);
}

static double product(const int64_t *v, uint32_t n) {
    double p = 1;
    for (uint32_t i = 0; i < n; i++)
        p *= (double)v[i];
    return p;
}

static double attr_product(const Kern *k, HloAttrKey key) {
    const HloAttr *a = kern_attr(k, key);
    return a && a->kind == HA_INTS ? product(a->ints, a->n) : 1;
}

// Multiply-adds of a product or convolution.
static double dot_macs(const Kern *k) {
    const KTensor *lhs = &k->in[0], *rhs = &k->in[1], *out = &k->out[0];
    double depth = 1;
    if (k->op == HLO_DOT_GENERAL) {
        const HloAttr *c = kern_attr(k, AK_LHS_CONTRACTING_DIMENSIONS);
        for (uint32_t i = 0; c && i < c->n; i++)
            if (c->ints[i] >= 0 && c->ints[i] < lhs->rank)
                depth *= (double)lhs->dims[c->ints[i]];
    } else if (k->op == HLO_CONVOLUTION || k->op == HLO_DYNAMIC_CONV) {
        const HloAttr *o = kern_attr(k, AK_KERNEL_OUTPUT_FEATURE_DIMENSION);
        double features = o && o->i >= 0 && o->i < rhs->rank ? (double)rhs->dims[o->i] : 1;
        depth = features > 0 ? (double)rhs->elems / features : 0;
    } else if (lhs->rank) {
        depth = (double)lhs->dims[lhs->rank - 1];
    }
    return (double)out->elems * depth;
}

static double out_elems(const Kern *k) {
    double n = 0;
    for (uint32_t i = 0; i < k->nout; i++)
        n = fmax(n, (double)k->out[i].elems);
    return n;
}

static double in_elems(const Kern *k) { return k->nin ? (double)k->in[0].elems : out_elems(k); }

static double out_factor(const Kern *k) { return k->nout ? type_factor(k->out[0].dtype) : 1; }

static double binary_log(double n) { // at least 1, exact at powers of two
    int k;
    double m = frexp(fmax(2, n), &k);
    return k - 1 + elem_log(2 * m) * 1.4426950408889634;
}

// n log2 n comparisons along the sorted dimension, each carrying every operand.
static void work_sort(const Kern *k, KWork *w) {
    const HloAttr *d = kern_attr(k, k->op == HLO_SORT ? AK_DIMENSION : AK_K);
    double n = in_elems(k),
           len = k->nin && k->in[0].rank ? (double)k->in[0].dims[k->in[0].rank - 1] : 1;
    if (k->op == HLO_SORT && d && d->i >= 0 && k->nin && d->i < k->in[0].rank)
        len = (double)k->in[0].dims[d->i];
    w->elems = n;
    w->steps = n * ceil(binary_log(len)) * (region_steps(k, 0) + (double)k->nin);
}

static int64_t attr_int(const Kern *k, HloAttrKey key, uint32_t i, int64_t dflt) {
    const HloAttr *a = kern_attr(k, key);
    return a && (a->kind == HA_INTS || a->kind == HA_INTS2) && i < a->n ? a->ints[i] : dflt;
}

// A window that is a whole axis, padded on one side: a running result, which is carried on and not begun again. Its steps: a
// scan of each processor's part, and what came before that joined in.
static double running_steps(const Kern *k) {
    bool one_op = k->nin == 2 && k->nout == 1 && k->nregions && k->regions[0].nsteps == 1; // a sum, product or extreme
    const KTensor *x = one_op ? &k->in[0] : NULL;
    int axes = 0;
    for (int d = 0; x && d < x->rank; d++) {
        int64_t window = attr_int(k, AK_WINDOW_DIMENSIONS, (uint32_t)d, 1);
        int64_t low = attr_int(k, AK_PADDING, 2 * (uint32_t)d, 0), high = attr_int(k, AK_PADDING, 2 * (uint32_t)d + 1, 0);
        bool plain = attr_int(k, AK_WINDOW_STRIDES, (uint32_t)d, 1) == 1 &&
                     attr_int(k, AK_WINDOW_DILATIONS, (uint32_t)d, 1) == 1 &&
                     attr_int(k, AK_BASE_DILATIONS, (uint32_t)d, 1) == 1;
        if (plain && window == 1 && !low && !high)
            continue;
        if (!plain || window != x->dims[d] || low + high != window - 1 || (low && high))
            return 0;
        axes++;
    }
    return axes == 1 ? 2 * region_steps(k, 0) + 1 : 0;
}

static void work_red(const Kern *k, KWork *w) {
    switch (k->op) {
    case HLO_MAP:
    case HLO_FUSED:
        w->elems = k->nout ? (double)k->out[0].elems : 0;
        w->steps = w->elems * region_steps(k, 0);
        break;
    case HLO_REDUCE_WINDOW:
        w->elems = out_elems(k);
        w->steps = running_steps(k) > 0 ? w->elems * running_steps(k)
                                        : w->elems * attr_product(k, AK_WINDOW_DIMENSIONS) * region_steps(k, 0);
        break;
    case HLO_SELECT_AND_SCATTER:
        w->elems = in_elems(k);
        w->steps =
            (k->nin > 1 ? (double)k->in[1].elems : 0) *
            (attr_product(k, AK_WINDOW_DIMENSIONS) * region_steps(k, 0) + region_steps(k, 1));
        break;
    case HLO_SCATTER: { // operands are copied unless in place; updates follow the indices
        uint32_t ntensors = k->nout;
        double updates = k->nin > ntensors + 1 ? (double)k->in[ntensors + 1].elems : 0;
        w->elems = updates;
        w->steps = updates * (STEPS_INDEX + region_steps(k, 0)) * (double)(ntensors ? ntensors : 1);
        for (uint32_t i = 0; i < ntensors && i < k->nin; i++)
            if (k->in[i].addr == k->out[i].addr) { // in place: only where updates go
                double left = fmax(0, bytes_of(&k->in[i]) - updates * (double)dtype_bytes(k->in[i].dtype));
                w->read_bytes -= left;
                w->write_bytes -= left;
            }
        break;
    }
    case HLO_SORT:
        work_sort(k, w);
        break;
    default: // REDUCE: every input element enters the region once
        w->elems = in_elems(k);
        w->steps = w->elems * region_steps(k, 0);
    }
}

// Movement touches what it writes, and reads no more than that of its first operand.
static void work_move(const Kern *k, KWork *w) {
    w->elems = out_elems(k);
    bool by_index = k->op == HLO_GATHER || k->op == HLO_DYNAMIC_GATHER ||
                    k->op == HLO_TORCH_INDEX_SELECT || k->op == HLO_TRANSPOSE ||
                    k->op == HLO_REVERSE;
    double per_elem = by_index ? 1 + STEPS_INDEX : 1;
    if (k->op == HLO_DYNAMIC_UPDATE_SLICE && k->nin > 1 && k->nout &&
        k->in[0].addr == k->out[0].addr) {
        w->elems = (double)k->in[1].elems; // in place: only the update moves
        w->read_bytes = w->write_bytes = bytes_of(&k->in[1]);
    } else if (k->nin && k->op != HLO_CONCATENATE && k->op != HLO_DYNAMIC_UPDATE_SLICE) {
        double most = w->elems * (double)dtype_bytes(k->in[0].dtype);
        w->read_bytes -= fmax(0, bytes_of(&k->in[0]) - most);
    }
    w->steps = w->elems * per_elem * fmax(0.25, out_factor(k));
}

static double cube(double n) { return n * n * n; }

static void work_misc(const Kern *k, KWork *w) {
    const KTensor *in = k->nin ? &k->in[0] : NULL;
    double last = in && in->rank ? (double)in->dims[in->rank - 1] : 1;
    double square = fmax(1, last * last);
    w->elems = fmax(out_elems(k), in_elems(k));
    if (k->op == HLO_CUSTOM_CALL && k->target && !strcmp(k->target, HLO_HOST_CALL)) {
        w->is_collective = true; // the core waits for the host as it would for other devices
        w->link_bytes = w->read_bytes + w->write_bytes;
    }
    switch (k->op) {
    case HLO_CHOLESKY:
        w->steps = in_elems(k) / square * cube(last) / 3;
        break;
    case HLO_TRIANGULAR_SOLVE:
        w->steps = out_elems(k) * last;
        break;
    case HLO_FFT: {
        double n = attr_product(k, AK_FFT_LENGTH);
        w->steps = 10 * w->elems * binary_log(n);
        break;
    }
    case HLO_DRAW: // gpsimd's own generator
        break;
    case HLO_RNG:
    case HLO_RNG_BIT_GENERATOR:
        w->steps = w->elems * STEPS_RANDOM * fmax(1, out_factor(k));
        break;
    case HLO_CHLO_TOP_K:
        work_sort(k, w);
        break;
    case HLO_BATCH_NORM_TRAINING:
    case HLO_BATCH_NORM_INFERENCE:
    case HLO_BATCH_NORM_GRAD:
        w->steps = w->elems * (2 * STEPS_DIVIDE) * out_factor(k);
        break;
    default:
        w->steps = w->elems * fmax(1, out_factor(k));
    }
}

// Bytes over the links by the usual accounting: a ring moves (n-1)/n of the buffer for each of its two
// halves, reduce-scatter and all-gather. An unknown number of devices counts as very many. The sums
// themselves are formed by the DMA engines on the way and cost no steps.
static void work_coll(const Kern *k, KWork *w) {
    Groups g = {0};
    double in = w->read_bytes, out = w->write_bytes, share = 1;
    coll_groups((HloOpcode)k->op, k->attrs, &g);
    if (g.cols && g.mode != GROUP_BOTH)
        share = 1 - 1.0 / g.cols;
    w->elems = fmax(out_elems(k), in_elems(k));
    w->is_collective = true;
    switch (k->op) {
    case HLO_ALL_REDUCE:
    case HLO_COLLECTIVE_REDUCE:
        w->link_bytes = 2 * share * out;
        w->reduce_bytes = share * out;
        break;
    case HLO_ALL_GATHER:
        w->link_bytes = out - in;
        break;
    case HLO_REDUCE_SCATTER:
        w->link_bytes = w->reduce_bytes = in - out;
        break;
    case HLO_ALL_TO_ALL:
        w->link_bytes = share * in;
        break;
    default:
        w->link_bytes = fmax(in, out);
    }
}

KWork kern_work(const Kern *k) {
    KWork w = {0};
    for (uint32_t i = 0; i < k->nin; i++)
        w.read_bytes += bytes_of(&k->in[i]);
    for (uint32_t i = 0; i < k->nout; i++)
        w.write_bytes += bytes_of(&k->out[i]);
    switch (hlo_op_rows[k->op].cls) {
    case HC_EW1:
    case HC_EW2:
    case HC_EW3:
        w.elems = out_elems(k);
        w.steps = w.elems * kern_step_cost(k->op, k->nin ? k->in[0].dtype : DT_F32);
        break;
    case HC_MOVE:
        work_move(k, &w);
        break;
    case HC_RED:
        work_red(k, &w);
        break;
    case HC_DOT:
        w.elems = out_elems(k);
        w.steps = w.elems;
        if (k->nin >= 2 && k->nout) {
            double macs = dot_macs(k);
            w.flops = 2 * macs;
            w.steps = macs * type_factor(k->in[0].dtype);
        }
        break;
    case HC_COLL:
        work_coll(k, &w);
        break;
    default:
        work_misc(k, &w);
    }
    return w;
}
