// SPDX-License-Identifier: Apache-2.0
// bytecode_raw.c — programs written as bytecode in StableHLO's own form, not as a portable artifact.
//
// Ops, attributes and types are those of the text: attributes with a default are left out, dimension
// numbers are structures. A structure is taken for the text it stands for, and the text's reader
// (text_slot.c) takes it apart: so is what a writer leaves as text, and both forms say the same.
//
// An op's record has no names. It holds one number per attribute in the order of their names, and
// whether one may be absent, follows from ops.def, structs.c and slot.c. Attributes have been added
// over time, so the count of numbers says how new the writer is (RawItem.since).
#include <stdlib.h>

#include "hlo/print.h"
#include "hlo/structs.h"
#include "read/bytecode.h"
#include "read/read.h"
#include "read/text.h"

// --- attributes ---------------------------------------------------------------------------------

// Codes of stablehlo and mhlo up to TYPE_EXTENSIONS are the same; those of VHLO that mean the same
// are read by vhlo.c, structures here. A structure's name is its row in structs.c.
typedef struct RawCode {
    uint8_t stablehlo, mhlo, chlo; // 0xff: none
    uint8_t vhlo;                  // 0: a structure
    const char *structure;
} RawCode;

static const RawCode raw_codes[] = {
    {1, 1, 0xff, 0, "channel_handle"},
    {2, 2, 0, 3, NULL},        // comparison direction
    {3, 3, 1, 4, NULL},        // comparison type
    {4, 4, 0xff, 0, "conv"},   // not in structs.c: see conv_text
    {5, 5, 0xff, 0, "dot"},    //
    {6, 6, 0xff, 7, NULL},     // FFT type
    {7, 7, 0xff, 0, "gather"}, //
    {8, 8, 0xff, 11, NULL},    // precision
    {9, 9, 0xff, 12, NULL},    // random algorithm
    {10, 10, 0xff, 13, NULL},  // random distribution
    {11, 11, 0xff, 0, "scatter"},
    {12, 12, 0xff, 16, NULL},  // transpose
    {13, 13, 0xff, 18, NULL},  // bounds of a type
    {14, 16, 0xff, 10, NULL},  // operand alias
    {15, 0xff, 0xff, 0, "dot_algorithm"},
    {16, 17, 0xff, 19, NULL},   // accuracy's mode
    {17, 18, 0xff, 20, NULL},   // accuracy
    {18, 0xff, 0xff, 23, NULL}, // groups told by mesh axes
    {19, 0xff, 0xff, 21, NULL}, // part of an axis
    {20, 0xff, 0xff, 22, NULL}, // axis
    {21, 0xff, 0xff, 24, NULL}, // axis of a mesh
    {22, 0xff, 0xff, 25, NULL}, // mesh
};

static const RawCode *raw_code(const char *dialect, uint64_t code) {
    for (size_t i = 0; i < sizeof raw_codes / sizeof *raw_codes; i++) {
        const RawCode *row = &raw_codes[i];
        uint8_t of = dialect[0] == 's' ? row->stablehlo : dialect[0] == 'm' ? row->mhlo : row->chlo;
        if (of == code && of != 0xff)
            return row;
    }
    return NULL;
}

uint64_t raw_vhlo_code(const char *dialect, uint64_t code) {
    const RawCode *row = raw_code(dialect, code);
    return row ? row->vhlo : 0;
}

static void field_text(Bc *b, Rd *r, HloAttrKey key, const char *name, Buf *out) {
    buf_printf(out, "%s = ", name ? name : hlo_attr_rows[key].name);
    switch (hlo_attr_rows[key].kind) {
    case HA_INTS: {
        uint32_t n = bc_count(r);
        for (uint32_t i = 0; i < n; i++) {
            buf_printf(out, "%s%lld", i ? ", " : "[", (long long)bc_svarint(r));
            bc_text_check(b, r, out);
        }
        buf_puts(out, n ? "]" : "[]");
        return;
    }
    case HA_TYPE:
        hlo_print_type(b->h, bc_type_ref(b, r)->id, out);
        return;
    case HA_BOOL:
        buf_puts(out, rd_u8(r) ? "true" : "false");
        return;
    default:
        buf_printf(out, "%lld", (long long)bc_svarint(r));
    }
}

