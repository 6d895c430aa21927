// SPDX-License-Identifier: Apache-2.0
// reduce.h — sums over a group, along its tree (tree.h), wherever its members are.
//
// Who meets brings the fold: how blocks of two terms become one. Here is which terms, in which order, computed by whom.
#ifndef OTRN_COLL_REDUCE_H
#define OTRN_COLL_REDUCE_H

#include "coll/comm.h"
#include "coll/tree.h"

// Elements of an operand: element i of the part is element i / chunk * pitch + offset + i % chunk.
typedef struct CommPart {
    int64_t n, chunk, pitch, offset;
} CommPart;

typedef struct CommTerm {
    TreeSpan span;    // the positions it is the sum of
    const void *data;
    bool raw;         // of the operand's type; else of the result's
    bool packed;      // only the part; else the whole operand
} CommTerm;

typedef struct CommSize { // of an operand: elements, and bytes of one in it and in the result
    int64_t elems;
    uint8_t in, out;
} CommSize;

typedef struct CommReduce {
    uint32_t n;         // operands, and results
    const CommSize *of; // of each
    // Elements [first, first + count) of the part, folded into dst. size: of the group.
    void (*fold)(void *arg, uint32_t k, const CommTerm *terms, uint32_t nterms, uint32_t size, const CommPart *part,
                 int64_t first, int64_t count, void *dst);
    void (*copy)(void *arg, void *dst, const void *src, size_t bytes);
    // What the member at this position is to have of operand k; n 0: nothing. Only for comm_reduce_parts.
    CommPart (*part)(void *arg, uint32_t k, uint32_t position);
    void *arg;
} CommReduce;

// Behind comm_meet; into the results of the post. False: comm_why tells.
bool comm_all_reduce(CommRank *me, const CommReduce *r);
bool comm_reduce_parts(CommRank *me, const CommReduce *r);

#endif
