// SPDX-License-Identifier: Apache-2.0
// slot.c — what the attributes say that a program leaves out.
//
// StableHLO's own form, as text or as bytecode, leaves out what has a default; slots are complete.
#include "read/read.h"

static HloAttr precisions(Arena *a) {
    HloAttr two[2] = {{.kind = HA_ENUM, .i = PREC_DEFAULT}, {.kind = HA_ENUM, .i = PREC_DEFAULT}};
    return (HloAttr){.kind = HA_LIST, .n = 2, .list = arena_dup(a, two, sizeof two)};
}

static HloAttr repeated(Arena *a, uint8_t kind, uint32_t n, uint32_t cols, int64_t v) {
    int64_t *ints = ARENA_NEWN(a, int64_t, n);
    for (uint32_t i = 0; i < n; i++)
        ints[i] = v;
    return (HloAttr){.kind = kind, .n = n, .cols = cols, .ints = ints};
}

HloAttr read_slot_default(Arena *a, const HloOp *op, HloAttrKey key) {
    uint32_t window;
    bool conv = op->code == HLO_CONVOLUTION || op->code == HLO_DYNAMIC_CONV;
    hlo_ints(op, conv ? AK_INPUT_SPATIAL_DIMENSIONS : AK_WINDOW_DIMENSIONS, &window);
    switch ((int)key) {
    case AK_WINDOW_STRIDES:
    case AK_LHS_DILATION:
    case AK_RHS_DILATION:
    case AK_BASE_DILATIONS:
    case AK_WINDOW_DILATIONS:
        return repeated(a, HA_INTS, window, 0, 1);
    case AK_WINDOW_REVERSAL:
        return repeated(a, HA_INTS, window, 0, 0);
    case AK_PADDING:
        return repeated(a, HA_INTS2, window * 2, 2, 0);
    case AK_KNOWN_EXPANDING_DIMENSIONS:
    case AK_KNOWN_NONEXPANDING_DIMENSIONS:
        return (HloAttr){.kind = HA_INTS};
    case AK_BROADCAST_DIMENSIONS:
        return hlo_row(op)->dialect == HD_CHLO ? (HloAttr){.kind = HA_INTS} : (HloAttr){0};
    case AK_IS_ASSOCIATIVE:
    case AK_IS_REVERSE:
        return (HloAttr){.kind = HA_BOOL};
    case AK_SOURCE_TARGET_PAIRS:
        return op->code == HLO_COLLECTIVE_PERMUTE ? (HloAttr){0}
                                                  : (HloAttr){.kind = HA_INTS2, .cols = 2};
    case AK_PRECISION_CONFIG:
        return precisions(a);
    case AK_COMPARE_TYPE:
        return (HloAttr){.kind = HA_ENUM, .i = CMPT_NOTYPE};
    case AK_API_VERSION:
        return (HloAttr){.kind = HA_ENUM, .i = 1};
    case AK_CHANNEL_ID:
        return op->code == HLO_SEND || op->code == HLO_RECV ? (HloAttr){0} : (HloAttr){.kind = HA_INT};
    case AK_VERSION:
        return (HloAttr){.kind = HA_INT};
    case AK_DIMENSION:
        return op->code == HLO_SORT ? (HloAttr){.kind = HA_INT, .i = -1} : (HloAttr){0};
    case AK_LOWER:
        return (HloAttr){.kind = op->code == HLO_CHOLESKY ? HA_BOOL : HA_NONE};
    case AK_LARGEST:
        return (HloAttr){.kind = HA_BOOL, .i = 1};
    case AK_USE_GLOBAL_DEVICE_IDS:
    case AK_HAS_DYNAMIC_ROOT:
    case AK_HAS_SIDE_EFFECT:
    case AK_INDICES_ARE_SORTED:
    case AK_UNIQUE_INDICES:
    case AK_IS_HOST_TRANSFER:
    case AK_IS_STABLE:
        return (HloAttr){.kind = HA_BOOL};
    case AK_BACKEND_CONFIG:
        if (hlo_int(op, AK_API_VERSION, 1) == 4)
            return (HloAttr){.kind = HA_DICT};
        return (HloAttr){.kind = HA_STR, .s = ""};
    case AK_INFEED_CONFIG:
    case AK_OUTFEED_CONFIG:
        return (HloAttr){.kind = HA_STR, .s = ""};
    case AK_COMPOSITE_ATTRIBUTES:
        return (HloAttr){.kind = HA_DICT};
    case AK_CALLED_COMPUTATIONS:
    case AK_OPERAND_LAYOUTS:
    case AK_RESULT_LAYOUTS:
    case AK_RESULT_TILINGS:
    case AK_OUTPUT_OPERAND_ALIASES:
    case AK_LAYOUT:
    case AK_INFEED:
        return (HloAttr){.kind = HA_LIST};
    default:
        return (HloAttr){0};
    }
}

void read_slot_defaults(Hlo *h, OpId id) {
    HloOp *op = hlo_at(h, id);
    const HloOpRow *row = hlo_row(op);
    for (int i = 0; i < row->nattrs; i++) {
        HloAttr *a = &op->attrs[i];
        bool empty = (a->kind == HA_INTS || a->kind == HA_INTS2) && !a->n;
        if (a->kind != HA_NONE && !empty)
            continue;
        HloAttr d = read_slot_default(h->arena, op, row->attrs[i]);
        if (a->kind == HA_NONE || d.kind != HA_NONE) // `stride = []` says as much as leaving it out
            *a = d;
    }
}
