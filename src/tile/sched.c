// SPDX-License-Identifier: Apache-2.0
// sched.c — instructions of neighbouring tiles and steps beside each other, and the waits that keep them apart.
//
//   steps ──► tiles in lanes ──► one program
//             tensor: products        An engine works through its instructions in program order. So that order decides
//             rows:   row programs    what overlaps: here the chains of several tiles, each of which goes from engine to
//             move:   transfers       engine, are woven together, and products go on beside row programs.
//             kernel: GpSimd
//             collective: between devices
//             draws:  random numbers, when nothing else can begin
//
// A step is recorded as tasks, a tile each, in the lane of its kind; sched_place.c weaves them. An instruction never
// goes before one recorded earlier that it meets in memory: parts of SBUF and PSUM know who was recorded for them, HBM is
// known by pieces of it, between lanes and tasks. Lanes share no SBUF and no PSUM, unless emit_join says so. The bits
// of a result do not depend on the order: every value is computed by the same instructions.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "isa/build.h"
#include "mach/price.h"
#include "tile/count.h"
#include "tile/sched.h"

#define STEPS_LEAST 48     // of a program that is worth a second thread
#define PROBE_LOOK 64      // touches

typedef struct LaneTail { // what has been recorded
    uint64_t recs;
    uint32_t tasks;
    uint32_t step; // tasks there were when the step began
    uint32_t after[LANE_COUNT]; // tasks of other lanes that every new task follows
} LaneTail;

typedef struct Piece {
    uint32_t w[LANE_COUNT], r[LANE_COUNT]; // last tasks that write and read it, as counts
    uint32_t before[LANE_COUNT];           // … and of steps before the last one that did either
    uint32_t writers, readers;             // lanes that have such a task, as bits
} Piece;

struct Sched {
    LaneTail lane[LANE_COUNT];
    Pieces *segments;
    uint64_t order;
    Batch *batch; // the step being recorded
};

void sched_init(Emit *e, uint32_t nsegments) {
    e->sched = ARENA_NEW(e->c->scratch, Sched);
    *e->sched = (Sched){.segments = ARENA_NEWN(e->c->scratch, Pieces, nsegments + 1)};
    e->placer = placer_make(e, nsegments);
}

// --- pieces of HBM -----------------------------------------------------------------------------------

typedef struct Range {
    uint32_t seg;
    uint64_t first, last; // pieces
    bool writes;
    uint64_t lo, hi;      // bytes
    uint32_t pitch, from, to; // as a touch has them
} Range;

typedef struct Reach { // bytes that registers may add to an address, or take from it
    uint64_t above, below;
} Reach;

// A result that takes over an argument is the same memory.
static uint32_t memory_of(const Emit *e, uint32_t seg) {
    uint32_t results = SEG_FIRST_ARG + e->l->main->nargs;
    if (seg < results || e->l->alias[seg - results] < 0)
        return seg;
    return SEG_FIRST_ARG + (uint32_t)e->l->alias[seg - results];
}

static Range range_make(const Emit *e, uint64_t addr, uint64_t bytes, bool writes) {
    uint64_t off = addr_off(addr);
    return (Range){.seg = memory_of(e, addr_seg(addr)), .first = off >> PIECE_BITS, .last = (off + (bytes ? bytes - 1 : 0)) >> PIECE_BITS,
                   .writes = writes, .lo = off, .hi = off + bytes};
}

#define RANGES_MOST 4 // of one side of a transfer
#define RANGES_FEW (2 * RANGES_MOST)

// An axis of a few steps that lie apart: numbers per row of several tensors, each of which is asked for by itself (tile/pair.c). 0: none.
static int far_axis(const IsaInst *in, uint32_t rows, const int32_t *stride) {
    int64_t all = 1;
    for (int i = 0; i < 4; i++)
        all += (int64_t)((i ? isa_count(in->n[i]) : rows) - 1) * llabs(stride[i]);
    for (int i = 1; i < 4; i++) {
        uint32_t n = isa_count(in->n[i]);
        int64_t step = llabs(stride[i]), within = all - (n - 1) * step;
        if (n > 1 && n <= RANGES_MOST && step >= within)
            return i;
    }
    return 0;
}

