// SPDX-License-Identifier: Apache-2.0
// vhlo.c — VHLO, the versioned form of StableHLO: its attributes, and its ops by name and version.
//
// VHLO writes everything out: dimension lists are tensors, optional attributes hold a default or
// the type "none". An op's slot wants the plain form that hlo.h tells: vhlo_slot makes that. Ops
// carry their version in their name (gather_v2); what an older version lacks is one row in
// `upgrades`.
#include "read/bytecode.h"

#include <stdio.h>

// Codes of VHLO attributes.
enum {
    VA_ARRAY = 1,
    VA_BOOLEAN,
    VA_COMPARISON_DIRECTION,
    VA_COMPARISON_TYPE,
    VA_API_VERSION,
    VA_DICTIONARY,
    VA_FFT_TYPE,
    VA_FLOAT,
    VA_INTEGER,
    VA_OPERAND_ALIAS,
    VA_PRECISION,
    VA_RNG_ALGORITHM,
    VA_RNG_DISTRIBUTION,
    VA_STRING,
    VA_TENSOR,
    VA_TRANSPOSE,
    VA_TYPE,
    VA_TYPE_EXTENSIONS,
    VA_ACCURACY_MODE,
    VA_ACCURACY,
    VA_SUB_AXIS, // this and all after it: vhlo_sdy.c
    VA_MESH = 25,
};

// --- general form -------------------------------------------------------------------------------

typedef struct EnumCode {
    uint8_t code, key; // key: the attribute name whose numbers these are
    const char *name;  // as text writes it
} EnumCode;

static const EnumCode enum_codes[] = {
    {VA_COMPARISON_DIRECTION, AK_COMPARISON_DIRECTION, "comparison_direction"},
    {VA_COMPARISON_TYPE, AK_COMPARE_TYPE, "comparison_type"},
    {VA_API_VERSION, AK_API_VERSION, "custom_call_api_version"},
    {VA_FFT_TYPE, AK_FFT_TYPE, "fft_type"},
    {VA_PRECISION, AK_PRECISION_CONFIG, "precision"},
    {VA_RNG_ALGORITHM, AK_RNG_ALGORITHM, "rng_algorithm"},
    {VA_RNG_DISTRIBUTION, AK_RNG_DISTRIBUTION, "rng_distribution"},
    {VA_TRANSPOSE, AK_TRANSPOSE_A, "transpose"},
};

static const EnumCode *enum_code(uint64_t code) {
    for (size_t i = 0; i < sizeof enum_codes / sizeof *enum_codes; i++)
        if (enum_codes[i].code == code)
            return &enum_codes[i];
    return NULL;
}

static int64_t enum_value(Rd *r, const EnumCode *e) {
    uint64_t v = bc_varint(r);
    if (v > INT8_MAX || !hlo_enum_name((HloAttrKey)e->key, (int64_t)v))
        rd_fail(r, "%s %llu is unknown", e->name, (unsigned long long)v);
    return (int64_t)v;
}

static void print_ints(Bc *b, Rd *r, Buf *out, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        int64_t v = bc_svarint(r);
        buf_puts(out, i ? ", " : "");
        if (v == HLO_DYNAMIC)
            buf_puts(out, "?");
        else
            buf_printf(out, "%lld", (long long)v);
        bc_text_check(b, r, out);
    }
}

static HloAttr operand_alias(Bc *b, Rd *r) {
    Buf out = {.arena = b->arena};
    buf_puts(&out, "#stablehlo.output_operand_alias<output_tuple_indices = [");
    print_ints(b, r, &out, bc_count(r));
    buf_printf(&out, "], operand_index = %lld, operand_tuple_indices = [",
               (long long)bc_svarint(r));
    print_ints(b, r, &out, bc_count(r));
    buf_puts(&out, "]>");
    return bc_text(b, &out);
}

static HloAttr type_extensions(Bc *b, Rd *r) {
    Buf out = {.arena = b->arena};
    buf_puts(&out, "#stablehlo.bounds<");
    print_ints(b, r, &out, bc_count(r));
    buf_puts(&out, ">");
    return bc_text(b, &out);
}

