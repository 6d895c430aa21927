// SPDX-License-Identifier: Apache-2.0
// verify_ew.c — elementwise ops: which element types, and that shapes and types agree.
#include <assert.h>

#include "hlo/verify.h"

// N: no quantised elements. Others take those that express one of the allowed types.
enum { P = 1, S = 2, U = 4, F = 8, C = 16, N = 32, I = S | U, ANY = P | I | F | C };

// Element types of the first operand, and what the result's are; those of OTHER a function below checks.
typedef enum Result { OTHER, SAME, REAL, BOOL, FREE } Result;

static const struct {
    uint8_t types, result;
} rules[HLO_OPCODE_COUNT] = {
#define EW(e, dialect, name, operands, types, result, ...) [HLO_##e] = {types, result},
#include "hlo/ops.def"
};

static unsigned class_of(const HloType *t) {
    static const uint8_t bits[] = {
        [DC_BOOL] = P, [DC_SINT] = S, [DC_UINT] = U, [DC_FLOAT] = F, [DC_COMPLEX] = C};
    return bits[dtype_row(verify_elem(t))->cls];
}

void verify_elem_allowed(Verify *v, int code) {
    const HloType *a = verify_in(v, 0);
    unsigned types = rules[code].types;
    if (types && (!(class_of(a) & types) || ((types & N) && verify_is_quantised(a))))
        verify_break(v, hlo_row(v->op)->dialect == HD_CHLO ? NULL : "I1", "elements of %s are not allowed", verify_type_text(v, a));
}

void verify_compare_type(Verify *v, const char *rule) {
    int64_t type = hlo_int(v->op, AK_COMPARE_TYPE, CMPT_NOTYPE);
    unsigned cls = class_of(verify_in(v, 0));
    // Floats with an integer's compare_type are let pass: old serialised programs have them, and they mean FLOAT.
    bool fits = type == CMPT_NOTYPE || (cls & F) || (type == CMPT_SIGNED && (cls & S)) ||
                (type == CMPT_UNSIGNED && (cls & (U | P))) || (type == CMPT_FLOAT && (cls & C));
    verify_that(v, fits, rule, "compare_type does not fit the element type");
}

static void check_rule(Verify *v, unsigned types, Result result) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    verify_elem_allowed(v, v->op->code);
    verify_that(v, !(types & N) || !verify_is_quantised(r), "C1", "the result must not be quantised");
    for (uint32_t i = 1; i < v->op->noperands; i++)
        verify_same_type(v, "C1", a, verify_in(v, i));
    if (result == SAME) {
        verify_same_type(v, "C1", a, r);
        return;
    }
    verify_same_shape(v, "C1", a, r);
    if (result == REAL && verify_elem(r) != verify_complex_part(verify_elem(a)))
        verify_break(v, "C2", "the result must hold %s, not %s", dtype_row(verify_complex_part(verify_elem(a)))->name,
                     dtype_row(verify_elem(r))->name);
    if (result == BOOL && r->dtype != DT_I1)
        verify_break(v, "C1", "the result must hold i1, not %s", dtype_row(r->dtype)->name);
}

static void check_compare(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    verify_same_elem(v, "C1", a, verify_in(v, 1));
    verify_same_shape(v, "C2", a, verify_in(v, 1));
    verify_same_shape(v, "C2", a, r);
    verify_that(v, r->dtype == DT_I1, "C2", "the result must hold i1");
    verify_compare_type(v, "C3");
}

// One side at least is quantised; both speak of one float type.
static void check_quantize(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    bool to = v->op->code == HLO_UNIFORM_QUANTIZE;
    verify_that(v, to ? dtype_is_float(verify_elem(a)) : verify_is_quantised(a), "I1",
                to ? "the operand must be of floats or quantised" : "the operand must be quantised");
    verify_same_shape(v, "C1", a, r);
    verify_that(v, verify_is_quantised(r) == to, "C2", to ? "the result must be quantised" : "the result must not be quantised");
    if (verify_elem(a) != verify_elem(r))
        verify_break(v, "C2", "%s and %s express different types", verify_type_text(v, a), verify_type_text(v, r));
}

static void check_select(Verify *v) {
    const HloType *p = verify_in(v, 0), *a = verify_in(v, 1);
    verify_that(v, p->dtype == DT_I1 && !verify_is_quantised(p), "I1", "the predicate must hold i1");
    if (p->rank)
        verify_same_shape(v, "C1", p, a);
    verify_same_type(v, "C2", a, verify_in(v, 2));
    verify_same_type(v, "C2", a, verify_out(v, 0));
}

static void check_clamp(Verify *v) {
    const HloType *low = verify_in(v, 0), *a = verify_in(v, 1), *high = verify_in(v, 2);
    if (low->rank)
        verify_same_shape(v, "C1", low, a);
    if (high->rank)
        verify_same_shape(v, "C2", high, a);
    verify_same_elem(v, "C3", low, a);
    verify_same_elem(v, "C3", high, a);
    verify_same_type(v, "C4", a, verify_out(v, 0));
}

static void check_complex(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    verify_that(v, (a->dtype == DT_F32 || a->dtype == DT_F64) && !verify_is_quantised(a), "I1",
                "parts of complex numbers are f32 or f64");
    verify_same_type(v, "C1", a, verify_in(v, 1));
    verify_same_shape(v, "C2", a, r);
    verify_that(v, dtype_is_complex(r->dtype) && verify_complex_part(r->dtype) == a->dtype, "C3",
                "the result must hold complex numbers of the operands' element type");
}

static void check_reduce_precision(Verify *v) {
    verify_that(v, hlo_int(v->op, AK_EXPONENT_BITS, 0) >= 1, "C2", "exponent_bits must be positive");
    verify_that(v, hlo_int(v->op, AK_MANTISSA_BITS, -1) >= 0, "C3", "mantissa_bits must not be negative");
}

// chlo has no specification of its own; its elementwise ops keep shape, and element type unless they
// ask a question.
static void check_chlo(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    if (v->op->code == HLO_CHLO_MULHI)
        verify_that(v, dtype_is_int(a->dtype), NULL, "operands must hold integers of two bits or more");
    for (uint32_t i = 1; i < v->op->noperands; i++)
        verify_same_type(v, NULL, a, verify_in(v, i));
    verify_same_shape(v, NULL, a, r);
    if (r->dtype != DT_I1)
        verify_same_elem(v, NULL, a, r);
}

bool verify_ew(Verify *v) {
    const HloOpRow *row = hlo_row(v->op);
    if (row->cls > HC_EW3)
        return false;
    switch (v->op->code) {
    case HLO_COMPARE:
        check_compare(v);
        return true;
    case HLO_SELECT:
        check_select(v);
        return true;
    case HLO_UNIFORM_QUANTIZE:
    case HLO_UNIFORM_DEQUANTIZE:
        check_quantize(v);
        return true;
    case HLO_CLAMP:
        check_clamp(v);
        return true;
    case HLO_COMPLEX:
        check_complex(v);
        return true;
    case HLO_REDUCE_PRECISION:
        check_reduce_precision(v);
        break;
    default:
        if (row->dialect == HD_CHLO) {
            check_chlo(v);
            return true;
        }
    }
    assert(rules[v->op->code].result != OTHER);
    check_rule(v, rules[v->op->code].types, rules[v->op->code].result);
    if (v->op->code == HLO_ADD)
        verify_quant_add(v);
    verify_result_accuracy(v);
    return true;
}
