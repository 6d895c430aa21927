// SPDX-License-Identifier: Apache-2.0
// text_slot.c — the attributes an op's row has slots for.
//
// Text writes some of them as structures and leaves out what has a default; here they become the
// flat, complete slots that hlo.h describes.
#include "read/text.h"

#include "base/num.h"
#include "hlo/structs.h"

void text_slot_set(TextRead *p, OpId op, HloAttrKey key, HloAttr value) {
    *hlo_attr_slot(p->h, op, key) = value;
}

static HloAttr attr_int(int64_t v) { return (HloAttr){.kind = HA_INT, .i = v}; }
static HloAttr attr_enum(int64_t v) { return (HloAttr){.kind = HA_ENUM, .i = v}; }

// --- enums ---------------------------------------------------------------------------------------

static int64_t enum_word(TextRead *p, HloAttrKey key) {
    text_space(p);
    const char *at = p->at;
    Span word = text_ident(p, "a keyword");
    int64_t v = hlo_enum_parse(key, word.s, word.n);
    if (v < 0)
        text_fail(p, at, OTRN_PARSE, "'%.*s' is no value of %s", (int)word.n, word.s,
                  hlo_attr_rows[key].name);
    return v;
}

static bool is_dialect(Span name) { return span_is(name, "stablehlo") || span_is(name, "chlo") || span_is(name, "mhlo"); }

// #stablehlo<comparison_direction EQ>, #stablehlo.precision<HIGH>, or a plain number.
static HloAttr enum_value(TextRead *p, HloAttrKey key) {
    text_space(p);
    const char *back = text_alias_enter(p);
    HloAttr a;
    if (text_at_int(p)) {
        const char *at = p->at;
        a = text_attr(p);
        if (a.kind != HA_INT || !hlo_enum_name(key, a.i))
            text_fail(p, at, OTRN_PARSE, "this number is no value of %s", hlo_attr_rows[key].name);
        a = attr_enum(a.i);
    } else {
        text_need(p, '#');
        Span name = text_suffix_id(p, "an attribute name");
        text_need(p, '<');
        if (is_dialect(name))
            text_ident(p, "the name of an enum"); // the slot tells which one it must be
        a = attr_enum(enum_word(p, key));
        text_need(p, '>');
    }
    text_alias_leave(p, back);
    return a;
}

static HloAttr precision_word(TextRead *p) { return attr_enum(enum_word(p, AK_PRECISION_CONFIG)); }
static HloAttr precision_value(TextRead *p) { return enum_value(p, AK_PRECISION_CONFIG); }

// [A, B] of enum attributes, or of bare words in pretty forms.
static HloAttr precision_list(TextRead *p, bool words) {
    text_space(p);
    const char *back = text_alias_enter(p);
    HloAttr a = text_list(p, words ? precision_word : precision_value);
    text_alias_leave(p, back);
    return a.n ? a : (HloAttr){0}; // says as much as leaving it out
}

// --- structures ----------------------------------------------------------------------------------

static HloAttr field_value(TextRead *p, HloAttrKey key) {
    uint32_t base = p->ints.n;
    switch (hlo_attr_rows[key].kind) {
    case HA_INTS:
        text_int_list(p);
        return text_ints_take(p, base);
    case HA_TYPE:
        return (HloAttr){.kind = HA_TYPE, .type = text_type(p)};
    case HA_BOOL: {
        bool yes = text_eat_word(p, "true");
        if (!yes)
            text_need_word(p, "false");
        return (HloAttr){.kind = HA_BOOL, .i = yes};
    }
    default:
        return attr_int(text_int(p, "an integer"));
    }
}

static int field_find(const HloStructRow *row, Span name) {
    for (int i = 0; i < HLO_STRUCT_FIELDS && row->keys[i]; i++)
        if (span_is(name, row->fields[i] ? row->fields[i] : hlo_attr_rows[row->keys[i]].name))
            return i;
    return -1;
}