// Heads of attention, for one, are written side by side into the same rows: the smallest stride that all larger ones are multiples of is the
// rows' pitch, what the smaller ones reach is the width.
static void find_columns(const IsaInst *in, int64_t size, Range *r) {
    for (int p = 0; p < 4; p++) {
        int64_t pitch = in->d[p], width = 1;
        bool fits = isa_count(in->n[p]) > 1 && pitch > 1 && pitch * size <= UINT32_MAX;
        for (int i = 0; i < 4 && fits; i++) {
            int64_t n = isa_count(in->n[i]), stride = in->d[i];
            fits = stride >= 0 && (n == 1 || stride < pitch || stride % pitch == 0);
            width += n > 1 && stride < pitch ? (n - 1) * stride : 0;
        }
        int64_t from = (int64_t)(r->lo % (uint64_t)(pitch > 0 ? pitch * size : 1));
        if (!fits || width >= pitch || from + width * size > pitch * size || (r->pitch && r->pitch <= pitch * size))
            continue;
        r->pitch = (uint32_t)(pitch * size), r->from = (uint32_t)from, r->to = (uint32_t)(from + width * size);
    }
}

// `rows`: of axis 0, which an index may choose among. Returns how many.
static uint32_t ranges_of_dma(const Emit *e, const IsaInst *in, uint64_t addr, uint32_t rows, const int32_t *stride, int dtype,
                              bool writes, Range *out) {
    int64_t below = 0, elems = 1, size = (int64_t)dtype_bytes(dtype);
    int far = far_axis(in, rows, stride);
    for (int i = 0; i < 4; i++) {
        int64_t reach = far && i == far ? 0 : (int64_t)((i ? isa_count(in->n[i]) : rows) - 1) * stride[i];
        *(reach < 0 ? &below : &elems) += reach;
    }
    uint32_t n = far ? isa_count(in->n[far]) : 1;
    for (uint32_t k = 0; k < n; k++)
        out[k] = range_make(e, addr + (uint64_t)((below + (far ? (int64_t)k * stride[far] : 0)) * size), (uint64_t)((elems - below) * size), writes);
    return n;
}

static void widen(Range *r, const Reach *reach, bool moves) { // by what registers may do
    uint64_t below = reach->below ? (reach->below >> PIECE_BITS) + 1 : 0, above = reach->above ? (reach->above >> PIECE_BITS) + 1 : 0;
    if (!moves)
        return;
    r->last += above;
    r->first -= below < r->first ? below : r->first;
    r->hi += reach->above;
    r->lo -= reach->below < r->lo ? reach->below : r->lo;
}

// What an instruction touches of HBM; at most `max` ranges, of which there is room for RANGES_FEW. By index any row may be meant.
static uint32_t ranges_of(const Emit *e, const IsaInst *in, const Reach *reach, Range *out, uint32_t max) {
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
    if (addr_space(in->src) == SPACE_HBM)
        for (uint32_t end = n + ranges_of_dma(e, in, in->src, gathers ? any : rows, in->s, in->stype, false, out + n); n < end; n++)
            widen(&out[n], reach, in->reg_s[0] != 0);
    if (addr_space(in->dst) == SPACE_HBM)
        for (uint32_t end = n + ranges_of_dma(e, in, in->dst, scatters ? any : rows, in->d, in->dtype ? in->dtype : in->stype, true, out + n); n < end; n++) {
            widen(&out[n], reach, in->reg_d[0] != 0);
            if (!in->reg_d[0] && !scatters)
                find_columns(in, (int64_t)dtype_bytes(in->dtype ? in->dtype : in->stype), &out[n]);
        }
    return n;
}

