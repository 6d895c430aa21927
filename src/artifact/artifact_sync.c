// SPDX-License-Identifier: Apache-2.0
// artifact_sync.c — the waits a program needs, from the memory its instructions touch.
//
// The program is walked as it would run, loops and counters included, with track.h: an access that
// meets an earlier one on another engine or queue, not yet known to be complete, needs a wait for it.
// Waits count back (all but the last n of that engine have completed), so one number serves every
// iteration: the smallest that any of them needs. An instruction has room for two waits; for more,
// `wait` instructions are put before it, and since those count themselves the walk is done again.
//
// Long loops are not walked to their end: after enough iterations to see buffers turn round, what the
// rest would touch is remembered as the whole range the loop covers. Buffers may rotate over half of
// the iterations walked (WALK_MIN) at least. Jumps are not followed.
#include <stdio.h>

#include "artifact/artifact_regs.h"
#include "isa/build.h"
#include "isa/track.h"

#define WALK_BUDGET 300000u // instructions
#define WALK_MIN 6u         // iterations of a loop that is cut short
#define NO_NEED UINT32_MAX

typedef struct Need {
    uint32_t back[ORDER_SEMS]; // NO_NEED: none
} Need;

typedef struct Sync {
    Ctx *ctx;
    const Artifact *art;
    const char *name;
    Arena *arena;
    CodeLoops loops;
    struct Hull { // of an instruction's register terms, over all values
        __int128 lo[3], hi[3];
        bool known;
    } *hulls;
    uint64_t *walked; // iterations left of each loop
    uint64_t cap;
    int64_t regs[ISA_REGS];
    bool known[ISA_REGS];
    Track track;
    Order order;
    Need *needs;   // per instruction
    // of the instruction being looked at
    const IsaInst *in;
    uint32_t need[ORDER_SEMS];
    Clocks start;
} Sync;

_Noreturn static void fail(const Sync *s, uint32_t pc, const char *what) {
    const ArtLoc *l = &s->art->locs[s->art->code_loc ? s->art->code_loc[pc] : 0];
    bool known = l->file && *l->file;
    ctx_fail(s->ctx, OTRN_VERIFY, known ? (Place){l->file, l->line, l->col} : (Place){.file = s->name},
             "instruction %u (%s): %s", pc, isa_rows[s->art->code[pc].op].name, what);
}

// --- one instruction -----------------------------------------------------------------------------------

static void met(void *arg, const TrackEntry *e) {
    Sync *s = arg;
    if (s->start.n[e->sem] < e->ord && s->need[e->sem] < e->ord)
        s->need[e->sem] = e->ord;
}

static bool terms_of(const Sync *s, const IsaAccess *a, int64_t *out) {
    __int128 v = 0;
    for (int i = 0; a->reg && i < 2 && a->reg[i]; i++) {
        if (!s->known[a->reg[i] - 1])
            return false;
        v += (__int128)s->regs[a->reg[i] - 1] * a->mul[i];
    }
    *out = (int64_t)v;
    return v > -((__int128)1 << 41) && v < (__int128)1 << 41;
}

static Region everywhere(const Sync *s, const IsaAccess *a) {
    Region r = track_region(a, 0);
    bool ok;
    int space = addr_space(a->addr);
    uint64_t bytes = space == SPACE_HBM ? artifact_seg_bytes(s->art, addr_seg(a->addr), &ok)
                     : space == SPACE_SBUF ? ISA_SBUF_BYTES : ISA_PSUM_BYTES;
    return track_box(r.place, r.part0, r.part1, 0, (int64_t)bytes);
}

typedef struct Access {
    Region r;
    bool is_write;
} Access;

// Behind a core_barrier the other core may be at anything in HBM, and before it this core must be done with it.
static uint32_t all_of_hbm(const Sync *s, Access **out) {
    uint32_t n = SEG_FIRST_ARG + s->art->nargs + s->art->nresults, total = 0;
    *out = ARENA_NEWN(s->arena, Access, n);
    for (uint32_t i = 0; i < n; i++) {
        bool ok;
        uint64_t bytes = artifact_seg_bytes(s->art, i, &ok);
        if (bytes && i != SEG_CONST)
            (*out)[total++] = (Access){track_box(i, 0, 1, 0, (int64_t)bytes), true};
    }
    return total;
}

