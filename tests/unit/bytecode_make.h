// SPDX-License-Identifier: Apache-2.0
// bytecode_make.h — a small writer of MLIR bytecode for tests.
//
// A Maker collects strings, attributes, types, property records and ops, each add_ giving an id,
// and `finish` writes the container of the version asked for. Nothing is checked: tests break rules
// with it.
#ifndef OTRN_TESTS_BYTECODE_MAKE_H
#define OTRN_TESTS_BYTECODE_MAKE_H

#include <stdlib.h>

#include "base/bytes.h"

typedef struct Maker {
    Arena *arena;
    unsigned version;
    Buf strs, attr_sizes, attr_data, type_sizes, type_data, opnames, props, ops;
    Buf resources, resource_data;
    const char *producer;
    size_t lens[64];
    unsigned nstrs, nattrs, ntypes, nprops, nopnames, nresources;
} Maker;

enum { BUILTIN, VHLO, SDY };

static void put_varint(Buf *b, uint64_t v) { // any length that holds it; short ones here
    unsigned extra = 0;
    while (extra < 8 && v >> (7 * (extra + 1)))
        extra++;
    if (extra == 8) {
        put_u8(b, 0);
        put_u64(b, v);
        return;
    }
    v = (v << 1 | 1) << extra;
    for (unsigned i = 0; i <= extra; i++)
        put_u8(b, (uint8_t)(v >> (8 * i)));
}

