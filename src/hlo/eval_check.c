// SPDX-License-Identifier: Apache-2.0
// eval_check.c — checks that test programs carry, and custom calls.
//
//   eq         IEEE ==, exact for integers; -0 equals +0. NaN matches NaN: an expected NaN could
//   not be
//              met otherwise
//   close      distance in units of the last place of the type, counted across zero, within
//              [min, max] (0 to 3 unless given); two NaNs are 0 apart
//   almost_eq  absolute difference, 1e-4 unless given (1e-3 as a custom call); NaN matches NaN
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "hlo/eval_in.h"
#include "hlo/tol.h"

// --- one element
// ---------------------------------------------------------------------------------------

// "got" and "want" of the first difference, for messages
static void eval_print_elem(int dtype, const void *p, char *out, size_t out_bytes) {
    double x[2];
    switch (eval_wide_kind(dtype)) {
    case WIDE_F:
        snprintf(out, out_bytes, "%.*g", dtype == DT_F64 ? 17 : 9, dtype_to_f64(dtype, p));
        return;
    case WIDE_C:
        eval_load(dtype, p, 0, 1, x);
        snprintf(out, out_bytes, "(%.17g, %.17g)", x[0], x[1]);
        return;
    default:
        if (dtype_row(dtype)->cls == DC_SINT)
            snprintf(out, out_bytes, "%" PRId64, dtype_to_i64(dtype, p));
        else
            snprintf(out, out_bytes, "%" PRIu64, (uint64_t)dtype_to_i64(dtype, p));
    }
}

static uint64_t float_ulps(int dtype, const void *a, const void *b) {
    double x = dtype_to_f64(dtype, a), y = dtype_to_f64(dtype, b);
    if (isnan(x) && isnan(y))
        return 0;
    if (!isfinite(x) || !isfinite(y))
        return x == y ? 0 : UINT64_MAX;
    uint64_t i = tol_line_position(dtype, a), j = tol_line_position(dtype, b);
    return i > j ? i - j : j - i;
}

// ULP distance as the checks count it: across zero; two NaNs 0; finite against not: UINT64_MAX
static uint64_t eval_ulps(int dtype, const void *a, const void *b) {
    if (dtype_is_float(dtype))
        return float_ulps(dtype, a, b);
    if (dtype_is_complex(dtype)) {
        int part = dtype == DT_C64 ? DT_F32 : DT_F64;
        size_t bytes = dtype_bytes(part);
        uint64_t re = float_ulps(part, a, b);
        uint64_t im = float_ulps(part, (const uint8_t *)a + bytes, (const uint8_t *)b + bytes);
        return re > im ? re : im;
    }
    return dtype_to_i64(dtype, a) == dtype_to_i64(dtype, b) ? 0 : UINT64_MAX;
}

static bool parts_within(double x, double y, double tolerance) {
    return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance;
}

typedef struct Rule {
    enum { RULE_EQ, RULE_CLOSE, RULE_ALMOST } kind;
    uint64_t min_ulps, max_ulps;
    double tolerance;
} Rule;

static bool rule_holds(const Rule *r, int dtype, const void *got, const void *want) {
    double x[2] = {0, 0}, y[2] = {0, 0};
    bool is_int = eval_wide_kind(dtype) == WIDE_I;
    if (r->kind == RULE_CLOSE) {
        uint64_t d = eval_ulps(dtype, got, want);
        return d >= r->min_ulps && d <= r->max_ulps;
    }
    if (is_int)
        return dtype_to_i64(dtype, got) == dtype_to_i64(dtype, want);
    eval_load(dtype, got, 0, 1, x);
    eval_load(dtype, want, 0, 1, y);
    int parts = dtype_is_complex(dtype) ? 2 : 1;
    if (r->kind == RULE_ALMOST)
        return parts_within(x[0], y[0], r->tolerance) &&
               (parts == 1 || parts_within(x[1], y[1], r->tolerance));
    return parts_within(x[0], y[0], 0) && (parts == 1 || parts_within(x[1], y[1], 0));
}

// --- whole tensors
// ---------------------------------------------------------------------------------------

static void print_index(const HloType *t, int64_t i, char *out, size_t out_bytes) {
    int64_t at[OTRN_MAX_RANK];
    for (int d = t->rank - 1; d >= 0; d--) {
        at[d] = i % t->dims[d];
        i /= t->dims[d];
    }
    size_t n = 0;
    out[0] = 0;
    for (int d = 0; d < t->rank && n < out_bytes; d++)
        n += (size_t)snprintf(out + n, out_bytes - n, "%s%" PRId64, d ? ", " : "", at[d]);
}

