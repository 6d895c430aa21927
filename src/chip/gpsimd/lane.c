// SPDX-License-Identifier: Apache-2.0
// lane.c — from an elementwise op and its element types to the loop that runs it.
//
// Types that are no compute types pass through blocks that stay in the first-level cache:
//
//   operand ── pre ──► compute type ── fn (or mid) ──► compute type ── post ──► result
#include "chip/gpsimd/gp.h"

const uint8_t lane_class_bytes[LC_COUNT] = {
    [LC_F32] = 4,  [LC_F64] = 8, [LC_I8] = 1,   [LC_I16] = 2, [LC_I32] = 4,
    [LC_I64] = 8,  [LC_U8] = 1,  [LC_U16] = 2,  [LC_U32] = 4, [LC_U64] = 8,
    [LC_BOOL] = 1, [LC_C64] = 8, [LC_C128] = 16};

LaneClass lane_class(int dtype) {
    switch (dtype) {
    case DT_I1: return LC_BOOL;
    case DT_I2:
    case DT_I4:
    case DT_I8: return LC_I8;
    case DT_I16: return LC_I16;
    case DT_I32: return LC_I32;
    case DT_I64:
    case DT_INDEX: return LC_I64;
    case DT_UI2:
    case DT_UI4:
    case DT_UI8: return LC_U8;
    case DT_UI16: return LC_U16;
    case DT_UI32: return LC_U32;
    case DT_UI64: return LC_U64;
    case DT_F64: return LC_F64;
    case DT_C64: return LC_C64;
    case DT_C128: return LC_C128;
    default: return dtype > 0 && dtype < DT_COUNT && dtype_is_float(dtype) ? LC_F32 : LC_NONE;
    }
}

const GpLevel *gp_level(HostLevel level) {
    return level >= HOST_AVX512 ? &gp_level_avx512
           : level == HOST_AVX2 ? &gp_level_avx2
                                : &gp_level_portable;
}

// --- integers narrower than a byte -------------------------------------------------------------

#define BYTES(name, EXPR)                                                                          \
    static void name(void *dst, const void *src, size_t n) {                                       \
        uint8_t *y = dst;                                                                          \
        const uint8_t *x = src;                                                                    \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = (uint8_t)(EXPR);                                                                \
    }
BYTES(wrap_s2, ((x[i] & 3) ^ 2) - 2)
BYTES(wrap_s4, ((x[i] & 15) ^ 8) - 8)
BYTES(wrap_u2, x[i] & 3)
BYTES(wrap_u4, x[i] & 15)
BYTES(bound_s2, (int8_t)x[i] > 1 ? 1 : (int8_t)x[i] < -2 ? -2 : (int8_t)x[i])
BYTES(bound_s4, (int8_t)x[i] > 7 ? 7 : (int8_t)x[i] < -8 ? -8 : (int8_t)x[i])
BYTES(bound_u2, x[i] > 3 ? 3 : x[i])
BYTES(bound_u4, x[i] > 15 ? 15 : x[i])
BYTES(clz_s2, x[i] == 8 ? -2 : x[i] - 6) // two zeros are more than i2 holds
BYTES(clz_2, x[i] - 6)
BYTES(clz_4, x[i] - 4)

static ConvFn *sub_byte_wrap(int dtype) {
    switch (dtype) {
    case DT_I2: return wrap_s2;
    case DT_I4: return wrap_s4;
    case DT_UI2: return wrap_u2;
    case DT_UI4: return wrap_u4;
    default: return NULL;
    }
}
static ConvFn *sub_byte_bound(int dtype) {
    switch (dtype) {
    case DT_I2: return bound_s2;
    case DT_I4: return bound_s4;
    case DT_UI2: return bound_u2;
    case DT_UI4: return bound_u4;
    default: return NULL;
    }
}

// --- complex to and from its parts -------------------------------------------------------------

