// SPDX-License-Identifier: Apache-2.0
// sched.c — instructions of neighbouring tiles and steps beside each other, and the waits that keep them apart.
//
//   steps ──► tiles in lanes ──► one program
//             tensor: products        An engine works through its instructions in program order. So that order decides
//             rows:   row programs    what overlaps: here the chains of several tiles, each of which goes from engine to
//             move:   transfers       engine, are woven together, and products go on beside row programs.
//             kernel: GpSimd
//
// A step is recorded as tasks, a tile each, in the lane of its kind. The oldest tasks of each lane take turns: of their next
// instructions the one that can begin first, by the prices of the chip file, is placed first. An instruction never
// goes before one recorded earlier that it meets in memory: parts of SBUF and PSUM know who was recorded for them, HBM is
// known by pieces of it, between lanes and tasks. Lanes share no SBUF and no PSUM, unless emit_join says so. The bits
// of a result do not depend on the order: every value is computed by the same instructions.
//
// Placing an instruction works out its waits: each piece of memory carries the completion counts of who last wrote and
// read it, and an instruction waits for those it does not already know to be over.
#include <assert.h>
#include <string.h>

#include "clock/price.h"
#include "tile/count.h"
#include "tile/emit.h"

_Static_assert(HAZ_SEMS == ENG_COUNT + QUEUE_COUNT, "a count for each queue");

#define PIECE_BITS 15      // HBM is tracked in pieces of 32 KiB
#define PENDING_TASKS 256  // tasks that wait for company
#define RECS_GONE 16384    // placed records that are kept for the time being
#define CODE_MAX (1u << 30)
#define REC_DEPS 10
#define MEET_ENGINE ENG_GPSIMD // where the cores meet, as on the real chip
#define DONE_NS 2000 // from the last instruction of a task until another engine sees its results in HBM

// Tasks of a lane that take turns. Kernels keep their order: some have a state, or talk to others.
static const int active_tasks[LANE_COUNT] = {[LANE_TENSOR] = 8, [LANE_ROWS] = 8, [LANE_MOVE] = 2, [LANE_CAST] = 2, [LANE_KERNEL] = 1};

typedef struct Rec { // an instruction to be placed, or a merge of what is known about memory
    IsaInst in;
    uint64_t reach, below; // bytes that registers may add to an address, or take from it
    uint32_t loc;
    uint32_t round, after; // as in Emit, when it was recorded
    uint8_t nreads, nwrites, ndeps;
    bool is_merge, placed;
    Haz *reads[REC_READS], *writes[REC_WRITES];
    uint64_t deps[REC_DEPS]; // records of the lane that go before it
    uint64_t upto;           // … and all below this number
    uint32_t tasks;          // … and all tasks below this number
    float busy, latency, hbm; // ns
    double finish;
} Rec;

typedef struct Task {
    uint64_t next, end; // records; next: to be placed
    uint64_t order;     // of recording, over all lanes
    uint32_t dep[LANE_COUNT]; // tasks of other lanes that go before it
    double ready, finish; // ns
} Task;

typedef struct LaneQueue {
    VEC(Rec) recs;
    uint64_t base; // number of recs.at[0]
    VEC(Task) tasks;
    uint32_t placed; // tasks that are over, and all before them
    uint32_t step;   // tasks there were when the step began
    uint32_t after[LANE_COUNT]; // tasks of other lanes that every new task follows
} LaneQueue;

typedef struct Piece {
    Counts counts;
    uint32_t w[LANE_COUNT], r[LANE_COUNT]; // last tasks that write and read it, as counts
    uint32_t before[LANE_COUNT];           // … and of steps before the last one that did either
} Piece;

typedef struct Segment {
    Piece *at;
    uint64_t n;
} Segment;

struct Sched {
    LaneQueue lane[LANE_COUNT];
    Segment *segments;
    uint32_t nsegments;
    uint64_t order;
    double free[ENG_COUNT], queue[QUEUE_COUNT], hbm; // ns
};

void sched_init(Emit *e, uint32_t nsegments) {
    e->sched = ARENA_NEW(e->c->scratch, Sched);
    *e->sched = (Sched){.nsegments = nsegments, .segments = ARENA_NEWN(e->c->scratch, Segment, nsegments + 1)};
}

// --- pieces of HBM -----------------------------------------------------------------------------------

