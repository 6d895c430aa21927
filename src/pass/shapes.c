// SPDX-License-Identifier: Apache-2.0
// shapes.c — dimensions of unknown size get their sizes.
// needs: one function; the shapes of its arguments are known (bind.c), or nothing depends on them
// gives: static types everywhere; dynamic_reshape and its kin are reshape and its kin
// stale: nothing
//
// One forward walk. The type of a result follows from its operands (hlo/infer.h). A shape that the
// program computes follows from sizes that are known by then: small tensors whose operands are all
// known are evaluated on the way, and an op that takes its shape as an operand becomes the op that
// has it as an attribute. Loops: a carried value keeps the shape it enters with, and its elements
// when the body hands it on untouched. Branches: when the choice is known, only that one is left.
#include "pass/expand.h"
#include "pass/shapes.h"

#include <string.h>

#include "hlo/eval.h"
#include "hlo/infer.h"

#define SHAPES_MAX_DEPTH 500 // regions inside regions

static void shapes_region(Shapes *s, RegionId r);

void shapes_grow(Shapes *s) {
    walk_grow(&s->w);
    uint32_t want = s->h->values.n;
    if (want <= s->known.n)
        return;
    VEC_RESERVE(s->c->scratch, &s->known, want);
    memset(s->known.at + s->known.n, 0, (want - s->known.n) * sizeof *s->known.at);
    s->known.n = want;
}

void shapes_push(Shapes *s, OpId op) { VEC_PUSH(s->c->scratch, &s->out, op); }

void shapes_refine(Shapes *s, ValueId v, const int64_t *dims) {
    assert(v && v < s->h->values.n);
    HloType t = *hlo_value_type(s->h, v);
    if (t.kind != HT_TENSOR || !t.dynamic)
        return;
    int64_t mine[OTRN_MAX_RANK];
    bool open = false;
    for (int d = 0; d < t.rank; d++) {
        mine[d] = t.dims[d] == HLO_DYNAMIC && dims[d] >= 0 ? dims[d] : t.dims[d];
        open = open || mine[d] == HLO_DYNAMIC;
    }
    t.dims = mine;
    if (!open && t.text && t.text[0] == '#')
        t.text = NULL; // bounds of a size that is known now
    s->h->values.at[v].type = hlo_type_intern(s->h, &t);
}

static void refine_like(Shapes *s, ValueId v, ValueId like) {
    const HloType *a = hlo_value_type(s->h, v), *b = hlo_value_type(s->h, like);
    if (a->kind == HT_TENSOR && b->kind == HT_TENSOR && a->rank == b->rank)
        shapes_refine(s, v, b->dims);
}

bool shapes_ints(const Shapes *s, ValueId v, uint32_t n, int64_t *out) {
    const HloType *t = hlo_value_type(s->h, v);
    assert(v < s->known.n);
    const uint8_t *data = s->known.at[v];
    if (!data || t->elems != n || !(dtype_is_int(t->dtype) || t->dtype == DT_I1))
        return false;
    for (uint32_t i = 0; i < n; i++)
        out[i] = dtype_to_i64(t->dtype, data + i * dtype_bytes(t->dtype));
    return true;
}

// --- values ----------------------------------------------------------------------------------------

static bool is_small(const Hlo *h, ValueId v) {
    const HloType *t = hlo_value_type(h, v);
    return t->kind == HT_TENSOR && !t->dynamic && !t->text && t->elems <= SHAPE_ELEMS_MAX;
}

static void know_constant(Shapes *s, const HloOp *op) {
    if (!is_small(s->h, op->results))
        return;
    void *data = arena_alloc(s->c->scratch, hlo_type_bytes(hlo_value_type(s->h, op->results)) + 1);
    hlo_tensor_expand(s->h, hlo_attr(op, AK_VALUE), data);
    s->known.at[op->results] = data;
}

// A region that returns one op of its arguments, as reductions of sizes have.
static bool is_one_op(const Hlo *h, const HloRegion *r) {
    const HloOp *op = hlo_at(h, r->ops.at[0]);
    if (r->ops.n != 2 || op->nregions)
        return false;
    for (uint32_t i = 0; i < op->noperands; i++) {
        ValueId v = hlo_operand(h, op, i);
        if (v < r->args || v >= r->args + r->nargs)
            return false;
    }
    return hlo_operand(h, hlo_at(h, r->ops.at[1]), 0) == op->results;
}

// Arithmetic, movement, and reductions such as the product of a list of sizes.
static bool may_evaluate(const Hlo *h, const HloOp *op) {
    int cls = hlo_row(op)->cls;
    return op->nresults == 1 && is_small(h, op->results) &&
           (cls <= HC_EW3 || cls == HC_MOVE ||
            (op->code == HLO_REDUCE && is_one_op(h, hlo_op_region(h, op, 0))));
}

