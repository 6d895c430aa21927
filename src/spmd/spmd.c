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
#include <string.h>

#include "pass/walk.h"
#include "spmd/spmd.h"

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
    if (!shard_cuts_fit(cuts, out->rank, s->devices))
        return NULL;
    *part = made->value;
    return shard_make(s->c->scratch, out->rank, s->devices, cuts, (Cut){1, NULL}, SHARD_ADD);
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
const Shards *spmd_constraint(Spmd *s, const HloOp *op) {
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
        if (!shard_cuts_fit(cuts, sh->rank, s->devices))
            cuts[i] = before;
    }
    return shard_make(s->c->scratch, sh->rank, s->devices, cuts, shard_cut(sh, sh->rank), sh->combine);
}

static void copy_constraint(Spmd *s, const HloOp *op) {
    ValueId v = hlo_operand(s->h, op, 0);
    const Shards *sh = spmd_constraint(s, op);
    if (!sh) {
        move_set(s, op->results, s->forms.at[v]);
        return;
    }
    sh = keep_open(s, sh, v, op->results);
    ValueId part = move_part(s, v, sh);
    move_set_piece(s, op->results, sh, part);
}

static void note_outer(Spmd *s, RegionId region, bool in_parts);

// A copy of the op with the operands given. Regions follow.
static OpId clone(Spmd *s, const HloOp *op, const ValueId *operands, const TypeId *types) {
    OpId copy = hlo_op(s->h, op->code, op->loc, op->noperands, operands, op->nresults, types);
    HloOp *made = hlo_at(s->h, copy);
    made->attrs = op->attrs; // contents are never changed in place once shared
    made->extra = op->extra;
    made->nextra = op->nextra;
    return copy;
}

// args: how the region's arguments lie, and what it returns; NULL: all whole.
static void copy_region_of(Spmd *s, OpId copy, RegionId from, const Shards *const *args) {
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
    bool carries = args && ret.noperands == src.nargs; // a loop's body, not its condition
    ValueId *values = ARENA_NEWN(s->c->scratch, ValueId, ret.noperands + 1);
    for (uint32_t i = 0; i < ret.noperands; i++) {
        ValueId v = hlo_operand(h, &ret, i);
        values[i] = carries && args[i] ? move_part(s, v, args[i]) : move_whole(s, v);
    }
    OpId back = clone(s, &ret, values, NULL);
    hlo_region_push(h, dst, back);
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
        note_outer(s, h->op_regions.at[op.regions + r], hlo_row(&op)->cls == HC_CTRL);
    OpId copy = clone(s, &op, operands, types);
    for (uint32_t r = 0; r < op.nregions; r++)
        copy_region_of(s, copy, h->op_regions.at[op.regions + r], NULL);
    hlo_region_push(h, s->to, copy);
    for (uint32_t i = 0; i < op.nresults; i++)
        move_set(s, op.results + i, (Form){.whole = hlo_at(h, copy)->results + i});
}

// What a loop carries lies as the plan says, all the way round.
static void copy_while(Spmd *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    ValueId *operands = ARENA_NEWN(s->c->scratch, ValueId, op.noperands + 1);
    TypeId *types = ARENA_NEWN(s->c->scratch, TypeId, op.nresults + 1u);
    const Shards **lie = ARENA_NEWN(s->c->scratch, const Shards *, op.nresults + 1u);
    for (uint32_t i = 0; i < op.nresults; i++) {
        TypeId whole = h->values.at[op.results + i].type;
        lie[i] = s->manual ? NULL : s->plan[op.results + i];
        operands[i] = lie[i] ? move_part(s, hlo_operand(h, &op, i), lie[i]) : move_whole(s, hlo_operand(h, &op, i));
        types[i] = lie[i] ? move_part_type(s, whole, lie[i]) : whole;
    }
    for (uint32_t r = 0; r < op.nregions; r++)
        note_outer(s, h->op_regions.at[op.regions + r], true);
    OpId copy = clone(s, &op, operands, types);
    for (uint32_t r = 0; r < op.nregions; r++)
        copy_region_of(s, copy, h->op_regions.at[op.regions + r], lie);
    hlo_region_push(h, s->to, copy);
    for (uint32_t i = 0; i < op.nresults; i++)
        move_set_piece(s, op.results + i, lie[i], hlo_at(h, copy)->results + i);
}

