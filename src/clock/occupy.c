// SPDX-License-Identifier: Apache-2.0
// occupy.c — how full HBM, SBUF and PSUM are while a program runs.
//
// A piece of memory is occupied from a write to the last read of what was written. The memories are cut
// into grains; going through the timeline, each grain remembers the box that was touched in it since
// it was filled, when that was and when it was last read, and adds itself to the bins between when it is
// filled anew: a bin tells all that was in use in its part of the run. Arguments, constants and results are in HBM all the time. Addresses that move with a loop's counter
// stand for all places the loop reaches. Where the clock added iterations of a loop at once, the bins
// repeat what was before.
#include <math.h>

#include "artifact/artifact_regs.h"
#include "clock/view.h"

#define GRAINS 4096 // of a memory, at most
#define GROUP 32    // partitions of one grain

typedef struct Grain {
    double from, until; // filled; last read. from < 0: empty
    uint32_t lo, hi;    // bytes of it touched, in a partition
    uint8_t p0, p1;     // partitions of the group touched
    uint32_t counted;   // in the bins before this one
} Grain;

typedef struct Memory {
    uint64_t grain_bytes, bytes; // a partition's, or of HBM scratch
    uint32_t columns;            // grains over a partition, or over HBM
    uint32_t groups;
    Grain *grains;
    double *add; // difference array over bins
} Memory;

typedef struct Occupy {
    Arena *arena;
    const Artifact *art;
    double ns_per_bin;
    Memory memory[VIEW_MEMORIES];
    ViewTouch **touches; // per instruction, made when first met
    uint32_t *counts;
} Occupy;

static void memory_init(Occupy *o, int which, uint64_t bytes, uint32_t partitions) {
    Memory *m = &o->memory[which];
    m->bytes = bytes;
    m->grain_bytes = which == VIEW_HBM ? (bytes / GRAINS + 63) / 64 * 64 : which == VIEW_SBUF ? 512 : 256;
    m->grain_bytes = m->grain_bytes ? m->grain_bytes : 64;
    m->columns = (uint32_t)((bytes + m->grain_bytes - 1) / m->grain_bytes);
    m->groups = (partitions + GROUP - 1) / GROUP;
    m->grains = ARENA_NEWN(o->arena, Grain, (size_t)m->columns * m->groups + 1);
    for (uint32_t i = 0; i < m->columns * m->groups; i++)
        m->grains[i].from = -1;
    m->add = ARENA_NEWN(o->arena, double, VIEW_BINS + 1);
}

static uint32_t bin_of(const Occupy *o, double ns) {
    double b = ns / o->ns_per_bin;
    return b < 0 ? 0 : b >= VIEW_BINS ? VIEW_BINS - 1 : (uint32_t)b;
}

// Counts once in each bin, however often it is filled in that time.
static void grain_close(const Occupy *o, Memory *m, Grain *g) {
    if (g->from >= 0 && g->until > g->from) {
        double bytes = (double)(g->hi - g->lo) * (g->p1 - g->p0);
        uint32_t first = bin_of(o, g->from), last = bin_of(o, g->until);
        first = first < g->counted ? g->counted : first;
        if (first <= last) {
            m->add[first] += bytes;
            m->add[last + 1] -= bytes;
            g->counted = last + 1;
        }
    }
    g->from = -1;
}

static void grain_write(const Occupy *o, Memory *m, Grain *g, double ns, const Grain *box) {
    if (g->from >= 0 && g->until > g->from)
        grain_close(o, m, g);
    if (g->from < 0) {
        uint32_t counted = g->counted;
        *g = *box;
        g->counted = counted;
        g->from = g->until = ns;
        return;
    }
    g->lo = box->lo < g->lo ? box->lo : g->lo;
    g->hi = box->hi > g->hi ? box->hi : g->hi;
    g->p0 = box->p0 < g->p0 ? box->p0 : g->p0;
    g->p1 = box->p1 > g->p1 ? box->p1 : g->p1;
}

