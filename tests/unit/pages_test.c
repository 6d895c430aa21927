// SPDX-License-Identifier: Apache-2.0
// pages_test.c — a chip among many takes no more memory than its programs touch.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chip/core/core.h"

// Pages of SBUF that are there after a few bytes of every partition were written.
static size_t touched(Chip *c, size_t page) {
    size_t n = (size_t)SBUF_PITCH * PARTITIONS / page, there = 0;
    unsigned char *in = malloc(n);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        c->sbuf[(size_t)p * SBUF_PITCH] = 1;
    if (!in || mincore(c->sbuf, n * page, in))
        there = n;
    for (size_t i = 0; in && there < n && i < n; i++)
        there += in[i] & 1;
    free(in);
    return there;
}

int main(void) {
    Chip *c = chip_make(NULL, host_best());
    if (!c) {
        puts("FAIL small_pages: no chip");
        return 1;
    }
    chip_small_pages(c);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = touched(c, page);
    bool ok = n <= PARTITIONS;
    if (ok)
        puts("ok small_pages");
    else
        printf("FAIL small_pages: %zu pages for %u partitions\n", n, PARTITIONS);
    chip_free(c);
    return !ok;
}
