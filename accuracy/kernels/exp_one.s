# SPDX-License-Identifier: Apache-2.0
# exp_one.s — load a tile, exponentiate it, store it: nothing overlaps.
.name "exp_one"
.param N=128
.input  x bf16[128, N]
.output y bf16[128, N]
.sbuf t bf16[128, N]
.sync auto
dma t, x
scalar: activation t, t fn=exp a=1.0
dma y, t queue=1
