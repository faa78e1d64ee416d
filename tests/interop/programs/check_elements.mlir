// Operations that no single op of the graph is: bits of other widths, powers of integers, upper halves of
// products, total order, random bits, small types, compositions.
module @elements {
  func.func private @inputs() -> (tensor<4xi32>, tensor<2xf32>, tensor<4xf32>, tensor<2xui64>, tensor<2xcomplex<f32>>) {
    %a = stablehlo.constant dense<[-3, 2, -1, 1]> : tensor<4xi32>
    %b = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
    %c = stablehlo.constant dense<[0.0, -0.0, 0x7FC00000, -1.0]> : tensor<4xf32>
    %d = stablehlo.constant dense<[1311768467463790320, 1147797409030816545]> : tensor<2xui64>
    %e = stablehlo.constant dense<[(1.0, 2.0), (-8.0, 0.0)]> : tensor<2xcomplex<f32>>
    return %a, %b, %c, %d, %e : tensor<4xi32>, tensor<2xf32>, tensor<4xf32>, tensor<2xui64>, tensor<2xcomplex<f32>>
  }
  func.func private @half(%x: tensor<4xi32>) -> tensor<4xi32> {
    %two = stablehlo.constant dense<2> : tensor<4xi32>
    %0 = stablehlo.divide %x, %two : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
  func.func public @main() {
    %in:5 = call @inputs() : () -> (tensor<4xi32>, tensor<2xf32>, tensor<4xf32>, tensor<2xui64>, tensor<2xcomplex<f32>>)
    %e = stablehlo.constant dense<[3, 5, -3, -2]> : tensor<4xi32>
    %p = stablehlo.power %in#0, %e : tensor<4xi32>
    check.expect_eq_const %p, dense<[-27, 32, -1, 1]> : tensor<4xi32>

    %h = stablehlo.bitcast_convert %in#1 : (tensor<2xf32>) -> tensor<2x2xui16>
    check.expect_eq_const %h, dense<[[0, 16256], [0, 49152]]> : tensor<2x2xui16>
    %f = stablehlo.bitcast_convert %h : (tensor<2x2xui16>) -> tensor<2xf32>
    check.expect_eq_const %f, dense<[1.0, -2.0]> : tensor<2xf32>
    %z = stablehlo.bitcast_convert %in#4 : (tensor<2xcomplex<f32>>) -> tensor<2xui64>
    check.expect_eq_const %z, dense<[4611686019492741120, 3238002688]> : tensor<2xui64>

    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %q = stablehlo.compare LT, %in#2, %zero, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    check.expect_eq_const %q, dense<[false, true, false, true]> : tensor<4xi1>

    // As jax.lax.rng_bit_generator gives them.
    %r:2 = stablehlo.rng_bit_generator %in#3, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui32>)
    check.expect_eq_const %r#0, dense<[1311768467463790320, 1147797409030816547]> : tensor<2xui64>
    check.expect_eq_const %r#1, dense<[0xFF2403F1, 0x0E3E6BA8, 0x405CE119, 0xAED8669E, 0x9E057F2A, 0x4D5D28BD, 0xE1D88E71]> : tensor<7xui32>
    %s:2 = stablehlo.rng_bit_generator %in#3, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui8>)
    check.expect_eq_const %s#1, dense<[[0x1A, 0xFE, 0xF6, 0x39, 0x0E], [0xA4, 0xF1, 0xAE, 0x09, 0xAA], [0x96, 0xCA, 0xBD, 0x78, 0x38]]> : tensor<3x5xui8>

    %c = stablehlo.composite "mine.half" %in#0 {decomposition = @half} : (tensor<4xi32>) -> tensor<4xi32>
    check.expect_eq_const %c, dense<[-1, 1, 0, 0]> : tensor<4xi32>
    %k = chlo.mulhi %in#0, %e : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
    check.expect_eq_const %k, dense<[-1, 0, 0, -1]> : tensor<4xi32>
    %cube = stablehlo.cbrt %in#4 : tensor<2xcomplex<f32>>
    %cubed = stablehlo.multiply %cube, %cube : tensor<2xcomplex<f32>>
    %back = stablehlo.multiply %cubed, %cube : tensor<2xcomplex<f32>>
    check.expect_almost_eq_const %back, dense<[(1.0, 2.0), (-8.0, 0.0)]> : tensor<2xcomplex<f32>>
    %small = stablehlo.constant dense<[1.5, -0.25, 448.0]> : tensor<3xf8E4M3FN>
    %wide = stablehlo.convert %small : (tensor<3xf8E4M3FN>) -> tensor<3xf32>
    check.expect_eq_const %wide, dense<[1.5, -0.25, 448.0]> : tensor<3xf32>

    // Integers of four bits wrap around.
    %n4 = stablehlo.constant dense<[-8, 3, -1]> : tensor<3xi4>
    %neg4 = stablehlo.negate %n4 : tensor<3xi4>
    check.expect_eq_const %neg4, dense<[-8, -3, 1]> : tensor<3xi4>
    %sum4 = stablehlo.add %neg4, %neg4 : tensor<3xi4>
    check.expect_eq_const %sum4, dense<[0, -6, 2]> : tensor<3xi4>
    %pop4 = stablehlo.popcnt %n4 : tensor<3xi4>
    check.expect_eq_const %pop4, dense<[1, 2, 4]> : tensor<3xi4>
    %clz4 = stablehlo.count_leading_zeros %n4 : tensor<3xi4>
    check.expect_eq_const %clz4, dense<[0, 2, 0]> : tensor<3xi4>
    %u4 = stablehlo.constant dense<[0, 9]> : tensor<2xui4>
    %not4 = stablehlo.not %u4 : tensor<2xui4>
    check.expect_eq_const %not4, dense<[15, 6]> : tensor<2xui4>
    // Bits of bools, the lowest one first.
    %bits = stablehlo.constant dense<[true, false, true, false, false, false, false, true]> : tensor<8xi1>
    %byte = stablehlo.bitcast_convert %bits : (tensor<8xi1>) -> tensor<i8>
    check.expect_eq_const %byte, dense<-123> : tensor<i8>
    %again = stablehlo.bitcast_convert %byte : (tensor<i8>) -> tensor<8xi1>
    check.expect_eq %again, %bits : tensor<8xi1>
    %truth = stablehlo.convert %in#4 : (tensor<2xcomplex<f32>>) -> tensor<2xi1>
    check.expect_eq_const %truth, dense<[true, true]> : tensor<2xi1>
    // What takes its extents as operands.
    %lo = stablehlo.constant dense<[1]> : tensor<1xi64>
    %one = stablehlo.constant dense<7> : tensor<i32>
    %padded = stablehlo.dynamic_pad %in#0, %one, %lo, %lo, %lo : (tensor<4xi32>, tensor<i32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<9xi32>
    check.expect_eq_const %padded, dense<[7, -3, 7, 2, 7, -1, 7, 1, 7]> : tensor<9xi32>
    return
  }
}
