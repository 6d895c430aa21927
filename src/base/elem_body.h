// SPDX-License-Identifier: Apache-2.0
// elem_body.h — the elementary functions of f64, one value at a time and without branches.
//
// elem.c makes plain functions of these; chip/host/vmath_f64_body.h makes loops, which the compiler turns
// into vector code per host level. Selections are written over values that are both computed. Where a
// last addition or quotient decides the error, it is done in twice the precision (elem_dd.h).
#ifndef OTRN_BASE_ELEM_BODY_H
#define OTRN_BASE_ELEM_BODY_H

#include "base/elem_dd.h"
#include "base/elem_poly.h"

#define E_LOG2E 0x1.71547652b82fep+0
#define E_LN2_H 0x1.62e42fefa3000p-1 // 41 bits: its product with an exponent is exact
#define E_LN2_L 0x1.3de6af278ece6p-42
#define E_PI_4 ((Dd){0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55})
#define E_PI_2 ((Dd){0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54})
#define E_PI ((Dd){0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53})
#define E_THIRD_H 0x1.5555555555555p-2
#define E_THIRD_L 0x1.5555555555555p-56

// --- exponentials ------------------------------------------------------------------------------

typedef struct ExpParts { // e^x = (1 + r + p) 2^(v - 2048)
    double r, p;
    uint64_t v;
} ExpParts;

// x = h + l, |x| < 800: x = n ln2 + r, e^r = 1 + r + r^2 q(r). p carries an error of 2^-57.
ELEM_FN ExpParts e_exp_parts(double h, double l) {
    double shifted = h * E_LOG2E + E_ROUND, n = shifted - E_ROUND;
    Dd r = dd_sum(h - n * E_LN2_H, l - n * E_LN2_L);
    double p = r.h * r.h * e_poly(ELEM_EXP, r.h) + r.l * (1 + r.h);
    return (ExpParts){r.h, p, (e_bits(shifted) + 2048) & 0xfff};
}
ELEM_FN Dd e_exp_sum(ExpParts e) {
    Dd s = dd_quick(1, e.r);
    return dd_quick(s.h, s.l + e.p);
}
// y 2^(v - 2048) in two exact or once rounded steps; v - 2048 within +-1900.
ELEM_FN double e_scale(double y, uint64_t v) {
    uint64_t half = v >> 1;
    return y * e_of((half - 1) << 52) * e_of((v - half - 1) << 52);
}
ELEM_FN double e_exp(double x) {
    ExpParts e = e_exp_parts(e_clamp(x, -746, 710), 0);
    return e_scale(e_exp_sum(e).h, e.v);
}

// (2^n - 1) + 2^n r + 2^n p, all by half so that the largest n does not overflow.
ELEM_FN double e_expm1(double x) {
    ExpParts e = e_exp_parts(e_clamp(x, -40, 710), 0);
    double s = e_of((e.v - 2048 + 1022) << 52);
    Dd t = dd_sum(s - 0.5, s * e.r);
    double y = 2 * (t.h + (t.l + s * e.p));
    return e_abs(x) < 0x1p-54 ? x : y;
}

// --- logarithms --------------------------------------------------------------------------------

typedef struct LogParts { // x = m 2^k, m in [sqrt(1/2), sqrt(2))
    double m, k, lift, unit; // x lift unit = m
} LogParts;

