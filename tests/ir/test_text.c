// SPDX-License-Identifier: Apache-2.0
// The text form: what is printed reads back to the same graph, what is read prints to the same
// text, and no text whatever does harm.
#include "base/status.h"
#include "ir/build.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

// Every op, every kind of attribute, functions that use functions.
static const char functions[] =
    "jot ir 1\n"
    "function @0 twice(%0: f32[4]) {\n"
    "  %1 = add %0, %0 : f32[4]\n"
    "  return %1\n"
    "}\n"
    "function @1(%0: f32[4]) {\n"
    "  %1 = call %0 {functions=[@0]} : f32[4]\n"
    "  return %1\n"
    "}\n"
    "function @2 \"a \\\"rule\\\"\\x0a\"(%0: f32[4], %1: f32[4]) {\n"
    "  return %1\n"
    "}\n"
    "function @3 fwd(%0: f32[4]) {\n"
    "  return %0, %0\n"
    "}\n"
    "function @4 nothing() {\n"
    "  return\n"
    "}\n"
    "function @5 test(%0: f32[4]) {\n"
    "  %1 = const {data=true} : bool[]\n"
    "  return %1\n"
    "}\n"
    "function @6 lanes(%0: f32[4]) {\n"
    "  %1 = is_finite %0 : bool[4]\n"
    "  return %1\n"
    "}\n"
    "function @7 control(%0: f32[4], %1: i32[]) {\n"
    "  %2 = scan %0 {reverse=1, length=3, n_consts=0, n_carry=1, functions=[@0]} : f32[4]\n"
    "  %3 = while %2 {n_consts=0, max_trips=7, functions=[@5, @0]} : f32[4]\n"
    "  %4 = while %3 {n_consts=0, batched=1, functions=[@6, @1]} : f32[4]\n"
    "  %5 = cond %1, %4 {functions=[@1, @0]} : f32[4]\n"
    "  return %5, %2\n"
    "}\n";

