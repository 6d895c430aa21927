// SPDX-License-Identifier: Apache-2.0
// capacity.c — what an artifact says of HBM: its arguments and results, the tensors alive at the peak and where they were made; and the
// error of a program that needs more than a core has.
#include "tile/emit.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tile/lower.h"

#define LIVE_SHOWN 12

static ArtValue art_value(const HloType *t, const HloNamed *attrs, uint32_t n) {
    ArtValue v = {.dtype = t->dtype, .rank = t->rank, .bytes = hlo_type_bytes(t), .alias = -1};
    if (t->kind == HT_TOKEN)
        v.dtype = DT_TOKEN;
    for (int i = 0; i < t->rank; i++)
        v.dims[i] = t->dims[i];
    v.sharding = hlo_named_text(attrs, n, "otrn.sharding");
    if (lower_is_pinned(attrs, n))
        v.memory = ART_PINNED_HOST;
    return v;
}

void capacity_values(Emit *e) {
    Lower *l = e->l;
    Hlo *h = l->h;
    HloFunc *f = l->main;
    Artifact *art = e->art;
    HloRegion *body = &h->regions.at[f->body];
    const HloOp *ret = region_return(h, body);
    assert(ret->noperands == f->nresults);
    assert(body->nargs == f->nargs);
    art->nargs = f->nargs;
    art->nresults = f->nresults;
    art->args = ARENA_NEWN(e->c->arena, ArtValue, f->nargs + 1);
    art->results = ARENA_NEWN(e->c->arena, ArtValue, f->nresults + 1);
    for (uint32_t i = 0; i < f->nargs; i++) {
        const HloNamed *attrs = f->arg_attrs ? f->arg_attrs[i] : NULL;
        uint32_t n = f->arg_attrs ? f->narg_attrs[i] : 0;
        art->args[i] = art_value(hlo_value_type(h, body->args + i), attrs, n);
        art->args[i].name = hlo_arg_name(h, f, i);
        art->args[i].donated = lower_is_donated(f, i);
    }
    for (uint32_t j = 0; j < f->nresults; j++) {
        const HloNamed *attrs = f->res_attrs ? f->res_attrs[j] : NULL;
        uint32_t n = f->res_attrs ? f->nres_attrs[j] : 0;
        art->results[j] = art_value(hlo_value_type(h, hlo_operand(h, ret, j)), attrs, n);
        art->results[j].name = hlo_named_text(attrs, n, "jax.result_info");
        art->results[j].alias = l->alias[j];
    }
}

