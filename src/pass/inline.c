// SPDX-License-Identifier: Apache-2.0
// inline.c — one function is left: calls and composites become the ops they stand for.
// needs: a verified module
// gives: the entry function without calls, composites, tuples or casts
// stale: nothing (other functions are dropped, unless a custom call names one)
//
// The call graph is walked depth first with an explicit limit, so recursion in a hostile program is an
// error. Functions that call each other twice make a program of any size from a few lines: what comes out is counted before
// it is made. Each call site gets fresh ops; a table maps the callee's values to the copies and is reused,
// since a value is mapped before it is read.
#include <assert.h>
#include <string.h>

#include "hlo/verify.h"
#include "pass/walk.h"

#define CALL_DEPTH_MAX 256
#define INLINE_OPS_MAX 1000000u // half a minute and a gigabyte
#define NAME_MAX_BYTES 1000u // of a path of names

typedef struct Inline {
    Compile *c;
    Hlo *h;
    ValueMap map; // value of the source body -> value of the copy
    VEC(uint32_t) tuple; // value -> index into tuple_items + 1, for tuple values
    VEC(ValueId) tuple_items; // a count, then that many members; and the next
    uint32_t depth;
    LocId call; // of the call being taken in; 0: none
} Inline;

static void copy_region(Inline *in, RegionId from, RegionId to);
static void copy_ops(Inline *in, RegionId from, RegionId to, bool without_return);

static void map_set(Inline *in, ValueId from, ValueId to) { value_map_set(in->c->scratch, &in->map, from, to); }

static ValueId map_get(Inline *in, ValueId v) {
    ValueId to = value_map_get(&in->map, v);
    assert(to);
    return to;
}

static ValueId *operands_of(Inline *in, const HloOp *op) { // as they are found now
    ValueId *at = ARENA_NEWN(in->c->scratch, ValueId, op->noperands + 1);
    for (uint32_t i = 0; i < op->noperands; i++)
        at[i] = map_get(in, hlo_operand(in->h, op, i));
    return at;
}

// Values from `first` on are what the op is given: a body's arguments by who calls it, a call's results by the body's return.
static void map_given(Inline *in, ValueId first, uint32_t n, const HloOp *op) {
    assert(n <= op->noperands);
    for (uint32_t i = 0; i < n; i++)
        map_set(in, first + i, map_get(in, hlo_operand(in->h, op, i)));
}

// Names inside a function that is called in several places begin anew: the call's come before them.
static const char *name_of(Inline *in, LocId loc) {
    const char *name = hlo_loc_name(in->h, loc), *outer = hlo_loc_name(in->h, in->call);
    size_t root = strcspn(outer, "/");
    bool whole = !*name || !*outer || (!strncmp(name, outer, root) && (!name[root] || name[root] == '/'));
    return whole || strlen(outer) + strlen(name) > NAME_MAX_BYTES ? name : arena_printf(in->c->scratch, "%s/%s", outer, name);
}

// Front ends give the ops of a function they call in several places a name only: the place is the call's, unless
// that has none either and the program's text says more.
static LocId loc_of(Inline *in, LocId loc) {
    if (!in->call)
        return loc;
    const char *name = name_of(in, loc);
    bool own = hlo_loc_is_users(in->h, loc) || (hlo_place(in->h, loc).line && !hlo_loc_is_users(in->h, in->call));
    if (own && !strcmp(name, hlo_loc_name(in->h, loc)))
        return loc;
    return hlo_loc(in->h, &(HloLoc){.kind = HL_NAME, .str = hlo_str(in->h, name, strlen(name)), .a = own ? loc : in->call});
}

// Passes its operands on, or only kept them from being left out earlier.
static bool is_identity_call(const Hlo *h, const HloOp *op) {
    const char *target = hlo_attr_str(op, AK_CALL_TARGET_NAME);
    if (hlo_call_passes_on(target) != HLO_CALL_ANNOTATES)
        return !op->nresults && !strcmp(target, "dce_sink");
    bool same = op->noperands == op->nresults;
    for (uint32_t i = 0; same && i < op->nresults; i++)
        same = verify_type_same(hlo_value_type(h, hlo_operand(h, op, i)), hlo_value_type(h, op->results + i));
    return same;
}

