// SPDX-License-Identifier: Apache-2.0
// check.c — the watch over a run: shadow bits and vector clocks.
//
// The run itself is in program order, which is one legal execution (ARCHITECTURE, decision 6). The
// semaphores must make every other one give the same memory: two accesses to the same bytes, one of them a write,
// have to be ordered by waits, by their engine or by their queue. isa/track.h tells both: which earlier accesses
// overlap, and which instructions have surely completed when this one starts. A DMA starts when its sequencer
// has done its waits; what that engine computes before is not complete by that alone.
//
// The two cores of a pair share HBM (check_pair.h): what the other core did to it must be known complete too, by what
// it knew when it came to the last meeting.
//
// Every byte of SBUF, PSUM, HBM scratch and of results has a bit: written since the run began.
#include "chip/core/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coll/comm.h"
#include "isa/track.h"

typedef struct Signal { // of one of the program's own semaphores
    Clocks known;       // once it is given
    int64_t value;      // the semaphore's after it
    int sem;            // engine or queue that gave it
} Signal;

struct ChipCheck {
    const Artifact *art;
    Arena *arena;
    Track track;
    Order order;
    Clocks barrier; // counts at the last barrier
    VEC(Signal) signals[USER_SEMS];
    uint8_t **written; // bits per segment; NULL: all of it was there from the begin
    uint8_t *sbuf, *psum; // bits, partition by partition
    CheckPair *pair;      // NULL: this core is alone
    int core;             // of the pair
    Clocks theirs;        // what the other core knew when it came to the meeting
    // while a step looks around
    Clocks start;
    TrackEntry race;
    bool has_race;
    int race_base; // ORDER_SEMS when looking at what the other core did, else 0
};

// Segments that a run writes before it reads them.
static uint8_t **written_make(Arena *a, const Artifact *art) {
    uint32_t nsegs = SEG_FIRST_ARG + art->nargs + art->nresults;
    uint8_t **bits = ARENA_NEWN(a, uint8_t *, nsegs);
    for (uint32_t i = 0; i < nsegs; i++) {
        bool ok, is_result = i >= SEG_FIRST_ARG + art->nargs;
        if (i == SEG_SCRATCH || (is_result && art->results[i - SEG_FIRST_ARG - art->nargs].alias < 0))
            bits[i] = ARENA_NEWN(a, uint8_t, artifact_seg_bytes(art, i, &ok) / 8 + 1);
    }
    return bits;
}

ChipCheck *chip_check_make(Arena *a, const Artifact *art, CheckPair *pair, const CommRank *comm) {
    int core = comm ? (int)comm_core(comm) : 0;
    if (pair)
        check_pair_take(pair, core);
    ChipCheck *c = ARENA_NEW(a, ChipCheck);
    c->art = art;
    c->arena = a;
    c->pair = pair;
    c->core = core;
    track_init(&c->track, a);
    order_init(&c->order, a);
    c->written = pair && pair->written ? pair->written : written_make(a, art);
    if (pair) {
        pair->art[core] = art;
        pair->written = c->written;
        track_init(&pair->hbm[core], a);
    }
    c->sbuf = ARENA_NEWN(a, uint8_t, (size_t)PARTITIONS * ISA_SBUF_BYTES / 8);
    c->psum = ARENA_NEWN(a, uint8_t, (size_t)PARTITIONS * ISA_PSUM_BYTES / 8);
    return c;
}

// --- shadow bits ---------------------------------------------------------------------------------------

static int64_t first_clear(const uint8_t *bits, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; i++) {
        if (!(i & 7) && i + 8 <= hi && bits[i / 8] == 0xff) {
            i += 7;
            continue;
        }
        if (!(bits[i / 8] >> (i & 7) & 1))
            return i;
    }
    return -1;
}

static void set_bits(uint8_t *bits, int64_t lo, int64_t hi) {
    for (; lo < hi && lo & 7; lo++)
        bits[lo / 8] |= (uint8_t)(1 << (lo & 7));
    if (hi - lo >= 8) {
        memset(bits + lo / 8, 0xff, (size_t)((hi - lo) / 8));
        lo += (hi - lo) / 8 * 8;
    }
    for (; lo < hi; lo++)
        bits[lo / 8] |= (uint8_t)(1 << (lo & 7));
}

// All runs of a region in one partition: sets them, or finds the first byte not written. -1: none.
static int64_t runs_do(const Region *r, int axis, int64_t base, uint8_t *bits, bool set) {
    if (axis == r->n) {
        if (!set)
            return first_clear(bits, base, base + r->run);
        set_bits(bits, base, base + r->run);
        return -1;
    }
    for (uint32_t i = 0; i < r->count[axis]; i++) {
        int64_t bad = runs_do(r, axis + 1, base + (int64_t)i * r->stride[axis], bits, set);
        if (bad >= 0)
            return bad;
    }
    return -1;
}

