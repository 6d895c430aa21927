// SPDX-License-Identifier: Apache-2.0
// roof.c — a program over devices on other accelerators: a roof for each of its operations.
//
// There is no compiler for them here. The program is cut and joined as for a Trainium, and then each operation takes the longer of its FLOP
// over the share of the peak that software reaches and its bytes over HBM's rate; collectives take bytes over links, or a machine's network.
// One that is read far behind, or whose operands are there from the beginning, runs beside the work. Scores of attention stay on the chip, and of
// those under a mask of positions half are computed, as kernels for attention have it. Every fitted number is the table's
// (chips/accelerators.table), which models from a configuration are priced by too (python/opentrn/_predict/roof.py).
#include <math.h>
#include <string.h>

#include "hlo/coll.h"
#include "hlo/dot.h"
#include "hlo/loop.h"
#include "hlo/users.h"
#include "mach/accel.h"
#include "mach/errors.h"
#include "pass/pass.h"
#include "rt/price.h"
#include "tools/prof.h"
#include "tools/roof.h"

#define LATE 48         // ops between a collective and its reader, so that it is hidden
#define HIDDEN 0.5      // of the work that such ones may run beside
#define STEPS 8         // from an argument to what is still there from the beginning
#define TASTES "inner,sums,guards,epilogue" // passes that write what only a Trainium prefers
#define LAST "fuse"     // pass behind which operations are what a device would launch

typedef struct Roof {
    const Accel *a;
    AccelSoftware soft;
    Arena *arena;
    Users u;
    const Hlo *h;
    bool *scores; // per value: of attention
    bool causal;  // a mask of positions lies on them
    uint32_t devices;
    const char *name;
    uint64_t trips, unknown; // that a loop of unknown length is taken for, 0: not told; how many there are
    double products_s, attention_s, between_s; // work
    double soon_s, early_s, late_s;            // collectives: between work, before it, behind it
    double stall_s;                            // that the work waits for hidden ones
    double flops, flops_of[5], kernels, peak_bytes; // flops_of: products of so many bytes an element
} Roof;

// Through HBM; scores stay on the chip.
static double bytes_of(const Roof *r, const HloOp *op) {
    double bytes = 0;
    for (uint32_t i = 0; i < op->noperands; i++)
        bytes += r->scores[hlo_operand(r->h, op, i)] ? 0 : roof_read(&r->u, hlo_operand(r->h, op, i));
    for (uint32_t i = 0; i < op->nresults; i++)
        bytes += r->scores[op->results + i] ? 0 : roof_written(&r->u, op->results + i);
    return bytes;
}

static bool is_product(const HloOp *op) { return op->code == HLO_DOT_GENERAL || op->code == HLO_CONVOLUTION; }

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

// --- collectives -------------------------------------------------------------------------------------

// over_link: what its bytes take over the links of a machine, whatever the network does.
static double coll_seconds(const Roof *r, const HloOp *op, double *over_link) {
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
    double network = r->soft.rails * r->a->as.network_gbit / 8 / fmax(1, fmin(apart, r->a->as.chips)), link = r->a->link_gb_s;
    double rate = (inside || !(network > 0) ? link : fmin(link, network)) * 1e9;
    double times = op->code == HLO_ALL_REDUCE ? 2 * (n - 1) / n : op->code == HLO_COLLECTIVE_PERMUTE ? 1 : (n - 1) / n;
    *over_link = times * fmax(in, out) / (link * 1e9);
    return times * fmax(in, out) / rate;
}

// Weights and gradients in parts: kernels that gather and scatter them take the processors that products need.
static bool is_sharing(const HloOp *op) { return op->code == HLO_ALL_GATHER || op->code == HLO_REDUCE_SCATTER; }

// Nobody reads it soon: it runs beside the work behind it.
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

// Made of arguments by a few steps: there from the beginning, so that it can be fetched beside the work before it.
static bool is_there(const Roof *r, ValueId v, int steps) {
    const HloOp *op = hlo_def(r->h, v);
    if (!op)
        return true;
    if (op->code == HLO_OPTIMIZATION_BARRIER)
        return steps > 0 && is_there(r, hlo_operand(r->h, op, v - op->results), steps - 1);
    bool quick = !is_product(op) && hlo_row(op)->cls != HC_COLL && hlo_row(op)->cls != HC_CTRL;
    for (uint32_t i = 0; quick && i < op->noperands; i++)
        quick = steps > 0 && is_there(r, hlo_operand(r->h, op, i), steps - 1);
    return quick;
}

