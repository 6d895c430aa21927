// SPDX-License-Identifier: Apache-2.0
// plan_tiles.c — tiles that only pass through SBUF and PSUM on their way to the tensor engine and from it.
//
//   HBM ──transfer──► SBUF ──► loads and products        *operand*: when nobody else reads it, the transfer may lay it out
//                                                         as the tiles like it (blocks, chip.h), apart from the rows of SBUF
//   product ──► PSUM ──copy──► SBUF ──transfer──► HBM     *result*: when nobody else reads it on the way, the last product of
//                                                         its sum writes to HBM, copy and transfer are left out
//
// One walk through the program. It knows for each grain of both memories which of these tiles it holds; whoever touches
// such a grain in another way spoils the tile, and it stays as the program says. A result that is written earlier than the
// program says must not be met in HBM in between. Control flow, and what depends on values, spoils all there are; so do the
// ends of the stretches in which all threads walk beside each other.
#include "base/parts.h"
#include "chip/host/flow_foot.h"
#include "chip/host/matmul.h"
#include "chip/host/plan_step.h"

#include <string.h>

#define SBUF_GRAINS (ISA_SBUF_BYTES / PLAN_GRAIN)
#define PSUM_GRAINS (ISA_PSUM_BYTES / PLAN_GRAIN)
#define WORDS (SBUF_GRAINS / 64 + PSUM_GRAINS / 64)
#define PSUM_AT SBUF_GRAINS // PSUM's grains are numbered behind SBUF's
#define NOTES 512           // accesses to HBM that are remembered
#define OUTER 2             // axes around a chunk

typedef struct Chunks { // of a copy or transfer: adjacent bytes on both sides
    uint32_t bytes, n[OUTER];
    int64_t near[OUTER], far[OUTER]; // bytes from one to the next: in SBUF, and on the other side
} Chunks;

typedef struct Tile {
    uint32_t pc, lo, hi; // bytes of a partition, PSUM's counted behind SBUF's
    uint8_t kind, p0, p1, stype;
    bool spoiled;
    bool whole; // without gaps, and nobody wrote over any of it
    bool read;  // PRODUCT: by a copy
    uint32_t piece, npieces, used, result; // COPY: what it moves, how much of that a transfer out took, and which
} Tile;
enum { TILE_OPERAND, TILE_COPY, TILE_PRODUCT };

typedef struct Piece { // what one product makes of a result
    uint32_t product, copy; // tiles
    uint32_t at, bytes;     // in SBUF
    uint64_t off;           // in HBM
} Piece;

typedef struct Result { // a transfer out
    uint32_t pc, piece, npieces; // in taken
} Result;

typedef struct Reader {
    uint32_t pc, tile;
} Reader;

typedef struct Note {
    uint32_t pc;
    FootHbm at;
} Note;

typedef struct Form { // what all instructions of a shape have in common
    uint8_t kind; // STEP_…
    bool in_psum; // touches it
    Chunks chunks; // of operands, copies and results
    const ShapeAccess *dst, *src; // NULL: not in memory
    uint8_t nhbm;
    const ShapeAccess *at[2]; // accesses to HBM, and what they touch from their addresses on
    FootHbm hbm[2];
} Form;

typedef struct Walk {
    Arena *a;
    const PlanCode *code;
    const Plan *plan;
    const Form *forms; // per shape
    uint32_t owner[SBUF_GRAINS + PSUM_GRAINS]; // tile + 1, or 0,
    uint64_t owned[WORDS];                     // and whether there is one
    VEC(Tile) tiles;
    VEC(Piece) pieces;
    VEC(uint32_t) taken; // pieces of the results
    VEC(Result) results;
    VEC(Reader) readers;
    Note note[NOTES];
    uint32_t nnotes; // ever
    uint32_t load;   // tile + 1 that the last load read, and its type
    uint8_t load_type;
} Walk;

// --- grains ------------------------------------------------------------------------------------------------

static uint64_t word_mask(uint32_t w, uint32_t first, uint32_t last) {
    uint64_t m = ~(uint64_t)0;
    m <<= w == first / 64 ? first % 64 : 0;
    return w == last / 64 ? m & ~(uint64_t)0 >> (63 - last % 64) : m;
}

