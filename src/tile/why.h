// SPDX-License-Identifier: Apache-2.0
// why.h — why an operation became a GpSimd kernel.
#ifndef OTRN_TILE_WHY_H
#define OTRN_TILE_WHY_H

#include "isa/kern.h"

#define WHY_BYTES 160
const char *tile_why_kernel(const Kern *k, char why[WHY_BYTES]);

#endif
