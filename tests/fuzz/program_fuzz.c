// SPDX-License-Identifier: Apache-2.0
// program_fuzz.c — damaged programs, text and bytecode, through the reader and the verifier.
#include "read/read.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/hlo", "tests/road", "tests/pass", "tests/coll", "tests/fuzz/data", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb;
    if (CTX_TRY(&ctx, jb))
        hlo_verify(read_program(&ctx, a, "fuzz.mlir", data, size));
    return 0;
}