static uint8_t *bits_of(const ChipCheck *c, const Region *r, uint32_t part) {
    int space = (int)(r->place >> 16);
    return space == SPACE_SBUF   ? c->sbuf + (size_t)part * ISA_SBUF_BYTES / 8
           : space == SPACE_PSUM ? c->psum + (size_t)part * ISA_PSUM_BYTES / 8
                                 : c->written[r->place & 0xffff];
}

// Operands that an instruction reads here and there only.
static bool reads_parts(const IsaInst *in, int field) {
    switch (in->op) {
    case ISA_DMA_INDIRECT:
    case ISA_LOCAL_GATHER:
    case ISA_N_GATHER:
        return field == ISA_F_src;
    case ISA_LDWEIGHTS_MX:
    case ISA_MATMUL_MX:
        return field == ISA_F_src1;
    case ISA_NONZERO:
    case ISA_TOPK:
        return true;
    default:
        return false;
    }
}

// --- one instruction -----------------------------------------------------------------------------------

typedef struct Touch {
    Region r;
    bool is_write, may_be_unset;
} Touch;

// A result in the memory of its argument is that argument's memory.
static uint32_t place_of(const Artifact *art, uint32_t place) {
    uint32_t first = SEG_FIRST_ARG + art->nargs;
    if (place >> 16 != SPACE_HBM || place < first || place - first >= art->nresults)
        return place;
    int32_t alias = art->results[place - first].alias;
    return alias >= 0 ? SEG_FIRST_ARG + (uint32_t)alias : place;
}

static uint32_t touches_of(ChipCheck *c, const IsaInst *in, const int64_t *regs, Touch **out) {
    IsaAccess a[ISA_ACCESS_MAX];
    const Artifact *art = c->art;
    int cost = isa_rows[in->op].cost, n = isa_accesses(in, isa_row_mask(in->op), a);
    const Kern *k = cost == COST_KERNEL || cost == COST_COLLECTIVE ? &art->kerns[in->imm] : NULL;
    uint32_t total = (uint32_t)n + (k ? k->nin + k->nout : 0);
    if (total > 16)
        *out = ARENA_NEWN(c->arena, Touch, total);
    for (int i = 0; i < n; i++) {
        int64_t terms = 0;
        for (int t = 0; a[i].reg && t < 2 && a[i].reg[t]; t++)
            terms += regs[a[i].reg[t] - 1] * a[i].mul[t];
        (*out)[i] = (Touch){track_region(&a[i], terms), a[i].is_write,
                            !a[i].is_write && reads_parts(in, a[i].field)};
    }
    for (uint32_t i = 0; k && i < k->nin + k->nout; i++) {
        const KTensor *t = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
        int64_t at = (int64_t)addr_off(t->addr), bytes = t->elems * (int64_t)dtype_bytes(t->dtype);
        (*out)[n + (int)i] = (Touch){track_box(addr_seg(t->addr), 0, 1, at, at + bytes), i >= k->nin, false};
    }
    for (uint32_t i = 0; i < total; i++)
        (*out)[i].r.place = place_of(art, (*out)[i].r.place);
    return total;
}

static void place_print(const ChipCheck *c, const Region *r, int64_t at, uint32_t part, char *out, size_t n) {
    uint32_t seg = r->place & 0xffff, args = SEG_FIRST_ARG + c->art->nargs;
    int space = (int)(r->place >> 16);
    if (space != SPACE_HBM)
        snprintf(out, n, "%s[%u:%" PRId64 "]", space == SPACE_SBUF ? "sbuf" : "psum", part, at);
    else if (seg < SEG_FIRST_ARG)
        snprintf(out, n, "%s[%" PRId64 "]", seg == SEG_CONST ? "const" : "scratch", at);
    else
        snprintf(out, n, "%s%u[%" PRId64 "]", seg < args ? "arg" : "result", seg - (seg < args ? SEG_FIRST_ARG : args), at);
}

static void inst_print(const Artifact *art, uint32_t pc, char *out, size_t n) {
    const IsaInst *in = &art->code[pc];
    uint32_t loc = art->code_loc[pc], line = art->locs[loc].line;
    int used = snprintf(out, n, "instruction %u (%s: %s", pc, engine_names[in->engine], isa_rows[in->op].name);
    if (line && used > 0 && (size_t)used < n)
        used += snprintf(out + used, n - (size_t)used, ", line %u", line);
    if (used > 0 && (size_t)used < n)
        snprintf(out + used, n - (size_t)used, ")");
}

static bool is_hbm(const Touch *t) { return t->r.place >> 16 == SPACE_HBM; }

