// SPDX-License-Identifier: Apache-2.0
// Attention and its gradient on a GPU, without one: what the structure of their PTX promises.
#include "ptx_support.h"

// The largest number of a row is that of f at the scores, and so is what the sum and the weights have.
#define ATTENTION(f)                                                                           \
    "kernel attention(q: bf16[4194304], k: bf16[4194304], v: bf16[4194304], y: out "           \
    "bf16[4194304]) {\n"                                                                       \
    "  local score: f32[1024]\n"                                                               \
    "  local row: f32[1024]\n"                                                                 \
    "  local weight: bf16[1024]\n"                                                             \
    "  %0 = const 0x3e000000 : f32\n"                                                          \
    "  par b < 64, i < 1024 {\n"                                                               \
    "    map j < 1024 {\n"                                                                     \
    "      fold d < 64 {\n"                                                                    \
    "        %1 = load q[65536*b + 64*i + d] : bf16\n"                                         \
    "        %2 = convert %1 : f32\n"                                                          \
    "        %3 = load k[65536*b + 64*j + d] : bf16\n"                                         \
    "        %4 = convert %3 : f32\n"                                                          \
    "        yield fma %2 %4 sum64\n"                                                          \
    "      } -> %5 : f32\n"                                                                    \
    "      put score[j] = %5\n"                                                                \
    "    }\n"                                                                                  \
    "    fold j < 1024 {\n"                                                                    \
    "      %6 = load score[j] : f32\n"                                                         \
    "      %7 = " f " %6, %0 : f32\n"                                                          \
    "      yield reduce_max %7 free\n"                                                         \
    "    } -> %8 : f32\n"                                                                      \
    "    fold j < 1024 {\n"                                                                    \
    "      %9 = load score[j] : f32\n"                                                         \
    "      %10 = mul %9, %0 : f32\n"                                                           \
    "      %11 = sub %10, %8 : f32\n"                                                          \
    "      %12 = exp %11 : f32\n"                                                              \
    "      put row[j] = %12\n"                                                                 \
    "      yield reduce_sum %12 sum64\n"                                                       \
    "    } -> %13 : f32\n"                                                                     \
    "    map j < 1024 {\n"                                                                     \
    "      %14 = load row[j] : f32\n"                                                          \
    "      %15 = div %14, %13 : f32\n"                                                         \
    "      %16 = convert %15 : bf16\n"                                                         \
    "      put weight[j] = %16\n"                                                              \
    "    }\n"                                                                                  \
    "    map c < 64 {\n"                                                                       \
    "      fold j < 1024 {\n"                                                                  \
    "        %17 = load weight[j] : bf16\n"                                                    \
    "        %18 = convert %17 : f32\n"                                                        \
    "        %19 = load v[65536*b + 64*j + c] : bf16\n"                                        \
    "        %20 = convert %19 : f32\n"                                                        \
    "        yield fma %18 %20 sum64\n"                                                        \
    "      } -> %21 : f32\n"                                                                   \
    "      %22 = convert %21 : bf16\n"                                                         \
    "      put y[65536*b + 64*i + c] = %22\n"                                                  \
    "    }\n"                                                                                  \
    "  }\n"                                                                                    \
    "}\n"

START_TEST(attention_is_of_tensor_cores)
{
    const char *ptx = ptx_of(ATTENTION("mul"));
    ck_assert_int_eq(count(ptx, ".entry"), 1);
    // 32 queries by 64 keys of depth 64, and by 64 columns.
    ck_assert_int_eq(count(ptx, "mma.sync.aligned.m16n8k16"), 2 * 2 * 8 * 4);
    ck_assert_int_eq(count(ptx, "ldmatrix.sync"), 2 * 4 * 4);
    // By references of before and, where those are too small, by new ones, whose factors are two more a tile.
    ck_assert_int_eq(count(ptx, "ex2.approx"), 2 * 2 * 32 + 4);
    ck_assert_ptr_nonnull(strstr(ptx, "cp.async.cg.shared.global"));
    ck_assert_ptr_null(strstr(ptx, ".local"));
    check_assembles(ptx);
    // Of warpgroups 64 queries by 64 keys, and values of the turn before meanwhile; the first scores and the last
    // values are by themselves.
    ptx = ptx_for(ATTENTION("mul"), "cuda sm_90a");
    ck_assert_int_eq(count(ptx, "mma.sync"), 0);
    ck_assert_int_eq(count(ptx, "wgmma.mma_async.sync.aligned.m64n64k16"), 2 * (4 + 4));
    ck_assert_int_eq(count(ptx, "wgmma.wait_group.sync.aligned 1"), 1);
    ck_assert_ptr_null(strstr(ptx, ".local"));
    check_assembles(ptx);
    // Who multiplies with whom stands in the text, which may say otherwise.
    const char *text = mapped_of(ATTENTION("mul"), "cuda sm_90a");
    text = replaced(text, "block 256 group 128 resident 2", "block 128 group 32");
    ck_assert_str_eq(text = replaced(text, "turns 1", "turns 2"),
                     mapped_of(ATTENTION("mul"), "cuda sm_90"));
    ck_assert_int_eq(count(ptx_for(text, "cuda sm_90a"), "wgmma"), 0);
    ptx = ptx_of(replaced(text, "turns 2", "turns 1"));
    ck_assert_int_eq(count(ptx, "mma.sync.aligned.m16n8k16"), 2 * 8 * 4);
    // What subtracts another largest number is no softmax.
    ck_assert_int_eq(count(ptx_of(ATTENTION("add")), "mma.sync"), 0);
}
END_TEST

