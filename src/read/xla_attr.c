// SPDX-License-Identifier: Apache-2.0
// xla_attr.c — shapes, constants, places and attributes of HLO instructions.
//
// Most attributes are numbers at a field of the instruction, or of a message in it, under another name: one row each.
#include "read/xla.h"

#include <string.h>

#include "coll/groups.h"
#include "read/read.h"
#include "read/text.h"

// --- types -------------------------------------------------------------------------------------------

enum { SHAPE_TYPE = 2, SHAPE_DIMS = 3, SHAPE_MEMBERS = 4, SHAPE_LAYOUT = 5, SHAPE_DYNAMIC = 6, TYPE_TUPLE = 13, TYPE_TOKEN = 17 };

static const XlaKind kinds[] = {
    {1, 2, DT_I1, "pred"}, {2, 15, DT_I8, "s8"}, {3, 17, DT_I16, "s16"}, {4, 4, DT_I32, "s32"},
    {5, 5, DT_I64, "s64"}, {6, 3, DT_UI8, "u8"}, {7, 16, DT_UI16, "u16"}, {8, 6, DT_UI32, "u32"},
    {9, 7, DT_UI64, "u64"}, {10, 11, DT_F16, "f16"}, {11, 8, DT_F32, "f32"}, {12, 9, DT_F64, "f64"},
    {16, 13, DT_BF16, "bf16"}, {15, 12, DT_C64, "c64"}, {18, 18, DT_C128, "c128"}, {19, 19, DT_F8E5M2, "f8e5m2"},
    {20, 20, DT_F8E4M3FN, "f8e4m3fn"}, {23, 23, DT_F8E4M3B11FNUZ, "f8e4m3b11fnuz"}, {24, 24, DT_F8E5M2FNUZ, "f8e5m2fnuz"}, {25, 25, DT_F8E4M3FNUZ, "f8e4m3fnuz"},
    {26, 26, DT_I2, "s2"}, {21, 21, DT_I4, "s4"}, {27, 27, DT_UI2, "u2"}, {22, 22, DT_UI4, "u4"},
    {32, 32, DT_F4E2M1FN, "f4e2m1fn"}, {36, 36, DT_F6E2M3FN, "f6e2m3fn"}, {35, 35, DT_F6E3M2FN, "f6e3m2fn"}, {28, 28, DT_F8E4M3, "f8e4m3"}, {29, 29, DT_F8E3M4, "f8e3m4"}, {33, 33, DT_F8E8M0FNU, "f8e8m0fnu"},
};

const XlaKind *xla_kind(const char *text, int dtype) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text ? !strcmp(kinds[i].text, text) : kinds[i].dtype == dtype)
            return &kinds[i];
    return NULL;
}

bool xla_kind_varint(int dtype) {
    return dtype == DT_I1 || dtype == DT_I32 || dtype == DT_I64 || dtype == DT_UI32 || dtype == DT_UI64;
}

// A module of TensorFlow's jit_compile has its function's name before a bracket. TensorFlow turns its own marks of a node and a function into the
// user's file and line.
static void size_fail(Xla *x) {
    const char *name = x->loc ? hlo_loc_name(x->h, x->loc) : "", *end = strchr(x->h->name, '[');
    Buf marks = {.arena = x->arena};
    if (end && *name)
        buf_printf(&marks, "\n\t [[{{node %s}}]]{{function_node %.*s}}", name, (int)(end - x->h->name), x->h->name);
    ctx_hint(x->ctx, "a program has one size: keep all elements and mask them (tf.where(mask, x, 0) in place of boolean_mask), or leave this out of what "
                     "is compiled (jit_compile=True)%s",
             buf_cstr(&marks));
    xla_fail(x, OTRN_UNSUPPORTED, "%s%sa dimension of the HLO module has a size known only at run time", name, *name ? ": " : "");
}

static TypeId array_type(Xla *x, Pb shape, int64_t number) {
    int dtype = DT_INVALID;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].number == number)
            dtype = kinds[i].dtype;
    if (dtype == DT_INVALID)
        xla_fail(x, OTRN_UNSUPPORTED, "the element type %lld of HLO is not known to opentrn", (long long)number);
    uint32_t rank, ndynamic;
    const int64_t *dims = pb_ints(x, shape, SHAPE_DIMS, &rank), *dynamic = pb_ints(x, shape, SHAPE_DYNAMIC, &ndynamic);
    int64_t elems = 1;
    if (rank > OTRN_MAX_RANK)
        xla_fail(x, OTRN_CAPACITY, "an array of the HLO module has %u dimensions, more than %d", rank, OTRN_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(elems, dims[i] ? dims[i] : 1, &elems))
            xla_fail(x, OTRN_PARSE, "a dimension of the HLO module is out of range");
    for (uint32_t i = 0; i < ndynamic; i++)
        if (dynamic[i])
            size_fail(x);
    return hlo_type_tensor(x->h, dtype, (int)rank, dims);
}