// --- result accuracy ----------------------------------------------------------------------------

typedef struct Accuracy {
    double atol, rtol;
    int64_t ulps;
    uint64_t mode; // 0 DEFAULT, 1 HIGHEST, 2 TOLERANCE
} Accuracy;

static uint64_t attr_code(Bc *b, uint32_t i) { // of a VHLO attribute or its twin; 0 for any other
    const BcEntry *e = &b->attrs[i].entry;
    const BcDialectName *dialect = &b->dialects[e->dialect];
    if (!e->custom || (dialect->known != BD_VHLO && dialect->known != BD_RAW))
        return 0;
    Rd r = bc_rd(b, e->bytes);
    uint64_t code = bc_varint(&r);
    return dialect->known == BD_VHLO ? code : raw_vhlo_code(dialect->name, code);
}

static uint64_t accuracy_mode(Rd *r) {
    uint64_t mode = bc_varint(r);
    if (mode > 2)
        rd_fail(r, "result accuracy mode %llu is unknown", (unsigned long long)mode);
    return mode;
}

static Accuracy read_accuracy(Bc *b, Rd *r) {
    Accuracy a = {.atol = bc_f64(r)};
    a.rtol = bc_f64(r);
    a.ulps = bc_svarint(r);
    uint32_t mode = bc_attr_index(b, r);
    if (attr_code(b, mode) != VA_ACCURACY_MODE)
        rd_fail(r, "a result accuracy has no mode");
    Rd m = bc_rd(b, b->attrs[mode].entry.bytes);
    bc_varint(&m);
    a.mode = accuracy_mode(&m);
    return a;
}

static const char *const mode_names[] = {"DEFAULT", "HIGHEST", "TOLERANCE"};

static HloAttr accuracy_attr(Bc *b, Rd *r) {
    Accuracy a = read_accuracy(b, r);
    char atol[NUM_TEXT_BYTES], rtol[NUM_TEXT_BYTES];
    Buf out = {.arena = b->arena};
    buf_printf(&out,
               "#stablehlo.result_accuracy<atol = %s, rtol = %s, ulps = %lld, "
               "mode = #stablehlo.result_accuracy_mode<%s>>",
               bc_double(atol, a.atol), bc_double(rtol, a.rtol), (long long)a.ulps,
               mode_names[a.mode]);
    return bc_text(b, &out);
}

// --- all attributes -----------------------------------------------------------------------------

static HloAttr opaque_printf(Bc *b, const char *fmt, const char *x, const char *y) {
    Buf out = {.arena = b->arena};
    buf_printf(&out, fmt, x, y);
    return bc_text(b, &out);
}

static HloAttr string_attr(Bc *b, Rd *r) {
    const BcSpan *s = bc_str(b, r);
    return (HloAttr){.kind = HA_STR, .n = (uint32_t)s->n, .s = (const char *)s->at};
}

static HloAttr tensor_attr(Bc *b, Rd *r) {
    TypeId type = bc_type_ref(b, r)->id;
    return bc_tensor(b, r, type, bc_blob(r));
}

