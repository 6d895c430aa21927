// SPDX-License-Identifier: Apache-2.0
// xla.c — HloModuleProto to graph: computations, functions, arguments, aliases. xla.h tells the idea.
#include "read/xla.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/read.h"

// Fields of the messages, as XLA numbers them.
enum { MODULE_NAME = 1, MODULE_COMPS = 3, MODULE_ENTRY = 6, MODULE_ALIAS = 8, MODULE_DONORS = 18, MODULE_FRAMES = 17, MODULE_FRONTEND = 19 };
enum { COMP_NAME = 1, COMP_INSTS = 2, COMP_ID = 5, COMP_ROOT = 6 };
enum { INST_NAME = 1, INST_OPCODE = 2, INST_SHAPE = 3, INST_METADATA = 7, INST_PARAMETER = 9, INST_ID = 35 };
enum { ALIAS_ENTRIES = 1, ALIAS_OUTPUT = 1, ALIAS_PARAMETER = 2, ALIAS_INSIDE = 3 };
enum { META_NAME = 2 };

void xla_fail(Xla *x, otrn_status code, const char *fmt, ...) {
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    Place at = x->loc ? hlo_place(x->h, x->loc) : (Place){0};
    ctx_fail(x->ctx, code, at.file ? at : (Place){.file = x->h->file}, "%s", text);
}

// --- names and numbers -------------------------------------------------------------------------------

static int by_id(const void *a, const void *b) {
    const XlaId *p = a, *q = b;
    return p->id < q->id ? -1 : p->id > q->id;
}

static void ids_sort(Xla *x, XlaId *ids, uint32_t n, const char *what) {
    if (n)
        qsort(ids, n, sizeof *ids, by_id);
    for (uint32_t i = 1; i < n; i++)
        if (ids[i].id == ids[i - 1].id)
            xla_fail(x, OTRN_PARSE, "two %s of the HLO module have the number %lld", what, (long long)ids[i].id);
}

int64_t xla_find(const XlaId *ids, uint32_t n, int64_t id) {
    XlaId key = {.id = id};
    const XlaId *at = n ? bsearch(&key, ids, n, sizeof *ids, by_id) : NULL;
    return at ? (int64_t)at->index : -1;
}

XlaComp *xla_comp(Xla *x, int64_t id, const XlaComp *user) {
    int64_t at = xla_find(x->ids, x->ncomps, id);
    if (at < 0 || &x->comps[at] >= user) // so that no computation uses itself
        xla_fail(x, OTRN_PARSE, "%s of the HLO module uses a computation that is not before it", user->name);
    return &x->comps[at];
}

// --- computations ------------------------------------------------------------------------------------

static void comp_params(Xla *x, XlaComp *c) {
    c->params = ARENA_NEWN(x->arena, uint32_t, c->ninsts + 1);
    for (uint32_t i = 0; i < c->ninsts; i++)
        c->nparams += !strcmp(pb_text(x, c->insts[i], INST_OPCODE), "parameter");
    bool *seen = ARENA_NEWN(x->arena, bool, c->nparams + 1);
    for (uint32_t i = 0; i < c->ninsts; i++) {
        if (strcmp(pb_text(x, c->insts[i], INST_OPCODE), "parameter"))
            continue;
        int64_t number = pb_int(x, c->insts[i], INST_PARAMETER);
        if (number < 0 || number >= c->nparams || seen[number])
            xla_fail(x, OTRN_PARSE, "the parameters of %s are not numbered in order", c->name);
        seen[number] = true;
        c->params[number] = i;
    }
}

static int64_t comp_read(Xla *x, XlaComp *c, Pb m) {
    const Pb *insts = pb_list(x, m, COMP_INSTS, &c->ninsts);
    c->name = pb_text(x, m, COMP_NAME);
    c->insts = ARENA_NEWN(x->arena, Pb, c->ninsts + 1);
    c->ids = ARENA_NEWN(x->arena, XlaId, c->ninsts + 1);
    c->shapes = ARENA_NEWN(x->arena, Pb, c->ninsts + 1);
    for (uint32_t i = 0; i < c->ninsts; i++) {
        c->insts[i] = insts[i];
        c->shapes[i] = pb_bytes(x, insts[i], INST_SHAPE);
        c->ids[i] = (XlaId){xla_local(pb_int(x, insts[i], INST_ID)), i};
    }
    ids_sort(x, c->ids, c->ninsts, "instructions");
    int64_t root = xla_find(c->ids, c->ninsts, xla_local(pb_int(x, m, COMP_ROOT)));
    if (root < 0)
        xla_fail(x, OTRN_PARSE, "the computation %s of the HLO module has no root", c->name);
    c->root = (uint32_t)root;
    comp_params(x, c);
    return pb_int(x, m, COMP_ID);
}

