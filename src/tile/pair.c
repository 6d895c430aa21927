// SPDX-License-Identifier: Apache-2.0
// pair.c — which of two cores does which step (--lnc=2).
//
// Both cores see all HBM, so a step can run on either; what is between steps lies in HBM. The steps between two
// points of control flow are cut into rounds:
//
//   core 0  │ a  c  d │ f     │ …       a line is a meeting (barrier, core_barrier, barrier): what was written before it
//   core 1  │ b  e    │ g  h  │ …       may be used behind it by both
//
//   1. a step follows, on its own core, or in an earlier round on any, everything it depends on: the last writer of what
//      it reads, the last writer and all readers of what it writes;
//   2. a round ends when a core would stay idle for long and a meeting would give it work;
//   3. in memory a buffer lives for whole rounds: within one, nobody knows who is first;
//   4. steps with effects (random streams, the host) stay in order, on core 0; so do programs of several devices.
// Every step is made of the same instructions as on one core, so results have the same bits.
#include "tile/pair.h"

#include <string.h>

#include "pass/walk.h"

#define WINDOW 512          // steps looked at ahead of the oldest that waits
#define MEETING_NS 6000.0   // of pipelines running empty
#define STEP_NS 2500.0      // what a step takes however small
#define BOTH 2

typedef struct Link { // a list of steps
    uint32_t step, next;
} Link;

typedef struct Plan {
    Lower *l;
    const ChipFile *chip;
    Arena *a;
    uint32_t begin, n;      // the segment
    double *cost;           // ns, per step of the segment
    uint8_t *core;          // where it goes,
    uint32_t *round;        // and when, from 1; 0: not yet
    bool *first_core;       // only core 0 may do it
    uint32_t *preds;        // per step: its links, 0 = none
    VEC(Link) links;        // slot 0 unused
    uint32_t *writer, *readers; // per buffer: step + 1; links of those since
    uint32_t *next;         // the steps not yet placed, in order; n: end
    VEC(uint32_t) order;    // as placed
} Plan;

static bool is_control(const Step *s) { return s->kind >= STEP_LOOP_BEGIN; }

// --- what depends on what --------------------------------------------------------------------------

// A result that takes over an argument is the same memory.
static BufId memory_of(const Lower *l, BufId b) {
    const TBuf *t = &l->bufs.at[b];
    return t->kind == BUF_RESULT && l->alias[t->index] >= 0 ? 1 + (BufId)l->alias[t->index] : b;
}

static void link_push(Plan *p, uint32_t *list, uint32_t step) {
    VEC_PUSH(p->a, &p->links, (Link){step, *list});
    *list = p->links.n - 1;
}

static bool has_effect(const Lower *l, const Step *s) {
    const HloOp *op = s->op ? hlo_at(l->h, s->op) : NULL;
    return op && s->kind == STEP_KERNEL && (op_has_effect(l->h, op) || op->code == HLO_PARTITION_ID || op->code == HLO_REPLICA_ID);
}

static void depend(Plan *p) {
    uint32_t effect = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const Step *s = &p->l->steps.at[p->begin + i];
        for (uint32_t k = 0; k < s->nins + s->nouts; k++) {
            BufId b = p->l->refs.at[k < s->nins ? s->ins + k : s->outs + k - s->nins];
            if (!b)
                continue;
            b = memory_of(p->l, b);
            if (p->writer[b] && p->writer[b] != i + 1)
                link_push(p, &p->preds[i], p->writer[b] - 1);
            if (k < s->nins) {
                link_push(p, &p->readers[b], i);
                continue;
            }
            for (uint32_t r = p->readers[b]; r; r = p->links.at[r].next)
                if (p->links.at[r].step != i)
                    link_push(p, &p->preds[i], p->links.at[r].step);
            p->readers[b] = 0;
            p->writer[b] = i + 1;
        }
        p->first_core[i] = has_effect(p->l, s);
        if (p->first_core[i] && effect)
            link_push(p, &p->preds[i], effect - 1);
        effect = p->first_core[i] ? i + 1 : effect;
    }
}