void xla_shape(Xla *x, Pb shape, XlaTypes *types) {
    int64_t number = pb_int(x, shape, SHAPE_TYPE);
    if (number == TYPE_TUPLE) {
        if (++x->depth > XLA_MAX_DEPTH)
            xla_fail(x, OTRN_CAPACITY, "a shape of the HLO module lies too deep");
        for (PbField f; pb_next(x, &shape, &f);)
            if (f.number == SHAPE_MEMBERS)
                xla_shape(x, f.bytes, types);
        x->depth--;
    } else if (number == TYPE_TOKEN) {
        TypeId token = hlo_type_intern(x->h, &(HloType){.kind = HT_TOKEN, .dtype = DT_TOKEN});
        VEC_PUSH(x->arena, types, token);
    } else {
        TypeId array = array_type(x, shape, number);
        VEC_PUSH(x->arena, types, array);
    }
}

uint32_t xla_leaves(Xla *x, Pb shape) {
    XlaTypes types = {0};
    xla_shape(x, shape, &types);
    return types.n;
}

// --- constants ---------------------------------------------------------------------------------------

static void in_rows(Xla *x, Pb shape) {
    uint32_t n;
    const int64_t *order = pb_ints(x, pb_bytes(x, shape, SHAPE_LAYOUT), 1, &n);
    for (uint32_t i = 0; i < n; i++)
        if (order[i] != (int64_t)n - 1 - i)
            xla_fail(x, OTRN_UNSUPPORTED, "a constant of the HLO module does not lie row by row");
}

// Elements that are numbers of varying length on the wire.
static void take_varints(Xla *x, Pb literal, uint32_t field, size_t each, Buf *out) {
    uint32_t n;
    const int64_t *v = pb_ints(x, literal, field, &n);
    for (uint32_t i = 0; i < n; i++)
        buf_put(out, &v[i], each); // the lowest bytes first
}

static void take_bytes(Xla *x, Pb literal, uint32_t field, Buf *out) {
    for (PbField f; pb_next(x, &literal, &f);) {
        if (f.number != field)
            continue;
        if (f.wire == 2)
            buf_put(out, f.bytes.at, f.bytes.n);
        else
            buf_put(out, &f.value, f.wire == 1 ? 8 : 4);
    }
}

// A byte holds one element; of one with fewer bits the lowest count.
static void narrow(const DtypeRow *row, Buf *out) {
    unsigned left = row->bytes == 1 && row->bits < 8 && row->cls != DC_BOOL ? 8u - row->bits : 0;
    for (size_t k = 0; left && k < out->n; k++)
        out->at[k] = row->cls == DC_SINT ? (uint8_t)((int8_t)(out->at[k] << left) >> left) : (uint8_t)(out->at[k] << left) >> left;
}

HloAttr xla_literal(Xla *x, Pb literal, TypeId type) {
    const HloType *t = hlo_type(x->h, type);
    size_t each = dtype_row(t->dtype)->bytes, want = hlo_type_bytes(t);
    const XlaKind *kind = xla_kind(NULL, t->dtype);
    if (t->kind != HT_TENSOR || !kind)
        xla_fail(x, OTRN_UNSUPPORTED, "a constant of the HLO module that is no array");
    in_rows(x, pb_bytes(x, literal, 1));
    Buf out = {.arena = x->arena};
    if (xla_kind_varint(t->dtype))
        take_varints(x, literal, kind->field, each, &out);
    else
        take_bytes(x, literal, kind->field, &out);
    bool one = out.n == each && t->elems > 1 && !pb_bytes(x, literal, 1).n; // text: one number for all
    if (out.n != want && !one)
        xla_fail(x, OTRN_PARSE, "a constant of the HLO module has %zu bytes instead of %zu", out.n, want);
    for (size_t k = 0; t->dtype == DT_I1 && k < out.n; k++)
        out.at[k] = out.at[k] != 0;
    narrow(dtype_row(t->dtype), &out);
    bool splat = out.n > each && !memcmp(out.at, out.at + each, out.n - each);
    if (out.n > UINT32_MAX)
        xla_fail(x, OTRN_CAPACITY, "a constant of the HLO module has more than 4 GB");
    return (HloAttr){.kind = HA_TENSOR, .type = type, .n = (uint32_t)(splat ? each : out.n), .data = out.n ? (const void *)out.at : ""};
}

