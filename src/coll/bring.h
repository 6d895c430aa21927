// SPDX-License-Identifier: Apache-2.0
// bring.h — what a member reads of the others' operands, wherever they are.
//
// Behind comm_meet every member says, alike, who reads what; what lies in other processes is brought over. Then comm_in shows any
// operand, or the part of it that this member reads.
#ifndef OTRN_COLL_BRING_H
#define OTRN_COLL_BRING_H

#include "coll/comm.h"

typedef struct CommNeed {
    const uint32_t *root;   // operand k is read from this position only; NULL: from all
    const uint32_t *source; // a member reads from this position only (by its own), COMM_NONE: from nobody; NULL: from all
    // A member reads only a part of each operand: its bytes, and how it is taken out of what member `to` is to read. NULL: all of it
    size_t (*part_bytes)(void *arg, uint32_t k);
    void (*part)(void *arg, uint32_t k, uint32_t to, const void *operand, void *out);
    void *arg;
} CommNeed;

bool comm_is_spread(const CommRank *me); // some members of its meeting are in other processes
bool comm_bring(CommRank *me, const CommNeed *need); // false: comm_why tells
// Of the member at this position. *part: only the part for me, packed.
const void *comm_in(const CommRank *me, uint32_t position, uint32_t k, bool *part);

#endif