static double step_ns(const Plan *p, const Step *s) {
    double bytes = 0, work = 0;
    const Lower *l = p->l;
    for (uint32_t k = 0; k < s->nins + s->nouts; k++) {
        BufId b = l->refs.at[k < s->nins ? s->ins + k : s->outs + k - s->nins];
        bytes += b ? (double)l->bufs.at[b].bytes : 0;
    }
    if (s->kind == STEP_DOT || s->kind == STEP_CONV || s->kind == STEP_BLOCK) {
        const HloOp *op = hlo_at(l->h, s->op);
        const HloType *out = hlo_value_type(l->h, op->results), *lhs = hlo_value_type(l->h, hlo_operand(l->h, op, 0));
        uint32_t n;
        const int64_t *dims = hlo_ints(op, AK_LHS_CONTRACTING_DIMENSIONS, &n);
        double k = op->code == HLO_DOT_GENERAL ? 1 : 128;
        for (uint32_t i = 0; i < n && op->code == HLO_DOT_GENERAL; i++)
            k *= (double)lhs->dims[dims[i]];
        double passes = lhs->dtype == DT_F32 ? p->chip->pe_fp32_passes : 1;
        work = 2.0 * k * (double)out->elems * passes / (2.0 * ISA_PE_ROWS * ISA_PE_COLS * p->chip->pe_ghz);
    }
    double memory = bytes / (p->chip->hbm_bw_core * 0.6);
    return STEP_NS + (work > memory ? work : memory);
}

// --- rounds ----------------------------------------------------------------------------------------

// May core c do it now? With meeting: behind one.
static bool is_ready(const Plan *p, uint32_t i, int c, uint32_t round, bool meeting) {
    if (p->first_core[i] && c)
        return false;
    for (uint32_t k = p->preds[i]; k; k = p->links.at[k].next) {
        uint32_t q = p->links.at[k].step;
        if (!p->round[q] || (p->round[q] == round && p->core[q] != c && !meeting))
            return false;
    }
    return true;
}

// The first waiting step core c may do; n when there is none. *before is the one in front of it.
static uint32_t find(const Plan *p, int c, uint32_t round, bool meeting, uint32_t *before) {
    uint32_t at = p->n + 1, looked = 0;
    for (uint32_t i = p->next[p->n + 1]; i < p->n && looked++ < WINDOW; at = i, i = p->next[i])
        if (is_ready(p, i, c, round, meeting)) {
            *before = at;
            return i;
        }
    return p->n;
}

static void place(Plan *p, uint32_t i, uint32_t before, int c, uint32_t round, double t[2]) {
    p->next[before] = p->next[i];
    p->core[i] = (uint8_t)c;
    p->round[i] = round;
    t[c] += p->cost[i];
    VEC_PUSH(p->a, &p->order, i);
}

static void schedule(Plan *p) {
    double t[2] = {0, 0};
    uint32_t round = 1, before = 0;
    while (p->next[p->n + 1] < p->n) {
        int c = t[1] < t[0];
        uint32_t i = find(p, c, round, false, &before);
        if (i < p->n) {
            place(p, i, before, c, round, t);
            continue;
        }
        double idle = t[1 - c] - t[c];
        uint32_t other = find(p, 1 - c, round, false, &before), unused;
        bool helps = find(p, c, round, true, &unused) < p->n;
        if (other < p->n && !(helps && idle > 3 * MEETING_NS)) {
            place(p, other, before, 1 - c, round, t);
            continue;
        }
        round++;
        t[0] = t[1] = (t[0] > t[1] ? t[0] : t[1]) + MEETING_NS;
    }
}

// --- the new order ---------------------------------------------------------------------------------

