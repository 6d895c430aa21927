// SPDX-License-Identifier: Apache-2.0
// asm_test.c — kernels as text: what a line becomes, errors with line and column, and the C builder against it.
#include <stdio.h>

#include "artifact/artifact.h"
#include "isa/build.h"

static int failures;
static Ctx ctx;
static Arena arena;

static Artifact *assemble(const char *text, const char *defs) {
    jmp_buf jb, *outer = ctx.on_fail;
    Artifact *volatile art = NULL;
    ctx.err = (otrn_error){0};
    if (CTX_TRY(&ctx, jb)) {
        art = artifact_assemble(&ctx, &arena, "t.s", text, strlen(text), defs);
        artifact_verify(&ctx, art, "t.s");
    } else {
        art = NULL;
    }
    ctx.on_fail = outer;
    return art;
}

static void tell(const char *what, bool ok, const char *more) {
    printf("%s %s%s%s\n", ok ? "ok" : "FAIL", what, ok ? "" : ": ", ok ? "" : more);
    failures += !ok;
}

#define HEAD                                                                                       \
    ".param K=256\n.input x f32[K,64]\n.input v f32[64]\n.output y f32[K,64]\n.tensor h bf16[128,4,16]\n"                \
    ".sbuf a f32[2][128,64]\n.sbuf b f32[128,4,16]\n.sbuf c f32[128,1]\n.psum p f32[128,64]\n"

// The last instruction before halt, as dis prints it.
static const struct {
    const char *text, *line;
} lines[] = {
    {"dma a[1], x[128:+128, :]", "sync: dma dst=sbuf[0:256] src=arg0[32768] stype=f32 n0=128 n1=64"},
    {"dma a[0][0:64, 8:16], x[0:64, ::8]", "sync: dma dst=sbuf[0:32] src=arg0[0] stype=f32 n0=64 n1=8 s0=64 s1=8"},
    {"dma b, x[0:128, :]", "sync: dma dst=sbuf[0:512] src=arg0[0] stype=f32 n0=128 n1=64"},
    {"dma a[0], v[*128, :]", "sync: dma dst=sbuf[0:0] src=arg1[0] stype=f32 n0=128 n1=64 s1=1"},
    {"dma h, b", "sync: dma dst=scratch[0] src=sbuf[0:512] dtype=bf16 stype=f32 n0=128 n1=64"},
    {"dma a[0][0:64, 0:64], x[0:64, :].T", "sync: dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=64 n1=64 s0=1 s1=64"},
    {"tensor_tensor a[0], b, a[1] op0=add", "vector: tensor_tensor dst=sbuf[0:0] dtype=f32 src=sbuf[0:512] stype=f32 src1=sbuf[0:256] ttype=f32 op0=add n0=128 n1=64"},
    {"tensor_tensor b, b, c op0=add", "vector: tensor_tensor dst=sbuf[0:512] dtype=f32 src=sbuf[0:512] stype=f32 src1=sbuf[0:768] ttype=f32 t4=0 op0=add n0=128 n1=64"},
    {"tensor_tensor b, b, b[:, 0:1, :] op0=add", "vector: tensor_tensor dst=sbuf[0:512] dtype=f32 src=sbuf[0:512] stype=f32 src1=sbuf[0:512] ttype=f32 t2=1 op0=add n0=128 n1=4 n2=16"},
    {"tensor_reduce c, b op0=maximum", "vector: tensor_reduce dst=sbuf[0:768] dtype=f32 d4=0 src=sbuf[0:512] stype=f32 op0=maximum n0=128 n1=64"},
    {"tensor_scalar c, c op0=multiply a=1.0/K op1=add b=c", "vector: tensor_scalar dst=sbuf[0:768] dtype=f32 src=sbuf[0:768] stype=f32 op0=multiply a=0.00390625 op1=add b=sbuf[0:768] atype=f32 n0=128 n1=1"},
    {"ldweights a[0][:, 0:64]\nmatmul p[0:64], a[1] accumulate=K>0", "tensor: matmul dst=psum[0:0] src=sbuf[0:256] stype=f32 flags=accumulate n0=128 n1=64 n2=64"},
    {"if K == 256 {\nmemset c imm=1\n} else {\nmemset c imm=2\n}", "vector: memset dst=sbuf[0:768] dtype=f32 imm=1 n0=128 n1=1"},
    {"n = 3\nfor i = 0, 2 {\nn = n + i\n}\nmemset c imm=n*min(K,2)", "vector: memset dst=sbuf[0:768] dtype=f32 imm=8 n0=128 n1=1"},
};

