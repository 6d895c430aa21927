// SPDX-License-Identifier: Apache-2.0
// isa.h — instructions: one table, encode, decode, assemble, disassemble, check.
//
// Five sequencers (tensor, vector, scalar, gpsimd, sync) and DMA queues run side by side;
// semaphores order them. An instruction waits for up to two semaphores, executes, and on completion
// adds one to the semaphore of its engine or queue; it may also signal one of the program's own. The
// compiler's order is one legal execution and the one the chip follows.
//
// A wait is absolute (`vector>=3`: three instructions of that engine have completed since the last
// barrier) or counts back (`vector-2`: all but the last two that stand before this one in program
// order), which means the same in every iteration of a loop.
//
// An address is 64 bits:
//   63..56 space   0 HBM, 1 SBUF, 2 PSUM
//   HBM            55..40 segment, 39..0 byte offset
//   SBUF, PSUM     39..32 start partition, 31..0 byte offset inside the partition
// HBM segments are bound when a program runs: 0 scratch, 1 constants, 2.. arguments, then results.
// Tensor operands add up to two register terms to their byte offset: r[reg] * multiplier.
// Scalar operands are an address of one value per partition, or space 3 with the bits of an fp32,
// or space 4 with an int32; all zero: there is none.
//
// A pattern has up to five axes: counts n0..n4 (a zero count reads as one), strides d0..d4 of dst,
// s0..s4 of src and t0..t4 of src1 in elements of the operand's type. When an operand lies in SBUF
// or PSUM its axis 0 is the partition axis: the stride is one partition and the field must be zero.
#ifndef OTRN_ISA_ISA_H
#define OTRN_ISA_ISA_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/ctx.h"
#include "base/dtype.h"

#include <string.h>

typedef enum Engine { ENG_TENSOR, ENG_VECTOR, ENG_SCALAR, ENG_GPSIMD, ENG_SYNC, ENG_COUNT } Engine;
extern const char *const engine_names[ENG_COUNT]; // "tensor", …
#define DMA_QUEUES 16
// Collectives wait in sequencers of their own, one for each stream (on the chip, collective cores): that of queue q is q mod 4. The
// sync engine has them in its code and goes on.
#define ISA_STREAMS 4
#define ISA_SEQS (ENG_COUNT + ISA_STREAMS)
#define USER_SEMS 32
// Semaphore s < ENG_COUNT counts completions of that engine, ENG_COUNT + q those of DMA queue q;
// then come the program's own, s0…s31.
#define SEM_USER (ENG_COUNT + DMA_QUEUES)
#define SEM_COUNT (SEM_USER + USER_SEMS)
#define SEM_NONE 0xff
#define SEM_BACK 0x80 // in wait_sem: wait_val counts back from here

typedef enum IsaCost {
#define COST(e, name) COST_##e,
#define ISA_COSTS(COST)                                                                            \
    COST(CONTROL, "control") COST(BARRIER, "barrier") COST(BRANCH, "branch") COST(LOOP, "loop")    \
    COST(REG, "reg") COST(REGLOAD, "regload") COST(DMA, "dma") COST(LDWEIGHTS, "ldweights")        \
    COST(MATMUL, "matmul") COST(TRANSPOSE, "transpose") COST(ELEMENTWISE, "elementwise")           \
    COST(TENSOR_TENSOR, "tensor_tensor") COST(SCALAR_TT, "scalar_tensor_tensor")                   \
    COST(RECIPROCAL, "reciprocal") COST(REDUCE, "reduce") COST(SCAN, "scan")                       \
    COST(BNAGGR, "bn_aggr") COST(EXPONENTIAL, "exponential") COST(QUANTMX, "quantize_mx")          \
    COST(ACTIVATE, "activation") COST(ACTLOAD, "table_load") COST(POOL, "pool")                    \
    COST(GATHER, "gather") COST(TOPK, "topk") COST(KERNEL, "kernel") COST(REMOTE, "remote")        \
    COST(COLLECTIVE, "collective") COST(STREAM, "stream")
    ISA_COSTS(COST)
#undef COST
    COST_COUNT
} IsaCost;

typedef enum IsaOp {
#define INST(e, ...) ISA_##e,
#include "isa/isa.def"
#undef INST
    ISA_OP_COUNT
} IsaOp;

// ALU operations (op0, op1, rop) and functions of the scalar engine (fn).
typedef enum AluOp {
#define ALU(e, ...) ALU_##e,
#include "isa/alu.def"
#undef ALU
    ALU_COUNT
} AluOp;
typedef struct AluRow {
    const char *name;
    char kind; // U, A, C, B as alu.def tells
    const char *flags, *meaning;
} AluRow;
extern const AluRow alu_rows[ALU_COUNT];

