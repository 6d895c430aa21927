// SPDX-License-Identifier: Apache-2.0
// prof.h — a priced program, for the commands that show one.
#ifndef OTRN_TOOLS_PROF_H
#define OTRN_TOOLS_PROF_H

#include "mach/instance.h"
#include "clock/group.h"
#include "clock/html.h"
#include "clock/spill.h"
#include "clock/traffic.h"
#include "rt/hints.h"
#include "tools/tools.h"

typedef struct Prof {
    const char *path;
    Artifact *art;
    ChipFile chip;
    Instance instance; // name NULL: none was asked for
    Clock clock;
    Cost cost;
    uint64_t assumed_trips; // of clock.unknown_loops; 0: counted once
    View view;
    Stalls stalls;
    bool brief;        // --group=none: no timeline, and none of what is made of it: stalls, groups, spills, memory over the run
    GroupTable groups; // as --group asks
    Spills spills;
    Traffic traffic;
    RtPricing how;   // what was asked, and
    RtPriced priced; // answered: art, chip, clock and cost are its
    RtHint *hints;   // with --hints
    uint32_t nhints;
    bool hints_known;
} Prof;

// Compiles, assembles or loads a file and prices it. target NULL: the chip of the options, or the one an
// artifact was compiled for.
void prof_make(Tool *t, const char *path, const char *target, Prof *out);
// The same for an artifact's bytes.
void prof_price(Tool *t, const char *path, const Options *given, const Buf *bytes, Prof *out);
// What it is called: its own name, or its file's.
static inline const char *prof_name(const Prof *p) { return *p->art->name ? p->art->name : p->path; }
double prof_share(const Prof *p, int track); // percent of the run
// "1.536 GFLOP": a number with the SI prefix that leaves one to three digits before the point.
// "train.py:12 add", as short as it can be told; at most `width` characters, 0 = any.
const char *prof_line_text(Arena *a, const ViewLine *l, int width);

const char *prof_clipped(Arena *a, const char *text, int width); // at most so many bytes, then "…"
void json_text(const char *s); // a JSON string's inside
void json_key(const char *s);  // "dma in" as dma_in

int prof_diff(Tool *t); // prof_diff.c
// A line on stderr when a program has more instructions than its chip takes: it can be priced and does not run.
void prof_warn_count(const char *path, const Artifact *art, const ChipFile *chip);
void prof_warn_compiled(Ctx *ctx, Arena *a, const Options *o, const char *path, const Buf *bytes); // of an artifact just made

// --- prof_cost.c: what a run costs, and what it does for that -----------------------------------------
void prof_cost_print(Tool *t, const Prof *p);
void prof_cost_json(Tool *t, const Prof *p);
#define LOOP_NOTES 3 // at most: about loops whose length was not in the program
uint32_t prof_loops_notes(Arena *a, const Prof *p, const char *notes[LOOP_NOTES]);
void prof_loops_print(Arena *a, const Prof *p);
double prof_usd(const Prof *p);       // of one run; 0: not known
double prof_tokens(Tool *t);          // --tokens; 0: not given
int prof_instances(Tool *t);          // --instance=A,B,…: side by side
void prof_json(Tool *t, const Prof *p); // cmd_prof.c: all of it

// --- prof_comm.c: what collectives take ---------------------------------------------------------------
#define STATUS_COMM 3 // collectives take more of the step than --max-comm
double prof_max_comm(Tool *t); // --max-comm as a share; below 0: not given. Raises USAGE for what is none
// Where collectives take more than that, or than TRAFFIC_MOST; NULL: they do not.
const char *prof_comm_warning(Tool *t, const Prof *p);
// Tells it on stderr; 3 where the option is given, else 0.
int prof_comm_status(Tool *t, const Prof *p);
int prof_comm_asked(Tool *t, const Prof *p); // the same, and nothing where the option is not given
const char *prof_comm_text(Tool *t, const Prof *p); // a line; NULL: there are none
void prof_comm_print(Tool *t, const Prof *p);
void prof_comm_json(Tool *t, const Prof *p);
void prof_comm_limit_json(Tool *t, const Prof *p); // --max-comm and whether they take more; nothing where it is not given

