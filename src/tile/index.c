// SPDX-License-Identifier: Apache-2.0
// index.c — gather and scatter of whole rows by indirect transfers: embeddings and their gradients.
//
//   gather    idx ──► SBUF, one a partition ──► clamped to the table ──► rows go from table to result, 128 a transfer
//   scatter   idx and updates ──► SBUF ──► rows are added to (or replace) those of the result, 128 a transfer
//
// Rows of an indirect transfer are handled in order and a queue works in order, so rows named twice get their sums in the
// order of the updates, as the evaluator has them. An index outside is clamped by gather and left out by scatter.
#include "pass/rows.h"
#include "tile/emit.h"

#define PARTS 128
#define INDEX_COLS 64       // indices of a partition that are loaded at once
#define INDEX_SETS 2
#define ROW_COLS 4096       // elements of a row in SBUF at once
#define ROW_SLOTS 4
#define ROWS_MAX (1 << 24)  // the vector engine's integers are exact up to here
#define COUNT_MAX (1 << 24) // rows to be moved

typedef struct Rows {
    int64_t table, count, cols; // rows of the table, indices, elements of a row
    int index_dtype, dtype;
    uint8_t op0; // scatter: what combines
} Rows;

static bool is_range(const int64_t *v, uint32_t n, int64_t first) {
    for (uint32_t i = 0; i < n; i++)
        if (v[i] != first + i)
            return false;
    return true;
}

static bool is_one(const HloOp *op, HloAttrKey key, int64_t want) {
    uint32_t n;
    const int64_t *v = hlo_ints(op, key, &n);
    return n == 1 && v[0] == want;
}

static bool is_plain(const HloType *t) { return t->kind == HT_TENSOR && !t->dynamic && !t->text && t->elems > 0; }

// Table, indices and rows have the sizes and types that transfers take. `rows` is [indices…, row…].
static bool rows_fit(const HloOp *op, const HloType *table, const HloType *idx, const HloType *rows, Rows *r, Why *why) {
    if (!is_plain(table) || !is_plain(idx) || !is_plain(rows))
        return why_refuse(why, WHY_SIZES);
    if (dtype_row(table->dtype)->bits < 8)
        return why_refuse_type(why, WHY_LACKS, table->dtype);
    if (idx->dtype != DT_I32 && idx->dtype != DT_UI32)
        return why_refuse_type(why, WHY_INDEX_TYPE, idx->dtype);
    if (table->elems >= INT32_MAX)
        return why_refuse(why, WHY_LARGE);
    if (table->rank < 1)
        return why_refuse(why, WHY_ROWS_BY_INDEX);
    int64_t vector = hlo_int(op, AK_INDEX_VECTOR_DIM, 0);
    if (vector < idx->rank && (vector != idx->rank - 1 || idx->dims[vector] != 1))
        return why_refuse(why, WHY_ROWS_BY_INDEX);
    *r = (Rows){.table = table->dims[0], .count = idx->elems, .cols = table->elems / table->dims[0],
                .index_dtype = idx->dtype, .dtype = table->dtype};
    if (r->table > ROWS_MAX || r->count > COUNT_MAX)
        return why_refuse(why, WHY_LARGE);
    if (rows->elems != r->count * r->cols)
        return why_refuse(why, WHY_ROWS_BY_INDEX);
    return r->cols * (int64_t)dtype_bytes(r->dtype) >= 32 || why_refuse(why, WHY_SHORT_ROWS);
}