static void inline_call(Inline *in, OpId id, const char *callee, RegionId to) {
    Hlo *h = in->h;
    HloFunc *f = hlo_func_find(h, callee);
    if (!f || !f->body)
        hlo_fail(h, id, OTRN_VERIFY, "calls @%s, which is not defined", callee);
    if (++in->depth > CALL_DEPTH_MAX)
        hlo_fail(h, id, OTRN_CAPACITY, "calls nest deeper than %d (recursion is not supported)",
                 CALL_DEPTH_MAX);
    HloRegion body = h->regions.at[f->body];
    HloOp op = *hlo_at(h, id);
    LocId outer = in->call;
    in->call = loc_of(in, op.loc);
    if (body.nargs != op.noperands)
        hlo_fail(h, id, OTRN_VERIFY, "passes %u values to @%s, which takes %u", op.noperands, callee,
                 body.nargs);
    map_given(in, body.args, body.nargs, &op);
    copy_region(in, f->body, to);
    OpId last = h->regions.at[f->body].ops.at[h->regions.at[f->body].ops.n - 1];
    HloOp ret = *hlo_at(h, last);
    if (ret.noperands != op.nresults)
        hlo_fail(h, id, OTRN_VERIFY, "expects %u results of @%s, which returns %u", op.nresults,
                 callee, ret.noperands);
    map_given(in, op.results, op.nresults, &ret);
    in->call = outer;
    in->depth--;
}

// A tuple is a name for its members: nothing is copied.
static void note_tuple(Inline *in, ValueId tuple, uint32_t n, const ValueId *members) {
    Hlo *h = in->h;
    ValueId stand_in = hlo_value(h, h->values.at[tuple].type);
    VEC_RESERVE(in->c->scratch, &in->tuple, h->values.n);
    memset(in->tuple.at + in->tuple.n, 0, (h->values.n - in->tuple.n) * sizeof *in->tuple.at);
    in->tuple.n = h->values.n;
    in->tuple.at[stand_in] = in->tuple_items.n + 1;
    VEC_PUSH(in->c->scratch, &in->tuple_items, n);
    for (uint32_t i = 0; i < n; i++)
        VEC_PUSH(in->c->scratch, &in->tuple_items, members[i]);
    map_set(in, tuple, stand_in);
}

// … the operands of an op.
static void note_members(Inline *in, ValueId tuple, OpId members) {
    HloOp op = *hlo_at(in->h, members);
    note_tuple(in, tuple, op.noperands, operands_of(in, &op));
}

// XLA's own calls give a tuple of tensors where StableHLO's ops have several results; false: not such a call.
static bool copy_tuple_call(Inline *in, OpId id, RegionId to) {
    Hlo *h = in->h;
    HloOp op = *hlo_at(h, id);
    HloType t = *hlo_value_type(h, op.results);
    bool flat = op.nresults == 1 && t.kind == HT_TUPLE;
    for (uint32_t i = 0; flat && i < t.nmembers; i++)
        flat = hlo_type(h, t.members[i])->kind == HT_TENSOR;
    if (!flat)
        return false;
    ValueId *members = ARENA_NEWN(in->c->scratch, ValueId, t.nmembers + 1);
    OpId copy = hlo_op(h, op.code, loc_of(in, op.loc), op.noperands, operands_of(in, &op), t.nmembers, t.members);
    HloOp *made = hlo_at(h, copy);
    made->attrs = op.attrs;
    made->extra = op.extra, made->nextra = op.nextra;
    for (uint32_t i = 0; i < t.nmembers; i++)
        members[i] = made->results + i;
    hlo_region_push(h, to, copy);
    note_tuple(in, op.results, t.nmembers, members);
    return true;
}

// What was started is done at once: the region's ops come here, and the future is a tuple of what it
// returns.
static void inline_async(Inline *in, OpId id, RegionId to) {
    Hlo *h = in->h;
    HloOp op = *hlo_at(h, id);
    RegionId from = h->op_regions.at[op.regions];
    HloRegion body = h->regions.at[from];
    if (body.nargs != op.noperands)
        hlo_fail(h, id, OTRN_VERIFY, "passes %u values to a region that takes %u", op.noperands, body.nargs);
    map_given(in, body.args, body.nargs, &op);
    copy_ops(in, from, to, true);
    note_members(in, op.results, body.ops.at[body.ops.n - 1]);
}

