// SPDX-License-Identifier: Apache-2.0
// Programs of StableHLO as text.
#include "interop/tree.h"
#include "support/suite.h"

#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mlir_program *read_text(const char *text)
{
    struct mlir_program *p = NULL;
    jot_status status = mlir_read_text("t.mlir", text, strlen(text), &p);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    return p;
}

// ---- forms

static const struct mlir_op *find_op(const struct mlir_program *p, const char *name, int skip)
{
    const struct mlir_block *body = mlir_function_find(p, "main")->body;
    for (uint32_t i = 0; i < body->n_ops; i++)
        if (!strcmp(body->ops[i]->name, name) && skip-- == 0)
            return body->ops[i];
    ck_abort_msg("there is no %s", name);
}

static void check_ints(const struct mlir_op *op, const char *name, size_t n,
                       const int64_t *numbers)
{
    size_t count;
    const int64_t *found = mlir_ints(op, name, &count);
    ck_assert_msg(mlir_attr_find(op, name) != NULL, "%s has no %s", op->name, name);
    ck_assert_uint_eq(count, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(found[i], numbers[i]);
}
#define INTS(op, name, ...)                                                                    \
    check_ints(op, name, sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

START_TEST(reads_forms)
{
    size_t n;
    struct mlir_program *p = NULL;
    unsigned char *text = tree_load("tests/interop/programs/text_forms.mlir", &n);
    ck_assert_msg(mlir_read_text("forms.mlir", text, n, &p) == JOT_OK, "%s",
                  jot_error_message());
    ck_assert_uint_eq(p->n_functions, 2);
    const struct mlir_function *f = mlir_function_find(p, "main");
    ck_assert(!f->is_private && mlir_function_find(p, "twice")->is_private);
    ck_assert_str_eq(f->args[0]->named[0].name, "jax.buffer_donor");
    ck_assert_ptr_null(f->args[1]);
    ck_assert_str_eq(f->body->args[0]->called->text, "x");
    ck_assert_str_eq(f->body->args[1]->called->text, "i");
    ck_assert_str_eq(f->results[0]->named[0].attr->text, "[0]");
    ck_assert_str_eq(p->attrs[0].name, "sym_name");
    ck_assert_str_eq(p->attrs[2].attr->text, "@alone = <[\"x\"=1]>");

    const struct mlir_op *op = find_op(p, "stablehlo.add", 0);
    ck_assert_int_eq(op->row->code, MLIR_OP_stablehlo_add);
    ck_assert_uint_eq(op->place.line, 10);
    ck_assert_uint_eq(op->place.column, 10);
    ck_assert_str_eq(op->location->text, "train.py:17");
    ck_assert_ptr_null(find_op(p, "stablehlo.select", 0)->location);
    op = find_op(p, "stablehlo.compare", 0);
    ck_assert_str_eq(mlir_text(op, "comparison_direction"), "GE");
    ck_assert_str_eq(mlir_text(op, "compare_type"), "FLOAT");
    op = find_op(p, "stablehlo.dot_general", 0);
    INTS(op, "lhs_contracting_dimensions", 1);
    ck_assert_ptr_null(mlir_attr_find(op, "lhs_batching_dimensions"));
    ck_assert_str_eq(mlir_attr_find(op, "precision_config")->parts[1]->text, "HIGHEST");
    op = find_op(p, "stablehlo.dot_general", 1);
    INTS(op, "rhs_batching_dimensions", 0);
    ck_assert_int_eq(mlir_int(op, "num_primitive_operations", 0), 3);
    ck_assert_int_eq(mlir_attr_find(op, "accumulation_type")->type->element, MLIR_F32);
    op = find_op(p, "stablehlo.slice", 0);
    INTS(op, "start_indices", 0, 0);
    INTS(op, "limit_indices", 2, 3);
    INTS(op, "strides", 1, 2);
    INTS(find_op(p, "stablehlo.pad", 0), "edge_padding_low", 1, -1);

    op = find_op(p, "stablehlo.reduce", 0);
    ck_assert_uint_eq(op->regions[0].n_args, 2);
    ck_assert_str_eq(op->regions[0].ops[0]->name, "stablehlo.add");
    ck_assert_ptr_eq(op->regions[0].ops[0]->operands[1], op->regions[0].args[1]);
    op = find_op(p, "stablehlo.reduce", 1);
    ck_assert_uint_eq(op->n_results, 2);
    ck_assert_int_eq(op->operands[1]->type->element, MLIR_I32);
    ck_assert_int_eq(op->regions[0].args[2]->type->element, MLIR_F32);
    ck_assert_ptr_eq(op->regions[0].ops[1]->operands[1], op->regions[0].args[1]);
    op = find_op(p, "stablehlo.while", 0);
    ck_assert_uint_eq(op->n_regions, 2);
    ck_assert_ptr_ne(op->regions[0].args[0], op->regions[1].args[0]);
    ck_assert_str_eq(mlir_text(op->regions[1].ops[0], "callee"), "twice");
    op = find_op(p, "stablehlo.gather", 0);
    INTS(op, "offset_dims", 2);
    INTS(op, "slice_sizes", 1, 3);
    ck_assert_int_eq(mlir_int(op, "index_vector_dim", -1), 2);
    ck_assert_uint_eq(find_op(p, "stablehlo.case", 0)->n_regions, 2);
    ck_assert_int_eq(mlir_int(find_op(p, "stablehlo.reduce_precision", 0), "mantissa_bits", 0),
                     10);
    ck_assert_int_eq(mlir_int(find_op(p, "chlo.top_k", 0), "k", 0), 2);
    op = find_op(p, "stablehlo.composite", 0);
    ck_assert_str_eq(mlir_text(op, "decomposition"), "twice");
    ck_assert_str_eq(mlir_text(op, "name"), "my.scale");
    ck_assert_double_eq(mlir_attr_find(op, "composite_attributes")->named[0].attr->real, 2);
    op = find_op(p, "stablehlo.custom_call", 0);
    ck_assert_str_eq(mlir_text(op, "call_target_name"), "lapack_spotrf_ffi");
    ck_assert_str_eq(op->attrs[op->n_attrs - 1].name, "mhlo.backend_config");
    ck_assert_str_eq(mlir_attr_find(op, "output_operand_aliases")->parts[0]->named[1].name,
                     "operand_index");
    ck_assert_int_eq(mlir_int(find_op(p, "check.expect_close", 0), "max_ulp_difference", 0), 3);
    op = find_op(p, "stablehlo.convolution", 0);
    INTS(op, "kernel_spatial_dimensions", 2, 3);
    INTS(op, "padding", 1, 1, 0, 2);
    INTS(op, "window_reversal", 0, 1);
    ck_assert_int_eq(mlir_int(op, "kernel_output_feature_dimension", -1), 0);

    // Numbers are dense, regions included.
    uint32_t args = f->body->n_args, most = 0;
    for (uint32_t i = 0; i < f->body->n_ops; i++)
        for (uint32_t k = 0; k < f->body->ops[i]->n_results; k++)
            most = f->body->ops[i]->results[k]->number;
    ck_assert_uint_eq(f->body->args[1]->number, args - 1);
    ck_assert_uint_eq(f->n_values, most + 1);
    mlir_release(p);
    free(text);
}
END_TEST

// ---- constants

static const struct {
    const char *text, *bytes;
} constants[] = {
    {"dense<1.0> : tensor<f32>", "0000803f"},
    {"dense<[1, -2]> : tensor<2xi16>", "0100feff"},
    {"dense<[[1], [255]]> : tensor<2x1xi8>", "01ff"},
    {"dense<[7, -8, 15]> : tensor<3xi4>", "07f8ff"},
    {"dense<18446744073709551615> : tensor<ui64>", "ffffffffffffffff"},
    {"dense<-9223372036854775808> : tensor<1xi64>", "0000000000000080"},
    {"dense<0xFF> : tensor<i32>", "ff000000"},
    {"dense<[true, false, true]> : tensor<3xi1>", "010001"},
    {"dense<\"0x05\"> : tensor<3xi1>", "010001"},
    {"dense<\"0x010001\"> : tensor<3xi1>", "010001"},
    {"dense<\"0xFF\"> : tensor<3xi1>", "01"},
    {"dense<\"0xFF01\"> : tensor<9xi1>", "010101010101010101"},
    {"dense<\"0x0D\"> : tensor<2xi4>", "fd"},
    {"dense<(1.0, -2.0)> : tensor<complex<f32>>", "0000803f000000c0"},
    {"dense<[(0.0, 1.0), (inf, nan)]> : tensor<2xcomplex<f32>>",
     "000000000000803f0000807f0000c07f"},
    {"dense<> : tensor<0x3xf32>", ""},
    {"dense<[[], []]> : tensor<2x0xf32>", ""},
    {"dense<0x7FC00001> : tensor<f32>", "0100c07f"},
    {"dense<-inf> : tensor<f64>", "000000000000f0ff"},
    {"dense<-0.0> : tensor<f32>", "00000080"},
    // The middle between two numbers, and what lies a little on either side of it: rounded once.
    {"dense<1.00000005960464477539062500000000000000000000> : tensor<f32>", "0000803f"},
    {"dense<1.00000005960464477539062500000000000000000001> : tensor<f32>", "0100803f"},
    {"dense<1.00000017881393432617187499999999999999999999> : tensor<f32>", "0100803f"},
    {"dense<2049.0> : tensor<f16>", "0068"},
    {"dense<2049.00000000000000000000000000000000000000001> : tensor<f16>", "0168"},
    {"dense<1.00390625> : tensor<bf16>", "803f"},
    {"dense<1.00390625000000000000000000000000001> : tensor<bf16>", "813f"},
    {"dense<[65519.99, 65520.0, 6.0e-8, 2.9e-8]> : tensor<4xf16>", "ff7b007c01000000"},
    {"dense<1.0e-45> : tensor<f32>", "01000000"},
    {"dense<7.0e-46> : tensor<f32>", "00000000"},
    {"dense<0.1> : tensor<f64>", "9a9999999999b93f"},
    {"dense<2.2250738585072011e-308> : tensor<f64>", "ffffffffffff0f00"},
    {"dense<1.0e400> : tensor<f64>", "000000000000f07f"},
    {"dense<1.0e-99999999999999999999> : tensor<f32>", "00000000"},
    {"dense<[448.0, 464.0, 465.0, -0.5, 0.0009765625]> : tensor<5xf8E4M3FN>", "7e7e7fb000"},
    {"dense<[57344.0, 61440.0, 1.5]> : tensor<3xf8E5M2>", "7b7c3e"},
    {"dense<[240.0, 248.0, -0.0, nan]> : tensor<4xf8E4M3FNUZ>", "7f800080"},
};

START_TEST(reads_constants)
{
    char text[512], hex[2 * 64 + 1] = "";
    snprintf(text, sizeof text, "func.func @main() { %%c = stablehlo.constant %s return }",
             constants[_i].text);
    struct mlir_program *p = read_text(text);
    const struct mlir_attr *a = mlir_attr_find(p->functions[0].body->ops[0], "value");
    ck_assert_int_eq(a->kind, MLIR_DENSE);
    for (size_t i = 0; i < a->n; i++)
        snprintf(hex + 2 * i, 3, "%02x", a->bytes[i]);
    ck_assert_msg(!strcmp(hex, constants[_i].bytes), "%s is %s", constants[_i].text, hex);
    mlir_release(p);
}
END_TEST

// A list and bytes are read in linear time and memory.
START_TEST(reads_large_constants)
{
    enum { N = 200000 };
    size_t room = 16 * N + 200, n = 0;
    char *text = malloc(room);
    n += (size_t)snprintf(text, room, "func.func @main() { %%c = stablehlo.constant dense<[");
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%d.125", i ? ", " : "", i);
    snprintf(text + n, room - n, "]> : tensor<%dxf32> return }", N);
    struct mlir_program *p = read_text(text);
    const struct mlir_attr *a = mlir_attr_find(p->functions[0].body->ops[0], "value");
    float last;
    memcpy(&last, a->bytes + 4 * (N - 1), 4);
    ck_assert_float_eq(last, (float)(N - 1) + 0.125f);
    ck_assert_uint_lt(arena_bytes(p->arena), 8 * N);
    mlir_release(p);
    free(text);
}
END_TEST

START_TEST(reads_resources)
{
    struct mlir_program *p = read_text(
        "module { func.func @main() {\n"
        "  %c = stablehlo.constant dense_resource<a> : tensor<2xf32>\n"
        "  %d = stablehlo.constant dense_resource<\"b c\"> : tensor<3xi8>\n"
        "  return } }\n"
        "{-# dialect_resources: { builtin: { a: \"0x040000000000803F00000040\",\n"
        "    \"b c\": \"0x01000000010203\" } }, external_resources: { x: { y: \"z\" } } #-}\n");
    const struct mlir_block *body = p->functions[0].body;
    ck_assert_mem_eq(mlir_attr_find(body->ops[0], "value")->bytes, "\0\0\x80\x3f\0\0\0\x40", 8);
    ck_assert_mem_eq(mlir_attr_find(body->ops[1], "value")->bytes, "\1\2\3", 3);
    mlir_release(p);
}
END_TEST

// An argument is called as a location that is a name alone, or as in the text.
START_TEST(arguments_have_names)
{
    static const char *const texts[] = {
        "func.func @main(%a: tensor<f32> loc(#l), %b: tensor<f32> loc(\"y\"(#k)), "
        "%c: tensor<f32> loc(unknown), %d: tensor<f32>) { return }\n",
        "\"func.func\"() <{sym_name = \"main\", function_type = (tensor<f32>, tensor<f32>, "
        "tensor<f32>, tensor<f32>) -> ()}> ({ ^bb0(%a: tensor<f32> loc(#l), "
        "%b: tensor<f32> loc(\"y\"(#k)), %c: tensor<f32> loc(unknown), %d: tensor<f32>): "
        "\"func.return\"() : () -> () }) : () -> ()\n"};
    static const char *const called[] = {"params['w']", "b", "c", "d"};
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s#l = loc(\"params['w']\")\n#k = loc(\"f.py\":1:2)\n",
                 texts[i]);
        struct mlir_program *p = read_text(text);
        for (int k = 0; k < 4; k++)
            ck_assert_str_eq(p->functions[0].body->args[k]->called->text, called[k]);
        mlir_release(p);
    }
}
END_TEST