static bool any_owned(const Walk *w, uint32_t lo, uint32_t hi) {
    uint32_t first = lo / PLAN_GRAIN, last = (hi - 1) / PLAN_GRAIN;
    for (uint32_t i = first / 64; i <= last / 64; i++)
        if (w->owned[i] & word_mask(i, first, last))
            return true;
    return false;
}

static void spoil(Walk *w, uint32_t lo, uint32_t hi) {
    uint32_t seen = 0;
    for (uint32_t g = lo / PLAN_GRAIN; g <= (hi - 1) / PLAN_GRAIN; g++)
        if (w->owner[g] != seen && (seen = w->owner[g]))
            w->tiles.at[seen - 1].spoiled = true;
}

static void forget_all(Walk *w, bool spoils) {
    if (spoils)
        spoil(w, 0, ISA_SBUF_BYTES + ISA_PSUM_BYTES);
    memset(w->owned, 0, sizeof w->owned);
    memset(w->owner, 0, sizeof w->owner);
    w->load = 0;
}

typedef struct Span { // bytes that are written
    uint32_t lo, hi, p0, p1;
    bool all; // every one of them
} Span;

// Is all that the tile has of grain g written over?
static bool covers(const Span *s, const Tile *t, uint32_t g) {
    uint32_t begin = g * PLAN_GRAIN, end = begin + PLAN_GRAIN;
    begin = t->lo > begin ? t->lo : begin, end = t->hi < end ? t->hi : end;
    return s->all && s->lo <= begin && end <= s->hi && s->p0 <= t->p0 && t->p1 <= s->p1;
}

static void write_over(Walk *w, const Span *s, uint32_t tile) { // tile + 1 that is there afterwards, or 0
    uint32_t first = s->lo / PLAN_GRAIN, last = (s->hi - 1) / PLAN_GRAIN;
    if (!tile && !any_owned(w, s->lo, s->hi))
        return;
    uint32_t seen = 0;
    for (uint32_t g = first; g <= last; g++) {
        if (w->owner[g] == seen && g != last) // inside, one grain is as good as another
            continue;
        seen = w->owner[g];
        Tile *t = seen ? &w->tiles.at[seen - 1] : NULL;
        if (t)
            t->spoiled |= !covers(s, t, g), t->whole = false;
    }
    for (uint32_t i = first / 64; i <= last / 64; i++) {
        uint64_t mask = word_mask(i, first, last);
        w->owned[i] = tile ? w->owned[i] | mask : w->owned[i] & ~mask;
    }
    for (uint32_t g = first; g <= last; g++)
        w->owner[g] = tile;
}

static uint32_t tile_new(Walk *w, const Tile *t) {
    VEC_PUSH(w->a, &w->tiles, *t);
    return w->tiles.n;
}

// --- shapes ------------------------------------------------------------------------------------------------

// Innermost axis first; `near` and `far` count elements. Chunks, and what is around them, begin at `align` elements.
static bool chunks_of(const IsaInst *in, const int32_t *near, const int32_t *far, int64_t bytes, int64_t align, Chunks *c) {
    *c = (Chunks){.n = {1, 1}};
    int64_t run = 1;
    int outer = 0, i = 3;
    for (; i >= 1; i--) {
        int64_t count = isa_count(in->n[i]);
        if (count > 1 && (near[i] != run || far[i] != run))
            break;
        run *= count;
    }
    for (; i >= 1; i--) {
        int64_t count = isa_count(in->n[i]);
        if (count == 1)
            continue;
        if (outer == OUTER || near[i] <= 0 || near[i] % align || far[i] < 0 || (outer ? near[i] < c->near[OUTER - 1] / bytes * c->n[OUTER - 1] : near[i] < run))
            return false;
        outer++;
        c->n[OUTER - outer] = (uint32_t)count;
        c->near[OUTER - outer] = near[i] * bytes, c->far[OUTER - outer] = far[i] * bytes;
    }
    c->bytes = (uint32_t)(run * bytes);
    return !outer || run % align == 0;
}

static bool is_plain_dma(const IsaInst *in) {
    return in->op == ISA_DMA && !in->op0 && (!in->dtype || in->dtype == in->stype) && !in->reg_d[0] && !in->reg_s[0];
}

