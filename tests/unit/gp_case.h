// SPDX-License-Identifier: Apache-2.0
// gp_case.h — one kernel with random operands: run it every way it may run, compare with the
// evaluator.
//
// case_run   every host level this machine has, pools of one, two and three threads, and in place
// where allowed:
//            all must give the same bits and leave the bytes behind each result alone; the first is
//            compared with the plain evaluator, which gets the same operation as a graph. Then the same with NaNs
//            of any sign and payload among the operands: what is computed of them is the one NaN of its type.
#ifndef OTRN_TEST_GP_CASE_H
#define OTRN_TEST_GP_CASE_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chip/core/chip.h"
#include "hlo/eval.h"
#include "hlo/tol.h"

#define CASE_TENSORS 12
#define CASE_GUARD 64
#define CASE_POOLS 3
#define CASE_BLOCKS 512

typedef struct Suite Suite;
typedef struct Case Case;
typedef struct CaseRun {
    void *out[CASE_TENSORS];
    otrn_status status;
    char why[256];
} CaseRun;

struct Case {
    Arena *arena;
    Kern k;
    KTensor in[CASE_TENSORS], out[CASE_TENSORS];
    HloAttr attrs[HLO_MAX_ATTRS];
    KProg regions[2];
    void *data[CASE_TENSORS]; // operands
    double rel;               // allowed relative error; 0: the tolerance table
    bool exact;               // results must equal the evaluator's bits
    void (*judge)(Suite *s, const Case *c, const char *name,
                  const CaseRun *r); // instead of the evaluator
};

struct Suite {
    Ctx ctx;
    Arena arena;
    Pool *pool[CASE_POOLS];
    uint64_t random;
    int failures, cases, damaged, damaged_ran;
    void *blocks[CASE_BLOCKS]; // of the current case, each its own allocation so that the
                               // sanitizers see its ends
    int nblocks;
};

static inline void *block(Suite *s, size_t bytes) {
    void *p = s->nblocks < CASE_BLOCKS ? aligned_alloc(64, bytes ? (bytes + 63) & ~(size_t)63 : 64)
                                       : NULL;
    if (!p)
        abort();
#if defined(__SANITIZE_ADDRESS__)
    free(p); // the exact size instead
    p = malloc(bytes ? bytes : 1);
#endif
    return s->blocks[s->nblocks++] = p;
}
static inline void blocks_free(Suite *s) {
    while (s->nblocks)
        free(s->blocks[--s->nblocks]);
}

static inline uint64_t rnd(Suite *s) { // xorshift64*
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return s->random * 0x2545f4914f6cdd1du;
}
static inline int64_t rnd_in(Suite *s, int64_t lo, int64_t hi) { // [lo, hi]
    return lo + (int64_t)(rnd(s) % (uint64_t)(hi - lo + 1));
}
static inline double rnd_unit(Suite *s) { return (double)(rnd(s) >> 11) * 0x1p-53; }

// --- making ------------------------------------------------------------------------------------

static inline Case *case_make(Suite *s, HloOpcode op) {
    blocks_free(s);
    arena_reset(&s->arena);
    Case *c = ARENA_NEW(&s->arena, Case);
    c->arena = &s->arena;
    c->k = (Kern){.op = op,
                  .nattrs = hlo_op_rows[op].nattrs,
                  .attrs = c->attrs,
                  .in = c->in,
                  .out = c->out,
                  .regions = c->regions,
                  .target = ""};
    return c;
}

static inline KTensor tensor(Case *c, int dtype, int rank, const int64_t *dims) {
    KTensor t = {.dtype = (uint8_t)dtype, .rank = (uint8_t)rank, .elems = 1};
    t.dims = arena_dup(c->arena, dims, (size_t)rank * sizeof *dims);
    for (int i = 0; i < rank; i++)
        t.elems *= dims[i];
    return t;
}

