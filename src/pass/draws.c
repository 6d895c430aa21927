// SPDX-License-Identifier: Apache-2.0
// draws.c — random numbers of the engines' generator; and whether a random number is below a bound, asked of its bits.
// needs: values defined before use, splats folded
// gives: otrn.draw for rng_bit_generator with the default algorithm; comparisons of integers of up to 24 bits in the place of those of uniform
//        numbers, or draws of flags
// stale: nothing
//
// A uniform number is made of random bits b: m = b >> 9 becomes the fraction of a float from 1 to 2, less 1, or m = b >> (32 - k) is converted and scaled.
// So it is m * 2^-23 exactly, or m * 2^-k, also in a narrower type that holds k bits, and below p where m is below p * 2^23. The flag comes out of the program that makes the bits (integers, tile/rows_int.c), a byte instead of a
// float of the same chance; dropout needs nothing else of them. Draws are made by the row program that reads them, each time anew, and never seen by HBM (tile/rows.c).
#include <math.h>

#include "base/draw.h"
#include "pass/rows.h"
#include "pass/rules.h"

#define FRACTION 23 // bits
#define WHOLE 24
#define ONE_BITS 0x3f800000
#define STEPS_MAX 8 // between bits and comparison
#define DRAW_MIN 1024 // elements: fewer are a kernel's

static int digits(int dtype) { return dtype == DT_F32 ? 24 : dtype == DT_F16 ? 11 : dtype == DT_BF16 ? 8 : 0; }

static bool is_float(const Hlo *h, ValueId v, float *value) { // the same number everywhere
    double x = 0;
    bool is = digits(hlo_value_type(h, v)->dtype) && splat_f64(h, v, &x);
    *value = (float)x;
    return is;
}

static bool is_word(const Hlo *h, ValueId v, uint32_t value) {
    const HloAttr *a = splat_value(h, v);
    int dtype = a ? hlo_type(h, a->type)->dtype : DT_F32;
    return (dtype == DT_UI32 || dtype == DT_I32) && (uint32_t)dtype_to_i64(dtype, a->data) == value;
}

// The operand beside the splat; 0: the splat is not what it must be.
static ValueId beside_word(const Hlo *h, const HloOp *op, uint32_t value) {
    for (uint32_t k = 0; k < 2; k++)
        if (is_word(h, hlo_operand(h, op, k), value))
            return hlo_operand(h, op, !k);
    return 0;
}

// x of x - 1, x + -1, or of max(x, c) with c not above what x can be; 0: it is none.
static ValueId unwrap(const Hlo *h, const HloOp *op) {
    float c;
    ValueId x = hlo_operand(h, op, 0), y = op->noperands > 1 ? hlo_operand(h, op, 1) : 0;
    switch (op->code) {
    case HLO_SUBTRACT:
        return is_float(h, y, &c) && c == 1 ? x : 0;
    case HLO_ADD:
        return is_float(h, y, &c) && c == -1 ? x : 0;
    default: // HLO_MAXIMUM
        return is_float(h, y, &c) && c <= 0 ? x : is_float(h, x, &c) && c <= 0 ? y : 0;
    }
}

typedef struct Fraction { // a uniform number: m * 2^-bits
    ValueId m; // integers; 0: it is none
    int bits;
} Fraction;

// b >> (32 - bits).
static Fraction shifted(const Hlo *h, ValueId m, int bits) {
    assert(bits > 0 && bits <= WHOLE);
    const HloOp *shift = m ? hlo_def(h, m) : NULL;
    bool ok = shift && shift->code == HLO_SHIFT_RIGHT_LOGICAL && is_word(h, hlo_operand(h, shift, 1), 32 - (uint32_t)bits);
    return (Fraction){ok ? m : 0, bits};
}

static Fraction of_bits(const Hlo *h, const HloOp *cast) { // of a float from 1 to 2
    const HloOp *joined = hlo_def(h, hlo_operand(h, cast, 0));
    ValueId m = joined && joined->code == HLO_OR ? beside_word(h, joined, ONE_BITS) : 0;
    return m && hlo_value_type(h, cast->results)->elems == hlo_value_type(h, m)->elems ? shifted(h, m, FRACTION) : (Fraction){0};
}

static Fraction of_scaled(const Hlo *h, const HloOp *op) { // m, converted, times a power of two
    float scale;
    int e;
    const HloOp *cast = hlo_def(h, hlo_operand(h, op, 0));
    if (!is_float(h, hlo_operand(h, op, 1), &scale) || !cast || cast->code != HLO_CONVERT || frexpf(scale, &e) != 0.5f || e > 0 || 1 - e > WHOLE)
        return (Fraction){0};
    return shifted(h, hlo_operand(h, cast, 0), 1 - e);
}

// x of x * 1 and x + 0, as uniform numbers from 0 to 1 are made of those between others; 0: it is none. Such an x is not -0.
static ValueId unmoved(const Hlo *h, const HloOp *op) {
    float c;
    bool same = (op->code == HLO_MULTIPLY || op->code == HLO_ADD) && is_float(h, hlo_operand(h, op, 1), &c) && c == (op->code == HLO_MULTIPLY);
    return same ? hlo_operand(h, op, 0) : 0;
}

static Fraction wide_enough(Fraction f, int held) { return f.bits <= held ? f : (Fraction){0}; }

