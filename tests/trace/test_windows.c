// SPDX-License-Identifier: Apache-2.0
// Windows: values and derivatives beside JAX's, maps, types and messages.
#include "trace_support.h"

#include "support/sample.h"

static jot_value numbers(int stream, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; dims[i] != JOT_END; i++)
        n *= dims[i];
    jot_value i = jot_mod(jot_add(jot_mul(jot_arange(JOT_I32, n), 7), 3 * stream), 11);
    return jot_reshape_dims(jot_convert(jot_sub(i, 5), JOT_F32), dims);
}

static jot_value flat(jot_value x) { return jot_reshape(x, -1); }

// y, and the derivatives of sum(y c), as one vector.
static jot_value with_gradients(jot_value y, jot_value x, jot_value w, bool both)
{
    int64_t dims[8];
    for (int i = 0; i <= jot_value_rank(y); i++)
        dims[i] = i < jot_value_rank(y) ? jot_value_dim(y, i) : JOT_END;
    jot_value sum = jot_sum(jot_mul(y, numbers(3, dims)));
    jot_value all = jot_concatenate(0, flat(y), flat(jot_gradient(sum, x)));
    return both ? jot_concatenate(0, all, flat(jot_gradient(sum, w))) : all;
}

#define CASE(both, call, x_dims, w_dims, type, ...)                                            \
    if (sample_takes((uint64_t)number++, 1)) {                                                 \
        jot_scope *s = jot_scope_open();                                                       \
        jot_value x = jot_variable(numbers(1, JOT_DIMS x_dims));                               \
        jot_value w = jot_variable(numbers(2, JOT_DIMS w_dims));                               \
        jot_value y = call;                                                                    \
        CHECK_TYPE(y, type);                                                                   \
        CHECK(with_gradients(y, x, w, both), 2e-5, __VA_ARGS__);                               \
        jot_scope_close(s);                                                                    \
    }
#define CASE_BOTH(...) CASE(true, __VA_ARGS__)
#define CASE_ONE(...) CASE(false, __VA_ARGS__)

START_TEST(as_jax)
{
    int number = 0;
#include "windows.inc"
}
END_TEST

// Weights are as precise as the image; values of JAX.
START_TEST(images_of_double_precision)
{
    jot_scope *s = jot_scope_open();
    jot_value x = jot_astype(jot_stack(0, 1, -2, 3, 5, -1, 0.5), JOT_F64),
              one = jot_ones(JOT_F32, 1);
    CHECK(jot_image_resize(x, JOT_RESIZE_LINEAR, 4), 1e-15, -0.125, 1.5555555555555556,
          2.7777777777777777, -0.0625);
    CHECK(jot_image_resize(x, JOT_RESIZE_CUBIC, 4), 1e-15, -0.29288025889967506,
          1.5558958652373671, 3.0543644716692198, -0.2920711974110023);
    CHECK(jot_image_resize(x, JOT_RESIZE_LANCZOS3, 4), 4e-15, -0.5695905035697983,
          1.6652287269203683, 3.2361275790502684, -0.5809536943760101);
    CHECK(jot_image_scale_and_translate(x, JOT_DIMS(4), JOT_AXES(0), jot_stack(0, 0.7),
                                        jot_stack(0, 0.1), JOT_RESIZE_CUBIC, true),
          4e-15, 0.04762138062809375, 0.4463537843789119, 4.13058351854273,
          -0.3511259558020323);
    // A scale of 3 in f32, whose inverse is not.
    jot_value by_f32 =
        jot_image_scale_and_translate(x, JOT_DIMS(18), JOT_AXES(0), jot_mul(3, one),
                                      jot_mul(0, one), JOT_RESIZE_LINEAR, true);
    jot_value apart = jot_sub(by_f32, jot_image_resize(x, JOT_RESIZE_LINEAR, 18));
    CHECK(jot_max(jot_abs(apart)), 1e-15, 0);
    CHECK_TYPE(jot_image_resize(jot_arange(JOT_I64, 6), JOT_RESIZE_LINEAR, 4), "f64[4]");
    jot_scope_close(s);
}
END_TEST

// ---- Derivatives of convolutions, written as convolutions

