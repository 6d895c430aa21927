// SPDX-License-Identifier: Apache-2.0
// elem_complex.c — elementary functions of complex f64, each component within 3 ulp.
//
// Formulas are chosen so that sums have terms of one sign or are exact, and are computed in twice the
// precision (elem_dd.h): what is left is little more than the last rounding. Special cases follow
// Annex G of C, except exp(+-inf + i y) for y without a direction, which is NaN.
#include "base/elem.h"

#include "base/elem_body.h"

typedef double complex Z;

#define IS_FINITE(x) (e_abs(x) < INFINITY)
#define IS_INF(x) (e_abs(x) == INFINITY)
#define IS_NAN(x) ((x) != (x))

static Z z_of(double re, double im) { return CMPLX(e_result(re), e_result(im)); }
static Z z_times_i(Z z) { return CMPLX(-cimag(z), creal(z)); }
static Z z_over_i(Z z) { return CMPLX(cimag(z), -creal(z)); }

typedef struct Circle {
    Dd s, c;
} Circle;
// Sine and cosine of h + l.
static Circle circle(double h, double l) {
    if (h == 0)
        return (Circle){{h, 0}, {1, 0}};
    Turn t = e_turn_any(h);
    t.r = dd_add1(t.r, l);
    return (Circle){e_turn_sin(t), e_turn_cos(t)};
}
// The same two, and e^x, by their series in twice the precision throughout: slow, for the places where a sum of them cancels.
// sum of term, term * z / d(k), …; d(k) = k (k + 1) for a circle, k for e^x.
static Dd series(Dd term, Dd z, int first, bool circle) {
    Dd sum = term;
    for (int k = first; k < 30; k += 1 + circle) {
        term = dd_div(dd_mul(term, z), (Dd){circle ? k * (k + 1) : k, 0});
        sum = dd_add(sum, term);
    }
    return sum;
}
static Circle circle_fine(double x) {
    Turn t = e_turn_any(x);
    Dd z = dd_neg(dd_mul(t.r, t.r)), s = series(t.r, z, 2, true), c = series((Dd){1, 0}, z, 1, true);
    Circle a = t.q & 1 ? (Circle){c, dd_neg(s)} : (Circle){s, c};
    return t.q & 2 ? (Circle){dd_neg(a.s), dd_neg(a.c)} : a;
}
static Dd expm1_fine(double x) { // |x| < 60
    double n = (x * E_LOG2E + E_ROUND) - E_ROUND, s = e_of((uint64_t)(1023 + (int)n) << 52);
    Dd r = dd_add1(dd_prod(-n, E_LN2_L), x - n * E_LN2_H);
    Dd less = series(r, r, 2, false);
    return n == 0 ? less : dd_add1(dd_scale(less, s), s - 1);
}

// a b 2^(v - 2048), where b may be as small as a double can be.
static double scaled_product(Dd a, Dd b, uint64_t v) {
    bool tiny = e_abs(b.h) < 0x1p-500;
    b = dd_scale(b, tiny ? 0x1p600 : 1);
    v = tiny ? v - 600 : v;
    return e_scale(dd_mul(a, b).h, v < 4090 ? v : 4090);
}
// e^(h + l) also far beyond the largest double: a small factor may bring it back.
static ExpParts exp_wide(double h, double l) {
    bool far = h > 700, end = h > 1460 || h < -800;
    h = e_clamp(h, -800, 1460);
    Dd x = dd_sum(h, far ? -1024 * E_LN2_H : 0);
    ExpParts e = e_exp_parts(x.h, x.l + (end ? 0 : l) - (far ? 1024 * E_LN2_L : 0));
    e.v += far ? 1024 : 0;
    return e;
}

// --- products and quotients --------------------------------------------------------------------

