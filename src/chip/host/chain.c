// SPDX-License-Identifier: Apache-2.0
// chain.c — see chain.h. Here: which jobs may go together, the order they go in, and the loop over rows.
//
// Operands are *places*: rows of elements side by side. Those of a chain are the same place or lie apart, so that elements
// of different columns never meet. What a place holds at some moment is a *value*; instructions take values, and the next
// one is, where possible, one that takes what is in the accumulator.
#include "chip/host/chain.h"

#include "chip/core/effect_ew.h"

#define INSTS 96
#define RANGES 320
#define PLACES 120
#define VALUES (INSTS + PLACES)
#define SCALARS 250
#define PASSED 16 // jobs between those of a chain
#define PASSED_RANGES (PASSED * 7)
#define SLOTS 24
#define OPS (INSTS * 6)
#define REDS 2
#define COLS_LEAST 128
#define MASK_COLS 4096
#define NONE (-1)

typedef struct Range { // bytes of each row; rows are partitions from `part` on
    uint8_t *at;
    int64_t pitch, bytes;
    uint32_t part, rows;
    bool local, is_write;
} Range;

typedef struct ChainPlace {
    uint8_t *at;
    int64_t pitch;
    uint8_t bytes; // of an element
    bool local;
    bool is_mask; // read from a copy: others of the chain may write there
} ChainPlace;

typedef struct ChainScalar { // at NULL: a number
    float value;
    bool local;
    uint8_t *at;
    int64_t pitch;
} ChainScalar;

typedef struct ChainReg {
    EngWalk walk;
    EffReg reg;
    EngScalar load;
    uint8_t op;
} ChainReg;

typedef struct Value {
    int16_t mem;   // place or slot where it is; NONE: in the accumulator, or not yet anywhere
    int16_t home;  // the place that it is to be in at the end
    uint16_t uses; // left
    bool made, loose; // loose: a NaN may be another than the one
    bool half;        // it lies in mem as bf16
    bool late;        // it goes home when all is done
} Value;

typedef struct Inst {
    const EngJob *job;
    int16_t src, src1, dst; // values
    int16_t mask, to;       // places
    int16_t a, b, reg;      // scalars, register
    bool done;
} Inst;

typedef struct Maker {
    uint32_t npassed, npassed_ranges; // jobs that come behind it though they were in between
    uint32_t passed[PASSED];          // their numbers
    Range passed_range[PASSED_RANGES];
    uint32_t ninsts, nranges, nplaces, nvalues, nscalars, nregs, nops;
    Range range[RANGES];
    ChainPlace place[PLACES];
    int16_t holds[PLACES]; // value
    uint32_t until[PLACES]; // the last instruction that reads what was written there last; 0: anybody
    bool written[PLACES], fetched[PLACES];
    Value value[VALUES];
    Inst inst[INSTS];
    ChainScalar scalar[SCALARS];
    ChainReg reg[REDS];
    bool slot[SLOTS]; // taken
    bool full;        // of operations or slots
    bool masks;       // there is a mask
    bool gathered;    // a job that was passed over has to do with a register
    EngChainOp op[OPS];
} Maker;

typedef struct ChainProg { // in the memory of the jobs: places, scalars, registers, operations follow
    const EngLevel *eng;
    uint32_t nplaces, nscalars, nregs, nops;
} ChainProg;

// --- what may go together ---------------------------------------------------------------------------------------

static bool number_type(int dtype) { return dtype == DT_F32 || dtype == DT_BF16; }
static bool plain(const EngTensor *t) { return t->flat && !t->careful; }
static bool plain_number(const EngTensor *t) { return plain(t) && number_type(t->dtype); }
static bool plain_scalar(const EngScalar *a) { return !a->column.at || a->column.dtype == DT_F32; }

static bool stage_suits(const EwStage *st) {
    return st->fn || st->op == ALU_ADD || st->op == ALU_SUB || st->op == ALU_MUL || st->op == ALU_RECIP || st->op == ALU_SQUARE;
}

