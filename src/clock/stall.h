// SPDX-License-Identifier: Apache-2.0
// stall.h — why a run takes as long as it does: its critical path, and what each engine waits for.
//
// The critical path is a chain of instructions, each of which began when the one before let it, from the end
// of the run back to its start: what shortens none of its pieces does not shorten the run. Its pieces add up to
// the run's time. A track's busy time, its stalls and its idle time after its last instruction add up to it too.
#ifndef OTRN_CLOCK_STALL_H
#define OTRN_CLOCK_STALL_H

#include "clock/view.h"

// What a track stands still for. Those before STALL_LATENCY: it waits for that track's work.
enum {
    STALL_LATENCY = CLOCK_TRACKS, // signals, starts and completions of transfers, an engine's depth
    STALL_ISSUE,   // its sequencer is busy with other instructions
    STALL_WEIGHTS, // the array's second set of weights is in use
    STALL_PORT,    // another engine has the memory's port
    STALL_QUEUE,   // a DMA queue is full, the collective cores have other work
    STALL_PARTNER, // the other core of a pair
    STALL_START,   // before the first instruction
    STALL_COUNT,
};
extern const char *const stall_names[STALL_COUNT]; // "tensor" … "latency", "issue"

// A piece of the critical path. On a track: work there, by what limits it.
enum {
    PATH_WORK,   // the engine's own rate
    PATH_HBM,    // HBM's bandwidth
    PATH_DMA,    // the DMA engines
    PATH_SIGNAL, // a semaphore on its way
    PATH_FINISH, // an engine's depth, a transfer's completion
    PATH_START,  // of a transfer
    PATH_ISSUE,  // sequencers: control, one instruction after the other
    PATH_KINDS,
};
extern const char *const path_names[PATH_KINDS];

typedef struct StallRow { // a line's instructions stand still
    uint8_t track, why; // STALL_…
    uint32_t line;      // who waits, a number into view.lines; STALL_NO_LINE
    uint32_t for_line;  // whom it waits for
    double ns;
} StallRow;
#define STALL_NO_LINE UINT32_MAX

typedef struct PathRow {
    uint8_t track, kind; // PATH_…
    uint32_t line;
    double ns;
    double steps; // instructions
} PathRow;

typedef struct Stalls {
    bool known; // false: the run has more instructions than the clock keeps, or none
    double total_ns;
    double busy_ns[CLOCK_TRACKS], idle_ns[CLOCK_TRACKS]; // idle: after its last instruction
    double stall_ns[CLOCK_TRACKS][STALL_COUNT];
    VEC(StallRow) rows; // longest first
    double path_ns[CLOCK_TRACKS][PATH_KINDS];
    VEC(PathRow) path;  // longest first
    // Per instruction of each core's program, in ns: its part of the critical path; its track stood still before
    // it; others stood still for it.
    double *on_path[2], *waits[2], *waited_for[2];
} Stalls;

// The track with the most work on the critical path; where that is not known the busiest.
int stall_bottleneck(const Clock *clock, const Stalls *s);
double stall_work_ns(const Stalls *s, int track); // of the path: work there, at whatever rate
// `clock` ran with `stalls`; the lines are those of `view`.
void stall_make(Arena *a, const Artifact *art, const ChipFile *chip, const Clock *clock, const View *view, Stalls *out);

#endif
