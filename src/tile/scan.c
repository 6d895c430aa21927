// SPDX-License-Identifier: Apache-2.0
// scan.c — running sums, products and extremes along rows on the vector engine.
//
//   128 rows of x ──► SBUF ──scalar_cumulative──► SBUF ──► HBM
//
// JAX writes them as a reduce_window whose window is a whole axis, padded on one side. A partition holds a row, which is one
// instruction: backwards with strides of minus one. Few or long rows stay with GpSimd.
#include "pass/rows.h"
#include "tile/emit.h"

#define PARTS 128
#define WIDTH_MAX 8192 // three rows of fp32 in a partition's area
#define SLOTS 3
#define ROWS_MIN 256
#define ELEMS_MIN (1 << 19)

typedef struct Scan {
    uint16_t code;
    int64_t rows, cols;
    bool back;
    int dtype;
} Scan;

static int64_t int_at(const HloOp *op, HloAttrKey key, uint32_t i, int64_t dflt) {
    uint32_t n;
    const int64_t *v = hlo_ints(op, key, &n);
    return i < n ? v[i] : dflt;
}

static bool begins_neutral(const Hlo *h, uint16_t code, ValueId init, int dtype) {
    const HloAttr *a = splat_value(h, init);
    if (!a)
        return false;
    if (code == HLO_ADD || code == HLO_MULTIPLY)
        return dtype == DT_F32 && dtype_to_f64(dtype, a->data) == (code == HLO_MULTIPLY);
    return (code == HLO_MAXIMUM || code == HLO_MINIMUM) && is_neutral(h, code, init);
}

static uint16_t body_of(const Hlo *h, const HloOp *op) {
    const HloRegion *r = hlo_op_region(h, op, 0);
    if (r->nargs != 2 || r->ops.n != 2)
        return HLO_NONE;
    const HloOp *body = hlo_at(h, r->ops.at[0]), *ret = hlo_at(h, r->ops.at[1]);
    if (body->noperands != 2 || ret->noperands != 1 || hlo_operand(h, ret, 0) != body->results)
        return HLO_NONE;
    ValueId a = hlo_operand(h, body, 0), b = hlo_operand(h, body, 1);
    return (a == r->args && b == r->args + 1) || (a == r->args + 1 && b == r->args) ? body->code : HLO_NONE;
}

static bool scan_read(const Hlo *h, const HloOp *op, Scan *s, Why *why) {
    if (op->code != HLO_REDUCE_WINDOW || op->noperands != 2 || op->nresults != 1)
        return false;
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *y = hlo_value_type(h, op->results);
    bool plain = x->kind == HT_TENSOR && !x->dynamic && !x->text && y->kind == HT_TENSOR && !y->dynamic && !y->text;
    if (!plain || x->elems != y->elems || !x->elems || x->elems > INT32_MAX || x->dtype != y->dtype)
        return false;
    *s = (Scan){.code = body_of(h, op), .dtype = x->dtype};
    int axis = -1;
    int64_t inner = 1; // elements behind those it runs along
    for (int i = 0; i < x->rank; i++) {
        uint32_t k = (uint32_t)i;
        int64_t window = int_at(op, AK_WINDOW_DIMENSIONS, k, 1), low = int_at(op, AK_PADDING, 2 * k, 0), high = int_at(op, AK_PADDING, 2 * k + 1, 0);
        if (int_at(op, AK_WINDOW_STRIDES, k, 1) != 1 || int_at(op, AK_WINDOW_DILATIONS, k, 1) != 1 || int_at(op, AK_BASE_DILATIONS, k, 1) != 1)
            return false;
        inner *= axis >= 0 ? x->dims[i] : 1;
        if (window == 1 && !low && !high)
            continue;
        if (axis >= 0 || window != x->dims[i] || low + high != window - 1 || (low && high))
            return false;
        axis = i;
        s->back = high > 0;
    }
    bool simple = s->code == HLO_ADD || s->code == HLO_MULTIPLY || s->code == HLO_MAXIMUM || s->code == HLO_MINIMUM;
    if (axis < 0 || !simple)
        return false;
    s->cols = x->dims[axis], s->rows = x->elems / s->cols;
    bool floats = x->dtype == DT_F32 || x->dtype == DT_BF16 || x->dtype == DT_F16;
    bool fits = floats && inner == 1 && x->elems >= ELEMS_MIN && s->cols <= WIDTH_MAX && s->rows >= ROWS_MIN;
    return (fits && begins_neutral(h, s->code, hlo_operand(h, op, 1), x->dtype)) || why_refuse(why, WHY_RUNNING);
}

