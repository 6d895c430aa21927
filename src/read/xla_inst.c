// SPDX-License-Identifier: Apache-2.0
// xla_inst.c — one HLO instruction: operands, results, regions.
//
// Most are an operation of StableHLO with the same name, written with '-'. The others are told in `renamed` and `special`.
#include "read/xla.h"

#include <string.h>

#include "read/read.h"

enum { INST_OPCODE = 2, INST_SHAPE = 3, INST_LITERAL = 8, INST_PARAMETER = 9, INST_INDEX = 13, INST_TARGET = 28, INST_OPERANDS = 36, INST_CALLED = 38, INST_FRONTEND = 68, SHAPE_LAYOUT = 5 };

typedef struct Inst {
    Xla *x;
    XlaComp *c;
    RegionId into;
    Pb m, shape; // of its value; empty: left out, and what it is made of tells it (xla_open.c)
    const XlaVals *vals; // of the instructions before it
    uint32_t noperands;
    const uint32_t *operands; // instructions
    XlaVals flat;             // all their values
    uint32_t ncalled;
    const int64_t *called;
    const char *opcode;
    LocId loc;
} Inst;

static XlaVals operand(const Inst *i, uint32_t k) {
    if (k >= i->noperands)
        xla_fail(i->x, OTRN_PARSE, "the HLO instruction %.60s has %u operands", i->opcode, i->noperands);
    return i->vals[i->operands[k]];
}

static void operands_read(Inst *i) {
    Xla *x = i->x;
    const int64_t *ids = pb_ints(x, i->m, INST_OPERANDS, &i->noperands);
    uint32_t *at = ARENA_NEWN(x->arena, uint32_t, i->noperands + 1), n = 0;
    for (uint32_t k = 0; k < i->noperands; k++) {
        int64_t index = xla_find(i->c->ids, i->c->ninsts, xla_local(ids[k]));
        if (index < 0 || i->c->insts[index].at >= i->m.at)
            xla_fail(x, OTRN_PARSE, "an instruction of %s has an operand that is not before it", i->c->name);
        at[k] = (uint32_t)index;
        n += i->vals[index].n;
    }
    i->operands = at;
    ValueId *flat = ARENA_NEWN(x->arena, ValueId, n + 1);
    i->flat = (XlaVals){flat, n};
    for (uint32_t k = 0, to = 0; k < i->noperands; to += i->vals[at[k++]].n)
        if (i->vals[at[k]].n)
            memcpy(flat + to, i->vals[at[k]].at, i->vals[at[k]].n * sizeof *flat);
}

static XlaVals results_of(Xla *x, OpId id) {
    const HloOp *op = hlo_at(x->h, id);
    ValueId *at = ARENA_NEWN(x->arena, ValueId, op->nresults + 1u);
    for (uint32_t k = 0; k < op->nresults; k++)
        at[k] = op->results + k;
    return (XlaVals){at, op->nresults};
}

static OpId make(const Inst *i, HloOpcode code, XlaVals operands) {
    XlaTypes types = {0};
    uint32_t open = i->shape.n ? 0 : xla_open_count(code, operands.n);
    if (!open)
        xla_shape(i->x, i->shape, &types);
    for (uint32_t k = 0; k < open && k <= UINT16_MAX; k++)
        VEC_PUSH(i->x->arena, &types, hlo_type_tensor(i->x->h, DT_F32, 0, NULL));
    if (types.n > UINT16_MAX)
        xla_fail(i->x, OTRN_CAPACITY, "an HLO instruction with more than %d results", UINT16_MAX);
    return hlo_op(i->x->h, code, i->loc, operands.n, operands.at, types.n, types.at);
}

static XlaVals put(const Inst *i, OpId id) {
    xla_attrs(i->x, id, i->m);
    if (!i->shape.n)
        xla_open_close(i->x, id, i->opcode);
    hlo_region_push(i->x->h, i->into, id);
    return results_of(i->x, id);
}

// --- regions -----------------------------------------------------------------------------------------

static XlaComp *called(const Inst *i, uint32_t k) {
    if (k >= i->ncalled)
        xla_fail(i->x, OTRN_PARSE, "the HLO instruction %.60s names %u computations", i->opcode, i->ncalled);
    return xla_comp(i->x, i->called[k], i->c);
}

