// SPDX-License-Identifier: Apache-2.0
// pass.c — the list of graph passes.
#include "pass/pass.h"

#include "hlo/quant.h"
#include "pass/expand.h"
#include "pass/rules.h"

// The rewrite is the operations' definition and lives with the graph.
static void quant(Compile *c) { hlo_lower_quant(c->hlo, c->scratch); }

const PassRow pass_rows[] = {
    {"inline", pass_inline, "put callees and composites into the entry, drop casts and tuples", true, NULL},
    {"formats", pass_formats, "decide in which order arguments and results lie that leave it open", true, NULL},
    {"picks", pass_picks, "let losses pick and place one score a row without a tensor of scores", false, picks_rules},
    {"spmd", pass_spmd, "cut tensors into the parts devices have, let parts meet where needed", true, NULL},
    {"layouts", pass_layouts, "take arguments and give results in the order they lie in memory", true, NULL},
    {"shapes", pass_shapes, "give every dimension its size, now that the arguments' shapes are known", true, NULL},
    {"quant", quant, "write operations on quantised tensors as integer and float operations", true, NULL},
    {"expand", pass_expand, "write rare operations with common ones", true, expand_rules},
    {"autocast", pass_autocast, "compute in narrower types where the options say so", false, autocast_rules},
    {"unroll", NULL, "short loops of elementwise work in one piece", false, unroll_rules},
    {"loops", pass_loops, "let loops carry only what changes, and make inside them what costs nothing", false, NULL},
    {"parts", NULL, "compute with large complex tensors by real and imaginary parts", false, parts_rules},
    {"fold", NULL, "evaluate exact operations on constants, keep splats small", false, fold_rules},
    {"branches", pass_branches, "take selects by a condition out of a branch where it is known", false, branches_rules},
    {"factors", pass_factors, "scale sums over rows, not what is summed", false, factors_rules},
    {"cse", pass_cse, "compute equal operations once", false, NULL},
    {"counters", NULL, "count elements in 32 bits", false, counters_rules},
    {"narrow", NULL, "do elementwise work before its operands are broadcast", false, narrow_rules},
    {"draws", NULL, "ask of random bits, not of the numbers made of them, whether they are below a bound", false, draws_rules},
    {"pieces", pass_pieces, "convert small pieces that a loop reads all at once, before it", false, NULL},
    {"stacks", pass_stacks, "do elementwise work on what a loop stacks up in the loop, piece by piece", false, NULL},
    {"remat", pass_remat, "compute again in a loop what costs less than a stack another loop keeps for it", false, NULL},
    {"assoc", pass_assoc, "take sums of a product's rows from another product that has them", false, assoc_rules},
    {"inner", NULL, "write inner products as elementwise products and sums along rows", false, inner_rules},
    {"turns", pass_turns, "put the transposes around products where they move least", false, turns_rules},
    {"simplify", pass_simplify, "drop movement and arithmetic that change nothing", false, simplify_rules},
    {"functions", NULL, "write functions the engines lack with those they have", false, functions_rules},
    {"places", NULL, "write argmax and argmin along rows with reductions the engines do", false, places_rules},
    {"sums", pass_sums, "write reductions across rows as products with ones, or in two steps", false, sums_rules},
    {"dots", NULL, "bring matrix products into the form the tensor engine takes", false, dots_rules},
    {"convs", NULL, "bring convolutions into the form the tensor engine takes", false, convs_rules},
    {"windows", NULL, "bring pooling into the form the vector engine takes", false, windows_rules},
    {"dce", pass_dce, "drop what nothing uses", false, NULL},
    {"sooner", pass_sooner, "let small sums over devices of what is known from the start meet before somebody waits for them", false, NULL},
    {"rows", pass_row_programs, "join elementwise work and reductions along rows into programs for the engines", false, NULL},
    {"join", pass_row_join, "let row programs that read the same rows be one", false, NULL},
    {"early", pass_early, "let what products need beside rows be there when the rows are made", false, NULL},
    {"scores", pass_scores, "compute scores of attention again where its gradients need them, so that they stay on the chip", false, NULL},
    {"distribute", pass_distribute, "choose once what dropout chooses in a softmax's gradient", false, NULL},
    {"guards", pass_guards, "let masks of a finite number be masks of -inf where the run finds that scores are far above it", false, NULL},
    {"order", pass_order, "put products that nobody waits for behind those that somebody does", false, NULL},
    {"buckets", pass_buckets, "join collectives over the same devices where nobody waits longer for them", false, NULL},
    {"integers", pass_row_integers, "join long chains of integer operations, as random numbers are, into programs for the engines", false, NULL},
    {"fuse", pass_fuse, "join elementwise operations so that what is between them stays out of memory, and small kernels side by side", false, NULL},
    {"hoist", pass_hoist, "make before a loop what is the same in all its iterations", false, NULL},
    {"copies", pass_copies, "let row programs store what a loop stacks up as it was carried in", false, NULL},
    {"ahead", pass_ahead, "make random numbers, and numbers known from the start, before somebody waits for them", false, NULL},
    {"epilogue", pass_epilogue, "let row programs take the tiles of products where these leave the tensor engine", false, NULL},
};
const int pass_count = sizeof pass_rows / sizeof *pass_rows;

void pass_run(const PassRow *row, Compile *c) {
    assert(row->fn || row->rules);
    assert(c->hlo && c->scratch);
    if (row->fn) {
        row->fn(c);
        return;
    }
    Walk w;
    walk_init(&w, c);
    rules_walk(&w, row->rules);
}

bool pass_joins(const PassRow *row) { return row->fn == pass_row_programs || row->fn == pass_row_integers || row->fn == pass_fuse; }

void pass_settle(Compile *c) {
    expand_groups(c);
    if (shapes_needed(c->hlo, true)) {
        pass_inline(c);
        pass_shapes(c);
    }
    quant(c);
    bool rare = expand_needed(c->hlo);
    for (uint32_t i = 0; rare && i < c->hlo->funcs.n; i++) // those that devices run by themselves too
        if (c->hlo->funcs.at[i].body)
            expand_body(c, c->hlo->funcs.at[i].body);
}

bool pass_rewrites(HloOpcode code) { return hlo_op_rows[code].traits & OT_REWRITTEN; }
