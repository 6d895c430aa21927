// SPDX-License-Identifier: Apache-2.0
// matmul_tiles.c — the AMX instructions themselves: nothing here but what needs the hardware.
//
// The block is written in matmul_block.h over names for the instructions; tests/unit/matmul_test.c gives it a
// model of them, so that hosts without AMX check everything but the lines below.
#if defined(__x86_64__)

#include <immintrin.h>

#include "chip/host/matmul.h"

#define TARGET __attribute__((target("amx-tile,amx-bf16")))

// Palette 1, all eight tiles of 16 rows by 64 bytes.
typedef struct TileConfig {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} TileConfig;
_Static_assert(sizeof(TileConfig) == 64, "LDTILECFG reads 64 bytes");

TARGET void mm_amx_begin(void) {
    static const TileConfig config = {.palette = 1,
                                      .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                      .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&config);
}

// Live tiles make every thread switch and signal dearer: given back after each instruction of ours.
TARGET void mm_amx_end(void) {
    _tile_release();
}

#define tile_zero(t) _tile_zero(t)
#define tile_load(t, at, pitch) _tile_loadd(t, at, pitch)
#define tile_store(t, at, pitch) _tile_stored(t, at, pitch)
#define tile_multiply(c, a, b) _tile_dpbf16ps(c, a, b)

#define BLOCK_FN TARGET void mm_amx_block
#include "chip/host/matmul_block.h"

#endif
