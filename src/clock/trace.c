// SPDX-License-Identifier: Apache-2.0
// trace.c — the timeline as trace-event JSON, which Perfetto and chrome://tracing open.
//
// One track for each engine, one for weight loads (they overlap the matmuls), one for collectives, one for each DMA
// queue in use. A slice carries the instruction's number and text, the operation it came from and
// the user's source line. Slices of one track may not overlap: where a queue's transfers do, a
// slice is drawn from the end of the one before it, and its exact begin stands in the arguments.
// An arrow goes from an instruction to the one whose engine stood still until it was over. Counters tell how full
// the memories are. Two cores with programs of their own are two processes.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/gzip.h"
#include "clock/traffic.h"
#include "clock/view.h"
#include "mach/price.h"

#define JUST_PS 2000000 // a wait ends so soon after what it waits for

enum { TID_WEIGHTS = ENG_COUNT, TID_COLLECTIVES, TID_QUEUE, TID_COUNT = TID_QUEUE + DMA_QUEUES };

static int tid_of(const IsaInst *in) {
    switch (isa_rows[in->op].cost) {
    case COST_DMA:
        return TID_QUEUE + in->queue;
    case COST_LDWEIGHTS:
        return TID_WEIGHTS;
    case COST_COLLECTIVE:
        return TID_COLLECTIVES;
    default:
        return in->engine;
    }
}

static void put_json(Buf *out, const char *s, size_t n) {
    put_u8(out, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f) // other bytes as Latin-1: the trace must stay valid UTF-8
            buf_printf(out, "\\u%04x", c);
        else
            put_u8(out, c);
    }
    put_u8(out, '"');
}

static void put_text(Buf *out, const char *s) { put_json(out, s ? s : "", s ? strlen(s) : 0); }

typedef struct Trace {
    const Artifact *art;
    const Clock *c;
    double from_ns, to_ns;
    double last_end[2][TID_COUNT];
    Buf *out;
    Buf text; // of the instruction at hand
} Trace;

static const Artifact *core_art(const Trace *t, const ClockEvent *e) {
    return e->core && t->art->peer ? t->art->peer : t->art;
}

// In the window, and of a core with a program of its own.
static bool is_shown(const Trace *t, const ClockEvent *e) {
    return e->end_ns >= t->from_ns && e->begin_ns <= t->to_ns && (!e->core || t->art->peer);
}

static void put_track(Buf *out, int pid, int tid, const char *name) {
    buf_printf(out, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":", pid, tid);
    put_text(out, name);
    buf_printf(out,
               "}},\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_sort_index\","
               "\"args\":{\"sort_index\":%d}}",
               pid, tid, tid);
}

static void put_tracks(const Trace *t) {
    bool used[2][TID_COUNT] = {{0}};
    for (uint32_t i = 0; i < t->c->events.n; i++) {
        const ClockEvent *e = &t->c->events.at[i];
        if (is_shown(t, e))
            used[e->core][tid_of(&core_art(t, e)->code[e->inst])] = true;
    }
    for (int core = 0; core < 2; core++)
        for (int tid = 0; tid < TID_COUNT; tid++) {
            char name[32];
            if (!used[core][tid])
                continue;
            snprintf(name, sizeof name, "dma queue %d", tid - TID_QUEUE);
            put_track(t->out, core + 1, tid,
                      tid < ENG_COUNT ? engine_names[tid] : tid == TID_WEIGHTS ? "tensor weights" : tid == TID_COLLECTIVES ? "collectives" : name);
        }
}

static const char *slice_name(const Artifact *art, const IsaInst *in) {
    int cost = isa_rows[in->op].cost;
    bool is_kernel = (cost == COST_KERNEL || cost == COST_COLLECTIVE) && (uint32_t)in->imm < art->nkerns;
    return is_kernel ? hlo_op_rows[art->kerns[in->imm].op].name : isa_rows[in->op].name;
}

