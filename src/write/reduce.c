// SPDX-License-Identifier: Apache-2.0
// reduce.c — the kinds of reductions: their units and what taking a unit away means.
#include "write/reduce.h"

#include <assert.h>

#include "write/reduce_edit.h"

const ReduceRow reduce_rows[RK_COUNT] = {
#define X(e, name, what) [RK_##e] = {name, what},
    REDUCE_KINDS(X)
#undef X
};

// --- which ops a kind takes ---------------------------------------------------------------------

static bool is_zeroable(const Hlo *h, TypeId id) {
    const HloType *ty = hlo_type(h, id);
    return ty->kind == HT_TOKEN || (ty->kind == HT_TENSOR && !ty->dynamic && !ty->text);
}

static bool takes_zero(const Hlo *h, const HloOp *op) {
    if (op->code == HLO_RETURN || op->code == HLO_CONSTANT || op->code == HLO_CREATE_TOKEN)
        return false;
    for (uint32_t i = 0; i < op->nresults; i++)
        if (!is_zeroable(h, h->values.at[op->results + i].type))
            return false;
    return true; // also an op without results, which then just goes
}

// The first operand of result i's type, the i-th one when it fits; 0 when there is none.
static ValueId operand_like(const Hlo *h, const HloOp *op, uint32_t i) {
    TypeId type = h->values.at[op->results + i].type;
    if (i < op->noperands && h->values.at[hlo_operand(h, op, i)].type == type)
        return hlo_operand(h, op, i);
    for (uint32_t k = 0; k < op->noperands; k++)
        if (h->values.at[hlo_operand(h, op, k)].type == type)
            return hlo_operand(h, op, k);
    return 0;
}

static bool takes_operand(const Hlo *h, const HloOp *op) {
    for (uint32_t i = 0; i < op->nresults; i++)
        if (!operand_like(h, op, i))
            return false;
    return op->nresults != 0;
}

// Region k could stand for the op.
static bool takes_branch(const Hlo *h, const HloOp *op, uint32_t k) {
    const HloRegion *r = hlo_op_region(h, op, k);
    bool loop = op->code == HLO_WHILE;
    if (!loop && op->code != HLO_IF && op->code != HLO_CASE)
        return false;
    OpId ret = r->ops.n ? r->ops.at[r->ops.n - 1] : 0;
    return ret && hlo_at(h, ret)->code == HLO_RETURN &&
           hlo_at(h, ret)->noperands == op->nresults &&
           (loop ? k == 1 && r->nargs == op->noperands : r->nargs == 0);
}

static bool takes_constant(const Hlo *h, const HloOp *op) {
    const HloAttr *v = op->code == HLO_CONSTANT ? hlo_attr(op, AK_VALUE) : NULL;
    return v && v->kind == HA_TENSOR && v->n > dtype_bytes(hlo_type(h, v->type)->dtype);
}

// --- who calls whom -----------------------------------------------------------------------------

static int64_t func_index(Hlo *h, const char *name) {
    for (uint32_t i = 0; i < h->funcs.n; i++)
        if (!strcmp(h->funcs.at[i].name, name))
            return i;
    return -1;
}

static const char *callee_of(const HloOp *op) {
    const HloAttr *a = op->code == HLO_CALL        ? hlo_attr(op, AK_CALLEE)
                       : op->code == HLO_COMPOSITE ? hlo_attr(op, AK_DECOMPOSITION)
                                                   : NULL;
    return a && a->kind == HA_SYM ? a->s : NULL;
}

typedef struct Calls { // by function index
    uint32_t *uses;
    uint8_t *effect; // it holds something that acts by itself
} Calls;

static bool has_effect(const HloOp *op) {
    return (op->nresults == 0 && op->code != HLO_RETURN) || hlo_int(op, AK_HAS_SIDE_EFFECT, 0);
}

static void use_name(Hlo *h, Calls *c, const char *name) {
    int64_t i = func_index(h, name);
    if (i >= 0)
        c->uses[i]++;
}

