// SPDX-License-Identifier: Apache-2.0
// text.c — MLIR text to graph: module, functions, regions, values in scope.
//
// One pass over the text, see text.h for the parts. Names of values are hashed; a name goes out of
// scope with the region that defined it, regions see the names around them, functions do not.
#include "read/text.h"

#include "read/read.h"

// --- scopes --------------------------------------------------------------------------------------

uint32_t text_scope_begin(TextRead *p) { return p->scope.n; }

void text_scope_end(TextRead *p, uint32_t mark) {
    while (p->scope.n > mark)
        p->values.names.at[p->scope.at[--p->scope.n]].b = 0;
}

void text_bind(TextRead *p, Span name, const char *at, ValueId first, uint32_t count) {
    TextName *t = text_map_at(p->arena, &p->values, name);
    if (t->b)
        text_fail(p, at, OTRN_PARSE, "the value %%%.*s is defined twice", (int)name.n, name.s);
    t->a = first;
    t->b = count;
    VEC_PUSH(p->arena, &p->scope, (uint32_t)(t - p->values.names.at));
}

// --- regions -------------------------------------------------------------------------------------

TextResult text_argument(TextRead *p, TypeId *type) {
    text_need(p, '%');
    TextResult r = {.name = text_suffix_id(p, "an argument name"), .count = 1};
    text_need(p, ':');
    *type = text_type(p);
    r.loc = text_loc_trailing(p);
    return r;
}

static void ops_until_brace(TextRead *p, RegionId r) {
    while (text_peek(p) != '}') {
        if (p->at == p->end)
            text_expected(p, "'}' to close the region");
        if (*p->at == '^')
            text_fail(p, p->at, OTRN_UNSUPPORTED, "a region of more than one block");
        text_op(p, r);
    }
    p->at++;
}

void text_region_body(TextRead *p, RegionId r) {
    text_need(p, '{');
    ops_until_brace(p, r);
}

// ^bb0(%a: T, …): pushes names on p->results and types on p->types.
static void block_label(TextRead *p) {
    text_need(p, '^');
    text_suffix_id(p, "a block name");
    if (text_eat(p, '(')) {
        if (text_peek(p) != ')') {
            do {
                TypeId t;
                TextResult r = text_argument(p, &t);
                VEC_PUSH(p->arena, &p->types, t);
                VEC_PUSH(p->arena, &p->results, r);
            } while (text_eat(p, ','));
        }
        text_need(p, ')');
    }
    text_need(p, ':');
}

void text_region(TextRead *p, OpId parent) {
    text_need(p, '{');
    uint32_t types = p->types.n, names = p->results.n, mark = text_scope_begin(p);
    if (text_peek(p) == '^')
        block_label(p);
    uint32_t n = p->types.n - types;
    RegionId r = hlo_op_add_region(p->h, parent, n, p->types.at + types);
    for (uint32_t i = 0; i < n; i++)
        text_bind(p, p->results.at[names + i].name, p->at, p->h->regions.at[r].args + i, 1);
    p->types.n = types;
    p->results.n = names;
    ops_until_brace(p, r);
    text_scope_end(p, mark);
}

// --- functions -----------------------------------------------------------------------------------

typedef struct FuncRead {
    HloFunc f;
    const char *at;
    TextPos pos;
    uint32_t types, names; // stack bases: argument types and names
    VEC(HloAttr) arg_attrs; // one DICT each
    VEC(HloAttr) res_attrs;
    uint32_t nargs;
} FuncRead;

static HloAttr optional_dict(TextRead *p) {
    HloAttr a = {.kind = HA_DICT};
    if (text_peek(p) == '{')
        a.dict = text_dict(p, &a.n);
    return a;
}

