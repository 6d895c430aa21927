// SPDX-License-Identifier: Apache-2.0
// roof.h — what roofs need to know of a program besides its operations.
#ifndef OTRN_TOOLS_ROOF_H
#define OTRN_TOOLS_ROOF_H

#include "hlo/users.h"

// Nothing is computed, or nothing is kept of it: another view of its operand, a number from a table.
bool roof_is_free(const HloOp *op);
// Part of the kernel before or behind it: elements that move, a change of type (roof_bytes.c) …

bool roof_is_joined(const Users *u, const HloOp *op);
// … so that a kernel reads so many bytes of an operand, and writes so many of a result.
double roof_read(const Users *u, ValueId v);
double roof_written(const Users *u, ValueId v);
// Bytes that one device holds at most while the program runs in its order. chip: per value, what stays on the chip.
double roof_peak(const Hlo *h, Arena *a, const Users *u, const bool *chip);

#endif
