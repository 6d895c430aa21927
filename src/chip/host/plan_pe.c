// SPDX-License-Identifier: Apache-2.0
// plan_pe.c — operands of products that are transferred to be used once: the tensor engine's kernels read them in HBM.
//
// A tile that serves many products is worth its copy, whose padded rows suit the kernels. One that serves a single
// product (a sum over rows as a product with ones, a matrix times a vector) would be written and read again for
// nothing. So would one that only a transfer out reads: the two become one copy in HBM. Asked of each transfer, looking at most REACH instructions ahead; in doubt it stays.
#include "chip/host/plan_step.h"

#define REACH 192
#define CHUNK_LEAST 64 // bytes

typedef struct Tile { // a transfer into SBUF whose rows are chunks of adjacent bytes in HBM
    const IsaInst *dma;
    PlanHbm hbm;
    uint32_t lo, hi, p0, p1; // of SBUF
    int64_t chunk;           // bytes that are adjacent on both sides,
    int64_t step[2];         // and where the next ones lie in HBM: after n[1] of them, and each
    uint32_t n[2];
} Tile;

// Innermost axis first, as far as both sides go on without a gap.
static bool tile_of(const IsaInst *in, const uint32_t *same_seg, Tile *t) {
    if (in->op != ISA_DMA || in->op0 || (in->dtype && in->dtype != in->stype) || in->reg_d[0] || in->reg_s[0] ||
        addr_space(in->dst) != SPACE_SBUF || addr_space(in->src) != SPACE_HBM || in->s[0] <= 0)
        return false;
    int64_t bytes = (int64_t)dtype_bytes(in->stype), run = 1, reach = 0;
    *t = (Tile){.dma = in, .chunk = bytes, .n = {1, 1}};
    int outer = 0;
    for (int i = 3; i >= 1; i--) {
        int64_t count = isa_count(in->n[i]);
        if (count == 1)
            continue;
        if (in->d[i] != run || in->s[i] < 0)
            return false;
        if (!outer && in->s[i] == run)
            t->chunk *= count;
        else if (outer == 2)
            return false;
        else
            t->n[1 - outer] = (uint32_t)count, t->step[1 - outer++] = in->s[i] * bytes;
        run *= count;
        reach += (count - 1) * in->s[i] * bytes;
    }
    uint32_t rows = isa_count(in->n[0]);
    int64_t pitch = in->s[0] * bytes, first = (int64_t)addr_off(in->src);
    t->lo = addr_poff(in->dst), t->hi = t->lo + (uint32_t)(run * bytes);
    t->p0 = addr_part(in->dst), t->p1 = t->p0 + rows;
    t->hbm = (PlanHbm){.seg = same_seg[addr_seg(in->src)], .lo = first, .hi = first + reach + bytes + (rows - 1) * pitch};
    return true;
}

static bool meets(const Tile *t, const PlanTouch *x) {
    return x->lo < t->hi && t->lo < x->hi && x->p0 < t->p1 && t->p0 < x->p1;
}

// A product's operand inside one chunk: where it lies in HBM.
static bool place_of(const Tile *t, const IsaInst *in, PlanPe *out) {
    uint32_t at = addr_poff(in->src), bytes = (uint32_t)dtype_bytes(in->stype), part = addr_part(in->src);
    uint32_t last = at + ((isa_count(in->n[1]) - 1) * (uint32_t)in->s[1] + 1) * bytes;
    if (in->reg_s[0] || in->s[1] < 0 || in->s[3] || in->step || bytes != dtype_bytes(t->dma->stype) || at < t->lo ||
        last > t->hi || part < t->p0 || part + isa_count(in->n[0]) > t->p1)
        return false;
    int64_t from = at - t->lo, q = from / t->chunk;
    if ((last - 1 - t->lo) / t->chunk != q)
        return false;
    int64_t off = (int64_t)addr_off(t->dma->src) + from % t->chunk + q / t->n[1] * t->step[0] + q % t->n[1] * t->step[1];
    out->pitch = t->dma->s[0] * (int64_t)bytes;
    out->seg = addr_seg(t->dma->src);
    out->off = (uint64_t)(off + (int64_t)(part - t->p0) * out->pitch);
    return true;
}

enum { GOES_ON, ENDS, SPOILS };