static Calls calls_find(Hlo *h, const WalkOps *ops) {
    Calls c = {ARENA_NEWN(h->arena, uint32_t, h->funcs.n + 1u),
               ARENA_NEWN(h->arena, uint8_t, h->funcs.n + 1u)};
    for (uint32_t i = 0; i < ops->n; i++) {
        const HloOp *op = hlo_at(h, ops->at[i].op);
        const HloAttr *called = op->code == HLO_CUSTOM_CALL ? hlo_attr(op, AK_CALLED_COMPUTATIONS)
                                                            : NULL;
        if (callee_of(op))
            use_name(h, &c, callee_of(op));
        for (uint32_t k = 0; called && k < called->n; k++)
            if (called->list[k].kind == HA_SYM)
                use_name(h, &c, called->list[k].s);
        if (has_effect(op) || op->code == HLO_CALL) // a call: it may be deeper down
            c.effect[ops->at[i].func] = 1;
    }
    return c;
}

// --- dead code ----------------------------------------------------------------------------------

typedef struct Sweep {
    Edit e;
    Calls calls;
    uint8_t *live;
    uint32_t at, first, count; // dead ops met so far; those in [first, first + count) go
} Sweep;

static bool sweep_acts(Sweep *s, const HloOp *op) {
    Hlo *h = s->e.h;
    if (op->code == HLO_RETURN || has_effect(op))
        return true;
    int64_t callee = callee_of(op) ? func_index(h, callee_of(op)) : -1;
    if (callee >= 0 && s->calls.effect[callee])
        return true;
    for (uint32_t k = 0; k < op->nregions; k++) {
        const HloRegion *r = hlo_op_region(h, op, k);
        for (uint32_t i = 0; i < r->ops.n; i++) {
            const HloOp *inner = hlo_at(h, r->ops.at[i]);
            if (inner->code != HLO_RETURN && sweep_acts(s, inner))
                return true;
        }
    }
    return false;
}

// Backwards: an op's readers are decided before it. What is dead but stays keeps its operands
// alive.
static void sweep_region(Sweep *s, RegionId r) {
    Hlo *h = s->e.h;
    for (uint32_t i = h->regions.at[r].ops.n; i-- > 0;) {
        OpId id = h->regions.at[r].ops.at[i];
        const HloOp *op = hlo_at(h, id);
        bool keep = sweep_acts(s, op);
        for (uint32_t k = 0; k < op->nresults && !keep; k++)
            keep = s->live[op->results + k];
        bool mine = !keep && s->at >= s->first && s->at - s->first < s->count;
        s->at += !keep;
        if (mine) {
            edit_drop(&s->e, id);
            continue;
        }
        for (uint32_t k = 0; k < op->noperands; k++)
            s->live[hlo_operand(h, op, k)] = 1;
        for (uint32_t k = 0; k < op->nregions; k++)
            sweep_region(s, h->op_regions.at[op->regions + k]);
    }
}

// Returns how many units there were.
static uint32_t dead(Hlo *h, uint32_t first, uint32_t count, bool *changed) {
    WalkOps ops = edit_walk(h);
    Sweep s = {.e = edit_begin(h), .calls = calls_find(h, &ops), .first = first, .count = count};
    s.live = ARENA_NEWN(h->arena, uint8_t, h->values.n);
    for (uint32_t i = 0; i < h->funcs.n; i++) {
        const HloFunc *f = &h->funcs.at[i];
        if (f->is_private && !s.calls.uses[i]) {
            if (s.at >= first && s.at - first < count)
                s.e.taken[i] = 1, s.e.changed = true;
            s.at++;
        } else if (f->body) {
            sweep_region(&s, f->body);
        }
    }
    *changed = edit_end(&s.e);
    return s.at;
}

void reduce_tidy(Hlo *h) {
    for (bool changed = true; changed;)
        dead(h, 0, UINT32_MAX, &changed);
}

// --- attributes ---------------------------------------------------------------------------------

typedef struct Strip {
    uint32_t at, first, count;
    bool changed;
} Strip;

static void strip(Strip *s, const HloNamed **list, uint32_t *n) {
    if (!*n)
        return;
    if (s->at >= s->first && s->at - s->first < s->count) {
        *list = NULL;
        *n = 0;
        s->changed = true;
    }
    s->at++;
}

