// SPDX-License-Identifier: Apache-2.0
// text_test.c — MLIR text: what is refused and how, defaults, places, limits, and printing as inverse.
#define _GNU_SOURCE
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "base/num.h"
#include "read/read.h"
#include "unit.h"

// Reads and verifies; NULL when refused, the error is then in ctx.
static Hlo *try_text(Ctx *ctx, Arena *a, const char *text, size_t n) {
    jmp_buf jb;
    Hlo *volatile h = NULL;
    *ctx = (Ctx){0};
    if (!CTX_TRY(ctx, jb))
        return NULL;
    h = read_text(ctx, a, "t.mlir", text, n);
    hlo_verify(h);
    return h;
}

// --- refused -------------------------------------------------------------------------------------

#define F(args, body) "func.func @main(" args ") {\n" body "\n return\n}\n"

static const struct {
    const char *name, *text;
    otrn_status code;
    uint32_t line;
    const char *what;
} bad[] = {
    {"empty-op", F("", "%0 = "), OTRN_PARSE, 2, "1 names for the 0 results of stablehlo.return"},
    {"no-close", "func.func @main() {\n return\n", OTRN_PARSE, 3, "expected '}' to close the region"},
    {"junk", "\n  hello", OTRN_PARSE, 2, "a module or a function is expected, not 'hello'"},
    {"string-open", "module attributes {a = \"b\n} {}", OTRN_PARSE, 1, "no closing quote"},
    {"string-escape", "module attributes {a = \"\\q\"} {}", OTRN_PARSE, 1, "unknown escape"},
    {"name-twice", F("%a: tensor<f32>", "%a = stablehlo.abs %a : tensor<f32>"), OTRN_PARSE, 2,
     "the value %a is defined twice"},
    {"not-defined", F("", "%0 = stablehlo.abs %x : tensor<f32>"), OTRN_PARSE, 2,
     "the value %x is not defined here"},
    {"no-such-result", F("%a: tensor<f32>", "%0 = stablehlo.abs %a#1 : tensor<f32>"), OTRN_PARSE, 2,
     "%a has 1 results, there is no #1"},
    {"result-count", F("%a: tensor<f32>", "%0:2 = stablehlo.abs %a : tensor<f32>"), OTRN_PARSE, 2,
     "2 names for the 1 results of stablehlo.abs"},
    {"type-count",
     F("%a: tensor<f32>", "%0 = \"stablehlo.abs\"(%a) : () -> tensor<f32>"), OTRN_PARSE, 2,
     "stablehlo.abs has 1 operands and 0 operand types"},
    {"element-type", F("%a: tensor<f33>", ""), OTRN_UNSUPPORTED, 1, "'f33' is not known"},
    {"no-type", F("%a: 3", ""), OTRN_PARSE, 1, "expected a type"},
    {"too-large", F("%a: tensor<9000000000x9000000000xf32>", ""), OTRN_CAPACITY, 0, "elements"},
    {"dimension", F("%a: tensor<99999999999999999999xf32>", ""), OTRN_PARSE, 1, "64 bits"},
    {"rank", F("%a: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>", ""),
     OTRN_CAPACITY, 1, "OTRN_MAX_RANK"},
    {"alias-missing", F("%a: !t", ""), OTRN_PARSE, 1, "'!t' is not defined"},
    {"alias-circle", "!a = !b\n!b = !a\n" F("%x: !a", ""), OTRN_PARSE, 2, "defined by itself"},
    {"alias-twice", "!a = tensor<f32>\n!a = tensor<f32>\n" F("", ""), OTRN_PARSE, 2, "twice"},
    {"loc-circle", F("", "return loc(#l)") "#l = loc(\"x\"(#l))", OTRN_PARSE, 5, "by itself"},
    {"two-blocks", F("", "^bb1:"), OTRN_UNSUPPORTED, 2, "more than one block"},
    {"func-twice", F("", "") F("", ""), OTRN_PARSE, 5, "@main is defined twice"},
    {"attr-twice", F("", "%0 = stablehlo.iota dim = 0 {iota_dimension = 0 : i64} : tensor<1xi32>"),
     OTRN_PARSE, 2, "'iota_dimension' is given twice"},
    {"attr-kind", F("", "%0 = \"stablehlo.iota\"() {iota_dimension = \"0\"} : () -> tensor<1xi32>"),
     OTRN_PARSE, 2, "'iota_dimension' must be an integer"},
    {"enum", F("%a: tensor<f32>", "%0 = stablehlo.compare LE2, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>"),
     OTRN_PARSE, 2, "'LE2' is no value of comparison_direction"},
    {"word", F("%a: tensor<f32>", "%0 = stablehlo.transpose %a, dimz = [] : tensor<f32>"), OTRN_PARSE,
     2, "'dimz' is not expected here in stablehlo.transpose"},
    {"field", F("%a: tensor<1xf32>",
                "%0 = \"stablehlo.dot_general\"(%a, %a) {dot_dimension_numbers = #stablehlo.dot<left = [0]>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<f32>"),
     OTRN_PARSE, 2, "'left' is no field of #stablehlo.dot"},
    {"layout", F("%a: tensor<1x1xf32>",
                 "%0 = stablehlo.convolution(%a, %a) dim_numbers = [b, b]x[i, o]->[b, f], window = {} : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>"),
     OTRN_PARSE, 2, "spatial dimension"},
    {"list-short", F("", "%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>"), OTRN_PARSE, 2,
     "fewer elements"},
    {"list-long", F("", "%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>"), OTRN_PARSE, 2,
     "more elements"},
    {"list-deep", F("", "%0 = stablehlo.constant dense<[[1]]> : tensor<1xi32>"), OTRN_PARSE, 2,
     "expected an element"},
    {"list-range", F("", "%0 = stablehlo.constant dense<300> : tensor<i8>"), OTRN_PARSE, 2,
     "does not fit the element type"},
    {"list-negative", F("", "%0 = stablehlo.constant dense<-1> : tensor<ui8>"), OTRN_PARSE, 2,
     "does not fit the element type"},
    {"list-point", F("", "%0 = stablehlo.constant dense<1.5> : tensor<i8>"), OTRN_PARSE, 2, "point"},
    {"list-huge", F("", "%0 = stablehlo.constant dense<[1]> : tensor<1000000000000xi8>"), OTRN_PARSE,
     2, "fewer elements than the type's 1000000000000"},
    {"blob-size", F("", "%0 = stablehlo.constant dense<\"0x0102\"> : tensor<3xi32>"), OTRN_PARSE, 2,
     "a blob of 2 bytes for a type of 12"},
    {"blob-digit", F("", "%0 = stablehlo.constant dense<\"0x0G\"> : tensor<i8>"), OTRN_PARSE, 2,
     "no hex digit"},
    {"resource", F("", "%0 = stablehlo.constant dense_resource<w> : tensor<3xi32>"), OTRN_PARSE, 2,
     "'w' has no data in this file"},
    {"int-range", "module attributes {a = 300 : i8} {}", OTRN_PARSE, 1, "300 does not fit i8"},
    {"int-64", "module attributes {a = 99999999999999999999} {}", OTRN_PARSE, 1, "64 bits"},
    {"raw-open", "module attributes {a = #x.y<(]>} {}", OTRN_PARSE, 1, "expected ')' to close"},
    {"behind", "module {}\nmodule {}", OTRN_PARSE, 2, "the end of the text behind the module"},
    // the verifier's own
    {"slot-missing", F("", "%0 = \"stablehlo.iota\"() : () -> tensor<1xi32>"), OTRN_VERIFY, 2,
     "stablehlo.iota: the attribute iota_dimension is missing"},
    {"arity", F("%a: tensor<f32>", "%0 = stablehlo.add %a : tensor<f32>"), OTRN_VERIFY, 2,
     "2 operands are needed, 1 are given"},
    {"no-return", "func.func @main() {\n}\n", OTRN_VERIFY, 1, "function @main is empty"},
    {"early-return", F("", "return"), OTRN_VERIFY, 2, "must be the last op of its region"},
    {"no-body", "func.func @main()", OTRN_VERIFY, 1, "is public and has no body"},
    {"no-callee", F("", "call @f() : () -> ()"), OTRN_VERIFY, 2, "there is no function @f"},
    {"recursion", F("", "call @main() : () -> ()"), OTRN_VERIFY, 1, "function @main calls itself"},
    {"element-kind", F("%a: tensor<i32>", "%0 = stablehlo.sine %a : tensor<i32>"), OTRN_VERIFY, 2,
     "elements of tensor<i32> are not allowed (I1)"},
    {"reshape", F("%a: tensor<6xf32>", "%0 = stablehlo.reshape %a : (tensor<6xf32>) -> tensor<4xf32>"),
     OTRN_VERIFY, 2, "tensor<6xf32> has 6 elements and tensor<4xf32> has 4 (C2)"},
    {"transpose", F("%a: tensor<2x3xf32>",
                    "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>"),
     OTRN_VERIFY, 2, "the result must be tensor<3x2xf32>, but is tensor<2x3xf32> (C3)"},
    {"slice", F("%a: tensor<4xf32>", "%0 = stablehlo.slice %a [2:9] : (tensor<4xf32>) -> tensor<7xf32>"),
     OTRN_VERIFY, 2, "dimension 0: [2, 9) is not inside tensor<4xf32> (C3)"},
    {"while", F("%a: tensor<i32>",
                "%0 = stablehlo.while(%i = %a) : tensor<i32> cond {\n stablehlo.return %i : tensor<i32>\n} do {\n stablehlo.return %i : tensor<i32>\n}"),
     OTRN_VERIFY, 2, "the condition's value must be tensor<i1>, but is tensor<i32> (C1)"},
    {"reduce", F("%a: tensor<4xf32>, %z: tensor<f32>",
                 "%0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>"),
     OTRN_VERIFY, 2, "dimensions has 1, which is not in [0, 1)"},
};