static void conv_text(Bc *b, Rd *r, Buf *out) {
    static const uint8_t keys[] = {
        AK_INPUT_BATCH_DIMENSION,          AK_INPUT_FEATURE_DIMENSION,
        AK_INPUT_SPATIAL_DIMENSIONS,       AK_KERNEL_INPUT_FEATURE_DIMENSION,
        AK_KERNEL_OUTPUT_FEATURE_DIMENSION, AK_KERNEL_SPATIAL_DIMENSIONS,
        AK_OUTPUT_BATCH_DIMENSION,         AK_OUTPUT_FEATURE_DIMENSION,
        AK_OUTPUT_SPATIAL_DIMENSIONS};
    for (size_t i = 0; i < sizeof keys; i++) {
        buf_puts(out, i ? ", " : "raw ");
        field_text(b, r, keys[i], NULL, out);
    }
}

static HloAttr structure_attr(Bc *b, Rd *r, const char *name) {
    Buf out = {.arena = b->arena};
    buf_printf(&out, "#stablehlo.%s<", name);
    for (int i = 0; i < HLO_STRUCTS; i++) {
        const HloStructRow *row = &hlo_struct_rows[i];
        for (int k = 0; !strcmp(row->mnemonic, name) && k < HLO_STRUCT_FIELDS && row->keys[k]; k++) {
            buf_puts(&out, k ? ", " : "");
            field_text(b, r, row->keys[k], row->fields[k], &out);
        }
    }
    if (!strcmp(name, "conv"))
        conv_text(b, r, &out);
    buf_puts(&out, ">");
    bc_text_check(b, r, &out);
    return bc_text(b, &out);
}

bool raw_attr(Bc *b, Rd *r, uint32_t i, HloAttr *value) {
    const char *dialect = b->dialects[b->attrs[i].entry.dialect].name;
    const RawCode *row = raw_code(dialect, bc_varint(r));
    if (!row)
        return false;
    *value = row->structure ? structure_attr(b, r, row->structure) : vhlo_attr(b, r, i, row->vhlo);
    return true;
}

// --- what a record holds ------------------------------------------------------------------------

#define RAW_NEWEST 3           // of RawItem.since
#define RAW_SEGMENTS_VERSION 6 // of the container, from which on lists of segments stand behind the attributes

typedef struct RawItem {
    const char *name;
    uint8_t since; // 1: always there
    bool optional;
} RawItem;

// Beside the attributes that the rows of ops.def have; all of them may be absent.
static const struct {
    const char *dialect, *op, *attr;
    uint8_t since;
} raw_more[] = {
    {"func", "call", "arg_attrs", 3},          {"func", "call", "no_inline", 2},
    {"func", "call", "res_attrs", 3},          {"func", "func", "no_inline", 2},
    {"mhlo", "copy", "cross_program_prefetch_index", 1},
    {"mhlo", "custom_call", "custom_call_schedule", 1},
    {"mhlo", "dynamic_conv", "padding", 1}, // told by an operand, too
};

// The two ops that are no HloOps: name, and whether it may be absent.
static const struct {
    const char *op, *attr;
    bool optional;
} raw_func[] = {
    {"func", "arg_attrs", true}, {"func", "function_type", false},  {"func", "res_attrs", true},
    {"func", "sym_name", false}, {"func", "sym_visibility", true},
};

static bool is_conv_number(const HloOpRow *row, HloAttrKey key) {
    const char *name = hlo_attr_rows[key].name, *end = strstr(name, "_dimension");
    return hlo_row_has(row, AK_INPUT_BATCH_DIMENSION) && end &&
           (!strcmp(end, "_dimension") || !strcmp(end, "_dimensions"));
}

// Name of the attribute that a slot is part of.
static const char *raw_name(const HloOpRow *row, HloAttrKey key) {
    const HloStructRow *structure = hlo_struct_by_key(row, key);
    return structure                  ? structure->attr
           : is_conv_number(row, key) ? "dimension_numbers"
                                      : hlo_attr_rows[key].name;
}

