// SPDX-License-Identifier: Apache-2.0
// sim.h — the state of a running clock, shared by clock.c (events) and steady.c (loops).
#ifndef OTRN_CLOCK_SIM_H
#define OTRN_CLOCK_SIM_H

#include "clock/clock.h"
#include "clock/flow.h"
#include "mach/price.h"

#define DMA_ENGINES_MAX 64
#define STEPS_MAX 20000000u // unless told otherwise; then loops are no longer stepped through, and that is told
#define CORES_MAX 2 // of one logical core

// Times the future depends on, of one core. Resources: when each is free again.
typedef struct Times {
    Ps fence;             // nothing begins earlier
    Ps free[ISA_SEQS];    // sequencers; tensor: its matmuls
    Ps weights;           // the last ldweights is over
    Ps matmul;            // the last matmul began: its weights are in use, the other set is free
    Ps queue[DMA_QUEUES]; // may start another transfer, or collective
    Ps engine[DMA_ENGINES_MAX];
    Ps sbuf_port;         // shared by vector and gpsimd where they exclude each other
    Ps psum_port;         // … by vector and scalar
    Ps psum_bank[PSUM_BANKS]; // … where these share only banks
    Ps busy_until[CLOCK_TRACKS]; // of the timeline, for counting overlaps once
    // The tensor engine's current limiter: after a pause it works at a fraction until pe_cold.
    Ps pe_cold, pe_last;
} Times;
#define TIMES_COUNT (sizeof(Times) / sizeof(Ps))

// Who decided those times: numbers of events. They tell what happened and decide nothing.
typedef struct Holders {
    uint32_t fence, free[ISA_SEQS], weights, matmul, queue[DMA_QUEUES], engine[DMA_ENGINES_MAX];
    uint32_t sbuf_port, psum_port, psum_bank[PSUM_BANKS], done;
} Holders;

typedef struct Bound { // what held an instruction back last
    uint8_t cause; // CLOCK_…
    uint32_t by;   // the event, or CLOCK_NOBODY
} Bound;

typedef struct SemLog { // when each count was reached, since the last barrier; never falls
    uint64_t n;    // counts so far
    uint64_t base; // those before it have been dropped: long over
    VEC(Ps) at;    // of counts base+1 … n
    VEC(uint32_t) by;
} SemLog;

typedef struct Pending { // a signal on its way to one of the program's own semaphores
    Ps when;
    uint8_t op;
    uint16_t value;
    uint32_t by;
} Pending;

typedef struct OwnSem {
    int64_t value;
    Ps changed;
    uint32_t changed_by;
    VEC(Pending) pending; // by time
} OwnSem;

typedef struct Seq { // a sequencer's place in the flow
    uint32_t item;
    Ps ready;       // earliest begin of its item; SEQ_…
    Bound bound;    // what decides it
    int wait_sem;   // SEQ_WAITS: until this semaphore has counted to wait_n; -1 = ask again
    uint64_t wait_n;
    uint64_t iter[FLOW_DEPTH];
    // Past steps_max a loop's body runs once, each instruction taken `times` as long.
    uint64_t times, outer_times[FLOW_DEPTH];
    bool once[FLOW_DEPTH];
} Seq;
enum { SEQ_UNKNOWN = -1, SEQ_WAITS = -2, SEQ_FENCE = -3, SEQ_STOP = -4 };

typedef struct Totals { // what a fast-forward multiplies
    Ps busy[CLOCK_TRACKS];
    uint64_t insts[CLOCK_TRACKS];
    Ps comm; // some collective runs, on either core
    double flops, hbm_bytes, link_bytes;
} Totals;

typedef struct Snap { // the state when every sequencer of a core had begun an iteration; by core
    uint64_t hash[2];
    uint32_t region[CORES_MAX]; // the loops looked at, NO_REGION: none,
    uint64_t iter[CORES_MAX];   // and their iterations
    uint64_t passed[CORES_MAX];
    Ps at;
    Totals totals;
    uint32_t event;
    Ps told[CORES_MAX][CLOCK_TRACKS];
} Snap;

typedef struct Steady { // of one loop while it runs
    VEC(Snap) snaps;
    uint64_t last_iter;
    bool given_up;
} Steady;

typedef struct Core {
    Flow flow;
    const Price *price;
    Times now;
    Holders by;
    Ps done; // all that was begun is over
    Ps told[CLOCK_TRACKS]; // of each track: the links tell of its time until then
    uint32_t latest[CLOCK_TRACKS]; // its last event
    SemLog sem[SEM_USER];
    OwnSem own[USER_SEMS];
    Seq seq[ISA_SEQS];
    uint8_t act_set;    // the table the scalar engine holds, 0xff = none
    VEC(Ps) met;        // arrivals at core_barrier,
    VEC(Bound) met_by;  // and what decided them
    uint64_t passed;    // core_barriers begun
    Steady *steady;     // per region
} Core;

typedef enum RingOf { RING_DMA, RING_HBM, RING_OF } RingOf;
typedef struct Ring { // while a collective's bytes are on their way it has a share of the DMA engines, and of HBM
    Ps from, to;
    uint32_t share[RING_OF]; // of 65536
} Ring;

typedef struct Sim {
    Arena *arena;
    const ChipFile *chip;
    Ps sem_ps, dma_issue, dma_done, dma_gap, control_ps, pe_ramp, pe_rearm, act_load;
    Ps chain[ISA_SEQS]; // an instruction that reads what the one before wrote begins so much later
    uint32_t dma_engines, dma_share, dma_depth;
    uint32_t ncores;
    Core *core[CORES_MAX];
    Ps hbm, links[LINK_COUNT]; // shared by the cores
    VEC(Ring) rings;    // of collectives that are not over, likewise
    uint32_t ring_most; // that they may have together
    Ps comm_until; // of totals.comm
    uint32_t hbm_by, links_by[LINK_COUNT];
    uint32_t me;    // the event of the instruction being run
    ClockLink link; // and what is known of it
    uint64_t times; // of the instruction being run
    Totals totals;
    Clock *out;
    uint32_t steps_max;
    bool want_events, want_links, stepwise;
    bool apart; // two cores with programs of their own: both count
    FlowTrips trips;
} Sim;

// A sequencer has begun another iteration of region r: looks whether the loop repeats itself and, if it
// does, adds as many iterations as it can at once.
void steady_iteration(Sim *s, Core *c, uint32_t r);
void steady_enter(Core *c, uint32_t r); // a loop begins

// --- rings.c: collectives on the DMA engines and in HBM ---
void rings_init(Sim *s);
Ps rings_pass(const Sim *s, RingOf of, Ps at, Ps work); // when an engine, or HBM, is through with a transfer's part that it begins at `at`
// A collective's bytes go from `from` to `end` over the links and take `work` of every engine's time and of HBM's; returns when all are
// through. Nothing begins before `now`.
Ps rings_take(Sim *s, Ps from, Ps end, const Ps work[RING_OF], Ps now);

static inline uint64_t times_u64(uint64_t a, uint64_t n) {
    uint64_t out;
    return __builtin_mul_overflow(a, n, &out) ? UINT64_MAX : out;
}
static inline uint64_t add_u64(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }
static inline Ps ps_times(Ps t, uint64_t n) {
    Ps out;
    return __builtin_mul_overflow(t, n, &out) || out > PS_MAX ? PS_MAX : out;
}

#endif
