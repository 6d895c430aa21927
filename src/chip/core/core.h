// SPDX-License-Identifier: Apache-2.0
// core.h — the inside of a core, for the files that execute instructions.
#ifndef OTRN_CHIP_CORE_H
#define OTRN_CHIP_CORE_H

#include "chip/core/check.h"
#include "chip/core/check_range.h"
#include "chip/core/dma.h"
#include "chip/core/engine.h"
#include "chip/gpsimd/chance.h"
#include "chip/core/nan.h"
#include "chip/host/plan.h"
#include "chip/host/profile.h"

// Partitions lie an odd number of cache lines apart, so that the rows of a tile use all sets of the nearest cache, and such a
// number that they use all 2048 sets of the next one: 17 lines beyond a power of two spread 128 rows over 2176. With 1 line a
// tile of 512 columns has 160 sets, and most of it stays in the cache behind (reading it: 0.05 to 0.065 ns a float, not 0.034).
#define SBUF_PITCH (ISA_SBUF_BYTES + 17 * 64)
#define PSUM_PITCH (ISA_PSUM_BYTES + 3 * 64)

struct Chip {
    Pool *pool;
    HostLevel level;
    uint8_t *map; // one mapping holds SBUF, PSUM and the weights of rarer products
    size_t map_bytes;
    uint8_t *sbuf, *psum;
    uint8_t *blocks; // operands of products that the plan lays out apart from the rows of SBUF, by their place there
    MmStationary array;
    int64_t regs[ISA_REGS];
    int64_t sems[USER_SEMS];
    EngineState engines;
    EffRound round;
    struct CommRank *comm;
    const ChipHost *host;
    ChipCheck *check; // watches this run; NULL: nobody does
    CheckRange *range; // likewise
    ChipNan *nan;     // likewise
    uint64_t draws;      // rng ops of this run so far, counted from
    uint64_t first_draw; // this number
    ChipPlan plan;
    bool follows;   // this run follows the host plan
    bool turns;     // it stops at every core_barrier,
    bool met;       // as it has now
    ChipProfile *profile;
    Pulse *pulse;   // a run may have to end early; NULL: it has not
    bool tells;     // and this core says how far it is
    struct Flow *flow;
    EngJob *jobs;   // PLAN_STEPS of them: the joined instructions at work
};

struct ChipProg {
    const Artifact *art;
    GpFn **fns;         // per kernel
    GpChance **chance;  // per kernel: how its results are rounded by chance; NULL: not loaded for that
    uint8_t *wide;      // room for their numbers
    void **ptrs;        // operands then results of the kernel being run
    void *scratch;      // for kernels, 64-byte aligned
    size_t nptrs, scratch_bytes, wide_bytes;
    uint8_t *dynamic;   // per instruction: ART_DYN_… to look at while it runs
    uint8_t *pe;        // per ldweights and matmul: PE_… ways it goes
    Plan *plan;
    bool flows, fresh; // flow.h
    // Of a program with loops whose length only the run knows, per instruction: how often a jump, a branch or the end of a
    // loop went back, how often a loop was entered. NULL: of others.
    uint64_t *counts;
    bool counted; // a run has ended
    bool narrow;       // it loads weights that levels with narrow products multiply by themselves
};

// How a product goes: those of the whole array with fp32 results, also over rows of columns, by themselves or with their neighbours to the host
// kernels, the rest to effect_pe.c. Weights may be needed both ways.
enum { PE_PLAIN = 1, PE_RARE = 2, PE_ROWS = 4 };

// Host address of an operand; *axis0 is the byte stride of axis 0 when it is the partition axis, else 0.
static inline uint8_t *chip_resolve(const Chip *c, uint8_t *const *segs, uint64_t addr, int64_t *axis0) {
    switch (addr_space(addr)) {
    case SPACE_SBUF:
        *axis0 = SBUF_PITCH;
        return c->sbuf + (size_t)addr_part(addr) * SBUF_PITCH + addr_poff(addr);
    case SPACE_PSUM:
        *axis0 = PSUM_PITCH;
        return c->psum + (size_t)addr_part(addr) * PSUM_PITCH + addr_poff(addr);
    default:
        *axis0 = 0;
        return segs[addr_seg(addr)] + addr_off(addr);
    }
}

// An operand of an engine instruction: host address and byte stride of its partitions. Without one, or for a
// number, the address is NULL.
static inline EffOperand chip_operand(const Chip *c, uint8_t *const *segs, uint64_t addr) {
    EffOperand o = {0};
    if (addr && addr_space(addr) < SPACE_COUNT)
        o.at = chip_resolve(c, segs, addr, &o.pitch);
    return o;
}

// Executes a run of the plan.
void plan_run(Chip *c, const ChipProg *p, const PlanRun *run, uint8_t *const *segs);
// The same in two steps: the run as jobs (room for PLAN_STEPS of them), then slices [begin, end) of partitions.
typedef struct PlanWork {
    EngJob *jobs;
    uint32_t njobs, slice, slices; // partitions that go together, and how many times
    uint64_t elems;                // the whole work, in elements
} PlanWork;
PlanWork plan_work(const Chip *c, const ChipProg *p, const PlanRun *run, uint8_t *const *segs, EngJob *jobs,
                   EngineState *state);
void plan_work_run(const PlanWork *w, uint32_t begin, uint32_t end);

// Transfers by index from pc on, together; returns the place behind them, or pc when there are not several. The run
// follows the plan.
uint32_t indirect_run(Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs, otrn_status *status, char *why,
                      size_t why_bytes);

// A product and the load before it, where they lie in this run (chip.c). Counts of an instruction: none reads as one.
MmLoad chip_load_of(const Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs);
MmStep chip_product_of(const Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs);
// A transfer of bits; false: there is nothing to do.
bool chip_copy_of(const Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs, DmaCopy *out);
DmaCopy chip_through_of(const Chip *c, const IsaInst *in, const IsaInst *out, uint8_t *const *segs);
EffCall chip_effect_of(const Chip *c, const IsaInst *in, uint8_t *const *segs);

#endif