static bool raw_optional(Bc *b, const BcOpName *name, HloAttrKey key) {
    HloOp op = {.code = name->code, .attrs = ARENA_NEWN(b->arena, HloAttr, HLO_MAX_ATTRS)};
    const HloStructRow *structure = hlo_struct_by_key(hlo_row(&op), key);
    if (read_slot_default(b->arena, &op, key).kind != HA_NONE || key == AK_RESULT_ACCURACY ||
        key == AK_SCAN_DIM_SIZE || (structure && !strcmp(structure->attr, "algorithm")))
        return true;
    return (name->code == HLO_SELECT_AND_SCATTER && key == AK_WINDOW_DIMENSIONS) ||
           (name->code == HLO_ALL_TO_ALL && key != AK_REPLICA_GROUPS &&
            !strcmp(b->dialects[name->dialect].name, "mhlo"));
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const RawItem *)a)->name, ((const RawItem *)b)->name);
}

static void item_add(RawItem *items, uint32_t *n, RawItem item) {
    for (uint32_t i = 0; i < *n; i++)
        if (!strcmp(items[i].name, item.name))
            return;
    items[(*n)++] = item;
}

static const RawItem *raw_items(Bc *b, BcOpName *name) {
    if (name->items)
        return name->items;
    const HloOpRow *row = &hlo_op_rows[name->code];
    const char *dialect = b->dialects[name->dialect].name;
    RawItem *items = ARENA_NEWN(b->arena, RawItem, HLO_MAX_ATTRS + sizeof raw_func / sizeof *raw_func + 3);
    uint32_t n = 0;
    for (int i = 0; name->code && i < row->nattrs; i++) {
        HloAttrKey key = row->attrs[i];
        bool segments = key == AK_OPERAND_SEGMENT_SIZES || key == AK_RESULT_SEGMENT_SIZES;
        if (!segments || b->version < RAW_SEGMENTS_VERSION)
            item_add(items, &n, (RawItem){raw_name(row, key), (uint8_t)vhlo_since(name->code, key), raw_optional(b, name, key)});
    }
    for (size_t i = 0; i < sizeof raw_more / sizeof *raw_more; i++)
        if (!strcmp(raw_more[i].dialect, dialect) && !strcmp(raw_more[i].op, name->name))
            item_add(items, &n, (RawItem){raw_more[i].attr, raw_more[i].since, true});
    for (size_t i = 0; name->kind == BO_FUNC && i < sizeof raw_func / sizeof *raw_func; i++)
        item_add(items, &n, (RawItem){raw_func[i].attr, 1, raw_func[i].optional});
    qsort(items, n, sizeof *items, by_name);
    name->nitems = n;
    return name->items = items;
}

static uint32_t count_numbers(Bc *b, BcSpan record) {
    uint32_t n = 0;
    for (Rd r = bc_rd(b, record); r.at < r.end; n++)
        bc_varint(&r);
    return n;
}

// The newest form whose items are as many as the record's numbers.
static int record_form(Bc *b, const BcOpName *name, BcSpan record) {
    uint32_t have = count_numbers(b, record);
    for (int form = RAW_NEWEST; form; form--) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < name->nitems; i++)
            n += name->items[i].since <= form;
        if (n == have)
            return form;
    }
    Rd r = bc_rd(b, record);
    rd_fail(&r, "a record of %u attributes for %.100s, which has %u", have, name->name, name->nitems);
}

void raw_record(Bc *b, BcOpName *name, BcSpan record, BcTake *take, void *arg) {
    const RawItem *items = raw_items(b, name);
    bool segments = b->version >= RAW_SEGMENTS_VERSION && name->code &&
                    hlo_row_has(&hlo_op_rows[name->code], AK_OPERAND_SEGMENT_SIZES);
    int form = segments ? RAW_NEWEST : record_form(b, name, record);
    Rd r = bc_rd(b, record);
    for (uint32_t i = 0; i < name->nitems; i++) {
        if (items[i].since > form)
            continue;
        bool present = true;
        uint64_t value = items[i].optional ? bc_flagged(&r, &present) : bc_varint(&r);
        if (present)
            take(b, arg, items[i].name, bc_check(&r, value, b->nattrs, "attribute"));
    }
    if (!segments)
        bc_done(&r, "a property record");
    name->rest = (BcSpan){r.at, (size_t)(r.end - r.at)};
}

