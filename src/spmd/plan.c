// SPDX-License-Identifier: Apache-2.0
// plan.c — how each value should lie: what the program says about some tensors, carried along the rules of the ops.
//
// Ops are walked forwards and backwards until nothing changes. A dimension that is cut stays cut; one that is not
// takes over the cut of a dimension it goes together with, when its size allows and the tensor's other cuts fit
// it. Values the program has decided about are never changed. The plan is a wish: an op works in the parts
// its operands have when that is cheaper (spmd.c), and values are moved where the two differ.
#include <string.h>

#include "spmd/spmd.h"

#define ROUNDS_MAX 8

typedef struct Group { // values that should lie alike: the first of them stands for all
    int64_t id;
    ValueId first;
} Group;

typedef struct Planner {
    Spmd *s;
    VEC(Group) groups;
    uint8_t *fixed; // by value
    bool changed;
} Planner;

static const HloType *type_of(const Planner *p, ValueId v) { return hlo_value_type(p->s->h, v); }

static void plan_set(Planner *p, ValueId v, const Shards *sh, bool fixed) {
    const HloType *t = type_of(p, v);
    if (p->fixed[v])
        return;
    if (sh && t->kind == HT_TENSOR && !shard_is_whole(sh) && spmd_fits(t, sh) && !p->s->plan[v])
        p->s->plan[v] = shard_without_terms(sh, p->s->c->scratch);
    p->fixed[v] = fixed;
}

