// SPDX-License-Identifier: Apache-2.0
// eval.h — the plain evaluator: loops a reader can check against the StableHLO specification.
//
// It is the oracle for every lowering and kernel, and folds small constants; it never is the
// production path. Floats narrower than f64 are widened to double, computed, and rounded once per
// op; reductions and dot products round as their comments say.
#ifndef OTRN_HLO_EVAL_H
#define OTRN_HLO_EVAL_H

#include "hlo/hlo.h"

typedef struct Tensor { // dense row-major; data in the arena of the run
    TypeId type;
    void *data;
} Tensor;

// Runs a function. args[i].type must equal the function's types. Results are written to results
// (as many as the function has). A failing check.* op raises CHECK.
void eval_func(Hlo *h, Arena *a, const HloFunc *f, const Tensor *args, Tensor *results);
// The same as one of the devices that `comm` connects (coll/comm.h); it has ended, or failed, there when
// this returns or raises.
struct CommRank;
void eval_func_on(Hlo *h, Arena *a, const HloFunc *f, const Tensor *args, Tensor *results,
                  struct CommRank *comm);
// One op on given operands, for folding; false when the op has no evaluator. Its regions, if it has any,
// must not use values from outside.
bool eval_op(Hlo *h, Arena *a, OpId op, const Tensor *operands, Tensor *results);
bool eval_has(HloOpcode code);

#endif
