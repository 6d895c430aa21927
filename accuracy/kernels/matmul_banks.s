# SPDX-License-Identifier: Apache-2.0
# matmul_banks.s — bf16 product whose operands are loaded once, by panels of 512 columns, and stay in SBUF; tiles of
# c rotate over BANKS banks of PSUM: with one bank every product waits until the tile before has been taken out. STREAM=0:
# one operand is loaded whole before the other, as for figures published before loads were streamed.
.name "matmul_banks"
.param M=2048
.param K=2048
.param N=2048
.param BANKS=8
.param STREAM=1
.input  a bf16[K,M]
.input  b bf16[K,N]
.output c bf16[M,N]
.sbuf w bf16[128, K/128, M]
.sbuf x bf16[128, K/128, N]
.sbuf o bf16[8][128, N]
.psum p f32[BANKS][128, 512]
.sync auto
for i = 0, M/512*(1-STREAM) {
    for k = 0, K/128 {
        dma w[:, k, i*512:+512], a[k*128:+128, i*512:+512] queue=0
    }
}
for i = 0, N/512*(1-STREAM) {
    for k = 0, K/128 {
        dma x[:, k, i*512:+512], b[k*128:+128, i*512:+512] queue=1
    }
}
for i = 0, max(M, N)/512*STREAM {
    for k = 0, K/128 {
        dma w[:, k, i*512:+512], a[k*128:+128, i*512:+512] queue=0
        dma x[:, k, i*512:+512], b[k*128:+128, i*512:+512] queue=1
    }
}
for q = 0, M/512 {
    for n = 0, N/512 {
        for i = 0, 4 {
            for k = 0, K/128 {
                ldweights w[:, k, (q*4+i)*128:+128]
                matmul p[(n*4+i)%BANKS], x[:, k, n*512:+512] accumulate=k>0
            }
            vector: tensor_copy o[q%2*4+i][:, n*512:+512], p[(n*4+i)%BANKS]
        }
    }
    for i = 0, 4 {
        scalar: dma c[(q*4+i)*128:+128, :], o[q%2*4+i] queue=2
    }
}
