// SPDX-License-Identifier: Apache-2.0
// rows_inst.c — the instruction for each operation of a row program.
//
// Engines compute in fp32 and round on writing. There is no division: x / y is x * (1 / y), within an ulp or two. A
// number that stands for a whole row is a scalar operand when a partition holds one row, else a pattern that repeats.
// What both vector and scalar engine can do goes to the one with less to do so far.
#include <assert.h>
#include <math.h>

#include "mach/cost.h"
#include "tile/rows.h"

uint32_t rows_narrow(const RowOp *r, uint32_t i) {
    return rows_node(r, i)->kind == NODE_WIDEN ? rows_node(r, i)->src[0] : i;
}

// Rows side by side in a partition: those of a group, or of the tiles of a product.
static uint32_t side_by_side(const RowOp *r) { return r->tiles > 1 ? r->tiles : (uint32_t)r->group; }

static uint32_t row_pitch(const RowOp *r, const Node *n) { // elements from one of them to the next
    return r->tiles < 2 ? (uint32_t)r->cols : n->psum ? EPILOGUE_COLS : r->w / r->tiles;
}

Arg rows_arg(RowOp *r, uint32_t i, bool full) {
    if (rows_node(r, i)->kind == NODE_EXCHANGE) { // of a whole row, or of numbers: these are the same
        Arg whole = rows_arg(r, rows_node(r, i)->src[0], full);
        assert(full);
        if (whole.kind == ARG_TENSOR && whole.step[1])
            whole.exchanged = !whole.exchanged;
        return whole;
    }
    uint32_t from = rows_narrow(r, i);
    const Node *n = rows_node(r, from);
    if (n->kind == NODE_CONST)
        return (Arg){.kind = ARG_NUMBER, .node = from, .value = n->value};
    Arg a = {.kind = ARG_TENSOR, .node = from, .dtype = n->dtype, .addr = rows_place(r, from), .haz = rows_haz(r, from)};
    if (n->scalar || (full && !n->full && rows_single(r)))
        a.kind = ARG_COLUMN;
    if (n->full) {
        a.step[0] = n->resident || rows_once(r, n) ? 0 : (int32_t)row_pitch(r, n);
        a.step[1] = 1;
    } else {
        a.step[0] = n->scalar ? 0 : 1;
    }
    return a;
}

// Counts of the instruction and strides of one operand.
static void set_counts(const RowOp *r, IsaInst *in, bool full) {
    in->n[0] = r->m;
    if (full && r->half) {
        in->n[1] = side_by_side(r), in->n[2] = (uint32_t)(r->w / in->n[1] / (2 * r->half)), in->n[3] = 2, in->n[4] = (uint32_t)r->half;
        assert(r->w == in->n[1] * in->n[2] * 2 * r->half);
        return;
    }
    if (full && side_by_side(r) > 1)
        in->n[1] = side_by_side(r), in->n[2] = r->tiles > 1 ? r->w / r->tiles : (uint32_t)r->cols;
    else
        in->n[1] = full ? r->w : (uint32_t)r->group;
}

static void set_strides(const RowOp *r, int32_t *strides, const Arg *a, bool full) {
    if (full && r->half) {
        int32_t half = (int32_t)r->half * a->step[1];
        strides[1] = a->step[0], strides[2] = 2 * half, strides[3] = a->exchanged ? -half : half, strides[4] = a->step[1];
        return;
    }
    if (full && side_by_side(r) > 1)
        strides[1] = a->step[0], strides[2] = a->step[1];
    else
        strides[1] = full ? a->step[1] : a->step[0];
}

Arg rows_result(RowOp *r, uint32_t i) {
    Arg a = rows_arg(r, i, false);
    a.kind = ARG_TENSOR;
    return a;
}

// Where a reduction of the columns in work goes: with products a chunk has a place of its own.
static Arg reduced(RowOp *r, uint32_t i) {
    Arg a = rows_result(r, i);
    if (r->forms && r->chunks > 1)
        a.addr += 16 + 4 * r->chunk, a.dtype = DT_F32;
    return a;
}

// Where the operand begins: with the upper half.
static uint64_t first_of(const RowOp *r, const Arg *a) {
    return a->addr + (a->exchanged ? (uint64_t)r->half * dtype_bytes(a->dtype) : 0);
}

