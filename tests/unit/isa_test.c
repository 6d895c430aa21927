// SPDX-License-Identifier: Apache-2.0
// isa_test.c — walks every row of the instruction table: encoding, text and manual agree with it.
//
// isa_test manual   prints spec/isa.md
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "chip/core/chip.h"
#include "isa/shape.h"
#include "unit.h"

#ifndef OTRN_SOURCE_DIR
#define OTRN_SOURCE_DIR "."
#endif

static Ctx ctx;
static Arena arena;

static uint64_t rng_state = 1;
static uint64_t rng(void) {
    uint64_t z = (rng_state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t random_addr(void) {
    uint32_t off = (uint32_t)rng() & 0xffff;
    switch (rng() % 4) {
    case 0:
        return addr_hbm((uint32_t)rng() & SEG_MAX, rng() & 0xffffffffffu);
    case 1:
        return addr_sbuf((uint32_t)rng() & 127, off);
    case 2:
        return addr_psum((uint32_t)rng() & 127, off);
    default:
        return rng(); // anything the bits can hold
    }
}

static uint64_t random_scalar(void) {
    switch (rng() % 4) {
    case 0:
        return 0;
    case 1:
        return scalar_i32((int32_t)rng());
    case 2:
        return (uint64_t)SPACE_F32 << 56 | (uint32_t)rng(); // any bits
    default:
        return random_addr();
    }
}

static uint64_t random_value(int f) {
    switch ((FieldKind)isa_fields[f].kind) {
    case FK_ADDR:
        return random_addr();
    case FK_SCALAR:
        return random_scalar();
    case FK_DTYPE:
        return rng() % DT_COUNT;
    case FK_ALU:
        return rng() % ALU_COUNT;
    case FK_ACT:
        return rng() % ACT_COUNT;
    case FK_RCMD:
        return rng() % RCMD_COUNT;
    case FK_MODE:
        return rng() % DGE_COUNT;
    case FK_TERM:
        return 0;
    case FK_REG:
    case FK_REG_OR_NONE:
        return rng() % ISA_REGS;
    default:
        return rng() & 1 ? rng() : rng() % 5;
    }
}

static void random_terms(uint8_t reg[2], int32_t mul[2]) {
    for (int i = 0; i < 2 && rng() & 1; i++) {
        reg[i] = (uint8_t)(1 + rng() % ISA_REGS);
        mul[i] = (int32_t)rng();
    }
}

// An instruction of this row with random contents; sparse ones leave most fields zero.
static IsaInst random_inst(int op, bool sparse) {
    IsaInst in = {.op = (uint8_t)op, .wait_sem = {SEM_NONE, SEM_NONE}};
    do
        in.engine = (uint8_t)(rng() % ENG_COUNT);
    while (!isa_row_engine(op, in.engine));
    for (int w = 0; w < 2; w++)
        if (rng() & 1) {
            in.wait_sem[w] = (uint8_t)(rng() % SEM_COUNT);
            if (in.wait_sem[w] < SEM_USER && rng() & 1)
                in.wait_sem[w] |= SEM_BACK;
            in.wait_val[w] = (uint32_t)rng();
        }
    if (rng() & 1) {
        in.upd_sem = (uint8_t)(1 + rng() % USER_SEMS);
        in.upd_op = (uint8_t)(rng() % 3 | (rng() & UPD_AT_READ));
        in.upd_val = (uint16_t)rng();
    }
    IsaMask mask = isa_row_mask(op);
    for (int f = ISA_HEAD_FIELDS; f < ISA_FIELD_COUNT; f++)
        if (mask >> f & 1 && (!sparse || rng() % 4 == 0))
            isa_field_set(&in, f, random_value(f));
    random_terms(in.reg_d, in.mul_d);
    random_terms(in.reg_s, in.mul_s);
    random_terms(in.reg_t, in.mul_t);
    if (!(mask & ISA_BIT(ISA_F_dst)))
        memset(in.reg_d, 0, 2), memset(in.mul_d, 0, 8);
    if (!(mask & ISA_BIT(ISA_F_src)))
        memset(in.reg_s, 0, 2), memset(in.mul_s, 0, 8);
    if (!(mask & ISA_BIT(ISA_F_src1)))
        memset(in.reg_t, 0, 2), memset(in.mul_t, 0, 8);
    return in;
}

static bool same(const IsaInst *a, const IsaInst *b) {
    for (int f = 0; f < ISA_FIELD_COUNT; f++)
        if (isa_field_get(a, f) != isa_field_get(b, f))
            return false;
    return true;
}

// Both leave ctx.on_fail as they found it: main's.
static otrn_status decode_some(const uint8_t *bytes, size_t n, IsaInst *out) {
    jmp_buf jb, *outer = ctx.on_fail;
    Rd r = {&ctx, "test", bytes, bytes, bytes + n};
    ctx.err = (otrn_error){0};
    if (CTX_TRY(&ctx, jb))
        isa_decode(&r, NULL, out);
    ctx.on_fail = outer;
    return ctx.err.code;
}

static otrn_status decode(const uint8_t *bytes, IsaInst *out) {
    return decode_some(bytes, ISA_BYTES_MAX, out);
}

static otrn_status parse(const char *line, IsaInst *out) {
    jmp_buf jb, *outer = ctx.on_fail;
    ctx.err = (otrn_error){0};
    if (CTX_TRY(&ctx, jb))
        isa_parse(&ctx, (Place){"t.s", 7, 1}, line, out);
    ctx.on_fail = outer;
    return ctx.err.code;
}

// Every field of a row has bytes of its own: changing it changes the encoding, and the size fits.
static void test_fields_do_not_overlap(void) {
    const char *why = NULL;
    for (int op = 0; op < ISA_OP_COUNT; op++) {
        uint8_t owner[ISA_BYTES_MAX] = {0};
        IsaInst zero = {.op = (uint8_t)op};
        uint8_t base[ISA_BYTES_MAX], bytes[ISA_BYTES_MAX];
        size_t size = isa_encode(&zero, base);
        if (size != isa_bytes(op) || size > ISA_BYTES_MAX || size % 4)
            why = isa_rows[op].name;
        IsaMask mask = isa_row_mask(op);
        for (int f = 1; f < ISA_FIELD_COUNT; f++) {
            IsaInst in = zero;
            if (!(mask >> f & 1))
                continue;
            isa_field_set(&in, f, UINT64_MAX);
            isa_encode(&in, bytes);
            int own = 0;
            for (size_t i = 0; i < size; i++)
                if (bytes[i] != base[i] && (own++, owner[i]++))
                    why = isa_fields[f].name;
            if (own != isa_fields[f].bytes)
                why = isa_fields[f].name;
        }
    }
    result("fields do not overlap", why);
}

static void test_rows(void) {
    const char *why = NULL;
    for (int op = 0; op < ISA_OP_COUNT; op++) {
        const IsaRow *row = &isa_rows[op];
        if (isa_find(row->name, strlen(row->name)) != op)
            why = "two rows share a mnemonic";
        if (!row->engines[0] || row->cost >= COST_COUNT || !row->meaning[0])
            why = "a row lacks engines, cost or meaning";
        if (row->gen < 2 || row->gen > 4)
            why = "a row of no generation";
        for (const char *e = row->engines; *e; e++)
            if (!strchr("tvsgy", *e))
                why = "an unknown engine letter";
    }
    result("rows are complete", why);
}

static void test_encode_round_trip(void) {
    const char *why = NULL;
    for (int op = 0; op < ISA_OP_COUNT && !why; op++)
        for (int n = 0; n < 200 && !why; n++) {
            IsaInst in = random_inst(op, n & 1), back;
            uint8_t bytes[ISA_BYTES_MAX] = {0}, again[ISA_BYTES_MAX] = {0};
            isa_encode(&in, bytes);
            if (decode(bytes, &back) != OTRN_OK)
                why = ctx.err.text;
            else if (!same(&in, &back))
                why = isa_rows[op].name;
            else if (isa_encode(&back, again), memcmp(bytes, again, ISA_BYTES_MAX))
                why = "bytes differ";
        }
    result("encode and decode are inverses", why);
}

// Programs through their shapes: some instructions alike but for addresses and counts, some not; enough for several
// chunks, decoded by one thread and by two.
static void test_shapes(void) {
    enum { N = 10000, KINDS = 40 };
    IsaInst *in = ARENA_NEWN(&arena, IsaInst, N), kinds[KINDS], *back;
    for (int i = 0; i < KINDS; i++)
        kinds[i] = random_inst((int)(rng() % ISA_OP_COUNT), i & 1);
    for (int i = 0; i < N; i++) {
        in[i] = rng() % 100 ? kinds[rng() % KINDS] : random_inst((int)(rng() % ISA_OP_COUNT), true);
        for (int w = 0; w < 2; w++)
            in[i].wait_val[w] = in[i].wait_sem[w] == SEM_NONE ? 0 : (uint32_t)rng();
        if (isa_row_has(in[i].op, ISA_F_dst))
            in[i].dst = rng() & 1 ? addr_sbuf(in[i].dst & 31, (uint32_t)rng()) : rng() % 4 ? addr_hbm(rng() & 7, rng() & 0xffffff) : 0;
    }
    const char *why = NULL;
    Buf bytes = {.arena = &arena}, again = {.arena = &arena};
    IsaShapes *shapes = shapes_find(&arena, in, N);
    shapes_encode(shapes, N, &bytes);
    Pool *pool = pool_make(2);
    for (int threads = 1; threads <= 2; threads++) {
        uint32_t n = 0;
        Rd r = {&ctx, "test", bytes.at, bytes.at, bytes.at + bytes.n};
        IsaShapes *read = shapes_decode(&r, NULL, &arena, threads == 1 ? NULL : pool, &back, &n);
        for (int i = 0; i < N; i++)
            if (n != N || !same(&in[i], &back[i]))
                why = "an instruction changed";
        if (r.at != r.end)
            why = "bytes are left over";
        again.n = 0;
        shapes_encode(read, n, &again);
        if (again.n != bytes.n || memcmp(again.at, bytes.at, bytes.n))
            why = "bytes differ";
    }
    pool_free(pool);
    if (shapes->n < KINDS || shapes->n > KINDS * 8 + N / 50)
        why = "instructions that are alike have different shapes";
    result("code through its shapes", why);
}

// A file whose numbers are not ours: shapes come in another order, or two of them are one. What is read is as if it
// had been written with our numbers.
static void test_shapes_renumbered(void) {
    enum { COUNT = 64 };
    const char *why = NULL;
    for (int twice = 0; twice < 2; twice++) { // their f32 and bf16: exchanged, or both f32
        IsaMap map;
        for (int i = 0; i < 256; i++)
            map.op[i] = map.dtype[i] = map.alu[i] = map.act[i] = (uint8_t)i;
        map.dtype[DT_F32] = twice ? DT_F32 : DT_BF16;
        map.dtype[DT_BF16] = DT_F32;
        IsaInst theirs[COUNT], ours[COUNT], *back;
        for (int i = 0; i < COUNT; i++) {
            theirs[i] = (IsaInst){.op = ISA_COPY, .engine = ENG_VECTOR, .wait_sem = {SEM_NONE, SEM_NONE},
                                  .dst = addr_sbuf(0, 64u * (uint32_t)i), .src = addr_sbuf(0, 0), .n = {1, 1 + (uint32_t)(rng() % 4)},
                                  .dtype = rng() & 1 ? DT_F32 : DT_BF16, .stype = rng() & 1 ? DT_F32 : DT_BF16};
            ours[i] = theirs[i];
            ours[i].dtype = map.dtype[theirs[i].dtype], ours[i].stype = map.dtype[theirs[i].stype];
        }
        Buf file = {.arena = &arena}, want = {.arena = &arena}, got = {.arena = &arena};
        shapes_encode(shapes_find(&arena, theirs, COUNT), COUNT, &file);
        shapes_encode(shapes_find(&arena, ours, COUNT), COUNT, &want);
        Rd r = {&ctx, "test", file.at, file.at, file.at + file.n};
        uint32_t n;
        IsaShapes *read = shapes_decode(&r, &map, &arena, NULL, &back, &n);
        shapes_encode(read, n, &got);
        if (got.n != want.n || memcmp(got.at, want.at, got.n))
            why = twice ? "shapes that mean the same" : "shapes in another order";
    }
    result("shapes with other numbers", why);
}

// Bytes that fill an encoding up must be zero: set each bit of them alone.
static void test_reserved_bits(void) {
    const char *why = NULL;
    for (int op = 0; op < ISA_OP_COUNT && !why; op++) {
        IsaInst in = {.op = (uint8_t)op,
                      .engine = (uint8_t)isa_row_engine_default(op),
                      .wait_sem = {SEM_NONE, SEM_NONE}};
        uint8_t bytes[ISA_BYTES_MAX];
        size_t size = isa_encode(&in, bytes), used = 0;
        IsaMask mask = isa_row_mask(op);
        for (int f = 0; f < ISA_FIELD_COUNT; f++)
            used += mask >> f & 1 ? isa_fields[f].bytes : 0;
        for (size_t bit = 8 * used; bit < 8 * size && !why; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            IsaInst back;
            if (decode(bytes, &back) == OTRN_OK)
                why = "a reserved bit was taken";
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    result("reserved bits are refused", why);
}

static void test_decode_refuses(void) {
    IsaInst in = {.op = ISA_MATMUL, .engine = ENG_TENSOR, .wait_sem = {SEM_NONE, SEM_NONE}}, back;
    uint8_t bytes[ISA_BYTES_MAX];
    const int head = ISA_HEAD_BYTES; // matmul goes on: dst and its terms, src and its terms, dtype
    const struct {
        const char *what;
        int at, value;
    } cases[] = {
        {"an unknown opcode", 0, ISA_OP_COUNT},
        {"opcode 255", 0, 255},
        {"an engine the row forbids", 1, ENG_SYNC},
        {"an engine that does not exist", 1, ENG_COUNT},
        {"a semaphore that does not exist", 2, SEM_COUNT},
        {"a value without a semaphore", 4, 1},
        {"a semaphore of its own counted back", 2, SEM_BACK | SEM_USER},
        {"a signal to nobody", 12, USER_SEMS + 1},
        {"a signal without a semaphore", 14, 1},
        {"a multiplier without a register", head + 10, 1},
        {"an unknown element type", head + 36, DT_COUNT},
    };
    const char *why = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        isa_encode(&in, bytes);
        bytes[cases[i].at] = (uint8_t)cases[i].value;
        if (decode(bytes, &back) != OTRN_PARSE)
            why = cases[i].what;
    }
    isa_encode(&in, bytes);
    for (size_t n = 0; n < isa_bytes(ISA_MATMUL) && !why; n++)
        if (decode_some(bytes, n, &back) != OTRN_PARSE)
            why = "a truncated instruction was taken";
    result("decode refuses", why);
}

static void test_text_round_trip(void) {
    const char *why = NULL;
    static char shown[512];
    for (int op = 0; op < ISA_OP_COUNT && !why; op++)
        for (int n = 0; n < 300 && !why; n++) {
            IsaInst in = random_inst(op, n & 1), back;
            if (n % 3 == 0) { // dense strides are left out of the text
                isa_dense_strides(&in, isa_row_mask(op), 'd', in.d);
                isa_dense_strides(&in, isa_row_mask(op), 's', in.s);
            }
            Buf text = {.arena = &arena};
            isa_print(&in, &text);
            const char *line = buf_cstr(&text);
            if (parse(line, &back) != OTRN_OK || !same(&in, &back)) {
                snprintf(shown, sizeof shown, "%.300s (%.100s)", line, ctx.err.text);
                why = shown;
            }
        }
    result("print and parse are inverses", why);
}

static void test_text_forms(void) {
    IsaInst in;
    const char *why = NULL;
    if (parse("matmul dst=psum[0:0] src=sbuf[0:4096] stype=bf16 n0=128 n1=512 n2=64 "
              "flags=accumulate wait(q0>=2, vector>=0x10)  # comment",
              &in) != OTRN_OK)
        why = ctx.err.text;
    else if (in.engine != ENG_TENSOR || in.d[1] != 1 || in.s[1] != 1 || in.flags != 1)
        why = "defaults of matmul";
    else if (in.wait_sem[0] != ENG_COUNT || in.wait_val[1] != 16)
        why = "waits of matmul";
    if (!why && (parse("dma dst=sbuf[0:0] src=arg0[64] stype=f32 n0=2 n1=3", &in) != OTRN_OK ||
                 in.s[0] != 3 || in.s[1] != 1 || in.d[0] != 0 || in.d[1] != 1 ||
                 in.src != addr_hbm(SEG_FIRST_ARG, 64)))
        why = "defaults of dma";
    if (!why &&
        (parse("scalar: tensor_copy dst=sbuf[0:0] src=psum[0:0] dtype=f32 stype=f32", &in) ||
         in.engine != ENG_SCALAR))
        why = "engine of tensor_copy";
    result("short forms", why);
}

static void test_text_refuses(void) {
    const struct {
        const char *line;
        uint32_t col;
    } cases[] = {
        {"frobnicate", 1},
        {"vector: matmul", 9},
        {"nobody: nop", 1},
        {"nop imm=1", 5},
        {"jump imm=1 imm=2", 12},
        {"jump imm=4294967296", 10},
        {"jump imm=x", 10},
        {"dma queue=256", 11},
        {"dma n0=-1", 8},
        {"dma dst=sbuf[0:0", 17},
        {"dma dst=dram[0:0]", 9},
        {"dma stype=f33", 11},
        {"nop wait(q16>=1)", 10},
        {"nop wait(q0>=1, q1>=1, q2>=1)", 24},
        {"nop wait(q0>1)", 12},
        {"nop wait(q0>=1) wait(q0>=1)", 17},
        {"dma n0=99999999999999999999", 8},
        {"", 1},
    };
    const char *why = NULL;
    static char shown[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !why; i++) {
        IsaInst in;
        if (parse(cases[i].line, &in) != OTRN_PARSE || ctx.err.line != 7 ||
            ctx.err.col != cases[i].col) {
            snprintf(shown, sizeof shown, "`%s` gave column %u: %.100s", cases[i].line, ctx.err.col,
                     ctx.err.text);
            why = shown;
        }
    }
    result("bad text is refused with its column", why);
}

static void test_manual(void) {
    Buf now = {.arena = &arena};
    isa_manual(&now);
    size_t size;
    const uint8_t *kept = file_read(&ctx, &arena, OTRN_SOURCE_DIR "/spec/isa.md", &size);
    bool current = size == now.n && !memcmp(kept, now.at, size);
    result("spec/isa.md is current",
           current ? NULL : "make it anew: build/tests/unit/isa_test manual >spec/isa.md");
}

static void print_manual(void) {
    Buf out = {.arena = &arena};
    isa_manual(&out);
    fwrite(out.at, 1, out.n, stdout);
}

static void test_all(void) {
    test_fields_do_not_overlap();
    test_rows();
    test_encode_round_trip();
    test_shapes();
    test_shapes_renumbered();
    test_reserved_bits();
    test_decode_refuses();
    test_text_round_trip();
    test_text_forms();
    test_text_refuses();
    test_manual();
}

int main(int argc, char **argv) {
    jmp_buf jb;
    arena_init(&arena, &ctx);
    if (!CTX_TRY(&ctx, jb))
        result("isa", ctx.err.text);
    else if (argc > 1 && !strcmp(argv[1], "manual"))
        print_manual();
    else
        test_all();
    arena_fini(&arena);
    return failures != 0;
}