// A region with a name comes here; what it returns are the results.
static void inline_named(Inline *in, OpId id, RegionId to) {
    Hlo *h = in->h;
    HloOp op = *hlo_at(h, id);
    RegionId from = h->op_regions.at[op.regions];
    HloRegion body = h->regions.at[from];
    map_given(in, body.args, body.nargs, &op);
    copy_ops(in, from, to, true);
    HloOp ret = *hlo_at(h, body.ops.at[body.ops.n - 1]);
    map_given(in, op.results, op.nresults, &ret);
}

static void finish_async(Inline *in, OpId id) {
    Hlo *h = in->h;
    HloOp op = *hlo_at(h, id);
    ValueId t = map_get(in, hlo_operand(h, &op, 0));
    uint32_t at = t < in->tuple.n ? in->tuple.at[t] : 0;
    if (!at)
        hlo_fail(h, id, OTRN_UNSUPPORTED, "its future does not come from async_start");
    if (in->tuple_items.at[at - 1] != op.nresults)
        hlo_fail(h, id, OTRN_VERIFY, "returns %u values, its region %u", op.nresults,
                 in->tuple_items.at[at - 1]);
    for (uint32_t i = 0; i < op.nresults; i++)
        map_set(in, op.results + i, in->tuple_items.at[at + i]);
}

// The old form of all_reduce: adds over replicas.
static void copy_cross_replica_sum(Inline *in, OpId id, RegionId to) {
    Hlo *h = in->h;
    HloOp op = *hlo_at(h, id);
    ValueId operand = map_get(in, hlo_operand(h, &op, 0));
    TypeId type = h->values.at[op.results].type;
    TypeId scalar = hlo_type_tensor(h, hlo_type(h, type)->dtype, 0, NULL);
    OpId sum = hlo_op(h, HLO_ALL_REDUCE, op.loc, 1, &operand, 1, &type);
    *hlo_attr_slot(h, sum, AK_REPLICA_GROUPS) = *hlo_attr(&op, AK_REPLICA_GROUPS);
    *hlo_attr_slot(h, sum, AK_CHANNEL_ID) = (HloAttr){.kind = HA_INT};
    *hlo_attr_slot(h, sum, AK_USE_GLOBAL_DEVICE_IDS) = (HloAttr){.kind = HA_BOOL};
    hlo_op_add_combiner(h, sum, HLO_ADD, scalar);
    hlo_region_push(h, to, sum);
    map_set(in, op.results, hlo_at(h, sum)->results);
}

static bool take_tuple_element(Inline *in, OpId id) {
    Hlo *h = in->h;
    const HloOp *op = hlo_at(h, id);
    ValueId t = map_get(in, hlo_operand(h, op, 0));
    if (t >= in->tuple.n || !in->tuple.at[t])
        return false;
    int64_t index = hlo_int(op, AK_INDEX, -1);
    if (index < 0 || index >= hlo_type(h, h->values.at[t].type)->nmembers)
        hlo_fail(h, id, OTRN_VERIFY, "index %lld is outside the tuple", (long long)index);
    map_set(in, op->results, in->tuple_items.at[in->tuple.at[t] + (uint32_t)index]);
    return true;
}

static void copy_op(Inline *in, OpId id, RegionId to) {
    Hlo *h = in->h;
    HloOp op = *hlo_at(h, id);
    TypeId *types = ARENA_NEWN(in->c->scratch, TypeId, op.nresults + 1u);
    for (uint32_t i = 0; i < op.nresults; i++)
        types[i] = h->values.at[op.results + i].type;
    OpId copy = hlo_op(h, op.code, loc_of(in, op.loc), op.noperands, operands_of(in, &op), op.nresults, types);
    HloOp *made = hlo_at(h, copy);
    made->attrs = op.attrs; // contents are never changed in place once shared
    made->extra = op.extra;
    made->nextra = op.nextra;
    for (uint32_t i = 0; i < op.nresults; i++)
        map_set(in, op.results + i, made->results + i);
    for (uint32_t r = 0; r < op.nregions; r++) {
        RegionId from = h->op_regions.at[op.regions + r];
        HloRegion src = h->regions.at[from];
        TypeId *arg_types = ARENA_NEWN(in->c->scratch, TypeId, src.nargs + 1);
        for (uint32_t i = 0; i < src.nargs; i++)
            arg_types[i] = h->values.at[src.args + i].type;
        RegionId dst = hlo_op_add_region(h, copy, src.nargs, arg_types);
        for (uint32_t i = 0; i < src.nargs; i++)
            map_set(in, src.args + i, h->regions.at[dst].args + i);
        copy_region(in, from, dst);
    }
    hlo_region_push(h, to, copy);
}

