// SPDX-License-Identifier: Apache-2.0
// chip_fuzz.c — damaged chip files. What is taken must print and read back the same.
#include <stdlib.h>

#include "clock/clock.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"chips/trn1.chip", "chips/trn2.chip", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    ChipFile chip, back;
    jmp_buf jb, late;
    if (CTX_TRY(&ctx, jb)) {
        chipfile_parse(&ctx, "fuzz.chip", (const char *)data, size, &chip);
        Buf text = {.arena = a};
        chipfile_print(&chip, &text);
        if (!CTX_TRY(&ctx, late))
            abort();
        chipfile_parse(&ctx, "again.chip", (const char *)text.at, text.n, &back);
    }
    return 0;
}