// < field = value, … >; fields left out are empty lists and zeros.
static void struct_fields(TextRead *p, OpId op, const HloStructRow *row) {
    const HloOpRow *op_row = hlo_row(hlo_at(p->h, op));
    for (int i = 0; i < HLO_STRUCT_FIELDS && row->keys[i]; i++) {
        HloAttrKey key = row->keys[i];
        bool empty = hlo_attr_rows[key].kind == HA_INTS;
        if (empty || key == AK_INDEX_VECTOR_DIM)
            text_slot_set(p, op, key, empty ? (HloAttr){.kind = HA_INTS} : attr_int(0));
    }
    text_need(p, '<');
    uint32_t given = 0;
    if (text_peek(p) != '>') {
        do {
            text_space(p);
            const char *at = p->at;
            Span name = text_ident(p, "a field name");
            int i = field_find(row, name);
            if (i < 0)
                text_fail(p, at, OTRN_PARSE, "'%.*s' is no field of #stablehlo.%s", (int)name.n,
                          name.s, row->mnemonic);
            if (given >> i & 1)
                text_fail(p, at, OTRN_PARSE, "the field '%.*s' is given twice", (int)name.n, name.s);
            given |= 1u << i;
            text_need(p, '=');
            HloAttr v = field_value(p, row->keys[i]);
            if (hlo_row_has(op_row, row->keys[i]))
                text_slot_set(p, op, row->keys[i], v);
        } while (text_eat(p, ',') && text_peek(p) != '>');
    }
    text_need(p, '>');
}

// #stablehlo.<mnemonic>
static void struct_head(TextRead *p, const char *want) {
    text_space(p);
    const char *at = p->at;
    text_need(p, '#');
    Span name = text_suffix_id(p, "an attribute name");
    const char *dot = memchr(name.s, '.', name.n);
    size_t head = dot ? (size_t)(dot - name.s) : 0;
    if (!is_dialect((Span){name.s, head}) || !span_is((Span){dot + 1, name.n - head - 1}, want))
        text_fail(p, at, OTRN_PARSE, "expected #stablehlo.%s<…>, found '#%.*s'", want, (int)name.n,
                  name.s);
}

void text_slot_algorithm(TextRead *p, OpId op) {
    struct_fields(p, op, hlo_struct_by_name(hlo_row(hlo_at(p->h, op)), "algorithm"));
}

// --- convolution ---------------------------------------------------------------------------------

// One layout [b, 0, 1, f]: position is the tensor's axis, a digit says which spatial one. First and
// second letter go to *first and *second, the spatial axes onto p->ints; returns how many.
static uint32_t conv_layout(TextRead *p, const char *letters, int64_t *first, int64_t *second) {
    uint32_t base = p->ints.n, nspatial = 0;
    int64_t axes[OTRN_MAX_RANK];
    *first = *second = -1;
    for (int i = 0; i < OTRN_MAX_RANK; i++)
        axes[i] = -1;
    text_need(p, '[');
    const char *at = p->at;
    int64_t axis = 0;
    if (text_peek(p) != ']') {
        do {
            if (text_peek(p) == letters[0] && *first < 0) {
                p->at++;
                *first = axis;
            } else if (text_peek(p) == letters[1] && *second < 0) {
                p->at++;
                *second = axis;
            } else {
                int64_t k = text_int(p, "b, f, i, o or the number of a spatial dimension");
                if (k < 0 || k >= OTRN_MAX_RANK || axes[k] >= 0)
                    text_fail(p, at, OTRN_PARSE, "a wrong spatial dimension in this layout");
                axes[k] = axis;
                nspatial++;
            }
            axis++;
        } while (text_eat(p, ','));
    }
    text_need(p, ']');
    for (uint32_t k = 0; k < nspatial; k++)
        VEC_PUSH(p->arena, &p->ints, axes[k]);
    bool gap = *first < 0 || *second < 0;
    for (uint32_t k = base; k < p->ints.n; k++)
        gap |= p->ints.at[k] < 0;
    if (gap)
        text_fail(p, at, OTRN_PARSE, "this layout needs '%c', '%c' and every spatial dimension",
                  letters[0], letters[1]);
    return nspatial;
}

void text_slot_conv(TextRead *p, OpId op) {
    static const struct {
        const char *letters;
        uint8_t first, second, spatial;
    } parts[3] = {
        {"bf", AK_INPUT_BATCH_DIMENSION, AK_INPUT_FEATURE_DIMENSION, AK_INPUT_SPATIAL_DIMENSIONS},
        {"io", AK_KERNEL_INPUT_FEATURE_DIMENSION, AK_KERNEL_OUTPUT_FEATURE_DIMENSION,
         AK_KERNEL_SPATIAL_DIMENSIONS},
        {"bf", AK_OUTPUT_BATCH_DIMENSION, AK_OUTPUT_FEATURE_DIMENSION,
         AK_OUTPUT_SPATIAL_DIMENSIONS},
    };
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            text_need(p, 'x');
        if (i == 2 && !text_eat_arrow(p))
            text_expected(p, "'->'");
        int64_t first, second;
        uint32_t base = p->ints.n;
        conv_layout(p, parts[i].letters, &first, &second);
        text_slot_set(p, op, parts[i].first, attr_int(first));
        text_slot_set(p, op, parts[i].second, attr_int(second));
        text_slot_set(p, op, parts[i].spatial, text_ints_take(p, base));
    }
}