static jot_value in_w(jot_value x, jot_value w)
{
    return jot_conv_general_dilated(x, w, .x = "CHWN", .w = "IHWO", .out = "HWNC",
                                    .rhs_dilation = JOT_DIMS(2, 1), .low = JOT_DIMS(1, 0),
                                    .high = JOT_DIMS(2, 0), .batch_group_count = 2);
}

static jot_value in_w_by_values(jot_value x, jot_value w)
{
    jot_value y = jot_conv_general_dilated(
        jot_transpose(x, 3, 1, 2, 0), jot_transpose(w, 1, 2, 0, 3), .x = "NHWC", .w = "HWIO",
        .out = "NHWC", .rhs_dilation = JOT_DIMS(2, 1), .low = JOT_DIMS(1, 0),
        .high = JOT_DIMS(2, 0), .batch_group_count = 2);
    return jot_transpose(y, 1, 2, 0, 3);
}

static jot_value features_first_in_w(jot_value x, jot_value w)
{
    return jot_conv_general_dilated(x, w, .x = "CNHW", .w = "IOHW", .out = "CNHW",
                                    .strides = JOT_DIMS(1, 2));
}

static jot_value features_first_in_w_by_values(jot_value x, jot_value w)
{
    jot_value y = jot_conv_general_dilated(jot_transpose(x, 1, 0, 2, 3), w, .w = "IOHW",
                                           .strides = JOT_DIMS(1, 2));
    return jot_transpose(y, 1, 0, 2, 3);
}

static jot_value in_x(jot_value x, jot_value w)
{
    return jot_conv_general_dilated(x, w, .lhs_dilation = JOT_DIMS(3, 2),
                                    .rhs_dilation = JOT_DIMS(1, 2), .low = JOT_DIMS(-1, 2),
                                    .high = JOT_DIMS(3, -2), .feature_group_count = 2);
}

// With zeros between the elements of x, a group at a time.
static jot_value in_x_by_values(jot_value x, jot_value w)
{
    jot_value y[2];
    x = jot_pad(jot_reshape(x, 2, 4, 3, 1, 4, 1), 0, 3, 0, 2);
    x = jot_reshape(jot_pad(x, 0, 5, 0, 1), 2, 4, 9, 8);
    x = jot_slice(jot_slice(x, 2, 0, 7), 3, 0, 7);
    for (int g = 0; g < 2; g++)
        y[g] = jot_conv_general_dilated(
            jot_slice(x, 1, 2 * g, 2 * g + 2), jot_slice(w, 0, 3 * g, 3 * g + 3),
            .rhs_dilation = JOT_DIMS(1, 2), .low = JOT_DIMS(-1, 2), .high = JOT_DIMS(3, -2));
    return jot_concatenate(1, y[0], y[1]);
}

static const struct derivative {
    jot_value (*f)(jot_value, jot_value), (*by_values)(jot_value, jot_value);
    int64_t x[5], w[5];
    const char *mode; // of the op
} derivatives[] = {
    {in_w, in_w_by_values, {3, 5, 6, 4, JOT_END}, {3, 3, 5, 6, JOT_END}, "mode=1"},
    {features_first_in_w,
     features_first_in_w_by_values,
     {3, 2, 5, 6, JOT_END},
     {3, 2, 4, 3, JOT_END},
     "mode=1"},
    {in_x, in_x_by_values, {2, 4, 3, 4, JOT_END}, {6, 2, 2, 3, JOT_END}, "mode=0"},
};

START_TEST(are_derivatives)
{
    const struct derivative *d = &derivatives[_i];
    const jot_function functions[] = {jot_fn(in_w), jot_fn(features_first_in_w), jot_fn(in_x)};
    jot_executable *f = jot_jit(functions[_i]);
    jot_scope *s = jot_scope_open();
    jot_value x = jot_variable(numbers(1, d->x)), w = jot_variable(numbers(2, d->w));
    jot_value got = with_gradients(d->f(x, w), x, w, true);
    jot_value want = with_gradients(d->by_values(x, w), x, w, true);
    CHECK_EXACT(jot_max(jot_abs(jot_sub(got, want))), 0);
    jot_array *in[] = {jot_array_fill(JOT_F32, 1, d->x), jot_array_fill(JOT_F32, 1, d->w)},
              *y = NULL;
    ck_assert_int_eq(jot_call(f, JOT_IN(in[0], in[1]), JOT_OUT(y)), JOT_OK);
    ck_assert_ptr_nonnull(strstr(jot_executable_graph(f), d->mode));
    jot_arrays_release(2, in);
    jot_array_release(y);
    jot_scope_close(s);
    jot_executable_release(f);
}
END_TEST

