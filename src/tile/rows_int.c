// SPDX-License-Identifier: Apache-2.0
// rows_int.c — the instruction for each integer operation of a row program.
//
// The vector engine works on bits as they are, but adds in fp32; gpsimd adds and multiplies words of 32 bits, which wrap
// (aws-neuron-sdk nki/api: int32 tensor_tensor runs there). So a chain goes to and fro between the two, and tiles keep both busy. What several
// engines can do, each in its way, goes to the one with less to do so far; bits are exact whoever does it.
#include "mach/cost.h"
#include "tile/rows.h"

bool rows_is_int(const RowOp *r, const Node *n) {
    bool ints = dtype_is_int(n->dtype);
    for (uint32_t k = 0; k < n->nsrc; k++)
        ints = ints || dtype_is_int(rows_node(r, n->src[k])->dtype);
    return ints && n->kind == NODE_OP;
}

// (x << a) | (x >> b), a + b not less than 32.
static bool joins_parts(const RowOp *r, const Node *n) {
    const Node *x = rows_node(r, n->src[0]), *y = rows_node(r, n->src[1]);
    bool shifts = (x->code == HLO_SHIFT_LEFT && y->code == HLO_SHIFT_RIGHT_LOGICAL) ||
                  (y->code == HLO_SHIFT_LEFT && x->code == HLO_SHIFT_RIGHT_LOGICAL);
    return shifts && x->kind == NODE_OP && y->kind == NODE_OP &&
           rows_node(r, x->src[1])->number + rows_node(r, y->src[1])->number >= 32;
}

static const uint8_t on_bits[HLO_OPCODE_COUNT] = { // ALU_BYPASS: none
    [HLO_ADD] = ALU_ADD, [HLO_SUBTRACT] = ALU_SUB, [HLO_MULTIPLY] = ALU_MUL, [HLO_AND] = ALU_AND, [HLO_OR] = ALU_OR, [HLO_XOR] = ALU_XOR,
    [HLO_NOT] = ALU_XOR, [HLO_SHIFT_LEFT] = ALU_SHL, [HLO_SHIFT_RIGHT_LOGICAL] = ALU_SHR};

// x op a number, or one a row or for all: which operand x is; -1: it is none.
static int tensor_side(const RowOp *r, const Node *n) {
    if (n->kind != NODE_OP || n->nsrc != 2 || !n->full || n->code == HLO_COMPARE || !rows_is_int(r, n))
        return -1;
    bool one[2];
    for (int k = 0; k < 2; k++) {
        const Node *x = rows_node(r, n->src[k]);
        x = x->kind == NODE_WIDEN ? rows_node(r, x->src[0]) : x;
        one[k] = x->kind == NODE_CONST || x->scalar;
    }
    return one[0] == one[1] ? -1 : one[0];
}

static bool adds(uint16_t code) { return code == HLO_ADD || code == HLO_SUBTRACT || code == HLO_MULTIPLY; }

// --- who takes it ----------------------------------------------------------------------------------------

typedef struct Way {
    uint8_t engine, op;
    int32_t number; // of a shift: what stands in its place
} Way;

static bool is_less(const RowOp *r, int engine, int than) { return r->busy[engine] < r->busy[than]; }

// Words put together of parts that share no bit may be added, and x << k is x * 2^k; the scalar engine sees the upper half of a word as
// a number of 16 bits, which fp32 scales exactly, and rounds what is left of the point away: x >> k for k from 16 on.
static Way way_of(const RowOp *r, const Node *n) {
    Way w = {adds(n->code) ? ENG_GPSIMD : ENG_VECTOR, on_bits[n->code], 0};
    bool shift = n->code == HLO_SHIFT_LEFT || n->code == HLO_SHIFT_RIGHT_LOGICAL;
    bool gpsimd = !r->e->chip->vector_gpsimd_port && is_less(r, ENG_GPSIMD, ENG_VECTOR), full = n->full && n->kind == NODE_OP;
    if (shift)
        w.number = rows_node(r, n->src[1])->number;
    if (n->code == HLO_OR && gpsimd && joins_parts(r, n))
        return (Way){ENG_GPSIMD, ALU_ADD, 0};
    if (n->code == HLO_SHIFT_LEFT && gpsimd && full)
        return (Way){ENG_GPSIMD, ALU_MUL, (int32_t)(1u << w.number)};
    if (n->code == HLO_SHIFT_RIGHT_LOGICAL && w.number >= 16 && full && r->e->chip->generation >= 3 && is_less(r, ENG_SCALAR, ENG_VECTOR))
        w.engine = ENG_SCALAR;
    return w;
}

