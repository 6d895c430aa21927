// SPDX-License-Identifier: Apache-2.0
// spill.h — what goes to HBM and comes back between steps: from which line to which, how much, and why.
#ifndef OTRN_CLOCK_SPILL_H
#define OTRN_CLOCK_SPILL_H

#include "clock/view.h"

typedef enum SpillWhy {
    SPILL_LARGE, // the tensor is larger than SBUF
    SPILL_LONG,  // more than SBUF holds goes through it between write and read
    SPILL_STEP,  // it would have fit: who reads it is compiled to a step of its own
    SPILL_WHYS,
} SpillWhy;
extern const char *const spill_names[SPILL_WHYS]; // "larger than SBUF", …

typedef struct SpillRow {
    uint32_t from, to; // lines of the view
    double bytes;      // read back
    double tensor_bytes; // of HBM that they are read from
    double between_bytes; // moved through SBUF from write to read, on average
    double between_ns;
    SpillWhy why;
} SpillRow;

typedef struct Spills {
    VEC(SpillRow) rows; // largest first
    double bytes;       // of all rows
} Spills;

// Of the first core's timeline; loops count their iterations.
void spill_make(Arena *a, const Artifact *art, const ChipFile *chip, const Clock *clock, const View *view, Spills *out);

#endif
