// SPDX-License-Identifier: Apache-2.0
// contract.c — products through strides: DMA makes the matrices, the rest is dot.c's plan.
//
// The output is cut into blocks of up to 512 x 512, four PSUM banks of 128 rows; k goes in chunks of 8 tiles of up to
// 128 partitions. A tile of k and a range of m is a matrix in SBUF, filled by as few transfers as its axes allow: each
// one takes a run of k that has one stride (the partitions) and a box of up to three axes of m, or of two axes of m and
// evenly spaced tiles of k. Blocks and tiles end
// where axes end when that costs little, so that boxes are whole. Transfers go by two queues in turn.
//
//   slot  [tile of k][columns]   two slots a side: one is filled while the other is multiplied
//
// When k is short a slot holds several blocks, so that transfers stay large. A chip whose transfers cannot
// transpose takes an operand with dense k as it lies, positions on the partitions, and lets the array turn it in four of
// the banks; its chunks are half as long, which makes room to wait in. The cut depends on no chip.
#include "tile/contract.h"
#include "tile/area.h"

#include <assert.h>
#include <string.h>

#define TILE_K PARTITIONS
#define TILE_M PARTITIONS
#define BLOCK PSUM_BANK_COLS
#define CHUNK_TILES 8
#define OUT_TILES 8
#define SLOTS_MIN 4 // of rhs at least: larger ones would be waited for
#define STAGE_BYTES 16384u
#define RUN_MIN 8 // dense k

typedef struct Walk { // axes of one tensor, those that continue each other joined
    ViewAxis at[VIEW_AXES];
    int rank;
    int64_t size;
} Walk;

#define BOXES_MAX (2 * VIEW_AXES)
typedef struct Boxes { // ranges of a walk whose axes are whole. src: in the tensor; dst: counted inside the range
    Nest at[BOXES_MAX];
    int count;
} Boxes;

typedef struct Side {
    uint64_t addr;
    Walk k, f; // contracted and free axes
    Ring slots;     // a way for each tile
    uint32_t pitch; // columns of a tile
    int64_t key[2]; // which columns and chunk a slot holds, -1 = nothing
    bool turned;    // comes as it lies, [free][k], and the array turns it
    bool joined;    // evenly spaced tiles of a slot come in one transfer; tiles[slot][queue] stands for the slot
} Side;

typedef struct Plan {
    Emit *e;
    Contract c;
    Side lhs, rhs;
    Walk out_m, out_n;
    size_t elem, out_elem;
    int64_t k, m, n;
    int64_t tile_k, block_m, block_n, span, span_n; // span: columns of lhs and of rhs a slot holds
    uint32_t chunk_tiles; // of k in a slot
    Ring outs, stages, turn_banks;
    uint32_t bank_set, next_in;
} Plan;

static uint32_t slot_cols(const Plan *p) { return p->chunk_tiles * BLOCK; }


// --- views -------------------------------------------------------------------------------------------

static Walk walk_of(const Nest *axes, bool second) {
    Walk v = {.size = 1};
    for (int i = 0; i < axes->rank; i++) {
        ViewAxis l = {axes->axis[i].n, second ? axes->axis[i].dst : axes->axis[i].src};
        v.size *= l.n;
        if (l.n == 1)
            continue;
        ViewAxis *outer = v.rank ? &v.at[v.rank - 1] : NULL;
        if (outer && outer->stride == l.stride * l.n)
            *outer = (ViewAxis){outer->n * l.n, l.stride};
        else
            v.at[v.rank++] = l;
    }
    if (!v.rank)
        v.at[v.rank++] = (ViewAxis){1, 0};
    return v;
}

static int64_t inner_size(const Walk *v, int from) {
    int64_t n = 1;
    for (int i = from; i < v->rank; i++)
        n *= v->at[i].n;
    return n;
}

// Offset of element i, and how many from there on have the last axis's stride.
static int64_t walk_run(const Walk *v, int64_t i, int64_t *run) {
    int64_t off = 0;
    const ViewAxis *last = &v->at[v->rank - 1];
    *run = last->n - i % last->n;
    for (int d = v->rank; d-- > 0;) {
        off += i % v->at[d].n * v->at[d].stride;
        i /= v->at[d].n;
    }
    return off;
}

