// SPDX-License-Identifier: Apache-2.0
// slab.c — convolutions whose windows are views of SBUF.
//
// product.c loads a tile for each tap, so an input comes nine times for 3x3 taps. Here a piece of it, a slab with channels on
// the partitions and rows and columns along them, comes once, and the array reads each tap as a strided view of it:
//
//   psum[f][places] += w[tap][i][f] * slab[i][places moved by the tap]     over slices of channels and taps
//
// Places of a block are rows of one image, or whole images with what lies between their rows in SBUF, whichever wastes less
// of 512 columns. With few channels neighbouring taps of a row go together: the partitions hold the slab several times,
// each a tap further. Results with channels last are turned by the array on their way out, and so are operands with
// channels last where transfers cannot transpose. The order of sums depends on neither chip nor cut.
#include "tile/product.h"
#include "tile/area.h"

#include <assert.h>

#define TAPS_MAX 64
#define SLICES_MAX 32
#define AREA_BYTES ROWS_AREA_BEGIN
#define KEPT_BYTES 28672 // weights that stay
#define OUT_TILES 4
#define STAGE_BYTES 4096u
#define STAGES 4
#define HAZES 8 // of a slot: slices take turns
#define SLOTS_MAX 6
#define WIDER 1.25 // a slab's rows at most, so that they go on where the one before ends

typedef struct Plan {
    Emit *e;
    Slab s;
    size_t elem, out_elem;
    bool x_turned, w_turned, y_turned, kept, uniform, flat;
    int64_t chunk, slices, copies, groups; // channels of a slice; taps of a row that go together, how often
    int64_t pitch, in_rows, rows, images;  // of a block; elements of a slab's row
    int64_t n1, n3, s1, s3, columns;       // as the array reads it
    int64_t wide;                          // output channels at once
    int64_t slice;                         // elements of a slab
    uint32_t x_bytes, w_bytes;
    uint32_t slots;                        // of slabs
    Area slabs, area;
    Ring xs, ws, outs, tmps, stages, banks, turn_banks;
    int64_t w_key[2];
    double busy[ENG_COUNT]; // by evictions, ns
} Plan;

typedef struct Block {
    int64_t depth, image, images, row, rows; // places
} Block;

static int64_t even_part(int64_t n, int64_t most) { return ceil_div(n, ceil_div(n, max64(1, most))); }

static int64_t reach(const SlabAxis *a, int64_t places) { return (places - 1) * a->place + (a->taps - 1) * a->tap + 1; }

// --- the cut -----------------------------------------------------------------------------------------------

// Rows of one image, or rows with what is between them, then of several images.
static void cut_places(Plan *p) {
    const SlabAxis *r = &p->s.row, *c = &p->s.col;
    int64_t rows = even_part(r->places, min64(r->places, PSUM_BANK_COLS / c->places));
    double by_row = (double)max64(rows * c->places, 64) / (double)(rows * c->places);
    p->rows = rows, p->images = 1, p->flat = false;
    if (c->place != 1 || r->place != 1)
        return;
    int64_t flat = even_part(r->places, min64(r->places, (PSUM_BANK_COLS - c->places) / p->pitch + 1));
    int64_t n = (flat - 1) * p->pitch + c->places, images = flat == r->places ? min64(p->s.batch, PSUM_BANK_COLS / n) : 1;
    double by_image = (double)max64(images * n, 64) / (double)(images * flat * c->places);
    if (by_image <= by_row)
        p->rows = flat, p->images = images, p->flat = true;
}

// Numbers that follow from rows and images of a block.
static void set_view(Plan *p) {
    p->in_rows = reach(&p->s.row, p->rows);
    p->slice = p->images * p->in_rows * p->pitch;
    if (p->flat) {
        p->n1 = (p->rows - 1) * p->pitch + p->s.col.places;
        p->n3 = p->images, p->s3 = p->in_rows * p->pitch, p->s1 = 1;
    } else {
        p->n1 = p->s.col.places, p->s1 = p->s.col.place;
        p->n3 = p->rows, p->s3 = p->s.row.place * p->pitch;
    }
    p->columns = p->n1 * p->n3;
}

