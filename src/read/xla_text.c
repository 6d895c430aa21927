// SPDX-License-Identifier: Apache-2.0
// xla_text.c — HLO text, as XLA's dumps and as_hlo_text() have it, to the protocol buffer it stands for.
//
//   HloModule jit_f, input_output_alias={ {0}: (0, {}, may-alias) }
//   region.1 {
//     a = f32[] parameter(0)
//     …
//     ROOT c = f32[] add(a, b)
//   }
//   ENTRY main { … }
//
// Names stand with or without %, operands with or without their shapes or as instructions in place, results without theirs where
// operands tell it, computations with or without their signature: dumps of
// all years differ in that alone. Where an instruction names no source line, its line in this text is its place.
#include "read/xla_text.h"

#include <string.h>

#include "read/read.h"

enum { INST_NAME = 1, INST_OPCODE = 2, INST_SHAPE = 3, INST_METADATA = 7, INST_PARAMETER = 9, INST_ID = 35, INST_OPERANDS = 36, INST_CALLED = 38 };
enum { MODULE_NAME = 1, MODULE_COMPS = 3, MODULE_ENTRY = 6, MODULE_ALIAS = 8, MODULE_FRAMES = 17, MODULE_FRONTEND = 19 };
enum { COMP_NAME = 1, COMP_INSTS = 2, COMP_ID = 5, COMP_ROOT = 6 };

// --- names -------------------------------------------------------------------------------------------

Span hlo_text_name(HloText *t, const char *what) {
    text_eat(&t->p, '%');
    const char *from = t->p.at;
    while (t->p.at < t->p.end && (text_is_alnum(*t->p.at) || *t->p.at == '_' || *t->p.at == '.' || *t->p.at == '-'))
        t->p.at++;
    if (t->p.at == from)
        text_expected(&t->p, what);
    return (Span){from, (size_t)(t->p.at - from)};
}

uint32_t hlo_text_comp(HloText *t) {
    const char *at = t->p.at;
    Span name = hlo_text_name(t, "the name of a computation");
    const TextName *found = text_map_find(&t->comps, name);
    if (!found)
        text_fail(&t->p, at, OTRN_PARSE, "there is no computation '%.*s' before this line", (int)(name.n < 80 ? name.n : 80), name.s);
    return found->a;
}

static int64_t number_of(HloText *t, Span name, const char *at) {
    const TextName *found = text_map_find(&t->p.values, name);
    if (!found)
        text_fail(&t->p, at, OTRN_PARSE, "there is no instruction '%.*s' before this line", (int)(name.n < 80 ? name.n : 80), name.s);
    return found->a;
}

// --- instructions ------------------------------------------------------------------------------------

static bool at_shape(HloText *t) { // f32[…] or a tuple of such, not a name
    if (text_peek(&t->p) == '(')
        return true;
    const char *s = t->p.at;
    while (s < t->p.end && text_is_alnum(*s))
        s++;
    return s > t->p.at && s < t->p.end && *s == '[';
}

static int64_t inst_read(HloText *t, bool nested);

// A name, with its shape or without, or another instruction in place: add(negate(x), y).
static int64_t an_operand(HloText *t) {
    const char *back = t->p.at;
    Buf unused = {.arena = t->p.arena};
    if (at_shape(t))
        hlo_text_shape(t, &unused);
    text_space(&t->p);
    const char *at = t->p.at;
    Span name = hlo_text_name(t, "an operand");
    if (text_peek(&t->p) != '(')
        return number_of(t, name, at);
    t->p.at = back;
    text_deeper(&t->p);
    int64_t made = inst_read(t, true);
    t->p.depth--;
    return made;
}

static void operands(HloText *t, HloTextInst *i) {
    uint32_t base = t->p.ints.n;
    while (!text_eat(&t->p, ')')) {
        if (t->p.ints.n > base)
            text_need(&t->p, ',');
        int64_t one = an_operand(t); // before the list that it may grow
        VEC_PUSH(t->p.arena, &t->p.ints, one);
    }
    pb_put_ints(&i->m, INST_OPERANDS, t->p.ints.at + base, t->p.ints.n - base);
    t->p.ints.n = base;
}

static void given(HloText *t, HloTextInst *i, int dtype) { // what stands between the brackets
    text_need(&t->p, '(');
    if (!strcmp(i->opcode, "parameter")) {
        pb_put_int(&i->m, INST_PARAMETER, text_int(&t->p, "the number of a parameter"));
        text_need(&t->p, ')');
    } else if (!strcmp(i->opcode, "constant")) {
        hlo_text_constant(t, dtype, &i->m);
    } else {
        operands(t, i);
    }
}

