// SPDX-License-Identifier: Apache-2.0
// work.c — an op with a rule in parts: how its factors are cut, and the op that a device does then.
//
// The cuts are those its operands lie in, as far as they go together, and then those the plan has for its results; where that
// moves bytes, other orders are tried and the cheapest is taken. Sums, movement and scaling of terms give terms: they
// are combined once, behind them. What follows from them: sizes in attributes, the device's offset of an iota or of picked indices, terms where a
// summed factor is cut. Cheap ops are not done where they stand but in each form that somebody asks for.
#include <assert.h>
#include <string.h>

#include "hlo/dot.h"
#include "spmd/way.h"

// --- ops in parts ------------------------------------------------------------------------------

typedef struct Work { // an op with a rule, while it is decided how its factors are cut
    Spmd *s;
    const HloOp *op;
    Rule rule;
    Cut *cuts; // of factors, and behind them the terms that operands and results lie in
    uint64_t terms; // bits: operands that are such terms
} Work;

static ValueId work_value(const Work *w, uint32_t t) {
    assert(t < w->rule.ntensors);
    return t < w->op->noperands ? hlo_operand(w->s->h, w->op, t) : w->op->results + (t - w->op->noperands);
}

// Cuts a factor unless it is cut already, does not fit the others, or some tensor's parts would not be equal.
static void work_cut(Work *w, int f, Cut c) {
    if (f < 0 || c.parts <= 1 || w->cuts[f].parts > 1)
        return;
    assert((uint32_t)f < w->rule.nfactors);
    for (uint32_t t = 0; t < w->rule.ntensors; t++) {
        const HloType *type = hlo_value_type(w->s->h, work_value(w, t));
        for (uint32_t d = 0; d < type->rank; d++)
            if (rule_factor(&w->rule, t, d) == f && (!type->dims[d] || type->dims[d] % c.parts))
                return;
    }
    w->cuts[f] = c;
    if (!shard_cuts_fit(w->s->c->scratch, w->cuts, w->rule.nfactors + 1, w->s->devices))
        w->cuts[f] = CUT_WHOLE;
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
static void work_fill(Work *w) {
    Spmd *s = w->s;
    uint32_t nops = w->op->noperands, first = nops;
    const Shards *plan = s->manual ? NULL : s->plan[w->op->results];
    for (uint32_t d = 0; plan && d < plan->rank; d++) {
        int f = rule_factor(&w->rule, first, d);
        if (plan->cut[d].parts > 1 && f >= 0 && work_lie(w, f, shard_cut(plan, d)))
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
    Cut dims[OTRN_MAX_RANK], terms = CUT_WHOLE;
    ShardCombine how = SHARD_ADD;
    for (uint32_t d = 0; d < rank; d++) {
        int f = rule_factor(&w->rule, t, d);
        dims[d] = f < 0 ? CUT_WHOLE : w->cuts[f];
    }
    bool has_terms = t >= w->op->noperands || t < w->rule.ninto;
    if (t >= w->op->noperands || (t < 64 && w->terms >> t & 1))
        terms = w->cuts[w->rule.nfactors];
    for (uint32_t f = 0; has_terms && f < w->rule.nfactors; f++)
        if (w->rule.kind[f] != FACTOR_KEEP && w->cuts[f].parts > 1) {
            terms = shard_cut_both(a, terms, w->cuts[f], w->s->devices);
            how = combine[w->rule.kind[f]];
        }
    return shard_make(a, rank, w->s->devices, dims, terms, how);
}

// --- the cheapest ------------------------------------------------------------------------------------

#define FLOPS_PER_BYTE 1000u // that a core does while it sends a byte
#define TOUCHED_PER_BYTE 4u  // bytes that it reads or writes meanwhile

// Bytes sent for operands and for results to lie as planned, and the device's own work in the same measure.
static uint64_t work_cost(const Work *w, uint64_t *sent) {
    Spmd *s = w->s;
    uint64_t local = 0, parts = 1;
    *sent = 0;
    for (uint32_t t = 0; t < w->rule.ntensors; t++) {
        ValueId v = work_value(w, t);
        const Shards *sh = work_shards(w, t), *plan = s->manual ? NULL : s->plan[v];
        uint64_t bytes = work_bytes(w, t);
        if (t < w->op->noperands)
            *sent += t < 64 && w->terms >> t & 1 ? 0 : move_bytes(s, v, sh);
        else
            *sent += way_bytes(s, hlo_value_type(s->h, v), sh, plan ? plan : shard_without_terms(sh, s->c->scratch));
        for (uint32_t d = 0; d < sh->rank; d++)
            bytes /= (uint64_t)sh->cut[d].parts;
        local += bytes / TOUCHED_PER_BYTE;
    }
    for (uint32_t f = 0; f < w->rule.nfactors; f++)
        parts *= w->cuts[f].parts > 1 ? (uint64_t)w->cuts[f].parts : 1;
    if (w->op->code == HLO_DOT_GENERAL) {
        uint64_t flops = 2 * (uint64_t)hlo_value_type(s->h, w->op->results)->elems * (uint64_t)dot_contracted(s->h, w->op);
        local += flops / parts / FLOPS_PER_BYTE;
    }
    return *sent + local;
}

// The cuts of one tensor first: an operand as it lies, the result as planned. False: it has none.
static bool work_first(Work *w, uint32_t t) {
    Spmd *s = w->s;
    const Piece *made = t < w->op->noperands ? move_made(s, work_value(w, t)) : NULL;
    const Shards *sh = made ? made->shards : t < w->op->noperands || s->manual ? NULL : s->plan[work_value(w, t)];
    for (uint32_t d = 0; sh && d < sh->rank; d++)
        work_cut(w, rule_factor(&w->rule, t, d), shard_cut(sh, d));
    return sh;
}

static void work_decide(Work *w) {
    Spmd *s = w->s;
    size_t n = w->rule.nfactors;
    Cut *best = ARENA_NEWN(s->c->scratch, Cut, n + 1), *start = ARENA_NEWN(s->c->scratch, Cut, n + 1);
    memcpy(start, w->cuts, (n + 1) * sizeof *start);
    work_fill(w);
    uint64_t sent, least = work_cost(w, &sent);
    if (!sent)
        return;
    memcpy(best, w->cuts, (n + 1) * sizeof *best);
    for (uint32_t t = 0; t < w->rule.ntensors; t++) {
        memcpy(w->cuts, start, (n + 1) * sizeof *start);
        if (!work_first(w, t))
            continue;
        work_fill(w);
        uint64_t cost = work_cost(w, &sent);
        if (cost < least)
            memcpy(best, w->cuts, (n + 1) * sizeof *best);
        least = cost < least ? cost : least;
    }
    memcpy(w->cuts, best, (n + 1) * sizeof *best);
}

// --- terms that stay terms ---------------------------------------------------------------------------

Cut spmd_free_terms(const Spmd *s, ValueId v) {
    const Piece *made = move_made(s, v);
    uint32_t users;
    users_of(&s->users, v, &users);
    OpId def = s->h->values.at[v].def;
    const HloRegion *region = &s->h->regions.at[s->users.region[s->op]];
    bool carried = v >= region->args && v < region->args + region->nargs;
    bool here = carried || (def && s->users.region[def] == s->users.region[s->op]); // not again in every round of a loop
    bool only = made && made == s->forms.at[v].pieces && users == 1 && here && !s->manual;
    return only && made->shards->combine == SHARD_ADD ? shard_cut(made->shards, made->shards->rank) : CUT_WHOLE;
}

static bool is_scale(const Spmd *s, ValueId v) { // one number, repeated
    OpId def = s->h->values.at[v].def;
    const HloOp *op = hlo_at(s->h, def);
    const HloAttr *value = def && op->code == HLO_CONSTANT ? hlo_attr(op, AK_VALUE) : NULL;
    return (value && value->kind == HA_TENSOR && hlo_tensor_is_splat(s->h, value)) ||
           (def && op->code == HLO_BROADCAST_IN_DIM && hlo_value_type(s->h, hlo_operand(s->h, op, 0))->rank == 0);
}

// The program says that its result are terms. Then they stay so through what makes them more bytes, too.
static bool says_terms(const Spmd *s, const HloOp *op) {
    uint32_t n;
    const OpId *users = users_of(&s->users, op->results, &n);
    const HloOp *said = n == 1 ? hlo_at(s->h, users[0]) : NULL;
    const Shards *sh = said && said->code == HLO_SDY_SHARDING_CONSTRAINT ? spmd_constraint(s, said) : NULL;
    return sh && shard_has_terms(sh);
}

// Operands that the op may take as terms, if they are: bits. What it gives is then as many terms.
static uint64_t linear_in(const Spmd *s, const HloOp *op) {
    switch ((HloOpcode)op->code) {
    case HLO_ADD:
    case HLO_SUBTRACT:
    case HLO_DYNAMIC_UPDATE_SLICE:
        return 3;
    case HLO_CONCATENATE:
        return op->noperands < 64 ? (1ull << op->noperands) - 1 : 0;
    case HLO_NEGATE:
    case HLO_TRANSPOSE:
    case HLO_RESHAPE:
    case HLO_SLICE:
    case HLO_REDUCE:
        return 1;
    case HLO_CONVERT:
        return dtype_is_float(hlo_value_type(s->h, hlo_operand(s->h, op, 0))->dtype) && says_terms(s, op);
    case HLO_BROADCAST_IN_DIM:
        return says_terms(s, op);
    case HLO_MULTIPLY:
        return is_scale(s, hlo_operand(s->h, op, 1)) ? 1 : is_scale(s, hlo_operand(s->h, op, 0)) ? 2 : 0;
    case HLO_DIVIDE:
        return is_scale(s, hlo_operand(s->h, op, 1));
    default:
        return 0;
    }
}

// It sums several, or fewer bytes leave it than come: good for terms. Others may only hand them on.
static bool gains(const Spmd *s, const HloOp *op) {
    uint64_t which = linear_in(s, op);
    return which && (which & (which - 1) || op->code == HLO_SLICE || op->code == HLO_REDUCE);
}

#define AHEAD_MAX 8u // ops that terms are followed through

// Will the value be terms? One that is not made yet as its operands are planned.
static bool terms_ahead(const Spmd *s, ValueId v, uint32_t depth) {
    const Piece *made = move_made(s, v);
    OpId def = s->h->values.at[v].def;
    const HloOp *op = hlo_at(s->h, def);
    Rule rule;
    if (made || s->forms.at[v].whole || s->forms.at[v].lazy || !def || depth == AHEAD_MAX)
        return made && shard_has_terms(made->shards);
    uint64_t which = linear_in(s, op);
    for (uint32_t t = 0; which >> t; t++)
        if (which >> t & 1 && !terms_ahead(s, hlo_operand(s->h, op, t), depth + 1))
            which = 0;
    if (which || !rule_of(s->c->scratch, s->h, op, &rule))
        return which;
    for (uint32_t t = 0; t < op->noperands; t++) {
        const Shards *plan = s->plan[hlo_operand(s->h, op, t)];
        for (uint32_t d = 0; plan && d < plan->rank; d++) {
            int f = rule_factor(&rule, t, d);
            if (plan->cut[d].parts > 1 && f >= 0 && rule.kind[f] == FACTOR_ADD)
                return true;
        }
    }
    return false;
}

// The operand of a sum that will be terms, and nobody else's, where the other one will not; -1: none.
static int one_term(const Spmd *s, const HloOp *op) {
    uint32_t n;
    if (op->code != HLO_ADD || !dtype_is_float(hlo_value_type(s->h, op->results)->dtype))
        return -1;
    bool t[2] = {terms_ahead(s, hlo_operand(s->h, op, 0), 0), terms_ahead(s, hlo_operand(s->h, op, 1), 0)};
    users_of(&s->users, hlo_operand(s->h, op, t[1]), &n);
    return t[0] != t[1] && n == 1 ? t[1] : -1;
}

// x + t + u, where t and u will be terms: x + (t + u), which is one sum over the devices. Gradients of a value that several read are added up in
// the first order where somebody reads it who has no terms, as PyTorch does behind a residual.
void spmd_gather_terms(Spmd *s, RegionId region) {
    Hlo *h = s->h;
    for (uint32_t i = 0; i < h->regions.at[region].ops.n; i++) {
        OpId *ops = h->regions.at[region].ops.at;
        HloOp *op = hlo_at(h, ops[i]);
        for (uint32_t k = 0; k < op->nregions; k++)
            spmd_gather_terms(s, h->op_regions.at[op->regions + k]);
        int u = one_term(s, op);
        ValueId so_far = u < 0 ? 0 : hlo_operand(h, op, 1 - (uint32_t)u);
        uint32_t n, at = i;
        users_of(&s->users, so_far, &n);
        HloOp *first = n == 1 ? hlo_at(h, h->values.at[so_far].def) : NULL;
        int t = first && s->users.region[h->values.at[so_far].def] == region ? one_term(s, first) : -1;
        if (t < 0)
            continue;
        while (hlo_at(h, ops[at]) != first)
            at--;
        OpId sum = ops[at];
        memmove(&ops[at], &ops[at + 1], (i - 1 - at) * sizeof *ops);
        ops[i - 1] = sum; // right before it
        ValueId *of = &h->operands.at[first->operands], x = of[1 - t];
        of[1 - t] = hlo_operand(h, op, (uint32_t)u);
        h->operands.at[op->operands + (uint32_t)u] = x;
    }
}

// Is there an op behind this one, or is it one itself, that gains by terms? Else they are combined here: a sum is more
// easily moved inside what reads it than a collective is.
static bool worth_keeping(const Spmd *s, const HloOp *op) {
    for (uint32_t depth = 0; depth < AHEAD_MAX && !gains(s, op); depth++) {
        uint32_t n;
        const OpId *users = users_of(&s->users, op->results, &n);
        if (!linear_in(s, op) || n != 1)
            return false;
        op = hlo_at(s->h, users[0]);
        if (op->code == HLO_SDY_SHARDING_CONSTRAINT)
            return true;
    }
    uint64_t which = gains(s, op) ? linear_in(s, op) : 0;
    for (uint32_t t = 0; which >> t; t++)
        if (which >> t & 1 && !terms_ahead(s, hlo_operand(s->h, op, t), 0))
            return false;
    return which;
}

static void work_terms(Work *w) {
    Cut *terms = &w->cuts[w->rule.nfactors];
    uint64_t which = dtype_is_float(hlo_value_type(w->s->h, w->op->results)->dtype) ? linear_in(w->s, w->op) : 0;
    bool adds = w->op->code != HLO_REDUCE;
    for (uint32_t f = 0; f < w->rule.nfactors; f++)
        adds |= w->rule.kind[f] == FACTOR_ADD;
    *terms = CUT_WHOLE;
    if (!adds || !worth_keeping(w->s, w->op))
        return;
    for (uint32_t t = 0; which >> t; t++) {
        if (!(which >> t & 1))
            continue;
        Cut c = spmd_free_terms(w->s, work_value(w, t));
        if (c.parts <= 1 || (terms->parts > 1 && !shard_cut_same(c, *terms, w->s->devices))) {
            *terms = CUT_WHOLE;
            return;
        }
        *terms = c;
    }
    w->terms = which;
}

// Are all of them taken as they lie?
static bool terms_stay(const Work *w) {
    for (uint32_t t = 0; w->terms >> t; t++)
        if (w->terms >> t & 1 && !shard_same(work_shards(w, t), move_made(w->s, work_value(w, t))->shards))
            return false;
    return true;
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
    if (sh->cut[dim].parts == 1)
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
    assert(c.parts > 1 && d < hlo_value_type(s->h, work_value(w, 0))->rank);
    int64_t rows = hlo_value_type(s->h, work_value(w, 0))->dims[d], part = rows / c.parts;
    TypeId type = s->h->values.at[v].type;
    HloType t = *hlo_type(s->h, type);
    ValueId zero = move_number(s, 0, t.dtype);
    if (inside) // as a gather does, before anything else
        v = move_result(s, move_op(s, HLO_CLAMP, 3, (ValueId[]){zero, v, move_number(s, (int32_t)(rows - 1), t.dtype)}, type));
    const Shards *line = shard_make(s->c->scratch, 1, s->devices, &c, CUT_WHOLE, SHARD_ADD);
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
    assert(at == n); // every index has its place in the result
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
        spmd_note_outer(s, h->op_regions.at[op.regions + r], false);
    bool picks = w->rule.picked >= 0 && w->cuts[w->rule.picked].parts > 1;
    ValueId inside = 0;
    if (picks)
        operands[1] = indices_shift(w, operands[1], op.code == HLO_GATHER ? &inside : NULL);
    OpId copy = spmd_clone(s, &op, operands, types);
    attrs_follow(s, copy, &op);
    for (uint32_t r = 0; r < op.nregions; r++)
        spmd_copy_region(s, copy, h->op_regions.at[op.regions + r], NULL);
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
bool spmd_in_parts(Spmd *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    Work w;
    if (!work_begin(&w, s, &op))
        return false;
    work_terms(&w);
    work_decide(&w);
    if (w.terms && !terms_stay(&w)) {
        w.terms = 0;
        memset(w.cuts, 0, (w.rule.nfactors + 1) * sizeof *w.cuts);
        work_decide(&w);
    }
    bool any = false;
    for (uint32_t f = 0; f <= w.rule.nfactors; f++)
        any |= w.cuts[f].parts > 1;
    if (!any)
        return false;
    OpId copy = work_emit(&w);
    assert(hlo_at(h, copy)->nresults == op.nresults);
    for (uint32_t i = 0; i < op.nresults; i++)
        move_set_piece(s, op.results + i, work_shards(&w, op.noperands + i), hlo_at(h, copy)->results + i);
    return true;
}

// --- cheap ops ---------------------------------------------------------------------------------

#define LAZY_DEPTH_MAX 64u // they are done by recursion

// Repeated and counted values, and what is computed from nothing else: cheaper to do again than to move. Their depth
// behind each other; 0: it is not one of them.
uint32_t spmd_lazy_depth(const Spmd *s, const HloOp *op) {
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
        bool given = !h->values.at[v].def; // an argument is better moved itself, where others of its kind are
        return (larger || given) && depth < LAZY_DEPTH_MAX ? depth + 1 : 0;
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
    assert(exact && sh->rank == hlo_value_type(h, op.results)->rank); // an op without a rule is not lazy
    for (uint32_t d = 0; d < sh->rank; d++) {
        int f = rule_factor(&w.rule, op.noperands, d);
        work_cut(&w, f, shard_cut(sh, d));
        exact &= sh->cut[d].parts == 1 || (f >= 0 && shard_cut_same(w.cuts[f], shard_cut(sh, d), s->devices));
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
