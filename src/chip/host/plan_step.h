// SPDX-License-Identifier: Apache-2.0
// plan_step.h — what the planner knows of a run: its steps, the bytes they touch, and what SBUF is still needed for.
#ifndef OTRN_CHIP_PLAN_STEP_H
#define OTRN_CHIP_PLAN_STEP_H

#include "chip/host/plan.h"

#define PLAN_STAYS 0xff // PlanAcc.how: where the instruction says
#define PLAN_ACCS (PLAN_STEPS * 7)

typedef struct PlanAcc { // bytes [lo, hi) of partitions [p0, p1)
    uint16_t step;
    uint8_t slot, space, bytes; // bytes: of an element
    uint8_t p0, p1;
    bool is_write;
    bool flat;  // every byte between lo and hi, in ascending order; a write changes each of them
    uint8_t how; // PLAN_HBM, PLAN_LOCAL, PLAN_STAYS
    uint8_t dtype; // as in PlanOver
    uint32_t first, lo, hi; // first: where its address points
    uint32_t dma, at;       // as in PlanOver
} PlanAcc;

typedef struct PlanHbm { // the HBM side of a transfer: row p at base + p * pitch, `span` bytes
    uint32_t seg;        // standing for all that may share its memory
    int64_t base, pitch, span;
    int64_t lo, hi; // of all rows
    bool is_write;
    bool flat; // a row is adjacent bytes
} PlanHbm;

typedef struct PlanStep {
    uint32_t pc;
    uint16_t acc, naccs; // reads before writes
    bool is_dma, skip, converts;
    bool gone; // left out for the tensor engine's sake: nothing of the run has to do with it
    bool widens;  // copies bf16 to fp32, bit by bit the same values
    bool sums;    // may take bf16 in the place of fp32
    bool gathers; // a register takes part: its dst may be beside the point
    uint16_t last_read; // of a transfer in that is left out: the last step that reads its data
    PlanHbm hbm;        // of a transfer
} PlanStep;

// What all instructions of a shape have in common: places count from where an instruction's addresses point.
typedef struct PlanForm {
    bool joins; // may be in a run
    uint8_t places[PLAN_SLOTS]; // of addresses in the record
    PlanStep step;
    PlanAcc acc[7]; // at: that place
} PlanForm;
_Static_assert(PLAN_SLOTS == SHAPE_ADDRS, "slots are numbered as the addresses of a shape");

static inline uint32_t plan_poff(const PlanAcc *x, const uint8_t *record) { return le_load32(record + x->at); }

typedef struct PlanPiece {
    uint16_t nsteps, naccs, parts;
    uint32_t local_pitch;
    PlanStep step[PLAN_STEPS];
    PlanAcc acc[PLAN_ACCS];
} PlanPiece;

#define PLAN_CACHED 32768u // memory of a slice that is at work stays this near
#define PLAN_GRAIN 64u // SBUF bytes that are looked at together
typedef struct PlanLive {
    uint8_t parts[ISA_SBUF_BYTES / PLAN_GRAIN]; // partitions [0, parts) are read later
} PlanLive;

// The SBUF bytes that an instruction touches, in a few bytes: most of them are looked at to find that they do not matter.
enum { TOUCH_PLAIN, TOUCH_PRODUCT, TOUCH_DYNAMIC, TOUCH_MORE };
typedef struct PlanTouch { // bytes [lo, hi) of partitions [p0, p1) have it all; none: lo > hi
    uint32_t lo, hi;
    uint8_t p0, p1;
    uint8_t kind; // PRODUCT: rows of a load or product; MORE: writes HBM, jumps, or is to be looked at by itself
} PlanTouch;

typedef struct PlanCode { // what is planned
    const Artifact *art;
    const IsaShapes *shapes;
    const ShapeAccesses *accesses; // per shape
    const PlanForm *forms;         // per shape
    const PlanTouch *touches;      // per instruction
    const uint8_t *dynamic, *plain; // as plan_make got them
    const uint32_t *same_seg;
    Pool *pool; // helps to plan; may be NULL
} PlanCode;
const PlanForm *plan_forms(Arena *a, const IsaShapes *shapes);
const PlanTouch *plan_touches(Arena *a, const PlanCode *code);

void plan_live_all(PlanLive *l, bool live);
// From behind an instruction that is in no run, or in one, to before it.
void plan_live_alone(PlanLive *l, const PlanCode *code, uint32_t pc);
void plan_live_joined(PlanLive *l, const PlanCode *code, uint32_t pc);
bool plan_live_any(const PlanLive *l, uint32_t lo, uint32_t hi);

// Do two transfers touch the same bytes, one of them writing? Of the same partition, that is: others are never
// in one run.
bool plan_hbm_meet(const PlanHbm *x, const PlanHbm *y);
void plan_pe_find(Arena *a, Plan *p, const PlanCode *code);
void plan_tiles_find(Arena *a, Plan *p, const PlanCode *code, const uint8_t *target); // target: somebody jumps there
bool plan_is_product(const IsaInst *in); // or the load before it
bool plan_is_idle(const IsaInst *in); // touches nothing, in any order
bool plan_stays_alone(const IsaInst *in); // joins no run, whatever its addresses are

typedef struct PlanCut { // a run while it is being cut
    uint32_t first, last, nsteps, nhbm;
    PlanHbm hbm[PLAN_STEPS];
    uint32_t brought; // transfers in at its end
    struct {          // transfers in behind something else: the first of the last of those,
        uint32_t pc, before, steps, nhbm; // the step before it, and how much was there
    } tile;
} PlanCut;
// False when the instruction cannot join what is there.
bool plan_cut_add(PlanCut *c, const PlanCode *code, uint32_t pc);

void plan_piece_clear(PlanPiece *p);
void plan_piece_add(PlanPiece *p, const PlanCode *code, uint32_t pc);
// The step just added is a transfer that is not carried out.
void plan_piece_spared(PlanPiece *p);
// Finds the operands that may lie elsewhere; *live as it is behind the run.
void plan_piece_spare(PlanPiece *p, const PlanLive *live);
uint16_t plan_piece_slice(const PlanPiece *p);

#endif
