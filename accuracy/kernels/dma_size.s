# SPDX-License-Identifier: Apache-2.0
# dma_size.s — COUNT transfers of 128 partitions x B bytes from HBM to SBUF through one queue.
.name "dma_size"
.param B=2048
.param COUNT=256
.input  x f32[128, B/4]
.sbuf t f32[2][128, B/4]
loop i = 0, COUNT {
    dma t[i%2], x queue=0
}