// ---- Maps

static jot_value grouped(jot_value x, jot_value w)
{
    return jot_conv_general_dilated(x, w, .padding = JOT_PADDING_SAME,
                                    .strides = JOT_DIMS(1, 2), .x = "NHWC", .w = "HWIO",
                                    .out = "NHWC", .feature_group_count = 2);
}

static jot_value first_features(jot_value x, jot_value w)
{
    return jot_conv_general_dilated(x, w, .rhs_dilation = JOT_DIMS(2, 1));
}

static jot_value pooled(jot_value x, jot_value w)
{
    return jot_add(
        jot_max_pool(x, .window = JOT_DIMS(1, 2, 2, 1), .strides = JOT_DIMS(1, 1, 2, 1)),
        jot_sum(w));
}

static jot_value padded(jot_value x, jot_value w)
{
    return jot_mul(jot_pad_with_mode(x, JOT_PAD_REFLECT, 1, 2, 1), jot_sum(w));
}

struct mapped {
    jot_value (*f)(jot_value, jot_value);
    const int64_t *x, *w;
};

// The product of the derivatives too, so that these are mapped.
static jot_value with_derivatives(const struct mapped *m, jot_value x, jot_value w)
{
    x = jot_variable(x);
    w = jot_variable(w);
    jot_value y = m->f(x, w), sum = jot_sum(jot_square(y));
    jot_value all = jot_concatenate(0, flat(y), flat(jot_gradient(sum, x)));
    return jot_concatenate(0, all, flat(jot_gradient(sum, w)));
}

