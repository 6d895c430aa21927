// SPDX-License-Identifier: Apache-2.0
// walk.h — what passes share: one forward walk with a replacement table.
//
// A pass visits the ops of a region in order. Before it looks at an op it lets walk_operands replace
// operands by what earlier decisions put in their place; to drop an op it records where its results
// went with walk_replace. Values are defined before they are used, so one walk is enough.
#ifndef OTRN_PASS_WALK_H
#define OTRN_PASS_WALK_H

#include <assert.h>

#include "hlo/query.h"
#include "pass/pass.h"

typedef VEC(OpId) OpList;

typedef struct Walk {
    Hlo *hlo;
    Arena *arena;
    VEC(ValueId) repl; // value -> value that stands for it now
    OpList out;        // what the region in hand will have: walk_push
} Walk;

// Puts the op, what takes its place, or nothing into the list.
typedef void (*WalkVisit)(void *pass, OpId id);
typedef enum WalkDepth { WALK_ALL, WALK_CONTROL } WalkDepth; // rewrite all regions, or those of control flow only

void walk_init(Walk *w, Compile *c);
void walk_grow(Walk *w); // after new values were made
void walk_operands(Walk *w, OpId op);
void walk_region(Walk *w, RegionId r); // walk_operands for every op in it
// A pass over one region at a time: the region, then those of control flow in it as they are then.
typedef void (*WalkRegion)(void *pass, RegionId r);
void walk_regions(const Hlo *h, RegionId r, WalkRegion visit, void *pass);
void walk_rewrite(Walk *w, RegionId r, WalkDepth depth, WalkVisit visit, void *pass); // inner regions first
ValueId walk_push(Walk *w, OpId id); // into the list; its first result
// The value in another form, made where it is not in that form already.
ValueId walk_reshape(Walk *w, LocId loc, ValueId v, int rank, const int64_t *dims);
ValueId walk_convert(Walk *w, LocId loc, ValueId v, int dtype);
ValueId walk_transpose(Walk *w, LocId loc, ValueId v, const int64_t *perm);
ValueId walk_sum(Walk *w, LocId loc, ValueId v, const int64_t *over, uint32_t n, TypeId type); // a reduction of f32 by addition
void walk_set_ops(Hlo *h, RegionId r, const OpList *ops);
void walk_count_uses(const Hlo *h, RegionId r, uint32_t *uses); // adds the reads of each value
static inline void walk_replace(Walk *w, ValueId from, ValueId to) {
    assert(from < w->repl.n && to < w->repl.n);
    w->repl.at[from] = w->repl.at[to];
}

// Where values of one region are found in another, for bodies being put together: a hash table.
typedef struct ValueMap {
    struct { ValueId from, to; } *at;
    uint32_t n, cap; // a power of two
} ValueMap;
ValueId value_map_get(const ValueMap *m, ValueId from); // 0: not there
void value_map_set(Arena *a, ValueMap *m, ValueId from, ValueId to);

void pass_inline(Compile *c);
void pass_formats(Compile *c);
void pass_spmd(Compile *c); // spmd/spmd.c
void pass_layouts(Compile *c);
void pass_shapes(Compile *c);
void pass_quant(Compile *c);
void pass_expand(Compile *c);
void pass_autocast(Compile *c);
void pass_unroll(Compile *c);
void pass_loops(Compile *c);
void pass_remat(Compile *c);
void pass_parts(Compile *c);
void pass_fold(Compile *c);
void pass_cse(Compile *c);
void pass_counters(Compile *c);
void pass_narrow(Compile *c);
void pass_assoc(Compile *c);
void pass_inner(Compile *c);
void pass_turns(Compile *c);
void pass_simplify(Compile *c);
void pass_draws(Compile *c);
void pass_functions(Compile *c);
void pass_places(Compile *c);
void pass_sums(Compile *c);
void pass_dots(Compile *c);
void pass_convs(Compile *c);
void pass_windows(Compile *c);
void pass_dce(Compile *c);
void pass_row_programs(Compile *c);
void pass_row_integers(Compile *c);
void pass_early(Compile *c);
void early_views(Compile *c); // the same of reshapes alone
void pass_scores(Compile *c);
void pass_order(Compile *c);
void pass_buckets(Compile *c);
void buckets_join(Compile *c, bool scatters); // without: those that StableHLO has with several operands
void pass_siblings(Compile *c);
void pass_ahead(Compile *c);
void pass_epilogue(Compile *c);
void pass_fuse(Compile *c);

// Copies a function's body, calls in it inlined, to the end of a region with as many arguments.
void inline_body(Compile *c, const HloFunc *f, RegionId to);
// True when some dimension is unknown, or some op takes a shape as an operand; with to_eval only such ops
// count as the evaluator cannot compute as they are.
bool shapes_needed(const Hlo *h, bool to_eval);

#endif
