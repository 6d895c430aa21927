// SPDX-License-Identifier: Apache-2.0
// price.c — prices by cost class. Every number comes from the chip file.
//
//   matmul       busy  passes * max(columns, min interval) cycles
//                done  pe_latency + (rows + cols + passes * columns) cycles, rows, cols in 32s, + the
//                      time until another engine may have the bank
//   ldweights    busy  passes * columns / columns-per-cycle; runs beside the matmul before it
//   vector, scalar   busy  max(elements / rate, min interval), rates by instruction and types;
//                done  + the engine's latency; read from PSUM and written there: as long again
//   gpsimd       busy  start + elements, or for a kernel
//                      start + HBM latency + max(steps / lanes, HBM bytes / bandwidth)
//   collective   a kernel of start + HBM latency + the longest of those two and its passes over the
//                links (fabric.c)
//   dma          each partition's data is cut into runs that are contiguous on both sides; a run
//                costs max(its bytes, efficient bytes) / bandwidth on its partition's engine; one that
//                converts has its own bytes on each side, and the engine takes as long as the wider
//   control      the sequencer's interval
// An engine's cost does not depend on how many partitions are active.
#include "mach/price.h"

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

double price_passes(const ChipFile *c, int dtype) {
    if (dtype == DT_F32)
        return c->pe_fp32_passes;
    return dtype_bytes(dtype) == 1 ? c->pe_fp8_passes : 1;
}

static double up32(uint32_t n) { return (double)((n + 31) / 32 * 32); }

static double n_cols(const IsaInst *in) { return count(in->n[1]); }

double price_depth(const IsaInst *in) {
    return in->op == ISA_MATMUL_MX ? 4 : in->flags & ISA_FLAG_DOUBLE_ROW ? 2 : 1;
}

static void price_matmul(const ChipFile *c, const IsaInst *in, Price *p) {
    uint32_t k = count(in->n[0]), n = count(in->n[1]) * count(in->n[3]), m = count(in->n[2]);
    double times = price_passes(c, in->stype);
    p->busy = ps_cycles(times * fmax(n, c->pe_min_cycles), c->pe_ghz);
    Ps done = ps_add(ps_from_ns(c->pe_latency_ns + c->psum_turn_ns), ps_cycles(up32(k) + up32(m) + times * n, c->pe_ghz));
    p->latency = ps_max(done, p->busy);
    p->flops = 2.0 * k * n * m * price_depth(in);
}

static void price_ldweights(const ChipFile *c, const IsaInst *in, Price *p) {
    double cycles = ceil(count(in->n[1]) / c->pe_weight_cols_per_cycle);
    p->busy = ps_cycles(price_passes(c, in->stype) * cycles, c->pe_ghz);
    p->latency = ps_add(p->busy, ps_from_ns(c->pe_latency_ns));
}

// --- vector, scalar, gpsimd ----------------------------------------------------------------------

static bool is_float16(int dtype) { return dtype == DT_BF16 || dtype == DT_F16; }

static double elements(const IsaInst *in) { // a partition
    double n = 1;
    for (int i = 1; i < 5; i++)
        n *= count(in->n[i]);
    return n;
}

// The fastest axis with more than one element lies without gaps.
static bool is_dense(const IsaInst *in, const int32_t *stride) {
    for (int i = 4; i >= 1; i--)
        if (count(in->n[i]) > 1)
            return stride[i] == 1;
    return true;
}

static bool in_sbuf(uint64_t addr) { return addr_space(addr) == SPACE_SBUF; }
static bool in_psum(uint64_t addr) { return addr_space(addr) == SPACE_PSUM; }

// Elements a cycle and partition of a copy or an operation with scalars. Fast modes need 16-bit
// floats on both sides; contiguous and in SBUF is fastest.
static double copy_rate(const ChipFile *c, const IsaInst *in) {
    if (!in->src) // zero fill of 16-bit floats is twice as fast
        return is_float16(in->dtype) && !in->imm ? c->vector_fill_16 : 1;
    if (!is_float16(in->dtype) || !is_float16(in->stype))
        return 1;
    if (in->engine == ENG_SCALAR)
        return c->scalar_fast;
    if (in->op != ISA_COPY && in->op != ISA_TENSOR_SCALAR)
        return 1;
    bool dense = is_dense(in, in->d) && is_dense(in, in->s), sbuf = in_sbuf(in->dst) && in_sbuf(in->src);
    if (dense && sbuf)
        return c->vector_fast_sbuf;
    return dense || sbuf ? c->vector_fast_psum : 1;
}

static double tt_rate(const ChipFile *c, const IsaInst *in) {
    bool narrow = is_float16(in->dtype) && is_float16(in->stype) && is_float16(in->ttype);
    if (in_psum(in->src) || in_psum(in->src1))
        return 1;
    return narrow ? c->vector_tt_16 : c->vector_tt;
}

