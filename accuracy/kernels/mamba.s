# SPDX-License-Identifier: Apache-2.0
# mamba.s — the selective scan: CH channels by tiles of 128, 16 states, S steps in pieces of T. delta and u
# stay in SBUF for a tile and a piece; b and c, the same for every channel, lie in PSUM in all partitions, where a
# product with a column of ones has put them.
.name "mamba"
.param CH=4096
.param S=512
.param T=512
.param STATES=16
.input  delta f32[CH, S]
.input  u f32[CH, S]
.input  da f32[CH, STATES]
.input  bt f32[STATES, S]
.input  ct f32[STATES, S]
.output y f32[CH, S]
.sbuf ones f32[1, 128]
.sbuf bc f32[2][1, 2*T]
.psum pb f32[2][128, T]
.psum pc f32[2][128, T]
.sbuf d f32[2][128, T]
.sbuf v f32[2][128, T]
.sbuf alpha f32[128, STATES]
.sbuf e f32[2][128, T]
.sbuf du f32[2][128, T]
.sbuf h f32[2][128, T]
.sbuf r f32[2][128, T]
.sbuf keep f32[128, STATES]
.sync auto
vector: memset ones imm=0x3f800000
loop c = 0, CH/128 {
    dma alpha, da[c*128:+128, :] queue=3
    vector: memset keep imm=0
    loop s = 0, S/T {
        dma d[s%2], delta[c*128:+128, s*T:+T] queue=0
        dma v[s%2], u[c*128:+128, s*T:+T] queue=1
        vector: memset r[s%2] imm=0
        for n = 0, STATES {
            dma bc[n%2][:, 0:T], bt[n:+1, s*T:+T] queue=4
            dma bc[n%2][:, T:+T], ct[n:+1, s*T:+T] queue=5
            ldweights ones
            matmul pb[n%2], bc[n%2][:, 0:T]
            matmul pc[n%2], bc[n%2][:, T:+T]
            scalar: activation e[n%2], d[s%2] fn=exp a=alpha[:, n]
            vector: tensor_tensor du[n%2], d[s%2], v[s%2] op0=multiply
            vector: tensor_tensor du[n%2], du[n%2], pb[n%2] op0=multiply
            vector: tensor_scan h[n%2], e[n%2], du[n%2] op0=multiply op1=add a=keep[:, n]
            vector: tensor_tensor e[n%2], h[n%2], pc[n%2] op0=multiply
            vector: tensor_tensor r[s%2], r[s%2], e[n%2] op0=add
            scalar: tensor_copy keep[:, n], h[n%2][:, T-1:+1]
        }
        gpsimd: dma y[c*128:+128, s*T:+T], r[s%2] queue=2
    }
}
