// SPDX-License-Identifier: Apache-2.0
// sched.h — between recording instructions (sched.c) and placing them (sched_place.c).
//
// The two know different things of the same memory: recording, who was recorded for it; placing, the completion counts of who
// was placed. So they may go beside each other: a step that is recorded goes over as a whole, and what is placed then depends on
// the steps handed over so far and on nothing else. The program is the same whoever places it and when.
#ifndef OTRN_TILE_SCHED_H
#define OTRN_TILE_SCHED_H

#include "tile/emit.h"

#define REC_DEPS 10
#define MEET_ENGINE ENG_GPSIMD // where the cores meet, as on the real chip

#define PIECE_BITS 15 // HBM is tracked in pieces of 32 KiB,
#define PIECE_CELL ((1u << PIECE_BITS) / 64) // … each of 64 cells

typedef struct Touch { // pieces of HBM
    uint32_t seg, first, last;
    uint32_t lo, hi; // bytes: where it begins in the first, and ends in the last
    bool writes;
    uint32_t pitch, from, to; // of a write to the columns [from, to) of rows `pitch` bytes apart; 0: to all of it, or who knows
} Touch;

typedef struct Rec { // an instruction to be placed, or a merge of what is known about memory
    IsaInst in;
    uint32_t ntouches;
    Touch few[2];
    const Touch *more;     // when there are more than a few
    uint32_t loc;
    uint32_t round, after; // as in Emit, when it was recorded
    uint8_t nreads, nwrites, ndeps;
    bool is_merge, placed;
    uint8_t act_set; // the scalar engine's table it needs
    Haz *reads[REC_READS], *writes[REC_WRITES];
    uint64_t deps[REC_DEPS]; // records of the lane that go before it
    uint64_t upto;           // … and all below this number
    uint32_t tasks;          // … and all tasks below this number
    float busy, latency, hbm; // ns
    double finish;
} Rec;

typedef struct Task {
    uint64_t next, end; // records; next: to be placed
    uint64_t order;     // of recording, over all lanes
    uint64_t turn;      // of tasks that store, 0: none of it has been placed
    uint32_t dep[LANE_COUNT]; // tasks of other lanes that go before it
    double ready, finish; // ns
    bool may_begin;       // those of other lanes are placed
} Task;

typedef struct Batch { // a step as it was recorded, in one lane
    Lane lane;
    VEC(Task) tasks;
    uint64_t recs; // of the lane, up to its end
} Batch;

typedef struct Placer Placer;
Placer *placer_make(Emit *e, uint32_t nsegments);
Batch *placer_batch(Placer *p); // an empty one, to be filled
Rec *placer_rec(Placer *p, Lane lane, uint64_t number); // room for the next record of the lane
void placer_take(Placer *p);    // it is full: placed by and by
void placer_flush(Placer *p);   // all is placed, and nothing happens until there is more
// Records by fn(arg) here; `beside`: while another thread of the pool, if there is one, places.
void placer_run(Placer *p, void (*fn)(void *arg), void *arg, bool beside);

#endif
