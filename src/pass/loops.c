// SPDX-License-Identifier: Apache-2.0
// loops.c — what a loop passes on unchanged is read from outside, and what costs nothing is made inside.
// needs: no calls, values defined before use
// gives: loops carry only what changes; constants, counts, masks of counts and broadcasts that a body reads stand in it
// stale: uses
//
// JAX's scan carries everything its body reads, a splat of the size of all scores included. In the body such values are what they
// are in a program without loops: part of a row program, a mask that is known, nothing in memory.
#include "pass/loops.h"

#include <assert.h>
#include <string.h>

#include "hlo/loop.h"
#include "hlo/query.h"
#include "hlo/users.h"
#include "pass/walk.h"

#define DEPTH_MAX 24 // ops from a value down to what it is made of

typedef struct Loops {
    Compile *c;
    Hlo *h;
    Walk w;
    ValueMap inside; // of the loop in hand: values outside -> copies in its body
    OpList made;     // … the copies
} Loops;

// --- a loop that carries something else ---------------------------------------------------------------

// A region like `from` with the arguments that are kept, then new ones; uses of its values are renamed by the caller's walk.
static void renew_region(Compile *c, Walk *w, OpId made, RegionId from, const LoopChange *ch) {
    Hlo *h = c->hlo;
    HloRegion old = h->regions.at[from];
    TypeId *types = ARENA_NEWN(c->scratch, TypeId, old.nargs + ch->nmore + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < old.nargs; i++)
        if (ch->keep[i])
            types[n++] = h->values.at[old.args + i].type;
    for (uint32_t i = 0; i < ch->nmore; i++)
        types[n++] = h->values.at[ch->more[i]].type;
    RegionId to = hlo_op_add_region(h, made, n, types);
    walk_grow(w);
    for (uint32_t i = 0, k = 0; i < old.nargs; i++)
        if (ch->keep[i])
            walk_replace(w, old.args + i, h->regions.at[to].args + k++);
    for (uint32_t i = 0; i < old.ops.n; i++)
        hlo_region_push(h, to, old.ops.at[i]);
}

OpId loop_change(Compile *c, Walk *w, OpId id, const LoopChange *ch) {
    Hlo *h = c->hlo;
    assert(hlo_at(h, id)->code == HLO_WHILE && hlo_at(h, id)->nregions == 2);
    HloOp op = *hlo_at(h, id);
    uint32_t n = 0, all = op.noperands + ch->nmore;
    ValueId *operands = ARENA_NEWN(c->scratch, ValueId, all + 1), *next = ARENA_NEWN(c->scratch, ValueId, all + 1);
    TypeId *types = ARENA_NEWN(c->scratch, TypeId, all + 1);
    HloOp ret = *region_return(h, hlo_op_region(h, &op, 1));
    assert(ret.noperands == op.noperands);
    for (uint32_t i = 0; i < op.noperands; i++)
        if (ch->keep[i]) {
            next[n] = hlo_operand(h, &ret, i);
            operands[n++] = hlo_operand(h, &op, i);
        }
    for (uint32_t i = 0; i < ch->nmore; i++) {
        next[n] = ch->next[i];
        operands[n++] = ch->more[i];
    }
    for (uint32_t i = 0; i < n; i++)
        types[i] = h->values.at[operands[i]].type;
    OpId made = hlo_op(h, HLO_WHILE, op.loc, n, operands, n, types);
    hlo_at(h, made)->extra = op.extra, hlo_at(h, made)->nextra = op.nextra;
    renew_region(c, w, made, h->op_regions.at[op.regions], ch);
    renew_region(c, w, made, h->op_regions.at[op.regions + 1], ch);
    const HloRegion *body = hlo_op_region(h, hlo_at(h, made), 1);
    OpId end = body->ops.at[body->ops.n - 1];
    hlo_op_set_operands(h, end, n, next);
    for (uint32_t i = 0; i < ch->nmore; i++) {
        OpId update = h->values.at[ch->next[i]].def;
        if (update && hlo_at(h, update)->code == HLO_DYNAMIC_UPDATE_SLICE && hlo_operand(h, hlo_at(h, update), 0) == ch->more[i])
            h->operands.at[hlo_at(h, update)->operands] = body->args + n - ch->nmore + i;
    }
    for (uint32_t i = 0, k = 0; i < op.noperands; i++)
        if (ch->keep[i])
            walk_replace(w, op.results + i, hlo_at(h, made)->results + k++);
    return made;
}

