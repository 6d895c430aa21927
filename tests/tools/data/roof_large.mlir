module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["dp"=8]>
  func.func public @main(%x: tensor<8192x16384xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>}, %w: tensor<16384x2490368xbf16>)
      -> (tensor<8192x16384xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>}) {
    %s = stablehlo.slice %w [0:16384, 0:16384] : (tensor<16384x2490368xbf16>) -> tensor<16384x16384xbf16>
    %y = stablehlo.dot_general %x, %s, contracting_dims = [1] x [0] : (tensor<8192x16384xbf16>, tensor<16384x16384xbf16>) -> tensor<8192x16384xbf16>
    return %y : tensor<8192x16384xbf16>
  }
}
