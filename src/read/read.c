// SPDX-License-Identifier: Apache-2.0
// read.c — the readers behind one door, told apart by content.
#include "read/read.h"

static Hlo *read_any(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, bool open) {
    Hlo *h;
    if (read_is_bytecode(bytes, size)) {
        h = read_bytecode(ctx, a, name, bytes, size);
    } else if (read_is_xla(bytes, size)) {
        h = read_xla(ctx, a, name, bytes, size, open);
    } else if (read_is_xla_text(bytes, size)) {
        h = read_xla_text(ctx, a, name, bytes, size, open);
    } else {
        read_foreign(ctx, name, bytes, size);
        h = read_text(ctx, a, name, bytes, size);
    }
    read_aliases(h);
    read_gspmd(h);
    return h;
}

Hlo *read_program(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size) {
    return read_any(ctx, a, name, bytes, size, false);
}

Hlo *read_program_open(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size) {
    return read_any(ctx, a, name, bytes, size, true);
}
