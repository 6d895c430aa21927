// SPDX-License-Identifier: Apache-2.0
// gen.h — random valid StableHLO programs, as text, from a seed.
//
// A program is made of elementwise ops, movement, reductions, products, sorts, loops and branches over a
// handful of shapes and element types. A float value is exact when every host must compute the same bits
// for it; results of transcendental functions, float sums and products are not, and from there on only move:
// nothing branches on them or rounds them, so a comparison within a tolerance is meaningful.
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
} GenValue;

typedef struct Gen {
    uint64_t rng;
    char *text; // GEN_TEXT_MAX bytes, the caller's
    size_t n;
    int next;
    GenValue *vals; // in scope
    int nvals, cap;
    int depth;
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
void gen_fini(Gen *g);
uint32_t gen_rnd(Gen *g, uint32_t below);
int64_t gen_elems(const GenType *t);
void gen_fill(Gen *g, const GenType *t, void *data); // small values of any kind the type has

#endif
