// Gradients that a loop adds up: each sum, which takes the place of what it alone reads, is the epilogue of its product, wherever the body had it.
// run: otrn compile %s --dump=epilogue -o %t/out.otrn | grep -A1 'dot_general'
// expect: dot_general
// expect: otrn.rows
// expect: --
// expect: dot_general
// expect: otrn.rows
module {
  func.func public @main(%a: tensor<512x512xbf16>, %b: tensor<512x512xbf16>) -> (tensor<512x512xf32>, tensor<512x512xf32>) {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %z = stablehlo.constant dense<0.0> : tensor<512x512xf32>
    %w:4 = stablehlo.while(%i = %zero, %x = %a, %g = %z, %h = %z) : tensor<i32>, tensor<512x512xbf16>, tensor<512x512xf32>, tensor<512x512xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %pn = stablehlo.dot_general %x, %b, contracting_dims = [0] x [0] : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
      %p = stablehlo.convert %pn : (tensor<512x512xbf16>) -> tensor<512x512xf32>
      %qn = stablehlo.dot_general %b, %x, contracting_dims = [0] x [1] : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
      %q = stablehlo.convert %qn : (tensor<512x512xbf16>) -> tensor<512x512xf32>
      %y0 = stablehlo.reverse %x, dims = [0] : tensor<512x512xbf16>
      %y1 = stablehlo.reverse %y0, dims = [1] : tensor<512x512xbf16>
      %y2 = stablehlo.reverse %y1, dims = [0] : tensor<512x512xbf16>
      %y3 = stablehlo.reverse %y2, dims = [1] : tensor<512x512xbf16>
      %y4 = stablehlo.reverse %y3, dims = [0] : tensor<512x512xbf16>
      %y5 = stablehlo.reverse %y4, dims = [1] : tensor<512x512xbf16>
      %y6 = stablehlo.reverse %y5, dims = [0] : tensor<512x512xbf16>
      %y7 = stablehlo.reverse %y6, dims = [1] : tensor<512x512xbf16>
      %y8 = stablehlo.reverse %y7, dims = [0] : tensor<512x512xbf16>
      %y9 = stablehlo.reverse %y8, dims = [1] : tensor<512x512xbf16>
      %y10 = stablehlo.reverse %y9, dims = [0] : tensor<512x512xbf16>
      %y11 = stablehlo.reverse %y10, dims = [1] : tensor<512x512xbf16>
      %y12 = stablehlo.reverse %y11, dims = [0] : tensor<512x512xbf16>
      %y13 = stablehlo.reverse %y12, dims = [1] : tensor<512x512xbf16>
      %y14 = stablehlo.reverse %y13, dims = [0] : tensor<512x512xbf16>
      %y15 = stablehlo.reverse %y14, dims = [1] : tensor<512x512xbf16>
      %y16 = stablehlo.reverse %y15, dims = [0] : tensor<512x512xbf16>
      %y17 = stablehlo.reverse %y16, dims = [1] : tensor<512x512xbf16>
      %y18 = stablehlo.reverse %y17, dims = [0] : tensor<512x512xbf16>
      %y19 = stablehlo.reverse %y18, dims = [1] : tensor<512x512xbf16>
      %gn = stablehlo.add %g, %p : tensor<512x512xf32>
      %hn = stablehlo.add %h, %q : tensor<512x512xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %y19, %gn, %hn : tensor<i32>, tensor<512x512xbf16>, tensor<512x512xf32>, tensor<512x512xf32>
    }
    return %w#2, %w#3 : tensor<512x512xf32>, tensor<512x512xf32>
  }
}
