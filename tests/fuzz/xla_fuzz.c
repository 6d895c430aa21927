// SPDX-License-Identifier: Apache-2.0
// xla_fuzz.c — damaged HLO protocol buffers through their reader alone. Seeds: tests/fuzz/data/make.py.
#include "read/read.h"
#include "tests/fuzz/graph.h"

const char *const fuzz_seeds[] = {"tests/fuzz/hlo", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb;
    if (CTX_TRY(&ctx, jb))
        check_graph(read_xla(&ctx, a, "fuzz.hlo.pb", data, size, false));
    else // VERIFY: operations whose shapes are left out are judged while they are read
        assert(ctx.err.code == OTRN_PARSE || ctx.err.code == OTRN_UNSUPPORTED || ctx.err.code == OTRN_CAPACITY || ctx.err.code == OTRN_VERIFY);
    return 0;
}
