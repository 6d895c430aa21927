// SPDX-License-Identifier: Apache-2.0
// graph.h — a small graph of tensor operations, its gradients, and the StableHLO text of it.
//
// For programs that models of our own are made of (model.c): the dozen operations they need, each with its rule for the
// gradient (grad.c) and its line of text (graph_print.c). The text goes the one road that every program goes. Nodes are
// numbered in the order they were made, which is an order of execution. Shapes are ours to get right: mistakes are assertions.
#ifndef OTRN_TRAIN_GRAPH_H
#define OTRN_TRAIN_GRAPH_H

#include "base/bytes.h"
#include "base/dtype.h"

#define GRAPH_RANK 6

// One row per operation: enum, name in StableHLO, how it is printed.
#define GRAPH_OPS(X)                                                                               \
    X(ARG, "", ARG) X(SPLAT, "constant", SPLAT) X(IOTA, "iota", IOTA)                              \
    X(ADD, "add", PLAIN) X(SUB, "subtract", PLAIN) X(MUL, "multiply", PLAIN)                       \
    X(DIV, "divide", PLAIN) X(MIN, "minimum", PLAIN) X(NEG, "negate", PLAIN)                       \
    X(EXP, "exponential", PLAIN) X(LOG, "log", PLAIN) X(TANH, "tanh", PLAIN)                       \
    X(SQRT, "sqrt", PLAIN) X(RSQRT, "rsqrt", PLAIN)                                                \
    X(EQ, "EQ", COMPARE) X(GE, "GE", COMPARE) X(SELECT, "select", SELECT)                          \
    X(RESHAPE, "reshape", SHAPE)                                      \
    X(TRANSPOSE, "transpose", DIMS) X(BROADCAST, "broadcast_in_dim", DIMS)                         \
    X(SUM, "add", REDUCE) X(MAXOF, "maximum", REDUCE)                                              \
    X(DOT, "dot_general", DOT) X(ROWS, "gather", ROWS) X(PUT_ROWS, "scatter", PUT_ROWS)            \
    X(ALL_SUM, "all_reduce", ALL_SUM)

typedef enum GraphOp {
#define X(op, ...) G_##op,
    GRAPH_OPS(X)
#undef X
        G_COUNT
} GraphOp;

typedef uint32_t Val; // a node's number
typedef struct Dims {
    int rank;
    int64_t at[GRAPH_RANK];
} Dims;
typedef struct Axes { // dimensions, by number
    int n;
    int at[GRAPH_RANK];
} Axes;
#define DIMS(...) ((Dims){sizeof((int64_t[]){__VA_ARGS__}) / 8, {__VA_ARGS__}})
#define AXES(...) ((Axes){sizeof((int[]){__VA_ARGS__}) / sizeof(int), {__VA_ARGS__}})
#define SCALAR ((Dims){0})
#define NO_AXES ((Axes){0})

typedef struct GraphNode {
    GraphOp op;
    int dtype; // the graph's real type, DT_I32 or DT_I1
    Dims dims;
    int nin;
    Val in[3];
    Axes a, b;         // permutation, dimensions that stay or go; contracted ones of both sides
    int batch;         // leading dimensions that a product has in common; the number of devices of ALL_SUM
    double number;     // SPLAT
    const char *where; // part of the model, for messages and profiles
} GraphNode;

typedef struct Graph {
    Arena *arena;
    VEC(GraphNode) nodes;
    const char *where; // of what is made next
    int real;          // DT_F32, or DT_F64 to hold others against
} Graph;

Val graph_arg(Graph *g, int dtype, Dims dims);
Val graph_splat(Graph *g, int dtype, double number, Dims dims);
Val graph_iota(Graph *g, Dims dims, int dim); // i32
Val graph_one(Graph *g, GraphOp op, Val x);
Val graph_two(Graph *g, GraphOp op, Val x, Val y); // same shape; EQ and GE give i1
Val graph_select(Graph *g, Val if_true, Val x, Val y);
Val graph_reshape(Graph *g, Val x, Dims dims);
Val graph_transpose(Graph *g, Val x, Axes order);
Val graph_broadcast(Graph *g, Val x, Dims dims, Axes where); // dimension i of x is dimension where[i]
Val graph_reduce(Graph *g, GraphOp op, Val x, Axes over);    // SUM or MAXOF; `over` ascends
Val graph_dot(Graph *g, Val x, Val y, int batch, Axes cx, Axes cy);
Val graph_rows(Graph *g, Val table, Val index);              // table[V,D], index[…] i32 -> […,D]
Val graph_all_sum(Graph *g, Val x, int devices);
Val graph_scale(Graph *g, Val x, double by);
const GraphNode *graph_at(const Graph *g, Val v);

// grads[i] = d loss / d of[i]. Through MAXOF, comparisons and integers nothing flows: where a maximum is only taken away again, as
// in a softmax, that is exact.
void graph_gradients(Graph *g, Val loss, const Val *of, size_t count, Val *grads);

typedef struct GraphArg {
    Val val;
    const char *name;
    int64_t result; // that may take its memory over; -1: none
} GraphArg;
// A module with one function, main, that takes and gives these.
void graph_print(const Graph *g, const char *name, int devices, const GraphArg *args, size_t nargs, const Val *results,
                 size_t nresults, Buf *out);

#endif
