// SPDX-License-Identifier: Apache-2.0
// coll_reduce.c — all_reduce, collective_reduce and reduce_scatter.
//
// A result element is the body's fold over the group's positions along one tree (coll/tree.h), whoever computes
// it. So a large all_reduce is shared: each device reduces its slice of the elements into its own
// result, all wait (comm_sync), then each copies the other slices from where they were made. That
// is two passes over the data in all; when every device reduced everything it would be as many as
// there are devices. Small ones are not worth the extra wait.
//
// scratch:  meeting (coll.h) | lanes of the region's steps | per slot: registers, blocks of the tree's stack
#include "chip/gpsimd/coll.h"
#include "coll/tree.h"

#define SHARE_MIN_BYTES 16384 // below this every device reduces everything

// Which elements of the operands make a device's part of the result: element i of the part is
// element i / chunk * pitch + offset + i % chunk.
typedef struct Part {
    int64_t n, chunk, pitch, offset;
} Part;

typedef struct ReduceJob {
    const GpCall *c;
    const GpMeet *m;
    uint32_t operand;
    Part part;
    Lane widen; // operand to the region's type, when it differs
    bool widens;
    char *dst;
    const void *lanes;
    char *slot0;
    size_t slots;
} ReduceJob;

#define BLOCK_BYTES gp_align(LANE_BLOCK * 16)

// Registers, then blocks for the tree's stack, and one for what is gathered before it is widened.
static size_t slot_bytes(const KProg *p) {
    return prog_slot_bytes(p) + (TREE_DEPTH + 1) * BLOCK_BYTES;
}

// Elements [at, at + n) of the part: in place when they lie in a row, else gathered into buf.
static const void *part_load(const Part *p, const char *src, size_t bytes, int64_t at, int64_t n,
                             char *buf) {
    char *to = buf;
    for (int64_t i = at; i < at + n;) {
        int64_t in = i % p->chunk, len = p->chunk - in;
        const char *from = src + (size_t)(i / p->chunk * p->pitch + p->offset + in) * bytes;
        if (i == at && len >= n)
            return from;
        len = len < at + n - i ? len : at + n - i;
        memcpy(to, from, (size_t)len * bytes);
        to += (size_t)len * bytes;
        i += len;
    }
    return buf;
}

static const void *operand_block(const ReduceJob *j, uint32_t position, int64_t at, int64_t n,
                                 char *buf, char *gathered) {
    size_t bytes = dtype_bytes(j->c->k->in[j->operand].dtype);
    const char *src = coll_in(j->c, j->m, position, j->operand);
    if (!j->widens)
        return part_load(&j->part, src, bytes, at, n, buf);
    const void *narrow = part_load(&j->part, src, bytes, at, n, gathered);
    lane_run(&j->widen, buf, &narrow, (size_t)n);
    return buf;
}

static void fold_into(const Prog *g, const void *left, const void *right, int64_t n, char *to, size_t bytes) {
    g->at[0] = (void *)left;
    g->at[1] = (void *)right;
    prog_run(g, (size_t)n);
    if (prog_out(g, 0) != to)
        memcpy(to, prog_out(g, 0), (size_t)n * bytes);
}

static void reduce_block(const ReduceJob *j, const Prog *g, char *bufs, int64_t at, int64_t n) {
    size_t bytes = dtype_bytes(j->c->k->out[j->operand].dtype);
    char *dst = j->dst + (size_t)at * bytes;
    const void *stack[TREE_DEPTH];
    uint32_t depth = 0, size = j->m->members.n;
    for (uint32_t p = 0; p < size; p++) {
        stack[depth] = operand_block(j, p, at, n, bufs + depth * BLOCK_BYTES, bufs + TREE_DEPTH * BLOCK_BYTES);
        depth++;
        for (uint32_t f = tree_folds(tree_leaf(p), size, depth); f; f--) {
            depth--;
            char *to = p + 1 == size && depth == 1 ? dst : bufs + (depth - 1) * BLOCK_BYTES;
            fold_into(g, stack[depth - 1], stack[depth], n, to, bytes);
            stack[depth - 1] = to;
        }
    }
    if (stack[0] != dst)
        memcpy(dst, stack[0], (size_t)n * bytes);
}

