// SPDX-License-Identifier: Apache-2.0
// group.c — instructions gathered under a name, from the source places an artifact keeps.
#include "clock/group.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "mach/price.h"

const char *const group_names[GROUP_KINDS] = {"line", "op", "scope", "layer"};

GroupBy group_parse(const char *name) {
    for (int i = 0; i < GROUP_KINDS; i++)
        if (!strcmp(name, group_names[i]))
            return (GroupBy)i;
    return GROUP_LINE;
}

// --- name paths ----------------------------------------------------------------------------------

typedef struct Part {
    const char *at;
    size_t n;
} Part;

static bool part_is(Part p, const char *word) { return strlen(word) == p.n && !memcmp(p.at, word, p.n); }

// Parts that a front end's own machinery adds.
static bool is_machinery(Part p) {
    static const char *const words[] = {"while", "body", "cond", "scan", "jit", "pjit", "closed_call", "core_call", "checkpoint",
                                        "remat", "remat2", "rematted_computation", "custom_jvp_call", "custom_vjp_call",
                                        "shard_map", "shmap_body", "xla_call", "xla_pmap", "main", "fwd", "bwd"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (part_is(p, words[i]))
            return true;
    return !p.n || (p.n > 7 && !memcmp(p.at, "branch_", 7));
}

// transpose(jvp(x)) is x; so is jit(x), but for the program itself and for what begins with '_'.
static Part unwrap(Part p, bool first) {
    while (p.n && p.at[p.n - 1] == ')') {
        const char *open = memchr(p.at, '(', p.n);
        if (!open)
            break;
        bool call = (open - p.at == 3 && !memcmp(p.at, "jit", 3)) || (open - p.at == 4 && !memcmp(p.at, "pjit", 4));
        p = (Part){open + 1, p.n - (size_t)(open + 1 - p.at) - 1};
        if (call && (first || (p.n && *p.at == '_')))
            return (Part){p.at, 0};
    }
    return p;
}

// The next part and what follows it; slashes inside parentheses do not count.
static Part next_part(const char **rest) {
    const char *s = *rest;
    int depth = 0;
    size_t n = 0;
    for (; s[n] && (s[n] != '/' || depth > 0); n++)
        depth += (s[n] == '(') - (s[n] == ')');
    *rest = s[n] ? s + n + 1 : s + n;
    return (Part){s, n};
}

static bool has_number(Part p) { return p.n && isdigit((unsigned char)p.at[p.n - 1]); }
static bool is_number(Part p) {
    size_t i = 0;
    while (i < p.n && isdigit((unsigned char)p.at[i]))
        i++;
    return p.n && i == p.n;
}

const char *group_scope(Arena *a, const char *name, bool layer) {
    Buf out = {.arena = a};
    bool first = true, numbered = false;
    for (const char *rest = name; *rest; first = false) {
        Part p = next_part(&rest);
        if (!*rest)
            break; // the operation itself
        p = unwrap(p, first);
        if (is_machinery(p))
            continue;
        bool number = is_number(p);
        if (layer && numbered && !number)
            break;
        if (out.n)
            put_u8(&out, '/');
        buf_put(&out, p.at, p.n);
        numbered |= has_number(p);
        if (layer && number)
            break;
    }
    const char *scope = buf_cstr(&out);
    if (layer && !numbered) { // no part has a number: the first two
        size_t n = strcspn(scope, "/");
        n += scope[n] ? 1 + strcspn(scope + n + 1, "/") : 0;
        return arena_strndup(a, scope, n);
    }
    return scope;
}

const char *group_line_text(Arena *a, const ViewLine *l) {
    const char *slash = strrchr(l->file, '/'), *file = slash ? slash + 1 : l->file;
    const char *op = l->op ? hlo_op_rows[l->op].name : "";
    const char *at = l->line   ? arena_printf(a, "%s:%u", file, l->line)
                     : *l->name ? l->name
                     : *file    ? file
                                : "(control)";
    return *op ? arena_printf(a, "%s %s", at, op) : at;
}

// --- the verdict ---------------------------------------------------------------------------------

const char *group_verdict(Arena *a, const Clock *clock, const Stalls *s, const GroupTable *groups) {
    if (clock->total_ns <= 0)
        return "nothing to do: the program has no timed instruction";
    int e = stall_bottleneck(clock, s);
    double per = 100 / clock->total_ns;
    if (!s->known)
        return arena_printf(a, "%s, busy %.0f %% of the time; too many instructions to follow who waits for whom", clock_track_names[e],
                            clock->busy_ns[e] * per);
    double most = stall_work_ns(s, e), delay = clock->total_ns;
    for (int t = 0; t < CLOCK_TRACKS; t++)
        delay -= stall_work_ns(s, t);
    const Group *g = NULL; // the longest with a name
    for (uint32_t i = 0; i < groups->at.n && !g && groups->at.at[i].path_ns * per >= 1; i++)
        g = *groups->at.at[i].name != '(' ? &groups->at.at[i] : NULL;
    const char *where = g ? arena_printf(a, "; most of it at %s (%.0f %%)", g->name, g->path_ns * per) : "";
    if (delay > most)
        return arena_printf(a, "latency: %.0f %% of the critical path is signals, starts and completions; the most of an engine is %s with %.0f %%%s",
                            delay * per, clock_track_names[e], most * per, where);
    return arena_printf(a, "%s: %.0f %% of the critical path is its work%s, %.0f %% is signals, starts and completions%s", clock_track_names[e],
                        most * per,
                        s->path_ns[e][PATH_HBM] > most / 2   ? " (at HBM's bandwidth)"
                        : s->path_ns[e][PATH_DMA] > most / 2 ? " (at the DMA engines' rate)"
                                                             : "",
                        delay * per, where);
}

// --- gathering -----------------------------------------------------------------------------------

typedef struct Named { // a source place under its group's name
    const char *name;
    uint32_t loc;
} Named;

static int named_order(const void *x, const void *y) {
    const Named *a = x, *b = y;
    int d = strcmp(a->name, b->name);
    return d ? d : a->loc < b->loc ? -1 : a->loc > b->loc;
}

static const char *loc_group(Arena *a, const ArtLoc *l, GroupBy by) {
    if (by == GROUP_OP)
        return l->op ? hlo_op_rows[l->op].name : "(control)";
    const char *scope = group_scope(a, l->name ? l->name : "", by == GROUP_LAYER);
    return *scope ? scope : l->op ? "(no scope)" : "(control)";
}

// A group for each name; which one a source place belongs to.
static uint32_t *groups_of_locs(Arena *a, const Artifact *art, GroupTable *out) {
    uint32_t n = art->nlocs, *group = ARENA_NEWN(a, uint32_t, (size_t)n + 1);
    Named *named = ARENA_NEWN(a, Named, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        named[i] = (Named){loc_group(a, &art->locs[i], out->by), i};
        out->named |= art->locs[i].op && art->locs[i].name && strchr(art->locs[i].name, '/');
    }
    if (!n)
        named[n++] = (Named){"(control)", 0};
    qsort(named, n, sizeof *named, named_order);
    for (uint32_t i = 0; i < n; i++) {
        if (!i || strcmp(named[i].name, named[i - 1].name))
            VEC_PUSH(a, &out->at, (Group){.name = named[i].name});
        group[named[i].loc] = out->at.n - 1;
    }
    return group;
}

static void gather(const Artifact *art, const Clock *clock, const View *view, const Stalls *s, const uint32_t *group,
                   int core, GroupTable *out) {
    const Price *price = core ? clock->peer_price : clock->price;
    for (uint32_t pc = 0; pc < art->ncode; pc++) {
        uint32_t loc = art->code_loc ? art->code_loc[pc] : 0;
        loc = loc < art->nlocs ? loc : 0;
        Group *g = &out->at.at[group ? group[loc] : view->line_of[core][pc]];
        double times = view->times_of[core][pc];
        g->busy_ns[price[pc].track] += view->busy_of[core][pc];
        g->hbm_bytes += price[pc].hbm_bytes * times;
        g->flops += price[pc].flops * times;
        g->insts += times;
        if (s->known) {
            g->path_ns += s->on_path[core][pc];
            g->waits_ns += s->waits[core][pc];
            g->waited_ns += s->waited_for[core][pc];
        }
    }
}

static int group_order(const void *x, const void *y) {
    const Group *a = x, *b = y;
    if (a->path_ns != b->path_ns)
        return a->path_ns > b->path_ns ? -1 : 1;
    if (a->most_ns != b->most_ns)
        return a->most_ns > b->most_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

void group_make(Arena *a, const Artifact *art, const Clock *clock, const View *view, const Stalls *stalls, GroupBy by,
                GroupTable *out) {
    *out = (GroupTable){.by = by};
    uint32_t *group = NULL;
    if (by == GROUP_LINE)
        for (uint32_t i = 0; i < view->lines.n; i++)
            VEC_PUSH(a, &out->at, (Group){.name = group_line_text(a, &view->lines.at[i]), .line = &view->lines.at[i]});
    else
        group = groups_of_locs(a, art, out);
    gather(art, clock, view, stalls, group, 0, out);
    if (art->peer && clock->peer_flow)
        gather(art->peer, clock, view, stalls, group, 1, out);
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->at.n; i++) {
        Group *g = &out->at.at[i];
        for (int t = 0; t < CLOCK_TRACKS; t++)
            if (g->busy_ns[t] > g->most_ns)
                g->most_ns = g->busy_ns[t], g->track = t;
        if (g->insts > 0)
            out->at.at[n++] = *g;
    }
    out->at.n = n;
    if (n)
        qsort(out->at.at, n, sizeof *out->at.at, group_order);
}
