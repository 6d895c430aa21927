// SPDX-License-Identifier: Apache-2.0
// explain.c — what a compiled program became: `otrn compile --explain` and `otrn check PROG`.
//
// Per source line: its instructions, the engine they keep busy, the share of the run; what stayed on GpSimd and
// why; the tensors that fill HBM; a verdict, which is also the exit status.
#include "tools/explain.h"

#include <stdlib.h>
#include <string.h>

#include "rt/rt.h"

#define BECAME_WIDTH 45
#define MORE ", ..." // ASCII: it is part of a column
#define LIVE_SHOWN 8
#define SPILLS_SHOWN 5

const VerdictRow verdicts[VERDICT_COUNT] = {
    [VERDICT_SUPPORTED] = {0, "supported"},
    [VERDICT_SLOW] = {3, "runs, but much of it on GpSimd"},
    [VERDICT_TOO_LARGE] = {4, "does not fit"},
    [VERDICT_UNSUPPORTED] = {5, "not supported"},
};

// --- what a line became ----------------------------------------------------------------------------

typedef struct Count {
    const char *name;
    uint32_t n;
} Count;

static int count_order(const void *a, const void *b) {
    const Count *x = a, *y = b;
    return x->n != y->n ? (x->n > y->n ? -1 : 1) : strcmp(x->name, y->name);
}

static const char *inst_name(const Artifact *art, const IsaInst *in) {
    int cost = isa_rows[in->op].cost;
    if ((cost == COST_KERNEL || cost == COST_COLLECTIVE) && (uint32_t)in->imm < art->nkerns)
        return hlo_op_rows[art->kerns[in->imm].op].name;
    return isa_rows[in->op].name;
}

// "64 matmul, 64 ldweights, 8 dma" of a line's instructions.
static const char *became(Arena *a, const Artifact *art, const IsaInst *const *insts, uint32_t n) {
    Count counts[ISA_OP_COUNT + 64];
    uint32_t have = 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = inst_name(art, insts[i]);
        uint32_t k = 0;
        while (k < have && strcmp(counts[k].name, name))
            k++;
        if (k == have && have < sizeof counts / sizeof *counts)
            counts[have++] = (Count){name, 0};
        if (k < have)
            counts[k].n++;
    }
    qsort(counts, have, sizeof *counts, count_order);
    Buf text = {.arena = a};
    for (uint32_t k = 0; k < have; k++) {
        const char *next = arena_printf(a, "%s%u %s", k ? ", " : "", counts[k].n, counts[k].name);
        if (k && text.n + strlen(next) + (k + 1 < have ? strlen(MORE) : 0) > BECAME_WIDTH) {
            buf_puts(&text, MORE);
            break;
        }
        buf_puts(&text, next);
    }
    return buf_cstr(&text);
}

// Instructions by line, of both cores: those of line i are insts[first[i]] … insts[first[i + 1] - 1].
typedef struct ByLine {
    uint32_t *first;
    const IsaInst **insts;
} ByLine;

static ByLine by_line(Arena *a, const Prof *p) {
    uint32_t n = p->view.lines.n, all = p->art->ncode + (p->art->peer ? p->art->peer->ncode : 0);
    ByLine b = {ARENA_NEWN(a, uint32_t, (size_t)n + 2), ARENA_NEWN(a, const IsaInst *, (size_t)all + 1)};
    int core = 0;
    for (const Artifact *art = p->art; art; art = art->peer, core++)
        for (uint32_t pc = 0; pc < art->ncode; pc++)
            if (p->view.line_of[core][pc] < n)
                b.first[p->view.line_of[core][pc] + 1]++;
    for (uint32_t i = 0; i < n; i++)
        b.first[i + 1] += b.first[i];
    uint32_t *at = arena_dup(a, b.first, ((size_t)n + 1) * sizeof *at);
    core = 0;
    for (const Artifact *art = p->art; art; art = art->peer, core++)
        for (uint32_t pc = 0; pc < art->ncode; pc++)
            if (p->view.line_of[core][pc] < n)
                b.insts[at[p->view.line_of[core][pc]]++] = &art->code[pc];
    return b;
}

static void lines_print(Arena *a, const Prof *p, const ByLine *by, uint32_t most) {
    printf("line                                      became                                        engine       of run\n");
    uint32_t n = p->view.lines.n;
    for (uint32_t i = 0; i < n && (!most || i < most); i++) {
        const ViewLine *l = &p->view.lines.at[i];
        if (!l->line && !*l->name && !*l->file)
            continue;
        const char *text = became(a, p->art, by->insts + by->first[i], by->first[i + 1] - by->first[i]);
        printf("%-41s %-45.45s %-11s %6.1f%%\n", prof_line_text(a, l, 41), text, clock_track_names[l->track],
               p->clock.total_ns > 0 ? 100 * l->most_ns / p->clock.total_ns : 0);
    }
    if (most && n > most)
        printf("… %u more lines (`otrn compile --explain` shows all)\n", n - most);
}

