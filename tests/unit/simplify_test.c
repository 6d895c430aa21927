// SPDX-License-Identifier: Apache-2.0
// simplify_test.c — each rule of pass/simplify.c and pass/picks.c on a program of its own: the evaluator's results before and after the pass differ by no more
// than the rule's row allows. Arguments hold zeros of both signs, infinities, NaN, subnormal and extreme numbers, unless the row asks for less.
//   simplify_test [ROUNDS [SEED]]
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/eval.h"
#include "pass/rules.h"
#include "read/read.h"
#include "tests/unit/unit.h"

#define ELEMS_MAX 8192
#define ARGS_MAX 4

typedef struct Case {
    const char *rule; // how the name of its row begins
    const char *args, *to, *body;
} Case;

#define F "tensor<4x6xf32>"
#define SPLAT(name, text) "%" name " = stablehlo.constant dense<" text "> : " F "\n"
#define SCATTER(x, i, u, t, tu, dims)                                                                                                         \
    "%s = \"stablehlo.scatter\"(" x ", " i ", " u ") <{" dims "}> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %t = stablehlo.add %a, %b : "      \
    "tensor<f32> \n stablehlo.return %t : tensor<f32> }) : (" t ", tensor<4x1xi32>, " tu ") -> " t "\n"
#define A_ROW "inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1"
#define ZEROS "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%zs = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> " F "\n"
#define PUT /* one number a row, written over */                                                                                              \
    ZEROS "%s = \"stablehlo.scatter\"(%zs, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<" A_ROW ">}> ({ ^bb0(%a: tensor<f32>, %b: "  \
          "tensor<f32>): stablehlo.return %b : tensor<f32> }) : (" F ", tensor<4x1xi32>, tensor<4xf32>) -> " F "\n"
#define PLACES "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"

