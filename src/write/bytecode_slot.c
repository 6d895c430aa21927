// SPDX-License-Identifier: Apache-2.0
// bytecode_slot.c — an op's slots as VHLO's property record wants them, and which version of the op
// has which slots.
//
// VHLO leaves nothing out: dimension lists are tensors, an absent dot algorithm is the type "none",
// an absent accuracy is the default one.
#include "write/bytecode.h"

enum {
    VA_COMPARISON_DIRECTION = 3,
    VA_COMPARISON_TYPE,
    VA_API_VERSION,
    VA_FFT_TYPE = 7,
    VA_OPERAND_ALIAS = 10,
    VA_PRECISION,
    VA_RNG_ALGORITHM,
    VA_RNG_DISTRIBUTION,
    VA_TRANSPOSE = 16,
    VA_ACCURACY_MODE = 19,
    VA_ACCURACY,
};

// --- enums --------------------------------------------------------------------------------------

typedef struct EnumCode {
    uint8_t key, code;
    const char *name; // in text
} EnumCode;

static const EnumCode enum_codes[] = {
    {AK_COMPARISON_DIRECTION, VA_COMPARISON_DIRECTION, "comparison_direction"},
    {AK_COMPARE_TYPE, VA_COMPARISON_TYPE, "comparison_type"},
    {AK_API_VERSION, VA_API_VERSION, "custom_call_api_version"},
    {AK_FFT_TYPE, VA_FFT_TYPE, "fft_type"},
    {AK_PRECISION_CONFIG, VA_PRECISION, "precision"},
    {AK_RNG_ALGORITHM, VA_RNG_ALGORITHM, "rng_algorithm"},
    {AK_RNG_DISTRIBUTION, VA_RNG_DISTRIBUTION, "rng_distribution"},
    {AK_TRANSPOSE_A, VA_TRANSPOSE, "transpose"},
};
#define ENUM_COUNT (sizeof enum_codes / sizeof *enum_codes)

bool bw_enum_text(Bw *w, const char *text, BwId *out) {
    if (strncmp(text, "#stablehlo<", 11))
        return false;
    const char *name = text + 11;
    size_t n = strcspn(name, " ");
    const char *value = name + n + strspn(name + n, " ");
    size_t value_n = strcspn(value, " >");
    for (size_t i = 0; i < ENUM_COUNT; i++) {
        const EnumCode *e = &enum_codes[i];
        if (strlen(e->name) != n || memcmp(e->name, name, n))
            continue;
        int64_t v = hlo_enum_parse((HloAttrKey)e->key, value, value_n);
        if (v < 0)
            return false;
        *out = bw_vhlo_code(w, e->code, (uint64_t)v);
        return true;
    }
    return false;
}

static BwId slot_enum(Bw *w, HloAttrKey key, const HloAttr *a) {
    for (size_t i = 0; i < ENUM_COUNT; i++)
        if (enum_codes[i].key == key)
            return bw_vhlo_code(w, enum_codes[i].code, (uint64_t)a->i);
    bw_fail(w, "the attribute %s", hlo_attr_rows[key].name);
}

// --- structures ---------------------------------------------------------------------------------

static void put_f64(Buf *form, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bw_bits(form, 64, bits);
}

static const HloAttr *field(const HloAttr *a, const char *name) { // of a dictionary, or NULL
    const HloNamed *n = a->kind == HA_DICT ? hlo_named_find(a->dict, a->n, name) : NULL;
    return n ? &n->value : NULL;
}

static BwId accuracy(Bw *w, const HloAttr *a) {
    const HloAttr *atol = field(a, "atol"), *rtol = field(a, "rtol"), *ulps = field(a, "ulps"),
                  *mode = field(a, "mode");
    BwId m = bw_vhlo_code(w, VA_ACCURACY_MODE, mode ? (uint64_t)mode->i : 0);
    bw_num(&w->key, VA_ACCURACY);
    put_f64(&w->key, atol ? atol->f : 0);
    put_f64(&w->key, rtol ? rtol->f : 0);
    bw_snum(&w->key, ulps ? ulps->i : 0);
    bw_ref(&w->key, BW_ATTR, m);
    return bw_entry(w, BW_ATTR, "vhlo");
}

static void put_ints(Buf *form, const HloAttr *a) {
    bw_num(form, a ? a->n : 0);
    for (uint32_t i = 0; a && i < a->n; i++)
        bw_snum(form, a->ints[i]);
}