HloAttr vhlo_attr(Bc *b, Rd *r, uint32_t i, uint64_t code) {
    const EnumCode *e = enum_code(code);
    if (e)
        return opaque_printf(b, "#stablehlo<%s %s>", e->name,
                             hlo_enum_name((HloAttrKey)e->key, enum_value(r, e)));
    switch (code) {
    case VA_ARRAY:
        return bc_list(b, r);
    case VA_BOOLEAN:
        return (HloAttr){.kind = HA_BOOL, .i = bc_varint(r) != 0};
    case VA_DICTIONARY:
        return bc_dict(b, r);
    case VA_FLOAT:
    case VA_INTEGER:
        return bc_number(b, r);
    case VA_OPERAND_ALIAS:
        return operand_alias(b, r);
    case VA_STRING:
        return string_attr(b, r);
    case VA_TENSOR:
        return tensor_attr(b, r);
    case VA_TYPE:
        return (HloAttr){.kind = HA_TYPE, .type = bc_type_ref(b, r)->id};
    case VA_TYPE_EXTENSIONS:
        return type_extensions(b, r);
    case VA_ACCURACY_MODE:
        return opaque_printf(b, "#stablehlo.result_accuracy_mode<%s>%s",
                             mode_names[accuracy_mode(r)], "");
    case VA_ACCURACY:
        return accuracy_attr(b, r);
    default:
        break;
    }
    if (code < VA_SUB_AXIS || code > VA_MESH)
        rd_fail(r, "VHLO attribute code %llu is unknown", (unsigned long long)code);
    return vhlo_mesh_attr(b, r, code, b->dialects[b->attrs[i].entry.dialect].known == BD_RAW);
}

// --- the form an op's slot wants ----------------------------------------------------------------

static _Noreturn void wrong_kind(Bc *b, HloAttrKey key, uint32_t i) {
    Rd r = bc_rd(b, b->attrs[i].entry.bytes);
    rd_fail(&r, "attribute %s has a value of the wrong kind", hlo_attr_rows[key].name);
}

// Rank 1 (or, for INTS2, rank 2) of integers or bools; splats are written out.
static HloAttr slot_ints(Bc *b, HloAttrKey key, uint32_t i, HloAttrKind kind) {
    const HloAttr *v = bc_attr(b, i);
    if (v->kind == HA_INTS && kind == HA_INTS)
        return *v;
    if (v->kind == HA_OPAQUE && key == AK_REPLICA_GROUPS) // groups told by mesh axes
        return *v;
    if (v->kind != HA_TENSOR)
        wrong_kind(b, key, i);
    HloType ty = *hlo_type(b->h, v->type);
    bool fits = kind == HA_INTS ? ty.rank <= 1 : ty.rank == 2 || !ty.elems;
    if (!fits || (!dtype_is_int(ty.dtype) && ty.dtype != DT_I1) || ty.elems > UINT32_MAX)
        wrong_kind(b, key, i);
    size_t n = (size_t)ty.elems, elem = dtype_bytes(ty.dtype), step = v->n == n * elem ? elem : 0;
    bc_spend(b, n * sizeof(int64_t));
    int64_t *ints = ARENA_NEWN(b->arena, int64_t, n);
    for (size_t k = 0; k < n; k++)
        ints[k] = dtype_to_i64(ty.dtype, (const uint8_t *)v->data + k * step);
    uint32_t cols = kind == HA_INTS ? 0 : n ? (uint32_t)ty.dims[1] : 2;
    bool pairs = key == AK_PADDING || key == AK_SOURCE_TARGET_PAIRS;
    if (pairs && cols != 2)
        wrong_kind(b, key, i);
    return (HloAttr){.kind = (uint8_t)kind, .n = (uint32_t)n, .cols = cols, .ints = ints};
}

static HloAttr slot_enum(Bc *b, HloAttrKey key, uint32_t i) {
    const EnumCode *e = enum_code(attr_code(b, i));
    if (!e || e->key != key)
        wrong_kind(b, key, i);
    Rd r = bc_rd(b, b->attrs[i].entry.bytes);
    bc_varint(&r);
    return (HloAttr){.kind = HA_ENUM, .i = enum_value(&r, e)};
}

// Reader behind the code of a VHLO attribute that must have it.
static Rd slot_rd(Bc *b, HloAttrKey key, uint32_t i, uint64_t code) {
    if (attr_code(b, i) != code)
        wrong_kind(b, key, i);
    Rd r = bc_rd(b, b->attrs[i].entry.bytes);
    bc_varint(&r);
    return r;
}

