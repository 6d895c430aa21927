// SPDX-License-Identifier: Apache-2.0
// shapes.h — what the two files of the shapes pass share.
//
//   shapes.c      the walk: types refined op by op, values of small tensors computed on the way
//   shapes_ops.c  ops whose shapes are data, turned into ops whose shapes are attributes
#ifndef OTRN_PASS_SHAPES_H
#define OTRN_PASS_SHAPES_H

#include "pass/walk.h"

#define SHAPE_ELEMS_MAX 4096 // larger values are not followed: they are data, not shapes

typedef struct Shapes {
    Compile *c;
    Hlo *h;
    Walk w;
    VEC(const void *) known; // by value: its elements, dense; NULL: known only at run time
    VEC(OpId) out;           // ops written so far; regions use it as a stack
    uint32_t depth;
} Shapes;

// Makes room for values made since; call after anything that made values.
void shapes_grow(Shapes *s);
// Fills unknown dimensions of a value's type; dims has an entry for each.
void shapes_refine(Shapes *s, ValueId v, const int64_t *dims);
// The elements of a list of exactly n integers; false when they are not known, or not n.
bool shapes_ints(const Shapes *s, ValueId v, uint32_t n, int64_t *out);
void shapes_push(Shapes *s, OpId op);
// Rewrites op when it is one whose shape is data and that is known now. False: it is to be dropped,
// its results have been replaced.
bool shapes_rewrite(Shapes *s, OpId op);

#endif