static void reduce_slot(void *arg, size_t begin, size_t end) {
    const ReduceJob *j = arg;
    const KProg *p = &j->c->k->regions[0];
    size_t blocks = ((size_t)j->part.n + LANE_BLOCK - 1) / LANE_BLOCK;
    for (size_t slot = begin; slot < end; slot++) {
        char *at = j->slot0 + slot * slot_bytes(p);
        Prog g;
        prog_init(&g, p, j->lanes, at, gp_captures(j->c, 0));
        for (size_t b = slot * blocks / j->slots; b < (slot + 1) * blocks / j->slots; b++) {
            int64_t first = (int64_t)b * LANE_BLOCK, left = j->part.n - first;
            reduce_block(j, &g, at + prog_slot_bytes(p), first,
                         left < LANE_BLOCK ? left : LANE_BLOCK);
        }
    }
}

// Reduces one part of an operand into dst.
static void reduce_part(const GpCall *c, const GpMeet *m, uint32_t operand, Part part, void *dst) {
    const KProg *p = &c->k->regions[0];
    uint8_t from = c->k->in[operand].dtype, to = c->k->out[operand].dtype;
    ReduceJob j = {.c = c,
                   .m = m,
                   .operand = operand,
                   .part = part,
                   .dst = dst,
                   .widens = from != to,
                   .lanes = coll_scratch_end(c)};
    if (part.n <= 0)
        return;
    if (j.widens)
        lane_find(&j.widen, gp_level(c->level), HLO_CONVERT, to, &from, 1, NULL);
    j.slot0 = prog_resolve(p, gp_level(c->level), coll_scratch_end(c));
    j.slots = gp_slots(c, ((size_t)part.n + LANE_BLOCK - 1) / LANE_BLOCK);
    pool_run(c->pool, j.slots, 1, reduce_slot, &j);
}

// --- checks ------------------------------------------------------------------------------------

// A region of two scalars of one type, which is the results'.
static bool region_ok(const Kern *k) {
    if (k->nregions != 1 || !coll_groups_ok(k))
        return false;
    const KProg *p = &k->regions[0];
    if (p->ninputs != 2 || p->nouts != 1 || p->dtypes[0] != p->dtypes[1] ||
        p->dtypes[p->outs[0]] != p->dtypes[0] || k->nin < p->ncaptures)
        return false;
    for (uint32_t i = 0; i < k->nout; i++) {
        Lane lane;
        if (i >= k->nin || k->out[i].dtype != p->dtypes[0] ||
            (k->in[i].dtype != k->out[i].dtype &&
             !lane_find(&lane, &gp_level_portable, HLO_CONVERT, k->out[i].dtype, &k->in[i].dtype, 1,
                        NULL)))
            return false;
    }
    return true;
}

static size_t reduce_scratch(const Kern *k, int threads) {
    const KProg *p = &k->regions[0];
    return coll_scratch_bytes(k) + prog_shared_bytes(p) + (size_t)threads * slot_bytes(p);
}

// --- all_reduce, collective_reduce -------------------------------------------------------------

bool gp_all_reduce_check(const Kern *k) {
    if (!k->nout || !region_ok(k) || !coll_root_ok(k))
        return false;
    for (uint32_t i = 0; i < k->nout; i++)
        if (!gp_same_dims(&k->in[i], &k->out[i]))
            return false;
    return true;
}

size_t gp_all_reduce_scratch(const Kern *k, int threads) {
    return reduce_scratch(k, threads);
}

static Part slice_of(const GpMeet *m, int64_t elems, uint32_t position) {
    int64_t begin, end;
    coll_slice(elems, m->members.n, position, &begin, &end);
    return (Part){.n = end - begin, .chunk = elems ? elems : 1, .pitch = 0, .offset = begin};
}

static bool is_shared(const GpCall *c, const GpMeet *m) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < c->k->nout; i++)
        bytes += gp_bytes(&c->k->out[i]);
    return m->met && bytes >= SHARE_MIN_BYTES;
}

