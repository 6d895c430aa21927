// SPDX-License-Identifier: Apache-2.0
// dot_cut.c — the cut of a matrix product: block, chunk, which side stays, whose SBUF.
//
//   one side stays   its block of all of k lies in SBUF while blocks of the other side pass by:  reads  A + B * blocks of A
//   neither does     both come again for every block:                                            reads  A * blocks of B + B * blocks of A
//
// Every cut that fits is priced: the array's products and transposes, the transfers, and the engines that take results and transposed
// tiles out of PSUM go on beside each other, so the longest counts; to it come transfers that slots are too few to hide, and a part of all. Prices are
// those of the instructions the emitter makes (mach/price.h), so each chip has the cut that suits it. The order in which k adds up is the same
// for all cuts.
#include "tile/dot_cut.h"

#include <assert.h>

#include "isa/build.h"

#define STREAM_MOST 4
#define QUEUES_IN 4.0 // of products: transfers are begun there beside each other
#define SPARE_MOST 2
#define HIDE_LESS 2.0 // slots of what passes that do not hide a transfer: the one in work, and a part of the next
#define ROWS_FIRST 1.03 // what comes next mostly wants whole rows,
#define ROWS_ANYHOW 1.01 // … which are there as soon where a block has all columns
// Fitted to the zoo's steps, not derived: what a step alone does not tell, as nothing is known here of its neighbours.
#define HBM_SHARE 0.25 // of the time its transfers take, which steps beside it wait for: they share HBM and the queues
#define WHOLE_WAITS 2.0 // times that those banks of a block leave PSUM which the next one waits for, where there are no transposes to do meanwhile
#define JOIN_SHARE 0.2 // of the time row programs over the same rows take, which nothing hides when their memory is taken

// --- prices of what a cut is made of -----------------------------------------------------------------

static double inst_ns(const DotSize *s, const IsaInst *in) { return cost_inst(s->chip, NULL, in); }

static Mem sbuf(void) { return (Mem){.addr = addr_sbuf(0, 0)}; }
static Mem psum(void) { return (Mem){.addr = addr_psum(0, 0)}; }
static Mem hbm(void) { return mem_hbm(addr_hbm(SEG_FIRST_ARG, 0)); }

typedef struct Loads { // transfers that begin together
    const DotSize *s;
    bool stores;
    double dma[PARTITIONS]; // ns of each DMA engine
    double hbm, count;
} Loads;

static void add_load(void *arg, View hbm, View sbuf) {
    Loads *l = arg;
    Price p;
    IsaInst in = isa_dma(ENG_SYNC, QUEUE_IN, l->stores ? hbm : sbuf, l->stores ? sbuf : hbm);
    uint32_t engines = (uint32_t)l->s->chip->dma_engines, share = (uint32_t)l->s->chip->dma_engine_partitions;
    price_alone(l->s->chip, NULL, &in, &p);
    assert(engines <= PARTITIONS);
    for (uint32_t i = 0; i < engines && !p.dma_parts; i++)
        l->dma[i] += (double)p.dma / 1000;
    for (uint32_t i = p.dma_part; i < (uint32_t)p.dma_part + p.dma_parts; i++)
        l->dma[i / share % engines] += (double)p.dma / 1000;
    l->hbm += (double)p.hbm / 1000, l->count++;
}

static double loads_ns(const Loads *l, double queues) {
    double most = l->hbm;
    for (int i = 0; i < PARTITIONS; i++)
        most = max_f64(most, l->dma[i]);
    return max_f64(most + l->count * l->s->chip->dma_gap_ns, l->s->chip->dma_issue_ns * max_f64(1, l->count / queues));
}

// Of a slot; the first one where axes make them differ.
static double load_ns(const DotSize *s, const DotSide *side, int64_t width, int64_t chunk) {
    Matrix m = {side->turned ? *side->free : *side->k, side->turned ? *side->k : *side->free};
    Loads l = {.s = s};
    bool even = m.rows.rank == 1 && m.cols.rank == 1;
    int64_t tile = even ? PARTITIONS : s->tile_k, deep = chunk * tile, parts = even ? PARTITIONS : side->parts;
    Piece p = side->turned ? (Piece){0, ceil_div(width, parts) * parts, 0, deep, parts, deep} : (Piece){0, deep, 0, width, tile, width};
    if (even)
        m.rows.at[0].n = m.rows.size = p.rows, m.cols.at[0].n = m.cols.size = p.cols; // a full one
    p.rows = min64(p.rows, m.rows.size), p.cols = min64(p.cols, m.cols.size);
    matrix_transfers(&m, p, s->stype, hbm().addr, s->stype, sbuf(), add_load, &l);
    return loads_ns(&l, QUEUES_IN);
}

