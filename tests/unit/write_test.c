// SPDX-License-Identifier: Apache-2.0
// write_test.c — the bytecode writer: what it writes is read back to an equal graph, the way
// through text gives the same bytes, and the version is the oldest that can say it. Then the kinds
// of reductions.
#define _GNU_SOURCE
#include "write/write.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "graph_same.h"
#include "read/read.h"
#include "write/reduce.h"
#include "unit.h"

static bool same(const Buf *x, const Buf *y) {
    return x->n == y->n && !memcmp(x->at, y->at, x->n);
}

// The reason when the graph does not survive, NULL when it does; the bytes are left in `first`.
static const char *round_trip(Ctx *ctx, Arena *a, const Hlo *h, Buf *first) {
    Buf second = {.arena = a}, text = {.arena = a}, third = {.arena = a};
    write_bytecode(h, first);
    Hlo *again = read_bytecode(ctx, a, h->file, first->at, first->n);
    Pair *p = ARENA_NEW(a, Pair);
    *p = (Pair){.x = h, .y = again};
    if (!graph_same(p, a))
        return p->why;
    write_bytecode(again, &second);
    if (!same(first, &second))
        return "writing it again gives other bytes";
    hlo_print(again, &text, true);
    write_bytecode(read_text(ctx, a, h->file, text.at, text.n), &third);
    return same(first, &third) ? NULL : "the way through text gives other bytes";
}

static void check(const char *name, const void *bytes, size_t n, Buf *out) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf jb;
    arena_init(&a, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        Buf first = {.arena = &a};
        const char *why = round_trip(&ctx, &a, read_program(&ctx, &a, name, bytes, n), &first);
        expect(!why, name, why ? why : "");
        if (out)
            buf_put(out, first.at, first.n);
    } else {
        expect(false, name, ctx.err.text);
    }
    arena_fini(&a);
}

static void test_files(Ctx *ctx, Arena *a) {
    static const char *const files[] = {
        "tests/hlo/ops.mlir",          "tests/read/attributes.mlir",
        "tests/read/aliases.mlir",     "tests/read/constants.mlir",
        "tests/read/forms.mlir",       "tests/read/generic.mlir",
        "tests/read/regions.mlir",     "tests/write/attributes.mlir",
        "tests/write/constants.mlir",  "tests/write/regions.mlir",
        "tests/write/sharding.mlir",   "tests/fuzz/data/branches.mlirbc",
        "tests/fuzz/data/loop.mlirbc", "tests/fuzz/data/scatter.mlirbc",
        "tests/fuzz/data/train.mlirbc", "tests/fuzz/data/sharded.mlirbc",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t n;
        const void *bytes = file_read(ctx, a, files[i], &n);
        check(files[i], bytes, n, NULL);
    }
}

// --- versions -----------------------------------------------------------------------------------

#define F(args, results, body) "func.func @main(" args ") -> " results " {\n" body "\n}\n"
#define T "tensor<2xf32>"

static const struct {
    const char *name, *text;
    int minor;
    const char *holds; // an op name in the bytes
} versions[] = {
    {"version-plain", F("%a: " T, T, "%0 = stablehlo.tanh %a : " T "\n return %0 : " T), 13,
     "tanh_v2"},
    {"version-custom-call",
     F("%a: " T, T, "%0 = stablehlo.custom_call @f(%a) : (" T ") -> " T "\n return %0 : " T), 13,
     "custom_call_v1"},
    {"version-composite",
     F("%a: " T, T,
       "%0 = \"stablehlo.composite\"(%a) {name = \"n.o\", decomposition = @f, version = 3 : i32} : "
       "(" T ") -> " T "\n return %0 : " T) "func.func private @f(%a: " T ") -> " T
                                            " {\n return %a : " T "\n}\n",
     13, "composite_v1"},
    {"version-composite-region",
     F("%a: " T, T,
       "%0 = \"stablehlo.composite\"(%a) ({\n stablehlo.return %a : " T
       "\n}) {name = \"n.o\", decomposition = @f} : (" T ") -> " T "\n return %0 : " T)
         "func.func private @f(%a: " T ") -> " T " {\n return %a : " T "\n}\n",
     14, "composite_v2"},
    {"version-future", "func.func private @f() -> !stablehlo.future<tensor<2x?xf32>, tensor<i1>>\n",
     15, "func_v1"},
    {"version-mesh-axes",
     F("%a: " T, T,
       "%0 = \"stablehlo.all_to_all\"(%a) {concat_dimension = 0 : i64, split_dimension = 0 : i64, "
       "split_count = 2 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes "
       "= [#stablehlo.axis_ref<name = \"x\", sub_axis_info = (1)2>]>} : (" T ") -> " T
       "\n return %0 : " T),
     16, "all_to_all_v2"},
    {"version-mesh",
     F("%a: " T, T,
       "%0 = \"stablehlo.all_to_all\"(%a) {concat_dimension = 0 : i64, split_dimension = 0 : i64, "
       "split_count = 2 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = "
       "#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = \"x\", size = 2>], device_ids = [1, "
       "0]>, axes = [#stablehlo.axis_ref<name = \"x\">]>} : (" T ") -> " T "\n return %0 : " T),
     16, "all_to_all_v2"},
    {"version-tilings",
     F("%a: " T, T,
       "%0 = \"stablehlo.custom_call\"(%a) {call_target_name = \"f\", result_tilings = [[dense<[8, "
       "128]> : tensor<2xindex>]]} : (" T ") -> " T "\n return %0 : " T),
     18, "custom_call_v2"},
    {"version-broadcast",
     F("%a: " T, T,
       "%0 = \"stablehlo.collective_broadcast\"(%a) {replica_groups = dense<[[0, 1]]> : "
       "tensor<1x2xi64>} : (" T ") -> " T "\n return %0 : " T),
     13, "collective_broadcast_v1"},
    {"version-broadcast-many",
     F("%a: " T, "(" T ", " T ")",
       "%0:2 = \"stablehlo.collective_broadcast\"(%a, %a) {replica_groups = dense<[[0, 1]]> : "
       "tensor<1x2xi64>} : (" T ", " T ") -> (" T ", " T ")\n return %0#0, %0#1 : " T ", " T),
     20, "collective_broadcast_v2"},
};