static bool ew_suits(const Ew *e) {
    const EngLevel *eng = e->walk.level->eng;
    if (e->walk.stochastic || !plain(&e->src) || (!e->dst.nowhere && !plain(&e->dst)) || e->dst.careful)
        return false;
    if (e->same && !e->gathers)
        return e->src.bytes == e->dst.bytes && (e->src.bytes == 4 || e->src.bytes == 2);
    if (e->walk.domain != ENG_F32 || !number_type(e->src.dtype) || !number_type(e->dst.dtype) || !plain_scalar(&e->a) ||
        !plain_scalar(&e->b) || (e->gathers && !e->run))
        return false;
    if (e->run && e->run != eng->run[ENG_F32][ALU_ADD] && e->run != eng->run[ENG_F32][ALU_MAX])
        return false;
    for (int i = 0; i < e->nstages; i++)
        if (!stage_suits(&e->stage[i]) || (e->stage[i].by == BY_SRC1 && !plain_number(&e->src1)))
            return false;
    return true;
}

static bool select_suits(const Select *k) {
    return k->walk.domain == ENG_F32 && !k->walk.stochastic && k->src_given && plain(&k->src) && k->src.dtype == DT_F32 &&
           k->src1.flat && k->src1.bytes == 1 && k->src1.cols <= MASK_COLS && k->dst.dtype == DT_F32 && !k->dst.careful &&
           (k->dst.nowhere || k->dst.flat) && plain_scalar(&k->a) && plain_scalar(&k->b) && (!k->gathers || k->run);
}

static bool dma_suits(const Dma *k) {
    return plain(&k->dst) && plain(&k->src) && (k->dst.bytes == 4 || k->dst.bytes == 2);
}

static bool job_suits(const EngJob *j) {
    if (j->cols < COLS_LEAST)
        return false;
    return j->body == eff_ew_body       ? ew_suits((const Ew *)j->arg)
           : j->body == eff_select_body ? select_suits((const Select *)j->arg)
           : j->body == eff_bits_body   ? dma_suits((const Dma *)j->arg)
                                        : false;
}

// --- places -----------------------------------------------------------------------------------------------------

static bool same_range(const Range *x, const Range *y) {
    return x->at == y->at && x->pitch == y->pitch && x->bytes == y->bytes && x->local == y->local && x->part == y->part;
}

// From the first byte of all rows, which is returned, to the last.
static uintptr_t range_all(const Range *r, uint64_t *bytes) {
    int64_t reach = (int64_t)(r->rows - 1) * r->pitch;
    *bytes = (uint64_t)(r->bytes + (reach < 0 ? -reach : reach));
    return (uintptr_t)r->at + (uintptr_t)(reach < 0 ? reach : 0);
}

// Do rows of the two share bytes? Rows of different partitions never do, and a place in the slice's memory is the same
// for all of them.
static bool ranges_meet(const Range *x, const Range *y) {
    if (x->local != y->local)
        return false;
    uint64_t bx = (uint64_t)x->bytes, by = (uint64_t)y->bytes;
    uintptr_t ax = (uintptr_t)x->at, ay = (uintptr_t)y->at;
    if (x->pitch != y->pitch)
        ax = range_all(x, &bx), ay = range_all(y, &by);
    else if (!x->local)
        ax -= (uintptr_t)(x->part * x->pitch), ay -= (uintptr_t)(y->part * y->pitch);
    return ax < ay + by && ay < ax + bx;
}

static Range range_of(const EngJob *j, const EngTensor *t, size_t cols, bool is_write) {
    return (Range){t->at, t->pitch, (int64_t)(cols * t->bytes), j->part, j->rows, t->local, is_write};
}

// May it come before the jobs that were passed over?
static bool may_pass(const Maker *m, const Range *r) {
    for (uint32_t i = 0; i < m->npassed_ranges; i++) {
        const Range *x = &m->passed_range[i];
        if ((x->is_write || r->is_write) && ranges_meet(x, r))
            return false;
    }
    return true;
}

// False: it meets another one, in another way than being the same place, and one of them is written.
// mask: it is read from before, and so only those that came before count.
enum { RANGE_ROW, RANGE_COLUMN, RANGE_MASK };
static bool range_add(Maker *m, Range r, int kind) {
    bool known = false;
    if (!may_pass(m, &r))
        return false;
    for (uint32_t i = 0; i < m->nranges; i++) {
        Range *x = &m->range[i];
        bool same = kind == RANGE_ROW && same_range(x, &r);
        if (same) {
            known = true;
            x->is_write |= r.is_write;
        } else if ((x->is_write || r.is_write) && ranges_meet(x, &r)) {
            return false;
        }
    }
    if (known || kind == RANGE_MASK)
        return true;
    if (m->nranges == RANGES)
        return false;
    m->range[m->nranges++] = r;
    return true;
}