// x positive and finite; a subnormal one is scaled first, and so is what comes with it.
ELEM_FN LogParts e_log_parts(double x) {
    bool tiny = x < 0x1p-1022;
    uint64_t bits = e_bits(tiny ? x * 0x1p54 : x), half = 0x3fe6a09e667f3bcdu; // sqrt(1/2)
    uint64_t biased = (bits - half + ((uint64_t)1 << 62)) >> 52;                // k + 1024
    double m = e_of(bits - (biased << 52) + ((uint64_t)1 << 62));
    double k = e_of(0x4330000000000000u | biased) - (0x1p52 + 1024);
    return (LogParts){m, tiny ? k - 54 : k, tiny ? 0x1p54 : 1.0,
                      0.5 * e_of((2048 - biased) << 52)};
}
// log(1 + f) = f - (f^2/2 - s (f^2/2 + R)), s = f / (2 + f), R = 2 (atanh(s)/s - 1)
ELEM_FN double e_log(double x) {
    LogParts a = e_log_parts(x);
    double f = a.m - 1, hf = 0.5 * f * f, s = f / (2 + f), z = s * s;
    double rest = 2 * z * e_poly(ELEM_LOG, z);
    double y = a.k * E_LN2_H + (f - (hf - (s * (hf + rest) + a.k * E_LN2_L)));
    y = x < INFINITY ? y : x; // +inf and NaN
    y = x == 0 ? -INFINITY : y;
    return x < 0 ? NAN : y;
}
// log(1 + f), f in [-0.3, 0.42], to 2^-64 of itself: 2s (1 + z (1/3 + z Q(z))).
ELEM_FN Dd e_log_near(Dd f) {
    Dd den = dd_sum(2, f.h);
    den.l += f.l;
    Dd s = dd_div(f, den), z = dd_mul(s, s);
    Dd u = dd_quick(E_THIRD_H, z.h * e_poly(ELEM_LOG5, z.h) + E_THIRD_L);
    Dd s2 = dd_scale(s, 2);
    return dd_add(s2, dd_mul(s2, dd_mul(z, u)));
}
// log of h + l, positive and finite.
ELEM_FN Dd e_log_dd(Dd x) {
    LogParts a = e_log_parts(x.h);
    Dd t = e_log_near(dd_sum(a.m - 1, x.l * a.lift * a.unit));
    return dd_add(dd_sum(a.k * E_LN2_H, a.k * E_LN2_L), t);
}
ELEM_FN double e_log1p(double x) {
    bool ok = (x > -1) & (x < INFINITY);
    double y = e_log_dd(dd_sum(1, ok ? x : 0)).h;
    y = e_abs(x) < 0x1p-54 ? x : y;
    y = ok ? y : x; // +inf and NaN
    y = x == -1 ? -INFINITY : y;
    return x < -1 ? NAN : y;
}

// --- powers ------------------------------------------------------------------------------------

// C's pow. A negative base takes the sign of an odd exponent and NaN for a fractional one.
ELEM_FN double e_pow(double x, double y) {
    double ax = e_abs(x), ay = e_abs(y);
    uint64_t zero = e_mask(ax == 0), inf = e_mask(ax == INFINITY), edge = zero | inf;
    Dd l = e_log_dd((Dd){e_pick(edge, 1, ax), 0});
    double yc = ay > 0x1p65 ? 0x1p65 : ay; // beyond that any base but 1 is at an end
    Dd t = dd_mul1(l, e_sign(yc, y));
    double th = e_clamp(t.h, -760, 720);
    ExpParts e = e_exp_parts(th, e_pick(e_mask(th == t.h), t.l, 0));
    double v = e_scale(e_exp_sum(e).h, e.v);
    uint64_t down = e_mask((int64_t)e_bits(y) < 0); // a negative power of 0 is inf, of inf is 0
    v = e_pick(edge, e_of(0x7ff0000000000000u & ((zero & down) | (inf & ~down))), v);
    double half = 0.5 * ay; // from 2^53 on all are even
    double whole = ay < 0x1p52 ? (ay + 0x1p52) - 0x1p52 : ay;
    double half_whole = half < 0x1p52 ? (half + 0x1p52) - 0x1p52 : half;
    uint64_t is_whole = e_mask(whole == ay), odd = is_whole & e_mask(half_whole != half);
    v = e_of(e_bits(v) ^ (e_bits(x) & odd & 0x8000000000000000u));
    v = e_pick(e_mask(x < 0) & ~inf & ~is_whole, NAN, v);
    v = e_pick(e_mask(ax == 1) & e_mask(ay == INFINITY), 1, v);
    v = e_pick(e_mask(x != x) | e_mask(y != y), NAN, v);
    return e_pick(e_mask(x == 1) | e_mask(y == 0), 1, v);
}

// A guess from a third of the bits (4 of 53 right), two Halley steps, then one step with a square
// that is exact because the guess is cut to 26 bits.
ELEM_FN double e_cbrt(double x) {
    double a = e_abs(x);
    bool tiny = a < 0x1p-1022, huge = a > 0x1p1000, edge = !(a < INFINITY) | (a == 0);
    double s = edge ? 1.0 : a * (tiny ? 0x1p54 : huge ? 0x1p-54 : 1.0);
    uint64_t third = (e_bits(s) >> 32) * 0x55555556u >> 32; // of the upper half; 682 = 1023 - 1023/3
    double y = e_of((third + 0x2a9f8000u) << 32), c = y * y * y;
    y = y * ((c + 2 * s) / (2 * c + s));
    c = y * y * y;
    y = y * ((c + 2 * s) / (2 * c + s));
    y = e_of(e_bits(y) & 0xfffffffff8000000u);
    double r = s / (y * y);
    y = y + y * ((r - y) / (2 * y + r));
    y = y * (tiny ? 0x1p-18 : huge ? 0x1p18 : 1.0);
    return edge ? x + x : e_sign(y, x);
}

