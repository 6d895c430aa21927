// SPDX-License-Identifier: Apache-2.0
// reduce.h — ways to make a program smaller.
//
// A kind of reduction finds its units in a graph: things it could take away. Applying it to a run
// of units gives a smaller graph, whose meaning need not be the old one: whoever looks for the
// smallest program that still shows a failure tries runs of units, large ones first, and keeps what
// still shows it. Graphs are edited in place and meant to be printed and read again.
#ifndef OTRN_WRITE_REDUCE_H
#define OTRN_WRITE_REDUCE_H

#include "hlo/hlo.h"

#define REDUCE_KINDS(X)                                                                            \
    X(CUT, "cut", "what follows an op of the entry function, which then returns its results")      \
    X(FUNCS, "functions", "functions")                                                             \
    X(RESULTS, "results", "results of the entry function")                                         \
    X(EXTRAS, "attributes", "attributes without meaning: of module, functions, arguments, ops")    \
    X(DEAD, "dead code", "ops whose results nobody reads, functions nobody calls")                 \
    X(ZERO, "zeros", "ops, by zeros in place of their results")                                    \
    X(OPERAND, "operands", "ops, by an operand of the same type in place of each result")          \
    X(BRANCH, "branches", "conditionals, by one of their branches; loops, by their body run once") \
    X(INLINE, "calls", "functions called once, by their body in place of the call")                \
    X(LIFT, "new arguments", "ops of the entry function, by arguments in place of their results")  \
    X(ARGS, "arguments", "arguments of the entry function; zeros where they are read")             \
    X(CONSTANTS, "constants", "constants of many values, by their first value everywhere")

typedef enum ReduceKind {
#define X(e, ...) RK_##e,
    REDUCE_KINDS(X)
#undef X
        RK_COUNT
} ReduceKind;

typedef struct ReduceRow {
    const char *name, *takes_away;
} ReduceRow;
extern const ReduceRow reduce_rows[RK_COUNT];

uint32_t reduce_units(Hlo *h, ReduceKind kind);
// Applies the reduction to units [first, first + count). False when that changed nothing.
bool reduce_apply(Hlo *h, ReduceKind kind, uint32_t first, uint32_t count);
// Drops dead code until there is none.
void reduce_tidy(Hlo *h);

typedef struct ReduceSize { // compared field by field, the first that differs decides
    uint32_t ops;           // but for constants and returns
    uint32_t funcs;
    uint32_t values; // arguments and results of the entry function
    uint64_t constant_bytes;
    uint32_t constants;
    size_t text_bytes; // filled by the caller
} ReduceSize;
ReduceSize reduce_size(Hlo *h);
bool reduce_smaller(const ReduceSize *a, const ReduceSize *b);

#endif