static int16_t place_of(Maker *m, const EngTensor *t) {
    for (uint32_t i = 0; i < m->nplaces; i++) {
        const ChainPlace *p = &m->place[i];
        if (p->at == t->at && p->pitch == t->pitch && p->local == t->local && p->bytes == t->bytes)
            return (int16_t)i;
    }
    m->place[m->nplaces] = (ChainPlace){t->at, t->pitch, t->bytes, t->local, false};
    m->holds[m->nplaces] = NONE;
    m->written[m->nplaces] = m->fetched[m->nplaces] = false;
    return (int16_t)m->nplaces++;
}

// What the place holds.
static int16_t value_in(Maker *m, int16_t place) {
    if (m->holds[place] == NONE) {
        m->holds[place] = (int16_t)m->nvalues;
        m->value[m->nvalues++] =
            (Value){.mem = place, .home = NONE, .made = true, .half = m->place[place].bytes == 2};
    }
    return m->holds[place];
}

static int16_t scalar_of(Maker *m, const EngScalar *a) {
    const EngTensor *t = &a->column;
    if (!a->given)
        return 0;
    m->scalar[m->nscalars] = t->at ? (ChainScalar){0, t->local, t->at, t->pitch}
                                   : (ChainScalar){.value = a->value};
    return (int16_t)m->nscalars++;
}

typedef struct Operands { // of a job
    const EngTensor *dst, *src, *src1, *mask; // NULL: none
    const EngScalar *a, *b;
    const EffReg *reg;
    const EngWalk *walk;
    EngRun *run;
    bool gathers;
    float parameter;
} Operands;

static Operands operands_of(const EngJob *j) {
    if (j->body == eff_bits_body) {
        const Dma *k = (const Dma *)j->arg;
        return (Operands){.dst = &k->dst, .src = &k->src};
    }
    if (j->body == eff_select_body) {
        const Select *k = (const Select *)j->arg;
        return (Operands){&k->dst, &k->src, NULL, &k->src1, &k->a, &k->b, &k->reg, &k->walk, k->run, k->gathers, 0};
    }
    const Ew *e = (const Ew *)j->arg;
    bool other = false;
    for (int i = 0; i < e->nstages; i++)
        other |= e->stage[i].by == BY_SRC1;
    return (Operands){&e->dst, &e->src, other ? &e->src1 : NULL, NULL, &e->a, &e->b, &e->reg, &e->walk, e->run, e->gathers,
                      e->parameter};
}

// What it meets was noted in part when the answer is no, which is of no harm: nothing may do what could not be done before.
static bool ranges_add(Maker *m, const EngJob *j, const Operands *o) {
    const EngTensor *in[] = {o->src, o->src1, o->mask};
    for (int i = 0; i < 3; i++)
        if (in[i] && !range_add(m, range_of(j, in[i], j->cols, false), i < 2 ? RANGE_ROW : RANGE_MASK))
            return false;
    const EngScalar *one[] = {o->a, o->b};
    for (int i = 0; i < 2; i++)
        if (one[i] && one[i]->column.at && !range_add(m, range_of(j, &one[i]->column, 1, false), RANGE_COLUMN))
            return false;
    if (o->gathers && o->reg->res.at && !range_add(m, range_of(j, &o->reg->res, 1, true), RANGE_COLUMN))
        return false;
    return o->dst->nowhere || range_add(m, range_of(j, o->dst, j->cols, true), RANGE_ROW);
}

