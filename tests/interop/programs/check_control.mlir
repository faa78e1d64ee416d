// Loops and branches.
module @control {
  func.func private @inputs() -> (tensor<i32>, tensor<i32>, tensor<3xf32>) {
    %a = stablehlo.constant dense<6> : tensor<i32>
    %b = stablehlo.constant dense<9> : tensor<i32>
    %c = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
    return %a, %b, %c : tensor<i32>, tensor<i32>, tensor<3xf32>
  }
  func.func private @twice(%x: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %x, %x : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
  func.func public @main() {
    %in:3 = call @inputs() : () -> (tensor<i32>, tensor<i32>, tensor<3xf32>)
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>

    // As many trips as are written, with a carry that none changes and one that a function doubles.
    %l:4 = stablehlo.while(%i = %zero, %s = %zero, %k = %in#0, %x = %in#2) : tensor<i32>, tensor<i32>, tensor<i32>, tensor<3xf32>
     cond {
      %t = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %p = stablehlo.multiply %i, %k : tensor<i32>
      %n = stablehlo.add %s, %p : tensor<i32>
      %m = stablehlo.add %one, %i : tensor<i32>
      %y = func.call @twice(%x) : (tensor<3xf32>) -> tensor<3xf32>
      stablehlo.return %m, %n, %k, %y : tensor<i32>, tensor<i32>, tensor<i32>, tensor<3xf32>
    }
    check.expect_eq_const %l#0, dense<5> : tensor<i32>
    check.expect_eq_const %l#1, dense<60> : tensor<i32>
    check.expect_eq_const %l#2, dense<6> : tensor<i32>
    check.expect_eq_const %l#3, dense<[32.0, 64.0, 96.0]> : tensor<3xf32>

    // Downwards by twos until the counter is equal to the bound.
    %six = stablehlo.constant dense<6> : tensor<i32>
    %d:2 = stablehlo.while(%i = %six, %s = %in#1) : tensor<i32>, tensor<i32>
     cond {
      %t = stablehlo.compare NE, %zero, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %n = stablehlo.add %s, %i : tensor<i32>
      %m = stablehlo.subtract %i, %two : tensor<i32>
      stablehlo.return %m, %n : tensor<i32>, tensor<i32>
    }
    check.expect_eq_const %d#0, dense<0> : tensor<i32>
    check.expect_eq_const %d#1, dense<21> : tensor<i32>

    // The bound is data.
    %v:2 = stablehlo.while(%i = %two, %s = %zero) : tensor<i32>, tensor<i32>
     cond {
      %t = stablehlo.compare GT, %in#1, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %n = stablehlo.add %s, %i : tensor<i32>
      %m = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %m, %n : tensor<i32>, tensor<i32>
    }
    check.expect_eq_const %v#0, dense<9> : tensor<i32>
    check.expect_eq_const %v#1, dense<35> : tensor<i32>

    // The trips are data: the steps that 6 takes to 1 by halves of even and 3 n + 1 of odd numbers.
    %c:2 = stablehlo.while(%n = %in#0, %s = %zero) : tensor<i32>, tensor<i32>
     cond {
      %t = stablehlo.compare GT, %n, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %r = stablehlo.remainder %n, %two : tensor<i32>
      %odd = stablehlo.compare EQ, %r, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %next = "stablehlo.if"(%odd) ({
        %three = stablehlo.constant dense<3> : tensor<i32>
        %a = stablehlo.multiply %n, %three : tensor<i32>
        %b = stablehlo.add %a, %one : tensor<i32>
        stablehlo.return %b : tensor<i32>
      }, {
        %h = stablehlo.divide %n, %two : tensor<i32>
        stablehlo.return %h : tensor<i32>
      }) : (tensor<i1>) -> tensor<i32>
      %m = stablehlo.add %s, %one : tensor<i32>
      stablehlo.return %next, %m : tensor<i32>, tensor<i32>
    }
    check.expect_eq_const %c#1, dense<8> : tensor<i32>

    // An index that is out of range takes the last branch.
    %big = "stablehlo.case"(%in#1) ({
      stablehlo.return %one : tensor<i32>
    }, {
      stablehlo.return %two : tensor<i32>
    }, {
      stablehlo.return %in#0 : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
    check.expect_eq_const %big, dense<6> : tensor<i32>
    %minus = stablehlo.negate %in#0 : tensor<i32>
    %low = "stablehlo.case"(%minus) ({
      stablehlo.return %one : tensor<i32>
    }, {
      stablehlo.return %five : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
    check.expect_eq_const %low, dense<5> : tensor<i32>
    %first = "stablehlo.case"(%d#0) ({
      stablehlo.return %one : tensor<i32>
    }, {
      stablehlo.return %five : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
    check.expect_eq_const %first, dense<1> : tensor<i32>
    return
  }
}