typedef struct Range {
    uint32_t seg;
    uint64_t first, last; // pieces
    bool writes;
    uint64_t lo, hi;      // bytes
} Range;

// A result that takes over an argument is the same memory.
static uint32_t memory_of(const Emit *e, uint32_t seg) {
    uint32_t results = SEG_FIRST_ARG + e->l->main->nargs;
    if (seg < results || e->l->alias[seg - results] < 0)
        return seg;
    return SEG_FIRST_ARG + (uint32_t)e->l->alias[seg - results];
}

static Piece *piece_at(Emit *e, uint32_t seg, uint64_t i) {
    Segment *s = &e->sched->segments[seg];
    if (i >= s->n) {
        uint64_t n = i + 1 > 2 * s->n ? i + 1 : 2 * s->n;
        Piece *at = ARENA_NEWN(e->c->scratch, Piece, n);
        if (s->n)
            memcpy(at, s->at, s->n * sizeof *at);
        s->at = at, s->n = n;
    }
    return &s->at[i];
}

static Range range_make(const Emit *e, uint64_t addr, uint64_t bytes, bool writes) {
    uint64_t off = addr_off(addr);
    return (Range){memory_of(e, addr_seg(addr)), off >> PIECE_BITS, (off + (bytes ? bytes - 1 : 0)) >> PIECE_BITS, writes, off, off + bytes};
}

// `rows`: of axis 0, which an index may choose among.
static Range range_of_dma(const Emit *e, const IsaInst *in, uint64_t addr, uint32_t rows, const int32_t *stride, int dtype,
                          bool writes) {
    int64_t below = 0, elems = 1, size = (int64_t)dtype_bytes(dtype);
    for (int i = 0; i < 4; i++) {
        int64_t reach = (int64_t)((i ? isa_count(in->n[i]) : rows) - 1) * stride[i];
        *(reach < 0 ? &below : &elems) += reach;
    }
    return range_make(e, addr + (uint64_t)(below * size), (uint64_t)((elems - below) * size), writes);
}

static void widen(Range *r, const Rec *rec, bool moves) { // by what registers may do
    uint64_t below = rec->below ? (rec->below >> PIECE_BITS) + 1 : 0;
    if (!moves)
        return;
    r->last += (rec->reach >> PIECE_BITS) + 1;
    r->first -= below < r->first ? below : r->first;
    r->hi += rec->reach;
    r->lo -= rec->below < r->lo ? rec->below : r->lo;
}

// What an instruction touches of HBM; at most `max` ranges. By index any row may be meant.
static uint32_t ranges_of(const Emit *e, const Rec *rec, Range *out, uint32_t max) {
    const IsaInst *in = &rec->in;
    uint32_t n = 0;
    if (in->op == ISA_KERNEL || in->op == ISA_COLLECTIVE) {
        const Kern *k = &e->kerns.at[in->imm];
        for (uint32_t i = 0; i < k->nin + k->nout && n < max; i++) {
            const KTensor *t = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
            out[n++] = range_make(e, t->addr, t->elems * dtype_bytes(t->dtype), i >= k->nin);
        }
        return n;
    }
    if (in->op == ISA_REG_LOAD && addr_space(in->src) == SPACE_HBM)
        out[n++] = range_make(e, in->src, dtype_bytes(in->stype), false);
    if (in->op == ISA_REG_STORE && addr_space(in->dst) == SPACE_HBM)
        out[n++] = range_make(e, in->dst, dtype_bytes(in->dtype), true);
    if (isa_rows[in->op].cost != COST_DMA)
        return n;
    bool gathers = in->op == ISA_DMA_INDIRECT && addr_space(in->src) == SPACE_HBM;
    bool scatters = in->op == ISA_DMA_INDIRECT && !gathers;
    uint32_t rows = isa_count(in->n[0]), any = (uint32_t)in->limit;
    if (addr_space(in->src) == SPACE_HBM) {
        out[n] = range_of_dma(e, in, in->src, gathers ? any : rows, in->s, in->stype, false);
        widen(&out[n++], rec, in->reg_s[0] != 0);
    }
    if (addr_space(in->dst) == SPACE_HBM) {
        out[n] = range_of_dma(e, in, in->dst, scatters ? any : rows, in->d, in->dtype ? in->dtype : in->stype, true);
        widen(&out[n++], rec, in->reg_d[0] != 0);
    }
    return n;
}

