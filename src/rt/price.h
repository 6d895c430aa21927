// SPDX-License-Identifier: Apache-2.0
// price.h — a program as it would run, timed and priced.
#ifndef OTRN_RT_PRICE_H
#define OTRN_RT_PRICE_H

#include "clock/traffic.h"
#include "mach/instance.h"
#include "rt/rt.h"

typedef struct RtPricing {
    RtCompile how;            // chip and options that are asked for; name, pool, spare, writer
    const Instance *instance; // asked for, or NULL; one with another chip does not count
    uint32_t replicas;        // of the program that run beside each other; 0 and 1 are the same
    ClockOptions clock;       // events, stalls, and what a run counted; the rest is filled in
} RtPricing;

typedef struct RtPriced {
    Artifact *art; // as compiled for the chip
    ChipFile chip;
    Clock clock;
    Cost cost;
    uint64_t assumed_trips; // of clock.unknown_loops; 0: counted once
} RtPriced;

void rt_price(Ctx *ctx, Arena *a, Artifact *art, const RtPricing *in, RtPriced *out);
// What its collectives take. `stalls` may be NULL. The program is timed once more, with free links.
void rt_traffic(Ctx *ctx, Arena *a, const RtPricing *in, const RtPriced *p, const View *view, const Stalls *stalls, Traffic *out);
// An executable on a chip, NULL: the one it was compiled for, as its artifact's options say; `events`: with its timeline (time.c).
void rt_exe_price(otrn_exe *exe, Ctx *ctx, Arena *a, const char *target, bool events, RtPricing *how, RtPriced *out);
// The timeline as a file: a page for a browser (.html), with what was tried to make it quicker (hints.h), else a trace for Perfetto
// (.gz: compressed). timeline.c
void rt_timeline_write(Ctx *ctx, Arena *a, const RtPricing *how, const RtPriced *p, const char *path);
// What the last run of an executable counted of loops whose length only a run knows: of several devices the most (otrn.c).
void rt_trips(otrn_exe *exe, Arena *a, ClockOptions *out);

// --trips: 0 when it names no number. Raises USAGE.
uint64_t rt_trips_asked(Ctx *ctx, const Options *o);

#endif