// ---- messages

#define MAIN "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
static const struct {
    const char *text, *message;
} faults[] = {
    {"", "t.mlir:1:1: a function should be here, where the text ends"},
    {"module {", "t.mlir:1:9: a module or function should be here, where the text ends"},
    {"module { } module { }", "t.mlir:1:12: one module is read"},
    {"\1", "t.mlir:1:1: a module or function should be here, not the byte 0x01"},
    {MAIN "  return %x : tensor<2xf32>\n",
     "t.mlir:3:1: '}' behind the return should be here, where the text ends"},
    {MAIN "  return %y : tensor<2xf32>\n}", "t.mlir:2:10: %y is not defined before"},
    {MAIN "  return %x#1 : tensor<2xf32>\n}", "t.mlir:2:10: %x has no result 1"},
    {MAIN "  return %x : tensor<2xf32>, tensor<2xf32>\n}",
     "t.mlir:2:3: func.return has 1 operands and types for 2"},
    {MAIN "  return %x : tensor<3xf32>\n}",
     "t.mlir:2:10: this value is tensor<2xf32>, and tensor<3xf32> is written for it"},
    {MAIN "  return\n}", "t.mlir:1:11: @main has 1 results and returns 0"},
    {MAIN "  %x = stablehlo.abs %x : tensor<2xf32>\n}", "t.mlir:2:3: %x is defined twice"},
    {MAIN "  %0:2 = stablehlo.abs %x : tensor<2xf32>\n}",
     "t.mlir:2:3: stablehlo.abs has 1 results, which are not as many as these"},
    {MAIN "  %0 = stablehlo.abs %x tensor<2xf32>\n}",
     "t.mlir:2:25: ':' should be here, not 'tensor<2xf32>'"},
    {MAIN "  %0 = stablehlo.abs %x : tensor<2xf31>\n}",
     "t.mlir:2:36: an element type, such as f32, should be here, not 'f31>'"},
    {MAIN "  %0 = stablehlo.abs %x : tensor<99999999999999999999xf32>\n}",
     "t.mlir:2:34: this integer does not fit in 64 bits"},
    {MAIN "  %0 = stablehlo.iota dims = 0 : tensor<2xf32>\n}",
     "t.mlir:2:23: 'dim' should be here, not 'dims'"},
    {MAIN "  %0 = stablehlo.gather %x : tensor<2xf32>\n}",
     "t.mlir:2:8: stablehlo.gather is read in its general form alone, "
     "\"stablehlo.gather\"(...)"},
    {MAIN "  %0 = \"stablehlo.sort\"(%x) <{dimension = true}> ({ ^bb0(%a: tensor<f32>, %b: "
          "tensor<f32>):\n"
          "  stablehlo.return %a : tensor<f32> }) : (tensor<2xf32>) -> tensor<2xf32>\n}",
     "t.mlir:2:8: the attribute 'dimension' of stablehlo.sort should be an integer"},
    {MAIN "  %0 = \"stablehlo.iota\"() <{iota_dimension = 0 : i64}> {iota_dimension = 1 : i64} "
          ": () -> tensor<2xf32>\n}",
     "t.mlir:2:8: stablehlo.iota has the attribute 'iota_dimension' twice"},
    {MAIN "  %0 = \"stablehlo.while\"(%x) ({ stablehlo.return %x : tensor<2xf32> }) : "
          "(tensor<2xf32>) -> tensor<2xf32>\n}",
     "t.mlir:2:8: stablehlo.while has 2 regions, not 1"},
    {MAIN "  %0 = \"stablehlo.case\"(%x) ({ }) : (tensor<2xf32>) -> tensor<2xf32>\n}",
     "t.mlir:2:8: a region of stablehlo.case has no operations"},
    {MAIN "  ^bb1(%a: tensor<f32>):\n  return %x : tensor<2xf32>\n}",
     "t.mlir:2:3: a region of several blocks is not read"},
    {MAIN "  \"a.b\"() ({ ^bb0: \"a.return\"() : () -> ()\n^bb1:\n",
     "t.mlir:3:1: a region of several blocks is not read"},
    {MAIN "  \"\"() : () -> ()\n}", "t.mlir:2:3: a name should be here, without zero bytes"},
    {MAIN "  %0 = sdy.sharding_constraint %x @alone : tensor<2xf32>\n}",
     "t.mlir:2:35: a bracket should be here, not '@alone'"},
    {MAIN "  %c = stablehlo.constant dense<[1.0]> : tensor<2xf32>\n}",
     "t.mlir:2:33: this list has 1 elements and its type has 2"},
    {MAIN "  %c = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>\n}",
     "t.mlir:2:44: this list has more than the 2 elements of its type"},
    {MAIN "  %c = stablehlo.constant dense<[1.0]> : tensor<99999999x99999999xf32>\n}",
     "t.mlir:2:33: this list has fewer elements than tensor<99999999x99999999xf32>"},
    {MAIN "  %c = stablehlo.constant dense<256> : tensor<i8>\n}",
     "t.mlir:2:33: 256 does not fit in i8"},
    {MAIN "  %c = stablehlo.constant dense<1.5> : tensor<i8>\n}",
     "t.mlir:2:33: an element of i8 is an integer"},
    {MAIN "  %c = stablehlo.constant dense<\"0x00\"> : tensor<2xf32>\n}",
     "t.mlir:2:33: these are 1 bytes, where tensor<2xf32> has 2 elements of 4"},
    {MAIN "  %c = stablehlo.constant dense<1.0> : tensor<?xf32>\n}",
     "t.mlir:2:40: the extents of a constant are known, those of tensor<?xf32> are not"},
    {MAIN "  %c = stablehlo.constant dense_resource<a> : tensor<2xf32>\n  return %x : "
          "tensor<2xf32>\n}",
     "t.mlir:2:42: the text ends without the resource a"},
    {MAIN "  return %x : tensor<2xf32> loc(#loc1)\n}", "t.mlir:2:34: #loc1 is not defined"},
    {MAIN "  return %x : tensor<2xf32> loc(\"a)\n}",
     "t.mlir:2:33: this string is not closed in its line"},
    {MAIN "  return %x : tensor<2xf32>\n}\n" MAIN "  return %x : tensor<2xf32>\n}",
     "t.mlir:4:11: @main is defined twice"},
    {"func.func @main(%x: tensor<2xf32>, tensor<f32>) {\n  return\n}",
     "t.mlir:1:11: @main has a body, so all its arguments have names"},
    {MAIN "  %0 = stablehlo.convolution(%x, %x) dim_numbers = [b, b]x[o, i]->[b, f], window = "
          "{} : tensor<2xf32>\n}",
     "t.mlir:2:56: 'b' is there twice"},
    {MAIN "  %0 = stablehlo.convolution(%x, %x) dim_numbers = [b, f, 1]x[o, i]->[b, f], window "
          "= {} : tensor<2xf32>\n}",
     "t.mlir:2:52: the spatial axes are numbered from 0, without gaps"},
    {MAIN "  %0 = stablehlo.reduce(%x init: %x) applies stablehlo.gather across dimensions = "
          "[0] : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n}",
     "t.mlir:2:46: stablehlo.gather is not an operation that reduce applies"},
    {MAIN "  %0 = foo.bar[%x] : tensor<2xf32>\n}",
     "t.mlir:2:15: ':' should be here, not '[%x]'"},
};

