// SPDX-License-Identifier: Apache-2.0
// Programs of several partitions or of a mesh of devices, read, run and written.
#include "interop/program_support.h"

#include <math.h>

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

#define MANUAL(devices)                                                                        \
    "sdy.mesh @grid = <[\"x\"=2, \"y\"=2]" devices ">\n"                                       \
    "func.func @main(%x: tensor<8x4xf64>) -> (tensor<8x4xf64>, tensor<8x2xf64>, "              \
    "tensor<4x2xf64>) {\n"                                                                     \
    "  %0:3 = sdy.manual_computation(%x) in_shardings=[<@grid, [{\"x\"}, {\"y\"}]>] "          \
    "out_shardings=[<@grid, [{\"x\"}, {}]>, <@grid, [{\"x\"}, {}]>, <@grid, [{}, {}]>] "       \
    "manual_axes={\"x\", \"y\"} (%p: tensor<4x2xf64> loc(\"p\")) {\n"                          \
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

// As it is printed, of JAX's bytecode with groups by axes of the mesh, and on a mesh whose devices have other numbers;
// and as the general form of these that is written.
START_TEST(run_on_the_devices_of_a_mesh)
{
    static const int devices[][4] = {{0, 1, 2, 3}, {0, 1, 2, 3}, {2, 3, 0, 1}};
    const int *number = devices[_i % 3];
    ck_assert_int_eq(jot_set_host_devices(4), JOT_OK);
    static char general[1 << 14];
    size_t n;
    jot_program *p = _i % 3 == 1 ? read_file("mesh.jaxexport")
                     : _i % 3    ? read_text(MANUAL(", device_ids=[2, 3, 0, 1]"))
                                 : read_text(MANUAL(""));
    if (_i >= 3) {
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
            ck_assert(all[4 * i + k] == at[4 * i + k] + number[i / 4 * 2 + k / 2]);
            ck_assert(sums[2 * i + k % 2] == at[4 * i + k % 2] + at[4 * i + k % 2 + 2]);
            ck_assert(number[i / 4 * 2 + k / 2] || first[2 * (i % 4) + k % 2] == at[4 * i + k]);
        }
    jot_arrays_release(4, (jot_array *[]){x, y[0], y[1], y[2]});
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// Twice x on each device, which has rows and columns of it as `in` says; its rows are put together as `out` says.
struct split {
    const char *in, *out, *axes, *piece;
    int rows[8], times; // of the result: the rows of x, and how often
};

static const struct split splits[] = {
    // Axes that are not manual split nothing.
    {"[{\"x\", \"y\", ?}p1, {?}]",
     "[{\"x\"}, {\"y\"}]",
     "\"x\"",
     "2x4",
     {0, 1, 2, 3, 4, 5, 6, 7},
     2},
    {"[{\"y\"}, {}]",
     "[{\"y\"}, {}], replicated={\"x\"}",
     "\"y\"",
     "4x4",
     {0, 1, 2, 3, 4, 5, 6, 7},
     2},
    {"[{\"y\", \"x\"}, {}]",
     "[{\"x\", \"y\"}, {}]",
     "\"x\", \"y\"",
     "1x4",
     {0, 4, 1, 5, 2, 6, 3, 7},
     2},
    // Parts of an axis: devices 0 and 1 along x, or 0 and 2, have the same half.
    {"[{\"x\":(1)2}, {}]", "[{\"x\":(1)2}, {}]", "\"x\"", "4x4", {0, 1, 2, 3, 4, 5, 6, 7}, 2},
    {"[{\"x\":(2)2}, {\"x\":(1)2}]",
     "[{\"x\":(2)2}, {\"x\":(1)2}]",
     "\"x\"",
     "4x2",
     {0, 1, 2, 3, 4, 5, 6, 7},
     2},
    {"[{\"x\":(2)2, \"x\":(1)2}, {}]",
     "[{\"x\"}, {}]",
     "\"x\"",
     "2x4",
     {0, 1, 4, 5, 2, 3, 6, 7},
     2},
    // Sums over what devices have.
    {"[{}, {}], unreduced={\"x\"}",
     "[{}, {}], unreduced={\"x\"}",
     "\"x\"",
     "8x4",
     {0, 1, 2, 3, 4, 5, 6, 7},
     2},
    {"[{}, {}]", "[{}, {}], unreduced={\"x\"}", "\"x\"", "8x4", {0, 1, 2, 3, 4, 5, 6, 7}, 8},
};

// The mesh has a name, or stands in each sharding; is beside another one; has its devices in another order.
static const char *const split_meshes[][2] = {
    {"", "@grid"},
    {"", "mesh<[\"x\"=4, \"y\"=2]>"},
    {">\nsdy.mesh @other = <[\"z\"=2, \"one\"=1, \"w\"=4]", "@grid"},
    {">\nsdy.mesh @grid_2 = <[\"x\"=4, \"y\"=2]", "@grid_2"},
    {", device_ids=[7, 6, 0, 2, 1, 3, 5, 4]", "@grid"},
};
enum { SPLIT_MESHES = sizeof split_meshes / sizeof *split_meshes };

START_TEST(split_by_some_axes)
{
    ck_assert_int_eq(jot_set_host_devices(8), JOT_OK);
    const struct split *c = &splits[_i / SPLIT_MESHES];
    const char *beside = split_meshes[_i % SPLIT_MESHES][0],
               *mesh = split_meshes[_i % SPLIT_MESHES][1];
    char text[2000];
    snprintf(text, sizeof text,
             "sdy.mesh @grid = <[\"x\"=4, \"y\"=2]%s>\n"
             "func.func @main(%%x: tensor<8x4xf64>) -> tensor<8x4xf64> {\n"
             "  %%0 = sdy.manual_computation(%%x) in_shardings=[<%s, %s>] "
             "out_shardings=[<%s, %s>] manual_axes={%s} (%%p: tensor<%sxf64>) {\n"
             "    %%1 = stablehlo.add %%p, %%p : tensor<%sxf64>\n"
             "    sdy.return %%1 : tensor<%sxf64>\n"
             "  } : (tensor<8x4xf64>) -> tensor<8x4xf64>\n"
             "  return %%0 : tensor<8x4xf64>\n}\n",
             beside, mesh, c->in, mesh, c->out, c->axes, c->piece, c->piece, c->piece);
    double at[32];
    for (int i = 0; i < 32; i++)
        at[i] = i * 7 % 11;
    jot_program *p = read_text(text);
    jot_array *x = jot_array_from(at, 8, 4), *y = NULL;
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    ck_assert_msg(jot_call(f, JOT_IN(x), JOT_OUT(y)) == JOT_OK, "%s", jot_error_message());
    for (int i = 0; i < 32; i++) {
        double have = ((const double *)jot_array_data(y))[i],
               right = c->times * at[4 * c->rows[i / 4] + i % 4];
        ck_assert_msg(have == right, "%s: element %d is %g, not %g", c->in, i, have, right);
    }
    jot_arrays_release(2, (jot_array *[]){x, y});
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// Along x, of four devices, pieces of two rows are added: groups by axes of the mesh or by parts of one.
struct axes {
    const char *mesh, *part;
    int with[4][4], n; // by piece
};

static const struct axes axes_of_groups[] = {
    {"@grid", "", {{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}}, 4},
    {"@grid", ", sub_axis_info = (1)2", {{0, 2}, {1, 3}, {0, 2}, {1, 3}}, 2},
    {"@grid", ", sub_axis_info = (2)2", {{0, 1}, {0, 1}, {2, 3}, {2, 3}}, 2},
    {"#stablehlo.mesh<axes = [<name = \"x\", size = 4>, <name = \"y\", size = 2>]>",
     ", sub_axis_info = (2)2",
     {{0, 1}, {0, 1}, {2, 3}, {2, 3}},
     2},
};

// In another manual computation, over y, whose pieces are columns; %k is the own number along y.
static const char nested[] =
    "sdy.mesh @line = <[\"x\"=4]>\n"
    "sdy.mesh @grid = <[\"x\"=4, \"y\"=2]>\n"
    "func.func @main(%%x: tensor<8x4xf64>) -> tensor<8x4xf64> {\n"
    "  %%0 = sdy.manual_computation(%%x) in_shardings=[<@grid, [{}, {\"y\"}]>] "
    "out_shardings=[<@grid, [{?}, {\"y\", ?}]>] manual_axes={\"y\"} (%%p: tensor<8x2xf64>) {\n"
    "    %%1 = sdy.manual_computation(%%p) in_shardings=[<@grid, [{\"x\"}, {}]>] "
    "out_shardings=[<@grid, [{\"x\"}, {}]>] manual_axes={\"x\"} (%%q: tensor<2x2xf64>) {\n"
    "      %%2 = \"stablehlo.all_reduce\"(%%q) <{" CHANNEL
    "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = %s, axes = "
    "[#stablehlo.axis_ref<name = \"x\"%s>]>, use_global_device_ids}> ({\n"
    "      ^bb0(%%a: tensor<f64>, %%b: tensor<f64>):\n"
    "        %%s = stablehlo.add %%a, %%b : tensor<f64>\n"
    "        %%c = sdy.sharding_constraint %%s <@grid, []> : tensor<f64>\n"
    "        %%d = builtin.unrealized_conversion_cast %%c : tensor<f64> to tensor<f64>\n"
    "        stablehlo.return %%d : tensor<f64>\n"
    "      }) : (tensor<2x2xf64>) -> tensor<2x2xf64>\n"
    "      sdy.return %%2 : tensor<2x2xf64>\n"
    "    } : (tensor<8x2xf64>) -> tensor<8x2xf64>\n"
    "    %%3 = sdy.manual_computation() in_shardings=[] out_shardings=[<@grid, []>] "
    "manual_axes={\"x\"} () {\n"
    "      %%two = stablehlo.constant dense<2> : tensor<ui32>\n"
    "      %%n = stablehlo.partition_id : tensor<ui32>\n"
    "      %%k = stablehlo.remainder %%n, %%two : tensor<ui32>\n"
    "      sdy.return %%k : tensor<ui32>\n"
    "    } : () -> tensor<ui32>\n"
    "    %%4 = stablehlo.convert %%3 : (tensor<ui32>) -> tensor<f64>\n"
    "    %%5 = stablehlo.broadcast_in_dim %%4, dims = [] : (tensor<f64>) -> tensor<8x2xf64>\n"
    "    %%6 = sdy.sharding_constraint %%5 <@grid, [{\"x\"}, {}]> : tensor<8x2xf64>\n"
    "    %%7 = stablehlo.add %%1, %%6 : tensor<8x2xf64>\n"
    "    sdy.return %%7 : tensor<8x2xf64>\n"
    "  } : (tensor<8x4xf64>) -> tensor<8x4xf64>\n"
    "  return %%0 : tensor<8x4xf64>\n}\n";

static jot_function the_nested;
static jot_value product(jot_value x)
{
    jot_value y;
    jot_apply(the_nested, 1, &x, 1, &y);
    return jot_sum(jot_mul(x, y));
}

START_TEST(manual_in_manual)
{
    ck_assert_int_eq(jot_set_host_devices(8), JOT_OK);
    const struct axes *c = &axes_of_groups[_i];
    char text[4000];
    snprintf(text, sizeof text, nested, c->mesh, c->part);
    double at[32];
    for (int i = 0; i < 32; i++)
        at[i] = i * 7 % 11;
    jot_program *p = read_text(text);
    jot_array *x = jot_array_from(at, 8, 4), *y = NULL, *dx = NULL;
    the_nested = jot_program_function(p, "main");
    jot_executable *f = jot_jit(the_nested), *df = jot_jit(jot_grad(jot_fn(product), 0));
    ck_assert_msg(jot_call(f, JOT_IN(x), JOT_OUT(y)) == JOT_OK &&
                      jot_call(df, JOT_IN(x), JOT_OUT(dx)) == JOT_OK,
                  "%s", jot_error_message());
    for (int i = 0; i < 32; i++) {
        double have = ((const double *)jot_array_data(y))[i], sum = 0, own = i % 4 / 2,
               slope = ((const double *)jot_array_data(dx))[i];
        for (int k = 0; k < c->n; k++)
            sum += at[4 * (2 * c->with[i / 8][k] + i / 4 % 2) + i % 4];
        ck_assert_msg(have == sum + own, "element %d is %g, not %g", i, have, sum + own);
        ck_assert_msg(slope == 2 * sum + own, "slope %d is %g, not %g", i, slope,
                      2 * sum + own);
    }
    jot_arrays_release(3, (jot_array *[]){x, y, dx});
    jot_executable_release(f), jot_executable_release(df);
    jot_program_release(p);
}
END_TEST

// The devices as a square, then in a line, then as a square of other axes.
START_TEST(several_meshes_in_one_program)
{
    ck_assert_int_eq(jot_set_host_devices(4), JOT_OK);
    jot_program *p = read_text(
        "sdy.mesh @square = <[\"x\"=2, \"y\"=2]>\n"
        "sdy.mesh @line = <[\"i\"=4]>\n"
        "sdy.mesh @other = <[\"y\"=2, \"one\"=1, \"x\"=2]>\n"
        "func.func @main(%x: tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<2x4xi32>) {\n"
        "  %0 = sdy.manual_computation(%x) in_shardings=[<@square, [{\"x\"}, {\"y\"}]>] "
        "out_shardings=[<@square, [{\"x\"}, {\"y\"}]>] manual_axes={\"x\", \"y\"} (%p: "
        "tensor<2x2xf64>) {\n"
        "    %1 = \"stablehlo.all_reduce\"(%p) <{" CHANNEL
            GROUPS("[[0, 2], [1, 3]]", "2x2") ", use_global_device_ids}>" REGION(
                "add") " : (tensor<2x2xf64>) -> "
                       "tensor<2x2xf64>\n"
                       "    sdy.return %1 : tensor<2x2xf64>\n"
                       "  } : (tensor<4x4xf64>) -> tensor<4x4xf64>\n"
                       "  %2 = sdy.manual_computation(%0) in_shardings=[<@line, [{\"i\"}, "
                       "{}]>] "
                       "out_shardings=[<@line, [{\"i\"}, {}]>] manual_axes={\"i\"} (%p: "
                       "tensor<1x4xf64>) {\n"
                       "    %1 = \"stablehlo.collective_permute\"(%p) <{" CHANNEL
                       "source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : "
                       "tensor<4x2xi64>}> : "
                       "(tensor<1x4xf64>) -> tensor<1x4xf64>\n"
                       "    sdy.return %1 : tensor<1x4xf64>\n"
                       "  } : (tensor<4x4xf64>) -> tensor<4x4xf64>\n"
                       "  %3 = sdy.manual_computation() in_shardings=[] "
                       "out_shardings=[<@other, [{\"x\"}, "
                       "{\"one\", \"y\"}]>] manual_axes={\"x\", \"y\", \"one\"} () {\n"
                       "    %k = stablehlo.partition_id : tensor<ui32>\n"
                       "    %i = stablehlo.convert %k : (tensor<ui32>) -> tensor<i32>\n"
                       "    %1 = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> "
                       "tensor<1x2xi32>\n"
                       "    sdy.return %1 : tensor<1x2xi32>\n"
                       "  } : () -> tensor<2x4xi32>\n"
                       "  return %2, %3 : tensor<4x4xf64>, tensor<2x4xi32>\n}\n");
    double at[16];
    for (int i = 0; i < 16; i++)
        at[i] = i * 7 % 11;
    jot_array *x = jot_array_from(at, 4, 4), *y[2];
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    ck_assert_msg(jot_call(f, JOT_IN(x), JOT_OUT(y)) == JOT_OK, "%s", jot_error_message());
    const double *moved = jot_array_data(y[0]);
    const int32_t *own = jot_array_data(y[1]);
    for (int i = 0; i < 16; i++) {
        int from = (i / 4 + 1) % 2 * 4 + i % 4;
        ck_assert(moved[i] == at[from] + at[from + 8]);
    }
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(own[i], i % 4 / 2 * 2 + i / 4);
    jot_array_release(x);
    jot_arrays_release(JOT_OUT(y));
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// Meshes of 2 by 3 and of 3 by 2: devices of one are in pieces of the other that no axis splits.
START_TEST(meshes_without_common_axes)
{
    ck_assert_int_eq(jot_set_host_devices(6), JOT_OK);
    jot_program *p = read_text(
        "sdy.mesh @a = <[\"x\"=2, \"y\"=3]>\n"
        "sdy.mesh @b = <[\"u\"=3, \"v\"=2]>\n"
        "func.func @main(%x: tensor<6x6xf64>) -> tensor<6x6xf64> {\n"
        "  %0 = sdy.manual_computation(%x) in_shardings=[<@a, [{\"x\"}, {\"y\"}]>] "
        "out_shardings=[<@a, [{\"x\"}, {\"y\"}]>] manual_axes={\"x\", \"y\"} (%p: "
        "tensor<3x2xf64>) {\n"
        "    %1 = \"stablehlo.all_reduce\"(%p) <{" CHANNEL
            GROUPS("[[0, 1, 2], [3, 4, 5]]", "2x3") ", use_global_device_ids}>" REGION(
                "add") " : (tensor<3x2xf64>) -> tensor<3x2xf64>\n"
                       "    sdy.return %1 : tensor<3x2xf64>\n"
                       "  } : (tensor<6x6xf64>) -> tensor<6x6xf64>\n"
                       "  %2 = sdy.manual_computation(%0) in_shardings=[<@b, [{\"u\"}, "
                       "{\"v\"}]>] out_shardings=[<@b, [{\"u\"}, {\"v\"}]>] "
                       "manual_axes={\"u\", \"v\"} (%p: tensor<2x3xf64>) {\n"
                       "    %1 = \"stablehlo.all_reduce\"(%p) <{" CHANNEL GROUPS(
                           "[[0, 1], [2, 3], [4, 5]]",
                           "3x2") ", use_global_device_ids}>" REGION("maximum") " : "
                                                                                "(tensor<"
                                                                                "2x3xf64>) -> "
                                                                                "tensor<"
                                                                                "2x3xf64>\n"
                                                                                "    "
                                                                                "sdy.return %1 "
                                                                                ": "
                                                                                "tensor<"
                                                                                "2x3xf64>\n"
                                                                                "  } : "
                                                                                "(tensor<"
                                                                                "6x6xf64>) -> "
                                                                                "tensor<"
                                                                                "6x6xf64>\n"
                                                                                "  return %2 : "
                                                                                "tensor<"
                                                                                "6x6xf64>\n}"
                                                                                "\n");
    double at[36], sum[36];
    for (int i = 0; i < 36; i++)
        at[i] = i * 7 % 11;
    for (int i = 0; i < 36; i++) {
        const double *row = at + i / 6 * 6;
        sum[i] = row[i % 2] + row[2 + i % 2] + row[4 + i % 2];
    }
    jot_array *x = jot_array_from(at, 6, 6), *y = NULL;
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    ck_assert_msg(jot_call(f, JOT_IN(x), JOT_OUT(y)) == JOT_OK, "%s", jot_error_message());
    const double *most = jot_array_data(y);
    for (int i = 0; i < 36; i++) {
        const double *row = sum + i / 6 * 6;
        ck_assert_double_eq(most[i], fmax(row[i % 3], row[3 + i % 3]));
    }
    jot_array_release(x);
    jot_array_release(y);
    jot_executable_release(f);
    jot_program_release(p);
}
END_TEST

// What is no split of a value; a mesh of devices in another order; one larger than the devices.
START_TEST(meshes_that_are_not_read)
{
    static const struct {
        const char *mesh, *in, *message;
    } cases[] = {
        {"\"x\"=2, \"y\"=2]", "[{\"x\"}, {\"x\"}]",
         "in_shardings does not say how value 0 is split"},
        {"\"x\"=2, \"y\"=2]", "[{\"z\"}, {}]",
         "in_shardings does not say how value 0 is split"},
        {"\"x\"=2, \"y\"=2]", "[{\"x\"}]", "in_shardings does not say how value 0 is split"},
        {"\"x\"=2, \"y\"=2]", "[{\"x\":(1)3}, {}]",
         "in_shardings does not say how value 0 is split"},
        {"\"x\"=2, \"y\"=2], device_ids=[0, 2, 2, 3]", "[{\"x\"}, {}]", "has a device twice"},
        {"\"x\"=2, \"y\"=2], device_ids=[0, 2, 1]", "[{\"x\"}, {}]", "has a device twice"},
        {"\"x\"=2, \"y\"=3]>\nsdy.mesh @other = <[\"x\"=3, \"y\"=2]", "[{\"x\"}, {}]",
         "as of 2 by 3 and 3 by 2"},
        {"\"z\"=4]", "[{}, {}]", "manual_axes that are none of its mesh"},
        {"\"x\"=5, \"y\"=1]", "[{\"x\"}, {}]", "jot_mesh_of: a mesh of 5 devices"},
        {"\"x\"=3]", "[{\"x\"}, {}]", "3 devices, which 8 does not divide into"},
        {"\"x\"=4]", "[{\"x\":(1)2}, {\"x\":(2)2}]", "axis 1 of 1 in 2 pieces"},
    };
    ck_assert_int_eq(jot_set_host_devices(4), JOT_OK);
    char text[1000];
    snprintf(text, sizeof text,
             "sdy.mesh @grid = <[%s>\n"
             "func.func @main(%%x: tensor<8x1xf64>) -> tensor<8x1xf64> {\n"
             "  %%0 = sdy.manual_computation(%%x) in_shardings=[<@grid, %s>] "
             "out_shardings=[<@grid, [{}, {}]>] manual_axes={\"x\"} (%%p: tensor<8x1xf64>) {\n"
             "    sdy.return %%p : tensor<8x1xf64>\n"
             "  } : (tensor<8x1xf64>) -> tensor<8x1xf64>\n"
             "  return %%0 : tensor<8x1xf64>\n}\n",
             cases[_i].mesh, cases[_i].in);
    jot_program *p = read_text(text);
    jot_array *x = jot_array_full(JOT_F64, 0, 8, 1), *y = NULL;
    jot_executable *f = jot_jit(jot_program_function(p, "main"));
    ck_assert(jot_call(f, JOT_IN(x), JOT_OUT(y)) != JOT_OK);
    ck_assert_msg(strstr(jot_error_message(), ": sdy.manual_computation") &&
                      strstr(jot_error_message(), cases[_i].message),
                  "%s", jot_error_message());
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
    tcase_add_loop_test(t, run_on_the_devices_of_a_mesh, 0, 6);
    tcase_add_loop_test(t, split_by_some_axes, 0,
                        SPLIT_MESHES * (int)(sizeof splits / sizeof *splits));
    tcase_add_test(t, several_meshes_in_one_program);
    tcase_add_loop_test(t, manual_in_manual, 0, 4);
    tcase_add_test(t, meshes_without_common_axes);
    tcase_add_loop_test(t, meshes_that_are_not_read, 0, 11);
    tcase_add_loop_test(t, functions_on_meshes_are_written, 0, 2);
}

int main(void) { return run_by_both("meshes", add); }
