// SPDX-License-Identifier: Apache-2.0
// users.c — readers of every value in two walks: count, then fill.
#include "hlo/users.h"

#include <assert.h>

static void count(Users *u, RegionId r) {
    const Hlo *h = u->h;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        const HloOp *op = hlo_at(h, id);
        u->position[id] = i;
        u->region[id] = r;
        for (uint32_t k = 0; k < op->noperands; k++)
            u->end[hlo_operand(h, op, k) + 1]++;
        for (uint32_t k = 0; k < op->nregions; k++)
            count(u, h->op_regions.at[op->regions + k]);
    }
}

static void fill(Users *u, RegionId r) {
    const Hlo *h = u->h;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        const HloOp *op = hlo_at(h, id);
        for (uint32_t k = 0; k < op->noperands; k++)
            u->at[u->end[hlo_operand(h, op, k)]++] = id;
        for (uint32_t k = 0; k < op->nregions; k++)
            fill(u, h->op_regions.at[op->regions + k]);
    }
}

void users_count(const Hlo *h, RegionId r, uint32_t *uses) {
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        const HloOp *op = hlo_at(h, h->regions.at[r].ops.at[i]);
        for (uint32_t k = 0; k < op->noperands; k++)
            uses[hlo_operand(h, op, k)]++;
        for (uint32_t k = 0; k < op->nregions; k++)
            users_count(h, h->op_regions.at[op->regions + k], uses);
    }
}

void users_make(Users *u, const Hlo *h, Arena *a, RegionId body) {
    *u = (Users){.h = h, .nvalues = h->values.n, .position = ARENA_NEWN(a, uint32_t, h->ops.n + 1),
                 .region = ARENA_NEWN(a, RegionId, h->ops.n + 1),
                 .end = ARENA_NEWN(a, uint32_t, h->values.n + 2)};
    count(u, body);
    for (uint32_t v = 1; v < h->values.n + 2; v++)
        u->end[v] += u->end[v - 1];
    u->at = ARENA_NEWN(a, OpId, u->end[h->values.n + 1] + 1);
    fill(u, body);
}

const OpId *users_of(const Users *u, ValueId v, uint32_t *n) {
    assert(v < u->nvalues);
    uint32_t begin = v ? u->end[v - 1] : 0;
    *n = u->end[v] - begin;
    return u->at + begin;
}

Reader readers_of(const Users *u, ValueId v) {
    uint32_t n = 0;
    const OpId *at = v < u->nvalues ? users_of(u, v, &n) : u->at;
    return (Reader){.users = u, .next = at, .end = at + n};
}

bool users_there_before(const Users *u, ValueId v, OpId op) {
    OpId def = u->h->values.at[v].def;
    return !def || u->region[def] != u->region[op] || u->position[def] < u->position[op];
}