bool scan_is_vector(const Hlo *h, const HloOp *op, Why *why) {
    Scan s;
    return scan_read(h, op, &s, why);
}

static int alu_of(uint16_t code) {
    return code == HLO_ADD ? ALU_ADD : code == HLO_MULTIPLY ? ALU_MUL : code == HLO_MAXIMUM ? ALU_MAX : ALU_MIN;
}

static void put_tile(Emit *e, const Scan *s, uint64_t x, uint64_t y, int64_t row, uint32_t rows, uint32_t place, Haz *haz) {
    size_t size = dtype_bytes(s->dtype);
    uint64_t at = (uint64_t)(row * s->cols) * size, end = (uint64_t)(s->back ? s->cols - 1 : 0) * size;
    IsaInst in = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_IN, .stype = (uint8_t)s->dtype, .src = x + at, .dst = addr_sbuf(0, place)};
    in.n[0] = rows, in.n[1] = (uint32_t)s->cols;
    in.s[0] = (int32_t)s->cols, in.s[1] = in.d[1] = 1;
    emit_inst(e, in, NULL, 0, &haz, 1);
    IsaInst run = {.op = ISA_SCALAR_CUM, .engine = ENG_VECTOR, .src = addr_sbuf(0, place) + end, .dst = addr_sbuf(0, place) + end,
                   .stype = (uint8_t)s->dtype, .dtype = (uint8_t)s->dtype, .op0 = ALU_MUL, .a = scalar_f32(1),
                   .op1 = (uint8_t)alu_of(s->code), .rcmd = RCMD_RESET_REDUCE};
    run.n[0] = rows, run.n[1] = (uint32_t)s->cols;
    run.s[1] = run.d[1] = s->back ? -1 : 1;
    emit_inst(e, run, &haz, 1, &haz, 1);
    IsaInst out = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_OUT, .stype = (uint8_t)s->dtype, .src = addr_sbuf(0, place), .dst = y + at};
    out.n[0] = rows, out.n[1] = (uint32_t)s->cols;
    out.d[0] = (int32_t)s->cols, out.s[1] = out.d[1] = 1;
    emit_inst(e, out, &haz, 1, NULL, 0);
}

void emit_scan(Emit *e, const Step *s) {
    Scan scan;
    scan_read(e->l->h, hlo_at(e->l->h, s->op), &scan, NULL);
    uint64_t x = emit_addr(e, e->l->refs.at[s->ins]), y = emit_addr(e, e->l->refs.at[s->outs]);
    uint32_t bytes = ((uint32_t)scan.cols * (uint32_t)dtype_bytes(scan.dtype) + 63) & ~63u, slot = 0;
    Haz *haz = ARENA_NEWN(e->c->scratch, Haz, SLOTS);
    for (uint32_t i = 0; i < SLOTS; i++)
        emit_area(e, &haz[i], ROWS_AREA_BEGIN + i * bytes, bytes, false);
    int64_t lo, hi;
    emit_share(e, scan.rows, PARTS, &lo, &hi);
    for (int64_t row = lo; row < hi; row += PARTS, slot = (slot + 1) % SLOTS) {
        emit_task(e);
        put_tile(e, &scan, x, y, row, (uint32_t)(hi - row < PARTS ? hi - row : PARTS), ROWS_AREA_BEGIN + slot * bytes, &haz[slot]);
    }
    for (uint32_t i = 0; i < SLOTS; i++)
        emit_area(e, &haz[i], ROWS_AREA_BEGIN + i * bytes, bytes, true);
}
