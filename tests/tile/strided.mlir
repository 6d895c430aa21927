// Slices that row programs read where they lie: columns of a joined tensor, in a program of elements and in one of rows, every other row, one run,
// and columns of a piece that a loop takes out. What is sliced is not written over while somebody still reads a part of it. Slices that somebody
// else reads, that are conversions' by transfers, or whose rows would leave partitions idle, are made.
// Every number tells its place: row * 768 + column.
// run: otrn eval %s
// run: otrn run %s --cache=off --check
// run: otrn run %s --cache=off --check --lnc=2
// run: otrn run %s --cache=off --target=trn1 --threads=1 --host=portable
// run: otrn run %s --cache=off --target=trn3 --plan=off
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=nest | grep -c 'move slice'
// expect: 5
func.func @main() {
  %i = stablehlo.iota dim = 0 : tensor<393216xf32>
  %i1 = stablehlo.optimization_barrier %i : tensor<393216xf32>
  %x = stablehlo.reshape %i1 : (tensor<393216xf32>) -> tensor<512x768xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>

  // three gates
  %a = stablehlo.slice %x [0:512, 0:256] : (tensor<512x768xf32>) -> tensor<512x256xf32>
  %b = stablehlo.slice %x [0:512, 256:512] : (tensor<512x768xf32>) -> tensor<512x256xf32>
  %c = stablehlo.slice %x [0:512, 512:768] : (tensor<512x768xf32>) -> tensor<512x256xf32>
  %ba = stablehlo.subtract %b, %a : tensor<512x256xf32>
  %bac = stablehlo.add %ba, %c : tensor<512x256xf32>
  %gr = stablehlo.iota dim = 0 : tensor<512x256xf32>
  %gc = stablehlo.iota dim = 1 : tensor<512x256xf32>
  %gp = stablehlo.constant dense<768.0> : tensor<512x256xf32>
  %gm = stablehlo.multiply %gr, %gp : tensor<512x256xf32>
  %gs = stablehlo.add %gm, %gc : tensor<512x256xf32>
  %ga = stablehlo.constant dense<768.0> : tensor<512x256xf32>
  %g = stablehlo.add %gs, %ga : tensor<512x256xf32>
  check.expect_eq %bac, %g : tensor<512x256xf32>

  // rows of 192, less the largest of each
  %d = stablehlo.slice %x [0:512, 128:320] : (tensor<512x768xf32>) -> tensor<512x192xf32>
  %most = stablehlo.reduce(%d init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<512x192xf32>, tensor<f32>) -> tensor<512xf32>
  %mosts = stablehlo.broadcast_in_dim %most, dims = [0] : (tensor<512xf32>) -> tensor<512x192xf32>
  %less = stablehlo.subtract %d, %mosts : tensor<512x192xf32>
  %lr = stablehlo.iota dim = 0 : tensor<512x192xf32>
  %lc = stablehlo.iota dim = 1 : tensor<512x192xf32>
  %lp = stablehlo.constant dense<0.0> : tensor<512x192xf32>
  %lm = stablehlo.multiply %lr, %lp : tensor<512x192xf32>
  %ls = stablehlo.add %lm, %lc : tensor<512x192xf32>
  %la = stablehlo.constant dense<-191.0> : tensor<512x192xf32>
  %l = stablehlo.add %ls, %la : tensor<512x192xf32>
  check.expect_eq %less, %l : tensor<512x192xf32>

  // every other row, and one run
  %e = stablehlo.slice %x [0:512:2, 0:768] : (tensor<512x768xf32>) -> tensor<256x768xf32>
  %f = stablehlo.slice %x [128:384, 0:768] : (tensor<512x768xf32>) -> tensor<256x768xf32>
  %fe = stablehlo.subtract %f, %e : tensor<256x768xf32>
  %fee = stablehlo.add %fe, %e : tensor<256x768xf32>
  %or = stablehlo.iota dim = 0 : tensor<256x768xf32>
  %oc = stablehlo.iota dim = 1 : tensor<256x768xf32>
  %op = stablehlo.constant dense<768.0> : tensor<256x768xf32>
  %om = stablehlo.multiply %or, %op : tensor<256x768xf32>
  %os = stablehlo.add %om, %oc : tensor<256x768xf32>
  %oa = stablehlo.constant dense<98304.0> : tensor<256x768xf32>
  %o = stablehlo.add %os, %oa : tensor<256x768xf32>
  check.expect_eq %fee, %o : tensor<256x768xf32>

  // y could lie where h is still to be read
  %one = stablehlo.constant dense<1.0> : tensor<512x768xf32>
  %half = stablehlo.constant dense<0.5> : tensor<512x512xf32>
  %x2 = stablehlo.add %x, %one : tensor<512x768xf32>
  %x3 = stablehlo.optimization_barrier %x2 : tensor<512x768xf32>
  %h = stablehlo.slice %x3 [0:512, 32:544] : (tensor<512x768xf32>) -> tensor<512x512xf32>
  %y = stablehlo.add %x3, %one : tensor<512x768xf32>
  %y1 = stablehlo.optimization_barrier %y : tensor<512x768xf32>
  %yh = stablehlo.slice %y1 [0:512, 32:544] : (tensor<512x768xf32>) -> tensor<512x512xf32>
  %hh = stablehlo.subtract %yh, %h : tensor<512x512xf32>
  %hhh = stablehlo.add %hh, %h : tensor<512x512xf32>
  %qr = stablehlo.iota dim = 0 : tensor<512x512xf32>
  %qc = stablehlo.iota dim = 1 : tensor<512x512xf32>
  %qp = stablehlo.constant dense<768.0> : tensor<512x512xf32>
  %qm = stablehlo.multiply %qr, %qp : tensor<512x512xf32>
  %qs = stablehlo.add %qm, %qc : tensor<512x512xf32>
  %qa = stablehlo.constant dense<34.0> : tensor<512x512xf32>
  %q = stablehlo.add %qs, %qa : tensor<512x512xf32>
  check.expect_eq %hhh, %q : tensor<512x512xf32>

  // columns of a piece of a stack, added up
  %stack = stablehlo.reshape %i1 : (tensor<393216xf32>) -> tensor<2x256x768xf32>
  %t0 = stablehlo.constant dense<0> : tensor<i32>
  %sum0 = stablehlo.constant dense<0.0> : tensor<256x384xf32>
  %t, %sum = stablehlo.while(%t1 = %t0, %sum1 = %sum0) : tensor<i32>, tensor<256x384xf32>
  cond {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %on = stablehlo.compare LT, %t1, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %on : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %next = stablehlo.constant dense<1> : tensor<i32>
    %p0 = stablehlo.dynamic_slice %stack, %t1, %zero, %zero, sizes = [1, 256, 768] : (tensor<2x256x768xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x256x768xf32>
    %p = stablehlo.reshape %p0 : (tensor<1x256x768xf32>) -> tensor<256x768xf32>
    %left = stablehlo.slice %p [0:256, 0:384] : (tensor<256x768xf32>) -> tensor<256x384xf32>
    %right = stablehlo.slice %p [0:256, 384:768] : (tensor<256x768xf32>) -> tensor<256x384xf32>
    %both = stablehlo.subtract %right, %left : tensor<256x384xf32>
    %more = stablehlo.add %both, %left : tensor<256x384xf32>
    %sum2 = stablehlo.subtract %more, %sum1 : tensor<256x384xf32>
    %t2 = stablehlo.add %t1, %next : tensor<i32>
    stablehlo.return %t2, %sum2 : tensor<i32>, tensor<256x384xf32>
  }
  %rows = stablehlo.constant dense<196608.0> : tensor<256x384xf32>
  check.expect_eq %sum, %rows : tensor<256x384xf32>

  // made: a conversion, 64 rows, one that a transpose reads too
  %v = stablehlo.slice %x [0:512, 5:261] : (tensor<512x768xf32>) -> tensor<512x256xf32>
  %vn = stablehlo.convert %v : (tensor<512x256xf32>) -> tensor<512x256xbf16>
  %v1 = stablehlo.slice %x2 [0:512, 4:260] : (tensor<512x768xf32>) -> tensor<512x256xf32>
  %vw = stablehlo.convert %v1 : (tensor<512x256xf32>) -> tensor<512x256xbf16>
  check.expect_eq %vn, %vw : tensor<512x256xbf16>
  %few = stablehlo.slice %x [0:64, 0:256] : (tensor<512x768xf32>) -> tensor<64x256xf32>
  %few1 = stablehlo.slice %x [0:64, 1:257] : (tensor<512x768xf32>) -> tensor<64x256xf32>
  %few2 = stablehlo.subtract %few1, %few : tensor<64x256xf32>
  %ones = stablehlo.constant dense<1.0> : tensor<64x256xf32>
  check.expect_eq %few2, %ones : tensor<64x256xf32>
  %w = stablehlo.slice %x [0:512, 64:320] : (tensor<512x768xf32>) -> tensor<512x256xf32>
  %w1 = stablehlo.negate %w : tensor<512x256xf32>
  %wt = stablehlo.transpose %w, dims = [1, 0] : (tensor<512x256xf32>) -> tensor<256x512xf32>
  %wt1 = stablehlo.transpose %w1, dims = [1, 0] : (tensor<512x256xf32>) -> tensor<256x512xf32>
  %wt2 = stablehlo.negate %wt1 : tensor<256x512xf32>
  check.expect_eq %wt, %wt2 : tensor<256x512xf32>
  func.return
}
