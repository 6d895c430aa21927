// SPDX-License-Identifier: Apache-2.0
// groups.c — from a table of ids to the ranks that meet; see groups.h.
#include "coll/groups.h"

#include <stdio.h>
#include <string.h>

bool grid_ok(uint64_t replicas, uint64_t partitions) {
    return replicas && partitions && replicas <= COMM_RANKS_MAX && partitions <= COMM_RANKS_MAX &&
           replicas * partitions <= COMM_RANKS_MAX;
}

// How many ids there are, and which of them `rank` has.
static uint32_t id_count(GroupMode mode, Grid grid) {
    switch (mode) {
    case GROUP_PARTITION:
        return grid.partitions;
    case GROUP_FLAT:
        return grid_ranks(grid);
    default:
        return grid.replicas;
    }
}

static uint32_t id_of(GroupMode mode, Grid grid, uint32_t rank) {
    switch (mode) {
    case GROUP_PARTITION:
        return grid_partition(grid, rank);
    case GROUP_FLAT:
        return rank;
    default:
        return grid_replica(grid, rank);
    }
}

// The rank an id stands for, seen from `rank`: what the id leaves open is the same as there.
static uint32_t rank_of(GroupMode mode, Grid grid, uint32_t rank, uint32_t id) {
    switch (mode) {
    case GROUP_PARTITION:
        return grid_replica(grid, rank) * grid.partitions + id;
    case GROUP_FLAT:
        return id;
    default:
        return id * grid.partitions + grid_partition(grid, rank);
    }
}

static bool no_such_id(int64_t id, uint32_t count, GroupMode mode, char *why, size_t why_bytes) {
    const char *what = mode == GROUP_FLAT        ? "device"
                       : mode == GROUP_PARTITION ? "partition"
                                                 : "replica";
    snprintf(why, why_bytes, "it names %s %lld, but the program runs on %u %s%s", what,
             (long long)id, count, what, count == 1 ? "" : "s");
    return false;
}

static bool row_has(const Groups *g, uint32_t row, uint32_t id) {
    for (uint32_t i = 0; i < g->cols; i++)
        if (g->ids[(size_t)row * g->cols + i] == id)
            return true;
    return false;
}

// The ids of the group that `rank` is in, -1 left out; -1 as result: they cannot all exist.
static int64_t find_ids(const Groups *g, Grid grid, uint32_t rank, uint32_t *ids, char *why,
                        size_t why_bytes) {
    uint32_t count = id_count(g->mode, grid), mine = id_of(g->mode, grid, rank), n = 0, row = 0;
    if (!g->rows || !g->cols) {
        for (; n < count; n++)
            ids[n] = n;
        return n;
    }
    while (row < g->rows && !row_has(g, row, mine))
        row++;
    bool seen[COMM_RANKS_MAX] = {false};
    for (uint32_t i = 0; row < g->rows && i < g->cols; i++) {
        int64_t id = g->ids[(size_t)row * g->cols + i];
        if (id == -1)
            continue;
        if (id < 0 || id >= count) {
            no_such_id(id, count, g->mode, why, why_bytes);
            return -1;
        }
        if (seen[id]) {
            snprintf(why, why_bytes, "a group names %lld twice", (long long)id);
            return -1;
        }
        seen[id] = true;
        ids[n++] = (uint32_t)id;
    }
    return n;
}

bool groups_members(const Groups *g, Grid grid, uint32_t rank, Members *out, char *why,
                    size_t why_bytes) {
    uint32_t ids[COMM_RANKS_MAX];
    int64_t n = find_ids(g, grid, rank, ids, why, why_bytes);
    out->n = out->mine = 0;
    uint32_t times = g->mode == GROUP_BOTH ? grid.partitions : 1;
    for (uint32_t p = 0; p < times; p++)
        for (int64_t i = 0; i < n; i++)
            out->rank[out->n++] = g->mode == GROUP_BOTH ? ids[i] * grid.partitions + p
                                                        : rank_of(g->mode, grid, rank, ids[i]);
    while (out->mine < out->n && out->rank[out->mine] != rank)
        out->mine++;
    return n >= 0;
}

bool groups_route(const Groups *pairs, Grid grid, uint32_t rank, Route *out, char *why,
                  size_t why_bytes) {
    uint32_t count = id_count(pairs->mode, grid), mine = id_of(pairs->mode, grid, rank);
    enum { SENDS = 1, RECEIVES = 2 };
    uint8_t role[COMM_RANKS_MAX] = {0};
    out->source = out->target = COMM_NONE;
    out->members.n = out->members.mine = 0;
    for (uint32_t i = 0; i < pairs->rows; i++) {
        int64_t from = pairs->ids[2 * (size_t)i], to = pairs->ids[2 * (size_t)i + 1];
        if (from < 0 || from >= count || to < 0 || to >= count)
            return no_such_id(from < 0 || from >= count ? from : to, count, pairs->mode, why,
                              why_bytes);
        if (role[from] & SENDS || role[to] & RECEIVES) {
            snprintf(why, why_bytes, "two pairs have the same %s, %lld",
                     role[from] & SENDS ? "source" : "target",
                     (long long)(role[from] & SENDS ? from : to));
            return false;
        }
        role[from] |= SENDS;
        role[to] |= RECEIVES;
        if (from == mine)
            out->target = rank_of(pairs->mode, grid, rank, (uint32_t)to);
        if (to == mine)
            out->source = rank_of(pairs->mode, grid, rank, (uint32_t)from);
    }
    Members *m = &out->members;
    if (!role[mine])
        return true;
    for (uint32_t id = 0; id < count; id++) {
        if (id == mine)
            m->mine = m->n;
        if (role[id])
            m->rank[m->n++] = rank_of(pairs->mode, grid, rank, id);
    }
    return true;
}
