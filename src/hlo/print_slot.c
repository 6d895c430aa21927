// SPDX-License-Identifier: Apache-2.0
// print_slot.c — an op's slots in StableHLO's own spelling, so that other tools read our text.
//
// The flat fields of dimension numbers, channels and algorithms become structures again; values
// that a reader fills in by itself are left out.
#include "hlo/print.h"
#include "hlo/structs.h"

// --- what is left out ----------------------------------------------------------------------------

// Unit attributes: present or not, never `= false`.
static bool is_unit(HloAttrKey key) {
    return key == AK_USE_GLOBAL_DEVICE_IDS || key == AK_HAS_DYNAMIC_ROOT;
}

// Attributes whose empty, false or zero value is what a reader assumes.
static bool has_empty_default(const HloOp *op, HloAttrKey key) {
    switch ((int)key) {
    case AK_KNOWN_EXPANDING_DIMENSIONS:
    case AK_KNOWN_NONEXPANDING_DIMENSIONS:
    case AK_HAS_SIDE_EFFECT:
    case AK_INDICES_ARE_SORTED:
    case AK_UNIQUE_INDICES:
    case AK_IS_HOST_TRANSFER:
    case AK_IS_STABLE:
    case AK_BACKEND_CONFIG:
    case AK_INFEED_CONFIG:
    case AK_OUTFEED_CONFIG:
    case AK_COMPOSITE_ATTRIBUTES:
    case AK_CALLED_COMPUTATIONS:
    case AK_OPERAND_LAYOUTS:
    case AK_RESULT_LAYOUTS:
    case AK_RESULT_TILINGS:
    case AK_OUTPUT_OPERAND_ALIASES:
    case AK_LAYOUT:
    case AK_INFEED:
    case AK_VERSION:
    case AK_COMPARE_TYPE:
    case AK_USE_GLOBAL_DEVICE_IDS:
    case AK_HAS_DYNAMIC_ROOT:
        return true;
    case AK_SOURCE_TARGET_PAIRS:
        return op->code != HLO_COLLECTIVE_PERMUTE;
    case AK_LOWER:
        return op->code == HLO_CHOLESKY;
    case AK_CHANNEL_ID:
        return op->code != HLO_SEND && op->code != HLO_RECV;
    default:
        return false;
    }
}

static bool is_empty(const HloAttr *a) {
    switch ((HloAttrKind)a->kind) {
    case HA_INT:
    case HA_BOOL:
    case HA_ENUM:
        return a->i == 0;
    case HA_STR:
    case HA_INTS:
    case HA_INTS2:
    case HA_LIST:
    case HA_DICT:
        return a->n == 0;
    default:
        return false;
    }
}

static bool is_default(const HloOp *op, HloAttrKey key, const HloAttr *a) {
    if (key == AK_API_VERSION)
        return a->kind == HA_ENUM && a->i == 1;
    if (key == AK_LARGEST)
        return a->kind == HA_BOOL && a->i == 1;
    if (key == AK_DIMENSION && op->code == HLO_SORT)
        return a->i == -1;
    if (key == AK_OPERAND_LAYOUTS || key == AK_RESULT_LAYOUTS) { // both or none
        const HloAttr *b = hlo_attr(op, AK_OPERAND_LAYOUTS), *c = hlo_attr(op, AK_RESULT_LAYOUTS);
        return (!b || is_empty(b)) && (!c || is_empty(c));
    }
    return has_empty_default(op, key) && is_empty(a);
}

static bool is_shown(const HloOp *op, int i) {
    const HloAttr *a = &op->attrs[i];
    return a->kind != HA_NONE && !is_default(op, hlo_row(op)->attrs[i], a);
}

bool print_slots_empty(const HloOp *op) {
    for (int i = 0; i < hlo_row(op)->nattrs; i++)
        if (is_shown(op, i))
            return false;
    return true;
}

// --- structures ----------------------------------------------------------------------------------

static void field(const Hlo *h, const HloAttr *a, Buf *out) {
    if (a->kind == HA_INTS) {
        buf_puts(out, "[");
        print_ints(out, a->ints, a->n);
        buf_puts(out, "]");
    } else if (a->kind == HA_INT || a->kind == HA_ENUM) {
        buf_printf(out, "%lld", (long long)a->i);
    } else {
        print_attr(h, a, out);
    }
}

static void structure(const Hlo *h, const HloOp *op, const HloStructRow *row, Buf *out) {
    bool channel = row->keys[0] == AK_CHANNEL_ID;
    const char *dialect = row->keys[0] == AK_LHS_RAGGED_DIMENSIONS ? "chlo" : "stablehlo";
    buf_printf(out, "%s = #%s.%s<", row->attr, dialect, row->mnemonic);
    bool first = true;
    for (int i = 0; i < HLO_STRUCT_FIELDS && row->keys[i]; i++) {
        const HloAttr *a = hlo_attr(op, row->keys[i]), zero = {.kind = HA_INT};
        if (!a && channel)
            a = &zero; // a channel without a type of its own
        if (!a || (a->kind == HA_INTS && !a->n))
            continue;
        const char *name = row->fields[i] ? row->fields[i] : hlo_attr_rows[row->keys[i]].name;
        buf_printf(out, "%s%s = ", first ? "" : ", ", name);
        field(h, a, out);
        first = false;
    }
    buf_puts(out, ">");
}

