module @written attributes {mhlo.num_partitions = 1 : i32, "mhlo.a b" = "say \22so\22\0A", mhlo.bits = 0x7FC00000 : f32, mhlo.many = [1 : i64, 2.500000e+00 : f64, true, unit, @main, tensor<2x?xf32>, array<i32: 1, 2>, {x = -1 : i8, y}]} {
  sdy.mesh @alone = <["x"=1]>
  func.func public @main(%arg0: tensor<2x3xf32> {jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@alone, [{"x"}, {}]>}, %arg1: tensor<i32>, %arg2: tensor<2xui32>, %arg3: tensor<4x4xf32>) -> (tensor<2x3xf32> {jax.result_info = "[0]"}, tensor<i32>) {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.constant dense<[[1.000000e+00, -2.500000e+00, 0x7FC00000], [1.000000e-03, 1.000000e-01, 0xFF800000]]> : tensor<2x3xf32>
    %2 = stablehlo.constant dense<[1, -8, 7]> : tensor<3xi4>
    %3 = stablehlo.constant dense<[1.000000e-01, 1.000000e+300]> : tensor<2xf64>
    %4 = stablehlo.constant dense<[9.997559e-02, -0.000000e+00, 6.550400e+04]> : tensor<3xf16>
    %5 = stablehlo.constant dense<[1.000977e-01, 3.004055e+38]> : tensor<2xbf16>
    %6 = stablehlo.constant dense<[4.480000e+02, 1.953125e-03, 0xFF]> : tensor<3xf8E4M3FN>
    %7 = stablehlo.constant dense<[(1.000000e+00,2.000000e+00), (-5.000000e-01,0x7F800000)]> : tensor<2xcomplex<f32>>
    %8 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %9 = stablehlo.constant dense<18446744073709551615> : tensor<3x2xui64>
    %10 = stablehlo.constant dense<> : tensor<0x4xi32>
    %11 = stablehlo.constant dense<"0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F20"> : tensor<33xi8>
    %12 = stablehlo.constant dense<(1.000000e+00,0.000000e+00)> : tensor<2x2xcomplex<f64>>
    %13 = stablehlo.constant {mhlo.note = "kept"} dense<3> : tensor<1xi64>
    %14 = stablehlo.constant dense<[[true, false, true, true, false, true, true, false, true, false, true, false, true, true, false, true, true], [true, false, true, true, false, true, true, false, true, false, true, false, true, true, false, true, true]]> : tensor<2x17xi1>
    %15 = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
    %16 = stablehlo.add %arg0, %1 : tensor<2x3xf32>
    %17 = stablehlo.compare GE, %16, %1, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %18 = stablehlo.compare EQ, %16, %1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %19 = stablehlo.select %17, %16, %1 : tensor<2x3xi1>, tensor<2x3xf32>
    %20 = stablehlo.clamp %0, %19, %0 : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %21 = stablehlo.transpose %20, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %22 = stablehlo.dot_general %20, %21, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %23 = stablehlo.dot_general %20, %20, batching_dims = [0] x [0], contracting_dims = [1] x [1], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
    %24 = stablehlo.slice %20 [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
    %25 = stablehlo.pad %20, %0, low = [1, -1], high = [0, 0], interior = [0, 2] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x6xf32>
    %26 = stablehlo.reduce(%20 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %27 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %28:2 = stablehlo.reduce(%20 init: %0), (%27 init: %arg1) across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%arg4: tensor<f32>, %arg6: tensor<f32>) (%arg5: tensor<i32>, %arg7: tensor<i32>) {
      %29 = stablehlo.maximum %arg4, %arg6 : tensor<f32>
      stablehlo.return %29, %arg5 : tensor<f32>, tensor<i32>
    }
    %30:2 = stablehlo.while(%iterArg_0 = %arg1, %iterArg_1 = %20) : tensor<i32>, tensor<2x3xf32> attributes {mhlo.trip = 3 : i64}
    cond {
      %31 = stablehlo.compare LT, %iterArg_0, %arg1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %31 : tensor<i1>
    } do {
      %32 = func.call @"twice over"(%iterArg_1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      stablehlo.return %iterArg_0, %32 : tensor<i32>, tensor<2x3xf32>
    }
    %33 = "stablehlo.gather"(%arg0, %27) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<2x3x3xf32>
    %34 = "stablehlo.case"(%arg1) ({
      stablehlo.return %arg0 : tensor<2x3xf32>
    }, {
      %35 = stablehlo.negate %arg0 : tensor<2x3xf32>
      stablehlo.return %35 : tensor<2x3xf32>
    }) : (tensor<i32>) -> tensor<2x3xf32>
    %36 = stablehlo.convert %arg0 : (tensor<2x3xf32>) -> tensor<2x3xf64>
    %37 = stablehlo.complex %arg0, %arg0 : tensor<2x3xcomplex<f32>>
    %38 = stablehlo.real %37 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %39 = stablehlo.fft %37, type = FFT, length = [3] : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
    %40 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<2x3xf32>
    %41:2 = chlo.top_k(%arg0, k = 2) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
    %42 = chlo.erf_inv %arg0 : tensor<2x3xf32> -> tensor<2x3xf32>
    %43 = chlo.next_after %arg0, %arg0 : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
    %44 = chlo.is_inf %arg0 : tensor<2x3xf32> -> tensor<2x3xi1>
    %45 = stablehlo.composite "my.scale" %arg0 {composite_attributes = {s = 2.000000e+00 : f32}, decomposition = @"twice over", version = 2 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %46:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<2x3xf32>, tensor<i32>
    %47:2 = stablehlo.custom_call @lapack_spotrf_ffi(%22) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], mhlo.backend_config = {uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
    stablehlo.custom_call @"a target"(%arg0) {api_version = 4 : i32, backend_config = {a = 1 : i32}, called_computations = [@"twice over"], has_side_effect = true} : (tensor<2x3xf32>) -> ()
    %48 = sdy.sharding_constraint %arg0 <@alone, [{}, {"x"}]> : tensor<2x3xf32>
    %49 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<1x1x2x3xf32>
    %50 = stablehlo.convolution(%49, %49) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 2], pad = [[1, 1], [0, 2]], rhs_dilate = [2, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>]} : (tensor<1x1x2x3xf32>, tensor<1x1x2x3xf32>) -> tensor<1x1x2x2xf32>
    %51 = "stablehlo.scatter"(%arg0, %27, %33) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, indices_are_sorted = true, unique_indices = false}> ({
    ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
      %52 = stablehlo.add %arg8, %arg9 : tensor<f32>
      stablehlo.return %52 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x3x3xf32>) -> tensor<2x3xf32>
    %53:2 = "stablehlo.sort"(%arg0, %27) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>, %arg12: tensor<i32>, %arg13: tensor<i32>):
      %54 = stablehlo.compare LT, %arg10, %arg11, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %54 : tensor<i1>
    }) {mhlo.note = 1 : i32} : (tensor<2x3xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
    %55 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>}> ({
    ^bb0(%arg14: tensor<f32>, %arg15: tensor<f32>):
      %56 = stablehlo.add %arg14, %arg15 : tensor<f32>
      stablehlo.return %56 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %57 = "stablehlo.triangular_solve"(%arg3, %arg3) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %58 = stablehlo.cholesky %arg3, lower = true : tensor<4x4xf32>
    %59 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>, use_global_device_ids}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>):
      %60 = stablehlo.add %arg16, %arg17 : tensor<f32>
      stablehlo.return %60 : tensor<f32>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %61 = stablehlo.dynamic_slice %arg0, %arg1, %arg1, sizes = [1, 2] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
    %62 = stablehlo.dynamic_update_slice %arg0, %61, %arg1, %arg1 : (tensor<2x3xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    %63 = stablehlo.concatenate %arg0, %arg0, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
    %64 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %65 = stablehlo.reverse %arg0, dims = [0, 1] : tensor<2x3xf32>
    %66:2 = stablehlo.rng_bit_generator %arg2, algorithm = THREE_FRY : (tensor<2xui32>) -> (tensor<2xui32>, tensor<4xui32>)
    %67 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<2x3xf32>, tensor<i32>>
    %68 = stablehlo.get_tuple_element %67[1] : (tuple<tensor<2x3xf32>, tensor<i32>>) -> tensor<i32>
    %69 = stablehlo.create_token : !stablehlo.token
    %70 = stablehlo.after_all %69, %69 : !stablehlo.token
    %71 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2x3xf32>
    %72 = stablehlo.bitcast_convert %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi32>
    %73 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
    %74 = builtin.unrealized_conversion_cast %arg0 : tensor<2x3xf32> to tensor<6xf32>
    %75 = "stablehlo.dynamic_gather"(%arg0, %27, %15) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false}> : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2xi64>) -> tensor<2x3x?xf32>
    %76 = stablehlo.partition_id : tensor<ui32>
    %77 = "sdy.manual_computation"(%arg0) <{in_shardings = #sdy.sharding_per_value<[<@alone, [{"x"}, {}]>]>, manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@alone, [{"x"}, {}]>]>}> ({
    ^bb0(%arg18: tensor<2x3xf32>):
      %78 = stablehlo.negate %arg18 : tensor<2x3xf32>
      sdy.return %78 : tensor<2x3xf32>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %30#1, %28#1 : tensor<2x3xf32>, tensor<i32>
  }
  func.func private @"twice over"(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2x3xf32>
    %1 = call @outside(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
  func.func private @outside(tensor<2x3xf32>) -> tensor<2x3xf32>
}
