// SPDX-License-Identifier: Apache-2.0
// way.h — the steps from one sharding to another, and what they send.
#ifndef OTRN_SPMD_WAY_H
#define OTRN_SPMD_WAY_H

#include "spmd/spmd.h"

typedef enum StepKind {
    STEP_CUT,     // each device keeps a part of what it has
    STEP_SCATTER, // terms summed, each device keeps a part of a dimension
    STEP_REDUCE,  // terms summed
    STEP_SWAP,    // parts of one dimension become parts of another: all-to-all
    STEP_PERMUTE, // parts go to other devices
    STEP_GATHER,  // parts of a dimension together
} StepKind;

typedef struct Step {
    StepKind kind;
    uint32_t dim, into;   // the dimension; of STEP_SWAP the one cut instead
    int64_t parts;        // devices that meet
    const Shards *meet;   // they differ in its dimension `along`; of STEP_CUT the cut itself, of STEP_PERMUTE how it lay
    uint32_t along;
    ShardCombine combine; // of terms
    const Shards *after;
} Step;

#define WAY_STEPS_MAX (4 * OTRN_MAX_RANK + 4)
#define WAY_STEP_BYTES 4096u // a step costs as much as so many bytes, however little it moves

// At most WAY_STEPS_MAX. What is wanted has no terms.
uint32_t way_steps(Spmd *s, const Shards *from, const Shards *to, Step *out);
// A device sends so many bytes on the way.
uint64_t way_bytes(Spmd *s, const HloType *whole, const Shards *from, const Shards *to);

#endif
