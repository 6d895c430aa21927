// SPDX-License-Identifier: Apache-2.0
// grad.c — reverse mode over the small graph: a rule per operation, nodes walked from the loss backwards.
#include <assert.h>

#include "train/graph.h"

#define NONE UINT32_MAX

typedef struct Grad {
    Graph *g;
    Val *of;      // gradient of node i so far, or NONE
    uint8_t *via; // does node i depend on something a gradient is asked of?
} Grad;

static void give(Grad *r, Val to, Val more) {
    if (r->via[to])
        r->of[to] = r->of[to] == NONE ? more : graph_two(r->g, G_ADD, r->of[to], more);
}

static Axes axes_from(int from, int to) {
    Axes a = {0};
    while (from < to)
        a.at[a.n++] = from++;
    return a;
}

static Axes others(const Axes *taken, int from, int rank) {
    Axes a = {0};
    for (int i = from; i < rank; i++) {
        bool is = false;
        for (int k = 0; k < taken->n; k++)
            is |= taken->at[k] == i;
        if (!is)
            a.at[a.n++] = i;
    }
    return a;
}

// Of a product: its gradient times the other side, contracted over what is free there; then the dimensions go back where they
// belong. `free_at`: where the other side's free dimensions lie in the product.
static Val dot_side(Graph *g, Val grad, Val other, int batch, Axes mine, Axes its, int rank, int free_at) {
    Axes its_free = others(&its, batch, graph_at(g, other)->dims.rank), my_free = others(&mine, batch, rank);
    Val d = graph_dot(g, grad, other, batch, axes_from(free_at, free_at + its_free.n), its_free);
    // d has: batch, my free dimensions in order, then its contracted ones in the order they lie in the other side
    Axes order = {.n = rank};
    for (int i = 0; i < batch; i++)
        order.at[i] = i;
    for (int i = 0; i < my_free.n; i++)
        order.at[my_free.at[i]] = batch + i;
    for (int i = 0; i < mine.n; i++) {
        int place = 0;
        for (int k = 0; k < its.n; k++)
            place += its.at[k] < its.at[i];
        order.at[mine.at[i]] = batch + my_free.n + place;
    }
    return graph_transpose(g, d, order);
}

static void dot_rule(Grad *r, const GraphNode *n, Val y) {
    Graph *g = r->g;
    int rank0 = graph_at(g, n->in[0])->dims.rank, rank1 = graph_at(g, n->in[1])->dims.rank;
    int free0 = rank0 - n->batch - n->a.n;
    if (r->via[n->in[0]])
        give(r, n->in[0], dot_side(g, y, n->in[1], n->batch, n->a, n->b, rank0, n->batch + free0));
    if (r->via[n->in[1]])
        give(r, n->in[1], dot_side(g, y, n->in[0], n->batch, n->b, n->a, rank1, n->batch));
}

static void broadcast_rule(Grad *r, const GraphNode *n, Val y) {
    Axes over = others(&n->a, 0, n->dims.rank);
    give(r, n->in[0], over.n ? graph_reduce(r->g, G_SUM, y, over) : y);
}

static Val put_rows(Graph *g, const GraphNode *n, Val y) {
    Dims table = graph_at(g, n->in[0])->dims;
    Val zero = graph_splat(g, g->real, 0, table);
    Val put = graph_one(g, G_PUT_ROWS, zero);
    GraphNode *p = &g->nodes.at[put];
    p->nin = 3, p->in[1] = n->in[1], p->in[2] = y;
    return put;
}

// y: gradient of the result; `self`: the result, which some rules use again.
static void rule(Grad *r, GraphNode n, Val self, Val y) {
    Graph *g = r->g;
    Val a = n.in[0], b = n.in[1];
    switch (n.op) {
    case G_ADD:
        give(r, a, y), give(r, b, y);
        break;
    case G_SUB:
        give(r, a, y);
        if (r->via[b])
            give(r, b, graph_one(g, G_NEG, y));
        break;
    case G_MUL:
        if (r->via[a])
            give(r, a, graph_two(g, G_MUL, y, b));
        if (r->via[b])
            give(r, b, graph_two(g, G_MUL, y, a));
        break;
    case G_DIV:
        if (r->via[a])
            give(r, a, graph_two(g, G_DIV, y, b));
        if (r->via[b])
            give(r, b, graph_one(g, G_NEG, graph_two(g, G_DIV, graph_two(g, G_MUL, y, self), b)));
        break;
    case G_NEG:
        give(r, a, graph_one(g, G_NEG, y));
        break;
    case G_EXP:
        give(r, a, graph_two(g, G_MUL, y, self));
        break;
    case G_LOG:
        give(r, a, graph_two(g, G_DIV, y, a));
        break;
    case G_TANH: {
        Val rest = graph_two(g, G_SUB, graph_splat(g, g->real, 1, n.dims), graph_two(g, G_MUL, self, self));
        give(r, a, graph_two(g, G_MUL, y, rest));
        break;
    }
    case G_RSQRT: {
        Val cube = graph_two(g, G_MUL, graph_two(g, G_MUL, self, self), self);
        give(r, a, graph_scale(g, graph_two(g, G_MUL, y, cube), -0.5));
        break;
    }
    case G_SELECT: {
        Val zero = graph_splat(g, g->real, 0, n.dims);
        if (r->via[b])
            give(r, b, graph_select(g, a, y, zero));
        if (r->via[n.in[2]])
            give(r, n.in[2], graph_select(g, a, zero, y));
        break;
    }
    case G_RESHAPE:
        give(r, a, graph_reshape(g, y, graph_at(g, a)->dims));
        break;
    case G_TRANSPOSE: {
        Axes back = {.n = n.a.n};
        for (int i = 0; i < n.a.n; i++)
            back.at[n.a.at[i]] = i;
        give(r, a, graph_transpose(g, y, back));
        break;
    }
    case G_BROADCAST:
        broadcast_rule(r, &n, y);
        break;
    case G_SUM: {
        Dims from = graph_at(g, a)->dims;
        give(r, a, graph_broadcast(g, y, from, others(&n.a, 0, from.rank)));
        break;
    }
    case G_DOT:
        dot_rule(r, &n, y);
        break;
    case G_ROWS:
        give(r, a, put_rows(g, &n, y));
        break;
    default:
        assert(n.op == G_MAXOF); // nothing flows
    }
}

static bool flows(const Graph *g, const GraphNode *n) { return n->dtype == g->real && n->op != G_MAXOF; }

void graph_gradients(Graph *g, Val loss, const Val *of, size_t count, Val *grads) {
    Grad r = {g, ARENA_NEWN(g->arena, Val, loss + 1), ARENA_NEWN(g->arena, uint8_t, loss + 1)};
    for (size_t i = 0; i < count; i++)
        r.via[of[i]] = 1;
    for (Val v = 0; v <= loss; v++) {
        const GraphNode *n = graph_at(g, v);
        r.of[v] = NONE;
        for (int i = 0; i < n->nin && flows(g, n); i++)
            r.via[v] |= r.via[n->in[i]];
    }
    r.of[loss] = graph_splat(g, g->real, 1, SCALAR);
    for (Val v = loss + 1; v-- > 0;) {
        GraphNode n = *graph_at(g, v);
        if (r.of[v] == NONE || !n.nin)
            continue;
        g->where = n.where;
        rule(&r, n, v, r.of[v]);
    }
    for (size_t i = 0; i < count; i++) {
        grads[i] = r.of[of[i]];
        assert(grads[i] != NONE);
    }
}
