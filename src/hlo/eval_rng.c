// SPDX-License-Identifier: Apache-2.0
// eval_rng.c — rng_bit_generator: Threefry-2x32-20 and Philox-4x32-10, with XLA's use of state; and rng.
//
// Threefry (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"), state ui64[2] = key,
// counter:
//   64-bit outputs: element k (row-major) is the block of counter + k; the counter grows by the
//   count. 32-bit and narrower: the block's two words go to neighbouring places of a split
//   dimension — the first even-sized one, else the largest — over the half-sized shape; an odd tail
//   is dropped.
// Philox, state ui64[2] or [3]: the key is element 0, the 128-bit counter (element 1, element 2) or
// (element 1, element 0); each block gives four words, used in order.
// DEFAULT, state ui64[2] or [3]: the engines' own numbers (base/draw.h). 32-bit and narrower: element k is draw k; 64-bit: draws 2k and 2k + 1, the
// second one above. A third word of the state counts as the upper half of the number. The second word grows by the count.
// MERSENNE_TWISTER, state ui32[625] (base/twister.h), an algorithm that the specification has not: element k is the k-th of the words that follow, or
// of pairs of them with the first one above.
//
// rng has a stream of its own, the same in every run: the n-th rng op that a run executes (from 0) draws for
// its element i the 64 bits in words 2 (i mod 2) and the next of the Philox block with key RNG_KEY and
// the 128-bit counter n : i / 2.
//   integers  a + the high half of bits * (b - a); sum and difference wrap in the type, as XLA's: TensorFlow asks for s32 from 0 to -1
//   floats    a (1 - u) + b u with u = (bits >> 11) / 2^53, in f64, rounded; what rounds to b is a
//   NORMAL    a + b sqrt(2) erf_inv(v), v uniform as above in f32 (f64 for f64) between the number after -1, and 1
#include "hlo/eval_in.h"

#include "base/draw.h"
#include "base/elem.h"
#include "base/twister.h"

#define RNG_KEY 0x6f70656e74726e00ull

static uint32_t rotate(uint32_t x, int by) {
    return x << by | x >> (32 - by);
}

static void threefry(uint64_t key, uint64_t counter, uint32_t out[2]) {
    static const uint8_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t k[3] = {(uint32_t)key, (uint32_t)(key >> 32), 0};
    k[2] = k[0] ^ k[1] ^ 0x1BD11BDAu;
    uint32_t x0 = (uint32_t)counter + k[0], x1 = (uint32_t)(counter >> 32) + k[1];
    for (uint32_t group = 0; group < 5; group++) {
        for (int i = 0; i < 4; i++) {
            x0 += x1;
            x1 = rotate(x1, rotations[group & 1][i]) ^ x0;
        }
        x0 += k[(group + 1) % 3];
        x1 += k[(group + 2) % 3] + group + 1;
    }
    out[0] = x0, out[1] = x1;
}

static void philox(uint64_t key, uint64_t lo, uint64_t hi, uint32_t out[4]) {
    uint32_t c[4] = {(uint32_t)lo, (uint32_t)(lo >> 32), (uint32_t)hi, (uint32_t)(hi >> 32)};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[0] = n0, c[1] = (uint32_t)p1, c[2] = n2, c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}

static void put_bits(const HloType *t, uint8_t *data, int64_t i, uint64_t bits) {
    size_t elem = dtype_bytes(t->dtype);
    if (dtype_is_float(t->dtype))
        memcpy(data + (size_t)i * elem, &bits, elem);
    else
        dtype_from_i64(t->dtype, data + (size_t)i * elem, (int64_t)bits);
}