static inline HloAttr *slot(Case *c, HloAttrKey key) {
    for (int i = 0; i < hlo_op_rows[c->k.op].nattrs; i++)
        if (hlo_op_rows[c->k.op].attrs[i] == key)
            return &c->attrs[i];
    abort();
}
static inline void set_ints(Case *c, HloAttrKey key, int n, const int64_t *v) {
    *slot(c, key) = (HloAttr){.kind = HA_INTS,
                              .n = (uint32_t)n,
                              .ints = arena_dup(c->arena, v, (size_t)(n ? n : 1) * sizeof *v)};
}
static inline void set_pairs(Case *c, HloAttrKey key, int rows, const int64_t *v) {
    set_ints(c, key, 2 * rows, v);
    slot(c, key)->kind = HA_INTS2, slot(c, key)->cols = 2;
}
static inline void set_int(Case *c, HloAttrKey key, int64_t v) {
    *slot(c, key) = (HloAttr){.kind = HA_INT, .i = v};
}
static inline void set_enum(Case *c, HloAttrKey key, int64_t v) {
    *slot(c, key) = (HloAttr){.kind = HA_ENUM, .i = v};
}
static inline void set_bool(Case *c, HloAttrKey key, bool v) {
    *slot(c, key) = (HloAttr){.kind = HA_BOOL, .i = v};
}

// One value of a type, small so that sums do not overflow, with special ones in between when
// `wild`.
static inline void random_value(Suite *s, int dtype, void *p, bool wild) {
    const DtypeRow *row = dtype_row(dtype);
    if (row->cls == DC_COMPLEX) {
        int part = dtype == DT_C64 ? DT_F32 : DT_F64;
        random_value(s, part, p, false);
        random_value(s, part, (char *)p + dtype_bytes(part), false);
    } else if (row->cls == DC_FLOAT) {
        static const double special[] = {0.0,   -0.0, 1,        -1,        0.5, -0.5, 2,
                                         1e-40, 3e38, INFINITY, -INFINITY, NAN, 1e20};
        double v = (rnd_unit(s) - 0.5) * 6;
        if (wild && rnd(s) % 6 == 0)
            v = special[rnd(s) % (sizeof special / sizeof *special)];
        dtype_from_f64(dtype, p, row->flavour == FF_E8M0 ? fabs(v) : v);
    } else if (row->cls == DC_BOOL) {
        *(uint8_t *)p = rnd(s) & 1;
    } else {
        dtype_from_i64(dtype, p, wild && rnd(s) % 3 == 0 ? (int64_t)rnd(s) : rnd_in(s, -4, 9));
    }
}

static inline void *random_data(Suite *s, const KTensor *t, bool wild) {
    size_t bytes = dtype_bytes(t->dtype);
    char *p = block(s, (size_t)t->elems * bytes);
    for (int64_t i = 0; i < t->elems; i++)
        random_value(s, t->dtype, p + i * (int64_t)bytes, wild);
    return p;
}

static inline void add_in(Suite *s, Case *c, int dtype, int rank, const int64_t *dims, bool wild) {
    uint32_t i = c->k.nin++;
    c->in[i] = tensor(c, dtype, rank, dims);
    c->data[i] = random_data(s, &c->in[i], wild);
}
static inline void add_index(Suite *s, Case *c, int dtype, int rank, const int64_t *dims,
                             int64_t lo, int64_t hi) {
    add_in(s, c, dtype, rank, dims, false);
    uint32_t i = c->k.nin - 1;
    for (int64_t e = 0; e < c->in[i].elems; e++)
        dtype_from_i64(dtype, (char *)c->data[i] + e * (int64_t)dtype_bytes(dtype),
                       rnd_in(s, lo, hi));
}
static inline void add_float(Suite *s, Case *c, int dtype, double v) {
    add_in(s, c, dtype, 0, NULL, false);
    dtype_from_f64(dtype, c->data[c->k.nin - 1], v);
}
static inline void add_scalar(Suite *s, Case *c, int dtype, int64_t v) {
    add_in(s, c, dtype, 0, NULL, false);
    if (dtype_is_float(dtype))
        dtype_from_f64(dtype, c->data[c->k.nin - 1], (double)v);
    else
        dtype_from_i64(dtype, c->data[c->k.nin - 1], v);
}
static inline void add_out(Case *c, int dtype, int rank, const int64_t *dims) {
    c->out[c->k.nout++] = tensor(c, dtype, rank, dims);
}