static bool place_slots(Plan *p) {
    int64_t taps = p->slices * p->s.row.taps * p->groups, elem = (int64_t)p->elem;
    p->kept = taps * p->s.outs * elem <= KEPT_BYTES;
    p->x_bytes = room_whole(p->slices * p->slice * elem), p->w_bytes = room_whole(taps * (p->kept ? p->s.outs : p->wide) * elem);
    // stages whether or not this chip needs them: the cut is the same
    uint64_t at = (p->kept ? 1 : 2) * (uint64_t)p->w_bytes + OUT_TILES * PSUM_BANK_BYTES * (p->y_turned ? 2 : 1) + STAGES * STAGE_BYTES;
    if (at + 2 * (uint64_t)p->x_bytes > AREA_BYTES)
        return false;
    p->slots = (uint32_t)min64((AREA_BYTES - (int64_t)at) / p->x_bytes, SLOTS_MAX);
    return true;
}

static bool plan_fits(const Slab *s) {
    int64_t taps = s->depth.taps * s->row.taps * s->col.taps;
    bool dense = (s->ins_x == 1 || s->col.x == 1) && (s->ins_w == 1 || s->outs_w == 1) && (s->outs_y == 1 || s->col.y == 1);
    return taps > 1 && taps <= TAPS_MAX && dense && s->col.places <= PSUM_BANK_COLS && s->batch > 0 && s->col.places > 0;
}

static bool plan_cut(Plan *p, const Slab *s, bool no_turns) {
    if (!plan_fits(s))
        return false;
    p->s = *s;
    p->elem = dtype_bytes(s->stype), p->out_elem = dtype_bytes(s->dtype);
    p->chunk = even_part(s->ins, PARTITIONS);
    p->slices = ceil_div(s->ins, p->chunk) * s->depth.taps;
    p->groups = p->copies = 1;
    int64_t together = s->ins <= PARTITIONS / 2 ? min64(PARTITIONS / s->ins, s->col.taps) : 1;
    p->groups = ceil_div(s->col.taps, together), p->copies = ceil_div(s->col.taps, p->groups);
    p->pitch = reach(&s->col, s->col.places);
    int64_t whole_row = s->col.x && s->row.x % s->col.x == 0 ? s->row.x / s->col.x : 0;
    if (whole_row > p->pitch && (double)whole_row <= WIDER * (double)p->pitch)
        p->pitch = whole_row;
    p->wide = even_part(s->outs, PARTITIONS);
    p->x_turned = no_turns && s->ins_x == 1 && s->col.x != 1;
    p->w_turned = no_turns && s->ins_w == 1 && s->outs_w != 1;
    p->y_turned = s->outs_y == 1 && s->outs > 1 && s->col.y != 1;
    cut_places(p);
    set_view(p);
    while (!place_slots(p)) {
        if (p->images == 1 && p->rows == 1)
            return false;
        if (p->images > 1)
            p->images = (p->images + 1) / 2;
        else
            p->rows = (p->rows + 1) / 2;
        set_view(p);
    }
    assert(p->columns <= PSUM_BANK_COLS);
    assert(p->wide <= PARTITIONS);
    assert(p->copies * p->chunk <= PARTITIONS);
    const SlabAxis *r = &s->row, *c = &s->col;
    bool images = p->rows == r->places && s->batch_y == r->places * c->places * c->y;
    p->uniform = (p->rows == 1 || r->y == c->places * c->y) && (p->images == 1 || images);
    int64_t row_stage = s->col.taps * p->chunk * (int64_t)p->elem;
    return p->slices <= SLICES_MAX && row_stage <= STAGE_BYTES;
}

// --- loads -------------------------------------------------------------------------------------------------

static int64_t last_group(const Plan *p, int64_t copy) { return (p->s.col.taps - 1 - copy) / p->copies; }
static int64_t slice_channels(const Plan *p, int64_t slice) {
    int64_t from = slice / p->s.depth.taps * p->chunk;
    return min64(p->chunk, p->s.ins - from);
}

// A bank of transposed columns to SBUF.
static void take_bank(Plan *p, Mem bank, int64_t parts, int64_t columns, int dtype, Mem to) {
    put_evict(p->e, p->busy, VIEW(to, dtype, {parts}, {columns, 1}), VIEW(bank, dtype, {parts}, {columns, 1}));
}

