// SPDX-License-Identifier: Apache-2.0
// level_portable.c — the loops in the compiler's base instruction set: the definition.
#include "chip/gpsimd/gp.h"

#define GP_LEVEL gp_level_portable
#define GP_ISA 0
#if !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-strict-aliasing", "no-thread-jumps")
#endif
#include "chip/host/level_body.h"