static Fraction fraction_of(const Hlo *h, ValueId v) {
    bool less = false, max = false;
    int held = digits(hlo_value_type(h, v)->dtype); // bits of the narrowest type on the way
    for (int steps = 0; steps < STEPS_MAX; steps++) {
        const HloOp *op = hlo_def(h, v);
        if (!op)
            break;
        if (!less && unmoved(h, op)) {
            v = unmoved(h, op);
            continue;
        }
        switch (op->code) {
        case HLO_RESHAPE:
        case HLO_CONVERT:
            v = hlo_operand(h, op, 0);
            held = digits(hlo_value_type(h, v)->dtype) < held ? digits(hlo_value_type(h, v)->dtype) : held;
            break;
        case HLO_MAXIMUM:
        case HLO_SUBTRACT:
        case HLO_ADD:
            if (*(op->code == HLO_MAXIMUM ? &max : &less) || (op->code == HLO_MAXIMUM && less) || !(v = unwrap(h, op)))
                return (Fraction){0};
            *(op->code == HLO_MAXIMUM ? &max : &less) = true;
            break;
        case HLO_MULTIPLY:
            return less ? (Fraction){0} : wide_enough(of_scaled(h, op), held);
        case HLO_BITCAST_CONVERT:
            return less ? wide_enough(of_bits(h, op), held) : (Fraction){0};
        default:
            return (Fraction){0};
        }
    }
    return (Fraction){0};
}

static int64_t swapped(int64_t direction) {
    return direction == CMP_LT ? CMP_GT : direction == CMP_GT ? CMP_LT : direction == CMP_LE ? CMP_GE : CMP_LE;
}

// --- draws -------------------------------------------------------------------------------------------

static ValueId put_draw(Walk *w, ValueId state, TypeId type, int64_t direction, int64_t bound) {
    assert(hlo_value_type(w->hlo, state)->dtype == DT_UI64 && hlo_value_type(w->hlo, state)->elems == 2);
    OpId made = hlo_op(w->hlo, HLO_DRAW, w->loc, 1, &state, 1, &type);
    hlo_set_int(w->hlo, made, AK_COMPARISON_DIRECTION, direction);
    hlo_set_int(w->hlo, made, AK_BOUND, bound);
    return walk_push(w, made);
}

// The state counts elements in its second word.
static ValueId draw(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    ValueId state = hlo_operand(h, op, 0);
    const HloType *s = hlo_value_type(h, state), *t = hlo_value_type(h, op->results + 1);
    if (hlo_int(op, AK_RNG_ALGORITHM, RNGALG_DEFAULT) != RNGALG_DEFAULT || s->dtype != DT_UI64 || s->elems != 2 || t->dtype != DT_UI32 ||
        t->elems < DRAW_MIN || t->elems > INT32_MAX)
        return 0;
    uint64_t step[2] = {0, (uint64_t)t->elems};
    ValueId bits = put_draw(w, state, h->values.at[op->results + 1].type, CMP_LT, 0);
    ValueId by = walk_push(w, hlo_op_constant(h, w->loc, h->values.at[state].type, step, sizeof step));
    walk_replace(w, op->results + 1, bits);
    return walk_binary(w, HLO_ADD, state, by);
}

// The state whose draws the fraction's bits are; 0: they come from elsewhere.
static ValueId drawn_from(const Hlo *h, Fraction f) {
    const HloOp *shift = f.m ? hlo_def(h, f.m) : NULL;
    OpId from = shift ? rows_draw(h, hlo_operand(h, shift, 0)) : 0;
    return from && hlo_value_type(h, hlo_at(h, from)->results)->dtype == DT_UI32 ? hlo_operand(h, hlo_at(h, from), 0) : 0;
}

// --- comparisons -------------------------------------------------------------------------------------

static ValueId compare(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    int64_t direction = hlo_int(op, AK_COMPARISON_DIRECTION, CMP_EQ);
    float p;
    bool left = is_float(h, hlo_operand(h, op, 0), &p);
    if (direction == CMP_EQ || direction == CMP_NE || (!left && !is_float(h, hlo_operand(h, op, 1), &p)) || isnan(p))
        return 0;
    Fraction f = fraction_of(h, hlo_operand(h, op, left));
    ValueId m = f.m;
    if (!m)
        return 0;
    direction = left ? swapped(direction) : direction;
    bool below = direction == CMP_LT || direction == CMP_LE, whole = direction == CMP_LT || direction == CMP_GE;
    double at = ldexp((double)p, f.bits), bound = whole ? ceil(at) : floor(at) + 1; // m < bound, or m >= bound
    bound = fmin(fmax(bound, 0), 1 << f.bits);
    assert(f.bits <= DRAW_BITS);
    ValueId state = drawn_from(h, f);
    if (state)
        return put_draw(w, state, h->values.at[op->results].type, below ? CMP_LT : CMP_GE, (int64_t)bound << (DRAW_BITS - f.bits));
    const HloType *t = hlo_value_type(h, op->results);
    m = walk_reshape(w, m, t->rank, t->dims);
    ValueId y = walk_number(w, h->values.at[m].type, bound);
    return walk_compare(w, below ? CMP_LT : CMP_GE, hlo_value_type(h, m)->dtype == DT_I32 ? CMPT_SIGNED : CMPT_UNSIGNED, m, y);
}

const Rule draws_rules[] = {
    {"uniform number compared with a bound: its bits compared", HLO_COMPARE, RULE_EXACT, compare},
    {"rng_bit_generator of the default algorithm: otrn.draw", HLO_RNG_BIT_GENERATOR, RULE_EXACT, draw},
    {0},
};
