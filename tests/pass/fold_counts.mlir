// Transformers looks for packed sequences in positions: where each follows the one before there are none, and no key is masked for it. Small tables that count
// are counts too; what is gathered from one number is that number. Positions that begin again in the middle are compared by the program.
// run: otrn compile %s --dump=dce -o %t/out.otrn
// expect: dense<0> : tensor<8x512xi64>
// expect: stablehlo.compare
// expect: return
// expect-not: stablehlo.gather
// expect-not: comparison_direction NE
func.func public @main() -> (tensor<8x512xi64>, tensor<32xi1>) {
  %table = stablehlo.constant dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>
  %iota = stablehlo.iota dim = 1 : tensor<1x504xi64>
  %eight = stablehlo.constant dense<8> : tensor<1x504xi64>
  %rest = stablehlo.add %iota, %eight : tensor<1x504xi64>
  %row = stablehlo.concatenate %table, %rest, dim = 1 : (tensor<1x8xi64>, tensor<1x504xi64>) -> tensor<1x512xi64>
  %at = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x512xi64>) -> tensor<8x512xi64>
  %first = stablehlo.slice %at [0:8, 0:1] : (tensor<8x512xi64>) -> tensor<8x1xi64>
  %one = stablehlo.constant dense<1> : tensor<8x1xi64>
  %before = stablehlo.subtract %first, %one : tensor<8x1xi64>
  %long = stablehlo.concatenate %before, %at, dim = 1 : (tensor<8x1xi64>, tensor<8x512xi64>) -> tensor<8x513xi64>
  %a = stablehlo.slice %long [0:8, 0:512] : (tensor<8x513xi64>) -> tensor<8x512xi64>
  %b = stablehlo.slice %long [0:8, 1:513] : (tensor<8x513xi64>) -> tensor<8x512xi64>
  %step = stablehlo.subtract %b, %a : tensor<8x512xi64>
  %ones = stablehlo.constant dense<1> : tensor<8x512xi64>
  %begins = stablehlo.compare NE, %step, %ones, SIGNED : (tensor<8x512xi64>, tensor<8x512xi64>) -> tensor<8x512xi1>
  %n = stablehlo.convert %begins : (tensor<8x512xi1>) -> tensor<8x512xi64>
  %some = stablehlo.slice %n [0:8, 0:511] : (tensor<8x512xi64>) -> tensor<8x511xi64>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %moved = stablehlo.pad %some, %zero, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<8x511xi64>, tensor<i64>) -> tensor<8x512xi64>
  %sum = stablehlo.add %n, %moved : tensor<8x512xi64>
  %ids = stablehlo.reshape %at : (tensor<8x512xi64>) -> tensor<8x512x1xi64>
  %part = stablehlo.slice %sum [0:1, 0:512] : (tensor<8x512xi64>) -> tensor<1x512xi64>
  %flat = stablehlo.reshape %part : (tensor<1x512xi64>) -> tensor<512xi64>
  %got = "stablehlo.gather"(%flat, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1>}> : (tensor<512xi64>, tensor<8x512x1xi64>) -> tensor<8x512xi64>
  %again = stablehlo.iota dim = 0 : tensor<2048xi64>
  %short = stablehlo.slice %again [0:16] : (tensor<2048xi64>) -> tensor<16xi64>
  %twice = stablehlo.concatenate %short, %short, dim = 0 : (tensor<16xi64>, tensor<16xi64>) -> tensor<32xi64>
  %in = stablehlo.slice %again [8:40] : (tensor<2048xi64>) -> tensor<32xi64>
  %differ = stablehlo.compare LT, %twice, %in, SIGNED : (tensor<32xi64>, tensor<32xi64>) -> tensor<32xi1>
  return %got, %differ : tensor<8x512xi64>, tensor<32xi1>
}
