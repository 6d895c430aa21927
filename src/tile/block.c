// SPDX-License-Identifier: Apache-2.0
// block.c — finds row programs whose operands are products with few contracted elements, or whose results only products
// read: scores and weights of attention, forward and backward. Such a program and its products become one step, in which
// a tile of 128 rows goes from product to product without reaching HBM.
//
// A product before the program: [batch, rows, columns] with at most 256 contracted elements, read by the program alone.
// A product behind it contracts columns (weights times values) or rows (the gradients of keys and values); its other
// operand must be there when the program runs. Where rows do not fit SBUF, or accumulators PSUM, the steps stay apart.
// Batches of one tile each share it, as many as a bank of PSUM holds of their scores: an instruction over one alone would hardly begin.
#include "tile/block.h"

#include "hlo/dot.h"
#include "hlo/users.h"
#include "pass/rows.h"
#include "pass/walk.h"

#define CHUNK_MAX 4096             // rows, where not all of them fit
#define CHUNK_MIN 512
#define CHUNK_COLS 512 // columns, where PSUM does not hold all
#define TILE_COPIES 6  // of operands and results, where each tile has its own

static uint32_t align64(uint64_t v) { return (uint32_t)((v + 63) & ~(uint64_t)63); }

// --- products before ---------------------------------------------------------------------------------

static bool strides_fit(const Side *s) {
    return s->k_stride * PARTITIONS <= INT32_MAX && s->free_stride <= INT32_MAX;
}

static void try_before(Lower *l, Block *b, const HloOp *rows, uint32_t i) {
    const Hlo *h = l->h;
    ValueId value = hlo_operand(h, rows, i), v = value;
    OpId def;
    for (;;) {
        def = h->values.at[v].def;
        if (users_reads(&l->users, v) != 1 || !def || l->users.region[def] != l->users.region[b->rows])
            return;
        if (hlo_at(h, def)->code != HLO_RESHAPE)
            break;
        v = hlo_operand(h, hlo_at(h, def), 0);
    }
    const HloOp *dot = hlo_at(h, def);
    if (b->npro == BLOCK_PRO || !dot_on_tensor_engine(h, dot) || l->block_of[def])
        return;
    BlockDot d = {.op = def, .value = value, .index = i};
    d.dtype = d.lhs.dtype = d.rhs.dtype = hlo_value_type(h, hlo_operand(h, dot, 0))->dtype;
    side_init(&d.lhs.at, h, dot, false);
    side_init(&d.rhs.at, h, dot, true);
    int64_t m = d.lhs.at.free_size, batches = side_batches(&d.lhs.at);
    bool fits = d.lhs.at.k_size <= 2 * PARTITIONS && d.rhs.at.free_size == b->n && batches * m * b->n == hlo_value_type(h, v)->elems &&
                (!b->m || (b->m == m && b->batches == batches)) && strides_fit(&d.lhs.at) && strides_fit(&d.rhs.at);
    if (!fits)
        return;
    b->m = m, b->batches = batches;
    b->pro[b->npro++] = d;
}

// --- products behind ---------------------------------------------------------------------------------

// The batches of a dense [batch, rows, columns] in their order.
static bool batches_in_order(const Side *s, int64_t each) {
    for (uint32_t i = s->nbatch; i-- > 0;) {
        if (s->batch_dims[i] != 1 && s->batch_strides[i] != each)
            return false;
        each *= s->batch_dims[i];
    }
    return true;
}

static bool behind(const Lower *l, Block *b, ValueId v, OpId id, BlockDot *out) {
    const Hlo *h = l->h;
    const HloOp *dot = hlo_at(h, id);
    if (!dot_on_tensor_engine(h, dot) || l->users.region[id] != l->users.region[b->rows] || l->block_of[id])
        return false;
    ValueId lhs = hlo_operand(h, dot, 0), rhs = hlo_operand(h, dot, 1);
    bool second = rhs == v;
    const HloType *t = hlo_value_type(h, v), *ot = hlo_value_type(h, second ? lhs : rhs);
    if (lhs == rhs || t->dtype != ot->dtype || !users_there_before(&l->users, second ? lhs : rhs, b->rows))
        return false;
    Side own;
    *out = (BlockDot){.op = id, .turned = second, .dtype = t->dtype, .rhs.dtype = t->dtype, .otype = hlo_value_type(h, dot->results)->dtype};
    side_init(&own, h, dot, second);
    side_init(&out->rhs.at, h, dot, !second);
    int64_t m = b->m, n = b->n;
    out->d = out->rhs.at.free_size;
    out->over_rows = own.k_size == m && own.k_stride == n && own.free_size == n && own.free_stride == 1;
    bool columns = own.k_size == n && own.k_stride == 1 && own.free_size == m && own.free_stride == n;
    return (out->over_rows || columns) && side_batches(&own) == b->batches && batches_in_order(&own, m * n) &&
           out->d <= (second ? 2 * PARTITIONS : PSUM_BANK_COLS) && strides_fit(&out->rhs.at);
}

