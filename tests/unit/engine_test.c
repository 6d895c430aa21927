// SPDX-License-Identifier: Apache-2.0
// engine_test.c — loops that take several passes of the engines in one: on every host level the same bits as the passes
// one after the other on the portable level, for every length up to 100 and all kinds of numbers.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chip/core/engine.h"

#define MOST 100

static int failures;
static void report(const char *name, const char *level, bool ok) {
    if (ok)
        printf("ok %s, %s\n", name, level);
    else
        printf("FAIL %s, %s: bits differ\n", name, level), failures++;
}

static uint32_t noise(uint32_t *s) { return *s = *s * 1664525u + 1013904223u, *s ^ *s >> 15; }

// Numbers of a softmax, numbers near the limits of exp, NaNs, infinities, zeros, subnormals, any bits.
static float number(uint32_t *s) {
    static const uint32_t odd[] = {0x7fc00000, 0xffc12345, 0x7f800001, 0x7f800000, 0xff800000, 0,          0x80000000,
                                   1,          0x80000001, 0x007fffff, 0x42b20000, 0xc2d00000, 0x7f7fffff, 0xff7fffff};
    uint32_t kind = noise(s) >> 8, bits = noise(s);
    float f = (float)(int32_t)bits * 0x1p-28f;
    if (kind % 16 == 0)
        bits = odd[bits % (sizeof odd / sizeof *odd)];
    else if (kind % 16 == 1)
        f = f * 16 - 20, memcpy(&bits, &f, 4);
    else if (kind % 16 != 2)
        memcpy(&bits, &f, 4);
    memcpy(&f, &bits, 4);
    return f;
}

typedef struct Row {
    float x[MOST];
    uint16_t h[MOST], g[MOST]; // bf16, and another
    float wide[MOST], other[MOST]; // the same widened
    float number;
    size_t n;
} Row;

static Row row_make(size_t n, uint32_t *s, bool plain) {
    Row r = {.n = n};
    const GpLevel *p = &gp_level_portable;
    for (size_t i = 0; i < n; i++)
        do
            r.x[i] = number(s), r.other[i] = number(s);
        while (plain && !(fabsf(r.x[i]) < 200 && fabsf(r.other[i]) < 200));
    p->narrow[DT_BF16](r.h, r.x, n), p->narrow[DT_BF16](r.g, r.other, n);
    p->widen[DT_BF16](r.wide, r.h, n), p->widen[DT_BF16](r.other, r.g, n);
    r.number = plain ? -0.75f : number(s);
    return r;
}

static bool same(const void *a, const void *b, size_t bytes) { return !memcmp(a, b, bytes); }

static bool exp_same(const EngLevel *e, const Row *r, float scale) {
    const EngLevel *p = gp_level_portable.eng;
    float want[MOST], got[MOST], sum = 1.5f, total = 1.5f;
    if (e->exp_f32) {
        p->ones[ALU_MUL][ALU_ADD](want, r->x, scale, r->number, r->n);
        p->fn[ACT_EXP](want, want, r->n, 0);
        p->run[ENG_F32][ALU_ADD](&sum, want, r->n);
        e->exp_f32(got, r->x, scale, r->number, &total, r->n);
        if (!same(want, got, 4 * r->n) || !same(&sum, &total, 4))
            return false;
    }
    if (e->exp_bf16) {
        uint16_t h[MOST], k[MOST];
        sum = total = 1.5f;
        p->ones[ALU_MUL][ALU_ADD](want, r->wide, scale, r->number, r->n);
        p->fn[ACT_EXP](want, want, r->n, 0);
        p->run[ENG_F32][ALU_ADD](&sum, want, r->n);
        gp_level_portable.narrow[DT_BF16](h, want, r->n);
        e->exp_bf16(k, r->h, scale, r->number, &total, r->n);
        return same(h, k, 2 * r->n) && same(&sum, &total, 4);
    }
    return true;
}

