// SPDX-License-Identifier: Apache-2.0
// shard.h — how a tensor lies on the devices of a program: which part of each dimension a device has.
//
// Meshes, named axes and parts of axes are only ways to say this; once read they are gone. Which part of a dimension a device has is
// a number with a few digits, each a digit of the device's own number: a cut over 100,000 devices is as small as one over eight, and
// cuts are joined, taken apart and compared digit by digit.
#ifndef OTRN_SPMD_SHARD_H
#define OTRN_SPMD_SHARD_H

#include <assert.h>

#include "coll/groups.h"
#include "hlo/hlo.h"

#define SHARD_DEVICES_MAX PROGRAM_DEVICES_MAX

// How the terms of an unreduced tensor become its value.
typedef enum ShardCombine { SHARD_ADD, SHARD_MAX, SHARD_MIN } ShardCombine;

typedef struct Digit { // of a device's number d: position[d] / stride % count
    uint32_t stride, count;
    const uint32_t *position; // where the mesh has it; NULL: at d
} Digit;

// How one dimension (or the terms) lies: the part of each device. parts 1: whole, without digits. Digits that are one in the device's
// number too are one, so the same cut has the same digits, but for positions.
typedef struct Cut {
    int64_t parts;
    const Digit *digits; // the last fastest; shared
    uint32_t n;
} Cut;
#define CUT_WHOLE ((Cut){.parts = 1})

// Terms are one more dimension behind the others, number `rank`: cut[rank].parts devices have terms that are
// still to be combined (1: values are what they say), and cut says which of them a device has.
typedef struct Shards {
    uint32_t rank, devices;
    ShardCombine combine; // of terms
    uint32_t open;        // bits: dimensions that may be cut further; only of what was read
    Cut cut[];            // of each dimension, and of the terms
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
AxisSet shard_parse_axes(const ShardRead *r, const char *text); // "#sdy<manual_axes{"x", "y"}>"

const Shards *shard_whole(Arena *a, uint32_t rank, uint32_t devices); // every device has all of it
uint32_t shard_index(const Shards *s, uint32_t dim, uint32_t device); // the part it has
bool shard_is_whole(const Shards *s);
bool shard_same(const Shards *a, const Shards *b);
bool shard_has_terms(const Shards *s);
// "2,1+2|0,1,2,3": parts of each dimension, then terms if any, then the devices by part, copies of one
// part one after the other, the terms of a copy together; "" when whole. This is what an artifact keeps.
const char *shard_text(const Shards *s, Arena *a);
// Devices that together have a dimension whole (or all terms) and agree in all others, in the order of its parts:
// as many rows of cut[dim].parts as there are. Raises UNSUPPORTED when the table has no such groups.
const int64_t *shard_groups(const ShardRead *r, const Shards *s, uint32_t dim);
// Devices by what they have, ascending among those that have the same.
const uint32_t *shard_order(const ShardRead *r, const Shards *s);

Cut shard_cut(const Shards *s, uint32_t dim);
bool shard_cut_same(Cut a, Cut b, uint32_t devices);
// Is every combination of parts with the same number of devices? Else the cuts do not go together.
bool shard_cuts_fit(Arena *a, const Cut *cuts, uint32_t n, uint32_t devices);
// Of the cuts of each dimension; terms may have parts 0 or 1 for none.
const Shards *shard_make(Arena *a, uint32_t rank, uint32_t devices, const Cut *cuts, Cut terms, ShardCombine combine);
const Shards *shard_without_terms(const Shards *s, Arena *a);
// Both at once, the second faster.
Cut shard_cut_both(Arena *a, Cut x, Cut y, uint32_t devices);
// Taken apart again: `inner` with this many parts is the faster. False: its digits cannot be.
bool shard_cut_split(Arena *a, Cut c, int64_t inner_parts, Cut *outer, Cut *inner);

#endif