static void place(HloText *t, HloTextInst *i, int64_t line) {
    Buf meta = {.arena = t->p.arena};
    pb_put_bytes(&meta, 3, t->p.file, strlen(t->p.file));
    pb_put_int(&meta, 4, line);
    pb_put_bytes(&i->m, INST_METADATA, meta.at, meta.n);
}

// NAME = SHAPE OPCODE(OPERANDS), ATTRIBUTES; a nested one is SHAPE OPCODE(OPERANDS). Shapes may be left out. Its number.
static int64_t inst_read(HloText *t, bool nested) {
    HloTextInst *i = ARENA_NEW(t->p.arena, HloTextInst);
    *i = (HloTextInst){.m = {.arena = t->p.arena}};
    Buf shape = {.arena = t->p.arena};
    text_space(&t->p);
    int64_t line = text_pos(&t->p, t->p.at).line; // before those inside it, which may stand on later ones
    Span name = nested ? (Span){"", 0} : hlo_text_name(t, "the name of an instruction");
    if (!nested)
        text_need(&t->p, '=');
    int dtype = at_shape(t) ? hlo_text_shape(t, &shape) : DT_INVALID;
    text_space(&t->p);
    Span opcode = hlo_text_name(t, "an HLO instruction");
    if (opcode.n >= sizeof i->opcode)
        text_fail(&t->p, opcode.s, OTRN_PARSE, "this is no HLO instruction");
    memcpy(i->opcode, opcode.s, opcode.n);
    i->code = xla_code(i->opcode);
    given(t, i, dtype);
    while (!nested && text_eat(&t->p, ','))
        hlo_text_attr(t, i);
    for (uint32_t k = 0; k < i->nnests; k++)
        pb_put_bytes(&i->m, i->nests[k].field, i->nests[k].m.at, i->nests[k].m.n);
    if (!i->placed)
        place(t, i, line);
    pb_put_ints(&i->m, INST_CALLED, i->called.at, i->called.n);
    pb_put_bytes(&i->m, INST_NAME, name.s, name.n);
    pb_put_bytes(&i->m, INST_OPCODE, opcode.s, opcode.n);
    if (shape.n)
        pb_put_bytes(&i->m, INST_SHAPE, shape.at, shape.n);
    int64_t id = t->ninsts++;
    pb_put_int(&i->m, INST_ID, id);
    pb_put_bytes(&t->comp, COMP_INSTS, i->m.at, i->m.n);
    if (!nested)
        text_map_at(t->p.arena, &t->p.values, name)->a = (uint32_t)id;
    return id;
}

// --- computations ------------------------------------------------------------------------------------

static void signature(HloText *t) { // (a: f32[], b: f32[]) -> f32[]
    if (text_peek(&t->p) != '(')
        return;
    hlo_text_skip(t);
    Buf unused = {.arena = t->p.arena};
    if (!text_eat_arrow(&t->p))
        text_expected(&t->p, "'->' and a shape");
    hlo_text_shape(t, &unused);
}

// True for the entry.
static bool comp_read(HloText *t, uint32_t id, Buf *module) {
    bool entry = text_eat_word(&t->p, "ENTRY");
    text_space(&t->p);
    Span name = hlo_text_name(t, "a computation");
    signature(t);
    text_need(&t->p, '{');
    t->p.values = (TextMap){0};
    t->comp = (Buf){.arena = t->p.arena};
    t->ninsts = 0;
    int64_t root = -1;
    while (!text_eat(&t->p, '}')) {
        bool is_root = text_eat_word(&t->p, "ROOT");
        int64_t made = inst_read(t, false);
        root = is_root ? made : root;
    }
    while (text_eat(&t->p, ',')) { // execution_thread="…"
        hlo_text_name(t, "an attribute of the computation");
        text_need(&t->p, '=');
        hlo_text_skip(t);
    }
    pb_put_bytes(&t->comp, COMP_NAME, name.s, name.n);
    pb_put_int(&t->comp, COMP_ID, id);
    pb_put_int(&t->comp, COMP_ROOT, root < 0 ? t->ninsts - 1 : root); // the last, where none says so
    pb_put_bytes(module, MODULE_COMPS, t->comp.at, t->comp.n);
    text_map_at(t->p.arena, &t->comps, name)->a = id;
    return entry;
}

// --- the module --------------------------------------------------------------------------------------