static const Case cases[] = {
    {"reshape of", "%x: " F, "tensor<24xf32>",
     "%y = stablehlo.reshape %x : (" F ") -> tensor<6x4xf32>\n %r = stablehlo.reshape %y : (tensor<6x4xf32>) -> tensor<24xf32>"},
    {"transpose that", "%x: " F, F,
     "%y = stablehlo.transpose %x, dims = [1, 0] : (" F ") -> tensor<6x4xf32>\n %r = stablehlo.transpose %y, dims = [1, 0] : (tensor<6x4xf32>) -> " F},
    {"transpose that", "%x: " F ", %w: tensor<6x3xf32>", "tensor<3x4xf32>",
     "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (" F ", tensor<6x3xf32>) -> tensor<4x3xf32>\n"
     "%r = stablehlo.transpose %y, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>"},
    {"broadcast that", "%x: tensor<6xf32>", "tensor<2x4x6xf32>",
     "%y = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<6xf32>) -> " F "\n"
     "%r = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (" F ") -> tensor<2x4x6xf32>"},
    {"slice of", "%x: " F, F, "%r = stablehlo.slice %x [0:4, 0:6] : (" F ") -> " F},
    {"pad by", "%x: " F, F,
     "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "%r = stablehlo.pad %x, %z, low = [0, 0], high = [0, 0], interior = [0, 0] : (" F ", tensor<f32>) -> " F},
    {"concatenate of", "%x: " F, F, "%r = stablehlo.concatenate %x, dim = 0 : (" F ") -> " F},
    {"sum of one", "%x: " F, "tensor<24xf32>",
     "%z = stablehlo.constant dense<0.0> : tensor<f32>\n %y = stablehlo.reshape %x : (" F ") -> tensor<24x1xf32>\n"
     "%r = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1] : (tensor<24x1xf32>, tensor<f32>) -> tensor<24xf32>"},
    {"reduction of one", "%x: " F, "tensor<24xf32>",
     "%z = stablehlo.constant dense<0.7> : tensor<f32>\n %y = stablehlo.reshape %x : (" F ") -> tensor<24x1xf32>\n"
     "%r = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1] : (tensor<24x1xf32>, tensor<f32>) -> tensor<24xf32>"},
    {"largest of", "%x: " F, "tensor<4xf32>",
     "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n" SPLAT("c", "0.125") "%y = stablehlo.multiply %x, %c : " F "\n"
     "%r = stablehlo.reduce(%y init: %z) applies stablehlo.maximum across dimensions = [1] : (" F ", tensor<f32>) -> tensor<4xf32>"},
    {"select known", "%x: " F ", %y: " F, F,
     "%p = stablehlo.constant dense<false> : tensor<4x6xi1>\n %r = stablehlo.select %p, %x, %y : tensor<4x6xi1>, " F},
    {"select(p, x * 2^k, number)", "%x: " F ", %p: tensor<4x6xi1>", F,
     SPLAT("c", "0.125") SPLAT("n", "-1.0e9") "%y = stablehlo.multiply %x, %c : " F "\n %r = stablehlo.select %p, %y, %n : tensor<4x6xi1>, " F},
    {"x * 1:", "%x: " F, F, SPLAT("c", "1.0") "%r = stablehlo.multiply %c, %x : " F},
    {"select(p, y, 0) * 2^k", "%x: " F ", %y: " F, F,
     SPLAT("c", "0.25") "%z = stablehlo.multiply %x, %y : " F "\n %r = stablehlo.multiply %z, %c : " F},
    {"select(p, y, 0) * 2^k", "%x: " F ", %p: tensor<4x6xi1>", F,
     SPLAT("c", "4.0") SPLAT("n", "0.0") "%z = stablehlo.select %p, %x, %n : tensor<4x6xi1>, " F "\n %r = stablehlo.multiply %z, %c : " F},
    {"x / 1:", "%x: " F, F, SPLAT("c", "1.0") "%r = stablehlo.divide %x, %c : " F},
    {"select(p, y, 0) / 2^k", "%x: " F ", %y: " F, F,
     SPLAT("c", "8.0") "%z = stablehlo.multiply %x, %y : " F "\n %r = stablehlo.divide %z, %c : " F},
    {"x / 2^k", "%x: " F, F, SPLAT("c", "-8.0") "%r = stablehlo.divide %x, %c : " F},
    {"x + -0.0", "%x: " F, F, SPLAT("c", "-0.0") "%r = stablehlo.add %x, %c : " F},
    {"x + 0.0", "%x: " F, F, SPLAT("c", "0.0") "%r = stablehlo.add %c, %x : " F},
    {"x + scatter", "%x: tensor<5xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<5xf32>",
     "%z = stablehlo.constant dense<0.0> : tensor<5xf32>\n" SCATTER("%z", "%i", "%u", "tensor<5xf32>", "tensor<4xf32>", PLACES)
     "%r = stablehlo.add %x, %s : tensor<5xf32>"},
    {"x - 0.0", "%x: " F, F, SPLAT("c", "0.0") "%r = stablehlo.subtract %x, %c : " F},
    {"scatter(0, u) - x", "%x: tensor<5xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<5xf32>",
     "%z = stablehlo.constant dense<0.0> : tensor<5xf32>\n" SCATTER("%z", "%i", "%u", "tensor<5xf32>", "tensor<4xf32>", PLACES)
     "%r = stablehlo.subtract %s, %x : tensor<5xf32>"},
    {"scatter(0, u) - x", "%x: tensor<5xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<5xf32>",
     "%z = stablehlo.constant dense<0.0> : tensor<5xf32>\n" SCATTER("%z", "%i", "%u", "tensor<5xf32>", "tensor<4xf32>", PLACES)
     "%r = stablehlo.subtract %x, %s : tensor<5xf32>"},
    {"gather of one a row", "%x: " F ", %v: tensor<4x1xf32>, %s: tensor<f32>, %i: tensor<4x1xi32>", "tensor<4xf32>",
     "%vs = stablehlo.broadcast_in_dim %v, dims = [0, 1] : (tensor<4x1xf32>) -> " F "\n%ss = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> " F "\n"
     "%d = stablehlo.subtract %x, %vs : " F "\n%e = stablehlo.divide %ss, %d : " F "\n"
     "%r = \"stablehlo.gather\"(%e, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], "
     "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (" F ", tensor<4x1xi32>) -> "
     "tensor<4xf32>"},
    {"scatter(0, one a row) *", "%v: tensor<4x1xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>", F,
     PUT "%vs = stablehlo.broadcast_in_dim %v, dims = [0, 1] : (tensor<4x1xf32>) -> " F "\n%r = stablehlo.multiply %s, %vs : " F},
    {"sum of rows of scatter", "%i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<4xf32>",
     PUT "%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] : (" F ", tensor<f32>) -> tensor<4xf32>"},
    {"max(x", "%x: " F, F, SPLAT("c", "0xFF800000") "%r = stablehlo.maximum %c, %x : " F},
    {"min(x", "%x: " F, F, SPLAT("c", "0x7F800000") "%r = stablehlo.minimum %x, %c : " F},
    {"x & true", "%p: tensor<4x6xi1>", "tensor<4x6xi1>",
     "%c = stablehlo.constant dense<true> : tensor<4x6xi1>\n %r = stablehlo.and %p, %c : tensor<4x6xi1>"},
    {"x | 0", "%x: tensor<7xi32>", "tensor<7xi32>", "%c = stablehlo.constant dense<0> : tensor<7xi32>\n %r = stablehlo.or %x, %c : tensor<7xi32>"},
    {"x ^ 0", "%x: tensor<7xi32>", "tensor<7xi32>", "%c = stablehlo.constant dense<0> : tensor<7xi32>\n %r = stablehlo.xor %c, %x : tensor<7xi32>"},
    {"gather of", "%x: " F ", %i: tensor<2x1xi32>", "tensor<2x6xbf16>",
     "%y = stablehlo.convert %x : (" F ") -> tensor<4x6xbf16>\n"
     "%r = \"stablehlo.gather\"(%y, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
     "index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>, indices_are_sorted = false}> : (tensor<4x6xbf16>, tensor<2x1xi32>) -> tensor<2x6xbf16>"},
    {"narrow(scatter", "%x: " F ", %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<4x6xbf16>",
     SCATTER("%x", "%i", "%u", F, "tensor<4xf32>",
             "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], "
             "scatter_dims_to_operand_dims = [1], index_vector_dim = 1>")
     "%r = stablehlo.convert %s : (" F ") -> tensor<4x6xbf16>"},
    {"erfc that", "%x: tensor<64x128xf32>, %y: tensor<64x128xf32>", "tensor<64x128xf32>",
     "%e = chlo.erfc %x : tensor<64x128xf32> -> tensor<64x128xf32>\n %r = stablehlo.multiply %y, %e : tensor<64x128xf32>"},
    {"product of a transpose", "%x: " F ", %w: tensor<4x3xf32>", "tensor<6x3xf32>",
     "%y = stablehlo.transpose %x, dims = [1, 0] : (" F ") -> tensor<6x4xf32>\n"
     "%r = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<6x4xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>"},
};
// Several terms for a place are summed in fp32 and rounded once: no rule may take this.
static const Case kept = {"", "%x: tensor<5xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<5xbf16>",
                          SCATTER("%x", "%i", "%u", "tensor<5xf32>", "tensor<4xf32>", PLACES) "%r = stablehlo.convert %s : (tensor<5xf32>) -> tensor<5xbf16>"};

static const struct { const char *pass; const Rule *rules; } tables[] = {{"simplify", simplify_rules}, {"picks", picks_rules}};
enum { NTABLES = sizeof tables / sizeof *tables };

static const Rule *rule_of(const char *begin, const char **pass) {
    for (int t = 0; t < NTABLES; t++)
        for (const Rule *r = tables[t].rules; r->to; r++)
            if (!strncmp(r->name, begin, strlen(begin))) {
                *pass = tables[t].pass;
                return r;
            }
    return NULL;
}

static float special(uint64_t *seed) {
    static const float list[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -3e-39f, 3.4e38f, -3.4e38f, 1.1754944e-38f, 1, -1e9f};
    uint32_t bits = (uint32_t)rng_next(seed);
    float any;
    memcpy(&any, &bits, 4);
    return rng_below(seed, 3) ? any : list[rng_below(seed, sizeof list / sizeof *list)];
}

static float plain(uint64_t *seed) { return ((float)rng_below(seed, 1 << 24) - (1 << 23)) * 0x1p-21f; }

static void fill(const Hlo *h, TypeId type, bool any, uint64_t *seed, uint8_t *data) {
    const HloType *t = hlo_type(h, type);
    for (int64_t i = 0; i < t->elems; i++) {
        if (t->dtype == DT_F32)
            ((float *)data)[i] = any ? special(seed) : plain(seed);
        else if (t->dtype == DT_I1)
            data[i] = rng_below(seed, 2);
        else
            ((int32_t *)data)[i] = (int32_t)rng_below(seed, 6) - 1; // an index, perhaps outside
    }
}

static bool same(int keeps, int dtype, const uint8_t *a, const uint8_t *b) {
    if (!dtype_is_float(dtype) || !memcmp(a, b, dtype_bytes(dtype)))
        return !memcmp(a, b, dtype_bytes(dtype));
    double x = dtype_to_f64(dtype, a), y = dtype_to_f64(dtype, b);
    if (x != x || y != y)
        return x != x && y != y;
    switch (keeps) {
    case RULE_ZERO:
        return x == y;
    case RULE_ORDER: // four terms of 4 at most
        return fabs(x - y) <= 4 * 20 * 0x1p-23;
    case RULE_TWICE: // of numbers up to 8
        return fabs(x - y) <= 8 * 0x1p-7;
    case RULE_CLOSE: // times a factor of 4 at most
        return fabs(x - y) <= 4 * 2e-7;
    default: // EXACT, RANGE
        return false;
    }
}

typedef struct Run {
    Ctx ctx;
    Arena arena, scratch;
    const Case *c;
    const Rule *rule;
    const char *pass;
    uint64_t *seed;
    bool changed, agrees;
} Run;

static Hlo *read_case(Run *r) {
    char text[4096];
    int n = snprintf(text, sizeof text, "func.func @main(%s) -> %s {\n%s\n return %%r : %s\n}\n", r->c->args, r->c->to, r->c->body, r->c->to);
    char *kept_text = arena_dup(&r->arena, text, (size_t)n + 1);
    Hlo *h = read_text(&r->ctx, &r->arena, "case", kept_text, (size_t)n);
    hlo_verify(h);
    return h;
}

static const char *printed(Run *r, Hlo *h) {
    Buf out = {.arena = &r->arena};
    hlo_print(h, &out, false);
    buf_put(&out, "", 1);
    return (const char *)out.at;
}

static void run_case(Run *r, int rounds) {
    Hlo *h[2] = {read_case(r), read_case(r)};
    const char *before = printed(r, h[1]);
    for (int i = 0; i < pass_count; i++)
        if (!strcmp(pass_rows[i].name, r->pass))
            pass_rows[i].fn(&(Compile){.ctx = &r->ctx, .arena = &r->arena, .scratch = &r->scratch, .hlo = h[1]});
    hlo_verify(h[1]);
    r->changed = strcmp(before, printed(r, h[1]));
    bool any = !r->rule || r->rule->keeps <= RULE_ZERO;
    r->agrees = true;
    for (int round = 0; round < rounds; round++) {
        static _Alignas(64) uint8_t data[ARGS_MAX][ELEMS_MAX * 4];
        Tensor args[ARGS_MAX], out[2];
        for (int k = 0; k < 2; k++) {
            const HloRegion *body = &h[k]->regions.at[hlo_main(h[k])->body];
            for (uint32_t i = 0; i < body->nargs; i++) {
                args[i] = (Tensor){h[k]->values.at[body->args + i].type, data[i]};
                if (!k)
                    fill(h[0], args[i].type, any, r->seed, data[i]);
            }
            eval_func(h[k], &r->arena, hlo_main(h[k]), args, &out[k]);
        }
        const HloType *t = hlo_type(h[0], out[0].type);
        for (int64_t i = 0; i < t->elems; i++) {
            size_t at = (size_t)i * dtype_bytes(t->dtype);
            r->agrees = r->agrees && same(r->rule ? r->rule->keeps : RULE_EXACT, t->dtype, (uint8_t *)out[0].data + at, (uint8_t *)out[1].data + at);
        }
    }
}

static void try_case(const Case *c, const Rule *rule, const char *pass, int rounds, uint64_t *seed) {
    Run run = {.c = c, .rule = rule, .pass = pass, .seed = seed};
    Run *volatile r = &run;
    arena_init(&r->arena, &r->ctx);
    arena_init(&r->scratch, &r->ctx);
    jmp_buf here;
    const char *name = rule ? rule->name : "sums of several terms stay fp32";
    if (CTX_TRY(&r->ctx, here)) {
        run_case(r, rounds);
        expect(rule ? r->changed : !r->changed, name, rule ? "the rule does not see its program" : "a rule takes it");
        expect(r->agrees, name, "the results differ by more than its row says");
    } else {
        expect(false, name, r->ctx.err.text);
    }
    arena_fini(&r->arena);
    arena_fini(&r->scratch);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 17;
    size_t ncases = sizeof cases / sizeof *cases;
    const char *pass = tables[0].pass;
    for (int t = 0; t < NTABLES; t++)
        for (const Rule *r = tables[t].rules; r->to; r++) {
            bool tried = false;
            for (size_t k = 0; k < ncases; k++)
                tried = tried || rule_of(cases[k].rule, &pass) == r;
            expect(tried, r->name, "no program tries it");
        }
    for (size_t k = 0; k < ncases; k++) {
        const Rule *rule = rule_of(cases[k].rule, &pass);
        bool large = rule && rule->keeps == RULE_CLOSE;
        expect(rule, cases[k].rule, "there is no such rule");
        try_case(&cases[k], rule, pass, large ? 2 : rounds, &seed);
    }
    try_case(&kept, NULL, tables[0].pass, rounds, &seed);
    return failures != 0;
}
