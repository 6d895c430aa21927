// SPDX-License-Identifier: Apache-2.0
// asm_fuzz.c — damaged assembly. What assembles and verifies must load, and its text mean the same.
#include <stdio.h>
#include <stdlib.h>

#include "artifact/artifact.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/isa",
                                  "tests/unit/data/everything.s", "tests/unit/data/wide.s",
                                  "examples/kernels/matmul.s",
                                  "examples/kernels/rmsnorm.s",
                                  "accuracy/kernels/rmsnorm.s",
                                  NULL};

static void use(Ctx *ctx, Arena *a, Artifact *art) {
    Buf bytes = {.arena = a}, text = {.arena = a}, again = {.arena = a};
    artifact_save(art, &bytes);
    artifact_print(art, &text);
    artifact_save(artifact_parse(ctx, a, "again.s", (const char *)text.at, text.n), &again);
    if (bytes.n != again.n || memcmp(bytes.at, again.at, bytes.n))
        abort();
    artifact_load(ctx, a, "again.otrn", bytes.at, bytes.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb, late;
    if (CTX_TRY(&ctx, jb)) {
        Artifact *art = artifact_parse(&ctx, a, "fuzz.s", (const char *)data, size);
        artifact_verify(&ctx, art, "fuzz.s");
        if (CTX_TRY(&ctx, late)) {
            use(&ctx, a, art);
        } else { // what was verified may not fail any more
            fprintf(stderr, "\n%s\n", ctx.err.text);
            abort();
        }
    }
    return 0;
}
