// SPDX-License-Identifier: Apache-2.0
// study.h — the same training in several precisions: is what the chip computes faster good enough?
//
// Of each precision: one step from the same weights on the same data, whose gradients are compared part by part with those of
// double precision, and whole runs from several seeds, whose losses are compared in pairs. Where an exported step has no
// twin in double precision (a folder f64 in its own), f32 is what others are held against. Of a precision that is worse the line is
// looked for by which its gradients go wrong: lines are cast from the first to the last, in one step each time.
#ifndef OTRN_TRAIN_STUDY_H
#define OTRN_TRAIN_STUDY_H

#include "train/train.h"

#define STUDY_SEEDS 10
#define STUDY_ROWS 6
#define STUDY_POINTS 4 // of a curve: after a quarter of the steps, a half …

typedef struct StudyPart { // of a model
    const char *name;
    double error; // norm of the difference of its gradients over their norm
} StudyPart;

typedef struct StudyLine { // of the program, and the first of its operations that is cast
    const char *file, *op;
    uint32_t line;
} StudyLine;

typedef struct StudyRow {
    bool ran;
    int runs;                                   // that came to their end
    int64_t failed_at;                          // step of the first that did not; 0: all did
    double loss[STUDY_SEEDS], curve[STUDY_POINTS]; // at the end; means over seeds
    double first;                               // loss of the first step
    double mean, spread, off, off_spread;       // over seeds, with half the width of the 95 % interval; off: from the reference
    VEC(StudyPart) parts;
    StudyPart worst;
    const char *verdict;
    bool worse;
    StudyLine wrong; // the first line by whose cast gradients go wrong; file NULL: none is needed, or found
} StudyRow;

typedef struct Study {
    Ctx *ctx;
    Arena *arena;
    Recipe recipe;
    const otrn_option *options;
    size_t noptions;
    int seeds, reference; // a row
    StudyRow rows[STUDY_ROWS];
} Study;

void study_run(Study *s);
void study_print(const Study *s, bool json, FILE *out);
bool study_worse(const Study *s);

#endif
