// SPDX-License-Identifier: Apache-2.0
// num.c — decimal text to double: exact at the speed of a product where possible.
//
// Three ways, tried in this order:
//   1. up to 2^53 times a power of ten up to 10^22: both are exact doubles, one rounding;
//   2. a 128-bit product with truncated powers of ten. The true value lies in [m, m + error), so
//      the rounding is certain unless that interval touches the middle between two doubles;
//   3. whole numbers of any length, comparing the decimal with that middle.
// (After Clinger, "How to read floating point numbers accurately", and Lemire, "Number parsing at a
// gigabyte per second"; the error bound is our own and coarse, way 3 takes what it leaves.)
#include "base/num.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MANT_DIGITS 19     // digits that always fit 64 bits
#define BIG_WORDS 160      // holds 800 digits times 10^1145 with room to spare
#define BIG_DIGITS 800     // a middle between two doubles has at most 767 significant digits
#define EXP_LIMIT 100000   // explicit exponents beyond it change nothing
#define PRODUCT_ERROR 64   // of way 2, in units of the 128-bit mantissa's last place

typedef unsigned __int128 u128;

typedef struct Decimal { // the number is mant * 10^exp10, plus a bit when `cut`
    const char *first;   // first significant digit
    uint64_t mant;
    int64_t exp10;
    int64_t exp_all; // exponent behind the last written digit, for way 3
    bool cut;        // digits beyond MANT_DIGITS were left out
} Decimal;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static const char *exponent_parse(const char *p, const char *end, int64_t *exp) {
    const char *q = p + 1;
    bool neg = q < end && *q == '-';
    if (q < end && (*q == '-' || *q == '+'))
        q++;
    if (q == end || !is_digit(*q))
        return p; // the letter belongs to what follows
    int64_t v = 0;
    for (; q < end && is_digit(*q); q++)
        v = v < EXP_LIMIT ? v * 10 + (*q - '0') : v;
    *exp += neg ? -v : v;
    return q;
}

static const char *decimal_parse(const char *s, const char *end, Decimal *d) {
    *d = (Decimal){0};
    const char *p = s;
    int64_t exp_all = 0;
    int used = 0, any = 0;
    bool point = false;
    for (; p < end; p++) {
        if (is_digit(*p)) {
            any = 1;
            exp_all -= point;
            if (!d->first && *p == '0')
                continue;
            if (!d->first)
                d->first = p;
            if (used < MANT_DIGITS) {
                d->mant = d->mant * 10 + (uint64_t)(*p - '0');
                d->exp10 = exp_all;
                used++;
            } else {
                d->cut |= *p != '0';
                d->exp10 += !point; // a digit left out in front of the point still counts
            }
        } else if (*p == '.' && !point) {
            point = true;
        } else {
            break;
        }
    }
    if (!any)
        return s;
    int64_t exp = 0;
    if (p < end && (*p == 'e' || *p == 'E'))
        p = exponent_parse(p, end, &exp);
    d->exp10 += exp;
    d->exp_all = exp_all + exp;
    return p;
}

// --- way 2 ---------------------------------------------------------------------------------------

typedef struct Power {
    uint64_t hi, lo;
    int exp; // value = (hi:lo) * 2^exp, truncated
} Power;

// 10^(2^k), then 10^-(2^k).
static const Power powers[2][9] = {
    {
        {0xa000000000000000, 0x0000000000000000, -124},
        {0xc800000000000000, 0x0000000000000000, -121},
        {0x9c40000000000000, 0x0000000000000000, -114},
        {0xbebc200000000000, 0x0000000000000000, -101},
        {0x8e1bc9bf04000000, 0x0000000000000000, -74},
        {0x9dc5ada82b70b59d, 0xf020000000000000, -21},
        {0xc2781f49ffcfa6d5, 0x3cbf6b71c76b25fb, 85},
        {0x93ba47c980e98cdf, 0xc66f336c36b10137, 298},
        {0xaa7eebfb9df9de8d, 0xddbb901b98feeab7, 723},
    },
    {
        {0xcccccccccccccccc, 0xcccccccccccccccc, -131},
        {0xa3d70a3d70a3d70a, 0x3d70a3d70a3d70a3, -134},
        {0xd1b71758e219652b, 0xd3c36113404ea4a8, -141},
        {0xabcc77118461cefc, 0xfdc20d2b36ba7c3d, -154},
        {0xe69594bec44de15b, 0x4c2ebe687989a9b3, -181},
        {0xcfb11ead453994ba, 0x67de18eda5814af2, -234},
        {0xa87fea27a539e9a5, 0x3f2398d747b36224, -340},
        {0xddd0467c64bce4a0, 0xac7cb3f6d05ddbde, -553},
        {0xc0314325637a1939, 0xfa911155fefb5308, -978},
    },
};

static u128 mul_high(u128 a, uint64_t hi, uint64_t lo) {
    uint64_t ah = (uint64_t)(a >> 64), al = (uint64_t)a;
    u128 low = ((u128)al * lo) >> 64;
    u128 m1 = (u128)ah * lo, m2 = (u128)al * hi;
    u128 mid = low + (uint64_t)m1 + (uint64_t)m2;
    return (u128)ah * hi + (m1 >> 64) + (m2 >> 64) + (mid >> 64);
}