static uint64_t zig(int64_t v) {
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static unsigned add_str(Maker *m, const char *s) {
    if (m->nstrs == sizeof m->lens / sizeof *m->lens)
        abort();
    m->lens[m->nstrs] = strlen(s) + 1;
    buf_put(&m->strs, s, strlen(s) + 1);
    return m->nstrs++;
}

static void add_entry(Buf *sizes, Buf *data, unsigned dialect, const Buf *bytes, bool custom) {
    put_varint(sizes, dialect);
    put_varint(sizes, 1);
    put_varint(sizes, bytes->n << 1 | custom);
    buf_put(data, bytes->at, bytes->n);
}

static Buf varints(Maker *m, const uint64_t *v, size_t n) {
    Buf b = {.arena = m->arena};
    for (size_t i = 0; i < n; i++)
        put_varint(&b, v[i]);
    return b;
}
#define VARINTS(m, ...)                                                                            \
    varints(m, (uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static unsigned add_attr(Maker *m, unsigned dialect, Buf bytes) {
    add_entry(&m->attr_sizes, &m->attr_data, dialect, &bytes, true);
    return m->nattrs++;
}
#define ATTR(m, dialect, ...) add_attr(m, dialect, VARINTS(m, __VA_ARGS__))

static unsigned add_type(Maker *m, unsigned dialect, Buf bytes) {
    add_entry(&m->type_sizes, &m->type_data, dialect, &bytes, true);
    return m->ntypes++;
}
#define TYPE(m, dialect, ...) add_type(m, dialect, VARINTS(m, __VA_ARGS__))

static unsigned add_text(Maker *m, bool type, const char *text) {
    Buf b = {.arena = m->arena};
    buf_put(&b, text, strlen(text) + 1);
    if (type)
        add_entry(&m->type_sizes, &m->type_data, BUILTIN, &b, false);
    else
        add_entry(&m->attr_sizes, &m->attr_data, BUILTIN, &b, false);
    return type ? m->ntypes++ : m->nattrs++;
}

static unsigned add_tensor(Maker *m, unsigned type, const void *bytes, size_t n) {
    Buf b = VARINTS(m, 15, type, n);
    buf_put(&b, bytes, n);
    return add_attr(m, VHLO, b);
}

static unsigned add_string_attr(Maker *m, unsigned dialect, const char *s) {
    return ATTR(m, dialect, dialect == BUILTIN ? 2 : 14, add_str(m, s));
}

static unsigned add_op_name(Maker *m, unsigned dialect, const char *name) {
    put_varint(&m->opnames, dialect);
    put_varint(&m->opnames, 1);
    unsigned s = add_str(m, name);
    put_varint(&m->opnames, m->version >= 5 ? s << 1 | 1 : s);
    return m->nopnames++;
}

static void put_section(Buf *out, unsigned id, const Buf *data) {
    put_u8(out, (uint8_t)id);
    put_varint(out, data->n);
    buf_put(out, data->at, data->n);
}

static Buf finish(Maker *m) {
    Buf out = {.arena = m->arena}, strs = {.arena = m->arena}, dialects = {.arena = m->arena};
    Buf sizes = {.arena = m->arena}, props = {.arena = m->arena}, res = {.arena = m->arena};
    const char *names[] = {"builtin", "vhlo", "sdy"};
    put_varint(&dialects, 3);
    for (int i = 0; i < 3; i++) {
        unsigned s = add_str(m, names[i]);
        put_varint(&dialects, m->version >= 1 ? s << 1 : s);
    }
    if (m->version >= 4)
        put_varint(&dialects, m->nopnames);
    buf_put(&dialects, m->opnames.at, m->opnames.n);
    put_varint(&sizes, m->nattrs);
    put_varint(&sizes, m->ntypes);
    buf_put(&sizes, m->attr_sizes.at, m->attr_sizes.n);
    buf_put(&sizes, m->type_sizes.at, m->type_sizes.n);
    buf_put(&m->attr_data, m->type_data.at, m->type_data.n);
    put_varint(&strs, m->nstrs);
    for (unsigned i = m->nstrs; i-- > 0;)
        put_varint(&strs, m->lens[i]);
    buf_put(&strs, m->strs.at, m->strs.n);
    put_varint(&props, m->nprops);
    buf_put(&props, m->props.at, m->props.n);
    buf_put(&out, "ML\xefR", 4);
    put_varint(&out, m->version);
    buf_put(&out, m->producer, strlen(m->producer) + 1);
    put_section(&out, 1, &dialects);
    put_section(&out, 3, &sizes);
    put_section(&out, 2, &m->attr_data);
    put_section(&out, 4, &m->ops);
    if (m->nresources) {
        put_varint(&res, 0);
        put_varint(&res, BUILTIN);
        put_varint(&res, m->nresources);
        buf_put(&res, m->resources.at, m->resources.n);
        put_section(&out, 6, &res);
        put_section(&out, 5, &m->resource_data);
    }
    put_section(&out, 0, &strs);
    if (m->version >= 5)
        put_section(&out, 8, &props);
    return out;
}

static unsigned add_props(Maker *m, Buf record) {
    put_varint(&m->props, record.n);
    buf_put(&m->props, record.at, record.n);
    return m->nprops++;
}

// --- one program of every version ---------------------------------------------------------------

// Ids that every made program has.
typedef struct Base {
    unsigned loc, f32, vec, func_type;         // loc: model.py:7:3
    unsigned module, func, add, constant, ret; // op names
    unsigned func_props, const_props;          // property records, or dictionaries before version 5
    unsigned value;                            // the constant's attribute
} Base;

static Maker maker(Arena *a, unsigned version) {
    Maker m = {.arena = a, .version = version, .producer = "StableHLO_v1.0.0"};
    Buf *bufs[] = {&m.strs,    &m.attr_sizes, &m.attr_data, &m.type_sizes, &m.type_data,
                   &m.opnames, &m.props,      &m.ops,       &m.resources,  &m.resource_data};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        bufs[i]->arena = a;
    return m;
}

// Attributes of one op: names and attribute ids, alphabetical.
static unsigned op_attrs(Maker *m, size_t n, const char *const *names, const unsigned *attrs) {
    Buf b = {.arena = m->arena};
    if (m->version >= 5) {
        for (size_t i = 0; i < n; i++)
            put_varint(&b, attrs[i]);
        return add_props(m, b);
    }
    put_varint(&b, 1);
    put_varint(&b, n);
    for (size_t i = 0; i < n; i++) {
        put_varint(&b, add_string_attr(m, BUILTIN, names[i]));
        put_varint(&b, attrs[i]);
    }
    return add_attr(m, BUILTIN, b);
}

static Base base(Maker *m) {
    Base b;
    unsigned file = add_string_attr(m, BUILTIN, "model.py");
    b.loc = ATTR(m, BUILTIN, 11, file, 7, 3);
    b.f32 = TYPE(m, VHLO, 4);
    b.vec = TYPE(m, VHLO, 20, 1, zig(4), b.f32);
    b.func_type = TYPE(m, VHLO, 8, 1, b.vec, 1, b.vec);
    b.module = add_op_name(m, BUILTIN, "module");
    b.func = add_op_name(m, VHLO, "func_v1");
    b.add = add_op_name(m, VHLO, "add_v1");
    b.constant = add_op_name(m, VHLO, "constant_v1");
    b.ret = add_op_name(m, VHLO, "return_v1");
    float half = 0.5f;
    b.value = add_tensor(m, b.vec, &half, sizeof half);
    unsigned none = ATTR(m, VHLO, 1, 0), name = add_string_attr(m, VHLO, "main");
    unsigned type = ATTR(m, VHLO, 17, b.func_type), seen = add_string_attr(m, VHLO, "public");
    const char *const func_names[] = {"arg_attrs", "function_type", "res_attrs", "sym_name",
                                      "sym_visibility"};
    b.func_props = op_attrs(m, 5, func_names, (unsigned[]){none, type, none, name, seen});
    b.const_props = op_attrs(m, 1, (const char *const[]){"value"}, &b.value);
    return b;
}

// Head of an op: attributes, if any, go where this version keeps them.
static void put_op(Maker *m, Buf *out, unsigned name, unsigned loc, int attrs, unsigned mask) {
    put_varint(out, name);
    if (attrs >= 0)
        mask |= m->version >= 5 ? 0x40 : 0x01;
    put_u8(out, (uint8_t)mask);
    put_varint(out, loc);
    if (attrs >= 0)
        put_varint(out, (uint64_t)attrs);
}

static void put_list(Buf *out, size_t n, const unsigned *v) {
    put_varint(out, n);
    for (size_t i = 0; i < n; i++)
        put_varint(out, v[i]);
}

// Regions of an isolated op: in a section of their own from version 2 on.
static void put_isolated(Maker *m, Buf *out, unsigned nregions, const Buf *regions) {
    put_varint(out, nregions << 1 | 1);
    if (m->version >= 2)
        put_section(out, 4, regions);
    else
        buf_put(out, regions->at, regions->n);
}

static void put_block(Maker *m, Buf *out, unsigned nvalues, unsigned nops, unsigned nargs,
                      unsigned type, unsigned loc) {
    put_varint(out, 1);
    put_varint(out, nvalues);
    put_varint(out, nops << 1 | (nargs > 0));
    if (!nargs)
        return;
    put_varint(out, nargs);
    for (unsigned i = 0; i < nargs; i++) {
        put_varint(out, m->version >= 4 ? type << 1 | 1 : type);
        put_varint(out, loc);
    }
    if (m->version >= 3)
        put_u8(out, 0);
}

// module { func main(vec) -> vec { body } }, the body being nops ops that define nvalues values.
static Buf program(Maker *m, const Base *b, unsigned nvalues, unsigned nops, const Buf *body,
                   int module_attrs) {
    Buf func = {.arena = m->arena}, region = {.arena = m->arena}, inner = {.arena = m->arena};
    put_block(m, &inner, nvalues + 1, nops, 1, b->vec, b->loc);
    buf_put(&inner, body->at, body->n);
    put_op(m, &func, b->func, b->loc, (int)b->func_props, 0x10);
    put_isolated(m, &func, 1, &inner);
    put_block(m, &region, 0, 1, 0, 0, 0);
    buf_put(&region, func.at, func.n);
    put_varint(&m->ops, 1 << 1);
    put_varint(&m->ops, b->module);
    put_u8(&m->ops, module_attrs >= 0 ? 0x11 : 0x10);
    put_varint(&m->ops, b->loc);
    if (module_attrs >= 0)
        put_varint(&m->ops, (uint64_t)module_attrs);
    put_isolated(m, &m->ops, 1, &region);
    return finish(m);
}

static void put_return(Maker *m, const Base *b, Buf *body, unsigned value) {
    put_op(m, body, b->ret, b->loc, -1, 0x04);
    put_list(body, 1, &value);
}

static Buf add_program(Maker *m, int module_attrs) {
    Base b = base(m);
    Buf body = {.arena = m->arena};
    put_op(m, &body, b.constant, b.loc, (int)b.const_props, 0x02);
    put_list(&body, 1, &b.vec);
    put_op(m, &body, b.add, b.loc, -1, 0x06);
    put_list(&body, 1, &b.vec);
    put_list(&body, 2, (unsigned[]){0, 1});
    put_return(m, &b, &body, 2);
    return program(m, &b, 2, 3, &body, module_attrs);
}

#endif