static void strip_dicts(Hlo *h, Strip *s, const HloNamed ***dicts, const uint32_t **counts,
                        uint32_t n) {
    if (!*dicts)
        return;
    uint32_t *sizes = arena_dup(h->arena, *counts, n * sizeof *sizes);
    const HloNamed **lists = arena_dup(h->arena, *dicts, n * sizeof *lists);
    for (uint32_t i = 0; i < n; i++)
        strip(s, &lists[i], &sizes[i]);
    *counts = sizes;
    *dicts = lists;
}

static uint32_t extras(Hlo *h, uint32_t first, uint32_t count, bool *changed) {
    Strip s = {0, first, count, false};
    strip(&s, &h->extra, &h->nextra);
    for (uint32_t i = 0; i < h->funcs.n; i++) {
        HloFunc *f = &h->funcs.at[i];
        strip(&s, &f->extra, &f->nextra);
        strip_dicts(h, &s, &f->arg_attrs, &f->narg_attrs, f->nargs);
        strip_dicts(h, &s, &f->res_attrs, &f->nres_attrs, f->nresults);
    }
    WalkOps ops = edit_walk(h);
    for (uint32_t i = 0; i < ops.n; i++) {
        HloOp *op = hlo_at(h, ops.at[i].op);
        if (hlo_row(op)->dialect != HD_SDY) // there they mean something
            strip(&s, &op->extra, &op->nextra);
    }
    *changed = s.changed;
    return s.at;
}

// --- the entry function -------------------------------------------------------------------------

static uint32_t cut(Hlo *h, uint32_t first, uint32_t count, bool *changed) {
    HloFunc *f = edit_entry(h);
    HloRegion *r = f ? &h->regions.at[f->body] : NULL;
    uint32_t units = 0;
    *changed = false;
    if (!f || !r->ops.n)
        return 0;
    Edit e = edit_begin(h);
    for (uint32_t i = 0; i + 1 < r->ops.n; i++) {
        const HloOp *op = hlo_at(h, r->ops.at[i]);
        if (!op->nresults || op->code == HLO_CONSTANT)
            continue;
        if (count && units++ == first) {
            VEC(ValueId) results = {0};
            for (uint32_t k = 0; k < op->nresults; k++)
                VEC_PUSH(h->arena, &results, op->results + k);
            for (uint32_t k = i + 1; k + 1 < r->ops.n; k++)
                edit_drop(&e, r->ops.at[k]);
            edit_results(&e, f, results.at, results.n);
            break;
        }
        units += !count;
    }
    *changed = edit_end(&e);
    return units;
}

static uint32_t results(Hlo *h, uint32_t first, uint32_t count, bool *changed) {
    HloFunc *f = edit_entry(h);
    *changed = false;
    if (!f || !count)
        return f ? f->nresults : 0;
    uint8_t *drop = ARENA_NEWN(h->arena, uint8_t, f->nresults + 1u);
    for (uint32_t i = first; i < f->nresults && i - first < count; i++)
        drop[i] = 1;
    if (first >= f->nresults)
        return f->nresults;
    Edit e = edit_begin(h);
    edit_signature(&e, f, &(Signature){.drop_results = drop});
    *changed = edit_end(&e);
    return f->nresults;
}

static uint8_t *read_values(Hlo *h) { // by ValueId: some op reads it
    uint8_t *read = ARENA_NEWN(h->arena, uint8_t, h->values.n);
    WalkOps ops = edit_walk(h);
    for (uint32_t i = 0; i < ops.n; i++) {
        const HloOp *op = hlo_at(h, ops.at[i].op);
        for (uint32_t k = 0; k < op->noperands; k++)
            read[hlo_operand(h, op, k)] = 1;
    }
    return read;
}

static uint32_t args(Hlo *h, uint32_t first, uint32_t count, bool *changed) {
    HloFunc *f = edit_entry(h);
    *changed = false;
    if (!f || !count)
        return f ? f->nargs : 0;
    uint8_t *drop = ARENA_NEWN(h->arena, uint8_t, f->nargs + 1u), *read = read_values(h);
    OpId top = h->regions.at[f->body].ops.at[0];
    ValueId base = h->regions.at[f->body].args;
    Edit e = edit_begin(h);
    bool some = false;
    for (uint32_t i = first; i < f->nargs && i - first < count; i++) {
        ValueId zero = read[base + i] ? edit_zero(&e, top, h->values.at[base + i].type) : 0;
        drop[i] = zero || !read[base + i];
        some |= drop[i];
        e.to[base + i] = zero;
    }
    if (some)
        edit_signature(&e, f, &(Signature){.drop_args = drop});
    *changed = edit_end(&e);
    return f->nargs;
}

