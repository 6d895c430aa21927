// SPDX-License-Identifier: Apache-2.0
// batch.c — many small matrix products: a transfer brings as many of them as a PSUM bank has room for.
//
//   lhs  [k][product, m]   one load each: k on the partitions, products side by side
//   rhs  [k][product, n]
//   bank [m][product, n]   a matmul for each product, then one eviction and one store
//
// A side whose k is dense comes as it lies where transfers cannot transpose, [m][product, k], and the array transposes it through
// half of the banks.
//
// For products of which m and k fit the array and several results fit a bank; dot.c would pay for the transfers of each.
// The sums are those of dot.c to the bit.
#include "hlo/dot.h"
#include "tile/area.h"
#include "tile/put.h"
#include "tile/side.h"

#include <assert.h>

#define TOGETHER_MIN 4
#define SLOTS 4
#define SIDE_BYTES 8192u // of a slot, each side
#define STAGES_BYTES (ROWS_AREA_BEGIN - SLOTS * (2 * SIDE_BYTES + PSUM_BANK_BYTES)) // what is left: sides as they lie
#define STAGES 8 // at most

typedef struct Batch {
    Emit *e;
    Side lhs, rhs, out;
    uint64_t lhs_addr, rhs_addr, out_addr;
    int stype, dtype;
    size_t elem, out_elem;
    int64_t m, n, k, batches, together;
    Ring lslots, rslots, outs, stages, banks, turn_banks;
    uint32_t nstages, stage_bytes;
    bool lhs_turned, rhs_turned;
} Batch;

static bool batch_init(const Hlo *h, const HloOp *op, Batch *b) {
    if (!dot_on_tensor_engine(h, op))
        return false;
    side_init(&b->lhs, h, op, false);
    side_init(&b->rhs, h, op, true);
    b->stype = hlo_value_type(h, hlo_operand(h, op, 0))->dtype;
    b->dtype = hlo_value_type(h, op->results)->dtype;
    b->elem = dtype_bytes(b->stype), b->out_elem = dtype_bytes(b->dtype);
    b->m = b->lhs.free_size, b->n = b->rhs.free_size, b->k = b->lhs.k_size;
    b->batches = side_batches(&b->lhs);
    int64_t room = (int64_t)(SIDE_BYTES / b->elem) / (b->m > b->n ? b->m : b->n);
    b->together = PSUM_BANK_COLS / b->n < room ? PSUM_BANK_COLS / b->n : room;
    b->together = b->together < b->batches ? b->together : b->batches;
    bool small = b->m <= PARTITIONS && b->k <= PARTITIONS && b->together >= TOGETHER_MIN;
    int64_t most = INT32_MAX;
    return small && hlo_value_type(h, hlo_operand(h, op, 0))->elems < most &&
           hlo_value_type(h, hlo_operand(h, op, 1))->elems < most && hlo_value_type(h, op->results)->elems < most;
}

bool dot_is_batch(const Hlo *h, const HloOp *op) {
    Batch b = {0};
    return batch_init(h, op, &b);
}

// Products [from, from + n) that lie at one distance in a side: along its last batch dimension of more than one element.
static int64_t run_of(const Side *s, int64_t from, int64_t n, int64_t *stride) {
    uint32_t last = s->nbatch;
    while (last > 0 && s->batch_dims[last - 1] == 1)
        last--;
    *stride = last ? s->batch_strides[last - 1] : 0;
    int64_t size = last ? s->batch_dims[last - 1] : 1;
    for (; last > 1 && s->batch_strides[last - 2] == *stride * size; last--) // goes on in the dimension before
        size *= s->batch_dims[last - 2];
    int64_t left = size - from % size;
    return left < n ? left : n;
}

// To [partition][product, column]: k on the partitions, or free as they lie.
static void load(Batch *b, const Side *s, uint64_t addr, Mem to, int queue, int64_t from, int64_t n, bool turned) {
    int64_t parts = turned ? s->free_size : b->k, cols = turned ? b->k : s->free_size, size = (int64_t)b->elem;
    for (int64_t i = 0, run; i < n; i += run) {
        int64_t stride;
        run = run_of(s, from + i, n - i, &stride);
        uint64_t src = addr + (uint64_t)side_batch_offset(s, from + i) * b->elem;
        put_dma(b->e, queue, VIEW(mem_off(to, i * cols * size), b->stype, {parts}, {run, cols}, {cols, 1}),
                VIEW(mem_hbm(src), b->stype, {parts, turned ? s->free_stride : s->k_stride}, {run, stride}, {cols, turned ? 1 : s->free_stride}));
    }
}

static bool comes_turned(const Batch *b, const Side *s) {
    return (b->e->chip->dma_transpose <= 0 || b->elem == 1) && s->k_stride == 1 && s->free_stride > 1 && b->k > 1;
}

// Products that a stage has room for, and stages of that size.
static void plan_stages(Batch *b) {
    b->lhs_turned = comes_turned(b, &b->lhs), b->rhs_turned = comes_turned(b, &b->rhs);
    if (!b->lhs_turned && !b->rhs_turned)
        return;
    int64_t most = STAGES_BYTES / 2 / (b->k * (int64_t)b->elem);
    b->together = b->together < most ? b->together : most;
    b->stage_bytes = (uint32_t)(b->together * b->k * (int64_t)b->elem + SBUF_PIECE - 1) / SBUF_PIECE * SBUF_PIECE;
    b->nstages = STAGES_BYTES / b->stage_bytes < STAGES ? STAGES_BYTES / b->stage_bytes : STAGES;
    assert(b->together > 0);
    assert(b->nstages >= 2);
}

