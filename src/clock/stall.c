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
// weights are found from the last jump to the first. Where the path crosses a jump it is without events for
// times * period; that time is filled with what the path did in the period before, as often.
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
    bool is_jump;
    double period; // jump: so much before it is repeated
} Piece;

typedef struct Work {
    Arena *arena;
    const Clock *c;
    const View *view;
    double *weight; // per event: how often it happened
    double *jump_weight;
    int64_t *added; // per jump: picoseconds added by those before it
    double sem_ps;
    Stalls *out;
    VEC(StallRow) rows;
    VEC(Piece) pieces;
} Work;

// --- weights -------------------------------------------------------------------------------------

// Goes back over events and jumps; `open` are the jumps whose period the place is in.
static void weights_make(Work *w) {
    const Clock *c = w->c;
    uint32_t n = c->events.n, open = 0, *stack = ARENA_NEWN(w->arena, uint32_t, (size_t)c->jumps.n + 1);
    w->weight = ARENA_NEWN(w->arena, double, (size_t)n + 1);
    w->jump_weight = ARENA_NEWN(w->arena, double, (size_t)c->jumps.n + 1);
    w->added = ARENA_NEWN(w->arena, int64_t, (size_t)c->jumps.n + 1);
    for (uint32_t j = 0; j < c->jumps.n; j++)
        w->added[j + 1] = w->added[j] + c->jumps.at[j].period * (int64_t)c->jumps.at[j].times;
    double now = 1;
    for (uint32_t i = n, j = c->jumps.n;; i--) {
        while (open && c->jumps.at[stack[open - 1]].first >= i) { // its period began here
            open--;
            now -= (double)c->jumps.at[stack[open]].times * w->jump_weight[stack[open]];
        }
        for (; j && c->jumps.at[j - 1].event >= i; j--) {
            w->jump_weight[j - 1] = now;
            now += (double)c->jumps.at[j - 1].times * now;
            uint32_t at = open++; // the one that began last ends first
            for (; at && c->jumps.at[stack[at - 1]].first > c->jumps.at[j - 1].first; at--)
                stack[at] = stack[at - 1];
            stack[at] = j - 1;
        }
        if (!i)
            return;
        w->weight[i - 1] = now;
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

// --- stalls --------------------------------------------------------------------------------------

static bool is_queued(int track) { return track >= ENG_COUNT; }

typedef struct Gap { // being given out, from its end
    uint32_t waiter;
    int64_t left;
    double scale; // ns per ps
} Gap;

// Jumps before an event.
static uint32_t jumps_before(const Work *w, uint32_t event) {
    uint32_t lo = 0, hi = w->c->jumps.n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (w->c->jumps.at[mid].event <= event)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// From when `early` was issued until `late` was. Behind a jump the iteration added last stands in for the one before
// it; a track that had nothing to do in them stood still all the time, and its gap is longer than a period.
static int64_t issue_apart(const Work *w, const Gap *g, uint32_t early, uint32_t late) {
    int64_t added = w->added[jumps_before(w, late)] - w->added[jumps_before(w, early)];
    int64_t apart = w->c->links.at[late].issue - w->c->links.at[early].issue;
    return added && g->left <= added ? apart - added : apart;
}

static void gap_give(Work *w, Gap *g, int why, uint32_t maker, int64_t ps) {
    ps = ps < g->left ? ps : g->left;
    if (ps <= 0)
        return;
    stall_add(w, why, g->waiter, maker, (double)ps * g->scale);
    g->left -= ps;
}

// What the waiter waits for when `at` is issued, in the time before that.
static void gap_issue(Work *w, Gap *g, uint32_t at) {
    const Clock *c = w->c;
    int64_t apart;
    while (g->left > 0) {
        const ClockLink *l = &c->links.at[at];
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
            apart = issue_apart(w, g, by, at);
            if (is_queued(c->events.at[by].track) || c->events.at[by].track == ENG_SYNC)
                gap_give(w, g, STALL_ISSUE, by, apart);
            else if (c->events.at[by].track == c->events.at[g->waiter].track)
                gap_give(w, g, STALL_LATENCY, by, apart); // its depth: it reads what was just written
            else
                gap_give(w, g, c->events.at[by].track, by, apart);
            at = by;
            continue;
        default:
            gap_give(w, g, STALL_QUEUE, by, g->left);
            return;
        }
    }
}

// `extra`: nanoseconds beside its weight, of a track's first gap in a period.
static void gap_add(Work *w, uint32_t event, double extra) {
    const ClockLink *l = &w->c->links.at[event];
    double ns = (double)l->gap * 1e-3 * w->weight[event] + extra;
    if (l->gap <= 0) {
        if (ns)
            stall_add(w, STALL_ISSUE, event, l->issue_by, ns);
        return;
    }
    Gap g = {event, l->gap, ns / (double)l->gap};
    if (l->begin_cause == CLOCK_PORT)
        gap_give(w, &g, STALL_PORT, l->begin_by, l->begin - l->issue);
    else if (l->begin_cause == CLOCK_QUEUE)
        gap_give(w, &g, STALL_QUEUE, l->begin_by, l->begin - l->issue);
    else
        gap_give(w, &g, STALL_LATENCY, event, l->begin - l->issue);
    gap_issue(w, &g, event);
    assert(g.left <= 0);
}

// What the first gaps of periods have too much, for each event.
static double *late_gaps(Work *w) {
    const Clock *c = w->c;
    double *extra = ARENA_NEWN(w->arena, double, (size_t)c->events.n + 1);
    for (uint32_t j = 0; j < c->jumps.n; j++) {
        const ClockJump *jump = &c->jumps.at[j];
        uint32_t missing = 0;
        for (int t = 0; t < 2 * CLOCK_TRACKS; t++)
            missing |= jump->late[t / CLOCK_TRACKS][t % CLOCK_TRACKS] ? 1u << t : 0;
        for (uint32_t i = jump->first; missing && i < jump->event; i++) {
            const ClockEvent *e = &c->events.at[i];
            int t = e->core * CLOCK_TRACKS + e->track;
            if (missing >> t & 1)
                extra[i] -= (double)jump->late[e->core][e->track] * 1e-3 * (double)jump->times * w->jump_weight[j];
            missing &= ~(1u << t);
        }
    }
    return extra;
}

static void stalls_make(Work *w) {
    const Clock *c = w->c;
    double cores = c->peer_flow ? 2 : 1, *extra = late_gaps(w);
    for (uint32_t i = 0; i < c->events.n; i++) {
        const ClockEvent *e = &c->events.at[i];
        if (e->core && !c->peer_flow)
            continue; // both do the same
        w->out->busy_ns[e->track] += (double)c->links.at[i].busy * 1e-3 * w->weight[i];
        gap_add(w, i, extra[i]);
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

typedef struct Walk {
    uint32_t event;
    int64_t at;   // time, as the event saw it
    int cause;    // how it is reached
    uint32_t jumps; // those before the event
} Walk;

// Goes to whoever let the event happen at `k->at`; iterations that were added in between are a piece.
static void walk_to(Work *w, Walk *k, uint32_t by, int cause) {
    const Clock *c = w->c;
    k->cause = cause;
    k->event = by;
    for (; k->jumps && (by == CLOCK_NOBODY || c->jumps.at[k->jumps - 1].event > by); k->jumps--) {
        const ClockJump *j = &c->jumps.at[k->jumps - 1];
        double period = (double)j->period * 1e-3, ns = period * (double)j->times;
        if (ns <= 0)
            continue;
        Piece p = {.ns = ns, .weight = 1, .is_jump = true, .period = period, .event = CLOCK_NOBODY};
        VEC_PUSH(w->arena, &w->pieces, p);
        k->at -= j->period * (int64_t)j->times;
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

// Fills the jumps, the latest first: a jump's weight goes to the pieces of the period before it.
static void path_repeat(Work *w) {
    for (uint32_t i = 0; i < w->pieces.n; i++) {
        const Piece *jump = &w->pieces.at[i];
        if (!jump->is_jump)
            continue;
        double left = jump->period, found = 0;
        for (uint32_t k = i + 1; k < w->pieces.n && found < left; k++)
            found += w->pieces.at[k].ns;
        found = found < left ? found : left;
        for (uint32_t k = i + 1; k < w->pieces.n && left > 0; k++) {
            Piece *p = &w->pieces.at[k];
            double part = p->ns < left ? p->ns : left;
            p->weight += jump->weight * (jump->ns / found) * (part / p->ns);
            left -= part;
        }
    }
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
        if (p->is_jump)
            continue;
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
    walk_to(w, &k, c->last_event, CLOCK_ALL);
    while (k.event != CLOCK_NOBODY)
        path_step(w, &k);
    piece_add(w, CLOCK_NOBODY, PATH_ISSUE, k.at);
    path_repeat(w);
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
