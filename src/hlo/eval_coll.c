// SPDX-License-Identifier: Apache-2.0
// eval_coll.c — collectives: the devices of a group meet, each computes its own result.
//
// Everything that may be wrong with this device's operands is checked before the meeting; what the
// others bring has the same types, since posts of another signature do not meet (coll/comm.h).
// Reductions follow the tree over the group's positions (coll/tree.h).
#include "coll/bring.h"
#include "coll/tree.h"
#include "hlo/coll.h"
#include "hlo/eval_in.h"

typedef struct Meeting {
    Members members;
    CommPost post;
    CommBuf *bufs;
    bool met; // with others, to be left
} Meeting;

// --- meeting -----------------------------------------------------------------------------------

static Groups groups_of(Eval *e, OpId id) {
    const HloOp *op = eval_op_at(e, id);
    Groups g;
    if (!coll_groups(op->code, op->attrs, &g))
        eval_fail(e, id, OTRN_UNSUPPORTED, "its groups are no table of devices");
    return g;
}

static Meeting *meeting_make(Eval *e, OpId id) {
    char why[COMM_WHY_BYTES];
    Groups g = groups_of(e, id);
    Meeting *m = ARENA_NEW(e->cur, Meeting);
    if (!groups_members(&g, coll_grid(e->comm), coll_rank(e->comm), &m->members, why, sizeof why))
        eval_fail(e, id, OTRN_CHECK, "%s", why);
    return m;
}

static void need_group(Eval *e, OpId id, const Meeting *m) {
    Grid g = coll_grid(e->comm);
    uint32_t rank = coll_rank(e->comm);
    if (!m->members.n)
        eval_fail(e, id, OTRN_CHECK, "replica %u, partition %u is in none of its groups",
                  grid_replica(g, rank), grid_partition(g, rank));
}

// `shapes` devices would make the result's shape from the operand's.
static void need_size(Eval *e, OpId id, const Meeting *m, int64_t shapes) {
    if (shapes != m->members.n)
        eval_fail(e, id, OTRN_CHECK, "its shapes are for groups of %lld devices, this one has %u",
                  (long long)shapes, m->members.n);
}

static uint64_t signature(Eval *e, OpId id) {
    const HloOp *op = eval_op_at(e, id);
    uint64_t s = coll_sign(op->code, op->attrs);
    for (uint32_t i = 0; i < op->noperands + op->nresults; i++) {
        ValueId v = i < op->noperands ? hlo_operand(e->h, op, i) : op->results + i - op->noperands;
        const HloType *t = hlo_value_type(e->h, v);
        s = coll_sign_type(s, t->dtype, t->rank, t->dims);
    }
    return s;
}

static void meeting_begin(Eval *e, OpId id, Meeting *m, const Tensor *in) {
    const HloOp *op = eval_op_at(e, id);
    m->bufs = ARENA_NEWN(e->cur, CommBuf, op->noperands + 1);
    for (uint32_t i = 0; i < op->noperands; i++)
        m->bufs[i] = (CommBuf){.in = in[i].data, .in_bytes = hlo_type_bytes(eval_type(e, in[i]))};
    m->post = (CommPost){.signature = signature(e, id),
                         .program = e->program,
                         .op = id,
                         .name = hlo_row(op)->name,
                         .nbufs = op->noperands,
                         .bufs = m->bufs};
    m->met = m->members.n > 1;
    if (m->met && !comm_meet(e->comm, &m->post, m->members.rank, m->members.n))
        eval_fail(e, id, OTRN_CHECK, "%s", comm_why(e->comm));
}

static const uint8_t *meeting_in(Eval *e, const Meeting *m, uint32_t position, uint32_t operand) {
    bool part;
    return m->met ? comm_in(e->comm, position, operand, &part) : m->bufs[operand].in;
}

static void meeting_end(Eval *e, Meeting *m) {
    if (m->met)
        comm_leave(e->comm);
}

static void zero(Eval *e, Tensor *out) {
    out->data = eval_new(e, out->type);
    memset(out->data, 0, hlo_type_bytes(eval_type(e, *out)));
}

// --- reductions --------------------------------------------------------------------------------

