// SPDX-License-Identifier: Apache-2.0
// isa.c — the instruction table, and encode and decode derived from it.
//
// ISA_FIELDS says where each field stands, a row's `fields` text says which of them an instruction
// uses. Both directions are that list expanded into straight-line loads and stores; a bit mask per
// row, made from its text, finds fields that must be zero and are not. A new row needs no code
// here.
#include "isa/isa.h"

#include <assert.h>
#include <stddef.h>

#include "base/dtype.h"

const char *const engine_names[ENG_COUNT] = {"tensor", "vector", "scalar", "gpsimd", "sync"};
static const char engine_letters[ENG_COUNT + 1] = "tvsgy";

const char *const isa_cost_names[COST_COUNT] = {
    "control",   "barrier", "branch",      "regload", "dma",
    "ldweights", "matmul",  "elementwise", "kernel",
};

const IsaRow isa_rows[ISA_OP_COUNT] = {
#define INST(e, name, engines, cost, fields, meaning)                                              \
    [ISA_##e] = {name, engines, COST_##cost, fields, meaning},
#include "isa/isa.def"
#undef INST
};

const IsaField isa_fields[ISA_FIELD_COUNT] = {
#define FIELD(name, member, at, bytes, is_signed) {#name, at, bytes, is_signed},
    ISA_FIELDS(FIELD)
#undef FIELD
};

// A field is as wide in the encoding as in the struct, and inside the instruction.
#define FIELD(name, member, at, bytes, is_signed)                                                  \
    _Static_assert(sizeof(((IsaInst *)0)->member) == (bytes), #name " has two widths");            \
    _Static_assert((at) + (bytes) <= ISA_BYTES, #name " lies outside the instruction");
ISA_FIELDS(FIELD)
#undef FIELD
_Static_assert(ISA_OP_COUNT < 255, "an opcode is one byte and 255 marks an unknown one");
_Static_assert(ISA_FIELD_COUNT <= 32, "field masks are 32 bits");

int isa_find(const char *mnemonic, size_t n) {
    for (int op = 0; op < ISA_OP_COUNT; op++)
        if (strlen(isa_rows[op].name) == n && !memcmp(isa_rows[op].name, mnemonic, n))
            return op;
    return -1;
}

int isa_field_find(const char *name, size_t n) {
    for (int f = 0; f < ISA_FIELD_COUNT; f++) {
        const char *s = isa_fields[f].name;
        if (n && s[0] == name[0] && !strncmp(s, name, n) && !s[n])
            return f;
    }
    return -1;
}

uint32_t isa_row_mask(int op) {
    uint32_t mask = (1u << ISA_HEAD_FIELDS) - 1;
    for (const char *p = isa_rows[op].fields; *p;) {
        size_t n = strcspn(p, " ");
        int f = isa_field_find(p, n);
        assert(f >= ISA_HEAD_FIELDS);
        mask |= 1u << f;
        p += n;
        p += strspn(p, " ");
    }
    return mask;
}

bool isa_row_reads(int op) { return strstr(isa_rows[op].fields, "src") != NULL; }

bool isa_row_engine(int op, int engine) {
    return engine >= 0 && engine < ENG_COUNT &&
           strchr(isa_rows[op].engines, engine_letters[engine]);
}

int isa_row_engine_default(int op) {
    return (int)(strchr(engine_letters, isa_rows[op].engines[0]) - engine_letters);
}

uint64_t isa_field_get(const IsaInst *in, int field) {
    switch (field) {
#define FIELD(name, member, at, bytes, is_signed)                                                  \
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
#define FIELD(name, member, at, bytes, is_signed)                                                  \
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
void isa_dense_strides(const IsaInst *in, uint32_t mask, bool is_dst, int32_t out[4]) {
    int first = is_dst ? ISA_F_d0 : ISA_F_s0;
    uint64_t addr = is_dst ? in->dst : in->src;
    uint64_t stride = 1;
    memset(out, 0, 4 * sizeof *out);
    for (int axis = 3; axis >= 0; axis--) {
        if (!(mask >> (first + axis) & 1) || in->n[axis] <= 1)
            continue;
        if (axis == 0 && addr_space(addr) != SPACE_HBM)
            continue;
        out[axis] = stride > INT32_MAX ? 0 : (int32_t)stride;
        if (__builtin_mul_overflow(stride, (uint64_t)in->n[axis], &stride))
            stride = UINT64_MAX;
    }
}

static inline uint64_t load(const uint8_t *p, int bytes) {
    return bytes == 1 ? p[0] : bytes == 4 ? le_load32(p) : le_load64(p);
}

static inline void store(uint8_t *p, int bytes, uint64_t v) {
    if (bytes == 1)
        p[0] = (uint8_t)v;
    else if (bytes == 4)
        le_store32(p, (uint32_t)v);
    else
        le_store64(p, v);
}

void isa_encode(const IsaInst *in, uint8_t out[ISA_BYTES]) {
    memset(out, 0, ISA_BYTES);
#define FIELD(name, member, at, bytes, is_signed) store(out + (at), bytes, (uint64_t)in->member);
    ISA_FIELDS(FIELD)
#undef FIELD
}

// Which fields of an instruction are not zero.
static uint32_t nonzero_fields(const IsaInst *in) {
    uint32_t mask = 0;
#define FIELD(name, member, at, bytes, is_signed)                                                  \
    mask |= (uint32_t)(in->member != 0) << ISA_F_##name;
    ISA_FIELDS(FIELD)
#undef FIELD
    return mask;
}

static void row_masks(uint32_t mask[ISA_OP_COUNT]) {
    for (int op = 0; op < ISA_OP_COUNT; op++)
        mask[op] = isa_row_mask(op);
}

void isa_encode_all(const IsaInst *in, uint32_t n, Buf *out) {
    uint32_t mask[ISA_OP_COUNT];
    row_masks(mask);
    buf_reserve(out, (size_t)n * ISA_BYTES);
    for (uint32_t i = 0; i < n; i++) {
        assert(in[i].op < ISA_OP_COUNT);
        assert(!(nonzero_fields(&in[i]) & ~mask[in[i].op]));
        isa_encode(&in[i], out->at + out->n);
        out->n += ISA_BYTES;
    }
}

// Bytes no field covers must be zero too. The mask has one byte per encoded byte.
static void cover(uint8_t covered[ISA_BYTES]) {
    memset(covered, 0, ISA_BYTES);
    for (int f = 0; f < ISA_FIELD_COUNT; f++)
        memset(covered + isa_fields[f].at, 0xff, isa_fields[f].bytes);
}

static bool gaps_zero(const uint8_t *p, const uint8_t covered[ISA_BYTES]) {
    uint64_t bad = 0;
    for (int i = 0; i < ISA_BYTES; i += 8) {
        uint64_t v, c;
        memcpy(&v, p + i, 8);
        memcpy(&c, covered + i, 8);
        bad |= v & ~c;
    }
    return !bad;
}

// A wait slot without a semaphore carries no value.
static const char *wait_fault(const IsaInst *in) {
    for (int w = 0; w < 2; w++)
        if (in->wait_sem[w] == SEM_NONE ? in->wait_val[w] != 0 : in->wait_sem[w] >= SEM_COUNT)
            return in->wait_sem[w] == SEM_NONE ? "a wait value without a semaphore"
                                               : "a wait on a semaphore that does not exist";
    return NULL;
}

static void decode_one(Rd *r, const uint8_t *p, const IsaMap *map, const uint32_t *masks,
                       const uint8_t *covered, IsaInst *out) {
#define FIELD(name, member, at, bytes, is_signed)                                                  \
    out->member = (__typeof__(out->member))load(p + (at), bytes);
    ISA_FIELDS(FIELD)
#undef FIELD
    if (map) {
        out->op = map->op[out->op];
        out->stype = map->dtype[out->stype];
        out->dtype = map->dtype[out->dtype];
    }
    if (out->op >= ISA_OP_COUNT && map)
        ctx_hint(r->ctx, "the file may come from a newer release than " OTRN_RELEASE);
    if (out->op >= ISA_OP_COUNT)
        rd_fail(r, "unknown instruction number %u", p[0]);
    const IsaRow *row = &isa_rows[out->op];
    if (!isa_row_engine(out->op, out->engine))
        rd_fail(r, "`%s` cannot stand on engine number %u", row->name, out->engine);
    uint32_t extra = nonzero_fields(out) & ~masks[out->op];
    if (extra)
        rd_fail(r, "`%s` has no field `%s`, but it is not zero", row->name,
                isa_fields[__builtin_ctz(extra)].name);
    if (!gaps_zero(p, covered))
        rd_fail(r, "`%s` has reserved bytes that are not zero", row->name);
    if (out->stype >= DT_COUNT || out->dtype >= DT_COUNT)
        rd_fail(r, "`%s` names an unknown element type", row->name);
    const char *fault = wait_fault(out);
    if (fault)
        rd_fail(r, "`%s` has %s", row->name, fault);
}

void isa_decode_all(Rd *r, const IsaMap *map, IsaInst *out, uint32_t n) {
    uint32_t masks[ISA_OP_COUNT];
    uint8_t covered[ISA_BYTES];
    row_masks(masks);
    cover(covered);
    for (uint32_t i = 0; i < n; i++)
        decode_one(r, rd_bytes(r, ISA_BYTES), map, masks, covered, &out[i]);
}

void isa_decode(Rd *r, IsaInst *out) { isa_decode_all(r, NULL, out, 1); }
