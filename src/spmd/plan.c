// SPDX-License-Identifier: Apache-2.0
// plan.c — how each value should lie: what the program says about some tensors, carried along the rules of the ops.
//
// A dimension that is cut stays cut; one that is not takes over the cut of a dimension it goes together with, when its size
// allows and the tensor's other cuts fit it. Ops are looked at again when a value they touch has changed: those that leave
// elements where they are first, forwards and backwards, then products and their like in the order of the program, broadcasts
// and reductions last. So
// a product finds its result cut as those want it that read it beside values of their own, and two cuts over the same devices
// are not decided by which operand comes first. Values the program has decided about are never changed. The plan is a wish: an op
// works in the parts its operands have when that is cheaper (work.c), and values are moved where the two differ.
#include <assert.h>
#include <string.h>

#include "spmd/spmd.h"

enum { LEVEL_GROUP, LEVEL_ALONG, LEVEL_OTHER, LEVEL_SMALL, LEVELS };

typedef struct Member { // of values that should lie alike
    int64_t group;
    ValueId value;
} Member;

typedef struct Seen { // an op of the plan
    OpId id;
    Rule *rule; // NULL: none, or not asked yet
    bool asked;
} Seen;

typedef enum Fixed { FIXED_NOT, FIXED_SAID, FIXED_ARGUMENT } Fixed; // ARGUMENT: nobody said anything about it, so each device has all of it

typedef struct Planner {
    Spmd *s;
    VEC(Member) members;
    uint8_t *fixed; // by value: Fixed
    VEC(Seen) ops;    // in the order of the program
    uint32_t *place;  // by op: its place there, from 1; 0: it is not among them
    uint32_t *loop;   // by value: the place of a loop whose region takes or returns it, or 0
    uint64_t *waiting[LEVELS]; // bits by place
    uint32_t low[LEVELS];      // no place before it waits
} Planner;

static const HloType *type_of(const Planner *p, ValueId v) { return hlo_value_type(p->s->h, v); }

static void plan_set(Planner *p, ValueId v, const Shards *sh, Fixed fixed) {
    const HloType *t = type_of(p, v);
    assert(v < p->s->nplan && (!sh || sh->rank == t->rank));
    if (p->fixed[v])
        return;
    if (sh && t->kind == HT_TENSOR && !shard_is_whole(sh) && spmd_fits(t, sh) && !p->s->plan[v])
        p->s->plan[v] = shard_without_terms(sh, p->s->c->scratch);
    p->fixed[v] = (uint8_t)fixed;
}

// --- who is to be looked at --------------------------------------------------------------------------

static uint32_t level_of(const Hlo *h, const HloOp *op) {
    switch ((HloOpcode)op->code) {
    case HLO_SDY_SHARDING_GROUP: // what is said of one value is said of its group
        return LEVEL_GROUP;
    case HLO_DOT_GENERAL:
    case HLO_CONVOLUTION:
    case HLO_GATHER:
    case HLO_SCATTER:
        return LEVEL_OTHER;
    case HLO_BROADCAST_IN_DIM: // what is small does not decide over what is large
    case HLO_REDUCE:
        return hlo_value_type(h, hlo_operand(h, op, 0))->elems != hlo_value_type(h, op->results)->elems ? LEVEL_SMALL : LEVEL_ALONG;
    default:
        return LEVEL_ALONG;
    }
}

static void wake(Planner *p, uint32_t place) {
    if (!place)
        return;
    assert(place < p->ops.n);
    uint32_t level = level_of(p->s->h, hlo_at(p->s->h, p->ops.at[place].id));
    p->waiting[level][place / 64] |= 1ull << place % 64;
    p->low[level] = place < p->low[level] ? place : p->low[level];
}

static void wake_around(Planner *p, ValueId v) {
    wake(p, p->place[p->s->h->values.at[v].def]);
    wake(p, p->loop[v]);
    for (Reader by = readers_of(&p->s->users, v); reader_next(&by);)
        wake(p, p->place[by.id]);
}

// 0: none is left.
static uint32_t next_place(Planner *p) {
    for (uint32_t level = 0; level < LEVELS; level++)
        for (uint32_t word = p->low[level] / 64; word <= p->ops.n / 64; word++) {
            uint64_t bits = p->waiting[level][word];
            p->low[level] = bits ? p->low[level] : (word + 1) * 64;
            if (!bits)
                continue;
            uint32_t place = word * 64 + (uint32_t)__builtin_ctzll(bits);
            p->waiting[level][word] &= bits - 1;
            p->low[level] = place;
            return place;
        }
    return 0;
}

