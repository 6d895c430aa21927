// SPDX-License-Identifier: Apache-2.0
// matmul_run.c — a run of loads and products shared out over threads.
//
// Products into different parts of PSUM do not depend on each other, so a run is cut into chains, one per
// part, each with its own packed stationary operand:
//
//   bank 0:  load product load product …        chains go to threads as a whole; when there are fewer
//   bank 1:  load product load product …        than threads can share evenly, each is cut into pieces
//   bank 2:  …                                  of its columns as well
//
// Thin products (sums over rows, matrices times vectors) are cut into pieces even when they are a single chain: one by one
// each would take less time than its handoff.
//
// A handoff then costs nothing beside milliseconds of work, and no thread waits for another's load. Order
// inside a chain is program order, and columns are independent: the bits are those of one thread.
#include <assert.h>

#include "chip/host/matmul.h"

#define CHAINS_MAX 8
#define PIECE_COLS 64 // least columns of a piece: below that packing outweighs multiplying
#define THIN_COLS 128 // of a piece of thin products
#define THIN_WORK 65536 // multiplications that are worth a handoff

typedef struct Chain {
    uint32_t begin, end; // bytes of a PSUM partition
    uint32_t cols;       // most columns of a product in it
} Chain;

typedef struct Run {
    HostLevel level;
    const MmStationary *array; // what was loaded before the run
    const MmStep *steps;
    uint32_t count;
    uint8_t chain[MM_STEPS_MAX]; // of each step
    Chain chains[CHAINS_MAX];
    uint32_t nchains, pieces;
} Run;

// The chain of bytes [begin, end): the one with the same bytes, a new one, or none when they overlap others
// or there are too many.
static int chain_find(Run *r, uint32_t begin, uint32_t end) {
    for (uint32_t i = 0; i < r->nchains; i++) {
        const Chain *c = &r->chains[i];
        if (c->begin == begin && c->end == end)
            return (int)i;
        if (begin < c->end && c->begin < end)
            return -1;
    }
    if (r->nchains == CHAINS_MAX)
        return -1;
    r->chains[r->nchains] = (Chain){begin, end, 0};
    return (int)r->nchains++;
}

static bool run_split(Run *r) {
    for (uint32_t i = 0; i < r->count; i++) {
        const MmStep *s = &r->steps[i];
        int chain = chain_find(r, s->dst_begin, s->dst_end);
        if (chain < 0)
            return false;
        r->chain[i] = (uint8_t)chain;
        if (s->n > r->chains[chain].cols)
            r->chains[chain].cols = s->n;
    }
    return true;
}

static bool same_load(const MmLoad *a, const MmLoad *b) {
    return a == b || (a && b && a->src == b->src && a->pitch == b->pitch && a->stride == b->stride && a->stype == b->stype &&
                      a->k == b->k && a->m == b->m && a->blocks == b->blocks);
}

static bool run_is_thin(const Run *r) {
    for (uint32_t i = 0; i < r->count; i++)
        if (r->steps[i].load.src ? r->steps[i].load.m > MM_THIN_ROWS : !i && r->array->m > MM_THIN_ROWS)
            return false;
    return true;
}

static uint32_t run_pieces(const Run *r, uint32_t threads, bool thin) {
    if (thin)
        return r->chains[0].cols / THIN_COLS ? r->chains[0].cols / THIN_COLS : 1;
    if (r->nchains % threads == 0)
        return 1;
    uint32_t want = (2 * threads + r->nchains - 1) / r->nchains, most = UINT32_MAX;
    for (uint32_t i = 0; i < r->nchains; i++)
        if (r->chains[i].cols / PIECE_COLS < most)
            most = r->chains[i].cols / PIECE_COLS;
    return most < 1 ? 1 : want < most ? want : most;
}

// The last load at or before step i; NULL: what was there before the run.
static const MmLoad *load_of(const Run *r, uint32_t i) {
    do
        if (r->steps[i].load.src)
            return &r->steps[i].load;
    while (i--);
    return NULL;
}

static uint32_t next_in_chain(const Run *r, uint32_t i) {
    uint32_t chain = r->chain[i];
    while (++i < r->count && r->chain[i] != chain)
        ;
    return i;
}

// Piece boundaries are whole lines of PSUM.
uint32_t mm_piece_at(uint32_t n, uint32_t piece, uint32_t pieces) {
    return piece == pieces ? n : n * piece / pieces / 16 * 16;
}

static void chain_run(const Run *r, uint32_t chain, uint32_t piece) {
    _Alignas(64) float panels[MM_PANEL_BYTES / sizeof(float)];
    MmStationary own = {.panels = panels};
    const MmLoad *held = NULL;
    uint32_t i = 0;
    while (r->chain[i] != chain)
        i++;
    for (uint32_t next; i < r->count; i = next) {
        const MmLoad *load = load_of(r, i);
        if (load && !same_load(load, held)) {
            own.panels = panels;
            mm_load_there(r->level, &own, load);
        }
        held = load;
        MmCall call = r->steps[i].call;
        call.st = load ? &own : r->array;
        next = next_in_chain(r, i);
        call.next_src = next < r->count && r->steps[next].call.blocks == call.blocks ? r->steps[next].call.src : NULL;
        call.next_load = next < r->count ? load_of(r, next) : NULL;
        uint32_t n = r->steps[i].n;
        mm_multiply(&call, mm_piece_at(n, piece, r->pieces), mm_piece_at(n, piece + 1, r->pieces));
    }
}

static void run_task(void *arg, size_t begin, size_t end) {
    const Run *r = arg;
    for (size_t i = begin; i < end; i++)
        chain_run(r, (uint32_t)(i / r->pieces), (uint32_t)(i % r->pieces));
}

static void steps_in_order(Pool *pool, HostLevel level, MmStationary *array, const MmStep *steps,
                           uint32_t count) {
    const MmLoad *there = NULL; // the last load, when its operand is used where it is
    MmStationary used;
    for (uint32_t i = 0; i < count; i++) {
        const MmStep *next = i + 1 < count ? &steps[i + 1] : NULL;
        MmCall call = steps[i].call;
        if (steps[i].load.src) {
            there = steps[i].load.blocks ? &steps[i].load : NULL;
            mm_load_there(level, there ? &used : array, &steps[i].load);
        }
        call.st = there ? &used : array;
        call.next_src = next && next->call.blocks == call.blocks ? next->call.src : NULL;
        call.next_load = next ? &next->load : NULL;
        mm_run(pool, &call, steps[i].n);
    }
    if (there)
        mm_load(level, array, there);
}

void mm_run_steps(Pool *pool, HostLevel level, MmStationary *array, const MmStep *steps,
                  uint32_t count) {
    assert(count <= MM_STEPS_MAX);
    Run r = {.level = level, .array = array, .steps = steps, .count = count};
    uint32_t threads = (uint32_t)pool_threads(pool);
    bool thin = run_is_thin(&r);
    uint64_t work = 0;
    for (uint32_t i = 0; thin && i < count; i++)
        work += (uint64_t)steps[i].n * (steps[i].load.src ? steps[i].load.k : array->k);
    if (threads == 1 || count == 1 || (thin && work < THIN_WORK) || !run_split(&r) || (!thin && r.nchains == 1)) {
        steps_in_order(thin && work < THIN_WORK ? NULL : pool, level, array, steps, count);
        return;
    }
    r.pieces = run_pieces(&r, threads, thin);
    pool_run(pool, (size_t)r.nchains * r.pieces, 1, run_task, &r);
    const MmLoad *last = load_of(&r, count - 1);
    if (last)
        mm_load(level, array, last);
}