// A region of one op over its two inputs.
static inline void add_body(Case *c, HloOpcode op, int in_dtype, int out_dtype, int dir) {
    KProg *p = &c->regions[c->k.nregions++];
    uint8_t *types = arena_alloc(c->arena, 3);
    types[0] = types[1] = (uint8_t)in_dtype, types[2] = (uint8_t)out_dtype;
    KStep *step = ARENA_NEW(c->arena, KStep);
    *step = (KStep){.op = (uint16_t)op, .dst = 2, .src = {0, 1}, .attr = {(int16_t)dir, 0}};
    uint16_t *outs = arena_alloc(c->arena, sizeof *outs);
    outs[0] = 2;
    *p = (KProg){.nregs = 3,
                 .ninputs = 2,
                 .nsteps = 1,
                 .nouts = 1,
                 .dtypes = types,
                 .steps = step,
                 .outs = outs};
}
static inline KProg *add_prog(Case *c, int nregs, int ninputs, const uint8_t *types, int nsteps,
                              const KStep *steps, int nouts, const uint16_t *outs) {
    KProg *p = &c->regions[c->k.nregions++];
    *p = (KProg){.nregs = (uint16_t)nregs,
                 .ninputs = (uint16_t)ninputs,
                 .nsteps = (uint16_t)nsteps,
                 .nouts = (uint16_t)nouts};
    p->dtypes = arena_dup(c->arena, types, (size_t)nregs);
    p->steps = arena_dup(c->arena, steps, (size_t)nsteps * sizeof *steps);
    p->outs = arena_dup(c->arena, outs, (size_t)nouts * sizeof *outs);
    return p;
}

// --- the evaluator's answer --------------------------------------------------------------------

static inline TypeId type_of(Hlo *h, const KTensor *t) {
    return hlo_type_tensor(h, t->dtype, t->rank, t->dims);
}

static inline void graph_region(Hlo *h, OpId op, const KProg *p, const ValueId *captures) {
    TypeId types[64];
    ValueId value[64], outs[8];
    for (int i = 0; i < p->nregs; i++)
        types[i] = hlo_type_tensor(h, p->dtypes[i], 0, NULL);
    RegionId r = hlo_op_add_region(h, op, p->ninputs, types);
    for (int i = 0; i < p->ninputs; i++)
        value[i] = h->regions.at[r].args + (ValueId)i;
    for (int i = 0; i < p->ncaptures; i++)
        value[p->ninputs + i] = captures[i];
    for (int i = 0; i < p->nconsts; i++) {
        int reg = p->const_regs[i];
        OpId k = hlo_op(h, HLO_CONSTANT, 0, 0, NULL, 1, &types[reg]);
        *hlo_attr_slot(h, k, AK_VALUE) = (HloAttr){.kind = HA_TENSOR,
                                                   .type = types[reg],
                                                   .data = p->consts[i],
                                                   .n = (uint32_t)dtype_bytes(p->dtypes[reg])};
        hlo_region_push(h, r, k);
        value[reg] = hlo_at(h, k)->results;
    }
    for (int i = 0; i < p->nsteps; i++) {
        const KStep *st = &p->steps[i];
        ValueId in[3] = {value[st->src[0]], value[st->src[1]], value[st->src[2]]};
        OpId o = hlo_op(h, (HloOpcode)st->op, 0, (uint32_t)hlo_op_rows[st->op].operands, in, 1,
                        &types[st->dst]);
        if (st->op == HLO_COMPARE) {
            *hlo_attr_slot(h, o, AK_COMPARISON_DIRECTION) =
                (HloAttr){.kind = HA_ENUM, .i = st->attr[0]};
            *hlo_attr_slot(h, o, AK_COMPARE_TYPE) = (HloAttr){.kind = HA_ENUM, .i = st->attr[1]};
        }
        hlo_region_push(h, r, o);
        value[st->dst] = hlo_at(h, o)->results;
    }
    for (int i = 0; i < p->nouts; i++)
        outs[i] = value[p->outs[i]];
    hlo_region_push(h, r, hlo_op(h, HLO_RETURN, 0, p->nouts, outs, 0, NULL));
}

