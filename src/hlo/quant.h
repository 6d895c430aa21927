// SPDX-License-Identifier: Apache-2.0
// quant.h — quantised element types: integers that stand for (q - zero point) * scale.
//
// A quantised tensor is an HT_TENSOR whose dtype is the storage type and whose text is
// "!quant.uniform<i8<-127:127>:f32:1, {0.1:-30, 0.5}>": storage type with the range it uses (the
// whole type when left out), expressed type, and one scale with its zero point (0 when left out) for
// all elements, or one for each index along an axis. The readers write equal types with equal text.
//
// MLIR also has scales for blocks, "!quant.uniform<i8:f32:{0:1, 1:2}, {{0.1, 0.2}, {0.3, 0.4}}>": along dimension 1 two
// neighbours share a scale; a dimension that is not named is one block. The specification does not speak of them:
// they are quantised, dequantised, handed on whole and multiplied by as the right side of a product, which is what the
// definition of a quantised operation gives.
//
// The specification defines an operation on quantised tensors by ordinary operations: integers become
// numbers, the operation runs on the numbers, the result becomes integers again. hlo_lower_quant
// writes that definition out, so evaluator and compiler meet integers and floats only. It belongs to
// the meaning of a program and is no optimisation: whoever evaluates or compiles a graph runs it first.
#ifndef OTRN_HLO_QUANT_H
#define OTRN_HLO_QUANT_H

#include "hlo/hlo.h"

typedef struct Quant {
    uint8_t storage, expressed; // Dtype: integer of at most 32 bits, float
    int axis;                   // -1: one scale for all elements
    uint32_t n;                 // scales: 1, or the size of dimension `axis`, or the number of blocks
    const int64_t *blocks;      // by dimension: its scales, row-major over all; NULL: not by blocks
    const double *scales;
    const int64_t *zero_points;
    int64_t min, max; // what storage may hold
} Quant;

static inline bool quant_is(const HloType *t) {
    return t->kind == HT_TENSOR && t->text && t->text[0] == '!';
}
int quant_expressed(const HloType *t); // Dtype; DT_INVALID when the text names none
// Parses and checks the type; NULL, or what is wrong with it. Lists come from the arena.
const char *quant_parse(Arena *a, const HloType *t, Quant *out);
// The same integers stand for the same numbers (whatever the axis, and how wide they are stored).
bool quant_alike(const Quant *a, const Quant *b);
bool quant_same(const Quant *a, const Quant *b); // and are stored alike

// Rewrites every function: quantised types become their storage types, also in signatures, and the
// operations on them integer and float operations. Needs a verified graph of known shapes.
void hlo_lower_quant(Hlo *h, Arena *scratch);

#endif
