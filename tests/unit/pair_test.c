// SPDX-License-Identifier: Apache-2.0
// pair_test.c — programs over two cores: the bits of one core, and no race between the two.
//
// Random programs of products, row programs, attention, convolutions, pooling and movement over tensors large enough to be
// cut (tile/pair.c): each runs on one core, on two, and on two under watch. Odd seeds are programs of two devices that exchange
// values: four cores then. Every fourth is one of two by two, whose collectives along either axis keep no order between them.
//   pair_test [PROGRAMS [SEED]]
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "otrn.h"
#include "tests/unit/run_sized.h"

#define TEXT_MAX (1u << 18)
#define VALUES_MAX 64
#define ARGS_MAX 4

typedef struct Value { // a matrix; f32 unless narrow: bf16
    int name, rows, cols;
    bool narrow;
} Value;

typedef struct Maker {
    uint64_t rng;
    char *text;
    size_t n;
    int next;
    Value at[VALUES_MAX];
    int count, devices;
} Maker;

static uint32_t rnd(Maker *m, uint32_t below) {
    m->rng = m->rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->rng >> 33) % below;
}

__attribute__((format(printf, 2, 3))) static void out(Maker *m, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(m->text + m->n, TEXT_MAX - m->n, format, ap);
    va_end(ap);
    m->n += n > 0 && (size_t)n < TEXT_MAX - m->n ? (size_t)n : 0;
}

static const char *type_of(Value v, char *to) {
    snprintf(to, 48, "tensor<%dx%dx%s>", v.rows, v.cols, v.narrow ? "bf16" : "f32");
    return to;
}

static Value push(Maker *m, int rows, int cols, bool narrow) {
    Value v = {m->next++, rows, cols, narrow};
    if (m->count < VALUES_MAX)
        m->at[m->count++] = v;
    return v;
}

static Value pick(Maker *m) { return m->at[rnd(m, (uint32_t)m->count)]; }

// A name for a value on the way, which nothing else uses.
static int temp(Maker *m) { return m->next++; }

static int cast(Maker *m, Value v, bool narrow) {
    char a[48], b[48];
    if (v.narrow == narrow)
        return v.name;
    int t = temp(m);
    out(m, "  %%v%d = stablehlo.convert %%v%d : (%s) -> %s\n", t, v.name, type_of(v, a), type_of((Value){0, v.rows, v.cols, narrow}, b));
    return t;
}

// --- operations ----------------------------------------------------------------------------------------

static void elementwise(Maker *m) {
    static const char *const one[] = {"tanh", "logistic", "negate", "abs"}, *const two[] = {"add", "multiply", "maximum", "subtract"};
    char t[48];
    Value a = pick(m), b = a;
    for (int i = 0; i < m->count; i++)
        if (m->at[i].rows == a.rows && m->at[i].cols == a.cols && m->at[i].narrow == a.narrow && rnd(m, 2))
            b = m->at[i];
    type_of(a, t);
    if (b.name == a.name)
        out(m, "  %%v%d = stablehlo.%s %%v%d : %s\n", m->next, one[rnd(m, 4)], a.name, t);
    else
        out(m, "  %%v%d = stablehlo.%s %%v%d, %%v%d : %s\n", m->next, two[rnd(m, 4)], a.name, b.name, t);
    push(m, a.rows, a.cols, a.narrow);
}

// a b, aᵀ b, a bᵀ, whichever way two values fit; else a aᵀ or aᵀ a.
static void product(Maker *m) {
    char ta[48], tb[48], tc[48];
    Value a = pick(m), b = a;
    for (int i = 0; i < m->count; i++) {
        Value v = m->at[i];
        if (v.narrow == a.narrow && (v.rows == a.rows || v.cols == a.cols || v.rows == a.cols) && rnd(m, 3))
            b = v;
    }
    int da = 1, db = 0;
    if (a.cols != b.rows || rnd(m, 3) == 0) {
        da = a.rows == b.rows && (a.cols != b.cols || rnd(m, 2)) ? 0 : 1;
        db = da;
    }
    int k = da ? a.cols : a.rows, kb = db ? b.cols : b.rows;
    if (k != kb)
        return;
    Value c = {0, da ? a.rows : a.cols, db ? b.rows : b.cols, a.narrow};
    int t = temp(m), s = temp(m);
    out(m, "  %%v%d = stablehlo.dot_general %%v%d, %%v%d, contracting_dims = [%d] x [%d] : (%s, %s) -> %s\n", t, a.name, b.name, da, db,
        type_of(a, ta), type_of(b, tb), type_of(c, tc));
    out(m, "  %%v%d = stablehlo.constant dense<%g> : %s\n", s, 1.0 / (double)k, tc);
    out(m, "  %%v%d = stablehlo.multiply %%v%d, %%v%d : %s\n", m->next, t, s, tc);
    push(m, c.rows, c.cols, c.narrow);
}

