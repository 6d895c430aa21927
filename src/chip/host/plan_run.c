// SPDX-License-Identifier: Apache-2.0
// plan_run.c — executes a run of the host plan: its instructions become jobs once, then each thread takes slices of
// partitions through all of them.
//
// Rows that are read and written in HBM would be waited for, and the arithmetic of other jobs would leave memory idle.
// So each row is fetched ahead beside the last job of much arithmetic before the one that needs it; what the first jobs
// of a slice need, beside the last such job of the slice before. A job of much arithmetic needs no help with its own rows.
#include "chip/host/chain.h"
#include "chip/core/core.h"

#define FETCH_LEAST 1024 // bytes of a row
#define LINE 64

static void rows_fetch(const PlanWork *w, uint32_t first, uint32_t part) {
    for (uint32_t i = first; i; i = w->jobs[i - 1].next_fetch) {
        const EngJob *j = &w->jobs[i - 1];
        uint32_t row = part + (j->in_next_slice ? w->slice : 0) - j->part;
        for (uint32_t k = 0; row < j->rows && k < j->nhbm; k++)
            for (uint32_t at = 0; at < j->hbm[k].bytes; at += LINE)
                __builtin_prefetch(j->hbm[k].at + (int64_t)row * j->hbm[k].pitch + at, 0, 2);
    }
}

static void job_slice(const PlanWork *w, const EngJob *j, uint32_t p, uint8_t *local, EngBuf *s) {
    if (j->is_chain) {
        chain_rows(j, p, p, p + w->slice, local);
        return;
    }
    if (!j->fetch) {
        eng_job_run(j, p, p, p + w->slice, local, s);
        return;
    }
    for (uint32_t q = p; q < p + w->slice; q++) {
        eng_job_run(j, p, q, q + 1, local, s);
        rows_fetch(w, j->fetch, q);
    }
}

static __attribute__((noinline)) void slices_run(const PlanWork *r, uint32_t begin, uint32_t end) {
    _Alignas(64) uint8_t local[PLAN_LOCAL_BYTES];
    EngBuf s;
    for (uint32_t p = begin * r->slice; p < end * r->slice; p += r->slice)
        for (uint32_t i = 0; i < r->njobs; i += r->jobs[i].span)
            job_slice(r, &r->jobs[i], p, local, &s);
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

static bool is_heavy(const IsaInst *in) {
    bool acts = in->op == ISA_ACTIVATE || in->op == ISA_ACTIVATE2;
    return in->op == ISA_EXPONENTIAL || (acts && in->fn != ACT_COPY && in->fn != ACT_IDENTITY);
}

// The rows that an operand of the job has in HBM.
static void hbm_add(EngJob *j, const EffCall *c, const PlanOver *o) {
    const EffOperand *at = o->slot == PLAN_DST ? &c->dst : o->slot == PLAN_SRC ? &c->src : &c->src1;
    int dtype = o->slot == PLAN_DST ? c->in->dtype : o->slot == PLAN_SRC ? c->in->stype : c->in->ttype;
    uint32_t bytes = (uint32_t)(eng_cols(c->in) * dtype_bytes(at->dtype ? at->dtype : dtype));
    if (o->slot <= PLAN_SRC1 && bytes >= FETCH_LEAST && j->nhbm < 2)
        j->hbm[j->nhbm].at = at->at, j->hbm[j->nhbm].pitch = at->pitch, j->hbm[j->nhbm++].bytes = bytes;
}

// Puts each job's rows beside the last job of much arithmetic before it.
static void fetches_place(PlanWork *w) {
    uint32_t heavy = 0;
    for (uint32_t i = 0; i < w->njobs; i += w->jobs[i].span)
        heavy = w->jobs[i].is_heavy ? i + 1 : heavy;
    uint32_t beside = heavy;
    bool early = true; // the last one belongs to the slice before
    for (uint32_t i = 0; i < w->njobs && heavy; i += w->jobs[i].span) {
        EngJob *j = &w->jobs[i];
        if (j->is_heavy) {
            beside = i + 1, early = false;
        } else if (j->nhbm) {
            j->in_next_slice = early;
            j->next_fetch = w->jobs[beside - 1].fetch;
            w->jobs[beside - 1].fetch = (uint16_t)(i + 1);
        }
    }
}

PlanWork plan_work(const Chip *c, const ChipProg *p, const PlanRun *run, uint8_t *const *segs, EngJob *jobs,
                   EngineState *state) {
    const Artifact *art = p->art;
    const uint8_t *spared = p->plan->spared;
    const PlanOver *o = p->plan->overs.at + run->over, *end = o + run->nover;
    PlanWork r = {.jobs = jobs, .slice = run->slice, .slices = (run->parts + run->slice - 1u) / run->slice};
    uint32_t fetched = UINT32_MAX; // fetched: the transfer whose data was met last
    for (uint32_t pc = run->first; pc < run->end; pc++) {
        const IsaInst *in = &art->code[pc];
        int cost = isa_rows[in->op].cost;
        if (cost == COST_CONTROL || cost == COST_STREAM || cost == COST_ACTLOAD || (spared && spared[pc] == PLAN_SPARED_RESULT))
            continue;
        if (o < end && o->pc == pc && o->slot == PLAN_SKIP) {
            o++;
            continue;
        }
        EngJob *job = &jobs[r.njobs++];
        job->nhbm = job->fetch = job->next_fetch = 0;
        job->span = 1, job->is_chain = false;
        job->pc = pc, job->until = 0;
        job->is_heavy = is_heavy(in);
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
        for (; o < end && o->pc == pc; o++) {
            override(&call, o, run, p, job->part, segs);
            if (o->how == PLAN_LOCAL && o->slot == PLAN_DST)
                job->until = o->dma;
            if (o->how == PLAN_HBM && o->dma != fetched)
                hbm_add(job, &call, o), fetched = o->dma;
        }
        effect_find(in->op)(&call);
        r.elems += (uint64_t)job->rows * eng_cols(in);
    }
    chains_find(jobs, r.njobs, gp_level(c->level)->eng);
    fetches_place(&r);
    return r;
}

void plan_run(Chip *c, const ChipProg *p, const PlanRun *run, uint8_t *const *segs) {
    PlanWork w = plan_work(c, p, run, segs, c->jobs, &c->engines);
    uint64_t grain = w.elems < PLAN_GRAIN_ELEMS ? w.slices : 1;
    pool_run(c->pool, w.slices, grain, slices_task, &w);
}