void rows_src(RowOp *r, IsaInst *in, const Arg *a, bool full) {
    in->src = first_of(r, a);
    in->stype = a->dtype;
    set_strides(r, in->s, a, full);
}

IsaInst rows_make(RowOp *r, int op, int engine, const Arg *dst, const Arg *src, bool full) {
    IsaInst in = {.op = (uint8_t)op, .engine = (uint8_t)engine, .dst = dst->addr, .dtype = dst->dtype};
    set_counts(r, &in, full);
    set_strides(r, in.d, dst, full);
    assert(in.n[0] <= PARTITIONS);
    if (src)
        rows_src(r, &in, src, full);
    return in;
}

void rows_src1(RowOp *r, IsaInst *in, const Arg *a, bool full) {
    in->src1 = first_of(r, a);
    in->ttype = a->dtype;
    set_strides(r, in->t, a, full);
}

static uint64_t scalar_operand(IsaInst *in, const Arg *a) {
    if (a->kind == ARG_NUMBER)
        return scalar_f32(a->value);
    in->atype = a->dtype;
    return a->addr;
}

static double engine_ns(const RowOp *r, int engine, bool full) {
    return cost_pass(r->e->chip, engine, fmax(full ? r->w : (double)r->group, r->e->chip->engine_min_cycles));
}

static bool is_per_row(const RowOp *r, uint64_t a) { return addr_space(a) == SPACE_SBUF && addr_poff(a) >= r->spare_at; } // not one for all

// Where an operand or result is one a row and a partition holds rows of several batches, each of these has its own.
static void put_each(RowOp *r, IsaInst in, Haz *const *reads, uint32_t n, Haz *const *writes, uint32_t nwrites) {
    bool a = is_per_row(r, in.a), b = is_per_row(r, in.b), each = r->batch && in.n[2] && in.op != ISA_REDUCE && (a || b || in.res);
    uint32_t times = each ? in.n[1] : 1;
    for (uint32_t g = 0; g < times; g++) {
        IsaInst one = in;
        if (each) {
            one.n[1] = in.n[2], one.n[2] = 0;
            one.d[1] = in.d[2], one.s[1] = in.s[2], one.t[1] = in.t[2];
            one.d[2] = one.s[2] = one.t[2] = 0;
            one.dst += (uint64_t)(g * (int64_t)in.d[1] * (int64_t)dtype_bytes(in.dtype));
            one.src += (uint64_t)(g * (int64_t)in.s[1] * (int64_t)dtype_bytes(in.stype));
            one.src1 += in.src1 ? (uint64_t)(g * (int64_t)in.t[1] * (int64_t)dtype_bytes(in.ttype)) : 0;
            one.a += a ? g * dtype_bytes(in.atype) : 0;
            one.b += b ? g * dtype_bytes(in.atype) : 0;
            one.res += in.res ? g * dtype_bytes(in.rtype) : 0;
        }
        r->busy[in.engine] += cost_inst(r->e->chip, NULL, &one);
        emit_inst(r->e, one, reads, n, writes, nwrites);
    }
}

void rows_put(RowOp *r, IsaInst in, Haz *const *reads, uint32_t n, Haz *write) {
    assert(write);
    assert(n <= REC_READS);
    put_each(r, in, reads, n, &write, 1);
}

// One that gives the sum or the largest of a row as well.
static void put_reducing(RowOp *r, IsaInst in, Haz *const *reads, uint32_t n, Haz *write, int op, const Arg *to) {
    in.res = to->addr, in.rtype = to->dtype, in.rop = (uint8_t)op, in.rcmd = RCMD_RESET_REDUCE;
    put_each(r, in, reads, n, (Haz *[]){write, to->haz}, 2);
}

// For an instruction between these two: the vector engine is faster on 16-bit floats.
static int lighter(const RowOp *r, bool full, const Arg *dst, const Arg *src) {
    bool narrow = dst && dtype_bytes(dst->dtype) == 2 && dtype_bytes(src->dtype) == 2 && addr_space(src->addr) == SPACE_SBUF;
    double vector = engine_ns(r, ENG_VECTOR, full) / (narrow && full ? r->e->chip->vector_fast_sbuf : 1);
    return r->busy[ENG_SCALAR] + engine_ns(r, ENG_SCALAR, full) < r->busy[ENG_VECTOR] + vector ? ENG_SCALAR : ENG_VECTOR;
}

