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

HostLevel host_best(void);               // what the CPU and the operating system allow
const char *host_name(HostLevel level);  // "portable", "avx2", "avx512", "avx512bf16", "amx"
int host_parse(const char *name);        // -1 when unknown, HOST_COUNT for "auto"

// The tile registers: the CPU must have them and the system save them, and Linux 5.16 or later must give the
// process leave (it refuses where a signal stack is too small for them). Leave is asked for last.
typedef struct HostAmx {
    uint32_t leaf7_edx; // CPUID: 22 AMX-BF16, 24 AMX-TILE
    uint64_t xcr0;
    bool (*permitted)(void);
} HostAmx;
bool host_amx_usable(const HostAmx *h);

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
