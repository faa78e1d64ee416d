// Folds, windows, sorts and scatters with bodies of all kinds.
module @folds {
  func.func private @inputs() -> (tensor<2x5xf32>, tensor<2x5xi32>, tensor<6xf32>, tensor<6xi32>) {
    %a = stablehlo.constant dense<[[3.0, 0x7FC00000, 5.0, 5.0, -1.0], [2.0, 7.0, 7.0, -4.0, 0.0]]> : tensor<2x5xf32>
    %b = stablehlo.constant dense<[[4, 1, 3, 2, 2], [0, -5, 7, 7, 1]]> : tensor<2x5xi32>
    %c = stablehlo.constant dense<[3.0, -1.0, 2.0, 5.0, -4.0, 0.0]> : tensor<6xf32>
    %d = stablehlo.constant dense<[5, 3, 4, 3, 1, 0]> : tensor<6xi32>
    return %a, %b, %c, %d : tensor<2x5xf32>, tensor<2x5xi32>, tensor<6xf32>, tensor<6xi32>
  }
  func.func public @main() {
    %in:4 = call @inputs() : () -> (tensor<2x5xf32>, tensor<2x5xi32>, tensor<6xf32>, tensor<6xi32>)
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %none = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %fzero = stablehlo.constant dense<0.0> : tensor<f32>

    // The first greatest element, and its place; NaN is greater than all.
    %i = stablehlo.iota dim = 1 : tensor<2x5xi32>
    %m:2 = stablehlo.reduce(%in#0 init: %none), (%i init: %zero) across dimensions = [1] : (tensor<2x5xf32>, tensor<2x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
     reducer(%x: tensor<f32>, %y: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %nan = stablehlo.compare NE, %x, %x, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %gt = stablehlo.compare GT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %takes = stablehlo.or %nan, %gt : tensor<i1>
      %tie = stablehlo.compare EQ, %y, %x, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %lower = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %both = stablehlo.and %tie, %lower : tensor<i1>
      %place = stablehlo.or %takes, %both : tensor<i1>
      %v = stablehlo.select %takes, %x, %y : tensor<i1>, tensor<f32>
      %w = stablehlo.select %place, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
    check.expect_eq_const %m#0, dense<[0x7FC00000, 7.0]> : tensor<2xf32>
    check.expect_eq_const %m#1, dense<[1, 1]> : tensor<2xi32>

    // The last greatest element is another body.
    %neg = stablehlo.constant dense<-2147483648> : tensor<i32>
    %last:2 = stablehlo.reduce(%in#1 init: %neg), (%i init: %zero) across dimensions = [1] : (tensor<2x5xi32>, tensor<2x5xi32>, tensor<i32>, tensor<i32>) -> (tensor<2xi32>, tensor<2xi32>)
     reducer(%x: tensor<i32>, %y: tensor<i32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %gt = stablehlo.compare GT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %v = stablehlo.select %gt, %x, %y : tensor<i1>, tensor<i32>
      %w = stablehlo.select %gt, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<i32>, tensor<i32>
    }
    check.expect_eq_const %last#0, dense<[4, 7]> : tensor<2xi32>
    check.expect_eq_const %last#1, dense<[0, 3]> : tensor<2xi32>

    // Two sums at once, from starts that are not neutral: of the numbers, and of their squares.
    %s:2 = stablehlo.reduce(%in#1 init: %ten), (%in#1 init: %one) across dimensions = [0] : (tensor<2x5xi32>, tensor<2x5xi32>, tensor<i32>, tensor<i32>) -> (tensor<5xi32>, tensor<5xi32>)
     reducer(%x: tensor<i32>, %y: tensor<i32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %v = stablehlo.add %x, %y : tensor<i32>
      %w = stablehlo.maximum %p, %q : tensor<i32>
      stablehlo.return %v, %w : tensor<i32>, tensor<i32>
    }
    check.expect_eq_const %s#0, dense<[14, 6, 20, 19, 13]> : tensor<5xi32>
    check.expect_eq_const %s#1, dense<[4, 1, 7, 7, 2]> : tensor<5xi32>
    %t = stablehlo.reduce(%in#1 init: %ten) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x5xi32>, tensor<i32>) -> tensor<i32>
    check.expect_eq_const %t, dense<32> : tensor<i32>

    // Running sums from the front, and sums of three neighbours of padded rows.
    %r = "stablehlo.reduce_window"(%in#3, %zero) <{padding = dense<[[5, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 6>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %v = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %v : tensor<i32>
    }) : (tensor<6xi32>, tensor<i32>) -> tensor<6xi32>
    check.expect_eq_const %r, dense<[5, 8, 12, 15, 16, 16]> : tensor<6xi32>
    %w = "stablehlo.reduce_window"(%in#3, %one) <{padding = dense<[[1, 1]]> : tensor<1x2xi64>, window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %v = stablehlo.multiply %x, %y : tensor<i32>
      stablehlo.return %v : tensor<i32>
    }) : (tensor<6xi32>, tensor<i32>) -> tensor<3xi32>
    check.expect_eq_const %w, dense<[15, 36, 0]> : tensor<3xi32>

    // Sorts: downwards; by a comparator that is no order of the graph, even numbers first.
    %down:2 = "stablehlo.sort"(%in#3, %in#2) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<f32>):
      %v = stablehlo.compare GT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %v : tensor<i1>
    }) : (tensor<6xi32>, tensor<6xf32>) -> (tensor<6xi32>, tensor<6xf32>)
    check.expect_eq_const %down#0, dense<[5, 4, 3, 3, 1, 0]> : tensor<6xi32>
    check.expect_eq_const %down#1, dense<[3.0, 2.0, -1.0, 5.0, -4.0, 0.0]> : tensor<6xf32>
    %even:2 = "stablehlo.sort"(%in#3, %in#2) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<f32>):
      %p = stablehlo.and %a, %one : tensor<i32>
      %q = stablehlo.and %b, %one : tensor<i32>
      %v = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %v : tensor<i1>
    }) : (tensor<6xi32>, tensor<6xf32>) -> (tensor<6xi32>, tensor<6xf32>)
    check.expect_eq_const %even#0, dense<[4, 0, 5, 3, 3, 1]> : tensor<6xi32>
    check.expect_eq_const %even#1, dense<[2.0, 0.0, 3.0, -1.0, 5.0, -4.0]> : tensor<6xf32>

    // Scatters: a body of its own, twice at one place, and at one that does not exist.
    %at = stablehlo.constant dense<[[1], [4], [1], [9]]> : tensor<4x1xi32>
    %by = stablehlo.constant dense<[10, 20, 30, 40]> : tensor<4xi32>
    %sc = "stablehlo.scatter"(%in#3, %at, %by) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %d = stablehlo.add %x, %x : tensor<i32>
      %v = stablehlo.add %d, %y : tensor<i32>
      stablehlo.return %v : tensor<i32>
    }) : (tensor<6xi32>, tensor<4x1xi32>, tensor<4xi32>) -> tensor<6xi32>
    check.expect_eq_const %sc, dense<[5, 62, 4, 3, 22, 0]> : tensor<6xi32>
    %fby = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %two:2 = "stablehlo.scatter"(%in#3, %in#2, %at, %by, %fby) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%x: tensor<i32>, %f: tensor<f32>, %y: tensor<i32>, %g: tensor<f32>):
      %v = stablehlo.maximum %x, %y : tensor<i32>
      %h = stablehlo.subtract %f, %g : tensor<f32>
      stablehlo.return %v, %h : tensor<i32>, tensor<f32>
    }) : (tensor<6xi32>, tensor<6xf32>, tensor<4x1xi32>, tensor<4xi32>, tensor<4xf32>) -> (tensor<6xi32>, tensor<6xf32>)
    check.expect_eq_const %two#0, dense<[5, 30, 4, 3, 20, 0]> : tensor<6xi32>
    check.expect_eq_const %two#1, dense<[3.0, -5.0, 2.0, 5.0, -6.0, 0.0]> : tensor<6xf32>

    // The greatest of each window of two is added to by the source; with any body it is multiplied.
    %src = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
    %sel = "stablehlo.select_and_scatter"(%in#2, %src, %fzero) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %v = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %v : tensor<i1>
    }, {
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %v = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %v : tensor<f32>
    }) : (tensor<6xf32>, tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
    check.expect_eq_const %sel, dense<[1.0, 0.0, 0.0, 2.0, 0.0, 3.0]> : tensor<6xf32>
    %isrc = stablehlo.constant dense<[7, 8]> : tensor<2xi32>
    %any = "stablehlo.select_and_scatter"(%in#3, %isrc, %ten) <{padding = dense<[[1, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 4>, window_strides = array<i64: 3>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %v = stablehlo.compare LT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %v : tensor<i1>
    }, {
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %v = stablehlo.multiply %x, %y : tensor<i32>
      stablehlo.return %v : tensor<i32>
    }) : (tensor<6xi32>, tensor<2xi32>, tensor<i32>) -> tensor<6xi32>
    check.expect_eq_const %any, dense<[10, 70, 10, 10, 10, 80]> : tensor<6xi32>

    %map = "stablehlo.map"(%in#3, %in#3) <{dimensions = array<i64: 0>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %v = stablehlo.multiply %x, %y : tensor<i32>
      %u = stablehlo.add %v, %ten : tensor<i32>
      stablehlo.return %u : tensor<i32>
    }) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    check.expect_eq_const %map, dense<[35, 19, 26, 19, 11, 10]> : tensor<6xi32>
    return
  }
}
