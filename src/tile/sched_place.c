// SPDX-License-Identifier: Apache-2.0
// sched_place.c — which recorded instruction comes next, and what it waits for.
//
// The oldest tasks of each lane take turns: of their next instructions the one that can begin first, by the prices of the chip
// file, is placed first. Placing an instruction works out its waits: each piece of memory carries the completion counts of who
// last wrote and read it, and an instruction waits for those it does not already know to be over.
//
// Steps come in batches, through a short ring. Whoever holds the lock takes them out: a thread beside the one that records, or
// that one itself where there is no other, the ring is full, or it needs to know that all is placed.
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "isa/build.h"
#include "mach/price.h"
#include "tile/sched.h"

_Static_assert(HAZ_SEMS == ENG_COUNT + QUEUE_COUNT, "a count for each queue");

#define PENDING_TASKS 256  // tasks that wait for company
#define RECS_GONE 8192     // placed records that are kept for the time being
#define CHUNK 256          // records
#define AHEAD 16384        // records that may wait to come over
#define CODE_MAX (1u << 30)
#define BODY_MAX (1u << 18) // records of a loop whose iterations run into each other
#define ITERATIONS_MAX 6    // until its waits repeat themselves
#define DONE_NS 2000 // from the last instruction of a task until another engine sees its results in HBM
#define BATCHES 64
#define REST_NS 200000 // of a thread that is not needed

// Tasks of a lane that take turns. Kernels keep their order, as some have a state, and so do collectives: all devices come to them in one order.
static const int active_tasks[LANE_COUNT] = {[LANE_TENSOR] = 8, [LANE_ROWS] = 8, [LANE_MOVE] = 2, [LANE_CAST] = 2, [LANE_KERNEL] = 1, [LANE_COLLECTIVE] = 1, [LANE_DRAWS] = 8};

typedef struct Chunk {
    struct Chunk *next; // when it is spare
    Rec at[CHUNK];
} Chunk;

typedef struct LaneQueue {
    Chunk **chunks; // records by number / CHUNK; who records adds to them, and moves the table with the lock only
    uint64_t nchunks, cap;
    uint64_t base, recs; // numbers of the first that is kept and behind the last that came over
    VEC(Task) tasks;
    uint32_t placed; // tasks that are over, and all before them
} LaneQueue;

typedef struct Piece { // of HBM
    Counts now;
    Known before;    // writes before those of `now`
    uint32_t lo, hi; // the bytes of it that writes of `now` lie between; hi 0: there are none
    uint64_t cells;  // … and which of its cells they touch
    uint32_t pitch, from, to; // … and columns of rows, where all of them say so (Touch)
} Piece;

typedef struct Kept { // a record of a loop's body, as it was placed
    Rec rec;
    uint32_t order;
} Kept;

typedef struct WaitsOf { // of an instruction: counts from the begin of the iteration on; those of the one before are not positive
    int64_t from[2];
    uint8_t sem[2], engine, pad[5];
} WaitsOf;

struct Placer {
    Emit *e;
    VEC(Kept *) body; // by number / CHUNK
    uint32_t nbody;
    bool keeps;      // what is placed is the body of a loop
    bool dry;        // nothing is appended: only waits are found
    uint32_t base[HAZ_SEMS]; // counts when the iteration began
    VEC(WaitsOf) waits;      // of this iteration, when it is dry
    LaneQueue lane[LANE_COUNT];
    Pieces *segments;
    double free[ISA_SEQS], queue[QUEUE_COUNT], hbm; // ns
    uint64_t turns[LANE_COUNT]; // tasks that store
    uint8_t act_set; // the table the scalar engine holds
    Arena arena, scratch; // of the compilation and of this pass, as the other two are; whoever holds the lock allocates
    Ctx ctx;
    jmp_buf *outer; // where errors go while nothing is being placed
    bool failed;
    bool beside; // another thread may be placing
    atomic_flag lock, spare_lock;
    struct Chunk *spare; // to be used again
    _Atomic bool helped;
    _Atomic uint64_t recorded, came; // records of full and of taken batches
    _Atomic bool ended;
    _Atomic uint32_t full, taken; // batches so far
    Batch batch[BATCHES];
};