// False when the evaluator refuses; its message is in the context.
static inline bool oracle(Suite *s, const Case *c, Tensor *results) {
    const Kern *k = &c->k;
    jmp_buf here;
    bool ok = CTX_TRY(&s->ctx, here);
    if (!ok)
        return false;
    Hlo *h = hlo_make(&s->ctx, &s->arena, "case");
    TypeId in[CASE_TENSORS], out[CASE_TENSORS];
    ValueId operands[CASE_TENSORS], returned[CASE_TENSORS];
    Tensor args[CASE_TENSORS];
    for (uint32_t i = 0; i < k->nin; i++) {
        in[i] = type_of(h, &k->in[i]);
        args[i] = (Tensor){in[i], c->data[i]};
    }
    for (uint32_t i = 0; i < k->nout; i++)
        out[i] = type_of(h, &k->out[i]);
    RegionId body = hlo_region(h, 0, k->nin, in);
    uint32_t captures = 0;
    for (uint32_t i = 0; i < k->nin; i++)
        operands[i] = h->regions.at[body].args + i;
    for (uint32_t i = 0; i < k->nregions; i++)
        captures += k->regions[i].ncaptures;
    OpId op = hlo_op(h, (HloOpcode)k->op, 0, k->nin - captures, operands, k->nout, out);
    for (uint32_t i = 0; i < k->nattrs; i++)
        hlo_at(h, op)->attrs[i] = k->attrs[i];
    const ValueId *at = operands + (k->nin - captures);
    for (uint32_t i = 0; i < k->nregions; i++) {
        graph_region(h, op, &k->regions[i], at);
        at += k->regions[i].ncaptures;
    }
    hlo_region_push(h, body, op);
    for (uint32_t i = 0; i < k->nout; i++)
        returned[i] = hlo_at(h, op)->results + i;
    hlo_region_push(h, body, hlo_op(h, HLO_RETURN, 0, k->nout, returned, 0, NULL));
    HloFunc f = {
        .name = "main", .body = body, .nargs = k->nin, .nresults = k->nout, .result_types = out};
    VEC_PUSH(&s->arena, &h->funcs, f);
    eval_func(h, &s->arena, hlo_main(h), args, results);
    return true;
}

// --- running -----------------------------------------------------------------------------------

static inline void case_fail(Suite *s, const char *name, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    printf("FAIL %s: ", name);
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
    s->failures++;
}

static inline void *guarded(Suite *s, size_t bytes) {
    char *p = block(s, bytes + CASE_GUARD);
    memset(p, 0xa5, bytes + CASE_GUARD);
    return p;
}
static inline size_t tensor_bytes(const KTensor *t) {
    return (size_t)t->elems * dtype_bytes(t->dtype);
}

static inline bool guards_ok(const Case *c, const CaseRun *r) {
    for (uint32_t i = 0; i < c->k.nout; i++)
        for (int b = 0; b < CASE_GUARD; b++)
            if (((uint8_t *)r->out[i])[tensor_bytes(&c->k.out[i]) + (size_t)b] != 0xa5)
                return false;
    return true;
}

