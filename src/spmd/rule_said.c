// SPDX-License-Identifier: Apache-2.0
// rule_said.c — the rule a program gives for one of its calls: "sdy.sharding_rule" of a custom call.
//
//   #sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=32, j=16, k=32} reduction={j}, need_replication={k}>
//
// Factors are letters, or z_1 and so on. Of several factors in a dimension the first, which runs slowest, stands for it.
// A factor that the program wants replicated is none.
#include <assert.h>
#include <string.h>

#include "spmd/rule.h"

typedef struct Said {
    const char *at;
    VEC(const char *) names; // of factors, by number
    Arena *arena;
} Said;

static void skip(Said *s) {
    while (*s->at == ' ' || *s->at == ',')
        s->at++;
}

static bool eat(Said *s, const char *word) {
    skip(s);
    size_t n = strlen(word);
    if (strncmp(s->at, word, n))
        return false;
    s->at += n;
    return true;
}

// A letter and perhaps _12 behind it; -1 when there is none.
static int factor(Said *s) {
    if (*s->at < 'a' || *s->at > 'z')
        return -1;
    size_t n = 1;
    if (s->at[1] == '_')
        n += 1 + strspn(s->at + 2, "0123456789");
    const char *name = arena_strndup(s->arena, s->at, n);
    s->at += n;
    for (uint32_t i = 0; i < s->names.n; i++)
        if (!strcmp(s->names.at[i], name))
            return (int)i;
    if (s->names.n == RULE_FACTORS_MAX)
        return -1;
    VEC_PUSH(s->arena, &s->names, name);
    return (int)s->names.n - 1;
}

// ([i, jk], [])
static bool mappings(Said *s, const Hlo *h, const HloOp *op, bool results, int16_t *of) {
    uint32_t n = results ? op->nresults : op->noperands;
    if (!eat(s, "("))
        return false;
    for (uint32_t t = 0; t < n; t++) {
        ValueId v = results ? op->results + t : hlo_operand(h, op, t);
        int16_t *row = of + (size_t)(t + (results ? op->noperands : 0)) * OTRN_MAX_RANK;
        uint32_t rank = hlo_value_type(h, v)->rank, dim = 0;
        if (!eat(s, "["))
            return false;
        for (; !eat(s, "]"); dim++) {
            int f = factor(s);
            if (f < 0 || dim == rank)
                return false;
            row[dim] = (int16_t)f;
            while (factor(s) >= 0)
                continue;
        }
        if (dim != rank)
            return false;
    }
    return eat(s, ")");
}

bool rule_said(Arena *a, const Hlo *h, const HloOp *op, Rule *out) {
    const HloNamed *n = hlo_named_find(op->extra, op->nextra, "sdy.sharding_rule");
    *out = (Rule){.ntensors = op->noperands + op->nresults, .picked = -1};
    if (!n || n->value.kind != HA_OPAQUE)
        return false;
    int16_t *of = ARENA_NEWN(a, int16_t, (size_t)out->ntensors * OTRN_MAX_RANK + 1);
    memset(of, 0xff, (size_t)out->ntensors * OTRN_MAX_RANK * sizeof *of);
    out->of = of;
    Said s = {.at = n->value.s, .arena = a};
    if (!eat(&s, "#sdy.op_sharding_rule<") || !mappings(&s, h, op, false, of) || !eat(&s, "->") ||
        !mappings(&s, h, op, true, of))
        return false;
    out->nfactors = s.names.n;
    assert(out->nfactors <= RULE_FACTORS_MAX);
    const char *whole = strstr(s.at, "need_replication={");
    s.at = whole ? whole + strlen("need_replication={") : "}";
    while (!eat(&s, "}")) {
        int f = factor(&s);
        if (f < 0)
            return false;
        for (size_t i = 0; i < (size_t)out->ntensors * OTRN_MAX_RANK; i++)
            of[i] = of[i] == f ? -1 : of[i];
    }
    return true;
}
