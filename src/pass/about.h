// SPDX-License-Identifier: Apache-2.0
// about.h — about what an operation takes, before it is instructions: for questions of order, and of what hides what.
#ifndef OTRN_PASS_ABOUT_H
#define OTRN_PASS_ABOUT_H

#include "hlo/hlo.h"
#include "mach/chipfile.h"

// What it moves through HBM, or the cells of a product: no less than it takes.
double about_op_ns(const Hlo *h, const ChipFile *chip, const HloOp *op);
// A collective like `op` that carries so many bytes, of operands or of results, whichever are more.
double about_wire_ns(const Hlo *h, const ChipFile *chip, const HloOp *op, uint64_t bytes);
// The bytes that the collective carries itself.
uint64_t about_wire_bytes(const Hlo *h, const HloOp *op);

#endif
