// SPDX-License-Identifier: Apache-2.0
// level_avx512.c — the loops for AVX-512 hosts; same source, same bits.
#include "chip/gpsimd/gp.h"

#define GP_LEVEL gp_level_avx512
#if defined(__x86_64__)
#define GP_ISA 2
#include <immintrin.h>
#else
#define GP_ISA 0
#endif
#include <math.h>

#if defined(__clang__)
#if GP_ISA
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))),        \
                             apply_to = function)
#endif
#include "chip/host/level_body.h"
#if GP_ISA
#pragma clang attribute pop
#endif
#else
#pragma GCC optimize("O3", "no-trapping-math", "no-strict-aliasing", "no-thread-jumps")
#if GP_ISA && !defined(OTRN_MODEL_LEVELS) // tests/model has AVX2 in its place
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#endif
#include "chip/host/level_body.h"
#endif
