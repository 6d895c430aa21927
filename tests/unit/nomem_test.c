// SPDX-License-Identifier: Apache-2.0
// nomem_test.c — every allocation fails once: an error each time, nothing leaks, the library goes on.
//
// The C library's allocator is wrapped inside this program. Run n fails the n-th allocation after the
// program starts to compile, until a run needs no more than n.
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "otrn.h"
#include "tests/unit/run_sized.h"

#if defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
int main(void) {
    printf("skipped: needs the plain glibc allocator\n");
    return 0;
}
#else

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static long countdown = -1; // allocations until one fails; negative: none does
static long live;           // allocated and not freed
static bool counting;

static bool fails(void) {
    if (!counting || countdown < 0)
        return false;
    return countdown-- == 0;
}

static void *note(void *p) {
    if (counting && p)
        live++;
    return p;
}

void *malloc(size_t n) { return fails() ? (errno = ENOMEM, NULL) : note(__libc_malloc(n)); }
void *calloc(size_t n, size_t m) { return fails() ? (errno = ENOMEM, NULL) : note(__libc_calloc(n, m)); }
void *realloc(void *p, size_t n) { return fails() ? (errno = ENOMEM, NULL) : __libc_realloc(p, n); }
void free(void *p) {
    if (counting && p)
        live--;
    __libc_free(p);
}
int posix_memalign(void **out, size_t align, size_t n) {
    if (fails())
        return ENOMEM;
    *out = note(__libc_memalign(align, n));
    return *out ? 0 : ENOMEM;
}

static const char program[] =
    "func.func public @main(%x: tensor<6x5xf32>, %w: tensor<5x3xf32>) -> (tensor<6x3xf32>, tensor<3xf32>) {\n"
    "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<6x5xf32>, tensor<5x3xf32>) "
    "-> tensor<6x3xf32>\n"
    "  %1 = stablehlo.tanh %0 : tensor<6x3xf32>\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0] : "
    "(tensor<6x3xf32>, tensor<f32>) -> tensor<3xf32>\n"
    "  return %1, %2 : tensor<6x3xf32>, tensor<3xf32>\n}\n";

static otrn_status run_once(otrn_env *env, otrn_error *err) {
    float x[30], w[15], y[18], s[3];
    for (int i = 0; i < 30; i++)
        x[i] = (float)i;
    for (int i = 0; i < 15; i++)
        w[i] = 0.01f * (float)i;
    const void *args[] = {x, w};
    void *results[] = {y, s};
    otrn_exe *exe;
    otrn_status st = otrn_compile(env, program, sizeof program - 1, "test", &exe, err);
    if (st)
        return st;
    st = run_sized(exe, args, results, err);
    otrn_report report = OTRN_REPORT_INIT;
    if (!st)
        st = otrn_time(exe, "trn1", &report, err);
    otrn_exe_free(exe);
    return st;
}

int main(void) {
    otrn_option options[] = {{"threads", "1"}, {"cache", "off"}};
    otrn_env *env;
    otrn_error err = OTRN_ERROR_INIT;
    if (otrn_open(options, 2, &env, &err) || run_once(env, &err)) {
        printf("FAIL a plain run: %s\n", err.text);
        return 1;
    }
    for (long n = 0;; n++) {
        counting = true, countdown = n, live = 0;
        otrn_status st = run_once(env, &err);
        bool failed_one = countdown < 0;
        counting = false;
        if (live || (failed_one && st != OTRN_NOMEM) || (!failed_one && st)) {
            printf("FAIL allocation %ld: status %s, %ld blocks left\n", n, otrn_status_name(st), live);
            return 1;
        }
        if (!failed_one) {
            printf("ok %ld allocations failed in turn\n", n);
            break;
        }
    }
    otrn_close(env);
    return 0;
}
#endif
