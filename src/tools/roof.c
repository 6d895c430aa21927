// SPDX-License-Identifier: Apache-2.0
// roof.c — a program over devices on other accelerators: a roof for each of its operations.
//
// There is no compiler for them here. The program is cut and joined as for a Trainium, and then each operation takes the longer of its FLOP
// over the share of the peak that software reaches and its bytes over HBM's rate; collectives take bytes over links, or a machine's network.
// One that is read far behind runs beside the work. Scores of attention stay on the chip, and of those under a mask of positions half are computed, as
// kernels for attention have it. Shares are the table's (chips/accelerators.table), the rest is what
// python/opentrn/_predict/roof.py has for models from a configuration, fitted to published steps.
#include <math.h>
#include <string.h>

#include "hlo/coll.h"
#include "hlo/dot.h"
#include "hlo/loop.h"
#include "hlo/users.h"
#include "mach/accel.h"
#include "tools/prof.h"

#define HOST_S 0.039    // of a step of several devices, at most
#define KERNEL_S 27e-6  // … for each operation
#define RAILS 0.8       // of the network that collectives reach
#define LATE 48         // ops between a collective and its reader, so that it is hidden
#define HIDDEN 0.5      // of the work that such ones may run beside

typedef struct Roof {
    const Accel *a;
    Arena *arena;
    Users u;
    const Hlo *h;
    bool *scores; // per value: of attention
    bool causal;  // a mask of positions lies on them
    double work_s, soon_s, late_s, flops, kernels;
} Roof;

static double bytes_of(const Roof *r, const HloOp *op) {
    const Hlo *h = r->h;
    double bytes = 0;
    for (uint32_t i = 0; i < op->noperands + op->nresults; i++) {
        ValueId v = i < op->noperands ? hlo_operand(h, op, i) : op->results + (i - op->noperands);
        const HloType *t = hlo_value_type(h, v);
        bytes += hlo_is_plain(t) && !r->scores[v] ? (double)hlo_type_bytes(t) : 0;
    }
    return bytes;
}

// Is it a product for each member of a batch: attention's?
static bool is_batched(const HloOp *op) {
    uint32_t n = 0;
    if (op->code == HLO_DOT_GENERAL)
        hlo_ints(op, AK_LHS_BATCHING_DIMENSIONS, &n);
    return n > 0;
}

static bool is_mask(const HloType *t, const HloType *scores) {
    return t->dtype == DT_I1 && t->rank >= 2 && scores->rank >= 2 && t->elems == scores->dims[scores->rank - 1] * scores->dims[scores->rank - 2];
}

// Scores are what such a product makes when it is larger than its operands, and what is made of them element by element.
static void note_scores(Roof *r, const HloOp *op) {
    const Hlo *h = r->h;
    const HloType *out = op->nresults ? hlo_value_type(h, op->results) : NULL;
    if (is_batched(op)) {
        r->scores[op->results] = out->elems > hlo_value_type(h, hlo_operand(h, op, 0))->elems && out->elems > hlo_value_type(h, hlo_operand(h, op, 1))->elems;
        return;
    }
    for (uint32_t i = 0; i < op->noperands && op->code != HLO_DOT_GENERAL; i++) {
        const HloType *t = hlo_value_type(h, hlo_operand(h, op, i));
        if (!r->scores[hlo_operand(h, op, i)])
            continue;
        for (uint32_t k = 0; k < op->nresults; k++)
            r->scores[op->results + k] |= hlo_value_type(h, op->results + k)->elems == t->elems;
        for (uint32_t k = 0; k < op->noperands; k++)
            r->causal |= is_mask(hlo_value_type(h, hlo_operand(h, op, k)), t);
    }
}

static void note_region(Roof *r, RegionId region) {
    for (uint32_t i = 0; i < r->h->regions.at[region].ops.n; i++) {
        const HloOp *op = hlo_at(r->h, r->h->regions.at[region].ops.at[i]);
        note_scores(r, op);
        for (uint32_t k = 0; hlo_row(op)->cls == HC_CTRL && k < op->nregions; k++)
            note_region(r, r->h->op_regions.at[op->regions + k]);
    }
}