static const char main_function[] =
    "function @8 main(%0: f32[4], %1: c64[2,3], %2: i32[], %3: u32[4], %4: bool[4], %5: "
    "f64[2,3]) "
    "{\n"
    "  %6 = const {data=1.5} : f32[]\n"
    "  %7 = const {data=[(1, -2), (inf, nan)]} : c64[2]\n"
    "  %8 = const {data=[true, false]} : bool[2]\n"
    "  %9 = const {data=[]} : f32[3,0]\n"
    "  %10 = const {data=0x0102030405060708090a0b0c0d0e0f101112} : u8[18]\n"
    "  %11 = iota {dtype=i32, dims=[2, 3], axis=1} : i32[2,3]\n"
    "  %12 = neg %0 : f32[4]\n"
    "  %13 = sign %0 : f32[4]\n"
    "  %14 = abs %1 : f32[2,3]\n"
    "  %15 = floor %0 : f32[4]\n"
    "  %16 = ceil %0 : f32[4]\n"
    "  %17 = round_even %0 : f32[4]\n"
    "  %18 = round_away %0 : f32[4]\n"
    "  %19 = is_finite %0 : bool[4]\n"
    "  %20 = exp %0 : f32[4]\n"
    "  %21 = exp2 %0 : f32[4]\n"
    "  %22 = expm1 %0 : f32[4]\n"
    "  %23 = log %0 : f32[4]\n"
    "  %24 = log1p %0 : f32[4]\n"
    "  %25 = sqrt %0 : f32[4]\n"
    "  %26 = rsqrt %0 : f32[4]\n"
    "  %27 = cbrt %0 : f32[4]\n"
    "  %28 = sin %0 : f32[4]\n"
    "  %29 = cos %0 : f32[4]\n"
    "  %30 = tan %0 : f32[4]\n"
    "  %31 = asin %0 : f32[4]\n"
    "  %32 = acos %0 : f32[4]\n"
    "  %33 = atan %0 : f32[4]\n"
    "  %34 = sinh %0 : f32[4]\n"
    "  %35 = cosh %0 : f32[4]\n"
    "  %36 = tanh %0 : f32[4]\n"
    "  %37 = asinh %0 : f32[4]\n"
    "  %38 = acosh %0 : f32[4]\n"
    "  %39 = atanh %0 : f32[4]\n"
    "  %40 = logistic %0 : f32[4]\n"
    "  %41 = erf_inv %0 : f32[4]\n"
    "  %42 = integer_pow %0 {exponent=-3} : f32[4]\n"
    "  %43 = not %4 : bool[4]\n"
    "  %44 = popcount %3 : u32[4]\n"
    "  %45 = clz %3 : u32[4]\n"
    "  %46 = real %1 : f32[2,3]\n"
    "  %47 = imag %1 : f32[2,3]\n"
    "  %48 = conj %1 : c64[2,3]\n"
    "  %49 = convert %0 {dtype=bf16} : bf16[4]\n"
    "  %50 = bitcast %0 {dtype=u32} : u32[4]\n"
    "  %51 = reduce_precision %0 {exponent_bits=8, mantissa_bits=7} : f32[4]\n"
    "  %52 = sub %0, %6 : f32[4]\n"
    "  %53 = mul %0, %0 : f32[4]\n"
    "  %54 = mul_z %0, %0 : f32[4]\n"
    "  %55 = div %0, %0 : f32[4]\n"
    "  %56 = rem %0, %0 : f32[4]\n"
    "  %57 = pow %0, %0 : f32[4]\n"
    "  %58 = max %0, %0 : f32[4]\n"
    "  %59 = min %0, %0 : f32[4]\n"
    "  %60 = atan2 %0, %0 : f32[4]\n"
    "  %61 = nextafter %0, %0 : f32[4]\n"
    "  %62 = complex %0, %6 : c64[4]\n"
    "  %63 = and %3, %3 : u32[4]\n"
    "  %64 = or %3, %3 : u32[4]\n"
    "  %65 = xor %3, %3 : u32[4]\n"
    "  %66 = shl %3, %3 : u32[4]\n"
    "  %67 = shr_logical %3, %3 : u32[4]\n"
    "  %68 = shr_arith %3, %3 : u32[4]\n"
    "  %69 = fma %0, %6, %0 : f32[4]\n"
    "  %70 = eq %1, %1 : bool[2,3]\n"
    "  %71 = ne %1, %1 : bool[2,3]\n"
    "  %72 = lt %0, %0 : bool[4]\n"
    "  %73 = le %0, %0 : bool[4]\n"
    "  %74 = gt %0, %0 : bool[4]\n"
    "  %75 = ge %0, %0 : bool[4]\n"
    "  %76 = select %4, %0, %6 : f32[4]\n"
    "  %77 = clamp %6, %0, %6 : f32[4]\n"
    "  %78, %79 = threefry2x32 %3, %3, %3, %3 : u32[4], u32[4]\n"
    "  %80 = broadcast_in_dim %0 {dims=[2, 4], axes=[1]} : f32[2,4]\n"
    "  %81 = reshape %2 {dims=[]} : i32[]\n"
    "  %82 = transpose %5 {axes=[1, 0]} : f64[3,2]\n"
    "  %83 = rev %5 {axes=[0]} : f64[2,3]\n"
    "  %84 = slice %5 {starts=[0, 1], limits=[2, 3], strides=[1, 2]} : f64[2,1]\n"
    "  %85 = pad %0, %6 {low=[-1], high=[2], interior=[0]} : f32[5]\n"
    "  %86 = concatenate %0, %0, %0 {axis=0} : f32[12]\n"
    "  %87 = reduce_sum %5 {axes=[0, 1]} : f64[]\n"
    "  %88 = reduce_prod %5 {axes=[1]} : f64[2]\n"
    "  %89 = reduce_max %5 {axes=[0]} : f64[3]\n"
    "  %90 = reduce_min %5 {axes=[0]} : f64[3]\n"
    "  %91 = reduce_and %4 {axes=[0]} : bool[]\n"
    "  %92 = reduce_or %4 {axes=[0]} : bool[]\n"
    "  %93 = reduce_xor %4 {axes=[0]} : bool[]\n"
    "  %94 = argmax %5 {dtype=i64, axis=1} : i64[2]\n"
    "  %95 = argmin %5 {dtype=i32, axis=0} : i32[3]\n"
    "  %96 = cumsum %5 {axis=1, reverse=1} : f64[2,3]\n"
    "  %97 = cumprod %5 {axis=1, reverse=0} : f64[2,3]\n"
    "  %98 = cummax %5 {axis=0, reverse=0} : f64[2,3]\n"
    "  %99 = cummin %5 {axis=0, reverse=0} : f64[2,3]\n"
    "  %100 = cumlogsumexp %5 {axis=0, reverse=0} : f64[2,3]\n"
    "  %101 = dot_general %5, %5 {lhs_contract=[1], rhs_contract=[1], lhs_batch=[], "
    "rhs_batch=[], "
    "precision=0} : f64[2,2]\n"
    "  %102 = stop_gradient %5 : f64[2,3]\n"
    "  %103 = variable %5 {name=\"tab\\x09 \\\\ end\"} : f64[2,3]\n"
    "  %104, %105 = barrier %5, %2 : f64[2,3], i32[]\n"
    "  %106 = call %0 {functions=[@1]} : f32[4]\n"
    "  %107 = checkpoint %0 {functions=[@0]} : f32[4]\n"
    "  %108 = custom_jvp %0 {functions=[@0, @2]} : f32[4]\n"
    "  %109 = custom_vjp %0 {functions=[@0, @3, @2]} : f32[4]\n"
    "  %110 = linear_call %0, %0 {counts=[1], functions=[@2, @2]} : f32[4]\n"
    "  %111 = linear_solve %0, %0 {counts=[1], functions=[@2, @2, @2]} : f32[4]\n"
    "  call {functions=[@4]}\n"
    "  %112, %113 = call %0, %2 {functions=[@7]} : f32[4], f32[4]\n"
    "  return %109, %0, %110, %105\n"
    "}\n";

