# SPDX-License-Identifier: Apache-2.0
# rmsnorm.s — x / rms(x) * weight along rows: copy, square, sum, scale, weight, a pass each.
.name "rmsnorm"
.type T=f32
.param R=4096
.param C=4096
.input  x T[R, C]
.input  g T[1, C]
.output y T[R, C]
.sbuf w T[128, C]
.sbuf t T[2][128, C]
.sbuf q f32[128, C]
.sbuf o T[2][128, C]
.sbuf s f32[2][128, 1]
.sync auto
dma w, g[0, *128, :] queue=2
loop i = 0, R/256 {
    for h = 0, 2 {
        dma t[h], x[(i*2+h)*128:+128, :] queue=0
        vector: tensor_copy o[h], t[h]
        vector: tensor_tensor q, t[h], t[h] op0=multiply
        vector: tensor_reduce s[h], q op0=add
        scalar: activation s[h], s[h] fn=rsqrt a=0.0002
        vector: tensor_scalar o[h], o[h] op0=multiply a=s[h]
        vector: tensor_tensor o[h], o[h], w op0=multiply
        gpsimd: dma y[(i*2+h)*128:+128, :], o[h] queue=1
    }
}
