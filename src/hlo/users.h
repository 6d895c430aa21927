// SPDX-License-Identifier: Apache-2.0
// users.h — who reads a value, and where an op stands. A picture of the graph at one moment.
#ifndef OTRN_HLO_USERS_H
#define OTRN_HLO_USERS_H

#include "hlo/hlo.h"

typedef struct Users {
    const Hlo *h;
    uint32_t *position; // per op: place in its region
    RegionId *region;   // per op
    uint32_t nvalues;   // that there were
    uint32_t *end;      // per value: end of its range in `at`
    OpId *at;           // an op that reads a value twice stands twice
} Users;

void users_make(Users *u, const Hlo *h, Arena *a, RegionId body); // of everything inside the region
void users_count(const Hlo *h, RegionId r, uint32_t *uses); // adds the reads of each value inside the region
const OpId *users_of(const Users *u, ValueId v, uint32_t *n);
static inline uint32_t users_reads(const Users *u, ValueId v) { // how often the value is read
    uint32_t n;
    users_of(u, v, &n);
    return n;
}
static inline OpId users_only(const Users *u, ValueId v) { // who alone reads it, once; 0: there is nobody, or more
    uint32_t n = 0;
    const OpId *at = v < u->nvalues ? users_of(u, v, &n) : NULL;
    return n == 1 ? *at : 0;
}
// Each of them:   for (Reader by = readers_of(&u, v); reader_next(&by);) … by.op …
typedef struct Reader {
    OpId id;
    const HloOp *op;
    const Users *users;
    const OpId *next, *end;
} Reader;
Reader readers_of(const Users *u, ValueId v); // none of a value made since
static inline bool reader_next(Reader *r) {
    if (r->next == r->end)
        return false;
    r->id = *r->next++, r->op = hlo_at(r->users->h, r->id);
    return true;
}
// The value is there when `op` runs: made before it in its region, or outside.
bool users_there_before(const Users *u, ValueId v, OpId op);

#endif