static void test_bad(void) {
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Ctx ctx;
        Arena a;
        arena_init(&a, &ctx);
        Hlo *h = try_text(&ctx, &a, bad[i].text, strlen(bad[i].text));
        char why[1500], name[60];
        snprintf(name, sizeof name, "bad-%s", bad[i].name);
        snprintf(why, sizeof why, "%s:%u: %s: %s", ctx.err.file, ctx.err.line,
                 otrn_status_name(ctx.err.code), ctx.err.text);
        bool ok = !h && ctx.err.code == bad[i].code && strstr(ctx.err.text, bad[i].what) &&
                  (!bad[i].line || ctx.err.line == bad[i].line);
        expect(ok, name, h ? "was accepted" : why);
        arena_fini(&a);
    }
}

// Every prefix of a good program is refused or read, never more.
static void test_prefixes(void) {
    static const char text[] =
        "#a = #stablehlo<comparison_direction GT>\n"
        "func.func @main(%x: tensor<2x2xf32> {k = \"v\"} loc(\"x\")) -> (tensor<2x2xf32>) {\n"
        "  %c = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>\n"
        "  %0 = \"stablehlo.add\"(%x, %c) <{}> {u = [1, {a}]} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>\n"
        "  return %0 : tensor<2x2xf32> loc(callsite(\"f\":1:2 at unknown))\n}\n";
    bool whole = false;
    for (size_t n = 0; n < sizeof text; n++) {
        Ctx ctx;
        Arena a;
        arena_init(&a, &ctx);
        char *exact = malloc(n ? n : 1); // so that a sanitizer sees every overrun
        memcpy(exact, text, n);
        whole = try_text(&ctx, &a, exact, n) != NULL;
        free(exact);
        arena_fini(&a);
    }
    expect(whole, "prefixes", "the whole program is refused");
}

