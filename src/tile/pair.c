// SPDX-License-Identifier: Apache-2.0
// pair.c — which of two cores does which step, or which part of it (--lnc=2).
//
// Both cores see all HBM, so a step can run on either, and most can be cut in two: products and row programs by rows, attention by
// heads, transfers by ranges (emit_share). A cut never divides a sum, so results have the bits of one core. What is between
// steps lies in HBM. The steps between two points of control flow are cut into rounds:
//
//   core 0  │ a0 b0 d │ f0    │ …       a line is a meeting (core_barrier): what was written before it may be used behind it
//   core 1  │ a1 b1   │ f1 g  │ …       by both
//
//   1. a step follows everything it depends on: the last writer of what it reads, the last writer and all readers of what it
//      writes. In the same round both must be the same core's, byte for byte: what a part does to HBM is known from its
//      instructions (emit_probe). So steps over the same rows, cut at the same row, need no meeting;
//   2. of the steps that wait the first one that needs no meeting goes next, whole ones to the core with less to do; when every one needs
//      a meeting, or a collective does for which the links stand idle, the cores meet. A meeting holds up nothing but what follows it: accesses to memory that the other core touched in
//      a round before (pair_follow); other work goes on beside it. A collective may take longer than many rounds: the meeting that waits
//      for it is the last one before the other core needs what it reads or writes;
//   3. in memory a buffer lives for whole rounds: within one, nobody knows who is first; what a collective reads, until that is thought to be through;
//   4. steps with effects (random streams, the host, collectives) stay in order, on core 0; large collectives are shared by rows
//      (collect.c), and each core comes to its parts in that order. Collectives of one stream keep theirs and no other's: a sum that
//      both cores go on with would else wait with one of gradients, whose operands are made rounds later.
//   5. what reads a value behind a barrier of the program (optimization_barrier) comes behind all that goes through it.
#include "tile/pair.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "mach/cost.h"
#include "pass/pass.h"
#include "pass/walk.h"
#include "tile/emit.h"

#define WINDOW 512          // steps looked at ahead of the oldest that waits
#define ADDR_OFF_BITS 40    // of an HBM address (isa.h)
#define MEETING_LOSS 8      // of a collective's time, a part: what a core may stand still at a meeting for it
#define HELD_PART 32        // of a core's HBM: so much may wait for collectives to be through

typedef struct Link { // a list of steps
    uint32_t step, next;
} Link;

typedef PairHull Hull;
typedef PairFoot Foot;

typedef struct Busy { // what a round has done to a buffer so far
    uint32_t round;
    Hull at[2][2];
} Busy;

typedef struct Work { // a step
    double cost[2];      // ns, by core where it is shared
    uint32_t feet;       // its list, 0 = none,
    uint32_t first_foot; // none of it is older
    bool shared;
    bool first_core;     // only core 0 may do it
    uint8_t core;        // where it goes,
    uint32_t round;      // and when, from 1; 0: not yet
    uint32_t preds;      // its links, 0 = none
    uint32_t fence;      // its list, 0 = none
    double wire, done;   // of a collective, ns: what it takes beside the engines; when it is through
    uint64_t held;       // … bytes of its operands, whose memory nobody takes before
} Work;

typedef struct Plan {
    Lower *l;
    const ChipFile *chip;
    double step_ns; // what a step takes however small: its first load, its last store; what takes no longer beside that is not worth cutting
    Arena *a;
    Emit *probe;
    Pair *out;
    VEC(BufId) temps;       // by address
    BufList begins, ends;
    // per buffer, all zero between segments, which may be many:
    uint32_t *writer, *readers; // step + 1; links of those since
    uint32_t *foot;         // of the step that is looked at; of others: before its first
    Busy *busy;
    uint32_t *fence_of;     // the fence it went through last, its list
    uint32_t *least, *most; // the rounds of the steps that use it
    // of the segment:
    uint32_t begin, n;
    Work *work;             // per step
    VEC(Link) links;        // slot 0 unused
    uint32_t *next;         // the steps not yet placed, in order; n: end
    VEC(uint32_t) order;    // as placed
    VEC(uint32_t) fences;   // slot 0 unused: links of steps that make what goes through one
    uint32_t fence;         // of Lower's, the next
    double through;         // ns: when all collectives so far are
    double began;           // ns: when the round did
    bool patient;           // nothing is left to do but to wait for collectives
    VEC(double) round_ns;   // … each, by number
    VEC(uint32_t) flying;   // collectives, as placed; those before `landed` are through
    uint32_t landed;
    uint64_t held;          // bytes of the others
} Plan;

