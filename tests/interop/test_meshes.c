// SPDX-License-Identifier: Apache-2.0
// Programs of several partitions or of a mesh of devices, read, run and written.
#include "interop/program_support.h"

// ---- several partitions ----

#define GROUPS(rows, type) "replica_groups = dense<" rows "> : tensor<" type "xi64>"
#define CHANNEL "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
#define REGION(op)                                                                             \
    " ({\n^bb0(%a: tensor<f64>, %b: tensor<f64>):\n  %s = stablehlo." op                       \
    " %a, %b : tensor<f64>\n  stablehlo.return %s : tensor<f64>\n})"
#define IN_FOUR GROUPS("[[0, 1, 2, 3]]", "1x4")
#define IN_PAIRS GROUPS("[[0, 2], [3, 1]]", "2x2")
#define IN_THREE_AND_ONE GROUPS("[[3, 0, 2], [1, -1, -1]]", "2x3")

// Of x: tensor<4x2xf64> in each of four partitions; what they give, by partition, as operations on all.
struct collective {
    const char *body, *type;
    jot_value (*whole)(jot_value x); // f64[4,4,2]
};

static jot_value spread(jot_value y) { return jot_broadcast_to(y, 4, 4, 2); }
static jot_value sum_of_all(jot_value x) { return spread(jot_sum(x, 0)); }
static jot_value product_of_all(jot_value x) { return spread(jot_prod(x, 0)); }
static jot_value max_of_all(jot_value x) { return spread(jot_max(x, 0)); }
static jot_value part(jot_value x, int i) { return jot_take(x, i); }
static jot_value max_of_pairs(jot_value x)
{
    jot_value a = jot_maximum(part(x, 0), part(x, 2)), b = jot_maximum(part(x, 3), part(x, 1));
    return jot_stack(0, a, b, a, b);
}
static jot_value rows_of_all(jot_value x)
{
    return jot_broadcast_to(jot_reshape(x, 16, 2), 4, 16, 2);
}
static jot_value columns_of_pairs(jot_value x)
{
    jot_value a = jot_concatenate(1, part(x, 0), part(x, 2));
    jot_value b = jot_concatenate(1, part(x, 3), part(x, 1));
    return jot_stack(0, a, b, a, b);
}
static jot_value sum_in_parts(jot_value x) { return jot_reshape(jot_sum(x, 0), 4, 1, 2); }
static jot_value columns_of_sums(jot_value x)
{
    jot_value a = jot_add(part(x, 0), part(x, 2)), b = jot_add(part(x, 3), part(x, 1));
    return jot_stack(0, jot_slice(a, 1, 0, 1), jot_slice(b, 1, 1, 2), jot_slice(a, 1, 1, 2),
                     jot_slice(b, 1, 0, 1));
}
static jot_value turned(jot_value x) // x[i, k, :] to [k, 0, (i, :)]
{
    return jot_reshape(jot_move_axis(x, 0, 1), 4, 1, 8);
}
static jot_value turned_pairs(jot_value x) // columns to partitions, rows one after the other
{
    jot_value a = part(x, 0), b = part(x, 2), c = part(x, 3), d = part(x, 1);
#define COLUMN(v, k) jot_slice(v, 1, k, k + 1)
    return jot_stack(0, jot_concatenate(0, COLUMN(a, 0), COLUMN(b, 0)),
                     jot_concatenate(0, COLUMN(c, 1), COLUMN(d, 1)),
                     jot_concatenate(0, COLUMN(a, 1), COLUMN(b, 1)),
                     jot_concatenate(0, COLUMN(c, 0), COLUMN(d, 0)));
}
static jot_value moved(jot_value x)
{
    return jot_stack(0, part(x, 1), part(x, 2), jot_zeros(JOT_F64, 4, 2), part(x, 0));
}
static jot_value first_of_pairs(jot_value x)
{
    return jot_stack(0, part(x, 0), part(x, 3), part(x, 0), part(x, 3));
}
static jot_value first_of_one_pair(jot_value x)
{
    jot_value none = jot_zeros(JOT_F64, 4, 2);
    return jot_stack(0, none, part(x, 3), none, part(x, 3));
}
static jot_value max_of_three_and_one(jot_value x)
{
    jot_value a = jot_maximum(jot_maximum(part(x, 0), part(x, 2)), part(x, 3));
    return jot_stack(0, a, part(x, 1), a, a);
}
static jot_value first_of_three_and_one(jot_value x)
{
    return jot_stack(0, part(x, 3), part(x, 1), part(x, 3), part(x, 3));
}
static jot_value numbered(jot_value x)
{
    return jot_add(jot_mul(0, x), jot_reshape(jot_arange(JOT_F64, 4), 4, 1, 1));
}

