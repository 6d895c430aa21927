// SPDX-License-Identifier: Apache-2.0
// tree.h — the order of sums over a group: one binary tree over its positions.
//
// Positions [a, b) are split behind the largest power of two below their number, so a node that does not reach the group's
// end has 2^k positions and begins at a multiple of that. Whoever sums, in however many pieces, follows this tree: devices of
// one process, several processes with any share of the devices, the evaluator. So all have the same bits.
//
// Nodes are folded from left to right with a stack: each is put on top, then the two on top become one as often as
// tree_folds says. The stack holds TREE_DEPTH at most.
#ifndef OTRN_COLL_TREE_H
#define OTRN_COLL_TREE_H

#include "coll/groups.h"

#define TREE_DEPTH 12 // log2 of COMM_RANKS_MAX, and one more while the last is put on top

typedef struct TreeSpan { // a node, by its positions
    uint32_t begin, end;
} TreeSpan;

// Folds behind `node` in a group of n, `depth` being on the stack with it.
static inline uint32_t tree_folds(TreeSpan node, uint32_t n, uint32_t depth) {
    if (node.end == n)
        return depth - 1;
    return (uint32_t)(__builtin_ctz(node.end) - __builtin_ctz(node.end - node.begin));
}
static inline TreeSpan tree_leaf(uint32_t position) { return (TreeSpan){position, position + 1}; }

#endif