// Fills the tensor and returns how far the counter moved.
static uint64_t threefry_fill(const HloType *t, uint64_t key, uint64_t counter, uint8_t *data) {
    uint32_t w[2];
    if (dtype_row(t->dtype)->bits == 64) {
        for (int64_t i = 0; i < t->elems; i++) {
            threefry(key, counter + (uint64_t)i, w);
            put_bits(t, data, i, w[0] | (uint64_t)w[1] << 32);
        }
        return (uint64_t)t->elems;
    }
    if (t->rank == 0) {
        threefry(key, counter, w);
        put_bits(t, data, 0, w[0]);
        return 1;
    }
    int split = 0;
    for (int i = 1; i < t->rank; i++)
        if (t->dims[i] > t->dims[split])
            split = i;
    for (int i = t->rank - 1; i >= 0; i--)
        if (t->dims[i] % 2 == 0)
            split = i;
    int64_t half[OTRN_MAX_RANK], blocks = 0;
    for (int i = 0; i < t->rank; i++)
        half[i] = i == split ? (t->dims[i] + 1) / 2 : t->dims[i];
    Box b;
    for (box_init(&b, t->rank, half); b.more; box_next(&b), blocks++) {
        threefry(key, counter + (uint64_t)blocks, w);
        for (int j = 0; j < 2; j++) {
            int64_t at = 0;
            for (int i = 0; i < t->rank; i++)
                at = at * t->dims[i] + (i == split ? 2 * b.at[i] + j : b.at[i]);
            if (2 * b.at[split] + j < t->dims[split])
                put_bits(t, data, at, w[j]);
        }
    }
    return (uint64_t)blocks;
}

static uint64_t philox_fill(const HloType *t, uint64_t key, uint64_t lo, uint64_t hi,
                            uint8_t *data) {
    uint32_t w[4];
    bool wide = dtype_row(t->dtype)->bits == 64;
    int64_t per = wide ? 2 : 4, blocks = (t->elems + per - 1) / per;
    for (int64_t i = 0; i < t->elems; i++) {
        if (i % per == 0) {
            uint64_t at = lo + (uint64_t)(i / per);
            philox(key, at, hi + (at < lo), w);
        }
        uint64_t v = wide ? w[i % 2 * 2] | (uint64_t)w[i % 2 * 2 + 1] << 32 : w[i % 4];
        put_bits(t, data, i, v);
    }
    return (uint64_t)blocks;
}

static uint64_t draw_fill(const HloType *t, const uint64_t st[3], uint8_t *data) {
    bool wide = dtype_row(t->dtype)->bits == 64;
    for (int64_t i = 0; i < t->elems; i++) {
        uint64_t n = (uint64_t)i << wide;
        DrawKeys d = draw_keys(st[0], st[1], (uint32_t)((n >> 32) ^ draw_mix(st[2])));
        uint64_t low = draw_bits(d, (uint32_t)n), high = draw_bits(d, (uint32_t)n + 1);
        put_bits(t, data, i, wide ? low | high << 32 : low);
    }
    return (uint64_t)t->elems;
}

void eval_draw(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]);
    const HloOp *op = eval_op_at(e, id);
    bool below = hlo_int(op, AK_COMPARISON_DIRECTION, CMP_LT) == CMP_LT;
    uint64_t st[2], bound = (uint64_t)hlo_int(op, AK_BOUND, 0);
    memcpy(st, in[0].data, sizeof st);
    uint8_t *data = out[0].data = eval_new(e, out[0].type);
    for (int64_t i = 0; i < t->elems; i++) {
        uint32_t bits = draw_bits(draw_keys(st[0], st[1], (uint32_t)(i >> 32)), (uint32_t)i);
        if (t->dtype == DT_I1)
            data[i] = (bits >> (32 - DRAW_BITS) < bound) == below;
        else
            memcpy(data + 4 * i, &bits, 4);
    }
}

static void twister_fill(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[1]);
    eval_need(e, id, in[0].type == out[0].type && s->dtype == DT_UI32 && s->elems == TWISTER_STATE, "the state of a twister must be ui32[625], kept by the result");
    uint32_t *state = out[0].data = eval_new(e, out[0].type);
    memcpy(state, in[0].data, TWISTER_STATE * sizeof *state);
    uint8_t *data = out[1].data = eval_new(e, out[1].type);
    for (int64_t i = 0; i < t->elems; i++)
        put_bits(t, data, i, twister_bits(state, dtype_row(t->dtype)->bits == 64));
}

