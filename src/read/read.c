// SPDX-License-Identifier: Apache-2.0
// read.c — the two readers behind one door, told apart by content.
#include "read/read.h"

Hlo *read_program(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size) {
    if (read_is_bytecode(bytes, size))
        return read_bytecode(ctx, a, name, bytes, size);
    read_foreign(ctx, name, bytes, size);
    return read_text(ctx, a, name, bytes, size);
}