// --- stacks -------------------------------------------------------------------------------------------

static TypeId stack_type(Hlo *h, ValueId piece, int64_t n) {
    const HloType t = *hlo_value_type(h, piece);
    int64_t dims[OTRN_MAX_RANK] = {n};
    assert(t.rank < OTRN_MAX_RANK);
    memcpy(dims + 1, t.dims, (size_t)t.rank * sizeof *dims);
    return hlo_type_tensor(h, t.dtype, t.rank + 1, dims);
}

ValueId loop_new_stack(Walk *w, OpList *ops, ValueId piece, int64_t n, LocId loc) {
    return walk_push_to(w, ops, hlo_op_splat(w->hlo, loc, stack_type(w->hlo, piece, n), (char[16]){0}));
}

// Places of a piece: the index, and 0 for what it has whole.
static uint32_t set_places(Walk *w, OpList *ops, ValueId *operands, uint32_t at, ValueId index, int rank, LocId loc) {
    ValueId zero = walk_push_to(w, ops, hlo_op_splat(w->hlo, loc, w->hlo->values.at[index].type, (char[16]){0}));
    operands[at++] = index;
    for (int d = 1; d < rank; d++)
        operands[at++] = zero;
    return at;
}

ValueId loop_read_piece(Walk *w, OpList *ops, ValueId stack, ValueId index, TypeId piece, LocId loc) {
    Hlo *h = w->hlo;
    const HloType t = *hlo_value_type(h, stack);
    int64_t sizes[OTRN_MAX_RANK];
    ValueId operands[OTRN_MAX_RANK + 1] = {stack};
    assert(t.rank > 0 && t.elems == t.dims[0] * hlo_type(h, piece)->elems);
    memcpy(sizes, t.dims, (size_t)t.rank * sizeof *sizes);
    sizes[0] = 1;
    TypeId part = hlo_type_tensor(h, t.dtype, t.rank, sizes);
    uint32_t n = set_places(w, ops, operands, 1, index, t.rank, loc);
    OpId read = hlo_op(h, HLO_DYNAMIC_SLICE, loc, n, operands, 1, &part);
    hlo_set_ints(h, read, AK_SLICE_SIZES, sizes, (uint32_t)t.rank);
    ValueId there = walk_push_to(w, ops, read);
    return walk_push_to(w, ops, hlo_op(h, HLO_RESHAPE, loc, 1, &there, 1, &piece));
}

ValueId loop_write_piece(Walk *w, OpList *ops, ValueId stack, ValueId piece, ValueId index, LocId loc) {
    Hlo *h = w->hlo;
    ValueId operands[OTRN_MAX_RANK + 2] = {stack};
    TypeId part = stack_type(h, piece, 1), whole = h->values.at[stack].type;
    int rank = hlo_type(h, part)->rank;
    operands[1] = walk_push_to(w, ops, hlo_op(h, HLO_RESHAPE, loc, 1, &piece, 1, &part));
    uint32_t n = set_places(w, ops, operands, 2, index, rank, loc);
    return walk_push_to(w, ops, hlo_op(h, HLO_DYNAMIC_UPDATE_SLICE, loc, n, operands, 1, &whole));
}

// --- stacks of wide values ----------------------------------------------------------------------------

static bool is_zero(const Hlo *h, ValueId v) {
    const HloAttr *one = splat_value(h, v);
    uint64_t bits[2] = {0};
    if (!one || one->n > sizeof bits)
        return false;
    memcpy(bits, one->data, one->n);
    return !bits[0] && !bits[1];
}

// The narrow float that a piece was before it was widened, behind reshapes; 0: it was none.
static ValueId before_widening(const Hlo *h, ValueId piece) {
    const HloOp *op = hlo_def_as(h, before_forms(h, piece), HLO_CONVERT);
    if (!op)
        return 0;
    int from = hlo_value_type(h, hlo_operand(h, op, 0))->dtype, to = hlo_value_type(h, piece)->dtype;
    bool widens = (from == DT_BF16 || from == DT_F16) && (to == DT_F32 || to == DT_F64);
    return widens ? hlo_operand(h, op, 0) : 0;
}

