// SPDX-License-Identifier: Apache-2.0
// load.c — a program as the core holds it: every kernel and instruction is one it executes, products know which way they
// go, the host's plan is made, and what a run writes has its room.
#include <stdio.h>
#include <string.h>

#include "chip/core/chip.h"
#include "chip/core/core.h"
#include "chip/host/flow.h"
#include "chip/host/matmul.h"

// The source place of the first instruction that runs a kernel, on either core.
static Place kern_place(const Artifact *art, uint32_t kern) {
    for (uint32_t i = 0; i < art->ncode; i++)
        if (artifact_shape(art, i)->op == ISA_KERNEL && (uint32_t)artifact_shape(art, i)->imm == kern) {
            const ArtLoc *loc = &art->locs[art->code_loc[i]];
            return (Place){*loc->file ? loc->file : NULL, loc->line, loc->col};
        }
    return art->peer ? kern_place(art->peer, kern) : NO_PLACE;
}

#define NAMED 16 // of those that are missing

// Of the kernels the chip lacks, the one that stands first in the user's file: their order in the program is the compiler's.
static uint32_t first_lacking(const Artifact *art, uint32_t kern) {
    Place first = kern_place(art, kern);
    for (uint32_t i = kern + 1; i < art->nkerns && first.file; i++) {
        Place at = gp_find(&art->kerns[i]) ? NO_PLACE : kern_place(art, i);
        if (at.file && !strcmp(at.file, first.file) && at.line < first.line)
            first = at, kern = i;
    }
    return kern;
}

// All kernels the chip lacks: the first is the error, the others, each with its line, are the hint.
static _Noreturn void no_kernel(Ctx *ctx, const Artifact *art, uint32_t lacking) {
    char more[sizeof ctx->err.hint];
    uint32_t n = 0, kern = first_lacking(art, lacking);
    size_t used = 0;
    for (uint32_t i = lacking; i < art->nkerns; i++) {
        const Kern *k = &art->kerns[i];
        if (i == kern || gp_find(k))
            continue;
        if (n++ >= NAMED)
            continue;
        Place at = kern_place(art, i);
        char one[400];
        int len = snprintf(one, sizeof one, "%s%s%.150s at %.150s:%u", n > 1 ? ", " : "", *k->target ? "@" : "",
                           *k->target ? k->target : hlo_op_rows[k->op].name, at.file ? at.file : "?", at.line);
        if (len > 0 && used + (size_t)len + 130 < sizeof more) { // room for the words around the list
            memcpy(more + used, one, (size_t)len + 1);
            used += (size_t)len;
        }
    }
    const Kern *k = &art->kerns[kern];
    bool lapack = !strncmp(k->target, "lapack_", 7); // on other platforms linalg.py
    const char *lower = lapack ? "JAX calls it on its CPU; lowered for opentrn a program has operations instead" : "";
    if (n)
        ctx_hint(ctx, "%s%s%u more have none: %.*s", lower, *lower ? "; " : "", n, (int)used, more);
    else if (*lower)
        ctx_hint(ctx, "%s", lower);
    const HloOpRow *row = &hlo_op_rows[k->op];
    int dtype = k->nin ? k->in[0].dtype : k->nout ? k->out[0].dtype : DT_INVALID;
    ctx_fail(ctx, OTRN_UNSUPPORTED, kern_place(art, kern), "%s.%s%s%s on %s has no kernel yet",
             hlo_dialect_names[row->dialect], row->name, *k->target ? " @" : "", k->target, dtype_row(dtype)->name);
}

static bool executes(const IsaInst *in) {
    switch ((IsaCost)isa_rows[in->op].cost) {
    case COST_CONTROL:
    case COST_STREAM:
    case COST_BARRIER:
    case COST_BRANCH:
    case COST_LOOP:
    case COST_REG:
    case COST_REGLOAD:
    case COST_KERNEL:
    case COST_COLLECTIVE:
    case COST_ACTLOAD:
        return true;
    default:
        return in->op == ISA_DMA_TRANSPOSE || effect_find(in->op);
    }
}

void chip_check(Ctx *ctx, const Artifact *art) {
    for (uint32_t i = 0; i < art->nkerns; i++)
        if (!gp_find(&art->kerns[i]))
            no_kernel(ctx, art, i);
    bool all = art->shapes;
    for (uint32_t i = 0; all && i < art->shapes->n; i++)
        all = executes(&art->shapes->at[i].in);
    for (uint32_t i = 0; !all && i < art->ncode; i++)
        if (!executes(artifact_shape(art, i))) {
            const ArtLoc *loc = &art->locs[art->code_loc[i]];
            ctx_fail(ctx, OTRN_UNSUPPORTED, (Place){*loc->file ? loc->file : NULL, loc->line, loc->col},
                     "instruction %u: `%s` is not executed yet", i, isa_rows[artifact_shape(art, i)->op].name);
        }
}

static bool pe_whole(const IsaInst *in) {
    return (!in->trows || in->trows == ISA_PE_ROWS) && (!in->tcols || in->tcols == ISA_PE_COLS) &&
           !(in->flags & (ISA_FLAG_DOUBLE_ROW | ISA_FLAG_TRANSPOSE));
}

