// SPDX-License-Identifier: Apache-2.0
// spmd.h — the pass from the inside.
//
//   shard.c  how a tensor lies on the devices
//   rule.c   which dimensions of an op's tensors go together
//   plan.c   how each value should lie, from what the program says about some of them
//   way.c    the steps from one way to lie to another, and what they send
//   move.c   those steps as operations: collectives and cuts
//   spmd.c   the program of one device, op by op
//   custom.c calls that somebody outside cuts, before all this
#ifndef OTRN_SPMD_SPMD_H
#define OTRN_SPMD_SPMD_H

#include "hlo/users.h"
#include "pass/pass.h"
#include "spmd/rule.h"

typedef struct Piece { // a value as the devices have it
    const Shards *shards;
    ValueId value;
    const struct Piece *next;
} Piece;

typedef struct Form { // of a value of the old body
    ValueId whole;       // 0: not there
    const Piece *pieces; // the newest first; the last is how it was made, unless that was whole
    OpId lazy;           // an op so cheap that it is done anew in every form that is wanted; 0: none
    uint32_t depth;      // of such ops behind each other
} Form;

typedef struct Undo {
    ValueId value;
    Form form;
} Undo;

// What many ops, arguments and results share, and was made by looking at every device.
typedef struct Met { // who meets along a dimension
    const Shards *shards;
    uint32_t dim;
    const int64_t *groups;
} Met;
typedef struct Offsets { // of a device's part
    Cut cut;
    int64_t part;
    const int32_t *at;
} Offsets;
typedef struct Told { // how an argument or result lies
    const Shards *shards;
    const char *text;
} Told;

typedef struct Spmd {
    Compile *c;
    Hlo *h;
    uint32_t devices;
    RegionId to; // where ops are added
    LocId loc;   // of the op at hand
    OpId op;     // for messages
    VEC(Form) forms; // by value of the old body
    VEC(Undo) undo;  // forms changed inside a nested region, which end with it
    const Shards **plan; // by value of the old body: how it should lie; NULL: whole, or as it comes
    uint32_t nplan;
    Users users; // of the old body
    uint32_t depth;  // of nested regions
    uint32_t manual; // of manual regions
    VEC(Met) met;
    VEC(Offsets) offsets;
    VEC(Told) told;
} Spmd;

ShardRead spmd_reader(const Spmd *s, const AxisSet *only);
// What the signature says: of arguments (those it says nothing about as manual computations want them) and results.
void spmd_said(Spmd *s, const HloFunc *f, const Shards **args, const Shards **results);
const char *spmd_opaque(Spmd *s, const HloOp *op, const char *name);
// The shardings of an op's list attribute, for these values; NULL axes: all count.
const Shards **spmd_shards_list(Spmd *s, const HloOp *op, const char *name, const AxisSet *axes,
                                uint32_t n, const ValueId *values);
ValueId *spmd_result_ids(Spmd *s, const HloOp *op);
// What the op says about its operand; NULL when it does not, or not evenly.
const Shards *spmd_constraint(const Spmd *s, const HloOp *op);
ValueId spmd_lazy(Spmd *s, OpId id, const Shards *sh); // the op's result in these parts

// ---- copies of ops (spmd.c) and ops in parts (work.c)
OpId spmd_clone(Spmd *s, const HloOp *op, const ValueId *operands, const TypeId *types); // regions follow
// args: how the region's arguments lie, and what it returns; NULL: all whole.
void spmd_copy_region(Spmd *s, OpId copy, RegionId from, const Shards *const *args);
void spmd_note_outer(Spmd *s, RegionId region, bool in_parts);
// The terms a value lies in, when the only op that reads it may take them as they are; parts 1: none.
Cut spmd_free_terms(const Spmd *s, ValueId v);
void spmd_gather_terms(Spmd *s, RegionId region); // planned, not yet copied
bool spmd_in_parts(Spmd *s, OpId id); // false: it is to be done on whole values
// Of a cheap op, behind others of its kind; 0: it is not one.
uint32_t spmd_lazy_depth(const Spmd *s, const HloOp *op);

static inline bool spmd_fits(const HloType *t, const Shards *sh) { // all parts are equal
    for (uint32_t i = 0; i < sh->rank; i++)
        if (sh->cut[i].parts > 1 && (!t->dims[i] || t->dims[i] % sh->cut[i].parts))
            return false;
    return true;
}

// --- plan.c ------------------------------------------------------------------------------------
// args: of the entry's arguments, which are as they are; results: wishes for what it returns. NULL: nothing is said.
// Sets plan and users.
void spmd_plan(Spmd *s, RegionId body, const Shards *const *args, const Shards *const *results);

// --- move.c ------------------------------------------------------------------------------------
OpId move_op(Spmd *s, HloOpcode code, uint32_t n, const ValueId *operands, TypeId type);
static inline ValueId move_result(const Spmd *s, OpId id) { return hlo_at(s->h, id)->results; }
TypeId move_part_type(Spmd *s, TypeId whole, const Shards *sh); // raises UNSUPPORTED when parts are not equal
// A device's offset in a dimension, or the number of its term.
ValueId move_offset(Spmd *s, const Shards *sh, uint32_t dim, int64_t part_size);
ValueId move_number(Spmd *s, int32_t v, int dtype);       // a scalar
ValueId move_splat(Spmd *s, ValueId scalar, TypeId type); // of its element type, which is the scalar's
void move_set(Spmd *s, ValueId v, Form f);
void move_set_piece(Spmd *s, ValueId v, const Shards *sh, ValueId value); // made this way; whole when sh is
const Piece *move_made(const Spmd *s, ValueId v); // how it was made; NULL: whole
ValueId move_cut(Spmd *s, ValueId whole, const Shards *sh); // of a value of the new body
ValueId move_whole(Spmd *s, ValueId v);
ValueId move_part(Spmd *s, ValueId v, const Shards *sh);
uint64_t move_bytes(Spmd *s, ValueId v, const Shards *sh); // what a device sends for that

#endif
