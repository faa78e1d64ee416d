// SPDX-License-Identifier: Apache-2.0
// Programs that must not compile, one for each name, with what the compiler has to say of it
// (mistakes.sh): the macro, and what it takes.  With -DNO_MISTAKE all of this compiles.
#include "jot/jot.h"

// clang-format off

struct numbers {
    double a;
    int b;
};
JOT_STRUCT(pair, u, v);
static jot_value one(jot_value a) { return a; }
static double real(double a) { return a; }
static jot_value mixed(jot_value a, int b) { return b ? a : a; }
static struct pair swap(struct pair p) { return (struct pair){p.v, p.u}; }
JOT_FUNCTION(swap_fn, swap, struct pair, struct pair);
#define EIGHT(v) v, v, v, v, v, v, v, v
#define SIXTY_FIVE(v) EIGHT(v), EIGHT(v), EIGHT(v), EIGHT(v), EIGHT(v), EIGHT(v), EIGHT(v), EIGHT(v), v

#ifdef MISTAKE_function_types // JOT_FUNCTION(bad_fn, swap): takes a C function, the type of its result
JOT_FUNCTION(bad_fn, swap, struct pair, jot_value);
#endif
#ifdef MISTAKE_function_of_structs // JOT_FUNCTION(bad_fn, larger): arguments and result hold only jot_value
static jot_value larger(struct numbers a) { return jot_from(a.a); }
JOT_FUNCTION(bad_fn, larger, jot_value, struct numbers);
#endif
#ifdef MISTAKE_function_of_numbers // JOT_FUNCTION(bad_fn, real): arguments and result hold only jot_value
JOT_FUNCTION(bad_fn, real, double, double);
#endif

static inline jot_value use(jot_value x, jot_array *a, jot_array **list, jot_value *values, double *data,
                            struct numbers s, jot_executable *f, jot_scope *scope)
{
    jot_value y = x, two[2] = {x, x};
    jot_array *out = NULL, *several[3];
    struct pair p = {x, x};
    struct pair_arrays pa = {a, a};
    jot_function g = jot_fn(one);
    const jot_type types[] = {JOT_TYPE(JOT_F32, 3)};
    const jot_callback_spec spec = {.n_out = 1, .out = types};

