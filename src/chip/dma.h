// SPDX-License-Identifier: Apache-2.0
// dma.h — moving elements: strided copies between memories, and copies that cast.
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

// dst[p][j] = dst_dtype(src[p][j]), p < parts, j < cols: pitches in bytes between rows, strides in
// elements of the operand's type. Every class but complex:
//   same type        the bits unchanged
//   float to float   rounded once, to nearest even, overflow as the format's flavour says (dtype.h)
//   int to float     rounded once
//   float to int     toward zero, saturating; NaN gives zero
//   int to int       wraps; to i1: whether it is not zero
// Source and destination must not overlap, except that the same type may be copied onto itself.
void tensor_copy(Pool *pool, HostLevel level, uint8_t *dst, size_t dst_pitch, int dst_dtype,
                 int32_t dst_stride, const uint8_t *src, size_t src_pitch, int src_dtype,
                 int32_t src_stride, uint32_t parts, uint32_t cols);

#endif