// Cuts elements [from, from + len) of the axes from `axis` on into boxes; `at` and `off` are those of element 0.
static void cut(const Walk *v, int axis, int64_t from, int64_t len, int64_t at, int64_t off, Boxes *out) {
    int64_t inner = inner_size(v, axis + 1);
    while (len > 0) {
        int64_t head = from % inner, whole = head ? 0 : len / inner;
        int64_t here = off + from / inner * v->at[axis].stride;
        if (whole) {
            Nest *b = &out->at[out->count++];
            assert(out->count <= BOXES_MAX);
            *b = (Nest){.src = here, .dst = at, .rank = v->rank - axis};
            for (int i = axis; i < v->rank; i++)
                b->axis[i - axis] = (Axis){i == axis ? whole : v->at[i].n, v->at[i].stride, inner_size(v, i + 1)};
            from += whole * inner, at += whole * inner, len -= whole * inner;
            continue;
        }
        int64_t part = min64(len, inner - head);
        cut(v, axis + 1, head, part, at, here, out);
        from += part, at += part, len -= part;
    }
}

static Boxes boxes_of(const Walk *v, int64_t from, int64_t len) {
    Boxes b = {0};
    cut(v, 0, from, len, 0, 0, &b);
    return b;
}

// The largest count up to `most` that ends where axes end, when it is not much less.
static int64_t even_cut(const Walk *v, int64_t most, int64_t least) {
    int64_t whole = 1;
    for (int i = v->rank; i-- > 0 && whole * v->at[i].n <= most;)
        whole *= v->at[i].n;
    int64_t n = most / whole * whole;
    return n >= least ? n : most;
}

// How many whole tiles from k on, before `end`, lie a step apart from each other.
static int64_t even_tiles(const Walk *v, int64_t tile, int64_t k, int64_t end, int64_t *step) {
    int64_t n = 1;
    for (; k + (n + 1) * tile <= end; n++)
        for (int64_t q = 0, run, other; q < tile; q += run) {
            int64_t apart = -walk_run(v, k + q, &run);
            apart += walk_run(v, k + n * tile + q, &other);
            run = min64(run, tile - q), other = min64(other, tile - q);
            if (n == 1 && q == 0)
                *step = apart;
            if (run != other || apart != n * *step)
                return n;
        }
    return n;
}

// The share of transfers that is left when tiles of a slot are joined; 1: they are not.
static double joined_share(const Plan *p, const Side *s, int64_t cols) {
    int64_t end = min64(p->chunk_tiles * p->tile_k, p->k), groups = 0, step;
    for (int64_t k = 0; k < end; groups++)
        k += even_tiles(&s->k, p->tile_k, k, end, &step) * p->tile_k;
    int64_t tiles = ceil_div(end, max64(1, p->tile_k));
    bool fits = p->k && boxes_of(&s->f, 0, cols).at[0].rank <= 2;
    return fits && !s->turned && 2 * groups <= tiles ? (double)groups / (double)tiles : 1;
}

// --- transfers ---------------------------------------------------------------------------------------

// Between a box of HBM elements, `parts` of them `part_stride` apart on partitions, and SBUF.
static void transfer(Plan *p, int queue, bool loads, int dtype, const Nest *b, Mem near, uint64_t far, int64_t parts, int64_t part_stride) {
    int outer = b->rank > 3 ? b->rank - 3 : 0;
    int64_t at[OTRN_MAX_RANK] = {0}, size = (int64_t)dtype_bytes(dtype);
    do {
        int64_t src, dst;
        nest_at(b, outer, at, &src, &dst);
        View hbm = VIEW(mem_hbm(far + (uint64_t)(src * size)), dtype, {parts, part_stride}), sbuf = VIEW(mem_off(near, dst * size), dtype, {parts});
        for (int i = outer; i < b->rank; i++)
            hbm.at[hbm.rank++] = (ViewAxis){b->axis[i].n, b->axis[i].src}, sbuf.at[sbuf.rank++] = (ViewAxis){b->axis[i].n, b->axis[i].dst};
        put_dma(p->e, queue, loads ? sbuf : hbm, loads ? hbm : sbuf);
    } while (nest_next(b, outer, at));
}