// A region whose arguments are the computation's parameters.
static void region(const Inst *i, OpId id, uint32_t k) {
    Xla *x = i->x;
    XlaComp *c = called(i, k);
    XlaTypes types = {0};
    xla_params(x, c, &types);
    RegionId r = hlo_op_add_region(x->h, id, types.n, types.at);
    xla_return(x, r, xla_build(x, c, r, xla_args(x, c, x->h->regions.at[r].args)));
}

// A branch: it has no arguments and sees the operand.
static void branch(const Inst *i, OpId id, uint32_t k, XlaVals given) {
    Xla *x = i->x;
    XlaComp *c = called(i, k);
    if (c->nparams != 1 || given.n != xla_leaves(x, c->shapes[c->params[0]]))
        xla_fail(x, OTRN_PARSE, "the branch %s takes one parameter of its operand's shape", c->name);
    RegionId r = hlo_op_add_region(x->h, id, 0, NULL);
    xla_return(x, r, xla_build(x, c, r, &given));
}

// --- what has no twin --------------------------------------------------------------------------------

static XlaVals do_parameter(const Inst *i, const XlaVals *params) {
    int64_t k = pb_int(i->x, i->m, INST_PARAMETER);
    return params[k]; // numbered in order: comp_params
}

static XlaVals do_tuple(const Inst *i) { return i->flat; }

static bool has_end(const char *opcode, const char *end) {
    size_t n = strlen(opcode), k = strlen(end);
    return n > k && !strcmp(opcode + n - k, end);
}

static const Pb *members_of(const Inst *i, int64_t *index) { // of the tuple of which it takes an element
    uint32_t members;
    operand(i, 0);
    const Pb *shapes = pb_list(i->x, i->c->shapes[i->operands[0]], 4, &members);
    *index = pb_int(i->x, i->m, INST_INDEX);
    if (*index < 0 || *index >= members)
        xla_fail(i->x, OTRN_PARSE, "a tuple of the HLO module has no element %lld", (long long)*index);
    return shapes;
}

static Pb element_shape(const Inst *i) {
    int64_t index;
    const Pb *shapes = members_of(i, &index);
    return shapes[index];
}

static XlaVals do_element(const Inst *i) {
    Xla *x = i->x;
    XlaVals whole = operand(i, 0);
    int64_t index;
    const Pb *shapes = members_of(i, &index);
    const char *from = pb_text(x, i->c->insts[i->operands[0]], INST_OPCODE);
    if (has_end(from, "-start") || has_end(from, "-update")) // begin()
        xla_fail(x, OTRN_UNSUPPORTED, "a part of the HLO instruction '%.60s' before it is done", from);
    uint32_t first = 0, n = 0;
    for (int64_t k = 0; k <= index; k++, first += k <= index ? n : 0)
        n = xla_leaves(x, shapes[k]);
    if ((uint64_t)first + n > whole.n)
        xla_fail(x, OTRN_PARSE, "a tuple of the HLO module has other elements than its shape");
    return (XlaVals){whole.at + first, n};
}

static XlaVals do_same(const Inst *i) { return operand(i, 0); } // copy, domain, add-dependency

static XlaVals do_constant(const Inst *i) {
    Pb literal = pb_bytes(i->x, i->m, INST_LITERAL);
    OpId id = make(i, HLO_CONSTANT, (XlaVals){NULL, 0});
    const HloOp *op = hlo_at(i->x->h, id);
    if (op->nresults != 1)
        xla_fail(i->x, OTRN_UNSUPPORTED, "a constant of the HLO module that is a tuple");
    HloAttr value = xla_literal(i->x, literal, i->x->h->values.at[op->results].type);
    *hlo_attr_slot(i->x->h, id, AK_VALUE) = value;
    return put(i, id);
}

static XlaVals do_while(const Inst *i) {
    OpId id = make(i, HLO_WHILE, i->flat);
    region(i, id, 1); // XLA names the body first
    region(i, id, 0);
    return put(i, id);
}

static XlaVals do_conditional(const Inst *i) {
    XlaVals index = operand(i, 0);
    if (index.n != 1)
        xla_fail(i->x, OTRN_PARSE, "a conditional of the HLO module is decided by a tuple");
    bool two = hlo_value_type(i->x->h, index.at[0])->dtype == DT_I1;
    OpId id = make(i, two ? HLO_IF : HLO_CASE, index);
    for (uint32_t k = 0; k < i->ncalled; k++)
        branch(i, id, k, operand(i, k + 1));
    return put(i, id);
}

