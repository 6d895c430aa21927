// SPDX-License-Identifier: Apache-2.0
// price.h — what one instruction costs, whenever it runs.
//
// Times are whole picoseconds, so that the clock can recognise a loop's steady state exactly and
// results do not depend on the order of additions.
#ifndef OTRN_MACH_PRICE_H
#define OTRN_MACH_PRICE_H

#include "mach/fabric.h"

typedef int64_t Ps;
#define PS_MAX (INT64_MAX / 4) // later than anything; sums of two stay in range

static inline Ps ps_add(Ps a, Ps b) { return a + b < PS_MAX ? a + b : PS_MAX; }
static inline Ps ps_max(Ps a, Ps b) { return a > b ? a : b; }

#define ACT_NO_SET 0xff
enum { PORT_SBUF = 1, PORT_PSUM = 2 };

typedef struct Price {
    Ps busy;    // the engine is occupied; DMA: the sequencer that triggers it
    Ps latency; // from begin until the semaphore counts; DMA: from trigger to the first byte
    Ps hbm;     // HBM occupied at full bandwidth
    Ps link[LINK_COUNT]; // of a collective: what of busy its bytes take there, one after the other
    Ps dma;     // DMA engine time for one partition; without partitions, and of a collective, of every engine
    uint16_t dma_part, dma_parts; // DMA: partitions moved; parts 0 = spread evenly over all engines
    uint8_t track;
    uint8_t act_set; // the scalar engine's table it needs, ACT_NO_SET = none
    uint8_t ports;   // PORT_…: ports it holds while it is busy
    uint8_t banks;   // of PSUM it holds likewise, a bit each
    uint8_t way, reach; // of a collective: FabricWay, and LinkPlace
    double flops, hbm_bytes, link_bytes;
} Price;

double price_passes(const ChipFile *c, int dtype); // over the array, of a product's moving type
double price_depth(const IsaInst *in);             // products a cell makes in a pass
// One instruction; `kerns` is the list its kernel number points into.
void price_alone(const ChipFile *chip, const Kern *kerns, const IsaInst *in, Price *out);
// All of a program, each kernel once.
void price_program(Arena *a, const ChipFile *chip, const Kern *kerns, uint32_t nkerns, const IsaInst *code,
                   uint32_t n, Price *out);

#endif
