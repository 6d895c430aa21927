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
#include "tile/emit.h"
#include "tile/side.h"

#include <assert.h>

#define ARRAY 128
#define BANK_COLS 512
#define TOGETHER_MIN 4
#define SLOTS 4
#define SIDE_BYTES 8192u // of a slot, each side
#define OUT_BYTES (BANK_COLS * 4u)
#define STAGES_AT (2 * SLOTS * SIDE_BYTES + SLOTS * OUT_BYTES) // sides as they lie
#define STAGES_BYTES (ROWS_AREA_BEGIN - STAGES_AT)
#define STAGES 8 // at most
#define BANKS 8

typedef struct Batch {
    Emit *e;
    Side lhs, rhs;
    uint64_t lhs_addr, rhs_addr, out_addr;
    int stype, dtype;
    size_t elem, out_elem;
    int64_t m, n, k, batches, together;
    Haz lhs_haz[SLOTS], rhs_haz[SLOTS], out_haz[SLOTS], stage_haz[STAGES];
    uint32_t next, stages, stage_bytes, next_stage, next_turn;
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
    b->batches = 1;
    for (uint32_t i = 0; i < b->lhs.nbatch; i++)
        b->batches *= b->lhs.batch_dims[i];
    int64_t room = (int64_t)(SIDE_BYTES / b->elem) / (b->m > b->n ? b->m : b->n);
    b->together = BANK_COLS / b->n < room ? BANK_COLS / b->n : room;
    b->together = b->together < b->batches ? b->together : b->batches;
    bool small = b->m <= ARRAY && b->k <= ARRAY && b->together >= TOGETHER_MIN;
    int64_t most = INT32_MAX;
    return small && hlo_value_type(h, hlo_operand(h, op, 0))->elems < most &&
           hlo_value_type(h, hlo_operand(h, op, 1))->elems < most && hlo_value_type(h, op->results)->elems < most;
}

bool dot_is_batch(const Hlo *h, const HloOp *op) {
    Batch b = {0};
    return batch_init(h, op, &b);
}

static uint32_t lhs_at(uint32_t slot) { return slot * SIDE_BYTES; }
static uint32_t rhs_at(uint32_t slot) { return (SLOTS + slot) * SIDE_BYTES; }
static uint32_t out_at(uint32_t slot) { return 2 * SLOTS * SIDE_BYTES + slot * OUT_BYTES; }

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

static void load(Batch *b, const Side *s, uint64_t addr, uint32_t sbuf, Haz *haz, int queue, int64_t from, int64_t n) {
    for (int64_t i = 0, run; i < n; i += run) {
        int64_t stride;
        run = run_of(s, from + i, n - i, &stride);
        IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = (uint8_t)queue, .stype = (uint8_t)b->stype};
        in.src = addr + (uint64_t)side_batch_offset(s, from + i) * b->elem;
        in.dst = addr_sbuf(0, sbuf + (uint32_t)((uint64_t)(i * s->free_size) * b->elem));
        in.n[0] = (uint32_t)b->k, in.n[2] = (uint32_t)run, in.n[3] = (uint32_t)s->free_size;
        in.s[0] = (int32_t)s->k_stride, in.s[2] = (int32_t)stride, in.s[3] = (int32_t)s->free_stride;
        in.d[2] = (int32_t)s->free_size, in.d[3] = 1;
        emit_inst(b->e, in, NULL, 0, &haz, 1);
    }
}

static bool comes_turned(const Batch *b, const Side *s) {
    return b->e->chip->dma_transpose <= 0 && b->elem >= 2 && s->k_stride == 1 && s->free_stride > 1 && b->k > 1;
}

// Products that a stage has room for, and stages of that size.
static void plan_stages(Batch *b) {
    b->lhs_turned = comes_turned(b, &b->lhs), b->rhs_turned = comes_turned(b, &b->rhs);
    if (!b->lhs_turned && !b->rhs_turned)
        return;
    int64_t most = STAGES_BYTES / 2 / (b->k * (int64_t)b->elem);
    b->together = b->together < most ? b->together : most;
    b->stage_bytes = (uint32_t)(b->together * b->k * (int64_t)b->elem + SBUF_PIECE - 1) / SBUF_PIECE * SBUF_PIECE;
    b->stages = STAGES_BYTES / b->stage_bytes < STAGES ? STAGES_BYTES / b->stage_bytes : STAGES;
    assert(b->together > 0 && b->stages >= 2);
}

