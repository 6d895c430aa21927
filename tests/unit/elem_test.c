// SPDX-License-Identifier: Apache-2.0
// elem_test.c — the elementary functions of base/elem.h: against reference values (data/elem_vectors.txt), at
// the edges of the number line, and the chip's lanes of every host level against the evaluator, bit for bit.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/elem.h"
#include "chip/gpsimd/gp.h"
#include "hlo/eval_in.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int failures;

static void verdict(bool ok, const char *name, const char *why) {
    if (ok) {
        printf("ok %s%s%s\n", name, *why ? ": " : "", why);
    } else {
        printf("FAIL %s: %s\n", name, why);
        failures++;
    }
}

// --- reference values --------------------------------------------------------------------------

#define BOUND 3.0

static double ulps(double got, double want, int more) {
    if (!isfinite(got))
        return INFINITY;
    double a = fabs(want), unit = a < 0x1p-1022 ? 0x1p-1074 : nextafter(a, INFINITY) - a;
    if (a == 0x1.fffffffffffffp1023)
        unit = 0x1p971;
    return fabs((got - want) / unit - more / 1000.0);
}

static void report(const char *kind, const char *name, double worst) {
    char full[64], says[64];
    snprintf(full, sizeof full, "%s%s", kind, name);
    snprintf(says, sizeof says, "%.3f ulp", worst);
    verdict(worst <= BOUND, full, says);
}

// A line of the file of reference values: a kind, a function's name, numbers.
#define VALUES OTRN_SOURCE_DIR "/tests/unit/data/elem_vectors.txt"
#define ROWS_MAX 64
#define VALUE_LINES 51

static int line_numbers(char *line, double *out, int most) {
    int n = 0;
    for (char *s = strtok(line, " \n"); s && n < most; s = strtok(NULL, " \n"))
        out[n++] = strtod(s, NULL);
    return n;
}

static double worst_one(double (*fn)(double), const double *v, int n) {
    double worst = n ? 0 : INFINITY;
    for (int i = 0; i + 3 <= n; i += 3)
        worst = fmax(worst, ulps(fn(v[i]), v[i + 1], (int)v[i + 2]));
    return worst;
}

static double worst_two(double (*fn)(double, double), const double *v, int n) {
    double worst = n ? 0 : INFINITY;
    for (int i = 0; i + 4 <= n; i += 4)
        worst = fmax(worst, ulps(fn(v[i], v[i + 1]), v[i + 2], (int)v[i + 3]));
    return worst;
}

static double worst_complex(double complex (*fn)(double complex), const double *v, int n) {
    double worst = n ? 0 : INFINITY;
    for (int i = 0; i + 6 <= n; i += 6) {
        double complex got = fn(CMPLX(v[i], v[i + 1]));
        worst = fmax(worst, ulps(creal(got), v[i + 2], (int)v[i + 3]));
        worst = fmax(worst, ulps(cimag(got), v[i + 4], (int)v[i + 5]));
    }
    return worst;
}