// C's product and quotient repair infinities; the plain product does not, as in XLA. The quotient is
// scaled so that it neither overflows nor underflows early (after Smith).
Z elem_c_mul(Z a, Z b) {
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b),
                 creal(a) * cimag(b) + cimag(a) * creal(b));
}
Z elem_c_div(Z a, Z b) {
    double c = creal(b), d = cimag(b);
    if (e_abs(c) < e_abs(d)) {
        double r = c / d, den = c * r + d;
        return CMPLX((creal(a) * r + cimag(a)) / den, (cimag(a) * r - creal(a)) / den);
    }
    if (c == 0 && d == 0)
        return CMPLX(creal(a) / c, cimag(a) / c);
    double r = d / c, den = c + d * r;
    return CMPLX((creal(a) + cimag(a) * r) / den, (cimag(a) - creal(a) * r) / den);
}
// (x - y)(x + y) + 2xy i: no inf - inf, and no cancellation of squares.
Z elem_c_square(Z z) {
    double x = creal(z), y = cimag(z);
    bool diagonal = e_abs(x) == e_abs(y) && IS_FINITE(x); // x + y may overflow against x - y = 0
    return z_of(diagonal ? 0 : (x - y) * (x + y), 2 * (x * y));
}
Z elem_c_sign(Z z) {
    double x = creal(z), y = cimag(z), unit;
    if (IS_NAN(x) || IS_NAN(y) || IS_INF(x) || IS_INF(y))
        return z_of(NAN, NAN);
    if (x == 0 && y == 0)
        return z;
    if (e_abs(x) > 0x1p1000 || e_abs(y) > 0x1p1000) // where the modulus could overflow
        x *= 0x1p-30, y *= 0x1p-30;
    else if (e_abs(x) < 0x1p-400 && e_abs(y) < 0x1p-400)
        x *= 0x1p600, y *= 0x1p600;
    Dd m = e_hypot_dd(x, y, &unit);
    double h = m.h * unit, re = x / h, im = y / h;
    return CMPLX(re - re * (m.l / m.h), im - im * (m.l / m.h));
}

// --- exponentials ------------------------------------------------------------------------------

Z elem_c_exp(Z z) {
    double x = creal(z), y = cimag(z);
    if (y == 0)
        return CMPLX(elem_exp(x), y);
    if (!IS_FINITE(y))
        return z_of(NAN, NAN);
    ExpParts e = exp_wide(x, 0);
    Circle a = circle(y, 0);
    return z_of(scaled_product(e_exp_sum(e), a.c, e.v), scaled_product(e_exp_sum(e), a.s, e.v));
}
// (e^x - 1) + (cos y - 1) e^x, cos y - 1 = -2 sin^2(y/2)
Z elem_c_expm1(Z z) {
    double x = creal(z), y = cimag(z);
    if (y == 0)
        return CMPLX(elem_expm1(x), y);
    if (!IS_FINITE(y) || !(x < 40) || x < -40) { // the 1 is lost, or is all there is
        Z e = elem_c_exp(z);
        return z_of(creal(e) - 1, cimag(e));
    }
    ExpParts e = e_exp_parts(x, 0);
    double s = e_of((e.v - 2048 + 1023) << 52);
    Dd t = dd_sum(s - 1, s * e.r), grow = dd_quick(t.h, t.l + s * e.p);
    Dd up = dd_scale(e_exp_sum(e), s), half = circle(0.5 * y, 0).s;
    Circle a = circle(y, 0);
    Dd re = dd_mul(up, a.c);
    if (e_abs(grow.h) < 1) { // the 1 is taken away before the sum
        re = dd_add(grow, dd_mul(dd_scale(dd_mul(half, half), -2), up));
        if (e_abs(re.h) < 0.25 * e_abs(grow.h)) {
            grow = expm1_fine(x), half = circle_fine(0.5 * y).s;
            re = dd_add(grow, dd_mul(dd_scale(dd_mul(half, half), -2), dd_add1(grow, 1)));
        }
    } else {
        re = dd_add1(re, -1);
        if (e_abs(re.h) < 0.25)
            re = dd_add1(dd_mul(dd_add1(expm1_fine(x), 1), circle_fine(y).c), -1);
    }
    return z_of(re.h, scaled_product(up, a.s, 2048));
}