typedef enum ActFn {
#define ACT(e, ...) ACT_##e,
#include "isa/act.def"
#undef ACT
    ACT_COUNT
} ActFn;
typedef enum ActSet { ACTSET_SMALL, ACTSET_EXPLOG, ACTSET_GELU, ACTSET_TRIG, ACTSET_SQRT, ACTSET_RECIP } ActSet;
typedef struct ActRow {
    const char *name;
    uint8_t set;
    double lo, hi;
    const char *meaning;
} ActRow;
extern const ActRow act_rows[ACT_COUNT];

enum { RCMD_IDLE, RCMD_RESET, RCMD_REDUCE, RCMD_RESET_REDUCE, RCMD_LOAD_REDUCE, RCMD_COUNT };
enum { DGE_STATIC, DGE_SW, DGE_HW, DGE_COUNT };
enum { UPD_ADD, UPD_SUB, UPD_WRITE, UPD_AT_READ = 4, UPD_COUNT = 8 };

#define ISA_FLAGS(FLAG)                                                                            \
    FLAG(ACCUMULATE, 0, "accumulate") /* matmul: add to PSUM instead of overwriting */            \
    FLAG(TRANSPOSE, 1, "transpose")   /* matmul: move bits, do not multiply */                     \
    FLAG(DOUBLE_ROW, 2, "double_row") /* two fp8 rows a cell */                                    \
    FLAG(ONEZERO, 3, "onezero")       /* an fp32 operand holds only 0 and 1 */                     \
    FLAG(REVERSE0, 4, "reverse0")     /* op0's operands are swapped; of selects: the predicate */  \
    FLAG(REVERSE1, 5, "reverse1")                                                                  \
    FLAG(NEGATE, 6, "negate")                                                                      \
    FLAG(SKIP, 7, "skip") /* indices out of range are left out */
enum {
#define FLAG(e, bit, name) ISA_FLAG_##e = 1 << bit,
    ISA_FLAGS(FLAG)
#undef FLAG
};
#define MATMUL_ACCUMULATE ISA_FLAG_ACCUMULATE

#define ISA_REGS 64

// What a field holds, which is how text shows it.
typedef enum FieldKind {
    FK_INT, FK_ADDR, FK_SCALAR, FK_DTYPE, FK_FLAGS, FK_ALU, FK_ACT, FK_RCMD, FK_MODE, FK_REG,
    FK_REG_OR_NONE, // register + 1, 0 = none
    FK_TERM,        // part of the text of an address
    FK_MASK,        // 8 of 32 bytes
} FieldKind;