// in_place: operand whose memory result 0 takes, or -1.
static inline CaseRun case_once(Suite *s, const Case *c, GpFn *fn, HostLevel level, Pool *pool,
                                int in_place) {
    CaseRun r = {.why = ""};
    void *in[CASE_TENSORS];
    memcpy(in, c->data, sizeof in);
    for (uint32_t i = 0; i < c->k.nout; i++)
        r.out[i] = guarded(s, tensor_bytes(&c->k.out[i]));
    if (in_place >= 0) {
        memcpy(r.out[0], in[in_place], tensor_bytes(&c->k.in[in_place]));
        in[in_place] = r.out[0];
    }
    size_t scratch = gp_scratch_bytes(&c->k, pool_threads(pool));
    void *room = aligned_alloc(64, scratch + 64);
    if (!room)
        abort();
    memset(room, 0xa5, scratch + 64);
#if defined(__SANITIZE_ADDRESS__)
    free(room);
    room = aligned_alloc(64, scratch ? scratch : 64);
#endif
    GpCall call = {.k = &c->k,
                   .in = in,
                   .out = r.out,
                   .pool = pool,
                   .level = level,
                   .scratch = room,
                   .why = r.why,
                   .why_bytes = sizeof r.why};
    r.status = fn(&call);
    free(room);
    return r;
}

static inline bool same_bits(const Case *c, const CaseRun *a, const CaseRun *b) {
    for (uint32_t i = 0; i < c->k.nout; i++)
        if (memcmp(a->out[i], b->out[i], tensor_bytes(&c->k.out[i])))
            return false;
    return true;
}

static inline bool close_to(const Case *c, int dtype, const void *got, const void *want, size_t n,
                            size_t *bad) {
    if (!c->rel || !(dtype_is_float(dtype) || dtype_is_complex(dtype)))
        return tol_close(dtype, got, want, n, bad);
    if (dtype_is_complex(dtype))
        dtype = dtype == DT_C64 ? DT_F32 : DT_F64, n *= 2;
    for (*bad = 0; *bad < n; ++*bad) {
        double g = dtype_to_f64(dtype, (const char *)got + *bad * dtype_bytes(dtype));
        double w = dtype_to_f64(dtype, (const char *)want + *bad * dtype_bytes(dtype));
        if (!(g == w || (g != g && w != w) || fabs(g - w) <= c->rel * (1 + fabs(w))))
            return false;
    }
    return true;
}

static inline void compare_oracle(Suite *s, const Case *c, const char *name, const CaseRun *r) {
    Tensor want[CASE_TENSORS];
    if (!oracle(s, c, want)) {
        case_fail(s, name, "the evaluator says %s", s->ctx.err.text);
        return;
    }
    for (uint32_t i = 0; i < c->k.nout; i++) {
        const KTensor *t = &c->k.out[i];
        size_t bad = 0, bytes = dtype_bytes(t->dtype);
        if (c->exact ? !memcmp(r->out[i], want[i].data, tensor_bytes(t))
                     : close_to(c, t->dtype, r->out[i], want[i].data, (size_t)t->elems, &bad))
            continue;
        if (dtype_is_complex(t->dtype) && c->rel)
            bad /= 2;
        char *got = (char *)r->out[i] + bad * bytes, *exp = (char *)want[i].data + bad * bytes;
        bool is_float = dtype_is_float(t->dtype);
        case_fail(s, name, "result %u (%s) element %zu of %lld: %.9g, evaluator %.9g", i,
                  dtype_row(t->dtype)->name, bad, (long long)t->elems,
                  is_float                     ? dtype_to_f64(t->dtype, got)
                  : dtype_is_complex(t->dtype) ? 0
                                               : (double)dtype_to_i64(t->dtype, got),
                  is_float                     ? dtype_to_f64(t->dtype, exp)
                  : dtype_is_complex(t->dtype) ? 0
                                               : (double)dtype_to_i64(t->dtype, exp));
        return;
    }
}