// Indices that are data, a routine, and windows.
static const char *const indices =
    "jot ir 1\n"
    "function @0 indices(%0: f32[5,4], %1: i32[3,1], %2: f32[3,4], %3: i64[]) {\n"
    "  %4 = dynamic_slice %0, %3, %3 {sizes=[2, 4]} : f32[2,4]\n"
    "  %5 = gather %0, %1 {offset_dims=[1], collapsed_dims=[0], operand_batch=[], "
    "index_batch=[], index_map=[0], sizes=[1, 4], mode=3} : f32[3,4]\n"
    "  %6 = dynamic_update_slice %0, %4, %3, %3 : f32[5,4]\n"
    "  %7 = scatter %6, %1, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
    "f32[5,4]\n"
    "  %8 = scatter_add %7, %1, %5 {offset_dims=[1], collapsed_dims=[0], index_map=[0], "
    "unique=1, mode=2} : f32[5,4]\n"
    "  %9 = scatter_mul %8, %1, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
    "f32[5,4]\n"
    "  %10 = scatter_min %9, %1, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
    "f32[5,4]\n"
    "  %11 = scatter_max %10, %1, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
    "f32[5,4]\n"
    "  %12 = is_finite %11 : bool[5,4]\n"
    "  check %12 {message=\"a \\\"scatter\\\"\", place=\"a.c:3\"}\n"
    "  %13 = fft %11 {sizes=[4], mode=2} : c64[5,3]\n"
    "  %14 = fft %13 {sizes=[5, 4], mode=3} : f32[5,4]\n"
    "  %15 = shear %14 {axis=0, along=1, offset=-2, step=1, length=6} : f32[6,4]\n"
    "  %16, %17 = sort %14, %11 {num_keys=1} : f32[5,4], f32[5,4]\n"
    "  %18, %19 = top_k %17 {dtype=i32, length=2} : f32[5,2], i32[5,2]\n"
    "  %20 = cumor %19 {axis=0, reverse=1} : i32[5,2]\n"
    "  %21 = diagonal %15 {axis=0, along=1, offset=-1, step=2, length=2} : f32[2]\n"
    "  return %21, %20\n"
    "}\n";

// The three derivatives of one product.
static const char convolutions[] =
    "jot ir 1\nfunction @0 main(%0: f32[2,3,7], %1: f32[4,3,3]) {\n"
    "  %2 = conv %0, %1 {strides=[2], low=[0], high=[0], lhs_dilation=[1], rhs_dilation=[1], "
    "groups=1, layout=0, sizes=[], precision=0, mode=2} : f32[2,4,3]\n"
    "  %3 = conv %1, %2 {strides=[2], low=[0], high=[0], lhs_dilation=[1], rhs_dilation=[1], "
    "groups=1, layout=0, sizes=[7], precision=0, mode=0} : f32[2,3,7]\n"
    "  %4 = conv %3, %2 {strides=[2], low=[0], high=[0], lhs_dilation=[1], rhs_dilation=[1], "
    "groups=1, layout=0, sizes=[3], precision=0, mode=1} : f32[4,3,3]\n"
    "  return %4\n}\n";

