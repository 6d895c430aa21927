// SPDX-License-Identifier: Apache-2.0
// now.h — the monotonic clock, from a beginning that means nothing: for what took how long and waits until when.
#ifndef OTRN_BASE_NOW_H
#define OTRN_BASE_NOW_H

#include <stdint.h>
#include <time.h>

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t now_ms(void) { return now_ns() / 1000000; }
static inline double now_seconds(void) { return 1e-9 * (double)now_ns(); }

#endif
