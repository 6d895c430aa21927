// SPDX-License-Identifier: Apache-2.0
// place.h — the HBM scratch area: who lies where, and when a place may be used again.
#ifndef OTRN_TILE_PLACE_H
#define OTRN_TILE_PLACE_H

#include "tile/step.h"

// Free pieces in address order. That a new owner waits for the old one is sched.c's work, which knows memory by address.
typedef struct Hole {
    uint64_t off, bytes;
} Hole;

typedef struct Heap {
    Arena *arena;
    VEC(Hole) holes;
    uint64_t top;  // first byte never used
    uint64_t live, peak;
    bool new_peak; // set when an allocation raised the peak
} Heap;

typedef struct Pieces { // what is known of a segment of HBM, a record for each piece, by chunks that somebody has touched
    uint8_t **chunks;
    uint64_t n;
} Pieces;

#define HEAP_ALIGN 64
#define HEAP_ALIGN_LARGE 32768 // of tensors that sched.c should tell apart

void counts_merge(Counts *into, const Counts *from, uint32_t epoch);

static inline void counts_reset(Counts *c, uint32_t epoch) { // nothing is left to wait for
    c->epoch = epoch;
    c->w.set = c->r.set = 0;
}

static inline void known_set(Known *k, int sem, uint32_t count) {
    k->set |= 1u << sem;
    k->n[sem] = count;
}

static inline void known_merge(Known *into, const Known *from) {
    for (uint32_t left = from->set; left; left &= left - 1) {
        int s = __builtin_ctz(left);
        into->n[s] = into->set >> s & 1 && into->n[s] > from->n[s] ? into->n[s] : from->n[s];
    }
    into->set |= from->set;
}

void *pieces_at(Arena *arena, Pieces *p, size_t record, uint64_t first, uint64_t *n); // records from `first` on, zero at first; n: at most so many, those that lie there
uint64_t heap_take(Heap *h, uint64_t bytes, bool alone); // offset; alone: no piece of it has other owners
void heap_give(Heap *h, uint64_t off, uint64_t bytes, bool alone);

#endif