static void touch_grains(Occupy *o, const ViewTouch *t, double begin, double end) {
    Memory *m = &o->memory[t->memory];
    for (uint32_t group = t->part0 / GROUP; group < m->groups && group * GROUP < t->part1; group++)
        for (uint64_t c = t->lo / m->grain_bytes; c < m->columns && c * m->grain_bytes < t->hi; c++) {
            Grain *g = &m->grains[group * m->columns + c];
            uint64_t base = c * m->grain_bytes, last = base + m->grain_bytes;
            Grain box = {.lo = (uint32_t)(t->lo > base ? t->lo - base : 0),
                         .hi = (uint32_t)((t->hi < last ? t->hi : last) - base),
                         .p0 = (uint8_t)(t->part0 > group * GROUP ? t->part0 - group * GROUP : 0),
                         .p1 = (uint8_t)(t->part1 < (group + 1) * GROUP ? t->part1 - group * GROUP : GROUP)};
            if (t->is_write)
                grain_write(o, m, g, begin, &box);
            else if (g->from >= 0 && end > g->until)
                g->until = end;
        }
}

// --- what an instruction touches -----------------------------------------------------------------

static bool touch_of(const Occupy *o, const RegState *regs, const IsaAccess *a, ViewTouch *t) {
    static const uint8_t which[] = {VIEW_HBM, VIEW_SBUF, VIEW_PSUM};
    int space = addr_space(a->addr);
    if (space > SPACE_PSUM || (space == SPACE_HBM && addr_seg(a->addr) != SEG_SCRATCH))
        return false;
    __int128 lo, hi, from, to, bytes = o->memory[which[space]].bytes;
    isa_access_extent(a, &lo, &hi);
    __int128 at = space == SPACE_HBM ? (__int128)addr_off(a->addr) : addr_poff(a->addr);
    bool known = regs_terms(regs, a, &from, &to);
    lo = known ? at + lo + from : 0;
    hi = known ? at + hi + to : bytes;
    lo = lo < 0 ? 0 : lo;
    hi = hi > bytes ? bytes : hi;
    uint32_t part = space == SPACE_HBM ? 0 : addr_part(a->addr);
    *t = (ViewTouch){which[space], a->is_write, part, part + (space == SPACE_HBM ? 1 : a->parts), (uint64_t)lo,
                 (uint64_t)hi};
    return hi > lo;
}

static uint32_t kernel_touches(const Occupy *o, const IsaInst *in, ViewTouch *out) {
    int cost = isa_rows[in->op].cost;
    if ((cost != COST_KERNEL && cost != COST_COLLECTIVE) || (uint32_t)in->imm >= o->art->nkerns)
        return 0;
    const Kern *k = &o->art->kerns[in->imm];
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->nin + k->nout; i++) {
        const KTensor *t = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
        uint64_t bytes = (uint64_t)t->elems * dtype_bytes(t->dtype);
        if (addr_seg(t->addr) == SEG_SCRATCH && bytes)
            out[n++] = (ViewTouch){VIEW_HBM, i >= k->nin, 0, 1, addr_off(t->addr), addr_off(t->addr) + bytes};
    }
    return n;
}

static void touches_make(Occupy *o) {
    const Artifact *art = o->art;
    CodeLoops loops;
    uint32_t pc = 0;
    RegState regs;
    code_loops(o->arena, art, &loops, &pc); // a verified artifact has good ones
    regs_init(&regs, &loops);
    uint32_t most = 0;
    for (uint32_t i = 0; i < art->nkerns; i++)
        most = art->kerns[i].nin + art->kerns[i].nout > most ? art->kerns[i].nin + art->kerns[i].nout : most;
    ViewTouch *room = ARENA_NEWN(o->arena, ViewTouch, (size_t)most + ISA_ACCESS_MAX);
    o->touches = ARENA_NEWN(o->arena, ViewTouch *, (size_t)art->ncode + 1);
    o->counts = ARENA_NEWN(o->arena, uint32_t, (size_t)art->ncode + 1);
    for (pc = 0; pc < art->ncode; pc++) {
        IsaAccess a[ISA_ACCESS_MAX];
        regs_enter(&regs, pc);
        int n = isa_accesses(&art->code[pc], isa_row_mask(art->code[pc].op), a);
        uint32_t count = kernel_touches(o, &art->code[pc], room);
        for (int i = 0; i < n; i++)
            count += touch_of(o, &regs, &a[i], &room[count]);
        o->counts[pc] = count;
        o->touches[pc] = arena_dup(o->arena, room, count * sizeof *room);
        regs_step(&regs, &art->code[pc], pc);
    }
}