// --- places ------------------------------------------------------------------------------------------

static LocId file_loc(Xla *x, Pb file, int64_t line, int64_t col) {
    HloLoc l = {.kind = HL_FILE, .str = hlo_str(x->h, (const char *)file.at, file.n)};
    l.line = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
    l.col = col > 0 && col < UINT32_MAX ? (uint32_t)col : 0;
    return hlo_loc(x->h, &l);
}

// The innermost frame of a stack: numbers of frames, places and files begin at 1.
static LocId frame_loc(Xla *x, int64_t frame) {
    if (frame < 1 || frame > x->nstack)
        return 0;
    int64_t at = pb_int(x, x->stack[frame - 1], 1);
    if (at < 1 || at > x->nplaces)
        return 0;
    int64_t file = pb_int(x, x->places[at - 1], 1);
    if (file < 1 || file > x->nfiles)
        return 0;
    return file_loc(x, x->files[file - 1], pb_int(x, x->places[at - 1], 3), pb_int(x, x->places[at - 1], 4));
}

// TensorFlow's device gives all operators the same place, which is nobody's line.
static bool is_nowhere(Pb file) {
    static const char *const ends[] = {"/tensorflow/python/framework/ops.py", "dummy_file_name"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (file.n >= strlen(ends[i]) && !memcmp(file.at + file.n - strlen(ends[i]), ends[i], strlen(ends[i])))
            return true;
    return false;
}

LocId xla_loc(Xla *x, Pb m) {
    Pb meta = pb_bytes(x, m, 7), file = pb_bytes(x, meta, 3), name = pb_bytes(x, meta, 2);
    if (is_nowhere(file))
        file.n = 0;
    LocId loc = file.n ? file_loc(x, file, pb_int(x, meta, 4), pb_int(x, meta, 18)) : frame_loc(x, pb_int(x, meta, 15));
    if (!name.n)
        name = pb_bytes(x, m, 1);
    if (!name.n)
        return loc;
    HloLoc l = {.kind = HL_NAME, .str = hlo_str(x->h, (const char *)name.at, name.n), .a = loc};
    return hlo_loc(x->h, &l);
}

// --- attributes --------------------------------------------------------------------------------------

static const XlaRow rows[] = {
    {HLO_BROADCAST_IN_DIM, 14, 0, XLA_ALL, AK_BROADCAST_DIMENSIONS, "dimensions"},
    {HLO_TRANSPOSE, 14, 0, XLA_ALL, AK_PERMUTATION, "dimensions"},
    {HLO_REVERSE, 14, 0, XLA_ALL, AK_DIMENSIONS, "dimensions"},
    {HLO_REDUCE, 14, 0, XLA_ALL, AK_DIMENSIONS, "dimensions"},
    {HLO_MAP, 14, 0, XLA_ALL, AK_DIMENSIONS, "dimensions"},
    {HLO_CONCATENATE, 14, 0, XLA_FIRST, AK_DIMENSION, "dimensions"},
    {HLO_SORT, 14, 0, XLA_FIRST, AK_DIMENSION, "dimensions"},
    {HLO_SORT, 60, 0, XLA_FLAG, AK_IS_STABLE, "is_stable"},
    {HLO_IOTA, 14, 0, XLA_FIRST, AK_IOTA_DIMENSION, "iota_dimension"},
    {HLO_GET_DIMENSION_SIZE, 14, 0, XLA_FIRST, AK_DIMENSION, "dimensions"},
    {HLO_SET_DIMENSION_SIZE, 14, 0, XLA_FIRST, AK_DIMENSION, "dimensions"},
    {HLO_DYNAMIC_SLICE, 20, 0, XLA_ALL, AK_SLICE_SIZES, "dynamic_slice_sizes"},
    {HLO_GATHER, 33, 1, XLA_ALL, AK_OFFSET_DIMS, "offset_dims"},
    {HLO_GATHER, 33, 2, XLA_ALL, AK_COLLAPSED_SLICE_DIMS, "collapsed_slice_dims"},
    {HLO_GATHER, 33, 3, XLA_ALL, AK_START_INDEX_MAP, "start_index_map"},
    {HLO_GATHER, 33, 4, XLA_ONE, AK_INDEX_VECTOR_DIM, "index_vector_dim"},
    {HLO_GATHER, 33, 5, XLA_ALL, AK_OPERAND_BATCHING_DIMS, "operand_batching_dims"},
    {HLO_GATHER, 33, 6, XLA_ALL, AK_START_INDICES_BATCHING_DIMS, "start_indices_batching_dims"},
    {HLO_GATHER, 34, 0, XLA_ALL, AK_SLICE_SIZES, "slice_sizes"},
    {HLO_GATHER, 67, 0, XLA_FLAG, AK_INDICES_ARE_SORTED, "indices_are_sorted"},
    {HLO_SCATTER, 48, 1, XLA_ALL, AK_UPDATE_WINDOW_DIMS, "update_window_dims"},
    {HLO_SCATTER, 48, 2, XLA_ALL, AK_INSERTED_WINDOW_DIMS, "inserted_window_dims"},
    {HLO_SCATTER, 48, 3, XLA_ALL, AK_SCATTER_DIMS_TO_OPERAND_DIMS, "scatter_dims_to_operand_dims"},
    {HLO_SCATTER, 48, 4, XLA_ONE, AK_INDEX_VECTOR_DIM, "index_vector_dim"},
    {HLO_SCATTER, 48, 5, XLA_ALL, AK_INPUT_BATCHING_DIMS, "input_batching_dims"},
    {HLO_SCATTER, 48, 6, XLA_ALL, AK_SCATTER_INDICES_BATCHING_DIMS, "scatter_indices_batching_dims"},
    {HLO_SCATTER, 67, 0, XLA_FLAG, AK_INDICES_ARE_SORTED, "indices_are_sorted"},
    {HLO_SCATTER, 69, 0, XLA_FLAG, AK_UNIQUE_INDICES, "unique_indices"},
    {HLO_DOT_GENERAL, 30, 1, XLA_ALL, AK_LHS_CONTRACTING_DIMENSIONS, "lhs_contracting_dims"},
    {HLO_DOT_GENERAL, 30, 2, XLA_ALL, AK_RHS_CONTRACTING_DIMENSIONS, "rhs_contracting_dims"},
    {HLO_DOT_GENERAL, 30, 3, XLA_ALL, AK_LHS_BATCHING_DIMENSIONS, "lhs_batch_dims"},
    {HLO_DOT_GENERAL, 30, 4, XLA_ALL, AK_RHS_BATCHING_DIMENSIONS, "rhs_batch_dims"},
    {HLO_CONVOLUTION, 16, 7, XLA_ONE, AK_INPUT_BATCH_DIMENSION, NULL},
    {HLO_CONVOLUTION, 16, 8, XLA_ONE, AK_INPUT_FEATURE_DIMENSION, NULL},
    {HLO_CONVOLUTION, 16, 11, XLA_ALL, AK_INPUT_SPATIAL_DIMENSIONS, NULL},
    {HLO_CONVOLUTION, 16, 3, XLA_ONE, AK_KERNEL_INPUT_FEATURE_DIMENSION, NULL},
    {HLO_CONVOLUTION, 16, 4, XLA_ONE, AK_KERNEL_OUTPUT_FEATURE_DIMENSION, NULL},
    {HLO_CONVOLUTION, 16, 6, XLA_ALL, AK_KERNEL_SPATIAL_DIMENSIONS, NULL},
    {HLO_CONVOLUTION, 16, 9, XLA_ONE, AK_OUTPUT_BATCH_DIMENSION, NULL},
    {HLO_CONVOLUTION, 16, 10, XLA_ONE, AK_OUTPUT_FEATURE_DIMENSION, NULL},
    {HLO_CONVOLUTION, 16, 12, XLA_ALL, AK_OUTPUT_SPATIAL_DIMENSIONS, NULL},
    {HLO_FFT, 31, 0, XLA_ENUM, AK_FFT_TYPE, "fft_type"},
    {HLO_FFT, 32, 0, XLA_ALL, AK_FFT_LENGTH, "fft_length"},
    {HLO_CHOLESKY, 62, 1, XLA_FLAG, AK_LOWER, "lower"},
    {HLO_TRIANGULAR_SOLVE, 59, 1, XLA_FLAG, AK_LEFT_SIDE, "left_side"},
    {HLO_TRIANGULAR_SOLVE, 59, 2, XLA_FLAG, AK_LOWER, "lower"},
    {HLO_TRIANGULAR_SOLVE, 59, 3, XLA_FLAG, AK_UNIT_DIAGONAL, "unit_diagonal"},
    {HLO_TRIANGULAR_SOLVE, 59, 4, XLA_ENUM, AK_TRANSPOSE_A, "transpose_a"},
    {HLO_RNG, 23, 0, XLA_ENUM, AK_RNG_DISTRIBUTION, "distribution"},
    {HLO_RNG_BIT_GENERATOR, 70, 0, XLA_ENUM, AK_RNG_ALGORITHM, "algorithm"},
    {HLO_REDUCE_PRECISION, 18, 0, XLA_ONE, AK_EXPONENT_BITS, "exponent_bits"},
    {HLO_REDUCE_PRECISION, 19, 0, XLA_ONE, AK_MANTISSA_BITS, "mantissa_bits"},
    {HLO_BATCH_NORM_TRAINING, 25, 0, XLA_ONE, AK_FEATURE_INDEX, "feature_index"},
    {HLO_BATCH_NORM_INFERENCE, 25, 0, XLA_ONE, AK_FEATURE_INDEX, "feature_index"},
    {HLO_BATCH_NORM_GRAD, 25, 0, XLA_ONE, AK_FEATURE_INDEX, "feature_index"},
    {HLO_CUSTOM_CALL, 65, 0, XLA_FLAG, AK_HAS_SIDE_EFFECT, "custom_call_has_side_effect"},
    {HLO_ALL_GATHER, 14, 0, XLA_FIRST, AK_ALL_GATHER_DIM, "dimensions"},
    {HLO_REDUCE_SCATTER, 14, 0, XLA_FIRST, AK_SCATTER_DIMENSION, "dimensions"},
    {HLO_ALL_TO_ALL, 14, 0, XLA_FIRST, AK_SPLIT_DIMENSION, "dimensions"},
    {HLO_ALL_TO_ALL, 14, 0, XLA_FIRST, AK_CONCAT_DIMENSION, "dimensions"},
    {HLO_ALL_GATHER, 71, 0, XLA_FLAG, AK_USE_GLOBAL_DEVICE_IDS, "use_global_device_ids"},
    {HLO_ALL_REDUCE, 71, 0, XLA_FLAG, AK_USE_GLOBAL_DEVICE_IDS, "use_global_device_ids"},
    {HLO_REDUCE_SCATTER, 71, 0, XLA_FLAG, AK_USE_GLOBAL_DEVICE_IDS, "use_global_device_ids"},
    {HLO_CHLO_TOP_K, 81, 0, XLA_ONE, AK_K, "k"},
    {HLO_CHLO_TOP_K, 85, 0, XLA_FLAG, AK_LARGEST, "largest"},
};

const XlaRow *xla_row(int code, const char *text) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code && rows[i].text && !strcmp(rows[i].text, text))
            return &rows[i];
    return NULL;
}

