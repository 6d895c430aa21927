// SPDX-License-Identifier: Apache-2.0
// place.c — best fit over the free pieces; freed neighbours are joined.
#include "tile/place.h"

#include <assert.h>
#include <string.h>

#define PIECES_CHUNK 16 // small programs touch few, and have to clear them

void counts_merge(Counts *into, const Counts *from, uint32_t epoch) {
    if (into->epoch != epoch)
        counts_reset(into, epoch);
    if (from->epoch != epoch)
        return; // everything of an older epoch is complete
    known_merge(&into->w, &from->w);
    known_merge(&into->r, &from->r);
}

void *pieces_at(Arena *arena, Pieces *p, size_t record, uint64_t first, uint64_t *n) {
    uint64_t chunk = first / PIECES_CHUNK, at = first % PIECES_CHUNK;
    assert(*n);
    if (chunk >= p->n) {
        uint64_t wider = chunk + 1 > 2 * p->n ? chunk + 1 : 2 * p->n;
        uint8_t **to = ARENA_NEWN(arena, uint8_t *, wider);
        if (p->n)
            memcpy(to, p->chunks, p->n * sizeof *to);
        p->chunks = to, p->n = wider;
    }
    if (!p->chunks[chunk])
        p->chunks[chunk] = arena_array(arena, PIECES_CHUNK, record);
    *n = *n < PIECES_CHUNK - at ? *n : PIECES_CHUNK - at;
    return p->chunks[chunk] + at * record;
}

static uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) & ~(to - 1); }
static uint64_t size_of(uint64_t bytes, bool alone) { return round_up(bytes, alone ? HEAP_ALIGN_LARGE : HEAP_ALIGN); }

static void hole_remove(Heap *h, uint32_t i) {
    memmove(&h->holes.at[i], &h->holes.at[i + 1], (h->holes.n - i - 1) * sizeof(Hole));
    h->holes.n--;
}

static uint64_t aligned(uint64_t off, uint64_t bytes, bool alone) {
    return round_up(off, alone || bytes >= 8 * HEAP_ALIGN_LARGE ? HEAP_ALIGN_LARGE : HEAP_ALIGN);
}

// The piece [off, off + bytes) of a hole; what is left on either side stays a hole.
static void hole_cut(Heap *h, uint32_t i, uint64_t off, uint64_t bytes) {
    Hole *hole = &h->holes.at[i];
    uint64_t before = off - hole->off, after = hole->off + hole->bytes - off - bytes;
    if (before && after) {
        VEC_PUSH(h->arena, &h->holes, (Hole){0});
        memmove(&h->holes.at[i + 1], &h->holes.at[i], (h->holes.n - 1 - i) * sizeof(Hole));
        h->holes.at[i].bytes = before;
        h->holes.at[i + 1] = (Hole){off + bytes, after};
    } else if (before) {
        hole->bytes = before;
    } else if (after) {
        *hole = (Hole){off + bytes, after};
    } else {
        hole_remove(h, i);
    }
}

uint64_t heap_take(Heap *h, uint64_t bytes, bool alone) {
    bytes = size_of(bytes, alone);
    if (!bytes)
        return 0;
    h->live += bytes;
    h->new_peak = h->live > h->peak;
    if (h->new_peak)
        h->peak = h->live;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < h->holes.n; i++) {
        const Hole *hole = &h->holes.at[i];
        if (aligned(hole->off, bytes, alone) + bytes <= hole->off + hole->bytes &&
            (best == UINT32_MAX || hole->bytes < h->holes.at[best].bytes))
            best = i;
    }
    if (best != UINT32_MAX) {
        uint64_t off = aligned(h->holes.at[best].off, bytes, alone);
        hole_cut(h, best, off, bytes);
        return off;
    }
    Hole *last = h->holes.n ? &h->holes.at[h->holes.n - 1] : NULL;
    bool grows = last && last->off + last->bytes == h->top; // the last hole touches the top
    uint64_t from = grows ? last->off : h->top, off = aligned(from, bytes, alone);
    if (grows && off == from)
        h->holes.n--;
    else if (grows)
        last->bytes = off - from;
    else if (off > from)
        VEC_PUSH(h->arena, &h->holes, ((Hole){from, off - from}));
    h->top = off + bytes;
    return off;
}

void heap_give(Heap *h, uint64_t off, uint64_t bytes, bool alone) {
    bytes = size_of(bytes, alone);
    if (!bytes)
        return;
    assert(h->live >= bytes);
    h->live -= bytes;
    uint32_t lo = 0, hi = h->holes.n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (h->holes.at[mid].off < off)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool joins_before = lo > 0 && h->holes.at[lo - 1].off + h->holes.at[lo - 1].bytes == off;
    bool joins_after = lo < h->holes.n && off + bytes == h->holes.at[lo].off;
    if (joins_before) {
        Hole *b = &h->holes.at[lo - 1];
        b->bytes += bytes;
        if (joins_after) {
            b->bytes += h->holes.at[lo].bytes;
            hole_remove(h, lo);
        }
        return;
    }
    if (joins_after) {
        Hole *a = &h->holes.at[lo];
        a->off = off;
        a->bytes += bytes;
        return;
    }
    VEC_PUSH(h->arena, &h->holes, (Hole){0});
    memmove(&h->holes.at[lo + 1], &h->holes.at[lo], (h->holes.n - 1 - lo) * sizeof(Hole));
    h->holes.at[lo] = (Hole){.off = off, .bytes = bytes};
}
