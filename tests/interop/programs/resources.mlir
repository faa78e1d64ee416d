// Arrays behind the module, and aliases of all kinds.
#shape = array<i64: 1, 2>
#direction = #stablehlo<comparison_direction LT>
!vector_of_two = tensor<2xf32>
module {
  func.func public @main(%arg0: !vector_of_two loc(#loc1)) -> !vector_of_two {
    %0 = stablehlo.constant dense_resource<weights> : tensor<2xf32> loc(#loc2)
    %1 = stablehlo.constant dense_resource<"more weights"> : tensor<9xi1>
    %2 = "stablehlo.compare"(%arg0, %0) <{comparison_direction = #direction}> : (!vector_of_two, tensor<2xf32>) -> tensor<2xi1> loc(fused<"pass">["a", #loc1])
    %3 = stablehlo.select %2, %arg0, %0 : tensor<2xi1>, tensor<2xf32> loc(callsite("g"(#loc2) at "h"))
    return %3 : tensor<2xf32>
  } loc(unknown)
}
#loc1 = loc("a.py":1:2)
#loc2 = loc("name"(#loc1))
{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000000803F00000040",
      "more weights": "0x01000000FF01"
    }
  },
  external_resources: {
    mlir_reproducer: {
      verify: true,
      count: 3,
      text: "nothing"
    }
  }
#-}