// What an instruction other than a reading product means for the tile.
static int other_step(const Tile *t, const PlanCode *code, uint32_t pc) {
    const IsaInst *shape = shape_inst(code->shapes, pc), *in = &code->art->code[pc];
    int cost = isa_rows[shape->op].cost;
    if (shape->op == ISA_HALT)
        return ENDS;
    if (cost == COST_KERNEL) {
        const Kern *k = &code->art->kerns[in->imm];
        for (uint32_t i = 0; i < k->nout; i++)
            if (code->same_seg[addr_seg(k->out[i].addr)] == t->hbm.seg)
                return SPOILS;
        return GOES_ON;
    }
    if (cost == COST_BRANCH || cost == COST_LOOP || cost == COST_COLLECTIVE || cost == COST_REGLOAD || cost == COST_REMOTE ||
        shape->op == ISA_SENDRECV)
        return SPOILS;
    const ShapeAccesses *accesses = &code->accesses[code->shapes->of[pc]];
    const uint8_t *record = shape_record(code->shapes, pc);
    int found = GOES_ON;
    for (int i = 0; i < accesses->n; i++) {
        const ShapeAccess *a = &accesses->at[i];
        if (a->space != SPACE_SBUF && (a->space != SPACE_HBM || !a->is_write))
            continue;
        if (a->space == SPACE_HBM) {
            uint64_t addr = shape_hbm(a, record);
            int64_t begin = (int64_t)addr_off(addr) + a->lo, end = (int64_t)addr_off(addr) + a->hi;
            if (code->same_seg[addr_seg(addr)] == t->hbm.seg && (a->by_register || (begin < t->hbm.hi && t->hbm.lo < end)))
                return SPOILS;
            continue;
        }
        uint32_t off = shape_poff(a, record);
        PlanTouch x = {.lo = (uint32_t)(off + a->lo), .hi = (uint32_t)(off + a->hi), .p0 = a->part,
                       .p1 = (uint8_t)(a->part + a->parts)};
        if (!a->by_register && !meets(t, &x))
            continue;
        Tile over;
        bool all = a->is_write && tile_of(in, code->same_seg, &over) && over.lo <= t->lo && t->hi <= over.hi && over.p0 <= t->p0 &&
                   t->p1 <= over.p1;
        if (!all)
            return SPOILS;
        found = ENDS;
    }
    return found;
}

// Nothing to do with the tile, as can be told at once?
static bool is_beside(const Tile *t, const PlanTouch *x) {
    return (x->kind == TOUCH_PLAIN || x->kind == TOUCH_PRODUCT) && !meets(t, x);
}

// The products that read the tile, each chunk of it once; false: it stays.
static bool readers_find(const Tile *t, uint32_t pc, const PlanCode *code, PlanPe *out, uint32_t *n) {
    uint32_t most = t->n[0] * t->n[1] < PLAN_PE_MAX ? t->n[0] * t->n[1] : PLAN_PE_MAX, end = pc + REACH;
    *n = 0;
    for (uint32_t i = pc + 1; i < code->art->ncode && i < end; i++) {
        const PlanTouch *x = &code->touches[i];
        if (is_beside(t, x))
            continue;
        if (x->kind == TOUCH_PRODUCT) {
            if (*n == most || !place_of(t, &code->art->code[i], &out[*n]))
                return false;
            out[(*n)++].pc = i;
            continue;
        }
        if (x->kind == TOUCH_DYNAMIC || plan_is_product(shape_inst(code->shapes, i)))
            return false;
        int what = other_step(t, code, i);
        if (what == SPOILS)
            return false;
        if (what == ENDS)
            return *n > 0;
    }
    return false;
}

// May the transfer out take the data where the transfer in found it?
static bool same_shape(const Tile *t, const IsaInst *out) {
    const IsaInst *in = t->dma;
    bool by_index = out->op == ISA_DMA_INDIRECT && t->n[0] * t->n[1] == 1;
    if ((!by_index && (out->op != ISA_DMA || out->op0)) || (out->dtype && out->dtype != out->stype) || out->reg_d[0] || out->reg_s[0] || out->reg_t[0] ||
        out->src != in->dst || out->stype != in->stype || addr_space(out->dst) != SPACE_HBM)
        return false;
    for (int i = 0; i < 4; i++)
        if (isa_count(in->n[i]) != isa_count(out->n[i]) || (i && isa_count(in->n[i]) > 1 && in->d[i] != out->s[i]))
            return false;
    return true;
}

