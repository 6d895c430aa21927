// SPDX-License-Identifier: Apache-2.0
// plan_run.c — executes a run of the host plan: its instructions become jobs once, then each thread takes slices of
// partitions through all of them.
#include "chip/core.h"

static __attribute__((noinline)) void slices_run(const PlanWork *r, uint32_t begin, uint32_t end) {
    _Alignas(64) uint8_t local[PLAN_LOCAL_BYTES];
    EngBuf s;
    for (uint32_t p = begin * r->slice; p < end * r->slice; p += r->slice)
        for (uint32_t i = 0; i < r->njobs; i++)
            eng_job_run(&r->jobs[i], p, p + r->slice, local, &s);
}

void plan_work_run(const PlanWork *w, uint32_t begin, uint32_t end) {
    HostFp old = host_fp_begin(HOST_FP_IEEE);
    slices_run(w, begin, end);
    host_fp_end(old);
}

static void slices_task(void *arg, size_t begin, size_t end) { plan_work_run(arg, (uint32_t)begin, (uint32_t)end); }

// The HBM side of a transfer, as rows for an instruction that begins at partition `part`.
static EffOperand hbm_rows(const IsaInst *dma, uint32_t part, uint32_t at, uint8_t *const *segs) {
    bool out = addr_space(dma->dst) == SPACE_HBM;
    uint64_t addr = out ? dma->dst : dma->src;
    int64_t pitch = (out ? dma->d[0] : dma->s[0]) * (int64_t)dtype_bytes(dma->stype);
    int64_t rows = (int64_t)part - (int64_t)addr_part(out ? dma->src : dma->dst);
    return (EffOperand){.at = segs[addr_seg(addr)] + addr_off(addr) + at + rows * pitch, .pitch = pitch};
}

static void override(EffCall *call, const PlanOver *o, const PlanRun *run, const ChipProg *p, uint32_t part,
                     uint8_t *const *segs) {
    EffOperand *const slots[PLAN_SLOTS] = {[PLAN_DST] = &call->dst,   [PLAN_SRC] = &call->src,
                                           [PLAN_SRC1] = &call->src1, [PLAN_RES] = &call->res,
                                           [PLAN_A] = &call->a,       [PLAN_B] = &call->b};
    EffOperand *to = slots[o->slot];
    if (o->how == PLAN_HBM)
        *to = hbm_rows(&p->art->code[o->dma], part, o->at, segs);
    else
        *to = (EffOperand){.at = (uint8_t *)(uintptr_t)o->at, .pitch = run->local_pitch, .local = true,
                                         .nowhere = o->how == PLAN_NOWHERE};
    to->dtype = o->dtype;
}

PlanWork plan_work(const Chip *c, const ChipProg *p, const PlanRun *run, uint8_t *const *segs, EngJob *jobs,
                   EngineState *state) {
    const Artifact *art = p->art;
    const PlanOver *o = p->plan->overs.at + run->over, *end = o + run->nover;
    PlanWork r = {.jobs = jobs, .slice = run->slice, .slices = (run->parts + run->slice - 1u) / run->slice};
    for (uint32_t pc = run->first; pc < run->end; pc++) {
        const IsaInst *in = &art->code[pc];
        int cost = isa_rows[in->op].cost;
        if (cost == COST_CONTROL || cost == COST_ACTLOAD)
            continue;
        if (o < end && o->pc == pc && o->slot == PLAN_SKIP) {
            o++;
            continue;
        }
        EngJob *job = &jobs[r.njobs++];
        bool dma = cost == COST_DMA;
        job->part = addr_part(dma && addr_space(in->dst) == SPACE_HBM ? in->src : in->dst);
        EffCall call = {.in = in, .state = state, .level = c->level, .job = job};
        if (dma) {
            call.dst.at = chip_resolve(c, segs, in->dst, &call.dst.pitch);
            call.src.at = chip_resolve(c, segs, in->src, &call.src.pitch);
        } else {
            call.dst = chip_operand(c, segs, in->dst);
            call.src = chip_operand(c, segs, in->src);
            call.src1 = chip_operand(c, segs, in->src1);
            call.res = chip_operand(c, segs, in->res);
            call.a = chip_operand(c, segs, in->a);
            call.b = chip_operand(c, segs, in->b);
        }
        for (; o < end && o->pc == pc; o++)
            override(&call, o, run, p, job->part, segs);
        effect_find(in->op)(&call);
        r.elems += (uint64_t)job->rows * eng_cols(in);
    }
    return r;
}

void plan_run(Chip *c, const ChipProg *p, const PlanRun *run, uint8_t *const *segs) {
    PlanWork w = plan_work(c, p, run, segs, c->jobs, &c->engines);
    pool_run(w.elems < PLAN_GRAIN_ELEMS ? NULL : c->pool, w.slices, 1, slices_task, &w);
}
