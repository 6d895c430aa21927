// SPDX-License-Identifier: Apache-2.0
// stall.c — the critical path and the stalls, from the links the clock left behind.
//
// Each event knows when it was issued, began and ended, and the event that held it back at each of these moments.
//   path     backwards from the end of the run: the time between an event and who held it back is a piece.
//   stalls   the time a track stood still before an event is given to what held that one back; where that is an
//            instruction of the same sequencer which waited itself, to what that one waited for.
//
// Loops. The clock adds iterations of a steady loop at once (a jump): events [first, event) happened `times` times
// more. An event's weight is how often it happened; jumps inside what another jump repeats have a weight too, so
// weights are found from the last jump to the first. Event first + k of a period is event + k of the next one, so the path
// goes back through the added iterations as if they had been stepped through; where it comes to an event as it did some
// iterations later, what lies between is repeated for as many of them as there are.
//
// What must hold (asserted): busy + stalls = told_ps of each track; the pieces of the path add up to the total.
#include "clock/stall.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "clock/flow.h"
#include "mach/price.h"

const char *const stall_names[STALL_COUNT] = {
    "tensor", "vector", "scalar", "gpsimd", "sync", "dma in", "dma out", "collectives",
    "latency", "issue", "weights", "port", "queue", "other core", "start"};
const char *const path_names[PATH_KINDS] = {"work", "hbm bandwidth", "dma engines", "signals", "completion",
                                            "transfer start", "issue"};

typedef struct Piece { // of the path, the latest first
    double ns, weight;
    uint32_t event;
    uint8_t kind;
} Piece;

typedef struct Seen { // the path in a jump's iterations
    uint32_t entry, pieces; // the last time it came here; pieces it had then
    uint64_t copies;
    int64_t at; // behind the event's end
    int cause;
} Seen;

typedef struct Work {
    Arena *arena;
    const Clock *c;
    const View *view;
    double *weight; // per event: how often it happened
    double *jump_weight;
    double sem_ps;
    Stalls *out;
    VEC(StallRow) rows;
    VEC(Piece) pieces;
    Seen **seen; // of the path, per jump and event of its period; NULL: not yet
} Work;

// --- weights -------------------------------------------------------------------------------------

typedef struct Open { // the jumps whose period a place is in, going back; what began last stands last
    uint32_t *stack, n, jumps;
    double weight; // of an event there
} Open;

static Open open_begin(const Work *w) {
    return (Open){.stack = ARENA_NEWN(w->arena, uint32_t, (size_t)w->c->jumps.n + 1), .jumps = w->c->jumps.n, .weight = 1};
}

static void open_back(const Work *w, Open *o, uint32_t i) { // to before event i
    const ClockJump *jumps = w->c->jumps.at;
    while (o->n && jumps[o->stack[o->n - 1]].first >= i) { // its period began here
        o->n--;
        o->weight -= (double)jumps[o->stack[o->n]].times * w->jump_weight[o->stack[o->n]];
    }
    for (; o->jumps && jumps[o->jumps - 1].event >= i; o->jumps--) {
        uint32_t j = o->jumps - 1, at = o->n++;
        w->jump_weight[j] = o->weight;
        o->weight += (double)jumps[j].times * o->weight;
        for (; at && jumps[o->stack[at - 1]].first > jumps[j].first; at--)
            o->stack[at] = o->stack[at - 1];
        o->stack[at] = j;
    }
}

static void weights_make(Work *w) {
    uint32_t n = w->c->events.n;
    w->weight = ARENA_NEWN(w->arena, double, (size_t)n + 1);
    w->jump_weight = ARENA_NEWN(w->arena, double, (size_t)w->c->jumps.n + 1);
    Open open = open_begin(w);
    for (uint32_t i = n; i; i--) {
        open_back(w, &open, i);
        w->weight[i - 1] = open.weight;
    }
}

// --- rows ----------------------------------------------------------------------------------------

static uint32_t line_of(const Work *w, uint32_t event) {
    if (event == CLOCK_NOBODY)
        return STALL_NO_LINE;
    const ClockEvent *e = &w->c->events.at[event];
    return w->view->line_of[e->core && w->c->peer_flow][e->inst];
}

