// SPDX-License-Identifier: Apache-2.0
// spmd.c — the program of all devices becomes the program of each: tensors shrink to parts.
// needs: the entry function without calls
// gives: arguments and results of a device's own shapes, collectives where parts must meet; marks of
//        Shardy gone; "otrn.sharding" on arguments and results that lie in parts (shard_text)
// stale: nothing
//
// A value is whole (every device has all of it) or in parts. An op with a rule (rule.c) works in parts: its factors
// are cut as the operands lie, as far as those cuts go together, and then as the plan (plan.c) has the result. An op
// without one takes and gives whole values, so every program is correct, at the price of memory. A
// manual_computation is what each device does with its parts; it is taken in as it is.
// A value may also be left unreduced: each device has a term of it. Its part is the device's term; it is combined where
// it is needed. A value becomes terms by one device keeping it and the others taking 0.
//
// Inside a manual region "whole" means whole for the devices that share its manual axes: nothing
// else changes, and regions may nest.
#include <assert.h>
#include <string.h>

#include "pass/walk.h"
#include "spmd/way.h"

static void copy_ops(Spmd *s, RegionId from);

ShardRead spmd_reader(const Spmd *s, const AxisSet *only) {
    return (ShardRead){.h = s->h, .arena = s->c->arena, .op = s->op, .devices = s->devices, .only = only};
}

// --- ops ---------------------------------------------------------------------------------------

const char *spmd_opaque(Spmd *s, const HloOp *op, const char *name) {
    const HloNamed *n = hlo_named_find(op->extra, op->nextra, name);
    if (!n || n->value.kind != HA_OPAQUE)
        hlo_fail(s->h, s->op, OTRN_VERIFY, "the attribute %s is missing", name);
    return n->value.s;
}

const Shards **spmd_shards_list(Spmd *s, const HloOp *op, const char *name, const AxisSet *axes,
                                uint32_t n, const ValueId *values) {
    uint32_t *ranks = ARENA_NEWN(s->c->scratch, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        ranks[i] = hlo_value_type(s->h, values[i])->rank;
    ShardRead r = spmd_reader(s, axes);
    return shard_parse_list(&r, spmd_opaque(s, op, name), n, ranks);
}

ValueId *spmd_result_ids(Spmd *s, const HloOp *op) {
    ValueId *v = ARENA_NEWN(s->c->scratch, ValueId, op->nresults + 1u);
    for (uint32_t i = 0; i < op->nresults; i++)
        v[i] = op->results + i;
    return v;
}

// What a region returns may lie in parts of axes that are not the region's own: it keeps them, inside the parts of
// `out`. NULL: it comes whole.
static const Shards *manual_result(Spmd *s, const Shards *out, ValueId v, ValueId *part) {
    const Piece *made = move_made(s, v);
    if (!made || shard_has_terms(made->shards) || shard_has_terms(out))
        return NULL;
    Cut cuts[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < out->rank; i++)
        cuts[i] = shard_cut_both(s->c->scratch, shard_cut(out, i), shard_cut(made->shards, i), s->devices);
    if (!shard_cuts_fit(s->c->scratch, cuts, out->rank, s->devices))
        return NULL;
    *part = made->value;
    return shard_make(s->c->scratch, out->rank, s->devices, cuts, CUT_WHOLE, SHARD_ADD);
}

static void copy_manual(Spmd *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    HloRegion body = *hlo_op_region(h, &op, 0);
    HloOp ret = *hlo_at(h, body.ops.at[body.ops.n - 1]);
    ShardRead r = spmd_reader(s, NULL);
    AxisSet axes = shard_parse_axes(&r, spmd_opaque(s, &op, "manual_axes"));
    if (body.nargs != op.noperands || ret.noperands != op.nresults)
        hlo_fail(h, id, OTRN_VERIFY, "its region takes or returns another number of values");
    const Shards **in = spmd_shards_list(s, &op, "in_shardings", &axes, op.noperands,
                                    h->operands.at + op.operands);
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId part = move_part(s, hlo_operand(h, &op, i), in[i]);
        if (h->values.at[part].type != h->values.at[body.args + i].type)
            hlo_fail(h, id, OTRN_VERIFY, "argument %u of its region is not a part of the operand", i);
        move_set(s, body.args + i, (Form){.whole = part});
    }
    s->manual++;
    copy_ops(s, h->op_regions.at[op.regions]);
    s->manual--;
    s->op = id;
    s->loc = op.loc;
    const Shards **out = spmd_shards_list(s, &op, "out_shardings", &axes, op.nresults, spmd_result_ids(s, &op));
    for (uint32_t i = 0; i < op.nresults; i++) {
        ValueId v;
        const Shards *both = manual_result(s, out[i], hlo_operand(h, &ret, i), &v);
        if (both && spmd_fits(hlo_value_type(h, op.results + i), both)) {
            move_set_piece(s, op.results + i, both, v);
            continue;
        }
        v = move_whole(s, hlo_operand(h, &ret, i));
        if (h->values.at[v].type != move_part_type(s, h->values.at[op.results + i].type, out[i]))
            hlo_fail(h, id, OTRN_VERIFY, "result %u of its region is not a part of the result", i);
        move_set_piece(s, op.results + i, out[i], v);
    }
}

