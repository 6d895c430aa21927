// SPDX-License-Identifier: Apache-2.0
// put.h — instructions over views: counts, strides and waits follow from the operands.
#ifndef OTRN_TILE_PUT_H
#define OTRN_TILE_PUT_H

#include "isa/build.h"
#include "tile/emit.h"

void put_dma(Emit *e, int queue, View dst, View src); // by the sequencer that the queue belongs to
void put_dma_by(Emit *e, int engine, int queue, View dst, View src);
void put_bytes(Emit *e, int engine, int queue, uint64_t dst, uint64_t src, uint64_t bytes); // HBM to HBM, one run
void put_copy(Emit *e, int engine, View dst, View src);
// A copy by the vector or the scalar engine, whichever is through with it first; busy: ns by engine, of what they have had so far.
void put_evict(Emit *e, double *busy, View dst, View src);
void put_memset(Emit *e, int engine, View dst, const void *element); // NULL: zeros
void put_transpose(Emit *e, View dst, View src); // by the array
// Positions of a stage, `each` of them on the partitions with `cols` elements, groups `step` elements apart: transposed by the array, side by
// side in a bank, groups `pitch` elements apart.
void put_transposes(Emit *e, int dtype, Mem bank, int64_t pitch, Mem stage, int64_t step, int64_t positions, int64_t each, int64_t cols);
// second: elements to the second row of each cell (double_row); 0: there is none
void put_weights(Emit *e, View src, uint32_t second);
void put_matmul(Emit *e, View dst, View src, bool accumulate, uint32_t second);
// What isa/build.h makes of views; src1 may be NULL.
void put_inst(Emit *e, IsaInst in, const View *dst, const View *src, const View *src1);

#endif