// expect_eq_const and its kin carry the expected value as an attribute: make it an operand.
static void copy_const_check(Inline *in, OpId id, RegionId to) {
    Hlo *h = in->h;
    HloOp op = *hlo_at(h, id);
    HloAttr value = *hlo_attr(&op, AK_VALUE);
    OpId constant = hlo_op(h, HLO_CONSTANT, op.loc, 0, NULL, 1, &value.type);
    *hlo_attr_slot(h, constant, AK_VALUE) = value;
    hlo_region_push(h, to, constant);
    ValueId operands[2] = {map_get(in, hlo_operand(h, &op, 0)), hlo_at(h, constant)->results};
    bool almost = op.code == HLO_CHECK_EXPECT_ALMOST_EQ_CONST;
    OpId check = hlo_op(h, almost ? HLO_CHECK_EXPECT_ALMOST_EQ : HLO_CHECK_EXPECT_EQ, op.loc, 2,
                        operands, 0, NULL);
    if (almost)
        *hlo_attr_slot(h, check, AK_TOLERANCE) = op.attrs[0];
    hlo_region_push(h, to, check);
}

// Copies a region's ops to the end of another, inlining on the way. A function's own RETURN is left to
// the caller; a nested region's RETURN is copied like any op.
static void copy_region(Inline *in, RegionId from, RegionId to) {
    copy_ops(in, from, to, in->h->regions.at[from].parent == 0);
}

static void copy_ops(Inline *in, RegionId from, RegionId to, bool without_return) {
    Hlo *h = in->h;
    for (uint32_t i = 0; i < h->regions.at[from].ops.n; i++) {
        OpId id = h->regions.at[from].ops.at[i];
        const HloOp *op = hlo_at(h, id);
        switch (op->code) {
        case HLO_RETURN:
            if (!without_return)
                copy_op(in, id, to);
            continue;
        case HLO_CALL:
            inline_call(in, id, hlo_attr_str(op, AK_CALLEE), to);
            continue;
        case HLO_COMPOSITE:
            inline_call(in, id, hlo_attr_str(op, AK_DECOMPOSITION), to);
            continue;
        case HLO_CHECK_EXPECT_EQ_CONST:
        case HLO_CHECK_EXPECT_ALMOST_EQ_CONST:
            copy_const_check(in, id, to);
            continue;
        case HLO_TUPLE:
            note_members(in, op->results, id);
            continue;
        case HLO_ASYNC_START:
            inline_async(in, id, to);
            continue;
        case HLO_SDY_NAMED_COMPUTATION:
            inline_named(in, id, to);
            continue;
        case HLO_ASYNC_DONE:
            finish_async(in, id);
            continue;
        case HLO_CROSS_REPLICA_SUM:
            copy_cross_replica_sum(in, id, to);
            continue;
        case HLO_INTERPRETER_PRINT:
            continue;
        case HLO_GET_TUPLE_ELEMENT:
            if (!take_tuple_element(in, id))
                copy_op(in, id, to);
            continue;
        case HLO_UNREALIZED_CAST:
        case HLO_INTERPRETER_PROBE:
            map_given(in, op->results, op->nresults < op->noperands ? op->nresults : op->noperands, op);
            continue;
        case HLO_CUSTOM_CALL:
            if (is_identity_call(h, op)) {
                map_given(in, op->results, op->nresults, op);
                continue;
            }
            if (copy_tuple_call(in, id, to))
                continue;
            break;
        default:
            break;
        }
        copy_op(in, id, to);
    }
}