static bool is_control(const Step *s) { return s->kind >= STEP_LOOP_BEGIN; }
static bool step_is_collective(const Lower *l, const Step *s) { return s->op && hlo_row(hlo_at(l->h, s->op))->cls == HC_COLL; }

// --- what depends on what --------------------------------------------------------------------------

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static void link_push(Plan *p, uint32_t *list, uint32_t step) {
    VEC_PUSH(p->a, &p->links, (Link){step, *list});
    *list = p->links.n - 1;
}

static bool has_effect(const Lower *l, const Step *s) {
    const HloOp *op = s->op ? hlo_at(l->h, s->op) : NULL;
    return op && s->kind == STEP_KERNEL && (op_has_effect(l->h, op) || op->code == HLO_PARTITION_ID || op->code == HLO_REPLICA_ID);
}

// Fences of the program before a step.
static void pass_fences(Plan *p, uint32_t i) {
    for (; p->fence < p->l->fences.n && p->l->fences.at[p->fence].step <= p->begin + i; p->fence++) {
        const Fence *f = &p->l->fences.at[p->fence];
        uint32_t makers = 0;
        for (uint32_t k = 0; k < f->bufs.n; k++) {
            BufId b = lower_memory(p->l, f->bufs.at[k]);
            if (p->writer[b])
                link_push(p, &makers, p->writer[b] - 1);
            p->fence_of[b] = p->fences.n;
        }
        VEC_PUSH(p->a, &p->fences, makers);
    }
}

// The last step of each order that effects keep: the streams of collectives, and of all others, which keep theirs with every stream. Where
// a device has a program of its own (a rank of PyTorch), others may choose otherwise by other sizes: all collectives stay in order, lest each
// waits in one that another comes to later.
typedef struct Effects {
    uint32_t last[STREAMS + 1]; // step + 1
} Effects;

static void depend_effect(Plan *p, Effects *e, uint32_t i) {
    const Step *s = &p->l->steps.at[p->begin + i];
    const HloOp *op = hlo_at(p->l->h, s->op);
    bool one_program = spmd_partitions(p->l->h) > 1;
    int own = !step_is_collective(p->l, s) ? STREAMS : one_program ? collect_stream(op->code, op->attrs) : 0;
    for (int k = 0; k <= STREAMS; k++)
        if (e->last[k] && (k == own || k == STREAMS || own == STREAMS))
            link_push(p, &p->work[i].preds, e->last[k] - 1);
    e->last[own] = i + 1;
}

static void depend(Plan *p) {
    Effects effects = {0};
    for (uint32_t i = 0; i < p->n; i++) {
        const Step *s = &p->l->steps.at[p->begin + i];
        pass_fences(p, i);
        for (uint32_t k = 0; k < s->nins + s->nouts; k++) {
            BufId b = p->l->refs.at[k < s->nins ? s->ins + k : s->outs + k - s->nins];
            if (!b)
                continue;
            b = lower_memory(p->l, b);
            if (p->writer[b] && p->writer[b] != i + 1)
                link_push(p, &p->work[i].preds, p->writer[b] - 1);
            if (k < s->nins) {
                link_push(p, &p->readers[b], i);
                p->work[i].fence = larger(p->work[i].fence, p->fence_of[b]);
                continue;
            }
            for (uint32_t r = p->readers[b]; r; r = p->links.at[r].next)
                if (p->links.at[r].step != i)
                    link_push(p, &p->work[i].preds, p->links.at[r].step);
            p->readers[b] = 0;
            p->writer[b] = i + 1;
        }
        p->work[i].first_core = has_effect(p->l, s);
        if (p->work[i].first_core)
            depend_effect(p, &effects, i);
    }
}