// Factorizations and linear systems.
static const char *const matrices =
    "jot ir 1\n"
    "function @0 matrices(%0: f64[2,3], %1: f64[2,2], %2: f64[2]) {\n"
    "  %3 = cholesky %1 : f64[2,2]\n"
    "  %4, %5, %6 = lu %0 : f64[2,3], i32[2], i32[2]\n"
    "  %7 = triangular_solve %3, %0 {left=1, lower=1, transposed=0, conjugated=0, "
    "unit_diagonal=0} : f64[2,3]\n"
    "  %8 = tridiagonal_solve %2, %2, %2, %0 : f64[2,3]\n"
    "  return %3, %5, %7, %8\n"
    "}\n";

// Named axes; what varies over them is so in all trips, and in all branches.
static const char *const lanes =
    "jot ir 1\n"
    "function @0 step(%0: f32[4]<i:2,j:3>) {\n"
    "  %1 = psum %0 {over=[i:2]} : f32[4]<j:3>\n"
    "  %2 = pvary %1 {over=[i:2]} : f32[4]<i:2,j:3>\n"
    "  return %2\n"
    "}\n"
    "function @1 lanes(%0: f32[4]<i:2>, %1: i32[]) {\n"
    "  %2 = pvary %0 {over=[j:3]} : f32[4]<i:2,j:3>\n"
    "  %3 = scan %2 {reverse=0, length=3, n_consts=0, n_carry=1, functions=[@0]} : "
    "f32[4]<i:2,j:3>\n"
    "  %4 = cond %1, %3 {functions=[@0, @0]} : f32[4]<i:2,j:3>\n"
    "  %5 = pmax %4 {over=[i:2, j:3]} : f32[4]\n"
    "  %6 = pmin %4 {over=[j:3]} : f32[4]<i:2>\n"
    "  %7 = all_gather %6 {over=[i:2]} : f32[2,4]\n"
    "  %8 = pvary %7 {over=[i:2]} : f32[2,4]<i:2>\n"
    "  %9 = psum_scatter %8 {over=[i:2]} : f32[4]<i:2>\n"
    "  %10 = all_to_all %8 {over=[i:2]} : f32[2,4]<i:2>\n"
    "  %11 = ppermute %4 {over=[j:3, i:2], pairs=[0, 5, 3, 1]} : f32[4]<i:2,j:3>\n"
    "  %12 = axis_index {over=[j:3]} : i32[]<j:3>\n"
    "  %13 = psum %11 {over=[j:3, i:2]} : f32[4]\n"
    "  %14 = exchange %5 {mesh=[2], exchange=[2, 0, 11, 1, 0]} : f32[2,4]\n"
    "  return %5, %9, %10, %12, %13, %14\n"
    "}\n";

// What each device of a mesh does.
static const char *const sharded =
    "jot ir 1\n"
    "function @0 piece(%0: f32[4]<k:5,l:2>, %1: f32[2,3]<l:2>) {\n"
    "  %2 = psum %0 {over=[k:5, l:2]} : f32[4]\n"
    "  return %0, %1, %2\n"
    "}\n"
    "function @1 sharded(%0: f32[40], %1: f32[2,6]) {\n"
    "  %2, %3, %4 = shard_map %0, %1 {functions=[@0], grid=[k:5, l:2], splits=[3, 2, 0, 1, 3, "
    "0, 1, 1, 3, 2, 0, 1, 3, 0, 1, 1, 1, 0]} : f32[40], f32[2,6], f32[4]\n"
    "  return %2, %3, %4\n"
    "}\n";

static char whole[sizeof functions + sizeof main_function];
static struct ir_module *module;

static void set_up(void)
{
    snprintf(whole, sizeof whole, "%s%s", functions, main_function);
    module = ir_module_create();
    ck_assert_ptr_nonnull(module);
}

static void tear_down(void) { ir_module_release(module); }

static struct ir_graph *parse(struct ir_module *m, const char *text)
{
    struct ir_graph *g = NULL;
    jot_status status = ir_graph_parse(m, text, &g);
    ck_assert_msg(status == JOT_OK, "%s\n%.600s", jot_error_message(), text);
    return g;
}

static void check_sound(const struct ir_graph *g)
{
    struct strbuf report = strbuf_make(g->module->arena);
    int faults = ir_verify(g, &report);
    ck_assert_msg(faults == 0, "%d faults:\n%.1500s", faults, report.text);
}