// Evaluates an op whose operands are all known.
static void know_results(Shapes *s, OpId id) {
    HloOp op = *hlo_at(s->h, id);
    if (op.code == HLO_CONSTANT) {
        know_constant(s, &op);
        return;
    }
    for (uint32_t i = 0; i < op.noperands; i++)
        if (!s->known.at[hlo_operand(s->h, &op, i)])
            return;
    if (!may_evaluate(s->h, &op))
        return;
    Tensor *in = ARENA_NEWN(s->c->scratch, Tensor, op.noperands + 1), out;
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId v = hlo_operand(s->h, &op, i);
        in[i] = (Tensor){s->h->values.at[v].type, (void *)s->known.at[v]};
    }
    if (eval_op(s->h, s->c->scratch, id, in, &out))
        s->known.at[op.results] = out.data;
}

// --- control flow ----------------------------------------------------------------------------------

static void shapes_while(Shapes *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    RegionId regions[2] = {h->op_regions.at[op.regions], h->op_regions.at[op.regions + 1]};
    HloOp ret = *region_return(s->h, &s->h->regions.at[regions[1]]);
    for (uint32_t i = 0; i < op.noperands; i++) {
        ValueId from = hlo_operand(h, &op, i);
        bool same = hlo_operand(h, &ret, i) == h->regions.at[regions[1]].args + i;
        for (int r = 0; r < 2; r++) {
            ValueId arg = h->regions.at[regions[r]].args + i;
            refine_like(s, arg, from);
            s->known.at[arg] = same ? s->known.at[from] : NULL;
        }
        refine_like(s, op.results + i, from);
        s->known.at[op.results + i] = same ? s->known.at[from] : NULL;
    }
    shapes_region(s, regions[0]);
    shapes_region(s, regions[1]);
    ret = *region_return(s->h, &s->h->regions.at[regions[1]]);
    for (uint32_t i = 0; i < op.noperands; i++) {
        const HloType *a = hlo_value_type(h, hlo_operand(h, &op, i));
        const HloType *b = hlo_value_type(h, hlo_operand(h, &ret, i));
        if (a != b && a->kind == HT_TENSOR && !a->dynamic && !b->dynamic)
            hlo_fail(h, id, OTRN_UNSUPPORTED,
                     "the shape of carried value %u changes from one round to the next", i);
    }
}

// The region that an if or case takes; -1 when that is known only at run time.
static int64_t chosen_branch(const Shapes *s, const HloOp *op) {
    int64_t index;
    if (!shapes_ints(s, hlo_operand(s->h, op, 0), 1, &index))
        return -1;
    if (op->code == HLO_IF)
        return index ? 0 : 1;
    return index < 0 || index >= op->nregions ? op->nregions - 1 : index;
}

// The chosen branch's ops take the place of the op.
static void take_branch(Shapes *s, const HloOp *op, RegionId branch) {
    HloRegion *r = &s->h->regions.at[branch];
    HloOp ret = *region_return(s->h, &s->h->regions.at[branch]);
    for (uint32_t i = 0; i + 1 < r->ops.n; i++)
        shapes_push(s, r->ops.at[i]);
    for (uint32_t i = 0; i < op->nresults; i++)
        walk_replace(&s->w, op->results + i, hlo_operand(s->h, &ret, i));
}

static void shapes_branches(Shapes *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    int64_t only = chosen_branch(s, &op);
    for (uint32_t r = 0; r < op.nregions; r++) {
        if (only >= 0 && only != r)
            continue;
        RegionId branch = h->op_regions.at[op.regions + r];
        shapes_region(s, branch);
        HloOp ret = *region_return(s->h, &s->h->regions.at[branch]);
        for (uint32_t i = 0; only < 0 && i < op.nresults; i++)
            refine_like(s, op.results + i, hlo_operand(h, &ret, i));
    }
    if (only >= 0)
        take_branch(s, &op, h->op_regions.at[op.regions + (uint32_t)only]);
    else
        shapes_push(s, id);
}

// --- the walk --------------------------------------------------------------------------------------

// True when some result became static.
static bool infer_results(Shapes *s, OpId id) {
    HloOp op = *hlo_at(s->h, id);
    bool found = false;
    for (uint32_t k = 0; k < op.nresults; k++) {
        const HloType *t = hlo_value_type(s->h, op.results + k);
        if (t->kind != HT_TENSOR || !t->dynamic)
            continue;
        int64_t dims[OTRN_MAX_RANK];
        memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
        infer_dims(s->h, &op, k, dims);
        shapes_refine(s, op.results + k, dims);
        found = found || !hlo_value_type(s->h, op.results + k)->dynamic;
    }
    return found;
}

static void shapes_op(Shapes *s, OpId id) {
    Hlo *h = s->h;
    walk_operands(&s->w, id);
    HloOp op = *hlo_at(h, id);
    if (op.code == HLO_IF || op.code == HLO_CASE) {
        shapes_branches(s, id);
        return;
    }
    if (op.code == HLO_WHILE)
        shapes_while(s, id);
    else
        for (uint32_t r = 0; r < op.nregions; r++)
            shapes_region(s, h->op_regions.at[op.regions + r]);
    if (!shapes_rewrite(s, id))
        return;
    if (infer_results(s, id))
        shapes_rewrite(s, id); // sizes that the shape operand did not tell
    know_results(s, id);
    shapes_push(s, id);
}

