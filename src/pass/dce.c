// SPDX-License-Identifier: Apache-2.0
// dce.c — drop operations whose results nobody reads.
// needs: the entry function, values defined before use
// gives: regions without dead ops
// stale: nothing
//
// One backward walk: an op is kept when it has an effect or a live result; keeping it makes its
// operands live, and those its regions read from outside.
#include <string.h>

#include "pass/walk.h"

static void sweep(Hlo *h, RegionId r, bool *live) {
    HloRegion *region = &h->regions.at[r];
    uint32_t kept = region->ops.n;
    for (uint32_t i = region->ops.n; i-- > 0;) {
        OpId id = region->ops.at[i];
        const HloOp *op = hlo_at(h, id);
        bool keep = op_has_effect(h, op);
        for (uint32_t k = 0; k < op->nresults && !keep; k++)
            keep = live[op->results + k];
        if (!keep)
            continue;
        for (uint32_t k = 0; k < op->noperands; k++)
            live[hlo_operand(h, op, k)] = true;
        for (uint32_t k = 0; k < op->nregions; k++)
            sweep(h, h->op_regions.at[op->regions + k], live);
        region->ops.at[--kept] = id;
    }
    uint32_t n = region->ops.n - kept;
    for (uint32_t i = 0; i < n; i++)
        region->ops.at[i] = region->ops.at[kept + i];
    region->ops.n = n;
}

void pass_dce(Compile *c) {
    bool *live = ARENA_NEWN(c->scratch, bool, c->hlo->values.n);
    sweep(c->hlo, hlo_main(c->hlo)->body, live);
}
