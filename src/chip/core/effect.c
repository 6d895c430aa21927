// SPDX-License-Identifier: Apache-2.0
// effect.c — the table of effects.
#include "chip/core/effects.h"

EffFn *effect_find(int op) {
    static EffFn *const rows[ISA_OP_COUNT] = {
#define X(E, name) [ISA_##E] = eff_##name,
        EFFECT_ROWS(X)
#undef X
    };
    return rows[op];
}
