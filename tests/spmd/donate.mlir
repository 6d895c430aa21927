// The front end gives arguments away without a word about results: these take them over by what each device has. `b` is whole on the
// way in and cut on the way out, `d` has other dimensions than its result: as many bytes are enough.
// run: otrn compile %s -o %t/out.otrn
// run: otrn dis %t/out.otrn
// expect: .arg f32[4,8] "a" donated
// expect: .arg f32[8,8] "b" donated
// expect: .arg f32[4,8] "c" donated
// expect: .arg i32[4] "d" donated
// expect: .result f32[4,8] "c2" alias=2
// expect: .result f32[4,8] "b2" alias=0
// expect: .result f32[2,2] "d2" alias=3
// expect: .result f32[4,8] "rest" sharding
// run: otrn dis %t/out.otrn | grep -c alias=
// expect: 3
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<8x8xf32> {jax.arg_info = "a", jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                         %b: tensor<8x8xf32> {jax.arg_info = "b", jax.buffer_donor = true},
                         %c: tensor<8x8xf32> {jax.arg_info = "c", jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                         %d: tensor<8xi32> {jax.arg_info = "d", jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<8x8xf32> {jax.result_info = "c2", sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
          tensor<8x8xf32> {jax.result_info = "b2", sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
          tensor<4x2xf32> {jax.result_info = "d2", sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
          tensor<8x8xf32> {jax.result_info = "rest", sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.negate %c : tensor<8x8xf32>
    %1 = stablehlo.add %b, %a : tensor<8x8xf32>
    %2 = stablehlo.convert %d : (tensor<8xi32>) -> tensor<8xf32>
    %3 = stablehlo.reshape %2 : (tensor<8xf32>) -> tensor<4x2xf32>
    %4 = stablehlo.multiply %b, %b : tensor<8x8xf32>
    return %0, %1, %3, %4 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<4x2xf32>, tensor<8x8xf32>
  }
}