// A transfer in that turns has its columns apart in HBM: those count as one chunk.
static bool operand_of(const IsaInst *in, Chunks *c) {
    if (!is_plain_dma(in) || addr_space(in->dst) != SPACE_SBUF || addr_space(in->src) != SPACE_HBM ||
        (in->stype != DT_F32 && in->stype != DT_BF16))
        return false;
    if (in->stype == DT_BF16 && (addr_part(in->dst) % 4 || isa_count(in->n[0]) % 4))
        return false;
    IsaInst as = *in;
    int inner = 3;
    while (inner > 1 && isa_count(in->n[inner]) == 1)
        inner--;
    bool turns = in->s[inner] != 1;
    if (isa_count(in->n[inner]) == 1 || in->d[inner] != 1 || (turns && in->s[0] != 1))
        return false;
    for (int i = inner; turns && i >= 1; i--) // only the innermost
        as.s[i] = i == inner ? 1 : INT32_MAX;
    return chunks_of(&as, in->d, as.s, (int64_t)dtype_bytes(in->stype), MM_BLOCK_COLS, c);
}

static bool copy_of(const IsaInst *in, Chunks *c) {
    return in->op == ISA_COPY && in->stype == DT_F32 && in->dtype == DT_F32 && !in->reg_d[0] && !in->reg_s[0] &&
           addr_space(in->dst) == SPACE_SBUF && addr_space(in->src) == SPACE_PSUM && !addr_part(in->dst) &&
           !addr_part(in->src) && isa_count(in->n[4]) == 1 && chunks_of(in, in->d, in->s, 4, 1, c);
}

static bool result_of(const IsaInst *in, Chunks *c) {
    return is_plain_dma(in) && in->stype == DT_F32 && addr_space(in->src) == SPACE_SBUF && addr_space(in->dst) == SPACE_HBM &&
           !addr_part(in->src) && in->d[0] > 0 && chunks_of(in, in->s, in->d, 4, 1, c);
}

// --- HBM -----------------------------------------------------------------------------------------------------

static void hbm_note(Walk *w, uint32_t pc, const FootHbm *at) { w->note[w->nnotes++ % NOTES] = (Note){pc, *at}; }

static const Form *form_of(const Walk *w, uint32_t pc) { return &w->forms[w->code->shapes->of[pc]]; }

// Instructions are large and far apart in memory: what shapes do not tell is read in the records.
static uint32_t poff_of(const Walk *w, uint32_t pc, const ShapeAccess *a) {
    return shape_poff(a, shape_record(w->code->shapes, pc));
}
static uint64_t hbm_of(const Walk *w, uint32_t pc, const ShapeAccess *a) {
    return shape_hbm(a, shape_record(w->code->shapes, pc));
}

static FootHbm hbm_at(const Walk *w, uint32_t pc, int i) {
    const Form *f = form_of(w, pc);
    uint64_t addr = hbm_of(w, pc, f->at[i]);
    FootHbm h = f->hbm[i];
    h.seg = w->code->same_seg[addr_seg(addr)];
    h.lo += (int64_t)addr_off(addr), h.hi += (int64_t)addr_off(addr);
    return h;
}

static void hbm_notes(Walk *w, uint32_t pc, uint32_t of) { // at pc, those of another instruction
    for (int i = 0; i < form_of(w, of)->nhbm; i++) {
        FootHbm h = hbm_at(w, of, i);
        hbm_note(w, pc, &h);
    }
}

static void kernel_notes(Walk *w, uint32_t pc) {
    const Kern *k = &w->code->art->kerns[w->code->art->code[pc].imm];
    for (uint32_t i = 0; i < k->nin + k->nout; i++) {
        uint64_t addr = i < k->nin ? k->in[i].addr : k->out[i - k->nin].addr;
        hbm_note(w, pc, &(FootHbm){.seg = w->code->same_seg[addr_seg(addr)], .is_write = true, .hi = INT64_MAX});
    }
}

// Did nobody touch that place since instruction `from`?
static bool hbm_untouched(const Walk *w, uint32_t from, const FootHbm *h) {
    uint32_t first = w->nnotes > NOTES ? w->nnotes - NOTES : 0;
    if (first && w->note[first % NOTES].pc >= from)
        return false; // it is not remembered
    for (uint32_t i = w->nnotes; i-- > first && w->note[i % NOTES].pc >= from;)
        if (foot_stretches_meet(h, &w->note[i % NOTES].at))
            return false;
    return true;
}

// --- operands --------------------------------------------------------------------------------------------------

