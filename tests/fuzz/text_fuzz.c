// SPDX-License-Identifier: Apache-2.0
// text_fuzz.c — damaged MLIR text through the reader, the verifier and the printer.
//
// What the reader accepts must print, and what was printed must be read again and print the same:
// damage that slips through as another meaning would show here.
#include "read/read.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdio.h>

const char *const fuzz_seeds[] = {"tests/read", "tests/hlo", "tests/write", "tests/road", NULL};

// Whatever was read prints; our own text is always read back and prints the same.
static void round_trip(Ctx *ctx, Arena *a, const Hlo *h, bool with_locs) {
    Buf first = {.arena = a}, second = {.arena = a};
    hlo_print(h, &first, with_locs);
    Hlo *again = read_text(ctx, a, "printed.mlir", first.at, first.n);
    hlo_print(again, &second, with_locs);
    assert(first.n == second.n);
    assert(!memcmp(first.at, second.at, first.n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb;
    Hlo *volatile h = NULL;
    if (CTX_TRY(&ctx, jb))
        h = read_text(&ctx, a, "fuzz.mlir", data, size);
    else
        assert(ctx.err.line > 0 || ctx.err.code == OTRN_CAPACITY);
    if (h && CTX_TRY(&ctx, jb)) {
        hlo_verify(h);
        round_trip(&ctx, a, h, false); // verified: nothing may be refused from here on
        round_trip(&ctx, a, h, true);
    } else if (h && ctx.err.code != OTRN_VERIFY && ctx.err.code != OTRN_CAPACITY) {
        fprintf(stderr, "\n%s:%u:%u: %s\n", ctx.err.file, ctx.err.line, ctx.err.col, ctx.err.text);
        assert(!"our own text is refused");
    }
    return 0;
}