// 1 / (1 + t), or t / (1 + t) for a negative x, t = e^-|x|.
ELEM_FN double e_logistic(double x) {
    double a = e_abs(x);
    ExpParts e = e_exp_parts(-(a > 746 ? 746 : a), 0);
    Dd t = e_exp_sum(e);
    double tail = e_scale(t.h, e.v);
    t.h = tail, t.l = e_scale(t.l, e.v);
    Dd den = dd_quick(1, t.h);
    den.l += t.l;
    uint64_t left = e_mask(x < 0);
    double y = dd_div(dd_pick(left, t, (Dd){1, 0}), den).h;
    return e_pick(left & e_mask(tail < 0x1p-60), tail, y); // far out products would underflow
}

// --- sine, cosine, tangent ---------------------------------------------------------------------

typedef struct Turn { // x = q pi/2 + r
    Dd r;
    uint64_t q; // low two bits
} Turn;

// Up to here q has 20 bits, and products with the first three parts of pi/2, 33 bits each, are exact.
#define E_TURN_MAX 0x1p20
ELEM_FN Turn e_turn_small(double x) {
    double shifted = x * 0x1.45f306dc9c883p-1 + E_ROUND, q = shifted - E_ROUND;
    Dd r = dd_sum(x - q * 0x1.921fb544p+0, -(q * 0x1.0b4611a6p-34));
    Dd t = dd_sum(r.h, -(q * 0x1.3198a2ep-69));
    r = dd_quick(t.h, t.l + (r.l - q * 0x1.b839a252049c1p-104));
    return (Turn){r, e_bits(shifted)};
}
// Any x: its 53 bits times the 192 bits of 2/pi that matter (after Payne and Hanek).
static inline __attribute__((unused)) Turn e_turn_any(double x) {
    uint64_t u = e_bits(x) & 0x7fffffffffffffffu;
    if (u >= 0x7ff0000000000000u)
        return (Turn){{NAN, NAN}, 0};
    if (u < 0x4130000000000000u) // below 2^20
        return e_turn_small(x);
    uint64_t man = (u & 0xfffffffffffffu) | 0x10000000000000u, w[4];
    int expo = (int)(u >> 52) - 1075; // |x| = man 2^expo, expo >= -32
    int first = expo - 2;             // bits of 2/pi before this one give multiples of four
    for (int i = 0; i < 3; i++) {
        int at = first + 64 * i, word = at < 0 ? -1 : at / 64, shift = at < 0 ? at + 64 : at % 64;
        uint64_t hi = word < 0 ? 0 : ELEM_TWO_OVER_PI[word], lo = ELEM_TWO_OVER_PI[word + 1];
        w[i] = shift ? hi << shift | lo >> (64 - shift) : hi;
    }
    unsigned __int128 low = (unsigned __int128)w[2] * man, mid = (unsigned __int128)w[1] * man;
    mid += low >> 64;
    uint64_t top = w[0] * man + (uint64_t)(mid >> 64); // two bits before the point
    unsigned __int128 frac = (unsigned __int128)top << 64 | (uint64_t)mid;
    uint64_t q = top >> 62;
    __int128 f = (__int128)(frac << 2) >> 2; // of one, in 2^-126, wrapped to +-1/2
    q += f < 0;
    double h = (double)f, l = (double)(f - (__int128)h);
    Dd r = dd_mul((Dd){h * 0x1p-126, l * 0x1p-126}, E_PI_2);
    return e_neg(x) ? (Turn){dd_neg(r), 0 - q} : (Turn){r, q};
}

