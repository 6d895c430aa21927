// SPDX-License-Identifier: Apache-2.0
// quant.c — operations on quantised tensors become integer and float operations.
// needs: known shapes
// gives: no quantised types
// stale: nothing
//
// The rewrite is the operations' definition and lives with the graph: see hlo/quant.h.
#include "hlo/quant.h"

#include "pass/walk.h"

void pass_quant(Compile *c) { hlo_lower_quant(c->hlo, c->scratch); }