START_TEST(messages)
{
    struct mlir_program *p = NULL;
    const char *text = faults[_i].text;
    ck_assert_int_eq(mlir_read_text("t.mlir", text, strlen(text), &p), JOT_ERR_IO);
    ck_assert_ptr_null(p);
    ck_assert_str_eq(jot_error_message(), faults[_i].message);
}
END_TEST

// Things inside each other end in a message before the stack does.
START_TEST(depth_is_bounded)
{
    static const struct {
        const char *open, *before;
    } nests[] = {{"tuple<", "func.func @f(%x: "},
                 {"[", "module attributes {a = "},
                 {"{a = ", "module attributes {a = "},
                 {"(", "func.func @f(%x: "},
                 {"\"a\"(", "#l = loc("},
                 {"\"x.y\"() ({", "func.func @f() {"}};
    enum { N = 100000 };
    for (size_t i = 0; i < sizeof nests / sizeof *nests; i++) {
        char *text = malloc(N * 10 + 100);
        size_t n = strlen(nests[i].before);
        memcpy(text, nests[i].before, n);
        for (int k = 0; k < N; k++, n += strlen(nests[i].open))
            strcpy(text + n, nests[i].open);
        struct mlir_program *p = NULL;
        ck_assert_int_eq(mlir_read_text("t.mlir", text, n, &p), JOT_ERR_IO);
        ck_assert_msg(strstr(jot_error_message(), "things stand inside each other") != NULL,
                      "%s: %s", nests[i].open, jot_error_message());
        free(text);
    }
}
END_TEST