// What one ALU operation more than the plain ones costs: a reciprocal on the vector engine.
static double alu_factor(const ChipFile *c, const IsaInst *in) {
    bool recip = in->op0 == ALU_RECIP || in->op1 == ALU_RECIP;
    return in->engine == ENG_VECTOR && recip ? c->vector_recip_cycles : 1;
}

// Cycles of the engine an instruction is on.
static double engine_cycles(const ChipFile *c, const IsaInst *in) {
    double n = elements(in), min = c->engine_min_cycles;
    switch ((IsaCost)isa_rows[in->op].cost) {
    case COST_TENSOR_TENSOR:
        return fmax(n / tt_rate(c, in), min);
    case COST_SCALAR_TT:
        return fmax(n * alu_factor(c, in) / tt_rate(c, in), min);
    case COST_SCAN:
        return fmax(n / c->vector_scan, min);
    case COST_REDUCE:
        return fmax(is_float16(in->stype) && is_float16(in->dtype) ? n / c->vector_reduce_16 : n, min);
    case COST_RECIPROCAL:
        return fmax(c->vector_recip_cycles * n, min);
    case COST_BNAGGR:
        return fmax(c->vector_bnaggr_cycles * n, min);
    case COST_EXPONENTIAL:
        return fmax(n / c->vector_exp, min);
    case COST_QUANTMX:
        return fmax(n / c->vector_quant, min);
    case COST_ACTIVATE:
        return fmax(n / copy_rate(c, in), min) + (in->res ? c->accumulator_cycles : 0);
    case COST_ACTLOAD:
        return min;
    case COST_TOPK:
        return c->gpsimd_topk_cycles * n + in->imm;
    default:
        return fmax(n * alu_factor(c, in) / copy_rate(c, in), min) +
               (in->op == ISA_SCALAR_REDUCE || in->op == ISA_SELECT_REDUCE ? c->accumulator_cycles : 0);
    }
}

// PSUM gives an engine one access a cycle: what is read there and written back goes through twice, behind a second
// access' start. Reductions write next to nothing.
static double update_cycles(const ChipFile *c, const IsaInst *in) {
    bool reads = in_psum(in->src) || in_psum(in->src1);
    int cost = isa_rows[in->op].cost;
    bool sums_up = cost == COST_REDUCE || cost == COST_BNAGGR || in->op == ISA_BN_STATS;
    return reads && in_psum(in->dst) && !sums_up ? elements(in) + c->psum_access_cycles : 0;
}

static uint8_t ports_of(const ChipFile *c, const IsaInst *in) {
    bool psum = in_psum(in->dst) || in_psum(in->src) || in_psum(in->src1);
    bool sbuf = in_sbuf(in->dst) || in_sbuf(in->src) || in_sbuf(in->src1);
    int ports = 0;
    if (c->vector_gpsimd_port && sbuf && (in->engine == ENG_VECTOR || in->engine == ENG_GPSIMD))
        ports |= PORT_SBUF;
    if (c->vector_scalar_port && psum && (in->engine == ENG_VECTOR || in->engine == ENG_SCALAR))
        ports |= PORT_PSUM;
    return (uint8_t)ports;
}

// Where engines do not share a port to PSUM they still take turns on a bank. An operand counts for the bank it begins in.
static uint8_t banks_of(const ChipFile *c, const IsaInst *in) {
    uint64_t at[] = {in->dst, in->src, in->src1};
    int banks = 0;
    for (int i = 0; i < 3 && !c->vector_scalar_port && (in->engine == ENG_VECTOR || in->engine == ENG_SCALAR); i++)
        if (in_psum(at[i]))
            banks |= 1 << (addr_poff(at[i]) / PSUM_BANK_BYTES % PSUM_BANKS);
    return (uint8_t)banks;
}

static void price_engine(const ChipFile *c, const IsaInst *in, Price *p) {
    double cycles = engine_cycles(c, in) + update_cycles(c, in);
    p->ports = ports_of(c, in);
    p->banks = banks_of(c, in);
    if (in->engine == ENG_GPSIMD) {
        p->busy = p->latency = ps_cycles(c->gpsimd_start_cycles + cycles, c->gpsimd_ghz);
        return;
    }
    bool scalar = in->engine == ENG_SCALAR;
    if (isa_rows[in->op].cost == COST_ACTIVATE || isa_rows[in->op].cost == COST_ACTLOAD)
        p->act_set = act_rows[in->fn].set == ACTSET_SMALL ? ACT_NO_SET : act_rows[in->fn].set;
    p->busy = ps_cycles(cycles, scalar ? c->scalar_ghz : c->vector_ghz);
    p->latency = ps_add(p->busy, ps_from_ns(scalar ? c->scalar_latency_ns : c->vector_latency_ns));
    if (in->engine == ENG_TENSOR) { // a transpose by the array
        p->busy = ps_cycles(price_passes(c, in->stype) * fmax(count(in->n[0]), fmin(c->pe_min_cycles, n_cols(in))), c->pe_ghz);
        p->latency = ps_add(p->busy, ps_from_ns(c->pe_latency_ns));
    }
}