// mant * 10^exp10 = *m * 2^result with *m in [2^127, 2^128), truncated.
static int product_make(uint64_t mant, int64_t exp10, u128 *m) {
    int shift = 64 + __builtin_clzll(mant);
    u128 v = (u128)mant << shift;
    int exp = -shift;
    const Power *row = powers[exp10 < 0];
    uint64_t bits = (uint64_t)(exp10 < 0 ? -exp10 : exp10);
    for (int k = 0; bits; k++, bits >>= 1) {
        if (!(bits & 1))
            continue;
        v = mul_high(v, row[k].hi, row[k].lo);
        exp += row[k].exp + 128;
        if (!(v >> 127))
            v <<= 1, exp--;
    }
    *m = v;
    return exp;
}

// --- way 3 ---------------------------------------------------------------------------------------

typedef struct Big {
    uint32_t w[BIG_WORDS];
    int n;
} Big;

static void big_mul_add(Big *b, uint32_t mul, uint32_t add) {
    uint64_t carry = add;
    for (int i = 0; i < b->n; i++) {
        carry += (uint64_t)b->w[i] * mul;
        b->w[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        b->w[b->n++] = (uint32_t)carry;
}

static void big_pow10(Big *b, int64_t e) {
    for (; e >= 9; e -= 9)
        big_mul_add(b, 1000000000, 0);
    for (; e > 0; e--)
        big_mul_add(b, 10, 0);
}

static void big_shift(Big *b, int64_t bits) {
    int words = (int)(bits / 32);
    memmove(b->w + words, b->w, (size_t)b->n * sizeof *b->w);
    memset(b->w, 0, (size_t)words * sizeof *b->w);
    b->n += words;
    big_mul_add(b, 1u << (bits % 32), 0);
}

static int big_compare(const Big *a, const Big *b) {
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n; i-- > 0;)
        if (a->w[i] != b->w[i])
            return a->w[i] < b->w[i] ? -1 : 1;
    return 0;
}

// The written decimal against (2q + 1) * 2^(k - 1): negative, zero or positive.
static int compare_middle(const Decimal *d, const char *end, uint64_t q, int k) {
    Big a = {.n = 0}, b = {.n = 0};
    int used = 0, left = 0;
    bool more = false;
    for (const char *p = d->first; p < end && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.')
            continue;
        if (used++ < BIG_DIGITS)
            big_mul_add(&a, 10, (uint32_t)(*p - '0'));
        else
            left++, more |= *p != '0';
    }
    uint64_t odd = 2 * q + 1;
    big_mul_add(&b, 1, (uint32_t)odd);
    if (odd >> 32)
        b.w[1] = (uint32_t)(odd >> 32), b.n = 2;
    int64_t exp10 = d->exp_all + left, exp2 = k - 1;
    big_pow10(exp10 >= 0 ? &a : &b, exp10 >= 0 ? exp10 : -exp10);
    big_shift(exp2 >= 0 ? &b : &a, exp2 >= 0 ? exp2 : -exp2);
    int order = big_compare(&a, &b);
    return order ? order : more;
}

// --- all three -----------------------------------------------------------------------------------

static double decimal_round(const Decimal *d, const char *end) {
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (!d->mant)
        return 0;
    if (!d->cut && d->mant >> 53 == 0 && d->exp10 >= -22 && d->exp10 <= 22)
        return d->exp10 < 0 ? (double)d->mant / exact[-d->exp10]
                            : (double)d->mant * exact[d->exp10];
    if (d->exp10 > 310)
        return INFINITY;
    if (d->exp10 < -400)
        return 0;
    u128 m;
    int exp = product_make(d->mant, d->exp10, &m);
    int top = exp + 127; // the value is in [2^top, 2^(top + 1))
    if (top > 1024)
        return INFINITY;
    int shift = 75 + (top < -1022 ? -1022 - top : 0); // keep 53 bits, fewer when subnormal
    if (shift > 128)
        return 0;
    uint64_t q = shift == 128 ? 0 : (uint64_t)(m >> shift);
    u128 half = (u128)1 << (shift - 1), low = m & (half | (half - 1));
    u128 error = PRODUCT_ERROR + (d->cut ? (u128)1 << 69 : 0);
    bool up;
    if (low > half)
        up = true;
    else if (low + error < half)
        up = false;
    else {
        int order = compare_middle(d, end, q, exp + shift);
        up = order > 0 || (order == 0 && (q & 1));
    }
    return ldexp((double)(q + up), exp + shift);
}

const char *num_parse_f64(const char *s, const char *end, double *out) {
    const char *p = s;
    bool neg = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    Decimal d;
    const char *after = decimal_parse(p, end, &d);
    if (after == p)
        return s;
    double v = decimal_round(&d, after);
    *out = neg ? -v : v;
    return after;
}

int num_print_f64(char out[NUM_TEXT_BYTES], double v, int digits) {
    char raw[64];
    snprintf(raw, sizeof raw, "%.*e", digits - 1, v);
    // The locale may put other bytes where the point belongs: between first digit and fraction.
    int n = 0;
    const char *p = raw;
    if (*p == '-')
        out[n++] = *p++;
    out[n++] = *p++;
    while (*p && !is_digit(*p) && *p != 'e')
        p++;
    out[n++] = '.';
    if (*p == 'e')
        out[n++] = '0';
    while (*p && n < NUM_TEXT_BYTES - 1)
        out[n++] = *p++;
    out[n] = 0;
    return n;
}

int num_print_exact(char out[NUM_TEXT_BYTES], double v) {
    static const int digits[] = {7, 16, 17};
    int n = 0;
    for (int i = 0; i < 3; i++) {
        double back;
        n = num_print_f64(out, v, digits[i]);
        num_parse_f64(out, out + n, &back);
        if (back == v)
            break;
    }
    return n;
}