static void transpose(Plan *p, Mem bank, int64_t column, Mem from, int64_t parts, int64_t columns, int dtype) {
    put_transpose(p->e, VIEW(mem_off(bank, column * (int64_t)dtype_bytes(dtype)), dtype, {columns}, {parts, 1}), VIEW(from, dtype, {parts}, {columns, 1}));
}

static int queue_of(uint32_t turn) { return turn % 2 ? QUEUE_IN2 : QUEUE_IN; }

// Elements [from, to) of a run, `copies` copies of them from copy `g` on, to a stage that begins with element f.
static void load_stage(Plan *p, int64_t off, int64_t f, int64_t from, int64_t to, int64_t g, int64_t copies, int64_t channels, uint32_t stage) {
    const SlabAxis *c = &p->s.col;
    int64_t width = p->copies * channels, size = (int64_t)p->elem;
    for (int64_t i = from, some; i < to; i += some) { // up to where a tile ends, whole tiles, the rest
        int64_t part = (i - f) % PARTITIONS, tiles = part ? 0 : (to - i) / PARTITIONS;
        some = tiles ? tiles * PARTITIONS : min64(PARTITIONS - part, to - i);
        Mem near = mem_part(mem_off(ring_at(&p->stages, stage), ((i - f) / PARTITIONS * width + g * channels) * size), part);
        int64_t rows = tiles ? PARTITIONS : some, all = copies * channels;
        put_dma(p->e, queue_of(stage), VIEW(near, p->s.stype, {rows}, {max64(1, tiles), width}, {all, 1}),
                VIEW(mem_hbm(p->s.x + (uint64_t)((off + (i + g * c->tap) * c->x) * size)), p->s.stype, {rows, c->x}, {max64(1, tiles), PARTITIONS * c->x}, {all, 1}));
    }
}

// `count` evenly spaced elements of x from `off` on, with all their channels, to column `to` of a slice; copies begin a tap later.
static void load_run(Plan *p, int64_t off, int64_t count, int64_t channels, Mem to) {
    const SlabAxis *c = &p->s.col;
    bool follow = c->tap == 1 && c->x == channels; // a copy's channels are behind those of the one before
    int64_t width = p->copies * channels, spare = p->pitch - reach(c, c->places);
    int64_t per = min64(STAGE_BYTES / (width * (int64_t)p->elem), PSUM_BANK_COLS * 4 / ((int64_t)p->elem * PARTITIONS)) * PARTITIONS;
    int64_t all = follow ? count - spare - (c->taps - 1 - last_group(p, p->copies - 1) * p->copies) * c->tap : 0;
    for (int64_t f = 0; f < count; f += per) {
        uint32_t stage = ring_turn(&p->stages);
        Mem bank = ring_next(&p->turn_banks);
        int64_t end = min64(f + per, count), together = max64(f, min64(all, end));
        load_stage(p, off, f, f, together, 0, p->copies, channels, stage);
        for (int64_t g = 0; g < p->copies; g++)
            load_stage(p, off, f, together, min64(end, count - spare - (c->taps - 1 - last_group(p, g) * p->copies) * c->tap), g, 1, channels,
                       stage);
        put_transposes(p->e, p->s.stype, bank, PARTITIONS, ring_at(&p->stages, stage), width, end - f, PARTITIONS, width);
        take_bank(p, bank, width, end - f, p->s.stype, mem_off(to, f * (int64_t)p->elem));
    }
}

// Rows that go on where the one before ends are one run, and so are images.
static void load_transposed(Plan *p, const Block *b, int64_t off, int64_t channels, Mem to) {
    const Slab *s = &p->s;
    int64_t in_rows = reach(&s->row, b->rows), run = p->pitch, rows = in_rows, images = b->images;
    if (s->row.x == p->pitch * s->col.x || in_rows == 1)
        run *= rows, rows = 1;
    if (rows == 1 && (images == 1 || (s->batch_x == p->in_rows * p->pitch * s->col.x && in_rows == p->in_rows)))
        run *= images, images = 1;
    for (int64_t i = 0; i < images; i++)
        for (int64_t r = 0; r < rows; r++)
            load_run(p, off + i * s->batch_x + r * s->row.x, run, channels,
                     mem_off(to, (i * p->in_rows + r) * p->pitch * (int64_t)p->elem));
}

