// SPDX-License-Identifier: Apache-2.0
// engine_bench.c — engine instructions on [128, 2048] beside a row-by-row memcpy that moves as many bytes, in the
// same run. One line per instruction: nanoseconds per element with one thread, and its time as a multiple of the
// copy's, best decile by best decile; then the same with all threads.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chip/core/effect.h"

#define ROWS 128
#define COLS 2048
#define PITCH (64 * 1024 + 64) // as SBUF's, padded
#define ROUNDS 200

typedef struct Case {
    const char *name;
    IsaInst in;
    size_t bytes; // read and written an element
} Case;

#define F32_ALL(...) .n = {ROWS, COLS}, .d = {0, 1}, .s = {0, 1}, __VA_ARGS__
#define AT(slot) addr_sbuf(0, (slot) * COLS * 4)
static const Case cases[] = {
    {"tensor_copy f32", {F32_ALL(.op = ISA_COPY, .dtype = DT_F32, .stype = DT_F32)}, 8},
    {"tensor_copy f32 to bf16", {F32_ALL(.op = ISA_COPY, .dtype = DT_BF16, .stype = DT_F32)}, 6},
    {"tensor_tensor f32 add", {F32_ALL(.op = ISA_TENSOR_TENSOR, .op0 = ALU_ADD, .dtype = DT_F32, .stype = DT_F32,
                                       .ttype = DT_F32, .t = {0, 1})}, 12},
    {"tensor_tensor bf16 add", {F32_ALL(.op = ISA_TENSOR_TENSOR, .op0 = ALU_ADD, .dtype = DT_BF16, .stype = DT_BF16,
                                        .ttype = DT_BF16, .t = {0, 1})}, 6},
    {"tensor_scalar f32 mul add", {F32_ALL(.op = ISA_TENSOR_SCALAR, .op0 = ALU_MUL, .op1 = ALU_ADD, .dtype = DT_F32,
                                           .stype = DT_F32, .atype = DT_F32)}, 8},
    {"tensor_reduce f32 add", {.op = ISA_REDUCE, .op0 = ALU_ADD, .dtype = DT_F32, .stype = DT_F32, .n = {ROWS, COLS},
                               .s = {0, 1}}, 4},
    {"activation copy with sum", {F32_ALL(.op = ISA_ACTIVATE, .engine = ENG_SCALAR, .fn = ACT_IDENTITY, .dtype = DT_F32,
                                          .stype = DT_F32, .atype = DT_F32, .rop = ALU_ADD, .rcmd = RCMD_RESET_REDUCE)}, 8},
    {"activation f32 exp", {F32_ALL(.op = ISA_ACTIVATE, .engine = ENG_SCALAR, .fn = ACT_EXP, .dtype = DT_F32,
                                    .stype = DT_F32, .atype = DT_F32)}, 8},
    {"activation f32 gelu", {F32_ALL(.op = ISA_ACTIVATE, .engine = ENG_SCALAR, .fn = ACT_GELU, .dtype = DT_F32,
                                     .stype = DT_F32, .atype = DT_F32)}, 8},
    {"tensor_scan f32 mul add", {F32_ALL(.op = ISA_SCAN, .op0 = ALU_MUL, .op1 = ALU_ADD, .dtype = DT_F32,
                                         .stype = DT_F32, .ttype = DT_F32, .t = {0, 1})}, 12},
};

static clockid_t bench_clock = CLOCK_THREAD_CPUTIME_ID; // so that other programs do not count

static double now_s(void) {
    struct timespec t;
    clock_gettime(bench_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double best_decile(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[n / 10];
}

static uint8_t *memory;
static EngineState state;

static EffOperand at(uint32_t slot) { return (EffOperand){.at = memory + slot * COLS * 4, .pitch = PITCH}; }

static double effect_s(const IsaInst *in, Pool *pool) {
    char why[200];
    EffCall c = {.in = in, .dst = at(0), .src = at(1), .src1 = at(2), .state = &state, .pool = pool,
                 .level = host_best(), .why = why, .why_bytes = sizeof why};
    double start = now_s();
    effect_find(in->op)(&c);
    return now_s() - start;
}

static double copy_s(size_t bytes) { // half of the bytes read, half written
    double start = now_s();
    for (size_t p = 0; p < ROWS; p++) {
        memcpy(memory + p * PITCH + 4 * COLS * 4, memory + p * PITCH, bytes / 2 * COLS);
        __asm__ volatile("" ::: "memory");
    }
    return now_s() - start;
}

static void bench(const Case *c, Pool *pool) {
    static double own[ROUNDS], copy[ROUNDS];
    IsaInst in = c->in;
    in.dst = AT(0), in.src = AT(1), in.src1 = AT(2);
    in.a = scalar_f32(0.5f), in.b = in.op == ISA_ACTIVATE ? scalar_f32(0.25f) : scalar_f32(2);
    for (int i = 0; i < ROUNDS; i++) {
        own[i] = effect_s(&in, pool);
        copy[i] = copy_s(c->bytes);
    }
    double mine = best_decile(own, ROUNDS), theirs = best_decile(copy, ROUNDS);
    printf("%-28s %7.3f ns, %6.2f x memcpy\n", c->name, mine * 1e9 / (ROWS * COLS), mine / theirs);
}

int main(void) {
    memory = aligned_alloc(64, (size_t)PITCH * ROWS + 64);
    if (!memory)
        return 1;
    for (size_t i = 0; i < (size_t)PITCH * ROWS / 4; i++)
        ((float *)memory)[i] = (float)(i % 1001) * 0.001f;
    printf("# %s, one thread\n", host_name(host_best()));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        bench(&cases[i], NULL);
    bench_clock = CLOCK_MONOTONIC;
    Pool *pool = pool_make(0);
    printf("# %d threads\n", pool_threads(pool));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        bench(&cases[i], pool);
    pool_free(pool);
    free(memory);
    return 0;
}
