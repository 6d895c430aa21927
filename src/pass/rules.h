// SPDX-License-Identifier: Apache-2.0
// rules.h — rewriting as rows: which operation, what becomes of it, and what that leaves of the program's numbers.
//
// A pass that looks at one operation at a time is a table of such rows, the `rules` of its row in pass.c; one driver tries them. `otrn info rules` lists all.
#ifndef OTRN_PASS_RULES_H
#define OTRN_PASS_RULES_H

#include "pass/walk.h"

typedef enum RuleKeeps {
    RULE_EXACT, // every bit; a NaN is a NaN
    RULE_ZERO,  // … but the sign of a zero
    RULE_RANGE, // … as long as no product on the way is subnormal or too large
    RULE_ORDER, // the same terms, summed in another order
    RULE_TWICE, // rounded twice where something is added
    RULE_ASKED, // rounded to the type that the options, or the product's algorithm, ask for
    RULE_CLOSE, // within a few units of the last place, or 2e-7, absolutely
    RULE_LESS,  // … and not rounded to a narrower type on the way
    RULE_KEEPS_COUNT
} RuleKeeps;

// What stands for the op's first result, made before it where need be; 0: the op stays, changed perhaps. Operands and results are plain tensors,
// results have elements, unless the walk says `any`. Whoever rewrites an op with more results replaces the others. `op` is a copy of w->id.
typedef ValueId RuleFn(Walk *w, const HloOp *op);
typedef struct Rule {
    const char *name; // what becomes what
    uint16_t code;    // of the op it looks at; HLO_NONE: any
    uint8_t keeps;    // RuleKeeps
    RuleFn *to;       // NULL ends a table
} Rule;

extern const char *const rule_keeps_text[RULE_KEEPS_COUNT];
// Tries the rules on every op of a region, inner regions first; of rules for the same op the first that applies.
void rules_region(Walk *w, const Rule *rules, RegionId r);
static inline void rules_walk(Walk *w, const Rule *rules) { rules_region(w, rules, hlo_main(w->hlo)->body); }

extern const Rule picks_rules[], expand_rules[], autocast_rules[], unroll_rules[], parts_rules[], fold_rules[], branches_rules[], factors_rules[], halves_rules[], counters_rules[], narrow_rules[];
extern const Rule assoc_rules[], inner_rules[], turns_rules[], simplify_rules[], draws_rules[], functions_rules[], places_rules[];
extern const Rule sums_rules[], dots_rules[], convs_rules[], windows_rules[];

#endif
