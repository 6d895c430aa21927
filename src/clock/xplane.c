// SPDX-License-Identifier: Apache-2.0
// xplane.c — writes the protocol buffers of xplane.proto by hand.
//
//   XSpace  planes 1
//   XPlane  id 1, name 2, lines 3, event_metadata 4 (map), stat_metadata 5 (map)
//   XLine   id 1, name 2, timestamp_ns 3, events 4
//   XEvent  metadata_id 1, offset_ps 2, duration_ps 3
//   XEventMetadata  id 1, name 2, display_name 4, stats 5
//   XStat   metadata_id 1, str_value 5;  XStatMetadata  id 1, name 2
// A map is a repeated message of key 1 and value 2.
#include "clock/xplane.h"

#include <stdlib.h>
#include <string.h>

#include "base/pb.h"

#define EVENTS_MOST 400000u // of all runs together
#define NEAR_NS 1.0         // instructions of one place so near to each other are one event

enum { STAT_SOURCE = 1, STAT_OP };

static void field_text(Buf *b, uint32_t field, const char *s) { pb_put_bytes(b, field, s, strlen(s)); }
static void field_message(Buf *b, uint32_t field, Buf *message) {
    pb_put_bytes(b, field, message->at, message->n);
    message->n = 0;
}

typedef struct Span { // an event of a program, relative to its begin
    double begin_ns, end_ns;
    uint32_t loc;
} Span;

typedef struct Track {
    VEC(Span) spans;
} Track;

typedef struct Made { // a program's events by track
    Track tracks[CLOCK_TRACKS];
    uint32_t count, first_id; // of its metadata: program, then its places
} Made;

static uint32_t loc_of(const Artifact *art, uint32_t pc) {
    uint32_t loc = art->code_loc ? art->code_loc[pc] : 0;
    return loc < art->nlocs ? loc : 0;
}