// A sum or a maximum along rows or columns, taken off again.
static void reduction(Maker *m) {
    char t[48];
    Value v = pick(m);
    int name = cast(m, v, false), dim = (int)rnd(m, 2), n = dim ? v.rows : v.cols, z = temp(m), r = temp(m), b = temp(m);
    v.narrow = false;
    type_of(v, t);
    bool sum = rnd(m, 2);
    out(m, "  %%v%d = stablehlo.constant dense<%s> : tensor<f32>\n", z, sum ? "0.0" : "0xFF800000");
    out(m, "  %%v%d = stablehlo.reduce(%%v%d init: %%v%d) applies stablehlo.%s across dimensions = [%d] : (%s, tensor<f32>) -> tensor<%dxf32>\n",
        r, name, z, sum ? "add" : "maximum", dim, t, n);
    out(m, "  %%v%d = stablehlo.broadcast_in_dim %%v%d, dims = [%d] : (tensor<%dxf32>) -> %s\n", b, r, 1 - dim, n, t);
    out(m, "  %%v%d = stablehlo.%s %%v%d, %%v%d : %s\n", m->next, sum ? "add" : "subtract", name, b, t);
    push(m, v.rows, v.cols, false);
}

static void movement(Maker *m) {
    char a[48], b[48];
    Value v = pick(m), to = v;
    type_of(v, a);
    switch (rnd(m, 5)) {
    case 0:
        to.rows = v.cols, to.cols = v.rows;
        out(m, "  %%v%d = stablehlo.transpose %%v%d, dims = [1, 0] : (%s) -> %s\n", m->next, v.name, a, type_of(to, b));
        break;
    case 1:
        to.rows = v.rows / 2 + 1;
        out(m, "  %%v%d = stablehlo.slice %%v%d [%d:%d, 0:%d] : (%s) -> %s\n", m->next, v.name, v.rows - to.rows, v.rows, v.cols, a,
            type_of(to, b));
        break;
    case 2: {
        int z = temp(m);
        to.rows += 37, to.cols += 5;
        out(m, "  %%v%d = stablehlo.constant dense<1.5> : tensor<%s>\n", z, v.narrow ? "bf16" : "f32");
        out(m, "  %%v%d = stablehlo.pad %%v%d, %%v%d, low = [30, 2], high = [7, 3], interior = [0, 0] : (%s, tensor<%s>) -> %s\n", m->next,
            v.name, z, a, v.narrow ? "bf16" : "f32", type_of(to, b));
        break;
    }
    case 3:
        to.rows *= 2;
        out(m, "  %%v%d = stablehlo.concatenate %%v%d, %%v%d, dim = 0 : (%s, %s) -> %s\n", m->next, v.name, v.name, a, a, type_of(to, b));
        break;
    default:
        to.narrow = !v.narrow;
        out(m, "  %%v%d = stablehlo.convert %%v%d : (%s) -> %s\n", m->next, v.name, a, type_of(to, b));
    }
    if (to.rows <= 900)
        push(m, to.rows, to.cols, to.narrow);
    else
        m->next++;
}

