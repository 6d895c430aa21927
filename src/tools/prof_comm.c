// SPDX-License-Identifier: Apache-2.0
// prof_comm.c — what collectives take of a step: by kind and group, and a warning where it is much.
#include <stdlib.h>

#include "tools/prof.h"

double prof_max_comm(Tool *t) {
    const char *text = t->opt.val[OPT_MAX_COMM];
    if (!*text)
        return -1;
    char *end;
    double share = strtod(text, &end);
    if (end != text && *end == '%')
        share /= 100, end++;
    if (end == text || *end || !(share >= 0 && share <= 1)) {
        ctx_hint(t->ctx, "--max-comm=25%%");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "max-comm: `%s` is no share of the step", text);
    }
    return share;
}

const char *prof_comm_warning(Tool *t, const Prof *p) {
    double most = prof_max_comm(t);
    const char *text = traffic_warning(t->arena, &p->traffic, &p->view, most < 0 ? TRAFFIC_MOST : most);
    return !text || most < 0 ? text : arena_printf(t->arena, "%s; more than --max-comm=%s", text, t->opt.val[OPT_MAX_COMM]);
}

int prof_comm_status(Tool *t, const Prof *p) {
    const char *text = prof_comm_warning(t, p);
    bool asked = prof_max_comm(t) >= 0;
    if (text)
        fprintf(stderr, "otrn: %s: %s%s\n", p->path, asked ? "" : "warning: ", text);
    return text && asked ? STATUS_COMM : 0;
}

int prof_comm_asked(Tool *t, const Prof *p) { return prof_max_comm(t) < 0 ? 0 : prof_comm_status(t, p); }

const char *prof_comm_text(Tool *t, const Prof *p) {
    const Traffic *c = &p->traffic;
    if (!c->rows.n && !(c->busy_ns > 0))
        return NULL;
    const char *share = arena_printf(t->arena, "%.1f %% of the step, %.1f %% not hidden", 100 * traffic_share(c), 100 * traffic_exposed(c));
    return c->rows.n ? arena_printf(t->arena, "%s; a device sends %s", share, view_scaled(t->arena, c->bytes, 4, "B")) : share; // else by roofs
}

void prof_comm_print(Tool *t, const Prof *p) {
    const Traffic *c = &p->traffic;
    const char *text = prof_comm_text(t, p);
    if (text)
        printf("%scollectives    %s\n", c->rows.n ? "\n" : "", text);
    if (!c->rows.n)
        return;
    printf("%-20s %-24s %-29s %8s %10s %10s %12s  %s\n", "kind", "group", "way", "count", "bytes", "busy us", "exposed us", "most of it at");
    for (uint32_t i = 0; i < c->rows.n; i++) {
        const TrafficRow *r = &c->rows.at[i];
        printf("%-20s %-24s %-29s %8.0f %10s %10.2f %12.2f  %s\n", hlo_op_rows[r->op].name, traffic_group(t->arena, r),
               traffic_way(t->arena, r), r->count,
               view_scaled(t->arena, r->bytes, 4, "B"), r->busy_ns * 1e-3, r->exposed_ns * 1e-3,
               prof_line_text(t->arena, &p->view.lines.at[r->line], 40));
    }
}

void prof_comm_json(Tool *t, const Prof *p) {
    const Traffic *c = &p->traffic;
    printf("  \"comm\": {\"busy_us\": %.3f, \"exposed_us\": %.3f, \"share\": %.6f, \"exposed_share\": %.6f, \"bytes\": %.0f, \"kinds\": [",
           c->busy_ns * 1e-3, c->exposed_ns * 1e-3, traffic_share(c), traffic_exposed(c), c->bytes);
    for (uint32_t i = 0; i < c->rows.n; i++) {
        const TrafficRow *r = &c->rows.at[i];
        const ViewLine *l = &p->view.lines.at[r->line];
        printf("%s\n    {\"kind\": \"%s\", \"ranks\": %u, \"groups\": %u, \"stride\": %u, \"algorithm\": \"%s\", \"reach\": \"%s\", "
               "\"count\": %.0f, \"bytes\": %.0f, \"busy_us\": %.3f, \"exposed_us\": %.3f, \"file\": \"",
               i ? "," : "", hlo_op_rows[r->op].name, r->ranks, r->groups, r->stride,
               fabric_way_names[r->way], link_place_names[r->reach], r->count, r->bytes, r->busy_ns * 1e-3,
               r->exposed_ns * 1e-3);
        json_text(l->file);
        printf("\", \"line\": %u, \"name\": \"", l->line);
        json_text(l->name);
        printf("\"}");
    }
    printf("]},\n");
    prof_comm_limit_json(t, p);
}

void prof_comm_limit_json(Tool *t, const Prof *p) {
    double most = prof_max_comm(t);
    if (most >= 0)
        printf("  \"max_comm\": %.6g,\n  \"max_comm_exceeded\": %s,\n", most, traffic_share(&p->traffic) > most ? "true" : "false");
}
