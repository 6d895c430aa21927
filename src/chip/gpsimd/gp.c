// SPDX-License-Identifier: Apache-2.0
// gp.c — which kernel runs an op: one row each, and what all kernels share.
#include "chip/gpsimd/gp.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define ROW(name)                                                                                  \
    { gp_##name##_run, gp_##name##_check, NULL }
#define ROW_S(name)                                                                                \
    { gp_##name##_run, gp_##name##_check, gp_##name##_scratch }

// Elementwise ops are not listed: their class says so.
static const GpRow gp_rows[HLO_OPCODE_COUNT] = {
    [HLO_RESHAPE] = ROW(copy),
    [HLO_DYNAMIC_RESHAPE] = ROW(copy),
    [HLO_OPTIMIZATION_BARRIER] = ROW(copy),
    [HLO_UNREALIZED_CAST] = ROW(copy),
    [HLO_SDY_SHARDING_CONSTRAINT] = ROW(copy),
    [HLO_SDY_RESHARD] = ROW(copy),
    [HLO_SDY_PROPAGATION_BARRIER] = ROW(copy),
    [HLO_BROADCAST] = ROW(broadcast),
    [HLO_BROADCAST_IN_DIM] = ROW(broadcast),
    [HLO_DYNAMIC_BROADCAST_IN_DIM] = ROW(broadcast),
    [HLO_TRANSPOSE] = ROW(transpose),
    [HLO_SLICE] = ROW(slice),
    [HLO_PAD] = ROW(pad),
    [HLO_CONCATENATE] = ROW(concat),
    [HLO_REVERSE] = ROW(reverse),
    [HLO_IOTA] = ROW(iota),
    [HLO_DYNAMIC_IOTA] = ROW(iota),
    [HLO_DYNAMIC_SLICE] = ROW(dynamic_slice),
    [HLO_DYNAMIC_UPDATE_SLICE] = ROW(dynamic_update_slice),
    [HLO_DYNAMIC_PAD] = ROW_S(dynamic),
    [HLO_DYNAMIC_CONV] = ROW_S(dynamic),
    [HLO_DYNAMIC_GATHER] = ROW_S(dynamic),
    [HLO_REAL_DYNAMIC_SLICE] = ROW_S(dynamic),
    [HLO_BITCAST_CONVERT] = ROW(bitcast),
    [HLO_GATHER] = ROW(gather),
    [HLO_SCATTER] = ROW_S(scatter),
    [HLO_REDUCE] = ROW_S(reduce),
    [HLO_REDUCE_WINDOW] = ROW_S(reduce_window),
    [HLO_SELECT_AND_SCATTER] = ROW_S(select_and_scatter),
    [HLO_SORT] = ROW_S(sort),
    [HLO_MAP] = ROW_S(map),
    [HLO_FUSED] = ROW_S(map),
    [HLO_DOT] = ROW_S(dot),
    [HLO_DOT_GENERAL] = ROW_S(dot),
    [HLO_CONVOLUTION] = ROW_S(conv),
    [HLO_DRAW] = ROW(draw),
    [HLO_RNG] = ROW(rng),
    [HLO_RNG_BIT_GENERATOR] = ROW(rng_bits),
    [HLO_BATCH_NORM_TRAINING] = ROW(bn_train),
    [HLO_BATCH_NORM_INFERENCE] = ROW(bn_infer),
    [HLO_BATCH_NORM_GRAD] = ROW(bn_grad),
    [HLO_CHOLESKY] = ROW_S(cholesky),
    [HLO_TRIANGULAR_SOLVE] = ROW_S(tri_solve),
    [HLO_FFT] = ROW_S(fft),
    [HLO_CHLO_TOP_K] = ROW_S(top_k),
    [HLO_CHECK_EXPECT_EQ] = ROW(check),
    [HLO_CHECK_EXPECT_EQ_CONST] = ROW(check),
    [HLO_CHECK_EXPECT_ALMOST_EQ] = ROW(check),
    [HLO_CHECK_EXPECT_ALMOST_EQ_CONST] = ROW(check),
    [HLO_CHECK_EXPECT_CLOSE] = ROW(check),
    [HLO_CUSTOM_CALL] = ROW_S(custom),
    [HLO_GET_DIMENSION_SIZE] = ROW(dim_size),
    [HLO_PARTITION_ID] = ROW(device_id),
    [HLO_REPLICA_ID] = ROW(device_id),
    [HLO_ALL_REDUCE] = ROW_S(all_reduce),
    [HLO_COLLECTIVE_REDUCE] = ROW_S(collective_reduce),
    [HLO_REDUCE_SCATTER] = ROW_S(reduce_scatter),
    [HLO_ALL_GATHER] = ROW_S(all_gather),
    [HLO_ALL_TO_ALL] = ROW_S(all_to_all),
    [HLO_COLLECTIVE_BROADCAST] = ROW_S(collective_broadcast),
    [HLO_COLLECTIVE_PERMUTE] = ROW_S(collective_permute),
    [HLO_SEND] = ROW_S(send),
    [HLO_RECV] = ROW_S(recv),
    [HLO_INFEED] = ROW_S(recv),
    [HLO_OUTFEED] = ROW_S(send),
};

static const GpRow ew_row = ROW(ew);

static const GpRow *find_row(uint32_t op) {
    if (op >= HLO_OPCODE_COUNT)
        return NULL;
    int cls = hlo_op_rows[op].cls;
    bool quantised = op == HLO_UNIFORM_QUANTIZE || op == HLO_UNIFORM_DEQUANTIZE; // gone before
    if ((cls == HC_EW1 || cls == HC_EW2 || cls == HC_EW3) && !quantised)
        return &ew_row;
    return gp_rows[op].run ? &gp_rows[op] : NULL;
}

bool gp_has(HloOpcode op) { return op != HLO_NONE && find_row(op); }

// Tokens have no bytes: they come to operations that only carry them on or skip them.
static bool takes_tokens(const Kern *k) {
    switch (k->op) {
    case HLO_SEND: case HLO_RECV: case HLO_INFEED: case HLO_OUTFEED: case HLO_OPTIMIZATION_BARRIER:
        return true;
    case HLO_CUSTOM_CALL:
        return k->target && (!strcmp(k->target, HLO_HOST_CALL) || hlo_call_passes_on(k->target) != HLO_CALL_OTHER);
    default:
        return false;
    }
}

static bool tensors_ok(const KTensor *t, uint32_t n, bool tokens) {
    for (uint32_t i = 0; i < n; i++) {
        int64_t elems = 1, bytes;
        bool known = t[i].dtype == DT_TOKEN ? tokens && !t[i].rank : lane_class(t[i].dtype) != LC_NONE;
        if (!known || t[i].rank > OTRN_MAX_RANK)
            return false;
        for (int d = 0; d < t[i].rank; d++)
            if (t[i].dims[d] < 0 || __builtin_mul_overflow(elems, t[i].dims[d], &elems))
                return false;
        if (elems != t[i].elems || __builtin_mul_overflow(elems, 16, &bytes))
            return false;
    }
    return true;
}

static uint32_t capture_count(const Kern *k, uint32_t regions) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < regions; i++)
        n += k->regions[i].ncaptures;
    return n;
}

