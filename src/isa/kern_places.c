// SPDX-License-Identifier: Apache-2.0
// kern_places.c — how a collective's groups lie over chips and machines.
//
// Ids are devices in the order of their places: those of a chip follow each other, so do the chips of a machine. Groups of a mesh
// are alike but for where they begin: what the first one meets in its first block stands for all. Programs over both replicas and
// partitions do not say how theirs lie.
#include "hlo/coll.h"
#include "isa/kern.h"

// Blocks of `per` devices that one group reaches into. Ids mostly ascend: then a block that begins is a new one.
static uint32_t blocks_of(const int64_t *ids, uint32_t n, uint32_t per) {
    uint32_t blocks = 0;
    int64_t last = -1;
    bool ascends = true;
    for (uint32_t i = 0; i < n && ascends; i++) {
        if (ids[i] < 0)
            continue;
        ascends = ids[i] / per >= last;
        blocks += ids[i] / per > last;
        last = ids[i] / per;
    }
    if (ascends)
        return blocks;
    uint64_t seen[PROGRAM_DEVICES_MAX / 64] = {0}; // a bit for each block
    blocks = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t block = ids[i] / per;
        if (ids[i] < 0 || block >= PROGRAM_DEVICES_MAX) // nobody has so many machines
            continue;
        uint64_t bit = (uint64_t)1 << block % 64, *at = &seen[block / 64];
        blocks += !(*at & bit);
        *at |= bit;
    }
    return blocks;
}

// A group's devices in a block.
static uint32_t inside(const int64_t *ids, uint32_t n, uint32_t per, int64_t block) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++)
        found += ids[i] >= 0 && ids[i] / per == block;
    return found;
}

static void places_at(const Groups *g, bool pairs, uint32_t per, KPlaces *out, int level) {
    int64_t first = g->ids[0] / per;
    for (uint32_t r = 0; r < g->rows; r++) {
        const int64_t *row = &g->ids[(size_t)r * g->cols];
        uint32_t blocks = blocks_of(row, g->cols, per);
        if (blocks > out->at[level].blocks)
            out->at[level].blocks = blocks;
        uint32_t here = blocks > 1 ? inside(row, pairs ? 1 : g->cols, per, first) : 0;
        out->at[level].leaving += here > 0;
        out->at[level].crowd += here;
    }
}

static void places_chips(const Groups *g, uint32_t per_chip, uint32_t machine, KPlaces *out) {
    int64_t first = g->ids[0] / per_chip / machine;
    for (uint32_t i = 0; i < g->cols; i++) {
        int64_t chip = g->ids[i] / per_chip;
        if (g->ids[i] >= 0 && chip / machine == first)
            out->chips[chip % machine / 64] |= (uint64_t)1 << chip % machine % 64;
    }
}

void kern_places(const Kern *k, const uint32_t per[KPLACE_MAX], uint32_t machine, KPlaces *out) {
    Groups g = {0};
    *out = (KPlaces){0};
    if (hlo_op_rows[k->op].cls == HC_COLL)
        coll_groups((HloOpcode)k->op, k->attrs, &g);
    for (int i = 0; i < KPLACE_MAX; i++)
        out->at[i].blocks = 1;
    if (!g.rows || !g.cols || g.ids[0] < 0)
        return;
    out->ranks = g.cols, out->rows = g.rows;
    for (int i = 0; i < KPLACE_MAX; i++)
        if (i && per[i] == per[i - 1])
            out->at[i] = out->at[i - 1];
        else
            places_at(&g, k->op == HLO_COLLECTIVE_PERMUTE, per[i], out, i);
    places_chips(&g, per[0], machine < KPLACE_CHIPS ? machine : KPLACE_CHIPS, out);
}
