// SPDX-License-Identifier: Apache-2.0
// simplify.h — the rules of simplify.c, and what each leaves of the program's numbers.
#ifndef OTRN_PASS_SIMPLIFY_H
#define OTRN_PASS_SIMPLIFY_H

#include "pass/pass.h"

typedef enum RuleKeeps {
    RULE_EXACT, // every bit; a NaN is a NaN
    RULE_ZERO,  // … but the sign of a zero
    RULE_RANGE, // … as long as no product on the way is subnormal or too large
    RULE_ORDER, // the same terms, summed in another order
    RULE_TWICE, // rounded twice where something is added
    RULE_CLOSE, // within 2e-7, absolutely
} RuleKeeps;

typedef struct Simplify Simplify;
typedef struct SimplifyRule {
    const char *name; // what becomes what
    uint16_t code;    // of the op it looks at
    uint8_t keeps;    // RuleKeeps
    ValueId (*to)(Simplify *s, const HloOp *op); // what the op's result is as well, made before it where need be; 0: the op stays
} SimplifyRule;
extern const SimplifyRule simplify_rules[];
extern const int simplify_rule_count;

#endif
