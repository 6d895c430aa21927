// SPDX-License-Identifier: Apache-2.0
// artifact_bounds.h — where the addresses of a shape's instructions may lie.
#ifndef OTRN_ARTIFACT_BOUNDS_H
#define OTRN_ARTIFACT_BOUNDS_H

#include "artifact/artifact.h"

typedef struct Bound { // of one operand
    uint8_t at, space; // at: of its address in the record
    bool is_write, in_bank; // in_bank: may not cross a PSUM bank
    uint32_t align;         // of the offset, less one
    int64_t lo, hi;         // partitions: of the offset; HBM: what it reaches from there
} Bound;

typedef struct Bounds { // of a shape
    bool doubt;   // its instructions need the rules themselves
    bool matters; // to what follows it, beyond memory: check_inst
    bool control; // changes what is known: jumps, loops, registers, barriers, the end
    bool waits;   // for a count since the last barrier
    uint8_t sem;  // it counts on
    uint8_t n;
    Bound at[ISA_ACCESS_MAX];
} Bounds;

// For a chip; raises nothing but NOMEM.
Bounds *bounds_make(Arena *a, const IsaShapes *shapes, const IsaChip *chip);
// Per instruction 0 when its shape has no doubt and its addresses are inside their bounds.
uint8_t *bounds_doubt(Arena *a, const Artifact *art, const IsaShapes *shapes, const Bounds *bounds, const IsaChip *chip,
                      Pool *pool);

#endif
