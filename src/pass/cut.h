// SPDX-License-Identifier: Apache-2.0
// cut.h — the cheapest set of edges that parts a source from a sink.
#ifndef OTRN_PASS_CUT_H
#define OTRN_PASS_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

#define CUT_NEVER (INT64_MAX / 4) // capacity of an edge that no cut goes through

typedef struct CutEdge {
    uint32_t to, next; // node; next edge of the same node, 0 = none
    int64_t left;      // capacity that is not used
} CutEdge;

typedef struct Cut {
    Arena *arena;
    VEC(CutEdge) edges; // an edge and its reverse stand side by side, from 2
    VEC(uint32_t) first; // per node
} Cut;

void cut_init(Cut *g, Arena *a, uint32_t nodes);
void cut_edge(Cut *g, uint32_t from, uint32_t to, int64_t capacity);
// What the cheapest cut costs; side[n]: node n stays with the source.
int64_t cut_make(Cut *g, uint32_t source, uint32_t sink, bool *side);

#endif