static bool gather_rows(const Hlo *h, const HloOp *op, Rows *r, Why *why) {
    const HloType *table = hlo_value_type(h, hlo_operand(h, op, 0)), *idx = hlo_value_type(h, hlo_operand(h, op, 1));
    const HloType *out = hlo_value_type(h, op->results);
    uint32_t n, nb;
    const int64_t *offset = hlo_ints(op, AK_OFFSET_DIMS, &n);
    hlo_ints(op, AK_OPERAND_BATCHING_DIMS, &nb);
    bool whole = !nb && n + 1 == table->rank && is_range(offset, n, out->rank - (int)n) &&
                 is_one(op, AK_COLLAPSED_SLICE_DIMS, 0) && is_one(op, AK_START_INDEX_MAP, 0);
    const int64_t *sizes = hlo_ints(op, AK_SLICE_SIZES, &n);
    for (uint32_t i = 0; i < n && whole; i++)
        whole = sizes[i] == (i ? table->dims[i] : 1);
    return whole ? rows_fit(op, table, idx, out, r, why) : why_refuse(why, WHY_ROWS_BY_INDEX);
}

// The region adds, or takes the update.
static bool combines(const Hlo *h, const HloOp *op, uint8_t *op0) {
    const HloRegion *r = hlo_op_region(h, op, 0);
    const HloOp *ret = r->ops.n ? hlo_at(h, r->ops.at[r->ops.n - 1]) : NULL;
    if (r->nargs != 2 || !ret || ret->code != HLO_RETURN || ret->noperands != 1)
        return false;
    if (r->ops.n == 1) {
        *op0 = ALU_BYPASS;
        return hlo_operand(h, ret, 0) == r->args + 1;
    }
    const HloOp *body = hlo_at(h, r->ops.at[0]);
    *op0 = ALU_ADD;
    if (r->ops.n != 2 || body->code != HLO_ADD || hlo_operand(h, ret, 0) != body->results)
        return false;
    ValueId a = hlo_operand(h, body, 0), b = hlo_operand(h, body, 1);
    return (a == r->args && b == r->args + 1) || (a == r->args + 1 && b == r->args);
}

static bool scatter_rows(const Hlo *h, const HloOp *op, Rows *r, Why *why) {
    if (op->noperands != 3 || op->nresults != 1)
        return why_refuse(why, WHY_COMBINES);
    const HloType *table = hlo_value_type(h, hlo_operand(h, op, 0)), *idx = hlo_value_type(h, hlo_operand(h, op, 1));
    const HloType *updates = hlo_value_type(h, hlo_operand(h, op, 2));
    uint32_t n, nb;
    const int64_t *window = hlo_ints(op, AK_UPDATE_WINDOW_DIMS, &n);
    hlo_ints(op, AK_INPUT_BATCHING_DIMS, &nb);
    uint8_t op0;
    if (nb || n + 1 != table->rank || !is_range(window, n, updates->rank - (int)n) ||
        !is_one(op, AK_INSERTED_WINDOW_DIMS, 0) || !is_one(op, AK_SCATTER_DIMS_TO_OPERAND_DIMS, 0))
        return why_refuse(why, WHY_ROWS_BY_INDEX);
    if (!combines(h, op, &op0))
        return why_refuse(why, WHY_COMBINES);
    for (uint32_t i = 0; i < n; i++) // a smaller window is no whole row
        if (updates->dims[window[i]] != table->dims[i + 1])
            return why_refuse(why, WHY_ROWS_BY_INDEX);
    if (!rows_fit(op, table, idx, updates, r, why))
        return false;
    r->op0 = op0;
    return op0 == ALU_BYPASS || r->dtype == DT_F32 || r->dtype == DT_BF16 || r->dtype == DT_F16 || why_refuse_elements(why, r->dtype);
}

bool index_is_transfer(const Hlo *h, const HloOp *op, Why *why) {
    Rows r;
    return op->code == HLO_GATHER ? gather_rows(h, op, &r, why) : op->code == HLO_SCATTER && scatter_rows(h, op, &r, why);
}

// --- emission ------------------------------------------------------------------------------------------

typedef struct Index {
    Emit *e;
    Rows r;
    uint64_t idx, rows, table; // addresses
    Haz idx_haz[INDEX_SETS], slot_haz[ROW_SLOTS];
    uint32_t slot;
} Index;

