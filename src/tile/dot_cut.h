// SPDX-License-Identifier: Apache-2.0
// dot_cut.h — how a matrix product is cut into blocks and what of it stays in SBUF, chosen by the chip's prices.
#ifndef OTRN_TILE_DOT_CUT_H
#define OTRN_TILE_DOT_CUT_H

#include "mach/cost.h"
#include "tile/area.h"
#include "tile/layout.h"

#define DOT_SLOTS 48   // of a side, at most
#define DOT_STAGES 4   // where rows wait for the array to transpose them, at most
#define DOT_TURN_BANKS 2 // … and where it does that
#define DOT_CHUNK 8    // tiles of k in a slot, at most

typedef struct DotSide { // an operand
    const Layout *k, *free;
    int64_t parts; // columns that the array transposes at a time,
    bool turned;   // … where it does
} DotSide;

typedef struct DotSize { // what is to be cut
    const ChipFile *chip;
    int stype, dtype;
    int64_t m, n, k, batches;
    int64_t tile_k;              // rows of a tile of k
    DotSide lhs, rhs;
    const Matrix *out;
    bool lhs_same;               // one number everywhere: a slot is enough
    bool can_keep;               // there is HBM for a transposed operand
    uint8_t sums;                // rows of an operand add up on the way as well: 1: of lhs, 2: of rhs, 0: of none,
    uint32_t sums_bytes;         // … and the SBUF for that
    double beside;               // bytes that the row program behind it loads and stores for an element of the result; 0: there is none
    Room own, all;               // what products have of SBUF; with what they can borrow from row programs
} DotSize;

typedef struct DotCut {
    bool by_columns; // rhs stays while lhs is streamed
    bool borrows;    // takes `all`
    bool keeps;      // what passes by is transposed the first time only, stored, and comes from there later
    uint32_t tiles, cols; // a block of the result: tiles of rows, columns
    uint32_t chunk;       // tiles of k in a slot
    uint32_t lhs_slots, rhs_slots, stages;
    double ns;
} DotCut;

DotCut dot_cut(const DotSize *s);                      // its ns is 0 when nothing fits
bool dot_cut_fits(const DotSize *s, const DotCut *c, uint32_t lhs_cols, uint32_t rhs_cols); // with slots of so many columns
static inline uint32_t dot_block_banks(uint32_t cols, uint32_t turn_banks) { // that blocks have for a column of tiles, sums behind it
    return (PSUM_BANKS - turn_banks) * PSUM_BANK_COLS / cols;
}
uint32_t dot_sum_tiles(const DotSize *s, uint32_t tiles); // banks that sums take of each half of a block of so many tiles of rows
uint32_t dot_stage_bytes(const DotSize *s, const DotCut *c, uint32_t lhs_cols, uint32_t rhs_cols); // 0: nothing is transposed
static inline uint32_t dot_slot_bytes(uint32_t chunk, uint32_t width, int stype) { return chunk * width * (uint32_t)dtype_bytes(stype); }

#endif