// ---- writing

// What is written reads back to the same tree, and is written alike.  Returns it, in the arena.
static const char *check_round_trip(const char *name, const struct mlir_program *p,
                                    struct arena *arena)
{
    struct strbuf text = strbuf_make(arena), again = strbuf_make(arena);
    struct strbuf tree = strbuf_make(arena), tree_again = strbuf_make(arena);
    struct mlir_program *q = NULL;
    mlir_write_text(&text, p);
    ck_assert_msg(mlir_read_text("written", text.text, text.length, &q) == JOT_OK, "%s: %s",
                  name, jot_error_message());
    tree_print(&tree, p);
    tree_print(&tree_again, q);
    tree_compare(name, tree.text, tree_again.text);
    mlir_write_text(&again, q);
    ck_assert_msg(!strcmp(text.text, again.text), "%s is not written alike again", name);
    mlir_release(q);
    return text.text;
}

// Each form as StableHLO prints it.
START_TEST(writes_forms)
{
    size_t n;
    struct mlir_program *p = NULL;
    struct arena *arena = arena_create();
    unsigned char *text = tree_load("tests/interop/programs/written.mlir", &n);
    ck_assert_msg(mlir_read_text("written.mlir", text, n, &p) == JOT_OK, "%s",
                  jot_error_message());
    const char *written = check_round_trip("written.mlir", p, arena);
    text[n] = 0;
    tree_compare("written.mlir", (const char *)text, written);
    mlir_release(p);
    arena_release(arena);
    free(text);
}
END_TEST