Placer *placer_make(Emit *e, uint32_t nsegments) {
    Placer *p = ARENA_NEW(e->c->scratch, Placer);
    p->e = e;
    p->act_set = ACT_NO_SET;
    p->segments = ARENA_NEWN(e->c->scratch, Pieces, nsegments + 1);
    arena_init(&p->arena, &p->ctx);
    arena_init(&p->scratch, &p->ctx);
    e->code.arena = &p->arena;
    return p;
}

static Rec *rec_at(const LaneQueue *q, uint64_t number) { return &q->chunks[number / CHUNK]->at[number % CHUNK]; }

static void relax(uint32_t *times) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (++*times % 256 == 0)
        sched_yield();
}

static void spin(atomic_flag *lock) {
    for (uint32_t times = 0; atomic_flag_test_and_set_explicit(lock, memory_order_acquire);)
        relax(&times);
}

// --- placing -----------------------------------------------------------------------------------------

static void note_waits(Placer *p, const IsaInst *in) {
    WaitsOf w = {.engine = in->engine, .sem = {in->wait_sem[0], in->wait_sem[1]}};
    for (int i = 0; i < 2; i++)
        w.from[i] = w.sem[i] == SEM_NONE ? 0 : (int64_t)in->wait_val[i] - p->base[w.sem[i]];
    VEC_PUSH(&p->scratch, &p->waits, w);
}

static uint32_t append(Emit *e, const IsaInst *in, uint32_t loc, uint32_t order) {
    Placer *p = e->placer;
    if (p->dry) {
        note_waits(p, in);
        e->done[isa_sem(in)]++;
        return 0;
    }
    if (e->code.of.n >= CODE_MAX)
        ctx_fail(&p->ctx, OTRN_CAPACITY, NO_PLACE, "the program needs more than %u instructions", CODE_MAX);
    shape_code_push(&e->code, in);
    VEC_PUSH(&p->arena, &e->code_loc, loc);
    VEC_PUSH(&p->scratch, &e->code_order, order);
    e->done[isa_sem(in)]++;
    return e->code.of.n - 1;
}

uint32_t emit_append(Emit *e, const IsaInst *in) { return append(e, in, e->loc, 0); }

static void need(Known *want, const Counts *h, uint32_t epoch, bool reads_too) {
    if (h->epoch != epoch)
        return;
    known_merge(want, &h->w);
    if (reads_too)
        known_merge(want, &h->r);
}

static void note_read(Counts *h, uint32_t epoch, int own, uint32_t count) {
    if (h->epoch != epoch)
        counts_reset(h, epoch);
    known_set(&h->r, own, count);
}

static void note_write(Counts *h, uint32_t epoch, int own, uint32_t count) { // nothing of what was known before matters any more
    counts_reset(h, epoch);
    known_set(&h->w, own, count);
}

// --- pieces of HBM: writes that fill one side by side do not wait for each other, in whichever queues they are; each waits for those before the first
// of them. The next that meets one of their bytes begins anew.

static uint32_t touch_lo(const Touch *t, uint64_t piece) { return piece == t->first ? t->lo : 0; }
static uint32_t touch_hi(const Touch *t, uint64_t piece) { return piece == t->last ? t->hi : UINT32_MAX; }

static uint64_t touch_cells(const Touch *t, uint64_t piece) {
    uint32_t first = touch_lo(t, piece) / PIECE_CELL, hi = touch_hi(t, piece), last = hi == UINT32_MAX ? 63 : (hi - 1) / PIECE_CELL;
    assert(first <= last && last < 64);
    return (UINT64_MAX >> (63 - last)) & (UINT64_MAX << first);
}

static bool is_beside(const Piece *h, const Touch *t, uint64_t piece) {
    bool columns = t->pitch && t->pitch == h->pitch && (t->to <= h->from || t->from >= h->to);
    return columns || touch_hi(t, piece) <= h->lo || touch_lo(t, piece) >= h->hi || !(h->cells & touch_cells(t, piece));
}

