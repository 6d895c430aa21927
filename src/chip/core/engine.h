// SPDX-License-Identifier: Apache-2.0
// engine.h — how instructions of the vector, scalar and gpsimd engines walk their operands.
//
// Elements of a partition are taken in flat order (the last axis fastest) and in blocks:
//
//   operand in SBUF, PSUM      block in L1            operand
//   any type, any pattern ───► fp32, bits or int64 ───► any type, any pattern
//                       load    loops of a host level   store: rounds once
//
// An operand that is one run of the block's own type is read and written in place. A block is a piece of one
// row or, when rows are short, several whole rows. Blocks of a row go in order, each loaded before it is
// stored, so an instruction whose operands overlap has one meaning on every host; rows of an instruction
// are partitions, which never overlap another row (the start partition rule), and go to any thread.
//
// Arithmetic gives the NaN 0x7fc00000. Reductions: element i of a block joins partial i mod 32, each from the
// operation's identity; partials fold in halves (16, 8, 4, 2, 1); blocks join the result in order.
#ifndef OTRN_CHIP_ENGINE_H
#define OTRN_CHIP_ENGINE_H

#include "chip/core/effect.h"
#include "chip/host/engine_level.h"

#define ENG_BLOCK 1024

float eng_identity(int alu); // what a reduction by it begins with, in fp32

// --- operands --------------------------------------------------------------------------------------------
typedef struct EngAxis {
    uint32_t n;
    int64_t step; // bytes
} EngAxis;
typedef struct EngTensor {
    uint8_t *at;
    int64_t pitch; // bytes between partitions
    uint8_t dtype, bytes;
    bool flat;    // a row is one run of adjacent elements
    bool careful; // overlaps another operand in another pattern: never used in place
    bool nowhere; // nobody reads what is written
    bool local;   // rows lie in the memory of the slice at work (EngBlock): `at` is an offset there
    int naxes;    // at least one; neighbours that are one axis are joined
    EngAxis axis[4];
    size_t cols; // elements of a row
} EngTensor;
EngTensor eng_tensor(EffOperand o, int dtype, const uint32_t n[5], const int32_t stride[5]);
EngTensor eng_column(EffOperand o, int dtype); // one element a partition
void eng_mark_overlap(EngTensor *dst, EngTensor *src);
// The same across partitions: does dst touch places of src other than its own?
bool eng_cross_overlap(const EngTensor *dst, uint32_t dst_rows, const EngTensor *src, uint32_t src_rows);

typedef struct EngBlock { // rows x cols elements; cols is all of a row when rows > 1
    uint32_t row, rows;
    size_t col, cols;
    uint8_t *local; // of the slice at work, when instructions are joined (plan.h), and the row
    uint32_t first; // that it begins with
} EngBlock;
static inline uint8_t *eng_row(const EngTensor *t, const EngBlock *b, uint32_t row) {
    return t->local ? b->local + (uintptr_t)t->at + (int64_t)(row - b->first) * t->pitch
                    : t->at + (int64_t)row * t->pitch;
}

typedef struct EngBuf { // a task's own memory
    _Alignas(64) uint8_t x[ENG_BLOCK * 8];
    _Alignas(64) uint8_t y[ENG_BLOCK * 8];
    _Alignas(64) uint8_t z[ENG_BLOCK * 8];
    _Alignas(64) uint8_t a[ENG_BLOCK * 8];
    _Alignas(64) uint8_t b[ENG_BLOCK * 8];
    _Alignas(64) uint8_t raw[ENG_BLOCK * 4], tmp[ENG_BLOCK * 4], wide[ENG_BLOCK * 8]; // of load and store
    bool filled[2]; // a, b hold a number that is the same for all rows
} EngBuf;

