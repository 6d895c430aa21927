// SPDX-License-Identifier: Apache-2.0
// gp_check.c — the checks of test programs, as check.* ops and as custom calls; and the custom calls
// that are annotations.
//
//   eq         equal by ==, element by element; NaN matches NaN, for how else to expect one
//   close      at most 3 representable values apart in the type (two NaNs agree)
//   almost_eq  at most a tolerance apart; equal infinities and two NaNs agree
#include <math.h>
#include <stdio.h>

#include "chip/gp.h"

typedef enum CheckKind { CHECK_NONE, CHECK_EQ, CHECK_CLOSE, CHECK_ALMOST } CheckKind;

#define CLOSE_ULPS 3

static CheckKind check_kind(const Kern *k, double *tolerance) {
    const HloAttr *t = kern_attr(k, AK_TOLERANCE);
    *tolerance = t && t->kind == HA_FLOAT ? t->f : 1e-4;
    switch (k->op) {
    case HLO_CHECK_EXPECT_EQ:
    case HLO_CHECK_EXPECT_EQ_CONST: return CHECK_EQ;
    case HLO_CHECK_EXPECT_ALMOST_EQ:
    case HLO_CHECK_EXPECT_ALMOST_EQ_CONST: return CHECK_ALMOST;
    case HLO_CHECK_EXPECT_CLOSE: return CHECK_CLOSE;
    case HLO_CUSTOM_CALL: break;
    default: return CHECK_NONE;
    }
    if (!strcmp(k->target, "check.expect_eq"))
        return CHECK_EQ;
    if (!strcmp(k->target, "check.expect_close"))
        return CHECK_CLOSE;
    *tolerance = strcmp(k->target, "check.eq") ? 1e-3 : 1e-4;
    if (!strcmp(k->target, "check.expect_almost_eq") || !strcmp(k->target, "check.eq"))
        return CHECK_ALMOST;
    return CHECK_NONE;
}

bool gp_check_check(const Kern *k) {
    double tolerance;
    if (check_kind(k, &tolerance) == CHECK_NONE || k->nin != 2 || !gp_same_type(&k->in[0], &k->in[1]))
        return false;
    return k->nout == 0 || (k->nout == 1 && k->out[0].dtype == DT_I1 && k->out[0].elems == 1);
}

// Position of a float among the representable values of its type, zero in the middle.
static int64_t float_rank(int dtype, const void *p) {
    uint64_t u = 0;
    size_t bytes = dtype_bytes(dtype);
    memcpy(&u, p, bytes);
    const DtypeRow *row = dtype_row(dtype);
    int width = dtype == DT_TF32 ? 32 : row->bits;
    uint64_t sign = row->flavour == FF_E8M0 ? 0 : (uint64_t)1 << (width - 1);
    return u & sign ? -(int64_t)(u & (sign - 1)) : (int64_t)u;
}

static bool float_close(int dtype, const void *pa, const void *pb) {
    double a = dtype_to_f64(dtype, pa), b = dtype_to_f64(dtype, pb);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    int64_t ra = float_rank(dtype, pa), rb = float_rank(dtype, pb), d;
    if (__builtin_sub_overflow(ra, rb, &d))
        return false;
    return d >= -CLOSE_ULPS && d <= CLOSE_ULPS;
}

static bool float_almost(double a, double b, double tolerance) {
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= tolerance;
}

static bool agree(CheckKind kind, double tolerance, int dtype, const void *a, const void *b) {
    if (dtype_is_complex(dtype)) {
        int part = dtype == DT_C64 ? DT_F32 : DT_F64;
        size_t bytes = dtype_bytes(part);
        return agree(kind, tolerance, part, a, b) &&
               agree(kind, tolerance, part, (const char *)a + bytes, (const char *)b + bytes);
    }
    if (!dtype_is_float(dtype))
        return dtype_to_i64(dtype, a) == dtype_to_i64(dtype, b);
    if (kind == CHECK_CLOSE)
        return float_close(dtype, a, b);
    double x = dtype_to_f64(dtype, a), y = dtype_to_f64(dtype, b);
    return float_almost(x, y, kind == CHECK_EQ ? 0 : tolerance);
}