static double *inst_of(const Work *w, double *const *per_core, uint32_t event) {
    const ClockEvent *e = &w->c->events.at[event];
    return &per_core[e->core && w->c->peer_flow][e->inst];
}

static void stall_add(Work *w, int why, uint32_t waiter, uint32_t maker, double ns) {
    int track = w->c->events.at[waiter].track;
    w->out->stall_ns[track][why] += ns;
    *inst_of(w, w->out->waits, waiter) += ns;
    if (maker != CLOCK_NOBODY)
        *inst_of(w, w->out->waited_for, maker) += ns;
    StallRow row = {(uint8_t)track, (uint8_t)why, line_of(w, waiter), line_of(w, maker), ns};
    VEC_PUSH(w->arena, &w->rows, row);
}

#define COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))
static int row_key(const void *x, const void *y) {
    const StallRow *a = x, *b = y;
    int d = COMPARE(a->track, b->track);
    d = d ? d : COMPARE(a->why, b->why);
    d = d ? d : COMPARE(a->line, b->line);
    return d ? d : COMPARE(a->for_line, b->for_line);
}
static int row_longest(const void *x, const void *y) {
    const StallRow *a = x, *b = y;
    return a->ns != b->ns ? (a->ns > b->ns ? -1 : 1) : row_key(x, y);
}

static void rows_finish(Work *w) {
    uint32_t n = w->rows.n;
    if (!n)
        return;
    qsort(w->rows.at, n, sizeof *w->rows.at, row_key);
    for (uint32_t i = 0; i < n; i++)
        if (i && !row_key(&w->rows.at[i], &w->out->rows.at[w->out->rows.n - 1]))
            w->out->rows.at[w->out->rows.n - 1].ns += w->rows.at[i].ns;
        else
            VEC_PUSH(w->arena, &w->out->rows, w->rows.at[i]);
    qsort(w->out->rows.at, w->out->rows.n, sizeof *w->out->rows.at, row_longest);
}

// --- going back ---------------------------------------------------------------------------------

#define WITHIN_MAX (2 * ART_LOOP_DEPTH_MAX)

typedef struct Within { // iterations that a jump added
    uint32_t jump, entry;
    uint64_t copies; // of its period before the one the path is in
} Within;

typedef struct Walk {
    uint32_t event;
    int64_t at;     // time, as the event saw it
    int cause;      // how it is reached
    uint32_t jumps; // those before the event
    Within in[WITHIN_MAX]; // the innermost last
    uint32_t depth, entries;
} Walk;

// At an event as it happened or, in a jump's period, in the last iteration that was added.
static void walk_begin(const Work *w, Walk *k, uint32_t event, uint32_t jump) {
    uint32_t lo = 0, hi = w->c->jumps.n;
    while (lo < hi) { // the jumps before it
        uint32_t mid = (lo + hi) / 2;
        if (w->c->jumps.at[mid].event <= event)
            lo = mid + 1;
        else
            hi = mid;
    }
    k->event = event;
    k->jumps = lo;
    k->depth = k->entries = 0;
    if (jump != CLOCK_NOBODY)
        k->in[k->depth++] = (Within){jump, 0, w->c->jumps.at[jump].times};
}

// The path is as it was some iterations later: it goes on like that for as many as are left.
static void walk_repeat(Work *w, Walk *k, Within *in) {
    const ClockJump *j = &w->c->jumps.at[in->jump];
    if (k->event < j->first || k->event >= j->event)
        return;
    w->seen[in->jump] = w->seen[in->jump] ? w->seen[in->jump] : ARENA_NEWN(w->arena, Seen, j->event - j->first);
    Seen *was = &w->seen[in->jump][k->event - j->first];
    Seen now = {in->entry, w->pieces.n, in->copies, k->at - w->c->links.at[k->event].done, k->cause};
    if (was->entry == now.entry && was->at == now.at && was->cause == now.cause) {
        uint64_t cycle = was->copies - now.copies, times = now.copies / cycle;
        for (uint32_t i = was->pieces; i < now.pieces; i++)
            w->pieces.at[i].weight *= 1 + (double)times;
        now.copies = in->copies -= times * cycle;
    }
    *was = now;
}