static uint32_t reads_of(const Arg *const *args, uint32_t n, Haz **out) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++)
        if (args[i]->haz)
            out[k++] = args[i]->haz;
    return k;
}

// --- arithmetic ------------------------------------------------------------------------------------

#define NONE
#define ALU(op) .alu = ALU_##op
#define ACT(fn) .act = ACT_##fn
static const struct {
    uint8_t alu, act;
} engines[HLO_OPCODE_COUNT] = {
#define EW(e, dialect, name, operands, types, result, steps, evaluator, engine, ...) [HLO_##e] = {engine},
#include "hlo/ops.def"
};
_Static_assert(ALU_BYPASS == 0 && ACT_COPY == 0, "what no row names");

int rows_alu(uint16_t code) { return engines[code].alu; }
int rows_function(uint16_t code) { return engines[code].act; }

int rows_comparison(const RowOp *r, const Node *n) {
    static const uint8_t alu[] = {[CMP_EQ] = ALU_EQ, [CMP_NE] = ALU_NE, [CMP_LT] = ALU_LT, [CMP_LE] = ALU_LE, [CMP_GT] = ALU_GT, [CMP_GE] = ALU_GE};
    return alu[hlo_int(hlo_at(r->e->l->h, n->op), AK_COMPARISON_DIRECTION, CMP_EQ)];
}

static void put_copy(RowOp *r, const Arg *dst, const Arg *src, bool full) {
    if (src->kind == ARG_NUMBER) {
        IsaInst in = rows_make(r, ISA_MEMSET, ENG_VECTOR, dst, NULL, full);
        uint32_t bits = 0;
        uint8_t one[16] = {0};
        if (dst->dtype == DT_I1)
            one[0] = src->value != 0;
        else
            dtype_from_f64(dst->dtype, one, src->value);
        memcpy(&bits, one, 4);
        in.imm = (int32_t)bits;
        rows_put(r, in, NULL, 0, dst->haz);
        return;
    }
    IsaInst in = rows_make(r, ISA_COPY, lighter(r, full, dst, src), dst, src, full);
    rows_put(r, in, (Haz *[]){src->haz}, 1, dst->haz);
}

// x * a, x + a and x - number, which the scalar engine does as well.
static bool on_scalar(const RowOp *r, int op, const Arg *a, bool reverse) {
    if (r->e->chip->generation < 3 && op != ALU_MUL && a->kind == ARG_NUMBER)
        return false; // a scale is a number or a vector there, a bias a vector
    return op == ALU_MUL || op == ALU_ADD || (op == ALU_SUB && !reverse && a->kind == ARG_NUMBER);
}

static void put_tensor_scalar(RowOp *r, const Arg *dst, const Arg *x, int op, const Arg *a, bool reverse, bool full) {
    Haz *reads[2];
    uint32_t n = reads_of((const Arg *[]){x, a}, 2, reads);
    bool floats = dst->dtype != DT_I1 && x->dtype != DT_I1;
    if (floats && on_scalar(r, op, a, reverse) && lighter(r, full, dst, x) == ENG_SCALAR) {
        IsaInst in = rows_make(r, ISA_ACTIVATE, ENG_SCALAR, dst, x, full);
        in.fn = ACT_IDENTITY;
        Arg number = *a;
        number.value = op == ALU_SUB ? -a->value : a->value;
        *(op == ALU_MUL ? &in.a : &in.b) = scalar_operand(&in, &number);
        rows_put(r, in, reads, n, dst->haz);
        return;
    }
    IsaInst in = rows_make(r, ISA_TENSOR_SCALAR, ENG_VECTOR, dst, x, full);
    in.op0 = (uint8_t)op;
    in.a = scalar_operand(&in, a);
    in.flags = reverse ? ISA_FLAG_REVERSE0 : 0;
    rows_put(r, in, reads, n, dst->haz);
}

