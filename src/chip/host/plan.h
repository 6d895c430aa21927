// SPDX-License-Identifier: Apache-2.0
// plan.h — the host plan: which instructions the chip may carry out together, and which copies it may spare.
//
// A *run* is a piece of straight code whose instructions never look beyond their own partition: transfers
// between HBM and SBUF row by row, and what the vector, scalar and gpsimd engines do element by element or along
// a row. Such a run means the same when each thread takes a slice of partitions through all of it, with no
// thread waiting for another in between and the slice's data still in its cache.
//
// Inside a run operands may lie elsewhere than the instruction says:
//   PLAN_HBM    a transfer in is left out and its data read where it lies in HBM; a transfer out is left out and the
//               instruction that makes the data writes it there
//   PLAN_LOCAL  bytes that nobody outside the run reads are in memory of the slice, used again by the next slice
//   PLAN_NOWHERE  a result that nobody reads at all is not written
//
// No bit of HBM changes by it. What is read from SBUF later is kept there: `plan_make` follows the program backwards
// and knows for each run which bytes of SBUF are still needed behind it; where control flow makes that unclear,
// all of them. Only facts that artifact_verify has proven are relied on.
#ifndef OTRN_CHIP_PLAN_H
#define OTRN_CHIP_PLAN_H

#include "artifact/artifact.h"

#define PLAN_STEPS 96            // instructions of a run
#define PLAN_LOCAL_BYTES 131072u // of a slice
#define PLAN_GRAIN_ELEMS 16384u  // least work worth a handoff

enum { PLAN_DST, PLAN_SRC, PLAN_SRC1, PLAN_RES, PLAN_A, PLAN_B, PLAN_SLOTS, PLAN_SKIP = PLAN_SLOTS };
enum { PLAN_HBM, PLAN_LOCAL, PLAN_NOWHERE };

typedef struct PlanOver { // an operand that lies elsewhere
    uint32_t pc;
    uint8_t slot, how; // slot PLAN_SKIP: the instruction is left out
    uint8_t dtype;     // the operand's, when another than the instruction says; else 0
    uint32_t dma;      // HBM: the transfer whose HBM side it is; LOCAL: the last that reads what is written there
    uint32_t at;       // HBM: the bytes from its row's begin; LOCAL: the offset in the slice's row
} PlanOver;

typedef struct PlanPe { // an operand of a product that is read in HBM (plan_pe.c), or its sums that are written there
    uint32_t pc, seg;
    uint64_t off;
    int64_t pitch; // bytes between rows
} PlanPe;
#define PLAN_PE_MAX 32 // operands that one transfer brings
// A transfer that brings such operands, or is one with a transfer out; a copy or transfer out of what products wrote to HBM.
enum { PLAN_SPARED_OPERAND = 1, PLAN_SPARED_RESULT };

typedef struct PlanRun {
    uint32_t first, end;    // instructions
    uint32_t over, nover;   // in Plan.overs, by instruction
    uint32_t local_pitch;   // bytes between rows of the slice's memory
    uint16_t slice;         // partitions that go together
    uint16_t parts;         // partitions it touches, from 0
} PlanRun;

typedef struct Plan {
    uint32_t *run_at; // per instruction: number of the run that begins there + 1, or 0
    uint32_t nruns;
    PlanRun *runs;
    VEC(PlanOver) overs;
    VEC(PlanPe) pe;
    uint32_t *pe_at; // per instruction: number in pe + 1, or 0; NULL: there are none
    uint32_t *through; // per transfer out: the transfer in + 1 whose source it takes, or 0; NULL: there are none
    uint8_t *spared; // per instruction: left out, PLAN_SPARED_…; NULL likewise
    uint32_t *out_at; // per product: number in pe + 1 of where its sums go instead of PSUM, or 0; NULL likewise (plan_tiles.c)
    uint8_t *blocks;  // per transfer in, load and product: its tile is in blocks where the host's kernels take them; NULL likewise
    uint32_t *same_seg; // per HBM segment: the one whose memory it may take over, or itself
    bool *written;      // likewise: somebody may write there
    uint32_t *order;    // segments by address, as plan_fits last found them
    uint32_t nsegs;
} Plan;

// `dynamic` is artifact_dynamic's; plain: loads and products that go to the tensor engine's kernels alone, per
// instruction.
// `shapes` are the artifact's. The pool, which may be NULL, helps; the plan does not depend on it.
Plan *plan_make(Arena *a, const Artifact *art, const IsaShapes *shapes, const uint8_t *dynamic, const uint8_t *plain,
                Pool *pool);
Plan *plan_share(Arena *a, const Plan *p); // the same for a core beside: only what plan_fits writes is its own
// Do the segments lie as the plan assumes: apart, or in each other's place?
bool plan_fits(const Plan *p, const Artifact *art, uint8_t *const *segs);

#endif