static uint32_t lift(Hlo *h, uint32_t first, uint32_t count, bool *changed) {
    HloFunc *f = edit_entry(h);
    *changed = false;
    if (!f)
        return 0;
    const HloRegion *r = &h->regions.at[f->body];
    VEC(ValueId) lifted = {0};
    uint32_t units = 0;
    Edit e = edit_begin(h);
    for (uint32_t i = 0; i + 1 < r->ops.n; i++) {
        const HloOp *op = hlo_at(h, r->ops.at[i]);
        if (!op->nresults || op->code == HLO_CONSTANT)
            continue;
        if (units >= first && units - first < count) {
            for (uint32_t k = 0; k < op->nresults; k++)
                VEC_PUSH(h->arena, &lifted, op->results + k);
            edit_drop(&e, r->ops.at[i]);
        }
        units++;
    }
    if (lifted.n)
        edit_signature(&e, f, &(Signature){.lifted = lifted.at, .nlifted = lifted.n});
    *changed = edit_end(&e);
    return units;
}

// --- functions ----------------------------------------------------------------------------------

static uint32_t funcs(Hlo *h, uint32_t first, uint32_t count, bool *changed) {
    uint32_t total = h->funcs.n, n = 0;
    Edit e = edit_begin(h);
    for (uint32_t i = first; i < total && i - first < count; i++, n++)
        e.taken[i] = 1;
    e.changed = n && n < total; // one stays
    *changed = edit_end(&e);
    return total;
}

// Calls of a function that nothing else names. Two functions that call each other are not joined
// both ways: a function is either taken or one that takes, within one edit.
static uint32_t inline_calls(Hlo *h, uint32_t first, uint32_t count, bool *changed) {
    WalkOps ops = edit_walk(h);
    Calls calls = calls_find(h, &ops);
    Edit e = edit_begin(h);
    uint8_t *takes = ARENA_NEWN(h->arena, uint8_t, h->funcs.n + 1u);
    uint32_t units = 0;
    for (uint32_t i = 0; i < ops.n; i++) {
        const HloOp *op = hlo_at(h, ops.at[i].op);
        uint32_t caller = ops.at[i].func;
        int64_t callee = callee_of(op) ? func_index(h, callee_of(op)) : -1;
        if (callee < 0 || calls.uses[callee] != 1 || callee == caller || op->nregions)
            continue;
        const HloFunc *f = &h->funcs.at[callee];
        if (!f->body || f == edit_entry(h) || f->nargs != op->noperands ||
            f->nresults != op->nresults ||
            hlo_at(h, edit_return(h, f->body))->noperands != f->nresults)
            continue;
        if (units >= first && units - first < count && !takes[callee] && !e.taken[caller]) {
            edit_splice(&e, ops.at[i].op, f->body, h->operands.at + op->operands);
            e.taken[callee] = takes[caller] = 1;
        }
        units++;
    }
    *changed = edit_end(&e);
    return units;
}

// --- ops ----------------------------------------------------------------------------------------

static void op_zero(Edit *e, OpId id) {
    for (uint32_t i = 0; i < hlo_at(e->h, id)->nresults; i++) {
        ValueId v = hlo_at(e->h, id)->results + i;
        e->to[v] = edit_zero(e, id, e->h->values.at[v].type);
    }
    edit_drop(e, id);
}

static void op_operand(Edit *e, OpId id) {
    const HloOp *op = hlo_at(e->h, id);
    for (uint32_t i = 0; i < op->nresults; i++)
        e->to[op->results + i] = operand_like(e->h, op, i);
    edit_drop(e, id);
}

static void op_branch(Edit *e, OpId id, uint32_t k) {
    const HloOp *op = hlo_at(e->h, id);
    if (e->splice[id])
        return; // another branch was taken
    edit_splice(e, id, e->h->op_regions.at[op->regions + k], e->h->operands.at + op->operands);
}