// Of r in [-pi/4, pi/4]; the errors lie in l: 2^-57.
ELEM_FN Dd e_sin_dd(Dd r) {
    double z = r.h * r.h;
    return dd_quick(r.h, r.h * z * e_poly(ELEM_SIN, z) + r.l * (1 - 0.5 * z));
}
ELEM_FN Dd e_cos_dd(Dd r) {
    Dd z = dd_prod(r.h, r.h), c = dd_quick(1, -0.5 * z.h);
    double rest = z.h * z.h * e_poly(ELEM_COS, z.h) - (r.h * r.l + 0.5 * z.l);
    return dd_quick(c.h, c.l + rest);
}
ELEM_FN Dd e_turn_sin(Turn a) {
    Dd v = dd_select(a.q & 1, e_cos_dd(a.r), e_sin_dd(a.r));
    return dd_select(a.q & 2, dd_neg(v), v);
}
ELEM_FN Dd e_turn_cos(Turn a) { return e_turn_sin((Turn){a.r, a.q + 1}); }
ELEM_FN double e_turn_tan(Turn a) {
    Dd s = e_sin_dd(a.r), c = e_cos_dd(a.r);
    return dd_div(dd_select(a.q & 1, dd_neg(c), s), dd_select(a.q & 1, s, c)).h;
}
ELEM_FN double e_sin_of(Turn a, double x) { return e_abs(x) < 0x1p-30 ? x : e_turn_sin(a).h; }
ELEM_FN double e_cos_of(Turn a, double x) { return (void)x, e_turn_cos(a).h; }
ELEM_FN double e_tan_of(Turn a, double x) { return e_abs(x) < 0x1p-30 ? x : e_turn_tan(a); }

// --- hyperbolic functions ----------------------------------------------------------------------

// x + x^3 P below 1, t - 1/(4t) above, t = e^|x| / 2.
ELEM_FN double e_sinh(double x) {
    double a = e_abs(x), z = a * a, small = x + x * z * e_poly(ELEM_SINH, e_clamp(z, 0, 1));
    ExpParts e = e_exp_parts(e_clamp(a, 0, 712), 0);
    Dd t = e_exp_sum(e);
    double th = e_scale(t.h, e.v - 1), tl = e_scale(t.l, e.v - 1);
    double y = e_sign(th + (tl - 0.25 / th), x);
    return a < 1 ? small : x != x ? x : y;
}
ELEM_FN double e_cosh(double x) {
    double a = e_abs(x);
    ExpParts e = e_exp_parts(e_clamp(a, 0, 712), 0);
    Dd t = e_exp_sum(e);
    double th = e_scale(t.h, e.v - 1), tl = e_scale(t.l, e.v - 1);
    return th + (tl + 0.25 / th);
}
// For f32 as frameworks expand it before they serialise a program: exp(x + log 1/2) + exp(-x + log 1/2), every
// step rounded. Large arguments lose some bits; expected values have lost the same.
ELEM_FN float e_cosh_f32(float x) {
    const float half = -0x1.62e43p-1f;
    float up = x + half, down = half - x;
    return (float)e_exp(up) + (float)e_exp(down);
}
// x + x^3 P below 0.625, 1 - 2 / (e^2a + 1) above.
ELEM_FN double e_tanh(double x) {
    double a = e_abs(x), z = a * a, small = x + x * z * e_poly(ELEM_TANH, e_clamp(z, 0, 0.4));
    double big = e_sign(1 - 2 / (e_exp(2 * e_clamp(a, 0, 30)) + 1), x);
    return a < 0.625 ? e_sign(small, x) : x != x ? x : big; // x^3 P is +0 at -0
}
ELEM_FN double e_asinh(double x) {
    double a = e_abs(x), z = a * a, small = x + x * z * e_poly(ELEM_ASINH, e_clamp(z, 0, 0.25));
    bool huge = a > 0x1p60, edge = !(a < INFINITY);
    double c = edge ? 1.0 : a;
    Dd v = dd_add1(dd_prod(huge ? 1.0 : c, huge ? 1.0 : c), 1);
    Dd s = dd_add1(dd_sqrt(v), c);
    Dd l = e_log_dd(dd_select(huge, (Dd){c, 0}, s));
    l = dd_select(huge, dd_add(l, (Dd){0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}), l);
    return edge ? x : e_sign(a < 0.5 ? small : l.h, x);
}
// t = x - 1 is exact where it matters: log(1 + t + sqrt(t (t + 2))).
ELEM_FN double e_acosh(double x) {
    bool huge = x > 0x1p60, edge = !((x >= 1) & (x < INFINITY));
    double c = edge ? 1.0 : x, m = huge ? 1.0 : c;
    Dd t = dd_sum(m, -1), s = dd_sqrt(dd_mul(t, dd_add1(t, 2)));
    Dd f = dd_add(t, s), arg = dd_sum(1, f.h);
    arg.l += f.l;
    Dd l = e_log_dd(dd_select(huge, (Dd){c, 0}, arg));
    l = dd_select(huge, dd_add(l, (Dd){0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}), l);
    return x < 1 ? NAN : edge ? x : l.h;
}
// x + x^3 P below 1/2; above, half the log of the quotient, of which 1 - a is exact.
ELEM_FN double e_atanh(double x) {
    double a = e_abs(x), z = a * a, small = x + x * z * e_poly(ELEM_ATANH, e_clamp(z, 0, 0.25));
    bool in = (a >= 0.5) & (a < 1);
    double c = in ? a : 0.5;
    double big = e_sign(0.5 * e_log_dd(dd_div(dd_sum(1, c), (Dd){1 - c, 0})).h, x);
    big = a == 1 ? e_sign(INFINITY, x) : a > 1 ? NAN : big;
    return a < 0.5 ? small : x != x ? x : big;
}

