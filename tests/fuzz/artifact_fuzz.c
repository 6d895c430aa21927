// SPDX-License-Identifier: Apache-2.0
// artifact_fuzz.c — damaged artifacts and damaged assembly.
//
// Checksums of an artifact are repaired first, so that the checks behind them are reached. What
// loads must survive every round trip; what assembles and verifies must load. Pricing takes far longer than reading, so
// one in 64 is priced and looked at.
#include <stdio.h>
#include <stdlib.h>

#include "artifact/artifact.h"
#include "clock/view.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/unit/data/everything.s", "examples/kernels/matmul.s",
                                  "examples/kernels/rmsnorm.s",   "tests/isa/sendrecv.s",
                                  "accuracy/kernels/rmsnorm.s",   "tests/unit/data/version4.artifact", NULL};

static void must_equal(const Buf *a, const Buf *b) {
    if (a->n != b->n || memcmp(a->at, b->at, a->n))
        abort();
}

static void use(Ctx *ctx, Arena *a, Artifact *art) {
    Buf bytes = {.arena = a}, text = {.arena = a}, again = {.arena = a};
    artifact_save(art, &bytes);
    artifact_print(art, &text);
    Artifact *back = artifact_parse(ctx, a, "again.s", (const char *)text.at, text.n);
    artifact_save(back, &again);
    must_equal(&bytes, &again);
    artifact_load(ctx, a, "again.otrn", bytes.at, bytes.n);
    if (crc32c(0, bytes.at, bytes.n) % 64)
        return;
    ChipFile chip;
    Clock clock;
    chipfile_load(ctx, a, "trn2", NULL, &chip);
    clock_run(ctx, a, art, &chip, &(ClockOptions){.events = true}, &clock);
    view_make(a, art, &chip, &clock, ARENA_NEW(a, View));
}

_Noreturn static void fail(const otrn_error *err) {
    fprintf(stderr, "\n%s\n", err->text);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb, late;
    if (CTX_TRY(&ctx, jb)) {
        Artifact *art;
        if (artifact_is(data, size)) {
            uint8_t *copy = arena_dup(a, data, size);
            fuzz_fix_checksums(copy, size);
            art = artifact_load(&ctx, a, "fuzz.otrn", copy, size);
        } else {
            art = artifact_parse(&ctx, a, "fuzz.s", (const char *)data, size);
            artifact_verify(&ctx, art, "fuzz.s");
        }
        if (CTX_TRY(&ctx, late))
            use(&ctx, a, art);
        else
            fail(&ctx.err); // what was verified may not fail any more
    }
    return 0;
}
