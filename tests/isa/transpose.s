# transpose: a block on vector, an array of 2-byte words into PSUM on tensor.
.input x f32[2,3]
.input h bf16[3,2]
.output y f32[3,2]
.output g bf16[2,3]
.sbuf sx f32[2,3] at 0:0
.sbuf sh bf16[3,2] at 0:512
.sbuf sy f32[3,2] at 0:1024
.sbuf sg bf16[2,3]
.psum pg bf16[2,3]
.sync auto
dma sx, x
dma sh, h
vector: transpose dst=sbuf[0:1024] src=sbuf[0:0] dtype=f32 stype=f32 n0=2 n1=3 d1=1 s1=1
tensor: transpose dst=psum[0:0] src=sbuf[0:512] dtype=bf16 stype=bf16 n0=3 n1=2 d1=1 s1=1
tensor_copy sg, pg
dma y, sy
dma g, sg
# init x 1 2 3 4 5 6
# init h 1 2 3 4 nan -0.5
# expect y 1 4 2 5 3 6
# expect g 1 3 nan 2 4 -0.5