static void memories_init(Occupy *o, const ChipFile *chip) {
    memory_init(o, VIEW_HBM, o->art->scratch_bytes, 1);
    memory_init(o, VIEW_SBUF, (uint64_t)chip->sbuf_partition_bytes, PARTITIONS);
    memory_init(o, VIEW_PSUM, (uint64_t)chip->psum_partition_bytes, PARTITIONS);
    touches_make(o);
}

ViewTouch **view_touches(Arena *a, const Artifact *art, const ChipFile *chip, uint32_t **counts) {
    Occupy o = {.arena = a, .art = art};
    memories_init(&o, chip);
    *counts = o.counts;
    return o.touches;
}

// --- bins ----------------------------------------------------------------------------------------

static double hbm_fixed(const Artifact *art) {
    double bytes = (double)art->const_bytes;
    for (uint32_t i = 0; i < art->nargs; i++)
        bytes += (double)art->args[i].bytes;
    for (uint32_t i = 0; i < art->nresults; i++)
        bytes += art->results[i].alias < 0 ? (double)art->results[i].bytes : 0;
    return bytes;
}

double view_hbm_planned(const Artifact *art) { return hbm_fixed(art) + (double)art->scratch_bytes; }

static void bins_finish(Occupy *o, const Clock *clock, int which, double fixed, ViewMemory *out) {
    Memory *m = &o->memory[which];
    for (uint32_t i = 0; i < m->columns * m->groups; i++)
        grain_close(o, m, &m->grains[i]);
    double now = fixed;
    for (int b = 0; b < VIEW_BINS; b++) {
        now += m->add[b];
        out->bins[b] = fmax(now, fixed);
    }
    for (uint32_t j = 0; j < clock->jumps.n; j++) { // as before the iterations that were added
        uint32_t from = bin_of(o, clock->jumps.at[j].from_ns), to = bin_of(o, clock->jumps.at[j].to_ns);
        for (uint32_t b = from + 1; b < to; b++)
            out->bins[b] = fmax(out->bins[b], out->bins[from]);
    }
    for (int b = 0; b < VIEW_BINS; b++)
        if (out->bins[b] > out->peak_bytes) {
            out->peak_bytes = out->bins[b];
            out->peak_ns = b * o->ns_per_bin;
        }
}

void view_occupy(Arena *a, const Artifact *art, const ChipFile *chip, const Clock *clock, View *out) {
    Occupy o = {.arena = a, .art = art, .ns_per_bin = fmax(clock->total_ns / VIEW_BINS, 1e-3)};
    memories_init(&o, chip);
    for (uint32_t i = 0; i < clock->events.n; i++) {
        const ClockEvent *e = &clock->events.at[i];
        if (e->core)
            continue; // SBUF and PSUM are those of the first
        for (uint32_t k = 0; k < o.counts[e->inst]; k++) // reads come first: then what it writes is new
            if (!o.touches[e->inst][k].is_write)
                touch_grains(&o, &o.touches[e->inst][k], e->begin_ns, e->end_ns);
        for (uint32_t k = 0; k < o.counts[e->inst]; k++)
            if (o.touches[e->inst][k].is_write)
                touch_grains(&o, &o.touches[e->inst][k], e->begin_ns, e->end_ns);
    }
    double capacity[] = {chip->hbm_bytes_per_core * (art->peer ? 2 : 1), chip->sbuf_partition_bytes * PARTITIONS,
                         chip->psum_partition_bytes * PARTITIONS};
    for (int i = 0; i < VIEW_MEMORIES; i++) {
        out->memory[i].capacity_bytes = capacity[i];
        bins_finish(&o, clock, i, i == VIEW_HBM ? hbm_fixed(art) : 0, &out->memory[i]);
    }
}