// Uneven parts stay a wish.
const Shards *spmd_constraint(const Spmd *s, const HloOp *op) {
    const HloNamed *n = hlo_named_find(op->extra, op->nextra, "sharding");
    if (!n || n->value.kind != HA_OPAQUE)
        return NULL;
    ShardRead r = spmd_reader(s, NULL);
    const HloType *t = hlo_value_type(s->h, hlo_operand(s->h, op, 0));
    const Shards *sh = shard_parse(&r, n->value.s, t->rank);
    return spmd_fits(t, sh) ? sh : NULL;
}

// In dimensions it leaves open a value lies as it does, or as is planned.
static const Shards *keep_open(Spmd *s, const Shards *sh, ValueId v, ValueId result) {
    const Piece *made = move_made(s, v);
    const Shards *plan = s->manual ? NULL : s->plan[result], *from = made ? made->shards : plan;
    const HloType *t = hlo_value_type(s->h, result);
    if (!sh->open || !from)
        return sh;
    Cut cuts[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < sh->rank; i++)
        cuts[i] = shard_cut(sh, i);
    for (uint32_t i = 0; i < sh->rank; i++) {
        Cut c = shard_cut(from, i), before = cuts[i];
        if (!(sh->open >> i & 1) || before.parts > 1 || c.parts <= 1 || t->dims[i] % c.parts)
            continue;
        cuts[i] = c;
        if (!shard_cuts_fit(s->c->scratch, cuts, sh->rank, s->devices))
            cuts[i] = before;
    }
    return shard_make(s->c->scratch, sh->rank, s->devices, cuts, shard_cut(sh, sh->rank), sh->combine);
}

// To lie this way all terms of a value, which nobody else reads, would be summed everywhere.
static bool sums_all(Spmd *s, ValueId v, const Shards *sh) {
    if (spmd_free_terms(s, v).parts <= 1)
        return false;
    Step steps[WAY_STEPS_MAX];
    uint32_t n = way_steps(s, move_made(s, v)->shards, sh, steps);
    for (uint32_t i = 0; i < n; i++)
        if (steps[i].kind != STEP_REDUCE && steps[i].kind != STEP_CUT)
            return false;
    return true;
}

static void copy_constraint(Spmd *s, const HloOp *op) {
    ValueId v = hlo_operand(s->h, op, 0);
    const Shards *sh = spmd_constraint(s, op);
    if (!sh) {
        move_set(s, op->results, s->forms.at[v]);
        return;
    }
    sh = keep_open(s, sh, v, op->results);
    if (sums_all(s, v, sh)) { // whoever reads it may want only a part of the sum
        move_set(s, op->results, s->forms.at[v]);
        return;
    }
    ValueId part = move_part(s, v, sh);
    move_set_piece(s, op->results, sh, part);
}