// Damaged copies of a case: one attribute or extent changed. Either there is no kernel for it, or
// the kernel stays inside its tensors (guards here, and the sanitizers).
static inline void damage_attr(Suite *s, HloAttr *a) {
    int64_t v = rnd(s) % 8 ? rnd_in(s, -2, 6) : (int64_t)rnd(s);
    if (a->kind == HA_INT || a->kind == HA_BOOL || a->kind == HA_ENUM)
        a->i = v;
    if ((a->kind != HA_INTS && a->kind != HA_INTS2) || !a->n)
        return;
    int64_t *list = arena_dup(&s->arena, a->ints, a->n * sizeof *list);
    list[rnd(s) % a->n] = v;
    a->ints = list;
    a->n -= rnd(s) % 8 == 0;
}
static inline void damage_shape(Suite *s, KTensor *t) {
    int64_t *dims = ARENA_NEWN(&s->arena, int64_t, t->rank + 1u);
    for (int d = 0; d < t->rank; d++)
        dims[d] = t->dims[d];
    if (t->rank)
        dims[rnd(s) % t->rank] = rnd_in(s, 0, 7);
    if (rnd(s) % 6 == 0 && t->rank)
        t->rank--;
    t->dims = dims, t->elems = 1;
    for (int d = 0; d < t->rank; d++)
        t->elems *= dims[d];
}
static inline void case_damage(Suite *s, const Case *c, const char *name, int copies) {
    for (int i = 0; i < copies && s->nblocks + 2 * CASE_TENSORS < CASE_BLOCKS; i++) {
        Case d = *c;
        d.k.in = d.in, d.k.out = d.out, d.k.attrs = d.attrs, d.k.regions = d.regions;
        if (d.k.nattrs && rnd(s) % 2)
            damage_attr(s, &d.attrs[rnd(s) % d.k.nattrs]);
        else if (rnd(s) % 2)
            damage_shape(s, &d.out[rnd(s) % (d.k.nout ? d.k.nout : 1)]);
        else if (d.k.nin)
            damage_shape(s, &d.in[rnd(s) % d.k.nin]);
        GpFn *fn = gp_find(&d.k);
        s->damaged++;
        if (!fn)
            continue;
        for (uint32_t t = 0; t < d.k.nin; t++)
            if (d.in[t].elems != c->in[t].elems)
                d.data[t] = random_data(s, &d.in[t], true);
        CaseRun r = case_once(s, &d, fn, host_best(), s->pool[i % CASE_POOLS], -1);
        s->damaged_ran++;
        if (!guards_ok(&d, &r))
            case_fail(s, name, "damaged: wrote behind a result");
    }
}

// --- NaNs ----------------------------------------------------------------------------------------

static inline void random_nan(Suite *s, int dtype, uint8_t *p) {
    if (dtype_is_complex(dtype)) {
        int part = dtype == DT_C64 ? DT_F32 : DT_F64;
        random_nan(s, part, p + (rnd(s) & 1) * dtype_bytes(part));
        return;
    }
    uint64_t bits = rnd(s) | (dtype == DT_F32 ? 0x7f800000u : dtype == DT_F64 ? 0x7ff0000000000000u : 0);
    do // of narrow types a few codes are
        memcpy(p, &bits, dtype_bytes(dtype)), bits = bits * 6364136223846793005u + 1442695040888963407u;
    while (!isnan(dtype_to_f64(dtype, p)));
}

static inline bool has_nan(int dtype) {
    const DtypeRow *row = dtype_row(dtype);
    uint8_t nan[16] = {0};
    if (row->cls == DC_COMPLEX)
        return true;
    if (row->cls != DC_FLOAT || row->bits < 8)
        return false;
    dtype_from_f64(dtype, nan, NAN);
    return isnan(dtype_to_f64(dtype, nan));
}