// The transfer out that alone reads what the tile holds, as a whole; 0: there is none.
static uint32_t through_find(const Tile *t, uint32_t pc, const PlanCode *code) {
    uint32_t found = 0;
    for (uint32_t i = pc + 1; i < code->art->ncode && i < pc + REACH; i++) {
        const PlanTouch *x = &code->touches[i];
        if (x->kind == TOUCH_PLAIN && !meets(t, x))
            continue;
        const IsaInst *shape = shape_inst(code->shapes, i), *in = &code->art->code[i];
        if (x->kind == TOUCH_DYNAMIC || plan_is_product(shape))
            return 0;
        bool transfer = shape->op == ISA_DMA || shape->op == ISA_DMA_INDIRECT;
        if (!found && transfer && same_shape(t, in) && code->same_seg[addr_seg(in->dst)] != t->hbm.seg) {
            found = i;
            continue;
        }
        int what = other_step(t, code, i);
        if (what == SPOILS)
            return 0;
        if (what == ENDS)
            return found;
    }
    return 0;
}

static void plan_pe_room(Arena *a, Plan *p, const Artifact *art) {
    if (!p->pe_at)
        p->pe_at = ARENA_NEWN(a, uint32_t, art->ncode + 1), p->spared = ARENA_NEWN(a, uint8_t, art->ncode + 1);
}

// What is found for each transfer: nothing, the transfer out that takes its place, or readers.
enum { FOUND_NONE = 0, FOUND_READERS = 1 }; // else: a transfer out's number, never below 2

typedef struct Search {
    const PlanCode *code;
    uint32_t *found; // per instruction
} Search;

static void search_task(void *arg, size_t begin, size_t end) {
    const Search *s = arg;
    const PlanCode *code = s->code;
    for (uint32_t pc = (uint32_t)begin; pc < end; pc++) {
        Tile t;
        PlanPe readers[PLAN_PE_MAX];
        uint32_t n;
        s->found[pc] = FOUND_NONE;
        if (shape_inst(code->shapes, pc)->op != ISA_DMA || code->dynamic[pc] ||
            !tile_of(&code->art->code[pc], code->same_seg, &t))
            continue;
        uint32_t out = through_find(&t, pc, code);
        if (out)
            s->found[pc] = out + 1; // it stands behind pc
        else if (t.chunk >= CHUNK_LEAST && readers_find(&t, pc, code, readers, &n))
            s->found[pc] = FOUND_READERS;
    }
}

static void through_note(Arena *a, Plan *p, const Artifact *art, uint32_t pc, uint32_t out) {
    if (!p->through)
        p->through = ARENA_NEWN(a, uint32_t, art->ncode + 1);
    plan_pe_room(a, p, art);
    p->through[out] = pc + 1;
    p->spared[pc] = PLAN_SPARED_OPERAND;
}

static void readers_note(Arena *a, Plan *p, const PlanCode *code, uint32_t pc) {
    Tile t;
    PlanPe readers[PLAN_PE_MAX];
    uint32_t n;
    tile_of(&code->art->code[pc], code->same_seg, &t);
    readers_find(&t, pc, code, readers, &n);
    bool all = true;
    for (uint32_t i = 0; i < n; i++)
        all &= code->plain[readers[i].pc];
    for (uint32_t i = 0; i < n && all; i++) {
        plan_pe_room(a, p, code->art);
        VEC_PUSH(a, &p->pe, readers[i]);
        p->pe_at[readers[i].pc] = (uint32_t)p->pe.n;
        p->spared[pc] = PLAN_SPARED_OPERAND;
    }
}

#define SEARCH_GRAIN 2048

// Each transfer is looked at by itself, by all threads; then what was found is written down in program order.
void plan_pe_find(Arena *a, Plan *p, const PlanCode *code) {
    const Artifact *art = code->art;
    Search s = {code, arena_alloc(a, ((size_t)art->ncode + 1) * sizeof *s.found)};
    pool_run(code->pool, art->ncode, SEARCH_GRAIN, search_task, &s);
    for (uint32_t pc = 0; pc < art->ncode; pc++)
        if (s.found[pc] == FOUND_READERS)
            readers_note(a, p, code, pc);
        else if (s.found[pc])
            through_note(a, p, art, pc, s.found[pc] - 1);
}