// (%a: T {attrs} loc(…), …), or only types in a declaration.
static void func_arguments(TextRead *p, FuncRead *fr) {
    text_need(p, '(');
    if (text_peek(p) != ')') {
        do {
            TextResult name = {.count = 1};
            if (text_eat(p, '%')) {
                name.name = text_suffix_id(p, "an argument name");
                text_need(p, ':');
            }
            TypeId t = text_type(p);
            HloAttr attrs = optional_dict(p);
            name.loc = text_loc_trailing(p);
            VEC_PUSH(p->arena, &p->types, t);
            VEC_PUSH(p->arena, &p->results, name);
            VEC_PUSH(p->arena, &fr->arg_attrs, attrs);
        } while (text_eat(p, ','));
    }
    text_need(p, ')');
    fr->nargs = p->types.n - fr->types;
}

// -> T, -> (T {attrs}, …): types stay on the stack behind the arguments'.
static void func_results(TextRead *p, FuncRead *fr) {
    if (!text_eat_arrow(p))
        return;
    if (!text_eat(p, '(')) {
        TypeId t = text_type(p);
        VEC_PUSH(p->arena, &p->types, t);
        VEC_PUSH(p->arena, &fr->res_attrs, ((HloAttr){.kind = HA_DICT}));
        return;
    }
    if (text_peek(p) != ')') {
        do {
            TypeId t = text_type(p);
            HloAttr attrs = optional_dict(p);
            VEC_PUSH(p->arena, &p->types, t);
            VEC_PUSH(p->arena, &fr->res_attrs, attrs);
        } while (text_eat(p, ','));
    }
    text_need(p, ')');
}

// Dictionaries as HloFunc keeps them; NULL when all are empty.
static const HloNamed **attr_lists(TextRead *p, const HloAttr *dicts, uint32_t n,
                                   const uint32_t **counts) {
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any |= dicts[i].n != 0;
    if (!any)
        return NULL;
    const HloNamed **lists = ARENA_NEWN(p->arena, const HloNamed *, n);
    uint32_t *ns = ARENA_NEWN(p->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        lists[i] = dicts[i].dict;
        ns[i] = dicts[i].n;
    }
    *counts = ns;
    return lists;
}

// Locations of the n arguments on top of the stack from `first` on, as HloFunc keeps them.
static const LocId *arg_locs(TextRead *p, uint32_t first, uint32_t n) {
    LocId any = 0;
    for (uint32_t i = 0; i < n; i++)
        any |= p->results.at[first + i].loc;
    if (!any)
        return NULL;
    LocId *locs = ARENA_NEWN(p->arena, LocId, n);
    for (uint32_t i = 0; i < n; i++)
        locs[i] = p->results.at[first + i].loc;
    return locs;
}

// Everything known but the body: fills the function from the stacks.
static void func_signature(TextRead *p, FuncRead *fr) {
    HloFunc *f = &fr->f;
    f->nargs = fr->nargs;
    f->nresults = p->types.n - fr->types - fr->nargs;
    const TypeId *all = arena_dup(p->arena, p->types.at + fr->types,
                                  (f->nargs + f->nresults) * sizeof *all);
    f->result_types = all + f->nargs;
    if ((fr->arg_attrs.n && fr->arg_attrs.n != f->nargs) ||
        (fr->res_attrs.n && fr->res_attrs.n != f->nresults))
        text_fail(p, fr->at, OTRN_PARSE,
                  "@%s needs one dictionary per argument and result, or none at all", f->name);
    f->arg_attrs = attr_lists(p, fr->arg_attrs.at, fr->arg_attrs.n, &f->narg_attrs);
    f->res_attrs = attr_lists(p, fr->res_attrs.at, fr->res_attrs.n, &f->nres_attrs);
    if (hlo_func_find(p->h, f->name))
        text_fail(p, fr->at, OTRN_PARSE, "the function @%s is defined twice", f->name);
}

static void func_add(TextRead *p, FuncRead *fr) {
    fr->f.loc = text_loc_or_here(p, text_loc_trailing(p), fr->pos);
    p->types.n = fr->types;
    p->results.n = fr->names;
    VEC_PUSH(p->arena, &p->h->funcs, fr->f);
}