static const struct collective collectives[] = {
    {"\"stablehlo.all_reduce\"(%x) <{" CHANNEL IN_FOUR
     ", use_global_device_ids}>" REGION("add"),
     "4x2", sum_of_all},
    {"\"stablehlo.all_reduce\"(%x) <{" CHANNEL IN_FOUR
     ", use_global_device_ids}>" REGION("multiply"),
     "4x2", product_of_all},
    {"\"stablehlo.all_reduce\"(%x) <{" CHANNEL GROUPS("[[0]]", "1x1") "}>" REGION("maximum"),
     "4x2", max_of_all},
    {"\"stablehlo.all_reduce\"(%x) <{" CHANNEL IN_PAIRS
     ", use_global_device_ids}>" REGION("maximum"),
     "4x2", max_of_pairs},
    {"\"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : i64, " CHANNEL IN_FOUR
     ", use_global_device_ids}>",
     "16x2", rows_of_all},
    {"\"stablehlo.all_gather\"(%x) <{all_gather_dim = 1 : i64, " CHANNEL IN_PAIRS
     ", use_global_device_ids}>",
     "4x4", columns_of_pairs},
    {"\"stablehlo.reduce_scatter\"(%x) <{" CHANNEL IN_FOUR
     ", scatter_dimension = 0 : i64, use_global_device_ids}>" REGION("add"),
     "1x2", sum_in_parts},
    {"\"stablehlo.reduce_scatter\"(%x) <{" CHANNEL IN_PAIRS
     ", scatter_dimension = 1 : i64, use_global_device_ids}>" REGION("add"),
     "4x1", columns_of_sums},
    {"\"stablehlo.all_to_all\"(%x) <{" CHANNEL "concat_dimension = 1 : i64, " IN_FOUR
     ", split_count = 4 : i64, split_dimension = 0 : i64}>",
     "1x8", turned},
    {"\"stablehlo.all_to_all\"(%x) <{" CHANNEL "concat_dimension = 0 : i64, " IN_PAIRS
     ", split_count = 2 : i64, split_dimension = 1 : i64}>",
     "8x1", turned_pairs},
    {"\"stablehlo.collective_permute\"(%x) <{" CHANNEL
     "source_target_pairs = dense<[[1, 0], [2, 1], [0, 3]]> : tensor<3x2xi64>}>",
     "4x2", moved},
    {"\"stablehlo.collective_broadcast\"(%x) <{" CHANNEL IN_PAIRS "}>", "4x2", first_of_pairs},
    {"\"stablehlo.collective_broadcast\"(%x) <{" CHANNEL GROUPS("[[3, 1]]", "1x2") "}>", "4x2",
     first_of_one_pair},
    {"\"stablehlo.all_reduce\"(%x) <{" CHANNEL IN_THREE_AND_ONE
     ", use_global_device_ids}>" REGION("maximum"),
     "4x2", max_of_three_and_one},
    {"\"stablehlo.collective_broadcast\"(%x) <{" CHANNEL IN_THREE_AND_ONE "}>", "4x2",
     first_of_three_and_one},
};