static Piece *pieces_of(Placer *p, const Touch *t, uint64_t first, uint64_t *n) {
    *n = t->last - first + 1;
    return pieces_at(&p->scratch, &p->segments[t->seg], sizeof(Piece), first, n);
}

static void need_piece(Known *want, const Piece *h, uint32_t epoch, const Touch *t, uint64_t piece) {
    if (h->now.epoch != epoch)
        return;
    known_merge(want, &h->before);
    if (!t->writes || !is_beside(h, t, piece))
        known_merge(want, &h->now.w);
    if (t->writes)
        known_merge(want, &h->now.r);
}

static void note_piece(Piece *h, uint32_t epoch, int own, uint32_t count, const Touch *t, uint64_t piece) {
    uint32_t lo = touch_lo(t, piece), hi = touch_hi(t, piece);
    if (h->now.epoch != epoch) {
        counts_reset(&h->now, epoch);
        h->before.set = 0;
        h->lo = h->hi = 0, h->cells = 0;
    }
    if (!t->writes) {
        known_set(&h->now.r, own, count);
        return;
    }
    if (!is_beside(h, t, piece)) {
        known_merge(&h->before, &h->now.w);
        h->now.w.set = 0;
        h->hi = 0, h->cells = 0;
    }
    h->cells |= touch_cells(t, piece);
    h->from = h->hi && h->from < t->from ? h->from : t->from;
    h->to = h->hi && h->to > t->to ? h->to : t->to;
    h->pitch = !h->hi || h->pitch == t->pitch ? t->pitch : 0;
    h->lo = h->hi && h->lo < lo ? h->lo : lo;
    h->hi = h->hi > hi ? h->hi : hi;
    known_set(&h->now.w, own, count);
}

static void add_waits(Emit *e, IsaInst *in, const Known *want, uint32_t loc, uint32_t order) {
    uint32_t *seen = e->seen[isa_seq(in)];
    in->wait_sem[0] = in->wait_sem[1] = SEM_NONE;
    int nwaits = 0, own = isa_sem(in);
    for (uint32_t left = want->set & ~(1u << own); left; left &= left - 1) { // an engine and a queue work in order
        int s = __builtin_ctz(left);
        if (want->n[s] <= seen[s])
            continue;
        seen[s] = want->n[s];
        if (nwaits == 2) { // no room: a wait of its own goes before
            IsaInst w = isa_wait_before(in);
            memcpy(w.wait_sem, in->wait_sem, sizeof w.wait_sem);
            memcpy(w.wait_val, in->wait_val, sizeof w.wait_val);
            append(e, &w, loc, order);
            in->wait_sem[0] = in->wait_sem[1] = SEM_NONE;
            in->wait_val[0] = in->wait_val[1] = 0;
            nwaits = 0;
        }
        in->wait_sem[nwaits] = (uint8_t)s;
        in->wait_val[nwaits++] = want->n[s];
    }
}

// A meeting waits for the round's accesses to HBM; those of a step behind one wait for it.
static void need_meeting(const Emit *e, const Rec *r, bool hbm, Known *want) {
    if (r->in.op == ISA_CORE_BARRIER)
        *want = e->meetings[r->round].hbm;
    const Meeting *m = hbm && r->after ? &e->meetings[r->after] : NULL;
    if (m && m->epoch == e->epoch && !(want->set >> MEET_ENGINE & 1 && want->n[MEET_ENGINE] >= m->count))
        known_set(want, MEET_ENGINE, m->count);
}

static void note_meeting(Emit *e, const Rec *r, bool hbm, int own, uint32_t count) {
    if (hbm && r->round)
        known_set(&e->meetings[r->round].hbm, own, count);
    if (r->in.op == ISA_CORE_BARRIER)
        e->meetings[r->round].count = count, e->meetings[r->round].epoch = e->epoch;
}

static Kept *kept_at(Placer *p, uint32_t number) {
    if (number / CHUNK == p->body.n)
        VEC_PUSH(&p->scratch, &p->body, arena_alloc(&p->scratch, CHUNK * sizeof(Kept)));
    return &p->body.at[number / CHUNK][number % CHUNK];
}