// Each result lies as its operand does.
static void copy_barrier(Spmd *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    ValueId *operands = ARENA_NEWN(s->c->scratch, ValueId, op.noperands + 1);
    TypeId *types = ARENA_NEWN(s->c->scratch, TypeId, op.nresults + 1u);
    const Shards **lie = ARENA_NEWN(s->c->scratch, const Shards *, op.nresults + 1u);
    for (uint32_t i = 0; i < op.nresults; i++) {
        const Piece *made = move_made(s, hlo_operand(h, &op, i));
        lie[i] = made ? made->shards : NULL;
        operands[i] = made ? made->value : move_whole(s, hlo_operand(h, &op, i));
        types[i] = h->values.at[operands[i]].type;
    }
    OpId copy = clone(s, &op, operands, types);
    hlo_region_push(h, s->to, copy);
    for (uint32_t i = 0; i < op.nresults; i++)
        move_set_piece(s, op.results + i, lie[i], hlo_at(h, copy)->results + i);
}

// Values of outside that a region wants whole are gathered before it, once. Where it may work in parts
// (a loop's or a branch's), only for ops that cannot.
static void note_outer(Spmd *s, RegionId region, bool in_parts) {
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
            note_outer(s, h->op_regions.at[op.regions + r], in_parts && hlo_row(&op)->cls == HC_CTRL);
    }
}

// --- ops in parts ------------------------------------------------------------------------------

typedef struct Work { // an op with a rule, while it is decided how its factors are cut
    Spmd *s;
    const HloOp *op;
    Rule rule;
    Cut *cuts; // of factors
} Work;

static ValueId work_value(const Work *w, uint32_t t) {
    return t < w->op->noperands ? hlo_operand(w->s->h, w->op, t) : w->op->results + (t - w->op->noperands);
}

// Cuts a factor unless it is cut already, does not fit the others, or some tensor's parts would not be equal.
static void work_cut(Work *w, int f, Cut c) {
    if (f < 0 || c.parts <= 1 || w->cuts[f].parts > 1)
        return;
    for (uint32_t t = 0; t < w->rule.ntensors; t++) {
        const HloType *type = hlo_value_type(w->s->h, work_value(w, t));
        for (uint32_t d = 0; d < type->rank; d++)
            if (rule_factor(&w->rule, t, d) == f && (!type->dims[d] || type->dims[d] % c.parts))
                return;
    }
    w->cuts[f] = c;
    if (!shard_cuts_fit(w->cuts, w->rule.nfactors, w->s->devices))
        w->cuts[f] = (Cut){1, NULL};
}

// How often the operands lie cut this way along a factor.
static uint32_t work_lie(const Work *w, int f, Cut c) {
    uint32_t n = 0;
    for (uint32_t t = 0; t < w->op->noperands; t++) {
        const Piece *p = move_made(w->s, work_value(w, t));
        for (uint32_t d = 0; p && d < p->shards->rank; d++)
            n += rule_factor(&w->rule, t, d) == f && shard_cut_same(shard_cut(p->shards, d), c, w->s->devices);
    }
    return n;
}

static uint64_t work_bytes(const Work *w, uint32_t t) { return hlo_type_bytes(hlo_value_type(w->s->h, work_value(w, t))); }

// First cuts that cost nothing: those of the result that an operand has, and those that all operands of a sum have.
// Then those of the operands, the largest first, which would have to be gathered; then the rest of the result's.
static void work_decide(Work *w) {
    Spmd *s = w->s;
    uint32_t nops = w->op->noperands, first = nops;
    const Shards *plan = s->manual ? NULL : s->plan[w->op->results];
    for (uint32_t d = 0; plan && d < plan->rank; d++) {
        int f = rule_factor(&w->rule, first, d);
        if (plan->parts[d] > 1 && f >= 0 && work_lie(w, f, shard_cut(plan, d)))
            work_cut(w, f, shard_cut(plan, d));
    }
    for (int pass = 0; pass < 2; pass++) {
        uint64_t below = UINT64_MAX;
        for (uint32_t k = 0; k < nops; k++) { // in order of size, without sorting: few operands
            uint32_t t = nops;
            for (uint32_t i = 0; i < nops; i++)
                if (work_bytes(w, i) < below && (t == nops || work_bytes(w, i) > work_bytes(w, t)))
                    t = i;
            if (t == nops)
                break;
            below = work_bytes(w, t);
            for (uint32_t i = 0; i < nops; i++) {
                const Piece *p = work_bytes(w, i) == below ? move_made(s, work_value(w, i)) : NULL;
                for (uint32_t d = 0; p && d < p->shards->rank; d++) {
                    int f = rule_factor(&w->rule, i, d);
                    Cut c = shard_cut(p->shards, d);
                    bool shared = f >= 0 && w->rule.kind[f] != FACTOR_KEEP && work_lie(w, f, c) > 1;
                    if (pass || shared)
                        work_cut(w, f, c);
                }
            }
        }
    }
    for (uint32_t d = 0; plan && d < plan->rank; d++)
        work_cut(w, rule_factor(&w->rule, first, d), shard_cut(plan, d));
}

