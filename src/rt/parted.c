// SPDX-License-Identifier: Apache-2.0
// parted.c — the program of one device as a program again: what a front end shows as the compiled text; and the
// program of all with calls answered by whoever cuts them; and a program of another form as StableHLO.
#include <string.h>

#include "pass/walk.h"
#include "read/read.h"
#include "rt/rt.h"
#include "write/write.h"

// What it said about all devices is done.
static void marks_drop(Hlo *h, Arena *a) {
    HloFunc *f = hlo_main(h);
    f->arg_attrs = f->res_attrs = NULL;
    f->narg_attrs = f->nres_attrs = NULL;
    HloNamed *kept = ARENA_NEWN(a, HloNamed, h->nextra + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->nextra; i++)
        if (strcmp(h->extra[i].name, "sdy.meshes"))
            kept[n++] = h->extra[i];
    h->extra = kept;
    h->nextra = n;
}

// How results lie on the devices, where XLA looks for it.
static void results_say(Hlo *h, Arena *a, const char *results) {
    HloNamed *more = ARENA_NEWN(a, HloNamed, h->nextra + 1);
    memcpy(more, h->extra, h->nextra * sizeof *more);
    more[h->nextra++] = (HloNamed){"mhlo.spmd_output_sharding", {.kind = HA_STR, .n = (uint32_t)strlen(results), .s = results}};
    h->extra = more;
}

void rt_parted(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, const char *results, Buf *out) {
    static const char *const wanted[] = {"inline", "spmd", "dce"};
    Hlo *h = read_program(ctx, a, name, bytes, size);
    hlo_verify(h);
    Compile c = {.ctx = ctx, .arena = a, .scratch = a, .hlo = h};
    for (int i = 0; i < pass_count; i++)
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
            if (!strcmp(pass_rows[i].name, wanted[k]))
                pass_run(&pass_rows[i], &c);
    buckets_join(&c, false);
    marks_drop(h, a);
    if (*results)
        results_say(h, a, results);
    write_bytecode(h, out);
}

void rt_stablehlo(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, int64_t partitions, bool open, Buf *out) {
    Hlo *h = (open ? read_program_open : read_program)(ctx, a, name, bytes, size);
    if (partitions > 1 && !hlo_named_find(h->extra, h->nextra, "mhlo.num_partitions"))
        read_partitions(h, partitions);
    read_xla_calls(h);
    hlo_verify(h);
    bool manual = false; // bytecode has no form for that
    for (OpId id = 1; id < h->ops.n; id++)
        manual |= hlo_at(h, id)->code == HLO_SDY_MANUAL_COMPUTATION;
    if (manual)
        hlo_print(h, out, true);
    else
        write_bytecode(h, out);
}

bool rt_custom(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, const CustomAsk *who, Buf *out) {
    Hlo *h = read_program(ctx, a, name, bytes, size);
    hlo_verify(h);
    Compile c = {.ctx = ctx, .arena = a, .scratch = a, .hlo = h};
    pass_inline(&c);
    if (!spmd_custom(&c, who))
        return false;
    hlo_verify(h);
    hlo_print(h, out, true);
    return true;
}

const LayoutOrder *rt_layouts(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size) {
    Hlo *h = read_program(ctx, a, name, bytes, size);
    hlo_verify(h);
    Compile c = {.ctx = ctx, .arena = a, .scratch = a, .hlo = h};
    pass_inline(&c);
    pass_formats(&c);
    const HloFunc *f = hlo_main(h);
    LayoutOrder *orders = ARENA_NEWN(a, LayoutOrder, f->nargs + f->nresults + 1);
    return layouts_said(h, orders) ? orders : NULL;
}
