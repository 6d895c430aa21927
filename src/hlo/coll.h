// SPDX-License-Identifier: Apache-2.0
// coll.h — what a collective's attributes say, the same for the graph and for kernels.
//
// attrs are the slots of the op's row (HloOp.attrs or Kern.attrs).
#ifndef OTRN_HLO_COLL_H
#define OTRN_HLO_COLL_H

#include "coll/comm.h"
#include "hlo/hlo.h"

// replica_groups, or source_target_pairs of ops that have those. False when the groups are not
// written as a table (mesh axes).
bool coll_groups(HloOpcode code, const HloAttr *attrs, Groups *out);
// A custom call of XLA's own collective, rows of which each device sends as many to each other as it says (pass/expand_more.c); the groups of its
// backend_config as a collective's slot has them, and its channel. False when they are missing or of another form.
#define HLO_RAGGED_ALL_TO_ALL "ragged_all_to_all"
bool coll_ragged(Hlo *h, const HloOp *op, HloAttr *groups, int64_t *channel);
// A hash of the op and its attributes, to which the operands' and results' types are added one by
// one.
uint64_t coll_sign(HloOpcode code, const HloAttr *attrs);
uint64_t coll_sign_type(uint64_t sign, int dtype, int rank, const int64_t *dims);

// A collective over several devices needs one comm_meet. `comm` is NULL on one device.
static inline Grid coll_grid(const CommRank *comm) {
    return comm ? comm_grid(comm) : (Grid){1, 1};
}
static inline uint32_t coll_rank(const CommRank *comm) {
    return comm ? comm_number(comm) : 0;
}

#endif
