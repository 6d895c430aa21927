// SPDX-License-Identifier: Apache-2.0
// cost.c — what work takes by the figures of a chip file.
#include "mach/cost.h"

#include <assert.h>
#include <math.h>

double cost_hbm(const ChipFile *c, double bytes) { return bytes / c->hbm_bw_core; }
double cost_dma(const ChipFile *c, double bytes) { return bytes / (c->dma_engines * c->dma_engine_bw); }
double cost_stream(const ChipFile *c, double bytes) { return fmax(cost_hbm(c, bytes), cost_dma(c, bytes)); }
double cost_reach(const ChipFile *c) { return c->dma_start_ns + c->dma_done_ns; }

double cost_transfers(const ChipFile *c, double n, double bytes, double run) {
    return fmax(n * c->dma_issue_ns / 2, cost_dma(c, bytes * (run < c->dma_descriptor_bytes ? c->dma_descriptor_bytes / run : 1)));
}

double cost_pass(const ChipFile *c, int engine, double elems) {
    assert(engine == ENG_VECTOR || engine == ENG_SCALAR || engine == ENG_GPSIMD);
    return elems / (engine == ENG_VECTOR ? c->vector_ghz : engine == ENG_SCALAR ? c->scalar_ghz : c->gpsimd_ghz);
}

// Pairs are the vector engine's; for the others it has the scalar engine beside it.
double cost_elementwise(const ChipFile *c, bool pairs, int dtype, double elems) {
    return pairs ? cost_pass(c, ENG_VECTOR, elems / (dtype_bytes(dtype) > 2 ? c->vector_tt : c->vector_tt_16)) : cost_pass(c, ENG_VECTOR, elems) / 2;
}

double cost_columns(const ChipFile *c, int dtype, double n) { return n * price_passes(c, dtype) / c->pe_ghz; }
double cost_kernel(const ChipFile *c, double steps) { return steps / (c->gpsimd_lanes_32 * c->gpsimd_ghz); }

// A transfer's DMA engines, HBM, and what is between two transfers; of others the engine they keep busy.
double cost_inst(const ChipFile *c, const Kern *kerns, const IsaInst *in) {
    Price p;
    price_alone(c, kerns, in, &p);
    if (isa_rows[in->op].cost != COST_DMA)
        return (double)p.busy / 1000;
    double dma = (double)p.dma * (p.dma_parts ? fmin(p.dma_parts, c->dma_engine_partitions) : 1);
    return fmax(fmax(dma, (double)p.hbm) / 1000 + c->dma_gap_ns, c->dma_issue_ns);
}

// What is asked of it is here: trn2, with runs and starts in round numbers.
const ChipFile *cost_reference(void) {
    static const ChipFile c = {.name = "reference", .dma_issue_ns = 840, .dma_engines = 16, .dma_engine_bw = 23, .dma_descriptor_bytes = 128, .pe_ghz = 2.4,
                               .pe_fp32_passes = 4, .pe_fp8_passes = 1, .pe_min_cycles = 64, .vector_ghz = 0.96, .gpsimd_ghz = 1.2, .gpsimd_lanes_32 = 128,
                               .gpsimd_hbm_ns = 1400};
    return &c;
}

// --- operations --------------------------------------------------------------------------------------

static uint64_t value_bytes(const Hlo *h, ValueId v) { return hlo_type_bytes(hlo_value_type(h, v)); }

// Of a product: m k, k n and m n, so the root of all three.
double cost_op(const Hlo *h, const ChipFile *c, const HloOp *op) {
    double bytes = 0, cells = 0;
    if (op->code == HLO_RESHAPE || op->code == HLO_OPTIMIZATION_BARRIER)
        return 0; // shares its operand's memory
    for (uint32_t i = 0; i < op->noperands + op->nresults; i++)
        bytes += (double)value_bytes(h, i < op->noperands ? hlo_operand(h, op, i) : op->results + i - op->noperands);
    if (op->code == HLO_DOT_GENERAL) {
        const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *y = hlo_value_type(h, hlo_operand(h, op, 1));
        double macs = sqrt((double)x->elems * (double)y->elems * (double)hlo_value_type(h, op->results)->elems);
        cells = cost_columns(c, DT_BF16, macs / (ISA_PE_ROWS * ISA_PE_COLS));
    }
    return fmax(cost_hbm(c, bytes), cells);
}

double cost_wire(const Hlo *h, const ChipFile *c, const HloOp *op, uint64_t bytes) {
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    uint64_t ins = hlo_type_bytes(in), outs = hlo_type_bytes(out), size = dtype_bytes(in->dtype);
    double times = (double)bytes / (double)((ins > outs ? ins : outs) * size);
    KTensor from = {.dtype = in->dtype, .elems = (uint64_t)((double)ins * times)}, to = {.dtype = out->dtype, .elems = (uint64_t)((double)outs * times)};
    Kern k = {.op = op->code, .attrs = op->attrs, .in = &from, .nin = 1, .out = &to, .nout = 1};
    KWork w = kern_work(&k);
    return fabric_price(c, &k, &w).ns;
}

uint64_t cost_wire_bytes(const Hlo *h, const HloOp *op) {
    uint64_t in = 0, out = 0;
    for (uint32_t i = 0; i < op->noperands; i++)
        in += value_bytes(h, hlo_operand(h, op, i));
    for (uint32_t i = 0; i < op->nresults; i++)
        out += value_bytes(h, op->results + i);
    return in > out ? in : out;
}
