// SPDX-License-Identifier: Apache-2.0
// slab.h — convolutions whose windows are views of SBUF.
#ifndef OTRN_TILE_SLAB_H
#define OTRN_TILE_SLAB_H

#include "mach/cost.h"
#include "tile/emit.h"

// Place p and tap t of an axis meet element p * place + t * tap of the input, which is all inside it.
typedef struct SlabAxis {
    int64_t places, place, taps, tap;
    int64_t x, w, y; // strides: from element to element, tap to tap, place to place
} SlabAxis;

typedef struct Slab {
    int stype, dtype;    // of the operands, of the result
    uint64_t x, w, y;    // addresses of element 0
    SlabAxis depth, row, col;
    int64_t batch, batch_x, batch_y;
    int64_t ins, ins_x, ins_w, outs, outs_w, outs_y; // channels and their strides
} Slab;

// Nanoseconds it is likely to take on a chip, and its instructions; false: it does not suit any.
bool slab_cost(const ChipFile *c, const Slab *s, double *ns, int64_t *insts);
void slab_emit(Emit *e, const Slab *s);

#endif
