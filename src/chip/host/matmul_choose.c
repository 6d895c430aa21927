// SPDX-License-Identifier: Apache-2.0
// matmul_choose.c — which of two ways to the same bits is quicker on this host.
//
// AVX512_BF16 takes two steps of a chain in one instruction. On Zen 4 that is 1.8 times the rate of fp32, on Intel's cores
// half of it, and nothing that a CPU says of itself tells. So one product of the array is done both ways, a few times in turn, and the
// shortest time of each decides. It takes less than a millisecond, and no result depends on it.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "chip/host/matmul.h"

#define TRIES 5
#define COLS 512

static double product_seconds(HostLevel level, uint8_t *room) {
    MmStationary st = {.panels = (float *)room};
    uint16_t *src = (uint16_t *)(room + MM_PANEL_BYTES);
    float *dst = (float *)(room + MM_PANEL_BYTES + ISA_PE_ROWS * COLS * sizeof *src);
    mm_load(level, &st, &(MmLoad){.src = src, .pitch = COLS * sizeof *src, .stride = 1, .stype = DT_BF16, .k = ISA_PE_ROWS,
                                  .m = ISA_PE_COLS});
    MmCall call = {.st = &st, .dst = dst, .dst_pitch = COLS * sizeof *dst, .dst_stride = 1, .src = src,
                   .src_pitch = COLS * sizeof *src, .src_stride = 1, .stype = DT_BF16};
    double begin = now_seconds();
    mm_multiply(&call, 0, COLS);
    return now_seconds() - begin;
}

bool mm_quicker(HostLevel a, HostLevel b) {
    size_t bytes = MM_PANEL_BYTES + ISA_PE_ROWS * COLS * sizeof(uint16_t) + ISA_PE_COLS * COLS * sizeof(float);
    uint8_t *room = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (!room)
        return false;
    memset(room, 0, bytes);
    for (size_t i = 0; i < (size_t)ISA_PE_ROWS * COLS; i++)
        ((uint16_t *)(room + MM_PANEL_BYTES))[i] = (uint16_t)(0x3f80 + i % 64); // numbers between 1 and 2
    double best[2] = {1e9, 1e9};
    for (int i = 0; i < 2 * (TRIES + 1); i++) {
        double t = product_seconds(i & 1 ? b : a, room);
        if (i >= 2 && t < best[i & 1]) // the first of each warms up
            best[i & 1] = t;
    }
    free(room);
    return best[0] < best[1];
}

// The one thing this file remembers: a fact about the machine.
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool pairs_pay;
static void measure(void) { pairs_pay = mm_quicker(HOST_BF16, HOST_AVX512); }

bool mm_pairs_pay(void) {
    pthread_once(&once, measure);
    return pairs_pay;
}