static Range *all_ranges(Emit *e, const IsaInst *in, const Reach *reach, Range few[RANGES_FEW], uint32_t *n) {
    Range *at = few;
    uint32_t max = RANGES_FEW;
    if (in->op == ISA_KERNEL || in->op == ISA_COLLECTIVE) {
        max = e->kerns.at[in->imm].nin + e->kerns.at[in->imm].nout;
        at = max > RANGES_FEW ? ARENA_NEWN(e->c->scratch, Range, max) : few;
    }
    *n = ranges_of(e, in, reach, at, max);
    return at;
}

// --- recording ---------------------------------------------------------------------------------------

static Task *open_task(Emit *e) {
    Batch *b = e->sched->batch;
    return &b->tasks.at[b->tasks.n - 1];
}

void emit_task(Emit *e) {
    if (e->lane == LANE_NONE || e->probe)
        return;
    LaneTail *q = &e->sched->lane[e->lane];
    Batch *b = e->sched->batch;
    if (b->tasks.n && open_task(e)->next == q->recs)
        return; // nothing in it yet
    Task t = {.next = q->recs, .end = q->recs, .order = e->sched->order++};
    memcpy(t.dep, q->after, sizeof t.dep);
    if (e->after && e->lane != LANE_KERNEL && e->meetings[e->after].task > t.dep[LANE_KERNEL])
        t.dep[LANE_KERNEL] = e->meetings[e->after].task;
    VEC_PUSH(e->c->scratch, &b->tasks, t);
    q->tasks++;
}

void emit_lane(Emit *e, Lane lane, bool tiles_apart) {
    if (e->probe)
        return;
    if (lane == LANE_NONE)
        emit_flush(e);
    assert(lane <= LANE_NONE);
    e->lane = lane;
    e->tiles_apart = tiles_apart;
    if (lane == LANE_NONE)
        return;
    e->sched->lane[lane].step = e->sched->lane[lane].tasks;
    e->sched->batch = placer_batch(e->placer);
    e->sched->batch->lane = lane;
    emit_task(e);
}

void emit_join(Emit *e, Lane other) {
    if (e->probe)
        return;
    assert(e->lane != LANE_NONE);
    assert(other != e->lane);
    LaneTail *mine = &e->sched->lane[e->lane], *theirs = &e->sched->lane[other];
    emit_task(e);
    open_task(e)->dep[other] = mine->after[other] = theirs->tasks;
    theirs->after[e->lane] = mine->tasks;
}

// Everything recorded so far goes before it.
void emit_meet(Emit *e, uint32_t round) {
    emit_lane(e, LANE_KERNEL, false);
    for (int k = 0; k < LANE_COUNT; k++)
        if (k != LANE_KERNEL)
            open_task(e)->dep[k] = e->sched->lane[k].tasks;
    e->meetings[round].task = e->sched->lane[LANE_KERNEL].tasks;
    e->round = round, e->after = 0;
    emit_inst(e, (IsaInst){.op = ISA_CORE_BARRIER, .engine = MEET_ENGINE}, NULL, 0, NULL, 0);
    emit_step_end(e);
}

// Tiles of one step meet in no byte of what they write, where the step says so: they need not wait for each other, but
// for what earlier steps did with the piece.
static uint32_t own_tasks(const Emit *e, const LaneTail *q, Piece *p, bool writes) {
    uint32_t self = q->tasks, w = p->w[e->lane], r = p->r[e->lane], n = writes && r > w ? r : w;
    uint32_t last = w > r ? w : r;
    if (last <= q->step)
        p->before[e->lane] = last;
    if (e->tiles_apart && n > q->step)
        return p->before[e->lane];
    return n < self ? n : writes || w < self ? self - 1 : 0; // this task did: who else is not known any more
}

