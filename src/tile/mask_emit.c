// SPDX-License-Identifier: Apache-2.0
// mask_emit.c — a mask that compares iotas, made in SBUF: gpsimd works out r * row + c * column + k and tells its sign.
//
//   ones [128, w] ──affine_select──► a tile of the mask ──dma──► HBM
//
// The iotas, and sums of them with numbers, never reach memory when only masks read them.
#include "pass/masks.h"
#include "tile/emit.h"

#define PARTS 128
#define WIDTH 4096
#define TILES 4 // in work at a time

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

static int alu_compare(int64_t direction) {
    static const uint8_t alu[] = {[CMP_EQ] = ALU_EQ, [CMP_NE] = ALU_NE, [CMP_GE] = ALU_GE, [CMP_GT] = ALU_GT, [CMP_LE] = ALU_LE, [CMP_LT] = ALU_LT};
    return alu[direction];
}

typedef struct Made {
    Emit *e;
    Haz *ones, *tiles;
    uint32_t width, tile;
} Made;

static uint32_t tile_at(const Made *k, uint32_t tile) { return ROWS_AREA_BEGIN + (1 + tile) * k->width; }

static void share_area(Made *k, bool out) {
    emit_area(k->e, k->ones, ROWS_AREA_BEGIN, k->width, out);
    for (uint32_t i = 0; i < TILES; i++)
        emit_area(k->e, &k->tiles[i], tile_at(k, i), k->width, out);
}

static void put_tile(Made *k, const MaskSign *sign, int64_t row, int64_t col, uint32_t rows, uint32_t cols, uint64_t to, int64_t pitch) {
    uint32_t at = k->tile++ % TILES;
    Haz *haz = &k->tiles[at];
    IsaInst in = {.op = ISA_AFFINE_SELECT, .engine = ENG_GPSIMD, .dst = addr_sbuf(0, tile_at(k, at)), .dtype = DT_UI8,
                  .src = addr_sbuf(0, ROWS_AREA_BEGIN), .stype = DT_UI8, .op0 = (uint8_t)alu_compare(sign->direction),
                  .a = scalar_f32(0), .imm = (int32_t)(sign->add + sign->row * row + sign->column * col)};
    in.n[0] = rows, in.n[1] = cols;
    in.d[1] = in.s[1] = 1;
    in.t[0] = (int32_t)sign->row, in.t[1] = (int32_t)sign->column;
    emit_inst(k->e, in, &k->ones, 1, &haz, 1);
    IsaInst out = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_OUT, .stype = DT_UI8, .src = in.dst, .dst = to};
    out.n[0] = rows, out.n[1] = cols;
    out.d[0] = (int32_t)pitch, out.d[1] = out.s[1] = 1;
    emit_inst(k->e, out, &haz, 1, NULL, 0);
}

void emit_mask(Emit *e, const Step *s) {
    ValueId v = hlo_at(e->l->h, s->op)->results;
    const HloType *type = hlo_value_type(e->l->h, v);
    MaskSign sign;
    mask_sign(e->l->h, v, &sign);
    int64_t n = type->dims[type->rank - 1], m = type->dims[type->rank - 2], times = type->elems / (m * n);
    Made k = {.e = e, .ones = ARENA_NEW(e->c->scratch, Haz), .tiles = ARENA_NEWN(e->c->scratch, Haz, TILES),
              .width = (uint32_t)min64(n + 63, WIDTH) / 64 * 64};
    uint64_t to = emit_addr(e, e->l->refs.at[s->outs]);
    share_area(&k, false);
    IsaInst ones = {.op = ISA_MEMSET, .engine = ENG_VECTOR, .dst = addr_sbuf(0, ROWS_AREA_BEGIN), .dtype = DT_UI8, .imm = 1};
    ones.n[0] = PARTS, ones.n[1] = k.width, ones.d[1] = 1;
    emit_inst(e, ones, NULL, 0, &k.ones, 1);
    for (int64_t t = 0; t < times; t++)
        for (int64_t row = 0; row < m; row += PARTS)
            for (int64_t col = 0; col < n; col += k.width) {
                emit_task(e);
                put_tile(&k, &sign, row, col, (uint32_t)min64(PARTS, m - row), (uint32_t)min64(k.width, n - col),
                         to + (uint64_t)((t * m + row) * n + col), n);
            }
    share_area(&k, true);
}
