// SPDX-License-Identifier: Apache-2.0
// write_fuzz.c — what the readers make of damaged programs, written as bytecode and read back.
//
// A graph that a reader accepts is written or refused for a named reason; what was written must be
// read, and writing that again gives the same bytes. So does the way through text.
#include "write/write.h"

#include <assert.h>
#include <stdio.h>

#include "read/read.h"
#include "write/reduce.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/fuzz/data", "tests/read", "tests/hlo", "tests/write", NULL};

static void same(const Buf *x, const Buf *y) {
    assert(x->n == y->n);
    assert(!memcmp(x->at, y->at, x->n));
}

static void round_trip(Ctx *ctx, Arena *a, const Hlo *h) {
    Buf first = {.arena = a}, second = {.arena = a}, text = {.arena = a}, third = {.arena = a};
    write_bytecode(h, &first);
    Hlo *again = read_bytecode(ctx, a, "written.mlirbc", first.at, first.n);
    write_bytecode(again, &second);
    same(&first, &second);
    hlo_verify(again);
    hlo_print(again, &text, true);
    write_bytecode(read_text(ctx, a, "printed.mlir", text.at, text.n), &third);
    same(&first, &third);
}

// Any reduction of a verified program prints as text that the reader takes.
static void reduce(Ctx *ctx, Arena *a, Hlo *h, size_t pick) {
    ReduceKind kind = (ReduceKind)(pick % RK_COUNT);
    uint32_t units = reduce_units(h, kind);
    uint32_t first = units ? (uint32_t)(pick / RK_COUNT) % units : 0;
    Buf text = {.arena = a};
    bool changed = reduce_apply(h, kind, first, 1 + (uint32_t)(pick >> 8) % (units + 1));
    assert(units || !changed);
    reduce_tidy(h);
    hlo_print(h, &text, false);
    read_text(ctx, a, "reduced.mlir", text.at, text.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb;
    Hlo *volatile h = NULL;
    volatile bool verified = false;
    if (CTX_TRY(&ctx, jb)) {
        h = read_program(&ctx, a, "fuzz", data, size);
        hlo_verify(h);
        verified = true;
        round_trip(&ctx, a, h);
        reduce(&ctx, a, h, hash64(0, data, size));
    } else if (verified && ctx.err.code != OTRN_UNSUPPORTED && ctx.err.code != OTRN_CAPACITY &&
               ctx.err.code != OTRN_VERIFY) {
        fprintf(stderr, "\n%s:%u:%u: %s\n", ctx.err.file, ctx.err.line, ctx.err.col, ctx.err.text);
        assert(!"what we wrote is refused");
    }
    return 0;
}
