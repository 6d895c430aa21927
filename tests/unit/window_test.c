// SPDX-License-Identifier: Apache-2.0
// window_test.c — convolutions, pooling and movement that the engines and the DMA do: chip against evaluator.
//
// Programs of one operation with random shapes and attributes. Arguments are eighths between -1 and 1 (maxima see
// ties), so every sum is exact in fp32 and results must be equal whatever the order. Each runs with one thread and the
// best host kernels under the race checker, with three threads and the portable kernels to the same bits, and on trn1,
// whose transfers cannot transpose.
//   window_test [PROGRAMS [SEED]]   a failure prints the program
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/artifact.h"
#include "hlo/eval.h"
#include "otrn.h"
#include "pass/pass.h"
#include "read/read.h"
#include "tests/unit/run_sized.h"

#define ARGS_MAX 4
#define TEXT_MAX 8192
enum { TRN1 = 2, ENVS }; // runs: the last one on another chip

typedef struct Case {
    uint64_t rng;
    char text[TEXT_MAX];
    int n;
    bool on_engines; // no GpSimd kernel may be left
    int last;        // of a depthwise convolution: channels 1 first, 2 last, 0 anywhere
    bool by_kernel;
} Case;

static uint32_t rnd(Case *c, uint32_t below) {
    c->rng += 0x9e3779b97f4a7c15u;
    uint64_t z = c->rng;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 11) % below;
}