// Every reader of the result, through reshapes, is a product that goes with the program.
static bool collect_behind(const Lower *l, Block *b, ValueId v, uint32_t result) {
    for (Reader by = readers_of(&l->users, v); reader_next(&by);) {
        if (by.op->code == HLO_RESHAPE) {
            if (!collect_behind(l, b, by.op->results, result))
                return false;
            continue;
        }
        if (b->nepi == BLOCK_EPI || !behind(l, b, v, by.id, &b->epi[b->nepi]))
            return false;
        b->epi[b->nepi].index = result;
        b->epi[b->nepi++].value = hlo_at(l->h, b->rows)->results + result;
    }
    return users_reads(&l->users, v) > 0;
}

static void try_behind(Lower *l, Block *b, uint32_t result) {
    const Hlo *h = l->h;
    const HloOp *rows = hlo_at(h, b->rows);
    uint32_t before = b->nepi;
    if (hlo_value_type(h, rows->results + result)->elems != b->batches * b->m * b->n ||
        !collect_behind(l, b, rows->results + result, result))
        b->nepi = before;
}

// --- where things lie --------------------------------------------------------------------------------

static uint32_t panel_bytes(const Block *b, const Panel *p) {
    int64_t k = p->part == ROWS_K ? min64(p->at.k_size, b->chunk) : p->part == COLS_K ? min64(p->at.k_size, b->width) : p->at.k_size;
    int64_t f = p->part == ROWS_FREE ? min64(p->at.free_size, b->chunk) : p->part == COLS_FREE ? min64(p->at.free_size, b->width) : p->at.free_size;
    return align64((uint64_t)b->together * block_tiles(k) * (uint64_t)f * dtype_bytes(p->dtype));
}

uint32_t block_turned_slot(const Block *b, uint32_t epi) {
    assert(epi < b->nepi);
    assert(!b->epi[epi].over_rows);
    uint32_t slot = 0;
    for (uint32_t i = 0; i < epi; i++) {
        bool first = !b->epi[i].over_rows;
        for (uint32_t k = 0; k < i && first; k++)
            first = b->epi[k].over_rows || b->epi[k].index != b->epi[i].index;
        if (!b->epi[i].over_rows && b->epi[i].index == b->epi[epi].index)
            return slot;
        slot += first;
    }
    return slot;
}

static uint64_t place_panel(const Block *b, Panel *p, uint8_t part, uint64_t at) {
    p->part = part;
    p->bytes = panel_bytes(b, p);
    return at + (uint64_t)p->bytes * b->panel_copies;
}

// Both operands of a product before come with k on the partitions; where k is dense and transfers cannot transpose, that
// would be element by element.
static void turn_panels(Block *b, bool turn) {
    b->stage_bytes = 0;
    for (uint32_t i = 0; i < 2 * b->npro; i++) {
        BlockDot *d = &b->pro[i / 2];
        Panel *p = i % 2 ? &d->rhs : &d->lhs;
        p->turned = turn && dtype_bytes(d->dtype) >= 2 && p->at.k_size <= PARTITIONS && p->at.k_stride == 1 && p->at.k_size > 1 && p->at.free_stride > 1 &&
                    p->at.free_stride * PARTITIONS <= INT32_MAX;
        int64_t rows = min64(p->at.free_size, i % 2 ? (b->by_columns ? b->width : p->at.free_size) : b->chunk);
        uint32_t bytes = align64((uint64_t)b->together * block_tiles(rows) * (uint64_t)p->at.k_size * dtype_bytes(d->dtype));
        if (p->turned && bytes > b->stage_bytes)
            b->stage_bytes = bytes;
    }
}

static uint32_t gathered_bytes(const Block *b, const BlockDot *d, int64_t rows, int dtype) {
    int64_t elems = d->turned ? rows * block_tiles(d->d) : block_tiles(rows) * d->d;
    return align64((uint64_t)(b->together * elems) * dtype_bytes(dtype));
}