static void load_slice(Plan *p, const Block *b, uint32_t slot, int64_t slice) {
    const Slab *s = &p->s;
    int64_t channels = slice_channels(p, slice), deep = slice % s->depth.taps;
    int64_t off = b->image * s->batch_x + (b->depth * s->depth.place + deep * s->depth.tap) * s->depth.x +
                  b->row * s->row.place * s->row.x + slice / s->depth.taps * p->chunk * s->ins_x;
    int64_t size = (int64_t)p->elem, in_rows = reach(&s->row, b->rows);
    Mem to = mem_off(ring_way(&p->xs, slot, slice % HAZES), slice * p->slice * size);
    if (p->x_turned)
        load_transposed(p, b, off, channels, to);
    for (int64_t g = 0; g < p->copies && !p->x_turned; g++) {
        int64_t cols = (s->col.places - 1) * s->col.place + last_group(p, g) * p->copies * s->col.tap + 1;
        put_dma(p->e, queue_of(slice % HAZES),
                VIEW(mem_part(to, g * channels), s->stype, {channels}, {b->images, p->in_rows * p->pitch}, {in_rows, p->pitch}, {cols, 1}),
                VIEW(mem_hbm(s->x + (uint64_t)((off + g * s->col.tap * s->col.x) * size)), s->stype, {channels, s->ins_x}, {b->images, s->batch_x},
                     {in_rows, s->row.x}, {cols, s->col.x}));
    }
}

// Taps of a row as they lie, [output channel][tap][channel], and each group turned.
static void weights_transposed(Plan *p, Mem to, int64_t slice, int64_t off, int64_t row, int64_t from, int64_t n) {
    const Slab *s = &p->s;
    int64_t channels = slice_channels(p, slice), cols = p->kept ? s->outs : p->wide;
    for (int64_t f = 0; f < n; f += PARTITIONS) {
        uint32_t turn = ring_turn(&p->stages);
        Mem stage = ring_at(&p->stages, turn);
        int64_t some = min64(PARTITIONS, n - f), size = (int64_t)p->elem;
        put_dma(p->e, queue_of(turn), VIEW(stage, s->stype, {some}, {s->col.taps, channels}, {channels, 1}),
                VIEW(mem_hbm(s->w + (uint64_t)((off + row * s->row.w + (from + f) * s->outs_w) * size)), s->stype, {some, s->outs_w},
                     {s->col.taps, s->col.w}, {channels, 1}));
        for (int64_t q = 0; q < p->groups; q++) {
            Mem bank = ring_next(&p->turn_banks);
            int64_t width = min64(p->copies, s->col.taps - q * p->copies) * channels, tap = (slice * s->row.taps + row) * p->groups + q;
            transpose(p, bank, 0, mem_off(stage, q * p->copies * channels * size), some, width, s->stype);
            take_bank(p, bank, width, some, s->stype, mem_off(to, (tap * cols + f) * size));
        }
    }
}

// Weights of output channels [from, from + n).
static void load_weights(Plan *p, uint32_t slot, int64_t from, int64_t n) {
    const Slab *s = &p->s;
    int64_t cols = p->kept ? s->outs : p->wide;
    for (int64_t slice = 0; slice < p->slices; slice++) {
        int64_t channels = slice_channels(p, slice);
        int64_t off = slice % s->depth.taps * s->depth.w + slice / s->depth.taps * p->chunk * s->ins_w;
        Mem to = ring_way(&p->ws, slot, slice % HAZES);
        for (int64_t row = 0; row < s->row.taps && p->w_turned; row++)
            weights_transposed(p, to, slice, off, row, from, n);
        for (int64_t g = 0; g < p->copies && !p->w_turned; g++) {
            int64_t size = (int64_t)p->elem, groups = last_group(p, g) + 1;
            Mem near = mem_part(mem_off(to, slice * s->row.taps * p->groups * cols * size), g * channels);
            put_dma(p->e, queue_of(slice % HAZES), VIEW(near, s->stype, {channels}, {s->row.taps, p->groups * cols}, {groups, cols}, {n, 1}),
                    VIEW(mem_hbm(s->w + (uint64_t)((off + g * s->col.w + from * s->outs_w) * size)), s->stype, {channels, s->ins_w},
                         {s->row.taps, s->row.w}, {groups, p->copies * s->col.w}, {n, s->outs_w}));
        }
    }
}

