// Floats of eight bits and less: numbers are rounded to them once, to the nearest and of two the even one.
module @small {
  func.func private @inputs() -> (tensor<8xf32>, tensor<4xf64>, tensor<4xi32>) {
    %x = stablehlo.constant dense<[0.0, -0.0, 1.0625, -2.6, 0.001, 464.1, -1.0e6, 0x7F800000]> : tensor<8xf32>
    // Halfway between two numbers in f32, and not in f64.
    %w = stablehlo.constant dense<[1.0625000001, 1.0624999999, -7.0e-4, 3.0e5]> : tensor<4xf64>
    %n = stablehlo.constant dense<[17, -19, 300, 70000]> : tensor<4xi32>
    return %x, %w, %n : tensor<8xf32>, tensor<4xf64>, tensor<4xi32>
  }
  func.func public @main() {
    %in:3 = call @inputs() : () -> (tensor<8xf32>, tensor<4xf64>, tensor<4xi32>)
    %a = stablehlo.convert %in#0 : (tensor<8xf32>) -> tensor<8xf8E4M3FN>
    %a32 = stablehlo.convert %a : (tensor<8xf8E4M3FN>) -> tensor<8xf32>
    check.expect_eq_const %a32, dense<[0.0, -0.0, 1.0, -2.5, 0.001953125, 0x7FC00000, 0x7FC00000, 0x7FC00000]> : tensor<8xf32>
    %abits = stablehlo.bitcast_convert %a : (tensor<8xf8E4M3FN>) -> tensor<8xui8>
    %afirst = stablehlo.slice %abits [0:5] : (tensor<8xui8>) -> tensor<5xui8>
    check.expect_eq_const %afirst, dense<[0, 128, 56, 194, 1]> : tensor<5xui8>
    %b = stablehlo.convert %in#0 : (tensor<8xf32>) -> tensor<8xf8E5M2>
    %b32 = stablehlo.convert %b : (tensor<8xf8E5M2>) -> tensor<8xf32>
    check.expect_eq_const %b32, dense<[0.0, -0.0, 1.0, -2.5, 0.0009765625, 448.0, 0xFF800000, 0x7F800000]> : tensor<8xf32>
    %bbits = stablehlo.bitcast_convert %b : (tensor<8xf8E5M2>) -> tensor<8xi8>
    check.expect_eq_const %bbits, dense<[0, -128, 60, -63, 20, 95, -4, 124]> : tensor<8xi8>
    %bback = stablehlo.bitcast_convert %bbits : (tensor<8xi8>) -> tensor<8xf8E5M2>
    %bback32 = stablehlo.convert %bback : (tensor<8xf8E5M2>) -> tensor<8xf32>
    check.expect_eq %bback32, %b32 : tensor<8xf32>
    %c = stablehlo.convert %in#0 : (tensor<8xf32>) -> tensor<8xf8E4M3FNUZ>
    %c32 = stablehlo.convert %c : (tensor<8xf8E4M3FNUZ>) -> tensor<8xf32>
    check.expect_eq_const %c32, dense<[0.0, 0.0, 1.0, -2.5, 0.0009765625, 0x7FC00000, 0x7FC00000, 0x7FC00000]> : tensor<8xf32>
    %d = stablehlo.convert %in#0 : (tensor<8xf32>) -> tensor<8xf8E3M4>
    %d32 = stablehlo.convert %d : (tensor<8xf8E3M4>) -> tensor<8xf32>
    check.expect_eq_const %d32, dense<[0.0, -0.0, 1.0625, -2.625, 0.0, 0x7F800000, 0xFF800000, 0x7F800000]> : tensor<8xf32>
    %e = stablehlo.convert %in#0 : (tensor<8xf32>) -> tensor<8xf8E8M0FNU>
    %e32 = stablehlo.convert %e : (tensor<8xf8E8M0FNU>) -> tensor<8xf32>
    check.expect_eq_const %e32, dense<[0x7FC00000, 0x7FC00000, 1.0, 0x7FC00000, 0.0009765625, 512.0, 0x7FC00000, 0x7FC00000]> : tensor<8xf32>
    %f = stablehlo.convert %in#0 : (tensor<8xf32>) -> tensor<8xf4E2M1FN>
    %f32 = stablehlo.convert %f : (tensor<8xf4E2M1FN>) -> tensor<8xf32>
    check.expect_eq_const %f32, dense<[0.0, -0.0, 1.0, -3.0, 0.0, 6.0, -6.0, 6.0]> : tensor<8xf32>
    %g = stablehlo.convert %in#0 : (tensor<8xf32>) -> tensor<8xf6E2M3FN>
    %g32 = stablehlo.convert %g : (tensor<8xf6E2M3FN>) -> tensor<8xf32>
    check.expect_eq_const %g32, dense<[0.0, -0.0, 1.0, -2.5, 0.0, 7.5, -7.5, 7.5]> : tensor<8xf32>
    %h = stablehlo.convert %in#0 : (tensor<8xf32>) -> tensor<8xf6E3M2FN>
    %h32 = stablehlo.convert %h : (tensor<8xf6E3M2FN>) -> tensor<8xf32>
    check.expect_eq_const %h32, dense<[0.0, -0.0, 1.0, -2.5, 0.0, 28.0, -28.0, 28.0]> : tensor<8xf32>

    %w = stablehlo.convert %in#1 : (tensor<4xf64>) -> tensor<4xf8E4M3FN>
    %w32 = stablehlo.convert %w : (tensor<4xf8E4M3FN>) -> tensor<4xf32>
    check.expect_eq_const %w32, dense<[1.125, 1.0, 0.0, 0x7FC00000]> : tensor<4xf32>
    %n = stablehlo.convert %in#2 : (tensor<4xi32>) -> tensor<4xf8E5M2>
    %n32 = stablehlo.convert %n : (tensor<4xf8E5M2>) -> tensor<4xf32>
    check.expect_eq_const %n32, dense<[16.0, -20.0, 320.0, 0x7F800000]> : tensor<4xf32>

    // So is what operations give.
    %k = stablehlo.constant dense<[1.125, 1.875, -448.0, 0.5]> : tensor<4xf8E4M3FN>
    %kk = stablehlo.multiply %k, %k : tensor<4xf8E4M3FN>
    %kk32 = stablehlo.convert %kk : (tensor<4xf8E4M3FN>) -> tensor<4xf32>
    check.expect_eq_const %kk32, dense<[1.25, 3.5, 0x7FC00000, 0.25]> : tensor<4xf32>
    %three = stablehlo.constant dense<[16.0, 1.0, 1.0, 1.5]> : tensor<4xf8E4M3FN>
    %zero = stablehlo.constant dense<0.0> : tensor<f8E4M3FN>
    %sum = stablehlo.reduce(%three init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf8E4M3FN>, tensor<f8E4M3FN>) -> tensor<f8E4M3FN>
    %sum32 = stablehlo.convert %sum : (tensor<f8E4M3FN>) -> tensor<f32>
    check.expect_eq_const %sum32, dense<20.0> : tensor<f32>
    %dot = stablehlo.dot_general %three, %three, contracting_dims = [0] x [0] : (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>) -> tensor<f8E4M3FN>
    %dot32 = stablehlo.convert %dot : (tensor<f8E4M3FN>) -> tensor<f32>
    check.expect_eq_const %dot32, dense<256.0> : tensor<f32>
    %four = stablehlo.constant dense<[0.5, -6.0]> : tensor<2xf4E2M1FN>
    %four32 = stablehlo.convert %four : (tensor<2xf4E2M1FN>) -> tensor<2xf32>
    check.expect_eq_const %four32, dense<[0.5, -6.0]> : tensor<2xf32>
    %scale = stablehlo.constant dense<[0.25, 8.0]> : tensor<2xf8E8M0FNU>
    %scale32 = stablehlo.convert %scale : (tensor<2xf8E8M0FNU>) -> tensor<2xf32>
    check.expect_eq_const %scale32, dense<[0.25, 8.0]> : tensor<2xf32>
    return
  }
}