static uint64_t place_behind(Block *b, BlockDot *d, uint64_t at) {
    at = place_panel(b, &d->rhs, d->over_rows ? ROWS_K : b->by_columns ? COLS_K : PANEL_ALL, at);
    d->out_bytes = gathered_bytes(b, d, block_gathered(b, d), d->otype);
    d->sum_bytes = !d->over_rows && b->by_columns ? gathered_bytes(b, d, b->part, DT_F32) : 0;
    d->hold_bytes = d->over_rows && b->part < b->m ? gathered_bytes(b, d, b->width, DT_F32) : 0;
    return at + b->gathers * (uint64_t)d->out_bytes + d->sum_bytes + 2 * (uint64_t)d->hold_bytes;
}

uint64_t block_hold_bytes(const Block *b, const BlockDot *d) {
    return 2 * (uint64_t)ceil_div(b->n, b->width) * PARTITIONS * d->hold_bytes; // of each core
}

static bool place_sbuf(Block *b, uint32_t copies) {
    bool chunked = b->width < b->n, several = copies > 2;
    b->panel_copies = copies, b->turn_copies = chunked || several ? 2 : 1;
    b->stage_copies = b->gathers = several ? copies : 2;
    uint64_t at = b->stage_copies * (uint64_t)b->stage_bytes;
    for (uint32_t i = 0; i < b->npro; i++) {
        at = place_panel(b, &b->pro[i].lhs, ROWS_FREE, at);
        at = place_panel(b, &b->pro[i].rhs, b->by_columns ? COLS_FREE : PANEL_ALL, at);
    }
    b->turn_slots = b->turn_bytes = 0;
    for (uint32_t i = 0; i < b->nepi; i++) {
        at = place_behind(b, &b->epi[i], at);
        if (b->epi[i].over_rows)
            continue;
        uint32_t slot = block_turned_slot(b, i);
        uint32_t bytes = (uint32_t)(b->together * block_tiles(b->width) * PARTITIONS * (int64_t)dtype_bytes(b->epi[i].dtype));
        b->turn_slots = slot + 1 > b->turn_slots ? slot + 1 : b->turn_slots;
        b->turn_bytes = bytes > b->turn_bytes ? bytes : b->turn_bytes;
    }
    uint64_t end = at + (uint64_t)b->turn_slots * b->turn_copies * b->turn_bytes;
    b->rows_at = align64(end + SBUF_PIECE - 1) / SBUF_PIECE * SBUF_PIECE;
    return end <= (chunked ? ROWS_AREA_BEGIN + ROWS_AREA_BYTES / 2 : ROWS_AREA_BEGIN);
}

static uint32_t banks_behind(const Block *b, const BlockDot *d) {
    if (!d->over_rows || b->together > 1)
        return 1;
    if (d->turned)
        return (uint32_t)ceil_div(b->width, PSUM_BANK_COLS) * block_tiles(d->d);
    return (uint32_t)ceil_div(block_tiles(b->width), PSUM_BANK_COLS / d->d);
}

static bool place_psum(Block *b, uint32_t copies, uint32_t turns, uint32_t outs) {
    uint32_t at = 0, each = (uint32_t)ceil_div(b->together * b->width, PSUM_BANK_COLS);
    b->pro_copies = copies, b->out_copies = outs;
    for (uint32_t i = 0; i < b->npro; i++) {
        b->pro[i].bank = at, b->pro[i].banks = each;
        at += each * copies;
    }
    bool turn = b->stage_bytes > 0;
    for (uint32_t i = 0; i < b->nepi; i++) {
        b->epi[i].bank = at, b->epi[i].banks = banks_behind(b, &b->epi[i]);
        at += b->epi[i].banks * (b->epi[i].over_rows ? 1 : outs);
        turn = turn || !b->epi[i].over_rows;
    }
    b->turn_bank = at, b->turn_banks = turn ? turns : 0;
    return at + b->turn_banks <= (uint32_t)PSUM_BANKS;
}

// Transfers that cannot transpose would bring a panel element by element: worse than products apart.
static bool comes_slowly(const Block *b) {
    for (uint32_t i = 0; i < 2 * b->npro; i++) {
        const Panel *p = i % 2 ? &b->pro[i / 2].rhs : &b->pro[i / 2].lhs;
        if (p->at.k_stride == 1 && p->at.k_size > PARTITIONS && p->at.free_stride > 1)
            return true;
    }
    return false;
}

static bool place_rows(Block *b, bool turn, int64_t chunk) {
    b->chunk = chunk;
    turn_panels(b, turn);
    for (uint32_t copies = b->together > 1 ? TILE_COPIES : 2; copies >= (b->together > 1 ? 2 : 1); copies /= 2) // the next tile's come before this one's work
        if (place_sbuf(b, copies))
            return true;
    return false;
}