// --- values that are more than one number --------------------------------------------------------

// #stablehlo.result_accuracy<atol = …, ulps = …, mode = #stablehlo.result_accuracy_mode<HIGHEST>>
static HloAttr accuracy_value(TextRead *p) {
    static const char *const modes[] = {"DEFAULT", "HIGHEST", "TOLERANCE"};
    HloNamed f[4] = {{"atol", {.kind = HA_FLOAT}},
                     {"mode", {.kind = HA_ENUM}},
                     {"rtol", {.kind = HA_FLOAT}},
                     {"ulps", {.kind = HA_INT}}};
    struct_head(p, "result_accuracy");
    text_need(p, '<');
    do {
        text_space(p);
        const char *at = p->at;
        Span name = text_ident(p, "a field name");
        text_need(p, '=');
        int i = 0;
        while (i < 4 && !span_is(name, f[i].name))
            i++;
        if (i == 4)
            text_fail(p, at, OTRN_PARSE, "'%.*s' is no field of #stablehlo.result_accuracy",
                      (int)name.n, name.s);
        if (i != 1) {
            HloAttr v = text_attr(p);
            if (v.kind != f[i].value.kind)
                text_fail(p, at, OTRN_PARSE, "a value of the wrong kind");
            f[i].value = v;
            continue;
        }
        struct_head(p, "result_accuracy_mode");
        text_need(p, '<');
        at = p->at;
        Span mode = text_ident(p, "a mode");
        while (f[1].value.i < 3 && !span_is(mode, modes[f[1].value.i]))
            f[1].value.i++;
        if (f[1].value.i == 3)
            text_fail(p, at, OTRN_PARSE, "'%.*s' is no accuracy mode", (int)mode.n, mode.s);
        text_need(p, '>');
    } while (text_eat(p, ','));
    text_need(p, '>');
    if (!f[1].value.i)
        return (HloAttr){0};
    return (HloAttr){.kind = HA_DICT, .n = 4, .dict = arena_dup(p->arena, f, sizeof f)};
}

static HloAttr alias_value(TextRead *p) {
    HloNamed f[3] = {{"operand_index", {.kind = HA_INT}},
                     {"operand_tuple_indices", {.kind = HA_INTS}},
                     {"output_tuple_indices", {.kind = HA_INTS}}};
    const char *back = text_alias_enter(p);
    struct_head(p, "output_operand_alias");
    text_need(p, '<');
    do {
        text_space(p);
        const char *at = p->at;
        Span name = text_ident(p, "a field name");
        text_need(p, '=');
        uint32_t base = p->ints.n;
        if (span_is(name, f[0].name)) {
            f[0].value.i = text_int(p, "an operand number");
        } else if (span_is(name, f[1].name) || span_is(name, f[2].name)) {
            text_int_list(p);
            f[span_is(name, f[1].name) ? 1 : 2].value = text_ints_take(p, base);
        } else {
            text_fail(p, at, OTRN_PARSE, "'%.*s' is no field of #stablehlo.output_operand_alias",
                      (int)name.n, name.s);
        }
    } while (text_eat(p, ','));
    text_need(p, '>');
    text_alias_leave(p, back);
    return (HloAttr){.kind = HA_DICT, .n = 3, .dict = arena_dup(p->arena, f, sizeof f)};
}

// Integers of a dense<…>; splats are written out.
static HloAttr tensor_ints(TextRead *p, const HloAttr *t, const char *at) {
    const HloType *ty = hlo_type(p->h, t->type);
    if (ty->rank > 2 || dtype_is_float(ty->dtype) || dtype_is_complex(ty->dtype))
        text_fail(p, at, OTRN_PARSE, "expected a list of integers");
    text_expand(p, (uint64_t)ty->elems);
    size_t bytes = dtype_bytes(ty->dtype), n = (size_t)ty->elems;
    int64_t *v = ARENA_NEWN(p->arena, int64_t, n);
    bool splat = hlo_tensor_is_splat(p->h, t);
    for (size_t i = 0; i < n; i++)
        v[i] = dtype_to_i64(ty->dtype, (const uint8_t *)t->data + (splat ? 0 : i * bytes));
    HloAttr a = {.kind = HA_INTS, .n = (uint32_t)n, .ints = v};
    if (ty->rank == 2 && n) // the expansion's limit keeps both in range
        a.cols = (uint32_t)ty->dims[1];
    return a;
}

