// SPDX-License-Identifier: Apache-2.0
// scores_cut.c — rows kept in place of others: where a later row program reads several rows that follow from fewer, the
// first stores those (a gelu's argument instead of its factors). What storing and loading take against what instructions
// take, by a minimum cut over the first one's body.
#include "mach/cost.h"
#include "pass/cut.h"
#include "pass/epilogue.h"
#include "pass/rows.h"
#include "pass/scores.h"

// Of the time that stores and loads take, at most: these mostly go on beside other work, instructions wait for each other. Fitted to the zoo's
// steps together with the price of a byte, which is HBM's alone: with that of the slower of HBM and DMA, Llama on trn1 is 3.4 % slower.
#define KEEP_GAIN 0.78
#define PS 64.0        // of a ps: what an element takes is told in whole numbers

static int64_t bytes_ps(const Scores *s, ValueId v, int times) {
    return (int64_t)(PS * 1000 * cost_hbm(s->c->chip, (double)dtype_bytes(hlo_value_type(s->h, v)->dtype) * times));
}

// The operand is a product whose tiles go through R1 in PSUM (tile/block.c).
static bool in_block(const Scores *s, OpId rows, uint32_t i) {
    OpId dot = rows_score(s->h, &s->u, rows, i, 2 * SCORE_NARROW);
    const HloType *t = dot ? hlo_value_type(s->h, hlo_at(s->h, dot)->results) : NULL;
    return t && t->rank >= 2 && (!rows_one_tile(t->dims[t->rank - 2], t->dims[t->rank - 1]) || rows_batches_of(s->c->chip, s->h, hlo_at(s->h, dot)) > 1);
}

// Storing an inner value in R1 and loading it in R2, for an element.
static int64_t keep_ps(const Scores *s, const Pair *p, ValueId v) {
    HloOp r1 = op_of(s, p->first);
    uint32_t i = v - body_of(s, p->first)->args;
    Epilogue e;
    if (!h_is_op(s, v)) {
        int64_t kind = rows_kinds(&r1)[i];
        bool there = kind != FUSED_SAME || scores_argument(s, p->second, hlo_operand(s->h, &r1, i), kind);
        bool hidden = (epilogue_suits(&s->u, p->first, i, &e) && !e.keeps) || in_block(s, p->first, i);
        return there ? 0 : hidden ? CUT_NEVER : bytes_ps(s, v, 1);
    }
    if (is_kept_result(s, p, v)) // somebody else reads it too
        return scores_argument(s, p->second, r1.results + result_of(s, p->first, v), FUSED_SAME) ? 0 : bytes_ps(s, v, 1);
    return dtype_is_float(hlo_value_type(s->h, v)->dtype) ? bytes_ps(s, v, 2) : CUT_NEVER;
}

// Making it of its operands.
static int64_t make_ps(const Scores *s, ValueId v) {
    OpId def = s->h->values.at[v].def;
    const HloOp *op = def ? hlo_at(s->h, def) : NULL;
    if (op && (op->code == HLO_CONSTANT || op->code == HLO_BROADCAST_IN_DIM))
        return 0;
    if (!op || op->nregions || !hlo_is_elementwise(op))
        return CUT_NEVER;
    double instructions = hlo_instructions(s->h, op);
    bool pairs = instructions >= 1 && op->noperands > 1;
    return (int64_t)(PS * 1000 * cost_elementwise(s->c->chip, pairs, hlo_value_type(s->h, v)->dtype, instructions) / PARTITIONS);
}

static void need_rows(const Scores *s, uint32_t *place, Values *list, ValueId v) {
    if (!is_full(s, v) || place[v])
        return;
    VEC_PUSH(s->c->scratch, list, v);
    place[v] = list->n;
}