static void conv_layout(const HloOp *op, const char *letters, HloAttrKey first, HloAttrKey second,
                        HloAttrKey spatial, Buf *out) {
    uint32_t n;
    const int64_t *axes = hlo_ints(op, spatial, &n);
    int64_t a = hlo_int(op, first, -1), b = hlo_int(op, second, -1);
    buf_puts(out, "[");
    for (int64_t axis = 0; axis < (int64_t)n + 2; axis++) {
        buf_puts(out, axis ? ", " : "");
        if (axis == a || axis == b) {
            buf_put(out, axis == a ? &letters[0] : &letters[1], 1);
            continue;
        }
        for (uint32_t k = 0; k < n; k++)
            if (axes[k] == axis)
                buf_printf(out, "%u", k);
    }
    buf_puts(out, "]");
}

static void convolution(const HloOp *op, Buf *out) {
    buf_puts(out, "dimension_numbers = #stablehlo.conv<");
    conv_layout(op, "bf", AK_INPUT_BATCH_DIMENSION, AK_INPUT_FEATURE_DIMENSION,
                AK_INPUT_SPATIAL_DIMENSIONS, out);
    buf_puts(out, "x");
    conv_layout(op, "io", AK_KERNEL_INPUT_FEATURE_DIMENSION, AK_KERNEL_OUTPUT_FEATURE_DIMENSION,
                AK_KERNEL_SPATIAL_DIMENSIONS, out);
    buf_puts(out, "->");
    conv_layout(op, "bf", AK_OUTPUT_BATCH_DIMENSION, AK_OUTPUT_FEATURE_DIMENSION,
                AK_OUTPUT_SPATIAL_DIMENSIONS, out);
    buf_puts(out, ">");
}

// Slots of a convolution's dimension numbers, all printed with the first of them.
static bool is_conv_dim(HloAttrKey key) {
    switch ((int)key) {
    case AK_INPUT_BATCH_DIMENSION:
    case AK_INPUT_FEATURE_DIMENSION:
    case AK_INPUT_SPATIAL_DIMENSIONS:
    case AK_KERNEL_INPUT_FEATURE_DIMENSION:
    case AK_KERNEL_OUTPUT_FEATURE_DIMENSION:
    case AK_KERNEL_SPATIAL_DIMENSIONS:
    case AK_OUTPUT_BATCH_DIMENSION:
    case AK_OUTPUT_FEATURE_DIMENSION:
    case AK_OUTPUT_SPATIAL_DIMENSIONS:
        return true;
    default:
        return false;
    }
}

// --- single values -------------------------------------------------------------------------------

static const char *enum_mnemonic(HloAttrKey key) {
    switch ((int)key) {
    case AK_COMPARE_TYPE:
        return "comparison_type";
    case AK_PRECISION_CONFIG:
        return "precision";
    case AK_TRANSPOSE_A:
        return "transpose";
    default:
        return hlo_attr_rows[key].name;
    }
}

static void enum_value(HloAttrKey key, const HloAttr *a, Buf *out) {
    const char *name = hlo_enum_name(key, a->i);
    buf_printf(out, "#stablehlo<%s %s>", enum_mnemonic(key), name ? name : "?");
}

static void accuracy(const HloAttr *a, Buf *out) {
    static const char *const modes[] = {"DEFAULT", "HIGHEST", "TOLERANCE"};
    const HloNamed *atol = hlo_named_find(a->dict, a->n, "atol");
    const HloNamed *rtol = hlo_named_find(a->dict, a->n, "rtol");
    const HloNamed *ulps = hlo_named_find(a->dict, a->n, "ulps");
    const HloNamed *mode = hlo_named_find(a->dict, a->n, "mode");
    buf_puts(out, "#stablehlo.result_accuracy<atol = ");
    print_float(out, DT_F64, atol ? atol->value.f : 0);
    buf_puts(out, ", rtol = ");
    print_float(out, DT_F64, rtol ? rtol->value.f : 0);
    buf_printf(out, ", ulps = %lld, mode = #stablehlo.result_accuracy_mode<%s>>",
               (long long)(ulps ? ulps->value.i : 0),
               modes[mode && mode->value.i >= 0 && mode->value.i < 3 ? mode->value.i : 0]);
}