// Into the iterations added between the event and `by`. False: there are none.
static bool walk_enter(Work *w, Walk *k, uint32_t by) {
    const ClockJump *j = k->jumps ? &w->c->jumps.at[k->jumps - 1] : NULL;
    if (!j || j->event <= by || k->depth == WITHIN_MAX || (k->depth && j->event <= w->c->jumps.at[k->in[k->depth - 1].jump].first))
        return false;
    k->jumps--;
    if (j->period > 0 && j->times && j->event > j->first) {
        k->at -= j->period * (int64_t)j->times;
        k->in[k->depth++] = (Within){k->jumps, ++k->entries, j->times};
    }
    return true;
}

static bool is_same(const Work *w, uint32_t a, uint32_t b) {
    const ClockEvent *x = &w->c->events.at[a], *y = &w->c->events.at[b];
    return x->inst == y->inst && x->core == y->core;
}

// The event that is to a jump's iteration what `by` was to the one before: as many of the same instruction follow it. What
// came before the first period may have come in another order. `by` itself: the loop has no such instruction.
static uint32_t next_period(const Work *w, const ClockJump *j, uint32_t by) {
    uint32_t behind = 0, at = j->event;
    for (uint32_t i = by; i < j->first; i++)
        behind += is_same(w, i, by);
    while (at > by && behind)
        behind -= is_same(w, --at, by);
    return at;
}

// Goes to whoever let the event happen at `k->at`.
static void walk_to(Work *w, Walk *k, uint32_t by, int cause) {
    uint32_t back = 0; // in which of the jumps it went to an earlier iteration, plus one
    while (by != CLOCK_NOBODY) {
        if (walk_enter(w, k, by))
            continue;
        Within *in = k->depth ? &k->in[k->depth - 1] : NULL;
        const ClockJump *j = in ? &w->c->jumps.at[in->jump] : NULL;
        if (!in || by >= j->first)
            break;
        uint32_t next = in->copies ? next_period(w, j, by) : by;
        if (next == by) {
            k->at += j->period * (int64_t)in->copies;
            k->depth--;
            back = back > k->depth ? 0 : back;
            continue;
        }
        by = next;
        in->copies--;
        k->at += j->period;
        k->jumps = in->jump;
        back = k->depth;
    }
    for (; by == CLOCK_NOBODY && k->depth; k->depth--) // nothing held it: all that is left
        k->at += w->c->jumps.at[k->in[k->depth - 1].jump].period * (int64_t)k->in[k->depth - 1].copies;
    k->cause = cause;
    k->event = by;
    if (back && by != CLOCK_NOBODY && w->seen)
        walk_repeat(w, k, &k->in[back - 1]);
}

// --- stalls --------------------------------------------------------------------------------------

static bool is_queued(int track) { return track >= ENG_COUNT; }

#define GAP_STEPS 4096 // of instructions that only follow each other; longer chains are given to the last of them

typedef struct Gap { // being given out, from its end
    uint32_t waiter;
    int64_t left;
    double scale; // ns per ps
    Walk k;
} Gap;

static void gap_give(Work *w, Gap *g, int why, uint32_t maker, int64_t ps) {
    ps = ps < g->left ? ps : g->left;
    if (ps <= 0)
        return;
    stall_add(w, why, g->waiter, maker, (double)ps * g->scale);
    g->left -= ps;
}