static double copy_ns(const DotSize *s, int stype, int dtype, int engine, int64_t cols) {
    IsaInst cp = isa_tensor_copy(engine, VIEW(sbuf(), dtype, {PARTITIONS}, {cols, 1}), VIEW(psum(), stype, {PARTITIONS}, {cols, 1}));
    return inst_ns(s, &cp);
}

// Of columns that leave PSUM by both engines, each its share.
static double leave_ns(const DotSize *s, int stype, int dtype) {
    double v = copy_ns(s, stype, dtype, ENG_VECTOR, PSUM_BANK_COLS), a = copy_ns(s, stype, dtype, ENG_SCALAR, PSUM_BANK_COLS);
    return (s->chip->vector_scalar_port ? (v + a) / 2 : 1 / (1 / v + 1 / a)) / PSUM_BANK_COLS;
}

static double multiply_ns(const DotSize *s, int64_t cols) {
    IsaInst mm = isa_matmul(VIEW(psum(), DT_F32, {PARTITIONS}, {cols, 1}), VIEW(sbuf(), s->stype, {PARTITIONS}, {cols, 1}), 0);
    return inst_ns(s, &mm);
}

static double turn_ns(const DotSize *s) {
    IsaInst t = isa_transpose(ENG_TENSOR, VIEW(psum(), s->stype, {PARTITIONS}, {PARTITIONS, 1}), VIEW(sbuf(), s->stype, {PARTITIONS}, {PARTITIONS, 1}));
    return inst_ns(s, &t);
}

static double store_ns(const DotSize *s) { // of a tile of 128 rows and a bank's columns
    Loads l = {.s = s, .stores = true};
    Piece p = {0, min64(PARTITIONS, s->out->rows.size), 0, min64(PSUM_BANK_COLS, s->out->cols.size), PARTITIONS, PSUM_BANK_COLS};
    matrix_transfers(s->out, p, s->dtype, hbm().addr, s->dtype, sbuf(), add_load, &l);
    return loads_ns(&l, 1);
}

typedef struct Prices { // of what every cut is made of
    double bank, rest;        // products with a bank's columns, and with those left over
    double turn, store;       // a transpose by the array, a tile to HBM
    double leave, leave_turn; // a column out of PSUM, of the result and of a transpose
    double lhs, rhs;          // slots' transfers, for a block and a chunk
} Prices;

typedef struct Flow { // a side on its way, for all of the product
    double load;    // one slot's transfer
    double passes;  // times all of it comes
    int64_t blocks; // of a batch
} Flow;

static Prices prices_of(const DotSize *s) {
    Prices p = {.bank = multiply_ns(s, PSUM_BANK_COLS), .turn = turn_ns(s), .store = store_ns(s)};
    p.rest = s->n % PSUM_BANK_COLS ? multiply_ns(s, s->n % PSUM_BANK_COLS) : 0;
    p.leave = leave_ns(s, DT_F32, s->dtype), p.leave_turn = leave_ns(s, s->stype, s->stype);
    return p;
}

static void price_slots(const DotSize *s, const DotCut *c, Prices *p) {
    p->lhs = s->lhs_same ? 0 : load_ns(s, &s->lhs, min64(c->tiles * PARTITIONS, s->m), c->chunk);
    p->rhs = load_ns(s, &s->rhs, min64(c->cols, s->n), c->chunk);
}

// All of it, with the sums behind it, leaves when the array is through: two blocks leave beside each other.
static bool is_lone(const DotSize *s, const DotCut *c) {
    return s->sums && s->n <= c->cols && s->m <= c->tiles * PARTITIONS && c->tiles > 2;
}