// --- limits --------------------------------------------------------------------------------------

static void repeat(Buf *b, const char *s, int n) {
    while (n-- > 0)
        buf_puts(b, s);
}

static void expect_capacity(const char *name, Buf *text, const char *what) {
    Ctx ctx;
    Arena a;
    arena_init(&a, &ctx);
    Hlo *h = try_text(&ctx, &a, (const char *)text->at, text->n);
    expect(!h && ctx.err.code == OTRN_CAPACITY && strstr(ctx.err.text, what), name,
           h ? "was accepted" : ctx.err.text);
    arena_fini(&a);
}

static void test_limits(Arena *a) {
    Buf deep = {.arena = a}, bomb = {.arena = a}, types = {.arena = a}, regions = {.arena = a};
    buf_puts(&deep, "module attributes {a = ");
    repeat(&deep, "[", 100000);
    expect_capacity("deep-attribute", &deep, "TEXT_MAX_DEPTH");
    buf_puts(&bomb, "#x0 = 1 : i64\n");
    for (int i = 1; i < 60; i++)
        buf_printf(&bomb, "#x%d = [#x%d, #x%d]\n", i, i - 1, i - 1);
    buf_puts(&bomb, "module attributes {a = #x59} {}");
    expect_capacity("alias-bomb", &bomb, "TEXT_MAX_EXPANSION");
    buf_puts(&types, "func.func @main(%a: ");
    repeat(&types, "tuple<", 100000);
    expect_capacity("deep-type", &types, "TEXT_MAX_DEPTH");
    buf_puts(&regions, "func.func @main(%p: tensor<i1>) {\n");
    repeat(&regions, "\"stablehlo.if\"(%p) ({\n", 10000);
    expect_capacity("deep-region", &regions, "TEXT_MAX_DEPTH");
}