// --- inverse circular functions ----------------------------------------------------------------

// asin(sqrt(z)) = s + low for z = (1 - a) / 2, a in [1/2, 1].
ELEM_FN Dd e_asin_root(double a) {
    double z = 0.5 * (1 - a);
    Dd s = dd_sqrt((Dd){z, 0});
    return dd_quick(s.h, s.l + s.h * z * e_poly(ELEM_ASIN, z));
}
ELEM_FN double e_asin(double x) {
    double a = e_abs(x), z = a * a, small = x + x * z * e_poly(ELEM_ASIN, e_clamp(z, 0, 0.25));
    Dd r = e_asin_root(e_clamp(a, 0.5, 1)), s = dd_sum(E_PI_2.h, -2 * r.h);
    double big = e_sign(s.h + (s.l + (E_PI_2.l - 2 * r.l)), x);
    return a < 0.5 ? small : a > 1 ? NAN : x != x ? x : big;
}
ELEM_FN double e_acos(double x) {
    double a = e_abs(x), z = a * a;
    Dd m = dd_sum(E_PI_2.h, -x);
    double mid = m.h + (m.l + (E_PI_2.l - x * z * e_poly(ELEM_ASIN, e_clamp(z, 0, 0.25))));
    Dd r = e_asin_root(e_clamp(a, 0.5, 1)), s = dd_sum(E_PI.h, -2 * r.h);
    double left = s.h + (s.l + (E_PI.l - 2 * r.l)), right = 2 * r.h;
    return a < 0.5 ? mid : a > 1 ? NAN : x != x ? x : x < 0 ? left : right;
}
// atan(small / big) folded at tan(pi/8), then put into its octant. Both are scaled so that products
// neither overflow nor vanish.
ELEM_FN Dd e_atan2_dd(double y, double x) {
    double ay = e_abs(y), ax = e_abs(x), big = ay > ax ? ay : ax, low = ay > ax ? ax : ay;
    uint64_t end = e_mask(big == INFINITY), both = e_mask(low == INFINITY); // both: the diagonal
    double unit = big > 0x1p900 ? 0x1p-200 : 1.0;
    unit = big < 0x1p-700 ? 0x1p200 : unit;
    low = e_pick(end, e_of(e_bits(1.0) & both), low * unit);
    big = e_pick(end | e_mask(big == 0), 1, big * unit);
    uint64_t fold = e_mask(low > 0.41421356237309503 * big);
    Dd num = dd_sum(low, e_of(e_bits(-big) & fold)), den = dd_sum(big, e_of(e_bits(low) & fold));
    Dd b = dd_div(num, den);
    double z = b.h * b.h;
    Dd r = dd_quick(b.h, b.l + b.h * z * e_poly(ELEM_ATAN, z));
    r = dd_pick(fold, dd_add(E_PI_4, r), r);
    r = dd_pick(e_mask(ay > ax), dd_add(E_PI_2, dd_neg(r)), r);
    return dd_pick(e_mask((int64_t)e_bits(x) < 0), dd_add(E_PI, dd_neg(r)), r);
}
ELEM_FN double e_atan2(double y, double x) {
    double r = e_sign(e_atan2_dd(y, x).h, y);
    return e_pick(e_mask(x != x) | e_mask(y != y), NAN, r);
}
ELEM_FN double e_atan(double x) { return e_atan2(x, 1); }

