// SPDX-License-Identifier: Apache-2.0
// effect.c — the table of effects, and the two that only move data.
#include "chip/effect.h"

#include <string.h>

#include "chip/dma.h"

static otrn_status run_copy(const EffCall *c) {
    const IsaInst *in = c->in;
    tensor_copy(c->pool, c->level, c->dst.at, (size_t)c->dst.pitch, in->dtype, in->d[1], c->src.at,
                (size_t)c->src.pitch, in->stype, in->s[1], in->n[0], in->n[1]);
    return OTRN_OK;
}

static otrn_status run_memset(const EffCall *c) {
    const IsaInst *in = c->in;
    size_t elem = dtype_bytes(in->dtype);
    for (uint32_t p = 0; p < in->n[0]; p++)
        for (uint32_t j = 0; j < in->n[1]; j++)
            memcpy(c->dst.at + p * c->dst.pitch + (int64_t)j * in->d[1] * (int64_t)elem, &in->imm, elem);
    return OTRN_OK;
}

EffFn *effect_find(int op) {
    switch (op) {
    case ISA_COPY:
        return run_copy;
    case ISA_MEMSET:
        return run_memset;
    default:
        return NULL;
    }
}