// print(parse(print(g))) is print(g), and in one module the graphs are equal.
static void check_round_trip(const struct ir_graph *g)
{
    const char *text = ir_graph_text(g);
    struct ir_graph *again = parse(g->module, text);
    ck_assert_msg(ir_graph_equal(g, again), "not equal after parsing:\n%.600s", text);
    ck_assert_str_eq(ir_graph_text(again), text);
    struct ir_module *other = ir_module_create();
    ck_assert_str_eq(ir_graph_text(parse(other, text)), text);
    ir_module_release(other);
}

// An elementwise op or a routine without attributes, on vectors or matrices of the first dtype that it
// takes.
static bool round_trips_alone(enum ir_op op)
{
    const struct ir_op_info *info = ir_op_get(op);
    bool is_routine = info->op_class == IR_CLASS_LIBRARY;
    if ((info->op_class != IR_CLASS_MAP && !is_routine) || info->in < 1 || info->in > 4)
        return false;
    int rank = is_routine ? 2 : 1;
    for (int d = DTYPE_COUNT - 1; d >= 0; d--) {
        struct ir_builder b = ir_builder_make(module, info->name, IR_BUILD_PLAIN);
        ir_id in[4];
        for (int i = 0; i < info->in; i++)
            in[i] = ir_param(&b, ir_type_make(module, (jot_dtype)d, rank, (int64_t[]){3, 3}));
        ir_id y = ir_build(&b, op, info->in, in, NULL);
        if (y == IR_NONE)
            continue;
        ir_output(&b, y);
        check_round_trip(ir_finish(&b));
        return true;
    }
    return false;
}

START_TEST(every_op_round_trips)
{
    struct ir_graph *g = parse(module, whole);
    ck_assert_str_eq(ir_graph_text(g), whole);
    ck_assert_str_eq(g->name, "main");
    check_sound(g);
    check_round_trip(g);
    bool seen[IR_OP_COUNT] = {false};
    ir_for_each_node (g, n)
        seen[n->op] = true;
    for (uint32_t f = 0; f < module->functions.count; f++)
        ir_for_each_node (ir_function(module, f), n)
            seen[n->op] = true;
    const char *const texts[] = {indices, matrices, convolutions, lanes, sharded};
    for (int i = 0; i < 5; i++) {
        g = parse(module, texts[i]);
        ck_assert_str_eq(ir_graph_text(g), texts[i]);
        check_sound(g);
        check_round_trip(g);
        ir_for_each_node (g, n)
            seen[n->op] = true;
    }
    for (int op = 0; op < IR_OP_COUNT; op++)
        // A callback needs a function in the module's table: test_effects.c.
        ck_assert_msg(seen[op] || op == IR_callback || round_trips_alone((enum ir_op)op),
                      "the text lacks %s", ir_op_get((enum ir_op)op)->name);
}
END_TEST

START_TEST(names_and_places)
{
    struct ir_graph *g =
        parse(module, "; a comment\njot ir 1 ; and one\n\n"
                      "function @0 f(%x: f32[2], %y.1: f32[]) { ; here\r\n"
                      "\t%sum = add %x,%y.1:f32[2] ; prog.c:3: jot_add(x, y)\n\n"
                      "  return %sum,%x\n }");
    ck_assert_ptr_nonnull(g);
}
END_TEST

START_TEST(places_are_comments)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, ir_type_make(module, JOT_F32, 0, NULL));
    b.where = ir_where_make(module, "prog.c:3: jot_exp(x)");
    b.where = ir_where_merge(module, b.where, ir_where_make(module, "prog.c:4: jot_exp(\ny)"));
    ir_output(&b, ir_exp(&b, x));
    struct ir_graph *g = ir_finish(&b);
    const char *text = ir_graph_text(g);
    ck_assert_ptr_nonnull(strstr(text, "  %1 = exp %0 : f32[]  ; prog.c:"));
    ck_assert_ptr_nonnull(strstr(text, " + prog.c:"));
    ck_assert_ptr_nonnull(strstr(text, "prog.c:4: jot_exp( y)"));
    ck_assert(ir_graph_equal(parse(module, text), g));
}
END_TEST

