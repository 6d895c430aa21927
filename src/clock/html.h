// SPDX-License-Identifier: Apache-2.0
// html.h — a priced program as one page: a single file without scripts from elsewhere, for any browser.
#ifndef OTRN_CLOCK_HTML_H
#define OTRN_CLOCK_HTML_H

#include "clock/group.h"
#include "mach/instance.h"
#include "clock/spill.h"
#include "clock/traffic.h"

typedef struct HtmlRow { // a line of a table: what, how much, and on what ground
    const char *label, *value, *note;
} HtmlRow;

typedef struct HtmlReport {
    const Artifact *art;
    const ChipFile *chip;
    const Clock *clock; // ran with `stalls`
    const View *view;
    const Stalls *stalls;
    const Spills *spills;
    const Traffic *traffic;
    const double *max_comm; // share of the step above which collectives are worth a warning; NULL: TRAFFIC_MOST
    const char *name;     // of the program
    uint64_t assumed_trips; // of loops whose length is not known; 0: counted once
    const HtmlRow *costs; // with their basis
    uint32_t ncosts;
    const HtmlRow *hints; // that were tried; NULL: none was
    uint32_t nhints;
} HtmlReport;

// A front end that knows more (a loss curve) puts it where this stands.
#define HTML_EXTRA "<!-- extra -->"

HtmlRow html_cost(Arena *a, const Cost *c, double ns); // dollars of a million runs, or why they are not known
void html_report(Arena *a, const HtmlReport *r, Buf *out);

// --- a page with an answer before the report, or without one -----------------------------------------
typedef struct HtmlTable {
    const char *const *head, *const *cells; // cells: rows * cols; of a row that a NULL ends the last cell is as wide as the rest
    uint32_t cols, rows;
} HtmlTable;

typedef struct HtmlBar {
    const char *label, *text; // what, and how much as it is told
    double value;
} HtmlBar;

typedef struct HtmlBars { // each as long as it is beside the largest
    const char *title;
    const HtmlBar *at;
    uint32_t n;
} HtmlBars;

void html_begin(Buf *out, const char *title, const char *heading, const char *under);
void html_end(Buf *out);
void html_step(Arena *a, const HtmlReport *r, Buf *out); // what stands between, of the report
void html_rows(const char *title, const char *note, const HtmlRow *rows, uint32_t n, Buf *out);
void html_table(const HtmlTable *t, Buf *out);
void html_bars(const HtmlBars *bars, Buf *out);

// --- for html_plot.c -------------------------------------------------------------------------------
void html_text(Buf *out, const char *s); // escaped
const char *html_time(Arena *a, double ns); // "12.3 ms"
// Plots: roofs with the program and its layers, memories and engines over the run, the critical path as a flame.
void html_roofline(Arena *a, const HtmlReport *r, const GroupTable *groups, Buf *out);
void html_memory(Arena *a, const HtmlReport *r, Buf *out);
void html_timeline(Arena *a, const HtmlReport *r, Buf *out);
void html_flame(Arena *a, const HtmlReport *r, Buf *out);

#endif
