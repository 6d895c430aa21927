# SPDX-License-Identifier: Apache-2.0
# add_bf16.s — z = x + y over R rows of C, a core's part of it.
.name "add_bf16"
.param R=4096
.param C=4096
.input  x bf16[R, C]
.input  y bf16[R, C]
.output z bf16[R, C]
.sbuf a bf16[2][128, C]
.sbuf b bf16[2][128, C]
.sync auto
loop r = 0, R/128 {
    dma a[r%2], x[r*128:+128, :] queue=0
    dma b[r%2], y[r*128:+128, :] queue=1
    vector: tensor_tensor a[r%2], a[r%2], b[r%2] op0=add
    scalar: dma z[r*128:+128, :], a[r%2] queue=2
}