static void put_source(const Artifact *art, uint32_t pc, Buf *out) {
    uint32_t loc = art->code_loc ? art->code_loc[pc] : 0;
    if (!loc || loc >= art->nlocs)
        return;
    const ArtLoc *l = &art->locs[loc];
    if (l->op) {
        buf_puts(out, ",\"op\":");
        put_text(out, hlo_op_rows[l->op].name);
    }
    if (l->file && l->file[0]) {
        buf_puts(out, ",\"file\":");
        put_text(out, l->file);
        buf_printf(out, ",\"line\":%u", l->line);
    }
    if (l->name && l->name[0]) {
        buf_puts(out, ",\"name\":");
        put_text(out, l->name);
    }
}

// A collective's group, and what a device sends.
static void put_group(const Artifact *art, const IsaInst *in, const Price *p, Buf *out) {
    TrafficRow r = traffic_row(&art->kerns[in->imm], p, art->partitions ? art->partitions : 1);
    buf_printf(out, ",\"devices\":%u,\"apart\":%u,\"bytes\":%.0f,\"algorithm\":\"%s\",\"reach\":\"%s\"", r.ranks, r.stride, p->link_bytes,
               fabric_way_names[r.way], link_place_names[r.reach]);
}

static void put_slice(Trace *t, const ClockEvent *e) {
    const Artifact *art = core_art(t, e);
    const IsaInst *in = &art->code[e->inst];
    Buf *out = t->out;
    int tid = tid_of(in);
    double *last = &t->last_end[e->core][tid];
    double begin = e->begin_ns > *last ? e->begin_ns : *last;
    double end = e->end_ns > begin ? e->end_ns : begin;
    *last = end;
    buf_printf(out, ",\n{\"ph\":\"X\",\"pid\":%d,\"name\":", e->core + 1);
    put_text(out, slice_name(art, in));
    buf_printf(out, ",\"cat\":\"%s\",\"tid\":%d,\"ts\":%.6f,\"dur\":%.6f,\"args\":{\"pc\":%u",
               clock_track_names[e->track], tid, begin * 1e-3, (end - begin) * 1e-3, e->inst);
    if (begin != e->begin_ns)
        buf_printf(out, ",\"begin_us\":%.6f", e->begin_ns * 1e-3);
    if (in->op == ISA_COLLECTIVE)
        put_group(art, in, &(e->core && t->c->peer_price ? t->c->peer_price : t->c->price)[e->inst], out);
    put_source(art, e->inst, out);
    buf_puts(out, ",\"inst\":");
    t->text.n = 0;
    isa_print(in, &t->text);
    put_json(out, (const char *)t->text.at, t->text.n);
    buf_puts(out, "}}");
}

// An end of an arrow lies inside its slice.
static void put_end(const Trace *t, const char *phase, uint32_t id, uint32_t event, double ns) {
    const ClockEvent *e = &t->c->events.at[event];
    buf_printf(t->out, ",\n{\"ph\":%s,\"id\":%u,\"pid\":%d,\"tid\":%d,\"ts\":%.6f,\"name\":\"wait\",\"cat\":\"wait\"}", phase, id,
               e->core + 1, tid_of(&core_art(t, e)->code[e->inst]), ns * 1e-3);
}

static void put_arrows(const Trace *t) {
    const Clock *c = t->c;
    for (uint32_t i = 0; i < c->links.n; i++) {
        const ClockLink *l = &c->links.at[i];
        bool waits = (l->issue_cause == CLOCK_WAIT || l->issue_cause == CLOCK_ALL || l->issue_cause == CLOCK_PARTNER) &&
                     l->issue_by != CLOCK_NOBODY && l->gap > 0;
        if (!waits || !is_shown(t, &c->events.at[i]) || !is_shown(t, &c->events.at[l->issue_by]))
            continue;
        const ClockLink *m = &c->links.at[l->issue_by];
        if (l->issue - m->done > JUST_PS || l->issue < m->end)
            continue; // iterations that were added lie between
        put_end(t, "\"s\"", i, l->issue_by, fmax((double)m->end * 1e-3 - 0.001, (double)m->begin * 1e-3));
        put_end(t, "\"f\",\"bp\":\"e\"", i, i, (double)l->begin * 1e-3);
    }
}

