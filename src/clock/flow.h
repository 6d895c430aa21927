// SPDX-License-Identifier: Apache-2.0
// flow.h — a program as the five sequencers walk it: instructions, loops and fences in one list.
//
// Every sequencer goes through the list by itself, skipping what is not its own, and keeps its own
// loop counters. A fence (barrier or branch) stops all five. Branches are not followed: the arms of
// a conditional come one after the other, and a loop made of branches runs as often as the artifact
// says, a branch that it calls seldom not at all.
#ifndef OTRN_CLOCK_FLOW_H
#define OTRN_CLOCK_FLOW_H

#include "artifact/artifact.h"

#define FLOW_DEPTH (ART_LOOP_DEPTH_MAX + 8)
#define NO_REGION UINT32_MAX

typedef enum ItemKind { ITEM_INST, ITEM_FENCE, ITEM_BEGIN, ITEM_END, ITEM_STOP } ItemKind;

typedef struct FlowItem {
    uint8_t kind, engine; // engine: the sequencer (isa_seq)
    uint8_t cost, queue, wait_sem[2]; // its instruction's, here because every step looks at them
    bool chained;                     // reads what its engine wrote just before
    bool signals;                     // one of the program's own semaphores
    bool meets;                       // waits for the other core of a pair to come here too
    uint32_t wait_val[2];
    uint32_t pc;     // its instruction; of the ends of a loop without one: UINT32_MAX
    uint32_t region; // the loop it is in; of a loop's ends: the loop itself
    // For waits that count back: instructions of that semaphore since the last barrier or, inside
    // its loop's body, since that began (then `in_body`).
    uint64_t before[2];
    bool in_body[2];
} FlowItem;

typedef struct FlowRegion { // a loop
    uint32_t begin, end; // items
    uint32_t parent, depth;
    uint64_t trips;
    bool unknown;     // how often it runs is not known, only guessed
    bool counted;     // a run has counted it
    bool seldom;      // a branch that is not taken as a rule: not at all, or as often as a run has counted
    bool has_fence, has_barrier;
    uint16_t engines; // bit per sequencer that walks it
    uint64_t per_iter[SEM_USER]; // completions an iteration adds, inner loops included
    uint64_t entry[SEM_USER];    // … counted in the parent's body before it, or since a barrier
    bool entry_in_body;
    uint64_t tail[SEM_USER];     // has_barrier: since the last barrier in its body, at its end
    uint32_t absolute[SEM_USER]; // the largest count an absolute wait inside names
} FlowRegion;

typedef struct Flow {
    const Artifact *art;
    VEC(FlowItem) items;     // the last one is ITEM_STOP
    VEC(FlowRegion) regions; // outer before inner
    int nseqs;               // those of streams only where there are collectives
    uint32_t *next[ISA_SEQS]; // per item: the first one at or after it that the sequencer stops at
} Flow;

// What is known of loops whose length the artifact does not tell (clock.h, ClockOptions).
typedef struct FlowTrips {
    const uint64_t *trips;
    uint32_t ntrips;
    uint64_t otherwise; // at least 1
} FlowTrips;
uint32_t flow_unknown(const Artifact *art); // how many such loops there are
void flow_make(Arena *a, const Artifact *art, const FlowTrips *known, Flow *out); // known: NULL, all once

// Completions of `sem` that stand before an item in program order, since the last barrier. `iter`
// holds the iteration of the loop at each depth.
uint64_t flow_before(const Flow *f, const FlowItem *item, int wait, int sem, const uint64_t *iter);

#endif