void rows_fold_ints(RowOp *r) {
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        for (uint32_t k = 0; n->kind == NODE_OP && n->code == HLO_OR && rows_is_int(r, n) && k < 2; k++)
            rows_node(r, n->src[k])->turns = i;
    }
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Node *n = rows_node(r, i);
        int side = n->folded ? -1 : tensor_side(r, n);
        Node *inner = side < 0 ? NULL : rows_node(r, n->src[side]);
        int deeper = inner ? tensor_side(r, inner) : -1;
        if (deeper < 0 || inner->uses != 1 || inner->is_output || inner->folded || adds(n->code) != adds(inner->code) ||
            rows_node(r, inner->src[deeper])->folded)
            continue;
        inner->folded = true;
    }
}

static uint64_t scalar_of(const RowOp *r, IsaInst *in, const Arg *a) {
    if (a->kind == ARG_NUMBER)
        return scalar_i32(rows_node(r, a->node)->number);
    in->atype = a->dtype;
    return a->addr;
}

// The bits of x, whatever their type is called.
static void put_bits(RowOp *r, const Node *n, const Arg *dst, const Arg *x) {
    IsaInst in = rows_make(r, ISA_COPY, ENG_VECTOR, dst, NULL, n->full);
    Arg same = *x;
    same.dtype = dst->dtype;
    rows_src(r, &in, &same, n->full);
    rows_put(r, in, (Haz *[]){x->haz}, 1, dst->haz);
}

