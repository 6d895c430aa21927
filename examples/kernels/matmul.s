# SPDX-License-Identifier: Apache-2.0
# matmul.s — c = a^T x b, tiled: 128 rows of c by TN columns at a time.
#
#   otrn run matmul.s --input=a.npy,b.npy --output=out -D M=1024 -D N=1024
#
# The panel of b for a column of tiles stays in SBUF while all rows of c pass; a's panels, the PSUM
# banks and the finished tiles rotate over two buffers; loads are triggered by sync and stores by scalar, so
# that neither waits behind the other.
.name "matmul"
.param M=512
.param K=512
.param N=1024
.param TN=512
.input  a f32[K,M]
.input  b f32[K,N]
.output c f32[M,N]

.sbuf w f32[2][128, K/128, 128]      # a's panel: K tiles side by side
.sbuf x f32[2][128, K/128, TN]       # b's
.sbuf o f32[2][128, TN]
.psum p f32[2][128, TN]
.sync auto

loop n = 0, N/TN {
    for k = 0, K/128 {
        dma x[n%2][:, k], b[k*128:+128, n*TN:+TN] queue=0
    }
    loop m = 0, M/128 {
        for k = 0, K/128 {
            dma w[m%2][:, k], a[k*128:+128, m*128:+128] queue=1
        }
        for k = 0, K/128 {
            ldweights w[m%2][:, k]
            matmul p[m%2], x[n%2][:, k] accumulate=k>0
        }
        vector: tensor_copy o[m%2], p[m%2]
        scalar: dma c[m*128:+128, n*TN:+TN], o[m%2] queue=2
    }
}