// 1 / (1 + e^-z) over cos(y/2), so that the pole's neighbourhood does not cancel.
Z elem_c_logistic(Z z) {
    double x = creal(z), y = cimag(z);
    if (y == 0)
        return CMPLX(elem_logistic(x), y);
    if (!IS_FINITE(y) || IS_NAN(x))
        return z_of(NAN, NAN);
    if (x < -60)
        return elem_c_exp(z);
    ExpParts e = e_exp_parts(-e_clamp(e_abs(x), 0, 790), 0);
    Dd big = e_exp_sum(e), less; // e^-|x|, and that minus 1
    if (e.v < 2048 - 60) {
        big = (Dd){e_scale(big.h, e.v), 0};
        less = dd_sum(-1, big.h);
    } else {
        double s = e_of((e.v - 2048 + 1023) << 52);
        Dd t = dd_sum(s - 1, s * e.r);
        big = dd_scale(big, s), less = dd_quick(t.h, t.l + s * e.p);
    }
    Circle half = circle(0.5 * y, 0), whole = circle(y, 0);
    Dd c2 = dd_scale(dd_mul(half.c, half.c), 2), ec2 = dd_mul(big, c2);
    Dd den = dd_add(dd_mul(less, less), dd_scale(ec2, 2));
    bool pole = whole.c.h < -0.9; // 1 + cos y cancels: take 2 cos^2(y/2)
    Dd with_one = pole ? dd_add(dd_neg(less), ec2) : dd_add1(dd_mul(big, whole.c), 1);
    Dd sum = pole ? dd_add(c2, less) : dd_add(whole.c, big); // e^x + cos y
    if (x < 0 && pole && e_abs(sum.h) < 0.25 * c2.h) {
        Dd c = circle_fine(0.5 * y).c;
        sum = dd_add(dd_scale(dd_mul(c, c), 2), expm1_fine(x));
    } else if (x < 0 && !pole && e_abs(sum.h) < 0.25 * big.h) {
        sum = dd_add(circle_fine(y).c, dd_add1(expm1_fine(x), 1));
    }
    Dd re = x < 0 ? dd_mul(big, sum) : with_one;
    return z_of(dd_div(re, den).h, dd_div(dd_mul(big, whole.s), den).h);
}

// --- logarithms --------------------------------------------------------------------------------

// x^2 + y^2 - 1 where that is small, from exact products. x >= y >= 0.
static Dd square_less_one(double x, double y) {
    Dd a = dd_prod(x, x), b = dd_prod(y, y);
    Dd s = dd_sum(a.h, -1), t = dd_sum(s.h, b.h), low = dd_sum(a.l, b.l);
    Dd u = dd_sum(t.h, low.h);
    return dd_sum(u.h, u.l + (t.l + (low.l + s.l)));
}
// log of the modulus and the angle, to about 2^-58. z finite and not zero.
static Dd log_modulus(double x, double y) {
    double a = e_abs(x), b = e_abs(y), big = a > b ? a : b, small = a > b ? b : a;
    double down = big > 0x1p490 ? 0x1p-600 : big < 0x1p-400 ? 0x1p600 : 1.0;
    double turns = big > 0x1p490 ? 600 : big < 0x1p-400 ? -600 : 0;
    big *= down, small *= down;
    Dd sq = dd_add(dd_prod(big, big), dd_prod(small, small)), l;
    if (sq.h > 0.75 && sq.h < 1.4 && turns == 0)
        return dd_scale(e_log_near(square_less_one(big, small)), 0.5);
    l = dd_scale(e_log_dd(sq), 0.5);
    return dd_add(l, dd_sum(turns * E_LN2_H, turns * E_LN2_L));
}
static Dd angle(double y, double x) {
    Dd t = e_atan2_dd(y, x);
    return e_neg(y) ? dd_neg(t) : t;
}
Z elem_c_log(Z z) {
    double x = creal(z), y = cimag(z);
    if (IS_INF(x) || IS_INF(y))
        return z_of(INFINITY, e_atan2(y, x));
    if (IS_NAN(x) || IS_NAN(y))
        return z_of(NAN, NAN);
    if (x == 0 && y == 0)
        return CMPLX(-INFINITY, e_atan2(y, x));
    return z_of(log_modulus(x, y).h, e_atan2(y, x));
}
// Half the log of 1 + f, f = 2x + x^2 + y^2 summed with all its rounding errors where it is small.
Z elem_c_log1p(Z z) {
    double x = creal(z), y = cimag(z), one = 1 + x;
    if (!IS_FINITE(x) || !IS_FINITE(y) || e_abs(x) > 0x1p60 || e_abs(y) > 0x1p60)
        return elem_c_log(CMPLX(one, y));
    if (x == -1 && y == 0)
        return CMPLX(-INFINITY, e_atan2(y, 0));
    Dd xx = dd_prod(x, x), yy = dd_prod(y, y);
    Dd s = dd_sum(2 * x, yy.h), t = dd_sum(s.h, xx.h), low = dd_sum(s.l, t.l), u = dd_sum(xx.l, yy.l);
    low = dd_add(low, u);
    Dd f = dd_add1(low, t.h), l;
    if (f.h > -0.25 && f.h < 0.4) {
        l = e_abs(f.h) < 0x1p-60 ? f : e_log_near(f);
    } else {
        Dd w = dd_sum(1, x);
        l = e_abs(y) < 0x1p-400 && e_abs(w.h) < 0x1p-400 ? (Dd){2 * log_modulus(w.h, y).h, 0}
                                                         : e_log_dd(dd_add(dd_mul(w, w), yy));
    }
    double im = y == 0 || IS_FINITE(y) ? e_atan2(y, one) : NAN;
    return z_of(0.5 * l.h, im);
}