// Products [from, from + n) of a stage, free on the partitions, to their place with k on them.
static void transpose(Batch *b, const Side *s, uint32_t stage, uint32_t sbuf, Haz *haz, int64_t from, int64_t n) {
    uint32_t bank = BANKS / 2 + b->next_turn++ % (BANKS / 2), at = STAGES_AT + stage * b->stage_bytes;
    Haz *bhaz = &b->e->bank_haz[bank], *shaz = &b->stage_haz[stage];
    for (int64_t i = 0; i < n; i++) {
        IsaInst t = {.op = ISA_TRANSPOSE, .engine = ENG_TENSOR, .dtype = (uint8_t)b->stype, .stype = (uint8_t)b->stype};
        t.src = addr_sbuf(0, at + (uint32_t)((uint64_t)((from + i) * b->k) * b->elem));
        t.dst = addr_psum(0, (uint32_t)(bank * ISA_PSUM_BANK_BYTES + (uint64_t)i * ARRAY * b->elem));
        t.n[0] = (uint32_t)s->free_size, t.n[1] = (uint32_t)b->k, t.d[1] = t.s[1] = 1;
        emit_inst(b->e, t, &shaz, 1, &bhaz, 1);
    }
    IsaInst cp = {.op = ISA_COPY, .engine = b->next_turn % 2 ? ENG_SCALAR : ENG_VECTOR, .stype = (uint8_t)b->stype, .dtype = (uint8_t)b->stype};
    cp.src = addr_psum(0, bank * ISA_PSUM_BANK_BYTES);
    cp.dst = addr_sbuf(0, sbuf + (uint32_t)((uint64_t)(from * s->free_size) * b->elem));
    cp.n[0] = (uint32_t)b->k, cp.n[1] = (uint32_t)n, cp.n[2] = (uint32_t)s->free_size;
    cp.s[1] = ARRAY, cp.d[1] = (int32_t)s->free_size, cp.s[2] = cp.d[2] = 1;
    emit_inst(b->e, cp, &bhaz, 1, &haz, 1);
}

static void load_turned(Batch *b, const Side *s, uint64_t addr, uint32_t sbuf, Haz *haz, int queue, int64_t from, int64_t n) {
    uint32_t stage = b->next_stage++ % b->stages;
    Haz *shaz = &b->stage_haz[stage];
    for (int64_t i = 0, run; i < n; i += run) {
        int64_t stride;
        run = run_of(s, from + i, n - i, &stride);
        IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = (uint8_t)queue, .stype = (uint8_t)b->stype};
        in.src = addr + (uint64_t)side_batch_offset(s, from + i) * b->elem;
        in.dst = addr_sbuf(0, STAGES_AT + stage * b->stage_bytes + (uint32_t)((uint64_t)(i * b->k) * b->elem));
        in.n[0] = (uint32_t)s->free_size, in.n[2] = (uint32_t)run, in.n[3] = (uint32_t)b->k;
        in.s[0] = (int32_t)s->free_stride, in.s[2] = (int32_t)stride, in.s[3] = 1;
        in.d[2] = (int32_t)b->k, in.d[3] = 1;
        emit_inst(b->e, in, NULL, 0, &shaz, 1);
    }
    int64_t per = ISA_PSUM_BANK_BYTES / (int64_t)(ARRAY * b->elem);
    for (int64_t i = 0; i < n; i += per)
        transpose(b, s, stage, sbuf, haz, i, n - i < per ? n - i : per);
}