// Tests what a line says of its function; false when there is none of that name.
static bool test_line(char kind, const char *name, const double *v, int n) {
#define X(f)                                                                                       \
    if (kind == '1' && !strcmp(name, #f)) {                                                        \
        report("f64 ", name, worst_one(elem_##f, v, n));                                           \
        return true;                                                                               \
    }
    ELEM_ONE_ROWS(X) ELEM_TURN_ROWS(X) ELEM_SPECIAL1_ROWS(X)
#undef X
#define X(f)                                                                                       \
    if (kind == '2' && !strcmp(name, #f)) {                                                        \
        report("f64 ", name, worst_two(elem_##f, v, n));                                           \
        return true;                                                                               \
    }
    ELEM_TWO_ROWS(X) ELEM_SPECIAL2_ROWS(X)
#undef X
#define X(f)                                                                                       \
    if (kind == 'c' && !strcmp(name, #f)) {                                                        \
        report("complex ", name, worst_complex(elem_c_##f, v, n));                                 \
        return true;                                                                               \
    }
    X(exp) X(expm1) X(log) X(log1p) X(logistic) X(sqrt) X(rsqrt) X(cbrt) X(sin) X(cos) X(tan) X(sinh) X(cosh)
    X(tanh) X(asin) X(acos) X(atan) X(asinh) X(acosh) X(atanh) X(sign)
#undef X
    return false;
}

static void test_values(void) {
    static char line[1 << 16];
    FILE *in = fopen(VALUES, "r");
    int tested = 0;
    while (in && fgets(line, sizeof line, in)) {
        double v[6 * ROWS_MAX];
        char name[32], kind;
        int at = 0;
        if (*line == '#')
            continue;
        bool ok = sscanf(line, "%c %31s %n", &kind, name, &at) == 2 && test_line(kind, name, v, line_numbers(line + at, v, 6 * ROWS_MAX));
        if (!ok)
            verdict(false, "reference values", "a line is about no function");
        tested += ok;
    }
    if (in)
        fclose(in);
    verdict(tested == VALUE_LINES, "reference values", "of all functions");
}

// --- edges -------------------------------------------------------------------------------------

static uint64_t bits(double x) {
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}

typedef double Fn(double);
#define ANY_NAN 0x7ff8000000000000u
static const double inf = INFINITY;
static const double nan_ = NAN;
static const double largest = 0x1.fffffffffffffp1023;
static const double least = 0x1p-1074;

static void test_edges(void) {
    const struct {
        const char *name;
        Fn *fn;
        double at[8]; // values at -inf, -0, +0, inf, -1, 1, least, largest
    } rows[] = {
        {"exp", elem_exp, {0, 1, 1, inf, 0x1.78b56362cef38p-2, 0x1.5bf0a8b145769p+1, 1, inf}},
        {"expm1", elem_expm1, {-1, -0.0, 0, inf, -0x1.43a54e4e98864p-1, 0x1.b7e151628aed3p+0, least, inf}},
        {"log", elem_log, {nan_, -inf, -inf, inf, nan_, 0, -0x1.74385446d71c3p+9, 0x1.62e42fefa39efp+9}},
        {"log1p", elem_log1p, {nan_, -0.0, 0, inf, -inf, 0x1.62e42fefa39efp-1, least, 0x1.62e42fefa39efp+9}},
        {"logistic", elem_logistic, {0, 0.5, 0.5, 1, 0x1.136561454ba86p-2, 0x1.764d4f5d5a2bdp-1, 0.5, 1}},
        {"cbrt", elem_cbrt, {-inf, -0.0, 0, inf, -1, 1, 0x1p-358, 0x1.428a2f98d728bp+341}},
        {"rsqrt", elem_rsqrt, {nan_, -inf, inf, 0, nan_, 1, 0x1p537, 0x1.0000000000000p-512}},
        {"sinh", elem_sinh, {-inf, -0.0, 0, inf, -0x1.2cd9fc44eb982p+0, 0x1.2cd9fc44eb982p+0, least, inf}},
        {"cosh", elem_cosh, {inf, 1, 1, inf, 0x1.8b07551d9f550p+0, 0x1.8b07551d9f550p+0, 1, inf}},
        {"tanh", elem_tanh, {-1, -0.0, 0, 1, -0x1.85efab514f394p-1, 0x1.85efab514f394p-1, least, 1}},
        {"asinh", elem_asinh, {-inf, -0.0, 0, inf, -0x1.c34366179d427p-1, 0x1.c34366179d427p-1, least, 0x1.633ce8fb9f87ep+9}},
        {"acosh", elem_acosh, {nan_, nan_, nan_, inf, nan_, 0, nan_, 0x1.633ce8fb9f87ep+9}},
        {"atanh", elem_atanh, {nan_, -0.0, 0, nan_, -inf, inf, least, nan_}},
        {"asin", elem_asin, {nan_, -0.0, 0, nan_, -0x1.921fb54442d18p+0, 0x1.921fb54442d18p+0, least, nan_}},
        {"acos", elem_acos, {nan_, 0x1.921fb54442d18p+0, 0x1.921fb54442d18p+0, nan_, 0x1.921fb54442d18p+1, 0, 0x1.921fb54442d18p+0, nan_}},
        {"atan", elem_atan, {-0x1.921fb54442d18p+0, -0.0, 0, 0x1.921fb54442d18p+0, -0x1.921fb54442d18p-1, 0x1.921fb54442d18p-1, least, 0x1.921fb54442d18p+0}},
        {"erf", elem_erf, {-1, -0.0, 0, 1, -0x1.af767a741088bp-1, 0x1.af767a741088bp-1, least, 1}},
        {"erfc", elem_erfc, {2, 1, 1, 0, 0x1.d7bb3d3a08445p+0, 0x1.4226162fbddd5p-3, 1, 0}},
        {"erf_inv", elem_erf_inv, {nan_, -0.0, 0, nan_, -inf, inf, least, nan_}},
        {"sin", elem_sin, {nan_, -0.0, 0, nan_, -0x1.aed548f090ceep-1, 0x1.aed548f090ceep-1, least, 0x1.452fc98b34e97p-8}},
        {"cos", elem_cos, {nan_, 1, 1, nan_, 0x1.14a280fb5068cp-1, 0x1.14a280fb5068cp-1, 1, -0x1.fffe62ecfab75p-1}},
        {"tan", elem_tan, {nan_, -0.0, 0, nan_, -0x1.8eb245cbee3a6p+0, 0x1.8eb245cbee3a6p+0, least, -0x1.4530cfe729484p-8}},
        {"lgamma", elem_lgamma, {inf, inf, inf, inf, inf, 0, 0x1.74385446d71c3p+9, inf}},
    };
    const double at[] = {-inf, -0.0, 0, inf, -1, 1, least, largest};
    for (size_t r = 0; r < COUNT(rows); r++) {
        char says[96] = "";
        for (size_t i = 0; i < COUNT(at); i++) {
            double got = rows[r].fn(at[i]), want = rows[r].at[i];
            int64_t apart = (int64_t)(bits(got) - bits(want));
            bool exact = want == 0 || want == floor(want) || isnan(want); // others: the neighbours
            if (exact ? apart != 0 : apart < -1 || apart > 1)
                snprintf(says, sizeof says, "at %g: %a, expected %a", at[i], got, want);
        }
        if (bits(rows[r].fn(nan_)) != ANY_NAN || bits(rows[r].fn(-nan_)) != ANY_NAN)
            snprintf(says, sizeof says, "NaN does not give the one NaN");
        char name[64];
        snprintf(name, sizeof name, "edges of %s", rows[r].name);
        verdict(!*says, name, says);
    }
    bool ok = elem_pow(-0.0, -3) == -inf && elem_pow(0, -2) == inf && elem_pow(-2, 3) == -8 &&
              isnan(elem_pow(-2, 0.5)) && elem_pow(nan_, 0) == 1 && elem_pow(1, nan_) == 1 &&
              elem_pow(-1, inf) == 1 && elem_pow(-inf, 3) == -inf && elem_pow(-inf, -3) == 0 &&
              elem_pow(largest, 2) == inf && elem_pow(largest, 1) == largest &&
              elem_pow(least, 1) == least && elem_pow(2, -1074) == least;
    verdict(ok, "edges of pow", ok ? "" : "a special case differs");
    ok = elem_atan2(-0.0, -1) == -0x1.921fb54442d18p+1 && elem_atan2(inf, -inf) == 0x1.2d97c7f3321d2p+1 &&
         elem_atan2(1, inf) == 0 && signbit(elem_atan2(-1, inf)) && isnan(elem_atan2(nan_, 1)) &&
         elem_atan2(0, -0.0) == 0x1.921fb54442d18p+1 && elem_hypot(nan_, -inf) == inf;
    verdict(ok, "edges of atan2 and hypot", ok ? "" : "a special case differs");
}

// Where the terms of a component cancel: still within the bound.
static void test_zeros(void) {
    static const struct {
        const char *name;
        double complex (*fn)(double complex);
        double x, y, re, im;
    } rows[] = {
        {"logistic", elem_c_logistic, -0x1.e112a447c67a4p-1, 0x1.f9cb6c259ae71p+0, -0x1.8400ab9ed7f0fp-10, 0x1.b35fdfe454820p-2},
        {"logistic", elem_c_logistic, -0x1.12e0be826d695p-30, 0x1.921e3e1bcf50ap+1, 0x1.685a8dba8326fp-16, 0x1.5d60cc443e70ep+14},
        {"expm1", elem_c_expm1, 0x1.a8be4a4e31714p-2, -0x1.b2dc7cb2b1cfdp-1, 0x1.df8809c46764ep-50, -0x1.23064f4e48683p+0},
        {"expm1", elem_c_expm1, 0x1.999999999999ap+1, 0x1.87af3ee4fa854p+0, 0x1.030d37910cb59p-13, 0x1.8831b51492c6fp+4},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        double complex z = rows[i].fn(CMPLX(rows[i].x, rows[i].y));
        double worst = fmax(ulps(creal(z), rows[i].re, 0), ulps(cimag(z), rows[i].im, 0));
        report("near zeros", rows[i].name, worst);
    }
}

// f(conj z) = conj f(z) bit for bit, for the functions that have it, wherever the result is a number.
static void test_conjugates(void) {
    typedef double complex ZFn(double complex);
    static const struct {
        const char *name;
        ZFn *fn;
    } rows[] = {
#define X(name) {#name, elem_c_##name},
        ELEM_COMPLEX1_ROWS(X)
#undef X
    };
    static const double some[] = {0, 1, -1, 0.5, -2, 0x1p-1074, 0x1.fffffffffffffp1023, INFINITY, -INFINITY};
    int bad = 0;
    for (size_t r = 0; r < COUNT(rows); r++)
        for (size_t i = 0; i < COUNT(some); i++)
            for (size_t j = 0; j < COUNT(some); j++) {
                double complex a = rows[r].fn(CMPLX(some[i], some[j]));
                double complex b = rows[r].fn(CMPLX(some[i], -some[j]));
                bool re = isnan(creal(a)) ? isnan(creal(b)) : creal(a) == creal(b);
                bool im = isnan(cimag(a)) ? isnan(cimag(b)) : cimag(a) == -cimag(b);
                if ((!re || !im) && bad++ == 0)
                    printf("%s(%g, %g): %g %g, conjugate %g %g\n", rows[r].name, some[i], some[j], creal(a),
                           cimag(a), creal(b), cimag(b));
            }
    verdict(!bad, "conjugates", bad ? "see above" : "");
}

// --- chip and evaluator ------------------------------------------------------------------------

#define N 1031

static uint64_t next(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed ^ *seed >> 29;
}
static void fill(uint64_t *seed, int dtype, double *wide, void *narrow, size_t n) {
    static const double some[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-1074, 0x1.fffffffffffffp1023, 0.5, 2, -3};
    size_t parts = dtype_is_complex(dtype) ? 2 * n : n;
    for (size_t i = 0; i < parts; i++) {
        uint64_t u = next(seed);
        double x;
        memcpy(&x, &u, 8); // any bits, ordinary sizes, edges
        if (u >> 32 & 1)
            x = ((double)(u >> 11) * 0x1p-53 - 0.5) * ldexp(1, (int)(next(seed) >> 32 & 15) - 8);
        else if ((u >> 33 & 7) == 0)
            x = some[next(seed) % COUNT(some)];
        wide[i] = x;
    }
    eval_store(dtype, narrow, n, wide);
    eval_load(dtype, narrow, (int64_t)dtype_bytes(dtype), n, wide);
}

static void compare_op(uint64_t *seed, int op, int dtype) {
    static double a[2 * N], b[2 * N], r[2 * N], na[2 * N], nb[2 * N], want[2 * N], got[2 * N];
    WideFn *fn = eval_ew((HloOpcode)op, dtype);
    int nin = hlo_op_rows[op].operands;
    Lane lane;
    uint8_t in[2] = {(uint8_t)dtype, (uint8_t)dtype};
    if (!fn || !lane_find(&lane, gp_level(HOST_PORTABLE), (uint16_t)op, dtype, in, nin, NULL))
        return;
    char name[96], says[96] = "";
    snprintf(name, sizeof name, "bits of %s on %s", hlo_op_rows[op].name, dtype_row(dtype)->name);
    for (int round = 0; round < 4; round++) {
        fill(seed, dtype, a, na, N);
        fill(seed, dtype, b, nb, N);
        fn(dtype, N, r, a, b);
        eval_store_computed(dtype, want, N, r);
        for (HostLevel l = 0; l <= host_best(); l++) {
            lane_find(&lane, gp_level(l), (uint16_t)op, dtype, in, nin, NULL);
            lane_run(&lane, got, (const void *[]){na, nb}, N);
            size_t part = dtype_bytes(dtype) / (dtype_is_complex(dtype) ? 2 : 1);
            for (size_t i = 0; i < N * dtype_bytes(dtype) / part && !*says; i++)
                if (memcmp((char *)got + i * part, (char *)want + i * part, part))
                    snprintf(says, sizeof says, "%s: part %zu differs from the evaluator's", host_name(l), i);
        }
    }
    verdict(!*says, name, says);
}

static void test_bits(uint64_t *seed) {
    static const uint16_t f64[] = {
        HLO_EXPONENTIAL, HLO_EXPONENTIAL_MINUS_ONE, HLO_LOG, HLO_LOG_PLUS_ONE, HLO_LOGISTIC, HLO_CBRT, HLO_RSQRT,
        HLO_TANH, HLO_SINE, HLO_COSINE, HLO_TAN, HLO_POWER, HLO_ATAN2, HLO_CHLO_ERF, HLO_CHLO_ERF_INV};
    static const uint16_t both[] = {HLO_CHLO_SINH, HLO_CHLO_COSH, HLO_CHLO_ASINH, HLO_CHLO_ACOSH, HLO_CHLO_ATANH,
                                    HLO_CHLO_ASIN, HLO_CHLO_ACOS, HLO_CHLO_ATAN, HLO_CHLO_ERFC, HLO_CHLO_LGAMMA,
                                    HLO_CHLO_DIGAMMA, HLO_CHLO_BESSEL_I1E, HLO_CHLO_ZETA, HLO_CHLO_POLYGAMMA};
    for (size_t i = 0; i < COUNT(f64); i++) {
        compare_op(seed, f64[i], DT_F64);
        compare_op(seed, f64[i], DT_C64);
        compare_op(seed, f64[i], DT_C128);
    }
    for (size_t i = 0; i < COUNT(both); i++) {
        compare_op(seed, both[i], DT_F32);
        compare_op(seed, both[i], DT_F64);
        compare_op(seed, both[i], DT_C64);
        compare_op(seed, both[i], DT_C128);
    }
}

int main(void) {
    uint64_t seed = 12345;
    test_values();
    test_edges();
    test_zeros();
    test_conjugates();
    test_bits(&seed);
    return failures != 0;
}
