// SPDX-License-Identifier: Apache-2.0
// rows_int.c — the instruction for each integer operation of a row program.
//
// The vector engine works on bits as they are, but adds in fp32; gpsimd adds and multiplies words of 32 bits, which wrap
// (aws-neuron-sdk nki/api: int32 tensor_tensor runs there). So a chain goes to and fro between the two, and tiles keep both busy.
// Words put together of parts that share no bit may be added as well: that goes to whoever has less to do.
#include "tile/rows.h"

static Node *node_at(const RowOp *r, uint32_t i) { return &r->nodes.at[i]; }

bool rows_is_int(const RowOp *r, const Node *n) {
    bool ints = dtype_is_int(n->dtype);
    for (uint32_t k = 0; k < n->nsrc; k++)
        ints = ints || dtype_is_int(node_at(r, n->src[k])->dtype);
    return ints && n->kind == NODE_OP;
}

// (x << a) | (x >> b), a + b not less than 32.
static bool joins_parts(const RowOp *r, const Node *n) {
    const Node *x = node_at(r, n->src[0]), *y = node_at(r, n->src[1]);
    bool shifts = (x->code == HLO_SHIFT_LEFT && y->code == HLO_SHIFT_RIGHT_LOGICAL) ||
                  (y->code == HLO_SHIFT_LEFT && x->code == HLO_SHIFT_RIGHT_LOGICAL);
    return shifts && x->kind == NODE_OP && y->kind == NODE_OP &&
           node_at(r, x->src[1])->number + node_at(r, y->src[1])->number >= 32;
}

static int alu_of(const RowOp *r, const Node *n, int *engine) {
    *engine = ENG_VECTOR;
    switch (n->code) {
    case HLO_ADD:
    case HLO_SUBTRACT:
    case HLO_MULTIPLY:
        *engine = ENG_GPSIMD;
        return n->code == HLO_ADD ? ALU_ADD : n->code == HLO_SUBTRACT ? ALU_SUB : ALU_MUL;
    case HLO_AND:
        return ALU_AND;
    case HLO_OR:
        if (!r->e->chip->vector_gpsimd_port && joins_parts(r, n) && r->busy[ENG_GPSIMD] < r->busy[ENG_VECTOR]) {
            *engine = ENG_GPSIMD;
            return ALU_ADD;
        }
        return ALU_OR;
    case HLO_XOR:
    case HLO_NOT:
        return ALU_XOR;
    case HLO_SHIFT_LEFT:
        return ALU_SHL;
    case HLO_SHIFT_RIGHT_LOGICAL:
        return ALU_SHR;
    default:
        return ALU_BYPASS;
    }
}

// x op a number, or one a row or for all: which operand x is; -1: it is none.
static int tensor_side(const RowOp *r, const Node *n) {
    if (n->kind != NODE_OP || n->nsrc != 2 || !n->full || !rows_is_int(r, n))
        return -1;
    bool one[2];
    for (int k = 0; k < 2; k++) {
        const Node *x = node_at(r, n->src[k]);
        x = x->kind == NODE_WIDEN ? node_at(r, x->src[0]) : x;
        one[k] = x->kind == NODE_CONST || x->scalar;
    }
    return one[0] == one[1] ? -1 : one[0];
}

static bool adds(uint16_t code) { return code == HLO_ADD || code == HLO_SUBTRACT || code == HLO_MULTIPLY; }

void rows_fold_ints(RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = node_at(r, i);
        int side = n->folded ? -1 : tensor_side(r, n);
        Node *inner = side < 0 ? NULL : node_at(r, n->src[side]);
        int deeper = inner ? tensor_side(r, inner) : -1;
        if (deeper < 0 || inner->uses != 1 || inner->is_output || inner->folded || adds(n->code) != adds(inner->code) ||
            node_at(r, inner->src[deeper])->folded)
            continue;
        inner->folded = true;
    }
}

static uint64_t scalar_of(const RowOp *r, IsaInst *in, const Arg *a) {
    if (a->kind == ARG_NUMBER)
        return scalar_i32(node_at(r, a->node)->number);
    in->atype = a->dtype;
    return a->addr;
}

// The bits of x, whatever their type is called.
static void put_bits(RowOp *r, const Node *n, const Arg *dst, const Arg *x) {
    IsaInst in = rows_make(r, ISA_COPY, ENG_VECTOR, dst, n->full);
    Arg same = *x;
    same.dtype = dst->dtype;
    rows_src(r, &in, &same, n->full);
    rows_put(r, in, (Haz *[]){x->haz}, 1, dst->haz);
}

// (x op0 a) op1 b
static void put_both(RowOp *r, const Node *n, const Node *inner, int side, const Arg *dst) {
    int engine, deeper = tensor_side(r, inner);
    IsaInst in = rows_make(r, ISA_TENSOR_SCALAR, ENG_VECTOR, dst, true);
    in.op0 = (uint8_t)alu_of(r, inner, &engine), in.op1 = (uint8_t)alu_of(r, n, &engine);
    in.engine = (uint8_t)engine;
    Arg x = rows_arg(r, inner->src[deeper], true), a = rows_arg(r, inner->src[!deeper], true), b = rows_arg(r, n->src[!side], true);
    rows_src(r, &in, &x, true);
    in.a = scalar_of(r, &in, &a), in.b = scalar_of(r, &in, &b);
    in.flags = (deeper ? ISA_FLAG_REVERSE0 : 0) | (side ? ISA_FLAG_REVERSE1 : 0);
    Haz *reads[3] = {x.haz};
    uint32_t k = 1;
    for (int j = 0; j < 2; j++)
        if ((j ? b : a).haz)
            reads[k++] = (j ? b : a).haz;
    rows_put(r, in, reads, k, dst->haz);
}

void rows_emit_int(RowOp *r, uint32_t i) {
    const Node *n = node_at(r, i);
    int engine, op = alu_of(r, n, &engine), side = tensor_side(r, n);
    if (side >= 0 && node_at(r, n->src[side])->folded) {
        Arg both = rows_result(r, i);
        put_both(r, n, node_at(r, n->src[side]), side, &both);
        return;
    }
    Arg dst = rows_result(r, i), x = rows_arg(r, n->src[0], n->full);
    if (op == ALU_BYPASS) {
        put_bits(r, n, &dst, &x);
        return;
    }
    IsaInst in = {0};
    Haz *reads[2];
    uint32_t nreads = 0;
    if (n->code == HLO_NOT) {
        in = rows_make(r, ISA_TENSOR_SCALAR, engine, &dst, n->full);
        in.a = scalar_i32(-1);
    } else {
        Arg y = rows_arg(r, n->src[1], n->full);
        bool reverse = x.kind != ARG_TENSOR;
        Arg one = reverse ? x : y;
        x = reverse ? y : x;
        if (one.haz)
            reads[nreads++] = one.haz;
        in = rows_make(r, one.kind == ARG_TENSOR ? ISA_TENSOR_TENSOR : ISA_TENSOR_SCALAR, engine, &dst, n->full);
        if (one.kind == ARG_TENSOR)
            rows_src1(r, &in, &one, n->full);
        else
            in.a = scalar_of(r, &in, &one);
        in.flags = reverse ? ISA_FLAG_REVERSE0 : 0;
    }
    in.op0 = (uint8_t)op;
    rows_src(r, &in, &x, n->full);
    reads[nreads++] = x.haz;
    rows_put(r, in, reads, nreads, dst.haz);
}
