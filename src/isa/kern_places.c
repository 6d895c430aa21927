// SPDX-License-Identifier: Apache-2.0
// kern_places.c — how a collective's groups lie over chips and machines.
//
// Ids are devices in the order of their places: those of a chip follow each other, so do the chips of a machine. Groups of a mesh
// are alike but for where they begin: what the first one meets in its first block stands for all. Programs over both replicas and
// partitions do not say how theirs lie.
#include "coll/shape.h"
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

// Of groups that are all alike and name every device once, the first is looked at and the others are counted.
static void places_alike(const Groups *g, uint32_t per, KPlaces *out, int level) {
    uint32_t n = g->rows * g->cols; // from device 0 on
    out->at[level].blocks = blocks_of(g->ids, g->cols, per);
    if (out->at[level].blocks == 1)
        return;
    out->at[level].crowd = n < per ? n : per;
    out->at[level].leaving = out->at[level].crowd / inside(g->ids, g->cols, per, 0);
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

static bool fits(uint32_t block, int64_t step) { return block == UINT32_MAX || !(block % step) || !(step % block); }

// A row's way in the dimension that rows end in the midst of; 1: they end with one.
static int64_t row_step(const IdShape *s, uint32_t cols) {
    for (uint32_t d = s->dims; d-- > 0; cols /= s->dim[d].count)
        if (cols < s->dim[d].count)
            return cols * s->dim[d].stride;
    return 1;
}

// The groups are a grid of all devices whose steps fit the blocks: none lies across a border that others do not.
static bool is_alike(const Groups *g, bool pairs, const uint32_t per[KPLACE_MAX]) {
    IdShape s;
    if (pairs || g->ids[0] || !shape_of(g->ids, g->rows * g->cols, &s) || !shape_is_whole(&s))
        return false;
    for (uint32_t d = 0; d < s.dims; d++)
        for (int i = 0; i < KPLACE_MAX; i++)
            if (!fits(per[i], s.dim[d].stride) || !fits(per[i], row_step(&s, g->cols)))
                return false;
    return true;
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
    bool pairs = k->op == HLO_COLLECTIVE_PERMUTE, alike = is_alike(&g, pairs, per);
    out->ranks = g.cols, out->rows = g.rows;
    for (int i = 0; i < KPLACE_MAX; i++)
        if (i && per[i] == per[i - 1])
            out->at[i] = out->at[i - 1];
        else if (alike)
            places_alike(&g, per[i], out, i);
        else
            places_at(&g, pairs, per[i], out, i);
    places_chips(&g, per[0], machine < KPLACE_CHIPS ? machine : KPLACE_CHIPS, out);
}
