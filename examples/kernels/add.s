# SPDX-License-Identifier: Apache-2.0
# add.s — z = x + y, 128 rows and W columns at a time; three buffers would need a power of two: two are enough.
.name "add"
.param R=256
.param C=1024
.param W=512
.input  x f32[R,C]
.input  y f32[R,C]
.output z f32[R,C]
.sbuf a f32[2][128,W]
.sbuf b f32[2][128,W]
.sbuf s f32[2][128,W]
.sync auto

loop r = 0, R/128 {
    loop c = 0, C/W {
        dma a[c%2], x[r*128:+128, c*W:+W] queue=0
        dma b[c%2], y[r*128:+128, c*W:+W] queue=1
        vector: tensor_tensor s[c%2], a[c%2], b[c%2] op0=add
        scalar: dma z[r*128:+128, c*W:+W], s[c%2] queue=2
    }
}
# init x iota
# init y 1
