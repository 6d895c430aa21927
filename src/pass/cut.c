// SPDX-License-Identifier: Apache-2.0
// cut.c — a minimum cut by a maximum flow: shortest ways first, in layers, until none is left.
#include "pass/cut.h"

#include <assert.h>

void cut_init(Cut *g, Arena *a, uint32_t nodes) {
    assert(nodes >= 2);
    *g = (Cut){.arena = a};
    for (uint32_t i = 0; i < nodes; i++)
        VEC_PUSH(a, &g->first, 0);
    VEC_PUSH(a, &g->edges, (CutEdge){0});
    VEC_PUSH(a, &g->edges, (CutEdge){0});
}

static void push(Cut *g, uint32_t from, uint32_t to, int64_t left) {
    VEC_PUSH(g->arena, &g->edges, ((CutEdge){to, g->first.at[from], left}));
    g->first.at[from] = g->edges.n - 1;
}

void cut_edge(Cut *g, uint32_t from, uint32_t to, int64_t capacity) {
    assert(from < g->first.n && to < g->first.n && capacity >= 0);
    push(g, from, to, capacity);
    push(g, to, from, 0);
}

// Steps from the source over edges with room, from 1; 0: not reached.
static void find_layers(const Cut *g, uint32_t source, uint32_t *layer, uint32_t *queue) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < g->first.n; i++)
        layer[i] = 0;
    layer[source] = 1, queue[0] = source;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = g->first.at[queue[i]]; e; e = g->edges.at[e].next)
            if (g->edges.at[e].left && !layer[g->edges.at[e].to]) {
                layer[g->edges.at[e].to] = layer[queue[i]] + 1;
                queue[n++] = g->edges.at[e].to;
            }
}

static int64_t send(Cut *g, uint32_t node, uint32_t sink, int64_t most, const uint32_t *layer, uint32_t *at) {
    if (node == sink)
        return most;
    for (; at[node]; at[node] = g->edges.at[at[node]].next) {
        CutEdge *e = &g->edges.at[at[node]];
        if (!e->left || layer[e->to] != layer[node] + 1)
            continue;
        int64_t sent = send(g, e->to, sink, e->left < most ? e->left : most, layer, at);
        if (sent) {
            e->left -= sent;
            g->edges.at[at[node] ^ 1].left += sent;
            return sent;
        }
    }
    return 0;
}

int64_t cut_make(Cut *g, uint32_t source, uint32_t sink, bool *side) {
    uint32_t n = g->first.n, *layer = ARENA_NEWN(g->arena, uint32_t, n), *queue = ARENA_NEWN(g->arena, uint32_t, n);
    int64_t total = 0, sent;
    assert(source != sink);
    assert(source < n && sink < n);
    for (find_layers(g, source, layer, queue); layer[sink]; find_layers(g, source, layer, queue)) {
        for (uint32_t i = 0; i < n; i++)
            queue[i] = g->first.at[i];
        while ((sent = send(g, source, sink, CUT_NEVER, layer, queue)))
            total = total + sent < CUT_NEVER ? total + sent : CUT_NEVER;
    }
    for (uint32_t i = 0; i < n; i++)
        side[i] = layer[i] != 0;
    assert(side[source] && !side[sink]);
    return total;
}
