// SPDX-License-Identifier: Apache-2.0
// dma_block.h — transposed copies of 8 x 8 elements.
#ifndef OTRN_CHIP_DMA_BLOCK_H
#define OTRN_CHIP_DMA_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/host.h"

#define BLOCK 8
// dst[i][j] = src[j][i] for i, j < BLOCK; pitches in bytes between rows.
typedef void BlockFn(uint8_t *dst, int64_t dst_pitch, const uint8_t *src, int64_t src_pitch);
BlockFn *block_find(HostLevel level, size_t elem_bytes); // 1, 2, 4, 8 or 16

#endif