// Cuts a dimension that is whole so far.
static void dim_cut(Planner *p, ValueId v, uint32_t dim, Cut c) {
    Spmd *s = p->s;
    const HloType *t = type_of(p, v);
    const Shards *now = s->plan[v];
    if (p->fixed[v] || (now && now->parts[dim] > 1) || !t->dims[dim] || t->dims[dim] % c.parts)
        return;
    Cut cuts[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        cuts[i] = now ? shard_cut(now, i) : (Cut){1, NULL};
    cuts[dim] = c;
    if (!shard_cuts_fit(cuts, t->rank, s->devices))
        return;
    s->plan[v] = shard_make(s->c->scratch, t->rank, s->devices, cuts, (Cut){1, NULL}, SHARD_ADD);
    p->changed = true;
}

// Values of one shape that should lie alike.
static void alike(Planner *p, const ValueId *v, uint32_t n) {
    const HloType *t = type_of(p, v[0]);
    for (uint32_t i = 1; i < n; i++)
        if (p->s->h->values.at[v[i]].type != p->s->h->values.at[v[0]].type)
            return;
    if (t->kind != HT_TENSOR || t->text || t->dynamic)
        return;
    for (uint32_t d = 0; d < t->rank; d++)
        for (uint32_t i = 0; i < n; i++)
            if (p->s->plan[v[i]] && p->s->plan[v[i]]->parts[d] > 1) {
                for (uint32_t k = 0; k < n; k++)
                    dim_cut(p, v[k], d, shard_cut(p->s->plan[v[i]], d));
                break;
            }
}

static void plan_group(Planner *p, const HloOp *op) {
    const HloNamed *n = hlo_named_find(op->extra, op->nextra, "group_id");
    ValueId v = hlo_operand(p->s->h, op, 0);
    uint32_t i = 0;
    if (!n || n->value.kind != HA_INT)
        return;
    while (i < p->groups.n && p->groups.at[i].id != n->value.i)
        i++;
    if (i == p->groups.n)
        VEC_PUSH(p->s->c->scratch, &p->groups, ((Group){n->value.i, v}));
    else if (p->groups.at[i].first != v)
        alike(p, (ValueId[]){p->groups.at[i].first, v}, 2);
}

static void plan_rule(Planner *p, const HloOp *op) {
    Spmd *s = p->s;
    Rule r;
    if ((!rule_of(s->c->scratch, s->h, op, &r) && !rule_said(s->c->scratch, s->h, op, &r)) || !r.nfactors)
        return;
    Cut *cuts = ARENA_NEWN(s->c->scratch, Cut, r.nfactors);
    for (int give = 0; give < 2; give++)
        for (uint32_t t = 0; t < r.ntensors; t++) {
            ValueId v = t < op->noperands ? hlo_operand(s->h, op, t) : op->results + (t - op->noperands);
            for (uint32_t d = 0; d < type_of(p, v)->rank; d++) {
                int f = rule_factor(&r, t, d);
                if (f < 0)
                    continue;
                if (give && cuts[f].parts > 1)
                    dim_cut(p, v, d, cuts[f]);
                else if (!give && cuts[f].parts <= 1 && s->plan[v] && s->plan[v]->parts[d] > 1)
                    cuts[f] = shard_cut(s->plan[v], d);
            }
        }
}

static void plan_region(Planner *p, RegionId region, bool backwards);

static void plan_while(Planner *p, const HloOp *op, bool backwards) {
    Hlo *h = p->s->h;
    RegionId cond = h->op_regions.at[op->regions], body = h->op_regions.at[op->regions + 1];
    HloOp ret = *hlo_at(h, h->regions.at[body].ops.at[h->regions.at[body].ops.n - 1]);
    for (int again = 0; again < 2; again++) {
        for (uint32_t i = 0; i < op->nresults && i < ret.noperands; i++) {
            ValueId group[] = {hlo_operand(h, op, i), h->regions.at[body].args + i, op->results + i,
                               hlo_operand(h, &ret, i), h->regions.at[cond].args + i};
            alike(p, group, 5);
        }
        if (!again)
            plan_region(p, body, backwards);
    }
}

static void plan_op(Planner *p, OpId id, bool backwards) {
    Hlo *h = p->s->h;
    const HloOp op = *hlo_at(h, id);
    switch (op.code) {
    case HLO_SDY_MANUAL_COMPUTATION: // said in plan_said
    case HLO_SDY_PROPAGATION_BARRIER:
        return;
    case HLO_SDY_SHARDING_CONSTRAINT:
    case HLO_SDY_RESHARD:
    case HLO_OPTIMIZATION_BARRIER:
    case HLO_REVERSE: // lies as before, although parts change places
        for (uint32_t i = 0; i < op.nresults && i < op.noperands; i++)
            alike(p, (ValueId[]){hlo_operand(h, &op, i), op.results + i}, 2);
        return;
    case HLO_SDY_SHARDING_GROUP:
        plan_group(p, &op);
        return;
    case HLO_WHILE:
        plan_while(p, &op, backwards);
        return;
    default:
        plan_rule(p, &op);
    }
}

static void plan_region(Planner *p, RegionId region, bool backwards) {
    uint32_t n = p->s->h->regions.at[region].ops.n;
    for (uint32_t i = 0; i < n; i++)
        plan_op(p, p->s->h->regions.at[region].ops.at[backwards ? n - 1 - i : i], backwards);
}

// What ops say themselves, loops' regions included.
static void plan_said(Planner *p, RegionId region) {
    Spmd *s = p->s;
    Hlo *h = s->h;
    for (uint32_t i = 0; i < h->regions.at[region].ops.n; i++) {
        OpId id = h->regions.at[region].ops.at[i];
        const HloOp op = *hlo_at(h, id);
        s->op = id;
        s->loc = op.loc;
        if (op.code == HLO_WHILE) {
            plan_said(p, h->op_regions.at[op.regions + 1]);
        } else if (op.code == HLO_SDY_SHARDING_CONSTRAINT || op.code == HLO_SDY_RESHARD) {
            const Shards *sh = spmd_constraint(s, &op);
            if (sh)
                plan_set(p, op.results, sh, !sh->open);
        } else if (op.code == HLO_SDY_MANUAL_COMPUTATION) {
            ShardRead r = spmd_reader(s, NULL);
            AxisSet axes = shard_parse_axes(&r, spmd_opaque(s, &op, "manual_axes"));
            const Shards **in = spmd_shards_list(s, &op, "in_shardings", &axes, op.noperands, h->operands.at + op.operands);
            const Shards **out = spmd_shards_list(s, &op, "out_shardings", &axes, op.nresults, spmd_result_ids(s, &op));
            for (uint32_t k = 0; k < op.noperands; k++)
                plan_set(p, hlo_operand(h, &op, k), in[k], false);
            for (uint32_t k = 0; k < op.nresults; k++)
                plan_set(p, op.results + k, out[k], true);
        }
    }
}

void spmd_plan(Spmd *s, RegionId body, const Shards *const *args, const Shards *const *results) {
    Hlo *h = s->h;
    Planner p = {.s = s, .fixed = ARENA_NEWN(s->c->scratch, uint8_t, h->values.n)};
    s->nplan = h->values.n;
    s->plan = ARENA_NEWN(s->c->scratch, const Shards *, s->nplan);
    HloRegion r = h->regions.at[body];
    for (uint32_t i = 0; i < r.nargs; i++)
        plan_set(&p, r.args + i, args[i], true);
    plan_said(&p, body);
    const HloOp ret = *hlo_at(h, r.ops.at[r.ops.n - 1]);
    for (uint32_t i = 0; i < ret.noperands; i++)
        plan_set(&p, hlo_operand(h, &ret, i), results[i], false);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        p.changed = false;
        plan_region(&p, body, false);
        plan_region(&p, body, true);
        if (!p.changed)
            break;
    }
}
