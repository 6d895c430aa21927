// SPDX-License-Identifier: Apache-2.0
// schedule.c — the order of a region's operations by keys.
#include "pass/schedule.h"

#include <math.h>
#include <stdlib.h>

void schedule_init(Schedule *o, Compile *c) {
    *o = (Schedule){.c = c, .h = c->hlo, .key = ARENA_NEWN(c->scratch, double, c->hlo->ops.n + 1)};
    users_make(&o->u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    for (uint32_t i = 0; i < c->hlo->ops.n; i++)
        o->key[i] = o->u.position[i];
}

// --- what goes along ---------------------------------------------------------------------------------

typedef struct Cone {
    Schedule *o;
    OpId root;
    double key;
    OpList ops;
} Cone;

// What an op reads, regions of it included.
static void cone_need(Cone *n, const HloOp *op) {
    Schedule *o = n->o;
    for (uint32_t k = 0; k < op->noperands; k++) {
        OpId def = o->h->values.at[hlo_operand(o->h, op, k)].def;
        if (!def || o->u.region[def] != o->u.region[n->root] || o->key[def] <= n->key)
            continue;
        bool there = false;
        for (uint32_t i = 0; i < n->ops.n && !there; i++)
            there = n->ops.at[i] == def;
        if (!there)
            VEC_PUSH(o->c->scratch, &n->ops, def);
    }
    for (uint32_t k = 0; k < op->nregions; k++) {
        const HloRegion *inner = hlo_op_region(o->h, op, k);
        for (uint32_t i = 0; i < inner->ops.n; i++)
            cone_need(n, hlo_at(o->h, inner->ops.at[i]));
    }
}

bool schedule_raise(Schedule *o, OpId id, double key, ScheduleMay may, const void *pass, uint32_t most) {
    Cone n = {.o = o, .root = id, .key = key};
    VEC_PUSH(o->c->scratch, &n.ops, id);
    for (uint32_t i = 0; i < n.ops.n; i++) {
        const HloOp *op = hlo_at(o->h, n.ops.at[i]);
        if (n.ops.n > most || (i && !may(pass, op)))
            return false;
        cone_need(&n, op);
    }
    for (uint32_t i = 0; i < n.ops.n; i++)
        o->key[n.ops.at[i]] = o->key[n.ops.at[i]] < key ? o->key[n.ops.at[i]] : key;
    return true;
}

// --- the schedule ------------------------------------------------------------------------------------

typedef struct Keyed {
    double key;
    uint32_t at;
} Keyed;

static int keyed_compare(const void *a, const void *b) {
    const Keyed *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->at > y->at) - (x->at < y->at);
}

void schedule_make(Schedule *o, RegionId r) {
    const HloRegion *region = &o->h->regions.at[r];
    VEC(Keyed) moved = {0};
    OpList out = {0};
    for (uint32_t i = 0; i < region->ops.n; i++)
        if (schedule_is_moved(o, region->ops.at[i]))
            VEC_PUSH(o->c->scratch, &moved, ((Keyed){o->key[region->ops.at[i]], i}));
    if (!moved.n)
        return;
    qsort(moved.at, moved.n, sizeof *moved.at, keyed_compare);
    for (uint32_t i = 0, k = 0; i < region->ops.n; i++) {
        for (; k < moved.n && keyed_compare(&moved.at[k], &(Keyed){i, i}) < 0; k++)
            VEC_PUSH(o->c->scratch, &out, region->ops.at[moved.at[k].at]);
        if (!schedule_is_moved(o, region->ops.at[i]))
            VEC_PUSH(o->c->scratch, &out, region->ops.at[i]);
    }
    assert(out.n == region->ops.n); // the same ops, each once
    walk_set_ops(o->h, r, &out);
}

double schedule_first_read(const Schedule *o, RegionId r, ValueId v) {
    double first = INFINITY;
    for (Reader by = readers_of(&o->u, v); reader_next(&by);)
        first = fmin(first, o->u.region[by.id] == r ? o->key[by.id] : -1);
    return first;
}