static Range *all_ranges(Emit *e, const Rec *rec, Range few[2], uint32_t *n) {
    const IsaInst *in = &rec->in;
    Range *at = few;
    uint32_t max = 2;
    if (in->op == ISA_KERNEL || in->op == ISA_COLLECTIVE) {
        max = e->kerns.at[in->imm].nin + e->kerns.at[in->imm].nout;
        at = max > 2 ? ARENA_NEWN(e->c->scratch, Range, max) : few;
    }
    *n = ranges_of(e, rec, at, max);
    return at;
}

// --- placing -----------------------------------------------------------------------------------------

uint32_t emit_append(Emit *e, const IsaInst *in) {
    if (e->code.of.n >= CODE_MAX)
        ctx_fail(e->c->ctx, OTRN_CAPACITY, NO_PLACE, "the program needs more than %u instructions", CODE_MAX);
    shape_code_push(&e->code, in);
    VEC_PUSH(e->c->arena, &e->code_loc, e->loc);
    VEC_PUSH(e->c->scratch, &e->code_order, e->order);
    e->done[isa_sem(in)]++;
    return e->code.of.n - 1;
}

static void need(uint32_t want[HAZ_SEMS], const Counts *h, uint32_t epoch, bool reads_too) {
    if (h->epoch != epoch)
        return;
    for (int s = 0; s < HAZ_SEMS; s++) {
        uint32_t n = reads_too && h->r[s] > h->w[s] ? h->r[s] : h->w[s];
        want[s] = n > want[s] ? n : want[s];
    }
}

static void note_read(Counts *h, uint32_t epoch, int own, uint32_t count) {
    if (h->epoch != epoch)
        counts_reset(h, epoch);
    h->r[own] = count;
}

// `whole`: nothing of what was known before matters any more.
static void note_write(Counts *h, uint32_t epoch, int own, uint32_t count, bool whole) {
    if (whole || h->epoch != epoch)
        counts_reset(h, epoch);
    h->w[own] = count;
}

static void add_waits(Emit *e, IsaInst *in, const uint32_t want[HAZ_SEMS]) {
    uint32_t *seen = e->seen[in->engine];
    in->wait_sem[0] = in->wait_sem[1] = SEM_NONE;
    int nwaits = 0, own = isa_sem(in);
    for (int s = 0; s < HAZ_SEMS; s++) {
        if (s == own || want[s] <= seen[s]) // an engine and a queue work in order
            continue;
        seen[s] = want[s];
        if (nwaits == 2) { // no room: a wait of its own goes before
            IsaInst w = {.op = ISA_WAIT, .engine = in->engine};
            memcpy(w.wait_sem, in->wait_sem, sizeof w.wait_sem);
            memcpy(w.wait_val, in->wait_val, sizeof w.wait_val);
            emit_append(e, &w);
            in->wait_sem[0] = in->wait_sem[1] = SEM_NONE;
            in->wait_val[0] = in->wait_val[1] = 0;
            nwaits = 0;
        }
        in->wait_sem[nwaits] = (uint8_t)s;
        in->wait_val[nwaits++] = want[s];
    }
}

// A meeting waits for the round's accesses to HBM; those of a step behind one wait for it.
static void need_meeting(const Emit *e, const Rec *r, bool hbm, uint32_t want[HAZ_SEMS]) {
    if (r->in.op == ISA_CORE_BARRIER)
        for (int s = 0; s < HAZ_SEMS; s++)
            want[s] = e->meetings[r->round].hbm[s];
    const Meeting *m = hbm && r->after ? &e->meetings[r->after] : NULL;
    if (m && m->epoch == e->epoch && m->count > want[MEET_ENGINE])
        want[MEET_ENGINE] = m->count;
}

static void note_meeting(Emit *e, const Rec *r, bool hbm, int own, uint32_t count) {
    if (hbm && r->round)
        e->meetings[r->round].hbm[own] = count;
    if (r->in.op == ISA_CORE_BARRIER)
        e->meetings[r->round].count = count, e->meetings[r->round].epoch = e->epoch;
}