static double cut_ns(const DotSize *s, const Prices *p, const DotCut *c) {
    int64_t ktiles = ceil_div(s->k, s->tile_k), mtiles = ceil_div(s->m, PARTITIONS), chunks = ceil_div(ktiles, c->chunk);
    Flow l = {.load = p->lhs, .blocks = ceil_div(mtiles, c->tiles)}, r = {.load = p->rhs, .blocks = ceil_div(s->n, c->cols)};
    Flow *stays = c->by_columns ? &r : &l, *passes = c->by_columns ? &l : &r;
    uint32_t stay_slots = c->by_columns ? c->rhs_slots : c->lhs_slots, pass_slots = c->by_columns ? c->lhs_slots : c->rhs_slots;
    stays->passes = stay_slots >= chunks ? 1 : (double)passes->blocks;
    passes->passes = pass_slots >= chunks * passes->blocks ? 1 : (double)stays->blocks;
    Flow turn_l = l, turn_r = r; // as the array transposes them
    turn_l.passes = s->lhs.turned ? l.passes : 0, turn_r.passes = s->rhs.turned ? r.passes : 0;
    double keep = 0;
    if (c->keeps) {
        (c->by_columns ? &turn_l : &turn_r)->passes = 1;
        keep = (double)(passes->blocks * chunks) * passes->load;
    }
    double tile = (double)(mtiles * ktiles), full = (double)(s->n / PSUM_BANK_COLS);
    double turned = tile * turn_l.passes + (double)(ceil_div(s->n, PARTITIONS) * ktiles) * turn_r.passes;
    double array = tile * (full * p->bank + p->rest) + turned * p->turn;
    if (s->sums)
        array += (double)ktiles * (s->sums == 2 ? full * p->bank + p->rest : (double)s->m / PSUM_BANK_COLS * p->bank);
    double leave = (double)(mtiles * s->n) * p->leave + turned * PARTITIONS * p->leave_turn;
    double out = s->beside > 0 ? cost_stream(s->chip, (double)(s->m * s->n) * s->beside) : (double)mtiles * (double)s->n / PSUM_BANK_COLS * p->store;
    double dma = ((double)(l.blocks * chunks) * l.load * l.passes + (double)(r.blocks * chunks) * r.load * r.passes) + out + keep;
    double start = cost_reach(s->chip), most = max_f64(array, max_f64(dma, leave));
    if (turned > 0) { // a stage is busy from the start of its transfer until all of it is transposed
        double busy = ((double)l.blocks * turn_l.passes * (start + l.load) + (double)r.blocks * turn_r.passes * (start + r.load)) * (double)chunks;
        most = max_f64(most, (busy + turned * (p->turn + PARTITIONS * p->leave_turn)) / c->stages);
    }
    // transfers that slots do not hide: of what passes, at every step; of what stays, at every block of it
    double steps = (double)(l.blocks * r.blocks * chunks), step = most / steps;
    double wait = max_f64(0, start + passes->load - (pass_slots - HIDE_LESS) * step) * (passes->passes > 1 || passes->blocks * chunks > 1 ? steps : 1);
    double change = stay_slots > chunks ? 0 : (start + stays->load) * (double)(stays->passes > 1 ? (double)(stays->blocks * passes->blocks) : (double)stays->blocks);
    double banks = (double)(c->tiles * min64(c->cols, s->n)) * p->leave; // of a block, against its last step
    double places = dot_block_banks(c->cols, turned > 0 ? DOT_TURN_BANKS : 0), still = is_lone(s, c) ? 1 : max_f64(0, 2 - places / c->tiles);
    change += max_f64((turned > 0 ? 0 : WHOLE_WAITS) * still * banks, banks - step) * (double)(l.blocks * r.blocks);
    return (most + HBM_SHARE * dma + wait + change) * (double)s->batches + start + l.load + r.load;
}

// --- cuts --------------------------------------------------------------------------------------------

uint32_t dot_stage_bytes(const DotSize *s, const DotCut *c, uint32_t lhs_cols, uint32_t rhs_cols) {
    int64_t l = s->lhs.turned ? ceil_div(lhs_cols, s->lhs.parts) : 0, r = s->rhs.turned ? ceil_div(rhs_cols, s->rhs.parts) : 0;
    return (uint32_t)(max64(l, r) * c->chunk * s->tile_k * (int64_t)dtype_bytes(s->stype));
}

bool dot_cut_fits(const DotSize *s, const DotCut *c, uint32_t lhs_cols, uint32_t rhs_cols) {
    Room room = c->borrows ? s->all : s->own;
    uint32_t l = dot_slot_bytes(c->chunk, lhs_cols, s->stype), r = dot_slot_bytes(c->chunk, rhs_cols, s->stype), at;
    uint32_t stage = dot_stage_bytes(s, c, lhs_cols, rhs_cols);
    bool ok = c->lhs_slots <= DOT_SLOTS && c->rhs_slots <= DOT_SLOTS;
    for (uint32_t i = 0; ok && i < c->lhs_slots; i++)
        ok = room_take(&room, l, &at);
    for (uint32_t i = 0; ok && i < c->rhs_slots; i++)
        ok = room_take(&room, r, &at);
    for (uint32_t i = 0; ok && stage && i < c->stages; i++)
        ok = room_take(&room, stage, &at);
    return ok && room_take(&room, s->sums_bytes, &at);
}

