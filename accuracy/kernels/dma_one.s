# SPDX-License-Identifier: Apache-2.0
# dma_one.s — one transfer of P partitions x B bytes.
.name "dma_one"
.param P=8
.param B=4096
.input  x f32[P, B/4]
.sbuf t f32[P, B/4]
dma t, x