static void place(Placer *p, const Rec *r, uint32_t order) {
    Emit *e = p->e;
    if (p->keeps && p->nbody < BODY_MAX)
        *kept_at(p, p->nbody++) = (Kept){*r, order};
    if (r->is_merge) {
        counts_merge(&r->writes[0]->counts, &r->reads[0]->counts, e->epoch);
        return;
    }
    Known want = {0};
    uint32_t n = r->ntouches;
    const Touch *touches = n > 2 ? r->more : r->few;
    for (uint32_t i = 0; i < r->nreads; i++)
        need(&want, &r->reads[i]->counts, e->epoch, false);
    for (uint32_t i = 0; i < r->nwrites; i++)
        need(&want, &r->writes[i]->counts, e->epoch, true);
    for (const Touch *t = touches; t < touches + n; t++)
        for (uint64_t k = t->first, some; k <= t->last; k += some) {
            const Piece *at = pieces_of(p, t, k, &some);
            for (uint64_t i = 0; i < some; i++)
                need_piece(&want, &at[i], e->epoch, t, k + i);
        }
    need_meeting(e, r, n > 0, &want);
    IsaInst in = r->in;
    add_waits(e, &in, &want, r->loc, order);
    append(e, &in, r->loc, order);
    int own = isa_sem(&in);
    uint32_t count = e->done[own];
    note_meeting(e, r, n > 0, own, count);
    for (uint32_t i = 0; i < r->nreads; i++)
        note_read(&r->reads[i]->counts, e->epoch, own, count);
    for (uint32_t i = 0; i < r->nwrites; i++)
        note_write(&r->writes[i]->counts, e->epoch, own, count);
    for (const Touch *t = touches; t < touches + n; t++)
        for (uint64_t k = t->first, some; k <= t->last; k += some) {
            Piece *at = pieces_of(p, t, k, &some);
            for (uint64_t i = 0; i < some; i++)
                note_piece(&at[i], e->epoch, own, count, t, k + i);
        }
}

// --- iterations ---------------------------------------------------------------------------------------
//
// What is placed waits for counts since the barrier, and at the begin of a loop's body nothing is known of the iteration before. So
// the body's records are placed once more, in the same order, behind themselves: what they then wait for is what every later
// iteration waits for. Waits that are dropped because their engine has seen the count before were seen in each iteration, or belong to one
// before. As waits of their own add to counts, this is done until two iterations are alike.

static void place_body(Placer *p) {
    memcpy(p->base, p->e->done, sizeof p->base);
    p->waits.n = 0;
    for (uint32_t i = 0; i < p->nbody; i++) {
        const Kept *k = kept_at(p, i);
        place(p, &k->rec, k->order);
    }
}

static bool find_steady(Placer *p) {
    WaitsOf *last = NULL;
    uint32_t n = 0;
    bool same = false;
    p->dry = true;
    for (int i = 0; i < ITERATIONS_MAX && !same; i++) {
        place_body(p);
        same = last && n == p->waits.n && (!n || !memcmp(last, p->waits.at, n * sizeof *last));
        n = p->waits.n;
        last = arena_dup(&p->scratch, p->waits.at, n * sizeof *last);
    }
    p->dry = false;
    return same;
}

// Counts become distances back: they are the same in every iteration.
static void count_back(Placer *p, uint32_t begin) {
    Emit *e = p->e;
    uint32_t count[HAZ_SEMS];
    memcpy(count, p->base, sizeof count);
    for (uint32_t pc = begin; pc < e->code.of.n; pc++) {
        const IsaInst in = e->code.shapes.at[e->code.of.at[pc]].in;
        for (int w = 0; w < 2; w++) {
            if (in.wait_sem[w] == SEM_NONE)
                continue;
            uint32_t val = shape_code_wait(&e->code, pc, w);
            assert(val <= count[in.wait_sem[w]]);
            shape_code_set_wait(&e->code, pc, w, in.wait_sem[w] | SEM_BACK, count[in.wait_sem[w]] - val);
        }
        count[isa_sem(&in)]++;
    }
}