static bool place_banks(Block *b) {
    static const uint8_t ways[][3] = {{4, 2, 2}, {3, 2, 2}, {2, 2, 2}, {2, 2, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 1}}; // of products before, turned, behind
    uint32_t first = b->width < b->n || b->together > 1 ? 0 : 3; // of whole rows tiles overlap little
    for (uint32_t i = first; i < sizeof ways / sizeof *ways; i++)
        if (place_psum(b, ways[i][0], ways[i][1], ways[i][2]))
            return true;
    return false;
}

// Rows that are there at a time: all of a part, or chunks of it.
static bool place_memories(Block *b, bool turn, bool chunks) {
    if (turn && comes_slowly(b))
        return false;
    bool fits = !chunks && place_rows(b, turn, b->part);
    for (int64_t chunk = CHUNK_MAX; chunks && !fits && chunk >= CHUNK_MIN; chunk /= 2)
        fits = chunk < b->part && place_rows(b, turn, chunk);
    return fits && place_banks(b);
}

static void leave_out_masked(Lower *l, Block *b) {
    bool feeds[64] = {0};
    b->masked = (Masked){0};
    if (hlo_at(l->h, b->rows)->nresults > 64 || b->together > 1)
        return;
    for (uint32_t i = 0; i < b->nepi; i++) {
        feeds[b->epi[i].index] = true;
        if (b->epi[i].over_rows && b->epi[i].turned)
            return; // its accumulators are not told apart by tiles of columns
    }
    if (!mask_find(l->c, b->rows, b->m, b->n, feeds, &b->masked))
        b->masked = (Masked){0};
}

// The largest part of the rows that stays while all columns pass; else chunks of rows come again for each chunk of columns.
static bool place_width(const Lower *l, Block *b, int64_t width, bool by_columns) {
    Step s = {.op = b->rows};
    b->width = width, b->by_columns = by_columns;
    for (int chunks = 0; chunks < 2; chunks++)
        for (b->part = b->m;; b->part = (b->part / 2 + CHUNK_MAX - 1) / CHUNK_MAX * CHUNK_MAX) {
            if (place_memories(b, l->asks->chip->dma_transpose <= 0, chunks) && rows_begin(l->asks, &s, b))
                return true;
            if (!by_columns || b->part <= CHUNK_MAX)
                break;
        }
    return false;
}

// Rows whole, or in chunks. Chunks of what contracts rows have to be the outer loop: PSUM has no room for all columns.
static bool place_all(Lower *l, Block *b) {
    leave_out_masked(l, b);
    if (place_width(l, b, b->n, false))
        return true;
    bool by_columns = false;
    for (uint32_t i = 0; i < b->nepi; i++)
        by_columns = by_columns || b->epi[i].over_rows;
    for (int64_t width = CHUNK_COLS; width >= PSUM_BANK_COLS && b->nepi; width /= 2)
        if (width < b->n && place_width(l, b, width, by_columns))
            return true;
    return false;
}

// --- finding -----------------------------------------------------------------------------------------

static void mark_chain(Lower *l, ValueId v, OpId stop, uint32_t number) { // reshapes between a value and its reader
    for (Reader by = readers_of(&l->users, v); reader_next(&by);) {
        if (by.id == stop || by.op->code != HLO_RESHAPE)
            continue;
        l->block_of[by.id] = number;
        mark_chain(l, by.op->results, stop, number);
    }
}

static void keep(Lower *l, Block *b) {
    VEC_PUSH(l->c->scratch, &l->blocks, ARENA_NEW(l->c->scratch, Block));
    *l->blocks.at[l->blocks.n - 1] = *b;
    uint32_t number = l->blocks.n; // from 1
    l->block_of[b->rows] = number;
    for (uint32_t i = 0; i < b->npro; i++) {
        l->block_of[b->pro[i].op] = number;
        mark_chain(l, hlo_at(l->h, b->pro[i].op)->results, b->rows, number);
    }
    for (uint32_t i = 0; i < b->nepi; i++) {
        l->block_of[b->epi[i].op] = number;
        mark_chain(l, b->epi[i].value, 0, number);
    }
}

// What products behind leave in PSUM of all batches of a tile has a bank.
static bool shares_banks(const Block *b) {
    for (uint32_t i = 0; i < b->nepi; i++) {
        const BlockDot *d = &b->epi[i];
        int64_t other = d->over_rows ? b->n : b->m, each = d->turned ? block_tiles(d->d) * other : d->over_rows ? block_tiles(b->n) * d->d : d->d;
        if (b->together * each > PSUM_BANK_COLS)
            return false;
    }
    return true;
}

