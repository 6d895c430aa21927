// SPDX-License-Identifier: Apache-2.0
// coll.c — collectives that move data, messages between devices, a device's number.
//
// The devices of a group meet (coll/comm.h); each copies what it is to have out of the others'
// memory.
#include "chip/gpsimd/coll.h"

#include <stdio.h>

#include "artifact/artifact.h"

// --- meeting -----------------------------------------------------------------------------------

size_t coll_scratch_bytes(const Kern *k) {
    return gp_align(sizeof(GpMeet)) + gp_align(k->nin * sizeof(CommBuf)) + gp_align(k->nin * sizeof(CommSize));
}

bool coll_groups_ok(const Kern *k) {
    Groups g;
    return coll_groups((HloOpcode)k->op, k->attrs, &g);
}

otrn_status coll_find(const GpCall *c, GpMeet **out) {
    char why[COMM_WHY_BYTES];
    Groups g;
    GpMeet *m = *out = c->scratch;
    m->met = false;
    m->sizes = (CommSize *)((char *)c->scratch + gp_align(sizeof *m) + gp_align(c->k->nin * sizeof(CommBuf)));
    coll_groups((HloOpcode)c->k->op, c->k->attrs, &g);
    bool ok =
        groups_members(&g, coll_grid(c->comm), coll_rank(c->comm), &m->members, why, sizeof why);
    return ok ? OTRN_OK : gp_fail(c, "%s", why);
}

otrn_status coll_need(const GpCall *c, const GpMeet *m, int64_t size) {
    Grid g = coll_grid(c->comm);
    uint32_t rank = coll_rank(c->comm);
    if (!m->members.n)
        return gp_fail(c, "replica %u, partition %u is in none of its groups",
                       grid_replica(g, rank), grid_partition(g, rank));
    if (size != m->members.n)
        return gp_fail(c, "its shapes are for groups of %lld devices, this one has %u",
                       (long long)size, m->members.n);
    return OTRN_OK;
}

static uint64_t signature(const Kern *k) {
    uint64_t s = coll_sign((HloOpcode)k->op, k->attrs);
    for (uint32_t i = 0; i < k->nin + k->nout; i++) {
        const KTensor *t = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
        s = coll_sign_type(s, t->dtype, t->rank, t->dims);
    }
    return s;
}

// The line of the instruction that runs the kernel.
static void where(const CommPost *p, char *out, size_t bytes) {
    const Artifact *art = p->program;
    for (uint32_t pc = 0; pc < art->ncode; pc++) {
        const IsaInst *in = artifact_shape(art, pc);
        const ArtLoc *loc = &art->locs[art->code_loc[pc]];
        if ((in->op == ISA_KERNEL || in->op == ISA_COLLECTIVE) && (uint32_t)in->imm == p->op && *loc->file)
            snprintf(out, bytes, "%s:%u", loc->file, loc->line);
    }
}

otrn_status coll_begin(const GpCall *c, GpMeet *m) {
    const Kern *k = c->k;
    if (m->members.n < 2)
        return OTRN_OK;
    CommBuf *bufs = (CommBuf *)((char *)c->scratch + gp_align(sizeof *m));
    for (uint32_t i = 0; i < k->nin; i++)
        bufs[i] = (CommBuf){
            .in = c->in[i], .out = i < k->nout ? c->out[i] : NULL, .in_bytes = gp_bytes(&k->in[i])};
    m->post = (CommPost){.signature = signature(k),
                         .program = c->program,
                         .op = c->number,
                         .name = hlo_op_rows[k->op].name,
                         .nbufs = k->nin,
                         .bufs = bufs,
                         .where = where};
    if (!comm_meet(c->comm, &m->post, m->members.rank, m->members.n))
        return gp_fail(c, "%s", comm_why(c->comm));
    m->met = true;
    return OTRN_OK;
}

// Who reads what (coll/bring.h).
static otrn_status coll_bring(const GpCall *c, const GpMeet *m, const CommNeed *need) {
    return !m->met || comm_bring(c->comm, need) ? OTRN_OK : gp_fail(c, "%s", comm_why(c->comm));
}

void coll_end(const GpCall *c, const GpMeet *m) {
    if (m->met)
        comm_leave(c->comm);
}