// A list of layouts: dense<[1, 0]> : tensor<2xindex>, possibly lists of them.
static HloAttr layouts(TextRead *p, HloAttr a, const char *at) {
    if (a.kind == HA_TENSOR) {
        a = tensor_ints(p, &a, at);
        a.cols = 0;
        return a;
    }
    if (a.kind != HA_LIST)
        text_fail(p, at, OTRN_PARSE, "expected a list of layouts");
    HloAttr *items = arena_dup(p->arena, a.list, a.n * sizeof *items);
    text_deeper(p);
    for (uint32_t i = 0; i < a.n; i++)
        items[i] = layouts(p, items[i], at);
    p->depth--;
    a.list = items;
    return a;
}

static HloAttr list_ints(TextRead *p, const HloAttr *a, const char *at) {
    uint32_t base = p->ints.n;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->list[i].kind != HA_INT && a->list[i].kind != HA_BOOL)
            text_fail(p, at, OTRN_PARSE, "expected a list of integers");
        VEC_PUSH(p->arena, &p->ints, a->list[i].i);
    }
    return text_ints_take(p, base);
}

// Brings a literal to the kind of its slot.
static HloAttr coerce(TextRead *p, HloAttrKey key, HloAttr a, const char *at) {
    int want = hlo_attr_rows[key].kind;
    if (want == HA_ANY || a.kind == want) {
        if (want == HA_INT || want == HA_FLOAT || want == HA_INTS)
            a.type = 0;
        return a;
    }
    if (want == HA_BOOL && a.kind == HA_UNIT)
        return (HloAttr){.kind = HA_BOOL, .i = 1};
    if (want == HA_INTS2 && key == AK_REPLICA_GROUPS && a.kind == HA_OPAQUE)
        return a;
    if ((want == HA_INTS || want == HA_INTS2) && a.kind == HA_TENSOR) {
        a = tensor_ints(p, &a, at);
        a.kind = (uint8_t)want;
        if (want == HA_INTS)
            a.cols = 0;
        else if (!a.n)
            a.cols = 2;
        else if (!a.cols)
            text_fail(p, at, OTRN_PARSE, "%s needs a table of two dimensions",
                      hlo_attr_rows[key].name);
        return a;
    }
    if (want == HA_INTS && a.kind == HA_LIST)
        return list_ints(p, &a, at);
    if (want == HA_SYM && a.kind == HA_STR) {
        a.kind = HA_SYM;
        return a;
    }
    static const char *const kinds[HA_KIND_COUNT] = {
        [HA_INT] = "an integer",   [HA_BOOL] = "true or false",
        [HA_FLOAT] = "a float",    [HA_STR] = "a string",
        [HA_SYM] = "a symbol",     [HA_INTS] = "a list of integers",
        [HA_TYPE] = "a type",      [HA_INTS2] = "a table of integers",
        [HA_LIST] = "a list",      [HA_TENSOR] = "a dense constant",
        [HA_DICT] = "a dictionary",
    };
    text_fail(p, at, OTRN_PARSE, "the attribute '%s' must be %s", hlo_attr_rows[key].name,
              kinds[want] ? kinds[want] : "of another kind");
}

void text_slot_value(TextRead *p, OpId op, HloAttrKey key) {
    text_space(p);
    const char *at = p->at;
    HloAttr a;
    if (hlo_attr_rows[key].kind == HA_ENUM) {
        a = enum_value(p, key);
    } else if (key == AK_PRECISION_CONFIG) {
        a = precision_list(p, false);
    } else if (key == AK_RESULT_ACCURACY) {
        const char *back = text_alias_enter(p);
        a = accuracy_value(p);
        text_alias_leave(p, back);
    } else if (key == AK_OUTPUT_OPERAND_ALIASES) {
        a = text_list(p, alias_value);
    } else if (key == AK_OPERAND_LAYOUTS || key == AK_RESULT_LAYOUTS || key == AK_RESULT_TILINGS) {
        a = layouts(p, text_attr(p), at);
    } else {
        a = coerce(p, key, text_attr(p), at);
    }
    text_slot_set(p, op, key, a);
}