static int by_bytes(const void *a, const void *b) {
    const ArtLive *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

// Of operations that became one, the one that makes the buffer.
static OpId maker(const Lower *l, OpId id, BufId buf) {
    const HloOp *op = hlo_at(l->h, id);
    const HloRegion *region = id && is_joined(op) ? hlo_op_region(l->h, op, 0) : NULL;
    for (uint32_t k = 0; region && k < op->nresults; k++)
        for (uint32_t i = 0; l->buf_of[op->results + k] == buf && i + 1 < region->ops.n; i++)
            if (hlo_at(l->h, region->ops.at[i])->results == hlo_operand(l->h, region_return(l->h, region), k))
                return region->ops.at[i];
    return id;
}

// Where a tensor came from; nobody made an argument, it is known by its name.
static uint32_t live_loc(Emit *e, BufId buf) {
    const TBuf *t = &e->l->bufs.at[buf];
    emit_loc(e, maker(e->l, t->op, buf));
    if (t->kind != BUF_ARG)
        return e->loc;
    const char *name = e->art->args[t->index].name;
    name = arena_printf(e->c->arena, "argument %u%s%s", t->index, *name ? " " : "", name);
    VEC_PUSH(e->c->arena, &e->locs, ((ArtLoc){.file = "", .name = name}));
    return e->locs.n - 1;
}

// The tensors alive at the step where scratch memory was fullest, largest first.
void capacity_find_live(Emit *e, uint32_t peak_step) {
    Lower *l = e->l;
    VEC(ArtLive) live = {0};
    assert(peak_step <= l->steps.n);
    for (BufId b = 1; b < l->bufs.n; b++) {
        TBuf *t = &l->bufs.at[b];
        bool always = t->kind == BUF_ARG || t->kind == BUF_RESULT;
        bool shared = t->kind == BUF_RESULT && l->alias[t->index] >= 0; // with an argument, which is listed
        if (!t->bytes || t->kind == BUF_CONST || t->kind == BUF_VIEW || shared ||
            (!always && !(t->first <= peak_step && (t->last >= peak_step || t->held >= peak_step))))
            continue;
        VEC_PUSH(e->c->scratch, &live, (ArtLive){t->bytes, b}); // its place follows below
    }
    if (live.n)
        qsort(live.at, live.n, sizeof *live.at, by_bytes);
    e->art->nlive = live.n < LIVE_SHOWN ? live.n : LIVE_SHOWN;
    for (uint32_t i = 0; i < e->art->nlive; i++)
        live.at[i].loc = live_loc(e, live.at[i].loc);
    e->art->live = arena_dup(e->c->arena, live.at, e->art->nlive * sizeof *live.at);
}

static double total_bytes(const Emit *e, double scratch_bytes) {
    const Artifact *art = e->art;
    double total = scratch_bytes + (double)art->const_bytes;
    for (uint32_t i = 0; i < art->nargs; i++)
        total += (double)art->args[i].bytes;
    for (uint32_t i = 0; i < art->nresults; i++)
        total += art->results[i].alias < 0 ? (double)art->results[i].bytes : 0;
    return total;
}

bool capacity_suffices(const Emit *e, double scratch_bytes) { return total_bytes(e, scratch_bytes) <= e->chip->hbm_bytes_per_core; }

void capacity_check(Emit *e, double scratch_bytes) {
    double total = total_bytes(e, scratch_bytes);
    if (capacity_suffices(e, scratch_bytes))
        return;
    const Artifact *art = e->art;
    char table[800];
    size_t n = 0;
    for (uint32_t i = 0; i < art->nlive && n < sizeof table - 170; i++) {
        const ArtLoc *loc = &e->locs.at[art->live[i].loc];
        size_t length = strlen(loc->file), cut = length > 60 ? length - 60 : 0; // the end of a path tells more
        n += (size_t)snprintf(table + n, sizeof table - n, "\n  %10.1f MiB  %.60s",
                              (double)art->live[i].bytes / 1048576,
                              loc->op ? hlo_op_rows[loc->op].name : loc->name);
        if (length)
            n += (size_t)snprintf(table + n, sizeof table - n, "  %s%s:%u", cut ? "…" : "", loc->file + cut,
                                  loc->line);
    }
    ctx_hint(e->c->ctx, "a smaller batch, bf16, donation of updated arguments, or rematerialisation");
    ctx_fail(e->c->ctx, OTRN_CAPACITY, (Place){.file = e->l->h->file},
             "the program needs %.1f MiB of HBM, a core of %s has %.1f MiB; largest tensors at the peak:%s",
             total / 1048576, e->chip->name, e->chip->hbm_bytes_per_core / 1048576, table);
}

// What is alive together needs that much at least: a program that is far too large is refused before its
// instructions are made.
void capacity_check_room(Emit *e, const BufList *begin, const BufList *end) {
    const Lower *l = e->l;
    double live = 0, most = 0;
    uint32_t peak_step = 0;
    for (uint32_t i = 0; i < l->steps.n; i++) {
        for (BufId b = begin->first[i]; b; b = begin->next[b])
            live += (double)l->bufs.at[b].bytes;
        if (live > most) {
            most = live;
            peak_step = i;
        }
        for (BufId b = end->first[i]; b; b = end->next[b])
            live -= (double)l->bufs.at[b].bytes;
    }
    assert(live >= 0); // nothing ends that did not begin
    if (total_bytes(e, most) > e->chip->hbm_bytes_per_core)
        capacity_find_live(e, peak_step);
    capacity_check(e, most);
}