// What the waiter waits for when the event the walk is at is issued, in the time before that.
static void gap_issue(Work *w, Gap *g) {
    const Clock *c = w->c;
    int64_t apart;
    for (int steps = 0; g->left > 0; steps++) {
        const ClockLink *l = &c->links.at[g->k.event];
        uint32_t by = l->issue_by;
        int cause = by == CLOCK_NOBODY && l->issue_cause != CLOCK_PARTNER ? CLOCK_NONE : l->issue_cause;
        const ClockLink *m = by == CLOCK_NOBODY ? NULL : &c->links.at[by];
        switch (cause) {
        case CLOCK_NONE:
            gap_give(w, g, STALL_START, by, g->left);
            return;
        case CLOCK_WAIT:
            gap_give(w, g, STALL_LATENCY, by, (int64_t)w->sem_ps + m->done - m->end);
            gap_give(w, g, c->events.at[by].track, by, g->left);
            return;
        case CLOCK_ALL:
            gap_give(w, g, STALL_LATENCY, by, m->done - m->end);
            gap_give(w, g, c->events.at[by].track, by, g->left);
            return;
        case CLOCK_WEIGHTS:
            gap_give(w, g, STALL_WEIGHTS, by, g->left);
            return;
        case CLOCK_PORT:
            gap_give(w, g, STALL_PORT, by, g->left);
            return;
        case CLOCK_PARTNER:
            gap_give(w, g, STALL_PARTNER, by, g->left);
            return;
        case CLOCK_ORDER:
        case CLOCK_FENCE:
            g->k.at = l->issue;
            walk_to(w, &g->k, by, cause);
            by = g->k.event;
            apart = steps < GAP_STEPS ? g->k.at - c->links.at[by].issue : g->left;
            if (is_queued(c->events.at[by].track) || c->events.at[by].track == ENG_SYNC)
                gap_give(w, g, STALL_ISSUE, by, apart);
            else if (c->events.at[by].track == c->events.at[g->waiter].track)
                gap_give(w, g, STALL_LATENCY, by, apart); // its depth: it reads what was just written
            else
                gap_give(w, g, c->events.at[by].track, by, apart);
            continue;
        default:
            gap_give(w, g, STALL_QUEUE, by, g->left);
            return;
        }
    }
}

// The gap before an event, that many times. In a jump's iterations it is what held it back one of them earlier.
static void gap_add(Work *w, uint32_t event, uint32_t jump, int64_t gap, double times) {
    const ClockLink *l = &w->c->links.at[event];
    Gap g; // not cleared: a walk is long
    g.waiter = event, g.left = gap, g.scale = 1e-3 * times;
    if (gap <= 0) {
        if (gap)
            stall_add(w, STALL_ISSUE, event, l->issue_by, (double)gap * g.scale);
        return;
    }
    if (l->begin_cause == CLOCK_PORT)
        gap_give(w, &g, STALL_PORT, l->begin_by, l->begin - l->issue);
    else if (l->begin_cause == CLOCK_QUEUE)
        gap_give(w, &g, STALL_QUEUE, l->begin_by, l->begin - l->issue);
    else
        gap_give(w, &g, STALL_LATENCY, event, l->begin - l->issue);
    walk_begin(w, &g.k, event, jump);
    gap_issue(w, &g);
    assert(g.left <= 0);
}

// The first event of each track in a jump's period: the track stood still longer or shorter before it than in the iterations
// that were added.
typedef struct Firsts {
    uint32_t of[2][CLOCK_TRACKS];
} Firsts;

static Firsts *firsts_find(Work *w) {
    const Clock *c = w->c;
    Firsts *firsts = ARENA_NEWN(w->arena, Firsts, (size_t)c->jumps.n + 1);
    for (uint32_t j = 0; j < c->jumps.n; j++) {
        const ClockJump *jump = &c->jumps.at[j];
        uint32_t missing = 0;
        for (int t = 0; t < 2 * CLOCK_TRACKS; t++) {
            firsts[j].of[t / CLOCK_TRACKS][t % CLOCK_TRACKS] = CLOCK_NOBODY;
            missing |= jump->late[t / CLOCK_TRACKS][t % CLOCK_TRACKS] ? 1u << t : 0;
        }
        for (uint32_t i = jump->first; missing && i < jump->event; i++) {
            const ClockEvent *e = &c->events.at[i];
            int t = e->core * CLOCK_TRACKS + e->track;
            if (missing >> t & 1)
                firsts[j].of[e->core][e->track] = i;
            missing &= ~(1u << t);
        }
    }
    return firsts;
}