static void put_binary(RowOp *r, const Arg *dst, int op, const Arg *x, const Arg *y, bool full) {
    if (x->kind == ARG_NUMBER && y->kind == ARG_NUMBER) { // both known: as tensors of one number
        put_copy(r, dst, x, full);
        put_tensor_scalar(r, dst, dst, op, y, false, full);
        return;
    }
    if (y->kind != ARG_TENSOR && x->kind != ARG_NUMBER) {
        put_tensor_scalar(r, dst, x, op, y, false, full);
        return;
    }
    if (x->kind != ARG_TENSOR) {
        put_tensor_scalar(r, dst, y, op, x, true, full);
        return;
    }
    IsaInst in = rows_make(r, ISA_TENSOR_TENSOR, ENG_VECTOR, dst, x, full);
    in.op0 = (uint8_t)op;
    rows_src1(r, &in, y, full);
    rows_put(r, in, (Haz *[]){x->haz, y->haz}, 2, dst->haz);
}

static bool exact_inverse(float v) {
    float inverse = 1 / v;
    return isnormal(v) && isnormal(inverse);
}

Arg rows_beside(RowOp *r, const Arg *a, uint32_t which) {
    Arg b = *a;
    assert(which < 4); // a number per row has room for four
    b.addr += which * (uint64_t)r->group * 4;
    b.dtype = DT_F32;
    return b;
}

#define RECIPROCAL_COLS 512 // from here on the scalar engine's other table is worth loading

// What a folded product or quotient multiplies its tensor with.
static Arg scale_of(RowOp *r, const Node *n) {
    Arg a = rows_arg(r, n->src[1], true);
    return n->code == HLO_DIVIDE ? rows_beside(r, &a, 1) : a;
}

// 1 / y or 1 / (y + b), where the quotient goes.
static void put_inverse(RowOp *r, const Node *y, uint32_t from, const Arg *dst) {
    bool wide = r->w >= RECIPROCAL_COLS, plus = y->folded;
    Arg x = rows_arg(r, from, true), b = plus ? rows_arg(r, y->src[1], true) : (Arg){0};
    Haz *reads[2];
    if (plus && !wide) {
        put_tensor_scalar(r, dst, &x, ALU_ADD, &b, false, true);
        x = *dst;
    }
    IsaInst in = rows_make(r, wide ? ISA_ACTIVATE : ISA_RECIPROCAL, wide ? ENG_SCALAR : ENG_VECTOR, dst, &x, true);
    if (wide)
        in.fn = ACT_RECIPROCAL;
    if (plus && wide)
        in.b = scalar_operand(&in, &b);
    rows_put(r, in, reads, reads_of((const Arg *[]){&x, &b}, plus && wide ? 2 : 1, reads), dst->haz);
}

// (x * scale) / (y + b), of which at least one is folded: the inverse, then both products at once.
static void put_folded_divide(RowOp *r, const Node *n, const Arg *dst) {
    const Node *left = rows_node(r, n->src[0]), *right = rows_node(r, n->src[1]);
    put_inverse(r, right, right->folded ? right->src[0] : n->src[1], dst);
    if (!left->folded) {
        Arg x = rows_arg(r, n->src[0], true);
        put_binary(r, dst, ALU_MUL, &x, dst, true);
        return;
    }
    Arg x = rows_arg(r, left->src[0], true), a = scale_of(r, left);
    IsaInst in = rows_make(r, ISA_SCALAR_TT, ENG_VECTOR, dst, NULL, true);
    assert(x.kind == ARG_TENSOR);
    assert(a.kind != ARG_TENSOR);
    assert(x.addr != dst->addr);
    rows_src(r, &in, &x, true);
    rows_src1(r, &in, dst, true);
    in.op0 = in.op1 = ALU_MUL;
    in.a = scalar_operand(&in, &a);
    Haz *reads[3];
    rows_put(r, in, reads, reads_of((const Arg *[]){&x, dst, &a}, 3, reads), dst->haz);
}

