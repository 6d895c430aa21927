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
#include "hlo/users.h"
#include "pass/pass.h"

typedef VEC(OpId) OpList;
typedef VEC(ValueId) Values;
static inline bool values_have(const Values *list, ValueId v) {
    bool found = false;
    for (uint32_t i = 0; i < list->n && !found; i++)
        found = list->at[i] == v;
    return found;
}

typedef struct Walk {
    Compile *c;
    Hlo *hlo;
    Arena *arena; // the scratch one
    VEC(ValueId) repl; // value -> value that stands for it now
    OpList out;        // what the region in hand will have: walk_push
    OpId id;           // the op in hand
    LocId loc;         // … its place, which what is made for it gets
    const struct Rule *rules; // what rules_walk tries
    enum { WALK_ALL, WALK_CONTROL } depth; // … in all regions, or those of control flow only
    bool any; // … also on ops with values that are no plain tensors, or empty, or none
    void (*replaced)(struct Walk *w, ValueId from, ValueId to); // … told of what a rule replaced; may be NULL
    uint32_t *uses, nuses; // value -> reads in main before the pass, where walk_note_uses asked, and of as many made since as have room
} Walk;

// Puts the op, what takes its place, or nothing into the list.
typedef void (*WalkVisit)(void *pass, OpId id);

void walk_init(Walk *w, Compile *c);
void walk_grow(Walk *w); // after new values were made
void walk_operands(Walk *w, OpId op);
void walk_region(Walk *w, RegionId r); // walk_operands for every op in it
// A pass over one region at a time: the region, then those of control flow in it as they are then.
typedef void (*WalkRegion)(void *pass, RegionId r);
void walk_regions(const Hlo *h, RegionId r, WalkRegion visit, void *pass);
// Looks at op after op, and in the regions of control flow behind each, until one is found.
typedef bool (*WalkFind)(void *pass, RegionId r, uint32_t at);
bool walk_find(const Hlo *h, RegionId r, WalkFind found, void *pass);
static inline void walk_list(Arena *a, const Hlo *h, RegionId r, OpList *out) { // its ops, to look at while it changes
    for (uint32_t i = 0; i < h->regions.at[r].ops.n; i++)
        VEC_PUSH(a, out, h->regions.at[r].ops.at[i]);
}
void walk_rewrite(Walk *w, RegionId r, WalkVisit visit, void *pass); // inner regions first, as deep as w->depth says
ValueId walk_push(Walk *w, OpId id); // into the list; its first result
ValueId walk_push_to(Walk *w, OpList *ops, OpId id); // into another
// A new region is filled: what is made between the two goes there, then a return of these values. The list that was in hand is kept for the end.
OpList walk_region_begin(Walk *w);
void walk_region_end(Walk *w, RegionId r, OpList outer, const ValueId *results, uint32_t n);
// What passes make most, at the place of the op in hand: into the list, and its result.
ValueId walk_op(Walk *w, HloOpcode code, uint32_t n, const ValueId *in, TypeId type);
ValueId walk_unary(Walk *w, HloOpcode code, ValueId x);              // results have the type of x
ValueId walk_binary(Walk *w, HloOpcode code, ValueId x, ValueId y);
ValueId walk_select(Walk *w, ValueId p, ValueId x, ValueId y);
ValueId walk_number(Walk *w, TypeId type, double v);                 // the same everywhere
ValueId walk_iota(Walk *w, TypeId type, int64_t dim);
ValueId walk_compare(Walk *w, int64_t direction, int64_t kind, ValueId x, ValueId y); // CMP_, CMPT_
ValueId walk_broadcast(Walk *w, ValueId v, const int64_t *dims, uint32_t n, TypeId type);
ValueId walk_pad(Walk *w, ValueId v, ValueId with, const int64_t *low, const int64_t *high, const int64_t *inner, TypeId type);
ValueId walk_piece(Walk *w, ValueId v, const int64_t *from, TypeId type); // of the type, which begins there
ValueId walk_reduce(Walk *w, HloOpcode code, ValueId v, ValueId init, const int64_t *over, uint32_t n, TypeId type);
ValueId walk_sum(Walk *w, ValueId v, const int64_t *over, uint32_t n, TypeId type);
// The value in another form, made where it is not in that form already.
ValueId walk_shape(Walk *w, ValueId v, TypeId type);
ValueId walk_reshape(Walk *w, ValueId v, int rank, const int64_t *dims);
ValueId walk_convert(Walk *w, ValueId v, int dtype);
ValueId walk_transpose(Walk *w, ValueId v, const int64_t *perm);
void walk_first_reads(const Hlo *h, const HloOp *op, uint32_t place, uint32_t *first); // per value the least place of who reads it, here or in a region
void walk_set_ops(Hlo *h, RegionId r, const OpList *ops);
void walk_note_uses(Walk *w, uint32_t room);
static inline uint32_t walk_uses(const Walk *w, ValueId v) { return v < w->nuses ? w->uses[v] : 0; } // 0 of values made since
static inline void walk_set_uses(Walk *w, ValueId v, uint32_t n) { // … unless a pass knows better
    if (v < w->nuses)
        w->uses[v] = n;
}
static inline void walk_replace(Walk *w, ValueId from, ValueId to) {
    assert(from < w->repl.n && to < w->repl.n);
    w->repl.at[from] = w->repl.at[to];
}

// Each of rank dimensions once.
static inline bool walk_is_permutation(const int64_t *perm, int rank) {
    uint64_t seen = 0;
    for (int i = 0; i < rank; i++)
        seen |= perm[i] >= 0 && perm[i] < rank ? UINT64_C(1) << perm[i] : 0;
    return seen + 1 == UINT64_C(1) << rank;
}

// Where values of one region are found in another, for bodies being put together: a hash table.
typedef struct ValueMap {
    struct { ValueId from, to; } *at;
    uint32_t n, cap; // a power of two
} ValueMap;
ValueId value_map_get(const ValueMap *m, ValueId from); // 0: not there
static inline ValueId value_map_or_same(const ValueMap *m, ValueId from) { return value_map_get(m, from) ? value_map_get(m, from) : from; }
void value_map_set(Arena *a, ValueMap *m, ValueId from, ValueId to);
OpId value_map_copy(Hlo *h, Arena *a, const ValueMap *m, const HloOp *op); // with the operands as they are found; of an op with one result and no region

// Operations without regions, or plain reductions, that give the same of the same operands; equal: they have those.
bool cse_alike(const Hlo *h, const HloOp *a, const HloOp *b);
bool cse_equal(const Hlo *h, const HloOp *a, const HloOp *b);
void early_again(Compile *c); // the same behind pass_epilogue, which has put programs in their places
void buckets_join(Compile *c, bool scatters); // without: those that StableHLO has with several operands

// Copies a function's body, calls in it inlined, to the end of a region with as many arguments, or more.
void inline_body(Compile *c, const HloFunc *f, RegionId to);
// True when some dimension is unknown, or some op takes a shape as an operand; with to_eval only such ops
// count as the evaluator cannot compute as they are.
bool shapes_needed(const Hlo *h, bool to_eval);

#endif
