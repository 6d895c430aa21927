// SPDX-License-Identifier: Apache-2.0
// clock.h — modelled time: prices instructions from a chip file, never sees data.
//
// Events run over engine queues and DMA queues in the order the semaphores allow. Loops of known
// trip count are repeated (a steady state is recognised and multiplied); unknown ones are as long as a run
// counted them (ClockOptions.trips), else count once and are reported. Branches are not followed: all code between is priced once, so the arms of a
// conditional add up.
#ifndef OTRN_CLOCK_CLOCK_H
#define OTRN_CLOCK_CLOCK_H

#include "artifact/artifact.h"
#include "mach/chipfile.h"

// --- pricing -------------------------------------------------------------------------------------
#define CLOCK_TRACKS (ENG_COUNT + 3) // five engines, DMA in, DMA out, collectives
typedef struct ClockEvent {
    uint32_t inst;      // instruction number
    uint8_t track;
    uint8_t core;       // of a pair
    double begin_ns, end_ns;
} ClockEvent;

// What held an instruction back last; CAUSE(id, "name"). stall.h tells what they mean to a reader.
#define CLOCK_CAUSES(CAUSE)                                                                        \
    CAUSE(NONE, "start")         /* nothing: it begins with the program */                         \
    CAUSE(WAIT, "wait")          /* a semaphore: another instruction was not over */               \
    CAUSE(ORDER, "order")        /* the instruction before it on its sequencer */                  \
    CAUSE(WEIGHTS, "weights")    /* the array's other set of weights is in use */                  \
    CAUSE(PORT, "port")          /* another engine has the memory's port */                        \
    CAUSE(QUEUE, "queue")        /* its DMA queue is full, or paces its transfers */               \
    CAUSE(DMA, "dma engines")    /* other transfers have the DMA engines */                        \
    CAUSE(HBM, "hbm")            /* others have the HBM's bandwidth */                             \
    CAUSE(FENCE, "fence")        /* a barrier or branch before it */                               \
    CAUSE(ALL, "barrier")        /* it is a barrier: all that was begun has to end */              \
    CAUSE(PARTNER, "other core") /* the other core of a pair has not come here */
typedef enum ClockCause {
#define CAUSE(id, name) CLOCK_##id,
    CLOCK_CAUSES(CAUSE)
#undef CAUSE
    CLOCK_CAUSE_COUNT
} ClockCause;

#define CLOCK_NOBODY UINT32_MAX
// Of the event with the same number: its times in picoseconds, and who decided them.
typedef struct ClockLink {
    int64_t issue, begin; // its sequencer takes it up; it begins, a transfer later than that
    int64_t serve;        // has what it shares with others (HBM, DMA engines)
    int64_t end, done;    // is over; others can know it
    int64_t gap, busy;    // its track stood still before it; what it adds to the track's busy time
    uint32_t issue_by, begin_by, serve_by; // events that held it back there; CLOCK_NOBODY
    uint8_t issue_cause, begin_cause; // begin: CLOCK_NONE where issue alone decided
    uint8_t limit; // what decides how long it takes: CLOCK_HBM, CLOCK_DMA, or CLOCK_NONE: its own work
} ClockLink;

typedef struct ClockJump { // iterations added at once: no events in between
    double from_ns, to_ns;
    uint32_t first, event; // events [first, event) are those of one period
    uint64_t times;        // so often it was added
    int64_t period;
    int64_t late[2][CLOCK_TRACKS]; // by so much the first gap of a core's track in [first, event) is longer than in the periods added
} ClockJump;

typedef struct Clock {
    double total_ns;
    double busy_ns[CLOCK_TRACKS]; // of two cores with programs of their own: the mean; what follows: the sum
    double comm_ns; // some collective runs, on either core
    uint64_t insts[CLOCK_TRACKS];
    double flops, hbm_bytes, link_bytes;
    uint64_t unknown_loops; // whose length nobody told: as long as ClockOptions.trips_else, or once
    uint64_t counted_loops; // whose length ClockOptions.trips told
    uint64_t passed;        // branches that are seldom taken, and were left out
    uint64_t simulated; // instructions stepped through; the rest was multiplied
    bool approximate;   // a loop without a steady state was so long that its last iteration was multiplied
    VEC(ClockEvent) events; // only when asked for; loops show their first iterations
    VEC(ClockLink) links;   // with `stalls`: of each event
    VEC(ClockJump) jumps;   // with events: iterations added at once
    uint32_t last_event;    // with `stalls`: the one that ends the run, CLOCK_NOBODY without any
    bool cut;               // there are more events than were kept
    int64_t told_ps[2][CLOCK_TRACKS]; // with `stalls`, of each core: gaps and busy times of a track add up to this
    const struct Price *price, *peer_price; // per instruction, in the run's arena; peer: of the second core's own program
    const struct Flow *flow, *peer_flow;
} Clock;
extern const char *const clock_track_names[CLOCK_TRACKS];

typedef struct ClockOptions {
    bool events;   // keep what begins and ends when
    bool stalls;   // and who held it back (stall.h)
    bool stepwise; // step through every iteration of every loop: slow, for tests
    uint32_t steps_max; // instructions looked at, then a loop's body counts as often as it runs; 0: many
    int cores;     // 2: a logical core of two, each running the program (or its own of two), on one HBM; else one
    const uint64_t *trips; // of the loops of unknown length, in program order: as clock_trips gives them; NULL: not known
    uint32_t ntrips;       // another number of loops than these: they are of another program and tell nothing
    uint64_t trips_else;   // of loops that `trips` does not tell; 0: once
} ClockOptions;
void clock_run(Ctx *ctx, Arena *a, const Artifact *art, const ChipFile *chip, const ClockOptions *opt,
               Clock *out); // opt may be NULL
// How often each loop of unknown length ran each time it was reached, on the average, from what a run counted
// (chip_counts); how many loops there are. Loops are the same and in the same order on every chip.
uint32_t clock_trips(Arena *a, const Artifact *art, const uint64_t *counts, uint64_t **out);
// Perfetto-readable JSON (trace event format) with instruction names and source lines, arrows for waits (of a clock
// that ran with `stalls`) and counters of the memories' occupancy. What ends before from_ns or begins after to_ns is left out.
void clock_trace_window(const Artifact *art, const ChipFile *chip, const Clock *c, double from_ns, double to_ns, Buf *out);
void clock_trace(const Artifact *art, const ChipFile *chip, const Clock *c, Buf *out); // all of it
// To a file; one whose name ends in .gz is compressed. Raises IO.
void clock_trace_write(Ctx *ctx, Arena *a, const char *path, const Buf *text);

#endif