XlaVals xla_build(Xla *x, XlaComp *c, RegionId into, const XlaVals *params) {
    if (++x->depth > XLA_MAX_DEPTH || (x->made += c->ninsts) > XLA_MAX_MADE)
        xla_fail(x, OTRN_CAPACITY, "the HLO module's computations lie too deep in one another, or are used too often");
    XlaVals *vals = ARENA_NEWN(x->arena, XlaVals, c->ninsts + 1);
    for (uint32_t i = 0; i < c->ninsts; i++) {
        vals[i] = xla_inst(x, c, into, i, vals, params);
        c->shapes[i] = x->shape;
    }
    x->depth--;
    return vals[c->root];
}

void xla_return(Xla *x, RegionId into, XlaVals v) {
    hlo_region_push(x->h, into, hlo_op(x->h, HLO_RETURN, 0, v.n, v.at, 0, NULL));
}

void xla_params(Xla *x, const XlaComp *c, XlaTypes *types) {
    for (uint32_t i = 0; i < c->nparams; i++)
        xla_shape(x, c->shapes[c->params[i]], types);
}

const XlaVals *xla_args(Xla *x, const XlaComp *c, ValueId first) {
    XlaVals *args = ARENA_NEWN(x->arena, XlaVals, c->nparams + 1);
    for (uint32_t i = 0; i < c->nparams; i++) {
        uint32_t n = xla_leaves(x, c->shapes[c->params[i]]);
        ValueId *at = ARENA_NEWN(x->arena, ValueId, n + 1);
        for (uint32_t k = 0; k < n; k++)
            at[k] = first++;
        args[i] = (XlaVals){at, n};
    }
    return args;
}

// --- functions ---------------------------------------------------------------------------------------

// An argument is called as the front end calls it, else as the parameter.
static const LocId *arg_locs(Xla *x, const XlaComp *c, uint32_t nargs) {
    LocId *locs = ARENA_NEWN(x->arena, LocId, nargs + 1);
    for (uint32_t i = 0, at = 0; i < c->nparams; i++) {
        Pb inst = c->insts[c->params[i]];
        const char *name = pb_text(x, pb_bytes(x, inst, INST_METADATA), META_NAME);
        name = *name ? name : pb_text(x, inst, INST_NAME);
        uint32_t n = xla_leaves(x, c->shapes[c->params[i]]);
        for (uint32_t k = 0; k < n; k++)
            locs[at++] = hlo_loc(x->h, &(HloLoc){.kind = HL_NAME, .str = hlo_str(x->h, name, strlen(name))});
    }
    return locs;
}

// What the entry's parameters and root say of devices.
static void shardings(Xla *x, const XlaComp *c, HloFunc *f) {
    uint32_t n = f->nargs + f->nresults, *counts = ARENA_NEWN(x->arena, uint32_t, n + 1), at = 0;
    const HloNamed **attrs = ARENA_NEWN(x->arena, const HloNamed *, n + 1);
    for (uint32_t i = 0; i <= c->nparams; i++) {
        Pb inst = c->insts[i < c->nparams ? c->params[i] : c->root];
        const char *text = xla_sharding(x, inst);
        if (!text && i == c->nparams && x->cut && !x->open)
            text = "{replicated}"; // XLA's callers take results that say nothing as whole
        uint32_t leaves = i < c->nparams ? xla_leaves(x, c->shapes[c->params[i]]) : f->nresults;
        for (uint32_t k = 0; k < leaves && at < n; k++, at++)
            attrs[at] = xla_sharded(x, text, k, &counts[at]);
    }
    f->arg_attrs = attrs;
    f->narg_attrs = counts;
    f->res_attrs = attrs + f->nargs;
    f->nres_attrs = counts + f->nargs;
}

static void func_make(Xla *x, XlaComp *c, const char *name, bool is_private) {
    XlaTypes types = {0};
    xla_params(x, c, &types);
    uint32_t nargs = types.n;
    RegionId body = hlo_region(x->h, 0, nargs, types.at);
    XlaVals root = xla_build(x, c, body, xla_args(x, c, x->h->regions.at[body].args));
    xla_return(x, body, root);
    for (uint32_t i = 0; i < root.n; i++)
        VEC_PUSH(x->arena, &types, x->h->values.at[root.at[i]].type);
    HloFunc f = {.name = name, .is_private = is_private, .body = body, .nargs = nargs, .nresults = root.n};
    VEC_PUSH(x->arena, &types, 0);
    f.result_types = types.at + nargs;
    f.arg_locs = arg_locs(x, c, nargs);
    if (!is_private)
        shardings(x, c, &f);
    VEC_PUSH(x->arena, &x->h->funcs, f);
}

