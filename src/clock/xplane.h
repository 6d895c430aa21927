// SPDX-License-Identifier: Apache-2.0
// xplane.h — modelled timelines as a plane of an XSpace, the form that jax.profiler, TensorBoard and XProf read.
#ifndef OTRN_CLOCK_XPLANE_H
#define OTRN_CLOCK_XPLANE_H

#include "clock/clock.h"

typedef struct XRun { // a run of a program
    uint32_t program; // its number
    uint64_t start_ns; // of the host's clock, since 1970
} XRun;

typedef struct XProgram {
    const Artifact *art;
    const Clock *clock; // ran with events
    const char *name;
} XProgram;

// Appends a serialised XSpace with one plane: a line for programs and one for each engine. Runs are in the order of
// time; each is drawn from its start, or from the end of the one before where that is later. Instructions of one source
// place that follow each other are one event; when there would be too many, later runs show their program only.
void xplane_put(Arena *a, const char *plane, const XProgram *programs, uint32_t nprograms, const XRun *runs, uint32_t nruns, Buf *out);

#endif
