// SPDX-License-Identifier: Apache-2.0
// gp_prog.c — scalar programs over blocks of lanes.
//
// Every register is an array of up to LANE_BLOCK elements of its type. Steps are resolved to lanes
// once per call and shared by all threads; registers belong to a slot (one task at a time uses a
// slot).
//
//   shared:  Lane per step
//   slot:    pointer per register | storage of the registers that are no inputs
#include "chip/gp.h"

static size_t reg_bytes(const KProg *p, int r) {
    return gp_align(LANE_BLOCK * dtype_bytes(p->dtypes[r]));
}

size_t prog_shared_bytes(const KProg *p) { return gp_align(p->nsteps * sizeof(Lane)); }

size_t prog_slot_bytes(const KProg *p) {
    size_t bytes = gp_align(p->nregs * sizeof(void *));
    for (int r = p->ninputs; r < p->nregs; r++)
        bytes += reg_bytes(p, r);
    return bytes;
}

static bool step_lane(Lane *lane, const GpLevel *level, const KProg *p, const KStep *s) {
    int nin = s->op < HLO_OPCODE_COUNT ? hlo_op_rows[s->op].operands : 0;
    uint8_t in[3];
    if (nin < 1 || nin > 3 || s->dst >= p->nregs)
        return false;
    for (int i = 0; i < nin; i++) {
        if (s->src[i] >= p->nregs)
            return false;
        in[i] = p->dtypes[s->src[i]];
    }
    return lane_find(lane, level, s->op, p->dtypes[s->dst], in, nin, s->attr);
}

bool prog_check(const KProg *p) {
    if (p->ninputs + p->ncaptures > p->nregs)
        return false;
    for (int r = 0; r < p->nregs; r++)
        if (lane_class(p->dtypes[r]) == LC_NONE)
            return false;
    for (int i = 0; i < p->nconsts; i++)
        if (p->const_regs[i] >= p->nregs || p->const_regs[i] < p->ninputs)
            return false;
    for (int i = 0; i < p->nouts; i++)
        if (p->outs[i] >= p->nregs)
            return false;
    for (int i = 0; i < p->nsteps; i++) {
        Lane lane;
        if (p->steps[i].dst < p->ninputs || !step_lane(&lane, &gp_level_portable, p, &p->steps[i]))
            return false;
    }
    return true;
}

void *prog_resolve(const KProg *p, const GpLevel *level, void *shared) {
    Lane *lanes = shared;
    for (int i = 0; i < p->nsteps; i++)
        step_lane(&lanes[i], level, p, &p->steps[i]);
    return (char *)shared + prog_shared_bytes(p);
}

void prog_init(Prog *g, const KProg *p, const void *shared, void *slot,
               const void *const *captures) {
    *g = (Prog){.p = p, .lanes = shared, .at = slot};
    char *at = (char *)slot + gp_align(p->nregs * sizeof(void *));
    for (int r = 0; r < p->nregs; r++) {
        g->at[r] = NULL;
        if (r >= p->ninputs) {
            g->at[r] = at;
            at += reg_bytes(p, r);
        }
    }
    for (int i = 0; i < p->ncaptures; i++) {
        int r = p->ninputs + i;
        gp_fill(g->at[r], captures[i], dtype_bytes(p->dtypes[r]), LANE_BLOCK);
    }
    for (int i = 0; i < p->nconsts; i++) {
        int r = p->const_regs[i];
        gp_fill(g->at[r], p->consts[i], dtype_bytes(p->dtypes[r]), LANE_BLOCK);
    }
}

void prog_run(const Prog *g, size_t n) {
    for (int i = 0; i < g->p->nsteps; i++) {
        const KStep *s = &g->p->steps[i];
        const void *src[3];
        for (int j = 0; j < g->lanes[i].nin; j++)
            src[j] = g->at[s->src[j]];
        lane_run(&g->lanes[i], g->at[s->dst], src, n);
    }
}

bool prog_red_op(const KProg *p, RedOp *op) {
    if (p->nsteps != 1 || p->nouts != 1 || p->ninputs != 2 || p->outs[0] != p->steps[0].dst)
        return false;
    const KStep *s = &p->steps[0];
    if (!(s->src[0] == 0 && s->src[1] == 1) && !(s->src[0] == 1 && s->src[1] == 0))
        return false;
    switch (s->op) {
    case HLO_ADD: *op = RED_ADD; return true;
    case HLO_MULTIPLY: *op = RED_MUL; return true;
    case HLO_MAXIMUM: *op = RED_MAX; return true;
    case HLO_MINIMUM: *op = RED_MIN; return true;
    case HLO_AND: *op = RED_AND; return true;
    case HLO_OR: *op = RED_OR; return true;
    case HLO_XOR: *op = RED_XOR; return true;
    default: return false;
    }
}
