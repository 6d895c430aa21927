# SPDX-License-Identifier: Apache-2.0
# silu.s — y = silu(x) over R rows of C.
.name "silu"
.param R=4096
.param C=7168
.input  x f32[R, C]
.output y f32[R, C]
.sbuf t f32[2][128, C]
.sync auto
loop r = 0, R/128 {
    dma t[r%2], x[r*128:+128, :] queue=0
    scalar: activation t[r%2], t[r%2] fn=silu a=1.0
    gpsimd: dma y[r*128:+128, :], t[r%2] queue=1
}