static bool job_add(Maker *m, const EngJob *j) {
    const EngJob *first = m->ninsts ? m->inst[0].job : j;
    if (!job_suits(j) || j->part != first->part || j->rows != first->rows || j->cols != first->cols || m->ninsts == INSTS ||
        m->nplaces + 4 > PLACES || m->nscalars + 3 > SCALARS - INSTS)
        return false;
    Operands o = operands_of(j);
    if (o.gathers) {
        if (m->nregs == REDS || !dtype_is_float(o.reg->res.at ? o.reg->res.dtype : DT_F32))
            return false;
        for (uint32_t i = 0; i < m->nregs; i++)
            if (m->reg[i].reg.acc == o.reg->acc)
                return false;
        if (m->gathered)
            return false;
    }
    if ((o.mask && m->masks) || !ranges_add(m, j, &o))
        return false;
    Inst *k = &m->inst[m->ninsts];
    *k = (Inst){.job = j, .src1 = NONE, .dst = NONE, .mask = NONE, .to = NONE, .reg = NONE};
    k->src = value_in(m, place_of(m, o.src));
    m->value[k->src].uses++;
    if (o.src1) {
        k->src1 = value_in(m, place_of(m, o.src1));
        m->value[k->src1].uses++;
    }
    if (o.mask) {
        k->mask = place_of(m, o.mask);
        m->place[k->mask].is_mask = m->masks = true;
    }
    if (o.a)
        k->a = scalar_of(m, o.a), k->b = scalar_of(m, o.b);
    if (o.gathers) {
        k->reg = (int16_t)m->nregs;
        bool sums = o.run == o.walk->level->eng->run[ENG_F32][ALU_ADD];
        m->reg[m->nregs++] = (ChainReg){*o.walk, *o.reg, *o.b, sums ? ALU_ADD : ALU_MAX};
    }
    k->dst = (int16_t)m->nvalues;
    m->value[m->nvalues++] = (Value){.mem = NONE, .home = NONE};
    if (!o.dst->nowhere) {
        k->to = place_of(m, o.dst);
        m->holds[k->to] = k->dst;
        m->written[k->to] = true;
        m->until[k->to] = j->until;
    }
    m->ninsts++;
    return true;
}

// --- those in between -------------------------------------------------------------------------------------------

// All that a row reaches, whatever the pattern.
static void passed_range(Maker *m, const EngJob *j, const EngTensor *t, bool is_write) {
    Range r = range_of(j, t, 0, is_write);
    r.bytes = t->bytes;
    for (int i = 0; i < t->naxes; i++) {
        int64_t reach = (int64_t)(t->axis[i].n - 1) * t->axis[i].step;
        r.bytes += reach < 0 ? -reach : reach;
        r.at += reach < 0 ? reach : 0;
    }
    m->passed_range[m->npassed_ranges++] = r;
}

// The job stays behind the chain; false: what it touches is not known.
static bool job_pass(Maker *m, const EngJob *j, uint32_t number) {
    if (m->npassed == PASSED || (j->body != eff_ew_body && j->body != eff_select_body && j->body != eff_bits_body))
        return false;
    Operands o = operands_of(j);
    const EngTensor *in[] = {o.src, o.src1, o.mask, o.a ? &o.a->column : NULL, o.b ? &o.b->column : NULL};
    for (int i = 0; i < 5; i++)
        if (in[i] && (in[i]->at || i < 3))
            passed_range(m, j, in[i], false);
    if (o.gathers && o.reg->res.at)
        passed_range(m, j, &o.reg->res, true);
    if (!o.dst->nowhere)
        passed_range(m, j, o.dst, true);
    m->gathered |= o.gathers;
    m->passed[m->npassed++] = number;
    return true;
}

static bool passed_reads(const Maker *m, int16_t place) {
    const ChainPlace *p = &m->place[place];
    const EngJob *j = m->inst[0].job;
    Range r = {p->at, p->pitch, (int64_t)(j->cols * p->bytes), j->part, j->rows, p->local, true};
    return !may_pass(m, &r);
}

// --- its program ------------------------------------------------------------------------------------------------

static void op_add(Maker *m, int op, int at, int scale, int scalar, EngFn *fn) {
    if (m->nops == OPS)
        m->full = true;
    else
        m->op[m->nops++] = (EngChainOp){(uint8_t)op, (uint8_t)at, (uint8_t)scale, (uint8_t)scalar, {fn}};
}
static void op_one(Maker *m, int op, int scalar) { op_add(m, op, 0, 0, scalar, NULL); }

// Asks for a place's next row, once.
static void fetch_add(Maker *m, int16_t at) {
    if (at >= (int16_t)m->nplaces || m->fetched[at] || m->place[at].local)
        return;
    m->fetched[at] = true;
    op_add(m, ENG_CHAIN_FETCH, at, m->place[at].bytes, 0, NULL);
    if (!m->full)
        m->op[m->nops - 1].pitch = m->place[at].pitch;
}