static void set(Xla *x, OpId id, HloAttrKey key, HloAttr value) { *hlo_attr_slot(x->h, id, key) = value; }

static void set_row(Xla *x, OpId id, Pb m, size_t row) {
    static const uint8_t plain[] = {[XLA_ONE] = HA_INT, [XLA_FLAG] = HA_BOOL, [XLA_ENUM] = HA_ENUM};
    HloAttrKey key = (HloAttrKey)rows[row].key;
    uint32_t field = rows[row].field, n;
    if (rows[row].inside)
        m = pb_bytes(x, m, field), field = rows[row].inside;
    if (rows[row].how == XLA_ALL || rows[row].how == XLA_FIRST) {
        const int64_t *v = pb_ints(x, m, field, &n);
        if (rows[row].how == XLA_ALL)
            hlo_set_ints(x->h, id, key, v, n);
        else
            set(x, id, key, (HloAttr){.kind = HA_INT, .i = n ? v[0] : 0});
        return;
    }
    int64_t v = pb_int(x, m, field);
    if (rows[row].how == XLA_ENUM && !hlo_enum_name(key, v))
        xla_fail(x, OTRN_PARSE, "%lld is no value of %s", (long long)v, hlo_attr_rows[key].name);
    set(x, id, key, (HloAttr){.kind = plain[rows[row].how], .i = rows[row].how == XLA_FLAG ? v != 0 : v});
}