// A copy of the op with the operands given. Regions follow.
OpId spmd_clone(Spmd *s, const HloOp *op, const ValueId *operands, const TypeId *types) {
    assert(types || !op->nresults);
    OpId copy = hlo_op(s->h, op->code, op->loc, op->noperands, operands, op->nresults, types);
    HloOp *made = hlo_at(s->h, copy);
    made->attrs = op->attrs; // contents are never changed in place once shared
    made->extra = op->extra;
    made->nextra = op->nextra;
    return copy;
}

// args: how the region's arguments lie, and what it returns; NULL: all whole.
void spmd_copy_region(Spmd *s, OpId copy, RegionId from, const Shards *const *args) {
    Hlo *h = s->h;
    HloRegion src = h->regions.at[from];
    TypeId *types = ARENA_NEWN(s->c->scratch, TypeId, src.nargs + 1);
    for (uint32_t i = 0; i < src.nargs; i++) {
        TypeId whole = h->values.at[src.args + i].type;
        types[i] = args && args[i] ? move_part_type(s, whole, args[i]) : whole;
    }
    RegionId dst = hlo_op_add_region(h, copy, src.nargs, types);
    RegionId outer = s->to;
    uint32_t mark = s->undo.n;
    s->to = dst;
    s->depth++;
    for (uint32_t i = 0; i < src.nargs; i++)
        move_set_piece(s, src.args + i, args ? args[i] : NULL, h->regions.at[dst].args + i);
    copy_ops(s, from);
    HloOp ret = *hlo_at(h, src.ops.at[src.ops.n - 1]);
    bool carries = args && ret.noperands == src.nargs && hlo_at(h, copy)->nregions == 2; // a loop's body, not its condition
    ValueId *values = ARENA_NEWN(s->c->scratch, ValueId, ret.noperands + 1);
    for (uint32_t i = 0; i < ret.noperands; i++) {
        ValueId v = hlo_operand(h, &ret, i);
        values[i] = carries && args[i] ? move_part(s, v, args[i]) : move_whole(s, v);
    }
    OpId back = spmd_clone(s, &ret, values, NULL);
    hlo_region_push(h, dst, back);
    assert(s->undo.n >= mark && s->to == dst);
    while (s->undo.n > mark) {
        Undo u = s->undo.at[--s->undo.n];
        s->forms.at[u.value] = u.form;
    }
    s->depth--;
    s->to = outer;
}

// On whole values.
static void copy_plain(Spmd *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    ValueId *operands = ARENA_NEWN(s->c->scratch, ValueId, op.noperands + 1);
    TypeId *types = ARENA_NEWN(s->c->scratch, TypeId, op.nresults + 1u);
    for (uint32_t i = 0; i < op.noperands; i++)
        operands[i] = move_whole(s, hlo_operand(h, &op, i));
    for (uint32_t i = 0; i < op.nresults; i++)
        types[i] = h->values.at[op.results + i].type;
    for (uint32_t r = 0; r < op.nregions; r++)
        spmd_note_outer(s, h->op_regions.at[op.regions + r], hlo_row(&op)->cls == HC_CTRL);
    OpId copy = spmd_clone(s, &op, operands, types);
    for (uint32_t r = 0; r < op.nregions; r++)
        spmd_copy_region(s, copy, h->op_regions.at[op.regions + r], NULL);
    hlo_region_push(h, s->to, copy);
    for (uint32_t i = 0; i < op.nresults; i++)
        move_set(s, op.results + i, (Form){.whole = hlo_at(h, copy)->results + i});
}

// A loop whose body says that what it returns are terms carries them as such: they are combined behind it, once.
static const Shards *carried_terms(Spmd *s, const HloOp *loop, uint32_t i) {
    const HloRegion *body = &s->h->regions.at[s->h->op_regions.at[loop->regions + 1]];
    OpId def = s->h->values.at[hlo_operand(s->h, hlo_at(s->h, body->ops.at[body->ops.n - 1]), i)].def;
    const HloOp *op = def ? hlo_at(s->h, def) : NULL;
    const Shards *sh = op && (op->code == HLO_SDY_SHARDING_CONSTRAINT || op->code == HLO_SDY_RESHARD) ? spmd_constraint(s, op) : NULL;
    return sh && shard_has_terms(sh) ? sh : NULL;
}