static void place_again(Placer *p, uint32_t pc, const IsaInst *loop) {
    Emit *e = p->e;
    IsaInst barrier = {.op = ISA_BARRIER, .engine = ENG_SYNC, .wait_sem = {SEM_NONE, SEM_NONE}};
    uint32_t done[HAZ_SEMS], loc = e->code_loc.at[pc];
    memcpy(done, e->done, sizeof done);
    shape_code_cut(&e->code, pc);
    e->code_loc.n = e->code_order.n = pc;
    append(e, &barrier, loc, 0);
    append(e, loop, loc, 0);
    memcpy(e->done, done, sizeof done); // neither counts: the barrier is before all, loops count nothing
    place_body(p);
    emit_unweave(e);
    count_back(p, pc + 2);
}

void emit_body_begin(Emit *e) {
    e->placer->keeps = true;
    e->placer->nbody = 0;
}

bool emit_body_end(Emit *e, uint32_t pc, const IsaInst *loop) {
    Placer *p = e->placer;
    spin(&p->lock);
    p->keeps = false;
    bool steady = p->nbody < BODY_MAX && find_steady(p);
    if (steady)
        place_again(p, pc, loop);
    atomic_flag_clear_explicit(&p->lock, memory_order_release);
    return steady;
}

// --- choosing ----------------------------------------------------------------------------------------

// The queue that last wrote a piece of memory, when it is of the n from `first` on and nobody has read the piece since; QUEUE_COUNT: none.
static uint8_t last_writer(const Counts *h, uint32_t epoch, uint8_t first, uint8_t n) {
    if (h->epoch != epoch || h->r.set || !h->w.set)
        return QUEUE_COUNT;
    int sem = 31 - __builtin_clz(h->w.set);
    return sem >= ENG_COUNT + first && sem < ENG_COUNT + first + n ? (uint8_t)(sem - ENG_COUNT) : QUEUE_COUNT;
}

// The queue of a load or a store. A queue begins a transfer now and then only, so that many small ones need several: loads take the one that
// is free first; but transfers that fill a piece of memory together follow each other in one, or each would wait for the one before to
// be over. Stores of a tile go as they were recorded, which keeps them together: whoever waits for them has two waits. Tiles that
// store anything take turns.
static void choose_queue(Placer *s, Lane lane, Task *t, Rec *r) {
    static const struct { uint8_t first, n; } pools[2][2] = {{{QUEUE_IN, 4}, {QUEUE_OUT, 2}}, {{QUEUE_ROWS_IN, 2}, {QUEUE_ROWS_OUT, 2}}};
    bool loads = addr_space(r->in.src) == SPACE_HBM, stores = addr_space(r->in.dst) == SPACE_HBM;
    if (r->is_merge || isa_rows[r->in.op].cost != COST_DMA || loads == stores)
        return;
    uint8_t first = pools[lane != LANE_TENSOR][stores].first, n = pools[lane != LANE_TENSOR][stores].n;
    if (stores && !t->turn)
        t->turn = ++s->turns[lane];
    uint8_t best = first + (stores ? (uint8_t)((t->turn + r->in.queue) % n) : 0);
    for (uint8_t q = first; q < first + n && loads; q++)
        if (s->queue[q] < s->queue[best])
            best = q;
    for (uint32_t i = 0; i < r->nwrites && loads; i++) {
        uint8_t writer = last_writer(&r->writes[i]->counts, s->e->epoch, first, n);
        best = writer < QUEUE_COUNT ? writer : best;
    }
    r->in.queue = best;
}

static bool may_begin(const Placer *s, int lane, Task *t) { // once it may, it may
    if (t->may_begin)
        return true;
    t->ready = 0;
    for (int k = 0; k < LANE_COUNT; k++) {
        if (k == lane || !t->dep[k])
            continue;
        if (t->dep[k] > s->lane[k].placed)
            return false;
        t->ready = max_f64(t->ready, s->lane[k].tasks.at[t->dep[k] - 1].finish);
    }
    return t->may_begin = true;
}

// Records that go together: a load of weights and the products with them. Returns the number behind the last.
static uint64_t group_end(const LaneQueue *q, const Task *t) {
    uint64_t end = t->next + 1;
    if (rec_at(q, t->next)->in.op != ISA_LDWEIGHTS)
        return end;
    while (end < t->end && rec_at(q, end)->in.op == ISA_MATMUL && !rec_at(q, end)->is_merge)
        end++;
    return end;
}

