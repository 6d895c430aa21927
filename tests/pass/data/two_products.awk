# Two products, each summed over devices; only the second is read at once, by n more.
function sum(to, from) {
    print "  %" to " = \"stablehlo.all_reduce\"(%" from ") <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({"
    print "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %s = stablehlo.add %x, %y : tensor<f32>\n    stablehlo.return %s : tensor<f32>\n  }) : (" t ") -> " t
}
function product(to, x, y) { print "  %" to " = stablehlo.dot_general %" x ", %" y ", contracting_dims = [1] x [0] : (" t ", " t ") -> " t }
BEGIN {
    t = "tensor<128x128xf32>"
    print "module attributes {mhlo.num_partitions = 2 : i32} {\nfunc.func public @main(%late: " t ", %soon: " t ", %w: " t ") -> (" t ", " t ") {"
    product("a", "w", "late"); sum("b", "a"); product("c", "w", "soon"); sum("h0", "c")
    for (i = 0; i < n; i++) {
        print "  %g" i " = stablehlo.tanh %h" i " : " t
        product("h" i + 1, "g" i, "w")
    }
    print "  return %b, %h" n " : " t ", " t "\n}\n}"
}