// cross-replica-sum has no region: it adds.
static Body body_of(Eval *e, OpId id, const Tensor *in, const Tensor *out) {
    const HloType *t = eval_type(e, *in);
    if (eval_op_at(e, id)->code != HLO_CROSS_REPLICA_SUM) {
        Body b = eval_body(e, id, 0, 2, 1);
        const HloOp *ret = eval_op_at(e, b.region->ops.at[b.region->ops.n - 1]);
        eval_need(e, id,
                  eval_body_arg(e, &b, 1)->dtype == b.dtype &&
                      hlo_value_type(e->h, hlo_operand(e->h, ret, 0))->dtype == b.dtype,
                  "the region must keep its argument types");
        eval_need(e, id, eval_type(e, *out)->dtype == b.dtype,
                  "the result's element type is the region's");
        return b;
    }
    Body b = {
        .op = id, .nargs = 2, .nresults = 1, .fn = eval_ew(HLO_ADD, t->dtype), .dtype = t->dtype};
    eval_need(e, id, b.fn && eval_type(e, *out)->dtype == t->dtype, "adds numbers of one type");
    return b;
}

// One element of the result from element `at` of every member's operand.
static void reduce_one(Eval *e, const Meeting *m, const Body *b, uint32_t operand, int dtype,
                       int64_t at, void *dst) {
    int64_t off = at * (int64_t)dtype_bytes(dtype);
    uint8_t stack[TREE_DEPTH][16];
    uint32_t depth = 0;
    for (uint32_t p = 0; p < m->members.n; p++) {
        eval_cast_one(dtype, b->dtype, meeting_in(e, m, p, operand) + off, stack[depth++]);
        for (uint32_t f = tree_folds(tree_leaf(p), m->members.n, depth); f; f--, depth--) {
            void *sum = stack[depth - 2];
            eval_body_call(e, b, (const void *[2]){sum, stack[depth - 1]}, &sum);
        }
    }
    memcpy(dst, stack[0], dtype_bytes(b->dtype));
}

static void reduce_all(Eval *e, const Meeting *m, const Body *b, uint32_t operand, Tensor in,
                       Tensor *out) {
    const HloType *t = eval_type(e, in);
    for (int64_t i = 0; i < t->elems; i++)
        reduce_one(e, m, b, operand, t->dtype, i,
                   (uint8_t *)out->data + i * (int64_t)dtype_bytes(b->dtype));
}

// Position in the group that operand k comes from or goes to: the first, or what the last operand
// says.
static uint32_t root_of(Eval *e, OpId id, const Tensor *in, const Meeting *m, uint32_t k) {
    const HloOp *op = eval_op_at(e, id);
    if (!hlo_int(op, AK_HAS_DYNAMIC_ROOT, 0))
        return 0;
    const HloType *t = eval_type(e, in[op->nresults]);
    int64_t root =
        dtype_to_i64(t->dtype, (const uint8_t *)in[op->nresults].data + k * dtype_bytes(t->dtype));
    if (root < 0 || root >= m->members.n)
        eval_fail(e, id, OTRN_CHECK, "root %lld of a group of %u devices", (long long)root,
                  m->members.n);
    return (uint32_t)root;
}

static void need_root(Eval *e, OpId id, const Tensor *in) {
    const HloOp *op = eval_op_at(e, id);
    bool dynamic = hlo_int(op, AK_HAS_DYNAMIC_ROOT, 0);
    eval_need(e, id, op->noperands == op->nresults + (dynamic ? 1u : 0u),
              "one result for each operand");
    if (!dynamic)
        return;
    const HloType *t = eval_type(e, in[op->nresults]);
    eval_need(e, id, dtype_is_int(t->dtype) && t->elems == op->nresults,
              "one root for each operand");
}

void eval_all_reduce(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    bool rooted = op->code == HLO_COLLECTIVE_REDUCE;
    need_root(e, id, in);
    Meeting *m = meeting_make(e, id);
    if (!rooted)
        need_group(e, id, m);
    Body *b = ARENA_NEWN(e->cur, Body, op->nresults + 1u);
    bool *mine = ARENA_NEWN(e->cur, bool, op->nresults + 1u);
    for (uint32_t k = 0; k < op->nresults; k++) {
        b[k] = body_of(e, id, &in[k], &out[k]);
        eval_need(e, id, hlo_same_dims(eval_type(e, in[k]), eval_type(e, out[k])),
                  "operand and result have one shape");
        mine[k] = m->members.n && (!rooted || root_of(e, id, in, m, k) == m->members.mine);
        zero(e, &out[k]);
    }
    meeting_begin(e, id, m, in);
    for (uint32_t k = 0; k < op->nresults; k++)
        if (mine[k])
            reduce_all(e, m, &b[k], k, in[k], &out[k]);
    meeting_end(e, m);
}

