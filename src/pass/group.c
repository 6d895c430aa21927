// SPDX-License-Identifier: Apache-2.0
// group.c — the mechanism of grouping: who is in which group, when one closes, what is read outside of it.
#include "pass/group.h"

#include <string.h>

#define LOOK_BACK 64 // groups among which a sibling is looked for

uint32_t group_new(Grouper *g, Group group) {
    group.open = true;
    VEC_PUSH(g->w.arena, &g->groups, group);
    return g->groups.n - 1;
}

void group_add(Grouper *g, uint32_t number, OpId id) {
    assert(number && g->groups.at[number].open);
    ValueId v = hlo_at(g->w.hlo, id)->results;
    VEC_PUSH(g->w.arena, &g->groups.at[number].ops, id);
    g->groups.at[number].last = g->at;
    if (v >= g->of.n) {
        uint32_t n = g->w.hlo->values.n;
        VEC_RESERVE(g->w.arena, &g->of, n);
        memset(g->of.at + g->of.n, 0, (n - g->of.n) * sizeof *g->of.at);
        g->of.n = n;
    }
    g->of.at[v] = number;
}

void group_merge(Grouper *g, uint32_t into, uint32_t from) {
    assert(into != from);
    assert(g->groups.at[into].open && g->groups.at[from].open);
    for (uint32_t i = 0; i < g->groups.at[from].ops.n; i++)
        group_add(g, into, g->groups.at[from].ops.at[i]);
    g->groups.at[from].open = false;
}

void group_outputs(Grouper *g, uint32_t number, Values *out) {
    const Hlo *h = g->w.hlo;
    const Group *k = &g->groups.at[number];
    for (uint32_t i = 0; i < k->ops.n; i++) {
        ValueId v = hlo_at(h, k->ops.at[i])->results;
        uint32_t within = 0;
        for (uint32_t j = i + 1; j < k->ops.n; j++) {
            const HloOp *user = hlo_at(h, k->ops.at[j]);
            for (uint32_t n = 0; n < user->noperands; n++)
                within += hlo_operand(h, user, n) == v;
        }
        if (walk_uses(&g->w, v) > within)
            VEC_PUSH(g->w.arena, out, v);
    }
}

void group_close(Grouper *g, uint32_t number) {
    assert(g->groups.at[number].open);
    uint32_t last = g->groups.n, from = last > g->first + LOOK_BACK ? last - LOOK_BACK : g->first;
    for (uint32_t i = from; i < last && g->siblings; i++)
        if (i != number && i != g->kept && g->groups.at[i].open && g->siblings(g, number, i))
            group_merge(g, number, i);
    g->groups.at[number].open = false;
    g->close(g, number);
}

void group_close_users(Grouper *g, const HloOp *op, uint32_t except) {
    const Hlo *h = g->w.hlo;
    g->kept = except;
    for (uint32_t k = 0; k < op->noperands; k++) {
        uint32_t of = group_open(g, hlo_operand(h, op, k));
        if (of && of != except)
            group_close(g, of);
    }
    for (uint32_t i = 0; i < op->nregions; i++) // values that its regions read from outside
        for (uint32_t j = 0; j < hlo_op_region(h, op, i)->ops.n; j++)
            group_close_users(g, hlo_at(h, hlo_op_region(h, op, i)->ops.at[j]), except);
}

static void region(Grouper *g, RegionId r) {
    Hlo *h = g->w.hlo;
    OpList outer = g->w.out;
    uint32_t first = g->first;
    g->w.out = (OpList){0};
    g->first = g->groups.n;
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++) {
        OpId id = h->regions.at[r].ops.at[i];
        g->at = i;
        walk_operands(&g->w, id);
        if (g->join(g, id))
            continue;
        HloOp op = *hlo_at(h, id);
        group_close_users(g, &op, 0);
        walk_operands(&g->w, id); // closing gave some operands new names
        for (uint32_t k = 0; k < op.nregions; k++)
            if (hlo_row(&op)->cls == HC_CTRL)
                region(g, h->op_regions.at[op.regions + k]);
            else
                walk_region(&g->w, h->op_regions.at[op.regions + k]);
        walk_push(&g->w, id);
    }
    walk_set_ops(h, r, &g->w.out);
    g->w.out = outer;
    g->first = first;
}

void group_run(Grouper *g, Compile *c) {
    assert(g->join && g->close);
    walk_init(&g->w, c);
    walk_note_uses(&g->w, 0);
    VEC_PUSH(c->scratch, &g->groups, (Group){0});
    region(g, hlo_main(c->hlo)->body);
    pass_dce(c); // broadcasts and constants that went into groups
}
