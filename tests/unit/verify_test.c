// SPDX-License-Identifier: Apache-2.0
// verify_test.c — the rules of instructions, one by one: each case is a line that breaks one rule (or
// keeps it), the chip it is meant for, and words the message must have.
#include <stdio.h>

#include "artifact/artifact_bounds.h"

static int failures;
static Ctx ctx;
static Arena arena;

static const IsaChip chips[] = {
    {0}, {0}, {2, 192 << 10, 16 << 10, 100}, {3, 224 << 10, 16 << 10, 100}, {4, 256 << 10, 16 << 10, 100}};

#define HEAD ".arg f32[64,64]\n.arg f32[8] donated\n.result f32[64,64]\n.result f32[8] alias=1\n.scratch 65536\n"
#define S "src=sbuf[0:0] stype=f32 "
#define D "dst=sbuf[0:4096] dtype=f32 "
#define N "n0=128 n1=16"
#define KERNEL ".kernel 0 stablehlo."
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
    {3, "gpsimd: memset dst=psum[0:0] dtype=f32 n0=1 n1=1", "dst is in PSUM, which this instruction does not reach"},
    {3, "tensor_copy dst=scratch[0] dtype=f32 " S N, "dst is in HBM"},
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
    // kernels: what may lie on what
    {3, KERNEL "add (arg0[0]: f32[64], scratch[0]: f32[64]) -> (scratch[0]: f32[64])", NULL},
    {3, KERNEL "add (arg0[0]: f32[64], scratch[0]: f32[64]) -> (scratch[4]: f32[64])", "result 0 lies on operand 1"},
    {3, KERNEL "add (scratch[0]: f32[64], scratch[512]: f32[64]) -> (scratch[256]: f32[64])", NULL},
    {3, KERNEL "add (scratch[0]: f32[64], scratch[508]: f32[64]) -> (scratch[256]: f32[64])", "result 0 lies on operand 1"},
    {3, KERNEL "convert (scratch[0]: f32[64]) -> (scratch[0]: bf16[64])", "result 0 lies on operand 0"},
    {3, KERNEL "transpose (scratch[0]: f32[8,8]) -> (scratch[0]: f32[8,8]) {permutation = [1, 0]}", "result 0 lies on operand 0"},
    {3, KERNEL "transpose (scratch[0]: f32[8,8]) -> (scratch[256]: f32[8,8]) {permutation = [1, 0]}", NULL},
    {3, KERNEL "reverse (arg0[0]: f32[8,8]) -> (result0[0]: f32[8,8]) {dimensions = [0]}", NULL},
    {3, KERNEL "reverse (arg1[0]: f32[8]) -> (result1[0]: f32[8]) {dimensions = [0]}", "result 0 lies on operand 0"},
    {3, KERNEL "negate (arg1[0]: f32[8]) -> (result1[0]: f32[8])", NULL},
    {3, KERNEL "negate (arg1[0]: f32[4]) -> (result1[8]: f32[4])", "result 0 lies on operand 0"},
    {3, KERNEL "optimization_barrier (arg0[0]: f32[8], arg0[0]: f32[8]) -> (scratch[0]: f32[8], scratch[16]: f32[8])", "results 0 and 1 overlap"},
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

// --- the quick half ----------------------------------------------------------------------------------------