// x / y with y a tensor: (1 / y) * x.
static void put_divide(RowOp *r, const Node *n, const Arg *dst, bool full) {
    if (rows_node(r, n->src[0])->folded || rows_node(r, n->src[1])->folded) {
        put_folded_divide(r, n, dst);
        return;
    }
    Arg x = rows_arg(r, n->src[0], full), y = rows_arg(r, n->src[1], full);
    if (y.kind == ARG_NUMBER && exact_inverse(y.value)) {
        Arg inverse = {.kind = ARG_NUMBER, .value = 1 / y.value};
        put_binary(r, dst, ALU_MUL, &x, &inverse, full);
        return;
    }
    if (rows_node(r, y.node)->wants_inverse) {
        Arg inverse = rows_beside(r, &y, 1);
        put_binary(r, dst, ALU_MUL, &x, &inverse, full);
        return;
    }
    if (y.kind == ARG_NUMBER) { // a number without a normal inverse
        put_copy(r, dst, &y, full);
        Arg d = *dst;
        y = d;
    }
    if (full && r->w >= RECIPROCAL_COLS && dst->dtype == DT_F32 && dst->addr != x.addr) {
        IsaInst in = rows_make(r, ISA_ACTIVATE, ENG_SCALAR, dst, &y, full); // eight times as fast as the vector engine's
        in.fn = ACT_RECIPROCAL;
        rows_put(r, in, (Haz *[]){y.haz}, 1, dst->haz);
        put_binary(r, dst, ALU_MUL, &x, dst, full);
        return;
    }
    if (x.kind == ARG_TENSOR) {
        IsaInst in = rows_make(r, ISA_SCALAR_TT, ENG_VECTOR, dst, &y, full);
        rows_src1(r, &in, &x, full);
        in.op0 = ALU_RECIP, in.op1 = ALU_MUL;
        rows_put(r, in, (Haz *[]){y.haz, x.haz}, 2, dst->haz);
        return;
    }
    IsaInst in = rows_make(r, ISA_TENSOR_SCALAR, ENG_VECTOR, dst, &y, full);
    in.op0 = ALU_RECIP, in.op1 = ALU_MUL;
    in.b = scalar_operand(&in, &x);
    Haz *reads[2];
    uint32_t k = reads_of((const Arg *[]){&y, &x}, 2, reads);
    rows_put(r, in, reads, k, dst->haz);
}

// --- functions -------------------------------------------------------------------------------------

// fn(x), fn(-x), fn(x * a), fn(x / a), fn(x + b), fn(x * number + b); scale and bias are the folded operations before it.
static void put_function(RowOp *r, uint32_t i, const Arg *dst) {
    const Node *n = rows_node(r, i);
    uint32_t from = n->src[0];
    IsaInst in = rows_make(r, ISA_ACTIVATE, ENG_SCALAR, dst, NULL, n->full);
    in.fn = (uint8_t)rows_function(n->code);
    Haz *reads[2];
    uint32_t nreads = 0;
    const Node *inner = rows_node(r, from);
    if (inner->kind == NODE_OP && inner->folded && inner->code == HLO_NEGATE) {
        in.a = scalar_f32(-1);
        from = inner->src[0];
    } else if (inner->kind == NODE_OP && inner->folded) {
        Arg a = rows_arg(r, inner->src[1], n->full);
        if (inner->code == HLO_SUBTRACT) {
            if (a.kind == ARG_NUMBER)
                a.value = -a.value;
            else
                a = rows_beside(r, &a, 2);
        }
        bool scales = inner->code == HLO_MULTIPLY || inner->code == HLO_DIVIDE;
        if (scales)
            a = scale_of(r, inner);
        *(scales ? &in.a : &in.b) = scalar_operand(&in, &a);
        if (a.haz)
            reads[nreads++] = a.haz;
        from = inner->src[0];
        const Node *scaled = rows_node(r, from);
        if (scaled->kind == NODE_OP && scaled->folded) { // x times a number
            in.a = scalar_f32(rows_node(r, rows_narrow(r, scaled->src[1]))->value);
            from = scaled->src[0];
        }
    }
    Arg x = rows_arg(r, from, n->full);
    if (x.kind == ARG_NUMBER) {
        put_copy(r, dst, &x, n->full);
        x = *dst;
    }
    rows_src(r, &in, &x, n->full);
    reads[nreads++] = x.haz;
    if (!n->summed) {
        rows_put(r, in, reads, nreads, dst->haz);
        return;
    }
    Arg sum = reduced(r, n->summed - 1);
    put_reducing(r, in, reads, nreads, dst->haz, ALU_ADD, &sum);
}

// --- choices ---------------------------------------------------------------------------------------