// --- GpSimd ----------------------------------------------------------------------------------------

// Kernels of one operation on one line, for one reason.
typedef struct Stay {
    uint32_t line, n;
    uint16_t op;
    const char *why;
    double ns;
} Stay;

static int same_order(const void *a, const void *b) {
    const Stay *x = a, *y = b;
    if (x->line != y->line || x->op != y->op)
        return x->line != y->line ? (x->line < y->line ? -1 : 1) : x->op - y->op;
    return strcmp(x->why, y->why);
}

static int time_order(const void *a, const void *b) {
    const Stay *x = a, *y = b;
    return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : same_order(a, b);
}

static int64_t largest(const Kern *k) {
    int64_t most = 0;
    for (uint32_t i = 0; i < k->nin + k->nout; i++) {
        int64_t n = i < k->nin ? k->in[i].elems : k->out[i - k->nin].elems;
        most = n > most ? n : most;
    }
    return most;
}

static bool same_place(const Place *a, const Place *b) { return a->line == b->line && !strcmp(a->file, b->file); }

static void draw_note(Reasons *r, const char *algorithm, Place at) {
    for (uint32_t i = 0; i < r->draws.n; i++)
        if (same_place(&r->draws.at[i].at, &at))
            return;
    at.file = arena_strndup(r->arena, at.file, strlen(at.file));
    VEC_PUSH(r->arena, &r->draws, ((ExactDraw){algorithm, at}));
}

// The algorithm of the region's first draw, itself or through calls; NULL: it draws nothing, or from the engines' generators.
// `of` has what functions are known to draw by, `note` (may be NULL) takes the places. JAX has a function for threefry.
static const char *draws_in(Hlo *h, RegionId region, const char *const *of, Reasons *note) {
    const char *first = NULL;
    for (uint32_t i = 0; region && i < h->regions.at[region].ops.n; i++) {
        const HloOp *op = hlo_at(h, h->regions.at[region].ops.at[i]);
        const char *by = NULL;
        if (op->code == HLO_CALL) {
            const HloFunc *f = hlo_func_find(h, hlo_attr_str(op, AK_CALLEE));
            by = strstr(hlo_attr_str(op, AK_CALLEE), "threefry2x32") ? "threefry" : f ? of[f - h->funcs.at] : NULL;
        } else if (op->code == HLO_RNG_BIT_GENERATOR) {
            int64_t algorithm = hlo_int(op, AK_RNG_ALGORITHM, RNGALG_DEFAULT);
            by = algorithm == RNGALG_THREE_FRY ? "threefry" : algorithm == RNGALG_PHILOX ? "philox" : NULL;
        }
        if (by && note)
            draw_note(note, by, hlo_place(h, op->loc));
        first = first ? first : by;
        for (uint32_t k = 0; k < op->nregions; k++) {
            by = draws_in(h, h->op_regions.at[op->regions + k], of, note);
            first = first ? first : by;
        }
    }
    return first;
}

static void draws_note(Reasons *r, Hlo *h) {
    const char **of = ARENA_NEWN(r->arena, const char *, (size_t)h->funcs.n + 1);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < h->funcs.n; i++)
            if (!of[i] && (of[i] = draws_in(h, h->funcs.at[i].body, of, NULL)))
                more = true;
    }
    draws_in(h, hlo_main(h)->body, of, r); // the user's own lines are those of the entry
}

void explain_note(void *arg, const char *stage, Hlo *hlo, const Artifact *art) {
    Reasons *r = arg;
    if (hlo && !strcmp(stage, "read"))
        draws_note(r, hlo);
    if (!art || strcmp(stage, "tile"))
        return;
    r->at = ARENA_NEWN(r->arena, Why, (size_t)art->nkerns + 1);
    r->n = art->nkerns;
    for (uint32_t i = 0; i < art->nkerns; i++)
        r->at[i] = art->kerns[i].why;
}