// What a loop carries lies as the plan says, all the way round.
static void copy_while(Spmd *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    assert(op.nregions == 2 && op.noperands == op.nresults);
    ValueId *operands = ARENA_NEWN(s->c->scratch, ValueId, op.noperands + 1);
    TypeId *types = ARENA_NEWN(s->c->scratch, TypeId, op.nresults + 1u);
    const Shards **lie = ARENA_NEWN(s->c->scratch, const Shards *, op.nresults + 1u);
    for (uint32_t i = 0; i < op.nresults; i++) {
        TypeId whole = h->values.at[op.results + i].type;
        lie[i] = s->manual ? NULL : carried_terms(s, &op, i);
        if (!lie[i] && !s->manual)
            lie[i] = s->plan[op.results + i];
        operands[i] = lie[i] ? move_part(s, hlo_operand(h, &op, i), lie[i]) : move_whole(s, hlo_operand(h, &op, i));
        types[i] = lie[i] ? move_part_type(s, whole, lie[i]) : whole;
    }
    for (uint32_t r = 0; r < op.nregions; r++)
        spmd_note_outer(s, h->op_regions.at[op.regions + r], true);
    OpId copy = spmd_clone(s, &op, operands, types);
    for (uint32_t r = 0; r < op.nregions; r++)
        spmd_copy_region(s, copy, h->op_regions.at[op.regions + r], lie);
    hlo_region_push(h, s->to, copy);
    for (uint32_t i = 0; i < op.nresults; i++)
        move_set_piece(s, op.results + i, lie[i], hlo_at(h, copy)->results + i);
}

// Each result lies as its operand does.
static void copy_barrier(Spmd *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    assert(op.noperands == op.nresults);
    ValueId *operands = ARENA_NEWN(s->c->scratch, ValueId, op.noperands + 1);
    TypeId *types = ARENA_NEWN(s->c->scratch, TypeId, op.nresults + 1u);
    const Shards **lie = ARENA_NEWN(s->c->scratch, const Shards *, op.nresults + 1u);
    for (uint32_t i = 0; i < op.nresults; i++) {
        const Piece *made = move_made(s, hlo_operand(h, &op, i));
        lie[i] = made ? made->shards : NULL;
        operands[i] = made ? made->value : move_whole(s, hlo_operand(h, &op, i));
        types[i] = h->values.at[operands[i]].type;
    }
    OpId copy = spmd_clone(s, &op, operands, types);
    hlo_region_push(h, s->to, copy);
    for (uint32_t i = 0; i < op.nresults; i++)
        move_set_piece(s, op.results + i, lie[i], hlo_at(h, copy)->results + i);
}

// Values of outside that a region wants whole are gathered before it, once. Where it may work in parts
// (a loop's or a branch's), only for ops that cannot.
void spmd_note_outer(Spmd *s, RegionId region, bool in_parts) {
    Hlo *h = s->h;
    for (uint32_t i = 0; i < h->regions.at[region].ops.n; i++) {
        const HloOp op = *hlo_at(h, h->regions.at[region].ops.at[i]);
        Rule rule;
        bool skip = op.code == HLO_SDY_MANUAL_COMPUTATION || op.code == HLO_RETURN ||
                    (in_parts && (op.code == HLO_WHILE || rule_of(s->c->scratch, h, &op, &rule)));
        for (uint32_t k = 0; k < op.noperands && !skip; k++) {
            ValueId v = hlo_operand(h, &op, k);
            if (s->forms.at[v].pieces)
                move_whole(s, v);
        }
        for (uint32_t r = 0; r < op.nregions; r++)
            spmd_note_outer(s, h->op_regions.at[op.regions + r], in_parts && hlo_row(&op)->cls == HC_CTRL);
    }
}

