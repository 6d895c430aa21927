// SPDX-License-Identifier: Apache-2.0
// expand_groups.c — the groups of a collective told by mesh axes, as lists of devices.
//
//   #stablehlo.replica_group_mesh_axes<mesh = @m or #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 4>, …],
//       device_ids = [0, …]>, axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (2)2>, …]>
//
// A mesh arranges devices in a grid, row-major. Devices whose places differ only along the named axes are a group, in the
// order of the axes as named, the last one running fastest. Part (p)s of an axis is what remains of it after p outer
// parts, s long: place / (size / (p s)) mod s.
#include <string.h>

#include "coll/groups.h"
#include "pass/expand.h"

#define AXES_MAX 32

typedef struct Cursor {
    Compile *c;
    OpId op;
    const char *all, *at;
} Cursor;

typedef struct Mesh {
    uint32_t n;
    const char *names[AXES_MAX];
    int64_t sizes[AXES_MAX], devices;
    int64_t *ids; // NULL: each place has its own number
} Mesh;

typedef struct Part { // of the axes, as the collective names them
    int64_t stride, size; // in places
} Part;

_Noreturn static void fail(const Cursor *c, otrn_status code, const char *why) {
    hlo_fail(c->c->hlo, c->op, code, "%s: %.200s", why, c->all);
}