static uint32_t stays_find(Arena *a, const Prof *p, const Reasons *r, Stay **out) {
    uint32_t n = 0, all = 0;
    for (const Artifact *art = p->art; art; art = art->peer)
        for (uint32_t pc = 0; pc < art->ncode; pc++)
            all += isa_rows[art->code[pc].op].cost == COST_KERNEL;
    Stay *stays = *out = ARENA_NEWN(a, Stay, (size_t)all + 1);
    int core = 0;
    for (const Artifact *art = p->art; art; art = art->peer, core++)
        for (uint32_t pc = 0; pc < art->ncode; pc++) {
            const IsaInst *in = &art->code[pc];
            if (isa_rows[in->op].cost != COST_KERNEL || (uint32_t)in->imm >= art->nkerns)
                continue;
            char room[WHY_BYTES];
            const Kern *k = &art->kerns[in->imm];
            const char *why = why_text((uint32_t)in->imm < r->n ? r->at[in->imm] : (Why){0}, largest(k), room);
            stays[n++] = (Stay){p->view.line_of[core][pc], 1, k->op, arena_strndup(a, why, strlen(why)),
                                p->view.busy_of[core][pc]};
        }
    qsort(stays, n, sizeof *stays, same_order);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (kept && !same_order(&stays[kept - 1], &stays[i])) {
            stays[kept - 1].n++;
            stays[kept - 1].ns += stays[i].ns;
        } else {
            stays[kept++] = stays[i];
        }
    qsort(stays, kept, sizeof *stays, time_order);
    return kept;
}

// What has kernels, the longest first, each with its own share of the run and its reason.
static void gpsimd_print(Arena *a, const Prof *p, const Reasons *r, uint32_t most) {
    Stay *stays;
    uint32_t n = stays_find(a, p, r, &stays), lines = 0;
    bool *seen = ARENA_NEWN(a, bool, (size_t)p->view.lines.n + 1);
    for (uint32_t i = 0; i < n; i++) {
        lines += !seen[stays[i].line];
        seen[stays[i].line] = true;
    }
    printf("\non GpSimd: %u line%s, %.1f %% of the run\n", lines, lines == 1 ? "" : "s", prof_share(p, ENG_GPSIMD));
    double rest = p->clock.busy_ns[ENG_GPSIMD];
    for (uint32_t i = 0; i < n; i++)
        rest -= stays[i].ns;
    if (p->clock.total_ns > 0 && rest > 0.001 * p->clock.total_ns)
        printf("  %5.1f%%  in instructions of row programs: exact sums and products of integers, as random numbers are made of; no other engine has them\n",
               100 * rest / p->clock.total_ns);
    for (uint32_t i = 0; i < n && (!most || i < most); i++) {
        const Stay *s = &stays[i];
        const ViewLine *l = &p->view.lines.at[s->line];
        bool same = l->op == s->op;
        double share = p->clock.total_ns > 0 ? 100 * s->ns / p->clock.total_ns : 0;
        printf("  %s  %s%s%s", share < 0.05 ? " <0.1%" : arena_printf(a, "%5.1f%%", share), prof_line_text(a, l, 0), same ? "" : " → ",
               same ? "" : hlo_op_rows[s->op].name);
        if (s->n > 1)
            printf(", %u times", s->n);
        printf(": %s\n", s->why);
    }
    if (most && n > most)
        printf("  … %u more\n", n - most);
}

// Exact algorithms are integer arithmetic, which the engines are slow at; what they have is a generator.
static void draws_print(const Prof *p, const Reasons *r, uint32_t most) {
    if (!r->draws.n)
        return;
    printf("\nrandom numbers computed by an exact algorithm: %u line%s\n", r->draws.n, r->draws.n == 1 ? "" : "s");
    for (uint32_t i = 0; i < r->draws.n && (!most || i < most); i++) {
        const ExactDraw *d = &r->draws.at[i];
        double ns = 0;
        for (uint32_t k = 0; k < p->view.lines.n; k++) {
            const ViewLine *l = &p->view.lines.at[k];
            if (same_place(&(Place){l->file, l->line, 0}, &d->at) && l->most_ns > ns)
                ns = l->most_ns;
        }
        if (ns > 0)
            printf("  %5.1f%%", 100 * ns / p->clock.total_ns);
        printf("  %s:%u: %s%s\n", d->at.file, d->at.line, d->algorithm, ns > 0 ? "" : ", its time on the lines of functions called there");
    }
    if (most && r->draws.n > most)
        printf("  … %u more\n", r->draws.n - most);
    printf("  keys of jax.random.key(seed, impl=\"rbg\"), or of all with jax.config.update(\"jax_default_prng_impl\", \"rbg\"), draw from\n"
           "  the engines' own generators, which costs next to nothing (other numbers); so does rng_bit_generator with algorithm DEFAULT\n");
}

// Columns masked with a finite number are computed, because a row of scores as low as that number would need them.
static void masks_print(Arena *a, const Prof *p, const Reasons *r) {
    RtHint h;
    if (r->bytes && rt_hint_masks(&p->how, &p->priced, r->bytes, r->size, &h))
        printf("\nmasked with a finite number: columns of attention that would be left out under -inf are computed\n  %s: %s\n", h.how,
               rt_hint_text(a, &p->priced, &h));
}