static XlaVals do_call(const Inst *i) { // a fusion is a call to what was fused
    const char *name = xla_func(i->x, called(i, 0));
    OpId id = make(i, HLO_CALL, i->flat);
    *hlo_attr_slot(i->x->h, id, AK_CALLEE) = (HloAttr){.kind = HA_SYM, .n = (uint32_t)strlen(name), .s = name};
    return put(i, id);
}

static ValueId add_op(const Inst *i, HloOpcode code, ValueId v, TypeId type, const int64_t *permutation, int n) {
    OpId id = hlo_op(i->x->h, code, i->loc, 1, &v, 1, &type);
    if (permutation)
        hlo_set_ints(i->x->h, id, AK_PERMUTATION, permutation, (uint32_t)n);
    hlo_region_push(i->x->h, i->into, id);
    return hlo_at(i->x->h, id)->results;
}

// Dimensions of a shape from the outermost in memory; false where its layout does not name each once.
static bool memory_order(Xla *x, Pb shape, int rank, int64_t *order) {
    uint32_t n, seen = 0;
    const int64_t *minor = pb_ints(x, pb_bytes(x, shape, SHAPE_LAYOUT), 1, &n);
    for (int k = 0; k < rank; k++)
        order[k] = n == (uint32_t)rank ? minor[rank - 1 - k] : k;
    for (int k = 0; k < rank; k++)
        seen |= order[k] >= 0 && order[k] < rank ? 1u << order[k] : 0;
    return (!n || n == (uint32_t)rank) && seen == (1u << rank) - 1;
}

// The same bytes as another shape: both sides' layouts say which element is which.
static XlaVals do_bitcast(const Inst *i) {
    Xla *x = i->x;
    XlaVals from = operand(i, 0);
    XlaTypes to = {0};
    xla_shape(x, pb_bytes(x, i->m, INST_SHAPE), &to);
    if (from.n != 1 || to.n != 1)
        xla_fail(x, OTRN_UNSUPPORTED, "the HLO instruction 'bitcast' of a tuple");
    HloType a = *hlo_value_type(x->h, from.at[0]), b = *hlo_type(x->h, to.at[0]);
    int64_t in[OTRN_MAX_RANK], out[OTRN_MAX_RANK], back[OTRN_MAX_RANK], dims[OTRN_MAX_RANK];
    if (a.kind != HT_TENSOR || b.kind != HT_TENSOR || dtype_bytes(a.dtype) != dtype_bytes(b.dtype) || hlo_type_bytes(&a) != hlo_type_bytes(&b) ||
        !memory_order(x, pb_bytes(x, i->c->insts[i->operands[0]], INST_SHAPE), a.rank, in) ||
        !memory_order(x, pb_bytes(x, i->m, INST_SHAPE), b.rank, out))
        xla_fail(x, OTRN_UNSUPPORTED, "this HLO instruction 'bitcast' changes more than shape and type");
    for (int k = 0; k < a.rank; k++)
        dims[k] = a.dims[in[k]];
    ValueId v = add_op(i, HLO_TRANSPOSE, from.at[0], hlo_type_tensor(x->h, a.dtype, a.rank, dims), in, a.rank);
    for (int k = 0; k < b.rank; k++)
        dims[k] = b.dims[out[k]], back[out[k]] = k;
    v = add_op(i, HLO_RESHAPE, v, hlo_type_tensor(x->h, a.dtype, b.rank, dims), NULL, 0);
    if (a.dtype != b.dtype)
        v = add_op(i, HLO_BITCAST_CONVERT, v, hlo_type_tensor(x->h, b.dtype, b.rank, dims), NULL, 0);
    ValueId *made = ARENA_NEW(x->arena, ValueId);
    *made = add_op(i, HLO_TRANSPOSE, v, to.at[0], back, b.rank);
    return (XlaVals){made, 1};
}

