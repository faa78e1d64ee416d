module @forms attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32> {jax.buffer_donor = true}, %arg1: tensor<3x2xf32>, %arg2: tensor<4xi32>) -> (tensor<2x3xf32> {jax.result_info = "result[0]"}, tensor<2x2xf32>) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2x3xf32>
    %1 = stablehlo.exponential %0 {result_accuracy = #stablehlo.result_accuracy<ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>
    %tb = stablehlo.tanh %0 {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, rtol = 2.500000e+00, ulps = 3, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>
    %tc = stablehlo.log %0 {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2x3xf32>
    %2 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %3 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false> : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %4:2 = func.call @helper(%1, %arg2) : (tensor<2x3xf32>, tensor<4xi32>) -> (tensor<2x3xf32>, tensor<4xi32>)
    %5 = stablehlo.composite "my.thing" %2 {composite_attributes = {k = 3 : i64, name = "x", flags = dense<[true, false]> : tensor<2xi1>, scale = 2.500000e-01 : f32, half = -1.5 : f16, on = true, list = [1 : i32, "a"], nested = {a = 1.0 : f64}}, decomposition = @thing, version = 2 : i32} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %6 = stablehlo.composite "my.other" %2 {decomposition = @thing} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %7 = stablehlo.custom_call @foo(%arg0) {api_version = 2 : i32, backend_config = "cfg\00x", called_computations = [@thing], has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %8 = stablehlo.custom_call @bar(%arg0) {api_version = 4 : i32, backend_config = {a = 1 : i64, b = "c"}, mhlo.frontend_attributes = {x = "1"}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %eb = stablehlo.custom_call @baz(%arg0) {api_version = 4 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    stablehlo.custom_call @nothing() : () -> ()
    return %4#0, %5 : tensor<2x3xf32>, tensor<2x2xf32>
  }
  func.func private @helper(%arg0: tensor<2x3xf32>, %arg1: tensor<4xi32>) -> (tensor<2x3xf32>, tensor<4xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<10> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<2x3xf32>
    cond {
      %1 = stablehlo.compare LT, %iterArg, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %iterArg, %one : tensor<i32>
      %p = stablehlo.compare GT, %iterArg, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %2 = "stablehlo.if"(%p) ({
        %3 = stablehlo.sine %iterArg_0 : tensor<2x3xf32>
        stablehlo.return %3 : tensor<2x3xf32>
      }, {
        stablehlo.return %arg0 : tensor<2x3xf32>
      }) : (tensor<i1>) -> tensor<2x3xf32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<2x3xf32>
    }
    %c2 = "stablehlo.case"(%c) ({
      stablehlo.return %arg1 : tensor<4xi32>
    }, {
      %3 = stablehlo.negate %arg1 : tensor<4xi32>
      stablehlo.return %3 : tensor<4xi32>
    }, {
      %3 = stablehlo.not %arg1 : tensor<4xi32>
      stablehlo.return %3 : tensor<4xi32>
    }) : (tensor<i32>) -> tensor<4xi32>
    return %0#1, %c2 : tensor<2x3xf32>, tensor<4xi32>
  }
  func.func private @thing(%arg0: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = stablehlo.cosine %arg0 : tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
  }
  func.func private @constants() {
    %0 = stablehlo.constant dense<true> : tensor<i1>
    %1 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %2 = stablehlo.constant dense<true> : tensor<3x40xi1>
    %3 = stablehlo.constant dense<false> : tensor<9xi1>
    %4 = stablehlo.constant dense<[true, false, true, true, true, false, false, true, true, true]> : tensor<10xi1>
    %5 = stablehlo.constant dense<[-8, 7, -1]> : tensor<3xi4>
    %6 = stablehlo.constant dense<[15, 0, 9]> : tensor<3xui4>
    %7 = stablehlo.constant dense<-3> : tensor<2x2xi4>
    %8 = stablehlo.constant dense<[1, -2, 0]> : tensor<3xi2>
    %9 = stablehlo.constant dense<[-1, 5]> : tensor<2xi8>
    %10 = stablehlo.constant dense<[255, 5]> : tensor<2xui8>
    %11 = stablehlo.constant dense<[-1, 5]> : tensor<2xi64>
    %12 = stablehlo.constant dense<[18446744073709551615, 5]> : tensor<2xui64>
    %13 = stablehlo.constant dense<(1.0,-2.0)> : tensor<2x2xcomplex<f64>>
    %14 = stablehlo.constant dense<[1.5, 0x7E00]> : tensor<2xf16>
    %15 = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf8E4M3FN>
    %16 = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf8E5M2>
    %17 = stablehlo.constant dense<> : tensor<0x3xf32>
    %18 = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xbf16>
    %19 = stablehlo.constant dense<[65535, 5]> : tensor<2xui16>
    %20 = stablehlo.constant dense<7> : tensor<1x1xi32>
    %21 = stablehlo.constant dense<[true, true, true, true, true, true, true, true]> : tensor<8xi1>
    %22 = stablehlo.constant dense<[true, false, false, false, false, false, false, false]> : tensor<8xi1>
    return
  }
  func.func private @unary(%x: tensor<4xf32>, %i: tensor<4xi32>, %z: tensor<4xcomplex<f32>>) {
    %0 = stablehlo.abs %x : tensor<4xf32>
    %1 = stablehlo.cbrt %x : tensor<4xf32>
    %2 = stablehlo.ceil %x : tensor<4xf32>
    %3 = stablehlo.floor %x : tensor<4xf32>
    %4 = stablehlo.exponential_minus_one %x : tensor<4xf32>
    %5 = stablehlo.log_plus_one %x : tensor<4xf32>
    %6 = stablehlo.logistic %x : tensor<4xf32>
    %7 = stablehlo.rsqrt %x : tensor<4xf32>
    %8 = stablehlo.sqrt %x : tensor<4xf32>
    %9 = stablehlo.tan %x : tensor<4xf32>
    %10 = stablehlo.sign %x : tensor<4xf32>
    %11 = stablehlo.round_nearest_afz %x : tensor<4xf32>
    %12 = stablehlo.round_nearest_even %x : tensor<4xf32>
    %13 = stablehlo.is_finite %x : (tensor<4xf32>) -> tensor<4xi1>
    %14 = stablehlo.popcnt %i : tensor<4xi32>
    %15 = stablehlo.count_leading_zeros %i : tensor<4xi32>
    %16 = stablehlo.real %z : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %17 = stablehlo.imag %z : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %18 = stablehlo.complex %16, %17 : tensor<4xcomplex<f32>>
    %19 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
    %20 = stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4xi32>
    %21 = stablehlo.reduce_precision %x, format = e5m10 : tensor<4xf32>
    %22 = stablehlo.optimization_barrier %x : tensor<4xf32>
    %23 = stablehlo.atan2 %x, %x : tensor<4xf32>
    %24 = stablehlo.power %x, %x : tensor<4xf32>
    %25 = stablehlo.remainder %x, %x : tensor<4xf32>
    %26 = stablehlo.shift_left %i, %i : tensor<4xi32>
    %27 = stablehlo.shift_right_arithmetic %i, %i : tensor<4xi32>
    %28 = stablehlo.shift_right_logical %i, %i : tensor<4xi32>
    %29 = stablehlo.clamp %x, %x, %x : tensor<4xf32>
    %30 = stablehlo.select %13, %x, %x : tensor<4xi1>, tensor<4xf32>
    %31 = stablehlo.compare EQ, %x, %x, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %32 = stablehlo.tuple %x, %i : tuple<tensor<4xf32>, tensor<4xi32>>
    %33 = stablehlo.get_tuple_element %32[1] : (tuple<tensor<4xf32>, tensor<4xi32>>) -> tensor<4xi32>
    %34 = stablehlo.create_token : !stablehlo.token
    %35 = stablehlo.after_all %34, %34 : !stablehlo.token
    %36 = stablehlo.partition_id : tensor<ui32>
    %37 = stablehlo.replica_id : tensor<ui32>
    %38:2 = stablehlo.optimization_barrier %x, %i : tensor<4xf32>, tensor<4xi32>
    return
  }
  func.func private @shape(%x: tensor<2x3x4xf32>, %i: tensor<i32>, %k: tensor<2xui64>) {
    %0 = stablehlo.broadcast_in_dim %x, dims = [1, 2, 3] : (tensor<2x3x4xf32>) -> tensor<5x2x3x4xf32>
    %1 = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %2 = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<24xf32>
    %3 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    %4 = stablehlo.reverse %x, dims = [0, 2] : tensor<2x3x4xf32>
    %5 = stablehlo.slice %x [0:2, 1:3:2, 0:4] : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
    %6 = stablehlo.concatenate %x, %x, dim = 1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
    %7 = stablehlo.iota dim = 1 : tensor<2x5xi32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %8 = stablehlo.pad %x, %z, low = [1, 0, -1], high = [0, 2, 0], interior = [0, 1, 0] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3x7x3xf32>
    %9 = stablehlo.dynamic_slice %x, %i, %i, %i, sizes = [1, 2, 3] : (tensor<2x3x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xf32>
    %10 = stablehlo.dynamic_update_slice %x, %9, %i, %i, %i : (tensor<2x3x4xf32>, tensor<1x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x4xf32>
    %11 = stablehlo.fft %x, type = RFFT, length = [3, 4] : (tensor<2x3x4xf32>) -> tensor<2x3x3xcomplex<f32>>
    %sq = stablehlo.constant dense<1.0> : tensor<2x4x4xf32>
    %12 = stablehlo.cholesky %sq, lower = true : tensor<2x4x4xf32>
    %13 = stablehlo.cholesky %sq : tensor<2x4x4xf32>
    %14 = "stablehlo.triangular_solve"(%sq, %sq) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %15, %16 = stablehlo.rng_bit_generator %k, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
    %sh = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
    %17 = stablehlo.rng %z, %z, %sh, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>
    %18 = "stablehlo.torch_index_select"(%x, %k) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<2x3x4xf32>, tensor<2xui64>) -> tensor<2x3x4xf32>
    %19 = "stablehlo.einsum"(%sq, %sq) <{einsum_config = "bij,bjk->bik"}> : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %20 = stablehlo.broadcast %i, sizes = [2, 3] : (tensor<i32>) -> tensor<2x3xi32>
    %21:2 = "stablehlo.sort"(%x, %x) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
      %s = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>)
    %22 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 0, 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %23 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 2] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3xf32>
    %24 = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[0, 0], [1, 1], [0, 0]]> : tensor<3x2xi64>, window_dilations = array<i64: 1, 2, 1>, window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x2xf32>
    %25 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 1, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
    %src = stablehlo.constant dense<1.0> : tensor<2x2x4xf32>
    %26 = "stablehlo.select_and_scatter"(%x, %src, %z) <{window_dimensions = array<i64: 1, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x3x4xf32>, tensor<2x2x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
    return
  }
  func.func private @index(%x: tensor<3x4x2xi32>, %i: tensor<2x3x2xi64>, %u: tensor<2x3x2x2xi32>) {
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [1, 0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 2, 2>}> : (tensor<3x4x2xi32>, tensor<2x3x2xi64>) -> tensor<2x3x2x2xi32>
    %1 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2, 3], inserted_window_dims = [0], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }) : (tensor<3x4x2xi32>, tensor<2x3x2xi64>, tensor<2x3x2x2xi32>) -> tensor<3x4x2xi32>
    return
  }
  func.func private @conv(%x: tensor<1x8x8x4xf32>, %k: tensor<3x3x2x6xf32>) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 2]], lhs_dilate = [1, 2], rhs_dilate = [2, 1], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<1x3x15x6xf32>
    %1 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[f, 0, b, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<6x6x1x6xf32>
    return
  }
  func.func private @norm(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
    %0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %1:3 = "stablehlo.batch_norm_training"(%x, %s, %s) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %2:3 = "stablehlo.batch_norm_grad"(%x, %s, %s, %s, %x) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
    return
  }
  func.func private @many(%x: tensor<4x2xf32>, %t: !stablehlo.token) {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> : (tensor<4x2xf32>) -> tensor<8x2xf32>
    %1 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %2 = "stablehlo.all_to_all"(%x) <{concat_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x2xf32>) -> tensor<2x4xf32>
    %3 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %4 = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %5 = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x2xf32>) -> tensor<2x2xf32>
    %6:2 = "stablehlo.infeed"(%t) <{infeed_config = "cfg", layout = [[0, 1]]}> : (!stablehlo.token) -> (tensor<2x2xf32>, !stablehlo.token)
    %7 = "stablehlo.outfeed"(%x, %t) <{outfeed_config = ""}> : (tensor<4x2xf32>, !stablehlo.token) -> !stablehlo.token
    %8 = "stablehlo.send"(%x, %t) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> : (tensor<4x2xf32>, !stablehlo.token) -> !stablehlo.token
    %9:2 = "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2x2xf32>, !stablehlo.token)
    return
  }
  func.func private @dynamic(%x: tensor<?x3xf32>, %s: tensor<2xi32>, %i: tensor<2x1xi64>) {
    %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.dynamic_reshape %x, %s : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<3x?xf32>
    %2 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>} : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %3 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0, 1] : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %4 = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi32>) -> tensor<?x?xi32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %5 = stablehlo.dynamic_pad %x, %z, %s, %s, %s : (tensor<?x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %6 = stablehlo.real_dynamic_slice %x, %s, %s, %s : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %7 = "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<?x3xf32>, tensor<2x1xi64>, tensor<2xi32>) -> tensor<2x?xf32>
    %8 = stablehlo.set_dimension_size %x, %0, dim = 0 : (tensor<?x3xf32>, tensor<i32>) -> tensor<?x3xf32>
    return
  }
  func.func private @dynamic_conv(%x: tensor<1x8x8x4xf32>, %k: tensor<3x3x2x6xf32>, %p: tensor<2x2xi64>) {
    %0 = "stablehlo.dynamic_conv"(%x, %k, %p) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 2 : i64}> : (tensor<1x8x8x4xf32>, tensor<3x3x2x6xf32>, tensor<2x2xi64>) -> tensor<1x?x?x6xf32>
    return
  }
  func.func private @types(%a: tensor<1xf8E4M3>, %b: tensor<1xf8E3M4>, %c: tensor<1xf8E4M3FNUZ>, %d: tensor<1xf8E5M2FNUZ>, %e: tensor<1xf8E4M3B11FNUZ>, %f: tensor<1xf8E8M0FNU>, %g: tensor<1xf6E2M3FN>, %h: tensor<1xf6E3M2FN>, %j: tuple<tensor<f32>, tuple<!stablehlo.token>>, %k: tensor<*xf32>, %l: tensor<1xi2>, %m: tensor<1xui2>) {
    return
  }
  func.func private @batching(%x: tensor<5x4x2xi32>, %i: tensor<5x3x1xi64>, %u: tensor<5x3x2xi32>) {
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 2>}> : (tensor<5x4x2xi32>, tensor<5x3x1xi64>) -> tensor<5x3x2xi32>
    return
  }
}
