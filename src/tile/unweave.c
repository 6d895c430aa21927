// SPDX-License-Identifier: Apache-2.0
// unweave.c — of all program orders that mean the same to the chip, one that suits whoever executes it in that order.
//
//   sched.c      tensor: A1 B1 A2 B2   vector: a1 b1 a2 b2   as placed:  A1 a1 B1 b1 A2 a2 B2 b2
//   afterwards   each engine keeps its order                             A1 A2 a1 a2 B1 B2 b1 b2
//
// An engine takes its instructions in program order, a queue its transfers, and an instruction waits for the counts it names.
// That is all the chip and its clock know of an order. How the instructions of different engines lie between each other is
// free, and the host, which executes one after another, is better off when those of a tile are together: what is between
// them stays in its caches, and whole tiles are one run of its plan (chip/host/plan.h).
//
// So of the instructions that could be next, one for each engine, the one whose tile was recorded first is next. One can
// always be: the first of those left, as they were placed.
#include <assert.h>
#include <string.h>

#include "tile/emit.h"

#define NONE UINT32_MAX

typedef struct Thread { // an instruction
    uint8_t engine, sem, wait_sem[2];
    uint32_t wait_val[2];
    uint32_t next; // of its engine
    uint32_t turn; // of a transfer: the count of its queue before it
    uint32_t order; // of the tile it goes with
} Thread;

typedef struct Weave {
    Thread *code; // of the stretch, as placed
    uint32_t n;
    uint32_t head[ISA_SEQS]; // of each sequencer the first of what is left
    uint32_t count[HAZ_SEMS]; // completions so far
} Weave;

// Only waits for counts of this epoch, and no signals: all that sched.c makes.
static bool is_plain(const IsaInst *in) {
    for (int w = 0; w < 2; w++)
        if (in->wait_sem[w] != SEM_NONE && in->wait_sem[w] >= HAZ_SEMS)
            return false;
    return !in->upd_sem && isa_sem(in) < HAZ_SEMS;
}

static Thread thread_of(const ShapeCode *c, uint32_t pc) {
    const IsaShape *s = &c->shapes.at[c->of.at[pc]];
    const uint32_t *record = &c->words.at[c->record_at.at[pc]];
    Thread t = {.engine = (uint8_t)isa_seq(&s->in), .sem = (uint8_t)isa_sem(&s->in), .wait_sem = {SEM_NONE, SEM_NONE}, .next = NONE};
    for (int w = 0; w < 2; w++)
        if (s->at[w])
            t.wait_sem[w] = s->in.wait_sem[w], t.wait_val[w] = record[s->at[w] / 4];
    return t;
}

// `order`: from the first of the stretch on. What products are sent for goes with the tile before: whoever executes several at a
// time has it then without waiting.
static bool weave_begin(Weave *v, const ShapeCode *code, uint32_t begin, const uint32_t *order, const uint32_t done[HAZ_SEMS]) {
    uint32_t last[ISA_SEQS];
    memcpy(v->count, done, sizeof v->count);
    memset(v->head, 0xff, sizeof v->head);
    for (uint32_t i = 0; i < v->n; i++) {
        if (!is_plain(&code->shapes.at[code->of.at[begin + i]].in))
            return false;
        Thread *t = &v->code[i];
        *t = thread_of(code, begin + i);
        t->order = order[i] - (t->engine == ENG_SYNC && t->sem >= ENG_COUNT);
        uint32_t *from = v->head[t->engine] == NONE ? &v->head[t->engine] : &v->code[last[t->engine]].next;
        *from = last[t->engine] = i;
        v->count[t->sem]--;
    }
    uint32_t count[HAZ_SEMS];
    memcpy(count, v->count, sizeof count);
    for (uint32_t i = 0; i < v->n; i++)
        v->code[i].turn = count[v->code[i].sem]++;
    return true;
}

static bool may_be_next(const Weave *v, uint32_t i) {
    const Thread *t = &v->code[i];
    for (int w = 0; w < 2; w++)
        if (t->wait_sem[w] != SEM_NONE && v->count[t->wait_sem[w]] < t->wait_val[w])
            return false;
    return t->turn == v->count[t->sem];
}

static uint32_t weave_take(Weave *v) {
    uint32_t best = NONE;
    for (int e = 0; e < ISA_SEQS; e++) {
        uint32_t i = v->head[e];
        bool before = i != NONE && (best == NONE || v->code[i].order < v->code[best].order ||
                                    (v->code[i].order == v->code[best].order && i < best));
        if (before && may_be_next(v, i))
            best = i;
    }
    assert(best != NONE);
    v->head[v->code[best].engine] = v->code[best].next;
    v->count[v->code[best].sem]++;
    return best;
}

void emit_unweave(Emit *e) {
    uint32_t begin = e->code.of.n; // what was recorded and placed since the last time is at the end
    while (begin && e->code_order.at[begin - 1])
        begin--;
    assert(e->code_order.n == e->code.of.n);
    assert(e->code_loc.n == e->code.of.n);
    Weave v = {.n = e->code.of.n - begin};
    uint32_t *order = e->code_order.at + begin;
    v.code = arena_alloc(e->c->scratch, v.n * sizeof *v.code);
    if (weave_begin(&v, &e->code, begin, order, e->done)) {
        uint32_t *from = arena_alloc(e->c->scratch, v.n * sizeof *from), *loc = e->code_loc.at + begin;
        const uint32_t *old = arena_dup(e->c->scratch, loc, v.n * sizeof *loc);
        for (uint32_t i = 0; i < v.n; i++) {
            from[i] = weave_take(&v);
            loc[i] = old[from[i]];
        }
        shape_code_order(&e->code, e->c->scratch, begin, from, v.n);
    }
    if (v.n)
        memset(order, 0, v.n * sizeof *order);
}