// --- what a step does --------------------------------------------------------------------------------

static bool is_empty(Hull h) { return h.hi <= h.lo; }
static bool meets(Hull a, Hull b) { return a.lo < b.hi && b.lo < a.hi; } // false with an empty one
static Hull join(Hull a, Hull b) {
    if (is_empty(a) || is_empty(b))
        return is_empty(a) ? b : a;
    return (Hull){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

static Foot *foot_of(Plan *p, Work *w, BufId b) {
    if (p->foot[b] < w->first_foot) {
        VEC_PUSH(p->a, &p->out->foot, ((Foot){.buf = b, .next = w->feet}));
        w->feet = p->foot[b] = p->out->foot.n - 1;
    }
    return &p->out->foot.at[p->foot[b]];
}

// The buffer that lies there; constants are nobody's concern.
static BufId buffer_at(const Plan *p, const ProbeTouch *t) {
    const Lower *l = p->l;
    if (t->seg != SEG_SCRATCH)
        return t->seg == SEG_CONST ? 0 : lower_memory(l, 1 + t->seg - SEG_FIRST_ARG);
    uint32_t lo = 0, hi = p->temps.n; // the last that begins there or before
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (l->bufs.at[p->temps.at[mid]].off <= t->lo)
            lo = mid + 1;
        else
            hi = mid;
    }
    BufId b = lo ? p->temps.at[lo - 1] : 0;
    return b && t->lo < l->bufs.at[b].off + l->bufs.at[b].bytes ? b : 0;
}

static double probe_ns(const Plan *p, const Probe *r) {
    double most = r->dma;
    for (int e = 0; e < ENG_COUNT; e++)
        most = r->busy[e] > most ? r->busy[e] : most;
    return r->insts ? p->step_ns + most : 0;
}

static void take_probe(Plan *p, Work *w, const Probe *r, int core) {
    w->cost[core] = probe_ns(p, r);
    for (uint32_t i = 0; i < r->touches.n; i++) {
        const ProbeTouch *t = &r->touches.at[i];
        BufId b = buffer_at(p, t);
        if (!b)
            continue;
        uint64_t off = t->seg == SEG_SCRATCH ? p->l->bufs.at[b].off : 0;
        Hull *h = &foot_of(p, w, b)->at[core][t->writes];
        *h = join(*h, (Hull){t->lo - off, t->hi - off});
    }
}

// One part reads what the other writes: only steps whose tiles are apart may do that to a hull's bytes.
static bool parts_meet(const Plan *p, const Work *w) {
    for (uint32_t f = w->feet; f; f = p->out->foot.at[f].next) {
        const Foot *foot = &p->out->foot.at[f];
        if (meets(foot->at[0][0], foot->at[1][1]) || meets(foot->at[1][0], foot->at[0][1]))
            return true;
    }
    return false;
}

static void look_at(Plan *p, uint32_t i) {
    const Step *s = &p->l->steps.at[p->begin + i];
    Work *w = &p->work[i];
    Probe parts[2];
    w->first_foot = p->out->foot.n;
    for (int core = 0; core < 2; core++) {
        emit_probe(p->probe, s, core, &parts[core]);
        if (!p->probe->shared) { // the first part is all of it
            take_probe(p, w, &parts[0], 0);
            if (step_is_collective(p->l, s))
                w->wire = w->cost[0], w->cost[0] = p->step_ns; // beside the engines
            w->cost[1] = w->cost[0];
            return;
        }
    }
    for (int core = 0; core < 2; core++)
        take_probe(p, w, &parts[core], core);
    w->shared = w->cost[0] + w->cost[1] > 3 * p->step_ns && (step_rows[s->kind].tiles_apart || !parts_meet(p, w));
    if (step_is_collective(p->l, s)) // beside the engines
        w->wire = w->cost[0] + w->cost[1], w->cost[0] = w->cost[1] = p->step_ns;
    if (w->shared)
        return;
    for (uint32_t f = w->feet; f; f = p->out->foot.at[f].next)
        for (int writes = 0; writes < 2; writes++) {
            Foot *foot = &p->out->foot.at[f];
            foot->at[0][writes] = join(foot->at[0][writes], foot->at[1][writes]);
        }
    w->cost[0] = w->cost[1] = w->cost[0] + w->cost[1] - p->step_ns;
}

// --- rounds ----------------------------------------------------------------------------------------

static bool collides(const Hull mine[2], const Hull theirs[2]) {
    return meets(mine[0], theirs[1]) || meets(mine[1], theirs[0]) || meets(mine[1], theirs[1]);
}

// What `core` would do with `part` of the step meets what the other core has done in this round.
static bool crosses(const Plan *p, const Work *w, int part, int core, uint32_t round) {
    for (uint32_t f = w->feet; f; f = p->out->foot.at[f].next) {
        const Foot *foot = &p->out->foot.at[f];
        const Busy *busy = &p->busy[foot->buf];
        if (busy->round == round && collides(foot->at[part], busy->at[1 - core]))
            return true;
    }
    return false;
}

static void note(Plan *p, const Work *w, int part, int core, uint32_t round) {
    for (uint32_t f = w->feet; f; f = p->out->foot.at[f].next) {
        const Foot *foot = &p->out->foot.at[f];
        Busy *busy = &p->busy[foot->buf];
        if (busy->round != round)
            *busy = (Busy){.round = round};
        for (int writes = 0; writes < 2; writes++)
            busy->at[core][writes] = join(busy->at[core][writes], foot->at[part][writes]);
    }
}

// What goes through the fence is made; who was found to be is forgotten.
static bool is_open(const Plan *p, uint32_t fence) {
    uint32_t *makers = &p->fences.at[fence];
    while (*makers && p->work[p->links.at[*makers].step].round)
        *makers = p->links.at[*makers].next;
    return !*makers;
}

static double later(const double t[2]) { return t[0] > t[1] ? t[0] : t[1]; }

// `part` of a step, on `core`, touches what the other core's collective does.
static bool follows(const Plan *p, const Work *w, int part, int core, const Work *coll) {
    for (uint32_t f = w->feet; f; f = p->out->foot.at[f].next)
        for (uint32_t g = coll->feet; g && (coll->shared || coll->core != core); g = p->out->foot.at[g].next) {
            const Foot *mine = &p->out->foot.at[f], *theirs = &p->out->foot.at[g];
            if (mine->buf == theirs->buf && collides(mine->at[part], theirs->at[coll->shared ? 1 - core : 0]))
                return true;
        }
    return false;
}

// With the step in this round, the meeting before it, and so all of the round, would wait for a collective that was not through.
static bool holds_up(const Plan *p, const Work *w, int part, int core) {
    for (uint32_t k = w->preds; k && !p->patient; k = p->links.at[k].next) {
        const Work *pred = &p->work[p->links.at[k].step];
        if (pred->done > p->began && follows(p, w, part, core, pred))
            return true;
    }
    return false;
}

static bool may(const Plan *p, const Work *w, int part, int core, uint32_t round) {
    return !crosses(p, w, part, core, round) && !holds_up(p, w, part, core);
}

// Who may do it now, rather the core with less to do; -1: nobody before the next meeting. Engines work in order: what reads a collective that is
// under way is not put before older steps, which would wait with it. Neither does a core that has more to do already take a step before its turn:
// the other would only wait for it at the meeting.
static int who_may(const Plan *p, uint32_t i, const double t[2], uint32_t round) {
    const Work *w = &p->work[i];
    bool oldest = i == p->next[p->n + 1];
    if (!is_open(p, w->fence))
        return -1;
    int lighter = t[1] < t[0];
    for (uint32_t k = w->preds; k; k = p->links.at[k].next) {
        const Work *pred = &p->work[p->links.at[k].step];
        if (!pred->round || (pred->done > later(t) && !oldest))
            return -1;
    }
    if (w->shared)
        return may(p, w, 0, 0, round) && may(p, w, 1, 1, round) ? PAIR_SHARED : -1;
    bool full = !oldest && !w->first_core && t[1 - lighter] - t[lighter] > 2 * p->step_ns;
    for (int turn = 0; turn < (full ? 1 : 2); turn++) {
        int core = turn ? 1 - lighter : lighter;
        if (!(w->first_core && core) && may(p, w, 0, core, round))
            return core;
    }
    return -1;
}

// A collective that waits for nothing but a meeting, while the links stand idle: it has one as soon as the cores lose little by it.
static bool wants_meeting(const Plan *p, uint32_t i, const double t[2], uint32_t round) {
    const Work *w = &p->work[i];
    if (!w->wire || p->through > later(t) || MEETING_LOSS * fabs(t[0] - t[1]) > w->wire || !is_open(p, w->fence))
        return false;
    for (uint32_t k = w->preds; k; k = p->links.at[k].next)
        if (!p->work[p->links.at[k].step].round)
            return false;
    bool waits = crosses(p, w, 0, 0, round) || (w->shared && crosses(p, w, 1, 1, round));
    return waits && !holds_up(p, w, 0, 0) && !(w->shared && holds_up(p, w, 1, 1));
}

// Whoever takes the memory of a collective's operands waits for it. As long as they are few, they keep it until it is through.
static void hold(Plan *p, uint32_t i, double now) {
    const Step *s = &p->l->steps.at[p->begin + i];
    Work *w = &p->work[i];
    for (; p->landed < p->flying.n && p->work[p->flying.at[p->landed]].done <= now; p->landed++)
        p->held -= p->work[p->flying.at[p->landed]].held;
    for (uint32_t k = 0; k < s->nins; k++)
        w->held += p->l->bufs.at[p->l->refs.at[s->ins + k]].bytes;
    if ((double)(p->held + w->held) > p->chip->hbm_bytes_per_core / HELD_PART)
        w->held = 0;
    p->held += w->held;
    VEC_PUSH(p->a, &p->flying, i);
}

// The last round that begins while a step's operands are held.
static uint32_t last_round(const Plan *p, const Work *w) {
    uint32_t r = w->round;
    while (w->held && r + 1 < p->round_ns.n && p->round_ns.at[r + 1] < w->done)
        r++;
    return r;
}

static void place(Plan *p, uint32_t i, uint32_t before, int who, uint32_t round, double t[2]) {
    Work *w = &p->work[i];
    p->next[before] = p->next[i];
    w->core = (uint8_t)who;
    w->round = round;
    for (int core = 0; core < 2; core++)
        if (who == PAIR_SHARED || who == core) {
            t[core] += w->cost[core];
            note(p, w, who == PAIR_SHARED ? core : 0, core, round);
        }
    if (w->wire) {
        w->done = p->through = (p->through > later(t) ? p->through : later(t)) + w->wire;
        hold(p, i, later(t));
    }
    VEC_PUSH(p->a, &p->order, i);
}

// The oldest step, which is the first of its round, waits for collectives; so does the meeting before it.
static void wait_for(Plan *p, uint32_t i, double t[2]) {
    double through = later(t);
    for (uint32_t k = p->work[i].preds; k; k = p->links.at[k].next)
        through = fmax(through, p->work[p->links.at[k].step].done);
    p->out->two_ns -= through - later(t); // one core would wait as well
    t[0] = t[1] = p->round_ns.at[p->round_ns.n - 1] = p->began = through;
}

static void schedule(Plan *p) {
    double t[2] = {0, 0};
    uint32_t round = 1, filled = 0; // steps in it
    p->flying.n = p->landed = p->round_ns.n = 0, p->held = 0;
    for (uint32_t i = 0; i <= round; i++)
        VEC_PUSH(p->a, &p->round_ns, 0);
    while (p->next[p->n + 1] < p->n) {
        uint32_t before = p->n + 1, looked = 0;
        int who = -1;
        for (uint32_t i = p->next[before]; i < p->n && looked++ < WINDOW; before = i, i = p->next[i]) {
            who = who_may(p, i, t, round);
            if (who < 0 && wants_meeting(p, i, t, round))
                break;
            if (who < 0)
                continue;
            if (p->patient)
                wait_for(p, i, t);
            place(p, i, before, who, round, t);
            break;
        }
        if (who >= 0 || !filled) {
            assert(who >= 0 || !p->patient);
            filled += who >= 0, p->patient = who < 0;
            continue;
        }
        round++, filled = 0;
        t[0] = t[1] = p->began = later(t);
        VEC_PUSH(p->a, &p->round_ns, p->began);
    }
    p->out->two_ns += later(t);
    for (uint32_t i = 0; i < p->n; i++)
        p->out->one_ns += p->work[i].shared ? p->work[i].cost[0] + p->work[i].cost[1] - p->step_ns : p->work[i].cost[0];
}

// --- the new order ---------------------------------------------------------------------------------

// Buffers that begin or end in the segment do so with the rounds that touch them.
static void relive(Plan *p) {
    Lower *l = p->l;
    uint32_t end = p->begin + p->n;
    uint32_t *round_begin = ARENA_NEWN(p->a, uint32_t, p->n + 2), *round_end = ARENA_NEWN(p->a, uint32_t, p->n + 2);
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t r = p->work[p->order.at[k]].round;
        if (!k || p->work[p->order.at[k - 1]].round != r)
            round_begin[r] = p->begin + k;
        round_end[r] = p->begin + k;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const Step *s = &l->steps.at[p->begin + i];
        for (uint32_t k = 0; k < s->nins + s->nouts; k++) {
            BufId b = l->refs.at[k < s->nins ? s->ins + k : s->outs + k - s->nins];
            uint32_t r = p->work[i].round, last = last_round(p, &p->work[i]);
            if (!p->least[b] || r < p->least[b])
                p->least[b] = r;
            if (last > p->most[b])
                p->most[b] = last;
        }
    }
    for (uint32_t i = p->begin; i < end; i++) {
        for (BufId b = p->begins.first[i]; b; b = p->begins.next[b])
            l->bufs.at[b].first = p->least[b] ? round_begin[p->least[b]] : p->begin;
        for (BufId b = p->ends.first[i]; b; b = p->ends.next[b])
            l->bufs.at[b].last = p->most[b] ? round_end[p->most[b]] : end - 1;
    }
}