// Buffers that begin or end in the segment do so with the rounds that touch them.
static void relive(Plan *p) {
    Lower *l = p->l;
    uint32_t end = p->begin + p->n, *place_of = ARENA_NEWN(p->a, uint32_t, p->n + 1);
    uint32_t *round_begin = ARENA_NEWN(p->a, uint32_t, p->n + 2), *round_end = ARENA_NEWN(p->a, uint32_t, p->n + 2);
    uint32_t *least = ARENA_NEWN(p->a, uint32_t, l->bufs.n), *most = ARENA_NEWN(p->a, uint32_t, l->bufs.n);
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t r = p->round[p->order.at[k]];
        place_of[p->order.at[k]] = k;
        if (!k || p->round[p->order.at[k - 1]] != r)
            round_begin[r] = p->begin + k;
        round_end[r] = p->begin + k;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const Step *s = &l->steps.at[p->begin + i];
        for (uint32_t k = 0; k < s->nins + s->nouts; k++) {
            BufId b = l->refs.at[k < s->nins ? s->ins + k : s->outs + k - s->nins];
            uint32_t r = p->round[i];
            if (!least[b] || r < least[b])
                least[b] = r;
            if (r > most[b])
                most[b] = r;
        }
    }
    for (BufId b = 1; b < l->bufs.n; b++) {
        TBuf *t = &l->bufs.at[b];
        if (t->first >= p->begin && t->first < end)
            t->first = least[b] ? round_begin[least[b]] : p->begin;
        if (t->last >= p->begin && t->last < end)
            t->last = most[b] ? round_end[most[b]] : end - 1;
    }
}

static bool segment(Lower *l, const ChipFile *chip, uint32_t begin, uint32_t n, Pair *out) {
    Arena *a = l->c->scratch;
    Plan p = {.l = l, .chip = chip, .a = a, .begin = begin, .n = n,
              .cost = ARENA_NEWN(a, double, n + 1), .core = ARENA_NEWN(a, uint8_t, n + 1),
              .round = ARENA_NEWN(a, uint32_t, n + 1), .first_core = ARENA_NEWN(a, bool, n + 1),
              .preds = ARENA_NEWN(a, uint32_t, n + 1), .writer = ARENA_NEWN(a, uint32_t, l->bufs.n),
              .readers = ARENA_NEWN(a, uint32_t, l->bufs.n), .next = ARENA_NEWN(a, uint32_t, n + 2)};
    VEC_PUSH(a, &p.links, (Link){0});
    for (uint32_t i = 0; i < n; i++) {
        p.cost[i] = step_ns(&p, &l->steps.at[begin + i]);
        p.next[i] = i + 1;
    }
    p.next[n + 1] = 0; // the head
    depend(&p);
    schedule(&p);
    relive(&p);
    Step *steps = arena_dup(a, &l->steps.at[begin], n * sizeof *steps);
    bool both = false;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = p.order.at[k];
        l->steps.at[begin + k] = steps[i];
        out->core[begin + k] = p.core[i];
        // Behind control flow too: both have read what decided it before one of them may write that.
        out->meets[begin + k] = k ? p.round[p.order.at[k - 1]] != p.round[i] : begin > 0;
        both |= p.core[i] == 1;
    }
    return both;
}

static bool may_split(const Lower *l) {
    if (spmd_partitions(l->h) > 1)
        return false;
    for (uint32_t i = 0; i < l->steps.n; i++) {
        const Step *s = &l->steps.at[i];
        if (s->op && hlo_row(hlo_at(l->h, s->op))->cls == HC_COLL)
            return false;
    }
    return true;
}

void pair_plan(Lower *l, const ChipFile *chip, Pair *out) {
    Arena *a = l->c->scratch;
    *out = (Pair){ARENA_NEWN(a, uint8_t, l->steps.n + 1), ARENA_NEWN(a, bool, l->steps.n + 1), false};
    if (!may_split(l))
        return;
    for (uint32_t i = 0; i < l->steps.n;) {
        if (is_control(&l->steps.at[i])) {
            out->core[i] = BOTH;
            out->meets[i] = true;
            i++;
            continue;
        }
        uint32_t end = i;
        while (end < l->steps.n && !is_control(&l->steps.at[end]))
            end++;
        out->is_split |= segment(l, chip, i, end - i, out);
        i = end;
    }
}
