// SPDX-License-Identifier: Apache-2.0
// cmd_as.c — otrn as: assembly text into an artifact.
#include "base/file.h"
#include "rt/rt.h"
#include "tools/tools.h"

int cmd_as(Tool *t) {
    RtCompile in = {.opts = &t->opt, .name = t->words.at[0]};
    const char *out = t->opt.val[OPT_OUT];
    if (!*out)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "as: -o OUT.otrn is missing");
    in.bytes = tool_read(t, in.name, &in.size);
    Buf bytes = {0};
    rt_assemble(t->ctx, t->arena, &in, &bytes);
    file_write(t->ctx, out, bytes.at, bytes.n);
    return 0;
}