START_TEST(run_in_several_partitions)
{
    const struct collective *c = &collectives[_i];
    char text[2000];
    snprintf(text, sizeof text,
             "func.func @main(%%x: tensor<4x2xf64>) -> tensor<%sxf64> {\n  %%0 = %s : "
             "(tensor<4x2xf64>) -> tensor<%sxf64>\n  return %%0 : tensor<%sxf64>\n}\n",
             c->type, c->body, c->type, c->type);
    double at[32];
    for (int i = 0; i < 32; i++)
        at[i] = (i * 7 % 11) / 4.0 - 1;
    jot_array *x = jot_array_from(at, 4, 4, 2), *y = NULL, *want = NULL;
    jot_program *p = read_text(text);
    jot_executable *f = jot_jit(jot_vmap_named(jot_program_function(p, "main"), "partition"));
    jot_executable *g =
        jot_jit(jot_function_plain("whole", "whole", 1, (void (*)(void))c->whole));
    ck_assert_msg(jot_call_list(f, 1, &x, 1, &y) == JOT_OK &&
                      jot_call_list(g, 1, &x, 1, &want) == JOT_OK,
                  "%s", jot_error_message());
    ck_assert_uint_eq(jot_array_size(y), jot_array_size(want));
    for (size_t i = 0; i < jot_array_size(y); i++) {
        double have = ((const double *)jot_array_data(y))[i],
               right = ((const double *)jot_array_data(want))[i];
        ck_assert_msg(have == right, "%.40s: element %zu is %g, not %g", c->body, i, have,
                      right);
    }
    jot_arrays_release(3, (jot_array *[]){x, y, want});
    jot_executable_release(f), jot_executable_release(g);
    jot_program_release(p);
}
END_TEST

static const char own_number[] =
    "func.func @main(%x: tensor<4x2xf64>) -> tensor<4x2xf64> {\n"
    "  %p = stablehlo.partition_id : tensor<ui32>\n"
    "  %r = stablehlo.replica_id : tensor<ui32>\n"
    "  %s = stablehlo.add %p, %r : tensor<ui32>\n"
    "  %f = stablehlo.convert %s : (tensor<ui32>) -> tensor<f64>\n"
    "  %0 = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f64>) -> tensor<4x2xf64>\n"
    "  return %0 : tensor<4x2xf64>\n"
    "}\n";

START_TEST(know_their_number)
{
    jot_program *p = read_text(own_number);
    jot_array *x = jot_array_full(JOT_F64, 1, 4, 4, 2), *one = jot_array_full(JOT_F64, 1, 4, 2);
    jot_executable *f = jot_jit(jot_vmap_named(jot_program_function(p, "main"), "partition"));
    jot_executable *g = jot_jit(jot_program_function(p, "main")),
                   *h = jot_jit(jot_fn(numbered));
    jot_array *y = NULL, *z = NULL, *want = NULL;
    ck_assert_int_eq(jot_call_list(f, 1, &x, 1, &y), JOT_OK);
    ck_assert_int_eq(jot_call_list(g, 1, &one, 1, &z), JOT_OK);
    ck_assert_int_eq(jot_call_list(h, 1, &x, 1, &want), JOT_OK);
    ck_assert(!memcmp(jot_array_data(y), jot_array_data(want), jot_array_bytes(want)));
    ck_assert(((const double *)jot_array_data(z))[0] == 0);
    jot_arrays_release(5, (jot_array *[]){x, one, y, z, want});
    jot_executable_release(f), jot_executable_release(g), jot_executable_release(h);
    jot_program_release(p);
}
END_TEST

// ---- what devices of a mesh do ----