static HloAttr slot_accuracy(Bc *b, HloAttrKey key, uint32_t i) {
    Rd r = slot_rd(b, key, i, VA_ACCURACY);
    Accuracy a = read_accuracy(b, &r);
    bc_done(&r, "an attribute");
    if (a.mode == 0) // DEFAULT says nothing
        return (HloAttr){.kind = HA_NONE};
    HloNamed fields[] = {
        {"atol", {.kind = HA_FLOAT, .f = a.atol}},
        {"mode", {.kind = HA_ENUM, .i = (int64_t)a.mode}},
        {"rtol", {.kind = HA_FLOAT, .f = a.rtol}},
        {"ulps", {.kind = HA_INT, .i = a.ulps}},
    };
    return (HloAttr){.kind = HA_DICT, .n = 4, .dict = arena_dup(b->arena, fields, sizeof fields)};
}

static HloAttr read_ints(Bc *b, Rd *r) {
    uint32_t n = bc_count(r);
    int64_t *ints = ARENA_NEWN(b->arena, int64_t, n);
    for (uint32_t i = 0; i < n; i++)
        ints[i] = bc_svarint(r);
    return (HloAttr){.kind = HA_INTS, .n = n, .ints = ints};
}

static HloAttr slot_alias(Bc *b, HloAttrKey key, uint32_t i) {
    Rd r = slot_rd(b, key, i, VA_OPERAND_ALIAS);
    bc_spend(b, b->attrs[i].entry.bytes.n * sizeof(int64_t));
    HloAttr outputs = read_ints(b, &r);
    HloAttr index = {.kind = HA_INT, .i = bc_svarint(&r)};
    HloNamed fields[] = {{"operand_index", index},
                         {"operand_tuple_indices", read_ints(b, &r)},
                         {"output_tuple_indices", outputs}};
    bc_done(&r, "an attribute");
    return (HloAttr){.kind = HA_DICT, .n = 3, .dict = arena_dup(b->arena, fields, sizeof fields)};
}

static HloAttr slot_list(Bc *b, HloAttrKey key, uint32_t i, int level);

static HloAttr slot_item(Bc *b, HloAttrKey key, uint32_t i, int level) {
    HloAttr v;
    switch (key) {
    case AK_PRECISION_CONFIG:
        return slot_enum(b, key, i);
    case AK_OPERAND_LAYOUTS:
    case AK_RESULT_LAYOUTS:
        return slot_ints(b, key, i, HA_INTS);
    case AK_OUTPUT_OPERAND_ALIASES:
        return slot_alias(b, key, i);
    case AK_RESULT_TILINGS:
        return level ? slot_ints(b, key, i, HA_INTS) : slot_list(b, key, i, level + 1);
    case AK_CALLED_COMPUTATIONS:
        v = *bc_attr(b, i);
        if (!bc_is_name(&v))
            wrong_kind(b, key, i);
        v.kind = HA_SYM;
        return v;
    default:
        return *bc_attr(b, i);
    }
}

static HloAttr slot_list(Bc *b, HloAttrKey key, uint32_t i, int level) {
    Rd r = slot_rd(b, key, i, VA_ARRAY);
    uint32_t n = bc_count(&r);
    bc_spend(b, n * sizeof(HloAttr));
    HloAttr *list = ARENA_NEWN(b->arena, HloAttr, n);
    for (uint32_t k = 0; k < n; k++)
        list[k] = slot_item(b, key, bc_attr_index(b, &r), level);
    bc_done(&r, "an attribute");
    return (HloAttr){.kind = HA_LIST, .n = n, .list = list};
}

static bool is_type_none(Bc *b, const HloAttr *v) {
    if (v->kind != HA_TYPE)
        return false;
    const HloType *ty = hlo_type(b->h, v->type);
    return ty->kind == HT_OTHER && !strcmp(ty->text, "none");
}