// Who reads the stack computes with its elements, so that converting them there is no walk over memory.
static bool is_computed_with(const Users *u, ValueId whole) {
    for (Reader by = readers_of(u, whole); reader_next(&by);)
        if (u->region[by.id] != u->region[u->h->values.at[whole].def] || !hlo_is_elementwise(by.op))
            return false;
    return users_reads(u, whole) > 0;
}

// Carried value k is a stack that begins as zeros and gets a widened piece in each iteration: the piece before that. 0: it is not.
static ValueId narrow_piece(const Users *u, const HloOp *loop, uint32_t k) {
    const Hlo *h = u->h;
    const HloOp *op = loop_stacks(u, loop, k);
    bool fits = op && is_zero(h, hlo_operand(h, loop, k)) && is_computed_with(u, loop->results + k);
    return fits ? before_widening(h, hlo_operand(h, op, 1)) : 0;
}

typedef struct Narrow {
    Compile *c;
    Hlo *h;
    Walk w;
    Users u;
} Narrow;

static void set_dtype(Hlo *h, ValueId v, int dtype) { h->values.at[v].type = hlo_type_as(h, h->values.at[v].type, dtype); }

// The update takes the narrow piece; a reshape brings it into the form that the wide one had.
static void narrow_update(Narrow *n, RegionId body, OpId update, ValueId narrow) {
    Hlo *h = n->h;
    assert(hlo_at(h, update)->code == HLO_DYNAMIC_UPDATE_SLICE);
    assert(hlo_value_type(h, narrow)->elems == hlo_value_type(h, hlo_operand(h, hlo_at(h, update), 1))->elems);
    OpList ops = {0};
    int dtype = hlo_value_type(h, narrow)->dtype;
    TypeId piece = hlo_type_as(h, h->values.at[hlo_operand(h, hlo_at(h, update), 1)].type, dtype);
    OpId shaped = hlo_op(h, HLO_RESHAPE, hlo_at(h, update)->loc, 1, &narrow, 1, &piece);
    for (uint32_t i = 0; i < h->regions.at[body].ops.n; i++) {
        if (h->regions.at[body].ops.at[i] == update)
            VEC_PUSH(n->c->scratch, &ops, shaped);
        VEC_PUSH(n->c->scratch, &ops, h->regions.at[body].ops.at[i]);
    }
    walk_set_ops(h, body, &ops);
    h->operands.at[hlo_at(h, update)->operands + 1] = hlo_at(h, shaped)->results;
    set_dtype(h, hlo_at(h, update)->results, dtype);
}

static void visit_stacks(void *pass, OpId id) {
    Narrow *n = pass;
    Hlo *h = n->h;
    HloOp loop = *hlo_at(h, id);
    uint32_t first = n->w.out.n;
    OpList behind = {0};
    for (uint32_t k = 0; loop.code == HLO_WHILE && k < loop.noperands; k++) {
        ValueId narrow = narrow_piece(&n->u, &loop, k), whole = loop.results + k;
        if (!narrow)
            continue;
        int dtype = hlo_value_type(h, narrow)->dtype;
        TypeId wide = h->values.at[whole].type;
        RegionId cond = h->op_regions.at[loop.regions], body = h->op_regions.at[loop.regions + 1];
        narrow_update(n, body, h->values.at[hlo_operand(h, region_return(h, &h->regions.at[body]), k)].def, narrow);
        set_dtype(h, whole, dtype), set_dtype(h, h->regions.at[cond].args + k, dtype), set_dtype(h, h->regions.at[body].args + k, dtype);
        h->operands.at[loop.operands + k] = walk_push(&n->w, hlo_op_splat(h, loop.loc, h->values.at[whole].type, (char[16]){0}));
        VEC_PUSH(n->c->scratch, &behind, hlo_op(h, HLO_CONVERT, loop.loc, 1, &whole, 1, &wide));
        walk_grow(&n->w);
        walk_replace(&n->w, whole, hlo_at(h, behind.at[behind.n - 1])->results);
    }
    assert(n->w.out.n - first == behind.n);
    walk_push(&n->w, id);
    for (uint32_t i = 0; i < behind.n; i++)
        walk_push(&n->w, behind.at[i]);
}