static void chunks_write(Walk *w, const Chunks *c, const Span *first, uint32_t tile) {
    for (uint32_t i = 0; i < c->n[0]; i++)
        for (uint32_t j = 0; j < c->n[1]; j++) {
            Span s = *first;
            s.lo += (uint32_t)(i * c->near[0] + j * c->near[1]), s.hi = s.lo + c->bytes;
            write_over(w, &s, tile);
        }
}

static uint32_t chunks_end(const Chunks *c, uint32_t begin) {
    return begin + (uint32_t)((c->n[0] - 1) * c->near[0] + (c->n[1] - 1) * c->near[1]) + c->bytes;
}

static bool is_spared(const Walk *w, uint32_t pc) { return w->plan->spared && w->plan->spared[pc]; }

static void operand_step(Walk *w, uint32_t pc, const Chunks *c) {
    const IsaInst *in = shape_inst(w->code->shapes, pc);
    const ShapeAccess *dst = form_of(w, pc)->dst;
    uint32_t lo = poff_of(w, pc, dst), p0 = dst->part, p1 = p0 + dst->parts, tile = 0;
    if (!is_spared(w, pc) && lo % (MM_BLOCK_COLS * dtype_bytes(in->stype)) == 0)
        tile = tile_new(w, &(Tile){.pc = pc, .kind = TILE_OPERAND, .lo = lo, .hi = chunks_end(c, lo), .p0 = (uint8_t)p0,
                                   .p1 = (uint8_t)p1, .stype = in->stype, .whole = chunks_end(c, lo) - lo == c->n[0] * c->n[1] * c->bytes});
    chunks_write(w, c, &(Span){.lo = lo, .p0 = p0, .p1 = p1, .all = true}, tile);
}

// The tile that has all of a load's or product's operand, laid out in blocks as it likes; 0: none.
static uint32_t operand_find(const Walk *w, uint32_t pc) {
    const PlanTouch *x = &w->code->touches[pc];
    const IsaInst *in = shape_inst(w->code->shapes, pc);
    uint32_t tile = w->owner[x->lo / PLAN_GRAIN], bytes = (uint32_t)dtype_bytes(in->stype);
    if (!tile)
        return 0;
    const Tile *t = &w->tiles.at[tile - 1];
    uint32_t others = 0;
    for (uint32_t g = x->lo / PLAN_GRAIN; !t->whole && g <= (x->hi - 1) / PLAN_GRAIN; g++)
        others |= w->owner[g] ^ tile;
    bool adjacent = x->hi - x->lo == isa_count(in->n[1]) * bytes;
    bool quads = in->stype == DT_F32 || (x->p0 % 4 == 0 && (x->p1 - x->p0) % 4 == 0);
    return !others && t->kind == TILE_OPERAND && !t->spoiled && t->lo <= x->lo && x->hi <= t->hi && t->p0 <= x->p0 && x->p1 <= t->p1 &&
                   t->stype == in->stype && x->lo % (MM_BLOCK_COLS * bytes) == 0 && adjacent && quads && w->code->plain[pc]
               ? tile
               : 0;
}

static uint32_t operand_read(Walk *w, uint32_t pc) {
    const PlanTouch *x = &w->code->touches[pc];
    if (w->plan->pe_at && w->plan->pe_at[pc]) { // in HBM
        const PlanPe *o = &w->plan->pe.at[w->plan->pe_at[pc] - 1];
        int64_t lo = (int64_t)o->off, row = x->hi - x->lo;
        hbm_note(w, pc, &(FootHbm){.seg = w->code->same_seg[o->seg], .lo = lo, .hi = lo + (x->p1 - x->p0 - 1) * o->pitch + row,
                                   .pitch = row <= o->pitch ? o->pitch : 0, .span = row});
        return 0;
    }
    if (!any_owned(w, x->lo, x->hi))
        return 0;
    uint32_t tile = operand_find(w, pc);
    if (tile)
        VEC_PUSH(w->a, &w->readers, ((Reader){pc, tile - 1}));
    else
        spoil(w, x->lo, x->hi);
    return tile;
}

// --- products ----------------------------------------------------------------------------------------------------

// Both operands of a product have one type, or neither is in blocks.
static void types_agree(Walk *w, uint32_t operand, uint8_t stype) {
    if (stype == w->load_type)
        return;
    if (operand)
        w->tiles.at[operand - 1].spoiled = true;
    if (w->load)
        w->tiles.at[w->load - 1].spoiled = true;
}