static Body scatter_begin(Eval *e, OpId id, const Meeting *m, int64_t dim, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, *in), *r = eval_type(e, *out);
    Body b = body_of(e, id, in, out);
    eval_need(e, id, dim >= 0 && dim < t->rank && t->rank == r->rank,
              "scatter_dimension is one of the operand's");
    for (int d = 0; d < t->rank; d++)
        eval_need(e, id, d == dim || t->dims[d] == r->dims[d], "other dimensions stay");
    need_size(e, id, m, r->dims[dim] ? t->dims[dim] / r->dims[dim] : m->members.n);
    eval_need(e, id, t->dims[dim] == r->dims[dim] * m->members.n, "the parts fill the operand");
    out->data = eval_new(e, out->type);
    return b;
}

static void scatter_one(Eval *e, const Meeting *m, const Body *b, uint32_t k, int64_t dim, Tensor in, Tensor *out) {
    const HloType *t = eval_type(e, in), *r = eval_type(e, *out);
    int64_t strides[OTRN_MAX_RANK], elem = (int64_t)dtype_bytes(t->dtype);
    eval_strides(t, strides);
    uint8_t *dst = out->data;
    Box box;
    for (box_init(&box, r->rank, r->dims); box.more; box_next(&box), dst += dtype_bytes(b->dtype)) {
        int64_t at = r->dims[dim] * m->members.mine * strides[dim];
        for (int d = 0; d < r->rank; d++)
            at += box.at[d] * strides[d];
        reduce_one(e, m, b, k, t->dtype, at / elem, dst);
    }
}

void eval_reduce_scatter(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    int64_t dim = hlo_int(op, AK_SCATTER_DIMENSION, -1);
    Meeting *m = meeting_make(e, id);
    need_group(e, id, m);
    eval_need(e, id, op->noperands == op->nresults, "one result for each operand");
    Body *b = ARENA_NEWN(e->cur, Body, op->nresults + 1u);
    for (uint32_t k = 0; k < op->nresults; k++)
        b[k] = scatter_begin(e, id, m, dim, &in[k], &out[k]);
    meeting_begin(e, id, m, in);
    for (uint32_t k = 0; k < op->nresults; k++)
        scatter_one(e, m, &b[k], k, dim, in[k], &out[k]);
    meeting_end(e, m);
}

// --- data movement -----------------------------------------------------------------------------

static void gather_one(Eval *e, const Meeting *m, uint32_t k, int64_t dim, Tensor in, Tensor *out) {
    const HloType *t = eval_type(e, in);
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    eval_strides(t, from);
    eval_strides(eval_type(e, *out), to);
    for (uint32_t p = 0; t->elems && p < m->members.n; p++)
        eval_copy_box(dtype_bytes(t->dtype), t->rank, t->dims,
                      (uint8_t *)out->data + p * t->dims[dim] * to[dim], to, meeting_in(e, m, p, k),
                      from);
}

void eval_all_gather(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    int64_t dim = hlo_int(op, AK_ALL_GATHER_DIM, -1);
    Meeting *m = meeting_make(e, id);
    need_group(e, id, m);
    eval_need(e, id, op->noperands == op->nresults, "one result for each operand");
    for (uint32_t k = 0; k < op->nresults; k++) {
        const HloType *t = eval_type(e, in[k]), *r = eval_type(e, out[k]);
        eval_need(e, id, t->rank == r->rank && dim >= 0 && dim < t->rank && t->dtype == r->dtype,
                  "all_gather_dim is one of the operand's");
        for (int d = 0; d < t->rank; d++)
            eval_need(e, id, d == dim || t->dims[d] == r->dims[d], "other dimensions stay");
        need_size(e, id, m, t->dims[dim] ? r->dims[dim] / t->dims[dim] : m->members.n);
        eval_need(e, id, r->dims[dim] == t->dims[dim] * m->members.n,
                  "the operands fill the result");
        out[k].data = eval_new(e, out[k].type);
    }
    meeting_begin(e, id, m, in);
    for (uint32_t k = 0; k < op->nresults; k++)
        gather_one(e, m, k, dim, in[k], &out[k]);
    meeting_end(e, m);
}

typedef struct Exchange {       // of one operand of all_to_all
    int64_t box[OTRN_MAX_RANK]; // what one member sends another
    int64_t split, concat;
} Exchange;

