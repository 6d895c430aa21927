// SPDX-License-Identifier: Apache-2.0
// tile.c — the stop between graph and instructions: lower to steps, then emit.
#include "tile/step.h"

Artifact *tile_lower(Compile *c, const ChipFile *chip) {
    Lower *l = ARENA_NEW(c->scratch, Lower);
    *l = (Lower){.c = c, .h = c->hlo};
    lower_program(l, chip);
    return emit_program(l, chip);
}