START_TEST(over_maps)
{
    const struct mapped cases[] = {
        {grouped, (int64_t[]){3, 2, 4, 5, 4, JOT_END}, (int64_t[]){3, 2, 3, 2, 4, JOT_END}},
        {first_features, (int64_t[]){3, 1, 2, 5, 4, JOT_END},
         (int64_t[]){3, 2, 2, 2, 3, JOT_END}},
        {pooled, (int64_t[]){3, 2, 4, 4, 2, JOT_END}, (int64_t[]){3, 2, JOT_END}},
        {padded, (int64_t[]){3, 2, 4, JOT_END}, (int64_t[]){3, 2, JOT_END}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int which = 1; which < 4; which++) {
            const struct mapped *m = &cases[i];
            jot_scope *s = jot_scope_open();
            jot_value xs = numbers(1, m->x), ws = numbers(2, m->w), one[3], all;
            jot_value x = jot_take(xs, 0), w = jot_take(ws, 0);
            for (int k = 0; k < 3; k++)
                one[k] = with_derivatives(m, which & 1 ? jot_take(xs, k) : x,
                                          which & 2 ? jot_take(ws, k) : w);
            if (which == 1) {
                JOT_VMAP ((xs), (all)) {
                    all = with_derivatives(m, xs, w);
                }
            } else if (which == 2) {
                JOT_VMAP ((ws), (all)) {
                    all = with_derivatives(m, x, ws);
                }
            } else {
                JOT_VMAP ((xs, ws), (all)) {
                    all = with_derivatives(m, xs, ws);
                }
            }
            jot_value alone = jot_stack(0, one[0], one[1], one[2]);
            CHECK_EXACT(jot_max(jot_abs(jot_sub(all, alone))), 0);
            jot_scope_close(s);
        }
}
END_TEST

// ---- Types, special numbers, nothing

static jot_value of(jot_dtype d, const int64_t *dims)
{
    return jot_convert(numbers(1, dims), d);
}

START_TEST(types)
{
    const jot_dtype all[] = {JOT_F16, JOT_BF16, JOT_F64, JOT_I8, JOT_I32, JOT_U16};
    jot_scope *s = jot_scope_open();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        jot_value x = of(all[i], JOT_DIMS(1, 1, 6)), w = of(all[i], JOT_DIMS(1, 1, 2));
        ck_assert_int_eq(jot_value_dtype(jot_conv_general_dilated(x, w)), all[i]);
        ck_assert_int_eq(jot_value_dtype(jot_max_pool(x, .window = JOT_DIMS(1, 1, 2))), all[i]);
        if (all[i] != JOT_U16)
            CHECK_EXACT(jot_convert(jot_conv_general_dilated(x, w), JOT_F32), 29, -5, -17, 26,
                        -8);
        jot_value most = jot_reduce_window(x, JOT_WINDOW_MAX, .window = JOT_DIMS(1, 1, 3),
                                           .padding = JOT_PADDING_SAME);
        if (all[i] != JOT_U16)
            CHECK_EXACT(jot_convert(most, JOT_F32), 5, 5, 5, 4, 4, 4);
    }
    jot_value z = jot_complex(of(JOT_F32, JOT_DIMS(1, 1, 3)), jot_ones(JOT_F32, 1, 1, 3));
    CHECK_EXACT(jot_real(jot_convolve(flat(z), flat(z), JOT_VALID)), 18);
    CHECK_EXACT(jot_imag(jot_correlate(flat(z), flat(z), JOT_VALID)), 0);
    CHECK_EXACT(jot_reduce_window(jot_stack(0, true, false, false, false), JOT_WINDOW_MAX,
                                  .window = JOT_DIMS(2)),
                1, 0, 0);
    CHECK_EXACT(
        jot_reduce_window(jot_stack(0, 1, 2, 3, 4), JOT_WINDOW_PROD, .window = JOT_DIMS(3)), 6,
        24);
    jot_value odd = jot_stack(0, -0.0, 0.0, INFINITY, -INFINITY, NAN, 1.0);
    CHECK_EXACT(jot_max_pool(odd, .window = JOT_DIMS(2)), 0, INFINITY, NAN);
    CHECK_EXACT(jot_min_pool(odd, .window = JOT_DIMS(2), .strides = JOT_DIMS(1)), 0, 0,
                -INFINITY, NAN, NAN);
    CHECK_EXACT(jot_one_hot(jot_stack(0, 1, 3, -1), 3, JOT_I32), 0, 1, 0, 0, 0, 0, 0, 0, 0);
    CHECK_EXACT(jot_interp(NAN, jot_stack(0, 0.0, 1.0), jot_stack(0, 2.0, 3.0)), NAN);
    CHECK_EXACT(jot_interp(7, jot_stack(0, 1), jot_stack(0, 2)), 2);
    jot_scope_close(s);
}
END_TEST

static jot_value halves(jot_value x, jot_value y) { return jot_add(jot_mul(x, 0.5), y); }
static jot_value larger(jot_value x, jot_value y) { return jot_maximum(x, y); }

// What windows that have most of their elements in common make once is what each makes for itself, in the same order,
// and does not grow with windows times their elements.
START_TEST(windows_that_overlap)
{
    static const int64_t windows[][3] = {{16, 1, 1}, {23, 1, 1}, {31, 2, 1}, {14, 1, 3}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        jot_scope *s = jot_scope_open();
        int64_t size = windows[i][0], stride = windows[i][1], dilation = windows[i][2];
        jot_value x = numbers(1, JOT_DIMS(2, 90)), apart = jot_zeros(JOT_F32, 2, 0);
        jot_value padded = jot_concatenate(1, jot_full(JOT_F32, 7, 2, 5), x);
        jot_value y = jot_reduce_window_by(jot_fn(halves), x, 7.0f, .window = JOT_DIMS(1, size),
                                           .strides = JOT_DIMS(1, stride),
                                           .window_dilation = JOT_DIMS(1, dilation),
                                           .low = JOT_DIMS(0, 5));
        int64_t span = (size - 1) * dilation + 1;
        for (int64_t p = 0; p + span <= 95; p += stride) {
            jot_value one = jot_slice_axis(padded, 1, p, p + span, dilation);
            one = jot_reduce_window_by(jot_fn(halves), one, 7.0f, .window = JOT_DIMS(1, size));
            apart = jot_concatenate(1, apart, one);
        }
        CHECK_EXACT(jot_array_equal(y, apart), 1);
        jot_scope_close(s);
    }
    jot_scope *s = jot_scope_open();
    jot_value x = numbers(1, JOT_DIMS(1 << 17));
    jot_value y =
        jot_reduce_window_by(jot_fn(larger), x, -INFINITY, .window = JOT_DIMS(1 << 17),
                             .low = JOT_DIMS((1 << 17) - 1));
    CHECK_EXACT(jot_array_equal(y, jot_cummax(x)), 1);
    jot_scope_close(s);
}
END_TEST

