// SPDX-License-Identifier: Apache-2.0
// xla_text.h — HLO text becomes the protocol buffer it stands for; what its two files share.
#ifndef OTRN_READ_XLA_TEXT_H
#define OTRN_READ_XLA_TEXT_H

#include "base/pb.h"
#include "read/text.h"
#include "read/xla.h"

#define HLO_TEXT_NESTS 8 // messages inside an instruction that attributes share

typedef struct HloNest {
    uint32_t field;
    Buf m;
} HloNest;

typedef struct HloTextInst { // an instruction while it is read
    Buf m;
    char opcode[64];
    HloOpcode code;
    HloNest nests[HLO_TEXT_NESTS];
    uint32_t nnests;
    VEC(int64_t) called; // computations
    bool placed;         // its metadata names a line
} HloTextInst;

typedef struct HloText {
    TextRead p;    // the cursor; its map of values has this computation's instructions, a: number
    TextMap comps; // a: number
    Buf comp;      // the computation at hand
    int64_t ninsts;
} HloText;

// --- xla_text.c
Span hlo_text_name(HloText *t, const char *what); // with or without %
uint32_t hlo_text_comp(HloText *t);               // number of the computation named here

// --- xla_text_attr.c
int hlo_text_shape(HloText *t, Buf *out);                     // its element type, DT_INVALID for tuples
void hlo_text_constant(HloText *t, int dtype, Buf *inst);     // behind "constant("
void hlo_text_attr(HloText *t, HloTextInst *i);               // name=value
void hlo_text_frontend(HloText *t, Buf *out);                  // {name="value", …}: a message
void hlo_text_skip(HloText *t);                               // a value of any kind
void hlo_text_ints(HloText *t, uint32_t *base);               // {1, 2}, or one number: pushed on t->p.ints from *base

#endif
