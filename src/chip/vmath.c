// SPDX-License-Identifier: Apache-2.0
// vmath.c — the tables of vmath.h.
#include "chip/vmath.h"

#include "chip/gp.h"

const VMath *vmath_f32(HostLevel level) { return gp_level(level)->vmath; }