START_TEST(nothing)
{
    jot_scope *s = jot_scope_open();
    jot_value w = numbers(2, JOT_DIMS(3, 2, 2, 2));
    CHECK_TYPE(jot_conv_general_dilated(jot_zeros(JOT_F32, 0, 2, 4, 4), w), "f32[0,3,3,3]");
    jot_value x = jot_variable(jot_zeros(JOT_F32, 1, 0, 2, 2));
    jot_value y = jot_conv_general_dilated(x, jot_zeros(JOT_F32, 2, 0, 2, 2));
    CHECK_EXACT(jot_add(y, jot_sum(jot_gradient(jot_sum(y), x))), 0, 0);
    CHECK_TYPE(jot_max_pool(jot_zeros(JOT_F32, 0, 4), .window = JOT_DIMS(1, 2)), "f32[0,2]");
    CHECK_TYPE(jot_image_resize(jot_zeros(JOT_F32, 0, 4), JOT_RESIZE_CUBIC, 0, 2), "f32[0,2]");
    CHECK_TYPE(jot_pad_with_mode(jot_zeros(JOT_F32, 0), JOT_PAD_EMPTY, 0, 1, 1), "f32[2]");
    CHECK_TYPE(jot_one_hot(jot_zeros(JOT_I32, 0), 3, JOT_F32), "f32[0,3]");
    jot_scope_close(s);
}
END_TEST

// ---- Mistakes

#define SAYS(value, text)                                                                      \
    do {                                                                                       \
        jot_array *none_ = NULL;                                                               \
        ck_assert_int_ne(jot_eval((value), &none_), JOT_OK);                                   \
        const char *have_ = jot_error_message(), *end_ = strstr(have_, ": " text);             \
        ck_assert_msg(strstr(have_, "test_windows.c:") && end_ && !end_[strlen(": " text)],    \
                      "%s", have_);                                                            \
    } while (0)

