// SPDX-License-Identifier: Apache-2.0
// group.h — a priced program by operation, by named scope or by layer, as well as by line.
//
// JAX and our PyTorch front end name an operation by a path: "jit(step)/jvp(layer_3)/attn/dot_general". Its last part is the
// operation; the parts before it, without those that JAX adds for its own transformations, are the scope
// ("layer_3/attn"), the same for forward, backward and recomputed work. A layer is a scope up to its first part with
// a number ("layer_3"), or its first two parts when none has one.
#ifndef OTRN_CLOCK_GROUP_H
#define OTRN_CLOCK_GROUP_H

#include "clock/stall.h"

typedef enum GroupBy { GROUP_LINE, GROUP_OP, GROUP_SCOPE, GROUP_LAYER, GROUP_KINDS } GroupBy;
extern const char *const group_names[GROUP_KINDS]; // "line", …
GroupBy group_parse(const char *name);

typedef struct Group {
    const char *name; // of lines: file:line and operation
    double busy_ns[CLOCK_TRACKS];
    int track;        // where it is busy longest,
    double most_ns;   // and how long
    double path_ns;   // its part of the critical path
    double waits_ns, waited_ns; // tracks stand still before its instructions; others stand still for it
    double hbm_bytes, flops, insts;
    const ViewLine *line; // of lines
} Group;

typedef struct GroupTable {
    GroupBy by;
    VEC(Group) at; // most of the critical path first (without one: the longest busy)
    bool named;    // some instruction has a name path
} GroupTable;

void group_make(Arena *a, const Artifact *art, const Clock *clock, const View *view, const Stalls *stalls, GroupBy by,
                GroupTable *out);
// Of a name path: its scope, or its layer; "" when it has none.
const char *group_scope(Arena *a, const char *name, bool layer);
// One sentence on what the time goes to, made of the numbers of the critical path; "nothing to do …" without any.
const char *group_verdict(Arena *a, const Clock *clock, const Stalls *s, const GroupTable *groups);
// "train.py:12 add", as short as it can be told.
const char *group_line_text(Arena *a, const ViewLine *l);

#endif
