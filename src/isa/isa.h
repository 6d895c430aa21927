// SPDX-License-Identifier: Apache-2.0
// isa.h — instructions: one layout, one table, encode, decode, assemble, disassemble, check.
//
// Five sequencers (tensor, vector, scalar, gpsimd, sync) and DMA queues run side by side;
// semaphores order them. An instruction waits until up to two semaphores have reached a value,
// executes, and on completion adds one to the semaphore of its engine or queue. The compiler's
// order is one legal execution and the one the chip follows.
//
// An address is 64 bits:
//   63..56 space   0 HBM, 1 SBUF, 2 PSUM
//   HBM            55..40 segment, 39..0 byte offset
//   SBUF, PSUM     39..32 start partition, 31..0 byte offset inside the partition
// HBM segments are bound when a program runs: 0 scratch, 1 constants, 2.. arguments, then results.
//
// A pattern has up to four axes: counts n0..n3 (a zero count reads as one), strides d0..d3 of dst
// and s0..s3 of src in elements of the operand's type. When an operand lies in SBUF or PSUM its
// axis 0 is the partition axis: the stride is one partition and the field must be zero.
#ifndef OTRN_ISA_ISA_H
#define OTRN_ISA_ISA_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/ctx.h"
#include "base/dtype.h"

typedef enum Engine { ENG_TENSOR, ENG_VECTOR, ENG_SCALAR, ENG_GPSIMD, ENG_SYNC, ENG_COUNT } Engine;
extern const char *const engine_names[ENG_COUNT]; // "tensor", …
#define DMA_QUEUES 16
// Semaphore s < ENG_COUNT counts completions of that engine, ENG_COUNT + q those of DMA queue q.
#define SEM_COUNT (ENG_COUNT + DMA_QUEUES)
#define SEM_NONE 0xff

typedef enum IsaCost {
    COST_CONTROL, COST_BARRIER, COST_BRANCH, COST_REGLOAD, COST_DMA, COST_LDWEIGHTS, COST_MATMUL,
    COST_ELEMENTWISE, COST_KERNEL, COST_COUNT
} IsaCost;

typedef enum IsaOp {
#define INST(e, ...) ISA_##e,
#include "isa/isa.def"
#undef INST
    ISA_OP_COUNT
} IsaOp;

#define ISA_BYTES 96
#define ISA_REGS 64
#define MATMUL_ACCUMULATE 1u // flags: add to PSUM instead of overwriting

// The one layout: FIELD(name, member of IsaInst, byte offset, bytes, signed). Head fields stand in
// every instruction; the rest only where the row names them.
#define ISA_FIELDS(FIELD)                                                                          \
    FIELD(op, op, 0, 1, 0) /* head */                                                              \
    FIELD(engine, engine, 1, 1, 0)                                                                 \
    FIELD(wait0, wait_sem[0], 2, 1, 0)                                                             \
    FIELD(wait1, wait_sem[1], 3, 1, 0)                                                             \
    FIELD(waitv0, wait_val[0], 4, 4, 0)                                                            \
    FIELD(waitv1, wait_val[1], 8, 4, 0) /* end of head */                                          \
    FIELD(queue, queue, 12, 1, 0)                                                                  \
    FIELD(flags, flags, 13, 1, 0)                                                                  \
    FIELD(stype, stype, 14, 1, 0)                                                                  \
    FIELD(dtype, dtype, 15, 1, 0)                                                                  \
    FIELD(reg, reg, 16, 1, 0)                                                                      \
    FIELD(imm, imm, 20, 4, 1)                                                                      \
    FIELD(dst, dst, 24, 8, 0)                                                                      \
    FIELD(src, src, 32, 8, 0)                                                                      \
    FIELD(value, value, 40, 4, 1)                                                                  \
    FIELD(n0, n[0], 48, 4, 0)                                                                      \
    FIELD(n1, n[1], 52, 4, 0)                                                                      \
    FIELD(n2, n[2], 56, 4, 0)                                                                      \
    FIELD(n3, n[3], 60, 4, 0)                                                                      \
    FIELD(d0, d[0], 64, 4, 1)                                                                      \
    FIELD(d1, d[1], 68, 4, 1)                                                                      \
    FIELD(d2, d[2], 72, 4, 1)                                                                      \
    FIELD(d3, d[3], 76, 4, 1)                                                                      \
    FIELD(s0, s[0], 80, 4, 1)                                                                      \
    FIELD(s1, s[1], 84, 4, 1)                                                                      \
    FIELD(s2, s[2], 88, 4, 1)                                                                      \
    FIELD(s3, s[3], 92, 4, 1)

enum { // numbers of the fields: ISA_F_op, ISA_F_engine, …
#define FIELD(name, ...) ISA_F_##name,
    ISA_FIELDS(FIELD)
#undef FIELD
    ISA_FIELD_COUNT
};
#define ISA_HEAD_FIELDS (ISA_F_waitv1 + 1)

typedef struct IsaField {
    const char *name;
    uint8_t at, bytes, is_signed; // place in the encoding
} IsaField;
extern const IsaField isa_fields[ISA_FIELD_COUNT];
int isa_field_find(const char *name, size_t n); // -1 when there is none

typedef struct IsaInst {
    uint8_t op, engine, queue, flags, stype, dtype, reg;
    uint8_t wait_sem[2]; // SEM_NONE = no wait
    uint32_t wait_val[2];
    int32_t imm, value;
    uint64_t dst, src;
    uint32_t n[4];
    int32_t d[4], s[4];
} IsaInst;