// --- calls to the host -------------------------------------------------------------------------

static void call_once(Spmd *s, OpId call) {
    HloOp *op = hlo_at(s->h, call);
    size_t n = hlo_row(op)->nattrs;
    HloAttr *attrs = ARENA_NEWN(s->h->arena, HloAttr, n); // the old ones are shared
    memcpy(attrs, op->attrs, n * sizeof *attrs);
    op->attrs = attrs;
    HloAttr *config = hlo_attr_slot(s->h, call, AK_BACKEND_CONFIG);
    const char *number = config->kind == HA_STR ? config->s : "";
    const char *text = arena_printf(s->h->arena, "%s once", number);
    *config = (HloAttr){.kind = HA_STR, .s = text, .n = (uint32_t)strlen(text)};
}

// A call to the host that works on whole values is made by the first device, which sends what came
// back to the others.
static void copy_host_call(Spmd *s, OpId id) {
    Hlo *h = s->h;
    copy_plain(s, id);
    HloOp op = *hlo_at(h, id);
    if (s->devices == 1 || s->manual)
        return;
    const HloRegion *to = &h->regions.at[s->to];
    call_once(s, to->ops.at[to->ops.n - 1]);
    for (uint32_t i = 0; i < op.nresults; i++) {
        Form f = s->forms.at[op.results + i];
        if (hlo_value_type(h, f.whole)->kind != HT_TENSOR)
            continue;
        int64_t *all = ARENA_NEWN(h->arena, int64_t, s->devices);
        for (uint32_t d = 0; d < s->devices; d++)
            all[d] = d;
        OpId send = move_op(s, HLO_COLLECTIVE_BROADCAST, 1, &f.whole, h->values.at[f.whole].type);
        *hlo_attr_slot(h, send, AK_CHANNEL_ID) = (HloAttr){.kind = HA_INT, .i = 1};
        *hlo_attr_slot(h, send, AK_HAS_DYNAMIC_ROOT) = (HloAttr){.kind = HA_BOOL};
        *hlo_attr_slot(h, send, AK_REPLICA_GROUPS) =
            (HloAttr){.kind = HA_INTS2, .n = s->devices, .cols = s->devices, .ints = all};
        move_set(s, op.results + i, (Form){.whole = move_result(s, send)});
    }
}

static bool is_host_call(const HloOp *op) {
    return op->code == HLO_CUSTOM_CALL && !strcmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), HLO_HOST_CALL);
}

// All but the last op of a region, its return.
static void copy_ops(Spmd *s, RegionId from) {
    Hlo *h = s->h;
    for (uint32_t i = 0; i + 1 < h->regions.at[from].ops.n; i++) {
        OpId id = h->regions.at[from].ops.at[i];
        const HloOp op = *hlo_at(h, id);
        uint32_t depth;
        s->op = id;
        s->loc = op.loc;
        switch (op.code) {
        case HLO_SDY_MANUAL_COMPUTATION:
            copy_manual(s, id);
            break;
        case HLO_SDY_SHARDING_CONSTRAINT:
        case HLO_SDY_RESHARD:
            copy_constraint(s, &op);
            break;
        case HLO_SDY_PROPAGATION_BARRIER:
            move_set(s, op.results, s->forms.at[hlo_operand(h, &op, 0)]);
            break;
        case HLO_SDY_SHARDING_GROUP:
            break;
        case HLO_WHILE:
            copy_while(s, id);
            break;
        case HLO_OPTIMIZATION_BARRIER:
            copy_barrier(s, id);
            break;
        default:
            if (is_host_call(&op))
                copy_host_call(s, id);
            else if ((depth = spmd_lazy_depth(s, &op)))
                move_set(s, op.results, (Form){.lazy = id, .depth = depth});
            else if (!spmd_in_parts(s, id))
                copy_plain(s, id);
        }
    }
}

// --- the signature -----------------------------------------------------------------------------