// --- powers ------------------------------------------------------------------------------------

// e^(re + i im) for sums of two doubles.
static Z exp_of(Dd re, Dd im) {
    ExpParts e = exp_wide(re.h, re.l);
    Circle a = circle(im.h, im.l);
    return z_of(scaled_product(e_exp_sum(e), a.c, e.v), scaled_product(e_exp_sum(e), a.s, e.v));
}
Z elem_c_pow(Z a, Z b) {
    double x = creal(a), y = cimag(a), p = creal(b), q = cimag(b);
    if (p == 0 && q == 0)
        return 1;
    if (x == 0 && y == 0)
        return p > 0 ? 0 : z_of(NAN, NAN);
    if (!IS_FINITE(x) || !IS_FINITE(y) || !(e_abs(p) < 0x1p500) || !(e_abs(q) < 0x1p500))
        return elem_c_exp(elem_c_mul(b, elem_c_log(a)));
    Dd l = log_modulus(x, y), t = angle(y, x);
    Dd re = dd_add(dd_mul1(l, p), dd_neg(dd_mul1(t, q)));
    return exp_of(re, dd_add(dd_mul1(t, p), dd_mul1(l, q)));
}
Z elem_c_cbrt(Z z) {
    double x = creal(z), y = cimag(z);
    if (x == 0 && y == 0)
        return z;
    if (!IS_FINITE(x) || !IS_FINITE(y))
        return elem_c_exp(elem_c_mul(1.0 / 3, elem_c_log(z)));
    if (x > 0 && e_abs(y) < 0x1p-60 * x) { // the angle y / x may be smaller than any double
        double re = elem_cbrt(x);
        return CMPLX(re, re / x * y * E_THIRD_H);
    }
    Dd third = {E_THIRD_H, E_THIRD_L};
    return exp_of(dd_mul(log_modulus(x, y), third), dd_mul(angle(y, x), third));
}

typedef struct Root { // of z 4^-shift: |x| + i |y| has the root t + i |y| / (2 t)
    double x, y, up;  // the scaled parts; up = 2^shift
    Dd h, t;          // modulus and t of the scaled number
} Root;
static Root root_of(double x, double y) {
    double a = e_abs(x), b = e_abs(y), big = a > b ? a : b, unit;
    double down = big > 0x1p490 ? 0x1p-600 : big < 0x1p-400 ? 0x1p600 : 1.0;
    Root r = {a * down, b * down, big > 0x1p490 ? 0x1p300 : big < 0x1p-400 ? 0x1p-300 : 1.0, {0, 0}, {0, 0}};
    r.h = e_hypot_dd(r.x, r.y, &unit);
    r.h = dd_scale(r.h, unit);
    r.t = dd_sqrt(dd_scale(dd_add1(r.h, r.x), 0.5));
    return r;
}
Z elem_c_sqrt(Z z) {
    double x = creal(z), y = cimag(z);
    if (IS_INF(y))
        return z_of(INFINITY, y);
    if (IS_INF(x)) {
        double other = IS_NAN(y) ? NAN : 0;
        return x > 0 ? z_of(INFINITY, e_sign(other, y)) : z_of(other, e_sign(INFINITY, y));
    }
    if (IS_NAN(x) || IS_NAN(y))
        return z_of(NAN, NAN);
    if (x == 0 && y == 0)
        return CMPLX(0, y);
    Root r = root_of(x, y);
    double t = r.t.h * r.up, u = e_abs(y) / (2 * t);
    u -= u * (r.t.l / r.t.h);
    return x < 0 ? CMPLX(u, e_sign(t, y)) : CMPLX(t, e_sign(u, y));
}
// conj(sqrt(z)) / |z|
Z elem_c_rsqrt(Z z) {
    double x = creal(z), y = cimag(z);
    if (IS_INF(x) || IS_INF(y))
        return IS_NAN(x) || IS_NAN(y) ? z_of(NAN, NAN) : CMPLX(0, e_sign(0, -y));
    if (IS_NAN(x) || IS_NAN(y))
        return z_of(NAN, NAN);
    if (x == 0 && y == 0)
        return z_of(INFINITY, NAN);
    Root r = root_of(x, y);
    double t = dd_div(r.t, r.h).h * (1 / r.up);
    Dd u = dd_div(dd_div((Dd){r.y, 0}, r.h), dd_scale(r.t, 2));
    double v = u.h * (1 / r.up);
    return x < 0 ? CMPLX(v, e_sign(t, -y)) : CMPLX(t, e_sign(v, -y));
}

