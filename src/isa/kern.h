// SPDX-License-Identifier: Apache-2.0
// kern.h — GpSimd kernels: what the `kernel` instruction runs.
//
// A kernel is an operation over dense row-major HBM tensors: the op's row, its attribute slots, its
// operands and results with address and type, and for ops with regions a scalar program per region.
// A scalar program is the region compiled once: registers, inputs, constants, and steps that are
// elementwise ops. Engines run it over vectors of lanes, not element by element.
#ifndef OTRN_ISA_KERN_H
#define OTRN_ISA_KERN_H

#include "hlo/hlo.h"
#include "hlo/why.h"
#include "isa/dict.h"

typedef struct KTensor {
    uint64_t addr; // isa.h HBM address
    uint8_t dtype, rank;
    const int64_t *dims;
    int64_t elems;
} KTensor;

typedef struct KStep {
    uint16_t op;          // an elementwise HloOpcode (EW1, EW2, EW3), or WHILE
    uint16_t dst, src[3]; // registers
    int16_t attr[2];      // COMPARE: direction, type; REDUCE_PRECISION: exponent, mantissa bits;
                          // WHILE: go back that many steps while any lane of src[0] (i1) is set; dst is src[0]
} KStep;

typedef struct KProg {
    uint16_t nregs;       // registers 0..ninputs-1 are the inputs, in region-argument order
    uint16_t ninputs, nconsts, nsteps, nouts;
    const uint8_t *dtypes; // per register
    const uint16_t *const_regs; // which register each constant fills
    const uint8_t (*consts)[16]; // its bytes
    const KStep *steps;
    const uint16_t *outs; // registers the region returns
    uint16_t ncaptures;   // registers ninputs..ninputs+ncaptures-1 are scalars captured from outside:
                          // the kernel's last ncaptures operands
} KProg;

typedef struct Kern {
    uint16_t op; // HloOpcode
    uint16_t nattrs;
    const HloAttr *attrs; // slots of the op's row; TENSOR and TYPE attributes do not occur
    uint32_t nin, nout;
    const KTensor *in, *out;
    uint32_t nregions;
    const KProg *regions;
    const char *target; // CUSTOM_CALL: its target name; else ""
    Why why;            // why it is one; known while the program is compiled, not kept in the artifact
} Kern;

// Ops that may be steps of a scalar program: elementwise ones, casts that keep the bits, the end of a loop.
static inline bool kern_is_step(uint16_t op) {
    return op != HLO_NONE &&
           (hlo_op_rows[op].cls <= HC_EW3 || op == HLO_BITCAST_CONVERT || op == HLO_WHILE);
}

static inline int kern_step_operands(uint16_t op) {
    return op == HLO_WHILE ? 1 : hlo_op_rows[op].operands;
}

static inline bool kern_prog_loops(const KProg *p) {
    bool loops = false;
    for (int i = 0; i < p->nsteps; i++)
        loops |= p->steps[i].op == HLO_WHILE;
    return loops;
}

static inline const HloAttr *kern_attr(const Kern *k, HloAttrKey key) {
    const HloOpRow *row = &hlo_op_rows[k->op];
    for (int i = 0; i < row->nattrs; i++)
        if (row->attrs[i] == key)
            return k->attrs[i].kind == HA_NONE ? NULL : &k->attrs[i];
    return NULL;
}

static inline bool kern_calls_host(const Kern *k) {
    return k->op == HLO_CUSTOM_CALL && k->target && !strcmp(k->target, HLO_HOST_CALL);
}
// Which function of the host a call names: its backend_config, "NAME" or "NAME once" (then one device calls for all).
// NULL: none.
const char *kern_host_name(const Kern *k, size_t *bytes, bool *once);

// Names of ops, attributes and types go through the artifact's dictionary, so that renumbering the
// tables does not break old files. Decode checks everything a hostile file could get wrong except
// shapes and types against the op's rules: kern_verify does that.
// May a result lie on the memory of an operand while the kernel runs? The one rule for the compiler, which makes
// use of it, and the kernels, which keep it: elementwise ones read a block of every operand before they write that
// block of any result; updates change their first operand only where they must.
static inline bool kern_may_share(int op, uint32_t operand, uint32_t result, int in_dtype, int64_t in_elems,
                                  int out_dtype, int64_t out_elems) {
    if (in_elems != out_elems || dtype_bytes(in_dtype) != dtype_bytes(out_dtype))
        return false;
    if (hlo_op_rows[op].cls <= HC_EW3 || op == HLO_MAP || op == HLO_FUSED)
        return true;
    return operand == 0 && result == 0 && (op == HLO_DYNAMIC_UPDATE_SLICE || op == HLO_SCATTER);
}

void kern_encode(const Kern *k, Dict *dict, Buf *out);
void kern_decode(Rd *r, Dict *dict, Arena *a, Kern *out);
// One line, and its inverse. `names` (isa.h) may be NULL.
struct IsaNames;
struct Txt;
void kern_print(const Kern *k, const struct IsaNames *names, Buf *out);
void kern_parse(struct Txt *t, const struct IsaNames *names, Kern *out);
// Raises VERIFY when an op's own rules forbid a kernel's operands, results or regions: the kernels
// are put back into a graph and hlo_verify judges it. The error names the kernel's number.
void kern_verify(Ctx *ctx, Arena *scratch, const Kern *kerns, uint32_t n, const char *file);

// Work of one run, for the clock.
typedef struct KWork {
    double elems;                   // elements of the result, or of the input for reductions
    double read_bytes, write_bytes; // HBM traffic
    double steps;                   // arithmetic steps of one 32-bit lane, all elements together
    double flops;                   // multiply-adds of products, times two; else 0
    double link_bytes;              // what a device sends to others; a collective also waits for them
    double reduce_bytes;            // those of them that are combined with what is there
    bool is_collective;
} KWork;
KWork kern_work(const Kern *k);
double kern_step_cost(int op, int dtype); // steps of one element
// How a collective's groups lie over blocks of devices that follow each other: chips, machines, joined machines.
#define KPLACE_MAX 3
#define KPLACE_CHIPS 256 // of a machine that a set of them can tell
typedef struct KPlaces {
    uint32_t ranks, rows;        // of the widest group, 0: none is listed; groups, or pairs of a permutation
    struct {
        uint32_t blocks;         // the most that a group reaches into
        uint32_t leaving;        // groups that are in the first one's first block and in others too; of pairs, those that begin there
        uint32_t crowd;          // devices of these groups in that block
    } at[KPLACE_MAX];
    uint64_t chips[KPLACE_CHIPS / 64]; // the first group's, in its first machine: blocks of per[0] in one of per[1]
} KPlaces;
// `per`: devices of a block, UINT32_MAX: all are in one; `machine`: in how many blocks of per[0] chips are told.
void kern_places(const Kern *k, const uint32_t per[KPLACE_MAX], uint32_t machine, KPlaces *out);

#endif