// With a value that is in memory.
static void op_with(Maker *m, int op, int16_t value, int scalar) {
    const Value *v = &m->value[value];
    bool slot = v->mem >= (int16_t)m->nplaces;
    int scale = slot ? 0 : v->half ? 2 : 4;
    fetch_add(m, v->mem);
    op_add(m, op + (v->half && !slot ? ENG_CHAIN_BF16 : 0), v->mem, scale, scalar, NULL);
}

static int alu_op(int alu, bool reverse) {
    return alu == ALU_ADD ? ENG_CHAIN_ADD : alu == ALU_MUL ? ENG_CHAIN_MUL : reverse ? ENG_CHAIN_BACK : ENG_CHAIN_SUB;
}
static int alu_one_op(int alu, bool reverse) {
    return alu == ALU_ADD   ? ENG_CHAIN_ADD_ONE
           : alu == ALU_MUL ? ENG_CHAIN_MUL_ONE
           : reverse        ? ENG_CHAIN_BACK_ONE
                            : ENG_CHAIN_SUB_ONE;
}

static const Ew *ew_of(const Inst *k) { return k->job->body == eff_ew_body ? (const Ew *)k->job->arg : NULL; }

// x * number + src1, in one operation?
static bool scales_and_adds(const Ew *e, int i) {
    return i + 1 < e->nstages && e->stage[i].op == ALU_MUL && !e->stage[i].fn &&
           (e->stage[i].by == BY_A || e->stage[i].by == BY_B) && !e->stage[i + 1].fn && e->stage[i + 1].op == ALU_ADD &&
           e->stage[i + 1].by == BY_SRC1;
}

static bool is_unary(const EwStage *st) { return !st->fn && (st->op == ALU_RECIP || st->op == ALU_SQUARE); }

// May the instruction take the value from the accumulator while it is nowhere else? As its source, or the other operand.
enum { TAKES_NOT, TAKES_SRC, TAKES_SRC1 };
static int takes(const Inst *k, int16_t value) {
    const Ew *e = ew_of(k);
    if (k->src == value && k->src1 == value)
        return e->nstages && e->stage[0].by == BY_SRC1 && e->stage[0].op == ALU_MUL ? TAKES_SRC : TAKES_NOT;
    if (k->src == value)
        return TAKES_SRC;
    if (k->src1 != value || !e)
        return TAKES_NOT;
    return (e->stage[0].by == BY_SRC1 && !is_unary(&e->stage[0])) || scales_and_adds(e, 0) ? TAKES_SRC1 : TAKES_NOT;
}

static void fn_add(Maker *m, const Ew *e, const EwStage *st, Value *v) {
    const EngLevel *eng = e->walk.level->eng;
    v->loose = true;
    if (st->fn == eng->fn[ACT_EXP])
        op_one(m, ENG_CHAIN_EXP, 0);
    else if (st->fn == eng->fn[ACT_SQRT])
        op_one(m, ENG_CHAIN_SQRT, 0);
    else if (st->fn == eng->fn[ACT_RECIPROCAL])
        op_one(m, ENG_CHAIN_RECIP, 0);
    else if (st->fn == eng->fn[ACT_SQUARE])
        op_one(m, ENG_CHAIN_SQUARE, 0);
    else {
        v->loose = false;
        EngFn *fn = st->fn;
        for (int i = 0; e->bf16_fn && i < ACT_COUNT; i++)
            if (eng->bf16_fn[i] == e->bf16_fn && eng->short_fn[i])
                fn = eng->short_fn[i];
        m->scalar[m->nscalars] = (ChainScalar){.value = e->parameter};
        op_add(m, ENG_CHAIN_CALL, 0, 0, (int)m->nscalars++, fn);
    }
}