// All regions of an instruction, a kernel's tensors included.
static uint32_t regions_of(const Sync *s, const IsaInst *in, Access **out) {
    IsaAccess a[ISA_ACCESS_MAX];
    int cost = isa_rows[in->op].cost;
    if (in->op == ISA_CORE_BARRIER)
        return all_of_hbm(s, out);
    const Kern *k = (cost == COST_KERNEL || cost == COST_COLLECTIVE) && (uint32_t)in->imm < s->art->nkerns
                        ? &s->art->kerns[in->imm] : NULL;
    int n = isa_accesses(in, isa_row_mask(in->op), a);
    uint32_t total = (uint32_t)n + (k ? k->nin + k->nout : 0);
    if (total > 16)
        *out = ARENA_NEWN(s->arena, Access, total);
    for (int i = 0; i < n; i++) {
        int64_t terms;
        (*out)[i].r = terms_of(s, &a[i], &terms) ? track_region(&a[i], terms) : everywhere(s, &a[i]);
        (*out)[i].is_write = a[i].is_write;
    }
    for (uint32_t i = 0; k && i < k->nin + k->nout; i++) {
        const KTensor *t = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
        int64_t at = (int64_t)addr_off(t->addr), bytes = t->elems * (int64_t)dtype_bytes(t->dtype);
        (*out)[n + (int)i] = (Access){track_box(addr_seg(t->addr), 0, 1, at, at + (bytes ? bytes : 1)),
                                      i >= k->nin};
    }
    return total;
}

// Needs that another need brings with it go.
static void needs_reduce(Sync *s) {
    for (int u = 0; u < ORDER_SEMS; u++)
        for (int v = 0; v < ORDER_SEMS && s->need[u]; v++) {
            if (u == v || !s->need[v])
                continue;
            Clocks c = {0};
            order_join(&s->order, &c, v, s->need[v]);
            if (c.n[u] >= s->need[u])
                s->need[u] = 0;
        }
}

static void visit(Sync *s, uint32_t pc) {
    const IsaInst *in = &s->art->code[pc];
    Access room[16], *a = room;
    uint32_t n = regions_of(s, in, &a);
    s->in = in;
    s->start = order_start(&s->order, in);
    memset(s->need, 0, sizeof s->need);
    for (uint32_t i = 0; i < n; i++)
        track_meet(&s->track, &a[i].r, a[i].is_write, met, s);
    needs_reduce(s);
    for (int u = 0; u < ORDER_SEMS; u++)
        if (s->need[u]) {
            uint32_t back = s->order.issued.n[u] - s->need[u];
            if (back < s->needs[pc].back[u])
                s->needs[pc].back[u] = back;
            order_wait(&s->order, in, u, s->need[u]);
        }
    uint32_t ord = order_run(&s->order, in);
    for (uint32_t i = 0; i < n; i++)
        track_add(&s->track, &a[i].r, a[i].is_write, isa_sem(in), ord, pc);
    if (in->op == ISA_BARRIER) {
        order_barrier(&s->order);
        track_clear(&s->track);
    }
}

// --- the walk ------------------------------------------------------------------------------------------

static CodeLoop *loop_at(const Sync *s, uint32_t begin) {
    uint32_t l = s->loops.inner[begin + 1];
    return &s->loops.at[l - 1];
}

// What the iterations not walked would have touched, as done by the last instruction of each engine.
static void rest_of_loop(Sync *s, const CodeLoop *l) {
    for (uint32_t pc = l->begin + 1; pc < l->end; pc++) {
        const IsaInst *in = &s->art->code[pc];
        const struct Hull *h = &s->hulls[pc];
        IsaAccess a[ISA_ACCESS_MAX];
        int n = isa_accesses(in, isa_row_mask(in->op), a);
        for (int i = 0; i < n; i++) {
            if (!a[i].reg)
                continue;
            int which = a[i].field == ISA_F_dst ? 0 : a[i].field == ISA_F_src ? 1 : 2;
            Region r = track_region(&a[i], 0);
            r = h->known ? track_box(r.place, r.part0, r.part1, r.lo + (int64_t)h->lo[which],
                                      r.hi + (int64_t)h->hi[which])
                         : everywhere(s, &a[i]);
            track_add(&s->track, &r, a[i].is_write, isa_sem(in), s->order.issued.n[isa_sem(in)], pc);
        }
    }
}