// --- work --------------------------------------------------------------------------------------------

static double product_flops(const Hlo *h, const HloOp *op) {
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    if (op->code == HLO_CONVOLUTION) {
        const HloType *w = hlo_value_type(h, hlo_operand(h, op, 1));
        int64_t features = 1;
        for (int i = 0; i < w->rank; i++)
            features = w->dims[i] > features && out->elems % w->dims[i] == 0 ? w->dims[i] : features;
        return 2.0 * (double)out->elems * (double)w->elems / (double)features;
    }
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_LHS_CONTRACTING_DIMENSIONS, &n);
    double k = 1;
    for (uint32_t i = 0; i < n; i++)
        k *= (double)x->dims[dims[i]];
    return 2 * (double)out->elems * k;
}

// FLOP a second
static double product_rate(const Accel *a, const Hlo *h, const HloOp *op) {
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0));
    if (x->dtype == DT_F32)
        return a->tflops_fp32 * a->products * 1e12;
    if (dtype_bytes(x->dtype) == 1)
        return a->tflops_fp8 * a->products_fp8 * 1e12;
    return a->tflops * (is_batched(op) ? a->attention : a->products) * 1e12;
}

static bool is_nothing(const HloOp *op) {
    return op->code == HLO_CONSTANT || op->code == HLO_RESHAPE || op->code == HLO_RETURN || op->code == HLO_BITCAST_CONVERT || op->code == HLO_IOTA ||
           op->code == HLO_OPTIMIZATION_BARRIER || op->code == HLO_PARTITION_ID || op->code == HLO_REPLICA_ID;
}

// --- collectives -------------------------------------------------------------------------------------

static double coll_seconds(const Roof *r, const HloOp *op) {
    Groups g;
    double in = 0, out = 0, n = r->a->as.chips, apart = 1, span = n - 1;
    for (uint32_t i = 0; i < op->noperands; i++)
        in += (double)hlo_type_bytes(hlo_value_type(r->h, hlo_operand(r->h, op, i)));
    for (uint32_t i = 0; i < op->nresults; i++)
        out += (double)hlo_type_bytes(hlo_value_type(r->h, op->results + i));
    if (coll_groups((HloOpcode)op->code, op->attrs, &g) && g.cols > 1 && g.rows) {
        n = g.cols;
        apart = fabs((double)(g.ids[1] - g.ids[0]));
        span = fabs((double)(g.ids[g.cols - 1] - g.ids[0]));
    }
    bool inside = span < r->a->as.chips;
    double network = RAILS * r->a->as.network_gbit / 8 / fmax(1, fmin(apart, r->a->as.chips)), link = r->a->link_gb_s;
    double rate = (inside || !(network > 0) ? link : fmin(link, network)) * 1e9;
    double times = op->code == HLO_ALL_REDUCE ? 2 * (n - 1) / n : op->code == HLO_COLLECTIVE_PERMUTE ? 1 : (n - 1) / n;
    return times * fmax(in, out) / rate;
}

static bool is_late(const Roof *r, OpId id, const HloOp *op) {
    uint32_t first = UINT32_MAX;
    for (uint32_t k = 0; k < op->nresults; k++) {
        uint32_t n;
        const OpId *users = users_of(&r->u, op->results + k, &n);
        for (uint32_t i = 0; i < n; i++)
            first = r->u.region[users[i]] == r->u.region[id] && r->u.position[users[i]] < first ? r->u.position[users[i]] : first;
    }
    return first > r->u.position[id] + LATE;
}

// --- a program ---------------------------------------------------------------------------------------

static void add_region(Roof *r, RegionId region, double times);