START_TEST(mistakes)
{
    jot_scope *s = jot_scope_open();
    jot_value x = numbers(1, JOT_DIMS(2, 3, 5, 4)), w = numbers(2, JOT_DIMS(4, 3, 2, 2));
    jot_value v = numbers(1, JOT_DIMS(4)), image = numbers(1, JOT_DIMS(4, 4));
    SAYS(jot_max_pool(v, .window = JOT_DIMS(5)),
         "a window of 5 does not fit axis 0 of f32[4], which has 4");
    SAYS(jot_max_pool(v, .window = JOT_DIMS(4), .low = JOT_DIMS(-1)),
         "a window of 4 does not fit axis 0 of f32[4], which has 3 padded");
    SAYS(jot_max_pool(v, .window = JOT_DIMS(2), .strides = JOT_DIMS(0)),
         "number 0 of strides is 0: at least 1");
    SAYS(jot_max_pool(v, .window = JOT_DIMS(2), .window_dilation = JOT_DIMS(-1)),
         "number 0 of window_dilation is -1: at least 1");
    SAYS(jot_max_pool(v, .window = JOT_DIMS(0)), "number 0 of window is 0: at least 1");
    SAYS(jot_max_pool(v, .window = JOT_DIMS(2, 2)),
         "window has at least 2 numbers for 1 axes of x");
    SAYS(jot_max_pool(image, .window = JOT_DIMS(2)), "window has 1 numbers for 2 axes of x");
    SAYS(jot_avg_pool(v, .strides = JOT_DIMS(1)), "no window: .window = JOT_DIMS(...)");
    SAYS(jot_min_pool(v, .window = JOT_DIMS(2), .padding = (jot_padding)7),
         "there is no padding 7");
    SAYS(jot_min_pool(v, .window = JOT_DIMS(2), .padding = JOT_PADDING_SAME,
                      .high = JOT_DIMS(1)),
         "both a kind of padding and low and high: one of them");
    SAYS(jot_reduce_window(v, (jot_window_kind)9, .window = JOT_DIMS(2)),
         "there is no kind of window 9");
    SAYS(jot_reduce_window(jot_complex(v, v), JOT_WINDOW_MAX, .window = JOT_DIMS(2)),
         "c64[4]: is not defined for complex numbers");
    SAYS(jot_select_and_gather_add(v, v, JOT_WINDOW_SUM, .window = JOT_DIMS(2)),
         "it selects by JOT_WINDOW_MAX or JOT_WINDOW_MIN");
    SAYS(jot_select_and_gather_add(image, v, JOT_WINDOW_MAX, .window = JOT_DIMS(2)),
         "f32[4,4] and f32[4] have not the same shape");
    SAYS(jot_select_and_scatter_add(v, v, JOT_WINDOW_MAX, .window = JOT_DIMS(2)),
         "the source is f32[4], and the windows make f32[3]");

    SAYS(jot_conv_general_dilated(x, v),
         "f32[2,3,5,4] and f32[4]: both have a batch, or features "
         "out, features, and the same spatial axes");
    SAYS(jot_conv_general_dilated(x, w, .x = "NCH"),
         "x: \"NCH\" names 3 axes, f32[2,3,5,4] has 4");
    SAYS(jot_conv_general_dilated(x, w, .out = "NCHH"),
         "out: \"NCHH\" should have each of N, C and HW once");
    SAYS(jot_conv_general_dilated(x, w, .w = "OHWO"),
         "w: \"OHWO\" should have each of O, I and HW once");
    SAYS(jot_conv_general_dilated(x, numbers(2, JOT_DIMS(4, 2, 2, 2))),
         "x has 3 features and w takes 2: f32[2,3,5,4] with f32[4,2,2,2]");
    SAYS(jot_conv_general_dilated(x, w, .feature_group_count = 2),
         "2 groups do not divide the 3 features of x");
    SAYS(jot_conv_general_dilated(x, w, .batch_group_count = 3),
         "3 groups do not divide the 2 of the batch");
    SAYS(
        jot_conv_general_dilated(x, numbers(2, JOT_DIMS(4, 1, 2, 2)), .feature_group_count = 3),
        "3 groups do not divide the 4 features out");
    SAYS(jot_conv_general_dilated(x, w, .feature_group_count = -1),
         "feature_group_count is -1: at least 1");
    SAYS(jot_conv_general_dilated(x, w, .feature_group_count = 3, .batch_group_count = 2),
         "groups of features and of the batch: one of them");
    SAYS(jot_conv_general_dilated(x, w, .strides = JOT_DIMS(1, 0)),
         "number 1 of strides is 0: at least 1");
    SAYS(jot_conv_general_dilated(x, w, .rhs_dilation = JOT_DIMS(1, -2)),
         "number 1 of rhs_dilation is -2: at least 1");
    SAYS(jot_conv_general_dilated(x, w, .rhs_dilation = JOT_DIMS(1, 4)),
         "a window of 5, dilated, does not fit axis 3 of f32[2,3,5,4], which has 4");
    SAYS(jot_conv_general_dilated(x, w, .lhs_dilation = JOT_DIMS(1, 2),
                                  .padding = JOT_PADDING_SAME),
         "a kind of padding with lhs_dilation: give low and high, or use jot_conv_transpose");
    SAYS(jot_conv_general_dilated(x, w, .precision = (jot_precision)8),
         "there is no precision 8");
    SAYS(jot_conv_transpose(x, w, .lhs_dilation = JOT_DIMS(1, 1)),
         "lhs_dilation is what strides are here");
    SAYS(jot_conv_general_dilated_patches(x, JOT_DIMS(2)),
         "the filter has 1 numbers for 2 spatial axes");
    SAYS(jot_convolve(v, image, JOT_FULL),
         "f32[4] and f32[4,4]: it takes vectors that are not empty");

    SAYS(jot_pad_with_mode(v, JOT_PAD_EDGE, 1, 1, 1), "axis 1 of f32[4]: axes are -1 to 0");
    SAYS(jot_pad_with_mode(v, JOT_PAD_EDGE, 0, -1, 1),
         "padding -1 and 1: it takes 0 or more, jot_pad cuts off");
    SAYS(jot_pad_with_mode(jot_zeros(JOT_F32, 0), JOT_PAD_WRAP, 0, 1, 1),
         "axis 0 of f32[0] is empty: there is nothing to pad with");
    SAYS(jot_pad_with_mode(v, (jot_pad_mode)20, 0, 1, 1), "there is no mode 20");
    SAYS(jot_pad_with_mode(v, JOT_PAD_WRAP, 0, INT64_MAX, INT64_MAX),
         "padding 9223372036854775807 and 9223372036854775807: too large");
    SAYS(jot_interp(v, v, image),
         "xp is f32[4] and fp f32[4,4]: both are vectors of the same size, not empty");
    SAYS(jot_image_resize(image, JOT_RESIZE_LINEAR, 3), "1 sizes for the axes of f32[4,4]");
    SAYS(jot_image_resize(jot_zeros(JOT_F32, 0), JOT_RESIZE_LINEAR, 3),
         "axis 0 of f32[0] is empty and would be 3");
    SAYS(jot_image_scale_and_translate(image, JOT_DIMS(2, 2), JOT_AXES(0), v, v,
                                       JOT_RESIZE_LINEAR, true),
         "the scale is f32[4]: it has a floating number for each of the 1 axes");
    jot_value one = jot_ones(JOT_F32, 1);
    SAYS(jot_image_scale_and_translate(image, JOT_DIMS(2, 4), JOT_AXES(0), one, one,
                                       JOT_RESIZE_NEAREST, true),
         "nearest pixels have no weights: use jot_image_resize");
    jot_scope_close(s);
}
END_TEST

