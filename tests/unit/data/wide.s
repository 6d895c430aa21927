# Groups and shardings of 98,304 devices by count and stride; a seed for fuzzing (otrn dis of tests/spmd/wide_artifact.mlir).
.name "main"
.target "trn2"
.producer "opentrn 0.12.0"
.partitions 98304
.scratch 8192
.arg bf16[16,64] sharding="12288,1|0;98304x1"
.arg bf16[64,8] sharding="1,8|0;8x1,12288x8"
.arg bf16[8,64] sharding="8,1|0;8x1,12288x8"
.result bf16[16,64] sharding="12288,1|0;98304x1"
.result bf16[64,64]
.loc 1 "tests/spmd/wide_artifact.mlir":23:5 op=stablehlo.dot_general
.loc 2 "tests/spmd/wide_artifact.mlir":24:5 op=stablehlo.dot_general
.loc 3 "tests/spmd/wide_artifact.mlir":25:5 op=stablehlo.all_reduce
.loc 4 "tests/spmd/wide_artifact.mlir":25:5 op=stablehlo.dot_general
.loc 5 "tests/spmd/wide_artifact.mlir":25:5 op=stablehlo.all_reduce
.loc 6 "":0:0 "argument 0"
.loc 7 "":0:0 "argument 1"
.loc 8 "":0:0 "argument 2"
.kernel 0 stablehlo.all_reduce (scratch[256]: bf16[16,64]) -> (result0[0]: bf16[16,64]) {channel_id = 1, replica_groups = x8[0; 98304 x 1], use_global_device_ids = true} region(bf16, bf16, bf16) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
.kernel 1 stablehlo.all_reduce (scratch[0]: bf16[64,64]) -> (result1[0]: bf16[64,64]) {channel_id = 1, replica_groups = x12288[0; 8 x 1, 12288 x 8], use_global_device_ids = true} region(bf16, bf16, bf16) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
.live 8192 @5
.live 8192 @4
.live 2048 @6
.live 2048 @3
.live 1024 @7
.live 1024 @8
  sync: dma dst=sbuf[0:768] src=arg1[0] stype=bf16 n0=64 n1=8 @1
  sync: dma dst=sbuf[0:0] src=arg0[0] stype=bf16 queue=1 n0=64 n1=16 s0=1 s1=64 @1
  tensor: ldweights src=sbuf[0:0] stype=bf16 n0=64 n1=16 wait(q1>=1) @1
  tensor: matmul dst=psum[0:0] src=sbuf[0:768] stype=bf16 n0=64 n1=8 n2=16 wait(q0>=1) @1
  vector: tensor_copy dst=sbuf[0:73728] dtype=bf16 src=psum[0:0] stype=f32 n0=16 n1=8 wait(tensor>=2) @1
  gpsimd: dma dst=scratch[0] src=sbuf[0:73728] stype=bf16 queue=4 n0=16 n1=8 wait(vector>=1) @1
  sync: wait wait(tensor>=2, q0>=1) @2
  sync: dma dst=sbuf[0:768] src=arg2[0] stype=bf16 queue=2 n0=8 n1=64 wait(q1>=1) @2
  sync: dma dst=sbuf[0:0] src=scratch[0] stype=bf16 queue=3 n0=8 n1=16 s0=1 s1=8 wait(q4>=1) @2
  tensor: ldweights src=sbuf[0:0] stype=bf16 n0=8 n1=16 wait(q3>=1) @2
  tensor: matmul dst=psum[0:0] src=sbuf[0:768] stype=bf16 n0=8 n1=64 n2=16 wait(vector>=1, q2>=1) @2
  vector: tensor_copy dst=sbuf[0:73728] dtype=bf16 src=psum[0:0] stype=f32 n0=16 n1=64 wait(tensor>=4, q4>=1) @2
  gpsimd: wait wait(vector>=2, q3>=1) @2
  gpsimd: dma dst=scratch[256] src=sbuf[0:73728] stype=bf16 queue=5 n0=16 n1=64 wait(q4>=1) @2
  sync: collective imm=0 queue=12 wait(q4>=1, q5>=1) @3
  sync: wait wait(tensor>=4, q2>=1) @4
  sync: dma dst=sbuf[0:768] src=result0[0] stype=bf16 n0=16 n1=64 wait(q3>=1, q12>=1) @4
  sync: dma dst=sbuf[0:0] src=result0[0] stype=bf16 queue=1 n0=16 n1=64 @4
  tensor: ldweights src=sbuf[0:0] stype=bf16 n0=16 n1=64 wait(q1>=2) @4
  tensor: matmul dst=psum[0:0] src=sbuf[0:768] stype=bf16 n0=16 n1=64 n2=64 wait(vector>=2, q0>=2) @4
  vector: tensor_copy dst=sbuf[0:73728] dtype=bf16 src=psum[0:0] stype=f32 n0=64 n1=64 wait(tensor>=6, q5>=1) @4
  gpsimd: dma dst=scratch[0] src=sbuf[0:73728] stype=bf16 queue=5 n0=64 n1=64 wait(vector>=3, q12>=1) @4
  sync: collective imm=1 queue=13 wait(q4>=1, q5>=2) @5
  sync: halt
