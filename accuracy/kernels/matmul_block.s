# SPDX-License-Identifier: Apache-2.0
# matmul_block.s — blocks of BM x BN tiles of c; the contraction in pieces of BK tiles whose operands
# stay in SBUF; the pieces' sums are added up in SBUF.
.name "matmul_block"
.type T=f32
.param M=4096
.param K=8192
.param N=8192
.param BM=8
.param BN=2
.param BK=8
.input  a T[K,M]
.input  b T[K,N]
.output c f32[M,N]
.sbuf w T[2][128, BK, BM, 128]
.sbuf x T[2][128, BK, BN*512]
.sbuf r f32[128, BM, BN*512]
.psum p f32[8][128, 512]
.sync auto
loop n = 0, N/(512*BN) {
    loop m = 0, M/(128*BM) {
        vector: memset r imm=0
        loop k = 0, K/(128*BK*2) {
            for h = 0, 2 {
                for i = 0, BK {
                    dma x[h][:, i], b[((k*2+h)*BK+i)*128:+128, n*512*BN:+512*BN] queue=0
                    dma w[h][:, i], a[((k*2+h)*BK+i)*128:+128, m*128*BM:+128*BM] queue=1
                }
                for mi = 0, BM {
                    for ni = 0, BN {
                        for i = 0, BK {
                            ldweights w[h][:, i, mi]
                            matmul p[(mi*BN+ni)%8], x[h][:, i, ni*512:+512] accumulate=i>0
                        }
                        vector: tensor_tensor r[:, mi, ni*512:+512], r[:, mi, ni*512:+512], p[(mi*BN+ni)%8] op0=add
                    }
                }
            }
        }
        for mi = 0, BM {
            scalar: dma c[(m*BM+mi)*128:+128, n*512*BN:+512*BN], r[:, mi] queue=2
        }
    }
}