static void out(Case *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void out(Case *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    c->n += vsnprintf(c->text + c->n, (size_t)(TEXT_MAX - c->n), fmt, ap);
    va_end(ap);
}

static void out_list(Case *c, const int64_t *v, int n) {
    for (int i = 0; i < n; i++)
        out(c, "%s%lld", i ? ", " : "", (long long)v[i]);
}

typedef struct Shape {
    const char *type;
    int rank;
    int64_t dims[8];
} Shape;

static void out_type(Case *c, const Shape *s) {
    out(c, "tensor<");
    for (int i = 0; i < s->rank; i++)
        out(c, "%lldx", (long long)s->dims[i]);
    out(c, "%s>", s->type);
}

static void shuffle(Case *c, int *v, int n) {
    for (int i = n - 1; i > 0; i--) {
        int j = (int)rnd(c, (uint32_t)i + 1), t = v[i];
        v[i] = v[j], v[j] = t;
    }
}

// --- convolutions ------------------------------------------------------------------------------------------

// Dimension numbers: how `s` (given as first, second, space…) lies in memory.
static void lay_out(Case *c, Shape *s, const char *names, char *text, bool plain) {
    int order[8];
    Shape from = *s;
    for (int i = 0; i < s->rank; i++)
        order[i] = i;
    if (c->last) { // image by image, channel by channel or place by place
        bool swaps = c->by_kernel && s->dims[1] != s->dims[0] && names[0] == 'b' && s->dims[0] > 1;
        int channel = swaps ? 0 : 1;
        order[0] = !channel, order[c->last == 1 ? 1 : s->rank - 1] = channel;
        for (int i = 2; i < s->rank; i++)
            order[c->last == 1 ? i : i - 1] = i;
    } else if (!plain) {
        shuffle(c, order, s->rank);
    }
    int n = sprintf(text, "[");
    for (int i = 0; i < s->rank; i++) {
        s->dims[i] = from.dims[order[i]];
        n += sprintf(text + n, "%s%c", i ? ", " : "", order[i] < 2 ? names[order[i]] : '0' + order[i] - 2);
    }
    sprintf(text + n, "]");
}

typedef struct Window { // numbers of up to three spatial axes
    int ns;
    int64_t lo[3], hi[3], ld[3], rd[3], st[3], rev[3], x[3], k[3], y[3];
} Window;

static void window_size(Window *w, int i) { // the result's, padded so that there is one
    int64_t size = (w->x[i] - 1) * w->ld[i] + 1 + w->lo[i] + w->hi[i], span = (w->k[i] - 1) * w->rd[i] + 1;
    if (size < span)
        w->hi[i] += span - size, size = span;
    w->y[i] = (size - span) / w->st[i] + 1;
}

static void out_conv(Case *c, const Window *w, Shape s[3], int64_t groups, bool by_batch, bool reverse_first, bool plain) {
    for (int i = 0; i < w->ns; i++)
        s[0].dims[2 + i] = w->x[i], s[1].dims[2 + i] = w->k[i], s[2].dims[2 + i] = w->y[i];
    char names[3][40];
    static const char *const letters[3] = {"bf", "io", "bf"};
    for (int i = 0; i < 3; i++)
        lay_out(c, &s[i], letters[i], names[i], plain);
    out(c, "func.func @main(%%x: ");
    out_type(c, &s[0]), out(c, ", %%w: "), out_type(c, &s[1]), out(c, ") -> "), out_type(c, &s[2]), out(c, " {\n");
    if (reverse_first) {
        int dim = (int)(strchr(names[1], '0') - names[1] - 1) / 3;
        out(c, "  %%r = stablehlo.reverse %%w, dims = [%d] : ", dim), out_type(c, &s[1]), out(c, "\n");
    }
    out(c, "  %%0 = stablehlo.convolution(%%x, %s) dim_numbers = %sx%s->%s, window = {stride = [", reverse_first ? "%r" : "%w",
        names[0], names[1], names[2]);
    out_list(c, w->st, w->ns), out(c, "], pad = [");
    for (int i = 0; i < w->ns; i++)
        out(c, "%s[%lld, %lld]", i ? ", " : "", (long long)w->lo[i], (long long)w->hi[i]);
    out(c, "], lhs_dilate = ["), out_list(c, w->ld, w->ns), out(c, "], rhs_dilate = ["), out_list(c, w->rd, w->ns), out(c, "], reverse = [");
    for (int i = 0; i < w->ns; i++)
        out(c, "%s%s", i ? ", " : "", w->rev[i] ? "true" : "false");
    out(c, "]} {batch_group_count = %lld : i64, feature_group_count = %lld : i64} : (", (long long)(by_batch ? groups : 1),
        (long long)(by_batch ? 1 : groups));
    out_type(c, &s[0]), out(c, ", "), out_type(c, &s[1]), out(c, ") -> "), out_type(c, &s[2]), out(c, "\n  return %%0 : ");
    out_type(c, &s[2]), out(c, "\n}\n");
}

static void make_conv(Case *c) {
    Window w = {.ns = (int)rnd(c, 4)};
    static const char *const types[] = {"f32", "f32", "f32", "bf16"};
    const char *type = types[rnd(c, 4)];
    int64_t groups = rnd(c, 4) ? 1 : 1 + rnd(c, 4), by_batch = groups > 1 && rnd(c, 2), most = w.ns == 3 ? 6 : w.ns == 2 ? 14 : 70;
    int64_t b = (1 + rnd(c, rnd(c, 3) ? 3 : 20)) * (by_batch ? groups : 1), wide = rnd(c, 4) ? 20 : 200;
    int64_t in = (1 + rnd(c, (uint32_t)wide)), f = (1 + rnd(c, rnd(c, 4) ? 20 : 600)) * groups;
    bool product = rnd(c, 4) == 0; // every axis is places alone or summed alone
    for (int i = 0; i < w.ns; i++) {
        w.x[i] = 1 + rnd(c, (uint32_t)most), w.k[i] = 1 + rnd(c, rnd(c, 5) ? 4 : (uint32_t)most);
        w.lo[i] = (int64_t)rnd(c, 5) - 1, w.hi[i] = (int64_t)rnd(c, 5) - 1;
        w.ld[i] = rnd(c, 3) ? 1 : 1 + rnd(c, 3), w.rd[i] = rnd(c, 3) ? 1 : 1 + rnd(c, 3), w.st[i] = rnd(c, 2) ? 1 : 1 + rnd(c, 3);
        w.rev[i] = rnd(c, 3) == 0;
        if (product)
            w.k[i] = rnd(c, 2) ? 1 : w.x[i], w.lo[i] = w.hi[i] = 0, w.ld[i] = w.rd[i] = w.st[i] = 1, w.rev[i] = 0;
        window_size(&w, i);
    }
    Shape s[3] = {{type, w.ns + 2, {b, by_batch ? in : in * groups}}, {type, w.ns + 2, {in, f}},
                  {type, w.ns + 2, {by_batch ? b / groups : b, f}}};
    bool plain = rnd(c, 3) == 0;
    out_conv(c, &w, s, groups, by_batch, w.ns && rnd(c, 3) == 0, plain);
}

// Several taps over images with many channels, first or last: slabs in SBUF (tile/slab.c).
static void make_slabs(Case *c) {
    static const uint32_t image[] = {300, 24, 9};
    static const uint32_t channels[] = {8, 40, 64, 150};
    Window w = {.ns = 1 + (int)rnd(c, 3)};
    const char *type = rnd(c, 3) ? "f32" : "bf16";
    int64_t in = 1 + rnd(c, channels[rnd(c, 4)]), f = 1 + rnd(c, channels[rnd(c, 4)]);
    for (int i = 0; i < w.ns; i++) {
        w.x[i] = 3 + rnd(c, image[w.ns - 1]), w.k[i] = 1 + rnd(c, 4), w.lo[i] = rnd(c, 3), w.hi[i] = rnd(c, 3);
        w.ld[i] = rnd(c, 3) ? 1 : 2, w.rd[i] = rnd(c, 4) ? 1 : 2, w.st[i] = rnd(c, 3) ? 1 : 2, w.rev[i] = rnd(c, 3) == 0;
        window_size(&w, i);
    }
    int64_t b = 1 + rnd(c, 5);
    Shape s[3] = {{type, w.ns + 2, {b, in}}, {type, w.ns + 2, {in, f}}, {type, w.ns + 2, {b, f}}};
    c->last = 1 + (int)rnd(c, 2);
    out_conv(c, &w, s, 1, false, false, false);
}

// Depthwise: by images or by the kernel (few results, a kernel as large as an image), in the layouts of channels first and
// last mostly; sums stay exact in fp32.
static void make_depthwise(Case *c) {
    Window w = {.ns = 1 + (int)rnd(c, 3)};
    const char *type = rnd(c, 4) ? "f32" : "bf16";
    bool by_kernel = rnd(c, 3) == 0;
    static const uint32_t image[] = {900, 40, 13};
    int64_t channels = 2 + rnd(c, rnd(c, 2) ? 40 : 200), batch = 1 + rnd(c, 6);
    for (int i = 0; i < w.ns; i++) {
        w.x[i] = 2 + rnd(c, image[w.ns - 1]), w.k[i] = by_kernel ? 1 + rnd(c, (uint32_t)w.x[i]) : 1 + rnd(c, 5);
        w.lo[i] = (int64_t)rnd(c, 5) - 1, w.hi[i] = by_kernel ? 0 : (int64_t)rnd(c, 5) - 1;
        w.ld[i] = rnd(c, 3) ? 1 : 1 + rnd(c, 3), w.rd[i] = rnd(c, 3) ? 1 : 1 + rnd(c, 3), w.st[i] = rnd(c, 2) ? 1 : 1 + rnd(c, 3);
        w.rev[i] = rnd(c, 4) == 0;
        window_size(&w, i);
        if (by_kernel && w.y[i] > 4)
            w.st[i] = w.y[i], window_size(&w, i);
    }
    Shape s[3] = {{type, w.ns + 2, {batch, channels}}, {type, w.ns + 2, {1, channels}}, {type, w.ns + 2, {batch, channels}}};
    if (by_kernel)
        s[0].dims[0] = channels, s[0].dims[1] = batch, s[1].dims[0] = batch, s[2].dims[0] = 1;
    c->last = rnd(c, 8) ? 1 + (int)rnd(c, 2) : 0;
    c->by_kernel = by_kernel;
    int64_t places = 1, taps = 1;
    bool dense = true; // taps of dilated images meet few places: the price decides
    for (int i = 0; i < w.ns; i++) {
        places *= by_kernel ? w.k[i] : w.y[i], taps *= by_kernel ? w.y[i] : w.k[i];
        dense = dense && w.ld[i] == 1;
    }
    c->on_engines = c->last && dense && channels * batch >= 256 && channels >= 8 && places >= 512 && places * taps * channels * batch >= 1 << 18;
    out_conv(c, &w, s, channels, by_kernel, false, false);
}

// Many small groups, by features or by the batch, enough work to be packed.
static void make_groups(Case *c) {
    Window w = {.ns = 1 + (int)rnd(c, 2)};
    const char *type = rnd(c, 4) ? "f32" : "bf16";
    bool by_batch = rnd(c, 2);
    int64_t groups = 2 + rnd(c, 40), in = 2 + rnd(c, 6), outs = 2 + rnd(c, 6), other = 1 + rnd(c, 4);
    for (int i = 0; i < w.ns; i++) {
        w.x[i] = w.ns == 1 ? 80 + rnd(c, 300) : 12 + rnd(c, 12), w.k[i] = by_batch ? w.x[i] - rnd(c, 3) : 1 + rnd(c, 3);
        w.lo[i] = rnd(c, 2), w.hi[i] = rnd(c, 2), w.ld[i] = rnd(c, 4) ? 1 : 2, w.rd[i] = w.st[i] = 1 + rnd(c, 2), w.rev[i] = rnd(c, 4) == 0;
        w.rd[i] = by_batch ? w.ld[i] : w.rd[i];
        window_size(&w, i);
    }
    Shape s[3] = {{type, w.ns + 2, {other, in * groups}}, {type, w.ns + 2, {in, outs * groups}}, {type, w.ns + 2, {other, outs * groups}}};
    if (by_batch)
        s[0].dims[0] = in * groups, s[0].dims[1] = other, s[1].dims[0] = other, s[2].dims[0] = in;
    out_conv(c, &w, s, groups, by_batch, false, rnd(c, 2));
}

// --- movement ----------------------------------------------------------------------------------------------

static Shape any_shape(Case *c, int64_t most) {
    static const char *const types[] = {"f32", "bf16", "i8", "i32", "f32"};
    Shape s = {types[rnd(c, 5)], 1 + (int)rnd(c, 5), {0}};
    for (int i = s.rank; i-- > 0;) {
        s.dims[i] = 1 + rnd(c, (uint32_t)(most > 60 ? 60 : most));
        most = most / s.dims[i] + 1;
    }
    return s;
}

static void make_pad(Case *c) {
    Shape in = any_shape(c, 20000), to = in;
    int64_t lo[8], hi[8], gap[8];
    for (int i = 0; i < in.rank; i++) {
        gap[i] = rnd(c, 4) ? 0 : rnd(c, 3), lo[i] = rnd(c, 2) ? 0 : (int64_t)rnd(c, 6) - 2, hi[i] = rnd(c, 2) ? 0 : (int64_t)rnd(c, 6) - 2;
        to.dims[i] = in.dims[i] + (in.dims[i] - 1) * gap[i] + lo[i] + hi[i];
        if (to.dims[i] < 1)
            hi[i] += 1 - to.dims[i], to.dims[i] = 1;
    }
    Shape scalar = {in.type, 0, {0}};
    out(c, "func.func @main(%%x: "), out_type(c, &in), out(c, ") -> "), out_type(c, &to);
    out(c, " {\n  %%z = stablehlo.constant dense<%s> : ", in.type[0] == 'i' ? "7" : "-2.5"), out_type(c, &scalar);
    out(c, "\n  %%0 = stablehlo.pad %%x, %%z, low = ["), out_list(c, lo, in.rank), out(c, "], high = ["), out_list(c, hi, in.rank);
    out(c, "], interior = ["), out_list(c, gap, in.rank), out(c, "] : ("), out_type(c, &in), out(c, ", "), out_type(c, &scalar);
    out(c, ") -> "), out_type(c, &to), out(c, "\n  return %%0 : "), out_type(c, &to), out(c, "\n}\n");
}

static void make_reverse(Case *c) {
    Shape in = any_shape(c, 20000);
    out(c, "func.func @main(%%x: "), out_type(c, &in), out(c, ") -> "), out_type(c, &in);
    out(c, " {\n  %%0 = stablehlo.reverse %%x, dims = [");
    bool some = false;
    for (int i = 0; i < in.rank; i++)
        if (rnd(c, 2)) {
            out(c, "%s%d", some ? ", " : "", i);
            some = true;
        }
    out(c, "] : "), out_type(c, &in), out(c, "\n  return %%0 : "), out_type(c, &in), out(c, "\n}\n");
}

static void make_pool(Case *c) { // any number of windowed dimensions, padding and dilation of both kinds
    static const char *const ops[] = {"add", "maximum", "minimum"}, *const neutral[] = {"0.0", "0xFF800000", "0x7F800000"};
    uint32_t k = rnd(c, 3);
    bool narrow = k && rnd(c, 4) == 0;
    Shape in = {narrow ? "bf16" : "f32", 2 + (int)rnd(c, 4), {0}}, to, scalar = {in.type, 0, {0}};
    int64_t win[8], st[8], gap[8], base[8], lo[8], hi[8], most = 30000;
    for (int i = in.rank; i-- > 0;) {
        bool plain = rnd(c, 2);
        in.dims[i] = 1 + rnd(c, (uint32_t)(most > 40 ? 40 : most));
        most = most / in.dims[i] + 1;
        win[i] = plain ? 1 : 1 + rnd(c, 4), st[i] = plain ? 1 : 1 + rnd(c, 3), gap[i] = plain || rnd(c, 3) ? 1 : 2;
        base[i] = plain || rnd(c, 4) ? 1 : 2, lo[i] = plain ? 0 : (int64_t)rnd(c, 3), hi[i] = plain ? 0 : (int64_t)rnd(c, 3);
        int64_t size = (in.dims[i] - 1) * base[i] + 1 + lo[i] + hi[i], reach = (win[i] - 1) * gap[i] + 1;
        if (size < reach)
            hi[i] += reach - size, size = reach;
        to.dims[i] = (size - reach) / st[i] + 1;
    }
    to.type = in.type, to.rank = in.rank;
    out(c, "func.func @main(%%x: "), out_type(c, &in), out(c, ") -> "), out_type(c, &to), out(c, " {\n  %%z = stablehlo.constant dense<%s> : ", narrow ? k == 1 ? "0xFF80" : "0x7F80" : neutral[k]);
    out_type(c, &scalar), out(c, "\n  %%0 = \"stablehlo.reduce_window\"(%%x, %%z) <{window_dimensions = array<i64: "), out_list(c, win, in.rank);
    out(c, ">, window_strides = array<i64: "), out_list(c, st, in.rank), out(c, ">, base_dilations = array<i64: "), out_list(c, base, in.rank);
    out(c, ">, window_dilations = array<i64: "), out_list(c, gap, in.rank), out(c, ">, padding = dense<[");
    for (int i = 0; i < in.rank; i++)
        out(c, "%s[%lld, %lld]", i ? ", " : "", (long long)lo[i], (long long)hi[i]);
    out(c, "]> : tensor<%dx2xi64>}> ({\n    ^bb0(%%a: ", in.rank), out_type(c, &scalar), out(c, ", %%b: "), out_type(c, &scalar);
    out(c, "):\n      %%s = stablehlo.%s %%a, %%b : ", ops[k]), out_type(c, &scalar), out(c, "\n      stablehlo.return %%s : "), out_type(c, &scalar);
    out(c, "\n    }) : ("), out_type(c, &in), out(c, ", "), out_type(c, &scalar), out(c, ") -> "), out_type(c, &to);
    out(c, "\n  return %%0 : "), out_type(c, &to), out(c, "\n}\n");
}

static void make_batch(Case *c) { // small products, one or two batch dimensions anywhere in the operands
    const char *type = rnd(c, 4) ? "f32" : "bf16";
    int64_t b0 = 1 + rnd(c, 30), b1 = 1 + rnd(c, 6), m = 1 + rnd(c, 60), n = 1 + rnd(c, 60), k = 1 + rnd(c, 140);
    Shape s[3] = {{type, 4, {0}}, {type, 4, {0}}, {type, 4, {b0, b1, m, n}}};
    int at[2][4]; // where batch 0, batch 1, free and contracting dimension are
    for (int i = 0; i < 2; i++) {
        int64_t size[4] = {b0, b1, i ? n : m, k};
        for (int d = 0; d < 4; d++)
            at[i][d] = d;
        shuffle(c, at[i], 4);
        for (int d = 0; d < 4; d++)
            s[i].dims[at[i][d]] = size[d];
    }
    out(c, "func.func @main(%%x: "), out_type(c, &s[0]), out(c, ", %%y: "), out_type(c, &s[1]), out(c, ") -> "), out_type(c, &s[2]);
    out(c, " {\n  %%0 = stablehlo.dot_general %%x, %%y, batching_dims = [%d, %d] x [%d, %d], contracting_dims = [%d] x [%d] : (", at[0][0],
        at[0][1], at[1][0], at[1][1], at[0][3], at[1][3]);
    out_type(c, &s[0]), out(c, ", "), out_type(c, &s[1]), out(c, ") -> "), out_type(c, &s[2]), out(c, "\n  return %%0 : ");
    out_type(c, &s[2]), out(c, "\n}\n");
}

static void make_dynamic(Case *c) { // slices and updates at places inside and outside, some known
    Shape in = any_shape(c, 60000), part = in, i32 = {"i32", 0, {0}}, i64 = {"i64", 0, {0}};
    bool update = rnd(c, 2), in_place = rnd(c, 2), known[8];
    for (int i = 0; i < in.rank; i++) {
        known[i] = rnd(c, 3) == 0;
        part.dims[i] = rnd(c, 2) ? in.dims[i] : 1 + rnd(c, (uint32_t)in.dims[i]);
    }
    bool wide = rnd(c, 3) == 0;
    const Shape *index = wide ? &i64 : &i32;
    out(c, "func.func @main(%%x: "), out_type(c, &in), out(c, ", %%u: "), out_type(c, &part), out(c, ", %%i: tensor<1x%s>) -> ", index->type);
    out_type(c, update ? &in : &part), out(c, " {\n  %%n = stablehlo.negate %%x : "), out_type(c, &in), out(c, "\n  %%j = stablehlo.reshape %%i : (tensor<1x%s>) -> ", index->type);
    out_type(c, index), out(c, "\n");
    for (int i = 0; i < in.rank; i++)
        if (known[i])
            out(c, "  %%k%d = stablehlo.constant dense<%d> : ", i, (int)rnd(c, 12) - 2), out_type(c, index), out(c, "\n");
    out(c, "  %%0 = stablehlo.dynamic_%s %s", update ? "update_slice" : "slice", in_place ? "%n" : "%x");
    out(c, "%s", update ? ", %u" : "");
    for (int i = 0; i < in.rank; i++)
        known[i] ? out(c, ", %%k%d", i) : out(c, ", %%j");
    if (!update)
        out(c, ", sizes = ["), out_list(c, part.dims, in.rank), out(c, "]");
    out(c, " : ("), out_type(c, &in);
    if (update)
        out(c, ", "), out_type(c, &part);
    for (int i = 0; i < in.rank; i++)
        out(c, ", "), out_type(c, index);
    out(c, ") -> "), out_type(c, update ? &in : &part), out(c, "\n  return %%0 : "), out_type(c, update ? &in : &part), out(c, "\n}\n");
}

static void make_transpose(Case *c) {
    Shape in = any_shape(c, 20000);
    int perm[8] = {1, 0};
    if (rnd(c, 3) == 0) { // long and narrow
        bool tall = rnd(c, 2);
        in.rank = 2, in.dims[tall ? 0 : 1] = 1 + rnd(c, 9000), in.dims[tall ? 1 : 0] = 1 + rnd(c, 70);
    } else {
        for (int i = 0; i < in.rank; i++)
            perm[i] = i;
        shuffle(c, perm, in.rank);
    }
    Shape to = in;
    for (int i = 0; i < in.rank; i++)
        to.dims[i] = in.dims[perm[i]];
    out(c, "func.func @main(%%x: "), out_type(c, &in), out(c, ") -> "), out_type(c, &to), out(c, " {\n  %%0 = stablehlo.transpose %%x, dims = [");
    for (int i = 0; i < in.rank; i++)
        out(c, "%s%d", i ? ", " : "", perm[i]);
    out(c, "] : ("), out_type(c, &in), out(c, ") -> "), out_type(c, &to), out(c, "\n  return %%0 : "), out_type(c, &to), out(c, "\n}\n");
}

static void make_gather(Case *c) {
    Shape table = {rnd(c, 4) ? "f32" : "bf16", 2 + (int)rnd(c, 2), {1 + rnd(c, 30), 1 + rnd(c, 80), 1 + rnd(c, 5)}};
    Shape idx = {"i32", 2 + (int)rnd(c, 2), {1 + rnd(c, 300), 1 + rnd(c, 4), 1}};
    idx.dims[idx.rank - 1] = 1;
    int nb = idx.rank - 1;
    Shape to = {table.type, nb + table.rank - 1, {idx.dims[0]}};
    for (int i = 0; i < nb; i++)
        to.dims[i] = idx.dims[i];
    for (int i = 1; i < table.rank; i++)
        to.dims[nb + i - 1] = table.dims[i];
    c->on_engines = table.dims[1] * (table.rank > 2 ? table.dims[2] : 1) >= 16;
    out(c, "func.func @main(%%x: "), out_type(c, &table), out(c, ", %%i: "), out_type(c, &idx), out(c, ") -> "), out_type(c, &to);
    out(c, " {\n  %%0 = \"stablehlo.gather\"(%%x, %%i) <{dimension_numbers = #stablehlo.gather<offset_dims = [");
    for (int i = 1; i < table.rank; i++)
        out(c, "%s%d", i > 1 ? ", " : "", nb + i - 1);
    out(c, "], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = %d>, slice_sizes = array<i64: 1", nb);
    for (int i = 1; i < table.rank; i++)
        out(c, ", %lld", (long long)table.dims[i]);
    out(c, ">}> : ("), out_type(c, &table), out(c, ", "), out_type(c, &idx), out(c, ") -> "), out_type(c, &to);
    out(c, "\n  return %%0 : "), out_type(c, &to), out(c, "\n}\n");
}

static void make_scatter(Case *c) { // duplicates, and indices outside; into an argument or into zeros
    const char *type = rnd(c, 4) ? "f32" : "bf16";
    Shape table = {type, 2, {1 + rnd(c, 30), 8 + rnd(c, 90)}}, idx = {"i32", 2, {1 + rnd(c, 300), 1}};
    Shape up = {type, 2, {idx.dims[0], table.dims[1]}}, scalar = {type, 0, {0}};
    bool zeros = rnd(c, 2), replaces = rnd(c, 3) == 0;
    out(c, "func.func @main(%%x: "), out_type(c, &table), out(c, ", %%i: "), out_type(c, &idx), out(c, ", %%u: "), out_type(c, &up);
    out(c, ") -> "), out_type(c, &table), out(c, " {\n");
    if (zeros)
        out(c, "  %%z = stablehlo.constant dense<0.0> : "), out_type(c, &table), out(c, "\n");
    out(c, "  %%0 = \"stablehlo.scatter\"(%s, %%i, %%u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
           "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n    ^bb0(%%a: ", zeros ? "%z" : "%x");
    out_type(c, &scalar), out(c, ", %%b: "), out_type(c, &scalar), out(c, "):\n");
    if (!replaces)
        out(c, "      %%s = stablehlo.add %%a, %%b : "), out_type(c, &scalar), out(c, "\n");
    out(c, "      stablehlo.return %s : ", replaces ? "%b" : "%s"), out_type(c, &scalar), out(c, "\n    }) : ("), out_type(c, &table);
    out(c, ", "), out_type(c, &idx), out(c, ", "), out_type(c, &up), out(c, ") -> "), out_type(c, &table);
    out(c, "\n  return %%0 : "), out_type(c, &table), out(c, "\n}\n");
}

// Numbers per channel: reduced over the dimensions around it, and broadcast back.
static void make_channels(Case *c) {
    Shape in = {"f32", 4, {1 + rnd(c, 40), 1 + rnd(c, 90), 1 + rnd(c, 20), 1 + rnd(c, 20)}}, per = {"f32", 1, {in.dims[1]}}, scalar = {"f32", 0, {0}};
    static const char *const ops[] = {"add", "add", "maximum", "minimum"}, *const neutral[] = {"0.0", "0.0", "0xFF800000", "0x7F800000"};
    uint32_t k = rnd(c, 4);
    out(c, "func.func @main(%%x: "), out_type(c, &in), out(c, ") -> ("), out_type(c, &per), out(c, ", "), out_type(c, &in);
    out(c, ") {\n  %%z = stablehlo.constant dense<%s> : tensor<f32>\n  %%0 = stablehlo.reduce(%%x init: %%z) applies stablehlo.%s", neutral[k], ops[k]);
    out(c, " across dimensions = [0, 2, 3] : ("), out_type(c, &in), out(c, ", "), out_type(c, &scalar), out(c, ") -> "), out_type(c, &per);
    out(c, "\n  %%1 = stablehlo.broadcast_in_dim %%0, dims = [1] : ("), out_type(c, &per), out(c, ") -> "), out_type(c, &in);
    out(c, "\n  %%2 = stablehlo.subtract %%x, %%1 : "), out_type(c, &in), out(c, "\n  return %%0, %%2 : ");
    out_type(c, &per), out(c, ", "), out_type(c, &in), out(c, "\n}\n");
}

// --- running -----------------------------------------------------------------------------------------------

typedef struct Data {
    int nargs, nresults;
    void *in[ARGS_MAX], *want[ARGS_MAX], *got[ARGS_MAX];
    otrn_type results[ARGS_MAX];
} Data;

static void fill(Case *c, const HloType *t, void *at) {
    size_t bytes = dtype_bytes(t->dtype);
    for (int64_t i = 0; i < t->elems; i++) {
        uint8_t *p = (uint8_t *)at + (size_t)i * bytes;
        if (dtype_is_int(t->dtype))
            dtype_from_i64(t->dtype, p, (int64_t)rnd(c, 24) - 4);
        else
            dtype_from_f64(t->dtype, p, ((int)rnd(c, 17) - 8) / 8.0);
    }
}

static bool run_eval(Case *c, Data *d) {
    Ctx ctx = {0};
    Arena arena, scratch;
    arena_init(&arena, &ctx);
    arena_init(&scratch, &ctx);
    Arena *volatile keep = &arena, *volatile keep_scratch = &scratch;
    jmp_buf here;
    volatile bool ok = CTX_TRY(&ctx, here);
    if (ok) {
        Hlo *h = read_text(&ctx, keep, "window", c->text, (size_t)c->n);
        hlo_verify(h);
        HloFunc *f = hlo_main(h);
        const HloRegion *body = &h->regions.at[f->body];
        Tensor args[ARGS_MAX], results[ARGS_MAX];
        d->nargs = (int)body->nargs;
        for (int i = 0; i < d->nargs; i++) {
            const HloType *t = hlo_value_type(h, body->args + (ValueId)i);
            d->in[i] = malloc(hlo_type_bytes(t) + 1);
            fill(c, t, d->in[i]);
            args[i] = (Tensor){h->values.at[body->args + (ValueId)i].type, d->in[i]};
        }
        eval_func(h, keep, f, args, results);
        d->nresults = (int)f->nresults;
        for (int i = 0; i < d->nresults; i++) {
            size_t bytes = hlo_type_bytes(hlo_type(h, results[i].type));
            d->want[i] = memcpy(malloc(bytes + 1), results[i].data, bytes);
        }
    } else {
        printf("FAIL evaluator: %s\n%s\n", ctx.err.text, c->text);
    }
    arena_fini(keep);
    arena_fini(keep_scratch);
    return ok;
}

static uint32_t kernels_of(const otrn_exe *exe) {
    Ctx ctx = {0};
    Arena arena;
    arena_init(&arena, &ctx);
    size_t size;
    const void *bytes = otrn_exe_bytes(exe, &size);
    jmp_buf here;
    uint32_t n = UINT32_MAX;
    if (CTX_TRY(&ctx, here))
        n = artifact_load(&ctx, &arena, "window", bytes, size)->nkerns;
    arena_fini(&arena);
    return n;
}

static bool same(const Data *d, bool bits, char *why) {
    for (int i = 0; i < d->nresults; i++) {
        const otrn_type *t = &d->results[i];
        size_t bytes = otrn_dtype_bytes(t->dtype), n = otrn_type_bytes(t) / bytes;
        for (size_t k = 0; k < n; k++) {
            const uint8_t *a = (uint8_t *)d->want[i] + k * bytes, *b = (uint8_t *)d->got[i] + k * bytes;
            bool equal = !memcmp(a, b, bytes);
            if (!equal && !bits && dtype_is_float(t->dtype))
                equal = dtype_to_f64(t->dtype, a) == dtype_to_f64(t->dtype, b);
            if (equal)
                continue;
            sprintf(why, "element %zu of result %d is %g, not %g", k, i, dtype_to_f64(t->dtype, b), dtype_to_f64(t->dtype, a));
            return false;
        }
    }
    return true;
}

static bool run_chip(otrn_env *env, const Case *c, Data *d, int number, char *why) {
    bool first = number == 0;
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *exe;
    if (otrn_compile(env, c->text, (size_t)c->n, "window", &exe, &err)) {
        strcpy(why, err.text);
        return false;
    }
    for (int i = 0; i < d->nresults && first; i++) {
        d->results[i] = *otrn_exe_result_type(exe, (size_t)i);
        d->got[i] = malloc(otrn_type_bytes(&d->results[i]) + 1);
    }
    for (int i = 0; i < d->nresults && !first; i++) { // what the first run gave is what is wanted now
        void *t = d->want[i];
        d->want[i] = d->got[i], d->got[i] = t;
    }
    const void *args[ARGS_MAX];
    for (int i = 0; i < d->nargs; i++)
        args[i] = d->in[i];
    bool ok = true;
    if (c->on_engines && number < TRN1 && kernels_of(exe)) {
        sprintf(why, "a GpSimd kernel is left");
        ok = false;
    }
    if (ok && run_sized(exe, args, d->got, &err)) {
        strcpy(why, err.text);
        ok = false;
    }
    otrn_exe_free(exe);
    return ok && same(d, number == 1, why);
}

typedef void Make(Case *c);
static Make *const kinds[] = {make_conv, make_conv, make_slabs, make_slabs, make_depthwise, make_depthwise, make_groups, make_pad, make_reverse, make_pool, make_pool, make_batch, make_dynamic, make_dynamic, make_transpose, make_channels, make_gather, make_scatter};

static bool one(otrn_env *const envs[ENVS], uint64_t seed) {
    static Case c;
    c = (Case){.rng = seed};
    kinds[rnd(&c, sizeof kinds / sizeof *kinds)](&c);
    Data d = {0};
    char why[sizeof(otrn_error)] = "";
    bool ok = run_eval(&c, &d);
    for (int i = 0; i < ENVS && ok; i++)
        ok = run_chip(envs[i], &c, &d, i, why);
    if (!ok)
        printf("FAIL seed %llu: %s\n%s\n", (unsigned long long)seed, why, c.text);
    for (int i = 0; i < ARGS_MAX; i++)
        free(d.in[i]), free(d.want[i]), free(d.got[i]);
    return ok;
}

int main(int argc, char **argv) {
    otrn_option options[ENVS][5] = {
        {{"threads", "1"}, {"cache", "off"}, {"host", "auto"}, {"check", "on"}, {"target", "trn2"}},
        {{"threads", "3"}, {"cache", "off"}, {"host", "portable"}, {"check", "off"}, {"target", "trn2"}},
        [TRN1] = {{"threads", "1"}, {"cache", "off"}, {"host", "auto"}, {"check", "on"}, {"target", "trn1"}}};
    otrn_env *envs[ENVS];
    otrn_error err = OTRN_ERROR_INIT;
    for (int i = 0; i < ENVS; i++)
        if (otrn_open(options[i], 5, &envs[i], &err)) {
            printf("FAIL open: %s\n", err.text);
            return 1;
        }
    long count = argc > 1 ? atol(argv[1]) : 150;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    bool ok = true;
    for (long i = 0; i < count && ok; i++)
        ok = one(envs, seed + (uint64_t)i);
    if (ok)
        printf("ok %ld programs from seed %llu\n", count, (unsigned long long)seed);
    for (int i = 0; i < ENVS; i++)
        otrn_close(envs[i]);
    return !ok;
}
