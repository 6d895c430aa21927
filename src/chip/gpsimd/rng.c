// SPDX-License-Identifier: Apache-2.0
// rng.c — rng_bit_generator: the engines' own numbers (base/draw.h), Threefry-2x32-20 and Philox-4x32-10 with XLA's state and output
// layouts, MT19937 (base/twister.h); otrn.draw for readers that no row program is; and rng, whose stream hlo/eval_rng.c describes (NORMAL is rewritten by pass/expand.c).
//
// State: key and counter as two 64-bit words, which may be stored as pairs of ui32; Philox also
// takes three words with a 128-bit counter, and with two the key serves as its upper half. Every
// output is a function of key and counter alone, so ranges of outputs are independent; those of MT19937 follow each other.
#include "chip/gpsimd/gp.h"

#include "base/draw.h"
#include "base/twister.h"
#include "chip/host/engine_level.h"

static inline uint32_t rotl(uint32_t x, int by) { return x << by | x >> (32 - by); }

// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
static uint64_t threefry(uint64_t key, uint64_t counter) {
    static const int rot[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t k[3] = {(uint32_t)key, (uint32_t)(key >> 32), 0};
    k[2] = k[0] ^ k[1] ^ 0x1bd11bdau;
    uint32_t a = (uint32_t)counter + k[0], b = (uint32_t)(counter >> 32) + k[1];
    for (uint32_t group = 0; group < 5; group++) {
        for (int r = 0; r < 4; r++) {
            a += b;
            b = rotl(b, rot[group & 1][r]) ^ a;
        }
        a += k[(group + 1) % 3];
        b += k[(group + 2) % 3] + group + 1;
    }
    return (uint64_t)b << 32 | a;
}

static void philox(uint64_t key, uint64_t low, uint64_t high, uint32_t out[4]) {
    uint32_t c[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53u * c[0], p1 = (uint64_t)0xcd9e8d57u * c[2];
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)p1, c[3] = (uint32_t)p0, c[0] = n0, c[2] = n2;
        k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
    }
    memcpy(out, c, sizeof c);
}

static size_t state_words(const KTensor *t) {
    bool ok = t->rank == 1 && (t->dtype == DT_UI64 || t->dtype == DT_UI32) && gp_bytes(t) % 8 == 0;
    return ok ? gp_bytes(t) / 8 : 0;
}

static bool uses_philox(const Kern *k) {
    return gp_int(k, AK_RNG_ALGORITHM, RNGALG_DEFAULT) == RNGALG_PHILOX;
}

bool gp_rng_bits_check(const Kern *k) {
    if (k->nin != 1 || k->nout != 2 || !gp_same_type(&k->in[0], &k->out[0]))
        return false;
    int64_t alg = gp_int(k, AK_RNG_ALGORITHM, RNGALG_DEFAULT);
    if (alg == RNGALG_TWISTER)
        return k->in[0].dtype == DT_UI32 && k->in[0].elems == TWISTER_STATE && dtype_row(k->out[1].dtype)->bits >= 8 && !dtype_is_complex(k->out[1].dtype);
    size_t words = state_words(&k->in[0]);
    int type = k->out[1].dtype;
    return (words == 2 || (words == 3 && alg != RNGALG_THREE_FRY)) && dtype_row(type)->bits >= 8 &&
           !dtype_is_complex(type) && alg >= RNGALG_DEFAULT && alg <= RNGALG_PHILOX;
}

typedef struct RngJob {
    uint64_t key, low, high;
    char *out;
    size_t bytes, elems;
    int64_t inner, half,
        size; // 32-bit Threefry: stride and extents of the axis along which words pair up
} RngJob;

static void put_bits(const RngJob *j, size_t at,
                     uint64_t v) { // little-endian: truncation keeps the low bits
    memcpy(j->out + at * j->bytes, &v, j->bytes);
}

static void threefry_64(void *arg, size_t begin, size_t end) {
    const RngJob *j = arg;
    for (size_t i = begin; i < end; i++)
        put_bits(j, i, threefry(j->key, j->low + i));
}

// Counter i names a place in the shape whose split axis is halved (rounded up); its two words are
// neighbours along that axis, and an odd tail drops the second.
static void threefry_32(void *arg, size_t begin, size_t end) {
    const RngJob *j = arg;
    for (size_t i = begin; i < end; i++) {
        uint64_t v = threefry(j->key, j->low + i);
        int64_t in = (int64_t)i % j->inner, at = (int64_t)i / j->inner % j->half;
        int64_t outer = (int64_t)i / j->inner / j->half;
        int64_t to = (outer * j->size + 2 * at) * j->inner + in;
        put_bits(j, (size_t)to, (uint32_t)v);
        if (2 * at + 1 < j->size)
            put_bits(j, (size_t)(to + j->inner), v >> 32);
    }
}