// As it happened, and in the iterations of every jump whose period it is in.
static void gaps_add(Work *w, const Firsts *firsts, const Open *open, uint32_t event) {
    const ClockEvent *e = &w->c->events.at[event];
    int64_t gap = w->c->links.at[event].gap;
    gap_add(w, event, CLOCK_NOBODY, gap, 1);
    for (uint32_t k = 0; k < open->n; k++) {
        uint32_t j = open->stack[k];
        const ClockJump *jump = &w->c->jumps.at[j];
        int64_t late = firsts[j].of[e->core][e->track] == event ? jump->late[e->core][e->track] : 0;
        gap_add(w, event, j, gap - late, (double)jump->times * w->jump_weight[j]);
    }
}

static void stalls_make(Work *w) {
    const Clock *c = w->c;
    double cores = c->peer_flow ? 2 : 1;
    const Firsts *firsts = firsts_find(w);
    Open open = open_begin(w);
    for (uint32_t i = c->events.n; i-- > 0;) {
        const ClockEvent *e = &c->events.at[i];
        open_back(w, &open, i + 1);
        if (e->core && !c->peer_flow)
            continue; // both do the same
        w->out->busy_ns[e->track] += (double)c->links.at[i].busy * 1e-3 * w->weight[i];
        gaps_add(w, firsts, &open, i);
    }
    for (int t = 0; t < CLOCK_TRACKS; t++) {
        double told = (double)c->told_ps[0][t] * 1e-3, sum = w->out->busy_ns[t];
        told += cores == 2 ? (double)c->told_ps[1][t] * 1e-3 : 0;
        for (int s = 0; s < STALL_COUNT; s++) {
            sum += w->out->stall_ns[t][s];
            w->out->stall_ns[t][s] /= cores;
        }
        assert(fabs(sum - told) <= 1e-6 * c->total_ns + 1);
        w->out->busy_ns[t] /= cores;
        w->out->idle_ns[t] = fmax(c->total_ns - sum / cores, 0);
    }
    for (uint32_t i = 0; i < w->rows.n; i++)
        w->rows.at[i].ns /= cores;
    for (int k = 0; k < cores; k++)
        for (uint32_t pc = 0; pc < (k ? c->peer_flow : c->flow)->art->ncode; pc++)
            w->out->waits[k][pc] /= cores, w->out->waited_for[k][pc] /= cores;
    rows_finish(w);
}

// --- the critical path ---------------------------------------------------------------------------

static void piece_add(Work *w, uint32_t event, int kind, int64_t ps) {
    if (ps > 0) {
        Piece p = {.ns = (double)ps * 1e-3, .weight = 1, .event = event, .kind = (uint8_t)kind};
        VEC_PUSH(w->arena, &w->pieces, p);
    }
}

static int work_kind(const ClockLink *l) {
    return l->limit == CLOCK_HBM ? PATH_HBM : l->limit == CLOCK_DMA ? PATH_DMA : PATH_WORK;
}

static void path_step(Work *w, Walk *k) {
    uint32_t e = k->event;
    const ClockLink *l = &w->c->links.at[e];
    bool by_order = k->cause == CLOCK_ORDER || k->cause == CLOCK_FENCE || k->cause == CLOCK_PARTNER;
    bool issued = by_order && is_queued(w->c->events.at[e].track); // its sequencer went on
    if (!issued) {
        bool told = k->cause == CLOCK_WAIT || k->cause == CLOCK_ALL || k->cause == CLOCK_QUEUE;
        if (told && k->at > l->done) {
            piece_add(w, e, PATH_SIGNAL, k->at - l->done);
            k->at = l->done;
        }
        if (k->at > l->end) {
            piece_add(w, e, told ? PATH_FINISH : PATH_ISSUE, k->at - l->end);
            k->at = l->end;
        }
        if (k->at > l->serve) {
            piece_add(w, e, work_kind(l), k->at - l->serve);
            k->at = l->serve;
        }
        if (k->at > l->begin && l->serve_by != CLOCK_NOBODY) {
            walk_to(w, k, l->serve_by, l->limit);
            return;
        }
        if (k->at >= l->begin && l->begin_cause != CLOCK_NONE && l->begin_by != CLOCK_NOBODY) {
            k->at = l->begin;
            walk_to(w, k, l->begin_by, l->begin_cause == CLOCK_QUEUE ? CLOCK_DMA : l->begin_cause);
            return;
        }
    }
    if (k->at > l->issue) {
        piece_add(w, e, issued ? PATH_ISSUE : PATH_START, k->at - l->issue);
        k->at = l->issue;
    }
    walk_to(w, k, l->issue_by, l->issue_cause);
}

