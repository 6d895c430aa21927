// SPDX-License-Identifier: Apache-2.0
// rows.h — a row program while it becomes instructions.
//
//   rows_read.c  the region as nodes
//   rows_fit.c   what fits SBUF
//   rows.c       the walk over tiles of rows, transfers
//   rows_chunks.c  with products, in chunks of columns
//   rows_fold.c  which nodes the instruction of their reader takes along
//   rows_inst.c  the instruction for each node, and which engine takes it
//   rows_sums.c  which sums over rows are taken along
#ifndef OTRN_TILE_ROWS_H
#define OTRN_TILE_ROWS_H

#include <assert.h>

#include "pass/epilogue.h"
#include "pass/rows.h"
#include "tile/emit.h"

#define ROW_SETS 4 // tiles in work at a time, at most
#define DRAWN_SETS 6 // … between products where it draws: a tile is one instruction more on its way
#define PRO_COPIES 6 // of what a product leaves in PSUM

typedef enum NodeKind { NODE_INPUT, NODE_CONST, NODE_OP, NODE_WIDEN, NODE_EXCHANGE, NODE_REDUCE } NodeKind;

typedef struct Node {
    uint8_t kind, dtype;
    bool full;      // a row; else one element of it
    bool scalar;    // an input with one element for all rows
    bool is_output; // returned by the region
    bool folded;    // part of the instruction of its only reader
    bool gone;      // its reader has taken its place
    uint16_t code;  // OP: of the HLO op; REDUCE: of the op that combines
    OpId op;        // what its instructions are counted for
    uint32_t src[3], nsrc;
    uint32_t input;  // INPUT: which
    uint32_t level;  // reductions that must be over before it can be computed
    uint32_t uses;
    uint32_t last;   // node that reads it last, in the pass being laid out
    uint32_t summed; // OP: the reduction of it that its instruction gives as well, 0 = none (a node number + 1)
    bool wants_inverse, wants_negative; // one a row: kept beside it
    uint32_t turns;  // shift of integers: the node that joins it with another one, 0 = none
    float value;     // CONST; REDUCE: its result is multiplied by this, where that is not 0
    int32_t number;  // … of integers: its bits
    bool count;      // input that is 0, 1, …: made, not loaded
    OpId draw;       // input that the engines' generator makes: the op, 0 = it is loaded
    uint32_t state_at; // … in SBUF: the generator's state; its hazard is haz[0]
    int64_t first, pitch; // input that lies in something larger: of its first element, from a row to the next; 0: rows follow each other
    uint32_t off;    // one a row: byte offset in the set's column area
    int32_t slot;    // full: in the pass being emitted; -1 = none
    bool resident;   // full input kept for all tiles; off is its place
    bool psum;       // full input that a product leaves in PSUM; off is its place there
    bool made;       // … and has, for the tile in work
    bool feeds;      // output that products behind the program read where it lies
    Haz *haz; // one a row: of its columns; resident and scalar: [0]; in PSUM: of its copies
} Node;

#define NUMBERS_MOST 3 // per row, that one transfer moves

// A node of numbers per row that are loaded or stored, and where the tensor lies.
typedef struct RowNumber {
    uint32_t node;
    uint64_t addr, base; // base: what two must have in common to be in one transfer: segment, and the loop that moves them
    int64_t off, mul;
} RowNumber;

typedef struct Block Block;

typedef struct RowParts { // of a sum over rows, a row of them on each partition (rows_sums.c)
    OpId op;            // the sum
    uint32_t node, out; // what adds up; which of the step's results it becomes
    uint32_t at, joined; // in SBUF; those of the rows side by side as one
    Haz haz;
} RowParts;

// The program as a pass over chunks of columns sees it: nodes with the choices of that pass. Numbers are the same in all forms.
typedef struct RowForm {
    Node *nodes;
    const bool *need;
    uint32_t slots;
} RowForm;

#define EPILOGUE_COLS 512 // columns of a product's tile in PSUM