// --- results -----------------------------------------------------------------------------------------------

static uint64_t y_at(const Plan *p, const Block *b, int64_t from) {
    const Slab *s = &p->s;
    return s->y + (uint64_t)((b->image * s->batch_y + b->depth * s->depth.y + b->row * s->row.y + from * s->outs_y) * (int64_t)p->out_elem);
}

// The places of a bank, without what lies between rows, in the result's type.
static void pack(Plan *p, const Block *b, Mem bank, int64_t n, Mem to) {
    int64_t cols = p->s.col.places;
    put_evict(p->e, p->busy, VIEW(to, p->s.dtype, {n}, {b->images, b->rows * cols}, {b->rows, cols}, {cols, 1}),
             VIEW(bank, DT_F32, {n}, {b->images, p->flat ? p->n1 : b->rows * cols}, {b->rows, p->flat ? p->pitch : cols}, {cols, 1}));
}

static void store_rows(Plan *p, const Block *b, int64_t from, int64_t n, Mem at) {
    const Slab *s = &p->s;
    int64_t cols = s->col.places;
    put_dma(p->e, QUEUE_OUT, VIEW(mem_hbm(y_at(p, b, from)), s->dtype, {n, s->outs_y}, {b->images, s->batch_y}, {b->rows, s->row.y}, {cols, s->col.y}),
            VIEW(at, s->dtype, {n}, {b->images, b->rows * cols}, {b->rows, cols}, {cols, 1}));
}

// Pieces of `parts` places from place `first` on, `apart` places and `step` elements of the result apart, transposed.
static void store_pieces(Plan *p, uint64_t to, int64_t first, int64_t parts, int64_t pieces, int64_t apart, int64_t step, int64_t n, Mem from) {
    Mem bank = ring_next(&p->turn_banks), at = ring_next(&p->outs);
    for (int64_t i = 0; i < pieces; i++)
        transpose(p, bank, i * n, mem_off(from, (first + i * apart) * (int64_t)p->out_elem), n, parts, p->s.dtype);
    take_bank(p, bank, parts, pieces * n, p->s.dtype, at);
    put_dma(p->e, QUEUE_OUT, VIEW(mem_hbm(to), p->s.dtype, {parts, p->s.col.y}, {pieces, step}, {n, 1}), VIEW(at, p->s.dtype, {parts}, {pieces, n}, {n, 1}));
}

static void store_transposed(Plan *p, const Block *b, int64_t from, int64_t n, Mem at) {
    const SlabAxis *r = &p->s.row, *c = &p->s.col;
    uint64_t to = y_at(p, b, from);
    int64_t places = b->images * b->rows * c->places, size = (int64_t)p->out_elem, most = PSUM_BANK_BYTES / (n * size);
    if (p->uniform) {
        for (int64_t i = 0, pieces; i < places; i += pieces * PARTITIONS) {
            pieces = min64(most, (places - i) / PARTITIONS);
            if (!pieces) { // the rest
                store_pieces(p, to + (uint64_t)(i * c->y * size), i, places - i, 1, 0, 0, n, at);
                break;
            }
            store_pieces(p, to + (uint64_t)(i * c->y * size), i, PARTITIONS, pieces, PARTITIONS, PARTITIONS * c->y, n, at);
        }
        return;
    }
    for (int64_t i = 0; i < b->images; i++)
        for (int64_t k = 0, pieces; k < b->rows; k += pieces) {
            pieces = min64(most, b->rows - k);
            for (int64_t f = 0; f < c->places; f += PARTITIONS)
                store_pieces(p, to + (uint64_t)((i * p->s.batch_y + k * r->y + f * c->y) * size), (i * b->rows + k) * c->places + f,
                             min64(PARTITIONS, c->places - f), pieces, c->places, r->y, n, at);
        }
}

// --- blocks ------------------------------------------------------------------------------------------------

