// SPDX-License-Identifier: Apache-2.0
// pieces.h — a row program and its products, cut into pieces of columns.
#ifndef OTRN_PASS_PIECES_H
#define OTRN_PASS_PIECES_H

#include "pass/rows_make.h"

#define BEHIND_MAX 6

typedef struct Behind { // a product that reads a result
    OpId op;
    uint32_t result, operand;
    bool over_rows; // … contracts rows: it keeps the columns
} Behind;

typedef struct Pieces {
    Compile *c;
    Hlo *h;
    Users u;
    Walk w; // the list is what goes in before the op in hand
} Pieces;

typedef struct Cut {
    Pieces *s;
    OpId rows;
    HloOp op;
    const HloRegion *body;
    int64_t nrows, n, width; // rows, columns; columns of a piece
    uint32_t scores;
    Behind behind[BEHIND_MAX];
    uint32_t nbehind, levels;
    ValueMap level;  // inner value -> reductions that come before it in a chain, plus one
    ValueMap total;  // inner result of a reduction -> its value, one a row
    ValueId *parts;  // [operand][piece], 0: not made yet
} Cut;

typedef struct Part { // what a program takes over
    bool *ops, *args, *totals; // per op of the region: copied; per argument; per op: its total is read
} Part;

static inline uint32_t npieces(const Cut *k) { return (uint32_t)((k->n + k->width - 1) / k->width); }
static inline int64_t piece_at(const Cut *k, uint32_t c) { return (int64_t)c * k->width; }
static inline int64_t piece_len(const Cut *k, uint32_t c) {
    int64_t left = k->n - piece_at(k, c);
    return left < k->width ? left : k->width;
}

// What a program must take over of the region to have an inner value.
Part part_new(const Cut *k);
void part_take(const Cut *k, Part *p, ValueId v);
// A program for a piece: operands, and `more` numbers a row, whose places are then in more_at. The ops are the caller's to copy.
void piece_begin(Cut *k, RowsMake *m, const Part *p, uint32_t c, const Values *more, uint32_t nresults, const TypeId *types,
                 uint32_t *more_at);
ValueId piece_other(Cut *k, const Behind *b, uint32_t c); // the other operand of a product behind
ValueId piece_reshaped(Pieces *s, ValueId v, TypeId type, LocId loc);

// pieces_soft.c: a softmax and its product, each piece once.
bool soft_fits(Cut *k);
void soft_cut(Cut *k);

#endif
