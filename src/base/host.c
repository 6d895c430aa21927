// SPDX-License-Identifier: Apache-2.0
// host.c — what the CPU offers, which of it a program uses, and the floating-point mode kernels need.
//
// A level is offered only when every extension its kernels use is there and the operating system
// saves the wide registers (the compiler's CPU probe checks both).
#include "base/host.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

// F16C has no name in older compilers' CPU probes; its bit implies nothing about the OS, which
// the AVX2 probe has already asked.
static int host_has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}

#define ARCH_REQ_XCOMP_PERM 0x1023 // arch_prctl: may this process use a large register state?
#define XFEATURE_TILEDATA 18

static bool amx_permitted(void) {
#if defined(__linux__)
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILEDATA) == 0;
#else
    return false;
#endif
}

// What the system saves at a thread switch; 0 where it does not say.
static uint64_t saved_states(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) // OSXSAVE
        return 0;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (uint64_t)d << 32 | a;
}

static bool host_has_pairs(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}

static bool host_has_tiles(bool has_pairs) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           host_amx_saved(&(HostAmx){.leaf7_edx = d, .xcr0 = saved_states(), .has_pairs = has_pairs});
}

#if defined(OTRN_MODEL_LEVELS) // the build of `make levels`: a model stands for what this host lacks
static bool model_permitted(void) { return true; }
HostWays host_ways(void) {
    (void)amx_permitted, (void)host_has_f16c, (void)host_has_pairs, (void)host_has_tiles;
    return (HostWays){.vectors = HOST_AVX512, .has_pairs = true, .has_tiles = true, .permitted = model_permitted};
}
#else
HostWays host_ways(void) {
    HostWays w = {.vectors = HOST_PORTABLE, .permitted = amx_permitted};
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !host_has_f16c())
        return w;
    w.vectors = HOST_AVX2;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return w;
    w.vectors = HOST_AVX512;
    w.has_pairs = host_has_pairs();
    w.has_tiles = host_has_tiles(w.has_pairs);
    return w;
}
#endif

#define MXCSR_DEFAULT 0x1f80u // all exceptions masked, nearest even, subnormals kept
#define MXCSR_FLUSH 0x8040u   // FTZ and DAZ

HostFp host_fp_begin(HostFpMode mode) {
    HostFp old = {_mm_getcsr()};
    uint32_t want = mode == HOST_FP_FLUSH ? MXCSR_DEFAULT | MXCSR_FLUSH : MXCSR_DEFAULT;
    // The sticky exception flags in the low six bits do not change results: no need to write then.
    if ((old.bits & ~0x3fu) != want)
        _mm_setcsr(want);
    return old;
}

void host_fp_end(HostFp old) {
    if (_mm_getcsr() != (uint32_t)old.bits)
        _mm_setcsr((uint32_t)old.bits);
}

#else

HostWays host_ways(void) { return (HostWays){.vectors = HOST_PORTABLE}; }

#if defined(__aarch64__)
// FPCR 0 is round to nearest even, subnormals kept, NaNs propagated. Flushing there detects tiny
// results before rounding, unlike x86, so HOST_FP_FLUSH is emulated by its callers.
HostFp host_fp_begin(HostFpMode mode) {
    (void)mode;
    HostFp old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old.bits));
    if (old.bits)
        __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return old;
}

void host_fp_end(HostFp old) {
    if (old.bits)
        __asm__ volatile("msr fpcr, %0" : : "r"(old.bits));
}
#else
HostFp host_fp_begin(HostFpMode mode) {
    (void)mode;
    return (HostFp){0};
}
void host_fp_end(HostFp old) {
    (void)old;
}
#endif
#endif

// Leaf 0x1d, which describes the tiles, is all zero under some hypervisors whose tiles work: it is not asked.
bool host_amx_saved(const HostAmx *h) {
    bool bf16 = h->leaf7_edx >> 22 & 1, tile = h->leaf7_edx >> 24 & 1;
    bool saved = (h->xcr0 >> 17 & 3) == 3; // the tiles and their configuration
    return bf16 && tile && saved && h->has_pairs;
}

int host_choose(const HostWays *w, int want, bool narrow) {
    if (want == HOST_BF16)
        return w->has_pairs ? want : -1;
    if (want == HOST_AMX)
        return w->has_tiles && w->permitted() ? want : -1;
    if (want != HOST_COUNT)
        return want <= (int)w->vectors ? want : -1;
    if (narrow && w->has_tiles && w->permitted())
        return HOST_AMX;
    if (narrow && w->has_pairs && (!w->pairs_pay || w->pairs_pay()))
        return HOST_BF16;
    return (int)w->vectors;
}

HostLevel host_best(void) {
    HostWays w = host_ways();
    return (HostLevel)host_choose(&w, HOST_COUNT, true);
}

static const char *const host_names[HOST_COUNT] = {
    [HOST_PORTABLE] = "portable", [HOST_AVX2] = "avx2", [HOST_AVX512] = "avx512",
    [HOST_BF16] = "avx512bf16", [HOST_AMX] = "amx"};

const char *host_name(HostLevel level) {
    return (unsigned)level < HOST_COUNT ? host_names[level] : "invalid";
}

int host_parse(const char *name) {
    for (int level = 0; level < HOST_COUNT; level++)
        if (!strcmp(name, host_names[level]))
            return level;
    return !strcmp(name, "auto") ? HOST_COUNT : -1;
}