static void test_versions(Arena *a) {
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        Buf out = {.arena = a};
        check(versions[i].name, versions[i].text, strlen(versions[i].text), &out);
        char want[60], name[60];
        snprintf(want, sizeof want, "StableHLO_v1.%d.0", versions[i].minor);
        bool ok = out.n > 40 && !strcmp((const char *)out.at + 5, want);
        snprintf(name, sizeof name, "%s-producer", versions[i].name);
        expect(ok, name, out.n > 40 ? (const char *)out.at + 5 : "nothing was written");
        snprintf(name, sizeof name, "%s-op", versions[i].name);
        ok = out.n && memmem(out.at, out.n, versions[i].holds, strlen(versions[i].holds));
        expect(ok, name, "the op has another version");
    }
}

// --- refused ------------------------------------------------------------------------------------

static void test_refused(void) {
    static const struct {
        const char *name, *text, *what;
    } bad[] = {
        {"refused-vector", "func.func private @f(vector<4xf32>)\n", "the type vector<4xf32>"},
        {"refused-foreign", "module attributes {k = #x.bytecode<\"0x03\">} {}",
         "only its own dialect understands"},
        {"refused-name", "func.func private @f() attributes {sym_name = \"a\"}\n",
         "a second attribute sym_name"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Ctx ctx = {0};
        Arena a;
        jmp_buf jb;
        arena_init(&a, &ctx);
        if (CTX_TRY(&ctx, jb)) {
            Buf out = {.arena = &a};
            write_bytecode(read_text(&ctx, &a, "t", bad[i].text, strlen(bad[i].text)), &out);
            expect(false, bad[i].name, "was written");
        } else {
            expect(ctx.err.code == OTRN_UNSUPPORTED && strstr(ctx.err.text, bad[i].what),
                   bad[i].name, ctx.err.text);
        }
        arena_fini(&a);
    }
}

// Nesting far beyond what a recursion would survive, in locations; a call stack is one.
static void test_deep_locations(Ctx *ctx, Arena *a) {
    static const char text[] = F("%a: " T, T, "return %a : " T);
    Hlo *h = read_text(ctx, a, "t", text, strlen(text));
    LocId loc = 0;
    for (uint32_t i = 0; i < 300000; i++) {
        LocId file = hlo_loc(
            h, &(HloLoc){.kind = HL_FILE, .str = hlo_str(h, "m.py", 4), .line = i, .col = 1});
        loc = loc ? hlo_loc(h, &(HloLoc){.kind = HL_CALL, .a = file, .b = loc}) : file;
    }
    h->funcs.at[0].loc = loc;
    Buf out = {.arena = a};
    write_bytecode(h, &out);
    Hlo *again = read_bytecode(ctx, a, "t", out.at, out.n);
    Place place = hlo_place(again, again->funcs.at[0].loc);
    expect(place.line == 299999 && !strcmp(place.file, "m.py"), "deep-locations", "it is lost");
}

// --- reductions ---------------------------------------------------------------------------------

static const char reducible[] =
    "module attributes {a.b} {\n"
    "func.func public @main(%x: " T " {c.d}, %y: " T ") -> (" T ", " T ") {\n"
    "  %c = stablehlo.constant dense<[1.0, 2.0]> : " T "\n"
    "  %p = stablehlo.constant dense<true> : tensor<i1>\n"
    "  %0 = stablehlo.exponential %x : " T "\n"
    "  %1 = call @f(%0) : (" T ") -> " T "\n"
    "  %2 = \"stablehlo.if\"(%p) ({\n"
    "    %3 = stablehlo.sine %1 : " T "\n"
    "    stablehlo.return %3 : " T "\n"
    "  }, {\n"
    "    stablehlo.return %c : " T "\n"
    "  }) : (tensor<i1>) -> " T "\n"
    "  %dead = stablehlo.cosine %0 : " T "\n"
    "  return %1, %2 : " T ", " T "\n"
    "}\n"
    "func.func private @f(%a: " T ") -> " T " {\n"
    "  %0 = stablehlo.tanh %a : " T "\n"
    "  return %0 : " T "\n"
    "}\n"
    "func.func private @g(%a: " T ") -> " T " {\n"
    "  return %a : " T "\n"
    "}\n"
    "}\n";

static const struct {
    ReduceKind kind;
    uint32_t units, first, count;
    const char *gone, *there; // in the text of the reduced program
} steps[] = {
    {RK_CUT, 4, 1, 1, "stablehlo.if", "func.return %3 : "}, // behind the call
    {RK_FUNCS, 3, 2, 1, "@g", "@f"},
    {RK_RESULTS, 2, 0, 1, NULL, "%arg1: " T ") -> (" T ") {"},
    {RK_EXTRAS, 2, 1, 1, "c.d", "a.b"},
    {RK_EXTRAS, 2, 0, 2, "c.d", "module {"},
    {RK_DEAD, 2, 0, 9, "cosine", "stablehlo.if"},
    {RK_ZERO, 6, 0, 1, "exponential", "dense<0.000000e+00>"},
    {RK_OPERAND, 5, 0, 1, "exponential", "stablehlo.cosine %arg0"},
    {RK_BRANCH, 2, 0, 1, "stablehlo.if", "stablehlo.sine"},
    {RK_BRANCH, 2, 1, 1, "stablehlo.sine", "stablehlo.cosine"},
    {RK_INLINE, 1, 0, 1, "func.call", "stablehlo.tanh"},
    {RK_LIFT, 4, 1, 1, "func.call", "%arg2: " T},
    {RK_ARGS, 2, 0, 2, "%arg1", "@main() ->"},
    {RK_CONSTANTS, 1, 0, 1, "2.000000e+00", "dense<1.000000e+00>"},
};

static void reduction(const char *name, size_t i) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf jb;
    arena_init(&a, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        Hlo *h = read_text(&ctx, &a, "t", reducible, strlen(reducible));
        uint32_t units = reduce_units(h, steps[i].kind);
        bool changed = reduce_apply(h, steps[i].kind, steps[i].first, steps[i].count);
        Buf text = {.arena = &a};
        hlo_print(h, &text, false);
        const char *s = buf_cstr(&text);
        hlo_verify(read_text(&ctx, &a, "reduced", s, text.n));
        bool ok = changed && units == steps[i].units && strstr(s, steps[i].there) &&
                  (!steps[i].gone || !strstr(s, steps[i].gone));
        expect(ok, name, units == steps[i].units ? s : "another count of units");
    } else {
        expect(false, name, ctx.err.text);
    }
    arena_fini(&a);
}