static double *coll_kind(Roof *r, OpId id, const HloOp *op) {
    bool there = true;
    for (uint32_t i = 0; i < op->noperands; i++)
        there &= is_there(r, hlo_operand(r->h, op, i), STEPS);
    return there ? &r->early_s : is_late(r, id, op) ? &r->late_s : &r->soon_s;
}

// --- a program ---------------------------------------------------------------------------------------

static void add_region(Roof *r, RegionId region, double times);

static void add_product(Roof *r, const HloOp *op, double times) {
    double flops = product_flops(r->h, op) * (r->causal && is_batched(op) ? 0.5 : 1);
    double seconds = fmax(flops / product_rate(r->a, r->h, op), bytes_of(r, op) / (r->a->hbm_gb_s * 1e9));
    int bytes = (int)dtype_bytes(hlo_value_type(r->h, hlo_operand(r->h, op, 0))->dtype);
    r->flops += times * flops;
    r->flops_of[bytes < 4 ? bytes : 4] += times * flops;
    *(is_batched(op) ? &r->attention_s : &r->products_s) += times * seconds;
}

static void add_op(Roof *r, OpId id, double times) {
    const Hlo *h = r->h;
    const HloOp *op = hlo_at(h, id);
    LoopCount loop;
    if (roof_is_free(op) || roof_is_joined(&r->u, op))
        return;
    r->kernels += times;
    if (op->code == HLO_WHILE || op->code == HLO_IF || op->code == HLO_CASE) {
        bool counted = op->code != HLO_WHILE || loop_count(h, op, &loop);
        double trips = op->code != HLO_WHILE ? 1 : counted ? (double)loop.trips : r->trips ? (double)r->trips : 1;
        r->unknown += !counted;
        add_region(r, h->op_regions.at[op->regions + op->nregions - 1], times * trips);
    } else if (hlo_row(op)->cls == HC_COLL) {
        double over_link, *kind = coll_kind(r, id, op);
        *kind += times * coll_seconds(r, op, &over_link);
        r->stall_s += kind != &r->soon_s && is_sharing(op) ? times * r->soft.stall * over_link : 0;
    } else if (is_product(op)) {
        add_product(r, op, times);
    } else {
        r->between_s += times * r->soft.moved * bytes_of(r, op) / (r->a->hbm_gb_s * 1e9);
    }
}

static void add_region(Roof *r, RegionId region, double times) {
    for (uint32_t i = 0; i < r->h->regions.at[region].ops.n; i++)
        add_op(r, r->h->regions.at[region].ops.at[i], times);
}

static void stage(void *arg, const char *name, Hlo *h, const Artifact *art) {
    (void)art;
    if (strcmp(name, LAST))
        return;
    Roof *r = arg;
    r->h = h;
    r->devices = spmd_partitions(h);
    r->name = arena_strndup(r->arena, h->name, strlen(h->name));
    RegionId body = hlo_main(h)->body;
    users_make(&r->u, h, r->arena, body);
    r->scores = ARENA_NEWN(r->arena, bool, h->values.n + 1);
    note_region(r, body);
    add_region(r, body, 1);
    r->peak_bytes = roof_peak(h, r->arena, &r->u, r->scores);
}

static void price(Tool *t, const Accel *a, uint32_t devices, Prof *p) {
    const char *yours = t->opt.val[OPT_PRICE];
    double usd = *yours ? price_asked(t->ctx, yours) : a->as.usd_per_hour;
    p->cost = (Cost){.devices = devices, .cores_per_device = 1, .unit = "chip", .instance = a->as, .machines = (devices + a->as.chips - 1) / a->as.chips,
                     .usd_per_hour = usd * devices / a->as.chips, .flops_peak = devices * a->tflops * 1e12};
    p->cost.basis = *yours ? "yours: --price" : usd > 0 ? instance_basis(t->arena, &a->as) : "no price is published; --price=USD/h, of the instance, gives one";
}