// Functions that two callers share are printed once, by first use.
START_TEST(shared_functions)
{
    struct ir_type t = ir_type_make(module, JOT_F32, 0, NULL);
    uint32_t leaf[2], middle;
    for (int i = 0; i < 2; i++) {
        struct ir_builder b = ir_builder_make(module, i ? "cosine" : "sine", IR_BUILD_PLAIN);
        ir_id x = ir_param(&b, t);
        ir_output(&b, i ? ir_cos(&b, x) : ir_sin(&b, x));
        leaf[i] = ir_finish_function(&b);
    }
    struct ir_builder b = ir_builder_make(module, "middle", IR_BUILD_PLAIN);
    ir_id x = ir_param(&b, t);
    x = ir_call(&b, IR_call, 1, &leaf[1], 1, &x);
    ir_output(&b, ir_call(&b, IR_call, 1, &leaf[0], 1, &x));
    middle = ir_finish_function(&b);
    b = ir_builder_make(module, NULL, IR_BUILD_PLAIN);
    x = ir_param(&b, t);
    x = ir_call(&b, IR_call, 1, &middle, 1, &x);
    ir_output(&b, ir_call(&b, IR_checkpoint, 1, &leaf[0], 1, &x));
    struct ir_graph *g = ir_finish(&b);
    ck_assert_str_eq(ir_graph_text(g), "jot ir 1\n"
                                       "function @0 cosine(%0: f32[]) {\n"
                                       "  %1 = cos %0 : f32[]\n"
                                       "  return %1\n"
                                       "}\n"
                                       "function @1 sine(%0: f32[]) {\n"
                                       "  %1 = sin %0 : f32[]\n"
                                       "  return %1\n"
                                       "}\n"
                                       "function @2 middle(%0: f32[]) {\n"
                                       "  %1 = call %0 {functions=[@0]} : f32[]\n"
                                       "  %2 = call %1 {functions=[@1]} : f32[]\n"
                                       "  return %2\n"
                                       "}\n"
                                       "function @3(%0: f32[]) {\n"
                                       "  %1 = call %0 {functions=[@2]} : f32[]\n"
                                       "  %2 = checkpoint %1 {functions=[@1]} : f32[]\n"
                                       "  return %2\n"
                                       "}\n");
    check_round_trip(g);
}
END_TEST

static uint64_t random_state;

static uint64_t random_next(void)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    return hash_mix(random_state);
}

static uint64_t random_below(uint64_t n) { return random_next() % n; }

static void seed_random(void)
{
    const char *seed = getenv("JOT_TEST_SEED");
    random_state = seed ? strtoull(seed, NULL, 0) : UINT64_C(20240607);
    printf("seed %llu\n", (unsigned long long)random_state);
    fflush(stdout);
}

static struct ir_graph *graph_of_const(jot_dtype dtype, int rank, const int64_t *dims,
                                       const void *data)
{
    struct ir_builder b = ir_builder_make(module, "f", IR_BUILD_PLAIN);
    ir_output(&b, ir_const(&b, ir_type_make(module, dtype, rank, dims), data));
    ck_assert_msg(b.status == JOT_OK, "%s", b.message);
    return ir_finish(&b);
}

// Random bits and their neighbourhood: every float class, every width.
START_TEST(elements_round_trip)
{
    jot_dtype dtype = (jot_dtype)_i;
    seed_random();
    for (int round = 0; round < 300; round++) {
        uint8_t data[20 * 16];
        for (size_t i = 0; i < sizeof data; i++)
            data[i] =
                (uint8_t)(round % 3 == 0   ? random_next()
                          : round % 3 == 1 ? random_next() & random_next() & random_next()
                                           : random_next() | random_next() | random_next());
        for (size_t i = 0; dtype == JOT_BOOL && i < sizeof data; i++)
            data[i] &= 1;
        check_round_trip(graph_of_const(dtype, 0, NULL, data));
        if (round % 10 == 0) {
            check_round_trip(graph_of_const(dtype, 2, (int64_t[]){2, 8}, data));
            check_round_trip(graph_of_const(dtype, 1, (int64_t[]){17}, data));
            check_round_trip(graph_of_const(dtype, 1, (int64_t[]){0}, data));
        }
    }
}
END_TEST

#define HEAD "jot ir 1\nfunction @0 f(%0: f32[2]) {\n"
#define TAIL "  return %0\n}\n"

