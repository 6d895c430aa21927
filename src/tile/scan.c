// SPDX-License-Identifier: Apache-2.0
// scan.c — running sums, products and extremes along rows on the vector engine.
//
//   128 rows of x ──► SBUF ──scalar_cumulative──► SBUF ──► HBM
//
// JAX writes them as a reduce_window whose window is a whole axis, padded on one side. A partition holds a row, which is one
// instruction: backwards with strides of minus one. Few or long rows stay with GpSimd.
#include "pass/rows.h"
#include "tile/area.h"
#include "tile/rows.h"

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

static bool begins_neutral(const Hlo *h, uint16_t code, ValueId init, int dtype) {
    double x;
    if (code == HLO_ADD || code == HLO_MULTIPLY)
        return dtype == DT_F32 && splat_f64(h, init, &x) && x == (code == HLO_MULTIPLY);
    return (code == HLO_MAXIMUM || code == HLO_MINIMUM) && is_neutral(h, code, init);
}

static bool scan_read(const Hlo *h, const HloOp *op, Scan *s, Why *why) {
    if (op->code != HLO_REDUCE_WINDOW || op->noperands != 2 || op->nresults != 1)
        return false;
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *y = hlo_value_type(h, op->results);
    bool plain = x->kind == HT_TENSOR && !x->dynamic && !x->text && y->kind == HT_TENSOR && !y->dynamic && !y->text;
    if (!plain || x->elems != y->elems || !x->elems || x->elems > INT32_MAX || x->dtype != y->dtype)
        return false;
    *s = (Scan){.code = region_combiner(h, hlo_op_region(h, op, 0)), .dtype = x->dtype};
    int axis = -1;
    int64_t inner = 1; // elements behind those it runs along
    for (int i = 0; i < x->rank; i++) {
        uint32_t k = (uint32_t)i;
        int64_t window = hlo_int_at(op, AK_WINDOW_DIMENSIONS, k, 1), low = hlo_int_at(op, AK_PADDING, 2 * k, 0), high = hlo_int_at(op, AK_PADDING, 2 * k + 1, 0);
        if (hlo_int_at(op, AK_WINDOW_STRIDES, k, 1) != 1 || hlo_int_at(op, AK_WINDOW_DILATIONS, k, 1) != 1 || hlo_int_at(op, AK_BASE_DILATIONS, k, 1) != 1)
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

bool scan_takes(const Lower *l, const HloOp *op, Why *why) {
    Scan s;
    return scan_read(l->h, op, &s, why);
}

static void put_tile(Emit *e, const Scan *s, uint64_t x, uint64_t y, int64_t row, int64_t rows, Mem place) {
    int64_t size = (int64_t)dtype_bytes(s->dtype), at = row * s->cols * size, step = s->back ? -1 : 1;
    View tile = VIEW(place, s->dtype, {rows}, {s->cols, 1});
    View run = VIEW(mem_off(place, s->back ? (s->cols - 1) * size : 0), s->dtype, {rows}, {s->cols, step});
    put_dma(e, QUEUE_ROWS_IN, tile, VIEW(mem_hbm(x + (uint64_t)at), s->dtype, {rows, s->cols}, {s->cols, 1}));
    IsaInst in = isa_elementwise(ISA_SCALAR_CUM, ENG_VECTOR, run, run, NULL);
    in.op0 = ALU_MUL, in.a = scalar_f32(1), in.op1 = (uint8_t)rows_alu(s->code), in.rcmd = RCMD_RESET_REDUCE;
    put_inst(e, in, &run, &run, NULL);
    put_dma(e, QUEUE_ROWS_OUT, VIEW(mem_hbm(y + (uint64_t)at), s->dtype, {rows, s->cols}, {s->cols, 1}), tile);
}

void emit_scan(Emit *e, const Step *s) {
    Scan scan;
    scan_read(e->l->h, hlo_at(e->l->h, s->op), &scan, NULL);
    uint64_t x = emit_addr(e, e->l->refs.at[s->ins]), y = emit_addr(e, e->l->refs.at[s->outs]);
    Area area = area_make(e, ROWS_AREA_BEGIN, ROWS_AREA_BEGIN + ROWS_AREA_BYTES);
    Ring slots;
    area_ring(&area, &slots, SLOTS, ((uint32_t)scan.cols * (uint32_t)dtype_bytes(scan.dtype) + 63) & ~63u);
    area_open(&area);
    int64_t lo, hi;
    emit_share(e, scan.rows, PARTITIONS, &lo, &hi);
    for (int64_t row = lo; row < hi; row += PARTITIONS) {
        emit_task(e);
        put_tile(e, &scan, x, y, row, hi - row < PARTITIONS ? hi - row : PARTITIONS, ring_next(&slots));
    }
    area_close(&area);
}
