// SPDX-License-Identifier: Apache-2.0
// check.h — what an instruction reads and writes, and what its row allows.
//
// isa_accesses tells an instruction's operands as patterns of memory: the one place that knows, for
// the verifier, the run-time address check, the assembler's waits and the race checker alike.
// isa_check holds types, operations, flags and sizes against rules.def; it needs no program around
// the instruction. Places in HBM are checked by who knows the segments (artifact_verify.c).
#ifndef OTRN_ISA_CHECK_H
#define OTRN_ISA_CHECK_H

#include "isa/shape.h"

typedef struct IsaChip { // what differs between targets
    int gen;             // 2, 3, 4
    uint32_t sbuf_bytes, psum_bytes; // per partition
    uint32_t instructions;           // of a program; 0: no limit
} IsaChip;
extern const IsaChip isa_chip_largest;

// One operand as memory: `parts` partitions (SBUF, PSUM) or axis 0 (HBM), then the free axes.
#define ISA_AXES 6
typedef struct IsaAccess {
    uint8_t field; // ISA_F_dst, ISA_F_src, …
    uint8_t dtype;
    bool is_write, by_engine; // by_engine: the start partition follows the engines' rule
    uint64_t addr;            // without register terms
    const uint8_t *reg;       // its register terms, or NULL
    const int32_t *mul;
    uint32_t parts;
    uint32_t n[ISA_AXES];      // never 0
    int32_t stride[ISA_AXES];  // elements; of axis 0 in HBM only
} IsaAccess;
#define ISA_ACCESS_MAX 8
// Operands of an instruction in memory, reads before writes; numbers in the instruction and operands
// that are not given are left out. A kernel's tensors are not among them.
// `mask` is isa_row_mask(in->op).
int isa_accesses(const IsaInst *in, IsaMask mask, IsaAccess out[ISA_ACCESS_MAX]);
// Bytes the access reaches from its address, [*lo, *hi): in a partition, or in HBM.
void isa_access_extent(const IsaAccess *a, __int128 *lo, __int128 *hi);

// The same for all instructions of a shape: only addresses differ between them.
typedef struct ShapeAccess {
    uint8_t addr; // shape_addr(in, addr)
    uint8_t at;   // where the record has it, or 0: it is zero
    uint8_t space;
    bool is_write, by_register; // by_register: register terms add to the address
    bool dense; // in a partition: adjacent and ascending
    uint8_t part; // its first partition,
    uint32_t parts;
    int64_t lo, hi; // bytes it reaches from its address, as isa_access_extent says, at most 2^62
} ShapeAccess;
static inline uint32_t shape_poff(const ShapeAccess *a, const uint8_t *record) { return le_load32(record + a->at); } // in a partition
static inline uint64_t shape_hbm(const ShapeAccess *a, const uint8_t *record) { return a->at ? le_load64(record + a->at) : 0; }
typedef struct ShapeAccesses {
    uint8_t n;
    ShapeAccess at[ISA_ACCESS_MAX];
} ShapeAccesses;
// An instruction of the shape: its addresses in HBM are not zero.
IsaInst shape_sample(const IsaShape *s);
void shape_accesses(const IsaShape *s, ShapeAccesses *out);
ShapeAccesses *shapes_accesses(Arena *a, const IsaShapes *s); // per shape

// NULL when types, operations, flags and counts are such as the row allows on this chip, else what is
// wrong, written to `why`.
#define ISA_WHY 200
const char *isa_check(const IsaInst *in, IsaMask mask, const IsaChip *chip, char why[ISA_WHY]);
// The same for one operand: space, partitions, capacity, alignment. lo and hi bound what register
// terms add to the address, in bytes; both 0 without any.
const char *isa_check_access(const IsaInst *in, const IsaAccess *a, const IsaChip *chip, __int128 lo,
                             __int128 hi, char why[ISA_WHY]);

#endif