static void func_body(TextRead *p, FuncRead *fr) {
    RegionId r = hlo_region(p->h, 0, fr->nargs, p->types.at + fr->types);
    uint32_t mark = text_scope_begin(p);
    for (uint32_t i = 0; i < fr->nargs; i++) {
        Span name = p->results.at[fr->names + i].name;
        if (!name.n)
            text_fail(p, fr->at, OTRN_PARSE, "the arguments of @%s need names", fr->f.name);
        text_bind(p, name, fr->at, p->h->regions.at[r].args + i, 1);
    }
    text_region_body(p, r);
    text_scope_end(p, mark);
    fr->f.body = r;
}

// func.func [public|private] @f(args) -> results [attributes {…}] [{ body }], behind "func.func"
static void func_pretty(TextRead *p, const char *at) {
    FuncRead fr = {.at = at, .types = p->types.n, .names = p->results.n};
    fr.pos = text_pos(p, at);
    if (text_eat_word(p, "private") || text_eat_word(p, "nested"))
        fr.f.is_private = true;
    else
        text_eat_word(p, "public");
    fr.f.name = text_symbol(p);
    func_arguments(p, &fr);
    func_results(p, &fr);
    if (text_eat_word(p, "attributes"))
        fr.f.extra = text_dict(p, &fr.f.nextra);
    func_signature(p, &fr);
    fr.f.arg_locs = arg_locs(p, fr.names, fr.nargs);
    if (text_peek(p) == '{')
        func_body(p, &fr);
    func_add(p, &fr);
}

// --- functions in generic form -------------------------------------------------------------------

static void dicts_take(TextRead *p, FuncRead *fr, const HloAttr *list, bool args) {
    for (uint32_t i = 0; list->kind == HA_LIST && i < list->n; i++) {
        HloAttr d = list->list[i].kind == HA_DICT ? list->list[i] : (HloAttr){.kind = HA_DICT};
        if (args)
            VEC_PUSH(p->arena, &fr->arg_attrs, d);
        else
            VEC_PUSH(p->arena, &fr->res_attrs, d);
    }
}

// One entry of "func.func"'s attributes.
static void func_attr(TextRead *p, FuncRead *fr) {
    const char *at = p->at, *name = text_attr_name(p);
    HloAttr v = {.kind = HA_UNIT};
    if (text_eat(p, '='))
        v = text_attr(p);
    if (!strcmp(name, "sym_name") && v.kind == HA_STR) {
        fr->f.name = v.s;
    } else if (!strcmp(name, "sym_visibility") && v.kind == HA_STR) {
        fr->f.is_private = strcmp(v.s, "public") != 0;
    } else if (!strcmp(name, "function_type") && v.kind == HA_TYPE) {
        const HloType *t = hlo_type(p->h, v.type);
        if (t->kind != HT_FUNC)
            text_fail(p, at, OTRN_PARSE, "function_type must be a function's type");
        fr->nargs = t->ninputs;
        p->types.n = fr->types;
        for (uint32_t i = 0; i < t->nmembers; i++)
            VEC_PUSH(p->arena, &p->types, hlo_type(p->h, v.type)->members[i]);
    } else if (!strcmp(name, "arg_attrs") || !strcmp(name, "res_attrs")) {
        dicts_take(p, fr, &v, *name == 'a');
    } else {
        VEC_PUSH(p->arena, &p->named, ((HloNamed){name, v}));
    }
}

static void func_attrs(TextRead *p, FuncRead *fr) {
    text_need(p, '{');
    if (text_peek(p) != '}') {
        do {
            func_attr(p, fr);
        } while (text_eat(p, ','));
    }
    text_need(p, '}');
}

// The region of "func.func": ({^bb0(args): …}) or ({}) for a declaration.
static void func_generic_body(TextRead *p, FuncRead *fr) {
    text_need(p, '{');
    uint32_t types = p->types.n, names = p->results.n, mark = text_scope_begin(p);
    if (text_peek(p) == '^')
        block_label(p);
    uint32_t n = p->types.n - types;
    if (text_peek(p) != '}' || n) {
        RegionId r = hlo_region(p->h, 0, n, p->types.at + types);
        for (uint32_t i = 0; i < n; i++)
            text_bind(p, p->results.at[names + i].name, p->at, p->h->regions.at[r].args + i, 1);
        fr->f.arg_locs = arg_locs(p, names, n);
        p->types.n = types;
        p->results.n = names;
        ops_until_brace(p, r);
        fr->f.body = r;
    } else {
        p->at++;
    }
    text_scope_end(p, mark);
}