// --- defaults and places -------------------------------------------------------------------------

static const HloOp *op_named(const Hlo *h, HloOpcode code) {
    for (OpId i = 1; i < h->ops.n; i++)
        if (h->ops.at[i].code == code)
            return &h->ops.at[i];
    return NULL;
}

static bool ints_are(const HloOp *op, HloAttrKey key, uint32_t want, int64_t value) {
    uint32_t n;
    const int64_t *v = hlo_ints(op, key, &n);
    for (uint32_t i = 0; i < n; i++)
        if (v[i] != value)
            return false;
    return n == want && hlo_attr(op, key);
}

static void test_defaults(void) {
    static const char text[] = F(
        "%a: tensor<1x8x8x2xf32>, %k: tensor<3x3x2x4xf32>, %m: tensor<2x2xf32>, %z: tensor<f32>",
        "%0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x6x6x4xf32>\n"
        "%1 = stablehlo.dot_general %m, %m, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>\n"
        "%2 = stablehlo.compare EQ, %m, %m : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi1>\n"
        "%3 = stablehlo.tanh %m : tensor<2x2xf32>\n"
        "%4 = stablehlo.custom_call @f(%m) : (tensor<2x2xf32>) -> tensor<2x2xf32> loc(\"u.py\":7:8)\n");
    Ctx ctx;
    Arena a;
    arena_init(&a, &ctx);
    Hlo *h = try_text(&ctx, &a, text, strlen(text));
    expect(h != NULL, "defaults-read", ctx.err.text);
    if (h) {
        const HloOp *conv = op_named(h, HLO_CONVOLUTION), *dot = op_named(h, HLO_DOT_GENERAL);
        const HloOp *call = op_named(h, HLO_CUSTOM_CALL);
        expect(ints_are(conv, AK_WINDOW_STRIDES, 2, 1) && ints_are(conv, AK_LHS_DILATION, 2, 1) &&
                   ints_are(conv, AK_PADDING, 4, 0) && ints_are(conv, AK_WINDOW_REVERSAL, 2, 0),
               "defaults-convolution", "strides, dilations, padding or reversal");
        const HloAttr *p = hlo_attr(dot, AK_PRECISION_CONFIG);
        expect(p && p->kind == HA_LIST && p->n == 2 && p->list[1].kind == HA_ENUM, "defaults-dot",
               "precision_config");
        expect(!hlo_attr(dot, AK_LHS_PRECISION_TYPE), "defaults-algorithm", "should be absent");
        expect(ints_are(dot, AK_LHS_BATCHING_DIMENSIONS, 0, 0), "defaults-batching", "not empty");
        const HloAttr *t = hlo_attr(op_named(h, HLO_COMPARE), AK_COMPARE_TYPE);
        expect(t && t->kind == HA_ENUM && t->i == CMPT_NOTYPE, "defaults-compare", "compare_type");
        expect(!hlo_attr(op_named(h, HLO_TANH), AK_RESULT_ACCURACY), "defaults-accuracy", "present");
        expect(hlo_int(call, AK_API_VERSION, -1) == 1 && hlo_int(call, AK_HAS_SIDE_EFFECT, 9) == 0,
               "defaults-call", "api_version or has_side_effect");
        Place at = hlo_place(h, call->loc), own = hlo_place(h, dot->loc);
        expect(!strcmp(at.file, "u.py") && at.line == 7 && at.col == 8, "place-python", "wrong");
        expect(!strcmp(own.file, "t.mlir") && own.line == 3 && own.col == 1, "place-text", "wrong");
    }
    arena_fini(&a);
}