bool coll_root_ok(const Kern *k) {
    uint32_t captures = k->nregions ? k->regions[0].ncaptures : 0, n = k->nin - captures;
    if (!gp_int(k, AK_HAS_DYNAMIC_ROOT, 0))
        return n == k->nout;
    return n == k->nout + 1 && gp_is_index(k->in[k->nout].dtype) && k->in[k->nout].elems == k->nout;
}

otrn_status coll_root(const GpCall *c, const GpMeet *m, uint32_t k, uint32_t *position) {
    *position = 0;
    if (!gp_int(c->k, AK_HAS_DYNAMIC_ROOT, 0))
        return OTRN_OK;
    int64_t root = gp_index_at(c->k->in[c->k->nout].dtype, c->in[c->k->nout], k);
    if (root < 0 || root >= m->members.n)
        return gp_fail(c, "root %lld of a group of %u devices", (long long)root, m->members.n);
    *position = (uint32_t)root;
    return OTRN_OK;
}

otrn_status coll_begin_rooted(const GpCall *c, GpMeet **out) {
    uint32_t root;
    otrn_status s = coll_find(c, out);
    for (uint32_t i = 0; i < c->k->nout && s == OTRN_OK && (*out)->members.n; i++)
        s = coll_root(c, *out, i, &root);
    return s == OTRN_OK ? coll_begin(c, *out) : s;
}

static void zero(const GpCall *c, uint32_t k) {
    static const uint8_t none[16];
    if (c->k->out[k].elems)
        fill_run(c->pool, c->out[k], none, dtype_bytes(c->k->out[k].dtype),
                 (size_t)c->k->out[k].elems);
}

// --- all_gather --------------------------------------------------------------------------------

bool gp_all_gather_check(const Kern *k) {
    int64_t dim = gp_int(k, AK_ALL_GATHER_DIM, -1);
    if (k->nin != k->nout || !k->nin || !coll_groups_ok(k))
        return false;
    for (uint32_t i = 0; i < k->nin; i++) {
        const KTensor *in = &k->in[i], *out = &k->out[i];
        if (in->dtype != out->dtype || in->rank != out->rank || dim < 0 || dim >= in->rank)
            return false;
        for (int d = 0; d < in->rank; d++)
            if (d != dim && in->dims[d] != out->dims[d])
                return false;
    }
    return true;
}

size_t gp_all_gather_scratch(const Kern *k, int threads) {
    (void)threads;
    return coll_scratch_bytes(k);
}

static void gather_one(const GpCall *c, const GpMeet *m, uint32_t k, int64_t dim) {
    const KTensor *in = &c->k->in[k];
    int64_t strides[OTRN_MAX_RANK], n = m->members.n;
    gp_strides(in, strides);
    int64_t chunk = strides[dim] * in->dims[dim];
    if (!in->elems)
        return;
    size_t bytes = dtype_bytes(in->dtype);
    Copy copy;
    copy_init(&copy, bytes, 2, (CopyAxis[]){{in->elems / chunk, n * chunk, chunk}, {chunk, 1, 1}});
    bool part;
    for (uint32_t p = 0; p < m->members.n; p++)
        copy_run(&copy, c->pool, (char *)c->out[k] + (size_t)p * (size_t)chunk * bytes,
                 coll_in(c, m, p, k, &part));
}

otrn_status gp_all_gather_run(const GpCall *c) {
    const Kern *k = c->k;
    int64_t dim = gp_int(k, AK_ALL_GATHER_DIM, 0);
    GpMeet *m;
    otrn_status s = coll_find(c, &m);
    for (uint32_t i = 0; i < k->nin && s == OTRN_OK; i++) {
        int64_t a = k->in[i].dims[dim], b = k->out[i].dims[dim];
        s = coll_need(c, m, !a ? m->members.n : b % a ? -1 : b / a);
    }
    if (s == OTRN_OK)
        s = coll_begin(c, m);
    if (s == OTRN_OK)
        s = coll_bring(c, m, &(CommNeed){0});
    if (s != OTRN_OK)
        return s;
    for (uint32_t i = 0; i < k->nin; i++)
        gather_one(c, m, i, dim);
    coll_end(c, m);
    return OTRN_OK;
}

// --- all_to_all --------------------------------------------------------------------------------

typedef struct Exchange { // what one device sends another
    int64_t box[OTRN_MAX_RANK];
    int64_t split, concat;
} Exchange;

