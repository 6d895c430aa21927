# SPDX-License-Identifier: Apache-2.0
# softmax.s — y = exp(x - max) / sum, along the rows of x, 128 rows at a time.
#
# The scalar engine adds up what it exponentiates, so a row is read three times from SBUF and once from HBM.
.name "softmax"
.param R=256
.param C=1024
.input  x f32[R,C]
.output y f32[R,C]
.sbuf t f32[2][128,C]
.sbuf e f32[2][128,C]
.sbuf neg f32[128,1]        # -max
.sbuf sum f32[128,1]
.sync auto

loop r = 0, R/128 {
    dma t[r%2], x[r*128:+128, :] queue=0
    vector: tensor_reduce neg, t[r%2] op0=maximum negate=1
    scalar: activation e[r%2], t[r%2] fn=exp a=1.0 b=neg res=sum rop=add rcmd=reset_reduce
    vector: reciprocal sum, sum
    vector: tensor_scalar e[r%2], e[r%2] op0=multiply a=sum
    gpsimd: dma y[r*128:+128, :], e[r%2] queue=1
}