// (x op0 a) op1 b
static void put_both(RowOp *r, const Node *n, const Node *inner, int side, const Arg *dst) {
    int deeper = tensor_side(r, inner);
    IsaInst in = rows_make(r, ISA_TENSOR_SCALAR, adds(n->code) ? ENG_GPSIMD : ENG_VECTOR, dst, NULL, true);
    in.op0 = on_bits[inner->code], in.op1 = on_bits[n->code];
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

// x >> k on the scalar engine: half of the last place kept, less half of what is rounded away, makes rounding to nearest cut.
static void put_upper(RowOp *r, const Node *n, int32_t k, const Arg *dst, const Arg *x) {
    IsaInst in = rows_make(r, ISA_ACTIVATE, ENG_SCALAR, dst, NULL, n->full);
    float scale = 1.0f / (float)(1u << (k - 16));
    Arg upper = *x;
    upper.addr += 2;
    upper.dtype = DT_UI16;
    upper.step[0] *= 2, upper.step[1] *= 2;
    rows_src(r, &in, &upper, n->full);
    in.fn = ACT_IDENTITY;
    in.a = scalar_f32(scale);
    in.b = scalar_f32(scale / 2 - 0.5f);
    rows_put(r, in, (Haz *[]){x->haz}, 1, dst->haz);
}

// --- rotations -------------------------------------------------------------------------------------------
//
// The scalar engine sees a word as two halves l and h: numbers of 16 bits, times a power of two no more than 32. So l * 2^k is l << k with
// what leaves its half, and x << k | x >> (32 - k) = l * 2^k + (h * 2^k with halves exchanged): two instructions there and one over halves
// elsewhere, for three elsewhere. By 16 or 24 bits it is a copy of halves or bytes.

typedef struct Turn {
    uint32_t join;          // node: x << k | x >> (32 - k)
    uint32_t first, second; // the two shifts, as they come
    uint32_t x;
    int32_t by;
} Turn;

// The rotation that the shift, or the join, is part of.
static bool turn_of(const RowOp *r, uint32_t i, Turn *t) {
    const Node *n = rows_node(r, i);
    t->join = n->code == HLO_OR ? i : n->turns;
    if (!t->join || !joins_parts(r, rows_node(r, t->join)))
        return false;
    n = rows_node(r, t->join);
    const Node *a = rows_node(r, n->src[0]), *b = rows_node(r, n->src[1]), *left = a->code == HLO_SHIFT_LEFT ? a : b;
    t->first = n->src[0] < n->src[1] ? n->src[0] : n->src[1];
    t->second = n->src[0] < n->src[1] ? n->src[1] : n->src[0];
    t->x = a->src[0];
    t->by = rows_node(r, left->src[1])->number;
    int32_t back = rows_node(r, (left == a ? b : a)->src[1])->number;
    return a->src[0] == b->src[0] && t->by + back == 32 && t->by > 0 && n->full && a->full && b->full && a->uses == 1 && b->uses == 1 &&
           !a->is_output && !b->is_output && !a->folded && !b->folded && !n->folded;
}

static bool is_move(const Turn *t) { return t->by == 16 || t->by == 24; }

// The scalar engine has the time.
static bool turn_pays(const RowOp *r, const Turn *t) {
    double most = r->busy[ENG_VECTOR] > r->busy[ENG_GPSIMD] ? r->busy[ENG_VECTOR] : r->busy[ENG_GPSIMD];
    double elems = (double)r->w * (t->by == 24 ? 4 : 2);
    return r->e->chip->generation >= 3 && t->by >= 16 && r->busy[ENG_SCALAR] + cost_pass(r->e->chip, ENG_SCALAR, elems) <= most;
}

// Elements of a word as they lie; `part` is the first.
static Arg part_of(const Arg *a, int dtype, uint32_t part) {
    Arg p = *a;
    int32_t per = (int32_t)(4 / dtype_bytes(dtype));
    p.dtype = (uint8_t)dtype;
    p.addr += part * dtype_bytes(dtype);
    p.step[0] *= per, p.step[1] *= per;
    return p;
}

// Another axis inside: n parts of each word, `d` and `s` apart.
static void set_parts(IsaInst *in, uint32_t n, int32_t d, int32_t s) {
    int axis = in->n[2] ? 3 : 2;
    in->n[axis] = n, in->d[axis] = d, in->s[axis] = s;
}

static void put_parts(RowOp *r, const Arg *dst, const Arg *x, int dtype, uint32_t to, uint32_t from, uint32_t n, int32_t s) {
    Arg d = part_of(dst, dtype, to), y = part_of(x, dtype, from);
    IsaInst in = rows_make(r, ISA_COPY, ENG_SCALAR, &d, &y, true);
    if (n > 1)
        set_parts(&in, n, 1, s);
    rows_put(r, in, (Haz *[]){x->haz}, 1, dst->haz);
}

static void put_move(RowOp *r, const Turn *t, const Arg *dst, const Arg *x) {
    if (t->by == 16) {
        put_parts(r, dst, x, DT_UI16, 0, 1, 2, -1);
        return;
    }
    put_parts(r, dst, x, DT_UI8, 0, 1, 3, 1);
    put_parts(r, dst, x, DT_UI8, 3, 0, 1, 0);
}

// Half of x times 2^k. The result lies where the part does whose halves stay.
static void put_half(RowOp *r, const Turn *t, uint32_t shift) {
    bool stays = rows_node(r, shift)->slot == rows_node(r, t->join)->slot;
    Arg dst = rows_result(r, shift), x = rows_arg(r, t->x, true), half = part_of(&x, DT_UI16, stays == (t->by > 16));
    IsaInst in = rows_make(r, ISA_ACTIVATE, ENG_SCALAR, &dst, &half, true);
    in.fn = ACT_IDENTITY;
    in.a = scalar_f32((float)(1u << (t->by & 15)));
    rows_put(r, in, (Haz *[]){x.haz}, 1, dst.haz);
}

static void put_join(RowOp *r, const Turn *t) {
    bool first = rows_node(r, t->first)->slot == rows_node(r, t->join)->slot;
    Arg dst = rows_result(r, t->join), other = rows_arg(r, first ? t->second : t->first, true);
    Arg d = part_of(&dst, DT_UI16, 0), y = part_of(&other, DT_UI16, 1);
    bool gpsimd = r->busy[ENG_GPSIMD] < r->busy[ENG_VECTOR];
    IsaInst in = rows_make(r, ISA_TENSOR_TENSOR, gpsimd ? ENG_GPSIMD : ENG_VECTOR, &d, &d, true);
    rows_src1(r, &in, &y, true);
    in.op0 = gpsimd ? ALU_ADD : ALU_OR;
    set_parts(&in, 2, 1, 1);
    in.t[in.n[3] ? 3 : 2] = -1;
    rows_put(r, in, (Haz *[]){other.haz, dst.haz}, 2, dst.haz);
}

// True when the node is part of a rotation that is done so, and has been.
static bool put_turn(RowOp *r, uint32_t i) {
    Turn t;
    if (!turn_of(r, i, &t))
        return false;
    if (i == t.first) {
        int32_t slot = rows_node(r, t.join)->slot;
        bool joins = slot >= 0 && (slot == rows_node(r, t.first)->slot || slot == rows_node(r, t.second)->slot);
        r->turn = joins && turn_pays(r, &t) && (!is_move(&t) || slot == rows_node(r, t.first)->slot) ? t.join : 0;
    }
    if (r->turn != t.join)
        return false;
    if (is_move(&t)) {
        Arg dst = rows_result(r, i), x = rows_arg(r, t.x, true);
        if (i == t.first)
            put_move(r, &t, &dst, &x);
    } else if (i == t.join) {
        put_join(r, &t);
    } else {
        put_half(r, &t, i);
    }
    return true;
}

// Bits of a word that fp32 holds exactly, beside a number.
static void put_compare(RowOp *r, const Node *n, const Arg *dst, const Arg *x) {
    IsaInst in = rows_make(r, ISA_TENSOR_SCALAR, ENG_VECTOR, dst, x, n->full);
    in.op0 = (uint8_t)rows_comparison(r, n);
    in.a = scalar_f32((float)rows_node(r, n->src[1])->number);
    rows_put(r, in, (Haz *[]){x->haz}, 1, dst->haz);
}

void rows_emit_int(RowOp *r, uint32_t i) {
    const Node *n = rows_node(r, i);
    int side = tensor_side(r, n);
    if (side >= 0 && rows_node(r, n->src[side])->folded) {
        Arg both = rows_result(r, i);
        put_both(r, n, rows_node(r, n->src[side]), side, &both);
        return;
    }
    if (put_turn(r, i))
        return;
    Arg dst = rows_result(r, i), x = rows_arg(r, n->src[0], n->full);
    if (n->code == HLO_COMPARE) {
        put_compare(r, n, &dst, &x);
        return;
    }
    Way way = way_of(r, n);
    if (way.op == ALU_BYPASS) {
        put_bits(r, n, &dst, &x);
        return;
    }
    if (way.engine == ENG_SCALAR) {
        put_upper(r, n, way.number, &dst, &x);
        return;
    }
    IsaInst in = {0};
    Haz *reads[2];
    uint32_t nreads = 0;
    if (n->code == HLO_NOT) {
        in = rows_make(r, ISA_TENSOR_SCALAR, way.engine, &dst, NULL, n->full);
        in.a = scalar_i32(-1);
    } else {
        Arg y = rows_arg(r, n->src[1], n->full);
        bool reverse = x.kind != ARG_TENSOR;
        Arg one = reverse ? x : y;
        x = reverse ? y : x;
        if (one.haz)
            reads[nreads++] = one.haz;
        in = rows_make(r, one.kind == ARG_TENSOR ? ISA_TENSOR_TENSOR : ISA_TENSOR_SCALAR, way.engine, &dst, NULL, n->full);
        if (one.kind == ARG_TENSOR)
            rows_src1(r, &in, &one, n->full);
        else if (way.number)
            in.a = scalar_i32(way.number);
        else
            in.a = scalar_of(r, &in, &one);
        in.flags = reverse ? ISA_FLAG_REVERSE0 : 0;
    }
    in.op0 = way.op;
    rows_src(r, &in, &x, n->full);
    reads[nreads++] = x.haz;
    rows_put(r, in, reads, nreads, dst.haz);
}