// --- printing as inverse -------------------------------------------------------------------------

// Reads, prints, reads that, prints again: both texts are the same. 0 refused, 1 differs, 2 same.
static int fixpoint(Ctx *ctx, Arena *a, const char *name, const void *text, size_t n, bool locs) {
    jmp_buf jb;
    *ctx = (Ctx){0};
    if (!CTX_TRY(ctx, jb))
        return 0;
    Buf one = {.arena = a}, two = {.arena = a};
    hlo_print(read_text(ctx, a, name, text, n), &one, locs);
    hlo_print(read_text(ctx, a, name, one.at, one.n), &two, locs);
    return one.n == two.n && !memcmp(one.at, two.at, one.n) ? 2 : 1;
}

static void test_print_files(Ctx *ctx) {
    static const char *const files[] = {
        "tests/read/forms.mlir",   "tests/read/generic.mlir",   "tests/read/attributes.mlir",
        "tests/read/aliases.mlir", "tests/read/constants.mlir", "tests/read/regions.mlir",
        "tests/hlo/ops.mlir"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        Arena a;
        jmp_buf jb;
        arena_init(&a, ctx);
        size_t n = 0;
        uint8_t *volatile bytes = NULL;
        if (CTX_TRY(ctx, jb))
            bytes = file_read(ctx, &a, files[i], &n);
        for (int locs = 0; bytes && locs < 2; locs++) {
            int got = fixpoint(ctx, &a, files[i], bytes, n, locs);
            expect(got == 2, files[i], got ? "prints differently the second time" : ctx->err.text);
        }
        if (!bytes)
            expect(false, files[i], ctx->err.text);
        arena_fini(&a);
    }
}

// Modules of a file with several, split at lines that begin with "// -----".
static void corpus_file(const char *path, int counts[4]) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf jb;
    arena_init(&a, &ctx);
    size_t n = 0;
    char *volatile text = NULL;
    if (CTX_TRY(&ctx, jb))
        text = (char *)file_read(&ctx, &a, path, &n);
    char *end = text ? text + n : NULL;
    for (char *s = text, *cut; s && s < end; s = cut) {
        char *mark = memmem(s, (size_t)(end - s), "\n// -----", 9);
        cut = mark ? mark + 9 : end;
        size_t len = (size_t)((mark ? mark : end) - s);
        counts[0]++;
        int got = fixpoint(&ctx, &a, path, s, len, false);
        counts[1] += got > 0 || ctx.err.code == OTRN_UNSUPPORTED;
        counts[2] += got == 2;
        counts[3] += try_text(&ctx, &a, s, len) != NULL;
    }
    arena_fini(&a);
}

