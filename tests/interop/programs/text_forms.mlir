// Operations in the forms that StableHLO prints them in.
#loc = loc(unknown)
#axes = [0, 1]
module @forms attributes {mhlo.num_partitions = 1 : i32} {
  sdy.mesh @alone = <["x"=1]>
  func.func public @main(%x: tensor<2x3xf32> {jax.buffer_donor = true} loc("x"), %i: tensor<i32>) -> (tensor<2x3xf32> {jax.result_info = "[0]"}, tensor<i32>) {
    %c = stablehlo.constant dense<[[1.0, -2.5, 0x7FC00000], [1e-3, 4, inf]]> : tensor<2x3xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc1)
    %cst_0 = stablehlo.constant {mhlo.note = "kept"} dense<"0x0000803F00000040"> : tensor<2xf32>
    %0 = stablehlo.add %x, %c : tensor<2x3xf32> loc(#loc2)
    %1 = stablehlo.compare  GE, %0, %c,  FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %2 = stablehlo.select %1, %0, %c : tensor<2x3xi1>, tensor<2x3xf32>
    %3 = stablehlo.clamp %cst, %2, %cst : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %6 = stablehlo.dot_general %3, %3, batching_dims = [0] x [0], contracting_dims = [1] x [1], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
    %7 = stablehlo.slice %3 [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
    %8 = stablehlo.pad %3, %cst, low = [1, -1], high = [0, 0], interior = [0, 2] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x6xf32>
    %9 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %10 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %11:2 = stablehlo.reduce(%3 init: %cst), (%10 init: %i) across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%a: tensor<f32> loc("a"), %b: tensor<f32>) (%d: tensor<i32>, %e: tensor<i32>)  {
      %12 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %12, %d : tensor<f32>, tensor<i32>
    }
    %13:2 = stablehlo.while(%iterArg = %i, %iterArg_1 = %3) : tensor<i32>, tensor<2x3xf32>
     cond {
      %14 = stablehlo.compare LT, %iterArg, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %14 : tensor<i1>
    } do {
      %14 = func.call @twice(%iterArg_1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      stablehlo.return %iterArg, %14 : tensor<i32>, tensor<2x3xf32>
    } loc(#loc1)
    %15 = "stablehlo.gather"(%x, %10) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<2x3x3xf32>
    %16 = "stablehlo.case"(%i) ({
      stablehlo.return %x : tensor<2x3xf32>
    }, {
      %17 = stablehlo.negate %x : tensor<2x3xf32>
      stablehlo.return %17 : tensor<2x3xf32>
    }) : (tensor<i32>) -> tensor<2x3xf32>
    %18 = stablehlo.convert %x : (tensor<2x3xf32>) -> tensor<2x3xf64>
    %19 = stablehlo.complex %x, %x : tensor<2x3xcomplex<f32>>
    %20 = stablehlo.fft %19, type = FFT, length = [3] : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
    %21 = stablehlo.reduce_precision %x, format = e5m10 : tensor<2x3xf32>
    %values, %indices = chlo.top_k(%x, k = 2) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
    %22 = chlo.erf_inv %x : tensor<2x3xf32> -> tensor<2x3xf32>
    %23 = stablehlo.composite "my.scale" %x {composite_attributes = {s = 2.0 : f32}, decomposition = @twice, version = 2 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %24:2 = stablehlo.optimization_barrier %x, %i : tensor<2x3xf32>, tensor<i32>
    %25:2 = stablehlo.custom_call @lapack_spotrf_ffi(%5) {mhlo.backend_config = {uplo = 76 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
    stablehlo.custom_call @check.expect_close(%x, %x) {has_side_effect = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> ()
    check.expect_eq_const %i, dense<3> : tensor<i32>
    check.expect_close %x, %3, max_ulp_difference = 3, min_ulp_difference = 0 : tensor<2x3xf32>, tensor<2x3xf32>
    %26 = sdy.sharding_constraint %x <@alone, [{}, {"x"}]> : tensor<2x3xf32>
    %27 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<1x1x2x3xf32>
    %28 = stablehlo.convolution(%27, %27) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 2], pad = [[1, 1], [0, 2]], rhs_dilate = [2, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>]} : (tensor<1x1x2x3xf32>, tensor<1x1x2x3xf32>) -> tensor<1x1x2x2xf32>
    return %13#1, %11#1 : tensor<2x3xf32>, tensor<i32>
  }
  func.func private @twice(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = "stablehlo.add"(%arg0, %arg0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("add"(#loc1))
    "func.return"(%0) : (tensor<2x3xf32>) -> ()
  }
} loc(#loc)
#loc1 = loc("train.py":17:4 to :9)
#loc2 = loc(callsite("f"(#loc1) at fused["g", #loc3]))
#loc3 = loc("module")