    // What is right.
    y = jot_add(jot_sum(x, 0, 1, JOT_KEEPDIMS), jot_mul(a, 2));
    y = jot_irfft(y, .n = JOT_SIZES(23), .axes = JOT_AXES(-1));
    y = jot_slice(jot_sort(jot_take(y, 1, 0)), 0, 1, 2, 3);
    y = jot_at_set(y, 0, 1.5, 0);
    JOT_FOR (i, 3, y, p, two) {
        y = jot_add(y, i);
    }
    JOT_SCAN ((y), (), (x), .length = 3) {
        x = y;
    }
    jot_callback(&spec, &y, x, a, 1.0);
    (void)jot_call(f, JOT_IN(a, several, pa), JOT_OUT(out));
    (void)jot_call(jot_jit(jot_grad(jot_vmap(g, 0)), .name = "g"), JOT_IN(a), JOT_OUT(several));
    (void)jot_check_grads(g, 1, JOT_FORWARD, 0, a);
    (void)jot_array_from(data, 3);
    p = jot_gradient(jot_sum(x), p);
    jot_split(x, 0, two);
    y = jot_random_uniform_in(y, JOT_F32, 0, 1, 3);
    y = jot_random_choice(y, jot_random_permutation(y, x, 0, false), 0, true, 3);
    y = jot_tangent(jot_tangent(y, x, x), p, p);
    values = JOT_LEAVES(p);

#ifdef MISTAKE_value_struct // jot_sin takes a jot_value, a C number or a jot_array *
    y = jot_sin(s);
#endif
#ifdef MISTAKE_value_pointer // jot_add takes a jot_value, a C number or a jot_array *
    y = jot_add(x, data);
#endif
#ifdef MISTAKE_value_list // jot_exp takes a jot_value, a C number or a jot_array *
    y = jot_exp(values);
#endif
#ifdef MISTAKE_value_text // jot_where takes a jot_value, a C number or a jot_array *
    y = jot_where(x, "a", y);
#endif
#ifdef MISTAKE_value_null // jot_mul takes a jot_value, a C number or a jot_array *
    y = jot_mul(x, NULL);
#endif
#ifdef MISTAKE_value_arrays // jot_stack takes a jot_value, a C number or a jot_array *
    y = jot_stack(0, x, list);
#endif
#ifdef MISTAKE_value_function // jot_tanh takes a jot_value, a C number or a jot_array *
    y = jot_tanh(one);
#endif
#ifdef MISTAKE_sum_of_lists // jot_sum takes a jot_value, a C number or a jot_array *
    y = jot_sum(&x, 0);
#endif
#ifdef MISTAKE_axis_value // jot_sum(x, y)
    y = jot_sum(x, y);
#endif
#ifdef MISTAKE_axis_text // jot_sum(x, "rows")
    y = jot_sum(x, "rows");
#endif
#ifdef MISTAKE_axis_pointer // jot_softmax(x, data)
    y = jot_softmax(x, data);
#endif
#ifdef MISTAKE_size_pointer // jot_reshape(x, a)
    y = jot_reshape(x, a);
#endif
#ifdef MISTAKE_missing // jot_sin: an argument is missing at the end
    y = jot_sin();
#endif
#ifdef MISTAKE_missing_second // jot_add: an argument is missing at the end
    y = jot_add(x, );
#endif
#ifdef MISTAKE_too_few // macro "jot_add" requires 2 arguments|too few arguments provided to function-like macro
    y = jot_add(x);
#endif
#ifdef MISTAKE_too_many // macro "jot_exp" passed 2 arguments|too many arguments provided to function-like macro
    y = jot_exp(x, y);
#endif
#ifdef MISTAKE_no_sizes // jot_dynamic_slice(x, 0, ): an argument is missing at the end
    y = jot_dynamic_slice(x, 0, );
#endif
#ifdef MISTAKE_slice_few // jot_slice takes (x, axis, start, stop) or (x, axis, start, stop, step)
    y = jot_slice(x, 0, 1);
#endif
#ifdef MISTAKE_slice_many // jot_slice takes (x, axis, start, stop) or (x, axis, start, stop, step)
    y = jot_slice(x, 0, 1, 2, 1, 1);
#endif
#ifdef MISTAKE_take_many // jot_take takes (x, index) or (x, index, axis)
    y = jot_take(x, 0, 1, 2);
#endif
#ifdef MISTAKE_sort_many // jot_sort takes (x) or (x, axis)
    y = jot_sort(x, 0, 1);
#endif
#ifdef MISTAKE_update_few // jot_at_set takes (x, index, y) or (x, index, y, axis)
    y = jot_at_set(x, 0);
#endif
#ifdef MISTAKE_random_few // jot_random_uniform_in takes (key, dtype, two parameters, sizes...)
    y = jot_random_uniform_in(x, JOT_F32, 0);
#endif
#ifdef MISTAKE_fft_length // jot_irfft takes (x, .n = JOT_SIZES(...), .axes = JOT_AXES(...), .norm = ...)
    y = jot_irfft(x, 23);
#endif
#ifdef MISTAKE_fft_named_length // jot_irfft(x, .n = 23)
    y = jot_irfft(x, .n = 23);
#endif
#ifdef MISTAKE_fft_list // jot_fft takes (x, .n = JOT_SIZES(...), .axes = JOT_AXES(...), .norm = ...)
    y = jot_fft(x, JOT_SIZES(3));
#endif
#ifdef MISTAKE_precision // jot_matmul takes (x, y, .precision = ...)
    y = jot_matmul(x, y, JOT_PRECISION_TF32);
#endif
#ifdef MISTAKE_triangular // jot_solve_triangular takes (a, b, .lower = ..., .transposed = ...)
    y = jot_solve_triangular(x, y, true);
#endif
#ifdef MISTAKE_pool // jot_max_pool takes options behind, .window = JOT_DIMS(...), .strides = ...
    y = jot_max_pool(x, 2, 2);
#endif
#ifdef MISTAKE_convolution // jot_conv_general_dilated takes (x, w, .strides = JOT_DIMS(...), .padding = ...)
    y = jot_conv_general_dilated(x, y, 1);
#endif
#ifdef MISTAKE_krylov // jot_cg takes a jot_function, as jot_fn(f) makes one of a C function
    y = jot_cg(one, x);
#endif
#ifdef MISTAKE_krylov_tolerance // jot_cg takes (a, b, .tol = ..., .atol = ..., .x0 = ..., .max_trips = ...)
    y = jot_cg(g, x, 1e-6);
#endif
#ifdef MISTAKE_top_k // jot_top_k
    y = jot_top_k(x, 3, 0.5);
#endif
#ifdef MISTAKE_top_k_array // jot_top_k
    y = jot_top_k(x, 3, a);
#endif
#ifdef MISTAKE_in_pointer // JOT_IN takes a jot_array *, or a struct or C array of them, not a pointer to several
    (void)jot_call(f, JOT_IN(list), JOT_OUT(out));
#endif
#ifdef MISTAKE_out_pointer // JOT_OUT takes a jot_array *, or a struct or C array of them, not a pointer to several
    (void)jot_call(f, JOT_IN(a), JOT_OUT(list));
#endif
#ifdef MISTAKE_in_value // JOT_IN takes a jot_array *, or a struct or C array of them
    (void)jot_call(f, JOT_IN(x), JOT_OUT(out));
#endif
#ifdef MISTAKE_in_values // JOT_IN takes a jot_array *, or a struct or C array of them
    (void)jot_call(f, JOT_IN(a, two), JOT_OUT(out));
#endif
#ifdef MISTAKE_in_number // JOT_IN takes a jot_array *, or a struct or C array of them
    (void)jot_call(f, JOT_IN(2), JOT_OUT(out));
#endif
#ifdef MISTAKE_in_data // JOT_IN takes a jot_array *, or a struct or C array of them
    (void)jot_call(f, JOT_IN(data), JOT_OUT(out));
#endif
#ifdef MISTAKE_in_null // JOT_IN takes a jot_array *, or a struct or C array of them
    (void)jot_call(f, JOT_IN(NULL), JOT_OUT(out));
#endif
#ifdef MISTAKE_in_nothing // JOT_IN takes 1 to 64 arrays
    (void)jot_call(f, JOT_IN(), JOT_OUT(out));
#endif
#ifdef MISTAKE_in_many // JOT_IN takes at most 64 arguments
    (void)jot_call(f, JOT_IN(SIXTY_FIVE(a)), JOT_OUT(out));
#endif
#ifdef MISTAKE_out_few // too few arguments to function
    (void)jot_call(f, JOT_IN(a));
#endif
#ifdef MISTAKE_replace // jot_arrays_replace takes a jot_array *, or a struct or C array of them
    jot_arrays_replace(list, several);
#endif
#ifdef MISTAKE_read // jot_array_read takes a pointer to C numbers of a type that jot has
    (void)jot_array_read(a, x, 3);
#endif
#ifdef MISTAKE_from_number // jot_array_from takes a pointer to C numbers of a type that jot has
    (void)jot_array_from(3.0, 2);
#endif
#ifdef MISTAKE_from_text // jot_array_from takes a pointer to C numbers of a type that jot has
    (void)jot_array_from("abc", 3);
#endif
#ifdef MISTAKE_from_arrays // jot_array_from takes a pointer to C numbers of a type that jot has
    (void)jot_array_from(list, 3);
#endif
#ifdef MISTAKE_for_array // JOT_FOR takes a jot_value, or a struct or C array of nothing else
    JOT_FOR (i, 3, a) {
    }
#endif
#ifdef MISTAKE_for_pointer // JOT_FOR takes a jot_value, or a struct or C array of nothing else
    JOT_FOR (i, 3, y, values) {
    }
#endif
#ifdef MISTAKE_for_number // JOT_FOR takes a jot_value, or a struct or C array of nothing else
    JOT_FOR (i, 3, *data) {
    }
#endif
#ifdef MISTAKE_for_struct // JOT_FOR_RANGE takes a jot_value, or a struct or C array of nothing else
    struct {
        char text[12];
    } t;
    JOT_FOR_RANGE (i, 1, 3, t) {
    }
#endif
#ifdef MISTAKE_for_many // JOT_FOR takes at most 64 variables
    JOT_FOR (i, 3, SIXTY_FIVE(y)) {
    }
#endif
#ifdef MISTAKE_for_numbers // JOT_FOR takes a jot_value, or a struct or C array of nothing else
    JOT_FOR (i, 3, s) {
    }
#endif
#ifdef MISTAKE_gradient_in_arrays // jot_gradient takes a jot_value, or a struct or C array of nothing else
    pa = jot_gradient(x, pa);
#endif
#ifdef MISTAKE_in_of_values // JOT_IN takes a jot_array *, or a struct or C array of them
    (void)jot_call(f, JOT_IN(p), JOT_OUT(out));
#endif
#ifdef MISTAKE_out_of_values // JOT_OUT takes a jot_array *, or a struct or C array of them
    (void)jot_call(f, JOT_IN(a), JOT_OUT(p));
#endif
#ifdef MISTAKE_leaves // JOT_LEAVES takes a jot_value, or a struct or C array of nothing else
    values = JOT_LEAVES(data);
#endif
#ifdef MISTAKE_tangent_number // jot_tangent takes a dx of the type of x
    y = jot_tangent(y, x, 1.0);
#endif
#ifdef MISTAKE_tangent_pointer // jot_tangent takes a dx of the type of x
    y = jot_tangent(y, p, values);
#endif
#ifdef MISTAKE_choice_sizes // jot_random_choice takes true or false
    y = jot_random_choice(x, y, 0, data, 3);
#endif
#ifdef MISTAKE_permutation // jot_random_permutation takes true or false
    y = jot_random_permutation(x, y, 0, "rows");
#endif
#ifdef MISTAKE_missing_matrix // jot_qr: an argument is missing at the end
    (void)jot_qr();
#endif
#ifdef MISTAKE_missing_item // jot_item: an argument is missing at the end
    (void)jot_item();
#endif
#ifdef MISTAKE_for_trips // JOT_FOR takes a jot_value, a C number or a jot_array *
    JOT_FOR (i, s, y) {
    }
#endif
#ifdef MISTAKE_if // JOT_IF takes a jot_value, or a struct or C array of nothing else
    JOT_IF (x, list) {
    }
#endif
#ifdef MISTAKE_switch // JOT_SWITCH takes a jot_value, or a struct or C array of nothing else
    JOT_SWITCH (x, 2, data) {
    }
#endif
#ifdef MISTAKE_scan_lists // JOT_SCAN_takes_lists_in_parentheses_
    JOT_SCAN (y, (x), (x)) {
    }
#endif
#ifdef MISTAKE_scan_options // JOT_SCAN takes ((carries), (rows in), (rows out), .length = ...
    JOT_SCAN ((y), (), (x), 3) {
    }
#endif
#ifdef MISTAKE_while_lists // JOT_WHILE_takes_lists_in_parentheses_
    JOT_WHILE (y, jot_less(y, 1)) {
    }
#endif
#ifdef MISTAKE_while_test // JOT_WHILE takes a jot_value, a C number or a jot_array *
    JOT_WHILE ((y), s) {
    }
#endif
#ifdef MISTAKE_map_pointer // JOT_MAP takes a jot_value, or a struct or C array of nothing else
    JOT_MAP ((values), (y)) {
    }
#endif
#ifdef MISTAKE_vmap_lists // JOT_VMAP_takes_lists_in_parentheses_
    JOT_VMAP (x, y) {
    }
#endif
#ifdef MISTAKE_grad_of_c_function // jot_grad takes a jot_function, as jot_fn(f) makes one of a C function
    g = jot_grad(one, 0);
#endif
#ifdef MISTAKE_grad_axis // jot_grad(g, x)
    g = jot_grad(g, x);
#endif
#ifdef MISTAKE_vmap_of_value // jot_vmap takes a jot_function, as jot_fn(f) makes one of a C function
    g = jot_vmap(x, 0);
#endif
#ifdef MISTAKE_custom_rule // jot_custom_jvp takes a jot_function, as jot_fn(f) makes one of a C function
    g = jot_custom_jvp(g, one);
#endif
#ifdef MISTAKE_jit // jot_jit takes a jot_function, as jot_fn(f) makes one of a C function
    f = jot_jit(one);
#endif
#ifdef MISTAKE_jit_options // jot_jit takes (f, .name = ..., .donate = ..., .device = ...)
    f = jot_jit(g, "step");
#endif
#ifdef MISTAKE_fn_of_numbers // jot_fn(real): takes a C function of 1 to 32 jot_value that returns one
    g = jot_fn(real);
#endif
#ifdef MISTAKE_fn_of_int // jot_fn(mixed): takes a C function of 1 to 32 jot_value that returns one
    g = jot_fn(mixed);
#endif
#ifdef MISTAKE_fn_of_struct // jot_fn(swap): takes a C function of 1 to 32 jot_value that returns one
    g = jot_fn(swap);
#endif
#ifdef MISTAKE_fn_of_value // jot_fn(x): takes a C function of 1 to 32 jot_value that returns one
    g = jot_fn(x);
#endif
#ifdef MISTAKE_make // jot_function_make(one, 1, 1, NULL)
    g = jot_function_make(one, 1, 1, NULL);
#endif
#ifdef MISTAKE_gradient_in_number // jot_gradient takes a jot_value, or a struct or C array of nothing else
    y = jot_sum(jot_gradient(x, 2.0));
#endif
#ifdef MISTAKE_gradient_in_array // jot_gradient takes a jot_value, or a struct or C array of nothing else
    (void)jot_gradient(x, a);
#endif
#ifdef MISTAKE_gradient_in_list // jot_gradient: an array of values cannot be returned: put it in a struct
    (void)jot_gradient(x, two);
#endif
#ifdef MISTAKE_split_pointer // jot_split takes a jot_value, or a struct or C array of nothing else
    jot_split(x, 0, values);
#endif
#ifdef MISTAKE_split_number // jot_split takes a jot_value, or a struct or C array of nothing else
    jot_split(x, 0, *data);
#endif
#ifdef MISTAKE_concatenate_many // jot_concatenate takes at most 64 values
    y = jot_concatenate(0, SIXTY_FIVE(x));
#endif
#ifdef MISTAKE_associative // jot_associative_scan takes (combine, x), (combine, x, axis) or
    y = jot_associative_scan(g, x, 0, false, 1);
#endif
#ifdef MISTAKE_callback_nothing // jot_callback(&spec, &y, ): an argument is missing at the end
    jot_callback(&spec, &y, );
#endif
#ifdef MISTAKE_callback_values // jot_callback takes a jot_value, a C number or a jot_array *
    jot_callback(&spec, &y, s);
#endif
#ifdef MISTAKE_printf // jot_printf takes a jot_value, a C number or a jot_array *
    jot_printf("{}\n", "text");
#endif
#ifdef MISTAKE_assert // jot_assert takes a jot_value, a C number or a jot_array *
    jot_assert("x", "y");
#endif
#ifdef MISTAKE_check_grads // jot_check_grads takes a jot_function, as jot_fn(f) makes one of a C function
    (void)jot_check_grads(one, 1, JOT_FORWARD, 0, a);
#endif
#ifdef MISTAKE_keep // jot_scope_keep(scope, JOT_TREE(values))|JOT_TREE takes a jot_value
    (void)jot_scope_keep(scope, JOT_TREE(values));
#endif
    (void)list, (void)values, (void)s, (void)scope, (void)swap_fn, (void)real, (void)mixed;
    return y;
}
