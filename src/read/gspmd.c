// SPDX-License-Identifier: Apache-2.0
// gspmd.c — shardings as GSPMD writes them become Shardy's, which is what the rest of the compiler reads.
//
//   mhlo.sharding = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"   ->   mesh @gspmd_0 = <["d0"=2, "d2"=2]>, <@gspmd_0, [{"d0"}, {}]>
//
// A text says into how many parts each dimension is cut and which devices have them, in order: each different one is a mesh with
// an axis for each number above one. Arguments, results and calls to @Sharding say such texts; calls at the bounds of parts in which
// devices go their own way get Shardy's lists of them, from which manual.c makes regions. Axes that such a part has for itself
// ("manual") are like copies to what it says inside. HLO that Shardy wrote has its meshes, too (xla.sdy.meshes).
#include <stdlib.h>
#include <string.h>

#include "coll/groups.h"
#include "read/read.h"
#include "read/xla.h"

#define SAYS "mhlo.sharding"

typedef struct Tiles { // a sharding taken apart
    int64_t dims[OTRN_MAX_RANK + 2], ids_dims[OTRN_MAX_RANK], perm[OTRN_MAX_RANK];
    uint32_t n, nids, nperm;
    const int64_t *devices; // NULL: counted up
    int64_t total;
} Tiles;

typedef struct Gspmd {
    Hlo *h;
    LocId loc;
    VEC(HloNamed) meshes;
    int64_t devices;
} Gspmd;

_Noreturn static void fail(Gspmd *g, otrn_status code, const char *what, const char *text) {
    Place at = g->loc ? hlo_place(g->h, g->loc) : (Place){.file = g->h->file};
    ctx_fail(g->h->ctx, code, at, "%s: %.200s", what, text);
}

// --- the text ----------------------------------------------------------------------------------------

static uint32_t numbers(const char **s, int64_t *out, uint32_t most) { // 2,1,2
    uint32_t n = 0;
    do {
        int64_t v = 0;
        if (**s < '0' || **s > '9' || n == most)
            return 0;
        for (; **s >= '0' && **s <= '9' && v <= PROGRAM_DEVICES_MAX; ++*s)
            v = v * 10 + (**s - '0');
        if (v > PROGRAM_DEVICES_MAX)
            return 0;
        out[n++] = v;
    } while (**s == ',' && ++*s);
    return n;
}

static bool eat(const char **s, const char *word) {
    size_t n = strlen(word);
    if (strncmp(*s, word, n))
        return false;
    *s += n;
    return true;
}

static bool devices_read(Gspmd *g, const char **s, Tiles *t) { // <=[2,2]T(1,0), or 0,2,1,3
    if (eat(s, "<=[")) {
        t->nids = numbers(s, t->ids_dims, OTRN_MAX_RANK);
        if (!t->nids || !eat(s, "]"))
            return false;
        if (eat(s, "T(") && (!(t->nperm = numbers(s, t->perm, OTRN_MAX_RANK)) || !eat(s, ")")))
            return false;
        t->devices = xla_iota(g->h->arena, t->ids_dims, t->nids, t->perm, t->nperm, t->total);
    } else {
        int64_t *list = ARENA_NEWN(g->h->arena, int64_t, t->total);
        t->devices = numbers(s, list, (uint32_t)t->total) == t->total ? list : NULL;
    }
    return t->devices != NULL;
}

// True when it cuts something. rank: of the tensor.
static bool tiles_read(Gspmd *g, const char *text, uint32_t rank, Tiles *t) {
    const char *s = text;
    if (!eat(&s, "{devices=["))
        return false;
    *t = (Tiles){.total = 1};
    t->n = numbers(&s, t->dims, OTRN_MAX_RANK + 2);
    for (uint32_t i = 0; i < t->n; i++)
        t->total = t->dims[i] && t->total * t->dims[i] <= PROGRAM_DEVICES_MAX ? t->total * t->dims[i] : 0;
    if (!t->n || t->n < rank || !t->total || !eat(&s, "]") || !devices_read(g, &s, t))
        fail(g, OTRN_PARSE, "a sharding cannot be read", text);
    bool copies = strstr(s, "last_tile_dim_replicate") || strstr(s, "last_tile_dims=");
    if (t->n > rank && !copies)
        fail(g, OTRN_PARSE, "a sharding cuts more dimensions than there are", text);
    if (g->devices > 1 && g->devices != t->total)
        fail(g, OTRN_UNSUPPORTED, "a sharding over other devices than the program's", text);
    g->devices = t->total;
    return true;
}

