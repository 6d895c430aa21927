// SPDX-License-Identifier: Apache-2.0
// expand.h — what the files of the expand pass share.
#ifndef OTRN_PASS_EXPAND_H
#define OTRN_PASS_EXPAND_H

#include "pass/rules.h"

// expand_more.c
RuleFn expand_mhlo_call, expand_top_k, expand_ragged_all_to_all, expand_normal, expand_check_state, expand_constant_like;
RuleFn expand_scan, expand_ragged_dot, expand_byte_dot, expand_broadcasting;

// Calls for decompositions: expand_qr.c, expand_lu.c, expand_eigh.c, expand_lapack.c
RuleFn expand_qr, expand_lu, expand_eigh, expand_lapack;
bool expand_is_matrices(const HloOp *op), expand_is_lapack(const HloOp *op);

void expand_groups(Compile *c); // expand_groups.c: groups told by mesh axes become lists of devices
void expand_body(Compile *c, RegionId body); // expand.c: what the pass does, to one function
// True when the program has an op that only this pass knows to evaluate.
bool expand_needed(const Hlo *h);

#endif
