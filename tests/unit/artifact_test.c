// SPDX-License-Identifier: Apache-2.0
// artifact_test.c — artifacts survive every round trip and nothing else is taken for one.
//
// artifact_test golden   prints the bytes kept as tests/unit/data/version5.artifact; that file is
// only made anew when the format's version changes.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "artifact/artifact.h"
#include "base/file.h"
#include "unit.h"

#ifndef OTRN_SOURCE_DIR
#define OTRN_SOURCE_DIR "."
#endif

static Ctx ctx;
static Arena arena;

static otrn_status load(const void *bytes, size_t size, Artifact **out) {
    jmp_buf jb, *outer = ctx.on_fail;
    ctx.err = (otrn_error){0};
    if (CTX_TRY(&ctx, jb))
        *out = artifact_load(&ctx, &arena, "test.otrn", bytes, size);
    ctx.on_fail = outer;
    return ctx.err.code;
}

static otrn_status assemble_on(const IsaChip *chip, const char *text, Buf *out) {
    jmp_buf jb, *outer = ctx.on_fail;
    ctx.err = (otrn_error){0};
    if (CTX_TRY(&ctx, jb)) {
        Artifact *art = artifact_parse(&ctx, &arena, "t.s", text, strlen(text));
        artifact_verify_for(&ctx, art, "t.s", chip, NULL);
        *out = (Buf){.arena = &arena};
        artifact_save(art, out);
    }
    ctx.on_fail = outer;
    return ctx.err.code;
}

static otrn_status assemble(const char *text, Buf *out) {
    return assemble_on(&(IsaChip){3, 224 << 10, 16 << 10, 0}, text, out);
}

#define DATA OTRN_SOURCE_DIR "/tests/unit/data/"

static const char program[] = "func.func @main() { return }\n", options[] = "auto-cast=matmult\nlnc=2\n";

static Buf good_text_bytes(void) { // of the text alone
    Buf bytes = {.arena = &arena};
    size_t size;
    const char *text = (const char *)file_read(&ctx, &arena, DATA "everything.s", &size);
    if (assemble(text, &bytes) != OTRN_OK)
        result("the example assembles", ctx.err.text);
    return bytes;
}

static Buf good_bytes(void) { // with what it was compiled from, which the text does not tell
    Buf bytes = good_text_bytes(), all = {.arena = &arena};
    Artifact *art;
    if (load(bytes.at, bytes.n, &art) != OTRN_OK)
        return bytes;
    art->program = (const uint8_t *)program;
    art->program_bytes = sizeof program - 1;
    art->options = options;
    art->chip_hash = 0x0123456789abcdef;
    artifact_save(art, &all);
    return all;
}

static void test_round_trips(void) {
    Buf bytes = good_bytes(), plain = good_text_bytes();
    Artifact *art = NULL;
    const char *why = NULL;
    if (load(bytes.at, bytes.n, &art) != OTRN_OK) {
        result("save, load, print, parse", ctx.err.text);
        return;
    }
    Buf again = {.arena = &arena}, text = {.arena = &arena}, third = {.arena = &arena},
        text2 = {.arena = &arena};
    artifact_save(art, &again);
    if (again.n != bytes.n || memcmp(again.at, bytes.at, bytes.n))
        why = "load and save change the bytes";
    if (art->program_bytes != sizeof program - 1 || memcmp(art->program, program, sizeof program - 1) ||
        strcmp(art->options, options) || art->chip_hash != 0x0123456789abcdef)
        why = "what it was compiled from changes";
    artifact_print(art, &text);
    if (assemble(buf_cstr(&text), &third) != OTRN_OK)
        why = ctx.err.text;
    else if (third.n != plain.n || memcmp(third.at, plain.at, plain.n))
        why = "dis and as change the bytes";
    else if (load(third.at, third.n, &art) == OTRN_OK) {
        artifact_print(art, &text2);
        if (text.n != text2.n || memcmp(text.at, text2.at, text.n))
            why = "the text changes";
    }
    result("save, load, print, parse", why);
    if (art->nargs != 4 || art->args[3].bytes != 16 || !art->args[0].donated ||
        art->results[0].alias || strcmp(art->args[0].name, "args[0]['w']") || art->nloops != 1 ||
        art->loops[0].trips != 12 || art->loops[0].begin != 8 || art->loops[0].end != 16 ||
        art->code[9].imm != 16 || art->locs[1].line != 12 || art->locs[1].op != HLO_REDUCE ||
        art->nlive != 2 || art->const_bytes != 12 + 8 + 100 + 3 + 4 ||
        strcmp(art->name, "every \"thing\"\n") || strcmp(art->precision, "matmult bf16") ||
        art->flags != ART_STOCHASTIC || !art->peer || art->peer->ncode != 5 || art->peer->code[2].imm != 4 ||
        art->peer->nloops != 1 || art->peer->loops[0].begin != 1 || art->peer->code_loc[0] != 1)
        why = "a field has another value than the text gave it";
    result("fields of the example", why);
}

