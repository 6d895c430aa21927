// Control flow and small tensors inside the regions of map, reduce, reduce_window, sort, scatter and
// select_and_scatter. Lanes leave a loop at different times; lanes outside a branch must not keep its loop
// going (@guarded would never end for 0).
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
// run: otrn compile %s --disable-pass=fold -o %t/a && otrn dis %t/a > %t/s && otrn as %t/s -o %t/b && otrn dis %t/b | cmp - %t/s
// expect:
func.func private @collatz(%n: tensor<6xi32>) -> tensor<6xi32> {
  %r = "stablehlo.map"(%n) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<i32>):
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %c3 = stablehlo.constant dense<3> : tensor<i32>
    %loop:2 = stablehlo.while(%a = %x, %k = %c0) : tensor<i32>, tensor<i32>
     cond {
      %go = stablehlo.compare NE, %a, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %odd = stablehlo.and %a, %c1 : tensor<i32>
      %is = stablehlo.compare EQ, %odd, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %next = "stablehlo.if"(%is) ({
        %t = stablehlo.multiply %a, %c3 : tensor<i32>
        %u = stablehlo.add %t, %c1 : tensor<i32>
        stablehlo.return %u : tensor<i32>
      }, {
        %h = stablehlo.divide %a, %c2 : tensor<i32>
        stablehlo.return %h : tensor<i32>
      }) : (tensor<i1>) -> tensor<i32>
      %k1 = stablehlo.add %k, %c1 : tensor<i32>
      stablehlo.return %next, %k1 : tensor<i32>, tensor<i32>
    }
    stablehlo.return %loop#1 : tensor<i32>
  }) : (tensor<6xi32>) -> tensor<6xi32>
  return %r : tensor<6xi32>
}
// Steps of doubling until 64; 0 would double for ever and takes the other branch.
func.func private @guarded(%n: tensor<4xi32>) -> tensor<4xi32> {
  %r = "stablehlo.map"(%n) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<i32>):
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c64 = stablehlo.constant dense<64> : tensor<i32>
    %zero = stablehlo.compare EQ, %x, %c0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %out = "stablehlo.if"(%zero) ({
      %m = stablehlo.constant dense<-1> : tensor<i32>
      stablehlo.return %m : tensor<i32>
    }, {
      %loop:2 = stablehlo.while(%a = %x, %k = %c0) : tensor<i32>, tensor<i32>
       cond {
        %go = stablehlo.compare LT, %a, %c64 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      } do {
        %d = stablehlo.add %a, %a : tensor<i32>
        %k1 = stablehlo.add %k, %c1 : tensor<i32>
        stablehlo.return %d, %k1 : tensor<i32>, tensor<i32>
      }
      stablehlo.return %loop#1 : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>
    stablehlo.return %out : tensor<i32>
  }) : (tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
// acc' = x-th Fibonacci number + acc: carried values change places.
func.func private @fibonacci(%n: tensor<2x3xi32>) -> tensor<2xi32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.reduce(%n init: %c0) across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
   reducer(%acc: tensor<i32>, %x: tensor<i32>) {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %f:3 = stablehlo.while(%a = %z, %b = %one, %k = %x) : tensor<i32>, tensor<i32>, tensor<i32>
     cond {
      %go = stablehlo.compare GT, %k, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %s = stablehlo.add %a, %b : tensor<i32>
      %k1 = stablehlo.subtract %k, %one : tensor<i32>
      stablehlo.return %b, %s, %k1 : tensor<i32>, tensor<i32>, tensor<i32>
    }
    %sum = stablehlo.add %acc, %f#0 : tensor<i32>
    stablehlo.return %sum : tensor<i32>
  }
  return %r : tensor<2xi32>
}
// A case with its last branch for what is out of range, over windows.
func.func private @windows(%n: tensor<5xi32>) -> tensor<4xi32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %r = "stablehlo.reduce_window"(%n, %c0) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %v = "stablehlo.case"(%b) ({
      %x = stablehlo.constant dense<100> : tensor<i32>
      %s = stablehlo.add %a, %x : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }, {
      %x = stablehlo.constant dense<7> : tensor<i32>
      %s = stablehlo.add %a, %x : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }, {
      stablehlo.return %a : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
    stablehlo.return %v : tensor<i32>
  }) : (tensor<5xi32>, tensor<i32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
// Looks its key up in a captured table of three: dynamic_slice, gather, reduce, dot and sort in a comparator.
func.func private @by_table(%n: tensor<4xi32>, %table: tensor<3xi32>) -> tensor<4xi32> {
  %r = "stablehlo.sort"(%n) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %ka = stablehlo.dynamic_slice %table, %a, sizes = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<1xi32>
    %ra = stablehlo.reshape %ka : (tensor<1xi32>) -> tensor<i32>
    %ib = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
    %rb = "stablehlo.gather"(%table, %ib) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
      start_index_map = [0]>, slice_sizes = array<i64: 1>, indices_are_sorted = false}> : (tensor<3xi32>, tensor<1xi32>) -> tensor<i32>
    %less = stablehlo.compare LT, %ra, %rb : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
// median(a, b, 4) * 2 + 1 as sort, slice, pad, concatenate and dot of small tensors
func.func private @scattered(%x: tensor<4xi32>, %u: tensor<3xi32>) -> tensor<4xi32> {
  %at = stablehlo.constant dense<[[0], [2], [2]]> : tensor<3x1xi32>
  %r = "stablehlo.scatter"(%x, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %four = stablehlo.constant dense<4> : tensor<1xi32>
    %ra = stablehlo.reshape %a : (tensor<i32>) -> tensor<1xi32>
    %rb = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %all = stablehlo.concatenate %ra, %four, %rb, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %sorted = "stablehlo.sort"(%all) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb1(%p: tensor<i32>, %q: tensor<i32>):
      %lt = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    }) : (tensor<3xi32>) -> tensor<3xi32>
    %mid = stablehlo.slice %sorted [1:2] : (tensor<3xi32>) -> tensor<1xi32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %pair = stablehlo.pad %mid, %one, low = [0], high = [1], interior = [0] : (tensor<1xi32>, tensor<i32>) -> tensor<2xi32>
    %w0 = stablehlo.iota dim = 0 : tensor<2xi32>
    %w1 = stablehlo.reverse %w0, dims = [0] : tensor<2xi32>
    %ones = stablehlo.constant dense<1> : tensor<2xi32>
    %w = stablehlo.add %w1, %ones : tensor<2xi32>
    %v = stablehlo.dot_general %pair, %w, contracting_dims = [0] x [0] : (tensor<2xi32>, tensor<2xi32>) -> tensor<i32>
    stablehlo.return %v : tensor<i32>
  }) : (tensor<4xi32>, tensor<3x1xi32>, tensor<3xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
// Both regions read from outside.
func.func private @selected(%x: tensor<4xi32>, %s: tensor<2xi32>, %bias: tensor<i32>, %w: tensor<2xi32>) -> tensor<4xi32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %r = "stablehlo.select_and_scatter"(%x, %s, %c0) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %b1 = stablehlo.add %b, %bias : tensor<i32>
    %ge = stablehlo.compare GE, %a, %b1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %ge : tensor<i1>
  }, {
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %z = stablehlo.constant dense<0> : tensor<i32>
    %t = stablehlo.reduce(%w init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
    %m = stablehlo.multiply %a, %t : tensor<i32>
    %v = stablehlo.add %b, %m : tensor<i32>
    stablehlo.return %v : tensor<i32>
  }) : (tensor<4xi32>, tensor<2xi32>, tensor<i32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
func.func public @main() {
  %n = stablehlo.constant dense<[1, 2, 3, 6, 7, 27]> : tensor<6xi32>
  %a = func.call @collatz(%n) : (tensor<6xi32>) -> tensor<6xi32>
  check.expect_eq_const %a, dense<[0, 1, 7, 8, 16, 111]> : tensor<6xi32>
  %g = stablehlo.constant dense<[1, 0, 33, 64]> : tensor<4xi32>
  %b = func.call @guarded(%g) : (tensor<4xi32>) -> tensor<4xi32>
  check.expect_eq_const %b, dense<[6, -1, 1, 0]> : tensor<4xi32>
  %f = stablehlo.constant dense<[[1, 2, 10], [0, 5, 6]]> : tensor<2x3xi32>
  %c = func.call @fibonacci(%f) : (tensor<2x3xi32>) -> tensor<2xi32>
  check.expect_eq_const %c, dense<[57, 13]> : tensor<2xi32>
  %w = stablehlo.constant dense<[0, 1, 5, -3, 0]> : tensor<5xi32>
  %d = func.call @windows(%w) : (tensor<5xi32>) -> tensor<4xi32>
  check.expect_eq_const %d, dense<[107, 7, 0, 100]> : tensor<4xi32>
  %k = stablehlo.constant dense<[0, 1, 2, 1]> : tensor<4xi32>
  %t = stablehlo.constant dense<[5, 9, 1]> : tensor<3xi32>
  %e = func.call @by_table(%k, %t) : (tensor<4xi32>, tensor<3xi32>) -> tensor<4xi32>
  check.expect_eq_const %e, dense<[2, 0, 1, 1]> : tensor<4xi32>
  %x = stablehlo.constant dense<[1, 2, 3, 9]> : tensor<4xi32>
  %u = stablehlo.constant dense<[8, 3, 5]> : tensor<3xi32>
  %h = func.call @scattered(%x, %u) : (tensor<4xi32>, tensor<3xi32>) -> tensor<4xi32>
  check.expect_eq_const %h, dense<[9, 2, 11, 9]> : tensor<4xi32>
  %bias = stablehlo.constant dense<5> : tensor<i32>
  %ww = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
  %ss = stablehlo.constant dense<[1, 10]> : tensor<2xi32>
  %i = func.call @selected(%x, %ss, %bias, %ww) : (tensor<4xi32>, tensor<2xi32>, tensor<i32>, tensor<2xi32>) -> tensor<4xi32>
  check.expect_eq_const %i, dense<[0, 5, 0, 50]> : tensor<4xi32>
  return
}