static void test_lines(void) {
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const Artifact *art = assemble(arena_printf(&arena, "%s%s\n", HEAD, lines[i].text), NULL);
        Buf out = {.arena = &arena};
        IsaNames names = {.nargs = 2, .nresults = 1};
        if (art)
            isa_print_named(&art->code[art->ncode - 2], &names, &out);
        const char *got = art ? buf_cstr(&out) : ctx.err.text;
        if (!art || strcmp(got, lines[i].line))
            tell(lines[i].text, false, arena_printf(&arena, "\n  gave %s\n  want %s", got, lines[i].line));
    }
    tell("lines of kernels", !failures, "see above");
}

static void test_errors(void) {
    static const struct {
        const char *text;
        uint32_t line, col;
        const char *why;
    } cases[] = {
        {".param K=1\n.param L=Q+1\n", 2, 10, "no name `Q`"},
        {".sbuf a f32[129,4]\n", 1, 7, "partitions"},
        {".sbuf a f32[128,70000]\n", 1, 7, "SBUF is full"},
        {".psum a f32[9][128,512]\n", 1, 7, "PSUM is full"},
        {".sbuf a f32[128,4]\n.sbuf a f32[128,4]\n", 2, 7, "taken since line 1"},
        {".sbuf a f32[2][128,4]\nmemset a imm=0\n", 2, 8, "which of the 2 tiles"},
        {".sbuf a f32[128,4]\nmemset a[:, 0:5] imm=0\n", 2, 13, "5 of an axis of 4"},
        {".sbuf a f32[128,4]\nmemset a[:, 2:+3] imm=0\n", 2, 13, "outside an axis of 4"},
        {".sbuf a f32[128,2]\nmemset a[:, *9223372036854775807, :] imm=0\n", 2, 13, "more than 2^40"},
        {".sbuf a f32[128,4]\nmemset a[:, ::9223372036854775807] imm=0\n", 2, 13, "a step of"},
        {".tensor a f64[1000000000000]\n", 1, 9, "2^40 bytes"},
        {".sbuf a f32[128,4]\nmemset a[0,0,0] imm=0\n", 2, 14, "2 axes"},
        {".sbuf a f32[128,4]\nmemset a frob=0\n", 2, 10, "no field"},
        {".sbuf a f32[128,4]\nloop i = 0, 4 {\nmemset a[i:+1] imm=0\n}\n", 3, 10, "begin at a constant"},
        {".sbuf a f32[128,8]\nloop i = 0, 4 {\nmemset a[:, i%3] imm=0\n}\n", 3, 14, "powers of two"},
        {".sbuf a f32[128,8]\nloop i = 0, 4 {\nloop j = 0, 4 {\nmemset a[:, i*j] imm=0\n}\n}\n", 4, 14, "product of two"},
        {".sbuf a f32[128,8]\n.sbuf b f32[128,6]\ntensor_copy a, b\n", 3, 16, "an axis of 6"},
        {"for i = 0, 4 {\nnop\n", 1, 15, "no `}`"},
        {"}\n", 1, 1, "closes nothing"},
        {"for i = 0, 9999999999 {\nnop\n}\n", 3, 1, "once loops are unrolled"},
        {"nop imm=1/0\n", 1, 5, "no field"},
        {"x = 1/0\n", 1, 6, "division by 0"},
        {"x = 9223372036854775807 + 1\n", 1, 25, "beyond 64 bits"},
        {".sbuf a f32[128,8]\n.sync auto\nx: memset a imm=0\njump imm=x\n", 4, 1, "not jumps"},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Artifact *art = assemble(cases[i].text, NULL);
        if (!art && ctx.err.line == cases[i].line && ctx.err.col == cases[i].col && strstr(ctx.err.text, cases[i].why))
            continue;
        ok = false;
        printf("  %s  gave %u:%u %s\n  want %u:%u %s\n", cases[i].text, ctx.err.line, ctx.err.col, art ? "no error" : ctx.err.text,
               cases[i].line, cases[i].col, cases[i].why);
    }
    tell("errors of kernels have line and column", ok, "see above");
}