// --- as Shardy says it -------------------------------------------------------------------------------

static const char *mesh_of(Gspmd *g, const Tiles *t) {
    Buf mesh = {.arena = g->h->arena}, name = {.arena = g->h->arena};
    bool counted = true;
    buf_puts(&mesh, "#sdy.mesh<[");
    for (uint32_t i = 0, n = 0; i < t->n; i++)
        if (t->dims[i] > 1)
            buf_printf(&mesh, "%s\"d%u\"=%lld", n++ ? ", " : "", i, (long long)t->dims[i]);
    buf_puts(&mesh, "]");
    for (int64_t i = 0; i < t->total; i++)
        counted &= t->devices[i] == i;
    for (int64_t i = 0; i < t->total && !counted; i++)
        buf_printf(&mesh, "%s%lld", i ? ", " : ", device_ids=[", (long long)t->devices[i]);
    buf_puts(&mesh, counted ? ">" : "]>");
    const char *text = buf_cstr(&mesh);
    for (uint32_t i = 0; i < g->meshes.n; i++)
        if (!strcmp(g->meshes.at[i].value.s, text))
            return g->meshes.at[i].name;
    buf_printf(&name, "gspmd_%03u", g->meshes.n); // the list is sorted by name
    if (g->meshes.n == 1000)
        fail(g, OTRN_CAPACITY, "more than 1000 different shardings", text);
    HloAttr value = {.kind = HA_OPAQUE, .n = (uint32_t)strlen(text), .s = text};
    VEC_PUSH(g->h->arena, &g->meshes, ((HloNamed){buf_cstr(&name), value}));
    return g->meshes.at[g->meshes.n - 1].name;
}

static bool is_open(const char *config, uint32_t dim) { // unspecified_dims=[0,2]
    const char *at = config ? strstr(config, "unspecified_dims=[") : NULL;
    int64_t dims[OTRN_MAX_RANK];
    if (!at)
        return false;
    at += strlen("unspecified_dims=[");
    for (uint32_t i = 0, n = numbers(&at, dims, OTRN_MAX_RANK); i < n; i++)
        if (dims[i] == dim)
            return true;
    return false;
}

// NULL where the text says nothing, or that a tensor is whole where nothing was cut before.
static const HloAttr *sharding(Gspmd *g, const char *text, uint32_t rank, const char *config) {
    Tiles t = {.total = 1};
    bool cut = tiles_read(g, text, rank, &t);
    if (!cut && (g->devices <= 1 || !eat(&text, "{replicated")))
        return NULL;
    for (uint32_t i = 0; !cut && i < rank; i++)
        t.dims[i] = 1;
    int64_t first = 0;
    t.n = cut ? t.n : rank;
    t.devices = cut ? t.devices : &first;
    Buf out = {.arena = g->h->arena};
    buf_printf(&out, "#sdy.sharding<@%s, [", mesh_of(g, &t));
    for (uint32_t i = 0; i < rank; i++) {
        buf_puts(&out, i ? ", {" : "{");
        if (t.dims[i] > 1)
            buf_printf(&out, "\"d%u\"", i);
        buf_puts(&out, !is_open(config, i) ? "}" : t.dims[i] > 1 ? ", ?}" : "?}");
    }
    buf_puts(&out, "]>");
    HloAttr *a = ARENA_NEW(g->h->arena, HloAttr);
    *a = (HloAttr){.kind = HA_OPAQUE, .n = (uint32_t)out.n, .s = buf_cstr(&out)};
    return a;
}

// --- who says so -------------------------------------------------------------------------------------

static const char *text_of(Gspmd *g, const HloAttr *a) { return a->kind == HA_STR && a->n ? arena_strndup(g->h->arena, a->s, a->n) : ""; }

static void values(Gspmd *g, const HloNamed **attrs, uint32_t *counts, const TypeId *types, uint32_t n) {
    for (uint32_t i = 0; attrs && i < n; i++) {
        const HloNamed *said = hlo_named_find(attrs[i], counts[i], SAYS);
        const HloType *t = hlo_type(g->h, types[i]);
        if (!said || said->value.kind != HA_STR || t->kind != HT_TENSOR || hlo_named_find(attrs[i], counts[i], "sdy.sharding"))
            continue;
        const char *text = text_of(g, &said->value);
        if (strstr(text, "manual"))
            fail(g, OTRN_UNSUPPORTED, "arguments or results of which every device has its own", text);
        const HloAttr *a = sharding(g, text, (uint32_t)t->rank, NULL);
        if (a)
            attrs[i] = read_named_with(g->h, attrs[i], &counts[i], (HloNamed){"sdy.sharding", *a});
    }
}

