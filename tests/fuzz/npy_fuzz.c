// SPDX-License-Identifier: Apache-2.0
// npy_fuzz.c — damaged .npy files.
#include "base/npy.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/tools/data/f32_2x3.npy", "tests/tools/data/bf16_4.npy",
                                  "tests/tools/data/f64_2x3.npy", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    Npy npy;
    jmp_buf jb;
    if (CTX_TRY(&ctx, jb))
        npy_parse(&ctx, a, "fuzz.npy", data, size, &npy);
    return 0;
}