// Only what the segment used is not zero. Numbers of feet only grow.
static void forget(Plan *p) {
    for (uint32_t i = 0; i < p->n; i++) {
        const Step *s = &p->l->steps.at[p->begin + i];
        for (uint32_t k = 0; k < s->nins + s->nouts; k++) {
            BufId b = p->l->refs.at[k < s->nins ? s->ins + k : s->outs + k - s->nins], m = lower_memory(p->l, b);
            p->least[b] = p->most[b] = 0;
            p->writer[m] = p->readers[m] = 0;
        }
        for (uint32_t f = p->work[i].feet; f; f = p->out->foot.at[f].next)
            p->busy[p->out->foot.at[f].buf] = (Busy){0};
    }
    for (uint32_t f = p->fence - (p->fences.n - 1); f < p->fence; f++)
        for (uint32_t k = 0; k < p->l->fences.at[f].bufs.n; k++)
            p->fence_of[lower_memory(p->l, p->l->fences.at[f].bufs.at[k])] = 0;
}

static bool segment(Plan *p, uint32_t begin, uint32_t n) {
    Pair *out = p->out;
    Lower *l = p->l;
    p->begin = begin, p->n = n, p->through = p->began = 0;
    p->fences.n = 0;
    VEC_PUSH(p->a, &p->fences, 0);
    p->work = ARENA_NEWN(p->a, Work, n + 1);
    p->next = ARENA_NEWN(p->a, uint32_t, n + 2);
    p->links.n = p->order.n = 0;
    VEC_PUSH(p->a, &p->links, (Link){0});
    for (uint32_t i = 0; i < n; i++) {
        look_at(p, i);
        p->next[i] = i + 1;
    }
    p->next[n + 1] = 0; // the head
    depend(p);
    schedule(p);
    relive(p);
    forget(p);
    Step *steps = arena_dup(p->a, &l->steps.at[begin], n * sizeof *steps);
    bool both = false;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = p->order.at[k];
        l->steps.at[begin + k] = steps[i];
        out->core[begin + k] = p->work[i].core;
        out->meets[begin + k] = !k && begin; // behind control flow: both have read what decided it before one may write that
        out->round[begin + k] = out->rounds + p->work[i].round;
        out->feet[begin + k] = p->work[i].feet;
        both |= p->work[i].core != 0;
    }
    out->rounds += n ? p->work[p->order.at[n - 1]].round : 0;
    return both;
}