// What the scalar engine needs first: another table takes longer than most instructions, so those with the one it holds go before.
static double table_ns(const Placer *s, const Rec *r) {
    return r->act_set == ACT_NO_SET || r->act_set == s->act_set ? 0 : s->e->chip->act_table_ns;
}

// When a record of the task can begin; -1: something before it is not placed yet.
static double begin_of(const Placer *s, const LaneQueue *q, const Task *t, const Rec *r) {
    double at = t->ready;
    const Task *oldest = &q->tasks.at[q->placed];
    if (r->tasks > q->placed || (oldest != t && oldest->next < r->upto))
        return -1;
    if (r->tasks)
        at = max_f64(at, q->tasks.at[r->tasks - 1].finish);
    for (uint32_t i = 0; i < r->ndeps; i++) {
        if (r->deps[i] < q->base || r->deps[i] >= t->next)
            continue;
        const Rec *d = rec_at(q, r->deps[i]);
        if (!d->placed)
            return -1;
        if (d->in.engine != ENG_TENSOR || r->in.engine != ENG_TENSOR) // the array adds up in order, without a pause between
            at = max_f64(at, d->finish);
    }
    // Conversions wait for nothing: all of the next ones would take the DMA engines from loads that somebody waits for.
    if (q == &s->lane[LANE_CAST] && isa_rows[r->in.op].cost == COST_DMA)
        at = max_f64(at, s->hbm - r->latency);
    return r->is_merge ? at : max_f64(at, s->free[isa_seq(&r->in)]) + table_ns(s, r);
}

// When its next records can begin; -1: not yet, or later than `most`.
static double begin_of_next(const Placer *s, const LaneQueue *q, const Task *t, double most) {
    double begin = t->ready;
    for (uint64_t i = t->next, end = group_end(q, t); i < end && begin <= most; i++) {
        double at = begin_of(s, q, t, rec_at(q, i));
        if (at < 0)
            return -1;
        begin = max_f64(begin, at);
    }
    return begin <= most ? begin : -1;
}

static Task *choose(Placer *s, int *lane, double *begin) {
    Task *best = NULL;
    for (int k = 0; k < LANE_COUNT; k++) {
        LaneQueue *q = &s->lane[k];
        int active = 0;
        for (uint32_t i = q->placed; i < q->tasks.n && active < active_tasks[k]; i++) {
            Task *t = &q->tasks.at[i];
            if (t->next == t->end)
                continue;
            if (!may_begin(s, k, t))
                break;
            active++;
            double at = begin_of_next(s, q, t, best ? *begin : INFINITY);
            if (at >= 0 && (!best || at < *begin || (at == *begin && t->order < best->order && k != LANE_DRAWS))) // nobody waits for these
                best = t, *lane = k, *begin = at;
        }
    }
    return best;
}

static void run(Placer *s, const ChipFile *c, Rec *r, double begin) {
    int cost = isa_rows[r->in.op].cost;
    r->placed = true;
    r->finish = begin;
    if (r->is_merge)
        return;
    if (cost == COST_COLLECTIVE) {
        s->free[isa_seq(&r->in)] = begin + c->control_ns;
        r->finish = s->queue[r->in.queue] = max_f64(begin, s->queue[r->in.queue]) + r->busy;
        return;
    }
    s->act_set = r->act_set == ACT_NO_SET ? s->act_set : r->act_set;
    if (cost != COST_LDWEIGHTS)
        s->free[r->in.engine] = begin + r->busy;
    r->finish = begin + max_f64(r->busy, r->latency);
    if (cost != COST_DMA)
        return;
    double start = max_f64(begin + r->latency, s->queue[r->in.queue]);
    s->queue[r->in.queue] = start + c->dma_issue_ns;
    s->hbm = max_f64(s->hbm, start) + r->hbm;
    r->finish = s->hbm + c->dma_done_ns;
}