static void philox_any(void *arg, size_t begin, size_t end) {
    const RngJob *j = arg;
    size_t words = j->bytes == 8 ? 2 : 1, per = 4 / words;
    for (size_t i = begin; i < end; i++) {
        uint64_t low = j->low + i, high = j->high + (low < j->low);
        uint32_t w[4];
        philox(j->key, low, high, w);
        for (size_t n = 0; n < per && i * per + n < j->elems; n++)
            put_bits(j, i * per + n, words == 2 ? (uint64_t)w[2 * n + 1] << 32 | w[2 * n] : w[n]);
    }
}

static void draw_any(void *arg, size_t begin, size_t end) {
    const RngJob *j = arg;
    bool wide = j->bytes == 8;
    uint32_t third = (uint32_t)draw_mix(j->high);
    for (size_t i = begin; i < end; i++) {
        uint64_t n = (uint64_t)i << wide;
        DrawKeys d = draw_keys(j->key, j->low, (uint32_t)(n >> 32) ^ third);
        uint64_t low = draw_bits(d, (uint32_t)n);
        put_bits(j, i, wide ? low | (uint64_t)draw_bits(d, (uint32_t)n + 1) << 32 : low);
    }
}

// The first axis of even extent, else the longest.
static void split_axis(const KTensor *t, RngJob *j) {
    int axis = -1;
    int64_t strides[OTRN_MAX_RANK];
    gp_strides(t, strides);
    for (int d = 0; d < t->rank && axis < 0; d++)
        axis = t->dims[d] % 2 == 0 ? d : -1;
    for (int d = 0; d < t->rank && (axis < 0 || t->dims[axis] % 2); d++)
        axis = axis < 0 || t->dims[d] > t->dims[axis] ? d : axis;
    j->size = axis < 0 ? 1 : t->dims[axis];
    j->inner = axis < 0 ? 1 : strides[axis];
    j->half = (j->size + 1) / 2;
}

static otrn_status run_twister(const GpCall *c) {
    const KTensor *t = &c->k->out[1];
    uint32_t state[TWISTER_STATE];
    memcpy(state, c->in[0], sizeof state);
    RngJob j = {.out = c->out[1], .bytes = dtype_bytes(t->dtype)};
    for (size_t i = 0; i < (size_t)t->elems; i++)
        put_bits(&j, i, twister_bits(state, j.bytes == 8));
    memcpy(c->out[0], state, sizeof state);
    return OTRN_OK;
}

otrn_status gp_rng_bits_run(const GpCall *c) {
    const Kern *k = c->k;
    const KTensor *t = &k->out[1];
    if (gp_int(k, AK_RNG_ALGORITHM, RNGALG_DEFAULT) == RNGALG_TWISTER)
        return run_twister(c);
    uint64_t state[3] = {0};
    memcpy(state, c->in[0], gp_bytes(&k->in[0]));
    uint64_t *high = state_words(&k->in[0]) == 3 ? &state[2] : &state[0];
    RngJob j = {.key = state[0],
                .low = state[1],
                .high = *high,
                .out = c->out[1],
                .bytes = dtype_bytes(t->dtype),
                .elems = (size_t)t->elems};
    size_t count;
    if (gp_int(k, AK_RNG_ALGORITHM, RNGALG_DEFAULT) == RNGALG_DEFAULT) {
        j.high = state[2];
        count = j.elems;
        pool_run(c->pool, count, 4096, draw_any, &j);
    } else if (uses_philox(k)) {
        size_t words = j.elems * (j.bytes == 8 ? 2 : 1);
        count = (words + 3) / 4;
        pool_run(c->pool, count, 1024, philox_any, &j);
    } else if (j.bytes == 8) {
        count = j.elems;
        pool_run(c->pool, count, 1024, threefry_64, &j);
    } else {
        split_axis(t, &j);
        count = j.size ? j.elems / (size_t)j.size * (size_t)j.half : 0;
        pool_run(c->pool, count, 1024, threefry_32, &j);
    }
    state[1] = j.low + count;
    if (uses_philox(k))
        *high += state[1] < j.low;
    memcpy(c->out[0], state, gp_bytes(&k->in[0]));
    return OTRN_OK;
}

// --- otrn.draw -------------------------------------------------------------------------------------

bool gp_draw_check(const Kern *k) {
    return k->nin == 1 && k->nout == 1 && gp_bytes(&k->in[0]) == 4 * DRAW_WORDS &&
           (k->out[0].dtype == DT_UI32 || k->out[0].dtype == DT_I1);
}

#define DRAW_BLOCK 1024

typedef struct DrawJob {
    const EngLevel *eng;
    uint64_t state[2];
    uint8_t *out;
    bool flags, below;
    uint32_t bound;
} DrawJob;

