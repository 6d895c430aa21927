// SPDX-License-Identifier: Apache-2.0
// index.c — gather and scatter of whole rows by indirect transfers: embeddings and their gradients.
//
//   gather    idx ──► SBUF, one a partition ──► clamped to the table ──► rows go from table to result, 128 a transfer
//   scatter   idx and updates ──► SBUF ──► rows are added to (or replace) those of the result, 128 a transfer
//
// Rows of an indirect transfer are handled in order and a queue works in order, so rows named twice get their sums in the
// order of the updates, as the evaluator has them. An index outside is clamped by gather and left out by scatter.
#include "pass/rows.h"
#include "tile/area.h"
#include "tile/layout.h"

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
    const HloOp *ret = r->ops.n == 1 ? region_return(h, r) : NULL;
    *op0 = ret ? ALU_BYPASS : ALU_ADD;
    if (ret)
        return r->nargs == 2 && ret->code == HLO_RETURN && ret->noperands == 1 && hlo_operand(h, ret, 0) == r->args + 1;
    return region_combiner(h, r) == HLO_ADD;
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

bool index_takes(const Lower *l, const HloOp *op, Why *why) {
    Rows r;
    return op->code == HLO_GATHER ? gather_rows(l->h, op, &r, why) : op->code == HLO_SCATTER && scatter_rows(l->h, op, &r, why);
}

// --- emission ------------------------------------------------------------------------------------------

typedef struct Index {
    Emit *e;
    Rows r;
    uint64_t idx, rows, table; // addresses
    Ring indices, slots;
} Index;

// Indices [from, from + n), number p of each 128 on partition p; a gather's are clamped.
static void load_indices(Index *x, Mem set, int64_t from, int64_t n, bool clamp) {
    int64_t full = n / PARTITIONS, rest = n % PARTITIONS;
    Matrix m = matrix_plain(n, 1, 1, 0);
    matrix_put(x->e, QUEUE_ROWS_IN, true, &m, (Piece){0, n, 0, 1, PARTITIONS, 1}, x->r.index_dtype, x->idx + (uint64_t)from * 4, x->r.index_dtype, set);
    for (int part = 0; part < 2 && clamp; part++) {
        View v = part ? VIEW(mem_off(set, full * 4), x->r.index_dtype, {rest}) : VIEW(set, x->r.index_dtype, {PARTITIONS}, {full, 1}), to = v;
        to.dtype = DT_I32;
        IsaInst in = isa_tensor_scalar(ENG_VECTOR, to, v, ALU_MAX, isa_f32(0), ALU_MIN, isa_f32((float)(x->r.table - 1)));
        in.atype = DT_F32;
        if (part ? rest : full)
            put_inst(x->e, in, &to, NULL, NULL);
    }
}

// Rows of the table that the indices name, which are one side of the transfer.
static void put_by_index(Index *x, int queue, View dst, View src, Mem index, int index_dtype, int op0, int flags) {
    View by = VIEW(index, index_dtype, {1});
    IsaInst in = isa_dma(ENG_GPSIMD, queue, dst, src);
    in.op = ISA_DMA_INDIRECT, in.src1 = by.mem.addr, in.ttype = by.dtype, in.limit = (int32_t)x->r.table;
    in.op0 = (uint8_t)op0, in.flags = (uint8_t)flags;
    if (addr_space(in.dst) == SPACE_HBM) // from row to row, also when only one is named
        in.d[0] = (int32_t)dst.at[0].stride;
    if (addr_space(in.src) == SPACE_HBM)
        in.s[0] = (int32_t)src.at[0].stride;
    put_inst(x->e, in, &dst, &src, &by);
}

static void gather_part(Index *x, Mem set, uint32_t col, int64_t from, int64_t rows) {
    uint64_t to = x->rows + (uint64_t)(from * x->r.cols) * dtype_bytes(x->r.dtype);
    put_by_index(x, col % 2 ? QUEUE_COPY : QUEUE_ROWS_OUT, VIEW(mem_hbm(to), x->r.dtype, {rows, x->r.cols}, {x->r.cols, 1}),
                 VIEW(mem_hbm(x->table), x->r.dtype, {rows, x->r.cols}, {x->r.cols, 1}), mem_off(set, col * 4), DT_I32, 0, 0);
}

static void scatter_part(Index *x, Mem set, uint32_t col, int64_t from, int64_t rows) {
    int64_t size = (int64_t)dtype_bytes(x->r.dtype), most = ROW_COLS * 4 / size;
    for (int64_t c = 0; c < x->r.cols; c += most) {
        int64_t cols = x->r.cols - c < most ? x->r.cols - c : most;
        View slot = VIEW(ring_next(&x->slots), x->r.dtype, {rows}, {cols, 1});
        uint64_t updates = x->rows + (uint64_t)((from * x->r.cols + c) * size);
        put_dma(x->e, QUEUE_ROWS_IN, slot, VIEW(mem_hbm(updates), x->r.dtype, {rows, x->r.cols}, {cols, 1}));
        put_by_index(x, QUEUE_ROWS_OUT, VIEW(mem_hbm(x->table + (uint64_t)(c * size)), x->r.dtype, {rows, x->r.cols}, {cols, 1}), slot,
                     mem_off(set, col * 4), x->r.index_dtype, x->r.op0, ISA_FLAG_SKIP);
    }
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
    if (!gather && emit_addr(e, ins[0]) != out) // an operand that the result does not take over
        put_bytes(e, ENG_GPSIMD, QUEUE_ROWS_OUT, out, emit_addr(e, ins[0]), (uint64_t)(x->r.table * x->r.cols) * dtype_bytes(x->r.dtype));
    Area area = area_make(e, ROWS_AREA_BEGIN, ROWS_AREA_BEGIN + ROWS_AREA_BYTES);
    area_ring(&area, &x->indices, INDEX_SETS, SBUF_PIECE);
    area_ring(&area, &x->slots, ROW_SLOTS, ROW_COLS * 4);
    area_open(&area);
    int64_t lo = 0, hi = x->r.count; // sums by index keep their order
    if (gather)
        emit_share(e, x->r.count, PARTITIONS, &lo, &hi);
    for (int64_t i = lo; i < hi; i += PARTITIONS * INDEX_COLS) {
        int64_t n = hi - i < PARTITIONS * INDEX_COLS ? hi - i : PARTITIONS * INDEX_COLS;
        Mem set = ring_next(&x->indices);
        emit_task(e);
        load_indices(x, set, i, n, gather);
        for (int64_t k = 0; k < n; k += PARTITIONS) {
            int64_t rows = n - k < PARTITIONS ? n - k : PARTITIONS;
            if (gather)
                gather_part(x, set, (uint32_t)(k / PARTITIONS), i + k, rows);
            else
                scatter_part(x, set, (uint32_t)(k / PARTITIONS), i + k, rows);
        }
    }
    area_close(&area);
}