// --- circular and hyperbolic functions ---------------------------------------------------------

typedef struct Hyper { // sinh and cosh of x, times 2^(v - 2048)
    Dd s, c;
    uint64_t v;
} Hyper;
static Hyper hyper(double x) {
    double a = e_abs(x);
    ExpParts e = exp_wide(a, 0);
    Dd up = e_exp_sum(e), s, c;
    if (a > 40) {
        s = c = up;
        e.v -= 1;
    } else {
        up = dd_scale(up, e_of((e.v - 2048 + 1022) << 52));
        Dd down = dd_div((Dd){0.25, 0}, up);
        c = dd_add(up, down), s = dd_add(up, dd_neg(down));
        if (a < 0.5)
            s = dd_quick(a, a * (a * a) * e_poly(ELEM_SINH, a * a));
        e.v = 2048;
    }
    return (Hyper){e_neg(x) ? dd_neg(s) : s, c, e.v};
}
Z elem_c_sinh(Z z) {
    double x = creal(z), y = cimag(z);
    if (!IS_FINITE(y))
        return z_of(x == 0 || IS_INF(x) ? x : NAN, NAN);
    if (IS_NAN(x))
        return z_of(NAN, y == 0 ? y : NAN);
    Hyper h = hyper(x);
    Circle a = circle(y, 0);
    double re = x == 0 ? e_sign(0, e_neg(a.c.h) ? -x : x) : scaled_product(h.s, a.c, h.v);
    return CMPLX(re, y == 0 ? y : scaled_product(h.c, a.s, h.v));
}
Z elem_c_cosh(Z z) {
    double x = creal(z), y = cimag(z);
    if (!IS_FINITE(y))
        return z_of(IS_INF(x) ? INFINITY : NAN, x == 0 ? 0 : NAN);
    if (IS_NAN(x))
        return z_of(NAN, y == 0 ? y : NAN);
    Hyper h = hyper(x);
    Circle a = circle(y, 0);
    double im = x == 0 || y == 0 ? e_sign(0, e_neg(x) ? -a.s.h : a.s.h) : scaled_product(h.s, a.s, h.v);
    return CMPLX(scaled_product(h.c, a.c, h.v), im);
}
// (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y)
Z elem_c_tanh(Z z) {
    double x = creal(z), y = cimag(z);
    if (IS_NAN(x))
        return z_of(NAN, y == 0 ? y : NAN);
    if (!IS_FINITE(y))
        return IS_INF(x) ? CMPLX(e_sign(1, x), e_sign(0, y)) : z_of(x == 0 ? x : NAN, NAN);
    Circle a = circle(y, 0);
    Dd sc = dd_mul(a.s, a.c);
    if (e_abs(x) > 30) { // the denominator is e^(2|x|) / 4
        ExpParts e = e_exp_parts(-2 * e_clamp(e_abs(x), 0, 380), 0);
        double im = scaled_product(e_exp_sum(e), dd_scale(sc, 4), e.v);
        return CMPLX(e_sign(1, x), y == 0 ? y : im);
    }
    Hyper h = hyper(x);
    Dd den = dd_add(dd_mul(h.s, h.s), dd_mul(a.c, a.c));
    double re = x == 0 ? x : dd_div(dd_mul(h.s, h.c), den).h;
    return z_of(re, y == 0 ? y : dd_div(sc, den).h);
}
Z elem_c_sin(Z z) { return z_over_i(elem_c_sinh(z_times_i(z))); }
Z elem_c_cos(Z z) { return elem_c_cosh(z_times_i(z)); }
Z elem_c_tan(Z z) { return z_over_i(elem_c_tanh(z_times_i(z))); }

