// SPDX-License-Identifier: Apache-2.0
// dma.h — moving elements: strided copies between memories.
#ifndef OTRN_CHIP_DMA_H
#define OTRN_CHIP_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/host.h"
#include "base/pool.h"
#include "chip/host/dma_block.h"

typedef struct DmaAxis {
    size_t n;
    int64_t d, s; // strides in bytes
} DmaAxis;

typedef struct DmaCopy { // a copy that is ready to run
    uint8_t *dst;
    const uint8_t *src;
    size_t elem;
    int naxes;
    DmaAxis axis[4]; // outermost first; while planning all of them, afterwards those outside row
    enum { COPY_RUNS, COPY_TRANSPOSE, COPY_ELEMENTS, COPY_BLOCKS } kind;
    DmaAxis row, col; // inner two; the destination's contiguous axis, if there is one, is col
    size_t col_last;  // elements of col in the very last row, when one axis was cut into rows
    bool stream;
    BlockFn *block;     // TRANSPOSE
    size_t row_bands, col_bands; // TRANSPOSE: how it is cut,
    bool along_source;           // and which band is next
    size_t rows, grain; // of all outer axes together, or bands; least of them worth a handoff
} DmaCopy;

// dst[i] = src[i] for every index i of a pattern of four axes, bits unchanged. Counts as in an
// instruction: zero reads as one. Strides are bytes, of any sign; source strides may be zero.
// Source and destination must not overlap, nor two destination elements. elem_bytes: 1, 2, 4, 8
// or 16. `leaves`: no engine reads the destination next; what is large goes around the caches then.
void dma_copy(Pool *pool, HostLevel level, uint8_t *dst, const int64_t dst_strides_bytes[4],
              const uint8_t *src, const int64_t src_strides_bytes[4], const uint32_t n[4],
              size_t elem_bytes, bool leaves);
// The same in two steps: what is to be done, then rows [begin, end) of it, in any order and by any thread.
DmaCopy dma_prepare(HostLevel level, uint8_t *dst, const int64_t dst_strides_bytes[4], const uint8_t *src,
                    const int64_t src_strides_bytes[4], const uint32_t n[4], size_t elem_bytes, bool leaves);
void dma_rows(const DmaCopy *c, size_t begin, size_t end);
// A transfer of fp32 or bf16 into blocks (dma_blocks.c): dst is the block of the first column, from its partition on;
// strides of dst but the first are those of a row of SBUF, whole blocks but for neighbours.
DmaCopy dma_blocks(uint8_t *dst, const int64_t d[4], const uint8_t *src, const int64_t s[4], const uint32_t n[4], size_t elem);
void dma_blocks_rows(const DmaCopy *c, size_t begin, size_t end);

#endif