// Temporary buffers behind each other, so that a probe's addresses tell them apart; their places come later. False: no room for that.
static bool spread_out(Plan *p) {
    Lower *l = p->l;
    uint64_t at = 0;
    for (BufId b = 1; b < l->bufs.n; b++)
        if (l->bufs.at[b].kind == BUF_TEMP) {
            VEC_PUSH(p->a, &p->temps, b);
            l->bufs.at[b].off = at;
            at += l->bufs.at[b].bytes / HEAP_ALIGN * HEAP_ALIGN + HEAP_ALIGN;
            if (at >> ADDR_OFF_BITS)
                return false;
        }
    return true;
}

void pair_plan(Lower *l, const ChipFile *chip, Pair *out) {
    Arena *a = l->c->scratch;
    uint32_t n = l->steps.n + 1;
    *out = (Pair){.cores = 2, .core = ARENA_NEWN(a, uint8_t, n), .meets = ARENA_NEWN(a, bool, n), .round = ARENA_NEWN(a, uint32_t, n),
                  .after = {ARENA_NEWN(a, uint32_t, n), ARENA_NEWN(a, uint32_t, n)}, .due = ARENA_NEWN(a, uint32_t, n),
                  .feet = ARENA_NEWN(a, uint32_t, n)};
    VEC_PUSH(a, &out->foot, (Foot){0});
    assert(chip);
    Plan p = {.l = l, .chip = chip, .step_ns = 2 * cost_reach(chip), .a = a, .out = out};
    if (!spread_out(&p))
        return;
    p.probe = emit_make(l, chip);
    p.begins = emit_bufs(l, false), p.ends = emit_bufs(l, true);
    p.writer = ARENA_NEWN(a, uint32_t, l->bufs.n), p.readers = ARENA_NEWN(a, uint32_t, l->bufs.n);
    p.fence_of = ARENA_NEWN(a, uint32_t, l->bufs.n);
    p.foot = ARENA_NEWN(a, uint32_t, l->bufs.n), p.busy = ARENA_NEWN(a, Busy, l->bufs.n);
    p.least = ARENA_NEWN(a, uint32_t, l->bufs.n), p.most = ARENA_NEWN(a, uint32_t, l->bufs.n);
    for (uint32_t i = 0; i < l->steps.n;) {
        if (is_control(&l->steps.at[i])) {
            out->core[i] = PAIR_BOTH;
            out->meets[i] = true;
            i++;
            continue;
        }
        uint32_t end = i;
        while (end < l->steps.n && !is_control(&l->steps.at[end]))
            end++;
        out->is_split |= segment(&p, i, end - i);
        i = end;
    }
}

