// SPDX-License-Identifier: Apache-2.0
// reduce.h — the shape of a reduction: kept and reduced axes, joined as far as they run on; what bodies run over.
#ifndef OTRN_CHIP_GP_REDUCE_H
#define OTRN_CHIP_GP_REDUCE_H

#include "chip/gpsimd/gp.h"

typedef struct RedAxis {
    int64_t n, stride; // in elements of the operand
} RedAxis;

typedef struct RedShape { // outermost first in both lists
    RedAxis kept[OTRN_MAX_RANK], red[OTRN_MAX_RANK];
    int nkept, nred;
    int64_t outs, reds; // products
    bool inner_red;     // the contiguous axis is reduced
} RedShape;

// Offset of element `index` (row-major) of a list of axes.
int64_t red_offset(const RedAxis *axes, int n, int64_t index);

// What a thread has for a body that combines elements, block of lanes by block: accumulator, elements as
// read (`tile` blocks of them) and as the body wants them, per operand.
typedef struct LaneSlot {
    Prog prog;
    int64_t *offset; // per lane
    Lane *convert;   // per operand
    char **acc, **raw, **wide;
} LaneSlot;
size_t lane_slot_bytes(const Kern *k, size_t tile);
void lane_slot_open(LaneSlot *s, const GpCall *c, char *at, size_t tile);

bool red_is_fast(const Kern *k, RedOp *op); // one input, one associative op, a type with loops
otrn_status red_fast_run(const GpCall *c, const RedShape *s, RedOp op);
size_t red_fast_scratch(const Kern *k, const RedShape *s);

#endif
