// SPDX-License-Identifier: Apache-2.0
// rules.c — the driver of rewriting rules.
#include "pass/rules.h"

const char *const rule_keeps_text[RULE_KEEPS_COUNT] = {"exact", "but the sign of a zero", "in range", "sums in another order", "rounds twice", "rounds as asked", "close", "rounds less"};

static bool rules_fit(const Hlo *h, const HloOp *op) {
    for (uint32_t i = 0; i < op->noperands; i++)
        if (!hlo_is_plain(hlo_value_type(h, hlo_operand(h, op, i))))
            return false;
    for (uint32_t i = 0; i < op->nresults; i++)
        if (!hlo_has_elems(hlo_value_type(h, op->results + i)))
            return false;
    return op->nresults > 0;
}

static void visit(void *pass, OpId id) {
    Walk *w = pass;
    const HloOp op = *hlo_at(w->hlo, id);
    bool fits = w->any || rules_fit(w->hlo, &op);
    for (const Rule *r = w->rules; fits && r->to; r++) {
        ValueId to = r->code == op.code || r->code == HLO_NONE ? r->to(w, &op) : 0;
        if (!to)
            continue;
        if (!op.nresults)
            return;
        assert(w->hlo->values.at[to].type == w->hlo->values.at[op.results].type);
        if (w->replaced)
            w->replaced(w, op.results, to);
        if (to != op.results)
            walk_replace(w, op.results, to);
        return;
    }
    walk_push(w, id);
}

void rules_region(Walk *w, const Rule *rules, RegionId r) {
    assert(rules && rules->to);
    w->rules = rules;
    walk_rewrite(w, r, visit, w);
}