// --- what follows which meeting ----------------------------------------------------------------------

#define PIECE_BITS 12 // HBM by pieces of 4 KiB

typedef struct Piece { // rounds of accesses, by [core][0: reads, 1: writes]
    uint32_t last[2][2], before[2][2]; // before: of those in other rounds than the last
    uint32_t coll[2][2];               // the last collective, its step + 1: it has no round before somebody waits for it
} Piece;

typedef struct Memory { // an HBM segment
    Piece *at;
    uint64_t n;
} Memory;

// Every segment's pieces, at once: a table that grows is copied, and touches twice the memory.
static Memory *memories_make(const Lower *l) {
    Arena *a = l->c->scratch;
    Memory *m = ARENA_NEWN(a, Memory, l->bufs.n + 1);
    for (BufId b = 1; b < l->bufs.n; b++) {
        const TBuf *t = &l->bufs.at[b];
        bool temp = t->kind == BUF_TEMP;
        uint64_t n = ((temp ? t->off + t->bytes : t->bytes) >> PIECE_BITS) + 1;
        if (t->kind == BUF_VIEW || t->kind == BUF_CONST)
            continue;
        m[temp ? 0 : b].n = m[temp ? 0 : b].n > n ? m[temp ? 0 : b].n : n;
    }
    return m;
}

