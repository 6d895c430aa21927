// SPDX-License-Identifier: Apache-2.0
// check_range.c — which instructions left the ranges of act.def; see check_range.h.
#include "chip/core/check_range.h"

#include <math.h>

#define LINES_MAX 10

static bool has_range(int fn) { return isfinite(act_rows[fn].lo) || isfinite(act_rows[fn].hi); }

bool check_range_wanted(const IsaInst *in) {
    return (in->op == ISA_ACTIVATE || in->op == ISA_ACTIVATE2) && has_range(in->fn);
}

static bool in_range(int fn, float x) {
    const ActRow *r = &act_rows[fn];
    bool too_small = fn == ACT_RECIPROCAL && fabsf(x) < 0x1p-42f; // its range has a gap around zero
    return (x >= r->lo && x <= r->hi && !too_small) || isnan(x);
}

float *check_range_room(CheckRange *r, size_t elems) {
    if (elems > r->room_elems) {
        r->room = ARENA_NEWN(r->arena, float, elems);
        r->room_elems = elems;
    }
    return r->room;
}

void check_range_look(CheckRange *r, const Artifact *art, uint32_t pc, uint32_t parts, size_t cols) {
    int fn = art->code[pc].fn;
    RangeNote note = {.pc = pc};
    for (size_t i = 0; i < parts * cols; i++) {
        if (in_range(fn, r->room[i]))
            continue;
        if (!note.count++) {
            note.first = r->room[i];
            note.part = (uint32_t)(i / cols);
            note.elem = (uint32_t)(i % cols);
        }
    }
    if (!note.count)
        return;
    for (uint32_t i = 0; i < r->notes.n; i++)
        if (r->notes.at[i].pc == pc) {
            r->notes.at[i].count += note.count;
            return;
        }
    VEC_PUSH(r->arena, &r->notes, note);
}

void check_range_print(const CheckRange *r, const Artifact *art, Buf *out) {
    for (uint32_t i = 0; i < r->notes.n && i < LINES_MAX; i++) {
        const RangeNote *n = &r->notes.at[i];
        const IsaInst *in = &art->code[n->pc];
        const ActRow *fn = &act_rows[in->fn];
        const ArtLoc *loc = &art->locs[art->code_loc[n->pc]];
        if (loc->file && *loc->file)
            buf_printf(out, "%s:%u:%u: ", loc->file, loc->line, loc->col);
        buf_printf(out, "note: instruction %u (%s: %s): %llu argument%s of %s outside %g … %g%s, the first is %.9g (partition %u, element %u): %s\n",
                   n->pc, engine_names[in->engine], isa_rows[in->op].name, (unsigned long long)n->count, n->count > 1 ? "s" : "", fn->name,
                   fn->lo, fn->hi, in->fn == ACT_RECIPROCAL ? " or nearer to zero than 2^-42" : "", (double)n->first,
                   addr_part(in->src) + n->part, n->elem,
                   in->fn == ACT_SIN ? "there is no range reduction, its cubic goes on" : "the hardware's results there are not valid");
    }
    if (r->notes.n > LINES_MAX)
        buf_printf(out, "note: %u more instructions like these\n", r->notes.n - LINES_MAX);
}