// A file of this format version, kept from the day it was fixed: whatever is added since, it still
// means the same.
static void test_golden(void) {
    size_t size;
    const uint8_t *kept = file_read(&ctx, &arena, DATA "version5.artifact", &size);
    Buf now = good_bytes(), text = {.arena = &arena}, text_now = {.arena = &arena};
    Artifact *art = NULL, *art_now = NULL;
    if (load(kept, size, &art) != OTRN_OK || load(now.at, now.n, &art_now) != OTRN_OK) {
        result("a kept file of version 5", ctx.err.text);
        return;
    }
    artifact_print(art, &text);
    artifact_print(art_now, &text_now);
    bool same = text.n == text_now.n && !memcmp(text.at, text_now.at, text.n);
    result("a kept file of version 5", same ? NULL : "it means something else now");
    Buf newer = {.arena = &arena};
    buf_put(&newer, kept, size);
    le_store32(newer.at + 8, ARTIFACT_VERSION + 1);
    le_store32(newer.at + 28, crc32c(0, newer.at, 28));
    bool refused = load(newer.at, newer.n, &art) == OTRN_VERSION && ctx.err.hint[0];
    result("a file of a later version", refused ? NULL : "not refused as such");
    static const char *const older[] = {DATA "refused2.artifact", DATA "refused3.artifact", DATA "refused4.artifact"};
    for (size_t i = 0; i < sizeof older / sizeof *older; i++) {
        const uint8_t *bytes = file_read(&ctx, &arena, older[i], &size);
        refused = load(bytes, size, &art) == OTRN_VERSION && ctx.err.hint[0];
        result("a kept file of an earlier version", refused ? NULL : "not refused as such");
    }
}

static void test_truncation(void) {
    Buf bytes = good_bytes();
    Artifact *art;
    const char *why = NULL;
    for (size_t n = 0; n < bytes.n && !why; n++) {
        uint8_t *copy = malloc(n ? n : 1); // exactly n bytes, so that a sanitizer sees one too far
        memcpy(copy, bytes.at, n);
        if (load(copy, n, &art) == OTRN_OK)
            why = "a truncated file was loaded";
        free(copy);
    }
    result("truncation at every length", why);
}

static void test_bit_flips(void) {
    Buf bytes = good_bytes();
    Artifact *art;
    const char *why = NULL;
    for (size_t i = 0; i < bytes.n && !why; i++) {
        uint8_t bit = (uint8_t)(1 << i % 8);
        bytes.at[i] ^= bit;
        if (load(bytes.at, bytes.n, &art) == OTRN_OK)
            why = "a flipped bit went unnoticed";
        bytes.at[i] ^= bit;
    }
    result("a flipped bit in every byte", why);
}

// Repairs all checksums after a change, so that the checks behind them are reached.
static void fix_checksums(Buf *b) {
    uint32_t sections = le_load32(b->at + 12);
    for (uint32_t i = 0; i < sections; i++) {
        uint8_t *row = b->at + 32 + 24 * i;
        le_store32(row + 4, crc32c(0, b->at + le_load64(row + 8), le_load64(row + 16)));
    }
    le_store32(b->at + 24, crc32c(0, b->at + 32, 24 * sections));
    le_store32(b->at + 28, crc32c(0, b->at, 28));
}