static void drop_recs(Placer *p, LaneQueue *q) {
    while (q->placed < q->tasks.n && q->tasks.at[q->placed].next == q->tasks.at[q->placed].end)
        q->placed++;
    uint64_t floor = q->placed < q->tasks.n ? q->tasks.at[q->placed].next : q->recs;
    if (floor < q->base + RECS_GONE)
        return;
    spin(&p->spare_lock);
    for (; q->base + CHUNK <= floor; q->base += CHUNK) {
        Chunk *c = q->chunks[q->base / CHUNK];
        c->next = p->spare;
        p->spare = c;
    }
    atomic_flag_clear_explicit(&p->spare_lock, memory_order_release);
}

static uint64_t pending(Placer *s) {
    uint64_t n = 0;
    for (int k = 0; k < LANE_COUNT; k++) {
        drop_recs(s, &s->lane[k]);
        n += k == LANE_DRAWS ? 0 : s->lane[k].tasks.n - s->lane[k].placed;
    }
    return n;
}

static bool is_over(const Placer *p) {
    return p->lane[LANE_DRAWS].placed == p->lane[LANE_DRAWS].tasks.n;
}

static void advance(Placer *p, uint64_t keep) {
    while (pending(p) > keep || (!keep && !is_over(p))) {
        int lane = 0;
        double begin = 0;
        Task *t = choose(p, &lane, &begin);
        assert(t); // the oldest task of all waits for none
        LaneQueue *q = &p->lane[lane];
        for (uint64_t end = group_end(q, t); t->next < end;) {
            Rec *r = rec_at(q, t->next++);
            choose_queue(p, (Lane)lane, t, r);
            place(p, r, (uint32_t)t->order + 1);
            run(p, p->e->chip, r, r->is_merge ? begin : max_f64(begin, p->free[r->in.engine]));
            t->finish = max_f64(t->finish, r->finish + DONE_NS);
        }
    }
}

// --- batches -----------------------------------------------------------------------------------------

static void batch_add(Placer *p, const Batch *b) {
    LaneQueue *q = &p->lane[b->lane];
    VEC_RESERVE(&p->scratch, &q->tasks, q->tasks.n + b->tasks.n);
    memcpy(q->tasks.at + q->tasks.n, b->tasks.at, b->tasks.n * sizeof *b->tasks.at);
    q->tasks.n += b->tasks.n;
    atomic_fetch_add(&p->came, b->recs - q->recs);
    q->recs = b->recs;
}

static void batches_place(Placer *p, uint32_t least) { // until at most that many are left
    while (atomic_load(&p->full) - atomic_load(&p->taken) > least) {
        batch_add(p, &p->batch[atomic_load(&p->taken) % BATCHES]);
        atomic_fetch_add(&p->taken, 1);
        advance(p, PENDING_TASKS);
    }
}

// With the lock. What fails is told by whoever records.
static void take_out(Placer *p, uint32_t least, bool all) {
    jmp_buf here;
    if (!p->failed && CTX_TRY(&p->ctx, here)) {
        batches_place(p, least);
        if (all)
            advance(p, 0);
    } else {
        p->failed = true;
        atomic_store(&p->taken, atomic_load(&p->full));
    }
    p->ctx.on_fail = p->outer;
}

static void take_out_here(Placer *p, uint32_t least, bool all) {
    spin(&p->lock);
    take_out(p, least, all);
    bool failed = p->failed;
    atomic_flag_clear_explicit(&p->lock, memory_order_release);
    if (failed) {
        p->e->c->ctx->err = p->ctx.err;
        longjmp(*p->e->c->ctx->on_fail, 1);
    }
}

static bool is_ahead(Placer *p, uint32_t batches) {
    return atomic_load(&p->full) - atomic_load(&p->taken) >= batches || atomic_load(&p->recorded) - atomic_load(&p->came) > AHEAD;
}

Batch *placer_batch(Placer *p) {
    for (uint32_t times = 0; is_ahead(p, BATCHES) && atomic_load(&p->full) != atomic_load(&p->taken);)
        if (atomic_load(&p->helped))
            relax(&times);
        else
            take_out_here(p, 0, false);
    Batch *b = &p->batch[atomic_load(&p->full) % BATCHES];
    b->tasks.n = 0;
    return b;
}

