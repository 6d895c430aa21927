// SPDX-License-Identifier: Apache-2.0
// graph.c — nodes of the small graph are made here, each with the shape of its result.
#include "train/graph.h"

#include <assert.h>

const GraphNode *graph_at(const Graph *g, Val v) {
    assert(v < g->nodes.n);
    return &g->nodes.at[v];
}

static bool same_dims(const Dims *x, const Dims *y) {
    if (x->rank != y->rank)
        return false;
    for (int i = 0; i < x->rank; i++)
        if (x->at[i] != y->at[i])
            return false;
    return true;
}

static int64_t count_of(const Dims *d) {
    int64_t n = 1;
    for (int i = 0; i < d->rank; i++)
        n *= d->at[i];
    return n;
}

static bool has(const Axes *a, int dim) {
    for (int i = 0; i < a->n; i++)
        if (a->at[i] == dim)
            return true;
    return false;
}

static Val push(Graph *g, GraphNode node) {
    assert(node.dims.rank <= GRAPH_RANK);
    node.where = g->where ? g->where : "";
    VEC_PUSH(g->arena, &g->nodes, node);
    return g->nodes.n - 1;
}

Val graph_arg(Graph *g, int dtype, Dims dims) { return push(g, (GraphNode){.op = G_ARG, .dtype = dtype, .dims = dims}); }

Val graph_splat(Graph *g, int dtype, double number, Dims dims) {
    return push(g, (GraphNode){.op = G_SPLAT, .dtype = dtype, .dims = dims, .number = number});
}

Val graph_iota(Graph *g, Dims dims, int dim) {
    assert(dim < dims.rank);
    return push(g, (GraphNode){.op = G_IOTA, .dtype = DT_I32, .dims = dims, .a = AXES(dim)});
}

Val graph_one(Graph *g, GraphOp op, Val x) {
    const GraphNode *n = graph_at(g, x);
    return push(g, (GraphNode){.op = op, .dtype = n->dtype, .dims = n->dims, .nin = 1, .in = {x}});
}

Val graph_two(Graph *g, GraphOp op, Val x, Val y) {
    const GraphNode *n = graph_at(g, x), *m = graph_at(g, y);
    assert(n->dtype == m->dtype);
    assert(same_dims(&n->dims, &m->dims));
    int dtype = op == G_EQ || op == G_GE ? DT_I1 : n->dtype;
    return push(g, (GraphNode){.op = op, .dtype = dtype, .dims = n->dims, .nin = 2, .in = {x, y}});
}

Val graph_select(Graph *g, Val if_true, Val x, Val y) {
    const GraphNode *p = graph_at(g, if_true), *n = graph_at(g, x);
    assert(p->dtype == DT_I1);
    assert(same_dims(&p->dims, &n->dims));
    assert(same_dims(&n->dims, &graph_at(g, y)->dims));
    return push(g, (GraphNode){.op = G_SELECT, .dtype = n->dtype, .dims = n->dims, .nin = 3, .in = {if_true, x, y}});
}

Val graph_reshape(Graph *g, Val x, Dims dims) {
    const GraphNode *n = graph_at(g, x);
    assert(count_of(&n->dims) == count_of(&dims));
    if (same_dims(&n->dims, &dims))
        return x;
    return push(g, (GraphNode){.op = G_RESHAPE, .dtype = n->dtype, .dims = dims, .nin = 1, .in = {x}});
}

Val graph_transpose(Graph *g, Val x, Axes order) {
    const GraphNode *n = graph_at(g, x);
    assert(order.n == n->dims.rank);
    Dims dims = {.rank = order.n};
    bool moves = false;
    for (int i = 0; i < order.n; i++) {
        dims.at[i] = n->dims.at[order.at[i]];
        moves |= order.at[i] != i;
    }
    if (!moves)
        return x;
    return push(g, (GraphNode){.op = G_TRANSPOSE, .dtype = n->dtype, .dims = dims, .nin = 1, .in = {x}, .a = order});
}

Val graph_broadcast(Graph *g, Val x, Dims dims, Axes where) {
    const GraphNode *n = graph_at(g, x);
    assert(where.n == n->dims.rank);
    for (int i = 0; i < where.n; i++)
        assert(n->dims.at[i] == dims.at[where.at[i]]);
    return push(g, (GraphNode){.op = G_BROADCAST, .dtype = n->dtype, .dims = dims, .nin = 1, .in = {x}, .a = where});
}

Val graph_reduce(Graph *g, GraphOp op, Val x, Axes over) {
    int dtype = graph_at(g, x)->dtype;
    Dims from = graph_at(g, x)->dims, dims = {0};
    for (int i = 0; i < from.rank; i++)
        if (!has(&over, i))
            dims.at[dims.rank++] = from.at[i];
    assert(dims.rank + over.n == from.rank);
    Val start = graph_splat(g, dtype, op == G_SUM ? 0 : -3.0e38, SCALAR);
    return push(g, (GraphNode){.op = op, .dtype = dtype, .dims = dims, .nin = 2, .in = {x, start}, .a = over});
}

Val graph_dot(Graph *g, Val x, Val y, int batch, Axes cx, Axes cy) {
    const GraphNode *n = graph_at(g, x), *m = graph_at(g, y);
    Dims dims = {0};
    assert(cx.n == cy.n);
    for (int i = 0; i < cx.n; i++)
        assert(n->dims.at[cx.at[i]] == m->dims.at[cy.at[i]]);
    for (int i = 0; i < n->dims.rank; i++)
        if (!has(&cx, i))
            dims.at[dims.rank++] = n->dims.at[i];
    for (int i = batch; i < m->dims.rank; i++)
        if (!has(&cy, i))
            dims.at[dims.rank++] = m->dims.at[i];
    return push(g, (GraphNode){.op = G_DOT, .dtype = n->dtype, .dims = dims, .nin = 2, .in = {x, y}, .a = cx, .b = cy, .batch = batch});
}

Val graph_rows(Graph *g, Val table, Val index) {
    const GraphNode *t = graph_at(g, table), *i = graph_at(g, index);
    assert(t->dims.rank == 2);
    assert(i->dtype == DT_I32);
    Dims dims = i->dims;
    dims.at[dims.rank++] = t->dims.at[1];
    int dtype = t->dtype;
    Dims index_dims = i->dims;
    index_dims.at[index_dims.rank++] = 1;
    Val at = graph_reshape(g, index, index_dims);
    return push(g, (GraphNode){.op = G_ROWS, .dtype = dtype, .dims = dims, .nin = 2, .in = {table, at}});
}

Val graph_all_sum(Graph *g, Val x, int devices) {
    if (devices == 1)
        return x;
    const GraphNode *n = graph_at(g, x);
    return push(g, (GraphNode){.op = G_ALL_SUM, .dtype = n->dtype, .dims = n->dims, .nin = 1, .in = {x}, .batch = devices});
}

Val graph_scale(Graph *g, Val x, double by) {
    Dims dims = graph_at(g, x)->dims;
    return graph_two(g, G_MUL, x, graph_splat(g, g->real, by, dims));
}