static bool runs_same(const EngLevel *e, const Row *r) {
    for (int alu = 0; alu < ALU_COUNT; alu++) {
        float want = eng_identity(alu), got = want;
        EngRun *run = gp_level_portable.eng->run[ENG_F32][alu];
        if (!run)
            continue;
        run(&want, r->x, r->n);
        e->run[ENG_F32][alu](&got, r->x, r->n);
        if (!same(&want, &got, 4))
            return false;
    }
    for (int alu = 0; alu < ALU_COUNT; alu++) {
        if (!e->run_bf16[alu])
            continue;
        float want = eng_identity(alu), got = want;
        gp_level_portable.eng->run[ENG_F32][alu](&want, r->wide, r->n);
        e->run_bf16[alu](&got, r->h, r->n);
        if (!same(&want, &got, 4))
            return false;
    }
    return true;
}

static bool values_same(const EngLevel *e, const Row *r) {
    const EngLevel *p = gp_level_portable.eng;
    for (int alu = 0; alu < ALU_COUNT; alu++) {
        float z[MOST];
        uint16_t h[MOST], k[MOST];
        if (e->one_bf16[alu]) {
            p->one[alu](z, r->wide, r->number, r->n);
            gp_level_portable.narrow[DT_BF16](h, z, r->n);
            e->one_bf16[alu](k, r->h, r->number, r->n);
            if (!same(h, k, 2 * r->n))
                return false;
        }
        if (e->bf16[alu]) {
            p->alu[ENG_F32][alu](z, r->wide, r->other, r->n);
            gp_level_portable.narrow[DT_BF16](h, z, r->n);
            e->bf16[alu](k, r->h, r->g, r->n);
            if (!same(h, k, 2 * r->n))
                return false;
        }
    }
    for (int fn = 0; fn < ACT_COUNT; fn++)
        if (e->bf16_fn[fn]) {
            float z[MOST];
            uint16_t h[MOST], k[MOST];
            p->fn[fn](z, r->wide, r->n, 0);
            gp_level_portable.narrow[DT_BF16](h, z, r->n);
            e->bf16_fn[fn](k, r->h, r->n);
            if (!same(h, k, 2 * r->n))
                return false;
        }
    return true;
}

// In blocks of arguments near zero and in others, as one by one. far: one of them is not near.
static bool erf_same(const EngLevel *e, const Row *r, bool far) {
    float x[MOST], y[MOST], one;
    for (size_t i = 0; i < r->n; i++)
        x[i] = isnan(r->x[i]) ? r->x[i] : fmodf(isinf(r->x[i]) ? 0.5f : r->x[i], 1);
    if (far)
        x[r->n / 2] = r->n % 2 ? 1.0f : -3.5f;
    e->fn[ACT_ERF](y, x, r->n, 0);
    for (size_t i = 0; i < r->n; i++) {
        gp_level_portable.eng->fn[ACT_ERF](&one, &x[i], 1, 0);
        if (!same(&one, &y[i], 4))
            return false;
    }
    return true;
}

static bool draws_same(const EngLevel *e, size_t n, uint32_t first) {
    DrawKeys d = draw_keys(first, n, 7);
    uint32_t z[MOST], bound = 3u << 22;
    uint8_t flags[MOST];
    for (uint32_t i = 0; i < n; i++)
        z[i] = first + i;
    e->draw(z, n, d);
    e->draw_flags(flags, z, n, bound, n % 2);
    for (uint32_t i = 0; i < n; i++)
        if (z[i] != draw_bits(d, first + i) || flags[i] != ((z[i] >> (32 - DRAW_BITS) < bound) == n % 2))
            return false;
    return true;
}

int main(void) {
    for (int level = 0; level <= (int)host_best() && level <= HOST_AVX512; level++) {
        const EngLevel *e = gp_level((HostLevel)level)->eng;
        const char *name = host_name((HostLevel)level);
        bool exps = true, runs = true, values = true, erfs = true, draws = true;
        uint32_t seed = 1;
        for (size_t n = 1; n <= MOST; n++)
            for (int again = 0; again < 40; again++) {
                Row r = row_make(n, &seed, again % 2);
                exps &= exp_same(e, &r, 1) && exp_same(e, &r, 0.125f) && exp_same(e, &r, -1.3f);
                runs &= runs_same(e, &r), values &= values_same(e, &r);
                erfs &= erf_same(e, &r, false) && erf_same(e, &r, true), draws &= draws_same(e, n, seed);
            }
        report("exp of a row and its sum", name, exps);
        report("reductions", name, runs);
        report("bf16 in one pass", name, values);
        report("erf by blocks", name, erfs);
        report("draws by number", name, draws);
    }
    return failures != 0;
}
