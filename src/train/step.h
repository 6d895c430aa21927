// SPDX-License-Identifier: Apache-2.0
// step.h — a training step: a program, and what each of its arguments and results is.
//
// Steps come from our own models (model.c) or from a folder that opentrn.export_step or opentrn.torch.export_step wrote
// (step_read): StableHLO and manifest.json. Whoever runs one need not know which.
#ifndef OTRN_TRAIN_STEP_H
#define OTRN_TRAIN_STEP_H

#include "base/arena.h"
#include "base/ctx.h"

// What an argument is; names as manifests have them.
#define PORT_ROWS(X)                                                                               \
    X(PARAMETER, "parameter") X(STATE, "state") X(BUFFER, "buffer") X(INPUT, "input")              \
    X(RATE, "learning_rate") X(SEED, "seed") X(CONSTANT, "constant") X(CORRECT1, "correct1") X(CORRECT2, "correct2")
typedef enum PortKind {
#define X(kind, name) PORT_##kind,
    PORT_ROWS(X)
#undef X
        PORT_KINDS
} PortKind;

typedef struct Port { // an argument
    PortKind kind;
    const char *name;
    otrn_type type;
    int64_t result;    // that replaces it; -1: none
    const char *file;  // its first value; NULL: as below
    float fill, scale; // a constant, or random numbers of this deviation
} Port;

typedef struct Step {
    const char *name;
    const void *program;
    size_t program_bytes;
    Port *args;
    size_t nargs, nresults;
    int64_t loss, norm; // results; norm -1: none
} Step;

static inline bool port_lasts(const Port *p) { return p->result >= 0; } // belongs into a checkpoint

// The step in a folder. Raises PARSE or IO.
void step_read(Ctx *ctx, Arena *a, const char *folder, Step *out);
void step_parse(Ctx *ctx, Arena *a, const char *name, const char *folder, const void *bytes, size_t size, Step *out); // manifest.json

#endif