static void shapes_region(Shapes *s, RegionId id) {
    if (++s->depth > SHAPES_MAX_DEPTH)
        ctx_fail(s->h->ctx, OTRN_CAPACITY, (Place){.file = s->h->file},
                 "regions nested deeper than SHAPES_MAX_DEPTH (%d)", SHAPES_MAX_DEPTH);
    uint32_t base = s->out.n;
    for (uint32_t i = 0; i < s->h->regions.at[id].ops.n; i++)
        shapes_op(s, s->h->regions.at[id].ops.at[i]);
    HloRegion *r = &s->h->regions.at[id];
    uint32_t n = s->out.n - base;
    VEC_RESERVE(s->h->arena, &r->ops, n);
    if (n)
        memcpy(r->ops.at, s->out.at + base, n * sizeof *r->ops.at);
    r->ops.n = n;
    s->out.n = base;
    s->depth--;
}

// --- what stays open -------------------------------------------------------------------------------

static int open_dimension(const Hlo *h, ValueId v) {
    const HloType *t = hlo_value_type(h, v);
    for (int d = 0; t->kind == HT_TENSOR && d < t->rank; d++)
        if (t->dims[d] == HLO_DYNAMIC)
            return d;
    return -1;
}

static void check_args(Hlo *h, const HloFunc *f) {
    const HloRegion *r = &h->regions.at[f->body];
    for (uint32_t i = 0; i < r->nargs; i++) {
        int d = open_dimension(h, r->args + i);
        if (d < 0)
            continue;
        Buf text = {.arena = h->arena};
        hlo_print_type(h, h->values.at[r->args + i].type, &text);
        ctx_hint(h->ctx, "run it with --input files, one for each argument in order: it is compiled for their shapes");
        ctx_fail(h->ctx, OTRN_UNSUPPORTED, hlo_place(h, f->loc),
                 "argument %u is %s: the size of its dimension %d comes with the inputs", i,
                 buf_cstr(&text), d);
    }
}

static bool is_assertion(const HloOp *op) {
    return op->code == HLO_CUSTOM_CALL &&
           !strcmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), "shape_assertion");
}

static void check_region(Shapes *s, RegionId id) {
    Hlo *h = s->h;
    for (uint32_t i = 0; i < h->regions.at[id].ops.n; i++) {
        OpId op_id = h->regions.at[id].ops.at[i];
        const HloOp *op = hlo_at(h, op_id);
        for (uint32_t k = 0; k < op->nresults; k++) {
            int d = open_dimension(h, op->results + k);
            if (d >= 0)
                hlo_fail(h, op_id, OTRN_UNSUPPORTED,
                         "the size of dimension %d of result %u does not follow from the shapes of "
                         "the inputs",
                         d, k);
        }
        if (is_assertion(op))
            hlo_fail(h, op_id, OTRN_UNSUPPORTED,
                     "the assertion depends on more than the shapes of the inputs");
        for (uint32_t r = 0; r < op->nregions; r++)
            check_region(s, h->op_regions.at[op->regions + r]);
    }
}

static bool shape_is_data(const HloOp *op) {
    switch (op->code) {
    case HLO_DYNAMIC_BROADCAST_IN_DIM:
    case HLO_DYNAMIC_CONV:
    case HLO_DYNAMIC_GATHER:
    case HLO_DYNAMIC_IOTA:
    case HLO_DYNAMIC_PAD:
    case HLO_DYNAMIC_RESHAPE:
    case HLO_REAL_DYNAMIC_SLICE:
    case HLO_GET_DIMENSION_SIZE:
    case HLO_SET_DIMENSION_SIZE:
        return true;
    case HLO_CUSTOM_CALL:
        return is_assertion(op) ||
               !strncmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), "stablehlo.", 10);
    default:
        return false;
    }
}

bool shapes_needed(const Hlo *h, bool to_eval) {
    for (ValueId v = 1; v < h->values.n; v++)
        if (hlo_value_type(h, v)->dynamic)
            return true;
    for (OpId id = 1; id < h->ops.n; id++) {
        const HloOp *op = hlo_at(h, id);
        bool evaluates = op->code != HLO_CUSTOM_CALL && eval_has(op->code);
        if (shape_is_data(op) && !(to_eval && evaluates))
            return true;
    }
    return false;
}

void pass_shapes(Compile *c) {
    Hlo *h = c->hlo;
    HloFunc *f = hlo_main(h);
    bool needed = shapes_needed(h, false);
    if (needed) {
        check_args(h, f);
        Shapes s = {.c = c, .h = h};
        walk_init(&s.w, c);
        shapes_grow(&s);
        shapes_region(&s, f->body);
        check_region(&s, f->body);
        pass_bind_results(h, f);
    }
    if (!expand_needed(h))
        hlo_keep_only(h, f); // inline may have left functions for custom calls
    if (needed)
        hlo_verify(h); // sizes that came with the inputs may not fit each other
}