static BwId alias(Bw *w, const HloAttr *a) {
    const HloAttr *index = field(a, "operand_index");
    bw_num(&w->key, VA_OPERAND_ALIAS);
    put_ints(&w->key, field(a, "output_tuple_indices"));
    bw_snum(&w->key, index ? index->i : 0);
    put_ints(&w->key, field(a, "operand_tuple_indices"));
    return bw_entry(w, BW_ATTR, "vhlo");
}

// --- lists --------------------------------------------------------------------------------------

static BwId ints(Bw *w, HloAttrKey key, const HloAttr *a) {
    int dtype = key == AK_WINDOW_REVERSAL ? DT_I1
                : key == AK_OPERAND_LAYOUTS || key == AK_RESULT_LAYOUTS || key == AK_RESULT_TILINGS
                    ? DT_INDEX
                    : DT_I64;
    return bw_vhlo_ints(w, dtype, 1, (int64_t[]){a->n}, a->ints, a->n);
}

static BwId ints2(Bw *w, const HloOp *op, HloAttrKey key, const HloAttr *a) {
    uint32_t cols = a->cols, rows = cols ? a->n / cols : 0;
    int64_t dims[2] = {rows, cols};
    if (!a->n && key == AK_REPLICA_GROUPS)
        dims[1] = 0;
    bool flat = !a->n && (op->code == HLO_SEND || op->code == HLO_RECV);
    return bw_vhlo_ints(w, DT_I64, flat ? 1 : 2, dims, a->ints, a->n);
}

static BwId list(Bw *w, HloAttrKey key, const HloAttr *a);

static BwId item(Bw *w, HloAttrKey key, const HloAttr *a) {
    if (key == AK_PRECISION_CONFIG && a->kind == HA_ENUM)
        return slot_enum(w, key, a);
    if (key == AK_OUTPUT_OPERAND_ALIASES && a->kind == HA_DICT)
        return alias(w, a);
    if (key == AK_CALLED_COMPUTATIONS && a->kind == HA_SYM)
        return bw_vhlo_str(w, a->s, a->n);
    if (key == AK_RESULT_TILINGS && a->kind == HA_LIST)
        return list(w, key, a);
    if (a->kind == HA_INTS)
        return ints(w, key, a);
    return bw_attr(w, a, BF_VHLO);
}

static BwId list(Bw *w, HloAttrKey key, const HloAttr *a) {
    uint32_t base = w->ids.n;
    bw_enter(w);
    for (uint32_t i = 0; i < a->n; i++) {
        BwId id = item(w, key, &a->list[i]);
        VEC_PUSH(w->arena, &w->ids, id);
    }
    bw_leave(w);
    return bw_vhlo_array(w, base);
}

// --- one slot -----------------------------------------------------------------------------------

static int int_dtype(HloAttrKey key, const HloAttr *a) {
    if (key == AK_VERSION) // of a composite: 64 bits wide where it stands for "not said"
        return a->i ? DT_I32 : DT_I64;
    bool narrow = key == AK_INDEX || key == AK_EXPONENT_BITS || key == AK_MANTISSA_BITS;
    return narrow ? DT_I32 : DT_I64;
}

static BwId absent(Bw *w, HloAttrKey key) {
    if (key == AK_RESULT_ACCURACY)
        return accuracy(w, &(HloAttr){0});
    // A field of the dot algorithm.
    bw_num(&w->key, 33);
    return bw_vhlo_type(w, bw_entry(w, BW_TYPE, "vhlo"));
}

BwId bw_slot(Bw *w, const HloOp *op, int i) {
    HloAttrKey key = (HloAttrKey)hlo_row(op)->attrs[i];
    const HloAttr *a = &op->attrs[i];
    switch ((HloAttrKind)a->kind) {
    case HA_NONE:
        return absent(w, key);
    case HA_ENUM:
        return slot_enum(w, key, a);
    case HA_INT:
        if (hlo_attr_rows[key].kind == HA_ANY) // its type is its own
            return bw_attr(w, a, BF_VHLO);
        return bw_vhlo_int(w, int_dtype(key, a), a->i);
    case HA_FLOAT:
        if (hlo_attr_rows[key].kind == HA_ANY)
            return bw_attr(w, a, BF_VHLO);
        return bw_vhlo_float(w, key == AK_EPSILON ? DT_F32 : DT_F64, a->f);
    case HA_SYM:
        return bw_vhlo_str(w, a->s, a->n);
    case HA_INTS:
        return ints(w, key, a);
    case HA_INTS2:
        return ints2(w, op, key, a);
    case HA_LIST:
        return list(w, key, a);
    case HA_DICT:
        return key == AK_RESULT_ACCURACY ? accuracy(w, a) : bw_attr(w, a, BF_VHLO);
    case HA_OPAQUE:
        if (key == AK_REPLICA_GROUPS)
            return bw_mesh_axes(w, a->s);
        return bw_attr(w, a, BF_VHLO);
    default:
        return bw_attr(w, a, BF_VHLO);
    }
}

