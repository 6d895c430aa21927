// SPDX-License-Identifier: Apache-2.0
// instance_fuzz.c — damaged tables of machines to rent. Of what is taken a price can be told.
#include <math.h>
#include <stdlib.h>

#include "mach/instance.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"chips/instances.table", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    Instance *rows;
    jmp_buf jb, late;
    if (!CTX_TRY(&ctx, jb))
        return 0;
    uint32_t n = instances_parse(&ctx, a, "fuzz.table", (const char *)data, size, &rows);
    if (!CTX_TRY(&ctx, late))
        abort();
    ChipFile chip;
    chipfile_load(&ctx, a, "trn2", NULL, &chip);
    Options o;
    for (int i = 0; i < OPT_COUNT; i++)
        o.val[i] = opt_rows[i].dflt, o.from[i] = "default";
    for (uint32_t i = 0; i < n; i++) {
        ChipFile part = chip;
        Cost cost;
        instance_network(&rows[i], &part);
        cost_make(&ctx, a, &o, &part, &rows[i], 32, 2, &cost);
        if (!isfinite(cost.usd_per_hour) || cost.usd_per_hour < 0 || !cost.machines || !*cost_text(a, &cost))
            abort();
    }
    return 0;
}