// A counter track for each memory: a point where its bin differs from the one before.
static void put_counters(const Trace *t, const ChipFile *chip) {
    const Clock *c = t->c;
    Buf *out = t->out;
    View *view = ARENA_NEW(out->arena, View);
    if (c->events.n)
        view_occupy(out->arena, t->art, chip, c, view);
    double bin_ns = c->total_ns / VIEW_BINS;
    for (int m = 0; m < VIEW_MEMORIES && c->events.n; m++) {
        double last = -1;
        for (int b = 0; b < VIEW_BINS; b++) {
            double bytes = view->memory[m].bins[b];
            if (bytes != last && bin_ns * (b + 1) >= t->from_ns && bin_ns * b <= t->to_ns) {
                buf_printf(out, ",\n{\"ph\":\"C\",\"pid\":1,\"name\":\"%s bytes\",\"ts\":%.6f,\"args\":{\"bytes\":%.0f}}",
                           view_memory_names[m], bin_ns * b * 1e-3, bytes);
                last = bytes;
            }
        }
        buf_printf(out, ",\n{\"ph\":\"C\",\"pid\":1,\"name\":\"%s bytes\",\"ts\":%.6f,\"args\":{\"bytes\":0}}",
                   view_memory_names[m], fmin(c->total_ns, t->to_ns) * 1e-3);
    }
}

static void put_process(const Trace *t, const ChipFile *chip, int core) {
    Buf title = {.arena = t->out->arena};
    buf_printf(t->out, "%s{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":", core ? ",\n" : "", core + 1);
    buf_printf(&title, "%s on %s (modelled%s)", t->art->name ? t->art->name : "", chip->name,
               !t->art->peer ? "" : core ? ", core 1" : ", core 0");
    put_json(t->out, (const char *)title.at, title.n);
    buf_puts(t->out, "}}");
}

void clock_trace_window(const Artifact *art, const ChipFile *chip, const Clock *c, double from_ns, double to_ns, Buf *out) {
    Trace *t = ARENA_NEW(out->arena, Trace);
    *t = (Trace){.art = art, .c = c, .from_ns = from_ns, .to_ns = to_ns, .out = out, .text = {.arena = out->arena}};
    buf_puts(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"target\":");
    put_text(out, chip->name);
    buf_printf(out,
               ",\"total_us\":\"%.6f\",\"unknown_loops\":\"%" PRIu64 "\"},\n\"traceEvents\":[\n",
               c->total_ns * 1e-3, c->unknown_loops);
    put_process(t, chip, 0);
    if (art->peer)
        put_process(t, chip, 1);
    put_tracks(t);
    for (uint32_t i = 0; i < c->events.n; i++)
        if (is_shown(t, &c->events.at[i]))
            put_slice(t, &c->events.at[i]);
    put_arrows(t);
    put_counters(t, chip);
    buf_puts(out, "\n]}\n");
}

void clock_trace(const Artifact *art, const ChipFile *chip, const Clock *c, Buf *out) {
    clock_trace_window(art, chip, c, 0, INFINITY, out);
}

void clock_trace_write(Ctx *ctx, Arena *a, const char *path, const Buf *text) {
    size_t n = strlen(path);
    Buf packed = {.arena = a};
    bool pack = n > 3 && !strcmp(path + n - 3, ".gz");
    if (pack)
        gzip_put(text->at, text->n, &packed);
    file_write(ctx, path, pack ? packed.at : text->at, pack ? packed.n : text->n);
}