static void live_print(Arena *a, const Prof *p, bool all) {
    double planned = view_hbm_planned(p->art);
    printf("\npeak HBM: %s of %s; live there\n", view_scaled(a, planned, 4, "B"),
           view_scaled(a, p->chip.hbm_bytes_per_core * (p->art->peer ? 2 : 1), 4, "B"));
    double rest = planned;
    for (uint32_t i = 0; i < p->art->nlive && (all || i < LIVE_SHOWN); i++) {
        const ArtLive *live = &p->art->live[i];
        rest -= (double)live->bytes;
        const ArtLoc *loc = live->loc < p->art->nlocs ? &p->art->locs[live->loc] : &p->art->locs[0];
        ViewLine line = {.file = loc->file ? loc->file : "", .name = loc->name ? loc->name : "", .line = loc->line, .op = loc->op};
        bool known = line.line || *line.name || *line.file;
        printf("  %10s  %s\n", view_scaled(a, (double)live->bytes, 4, "B"), known ? prof_line_text(a, &line, 0) : "(not named)");
    }
    if (rest > 0 && p->art->nlive >= LIVE_SHOWN) // the artifact names the largest only
        printf("  %10s  in smaller tensors and constants\n", view_scaled(a, rest, 4, "B"));
}

static int spill_order(const void *a, const void *b) {
    const ViewLine *x = *(const ViewLine *const *)a, *y = *(const ViewLine *const *)b;
    double more = y->spill_out + y->spill_in - x->spill_out - x->spill_in;
    return more ? (more > 0 ? 1 : -1) : x < y ? -1 : x > y;
}

// What goes to HBM and comes back because SBUF and PSUM do not keep it from one step to the next.
static void spills_print(Arena *a, const Prof *p, uint32_t most) {
    uint32_t n = 0;
    double out = 0, in = 0;
    const ViewLine **lines = ARENA_NEWN(a, const ViewLine *, (size_t)p->view.lines.n + 1);
    for (uint32_t i = 0; i < p->view.lines.n; i++) {
        const ViewLine *l = &p->view.lines.at[i];
        out += l->spill_out, in += l->spill_in;
        if (l->spill_out + l->spill_in > 0)
            lines[n++] = l;
    }
    if (!n)
        return;
    qsort(lines, n, sizeof *lines, spill_order);
    printf("\nspilled between steps: %s to HBM, %s back, %.0f %% of its traffic; most\n", view_scaled(a, out, 4, "B"),
           view_scaled(a, in, 4, "B"), p->clock.hbm_bytes > 0 ? 100 * (out + in) / p->clock.hbm_bytes : 0);
    for (uint32_t i = 0; i < n && (!most || i < most); i++)
        printf("  %10s out %10s in  %s\n", view_scaled(a, lines[i]->spill_out, 4, "B"), view_scaled(a, lines[i]->spill_in, 4, "B"),
               prof_line_text(a, lines[i], 0));
    if (most && n > most)
        printf("  … %u more\n", n - most);
}

static const char *time_text(Arena *a, double ns) {
    return ns < 1e6 ? arena_printf(a, "%.2f us", ns * 1e-3) : ns < 1e9 ? arena_printf(a, "%.2f ms", ns * 1e-6) : arena_printf(a, "%.2f s", ns * 1e-9);
}

Verdict explain_print(Tool *t, const Prof *p, const Reasons *r, uint32_t lines) {
    ByLine by = by_line(t->arena, p);
    double share = prof_share(p, ENG_GPSIMD), limit = (double)opt_num(&t->opt, OPT_GPSIMD_LIMIT);
    lines_print(t->arena, p, &by, lines);
    gpsimd_print(t->arena, p, r, lines);
    draws_print(p, r, lines);
    masks_print(t->arena, p, r);
    spills_print(t->arena, p, lines ? SPILLS_SHOWN : 0);
    live_print(t->arena, p, !lines);
    Verdict v = share > limit ? VERDICT_SLOW : VERDICT_SUPPORTED;
    printf("\nverdict: %s", verdicts[v].text);
    printf(" (%.1f %% on GpSimd, limit %.0f %%); %s a run on %s%s\n", share, limit, time_text(t->arena, p->clock.total_ns),
           artifact_is_shared(p->art) ? "two cores of " : p->art->peer ? "one of two cores of " : "", p->chip.name);
    return v;
}

// --- programs that did not compile -------------------------------------------------------------------

Verdict explain_failure(const otrn_error *err) {
    Verdict v = err->code == OTRN_CAPACITY ? VERDICT_TOO_LARGE : VERDICT_UNSUPPORTED;
    char text[2400];
    otrn_error_print(err, text, sizeof text);
    printf("%s%sverdict: %s\n", text, text[0] && text[strlen(text) - 1] == '\n' ? "" : "\n", verdicts[v].text);
    return v;
}
