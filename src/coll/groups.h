// SPDX-License-Identifier: Apache-2.0
// groups.h — who takes part in a collective.
//
// A program runs on replicas x partitions devices. A device's rank is replica * partitions +
// partition. A collective lists groups of ids; what an id means depends on the op and its channel:
//
//   GROUP_REPLICA     replica ids; one such group in each partition
//   GROUP_PARTITION   partition ids; one such group in each replica
//   GROUP_BOTH        replica ids crossed with all partitions, partition by partition
//   GROUP_FLAT        ranks
//
// Shorter groups are filled up with -1; no groups at all means one group of everybody.
#ifndef OTRN_COLL_GROUPS_H
#define OTRN_COLL_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMM_RANKS_MAX 1024                 // devices that run one program together
#define PROGRAM_DEVICES_MAX 1048576         // devices a program may be written for: compiled and priced, not run
#define COMM_SEATS_MAX (2 * COMM_RANKS_MAX) // their cores

typedef struct Grid {
    uint32_t replicas, partitions;
} Grid;

static inline uint32_t grid_ranks(Grid g) {
    return g.replicas * g.partitions;
}
static inline uint32_t grid_replica(Grid g, uint32_t rank) {
    return rank / g.partitions;
}
static inline uint32_t grid_partition(Grid g, uint32_t rank) {
    return rank % g.partitions;
}
bool grid_ok(uint64_t replicas, uint64_t partitions); // neither is 0 and they are not too many

typedef enum GroupMode { GROUP_REPLICA, GROUP_PARTITION, GROUP_BOTH, GROUP_FLAT } GroupMode;

typedef struct Groups { // as an op says it; borrows the table
    GroupMode mode;
    const int64_t *ids; // rows of cols
    uint32_t rows, cols;
} Groups;

typedef struct Members { // one device's group: ranks in the group's order
    uint32_t n;          // 0: the device is in no group
    uint32_t mine;       // its own position
    uint32_t rank[COMM_RANKS_MAX];
} Members;

// The group of `rank`. False, with a sentence in why, when that group cannot exist on this grid.
bool groups_members(const Groups *g, Grid grid, uint32_t rank, Members *out, char *why,
                    size_t why_bytes);

// For source and target pairs (rows of 2): everybody named in a pair, in ascending order; what
// `rank` receives comes from `source`, what it sends goes to `target` (COMM_NONE: from or to
// nobody).
#define COMM_NONE UINT32_MAX
typedef struct Route {
    Members members;
    uint32_t source, target;
} Route;
bool groups_route(const Groups *pairs, Grid grid, uint32_t rank, Route *out, char *why,
                  size_t why_bytes);

#endif