// Column `col` of a tile; where tiles are joined a hazard stands for what came by a queue.
static Mem slot_mem(const Plan *p, const Side *s, uint32_t slot, uint32_t tile, int64_t col, uint32_t way) {
    return mem_off(ring_way(&s->slots, slot, way), (tile * s->pitch + col) * (int64_t)p->elem);
}

// `count` times `parts` positions, which go on the partitions; their columns follow each other.
typedef struct Rows {
    int64_t off, col; // of the first: element of the tensor, column of the slot
    int64_t parts, part_stride, count, stride;
} Rows;

// Transposed in a bank, side by side, and copied from there to the slot (vector and scalar engine in turn).
static void transpose_rows(Plan *p, Side *s, uint32_t slot, uint32_t tile, const Rows *r, int64_t klen, Mem stage,
                           int64_t first, int64_t count) {
    int64_t size = (int64_t)p->elem, per = PSUM_BANK_BYTES / (r->parts * size);
    for (int64_t g = 0; g < count; g += per) {
        uint32_t turn = ring_turn(&p->turn_banks);
        int64_t n = min64(per, count - g);
        Mem bank = ring_at(&p->turn_banks, turn);
        put_transposes(p->e, p->c.stype, bank, r->parts, mem_off(stage, g * klen * size), klen, n * r->parts, r->parts, klen);
        put_copy(p->e, turn % 2 ? ENG_SCALAR : ENG_VECTOR,
                 VIEW(slot_mem(p, s, slot, tile, r->col + (first + g) * r->parts, tile), p->c.stype, {klen}, {n * r->parts, 1}),
                 VIEW(bank, p->c.stype, {klen}, {n * r->parts, 1}));
    }
}

static void load_rows(Plan *p, Side *s, uint32_t slot, uint32_t tile, Rows r, int64_t k0, int64_t klen) {
    int64_t size = (int64_t)p->elem, most = (int64_t)STAGE_BYTES / (klen * size);
    for (int64_t g = 0; g < r.count; g += most) {
        Mem stage = ring_next(&p->stages);
        int64_t n = min64(most, r.count - g);
        for (int64_t k = k0, run; k < k0 + klen; k += run) {
            int64_t off = r.off + g * r.stride + walk_run(&s->k, k, &run);
            run = min64(run, k0 + klen - k);
            put_dma(p->e, tile % 2 ? QUEUE_IN2 : QUEUE_IN, VIEW(mem_off(stage, (k - k0) * size), p->c.stype, {r.parts}, {n, klen}, {run, 1}),
                    VIEW(mem_hbm(s->addr + (uint64_t)(off * size)), p->c.stype, {r.parts, r.part_stride}, {n, r.stride}, {run, 1}));
        }
        transpose_rows(p, s, slot, tile, &r, klen, stage, g, n);
    }
}

// The last axis of a box goes on the partitions, the one before it beside it; or pieces of a long one.
static void load_transposed(Plan *p, Side *s, uint32_t slot, uint32_t tile, const Nest *b, int64_t k0, int64_t klen) {
    int last = b->rank - 1;
    int64_t n = b->axis[last].n, stride = b->axis[last].src, full = n / TILE_M, rest = n % TILE_M, at[OTRN_MAX_RANK] = {0};
    bool pairs = n <= TILE_M && last > 0;
    int outer = pairs ? last - 1 : last;
    do {
        Rows r = {.parts = n, .part_stride = stride, .count = 1};
        nest_at(b, outer, at, &r.off, &r.col);
        if (pairs)
            r.count = b->axis[outer].n, r.stride = b->axis[outer].src;
        if (n <= TILE_M) {
            load_rows(p, s, slot, tile, r, k0, klen);
        } else {
            r.parts = TILE_M, r.count = full, r.stride = TILE_M * stride;
            load_rows(p, s, slot, tile, r, k0, klen);
            r.off += full * r.stride, r.col += full * TILE_M, r.parts = rest, r.count = 1;
            if (rest)
                load_rows(p, s, slot, tile, r, k0, klen);
        }
    } while (nest_next(b, outer, at));
}

