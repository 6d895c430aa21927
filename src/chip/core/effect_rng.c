// SPDX-License-Identifier: Apache-2.0
// effect_rng.c — random numbers: a generator per partition, XORWOW (Marsaglia, "Xorshift RNGs", 2003).
//
// Six words x y z w v d. The vector engine has four such streams a partition (24 words) and takes them in turn,
// element i from stream i mod 4; gpsimd has one. A run begins with the seeds 0…127; set_rng_seed gives a partition
// another. rng_at has no state but what it is given (base/draw.h). Real trn1 and trn2 vector engines have an undocumented
// LFSR instead: same distribution, other numbers.
#include "chip/core/effects.h"

#include "base/draw.h"
#include "base/round.h"

#define WORDS 6
#define STREAMS 4

static uint32_t xorwow(uint32_t s[WORDS]) {
    uint32_t t = s[0] ^ s[0] >> 2;
    memmove(s, s + 1, 4 * sizeof *s);
    s[4] = (s[4] ^ s[4] << 4) ^ (t ^ t << 1);
    s[5] += 362437;
    return s[5] + s[4];
}

static void seed_partition(uint32_t *words, uint32_t streams, uint32_t seed) {
    for (uint32_t i = 0; i < streams * WORDS; i++)
        words[i] = round_bits(round_mix(seed + 1), i) | (i % WORDS == 0); // never all zero
}

static void seed_all(EngineState *s) {
    for (uint32_t p = 0; !s->rng_ready && p < PARTITIONS; p++) {
        seed_partition(s->rng[0][p], STREAMS, p);
        seed_partition(s->rng[1][p], 1, p);
    }
    s->rng_ready = true;
}

typedef struct Rng {
    EngWalk walk;
    EngTensor dst, src;
    EngScalar a, b;
    uint32_t (*state)[STREAMS * WORDS]; // of the first partition
    uint32_t streams;
} Rng;

static Rng rng_begin(const EffCall *c, EngDomain domain, uint64_t at) {
    const IsaInst *in = c->in;
    seed_all(c->state);
    bool vector = in->engine == ENG_VECTOR;
    Rng k = {.walk = eng_walk(c, domain),
             .a = eng_scalar(in->a, c->a, in->atype), .b = eng_scalar(in->b, c->b, in->atype),
             .state = c->state->rng[vector ? 0 : 1] + addr_part(at), .streams = vector ? STREAMS : 1};
    if (c->dst.at)
        k.dst = eng_tensor(c->dst, in->dtype, in->n, in->d);
    if (c->src.at)
        k.src = eng_tensor(c->src, in->stype, in->n, in->s);
    if (c->dst.at && c->src.at)
        eng_mark_overlap(&k.dst, &k.src);
    return k;
}

static void draw(const Rng *k, const EngBlock *b, uint32_t *out) {
    for (uint32_t r = 0; r < b->rows; r++)
        for (size_t j = 0; j < b->cols; j++)
            *out++ = xorwow(k->state[b->row + r] + (b->col + j) % k->streams * WORDS);
}

static float unit(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }

// --- rng -------------------------------------------------------------------------------------------------

static void bits_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Rng *k = arg;
    draw(k, b, (uint32_t *)s->z);
    eng_store(&k->walk, &k->dst, b, s->z, s);
}

otrn_status eff_rng(const EffCall *c) {
    Rng k = rng_begin(c, ENG_BITS, c->in->dst);
    eng_run(c->pool, isa_count(c->in->n[0]), k.dst.cols, 4, bits_body, &k);
    return OTRN_OK;
}

// --- rand2 -------------------------------------------------------------------------------------------------

static void uniform_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Rng *k = arg;
    uint32_t *bits = (uint32_t *)s->x;
    const float *lo = (const float *)s->a, *hi = (const float *)s->b;
    float *z = (float *)s->z;
    if (b->col == 0) {
        eng_splat(&k->walk, &k->a, b, s->a);
        eng_splat(&k->walk, &k->b, b, s->b);
    }
    draw(k, b, bits);
    for (size_t i = 0; i < b->rows * b->cols; i++) {
        float v = lo[i] + unit(bits[i]) * (hi[i] - lo[i]);
        z[i] = v > hi[i] ? hi[i] : v;
    }
    eng_store(&k->walk, &k->dst, b, z, s);
}

otrn_status eff_rand2(const EffCall *c) {
    Rng k = rng_begin(c, ENG_F32, c->in->dst);
    eng_run(c->pool, isa_count(c->in->n[0]), k.dst.cols, 4, uniform_body, &k);
    return OTRN_OK;
}

// --- dropout: bits kept or zero ----------------------------------------------------------------------------

static void dropout_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const Rng *k = arg;
    EngWalk f32 = k->walk;
    f32.domain = ENG_F32;
    if (b->col == 0)
        eng_splat(&f32, &k->a, b, s->a);
    const float *chance = (const float *)s->a;
    uint32_t *bits = (uint32_t *)s->y, *z = (uint32_t *)s->z;
    draw(k, b, bits);
    const uint32_t *x = eng_load(&k->walk, &k->src, b, s->x, s);
    for (size_t i = 0; i < b->rows * b->cols; i++)
        z[i] = unit(bits[i]) < chance[i] ? 0 : x[i];
    eng_store(&k->walk, &k->dst, b, z, s);
}