static void real_of_c64(void *dst, const void *src, size_t n) {
    lane_c64[HLO_REAL](dst, &src, n, NULL);
}
static void real_of_c128(void *dst, const void *src, size_t n) {
    lane_c128[HLO_REAL](dst, &src, n, NULL);
}
static void c64_of_real(void *dst, const void *src, size_t n) {
    float *y = dst;
    const float *x = src;
    for (size_t i = n; i-- > 0;)
        y[2 * i + 1] = 0, y[2 * i] = x[i];
}
static void c128_of_real(void *dst, const void *src, size_t n) {
    double *y = dst;
    const double *x = src;
    for (size_t i = n; i-- > 0;)
        y[2 * i + 1] = 0, y[2 * i] = x[i];
}
static void c64_c128(void *dst, const void *src, size_t n) {
    double *y = dst;
    const float *x = src;
    for (size_t i = 2 * n; i-- > 0;)
        y[i] = x[i];
}
static void c128_c64(void *dst, const void *src, size_t n) {
    float *y = dst;
    const double *x = src;
    for (size_t i = 0; i < 2 * n; i++)
        y[i] = (float)x[i];
}
static void c64_bool(void *dst, const void *src, size_t n) {
    const float *x = src;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = x[2 * i] != 0 || x[2 * i + 1] != 0;
}
static void c128_bool(void *dst, const void *src, size_t n) {
    const double *x = src;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)dst)[i] = x[2 * i] != 0 || x[2 * i + 1] != 0;
}
static void copy_1(void *dst, const void *src, size_t n) { memmove(dst, src, n); }
static void copy_2(void *dst, const void *src, size_t n) { memmove(dst, src, n * 2); }
static void copy_4(void *dst, const void *src, size_t n) { memmove(dst, src, n * 4); }
static void copy_8(void *dst, const void *src, size_t n) { memmove(dst, src, n * 8); }
static void copy_16(void *dst, const void *src, size_t n) { memmove(dst, src, n * 16); }

// --- choosing ----------------------------------------------------------------------------------

static bool convert_complex(Lane *l, LaneClass from, LaneClass to) {
    if (from == to)
        l->mid = from == LC_C64 ? copy_8 : copy_16;
    else if (from == LC_C64 && to == LC_C128)
        l->mid = c64_c128;
    else if (from == LC_C128 && to == LC_C64)
        l->mid = c128_c64;
    else if (to == LC_BOOL)
        l->mid = from == LC_C64 ? c64_bool : c128_bool;
    else
        return false;
    return true;
}

static bool convert_find(Lane *l, const GpLevel *level, int out, int in) {
    LaneClass from = lane_class(in), to = lane_class(out);
    if (from == LC_NONE || to == LC_NONE)
        return false;
    if (from >= LC_C64 && (to >= LC_C64 || to == LC_BOOL))
        return convert_complex(l, from, to);
    if (from >= LC_C64) {
        l->pre[0] = from == LC_C64 ? real_of_c64 : real_of_c128;
        from = from == LC_C64 ? LC_F32 : LC_F64;
    } else {
        l->pre[0] = level->widen[in];
    }
    if (to >= LC_C64) {
        l->post = to == LC_C64 ? c64_of_real : c128_of_real;
        to = to == LC_C64 ? LC_F32 : LC_F64;
    } else if (level->narrow[out]) {
        l->post = level->narrow[out];
    } else {
        l->post = lane_class_is_real_float(from) ? sub_byte_bound(out) : sub_byte_wrap(out);
    }
    if (level->narrow[out] && level->to_odd[from])
        l->mid = level->to_odd[from];
    else if (from == LC_F32 && to == LC_F32)
        l->mid = l->pre[0] || l->post ? NULL : copy_4;
    else
        l->mid = level->conv[from][to];
    if (!l->mid && l->pre[0] && !l->post) { // only widening: it writes the result itself
        l->mid = l->pre[0];
        l->pre[0] = NULL;
    }
    return true;
}

// The same bits under another type of the same width.
static bool bitcast_find(Lane *l, int out, int in) {
    static ConvFn *const copies[] = {copy_1, copy_2, copy_4, copy_8};
    int bytes = (int)dtype_bytes(in);
    bool narrow = dtype_row(in)->bits < 8 || dtype_row(out)->bits < 8; // these fill their byte differently
    if (dtype_is_complex(in) || dtype_is_complex(out) || bytes != (int)dtype_bytes(out) || bytes > 8 ||
        (narrow && in != out))
        return false;
    l->mid = copies[__builtin_ctz((unsigned)bytes)];
    return true;
}

