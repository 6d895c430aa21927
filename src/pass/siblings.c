// SPDX-License-Identifier: Apache-2.0
// siblings.c — small kernels that do not need each other's results become one.
// needs: elementwise work fused; values defined before use
// gives: otrn.fused ops and conversions of one small shape, and small reductions of one shape, side by side in one op
// stale: nothing
//
// A kernel on a few hundred elements is nearly all start: the sums and sums of squares of normalisation, the updates of
// biases and scales, their conversions. Ops move down to the last one of their group, never past somebody who reads them: a few
// places, or any distance when nobody reads them soon. Those that read only arguments move up to the first instead. Every
// value is computed as before.
#include "pass/rows.h"
#include "pass/walk.h"

#define FUSED_ELEMS 4096
#define REDUCED_ELEMS 65536 // of the operand
#define MEMBERS_MAX 12
#define INPUTS_MAX 64
#define STEPS_MAX 384
#define NEAR 12 // places that an op moves down when somebody waits for it
#define FAR 48  // places from a group to who reads it, when nobody waits

typedef struct Group {
    VEC(OpId) ops;
    uint32_t first_read, at, last, inputs, steps; // at: place of the op they become; last: of the last one of them
    bool early; // they read arguments only
} Group;

typedef struct Siblings {
    Compile *c;
    Hlo *h;
    Walk w;
    uint32_t *first; // per value: first place of the body that reads it
    uint32_t end;    // place of the return
    VEC(Group) groups;
    uint32_t *group_of; // per place: number of the group, 0 = none
} Siblings;

static bool is_candidate(const Hlo *h, const HloOp *op) {
    const HloType *in = op->noperands ? hlo_value_type(h, hlo_operand(h, op, 0)) : NULL, *out;
    if (!in || !op->nresults || !hlo_has_elems(in))
        return false;
    out = hlo_value_type(h, op->results);
    bool converts = op->code == HLO_CONVERT && hlo_has_elems(out) && !dtype_is_complex(in->dtype) && !dtype_is_complex(out->dtype);
    if (op->code == HLO_FUSED || converts)
        return out->elems <= FUSED_ELEMS;
    return op->code == HLO_REDUCE && op->noperands == 2 && op->nresults == 1 && in->elems <= REDUCED_ELEMS;
}

static bool are_alike(const Hlo *h, const HloOp *a, const HloOp *b) {
    if ((a->code == HLO_REDUCE) != (b->code == HLO_REDUCE))
        return false;
    if (a->code != HLO_REDUCE)
        return hlo_same_dims(hlo_value_type(h, a->results), hlo_value_type(h, b->results));
    uint32_t n, m;
    const int64_t *x = hlo_ints(a, AK_DIMENSIONS, &n), *y = hlo_ints(b, AK_DIMENSIONS, &m);
    bool same = n == m && hlo_same_dims(hlo_value_type(h, hlo_operand(h, a, 0)), hlo_value_type(h, hlo_operand(h, b, 0)));
    for (uint32_t i = 0; same && i < n; i++)
        same = x[i] == y[i];
    return same;
}

static uint32_t first_read(const Siblings *s, const HloOp *op) {
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < op->nresults; i++)
        first = s->first[op->results + i] < first ? s->first[op->results + i] : first;
    return first;
}

// --- grouping ----------------------------------------------------------------------------------------------

static uint32_t steps_of(const Hlo *h, const HloOp *op) { return op->nregions ? hlo_op_region(h, op, 0)->ops.n : 1; }

static bool reads_arguments(const Hlo *h, const HloOp *op) {
    for (uint32_t i = 0; i < op->noperands; i++)
        if (h->values.at[hlo_operand(h, op, i)].def)
            return false;
    return op->code == HLO_CONVERT;
}

static bool takes(const Siblings *s, const Group *g, const HloOp *op, uint32_t at) {
    uint32_t read = first_read(s, op), soon = at + FAR < s->end ? at + FAR : s->end;
    read = g->first_read < read ? g->first_read : read;
    bool early = reads_arguments(s->h, op), joins = early || (g->first_read > at && (at - g->last <= NEAR || read >= soon));
    return joins && early == g->early && g->ops.n < MEMBERS_MAX && g->inputs + op->noperands <= INPUTS_MAX &&
           g->steps + steps_of(s->h, op) <= STEPS_MAX && are_alike(s->h, hlo_at(s->h, g->ops.at[0]), op);
}

