// SPDX-License-Identifier: Apache-2.0
// spill.c — who reads what somebody else left in HBM's scratch, and why it did not stay on the chip.
//
// HBM's scratch is cut into grains. Going through the timeline, each remembers which line wrote it last, when, and how
// many bytes had gone through SBUF until then; a transfer that reads it is a spill from that line. Bytes of
// transfers inside loops count as often as they run.
#include "clock/spill.h"

#include <stdlib.h>

#include "mach/price.h"

#define GRAINS 65536u

const char *const spill_names[SPILL_WHYS] = {"larger than SBUF", "more than SBUF holds passes in between",
                                             "its reader is a step of its own"};

typedef struct Grain {
    uint32_t line; // 1 + who wrote it; 0: nobody
    double when, moved;
    uint32_t reader; // 1 + the line whose row counted it last
} Grain;

typedef struct Key { // a row's place in a hash table
    uint32_t row; // 1 + row, 0: free
} Key;

typedef struct Work {
    Arena *arena;
    Spills *out;
    Key *keys;
    uint32_t mask, used;
    Grain *grains;
    uint64_t grain_bytes;
    double moved; // bytes so far
} Work;

static uint32_t slot_of(const Work *w, uint32_t from, uint32_t to) {
    uint32_t h = (from * 2654435761u ^ to * 40503u) & w->mask;
    for (; w->keys[h].row; h = (h + 1) & w->mask) {
        const SpillRow *r = &w->out->rows.at[w->keys[h].row - 1];
        if (r->from == from && r->to == to)
            break;
    }
    return h;
}

static void keys_grow(Work *w) {
    w->mask = w->mask ? w->mask * 2 + 1 : 1023;
    w->keys = ARENA_NEWN(w->arena, Key, (size_t)w->mask + 1);
    for (uint32_t i = 0; i < w->out->rows.n; i++)
        w->keys[slot_of(w, w->out->rows.at[i].from, w->out->rows.at[i].to)].row = i + 1;
}

static SpillRow *row_of(Work *w, uint32_t from, uint32_t to) {
    if (w->out->rows.n * 2 >= w->mask)
        keys_grow(w);
    uint32_t h = slot_of(w, from, to);
    if (!w->keys[h].row) {
        VEC_PUSH(w->arena, &w->out->rows, (SpillRow){.from = from, .to = to});
        w->keys[h].row = w->out->rows.n;
    }
    return &w->out->rows.at[w->keys[h].row - 1];
}

static void touch(Work *w, const ViewTouch *t, uint32_t line, double bytes, double begin, double end) {
    uint64_t first = t->lo / w->grain_bytes, last = (t->hi - 1) / w->grain_bytes;
    double part = bytes / (double)(last - first + 1);
    for (uint64_t k = first; k <= last; k++) {
        Grain *g = &w->grains[k];
        if (t->is_write) {
            *g = (Grain){.line = line + 1, .when = end, .moved = w->moved};
            continue;
        }
        if (!g->line)
            continue;
        SpillRow *r = row_of(w, g->line - 1, line);
        r->bytes += part;
        r->between_bytes += part * (w->moved - g->moved);
        r->between_ns += part * (begin > g->when ? begin - g->when : 0);
        if (g->reader != line + 1)
            r->tensor_bytes += (double)w->grain_bytes;
        g->reader = line + 1;
    }
}

static int row_order(const void *x, const void *y) {
    const SpillRow *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->from != b->from ? (a->from < b->from ? -1 : 1) : a->to < b->to ? -1 : a->to > b->to;
}

void spill_make(Arena *a, const Artifact *art, const ChipFile *chip, const Clock *clock, const View *view, Spills *out) {
    *out = (Spills){0};
    if (!art->scratch_bytes || !clock->events.n)
        return;
    uint32_t *counts;
    ViewTouch **touches = view_touches(a, art, chip, &counts);
    Work w = {.arena = a, .out = out};
    w.grain_bytes = (art->scratch_bytes + GRAINS - 1) / GRAINS;
    w.grain_bytes = w.grain_bytes < 512 ? 512 : w.grain_bytes;
    w.grains = ARENA_NEWN(a, Grain, art->scratch_bytes / w.grain_bytes + 2);
    double sbuf = chip->sbuf_usable_bytes * PARTITIONS;
    double *seen = ARENA_NEWN(a, double, (size_t)art->ncode + 1); // events of each instruction
    for (uint32_t i = 0; i < clock->events.n; i++)
        if (!clock->events.at[i].core)
            seen[clock->events.at[i].inst]++;
    for (uint32_t i = 0; i < clock->events.n; i++) {
        const ClockEvent *e = &clock->events.at[i];
        if (e->core || isa_rows[art->code[e->inst].op].cost != COST_DMA)
            continue;
        double bytes = clock->price[e->inst].hbm_bytes * view->times_of[0][e->inst] / seen[e->inst];
        for (int pass = 0; pass < 2; pass++) // reads come first
            for (uint32_t k = 0; k < counts[e->inst]; k++) {
                const ViewTouch *t = &touches[e->inst][k];
                if (t->memory == VIEW_HBM && t->is_write == pass)
                    touch(&w, t, view->line_of[0][e->inst], bytes, e->begin_ns, e->end_ns);
            }
        w.moved += bytes;
    }
    for (uint32_t i = 0; i < out->rows.n; i++) {
        SpillRow *r = &out->rows.at[i];
        r->between_bytes /= r->bytes > 0 ? r->bytes : 1;
        r->between_ns /= r->bytes > 0 ? r->bytes : 1;
        r->why = r->tensor_bytes > sbuf ? SPILL_LARGE : r->between_bytes > sbuf ? SPILL_LONG : SPILL_STEP;
        out->bytes += r->bytes;
    }
    if (out->rows.n)
        qsort(out->rows.at, out->rows.n, sizeof *out->rows.at, row_order);
}