// The next product into a place that nobody has copied since the last one, or written: the same tile.
static bool product_again(Tile *old, const Tile *t) {
    if (old->kind != TILE_PRODUCT || old->read || !old->whole || old->lo != t->lo || old->hi != t->hi || old->p1 != t->p1)
        return false;
    old->pc = t->pc, old->spoiled = false;
    return true;
}

static void product_step(Walk *w, uint32_t pc) {
    const IsaInst *in = shape_inst(w->code->shapes, pc);
    const ShapeAccess *dst = form_of(w, pc)->dst;
    types_agree(w, operand_read(w, pc), in->stype);
    uint32_t lo = PSUM_AT * PLAN_GRAIN + poff_of(w, pc, dst), rows = isa_count(in->n[2]);
    Tile t = {.pc = pc, .kind = TILE_PRODUCT, .lo = lo, .hi = lo + isa_count(in->n[1]) * 4, .p1 = (uint8_t)rows, .whole = true};
    Span s = {.lo = lo, .hi = t.hi, .p0 = dst->part, .p1 = dst->part + rows, .all = true};
    bool fits = !s.p0 && lo % PLAN_GRAIN == 0 && rows > MM_THIN_ROWS;
    uint32_t old = w->owner[lo / PLAN_GRAIN];
    if (old && fits && product_again(&w->tiles.at[old - 1], &t))
        return;
    if (in->flags & ISA_FLAG_ACCUMULATE)
        spoil(w, s.lo, s.hi);
    write_over(w, &s, fits ? tile_new(w, &t) : 0);
}

// --- results -----------------------------------------------------------------------------------------------------

// What products made of [from, to) of PSUM, as pieces that go to `at` in SBUF.
static bool pieces_find(Walk *w, uint32_t from, uint32_t to, uint32_t at, uint32_t rows) {
    for (uint32_t x = from; x < to;) {
        uint32_t tile = w->owner[x / PLAN_GRAIN];
        const Tile *t = tile ? &w->tiles.at[tile - 1] : NULL;
        if (!t || t->kind != TILE_PRODUCT || t->spoiled || t->read || t->lo != x || t->hi > to || t->p1 != rows)
            return false;
        VEC_PUSH(w->a, &w->pieces, ((Piece){.product = tile - 1, .at = at + (x - from), .bytes = t->hi - x}));
        x = t->hi;
    }
    return true;
}

static void copy_step(Walk *w, uint32_t pc, const Chunks *c) {
    const Form *f = form_of(w, pc);
    uint32_t lo = poff_of(w, pc, f->dst), from = PSUM_AT * PLAN_GRAIN + poff_of(w, pc, f->src), rows = f->dst->parts;
    uint32_t piece = w->pieces.n, tile = 0;
    bool all = true;
    for (uint32_t i = 0; i < c->n[0] && all; i++)
        for (uint32_t j = 0; j < c->n[1] && all; j++) {
            uint32_t x = from + (uint32_t)(i * c->far[0] + j * c->far[1]);
            all = pieces_find(w, x, x + c->bytes, lo + (uint32_t)(i * c->near[0] + j * c->near[1]), rows);
        }
    if (all) {
        tile = tile_new(w, &(Tile){.pc = pc, .kind = TILE_COPY, .lo = lo, .hi = chunks_end(c, lo), .p1 = (uint8_t)rows,
                                   .piece = piece, .npieces = w->pieces.n - piece});
        for (uint32_t i = piece; i < w->pieces.n; i++)
            w->pieces.at[i].copy = tile - 1, w->tiles.at[w->pieces.at[i].product].read = true;
    } else {
        w->pieces.n = piece;
        spoil(w, from, from + (uint32_t)((c->n[0] - 1) * c->far[0] + (c->n[1] - 1) * c->far[1]) + c->bytes);
    }
    chunks_write(w, c, &(Span){.lo = lo, .p1 = rows, .all = true}, tile);
}

static Piece *piece_at(Walk *w, uint32_t at, uint32_t rows, uint32_t *number) {
    uint32_t tile = w->owner[at / PLAN_GRAIN];
    const Tile *t = tile ? &w->tiles.at[tile - 1] : NULL;
    if (!t || t->kind != TILE_COPY || t->spoiled || t->result || t->p1 != rows)
        return NULL;
    for (*number = t->piece; *number < t->piece + t->npieces; ++*number)
        if (w->pieces.at[*number].at == at)
            return &w->pieces.at[*number];
    return NULL;
}