// A tile of k, or `tiles` of them a step apart.
static void load_tiles(Plan *p, Side *s, uint32_t slot, uint32_t tile, const Boxes *f, int64_t k0, int64_t klen, int64_t tiles,
                       int64_t step) {
    for (int i = 0; i < f->count && s->turned; i++)
        load_transposed(p, s, slot, tile, &f->at[i], k0, klen);
    if (s->turned)
        return;
    for (int64_t k = k0, run; k < k0 + klen; k += run) {
        int64_t off = walk_run(&s->k, k, &run);
        run = min64(run, k0 + klen - k);
        for (int i = 0; i < f->count; i++) {
            Nest b = f->at[i];
            if (tiles > 1 && b.rank < VIEW_AXES) {
                memmove(b.axis + 1, b.axis, (size_t)b.rank++ * sizeof *b.axis);
                b.axis[0] = (Axis){tiles, step, s->pitch};
            }
            uint32_t odd = (s->joined ? p->next_in++ : tile) % 2;
            Mem to = mem_part(slot_mem(p, s, slot, tile, 0, s->joined ? odd : tile), k - k0);
            transfer(p, odd ? QUEUE_IN2 : QUEUE_IN, true, p->c.stype, &b, to, s->addr + (uint64_t)(off * (int64_t)p->elem), run,
                     s->k.at[s->k.rank - 1].stride);
        }
    }
}

// The slot that holds columns [f0, f0 + cols) of the chunk at k0; loads it when neither does.
static uint32_t side_load(Plan *p, Side *s, int64_t f0, int64_t cols, int64_t k0, int64_t klen) {
    int64_t key = f0 * p->k + k0;
    for (uint32_t i = 0; i < 2; i++)
        if (s->key[i] == key)
            return i;
    uint32_t slot = ring_turn(&s->slots);
    s->key[slot] = key;
    Boxes f = boxes_of(&s->f, f0, cols);
    for (int64_t k = 0, n; k < klen; k += n * p->tile_k) {
        int64_t step = 0;
        n = s->joined ? even_tiles(&s->k, p->tile_k, k0 + k, k0 + klen, &step) : 1;
        load_tiles(p, s, slot, (uint32_t)(k / p->tile_k), &f, k0 + k, min64(p->tile_k, klen - k), n, step);
    }
    return slot;
}

// --- blocks ------------------------------------------------------------------------------------------

// A tile of k as the array reads it; where tiles are joined both queues are waited for.
static View tile_view(const Plan *p, const Side *s, uint32_t slot, uint32_t tile, int64_t rows, int64_t col, int64_t cols) {
    return VIEW(slot_mem(p, s, slot, tile, col, s->joined ? 0 : tile), p->c.stype, {rows}, {cols, 1});
}

static View other_queue(const Side *s, View v, uint32_t slot) {
    v.mem.haz = s->joined ? ring_way(&s->slots, slot, 1).haz : NULL;
    return v;
}

static void multiply(Plan *p, uint32_t lslot, int64_t lcol, uint32_t rslot, int64_t rcol, uint32_t tile, int64_t rows,
                     uint32_t bank, int64_t mrows, int64_t ncols, bool accumulate) {
    View l = tile_view(p, &p->lhs, lslot, tile, rows, lcol, mrows), l2 = other_queue(&p->lhs, l, lslot);
    View r = tile_view(p, &p->rhs, rslot, tile, rows, rcol, ncols), r2 = other_queue(&p->rhs, r, rslot);
    View to = VIEW(bank_at(p->e, bank), DT_F32, {mrows}, {ncols, 1});
    put_inst(p->e, isa_ldweights(l), NULL, &l, &l2);
    put_inst(p->e, isa_matmul(to, r, accumulate ? ISA_FLAG_ACCUMULATE : 0), &to, &r, &r2);
}

