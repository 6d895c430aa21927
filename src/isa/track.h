// SPDX-License-Identifier: Apache-2.0
// track.h — which accesses overlap, and which of them semaphores have ordered.
//
// A Region is the exact set of bytes of one access. A Track remembers those of the instructions so far
// and finds the ones a new access meets. An Order knows, for each engine and queue, how many
// instructions of every other have surely completed before its next one starts: a vector clock over
// SEM_USER counters. The assembler adds waits with them, the race checker looks for missing ones.
#ifndef OTRN_ISA_TRACK_H
#define OTRN_ISA_TRACK_H

#include "isa/check.h"

typedef struct Region { // runs of `run` bytes at base + sum of i * stride, in partitions [part0, part1)
    uint32_t place;     // space << 16 | segment
    uint32_t part0, part1;
    int64_t base, run;
    int n;
    uint32_t count[ISA_AXES]; // outermost first
    int64_t stride[ISA_AXES], span[ISA_AXES]; // span: bytes from axis i on
    int64_t lo, hi;
} Region;

Region track_region(const IsaAccess *a, int64_t terms);
Region track_box(uint32_t place, uint32_t part0, uint32_t part1, int64_t lo, int64_t hi);
bool track_overlap(const Region *a, const Region *b);
// `a` surely holds all of `b`; false when in doubt.
bool track_covers(const Region *a, const Region *b);

typedef struct TrackEntry {
    Region r;
    uint32_t pc, ord; // instruction, and its number on its engine or queue, from 1
    uint8_t sem;
    bool is_write;
    uint32_t child[2]; // in its tree: number + 1 of those before and behind it; [0] of an unused one: the next
    __int128 reach;    // where the regions below it end, see track.c
} TrackEntry;

typedef struct Track {
    Arena *arena;
    VEC(TrackEntry) entries;
    uint32_t root[2], unused; // of reads, of writes; entries to be used again
    VEC(uint32_t) gone;       // while an access is added
} Track;

void track_init(Track *t, Arena *a);
void track_clear(Track *t);
// Calls fn for each earlier access that overlaps and conflicts (one of the two writes).
typedef void TrackFn(void *arg, const TrackEntry *e);
void track_meet(Track *t, const Region *r, bool is_write, TrackFn *fn, void *arg);
// Remembers an access. Earlier ones that it makes needless go: those it covers that cannot race with
// anything it does not race with itself.
void track_add(Track *t, const Region *r, bool is_write, int sem, uint32_t ord, uint32_t pc);

#define ORDER_SEMS SEM_USER
#define ORDER_ALL (2 * ORDER_SEMS)
typedef struct Clocks { // per semaphore: completions known; behind ORDER_SEMS those of the other core of a pair
    uint32_t n[ORDER_ALL];
} Clocks;
typedef struct Snapshot {
    uint32_t ord;
    Clocks c;
} Snapshot;
typedef struct Order {
    Arena *arena;
    Clocks issued;             // instructions so far
    Clocks seq[ISA_SEQS];      // what each sequencer has waited for
    Clocks last[ORDER_SEMS];   // what the last instruction of each engine or queue knew when it began
    VEC(Snapshot) snaps[ORDER_SEMS];
} Order;

void order_init(Order *o, Arena *a);
// What the instruction knows when it starts, with the waits its sequencer has done so far: what that
// one has waited for, and what came before on its own engine or queue.
Clocks order_start(const Order *o, const IsaInst *in);
// Joins what is known once instruction `ord` of `sem` has completed.
void order_join(const Order *o, Clocks *into, int sem, uint32_t ord);
// Its sequencer waits until then.
void order_wait(Order *o, const IsaInst *in, int sem, uint32_t ord);
uint32_t order_run(Order *o, const IsaInst *in); // it runs; returns its number, from 1
// The instruction that ran last on `sem` met one of the other core, which knew `theirs` when it came.
void order_met(Order *o, int sem, const Clocks *theirs);
void order_barrier(Order *o);

#endif