static void test_params(void) {
    const Artifact *a = assemble(".param K=256\n.output y f32[K]\n", "K=512");
    tell("-D changes a parameter", a && a->results[0].dims[0] == 512, ctx.err.text);
    tell("-D of a name that is no parameter", !assemble(".param K=256\n", "L=512") && ctx.err.code == OTRN_USAGE, "taken");
}

// dis of a kernel reads back to the same bytes, loops, terms and waits included.
static void test_round_trip(void) {
    const Artifact *art = assemble(HEAD ".sync auto\nloop i = 0, 2 {\ndma a[i%2], x[i*128:+128, :]\nfor k = 0, 2 {\n"
                                        "tensor_tensor b, a[i%2], b op0=add\n}\nscalar: dma y[i*128:+128, :], b queue=3\n}\n", NULL);
    Buf one = {.arena = &arena}, two = {.arena = &arena}, text = {.arena = &arena};
    const Artifact *back = NULL;
    if (art) {
        artifact_save(art, &one);
        artifact_print(art, &text);
        back = assemble(buf_cstr(&text), NULL);
    }
    if (back)
        artifact_save(back, &two);
    tell("dis of a kernel reads back", back && one.n == two.n && !memcmp(one.at, two.at, one.n), ctx.err.text);
}

static void expect_inst(const char *text, IsaInst got) {
    const Artifact *art = assemble(arena_printf(&arena, "%s%s\n", HEAD, text), NULL);
    Buf out = {.arena = &arena};
    isa_print(&got, &out);
    tell(text, art && !memcmp(&art->code[art->ncode - 2], &got, sizeof got), buf_cstr(&out));
}

static void test_build(void) {
    View a0 = VIEW((Mem){.addr = addr_sbuf(0, 0)}, DT_F32, {128}, {64, 1}), a1 = VIEW((Mem){.addr = addr_sbuf(0, 256)}, DT_F32, {128}, {64, 1});
    View c = VIEW((Mem){.addr = addr_sbuf(0, 768)}, DT_F32, {128}), x = VIEW(mem_hbm(addr_hbm(2, 0)), DT_F32, {128, 64}, {64, 1});
    View p = VIEW((Mem){.addr = addr_psum(0, 0)}, DT_F32, {64}, {64, 1});
    expect_inst("dma a[0], x[0:128, :]", isa_dma(ENG_SYNC, 0, a0, x));
    expect_inst("tensor_tensor a[0], a[0], a[1] op0=add", isa_tensor_tensor(ENG_VECTOR, a0, a0, ALU_ADD, a1));
    expect_inst("tensor_scalar a[0], a[1] op0=multiply a=2.0 op1=add b=c",
                isa_tensor_scalar(ENG_VECTOR, a0, a1, ALU_MUL, isa_f32(2), ALU_ADD, isa_per_part(c)));
    expect_inst("ldweights a[0]\nmatmul p[0:64], a[1]", isa_matmul(p, a1, 0));
    expect_inst("activation a[0], a[1] fn=exp a=1.0 b=c res=c rop=add rcmd=reset_reduce",
                isa_activation(a0, a1, ACT_EXP, isa_f32(1), isa_per_part(c), &c, RCMD_RESET_REDUCE));
    expect_inst("memset a[1] imm=7", isa_memset(ENG_VECTOR, a1, 7));
}

int main(void) {
    arena_init(&arena, &ctx);
    test_lines();
    test_errors();
    test_params();
    test_round_trip();
    test_build();
    arena_fini(&arena);
    return failures != 0;
}