static void place(Emit *e, const Rec *r) {
    if (r->is_merge) {
        counts_merge(&r->writes[0]->counts, &r->reads[0]->counts, e->epoch);
        return;
    }
    uint32_t want[HAZ_SEMS] = {0}, n;
    Range few[2], *ranges = all_ranges(e, r, few, &n);
    for (uint32_t i = 0; i < r->nreads; i++)
        need(want, &r->reads[i]->counts, e->epoch, false);
    for (uint32_t i = 0; i < r->nwrites; i++)
        need(want, &r->writes[i]->counts, e->epoch, true);
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t p = ranges[i].first; p <= ranges[i].last; p++)
            need(want, &piece_at(e, ranges[i].seg, p)->counts, e->epoch, ranges[i].writes);
    need_meeting(e, r, n > 0, want);
    IsaInst in = r->in;
    add_waits(e, &in, want);
    e->loc = r->loc;
    emit_append(e, &in);
    int own = isa_sem(&in);
    uint32_t count = e->done[own];
    note_meeting(e, r, n > 0, own, count);
    for (uint32_t i = 0; i < r->nreads; i++)
        note_read(&r->reads[i]->counts, e->epoch, own, count);
    for (uint32_t i = 0; i < r->nwrites; i++)
        note_write(&r->writes[i]->counts, e->epoch, own, count, true);
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t p = ranges[i].first; p <= ranges[i].last; p++) {
            Counts *h = &piece_at(e, ranges[i].seg, p)->counts;
            if (ranges[i].writes)
                note_write(h, e->epoch, own, count, false);
            else
                note_read(h, e->epoch, own, count);
        }
}

// --- recording ---------------------------------------------------------------------------------------

static Task *open_task(Emit *e) {
    LaneQueue *q = &e->sched->lane[e->lane];
    return &q->tasks.at[q->tasks.n - 1];
}

void emit_task(Emit *e) {
    if (e->lane == LANE_NONE || e->probe)
        return;
    LaneQueue *q = &e->sched->lane[e->lane];
    uint64_t at = q->base + q->recs.n;
    if (q->tasks.n > q->placed && open_task(e)->next == at && open_task(e)->order + 1 == e->sched->order)
        return; // nothing in it yet, nor anywhere since
    Task t = {.next = at, .end = at, .order = e->sched->order++};
    memcpy(t.dep, q->after, sizeof t.dep);
    if (e->after && e->lane != LANE_KERNEL && e->meetings[e->after].task > t.dep[LANE_KERNEL])
        t.dep[LANE_KERNEL] = e->meetings[e->after].task;
    VEC_PUSH(e->c->scratch, &q->tasks, t);
}

void emit_lane(Emit *e, Lane lane, bool tiles_apart) {
    if (e->probe)
        return;
    if (lane == LANE_NONE)
        emit_flush(e);
    e->lane = lane;
    e->tiles_apart = tiles_apart;
    if (lane != LANE_NONE)
        e->sched->lane[lane].step = e->sched->lane[lane].tasks.n;
    emit_task(e);
}

void emit_join(Emit *e, Lane other) {
    if (e->probe)
        return;
    LaneQueue *mine = &e->sched->lane[e->lane], *theirs = &e->sched->lane[other];
    emit_task(e);
    open_task(e)->dep[other] = mine->after[other] = theirs->tasks.n;
    theirs->after[e->lane] = mine->tasks.n;
}

// Everything recorded so far goes before it.
void emit_meet(Emit *e, uint32_t round) {
    emit_lane(e, LANE_KERNEL, false);
    LaneQueue *q = &e->sched->lane[LANE_KERNEL];
    for (int k = 0; k < LANE_COUNT; k++)
        if (k != LANE_KERNEL)
            open_task(e)->dep[k] = e->sched->lane[k].tasks.n;
    e->meetings[round].task = q->tasks.n;
    e->round = round, e->after = 0;
    emit_inst(e, (IsaInst){.op = ISA_CORE_BARRIER, .engine = MEET_ENGINE}, NULL, 0, NULL, 0);
    emit_step_end(e);
}

// Tiles of one step meet in no byte of what they write, where the step says so: they need not wait for each other, but
// for what earlier steps did with the piece.
static uint32_t own_tasks(const Emit *e, const LaneQueue *q, Piece *p, bool writes) {
    uint32_t self = q->tasks.n, w = p->w[e->lane], r = p->r[e->lane], n = writes && r > w ? r : w;
    uint32_t last = w > r ? w : r;
    if (last <= q->step)
        p->before[e->lane] = last;
    if (e->tiles_apart && n > q->step)
        return p->before[e->lane];
    return n < self ? n : writes || w < self ? self - 1 : 0; // this task did: who else is not known any more
}