static void test_unknown_names(void) {
    Artifact *art;
    const struct {
        const char *from, *to;
        otrn_status code;
    } cases[] = {
        {"stablehlo.reduce_window", "stablehlo.reduce_sindow", OTRN_VERSION},
        {"stablehlo.add", "stablehlo.adx", OTRN_VERSION},
        {"window_strides", "window_strudes", OTRN_VERSION},
        {"stablehlo.dot_general", "stablehlo.dot_genera1", OTRN_VERSION},
        {"jump imm", "jumq imm", OTRN_PARSE}, // an instruction this release does not have
        {"train.py", "tr\0in.py", OTRN_PARSE},
    };
    const char *why = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !why; i++) {
        Buf b = good_bytes();
        size_t n = strlen(cases[i].from);
        uint8_t *hit = NULL;
        for (size_t at = 0; at + n <= b.n && !hit; at++)
            if (!memcmp(b.at + at, cases[i].from, n) && le_load32(b.at + at - 4) == n)
                hit = b.at + at;
        memcpy(hit, cases[i].to, n);
        fix_checksums(&b);
        if (load(b.at, b.n, &art) != cases[i].code)
            why = cases[i].from;
        else if (cases[i].code == OTRN_VERSION && !ctx.err.hint[0])
            why = "no hint";
    }
    result("names of another release", why);
}

// The dictionary makes the numbers inside a file its own: change an instruction that is there for the next one, that is
// not, in the names and in the code. (Their shapes then keep their order.)
static void test_renumbered(void) {
    Buf b = good_bytes();
    Artifact *before, *after;
    load(b.at, b.n, &before);
    bool there[ISA_OP_COUNT + 1] = {0};
    for (const Artifact *core = before; core; core = core->peer)
        for (uint32_t i = 0; i < core->ncode; i++)
            there[core->code[i].op] = true;
    int op = ISA_DMA;
    while (!there[op] || there[op + 1])
        op++;
    uint8_t *name = b.at + le_load64(b.at + 32 + 24 * 1 + 8),
            *code = b.at + le_load64(b.at + 32 + 24 * 5 + 8);
    uint8_t *ops = name + 4;
    uint32_t x = le_load32(ops + 4 * op), y = le_load32(ops + 4 * op + 4);
    le_store32(ops + 4 * op, y);
    le_store32(ops + 4 * op + 4, x);
    for (const Artifact *core = before; core; core = core->peer) {
        uint32_t shapes = le_load32(code), ncode;
        code += 4;
        for (uint32_t i = 0; i < shapes; i++) {
            size_t size = isa_bytes(*code) + 4;
            if (*code == op)
                *code = (uint8_t)(op + 1);
            code += size;
        }
        ncode = le_load32(code);
        code += 8 + le_load32(code + 4); // one chunk
        if (ncode != core->ncode)
            result("the second core's code", "not found");
    }
    fix_checksums(&b);
    const char *why = NULL;
    if (load(b.at, b.n, &after) != OTRN_OK)
        why = ctx.err.text;
    else
        for (uint32_t i = 0; i < before->ncode; i++)
            if (before->code[i].op != after->code[i].op)
                why = "an instruction changed its meaning";
    result("a file with other numbers", why);
}

// Random damage with repaired checksums: the checks behind them must hold, whatever they say.
static void test_hostile(void) {
    uint64_t state = 7;
    Artifact *art;
    int loaded = 0;
    Buf good = good_bytes();
    for (int round = 0; round < 3000; round++) {
        Buf b = {.arena = &arena};
        buf_put(&b, good.at, good.n);
        for (int k = 0; k < 1 + round % 4; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            size_t at = 32 + 24 * 12 + (size_t)(state >> 33) % (b.n - 32 - 24 * 12);
            b.at[at] =
                round & 1 ? (uint8_t)(state >> 17) : b.at[at] ^ (uint8_t)(1 << (state >> 20 & 7));
        }
        fix_checksums(&b);
        if (load(b.at, b.n, &art) == OTRN_OK) {
            Buf text = {.arena = &arena}, bytes;
            loaded++;
            artifact_print(art, &text);
            if (assemble_on(&isa_chip_largest, buf_cstr(&text), &bytes) != OTRN_OK) {
                result("damage behind the checksums", ctx.err.text);
                return;
            }
        }
        if (round % 256 == 255) {
            Buf keep = {0};
            keep.n = good.n;
            keep.at = malloc(good.n);
            memcpy(keep.at, good.at, good.n);
            arena_reset(&arena);
            good = (Buf){.arena = &arena};
            buf_put(&good, keep.at, keep.n);
            free(keep.at);
        }
    }
    result("damage behind the checksums",
           loaded ? NULL : "nothing ever loaded: the test tests nothing");
}