// --- cmd_predict.c: a step on a fleet ------------------------------------------------------------------
typedef struct Told {
    double step_s, tokens, samples, usd_per_hour, mfu, comm, exposed, peak_bytes, hbm_bytes, compile_s;
    double error; // expected, as a share; below 0: not known
    const char *error_rows;
    bool measured; // by the user
    bool by_roofs; // else a compiler told its time, and Prof has all of it
    double products_s, attention_s, between_s, host_s; // that a step has of each, by roofs
} Told;
// Prices a program; a configuration is refused, with who takes it. Devices may be any number: predict_check says what must fit.
void predict_make(Tool *t, const char *path, Prof *p, Told *out);
// … on an accelerator without a compiler here, by roofs; false: the instance is none of those (roof.c).
bool roof_make(Tool *t, const char *path, Prof *p, Told *out);
// The type most of a program's products are in: bf16, fp32 or fp8.
const char *roof_type(Tool *t, const char *path);
// --measured: those that name none of the instances asked for are refused, and what they have no --tokens or --samples for (measured.c) …
void measured_check(Tool *t, const char *const *names, uint32_t n);
void measured_apply(Tool *t, const char *instance, Told *o); // … and one of this instance takes the prediction's place
uint32_t predict_nodes(Tool *t);
const char *predict_title(Tool *t, const Prof *p, uint32_t nodes); // "main on 2 x trn1.2xlarge (4 devices)"
void predict_check(Tool *t, const Prof *p, uint32_t nodes);
double predict_number(Tool *t, int opt, const char *what); // of an option; raises USAGE
void predict_key(const char *key, double v, bool known);   // a line of JSON

// --- cmd_cost.c: a run of days ------------------------------------------------------------------------
typedef struct Run {
    double goodput, every_s, days, tokens, usd, saved_usd, epochs, epoch_hours, epoch_usd; // tokens 0: not known; epochs 0: not asked for
} Run;
bool run_make(Tool *t, const Prof *p, const Told *o, Run *out); // false: no --days
double usd_per_million(const Told *o); // of tokens
void run_json(const Run *r);

// --- prof_report.c: what is told, as rows and as a page ------------------------------------------------
typedef struct Answer {
    const char *title, *about;
    const char *verdict;        // of a comparison, first; NULL: none
    VEC(HtmlBars) bars;         // of it
    const HtmlTable *table; // before its rows; NULL: none
    VEC(HtmlRow) rows;
} Answer;
void answer_add(Tool *t, Answer *o, const char *label, const char *value);
static inline void answer_print(const HtmlRow *r) { printf("%-14s %s\n", r->label, r->value); }
void answer_run(Tool *t, Answer *o, const Run *r); // cmd_cost.c
typedef struct Caught {
    FILE *file;
    int out;
} Caught;
// JSON is printed by many hands: what they print between the two is the data of an answer, for the file beside its page.
Caught json_begin(Tool *t);
Buf json_end(Tool *t, Caught c);
// For --report: the answer as a page and, behind it, the step it was made of; its data as JSON and as a sheet beside it. p NULL: the answer alone.
void answer_report(Tool *t, const Answer *o, const Prof *p, const Told *told, Buf data);
void prof_report(Tool *t, const Prof *p, const char *path); // a page of the program alone

// --- prof_stall.c: why it takes so long ------------------------------------------------------------
typedef struct ProfPart { // of the critical path
    int track, kind; // PATH_…
    double ns;
} ProfPart;
const char *prof_part_text(Arena *a, const ProfPart *part); // "tensor at work"
int prof_bottleneck(const Prof *p); // the track with the most work on the critical path
void prof_window(Tool *t, double *from_ns, double *to_ns); // --trace-window
void prof_engines_print(Tool *t, const Prof *p);
void prof_why_print(Tool *t, const Prof *p);
void prof_why_json(Tool *t, const Prof *p);

// --- prof_hints.c ----------------------------------------------------------------------------------
void prof_hints_make(Tool *t, Prof *p); // compiles the program in other ways
void prof_hints_print(Tool *t, const Prof *p);
void prof_hints_json(const Prof *p);

#endif