static void op_constant(Edit *e, OpId id) {
    HloAttr *v = hlo_attr_slot(e->h, id, AK_VALUE);
    v->n = (uint32_t)dtype_bytes(hlo_type(e->h, v->type)->dtype);
    e->changed = true;
}

// Ops inside an op that goes are counted but gone with it.
static uint32_t plain_ops(Hlo *h, ReduceKind kind, uint32_t first, uint32_t count, bool *changed) {
    WalkOps ops = edit_walk(h);
    Edit e = edit_begin(h);
    uint32_t units = 0;
    for (uint32_t i = 0; i < ops.n; i++) {
        OpId id = ops.at[i].op;
        const HloOp *op = hlo_at(h, id);
        uint32_t n = kind == RK_ZERO        ? takes_zero(h, op)
                     : kind == RK_OPERAND   ? takes_operand(h, op)
                     : kind == RK_CONSTANTS ? takes_constant(h, op)
                                            : op->nregions;
        for (uint32_t k = 0; k < n; k++) {
            if (kind == RK_BRANCH && !takes_branch(h, hlo_at(h, id), k))
                continue;
            bool mine = units >= first && units - first < count;
            units++;
            if (!mine)
                continue;
            if (kind == RK_ZERO)
                op_zero(&e, id);
            else if (kind == RK_OPERAND)
                op_operand(&e, id);
            else if (kind == RK_CONSTANTS)
                op_constant(&e, id);
            else
                op_branch(&e, id, k);
        }
    }
    *changed = edit_end(&e);
    return units;
}

// --- entry points -------------------------------------------------------------------------------

// With count 0 nothing is changed and the units are counted.
static uint32_t visit(Hlo *h, ReduceKind kind, uint32_t first, uint32_t count, bool *changed) {
    switch (kind) {
    case RK_CUT:
        return cut(h, first, count, changed);
    case RK_FUNCS:
        return funcs(h, first, count, changed);
    case RK_RESULTS:
        return results(h, first, count, changed);
    case RK_EXTRAS:
        return extras(h, first, count, changed);
    case RK_DEAD:
        return dead(h, first, count, changed);
    case RK_INLINE:
        return inline_calls(h, first, count, changed);
    case RK_LIFT:
        return lift(h, first, count, changed);
    case RK_ARGS:
        return args(h, first, count, changed);
    default:
        return plain_ops(h, kind, first, count, changed);
    }
}

uint32_t reduce_units(Hlo *h, ReduceKind kind) {
    bool changed;
    uint32_t units = visit(h, kind, 0, 0, &changed);
    assert(!changed);
    return units;
}

bool reduce_apply(Hlo *h, ReduceKind kind, uint32_t first, uint32_t count) {
    bool changed;
    visit(h, kind, first, count, &changed);
    return changed;
}

ReduceSize reduce_size(Hlo *h) {
    ReduceSize s = {.funcs = h->funcs.n};
    const HloFunc *f = edit_entry(h);
    WalkOps ops = edit_walk(h);
    s.values = f ? f->nargs + f->nresults : 0;
    for (uint32_t i = 0; i < ops.n; i++) {
        const HloOp *op = hlo_at(h, ops.at[i].op);
        const HloAttr *v = op->code == HLO_CONSTANT ? hlo_attr(op, AK_VALUE) : NULL;
        s.ops += op->code != HLO_CONSTANT && op->code != HLO_RETURN;
        s.constants += op->code == HLO_CONSTANT;
        s.constant_bytes += v && v->kind == HA_TENSOR ? v->n : 0;
    }
    return s;
}

bool reduce_smaller(const ReduceSize *a, const ReduceSize *b) {
    if (a->ops != b->ops)
        return a->ops < b->ops;
    if (a->funcs != b->funcs)
        return a->funcs < b->funcs;
    if (a->values != b->values)
        return a->values < b->values;
    if (a->constant_bytes != b->constant_bytes)
        return a->constant_bytes < b->constant_bytes;
    if (a->constants != b->constants)
        return a->constants < b->constants;
    return a->text_bytes < b->text_bytes;
}
