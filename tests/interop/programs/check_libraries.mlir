// Routines of linear algebra by the names that JAX calls them by.
module @libraries {
  func.func private @inputs() -> (tensor<2x2xf32>, tensor<2x3xi32>, tensor<2x3xf32>) {
    %a = stablehlo.constant dense<[[4.0, 1.0], [2.0, 3.0]]> : tensor<2x2xf32>
    %p = stablehlo.constant dense<[[2, 2, 2], [0, 1, 2]]> : tensor<2x3xi32>
    %b = stablehlo.constant dense<[[3.0, 0.0, 0.0], [0.0, -2.0, 0.0]]> : tensor<2x3xf32>
    return %a, %p, %b : tensor<2x2xf32>, tensor<2x3xi32>, tensor<2x3xf32>
  }
  func.func public @main() {
    %in:3 = call @inputs() : () -> (tensor<2x2xf32>, tensor<2x3xi32>, tensor<2x3xf32>)
    // The lower triangle of [[4, 2], [2, 3]]; the element above stays.
    %l:2 = stablehlo.custom_call @lapack_spotrf_ffi(%in#0) {mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
    check.expect_close_const %l#0, dense<[[2.0, 1.0], [1.0, 1.41421354]]> : tensor<2x2xf32>
    check.expect_eq_const %l#1, dense<0> : tensor<i32>
    // Pivots count from 1.
    %lu:3 = stablehlo.custom_call @cusolver_getrf_ffi(%in#0) : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xi32>, tensor<i32>)
    check.expect_close_const %lu#0, dense<[[4.0, 1.0], [0.5, 2.5]]> : tensor<2x2xf32>
    check.expect_eq_const %lu#1, dense<[1, 2]> : tensor<2xi32>
    %rows = stablehlo.custom_call @cu_lu_pivots_to_permutation(%in#1) : (tensor<2x3xi32>) -> tensor<2x4xi32>
    check.expect_eq_const %rows, dense<[[2, 0, 1, 3], [0, 1, 2, 3]]> : tensor<2x4xi32>
    // On a processor of other makers from 0, with the permutation; eigenvalues of the upper triangle.
    %tall = stablehlo.constant dense<[[0.0, 1.0], [2.0, 2.0], [4.0, 8.0]]> : tensor<3x2xf32>
    %lu3:3 = stablehlo.custom_call @LuDecomposition(%tall) : (tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<2xi32>, tensor<3xi32>)
    check.expect_close_const %lu3#0, dense<[[4.0, 8.0], [0.5, -2.0], [0.0, -0.5]]> : tensor<3x2xf32>
    check.expect_eq_const %lu3#1, dense<[2, 1]> : tensor<2xi32>
    check.expect_eq_const %lu3#2, dense<[2, 1, 0]> : tensor<3xi32>
    %half = stablehlo.constant dense<[[1.0, 2.0], [7.0, 1.0]]> : tensor<2x2xf32>
    %eigh:2 = stablehlo.custom_call @Eigh(%half) {backend_config = "0,1,100,1e-6"} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>)
    check.expect_almost_eq_const %eigh#1, dense<[-1.0, 3.0]> : tensor<2xf32>
    %both:3 = stablehlo.custom_call @hipsolver_getrf_ffi(%in#0) : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xi32>, tensor<i32>)
    check.expect_eq_const %both#1, dense<[1, 2]> : tensor<2xi32>
    // Singular values; U diag(s) V^H is the matrix again, by rows and by columns.
    %svd:5 = stablehlo.custom_call @cusolver_gesvd_ffi(%in#2) {mhlo.backend_config = {full_matrices = false, compute_uv = true, transposed = true}} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<2x2xf32>, tensor<i32>)
    check.expect_almost_eq_const %svd#1, dense<[3.0, 2.0]> : tensor<2xf32>
    %s = stablehlo.broadcast_in_dim %svd#1, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
    %us = stablehlo.multiply %svd#3, %s : tensor<2x2xf32>
    %a = stablehlo.dot_general %us, %svd#2, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    check.expect_almost_eq %a, %in#2 : tensor<2x3xf32>
    %jac:5 = stablehlo.custom_call @cusolver_gesvdj_ffi(%in#2) : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2x2xf32>, tensor<3x3xf32>, tensor<i32>)
    %v = stablehlo.slice %jac#3 [0:3, 0:2] : (tensor<3x3xf32>) -> tensor<3x2xf32>
    %us2 = stablehlo.multiply %jac#2, %s : tensor<2x2xf32>
    %b = stablehlo.dot_general %us2, %v, contracting_dims = [1] x [1] : (tensor<2x2xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
    check.expect_almost_eq %b, %in#2 : tensor<2x3xf32>
    // Q R of the pair of calls that JAX makes.
    %qr:2 = stablehlo.custom_call @Qr(%in#0) : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>)
    %q = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%qr#0, %qr#1) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    %c = stablehlo.dot_general %q, %qr#0, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    check.expect_almost_eq %c, %in#0 : tensor<2x2xf32>
    %solved = stablehlo.custom_call @lapack_strsm_ffi(%lu#0, %in#0) {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 85 : ui8}} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    check.expect_almost_eq_const %solved, dense<[[0.8, -0.05], [0.8, 1.2]]> : tensor<2x2xf32>
    // Reflectors that are read, of geqrf and of gehrd, and their product; the lower triangle of sytrd.
    %raw:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%in#0) : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>)
    check.expect_almost_eq_const %raw#0, dense<[[-4.472136, -2.236068], [0.236068, 2.236068]]> : tensor<2x2xf32>
    check.expect_almost_eq_const %raw#1, dense<[1.894427, 0.0]> : tensor<2xf32>
    %rawq = stablehlo.custom_call @lapack_sorgqr_ffi(%raw#0, %raw#1) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    check.expect_almost_eq_const %rawq, dense<[[-0.894427, -0.447214], [-0.447214, 0.894427]]> : tensor<2x2xf32>
    %square = stablehlo.constant dense<[[1.0, 2.0, 3.0], [3.0, 0.0, 1.0], [4.0, 1.0, 0.0]]> : tensor<3x3xf64>
    %hess:3 = stablehlo.custom_call @lapack_dgehrd_ffi(%square) {mhlo.backend_config = {high = 3 : i32, low = 1 : i32}} : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<2xf64>, tensor<i32>)
    check.expect_almost_eq_const %hess#0, dense<[[1.0, -3.6, 0.2], [-5.0, 0.96, 0.28], [0.5, 0.28, -0.96]]> : tensor<3x3xf64>
    check.expect_almost_eq_const %hess#1, dense<[1.6, 0.0]> : tensor<2xf64>
    %tri:5 = stablehlo.custom_call @lapack_dsytrd_ffi(%square) {mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xf64>, tensor<2xf64>, tensor<2xf64>, tensor<i32>)
    check.expect_almost_eq_const %tri#0, dense<[[1.0, 2.0, 3.0], [-5.0, 0.96, 1.0], [0.5, 0.28, -0.96]]> : tensor<3x3xf64>
    check.expect_almost_eq_const %tri#1, dense<[1.0, 0.96, -0.96]> : tensor<3xf64>
    check.expect_almost_eq_const %tri#2, dense<[-5.0, 0.28]> : tensor<2xf64>
    // Eigenvalues beside the form of Schur: 2i, -2i and 5.
    %turn = stablehlo.constant dense<[[0.0, 2.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 5.0]]> : tensor<3x3xf64>
    %schur:6 = stablehlo.custom_call @lapack_dgees_ffi(%turn) {mhlo.backend_config = {mode = 86 : ui8, sort = 78 : ui8}} : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<i32>, tensor<i32>)
    check.expect_almost_eq_const %schur#2, dense<[0.0, 0.0, 5.0]> : tensor<3xf64>
    check.expect_almost_eq_const %schur#3, dense<[2.0, -2.0, 0.0]> : tensor<3xf64>
    // The least of each column, and the greatest of each row, with their places.
    %t = stablehlo.constant dense<[[3.0, 1.0], [-2.0, 4.0], [5.0, 0.5]]> : tensor<3x2xf32>
    %i = stablehlo.iota dim = 0 : tensor<3x2xi32>
    %j = stablehlo.iota dim = 1 : tensor<3x2xi32>
    %x = stablehlo.constant dense<0.0> : tensor<f32>
    %k = stablehlo.constant dense<-1> : tensor<i32>
    %least:2 = stablehlo.custom_call @ApproxTopK(%t, %i, %x, %k) {called_computations = [@less], mhlo.backend_config = {aggregate_to_topk = true, reduction_dim = 0 : i64, top_k = 2 : i64}} : (tensor<3x2xf32>, tensor<3x2xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
    check.expect_eq_const %least#0, dense<[[-2.0, 0.5], [3.0, 1.0]]> : tensor<2x2xf32>
    check.expect_eq_const %least#1, dense<[[1, 2], [0, 0]]> : tensor<2x2xi32>
    %most:2 = stablehlo.custom_call @ApproxTopK(%t, %j, %x, %k) {called_computations = [@greater], mhlo.backend_config = {aggregate_to_topk = true, reduction_dim = 1 : i64, top_k = 1 : i64}} : (tensor<3x2xf32>, tensor<3x2xi32>, tensor<f32>, tensor<i32>) -> (tensor<3x1xf32>, tensor<3x1xi32>)
    check.expect_eq_const %most#0, dense<[[3.0], [4.0], [5.0]]> : tensor<3x1xf32>
    check.expect_eq_const %most#1, dense<[[0], [1], [0]]> : tensor<3x1xi32>
    return
  }
  func.func private @less(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func private @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
}