static void operand_alias(const HloAttr *a, Buf *out) {
    static const char *const names[] = {"output_tuple_indices", "operand_index",
                                        "operand_tuple_indices"};
    buf_puts(out, "#stablehlo.output_operand_alias<");
    for (int i = 0; i < 3; i++) {
        const HloNamed *f = hlo_named_find(a->dict, a->n, names[i]);
        buf_printf(out, "%s%s = ", i ? ", " : "", names[i]);
        field(NULL, f ? &f->value : &(HloAttr){.kind = HA_INTS}, out);
    }
    buf_puts(out, ">");
}

// A layout inside a list: dense<[1, 0]> : tensor<2xindex>.
static void layout(const HloAttr *a, Buf *out) {
    buf_puts(out, "dense<");
    if (a->n) {
        buf_puts(out, "[");
        print_ints(out, a->ints, a->n);
        buf_puts(out, "]");
    }
    buf_printf(out, "> : tensor<%uxindex>", a->n);
}

static void list_items(const Hlo *h, HloAttrKey key, const HloAttr *a, Buf *out) {
    buf_puts(out, "[");
    for (uint32_t i = 0; i < a->n; i++) {
        const HloAttr *item = &a->list[i];
        buf_puts(out, i ? ", " : "");
        if (key == AK_PRECISION_CONFIG && item->kind == HA_ENUM)
            enum_value(key, item, out);
        else if (key == AK_OUTPUT_OPERAND_ALIASES && item->kind == HA_DICT)
            operand_alias(item, out);
        else if (item->kind == HA_LIST && key == AK_RESULT_TILINGS)
            list_items(h, key, item, out);
        else if (item->kind == HA_INTS)
            layout(item, out);
        else
            print_attr(h, item, out);
    }
    buf_puts(out, "]");
}

// Integers that are 32 bits wide in StableHLO; all others are 64.
static bool is_i32(HloAttrKey key) {
    return key == AK_INDEX || key == AK_EXPONENT_BITS || key == AK_MANTISSA_BITS ||
           key == AK_VERSION || key == AK_API_VERSION;
}

static void value(const Hlo *h, HloAttrKey key, const HloAttr *a, Buf *out) {
    if ((a->kind == HA_INT && key != AK_LIKE_VALUE) || key == AK_API_VERSION) {
        buf_printf(out, "%lld : %s", (long long)a->i, is_i32(key) ? "i32" : "i64");
    } else if (a->kind == HA_FLOAT && key == AK_EPSILON) {
        print_float(out, DT_F32, a->f);
        buf_puts(out, " : f32");
    } else if (a->kind == HA_ENUM) {
        enum_value(key, a, out);
    } else if (key == AK_RESULT_ACCURACY && a->kind == HA_DICT) {
        accuracy(a, out);
    } else if (a->kind == HA_LIST) {
        list_items(h, key, a, out);
    } else if (key == AK_OPERAND_SEGMENT_SIZES || key == AK_RESULT_SEGMENT_SIZES) {
        buf_puts(out, "array<i32");
        for (uint32_t i = 0; i < a->n; i++)
            buf_printf(out, "%s%lld", i ? ", " : ": ", (long long)a->ints[i]);
        buf_puts(out, ">");
    } else if (key == AK_WINDOW_REVERSAL && a->kind == HA_INTS) {
        buf_puts(out, a->n ? "array<i1: " : "array<i1");
        for (uint32_t i = 0; i < a->n; i++)
            buf_printf(out, "%s%s", i ? ", " : "", a->ints[i] ? "true" : "false");
        buf_puts(out, ">");
    } else {
        print_attr(h, a, out);
    }
}

// --- all of an op --------------------------------------------------------------------------------

// One slot, or the structure it belongs to; false when that was printed with an earlier slot.
static bool slot(const Hlo *h, const HloOp *op, int i, const char *before, uint32_t *done,
                 Buf *out) {
    const HloOpRow *row = hlo_row(op);
    HloAttrKey key = row->attrs[i];
    const HloStructRow *s = hlo_struct_by_key(row, key);
    bool conv = !s && is_conv_dim(key);
    uint32_t bit = s ? 1u << (s - hlo_struct_rows) : conv ? 1u << HLO_STRUCTS : 0;
    if (*done & bit)
        return false;
    *done |= bit;
    buf_puts(out, before);
    if (s) {
        structure(h, op, s, out);
    } else if (conv) {
        convolution(op, out);
    } else {
        buf_puts(out, hlo_attr_rows[key].name);
        if (!is_unit(key)) {
            buf_puts(out, " = ");
            value(h, key, &op->attrs[i], out);
        }
    }
    return true;
}

void print_slots(const Hlo *h, const HloOp *op, Buf *out) {
    const char *before = " <{";
    uint32_t done = 0;
    for (int i = 0; i < hlo_row(op)->nattrs; i++)
        if (is_shown(op, i) && slot(h, op, i, before, &done, out))
            before = ", ";
    if (*before == ',')
        buf_puts(out, "}>");
}