// FIELD(name, member of IsaInst, bytes, signed, kind). Head fields stand in every instruction, the
// rest only where the row names them; dr0…tx1 come with their dst, src or src1.
#define ISA_FIELDS(FIELD)                                                                          \
    FIELD(op, op, 1, 0, FK_INT) /* head */                                                         \
    FIELD(engine, engine, 1, 0, FK_INT)                                                            \
    FIELD(wait0, wait_sem[0], 1, 0, FK_INT)                                                        \
    FIELD(wait1, wait_sem[1], 1, 0, FK_INT)                                                        \
    FIELD(waitv0, wait_val[0], 4, 0, FK_INT)                                                       \
    FIELD(waitv1, wait_val[1], 4, 0, FK_INT)                                                       \
    FIELD(usem, upd_sem, 1, 0, FK_INT)                                                             \
    FIELD(uop, upd_op, 1, 0, FK_INT)                                                               \
    FIELD(uval, upd_val, 2, 0, FK_INT) /* end of head */                                           \
    FIELD(queue, queue, 1, 0, FK_INT)                                                              \
    FIELD(flags, flags, 1, 0, FK_FLAGS)                                                            \
    FIELD(mode, mode, 1, 0, FK_MODE)                                                               \
    FIELD(stype, stype, 1, 0, FK_DTYPE)                                                            \
    FIELD(dtype, dtype, 1, 0, FK_DTYPE)                                                            \
    FIELD(ttype, ttype, 1, 0, FK_DTYPE)                                                            \
    FIELD(atype, atype, 1, 0, FK_DTYPE)                                                            \
    FIELD(rtype, rtype, 1, 0, FK_DTYPE)                                                            \
    FIELD(op0, op0, 1, 0, FK_ALU)                                                                  \
    FIELD(op1, op1, 1, 0, FK_ALU)                                                                  \
    FIELD(rop, rop, 1, 0, FK_ALU)                                                                  \
    FIELD(rcmd, rcmd, 1, 0, FK_RCMD)                                                               \
    FIELD(fn, fn, 1, 0, FK_ACT)                                                                    \
    FIELD(trow, trow, 1, 0, FK_INT)                                                                \
    FIELD(tcol, tcol, 1, 0, FK_INT)                                                                \
    FIELD(trows, trows, 1, 0, FK_INT)                                                              \
    FIELD(tcols, tcols, 1, 0, FK_INT)                                                              \
    FIELD(reg, reg, 1, 0, FK_REG)                                                                  \
    FIELD(areg, areg, 1, 0, FK_REG)                                                                \
    FIELD(breg, breg, 1, 0, FK_REG_OR_NONE)                                                        \
    FIELD(dr0, reg_d[0], 1, 0, FK_TERM)                                                            \
    FIELD(dr1, reg_d[1], 1, 0, FK_TERM)                                                            \
    FIELD(sr0, reg_s[0], 1, 0, FK_TERM)                                                            \
    FIELD(sr1, reg_s[1], 1, 0, FK_TERM)                                                            \
    FIELD(tr0, reg_t[0], 1, 0, FK_TERM)                                                            \
    FIELD(tr1, reg_t[1], 1, 0, FK_TERM)                                                            \
    FIELD(dx0, mul_d[0], 4, 1, FK_TERM)                                                            \
    FIELD(dx1, mul_d[1], 4, 1, FK_TERM)                                                            \
    FIELD(sx0, mul_s[0], 4, 1, FK_TERM)                                                            \
    FIELD(sx1, mul_s[1], 4, 1, FK_TERM)                                                            \
    FIELD(tx0, mul_t[0], 4, 1, FK_TERM)                                                            \
    FIELD(tx1, mul_t[1], 4, 1, FK_TERM)                                                            \
    FIELD(imm, imm, 4, 1, FK_INT)                                                                  \
    FIELD(value, value, 4, 1, FK_INT)                                                              \
    FIELD(limit, limit, 4, 1, FK_INT)                                                              \
    FIELD(step, step, 4, 1, FK_INT)                                                                \
    FIELD(dst, dst, 8, 0, FK_ADDR)                                                                 \
    FIELD(src, src, 8, 0, FK_ADDR)                                                                 \
    FIELD(src1, src1, 8, 0, FK_ADDR)                                                               \
    FIELD(res, res, 8, 0, FK_ADDR)                                                                 \
    FIELD(a, a, 8, 0, FK_SCALAR)                                                                   \
    FIELD(b, b, 8, 0, FK_SCALAR)                                                                   \
    FIELD(n0, n[0], 4, 0, FK_INT)                                                                  \
    FIELD(n1, n[1], 4, 0, FK_INT)                                                                  \
    FIELD(n2, n[2], 4, 0, FK_INT)                                                                  \
    FIELD(n3, n[3], 4, 0, FK_INT)                                                                  \
    FIELD(n4, n[4], 4, 0, FK_INT)                                                                  \
    FIELD(d0, d[0], 4, 1, FK_INT)                                                                  \
    FIELD(d1, d[1], 4, 1, FK_INT)                                                                  \
    FIELD(d2, d[2], 4, 1, FK_INT)                                                                  \
    FIELD(d3, d[3], 4, 1, FK_INT)                                                                  \
    FIELD(d4, d[4], 4, 1, FK_INT)                                                                  \
    FIELD(s0, s[0], 4, 1, FK_INT)                                                                  \
    FIELD(s1, s[1], 4, 1, FK_INT)                                                                  \
    FIELD(s2, s[2], 4, 1, FK_INT)                                                                  \
    FIELD(s3, s[3], 4, 1, FK_INT)                                                                  \
    FIELD(s4, s[4], 4, 1, FK_INT)                                                                  \
    FIELD(t0, t[0], 4, 1, FK_INT)                                                                  \
    FIELD(t1, t[1], 4, 1, FK_INT)                                                                  \
    FIELD(t2, t[2], 4, 1, FK_INT)                                                                  \
    FIELD(t3, t[3], 4, 1, FK_INT)                                                                  \
    FIELD(t4, t[4], 4, 1, FK_INT)                                                                  \
    FIELD(mask, mask[0], 8, 0, FK_MASK)                                                            \
    FIELD(mask1, mask[1], 8, 0, FK_MASK)                                                           \
    FIELD(mask2, mask[2], 8, 0, FK_MASK)                                                           \
    FIELD(mask3, mask[3], 8, 0, FK_MASK)