// --- how much it will be -----------------------------------------------------------------------------------

typedef struct Sizes {
    Hlo *h;
    uint64_t *of; // function -> operations of its body, those of its calls included; 0: not known yet
    uint32_t depth;
} Sizes;

static uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static uint64_t region_size(Sizes *s, RegionId region);

static uint64_t op_size(Sizes *s, const HloOp *op) {
    Hlo *h = s->h;
    uint64_t n = 1;
    for (uint32_t r = 0; r < op->nregions; r++)
        n = plus(n, region_size(s, h->op_regions.at[op->regions + r]));
    if (op->code != HLO_CALL && op->code != HLO_COMPOSITE)
        return n;
    const HloFunc *f = hlo_func_find(h, hlo_attr_str(op, op->code == HLO_CALL ? AK_CALLEE : AK_DECOMPOSITION));
    if (!f || !f->body || s->depth >= CALL_DEPTH_MAX) // an error of its own
        return n;
    uint64_t *size = &s->of[f - h->funcs.at];
    if (!*size) {
        *size = 1; // one that calls itself is an error of its own too
        s->depth++;
        *size = region_size(s, f->body);
        s->depth--;
    }
    return plus(n, *size);
}

static uint64_t region_size(Sizes *s, RegionId region) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->h->regions.at[region].ops.n; i++)
        n = plus(n, op_size(s, hlo_at(s->h, s->h->regions.at[region].ops.at[i])));
    return n;
}

// What the text has by itself may be as large as it is.
static void check_size(Compile *c, const HloFunc *f) {
    Hlo *h = c->hlo;
    Sizes s = {.h = h, .of = ARENA_NEWN(c->scratch, uint64_t, h->funcs.n + 1)};
    uint64_t total = region_size(&s, f->body), so_far = 0, limit = h->ops.n > INLINE_OPS_MAX ? h->ops.n : INLINE_OPS_MAX;
    for (uint32_t i = 0; total > limit && i < h->regions.at[f->body].ops.n; i++) {
        OpId id = h->regions.at[f->body].ops.at[i];
        so_far = plus(so_far, op_size(&s, hlo_at(h, id)));
        if (so_far <= limit)
            continue;
        ctx_hint(c->ctx, "a loop (stablehlo.while) has its body once, however often it turns");
        hlo_fail(h, id, OTRN_CAPACITY, "the program has %s%llu operations when its calls are inlined, more than the limit of %u",
                 total == UINT64_MAX ? "over " : "", (unsigned long long)total, INLINE_OPS_MAX);
    }
}

void inline_body(Compile *c, const HloFunc *f, RegionId to) {
    Hlo *h = c->hlo;
    check_size(c, f);
    assert(f->body && f->body != to);
    assert(h->regions.at[f->body].nargs <= h->regions.at[to].nargs);
    HloRegion src = h->regions.at[f->body];
    Inline in = {.c = c, .h = h};
    for (uint32_t i = 0; i < src.nargs; i++)
        map_set(&in, src.args + i, h->regions.at[to].args + i);
    copy_region(&in, f->body, to);
    copy_op(&in, src.ops.at[src.ops.n - 1], to); // its own RETURN
}

// A custom call may name functions that a later pass takes in.
static bool has_called_computations(const Hlo *h) {
    for (OpId id = 1; id < h->ops.n; id++) {
        const HloAttr *a = hlo_attr(hlo_at(h, id), AK_CALLED_COMPUTATIONS);
        if (a && a->n)
            return true;
    }
    return false;
}

void pass_inline(Compile *c) {
    Hlo *h = c->hlo;
    uint32_t main_index = (uint32_t)(hlo_main(h) - h->funcs.at);
    HloRegion src = h->regions.at[h->funcs.at[main_index].body];
    TypeId *types = ARENA_NEWN(c->scratch, TypeId, src.nargs + 1);
    for (uint32_t i = 0; i < src.nargs; i++)
        types[i] = h->values.at[src.args + i].type;
    RegionId to = hlo_region(h, 0, src.nargs, types);
    inline_body(c, &h->funcs.at[main_index], to);
    h->funcs.at[main_index].body = to;
    if (!has_called_computations(h))
        hlo_keep_only(h, &h->funcs.at[main_index]);
}