// What no form can say is written in the general one.
START_TEST(writes_the_rest)
{
    struct mlir_program *p = read_text(
        "func.func @main(%x: tensor<2xf32>, %i: tensor<i32>) -> tensor<2xf32> {\n"
        "  %0 = \"stablehlo.iota\"() : () -> tensor<2xf32>\n"
        "  %1 = \"stablehlo.add\"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
        "  %2:2 = \"stablehlo.abs\"(%x) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>)\n"
        "  %3 = \"stablehlo.convolution\"(%x, %x) <{dimension_numbers = #stablehlo.conv<raw "
        "input_batch_dimension = 7 : i64>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
        "  %4 = \"stablehlo.while\"(%x) ({ stablehlo.return %i : tensor<i32> }, "
        "{ ^bb0(%a: tensor<2xf32>): stablehlo.return %a : tensor<2xf32> }) : (tensor<2xf32>) "
        "-> "
        "tensor<2xf32>\n"
        "  %5 = \"stablehlo.reduce\"(%x) ({ stablehlo.return %i : tensor<i32> }) : "
        "(tensor<2xf32>) -> tensor<2xf32>\n"
        "  %6 = \"stablehlo.select\"(%x, %i, %i) : (tensor<2xf32>, tensor<i32>, tensor<i32>) "
        "-> "
        "tensor<2xf32>\n"
        "  %7 = \"stablehlo.slice\"(%x) <{limit_indices = array<i64: 1>, start_indices = "
        "array<i64>}> : (tensor<2xf32>) -> tensor<1xf32>\n"
        "  \"some.thing\"(%x) {a, \"b c\" = 1 : i32} : (tensor<2xf32>) -> ()\n"
        "  return %1 : tensor<2xf32>\n"
        "}\n");
    struct arena *arena = arena_create();
    check_round_trip("general forms", p, arena);
    mlir_release(p);
    arena_release(arena);
}
END_TEST

