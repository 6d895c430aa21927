// SPDX-License-Identifier: Apache-2.0
// effect_pair.c — the two cores of a pair: core_barrier and sendrecv. A logical core has two; devices of one core each are pairs
// by number, 2i and 2i + 1.
#include "chip/core/effects.h"

#include "base/round.h"
#include "chip/core/dma.h"
#include "coll/comm.h"

typedef struct Pair {
    CommBuf buf;
    CommPost post;
} Pair;

// What both must agree on, as one number.
static uint64_t signature_of(const IsaInst *in) {
    uint64_t h = in->op;
    const int64_t parts[] = {in->stype, in->n[0], in->n[1], in->n[2], in->n[3], in->s[0], in->s[1], in->s[2], in->s[3],
                             in->op == ISA_SENDRECV ? in->value : in->imm};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        h = h << 32 ^ h >> 7 ^ round_bits((uint32_t)h, (uint32_t)parts[i]);
    return h;
}

static otrn_status pair_meet(const EffCall *c, Pair *k, const void *src) {
    if (!c->comm)
        return eff_fail(c, "this core has no pair: the program runs on one device");
    *k = (Pair){.buf = {.in = src}};
    if (!comm_has_pair(c->comm))
        return eff_fail(c, "device %u has no pair among %u", comm_number(c->comm), grid_ranks(comm_grid(c->comm)));
    k->post = (CommPost){.signature = signature_of(c->in), .name = isa_rows[c->in->op].name, .nbufs = 1, .bufs = &k->buf};
    if (!comm_meet_pair(c->comm, &k->post))
        return eff_fail(c, "%s", comm_why(c->comm));
    return OTRN_OK;
}

otrn_status eff_core_barrier(const EffCall *c) {
    Pair k;
    otrn_status s = pair_meet(c, &k, NULL);
    if (s == OTRN_OK)
        comm_leave(c->comm);
    return s;
}

// Each reads the other's src; both stay until both have.
otrn_status eff_sendrecv(const EffCall *c) {
    const IsaInst *in = c->in;
    Pair k;
    if (c->comm && comm_core(c->comm) == (uint32_t)in->imm)
        return eff_fail(c, "imm=%d: a core exchanges with the other one of its pair", in->imm);
    otrn_status status = pair_meet(c, &k, c->src.at);
    if (status != OTRN_OK)
        return status;
    const uint8_t *theirs = comm_post(c->comm, 1 - comm_core(c->comm))->bufs[0].in;
    int64_t d[4], s[4], bytes = (int64_t)dtype_bytes(in->stype);
    for (int i = 0; i < 4; i++)
        d[i] = in->d[i] * bytes, s[i] = in->s[i] * bytes;
    d[0] = c->dst.pitch, s[0] = c->src.pitch;
    dma_copy(c->pool, c->level, c->dst.at, d, theirs, s, in->n, (size_t)bytes, false);
    comm_leave(c->comm);
    return OTRN_OK;
}