// How a value lies that goes into a part where devices go their own way: its call to @Sharding says so, or its argument.
static const char *lies(Gspmd *g, ValueId v) {
    const HloValue *value = &g->h->values.at[v];
    const HloOp *def = hlo_def(g->h, v);
    uint32_t rank = hlo_value_type(g->h, v)->rank;
    const HloNamed *said = def ? hlo_named_find(def->extra, def->nextra, def->code == HLO_SDY_SHARDING_CONSTRAINT ? "sharding" : SAYS) : NULL;
    for (uint32_t i = 0; !def && i < g->h->funcs.n; i++) {
        const HloFunc *f = &g->h->funcs.at[i];
        if (f->body == value->region && f->arg_attrs)
            said = hlo_named_find(f->arg_attrs[value->index], f->narg_attrs[value->index], SAYS);
    }
    if (!said)
        fail(g, OTRN_UNSUPPORTED, "a tensor that devices take apart (shard_map) does not say how it lies", "SPMDFullToShardShape");
    const HloAttr *a = said->value.kind == HA_STR ? sharding(g, text_of(g, &said->value), rank, NULL) : &said->value;
    return a ? a->s : NULL;
}

// A call at the bounds of such a part: what Shardy's region says. text: NULL: the tensor is whole.
static void bound(Gspmd *g, OpId id, const char *name, const char *text) {
    HloOp *op = hlo_at(g->h, id);
    Buf out = {.arena = g->h->arena}, axes = {.arena = g->h->arena};
    buf_printf(&out, "#sdy.sharding_per_value<[%s", text ? text + strlen("#sdy.sharding") : "<mesh<[]>, [");
    for (int i = 0; !text && i < hlo_value_type(g->h, op->results)->rank; i++)
        buf_puts(&out, i ? ", {}" : "{}");
    buf_puts(&out, text ? "]>" : "]>]>");
    for (uint32_t i = 0; i < OTRN_MAX_RANK + 2; i++) // every axis of mesh_of
        buf_printf(&axes, "%s\"d%u\"", i ? ", " : "#sdy<manual_axes{", i);
    buf_puts(&axes, "}>");
    HloAttr list = {.kind = HA_OPAQUE, .n = (uint32_t)out.n, .s = buf_cstr(&out)}, all = {.kind = HA_OPAQUE, .n = (uint32_t)axes.n, .s = buf_cstr(&axes)};
    op->extra = read_named_with(g->h, op->extra, &op->nextra, (HloNamed){name, list});
    op->extra = read_named_with(g->h, op->extra, &op->nextra, (HloNamed){"manual_axes", all});
}

static void constraint(Gspmd *g, OpId id) {
    HloOp *op = hlo_at(g->h, id);
    const char *target = op->code == HLO_CUSTOM_CALL ? hlo_attr_str(op, AK_CALL_TARGET_NAME) : "";
    bool in = !strcmp(target, "SPMDFullToShardShape");
    g->loc = op->loc;
    const HloNamed *said = hlo_named_find(op->extra, op->nextra, SAYS);
    if (in || !strcmp(target, "SPMDShardToFullShape")) {
        const HloType *t = op->nresults == 1 && op->noperands == 1 ? hlo_value_type(g->h, op->results) : NULL;
        if (!t || t->kind != HT_TENSOR || !said || said->value.kind != HA_STR)
            fail(g, OTRN_PARSE, "a call that says nothing of how its tensor lies", target);
        const HloAttr *a = in ? NULL : sharding(g, text_of(g, &said->value), t->rank, NULL);
        bound(g, id, in ? "in_shardings" : "out_shardings", in ? lies(g, hlo_operand(g->h, op, 0)) : a ? a->s : NULL);
        return;
    }
    if (strcmp(target, "Sharding") || !said || said->value.kind != HA_STR || op->noperands != 1 || op->nresults != 1)
        return;
    const HloType *t = hlo_value_type(g->h, op->results);
    const HloAttr *config = hlo_attr(op, AK_BACKEND_CONFIG);
    const HloAttr *a = t->kind == HT_TENSOR ? sharding(g, text_of(g, &said->value), (uint32_t)t->rank, config ? text_of(g, config) : NULL) : NULL;
    if (!a)
        return;
    HloNamed *extra = ARENA_NEW(g->h->arena, HloNamed);
    *extra = (HloNamed){"sharding", *a};
    *op = (HloOp){.code = HLO_SDY_SHARDING_CONSTRAINT, .nresults = 1, .noperands = 1, .operands = op->operands, .results = op->results,
                  .extra = extra, .nextra = 1, .loc = op->loc};
}

