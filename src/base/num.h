// SPDX-License-Identifier: Apache-2.0
// num.h — decimal text to double and back, exact and independent of the process's locale; sums with whole numbers.
#ifndef OTRN_BASE_NUM_H
#define OTRN_BASE_NUM_H

#include <stdint.h>

// Reads [+-]digits[.digits][(e|E)[+-]digits] from [s, end) and rounds once, to nearest even.
// Returns the first byte behind it, or s when no digit stands there.
const char *num_parse_f64(const char *s, const char *end, double *out);

// A finite value as d.ddde±dd with `digits` significant digits (1 to 17; 17 always reads back the
// same). Returns the length.
#define NUM_TEXT_BYTES 40
int num_print_f64(char out[NUM_TEXT_BYTES], double v, int digits);
// The shortest of 7, 16 and 17 digits that reads back the same.
int num_print_exact(char out[NUM_TEXT_BYTES], double v);

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline double max_f64(double a, double b) { return a > b ? a : b; } // the other one where a is no number
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static inline int64_t num_gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

#endif
