# One line, two operations: 40 products, and one copy that is longer than each of them and shorter than all.
.loc 1 "mlp.py":7:1 op=stablehlo.dot_general "jit(f)/mlp/dot_general"
.loc 2 "mlp.py":7:1 op=stablehlo.reduce_scatter "jit(f)/mlp/psum"
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128 @1
matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=128 n2=128 @1
gpsimd: tensor_copy dst=sbuf[0:8192] src=sbuf[0:4096] dtype=f32 stype=f32 n0=128 n1=512 @2
halt
