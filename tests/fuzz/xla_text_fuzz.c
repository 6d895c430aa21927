// SPDX-License-Identifier: Apache-2.0
// xla_text_fuzz.c — damaged HLO text through its reader alone, shardings included.
#include "read/read.h"
#include "tests/fuzz/graph.h"

const char *const fuzz_seeds[] = {"tests/read/hlo_text.hlo", "tests/read/hlo_more.hlo", "tests/read/hlo_async.hlo", "tests/read/hlo_short.hlo", "tests/read/hlo_narrow.hlo", "tests/read/hlo_order.hlo",
                                  "tests/spmd/gspmd.hlo", "tests/spmd/manual.hlo", "tests/spmd/manual_shardy.hlo", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb;
    if (CTX_TRY(&ctx, jb)) {
        Hlo *h = read_xla_text(&ctx, a, "fuzz.hlo", data, size, false);
        read_gspmd(h);
        check_graph(h);
    } else {
        // VERIFY: operations whose shapes are left out are judged while they are read
        assert(ctx.err.code == OTRN_PARSE || ctx.err.code == OTRN_UNSUPPORTED || ctx.err.code == OTRN_CAPACITY || ctx.err.code == OTRN_VERIFY);
    }
    return 0;
}