static void print_value(char *out, size_t bytes, int dtype, const void *p) {
    if (dtype_is_complex(dtype)) {
        int part = dtype == DT_C64 ? DT_F32 : DT_F64;
        snprintf(out, bytes, "(%.9g, %.9g)", dtype_to_f64(part, p),
                 dtype_to_f64(part, (const char *)p + dtype_bytes(part)));
    } else if (dtype_is_float(dtype)) {
        snprintf(out, bytes, "%.9g", dtype_to_f64(dtype, p));
    } else {
        int64_t v = dtype_to_i64(dtype, p);
        snprintf(out, bytes, dtype == DT_UI64 ? "%llu" : "%lld", (long long)v);
    }
}

static otrn_status check_fail(const GpCall *c, CheckKind kind, int64_t first, int64_t wrong) {
    static const char *const rules[] = {"", "be equal", "be within 3 ulp", "be almost equal"};
    const KTensor *t = &c->k->in[0];
    size_t bytes = dtype_bytes(t->dtype);
    char got[80], want[80], where[256] = "";
    print_value(got, sizeof got, t->dtype, (const char *)c->in[0] + first * (int64_t)bytes);
    print_value(want, sizeof want, t->dtype, (const char *)c->in[1] + first * (int64_t)bytes);
    int64_t strides[OTRN_MAX_RANK];
    gp_strides(t, strides);
    size_t n = 0;
    for (int d = 0; d < t->rank && n + 24 < sizeof where; d++)
        n += (size_t)snprintf(where + n, sizeof where - n, d ? ",%lld" : "%lld",
                              (long long)(first / strides[d] % t->dims[d]));
    return gp_fail(c, "check failed: %lld of %lld elements should %s; at [%s] %s against %s", (long long)wrong,
                   (long long)t->elems, rules[kind], where, got, want);
}

otrn_status gp_check_run(const GpCall *c) {
    const KTensor *t = &c->k->in[0];
    size_t bytes = dtype_bytes(t->dtype);
    double tolerance;
    CheckKind kind = check_kind(c->k, &tolerance);
    int64_t wrong = 0, first = -1;
    for (int64_t i = 0; i < t->elems; i++) {
        int64_t at = i * (int64_t)bytes;
        if (agree(kind, tolerance, t->dtype, (const char *)c->in[0] + at, (const char *)c->in[1] + at))
            continue;
        wrong++;
        first = first < 0 ? i : first;
    }
    if (c->k->nout)
        *(uint8_t *)c->out[0] = !wrong;
    return wrong ? check_fail(c, kind, first, wrong) : OTRN_OK;
}

// --- custom calls ----------------------------------------------------------------------------------

static bool is_annotation(const char *target) {
    static const char *const names[] = {
        "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
        "LayoutConstraint", "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape",
        "xla.sdy.LocalToGlobalShape", "MoveToDevice", "MoveToHost", "PinToDevice"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(target, names[i]))
            return true;
    return false;
}

bool gp_custom_check(const Kern *k) {
    if (!k->target)
        return false;
    if (!is_annotation(k->target))
        return gp_check_check(k);
    if (k->nin != k->nout)
        return false;
    for (uint32_t i = 0; i < k->nin; i++)
        if (!gp_same_type(&k->in[i], &k->out[i]))
            return false;
    return true;
}

otrn_status gp_custom_run(const GpCall *c) {
    if (!is_annotation(c->k->target))
        return gp_check_run(c);
    for (uint32_t i = 0; i < c->k->nout; i++)
        copy_bytes(c->pool, c->out[i], c->in[i], gp_bytes(&c->k->out[i]));
    return OTRN_OK;
}