// As many batches in a tile as go together.
static bool place_batches(Lower *l, Block *b, int64_t most) {
    for (b->together = most; b->together > 1; b->together--)
        if (b->batches % b->together == 0 && shares_banks(b) && place_all(l, b))
            return true;
    b->together = 1;
    return !rows_one_tile(b->m, b->n) && place_all(l, b);
}

static void try_rows(Lower *l, OpId id) {
    const Hlo *h = l->h;
    const HloOp *op = hlo_at(h, id);
    Block b = {.rows = id};
    int64_t rows;
    const int64_t *kinds = rows_kinds(op);
    if (!rows_shape(h, op, &rows, &b.n) || b.n < 32 || rows_is_flat(h, op) || rows_exchange(h, op))
        return;
    for (uint32_t i = 0; i < op->noperands; i++)
        if (kinds[i] == FUSED_SAME)
            try_before(l, &b, op, i);
    if (!b.npro || b.batches * b.m != rows)
        return;
    int64_t most = rows_batches(l->asks->chip, b.pro[0].dtype, b.batches, b.m, b.n);
    bool tiny = b.m <= rows_short(l->asks->chip) && b.n <= rows_short(l->asks->chip);
    for (uint32_t i = 0; i < op->nresults && (!tiny || most > 1); i++)
        try_behind(l, &b, i);
    if (place_batches(l, &b, most)) {
        keep(l, &b);
        return;
    }
    b.nepi = 0; // the program and what is before it, at least
    if (place_batches(l, &b, most))
        keep(l, &b);
}

// The block whose program reads the value and nothing more of it than counts; NULL: somebody else does.
static const Block *narrow_reader(const Lower *l, OpId user, ValueId v) {
    const HloOp *op = hlo_at(l->h, user);
    const Block *b = l->block_of[user] ? l->blocks.at[l->block_of[user] - 1] : NULL;
    const int64_t *kinds = op->code == HLO_ROWS ? rows_kinds(op) : NULL;
    for (uint32_t i = 0; kinds && i < op->noperands; i++)
        if (hlo_operand(l->h, op, i) == v && kinds[i] != FUSED_SAME)
            return NULL;
    return kinds && b && b->rows == user && b->masked.widths && b->m % PARTITIONS == 0 ? b : NULL;
}

static bool keeps_columns(const Hlo *h, const HloOp *op) {
    if (op->code != HLO_RESHAPE)
        return false;
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    return in->rank && out->rank && in->dims[in->rank - 1] == out->dims[out->rank - 1];
}

// Adds what the readers of the value need of it; false: they may need all.
static bool add_reads(const Lower *l, Wedge *w, ValueId v) {
    for (Reader by = readers_of(&l->users, v); reader_next(&by);) {
        if (keeps_columns(l->h, by.op)) {
            if (!add_reads(l, w, by.op->results))
                return false;
            continue;
        }
        const Block *b = narrow_reader(l, by.id, v);
        if (!b || (w->m && w->m != b->m))
            return false;
        if (!w->m)
            w->m = b->m, w->read = ARENA_NEWN(l->c->scratch, bool, (size_t)(b->m / PARTITIONS) * w->across);
        for (int64_t t = 0; t < b->m / PARTITIONS; t++)
            for (int64_t c = 0; c < b->masked.widths[t]; c += PARTITIONS)
                w->read[t * w->across + c / PARTITIONS] = true;
    }
    return users_reads(&l->users, v) > 0;
}

static void find_wedge(Lower *l, OpId id) {
    const HloOp *op = hlo_at(l->h, id);
    const HloType *t = op->nresults == 1 ? hlo_value_type(l->h, op->results) : NULL;
    if (!t || t->rank < 2 || !rows_of_ints(l->h, op))
        return;
    Wedge w = {.n = t->dims[t->rank - 1], .across = block_tiles(t->dims[t->rank - 1])};
    if (!add_reads(l, &w, op->results) || t->elems % (w.m * w.n))
        return;
    l->wedge_of[id] = ARENA_NEW(l->c->scratch, Wedge);
    *l->wedge_of[id] = w;
}

void blocks_find(Lower *l) {
    l->block_of = ARENA_NEWN(l->c->scratch, uint32_t, l->h->ops.n);
    l->wedge_of = ARENA_NEWN(l->c->scratch, struct Wedge *, l->h->ops.n);
    lower_each(l, HLO_ROWS, try_rows);
    lower_each(l, HLO_ROWS, find_wedge);
}