// StableHLO's has the shape as an operand, HLO's only in its result.
static XlaVals do_rng(const Inst *i) {
    Hlo *h = i->x->h;
    XlaTypes to = {0};
    xla_shape(i->x, pb_bytes(i->x, i->m, INST_SHAPE), &to);
    if (i->flat.n != 2 || to.n != 1)
        xla_fail(i->x, OTRN_PARSE, "the HLO instruction 'rng' takes two operands and makes one array");
    HloType t = *hlo_type(h, to.at[0]);
    TypeId type = hlo_type_tensor(h, DT_I64, 1, &(int64_t){t.rank});
    OpId shape = hlo_op_constant(h, i->loc, type, t.dims, (size_t)t.rank * sizeof *t.dims);
    hlo_region_push(h, i->into, shape);
    ValueId in[] = {i->flat.at[0], i->flat.at[1], hlo_at(h, shape)->results};
    return put(i, make(i, HLO_RNG, (XlaVals){in, 3}));
}

static const struct {
    const char *opcode;
    XlaVals (*make)(const Inst *i);
} special[] = {
    {"tuple", do_tuple},       {"get-tuple-element", do_element}, {"copy", do_same},   {"domain", do_same},
    {"add-dependency", do_same}, {"constant", do_constant},       {"while", do_while}, {"conditional", do_conditional},
    {"call", do_call},         {"fusion", do_call},               {"bitcast", do_bitcast},
    {"rng", do_rng},           {"copy-start", do_same},           {"async", do_call},
};

static const struct {
    const char *opcode;
    HloOpcode code;
} renamed[] = {
    {"broadcast", HLO_BROADCAST_IN_DIM},
    {"dot", HLO_DOT_GENERAL},
    {"opt-barrier", HLO_OPTIMIZATION_BARRIER},
    {"topk", HLO_CHLO_TOP_K},
};

HloOpcode xla_code(const char *opcode) {
    char name[64];
    size_t n = strlen(opcode) - (has_end(opcode, "-start") ? strlen("-start") : 0);
    for (size_t k = 0; k < sizeof renamed / sizeof *renamed; k++)
        if (!strcmp(renamed[k].opcode, opcode))
            return renamed[k].code;
    for (size_t k = 0; k < n && n < sizeof name; k++)
        name[k] = opcode[k] == '-' ? '_' : opcode[k]; // the first half of an operation says all of it
    HloOpcode code = n < sizeof name ? hlo_op_find("mhlo", 4, name, n) : HLO_NONE;
    bool other = code == HLO_RETURN || code == HLO_SEND || code == HLO_RECV; // those of HLO come in two halves
    return code && hlo_op_rows[code].cls != HC_CTRL && !other ? code : HLO_NONE;
}

// Shardy's mark of a result: the root's sharding says the same.
static bool is_mark(const Inst *i) { return !strcmp(pb_text(i->x, i->m, INST_TARGET), "xla.sdy.FuncResultSharding"); }

// The functions a call names, as what sorts for ApproxTopK.
static void call_names(const Inst *i, OpId id) {
    HloAttr *list = ARENA_NEWN(i->x->arena, HloAttr, i->ncalled + 1);
    for (uint32_t k = 0; k < i->ncalled; k++) {
        const char *name = xla_func(i->x, called(i, k));
        list[k] = (HloAttr){.kind = HA_SYM, .n = (uint32_t)strlen(name), .s = name};
    }
    if (i->ncalled)
        *hlo_attr_slot(i->x->h, id, AK_CALLED_COMPUTATIONS) = (HloAttr){.kind = HA_LIST, .n = i->ncalled, .list = list};
}

// What a call says of devices: its sharding, and at the bounds of a shard_map what Shardy wrote there.
static void call_says(const Inst *i, OpId id) {
    static const char *const bounds[][2] = {{"in_shardings", "xla.sdy.in_shardings"},
                                            {"manual_axes", "xla.sdy.manual_axes"},
                                            {"out_shardings", "xla.sdy.out_shardings"}};
    HloOp *op = hlo_at(i->x->h, id);
    op->extra = xla_sharded(i->x, xla_sharding(i->x, i->m), 0, &op->nextra);
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
        const char *text = xla_frontend(i->x, pb_bytes(i->x, i->m, INST_FRONTEND), bounds[k][1]);
        HloAttr value = {.kind = HA_OPAQUE, .n = text ? (uint32_t)strlen(text) : 0, .s = text};
        if (text)
            op->extra = read_named_with(i->x->h, op->extra, &op->nextra, (HloNamed){bounds[k][0], value});
    }
}

