// SPDX-License-Identifier: Apache-2.0
// pass.c — the list of graph passes.
#include "pass/pass.h"

#include "hlo/quant.h"
#include "pass/expand.h"
#include "pass/rules.h"

// The rewrite is the operations' definition and lives with the graph.
void pass_quant(Compile *c) { hlo_lower_quant(c->hlo, c->scratch); }

#define ROW(name, fn, needed, rules, purpose) {name, fn, purpose, needed, rules},
const PassRow pass_rows[] = {PASSES(ROW, ROW)};
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
    pass_quant(c);
    bool rare = expand_needed(c->hlo);
    for (uint32_t i = 0; rare && i < c->hlo->funcs.n; i++) // those that devices run by themselves too
        if (c->hlo->funcs.at[i].body)
            expand_body(c, c->hlo->funcs.at[i].body);
}

bool pass_rewrites(HloOpcode code) { return hlo_op_rows[code].traits & OT_REWRITTEN; }