// The stages of an instruction on the accumulator, which holds its source, or (swapped) its other operand.
static void stages_add(Maker *m, const Inst *k, const Ew *e, bool swapped, Value *v) {
    for (int i = 0; i < e->nstages; i++) {
        const EwStage *st = &e->stage[i];
        int one = st->by == BY_A ? k->a : k->b;
        v->loose = true;
        if (st->fn) {
            fn_add(m, e, st, v);
        } else if (is_unary(st)) {
            op_one(m, st->op == ALU_RECIP ? ENG_CHAIN_RECIP : ENG_CHAIN_SQUARE, 0);
        } else if (scales_and_adds(e, i)) {
            bool turned = swapped && i == 0;
            op_with(m, turned ? ENG_CHAIN_ADD_SCALED : ENG_CHAIN_SCALE_ADD, turned ? k->src : k->src1, one);
            i++;
        } else if (st->by != BY_SRC1) {
            op_one(m, alu_one_op(st->op, st->reverse), one);
        } else if (i == 0 && k->src == k->src1 && st->op == ALU_MUL) {
            op_one(m, ENG_CHAIN_SQUARE, 0);
        } else {
            bool turned = swapped && i == 0;
            op_with(m, alu_op(st->op, st->reverse != turned), turned ? k->src : k->src1, 0);
        }
    }
}

static void inst_add(Maker *m, Inst *k, int16_t acc) {
    Value *v = &m->value[k->dst];
    const Ew *e = ew_of(k);
    bool swapped = acc != NONE && k->src != acc && takes(k, acc) == TAKES_SRC1;
    if (k->src != acc && !swapped)
        op_with(m, ENG_CHAIN_LOAD, k->src, 0);
    v->made = true;
    v->loose = m->value[k->src].loose;
    if (k->mask != NONE) {
        const Select *s = (const Select *)k->job->arg;
        if (v->loose)
            op_one(m, ENG_CHAIN_QUIET, 0);
        op_add(m, s->reverse ? ENG_CHAIN_WHERE_NOT : ENG_CHAIN_WHERE, k->mask, 1, k->a, NULL);
        v->loose = false;
    } else if (e && !e->same) {
        stages_add(m, k, e, swapped, v);
    }
    if (k->reg != NONE)
        op_one(m, ENG_CHAIN_REDUCE, k->reg);
    if (e && !e->same && e->dst.dtype == DT_BF16 && (e->nstages || e->src.dtype != DT_BF16)) {
        if (v->loose)
            op_one(m, ENG_CHAIN_QUIET, 0);
        op_one(m, ENG_CHAIN_ROUND, 0);
        v->loose = false;
    }
    k->done = true;
}

static int16_t slot_take(Maker *m) {
    for (int i = 0; i < SLOTS; i++)
        if (!m->slot[i]) {
            m->slot[i] = true;
            return (int16_t)((int)m->nplaces + i);
        }
    m->full = true;
    return (int16_t)m->nplaces;
}

static void value_used(Maker *m, int16_t value) {
    Value *v = &m->value[value];
    if (!--v->uses && v->mem >= (int16_t)m->nplaces && !v->late)
        m->slot[v->mem - (int16_t)m->nplaces] = false;
}

// Does somebody still need what is in the place?
static bool place_needed(const Maker *m, int16_t place, int16_t but) {
    for (uint32_t i = 0; i < m->nvalues; i++)
        if ((int16_t)i != but && m->value[i].mem == place && m->value[i].uses)
            return true;
    return false;
}

static void store_add(Maker *m, int16_t at) {
    bool slot = at >= (int16_t)m->nplaces;
    int bytes = slot ? 0 : m->place[at].bytes;
    fetch_add(m, at);
    op_add(m, ENG_CHAIN_STORE + (bytes == 2 ? ENG_CHAIN_BF16 : 0), at, bytes, 0, NULL);
}

// From the accumulator to memory.
static void value_keep(Maker *m, int16_t value) {
    Value *v = &m->value[value];
    if (v->loose)
        op_one(m, ENG_CHAIN_QUIET, 0);
    v->loose = false;
    bool home = v->home != NONE && !place_needed(m, v->home, value);
    v->late = v->home != NONE && !home;
    v->mem = home ? v->home : slot_take(m);
    v->half = home && m->place[v->home].bytes == 2;
    store_add(m, v->mem);
}

static bool is_ready(const Maker *m, const Inst *k) {
    return !k->done && m->value[k->src].made && (k->src1 == NONE || m->value[k->src1].made);
}

// The next instruction: one that takes what is in the accumulator, else the first that can go.
static Inst *inst_pick(Maker *m, int16_t acc) {
    Inst *first = NULL;
    for (uint32_t i = 0; i < m->ninsts; i++) {
        Inst *k = &m->inst[i];
        if (!is_ready(m, k))
            continue;
        if (acc != NONE && takes(k, acc))
            return k;
        first = first ? first : k;
    }
    return first;
}

