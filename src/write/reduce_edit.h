// SPDX-License-Identifier: Apache-2.0
// reduce_edit.h — an edit of a graph, decided op by op and carried out at once.
//
// While an edit is open the graph keeps its ops; edit_end rebuilds every region: new ops come
// before the op they were made for, dropped ops are left out, an op that gives way to a region is
// replaced by that region's ops, and operands become what stands for them now.
#ifndef OTRN_WRITE_REDUCE_EDIT_H
#define OTRN_WRITE_REDUCE_EDIT_H

#include "hlo/hlo.h"

typedef struct Edit {
    Hlo *h;
    uint32_t nops, nvalues; // of the graph when the edit began; newer ones are not edited
    ValueId *to;            // by ValueId: what stands for it, 0 for itself
    uint8_t *gone;          // by OpId
    RegionId *splice;       // by OpId: its ops stand for the op
    struct {
        OpId first; // consecutive ids
        uint32_t n;
    } *fresh;       // by OpId: ops that come before it
    uint8_t *taken; // by function: dropped
    bool changed;
} Edit;

Edit edit_begin(Hlo *h);
bool edit_end(Edit *e); // whether anything changed

// A value of zeros before an op; 0 when the type has none.
ValueId edit_zero(Edit *e, OpId before, TypeId type);
void edit_drop(Edit *e, OpId op);
// The op gives way to the ops of a region whose arguments stand for `args`.
void edit_splice(Edit *e, OpId op, RegionId region, const ValueId *args);

// The entry function, or NULL.
HloFunc *edit_entry(Hlo *h);
OpId edit_return(const Hlo *h, RegionId r); // its last op
typedef struct Signature {
    const uint8_t *drop_args, *drop_results; // one per argument or result, or NULL
    const ValueId *lifted;                   // values that become arguments behind the others
    uint32_t nlifted;
} Signature;
void edit_signature(Edit *e, HloFunc *f, const Signature *s);
// The entry returns these values and nothing else.
void edit_results(Edit *e, HloFunc *f, const ValueId *values, uint32_t n);

// Every op of a function's regions, in program order, outer before inner.
typedef struct WalkOp {
    OpId op;
    uint32_t func;
} WalkOp;
typedef VEC(WalkOp) WalkOps;
WalkOps edit_walk(Hlo *h);

#endif
