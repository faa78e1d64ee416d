// SPDX-License-Identifier: Apache-2.0
// Random bits and numbers against those that jax.random documents and prints.
#include "trace_support.h"

static jot_scope *scope;

static void setup(void) { scope = jot_scope_open(); }
static void teardown(void) { jot_scope_close(scope); }

START_TEST(test_keys)
{
    CHECK_EXACT(jot_random_key(0), 0, 0);
    CHECK_EXACT(jot_random_key((INT64_C(3) << 32) + 5), 3, 5);
    CHECK_EXACT(jot_random_key(-1), 4294967295.0, 4294967295.0);
    jot_value keys = jot_random_split(jot_random_key(0), 2);
    CHECK_EXACT(keys, 1797259609, 2579123966, 928981903, 3453687069);
    CHECK_EXACT(jot_random_split(jot_random_key(42), 2), 1832780943, 270669613, 64467757,
                2916123636);
    CHECK_EXACT(jot_random_fold_in(jot_random_key(42), 1), 64467757, 2916123636);
    CHECK_EXACT(jot_random_fold_in(jot_random_key(0), jot_full(JOT_U32, 0)), 1797259609,
                2579123966);
}
END_TEST

START_TEST(test_bits)
{
    jot_value key = jot_random_key(0);
    CHECK_EXACT(jot_random_bits(key, JOT_U32, 3), 4070199207, 4202968722, 1427181096);
    CHECK_EXACT(jot_convert(jot_random_bits(key, JOT_U8, 3), JOT_U32), 4070199207u & 255,
                4202968722u & 255, 1427181096u & 255);
    // The shape does not matter to the bits, only the number of the element.
    CHECK_EXACT(jot_random_bits(key, JOT_U32, 3, 1), 4070199207, 4202968722, 1427181096);
    // 64 bits are the two words whose xor the 32 bits are.
    jot_value wide = jot_random_bits(key, JOT_U64, 3);
    jot_value folded = jot_bitwise_xor(jot_convert(jot_right_shift(wide, 32), JOT_U32),
                                       jot_convert(wide, JOT_U32));
    CHECK_EXACT(folded, 4070199207, 4202968722, 1427181096);
}
END_TEST

START_TEST(test_uniform)
{
    jot_value key = jot_random_key(0);
    CHECK(jot_random_uniform(key, JOT_F32, 3), 5e-8, 0.947667f, 0.9785799f, 0.33229148f);
    CHECK_EXACT(jot_random_uniform(key, JOT_F64, 1), 0.41845711171638644);
    CHECK(jot_random_uniform_in(key, JOT_F32, -2, 2.0, 2), 1e-6, 4 * 0.947667 - 2,
          4 * 0.9785799 - 2);
    jot_value x = jot_random_uniform(jot_random_key(7), JOT_F32, 2000);
    CHECK_EXACT(jot_all(jot_logical_and(jot_greater_equal(x, 0), jot_less(x, 1))), 1);
    CHECK(jot_mean(x), 0.02, 0.5);
    CHECK(jot_mean(jot_random_bernoulli(key, 0.25, 2000)), 0.03, 0.25);
    CHECK(jot_mean(jot_random_exponential(key, JOT_F64, 2000)), 0.06, 1);
    CHECK_TYPE(jot_random_uniform(key, JOT_BF16, 3), "bf16[3]");
}
END_TEST

START_TEST(test_normal)
{
    jot_value x = jot_random_normal(jot_random_key(0), JOT_F32, 16);
    CHECK(x, 2e-7, 1.6226422, 2.0252647, -0.43359444, -0.07861735, 0.1760909, -0.97208923,
          -0.49529874, 0.4943786, 0.6643493, -0.9501635, 2.1795304, -1.9551506, 0.35857072,
          0.15779513, 1.2770847, 1.5104648);
    jot_value y = jot_random_normal(jot_random_key(1), JOT_F64, 2000);
    CHECK(jot_mean(y), 0.06, 0);
    CHECK(jot_var(y), 0.08, 1);
}
END_TEST