// The numbers at a field of each message in a list; absent ones are `absent`.
static int64_t *column(Xla *x, const Pb *list, uint32_t n, uint32_t field, int64_t absent) {
    int64_t *out = ARENA_NEWN(x->arena, int64_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        int64_t v = pb_int(x, list[i], field);
        out[i] = v ? v : absent;
    }
    return out;
}

static void set_pairs(Xla *x, OpId id, HloAttrKey key, const int64_t *low, const int64_t *high, uint32_t n) {
    int64_t *both = ARENA_NEWN(x->arena, int64_t, 2 * (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        both[2 * i] = low[i], both[2 * i + 1] = high[i];
    set(x, id, key, (HloAttr){.kind = HA_INTS2, .n = 2 * n, .cols = 2, .ints = both});
}

static void window(Xla *x, OpId id, Pb m, int code) {
    uint32_t n;
    const Pb *dims = pb_list(x, pb_bytes(x, m, 15), 1, &n);
    hlo_set_ints(x->h, id, AK_WINDOW_STRIDES, column(x, dims, n, 2, 1), n);
    set_pairs(x, id, AK_PADDING, column(x, dims, n, 3, 0), column(x, dims, n, 4, 0), n);
    if (code != HLO_CONVOLUTION)
        hlo_set_ints(x->h, id, AK_WINDOW_DIMENSIONS, column(x, dims, n, 1, 0), n);
    if (code == HLO_REDUCE_WINDOW) {
        hlo_set_ints(x->h, id, AK_WINDOW_DILATIONS, column(x, dims, n, 5, 1), n);
        hlo_set_ints(x->h, id, AK_BASE_DILATIONS, column(x, dims, n, 6, 1), n);
    } else if (code == HLO_CONVOLUTION) {
        hlo_set_ints(x->h, id, AK_RHS_DILATION, column(x, dims, n, 5, 1), n);
        hlo_set_ints(x->h, id, AK_LHS_DILATION, column(x, dims, n, 6, 1), n);
        hlo_set_ints(x->h, id, AK_WINDOW_REVERSAL, column(x, dims, n, 7, 0), n);
        int64_t features = pb_int(x, m, 50), batches = pb_int(x, m, 58);
        set(x, id, AK_FEATURE_GROUP_COUNT, (HloAttr){.kind = HA_INT, .i = features ? features : 1});
        set(x, id, AK_BATCH_GROUP_COUNT, (HloAttr){.kind = HA_INT, .i = batches ? batches : 1});
    }
}

static void precision(Xla *x, OpId id, Pb m) {
    Pb config = pb_bytes(x, m, 51);
    uint32_t n;
    const int64_t *v = pb_ints(x, config, 1, &n);
    if (pb_int(x, config, 2))
        xla_fail(x, OTRN_UNSUPPORTED, "a dot of the HLO module asks for an algorithm");
    HloAttr *two = ARENA_NEWN(x->arena, HloAttr, 2);
    for (uint32_t i = 0; i < 2; i++) {
        two[i] = (HloAttr){.kind = HA_ENUM, .i = i < n ? v[i] : PREC_DEFAULT};
        if (!hlo_enum_name(AK_PRECISION_CONFIG, two[i].i))
            xla_fail(x, OTRN_PARSE, "a precision of the HLO module is not known");
    }
    set(x, id, AK_PRECISION_CONFIG, (HloAttr){.kind = HA_LIST, .n = 2, .list = two});
}

static void name_enum(Xla *x, OpId id, HloAttrKey key, const char *word) {
    int64_t v = hlo_enum_parse(key, word, strlen(word));
    if (*word && v < 0)
        xla_fail(x, OTRN_PARSE, "'%.40s' is no value of %s", word, hlo_attr_rows[key].name);
    if (*word)
        set(x, id, key, (HloAttr){.kind = HA_ENUM, .i = v});
}

const int64_t *xla_iota(Arena *a, const int64_t *dims, uint32_t n, const int64_t *perm, uint32_t nperm, int64_t want) {
    int64_t total = 1, stride[OTRN_MAX_RANK];
    if (!n || n > OTRN_MAX_RANK || (nperm && nperm != n))
        return NULL;
    for (uint32_t i = n; i-- > 0;) {
        if (dims[i] < 1 || dims[i] > PROGRAM_DEVICES_MAX)
            return NULL;
        stride[i] = total;
        total *= dims[i];
        if (total > PROGRAM_DEVICES_MAX)
            return NULL;
    }
    uint32_t seen = 0;
    for (uint32_t i = 0; i < nperm; i++)
        seen |= perm[i] >= 0 && perm[i] < n ? 1u << perm[i] : 0;
    if (total != want || (nperm && seen != (1u << n) - 1))
        return NULL;
    int64_t *ids = ARENA_NEWN(a, int64_t, total);
    for (int64_t k = 0; k < total; k++) { // the last of the transposed dimensions runs first
        int64_t left = k;
        for (uint32_t i = n; i-- > 0;) {
            int64_t d = nperm ? perm[i] : i;
            ids[k] += left % dims[d] * stride[d];
            left /= dims[d];
        }
    }
    return ids;
}

// IotaReplicaGroupListProto: 1 groups, 2 devices in each, 3 dimensions the numbers are reshaped to, 4 how those are transposed.
static void iota_groups(Xla *x, OpId id, Pb m) {
    uint32_t n, nperm;
    int64_t count = pb_int(x, m, 1), each = pb_int(x, m, 2), total = -1;
    const int64_t *dims = pb_ints(x, m, 3, &n), *perm = pb_ints(x, m, 4, &nperm);
    if (count < 1 || each < 1 || __builtin_mul_overflow(count, each, &total))
        total = -1;
    const int64_t *ids = xla_iota(x->arena, dims, n, perm, nperm, total);
    if (!ids)
        xla_fail(x, OTRN_PARSE, "groups of devices do not go together");
    set(x, id, AK_REPLICA_GROUPS, (HloAttr){.kind = HA_INTS2, .n = (uint32_t)total, .cols = (uint32_t)each, .ints = ids});
}

// A row for each group, all of one length; short ones are filled up with -1.
static void groups(Xla *x, OpId id, Pb m) {
    Pb list = pb_bytes(x, m, 87);
    if (pb_bytes(x, list, 2).n) {
        iota_groups(x, id, pb_bytes(x, list, 2));
        return;
    }
    uint32_t n, most = 0;
    const Pb *rows_ = pb_list(x, list, 1, &n);
    if (!n)
        rows_ = pb_list(x, m, 49, &n);
    for (uint32_t i = 0, k; i < n; i++, most = k > most ? k : most)
        pb_ints(x, rows_[i], 1, &k);
    int64_t *all = arena_array(x->arena, (size_t)n * most + 1, sizeof *all);
    for (uint32_t i = 0, k; i < n; i++) {
        const int64_t *v = pb_ints(x, rows_[i], 1, &k);
        for (uint32_t j = 0; j < most; j++)
            all[i * most + j] = j < k ? v[j] : -1;
    }
    set(x, id, AK_REPLICA_GROUPS, (HloAttr){.kind = HA_INTS2, .n = n * most, .cols = most, .ints = all});
}

static void collective(Xla *x, OpId id, Pb m, int code) {
    set(x, id, AK_CHANNEL_ID, (HloAttr){.kind = HA_INT, .i = pb_int(x, m, 26)});
    uint32_t n;
    if (code == HLO_COLLECTIVE_PERMUTE) {
        const Pb *pairs = pb_list(x, m, 52, &n);
        set_pairs(x, id, AK_SOURCE_TARGET_PAIRS, column(x, pairs, n, 1, 0), column(x, pairs, n, 2, 0), n);
        return;
    }
    groups(x, id, m);
    const HloAttr *g = hlo_attr(hlo_at(x->h, id), AK_REPLICA_GROUPS);
    if (code == HLO_ALL_TO_ALL)
        set(x, id, AK_SPLIT_COUNT, (HloAttr){.kind = HA_INT, .i = g && g->cols ? g->cols : 1});
}

static void slice(Xla *x, OpId id, Pb m) {
    uint32_t n;
    const Pb *dims = pb_list(x, m, 17, &n);
    hlo_set_ints(x->h, id, AK_START_INDICES, column(x, dims, n, 1, 0), n);
    hlo_set_ints(x->h, id, AK_LIMIT_INDICES, column(x, dims, n, 2, 0), n);
    hlo_set_ints(x->h, id, AK_STRIDES, column(x, dims, n, 3, 1), n);
}

static void pad(Xla *x, OpId id, Pb m) {
    uint32_t n;
    const Pb *dims = pb_list(x, pb_bytes(x, m, 21), 1, &n);
    hlo_set_ints(x->h, id, AK_EDGE_PADDING_LOW, column(x, dims, n, 1, 0), n);
    hlo_set_ints(x->h, id, AK_EDGE_PADDING_HIGH, column(x, dims, n, 2, 0), n);
    hlo_set_ints(x->h, id, AK_INTERIOR_PADDING, column(x, dims, n, 3, 0), n);
}

static void custom_call(Xla *x, OpId id, Pb m) {
    Pb config = pb_bytes(x, m, 43);
    int64_t version = pb_int(x, m, 77);
    set(x, id, AK_CALL_TARGET_NAME, (HloAttr){.kind = HA_STR, .s = pb_text(x, m, 28)});
    hlo_attr_slot(x->h, id, AK_CALL_TARGET_NAME)->n = (uint32_t)strlen(pb_text(x, m, 28));
    version = version > 0 && hlo_enum_name(AK_API_VERSION, version) ? version : 1;
    if (config.n && version == 4)
        version = 1; // its dictionary stays text
    set(x, id, AK_API_VERSION, (HloAttr){.kind = HA_ENUM, .i = version});
    if (config.n)
        set(x, id, AK_BACKEND_CONFIG, (HloAttr){.kind = HA_STR, .n = (uint32_t)config.n, .s = arena_strndup(x->arena, (const char *)config.at, config.n)});
}

void xla_attrs(Xla *x, OpId id, Pb m) {
    int code = hlo_at(x->h, id)->code;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code)
            set_row(x, id, m, i);
    if (code == HLO_CONVOLUTION || code == HLO_REDUCE_WINDOW || code == HLO_SELECT_AND_SCATTER)
        window(x, id, m, code);
    if (code == HLO_CONVOLUTION || code == HLO_DOT_GENERAL)
        precision(x, id, m);
    if (code == HLO_SLICE)
        slice(x, id, m);
    if (code == HLO_PAD)
        pad(x, id, m);
    if (code == HLO_COMPARE) {
        name_enum(x, id, AK_COMPARISON_DIRECTION, pb_text(x, m, 63));
        name_enum(x, id, AK_COMPARE_TYPE, pb_text(x, m, 72));
        HloAttr *type = hlo_attr_slot(x->h, id, AK_COMPARE_TYPE);
        const HloOp *op = hlo_at(x->h, id);
        bool total = type->kind == HA_ENUM && type->i == CMPT_TOTALORDER && op->noperands;
        if (total && !dtype_is_float(hlo_value_type(x->h, hlo_operand(x->h, op, 0))->dtype))
            *type = (HloAttr){0}; // integers have one order only
    }
    if (code == HLO_CUSTOM_CALL)
        custom_call(x, id, m);
    if (code == HLO_BATCH_NORM_TRAINING || code == HLO_BATCH_NORM_INFERENCE || code == HLO_BATCH_NORM_GRAD) {
        uint32_t bits = (uint32_t)pb_int(x, m, 24);
        float epsilon;
        memcpy(&epsilon, &bits, sizeof epsilon);
        set(x, id, AK_EPSILON, (HloAttr){.kind = HA_FLOAT, .f = epsilon});
    }
    if (hlo_row(hlo_at(x->h, id))->cls == HC_COLL)
        collective(x, id, m, code);
    read_slot_defaults(x->h, id);
}

// --- the other way -----------------------------------------------------------------------------------

// XLA, which is shown the program, has its own operations for what CHLO only spells, and calls them so.
void read_xla_calls(Hlo *h) {
    static const HloNamed marks[] = {{"mhlo.attributes", {.kind = HA_DICT}}};
    for (OpId id = 1; id < h->ops.n; id++) {
        HloOp *op = hlo_at(h, id);
        const HloOpRow *row = hlo_row(op);
        if (!op->code || row->dialect != HD_CHLO || row->cls != HC_EW1)
            continue;
        Buf target = {.arena = h->arena};
        buf_printf(&target, "mhlo.%s", row->name);
        *op = (HloOp){.code = HLO_CUSTOM_CALL, .nresults = 1, .noperands = 1, .operands = op->operands, .results = op->results, .loc = op->loc,
                      .extra = marks, .nextra = 1, .attrs = ARENA_NEWN(h->arena, HloAttr, hlo_op_rows[HLO_CUSTOM_CALL].nattrs)};
        *hlo_attr_slot(h, id, AK_CALL_TARGET_NAME) = (HloAttr){.kind = HA_STR, .n = (uint32_t)target.n, .s = buf_cstr(&target)};
        *hlo_attr_slot(h, id, AK_API_VERSION) = (HloAttr){.kind = HA_ENUM, .i = 1};
        read_slot_defaults(h, id);
    }
}