static void multiply(Batch *b, uint32_t slot, uint32_t bank, int64_t i) {
    IsaInst ld = {.op = ISA_LDWEIGHTS, .engine = ENG_TENSOR, .stype = (uint8_t)b->stype};
    ld.src = addr_sbuf(0, lhs_at(slot) + (uint32_t)((uint64_t)(i * b->m) * b->elem));
    ld.n[0] = (uint32_t)b->k, ld.n[1] = (uint32_t)b->m, ld.s[1] = 1;
    emit_inst(b->e, ld, (Haz *[]){&b->lhs_haz[slot]}, 1, NULL, 0);
    IsaInst mm = {.op = ISA_MATMUL, .engine = ENG_TENSOR, .stype = (uint8_t)b->stype};
    mm.src = addr_sbuf(0, rhs_at(slot) + (uint32_t)((uint64_t)(i * b->n) * b->elem));
    mm.dst = addr_psum(0, bank * 2048 + (uint32_t)(i * b->n) * 4);
    mm.n[0] = (uint32_t)b->k, mm.n[1] = (uint32_t)b->n, mm.n[2] = (uint32_t)b->m;
    mm.d[1] = 1, mm.s[1] = 1;
    emit_inst(b->e, mm, (Haz *[]){&b->rhs_haz[slot]}, 1, (Haz *[]){&b->e->bank_haz[bank]}, 1);
}

static void group(Batch *b, int64_t from, int64_t n) {
    uint32_t slot = b->next % SLOTS, bank = b->next % (b->stages ? BANKS / 2 : BANKS), cols = (uint32_t)(n * b->n);
    (b->rhs_turned ? load_turned : load)(b, &b->rhs, b->rhs_addr, rhs_at(slot), &b->rhs_haz[slot], QUEUE_IN2, from, n);
    (b->lhs_turned ? load_turned : load)(b, &b->lhs, b->lhs_addr, lhs_at(slot), &b->lhs_haz[slot], QUEUE_IN, from, n);
    for (int64_t i = 0; i < n; i++)
        multiply(b, slot, bank, i);
    IsaInst cp = {.op = ISA_COPY, .engine = b->next % 2 ? ENG_SCALAR : ENG_VECTOR, .stype = DT_F32, .dtype = (uint8_t)b->dtype};
    cp.src = addr_psum(0, bank * 2048), cp.dst = addr_sbuf(0, out_at(slot));
    cp.n[0] = (uint32_t)b->m, cp.n[1] = cols, cp.d[1] = 1, cp.s[1] = 1;
    Haz *out = &b->out_haz[slot];
    emit_inst(b->e, cp, (Haz *[]){&b->e->bank_haz[bank]}, 1, &out, 1);
    IsaInst st = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_OUT, .stype = (uint8_t)b->dtype};
    st.src = addr_sbuf(0, out_at(slot)), st.dst = b->out_addr + (uint64_t)(from * b->m * b->n) * b->out_elem;
    st.n[0] = (uint32_t)b->m, st.n[2] = (uint32_t)n, st.n[3] = (uint32_t)b->n;
    st.d[0] = (int32_t)b->n, st.d[2] = (int32_t)(b->m * b->n), st.d[3] = 1;
    st.s[2] = (int32_t)b->n, st.s[3] = 1;
    emit_inst(b->e, st, &out, 1, NULL, 0);
    b->next++;
}

static void share_area(Batch *b, bool out) {
    for (uint32_t i = 0; i < SLOTS; i++) {
        emit_area(b->e, &b->lhs_haz[i], lhs_at(i), SIDE_BYTES, out);
        emit_area(b->e, &b->rhs_haz[i], rhs_at(i), SIDE_BYTES, out);
        emit_area(b->e, &b->out_haz[i], out_at(i), OUT_BYTES, out);
    }
    for (uint32_t i = 0; i < b->stages; i++)
        emit_area(b->e, &b->stage_haz[i], STAGES_AT + i * b->stage_bytes, b->stage_bytes, out);
}

void emit_batch(Emit *e, const Step *s) {
    Batch *b = ARENA_NEW(e->c->scratch, Batch);
    batch_init(e->l->h, hlo_at(e->l->h, s->op), b);
    b->e = e;
    b->lhs_addr = emit_addr(e, e->l->refs.at[s->ins]), b->rhs_addr = emit_addr(e, e->l->refs.at[s->ins + 1]);
    b->out_addr = emit_addr(e, e->l->refs.at[s->outs]);
    plan_stages(b);
    share_area(b, false);
    int64_t lo, hi;
    emit_share(e, b->batches, 1, &lo, &hi);
    for (int64_t i = lo; i < hi; i += b->together) {
        emit_task(e);
        group(b, i, hi - i < b->together ? hi - i : b->together);
    }
    share_area(b, true);
}