static bool regions_ok(const Kern *k) {
    uint32_t total = capture_count(k, k->nregions);
    if (total > k->nin)
        return false;
    for (uint32_t i = 0; i < k->nregions; i++) {
        const KProg *p = &k->regions[i];
        const KTensor *t = &k->in[k->nin - total + capture_count(k, i)];
        if (!prog_check(p))
            return false;
        for (int c = 0; c < p->ncaptures; c++)
            if (t[c].elems != 1 || t[c].dtype != p->dtypes[p->ninputs + c])
                return false;
    }
    return true;
}

const void *const *gp_captures(const GpCall *c, uint32_t region) {
    uint32_t total = capture_count(c->k, c->k->nregions);
    return (const void *const *)c->in + (c->k->nin - total + capture_count(c->k, region));
}

GpFn *gp_find(const Kern *k) {
    const GpRow *row = find_row(k->op);
    if (!row || k->nattrs != hlo_op_rows[k->op].nattrs)
        return NULL;
    bool tokens = takes_tokens(k);
    if (!tensors_ok(k->in, k->nin, tokens) || !tensors_ok(k->out, k->nout, tokens) || !regions_ok(k))
        return NULL;
    return row->check(k) ? row->run : NULL;
}

size_t gp_scratch_bytes(const Kern *k, int threads) {
    const GpRow *row = find_row(k->op);
    return row && row->scratch ? gp_align(row->scratch(k, threads < 1 ? 1 : threads)) : 0;
}