static const Shards *work_shards(const Work *w, uint32_t t) {
    static const ShardCombine combine[] = {[FACTOR_ADD] = SHARD_ADD, [FACTOR_MAX] = SHARD_MAX, [FACTOR_MIN] = SHARD_MIN};
    Arena *a = w->s->c->scratch;
    uint32_t rank = hlo_value_type(w->s->h, work_value(w, t))->rank;
    Cut dims[OTRN_MAX_RANK], terms = {1, NULL};
    ShardCombine how = SHARD_ADD;
    for (uint32_t d = 0; d < rank; d++) {
        int f = rule_factor(&w->rule, t, d);
        dims[d] = f < 0 ? (Cut){1, NULL} : w->cuts[f];
    }
    bool has_terms = t >= w->op->noperands || t < w->rule.ninto;
    for (uint32_t f = 0; has_terms && f < w->rule.nfactors; f++)
        if (w->rule.kind[f] != FACTOR_KEEP && w->cuts[f].parts > 1) {
            terms = shard_cut_both(a, terms, w->cuts[f], w->s->devices);
            how = combine[w->rule.kind[f]];
        }
    return shard_make(a, rank, w->s->devices, dims, terms, how);
}

// Attributes that speak of sizes follow the parts: in each of the dimensions that stayed full.
static void sizes_follow(Spmd *s, OpId copy, HloAttrKey key, const HloType *whole, const HloType *part) {
    HloOp *op = hlo_at(s->h, copy);
    size_t n = hlo_row(op)->nattrs;
    HloAttr *attrs = ARENA_NEWN(s->h->arena, HloAttr, n); // the old ones are shared
    memcpy(attrs, op->attrs, n * sizeof *attrs);
    op->attrs = attrs;
    HloAttr *slot = hlo_attr_slot(s->h, copy, key);
    int64_t *sizes = ARENA_NEWN(s->h->arena, int64_t, slot->n + 1);
    for (uint32_t i = 0; i < slot->n; i++)
        sizes[i] = slot->ints[i] == whole->dims[i] ? part->dims[i] : slot->ints[i];
    slot->ints = sizes;
}

static void attrs_follow(Spmd *s, OpId copy, const HloOp *op) {
    if (!op->noperands)
        return;
    const HloType *whole = hlo_value_type(s->h, hlo_operand(s->h, op, 0));
    const HloType *part = hlo_value_type(s->h, hlo_operand(s->h, hlo_at(s->h, copy), 0));
    if (op->code == HLO_SLICE)
        sizes_follow(s, copy, AK_LIMIT_INDICES, whole, part);
    else if (op->code == HLO_DYNAMIC_SLICE || op->code == HLO_GATHER)
        sizes_follow(s, copy, AK_SLICE_SIZES, whole, part);
}

// Numbers begin where the device's part does.
static ValueId iota_shift(Spmd *s, const HloOp *op, ValueId v, const Shards *sh) {
    uint32_t dim = (uint32_t)hlo_int(op, AK_IOTA_DIMENSION, 0);
    TypeId type = s->h->values.at[v].type;
    const HloType *t = hlo_type(s->h, type);
    if (sh->parts[dim] == 1)
        return v;
    int dtype = t->dtype;
    ValueId begin = move_offset(s, sh, dim, t->dims[dim]);
    begin = move_result(s, move_op(s, HLO_CONVERT, 1, &begin, hlo_type_tensor(s->h, dtype, 0, NULL)));
    return move_result(s, move_op(s, HLO_ADD, 2, (ValueId[]){v, move_splat(s, begin, type)}, type));
}