static Piece *piece_at(Arena *a, Memory *m, uint64_t i) {
    assert(i < m->n);
    if (!m->at)
        m->at = ARENA_NEWN(a, Piece, m->n);
    return &m->at[i];
}

typedef struct Follow { // a core's part of a step
    Lower *l;
    Pair *p;
    Memory *memories;
    uint32_t step, base; // rounds up to base ended with everything complete
    int core;
    bool note; // what it does, else what it follows
} Follow;

// A collective of this segment, step + 1, is complete with the round's meeting at the latest; when that is. 0: it was complete before.
static uint32_t settle(const Follow *f, uint32_t coll, uint32_t round) {
    if (!coll || coll == f->step + 1 || f->p->round[coll - 1] <= f->base)
        return 0;
    uint32_t *due = &f->p->due[coll - 1];
    if (!*due || *due > round)
        *due = round;
    assert(*due >= f->p->round[coll - 1]);
    return *due;
}

static void note_piece(const Follow *f, Piece *p, bool writes) {
    uint32_t round = f->p->round[f->step], *coll = &p->coll[f->core][writes];
    if (step_is_collective(f->l, &f->l->steps.at[f->step])) {
        settle(f, *coll, round);
        *coll = f->step + 1;
    } else if (p->last[f->core][writes] != round) {
        p->before[f->core][writes] = p->last[f->core][writes], p->last[f->core][writes] = round;
    }
}

