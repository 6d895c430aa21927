# tensor_tensor: numbers in fp32, integers exact on gpsimd, NaN through maximum.
.input x f32[2,4]
.input y f32[2,4]
.input k i32[1,2]
.input j i32[1,2]
.output s f32[2,4]
.output m f32[2,4]
.output w i32[1,2]
.output b i32[1,2]
.sbuf sx f32[2,4]
.sbuf sy f32[2,4]
.sbuf sk i32[1,2]
.sbuf sj i32[1,2]
.sbuf ss f32[2,4]
.sbuf sm f32[2,4]
.sbuf sw i32[1,2]
.sbuf sb i32[1,2]
.sync auto
dma sx, x
dma sy, y
dma sk, k
dma sj, j
vector: tensor_tensor ss, sx, sy op0=subtract
vector: tensor_tensor sm, sx, sy op0=maximum
gpsimd: tensor_tensor sw, sk, sj op0=multiply
vector: tensor_tensor sb, sk, sj op0=bitwise_xor
dma s, ss
dma m, sm
dma w, sw
dma b, sb
# init x 1 2 3 4 nan inf -inf 0.5
# init y 4 3 2 1 1 1 inf 0.25
# init k 123457 -7
# init j 1009 3
# expect s -3 -1 1 3 nan inf -inf 0.25
# expect m 4 3 3 4 nan inf inf 0.5
# expect w 124568113 -21
# expect b 123312 -6