// Products [from, from + n) of a stage, free on the partitions, to their place with k on them.
static void transpose(Batch *b, const Side *s, Mem stage, Mem to, int64_t from, int64_t n) {
    Mem bank = ring_next(&b->turn_banks);
    int64_t size = (int64_t)b->elem;
    put_transposes(b->e, b->stype, bank, PARTITIONS, mem_off(stage, from * b->k * size), b->k, n * s->free_size, s->free_size, b->k);
    put_copy(b->e, b->turn_banks.next % 2 ? ENG_SCALAR : ENG_VECTOR,
             VIEW(mem_off(to, from * s->free_size * size), b->stype, {b->k}, {n, s->free_size}, {s->free_size, 1}),
             VIEW(bank, b->stype, {b->k}, {n, PARTITIONS}, {s->free_size, 1}));
}

static void load_side(Batch *b, const Side *s, uint64_t addr, Mem to, int queue, int64_t from, int64_t n, bool turned) {
    Mem place = turned ? ring_next(&b->stages) : to;
    load(b, s, addr, place, queue, from, n, turned);
    int64_t per = PSUM_BANK_BYTES / (int64_t)(PARTITIONS * b->elem);
    for (int64_t i = 0; i < n && turned; i += per)
        transpose(b, s, place, to, i, n - i < per ? n - i : per);
}

static void store(Batch *b, Mem from, int64_t first, int64_t n) {
    for (int64_t i = 0, run, stride; i < n; i += run) {
        run = run_of(&b->out, first + i, n - i, &stride);
        bool dense = stride == b->n; // products lie beside each other as in the bank
        Mem to = mem_hbm(b->out_addr + (uint64_t)side_batch_offset(&b->out, first + i) * b->out_elem);
        put_dma(b->e, QUEUE_OUT, VIEW(to, b->dtype, {b->m, b->out.free_stride}, {dense ? 1 : run, stride}, {dense ? run * b->n : b->n, 1}),
                VIEW(mem_off(from, i * b->n * (int64_t)b->out_elem), b->dtype, {b->m}, {dense ? 1 : run, b->n}, {dense ? run * b->n : b->n, 1}));
    }
}

static void group(Batch *b, int64_t from, int64_t n) {
    assert(n * b->n <= PSUM_BANK_COLS);
    assert(b->k <= PARTITIONS);
    uint32_t turn = b->banks.next;
    Mem lhs = ring_next(&b->lslots), rhs = ring_next(&b->rslots), bank = ring_next(&b->banks);
    int64_t size = (int64_t)b->elem;
    load_side(b, &b->rhs, b->rhs_addr, rhs, QUEUE_IN2, from, n, b->rhs_turned);
    load_side(b, &b->lhs, b->lhs_addr, lhs, QUEUE_IN, from, n, b->lhs_turned);
    for (int64_t i = 0; i < n; i++) {
        put_weights(b->e, VIEW(mem_off(lhs, i * b->m * size), b->stype, {b->k}, {b->m, 1}), 0);
        put_matmul(b->e, VIEW(mem_off(bank, i * b->n * 4), DT_F32, {b->m}, {b->n, 1}), VIEW(mem_off(rhs, i * b->n * size), b->stype, {b->k}, {b->n, 1}), false, 0);
    }
    Mem out = ring_next(&b->outs);
    put_copy(b->e, turn % 2 ? ENG_SCALAR : ENG_VECTOR, VIEW(out, b->dtype, {b->m}, {n * b->n, 1}), VIEW(bank, DT_F32, {b->m}, {n * b->n, 1}));
    store(b, out, from, n);
}

static Area place_slots(Batch *b) {
    Area area = area_make(b->e, 0, ROWS_AREA_BEGIN);
    area_ring(&area, &b->lslots, SLOTS, SIDE_BYTES);
    area_ring(&area, &b->rslots, SLOTS, SIDE_BYTES);
    area_ring(&area, &b->outs, SLOTS, PSUM_BANK_BYTES);
    area_ring(&area, &b->stages, b->nstages, b->stage_bytes);
    int half = PSUM_BANKS / 2;
    b->banks = ring_of_banks(b->e, 0, b->nstages ? half : PSUM_BANKS), b->turn_banks = ring_of_banks(b->e, half, half);
    return area;
}

void emit_batch(Emit *e, const Step *s) {
    Batch *b = ARENA_NEW(e->c->scratch, Batch);
    batch_init(e->l->h, hlo_at(e->l->h, s->op), b);
    assert(s->kind == STEP_BATCH);
    b->e = e;
    b->lhs_addr = emit_addr(e, e->l->refs.at[s->ins]), b->rhs_addr = emit_addr(e, e->l->refs.at[s->ins + 1]);
    b->out_addr = emit_addr(e, e->l->refs.at[s->outs]);
    bool dense = side_of_result(&b->out, e->l->h, hlo_at(e->l->h, s->op), lower_stored_as(e->l, s->op));
    assert(dense);
    (void)dense;
    plan_stages(b);
    Area area = place_slots(b);
    area_open(&area);
    int64_t lo, hi;
    emit_share(e, b->batches, 1, &lo, &hi);
    for (int64_t i = lo; i < hi; i += b->together) {
        emit_task(e);
        group(b, i, hi - i < b->together ? hi - i : b->together);
    }
    area_close(&area);
}