#define INDEX_BYTES (INDEX_COLS * 4u)
static uint32_t index_at(uint32_t set) { return ROWS_AREA_BEGIN + set * SBUF_PIECE; }
static uint32_t slot_at(uint32_t slot) { return ROWS_AREA_BEGIN + INDEX_SETS * SBUF_PIECE + slot * ROW_COLS * 4; }

static void share_area(Index *x, bool out) {
    for (uint32_t i = 0; i < INDEX_SETS; i++)
        emit_area(x->e, &x->idx_haz[i], index_at(i), INDEX_BYTES, out);
    for (uint32_t i = 0; i < ROW_SLOTS; i++)
        emit_area(x->e, &x->slot_haz[i], slot_at(i), ROW_COLS * 4, out);
}

// Indices [from, from + n), number p of each 128 on partition p; a gather's are clamped.
static void load_indices(Index *x, uint32_t set, int64_t from, int64_t n, bool clamp) {
    Haz *haz = &x->idx_haz[set];
    IsaInst in = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_IN, .stype = (uint8_t)x->r.index_dtype};
    in.src = x->idx + (uint64_t)from * 4, in.dst = addr_sbuf(0, index_at(set));
    int64_t full = n / PARTS, rest = n % PARTS;
    in.n[0] = PARTS, in.n[3] = (uint32_t)full;
    in.s[0] = 1, in.s[3] = PARTS, in.d[3] = 1;
    if (full)
        emit_inst(x->e, in, NULL, 0, &haz, 1);
    in.n[0] = (uint32_t)rest, in.n[3] = 1;
    in.src += (uint64_t)(full * PARTS) * 4, in.dst += (uint64_t)full * 4;
    if (rest)
        emit_inst(x->e, in, NULL, 0, &haz, 1);
    if (!clamp)
        return;
    IsaInst at = {.op = ISA_TENSOR_SCALAR, .engine = ENG_VECTOR, .op0 = ALU_MAX, .op1 = ALU_MIN, .atype = DT_F32,
                  .stype = (uint8_t)x->r.index_dtype, .dtype = DT_I32, .a = scalar_f32(0),
                  .b = scalar_f32((float)(x->r.table - 1))};
    at.d[1] = at.s[1] = 1;
    at.src = at.dst = addr_sbuf(0, index_at(set));
    at.n[0] = PARTS, at.n[1] = (uint32_t)full;
    if (full)
        emit_inst(x->e, at, NULL, 0, &haz, 1);
    at.src = at.dst = addr_sbuf(0, index_at(set) + (uint32_t)full * 4);
    at.n[0] = (uint32_t)rest, at.n[1] = 1;
    if (rest)
        emit_inst(x->e, at, NULL, 0, &haz, 1);
}

static IsaInst by_index(const Index *x, uint32_t set, uint32_t col, int64_t rows) {
    IsaInst in = {.op = ISA_DMA_INDIRECT, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_OUT, .stype = (uint8_t)x->r.dtype,
                  .src1 = addr_sbuf(0, index_at(set) + col * 4), .ttype = (uint8_t)x->r.index_dtype,
                  .limit = (int32_t)x->r.table};
    in.n[0] = (uint32_t)rows;
    in.d[3] = in.s[3] = 1;
    return in;
}

static void gather_part(Index *x, uint32_t set, uint32_t col, int64_t from, int64_t rows) {
    IsaInst in = by_index(x, set, col, rows);
    in.ttype = DT_I32;
    in.queue = col % 2 ? QUEUE_COPY : QUEUE_ROWS_OUT;
    in.src = x->table, in.dst = x->rows + (uint64_t)(from * x->r.cols) * dtype_bytes(x->r.dtype);
    in.n[3] = (uint32_t)x->r.cols;
    in.s[0] = in.d[0] = (int32_t)x->r.cols;
    emit_inst(x->e, in, (Haz *[]){&x->idx_haz[set]}, 1, NULL, 0);
}

