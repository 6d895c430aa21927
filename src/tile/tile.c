// SPDX-License-Identifier: Apache-2.0
// tile.c — the stop between graph and instructions: lower to steps, share them out, then emit.
#include "base/opt.h"
#include "tile/pair.h"

Artifact *tile_lower(Compile *c, const ChipFile *chip) {
    Lower *l = ARENA_NEW(c->scratch, Lower);
    *l = (Lower){.c = c, .h = c->hlo};
    lower_program(l, chip);
    Pair pair = {0};
    ChipFile both = *chip;
    if (c->opts && *c->opts->val[OPT_LNC] == '2') {
        if (chip->generation < 3) {
            ctx_hint(c->ctx, "trn2 and trn3 have them; --lnc=1 is one core");
            ctx_fail(c->ctx, OTRN_USAGE, NO_PLACE, "--lnc=2: %s has no logical cores of two", chip->name);
        }
        pair_plan(l, chip, &pair);
    }
    if (pair.is_split)
        both.hbm_bytes_per_core *= 2; // they share their memories
    return emit_program(l, &both, &pair);
}