typedef struct RowOp {
    Emit *e;
    const Step *s;
    Block *block;               // products before and behind, NULL: none
    const Epilogue *epi;        // … or the product whose tiles it takes
    uint32_t area_at, area_bytes; // its part of SBUF
    struct BlockOp *block_op;   // … while they are emitted
    uint32_t pro_copy, pro_bytes; // which of the places of what they leave in PSUM, and how far these are apart
    VEC(Node) nodes;
    int64_t rows, cols;         // as the op counts them
    bool flat;                  // neither rows nor columns mean anything
    bool strided;               // rows are the runs of an operand
    int64_t base;               // first element of the part being emitted,
    int64_t first;              // … of the chunk
    int64_t prow, pcols, group; // partition rows, elements of each, rows in each
    int64_t group_most;         // … at most; 0: any number
    int64_t half;               // columns of one, where halves of rows change places; 0: none do
    int64_t batch;              // rows of a batch, where those in a partition are of several; 0: they follow each other
    uint32_t width;             // columns of a chunk, elements of a slot
    uint32_t levels;
    uint32_t nslots, slot_bytes, sets, set, column_set, column_bytes, slots_at;
    uint32_t columns_at, column_pitch, column_sets; // numbers per row: of the first tile, from tile to tile, how many tiles
    uint32_t set_head;          // what lies before the slots of a set
    RowForm *forms;             // with products, in chunks: [pass][masked]
    uint32_t parts;             // of a reduction, one for each chunk, which a number per row has room for
    uint32_t chunk, chunks;     // in work, of the tile
    uint32_t *order, *reader;   // nodes as they are emitted; per node the first whose instruction reads it
    RowParts parts_of[ROW_SUMS_MAX];
    uint32_t nparts;
    int64_t parts_unit; // rows side by side that a sum has as one
    bool parts_begin;   // the tile in work is the first that adds up
    RowNumber *takes, *gives; // numbers per row, in the order in which they lie
    uint32_t ntakes, ngives;
    Haz *slots;  // [set][slot]
    bool keep_outputs;  // slots of results are not taken over inside a tile
    uint32_t spare_at;  // a slot for what nobody reads
    Haz spare;
    uint32_t m, w; // partitions and columns of the tile in work
    uint32_t transfers; // so far
    uint32_t tile_cols; // columns of it that count, 0 = all
    uint32_t count_at;      // numbers of the elements of a tile, from 0, when slots begin behind it
    uint32_t count_of[3];   // … of this many partitions, columns, batches
    Haz count_haz;
    const struct Wedge *wedge; // what of it is read, NULL: all
    int64_t wedge_at;       // first element of the tile in work,
    uint32_t wedge_parts;   // … batches side by side in it
    uint32_t turn;          // node: the rotation of integers that the scalar engine is at
    double busy[ENG_COUNT]; // ns given to each engine so far
    // of an epilogue
    uint32_t product;       // node: the product's tile in its own type, when that has memory of its own
    uint32_t tiles;         // in work: of as many rows each, side by side in partitions, PSUM banks and instructions
    uint32_t psum_at;       // the first of them
    Haz *psum_haz;
    uint32_t col0;          // the first column in what is kept of operands that are the same for every row
    bool sliced;            // … of which two tiles' columns are kept, not all
    uint32_t slice;
    int64_t slice_key[2];   // their first columns, -1: none
    const bool *need;
} RowOp;

static inline Node *rows_node(const RowOp *r, uint32_t i) {
    assert(i < r->nodes.n);
    return &r->nodes.at[i];
}
static inline const HloType *rows_input_type(const RowOp *r, const Node *n) {
    return hlo_value_type(r->e->l->h, hlo_operand(r->e->l->h, hlo_at(r->e->l->h, r->s->op), n->input));
}

static inline int64_t rows_input_kind(const RowOp *r, const Node *n) {
    return rows_kinds(hlo_at(r->e->l->h, r->s->op))[n->input];
}

// Rows that an operand has before it begins again; 0: all.
static inline int64_t rows_input_period(const RowOp *r, const Node *n) {
    return rows_input_kind(r, n) == FUSED_COLUMNS ? rows_input_type(r, n)->elems / r->cols : 0;
}

// An instruction's operand may be one a row: a partition holds one, or each of several batches has an instruction of its own.
static inline bool rows_single(const RowOp *r) { return r->group == 1 || r->batch; }

// Elements from a partition's first row to the next one's.
static inline int64_t rows_stride(const RowOp *r) { return r->flat ? r->w : r->batch ? r->pcols : r->group * r->pcols; }

// Rows that read the same row of an operand; 0: it is not one of blocks.
static inline int64_t rows_input_block(const RowOp *r, const Node *n) {
    return rows_input_kind(r, n) == FUSED_BLOCKS ? r->rows / (rows_input_type(r, n)->elems / r->cols) : 0;
}

// An operand of which all rows in a partition read the same one: it is there once.
static inline bool rows_once(const RowOp *r, const Node *n) {
    if (n->kind != NODE_INPUT || !n->full || n->resident || r->group < 2)
        return false;
    int64_t period = rows_input_period(r, n);
    return rows_input_block(r, n) || period == 1 || (period && period == r->batch);
}