static void price_kernel(const ChipFile *c, const Kern *k, Price *p) {
    KWork w = kern_work(k);
    double compute_ns = w.steps / c->gpsimd_lanes_32 / c->gpsimd_ghz;
    // the bandwidth is both ways together, half each way
    double memory_ns = w.is_collective ? 0 : fmax(w.read_bytes, w.write_bytes) / (c->gpsimd_hbm_bw / 2);
    Wire link = w.is_collective ? fabric_price(c, k, &w) : (Wire){0};
    p->hbm_bytes = w.read_bytes + w.write_bytes;
    p->hbm = ps_bytes(p->hbm_bytes, c->hbm_bw_core);
    p->busy = ps_add(ps_cycles(c->gpsimd_start_cycles, c->gpsimd_ghz),
                     ps_from_ns(c->gpsimd_hbm_ns + fmax(fmax(compute_ns, memory_ns), link.ns)));
    p->latency = p->busy;
    p->flops = w.flops;
    for (int i = 0; i < LINK_COUNT; i++)
        p->link[i] = ps_from_ns(link.at[i]);
    p->link_bytes = w.is_collective ? w.link_bytes : 0;
    p->way = (uint8_t)link.way, p->reach = (uint8_t)link.reach;
    double moved = w.link_bytes + (c->link_reduce - 1) * w.reduce_bytes; // by the DMA engines, all of them
    p->dma = w.is_collective ? ps_bytes(c->collective_dma * moved / c->dma_engines, c->dma_engine_bw) : 0;
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
    double src_size = (double)dtype_bytes(in->stype), elems = 1;
    double dst_size = in->dtype ? (double)dtype_bytes(in->dtype) : src_size, size = fmax(src_size, dst_size);
    for (int axis = by_partition ? 1 : 0; axis < 4; axis++)
        elems *= count(in->n[axis]);
    double run = run_elems(in, by_partition ? 1 : 0);
    double parts = by_partition ? count(in->n[0]) : 1, total = elems * parts * size;
    double run_bytes = run * size;
    p->busy = ps_from_ns(c->control_ns);
    p->latency = ps_from_ns(c->dma_start_ns);
    double combined = dst_hbm && in->op0 ? dst_size : 0; // what it is combined with is read
    p->hbm_bytes = elems * parts * (src_hbm * src_size + dst_hbm * dst_size + combined);
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

static void price_inst(const ChipFile *c, const IsaInst *in, Price *p) {
    *p = (Price){.track = in->engine, .act_set = ACT_NO_SET};
    switch ((IsaCost)isa_rows[in->op].cost) {
    case COST_CONTROL:
    case COST_STREAM:
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
        assert(false); // priced by its kernel
        break;
    default:
        price_engine(c, in, p);
    }
}

static void price_launch(const IsaInst *in, const Price *kernel, Price *p) {
    *p = *kernel;
    p->act_set = ACT_NO_SET;
    p->track = (uint8_t)(in->op == ISA_COLLECTIVE ? ENG_COUNT + 2 : in->engine);
}

static bool is_launch(const IsaInst *in) { return in->op == ISA_KERNEL || in->op == ISA_COLLECTIVE; }

void price_alone(const ChipFile *chip, const Kern *kerns, const IsaInst *in, Price *out) {
    if (!is_launch(in)) {
        price_inst(chip, in, out);
        return;
    }
    Price kernel = {0};
    price_kernel(chip, &kerns[in->imm], &kernel);
    price_launch(in, &kernel, out);
}

void price_program(Arena *a, const ChipFile *chip, const Kern *kerns, uint32_t nkerns, const IsaInst *code,
                   uint32_t n, Price *out) {
    Price *kernels = ARENA_NEWN(a, Price, nkerns + 1);
    for (uint32_t i = 0; i < nkerns; i++)
        price_kernel(chip, &kerns[i], &kernels[i]);
    for (uint32_t i = 0; i < n; i++) {
        const IsaInst *in = &code[i];
        assert(!is_launch(in) || (uint32_t)in->imm < nkerns);
        if (is_launch(in))
            price_launch(in, &kernels[in->imm], &out[i]);
        else
            price_inst(chip, in, &out[i]);
    }
}
