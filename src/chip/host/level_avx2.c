// SPDX-License-Identifier: Apache-2.0
// level_avx2.c — the loops for AVX2 hosts; same source, same bits.
#include "chip/gpsimd/gp.h"

#define GP_LEVEL gp_level_avx2
#if defined(__x86_64__)
#define GP_ISA 1
#include <immintrin.h>
#else
#define GP_ISA 0
#endif
#include <math.h>

#if defined(__clang__)
#if GP_ISA
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#endif
#include "chip/host/level_body.h"
#if GP_ISA
#pragma clang attribute pop
#endif
#else
#pragma GCC optimize("O3", "no-trapping-math", "no-strict-aliasing", "no-thread-jumps")
#if GP_ISA
#pragma GCC target("avx2,f16c")
#endif
#include "chip/host/level_body.h"
#endif