// What the other core did there, in rounds of this segment but this one: in the same round they meet in no byte.
static uint32_t after_piece(const Follow *f, const Piece *p, bool writes) {
    uint32_t after = 0, round = f->p->round[f->step];
    for (int k = !writes; k < 2; k++) {
        uint32_t last = p->last[1 - f->core][k], coll = p->coll[1 - f->core][k];
        after = larger(after, last == round ? p->before[1 - f->core][k] : last);
        if (coll && f->p->round[coll - 1] < round)
            after = larger(after, settle(f, coll, round - 1));
    }
    return after;
}

static uint32_t walk(const Follow *f, const Foot *foot, Hull h, bool writes) {
    const TBuf *b = &f->l->bufs.at[foot->buf];
    uint64_t end = h.hi < b->bytes ? h.hi : b->bytes, off = b->kind == BUF_TEMP ? b->off : 0;
    uint32_t after = 0, seg = b->kind == BUF_TEMP ? 0 : foot->buf;
    if (h.lo >= end)
        return 0;
    for (uint64_t i = (off + h.lo) >> PIECE_BITS; i <= (off + end - 1) >> PIECE_BITS; i++) {
        Piece *p = piece_at(f->l->c->scratch, &f->memories[seg], i);
        if (f->note)
            note_piece(f, p, writes);
        else
            after = larger(after, after_piece(f, p, writes));
    }
    return after;
}

static void follow_part(const Follow *f) {
    Pair *p = f->p;
    bool shared = p->core[f->step] == PAIR_SHARED;
    uint32_t *to = &p->after[f->core][f->step];
    if (!shared && p->core[f->step] != f->core)
        return;
    for (uint32_t k = p->feet[f->step]; k; k = p->foot.at[k].next)
        for (int writes = 0; writes < 2; writes++) {
            uint32_t after = walk(f, &p->foot.at[k], p->foot.at[k].at[shared ? f->core : 0][writes], writes);
            *to = larger(*to, after > f->base ? after : 0);
        }
}

void pair_follow(Lower *l, Pair *p) {
    assert(p->cores == 2);
    assert(p->is_split);
    Follow f = {.l = l, .p = p, .memories = memories_make(l)};
    for (f.step = 0; f.step < l->steps.n; f.step++) {
        if (p->meets[f.step])
            f.base = f.step && p->round[f.step - 1] > f.base ? p->round[f.step - 1] : f.base;
        if (!step_is_collective(l, &l->steps.at[f.step]))
            p->due[f.step] = p->round[f.step];
        for (int note = 0; note < 2; note++)
            for (int core = 0; core < 2; core++) {
                f.note = note, f.core = core;
                follow_part(&f);
            }
    }
}