static bool exchange_of(const Kern *k, uint32_t i, Exchange *x) {
    const KTensor *in = &k->in[i], *out = &k->out[i];
    int64_t count = gp_int(k, AK_SPLIT_COUNT, 0);
    x->split = gp_int(k, AK_SPLIT_DIMENSION, -1);
    x->concat = gp_int(k, AK_CONCAT_DIMENSION, -1);
    if (count < 1 || in->dtype != out->dtype || in->rank != out->rank || x->split < 0 ||
        x->split >= in->rank || x->concat < 0 || x->concat >= in->rank)
        return false;
    for (int d = 0; d < in->rank; d++) {
        int64_t whole;
        x->box[d] = d == x->split ? in->dims[d] / count : in->dims[d];
        if (__builtin_mul_overflow(x->box[d], d == x->concat ? count : 1, &whole) ||
            whole != out->dims[d] || (d == x->split && in->dims[d] % count))
            return false;
    }
    return true;
}

bool gp_all_to_all_check(const Kern *k) {
    Exchange x;
    if (k->nin != k->nout || !k->nin || !coll_groups_ok(k))
        return false;
    for (uint32_t i = 0; i < k->nin; i++)
        if (!exchange_of(k, i, &x))
            return false;
    return true;
}

size_t gp_all_to_all_scratch(const Kern *k, int threads) {
    return gp_all_gather_scratch(k, threads);
}

// Between an operand, or a packed part, and a result, or a packed part.
static void exchange_init(const GpCall *c, uint32_t k, const Exchange *x, bool from_part, bool to_part, Copy *copy) {
    const KTensor *in = &c->k->in[k];
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK], packed[OTRN_MAX_RANK], n = 1;
    CopyAxis axes[OTRN_MAX_RANK];
    gp_strides(in, from);
    gp_strides(&c->k->out[k], to);
    for (int d = in->rank - 1; d >= 0; n *= x->box[d--])
        packed[d] = n;
    for (int d = 0; d < in->rank; d++)
        axes[d] = (CopyAxis){x->box[d], (to_part ? packed : to)[d], (from_part ? packed : from)[d]};
    copy_init(copy, dtype_bytes(in->dtype), in->rank, axes);
}

// Where in an operand the part of a member begins, in bytes.
static int64_t exchange_offset(const GpCall *c, uint32_t k, const Exchange *x, uint32_t position) {
    int64_t from[OTRN_MAX_RANK];
    gp_strides(&c->k->in[k], from);
    return position * x->box[x->split] * from[x->split] * (int64_t)dtype_bytes(c->k->in[k].dtype);
}

static size_t exchange_bytes(void *arg, uint32_t k) {
    const GpCall *c = arg;
    return gp_bytes(&c->k->in[k]) / (size_t)gp_int(c->k, AK_SPLIT_COUNT, 1);
}

static void exchange_pack(void *arg, uint32_t k, uint32_t to, const void *operand, void *out) {
    const GpCall *c = arg;
    Exchange x;
    Copy copy;
    exchange_of(c->k, k, &x);
    exchange_init(c, k, &x, false, true, &copy);
    if (c->k->in[k].elems)
        copy_run(&copy, c->pool, out, (const char *)operand + exchange_offset(c, k, &x, to));
}

static void exchange_one(const GpCall *c, const GpMeet *m, uint32_t k) {
    int64_t to[OTRN_MAX_RANK], bytes = (int64_t)dtype_bytes(c->k->in[k].dtype);
    Exchange x;
    Copy whole, packed;
    exchange_of(c->k, k, &x);
    exchange_init(c, k, &x, false, false, &whole);
    exchange_init(c, k, &x, true, false, &packed);
    gp_strides(&c->k->out[k], to);
    int64_t mine = exchange_offset(c, k, &x, m->members.mine);
    for (uint32_t p = 0; c->k->in[k].elems && p < m->members.n; p++) {
        bool part;
        const char *from = coll_in(c, m, p, k, &part);
        copy_run(part ? &packed : &whole, c->pool, (char *)c->out[k] + p * x.box[x.concat] * to[x.concat] * bytes,
                 from + (part ? 0 : mine));
    }
}

otrn_status gp_all_to_all_run(const GpCall *c) {
    GpMeet *m;
    otrn_status s = coll_find(c, &m);
    if (s == OTRN_OK)
        s = coll_need(c, m, gp_int(c->k, AK_SPLIT_COUNT, 0));
    if (s == OTRN_OK)
        s = coll_begin(c, m);
    if (s == OTRN_OK)
        s = coll_bring(c, m, &(CommNeed){.part_bytes = exchange_bytes, .part = exchange_pack, .arg = (void *)c});
    if (s != OTRN_OK)
        return s;
    for (uint32_t i = 0; i < c->k->nin; i++)
        exchange_one(c, m, i);
    coll_end(c, m);
    return OTRN_OK;
}