// Heads of softmax(q kᵀ) v over one value: batches that a block is cut by.
static void attention(Maker *m) {
    Value v = pick(m);
    int heads = 2 + (int)rnd(m, 4), d = v.cols / heads, s = v.rows, t = m->next, name = cast(m, v, false);
    if (d < 8 || s > 400)
        return;
    t = m->next, m->next += 14;
    char q[64], p[64], r[48];
    v.narrow = false;
    type_of(v, r);
    snprintf(q, sizeof q, "tensor<%dx%dx%dxf32>", heads, s, d);
    snprintf(p, sizeof p, "tensor<%dx%dx%dxf32>", heads, s, s);
    out(m, "  %%v%d = stablehlo.slice %%v%d [0:%d, 0:%d] : (%s) -> tensor<%dx%dxf32>\n", t, name, s, heads * d, r, s, heads * d);
    out(m, "  %%v%d = stablehlo.reshape %%v%d : (tensor<%dx%dxf32>) -> tensor<%dx%dx%dxf32>\n", t + 1, t, s, heads * d, s, heads, d);
    out(m, "  %%v%d = stablehlo.transpose %%v%d, dims = [1, 0, 2] : (tensor<%dx%dx%dxf32>) -> %s\n", t + 2, t + 1, s, heads, d, q);
    out(m, "  %%v%d = stablehlo.dot_general %%v%d, %%v%d, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (%s, %s) -> %s\n", t + 3,
        t + 2, t + 2, q, q, p);
    out(m, "  %%v%d = stablehlo.constant dense<0xFF800000> : tensor<f32>\n  %%v%d = stablehlo.constant dense<0.0> : tensor<f32>\n", t + 4, t + 5);
    out(m, "  %%v%d = stablehlo.reduce(%%v%d init: %%v%d) applies stablehlo.maximum across dimensions = [2] : (%s, tensor<f32>) -> tensor<%dx%dxf32>\n",
        t + 6, t + 3, t + 4, p, heads, s);
    out(m, "  %%v%d = stablehlo.broadcast_in_dim %%v%d, dims = [0, 1] : (tensor<%dx%dxf32>) -> %s\n", t + 7, t + 6, heads, s, p);
    out(m, "  %%v%d = stablehlo.subtract %%v%d, %%v%d : %s\n  %%v%d = stablehlo.exponential %%v%d : %s\n", t + 8, t + 3, t + 7, p, t + 9, t + 8, p);
    out(m, "  %%v%d = stablehlo.reduce(%%v%d init: %%v%d) applies stablehlo.add across dimensions = [2] : (%s, tensor<f32>) -> tensor<%dx%dxf32>\n",
        t + 10, t + 9, t + 5, p, heads, s);
    out(m, "  %%v%d = stablehlo.broadcast_in_dim %%v%d, dims = [0, 1] : (tensor<%dx%dxf32>) -> %s\n", t + 11, t + 10, heads, s, p);
    out(m, "  %%v%d = stablehlo.divide %%v%d, %%v%d : %s\n", t + 12, t + 9, t + 11, p);
    out(m, "  %%v%d = stablehlo.dot_general %%v%d, %%v%d, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (%s, %s) -> %s\n", t + 13,
        t + 12, t + 2, p, q, q);
    out(m, "  %%v%d = stablehlo.reshape %%v%d : (%s) -> tensor<%dx%dxf32>\n", m->next, t + 13, q, heads * s, d);
    push(m, heads * s, d, false);
}

// A value as images: a convolution with itself's first rows as the kernel, or the largest of windows.
static void image(Maker *m) {
    Value v = pick(m);
    int b = 4, c = 16, w = 8, h = v.rows * v.cols / (b * c * w), name = cast(m, v, false);
    if (h < 5 || v.rows * v.cols < b * c * w * h)
        return;
    h = h > 24 ? 24 : h;
    int n = b * h * w * c, t = m->next;
    char x[64], r[48];
    v.narrow = false;
    m->next += 5;
    snprintf(x, sizeof x, "tensor<%dx%dx%dx%dxf32>", b, h, w, c);
    out(m, "  %%v%d = stablehlo.reshape %%v%d : (%s) -> tensor<%dxf32>\n", t, name, type_of(v, r), v.rows * v.cols);
    out(m, "  %%v%d = stablehlo.slice %%v%d [0:%d] : (tensor<%dxf32>) -> tensor<%dxf32>\n", t + 1, t, n, v.rows * v.cols, n);
    out(m, "  %%v%d = stablehlo.reshape %%v%d : (tensor<%dxf32>) -> %s\n", t + 2, t + 1, n, x);
    if (rnd(m, 2)) {
        out(m, "  %%v%d = stablehlo.constant dense<0.125> : tensor<3x3x%dx%dxf32>\n", t + 3, c, c);
        out(m, "  %%v%d = stablehlo.convolution(%%v%d, %%v%d) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} "
               "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (%s, tensor<3x3x%dx%dxf32>) -> %s\n", t + 4, t + 2, t + 3, x, c, c, x);
    } else {
        out(m, "  %%v%d = stablehlo.constant dense<0xFF800000> : tensor<f32>\n", t + 3);
        out(m, "  %%v%d = \"stablehlo.reduce_window\"(%%v%d, %%v%d) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, "
               "window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({\n"
               "  ^bb0(%%x: tensor<f32>, %%y: tensor<f32>):\n    %%z = stablehlo.maximum %%x, %%y : tensor<f32>\n    stablehlo.return %%z : tensor<f32>\n"
               "  }) : (%s, tensor<f32>) -> %s\n", t + 4, t + 2, t + 3, x, x);
    }
    out(m, "  %%v%d = stablehlo.reshape %%v%d : (%s) -> tensor<%dx%dxf32>\n", m->next, t + 4, x, b * h * w, c);
    push(m, b * h * w, c, false);
}

