// SPDX-License-Identifier: Apache-2.0
// step.h — between graph and instructions: a straight list of steps over buffers.
//
//   graph ──lower.c──► steps and buffers ──emit.c, product.c…──► instructions with waits
//                      (what, in which order)   (where in HBM, on which engine)
//
// A buffer is a piece of HBM with a lifetime counted in steps. Several values may share one (reshapes,
// loop state, in-place updates). Loops and branches are steps too, so one walk over the list sees every
// buffer begin and end.
#ifndef OTRN_TILE_STEP_H
#define OTRN_TILE_STEP_H

#include "hlo/affine.h"
#include "hlo/query.h"
#include "hlo/users.h"
#include "tile/tile.h"

typedef uint32_t BufId; // 0 is no buffer

typedef enum BufKind { BUF_TEMP, BUF_ARG, BUF_RESULT, BUF_CONST, BUF_VIEW } BufKind;

// Completion counts that must be reached before the memory may be touched: per semaphore in use.
#define HAZ_SEMS (ENG_COUNT + 16) // five engines and the queues of emit.h
#define HAZ_READS 6
typedef struct HazOrder { // who is recorded for it and not forgotten yet: records as number + 1 (sched.c)
    uint64_t writer, upto, reader[HAZ_READS];
    uint32_t task[HAZ_READS]; // of each reader
    uint8_t nreads, lane;     // lane + 1
} HazOrder;
typedef struct Known { // counts of a few semaphores: those whose bit is set
    uint32_t set;
    uint32_t n[HAZ_SEMS];
} Known;
typedef struct Counts {
    uint32_t epoch;
    Known w, r; // last writes, last reads
} Counts;
typedef struct Haz { // a part of SBUF or PSUM
    Counts counts;
    HazOrder order;
} Haz;

typedef struct TBuf {
    uint8_t kind;
    uint32_t index;       // ARG, RESULT, VIEW: which
    BufId base;           // VIEW: a piece of this buffer,
    Form at;              // … which begins at that byte
    bool apart;           // … and meets nothing in its loop that is not at the same place of the same piece
    uint64_t bytes, off;  // off: inside its segment
    uint32_t first, last; // steps
    uint32_t loop;        // loop it was made in (0 = none)
    uint32_t state_loop;  // the loop whose state it is, 0 when none
    uint32_t held_by;     // outermost loop that keeps it alive
    uint32_t uses;        // reads still to come, while lowering
    uint32_t held;        // a collective reads it up to this step, 0 = none does behind its last (hold.c)
    uint32_t ahead;       // steps before its first from which it is kept free, for a collective may begin to write it (hold.c)
    bool alone;           // no piece of its memory has other owners (hold.c)
    OpId op;              // who made it, for messages
} TBuf;

typedef enum StepKind {
    STEP_KERNEL,     // op on GpSimd: ins, outs
    STEP_FILL,       // outs[0] = splat of the constant op
    // lowerings, in the order in which they are asked to take an op
    STEP_CAST,       // conversion as transfers
    STEP_ROWS,       // a row program on the vector and scalar engines
    STEP_NEST,       // nests as the program has them (nest_text.h)
    STEP_DOT,        // op on the tensor engine; aux = epilogue, 0: none
    STEP_DEPTH,      // a depthwise convolution on the vector engine, or on GpSimd as the chip has it
    STEP_CONV,       // a convolution on the tensor engine
    STEP_INDEX,      // rows gathered and scattered by index
    STEP_DYNAMIC,    // slices and updates at places the run knows
    STEP_SCAN,       // running sums and extremes along rows on the vector engine
    STEP_POOL,       // sums and extremes over windows on the vector engine
    STEP_MOVE,       // data movement as transfers
    STEP_TRANSPOSE,  // a transpose that takes neighbours apart: transfers, or the array as the chip has it
    // others
    STEP_BLOCK,      // a row program with the products before and behind it; aux = block
    STEP_COPY,       // outs[0] = ins[0], whole buffers
    STEP_NUMBER,     // outs[0] = the form of value aux
    STEP_LOOP_BEGIN, // aux = loop
    STEP_LOOP_TEST,  // ins[0] = condition; aux = loop
    STEP_LOOP_END,   // aux = loop
    STEP_SWITCH,     // ins[0] = index or predicate; aux = switch
    STEP_CASE,       // the next branch begins; aux = switch
    STEP_SWITCH_END, // aux = switch
} StepKind;

typedef struct Step {
    uint8_t kind;
    OpId op;
    uint32_t ins, nins;   // range of Lower.refs
    uint32_t outs, nouts;
    uint32_t aux;
    uint32_t sum;         // DOT: the sums of an operand that it takes as well, 0: none
    Why why;              // KERNEL: why it is one
} Step;