// PSUM bank → SBUF in the result's type (vector and scalar engine in turn) → HBM. No bank: zeros.
static void evict(Plan *p, int bank, int64_t m0, int64_t mrows, int64_t n0, int64_t ncols) {
    uint32_t tile = ring_turn(&p->outs);
    Mem at = ring_at(&p->outs, tile);
    View out = VIEW(at, p->c.dtype, {mrows}, {ncols, 1});
    if (bank < 0)
        put_memset(p->e, ENG_VECTOR, out, NULL);
    else
        put_copy(p->e, tile % 2 ? ENG_SCALAR : ENG_VECTOR, out, VIEW(bank_at(p->e, (uint32_t)bank), DT_F32, {mrows}, {ncols, 1}));
    Boxes f = boxes_of(&p->out_n, n0, ncols);
    for (int64_t m = m0, run; m < m0 + mrows; m += run) {
        int64_t off = walk_run(&p->out_m, m, &run), size = (int64_t)p->out_elem;
        run = min64(run, m0 + mrows - m);
        for (int i = 0; i < f.count; i++)
            transfer(p, QUEUE_OUT, false, p->c.dtype, &f.at[i], mem_part(at, m - m0), p->c.out + (uint64_t)(off * size), run,
                     p->out_m.at[p->out_m.rank - 1].stride);
    }
}

static bool turns(const Plan *p) { return p->lhs.turned || p->rhs.turned; }

typedef struct Held { // columns that the slots of a side hold
    int64_t from, n;
} Held;

// Rows [m0, m0 + mlen) of the result; lhs and rhs: what their slots hold.
static void block(Plan *p, Held lhs, int64_t m0, int64_t mlen, Held rhs, int64_t n0, int64_t ncols) {
    uint32_t bank0 = p->bank_set * PSUM_BANKS / 2;
    p->bank_set = turns(p) ? 0 : p->bank_set ^ 1;
    int64_t chunk = p->chunk_tiles * p->tile_k;
    for (int64_t k0 = 0; k0 < p->k; k0 += chunk) {
        int64_t klen = min64(chunk, p->k - k0);
        uint32_t rslot = side_load(p, &p->rhs, rhs.from, rhs.n, k0, klen);
        uint32_t lslot = side_load(p, &p->lhs, lhs.from, lhs.n, k0, klen);
        for (int64_t mi = 0; mi < mlen; mi += TILE_M)
            for (int64_t kt = 0; kt < klen; kt += p->tile_k)
                multiply(p, lslot, m0 - lhs.from + mi, rslot, n0 - rhs.from, (uint32_t)(kt / p->tile_k), min64(p->tile_k, klen - kt),
                         bank0 + (uint32_t)(mi / TILE_M), min64(TILE_M, mlen - mi), ncols, k0 + kt > 0);
    }
    for (int64_t mi = 0; mi < mlen; mi += TILE_M)
        evict(p, p->k ? (int)(bank0 + (uint32_t)(mi / TILE_M)) : -1, m0 + mi, min64(TILE_M, mlen - mi), n0, ncols);
}

// --- the cut -----------------------------------------------------------------------------------------

static bool comes_turned(const Side *s, size_t elem) {
    const ViewAxis *k = &s->k.at[s->k.rank - 1];
    return elem >= 2 && k->stride == 1 && k->n >= RUN_MIN && s->f.size > 1 && s->f.at[s->f.rank - 1].stride != 1;
}

