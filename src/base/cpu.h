// SPDX-License-Identifier: Apache-2.0
// cpu.h — waiting on a CPU, and how many of them there are.
#ifndef OTRN_BASE_CPU_H
#define OTRN_BASE_CPU_H

// Between two looks at a word that another thread will write.
static inline void cpu_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

int cpu_count(void); // those this process may use; pool.c

#endif
