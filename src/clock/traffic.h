// SPDX-License-Identifier: Apache-2.0
// traffic.h — what a program's collectives take: by kind and group, by line, and what of it nothing hides.
//
// Busy is the time in which a collective runs. Exposed is what the run would save if links cost nothing: its time
// less that of the same program with free links. It is shared out by what each collective has of the critical path.
#ifndef OTRN_CLOCK_TRAFFIC_H
#define OTRN_CLOCK_TRAFFIC_H

#include "clock/stall.h"
#include "mach/price.h"

#define TRAFFIC_MOST 0.25 // more of a step is worth a warning

typedef struct TrafficRow { // collectives of one kind over groups of one shape
    uint16_t op;
    uint32_t ranks, groups; // of a group; how many there are
    uint32_t stride;        // from one of its devices to the next; 0: they are not evenly apart
    uint8_t way, reach;     // FabricWay and LinkPlace, of these sizes
    double count, bytes;    // bytes: a device sends over links or network
    double busy_ns, exposed_ns;
    uint32_t line;          // that has most of it, a number into view.lines
    double line_ns;         // what that one has
} TrafficRow;

typedef struct Traffic {
    double total_ns, busy_ns, exposed_ns, bytes; // of the run, or of the step that is told; of all collectives
    VEC(TrafficRow) rows; // the most exposed first
} Traffic;

// The chip with links and network that take no time.
ChipFile traffic_free(const ChipFile *chip);
// `free_ns`: of the same program on that one. `stalls` may be NULL or unknown: then busy time alone shares out what is exposed.
void traffic_make(Arena *a, const Artifact *art, const Clock *clock, double free_ns, const View *view, const Stalls *stalls, Traffic *out);
double traffic_share(const Traffic *t);   // of the run in which a collective runs
double traffic_exposed(const Traffic *t); // … and nothing hides it
TrafficRow traffic_row(const Kern *k, const Price *p, uint32_t devices); // kind and group of one; nothing is counted yet
const char *traffic_group(Arena *a, const TrafficRow *r); // "4 devices, 8 apart"
const char *traffic_way(Arena *a, const TrafficRow *r);   // "ring, machine": how it goes, and how far
// Too much: "collectives take 31.2 % of the step, 12.0 % are not hidden: all_gather over 4 devices at train.py:12 (8.1 %), …";
// NULL where the share is not above `most`.
const char *traffic_warning(Arena *a, const Traffic *t, const View *view, double most);

#endif