// Operations in two halves, as schedules have them: all of it is done in the first, whose value has operands, results and more;
// the second passes the results on.
static void begin(Inst *i) {
    uint32_t n;
    const Pb *members = pb_list(i->x, i->shape, 4, &n);
    size_t name = strlen(i->opcode) - strlen("-start");
    if (strcmp(i->opcode, "all-reduce-start")) {
        if (n < 2)
            xla_fail(i->x, OTRN_PARSE, "the HLO instruction '%.60s' has no tuple of operands and results", i->opcode);
        i->shape = members[1];
    }
    i->opcode = arena_strndup(i->x->arena, i->opcode, name);
}

// The shape of one that leaves it out where another instruction has it; empty where only the operation's own rules tell it.
static Pb shape_elsewhere(const Inst *i) {
    static const char *const as_operand[] = {"copy", "domain", "add-dependency", "opt-barrier", "while"};
    Pb *members = ARENA_NEWN(i->x->arena, Pb, i->noperands + 1);
    for (uint32_t k = 0; k < i->noperands; k++)
        members[k] = i->c->shapes[i->operands[k]];
    if (!strcmp(i->opcode, "tuple"))
        return xla_open_tuple(i->x, members, i->noperands);
    if (!strcmp(i->opcode, "get-tuple-element"))
        return element_shape(i);
    for (size_t k = 0; k < sizeof as_operand / sizeof *as_operand; k++)
        if (!strcmp(as_operand[k], i->opcode))
            return members[0];
    if (!strcmp(i->opcode, "call") || !strcmp(i->opcode, "fusion"))
        xla_func(i->x, called(i, 0));
    else if (strcmp(i->opcode, "conditional"))
        return (Pb){0};
    XlaComp *c = called(i, 0);
    if (!c->shapes[c->root].n && c->nparams == 1) { // a branch that was built nowhere yet: built once into no operation
        XlaVals given = operand(i, 1);
        xla_build(i->x, c, hlo_region(i->x->h, 0, 0, NULL), &given);
    }
    return c->shapes[c->root];
}

static XlaVals build(Inst *i, const XlaVals *params) {
    Xla *x = i->x;
    if (!strcmp(i->opcode, "parameter"))
        return do_parameter(i, params);
    i->called = pb_ints(x, i->m, INST_CALLED, &i->ncalled);
    operands_read(i);
    if (!i->shape.n)
        i->shape = shape_elsewhere(i);
    if (has_end(i->opcode, "-done") || has_end(i->opcode, "-update"))
        return do_same(i);
    if (has_end(i->opcode, "-start") && strcmp(i->opcode, "copy-start"))
        begin(i);
    for (size_t k = 0; k < sizeof special / sizeof *special; k++)
        if (!strcmp(special[k].opcode, i->opcode))
            return special[k].make(i);
    HloOpcode code = xla_code(i->opcode);
    if (!code)
        xla_fail(x, OTRN_UNSUPPORTED, "the HLO instruction '%.60s' is not known to opentrn", i->opcode);
    if (code == HLO_CUSTOM_CALL && is_mark(i))
        return do_same(i);
    OpId id = make(i, code, i->flat);
    if (code == HLO_CUSTOM_CALL) {
        call_names(i, id);
        call_says(i, id);
    }
    for (int k = 0; k < hlo_op_rows[code].regions; k++)
        region(i, id, (uint32_t)k);
    return put(i, id);
}

XlaVals xla_inst(Xla *x, XlaComp *c, RegionId into, uint32_t index, const XlaVals *vals, const XlaVals *params) {
    Pb m = c->insts[index];
    Inst i = {.x = x, .c = c, .into = into, .m = m, .vals = vals, .opcode = pb_text(x, m, INST_OPCODE), .loc = xla_loc(x, m)};
    i.shape = pb_bytes(x, m, INST_SHAPE);
    x->loc = i.loc;
    XlaVals made = build(&i, params);
    x->shape = pb_bytes(x, m, INST_SHAPE);
    if (!x->shape.n)
        x->shape = i.shape.n ? i.shape : xla_open_shape(x, made);
    return made;
}
