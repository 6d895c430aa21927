// SPDX-License-Identifier: Apache-2.0
// about.c — roofs of operations and the fabric's price of collectives.
#include "pass/about.h"

#include <math.h>

#include "mach/fabric.h"

static uint64_t value_bytes(const Hlo *h, ValueId v) { return hlo_type_bytes(hlo_value_type(h, v)); }

// Of a product: m k, k n and m n, so the root of all three.
double about_op_ns(const Hlo *h, const ChipFile *chip, const HloOp *op) {
    double bytes = 0, macs = 0;
    if (op->code == HLO_RESHAPE || op->code == HLO_OPTIMIZATION_BARRIER)
        return 0; // shares its operand's memory
    for (uint32_t i = 0; i < op->noperands + op->nresults; i++)
        bytes += (double)value_bytes(h, i < op->noperands ? hlo_operand(h, op, i) : op->results + i - op->noperands);
    if (op->code == HLO_DOT_GENERAL) {
        const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *y = hlo_value_type(h, hlo_operand(h, op, 1));
        macs = sqrt((double)x->elems * (double)y->elems * (double)hlo_value_type(h, op->results)->elems);
    }
    return fmax(bytes / chip->hbm_bw_core, macs / (ISA_PE_ROWS * ISA_PE_COLS * chip->pe_ghz));
}

double about_wire_ns(const Hlo *h, const ChipFile *chip, const HloOp *op, uint64_t bytes) {
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    uint64_t ins = hlo_type_bytes(in), outs = hlo_type_bytes(out), size = dtype_bytes(in->dtype);
    double times = (double)bytes / (double)((ins > outs ? ins : outs) * size);
    KTensor from = {.dtype = in->dtype, .elems = (uint64_t)((double)ins * times)}, to = {.dtype = out->dtype, .elems = (uint64_t)((double)outs * times)};
    Kern k = {.op = op->code, .attrs = op->attrs, .in = &from, .nin = 1, .out = &to, .nout = 1};
    KWork w = kern_work(&k);
    return fabric_price(chip, &k, &w).ns;
}

uint64_t about_wire_bytes(const Hlo *h, const HloOp *op) {
    uint64_t in = 0, out = 0;
    for (uint32_t i = 0; i < op->noperands; i++)
        in += value_bytes(h, hlo_operand(h, op, i));
    for (uint32_t i = 0; i < op->nresults; i++)
        out += value_bytes(h, op->results + i);
    return in > out ? in : out;
}