// The type an op computes in is its operands'; that of the result follows from the op.
static int result_dtype(uint16_t op, int in) {
    switch (op) {
    case HLO_COMPARE:
    case HLO_IS_FINITE:
    case HLO_CHLO_IS_INF:
    case HLO_CHLO_IS_POS_INF:
    case HLO_CHLO_IS_NEG_INF: return DT_I1;
    case HLO_COMPLEX: return in == DT_F32 ? DT_C64 : in == DT_F64 ? DT_C128 : DT_INVALID;
    case HLO_REAL:
    case HLO_IMAG:
    case HLO_ABS: return in == DT_C64 ? DT_F32 : in == DT_C128 ? DT_F64 : in;
    default: return in;
    }
}

static bool select_find(Lane *l, const GpLevel *level, int out, const uint8_t *in) {
    size_t bytes = dtype_bytes(out);
    if (in[0] != DT_I1 || in[1] != out || in[2] != out || !bytes || bytes > 16)
        return false;
    l->fn = level->select[__builtin_ctz((unsigned)bytes)];
    return true;
}

static void sub_byte_find(Lane *l, uint16_t op, int dtype) {
    bool two = dtype == DT_I2 || dtype == DT_UI2;
    if (op == HLO_COMPARE)
        return;
    l->post = sub_byte_wrap(dtype);
    if (op == HLO_SHIFT_RIGHT_LOGICAL || op == HLO_POPCNT || op == HLO_COUNT_LEADING_ZEROS)
        l->pre[0] = two ? wrap_u2 : wrap_u4;
    if (op == HLO_SHIFT_RIGHT_ARITHMETIC) // the top bit is the sign, in unsigned types too
        l->pre[0] = two ? wrap_s2 : wrap_s4;
    if (op == HLO_COUNT_LEADING_ZEROS)
        l->post = dtype == DT_I2 ? clz_s2 : two ? clz_2 : clz_4;
}

static LaneFn *class_lane(const GpLevel *level, LaneClass cls, uint16_t op) {
    if (cls == LC_C64)
        return lane_c64[op];
    if (cls == LC_C128)
        return lane_c128[op];
    if (cls == LC_F32 && lane_special_f32[op])
        return lane_special_f32[op];
    if (cls == LC_F64 && lane_special_f64[op])
        return lane_special_f64[op];
    return level->lane[cls][op];
}

// A narrow float has its own exponent range: bits it has not cannot be taken away.
static void reduce_precision_fix(Lane *l, int dtype) {
    const DtypeRow *row = dtype_row(dtype);
    if (l->attr[0] >= row->exp_bits)
        l->attr[0] = 11;
    if (l->attr[1] >= row->man_bits)
        l->attr[1] = 52;
}

// Those that move parts of a number, or round one, leave a NaN what it is; next_after works on codes and makes the one itself.
static bool op_keeps_nan(uint16_t op) {
    return op == HLO_REAL || op == HLO_IMAG || op == HLO_COMPLEX || op == HLO_REDUCE_PRECISION || op == HLO_CHLO_NEXT_AFTER;
}

static bool find_loop(Lane *l, const GpLevel *level, uint16_t op, int out, const uint8_t *in, int nin);

bool lane_find(Lane *l, const GpLevel *level, uint16_t op, int out, const uint8_t *in, int nin,
               const int16_t *attr) {
    if (op >= HLO_OPCODE_COUNT || nin < 1 || nin > 3 || hlo_op_rows[op].operands != nin)
        return false;
    *l = (Lane){.nin = (uint8_t)nin, .out_bytes = (uint8_t)dtype_bytes(out)};
    if (attr)
        memcpy(l->attr, attr, sizeof l->attr);
    for (int i = 0; i < nin; i++)
        l->in_bytes[i] = (uint8_t)dtype_bytes(in[i]);
    if (op == HLO_CONVERT)
        return convert_find(l, level, out, in[0]);
    if (op == HLO_BITCAST_CONVERT)
        return bitcast_find(l, out, in[0]);
    if (op == HLO_SELECT)
        return select_find(l, level, out, in);
    if (!find_loop(l, level, op, out, in, nin))
        return false;
    bool direct = l->fn == level->lane[LC_BF16][op] && out == DT_BF16;
    if (!op_keeps_nan(op))
        l->quiet = level->quiet[direct ? LC_BF16 : lane_class(out)];
    return true;
}

