// Random bits by Threefry-2x32: rounds of functions of their own, in a loop over two lists of rotations.
module @random {
  func.func private @rotated(%y: tensor<2x3xui32>, %r: tensor<1xui32>) -> tensor<2x3xui32> {
    %all = stablehlo.constant dense<32> : tensor<ui32>
    %n = stablehlo.reshape %r : (tensor<1xui32>) -> tensor<ui32>
    %m = stablehlo.subtract %all, %n : tensor<ui32>
    %up = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %down = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %0 = stablehlo.shift_left %y, %up : tensor<2x3xui32>
    %1 = stablehlo.shift_right_logical %y, %down : tensor<2x3xui32>
    %2 = stablehlo.or %0, %1 : tensor<2x3xui32>
    return %2 : tensor<2x3xui32>
  }
  func.func private @mixed(%x: tensor<2x3xui32>, %y: tensor<2x3xui32>, %r: tensor<1xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>) {
    %0 = stablehlo.add %x, %y : tensor<2x3xui32>
    %1 = call @rotated(%y, %r) : (tensor<2x3xui32>, tensor<1xui32>) -> tensor<2x3xui32>
    %2 = stablehlo.xor %0, %1 : tensor<2x3xui32>
    return %0, %2 : tensor<2x3xui32>, tensor<2x3xui32>
  }
  func.func private @four(%x: tensor<2x3xui32>, %y: tensor<2x3xui32>, %r: tensor<4xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>) {
    %r0 = stablehlo.slice %r [0:1] : (tensor<4xui32>) -> tensor<1xui32>
    %0:2 = call @mixed(%x, %y, %r0) : (tensor<2x3xui32>, tensor<2x3xui32>, tensor<1xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>)
    %r1 = stablehlo.slice %r [1:2] : (tensor<4xui32>) -> tensor<1xui32>
    %1:2 = call @mixed(%0#0, %0#1, %r1) : (tensor<2x3xui32>, tensor<2x3xui32>, tensor<1xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>)
    %r2 = stablehlo.slice %r [2:3] : (tensor<4xui32>) -> tensor<1xui32>
    %2:2 = call @mixed(%1#0, %1#1, %r2) : (tensor<2x3xui32>, tensor<2x3xui32>, tensor<1xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>)
    %r3 = stablehlo.slice %r [3:4] : (tensor<4xui32>) -> tensor<1xui32>
    %3:2 = call @mixed(%2#0, %2#1, %r3) : (tensor<2x3xui32>, tensor<2x3xui32>, tensor<1xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>)
    return %3#0, %3#1 : tensor<2x3xui32>, tensor<2x3xui32>
  }
  func.func private @words(%k0: tensor<ui32>, %k1: tensor<ui32>, %x: tensor<1x3xui32>, %y: tensor<2x3xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>) {
    %odd = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>
    %even = stablehlo.constant dense<[17, 29, 16, 24]> : tensor<4xui32>
    %parity = stablehlo.constant dense<466688986> : tensor<ui32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %0 = stablehlo.xor %k0, %k1 : tensor<ui32>
    %k2 = stablehlo.xor %0, %parity : tensor<ui32>
    %a = stablehlo.broadcast_in_dim %k0, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %b = stablehlo.broadcast_in_dim %k1, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %wide = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<1x3xui32>) -> tensor<2x3xui32>
    %x0 = stablehlo.add %wide, %a : tensor<2x3xui32>
    %y0 = stablehlo.add %y, %b : tensor<2x3xui32>
    %w:8 = stablehlo.while(%i = %zero, %p = %x0, %q = %y0, %f = %k1, %g = %k2, %h = %k0, %r = %odd, %s = %even) : tensor<i32>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
     cond {
      %t = stablehlo.compare GT, %five, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %m:2 = func.call @four(%p, %q, %r) : (tensor<2x3xui32>, tensor<2x3xui32>, tensor<4xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>)
      %n = stablehlo.add %i, %one : tensor<i32>
      %u = stablehlo.convert %n : (tensor<i32>) -> tensor<ui32>
      %v = stablehlo.add %g, %u : tensor<ui32>
      %c = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
      %d = stablehlo.broadcast_in_dim %v, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
      %e = stablehlo.add %m#0, %c : tensor<2x3xui32>
      %o = stablehlo.add %m#1, %d : tensor<2x3xui32>
      stablehlo.return %n, %e, %o, %g, %h, %f, %s, %r : tensor<i32>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
    }
    return %w#1, %w#2 : tensor<2x3xui32>, tensor<2x3xui32>
  }
  func.func public @main(%key: tensor<2xui32>) -> tensor<2x3xui32> {
    %high = stablehlo.constant dense<0> : tensor<1x3xui32>
    %low = stablehlo.constant dense<[[0, 1, 2], [3, 4, 5]]> : tensor<2x3xui32>
    %0 = stablehlo.slice %key [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %1 = stablehlo.slice %key [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %k0 = stablehlo.reshape %0 : (tensor<1xui32>) -> tensor<ui32>
    %k1 = stablehlo.reshape %1 : (tensor<1xui32>) -> tensor<ui32>
    %w:2 = call @words(%k0, %k1, %high, %low) : (tensor<ui32>, tensor<ui32>, tensor<1x3xui32>, tensor<2x3xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>)
    %bits = stablehlo.xor %w#0, %w#1 : tensor<2x3xui32>
    return %bits : tensor<2x3xui32>
  }
}
