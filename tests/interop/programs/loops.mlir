module @loops {
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<2x1xi32>) -> (tensor<4x3xf32>, tensor<4xi32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %mask = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %0:2 = stablehlo.while(%i = %zero, %x = %arg0) : tensor<i32>, tensor<4x3xf32>
    cond {
      %1 = stablehlo.compare LT, %i, %ten, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %i, %one : tensor<i32>
      %2 = stablehlo.exponential %x : tensor<4x3xf32>
      %3 = "stablehlo.gather"(%2, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
      %4 = "stablehlo.scatter"(%2, %arg1, %3) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      %5 = stablehlo.dot_general %4, %4, contracting_dims = [0] x [0], precision = [HIGHEST, HIGHEST] : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
      %6 = stablehlo.custom_call @twice(%4) {backend_config = "fast"} : (tensor<4x3xf32>) -> tensor<4x3xf32>
      stablehlo.return %1, %6 : tensor<i32>, tensor<4x3xf32>
    }
    %7 = call @largest(%0#1) : (tensor<4x3xf32>) -> tensor<4xi32>
    return %0#1, %7 : tensor<4x3xf32>, tensor<4xi32>
  }
  func.func private @largest(%arg0: tensor<4x3xf32>) -> tensor<4xi32> {
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %index = stablehlo.iota dim = 1 : tensor<4x3xi32>
    %0:2 = stablehlo.reduce(%arg0 init: %low), (%index init: %zero) across dimensions = [1] : (tensor<4x3xf32>, tensor<4x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %1 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
      %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
    }
    return %0#1 : tensor<4xi32>
  }
}
