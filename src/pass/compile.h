// SPDX-License-Identifier: Apache-2.0
// compile.h — one compilation, as passes and tiler are handed it.
#ifndef OTRN_PASS_COMPILE_H
#define OTRN_PASS_COMPILE_H

#include "hlo/hlo.h"

#define HLO_USUAL "otrn.usual" // of an `if`: the branch that runs take, for prices; an integer

typedef struct Compile {
    Ctx *ctx;
    Arena *arena;   // lives until the artifact is written
    Arena *scratch; // reset after each pass
    Hlo *hlo;
    const struct Options *opts; // may be NULL: all defaults
    struct Pool *pool; // helps; may be NULL
    const struct ChipFile *chip; // for prices; NULL: not known, as far as results do not depend on it
    bool no_epilogue; // products' tiles go to memory as they are: that pass is left out
    Buf *placed; // where steps have their memories (tile/area.h); NULL: nobody asks
    Buf *nests; // what tile does, as text (tile/nest_text.h); NULL: nobody asks
} Compile;

#endif