// Devices add up a value, or hand it to each other.
static void exchange(Maker *m) {
    char t[48];
    static const char *const groups[] = {"[[0, 1]]> : tensor<1", "[[0, 1], [2, 3]]> : tensor<2", "[[0, 2], [1, 3]]> : tensor<2"};
    static const char *const pairs[] = {"[[0, 1], [1, 0]]> : tensor<2", "[[0, 1], [1, 0], [2, 3], [3, 2]]> : tensor<4", "[[0, 2], [2, 0], [1, 3], [3, 1]]> : tensor<4"};
    Value a = pick(m);
    uint32_t along = m->devices == 4 ? 1 + rnd(m, 2) : 0;
    type_of(a, t);
    if (rnd(m, 2)) {
        int s = temp(m);
        out(m, "  %%v%d = \"stablehlo.collective_permute\"(%%v%d) {source_target_pairs = dense<%sx2xi64>} : (%s) -> %s\n", s, a.name, pairs[along], t, t);
        out(m, "  %%v%d = stablehlo.subtract %%v%d, %%v%d : %s\n", m->next, a.name, s, t);
    } else {
        const char *type = a.narrow ? "bf16" : "f32";
        out(m, "  %%v%d = \"stablehlo.all_reduce\"(%%v%d) ({\n    ^bb0(%%x: tensor<%s>, %%y: tensor<%s>):\n", m->next, a.name, type, type);
        out(m, "      %%s = stablehlo.maximum %%x, %%y : tensor<%s>\n      stablehlo.return %%s : tensor<%s>\n", type, type);
        out(m, "    }) {replica_groups = dense<%sx2xi64>} : (%s) -> %s\n", groups[along], t, t);
    }
    push(m, a.rows, a.cols, a.narrow);
}

// --- programs ------------------------------------------------------------------------------------------

static void make(Maker *m, uint64_t seed) {
    static void (*const ops[])(Maker *) = {elementwise, elementwise, product, product, product, reduction, reduction, movement, attention, image};
    char t[48], types[512] = "", names[512] = "";
    *m = (Maker){.rng = seed * 0x9e3779b97f4a7c15u, .text = m->text, .devices = 1 << (seed % 2 + seed % 4 / 3)};
    int rows = 130 + (int)rnd(m, 400), cols = 64 + (int)rnd(m, 300);
    out(m, "func.func @main(");
    for (int i = 0; i < ARGS_MAX; i++) {
        Value v = push(m, i < 2 ? rows : cols, i < 2 ? cols : rnd(m, 2) ? cols : rows, false);
        out(m, "%s%%v%d: %s%s", i ? ", " : "", v.name, type_of(v, t), i ? "" : " {tf.aliasing_output = 0 : i32}");
    }
    size_t head = m->n;
    for (int i = 0; i < 14; i++) {
        ops[rnd(m, sizeof ops / sizeof *ops)](m);
        if (m->devices > 1 && i % 3 == 2)
            exchange(m);
    }
    out(m, "  %%v%d = stablehlo.multiply %%v0, %%v1 : %s\n", m->next, type_of(m->at[0], t)); // takes the first argument's memory over
    Value last = {m->next, rows, cols, false};
    for (int i = m->count, k = 0; i >= 0 && k < 6; i--, k++) { // then those made last
        Value v = k ? m->at[i] : last;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%%v%d", k ? ", " : "", v.name);
        snprintf(types + strlen(types), sizeof types - strlen(types), "%s%s", k ? ", " : "", type_of(v, t));
    }
    out(m, "  return %s : %s\n}\n", names, types);
    char middle[640];
    size_t n = (size_t)snprintf(middle, sizeof middle, ") -> (%s) {\n", types);
    if (m->n + n >= TEXT_MAX)
        return;
    memmove(m->text + head + n, m->text + head, m->n - head);
    memcpy(m->text + head, middle, n);
    m->n += n;
    m->text[m->n] = 0;
}

typedef struct Memory { // of a device
    void *args[ARGS_MAX], *results[8];
} Memory;