static bool eat(Cursor *c, const char *word) {
    while (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')
        c->at++;
    size_t n = strlen(word);
    if (strncmp(c->at, word, n))
        return false;
    c->at += n;
    return true;
}

static void need(Cursor *c, const char *const *words) {
    for (; *words; words++)
        if (!eat(c, *words))
            fail(c, OTRN_PARSE, "replica groups cannot be read");
}
#define NEED(c, ...) need(c, (const char *const[]){__VA_ARGS__, NULL})

static int64_t number(Cursor *c) {
    eat(c, "");
    if (*c->at < '0' || *c->at > '9')
        fail(c, OTRN_PARSE, "replica groups cannot be read");
    int64_t v = 0;
    for (; *c->at >= '0' && *c->at <= '9'; c->at++)
        if ((v = v * 10 + (*c->at - '0')) > PROGRAM_DEVICES_MAX)
            fail(c, OTRN_CAPACITY, "replica groups of more devices than a program may have");
    return v;
}

static const char *word(Cursor *c, const char *end) {
    size_t n = strcspn(c->at, end);
    const char *s = arena_strndup(c->c->scratch, c->at, n);
    c->at += n;
    return s;
}

static const char *quoted(Cursor *c) {
    NEED(c, "\"");
    const char *s = word(c, "\"");
    NEED(c, "\"");
    return s;
}

static void grid_axis(Cursor *c, Mesh *g, const char *name, int64_t size) {
    if (g->n == AXES_MAX || !size || size * g->devices > PROGRAM_DEVICES_MAX)
        fail(c, OTRN_CAPACITY, "a mesh has no devices, more than a program may have, or more than 32 axes");
    g->names[g->n] = name;
    g->sizes[g->n++] = size;
    g->devices *= size;
}

static void grid_ids(Cursor *c, Mesh *g) { // behind "["
    g->ids = ARENA_NEWN(c->c->scratch, int64_t, (size_t)g->devices);
    for (int64_t i = 0; i < g->devices; i++) {
        if (i)
            NEED(c, ",");
        g->ids[i] = number(c);
    }
    NEED(c, "]");
}

static void grid_plain(Cursor *c, Mesh *g) { // behind "#stablehlo.mesh<"
    NEED(c, "axes", "=", "[");
    while (!eat(c, "]")) {
        NEED(c, "#stablehlo.mesh_axis<", "name", "=");
        const char *name = quoted(c);
        NEED(c, ",", "size", "=");
        grid_axis(c, g, name, number(c));
        NEED(c, ">");
        eat(c, ",");
    }
    if (eat(c, ",")) {
        NEED(c, "device_ids", "=", "[");
        grid_ids(c, g);
    }
    NEED(c, ">");
}

// @name: the module's meshes are kept as Shardy writes them, #sdy.mesh<["x"=2, "y"=2], device_ids=[0, …]>
static void grid_named(Cursor *c, Mesh *g) {
    const char *name = *c->at == '"' ? quoted(c) : word(c, ", >");
    const Hlo *h = c->c->hlo;
    const HloNamed *all = hlo_named_find(h->extra, h->nextra, "sdy.meshes");
    const HloNamed *mesh = all && all->value.kind == HA_DICT ? hlo_named_find(all->value.dict, all->value.n, name) : NULL;
    if (!mesh || mesh->value.kind != HA_OPAQUE)
        hlo_fail(c->c->hlo, c->op, OTRN_VERIFY, "there is no mesh @%.100s", name);
    Cursor m = {c->c, c->op, mesh->value.s, mesh->value.s};
    NEED(&m, "#sdy.mesh<", "[");
    while (!eat(&m, "]")) {
        const char *axis = quoted(&m);
        NEED(&m, "=");
        grid_axis(&m, g, axis, number(&m));
        eat(&m, ",");
    }
    if (eat(&m, ",")) {
        NEED(&m, "device_ids", "=", "[");
        grid_ids(&m, g);
    }
}

static Part part_read(Cursor *c, const Mesh *g) {
    NEED(c, "#stablehlo.axis_ref<", "name", "=");
    const char *name = quoted(c);
    uint32_t i = 0;
    int64_t stride = g->devices, outer = 1;
    for (; i < g->n && strcmp(g->names[i], name); i++)
        stride /= g->sizes[i];
    if (i == g->n)
        fail(c, OTRN_VERIFY, "the mesh has no such axis");
    stride /= g->sizes[i];
    Part p = {stride, g->sizes[i]};
    if (eat(c, ",")) {
        NEED(c, "sub_axis_info", "=", "(");
        outer = number(c);
        NEED(c, ")");
        p.size = number(c);
        if (!outer || !p.size || g->sizes[i] % (outer * p.size))
            fail(c, OTRN_VERIFY, "a part does not divide its axis");
        p.stride = stride * (g->sizes[i] / (outer * p.size));
    }
    NEED(c, ">");
    return p;
}

static const int64_t *groups_make(Cursor *c, const Mesh *g, const Part *parts, uint32_t n, int64_t cols) {
    int64_t *out = ARENA_NEWN(c->c->hlo->arena, int64_t, (size_t)g->devices), made = 0;
    for (int64_t place = 0; place < g->devices; place++) {
        bool first = true; // of its group
        for (uint32_t i = 0; i < n; i++)
            first &= place / parts[i].stride % parts[i].size == 0;
        for (int64_t k = 0; first && k < cols; k++) {
            int64_t at = place, rest = k;
            for (uint32_t i = n; i-- > 0; rest /= parts[i].size)
                at += rest % parts[i].size * parts[i].stride;
            if (at >= g->devices || made == g->devices)
                fail(c, OTRN_VERIFY, "an axis is named twice");
            out[made++] = g->ids ? g->ids[at] : at;
        }
    }
    if (made != g->devices)
        fail(c, OTRN_VERIFY, "an axis is named twice");
    return out;
}

static HloAttr resolve(Compile *c, OpId op, const char *text) {
    Cursor t = {c, op, text, text};
    Mesh g = {.devices = 1};
    Part parts[AXES_MAX];
    uint32_t n = 0;
    int64_t cols = 1;
    NEED(&t, "#stablehlo.replica_group_mesh_axes<", "mesh", "=");
    if (eat(&t, "@"))
        grid_named(&t, &g);
    else if (eat(&t, "#stablehlo.mesh<"))
        grid_plain(&t, &g);
    else
        fail(&t, OTRN_PARSE, "replica groups name no mesh");
    NEED(&t, ",", "axes", "=", "[");
    while (!eat(&t, "]")) {
        if (n == AXES_MAX)
            fail(&t, OTRN_CAPACITY, "replica groups name more than 32 axes");
        parts[n] = part_read(&t, &g);
        if ((cols *= parts[n++].size) > g.devices)
            fail(&t, OTRN_VERIFY, "an axis is named twice");
        eat(&t, ",");
    }
    const int64_t *ids = groups_make(&t, &g, parts, n, cols);
    return (HloAttr){.kind = HA_INTS2, .n = (uint32_t)g.devices, .cols = (uint32_t)cols, .ints = ids};
}

typedef struct Told { // most collectives of a program have the groups of others
    const char *text;
    HloAttr groups;
} Told;

void expand_groups(Compile *c) {
    VEC(Told) told = {0};
    for (OpId id = 1; id < c->hlo->ops.n; id++) {
        const HloAttr *groups = hlo_attr(hlo_at(c->hlo, id), AK_REPLICA_GROUPS);
        if (!groups || groups->kind != HA_OPAQUE)
            continue;
        uint32_t i = 0;
        while (i < told.n && strcmp(told.at[i].text, groups->s))
            i++;
        if (i == told.n)
            VEC_PUSH(c->scratch, &told, ((Told){groups->s, resolve(c, id, groups->s)}));
        *hlo_attr_slot(c->hlo, id, AK_REPLICA_GROUPS) = told.at[i].groups;
    }
}
