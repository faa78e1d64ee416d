// Scans of CHLO: running sums, bodies that are associative, and others.
module @scans {
  func.func private @inputs() -> (tensor<4xf32>, tensor<2x3xf32>, tensor<f32>) {
    %a = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %b = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<10.0> : tensor<f32>
    return %a, %b, %c : tensor<4xf32>, tensor<2x3xf32>, tensor<f32>
  }
  func.func private @unused(%x: tensor<2x3xf32>, %a: tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>) {
    return %x, %a : tensor<2x3xf32>, tensor<2xf32>
  }
  func.func public @main() {
    %in:3 = call @inputs() : () -> (tensor<4xf32>, tensor<2x3xf32>, tensor<f32>)
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<2xf32>

    %s:2 = chlo.scan(%in#0) inits (%zero) dimension=0 attributes {is_associative = true, is_reverse = false} {
    ^bb0(%x: tensor<f32>, %carry: tensor<f32>):
      %0 = stablehlo.add %x, %carry : tensor<f32>
      stablehlo.return %0, %0 : tensor<f32>, tensor<f32>
    } : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
    check.expect_eq_const %s#0, dense<[1.0, 3.0, 6.0, 10.0]> : tensor<4xf32>
    check.expect_eq_const %s#1, dense<10.0> : tensor<f32>

    // As jax.export has it.
    %r:2 = stablehlo.composite "chlo.scan" %in#1, %zeros ({
    ^bb0(%x: tensor<2xf32>, %carry: tensor<2xf32>):
      %0 = stablehlo.add %x, %carry : tensor<2xf32>
      stablehlo.return %0, %0 : tensor<2xf32>, tensor<2xf32>
    }) {composite_attributes = {dimension = 1 : i64, is_associative = true, is_reverse = true, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}, decomposition = @unused, version = 1 : i32} : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
    check.expect_eq_const %r#0, dense<[[6.0, 5.0, 3.0], [15.0, 11.0, 6.0]]> : tensor<2x3xf32>
    check.expect_eq_const %r#1, dense<[6.0, 15.0]> : tensor<2xf32>

    // A sum that does not start at zero.
    %t:2 = chlo.scan(%in#0) inits (%in#2) dimension=0 attributes {is_associative = true, is_reverse = true} {
    ^bb0(%x: tensor<f32>, %carry: tensor<f32>):
      %0 = stablehlo.add %carry, %x : tensor<f32>
      stablehlo.return %0, %0 : tensor<f32>, tensor<f32>
    } : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
    check.expect_eq_const %t#0, dense<[20.0, 19.0, 17.0, 14.0]> : tensor<4xf32>
    check.expect_eq_const %t#1, dense<20.0> : tensor<f32>

    // y = a y + b, of which (a, b) are combined.
    %u:4 = chlo.scan(%in#0, %in#0) inits (%one, %zero) dimension=0 attributes {is_associative = true, is_reverse = false} {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
      %0 = stablehlo.multiply %a, %c : tensor<f32>
      %1 = stablehlo.multiply %a, %d : tensor<f32>
      %2 = stablehlo.add %1, %b : tensor<f32>
      stablehlo.return %0, %2, %0, %2 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
    } : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>)
    check.expect_eq_const %u#0, dense<[1.0, 2.0, 6.0, 24.0]> : tensor<4xf32>
    check.expect_eq_const %u#1, dense<[1.0, 4.0, 15.0, 64.0]> : tensor<4xf32>
    check.expect_eq_const %u#2, dense<24.0> : tensor<f32>
    check.expect_eq_const %u#3, dense<64.0> : tensor<f32>

    // Results that are not the carries, of a body that is not associative.
    %v:3 = chlo.scan(%in#1) inits (%zeros) dimension=1 attributes {is_associative = false, is_reverse = false} {
    ^bb0(%x: tensor<2xf32>, %carry: tensor<2xf32>):
      %0 = stablehlo.subtract %x, %carry : tensor<2xf32>
      %1 = stablehlo.multiply %x, %carry : tensor<2xf32>
      stablehlo.return %1, %carry, %0 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    } : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>)
    check.expect_eq_const %v#0, dense<[[0.0, 2.0, 3.0], [0.0, 20.0, 6.0]]> : tensor<2x3xf32>
    check.expect_eq_const %v#1, dense<[[0.0, 1.0, 1.0], [0.0, 4.0, 1.0]]> : tensor<2x3xf32>
    check.expect_eq_const %v#2, dense<[2.0, 5.0]> : tensor<2xf32>
    return
  }
}
