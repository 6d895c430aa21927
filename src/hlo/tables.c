// SPDX-License-Identifier: Apache-2.0
// tables.c — ops.def and attrs.def as data, and lookup by name.
#include <string.h>

#include "hlo/hlo.h"

const char *const hlo_dialect_names[HD_COUNT] = {
    [HD_STABLEHLO] = "stablehlo", [HD_FUNC] = "func", [HD_BUILTIN] = "builtin",
    [HD_SDY] = "sdy",             [HD_CHLO] = "chlo", [HD_CHECK] = "check",
    [HD_INTERPRETER] = "interpreter", [HD_OTRN] = "otrn",
};

// The attribute list of a row may hold just AK_NONE, which is zero: it then counts as empty.
#define COUNT_ARGS(...) (sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define FIRST_ARG(first, ...) first
#define NATTRS(...) (FIRST_ARG(__VA_ARGS__, 0) == AK_NONE ? 0 : COUNT_ARGS(__VA_ARGS__))

enum { NONE, EXACT = OT_EXACT, SPLAT = OT_SPLAT, COMMUTES = OT_COMMUTES, PARTS = OT_PARTS, FLOATS = OT_FLOATS, FLAGS = OT_FLAGS, INTS = OT_INTS };
enum { EFFECT = OT_EFFECT, REWRITTEN = OT_REWRITTEN };

const HloOpRow hlo_op_rows[HLO_OPCODE_COUNT] = {
    [HLO_NONE] = {.name = "none"},
#define OP(e, dialect, name, operands, results, regions, cls, traits, ...)                         \
    [HLO_##e] = {name,    HD_##dialect, HC_##cls,            operands,     results,                \
                 regions, traits,       NATTRS(__VA_ARGS__), {__VA_ARGS__}},
#include "hlo/ops.def"
};

const HloAttrRow hlo_attr_rows[AK_COUNT] = {
    [AK_NONE] = {"", HA_NONE},
#define ATTR(e, name, kind) [AK_##e] = {name, HA_##kind},
#include "hlo/attrs.def"
#undef ATTR
};

// Lookup scans: readers remember the names they have met, so each is looked up once a program.
static bool name_is(const char *row, const char *s, size_t n) {
    return strlen(row) == n && !memcmp(row, s, n);
}