// "func.func"() <{…}> ({…}) {…} : () -> (), behind the name
static void func_generic(TextRead *p, const char *at) {
    FuncRead fr = {.at = at, .types = p->types.n, .names = p->results.n};
    fr.pos = text_pos(p, at);
    uint32_t named = p->named.n;
    text_need(p, '(');
    text_need(p, ')');
    if (text_eat(p, '<')) {
        func_attrs(p, &fr);
        text_need(p, '>');
    }
    text_need(p, '(');
    func_generic_body(p, &fr);
    text_need(p, ')');
    if (text_peek(p) == '{')
        func_attrs(p, &fr);
    text_need(p, ':');
    text_type(p);
    if (!fr.f.name || strlen(fr.f.name) == 0)
        text_fail(p, at, OTRN_PARSE, "this function has no sym_name");
    fr.f.extra = text_named_take(p, named, &fr.f.nextra);
    func_signature(p, &fr);
    const HloRegion *r = &p->h->regions.at[fr.f.body];
    bool same = !fr.f.body || r->nargs == fr.f.nargs;
    for (uint32_t i = 0; fr.f.body && same && i < r->nargs; i++)
        same = p->h->values.at[r->args + i].type == fr.f.result_types[(int64_t)i - fr.f.nargs];
    if (!same)
        text_fail(p, at, OTRN_PARSE, "@%s: the block's arguments do not match function_type",
                  fr.f.name);
    func_add(p, &fr);
}

// --- module --------------------------------------------------------------------------------------

// A mesh becomes the entry @name of the module attribute "sdy.meshes".
static void mesh_add(TextRead *p, const char *name, HloAttr mesh) {
    uint32_t n;
    if (text_peek(p) == '{') // what else is said of it: the mesh told again in other words
        text_dict(p, &n);
    VEC_PUSH(p->arena, &p->meshes, ((HloNamed){name, mesh}));
    text_loc_trailing(p);
}

// sdy.mesh @mesh = <["x"=2]>, behind "sdy.mesh"
static void mesh_pretty(TextRead *p) {
    const char *name = text_symbol(p);
    text_need(p, '=');
    Buf text = {.arena = p->arena};
    buf_puts(&text, "#sdy.mesh");
    text_raw_balanced(p, &text);
    mesh_add(p, name, (HloAttr){.kind = HA_OPAQUE, .n = (uint32_t)text.n, .s = buf_cstr(&text)});
}

// "sdy.mesh"() <{mesh = #sdy.mesh<…>, sym_name = "mesh"}> : () -> (), behind the name
static void mesh_generic(TextRead *p, const char *at) {
    text_need(p, '(');
    text_need(p, ')');
    bool properties = text_eat(p, '<');
    uint32_t n;
    const HloNamed *dict = text_dict(p, &n);
    if (properties)
        text_need(p, '>');
    text_need(p, ':');
    text_type(p);
    const HloNamed *mesh = hlo_named_find(dict, n, "mesh");
    const HloNamed *name = hlo_named_find(dict, n, "sym_name");
    if (!mesh || !name || mesh->value.kind != HA_OPAQUE || name->value.kind != HA_STR)
        text_fail(p, at, OTRN_PARSE, "a mesh needs sym_name and mesh");
    mesh_add(p, name->value.s, mesh->value);
}

static void module_item(TextRead *p) {
    text_space(p);
    const char *at = p->at;
    if (text_eat_word(p, "func.func")) {
        func_pretty(p, at);
    } else if (text_eat_word(p, "sdy.mesh")) {
        mesh_pretty(p);
    } else if (*at == '"') {
        const char *name = text_name_string(p);
        if (!strcmp(name, "func.func"))
            func_generic(p, at);
        else if (!strcmp(name, "sdy.mesh"))
            mesh_generic(p, at);
        else
            text_fail(p, at, OTRN_UNSUPPORTED, "the op '%.200s' directly in a module", name);
    } else {
        Span name = text_ident(p, "a function");
        int shown = (int)(name.n < 200 ? name.n : 200);
        if (!memchr(name.s, '.', name.n))
            text_fail(p, at, OTRN_PARSE, "a module or a function is expected, not '%.*s'", shown, name.s);
        text_fail(p, at, OTRN_UNSUPPORTED, "the op '%.*s' directly in a module", shown, name.s);
    }
}

