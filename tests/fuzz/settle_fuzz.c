// SPDX-License-Identifier: Apache-2.0
// settle_fuzz.c — damaged programs through what makes sizes known and quantised types plain.
//
// What the verifier lets pass must come out as a graph it still accepts, or as an error. Arguments of
// unknown size get small ones; integer scalars are taken as sizes.
#include "pass/pass.h"
#include "read/read.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {"tests/pass", "tests/pass/data", "tests/road", NULL};

#define OPEN_SIZE 2

static void bind(Hlo *h, Arena *a) {
    static const int64_t number = OPEN_SIZE;
    HloRegion body = h->regions.at[hlo_main(h)->body];
    otrn_type *types = ARENA_NEWN(a, otrn_type, body.nargs + 1);
    const void **values = ARENA_NEWN(a, const void *, body.nargs + 1);
    for (uint32_t i = 0; i < body.nargs; i++) {
        const HloType *t = hlo_value_type(h, body.args + i);
        types[i] = (otrn_type){.dtype = t->dtype, .rank = t->rank};
        for (int d = 0; d < t->rank; d++)
            types[i].dims[d] = t->dims[d] == HLO_DYNAMIC ? OPEN_SIZE : t->dims[d];
        values[i] = &number; // little-endian: holds for every width
    }
    pass_bind(h, types, values, body.nargs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx), scratch;
    jmp_buf jb;
    arena_init(&scratch, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        Hlo *h = read_program(&ctx, a, "fuzz.mlir", data, size);
        hlo_verify(h);
        bind(h, a);
        pass_settle(&(Compile){.ctx = &ctx, .arena = a, .scratch = &scratch, .hlo = h});
        if (CTX_TRY(&ctx, jb))
            hlo_verify(h);
        else
            __builtin_trap(); // an error now is a mistake of ours
    }
    arena_fini(&scratch);
    return 0;
}