static const struct {
    const char *text, *message;
} faults[] = {
    {"", "line 1, column 1: a graph's text starts with the line 'jot ir 1'"},
    {"jot ir 2\n", "line 1, column 9: the text has version 2; this jot reads version 1"},
    {"jot ir 1\n", "line 2, column 1: the text has no function"},
    {"jot ir 1\nfunc", "line 2, column 5: 'function' should be here"},
    {"jot ir 1\nfunction @1 f() {",
     "line 2, column 12: functions are numbered in order: this is @0"},
    {"jot ir 1\nfunction @0 f(%0 f32[2]) {", "line 2, column 18: ':' should be here"},
    {"jot ir 1\nfunction @0 f(%0: f31[2]) {",
     "line 2, column 19: 'f31' is not an element type; they are called f32, i32, bool, ..."},
    {"jot ir 1\nfunction @0 f(%0: f32[-2]) {",
     "line 2, column 19: size -2 of axis 0 is negative"},
    {"jot ir 1\nfunction @0 f(%0: f32[9223372036854775807]) {",
     "line 2, column 19: the type is larger than 2^62 bytes"},
    {"jot ir 1\nfunction @0 f(%0: f32[99223372036854775807]) {",
     "line 2, column 23: a 64-bit integer should be here"},
    {"jot ir 1\nfunction @0 f(%0: f32[2], %0: f32[2]) {",
     "line 2, column 28: %0 is defined twice"},
    {HEAD, "line 3, column 1: a function ends with 'return' and then '}'"},
    {HEAD "}", "line 3, column 1: a function ends with 'return' and then '}'"},
    {HEAD "  %1 = ad %0, %0 : f32[2]\n" TAIL, "line 3, column 8: 'ad' is not an op"},
    {HEAD "  %1 = param : f32[2]\n" TAIL, "line 3, column 8: 'param' is not an op"},
    {HEAD "  %1 = add %0, %2 : f32[2]\n" TAIL,
     "line 3, column 17: %2 is not defined before this line"},
    {HEAD "  %0 = add %0, %0 : f32[2]\n" TAIL, "line 3, column 4: %0 is defined twice"},
    {HEAD "  %1 = add %0 : f32[2]\n" TAIL,
     "line 3, column 8: add: add takes 2 operands, not 1"},
    {HEAD "  %1 = add %0, %0 : f32[3]\n" TAIL,
     "line 3, column 3: result 0 of add is f32[2], not f32[3]"},
    {HEAD "  %1 = add %0, %0 : f64[2]\n" TAIL,
     "line 3, column 3: result 0 of add is f32[2], not f64[2]"},
    {HEAD "  %1 = add %0, %0\n" TAIL,
     "line 3, column 3: add has 1 results; 1 names and 0 types are given"},
    {HEAD "  %1, %2 = add %0, %0 : f32[2]\n" TAIL,
     "line 3, column 3: add has 1 results; 2 names and 1 types are given"},
    {HEAD "  add %0, %0 : f32[2]\n" TAIL,
     "line 3, column 3: add has 1 results; 0 names and 1 types are given"},
    {HEAD "  %1 = add %0, %0 : f32[2] f32[2]\n" TAIL,
     "line 3, column 28: the line should end here"},
    {HEAD "  %1 = rev %0 {axis=[0]} : f32[2]\n" TAIL,
     "line 3, column 21: a 64-bit integer should be here"},
    {HEAD "  %1 = rev %0 {axes=[0], axes=[0]} : f32[2]\n" TAIL,
     "line 3, column 26: the attribute axes is there twice"},
    {HEAD "  %1 = rev %0 {sides=[0]} : f32[2]\n" TAIL,
     "line 3, column 16: 'sides' is not an attribute"},
    {HEAD "  %1 = rev %0 {axes=[0] : f32[2]\n" TAIL, "line 3, column 25: '}' should be here"},
    {HEAD "  %1 = rev %0 {axes=[0\n" TAIL,
     "line 3, column 23: the line ends where ',' should be"},
    {HEAD "  %1 = call %0 {functions=[@0]} : f32[2]\n" TAIL,
     "line 3, column 30: @0 is not defined before this line"},
    {HEAD "  %1 = variable %0 {name=\"x} : f32[2]\n" TAIL,
     "line 3, column 38: the line ends inside a text: '\"' is missing"},
    {HEAD "  %1 = variable %0 {name=\"\\n\"} : f32[2]\n" TAIL,
     "line 3, column 27: after '\\' there is '\\', '\"' or 'x'"},
    {HEAD "  %1 = const {data=[1]} : f32[2]\n" TAIL, "line 3, column 22: ',' should be here"},
    {HEAD "  %1 = const {data=[1, 2, 3]} : f32[2]\n" TAIL,
     "line 3, column 25: ']' should be here"},
    {HEAD "  %1 = const {data=1, 2} : f32[]\n" TAIL,
     "line 3, column 23: '2' is not an attribute"},
    {HEAD "  %1 = const {data=[1, x]} : f32[2]\n" TAIL,
     "line 3, column 24: element 1 of f32[2] should be here"},
    {HEAD "  %1 = const {data=300} : u8[]\n" TAIL,
     "line 3, column 20: element 0 of u8[] should be here"},
    {HEAD "  %1 = const {data=0x012} : u8[2]\n" TAIL,
     "line 3, column 22: 3 hexadecimal digits are not whole bytes"},
    {HEAD "  %1 = const {data=0x01} : u8[2]\n" TAIL,
     "line 3, column 8: const: const of u8[2] has 1 bytes of data, not 2"},
    {HEAD "  %1 = const : u8[2]\n" TAIL, "line 3, column 8: a const needs data and one type"},
    {HEAD "  %1 = const {dims=[2]} : u8[2]\n" TAIL,
     "line 3, column 15: a const has dims in its type"},
    {HEAD "  %1 = iota {dims=[4611686018427387904, 2], dtype=f32, axis=0} : u8[2]\n" TAIL,
     "line 3, column 8: iota: f32[4611686018427387904,2] is larger than 2^62 bytes"},
    {HEAD "  return %1\n}\n", "line 3, column 11: %1 is not defined before this line"},
    {HEAD TAIL "more", "line 5, column 5: 'function' should be here"},
};

