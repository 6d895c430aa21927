// SPDX-License-Identifier: Apache-2.0
// check.c — holds an instruction against rules.def and the memories of a chip.
//
// Rules that a table cannot say in a word (tiles of the array, double rows, pairs of types) follow it
// as small functions, one per instruction, each with the documented limit.
#include "isa/check.h"

#include <stdio.h>

const IsaChip isa_chip_largest = {4, ISA_SBUF_BYTES, ISA_PSUM_BYTES, 0};

enum AluSet { // sets of operations; SET_NONE: only bypass
    SET_NONE, SET_CMP, SET_DRAW, SET_REG, SET_DMA, SET_BINARY, SET_ANY, SET_ARITH, SET_ARITH2, SET_REDUCE,
    SET_PART, SET_CUM, SET_RED4, SET_RED5, SET_ADD, SET_MAX, SET_SCALE,
};

typedef struct Rule {
    uint8_t op0, op1, rop, flags;
    const char *types, *same;
    uint32_t lo, hi, mult;
} Rule;

#define ACCUMULATE ISA_FLAG_ACCUMULATE
#define TRANSPOSE ISA_FLAG_TRANSPOSE
#define DOUBLE_ROW ISA_FLAG_DOUBLE_ROW
#define ONEZERO ISA_FLAG_ONEZERO
#define REVERSE0 ISA_FLAG_REVERSE0
#define REVERSE1 ISA_FLAG_REVERSE1
#define NEGATE ISA_FLAG_NEGATE
#define SKIP ISA_FLAG_SKIP
static const Rule rules[ISA_OP_COUNT] = {
#define RULE(e, op0, op1, rop, flags, types, same, lo, hi, mult)                                   \
    [ISA_##e] = {SET_##op0, SET_##op1, SET_##rop, flags, types, same, lo, hi, mult},
#include "isa/rules.def"
#undef RULE
};
#undef ACCUMULATE
#undef TRANSPOSE
#undef DOUBLE_ROW
#undef ONEZERO
#undef REVERSE0
#undef REVERSE1
#undef NEGATE
#undef SKIP
static const Rule plain = {0, 0, 0, 0, "nnnnn", "", 0, 65536, 1};

typedef struct Check {
    const IsaInst *in;
    const IsaRow *row;
    const Rule *rule;
    const IsaChip *chip;
    IsaMask mask;
    char *why;
} Check;

static const char *fault(const Check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *fault(const Check *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->why, ISA_WHY, fmt, ap);
    va_end(ap);
    return c->why;
}

static bool has(const Check *c, int f) { return c->mask >> f & 1; }

// --- operations ----------------------------------------------------------------------------------

static bool one_of(int op, int n, const uint8_t *ops) {
    for (int i = 0; i < n; i++)
        if (ops[i] == op)
            return true;
    return false;
}
#define ONE_OF(op, ...) one_of(op, sizeof((uint8_t[]){__VA_ARGS__}), (uint8_t[]){__VA_ARGS__})

static bool in_set(int set, int op) {
    const AluRow *row = &alu_rows[op];
    bool compares = op >= ALU_EQ && op <= ALU_GE;
    switch (set) {
    case SET_CMP:
        return compares;
    case SET_DRAW:
        return ONE_OF(op, ALU_BYPASS, ALU_LT, ALU_GE);
    case SET_REG:
        return strchr(row->flags, 'N') != NULL;
    case SET_DMA:
        return ONE_OF(op, ALU_BYPASS, ALU_ADD, ALU_MIN, ALU_MAX);
    case SET_BINARY:
        return row->kind != 'U' && op != ALU_NOT && op != ALU_AVERAGE;
    case SET_ANY:
        return op != ALU_AVERAGE;
    case SET_ARITH:
        return row->kind != 'B' && op != ALU_AVERAGE;
    case SET_ARITH2:
        return (row->kind == 'A' || row->kind == 'C') && op != ALU_AVERAGE;
    case SET_REDUCE:
        return strchr(row->flags, 'R') && op != ALU_AVERAGE;
    case SET_PART:
        return ONE_OF(op, ALU_ADD, ALU_AVERAGE, ALU_MAX, ALU_OR, ALU_AND);
    case SET_CUM:
        return ONE_OF(op, ALU_ADD, ALU_SUB, ALU_MUL, ALU_MAX, ALU_MIN);
    case SET_RED4:
        return ONE_OF(op, ALU_ADD, ALU_MUL, ALU_MAX, ALU_MIN);
    case SET_RED5:
        return ONE_OF(op, ALU_BYPASS, ALU_ADD, ALU_MAX, ALU_MIN, ALU_ABS_MAX, ALU_ABS_MIN);
    case SET_ADD:
        return ONE_OF(op, ALU_BYPASS, ALU_ADD);
    case SET_MAX:
        return ONE_OF(op, ALU_BYPASS, ALU_MAX);
    case SET_SCALE:
        return ONE_OF(op, ALU_BYPASS, ALU_MUL, ALU_ADD, ALU_SUB);
    default:
        return op == ALU_BYPASS;
    }
}

// Which engine has the operation (facts: engine support of operators).
static const char *engine_fault(const Check *c, int op) {
    int e = c->in->engine;
    if (c->row->cost == COST_REG || c->row->cost == COST_BRANCH || c->row->cost == COST_DMA)
        return NULL;
    if (op == ALU_POW && e != ENG_GPSIMD)
        return "power is on gpsimd only";
    if (op == ALU_RSQRT && e != ENG_GPSIMD && e != ENG_SCALAR)
        return "rsqrt is on gpsimd and scalar only";
    if (alu_rows[op].kind == 'B' && e != ENG_VECTOR && c->in->op != ISA_PART_REDUCE)
        return "bitwise operations are on vector only";
    if (op == ALU_ABS_MIN && c->chip->gen < 4)
        return "abs_min is there from trn3 on";
    return NULL;
}

static const char *check_ops(const Check *c) {
    const IsaInst *in = c->in;
    const uint8_t sets[3] = {c->rule->op0, c->rule->op1, c->rule->rop};
    const uint8_t ops[3] = {in->op0, in->op1, in->rop};
    static const char *const names[3] = {"op0", "op1", "rop"};
    static const uint8_t fields[3] = {ISA_F_op0, ISA_F_op1, ISA_F_rop};
    for (int i = 0; i < 3; i++) {
        if (!has(c, fields[i]))
            continue;
        if (!in_set(sets[i], ops[i]))
            return fault(c, "%s: %s cannot stand here", names[i], alu_rows[ops[i]].name);
        const char *engine = engine_fault(c, ops[i]);
        if (engine)
            return fault(c, "%s: %s", names[i], engine);
    }
    bool bits0 = alu_rows[in->op0].kind == 'B', bits1 = alu_rows[in->op1].kind == 'B';
    if (has(c, ISA_F_op1) && in->op0 && in->op1 && bits0 != bits1)
        return fault(c, "op0 and op1: %s and %s, both must be bitwise or neither",
                     alu_rows[in->op0].name, alu_rows[in->op1].name);
    bool on_bits = c->row->cost != COST_REG && (bits0 || bits1);
    if (on_bits && (!dtype_is_int(in->dtype) || (has(c, ISA_F_src) && !dtype_is_int(in->stype)) ||
                    (has(c, ISA_F_ttype) && !dtype_is_int(in->ttype))))
        return fault(c, "%s: a bitwise operation takes integers", bits0 ? "op0" : "op1");
    return NULL;
}

// --- types ---------------------------------------------------------------------------------------

static bool is_fp8(int d) {
    return d == DT_F8E3M4 || d == DT_F8E4M3 || d == DT_F8E4M3FN || d == DT_F8E5M2;
}

static bool type_ok(char class, int d) {
    size_t bytes = dtype_bytes(d);
    bool number = bytes && bytes <= 4 && !dtype_is_complex(d);
    switch (class) {
    case 'i':
        return number && dtype_is_int(d);
    case 'u':
        return number && (dtype_rows[d].cls == DC_UINT || d == DT_I1);
    case 'w':
        return d == DT_UI16 || d == DT_UI32;
    case '2':
        return d == DT_BF16 || d == DT_F16;
    case '4':
        return d == DT_F32;
    case 'f':
        return number && dtype_is_float(d);
    case 'p':
        return dtype_on_tensor_engine(d);
    case 'x':
        return d == DT_F8E4M3FN || d == DT_F8E5M2 || d == DT_F4E2M1FN;
    case '8':
        return d == DT_UI8 || d == DT_F8E8M0FNU;
    case '*':
        return bytes > 0;
    default:
        return number;
    }
}

static const char *check_types(const Check *c, const IsaAccess *a, int n) {
    static const uint8_t fields[5] = {ISA_F_dst, ISA_F_src, ISA_F_src1, ISA_F_a, ISA_F_res};
    for (int i = 0; i < n; i++) {
        int at = 0, field = a[i].field == ISA_F_b ? ISA_F_a : a[i].field;
        while (fields[at] != field)
            at++;
        if (!dtype_bytes(a[i].dtype))
            return fault(c, "%s has no element type", isa_fields[a[i].field].name);
        if (!type_ok(c->rule->types[at], a[i].dtype))
            return fault(c, "%s: `%s` does not take %s here", isa_fields[a[i].field].name, c->row->name,
                         dtype_row(a[i].dtype)->name);
    }
    const IsaInst *in = c->in;
    bool pair = strchr(c->rule->same, 'd') && in->src && in->dtype != in->stype;
    if (pair)
        return fault(c, "dst and src: %s and %s, `%s` does not convert", dtype_row(in->dtype)->name,
                     dtype_row(in->stype)->name, c->row->name);
    return NULL;
}

// --- counts --------------------------------------------------------------------------------------

#define FREE_MAX_SBUF 65536u
#define FREE_MAX_PSUM 16384u // bytes; 4096 fp32

static const char *check_counts(const Check *c, const IsaAccess *a, int n) {
    uint32_t n1 = isa_count(c->in->n[1]);
    const Rule *r = c->rule;
    if (has(c, ISA_F_n1) && (n1 < r->lo || n1 > r->hi || n1 % r->mult)) {
        if (r->mult > 1)
            return fault(c, "n1=%u: `%s` takes a multiple of %u in %u…%u", n1, c->row->name, r->mult,
                         r->lo, r->hi);
        return fault(c, "n1=%u: `%s` takes %u…%u", n1, c->row->name, r->lo, r->hi);
    }
    for (int i = 0; i < n; i++) {
        if (!a[i].by_engine)
            continue;
        unsigned __int128 elems = 1;
        for (int axis = 1; axis < ISA_AXES; axis++)
            elems *= a[i].n[axis];
        bool psum = addr_space(a[i].addr) == SPACE_PSUM;
        unsigned __int128 most = psum ? FREE_MAX_PSUM / dtype_bytes(a[i].dtype) : FREE_MAX_SBUF;
        if (psum && most > 8192)
            most = 8192;
        if (elems > most)
            return fault(c, "%s has more than %u elements a partition", isa_fields[a[i].field].name,
                         (uint32_t)most);
    }
    return NULL;
}

// --- rules of single instructions ------------------------------------------------------------------

static const char *check_tile(const Check *c, uint32_t rows, uint32_t cols) {
    const IsaInst *in = c->in;
    uint32_t trows = in->trows ? in->trows : 128, tcols = in->tcols ? in->tcols : 128;
    if (!ONE_OF((int)trows, 32, 64, 128) || !ONE_OF((int)tcols, 32, 64, 128))
        return fault(c, "a tile of %u x %u: sides are 32, 64 or 128", trows, tcols);
    if (c->chip->gen < 3 && (trows < 64 || tcols < 64))
        return fault(c, "a tile of %u x %u: sides of 32 are there from trn2 on", trows, tcols);
    if (in->trow % trows || in->tcol % tcols || in->trow + trows > 128 || in->tcol + tcols > 128)
        return fault(c, "a tile of %u x %u cannot begin at row %u, column %u", trows, tcols, in->trow,
                     in->tcol);
    if (rows > trows || cols > tcols)
        return fault(c, "%u x %u does not fit the array: it has %u x %u cells here", rows, cols, trows,
                     tcols);
    if (in->flags & ISA_FLAG_DOUBLE_ROW && tcols != 128)
        return fault(c, "double_row does not go with column tiles");
    if ((in->op == ISA_MATMUL_MX || in->op == ISA_LDWEIGHTS_MX) && tcols != 128)
        return fault(c, "MX does not go with column tiles");
    return NULL;
}

static const char *check_pe(const Check *c) {
    const IsaInst *in = c->in;
    bool is_matmul = in->op == ISA_MATMUL || in->op == ISA_MATMUL_MX;
    bool mx = in->op == ISA_MATMUL_MX || in->op == ISA_LDWEIGHTS_MX;
    uint32_t k = isa_count(in->n[0]), m = isa_count(is_matmul ? in->n[2] : in->n[1]);
    const char *tile = check_tile(c, k, m);
    if (tile)
        return tile;
    if (mx && k % 32)
        return fault(c, "n0=%u: MX takes a multiple of 32 partitions", k);
    if (in->flags & ISA_FLAG_DOUBLE_ROW) {
        if (c->chip->gen < 3)
            return fault(c, "double_row is there from trn2 on");
        if (!is_fp8(in->stype) || in->stype == DT_F8E3M4)
            return fault(c, "double_row takes f8E4M3, f8E4M3FN or f8E5M2");
        if (in->flags & ISA_FLAG_TRANSPOSE)
            return fault(c, "double_row does not go with transpose");
        if (!in->step)
            return fault(c, "double_row needs step, the elements between the two rows");
    } else if (in->step) {
        return fault(c, "step belongs to double_row");
    }
    if (in->flags & ISA_FLAG_ONEZERO && in->stype != DT_F32)
        return fault(c, "onezero belongs to f32 operands");
    if (!is_matmul)
        return NULL;
    uint64_t moving = (uint64_t)isa_count(in->n[1]) * (mx ? 1 : isa_count(in->n[3]));
    int dtype = in->dtype ? in->dtype : DT_F32;
    uint64_t most = c->chip->gen < 4 ? ISA_MOVING_MAX : dtype == DT_BF16 ? 8192 : 4096;
    if (moving > most)
        return fault(c, "%llu moving columns, at most %llu", (unsigned long long)moving,
                     (unsigned long long)most);
    bool transposes = in->flags & ISA_FLAG_TRANSPOSE;
    if (transposes && c->chip->gen >= 3 ? dtype_bytes(dtype) < dtype_bytes(in->stype) || dtype_bytes(dtype) < 2
                                        : dtype != DT_F32 && (dtype != DT_BF16 || c->chip->gen < 4))
        return fault(c, "dst: PSUM does not take %s here", dtype_row(dtype)->name);
    return NULL;
}

static const char *check_dma(const Check *c) {
    const IsaInst *in = c->in;
    int dtype = in->dtype ? in->dtype : in->stype;
    bool converts = dtype != in->stype;
    if ((converts || in->op0) && (!type_ok('n', dtype) || !type_ok('n', in->stype)))
        return fault(c, "%s and %s: DMA computes in fp32, on numbers of up to 4 bytes",
                     dtype_row(dtype)->name, dtype_row(in->stype)->name);
    if (in->mode == DGE_HW && c->chip->gen < 3)
        return fault(c, "mode hwdge is there from trn2 on");
    if (in->mode == DGE_HW && (converts || in->op == ISA_DMA_INDIRECT))
        return fault(c, "mode hwdge neither converts nor takes indices");
    if (in->op == ISA_DMA_TRANSPOSE && dtype_bytes(in->stype) != 2 && dtype_bytes(in->stype) != 4)
        return fault(c, "stype: dma_transpose moves elements of 2 or 4 bytes");
    if (in->op != ISA_DMA_INDIRECT)
        return NULL;
    if (in->limit < 1)
        return fault(c, "limit=%d: the rows an index may name", in->limit);
    if (addr_space(in->src) != SPACE_HBM && addr_space(in->dst) != SPACE_HBM)
        return fault(c, "dst or src must be in HBM, where rows are named by index");
    return NULL;
}

static const char *check_special(const Check *c) {
    const IsaInst *in = c->in;
    switch (in->op) {
    case ISA_TENSOR_TENSOR:
    case ISA_SCALAR_TT:
    case ISA_SCAN:
        if (addr_space(in->src) == SPACE_PSUM && addr_space(in->src1) == SPACE_PSUM)
            return fault(c, "src and src1 are both in PSUM, one of them may be");
        return NULL;
    case ISA_TENSOR_SCALAR:
        if (in->engine == ENG_SCALAR && c->chip->gen < 3)
            return fault(c, "tensor_scalar on the scalar engine is there from trn2 on");
        if (in->engine == ENG_SCALAR && c->chip->gen == 3 &&
            (!ONE_OF(in->op0, ALU_MUL, ALU_ADD) || !ONE_OF(in->op1, ALU_BYPASS, ALU_ADD) ||
             (in->op0 == ALU_ADD && in->op1)))
            return fault(c, "op0: the scalar engine of trn2 has multiply and add, multiply, or add");
        return NULL;
    case ISA_TRANSPOSE: {
        uint32_t n0 = isa_count(in->n[0]), n1 = isa_count(in->n[1]);
        if (in->engine == ENG_TENSOR && (n0 > 128 || n1 > 128))
            return fault(c, "%u x %u: the array transposes up to 128 x 128", n0, n1);
        if (in->engine == ENG_VECTOR && (n0 > 32 || n1 > 32) && (n0 % 32 || n1 % 32))
            return fault(c, "%u x %u: the vector engine transposes blocks of 32 x 32", n0, n1);
        return NULL;
    }
    case ISA_SHUFFLE:
        for (int i = 0; i < 32; i++) {
            unsigned from = in->mask[i / 8] >> i % 8 * 8 & 0xff;
            if (from >= 32 && from != 255)
                return fault(c, "mask: %u is neither 0…31 nor 255", from);
        }
        return NULL;
    case ISA_SELECT_REDUCE:
        if (dtype_bytes(in->ttype) > 2)
            return fault(c, "src1: the predicate has at most 16 bits");
        return NULL;
    case ISA_DROPOUT_AT:
        return in->op0 == ALU_BYPASS ? fault(c, "op0: dropout_at compares, less or greater_equal") : NULL;
    case ISA_QUANT_MX:
        if (isa_count(in->n[0]) % 32)
            return fault(c, "n0=%u: quantize_mx takes a multiple of 32 partitions", in->n[0]);
        return in->dtype == DT_F4E2M1FN ? fault(c, "dst: quantize_mx writes fp8") : NULL;
    case ISA_LOCAL_GATHER:
        if (!ONE_OF((int)isa_count(in->n[2]), 1, 2, 4, 8, 16, 32))
            return fault(c, "n2=%u: elements per index are 1, 2, 4, 8, 16 or 32", in->n[2]);
        return in->imm < 1 || in->imm > 65536 ? fault(c, "imm=%d: the size of src", in->imm) : NULL;
    case ISA_N_GATHER:
        return in->imm < 1 || in->imm > 65536 ? fault(c, "imm=%d: the size of src", in->imm) : NULL;
    case ISA_TOPK:
        if (in->imm < 1 || in->imm >= 32768 || (uint32_t)in->imm > isa_count(in->n[1]))
            return fault(c, "imm=%d: the values kept, 1…%u", in->imm, isa_count(in->n[1]));
        return in->n[0] % 16 || !in->n[0] ? fault(c, "n0=%u: groups of 16 partitions", in->n[0]) : NULL;
    case ISA_NONZERO:
        return in->n[0] > 128 ? fault(c, "n0=%u: partitions", in->n[0]) : NULL;
    case ISA_RNG_SET:
    case ISA_RNG_GET: {
        uint32_t words = in->engine == ENG_VECTOR ? 24 : 6;
        return isa_count(in->n[1]) != words
                   ? fault(c, "n1=%u: the generator's state is %u words", in->n[1], words) : NULL;
    }
    case ISA_LOOP:
        return in->step < 1 ? fault(c, "step=%d: a loop counts up", in->step) : NULL;
    case ISA_REG_LOAD:
        return !dtype_is_int(in->stype) && in->stype != DT_I1
                   ? fault(c, "src: loads a %s, registers hold integers", dtype_row(in->stype)->name) : NULL;
    case ISA_REG_STORE:
        return !dtype_is_int(in->dtype) && in->dtype != DT_I1
                   ? fault(c, "dst: stores a %s, registers hold integers", dtype_row(in->dtype)->name) : NULL;
    case ISA_COPY_PRED:
        return !in->src && !in->a ? fault(c, "src or a must be given") : NULL;
    default:
        return NULL;
    }
}

static const char *check_regs(const Check *c) {
    const IsaInst *in = c->in;
    if ((has(c, ISA_F_reg) && in->reg >= ISA_REGS) || (has(c, ISA_F_areg) && in->areg >= ISA_REGS) ||
        in->breg > ISA_REGS)
        return fault(c, "register %d does not exist, there are %d",
                     in->reg >= ISA_REGS ? in->reg : in->areg >= ISA_REGS ? in->areg : in->breg - 1,
                     ISA_REGS);
    if (has(c, ISA_F_rcmd) && in->rcmd == RCMD_LOAD_REDUCE && has(c, ISA_F_b) && !in->b)
        return fault(c, "rcmd load_reduce needs b, what it begins with");
    if (has(c, ISA_F_rcmd) && has(c, ISA_F_rop) && in->rcmd >= RCMD_REDUCE && in->rop == ALU_BYPASS)
        return fault(c, "rop: rcmd reduces by an operation");
    return NULL;
}

const char *isa_check(const IsaInst *in, IsaMask mask, const IsaChip *chip, char why[ISA_WHY]) {
    const Rule *rule = rules[in->op].types ? &rules[in->op] : &plain;
    Check c = {in, &isa_rows[in->op], rule, chip, mask, why};
    if (c.row->gen > chip->gen)
        return fault(&c, "this chip does not have it, it came with trn%d", c.row->gen - 1);
    if (in->flags & ~rule->flags)
        return fault(&c, "flags: unknown flags %u", in->flags & ~rule->flags);
    if (isa_has_queue(in) && in->queue >= DMA_QUEUES)
        return fault(&c, "queue %u does not exist, there are %d", in->queue, DMA_QUEUES);
    IsaAccess a[ISA_ACCESS_MAX];
    int n = isa_accesses(in, mask, a);
    const char *bad = check_types(&c, a, n);
    if (!bad)
        bad = check_ops(&c);
    if (!bad)
        bad = check_regs(&c);
    if (!bad && c.row->cost == COST_DMA)
        bad = check_dma(&c);
    if (!bad && (c.row->cost == COST_MATMUL || c.row->cost == COST_LDWEIGHTS))
        bad = check_pe(&c);
    if (!bad)
        bad = check_counts(&c, a, n);
    return bad ? bad : check_special(&c);
}

// --- operands in memory ----------------------------------------------------------------------------

enum { IN_HBM = 1 << SPACE_HBM, IN_SBUF = 1 << SPACE_SBUF, IN_PSUM = 1 << SPACE_PSUM };

static int spaces_of(const IsaInst *in, const IsaAccess *a) {
    switch ((IsaCost)isa_rows[in->op].cost) {
    case COST_REGLOAD:
        return IN_HBM | IN_SBUF;
    case COST_DMA:
        return a->field == ISA_F_src1 || in->op == ISA_SENDRECV ? IN_SBUF : IN_HBM | IN_SBUF;
    case COST_QUANTMX:
        return IN_SBUF;
    default:
        break;
    }
    if (in->engine == ENG_TENSOR)
        return a->field == ISA_F_dst ? IN_PSUM : IN_SBUF;
    return in->engine == ENG_GPSIMD ? IN_SBUF : IN_SBUF | IN_PSUM;
}

// Above 64 partitions begin at 0, above 32 at 0 or 64, else at a multiple of 32.
static const char *check_partitions(const Check *c, const IsaAccess *a) {
    uint32_t start = addr_part(a->addr), step = a->parts > 64 ? 128 : a->parts > 32 ? 64 : 32;
    const char *what = isa_fields[a->field].name;
    uint32_t parts = a->parts;
    if (c->in->op == ISA_SHUFFLE)
        parts = (parts + 31) & ~31u; // whole groups take part
    if (start + (uint64_t)parts > PARTITIONS)
        return fault(c, "%s takes partitions %u…%llu of %d", what, start,
                     (unsigned long long)start + parts - 1, PARTITIONS);
    if (a->by_engine && start % step)
        return fault(c, "%s begins at partition %u, but %u partitions must begin at a multiple of %u",
                     what, start, parts, step);
    return NULL;
}

// Before trn3 a product stays in one bank; register terms then go by whole banks, or stay inside.
static const char *check_bank(const Check *c, const IsaAccess *a, __int128 lo, __int128 hi) {
    if (c->chip->gen >= 4 || a->field != ISA_F_dst || c->in->engine != ENG_TENSOR)
        return NULL;
    bool by_banks = a->reg && a->mul[0] % (int)PSUM_BANK_BYTES == 0 &&
                    (!a->reg[1] || a->mul[1] % (int)PSUM_BANK_BYTES == 0);
    __int128 first, last;
    isa_access_extent(a, &first, &last);
    first += addr_poff(a->addr) + (by_banks ? 0 : lo);
    last += addr_poff(a->addr) + (by_banks ? 0 : hi);
    if (first / PSUM_BANK_BYTES != (last - 1) / PSUM_BANK_BYTES)
        return fault(c, "dst crosses a PSUM bank (%u bytes)", PSUM_BANK_BYTES);
    return NULL;
}

const char *isa_check_access(const IsaInst *in, const IsaAccess *a, const IsaChip *chip, __int128 lo,
                             __int128 hi, char why[ISA_WHY]) {
    Check c = {.in = in, .row = &isa_rows[in->op], .chip = chip, .why = why};
    const char *what = isa_fields[a->field].name;
    int space = addr_space(a->addr), size = (int)dtype_bytes(a->dtype);
    if (space >= SPACE_COUNT || !(spaces_of(in, a) >> space & 1))
        return fault(&c, "%s is in %s, which this instruction does not reach", what,
                     space == SPACE_HBM ? "HBM" : space == SPACE_SBUF ? "SBUF" : space == SPACE_PSUM ? "PSUM" : "no memory");
    uint64_t off = space == SPACE_HBM ? addr_off(a->addr) : addr_poff(a->addr);
    if (off % (unsigned)size || (a->reg && (a->mul[0] % size || (a->reg[1] && a->mul[1] % size))))
        return fault(&c, "%s is not aligned to its element of %d bytes", what, size);
    if (space == SPACE_HBM)
        return NULL;
    if (a->addr >> 40 & 0xffff)
        return fault(&c, "%s has reserved address bits set", what);
    if (a->stride[0])
        return fault(&c, "%s has a stride on the partition axis", what);
    const char *bad = check_partitions(&c, a);
    if (bad)
        return bad;
    __int128 first, last;
    isa_access_extent(a, &first, &last);
    uint32_t limit = space == SPACE_SBUF ? chip->sbuf_bytes : chip->psum_bytes;
    if (off + first + lo < 0 || off + last + hi > limit)
        return fault(&c, "%s reaches outside the %u bytes of a partition", what, limit);
    return check_bank(&c, a, lo, hi);
}
