// A program of 98,304 devices: groups and shardings are counts and strides, in the artifact and as text, and they come back.
// run: otrn compile %s -o %t/a.otrn --cache=off; test $(wc -c <%t/a.otrn) -lt 30000 && echo small; otrn dis %t/a.otrn >%t/a.s; grep -o 'sharding=.*' %t/a.s; grep -o 'replica_groups = [^]]*]' %t/a.s
// run: otrn as %t/a.s -o %t/b.otrn && otrn dis %t/b.otrn >%t/b.s; grep -v '^; ' %t/a.s >%t/a; grep -v '^; ' %t/b.s >%t/b; cmp %t/a %t/b && echo the same
// run: otrn prof %t/a.otrn --instance=trn2.48xlarge --json 2>/dev/null | grep -o '"ranks": 12288, "groups": 8, "stride": 8, "algorithm": "hierarchical ring", "reach": "network"'
// run: otrn run %t/a.otrn; echo status $?
// run: sed 's/"12288,1|0;98304x1"/"12288,1|0;49152x2"/' %t/a.s >%t/c.s; otrn as %t/c.s -o %t/c.otrn; sed 's/x12288\[0; 8 x 1, 12288 x 8\]/x12288[0; 8 x 1, 99999999 x 8]/' %t/a.s >%t/d.s; otrn as %t/d.s -o %t/d.otrn; true
// expect: small
// expect: sharding="12288,1|0;98304x1"
// expect: sharding="1,8|0;8x1,12288x8"
// expect: replica_groups = x8[0; 98304 x 1]
// expect: replica_groups = x12288[0; 8 x 1, 12288 x 8]
// expect: the same
// expect: "reach": "network"
// expect: a run can have 1024
// expect: argument 0: its sharding does not fit 98304 devices
// expect: no devices have groups of 799999992
module attributes {mhlo.num_partitions = 98304 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=12288, "model"=8]>
  func.func public @main(%x: tensor<196608x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                         %a: tensor<64x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
                         %b: tensor<64x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
      -> (tensor<196608x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, tensor<64x64xbf16>) {
    %h = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<196608x64xbf16>, tensor<64x64xbf16>) -> tensor<196608x64xbf16>
    %y = stablehlo.dot_general %h, %b, contracting_dims = [1] x [0] : (tensor<196608x64xbf16>, tensor<64x64xbf16>) -> tensor<196608x64xbf16>
    %g = stablehlo.dot_general %y, %y, contracting_dims = [0] x [0] : (tensor<196608x64xbf16>, tensor<196608x64xbf16>) -> tensor<64x64xbf16>
    return %y, %g : tensor<196608x64xbf16>, tensor<64x64xbf16>
  }
}
