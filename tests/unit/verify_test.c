// SPDX-License-Identifier: Apache-2.0
// verify_test.c — the rules of instructions, one by one: each case is a line that breaks one rule (or
// keeps it), the chip it is meant for, and words the message must have.
#include <stdio.h>

#include "artifact/artifact.h"

static int failures;
static Ctx ctx;
static Arena arena;

static const IsaChip chips[] = {
    {0}, {0}, {2, 192 << 10, 16 << 10, 100}, {3, 224 << 10, 16 << 10, 100}, {4, 256 << 10, 16 << 10, 100}};

#define HEAD ".arg f32[64,64]\n.result f32[64,64]\n.scratch 65536\n"
#define S "src=sbuf[0:0] stype=f32 "
#define D "dst=sbuf[0:4096] dtype=f32 "
#define N "n0=128 n1=16"
#define LDW "ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128\n"

typedef struct Case {
    int gen;
    const char *text, *why; // why NULL: it is taken
} Case;

static const Case cases[] = {
    // generations, sizes and memories
    {3, "for i = 0, 99 {\nnop\n}", NULL},
    {3, "for i = 0, 100 {\nnop\n}", "101 instructions, the chip takes 100"},
    {3, "exponential " D S N, "does not have it"},
    {4, "exponential " D S N, NULL},
    {2, "range_select " D S "op0=less op1=less a=1.0 b=2.0 rop=maximum rcmd=reset_reduce " N, "trn2"},
    {2, "memset dst=sbuf[0:196608] dtype=f32 n0=1 n1=1", "outside the 196608 bytes"},
    {3, "memset dst=sbuf[0:196608] dtype=f32 n0=1 n1=1", NULL},
    {3, "gpsimd: memset dst=psum[0:0] dtype=f32 n0=1 n1=1", "memory this instruction does not reach"},
    {3, "tensor_copy dst=scratch[0] dtype=f32 " S N, "dst is in a memory"},
    {3, "memset dst=sbuf[32:0] dtype=f32 n0=64 n1=1", "multiple of 64"},
    {3, "memset dst=sbuf[0:0] dtype=f32 n0=1 n1=8 n2=8 n3=8 n4=256", "more than 65536"},
    {3, "memset dst=sbuf[0:0] dtype=f32 n0=1 n1=2 n2=2 n3=2 n4=2 d4=20000 d1=1", NULL},
    {3, "memset dst=sbuf[0:0] dtype=f32 n0=1 n1=2 n2=2 n3=2 n4=2 d4=60000 d1=1", "dst reaches outside"},
    {3, "tensor_copy dst=sbuf[0:2] dtype=f32 " S N, "aligned"},
    // operations and types
    {3, "tensor_tensor " D S "src1=sbuf[0:8192] ttype=f32 op0=average " N, "op0: average"},
    {3, "tensor_tensor " D S "src1=sbuf[0:8192] ttype=f32 op0=bitwise_and " N, "takes integers"},
    {3, "vector: tensor_tensor " D S "src1=sbuf[0:8192] ttype=f32 op0=power " N, "gpsimd only"},
    {3, "gpsimd: tensor_tensor " D S "src1=sbuf[0:8192] ttype=f32 op0=power " N, NULL},
    {3, "tensor_tensor " D "src=psum[0:0] stype=f32 src1=psum[0:2048] ttype=f32 op0=add " N, "both in PSUM"},
    {3, "tensor_scalar dst=sbuf[0:0] dtype=i32 src=sbuf[0:0] stype=i32 op0=bitwise_and a=3 op1=add b=1 " N, "both must be bitwise"},
    {3, "tensor_scalar dst=sbuf[0:0] dtype=i32 src=sbuf[0:0] stype=i32 op0=bitwise_and a=3 op1=shift_left b=1 " N, NULL},
    {3, "scalar: tensor_scalar " D S "op0=maximum a=0.0 " N, "the scalar engine of trn2"},
    {3, "scalar: tensor_scalar " D S "op0=multiply a=2.0 op1=add b=1.0 " N, NULL},
    {2, "scalar: tensor_scalar " D S "op0=multiply a=2.0 " N, "from trn2 on"},
    {3, "tensor_scalar " D S "op0=multiply a=sbuf[0:8192] " N, "a has no element type"},
    {3, "tensor_scalar " D S "op0=multiply a=sbuf[0:8192] atype=f32 " N, NULL},
    {3, "tensor_scalar " D S "op0=multiply a=sbuf[0:8193] atype=f32 " N, "a is not aligned"},
    {3, "tensor_scalar " D S "op0=multiply a=2.0 flags=negate " N, "flags"},
    {3, "tensor_reduce " D S "op0=less " N, "op0: less"},
    {3, "partition_reduce dst=sbuf[0:0] dtype=f32 " S "op0=minimum " N, "op0: minimum"},
    {3, "scalar_reduce " D S "op0=add a=1.0 res=sbuf[0:9000] rtype=f32 rop=subtract rcmd=reset_reduce " N, "rop"},
    {3, "activation " D S "fn=exp a=1.0 rcmd=reset_reduce res=sbuf[0:9000] rtype=f32 " N, "rop: rcmd reduces"},
    {3, "activation " D S "fn=exp a=1.0 rop=add rcmd=reset_reduce res=sbuf[0:9000] rtype=f32 " N, NULL},
    {3, "affine_select " D S "op0=add a=0.0 " N, "op0: add"},
    {3, "copy_predicated " D "src=sbuf[0:0] stype=bf16 src1=sbuf[0:8192] ttype=ui8 " N, "does not convert"},
    {3, "copy_predicated " D S "src1=sbuf[0:8192] ttype=f32 " N, "src1: `copy_predicated` does not take f32"},
    {3, "select_reduce " D S "src1=sbuf[0:8192] ttype=ui32 a=0.0 " N, "at most 16 bits"},
    {3, "tensor_copy dst=sbuf[0:0] dtype=f64 " S N, "does not take f64"},
    // counts
    {3, "bn_stats " D S "n0=128 n1=513", "n1=513"},
    {3, "bn_stats " D S "n0=128 n1=512", NULL},
    {3, "bn_aggr " D S "n0=128 n1=8", "multiple of 3"},
    {3, "max8 " D S "n0=128 n1=7", "n1=7"},
    {3, "find_index8 dst=sbuf[0:4096] dtype=f32 " S "src1=sbuf[0:8192] ttype=f32 n0=128 n1=8", "dst: `find_index8`"},
    {3, "transpose dst=psum[0:0] dtype=f32 " S "n0=128 n1=128", NULL},
    {3, "tensor: transpose dst=psum[0:0] dtype=f32 " S "n0=128 n1=129", "128 x 128"},
    {3, "vector: transpose dst=sbuf[0:4096] dtype=f32 " S "n0=33 n1=32", "32 x 32"},
    {3, "stream_shuffle " D S "mask=32,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 " N, "mask: 32"},
    {3, "rand_set_state src=sbuf[0:0] stype=ui32 n0=128 n1=24", "6 words"},
    {3, "local_gather " D S "src1=sbuf[0:8192] ttype=ui16 imm=64 n0=128 n1=16 n2=3", "n2=3"},
    {3, "topk " D S "res=sbuf[0:9000] rtype=ui32 imm=9 n0=16 n1=8", "imm=9"},
    // tensor engine
    {3, LDW "matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=513 n2=128", "513 moving"},
    {4, LDW "matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=1024 n2=128", NULL},
    {4, LDW "matmul dst=psum[0:0] dtype=bf16 src=sbuf[0:0] stype=bf16 n0=128 n1=1024 n2=128", NULL},
    {3, LDW "matmul dst=psum[0:0] dtype=bf16 src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128", "PSUM does not take"},
    {3, LDW "matmul dst=psum[0:4] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128", "crosses a PSUM bank"},
    {3, LDW "matmul dst=psum[0:0] src=sbuf[0:0] stype=f32 n0=128 n1=512 n2=128", "does not go with weights"},
    {3, "ldweights src=sbuf[0:0] stype=bf16 n0=32 n1=32 trows=48 tcols=32", "a tile of 48"},
    {2, "ldweights src=sbuf[0:0] stype=bf16 n0=32 n1=32 trows=32 tcols=32", "from trn2 on"},
    {3, "ldweights src=sbuf[0:0] stype=bf16 n0=32 n1=32 trow=16 trows=32 tcols=32", "cannot begin"},
    {3, "ldweights src=sbuf[0:0] stype=bf16 n0=64 n1=32 trows=32 tcols=32", "does not fit the array"},
    {3, "ldweights src=sbuf[0:0] stype=bf16 n0=32 n1=32 trows=32 tcols=32\nldweights src=sbuf[32:0] stype=bf16 n0=32 n1=32 trow=32 trows=32 tcols=32\n"
        "matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=32 n1=8 n2=32 trows=32 tcols=32", NULL},
    {3, "ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 flags=double_row step=128", "double_row takes"},
    {3, "ldweights src=sbuf[0:0] stype=f8E4M3 n0=128 n1=128 flags=double_row", "needs step"},
    {2, "ldweights src=sbuf[0:0] stype=f8E4M3 n0=128 n1=128 flags=double_row step=128", "from trn2 on"},
    {4, "ldweights_mx src=sbuf[0:0] stype=f8E4M3FN src1=sbuf[0:8192] n0=96 n1=3", "multiple of 2"},
    {4, "ldweights_mx src=sbuf[0:0] stype=f8E4M3FN src1=sbuf[0:8192] n0=40 n1=4", "multiple of 32"},
    {4, "ldweights_mx src=sbuf[0:0] stype=f8E4M3FN src1=sbuf[4:8192] n0=128 n1=128\n"
        "matmul_mx dst=psum[0:0] src=sbuf[0:0] stype=f8E5M2 src1=sbuf[0:9000] n0=128 n1=512 n2=128", NULL},
    // DMA
    {3, "dma dst=sbuf[0:0] src=arg0[0] stype=f32 op0=multiply n0=4", "op0: multiply"},
    {3, "dma dst=sbuf[0:0] src=arg0[0] stype=f32 dtype=bf16 mode=hwdge n0=4", "hwdge neither"},
    {2, "dma dst=sbuf[0:0] src=arg0[0] stype=f32 mode=hwdge n0=4", "from trn2 on"},
    {3, "dma dst=sbuf[0:0] src=arg0[0] stype=complex<f32> dtype=f32 n0=4", "up to 4 bytes"},
    {3, "dma_transpose dst=sbuf[0:0] src=arg0[0] stype=ui8 n0=4", "2 or 4 bytes"},
    {3, "dma_indirect dst=sbuf[0:0] src=arg0[0] stype=f32 src1=sbuf[0:64] ttype=i32 n0=4 n1=64 s0=64 s1=1 d1=1", "limit=0"},
    {3, "dma_indirect dst=sbuf[0:0] src=arg0[0] stype=f32 src1=sbuf[0:64] ttype=i32 limit=65 n0=4 n1=64 s0=64 s1=1 d1=1", "outside its segment"},
    {3, "dma_indirect dst=sbuf[0:0] src=arg0[0] stype=f32 src1=sbuf[0:64] ttype=i32 limit=64 n0=4 n1=64 s0=64 s1=1 d1=1", NULL},
    // registers, loops, jumps
    {3, "loop imm=x reg=1 limit=4 step=0\nx: endloop imm=0", "step=0"},
    {3, "a: loop imm=x reg=1 limit=4 step=1\nnop\nx: endloop imm=a", NULL},
    {3, "a: loop imm=1 reg=1 limit=4 step=1\nnop\nx: endloop imm=a", "does not name an endloop"},
    {3, "endloop imm=0", "no loop to end"},
    {3, "a: loop imm=x reg=1 limit=4 step=1\nreg_move reg=1 value=0\nx: endloop imm=a", "counts a loop"},
    {3, "a: loop imm=x reg=1 limit=4 step=1\njump imm=y\nx: endloop imm=a\ny: nop", "border of a loop"},
    {3, "a: loop imm=x reg=1 limit=4 step=1\nbranch op0=equal reg=2 value=0 imm=x\nnop\nx: endloop imm=a", NULL},
    {3, "branch op0=add reg=2 value=0 imm=0", "op0: add"},
    {3, "reg_alu reg=1 op0=power areg=1 value=2", "op0: power"},
    {3, "a: loop imm=x reg=1 limit=4 step=1\nmemset dst=sbuf[0:0+r1*65536] dtype=f32 n0=1 n1=1\nx: endloop imm=a", NULL},
    {3, "a: loop imm=x reg=1 limit=5 step=1\nmemset dst=sbuf[0:0+r1*65536] dtype=f32 n0=1 n1=1\nx: endloop imm=a", "dst reaches outside"},
    {3, "a: loop imm=x reg=1 limit=64 step=1\ndma dst=sbuf[0:0] src=arg0[0+r1*256] stype=f32 n0=1 n1=64\nx: endloop imm=a", NULL},
    {3, "a: loop imm=x reg=1 limit=65 step=1\ndma dst=sbuf[0:0] src=arg0[0+r1*256] stype=f32 n0=1 n1=64\nx: endloop imm=a", "src reaches outside its segment"},
    {3, "a: loop imm=x reg=1 limit=65 step=1\nreg_alu reg=2 op0=bitwise_and areg=1 value=1\ndma dst=sbuf[0:0] src=arg0[0+r2*256] stype=f32 n0=1 n1=64\nx: endloop imm=a", NULL},
    {3, "a: loop imm=x reg=1 limit=4 step=1\nmemset dst=sbuf[0:0+r1*2] dtype=f32 n0=1 n1=1\nx: endloop imm=a", "not aligned"},
    {3, "reg_load reg=1 src=arg0[0] stype=i32\nmemset dst=sbuf[0:0+r1*65536] dtype=f32 n0=1 n1=1", NULL},
    {3, LDW "a: loop imm=x reg=1 limit=4 step=1\nmatmul dst=psum[0:0+r1*2048] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128\nx: endloop imm=a", NULL},
    {3, LDW "a: loop imm=x reg=1 limit=4 step=1\nmatmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128\nldweights src=sbuf[0:0] stype=f32 n0=64 n1=64\nx: endloop imm=a", "needs an ldweights"},
    // waits
    {3, "a: loop imm=x reg=1 limit=4 step=1\nvector: nop\nx: endloop imm=a\nscalar: nop wait(vector>=4)", NULL},
    {3, "a: loop imm=x reg=1 limit=4 step=1\nvector: nop\nx: endloop imm=a\nscalar: nop wait(vector>=5)", "only 4"},
    {3, "a: loop imm=x reg=1 breg=r2 step=1\nvector: nop\nx: endloop imm=a\nscalar: nop wait(vector>=1)", "only 0"},
    {3, "nop wait(vector-3, s4>=1)", NULL},
};

static void run(const Case *c, size_t number) {
    jmp_buf jb, *outer = ctx.on_fail;
    ctx.err = (otrn_error){0};
    if (CTX_TRY(&ctx, jb)) {
        const char *text = arena_printf(&arena, "%s%s\n", HEAD, c->text);
        Artifact *art = artifact_parse(&ctx, &arena, "t.s", text, strlen(text));
        artifact_verify_for(&ctx, art, "t.s", &chips[c->gen], NULL);
    }
    ctx.on_fail = outer;
    bool ok = c->why ? ctx.err.code == OTRN_VERIFY && strstr(ctx.err.text, c->why) : ctx.err.code == OTRN_OK;
    if (!ok)
        printf("FAIL case %zu: %s\n  gave: %s\n  want: %s\n", number, c->text, ctx.err.text, c->why ? c->why : "taken");
    failures += !ok;
}

int main(void) {
    arena_init(&arena, &ctx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run(&cases[i], i);
    if (!failures)
        printf("ok %zu rules of instructions\n", sizeof cases / sizeof *cases);
    arena_fini(&arena);
    return failures != 0;
}
