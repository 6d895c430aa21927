// SPDX-License-Identifier: Apache-2.0
// cost.h — about what work takes on a chip before it is instructions, in ns: what passes and tiler ask when they choose.
//
// price.h prices an instruction that is there, and the clock adds those up. A choice between ways of doing something is made sooner, from bytes,
// elements and cells. Every such question is one of these, of the chip that is compiled for: no pass and no emitter has figures of a chip of its own.
#ifndef OTRN_MACH_COST_H
#define OTRN_MACH_COST_H

#include "mach/price.h"

// --- memory ---
double cost_hbm(const ChipFile *c, double bytes);    // through HBM, whoever moves them
double cost_stream(const ChipFile *c, double bytes); // in long transfers: by the slower of HBM and the DMA engines together
double cost_dma(const ChipFile *c, double bytes);    // by the DMA engines together
double cost_transfers(const ChipFile *c, double n, double bytes, double run); // so many through two queues, in runs of so many bytes
double cost_reach(const ChipFile *c);                // from a transfer's trigger to its first byte, and from its last byte until that is known

// --- engines ---
double cost_pass(const ChipFile *c, int engine, double elems); // elements of each partition past an engine, one a cycle
double cost_elementwise(const ChipFile *c, bool pairs, int dtype, double elems); // … of an instruction over pairs of tensors, or over one
double cost_columns(const ChipFile *c, int dtype, double n);   // columns of that type through the array
double cost_kernel(const ChipFile *c, double steps);           // steps of one lane on GpSimd, all lanes at work
double cost_inst(const ChipFile *c, const Kern *kerns, const IsaInst *in); // one of a stream of instructions: how long the next one waits

// --- operations ---
double cost_op(const Hlo *h, const ChipFile *c, const HloOp *op); // no less than it takes: its bytes through HBM, or the cells of a product
double cost_wire(const Hlo *h, const ChipFile *c, const HloOp *op, uint64_t bytes); // a collective like `op` of so many bytes, of operands or of
uint64_t cost_wire_bytes(const Hlo *h, const HloOp *op);          // results, whichever are more; those that it carries itself

// The order in which a sum adds up may depend on what is quicker, but results may not depend on the chip. Such a choice is made for this machine
// on every chip, and the chip's own prices choose among what is left.
const ChipFile *cost_reference(void);

#endif