// ---- A library

static jot_value large(jot_value change)
{
    jot_value x = jot_add(numbers(1, JOT_DIMS(2, 24, 21, 16)), change);
    jot_value w = numbers(2, JOT_DIMS(5, 3, 16, 96));
    return jot_conv_general_dilated(x, w, .padding = JOT_PADDING_SAME, .x = "NHWC", .w = "HWIO",
                                    .out = "NHWC", .strides = JOT_DIMS(2, 1),
                                    .precision = JOT_PRECISION_TF32);
}

// Whole numbers, of which sums are exact in any order; a GPU leaves them to its library.
START_TEST(large_ones)
{
    jot_executable *f = jot_jit(jot_fn(large)),
                   *g = jot_jit(jot_fn(large), .device = jot_host());
    jot_array *change = jot_array_from(&(const float){1}), *y[2];
    ck_assert_int_eq(jot_call(f, JOT_IN(change), JOT_OUT(y[0])), JOT_OK);
    ck_assert_int_eq(jot_call(g, JOT_IN(change), JOT_OUT(y[1])), JOT_OK);
    size_t n = jot_array_size(y[0]);
    const float *got = jot_array_data(y[0]), *want = jot_array_data(y[1]);
    ck_assert_uint_eq(n, 2 * 12 * 21 * 96);
    for (size_t i = 0; i < n; i++)
        ck_assert_float_eq(got[i], want[i]);
    ck_assert_ptr_nonnull(strstr(jot_executable_text(g, "schedule"), "library \"conv\""));
    if (getenv("JOT_TEST_EMULATED"))
        ck_assert_ptr_nonnull(strstr(jot_executable_text(f, "schedule"), "library \"conv\""));
    jot_arrays_release(2, y);
    jot_array_release(change);
    jot_executable_release(f);
    jot_executable_release(g);
}
END_TEST

// ---- Products in kernels

static jot_value small(jot_value x, jot_value w)
{
    return jot_conv_general_dilated(x, w, .padding = JOT_PADDING_SAME,
                                    .strides = JOT_DIMS(1, 2), .rhs_dilation = JOT_DIMS(2, 1));
}

static jot_value of_each_feature(jot_value x, jot_value w)
{
    return jot_conv_general_dilated(x, w, .padding = JOT_PADDING_SAME,
                                    .feature_group_count = 8);
}

static jot_value in_features(jot_value x, jot_value w)
{
    return jot_sum(jot_sin(of_each_feature(x, w)));
}

