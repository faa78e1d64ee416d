// Tuples and tokens, as operands and results of operations, functions and loops.
module @tuples {
  func.func private @inputs() -> tensor<2xf32> {
    %x = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func private @pair(%t: tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>, %k: !stablehlo.token) -> (tuple<tensor<2xf32>, tensor<2xf32>>, !stablehlo.token) {
    %x = stablehlo.get_tuple_element %t[0] : (tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>) -> tensor<2xf32>
    %u = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>) -> tuple<tensor<i32>, !stablehlo.token>
    %n = stablehlo.get_tuple_element %u[0] : (tuple<tensor<i32>, !stablehlo.token>) -> tensor<i32>
    %m = stablehlo.get_tuple_element %u[1] : (tuple<tensor<i32>, !stablehlo.token>) -> !stablehlo.token
    %f = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %y = stablehlo.multiply %x, %b : tensor<2xf32>
    %a = stablehlo.after_all %m, %k : !stablehlo.token
    %r = stablehlo.tuple %y, %x : tuple<tensor<2xf32>, tensor<2xf32>>
    return %r, %a : tuple<tensor<2xf32>, tensor<2xf32>>, !stablehlo.token
  }
  func.func public @main() {
    %x = call @inputs() : () -> tensor<2xf32>
    %k = stablehlo.create_token : !stablehlo.token
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %i = stablehlo.tuple %three, %k : tuple<tensor<i32>, !stablehlo.token>
    %t = stablehlo.tuple %x, %i : tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>
    %p:2 = call @pair(%t, %k) : (tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>, !stablehlo.token) -> (tuple<tensor<2xf32>, tensor<2xf32>>, !stablehlo.token)
    %w:3 = stablehlo.while(%c = %zero, %q = %p#0, %s = %p#1) : tensor<i32>, tuple<tensor<2xf32>, tensor<2xf32>>, !stablehlo.token
     cond {
      %l = stablehlo.compare LT, %c, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %d = stablehlo.add %c, %one : tensor<i32>
      %e = stablehlo.get_tuple_element %q[0] : (tuple<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>
      %f = stablehlo.get_tuple_element %q[1] : (tuple<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>
      %g = stablehlo.add %e, %f : tensor<2xf32>
      %h = stablehlo.tuple %g, %e : tuple<tensor<2xf32>, tensor<2xf32>>
      %o = stablehlo.after_all %s, %k : !stablehlo.token
      stablehlo.return %d, %h, %o : tensor<i32>, tuple<tensor<2xf32>, tensor<2xf32>>, !stablehlo.token
    }
    %v = stablehlo.get_tuple_element %w#1[0] : (tuple<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>
    %z = stablehlo.get_tuple_element %w#1[1] : (tuple<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>
    check.expect_eq_const %v, dense<[11.0, -22.0]> : tensor<2xf32>
    check.expect_eq_const %z, dense<[7.0, -14.0]> : tensor<2xf32>
    check.expect_eq_const %w#0, dense<3> : tensor<i32>
    return
  }
}
