// SPDX-License-Identifier: Apache-2.0
// isa.c — the instruction table, and encode and decode derived from it.
//
// A row's `fields` say which fields its encoding holds, in which order; ISA_FIELDS says how wide each
// is. Both directions walk that list. A new row needs no code here. Fields stand in isa.def as calls of
// F, T and M, which this file reads three times: as text, as a list, as a mask.
#include "isa/isa.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "base/dtype.h"

const char *const engine_names[ENG_COUNT] = {"tensor", "vector", "scalar", "gpsimd", "sync"};
static const char engine_letters[ENG_COUNT + 1] = "tvsgy";

const char *const isa_cost_names[COST_COUNT] = {
#define COST(e, name) name,
    ISA_COSTS(COST)
#undef COST
};

#define F(x) " " #x
#define T(x, letter) F(x)
#define M(x) F(x)
const IsaRow isa_rows[ISA_OP_COUNT] = {
#define INST(e, name, engines, gen, cost, fields, nki, meaning)                                    \
    [ISA_##e] = {name, engines, gen, COST_##cost, "" fields, nki, meaning},
#include "isa/isa.def"
#undef INST
};
#undef F
#undef T
#undef M

const AluRow alu_rows[ALU_COUNT] = {
#define ALU(e, name, kind, flags, meaning) [ALU_##e] = {name, kind, flags, meaning},
#include "isa/alu.def"
#undef ALU
};

const ActRow act_rows[ACT_COUNT] = {
#define ACT(e, name, set, lo, hi, meaning) [ACT_##e] = {name, ACTSET_##set, lo, hi, meaning},
#include "isa/act.def"
#undef ACT
};

const IsaField isa_fields[ISA_FIELD_COUNT] = {
#define FIELD(name, member, bytes, is_signed, kind) {#name, bytes, is_signed, kind},
    ISA_FIELDS(FIELD)
#undef FIELD
};

// A field is as wide in the encoding as in the struct.
#define FIELD(name, member, bytes, is_signed, kind)                                                \
    _Static_assert(sizeof(((IsaInst *)0)->member) == (bytes), #name " has two widths");
ISA_FIELDS(FIELD)
#undef FIELD
_Static_assert(ISA_OP_COUNT < 255 && ALU_COUNT < 255 && ACT_COUNT < 255,
               "they are one byte and 255 marks an unknown one");
_Static_assert(ISA_FIELD_COUNT <= 128, "field masks are 128 bits");
#define FIELD(name, member, bytes, is_signed, kind) +(bytes)
_Static_assert(sizeof(IsaInst) == 6 ISA_FIELDS(FIELD), "zero16 and zero32 are all that is not a field");
#undef FIELD

int isa_find(const char *mnemonic, size_t n) {
    for (int op = 0; op < ISA_OP_COUNT; op++)
        if (strlen(isa_rows[op].name) == n && !memcmp(isa_rows[op].name, mnemonic, n))
            return op;
    return -1;
}

int alu_find(const char *name, size_t n) {
    for (int i = 0; i < ALU_COUNT; i++)
        if (strlen(alu_rows[i].name) == n && !memcmp(alu_rows[i].name, name, n))
            return i;
    return -1;
}

int act_find(const char *name, size_t n) {
    for (int i = 0; i < ACT_COUNT; i++)
        if (strlen(act_rows[i].name) == n && !memcmp(act_rows[i].name, name, n))
            return i;
    return -1;
}

int isa_field_find(const char *name, size_t n) {
    for (int f = 0; f < ISA_FIELD_COUNT; f++)
        if (!strncmp(isa_fields[f].name, name, n) && !isa_fields[f].name[n])
            return f;
    return -1;
}

// --- layouts -------------------------------------------------------------------------------------

enum { // bytes of the fields: BYTES_op, BYTES_engine, …
#define FIELD(name, member, bytes, is_signed, kind) BYTES_##name = bytes,
    ISA_FIELDS(FIELD)
#undef FIELD
};

// Fields behind the head, ended by ISA_FIELD_COUNT.
#define F(x) ISA_F_##x,
#define T(x, l) F(x) F(l##r0) F(l##r1) F(l##x0) F(l##x1)
#define M(x) F(x) F(x##1) F(x##2) F(x##3)
#define INST(e, name, engines, gen, cost, fields, ...) static const uint8_t list_##e[] = {fields ISA_FIELD_COUNT};
#include "isa/isa.def"
#undef INST
static const uint8_t *const row_lists[ISA_OP_COUNT] = {
#define INST(e, ...) [ISA_##e] = list_##e,
#include "isa/isa.def"
#undef INST
};
#undef F

#define F(x) +BYTES_##x
static const uint8_t row_bytes[ISA_OP_COUNT] = {
#define INST(e, name, engines, gen, cost, fields, ...) [ISA_##e] = (ISA_HEAD_BYTES fields + 3) / 4 * 4,
#include "isa/isa.def"
#undef INST
};
#undef F

#define F(x) | ISA_BIT(ISA_F_##x)
const IsaMask isa_row_masks[ISA_OP_COUNT] = {
#define INST(e, name, engines, gen, cost, fields, ...) [ISA_##e] = (ISA_BIT(ISA_HEAD_FIELDS) - 1) fields,
#include "isa/isa.def"
#undef INST
};
#undef F
#undef T
#undef M

const uint8_t *isa_row_fields(int op) { return row_lists[op]; }

size_t isa_bytes(int op) { return row_bytes[op]; }

bool isa_row_engine(int op, int engine) {
    return engine >= 0 && engine < ENG_COUNT &&
           strchr(isa_rows[op].engines, engine_letters[engine]);
}

int isa_row_engine_default(int op) {
    return (int)(strchr(engine_letters, isa_rows[op].engines[0]) - engine_letters);
}

// Where each field is in the struct.
static const uint16_t member_at[ISA_FIELD_COUNT] = {
#define FIELD(name, member, bytes, is_signed, kind) offsetof(IsaInst, member),
    ISA_FIELDS(FIELD)
#undef FIELD
};

uint64_t isa_field_get(const IsaInst *in, int field) {
    switch (field) {
#define FIELD(name, member, bytes, is_signed, kind)                                                \
    case ISA_F_##name:                                                                             \
        return (uint64_t)in->member;
        ISA_FIELDS(FIELD)
#undef FIELD
    default:
        assert(!"no such field");
        return 0;
    }
}

void isa_field_set(IsaInst *in, int field, uint64_t v) {
    switch (field) {
#define FIELD(name, member, bytes, is_signed, kind)                                                \
    case ISA_F_##name:                                                                             \
        in->member = (__typeof__(in->member))v;                                                    \
        break;
        ISA_FIELDS(FIELD)
#undef FIELD
    default:
        assert(!"no such field");
    }
}

// Only strides the row has count: a matmul's moving operand has n1 and s1, its n2 belongs to the
// result.
void isa_dense_strides(const IsaInst *in, IsaMask mask, char operand, int32_t out[5]) {
    int first = operand == 'd' ? ISA_F_d0 : operand == 's' ? ISA_F_s0 : ISA_F_t0;
    uint64_t addr = operand == 'd' ? in->dst : operand == 's' ? in->src : in->src1;
    uint64_t stride = 1;
    memset(out, 0, 5 * sizeof *out);
    for (int axis = 4; axis >= 0; axis--) {
        if (!(mask >> (first + axis) & 1) || in->n[axis] <= 1)
            continue;
        if (axis == 0 && addr_space(addr) != SPACE_HBM)
            continue;
        out[axis] = stride > INT32_MAX ? 0 : (int32_t)stride;
        if (__builtin_mul_overflow(stride, (uint64_t)in->n[axis], &stride))
            stride = UINT64_MAX;
    }
}

// --- encode and decode ---------------------------------------------------------------------------

// Fields are copied byte for byte where the host is little-endian, as every host we build for is.
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "encodings are little-endian");

static inline void copy_field(void *to, const void *from, int bytes) {
    switch (bytes) {
    case 1:
        memcpy(to, from, 1);
        return;
    case 2:
        memcpy(to, from, 2);
        return;
    case 4:
        memcpy(to, from, 4);
        return;
    default:
        memcpy(to, from, 8);
    }
}

static inline uint8_t *encode_field(const IsaInst *in, int f, uint8_t *p) {
    copy_field(p, (const uint8_t *)in + member_at[f], isa_fields[f].bytes);
    return p + isa_fields[f].bytes;
}

size_t isa_encode(const IsaInst *in, uint8_t out[ISA_BYTES_MAX]) {
    memset(out, 0, row_bytes[in->op]);
    uint8_t *p = out;
    for (int f = 0; f < ISA_HEAD_FIELDS; f++)
        p = encode_field(in, f, p);
    for (const uint8_t *f = row_lists[in->op]; *f < ISA_FIELD_COUNT; f++)
        p = encode_field(in, *f, p);
    return row_bytes[in->op];
}

bool isa_is_clean(const IsaInst *in) {
    IsaMask mask = 0;
#define FIELD(name, member, bytes, is_signed, kind) mask |= (IsaMask)(in->member != 0) << ISA_F_##name;
    ISA_FIELDS(FIELD)
#undef FIELD
    return !(mask & ~isa_row_mask(in->op));
}

// A wait slot without a semaphore carries no value, and so does a signal.
static const char *sem_fault(const IsaInst *in) {
    for (int w = 0; w < 2; w++) {
        int sem = in->wait_sem[w];
        if (sem == SEM_NONE) {
            if (in->wait_val[w])
                return "a wait value without a semaphore";
            continue;
        }
        if ((sem & ~SEM_BACK) >= SEM_COUNT)
            return "a wait on a semaphore that does not exist";
        if (sem & SEM_BACK && (sem & ~SEM_BACK) >= SEM_USER)
            return "a wait that counts back on a semaphore of the program's own";
    }
    if (in->upd_sem > USER_SEMS)
        return "a signal to a semaphore that does not exist";
    if (!in->upd_sem && (in->upd_op || in->upd_val))
        return "a signal without a semaphore";
    if ((in->upd_op & ~UPD_AT_READ) > UPD_WRITE)
        return "an unknown kind of signal";
    return NULL;
}

// A multiplier has its register, and the second term comes after a first.
static const char *term_fault(const IsaInst *in) {
    const uint8_t *regs[] = {in->reg_d, in->reg_s, in->reg_t};
    const int32_t *muls[] = {in->mul_d, in->mul_s, in->mul_t};
    for (int i = 0; i < 3; i++) {
        const uint8_t *reg = regs[i];
        if (reg[0] > ISA_REGS || reg[1] > ISA_REGS)
            return "an address with a register that does not exist";
        if ((!reg[0] && (muls[i][0] || reg[1])) || (!reg[1] && muls[i][1]))
            return "an address with a multiplier without a register";
    }
    return NULL;
}

static const uint8_t *map_of(const IsaMap *map, int kind) {
    switch (kind) {
    case FK_DTYPE:
        return map->dtype;
    case FK_ALU:
        return map->alu;
    case FK_ACT:
        return map->act;
    default:
        return NULL;
    }
}

// How many values a field of a kind with names has; 0 = any.
static int kind_values(int kind) {
    switch (kind) {
    case FK_DTYPE:
        return DT_COUNT;
    case FK_ALU:
        return ALU_COUNT;
    case FK_ACT:
        return ACT_COUNT;
    case FK_RCMD:
        return RCMD_COUNT;
    case FK_MODE:
        return DGE_COUNT;
    default:
        return 0;
    }
}

static const uint8_t *decode_field(Rd *r, const IsaMap *map, int f, const uint8_t *p, IsaInst *out) {
    uint8_t *to = (uint8_t *)out + member_at[f];
    copy_field(to, p, isa_fields[f].bytes);
    int values = kind_values(isa_fields[f].kind);
    const uint8_t *names = map && values ? map_of(map, isa_fields[f].kind) : NULL;
    if (names)
        *to = names[*to];
    if (values && *to >= values)
        rd_fail(r, "`%s`: unknown %s number %u", isa_rows[out->op].name, isa_fields[f].name, *p);
    return p + isa_fields[f].bytes;
}

void isa_decode(Rd *r, const IsaMap *map, IsaInst *out) {
    if (r->at >= r->end)
        rd_fail(r, "an instruction is cut off");
    int op = map ? map->op[*r->at] : *r->at;
    if (op >= ISA_OP_COUNT && map)
        ctx_hint(r->ctx, "the file may come from another release than " OTRN_RELEASE);
    if (op >= ISA_OP_COUNT)
        rd_fail(r, "unknown instruction number %u", *r->at);
    const uint8_t *p = rd_bytes(r, row_bytes[op]), *end = p + row_bytes[op];
    *out = (IsaInst){.op = (uint8_t)op};
    p++;
    for (int f = 1; f < ISA_HEAD_FIELDS; f++)
        p = decode_field(r, map, f, p, out);
    for (const uint8_t *f = row_lists[op]; *f < ISA_FIELD_COUNT; f++)
        p = decode_field(r, map, *f, p, out);
    const IsaRow *row = &isa_rows[op];
    while (p < end)
        if (*p++)
            rd_fail(r, "`%s` has reserved bytes that are not zero", row->name);
    if (!isa_row_engine(op, out->engine))
        rd_fail(r, "`%s` cannot stand on engine number %u", row->name, out->engine);
    const char *fault = sem_fault(out);
    if (!fault)
        fault = term_fault(out);
    if (fault)
        rd_fail(r, "`%s` has %s", row->name, fault);
}

int64_t isa_alu_reg(int op, int64_t x, int64_t y) {
    switch (op) {
    case ALU_ADD:
        return (int64_t)((uint64_t)x + (uint64_t)y);
    case ALU_SUB:
        return (int64_t)((uint64_t)x - (uint64_t)y);
    case ALU_MUL:
        return (int64_t)((uint64_t)x * (uint64_t)y);
    case ALU_MAX:
        return x > y ? x : y;
    case ALU_MIN:
        return x < y ? x : y;
    case ALU_EQ:
        return x == y;
    case ALU_NE:
        return x != y;
    case ALU_LT:
        return x < y;
    case ALU_LE:
        return x <= y;
    case ALU_GT:
        return x > y;
    case ALU_GE:
        return x >= y;
    case ALU_AND:
        return x & y;
    case ALU_OR:
        return x | y;
    case ALU_XOR:
        return x ^ y;
    case ALU_SHL:
        return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);
    case ALU_SHR:
        return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x >> y);
    default:
        return x;
    }
}