// Shardy's collectives say how a value goes from one sharding to another; it stays what it is.
static bool is_sdy_collective(const char *name, size_t n) {
    static const char *const names[] = {"all_gather",         "all_slice",      "all_reduce",
                                        "all_to_all",         "reduce_scatter", "collective_permute",
                                        "sharded_to_unreduced", "replicated_to_unreduced"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (name_is(names[i], name, n))
            return true;
    return false;
}

// XLA's own dialect: what has the name of an op of StableHLO or CHLO means the same, but for these. A copy only says where a
// value lies; asynchronous operations name a function where StableHLO has a region.
static HloOpcode mhlo_find(const char *name, size_t n) {
    static const struct {
        const char *name;
        HloOpcode code;
    } others[] = {{"copy", HLO_RESHAPE}, {"topk", HLO_CHLO_TOP_K}, {"async_start", HLO_NONE}, {"async_done", HLO_NONE}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (name_is(others[i].name, name, n))
            return others[i].code;
    HloOpcode code = hlo_op_find("stablehlo", 9, name, n);
    return code ? code : hlo_op_find("chlo", 4, name, n);
}

HloOpcode hlo_op_find(const char *dialect, size_t dn, const char *name, size_t n) {
    int d = 0;
    if (name_is("mhlo", dialect, dn))
        return mhlo_find(name, n);
    while (d < HD_COUNT && !name_is(hlo_dialect_names[d], dialect, dn))
        d++;
    if (d == HD_FUNC && name_is("return", name, n))
        return HLO_RETURN;
    if (d == HD_SDY && name_is("return", name, n))
        return HLO_RETURN;
    if (d == HD_SDY && is_sdy_collective(name, n))
        return HLO_SDY_RESHARD;
    if ((d == HD_CHLO || name_is("arith", dialect, dn)) && name_is("constant", name, n))
        return HLO_CONSTANT;
    for (int i = 1; i < HLO_OPCODE_COUNT; i++)
        if (hlo_op_rows[i].dialect == d && name_is(hlo_op_rows[i].name, name, n))
            return (HloOpcode)i;
    return HLO_NONE;
}

HloAttrKey hlo_attr_find(const char *name, size_t n) {
    for (int i = 1; i < AK_COUNT; i++)
        if (name_is(hlo_attr_rows[i].name, name, n))
            return (HloAttrKey)i;
    return AK_NONE;
}

// --- enum attributes -------------------------------------------------------------------------------

typedef struct EnumRow {
    uint8_t key;
    int8_t value;
    const char *name;
} EnumRow;

static const EnumRow enum_rows[] = {
    {AK_COMPARISON_DIRECTION, CMP_EQ, "EQ"},
    {AK_COMPARISON_DIRECTION, CMP_NE, "NE"},
    {AK_COMPARISON_DIRECTION, CMP_GE, "GE"},
    {AK_COMPARISON_DIRECTION, CMP_GT, "GT"},
    {AK_COMPARISON_DIRECTION, CMP_LE, "LE"},
    {AK_COMPARISON_DIRECTION, CMP_LT, "LT"},
    {AK_COMPARE_TYPE, CMPT_NOTYPE, "NOTYPE"},
    {AK_COMPARE_TYPE, CMPT_FLOAT, "FLOAT"},
    {AK_COMPARE_TYPE, CMPT_TOTALORDER, "TOTALORDER"},
    {AK_COMPARE_TYPE, CMPT_SIGNED, "SIGNED"},
    {AK_COMPARE_TYPE, CMPT_UNSIGNED, "UNSIGNED"},
    {AK_FFT_TYPE, FFT_FFT, "FFT"},
    {AK_FFT_TYPE, FFT_IFFT, "IFFT"},
    {AK_FFT_TYPE, FFT_RFFT, "RFFT"},
    {AK_FFT_TYPE, FFT_IRFFT, "IRFFT"},
    {AK_RNG_ALGORITHM, RNGALG_DEFAULT, "DEFAULT"},
    {AK_RNG_ALGORITHM, RNGALG_THREE_FRY, "THREE_FRY"},
    {AK_RNG_ALGORITHM, RNGALG_PHILOX, "PHILOX"},
    {AK_RNG_ALGORITHM, RNGALG_TWISTER, "MERSENNE_TWISTER"},
    {AK_RNG_DISTRIBUTION, RNGDIST_UNIFORM, "UNIFORM"},
    {AK_RNG_DISTRIBUTION, RNGDIST_NORMAL, "NORMAL"},
    {AK_PRECISION_CONFIG, PREC_DEFAULT, "DEFAULT"},
    {AK_PRECISION_CONFIG, PREC_HIGH, "HIGH"},
    {AK_PRECISION_CONFIG, PREC_HIGHEST, "HIGHEST"},
    {AK_TRANSPOSE_A, TRANSPOSE_INVALID, "TRANSPOSE_INVALID"},
    {AK_TRANSPOSE_A, TRANSPOSE_NO, "NO_TRANSPOSE"},
    {AK_TRANSPOSE_A, TRANSPOSE_YES, "TRANSPOSE"},
    {AK_TRANSPOSE_A, TRANSPOSE_ADJOINT, "ADJOINT"},
    {AK_API_VERSION, 0, "API_VERSION_UNSPECIFIED"},
    {AK_API_VERSION, 1, "API_VERSION_ORIGINAL"},
    {AK_API_VERSION, 2, "API_VERSION_STATUS_RETURNING"},
    {AK_API_VERSION, 3, "API_VERSION_STATUS_RETURNING_UNIFIED"},
    {AK_API_VERSION, 4, "API_VERSION_TYPED_FFI"},
};
#define ENUM_ROWS (sizeof enum_rows / sizeof *enum_rows)

const char *hlo_enum_name(HloAttrKey key, int64_t v) {
    for (size_t i = 0; i < ENUM_ROWS; i++)
        if (enum_rows[i].key == key && enum_rows[i].value == v)
            return enum_rows[i].name;
    return NULL;
}

int64_t hlo_enum_parse(HloAttrKey key, const char *s, size_t n) {
    for (size_t i = 0; i < ENUM_ROWS; i++)
        if (enum_rows[i].key == key && name_is(enum_rows[i].name, s, n))
            return enum_rows[i].value;
    return -1;
}