// Parameters broadcast to the sizes, and without sizes to each other.
START_TEST(test_sizes)
{
    jot_value key = jot_random_key(4), scale = jot_reshape(jot_arange(JOT_F32, 3), 3, 1);
    CHECK_TYPE(jot_random_rayleigh(key, JOT_F32, 2), "f32[]");
    CHECK_TYPE(jot_random_rayleigh(key, JOT_F64, scale), "f64[3,1]");
    CHECK_TYPE(jot_random_weibull_min(key, JOT_F32, scale, jot_ones(JOT_F32, 2)), "f32[3,2]");
    CHECK_TYPE(jot_random_rayleigh(key, JOT_F32, scale, 2, 3, 4), "f32[2,3,4]");
    CHECK_TYPE(jot_random_randint(key, JOT_U8, 0, 6, 2, 3), "u8[2,3]");
    CHECK_TYPE(jot_random_normal(key, JOT_F32, 0, 3), "f32[0,3]");
    CHECK_TYPE(jot_random_wald(key, JOT_F16, 1.5, 5), "f16[5]");
    // Numbers of a row are those that the whole has there.
    jot_value all = jot_random_rayleigh(key, JOT_F32, scale, 3, 4);
    jot_value ones = jot_random_rayleigh(key, JOT_F32, 1, 3, 4);
    CHECK_EXACT(jot_sum(jot_sub(all, jot_mul(ones, scale))), 0);
}
END_TEST

// Outside of the range of parameters it is as in JAX.
START_TEST(test_wrong_parameters)
{
    jot_value key = jot_random_key(2);
    CHECK_EXACT(jot_random_randint(key, JOT_I32, 5, 5, 2), 5, 5);
    CHECK_EXACT(jot_random_randint(key, JOT_I32, 5, 3, 2), 5, 5);
    CHECK_EXACT(jot_random_randint(key, JOT_U32, -7, 0, 2), 0, 0);
    CHECK_EXACT(jot_all(jot_less(jot_random_rayleigh(key, JOT_F32, -2, 5), 0)), 1);
    CHECK_EXACT(jot_random_wald(key, JOT_F32, -1), NAN);
    CHECK_EXACT(jot_random_rayleigh(key, JOT_F64, NAN), NAN);
    CHECK_EXACT(jot_random_bernoulli(key, 0.0, 2), 0, 0);
    CHECK_EXACT(jot_random_bernoulli(key, 2.0, 2), 1, 1);
}
END_TEST

// Lines are counted by hand from here on.
// clang-format off
#line 6 "bad_random.c"
static jot_value key_float(void) { return jot_random_uniform(jot_full(JOT_F32, 0, 2), JOT_F32, 3); }
static jot_value key_list(void) { return jot_random_normal(jot_random_split(jot_random_key(0), 3), JOT_F32); }
static jot_value key_short(void) { return jot_random_bits(jot_zeros(JOT_U32, 3), JOT_U8, 2); }
static jot_value seed(void) { return jot_random_key(0.5); }
static jot_value many(void) { return jot_random_split(jot_random_key(0), -1); }
static jot_value data(void) { return jot_random_fold_in(jot_random_key(0), jot_zeros(JOT_I32, 2)); }
static jot_value bits(void) { return jot_random_bits(jot_random_key(0), JOT_I32, 2); }
static jot_value floats(void) { return jot_random_gumbel(jot_random_key(0), JOT_I32, 2); }
static jot_value integers(void) { return jot_random_randint(jot_random_key(0), JOT_F32, 0, 2, 2); }
static jot_value bounds(void) { return jot_random_randint(jot_random_key(0), JOT_I32, 0, 2.5, 2); }
static jot_value trials(void) { return jot_random_geometric(jot_random_key(0), JOT_F64, 0.5, 2); }
static jot_value parameter(void) { return jot_random_pareto(jot_random_key(0), JOT_F32, jot_ones(JOT_F32, 3), 3, 2); }
static jot_value each(void) { return jot_random_weibull_min(jot_random_key(0), JOT_F32, jot_ones(JOT_F32, 3), jot_ones(JOT_F32, 2)); }
static jot_value negative(void) { return jot_random_laplace(jot_random_key(0), JOT_F32, 2, -3); }
static jot_value complex_(void) { return jot_random_lognormal(jot_random_key(0), JOT_F32, jot_complex(1.0, 2.0)); }
static jot_value counts(void) { return jot_random_poisson(jot_random_key(0), JOT_F32, 3); }
static jot_value whole(void) { return jot_random_binomial(jot_random_key(0), JOT_I32, 3, 0.5); }
static jot_value one_alpha(void) { return jot_random_dirichlet(jot_random_key(0), JOT_F32, 3); }
static jot_value one_kind(void) { return jot_random_multinomial(jot_random_key(0), JOT_F32, 3, 0.5); }
static jot_value norms(void) { return jot_random_ball(jot_random_key(0), JOT_F32, 3, jot_ones(JOT_F32, 2)); }
static jot_value inside_out(void) { return jot_random_ball(jot_random_key(0), JOT_F32, -3, 2); }
static jot_value huge(void) { return jot_random_normal(jot_random_key(0), JOT_F32, INT64_C(1) << 40, INT64_C(1) << 40); }
static jot_value huge_but_empty(void) { return jot_random_gamma(jot_random_key(0), JOT_F32, 2.0, 0, INT64_C(1) << 62); }
#line 102 "test_random.c"
// clang-format on