static inline bool op_computes(uint32_t op) {
    switch (op) {
    case HLO_SELECT: case HLO_CONVERT: case HLO_BITCAST_CONVERT: case HLO_REAL: case HLO_IMAG: case HLO_COMPLEX:
    case HLO_REDUCE_PRECISION: return false;
    case HLO_REDUCE: case HLO_REDUCE_WINDOW: case HLO_MAP: case HLO_FUSED: case HLO_DOT: case HLO_DOT_GENERAL:
    case HLO_CONVOLUTION: case HLO_BATCH_NORM_TRAINING: case HLO_BATCH_NORM_INFERENCE: case HLO_BATCH_NORM_GRAD:
    case HLO_CHOLESKY: case HLO_TRIANGULAR_SOLVE: case HLO_FFT: return true;
    default: return hlo_op_rows[op].cls == HC_EW1 || hlo_op_rows[op].cls == HC_EW2 || hlo_op_rows[op].cls == HC_EW3;
    }
}

// Every number it gives is computed: none is only moved.
static inline bool all_computed(const Case *c) {
    bool all = op_computes(c->k.op);
    for (uint32_t r = 0; r < c->k.nregions; r++)
        for (int i = 0; i < c->k.regions[r].nsteps; i++)
            all = all && op_computes(c->k.regions[r].steps[i].op);
    for (uint32_t r = 0; r < c->k.nregions; r++)
        for (int i = 0; i < c->k.regions[r].nouts; i++) { // an input or a constant may be a result
            bool made = false;
            for (int j = 0; j < c->k.regions[r].nsteps; j++)
                made = made || c->k.regions[r].steps[j].dst == c->k.regions[r].outs[i];
            all = all && made;
        }
    return all;
}

static inline bool one_nan(const KTensor *t, const uint8_t *at) {
    int part = t->dtype == DT_C64 ? DT_F32 : t->dtype == DT_C128 ? DT_F64 : t->dtype;
    size_t bytes = dtype_bytes(part), n = (size_t)t->elems * dtype_bytes(t->dtype) / bytes;
    uint8_t want[8];
    if (!has_nan(part))
        return true;
    dtype_from_f64(part, want, NAN);
    uint8_t huge[8];
    dtype_from_f64(part, huge, INFINITY);
    bool no_inf = isnan(dtype_to_f64(part, huge)); // an infinite result is rounded to a NaN with its sign
    for (size_t i = 0; i < n; i++, at += bytes)
        if (isnan(dtype_to_f64(part, at)) && memcmp(at, want, bytes) && !(no_inf && (*at ^ *want) == 0x80))
            return false;
    return true;
}

static inline void case_nans(Suite *s, const Case *c, const char *name, GpFn *fn) {
    Case d = *c;
    bool some = false;
    for (uint32_t i = 0; i < c->k.nin; i++) {
        const KTensor *t = &c->k.in[i];
        if (t->elems < 2 || !has_nan(t->dtype))
            continue;
        size_t bytes = dtype_bytes(t->dtype);
        uint8_t *copy = block(s, tensor_bytes(t));
        memcpy(copy, c->data[i], tensor_bytes(t));
        for (int64_t e = 0; e < t->elems; e++)
            if (rnd(s) % 4 == 0)
                random_nan(s, t->dtype, copy + (size_t)e * bytes), some = true;
        d.data[i] = copy;
    }
    if (!some)
        return;
    CaseRun first = case_once(s, &d, fn, HOST_PORTABLE, s->pool[0], -1);
    bool computed = all_computed(c);
    for (HostLevel level = HOST_PORTABLE; level <= host_best() && first.status == OTRN_OK; level++)
        for (int p = 0; p < CASE_POOLS; p++) {
            CaseRun r = case_once(s, &d, fn, level, s->pool[p], -1);
            if (!same_bits(c, &first, &r))
                case_fail(s, name, "%s, %d threads: other bits with NaNs", host_name(level), p + 1);
            for (uint32_t i = 0; i < c->k.nout && computed; i++)
                if (!one_nan(&c->k.out[i], r.out[i]))
                    case_fail(s, name, "%s, %d threads: result %u has another NaN", host_name(level), p + 1, i);
        }
}