enum { // numbers of the fields: ISA_F_op, ISA_F_engine, …
#define FIELD(name, ...) ISA_F_##name,
    ISA_FIELDS(FIELD)
#undef FIELD
    ISA_FIELD_COUNT
};
#define ISA_HEAD_FIELDS (ISA_F_uval + 1)
#define ISA_HEAD_BYTES 16

typedef struct IsaField {
    const char *name;
    uint8_t bytes, is_signed, kind;
} IsaField;
extern const IsaField isa_fields[ISA_FIELD_COUNT];
int isa_field_find(const char *name, size_t n); // -1 when there is none
typedef unsigned __int128 IsaMask;              // bit f: field f
#define ISA_BIT(f) ((IsaMask)1 << (f))

typedef struct IsaInst {
    uint8_t op, engine, queue, flags, mode;
    uint8_t stype, dtype, ttype, atype, rtype; // of src, dst, src1, scalar operands, res
    uint8_t op0, op1, rop, rcmd, fn;
    uint8_t trow, tcol, trows, tcols; // part of the array used; sizes 0 = all
    uint8_t reg, areg, breg;
    uint8_t reg_d[2], reg_s[2], reg_t[2]; // register + 1 of a term of dst, src, src1; 0 = none
    uint8_t wait_sem[2];                  // SEM_NONE = no wait; SEM_BACK: counts back
    uint8_t upd_sem, upd_op;              // own semaphore + 1, 0 = none; UPD_…
    uint16_t upd_val;
    uint16_t zero16; // where there would be padding: instructions are compared as bytes
    uint32_t wait_val[2];
    int32_t mul_d[2], mul_s[2], mul_t[2]; // bytes per register unit
    int32_t imm, value, limit, step;
    uint32_t zero32;
    uint64_t dst, src, src1, res, a, b;
    uint32_t n[5];
    int32_t d[5], s[5], t[5];
    uint64_t mask[4]; // 32 bytes, the first in the low byte
} IsaInst;

typedef struct IsaRow {
    const char *name, *engines;
    uint8_t gen, cost;
    const char *fields; // " dst dtype …", as assembly has them
    const char *nki, *meaning;
} IsaRow;
extern const IsaRow isa_rows[ISA_OP_COUNT];
int isa_find(const char *mnemonic, size_t n); // IsaOp or -1
extern const IsaMask isa_row_masks[ISA_OP_COUNT];
static inline IsaMask isa_row_mask(int op) { return isa_row_masks[op]; } // the row's fields; head fields included
static inline bool isa_row_has(int op, int field) { return isa_row_mask(op) >> field & 1; }
const uint8_t *isa_row_fields(int op); // behind the head, in their order; ISA_FIELD_COUNT ends them
bool isa_row_engine(int op, int engine); // the row allows this engine
int isa_row_engine_default(int op);      // the first one it names
extern const char *const isa_cost_names[COST_COUNT];
int alu_find(const char *name, size_t n); // AluOp or -1
int act_find(const char *name, size_t n); // ActFn or -1
int64_t isa_alu_reg(int op, int64_t x, int64_t y); // what reg_alu and branch compute
// The semaphore an instruction counts on when it completes: its queue's, else its engine's.
static inline bool isa_has_queue(const IsaInst *in) {
    int cost = isa_rows[in->op].cost;
    return cost == COST_DMA || cost == COST_COLLECTIVE || cost == COST_STREAM;
}
static inline int isa_sem(const IsaInst *in) {
    return isa_has_queue(in) ? ENG_COUNT + in->queue : in->engine;
}
// The sequencer that takes it up and waits for it: its engine's, or its stream's.
static inline int isa_seq(const IsaInst *in) {
    int cost = isa_rows[in->op].cost;
    return cost == COST_COLLECTIVE || cost == COST_STREAM ? ENG_COUNT + in->queue % ISA_STREAMS : in->engine;
}
static inline uint32_t isa_count(uint32_t n) { return n ? n : 1; } // of an axis

// Limits of the largest generation (facts of NeuronCore v2 to v4); a chip file may allow less.
#define PARTITIONS 128
#define ISA_SBUF_BYTES (256u << 10) // per partition
#define ISA_PSUM_BYTES (16u << 10)
#define PSUM_BANK_BYTES 2048u
#define PSUM_BANKS ((int)(ISA_PSUM_BYTES / PSUM_BANK_BYTES))
#define PSUM_BANK_COLS ((int)PSUM_BANK_BYTES / 4) // of fp32
#define ISA_PE_ROWS 128
#define ISA_PE_COLS 128
#define ISA_MOVING_MAX 512