// Indices into a dimension of which the device has a part. A scatter drops what is outside; for a gather they are
// kept inside, and *inside says which were.
static ValueId indices_shift(Work *w, ValueId v, ValueId *inside) {
    Spmd *s = w->s;
    Cut c = w->cuts[w->rule.picked];
    uint32_t d = 0;
    while (rule_factor(&w->rule, 0, d) != w->rule.picked)
        d++;
    int64_t rows = hlo_value_type(s->h, work_value(w, 0))->dims[d], part = rows / c.parts;
    TypeId type = s->h->values.at[v].type;
    HloType t = *hlo_type(s->h, type);
    ValueId zero = move_number(s, 0, t.dtype);
    if (inside) // as a gather does, before anything else
        v = move_result(s, move_op(s, HLO_CLAMP, 3, (ValueId[]){zero, v, move_number(s, (int32_t)(rows - 1), t.dtype)}, type));
    const Shards *line = shard_make(s->c->scratch, 1, s->devices, &c, (Cut){1, NULL}, SHARD_ADD);
    ValueId begin = move_offset(s, line, 0, part);
    begin = move_result(s, move_op(s, HLO_CONVERT, 1, &begin, hlo_type_tensor(s->h, t.dtype, 0, NULL)));
    v = move_result(s, move_op(s, HLO_SUBTRACT, 2, (ValueId[]){v, move_splat(s, begin, type)}, type));
    if (!inside)
        return v;
    ValueId last = move_number(s, (int32_t)(part - 1), t.dtype);
    ValueId kept = move_result(s, move_op(s, HLO_CLAMP, 3, (ValueId[]){zero, v, last}, type));
    OpId same = move_op(s, HLO_COMPARE, 2, (ValueId[]){kept, v}, hlo_type_tensor(s->h, DT_I1, t.rank, t.dims));
    *hlo_attr_slot(s->h, same, AK_COMPARISON_DIRECTION) = (HloAttr){.kind = HA_ENUM, .i = CMP_EQ};
    *hlo_attr_slot(s->h, same, AK_COMPARE_TYPE) = (HloAttr){.kind = HA_ENUM, .i = CMPT_NOTYPE};
    *inside = move_result(s, same);
    return kept;
}

// Rows that other devices have count as 0 here: the rows picked are terms.
static OpId picked_terms(Work *w, OpId gather, ValueId inside) {
    Spmd *s = w->s;
    Hlo *h = s->h;
    ValueId v = hlo_at(h, gather)->results;
    TypeId type = h->values.at[v].type;
    HloType t = *hlo_type(h, type), it = *hlo_value_type(h, inside);
    uint32_t nw;
    const int64_t *window = hlo_ints(w->op, AK_OFFSET_DIMS, &nw);
    int64_t vector = hlo_int(w->op, AK_INDEX_VECTOR_DIM, -1), dims[OTRN_MAX_RANK], places[OTRN_MAX_RANK];
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < it.rank; i++)
        if (i != vector)
            dims[n++] = it.dims[i];
    for (uint32_t i = 0; i < t.rank; i++) {
        bool is_window = false;
        for (uint32_t k = 0; k < nw; k++)
            is_window |= window[k] == i;
        if (!is_window && at < n)
            places[at++] = i;
    }
    inside = move_result(s, move_op(s, HLO_RESHAPE, 1, &inside, hlo_type_tensor(h, DT_I1, (int)n, dims)));
    OpId all = move_op(s, HLO_BROADCAST_IN_DIM, 1, &inside, hlo_type_tensor(h, DT_I1, t.rank, t.dims));
    *hlo_attr_slot(h, all, AK_BROADCAST_DIMENSIONS) = (HloAttr){.kind = HA_INTS, .n = n, .ints = hlo_ints_dup(h, places, n)};
    ValueId zeros = move_splat(s, move_number(s, 0, t.dtype), type);
    return move_op(s, HLO_SELECT, 3, (ValueId[]){move_result(s, all), v, zeros}, type);
}

// The op with its factors cut as decided.
static OpId work_emit(Work *w) {
    Spmd *s = w->s;
    Hlo *h = s->h;
    const HloOp op = *w->op;
    ValueId *operands = ARENA_NEWN(s->c->scratch, ValueId, op.noperands + 1);
    TypeId *types = ARENA_NEWN(s->c->scratch, TypeId, op.nresults + 1u);
    for (uint32_t i = 0; i < op.noperands; i++)
        operands[i] = move_part(s, hlo_operand(h, &op, i), work_shards(w, i));
    for (uint32_t i = 0; i < op.nresults; i++)
        types[i] = move_part_type(s, h->values.at[op.results + i].type, work_shards(w, op.noperands + i));
    for (uint32_t r = 0; r < op.nregions; r++)
        note_outer(s, h->op_regions.at[op.regions + r], false);
    bool picks = w->rule.picked >= 0 && w->cuts[w->rule.picked].parts > 1;
    ValueId inside = 0;
    if (picks)
        operands[1] = indices_shift(w, operands[1], op.code == HLO_GATHER ? &inside : NULL);
    OpId copy = clone(s, &op, operands, types);
    attrs_follow(s, copy, &op);
    for (uint32_t r = 0; r < op.nregions; r++)
        copy_region_of(s, copy, h->op_regions.at[op.regions + r], NULL);
    hlo_region_push(h, s->to, copy);
    return inside ? picked_terms(w, copy, inside) : copy;
}

