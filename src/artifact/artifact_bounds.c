// SPDX-License-Identifier: Apache-2.0
// artifact_bounds.c — the quick half of artifact_verify: proves for most instructions that they obey the rules on
// operands, and leaves the rest in doubt.
//
// The rules (isa_check, isa_check_access) are asked about one instruction of each shape, placed where it must fit if any
// does. They look at an offset in three ways only: is it aligned, does what it reaches lie in the memory, does it stay in
// a bank. So the others of the shape obey them too when those three hold.
#include "artifact/artifact_bounds.h"

static bool is_control(const IsaInst *in) {
    switch ((IsaCost)isa_rows[in->op].cost) {
    case COST_BRANCH:
    case COST_LOOP:
    case COST_REG:
    case COST_REGLOAD:
    case COST_BARRIER:
        return true;
    default:
        return in->op == ISA_HALT;
    }
}

static bool matters(const IsaInst *in) {
    switch ((IsaCost)isa_rows[in->op].cost) {
    case COST_LDWEIGHTS:
    case COST_MATMUL:
    case COST_TRANSPOSE:
    case COST_BRANCH:
    case COST_KERNEL:
    case COST_COLLECTIVE:
        return true;
    default:
        return false;
    }
}

// False: in doubt. Before trn3 a product stays in one bank (check_bank).
static bool bound_of(const IsaInst *in, const IsaAccess *a, const ShapeAccess *s, const IsaChip *chip, Bound *out) {
    char why[ISA_WHY];
    IsaAccess at = *a;
    uint32_t size = (uint32_t)dtype_bytes(a->dtype);
    if (a->reg || size & (size - 1) || s->lo < -((int64_t)1 << 40) || s->hi > (int64_t)1 << 41)
        return false;
    bool hbm = s->space == SPACE_HBM;
    if (hbm)
        at.addr = addr_hbm(SEG_SCRATCH, 0);
    else if (-s->lo <= ISA_SBUF_BYTES)
        at.addr = at.addr >> 32 << 32 | (uint32_t)-s->lo;
    if (isa_check_access(in, &at, chip, 0, 0, why))
        return false;
    *out = (Bound){.at = s->at, .space = s->space, .is_write = s->is_write, .align = size - 1, .lo = s->lo, .hi = s->hi,
                   .in_bank = chip->gen < 4 && a->field == ISA_F_dst && in->engine == ENG_TENSOR};
    return true;
}

static void bounds_of(const IsaShape *shape, const IsaChip *chip, Bounds *b) {
    char why[ISA_WHY];
    IsaInst in = shape_sample(shape);
    *b = (Bounds){.matters = matters(&in), .control = is_control(&in), .sem = (uint8_t)isa_sem(&in)};
    for (int w = 0; w < 2; w++)
        b->waits |= in.wait_sem[w] < SEM_USER;
    b->doubt = isa_check(&in, isa_row_mask(in.op), chip, why) != NULL;
    if (b->doubt)
        return;
    IsaAccess access[ISA_ACCESS_MAX];
    ShapeAccesses s;
    isa_accesses(&in, isa_row_mask(in.op), access);
    shape_accesses(shape, &s);
    for (int i = 0; i < s.n && !b->doubt; i++) {
        if (i + 1 < s.n && s.at[i + 1].addr == s.at[i].addr) // read and written: the write tells all
            continue;
        b->doubt = !bound_of(&in, &access[i], &s.at[i], chip, &b->at[b->n++]);
    }
}

Bounds *bounds_make(Arena *a, const IsaShapes *shapes, const IsaChip *chip) {
    Bounds *b = ARENA_NEWN(a, Bounds, (size_t)shapes->n + 1);
    for (uint32_t i = 0; i < shapes->n; i++)
        bounds_of(&shapes->at[i], chip, &b[i]);
    return b;
}

// --- instructions ------------------------------------------------------------------------------------------

typedef struct Segment {
    int64_t bytes;
    bool writable;
} Segment;

typedef struct Doubt {
    const IsaShapes *shapes;
    const Bounds *bounds;
    const Segment *segs;
    uint32_t nsegs;
    int64_t limit[SPACE_COUNT];
    uint8_t *out;
} Doubt;

static bool in_hbm(const Doubt *d, const Bound *b, uint64_t addr) {
    uint32_t seg = addr_seg(addr);
    int64_t off = (int64_t)addr_off(addr);
    return seg < d->nsegs && !(off & b->align) && off + b->lo >= 0 && off + b->hi <= d->segs[seg].bytes &&
           (!b->is_write || d->segs[seg].writable);
}

static bool in_partition(const Doubt *d, const Bound *b, int64_t off) {
    int64_t first = off + b->lo, last = off + b->hi - 1;
    return !(off & b->align) && first >= 0 && last < d->limit[b->space] &&
           (!b->in_bank || first / PSUM_BANK_BYTES == last / PSUM_BANK_BYTES);
}

static void doubt_task(void *arg, size_t begin, size_t end) {
    const Doubt *d = arg;
    for (size_t i = begin; i < end; i++) {
        const Bounds *b = &d->bounds[d->shapes->of[i]];
        const uint8_t *record = shape_record(d->shapes, (uint32_t)i);
        bool ok = !b->doubt;
        for (int k = 0; k < b->n && ok; k++) {
            const uint8_t *at = record + b->at[k].at;
            ok = b->at[k].space != SPACE_HBM ? in_partition(d, &b->at[k], le_load32(at))
                                             : in_hbm(d, &b->at[k], b->at[k].at ? le_load64(at) : 0);
        }
        d->out[i] = !ok;
    }
}

#define GRAIN 4096

uint8_t *bounds_doubt(Arena *a, const Artifact *art, const IsaShapes *shapes, const Bounds *bounds, const IsaChip *chip,
                      Pool *pool) {
    Doubt d = {.shapes = shapes, .bounds = bounds, .nsegs = SEG_FIRST_ARG + art->nargs + art->nresults,
               .limit = {[SPACE_SBUF] = chip->sbuf_bytes, [SPACE_PSUM] = chip->psum_bytes}};
    Segment *segs = ARENA_NEWN(a, Segment, d.nsegs);
    for (uint32_t i = 0; i < d.nsegs; i++) {
        bool ok;
        segs[i] = (Segment){(int64_t)artifact_seg_bytes(art, i, &ok), artifact_seg_writable(art, i)};
    }
    d.segs = segs;
    d.out = arena_alloc(a, (size_t)art->ncode + 1);
    pool_run(pool, art->ncode, GRAIN, doubt_task, &d);
    return d.out;
}
