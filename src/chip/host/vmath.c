// SPDX-License-Identifier: Apache-2.0
// vmath.c — the tables of vmath.h.
#include "chip/host/vmath.h"

#include "chip/gpsimd/gp.h"

const VMath *vmath_f32(HostLevel level) { return gp_level(level)->vmath; }