START_TEST(messages)
{
    struct ir_graph *g = NULL;
    jot_status status = ir_graph_parse(module, faults[_i].text, &g);
    ck_assert_int_eq(status, JOT_ERR_ARGUMENT);
    ck_assert_str_eq(jot_error_message(), faults[_i].message);
    ck_assert_ptr_null(g);
}
END_TEST

// One small change: a byte, a piece cut out, a piece copied elsewhere, or an end too soon.
static void mutate(char *text, size_t size)
{
    static const char bytes[] = "%@{}[]():;,=\"\\-+0129.x \nejnft";
    size_t length = strlen(text), at = random_below(length + 1), n = random_below(8);
    size_t from = random_below(length + 1);
    char piece[32];
    switch (random_below(5)) {
    case 0:
        text[at < length ? at : 0] = (char)(1 + random_below(255));
        break;
    case 1:
        text[at < length ? at : 0] = bytes[random_below(sizeof bytes - 1)];
        break;
    case 2:
        if (at + n <= length)
            memmove(text + at, text + at + n, length - at - n + 1);
        break;
    case 3:
        n = n + from <= length ? n : 0;
        memcpy(piece, text + from, n);
        if (length + n + 1 < size) {
            memmove(text + at + n, text + at, length - at + 1);
            memcpy(text + at, piece, n);
        }
        break;
    default:
        if (random_below(20) == 0)
            text[at] = 0;
    }
}

// The parser survives every text; what it accepts is sound and prints to something it accepts.
START_TEST(mutated_texts)
{
    const char *count = getenv("JOT_TEST_COUNT");
    long rounds = count ? strtol(count, NULL, 10) : 3000, accepted = 0;
    static char text[2 * sizeof whole];
    seed_random();
    for (long round = 0; round < rounds; round++) {
        struct ir_graph *g = NULL;
        struct ir_module *m = ir_module_create();
        memcpy(text, whole, sizeof whole);
        for (uint64_t n = 1 + random_below(3); n > 0; n--)
            mutate(text, sizeof text);
        if (ir_graph_parse(m, text, &g) == JOT_OK) {
            accepted++;
            check_sound(g);
            check_round_trip(g);
        } else {
            ck_assert_ptr_null(g);
            ck_assert_msg(!strncmp(jot_error_message(), "line ", 5), "%s", jot_error_message());
        }
        ir_module_release(m);
    }
    ck_assert_int_gt(accepted, 0);
    ck_assert_int_lt(accepted, rounds);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *text = tcase_create("text");
    tcase_set_timeout(text, 120);
    tcase_add_checked_fixture(text, set_up, tear_down);
    tcase_add_test(text, every_op_round_trips);
    tcase_add_test(text, names_and_places);
    tcase_add_test(text, places_are_comments);
    tcase_add_test(text, shared_functions);
    tcase_add_loop_test(text, elements_round_trip, 0, DTYPE_COUNT);
    tcase_add_loop_test(text, messages, 0, (int)(sizeof faults / sizeof faults[0]));
    tcase_add_test(text, mutated_texts);
    suite_add_tcase(suite, text);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