static void module_items(TextRead *p) {
    text_need(p, '{');
    while (!text_eat(p, '}')) {
        if (p->at == p->end)
            text_expected(p, "'}' to close the module");
        module_item(p);
    }
}

// Module attributes go onto p->named; the name is taken out.
static void module_attrs(TextRead *p) {
    text_need(p, '{');
    if (text_peek(p) != '}') {
        do {
            HloNamed e = {.name = text_attr_name(p), .value = {.kind = HA_UNIT}};
            if (text_eat(p, '='))
                e.value = text_attr(p);
            if (!strcmp(e.name, "sym_name") && e.value.kind == HA_STR)
                p->h->name = e.value.s;
            else
                VEC_PUSH(p->arena, &p->named, e);
        } while (text_eat(p, ','));
    }
    text_need(p, '}');
}

// "builtin.module"() <{…}> ({…}) {…} : () -> (), behind the name
static void module_generic(TextRead *p) {
    text_need(p, '(');
    text_need(p, ')');
    if (text_eat(p, '<')) {
        module_attrs(p);
        text_need(p, '>');
    }
    text_need(p, '(');
    text_need(p, '{');
    if (text_peek(p) == '^')
        block_label(p);
    while (!text_eat(p, '}')) {
        if (p->at == p->end)
            text_expected(p, "'}' to close the module");
        module_item(p);
    }
    text_need(p, ')');
    if (text_peek(p) == '{')
        module_attrs(p);
    text_need(p, ':');
    text_type(p);
}

// True when a module was read; functions may also stand without one.
static bool module_read(TextRead *p) {
    if (text_peek(p) == '"') {
        const char *save = p->at;
        if (strcmp(text_name_string(p), "builtin.module")) {
            p->at = save;
            return false;
        }
        module_generic(p);
    } else if (text_eat_word(p, "module") || text_eat_word(p, "builtin.module")) {
        if (text_peek(p) == '@')
            p->h->name = text_symbol(p);
        if (text_eat_word(p, "attributes"))
            module_attrs(p);
        module_items(p);
    } else {
        return false;
    }
    text_loc_trailing(p);
    return true;
}

static void top_level(TextRead *p) {
    bool module = false, items = false;
    for (char c; (c = text_peek(p)) || p->at < p->end;) {
        if (c == '#' || c == '!') {
            text_alias_define(p);
        } else if (p->at == p->resources_at) {
            p->at = p->end; // read when a constant asks for it
        } else {
            const char *at = p->at;
            if (module)
                text_expected(p, "the end of the text behind the module");
            if (!module_read(p)) {
                module_item(p);
                items = true;
            } else if (items) {
                text_fail(p, at, OTRN_PARSE, "a module behind functions without one");
            } else {
                module = true;
            }
        }
    }
}

static void module_extra(TextRead *p) {
    if (p->meshes.n) {
        HloAttr dict = {.kind = HA_DICT, .n = p->meshes.n, .dict = p->meshes.at};
        VEC_PUSH(p->arena, &p->named, ((HloNamed){"sdy.meshes", dict}));
    }
    p->h->extra = text_named_take(p, 0, &p->h->nextra);
}

Hlo *read_text(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size) {
    TextRead *p = ARENA_NEW(a, TextRead);
    p->ctx = ctx;
    p->arena = a;
    p->h = hlo_make(ctx, a, name);
    p->file = p->h->file;
    p->file_str = hlo_str(p->h, name, strlen(name));
    p->begin = p->at = p->line_at = size ? bytes : "";
    p->end = p->begin + size;
    p->line = 1;
    text_alias_scan(p);
    top_level(p);
    module_extra(p);
    return p->h;
}