// `no_turns`: transfers cannot transpose.
static void plan_cut(Plan *p, const Contract *c, bool no_turns) {
    p->c = *c;
    p->lhs.k = walk_of(&c->k, false), p->rhs.k = walk_of(&c->k, true);
    p->lhs.f = walk_of(&c->m, false), p->out_m = walk_of(&c->m, true);
    p->rhs.f = walk_of(&c->n, false), p->out_n = walk_of(&c->n, true);
    p->k = p->lhs.k.size, p->m = p->lhs.f.size, p->n = p->rhs.f.size;
    p->elem = dtype_bytes(c->stype), p->out_elem = dtype_bytes(c->dtype);
    p->lhs.turned = no_turns && comes_turned(&p->lhs, p->elem);
    p->rhs.turned = no_turns && comes_turned(&p->rhs, p->elem);
    const Walk *shorter = &p->lhs.k;
    if (p->rhs.k.at[p->rhs.k.rank - 1].n < shorter->at[shorter->rank - 1].n)
        shorter = &p->rhs.k;
    p->tile_k = p->k ? min64(even_cut(shorter, TILE_K, 96), p->k) : TILE_K;
    p->block_m = even_cut(&p->lhs.f, BLOCK, 384);
    p->block_n = even_cut(p->rhs.f.rank >= p->out_n.rank ? &p->rhs.f : &p->out_n, BLOCK, 384);
    p->chunk_tiles = turns(p) ? CHUNK_TILES / 2 : CHUNK_TILES;
    int64_t tiles = max64(1, ceil_div(p->k, p->tile_k));
    int64_t blocks = tiles < p->chunk_tiles ? p->chunk_tiles / tiles : 1;
    p->span = blocks * p->block_m;
    int64_t blocks_n = min64(blocks, max64(1, p->n / (SLOTS_MIN * p->block_n)));
    p->span_n = blocks_n * p->block_n;
    assert(p->lhs.k.size == p->rhs.k.size);
    assert(p->lhs.f.size == p->out_m.size);
    assert(p->rhs.f.size == p->out_n.size);
    assert(p->tile_k <= TILE_K);
    assert(p->block_m <= BLOCK);
    assert(p->block_n <= BLOCK);
    p->lhs.pitch = (uint32_t)(blocks * BLOCK), p->rhs.pitch = (uint32_t)(blocks_n * BLOCK);
}

static void side_slots(const Plan *p, Area *area, Side *s, int64_t most, int64_t n) {
    uint32_t tile = (uint32_t)(s->pitch * p->elem), slot = (uint32_t)(slot_cols(p) * p->elem), tiles = slot / tile;
    s->joined = joined_share(p, s, min64(most, n)) < 1;
    s->key[0] = s->key[1] = -1;
    area_ring(area, &s->slots, 2, slot);
    area_ways(area, &s->slots, s->joined ? 2 : tiles < CHUNK_TILES ? tiles : CHUNK_TILES, s->joined ? 0 : tile);
}

void contract_emit(Emit *e, const Contract *c) {
    Plan *p = ARENA_NEW(e->c->scratch, Plan);
    *p = (Plan){.e = e};
    plan_cut(p, c, e->chip->dma_transpose <= 0);
    p->lhs.addr = c->lhs, p->rhs.addr = c->rhs;
    Area area = area_make(e, 0, ROWS_AREA_BEGIN);
    side_slots(p, &area, &p->lhs, p->span, p->m);
    side_slots(p, &area, &p->rhs, p->span_n, p->n);
    area_ring(&area, &p->outs, OUT_TILES, PSUM_BANK_BYTES);
    area_ring(&area, &p->stages, turns(p) ? 2 : 0, STAGE_BYTES);
    p->turn_banks = ring_of_banks(e, PSUM_BANKS / 2, PSUM_BANKS / 2);
    area_open(&area);
    for (int64_t r = 0; r < p->n; r += p->span_n) {
        Held rhs = {r, min64(p->span_n, p->n - r)};
        for (int64_t n0 = r; n0 < r + rhs.n; n0 += p->block_n)
            for (int64_t s = 0; s < p->m; s += p->span) {
                Held lhs = {s, min64(p->span, p->m - s)};
                for (int64_t m0 = s; m0 < s + lhs.n; m0 += p->block_m) {
                    emit_task(e);
                    block(p, lhs, m0, min64(p->block_m, s + lhs.n - m0), rhs, n0, min64(p->block_n, r + rhs.n - n0));
                }
            }
    }
    area_close(&area);
}