// Passes up to where operations are joined, for no chip: what is too large for a Trainium is not refused.
static void read_program(Tool *t, const char *path, Roof *r) {
    Options opts = t->opt;
    opts.val[OPT_INSTANCE] = "", opts.val[OPT_TARGET] = "trn2", opts.from[OPT_TARGET] = "command line", opts.val[OPT_LNC] = "1";
    opts.val[OPT_DISABLE] = *opts.val[OPT_DISABLE] ? arena_printf(t->arena, "%s,%s", TASTES, opts.val[OPT_DISABLE]) : TASTES;
    RtCompile in = {.opts = &opts, .name = path, .hook = stage, .hook_arg = r, .until = LAST, .warn = t->warn};
    in.bytes = tool_read(t, path, &in.size);
    const Artifact *art = artifact_is(in.bytes, in.size) ? artifact_load(t->ctx, t->arena, path, in.bytes, in.size) : NULL;
    if (art)
        in.bytes = art->program, in.size = art->program_bytes;
    Buf none = {0};
    if (!art || in.size)
        rt_compile(t->ctx, t->arena, &in, &none);
    if (!r->name) {
        ctx_hint(t->ctx, "the program it was made of, as StableHLO");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "'%s' holds code of a Trainium only; %s needs the program", path, r->a->as.name);
    }
}

// That most of the work is done in.
static const char *type_of(const Roof *r) {
    const double *f = r->flops_of;
    return f[1] > f[2] && f[1] > f[4] ? "fp8" : f[4] > f[2] ? "fp32" : "bf16";
}

typedef struct Seconds {
    double work, shown, host; // of a step: shown are collectives that nothing hides
} Seconds;

// A collective behind the work may run beside half of it, the backward pass; one before it beside all. The host of one device launches beside the
// work, more or less; that of several waits for the others too.
static Seconds seconds_of(const Roof *r, bool several) {
    Seconds s = {.work = r->products_s + r->attention_s + r->between_s};
    s.shown = r->soon_s + fmax(fmax(r->late_s - HIDDEN * s.work, r->early_s + r->late_s - s.work), r->stall_s);
    double device = s.work + s.shown, launches = r->soft.launch_s * r->kernels;
    s.host = several ? fmin(r->soft.host_s, r->soft.kernel_s * r->kernels) : sqrt(device * device + launches * launches) - device;
    return s;
}

const char *roof_type(Tool *t, const char *path) {
    Accel any = {.as = {.name = "it", .chips = 1}, .tflops = 1, .tflops_fp8 = 1, .tflops_fp32 = 1, .hbm_gb_s = 1, .link_gb_s = 1, .products = 1, .attention = 1,
                 .products_fp8 = 1};
    Roof r = {.a = &any, .arena = t->arena};
    read_program(t, path, &r);
    return type_of(&r);
}

bool roof_make(Tool *t, const char *path, Prof *p, Told *o) {
    const Accel *a = accel_find(t->ctx, t->arena, t->opt.val[OPT_CHIPS], t->opt.val[OPT_INSTANCE]);
    if (!a)
        return false;
    Roof r = {.a = a, .arena = t->arena, .trips = rt_trips_asked(t->ctx, &t->opt), .soft = accel_software(t->ctx, t->arena, t->opt.val[OPT_CHIPS])};
    read_program(t, path, &r);
    if (r.devices > a->as.chips && !(a->as.network_gbit > 0)) {
        ctx_hint(t->ctx, "a machine with a network, or with more devices: `otrn info instances` lists them");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "'%s' is a program of %u devices; %s has %u and no network", path, r.devices, a->as.name, a->as.chips);
    }
    Artifact *art = ARENA_NEW(t->arena, Artifact);
    art->name = r.name, art->partitions = r.devices;
    *p = (Prof){.path = path, .instance = a->as, .art = art};
    p->chip.cores_per_chip = 1, p->clock.unknown_loops = r.unknown, p->assumed_trips = r.trips;
    price(t, a, r.devices ? r.devices : 1, p);
    Seconds in = seconds_of(&r, p->cost.devices > 1);
    *o = (Told){.step_s = in.work + in.shown + in.host, .tokens = prof_tokens(t), .usd_per_hour = p->cost.usd_per_hour, .by_roofs = true};
    o->error = errors_expected(t->ctx, t->arena, t->opt.val[OPT_CHIPS], a->as.chip, type_of(&r), p->cost.machines, &o->error_rows);
    o->products_s = r.products_s, o->attention_s = r.attention_s, o->between_s = r.between_s, o->host_s = in.host;
    o->samples = predict_number(t, OPT_SAMPLES, "samples");
    o->mfu = cost_utilisation(&p->cost, r.flops, o->step_s);
    double talk = r.soon_s + r.early_s + r.late_s;
    p->traffic = (Traffic){.busy_ns = fmin(talk, o->step_s) * 1e9, .exposed_ns = fmax(in.shown, 0) * 1e9};
    o->peak_bytes = r.peak_bytes, o->hbm_bytes = a->hbm_bytes;
    return true;
}