static void test_bad_text(void) {
    const struct {
        const char *text;
        uint32_t line, col;
    } cases[] = {
        {"nop\n  frob\n", 2, 3},
        {".nome \"x\"\n", 1, 1},
        {"\n.arg f99[2]\n", 2, 6},
        {".arg f32[2,]\n", 1, 12},
        {".arg f32[99999999999,99999999999]\n", 1, 33},
        {".result f32[1] alias=x\n", 1, 22},
        {".result f32[1]\n.arg f32[1]\n", 2, 12},
        {".name \"open\n", 1, 7},
        {".const 0g\n", 1, 8},
        {".const f32 x\n", 1, 12},
        {"jump imm=nowhere\n", 1, 10},
        {"a:\nnop\na: nop\n", 3, 1},
        {"nop @1\n", 1, 6},
        {".loc 2 \"f\"\n", 1, 6},
        {".kernel 0 stablehlo.frob () -> ()\n", 1, 11},
        {".kernel 0 stablehlo.abs (arg0[0]: f32[]) -> ()\n", 1, 26},
        {".kernel 0 stablehlo.iota () -> (scratch[0]: f32[2]) {iota_dimension = [0]}\n", 1, 71},
        {".kernel 0 stablehlo.iota () -> (scratch[0]: f32[2]) {foo = 1}\n", 1, 54},
        {".kernel 0 stablehlo.map () -> () {dimensions = []} region(f32) inputs 1 { return r1 }\n",
         1, 82},
        {".kernel 0 stablehlo.map () -> () region(f32,f32) inputs 1 { return r1 }\n", 1, 68},
        {"nop nop\n", 1, 5},
        {"dma src=arg0[0]\n", 1, 9},
        {".loop a b trips=1\nnop\n", 1, 7},
    };
    const char *why = NULL;
    static char shown[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !why; i++) {
        Buf out;
        otrn_status code = assemble(cases[i].text, &out);
        if (code != OTRN_PARSE || ctx.err.line != cases[i].line || ctx.err.col != cases[i].col) {
            snprintf(shown, sizeof shown, "case %zu gave %s %u:%u %.200s", i,
                     otrn_status_name(code), ctx.err.line, ctx.err.col, ctx.err.text);
            why = shown;
        }
    }
    result("bad assembly is refused with line and column", why);
}