static void scatter_part(Index *x, uint32_t set, uint32_t col, int64_t from, int64_t rows) {
    size_t size = dtype_bytes(x->r.dtype);
    int64_t most = (int64_t)(ROW_COLS * 4 / size);
    for (int64_t c = 0; c < x->r.cols; c += most) {
        uint32_t slot = x->slot++ % ROW_SLOTS, cols = (uint32_t)(x->r.cols - c < most ? x->r.cols - c : most);
        Haz *haz = &x->slot_haz[slot];
        IsaInst in = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_IN, .stype = (uint8_t)x->r.dtype};
        in.src = x->rows + (uint64_t)(from * x->r.cols + c) * size, in.dst = addr_sbuf(0, slot_at(slot));
        in.n[0] = (uint32_t)rows, in.n[3] = cols;
        in.s[0] = (int32_t)x->r.cols, in.s[3] = in.d[3] = 1;
        emit_inst(x->e, in, NULL, 0, &haz, 1);
        IsaInst to = by_index(x, set, col, rows);
        to.flags = ISA_FLAG_SKIP;
        to.op0 = x->r.op0;
        to.src = addr_sbuf(0, slot_at(slot)), to.dst = x->table + (uint64_t)c * size;
        to.n[3] = cols;
        to.d[0] = (int32_t)x->r.cols;
        emit_inst(x->e, to, (Haz *[]){haz, &x->idx_haz[set]}, 2, NULL, 0);
    }
}

// An operand that the result does not take over is copied first.
static void copy_table(Emit *e, uint64_t from, uint64_t to, uint64_t bytes) {
    IsaInst in = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_OUT, .src = from, .dst = to};
    in.stype = bytes % 4 == 0 ? DT_UI32 : DT_UI8;
    in.n[3] = (uint32_t)(bytes / dtype_bytes(in.stype));
    in.s[3] = in.d[3] = 1;
    emit_inst(e, in, NULL, 0, NULL, 0);
}

void emit_index(Emit *e, const Step *s) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, s->op);
    const BufId *ins = &e->l->refs.at[s->ins];
    Index *x = ARENA_NEW(e->c->scratch, Index);
    *x = (Index){.e = e};
    bool gather = op->code == HLO_GATHER;
    if (gather)
        gather_rows(h, op, &x->r, NULL);
    else
        scatter_rows(h, op, &x->r, NULL);
    uint64_t out = emit_addr(e, e->l->refs.at[s->outs]);
    x->idx = emit_addr(e, ins[1]);
    x->rows = gather ? out : emit_addr(e, ins[2]);
    x->table = gather ? emit_addr(e, ins[0]) : out;
    if (!gather && emit_addr(e, ins[0]) != out)
        copy_table(e, emit_addr(e, ins[0]), out, (uint64_t)(x->r.table * x->r.cols) * dtype_bytes(x->r.dtype));
    share_area(x, false);
    uint32_t set = 0;
    int64_t lo = 0, hi = x->r.count; // sums by index keep their order
    if (gather)
        emit_share(e, x->r.count, PARTS, &lo, &hi);
    for (int64_t i = lo; i < hi; i += PARTS * INDEX_COLS, set = (set + 1) % INDEX_SETS) {
        int64_t n = hi - i < PARTS * INDEX_COLS ? hi - i : PARTS * INDEX_COLS;
        emit_task(e);
        load_indices(x, set, i, n, gather);
        for (int64_t k = 0; k < n; k += PARTS) {
            int64_t rows = n - k < PARTS ? n - k : PARTS;
            if (gather)
                gather_part(x, set, (uint32_t)(k / PARTS), i + k, rows);
            else
                scatter_part(x, set, (uint32_t)(k / PARTS), i + k, rows);
        }
    }
    share_area(x, true);
}
