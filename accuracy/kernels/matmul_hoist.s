# SPDX-License-Identifier: Apache-2.0
# matmul_hoist.s — as matmul_reload.s, but a's panel of 128 columns is loaded once for a row of tiles.
.name "matmul_hoist"
.param M=4096
.param K=8192
.param N=8192
.input  a f32[K,M]
.input  b f32[K,N]
.output c f32[M,N]
.sbuf w f32[2][128, K/128, 128]
.sbuf x f32[8][128, 512]
.sbuf o f32[2][128, 512]
.psum p f32[2][128, 512]
.sync auto
loop m = 0, M/256 {
    for mi = 0, 2 {
        for k = 0, K/128 {
            dma w[mi][:, k], a[k*128:+128, (m*2+mi)*128:+128] queue=0
        }
        loop n = 0, N/512 {
            for k = 0, K/128 {
                dma x[k%8], b[k*128:+128, n*512:+512] queue=1
                ldweights w[mi][:, k]
                matmul p[n%2], x[k%8] accumulate=k>0
            }
            vector: tensor_copy o[n%2], p[n%2]
            scalar: dma c[(m*2+mi)*128:+128, n*512:+512], o[n%2] queue=2
        }
    }
}