static otrn_status unwritten(ChipCheck *c, uint32_t pc, const Touch *t, char *why, size_t why_bytes) {
    for (uint32_t p = t->r.part0; p < t->r.part1; p++) {
        uint8_t *bits = bits_of(c, &t->r, p);
        int64_t at = bits ? runs_do(&t->r, 0, t->r.base, bits, t->is_write) : -1;
        if (at < 0)
            continue;
        char inst[128], place[48];
        inst_print(c->art, pc, inst, sizeof inst);
        place_print(c, &t->r, at, p, place, sizeof place);
        if (c->pair && !c->core && is_hbm(t)) { // core 1 may be about to write it: then that race is the error to tell
            check_pair_give(c->pair, c->core);
            check_pair_take(c->pair, c->core);
        }
        snprintf(why, why_bytes, "%s reads %s, which nothing has written", inst, place);
        return OTRN_VERIFY;
    }
    return OTRN_OK;
}

static void meet(void *arg, const TrackEntry *e) {
    ChipCheck *c = arg;
    if (c->start.n[c->race_base + e->sem] < e->ord && !c->has_race) {
        c->race = *e;
        c->has_race = true;
    }
}

static otrn_status race_tell(const ChipCheck *c, uint32_t pc, const Touch *t, char *why, size_t why_bytes) {
    const Region *old = &c->race.r;
    int64_t lo = old->lo > t->r.lo ? old->lo : t->r.lo, hi = old->hi < t->r.hi ? old->hi : t->r.hi;
    uint32_t part = old->part0 > t->r.part0 ? old->part0 : t->r.part0;
    char now[128], before[128], place[48], sem[ISA_SEM_NAME];
    inst_print(c->art, pc, now, sizeof now);
    inst_print(c->race_base ? c->pair->art[1 - c->core] : c->art, c->race.pc, before, sizeof before);
    place_print(c, &t->r, lo, part, place, sizeof place);
    if (c->race_base) {
        snprintf(why, why_bytes, "race: %s %s %s (%" PRId64 " bytes on) that %s of core %d %s, and no meeting orders them: "
                 "each core finishes its accesses before a core_barrier between them, and begins them behind it",
                 now, t->is_write ? "writes" : "reads", place, hi - lo, before, 1 - c->core, c->race.is_write ? "writes" : "reads");
        return OTRN_VERIFY;
    }
    isa_sem_name(c->race.sem, sem);
    snprintf(why, why_bytes, "race: %s %s %s (%" PRId64 " bytes on) that %s %s, and no semaphore orders them: wait for %s",
             now, t->is_write ? "writes" : "reads", place, hi - lo, before,
             c->race.is_write ? "writes" : "reads", sem);
    return OTRN_VERIFY;
}

// --- semaphores ----------------------------------------------------------------------------------------

// What a wait for `s >= n` brings: the signal that reached n when all come from one engine, all of them when they
// are all needed; else nothing is sure.
static void wait_own(ChipCheck *c, const IsaInst *in, int sem, int64_t n) {
    const Signal *at = c->signals[sem].at;
    uint32_t count = c->signals[sem].n;
    bool one = true;
    for (uint32_t i = 1; i < count; i++)
        one &= at[i].sem == at[0].sem;
    for (uint32_t i = 0; i < count; i++) {
        if (!one && at[count - 1].value != n)
            return;
        for (int u = 0; u < ORDER_ALL; u++)
            if (at[i].known.n[u] > c->order.seq[isa_seq(in)].n[u])
                c->order.seq[isa_seq(in)].n[u] = at[i].known.n[u];
        if (one && at[i].value >= n)
            return;
    }
}

static void do_waits(ChipCheck *c, const IsaInst *in) {
    for (int w = 0; w < 2; w++) {
        int sem = in->wait_sem[w];
        uint32_t val = in->wait_val[w];
        if (sem == SEM_NONE)
            continue;
        if (sem & SEM_BACK) {
            sem &= ~SEM_BACK;
            if (c->order.issued.n[sem] > val)
                order_wait(&c->order, in, sem, c->order.issued.n[sem] - val);
        } else if (sem < SEM_USER) {
            if (val)
                order_wait(&c->order, in, sem, c->barrier.n[sem] + val);
        } else {
            wait_own(c, in, sem - SEM_USER, val);
        }
    }
}