static bool speaks(const Hlo *h) {
    for (uint32_t k = 0; k < h->funcs.n; k++) {
        const HloFunc *f = &h->funcs.at[k];
        for (uint32_t i = 0; f->arg_attrs && i < f->nargs; i++)
            if (hlo_named_find(f->arg_attrs[i], f->narg_attrs[i], SAYS))
                return true;
        for (uint32_t i = 0; f->res_attrs && i < f->nresults; i++)
            if (hlo_named_find(f->res_attrs[i], f->nres_attrs[i], SAYS))
                return true;
    }
    for (OpId id = 1; id < h->ops.n; id++)
        if (hlo_at(h, id)->nextra && hlo_named_find(hlo_at(h, id)->extra, hlo_at(h, id)->nextra, SAYS))
            return true;
    return false;
}

void read_partitions(Hlo *h, int64_t n) {
    HloType i32 = {.kind = HT_OTHER, .dtype = DT_I32, .text = dtype_row(DT_I32)->name};
    HloAttr value = {.kind = HA_INT, .i = n, .type = hlo_type_intern(h, &i32)};
    h->extra = read_named_with(h, h->extra, &h->nextra, (HloNamed){"mhlo.num_partitions", value});
}

// {mesh = #sdy.mesh<["x"=2, "y"=2]>, …}
static void meshes_given(Gspmd *g, const char *s) {
    while (*s) {
        s += strspn(s, "{, ");
        size_t n = strcspn(s, " =");
        const char *name = arena_strndup(g->h->arena, s, n), *from = strstr(s + n, "#sdy.mesh<"), *end = from;
        if (!n || !from)
            return;
        int64_t devices = 1;
        bool quoted = false, listed = false; // behind the axes stand device_ids
        for (; *end && (quoted || *end != '>'); end++) {
            quoted ^= *end == '"';
            listed |= !quoted && *end == ']';
            if (!quoted && !listed && *end == '=' && devices <= PROGRAM_DEVICES_MAX)
                devices *= strtol(end + 1, NULL, 10) & INT32_MAX;
        }
        if (!*end || devices > PROGRAM_DEVICES_MAX)
            fail(g, OTRN_PARSE, "a mesh cannot be read", from);
        HloAttr value = {.kind = HA_OPAQUE, .n = (uint32_t)(end + 1 - from), .s = arena_strndup(g->h->arena, from, (size_t)(end + 1 - from))};
        VEC_PUSH(g->h->arena, &g->meshes, ((HloNamed){name, value}));
        g->devices = devices > g->devices ? devices : g->devices;
        s = end + 1;
    }
}

static int by_name(const void *a, const void *b) { return strcmp(((const HloNamed *)a)->name, ((const HloNamed *)b)->name); }

static void translate(Gspmd *g, HloFunc *f) {
    Hlo *h = g->h;
    for (OpId id = 1; id < h->ops.n; id++)
        constraint(g, id);
    g->loc = 0;
    values(g, f->arg_attrs, (uint32_t *)f->narg_attrs, f->result_types - f->nargs, f->nargs);
    values(g, f->res_attrs, (uint32_t *)f->nres_attrs, f->result_types, f->nresults);
    if (!g->meshes.n || g->devices <= 1)
        return;
    qsort(g->meshes.at, g->meshes.n, sizeof *g->meshes.at, by_name);
    HloAttr dict = {.kind = HA_DICT, .n = g->meshes.n, .dict = g->meshes.at};
    h->extra = read_named_with(h, h->extra, &h->nextra, (HloNamed){"sdy.meshes", dict});
    read_partitions(h, g->devices);
}

void read_gspmd(Hlo *h) {
    HloFunc *f = hlo_func_find(h, "main");
    const HloNamed *said = hlo_named_find(h->extra, h->nextra, "mhlo.num_partitions");
    const HloNamed *given = hlo_named_find(h->extra, h->nextra, "xla.sdy.meshes");
    Gspmd g = {.h = h, .devices = said && said->value.kind == HA_INT ? said->value.i : 0};
    bool one = said && g.devices <= 1; // it has all
    if (given && !one)
        meshes_given(&g, text_of(&g, &given->value));
    if (f && !one && (given || speaks(h)) && !hlo_named_find(h->extra, h->nextra, "sdy.meshes"))
        translate(&g, f);
    read_manual(h, g.devices <= 1);
}
