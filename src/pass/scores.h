// SPDX-License-Identifier: Apache-2.0
// scores.h — two row programs, R1 and a later R2 that computes some of R1's rows again (pass/scores.c).
#ifndef OTRN_PASS_SCORES_H
#define OTRN_PASS_SCORES_H

#include "pass/rows_make.h"

#define LATE_MAX 16
#define FOLLOW_MAX 32
#define ROUNDS 4

typedef struct Late { // a product that reads R1's result `result` as operand `operand`
    OpId op;
    uint32_t operand, result;
} Late;

typedef struct Pair {
    OpId first, second; // R1, R2
    Late late[LATE_MAX];
    uint32_t nlate;
    OpId follow[FOLLOW_MAX]; // movement of late products' results, which goes with them
    uint32_t nfollow;
    bool again[64]; // results of R1 that R2 computes again
    Values numbers; // … numbers per row of which R2 makes those it needs, which R1 then stores
    bool fewer;     // … from these rows, which R1 stores in their place
    Values stores;
    bool whole;     // … all of them, for all readers: nothing stays of R1
} Pair;

typedef struct Scores {
    Compile *c;
    Hlo *h;
    Walk w;
    Users u;
    uint32_t nops; // of the picture
    bool again;    // programs have been through this once
    uint32_t *node, *live; // per value: its place in a list, from 1; 0 between uses
    bool *taken;   // per op: part of a pair already, or replaced
    OpId *instead; // per op: what stands in its place
    OpList *before, *after; // per op: what goes in with it
    bool *dropped;
} Scores;

static inline HloOp op_of(const Scores *s, OpId id) { return *hlo_at(s->h, id); }

static inline const HloRegion *body_of(const Scores *s, OpId rows) { return hlo_op_region(s->h, hlo_at(s->h, rows), 0); }

static inline bool is_full(const Scores *s, ValueId inner) { return hlo_value_type(s->h, inner)->rank == 1; }

static inline bool h_is_op(const Scores *s, ValueId inner) { return s->h->values.at[inner].def != 0; }

// A row of R1 that is stored: a result that is not computed again.
static inline bool is_kept_result(const Scores *s, const Pair *p, ValueId inner) {
    const HloOp *op = hlo_at(s->h, p->first);
    for (uint32_t k = 0; k < op->nresults; k++)
        if (rows_returned(s->h, p->first, k) == inner && !p->again[k])
            return true;
    return false;
}

static inline uint32_t result_of(const Scores *s, OpId first, ValueId inner) {
    uint32_t k = 0;
    while (rows_returned(s->h, first, k) != inner)
        k++;
    return k;
}

// The argument of R2's region that is this value, 0: none.
ValueId scores_argument(const Scores *s, OpId second, ValueId v, int64_t kind);

// The one row program that reads a result, through reshapes, and nobody else; 0: not so.
OpId scores_reader(const Scores *s, OpId first, ValueId v, OpId so_far);

bool scores_is_large(const Scores *s, OpId rows);

// Rows that one later program reads and that follow from fewer (scores_cut.c).
bool scores_fewer(Scores *s, OpId first, Pair *p);

#endif
