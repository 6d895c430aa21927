// SPDX-License-Identifier: Apache-2.0
// strided.c — slices that row programs read where they lie, as gates, halves of a rotary embedding and columns of a joined product are.
//
//   %g = slice %x [:, 512:1024]      no step: each row of a tile comes from x, a pitch behind the row before it
//
// Such a slice has its operand's buffer. All who read it, perhaps in another shape, must be row programs of which a run of the slice is a row, or
// which care for elements alone. Loads are as short as a run then, so where many read short ones it is put together once (move.c).
#include <math.h>

#include "mach/cost.h"
#include "pass/rows.h"
#include "tile/lower.h"
#include "tile/nest_text.h"

#define RUN_BYTES_MIN 64
#define FILLED 8 // tiles, of which the last may have few rows

static void keep_nest(void *to, const NestOp *n) { *(Nest *)to = n->move; }

// How the slice's elements lie in its operand: run after run.
static bool slice_lies(const Hlo *h, const HloOp *op, Strided *s) {
    Nest n = {.rank = OTRN_MAX_RANK};
    if (op->code != HLO_SLICE)
        return false;
    move_nests(h, op, keep_nest, &n);
    if (!n.rank || n.rank > 2 || n.axis[n.rank - 1].src != 1 || n.axis[n.rank - 1].dst != 1)
        return false;
    *s = (Strided){.first = n.src, .run = n.axis[n.rank - 1].n, .pitch = n.rank > 1 ? n.axis[0].src : 0};
    return s->run * (int64_t)dtype_bytes(hlo_value_type(h, op->results)->dtype) >= RUN_BYTES_MIN && s->pitch <= INT32_MAX;
}

static bool value_lies(const Hlo *h, ValueId v, Strided *s) {
    OpId def = h->values.at[before_reshapes(h, v)].def;
    return def && slice_lies(h, hlo_at(h, def), s);
}

// A program of elements fills all partitions, and one of rows those that have one.
static bool fills_partitions(int64_t rows) { return rows % PARTITIONS == 0 || rows >= FILLED * PARTITIONS; }

// The program takes runs of so many elements as its rows.
static bool takes_runs(const Lower *l, OpId id, ValueId v, const Strided *s) {
    const Hlo *h = l->h;
    const HloOp *op = hlo_at(h, id);
    Strided other;
    int64_t rows, cols;
    if (l->block_of[id] || l->epilogue_of[id] || op->code != HLO_ROWS || lower_kind(l, op, NULL) != STEP_ROWS || rows_of_ints(h, op) || !rows_shape(h, op, &rows, &cols))
        return false;
    bool flat = rows_is_flat(h, op);
    if (s->pitch && (flat ? !fills_partitions(rows * cols / s->run) : cols != s->run))
        return false;
    for (uint32_t k = 0; k < op->noperands; k++) {
        ValueId x = hlo_operand(h, op, k);
        if (x == v && rows_kinds(op)[k] != FUSED_SAME)
            return false;
        if (s->pitch && flat && value_lies(h, x, &other) && other.pitch && other.run != s->run)
            return false;
    }
    return true;
}

// How many programs read it; 0: others do as well.
static uint32_t programs_reading(const Lower *l, ValueId v, const Strided *s) {
    uint32_t n = 0;
    for (Reader by = readers_of(&l->users, v); reader_next(&by);) {
        uint32_t more = by.op->code == HLO_RESHAPE ? programs_reading(l, by.op->results, s) : takes_runs(l, by.id, v, s);
        if (!more)
            return 0;
        n += more;
    }
    return n;
}

// Short runs take the DMA engines longer than one long one: each reader's, beside making it once.
static bool is_quicker(const Hlo *h, ValueId v, const Strided *s, uint32_t readers) {
    const ChipFile *c = cost_reference();
    const HloType *t = hlo_value_type(h, v);
    double bytes = (double)hlo_type_bytes(t), run = (double)(s->run * (int64_t)dtype_bytes(t->dtype));
    double apart = cost_transfers(c, 0, bytes, run), joined = cost_transfers(c, 0, bytes, bytes), made = fmax(apart, cost_hbm(c, 2 * bytes));
    return !s->pitch || readers * apart <= made + readers * joined;
}

bool lower_strided(const Lower *l, ValueId v, Strided *s) {
    v = before_reshapes(l->h, v);
    if (!value_lies(l->h, v, s) || lower_is_drawn(l, hlo_operand(l->h, hlo_at(l->h, l->h->values.at[v].def), 0)))
        return false;
    uint32_t readers = programs_reading(l, v, s);
    return readers && is_quicker(l->h, v, s, readers);
}