static int span_order(const void *x, const void *y) {
    const Span *a = x, *b = y;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

// Events of a line may not overlap: one that begins inside another is cut.
static void spans_make(Arena *a, const XProgram *p, Made *m) {
    for (uint32_t i = 0; i < p->clock->events.n; i++) {
        const ClockEvent *e = &p->clock->events.at[i];
        if (!e->core)
            VEC_PUSH(a, &m->tracks[e->track].spans, ((Span){e->begin_ns, e->end_ns, loc_of(p->art, e->inst)}));
    }
    for (int t = 0; t < CLOCK_TRACKS; t++) {
        Track *tr = &m->tracks[t];
        uint32_t n = 0;
        if (tr->spans.n)
            qsort(tr->spans.at, tr->spans.n, sizeof *tr->spans.at, span_order);
        for (uint32_t i = 0; i < tr->spans.n; i++) {
            Span s = tr->spans.at[i], *last = n ? &tr->spans.at[n - 1] : NULL;
            if (last && s.loc == last->loc && s.begin_ns <= last->end_ns + NEAR_NS) {
                last->end_ns = s.end_ns > last->end_ns ? s.end_ns : last->end_ns;
                continue;
            }
            if (last && s.begin_ns < last->end_ns)
                s.begin_ns = last->end_ns;
            if (s.end_ns > s.begin_ns)
                tr->spans.at[n++] = s;
        }
        tr->spans.n = n;
        m->count += n;
    }
}

static void stat_put(Buf *meta, Buf *tmp, uint32_t id, const char *text) {
    pb_put_int(tmp, 1, id);
    field_text(tmp, 5, text);
    field_message(meta, 5, tmp);
}

// One row of the plane's table of event names.
static void metadata_put(Arena *a, Buf *plane, uint32_t id, const char *name, const ArtLoc *l) {
    Buf meta = {.arena = a}, tmp = {.arena = a}, row = {.arena = a};
    pb_put_int(&meta, 1, id);
    field_text(&meta, 2, name);
    if (l && l->file && *l->file)
        stat_put(&meta, &tmp, STAT_SOURCE, arena_printf(a, "%s:%u", l->file, l->line));
    if (l && l->op)
        stat_put(&meta, &tmp, STAT_OP, hlo_op_rows[l->op].name);
    pb_put_int(&row, 1, id);
    field_message(&row, 2, &meta);
    field_message(plane, 4, &row);
}

static void names_put(Arena *a, Buf *plane, const XProgram *p, const Made *m) {
    metadata_put(a, plane, m->first_id, p->name, NULL);
    for (uint32_t i = 0; i < p->art->nlocs; i++) {
        const ArtLoc *l = &p->art->locs[i];
        const char *name = l->name && *l->name ? l->name : l->op ? hlo_op_rows[l->op].name : "control";
        metadata_put(a, plane, m->first_id + 1 + i, name, l);
    }
    if (!p->art->nlocs)
        metadata_put(a, plane, m->first_id + 1, "control", NULL);
}

static void event_put(Buf *line, Buf *tmp, uint32_t id, double begin_ns, double end_ns) {
    pb_put_int(tmp, 1, id);
    pb_put_int(tmp, 2, (uint64_t)(begin_ns * 1000));
    pb_put_int(tmp, 3, (uint64_t)((end_ns - begin_ns) * 1000));
    field_message(line, 4, tmp);
}

void xplane_put(Arena *a, const char *name, const XProgram *programs, uint32_t nprograms, const XRun *runs, uint32_t nruns, Buf *out) {
    Made *made = ARENA_NEWN(a, Made, (size_t)nprograms + 1);
    Buf plane = {.arena = a}, tmp = {.arena = a}, lines[CLOCK_TRACKS + 1];
    uint32_t id = 1, left = EVENTS_MOST;
    pb_put_int(&plane, 1, 1);
    field_text(&plane, 2, name);
    for (uint32_t i = 0; i < nprograms; i++) {
        made[i].first_id = id;
        id += programs[i].art->nlocs + 2;
        spans_make(a, &programs[i], &made[i]);
        names_put(a, &plane, &programs[i], &made[i]);
    }
    uint64_t zero = nruns ? runs[0].start_ns : 0;
    double until = 0;
    for (int t = 0; t <= CLOCK_TRACKS; t++) {
        lines[t] = (Buf){.arena = a};
        pb_put_int(&lines[t], 1, (uint64_t)t + 1);
        field_text(&lines[t], 2, t == CLOCK_TRACKS ? "programs" : clock_track_names[t]);
        pb_put_int(&lines[t], 3, zero);
    }
    for (uint32_t r = 0; r < nruns; r++) {
        const Made *m = &made[runs[r].program];
        double at = (double)(runs[r].start_ns > zero ? runs[r].start_ns - zero : 0);
        at = at > until ? at : until;
        until = at + programs[runs[r].program].clock->total_ns;
        event_put(&lines[CLOCK_TRACKS], &tmp, m->first_id, at, until);
        if (m->count > left)
            continue;
        left -= m->count;
        for (int t = 0; t < CLOCK_TRACKS; t++)
            for (uint32_t i = 0; i < m->tracks[t].spans.n; i++) {
                const Span *s = &m->tracks[t].spans.at[i];
                event_put(&lines[t], &tmp, m->first_id + 1 + s->loc, at + s->begin_ns, at + s->end_ns);
            }
    }
    for (int t = CLOCK_TRACKS; t >= 0; t--)
        field_message(&plane, 3, &lines[t]);
    static const char *const stats[] = {"source", "hlo_category"};
    for (uint32_t s = 0; s < 2; s++) {
        Buf meta = {.arena = a}, row = {.arena = a};
        pb_put_int(&meta, 1, s + 1);
        field_text(&meta, 2, stats[s]);
        pb_put_int(&row, 1, s + 1);
        field_message(&row, 2, &meta);
        field_message(&plane, 5, &row);
    }
    field_message(out, 1, &plane);
}
