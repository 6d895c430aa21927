// SPDX-License-Identifier: Apache-2.0
// bytecode_fuzz.c — damaged MLIR bytecode through its reader alone.
//
// The seeds are small programs exported from JAX by tests/fuzz/data/make.py, and one file of rare
// attributes and types, zoo.mlirbc, written by bytecode_test.
#include "read/read.h"
#include "tests/fuzz/graph.h"

const char *const fuzz_seeds[] = {"tests/fuzz/data", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx);
    jmp_buf jb;
    if (CTX_TRY(&ctx, jb))
        check_graph(read_bytecode(&ctx, a, "fuzz.mlirbc", data, size));
    else
        assert(ctx.err.code == OTRN_PARSE || ctx.err.code == OTRN_UNSUPPORTED ||
               ctx.err.code == OTRN_VERSION || ctx.err.code == OTRN_CAPACITY);
    return 0;
}