static void add_op(Roof *r, OpId id, double times) {
    const Hlo *h = r->h;
    const HloOp *op = hlo_at(h, id);
    LoopCount loop;
    r->kernels += is_nothing(op) ? 0 : times;
    if (op->code == HLO_WHILE || op->code == HLO_IF || op->code == HLO_CASE) {
        double trips = op->code == HLO_WHILE && loop_count(h, op, &loop) ? (double)loop.trips : 1;
        add_region(r, h->op_regions.at[op->regions + op->nregions - 1], times * trips);
    } else if (hlo_row(op)->cls == HC_COLL) {
        *(is_late(r, id, op) ? &r->late_s : &r->soon_s) += times * coll_seconds(r, op);
    } else if (op->code == HLO_DOT_GENERAL || op->code == HLO_CONVOLUTION) {
        double flops = product_flops(h, op) * (r->causal && is_batched(op) ? 0.5 : 1);
        r->flops += times * flops;
        r->work_s += times * fmax(flops / product_rate(r->a, h, op), bytes_of(r, op) / (r->a->hbm_gb_s * 1e9));
    } else if (!is_nothing(op)) {
        r->work_s += times * bytes_of(r, op) / (r->a->hbm_gb_s * 1e9);
    }
}

static void add_region(Roof *r, RegionId region, double times) {
    for (uint32_t i = 0; i < r->h->regions.at[region].ops.n; i++)
        add_op(r, r->h->regions.at[region].ops.at[i], times);
}

static void stage(void *arg, const char *name, Hlo *h, const Artifact *art) {
    (void)art;
    if (!h || strcmp(name, "fuse"))
        return;
    Roof *r = arg;
    r->h = h;
    RegionId body = hlo_main(h)->body;
    users_make(&r->u, h, r->arena, body);
    r->scores = ARENA_NEWN(r->arena, bool, h->values.n + 1);
    note_region(r, body);
    add_region(r, body, 1);
}

static void price(Tool *t, const Accel *a, uint32_t devices, Prof *p) {
    const char *yours = t->opt.val[OPT_PRICE];
    double usd = *yours ? predict_number(t, OPT_PRICE, "dollars an hour") : a->as.usd_per_hour;
    p->cost = (Cost){.devices = devices, .cores_per_device = 1, .unit = "chip", .instance = a->as, .machines = (devices + a->as.chips - 1) / a->as.chips,
                     .usd_per_hour = usd * devices / a->as.chips, .flops_peak = devices * a->tflops * 1e12};
    p->cost.basis = *yours ? "yours: --price" : usd > 0 ? instance_basis(t->arena, &a->as) : "no price is published; --price=USD/h, of the instance, gives one";
}

bool roof_make(Tool *t, const char *path, Prof *p, Told *o) {
    const Accel *a = accel_find(t->ctx, t->arena, t->opt.val[OPT_CHIPS], t->opt.val[OPT_INSTANCE]);
    if (!a)
        return false;
    Roof r = {.a = a, .arena = t->arena};
    Options opts = t->opt;
    opts.val[OPT_INSTANCE] = "", opts.val[OPT_TARGET] = "trn2", opts.from[OPT_TARGET] = "command line", opts.val[OPT_LNC] = "1";
    RtCompile in = {.opts = &opts, .name = path, .hook = stage, .hook_arg = &r, .warn = t->warn};
    in.bytes = tool_read(t, path, &in.size);
    Buf bytes = {0};
    rt_compile(t->ctx, t->arena, &in, &bytes);
    *p = (Prof){.path = path, .instance = a->as, .art = artifact_load(t->ctx, t->arena, path, bytes.at, bytes.n)};
    p->chip.cores_per_chip = 1;
    price(t, a, p->art->partitions ? p->art->partitions : 1, p);
    double shown = r.soon_s + fmax(r.late_s - HIDDEN * r.work_s, 0), host = p->cost.devices > 1 ? fmin(HOST_S, KERNEL_S * r.kernels) : 0;
    *o = (Told){.step_s = r.work_s + shown + host, .tokens = prof_tokens(t), .usd_per_hour = p->cost.usd_per_hour, .error = -1, .error_rows = ""};
    o->samples = predict_number(t, OPT_SAMPLES, "samples");
    o->mfu = cost_utilisation(&p->cost, r.flops, o->step_s);
    o->comm = fmin((r.soon_s + r.late_s) / o->step_s, 1), o->exposed = shown / o->step_s;
    p->traffic = (Traffic){.total_ns = o->step_s * 1e9, .busy_ns = o->comm * o->step_s * 1e9, .exposed_ns = shown * 1e9};
    o->peak_bytes = view_hbm_planned(p->art), o->hbm_bytes = a->hbm_bytes;
    return true;
}