static void check(Eval *e, OpId id, Tensor got, const void *want, const Rule *rule) {
    const HloType *t = eval_type(e, got);
    size_t elem = dtype_bytes(t->dtype);
    for (int64_t i = 0; i < t->elems; i++) {
        const uint8_t *g = (const uint8_t *)got.data + (size_t)i * elem,
                      *w = (const uint8_t *)want + (size_t)i * elem;
        if (rule_holds(rule, t->dtype, g, w))
            continue;
        char index[200], a[64], b[64];
        int64_t bad = 0;
        for (int64_t j = 0; j < t->elems; j++)
            bad += !rule_holds(rule, t->dtype, (const uint8_t *)got.data + (size_t)j * elem,
                               (const uint8_t *)want + (size_t)j * elem);
        print_index(t, i, index, sizeof index);
        eval_print_elem(t->dtype, g, a, sizeof a);
        eval_print_elem(t->dtype, w, b, sizeof b);
        uint64_t ulps = eval_ulps(t->dtype, g, w);
        char far[48] = "";
        if (ulps != UINT64_MAX)
            snprintf(far, sizeof far, ", %" PRIu64 " ulp apart", ulps);
        eval_fail(e, id, OTRN_CHECK,
                  "element [%s] is %s, expected %s%s (%" PRId64 " of %" PRId64
                  " %s elements differ)",
                  index, a, b, far, bad, t->elems, dtype_row(t->dtype)->name);
    }
}

static void check_pair(Eval *e, OpId id, Tensor got, Tensor want, const Rule *rule) {
    eval_need(e, id, got.type == want.type && eval_type(e, got)->kind == HT_TENSOR,
              "the checked values must have one tensor type");
    check(e, id, got, want.data, rule);
}

// The second value: an operand, or the attribute of the _const forms.
static void check_op(Eval *e, OpId id, const Tensor *in, const Rule *rule) {
    const HloOp *op = eval_op_at(e, id);
    if (op->noperands == 2) {
        check_pair(e, id, in[0], in[1], rule);
        return;
    }
    const HloAttr *v = hlo_attr(op, AK_VALUE);
    eval_need(e, id, v && v->kind == HA_TENSOR && v->type == in[0].type,
              "value must have the operand's type");
    const HloType *t = eval_type(e, in[0]);
    eval_need(e, id, v->n == hlo_type_bytes(t) || v->n == dtype_bytes(t->dtype),
              "the value has a wrong size");
    void *want = eval_new(e, in[0].type);
    hlo_tensor_expand(e->h, v, want);
    check(e, id, in[0], want, rule);
}

void eval_check_eq(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    (void)out;
    check_op(e, id, in, &(Rule){.kind = RULE_EQ});
}

void eval_check_almost_eq(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    (void)out;
    const HloAttr *tol = hlo_attr(eval_op_at(e, id), AK_TOLERANCE);
    check_op(
        e, id, in,
        &(Rule){.kind = RULE_ALMOST, .tolerance = tol && tol->kind == HA_FLOAT ? tol->f : 1e-4});
}

void eval_check_close(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    (void)out;
    const HloOp *op = eval_op_at(e, id);
    check_op(e, id, in,
             &(Rule){.kind = RULE_CLOSE,
                     .min_ulps = (uint64_t)hlo_int(op, AK_MIN_ULP_DIFFERENCE, 0),
                     .max_ulps = (uint64_t)hlo_int(op, AK_MAX_ULP_DIFFERENCE, 3)});
}

// --- custom calls ----------------------------------------------------------------------------------------

typedef struct CheckRow {
    const char *target;
    Rule rule;
    bool swapped; // expected value first, and a result
} CheckRow;

static const CheckRow check_rows[] = {
    {"check.expect_eq", {.kind = RULE_EQ}, false},
    {"check.expect_close", {.kind = RULE_CLOSE, .max_ulps = 3}, false},
    {"check.expect_almost_eq", {.kind = RULE_ALMOST, .tolerance = 1e-3}, false},
    {"check.eq", {.kind = RULE_ALMOST, .tolerance = 1e-4}, true},
};

void eval_custom_call(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const char *target = hlo_attr_str(op, AK_CALL_TARGET_NAME);
    if (hlo_call_passes_on(target) != HLO_CALL_OTHER) {
        if (op->noperands == 1 && op->nresults == 1 && in[0].type != out[0].type)
            eval_fail(e, id, OTRN_UNSUPPORTED, "@%s between different shapes", target);
        eval_identity(e, id, in, out);
        return;
    }
    if (!op->nresults && !strcmp(target, "dce_sink")) // has done its work when it is read
        return;
    for (size_t i = 0; i < sizeof check_rows / sizeof *check_rows; i++) {
        const CheckRow *row = &check_rows[i];
        if (strcmp(row->target, target))
            continue;
        eval_need(e, id, op->noperands == 2 && op->nresults <= 1, "a check takes two values");
        check_pair(e, id, in[row->swapped ? 1 : 0], in[row->swapped ? 0 : 1], &row->rule);
        if (op->nresults) {
            eval_need(e, id, eval_type(e, out[0])->dtype == DT_I1, "a check gives i1");
            out[0].data = eval_new(e, out[0].type);
            memset(out[0].data, 1, hlo_type_bytes(eval_type(e, out[0])));
        }
        return;
    }
    ctx_hint(e->h->ctx, "only sharding annotations and checks are known custom calls");
    eval_fail(e, id, OTRN_UNSUPPORTED, "unknown target @%.200s", target);
}
