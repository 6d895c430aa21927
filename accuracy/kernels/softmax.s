# SPDX-License-Identifier: Apache-2.0
# softmax.s — softmax along rows: maximum, subtract, exp, sum, scale, a pass each.
.name "softmax"
.type T=f32
.param R=4096
.param C=4096
.input  x T[R, C]
.output y T[R, C]
.sbuf t T[2][128, C]
.sbuf e f32[2][128, C]
.sbuf o T[2][128, C]
.sbuf neg f32[2][128, 1]
.sbuf sum f32[2][128, 1]
.sync auto
loop i = 0, R/256 {
    for h = 0, 2 {
        dma t[h], x[(i*2+h)*128:+128, :] queue=0
        vector: tensor_reduce neg[h], t[h] op0=maximum negate=1
        vector: tensor_scalar e[h], t[h] op0=add a=neg[h]
        scalar: activation e[h], e[h] fn=exp a=1.0
    }
    for h = 0, 2 {
        vector: tensor_reduce sum[h], e[h] op0=add
        vector: reciprocal sum[h], sum[h]
        vector: tensor_scalar o[h], e[h] op0=multiply a=sum[h]
        gpsimd: dma y[(i*2+h)*128:+128, :], o[h] queue=1
    }
}
