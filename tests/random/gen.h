// SPDX-License-Identifier: Apache-2.0
// gen.h — random valid StableHLO programs, as text, from a seed.
//
// A program is made of elementwise ops, movement, reductions, products, sorts, loops and branches over a
// handful of shapes and element types. A float value is exact when every host must compute the same bits
// for it; results of transcendental functions, float sums and products are not, and from there on only move:
// nothing branches on them or rounds them, so a comparison within a tolerance is meaningful. Every fourth seed's program is
// of loops over larger tensors (gen_loops.c), exact all over.
#ifndef OTRN_TESTS_RANDOM_GEN_H
#define OTRN_TESTS_RANDOM_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#define GEN_RANK_MAX 4
#define GEN_ARGS_MAX 8
#define GEN_RESULTS_MAX 16
#define GEN_TEXT_MAX (1u << 20)

typedef struct GenType {
    int dtype, rank;
    int64_t dims[GEN_RANK_MAX];
} GenType;

typedef struct GenValue {
    int name;
    GenType type;
    bool exact;
    int64_t most; // in programs of loops: the largest magnitude of an element
} GenValue;

typedef struct Gen {
    uint64_t rng;
    char *text; // GEN_TEXT_MAX bytes, the caller's
    size_t n;
    int next;
    GenValue *vals; // in scope
    int nvals, cap;
    int depth;
    int counters[2], ncounters; // of the loops around, outermost first
    int carried, ncarried;      // what the innermost loop carries, in vals
    int branches;               // around
    int at[GEN_RANK_MAX];       // where a slice begins
    bool busy;                  // a place asks for data
    bool plain; // the caller's: only what other compilers take too
    int nshapes, ndtypes;
    GenType shapes[6];
    int dtypes[4];
    int nargs;
    GenType args[GEN_ARGS_MAX];
    bool alias[GEN_ARGS_MAX]; // it is given away, with odd seeds for any result, else for result i
    int nresults; // result i < nargs has the type of argument i; then come the values made last
    GenType results[GEN_RESULTS_MAX];
    bool exact[GEN_RESULTS_MAX];
} Gen;

// Makes program number `seed`. `text` stays the caller's; false when there is no memory.
bool gen_program(Gen *g, uint64_t seed);
bool gen_is_loops(uint64_t seed);
void gen_fini(Gen *g);
uint32_t gen_rnd(Gen *g, uint32_t below);
int64_t gen_elems(const GenType *t);
void gen_fill(Gen *g, const GenType *t, void *data, bool whole); // small values of any kind the type has, or whole numbers

#endif
