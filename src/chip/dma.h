// SPDX-License-Identifier: Apache-2.0
// dma.h — moving elements: strided copies between memories.
#ifndef OTRN_CHIP_DMA_H
#define OTRN_CHIP_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/host.h"
#include "base/pool.h"

// dst[i] = src[i] for every index i of a pattern of four axes, bits unchanged. Counts as in an
// instruction: zero reads as one. Strides are bytes, of any sign; source strides may be zero.
// Source and destination must not overlap, nor two destination elements. elem_bytes: 1, 2, 4, 8
// or 16. `leaves`: no engine reads the destination next; what is large goes around the caches then.
void dma_copy(Pool *pool, HostLevel level, uint8_t *dst, const int64_t dst_strides_bytes[4],
              const uint8_t *src, const int64_t src_strides_bytes[4], const uint32_t n[4],
              size_t elem_bytes, bool leaves);

#endif