static void put(Siblings *s, OpId id, uint32_t at) {
    const HloOp *op = hlo_at(s->h, id);
    uint32_t number = s->groups.n; // a group that this one could join stands near the end of the list
    for (uint32_t i = 0; i < 64 && i < s->groups.n; i++)
        if (takes(s, &s->groups.at[s->groups.n - 1 - i], op, at)) {
            number = s->groups.n - 1 - i;
            break;
        }
    if (number == s->groups.n)
        VEC_PUSH(s->c->scratch, &s->groups, (Group){.first_read = UINT32_MAX, .at = at, .early = reads_arguments(s->h, op)});
    Group *g = &s->groups.at[number];
    uint32_t first = first_read(s, op);
    VEC_PUSH(s->c->scratch, &g->ops, id);
    g->first_read = first < g->first_read ? first : g->first_read;
    g->last = at, g->inputs += op->noperands, g->steps += steps_of(s->h, op);
    g->at = g->early ? g->at : at;
    s->group_of[at] = number + 1;
}

// --- putting together --------------------------------------------------------------------------------------

static TypeId element_type(Siblings *s, ValueId v) { return hlo_type_tensor(s->h, hlo_value_type(s->h, v)->dtype, 0, NULL); }

// The body of a member's region behind what `to` has; yields: what it returns there.
static void copy_body(Siblings *s, RegionId from, RegionId to, ValueMap *map, ValueId *yields) {
    Hlo *h = s->h;
    for (uint32_t i = 0; i < h->regions.at[from].ops.n; i++) {
        HloOp op = *hlo_at(h, h->regions.at[from].ops.at[i]);
        if (op.code == HLO_RETURN) {
            for (uint32_t k = 0; k < op.noperands; k++)
                yields[k] = value_map_or_same(map, hlo_operand(h, &op, k));
            return;
        }
        OpId made = value_map_copy(h, s->c->scratch, map, &op);
        hlo_region_push(h, to, made);
        value_map_set(s->c->scratch, map, op.results, hlo_at(h, made)->results);
    }
}

typedef struct Parts { // of the op that is made: members' operands one after the other; of reductions, their firsts first
    ValueId in[INPUTS_MAX];
    TypeId in_types[INPUTS_MAX], *out_types;
    int64_t kinds[INPUTS_MAX];
    uint32_t nin, nout;
} Parts;

static void gather(Siblings *s, const Group *g, bool reduce, Parts *p) {
    Hlo *h = s->h;
    for (uint32_t turn = 0; turn < (reduce ? 2 : 1); turn++)
        for (uint32_t i = 0; i < g->ops.n; i++) {
            const HloOp *op = hlo_at(h, g->ops.at[i]);
            uint32_t n;
            const int64_t *kinds = op->code == HLO_FUSED ? hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n) : NULL;
            for (uint32_t k = reduce ? turn : 0, end = reduce ? turn + 1 : op->noperands; k < end; k++, p->nin++) {
                assert(p->nin < INPUTS_MAX);
                p->in[p->nin] = hlo_operand(h, op, k);
                p->in_types[p->nin] = op->nregions ? h->values.at[hlo_op_region(h, op, 0)->args + k].type : element_type(s, p->in[p->nin]);
                p->kinds[p->nin] = kinds ? kinds[k] : FUSED_SAME;
                op = hlo_at(h, g->ops.at[i]);
            }
            for (uint32_t k = 0; k < op->nresults && !turn; k++)
                p->out_types[p->nout++] = h->values.at[op->results + k].type;
        }
}

