// SPDX-License-Identifier: Apache-2.0
// coll_reduce.c — all_reduce, collective_reduce and reduce_scatter.
//
// Who reduces what, and where the terms come from, is told by coll/reduce.h; here is the fold of terms along the group's tree, a
// block of elements after the other.
//
// scratch:  meeting (coll.h) | lanes of the region's steps | per slot: registers, blocks of the tree's stack
#include "chip/gpsimd/coll.h"
#include "coll/reduce.h"

typedef struct ReduceJob {
    const GpCall *c;
    uint32_t operand;
    const CommTerm *terms;
    uint32_t nterms, size;
    const CommPart *part;
    int64_t first, count; // of the part's elements
    Lane widen;           // operand to the region's type, when it differs
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
static const void *part_load(const CommPart *p, const char *src, size_t bytes, int64_t at, int64_t n,
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

static const void *term_block(const ReduceJob *j, const CommTerm *t, int64_t at, int64_t n, char *buf, char *gathered) {
    const Kern *k = j->c->k;
    size_t bytes = dtype_bytes(t->raw ? k->in[j->operand].dtype : k->out[j->operand].dtype);
    bool widens = j->widens && t->raw;
    const void *from = t->packed ? (const char *)t->data + (size_t)at * bytes
                                 : part_load(j->part, t->data, bytes, at, n, widens ? gathered : buf);
    if (!widens)
        return from;
    lane_run(&j->widen, buf, &from, (size_t)n);
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
    uint32_t depth = 0;
    for (uint32_t i = 0; i < j->nterms; i++) {
        stack[depth] = term_block(j, &j->terms[i], j->first + at, n, bufs + depth * BLOCK_BYTES, bufs + TREE_DEPTH * BLOCK_BYTES);
        depth++;
        for (uint32_t f = tree_folds(j->terms[i].span, j->size, depth); f; f--) {
            depth--;
            char *to = i + 1 == j->nterms && depth == 1 ? dst : bufs + (depth - 1) * BLOCK_BYTES;
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
    size_t blocks = ((size_t)j->count + LANE_BLOCK - 1) / LANE_BLOCK;
    for (size_t slot = begin; slot < end; slot++) {
        char *at = j->slot0 + slot * slot_bytes(p);
        Prog g;
        prog_init(&g, p, j->lanes, at, gp_captures(j->c, 0));
        for (size_t b = slot * blocks / j->slots; b < (slot + 1) * blocks / j->slots; b++) {
            int64_t first = (int64_t)b * LANE_BLOCK, left = j->count - first;
            reduce_block(j, &g, at + prog_slot_bytes(p), first,
                         left < LANE_BLOCK ? left : LANE_BLOCK);
        }
    }
}

static void fold(void *arg, uint32_t k, const CommTerm *terms, uint32_t nterms, uint32_t size, const CommPart *part,
                 int64_t first, int64_t count, void *dst) {
    const GpCall *c = arg;
    const KProg *p = &c->k->regions[0];
    uint8_t from = c->k->in[k].dtype, to = c->k->out[k].dtype;
    ReduceJob j = {.c = c, .operand = k, .terms = terms, .nterms = nterms, .size = size, .part = part, .first = first,
                   .count = count, .dst = dst, .widens = from != to, .lanes = coll_scratch_end(c)};
    if (count <= 0)
        return;
    if (j.widens)
        lane_find(&j.widen, gp_level(c->level), HLO_CONVERT, to, &from, 1, NULL);
    j.slot0 = prog_resolve(p, gp_level(c->level), coll_scratch_end(c));
    j.slots = gp_slots(c, ((size_t)count + LANE_BLOCK - 1) / LANE_BLOCK);
    pool_run(c->pool, j.slots, 1, reduce_slot, &j);
}

static void copy(void *arg, void *dst, const void *src, size_t bytes) {
    copy_bytes(((const GpCall *)arg)->pool, dst, src, bytes);
}

// A group of this device alone.
static void fold_alone(const GpCall *c, uint32_t k) {
    int64_t n = c->k->out[k].elems;
    CommTerm term = {.span = {0, 1}, .data = c->in[k], .raw = true};
    fold((void *)c, k, &term, 1, 1, &(CommPart){.n = n, .chunk = n}, 0, n, c->out[k]);
}

// What of a kernel's operands is reduced. The sizes lie behind the kernel's own operands' (coll.h).
static CommReduce reduce_of(const GpCall *c, GpMeet *m) {
    for (uint32_t i = 0; i < c->k->nout; i++) {
        m->sizes[i].elems = c->k->in[i].elems;
        m->sizes[i].in = (uint8_t)dtype_bytes(c->k->in[i].dtype);
        m->sizes[i].out = (uint8_t)dtype_bytes(c->k->out[i].dtype);
    }
    return (CommReduce){.n = c->k->nout, .of = m->sizes, .fold = fold, .copy = copy, .arg = (void *)c};
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

otrn_status gp_all_reduce_run(const GpCall *c) {
    GpMeet *m;
    otrn_status s = coll_find(c, &m);
    if (s == OTRN_OK)
        s = coll_need(c, m, m->members.n);
    if (s == OTRN_OK)
        s = coll_begin(c, m);
    if (s != OTRN_OK)
        return s;
    for (uint32_t i = 0; i < c->k->nout && !m->met; i++)
        fold_alone(c, i);
    CommReduce r = reduce_of(c, m);
    if (m->met && !comm_all_reduce(c->comm, &r))
        return gp_fail(c, "%s", comm_why(c->comm));
    coll_end(c, m);
    return OTRN_OK;
}

bool gp_collective_reduce_check(const Kern *k) {
    return gp_all_reduce_check(k);
}

size_t gp_collective_reduce_scratch(const Kern *k, int threads) {
    return reduce_scratch(k, threads);
}

static CommPart root_part(void *arg, uint32_t k, uint32_t position) {
    const GpCall *c = arg;
    const GpMeet *m = c->scratch;
    uint32_t root;
    coll_root(c, m, k, &root);
    int64_t n = root == position ? c->k->out[k].elems : 0;
    return (CommPart){.n = n, .chunk = n ? n : 1};
}

// The root has the sum; everybody else, in a group or not, zeros.
otrn_status gp_collective_reduce_run(const GpCall *c) {
    GpMeet *m;
    uint32_t root = 0;
    otrn_status s = coll_begin_rooted(c, &m);
    if (s != OTRN_OK)
        return s;
    for (uint32_t i = 0; i < c->k->nout; i++) {
        if (m->members.n)
            coll_root(c, m, i, &root);
        if (!m->members.n || root != m->members.mine)
            memset(c->out[i], 0, gp_bytes(&c->k->out[i]));
        else if (!m->met)
            fold_alone(c, i);
    }
    CommReduce r = reduce_of(c, m);
    r.part = root_part;
    if (m->met && !comm_reduce_parts(c->comm, &r))
        return gp_fail(c, "%s", comm_why(c->comm));
    coll_end(c, m);
    return OTRN_OK;
}

// --- reduce_scatter ----------------------------------------------------------------------------

bool gp_reduce_scatter_check(const Kern *k) {
    int64_t dim = gp_int(k, AK_SCATTER_DIMENSION, -1);
    if (!k->nout || !region_ok(k) || k->nin != k->nout + k->regions[0].ncaptures)
        return false;
    for (uint32_t i = 0; i < k->nout; i++) {
        const KTensor *in = &k->in[i], *out = &k->out[i];
        if (in->rank != out->rank || dim < 0 || dim >= in->rank)
            return false;
        for (int d = 0; d < in->rank; d++)
            if (d != dim && in->dims[d] != out->dims[d])
                return false;
    }
    return true;
}

size_t gp_reduce_scatter_scratch(const Kern *k, int threads) {
    return reduce_scratch(k, threads);
}

static CommPart scatter_part(void *arg, uint32_t k, uint32_t position) {
    const GpCall *c = arg;
    const KTensor *in = &c->k->in[k], *out = &c->k->out[k];
    int64_t dim = gp_int(c->k, AK_SCATTER_DIMENSION, 0), strides[OTRN_MAX_RANK];
    gp_strides(in, strides);
    int64_t chunk = out->dims[dim] * strides[dim];
    return (CommPart){.n = out->elems, .chunk = chunk ? chunk : 1, .pitch = in->dims[dim] * strides[dim], .offset = position * chunk};
}

otrn_status gp_reduce_scatter_run(const GpCall *c) {
    int64_t dim = gp_int(c->k, AK_SCATTER_DIMENSION, 0);
    GpMeet *m;
    otrn_status s = coll_find(c, &m);
    for (uint32_t i = 0; i < c->k->nout && s == OTRN_OK; i++) {
        int64_t whole = c->k->in[i].dims[dim], piece = c->k->out[i].dims[dim];
        s = coll_need(c, m, !piece && !whole ? m->members.n : !piece || whole % piece ? -1 : whole / piece);
    }
    if (s == OTRN_OK)
        s = coll_begin(c, m);
    if (s != OTRN_OK)
        return s;
    for (uint32_t i = 0; i < c->k->nout && !m->met; i++)
        fold_alone(c, i);
    CommReduce r = reduce_of(c, m);
    r.part = scatter_part;
    if (m->met && !comm_reduce_parts(c->comm, &r))
        return gp_fail(c, "%s", comm_why(c->comm));
    coll_end(c, m);
    return OTRN_OK;
}