// --- collective_broadcast, collective_permute --------------------------------------------------

bool gp_collective_broadcast_check(const Kern *k) {
    if (!k->nout || k->nin < k->nout || k->nregions || !coll_root_ok(k) || !coll_groups_ok(k))
        return false;
    for (uint32_t i = 0; i < k->nout; i++)
        if (!gp_same_type(&k->in[i], &k->out[i]))
            return false;
    return true;
}

size_t gp_collective_broadcast_scratch(const Kern *k, int threads) {
    return gp_all_gather_scratch(k, threads) + gp_align(k->nin * sizeof(uint32_t));
}

// Devices outside all groups receive zeros.
otrn_status gp_collective_broadcast_run(const GpCall *c) {
    GpMeet *m;
    otrn_status s = coll_begin_rooted(c, &m);
    if (s != OTRN_OK)
        return s;
    uint32_t *root = coll_scratch_end(c);
    for (uint32_t i = 0; i < c->k->nin; i++) {
        root[i] = COMM_NONE; // roots themselves are the same everywhere
        if (m->members.n && i < c->k->nout)
            coll_root(c, m, i, &root[i]);
    }
    s = coll_bring(c, m, &(CommNeed){.root = root});
    if (s != OTRN_OK)
        return s;
    for (uint32_t i = 0; i < c->k->nout; i++) {
        bool part;
        if (!m->members.n)
            zero(c, i);
        else
            copy_bytes(c->pool, c->out[i], coll_in(c, m, root[i], i, &part), gp_bytes(&c->k->out[i]));
    }
    coll_end(c, m);
    return OTRN_OK;
}

bool gp_collective_permute_check(const Kern *k) {
    return k->nin == 1 && k->nout == 1 && gp_same_type(&k->in[0], &k->out[0]) && coll_groups_ok(k);
}

size_t gp_collective_permute_scratch(const Kern *k, int threads) {
    return gp_all_gather_scratch(k, threads) + gp_align(COMM_RANKS_MAX * sizeof(uint32_t));
}

static otrn_status route_find(const GpCall *c, Route *route) {
    char why[COMM_WHY_BYTES];
    Groups g;
    coll_groups((HloOpcode)c->k->op, c->k->attrs, &g);
    bool ok = groups_route(&g, coll_grid(c->comm), coll_rank(c->comm), route, why, sizeof why);
    return ok ? OTRN_OK : gp_fail(c, "%s", why);
}

// By position, the position a member receives from; where some are in other processes, which must know.
static void sources_find(const GpCall *c, const Members *m, uint32_t *source) {
    Groups g;
    Route r;
    char why[COMM_WHY_BYTES];
    coll_groups((HloOpcode)c->k->op, c->k->attrs, &g);
    for (uint32_t to = 0; to < m->n; to++) {
        source[to] = COMM_NONE;
        groups_route(&g, coll_grid(c->comm), m->rank[to], &r, why, sizeof why);
        for (uint32_t from = 0; from < m->n; from++)
            if (m->rank[from] == r.source)
                source[to] = from;
    }
}

// Devices that are no target receive zeros.
otrn_status gp_collective_permute_run(const GpCall *c) {
    Route route;
    GpMeet *m = c->scratch;
    otrn_status s = route_find(c, &route);
    if (s != OTRN_OK)
        return s;
    m->met = false;
    m->members = route.members;
    s = coll_begin(c, m);
    uint32_t *source = coll_scratch_end(c);
    if (s == OTRN_OK && m->met && comm_is_spread(c->comm))
        sources_find(c, &m->members, source);
    if (s == OTRN_OK)
        s = coll_bring(c, m, &(CommNeed){.source = source});
    if (s != OTRN_OK)
        return s;
    if (route.source == COMM_NONE)
        zero(c, 0);
    bool part;
    for (uint32_t p = 0; p < m->members.n; p++)
        if (m->members.rank[p] == route.source)
            copy_bytes(c->pool, c->out[0], coll_in(c, m, p, 0, &part), gp_bytes(&c->k->out[0]));
    coll_end(c, m);
    return OTRN_OK;
}