static void multiply(Plan *p, const Block *b, uint32_t xslot, uint32_t wslot, int64_t slice, int64_t row, int64_t q, int64_t from, int64_t n,
                     Mem bank, bool first) {
    const Slab *s = &p->s;
    int64_t cols = p->kept ? s->outs : p->wide, tap = (slice * s->row.taps + row) * p->groups + q;
    int64_t k = min64(p->copies, s->col.taps - q * p->copies) * slice_channels(p, slice);
    int64_t size = (int64_t)p->elem, at = slice * p->slice + row * s->row.tap * p->pitch + q * p->copies * s->col.tap;
    int64_t n1 = p->flat ? (b->rows - 1) * p->pitch + s->col.places : p->n1, n3 = p->flat ? b->images : b->rows;
    put_weights(p->e, VIEW(mem_off(ring_way(&p->ws, wslot, slice % HAZES), (tap * cols + (p->kept ? from : 0)) * size), s->stype, {k}, {n, 1}), 0);
    put_matmul(p->e, VIEW(bank, DT_F32, {n}, {n3, p->n1}, {n1, 1}),
               VIEW(mem_off(ring_way(&p->xs, xslot, slice % HAZES), at * size), s->stype, {k}, {n3, p->s3}, {n1, p->s1}), !first, 0);
}

static uint32_t weights_slot(Plan *p, int64_t from, int64_t n) {
    for (uint32_t i = 0; i < 2; i++)
        if (p->kept || p->w_key[i] == from)
            return i;
    uint32_t slot = ring_turn(&p->ws);
    p->w_key[slot] = from;
    load_weights(p, slot, from, n);
    return slot;
}

static void block(Plan *p, const Block *b) {
    uint32_t xslot = ring_turn(&p->xs);
    for (int64_t from = 0; from < p->s.outs; from += p->wide) {
        int64_t n = min64(p->wide, p->s.outs - from);
        emit_task(p->e);
        for (int64_t slice = 0; slice < p->slices && !from; slice++)
            load_slice(p, b, xslot, slice);
        uint32_t wslot = weights_slot(p, from, n);
        Mem bank = ring_next(&p->banks), to = ring_next(p->y_turned ? &p->tmps : &p->outs);
        for (int64_t slice = 0; slice < p->slices; slice++)
            for (int64_t row = 0; row < p->s.row.taps; row++)
                for (int64_t q = 0; q < p->groups; q++)
                    multiply(p, b, xslot, wslot, slice, row, q, from, n, bank, !slice && !row && !q);
        pack(p, b, bank, n, to);
        (p->y_turned ? store_transposed : store_rows)(p, b, from, n, to);
    }
}

// What a view passes over between rows has to be some number.
static void fill(Plan *p, Mem at, int64_t elems) { put_memset(p->e, ENG_VECTOR, VIEW(at, p->s.stype, {PARTITIONS}, {elems, 1}), NULL); }

static void fill_slots(Plan *p) {
    bool narrow = p->copies > 1 || p->pitch > reach(&p->s.col, p->s.col.places);
    for (uint32_t i = 0; i < p->slots && p->flat && narrow && !p->x_turned; i++)
        for (int64_t k = 0; k < p->slices; k++)
            fill(p, mem_off(ring_way(&p->xs, i, k % HAZES), k * p->slice * (int64_t)p->elem), p->slice);
    for (uint32_t i = 0; i < STAGES && narrow && p->x_turned; i++)
        fill(p, ring_at(&p->stages, i), STAGE_BYTES / (int64_t)p->elem);
}

static void place_rings(Plan *p) {
    p->area = area_make(p->e, 0, AREA_BYTES);
    area_ring(&p->area, &p->ws, p->kept ? 1 : 2, p->w_bytes);
    area_ways(&p->area, &p->ws, HAZES, 0);
    area_ring(&p->area, &p->outs, OUT_TILES, PSUM_BANK_BYTES);
    area_ring(&p->area, &p->tmps, p->y_turned ? OUT_TILES : 0, PSUM_BANK_BYTES);
    area_ring(&p->area, &p->stages, STAGES, STAGE_BYTES);
    p->slabs = (Area){.e = p->e, .room = p->area.room};
    area_ring(&p->slabs, &p->xs, p->slots, p->x_bytes);
    area_ways(&p->slabs, &p->xs, HAZES, 0);
    int half = PSUM_BANKS / 2;
    p->banks = ring_of_banks(p->e, 0, p->x_turned || p->w_turned || p->y_turned ? half : PSUM_BANKS), p->turn_banks = ring_of_banks(p->e, half, half);
}