// False when there is no kernel.
static inline bool case_run(Suite *s, const Case *c, const char *name) {
    GpFn *fn = gp_find(&c->k);
    if (!fn)
        return false;
    s->cases++;
    CaseRun first = case_once(s, c, fn, HOST_PORTABLE, s->pool[0], -1);
    if (first.status != OTRN_OK)
        case_fail(s, name, "status %d: %s", (int)first.status, first.why);
    int before = s->failures;
    for (HostLevel level = HOST_PORTABLE; level <= host_best(); level++)
        for (int p = 0; p < CASE_POOLS; p++) {
            CaseRun r = case_once(s, c, fn, level, s->pool[p], -1);
            if (!guards_ok(c, &r))
                case_fail(s, name, "%s, %d threads: wrote behind a result", host_name(level),
                          p + 1);
            if (!same_bits(c, &first, &r))
                case_fail(s, name, "%s, %d threads: other bits", host_name(level), p + 1);
        }
    for (uint32_t i = 0; i < c->k.nin; i++) {
        const KTensor *in = &c->k.in[i], *out = c->k.out;
        if (!c->k.nout || !kern_may_share(c->k.op, i, 0, in->dtype, in->elems, out->dtype, out->elems))
            continue;
        CaseRun r = case_once(s, c, fn, host_best(), s->pool[1], (int)i);
        if (!same_bits(c, &first, &r))
            case_fail(s, name, "in place of operand %u: other bits", i);
    }
    if (s->failures == before)
        (c->judge ? c->judge : compare_oracle)(s, c, name, &first);
    case_nans(s, c, name, fn);
    case_damage(s, c, name, 6);
    return true;
}

// --- a whole suite -----------------------------------------------------------------------------

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static const uint8_t numbers[] = {DT_I8,   DT_I16,  DT_I32, DT_I64, DT_UI8,  DT_UI16,
                                  DT_UI32, DT_UI64, DT_F32, DT_F64, DT_BF16, DT_F16};
#define NNUMBERS ((int)(sizeof numbers / sizeof *numbers))

static inline void report(Suite *s, const char *name, int before) {
    if (s->failures == before)
        printf("ok %s\n", name);
    arena_reset(&s->arena);
}
static inline void need(Suite *s, const Case *c, const char *name) {
    if (!case_run(s, c, name))
        case_fail(s, name, "no kernel");
}
static inline int random_shape(Suite *s, int max_rank, int64_t max_dim, int64_t *dims) {
    int rank = (int)rnd_in(s, 0, max_rank);
    for (int i = 0; i < rank; i++)
        dims[i] = rnd(s) % 12 == 0 ? (int64_t)(rnd(s) % 2) : rnd_in(s, 1, max_dim);
    return rank;
}

static inline void shuffle(Suite *s, int64_t *v, int n) {
    for (int i = 0; i < n; i++)
        v[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int64_t j = rnd_in(s, 0, i), t = v[i];
        v[i] = v[j], v[j] = t;
    }
}

typedef void TestFn(Suite *s);

static inline int suite_run(int argc, char **argv, const char *name, TestFn *const *tests,
                            size_t n) {
    static Suite s;
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240607;
    printf("seed %llu\n", (unsigned long long)seed);
    s.random = seed * 0x9e3779b97f4a7c15u | 1;
    arena_init(&s.arena, &s.ctx);
    jmp_buf here;
    if (!CTX_TRY(&s.ctx, here)) {
        printf("FAIL %s: %s\n", name, s.ctx.err.text);
        return 1;
    }
    for (int i = 0; i < CASE_POOLS; i++)
        s.pool[i] = pool_make(i + 1);
    for (size_t i = 0; i < n; i++)
        tests[i](&s);
    for (int i = 0; i < CASE_POOLS; i++)
        pool_free(s.pool[i]);
    blocks_free(&s);
    arena_fini(&s.arena);
    printf("%d cases, %d damaged ones of which %d ran, %d failures\n", s.cases, s.damaged,
           s.damaged_ran, s.failures);
    return s.failures != 0;
}

#endif
