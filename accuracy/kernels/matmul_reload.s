# SPDX-License-Identifier: Apache-2.0
# matmul_reload.s — c = a^T x b, one tile of c at a time, both operands loaded for every product.
.name "matmul_reload"
.param M=4096
.param K=8192
.param N=8192
.input  a f32[K,M]
.input  b f32[K,N]
.output c f32[M,N]
.sbuf w f32[4][128, 128]
.sbuf x f32[4][128, 512]
.sbuf o f32[2][128, 512]
.psum p f32[2][128, 512]
.sync auto
loop m = 0, M/128 {
    loop n = 0, N/512 {
        loop k = 0, K/512 {
            for i = 0, 4 {
                dma w[i], a[(k*4+i)*128:+128, m*128:+128] queue=0
                dma x[i], b[(k*4+i)*128:+128, n*512:+512] queue=1
                ldweights w[i]
                matmul p[n%2], x[i] accumulate=1
            }
        }
        vector: tensor_copy o[n%2], p[n%2]
        scalar: dma c[m*128:+128, n*512:+512], o[n%2] queue=2
    }
}