static const Shards *attr_shards(Spmd *s, const HloNamed *attrs, uint32_t n, TypeId type) {
    const HloNamed *a = attrs ? hlo_named_find(attrs, n, "sdy.sharding") : NULL;
    if (!a || a->value.kind != HA_OPAQUE || hlo_type(s->h, type)->kind != HT_TENSOR)
        return NULL;
    ShardRead r = spmd_reader(s, NULL);
    return shard_parse(&r, a->value.s, hlo_type(s->h, type)->rank);
}

// An argument without a sharding lies as the first manual computation wants it.
static void wishes(Spmd *s, RegionId body, const Shards **args) {
    Hlo *h = s->h;
    HloRegion r = h->regions.at[body];
    for (uint32_t i = 0; i < r.ops.n; i++) {
        const HloOp op = *hlo_at(h, r.ops.at[i]);
        if (op.code != HLO_SDY_MANUAL_COMPUTATION)
            continue;
        s->op = r.ops.at[i];
        ShardRead read = spmd_reader(s, NULL);
        AxisSet axes = shard_parse_axes(&read, spmd_opaque(s, &op, "manual_axes"));
        const Shards **in = spmd_shards_list(s, &op, "in_shardings", &axes, op.noperands,
                                        h->operands.at + op.operands);
        for (uint32_t k = 0; k < op.noperands; k++) {
            ValueId v = hlo_operand(h, &op, k);
            if (v >= r.args && v < r.args + r.nargs && !args[v - r.args])
                args[v - r.args] = in[k];
        }
    }
}

static const char *text_of(Spmd *s, const Shards *sh) {
    for (uint32_t i = 0; i < s->told.n; i++)
        if (shard_same(s->told.at[i].shards, sh))
            return s->told.at[i].text;
    const char *text = shard_text(sh, s->h->arena);
    VEC_PUSH(s->c->scratch, &s->told, ((Told){sh, text}));
    return text;
}

// attrs[i] with the sharding's text added.
static void tell(Spmd *s, const HloNamed **attrs, uint32_t *n, const Shards *sh) {
    const char *text = text_of(s, sh);
    if (!*text)
        return;
    HloNamed *list = ARENA_NEWN(s->h->arena, HloNamed, *n + 1);
    if (*n)
        memcpy(list, *attrs, *n * sizeof *list);
    list[(*n)++] = (HloNamed){
        "otrn.sharding", {.kind = HA_STR, .s = text, .n = (uint32_t)strlen(text)}};
    *attrs = list;
}

typedef struct Attrs { // of arguments or results, to be changed
    const HloNamed **at;
    uint32_t *n;
} Attrs;

static Attrs attrs_dup(Spmd *s, const HloNamed **at, const uint32_t *n, uint32_t count) {
    Attrs a = {ARENA_NEWN(s->h->arena, const HloNamed *, count + 1),
               ARENA_NEWN(s->h->arena, uint32_t, count + 1)};
    for (uint32_t i = 0; at && i < count; i++) {
        a.at[i] = at[i];
        a.n[i] = n[i];
    }
    return a;
}

// A result nobody said anything about lies as the plan has it when that only takes cutting, else as it was made.
static const Shards *open_result(const Spmd *s, ValueId v) {
    const Piece *made = move_made(s, v);
    const Shards *plan = s->plan[v];
    for (uint32_t i = 0; plan && made && i < plan->rank; i++)
        if (made->shards->cut[i].parts > 1 &&
            !shard_cut_same(shard_cut(made->shards, i), shard_cut(plan, i), s->devices))
            plan = NULL;
    return plan ? plan : made ? shard_without_terms(made->shards, s->c->scratch) : NULL;
}

void spmd_said(Spmd *s, const HloFunc *f, const Shards **args, const Shards **results) {
    Hlo *h = s->h;
    ValueId first = h->regions.at[f->body].args;
    s->loc = f->loc;
    for (uint32_t i = 0; i < f->nargs; i++)
        args[i] = f->arg_attrs ? attr_shards(s, f->arg_attrs[i], f->narg_attrs[i], h->values.at[first + i].type) : NULL;
    wishes(s, f->body, args);
    s->op = 0;
    for (uint32_t i = 0; i < f->nresults; i++)
        results[i] = f->res_attrs ? attr_shards(s, f->res_attrs[i], f->nres_attrs[i], f->result_types[i]) : NULL;
}

