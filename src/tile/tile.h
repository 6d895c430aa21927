// SPDX-License-Identifier: Apache-2.0
// tile.h — from graph to instructions: place values in HBM, cut products into tiles, emit.
#ifndef OTRN_TILE_TILE_H
#define OTRN_TILE_TILE_H

#include "artifact/artifact.h"
#include "clock/clock.h"
#include "pass/compile.h"

// Lowers the entry function of c->hlo (one function left, calls inlined) for a chip. Raises UNSUPPORTED with
// the op's place, or CAPACITY with the tensors live at the peak.
Artifact *tile_lower(Compile *c, const ChipFile *chip);

#endif
