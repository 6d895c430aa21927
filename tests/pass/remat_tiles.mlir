// Masked scores of one tile each, of which several share one: an instruction over them is long enough not to wait for the one before, so the
// exponentials cost less to make again than to store and read.
// run: otrn compile %s --target=trn2 --lnc=1 --dump=remat | grep -c 'dynamic_update_slice.*4x64x128x128xf32'; echo end
// expect: 0
// expect: end
func.func public @main(%x0: tensor<64x128x64xbf16>, %kept: tensor<128xi1>) -> (tensor<64x128x128xf32>, tensor<64x128x64xbf16>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %ea = stablehlo.constant dense<0.0> : tensor<4x64x128x64xbf16>
  %eb = stablehlo.constant dense<0.0> : tensor<4x64x128x128xf32>
  %ec = stablehlo.constant dense<0.0> : tensor<4x64x128x128xbf16>
  %f:5 = stablehlo.while(%i = %zero, %x = %x0, %a = %ea, %b = %eb, %c = %ec) : tensor<i32>, tensor<64x128x64xbf16>, tensor<4x64x128x64xbf16>, tensor<4x64x128x128xf32>, tensor<4x64x128x128xbf16>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %s = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<64x128x64xbf16>, tensor<64x128x64xbf16>) -> tensor<64x128x128xbf16>
    %sf = stablehlo.convert %s : (tensor<64x128x128xbf16>) -> tensor<64x128x128xf32>
    %eight = stablehlo.constant dense<8.0> : tensor<64x128x128xf32>
    %sd = stablehlo.divide %sf, %eight : tensor<64x128x128xf32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<64x128x128xf32>
    %keep = stablehlo.broadcast_in_dim %kept, dims = [2] : (tensor<128xi1>) -> tensor<64x128x128xi1>
    %sm = stablehlo.select %keep, %sd, %low : tensor<64x128x128xi1>, tensor<64x128x128xf32>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %max = stablehlo.reduce(%sm init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<64x128x128xf32>, tensor<f32>) -> tensor<64x128xf32>
    %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<64x128xf32>) -> tensor<64x128x128xf32>
    %d = stablehlo.subtract %sm, %maxes : tensor<64x128x128xf32>
    %e = stablehlo.exponential %d : tensor<64x128x128xf32>
    %w = stablehlo.convert %e : (tensor<64x128x128xf32>) -> tensor<64x128x128xbf16>
    %next = stablehlo.dot_general %w, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<64x128x128xbf16>, tensor<64x128x64xbf16>) -> tensor<64x128x64xbf16>
    %x1 = stablehlo.reshape %x : (tensor<64x128x64xbf16>) -> tensor<1x64x128x64xbf16>
    %e1 = stablehlo.reshape %e : (tensor<64x128x128xf32>) -> tensor<1x64x128x128xf32>
    %w1 = stablehlo.reshape %w : (tensor<64x128x128xbf16>) -> tensor<1x64x128x128xbf16>
    %a1 = stablehlo.dynamic_update_slice %a, %x1, %i, %z, %z, %z : (tensor<4x64x128x64xbf16>, tensor<1x64x128x64xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128x64xbf16>
    %b1 = stablehlo.dynamic_update_slice %b, %e1, %i, %z, %z, %z : (tensor<4x64x128x128xf32>, tensor<1x64x128x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128x128xf32>
    %c1 = stablehlo.dynamic_update_slice %c, %w1, %i, %z, %z, %z : (tensor<4x64x128x128xbf16>, tensor<1x64x128x128xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128x128xbf16>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %a1, %b1, %c1 : tensor<i32>, tensor<64x128x64xbf16>, tensor<4x64x128x64xbf16>, tensor<4x64x128x128xf32>, tensor<4x64x128x128xbf16>
  }
  %s0 = stablehlo.constant dense<0.0> : tensor<64x128x128xf32>
  %t0 = stablehlo.constant dense<1.0> : tensor<64x128x64xbf16>
  %g:6 = stablehlo.while(%i = %zero, %s = %s0, %t = %t0, %a = %f#2, %b = %f#3, %c = %f#4) : tensor<i32>, tensor<64x128x128xf32>, tensor<64x128x64xbf16>, tensor<4x64x128x64xbf16>, tensor<4x64x128x128xf32>, tensor<4x64x128x128xbf16>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %back = stablehlo.subtract %three, %i : tensor<i32>
    %ai = stablehlo.dynamic_slice %a, %back, %z, %z, %z, sizes = [1, 64, 128, 64] : (tensor<4x64x128x64xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x128x64xbf16>
    %bi = stablehlo.dynamic_slice %b, %back, %z, %z, %z, sizes = [1, 64, 128, 128] : (tensor<4x64x128x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x128x128xf32>
    %ci = stablehlo.dynamic_slice %c, %back, %z, %z, %z, sizes = [1, 64, 128, 128] : (tensor<4x64x128x128xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x128x128xbf16>
    %ar = stablehlo.reshape %ai : (tensor<1x64x128x64xbf16>) -> tensor<64x128x64xbf16>
    %br = stablehlo.reshape %bi : (tensor<1x64x128x128xf32>) -> tensor<64x128x128xf32>
    %cr = stablehlo.reshape %ci : (tensor<1x64x128x128xbf16>) -> tensor<64x128x128xbf16>
    %t1 = stablehlo.dot_general %cr, %t, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<64x128x128xbf16>, tensor<64x128x64xbf16>) -> tensor<64x128x64xbf16>
    %t2 = stablehlo.add %t1, %ar : tensor<64x128x64xbf16>
    %s1 = stablehlo.subtract %br, %s : tensor<64x128x128xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %s1, %t2, %a, %b, %c : tensor<i32>, tensor<64x128x128xf32>, tensor<64x128x64xbf16>, tensor<4x64x128x64xbf16>, tensor<4x64x128x128xf32>, tensor<4x64x128x128xbf16>
  }
  return %g#1, %g#2 : tensor<64x128x128xf32>, tensor<64x128x64xbf16>
}