#define ATTENTION_GRADIENT                                                                     \
    "kernel attention_gradient(q: bf16[8388608], k: bf16[8388608], v: bf16[8388608], dy: "     \
    "bf16[8388608], dq: out bf16[8388608], dk: out bf16[8388608], dv: out bf16[8388608]) {\n"  \
    "  local score: f32[1024]\n"                                                               \
    "  local weight: bf16[1048576]\n"                                                          \
    "  local change: bf16[1048576]\n"                                                          \
    "  local product: f32[1024]\n"                                                             \
    "  local row: f32[1024]\n"                                                                 \
    "  local row_2: f32[1024]\n"                                                               \
    "  %0 = const 0x4100 : bf16\n"                                                             \
    "  %1 = convert %0 : f32\n"                                                                \
    "  %2 = const 0x3f80 : bf16\n"                                                             \
    "  %3 = convert %2 : f32\n"                                                                \
    "  par i < 8, j < 16 {\n"                                                                  \
    "    map query < 1024 {\n"                                                                 \
    "      map key < 1024 {\n"                                                                 \
    "        fold d < 64 {\n"                                                                  \
    "          %4 = load q[1048576*i + 65536*j + 64*query + d] : bf16\n"                       \
    "          %5 = convert %4 : f32\n"                                                        \
    "          %6 = load k[1048576*i + 65536*j + 64*key + d] : bf16\n"                         \
    "          %7 = convert %6 : f32\n"                                                        \
    "          yield fma %5 %7 sum64\n"                                                        \
    "        } -> %8 : f32\n"                                                                  \
    "        put score[key] = %8\n"                                                            \
    "      }\n"                                                                                \
    "      map key < 1024 {\n"                                                                 \
    "        fold d < 64 {\n"                                                                  \
    "          %9 = load dy[1048576*i + 65536*j + 64*query + d] : bf16\n"                      \
    "          %10 = convert %9 : f32\n"                                                       \
    "          %11 = load v[1048576*i + 65536*j + 64*key + d] : bf16\n"                        \
    "          %12 = convert %11 : f32\n"                                                      \
    "          yield fma %10 %12 sum64\n"                                                      \
    "        } -> %13 : f32\n"                                                                 \
    "        put product[key] = %13\n"                                                         \
    "      }\n"                                                                                \
    "      fold l < 1024 {\n"                                                                  \
    "        %14 = load score[l] : f32\n"                                                      \
    "        %15 = div %14, %1 : f32\n"                                                        \
    "        put row[l] = %15\n"                                                               \
    "        yield reduce_max %15 free\n"                                                      \
    "      } -> %16 : f32\n"                                                                   \
    "      fold i_2 < 1024 {\n"                                                                \
    "        %17 = load row[i_2] : f32\n"                                                      \
    "        %18 = sub %17, %16 : f32\n"                                                       \
    "        %19 = exp %18 : f32\n"                                                            \
    "        put row_2[i_2] = %19\n"                                                           \
    "        yield reduce_sum %19 sum64\n"                                                     \
    "      } -> %20 : f32\n"                                                                   \
    "      %21 = integer_pow %20 {-2, 0} : f32\n"                                              \
    "      fold j_2 < 1024 {\n"                                                                \
    "        %22 = load product[j_2] : f32\n"                                                  \
    "        %23 = mul %22, %21 : f32\n"                                                       \
    "        %24 = load row_2[j_2] : f32\n"                                                    \
    "        %25 = mul %23, %24 : f32\n"                                                       \
    "        yield reduce_sum %25 sum64\n"                                                     \
    "      } -> %26 : f32\n"                                                                   \
    "      %27 = neg %26 : f32\n"                                                              \
    "      %28 = div %3, %20 : f32\n"                                                          \
    "      map k_2 < 1024 {\n"                                                                 \
    "        %29 = load row_2[k_2] : f32\n"                                                    \
    "        %30 = div %29, %20 : f32\n"                                                       \
    "        %31 = convert %30 : bf16\n"                                                       \
    "        put weight[1024*query + k_2] = %31\n"                                             \
    "        %32 = load product[k_2] : f32\n"                                                  \
    "        %33 = mul %32, %28 : f32\n"                                                       \
    "        %34 = add %27, %33 : f32\n"                                                       \
    "        %35 = mul %34, %29 : f32\n"                                                       \
    "        %36 = div %35, %1 : f32\n"                                                        \
    "        %37 = convert %36 : bf16\n"                                                       \
    "        put change[1024*query + k_2] = %37\n"                                             \
    "      }\n"                                                                                \
    "      map c < 64 {\n"                                                                     \
    "        fold key < 1024 {\n"                                                              \
    "          %38 = load change[1024*query + key] : bf16\n"                                   \
    "          %39 = convert %38 : f32\n"                                                      \
    "          %40 = load k[1048576*i + 65536*j + c + 64*key] : bf16\n"                        \
    "          %41 = convert %40 : f32\n"                                                      \
    "          yield fma %39 %41 sum64\n"                                                      \
    "        } -> %42 : f32\n"                                                                 \
    "        %43 = convert %42 : bf16\n"                                                       \
    "        put dq[1048576*i + 65536*j + 64*query + c] = %43\n"                               \
    "      }\n"                                                                                \
    "    }\n"                                                                                  \
    "    map key < 1024 {\n"                                                                   \
    "      map c < 64 {\n"                                                                     \
    "        fold m < 1024 {\n"                                                                \
    "          %44 = load weight[key + 1024*m] : bf16\n"                                       \
    "          %45 = convert %44 : f32\n"                                                      \
    "          %46 = load dy[1048576*i + 65536*j + c + 64*m] : bf16\n"                         \
    "          %47 = convert %46 : f32\n"                                                      \
    "          yield fma %45 %47 sum64\n"                                                      \
    "        } -> %48 : f32\n"                                                                 \
    "        %49 = convert %48 : bf16\n"                                                       \
    "        put dv[1048576*i + 65536*j + 64*key + c] = %49\n"                                 \
    "      }\n"                                                                                \
    "      map c < 64 {\n"                                                                     \
    "        fold m < 1024 {\n"                                                                \
    "          %50 = load change[key + 1024*m] : bf16\n"                                       \
    "          %51 = convert %50 : f32\n"                                                      \
    "          %52 = load q[1048576*i + 65536*j + c + 64*m] : bf16\n"                          \
    "          %53 = convert %52 : f32\n"                                                      \
    "          yield fma %51 %53 sum64\n"                                                      \
    "        } -> %54 : f32\n"                                                                 \
    "        %55 = convert %54 : bf16\n"                                                       \
    "        put dk[1048576*i + 65536*j + 64*key + c] = %55\n"                                 \
    "      }\n"                                                                                \
    "    }\n"                                                                                  \
    "  }\n"                                                                                    \
    "}\n"

