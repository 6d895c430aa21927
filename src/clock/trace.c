// SPDX-License-Identifier: Apache-2.0
// trace.c — the timeline as trace-event JSON, which Perfetto and chrome://tracing open.
//
// One track for each engine, one for weight loads (they overlap the matmuls), one for each DMA
// queue in use. A slice carries the instruction's number and text, the operation it came from and
// the user's source line. Slices of one track may not overlap: where a queue's transfers do, a
// slice is drawn from the end of the one before it, and its exact begin stands in the arguments.
// Counters tell how full the memories are.
#include <inttypes.h>
#include <stdio.h>

#include "clock/view.h"

enum { TID_WEIGHTS = ENG_COUNT, TID_QUEUE, TID_COUNT = TID_QUEUE + DMA_QUEUES };

static int tid_of(const IsaInst *in) {
    switch (isa_rows[in->op].cost) {
    case COST_DMA:
        return TID_QUEUE + in->queue;
    case COST_LDWEIGHTS:
        return TID_WEIGHTS;
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

static void put_track(Buf *out, int tid, const char *name) {
    buf_printf(
        out,
        ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":", tid);
    put_text(out, name);
    buf_printf(out,
               "}},\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_sort_index\","
               "\"args\":{\"sort_index\":%d}}",
               tid, tid);
}

static void put_tracks(const Artifact *art, const Clock *c, Buf *out) {
    bool used[TID_COUNT] = {0};
    for (uint32_t i = 0; i < c->events.n; i++)
        if (!c->events.at[i].core)
            used[tid_of(&art->code[c->events.at[i].inst])] = true;
    for (int tid = 0; tid < TID_COUNT; tid++) {
        char name[32];
        if (!used[tid])
            continue;
        if (tid < ENG_COUNT)
            put_track(out, tid, engine_names[tid]);
        else if (tid == TID_WEIGHTS)
            put_track(out, tid, "tensor weights");
        else {
            snprintf(name, sizeof name, "dma queue %d", tid - TID_QUEUE);
            put_track(out, tid, name);
        }
    }
}

static const char *slice_name(const Artifact *art, const IsaInst *in) {
    bool is_kernel = isa_rows[in->op].cost == COST_KERNEL && (uint32_t)in->imm < art->nkerns;
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

static void put_slice(const Artifact *art, const ClockEvent *e, double *last_end, Buf *out) {
    const IsaInst *in = &art->code[e->inst];
    int tid = tid_of(in);
    double begin = e->begin_ns > last_end[tid] ? e->begin_ns : last_end[tid];
    double end = e->end_ns > begin ? e->end_ns : begin;
    last_end[tid] = end;
    buf_puts(out, ",\n{\"ph\":\"X\",\"pid\":1,\"name\":");
    put_text(out, slice_name(art, in));
    buf_printf(out, ",\"cat\":\"%s\",\"tid\":%d,\"ts\":%.6f,\"dur\":%.6f,\"args\":{\"pc\":%u",
               clock_track_names[e->track], tid, begin * 1e-3, (end - begin) * 1e-3, e->inst);
    if (begin != e->begin_ns)
        buf_printf(out, ",\"begin_us\":%.6f", e->begin_ns * 1e-3);
    put_source(art, e->inst, out);
    buf_puts(out, ",\"inst\":");
    Buf text = {.arena = out->arena};
    isa_print(in, &text);
    put_json(out, (const char *)text.at, text.n);
    buf_puts(out, "}}");
}

// A counter track for each memory: a point where its bin differs from the one before.
static void put_counters(const Artifact *art, const ChipFile *chip, const Clock *c, Buf *out) {
    View *view = ARENA_NEW(out->arena, View);
    if (c->events.n)
        view_occupy(out->arena, art, chip, c, view);
    for (int m = 0; m < VIEW_MEMORIES && c->events.n; m++) {
        double last = -1;
        for (int b = 0; b < VIEW_BINS; b++) {
            double bytes = view->memory[m].bins[b];
            if (bytes != last)
                buf_printf(out, ",\n{\"ph\":\"C\",\"pid\":1,\"name\":\"%s bytes\",\"ts\":%.6f,\"args\":{\"bytes\":%.0f}}",
                           view_memory_names[m], c->total_ns / VIEW_BINS * b * 1e-3, bytes);
            last = bytes;
        }
        buf_printf(out, ",\n{\"ph\":\"C\",\"pid\":1,\"name\":\"%s bytes\",\"ts\":%.6f,\"args\":{\"bytes\":0}}",
                   view_memory_names[m], c->total_ns * 1e-3);
    }
}

void clock_trace(const Artifact *art, const ChipFile *chip, const Clock *c, Buf *out) {
    buf_puts(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"target\":");
    put_text(out, chip->name);
    buf_printf(out,
               ",\"total_us\":\"%.6f\",\"unknown_loops\":\"%" PRIu64 "\"},\n\"traceEvents\":[\n",
               c->total_ns * 1e-3, c->unknown_loops);
    buf_puts(out, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
    Buf title = {.arena = out->arena};
    buf_printf(&title, "%s on %s (modelled)", art->name ? art->name : "", chip->name);
    put_json(out, (const char *)title.at, title.n);
    buf_puts(out, "}}");
    put_tracks(art, c, out);
    double last_end[TID_COUNT] = {0};
    for (uint32_t i = 0; i < c->events.n; i++)
        if (!c->events.at[i].core)
            put_slice(art, &c->events.at[i], last_end, out);
    put_counters(art, chip, c, out);
    buf_puts(out, "\n]}\n");
}
