// SPDX-License-Identifier: Apache-2.0
// matmul_block.h — 32 x 32 results in four tiles, once for the hardware and once for the model of the tests.
//
// Included by files that define BLOCK_FN (attributes and name of the function) and
//   tile_zero(t)  tile_load(t, at, pitch)  tile_store(t, at, pitch)  tile_multiply(c, a, b)
// over tile numbers 0 to 7, which must be constants: 0 to 3 the results, 4 and 5 a, 6 and 7 b. Four loads
// feed four products, which take twice their time.

#define AMX_ROW_BYTES 64

BLOCK_FN(const MmAmxBlock *b) {
    float *low = (float *)((uint8_t *)b->c + AMX_TILE * b->c_pitch); // rows 16 to 31
    __asm__ volatile("" ::: "memory"); // the compiler's own tile loads do not say that they read memory
    if (b->accumulate) {
        tile_load(0, b->c, b->c_pitch);
        tile_load(1, b->c + AMX_TILE, b->c_pitch);
        tile_load(2, low, b->c_pitch);
        tile_load(3, low + AMX_TILE, b->c_pitch);
    } else {
        tile_zero(0);
        tile_zero(1);
        tile_zero(2);
        tile_zero(3);
    }
    for (uint32_t at = 0; at < b->groups * AMX_TILE_WORDS; at += AMX_TILE_WORDS) {
        tile_load(6, b->b[0] + at, AMX_ROW_BYTES);
        tile_load(4, b->a[0] + at, AMX_ROW_BYTES);
        tile_multiply(0, 4, 6);
        tile_load(5, b->a[1] + at, AMX_ROW_BYTES);
        tile_multiply(2, 5, 6);
        tile_load(7, b->b[1] + at, AMX_ROW_BYTES);
        tile_multiply(1, 4, 7);
        tile_multiply(3, 5, 7);
    }
    tile_store(0, b->c, b->c_pitch);
    tile_store(1, b->c + AMX_TILE, b->c_pitch);
    tile_store(2, low, b->c_pitch);
    tile_store(3, low + AMX_TILE, b->c_pitch);
}
