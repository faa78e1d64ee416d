// Products of groups of rows, of which each has its own matrix or its own result.
module @products {
  func.func private @inputs() -> (tensor<4x2xf32>, tensor<2x2x2x1xf32>, tensor<2xi32>, tensor<2x2xi32>) {
    %x = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
    %w = stablehlo.constant dense<[[[[1.0], [10.0]], [[100.0], [1000.0]]], [[[1.0], [10.0]], [[100.0], [1000.0]]]]> : tensor<2x2x2x1xf32>
    %s = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    %t = stablehlo.constant dense<[[1, 1], [0, 2]]> : tensor<2x2xi32>
    return %x, %w, %s, %t : tensor<4x2xf32>, tensor<2x2x2x1xf32>, tensor<2xi32>, tensor<2x2xi32>
  }
  func.func private @negated(%x: tensor<4x2xf32>, %w: tensor<4x2xf32>, %s: tensor<2xi32>) -> tensor<4x2xf32> {
    %0 = stablehlo.negate %x : tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
  func.func public @main() {
    %in:4 = call @inputs() : () -> (tensor<4x2xf32>, tensor<2x2x2x1xf32>, tensor<2xi32>, tensor<2x2xi32>)
    %w0 = stablehlo.slice %in#1 [0:1, 0:2, 0:2, 0:1] : (tensor<2x2x2x1xf32>) -> tensor<1x2x2x1xf32>
    %w = stablehlo.reshape %w0 : (tensor<1x2x2x1xf32>) -> tensor<2x2x1xf32>

    // Rows behind the last group have none.
    %a = "chlo.ragged_dot"(%in#0, %w, %in#2) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x2xf32>, tensor<2x2x1xf32>, tensor<2xi32>) -> tensor<4x1xf32>
    check.expect_eq_const %a, dense<[[21.0], [4300.0], [6500.0], [0.0]]> : tensor<4x1xf32>

    // Of a batch each has its own sizes.
    %x = stablehlo.reshape %in#0 : (tensor<4x2xf32>) -> tensor<2x2x2xf32>
    %b = "chlo.ragged_dot"(%x, %in#1, %in#3) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [1]>}> : (tensor<2x2x2xf32>, tensor<2x2x2x1xf32>, tensor<2x2xi32>) -> tensor<2x2x1xf32>
    check.expect_eq_const %b, dense<[[[21.0], [4300.0]], [[6500.0], [8700.0]]]> : tensor<2x2x1xf32>

    // As jax.export has it: a result of each group.
    %y = stablehlo.constant dense<[[1.0], [10.0], [100.0], [1000.0]]> : tensor<4x1xf32>
    %c = stablehlo.composite "chlo.ragged_dot" %in#0, %y, %in#2 {composite_attributes = {precision_config = ["DEFAULT", "DEFAULT"], ragged_dot_dimension_numbers = [dense<> : tensor<0xi64>, dense<> : tensor<0xi64>, dense<0> : tensor<1xi64>, dense<0> : tensor<1xi64>, dense<0> : tensor<1xi64>, dense<> : tensor<0xi64>]}, decomposition = @negated} : (tensor<4x2xf32>, tensor<4x1xf32>, tensor<2xi32>) -> tensor<2x2x1xf32>
    check.expect_eq_const %c, dense<[[[1.0], [2.0]], [[530.0], [640.0]]]> : tensor<2x2x1xf32>

    // A composite whose operation only its decomposition tells.
    %d = stablehlo.composite "chlo._asin_acos_kernel" %in#0, %in#0, %in#2 {decomposition = @negated} : (tensor<4x2xf32>, tensor<4x2xf32>, tensor<2xi32>) -> tensor<4x2xf32>
    check.expect_eq_const %d, dense<[[-1.0, -2.0], [-3.0, -4.0], [-5.0, -6.0], [-7.0, -8.0]]> : tensor<4x2xf32>
    return
  }
}