// --- what it takes -----------------------------------------------------------------------------------

#define TRANSFER_NS 420.0      // a transfer's place in one of two queues
#define BYTE_NS (1 / 368.0)    // all DMA engines together
#define RUN_BYTES 128.0        // shorter runs take as long
#define COLUMN_NS (4 / 2.4)    // a column of fp32 through the array
#define COLUMNS_MIN 64.0

// Transfers and nanoseconds that elements with these axes take when `k` is on partitions; share: of transfers that are left.
static double move_cost(const Walk *k, const Walk *f, int64_t tile, int64_t cols, size_t elem, bool loads, double share,
                        int64_t *count) {
    int64_t run = min64(k->at[k->rank - 1].n, tile), last = f->at[f->rank - 1].n;
    double boxes = f->rank > 3 ? (double)(cols / max64(1, inner_size(f, f->rank - 3))) + 1 : 1;
    double each = (double)ceil_div(tile, max64(1, run)) * boxes * share;
    bool dense = f->at[f->rank - 1].stride == 1, turns = loads && k->at[k->rank - 1].stride == 1;
    double bytes = (double)(tile * cols) * (double)elem, row = dense ? (double)last * (double)elem : (double)elem;
    if (!turns || dense)
        bytes *= row < RUN_BYTES ? RUN_BYTES / row : 1;
    else
        each /= share; // chips without transposing transfers turn tile by tile
    *count += (int64_t)(each + 0.5);
    return each * TRANSFER_NS > bytes * BYTE_NS ? each * TRANSFER_NS : bytes * BYTE_NS;
}

double contract_cost(const Contract *c, int64_t *insts) {
    Plan p = {0};
    plan_cut(&p, c, false);
    assert(p.block_m > 0);
    assert(p.block_n > 0);
    assert(p.span > 0);
    assert(p.tile_k > 0);
    int64_t blocks_m = ceil_div(p.m, p.block_m), blocks_n = ceil_div(p.n, p.block_n), spans = ceil_div(p.m, p.span);
    int64_t tiles = ceil_div(p.k, p.tile_k), cols = min64(p.n, p.block_n);
    int64_t in_l = 0, in_r = 0, out = 0;
    double lshare = joined_share(&p, &p.lhs, min64(p.span, p.m)), rshare = joined_share(&p, &p.rhs, min64(p.span_n, p.n));
    double lhs = move_cost(&p.lhs.k, &p.lhs.f, p.tile_k, min64(p.span, p.m), p.elem, true, lshare, &in_l);
    int64_t loads_l = tiles * spans * (spans <= 2 && tiles <= CHUNK_TILES ? 1 : blocks_n); // two slots may hold all of it
    lhs *= (double)loads_l;
    int64_t loads_r = tiles <= CHUNK_TILES ? tiles * ceil_div(p.n, p.span_n) : tiles * blocks_n * blocks_m;
    double rhs = move_cost(&p.rhs.k, &p.rhs.f, p.tile_k, min64(p.span_n, p.n), p.elem, true, rshare, &in_r) * (double)loads_r;
    int64_t mtiles = blocks_m * ceil_div(p.block_m, TILE_M);
    mtiles = min64(mtiles, blocks_m * ceil_div(min64(p.m, p.block_m), TILE_M));
    double store = move_cost(&p.out_m, &p.out_n, min64(TILE_M, p.m), cols, p.out_elem, false, 1, &out);
    store *= (double)(mtiles * blocks_n);
    double column = COLUMN_NS * (p.elem >= 4 ? 1 : 0.25);
    double array = (double)(tiles * mtiles * blocks_n) * column * (cols > COLUMNS_MIN ? (double)cols : COLUMNS_MIN);
    *insts += in_l * loads_l + in_r * loads_r + out * mtiles * blocks_n +
              2 * tiles * mtiles * blocks_n + mtiles * blocks_n;
    double most = lhs + rhs > store ? lhs + rhs : store;
    return most > array ? most : array;
}