static HloAttr slot_make(Bc *b, HloAttrKey key, uint32_t i) {
    HloAttrKind want = (HloAttrKind)hlo_attr_rows[key].kind;
    if (want == HA_ENUM)
        return slot_enum(b, key, i);
    if (want == HA_LIST && key != AK_PROGRAMS && key != AK_INFEED) // those are builtin's lists
        return slot_list(b, key, i, 0);
    if (key == AK_RESULT_ACCURACY)
        return slot_accuracy(b, key, i);
    HloAttr v = *bc_attr(b, i);
    if (is_type_none(b, &v))
        return (HloAttr){.kind = HA_NONE};
    if (want == HA_INTS || want == HA_INTS2)
        return slot_ints(b, key, i, want);
    if (want == HA_SYM && bc_is_name(&v))
        v.kind = HA_SYM;
    if (v.kind != want && want != HA_ANY)
        wrong_kind(b, key, i);
    if ((v.kind == HA_INT || v.kind == HA_FLOAT) && want != HA_ANY)
        v.type = 0; // the row knows
    return v;
}

HloAttr vhlo_slot(Bc *b, HloAttrKey key, uint32_t i) {
    BcAttr *a = &b->attrs[i];
    if (a->slot_key != key) {
        a->slot = slot_make(b, key, i);
        a->slot_key = (uint8_t)key;
    }
    return a->slot;
}

HloAttr vhlo_slot_default(HloAttrKey key) {
    HloAttr v = {.kind = hlo_attr_rows[key].kind};
    if (v.kind == HA_INTS2)
        v.cols = 2;
    if (key == AK_LARGEST)
        v.i = 1;
    if (v.kind == HA_LIST || v.kind == HA_INTS || v.kind == HA_INTS2 || key == AK_HAS_DYNAMIC_ROOT ||
        key == AK_LARGEST)
        return v;
    return (HloAttr){.kind = HA_NONE}; // a dot algorithm's field, an accuracy
}

// --- ops by name and version --------------------------------------------------------------------

// Attributes that came with a later version of an op. Before it they have their default. AK_NONE:
// the version changed something else (one operand became a list, regions were added).
typedef struct Upgrade {
    uint16_t code; // HLO_NONE: any op
    uint8_t key, since;
} Upgrade;

static const Upgrade upgrades[] = {
    {HLO_NONE, AK_RESULT_ACCURACY, 2},
    {HLO_ALL_GATHER, AK_NONE, 2},
    {HLO_ALL_REDUCE, AK_NONE, 2},
    {HLO_ALL_TO_ALL, AK_NONE, 2},
    {HLO_COLLECTIVE_BROADCAST, AK_HAS_DYNAMIC_ROOT, 2},
    {HLO_COMPOSITE, AK_NONE, 2},
    {HLO_CUSTOM_CALL, AK_RESULT_TILINGS, 2},
    {HLO_DOT_GENERAL, AK_ACCUMULATION_TYPE, 2},
    {HLO_DOT_GENERAL, AK_ALLOW_IMPRECISE_ACCUMULATION, 2},
    {HLO_DOT_GENERAL, AK_LHS_COMPONENT_COUNT, 2},
    {HLO_DOT_GENERAL, AK_LHS_PRECISION_TYPE, 2},
    {HLO_DOT_GENERAL, AK_NUM_PRIMITIVE_OPERATIONS, 2},
    {HLO_DOT_GENERAL, AK_RHS_COMPONENT_COUNT, 2},
    {HLO_DOT_GENERAL, AK_RHS_PRECISION_TYPE, 2},
    {HLO_DYNAMIC_CONV, AK_NONE, 2},
    {HLO_DYNAMIC_GATHER, AK_OPERAND_BATCHING_DIMS, 2},
    {HLO_DYNAMIC_GATHER, AK_START_INDICES_BATCHING_DIMS, 2},
    {HLO_GATHER, AK_OPERAND_BATCHING_DIMS, 2},
    {HLO_GATHER, AK_START_INDICES_BATCHING_DIMS, 2},
    {HLO_RECV, AK_SOURCE_TARGET_PAIRS, 2},
    {HLO_SCATTER, AK_INPUT_BATCHING_DIMS, 2},
    {HLO_SCATTER, AK_SCATTER_INDICES_BATCHING_DIMS, 2},
    {HLO_SEND, AK_SOURCE_TARGET_PAIRS, 2},
    {HLO_CHLO_TOP_K, AK_LARGEST, 2}, // not in VHLO
};