typedef struct PathKey {
    uint32_t at[CLOCK_TRACKS][PATH_KINDS]; // the line's row there, plus one
} PathKey;

static int path_longest(const void *x, const void *y) {
    const PathRow *a = x, *b = y;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    int d = COMPARE(a->line, b->line);
    d = d ? d : COMPARE(a->track, b->track);
    return d ? d : COMPARE(a->kind, b->kind);
}

static void path_finish(Work *w) {
    const Clock *c = w->c;
    Stalls *out = w->out;
    PathKey *keys = ARENA_NEWN(w->arena, PathKey, (size_t)w->view->lines.n + 1);
    double sum = 0;
    uint32_t last = CLOCK_NOBODY;
    for (uint32_t i = 0; i < w->pieces.n; i++) {
        const Piece *p = &w->pieces.at[i];
        double ns = p->ns * p->weight;
        sum += ns;
        int track = p->event == CLOCK_NOBODY ? ENG_SYNC : c->events.at[p->event].track;
        uint32_t line = line_of(w, p->event);
        uint32_t *at = &keys[line == STALL_NO_LINE ? w->view->lines.n : line].at[track][p->kind];
        if (!*at) {
            VEC_PUSH(w->arena, &out->path, (PathRow){.track = (uint8_t)track, .kind = p->kind, .line = line});
            *at = out->path.n;
        }
        out->path.at[*at - 1].ns += ns;
        out->path.at[*at - 1].steps += p->event != last ? p->weight : 0;
        out->path_ns[track][p->kind] += ns;
        last = p->event;
        if (p->event != CLOCK_NOBODY)
            *inst_of(w, out->on_path, p->event) += ns;
    }
    assert(fabs(sum - c->total_ns) <= 1e-6 * c->total_ns + 1);
    if (out->path.n)
        qsort(out->path.at, out->path.n, sizeof *out->path.at, path_longest);
}

static void path_make(Work *w) {
    const Clock *c = w->c;
    Walk k = {.event = CLOCK_NOBODY, .at = (int64_t)llround(c->total_ns * 1e3), .jumps = c->jumps.n};
    w->seen = ARENA_NEWN(w->arena, Seen *, (size_t)c->jumps.n + 1);
    walk_to(w, &k, c->last_event, CLOCK_ALL);
    while (k.event != CLOCK_NOBODY)
        path_step(w, &k);
    piece_add(w, CLOCK_NOBODY, PATH_ISSUE, k.at);
    path_finish(w);
}

// --- entry point ---------------------------------------------------------------------------------

void stall_make(Arena *a, const Artifact *art, const ChipFile *chip, const Clock *clock, const View *view, Stalls *out) {
    *out = (Stalls){.total_ns = clock->total_ns};
    if (clock->cut || !clock->links.n || clock->total_ns <= 0 || clock->total_ns * 1e3 >= (double)PS_MAX)
        return;
    out->known = true;
    for (int k = 0; k < 2 && art; art = art->peer, k++) {
        out->on_path[k] = ARENA_NEWN(a, double, (size_t)art->ncode + 1);
        out->waits[k] = ARENA_NEWN(a, double, (size_t)art->ncode + 1);
        out->waited_for[k] = ARENA_NEWN(a, double, (size_t)art->ncode + 1);
    }
    Work w = {.arena = a, .c = clock, .view = view, .sem_ps = floor(chip->sem_ns * 1000), .out = out};
    weights_make(&w);
    stalls_make(&w);
    path_make(&w);
}

double stall_work_ns(const Stalls *s, int track) {
    return s->path_ns[track][PATH_WORK] + s->path_ns[track][PATH_HBM] + s->path_ns[track][PATH_DMA];
}

int stall_bottleneck(const Clock *clock, const Stalls *s) {
    int best = 0;
    for (int t = 1; t < CLOCK_TRACKS; t++)
        if (s->known ? stall_work_ns(s, t) > stall_work_ns(s, best) : clock->busy_ns[t] > clock->busy_ns[best])
            best = t;
    return best;
}