void slab_emit(Emit *e, const Slab *s) {
    Plan *p = ARENA_NEW(e->c->scratch, Plan);
    *p = (Plan){.e = e};
    bool ok = plan_cut(p, s, e->chip->dma_transpose <= 0);
    assert(ok);
    (void)ok;
    p->w_key[0] = p->w_key[1] = -1;
    place_rings(p);
    area_open(&p->slabs);
    area_open(&p->area);
    emit_task(e);
    fill_slots(p);
    if (p->kept)
        load_weights(p, 0, 0, s->outs);
    for (int64_t d = 0; d < s->depth.places; d++)
        for (int64_t i = 0; i < s->batch; i += p->images)
            for (int64_t r = 0; r < s->row.places; r += p->rows)
                block(p, &(Block){d, i, min64(p->images, s->batch - i), r, min64(p->rows, s->row.places - r)});
    area_close(&p->slabs);
    area_close(&p->area);
}

// --- what it takes -----------------------------------------------------------------------------------------

#define APART 1.6 // rows of results that are turned and stored one by one

bool slab_cost(const ChipFile *c, const Slab *s, double *ns, int64_t *insts) {
    Plan p = {0};
    if (!plan_cut(&p, s, false))
        return false;
    assert(p.images > 0);
    assert(p.rows > 0);
    assert(p.wide > 0);
    int64_t blocks = s->depth.places * ceil_div(s->batch, p.images) * ceil_div(s->row.places, p.rows), wides = ceil_div(s->outs, p.wide);
    int64_t products = blocks * wides * p.slices * s->row.taps * p.groups, places = p.images * p.rows * s->col.places;
    double column = cost_columns(c, s->stype, 1), elem = (double)p.elem, size = (double)p.out_elem, run_bytes = c->dma_descriptor_bytes;
    double array = (double)products * column * (max_f64((double)p.columns, c->pe_min_cycles) + (double)p.wide / 4);
    double x = (double)(blocks * p.slices * p.copies), row = s->ins_x == 1 ? run_bytes : (double)p.pitch * elem;
    if (s->row.x == p.pitch)
        row *= (double)p.in_rows;
    double in = cost_transfers(c, x, x * (double)(p.chunk * p.slice) * elem, row);
    double weights = (double)(p.slices * s->row.taps * s->col.taps * p.chunk * s->outs) * elem * (double)(p.kept ? 1 : blocks);
    in += cost_transfers(c, (double)(p.slices * p.copies * wides * (p.kept ? 1 : blocks)), weights, run_bytes);
    double stores = (double)(blocks * wides), run = (double)(s->outs_y == 1 ? p.wide : s->col.places) * size;
    double pieces = p.uniform ? 1 + (places % PARTITIONS != 0) : (double)ceil_div(p.images * p.rows * p.wide * (int64_t)size, PSUM_BANK_BYTES);
    if (!p.y_turned && s->row.y == s->col.places * s->col.y)
        run *= (double)p.rows;
    run = s->col.y == 1 || s->outs_y == 1 ? run : size;
    double out = 2 * cost_transfers(c, p.y_turned ? stores * pieces : stores, 0, 1);
    out = max_f64(out, cost_transfers(c, 0, stores * (double)(places * p.wide) * size, run));
    double vector = cost_pass(c, ENG_VECTOR, stores * (double)places) * (p.y_turned ? 2 : 1) / 2;
    if (p.y_turned)
        array += stores * (double)ceil_div(places, PARTITIONS) * PARTITIONS * column;
    *ns = max_f64(max_f64(array, in), max_f64(out, vector)) * (p.y_turned && !p.uniform ? APART : 1);
    *insts = 2 * products + (int64_t)x + (int64_t)stores * (p.y_turned ? 10 : 2);
    return true;
}