static void homes_find(Maker *m, uint32_t last_pc) {
    for (uint32_t i = 0; i < m->nplaces; i++)
        if (m->written[i] && (!m->place[i].local || !m->until[i] || m->until[i] > last_pc || passed_reads(m, (int16_t)i)))
            m->value[m->holds[i]].home = (int16_t)i;
}

static void program_make(Maker *m) {
    int16_t acc = NONE;
    homes_find(m, m->inst[m->ninsts - 1].job->pc);
    for (uint32_t left = m->ninsts; left; left--) {
        Inst *k = inst_pick(m, acc);
        if (acc != NONE) {
            Value *v = &m->value[acc];
            int now = takes(k, acc) ? (k->src == acc) + (k->src1 == acc) : 0;
            if (v->mem == NONE && (v->home != NONE || v->uses > now))
                value_keep(m, acc);
        }
        inst_add(m, k, acc);
        value_used(m, k->src);
        if (k->src1 != NONE)
            value_used(m, k->src1);
        acc = k->dst;
    }
    if (m->value[acc].home != NONE)
        value_keep(m, acc);
    for (uint32_t i = 0; i < m->nvalues; i++)
        if (m->value[i].late) {
            op_with(m, ENG_CHAIN_LOAD, (int16_t)i, 0);
            store_add(m, m->value[i].home);
        }
}

// --- in the memory of jobs ----------------------------------------------------------------------------------------

static const ChainPlace *prog_places(const ChainProg *p) { return (const ChainPlace *)(p + 1); }
static const ChainScalar *prog_scalars(const ChainProg *p) { return (const ChainScalar *)(prog_places(p) + p->nplaces); }
static const ChainReg *prog_regs(const ChainProg *p) { return (const ChainReg *)(prog_scalars(p) + p->nscalars); }
static const EngChainOp *prog_ops(const ChainProg *p) { return (const EngChainOp *)(prog_regs(p) + p->nregs); }

static bool prog_put(const Maker *m, EngJob *j, const EngLevel *eng) {
    ChainProg p = {eng, m->nplaces, m->nscalars, m->nregs, m->nops};
    size_t bytes = (size_t)((const uint8_t *)(prog_ops(&p) + p.nops) - (const uint8_t *)&p);
    if (bytes > m->ninsts * sizeof *j - offsetof(EngJob, arg))
        return false;
    j->is_chain = true;
    j->span = (uint8_t)m->ninsts;
    j->nhbm = 0;
    j->is_heavy = false;
    uint8_t *to = (uint8_t *)j + offsetof(EngJob, arg);
    ChainProg *q = (ChainProg *)to;
    *q = p;
    memcpy(to + ((const uint8_t *)prog_places(q) - to), m->place, p.nplaces * sizeof *m->place);
    memcpy(to + ((const uint8_t *)prog_scalars(q) - to), m->scalar, p.nscalars * sizeof *m->scalar);
    memcpy(to + ((const uint8_t *)prog_regs(q) - to), m->reg, p.nregs * sizeof *m->reg);
    memcpy(to + ((const uint8_t *)prog_ops(q) - to), m->op, p.nops * sizeof *m->op);
    return true;
}

static void maker_clear(Maker *m) {
    m->ninsts = m->nranges = m->nplaces = m->nvalues = m->nregs = m->nops = 0;
    m->scalar[0] = (ChainScalar){0};
    m->nscalars = 1;
    m->full = m->masks = m->gathered = false;
    m->npassed = m->npassed_ranges = 0;
    memset(m->slot, 0, sizeof m->slot);
}

// Those that were passed over, behind the chain at jobs[first].
static void passed_move(const Maker *m, EngJob *jobs, uint32_t first, const EngJob *copies) {
    for (uint32_t i = 0; i < m->npassed; i++)
        jobs[first + m->ninsts + i] = copies[i];
}

static void chain_make(Maker *m, EngJob *jobs, uint32_t first, uint32_t last, const EngLevel *eng) {
    EngJob copies[PASSED];
    while (m->npassed && m->passed[m->npassed - 1] > last)
        m->npassed--; // they are behind it anyway
    program_make(m);
    for (uint32_t i = 0; i < m->npassed; i++)
        copies[i] = jobs[m->passed[i]];
    if (!m->full && prog_put(m, &jobs[first], eng))
        passed_move(m, jobs, first, copies);
}

