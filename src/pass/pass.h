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
void pass_run(const PassRow *row, Compile *c);
// Gives the entry's arguments of unknown size the types of what will be passed; false when there are no
// such arguments, and nothing changes. values (NULL, or NULL where not wanted) makes integer scalars
// constants.
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
