// SPDX-License-Identifier: Apache-2.0
// prof.h — a priced program, for the commands that show one.
#ifndef OTRN_TOOLS_PROF_H
#define OTRN_TOOLS_PROF_H

#include "clock/instance.h"
#include "clock/stall.h"
#include "tools/tools.h"

typedef struct Prof {
    const char *path;
    Artifact *art;
    ChipFile chip;
    Instance instance; // name NULL: none was asked for
    Clock clock;
    View view;
    Stalls stalls;
} Prof;

// Compiles, assembles or loads a file and prices it. target NULL: the chip of the options, or the one an
// artifact was compiled for.
void prof_make(Tool *t, const char *path, const char *target, Prof *out);
// The same for an artifact's bytes.
void prof_price(Tool *t, const char *path, const Options *given, const Buf *bytes, Prof *out);
// What it is called: its own name, or its file's.
static inline const char *prof_name(const Prof *p) { return *p->art->name ? p->art->name : p->path; }
double prof_share(const Prof *p, int track); // percent of the run
int prof_busiest(const Prof *p);
// "1.536 GFLOP": a number with the SI prefix that leaves one to three digits before the point.
const char *prof_scaled(Arena *a, double v, const char *unit);
// "train.py:12 add", as short as it can be told; at most `width` characters, 0 = any.
const char *prof_line_text(Arena *a, const ViewLine *l, int width);

int prof_diff(Tool *t); // prof_diff.c

#endif