typedef struct EngWalk { // what loads and stores need besides the operand
    const GpLevel *level;
    EngDomain domain;
    bool stochastic; // stores to narrower floats round by chance,
    uint32_t key;    // drawn from this (base/round.h)
} EngWalk;
// n numbers rounded by chance to a float narrower than fp32; tmp has n too. Key and counter of base/round.h.
void eng_by_chance(const GpLevel *level, int dtype, void *to, const float *x, size_t n, uint32_t key, uint32_t counter, float *tmp);
EngWalk eng_walk(const EffCall *c, EngDomain domain);
// The block in the domain's form: in `buf`, or where it lies.
const void *eng_load(const EngWalk *w, const EngTensor *t, const EngBlock *b, void *buf, EngBuf *s);
// Where to put a result: in place, or `buf`. Then eng_store brings it there.
void *eng_out(const EngWalk *w, const EngTensor *t, const EngBlock *b, void *buf);
void eng_store(const EngWalk *w, const EngTensor *t, const EngBlock *b, const void *x, EngBuf *s);
// Bits only, any pattern on both sides.
void eng_gather(const EngTensor *t, const EngBlock *b, void *out);
void eng_scatter(const EngTensor *t, const EngBlock *b, const void *x);
// The same from one operand to another, of the same size of element, in runs of adjacent ones; false: there are none.
bool eng_move(const EngTensor *dst, const EngTensor *src, const EngBlock *b);
// One element of partition `row`; element `i` in flat order. b NULL: the operand is not local.
float eng_get(const EngWalk *w, const EngTensor *t, const EngBlock *b, uint32_t row, size_t i);
void eng_put(const EngWalk *w, const EngTensor *t, const EngBlock *b, uint32_t row, size_t i, float v);

// A scalar operand: a number in the instruction, or one per partition.
typedef struct EngScalar {
    bool given, is_int;
    float value; // when column.at is NULL
    int32_t number;
    EngTensor column;
} EngScalar;
EngScalar eng_scalar(uint64_t field, EffOperand o, int atype);
// buf = the operand of each element of the block, in the domain's form.
void eng_splat(const EngWalk *w, const EngScalar *a, const EngBlock *b, void *buf);

// Calls body for all blocks of rows x cols, over the pool; weight: the work an element is, in elements.
typedef void EngBody(const void *arg, const EngBlock *b, EngBuf *s);
void eng_run(Pool *pool, uint32_t rows, size_t cols, size_t weight, EngBody *body, const void *arg);

// The same as work for later: what an instruction does to its rows, which no other row takes part in.
#define ENG_JOB_ARG 1024
typedef struct EngJob {
    EngBody *body;
    uint32_t part, rows, group; // from partition `part` on; rows taken together
    size_t cols;
    uint32_t pc, until; // its instruction; the last that reads what it writes to the slice's memory, 0: it may be anybody
    // Rows of HBM that it reads and writes, and jobs whose rows are fetched beside it (plan_run.c): the first one's number
    // + 1; each leads to the next.
    struct {
        uint8_t *at; // of its first row
        int64_t pitch;
        uint32_t bytes;
    } hbm[2];
    uint8_t nhbm, span; // span: jobs from here on whose memory it takes (chain.h)
    bool is_chain;
    bool in_next_slice, is_heavy; // of much arithmetic
    uint16_t fetch, next_fetch;
    _Alignas(8) uint8_t arg[ENG_JOB_ARG];
} EngJob;
// Runs now, or fills in the call's job when it has one.
void eng_rows(const EffCall *c, size_t cols, size_t weight, EngBody *body, const void *arg, size_t arg_bytes);
// Those rows of the job that lie on partitions [begin, end), in the caller's thread; the slice begins at `slice`.
void eng_job_run(const EngJob *j, uint32_t slice, uint32_t begin, uint32_t end, uint8_t *local, EngBuf *s);
size_t eng_cols(const IsaInst *in); // n1 * n2 * n3 * n4

// Do rows of the operand share bytes?
bool eng_rows_overlap(const EngTensor *t, uint32_t rows);

otrn_status eff_fail(const EffCall *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
