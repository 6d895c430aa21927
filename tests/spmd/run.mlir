// A program over four devices is run by all of them: files hold whole arrays, by order or by name, and results are put together. `w` lies
// across the mesh's second axis and is kept by each pair, `b` is whole on every device and changed in place on each, the last result lies as terms of
// a sum that nobody made and has the devices as its first dimension.
// run: echo 'func.func @main() -> (tensor<4x6xf32>, tensor<6x4xf32>, tensor<4xf32>) { %%0 = stablehlo.iota dim = 1 : tensor<4x6xf32> %%1 = stablehlo.iota dim = 0 : tensor<6x4xf32> %%2 = stablehlo.iota dim = 0 : tensor<4xf32> return %%0, %%1, %%2 : tensor<4x6xf32>, tensor<6x4xf32>, tensor<4xf32> }' >%t/gen.mlir
// run: otrn eval %t/gen.mlir --output=%t/in >%t/log
// run: otrn run %s --input=%t/in/result_0.npy,%t/in/result_1.npy,%t/in/result_2.npy --output=%t/a
// expect: result 0: tensor<4x4xf32>: 55 56 57 58 55 56 57 58
// expect: result 1: tensor<4xf32>: 1 2 3 4
// expect: result 2: tensor<4x2x4xf32>: 5 5 5 5 5 5 5 5
// run: otrn eval %s --input=%t/in/result_0.npy,%t/in/result_1.npy,%t/in/result_2.npy
// expect: result 0: tensor<4x4xf32>: 55 56 57 58 55 56 57 58
// expect: result 1: tensor<4xf32>: 1 2 3 4
// run: otrn compile %s -o %t/out.otrn && otrn run %t/out.otrn --input "p['b']=%t/in/result_2.npy" --input %t/in/result_0.npy --input w=%t/in/result_1.npy --output=%t/b
// run: for i in 0 1 2; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done; otrn check %t/out.otrn
// expect: semaphores order all engines
// run: cp %t/in/result_2.npy %t/k=1.npy && otrn eval %s --input=x=%t/in/result_0.npy,%t/in/result_1.npy,%t/k=1.npy
// expect: result 1: tensor<4xf32>: 1 2 3 4
// run: otrn run %s; otrn run %s --input=w=%t/in/result_1.npy; otrn run %s --input=v=%t/in/result_1.npy; otrn run %s --input=w=%t/in/result_1.npy,w=%t/in/result_1.npy; otrn run %s --input=w=%t/in/result_0.npy,x=%t/in/result_0.npy,%t/in/result_2.npy; otrn run %s --input=w=%t/in/result_1.npy,%t/in/result_0.npy,%t/in/result_2.npy,%t/in/result_2.npy
// expect: run.mlir: error[ARGUMENT]: the program takes 3 arguments, 0 given
// expect: hint: give one --input=FILE.npy each for: x tensor<4x6xf32>, w tensor<6x4xf32>, p['b'] tensor<4xf32>
// expect: run.mlir: error[ARGUMENT]: argument 0 (x), tensor<4x6xf32>, has no --input file
// expect: run.mlir: error[ARGUMENT]: no argument is called 'v'
// expect: result_1.npy: error[ARGUMENT]: two files for the argument 'w'
// expect: result_0.npy: error[ARGUMENT]: argument 1 (w) is tensor<6x4xf32>, the file holds tensor<4x6xf32>: wrong shape
// expect: result_2.npy: error[ARGUMENT]: no argument is left for this file
// status: 1
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%x: tensor<4x6xf32> {jax.arg_info = "x", sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                         %w: tensor<6x4xf32> {jax.arg_info = "w", sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>},
                         %b: tensor<4xf32> {jax.arg_info = "p['b']", jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{}]>})
      -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>},
          tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
          tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}], unreduced={"b"}>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.add %0, %1 : tensor<4x4xf32>
    %one = stablehlo.constant dense<1.0> : tensor<4xf32>
    %3 = stablehlo.add %b, %one : tensor<4xf32>
    return %2, %3, %0 : tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>
  }
}