static void step_register(Sync *s, const IsaInst *in) {
    bool known = in->op != ISA_REG_LOAD && (!in->breg || s->known[in->breg - 1]);
    int64_t y = in->breg ? s->regs[in->breg - 1] : in->value, x = s->regs[in->areg];
    if (in->op == ISA_REG_ALU)
        known &= s->known[in->areg];
    s->known[in->reg] = known;
    s->regs[in->reg] = in->op == ISA_REG_ALU ? isa_alu_reg(in->op0, x, y) : y;
}

static void walk(Sync *s) {
    const Artifact *art = s->art;
    memset(s->regs, 0, sizeof s->regs);
    memset(s->known, 1, sizeof s->known);
    for (uint32_t pc = 0; pc < art->ncode; pc++) {
        const IsaInst *in = &art->code[pc];
        if (isa_rows[in->op].cost == COST_BRANCH || (in->op == ISA_LOOP && in->breg))
            fail(s, pc, ".sync auto follows loops of known length, not jumps");
        visit(s, pc);
        if (in->op == ISA_HALT)
            break;
        if (in->op == ISA_LOOP) {
            CodeLoop *l = loop_at(s, pc);
            s->regs[in->reg] = in->value;
            s->known[in->reg] = true;
            s->walked[l - s->loops.at] = 1;
            if (!l->trips)
                pc = l->end;
        } else if (in->op == ISA_ENDLOOP) {
            const IsaInst *head = &art->code[in->imm];
            CodeLoop *l = loop_at(s, (uint32_t)in->imm);
            uint64_t *walked = &s->walked[l - s->loops.at];
            s->regs[head->reg] += head->step;
            if (*walked >= l->trips)
                continue;
            if (*walked >= s->cap) {
                rest_of_loop(s, l);
                continue;
            }
            ++*walked;
            pc = l->begin;
        } else if (isa_rows[in->op].cost == COST_REG || in->op == ISA_REG_LOAD) {
            step_register(s, in);
        }
    }
}

// Instructions a walk takes when no loop goes further than cap.
static double walk_length(const Sync *s, uint64_t cap) {
    double total = 0;
    for (uint32_t pc = 0; pc < s->art->ncode; pc++) {
        double times = 1;
        for (uint32_t l = s->loops.inner[pc]; l; l = s->loops.at[l - 1].outer) {
            uint64_t trips = s->loops.at[l - 1].trips;
            times *= (double)(trips < cap ? trips : cap);
        }
        total += times;
    }
    return total;
}

static void prepare(Sync *s) {
    const Artifact *art = s->art;
    uint32_t pc = 0;
    const char *bad = code_loops(s->arena, art, &s->loops, &pc);
    if (bad)
        fail(s, pc, bad);
    s->walked = ARENA_NEWN(s->arena, uint64_t, s->loops.n + 1);
    s->hulls = ARENA_NEWN(s->arena, struct Hull, (size_t)art->ncode + 1);
    s->needs = ARENA_NEWN(s->arena, Need, (size_t)art->ncode + 1);
    memset(s->needs, 0xff, sizeof *s->needs * ((size_t)art->ncode + 1));
    s->cap = UINT64_MAX;
    for (uint64_t cap = 64; walk_length(s, s->cap) > WALK_BUDGET && s->cap > WALK_MIN; cap = cap * 3 / 4)
        s->cap = cap < WALK_MIN ? WALK_MIN : cap;
    RegState regs;
    regs_init(&regs, &s->loops);
    for (pc = 0; pc < art->ncode; pc++) {
        const IsaInst *in = &art->code[pc];
        IsaAccess a[ISA_ACCESS_MAX];
        char why[ISA_WHY];
        if (isa_check(in, isa_row_mask(in->op), &isa_chip_largest, why)) // before registers are looked up
            fail(s, pc, why);
        regs_enter(&regs, pc);
        int n = isa_accesses(in, isa_row_mask(in->op), a);
        s->hulls[pc].known = true;
        for (int i = 0; i < n; i++) {
            int which = a[i].field == ISA_F_dst ? 0 : a[i].field == ISA_F_src ? 1 : 2;
            if (a[i].reg)
                s->hulls[pc].known &= regs_terms(&regs, &a[i], &s->hulls[pc].lo[which], &s->hulls[pc].hi[which]);
        }
        regs_step(&regs, in, pc);
    }
    track_init(&s->track, s->arena);
    order_init(&s->order, s->arena);
}

