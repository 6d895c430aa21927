// SPDX-License-Identifier: Apache-2.0
// chip.c — the core: memories, registers, and the loop that executes instructions in program order.
//
// A partition's bytes are contiguous. Partitions lie a padded pitch apart: with a pitch of a power of two
// all 128 would meet in the same few cache sets and matrix products would run at a third of their speed.
// What may go wrong was checked when the artifact was loaded; here only what depends on values of the run
// is: addresses with registers of unknown value, and waits for the program's own semaphores.
#include "chip/core/chip.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/now.h"
#include "base/round.h"
#include "chip/core/check.h"
#include "chip/core/core.h"
#include "chip/core/dma.h"
#include "chip/host/flow.h"
#include "chip/core/nan.h"
#include "chip/host/matmul.h"
#include "coll/comm.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define BLOCK_ROW (MM_BLOCK_COLS * 4u) // bytes of a partition that a block of fp32 holds

Chip *chip_make(Pool *pool, HostLevel level) {
    Chip *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    size_t sbuf = ((size_t)SBUF_PITCH * PARTITIONS + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    size_t psum = ((size_t)PSUM_PITCH * PARTITIONS + 63) & ~(size_t)63;
    size_t blocks = (ISA_SBUF_BYTES / BLOCK_ROW * MM_BLOCK_FLOATS * 4 + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    size_t pe = (sizeof(PeArray) + 63) & ~(size_t)63;
    size_t jobs = (PLAN_STEPS * sizeof(EngJob) + 63) & ~(size_t)63;
    c->map_bytes = sbuf + blocks + psum + pe + jobs + flow_bytes() + 2 * HUGE_PAGE;
    c->map = mmap(NULL, c->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->map == MAP_FAILED || posix_memalign((void **)&c->array.panels, 64, MM_PANEL_BYTES)) {
        if (c->map != MAP_FAILED)
            munmap(c->map, c->map_bytes);
        free(c);
        return NULL;
    }
    c->sbuf = (uint8_t *)(((uintptr_t)c->map + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    c->blocks = c->sbuf + sbuf;
    c->psum = c->blocks + blocks;
    c->engines.pe = (PeArray *)(c->psum + psum);
    c->jobs = (EngJob *)(c->psum + psum + pe);
    c->flow = flow_begin(c->psum + psum + pe + jobs);
    c->plan = CHIP_PLAN_ON;
    madvise(c->sbuf, sbuf + blocks + HUGE_PAGE, MADV_HUGEPAGE);
    c->pool = pool;
    c->level = level;
    return c;
}

void chip_small_pages(Chip *c) { madvise(c->sbuf, (size_t)((uint8_t *)c->engines.pe - c->sbuf), MADV_NOHUGEPAGE); }

void chip_set_level(Chip *c, HostLevel level) { c->level = level; }
void chip_set_pulse(Chip *c, Pulse *pulse, bool tells) { c->pulse = pulse, c->tells = tells; }

void chip_free(Chip *c) {
    if (!c)
        return;
    free(c->array.panels);
    munmap(c->map, c->map_bytes);
    free(c);
}

void chip_attach(Chip *c, Pool *pool, struct CommRank *comm) {
    c->pool = pool;
    c->comm = comm;
}

void chip_set_host(Chip *c, const ChipHost *host) {
    c->host = host;
}

ChipPlan chip_plan_of(const char *option) {
    return !strcmp(option, "off") ? CHIP_PLAN_OFF : !strcmp(option, "all") ? CHIP_PLAN_ALL : CHIP_PLAN_ON;
}

void chip_set_plan(Chip *c, ChipPlan plan) { c->plan = plan; }

uint64_t chip_draws(const Chip *c) { return c->draws; }

void chip_draw_from(Chip *c, uint64_t first) { c->first_draw = c->draws = first; }

void chip_set_profile(Chip *c, ChipProfile *profile) { c->profile = profile; }

void chip_round(Chip *c, bool stochastic, uint64_t seed) {
    c->round = (EffRound){.stochastic = stochastic, .seed = seed};
}

// An address with its register terms added.
static uint64_t with_terms(const Chip *c, uint64_t addr, const uint8_t reg[2], const int32_t mul[2]) {
    for (int i = 0; i < 2 && reg[i]; i++)
        addr += (uint64_t)(c->regs[reg[i] - 1] * mul[i]);
    return addr;
}
static uint64_t dst_addr(const Chip *c, const IsaInst *in) {
    return with_terms(c, in->dst, in->reg_d, in->mul_d);
}
static uint64_t src_addr(const Chip *c, const IsaInst *in) {
    return with_terms(c, in->src, in->reg_s, in->mul_s);
}

static otrn_status check_addresses(const Chip *c, const Artifact *art, const IsaInst *in, char *why,
                                   size_t why_bytes) {
    IsaAccess access[ISA_ACCESS_MAX];
    int n = isa_accesses(in, isa_row_mask(in->op), access);
    for (int i = 0; i < n; i++) {
        __int128 terms = 0;
        for (int k = 0; access[i].reg && k < 2 && access[i].reg[k]; k++)
            terms += (__int128)c->regs[access[i].reg[k] - 1] * access[i].mul[k];
        char text[ISA_WHY];
        bool far = terms > (int64_t)1 << 48 || terms < -((int64_t)1 << 48);
        int64_t by = far ? (int64_t)1 << 48 : (int64_t)terms;
        const char *bad = artifact_access_fault(art, in, &access[i], by, text);
        if (bad) {
            snprintf(why, why_bytes, "%s: %s: %s, registers add %s%lld bytes to its address",
                     engine_names[in->engine], isa_rows[in->op].name, bad, far ? "more than " : "",
                     (long long)by);
            return OTRN_VERIFY;
        }
    }
    return OTRN_OK;
}

// In program order a wait is met, or never will be.
static otrn_status check_sems(const Chip *c, const IsaInst *in, char *why, size_t why_bytes) {
    for (int w = 0; w < 2; w++) {
        int sem = in->wait_sem[w];
        if (sem == SEM_NONE || sem & SEM_BACK || sem < SEM_USER)
            continue;
        int64_t have = c->sems[sem - SEM_USER];
        if (have >= (int64_t)in->wait_val[w])
            continue;
        snprintf(why, why_bytes, "%s: %s: waits for s%d>=%u but it is %lld: no instruction before it signals it",
                 engine_names[in->engine], isa_rows[in->op].name, sem - SEM_USER, in->wait_val[w],
                 (long long)have);
        return OTRN_VERIFY;
    }
    return OTRN_OK;
}

static void signal_sem(Chip *c, const IsaInst *in) {
    if (!in->upd_sem)
        return;
    int64_t *sem = &c->sems[in->upd_sem - 1];
    int op = in->upd_op & ~UPD_AT_READ;
    *sem = op == UPD_ADD ? *sem + in->upd_val : op == UPD_SUB ? *sem - in->upd_val : in->upd_val;
}

// Does the plan have the operand in blocks, and does this host?
static bool in_blocks(const Chip *c, const ChipProg *p, uint32_t pc) {
    return c->follows && p->plan->blocks && p->plan->blocks[pc] && mm_takes_blocks(c->level, p->art->code[pc].stype);
}

// The blocks of a place in SBUF, from its partition on.
static uint8_t *blocks_at(const Chip *c, uint64_t addr, int stype) {
    size_t row = MM_BLOCK_COLS * dtype_bytes(stype), line = MM_BLOCK_COLS * 4, part = addr_part(addr);
    return c->blocks + addr_poff(addr) / row * (row * MM_BLOCK_FLOATS / MM_BLOCK_COLS) + (stype == DT_F32 ? part : part / 2) * line;
}

bool chip_copy_of(const Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs, DmaCopy *out) {
    const IsaInst *in = &p->art->code[pc];
    int64_t dst0, src0, d[4], s[4], elem = (int64_t)dtype_bytes(in->stype);
    uint8_t *dst = chip_resolve(c, segs, dst_addr(c, in), &dst0);
    const uint8_t *src = chip_resolve(c, segs, src_addr(c, in), &src0);
    if (dst == src)
        return false; // a result bound to the memory of its argument
    for (int i = 0; i < 4; i++) {
        d[i] = in->d[i] * elem;
        s[i] = in->s[i] * elem;
    }
    if (dst0)
        d[0] = dst0;
    if (src0)
        s[0] = src0;
    if (in_blocks(c, p, pc)) {
        *out = dma_blocks(blocks_at(c, in->dst, in->stype), d, src, s, in->n, (size_t)elem);
        return true;
    }
    *out = dma_prepare(c->level, dst, d, src, s, in->n, (size_t)elem, !dst0);
    return true;
}

static void copy_rows(void *arg, size_t begin, size_t end) { dma_rows(arg, begin, end); }

static void run_copy(const Chip *c, DmaCopy *copy) { pool_run(c->pool, copy->rows, copy->grain, copy_rows, copy); }

static void run_dma(const Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs) {
    DmaCopy copy;
    if (chip_copy_of(c, p, pc, segs, &copy))
        run_copy(c, &copy);
}

static uint32_t count(uint32_t n) { // as written in an instruction: none reads as one
    return n ? n : 1;
}

static MmLoad load_resolve(const Chip *c, const IsaInst *in, uint8_t *const *segs) {
    int64_t pitch;
    const uint8_t *src = chip_resolve(c, segs, src_addr(c, in), &pitch);
    return (MmLoad){.src = src, .pitch = (size_t)pitch, .stride = in->s[1], .stype = in->stype,
                    .k = count(in->n[0]), .m = count(in->n[1])};
}

static MmStep matmul_resolve(const Chip *c, const IsaInst *in, uint8_t *const *segs) {
    int64_t dst_pitch, src_pitch, dst_at = (int64_t)addr_poff(dst_addr(c, in));
    uint8_t *dst = chip_resolve(c, segs, dst_addr(c, in), &dst_pitch);
    const uint8_t *src = chip_resolve(c, segs, src_addr(c, in), &src_pitch);
    uint32_t rows = count(in->n[3]), n = count(in->n[1]) * rows;
    int64_t last = (int64_t)(n - 1) * in->d[1] * 4; // a row's last element, from its first
    return (MmStep){.call = {.dst = (float *)dst, .dst_pitch = (size_t)dst_pitch,
                             .dst_stride = n == 1 ? 1 : in->d[1], .src = src, .src_pitch = (size_t)src_pitch,
                             .src_stride = in->s[1], .stype = in->stype, .row = rows > 1 ? in->n[1] : 0,
                             .src_row = in->s[3] * (int64_t)dtype_bytes(in->stype), .accumulate = in->flags & MATMUL_ACCUMULATE},
                    .n = n,
                    .dst_begin = (uint32_t)(dst_at + (last < 0 ? last : 0)),
                    .dst_end = (uint32_t)(dst_at + (last > 0 ? last : 0) + 4)};
}

static void *pe_place(const Plan *plan, uint32_t number, uint8_t *const *segs, size_t *pitch) {
    const PlanPe *o = &plan->pe.at[number - 1];
    *pitch = (size_t)o->pitch;
    return segs[o->seg] + o->off;
}

MmLoad chip_load_of(const Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs) {
    MmLoad load = load_resolve(c, &p->art->code[pc], segs);
    if (c->follows && p->plan->pe_at && p->plan->pe_at[pc])
        load.src = pe_place(p->plan, p->plan->pe_at[pc], segs, &load.pitch);
    load.blocks = in_blocks(c, p, pc);
    if (load.blocks)
        load.src = blocks_at(c, p->art->code[pc].src, load.stype);
    return load;
}

MmStep chip_product_of(const Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs) {
    const IsaInst *in = &p->art->code[pc];
    MmStep step = matmul_resolve(c, in, segs);
    if (c->follows && p->plan->pe_at && p->plan->pe_at[pc])
        step.call.src = pe_place(p->plan, p->plan->pe_at[pc], segs, &step.call.src_pitch);
    if (c->follows && p->plan->out_at && p->plan->out_at[pc])
        step.call.out = pe_place(p->plan, p->plan->out_at[pc], segs, &step.call.out_pitch);
    step.call.blocks = in_blocks(c, p, pc);
    if (step.call.blocks)
        step.call.src = blocks_at(c, in->src, in->stype);
    return step;
}

// The loads and products from pc on with nothing between them, as one piece of work; returns the pc after them.
// One that has to be looked at by itself begins a piece of its own.
static uint32_t run_tensor(Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs) {
    const Artifact *art = p->art;
    uint32_t first = pc;
    MmStep steps[MM_STEPS_MAX];
    MmLoad load = {0};
    uint32_t nsteps = 0;
    const uint8_t *spared = c->follows ? p->plan->spared : NULL;
    for (; pc < art->ncode && nsteps < MM_STEPS_MAX; pc++) {
        const IsaInst *in = &art->code[pc];
        if (pc > first && (c->check || c->nan || p->dynamic[pc] || p->pe[pc] & PE_RARE))
            break;
        if (in->op == ISA_LDWEIGHTS) {
            load = chip_load_of(c, p, pc, segs);
        } else if (in->op == ISA_MATMUL) {
            steps[nsteps] = chip_product_of(c, p, pc, segs);
            if (c->profile)
                c->profile->flop += 2.0 * count(in->n[0]) * count(in->n[1]) * count(in->n[2]) * count(in->n[3]);
            steps[nsteps++].load = load;
            load.src = NULL;
        } else if (!spared || !spared[pc] || p->plan->run_at[pc]) { // a transfer that is left out parts nothing
            break;
        }
    }
    if (nsteps)
        mm_run_steps(c->pool, c->level, &c->array, steps, nsteps);
    if (load.src)
        mm_load(c->level, &c->array, &load);
    c->round.instruction += pc - first - 1;
    return pc;
}

EffCall chip_effect_of(const Chip *c, const IsaInst *in, uint8_t *const *segs) {
    EffCall call = {.in = in, .level = c->level};
    if (isa_rows[in->op].cost == COST_DMA) { // address 0 is a place of theirs
        call.dst.at = chip_resolve(c, segs, dst_addr(c, in), &call.dst.pitch);
        call.src.at = chip_resolve(c, segs, src_addr(c, in), &call.src.pitch);
    } else {
        call.dst = chip_operand(c, segs, dst_addr(c, in));
        call.src = chip_operand(c, segs, src_addr(c, in));
    }
    call.src1 = chip_operand(c, segs, with_terms(c, in->src1, in->reg_t, in->mul_t));
    call.res = chip_operand(c, segs, in->res);
    call.a = chip_operand(c, segs, in->a);
    call.b = chip_operand(c, segs, in->b);
    return call;
}

// from: where src lies instead, when that is elsewhere; to: likewise of dst.
static otrn_status run_effect_from(Chip *c, const IsaInst *in, uint8_t *const *segs, const EffOperand *from, const EffOperand *to,
                                   char *why, size_t why_bytes) {
    EffCall call = chip_effect_of(c, in, segs);
    call.state = &c->engines, call.pool = c->pool, call.comm = c->comm, call.round = &c->round;
    call.why = why, call.why_bytes = why_bytes;
    if (from)
        call.src = *from;
    if (to)
        call.dst = *to;
    return effect_find(in->op)(&call);
}

static otrn_status run_effect(Chip *c, const IsaInst *in, uint8_t *const *segs, char *why, size_t why_bytes) {
    return run_effect_from(c, in, segs, NULL, NULL, why, why_bytes);
}

// The arguments of a function are what the instruction would write if it were the identity.
static void look_at_arguments(Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs) {
    IsaInst in = p->art->code[pc];
    size_t cols = 1;
    for (int i = 4; i >= 1; i--) {
        in.d[i] = (int32_t)cols;
        cols *= count(in.n[i]);
    }
    in.fn = ACT_IDENTITY;
    in.dtype = DT_F32;
    in.rcmd = RCMD_IDLE;
    in.res = 0;
    float *to = check_range_room(c->range, count(in.n[0]) * cols);
    char why[64];
    run_effect_from(c, &in, segs, NULL, &(EffOperand){.at = (uint8_t *)to, .pitch = (int64_t)cols * 4}, why, sizeof why);
    check_range_look(c->range, p->art, pc, count(in.n[0]), cols);
}

// A transfer in and the transfer out that reads its data, as one.
DmaCopy chip_through_of(const Chip *c, const IsaInst *in, const IsaInst *out, uint8_t *const *segs) {
    int64_t d[4], s[4], elem = (int64_t)dtype_bytes(in->stype);
    const uint8_t *src = segs[addr_seg(in->src)] + addr_off(in->src);
    for (int i = 0; i < 4; i++)
        d[i] = out->d[i] * elem, s[i] = in->s[i] * elem;
    return dma_prepare(c->level, segs[addr_seg(out->dst)] + addr_off(out->dst), d, src, s, in->n, (size_t)elem, true);
}

static otrn_status run_through(Chip *c, const IsaInst *in, const IsaInst *out, uint8_t *const *segs, char *why,
                               size_t why_bytes) {
    if (out->op == ISA_DMA_INDIRECT) {
        EffOperand from = {.at = segs[addr_seg(in->src)] + addr_off(in->src),
                           .pitch = in->s[0] * (int64_t)dtype_bytes(in->stype)};
        return run_effect_from(c, out, segs, &from, NULL, why, why_bytes);
    }
    DmaCopy copy = chip_through_of(c, in, out, segs);
    run_copy(c, &copy);
    return OTRN_OK;
}

static uint32_t run_indirect(Chip *c, const ChipProg *p, uint32_t pc, uint8_t *const *segs, otrn_status *s, char *why,
                             size_t why_bytes) {
    double begin = c->profile ? now_seconds() : 0;
    uint32_t next = indirect_run(c, p, pc, segs, s, why, why_bytes);
    if (c->profile && next != pc)
        profile_add(c->profile, ISA_DMA_INDIRECT, next - pc, begin);
    return next;
}

static otrn_status run_kernel(Chip *c, ChipProg *p, uint32_t index, uint8_t *const *segs, char *why,
                              size_t why_bytes) {
    const Kern *k = &p->art->kerns[index];
    void **ptr = p->ptrs;
    for (uint32_t i = 0; i < k->nin; i++)
        ptr[i] = segs[addr_seg(k->in[i].addr)] + addr_off(k->in[i].addr);
    for (uint32_t i = 0; i < k->nout; i++)
        ptr[k->nin + i] = segs[addr_seg(k->out[i].addr)] + addr_off(k->out[i].addr);
    GpCall call = {.k = k, .in = ptr, .out = ptr + k->nin, .pool = c->pool, .level = c->level,
                   .scratch = p->scratch, .why = why, .why_bytes = why_bytes, .comm = c->comm,
                   .draws = &c->draws, .program = p->art, .number = index, .host = c->host};
    if (c->round.stochastic && p->chance && p->chance[index])
        return gp_chance_run(p->chance[index], &call, p->wide, round_key(c->round.seed, c->round.instruction));
    return p->fns[index](&call);
}

static int64_t load_scalar(int dtype, const uint8_t *at) {
    return dtype_is_float(dtype) ? (int64_t)dtype_to_f64(dtype, at) : dtype_to_i64(dtype, at);
}

static void store_scalar(int dtype, uint8_t *at, int64_t v) {
    if (dtype_is_float(dtype))
        dtype_from_f64(dtype, at, (double)v);
    else
        dtype_from_i64(dtype, at, v);
}

// Registers, branches and loops: changes *pc, which stands behind the instruction.
static void run_control(Chip *c, ChipProg *p, const IsaInst *in, uint8_t *const *segs, uint32_t *pc) {
    const Artifact *art = p->art;
    uint32_t next = *pc;
    int64_t pitch, y = in->breg ? c->regs[in->breg - 1] : in->value;
    switch (in->op) {
    case ISA_JUMP:
        *pc = (uint32_t)in->imm;
        break;
    case ISA_BRANCH:
        if (isa_alu_reg(in->op0, c->regs[in->reg], y))
            *pc = (uint32_t)in->imm;
        break;
    case ISA_LOOP:
        c->regs[in->reg] = in->value;
        if (in->value >= (in->breg ? y : in->limit))
            *pc = (uint32_t)in->imm + 1;
        break;
    case ISA_ENDLOOP: {
        const IsaInst *loop = &art->code[in->imm];
        c->regs[loop->reg] += loop->step;
        if (c->regs[loop->reg] < (loop->breg ? c->regs[loop->breg - 1] : loop->limit))
            *pc = (uint32_t)in->imm + 1;
        break;
    }
    case ISA_REG_MOVE:
        c->regs[in->reg] = y;
        break;
    case ISA_REG_ALU:
        c->regs[in->reg] = isa_alu_reg(in->op0, c->regs[in->areg], y);
        break;
    case ISA_REG_LOAD:
        c->regs[in->reg] = load_scalar(in->stype, chip_resolve(c, segs, src_addr(c, in), &pitch));
        break;
    case ISA_REG_STORE:
        store_scalar(in->dtype, chip_resolve(c, segs, dst_addr(c, in), &pitch), c->regs[in->reg]);
        break;
    default: // NOP, WAIT, BARRIER
        break;
    }
    if (p->counts && (in->op == ISA_LOOP ? *pc == next : in->op == ISA_JUMP || *pc < next))
        p->counts[next - 1]++;
}

static otrn_status execute_one(Chip *c, ChipProg *p, const IsaInst *in, uint8_t *const *segs, uint32_t *pc,
                               char *why, size_t why_bytes) {
    switch ((IsaCost)isa_rows[in->op].cost) {
    case COST_CONTROL:
    case COST_STREAM:
    case COST_BARRIER:
    case COST_BRANCH:
    case COST_LOOP:
    case COST_REG:
    case COST_REGLOAD:
        run_control(c, p, in, segs, pc);
        return OTRN_OK;
    case COST_KERNEL:
    case COST_COLLECTIVE:
        return run_kernel(c, p, (uint32_t)in->imm, segs, why, why_bytes);
    default:
        break;
    }
    switch (in->op) {
    case ISA_DMA:
    case ISA_DMA_TRANSPOSE:
        if (in->op == ISA_DMA && (in->op0 || (in->dtype && in->dtype != in->stype)))
            return run_effect(c, in, segs, why, why_bytes);
        run_dma(c, p, *pc - 1, segs);
        return OTRN_OK;
    case ISA_LDWEIGHTS:
    case ISA_MATMUL: {
        uint8_t ways = p->pe[*pc - 1];
        if (ways & PE_RARE)
            run_effect(c, in, segs, why, why_bytes);
        if (ways != PE_RARE)
            *pc = run_tensor(c, p, *pc - 1, segs);
        return OTRN_OK;
    }
    case ISA_ACT_LOAD:
        return OTRN_OK;
    default:
        return run_effect(c, in, segs, why, why_bytes);
    }
}

static otrn_status stopped(const Chip *c, const Artifact *art, uint32_t pc, char *why, size_t why_bytes) {
    bool late = pulse_state(c->pulse) == PULSE_LATE;
    pc = pc < art->ncode ? pc : art->ncode - 1;
    snprintf(why, why_bytes, "%s at instruction %u of %u, `%s`", late ? "the run's time was over" : "the run was interrupted", pc + 1,
             art->ncode, isa_rows[art->code[pc].op].name);
    return late ? OTRN_TIMEOUT : OTRN_INTERRUPTED;
}

static void begin(Chip *c, ChipProg *p, uint8_t *const *segs) {
    if (p->counts)
        memset(p->counts, 0, p->art->ncode * sizeof *p->counts);
    p->counted = false;
    memset(c->regs, 0, sizeof c->regs);
    memset(c->sems, 0, sizeof c->sems);
    memset(c->engines.vector_acc, 0, sizeof c->engines.vector_acc);
    memset(c->engines.scalar_acc, 0, sizeof c->engines.scalar_acc);
    c->engines.rng_ready = false;
    c->draws = c->first_draw;
    c->round.instruction = 0;
    // Rounding by chance counts instructions, and the watch looks at each: both see them one by one.
    bool watched = c->check || c->nan || c->round.stochastic;
    c->follows = c->plan && !watched && plan_fits(p->plan, p->art, segs);
}

// From instruction `from` to the end, or to the next core_barrier (c->met, at *pc_out) where cores take turns.
static __attribute__((noinline)) otrn_status execute(Chip *c, ChipProg *p, uint8_t *const *segs, uint32_t from,
                                                     uint32_t *pc_out, char *why, size_t why_bytes) {
    const Artifact *art = p->art;
    const uint32_t *run_at = c->follows ? p->plan->run_at : NULL;
    c->met = false;
    const uint8_t *spared = c->follows ? p->plan->spared : NULL;
    bool flows = c->follows && (c->plan == CHIP_PLAN_ALL || (p->flows && pool_threads(c->pool) > 1));
    for (uint32_t pc = from; pc < art->ncode;) {
        const IsaInst *in = &art->code[pc];
        if (__builtin_expect(pulse_stops(c->pulse), 0))
            return *pc_out = pc, stopped(c, art, pc, why, why_bytes);
        if (c->tells)
            pulse_tell(c->pulse, pc);
        if (spared && spared[pc] && !run_at[pc]) {
            pc++;
            continue;
        }
        if (c->follows && in->op == ISA_DMA_INDIRECT) {
            otrn_status s = OTRN_OK;
            *pc_out = pc;
            uint32_t next = run_indirect(c, p, pc, segs, &s, why, why_bytes);
            if (s != OTRN_OK)
                return s;
            if (next != pc) {
                pc = next;
                continue;
            }
        }
        if (flows) {
            uint32_t next = flow_run(c, p, pc, segs);
            if (next != pc) {
                pc = next;
                continue;
            }
        }
        if (run_at && run_at[pc]) {
            const PlanRun *run = &p->plan->runs[run_at[pc] - 1];
            double begin = c->profile ? now_seconds() : 0;
            plan_run(c, p, run, segs);
            if (c->profile)
                profile_add(c->profile, PROFILE_JOINED, run->end - run->first, begin);
            pc = run->end;
            continue;
        }
        *pc_out = pc++;
        if (c->follows && p->plan->through && p->plan->through[*pc_out]) {
            otrn_status s = run_through(c, &art->code[p->plan->through[*pc_out] - 1], in, segs, why, why_bytes);
            if (s != OTRN_OK)
                return s;
            continue;
        }
        if (in->op == ISA_HALT)
            return OTRN_OK;
        if (in->op == ISA_CORE_BARRIER && c->turns) {
            c->round.instruction++;
            c->met = true;
            return OTRN_OK;
        }
        otrn_status s = OTRN_OK;
        uint8_t look = p->dynamic[*pc_out];
        if (look & ART_DYN_ADDR)
            s = check_addresses(c, art, in, why, why_bytes);
        if (s == OTRN_OK && look & ART_DYN_SEMS)
            s = check_sems(c, in, why, why_bytes);
        if (s == OTRN_OK && c->check)
            s = chip_check_step(c->check, *pc_out, c->regs, why, why_bytes);
        if (s == OTRN_OK && c->range && check_range_wanted(in))
            look_at_arguments(c, p, *pc_out, segs);
        if (s == OTRN_OK && c->nan)
            chip_nan_before(c->nan, *pc_out, c->regs);
        double begin = c->profile ? now_seconds() : 0;
        if (s == OTRN_OK)
            s = execute_one(c, p, in, segs, &pc, why, why_bytes);
        if (c->profile)
            profile_add(c->profile, in->op == ISA_LDWEIGHTS ? ISA_MATMUL : in->op, pc > *pc_out ? pc - *pc_out : 1, begin);
        if (s == OTRN_OK && c->check && chip_check_meets(c->check, *pc_out))
            s = chip_check_met(c->check, *pc_out, c->regs, why, why_bytes);
        if (s == OTRN_OK && c->nan)
            s = chip_nan_after(c->nan, *pc_out, why, why_bytes);
        c->round.instruction++;
        if (__builtin_expect(pulse_stops(c->pulse), 0)) // whatever half a kernel gave
            return stopped(c, art, *pc_out, why, why_bytes);
        if (s != OTRN_OK)
            return s;
        if (look & ART_DYN_SEMS)
            signal_sem(c, in);
        if (in->op == ISA_BARRIER)
            memset(c->sems, 0, sizeof c->sems);
    }
    return pulse_stops(c->pulse) ? stopped(c, art, *pc_out, why, why_bytes) : OTRN_OK;
}

// The calling thread's rounding and flushing modes are not part of a program: set ours, put theirs back.
otrn_status chip_run(Chip *c, ChipProg *p, uint8_t *const *segs, uint32_t *pc, char *why, size_t why_bytes) {
    HostFp mode = host_fp_begin(HOST_FP_IEEE);
    begin(c, p, segs);
    Pulse *before = pulse_enter(c->pulse);
    otrn_status s = execute(c, p, segs, 0, pc, why, why_bytes);
    pulse_enter(before);
    p->counted = s == OTRN_OK;
    host_fp_end(mode);
    return s;
}

bool chip_takes_turns(const ChipProg *first, const ChipProg *second) {
    const ChipProg *both[] = {first, second};
    for (int k = 0; k < 2; k++)
        for (uint32_t pc = 0; pc < both[k]->art->ncode; pc++) {
            const IsaInst *in = &both[k]->art->code[pc];
            bool counted = in->op == ISA_CORE_BARRIER && both[k]->dynamic[pc] & ART_DYN_SEMS; // a semaphore of its own
            if (in->op == ISA_SENDRECV || counted)
                return false;
        }
    return true;
}

// What is wrong with a meeting that only one core has come to, or at which they mean different ones.
static bool meeting_fails(Chip *const cores[2], ChipProg *const progs[2], const uint32_t at[2], uint32_t *failed, char *why,
                          size_t why_bytes) {
    *failed = cores[0]->met ? 0 : 1;
    if (cores[0]->met != cores[1]->met)
        snprintf(why, why_bytes, "this never completes: core %u waits in core_barrier of 2 cores, core %u has ended", *failed,
                 1 - *failed);
    else if (cores[0]->met && progs[0]->art->code[at[0]].imm != progs[1]->art->code[at[1]].imm)
        snprintf(why, why_bytes, "core 0 is at another core_barrier than core 1 waits for it in: both must reach the same in the same order");
    else
        return false;
    return true;
}

otrn_status chip_run_pair(Chip *const cores[2], ChipProg *const progs[2], uint8_t *const *segs, uint32_t *failed,
                          uint32_t *pc, char *why, size_t why_bytes) {
    HostFp mode = host_fp_begin(HOST_FP_IEEE);
    uint32_t from[2] = {0, 0}, at[2] = {0, 0};
    otrn_status s = OTRN_OK;
    Pulse *before = pulse_enter(cores[0]->pulse);
    for (int k = 0; k < 2; k++) {
        begin(cores[k], progs[k], segs);
        cores[k]->turns = true;
    }
    do {
        for (uint32_t k = 0; k < 2 && s == OTRN_OK; k++) {
            *failed = k;
            s = execute(cores[k], progs[k], segs, from[k], &at[k], why, why_bytes);
            from[k] = at[k] + 1;
        }
        if (s == OTRN_OK && meeting_fails(cores, progs, at, failed, why, why_bytes))
            s = OTRN_CHECK;
    } while (s == OTRN_OK && cores[0]->met);
    pulse_enter(before);
    *pc = at[*failed];
    for (int k = 0; k < 2; k++) {
        cores[k]->turns = false;
        progs[k]->counted = s == OTRN_OK;
    }
    host_fp_end(mode);
    return s;
}

void chip_unwatch(Chip *c) {
    c->check = NULL;
    c->range = NULL;
    c->nan = NULL;
}

otrn_status chip_run_watched(Chip *c, ChipProg *p, uint8_t *const *segs, uint32_t *pc, char *why,
                             size_t why_bytes, const ChipWatch *watch) {
    NanView view = {segs, c->sbuf, c->psum, SBUF_PITCH, PSUM_PITCH};
    CheckRange range = {.arena = watch->arena};
    bool order = watch->what & CHIP_WATCH_ORDER;
    ChipCheck *check = order ? chip_check_make(watch->arena, p->art, watch->pair, c->comm) : NULL;
    c->nan = watch->what & (CHIP_WATCH_NAN | CHIP_WATCH_INF)
                 ? chip_nan_make(watch->arena, p->art, &view, watch->what & CHIP_WATCH_INF)
                 : NULL;
    c->check = check;
    c->range = order ? &range : NULL;
    otrn_status s = chip_run(c, p, segs, pc, why, why_bytes);
    chip_unwatch(c);
    check_range_print(&range, p->art, watch->notes);
    return s;
}
