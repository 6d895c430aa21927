// SPDX-License-Identifier: Apache-2.0
// load_bench.c — from an artifact's file to a program that is ready to execute.
//
// Prints where the time goes, the ratio against reading the file and computing one checksum over it, and the time an
// instruction costs. Every figure is the best of the rounds. Without a file it loads a chain of products that it
// compiles itself, of about as many instructions as a step of GPT-2 124M.
// Usage: load_bench [FILE.otrn [rounds]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "chip/core/chip.h"
#include "rt/rt.h"

#define ROUNDS 15
#define PRODUCTS 6

typedef struct Times { // seconds
    double read, crc, load, verify, chip, free, whole, close;
} Times;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double *each(Times *t, int i) { return (double *)t + i; }

static void stop(const otrn_error *err) {
    char text[2048];
    otrn_error_print(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

// The stages one by one.
static void stages(const char *path, Pool *pool, Times *t, uint32_t *ncode, size_t *size) {
    Ctx ctx = {0};
    Arena arena;
    jmp_buf here;
    arena_init(&arena, &ctx);
    if (!CTX_TRY(&ctx, here))
        stop(&ctx.err);
    double at = now_s();
    const uint8_t *bytes = file_read(&ctx, &arena, path, size);
    t->read = now_s() - at, at += t->read;
    volatile uint32_t sum = crc32c(0, bytes, *size);
    (void)sum;
    t->crc = now_s() - at, at += t->crc;
    Artifact *art = artifact_read(&ctx, &arena, path, bytes, *size, pool);
    t->load = now_s() - at, at += t->load;
    artifact_verify_for(&ctx, art, path, &isa_chip_largest, pool);
    t->verify = now_s() - at, at += t->verify;
    chip_load(&ctx, &arena, art, pool_threads(pool), false, pool);
    t->chip = now_s() - at, at += t->chip;
    *ncode = art->ncode + (art->peer ? art->peer->ncode : 0);
    arena_fini(&arena);
    t->free = now_s() - at;
}

// As a program does it.
static void whole(const char *path, otrn_env *env, Times *t) {
    otrn_exe *exe;
    otrn_error err = OTRN_ERROR_INIT;
    double at = now_s();
    if (otrn_compile_file(env, path, &exe, &err) != OTRN_OK)
        stop(&err);
    t->whole = now_s() - at, at += t->whole;
    otrn_exe_free(exe);
    t->close = now_s() - at;
}

static void program_make(otrn_env *env, const char *path) {
    static char text[4096];
    int n = snprintf(text, sizeof text, "func.func public @main(%%v0: tensor<3072x3072xf32>, %%w: tensor<3072x3072xf32>) -> tensor<3072x3072xf32> {\n");
    for (int i = 0; i < PRODUCTS; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "%%v%d = stablehlo.dot_general %%v%d, %%w, contracting_dims = [1] x [0] : (tensor<3072x3072xf32>, "
                      "tensor<3072x3072xf32>) -> tensor<3072x3072xf32>\n", i + 1, i);
    n += snprintf(text + n, sizeof text - (size_t)n, "return %%v%d : tensor<3072x3072xf32>\n}\n", PRODUCTS);
    otrn_exe *exe;
    otrn_error err = OTRN_ERROR_INIT;
    if (otrn_compile(env, text, (size_t)n, "products.mlir", &exe, &err) != OTRN_OK)
        stop(&err);
    size_t size;
    const void *bytes = otrn_exe_bytes(exe, &size);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f))
        exit(1);
    otrn_exe_free(exe);
}

int main(int argc, char **argv) {
    char own[64] = "";
    otrn_env *env;
    otrn_error err = OTRN_ERROR_INIT;
    otrn_option opts[] = {{"cache", "off"}};
    if (otrn_open(opts, 1, &env, &err) != OTRN_OK)
        stop(&err);
    const char *path = argc > 1 ? argv[1] : own;
    if (argc < 2) {
        snprintf(own, sizeof own, "/tmp/otrn_load_bench_%ld.otrn", (long)getpid());
        program_make(env, own);
    }
    int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;
    Pool *pool = pool_make(0);
    Times best;
    uint32_t ncode = 0;
    size_t size = 0;
    for (int i = 0; i < rounds; i++) {
        Times t;
        stages(path, pool, &t, &ncode, &size);
        whole(path, env, &t);
        for (size_t k = 0; k < sizeof t / sizeof(double); k++)
            if (!i || *each(&t, (int)k) < *each(&best, (int)k))
                *each(&best, (int)k) = *each(&t, (int)k);
    }
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    double plain = best.read + best.crc;
    printf("load: %u instructions, %.1f MB\n", ncode, (double)size * 1e-6);
    printf("  read %.2f ms, checksum %.2f, decode %.2f, verify %.2f, host plan %.2f, free %.2f\n", best.read * 1e3, best.crc * 1e3,
           best.load * 1e3, best.verify * 1e3, best.chip * 1e3, best.free * 1e3);
    printf("  file to ready %.2f ms, %.0f ns an instruction, %.1f times reading and one checksum; free %.2f ms; peak %.0f MB\n",
           best.whole * 1e3, best.whole * 1e9 / ncode, best.whole / plain, best.close * 1e3, (double)use.ru_maxrss / 1024);
    pool_free(pool);
    otrn_close(env);
    if (*own)
        unlink(own);
    return 0;
}