static otrn_status reduce_shared(const GpCall *c, const GpMeet *m) {
    const Kern *k = c->k;
    for (uint32_t i = 0; i < k->nout; i++) {
        Part mine = slice_of(m, k->out[i].elems, m->members.mine);
        size_t bytes = dtype_bytes(k->out[i].dtype);
        reduce_part(c, m, i, mine, (char *)c->out[i] + (size_t)mine.offset * bytes);
    }
    if (!comm_sync(c->comm))
        return gp_fail(c, "%s", comm_why(c->comm));
    for (uint32_t i = 0; i < k->nout; i++)
        for (uint32_t p = 0; p < m->members.n; p++) {
            Part part = slice_of(m, k->out[i].elems, p);
            size_t bytes = dtype_bytes(k->out[i].dtype), off = (size_t)part.offset * bytes;
            if (p != m->members.mine)
                copy_bytes(c->pool, (char *)c->out[i] + off, coll_out(c, p, i) + off,
                           (size_t)part.n * bytes);
        }
    return OTRN_OK;
}

static void reduce_alone(const GpCall *c, const GpMeet *m, uint32_t i) {
    int64_t n = c->k->out[i].elems;
    reduce_part(c, m, i, (Part){.n = n, .chunk = n}, c->out[i]);
}

otrn_status gp_all_reduce_run(const GpCall *c) {
    GpMeet *m;
    otrn_status s = coll_find(c, &m);
    if (s == OTRN_OK)
        s = coll_need(c, m, m->members.n);
    if (s == OTRN_OK)
        s = coll_begin(c, m);
    if (s != OTRN_OK)
        return s;
    if (is_shared(c, m))
        s = reduce_shared(c, m);
    else
        for (uint32_t i = 0; i < c->k->nout; i++)
            reduce_alone(c, m, i);
    coll_end(c, m);
    return s;
}

bool gp_collective_reduce_check(const Kern *k) {
    return gp_all_reduce_check(k);
}

size_t gp_collective_reduce_scratch(const Kern *k, int threads) {
    return reduce_scratch(k, threads);
}

// The root has the sum; everybody else, in a group or not, zeros.
otrn_status gp_collective_reduce_run(const GpCall *c) {
    GpMeet *m;
    uint32_t root;
    otrn_status s = coll_begin_rooted(c, &m);
    if (s != OTRN_OK)
        return s;
    for (uint32_t i = 0; i < c->k->nout; i++) {
        if (m->members.n)
            coll_root(c, m, i, &root);
        if (m->members.n && root == m->members.mine)
            reduce_alone(c, m, i);
        else
            memset(c->out[i], 0, gp_bytes(&c->k->out[i]));
    }
    coll_end(c, m);
    return OTRN_OK;
}

// --- reduce_scatter ----------------------------------------------------------------------------

bool gp_reduce_scatter_check(const Kern *k) {
    int64_t dim = gp_int(k, AK_SCATTER_DIMENSION, -1);
    if (k->nout != 1 || !region_ok(k) || k->nin != 1u + k->regions[0].ncaptures)
        return false;
    const KTensor *in = &k->in[0], *out = &k->out[0];
    if (in->rank != out->rank || dim < 0 || dim >= in->rank)
        return false;
    for (int d = 0; d < in->rank; d++)
        if (d != dim && in->dims[d] != out->dims[d])
            return false;
    return true;
}

size_t gp_reduce_scatter_scratch(const Kern *k, int threads) {
    return reduce_scratch(k, threads);
}

otrn_status gp_reduce_scatter_run(const GpCall *c) {
    const KTensor *in = &c->k->in[0], *out = &c->k->out[0];
    int64_t dim = gp_int(c->k, AK_SCATTER_DIMENSION, 0), strides[OTRN_MAX_RANK];
    int64_t whole = in->dims[dim], piece = out->dims[dim];
    GpMeet *m;
    otrn_status s = coll_find(c, &m);
    if (s == OTRN_OK)
        s = coll_need(c, m,
                      !piece && !whole          ? m->members.n
                      : !piece || whole % piece ? -1
                                                : whole / piece);
    if (s == OTRN_OK)
        s = coll_begin(c, m);
    if (s != OTRN_OK)
        return s;
    gp_strides(in, strides);
    int64_t chunk = piece * strides[dim];
    reduce_part(c, m, 0,
                (Part){.n = out->elems,
                       .chunk = chunk,
                       .pitch = whole * strides[dim],
                       .offset = m->members.mine * chunk},
                c->out[0]);
    coll_end(c, m);
    return OTRN_OK;
}