static void take_better(const DotSize *s, const Prices *p, DotCut c, DotCut *best) {
    if (!dot_cut_fits(s, &c, c.tiles * PARTITIONS, c.cols))
        return;
    c.ns = cut_ns(s, p, &c) * (!c.by_columns ? 1 : s->n > c.cols || s->lhs.turned || s->rhs.turned ? ROWS_FIRST : ROWS_ANYHOW);
    if (c.borrows) {
        double rows = (double)s->batches * (double)(s->m * (s->k + s->n)) * (double)dtype_bytes(s->stype);
        c.ns += JOIN_SHARE * cost_dma(s->chip, rows);
    }
    if (best->ns == 0 || c.ns < best->ns * 0.999)
        *best = c;
}

// Slots of the side that stays and of the one that passes by, for a block and a chunk.
static void try_slots(const DotSize *s, Prices *p, DotCut c, DotCut *best) {
    price_slots(s, &c, p);
    int64_t chunks = ceil_div(ceil_div(s->k, PARTITIONS), c.chunk);
    for (int64_t stay = chunks + SPARE_MOST; stay >= 2; stay = stay > chunks ? stay - 1 : stay > 4 ? 4 : stay - 1)
        for (uint32_t pass = STREAM_MOST; pass >= 2; pass--) {
            c.lhs_slots = s->lhs_same ? 1 : c.by_columns ? pass : (uint32_t)min64(stay, DOT_SLOTS + 1);
            c.rhs_slots = c.by_columns ? (uint32_t)min64(stay, DOT_SLOTS + 1) : pass;
            bool turns = s->lhs.turned || s->rhs.turned;
            bool may_keep = s->can_keep && (c.by_columns ? s->lhs.turned : s->rhs.turned);
            for (c.stages = turns ? DOT_STAGES : 0; turns ? c.stages >= 2 : !c.stages; c.stages--) {
                for (int keeps = 0; keeps <= may_keep; keeps++) {
                    c.keeps = keeps;
                    take_better(s, p, c, best);
                }
                if (!turns)
                    break;
            }
        }
}

uint32_t dot_sum_tiles(const DotSize *s, uint32_t tiles) {
    return s->sums == 2 ? 1 : s->sums ? (uint32_t)ceil_div((int64_t)tiles * PARTITIONS, PSUM_BANK_COLS) : 0;
}

// Tiles of rows that so many banks have room for; with sums no more than as many blocks need.
static uint32_t even_tiles(const DotSize *s, uint32_t banks, int64_t mtiles) {
    return (uint32_t)(s->sums ? ceil_div(mtiles, ceil_div(mtiles, banks)) : min64(banks, mtiles));
}

DotCut dot_cut(const DotSize *s) {
    DotCut best = {0};
    Prices p = prices_of(s);
    bool turns = s->lhs.turned || s->rhs.turned;
    int64_t ktiles = ceil_div(s->k, s->tile_k), mtiles = ceil_div(s->m, PARTITIONS);
    for (uint32_t borrows = 0; borrows < 2; borrows++)
        for (uint32_t by_columns = 0; by_columns < (s->lhs_same ? 1u : 2u); by_columns++)
            for (uint32_t chunk = DOT_CHUNK; chunk; chunk /= 2)
                for (uint32_t wide = 1; wide <= 2; wide++) {
                    uint32_t banks = dot_block_banks(wide * PSUM_BANK_COLS, turns ? DOT_TURN_BANKS : 0), tiles = banks;
                    if ((chunk < DOT_CHUNK && chunk >= ktiles) || (wide > 1 && s->n <= PSUM_BANK_COLS))
                        continue;
                    while (tiles + dot_sum_tiles(s, tiles) > banks)
                        tiles--;
                    DotCut c = {.by_columns = by_columns, .borrows = borrows, .tiles = even_tiles(s, tiles, mtiles), .cols = wide * PSUM_BANK_COLS};
                    c.chunk = (uint32_t)min64(chunk, ktiles);
                    try_slots(s, &p, c, &best);
                    uint32_t low = even_tiles(s, PSUM_BANKS / 2, mtiles); // the next block does not wait for it
                    if (c.tiles > low) {
                        c.tiles = low;
                        try_slots(s, &p, c, &best);
                    }
                    if (is_lone(s, &c)) {
                        c.tiles = (c.tiles + 1) / 2;
                        try_slots(s, &p, c, &best);
                    }
                }
    assert(best.ns > 0);
    return best;
}
