# SPDX-License-Identifier: Apache-2.0
# add.s — z = x + y over R rows of C, a core's part of it.
.name "add"
.type T=f32
.param R=4096
.param C=4096
.input  x T[R, C]
.input  y T[R, C]
.output z T[R, C]
.sbuf a T[2][128, C]
.sbuf b T[2][128, C]
.sync auto
loop r = 0, R/128 {
    dma a[r%2], x[r*128:+128, :] queue=0
    dma b[r%2], y[r*128:+128, :] queue=1
    vector: tensor_tensor a[r%2], a[r%2], b[r%2] op0=add
    scalar: dma z[r*128:+128, :], a[r%2] queue=2
}