// --- waits into the code -------------------------------------------------------------------------------

static int needs_count(const Need *n) {
    int count = 0;
    for (int u = 0; u < ORDER_SEMS; u++)
        count += n->back[u] != NO_NEED;
    return count;
}

static int free_slots(const IsaInst *in) {
    return (in->wait_sem[0] == SEM_NONE) + (in->wait_sem[1] == SEM_NONE);
}

static void wait_put(IsaInst *in, int sem, uint32_t back) {
    int w = in->wait_sem[0] == SEM_NONE ? 0 : 1;
    in->wait_sem[w] = (uint8_t)(sem | SEM_BACK);
    in->wait_val[w] = back;
}

// Room for all waits: `wait` instructions before those that need more than two. Places in the code move.
static void make_room(Arena *a, Artifact *art, const Need *needs, uint32_t **owner) {
    uint32_t *moved = ARENA_NEWN(a, uint32_t, (size_t)art->ncode + 1), n = 0;
    for (uint32_t i = 0; i <= art->ncode; i++) {
        moved[i] = n;
        if (i < art->ncode) {
            int extra = needs_count(&needs[i]) - free_slots(&art->code[i]);
            n += 1 + (extra > 0 ? (uint32_t)(extra + 1) / 2 : 0);
        }
    }
    IsaInst *code = ARENA_NEWN(a, IsaInst, (size_t)n + 1);
    uint32_t *loc = ARENA_NEWN(a, uint32_t, (size_t)n + 1);
    *owner = ARENA_NEWN(a, uint32_t, (size_t)n + 1);
    for (uint32_t i = 0; i < art->ncode; i++) {
        uint32_t last = moved[i + 1] - 1;
        for (uint32_t k = moved[i]; k <= last; k++) {
            code[k] = isa_wait_before(&art->code[i]);
            loc[k] = art->code_loc[i];
            (*owner)[k] = last;
        }
        code[last] = art->code[i];
        if (isa_rows[code[last].op].cost == COST_LOOP) // to the instruction itself, behind its waits
            code[last].imm = (int32_t)moved[code[last].imm + 1] - 1;
    }
    for (uint32_t i = 0; i < art->nloops; i++) {
        art->loops[i].begin = moved[art->loops[i].begin];
        art->loops[i].end = moved[art->loops[i].end];
    }
    art->code = code;
    art->code_loc = loc;
    art->ncode = n;
}

void artifact_sync(Ctx *ctx, Arena *a, Artifact *art, const char *name) {
    Arena scratch;
    arena_init(&scratch, ctx);
    jmp_buf here, *outer = ctx->on_fail;
    Sync *volatile s = ARENA_NEW(a, Sync);
    uint32_t *volatile owner = NULL;
    if (!CTX_TRY(ctx, here)) {
        ctx->on_fail = outer;
        arena_fini(&scratch);
        longjmp(*outer, 1);
    }
    *s = (Sync){.ctx = ctx, .art = art, .name = name, .arena = &scratch};
    prepare(s);
    walk(s);
    uint32_t *own;
    make_room(a, art, s->needs, &own);
    owner = own;
    *s = (Sync){.ctx = ctx, .art = art, .name = name, .arena = &scratch};
    prepare(s);
    walk(s);
    for (uint32_t pc = 0; pc < art->ncode; pc++) { // a need goes to the first free slot at or before it
        uint32_t at = pc;
        while (at > 0 && owner[at - 1] == pc)
            at--;
        for (int u = 0; u < ORDER_SEMS; u++)
            if (s->needs[pc].back[u] != NO_NEED && owner[pc] == pc) {
                while (at < pc && !free_slots(&art->code[at]))
                    at++;
                uint32_t back = s->needs[pc].back[u];
                if (u == art->code[pc].engine) // the waits put in before it stand between
                    back = back > pc - at ? back - (pc - at) : 0;
                wait_put(&art->code[at], u, back);
            }
    }
    ctx->on_fail = outer;
    arena_fini(&scratch);
}
