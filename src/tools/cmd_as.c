// SPDX-License-Identifier: Apache-2.0
// cmd_as.c — otrn as: assembly text into an artifact.
#include "base/file.h"
#include "clock/clock.h"
#include "tools/tools.h"

int cmd_as(Tool *t) {
    const char *path = t->words.at[0], *out = t->opt.val[OPT_OUT];
    if (!*out)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "as: -o OUT.otrn is missing");
    size_t size;
    const char *text = (const char *)file_read(t->ctx, t->arena, path, &size);
    Artifact *art = artifact_assemble(t->ctx, t->arena, path, text, size, t->opt.val[OPT_DEFINE]);
    ChipFile chip;
    chipfile_load(t->ctx, t->arena, art->target, t->opt.val[OPT_CHIPS], &chip);
    IsaChip limits = chipfile_isa(&chip);
    artifact_verify_for(t->ctx, art, path, &limits, NULL);
    Buf bytes = {.arena = t->arena};
    artifact_save(art, &bytes);
    file_write(t->ctx, out, bytes.at, bytes.n);
    return 0;
}