// --- error function ----------------------------------------------------------------------------

// erf(x) - x for |x| < 1.
ELEM_FN double e_erf_more(double x) {
    double z = x * x;
    return x * (0x1.06eba8214db69p-3 + z * e_poly(ELEM_ERF, z));
}
// For x >= 0.45: e^(-x^2) P(t) / (1 + 2x).
ELEM_FN double e_erfc_pos(double x) {
    x = e_clamp(x, 0.45, 28);
    double t = (x - 3.75) / (x + 3.75);
    Dd p = dd_quick(ELEM_ERFCX[0], t * e_poly_of(ELEM_ERFCX + 1, sizeof ELEM_ERFCX / 8 - 1, t));
    Dd sq = dd_prod(x, x);
    ExpParts e = e_exp_parts(-sq.h, -sq.l);
    return e_scale(dd_div(dd_mul(e_exp_sum(e), p), dd_sum(1, 2 * x)).h, e.v);
}
ELEM_FN double e_erf(double x) {
    double a = e_abs(x), small = x + e_erf_more(e_clamp(x, -1, 1));
    double big = e_sign(1 - e_erfc_pos(a), x);
    return a < 1 ? small : x != x ? x : big;
}
ELEM_FN double e_erfc(double x) {
    double a = e_abs(x), c = e_clamp(x, -1, 1);
    Dd s = dd_sum(1, -c);
    double small = s.h + (s.l - e_erf_more(c)), tail = e_erfc_pos(a);
    double y = x < 0 ? 2 - tail : tail;
    return x != x ? x : (x > -1) & (x < 0.5) ? small : y;
}
// A start of 26 bits from w = -log(1 - x^2), then one Halley step; each triples the right digits.
ELEM_FN double e_erf_inv(double x) {
    double a = e_clamp(e_abs(x), 0, 0x1.fffffffffffffp-1), w = -e_log((1 - a) * (1 + a));
    double y = w < 5 ? e_poly(ELEM_ERFINV, e_clamp(w, 0, 5)) : e_poly(ELEM_ERFINV_TAIL, sqrt(w < 5 ? 5 : w));
    y = a * y;
    double miss = a < 0.8 ? (y - a) + e_erf_more(e_clamp(y, 0, 1)) : (1 - a) - e_erfc_pos(y);
    double d = miss * 0x1.c5bf891b4ef6bp-1 * e_exp(y * y);
    y = y - d / (1 + y * d);
    y = a < 0x1p-30 ? a * 0x1.c5bf891b4ef6bp-1 : y;
    y = e_abs(x) == 1 ? INFINITY : y;
    y = e_sign(y, x);
    return e_abs(x) > 1 ? NAN : x != x ? x : y;
}

// --- roots -------------------------------------------------------------------------------------

ELEM_FN double e_rsqrt(double x) { // with the rounding of the root put back
    bool tiny = x < 0x1p-800, huge = x > 0x1p800, edge = !((x > 0) & (x < INFINITY));
    Dd s = dd_sqrt((Dd){edge ? 1.0 : tiny ? x * 0x1p400 : huge ? x * 0x1p-400 : x, 0});
    double y = 1 / s.h;
    y = y - y * (s.l / s.h);
    return edge ? 1 / sqrt(x) : tiny ? y * 0x1p200 : huge ? y * 0x1p-200 : y;
}

// sqrt(x^2 + y^2), the larger scaled to near 1; unit: what the result is to be multiplied by.
ELEM_FN Dd e_hypot_dd(double x, double y, double *unit) {
    double a = e_abs(x), b = e_abs(y), big = a > b ? a : b;
    double down = big > 0x1p500 ? 0x1p-600 : big < 0x1p-400 ? 0x1p600 : 1.0;
    *unit = big > 0x1p500 ? 0x1p600 : big < 0x1p-400 ? 0x1p-600 : 1.0;
    a *= down, b *= down;
    return dd_sqrt(dd_add(dd_prod(a, a), dd_prod(b, b)));
}
ELEM_FN double e_hypot(double x, double y) {
    double unit, h = e_hypot_dd(x, y, &unit).h * unit;
    bool inf = (e_abs(x) == INFINITY) | (e_abs(y) == INFINITY);
    return inf ? INFINITY : (x != x) | (y != y) ? NAN : h;
}

#endif