// --- one op ------------------------------------------------------------------------------------------

// Cuts a dimension that is whole so far.
static void dim_cut(Planner *p, ValueId v, uint32_t dim, Cut c) {
    Spmd *s = p->s;
    const HloType *t = type_of(p, v);
    const Shards *now = s->plan[v];
    assert(dim < t->rank && c.parts > 1 && c.n);
    if (p->fixed[v] || (now && now->cut[dim].parts > 1) || !t->dims[dim] || t->dims[dim] % c.parts)
        return;
    Cut cuts[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        cuts[i] = now ? shard_cut(now, i) : CUT_WHOLE;
    cuts[dim] = c;
    if (!shard_cuts_fit(s->c->scratch, cuts, t->rank, s->devices))
        return;
    s->plan[v] = shard_make(s->c->scratch, t->rank, s->devices, cuts, CUT_WHOLE, SHARD_ADD);
    wake_around(p, v);
}

// Values of one shape that should lie alike.
static void alike(Planner *p, const ValueId *v, uint32_t n) {
    assert(n);
    const HloType *t = type_of(p, v[0]);
    for (uint32_t i = 1; i < n; i++)
        if (p->s->h->values.at[v[i]].type != p->s->h->values.at[v[0]].type)
            return;
    if (t->kind != HT_TENSOR || t->text || t->dynamic)
        return;
    for (uint32_t d = 0; d < t->rank; d++)
        for (uint32_t i = 0; i < n; i++)
            if (p->s->plan[v[i]] && p->s->plan[v[i]]->cut[d].parts > 1) {
                for (uint32_t k = 0; k < n; k++)
                    dim_cut(p, v[k], d, shard_cut(p->s->plan[v[i]], d));
                break;
            }
}

static void plan_group(Planner *p, const HloOp *op) {
    const HloNamed *n = hlo_named_find(op->extra, op->nextra, "group_id");
    VEC(ValueId) all = {0};
    for (uint32_t i = 0; n && i < p->members.n; i++)
        if (p->members.at[i].group == n->value.i)
            VEC_PUSH(p->s->c->scratch, &all, p->members.at[i].value);
    if (all.n)
        alike(p, all.at, all.n);
}

static const Rule *seen_rule(Planner *p, Seen *seen, const HloOp *op) {
    Spmd *s = p->s;
    Rule r;
    if (!seen->asked && (rule_of(s->c->scratch, s->h, op, &r) || rule_said(s->c->scratch, s->h, op, &r)) && r.nfactors) {
        seen->rule = ARENA_NEW(s->c->scratch, Rule);
        *seen->rule = r;
    }
    seen->asked = true;
    return seen->rule;
}

static void plan_rule(Planner *p, Seen *seen, const HloOp *op) {
    Spmd *s = p->s;
    const Rule *rule = seen_rule(p, seen, op);
    if (!rule)
        return;
    const Rule r = *rule;
    assert(r.ntensors == op->noperands + op->nresults);
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
                else if (!give && cuts[f].parts <= 1 && s->plan[v] && s->plan[v]->cut[d].parts > 1)
                    cuts[f] = shard_cut(s->plan[v], d);
            }
        }
}

static void plan_while(Planner *p, const HloOp *op) {
    Hlo *h = p->s->h;
    RegionId cond = h->op_regions.at[op->regions], body = h->op_regions.at[op->regions + 1];
    HloOp ret = *hlo_at(h, h->regions.at[body].ops.at[h->regions.at[body].ops.n - 1]);
    for (uint32_t i = 0; i < op->nresults && i < ret.noperands; i++) {
        ValueId group[] = {hlo_operand(h, op, i), h->regions.at[body].args + i, op->results + i,
                           hlo_operand(h, &ret, i), h->regions.at[cond].args + i};
        alike(p, group, 5);
    }
}

static void plan_op(Planner *p, Seen *seen) {
    Hlo *h = p->s->h;
    const HloOp op = *hlo_at(h, seen->id);
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
        plan_while(p, &op);
        return;
    default:
        plan_rule(p, seen, &op);
    }
}

// --- the program -------------------------------------------------------------------------------------

