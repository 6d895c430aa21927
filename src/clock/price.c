// SPDX-License-Identifier: Apache-2.0
// price.c — prices by cost class. Every number comes from the chip file.
//
//   matmul       busy  passes * max(columns, min interval) cycles
//                done  pe_latency + (rows + cols + passes * columns) cycles, rows, cols in 32s
//   ldweights    busy  passes * columns / columns-per-cycle; runs beside the matmul before it
//   vector, scalar   busy  max(elements / rate, min interval); done  + the engine's latency
//   gpsimd       busy  start + elements, or for a kernel
//                      start + HBM latency + max(steps / lanes, HBM bytes / bandwidth)
//   collective   a kernel of start + HBM latency + the longest of those two and
//                      collective latency + link bytes / link bandwidth
//   dma          each partition's data is cut into runs that are contiguous on both sides; a run
//                costs max(its bytes, efficient bytes) / bandwidth on its partition's engine
//   control      the sequencer's interval
// An engine's cost does not depend on how many partitions are active.
#include "clock/price.h"

#include <assert.h>
#include <math.h>

static Ps ps_from_ns(double ns) {
    double ps = ns * 1000;
    return ps >= (double)PS_MAX ? PS_MAX : (Ps)llround(ps);
}

static Ps ps_cycles(double cycles, double ghz) { return ps_from_ns(cycles / ghz); }

static Ps ps_bytes(double bytes, double gb_per_s) { return ps_from_ns(bytes / gb_per_s); }

static uint32_t count(uint32_t n) { return n ? n : 1; }

// --- tensor engine -------------------------------------------------------------------------------

static double passes(const ChipFile *c, int dtype) {
    if (dtype == DT_F32)
        return c->pe_fp32_passes;
    return dtype_bytes(dtype) == 1 ? c->pe_fp8_passes : 1;
}

static double up32(uint32_t n) { return (double)((n + 31) / 32 * 32); }

static void price_matmul(const ChipFile *c, const IsaInst *in, Price *p) {
    uint32_t k = count(in->n[0]), n = count(in->n[1]), m = count(in->n[2]);
    double times = passes(c, in->stype);
    p->busy = ps_cycles(times * fmax(n, c->pe_min_cycles), c->pe_ghz);
    Ps done =
        ps_add(ps_from_ns(c->pe_latency_ns), ps_cycles(up32(k) + up32(m) + times * n, c->pe_ghz));
    p->latency = ps_max(done, p->busy);
    p->flops = 2.0 * k * n * m;
}

static void price_ldweights(const ChipFile *c, const IsaInst *in, Price *p) {
    double cycles = ceil(count(in->n[1]) / c->pe_weight_cols_per_cycle);
    p->busy = ps_cycles(passes(c, in->stype) * cycles, c->pe_ghz);
    p->latency = ps_add(p->busy, ps_from_ns(c->pe_latency_ns));
}

// --- vector, scalar, gpsimd ----------------------------------------------------------------------

static bool is_float16(int dtype) { return dtype == DT_BF16 || dtype == DT_F16; }

// Elements a cycle and partition. Fast modes need 16-bit floats on both sides; contiguous and in
// SBUF is fastest.
static double copy_rate(const ChipFile *c, const IsaInst *in, bool has_src) {
    bool narrow = is_float16(in->dtype) && (!has_src || is_float16(in->stype));
    if (!has_src) // zero fill of 16-bit floats is twice as fast
        return is_float16(in->dtype) && !in->imm ? 2 : 1;
    if (!narrow)
        return 1;
    if (in->engine == ENG_SCALAR)
        return c->scalar_fast;
    bool dense = (in->d[1] == 1 || in->n[1] <= 1) && (in->s[1] == 1 || in->n[1] <= 1);
    bool in_sbuf = addr_space(in->dst) == SPACE_SBUF && addr_space(in->src) == SPACE_SBUF;
    if (dense && in_sbuf)
        return c->vector_fast_sbuf;
    return dense || in_sbuf ? c->vector_fast_psum : 1;
}

static void price_elementwise(const ChipFile *c, const IsaInst *in, Price *p) {
    bool has_src = isa_row_has(in->op, ISA_F_src);
    double n = count(in->n[1]);
    if (in->engine == ENG_GPSIMD) {
        p->busy = p->latency = ps_cycles(c->gpsimd_start_cycles + n, c->gpsimd_ghz);
        return;
    }
    double cycles = fmax(n / copy_rate(c, in, has_src), c->engine_min_cycles);
    bool scalar = in->engine == ENG_SCALAR;
    p->busy = ps_cycles(cycles, scalar ? c->scalar_ghz : c->vector_ghz);
    p->latency = ps_add(p->busy, ps_from_ns(scalar ? c->scalar_latency_ns : c->vector_latency_ns));
}

