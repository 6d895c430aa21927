// SPDX-License-Identifier: Apache-2.0
// flow_foot.h — the memory that a unit of the flow touches, and whether two units meet.
#ifndef OTRN_CHIP_FLOW_FOOT_H
#define OTRN_CHIP_FLOW_FOOT_H

#include "artifact/artifact.h"

#define FOOT_GRAIN 256u // bytes of a partition that are looked at together, in all partitions
#define FOOT_SBUF_WORDS (ISA_SBUF_BYTES / FOOT_GRAIN / 64)
#define FOOT_HBM 48

typedef struct FootHbm { // bytes [lo, hi); pitch not 0: of these only `span` from lo on, and again every pitch bytes
    uint32_t seg;        // standing for all that may share its memory
    bool is_write;
    int64_t lo, hi, pitch, span;
} FootHbm;

typedef struct Foot {
    uint64_t sbuf[2][FOOT_SBUF_WORDS]; // read, written
    uint64_t psum[2];
    bool registers; // of the engines, read and written
    bool writes_hbm, all_hbm; // all_hbm: more than there was room for
    uint32_t nhbm;
    FootHbm hbm[FOOT_HBM];
} Foot;
_Static_assert(ISA_PSUM_BYTES / FOOT_GRAIN == 64, "PSUM is one word");

void foot_clear(Foot *f);
void foot_part(Foot *f, int space, int64_t lo, int64_t hi, bool is_write); // of a partition, SBUF or PSUM
void foot_hbm(Foot *f, const FootHbm *h);
FootHbm foot_stretch(const IsaAccess *a, int64_t terms, uint32_t seg); // an access to HBM; registers add `terms`
bool foot_stretches_meet(const FootHbm *x, const FootHbm *y); // one of them writing
// All that an instruction touches, with these values in registers.
void foot_inst(Foot *f, const IsaInst *in, const int64_t *regs, const uint32_t *same_seg);
void foot_join(Foot *f, const Foot *with);
bool foot_meet(const Foot *x, const Foot *y); // one of them writing
bool foot_spoils(const Foot *writer, const Foot *reader); // does it write what the other reads?

#endif