// --- their inverses ----------------------------------------------------------------------------

typedef struct Arc { // of |x| + i |y|: real parts of asin and acos, imaginary part of asin
    double asin, acos, im;
} Arc;

static double log_of_one_plus(Dd f) {
    Dd one = dd_sum(1, f.h);
    one.l += f.l;
    return f.h < 0x1p-60 ? f.h : f.h < 0.4 ? e_log_near(f).h : e_log_dd(one).h;
}
static Arc arc_thin(double x, double y) { // y below 2^-200
    if (x == 1) {
        double r = sqrt(y);
        return (Arc){E_PI_2.h, r, r};
    }
    if (x < 1)
        return (Arc){e_asin(x), e_acos(x), y / dd_sqrt(dd_mul(dd_sum(1, -x), dd_sum(1, x))).h};
    return (Arc){E_PI_2.h, y / dd_sqrt(dd_mul(dd_sum(x, -1), dd_sum(x, 1))).h, e_acosh(x)};
}
// With r and s the distances from -1 and 1 and a = (r + s) / 2: im = acosh(a), and the angles are those
// of x and sqrt(a^2 - x^2). a - 1 and a - x are sums of positive terms (after Hull, Fairgrieve, Tang).
static Arc arc_of(double x, double y) {
    if (x > 0x1p60 || y > 0x1p60) {
        Dd l = dd_add(log_modulus(x, y), (Dd){0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56});
        return (Arc){e_atan2(x, y), e_atan2(y, x), l.h};
    }
    if (y < 0x1p-200)
        return arc_thin(x, y);
    Dd xp = dd_sum(x, 1), xm = dd_sum(x, -1), yy = dd_prod(y, y);
    Dd gap = x < 1 ? dd_neg(xm) : xm; // |x - 1|
    Dd r = dd_sqrt(dd_add(dd_mul(xp, xp), yy)), s = dd_sqrt(dd_add(dd_mul(xm, xm), yy));
    Dd right = dd_div(yy, dd_add(r, xp)), far = dd_add(s, gap), near = dd_div(yy, far); // s - |x - 1|
    Dd am1 = dd_scale(dd_add(right, x < 1 ? near : far), 0.5);
    Dd amx = dd_scale(dd_add(right, x < 1 ? far : near), 0.5);
    Dd a = dd_scale(dd_add(r, s), 0.5), d = dd_sqrt(dd_mul(amx, dd_add1(a, x)));
    Dd f = dd_add(am1, dd_sqrt(dd_mul(am1, dd_add1(am1, 2))));
    return (Arc){e_atan2(x, d.h), e_atan2(d.h, x), log_of_one_plus(f)};
}

Z elem_c_acos(Z z) {
    double x = creal(z), y = cimag(z), re, im;
    if (IS_INF(x) || IS_INF(y)) {
        re = IS_INF(y) && IS_NAN(x) ? NAN : e_atan2(e_abs(y), x);
        im = INFINITY;
    } else if (IS_NAN(x) || IS_NAN(y)) {
        return z_of(x == 0 ? E_PI_2.h : NAN, NAN);
    } else if (e_abs(x) < 0x1p-60 && e_abs(y) < 0x1p-60) {
        re = E_PI_2.h, im = e_abs(y);
    } else {
        Arc a = arc_of(e_abs(x), e_abs(y));
        re = x < 0 ? E_PI.h - (a.acos - E_PI.l) : a.acos;
        im = a.im;
    }
    return z_of(re, e_sign(im, -y));
}
Z elem_c_acosh(Z z) { // i acos(z) turned to the right half
    double y = cimag(z);
    if (creal(z) == 0 && IS_NAN(y))
        return z_of(NAN, E_PI_2.h);
    Z a = elem_c_acos(z);
    if (IS_NAN(creal(z)) && y == 0)
        return z_of(NAN, NAN);
    return z_of(e_abs(cimag(a)), e_sign(creal(a), y));
}
Z elem_c_asin(Z z) {
    double x = creal(z), y = cimag(z), re, im;
    if (IS_INF(x) || IS_INF(y)) {
        re = IS_NAN(x) ? NAN : IS_NAN(y) ? NAN : e_atan2(e_abs(x), e_abs(y));
        im = INFINITY;
    } else if (IS_NAN(x) || IS_NAN(y)) {
        return z_of(x == 0 ? x : NAN, y == 0 ? y : NAN);
    } else if (e_abs(x) < 0x1p-60 && e_abs(y) < 0x1p-60) {
        return z;
    } else {
        Arc a = arc_of(e_abs(x), e_abs(y));
        re = a.asin, im = a.im;
    }
    return z_of(e_sign(re, x), e_sign(im, y));
}
Z elem_c_asinh(Z z) { return z_over_i(elem_c_asin(z_times_i(z))); }

