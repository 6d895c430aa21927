// SPDX-License-Identifier: Apache-2.0
// timeline.c — modelled timelines on their way out: a page, a trace, an XSpace.
#include "rt/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "clock/html.h"
#include "rt/hints.h"

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end);
}

static void page_write(Ctx *ctx, Arena *a, const RtPricing *how, const RtPriced *p, const char *path) {
    View *view = ARENA_NEW(a, View);
    Stalls *stalls = ARENA_NEW(a, Stalls);
    Spills spills;
    Traffic traffic;
    view_make(a, p->art, &p->chip, &p->clock, view);
    stall_make(a, p->art, &p->chip, &p->clock, view, stalls);
    spill_make(a, p->art, &p->chip, &p->clock, view, &spills);
    rt_traffic(ctx, a, how, p, view, stalls, &traffic);
    HtmlRow cost = html_cost(a, &p->cost, p->clock.total_ns);
    RtHint *hints = NULL;
    uint32_t nhints = p->art->program ? rt_hints(a, how, p, p->art->program, p->art->program_bytes, &hints) : 0;
    HtmlReport r = {.art = p->art, .chip = &p->chip, .clock = &p->clock, .view = view, .stalls = stalls, .spills = &spills, .traffic = &traffic,
                    .name = p->art->name && *p->art->name ? p->art->name : "program", .costs = &cost, .ncosts = 1,
                    .hints = rt_hint_rows(a, p, hints, nhints), .nhints = nhints};
    Buf page = {.arena = a};
    html_report(a, &r, &page);
    file_write(ctx, path, page.at, page.n);
}

void rt_timeline_write(Ctx *ctx, Arena *a, const RtPricing *how, const RtPriced *p, const char *path) {
    Buf text = {.arena = a};
    if (ends_with(path, ".html")) {
        page_write(ctx, a, how, p, path);
        return;
    }
    clock_trace(p->art, &p->chip, &p->clock, &text);
    clock_trace_write(ctx, a, path, &text);
}

size_t rt_xspace(otrn_exe *const *exes, uint32_t count, const XRun *runs, uint32_t nruns, uint8_t **out) {
    Ctx ctx = {0};
    Arena arena;
    volatile size_t n = 0;
    jmp_buf here;
    arena_init(&arena, &ctx);
    *out = NULL;
    if (count && CTX_TRY(&ctx, here)) {
        XProgram *programs = ARENA_NEWN(&arena, XProgram, count);
        const char *name = "";
        for (uint32_t i = 0; i < count; i++) {
            RtPriced *p = ARENA_NEW(&arena, RtPriced);
            RtPricing how;
            rt_exe_price(exes[i], &ctx, &arena, NULL, true, &how, p);
            programs[i] = (XProgram){p->art, &p->clock, p->art->name && *p->art->name ? p->art->name : "program"};
            name = arena_printf(&arena, "/device:CUSTOM:opentrn %s (modelled)", p->chip.name);
        }
        Buf bytes = {.arena = &arena};
        xplane_put(&arena, name, programs, count, runs, nruns, &bytes);
        *out = malloc(bytes.n);
        if (*out) {
            memcpy(*out, bytes.at, bytes.n);
            n = bytes.n;
        }
    }
    arena_fini(&arena);
    return n;
}