static void note_range(Emit *e, Task *t, Rec *rec, const Range *r) {
    LaneQueue *q = &e->sched->lane[e->lane];
    for (uint64_t i = r->first; i <= r->last; i++) {
        Piece *p = piece_at(e, r->seg, i);
        for (int k = 0; k < LANE_COUNT; k++) {
            uint32_t n = r->writes && p->r[k] > p->w[k] ? p->r[k] : p->w[k];
            if (k != (int)e->lane)
                t->dep[k] = n > t->dep[k] ? n : t->dep[k];
        }
        uint32_t own = own_tasks(e, q, p, r->writes);
        rec->tasks = own > rec->tasks ? own : rec->tasks;
        *(r->writes ? &p->w[e->lane] : &p->r[e->lane]) = q->tasks.n;
    }
}

static void add_dep(Rec *r, uint64_t number) { // number + 1, 0 = none
    for (uint32_t i = 0; i < r->ndeps; i++)
        if (r->deps[i] == number - 1)
            return;
    if (!number)
        return;
    if (r->ndeps < REC_DEPS)
        r->deps[r->ndeps++] = number - 1;
    else
        r->upto = number > r->upto ? number : r->upto;
}

// What is recorded for a part of SBUF or PSUM; of each task only its last reader counts, tasks go in order.
static HazOrder *order_of(const Emit *e, Haz *h) {
    if (h->order.lane != (uint8_t)e->lane + 1u) // another lane's: emit_join keeps them apart
        h->order = (HazOrder){.lane = (uint8_t)(e->lane + 1u)};
    return &h->order;
}

static void note_order(const Emit *e, Rec *r, uint64_t number) {
    uint32_t task = e->sched->lane[e->lane].tasks.n;
    for (uint32_t i = 0; i < r->nreads; i++) {
        HazOrder *o = order_of(e, r->reads[i]);
        add_dep(r, o->writer);
        uint32_t k = 0;
        while (k < o->nreads && o->task[k] != task)
            k++;
        if (k == HAZ_READS) { // the oldest stands for itself and all before it
            o->upto = o->reader[0] > o->upto ? o->reader[0] : o->upto;
            memmove(o->reader, o->reader + 1, (HAZ_READS - 1) * sizeof *o->reader);
            memmove(o->task, o->task + 1, (HAZ_READS - 1) * sizeof *o->task);
            k = HAZ_READS - 1;
            o->nreads--;
        }
        o->reader[k] = number + 1, o->task[k] = task;
        o->nreads += k == o->nreads;
    }
    for (uint32_t i = 0; i < r->nwrites; i++) {
        HazOrder *o = order_of(e, r->writes[i]);
        add_dep(r, o->writer);
        for (uint32_t k = 0; k < o->nreads; k++)
            if (o->reader[k] != number + 1)
                add_dep(r, o->reader[k]);
        r->upto = o->upto > r->upto ? o->upto : r->upto;
        *o = (HazOrder){.lane = o->lane, .writer = number + 1};
    }
}

static void add_cost(const Emit *e, Rec *r) {
    Price p;
    price_alone(e->chip, e->kerns.at, &r->in, &p);
    bool dma = isa_rows[r->in.op].cost == COST_DMA;
    r->busy = (float)p.busy * 1e-3f;
    r->latency = (float)p.latency * 1e-3f;
    r->hbm = (float)(dma && p.dma > p.hbm ? p.dma : p.hbm) * 1e-3f;
}

static void probe(Emit *e, Rec *r) {
    Probe *p = e->probe;
    uint32_t n;
    Range few[2], *ranges = all_ranges(e, r, few, &n);
    for (uint32_t i = 0; i < n; i++) {
        const Range *t = &ranges[i];
        ProbeTouch *last = NULL;
        for (uint32_t k = p->touches.n; k-- > 0 && !last;)
            last = p->touches.at[k].seg == t->seg && p->touches.at[k].writes == t->writes && t->lo <= p->touches.at[k].hi &&
                           t->hi >= p->touches.at[k].lo
                       ? &p->touches.at[k]
                       : NULL;
        if (!last) {
            VEC_PUSH(e->c->scratch, &p->touches, (ProbeTouch){t->seg, t->lo, t->hi, t->writes});
            continue;
        }
        last->lo = t->lo < last->lo ? t->lo : last->lo;
        last->hi = t->hi > last->hi ? t->hi : last->hi;
    }
    add_cost(e, r);
    p->insts++;
    p->busy[r->in.engine] += r->busy;
    p->dma += isa_rows[r->in.op].cost == COST_DMA ? r->hbm : 0;
}