void chains_find(EngJob *jobs, uint32_t njobs, const EngLevel *eng) {
    Maker m;
    if (!eng->chain)
        return;
    for (uint32_t i = 0; i < njobs; i += jobs[i].span) {
        maker_clear(&m);
        uint32_t last = i;
        for (uint32_t k = i; k < njobs; k++)
            if (job_add(&m, &jobs[k]))
                last = k;
            else if (k == i || !job_pass(&m, &jobs[k], k))
                break;
        if (m.ninsts > 1)
            chain_make(&m, jobs, i, last, eng);
    }
}

// --- rows ---------------------------------------------------------------------------------------------------------

typedef struct Rows {
    const ChainProg *p;
    uint8_t *at[PLACES + SLOTS];
    float scalar[SCALARS];
    EngChainRed red[REDS];
    _Alignas(64) float slot[SLOTS][ENG_CHAIN_COLS];
    uint8_t mask[MASK_COLS];
} Rows;

static void row_begin(Rows *r, const EngBlock *b) {
    const ChainPlace *place = prog_places(r->p);
    const ChainScalar *one = prog_scalars(r->p);
    int64_t near = (int64_t)(b->row - b->first); // modulo 2^32, as first may lie before the part
    for (uint32_t i = 0; i < r->p->nplaces; i++) {
        r->at[i] = place[i].local ? b->local + (uintptr_t)place[i].at + near * place[i].pitch
                                  : place[i].at + b->row * place[i].pitch;
        if (place[i].is_mask)
            r->at[i] = memcpy(r->mask, r->at[i], b->cols);
    }
    for (uint32_t i = 0; i < r->p->nscalars; i++)
        if (one[i].at)
            memcpy(&r->scalar[i],
                   one[i].local ? b->local + (uintptr_t)one[i].at + near * one[i].pitch : one[i].at + b->row * one[i].pitch, 4);
    const ChainReg *reg = prog_regs(r->p);
    for (uint32_t i = 0; i < r->p->nregs; i++) {
        eff_reg_begin(&reg[i].reg, &reg[i].walk, &reg[i].load, b);
        r->red[i].acc = &reg[i].reg.acc[b->row];
    }
}

static void row_run(Rows *r, size_t cols) {
    const ChainProg *p = r->p;
    EngChain c = {prog_ops(p), p->nops, p->nregs, r->at, r->scalar, r->red};
    if (!p->nregs) {
        p->eng->chain(&c, cols);
        return;
    }
    for (size_t col = 0, n; col < cols; col += n) { // registers gather block by block
        n = cols - col < ENG_BLOCK ? cols - col : ENG_BLOCK;
        p->eng->chain(&c, n);
        for (uint32_t i = 0; i < p->nplaces; i++)
            r->at[i] += n * prog_places(p)[i].bytes;
    }
}

static __attribute__((noinline)) void rows_run(const EngJob *j, EngBlock *b, uint32_t end) {
    Rows r;
    r.p = (const ChainProg *)j->arg;
    const ChainReg *reg = prog_regs(r.p);
    for (uint32_t i = 0; i < SLOTS; i++)
        r.at[r.p->nplaces + i] = (uint8_t *)r.slot[i];
    for (uint32_t i = 0; i < r.p->nscalars; i++)
        r.scalar[i] = prog_scalars(r.p)[i].value;
    for (uint32_t i = 0; i < r.p->nregs; i++)
        r.red[i].op = reg[i].op;
    for (; b->row < end; b->row++) {
        row_begin(&r, b);
        row_run(&r, j->cols);
        for (uint32_t i = 0; i < r.p->nregs; i++)
            eff_reg_end(&reg[i].reg, &reg[i].walk, b);
    }
}

void chain_rows(const EngJob *j, uint32_t slice, uint32_t begin, uint32_t end, uint8_t *local) {
    uint32_t last = j->part + j->rows < end ? j->part + j->rows : end;
    uint32_t first = j->part > begin ? j->part : begin;
    if (first >= last)
        return;
    EngBlock b = {.row = first - j->part, .rows = 1, .cols = j->cols, .local = local, .first = slice - j->part};
    rows_run(j, &b, last - j->part);
}
