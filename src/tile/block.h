// SPDX-License-Identifier: Apache-2.0
// block.h — a row program together with the products before and behind it, so that its rows stay on the chip.
//
//   q, k ──product──► scores ──row program──► weights ──product──► result        (attention, forward)
//
//   block.c       which products go with which row program, and where everything lies
//   block_emit.c  the instructions
#ifndef OTRN_TILE_BLOCK_H
#define OTRN_TILE_BLOCK_H

#include "pass/mask.h"
#include "tile/area.h"
#include "tile/layout.h"
#include "tile/rows.h"

#define BLOCK_PRO 3
#define BLOCK_EPI 6

enum { PANEL_ALL, ROWS_FREE, ROWS_K, COLS_FREE, COLS_K };

typedef struct Panel { // an operand for one batch, or a chunk of its rows: k on the partitions, then [tile of k][free]
    Side at;
    uint32_t in;    // which of the step's operands
    uint32_t bytes; // of a copy
    bool turned;    // comes as it lies, [free][k], and the array turns it
    uint8_t part;   // which of k and free is the program's rows or columns: it is there for a chunk of them
    uint8_t dtype;
    Ring copies;    // while it is emitted
} Panel;

typedef struct BlockDot {
    OpId op;
    ValueId value;  // of the row program: the operand the product makes, or the result it takes
    uint32_t index; // which operand or result that is
    uint8_t dtype, otype; // of its operands, of its result
    Panel lhs, rhs;       // before: both operands; behind: rhs is the other one
    uint32_t bank, banks; // PSUM; before: of copy 0
    // behind
    bool over_rows;    // contracts rows; else columns
    bool turned;       // the program's value is the second operand: the result has its dimension last
    int64_t d;         // what the other operand brings
    uint32_t out_bytes;  // where the result of a batch, or of a chunk of rows, gathers
    uint32_t sum_bytes;  // where its terms add up, tile by tile, when columns are the outer loop
    uint32_t hold, hold_bytes; // where sums over rows wait between parts: which of the step's results; on the way there, twice
    uint32_t out;      // which of the step's results
    Side lies;         // … and how that lies
    uint32_t scale;    // rows of the result are divided by this number per row: a node, plus one; 0: they are not
    Ring psum, outs, sums, holds; // while it is emitted
    Haz *held_haz;
} BlockDot;

struct Block {
    OpId rows;
    int64_t batches, m, n; // rows of a batch, columns
    int64_t together;      // batches side by side in a tile, where one has few rows and columns; else 1
    int64_t chunk;         // rows that are there at a time, in whole tiles unless it is all of them
    int64_t width;         // columns in work at a time; less than all: in passes (rows_chunks.c)
    bool by_columns;       // rows are the inner loop: what contracts rows adds up in PSUM, what contracts columns in SBUF
    int64_t part;          // rows of that loop, in whole tiles: SBUF holds their sums; fewer than all: sums over rows wait in HBM
    uint32_t npro, nepi;
    BlockDot pro[BLOCK_PRO], epi[BLOCK_EPI];
    uint32_t pro_copies, panel_copies, out_copies, turn_copies;
    uint32_t gathers; // places where a result gathers
    uint32_t rows_at; // SBUF of the program, where it works in chunks
    uint32_t turn_bank, turn_banks, turn_slots, turn_bytes; // where values are turned: PSUM, then SBUF for each of them
    uint32_t stage_bytes, stage_copies; // where panels wait to be turned; 0 bytes: none is
    Ring stages, turns, turned; // while it is emitted
    Masked masked; // columns that count; widths NULL: all
};

// What is read of a program's result, where that is not all: of tiles of 128 rows of each batch the tiles of 128 columns that count. Random
// numbers for causal attention: the other half of them is not made.
typedef struct Wedge {
    int64_t m, n;     // rows of a batch, columns
    uint32_t across;  // tiles of columns
    bool *read;       // [tile of rows][tile of columns]
} Wedge;

static inline uint32_t block_tiles(int64_t n) { return (uint32_t)ceil_div(n, PARTITIONS); } // of rows or columns
static inline int64_t block_gathered(const Block *b, const BlockDot *d) { // rows, where the result of a product behind gathers
    return d->over_rows ? b->width : b->by_columns ? PARTITIONS : b->chunk;
}
// Looks at the region's row programs; fills l->blocks and l->block_of.
void blocks_find(Lower *l);
uint32_t block_turned_slot(const Block *b, uint32_t epi); // which turned value it reads
uint64_t block_hold_bytes(const Block *b, const BlockDot *d); // HBM for sums over rows between parts; 0: they wait nowhere
void emit_block(Emit *e, const Step *s);

#endif