// { {1}: (0, {}, may-alias), … }
static void aliases(HloText *t, Buf *module) {
    Buf all = {.arena = t->p.arena};
    text_need(&t->p, '{');
    while (!text_eat(&t->p, '}')) {
        Buf e = {.arena = t->p.arena};
        uint32_t base;
        hlo_text_ints(t, &base);
        pb_put_ints(&e, 1, t->p.ints.at + base, t->p.ints.n - base);
        t->p.ints.n = base;
        text_need(&t->p, ':');
        text_need(&t->p, '(');
        pb_put_int(&e, 2, text_int(&t->p, "the number of a parameter"));
        text_need(&t->p, ',');
        hlo_text_ints(t, &base);
        pb_put_ints(&e, 3, t->p.ints.at + base, t->p.ints.n - base);
        t->p.ints.n = base;
        while (text_eat(&t->p, ','))
            hlo_text_name(t, "may-alias or must-alias");
        text_need(&t->p, ')');
        pb_put_bytes(&all, 1, e.at, e.n);
        text_eat(&t->p, ',');
    }
    pb_put_bytes(module, MODULE_ALIAS, all.at, all.n);
}

static void frontend(HloText *t, Buf *module) {
    Buf m = {.arena = t->p.arena};
    hlo_text_frontend(t, &m);
    pb_put_bytes(module, MODULE_FRONTEND, m.at, m.n);
}

static void header(HloText *t, Buf *module) {
    text_need_word(&t->p, "HloModule");
    text_space(&t->p);
    Span name = hlo_text_name(t, "the name of the module");
    pb_put_bytes(module, MODULE_NAME, name.s, name.n);
    while (text_eat(&t->p, ',')) {
        text_space(&t->p);
        Span key = hlo_text_name(t, "an attribute of the module");
        text_need(&t->p, '=');
        if (span_is(key, "input_output_alias"))
            aliases(t, module);
        else if (span_is(key, "frontend_attributes"))
            frontend(t, module);
        else if (span_is(key, "num_partitions"))
            pb_put_int(module, XLA_PARTITIONS, text_int(&t->p, "a number of devices"));
        else
            hlo_text_skip(t);
    }
}

// Tables of places: `NUMBER "text"` or `NUMBER {key=number …}`, numbered in order.
static const struct {
    const char *word;
    uint32_t field;
    struct {
        const char *key;
        uint32_t field;
    } keys[4];
} tables[] = {
    {"FileNames", 1, {{NULL, 0}}},
    {"FunctionNames", 2, {{NULL, 0}}},
    {"FileLocations", 3, {{"file_name_id", 1}, {"function_name_id", 2}, {"line", 3}, {"column", 4}}},
    {"StackFrames", 4, {{"file_location_id", 1}, {"parent_frame_id", 2}, {NULL, 0}, {NULL, 0}}},
};

static void table_row(HloText *t, size_t k, Buf *frames) {
    text_int(&t->p, "a number");
    if (!text_eat(&t->p, '{')) {
        uint32_t n;
        const char *s = text_string(&t->p, &n);
        pb_put_bytes(frames, tables[k].field, s, n);
        return;
    }
    Buf m = {.arena = t->p.arena};
    while (!text_eat(&t->p, '}')) {
        text_space(&t->p);
        Span key = hlo_text_name(t, "a field");
        text_need(&t->p, '=');
        int64_t v = text_int(&t->p, "a number");
        for (int i = 0; i < 4; i++)
            if (tables[k].keys[i].key && span_is(key, tables[k].keys[i].key))
                pb_put_int(&m, tables[k].keys[i].field, v);
    }
    pb_put_bytes(frames, tables[k].field, m.at, m.n);
}

static bool table(HloText *t, Buf *frames) {
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        if (text_eat_word(&t->p, tables[k].word)) {
            while (text_at_int(&t->p))
                table_row(t, k, frames);
            return true;
        }
    return false;
}

Hlo *read_xla_text(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, bool open) {
    HloText *t = ARENA_NEW(a, HloText);
    *t = (HloText){.p = {.ctx = ctx, .arena = a, .file = name, .begin = bytes, .at = bytes, .end = (const char *)bytes + size}};
    t->p.line_at = t->p.begin;
    t->p.line = 1;
    Buf module = {.arena = a}, frames = {.arena = a};
    header(t, &module);
    uint32_t n = 0;
    int64_t entry = -1;
    do
        if (!table(t, &frames) && comp_read(t, n++, &module))
            entry = n - 1;
    while (text_peek(&t->p));
    pb_put_int(&module, MODULE_ENTRY, entry < 0 ? (int64_t)n - 1 : entry); // the last, where none says so
    if (frames.n)
        pb_put_bytes(&module, MODULE_FRAMES, frames.at, frames.n);
    return read_xla(ctx, a, name, module.at, module.n, open);
}
