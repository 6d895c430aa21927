// SPDX-License-Identifier: Apache-2.0
// pass.h — the pass list is the architecture: name, function, one-line purpose, in order.
#ifndef OTRN_PASS_PASS_H
#define OTRN_PASS_PASS_H

#include "pass/compile.h"

typedef void PassFn(Compile *c);
typedef struct PassRow {
    const char *name;
    PassFn *fn;
    const char *purpose;
    bool needed; // there are programs that cannot be lowered without it
    const struct Rule *rules; // what it tries on every op (pass/rules.h); fn NULL: and that is all it does
} PassRow;
// All of them in their order: name, function, whether some program cannot be lowered without it, what it tries on every op (pass/rules.h), purpose.
// F: with a function of its own; R: its rules are all it does.
#define PASSES(F, R) \
    F("inline", pass_inline, true, NULL, "put callees and composites into the entry, drop casts and tuples") \
    F("formats", pass_formats, true, NULL, "decide in which order arguments and results lie that leave it open") \
    F("picks", pass_picks, false, picks_rules, "let losses pick and place one score a row without a tensor of scores") \
    F("spmd", pass_spmd, true, NULL, "cut tensors into the parts devices have, let parts meet where needed") \
    F("layouts", pass_layouts, true, NULL, "take arguments and give results in the order they lie in memory") \
    F("shapes", pass_shapes, true, NULL, "give every dimension its size, now that the arguments' shapes are known") \
    F("quant", pass_quant, true, NULL, "write operations on quantised tensors as integer and float operations") \
    F("expand", pass_expand, true, expand_rules, "write rare operations with common ones") \
    F("autocast", pass_autocast, false, autocast_rules, "compute in narrower types where the options say so") \
    R("unroll", NULL, false, unroll_rules, "short loops of elementwise work in one piece") \
    F("loops", pass_loops, false, NULL, "let loops carry only what changes, and make inside them what costs nothing") \
    R("parts", NULL, false, parts_rules, "compute with large complex tensors by real and imaginary parts") \
    R("fold", NULL, false, fold_rules, "evaluate exact operations on constants, keep splats small") \
    F("branches", pass_branches, false, branches_rules, "take selects by a condition out of a branch where it is known") \
    F("factors", pass_factors, false, factors_rules, "scale sums over rows, not what is summed") \
    F("halves", pass_halves, false, halves_rules, "exchange halves of rows, as rotary positions do, in one form") \
    F("cse", pass_cse, false, NULL, "compute equal operations once") \
    R("counters", NULL, false, counters_rules, "count elements in 32 bits") \
    R("narrow", NULL, false, narrow_rules, "do elementwise work before its operands are broadcast") \
    R("draws", NULL, false, draws_rules, "ask of random bits, not of the numbers made of them, whether they are below a bound") \
    F("pieces", pass_pieces, false, NULL, "convert small pieces that a loop reads all at once, before it") \
    F("stacks", pass_stacks, false, NULL, "do elementwise work on what a loop stacks up in the loop, piece by piece") \
    F("remat", pass_remat, false, NULL, "compute again in a loop what costs less than a stack another loop keeps for it") \
    F("assoc", pass_assoc, false, assoc_rules, "take sums of a product's rows from another product that has them") \
    R("inner", NULL, false, inner_rules, "write inner products as elementwise products and sums along rows, convolutions by patches as products") \
    F("turns", pass_turns, false, turns_rules, "put the transposes around products where they move least") \
    F("simplify", pass_simplify, false, simplify_rules, "drop movement and arithmetic that change nothing") \
    R("functions", NULL, false, functions_rules, "write functions the engines lack with those they have") \
    R("places", NULL, false, places_rules, "write argmax and argmin along rows with reductions the engines do") \
    F("sums", pass_sums, false, sums_rules, "write reductions across rows as products with ones, or in two steps") \
    F("dots", pass_dots, false, dots_rules, "bring matrix products into the form the tensor engine takes") \
    R("convs", NULL, false, convs_rules, "bring convolutions into the form the tensor engine takes") \
    R("windows", NULL, false, windows_rules, "bring pooling into the form the vector engine takes") \
    F("dce", pass_dce, false, NULL, "drop what nothing uses") \
    F("sooner", pass_sooner, false, NULL, "let small sums over devices of what is known from the start meet before somebody waits for them") \
    F("rows", pass_row_programs, false, NULL, "join elementwise work and reductions along rows into programs for the engines") \
    F("join", pass_row_join, false, NULL, "let row programs that read the same rows be one") \
    F("early", pass_early, false, NULL, "let what products need beside rows be there when the rows are made") \
    F("scores", pass_scores, false, NULL, "compute scores of attention again where its gradients need them, so that they stay on the chip") \
    F("distribute", pass_distribute, false, NULL, "choose once what dropout chooses in a softmax's gradient") \
    F("guards", pass_guards, false, NULL, "let masks of a finite number be masks of -inf where the run finds that scores are far above it") \
    F("order", pass_order, false, NULL, "put products that nobody waits for behind those that somebody does") \
    F("buckets", pass_buckets, false, NULL, "join collectives over the same devices where nobody waits longer for them") \
    F("integers", pass_row_integers, false, NULL, "join long chains of integer operations, as random numbers are, into programs for the engines") \
    F("fuse", pass_fuse, false, NULL, "join elementwise operations so that what is between them stays out of memory, and small kernels side by side") \
    F("hoist", pass_hoist, false, NULL, "make before a loop what is the same in all its iterations") \
    F("copies", pass_copies, false, NULL, "let row programs store what a loop stacks up as it was carried in") \
    F("ahead", pass_ahead, false, NULL, "make random numbers, and numbers known from the start, before somebody waits for them") \
    F("epilogue", pass_epilogue, false, NULL, "let row programs take the tiles of products where these leave the tensor engine")