static void copy_main(Spmd *s, HloFunc *f) {
    Hlo *h = s->h;
    RegionId from = f->body;
    HloRegion src = h->regions.at[from];
    HloOp ret = *hlo_at(h, src.ops.at[src.ops.n - 1]);
    Attrs in = attrs_dup(s, f->arg_attrs, f->narg_attrs, f->nargs);
    Attrs out = attrs_dup(s, f->res_attrs, f->nres_attrs, f->nresults);
    const Shards **args = ARENA_NEWN(s->c->scratch, const Shards *, f->nargs + 1);
    TypeId *types = ARENA_NEWN(h->arena, TypeId, f->nargs + f->nresults + 1);
    const Shards **results = ARENA_NEWN(s->c->scratch, const Shards *, f->nresults + 1);
    spmd_said(s, f, args, results);
    assert(src.nargs == f->nargs && ret.noperands == f->nresults);
    for (uint32_t i = 0; i < f->nargs; i++) {
        TypeId whole = h->values.at[src.args + i].type;
        types[i] = args[i] ? move_part_type(s, whole, args[i]) : whole;
    }
    s->to = hlo_region(h, 0, f->nargs, types);
    for (uint32_t i = 0; i < f->nargs; i++) {
        ValueId v = h->regions.at[s->to].args + i;
        move_set_piece(s, src.args + i, args[i], v);
        if (args[i] && !shard_is_whole(args[i]))
            tell(s, &in.at[i], &in.n[i], args[i]);
    }
    spmd_plan(s, from, args, results);
    spmd_gather_terms(s, from);
    users_make(&s->users, h, s->c->scratch, from);
    copy_ops(s, from);
    s->op = 0;
    ValueId *values = ARENA_NEWN(s->c->scratch, ValueId, ret.noperands + 1);
    for (uint32_t i = 0; i < ret.noperands; i++) {
        ValueId v = hlo_operand(h, &ret, i);
        const Shards *sh = results[i] ? results[i] : open_result(s, v);
        values[i] = sh ? move_part(s, v, sh) : move_whole(s, v);
        types[f->nargs + i] = h->values.at[values[i]].type;
        if (sh)
            tell(s, &out.at[i], &out.n[i], sh);
    }
    hlo_region_push(h, s->to, spmd_clone(s, &ret, values, NULL));
    f->body = s->to;
    f->result_types = types + f->nargs;
    f->arg_attrs = in.at;
    f->narg_attrs = in.n;
    f->res_attrs = out.at;
    f->nres_attrs = out.n;
}

uint32_t spmd_partitions(const Hlo *h) {
    const HloNamed *n = hlo_named_find(h->extra, h->nextra, "mhlo.num_partitions");
    return n && n->value.kind == HA_INT && n->value.i > 1 && n->value.i <= SHARD_DEVICES_MAX
               ? (uint32_t)n->value.i
               : 1;
}

static bool speaks_of_shards(const Hlo *h) {
    if (hlo_named_find(h->extra, h->nextra, "sdy.meshes"))
        return true;
    for (OpId id = 1; id < h->ops.n; id++)
        if ((hlo_row(hlo_at(h, id))->dialect == HD_SDY && hlo_at(h, id)->code) ||
            (is_host_call(hlo_at(h, id)) && spmd_partitions(h) > 1))
            return true;
    return false;
}

void pass_spmd(Compile *c) {
    Hlo *h = c->hlo;
    if (!speaks_of_shards(h))
        return;
    Spmd s = {.c = c, .h = h, .devices = spmd_partitions(h)};
    VEC_RESERVE(c->scratch, &s.forms, h->values.n);
    memset(s.forms.at, 0, h->values.n * sizeof *s.forms.at);
    s.forms.n = h->values.n;
    copy_main(&s, hlo_main(h));
    assert(!s.depth && !s.manual && !s.undo.n);
}