static void record(Emit *e, Rec *r) {
    LaneQueue *q = &e->sched->lane[e->lane];
    Task *t = open_task(e);
    note_order(e, r, q->base + q->recs.n);
    if (!r->is_merge) {
        uint32_t n;
        Range few[2], *ranges = all_ranges(e, r, few, &n);
        for (uint32_t i = 0; i < n; i++)
            note_range(e, t, r, &ranges[i]);
        add_cost(e, r);
    }
    VEC_PUSH(e->c->scratch, &q->recs, *r);
    t->end++;
}

// An operand in a view: the place in its base, moved on by the loop's register.
static void put_view(Emit *e, Rec *r, uint64_t *addr, uint8_t *reg, int32_t *mul) {
    if (addr_space(*addr) != SPACE_HBM || addr_seg(*addr) < e->view_seg)
        return;
    const TBuf *b = &e->l->bufs.at[e->views[addr_seg(*addr) - e->view_seg]];
    int64_t least = count_least(e->l, b->at), most = count_most(e->l, b->at);
    uint64_t up = most > b->at.add ? (uint64_t)(most - b->at.add) : 0, down = least < b->at.add ? (uint64_t)(b->at.add - least) : 0;
    *addr = emit_addr(e, b->base) + (uint64_t)b->at.add + addr_off(*addr);
    reg[0] = (uint8_t)(count_reg(e->l, b->at.loop) + 1), mul[0] = (int32_t)b->at.mul;
    r->reach = up > r->reach ? up : r->reach;
    r->below = down > r->below ? down : r->below;
}

void emit_inst(Emit *e, IsaInst in, Haz *const *reads, uint32_t nreads, Haz *const *writes, uint32_t nwrites) {
    Rec r = {.in = in, .reach = e->reach, .below = e->below, .loc = e->loc, .round = e->round, .after = e->after, .nreads = (uint8_t)nreads, .nwrites = (uint8_t)nwrites};
    assert(nreads <= REC_READS && nwrites <= REC_WRITES);
    if (isa_rows[in.op].cost == COST_DMA) {
        put_view(e, &r, &r.in.src, r.in.reg_s, r.in.mul_s);
        put_view(e, &r, &r.in.dst, r.in.reg_d, r.in.mul_d);
    }
    for (uint32_t i = 0; i < nreads; i++)
        r.reads[i] = reads[i];
    for (uint32_t i = 0; i < nwrites; i++)
        r.writes[i] = writes[i];
    if (e->probe)
        probe(e, &r);
    else if (e->lane == LANE_NONE)
        place(e, &r);
    else
        record(e, &r);
}

void emit_merge(Emit *e, Haz *into, Haz *from) {
    Rec r = {.is_merge = true, .nreads = 1, .nwrites = 2, .reads = {from}, .writes = {into, from}}; // after all who read it
    if (e->probe)
        return;
    if (e->lane == LANE_NONE)
        place(e, &r);
    else
        record(e, &r);
}

// What is still done with a part of SBUF comes in, or goes out again.
void emit_area(Emit *e, Haz *h, uint32_t at, uint32_t bytes, bool out) {
    uint32_t last = (at + bytes - 1) / SBUF_PIECE;
    assert(last < SBUF_PIECES);
    for (uint32_t g = at / SBUF_PIECE; g <= last; g++)
        emit_merge(e, out ? &e->sbuf_haz[g] : h, out ? h : &e->sbuf_haz[g]);
}

// --- choosing ----------------------------------------------------------------------------------------

static double max_ns(double a, double b) { return a > b ? a : b; }

static bool may_begin(const Sched *s, int lane, Task *t) {
    t->ready = 0;
    for (int k = 0; k < LANE_COUNT; k++) {
        if (k == lane || !t->dep[k])
            continue;
        if (t->dep[k] > s->lane[k].placed)
            return false;
        t->ready = max_ns(t->ready, s->lane[k].tasks.at[t->dep[k] - 1].finish);
    }
    return true;
}

// Records that go together: a load of weights and the products with them. Returns the number behind the last.
static uint64_t group_end(const LaneQueue *q, const Task *t) {
    uint64_t end = t->next + 1;
    if (q->recs.at[t->next - q->base].in.op != ISA_LDWEIGHTS)
        return end;
    while (end < t->end && q->recs.at[end - q->base].in.op == ISA_MATMUL && !q->recs.at[end - q->base].is_merge)
        end++;
    return end;
}