#define MANUAL(axes)                                                                           \
    "sdy.mesh @grid = <[\"x\"=2, \"y\"=2]>\n"                                                  \
    "func.func @main(%x: tensor<8x4xf64>) -> (tensor<8x4xf64>, tensor<8x2xf64>, "              \
    "tensor<4x2xf64>) {\n"                                                                     \
    "  %0:3 = sdy.manual_computation(%x) in_shardings=[<@grid, [{\"x\"}, {\"y\"}]>] "          \
    "out_shardings=[<@grid, [{\"x\"}, {}]>, <@grid, [{\"x\"}, {}]>, <@grid, [{}, {}]>] "       \
    "manual_axes={" axes "} (%p: tensor<4x2xf64> loc(\"p\")) {\n"                              \
    "    %k = stablehlo.partition_id : tensor<ui32>\n"                                         \
    "    %f = stablehlo.convert %k : (tensor<ui32>) -> tensor<f64>\n"                          \
    "    %q = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f64>) -> tensor<4x2xf64>\n"   \
    "    %c = stablehlo.add %p, %q : tensor<4x2xf64>\n"                                        \
    "    %1 = \"stablehlo.all_gather\"(%c) <{all_gather_dim = 1 : i64, " CHANNEL GROUPS(       \
        "[[0, 1], [2, 3]]",                                                                    \
        "2x2") ", use_global_device_ids}> : (tensor<4x2xf64>) -> "                             \
               "tensor<4x4xf64>\n"                                                             \
               "    %2 = \"stablehlo.all_reduce\"(%p) <{" CHANNEL                              \
                   GROUPS("[[0, 1], [2, 3]]", "2x2") ", use_global_device_ids}>" REGION(       \
                       "add") " : (tensor<4x2xf64>) -> tensor<4x2xf64>\n"                      \
                              "    %3 = \"stablehlo.collective_broadcast\"(%p) <{" CHANNEL     \
                                  GROUPS(                                                      \
                                      "[[0, 1, 2, 3]]",                                        \
                                      "1x4") "}> : (tensor<4x2xf64>) -> tensor<4x2xf64>\n"     \
                                             "    sdy.return %1, %2, %3 : tensor<4x4xf64>, "   \
                                             "tensor<4x2xf64>, tensor<4x2xf64>\n"              \
                                             "  } : (tensor<8x4xf64>) -> (tensor<8x4xf64>, "   \
                                             "tensor<8x2xf64>, tensor<4x2xf64>)\n"             \
                                             "  return %0#0, %0#1, %0#2 : tensor<8x4xf64>, "   \
                                             "tensor<8x2xf64>, tensor<4x2xf64>\n}\n"

// As it is printed, or of JAX's bytecode with groups by axes of the mesh; and as the general form of it that is
// written.
START_TEST(run_on_the_devices_of_a_mesh)
{
    ck_assert_int_eq(jot_set_host_devices(4), JOT_OK);
    static char general[1 << 14];
    size_t n;
    jot_program *p = _i & 1 ? read_file("mesh.jaxexport") : read_text(MANUAL("\"x\", \"y\""));
    if (_i > 1) {
        ck_assert_msg(jot_program_to_memory(p, JOT_PROGRAM_TEXT, general, sizeof general, &n) ==
                          JOT_OK,
                      "%s", jot_error_message());
        jot_program_release(p);
        p = read_text(general);
    }
    double at[32];
    for (int i = 0; i < 32; i++)
        at[i] = i * 7 % 11;
    jot_array *x = jot_array_from(at, 8, 4), *y[3];
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    ck_assert_msg(jot_call(f, JOT_IN(x), JOT_OUT(y)) == JOT_OK, "%s", jot_error_message());
    const char *text = jot_executable_text(f, "schedule"); // which the evaluator has not
    ck_assert(!text || strstr(text, "all_reduce sum of 64 bytes over 2 devices"));
    const double *all = jot_array_data(y[0]), *sums = jot_array_data(y[1]),
                 *first = jot_array_data(y[2]);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 4; k++) {
            ck_assert(all[4 * i + k] == at[4 * i + k] + i / 4 * 2 + k / 2);
            ck_assert(sums[2 * i + k % 2] == at[4 * i + k % 2] + at[4 * i + k % 2 + 2]);
            ck_assert(i > 3 || k > 1 || first[2 * i + k] == at[4 * i + k]);
        }
    jot_arrays_release(4, (jot_array *[]){x, y[0], y[1], y[2]});
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// Axes that are not manual; a mesh larger than the devices.
START_TEST(meshes_that_are_not_read)
{
    static const char *const messages[] = {
        "text.mlir:3: sdy.manual_computation: 1 of the 2 axes of its mesh are manual",
        "text.mlir:3: sdy.manual_computation: jot_mesh_of: a mesh of 4 devices"};
    ck_assert_int_eq(jot_set_host_devices(_i ? 1 : 4), JOT_OK);
    jot_program *p = read_text(_i ? MANUAL("\"x\", \"y\"") : MANUAL("\"x\""));
    jot_array *x = jot_array_full(JOT_F64, 0, 8, 4), *y[3];
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    ck_assert(jot_call(f, JOT_IN(x), JOT_OUT(y)) != JOT_OK);
    ck_assert_msg(strstr(jot_error_message(), messages[_i]), "%s", jot_error_message());
    jot_array_release(x);
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// ---- functions on meshes as programs ----

// x: f64[8,4], in pieces along rows over x and columns over y
static jot_value on_mesh(jot_value x)
{
    jot_value sum = jot_psum(x, "y"), most = jot_pmax(jot_sum(x), "x, y");
    jot_value rows = jot_psum_scatter(jot_matmul(x, jot_transpose(x)), "x", .tiled = true);
    jot_value all = jot_all_gather(rows, "x", .tiled = true); // f64[4,4]
    jot_value turned = jot_all_to_all(x, "y", .axis = 1, .to = 0, .tiled = true);
    jot_value moved = jot_ppermute(x, "x", 0, 1);
    jot_value own = jot_add(jot_axis_index("x"), jot_mul(10, jot_axis_index("y")));
    jot_value y = jot_add(jot_mul(sum, moved), jot_add(most, own));
    return jot_add(jot_add(y, jot_sum(all)), jot_reshape(turned, 4, 2));
}

static void copy_block(const double *from, double *to, int device, bool is_out)
{
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 2; c++) {
            int whole = (device / 2 * 4 + r) * 4 + device % 2 * 2 + c,
                piece = device * 8 + r * 2 + c;
            to[is_out ? whole : piece] = from[is_out ? piece : whole];
        }
}