const char *xla_func(Xla *x, XlaComp *c) {
    if (!c->func) {
        Buf name = {.arena = x->arena};
        buf_printf(&name, "%s.%u", c->name, (unsigned)(c - x->comps));
        c->func = buf_cstr(&name);
        func_make(x, c, c->func, true);
    }
    return c->func;
}

// --- the module --------------------------------------------------------------------------------------

// Where in a flat list an index path into a shape leads, or -1 where that is no array.
static int64_t leaf_at(Xla *x, Pb shape, const int64_t *path, uint32_t n) {
    int64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t members;
        const Pb *inside = pb_list(x, shape, 4, &members);
        if (path[i] < 0 || path[i] >= members)
            return -1;
        for (int64_t k = 0; k < path[i]; k++)
            at += xla_leaves(x, inside[k]);
        shape = inside[path[i]];
    }
    return at;
}

static int64_t param_leaf(Xla *x, const XlaComp *c, int64_t number, const int64_t *path, uint32_t n) {
    if (number < 0 || number >= c->nparams)
        return -1;
    int64_t before = 0;
    for (int64_t i = 0; i < number; i++)
        before += xla_leaves(x, c->shapes[c->params[i]]);
    int64_t inside = leaf_at(x, c->shapes[c->params[number]], path, n);
    return inside < 0 ? -1 : before + inside;
}

static void aliases(Xla *x, const XlaComp *entry, Pb list, HloFunc *f) {
    uint32_t n;
    const Pb *rows = pb_list(x, list, ALIAS_ENTRIES, &n);
    int64_t *result_of = ARENA_NEWN(x->arena, int64_t, f->nargs + 1);
    for (uint32_t i = 0; i < f->nargs; i++)
        result_of[i] = -1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t nout, nin;
        const int64_t *out = pb_ints(x, rows[i], ALIAS_OUTPUT, &nout), *in = pb_ints(x, rows[i], ALIAS_INSIDE, &nin);
        int64_t arg = param_leaf(x, entry, pb_int(x, rows[i], ALIAS_PARAMETER), in, nin);
        if (arg >= 0 && arg < f->nargs)
            result_of[arg] = leaf_at(x, entry->shapes[entry->root], out, nout);
    }
    if (n)
        read_alias_set(x->h, f, result_of);
}

// HloProto and HloSnapshot have the module inside as their first field; only a module says which computation it begins with.
static Pb module_of(Xla *x, Pb m) {
    PbField entry;
    for (int i = 0; i < 2 && !pb_find(x, m, MODULE_ENTRY, &entry); i++)
        m = pb_bytes(x, m, 1);
    return m;
}

static void frames(Xla *x, Pb m) {
    x->frames = pb_bytes(x, m, MODULE_FRAMES);
    x->files = pb_list(x, x->frames, 1, &x->nfiles);
    x->places = pb_list(x, x->frames, 3, &x->nplaces);
    x->stack = pb_list(x, x->frames, 4, &x->nstack);
}

Hlo *read_xla(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, bool open) {
    Xla *x = ARENA_NEW(a, Xla);
    *x = (Xla){.ctx = ctx, .arena = a, .h = hlo_make(ctx, a, name), .open = open};
    Pb m = module_of(x, (Pb){bytes, size});
    x->h->name = pb_text(x, m, MODULE_NAME);
    frames(x, m);
    const Pb *comps = pb_list(x, m, MODULE_COMPS, &x->ncomps);
    x->comps = ARENA_NEWN(a, XlaComp, x->ncomps + 1);
    x->ids = ARENA_NEWN(a, XlaId, x->ncomps + 1);
    for (uint32_t i = 0; i < x->ncomps; i++)
        x->ids[i] = (XlaId){comp_read(x, &x->comps[i], comps[i]), i};
    ids_sort(x, x->ids, x->ncomps, "computations");
    int64_t entry = xla_find(x->ids, x->ncomps, pb_int(x, m, MODULE_ENTRY));
    if (entry < 0)
        xla_fail(x, OTRN_PARSE, "the HLO module has no entry computation");
    func_make(x, &x->comps[entry], "main", false);
    const char *meshes = xla_frontend(x, pb_bytes(x, m, MODULE_FRONTEND), "xla.sdy.meshes");
    HloAttr given = {.kind = HA_STR, .n = meshes ? (uint32_t)strlen(meshes) : 0, .s = meshes};
    if (meshes)
        x->h->extra = read_named_with(x->h, x->h->extra, &x->h->nextra, (HloNamed){"xla.sdy.meshes", given});
    if (pb_int(x, m, XLA_PARTITIONS) > 0)
        read_partitions(x->h, pb_int(x, m, XLA_PARTITIONS));
    aliases(x, &x->comps[entry], pb_bytes(x, m, MODULE_ALIAS), hlo_func_find(x->h, "main"));
    return x->h;
}