START_TEST(test_messages)
{
    static const struct {
        jot_value (*make)(void);
        const char *message;
    } all[] = {
        {key_float,
         "bad_random.c:6: jot_random_uniform(jot_full(JOT_F32, 0, 2), JOT_F32, 3): the key is "
         "f32[2], not u32[2]: make one with jot_random_key"},
        {key_list,
         "bad_random.c:7: jot_random_normal(jot_random_split(jot_random_key(0), 3), JOT_F32): "
         "the "
         "key is u32[3,2], not u32[2]: take one of the keys, or map over them with jot_vmap"},
        {key_short, "bad_random.c:8: jot_random_bits(jot_zeros(JOT_U32, 3), JOT_U8, 2): the "
                    "key is u32[3], "
                    "not u32[2]: make one with jot_random_key"},
        {seed, "bad_random.c:9: jot_random_key(0.5): the seed is f32[], not one integer"},
        {many, "bad_random.c:10: jot_random_split(jot_random_key(0), -1): -1 keys"},
        {data, "bad_random.c:11: jot_random_fold_in(jot_random_key(0), jot_zeros(JOT_I32, 2)): "
               "the data is "
               "i32[2], not one integer"},
        {bits, "bad_random.c:12: jot_random_bits(jot_random_key(0), JOT_I32, 2): i32: it gives "
               "u8, u16, u32 "
               "or u64"},
        {floats, "bad_random.c:13: jot_random_gumbel(jot_random_key(0), JOT_I32, 2): i32: it "
                 "gives floats"},
        {integers, "bad_random.c:14: jot_random_randint(jot_random_key(0), JOT_F32, 0, 2, 2): "
                   "f32: it gives "
                   "integers"},
        {bounds, "bad_random.c:15: jot_random_randint(jot_random_key(0), JOT_I32, 0, 2.5, 2): "
                 "a bound is "
                 "f32[], not an integer"},
        {trials, "bad_random.c:16: jot_random_geometric(jot_random_key(0), JOT_F64, 0.5, 2): "
                 "f64: it gives "
                 "integers"},
        {parameter, "bad_random.c:17: jot_random_pareto(...): a parameter is f32[3], which "
                    "does not broadcast "
                    "to f32[3,2]"},
        {each, "bad_random.c:18: jot_random_weibull_min(...): f32[3] and f32[2] do not "
               "broadcast: axis 0 is 3 "
               "in one and 2 in the other"},
        {negative, "bad_random.c:19: jot_random_laplace(jot_random_key(0), JOT_F32, 2, -3): "
                   "size -3 of axis 1 "
                   "is negative"},
        {huge, "bad_random.c:27: jot_random_normal(...): the sizes up to axis 1 "
               "(1099511627776) make more than 2^55 numbers"},
        {huge_but_empty, "bad_random.c:28: jot_random_gamma(...): the sizes up to axis 1 "
                         "(4611686018427387904) make more than 2^55 numbers"},
        {counts, "bad_random.c:21: jot_random_poisson(jot_random_key(0), JOT_F32, 3): f32: it "
                 "gives integers"},
        {whole, "bad_random.c:22: jot_random_binomial(jot_random_key(0), JOT_I32, 3, 0.5): "
                "i32: it gives "
                "floats"},
        {one_alpha, "bad_random.c:23: jot_random_dirichlet(jot_random_key(0), JOT_F32, 3): "
                    "alpha is i32[]: it "
                    "has an axis of categories"},
        {one_kind, "bad_random.c:24: jot_random_multinomial(jot_random_key(0), JOT_F32, 3, "
                   "0.5): p is f32[]: it "
                   "has an axis of categories"},
        {norms, "bad_random.c:25: jot_random_ball(...): p is f32[2], not one number"},
        {inside_out, "bad_random.c:26: jot_random_ball(jot_random_key(0), JOT_F32, -3, 2): a "
                     "ball of -3 axes"},
        {complex_,
         "bad_random.c:20: jot_random_lognormal(...): a parameter is c64[], not real"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        jot_value bad = all[i].make();
        ck_assert_msg(jot_value_failed(bad), "no complaint, but wanted: %s", all[i].message);
        ck_assert(isnan(jot_item(bad)));
        ck_assert_str_eq(jot_error_message(), all[i].message);
    }
}
END_TEST

static jot_value row(jot_value key) { return jot_random_normal(key, JOT_F32, 3); }

// A map over keys gives what each key gives.
START_TEST(test_map_over_keys)
{
    jot_value keys = jot_random_split(jot_random_key(3), 2), rows, difference;
    JOT_VMAP ((keys), (rows)) {
        rows = row(keys);
    }
    difference = jot_sub(rows, jot_stack(0, row(jot_take(keys, 0)), row(jot_take(keys, 1))));
    CHECK_EXACT(difference, 0, 0, 0, 0, 0, 0);
}
END_TEST

struct walk {
    jot_value key, x;
};

// Steps that share a key, each with the bits of a normal number for every x.
static struct walk walked(struct walk w, int steps)
{
    JOT_FOR (i, steps, w) {
        jot_value keys = jot_random_split(w.key, 2);
        jot_value bits = jot_random_normal(jot_take(keys, 1), JOT_F32, 300);
        w.x = jot_bitwise_xor(jot_add(w.x, w.x), jot_bitcast(bits, JOT_U32));
        w.key = jot_take(keys, 0);
    }
    return w;
}

static struct walk start_of_walk(void)
{
    return (struct walk){jot_random_key(3), jot_arange(JOT_U32, 300)};
}

// A long loop makes what its lanes share beside them, and the rest of four steps side by side where
// fours fill it, short ones each for itself (gpu/common.c).
START_TEST(test_steps_that_share_keys)
{
    int steps = _i ? 135 : 140;
    struct walk w = start_of_walk(), whole = walked(start_of_walk(), steps);
    for (int i = 0; i < steps / 5; i++) {
        jot_array *now[2];
        w = walked(w, 5);
        must(jot_eval_tree(2, (jot_value[]){w.key, w.x}, now));
        w = (struct walk){jot_from_array(now[0]), jot_from_array(now[1])};
        jot_arrays_release(2, now);
    }
    CHECK_EXACT(jot_array_equal(whole.x, w.x), 1);
    CHECK_EXACT(jot_array_equal(whole.key, w.key), 1);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_keys);
    tcase_add_test(t, test_bits);
    tcase_add_test(t, test_uniform);
    tcase_add_test(t, test_normal);
    tcase_add_test(t, test_sizes);
    tcase_add_test(t, test_wrong_parameters);
    tcase_add_test(t, test_messages);
    tcase_add_test(t, test_map_over_keys);
    tcase_add_loop_test(t, test_steps_that_share_keys, 0, 2);
}

int main(void) { return run_suite("trace/random", add); }