static void test_corpus(void) {
    static const struct {
        const char *folder;
        int refused; // modules with ops that opentrn does not have
    } corpora[] = {{"testdata", 0}, {"interpret", 0}, {"math", 0}, {"quantized", 0}, {"dynamic", 0}};
    for (size_t i = 0; i < sizeof corpora / sizeof *corpora; i++) {
        char dir[300], path[800], why[200];
        snprintf(dir, sizeof dir, "../shared/conformance/%s", corpora[i].folder);
        DIR *d = opendir(dir);
        if (!d) {
            printf("skipped corpus %s: it is not there\n", corpora[i].folder);
            continue;
        }
        int counts[4] = {0}; // modules, read or unsupported, fixpoint, verified
        for (struct dirent *e; (e = readdir(d));)
            if (strlen(e->d_name) > 5 && !strcmp(e->d_name + strlen(e->d_name) - 5, ".mlir")) {
                snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
                corpus_file(path, counts);
            }
        closedir(d);
        snprintf(why, sizeof why, "%d modules, %d read, %d print the same, %d verified", counts[0],
                 counts[1], counts[2], counts[3]);
        expect(counts[1] == counts[0] && counts[3] == counts[0] - corpora[i].refused,
               corpora[i].folder, why);
    }
}

// --- speed ---------------------------------------------------------------------------------------

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Time must grow with the text, not faster: 8 times the ops may take 40 times the CPU time (64 would be quadratic).
static void test_linear(Arena *a) {
    double took[2];
    for (int k = 0; k < 2; k++) {
        Buf b = {.arena = a};
        buf_puts(&b, "func.func @main(%v0: tensor<8x8xf32>) -> tensor<8x8xf32> {\n");
        int n = k ? 80000 : 10000;
        for (int i = 0; i < n; i++)
            buf_printf(&b, "  %%v%d = \"stablehlo.add\"(%%v%d, %%v0) {n = %d : i32} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc%d)\n",
                       i + 1, i, i, i);
        buf_printf(&b, "  return %%v%d : tensor<8x8xf32>\n}\n", n);
        for (int i = 0; i < n; i++)
            buf_printf(&b, "#loc%d = loc(\"layer %d\"(\"m.py\":%d:1))\n", i, i, i + 1);
        Ctx ctx;
        Arena own;
        arena_init(&own, &ctx);
        double start = seconds();
        Hlo *h = try_text(&ctx, &own, (const char *)b.at, b.n);
        took[k] = seconds() - start;
        if (!h)
            expect(false, "linear-read", ctx.err.text);
        arena_fini(&own);
    }
    char why[100];
    snprintf(why, sizeof why, "%.1f ms, then %.1f ms for eight times the ops", took[0] * 1e3,
             took[1] * 1e3);
    expect(took[1] < took[0] * 40 + 0.02, "linear", why);
}

// --- numbers -------------------------------------------------------------------------------------

static uint64_t next_random(uint64_t *s) {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

static bool parses_like_libc(const char *s) {
    double mine = 0, libc = strtod(s, NULL);
    const char *end = num_parse_f64(s, s + strlen(s), &mine);
    return *end == 0 && !memcmp(&mine, &libc, sizeof mine);
}

static void test_numbers(void) {
    static const char *const hard[] = {
        "0", "-0.0", "9007199254740993", "2.2250738585072011e-308", "4.9406564584124654e-324",
        "2.4703282292062327e-324", "2.4703282292062328e-324", "1.7976931348623157e308",
        "1.7976931348623159e308", "1e400", "1e-400", "1e99999999999", "123456789012345678901234567890",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203126",
        "0.000000000000000000000000000000000000000000001e45"};
    const char *wrong = NULL;
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
        if (!parses_like_libc(hard[i]))
            wrong = hard[i];
    expect(!wrong, "numbers-hard", wrong);
    uint64_t seed = 88172645463325252u;
    static char text[1200];
    bool ok = true;
    for (int i = 0; ok && i < 100000; i++) {
        uint64_t bits = next_random(&seed);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        snprintf(text, sizeof text, "%.*e", (int)(bits % 40), v);
        ok = parses_like_libc(text);
        char mine[NUM_TEXT_BYTES];
        double back = 0;
        int n = num_print_exact(mine, v);
        num_parse_f64(mine, mine + n, &back);
        ok = ok && back == v;
    }
    expect(ok, "numbers-random", text);
}

int main(void) {
    Ctx ctx = {0};
    Arena a;
    arena_init(&a, &ctx);
    test_bad();
    test_prefixes();
    test_limits(&a);
    test_defaults();
    test_print_files(&ctx);
    test_corpus();
    test_linear(&a);
    test_numbers();
    arena_fini(&a);
    return failures != 0;
}