static void do_signal(ChipCheck *c, const IsaInst *in, uint32_t ord) {
    if (!in->upd_sem)
        return;
    int s = in->upd_sem - 1, op = in->upd_op & ~UPD_AT_READ;
    bool at_read = in->upd_op & UPD_AT_READ;
    int64_t value = c->signals[s].n ? c->signals[s].at[c->signals[s].n - 1].value : 0;
    Signal g = {.known = c->start, .sem = isa_sem(in)};
    g.value = op == UPD_ADD ? value + in->upd_val : op == UPD_SUB ? value - in->upd_val : in->upd_val;
    g.known.n[g.sem] = at_read ? ord - 1 : ord;
    if (op != UPD_ADD)
        c->signals[s].n = 0;
    VEC_PUSH(c->arena, &c->signals[s], g);
}

// --- the other core --------------------------------------------------------------------------------------

static bool is_meeting(const IsaInst *in) { return in->op == ISA_CORE_BARRIER || in->op == ISA_SENDRECV; }

bool chip_check_meets(const ChipCheck *c, uint32_t pc) {
    return c->pair && is_meeting(&c->art->code[pc]);
}

// HBM accesses against those of the other core, then remembered for it.
static otrn_status meet_other(ChipCheck *c, uint32_t pc, const Touch *t, uint32_t n, uint32_t ord, char *why, size_t why_bytes) {
    c->race_base = ORDER_SEMS;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_hbm(&t[i]) || t[i].r.hi <= t[i].r.lo)
            continue;
        track_meet(&c->pair->hbm[1 - c->core], &t[i].r, t[i].is_write, meet, c);
        if (c->has_race)
            return race_tell(c, pc, &t[i], why, why_bytes);
    }
    c->race_base = 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_hbm(&t[i]) && t[i].r.hi > t[i].r.lo)
            track_add(&c->pair->hbm[c->core], &t[i].r, t[i].is_write, isa_sem(&c->art->code[pc]), ord, pc);
    return OTRN_OK;
}

// A meeting completes once both have come: whatever follows it knows what both knew then.
otrn_status chip_check_met(ChipCheck *c, uint32_t pc, const int64_t *regs, char *why, size_t why_bytes) {
    const IsaInst *in = &c->art->code[pc];
    check_pair_take(c->pair, c->core);
    if (!c->core)
        c->theirs = c->pair->offer[1];
    int sem = isa_sem(in);
    order_met(&c->order, sem, &c->theirs);
    c->start = c->order.last[sem];
    c->start.n[sem] = c->order.issued.n[sem] - 1;
    Touch room[16], *t = room;
    uint32_t n = touches_of(c, in, regs, &t);
    otrn_status s = meet_other(c, pc, t, n, c->order.issued.n[sem], why, why_bytes);
    do_signal(c, in, c->order.issued.n[sem]);
    return s;
}

static void come_to_meeting(ChipCheck *c) {
    c->pair->offer[c->core] = c->start;
    c->theirs = c->pair->offer[0]; // core 0 was there first; it takes core 1's when they have met
    check_pair_give(c->pair, c->core);
}

otrn_status chip_check_step(ChipCheck *c, uint32_t pc, const int64_t *regs, char *why, size_t why_bytes) {
    const IsaInst *in = &c->art->code[pc];
    Touch room[16], *t = room;
    uint32_t n = touches_of(c, in, regs, &t);
    do_waits(c, in);
    c->start = order_start(&c->order, in);
    c->has_race = false;
    for (uint32_t i = 0; i < n; i++) {
        if (t[i].r.hi <= t[i].r.lo)
            continue;
        track_meet(&c->track, &t[i].r, t[i].is_write, meet, c);
        if (c->has_race)
            return race_tell(c, pc, &t[i], why, why_bytes);
    }
    bool meets = c->pair && is_meeting(in);
    uint32_t ord = order_run(&c->order, in);
    if (c->pair && !meets && meet_other(c, pc, t, n, ord, why, why_bytes) != OTRN_OK)
        return OTRN_VERIFY;
    for (uint32_t i = 0; i < n; i++)
        if (!t[i].may_be_unset && unwritten(c, pc, &t[i], why, why_bytes) != OTRN_OK)
            return OTRN_VERIFY;
    for (uint32_t i = 0; i < n; i++)
        if (t[i].r.hi > t[i].r.lo)
            track_add(&c->track, &t[i].r, t[i].is_write, isa_sem(in), ord, pc);
    if (meets) {
        come_to_meeting(c);
        return OTRN_OK;
    }
    do_signal(c, in, ord);
    if (in->op == ISA_BRANCH) // every sequencer follows it, so none goes on before it is decided
        for (int e = 0; e < ISA_SEQS; e++)
            order_join(&c->order, &c->order.seq[e], ENG_SYNC, ord);
    if (in->op == ISA_BARRIER) {
        order_barrier(&c->order);
        track_clear(&c->track);
        c->barrier = c->order.issued;
        for (int s = 0; s < USER_SEMS; s++)
            c->signals[s].n = 0;
    }
    return OTRN_OK;
}
