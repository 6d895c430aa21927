// SPDX-License-Identifier: Apache-2.0
// functions.c — functions the engines lack, written with those they have.
// needs: values defined before use
// gives: sign is two choices; log(1 + x) and exp(x) - 1 of large tensors keep their last places around zero without GpSimd
// stale: nothing
//
// Narrow floats go through fp32. Small tensors stay: a kernel costs less there.
#include "pass/rows.h"
#include "pass/walk.h"

#define ENGINES_MIN 8192 // elements

typedef struct Functions {
    Hlo *h;
    Walk w;
    LocId loc; // of the op in hand
} Functions;

static ValueId call(Functions *f, HloOpcode code, uint32_t n, const ValueId *in, TypeId type) {
    return walk_push(&f->w, hlo_op(f->h, code, f->loc, n, in, 1, &type));
}

static ValueId unary(Functions *f, HloOpcode code, ValueId x) {
    return call(f, code, 1, &x, f->h->values.at[x].type);
}

static ValueId binary(Functions *f, HloOpcode code, ValueId x, ValueId y) {
    return call(f, code, 2, (ValueId[]){x, y}, f->h->values.at[x].type);
}

static ValueId number(Functions *f, ValueId like, float v) { // fp32
    return walk_push(&f->w, hlo_op_splat(f->h, f->loc, f->h->values.at[like].type, &v));
}

static ValueId choice(Functions *f, int64_t direction, ValueId x, ValueId y, ValueId then, ValueId otherwise) {
    const HloType *t = hlo_value_type(f->h, x);
    TypeId flags = hlo_type_tensor(f->h, DT_I1, t->rank, t->dims);
    OpId id = hlo_op(f->h, HLO_COMPARE, f->loc, 2, (ValueId[]){x, y}, 1, &flags);
    *hlo_attr_slot(f->h, id, AK_COMPARISON_DIRECTION) = (HloAttr){.kind = HA_ENUM, .i = direction};
    *hlo_attr_slot(f->h, id, AK_COMPARE_TYPE) = (HloAttr){.kind = HA_ENUM, .i = CMPT_FLOAT};
    return call(f, HLO_SELECT, 3, (ValueId[]){walk_push(&f->w, id), then, otherwise}, f->h->values.at[then].type);
}

// 1 above zero, -1 below, the element itself elsewhere, which keeps zeros and NaN.
static ValueId sign(Functions *f, ValueId x) {
    ValueId zero = number(f, x, 0);
    return choice(f, CMP_GT, x, zero, number(f, x, 1), choice(f, CMP_LT, x, zero, number(f, x, -1), x));
}

// u = 1 + x rounds, by what x / (u - 1) tells (Kahan): log(u) times that. Where nothing is lost, also at infinity, that is 1;
// where all of x is, the result is x.
static ValueId log_plus_one(Functions *f, ValueId x) {
    ValueId one = number(f, x, 1), u = binary(f, HLO_ADD, x, one), d = binary(f, HLO_SUBTRACT, u, one);
    ValueId lost = choice(f, CMP_EQ, d, x, one, binary(f, HLO_DIVIDE, x, d));
    return choice(f, CMP_EQ, d, number(f, x, 0), x, binary(f, HLO_MULTIPLY, unary(f, HLO_LOG, u), lost));
}

// With t = tanh(x / 2) it is 2t / (1 - t), which loses nothing around zero and below; far above, exp(x) - 1 does not.
static ValueId exp_minus_one(Functions *f, ValueId x) {
    ValueId one = number(f, x, 1), half = number(f, x, 0.5f);
    ValueId t = unary(f, HLO_TANH, binary(f, HLO_MULTIPLY, x, half));
    ValueId near = binary(f, HLO_DIVIDE, binary(f, HLO_ADD, t, t), binary(f, HLO_SUBTRACT, one, t));
    return choice(f, CMP_GT, x, half, binary(f, HLO_SUBTRACT, unary(f, HLO_EXPONENTIAL, x), one), near);
}

typedef struct Function {
    HloOpcode code;
    int64_t least; // elements
    bool narrow;   // of 16-bit floats as well
    ValueId (*write)(Functions *f, ValueId x);
} Function;

static const Function functions[] = {
    {HLO_SIGN, ROWS_MIN_ELEMS, false, sign},
    {HLO_LOG_PLUS_ONE, ENGINES_MIN, true, log_plus_one},
    {HLO_EXPONENTIAL_MINUS_ONE, ENGINES_MIN, true, exp_minus_one},
};

static ValueId written(Functions *f, const Function *fn, const HloOp *op) {
    Hlo *h = f->h;
    const HloType *t = hlo_value_type(h, op->results);
    bool narrow = t->dtype == DT_BF16 || t->dtype == DT_F16, plain = t->kind == HT_TENSOR && !t->dynamic && !t->text;
    if (!plain || t->elems < fn->least || (t->dtype != DT_F32 && !(narrow && fn->narrow)))
        return 0;
    ValueId x = hlo_operand(h, op, 0);
    TypeId type = h->values.at[op->results].type, wide = hlo_type_tensor(h, DT_F32, t->rank, t->dims);
    if (h->values.at[x].type != type)
        return 0;
    if (narrow)
        x = call(f, HLO_CONVERT, 1, &x, wide);
    ValueId y = fn->write(f, x);
    return narrow ? call(f, HLO_CONVERT, 1, &y, type) : y;
}

static void visit(void *pass, OpId id) {
    Functions *f = pass;
    HloOp op = *hlo_at(f->h, id);
    f->loc = op.loc;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        ValueId y = functions[i].code == op.code ? written(f, &functions[i], &op) : 0;
        if (y) {
            walk_replace(&f->w, op.results, y);
            return;
        }
    }
    walk_push(&f->w, id);
}

void pass_functions(Compile *c) {
    Functions f = {.h = c->hlo};
    walk_init(&f.w, c);
    walk_rewrite(&f.w, hlo_main(c->hlo)->body, WALK_CONTROL, visit, &f);
}