BwId bw_slot_dict(Bw *w, const HloOp *op) {
    const HloOpRow *row = hlo_row(op);
    uint32_t base = w->ids.n;
    for (int i = 0; i < row->nattrs; i++) {
        const char *name = hlo_attr_rows[row->attrs[i]].name;
        if (op->attrs[i].kind == HA_NONE)
            continue;
        BwId pair[2] = {bw_builtin_str(w, name, strlen(name)), bw_slot(w, op, i)};
        VEC_PUSH(w->arena, &w->ids, pair[0]);
        VEC_PUSH(w->arena, &w->ids, pair[1]);
    }
    return bw_builtin_dict(w, base);
}

// --- versions -----------------------------------------------------------------------------------

// Ops whose newest version is the second: from which minor on, and the slot it brought. Ops that
// are not here have one version, or were at their second before WRITE_OLDEST_MINOR.
typedef struct Second {
    uint16_t code;
    uint8_t minor, key; // AK_NONE: something else changed
} Second;

static const Second seconds[] = {
    {HLO_ALL_GATHER, 5, AK_NONE},
    {HLO_ALL_REDUCE, 5, AK_NONE},
    {HLO_ALL_TO_ALL, 5, AK_NONE},
    {HLO_COLLECTIVE_BROADCAST, 20, AK_HAS_DYNAMIC_ROOT},
    {HLO_COMPOSITE, 14, AK_NONE},
    {HLO_CUSTOM_CALL, 18, AK_RESULT_TILINGS},
    {HLO_DOT_GENERAL, 6, AK_NONE},
    {HLO_DYNAMIC_CONV, 0, AK_NONE},
    {HLO_DYNAMIC_GATHER, 1, AK_NONE},
    {HLO_GATHER, 1, AK_NONE},
    {HLO_RECV, 12, AK_NONE},
    {HLO_SCATTER, 1, AK_NONE},
    {HLO_SEND, 12, AK_NONE},
};

// What an op uses that came later than WRITE_OLDEST_MINOR.
static void need(Bw *w, const HloOp *op) {
    const HloAttr *a;
    switch (op->code) {
    case HLO_ASYNC_START:
    case HLO_ASYNC_DONE:
        bw_need(w, 15);
        return;
    case HLO_COLLECTIVE_REDUCE:
        bw_need(w, 19);
        return;
    case HLO_COMPOSITE:
        if (op->nregions)
            bw_need(w, 14);
        return;
    case HLO_CUSTOM_CALL:
        a = hlo_attr(op, AK_RESULT_TILINGS);
        if (a && a->n)
            bw_need(w, 18);
        return;
    case HLO_COLLECTIVE_BROADCAST:
        if (op->noperands != 1 || hlo_int(op, AK_HAS_DYNAMIC_ROOT, 0))
            bw_need(w, 20);
        return;
    default:
        return;
    }
}

uint32_t bw_op_version(Bw *w, const HloOp *op, uint32_t *slots) {
    const HloOpRow *row = hlo_row(op);
    need(w, op);
    *slots = row->nattrs ? UINT32_MAX >> (32 - row->nattrs) : 0;
    for (int i = 0; i < row->nattrs; i++)
        if (row->attrs[i] == AK_RESULT_ACCURACY)
            return 2;
    for (size_t s = 0; s < sizeof seconds / sizeof *seconds; s++) {
        if (seconds[s].code != op->code)
            continue;
        if (w->minor >= seconds[s].minor)
            return 2;
        for (int i = 0; i < row->nattrs; i++)
            if (row->attrs[i] == seconds[s].key)
                *slots &= ~(1u << i);
        return 1;
    }
    return 1;
}