static void memory_fill(Memory *d, const otrn_exe *exe, uint64_t *rng, uint8_t *out) {
    for (size_t i = 0; i < ARGS_MAX; i++) {
        size_t n = otrn_type_bytes(otrn_exe_arg_type(exe, i)) / 4;
        float *x = malloc(n * 4);
        for (size_t k = 0; k < n; k++) {
            *rng = *rng * 6364136223846793005u + 1442695040888963407u;
            x[k] = (float)((int32_t)(*rng >> 40) - (1 << 23)) / (float)(1 << 23);
        }
        d->args[i] = x;
    }
    for (size_t i = 0; i < otrn_exe_num_results(exe); i++) {
        d->results[i] = i ? out : d->args[0];
        out += (otrn_type_bytes(otrn_exe_result_type(exe, i)) + 63) / 64 * 64;
    }
}

// Runs the program; the results' bytes, or NULL with err.
static uint8_t *run(otrn_env *env, const Maker *m, uint64_t seed, size_t *bytes, otrn_error *err) {
    otrn_exe *exe;
    if (otrn_compile(env, m->text, m->n, "pair", &exe, err))
        return NULL;
    size_t each = 0;
    for (size_t i = 0; i < otrn_exe_num_results(exe); i++)
        each += otrn_type_bytes(otrn_exe_result_type(exe, i)) + 64;
    *bytes = each * (size_t)m->devices;
    uint8_t *out = calloc(*bytes, 1);
    uint64_t rng = seed;
    Memory memory[4];
    const void *const *args[4];
    void *const *results[4];
    for (int d = 0; d < m->devices; d++) {
        memory_fill(&memory[d], exe, &rng, out + each * (size_t)d);
        args[d] = (const void *const *)memory[d].args, results[d] = memory[d].results;
    }
    bool ok = (m->devices == 1 ? run_sized(exe, args[0], results[0], err)
                               : run_sized_many(exe, (uint32_t)m->devices, 1, args, results, err)) == OTRN_OK;
    for (int d = 0; d < m->devices; d++) {
        if (ok)
            memcpy(out + each * (size_t)d, memory[d].args[0], otrn_type_bytes(otrn_exe_result_type(exe, 0)));
        for (size_t i = 0; i < ARGS_MAX; i++)
            free(memory[d].args[i]);
    }
    otrn_exe_free(exe);
    if (!ok)
        free(out);
    return ok ? out : NULL;
}

static bool one_program(otrn_env *const envs[3], Maker *m, uint64_t seed) {
    static const char *const names[] = {"one core", "two cores", "two cores, watched"};
    uint8_t *got[3] = {0};
    size_t bytes[3];
    otrn_error err = OTRN_ERROR_INIT;
    bool ok = true;
    make(m, seed);
    for (int i = 0; i < 3 && ok; i++) {
        got[i] = run(envs[i], m, seed, &bytes[i], &err);
        ok = got[i] && (!i || (bytes[i] == bytes[0] && !memcmp(got[i], got[0], bytes[0])));
        if (!ok)
            printf("FAIL seed %llu, %s: %s\n", (unsigned long long)seed, names[i], got[i] ? "other bits" : err.text);
    }
    for (int i = 0; i < 3; i++)
        free(got[i]);
    if (ok)
        return true;
    char path[64];
    snprintf(path, sizeof path, "pair_fail_%llu.mlir", (unsigned long long)seed);
    FILE *f = fopen(path, "w");
    if (f) {
        fwrite(m->text, 1, m->n, f);
        fclose(f);
    }
    return false;
}

int main(int argc, char **argv) {
    otrn_option options[3][4] = {{{"threads", "2"}, {"cache", "off"}, {"lnc", "1"}, {"check", "off"}},
                                 {{"threads", "2"}, {"cache", "off"}, {"lnc", "2"}, {"check", "off"}},
                                 {{"threads", "1"}, {"cache", "off"}, {"lnc", "2"}, {"check", "on"}}};
    otrn_env *envs[3];
    otrn_error err = OTRN_ERROR_INIT;
    Maker m = {.text = malloc(TEXT_MAX)};
    for (int i = 0; i < 3; i++)
        if (!m.text || otrn_open(options[i], 4, &envs[i], &err)) {
            printf("FAIL open: %s\n", err.text);
            return 1;
        }
    int count = argc > 1 ? atoi(argv[1]) : 12, failed = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    for (int i = 0; i < count; i++)
        failed += !one_program(envs, &m, seed + (uint64_t)i);
    for (int i = 0; i < 3; i++)
        otrn_close(envs[i]);
    free(m.text);
    printf("%d programs, %d failed\n", count, failed);
    return failed > 0;
}