static uint64_t rng(void) { // splitmix64
    static uint64_t state = 7;
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t random_addr(uint64_t addr) {
    static const uint32_t near[] = {0, 1, 2, 4, 2044, 2048, 4096, 16384, 65536, 196608, 229376, 262144};
    uint32_t off = near[rng() % (sizeof near / sizeof *near)] + (uint32_t)(rng() % 3 ? 0 : rng() % 64) - (uint32_t)(rng() % 4 ? 0 : 4);
    switch (rng() % 4) {
    case 0:
        return addr_hbm((uint32_t)(rng() % 5), off);
    case 1:
        return (addr_space(addr) == SPACE_PSUM ? addr_psum : addr_sbuf)((uint32_t)(rng() % 3 * 32), off);
    default:
        return addr_space(addr) == SPACE_HBM ? addr >> 40 << 40 | off : addr >> 32 << 32 | off;
    }
}

static IsaInst damaged(IsaInst in) {
    for (int i = 0; i < SHAPE_ADDRS; i++) {
        uint64_t addr = shape_addr(&in, i);
        if (isa_row_has(in.op, shape_addr_fields[i]) && addr && rng() % 2)
            isa_field_set(&in, shape_addr_fields[i], random_addr(addr));
    }
    for (const uint8_t *f = isa_row_fields(in.op); *f < ISA_FIELD_COUNT; f++)
        if (*f >= ISA_F_n0 && *f <= ISA_F_t4 && rng() % 8 == 0)
            isa_field_set(&in, *f, rng() % 2 ? rng() % 300 : (uint64_t)-(int64_t)(rng() % 4));
    return in;
}

static bool by_the_rules(const Artifact *art, const IsaInst *in, const IsaChip *chip) {
    char why[ISA_WHY];
    IsaMask mask = isa_row_mask(in->op);
    IsaAccess access[ISA_ACCESS_MAX];
    if (isa_check(in, mask, chip, why))
        return false;
    int n = isa_accesses(in, mask, access);
    for (int i = 0; i < n; i++)
        if (isa_check_access(in, &access[i], chip, 0, 0, why) || artifact_access_fault(art, in, &access[i], 0, why))
            return false;
    return true;
}

// An instruction that is not in doubt obeys the rules, and the other way round when no register is in its addresses.
static void test_bounds(void) {
    enum { COUNT = 60000 };
    IsaInst *code = ARENA_NEWN(&arena, IsaInst, COUNT);
    uint32_t n = 0, wrong = 0, missed = 0, right = 0;
    Artifact art = {0};
    jmp_buf *outer = ctx.on_fail;
    while (n < COUNT) {
        const Case *c = &cases[rng() % (sizeof cases / sizeof *cases)];
        jmp_buf jb;
        if (!CTX_TRY(&ctx, jb))
            continue;
        const char *text = arena_printf(&arena, ".arg f32[64,64] donated\n%s%s\n", HEAD, c->text);
        Artifact *from = artifact_parse(&ctx, &arena, "t.s", text, strlen(text));
        art = *from;
        for (int k = 0; k < 200 && n < COUNT; k++)
            code[n++] = damaged(from->code[rng() % from->ncode]);
    }
    ctx.on_fail = outer;
    art.code = code, art.ncode = COUNT;
    for (int gen = 2; gen <= 4; gen++) {
        const IsaShapes *shapes = shapes_find(&arena, code, COUNT);
        const uint8_t *doubt = bounds_doubt(&arena, &art, shapes, bounds_make(&arena, shapes, &chips[gen]), &chips[gen], NULL);
        for (uint32_t i = 0; i < COUNT; i++) {
            bool rules = by_the_rules(&art, &code[i], &chips[gen]);
            bool registers = code[i].reg_d[0] || code[i].reg_s[0] || code[i].reg_t[0];
            wrong += !doubt[i] && !rules;
            missed += doubt[i] && rules && !registers;
            right += rules;
        }
    }
    if (wrong || missed || right < COUNT / 10) {
        printf("FAIL bounds of shapes: %u wrongly taken, %u wrongly in doubt, %u right\n", wrong, missed, right);
        failures++;
    } else {
        printf("ok bounds of shapes\n");
    }
}

int main(void) {
    arena_init(&arena, &ctx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run(&cases[i], i);
    test_bounds();
    if (!failures)
        printf("ok %zu rules of instructions\n", sizeof cases / sizeof *cases);
    arena_fini(&arena);
    return failures != 0;
}