#define PASS_DECLARED(name, fn, ...) PassFn fn;
#define PASS_OF_RULES(...)
PASSES(PASS_DECLARED, PASS_OF_RULES)
void pass_run(const PassRow *row, Compile *c);
// Gives the entry's arguments of unknown size the types of what will be passed; false when there are no
// such arguments, and nothing changes. values (NULL, or NULL where not wanted) makes integer scalars
// constants.
void pass_bind_results(Hlo *h, HloFunc *f); // it says of its results what they are now
bool pass_bind(Hlo *h, const otrn_type *types, const void *const *values, size_t n);
// What a graph needs before it has a meaning the evaluator can compute: sizes for all dimensions and no
// quantised types. The passes of a compile do the same; a plain graph stays as it is.
void pass_settle(Compile *c);

// A custom call that somebody outside cuts into the work of each device. `ask` is told how its values should lie ("" or as
// an artifact tells a sharding) and answers in the same struct, in memory of the arena given; it may raise.
typedef struct CustomCall {
    const char *target, *config;
    size_t config_bytes;
    Place place;
    uint32_t devices, nargs, nresults;
    const struct HloType *const *types; // arguments, then results: whole
    const char **shardings;             // of each; answered
    const void *program;                // answered: StableHLO, what a device does with its parts
    size_t program_bytes;
} CustomCall;
typedef struct CustomAsk {
    bool (*knows)(void *arg, const char *target);
    void (*ask)(void *arg, Ctx *ctx, Arena *a, CustomCall *call);
    void *arg;
} CustomAsk;
// Replaces such calls of a program without other calls; false when there were none (spmd/custom.c).
bool spmd_custom(Compile *c, const CustomAsk *who);

uint32_t spmd_partitions(const Hlo *h); // devices the module is written for (spmd/spmd.c)
// Does it make one operation of several, which then have one place in the user's program?
bool pass_joins(const PassRow *row);
// True for ops that the passes write as others, so that nothing behind them meets one.
bool pass_rewrites(HloOpcode code);

extern const PassRow pass_rows[];
extern const int pass_count;

#endif
