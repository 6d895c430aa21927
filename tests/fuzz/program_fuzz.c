// SPDX-License-Identifier: Apache-2.0
// program_fuzz.c — damaged programs, text and bytecode, through the reader and the verifier.
#include "read/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern const char *const fuzz_seeds[];
const char *const fuzz_seeds[] = {"tests/tools/data/tiny.mlir", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf jb;
    arena_init(&a, &ctx);
    if (CTX_TRY(&ctx, jb))
        hlo_verify(read_program(&ctx, &a, "fuzz.mlir", data, size));
    arena_fini(&a);
    return 0;
}