static void test_reductions(void) {
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char name[60];
        snprintf(name, sizeof name, "reduce-%zu-%s", i, reduce_rows[steps[i].kind].name);
        reduction(name, i);
    }
}

// Every run of units: the result is always a program that can be read.
static bool all_runs(ReduceKind kind) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf jb;
    arena_init(&a, &ctx);
    if (!CTX_TRY(&ctx, jb)) {
        arena_fini(&a);
        return false;
    }
    for (uint32_t run = 0; run < 81; run++) {
        Hlo *h = read_text(&ctx, &a, "t", reducible, strlen(reducible));
        reduce_apply(h, kind, run / 9, 1 + run % 9);
        reduce_tidy(h);
        Buf text = {.arena = &a};
        hlo_print(h, &text, false);
        read_text(&ctx, &a, "reduced", text.at, text.n);
    }
    arena_fini(&a);
    return true;
}

static void test_all_runs(void) {
    for (int kind = 0; kind < RK_COUNT; kind++) {
        char name[60];
        snprintf(name, sizeof name, "reduce-all-%s", reduce_rows[kind].name);
        expect(all_runs((ReduceKind)kind), name, "gives a program that cannot be read");
    }
}

int main(void) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf jb;
    arena_init(&a, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        test_files(&ctx, &a);
        test_deep_locations(&ctx, &a);
    } else {
        expect(false, "files", ctx.err.text);
    }
    if (CTX_TRY(&ctx, jb))
        test_versions(&a);
    test_refused();
    test_reductions();
    test_all_runs();
    arena_fini(&a);
    return failures != 0;
}