static bool work_begin(Work *w, Spmd *s, const HloOp *op) {
    *w = (Work){.s = s, .op = op};
    if (!op->nresults || !rule_of(s->c->scratch, s->h, op, &w->rule))
        return false;
    w->cuts = ARENA_NEWN(s->c->scratch, Cut, w->rule.nfactors + 1);
    return true;
}

// False: it is to be done on whole values.
static bool copy_in_parts(Spmd *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    Work w;
    if (!work_begin(&w, s, &op))
        return false;
    work_decide(&w);
    bool any = false;
    for (uint32_t f = 0; f < w.rule.nfactors; f++)
        any |= w.cuts[f].parts > 1;
    if (!any)
        return false;
    OpId copy = work_emit(&w);
    for (uint32_t i = 0; i < op.nresults; i++)
        move_set_piece(s, op.results + i, work_shards(&w, op.noperands + i), hlo_at(h, copy)->results + i);
    return true;
}

// --- cheap ops ---------------------------------------------------------------------------------

#define LAZY_DEPTH_MAX 64u // they are done by recursion

// Repeated and counted values, and what is computed from nothing else: cheaper to do again than to move. Their depth
// behind each other; 0: it is not one of them.
static uint32_t lazy_depth(const Spmd *s, const HloOp *op) {
    const Hlo *h = s->h;
    Rule rule;
    if (s->manual || op->nresults != 1 || !rule_of(s->c->scratch, h, op, &rule) || !rule.nfactors)
        return 0;
    if (op->code == HLO_IOTA)
        return 1;
    uint32_t depth = 0;
    if (op->code == HLO_BROADCAST_IN_DIM) {
        ValueId v = hlo_operand(h, op, 0);
        depth = s->forms.at[v].depth;
        bool larger = hlo_value_type(h, op->results)->elems > hlo_value_type(h, v)->elems;
        return larger && depth < LAZY_DEPTH_MAX ? depth + 1 : 0;
    }
    if (hlo_row(op)->cls > HC_EW3 && op->code != HLO_RESHAPE && op->code != HLO_TRANSPOSE)
        return 0;
    for (uint32_t i = 0; i < op->noperands; i++) {
        ValueId v = hlo_operand(h, op, i);
        const Form *f = &s->forms.at[v];
        OpId def = h->values.at[v].def;
        const HloAttr *value = def && hlo_at(h, def)->code == HLO_CONSTANT ? hlo_attr(hlo_at(h, def), AK_VALUE) : NULL;
        bool splat = value && value->kind == HA_TENSOR && hlo_tensor_is_splat(h, value);
        if (!f->lazy && !splat && !(f->whole && !hlo_value_type(h, v)->rank))
            return 0;
        depth = f->depth > depth ? f->depth : depth;
    }
    return depth && depth < LAZY_DEPTH_MAX ? depth + 1 : 0;
}

ValueId spmd_lazy(Spmd *s, OpId id, const Shards *sh) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    LocId loc = s->loc;
    OpId at = s->op;
    s->op = id;
    s->loc = op.loc;
    Work w;
    bool exact = work_begin(&w, s, &op);
    for (uint32_t d = 0; d < sh->rank; d++) {
        int f = rule_factor(&w.rule, op.noperands, d);
        work_cut(&w, f, shard_cut(sh, d));
        exact &= sh->parts[d] == 1 || (f >= 0 && shard_cut_same(w.cuts[f], shard_cut(sh, d), s->devices));
    }
    if (!exact)
        memset(w.cuts, 0, (w.rule.nfactors + 1) * sizeof *w.cuts);
    ValueId v = hlo_at(h, work_emit(&w))->results;
    if (op.code == HLO_IOTA && exact)
        v = iota_shift(s, &op, v, sh);
    if (!exact)
        v = move_cut(s, v, sh);
    s->op = at;
    s->loc = loc;
    return v;
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
            else if ((depth = lazy_depth(s, &op)))
                move_set(s, op.results, (Form){.lazy = id, .depth = depth});
            else if (!copy_in_parts(s, id))
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

// attrs[i] with the sharding's text added.
static void tell(Spmd *s, const HloNamed **attrs, uint32_t *n, const Shards *sh) {
    const char *text = shard_text(sh, s->h->arena);
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
        if (made->shards->parts[i] > 1 &&
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
    hlo_region_push(h, s->to, clone(s, &ret, values, NULL));
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
}