// log1p(4x / ((1 - x)^2 + y^2)) / 4 + i atan2(2y, (1 - x)(1 + x) - y^2) / 2, for x, y >= 0
static Z arc_tanh(double x, double y) {
    if (x > 0x1p60 || y > 0x1p60) { // the real part of 1 / z
        double big = x > y ? x : y, down = big > 0x1p490 ? 0x1p-600 : 1.0, unit;
        Dd h = e_hypot_dd(x * down, y * down, &unit);
        h = dd_scale(h, unit);
        return CMPLX(dd_div((Dd){x * down, 0}, h).h / h.h * down, E_PI_2.h);
    }
    if (y < 0x1p-200 && x == 1) // y == 0: the pole
        return CMPLX(y == 0 ? INFINITY : -0.5 * (elem_log(y) - E_LN2_H), y == 0 ? 0 : E_PI_4.h);
    if (y < 0x1p-200 && x < 1)
        return CMPLX(e_atanh(x), y / dd_mul(dd_sum(1, -x), dd_sum(1, x)).h);
    Dd less = dd_sum(1, -x), more = dd_sum(1, x), yy = y < 0x1p-200 ? (Dd){0, 0} : dd_prod(y, y);
    Dd f = dd_div((Dd){4 * x, 0}, dd_add(dd_mul(less, less), yy));
    Dd w = dd_add(dd_mul(less, more), dd_neg(yy));
    return CMPLX(0.25 * log_of_one_plus(f), 0.5 * e_atan2(2 * y, w.h));
}
Z elem_c_atanh(Z z) {
    double x = creal(z), y = cimag(z);
    if (IS_INF(x) || IS_INF(y)) {
        double im = IS_INF(y) || !IS_NAN(y) ? E_PI_2.h : NAN;
        return z_of(e_sign(0, x), e_sign(im, y));
    }
    if (IS_NAN(x) || IS_NAN(y))
        return z_of(x == 0 ? x : NAN, NAN);
    if (e_abs(x) < 0x1p-60 && e_abs(y) < 0x1p-60)
        return z;
    Z a = arc_tanh(e_abs(x), e_abs(y));
    return z_of(e_sign(creal(a), x), e_sign(cimag(a), y));
}
Z elem_c_atan(Z z) { return z_over_i(elem_c_atanh(z_times_i(z))); }

Z elem_c_atan2(Z y, Z x) { // -i log((x + i y) / sqrt(x^2 + y^2))
    Z u = CMPLX(creal(x) - cimag(y), cimag(x) + creal(y));
    Z xx = elem_c_mul(x, x), yy = elem_c_mul(y, y);
    Z sum = CMPLX(creal(xx) + creal(yy), cimag(xx) + cimag(yy));
    return z_over_i(elem_c_log(elem_c_div(u, elem_c_sqrt(sum))));
}

Z elem_c_root(int64_t k, int64_t n) { // quarters are whole numbers: the angle that is left is small
    int64_t q = (8 * k + n) / (2 * n);
    Turn t = {dd_mul(dd_div((Dd){(double)(4 * k - q * n), 0}, (Dd){(double)n, 0}), E_PI_2), (uint64_t)q};
    return CMPLX(e_turn_cos(t).h, e_turn_sin(t).h);
}
