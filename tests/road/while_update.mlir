// A scan: the body reads a slice of one carried tensor and writes a slice of another in place, while the
// whole old value is read as well in the second loop.
// run: otrn eval %s
// run: otrn run %s
// run: otrn prof %s --target=trn1
// expect: trn1
func.func public @main() {
  %x = stablehlo.iota dim = 0 : tensor<6x100xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %acc0 = stablehlo.constant dense<0.0> : tensor<6x100xf32>
  %sum0 = stablehlo.constant dense<0.0> : tensor<1x100xf32>
  %r:4 = stablehlo.while(%i = %zero, %xs = %x, %acc = %acc0, %sum = %sum0) : tensor<i32>, tensor<6x100xf32>, tensor<6x100xf32>, tensor<1x100xf32>
   cond {
    %n = stablehlo.constant dense<6> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %row = stablehlo.dynamic_slice %xs, %i, %z, sizes = [1, 100] : (tensor<6x100xf32>, tensor<i32>, tensor<i32>) -> tensor<1x100xf32>
    %s = stablehlo.add %sum, %row : tensor<1x100xf32>
    %new = stablehlo.dynamic_update_slice %acc, %s, %i, %z : (tensor<6x100xf32>, tensor<1x100xf32>, tensor<i32>, tensor<i32>) -> tensor<6x100xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %xs, %new, %s : tensor<i32>, tensor<6x100xf32>, tensor<6x100xf32>, tensor<1x100xf32>
  }
  %want = stablehlo.constant dense<[0.0, 1.0, 3.0, 6.0, 10.0, 15.0]> : tensor<6xf32>
  %wide = stablehlo.broadcast_in_dim %want, dims = [0] : (tensor<6xf32>) -> tensor<6x100xf32>
  stablehlo.custom_call @check.expect_eq(%r#2, %wide) {has_side_effect = true} : (tensor<6x100xf32>, tensor<6x100xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%r#1, %x) {has_side_effect = true} : (tensor<6x100xf32>, tensor<6x100xf32>) -> ()
  // the old value is read after the update: the update may not happen in place
  %q:2 = stablehlo.while(%i = %zero, %acc = %acc0) : tensor<i32>, tensor<6x100xf32>
   cond {
    %n = stablehlo.constant dense<6> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %ones = stablehlo.constant dense<1.0> : tensor<1x100xf32>
    %new = stablehlo.dynamic_update_slice %acc, %ones, %i, %z : (tensor<6x100xf32>, tensor<1x100xf32>, tensor<i32>, tensor<i32>) -> tensor<6x100xf32>
    %both = stablehlo.add %new, %acc : tensor<6x100xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %both : tensor<i32>, tensor<6x100xf32>
  }
  %want2 = stablehlo.constant dense<[32.0, 16.0, 8.0, 4.0, 2.0, 1.0]> : tensor<6xf32>
  %wide2 = stablehlo.broadcast_in_dim %want2, dims = [0] : (tensor<6xf32>) -> tensor<6x100xf32>
  stablehlo.custom_call @check.expect_eq(%q#1, %wide2) {has_side_effect = true} : (tensor<6x100xf32>, tensor<6x100xf32>) -> ()
  return
}