void text_slot_word(TextRead *p, OpId op, HloAttrKey key) {
    uint32_t base = p->ints.n;
    int kind = hlo_attr_rows[key].kind;
    if (kind == HA_ENUM) {
        text_slot_set(p, op, key, attr_enum(enum_word(p, key)));
    } else if (key == AK_PRECISION_CONFIG) {
        text_slot_set(p, op, key, precision_list(p, true));
    } else if (kind == HA_INTS) {
        text_int_list(p);
        text_slot_set(p, op, key, text_ints_take(p, base));
    } else if (kind == HA_INT || kind == HA_BOOL) { // no type behind it: that colon is the op's
        text_slot_set(p, op, key, field_value(p, key));
    } else if (kind == HA_FLOAT) {
        HloAttr a = {.kind = HA_FLOAT};
        text_space(p);
        const char *after = num_parse_f64(p->at, p->end, &a.f);
        if (after == p->at)
            text_expected(p, "a number");
        p->at = after;
        text_slot_set(p, op, key, a);
    } else if (kind == HA_STR) {
        HloAttr a = {.kind = HA_STR};
        text_space(p);
        a.s = text_string(p, &a.n);
        text_slot_set(p, op, key, a);
    } else {
        text_slot_value(p, op, key);
    }
}

// --- entries -------------------------------------------------------------------------------------

static HloAttrKey key_of(TextRead *p, const char *name) {
    TextName *t = text_map_at(p->arena, &p->keys, (Span){name, strlen(name)});
    if (!t->a)
        t->a = (uint32_t)hlo_attr_find(name, strlen(name)) + 1;
    return (HloAttrKey)(t->a - 1);
}

static void struct_entry(TextRead *p, OpId op, const HloStructRow *row) {
    text_need(p, '=');
    text_space(p);
    const char *back = text_alias_enter(p);
    if (text_peek(p) == '#')
        struct_head(p, row->mnemonic);
    struct_fields(p, op, row);
    text_alias_leave(p, back);
}

// #stablehlo.conv<raw input_batch_dimension = 0, …>: the same numbers by name.
static void conv_fields(TextRead *p, OpId op) {
    do {
        text_space(p);
        const char *at = p->at;
        Span name = text_ident(p, "a dimension number");
        HloAttrKey key = hlo_attr_find(name.s, name.n);
        if (!key || !hlo_row_has(hlo_row(hlo_at(p->h, op)), key) || hlo_attr_slot(p->h, op, key)->kind != HA_NONE)
            text_fail(p, at, OTRN_PARSE, "'%.*s' is no dimension number, or is given twice", (int)name.n, name.s);
        text_need(p, '=');
        text_slot_word(p, op, key);
    } while (text_eat(p, ','));
}

void text_slot_entry(TextRead *p, OpId op, const char *name, const char *at) {
    const HloOpRow *row = hlo_row(hlo_at(p->h, op));
    const HloStructRow *structure = row->nattrs ? hlo_struct_by_name(row, name) : NULL;
    if (structure) {
        struct_entry(p, op, structure);
        return;
    }
    if (!strcmp(name, "dimension_numbers") && hlo_row_has(row, AK_INPUT_BATCH_DIMENSION)) {
        text_need(p, '=');
        text_space(p);
        const char *back = text_alias_enter(p);
        struct_head(p, "conv");
        text_need(p, '<');
        if (text_eat_word(p, "raw"))
            conv_fields(p, op);
        else
            text_slot_conv(p, op);
        text_need(p, '>');
        text_alias_leave(p, back);
        return;
    }
    HloAttrKey key = row->nattrs ? key_of(p, name) : AK_NONE;
    if (key == AK_VALUE && !hlo_row_has(row, key))
        key = AK_LIKE_VALUE; // of the same name
    if (key && hlo_row_has(row, key)) {
        if (hlo_attr_slot(p->h, op, key)->kind != HA_NONE)
            text_fail(p, at, OTRN_PARSE, "the attribute '%s' is given twice", name);
        if (text_eat(p, '='))
            text_slot_value(p, op, key);
        else
            text_slot_set(p, op, key, coerce(p, key, (HloAttr){.kind = HA_UNIT}, at));
        return;
    }
    HloNamed e = {.name = name, .value = {.kind = HA_UNIT}};
    if (text_eat(p, '='))
        e.value = text_attr(p);
    VEC_PUSH(p->arena, &p->named, e);
}

// --- one attribute by itself ---------------------------------------------------------------------

TextRead *text_make(Ctx *ctx, Arena *a, Hlo *h) {
    TextRead *p = ARENA_NEW(a, TextRead);
    p->ctx = ctx;
    p->arena = a;
    p->h = h;
    p->file = h->file;
    return p;
}

uint64_t text_slot_alone(TextRead *p, OpId op, const char *name, Span value) {
    p->begin = p->at = p->line_at = value.s;
    p->end = value.s + value.n;
    p->line = 1;
    p->depth = 0;
    p->weight = p->expanded = 0;
    text_slot_entry(p, op, name, p->at);
    if (text_peek(p))
        text_expected(p, "the end of the attribute");
    return p->expanded;
}