// A product that is a kernel's reads windows where they are in x: neither they nor the padding are in
// memory, forward and for the gradients.
START_TEST(windows_stay_in_place)
{
    jot_function functions[] = {jot_fn(small), jot_fn(of_each_feature),
                                jot_grad(jot_fn(in_features), 1),
                                jot_grad(jot_fn(in_features), 0)};
    const int64_t *sizes[][2] = {{JOT_DIMS(4, 3, 12, 12), JOT_DIMS(4, 3, 3, 3)},
                                 {JOT_DIMS(4, 8, 14, 14), JOT_DIMS(8, 1, 3, 3)},
                                 {JOT_DIMS(4, 8, 14, 14), JOT_DIMS(8, 1, 3, 3)},
                                 {JOT_DIMS(4, 8, 14, 14), JOT_DIMS(8, 1, 3, 3)}};
    jot_array *x = jot_array_fill(JOT_F32, 0.5, sizes[_i][0]),
              *w = jot_array_fill(JOT_F32, 0.25, sizes[_i][1]), *y;
    jot_executable *f = jot_jit(functions[_i]);
    ck_assert_int_eq(jot_call(f, JOT_IN(x, w), JOT_OUT(y)), JOT_OK);
    const char *schedule = jot_executable_text(f, "schedule");
    ck_assert_ptr_null(strstr(schedule, "gemm"));
    // What is there is no larger than y, and windows would be 9 times that.
    const char *arena = strstr(schedule, "arena ");
    ck_assert_ptr_nonnull(arena);
    long long bytes = _i >= 2 ? 4 * 4 * 8 * 14 * 14 : 0;
    ck_assert_int_le(strtoll(arena + strlen("arena "), NULL, 10), bytes);
    jot_arrays_release(3, (jot_array *[]){x, w, y});
    jot_executable_release(f);
}
END_TEST

static jot_value of_features(jot_value x, jot_value w)
{
    jot_value y = jot_conv_transpose(x, w, .transpose_kernel = true, .x = "NWC", .w = "WIO",
                                     .out = "NWC");
    jot_value weights = jot_cos(jot_mul(0.7, jot_arange(JOT_F64, 30)));
    return jot_sum(jot_mul(jot_reshape(weights, 2, 5, 3), y));
}

// Two results of a kernel whose loops over features are written out, one for each: no element is put
// twice, which the transposition of tiles does not count with.
START_TEST(results_are_put_once)
{
    jot_array *x = jot_array_full(JOT_F64, 0.5, 2, 5, 2),
              *w = jot_array_full(JOT_F64, 0.25, 1, 3, 2), *d[2];
    jot_executable *f = jot_jit(jot_grad(jot_fn(of_features), 0, 1));
    ck_assert_int_eq(jot_call(f, JOT_IN(x, w), JOT_OUT(d)), JOT_OK);
    const double *dx = jot_array_data(d[0]), *dw = jot_array_data(d[1]);
    for (int i = 0; i < 10; i++) {
        double sum = 0;
        for (int k = 0; k < 3; k++)
            sum += 0.25 * cos(0.7 * (3 * i + k));
        for (int c = 0; c < 2; c++)
            ck_assert_double_eq_tol(dx[2 * i + c], sum, 1e-14);
    }
    for (int k = 0; k < 3; k++) {
        double sum = 0;
        for (int i = 0; i < 10; i++)
            sum += 0.5 * cos(0.7 * (3 * i + k));
        for (int c = 0; c < 2; c++)
            ck_assert_double_eq_tol(dw[2 * k + c], sum, 1e-14);
    }
    jot_arrays_release(2, d);
    jot_arrays_release(2, (jot_array *[]){x, w});
    jot_executable_release(f);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, results_are_put_once);
    if (!*getenv("JOT_BACKEND")) {
        tcase_add_test(t, large_ones);
        tcase_add_loop_test(t, windows_stay_in_place, 0, 4);
    }
    tcase_add_test(t, as_jax);
    tcase_add_test(t, images_of_double_precision);
    tcase_add_loop_test(t, are_derivatives, 0, 3);
    tcase_add_test(t, over_maps);
    tcase_add_test(t, types);
    tcase_add_test(t, windows_that_overlap);
    tcase_add_test(t, nothing);
    tcase_add_test(t, mistakes);
}

int main(void) { return run_by_both("windows", add); }