// When a record of the task can begin; -1: something before it is not placed yet.
static double begin_of(const Sched *s, const LaneQueue *q, const Task *t, const Rec *r) {
    double at = t->ready;
    const Task *oldest = &q->tasks.at[q->placed];
    if (r->tasks > q->placed || (oldest != t && oldest->next < r->upto))
        return -1;
    if (r->tasks)
        at = max_ns(at, q->tasks.at[r->tasks - 1].finish);
    for (uint32_t i = 0; i < r->ndeps; i++) {
        if (r->deps[i] < q->base || r->deps[i] >= t->next)
            continue;
        const Rec *d = &q->recs.at[r->deps[i] - q->base];
        if (!d->placed)
            return -1;
        at = max_ns(at, d->finish);
    }
    return r->is_merge ? at : max_ns(at, s->free[r->in.engine]);
}

static double begin_of_next(const Sched *s, const LaneQueue *q, const Task *t) {
    double begin = 0;
    for (uint64_t i = t->next, end = group_end(q, t); i < end; i++) {
        double at = begin_of(s, q, t, &q->recs.at[i - q->base]);
        if (at < 0)
            return -1;
        begin = max_ns(begin, at);
    }
    return begin;
}

static Task *choose(Sched *s, int *lane, double *begin) {
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
            double at = begin_of_next(s, q, t);
            if (at >= 0 && (!best || at < *begin || (at == *begin && t->order < best->order)))
                best = t, *lane = k, *begin = at;
        }
    }
    return best;
}

static void run(Sched *s, const ChipFile *c, Rec *r, double begin) {
    int cost = isa_rows[r->in.op].cost;
    r->placed = true;
    r->finish = begin;
    if (r->is_merge)
        return;
    if (cost != COST_LDWEIGHTS)
        s->free[r->in.engine] = begin + r->busy;
    r->finish = begin + max_ns(r->busy, r->latency);
    if (cost != COST_DMA)
        return;
    double start = max_ns(begin + r->latency, s->queue[r->in.queue]);
    s->queue[r->in.queue] = start + c->dma_issue_ns;
    s->hbm = max_ns(s->hbm, start) + r->hbm;
    r->finish = s->hbm + c->dma_done_ns;
}

static void drop_recs(LaneQueue *q) {
    while (q->placed < q->tasks.n && q->tasks.at[q->placed].next == q->tasks.at[q->placed].end)
        q->placed++;
    uint64_t floor = q->placed < q->tasks.n ? q->tasks.at[q->placed].next : q->base + q->recs.n, gone = floor - q->base;
    if (gone != q->recs.n && gone < RECS_GONE)
        return;
    if (gone < q->recs.n)
        memmove(q->recs.at, q->recs.at + gone, (q->recs.n - gone) * sizeof *q->recs.at);
    q->recs.n -= (uint32_t)gone;
    q->base += gone;
}

static uint64_t pending(Sched *s) {
    uint64_t n = 0;
    for (int k = 0; k < LANE_COUNT; k++) {
        drop_recs(&s->lane[k]);
        n += s->lane[k].tasks.n - s->lane[k].placed;
    }
    return n;
}

static void advance(Emit *e, uint64_t keep) {
    Sched *s = e->sched;
    uint32_t loc = e->loc;
    while (pending(s) > keep) {
        int lane = 0;
        double begin = 0;
        Task *t = choose(s, &lane, &begin);
        assert(t); // the oldest task of all waits for none
        LaneQueue *q = &s->lane[lane];
        e->order = (uint32_t)t->order + 1;
        for (uint64_t end = group_end(q, t); t->next < end;) {
            Rec *r = &q->recs.at[t->next++ - q->base];
            place(e, r);
            run(s, e->chip, r, r->is_merge ? begin : max_ns(begin, s->free[r->in.engine]));
            t->finish = max_ns(t->finish, r->finish + DONE_NS);
        }
    }
    e->loc = loc;
    e->order = 0;
}

void emit_step_end(Emit *e) {
    if (e->lane != LANE_NONE)
        advance(e, PENDING_TASKS);
    e->lane = LANE_NONE;
}

void emit_flush(Emit *e) {
    advance(e, 0);
    emit_unweave(e);
}
