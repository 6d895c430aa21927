// SPDX-License-Identifier: Apache-2.0
// host.h — which instruction sets this machine has, chosen once at run time.
//
// Every level computes the same bits; the option `host` (OTRN_HOST) forces a lower one. A level has all
// that those below it have: HOST_BF16 is HOST_AVX512 with products of pairs of bf16, HOST_AMX with bf16 tiles, so code
// without a form of its own for them asks for `level >= HOST_AVX512`.
#ifndef OTRN_BASE_HOST_H
#define OTRN_BASE_HOST_H

#include <stdbool.h>
#include <stdint.h>

typedef enum HostLevel { HOST_PORTABLE, HOST_AVX2, HOST_AVX512, HOST_BF16, HOST_AMX, HOST_COUNT } HostLevel;

const char *host_name(HostLevel level);  // "portable", "avx2", "avx512", "avx512bf16", "amx"
int host_parse(const char *name);        // -1 when unknown, HOST_COUNT for "auto"

// What a level is chosen from. Vectors are there to be used; the two ways of narrow products have a price.
typedef struct HostWays {
    HostLevel vectors;       // the widest: HOST_PORTABLE, HOST_AVX2 or HOST_AVX512
    bool has_pairs;          // HOST_BF16; some CPUs have it and are slower with it than without
    bool has_tiles;          // HOST_AMX: the CPU has the tiles and the system saves them
    bool (*permitted)(void); // asks the system for leave to use tiles, for the whole process: signal stacks that are too
                             // small for them fail from then on. Asked last, and only when tiles will be used.
    bool (*pairs_pay)(void); // measures; NULL: they do
} HostWays;
HostWays host_ways(void); // this host's
// The level in which a program runs. want: what `host_parse` made of the option. narrow: it has products of bf16 or fp8;
// others gain nothing from the last two levels. -1: the level that is wanted is not there.
int host_choose(const HostWays *w, int want, bool narrow);
HostLevel host_best(void); // the highest that this host has, leave for tiles included: for tests and benchmarks

// The tile registers: the CPU must have them, with all that the level below has, and the system save them. Linux 5.16 or
// later must also give the process leave (it refuses where a signal stack is too small for them).
typedef struct HostAmx {
    uint32_t leaf7_edx; // CPUID: 22 AMX-BF16, 24 AMX-TILE
    uint64_t xcr0;
    bool has_pairs;
} HostAmx;
bool host_amx_saved(const HostAmx *h);

// The floating-point mode of the calling thread is part of a result's inputs: some programs that
// load the library have set flush-to-zero on their threads. Code whose bits matter runs between begin
// and end; the loops themselves must be in a function that is not inlined there, since compilers
// move arithmetic across the switch.
//   HOST_FP_IEEE    nearest even, subnormals kept
//   HOST_FP_FLUSH   as x86's DAZ and FTZ; only x86 has it, elsewhere it is the same as HOST_FP_IEEE
typedef enum HostFpMode { HOST_FP_IEEE, HOST_FP_FLUSH } HostFpMode;
typedef struct HostFp {
    uint64_t bits;
} HostFp;
HostFp host_fp_begin(HostFpMode mode);
void host_fp_end(HostFp old);

#endif