// One branch is a number or one a row: a single instruction, which gives the largest of a row as well.
static void put_select_reduce(RowOp *r, const Node *n, const Arg *dst, Arg *p, const Arg *a, const Arg *b) {
    bool reverse = a->kind != ARG_TENSOR;
    const Arg *x = reverse ? b : a, *other = reverse ? a : b;
    p->kind = ARG_TENSOR;
    IsaInst in = rows_make(r, ISA_SELECT_REDUCE, ENG_VECTOR, dst, x, n->full);
    rows_src1(r, &in, p, n->full);
    in.a = scalar_operand(&in, other);
    in.flags = reverse ? ISA_FLAG_REVERSE0 : 0;
    Haz *reads[3];
    uint32_t k = reads_of((const Arg *[]){x, p, other}, 3, reads);
    if (!n->summed) {
        rows_put(r, in, reads, k, dst->haz);
        return;
    }
    Arg most = reduced(r, n->summed - 1);
    put_reducing(r, in, reads, k, dst->haz, ALU_MAX, &most);
}

// Elements are counted as they lie in HBM.
static void put_dropout(RowOp *r, const Node *n, const Arg *dst) {
    Node *flags = rows_node(r, n->src[0]);
    Arg a = rows_arg(r, n->src[1], true), b = rows_arg(r, n->src[2], true);
    bool chosen = a.kind == ARG_TENSOR;
    const Arg *x = chosen ? &a : &b;
    Arg numbers = {.step = {(int32_t)((r->tiles > 1 ? PARTITIONS : r->batch ? r->batch : 1) * r->cols), 1}};
    IsaInst in = rows_make(r, ISA_DROPOUT_AT, ENG_VECTOR, dst, x, true);
    assert(x->kind == ARG_TENSOR);
    set_strides(r, in.t, &numbers, true);
    in.src1 = addr_sbuf(0, flags->state_at), in.ttype = DT_UI32;
    in.imm = (int32_t)r->first, in.t[0] = (int32_t)rows_stride(r);
    rows_draw_by(r, &in, flags, chosen);
    rows_put(r, in, (Haz *[]){x->haz, &flags->haz[0]}, 2, dst->haz);
}

static void put_select(RowOp *r, const Node *n, const Arg *dst) {
    if (rows_node(r, n->src[0])->folded) {
        put_dropout(r, n, dst);
        return;
    }
    Arg p = rows_arg(r, n->src[0], n->full), a = rows_arg(r, n->src[1], n->full), b = rows_arg(r, n->src[2], n->full);
    if (rows_is_one_select(r, n)) {
        put_select_reduce(r, n, dst, &p, &a, &b);
        return;
    }
    if (b.addr != dst->addr || b.kind != ARG_TENSOR)
        put_copy(r, dst, &b, n->full);
    if (p.kind == ARG_NUMBER) {
        if (p.value)
            put_copy(r, dst, &a, n->full);
        return;
    }
    if (p.kind != ARG_TENSOR) // one predicate for all: as a tensor that repeats
        p.kind = ARG_TENSOR;
    IsaInst in = rows_make(r, ISA_COPY_PRED, ENG_VECTOR, dst, NULL, n->full);
    rows_src1(r, &in, &p, n->full);
    Haz *reads[3] = {p.haz, dst->haz};
    uint32_t k = 2;
    if (a.kind == ARG_TENSOR) {
        assert(a.dtype == dst->dtype); // rows_read widens it
        rows_src(r, &in, &a, n->full);
        reads[k++] = a.haz;
    } else {
        in.a = scalar_operand(&in, &a);
        if (a.haz)
            reads[k++] = a.haz;
    }
    rows_put(r, in, reads, k, dst->haz);
}

static void put_clamp(RowOp *r, const Node *n, const Arg *dst) {
    Arg lo = rows_arg(r, n->src[0], n->full), x = rows_arg(r, n->src[1], n->full), hi = rows_arg(r, n->src[2], n->full);
    put_binary(r, dst, ALU_MAX, &x, &lo, n->full);
    put_binary(r, dst, ALU_MIN, dst, &hi, n->full);
}

// --- nodes -----------------------------------------------------------------------------------------

