// SPDX-License-Identifier: Apache-2.0
// cut_test.c — minimum cuts beside all cuts of small random graphs.
#include "pass/cut.h"

#include "tests/unit/unit.h"

#define NODES 9
#define EDGES 24

typedef struct Edge {
    uint32_t from, to;
    int64_t capacity;
} Edge;

static int64_t cost_of(const Edge *e, uint32_t set) { // bits: nodes with the source
    int64_t sum = 0;
    for (int i = 0; i < EDGES; i++)
        if ((set >> e[i].from & 1) && !(set >> e[i].to & 1))
            sum += e[i].capacity;
    return sum;
}

int main(void) {
    uint64_t seed = 1;
    bool right = true;
    for (int round = 0; round < 300; round++) {
        Arena a;
        arena_init(&a, NULL);
        Edge e[EDGES];
        Cut g;
        bool side[NODES];
        uint32_t set = 0;
        cut_init(&g, &a, NODES);
        for (int i = 0; i < EDGES; i++) {
            e[i] = (Edge){rng_below(&seed, NODES), rng_below(&seed, NODES), rng_below(&seed, 32)};
            cut_edge(&g, e[i].from, e[i].to, e[i].capacity);
        }
        int64_t least = INT64_MAX, got = cut_make(&g, 0, 1, side);
        for (uint32_t s = 0; s < 1u << NODES; s++)
            if ((s & 3) == 1 && cost_of(e, s) < least)
                least = cost_of(e, s);
        for (uint32_t i = 0; i < NODES; i++)
            set |= (uint32_t)side[i] << i;
        right = right && got == least && (set & 3) == 1 && cost_of(e, set) == least;
        arena_fini(&a);
    }
    expect(right, "no cut costs less", "one does");
    return failures != 0;
}
