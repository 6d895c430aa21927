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

bool op_has_effect(const Hlo *h, const HloOp *op) {
    switch (op->code) {
    case HLO_RETURN:
    case HLO_SEND:
    case HLO_RECV:
    case HLO_INFEED:
    case HLO_OUTFEED:
    case HLO_RNG: // moves its stream on
        return true;
    case HLO_CUSTOM_CALL:
        return hlo_int(op, AK_HAS_SIDE_EFFECT, 0) || op->nresults == 0 ||
               !strncmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), "check.", 6); // may fail the run
    default:
        break;
    }
    if (hlo_row(op)->dialect == HD_CHECK || hlo_row(op)->cls == HC_COLL)
        return true;
    for (uint32_t r = 0; r < op->nregions; r++) {
        const HloRegion *region = hlo_op_region(h, op, r);
        for (uint32_t i = 0; i < region->ops.n; i++) {
            const HloOp *inner = hlo_at(h, region->ops.at[i]);
            if (inner->code != HLO_RETURN && op_has_effect(h, inner))
                return true;
        }
    }
    return false;
}

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