// A loop is woken by what its regions take and its body returns.
static void list_loop(Planner *p, const HloOp *op, uint32_t place) {
    assert(op->nregions == 2); // condition, body
    Hlo *h = p->s->h;
    for (uint32_t r = 0; r < 2; r++) {
        const HloRegion *region = &h->regions.at[h->op_regions.at[op->regions + r]];
        const HloOp *ret = hlo_at(h, region->ops.at[region->ops.n - 1]);
        for (uint32_t i = 0; i < region->nargs; i++)
            p->loop[region->args + i] = place;
        for (uint32_t i = 0; r && i < ret->noperands; i++)
            p->loop[hlo_operand(h, ret, i)] = place;
    }
}

static void list_ops(Planner *p, RegionId region) {
    Hlo *h = p->s->h;
    for (uint32_t i = 0; i < h->regions.at[region].ops.n; i++) {
        OpId id = h->regions.at[region].ops.at[i];
        const HloOp op = *hlo_at(h, id);
        p->place[id] = p->ops.n;
        VEC_PUSH(p->s->c->scratch, &p->ops, (Seen){.id = id});
        const HloNamed *n = op.code == HLO_SDY_SHARDING_GROUP ? hlo_named_find(op.extra, op.nextra, "group_id") : NULL;
        if (n && n->value.kind == HA_INT) {
            ValueId v = hlo_operand(h, &op, 0);
            VEC_PUSH(p->s->c->scratch, &p->members, ((Member){n->value.i, v}));
            if (p->fixed[v] == FIXED_ARGUMENT) // stays whole where it comes in, and lies as the group from there on
                p->fixed[v] = FIXED_NOT;
        }
        if (op.code == HLO_WHILE) {
            list_loop(p, &op, p->place[id]);
            list_ops(p, h->op_regions.at[op.regions + 1]);
        }
    }
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
                plan_set(p, op.results, sh, sh->open ? FIXED_NOT : FIXED_SAID);
        } else if (op.code == HLO_SDY_MANUAL_COMPUTATION) {
            ShardRead r = spmd_reader(s, NULL);
            AxisSet axes = shard_parse_axes(&r, spmd_opaque(s, &op, "manual_axes"));
            const Shards **in = spmd_shards_list(s, &op, "in_shardings", &axes, op.noperands, h->operands.at + op.operands);
            const Shards **out = spmd_shards_list(s, &op, "out_shardings", &axes, op.nresults, spmd_result_ids(s, &op));
            for (uint32_t k = 0; k < op.noperands; k++)
                plan_set(p, hlo_operand(h, &op, k), in[k], FIXED_NOT);
            for (uint32_t k = 0; k < op.nresults; k++)
                plan_set(p, op.results + k, out[k], FIXED_SAID);
        }
    }
}

void spmd_plan(Spmd *s, RegionId body, const Shards *const *args, const Shards *const *results) {
    Hlo *h = s->h;
    Planner p = {.s = s,
                 .fixed = ARENA_NEWN(s->c->scratch, uint8_t, h->values.n),
                 .place = ARENA_NEWN(s->c->scratch, uint32_t, h->ops.n),
                 .loop = ARENA_NEWN(s->c->scratch, uint32_t, h->values.n)};
    users_make(&s->users, h, s->c->scratch, body);
    s->nplan = h->values.n;
    s->plan = ARENA_NEWN(s->c->scratch, const Shards *, s->nplan);
    HloRegion r = h->regions.at[body];
    for (uint32_t i = 0; i < r.nargs; i++)
        plan_set(&p, r.args + i, args[i], args[i] ? FIXED_SAID : FIXED_ARGUMENT);
    plan_said(&p, body);
    const HloOp ret = *hlo_at(h, r.ops.at[r.ops.n - 1]);
    for (uint32_t i = 0; i < ret.noperands; i++)
        plan_set(&p, hlo_operand(h, &ret, i), results[i], FIXED_NOT);
    VEC_PUSH(s->c->scratch, &p.ops, (Seen){0}); // place 0 is none
    list_ops(&p, body);
    for (uint32_t level = 0; level < LEVELS; level++)
        p.waiting[level] = ARENA_NEWN(s->c->scratch, uint64_t, p.ops.n / 64 + 1);
    for (uint32_t i = 1; i < p.ops.n; i++)
        wake(&p, i);
    for (uint32_t place; (place = next_place(&p));)
        plan_op(&p, &p.ops.at[place]);
}