// The pieces of one chunk, which lies at `off` in HBM.
static bool chunk_take(Walk *w, uint32_t at, uint32_t bytes, uint64_t off, uint32_t rows) {
    for (uint32_t end = at + bytes; at < end;) {
        uint32_t number;
        Piece *p = piece_at(w, at, rows, &number);
        if (!p || p->bytes > end - at)
            return false;
        p->off = off;
        VEC_PUSH(w->a, &w->taken, number);
        at += p->bytes, off += p->bytes;
    }
    return true;
}

static bool result_take(Walk *w, uint32_t pc, const Chunks *c) {
    const Form *f = form_of(w, pc);
    uint32_t first = w->taken.n, rows = f->src->parts, from = pc, at = poff_of(w, pc, f->src);
    uint64_t off = addr_off(hbm_of(w, pc, f->dst));
    for (uint32_t i = 0; i < c->n[0]; i++)
        for (uint32_t j = 0; j < c->n[1]; j++)
            if (!chunk_take(w, at + (uint32_t)(i * c->near[0] + j * c->near[1]), c->bytes,
                            off + (uint64_t)(i * c->far[0] + j * c->far[1]), rows))
                return false;
    for (uint32_t i = first; i < w->taken.n; i++) {
        uint32_t made = w->tiles.at[w->pieces.at[w->taken.at[i]].product].pc;
        from = made < from ? made : from;
    }
    FootHbm h = hbm_at(w, pc, 0);
    if (!hbm_untouched(w, from, &h))
        return false;
    VEC_PUSH(w->a, &w->results, ((Result){.pc = pc, .piece = first, .npieces = w->taken.n - first}));
    for (uint32_t i = first; i < w->taken.n; i++) {
        Tile *copy = &w->tiles.at[w->pieces.at[w->taken.at[i]].copy];
        copy->used++;
        copy->result = w->results.n;
    }
    return true;
}

static void result_step(Walk *w, uint32_t pc, const Chunks *c) {
    const PlanTouch *x = &w->code->touches[pc];
    uint32_t taken = w->taken.n;
    if (any_owned(w, x->lo, x->hi) && !result_take(w, pc, c)) {
        w->taken.n = taken;
        spoil(w, x->lo, x->hi);
    }
    hbm_notes(w, pc, pc);
}

// --- the walk ------------------------------------------------------------------------------------------------------

// Does the instruction change every byte of what it writes to a partition?
static bool writes_all(const Walk *w, uint32_t pc, int op) {
    return op == ISA_DMA || op == ISA_DMA_TRANSPOSE || op == ISA_COPY ||
           (op != ISA_COPY_PRED && w->code->forms[w->code->shapes->of[pc]].joins);
}

// An instruction that has nothing to do with such tiles: what it reads stays as it is, what it writes is another's.
static void other_step(Walk *w, uint32_t pc, const IsaInst *shape) {
    const ShapeAccesses *accesses = &w->code->accesses[w->code->shapes->of[pc]];
    const uint8_t *record = shape_record(w->code->shapes, pc);
    for (int i = 0; i < accesses->n; i++) { // reads come first
        const ShapeAccess *a = &accesses->at[i];
        if (a->space == SPACE_HBM)
            continue;
        uint32_t off = shape_poff(a, record) + (a->space == SPACE_PSUM ? PSUM_AT * PLAN_GRAIN : 0);
        Span s = {.lo = (uint32_t)(off + a->lo), .hi = (uint32_t)(off + a->hi), .p0 = a->part, .p1 = a->part + a->parts};
        if (!any_owned(w, s.lo, s.hi))
            continue;
        if (!a->is_write || shape->op == ISA_COPY_PRED)
            spoil(w, s.lo, s.hi);
        s.all = a->dense && writes_all(w, pc, shape->op);
        if (a->is_write)
            write_over(w, &s, 0);
    }
}

enum { STEP_NONE, STEP_OTHER, STEP_KERNEL, STEP_LOAD, STEP_PRODUCT, STEP_OPERAND, STEP_COPY, STEP_RESULT, STEP_FENCE, STEP_HALT };