typedef struct Loop {
    uint32_t begin, end; // steps
    uint32_t parent;
    uint64_t trips; // 0 = not known
    bool is_counted;     // by the sequencers (count.c): from first by step; carried value `counter`
    int64_t first, step;
    uint32_t counter;
    uint32_t begin_pc, exit_pc; // while emitting
    VEC(BufId) held; // buffers from outside that live until the end
} Loop;

typedef struct Switch {
    uint32_t nbranches, branch; // branch: next one, while emitting
    bool is_if;
    int64_t usual;         // the branch that prices count, -1: all
    uint32_t branch_begin; // of the branch in hand, while emitting
    VEC(uint32_t) branch_pcs; // instructions to patch with each branch's start
    VEC(uint32_t) end_pcs;    // jumps to patch with the end
} Switch;

typedef struct DotSum { // a sum over what a product contracts, of one of its operands: taken with it (sums.c)
    OpId dot, with; // the sum, written as a product; the product
    OpId at;        // which of them stands last: there both are made
    uint8_t of;     // which operand (product.h)
    uint32_t ins, outs; // of the step: where its own begin
} DotSum;

#define ROW_SUMS_MAX 4
typedef struct RowSum { // a sum over the rows of a row program's result: its parts are made with the rows (rows_sums.c)
    OpId rows, dot;  // the program; the sum, written as a product
    uint32_t result; // which of the program's
    int64_t n;       // columns of the sum
    bool gone;       // nobody else reads the result
    BufId parts;     // [2 * PARTITIONS][n], for the product in the result's place
} RowSum;

typedef struct Fence { // a barrier of the program before a step: who reads one of its buffers behind it comes behind all who made them
    uint32_t step;
    VEC(BufId) bufs;
} Fence;

typedef struct Lower {
    Compile *c;
    Hlo *h;
    HloFunc *main;
    VEC(Step) steps;
    VEC(BufId) refs;
    VEC(TBuf) bufs;
    VEC(Loop) loops;       // slot 0 is "no loop"
    VEC(Switch) switches;
    VEC(Fence) fences;     // in order
    uint32_t loop;         // innermost while lowering
    BufId *buf_of;         // per value
    uint32_t *uses;        // per value: reads in the whole program
    BufId *want;           // per value: buffer its producer should write, 0 = any
    uint32_t *want_result; // per value: result number + 1
    int32_t *alias;        // per result: argument it may take over, or -1
    VEC(struct Block *) blocks; // row programs with products before and behind (block.h)
    uint32_t *block_of;    // per op: number of the block it is part of, 0 = none
    struct Wedge **wedge_of; // per op: what is read of its result, NULL: all (block.h)
    VEC(struct Epilogue *) epilogues; // row programs that products' tiles go through (rows.h)
    struct Emit *asks;     // for questions only: what a step would need
    uint32_t *epilogue_of; // per op: number of the epilogue it is part of, 0 = none
    VEC(ValueId) lazy;     // splat constants and forms put into memory so far in open regions
    VEC(DotSum) sums;
    uint32_t *sum_of;      // per op: number of the sum it makes or takes along, 0 = none
    VEC(RowSum) row_sums;
    uint32_t *row_sum_of;  // per op: number of the sum of rows it makes, the first of those it has, or that it stands between; 0 = none
    Users users;
    Form *form;            // per value
    uint32_t nviews;
    OpId *update_of;       // per value: the update of a loop's state that it is made for, 0 = none
    BufId *update_state;   // per value, result of such an update: the state
} Lower;

// lower.c
void lower_program(Lower *l, const ChipFile *chip);
OpId lower_stored_as(const Lower *l, OpId dot); // the transpose as which a product's result goes to HBM; 0: as it is
BufId lower_memory(const Lower *l, BufId b); // the buffer whose memory that is: a view's whole, an argument that a result takes over
StepKind lower_kind(const Lower *l, const HloOp *op, Why *why); // of an ordinary op by itself; why: of a kernel, may be NULL
uint32_t row_sums_of(const Lower *l, OpId rows, RowSum **out); // rows_sums.c: how many a row program has
void lower_each(Lower *l, HloOpcode code, void (*visit)(Lower *l, OpId id)); // of the operations with this code, in order
// emit.c
struct Pair;
Artifact *emit_program(Lower *l, const ChipFile *chip, struct Pair *pair);
bool dot_is_batch(const Hlo *h, const HloOp *op);      // dot.c: many small products
// region.c: a region as a scalar program; captured outer values are appended to *captures, each as often as it
// has elements.
typedef VEC(ValueId) ValueList;
void region_compile(Compile *c, OpId op, RegionId r, KProg *out, ValueList *captures);

#endif