static uint8_t *pe_ways(Arena *a, const Artifact *art, const IsaShapes *shapes) {
    uint8_t *ways = ARENA_NEWN(a, uint8_t, (size_t)art->ncode + 1);
    uint32_t load[4][4] = {0}; // the ldweights before this place, by the quarter its tile begins at
    for (uint32_t i = 0; i < art->ncode; i++) {
        const IsaInst *in = shape_inst(shapes, i);
        if (in->op != ISA_LDWEIGHTS && in->op != ISA_MATMUL)
            continue;
        uint32_t *from = &load[in->trow / 32 & 3][in->tcol / 32 & 3];
        if (in->op == ISA_LDWEIGHTS) {
            *from = i;
            ways[i] = pe_whole(in) ? 0 : PE_RARE;
            continue;
        }
        bool whole = pe_whole(in) && pe_whole(shape_inst(shapes, *from)) && (!in->dtype || in->dtype == DT_F32);
        bool rows = in->d[1] == 1 && in->d[3] == (int32_t)in->n[1]; // side by side in PSUM
        ways[i] = whole && isa_count(in->n[3]) == 1 ? PE_PLAIN : whole && rows ? PE_ROWS : PE_RARE;
        ways[*from] |= ways[i];
    }
    return ways;
}

static const uint8_t *pe_plain(Arena *a, const Artifact *art, const uint8_t *ways) {
    uint8_t *plain = ARENA_NEWN(a, uint8_t, (size_t)art->ncode + 1);
    for (uint32_t i = 0; i < art->ncode; i++)
        plain[i] = ways[i] == PE_PLAIN;
    return plain;
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static void *aligned(Arena *a, size_t bytes) {
    return (void *)(((uintptr_t)arena_alloc(a, bytes + 64) + 63) & ~(uintptr_t)63);
}

static bool has_unknown_loop(const Artifact *art) {
    for (uint32_t i = 0; i < art->nloops; i++)
        if (!art->loops[i].trips || art->loops[i].trips == ART_SELDOM)
            return true;
    for (uint32_t pc = 0; pc < art->ncode; pc++) {
        const IsaInst *in = artifact_shape(art, pc);
        if (in->op == ISA_LOOP && in->breg)
            return true;
    }
    return false;
}

const uint64_t *chip_counts(const ChipProg *p) { return p->counted ? p->counts : NULL; }

static void prog_room(Arena *a, ChipProg *p) { // what a run writes
    p->ptrs = ARENA_NEWN(a, void *, p->nptrs + 1);
    p->scratch = aligned(a, p->scratch_bytes);
    p->wide = p->wide_bytes ? aligned(a, p->wide_bytes) : NULL;
}

ChipProg *chip_load(Ctx *ctx, Arena *a, const Artifact *art, int threads, bool by_chance, Pool *pool) {
    chip_check(ctx, art);
    ChipProg *p = ARENA_NEW(a, ChipProg);
    p->art = art;
    const IsaShapes *shapes = art->shapes ? art->shapes : shapes_find(a, art->code, art->ncode);
    p->dynamic = artifact_dynamic(a, art);
    p->pe = pe_ways(a, art, shapes);
    p->plan = plan_make(a, art, shapes, p->dynamic, pe_plain(a, art, p->pe), pool);
    p->flows = flow_wanted(shapes, art->ncode);
    p->fresh = flow_fresh(shapes);
    p->counts = has_unknown_loop(art) ? ARENA_NEWN(a, uint64_t, (size_t)art->ncode + 1) : NULL;
    for (uint32_t i = 0; i < shapes->n; i++)
        p->narrow |= shapes->at[i].in.op == ISA_LDWEIGHTS && mm_fits_bf16(shapes->at[i].in.stype);
    p->fns = ARENA_NEWN(a, GpFn *, art->nkerns + 1);
    p->chance = by_chance ? ARENA_NEWN(a, GpChance *, art->nkerns + 1) : NULL;
    size_t ptrs = 0, scratch = 0, wide = 0;
    for (uint32_t i = 0; i < art->nkerns; i++) {
        const Kern *k = &art->kerns[i];
        GpChance *g = by_chance ? gp_chance_make(a, k) : NULL;
        p->fns[i] = gp_find(k);
        scratch = most(scratch, gp_scratch_bytes(k, threads));
        ptrs = most(ptrs, k->nin + k->nout);
        if (!g)
            continue;
        p->chance[i] = g;
        scratch = most(scratch, gp_scratch_bytes(&g->wide, threads));
        wide = most(wide, g->bytes);
    }
    p->nptrs = ptrs, p->scratch_bytes = scratch, p->wide_bytes = wide;
    prog_room(a, p);
    return p;
}

ChipProg *chip_share(Arena *a, const ChipProg *from) {
    ChipProg *p = arena_dup(a, from, sizeof *p);
    p->plan = plan_share(a, from->plan);
    p->counted = false;
    if (p->counts)
        p->counts = ARENA_NEWN(a, uint64_t, (size_t)p->art->ncode + 1);
    if (p->chance)
        p->chance = ARENA_NEWN(a, GpChance *, p->art->nkerns + 1);
    for (uint32_t i = 0; p->chance && i < p->art->nkerns; i++)
        p->chance[i] = from->chance[i] ? gp_chance_make(a, &p->art->kerns[i]) : NULL;
    prog_room(a, p);
    return p;
}

bool chip_prog_narrow(const ChipProg *p) { return p->narrow; }
const Artifact *chip_prog_artifact(const ChipProg *p) { return p->art; }