static void test_rules(void) {
#define HEAD                                                                                       \
    ".arg f32[4]\n.arg f32[128,512] donated\n.result f32[4]\n.const f32 1 2 3 4\n.scratch 65536\n"
#define LDW "ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128\n"
    static const char *const refused[] = {
        "jump imm=7\n",
        "jump imm=-1\n",
        "kernel imm=0\n",
        "dma dst=scratch[65536] src=arg0[0] stype=f32 n0=1\n",
        "dma dst=scratch[0] src=arg0[0] stype=f32 n0=5\n",
        "dma dst=scratch[0] src=arg0[2] stype=f32 n0=1\n",
        "dma dst=scratch[0] src=arg0[0] stype=f32 n0=2 d0=1 s0=-1\n",
        "dma dst=arg0[0] src=scratch[0] stype=f32 n0=1\n",
        "dma dst=const[0] src=scratch[0] stype=f32 n0=1\n",
        "dma dst=hbm[9:0] src=scratch[0] stype=f32 n0=1\n",
        "dma dst=scratch[0] src=psum[0:0] stype=f32 n0=1\n",
        "dma dst=scratch[0] src=scratch[0] n0=1\n",
        "dma dst=sbuf[100:0] src=scratch[0] stype=f32 n0=29\n",
        "dma dst=sbuf[0:262144] src=scratch[0] stype=f32 n0=1\n",
        "dma dst=sbuf[0:0] src=scratch[0] stype=f32 n0=2 d0=1\n",
        "dma dst=sbuf[0:0] src=scratch[0] stype=f32 queue=16\n",
        "dma dst=0x300000000000000 src=scratch[0] stype=f32\n",
        "dma dst=sbuf[0:0] src=scratch[0] stype=f32 n0=4294967295 n1=4294967295 n2=4294967295\n",
        "matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128\n",
        LDW "matmul dst=psum[0:0] src=sbuf[0:0] stype=f32 n0=128 n1=512 n2=128\n",
        LDW "matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=64 n1=512 n2=128\n",
        LDW "matmul dst=psum[0:4] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128\n",
        LDW "matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=513 n2=128\n",
        LDW "matmul dst=sbuf[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128\n",
        LDW "matmul dst=psum[0:0] src=psum[0:0] stype=bf16 n0=128 n1=512 n2=128\n",
        LDW "matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128 flags=16\n",
        LDW "x: matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=8 n2=128\njump imm=x\n",
        "ldweights src=sbuf[0:0] stype=i32 n0=128 n1=128\n",
        "ldweights src=sbuf[0:0] stype=bf16 n0=129 n1=128\n",
        "ldweights src=sbuf[32:0] stype=bf16 n0=64 n1=128\n",
        "ldweights src=sbuf[16:0] stype=bf16 n0=16 n1=128\n",
        "gpsimd: tensor_copy dst=sbuf[0:0] src=psum[0:0] dtype=f32 stype=f32\n",
        "vector: memset dst=sbuf[0:0] dtype=i64\n",
        "vector: memset dst=sbuf[0:0]\n",
        "reg_load reg=64 src=arg0[0] stype=i32\n",
        "reg_load reg=0 src=arg0[0] stype=f32\n",
        "nop wait(vector>=1)\n",
        "vector: nop\nnop wait(vector>=2)\n",
        "vector: nop\nbarrier\nnop wait(vector>=1)\n",
        "branch op0=equal imm=x reg=0 value=0\nvector: nop\nx: nop wait(vector>=1)\n",
        "vector: nop\nx: nop wait(vector>=1)\nbarrier\njump imm=x\n",
        ".kernel 0 stablehlo.abs (arg0[4]: f32[4]) -> (scratch[0]: f32[4])\nkernel imm=0\n",
        ".kernel 0 stablehlo.abs (sbuf[0:0]: f32[4]) -> (scratch[0]: f32[4])\nkernel imm=0\n",
        ".kernel 0 stablehlo.abs (arg0[0]: f32[4]) -> (const[0]: f32[4])\nkernel imm=0\n",
        ".kernel 0 stablehlo.abs (arg0[0]: f32[4]) -> (scratch[2]: f32[4])\nkernel imm=0\n",
        ".kernel 0 stablehlo.add (arg0[0]: f32[4]) -> (scratch[0]: f32[4])\nkernel imm=0\n",
        ".kernel 0 stablehlo.add (arg0[0]: f32[4], arg0[0]: f32[2]) -> (scratch[0]: f32[4])\n",
        ".kernel 0 stablehlo.add (arg0[0]: f32[4], arg0[0]: f32[4]) -> (scratch[0]: i32[4])\n",
        ".kernel 0 stablehlo.slice (arg0[0]: f32[4]) -> (scratch[0]: f32[4]) "
        "{limit_indices = [8], start_indices = [4], strides = [1]}\n",
        ".kernel 0 stablehlo.slice (arg0[0]: f32[4]) -> (scratch[0]: f32[4])\n",
        ".kernel 0 stablehlo.transpose (arg1[0]: f32[128,512]) -> (scratch[0]: f32[2]) "
        "{permutation = [1, 0]}\n",
        ".kernel 0 stablehlo.reduce (arg0[0]: f32[4], const[0]: f32[]) -> (scratch[0]: f32[]) "
        "{dimensions = [0]} region(f32, f32, i1) inputs 2 { r2 = stablehlo.compare r0, r1 <GE> "
        "<FLOAT>; "
        "return r2 }\n",
        ".kernel 0 stablehlo.map (arg0[0]: f32[4]) -> (scratch[0]: f32[4]) {dimensions = [0]} "
        "region(f32, f32) inputs 1 captures 1 { return r1 }\n",
        ".loop 0 9 trips=1\nnop\n",
        ".loop 1 1 trips=1\nnop\n",
        ".loop 0 2\n.loop 1 3\nnop\nnop\nnop\n",
        "branch op0=equal imm=0 reg=0 value=0\nnop\nbranch op0=equal imm=0 reg=64 value=0\n",
    };
    static const char *const allowed[] = {
        "",
        "dma dst=arg1[0] src=scratch[0] stype=f32 n0=4\n",
        "dma dst=sbuf[100:0] src=scratch[0] stype=f32 n0=28\n",
        "dma dst=sbuf[0:0] src=scratch[12] stype=f32 n0=1 n1=4 d1=1 s1=-1\n",
        LDW "matmul dst=psum[0:2048] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128\n",
        "ldweights src=sbuf[96:0] stype=bf16 n0=32 n1=128\n",
        "vector: nop\nnop wait(vector>=1)\nbarrier\n",
        "branch op0=equal imm=x reg=0 value=0\nvector: nop\nvector: nop wait(vector>=1)\nx: nop\n",
        "vector: nop\nx: nop wait(vector>=1)\njump imm=x\n",
        ".kernel 0 stablehlo.map (arg0[0]: f32[4], const[0]: f32[]) -> (scratch[0]: f32[4]) "
        "{dimensions = [0]} region(f32, f32, f32) inputs 1 captures 1 { r2 = stablehlo.add r0, r1; "
        "return r2 }\n",
        ".kernel 0 stablehlo.dot_general (arg0[0]: f32[2,2], arg0[0]: f32[2,2]) -> (scratch[0]: "
        "f32[2,2]) "
        "{lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = "
        "[1], "
        "rhs_contracting_dimensions = [0]}\n",
        ".loop 1 2 trips=3\n.loop 0 3 trips=2\nnop\nnop\nnop\n",
    };
    const char *why = NULL;
    static char shown[400];
    for (size_t i = 0; i < sizeof refused / sizeof *refused && !why; i++) {
        Buf out;
        const char *text = arena_printf(&arena, "%s%s", HEAD, refused[i]);
        if (assemble(text, &out) != OTRN_VERIFY) {
            snprintf(shown, sizeof shown, "taken: %.150s (%.150s)", refused[i], ctx.err.text);
            why = shown;
        }
    }
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed && !why; i++) {
        Buf out;
        if (assemble(arena_printf(&arena, "%s%s", HEAD, allowed[i]), &out) != OTRN_OK) {
            snprintf(shown, sizeof shown, "refused: %.150s (%.150s)", allowed[i], ctx.err.text);
            why = shown;
        }
    }
    result("the rules of a program", why);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_large(void) {
    Buf text = {.arena = &arena};
    buf_puts(&text, ".scratch 4194304\n");
    for (int i = 0; i < 40000; i++)
        buf_printf(&text,
                   "dma dst=sbuf[0:%d] src=scratch[%d] stype=f32 n0=128 n1=16 queue=%d @0\n"
                   "ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 wait(q%d>=1)\n"
                   "matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128\n",
                   64 * (i % 64), 64 * i, i % 16, i % 16);
    Buf bytes;
    Artifact *art;
    if (assemble(buf_cstr(&text), &bytes) != OTRN_OK) {
        result("120,000 instructions", ctx.err.text);
        return;
    }
    double begin = seconds();
    otrn_status code = load(bytes.at, bytes.n, &art);
    double took = seconds() - begin;
    printf("# %u instructions, %zu bytes, loaded in %.1f ms\n", art->ncode, bytes.n, 1e3 * took);
    result("120,000 instructions", code != OTRN_OK ? ctx.err.text : art->ncode < 120000 ? "some are gone" : NULL);
}

static void print_golden(void) {
    Buf bytes = good_bytes();
    fwrite(bytes.at, 1, bytes.n, stdout);
}

static void test_all(void) {
    test_round_trips();
    test_golden();
    test_truncation();
    test_bit_flips();
    test_unknown_names();
    test_renumbered();
    test_bad_text();
    test_rules();
    test_large();
    test_hostile();
}

int main(int argc, char **argv) {
    jmp_buf jb;
    arena_init(&arena, &ctx);
    if (!CTX_TRY(&ctx, jb))
        result("artifact", ctx.err.text);
    else if (argc > 1 && !strcmp(argv[1], "golden"))
        print_golden();
    else
        test_all();
    arena_fini(&arena);
    return failures != 0;
}
