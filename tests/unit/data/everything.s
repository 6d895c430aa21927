# A program with one of everything: artifact_test, and where the fuzzer starts.
.name "every \"thing\"\n"
.target "trn1"
.producer "hand"
.scratch 8192
.precision "matmult bf16"
.rounding stochastic
.arg f32[8,4] "args[0]['w']" donated
.arg f32[128,128]
.arg i32[]
.arg complex<f32>[2]
.result f32[8,4] "out" alias=0
.result f32[8]
.const f32 0 1.5 -inf
.const i32 7 -1
.const zero 100
.const 00ff10
.const bf16 1 2
.loc 1 "train.py":12:5 op=stablehlo.reduce "jit(step)/sum"
.loc 2 "":0:0 op=stablehlo.dot_general
.kernel 0 stablehlo.reduce (arg0[0]: f32[8,4], const[0]: f32[]) -> (result1[0]: f32[8]) {dimensions = [1]} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
.kernel 1 stablehlo.compare (arg0[0]: f32[8,4], arg0[0]: f32[8,4]) -> (scratch[0]: i1[8,4]) {compare_type = <FLOAT>, comparison_direction = <GT>}
.kernel 2 stablehlo.reduce_window (arg0[0]: f32[8,4], const[4]: f32[]) -> (scratch[64]: f32[7,3]) {base_dilations = [1, 1], padding = x2[0, 0, 0, 0], window_dilations = [1, 1], window_dimensions = [2, 2], window_strides = [1, 1]} region(f32, f32, f32, i1, f32) inputs 2 { r2 = const 0000803f; r3 = stablehlo.compare r0, r1 <GE> <FLOAT>; r4 = stablehlo.select r3, r0, r2; return r4 }
.loop head tail trips=12
.live 512 @1
.live 100
dma dst=sbuf[0:0] src=arg1[0] stype=f32 n0=128 n1=128 queue=3
ldweights src=sbuf[0:0] stype=f32 n0=128 n1=64 wait(q3>=1) @2
matmul dst=psum[0:0] src=sbuf[0:0] stype=f32 n0=128 n1=128 n2=64 @2
matmul dst=psum[0:0] src=sbuf[0:0] stype=f32 n0=128 n1=128 n2=64 flags=accumulate
vector: memset dst=sbuf[0:512] dtype=f32 n0=64 n1=8 imm=1065353216
scalar: tensor_copy dst=sbuf[0:1024] src=psum[0:0] dtype=bf16 stype=f32 n0=64 n1=128 d1=2 s1=1
kernel imm=0 wait(scalar>=1, tensor>=3) @1
barrier
head: reg_load reg=1 src=arg2[0] stype=i32
branch op0=equal imm=tail reg=1 value=-3
sync: nop
vector: wait wait(sync>=3)
kernel imm=1
kernel imm=2
barrier
jump imm=head
tail:
sync: halt
.core 1
.loop second third trips=3
dma dst=sbuf[0:0] src=arg1[0] stype=f32 n0=128 n1=128 queue=3 @1
second: reg_load reg=1 src=arg2[0] stype=i32
branch op0=equal imm=third reg=1 value=4
jump imm=second
third:
sync: halt
