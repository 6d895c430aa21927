# SPDX-License-Identifier: Apache-2.0
# rmsnorm.s — y = x / sqrt(mean(x^2) + eps) * w, along the rows of x, 128 rows at a time.
.name "rmsnorm"
.param R=256
.param C=1024
.param EPS=1e-6
.input  x f32[R,C]
.input  w f32[C]
.output y f32[R,C]
.sbuf t f32[2][128,C]
.sbuf u f32[2][128,C]
.sbuf ws f32[128,C]         # w in every partition
.sbuf eps f32[128,1]
.sbuf ss f32[128,1]         # sum of squares
.sbuf rs f32[128,1]         # 1 / rms
.sync auto

dma ws, w[*128, :] queue=2
vector: memset eps imm=0
vector: tensor_scalar eps, eps op0=add a=EPS
loop r = 0, R/128 {
    dma t[r%2], x[r*128:+128, :] queue=0
    scalar: activation u[r%2], t[r%2] fn=square a=1.0 res=ss rop=add rcmd=reset_reduce
    scalar: activation rs, ss fn=rsqrt a=1.0/C b=eps
    vector: scalar_tensor_tensor u[r%2], t[r%2], ws op0=multiply a=rs op1=multiply
    gpsimd: dma y[r*128:+128, :], u[r%2] queue=1
}