static void price_kernel(const ChipFile *c, const Kern *k, Price *p) {
    KWork w = kern_work(k);
    double compute_ns = w.steps / c->gpsimd_lanes_32 / c->gpsimd_ghz;
    // the bandwidth is both ways together, half each way
    double memory_ns = fmax(w.read_bytes, w.write_bytes) / (c->gpsimd_hbm_bw / 2);
    double link_ns = w.is_collective ? c->collective_ns + w.link_bytes / c->link_bw : 0;
    p->hbm_bytes = w.read_bytes + w.write_bytes;
    p->hbm = ps_bytes(p->hbm_bytes, c->hbm_bw_core);
    p->busy = ps_add(ps_cycles(c->gpsimd_start_cycles, c->gpsimd_ghz),
                     ps_from_ns(c->gpsimd_hbm_ns + fmax(fmax(compute_ns, memory_ns), link_ns)));
    p->latency = p->busy;
    p->flops = w.flops;
}

// --- DMA -----------------------------------------------------------------------------------------

// Elements that are contiguous on both sides: the innermost axes that continue each other.
static double run_elems(const IsaInst *in, int first_axis) {
    double run = 1;
    for (int axis = 3; axis >= first_axis; axis--) {
        uint32_t n = count(in->n[axis]);
        if (n == 1)
            continue;
        if (in->d[axis] != run || in->s[axis] != run)
            break;
        run *= n;
    }
    return run;
}

// From HBM with neighbouring elements going to neighbouring partitions, in a size the transposing
// DMA has.
static bool is_transpose(const ChipFile *c, const IsaInst *in, double run) {
    size_t size = dtype_bytes(in->stype);
    return c->dma_transpose > 0 && (size == 2 || size == 4) && addr_space(in->src) == SPACE_HBM &&
           addr_space(in->dst) == SPACE_SBUF && in->s[0] == 1 && count(in->n[0]) > 1 && run == 1;
}

static void price_dma(const ChipFile *c, const IsaInst *in, Price *p) {
    bool src_hbm = addr_space(in->src) == SPACE_HBM, dst_hbm = addr_space(in->dst) == SPACE_HBM;
    bool by_partition = !src_hbm || !dst_hbm;
    double size = (double)dtype_bytes(in->stype), elems = 1;
    for (int axis = by_partition ? 1 : 0; axis < 4; axis++)
        elems *= count(in->n[axis]);
    double run = run_elems(in, by_partition ? 1 : 0);
    double parts = by_partition ? count(in->n[0]) : 1, total = elems * parts * size;
    double run_bytes = run * size;
    p->busy = ps_from_ns(c->control_ns);
    p->latency = ps_from_ns(c->dma_start_ns);
    p->hbm_bytes = total * (src_hbm + dst_hbm);
    p->hbm = ps_bytes(p->hbm_bytes, c->hbm_bw_core);
    p->track = (uint8_t)(dst_hbm ? ENG_COUNT + 1 : ENG_COUNT);
    if (is_transpose(c, in, run)) {
        p->dma = ps_bytes(total / c->dma_engines, c->dma_engine_bw * c->dma_transpose);
    } else if (by_partition) { // one partition's time: the clock gathers those of each engine
        p->dma = ps_bytes(elems / run * fmax(run_bytes, c->dma_descriptor_bytes), c->dma_engine_bw);
        uint64_t at = src_hbm ? in->dst : in->src;
        p->dma_part = (uint16_t)addr_part(at);
        p->dma_parts = (uint16_t)parts;
    } else { // memory to memory: cut evenly, long runs are cut too
        double share = elems * size / c->dma_engines;
        double runs = fmax(1, elems / run / c->dma_engines);
        p->dma = ps_bytes(fmax(share, runs * c->dma_descriptor_bytes), c->dma_engine_bw);
    }
}

// --- all -----------------------------------------------------------------------------------------

static void price_control(Ps t, Price *p) { p->busy = p->latency = t; }

static void price_inst(const Artifact *art, const ChipFile *c, const IsaInst *in,
                       const Price *kernels, Price *p) {
    *p = (Price){.track = in->engine};
    switch ((IsaCost)isa_rows[in->op].cost) {
    case COST_CONTROL:
        price_control(ps_from_ns(c->control_ns), p);
        break;
    case COST_BARRIER:
        price_control(ps_from_ns(c->barrier_ns), p);
        break;
    case COST_BRANCH:
        price_control(ps_from_ns(c->branch_ns), p);
        break;
    case COST_REGLOAD:
        price_control(ps_from_ns(c->reg_load_ns), p);
        break;
    case COST_DMA:
        price_dma(c, in, p);
        break;
    case COST_LDWEIGHTS:
        price_ldweights(c, in, p);
        break;
    case COST_MATMUL:
        price_matmul(c, in, p);
        break;
    case COST_LOOP:
    case COST_REG:
        price_control(ps_from_ns(c->control_ns), p);
        break;
    case COST_KERNEL:
    case COST_COLLECTIVE:
        assert((uint32_t)in->imm < art->nkerns);
        *p = kernels[in->imm];
        p->track = in->engine;
        break;
    default:
        price_elementwise(c, in, p);
    }
}

void price_program(Arena *a, const Artifact *art, const ChipFile *chip, Price *out) {
    Price *kernels = ARENA_NEWN(a, Price, art->nkerns + 1);
    for (uint32_t i = 0; i < art->nkerns; i++)
        price_kernel(chip, &art->kerns[i], &kernels[i]);
    for (uint32_t i = 0; i < art->ncode; i++)
        price_inst(art, chip, &art->code[i], kernels, &out[i]);
}