// --- ops ----------------------------------------------------------------------------------------

// In the row's own slot as it is, or as the text that the slots' reader takes.
static void raw_entry(Bc *b, void *arg, const char *name, uint32_t i) {
    OpId id = *(OpId *)arg;
    const HloOpRow *row = hlo_row(hlo_at(b->h, id));
    const HloAttr *v = bc_attr(b, i);
    int slot = 0;
    while (slot < row->nattrs && strcmp(hlo_attr_rows[row->attrs[slot]].name, name))
        slot++;
    bool has = slot < row->nattrs;
    HloAttrKind want = has ? (HloAttrKind)hlo_attr_rows[row->attrs[slot]].kind : HA_NONE;
    if (has && v->kind != HA_OPAQUE && (want == HA_ANY || (v->kind == want && want != HA_LIST))) {
        HloAttr a = *v;
        if (want == HA_INT || want == HA_FLOAT || want == HA_INTS)
            a.type = 0; // the row knows
        hlo_at(b->h, id)->attrs[slot] = a;
        return;
    }
    bool conv = !strcmp(name, "dimension_numbers") && hlo_row_has(row, AK_INPUT_BATCH_DIMENSION);
    if (!has && !conv && !(row->nattrs && hlo_struct_by_name(row, name))) {
        HloOp *op = hlo_at(b->h, id);
        op->extra = read_named_with(b->h, op->extra, &op->nextra, (HloNamed){name, *v});
        return;
    }
    Buf text = {.arena = b->arena};
    buf_puts(&text, "= ");
    print_attr(b->h, v, &text);
    bc_spend(b, text.n);
    if (!b->text)
        b->text = text_make(b->ctx, b->arena, b->h);
    bc_spend(b, text_slot_alone(b->text, id, name, (Span){buf_cstr(&text), text.n}) * sizeof(int64_t));
}

// A few small numbers: all of them, or (value << bits | place) of those that are not zero.
static HloAttr read_segments(Bc *b, Rd *r) {
    enum { MAX = 8 };
    bool sparse;
    uint64_t n = bc_flagged(r, &sparse), bits = sparse && n ? bc_varint(r) : 0;
    if (n > MAX || bits > 8)
        rd_fail(r, "a list of segments that cannot be true");
    int64_t *sizes = ARENA_NEWN(b->arena, int64_t, MAX);
    uint32_t count = 2; // inputs and carried values
    for (uint64_t i = 0; i < n; i++) {
        uint64_t v = bc_varint(r), at = sparse ? v & ((1u << bits) - 1) : i;
        if (at >= count)
            rd_fail(r, "a list of segments that cannot be true");
        sizes[at] = (int64_t)(v >> bits);
    }
    return (HloAttr){.kind = HA_INTS, .n = count, .ints = sizes};
}

void raw_fill(Bc *b, BcOpName *name, OpId id, uint32_t attrs, uint32_t props) {
    name->rest = (BcSpan){0};
    if (props != BC_NO_ATTR && name->registered)
        raw_record(b, name, b->props[props], raw_entry, &id);
    else if (props != BC_NO_ATTR)
        bc_dict_walk(b, bc_record_dict(b, b->props[props]), raw_entry, &id);
    if (name->rest.n) {
        Rd r = bc_rd(b, name->rest);
        *hlo_attr_slot(b->h, id, AK_OPERAND_SEGMENT_SIZES) = read_segments(b, &r);
        *hlo_attr_slot(b->h, id, AK_RESULT_SEGMENT_SIZES) = read_segments(b, &r);
        bc_done(&r, "a property record");
    }
    if (attrs != BC_NO_ATTR)
        bc_dict_walk(b, attrs, raw_entry, &id);
    read_slot_defaults(b->h, id);
}