static bool find_loop(Lane *l, const GpLevel *level, uint16_t op, int out, const uint8_t *in, int nin) {
    for (int i = 1; i < nin; i++)
        if (in[i] != in[0])
            return false;
    LaneClass cls = lane_class(in[0]);
    if (cls == LC_NONE || result_dtype(op, in[0]) != out)
        return false;
    if (op == HLO_CHLO_MULHI)
        return (l->fn = lane_mulhi(in[0])) != NULL;
    if (op == HLO_CHLO_NEXT_AFTER)
        return (l->fn = lane_next_after(in[0])) != NULL;
    if (op == HLO_REDUCE_PRECISION && (l->attr[0] < 1 || l->attr[1] < 0))
        return false;
    if (op == HLO_REDUCE_PRECISION && (l->fn = lane_reduce_precision(in[0])))
        return true;
    if (in[0] == DT_BF16 && (l->fn = level->lane[LC_BF16][op]))
        return true;
    l->fn = class_lane(level, cls, op);
    if (!l->fn)
        return false;
    if (op == HLO_REDUCE_PRECISION)
        reduce_precision_fix(l, in[0]);
    for (int i = 0; i < nin; i++)
        l->pre[i] = level->widen[in[0]];
    if (dtype_is_float(out))
        l->post = level->narrow[out];
    if (sub_byte_wrap(in[0]))
        sub_byte_find(l, op, in[0]);
    return true;
}

// --- running -----------------------------------------------------------------------------------

void lane_run(const Lane *l, void *dst, const void *const *src, size_t n) {
    bool direct = !l->post && !l->pre[0] && !l->pre[1] && !l->pre[2];
    if (direct && !l->quiet) {
        if (l->fn)
            l->fn(dst, src, n, l->attr);
        else
            l->mid(dst, src[0], n);
        return;
    }
    if (direct) { // the results are looked at while they are in the nearest cache
        for (size_t at = 0; at < n; at += 4 * LANE_BLOCK) {
            size_t m = n - at < 4 * LANE_BLOCK ? n - at : 4 * LANE_BLOCK;
            const void *p[3] = {0};
            for (int i = 0; i < l->nin; i++)
                p[i] = (const char *)src[i] + at * l->in_bytes[i];
            char *y = (char *)dst + at * l->out_bytes;
            if (l->fn)
                l->fn(y, p, m, l->attr);
            else
                l->mid(y, p[0], m);
            l->quiet(y, m);
        }
        return;
    }
    _Alignas(64) uint64_t in[3][LANE_BLOCK], out[LANE_BLOCK];
    for (size_t at = 0; at < n; at += LANE_BLOCK) {
        size_t m = n - at < LANE_BLOCK ? n - at : LANE_BLOCK;
        const void *p[3] = {0};
        for (int i = 0; i < l->nin; i++) {
            p[i] = (const char *)src[i] + at * l->in_bytes[i];
            if (l->pre[i]) {
                l->pre[i](in[i], p[i], m);
                p[i] = in[i];
            }
        }
        char *y = (char *)dst + at * l->out_bytes;
        void *mid = l->post ? (void *)out : y;
        if (l->fn)
            l->fn(mid, p, m, l->attr);
        else if (l->mid)
            l->mid(mid, p[0], m);
        else
            mid = (void *)p[0];
        if (l->quiet && mid == p[0])
            mid = memcpy(out, p[0], m * l->in_bytes[0]);
        if (l->quiet)
            l->quiet(mid, m);
        if (l->post)
            l->post(y, mid, m);
    }
}

// One cache line of copies, laid down again and again.
void gp_fill(void *dst, const void *value, size_t bytes, size_t n) {
    _Alignas(64) char line[64];
    char *y = dst;
    size_t total = bytes * n, at = 0;
    uint64_t word[2];
    switch (bytes) { // calls for a few bytes at a time would cost more than the lines
    case 1: word[0] = word[1] = *(const uint8_t *)value * 0x0101010101010101u; break;
    case 2: word[0] = word[1] = *(const uint16_t *)value * 0x0001000100010001u; break;
    case 4: word[0] = word[1] = *(const uint32_t *)value * 0x0000000100000001u; break;
    case 8: word[0] = word[1] = *(const uint64_t *)value; break;
    default: memcpy(word, value, sizeof word); break;
    }
    for (size_t i = 0; i < sizeof line; i += sizeof word)
        memcpy(line + i, word, sizeof word);
    for (; at + sizeof line <= total; at += sizeof line)
        memcpy(y + at, line, sizeof line);
    memcpy(y + at, line, total - at);
}
