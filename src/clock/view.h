// SPDX-License-Identifier: Apache-2.0
// view.h — what people ask of a priced program: which source lines take the time, how far it is from
// the chip's roofs, how full the memories are.
//
// Everything here is derived from the artifact and a finished Clock; nothing feeds back into prices.
#ifndef OTRN_CLOCK_VIEW_H
#define OTRN_CLOCK_VIEW_H

#include "clock/clock.h"

typedef struct ViewLine { // a line of the user's program
    const char *file, *name; // "" when not known
    uint32_t line;
    uint16_t op; // of its operations the one with the most time on `track`, HLO_NONE for none
    double busy_ns[CLOCK_TRACKS];
    double hbm_bytes, flops;
    double spill_out, spill_in; // bytes that transfers take to HBM and back because the chip does not keep them
    double insts; // executed
    int track;    // where it is busy longest,
    double most_ns; // and how long
    uint32_t number; // while lines are put in order
} ViewLine;

// Arithmetic intensity against the two roofs of the tensor engine and HBM.
typedef struct ViewRoof {
    double flops, hbm_bytes;
    double compute_ns, memory_ns; // both at full rate, by themselves
    double attainable, achieved;  // FLOP/s
    double ridge;                 // FLOP/byte where the roofs meet, for the types this program uses
} ViewRoof;

#define VIEW_BINS 256 // of the run's time
enum { VIEW_HBM, VIEW_SBUF, VIEW_PSUM, VIEW_MEMORIES };
extern const char *const view_memory_names[VIEW_MEMORIES];
typedef struct ViewMemory {
    double capacity_bytes, peak_bytes;
    double peak_ns; // when
    double bins[VIEW_BINS];
} ViewMemory;

typedef struct View {
    VEC(ViewLine) lines; // longest first
    uint32_t *line_of[2]; // per instruction of each core's program: which of them,
    double *busy_of[2];   // and its part of the time there
    double *times_of[2];  // how often it runs
    ViewRoof roof;
    ViewMemory memory[VIEW_MEMORIES];
    bool has_memory; // the clock kept its events
} View;

// `clock` comes from clock_run in an arena that still lives; with its events the memories are filled in.
void view_make(Arena *a, const Artifact *art, const ChipFile *chip, const Clock *clock, View *out);

typedef struct ViewTouch { // bytes of a memory, all that an operand may reach; of HBM: of its scratch
    uint8_t memory; // VIEW_…
    bool is_write;
    uint32_t part0, part1;
    uint64_t lo, hi;
} ViewTouch;

// --- occupy.c -------------------------------------------------------------------------------------
double view_hbm_planned(const Artifact *art); // bytes the program asks for
// What each instruction touches, and how many of them.
ViewTouch **view_touches(Arena *a, const Artifact *art, const ChipFile *chip, uint32_t **counts);
void view_occupy(Arena *a, const Artifact *art, const ChipFile *chip, const Clock *clock, View *out);

// --- numbers as they are told -----------------------------------------------------------------------
const char *view_scaled(Arena *a, double v, int digits, const char *unit); // "1.54 GB", with as many digits
const char *view_number(Arena *a, double v, int digits); // "1,234,567", "12.35", "0.0000261": no exponents; below 1000 so many digits
const char *view_seconds(Arena *a, double s);            // "11.38 s", "4.353 ms", "12.5 us"

#endif
