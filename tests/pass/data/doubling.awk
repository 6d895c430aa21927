# n functions, each calls the next twice; the last adds one.
BEGIN {
    t = "tensor<f32>"; c = " : (" t ") -> " t
    print "func.func @main() -> " t " {\n  %a = stablehlo.constant dense<0.0> : " t
    print "  %0 = func.call @f1(%a)" c "\n  return %0 : " t "\n}"
    for (i = 1; i < n; i++)
        print "func.func private @f" i "(%a: " t ") -> " t " {\n  %0 = func.call @f" i + 1 "(%a)" c \
              "\n  %1 = func.call @f" i + 1 "(%0)" c "\n  return %1 : " t "\n}"
    print "func.func private @f" n "(%a: " t ") -> " t " {\n  %k = stablehlo.constant dense<1.0> : " t \
          "\n  %0 = stablehlo.add %a, %k : " t "\n  return %0 : " t "\n}"
}