// --- messages ----------------------------------------------------------------------------------

static bool is_token(const KTensor *t) {
    return t->dtype == DT_TOKEN;
}

// Tensors and a token behind them.
static bool is_message(const KTensor *t, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (is_token(&t[i]) != (i + 1 == n))
            return false;
    return n > 0;
}

bool gp_send_check(const Kern *k) {
    return is_message(k->in, k->nin) && is_message(k->out, k->nout) && k->nout == 1 &&
           (k->op == HLO_OUTFEED || coll_groups_ok(k));
}

bool gp_recv_check(const Kern *k) {
    return is_message(k->in, k->nin) && k->nin == 1 && is_message(k->out, k->nout) &&
           (k->op == HLO_INFEED || coll_groups_ok(k));
}

size_t gp_send_scratch(const Kern *k, int threads) {
    (void)threads;
    return (k->nin + k->nout) * sizeof(CommBuf);
}

size_t gp_recv_scratch(const Kern *k, int threads) {
    return gp_send_scratch(k, threads);
}

// Who the message comes from, as sender and receiver name it; *none when this device has no part.
static otrn_status message_from(const GpCall *c, bool sends, uint32_t *from, bool *none) {
    const HloAttr *pairs = kern_attr(c->k, AK_SOURCE_TARGET_PAIRS);
    *none = false;
    *from = COMM_ANY;
    if (!pairs || !pairs->n)
        return OTRN_OK;
    Route route;
    otrn_status s = route_find(c, &route);
    if (s != OTRN_OK)
        return s;
    *none = (sends ? route.target : route.source) == COMM_NONE;
    *from = sends ? coll_rank(c->comm) : route.source;
    return OTRN_OK;
}

static otrn_status no_comm(const GpCall *c) {
    return gp_fail(c, "there is nobody to talk to: the program runs on one device");
}

otrn_status gp_send_run(const GpCall *c) {
    const Kern *k = c->k;
    uint32_t from;
    bool none;
    if (k->op == HLO_OUTFEED) // the host takes it
        return OTRN_OK;
    if (!c->comm)
        return no_comm(c);
    otrn_status s = message_from(c, true, &from, &none);
    if (s != OTRN_OK || none)
        return s;
    CommBuf *bufs = c->scratch;
    for (uint32_t i = 0; i + 1 < k->nin; i++)
        bufs[i] = (CommBuf){.in = c->in[i], .in_bytes = gp_bytes(&k->in[i])};
    bool ok = comm_send(c->comm, gp_int(k, AK_CHANNEL_ID, 0), from, bufs, k->nin - 1);
    return ok ? OTRN_OK : gp_fail(c, "%s", comm_why(c->comm));
}

// What the host feeds comes in the order it was given.
otrn_status gp_recv_run(const GpCall *c) {
    const Kern *k = c->k;
    uint32_t from = COMM_ANY;
    bool none = false, infeed = k->op == HLO_INFEED;
    if (!c->comm)
        return no_comm(c);
    otrn_status s = infeed ? OTRN_OK : message_from(c, false, &from, &none);
    if (s != OTRN_OK)
        return s;
    CommBuf *bufs = c->scratch;
    for (uint32_t i = 0; i + 1 < k->nout; i++) {
        bufs[i] = (CommBuf){.out = c->out[i], .in_bytes = gp_bytes(&k->out[i])};
        if (none)
            zero(c, i);
    }
    if (none)
        return OTRN_OK;
    int64_t channel = infeed ? COMM_INFEED : gp_int(k, AK_CHANNEL_ID, 0);
    bool ok = comm_recv(c->comm, channel, from, bufs, k->nout - 1);
    return ok ? OTRN_OK : gp_fail(c, "%s", comm_why(c->comm));
}

// --- partition_id, replica_id ------------------------------------------------------------------

bool gp_device_id_check(const Kern *k) {
    return k->nin == 0 && k->nout == 1 && k->out[0].elems == 1 && gp_is_index(k->out[0].dtype);
}

otrn_status gp_device_id_run(const GpCall *c) {
    Grid g = coll_grid(c->comm);
    uint32_t rank = coll_rank(c->comm);
    bool replica = c->k->op == HLO_REPLICA_ID;
    dtype_from_i64(c->k->out[0].dtype, c->out[0],
                   replica ? grid_replica(g, rank) : grid_partition(g, rank));
    return OTRN_OK;
}