// --- shared ------------------------------------------------------------------------------------

void gp_strides(const KTensor *t, int64_t *strides) {
    int64_t s = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        strides[d] = s;
        s *= t->dims[d];
    }
}

int64_t gp_index_at(int dtype, const void *p, size_t i) {
    if (dtype == DT_I32)
        return ((const int32_t *)p)[i];
    if (dtype == DT_I64)
        return ((const int64_t *)p)[i];
    int64_t v = dtype_to_i64(dtype, (const char *)p + i * dtype_bytes(dtype));
    return dtype == DT_UI64 && v < 0 ? INT64_MAX : v;
}

const int64_t *gp_ints(const Kern *k, HloAttrKey key, size_t want) {
    static const int64_t none[1];
    const HloAttr *a = kern_attr(k, key);
    if (!a)
        return want ? NULL : none;
    if ((a->kind != HA_INTS && a->kind != HA_INTS2) || a->n != want)
        return NULL;
    return a->n ? a->ints : none;
}

int64_t gp_int(const Kern *k, HloAttrKey key, int64_t dflt) {
    const HloAttr *a = kern_attr(k, key);
    return a && (a->kind == HA_INT || a->kind == HA_BOOL || a->kind == HA_ENUM) ? a->i : dflt;
}

bool gp_axes_ok(const int64_t *axes, size_t n, int rank) {
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        if (axes[i] < 0 || axes[i] >= rank || seen >> axes[i] & 1)
            return false;
        seen |= (uint64_t)1 << axes[i];
    }
    return true;
}

const int64_t *gp_axes(const Kern *k, HloAttrKey key, int rank, size_t *n) {
    const HloAttr *a = kern_attr(k, key);
    *n = a && a->kind == HA_INTS ? a->n : 0;
    const int64_t *axes = gp_ints(k, key, *n);
    return axes && gp_axes_ok(axes, *n, rank) ? axes : NULL;
}

typedef struct QuietJob {
    QuietFn *fn; // NULL: a narrow type, one by one
    int dtype;
    uint8_t *at;
    size_t bytes;
} QuietJob;

static void quiet_chunk(void *arg, size_t begin, size_t end) {
    const QuietJob *j = arg;
    uint8_t *at = j->at + begin * j->bytes;
    if (j->fn)
        j->fn(at, end - begin);
    for (; !j->fn && begin < end; begin++, at += j->bytes)
        if (isnan(dtype_to_f64(j->dtype, at)))
            dtype_from_f64(j->dtype, at, NAN);
}

otrn_status gp_quiet(const GpCall *c) {
    for (uint32_t i = 0; i < c->k->nout; i++) {
        const KTensor *t = &c->k->out[i];
        if (!dtype_is_float(t->dtype) && !dtype_is_complex(t->dtype))
            continue;
        QuietJob j = {.dtype = t->dtype, .at = c->out[i], .bytes = dtype_bytes(t->dtype)};
        if (lane_class(t->dtype) != LC_F32 || t->dtype == DT_F32 || t->dtype == DT_BF16)
            j.fn = gp_level(c->level)->quiet[lane_class_direct(t->dtype)];
        pool_run(c->pool, (size_t)t->elems, GP_GRAIN_BYTES / j.bytes, quiet_chunk, &j);
    }
    return OTRN_OK;
}

otrn_status gp_fail(const GpCall *c, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    if (c->why && c->why_bytes)
        vsnprintf(c->why, c->why_bytes, fmt, args);
    va_end(args);
    return OTRN_CHECK;
}