static uint8_t step_kind(const IsaInst *in, const ShapeAccesses *accesses, const Chunks *c) {
    int cost = isa_rows[in->op].cost;
    bool hbm = false, parts = false;
    if (plan_is_idle(in))
        return STEP_NONE;
    if (in->op == ISA_HALT)
        return STEP_HALT;
    if (cost == COST_KERNEL)
        return STEP_KERNEL;
    for (int i = 0; i < accesses->n; i++) {
        if (accesses->at[i].by_register)
            return STEP_FENCE;
        hbm |= accesses->at[i].space == SPACE_HBM;
        parts |= accesses->at[i].space != SPACE_HBM;
    }
    if (cost == COST_BRANCH || cost == COST_LOOP || cost == COST_COLLECTIVE || cost == COST_REGLOAD || cost == COST_REMOTE ||
        cost == COST_BARRIER || in->op == ISA_SENDRECV || (!hbm && !parts))
        return STEP_FENCE;
    if (c->bytes)
        return in->op == ISA_COPY ? STEP_COPY : addr_space(in->dst) == SPACE_HBM ? STEP_RESULT : STEP_OPERAND;
    if (in->op == ISA_LDWEIGHTS)
        return STEP_LOAD;
    if (in->op == ISA_MATMUL)
        return STEP_PRODUCT;
    return STEP_OTHER;
}

static void form_make(Form *f, const IsaShape *shape, const ShapeAccesses *accesses) {
    IsaInst in = shape_sample(shape);
    if (!operand_of(&in, &f->chunks) && !copy_of(&in, &f->chunks) && !result_of(&in, &f->chunks))
        f->chunks.bytes = 0;
    f->kind = step_kind(&in, accesses, &f->chunks);
    IsaAccess access[ISA_ACCESS_MAX];
    int n = isa_accesses(&in, isa_row_mask(in.op), access);
    for (int i = 0; i < n; i++) {
        int space = addr_space(access[i].addr);
        const ShapeAccess *a = &accesses->at[i];
        f->in_psum |= space == SPACE_PSUM;
        f->dst = a->addr == PLAN_DST ? a : f->dst;
        f->src = a->addr == PLAN_SRC ? a : f->src;
        if (space != SPACE_HBM)
            continue;
        if (f->nhbm == 2) {
            f->kind = STEP_FENCE;
            return;
        }
        access[i].addr -= addr_off(access[i].addr);
        f->at[f->nhbm] = a;
        f->hbm[f->nhbm++] = foot_stretch(&access[i], 0, 0);
    }
}

static bool is_plain_product(const Walk *w, uint32_t pc, const IsaInst *in) {
    return w->code->plain[pc] && w->code->touches[pc].kind == TOUCH_PRODUCT &&
           (in->op == ISA_LDWEIGHTS || in->d[1] == 1 || isa_count(in->n[1]) == 1);
}

static void step(Walk *w, uint32_t pc) {
    const IsaInst *shape = shape_inst(w->code->shapes, pc);
    const Form *f = form_of(w, pc);
    const Chunks *c = &f->chunks;
    const PlanTouch *x = &w->code->touches[pc];
    switch (f->kind) {
    case STEP_KERNEL:
        kernel_notes(w, pc);
        break;
    case STEP_LOAD:
        w->load = 0, w->load_type = shape->stype;
        if (is_plain_product(w, pc, shape))
            w->load = operand_read(w, pc);
        else
            other_step(w, pc, shape);
        break;
    case STEP_PRODUCT:
        if (is_plain_product(w, pc, shape)) {
            product_step(w, pc);
        } else {
            types_agree(w, 0, DT_INVALID);
            other_step(w, pc, shape);
        }
        break;
    case STEP_OPERAND:
        operand_step(w, pc, c);
        hbm_notes(w, pc, pc);
        break;
    case STEP_COPY:
        copy_step(w, pc, c);
        break;
    case STEP_RESULT:
        result_step(w, pc, c);
        break;
    default:
        if (f->in_psum || (x->lo < x->hi && any_owned(w, x->lo, x->hi)))
            other_step(w, pc, shape);
        hbm_notes(w, pc, pc);
    }
    uint32_t in = w->plan->through ? w->plan->through[pc] : 0;
    if (in) // it takes what that one would have brought
        hbm_notes(w, pc, in - 1);
}

// --- the plan ------------------------------------------------------------------------------------------------------

