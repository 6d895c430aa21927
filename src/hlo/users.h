// SPDX-License-Identifier: Apache-2.0
// users.h — who reads a value, and where an op stands. A picture of the graph at one moment.
#ifndef OTRN_HLO_USERS_H
#define OTRN_HLO_USERS_H

#include "hlo/hlo.h"

typedef struct Users {
    const Hlo *h;
    uint32_t *position; // per op: place in its region
    RegionId *region;   // per op
    uint32_t *end;      // per value: end of its range in `at`
    OpId *at;           // an op that reads a value twice stands twice
} Users;

void users_make(Users *u, const Hlo *h, Arena *a, RegionId body); // of everything inside the region
void users_count(const Hlo *h, RegionId r, uint32_t *uses); // adds the reads of each value inside the region
const OpId *users_of(const Users *u, ValueId v, uint32_t *n);
// The value is there when `op` runs: made before it in its region, or outside.
bool users_there_before(const Users *u, ValueId v, OpId op);

#endif