void block_make(struct BlockOp *o, uint32_t operand); // block_emit.c: the product before for the tile in work
void rows_read(RowOp *r); // rows_read.c: fills nodes
// rows_fit.c
bool *rows_needed(const RowOp *r, int pass);
bool rows_runs_in(const Node *n, const bool *need, uint32_t node, int pass); // the pass computes it
uint32_t rows_lay_out(RowOp *r, const bool *need, int pass);
bool rows_try_width(RowOp *r, int64_t width, uint32_t least_sets);
uint32_t rows_resident_bytes(const RowOp *r, const Node *n);
void rows_lay_whole(RowOp *r, bool keep); // slots for all of a tile at once; keep: operands that are the same for every row
bool rows_fit(RowOp *r); // chooses chunk width, slots and sets; false: does not fit
// rows.c
void rows_loc(RowOp *r, uint32_t node); // what follows belongs to the node; entry points put back the place they were called at
RowOp *rows_begin(Emit *e, const Step *s, Block *b);
void rows_emit_chunk(RowOp *r, const bool *need, int pass, int64_t p0, int64_t c0);
void rows_emit_columns(RowOp *r, uint32_t level, int64_t p0);
void rows_store_columns(RowOp *r, int64_t p0);
void rows_open(RowOp *r);
void rows_tile(RowOp *r, int64_t p0, uint32_t m); // m rows from row p0
void rows_close(RowOp *r);
bool rows_suit_sums(Emit *e, OpId rows); // it has room for the parts of its sums
// rows_chunks.c: with products, in chunks of columns: a tile of rows is as many passes over its chunks as its reductions ask for.
void rows_defer(RowOp *r); // what scales rows of a product's operand scales its result instead
bool rows_forms(RowOp *r); // false: does not fit
void rows_pass_begin(RowOp *r, uint32_t pass, int64_t p0, uint32_t m);
bool rows_chunk(RowOp *r, uint32_t pass, bool masked, int64_t p0, int64_t c0, uint32_t n); // whether it used slots
void rows_pass_end(RowOp *r, uint32_t pass); // its reductions are over
void rows_tile_end(RowOp *r, int64_t p0);    // … all of them
// As an epilogue, in the `bytes` of SBUF that begin at `at`; NULL: does not fit with `sets` in work, each of `width` columns,
// which may be those of two tiles.
RowOp *rows_epilogue(Emit *e, const Step *s, const Epilogue *p, uint32_t at, uint32_t bytes, uint32_t width, uint32_t sets);
void rows_columns(RowOp *r, int64_t c0, uint32_t n); // tiles of these columns come: up to EPILOGUE_COLS
// One tile of m rows, or several in neighbouring banks.
void rows_from_psum(RowOp *r, uint32_t tiles, uint32_t psum_at, Haz *haz, int64_t row, uint32_t m, int64_t c0, uint32_t n);

// rows_int.c: nodes of integers
bool rows_is_int(const RowOp *r, const Node *n);
void rows_emit_int(RowOp *r, uint32_t node);
void rows_fold_ints(RowOp *r);
// rows_inst.c: what instructions are made of
typedef enum ArgKind { ARG_NUMBER, ARG_COLUMN, ARG_TENSOR } ArgKind;
typedef struct Arg { // an operand as the instruction sees it
    uint8_t kind, dtype;
    uint32_t node;
    float value;
    uint64_t addr;
    int32_t step[2]; // TENSOR: strides over rows of a partition and columns
    bool exchanged;  // … the upper half first
    Haz *haz;
} Arg;
int rows_comparison(const RowOp *r, const Node *n); // the ALU operation
Arg rows_arg(RowOp *r, uint32_t node, bool full);
Arg rows_result(RowOp *r, uint32_t node);
IsaInst rows_make(RowOp *r, int op, int engine, const Arg *dst, const Arg *src, bool full); // src: NULL, set later
void rows_src(RowOp *r, IsaInst *in, const Arg *a, bool full);
void rows_src1(RowOp *r, IsaInst *in, const Arg *a, bool full);
void rows_put(RowOp *r, IsaInst in, Haz *const *reads, uint32_t n, Haz *write);
// rows_inst.c: a node's value for rows of m partitions and w columns; its operands are there.
void rows_emit_node(RowOp *r, uint32_t node, bool first_chunk);
void rows_emit_beside(RowOp *r, uint32_t node); // the inverse and negative it wants
void rows_join_parts(RowOp *r, uint32_t node);  // a reduction's, of all chunks
Arg rows_beside(RowOp *r, const Arg *a, uint32_t which); // 1: the inverse, 2: the negative of a number per row
uint32_t rows_narrow(const RowOp *r, uint32_t node); // the one-a-row value behind a widened one
int rows_alu(uint16_t code);      // ALU_BYPASS: none
int rows_function(uint16_t code); // ACT_COPY: none
// rows_fold.c
bool rows_is_one_select(const RowOp *r, const Node *n); // a choice between a row's elements and one number, or one a row
bool rows_is_dropout(const RowOp *r, const Node *n); // a choice by a draw between a row's elements and zero
// Marks nodes that the instruction of their reader takes along.
void rows_fold(RowOp *r);
void rows_fold_sums(RowOp *r); // … and sums that the instruction before them gives; rows in one chunk only
uint64_t rows_place(const RowOp *r, uint32_t node); // SBUF address
void rows_draw_by(const RowOp *r, IsaInst *in, const Node *draw, bool chosen); // by its flags, or by their opposite
Haz *rows_haz(RowOp *r, uint32_t node);

#endif