START_TEST(gradient_of_attention_is_three_functions)
{
    const char *text = mapped_of(ATTENTION_GRADIENT, "cuda sm_90");
    ck_assert_ptr_nonnull(strstr(text, ") as attention_gradient block 256 group 32 grid 128"));
    ck_assert_ptr_nonnull(strstr(ptx_of(replaced(text, "256", "128")), ".maxntid 128"));
    const char *ptx = ptx_of(ATTENTION_GRADIENT);
    ck_assert_int_eq(count(ptx, ".entry"), 3);
    // 32 queries by 32 keys of depth 64, scores and products; the same of keys by queries, with
    // dv and dk; and 16 queries by 32 columns of dq, of 64 keys.
    ck_assert_int_eq(count(ptx, "mma.sync.aligned.m16n8k16"),
                     2 * 2 * 4 * 4 + 4 * 2 * 4 * 4 + 4 * 4);
    ck_assert_int_eq(count(ptx, "ex2.approx"), 32 + 4 + 4 + 32);
    ck_assert_ptr_nonnull(strstr(ptx, "cp.async.cg.shared.global"));
    ck_assert_ptr_null(strstr(ptx, "atom"));
    ck_assert_ptr_null(strstr(ptx, ".local"));
    check_assembles(ptx);
}
END_TEST

static void add_tests(TCase *c)
{
    tcase_add_test(c, attention_is_of_tensor_cores);
    tcase_add_test(c, gradient_of_attention_is_three_functions);
}

int main(void) { return run_ptx("gpu attention", add_tests); }
