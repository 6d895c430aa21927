// SPDX-License-Identifier: Apache-2.0
// unweave.c — of all program orders that mean the same to the chip, one that suits whoever executes it in that order.
//
//   sched.c      tensor: A1 B1 A2 B2   vector: a1 b1 a2 b2   as placed:  A1 a1 B1 b1 A2 a2 B2 b2
//   afterwards   each engine keeps its order                             A1 A2 a1 a2 B1 B2 b1 b2
//
// An engine takes its instructions in program order, a queue its transfers, and an instruction waits for the counts it names.
// That is all the chip and its clock know of an order. How the instructions of different engines lie between each other is
// free, and the host, which executes one after another, is better off when those of a tile are together: what is between
// them stays in its caches, and whole tiles are one run of its plan (chip/plan.h).
//
// So of the instructions that could be next, one for each engine, the one whose tile was recorded first is next. One can
// always be: the first of those left, as they were placed.
#include <assert.h>
#include <string.h>

#include "tile/emit.h"

#define NONE UINT32_MAX

typedef struct Weave {
    const IsaInst *code; // of the stretch, as placed
    const uint32_t *order;
    uint32_t n;
    uint32_t head[ENG_COUNT], *next; // of each engine what is left: the first, then from one to the next
    uint32_t count[HAZ_SEMS];        // completions so far
    uint32_t *turn;                  // of a transfer: the count of its queue before it
} Weave;

// Only waits for counts of this epoch, and no signals: all that sched.c makes.
static bool is_plain(const IsaInst *in) {
    for (int w = 0; w < 2; w++)
        if (in->wait_sem[w] != SEM_NONE && in->wait_sem[w] >= HAZ_SEMS)
            return false;
    return !in->upd_sem && isa_sem(in) < HAZ_SEMS;
}

static bool weave_begin(Weave *v, Arena *a, const uint32_t done[HAZ_SEMS]) {
    uint32_t last[ENG_COUNT];
    v->next = ARENA_NEWN(a, uint32_t, v->n);
    v->turn = ARENA_NEWN(a, uint32_t, v->n);
    memcpy(v->count, done, sizeof v->count);
    memset(v->head, 0xff, sizeof v->head);
    for (uint32_t i = 0; i < v->n; i++) {
        const IsaInst *in = &v->code[i];
        if (!is_plain(in))
            return false;
        uint32_t *from = v->head[in->engine] == NONE ? &v->head[in->engine] : &v->next[last[in->engine]];
        *from = last[in->engine] = i;
        v->next[i] = NONE;
        v->count[isa_sem(in)]--;
    }
    uint32_t count[HAZ_SEMS];
    memcpy(count, v->count, sizeof count);
    for (uint32_t i = 0; i < v->n; i++)
        v->turn[i] = count[isa_sem(&v->code[i])]++;
    return true;
}

static bool may_be_next(const Weave *v, uint32_t i) {
    const IsaInst *in = &v->code[i];
    for (int w = 0; w < 2; w++)
        if (in->wait_sem[w] != SEM_NONE && v->count[in->wait_sem[w]] < in->wait_val[w])
            return false;
    return v->turn[i] == v->count[isa_sem(in)];
}

static uint32_t weave_take(Weave *v) {
    uint32_t best = NONE;
    for (int e = 0; e < ENG_COUNT; e++) {
        uint32_t i = v->head[e];
        bool before = i != NONE && (best == NONE || v->order[i] < v->order[best] || (v->order[i] == v->order[best] && i < best));
        if (before && may_be_next(v, i))
            best = i;
    }
    assert(best != NONE);
    v->head[v->code[best].engine] = v->next[best];
    v->count[isa_sem(&v->code[best])]++;
    return best;
}

void emit_unweave(Emit *e) {
    uint32_t begin = e->code.n; // what was recorded and placed since the last time is at the end
    while (begin && e->code_order.at[begin - 1])
        begin--;
    Weave v = {.order = e->code_order.at + begin, .n = e->code.n - begin};
    IsaInst *code = e->code.at + begin;
    uint32_t *loc = e->code_loc.at + begin;
    v.code = memcpy(arena_alloc(e->c->scratch, v.n * sizeof *code + 1), code, v.n * sizeof *code);
    if (weave_begin(&v, e->c->scratch, e->done)) {
        const uint32_t *old = memcpy(arena_alloc(e->c->scratch, v.n * sizeof *loc + 1), loc, v.n * sizeof *loc);
        for (uint32_t i = 0; i < v.n; i++) {
            uint32_t from = weave_take(&v);
            code[i] = v.code[from];
            loc[i] = old[from];
        }
    }
    memset(e->code_order.at + begin, 0, v.n * sizeof *v.order);
}
