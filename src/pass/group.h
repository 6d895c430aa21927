// SPDX-License-Identifier: Apache-2.0
// group.h — joining operations that one program does: rows, integers, fused work and what does small work beside it.
//
// Ops are visited in order. An op joins the open groups of its operands; any other use of a group's values closes the group, and
// what it becomes stands where it closed. So inputs are always there before it and no use comes before its results. Open groups
// know nothing of each other: two become one by putting their members in a row, because one needs both or, siblings, when one of them closes.
#ifndef OTRN_PASS_GROUP_H
#define OTRN_PASS_GROUP_H

#include "pass/walk.h"

#define GROUP_OPS_MAX 192

typedef struct Group {
    OpList ops;
    bool open;
    uint32_t last;  // place of the last one that joined
    TypeId shape;   // of fuse.c: type of one member's result, only its dimensions count
    int64_t n, c;   // of rows.c: elements of a full value; columns, 0 = flat
    int64_t period; // … what periods of repeating operands have in common, 0 = there are none
    uint32_t inputs;
} Group;

typedef struct Grouper {
    Walk w; // first: with uses
    VEC(Group) groups; // slot 0 is none
    VEC(uint32_t) of;  // value -> group that makes it
    bool (*join)(struct Grouper *g, OpId id);          // into a group, those it does not join closed; false: it is no member of any
    void (*close)(struct Grouper *g, uint32_t number); // puts what the group becomes, or its members, into w.out
    bool (*siblings)(struct Grouper *g, uint32_t closing, uint32_t open); // they had better be one; may be NULL
    uint32_t at;          // place in the region in hand
    uint32_t first, kept; // groups of that region begin there; one that is not to close now
} Grouper;

// Joins what there is in main, in regions of control flow too.
void group_run(Grouper *g, Compile *c);
// The group that makes the value; with open: only one that may still grow. 0: none.
static inline uint32_t group_member(const Grouper *g, ValueId v) { return v < g->of.n ? g->of.at[v] : 0; }
static inline uint32_t group_open(const Grouper *g, ValueId v) {
    uint32_t k = group_member(g, v);
    return g->groups.at[k].open ? k : 0;
}
uint32_t group_new(Grouper *g, Group group);
void group_add(Grouper *g, uint32_t number, OpId id);
void group_merge(Grouper *g, uint32_t into, uint32_t from); // members of `from` behind those of `into`
void group_outputs(Grouper *g, uint32_t number, Values *out); // of members, what somebody outside reads
void group_close(Grouper *g, uint32_t number);
void group_close_users(Grouper *g, const HloOp *op, uint32_t except); // those whose values the op, or a region of it, reads

#endif
