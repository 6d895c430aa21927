// SPDX-License-Identifier: Apache-2.0
// explain.h — what a compiled program became, and whether it may be run.
#ifndef OTRN_TOOLS_EXPLAIN_H
#define OTRN_TOOLS_EXPLAIN_H

#include "rt/rt.h"
#include "tools/prof.h"

typedef enum Verdict { VERDICT_SUPPORTED, VERDICT_SLOW, VERDICT_TOO_LARGE, VERDICT_UNSUPPORTED, VERDICT_COUNT } Verdict;
typedef struct VerdictRow {
    int status; // exit status of `otrn check`
    const char *text;
} VerdictRow;
extern const VerdictRow verdicts[VERDICT_COUNT];

typedef struct ExactDraw { // random numbers that the program wants from an algorithm, not from the engines
    const char *algorithm; // "threefry", "philox"
    Place at;
} ExactDraw;
typedef struct Reasons {
    Arena *arena;
    Why *at; // per kernel: why it is one
    uint32_t n;
    VEC(ExactDraw) draws; // each line once
    const void *bytes;    // the program; NULL: it is not compiled in another way
    size_t size;
} Reasons;
RtHook explain_note; // takes them (arg) from graph and artifact while that is made
// At most `lines` of each list; 0: all.
Verdict explain_print(Tool *t, const Prof *p, const Reasons *r, uint32_t lines);
// The compiler said CAPACITY or UNSUPPORTED.
Verdict explain_failure(const otrn_error *err);

#endif