void eval_rng_bit_generator(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[1]);
    int64_t alg = hlo_int(eval_op_at(e, id), AK_RNG_ALGORITHM, RNGALG_DEFAULT);
    if (alg == RNGALG_TWISTER)
        return twister_fill(e, id, in, out);
    size_t words = hlo_type_bytes(s) / 8;
    bool ok = in[0].type == out[0].type && s->rank == 1 &&
              (s->dtype == DT_UI64 || s->dtype == DT_UI32) && hlo_type_bytes(s) % 8 == 0 &&
              (words == 2 || words == 3);
    eval_need(e, id, ok, "the state must be ui64[2] or ui64[3], kept by the result (I1)");
    eval_need(e, id, dtype_is_int(t->dtype) || dtype_is_float(t->dtype),
              "outputs are integers or floats");
    eval_need(e, id, alg != RNGALG_THREE_FRY || words == 2, "a THREE_FRY state has two words");
    uint64_t st[3] = {0};
    memcpy(st, in[0].data, words * 8);
    out[1].data = eval_new(e, out[1].type);
    if (alg == RNGALG_DEFAULT)
        st[1] += draw_fill(t, st, out[1].data);
    else if (alg == RNGALG_THREE_FRY)
        st[1] += threefry_fill(t, st[0], st[1], out[1].data);
    else {
        int high = words == 3 ? 2 : 0;
        uint64_t moved = philox_fill(t, st[0], st[1], st[high], out[1].data), lo = st[1] + moved;
        st[high] += lo < st[1];
        st[1] = lo;
    }
    out[0].data = eval_new(e, out[0].type);
    memcpy(out[0].data, st, words * 8);
}

static double uniform_float(int dtype, double a, double b, uint64_t bits) {
    double u = (double)(bits >> 11) * 0x1p-53, v = a * (1 - u) + b * u;
    eval_round(dtype, 1, &v);
    return v >= b ? a : v;
}

static double normal_float(int dtype, double a, double b, uint64_t bits) {
    int wide = dtype == DT_F64 ? DT_F64 : DT_F32;
    double v = uniform_float(wide, wide == DT_F64 ? -1 + 0x1p-53 : -1 + 0x1p-24, 1, bits);
    return a + b * (1.4142135623730951 * elem_erf_inv(v));
}

void eval_rng(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]), *a = eval_type(e, in[0]), *b = eval_type(e, in[1]);
    int64_t kind = hlo_int(eval_op_at(e, id), AK_RNG_DISTRIBUTION, 0);
    bool is_float = dtype_is_float(t->dtype);
    eval_need(e, id, a->elems == 1 && b->elems == 1 && a->dtype == t->dtype && b->dtype == t->dtype,
              "the bounds are scalars of the result's type");
    eval_need(e, id, is_float || (eval_wide_kind(t->dtype) == WIDE_I && kind == RNGDIST_UNIFORM),
              "numbers are uniform, or floats and normal");
    double lo, hi;
    eval_load(t->dtype, in[0].data, 0, 1, &lo);
    eval_load(t->dtype, in[1].data, 0, 1, &hi);
    uint8_t *data = out[0].data = eval_new(e, out[0].type);
    uint64_t draw = e->draws++;
    for (int64_t i = 0; i < t->elems; i++) {
        uint32_t w[4];
        philox(RNG_KEY, (uint64_t)i / 2, draw, w);
        uint64_t bits = w[i % 2 * 2] | (uint64_t)w[i % 2 * 2 + 1] << 32;
        double v;
        if (is_float) {
            v = kind == RNGDIST_NORMAL ? normal_float(t->dtype, lo, hi, bits)
                                       : uniform_float(t->dtype, lo, hi, bits);
        } else {
            uint64_t from = *(WideUint *)&lo, span = *(WideUint *)&hi - from;
            unsigned above = 64 - dtype_row(t->dtype)->bits;
            uint64_t drawn = from + (uint64_t)((unsigned __int128)bits * (span << above >> above) >> 64);
            *(WideUint *)&v = dtype_row(t->dtype)->cls == DC_SINT ? (uint64_t)((int64_t)(drawn << above) >> above) : drawn << above >> above;
        }
        eval_store_computed(t->dtype, data + (size_t)i * dtype_bytes(t->dtype), 1, &v);
    }
}