// What R1's instructions take for the results that stay, and for these values.
static int64_t live_ps(const Scores *s, const Pair *p, const ValueId *more, uint32_t n) {
    const HloRegion *body = body_of(s, p->first);
    Values live = {0};
    int64_t sum = 0;
    for (uint32_t k = 0; k < hlo_at(s->h, p->first)->nresults; k++)
        if (!p->again[k])
            need_rows(s, s->live, &live, rows_returned(s->h, p->first, k));
    for (uint32_t i = 0; i < n; i++)
        need_rows(s, s->live, &live, more[i]);
    for (uint32_t i = body->ops.n - 1; i-- > 0;) {
        const HloOp *op = hlo_at(s->h, body->ops.at[i]);
        if (op->nresults != 1 || (is_full(s, op->results) && !s->live[op->results]))
            continue;
        int64_t ps = is_full(s, op->results) ? make_ps(s, op->results) : 0;
        sum += ps == CUT_NEVER ? 0 : ps;
        for (uint32_t k = 0; k < op->noperands; k++)
            need_rows(s, s->live, &live, hlo_operand(s->h, op, k));
    }
    for (uint32_t i = 0; i < live.n; i++)
        s->live[live.at[i]] = 0;
    return sum;
}

// Which of R1's rows are stored for R2, and which it makes again of those: the least of both times together.
static int64_t cut_rows(Scores *s, Pair *p, const Values *list) {
    Cut g;
    bool *side = ARENA_NEWN(s->c->scratch, bool, 2 * list->n + 2);
    int64_t alone = live_ps(s, p, NULL, 0);
    cut_init(&g, s->c->scratch, 2 * list->n + 2); // of value i: 2 i is what makes it, 2 i + 1 what stores it
    for (uint32_t i = 1; i <= list->n; i++) {
        ValueId v = list->at[i - 1];
        int64_t make = make_ps(s, v), keep = keep_ps(s, p, v);
        cut_edge(&g, 0, 2 * i, make);
        cut_edge(&g, 2 * i, 2 * i + 1, keep == CUT_NEVER ? keep : keep + live_ps(s, p, &v, 1) - alone);
        const HloOp *op = h_is_op(s, v) ? hlo_at(s->h, s->h->values.at[v].def) : NULL;
        for (uint32_t k = 0; make < CUT_NEVER && k < op->noperands; k++)
            if (s->node[hlo_operand(s->h, op, k)])
                cut_edge(&g, 2 * s->node[hlo_operand(s->h, op, k)] + 1, 2 * i, CUT_NEVER);
    }
    for (uint32_t k = 0; k < hlo_at(s->h, p->first)->nresults; k++)
        if (p->again[k])
            cut_edge(&g, 2 * s->node[rows_returned(s->h, p->first, k)] + 1, 1, CUT_NEVER);
    int64_t least = cut_make(&g, 0, 1, side);
    for (uint32_t i = 1; i <= list->n; i++)
        if (side[2 * i] && !side[2 * i + 1] && h_is_op(s, list->at[i - 1]))
            VEC_PUSH(s->c->scratch, &p->stores, list->at[i - 1]);
    return least;
}

// Rows that one later program reads and that follow from fewer.
bool scores_fewer(Scores *s, OpId first, Pair *p) {
    *p = (Pair){.first = first, .fewer = true};
    HloOp op = op_of(s, first);
    Values list = {0};
    int64_t now = 0;
    if (!s->c->chip || op.nresults > 64 || !scores_is_large(s, first))
        return false;
    for (uint32_t k = 0; k < op.nresults; k++) {
        ValueId inner = rows_returned(s->h, first, k);
        OpId reader = is_full(s, inner) && h_is_op(s, inner) ? scores_reader(s, first, op.results + k, p->second) : 0;
        if (!reader || s->u.position[reader] <= s->u.position[first])
            continue;
        p->second = reader;
        p->again[k] = true;
        now += bytes_ps(s, inner, 2);
        need_rows(s, s->node, &list, inner);
    }
    if (!p->second)
        return false;
    now += live_ps(s, p, list.at, list.n) - live_ps(s, p, NULL, 0);
    for (uint32_t i = 0; i < list.n; i++) {
        OpId def = s->h->values.at[list.at[i]].def;
        for (uint32_t k = 0; make_ps(s, list.at[i]) < CUT_NEVER && k < hlo_at(s->h, def)->noperands; k++)
            need_rows(s, s->node, &list, hlo_operand(s->h, hlo_at(s->h, def), k));
    }
    int64_t least = cut_rows(s, p, &list);
    for (uint32_t i = 0; i < list.n; i++)
        s->node[list.at[i]] = 0;
    for (uint32_t k = 0; k < op.nresults; k++)
        p->again[k] = p->again[k] && !values_have(&p->stores, rows_returned(s->h, first, k));
    return (double)least <= (double)now * KEEP_GAIN;
}
