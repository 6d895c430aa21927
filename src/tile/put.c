// SPDX-License-Identifier: Apache-2.0
// put.c — instructions over views, recorded with the hazards of their operands.
#include "tile/area.h"

#include "mach/cost.h"

#include <string.h>

// A view of SBUF or PSUM stays inside it, and has somebody who stands for it.
static bool is_inside(const View *v) {
    int space = addr_space(v->mem.addr);
    int64_t lo = addr_poff(v->mem.addr), hi = lo + (int64_t)dtype_bytes(v->dtype);
    if (space == SPACE_HBM)
        return !v->mem.haz;
    for (int i = 1; i < v->rank; i++) {
        int64_t far = (v->at[i].n - 1) * v->at[i].stride * (int64_t)dtype_bytes(v->dtype);
        *(far < 0 ? &lo : &hi) += v->at[i].n ? far : 0;
    }
    return v->mem.haz && addr_part(v->mem.addr) + v->at[0].n <= PARTITIONS && lo >= 0 && hi <= (space == SPACE_SBUF ? ISA_SBUF_BYTES : ISA_PSUM_BYTES);
}

static uint32_t add_hazards(const View *v, Haz **list, uint32_t n, uint32_t most) {
    for (uint32_t i = 0; v && v->mem.haz && i <= v->mem.more; i++) {
        assert(n < most);
        list[n++] = v->mem.haz + i;
    }
    (void)most;
    return n;
}

void put_inst(Emit *e, IsaInst in, const View *dst, const View *src, const View *src1) {
    Haz *reads[REC_READS], *writes[REC_WRITES];
    assert(!dst || is_inside(dst));
    assert(!src || is_inside(src));
    uint32_t n = add_hazards(src, reads, 0, REC_READS), nwrites = add_hazards(dst, writes, 0, REC_WRITES);
    n = add_hazards(src1, reads, n, REC_READS);
    emit_inst(e, in, reads, n, writes, nwrites);
}

uint8_t put_piece_queue(const Emit *e, const Step *s) {
    static const uint8_t turns[] = {QUEUE_COPY, QUEUE_CAST, QUEUE_IN4, QUEUE_IN3};
    uint32_t before = 0;
    while (before < 31 && s - before > e->l->steps.at && (s - before - 1)->kind == STEP_DYNAMIC)
        before++;
    return turns[before / 2 % 4];
}

void put_dma_by(Emit *e, int engine, int queue, View dst, View src) { put_inst(e, isa_dma(engine, queue, dst, src), &dst, &src, NULL); }

void put_dma(Emit *e, int queue, View dst, View src) {
    static const uint8_t engine_of[QUEUE_COUNT] = {
        [QUEUE_IN] = ENG_SYNC, [QUEUE_IN2] = ENG_SYNC, [QUEUE_OUT] = ENG_SYNC, [QUEUE_CAST] = ENG_SYNC, [QUEUE_COLL] = ENG_SYNC,
        [QUEUE_COPY] = ENG_GPSIMD, [QUEUE_ROWS_IN] = ENG_GPSIMD, [QUEUE_ROWS_IN2] = ENG_GPSIMD, [QUEUE_ROWS_OUT] = ENG_GPSIMD, [QUEUE_ROWS_OUT2] = ENG_GPSIMD};
    assert(queue < QUEUE_COUNT);
    put_dma_by(e, engine_of[queue], queue, dst, src);
}

void put_bytes(Emit *e, int engine, int queue, uint64_t dst, uint64_t src, uint64_t bytes) {
    int type = bytes % 4 == 0 ? DT_UI32 : DT_UI8;
    int64_t n = (int64_t)(bytes / dtype_bytes(type));
    put_dma_by(e, engine, queue, VIEW(mem_hbm(dst), type, {1}, {n, 1}), VIEW(mem_hbm(src), type, {1}, {n, 1}));
}

void put_copy(Emit *e, int engine, View dst, View src) { put_inst(e, isa_tensor_copy(engine, dst, src), &dst, &src, NULL); }

void put_evict(Emit *e, double *busy, View dst, View src) {
    IsaInst vector = isa_tensor_copy(ENG_VECTOR, dst, src), scalar = isa_tensor_copy(ENG_SCALAR, dst, src);
    double by_vector = busy[ENG_VECTOR] + cost_inst(e->chip, NULL, &vector), by_scalar = busy[ENG_SCALAR] + cost_inst(e->chip, NULL, &scalar);
    bool first = by_vector <= by_scalar;
    busy[first ? ENG_VECTOR : ENG_SCALAR] = first ? by_vector : by_scalar;
    put_inst(e, first ? vector : scalar, &dst, &src, NULL);
}

void put_memset(Emit *e, int engine, View dst, const void *element) {
    uint32_t bits = 0;
    assert(dtype_bytes(dst.dtype) <= sizeof bits);
    if (element)
        memcpy(&bits, element, dtype_bytes(dst.dtype));
    put_inst(e, isa_memset(engine, dst, bits), &dst, NULL, NULL);
}

void put_transpose(Emit *e, View dst, View src) {
    assert(addr_space(dst.mem.addr) == SPACE_PSUM);
    assert(addr_space(src.mem.addr) == SPACE_SBUF);
    put_inst(e, isa_transpose(ENG_TENSOR, dst, src), &dst, &src, NULL);
}

void put_transposes(Emit *e, int dtype, Mem bank, int64_t pitch, Mem stage, int64_t step, int64_t positions, int64_t each, int64_t cols) {
    int64_t size = (int64_t)dtype_bytes(dtype);
    assert(each <= PARTITIONS);
    assert(cols <= PARTITIONS);
    for (int64_t i = 0; i * each < positions; i++) {
        int64_t n = min64(each, positions - i * each);
        put_transpose(e, VIEW(mem_off(bank, i * pitch * size), dtype, {cols}, {n, 1}), VIEW(mem_off(stage, i * step * size), dtype, {n}, {cols, 1}));
    }
}

static IsaInst doubled(IsaInst in, uint32_t second) {
    in.flags |= second ? ISA_FLAG_DOUBLE_ROW : 0;
    in.step = (int32_t)second;
    return in;
}

void put_weights(Emit *e, View src, uint32_t second) {
    assert(src.at[0].n <= ISA_PE_ROWS);
    assert(src.at[1].n <= ISA_PE_COLS);
    put_inst(e, doubled(isa_ldweights(src), second), NULL, &src, NULL);
}

void put_matmul(Emit *e, View dst, View src, bool accumulate, uint32_t second) {
    assert(addr_space(dst.mem.addr) == SPACE_PSUM);
    assert(addr_space(src.mem.addr) == SPACE_SBUF);
    assert(dst.dtype == DT_F32);
    put_inst(e, doubled(isa_matmul(dst, src, accumulate ? ISA_FLAG_ACCUMULATE : 0), second), &dst, &src, NULL);
}