static OpId together(Siblings *s, Walk *w, const Group *g) {
    Hlo *h = s->h;
    HloOp lead = *hlo_at(h, g->ops.at[g->ops.n - 1]);
    bool reduce = lead.code == HLO_REDUCE;
    uint32_t nout = 0;
    for (uint32_t i = 0; i < g->ops.n; i++)
        nout += hlo_at(h, g->ops.at[i])->nresults;
    Parts *p = ARENA_NEW(s->c->scratch, Parts);
    *p = (Parts){.out_types = ARENA_NEWN(s->c->scratch, TypeId, nout + 1)};
    gather(s, g, reduce, p);
    assert(p->nin <= INPUTS_MAX && p->nout == nout);
    OpId made = hlo_op(h, reduce ? HLO_REDUCE : HLO_FUSED, lead.loc, p->nin, p->in, p->nout, p->out_types);
    if (reduce)
        hlo_at(h, made)->attrs = lead.attrs;
    else
        hlo_set_ints(h, made, AK_BROADCAST_DIMENSIONS, p->kinds, p->nin);
    RegionId r = hlo_op_add_region(h, made, p->nin, p->in_types);
    ValueId *yields = ARENA_NEWN(s->c->scratch, ValueId, nout + 1);
    ValueMap map = {0};
    for (uint32_t i = 0, in = 0, out = 0; i < g->ops.n; i++) {
        HloOp op = *hlo_at(h, g->ops.at[i]);
        if (!op.nregions) { // a conversion
            TypeId type = element_type(s, op.results);
            ValueId arg = h->regions.at[r].args + in;
            OpId one = hlo_op_like(h, &op, &arg, type);
            hlo_region_push(h, r, one);
            yields[out++] = hlo_at(h, one)->results;
            in++;
            continue;
        }
        RegionId from = h->op_regions.at[op.regions];
        for (uint32_t k = 0; k < op.noperands; k++)
            value_map_set(s->c->scratch, &map, h->regions.at[from].args + k, h->regions.at[r].args + (reduce ? i + k * g->ops.n : in + k));
        copy_body(s, from, r, &map, yields + out);
        in += op.noperands, out += op.nresults;
    }
    hlo_region_push(h, r, hlo_op(h, HLO_RETURN, lead.loc, nout, yields, 0, NULL));
    walk_grow(w);
    for (uint32_t i = 0, out = 0; i < g->ops.n; i++) {
        const HloOp *op = hlo_at(h, g->ops.at[i]);
        for (uint32_t k = 0; k < op->nresults; k++)
            walk_replace(w, op->results + k, hlo_at(h, made)->results + out++);
    }
    return made;
}

static void siblings_region(void *pass, RegionId body) {
    Siblings *s = pass;
    Hlo *h = s->h;
    uint32_t n = h->regions.at[body].ops.n;
    s->end = n ? n - 1 : 0, s->groups.n = 0;
    s->first = ARENA_NEWN(s->c->scratch, uint32_t, h->values.n + 1);
    s->group_of = ARENA_NEWN(s->c->scratch, uint32_t, n + 1);
    for (uint32_t i = 0; i <= h->values.n; i++)
        s->first[i] = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        walk_first_reads(h, hlo_at(h, h->regions.at[body].ops.at[i]), i, s->first);
    for (uint32_t i = 0; i < n; i++)
        if (is_candidate(h, hlo_at(h, h->regions.at[body].ops.at[i])))
            put(s, h->regions.at[body].ops.at[i], i);
    OpList out = {0};
    for (uint32_t i = 0; i < n; i++) {
        OpId id = h->regions.at[body].ops.at[i];
        const Group *g = s->group_of[i] ? &s->groups.at[s->group_of[i] - 1] : NULL;
        walk_operands(&s->w, id);
        for (uint32_t k = 0; k < hlo_at(h, id)->nregions; k++)
            walk_region(&s->w, h->op_regions.at[hlo_at(h, id)->regions + k]);
        if (!g || g->ops.n == 1)
            VEC_PUSH(s->c->scratch, &out, id);
        else if (g->at == i)
            VEC_PUSH(s->c->scratch, &out, together(s, &s->w, g));
    }
    walk_set_ops(h, body, &out);
}

void pass_siblings(Compile *c) {
    Siblings s = {.c = c, .h = c->hlo};
    walk_init(&s.w, c);
    walk_regions(c->hlo, hlo_main(c->hlo)->body, siblings_region, &s);
}
