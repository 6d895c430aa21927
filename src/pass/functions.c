// SPDX-License-Identifier: Apache-2.0
// functions.c — functions the engines lack, written with those they have.
// needs: values defined before use
// gives: sign is two choices; log(1 + x) and exp(x) - 1 of large tensors keep their last places around zero without GpSimd
// stale: nothing
//
// Narrow floats go through fp32. Small tensors stay, as a kernel costs less there, but those in the midst of a row program.
#include "pass/rows.h"
#include "pass/rules.h"

#define ENGINES_MIN 8192 // elements

static ValueId number(Walk *w, ValueId like, float v) { return walk_number(w, w->hlo->values.at[like].type, (double)v); }

static ValueId choice(Walk *w, int64_t direction, ValueId x, ValueId y, ValueId then, ValueId otherwise) {
    return walk_select(w, walk_compare(w, direction, CMPT_FLOAT, x, y), then, otherwise);
}

// 1 above zero, -1 below, the element itself elsewhere, which keeps zeros and NaN.
static ValueId sign(Walk *w, ValueId x) {
    ValueId zero = number(w, x, 0);
    return choice(w, CMP_GT, x, zero, number(w, x, 1), choice(w, CMP_LT, x, zero, number(w, x, -1), x));
}

// u = 1 + x rounds, by what x / (u - 1) tells (Kahan): log(u) times that. Where nothing is lost, also at infinity, that is 1;
// where all of x is, the result is x.
static ValueId log_plus_one(Walk *w, ValueId x) {
    ValueId one = number(w, x, 1), u = walk_binary(w, HLO_ADD, x, one), d = walk_binary(w, HLO_SUBTRACT, u, one);
    ValueId lost = choice(w, CMP_EQ, d, x, one, walk_binary(w, HLO_DIVIDE, x, d));
    return choice(w, CMP_EQ, d, number(w, x, 0), x, walk_binary(w, HLO_MULTIPLY, walk_unary(w, HLO_LOG, u), lost));
}

// With t = tanh(x / 2) it is 2t / (1 - t), which loses nothing around zero and below; far above, exp(x) - 1 does not.
static ValueId exp_minus_one(Walk *w, ValueId x) {
    ValueId one = number(w, x, 1), half = number(w, x, 0.5f);
    ValueId t = walk_unary(w, HLO_TANH, walk_binary(w, HLO_MULTIPLY, x, half));
    ValueId near = walk_binary(w, HLO_DIVIDE, walk_binary(w, HLO_ADD, t, t), walk_binary(w, HLO_SUBTRACT, one, t));
    return choice(w, CMP_GT, x, half, walk_binary(w, HLO_SUBTRACT, walk_unary(w, HLO_EXPONENTIAL, x), one), near);
}

// Of fp32 and, with `narrow`, of 16-bit floats by way of it.
static ValueId written(Walk *w, const HloOp *op, int64_t least, bool narrow, ValueId (*write)(Walk *w, ValueId x)) {
    const HloType *t = hlo_value_type(w->hlo, op->results);
    int dtype = t->dtype;
    ValueId x = hlo_operand(w->hlo, op, 0);
    bool fits = dtype == DT_F32 || (narrow && (dtype == DT_BF16 || dtype == DT_F16));
    const HloOp *def = hlo_def(w->hlo, x);
    if (t->elems < (def && hlo_is(def, OT_FLOATS) ? ROWS_MIN_ELEMS : least) || !fits || w->hlo->values.at[x].type != w->hlo->values.at[op->results].type)
        return 0;
    return walk_convert(w, write(w, walk_convert(w, x, DT_F32)), dtype);
}

static ValueId write_sign(Walk *w, const HloOp *op) { return written(w, op, ROWS_MIN_ELEMS, false, sign); }
static ValueId write_log(Walk *w, const HloOp *op) { return written(w, op, ENGINES_MIN, true, log_plus_one); }
static ValueId write_exp(Walk *w, const HloOp *op) { return written(w, op, ENGINES_MIN, true, exp_minus_one); }

const Rule functions_rules[] = {
    {"sign: two selects", HLO_SIGN, RULE_EXACT, write_sign},
    {"log(1 + x): log, and what rounding 1 + x lost", HLO_LOG_PLUS_ONE, RULE_CLOSE, write_log},
    {"exp(x) - 1: by tanh around zero", HLO_EXPONENTIAL_MINUS_ONE, RULE_CLOSE, write_exp},
    {0},
};