static Exchange exchange_of(Eval *e, OpId id, Tensor in, Tensor out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *t = eval_type(e, in), *r = eval_type(e, out);
    Exchange x = {.split = hlo_int(op, AK_SPLIT_DIMENSION, -1),
                  .concat = hlo_int(op, AK_CONCAT_DIMENSION, -1)};
    int64_t count = hlo_int(op, AK_SPLIT_COUNT, 0);
    eval_need(e, id,
              count > 0 && t->rank == r->rank && x.split >= 0 && x.split < t->rank &&
                  x.concat >= 0 && x.concat < t->rank && t->dtype == r->dtype,
              "the dimensions are those of the operand");
    for (int d = 0; d < t->rank; d++) {
        x.box[d] = d == x.split ? t->dims[d] / count : t->dims[d];
        eval_need(e, id, d != x.split || t->dims[d] % count == 0, "the parts fill the operand");
        eval_need(e, id, r->dims[d] == (d == x.concat ? x.box[d] * count : x.box[d]),
                  "the parts fill the result");
    }
    return x;
}

static void exchange_one(Eval *e, const Meeting *m, const Exchange *x, uint32_t k, Tensor in,
                         Tensor *out) {
    const HloType *t = eval_type(e, in);
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    eval_strides(t, from);
    eval_strides(eval_type(e, *out), to);
    for (uint32_t p = 0; t->elems && p < m->members.n; p++)
        eval_copy_box(dtype_bytes(t->dtype), t->rank, x->box,
                      (uint8_t *)out->data + p * x->box[x->concat] * to[x->concat], to,
                      meeting_in(e, m, p, k) + m->members.mine * x->box[x->split] * from[x->split],
                      from);
}

void eval_all_to_all(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    Meeting *m = meeting_make(e, id);
    need_group(e, id, m);
    need_size(e, id, m, hlo_int(op, AK_SPLIT_COUNT, 0));
    eval_need(e, id, op->noperands == op->nresults, "one result for each operand");
    Exchange *x = ARENA_NEWN(e->cur, Exchange, op->nresults + 1u);
    for (uint32_t k = 0; k < op->nresults; k++) {
        x[k] = exchange_of(e, id, in[k], out[k]);
        out[k].data = eval_new(e, out[k].type);
    }
    meeting_begin(e, id, m, in);
    for (uint32_t k = 0; k < op->nresults; k++)
        exchange_one(e, m, &x[k], k, in[k], &out[k]);
    meeting_end(e, m);
}

static void copy_from(Eval *e, const Meeting *m, uint32_t position, uint32_t k, Tensor *out) {
    size_t bytes = hlo_type_bytes(eval_type(e, *out));
    if (bytes)
        memcpy(out->data, meeting_in(e, m, position, k), bytes);
}

// Devices outside all groups receive zeros.
void eval_collective_broadcast(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    need_root(e, id, in);
    Meeting *m = meeting_make(e, id);
    uint32_t *root = ARENA_NEWN(e->cur, uint32_t, op->nresults + 1u);
    for (uint32_t k = 0; k < op->nresults; k++) {
        eval_need(e, id, in[k].type == out[k].type, "operand and result have one type");
        root[k] = m->members.n ? root_of(e, id, in, m, k) : 0;
        zero(e, &out[k]);
    }
    if (!m->members.n)
        return;
    meeting_begin(e, id, m, in);
    for (uint32_t k = 0; k < op->nresults; k++)
        copy_from(e, m, root[k], k, &out[k]);
    meeting_end(e, m);
}

// Devices that are no target receive zeros.
void eval_collective_permute(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    char why[COMM_WHY_BYTES];
    Groups g = groups_of(e, id);
    Route *route = ARENA_NEW(e->cur, Route);
    eval_need(e, id, in[0].type == out[0].type, "operand and result have one type");
    if (!groups_route(&g, coll_grid(e->comm), coll_rank(e->comm), route, why, sizeof why))
        eval_fail(e, id, OTRN_CHECK, "%s", why);
    zero(e, &out[0]);
    Meeting *m = ARENA_NEW(e->cur, Meeting);
    m->members = route->members;
    if (!m->members.n)
        return;
    meeting_begin(e, id, m, in);
    for (uint32_t p = 0; p < m->members.n; p++)
        if (m->members.rank[p] == route->source)
            copy_from(e, m, p, 0, &out[0]);
    meeting_end(e, m);
}

void eval_device_id(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    (void)in;
    const HloType *t = eval_type(e, out[0]);
    eval_need(e, id, t->rank == 0 && t->dtype == DT_UI32, "the result is a ui32 scalar");
    Grid g = coll_grid(e->comm);
    uint32_t rank = coll_rank(e->comm);
    bool replica = eval_op_at(e, id)->code == HLO_REPLICA_ID;
    out[0].data = eval_new(e, out[0].type);
    dtype_from_i64(DT_UI32, out[0].data, replica ? grid_replica(g, rank) : grid_partition(g, rank));
}