typedef struct IsaRow {
    const char *name, *engines;
    uint8_t cost;
    const char *fields, *meaning;
} IsaRow;
extern const IsaRow isa_rows[ISA_OP_COUNT];
int isa_find(const char *mnemonic, size_t n); // IsaOp or -1
uint32_t isa_row_mask(int op);                // bit f: the row uses field f; head fields included
bool isa_row_reads(int op);                   // it has a src
bool isa_row_engine(int op, int engine);      // the row allows this engine
int isa_row_engine_default(int op);           // the first one it names
extern const char *const isa_cost_names[COST_COUNT];
// The semaphore an instruction counts on when it completes: its queue's, else its engine's.
static inline int isa_sem(const IsaInst *in) {
    return isa_rows[in->op].cost == COST_DMA ? ENG_COUNT + in->queue : in->engine;
}

// Limits of the largest generation (facts of NeuronCore v2 to v4); a chip file may allow less.
#define ISA_PARTITIONS 128
#define ISA_SBUF_BYTES (256u << 10) // per partition
#define ISA_PSUM_BYTES (16u << 10)
#define ISA_PSUM_BANK_BYTES 2048u
#define ISA_PE_ROWS 128
#define ISA_PE_COLS 128
#define ISA_MOVING_MAX 512

enum { SPACE_HBM, SPACE_SBUF, SPACE_PSUM, SPACE_COUNT };
enum { SEG_SCRATCH, SEG_CONST, SEG_FIRST_ARG };
static inline uint64_t addr_hbm(uint32_t seg, uint64_t off) { return (uint64_t)seg << 40 | off; }
static inline uint64_t addr_sbuf(uint32_t part, uint32_t off) {
    return (uint64_t)SPACE_SBUF << 56 | (uint64_t)part << 32 | off;
}
static inline uint64_t addr_psum(uint32_t part, uint32_t off) {
    return (uint64_t)SPACE_PSUM << 56 | (uint64_t)part << 32 | off;
}
static inline int addr_space(uint64_t a) { return (int)(a >> 56); }
static inline uint32_t addr_seg(uint64_t a) { return (uint32_t)(a >> 40) & 0xffff; }
static inline uint64_t addr_off(uint64_t a) { return a & 0xffffffffffull; } // HBM
static inline uint32_t addr_part(uint64_t a) { return (uint32_t)(a >> 32) & 0xff; }
static inline uint32_t addr_poff(uint64_t a) { return (uint32_t)a; }
#define SEG_MAX 0xffffu

// Exact inverses. Decode raises PARSE on an unknown op, an engine the row forbids, or a non-zero
// reserved field. They do not check limits: artifact_verify does.
void isa_encode(const IsaInst *in, uint8_t out[ISA_BYTES]);
void isa_decode(Rd *r, IsaInst *out); // consumes ISA_BYTES
// One line of assembly, no newline: "tensor: matmul dst=psum[0:0] src=sbuf[0:4096] … wait(sync>=3)"
void isa_print(const IsaInst *in, Buf *out);
// The inverse: parses one line (without comment); `at` is its place for messages. Jump targets are
// numbers here; the artifact's assembler resolves labels.
void isa_parse(Ctx *ctx, Place at, const char *line, IsaInst *out);
uint64_t isa_field_get(const IsaInst *in, int field); // sign-extended for signed fields
void isa_field_set(IsaInst *in, int field, uint64_t v); // keeps the field's width

// The same for many at once. A file numbers instructions and element types itself
// (spec/artifact.md): `map` turns its numbers into ours, 0xff marking an unknown one; NULL when
// they are ours already.
typedef struct IsaMap {
    uint8_t op[256], dtype[256];
} IsaMap;
void isa_encode_all(const IsaInst *in, uint32_t n, Buf *out); // asserts that unused fields are zero
void isa_decode_all(Rd *r, const IsaMap *map, IsaInst *out, uint32_t n);

// Strides that mean "dense" for the operand (dst or src) under the instruction's counts: what the
// assembler fills in when a line gives none of that operand's strides. Axes of one element have
// stride 0, and so has the partition axis.
// `mask` is isa_row_mask(in->op).
void isa_dense_strides(const IsaInst *in, uint32_t mask, bool is_dst, int32_t out[4]);

// How a program names its HBM segments and places in the code; NULL: plain numbers (hbm[2:0]).
typedef struct IsaNames {
    uint32_t nargs, nresults;
    uint32_t ncode;
    const uint32_t *labels; // per instruction: its label's number + 1, or 0
} IsaNames;
struct Txt;
struct TxtWord;
void isa_print_named(const IsaInst *in, const IsaNames *names, Buf *out);
void isa_print_addr(uint64_t addr, const IsaNames *names, Buf *out); // "arg0[64]", "sbuf[0:128]"
// Reads one instruction at the cursor up to its waits. A jump target given as a word comes back in
// *label (its s is NULL otherwise); label NULL refuses words.
void isa_parse_named(struct Txt *t, const IsaNames *names, IsaInst *out, struct TxtWord *label);
uint64_t isa_parse_addr(struct Txt *t, const IsaNames *names);

// The manual, from the table: Markdown (spec/isa.md).
void isa_manual(Buf *out);

#endif
