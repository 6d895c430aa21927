// SPDX-License-Identifier: Apache-2.0
// check.c — the checks of test programs, as check.* ops and as custom calls; and the custom
// calls that are annotations.
//
//   eq         equal by ==, element by element; NaN matches NaN, for how else to expect one
//   close      at most 3 representable values apart in the type, or as the op's limits say (two
//   NaNs agree) almost_eq  at most a tolerance apart; equal infinities and two NaNs agree
#include <math.h>
#include <stdio.h>

#include "chip/gpsimd/gp.h"

typedef enum CheckKind { CHECK_NONE, CHECK_EQ, CHECK_CLOSE, CHECK_ALMOST } CheckKind;

typedef struct Check {
    CheckKind kind;
    double tolerance;            // ALMOST
    uint64_t min_ulps, max_ulps; // CLOSE
} Check;

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

static Check check_read(const Kern *k) {
    Check c = {.min_ulps = (uint64_t)gp_int(k, AK_MIN_ULP_DIFFERENCE, 0),
               .max_ulps = (uint64_t)gp_int(k, AK_MAX_ULP_DIFFERENCE, CLOSE_ULPS)};
    c.kind = check_kind(k, &c.tolerance);
    return c;
}

bool gp_check_check(const Kern *k) {
    if (check_read(k).kind == CHECK_NONE || k->nin != 2 || !gp_same_type(&k->in[0], &k->in[1]))
        return false;
    return k->nout == 0 || (k->nout == 1 && k->out[0].dtype == DT_I1 && k->out[0].elems == 1);
}

// Position of a float among the representable values of its type, zero in the middle.
static uint64_t float_rank(int dtype, const void *p) {
    uint64_t u = 0, middle = (uint64_t)1 << 63;
    memcpy(&u, p, dtype_bytes(dtype));
    const DtypeRow *row = dtype_row(dtype);
    int width = dtype == DT_TF32 ? 32 : row->bits;
    uint64_t sign = row->flavour == FF_E8M0 ? 0 : (uint64_t)1 << (width - 1);
    return u & sign ? middle - (u & (sign - 1)) : middle + u;
}

// How many representable values apart; a finite and a non-finite one as far as can be.
static uint64_t float_ulps(int dtype, const void *pa, const void *pb) {
    double a = dtype_to_f64(dtype, pa), b = dtype_to_f64(dtype, pb);
    if (isnan(a) && isnan(b))
        return 0;
    if (!isfinite(a) || !isfinite(b))
        return a == b ? 0 : UINT64_MAX;
    uint64_t ra = float_rank(dtype, pa), rb = float_rank(dtype, pb);
    return ra > rb ? ra - rb : rb - ra;
}

static bool float_almost(double a, double b, double tolerance) {
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= tolerance;
}

// A complex number is as far off as the worse of its parts.
static bool close_agree(const Check *c, int dtype, const void *a, const void *b) {
    bool is_complex = dtype_is_complex(dtype);
    int part = !is_complex ? dtype : dtype == DT_C64 ? DT_F32 : DT_F64;
    size_t bytes = dtype_bytes(part);
    uint64_t far = float_ulps(part, a, b);
    if (is_complex) {
        uint64_t im = float_ulps(part, (const char *)a + bytes, (const char *)b + bytes);
        far = im > far ? im : far;
    }
    return far >= c->min_ulps && far <= c->max_ulps;
}

static bool agree(const Check *c, int dtype, const void *a, const void *b) {
    if (c->kind == CHECK_CLOSE && (dtype_is_float(dtype) || dtype_is_complex(dtype)))
        return close_agree(c, dtype, a, b);
    if (dtype_is_complex(dtype)) {
        int part = dtype == DT_C64 ? DT_F32 : DT_F64;
        size_t bytes = dtype_bytes(part);
        return agree(c, part, a, b) &&
               agree(c, part, (const char *)a + bytes, (const char *)b + bytes);
    }
    if (!dtype_is_float(dtype))
        return dtype_to_i64(dtype, a) == dtype_to_i64(dtype, b);
    double x = dtype_to_f64(dtype, a), y = dtype_to_f64(dtype, b);
    return float_almost(x, y, c->kind == CHECK_EQ ? 0 : c->tolerance);
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

static otrn_status check_fail(const GpCall *c, const Check *check, int64_t first, int64_t wrong) {
    char rule[80];
    if (check->kind == CHECK_EQ)
        snprintf(rule, sizeof rule, "be equal");
    else if (check->kind == CHECK_ALMOST)
        snprintf(rule, sizeof rule, "be within %g", check->tolerance);
    else
        snprintf(rule, sizeof rule, "be %llu to %llu ulp apart",
                 (unsigned long long)check->min_ulps, (unsigned long long)check->max_ulps);
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
    return gp_fail(c, "check failed: %lld of %lld elements should %s; at [%s] %s against %s",
                   (long long)wrong, (long long)t->elems, rule, where, got, want);
}

otrn_status gp_check_run(const GpCall *c) {
    const KTensor *t = &c->k->in[0];
    size_t bytes = dtype_bytes(t->dtype);
    Check check = check_read(c->k);
    int64_t wrong = 0, first = -1;
    for (int64_t i = 0; i < t->elems; i++) {
        int64_t at = i * (int64_t)bytes;
        if (agree(&check, t->dtype, (const char *)c->in[0] + at, (const char *)c->in[1] + at))
            continue;
        wrong++;
        first = first < 0 ? i : first;
    }
    if (c->k->nout)
        *(uint8_t *)c->out[0] = !wrong;
    return wrong ? check_fail(c, &check, first, wrong) : OTRN_OK;
}

// --- custom calls ------------------------------------------------------------------------------

bool gp_custom_check(const Kern *k) {
    if (!k->target)
        return false;
    if (!strcmp(k->target, HLO_HOST_CALL))
        return gp_host_check(k);
    if (hlo_call_passes_on(k->target) == HLO_CALL_OTHER)
        return gp_check_check(k);
    if (k->nin != k->nout)
        return false;
    for (uint32_t i = 0; i < k->nin; i++)
        if (!gp_same_type(&k->in[i], &k->out[i]))
            return false;
    return true;
}

size_t gp_custom_scratch(const Kern *k, int threads) {
    return strcmp(k->target, HLO_HOST_CALL) ? 0 : gp_host_scratch(k, threads);
}

otrn_status gp_custom_run(const GpCall *c) {
    if (!strcmp(c->k->target, HLO_HOST_CALL))
        return gp_host_run(c);
    if (hlo_call_passes_on(c->k->target) == HLO_CALL_OTHER)
        return gp_check_run(c);
    for (uint32_t i = 0; i < c->k->nout; i++)
        copy_bytes(c->pool, c->out[i], c->in[i], gp_bytes(&c->k->out[i]));
    return OTRN_OK;
}