static void note_piece(const Emit *e, const LaneTail *q, Task *t, Rec *rec, Piece *p, bool writes) {
    const uint32_t bit = 1u << e->lane;
    for (uint32_t left = (p->writers | (writes ? p->readers : 0)) & ~bit; left; left &= left - 1) {
        int k = __builtin_ctz(left);
        uint32_t n = writes && p->r[k] > p->w[k] ? p->r[k] : p->w[k];
        t->dep[k] = n > t->dep[k] ? n : t->dep[k];
    }
    uint32_t own = own_tasks(e, q, p, writes);
    rec->tasks = own > rec->tasks ? own : rec->tasks;
    *(writes ? &p->w[e->lane] : &p->r[e->lane]) = q->tasks;
    *(writes ? &p->writers : &p->readers) |= bit;
}

static void note_range(Emit *e, Task *t, Rec *rec, const Range *r) {
    for (uint64_t at = r->first, n; at <= r->last; at += n) {
        n = r->last - at + 1;
        Piece *p = pieces_at(e->c->scratch, &e->sched->segments[r->seg], sizeof *p, at, &n);
        for (uint64_t i = 0; i < n; i++)
            note_piece(e, &e->sched->lane[e->lane], t, rec, &p[i], r->writes);
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
    uint32_t task = e->sched->lane[e->lane].tasks;
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
    r->act_set = p.act_set;
    r->hbm = (float)(dma && p.dma > p.hbm ? p.dma : p.hbm) * 1e-3f;
}

// Touches of neighbouring bytes are one; it is enough to look back a little, as touches may be many.
static void probe(Emit *e, Rec *r, const Reach *reach) {
    Probe *p = e->probe;
    uint32_t n;
    Range few[RANGES_FEW], *ranges = all_ranges(e, &r->in, reach, few, &n);
    for (uint32_t i = 0; i < n; i++) {
        const Range *t = &ranges[i];
        ProbeTouch *last = NULL;
        for (uint32_t k = p->touches.n; k-- > 0 && p->touches.n - k <= PROBE_LOOK && !last;)
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

static Touch touch_of(const Range *r) {
    const uint64_t mask = (UINT64_C(1) << PIECE_BITS) - 1;
    bool exact = r->lo >> PIECE_BITS == r->first && r->hi > r->lo && (r->hi - 1) >> PIECE_BITS == r->last; // registers do not move it
    return (Touch){r->seg, (uint32_t)r->first, (uint32_t)r->last, exact ? (uint32_t)(r->lo & mask) : 0,
                   exact ? (uint32_t)((r->hi - 1) & mask) + 1 : UINT32_MAX, r->writes, r->pitch, r->from, r->to};
}

static void touches_set(Emit *e, Rec *r, const Range *ranges, uint32_t n) {
    Touch *to = n > 2 ? ARENA_NEWN(e->c->scratch, Touch, n) : r->few;
    for (uint32_t i = 0; i < n; i++)
        to[i] = touch_of(&ranges[i]);
    r->ntouches = n, r->more = n > 2 ? to : NULL;
}

static void record(Emit *e, Rec *r, const Range *ranges, uint32_t n) {
    assert(e->lane != LANE_NONE);
    LaneTail *q = &e->sched->lane[e->lane];
    Task *t = open_task(e);
    note_order(e, r, q->recs);
    for (uint32_t i = 0; i < n; i++)
        note_range(e, t, r, &ranges[i]);
    if (!r->is_merge)
        add_cost(e, r);
    *placer_rec(e->placer, e->lane, q->recs++) = *r;
    t->end++;
}

// An operand in a view: the place in its base, moved on by the loop's register.
static void put_view(Emit *e, Reach *r, uint64_t *addr, uint8_t *reg, int32_t *mul) {
    if (addr_space(*addr) != SPACE_HBM || addr_seg(*addr) < e->view_seg)
        return;
    const TBuf *b = &e->l->bufs.at[e->views[addr_seg(*addr) - e->view_seg]];
    int64_t least = count_least(e->l, b->at), most = count_most(e->l, b->at);
    uint64_t up = most > b->at.add ? (uint64_t)(most - b->at.add) : 0, down = least < b->at.add ? (uint64_t)(b->at.add - least) : 0;
    *addr = emit_addr(e, b->base) + (uint64_t)b->at.add + addr_off(*addr);
    reg[0] = (uint8_t)(count_reg(e->l, b->at.loop) + 1), mul[0] = (int32_t)b->at.mul;
    if (b->apart) // whom it may meet moves along
        return;
    r->above = up > r->above ? up : r->above;
    r->below = down > r->below ? down : r->below;
}

// A sequencer waits before it triggers a transfer, and what it triggers next waits behind. Loads wait for room and stores for results, so that
// each have a sequencer of their own.
static void choose_trigger(IsaInst *in) {
    bool loads = addr_space(in->src) == SPACE_HBM, stores = addr_space(in->dst) == SPACE_HBM;
    if (loads != stores)
        in->engine = loads ? ENG_SYNC : ENG_GPSIMD;
}

void emit_inst(Emit *e, IsaInst in, Haz *const *reads, uint32_t nreads, Haz *const *writes, uint32_t nwrites) {
    Rec r = {.in = in, .loc = e->loc, .round = e->round, .after = e->after, .nreads = (uint8_t)nreads, .nwrites = (uint8_t)nwrites};
    Reach reach = {e->reach, e->below};
    assert(nreads <= REC_READS);
    assert(nwrites <= REC_WRITES);
    assert(isa_row_engine(in.op, in.engine));
    assert(!isa_has_queue(&in) || in.queue < QUEUE_COUNT);
    if (isa_row_has(in.op, ISA_F_n0))
        isa_pack(&r.in);
    if (isa_rows[in.op].cost == COST_DMA) {
        put_view(e, &reach, &r.in.src, r.in.reg_s, r.in.mul_s);
        put_view(e, &reach, &r.in.dst, r.in.reg_d, r.in.mul_d);
        choose_trigger(&r.in);
    }
    for (uint32_t i = 0; i < nreads; i++) {
        assert(reads[i]);
        r.reads[i] = reads[i];
    }
    for (uint32_t i = 0; i < nwrites; i++) {
        assert(writes[i]);
        r.writes[i] = writes[i];
    }
    if (e->probe) {
        probe(e, &r, &reach);
        return;
    }
    uint32_t n;
    Range few[RANGES_FEW], *ranges = all_ranges(e, &r.in, &reach, few, &n);
    touches_set(e, &r, ranges, n);
    record(e, &r, ranges, n);
}

void emit_merge(Emit *e, Haz *into, Haz *from) {
    assert(into != from);
    Rec r = {.is_merge = true, .nreads = 1, .nwrites = 2, .reads = {from}, .writes = {into, from}}; // after all who read it
    if (e->probe)
        return;
    record(e, &r, NULL, 0);
}

// What is still done with a part of SBUF comes in, or goes out again.
void emit_area(Emit *e, Haz *h, uint32_t at, uint32_t bytes, bool out) {
    uint32_t last = (at + bytes - 1) / SBUF_PIECE;
    assert(bytes);
    assert(last < SBUF_PIECES);
    for (uint32_t g = at / SBUF_PIECE; g <= last; g++)
        emit_merge(e, out ? &e->sbuf_haz[g] : h, out ? h : &e->sbuf_haz[g]);
}

// --- steps -------------------------------------------------------------------------------------------

void emit_step_end(Emit *e) {
    if (e->lane != LANE_NONE) {
        e->sched->batch->recs = e->sched->lane[e->lane].recs;
        placer_take(e->placer);
    }
    e->lane = LANE_NONE;
}

void emit_flush(Emit *e) {
    placer_flush(e->placer);
    emit_unweave(e);
}

void emit_all(Emit *e, void (*fn)(void *arg), void *arg) { placer_run(e->placer, fn, arg, e->l->steps.n >= STEPS_LEAST); }