START_TEST(functions_on_meshes_are_written)
{
    ck_assert_int_eq(jot_set_host_devices(4), JOT_OK);
    jot_mesh *mesh = jot_mesh_of(JOT_HOST, {"x", 2}, {"y", 2});
    ck_assert_msg(mesh != NULL, "%s", jot_error_message());
    jot_function f =
        jot_shard_map(jot_fn(on_mesh), mesh, JOT_SPLITS("x, y"), JOT_SPLITS("x, y"));
    const jot_program_type type = {JOT_F64, 2, (const int64_t[]){8, 4}};
    jot_program *p = jot_program_of_device(f, 1, &type);
    ck_assert_msg(p != NULL, "%s", jot_error_message());
    static char text[1 << 16];
    size_t n;
    jot_program_format form = _i ? JOT_PROGRAM_BYTECODE : JOT_PROGRAM_TEXT;
    ck_assert_msg(jot_program_to_memory(p, form, text, sizeof text, &n) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert(_i || strstr(text, "mhlo.num_partitions = 4"));
    jot_program *again = jot_program_from_memory("written.mlir", text, n);
    ck_assert_msg(again != NULL, "%s", jot_error_message());
    double whole[32], pieces[32], back[32];
    for (int i = 0; i < 32; i++)
        whole[i] = (i * 7 % 13) / 4.0 - 1;
    for (int d = 0; d < 4; d++)
        copy_block(whole, pieces, d, false);
    jot_array *x = jot_array_from(whole, 8, 4), *in = jot_array_from(pieces, 4, 4, 2),
              *y = NULL, *z = NULL;
    jot_executable *g = jot_jit(f), *h = jot_jit(jot_vmap_named(
                                        jot_program_function(again, "main"), "partition"));
    ck_assert_msg(jot_call_list(g, 1, &x, 1, &y) == JOT_OK &&
                      jot_call_list(h, 1, &in, 1, &z) == JOT_OK,
                  "%s", jot_error_message());
    for (int d = 0; d < 4; d++)
        copy_block(jot_array_data(z), back, d, true);
    for (int i = 0; i < 32; i++)
        ck_assert_double_eq_tol(back[i], ((const double *)jot_array_data(y))[i], 1e-12);
    jot_arrays_release(4, (jot_array *[]){x, in, y, z});
    jot_executable_release(g), jot_executable_release(h);
    jot_program_release(p), jot_program_release(again);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, run_in_several_partitions, 0,
                        (int)(sizeof collectives / sizeof *collectives));
    tcase_add_test(t, know_their_number);
    tcase_add_loop_test(t, run_on_the_devices_of_a_mesh, 0, 4);
    tcase_add_loop_test(t, meshes_that_are_not_read, 0, 2);
    tcase_add_loop_test(t, functions_on_meshes_are_written, 0, 2);
}

int main(void) { return run_by_both("meshes", add); }