// Where there is a Python with JAX, what it says of what is written: it is the same program.
static void check_accepted(const char *name, const char *written, const char *original)
{
    const char *python = getenv("JOT_PYTHON");
    char path[64] = "/tmp/jot_written_XXXXXX", command[2048];
    if (!python)
        return;
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    FILE *out = fdopen(file, "wb");
    fputs(written, out);
    fclose(out);
    snprintf(command, sizeof command, "%s tests/interop/accepts.py %s %s", python, path,
             original);
    ck_assert_msg(system(command) == 0, "JAX does not take what is written of %s", name);
    remove(path);
}

START_TEST(jax_takes_what_is_written)
{
    size_t n;
    struct mlir_program *p = NULL;
    struct arena *arena = arena_create();
    const char *path = "tests/interop/programs/written.mlir";
    unsigned char *text = tree_load(path, &n);
    ck_assert_int_eq(mlir_read_text("written.mlir", text, n, &p), JOT_OK);
    check_accepted("written.mlir", check_round_trip("written.mlir", p, arena), path);
    mlir_release(p);
    arena_release(arena);
    free(text);
}
END_TEST

// ---- programs of others

static int read_folder(const char *root, const char *folder)
{
    char path[1024];
    int count = 0;
    snprintf(path, sizeof path, "%s/%s", root, folder);
    DIR *dir = opendir(path);
    ck_assert_msg(dir, "%s does not open", path);
    for (const struct dirent *e; (e = readdir(dir));) {
        size_t length = strlen(e->d_name), n;
        if (length < 5 || strcmp(e->d_name + length - 5, ".mlir") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s/%s", root, folder, e->d_name);
        unsigned char *text = tree_load(path, &n);
        struct arena *arena = arena_create();
        struct mlir_program *p = NULL;
        ck_assert_msg(mlir_read_text(e->d_name, text, n, &p) == JOT_OK, "%s",
                      jot_error_message());
        ck_assert_ptr_nonnull(mlir_function_find(p, "main"));
        ck_assert_uint_lt(arena_bytes(p->arena), 20 * n + (1 << 16));
        const char *written = check_round_trip(e->d_name, p, arena);
        if (!strcmp(folder, "whole_programs"))
            check_accepted(e->d_name, written, path);
        mlir_release(p);
        arena_release(arena);
        free(text);
        count++;
    }
    closedir(dir);
    return count;
}

START_TEST(reads_and_writes_conformance)
{
    const char *root = getenv("JOT_CONFORMANCE");
    if (!root)
        return;
    ck_assert_int_eq(read_folder(root, "stablehlo"), 603);
    ck_assert_int_gt(read_folder(root, "jax_programs"), 0);
    ck_assert_int_gt(read_folder(root, "whole_programs"), 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_test(t, reads_forms);
    tcase_add_loop_test(t, reads_constants, 0, (int)(sizeof constants / sizeof constants[0]));
    tcase_add_test(t, reads_large_constants);
    tcase_add_test(t, reads_resources);
    tcase_add_test(t, arguments_have_names);
    tcase_add_loop_test(t, messages, 0, (int)(sizeof faults / sizeof faults[0]));
    tcase_add_test(t, depth_is_bounded);
    tcase_add_test(t, writes_forms);
    tcase_add_test(t, writes_the_rest);
    tcase_add_test(t, jax_takes_what_is_written);
    tcase_add_test(t, reads_and_writes_conformance);
}

int main(void) { return suite_run("mlir_text", add_tests); }
