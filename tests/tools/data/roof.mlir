module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["dp"=8]>
  func.func public @main(%x: tensor<8192x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>}, %w: tensor<4096x4096xbf16>)
      -> (tensor<8192x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>}, tensor<4096x4096xbf16>) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16>
    %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<8192x4096xbf16>, tensor<8192x4096xbf16>) -> tensor<4096x4096xbf16>
    return %y, %g : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>
  }
}