void loops_narrow_stacks(Compile *c) {
    Narrow n = {.c = c, .h = c->hlo};
    walk_init(&n.w, c);
    users_make(&n.u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    n.w.depth = WALK_CONTROL;
    walk_rewrite(&n.w, hlo_main(c->hlo)->body, visit_stacks, &n);
}

// --- what is made inside ------------------------------------------------------------------------------

// Made of splats and counts alone.
static bool is_closed(const Hlo *h, ValueId v, int depth) {
    OpId def = h->values.at[v].def;
    const HloOp *op = def ? hlo_at(h, def) : NULL;
    if (!op || op->nresults != 1 || op->nregions || !depth)
        return false;
    if (op->code == HLO_CONSTANT)
        return hlo_value_type(h, v)->elems == 1 || hlo_tensor_is_splat(h, hlo_attr(op, AK_VALUE));
    bool closed = op->code == HLO_IOTA || op->code == HLO_RESHAPE || op->code == HLO_BROADCAST_IN_DIM || hlo_is_elementwise(op);
    for (uint32_t k = 0; k < op->noperands && closed; k++)
        closed = is_closed(h, hlo_operand(h, op, k), depth - 1);
    return closed;
}

static ValueId copy_in(Loops *l, ValueId v, int depth);

static ValueId copy_op(Loops *l, const HloOp *op, int depth) {
    Hlo *h = l->h;
    assert(op->noperands <= 3 && op->nresults == 1 && !op->nregions);
    ValueId operands[3];
    for (uint32_t k = 0; k < op->noperands; k++)
        operands[k] = copy_in(l, hlo_operand(h, op, k), depth);
    OpId made = hlo_op_like(h, op, operands, h->values.at[op->results].type);
    VEC_PUSH(l->c->scratch, &l->made, made);
    walk_grow(&l->w);
    value_map_set(l->c->scratch, &l->inside, op->results, hlo_at(h, made)->results);
    return hlo_at(h, made)->results;
}

// The value as the body has it: a copy of what costs nothing, of a broadcast too, else the value itself.
static ValueId copy_in(Loops *l, ValueId v, int depth) {
    ValueId there = value_map_get(&l->inside, v);
    if (there)
        return there;
    OpId def = l->h->values.at[v].def;
    HloOp op = def ? *hlo_at(l->h, def) : (HloOp){0};
    bool spreads = (op.code == HLO_BROADCAST_IN_DIM || op.code == HLO_RESHAPE) && depth;
    if (!spreads && !is_closed(l->h, v, depth))
        return v;
    return copy_op(l, &op, depth - 1);
}

static void visit(void *pass, OpId id) {
    Loops *l = pass;
    HloOp op = *hlo_at(l->h, id);
    if (op.code != HLO_WHILE) {
        walk_push(&l->w, id);
        return;
    }
    HloRegion cond = *hlo_op_region(l->h, &op, 0), body = *hlo_op_region(l->h, &op, 1);
    const HloOp *ret = region_return(l->h, &body);
    LoopChange ch = {.keep = ARENA_NEWN(l->c->scratch, bool, op.noperands + 1)};
    assert(ret->noperands == op.noperands && body.nargs == op.noperands && cond.nargs == op.noperands);
    uint32_t kept = 0;
    l->inside = (ValueMap){0}, l->made = (OpList){0};
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId outside = hlo_operand(l->h, &op, i);
        kept += ch.keep[i] = hlo_operand(l->h, ret, i) != body.args + i;
        if (ch.keep[i])
            continue;
        walk_replace(&l->w, op.results + i, outside);
        walk_replace(&l->w, cond.args + i, outside);
        ValueId inside = copy_in(l, outside, DEPTH_MAX);
        walk_replace(&l->w, body.args + i, inside);
        ret = region_return(l->h, &body);
    }
    if (kept == op.noperands) {
        walk_push(&l->w, id);
        return;
    }
    OpId made = loop_change(l->c, &l->w, id, &ch);
    RegionId to = l->h->op_regions.at[hlo_at(l->h, made)->regions + 1];
    OpList ops = l->made;
    for (uint32_t i = 0; i < body.ops.n; i++)
        VEC_PUSH(l->c->scratch, &ops, body.ops.at[i]);
    walk_set_ops(l->h, to, &ops);
    walk_region(&l->w, l->h->op_regions.at[hlo_at(l->h, made)->regions]);
    walk_region(&l->w, to);
    walk_push(&l->w, made);
}

void pass_loops(Compile *c) {
    Loops l = {.c = c, .h = c->hlo};
    walk_init(&l.w, c);
    l.w.depth = WALK_CONTROL;
    walk_rewrite(&l.w, hlo_main(c->hlo)->body, visit, &l);
}