// (x op0 a) op1 b, or (x op0 a) op1 y: the folded operation first.
static void put_chain(RowOp *r, uint32_t i, uint32_t inner, const Arg *dst) {
    const Node *n = rows_node(r, i), *first = rows_node(r, inner);
    bool inner_left = n->src[0] == inner;
    Arg u = rows_arg(r, first->src[0], n->full), v = rows_arg(r, first->src[1], n->full);
    Arg other = rows_arg(r, n->src[inner_left ? 1 : 0], n->full);
    bool reverse0 = u.kind != ARG_TENSOR;
    const Arg *x = reverse0 ? &v : &u, *a = reverse0 ? &u : &v;
    IsaInst in = rows_make(r, other.kind == ARG_TENSOR ? ISA_SCALAR_TT : ISA_TENSOR_SCALAR, ENG_VECTOR, dst, x, n->full);
    in.op0 = (uint8_t)rows_alu(first->code);
    in.op1 = (uint8_t)rows_alu(n->code);
    in.a = scalar_operand(&in, a);
    in.flags = (reverse0 ? ISA_FLAG_REVERSE0 : 0) | (inner_left ? 0 : ISA_FLAG_REVERSE1);
    if (other.kind == ARG_TENSOR)
        rows_src1(r, &in, &other, n->full);
    else
        in.b = scalar_operand(&in, &other);
    Haz *reads[3];
    uint32_t k = reads_of((const Arg *[]){x, a, &other}, 3, reads);
    rows_put(r, in, reads, k, dst->haz);
}

static void put_op(RowOp *r, uint32_t i) {
    const Node *n = rows_node(r, i);
    if (rows_is_int(r, n)) {
        rows_emit_int(r, i);
        return;
    }
    Arg dst = rows_result(r, i), x;
    for (uint32_t k = 0; k < n->nsrc && rows_alu(n->code) != ALU_BYPASS; k++)
        if (rows_node(r, n->src[k])->kind == NODE_OP && rows_node(r, n->src[k])->folded) {
            put_chain(r, i, n->src[k], &dst);
            return;
        }
    switch (n->code) {
    case HLO_DIVIDE:
        put_divide(r, n, &dst, n->full);
        return;
    case HLO_NEGATE:
        x = rows_arg(r, n->src[0], n->full);
        put_binary(r, &dst, ALU_MUL, &x, &(Arg){.kind = ARG_NUMBER, .value = -1}, n->full);
        return;
    case HLO_NOT:
        x = rows_arg(r, n->src[0], n->full);
        put_binary(r, &dst, ALU_EQ, &x, &(Arg){.kind = ARG_NUMBER, .value = 0}, n->full);
        return;
    case HLO_CHLO_SQUARE:
        x = rows_arg(r, n->src[0], n->full);
        put_binary(r, &dst, ALU_MUL, &x, &x, n->full);
        return;
    case HLO_ABS:
    case HLO_IS_FINITE: {
        x = rows_arg(r, n->src[0], n->full);
        if (x.kind == ARG_NUMBER) {
            put_copy(r, &dst, &x, n->full);
            x = dst;
        }
        IsaInst in = rows_make(r, ISA_TENSOR_SCALAR, ENG_VECTOR, &dst, &x, n->full);
        in.op0 = ALU_ABS;
        if (n->code == HLO_IS_FINITE)
            in.op1 = ALU_LT, in.b = scalar_f32(INFINITY);
        rows_put(r, in, (Haz *[]){x.haz}, 1, dst.haz);
        return;
    }
    case HLO_CONVERT:
        x = rows_arg(r, n->src[0], n->full);
        put_copy(r, &dst, &x, n->full);
        return;
    case HLO_SELECT:
        put_select(r, n, &dst);
        return;
    case HLO_CLAMP:
        put_clamp(r, n, &dst);
        return;
    default:
        break;
    }
    if (rows_function(n->code) != ACT_COPY) {
        put_function(r, i, &dst);
        return;
    }
    Arg y = rows_arg(r, n->src[1], n->full);
    x = rows_arg(r, n->src[0], n->full);
    put_binary(r, &dst, n->code == HLO_COMPARE ? rows_comparison(r, n) : rows_alu(n->code), &x, &y, n->full);
}