int vhlo_since(uint16_t code, HloAttrKey key) {
    for (size_t u = 0; u < sizeof upgrades / sizeof *upgrades; u++)
        if (upgrades[u].key == key && (upgrades[u].code == code || upgrades[u].code == HLO_NONE))
            return upgrades[u].since;
    return 1;
}

// The other way round: dynamic_conv_v1 had the padding as attribute beside the operand.
static void resolve_gone(BcOpName *name) {
    const HloOpRow *row = &hlo_op_rows[name->code];
    if (name->code != HLO_DYNAMIC_CONV || name->version != 1)
        return;
    name->gone = AK_PADDING;
    while (name->gone_at < row->nattrs &&
           strcmp(hlo_attr_rows[row->attrs[name->gone_at]].name, "padding") < 0)
        name->gone_at++;
}

static void resolve_version(BcOpName *name) {
    const HloOpRow *row = &hlo_op_rows[name->code];
    name->present = row->nattrs ? UINT32_MAX >> (32 - row->nattrs) : 0;
    uint32_t newest = 1;
    for (size_t u = 0; u < sizeof upgrades / sizeof *upgrades; u++) {
        const Upgrade *up = &upgrades[u];
        if (up->code != HLO_NONE && up->code != name->code)
            continue;
        bool applies = up->key == AK_NONE;
        for (int k = 0; k < row->nattrs; k++)
            if (row->attrs[k] == up->key) {
                applies = true;
                if (name->version < up->since)
                    name->present &= ~(1u << k);
            }
        if (applies && up->since > newest)
            newest = up->since;
    }
    if (!name->version || name->version > newest)
        name->kind = BO_UNKNOWN;
}

// "gather_v2" is gather, version 2; 0 when there is no such ending.
static size_t split_version(const char *name, uint32_t *version) {
    size_t n = strlen(name), end = n;
    while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    *version = 0;
    if (end == n || n - end > 6 || end < 3 || name[end - 1] != 'v' || name[end - 2] != '_')
        return n;
    for (size_t i = end; i < n; i++)
        *version = *version * 10 + (uint32_t)(name[i] - '0');
    return end - 2;
}

static bool name_is(const char *s, size_t n, const char *want) {
    return strlen(want) == n && !memcmp(s, want, n);
}

static void resolve_vhlo(BcOpName *name) {
    size_t n = split_version(name->name, &name->version);
    const char *s = name->name;
    if (name_is(s, n, "func") && name->version == 1) {
        name->kind = BO_FUNC;
        return;
    }
    const char *dialect = name_is(s, n, "call") ? "func" : "stablehlo";
    name->code = (uint16_t)hlo_op_find(dialect, strlen(dialect), s, n);
    name->kind = name->code ? BO_OP : BO_UNKNOWN;
    if (name->code) {
        resolve_version(name);
        resolve_gone(name);
    }
}

void vhlo_op_resolve(Bc *b, BcOpName *name) {
    const BcDialectName *dialect = &b->dialects[name->dialect];
    const char *s = name->name;
    name->kind = BO_UNKNOWN;
    if (dialect->known == BD_VHLO) {
        resolve_vhlo(name);
    } else if (dialect->known == BD_BUILTIN && !strcmp(s, "module")) {
        name->kind = BO_MODULE;
    } else if (dialect->known == BD_SDY && !strcmp(s, "mesh")) {
        name->kind = BO_MESH;
    } else if (!strcmp(dialect->name, "func") && !strcmp(s, "func")) {
        name->kind = BO_FUNC;
    } else if (dialect->known != BD_OTHER) {
        name->code = (uint16_t)hlo_op_find(dialect->name, strlen(dialect->name), s, strlen(s));
        name->kind = name->code ? BO_OP : BO_UNKNOWN;
    }
}