static Chunk *chunk_take(Placer *p) {
    spin(&p->spare_lock);
    Chunk *c = p->spare;
    p->spare = c ? c->next : NULL;
    atomic_flag_clear_explicit(&p->spare_lock, memory_order_release);
    return c ? c : arena_alloc(p->e->c->scratch, sizeof *c);
}

static void table_move(Placer *p, LaneQueue *q) {
    uint64_t cap = q->cap ? 2 * q->cap : 64;
    Chunk **to = ARENA_NEWN(p->e->c->scratch, Chunk *, cap);
    if (q->nchunks)
        memcpy(to, q->chunks, q->nchunks * sizeof *to);
    spin(&p->lock);
    q->chunks = to, q->cap = cap;
    atomic_flag_clear_explicit(&p->lock, memory_order_release);
}

Rec *placer_rec(Placer *p, Lane lane, uint64_t number) {
    assert(lane < LANE_COUNT);
    LaneQueue *q = &p->lane[lane];
    if (number / CHUNK == q->nchunks) {
        Chunk *c = chunk_take(p);
        if (q->nchunks == q->cap)
            table_move(p, q);
        q->chunks[q->nchunks++] = c;
    }
    return rec_at(q, number);
}

void placer_take(Placer *p) {
    const Batch *b = &p->batch[atomic_load(&p->full) % BATCHES];
    uint64_t last = b->tasks.n ? b->tasks.at[0].next : b->recs;
    assert(last <= b->recs);
    atomic_fetch_add(&p->recorded, b->recs - last);
    atomic_fetch_add(&p->full, 1);
    if (!p->beside)
        take_out_here(p, 0, false);
}

void placer_flush(Placer *p) { take_out_here(p, 0, true); }

// --- two threads -------------------------------------------------------------------------------------

typedef struct Beside {
    Placer *p;
    void (*fn)(void *arg);
    void *arg;
    pthread_t caller;
    bool began, ok;
} Beside;

static void record_all(Beside *b) {
    Ctx *ctx = b->p->e->c->ctx;
    jmp_buf here, *outer = ctx->on_fail;
    b->began = true;
    if (CTX_TRY(ctx, here)) {
        b->p->ctx.on_fail = b->p->outer = &here;
        b->fn(b->arg);
        b->ok = true;
    } else if (b->p->ctx.err.code != OTRN_OK) {
        ctx->err = b->p->ctx.err;
    }
    ctx->on_fail = outer;
    atomic_store(&b->p->ended, true);
}

static void place_beside(Placer *p) {
    while (atomic_exchange(&p->helped, true)) { // one is enough
        if (atomic_load(&p->ended))
            return;
        nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    }
    for (uint32_t times = 0; !atomic_load(&p->ended);) {
        bool any = atomic_load(&p->full) != atomic_load(&p->taken);
        if (any && !atomic_flag_test_and_set_explicit(&p->lock, memory_order_acquire)) {
            if (atomic_load(&p->full) != atomic_load(&p->taken)) // else whoever records may be at work on what is placed
                take_out(p, 0, false);
            atomic_flag_clear_explicit(&p->lock, memory_order_release);
            times = 0;
        }
        relax(&times);
    }
}

// There is an index for each thread and nobody takes a second one before the end: one is left for the caller.
static void beside_task(void *arg, size_t begin, size_t end) {
    Beside *b = arg;
    for (size_t i = begin; i < end; i++) {
        if (pthread_equal(pthread_self(), b->caller) && !b->began)
            record_all(b);
        else
            place_beside(b->p);
    }
}

void placer_run(Placer *p, void (*fn)(void *arg), void *arg, bool beside) {
    Compile *c = p->e->c;
    Beside b = {.p = p, .fn = fn, .arg = arg, .caller = pthread_self()};
    p->beside = beside && pool_threads(c->pool) > 1;
    pool_run(p->beside ? c->pool : NULL, (size_t)pool_threads(c->pool), 1, beside_task, &b);
    arena_adopt(c->arena, &p->arena);
    arena_adopt(c->scratch, &p->scratch);
    p->e->code.arena = c->arena;
    if (!b.ok)
        longjmp(*c->ctx->on_fail, 1); // the error is written already
}