otrn_status eff_dropout(const EffCall *c) {
    Rng k = rng_begin(c, ENG_BITS, c->in->dst);
    eng_run(c->pool, isa_count(c->in->n[0]), k.dst.cols, 4, dropout_body, &k);
    return OTRN_OK;
}

// --- state -------------------------------------------------------------------------------------------------

static uint32_t word_at(const EngTensor *t, uint32_t row, size_t i) {
    return (uint32_t)dtype_to_i64(t->dtype, t->at + row * t->pitch + (int64_t)i * t->axis[0].step);
}

otrn_status eff_rng_seed(const EffCall *c) {
    Rng k = rng_begin(c, ENG_BITS, c->in->src);
    for (uint32_t p = 0; p < isa_count(c->in->n[0]); p++)
        seed_partition(k.state[p], k.streams, word_at(&k.src, p, 0));
    return OTRN_OK;
}

otrn_status eff_rng_set(const EffCall *c) {
    Rng k = rng_begin(c, ENG_BITS, c->in->src);
    for (uint32_t p = 0; p < isa_count(c->in->n[0]); p++)
        for (uint32_t i = 0; i < k.streams * WORDS; i++)
            k.state[p][i] = word_at(&k.src, p, i);
    return OTRN_OK;
}

otrn_status eff_rng_get(const EffCall *c) {
    Rng k = rng_begin(c, ENG_BITS, c->in->dst);
    for (uint32_t p = 0; p < isa_count(c->in->n[0]); p++)
        for (uint32_t i = 0; i < k.streams * WORDS; i++)
            dtype_from_i64(k.dst.dtype, k.dst.at + p * k.dst.pitch + (int64_t)i * k.dst.axis[0].step,
                           k.state[p][i]);
    return OTRN_OK;
}

// --- by number ---------------------------------------------------------------------------------------------

typedef struct At {
    EngWalk walk;
    EngTensor dst, src, state;
    const IsaInst *in;
} At;

static At at_begin(const EffCall *c, EngDomain domain, EffOperand state, int dtype) {
    const IsaInst *in = c->in;
    return (At){.walk = eng_walk(c, domain), .dst = eng_tensor(c->dst, in->dtype, in->n, in->d),
                .state = eng_tensor(state, dtype, (uint32_t[5]){in->n[0], DRAW_WORDS}, (int32_t[5]){0, 1}), .in = in};
}

static DrawKeys keys_at(const At *k, const EngBlock *b, uint32_t row) {
    uint64_t w[2];
    memcpy(w, eng_row(&k->state, b, row), sizeof w);
    return draw_keys(w[0], w[1], 0);
}

// The draws of a block, or their flags; number has room for it.
static void draws_at(const At *k, const EngBlock *b, int64_t *number, uint32_t *z) {
    eff_affine(k->in, b, number);
    for (uint32_t r = 0; r < b->rows; r++) {
        uint32_t *row = z + r * b->cols;
        for (size_t j = 0; j < b->cols; j++)
            row[j] = (uint32_t)number[r * b->cols + j];
        k->walk.level->eng->draw(row, b->cols, keys_at(k, b, b->row + r));
    }
    bool below = k->in->op0 == ALU_LT;
    uint32_t bound = (uint32_t)k->in->value, shift = 32 - DRAW_BITS;
    for (size_t i = 0; k->in->op0 != ALU_BYPASS && i < b->rows * b->cols; i++)
        z[i] = (z[i] >> shift < bound) == below;
}

static void at_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const At *k = arg;
    draws_at(k, b, (int64_t *)s->x, (uint32_t *)s->z);
    eng_store(&k->walk, &k->dst, b, s->z, s);
}

otrn_status eff_rng_at(const EffCall *c) {
    At k = at_begin(c, ENG_BITS, c->src, c->in->stype);
    eng_rows(c, k.dst.cols, 4, at_body, &k, sizeof k);
    return OTRN_OK;
}

static void dropout_at_body(const void *arg, const EngBlock *b, EngBuf *s) {
    const At *k = arg;
    uint32_t *kept = (uint32_t *)s->y;
    size_t n = b->rows * b->cols;
    draws_at(k, b, (int64_t *)s->b, kept);
    memset(s->a, 0, n * 4);
    const void *x = eng_load(&k->walk, &k->src, b, s->x, s);
    void *z = eng_out(&k->walk, &k->dst, b, s->z);
    k->walk.level->eng->select(z, kept, x, (const uint32_t *)s->a, n);
    eng_store(&k->walk, &k->dst, b, z, s);
}

otrn_status eff_dropout_at(const EffCall *c) {
    At k = at_begin(c, ENG_F32, c->src1, c->in->ttype);
    k.src = eng_tensor(c->src, c->in->stype, c->in->n, c->in->s);
    eng_mark_overlap(&k.dst, &k.src);
    eng_rows(c, k.dst.cols, 4, dropout_at_body, &k, sizeof k);
    return OTRN_OK;
}