// A reduction over the columns of the chunk; later chunks are combined with what there is.
static void put_reduce(RowOp *r, uint32_t i, bool first) {
    const Node *n = rows_node(r, i);
    Arg dst = rows_result(r, i), part = r->forms ? reduced(r, i) : first ? dst : rows_beside(r, &dst, 3), x = rows_arg(r, n->src[0], true);
    int op = rows_alu(n->code);
    bool done = rows_node(r, n->src[0])->kind == NODE_OP && rows_node(r, n->src[0])->summed == i + 1;
    part.dtype = r->forms ? part.dtype : dst.dtype;
    if (!done && x.kind == ARG_TENSOR && op == ALU_ADD && r->group == 1 && rows_node(r, x.node)->full &&
        lighter(r, true, NULL, NULL) == ENG_SCALAR) { // the scalar engine sums what it copies to nowhere
        IsaInst in = {.op = ISA_ACTIVATE, .engine = ENG_SCALAR, .dst = addr_sbuf(0, r->spare_at), .dtype = DT_F32,
                      .fn = ACT_IDENTITY};
        set_counts(r, &in, true);
        in.d[1] = 1;
        rows_src(r, &in, &x, true);
        put_reducing(r, in, (Haz *[]){x.haz}, 1, &r->spare, ALU_ADD, &part);
        done = true;
    }
    if (!done) {
        IsaInst in = {.op = ISA_REDUCE, .engine = ENG_VECTOR, .dst = part.addr, .dtype = part.dtype, .op0 = (uint8_t)op};
        set_counts(r, &in, true);
        in.d[1] = r->group > 1;
        rows_src(r, &in, &x, true);
        rows_put(r, in, (Haz *[]){x.haz}, 1, part.haz);
    }
    if (n->value) { // by the engine that has it: others would wait
        IsaInst in = rows_make(r, ISA_TENSOR_SCALAR, ENG_VECTOR, &part, &part, false);
        in.op0 = ALU_MUL, in.a = scalar_f32(n->value);
        rows_put(r, in, (Haz *[]){part.haz}, 1, part.haz);
    }
    if (!first && !r->forms)
        put_binary(r, &dst, op, &dst, &part, false);
}

void rows_join_parts(RowOp *r, uint32_t i) {
    const Node *n = rows_node(r, i);
    rows_loc(r, i);
    Arg dst = rows_result(r, i);
    if (r->chunks > 1) {
        IsaInst in = {.op = ISA_REDUCE, .engine = ENG_VECTOR, .dst = dst.addr, .dtype = dst.dtype, .op0 = (uint8_t)rows_alu(n->code),
                      .src = dst.addr + 16, .stype = DT_F32};
        in.n[0] = r->m, in.n[1] = r->chunks, in.s[1] = 1;
        rows_put(r, in, (Haz *[]){dst.haz}, 1, dst.haz);
    }
    if (n->wants_inverse || n->wants_negative)
        rows_emit_beside(r, i);
}

void rows_emit_beside(RowOp *r, uint32_t i) {
    const Node *n = rows_node(r, i);
    Arg x = rows_arg(r, i, false);
    rows_loc(r, i);
    x.kind = ARG_TENSOR;
    if (n->wants_inverse) {
        Arg inverse = rows_beside(r, &x, 1);
        IsaInst in = rows_make(r, ISA_RECIPROCAL, ENG_VECTOR, &inverse, &x, false);
        in.n[1] = n->scalar ? 1 : in.n[1];
        rows_put(r, in, (Haz *[]){x.haz}, 1, x.haz);
    }
    if (n->wants_negative) {
        Arg negative = rows_beside(r, &x, 2);
        IsaInst in = rows_make(r, ISA_TENSOR_SCALAR, ENG_VECTOR, &negative, &x, false);
        in.n[1] = n->scalar ? 1 : in.n[1];
        in.op0 = ALU_MUL, in.a = scalar_f32(-1);
        rows_put(r, in, (Haz *[]){x.haz}, 1, x.haz);
    }
}

void rows_emit_node(RowOp *r, uint32_t i, bool first_chunk) {
    const Node *n = rows_node(r, i);
    rows_loc(r, i);
    if (n->kind == NODE_OP && !n->folded)
        put_op(r, i);
    else if (n->kind == NODE_REDUCE)
        put_reduce(r, i, first_chunk);
    else if (n->kind == NODE_WIDEN && n->is_output) {
        Arg dst = rows_result(r, i), x = rows_arg(r, i, true);
        dst.addr = rows_place(r, i), dst.haz = rows_haz(r, i), dst.dtype = n->dtype;
        dst.step[0] = (int32_t)row_pitch(r, n), dst.step[1] = 1;
        x.kind = ARG_TENSOR;
        put_copy(r, &dst, &x, true);
    }
    if (!n->full && (n->wants_inverse || n->wants_negative) &&
        (n->kind != NODE_REDUCE || r->width >= r->group * r->pcols)) // chunks: when the last one is in
        rows_emit_beside(r, i);
}