static void results_note(Arena *a, Plan *p, const Walk *w) {
    for (uint32_t i = 0; i < w->results.n; i++) {
        const Result *r = &w->results.at[i];
        bool good = true;
        for (uint32_t k = r->piece; k < r->piece + r->npieces; k++) {
            const Piece *x = &w->pieces.at[w->taken.at[k]];
            const Tile *copy = &w->tiles.at[x->copy];
            good &= !w->tiles.at[x->product].spoiled && !copy->spoiled && copy->used == copy->npieces;
        }
        const IsaInst *in = &w->code->art->code[r->pc];
        for (uint32_t k = r->piece; k < r->piece + r->npieces && good; k++) {
            const Piece *x = &w->pieces.at[w->taken.at[k]];
            uint32_t made = w->tiles.at[x->product].pc;
            VEC_PUSH(a, &p->pe, ((PlanPe){.pc = made, .seg = addr_seg(in->dst), .off = x->off, .pitch = in->d[0] * 4ll}));
            p->out_at[made] = p->pe.n;
            p->spared[w->tiles.at[x->copy].pc] = p->spared[r->pc] = PLAN_SPARED_RESULT;
        }
    }
}

static void operands_note(Plan *p, const Walk *w) {
    for (uint32_t i = 0; i < w->readers.n; i++) {
        const Tile *t = &w->tiles.at[w->readers.at[i].tile];
        if (!t->spoiled)
            p->blocks[w->readers.at[i].pc] = p->blocks[t->pc] = 1;
    }
}

#define STRETCHES 8
#define STRETCH_LEAST 4096 // instructions

typedef struct Walks {
    const PlanCode *code;
    const Plan *plan;
    const Form *forms;
    const uint8_t *target;
    uint32_t n;
    Walk *walk[STRETCHES];
} Walks;

static void walk_part(void *arg, size_t part, Arena *a) {
    Walks *all = arg;
    const PlanCode *code = all->code;
    Walk *w = all->walk[part] = ARENA_NEW(a, Walk);
    w->a = a, w->code = code, w->plan = all->plan, w->forms = all->forms;
    uint64_t n = code->art->ncode;
    uint32_t begin = (uint32_t)(n * part / all->n), end = (uint32_t)(n * (part + 1) / all->n);
    VEC_RESERVE(a, &w->readers, (end - begin) / 2 + 1);
    VEC_RESERVE(a, &w->tiles, (end - begin) / 16 + 1);
    for (uint32_t pc = begin; pc < end; pc++) {
        int kind = form_of(w, pc)->kind;
        if (all->target[pc] || code->dynamic[pc] || kind == STEP_FENCE)
            forget_all(w, true);
        if (kind == STEP_HALT)
            forget_all(w, false);
        else if (kind != STEP_NONE && kind != STEP_FENCE && !code->dynamic[pc])
            step(w, pc);
    }
    forget_all(w, end < n);
}

void plan_tiles_find(Arena *a, Plan *p, const PlanCode *code, const uint8_t *target) {
    Form *forms = ARENA_NEWN(a, Form, (size_t)code->shapes->n + 1);
    bool products = false, results = false, readers = false;
    for (uint32_t i = 0; i < code->shapes->n; i++) {
        form_make(&forms[i], &code->shapes->at[i], &code->accesses[i]);
        products |= forms[i].kind == STEP_PRODUCT;
    }
    if (!products)
        return;
    uint32_t ncode = code->art->ncode;
    Walks *all = ARENA_NEW(a, Walks);
    *all = (Walks){.code = code, .plan = p, .forms = forms, .target = target, .n = ncode / STRETCH_LEAST + 1};
    all->n = all->n < STRETCHES ? all->n : STRETCHES;
    parts_run(a, code->pool, all->n, walk_part, all);
    for (uint32_t i = 0; i < all->n; i++)
        results |= all->walk[i]->results.n, readers |= all->walk[i]->readers.n;
    if (!p->spared && results)
        p->spared = ARENA_NEWN(a, uint8_t, (size_t)ncode + 1);
    p->out_at = results ? ARENA_NEWN(a, uint32_t, (size_t)ncode + 1) : NULL;
    p->blocks = readers ? ARENA_NEWN(a, uint8_t, (size_t)ncode + 1) : NULL;
    for (uint32_t i = 0; i < all->n; i++) {
        results_note(a, p, all->walk[i]);
        operands_note(p, all->walk[i]);
    }
}
