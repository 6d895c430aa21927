// SPDX-License-Identifier: Apache-2.0
// effect_turn.c — transpose: bits from rows to columns, a block of 32 x 32 at a time through a buffer, so that
// dst may be src.
#include "chip/host/dma_block.h"
#include "chip/core/effects.h"

#define SIDE 32

typedef struct Square {
    const uint8_t *src;
    uint8_t *dst;
    int64_t src_pitch, src_step, dst_pitch, dst_step;
    uint32_t rows, cols; // of src
} Square;

#define TURN(T)                                                                                    \
    {                                                                                              \
        T buf[SIDE][SIDE];                                                                         \
        for (uint32_t i = 0; i < q->rows; i++)                                                     \
            for (uint32_t j = 0; j < q->cols; j++)                                                 \
                buf[j][i] = *(const T *)(q->src + i * q->src_pitch + j * q->src_step);             \
        for (uint32_t j = 0; j < q->cols; j++)                                                     \
            for (uint32_t i = 0; i < q->rows; i++)                                                 \
                *(T *)(q->dst + j * q->dst_pitch + i * q->dst_step) = buf[j][i];                   \
    }
// A whole one in blocks of the host's registers.
static bool square_whole(const Square *q, size_t bytes, BlockFn *block) {
    if (q->rows != SIDE || q->cols != SIDE || q->src_step != (int64_t)bytes || q->dst_step != (int64_t)bytes)
        return false;
    _Alignas(64) uint8_t buf[SIDE * SIDE * 4];
    int64_t pitch = SIDE * (int64_t)bytes;
    for (int64_t i = 0; i < SIDE; i += BLOCK)
        for (int64_t j = 0; j < SIDE; j += BLOCK)
            block(buf + j * pitch + i * (int64_t)bytes, pitch, q->src + i * q->src_pitch + j * (int64_t)bytes,
                  q->src_pitch);
    for (int64_t j = 0; j < SIDE; j++)
        memcpy(q->dst + j * q->dst_pitch, buf + j * pitch, (size_t)pitch);
    return true;
}

static void square_turn(const Square *q, size_t bytes, BlockFn *block) {
    if (square_whole(q, bytes, block))
        return;
    if (bytes == 4)
        TURN(uint32_t)
    else if (bytes == 2)
        TURN(uint16_t)
    else
        TURN(uint8_t)
}

otrn_status eff_transpose(const EffCall *c) {
    const IsaInst *in = c->in;
    uint32_t n0 = isa_count(in->n[0]), n1 = isa_count(in->n[1]);
    size_t bytes = dtype_bytes(in->stype);
    BlockFn *block = block_find(c->level, bytes);
    bool stay = in->engine == ENG_VECTOR && (n0 > SIDE || n1 > SIDE); // blocks stay where they are
    Square q = {.src_pitch = c->src.pitch, .src_step = in->s[1] * (int64_t)bytes,
                .dst_pitch = c->dst.pitch, .dst_step = in->d[1] * (int64_t)bytes};
    for (uint32_t i = 0; i < n0; i += SIDE)
        for (uint32_t j = 0; j < n1; j += SIDE) {
            q.rows = n0 - i < SIDE ? n0 - i : SIDE;
            q.cols = n1 - j < SIDE ? n1 - j : SIDE;
            q.src = c->src.at + i * q.src_pitch + j * q.src_step;
            q.dst = c->dst.at + (stay ? i : j) * q.dst_pitch + (stay ? j : i) * q.dst_step;
            square_turn(&q, bytes, block);
        }
    return OTRN_OK;
}
