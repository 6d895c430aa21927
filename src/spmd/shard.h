// SPDX-License-Identifier: Apache-2.0
// shard.h — how a tensor lies on the devices of a program: which part of each dimension a device has.
//
// Meshes, named axes and parts of axes are only ways to say this; once read they are gone. Two
// shardings are the same when their tables are.
#ifndef OTRN_SPMD_SHARD_H
#define OTRN_SPMD_SHARD_H

#include "hlo/hlo.h"

#define SHARD_DEVICES_MAX 1024u

typedef struct Shards {
    uint32_t rank, devices;
    int64_t parts[OTRN_MAX_RANK]; // of each dimension, 1 when whole
    const uint32_t *index;        // [dimension * devices + device]: the part it has
    bool unreduced;               // the devices' values are still to be added
} Shards;

// Axis names, as the program writes them.
typedef struct AxisSet {
    uint32_t n;
    const char *const *names;
} AxisSet;

// What is being read, for messages: op 0 means the entry's signature.
typedef struct ShardRead {
    Hlo *h;
    Arena *arena;
    OpId op;
    uint32_t devices;
    const AxisSet *only; // axes that count; NULL: all
} ShardRead;

// "#sdy.sharding<@mesh, [{"x"}, {}]>" for a tensor of this rank. Raises PARSE or UNSUPPORTED.
const Shards *shard_parse(const ShardRead *r, const char *text, uint32_t rank);
// "#sdy.sharding_per_value<[<…>, <…>]>" for values of these ranks.
const Shards **shard_parse_list(const ShardRead *r, const char *text, uint32_t n, const uint32_t *ranks);
AxisSet shard_parse_axes(const ShardRead *r, const char *text); // "#sdy.manual_axes<{"x", "y"}>"

const Shards *shard_whole(Arena *a, uint32_t rank, uint32_t devices); // every device has all of it
bool shard_is_whole(const Shards *s);
bool shard_same(const Shards *a, const Shards *b);
// "2,1|0,1,2,3": parts of each dimension, then the devices by part, those with the same part one
// after the other; "" when whole. This is what an artifact keeps.
const char *shard_text(const Shards *s, Arena *a);
// Devices that together have a dimension whole and agree in all others, in the order of its parts:
// devices / parts[dim] rows of parts[dim]. Raises UNSUPPORTED when the table has no such groups.
const int64_t *shard_groups(const ShardRead *r, const Shards *s, uint32_t dim);

#endif