enum { SPACE_HBM, SPACE_SBUF, SPACE_PSUM, SPACE_COUNT, SPACE_F32 = SPACE_COUNT, SPACE_I32 };
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
static inline uint64_t scalar_i32(int32_t v) { return (uint64_t)SPACE_I32 << 56 | (uint32_t)v; }
static inline uint64_t scalar_f32(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return (uint64_t)SPACE_F32 << 56 | bits;
}

// Exact inverses. An encoding is the head's fields, then those the row names in its order, little-
// endian, filled up with zeros to a multiple of 4. Decode raises PARSE on an unknown op, an engine
// the row forbids, or a non-zero reserved byte. They do not check limits: artifact_verify does.
#define ISA_BYTES_MAX 256
size_t isa_bytes(int op);                                    // of an encoding
size_t isa_encode(const IsaInst *in, uint8_t out[ISA_BYTES_MAX]); // bytes written
bool isa_is_clean(const IsaInst *in); // fields that its row does not have are zero
// A file numbers instructions and element types itself (spec/artifact.md): `map` turns its numbers into
// ours, 0xff marking an unknown one; NULL when they are ours already.
typedef struct IsaMap {
    uint8_t op[256], dtype[256], alu[256], act[256];
} IsaMap;
void isa_decode(Rd *r, const IsaMap *map, IsaInst *out);
// One line of assembly, no newline: "tensor: matmul dst=psum[0:0] src=sbuf[0:4096] … wait(sync>=3)"
void isa_print(const IsaInst *in, Buf *out);
// The inverse: parses one line (without comment); `at` is its place for messages. Jump targets are
// numbers here; the artifact's assembler resolves labels.
void isa_parse(Ctx *ctx, Place at, const char *line, IsaInst *out);
uint64_t isa_field_get(const IsaInst *in, int field); // sign-extended for signed fields
void isa_field_set(IsaInst *in, int field, uint64_t v); // keeps the field's width

// Strides that mean "dense" for the operand ('d' dst, 's' src, 't' src1) under the instruction's counts: what the
// assembler fills in when a line gives none of that operand's strides. Axes of one element have
// stride 0, and so has the partition axis.
// `mask` is isa_row_mask(in->op).
void isa_dense_strides(const IsaInst *in, IsaMask mask, char operand, int32_t out[5]);

// A language around instructions (artifact/asm.h): numbers may be expressions, operands views of named
// tensors. Called with the cursor in front of what they read.
struct Txt;
struct TxtWord;
typedef struct IsaHooks {
    void *arg;
    int64_t (*number)(void *arg, struct Txt *t, const char *what);
    // A number or a view for a scalar field; a view for one of a tensor.
    void (*scalar)(void *arg, struct Txt *t, IsaInst *in, int field);
    bool (*is_view)(void *arg, struct Txt *t); // a tensor's name stands here
    void (*view)(void *arg, struct Txt *t, IsaInst *in, int field);
    // All fields are read, `seen` were given: counts, types and strides follow from the views.
    void (*done)(void *arg, const struct Txt *begin, IsaInst *in, IsaMask mask, IsaMask *seen);
} IsaHooks;

// How a program names its HBM segments and places in the code; NULL: plain numbers (hbm[2:0]).
typedef struct IsaNames {
    const IsaHooks *hooks; // or NULL
    uint32_t nargs, nresults;
    uint32_t ncode;
    const uint32_t *labels; // per instruction: its label's number + 1, or 0
} IsaNames;
void isa_print_named(const IsaInst *in, const IsaNames *names, Buf *out);
void isa_print_addr(uint64_t addr, const IsaNames *names, Buf *out); // "arg0[64]", "sbuf[0:128]"
// Reads one instruction at the cursor up to its waits. A jump target given as a word comes back in
// *label (its s is NULL otherwise); label NULL refuses words.
void isa_parse_named(struct Txt *t, const IsaNames *names, IsaInst *out, struct TxtWord *label);
uint64_t isa_parse_addr(struct Txt *t, const IsaNames *names);

#define ISA_SEM_NAME 16
void isa_sem_name(int sem, char out[ISA_SEM_NAME]); // "vector", "q3", "s0"

// The manual, from the table: Markdown (spec/isa.md).
void isa_manual(Buf *out);

#endif