static void draw_chunk(void *arg, size_t begin, size_t end) {
    const DrawJob *j = arg;
    uint32_t bits[DRAW_BLOCK];
    while (begin < end) { // keys belong to the upper half of the number
        uint64_t same = ((uint64_t)1 << 32) - (uint32_t)begin, left = end - begin < same ? end - begin : same;
        size_t n = left < DRAW_BLOCK ? (size_t)left : DRAW_BLOCK;
        for (size_t i = 0; i < n; i++)
            bits[i] = (uint32_t)(begin + i);
        j->eng->draw(bits, n, draw_keys(j->state[0], j->state[1], (uint32_t)(begin >> 32)));
        if (j->flags)
            j->eng->draw_flags(j->out + begin, bits, n, j->bound, j->below);
        else
            memcpy(j->out + 4 * begin, bits, 4 * n);
        begin += n;
    }
}

otrn_status gp_draw_run(const GpCall *c) {
    const KTensor *t = &c->k->out[0];
    DrawJob j = {.eng = gp_level(c->level)->eng, .out = c->out[0], .flags = t->dtype == DT_I1, .bound = (uint32_t)gp_int(c->k, AK_BOUND, 0),
                 .below = gp_int(c->k, AK_COMPARISON_DIRECTION, CMP_LT) == CMP_LT};
    memcpy(j.state, c->in[0], sizeof j.state);
    pool_run(c->pool, (size_t)t->elems, 4096, draw_chunk, &j);
    return OTRN_OK;
}

// --- rng ---------------------------------------------------------------------------------------

#define RNG_KEY 0x6f70656e74726e00ull

bool gp_rng_check(const Kern *k) {
    if (k->nin != 3 || k->nout != 1 || gp_int(k, AK_RNG_DISTRIBUTION, 0) != RNGDIST_UNIFORM)
        return false;
    int type = k->out[0].dtype;
    return k->in[0].elems == 1 && k->in[1].elems == 1 && k->in[0].dtype == type &&
           k->in[1].dtype == type && !dtype_is_complex(type) && type != DT_TOKEN;
}

typedef struct UniformJob {
    uint64_t draw;
    char *out;
    int dtype;
    size_t bytes;
    double lo, hi;       // floats
    uint64_t from, span; // integers; span 0: always `from`
} UniformJob;

static uint64_t rng_word(uint64_t draw, size_t i) {
    uint32_t w[4];
    philox(RNG_KEY, i / 2, draw, w);
    return (uint64_t)w[i % 2 * 2 + 1] << 32 | w[i % 2 * 2];
}

static void uniform_floats(void *arg, size_t begin, size_t end) {
    const UniformJob *j = arg;
    for (size_t i = begin; i < end; i++) {
        double u = (double)(rng_word(j->draw, i) >> 11) * 0x1p-53, v = j->lo * (1 - u) + j->hi * u;
        char *to = j->out + i * j->bytes;
        dtype_from_f64(j->dtype, to, v);
        if (dtype_to_f64(j->dtype, to) >= j->hi)
            dtype_from_f64(j->dtype, to, j->lo);
    }
}

static void uniform_ints(void *arg, size_t begin, size_t end) {
    const UniformJob *j = arg;
    unsigned above = 64 - dtype_row(j->dtype)->bits;
    bool is_signed = dtype_row(j->dtype)->cls == DC_SINT;
    for (size_t i = begin; i < end; i++) {
        uint64_t v = j->from + (uint64_t)((unsigned __int128)rng_word(j->draw, i) * j->span >> 64);
        v = is_signed ? (uint64_t)((int64_t)(v << above) >> above) : v << above >> above;
        if (j->dtype == DT_I1)
            j->out[i] = (char)(v & 1);
        else
            dtype_from_i64(j->dtype, j->out + i * j->bytes, (int64_t)v);
    }
}

static int64_t bound_of(int dtype, const void *p) {
    return dtype == DT_I1 ? *(const uint8_t *)p != 0 : dtype_to_i64(dtype, p);
}

otrn_status gp_rng_run(const GpCall *c) {
    const KTensor *t = &c->k->out[0];
    UniformJob j = {.draw = (*c->draws)++, .out = c->out[0], .dtype = t->dtype,
                    .bytes = dtype_bytes(t->dtype)};
    if (dtype_is_float(t->dtype)) {
        j.lo = dtype_to_f64(t->dtype, c->in[0]);
        j.hi = dtype_to_f64(t->dtype, c->in[1]);
        pool_run(c->pool, (size_t)t->elems, 1024, uniform_floats, &j);
        return gp_quiet(c);
    }
    int64_t from = bound_of(t->dtype, c->in[0]), to = bound_of(t->dtype, c->in[1]);
    unsigned above = 64 - dtype_row(t->dtype)->bits;
    j.from = (uint64_t)from;
    j.span = ((uint64_t)to - (uint64_t)from) << above >> above; // past the largest number comes the least
    pool_run(c->pool, (size_t)t->elems, 1024, uniform_ints, &j);
    return OTRN_OK;
}
