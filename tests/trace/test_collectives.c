// SPDX-License-Identifier: Apache-2.0
// Collectives in maps over named axes: against what they stand for, differentiated, in loops and
// branches, nested.
#include "lanes_support.h"

static void check_alike(const char *what, const jot_array *a, const jot_array *b,
                        double tolerance)
{
    ck_assert_msg(jot_array_size(a) == jot_array_size(b), "%s: %zu and %zu elements", what,
                  (size_t)jot_array_size(a), (size_t)jot_array_size(b));
    const double *x = jot_array_data(a), *y = jot_array_data(b);
    for (int64_t i = 0; i < (int64_t)jot_array_size(a); i++)
        ck_assert_msg(fabs(x[i] - y[i]) <= tolerance * (1 + fabs(y[i])) ||
                          (isnan(x[i]) && isnan(y[i])),
                      "%s: element %lld is %.17g, not %.17g", what, (long long)i, x[i], y[i]);
}

// ---- One axis: x is f64[4,4,2], a lane has f64[4,2]

static jot_value over_all(jot_value y) // y: f64[4,2] for every lane
{
    return jot_broadcast_to(y, 4, 4, 2);
}

static jot_value psum(jot_value x) { return jot_psum(x, "i"); }
static jot_value psum_plain(jot_value x) { return over_all(jot_sum(x, 0)); }
static jot_value pmean(jot_value x) { return jot_pmean(x, "i"); }
static jot_value pmean_plain(jot_value x) { return over_all(jot_mean(x, 0)); }
static jot_value pmax(jot_value x) { return jot_pmax(x, "i"); }
static jot_value pmax_plain(jot_value x) { return over_all(jot_max(x, 0)); }
static jot_value pmin(jot_value x) { return jot_pmin(x, "i"); }
static jot_value pmin_plain(jot_value x) { return over_all(jot_min(x, 0)); }
static jot_value gather(jot_value x) { return jot_all_gather(x, "i"); }
static jot_value gather_plain(jot_value x) { return jot_broadcast_to(x, 4, 4, 4, 2); }
static jot_value gather_last(jot_value x) { return jot_all_gather(x, "i", .axis = -1); }
static jot_value gather_last_plain(jot_value x)
{
    return jot_broadcast_to(jot_move_axis(x, 0, -1), 4, 4, 2, 4);
}
static jot_value gather_tiled(jot_value x)
{
    return jot_all_gather(x, "i", .axis = 1, .tiled = true);
}
static jot_value gather_tiled_plain(jot_value x)
{
    return jot_broadcast_to(jot_reshape(jot_move_axis(x, 0, 1), 4, 8), 4, 4, 8);
}
static jot_value scatter(jot_value x) { return jot_psum_scatter(x, "i"); }
static jot_value scatter_plain(jot_value x) { return jot_sum(x, 0); }
static jot_value scatter_tiled(jot_value x)
{
    return jot_psum_scatter(jot_concatenate(-1, x, jot_square(x)), "i", .axis = 1,
                            .tiled = true);
}
static jot_value scatter_tiled_plain(jot_value x)
{
    jot_value sum = jot_sum(jot_concatenate(-1, x, jot_square(x)), 0); // f64[4,4]
    return jot_move_axis(jot_reshape(sum, 4, 4, 1), 1, 0);
}
static jot_value exchange(jot_value x) { return jot_all_to_all(x, "i"); }
static jot_value exchange_plain(jot_value x) { return jot_move_axis(x, 0, 1); }
static jot_value exchange_to(jot_value x) { return jot_all_to_all(x, "i", .axis = 0, .to = 1); }
static jot_value exchange_to_plain(jot_value x) { return jot_move_axis(x, 0, 2); }
static jot_value exchange_tiled(jot_value x)
{
    return jot_all_to_all(x, "i", .axis = 0, .to = 1, .tiled = true);
}
static jot_value exchange_tiled_plain(jot_value x) // [src, dst, k] to [dst, 1, (src, k)]
{
    return jot_reshape(jot_move_axis(x, 0, 1), 4, 1, 8);
}
static jot_value shift(jot_value x) { return jot_ppermute(x, "i", 0, 1, 1, 2, 2, 3, 3, 0); }
static jot_value shift_plain(jot_value x) { return jot_roll(x, 1, 0); }
static jot_value halo(jot_value x) { return jot_ppermute(x, "i", 0, 1, 1, 2, 2, 3); }
static jot_value halo_plain(jot_value x)
{
    return jot_concatenate(0, jot_zeros(JOT_F64, 1, 4, 2), jot_slice(x, 0, 0, 3));
}
static jot_value shuffle(jot_value x) { return jot_pshuffle(x, "i", 2, 0, 3, 1); }
static jot_value shuffle_plain(jot_value x)
{
    return jot_stack(0, jot_take(x, 2), jot_take(x, 0), jot_take(x, 3), jot_take(x, 1));
}
static jot_value broadcast(jot_value x) { return jot_pbroadcast(x, "i", 2); }
static jot_value broadcast_plain(jot_value x) { return over_all(jot_take(x, 2)); }
static jot_value lane(jot_value x)
{
    ck_assert_int_eq((int)jot_axis_size("i"), 4);
    return jot_mul(x, jot_add(jot_axis_index("i"), (double)jot_axis_size("i")));
}
static jot_value lane_plain(jot_value x)
{
    return jot_mul(x, jot_add(jot_reshape(jot_arange(JOT_F64, 4), 4, 1, 1), 4));
}
// What is the same in all lanes.
static jot_value constant(jot_value x) { return jot_mul(x, jot_psum(1.5, "i")); }
static jot_value constant_plain(jot_value x) { return jot_mul(x, 6); }
static jot_value centred(jot_value x)
{
    jot_value d = jot_sub(x, jot_pmean(x, "i"));
    return jot_div(d, jot_sqrt(jot_pmean(jot_square(d), "i")));
}
static jot_value centred_plain(jot_value x)
{
    jot_value d = jot_sub(x, jot_mean(x, 0));
    return jot_div(d, jot_sqrt(jot_mean(jot_square(d), 0)));
}

// In loops: a carry becomes what varies on the way.
static jot_value loop(jot_value x)
{
    jot_value y = jot_from(0.0), z = x;
    JOT_FOR (k, 3, y, z) {
        y = jot_add(y, jot_sum(jot_mul(z, jot_axis_index("i"))));
        z = jot_sub(jot_sin(z), jot_mul(0.01, jot_psum(jot_mul(z, y), "i")));
    }
    return jot_add(z, y);
}
static jot_value loop_plain(jot_value x)
{
    jot_value y = jot_zeros(JOT_F64, 4, 1, 1), z = x,
              own = jot_reshape(jot_arange(JOT_F64, 4), 4, 1, 1);
    JOT_FOR (k, 3, y, z) {
        y = jot_add(y, jot_sum(jot_mul(z, own), 1, 2, JOT_KEEPDIMS));
        z = jot_sub(jot_sin(z), jot_mul(0.01, jot_sum(jot_mul(z, y), 0, JOT_KEEPDIMS)));
    }
    return jot_add(z, y);
}
// All lanes go on while any has to.
static jot_value until(jot_value x)
{
    jot_value y = x;
    JOT_WHILE ((y), jot_greater(jot_pmax(jot_sum(jot_square(y)), "i"), 0.5), .bound = 20) {
        y = jot_mul(0.5, jot_add(y, jot_mul(0.1, jot_ppermute(y, "i", 0, 1, 1, 0))));
    }
    return y;
}
static jot_value until_plain(jot_value x)
{
    jot_value y = x;
    JOT_WHILE ((y), jot_greater(jot_max(jot_sum(jot_square(y), 1, 2)), 0.5), .bound = 20) {
        jot_value swapped = jot_concatenate(0, jot_slice(y, 0, 1, 2), jot_slice(y, 0, 0, 1),
                                            jot_zeros(JOT_F64, 2, 4, 2));
        y = jot_mul(0.5, jot_add(y, jot_mul(0.1, swapped)));
    }
    return y;
}
// A branch that all lanes take, and one that each takes by itself.
static jot_value branch(jot_value x)
{
    jot_value y, z;
    JOT_IF (jot_greater(jot_psum(jot_sum(x), "i"), 0), (y)) {
        y = jot_mul(x, jot_pmean(x, "i"));
    } else {
        y = jot_psum(x, "i");
    }
    JOT_IF (jot_greater(jot_sum(x), 0.5), (z)) {
        z = jot_exp(x);
    } else {
        z = jot_ones_like(x);
    }
    return jot_add(y, z);
}

static jot_value branch_plain(jot_value x)
{
    jot_value y =
        jot_where(jot_greater(jot_sum(x), 0), jot_mul(x, jot_mean(x, 0)), psum_plain(x));
    jot_value sums = jot_sum(x, 1, 2, JOT_KEEPDIMS);
    return jot_add(y, jot_where(jot_greater(sums, 0.5), jot_exp(x), 1));
}

// A call with a rule, one result of which is the same in all lanes: its sum is size times it, also on
// the way back.
static void scaled(const jot_value *in, jot_value *out, void *ctx)
{
    for (int i = 0; i < 2; i++)
        out[i] = jot_mul(in[i], *(const double *)ctx);
}
static jot_value solved(jot_value x)
{
    double two = 2, half = 0.5;
    jot_function apply = jot_function_make(scaled, 2, 2, &two);
    jot_function solve = jot_function_make(scaled, 2, 2, &half);
    jot_value b[] = {x, jot_psum(x, "i")}, y[2];
    jot_linear_solve_tree(apply, solve, solve, 2, b, y, JOT_HERE);
    return jot_add(jot_mul(y[0], x), jot_psum(y[1], "i"));
}
static jot_value solved_plain(jot_value x)
{
    return jot_add(jot_mul(0.5, jot_square(x)), jot_mul(2, psum_plain(x)));
}

// All lanes decide alike, by what comes out of a node with bodies, whether they exchange something.  An
// assertion keeps both branches from being computed.
static jot_value decide(jot_value x, jot_value alike)
{
    jot_value y;
    JOT_IF (jot_greater(jot_sum(alike), 0.1), (y)) {
        jot_assert(jot_equal(alike, alike), "a number");
        y = jot_mul(x, jot_psum(x, "i"));
    } else {
        y = jot_psum(jot_mul(3, jot_square(x)), "i");
    }
    return y;
}
static jot_value decide_plain(jot_value x, jot_value alike)
{
    return jot_where(jot_greater(jot_sum(alike, -1, -2, JOT_KEEPDIMS), 0.1),
                     jot_mul(x, psum_plain(x)), psum_plain(jot_mul(3, jot_square(x))));
}
static jot_value decided_by_solve(jot_value x)
{
    double two = 2, half = 0.5;
    jot_function apply = jot_function_make(scaled, 2, 2, &two);
    jot_function solve = jot_function_make(scaled, 2, 2, &half);
    jot_value b[] = {x, jot_psum(x, "i")}, y[2];
    jot_linear_solve_tree(apply, solve, solve, 2, b, y, JOT_HERE);
    return decide(y[0], y[1]);
}
static jot_value decided_by_solve_plain(jot_value x)
{
    return decide_plain(jot_mul(0.5, x), jot_mul(0.5, psum_plain(x)));
}
// The cotangent of what is the same in all lanes has a sum of its own in the rule.
static void scaled_back(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_mul(in[0], *(const double *)ctx);
    out[1] = jot_mul(0.25, jot_psum(jot_pvary(jot_mul(in[1], *(const double *)ctx), "i"), "i"));
}
static jot_value decided_by_rule(jot_value x)
{
    double two = 2;
    jot_function f = jot_function_make(scaled, 2, 2, &two);
    jot_value in[] = {x, jot_psum(x, "i")}, y[2];
    jot_apply(jot_custom_vjp(f, f, jot_function_make(scaled_back, 2, 2, &two)), 2, in, 2, y);
    return jot_add(decide(y[0], y[1]), jot_sin(y[1]));
}
static jot_value decided_by_rule_plain(jot_value x)
{
    jot_value s = jot_mul(2, psum_plain(x));
    return jot_add(decide_plain(jot_mul(2, x), s), jot_sin(s));
}
// How often, a map around this one may say for each of its lanes.
static jot_value decided_by_loop(jot_value x)
{
    jot_value s = jot_psum(x, "i"), y = x;
    JOT_WHILE ((s, y), jot_greater(jot_sum(jot_square(s)), 1), .bound = 20) {
        jot_value sum = jot_psum(jot_pvary(s, "i"), "i"); // 4 s
        s = jot_mul(0.125, sum);
        y = jot_mul(0.5, y);
    }
    return decide(y, s);
}
static jot_value decided_by_loop_plain(jot_value x)
{
    jot_value s = psum_plain(x), y = x;
    JOT_WHILE ((s, y), jot_greater(jot_sum(jot_square(jot_slice(s, 0, 0, 1))), 1),
               .bound = 20) {
        s = jot_mul(0.5, s);
        y = jot_mul(0.5, y);
    }
    return decide_plain(y, s);
}

static const struct pair {
    const char *name;
    jot_value (*named)(jot_value), (*plain)(jot_value);
} alike[] = {
    {"psum", psum, psum_plain},
    {"pmean", pmean, pmean_plain},
    {"pmax", pmax, pmax_plain},
    {"pmin", pmin, pmin_plain},
    {"all_gather", gather, gather_plain},
    {"all_gather at the end", gather_last, gather_last_plain},
    {"all_gather tiled", gather_tiled, gather_tiled_plain},
    {"psum_scatter", scatter, scatter_plain},
    {"psum_scatter tiled", scatter_tiled, scatter_tiled_plain},
    {"all_to_all", exchange, exchange_plain},
    {"all_to_all to", exchange_to, exchange_to_plain},
    {"all_to_all tiled", exchange_tiled, exchange_tiled_plain},
    {"ppermute around", shift, shift_plain},
    {"ppermute", halo, halo_plain},
    {"pshuffle", shuffle, shuffle_plain},
    {"pbroadcast", broadcast, broadcast_plain},
    {"axis_index", lane, lane_plain},
    {"psum of a constant", constant, constant_plain},
    {"centred", centred, centred_plain},
    {"loop", loop, loop_plain},
    {"until", until, until_plain},
    {"branch", branch, branch_plain},
    {"solved", solved, solved_plain},
    {"decided by a solve", decided_by_solve, decided_by_solve_plain},
    {"decided by a rule", decided_by_rule, decided_by_rule_plain},
    {"decided by a loop", decided_by_loop, decided_by_loop_plain},
};

START_TEST(test_one_axis)
{
    jot_array *x[] = {NUMBERS(32, 4, 4, 2)};
    jot_function named = jot_vmap_named(
        jot_function_plain(alike[_i].name, alike[_i].name, 1, (void (*)(void))alike[_i].named),
        "i");
    jot_function plain =
        jot_function_plain(alike[_i].name, alike[_i].name, 1, (void (*)(void))alike[_i].plain);
    jot_array *a = one_result(named, 1, x), *b = one_result(plain, 1, x);
    check_alike(alike[_i].name, a, b, 1e-13);
    must(jot_check_grads(named, 2, JOT_FORWARD | JOT_REVERSE, 0, x[0]));
    jot_array *one[] = {jot_array_full(JOT_F64, 1, 4, 4, 2)}; // also where all lanes are alike
    jot_array *c = one_result(named, 1, one), *d = one_result(plain, 1, one);
    check_alike(alike[_i].name, c, d, 1e-13);
    // Another map around it, over an axis that the collective does not see.
    jot_array *many[] = {NUMBERS(96, 4, 3, 4, 2)};
    jot_array *e = one_result(jot_vmap(named, 1), 1, many),
              *f = one_result(jot_vmap(plain, 1), 1, many);
    check_alike(alike[_i].name, e, f, 1e-13);
    // And inside of it.
    jot_function inner =
        jot_vmap_named(jot_vmap(jot_function_plain(alike[_i].name, alike[_i].name, 1,
                                                   (void (*)(void))alike[_i].named)),
                       "i");
    jot_array *g = one_result(inner, 1, many);
    const double *x_in = jot_array_data(g), *x_out = jot_array_data(e);
    size_t part = jot_array_size(e) / 12;
    for (size_t i = 0; i < 12; i++)
        ck_assert(
            !memcmp(x_in + i * part, x_out + (i % 3 * 4 + i / 3) * part, part * sizeof *x_in) ||
            isnan(x_in[i * part]));
    release_all(a, b, c, d, e, f, g);
    jot_array_release(x[0]), jot_array_release(one[0]), jot_array_release(many[0]);
}
END_TEST

// ---- Two axes: x is f64[2,3,6,2], a lane has f64[6,2]

static jot_value over_both(jot_value y) { return jot_broadcast_to(y, 2, 3, 6, 2); }
static jot_value sum_both(jot_value x) { return jot_psum(x, "i, j"); }
static jot_value sum_both_plain(jot_value x) { return over_both(jot_sum(x, 0, 1)); }
static jot_value max_both(jot_value x) { return jot_pmax(jot_mul(x, jot_psum(x, "j")), "j,i"); }
static jot_value max_both_plain(jot_value x)
{
    return over_both(jot_max(jot_mul(x, jot_sum(x, 1, JOT_KEEPDIMS)), 0, 1));
}
static jot_value gather_both(jot_value x) { return jot_all_gather(x, "i, j"); }
static jot_value gather_both_plain(jot_value x)
{
    return jot_broadcast_to(jot_reshape(x, 6, 6, 2), 2, 3, 6, 6, 2);
}
static jot_value gather_other(jot_value x) { return jot_all_gather(x, "j, i"); }
static jot_value gather_other_plain(jot_value x)
{
    return jot_broadcast_to(jot_reshape(jot_move_axis(x, 0, 1), 6, 6, 2), 2, 3, 6, 6, 2);
}
static jot_value scatter_both(jot_value x) { return jot_psum_scatter(x, "i, j"); }
static jot_value scatter_both_plain(jot_value x)
{
    return jot_reshape(jot_sum(x, 0, 1), 2, 3, 2);
}
static jot_value scatter_other(jot_value x) { return jot_psum_scatter(x, "j, i"); }
static jot_value scatter_other_plain(jot_value x)
{
    return jot_move_axis(jot_reshape(jot_sum(x, 0, 1), 3, 2, 2), 0, 1);
}
static jot_value exchange_both(jot_value x) { return jot_all_to_all(x, "i, j"); }
static jot_value exchange_both_plain(jot_value x)
{
    return jot_reshape(jot_transpose(jot_reshape(x, 2, 3, 2, 3, 2), 2, 3, 0, 1, 4), 2, 3, 6, 2);
}
static jot_value exchange_other(jot_value x) { return jot_all_to_all(x, "j, i"); }
static jot_value exchange_other_plain(jot_value x)
{
    return jot_reshape(jot_transpose(jot_reshape(x, 2, 3, 3, 2, 2), 3, 2, 1, 0, 4), 2, 3, 6, 2);
}
static jot_value permute_both(jot_value x)
{
    return jot_ppermute(x, "i, j", 0, 4, 4, 1, 1, 0, 5, 5, 3, 2);
}
static jot_value permute_both_plain(jot_value x)
{
    jot_value r = jot_reshape(x, 6, 6, 2);
    return jot_reshape(jot_stack(0, jot_take(r, 1), jot_take(r, 4), jot_take(r, 3),
                                 jot_zeros_like(jot_take(r, 0)), jot_take(r, 0),
                                 jot_take(r, 5)),
                       2, 3, 6, 2);
}
static jot_value permute_other(jot_value x)
{
    return jot_pshuffle(x, "j, i", 5, 3, 1, 0, 2, 4);
}
static jot_value permute_other_plain(jot_value x) // lane (i, j) is number 2 j + i
{
    jot_value r = jot_reshape(jot_move_axis(x, 0, 1), 6, 6, 2);
    jot_value y = jot_stack(0, jot_take(r, 5), jot_take(r, 3), jot_take(r, 1), jot_take(r, 0),
                            jot_take(r, 2), jot_take(r, 4));
    return jot_move_axis(jot_reshape(y, 3, 2, 6, 2), 0, 1);
}
static jot_value broadcast_both(jot_value x) { return jot_pbroadcast(x, "i, j", 4); }
static jot_value broadcast_both_plain(jot_value x)
{
    return over_both(jot_take(jot_reshape(x, 6, 6, 2), 4));
}
static jot_value index_both(jot_value x)
{
    ck_assert_int_eq((int)jot_axis_size("i, j"), 6);
    return jot_mul(x, jot_axis_index("i, j"));
}
static jot_value index_both_plain(jot_value x)
{
    return jot_mul(x, jot_reshape(jot_arange(JOT_F64, 6), 2, 3, 1, 1));
}
static jot_value in_turn(jot_value x)
{
    return jot_mul(jot_all_to_all(jot_all_gather(jot_psum_scatter(x, "i, j"), "j, i"), "i, j"),
                   jot_ppermute(x, "j", 0, 1, 1, 2));
}
static jot_value in_turn_plain(jot_value x)
{
    return jot_mul(
        exchange_both_plain(jot_broadcast_to(
            jot_reshape(jot_move_axis(scatter_both_plain(x), 0, 1), 6, 2), 2, 3, 6, 2)),
        jot_concatenate(1, jot_zeros(JOT_F64, 2, 1, 6, 2), jot_slice(x, 1, 0, 2)));
}

// Lanes along j end by themselves, and check something in turn; those along i are in step.
static jot_value in_step(jot_value x)
{
    jot_value k = jot_axis_index("j");
    JOT_WHILE ((x, k), jot_less(k, 2), .bound = 3) {
        jot_assert(jot_all(jot_is_finite(x)), "x is finite");
        x = jot_add(jot_mul(0.5, jot_psum(x, "i")), jot_mul(x, jot_axis_index("i")));
        k = jot_add(k, 1);
    }
    return x;
}
static jot_value in_step_plain(jot_value x)
{
    jot_value i = jot_reshape(jot_arange(JOT_F64, 2), 2, 1, 1, 1),
              j = jot_reshape(jot_arange(JOT_F64, 3), 1, 3, 1, 1);
    for (int t = 0; t < 2; t++) {
        jot_value next = jot_add(jot_mul(0.5, jot_sum(x, 0, JOT_KEEPDIMS)), jot_mul(x, i));
        x = jot_where(jot_less(jot_add(j, t), 2), next, x);
    }
    return x;
}

static const struct pair on_two[] = {
    {"psum", sum_both, sum_both_plain},
    {"pmax", max_both, max_both_plain},
    {"all_gather", gather_both, gather_both_plain},
    {"all_gather over j, i", gather_other, gather_other_plain},
    {"psum_scatter", scatter_both, scatter_both_plain},
    {"psum_scatter over j, i", scatter_other, scatter_other_plain},
    {"all_to_all", exchange_both, exchange_both_plain},
    {"all_to_all over j, i", exchange_other, exchange_other_plain},
    {"ppermute", permute_both, permute_both_plain},
    {"pshuffle over j, i", permute_other, permute_other_plain},
    {"pbroadcast", broadcast_both, broadcast_both_plain},
    {"axis_index", index_both, index_both_plain},
    {"in turn", in_turn, in_turn_plain},
    {"in step", in_step, in_step_plain},
};

START_TEST(test_two_axes)
{
    const struct pair *p = &on_two[_i];
    jot_array *x[] = {NUMBERS(72, 2, 3, 6, 2)};
    jot_function f = jot_function_plain(p->name, p->name, 1, (void (*)(void))p->named);
    jot_function plain = jot_function_plain(p->name, p->name, 1, (void (*)(void))p->plain);
    jot_function named = jot_vmap_named(jot_vmap_named(f, "j"), "i");
    jot_array *a = one_result(named, 1, x), *b = one_result(plain, 1, x);
    check_alike(p->name, a, b, 1e-13);
    must(jot_check_grads(named, 1, JOT_FORWARD | JOT_REVERSE, 0, x[0]));
    // The other map around.
    jot_function other = jot_vmap_named(jot_vmap_named(f, "i"), "j", 1);
    jot_array *d = one_result(other, 1, x);
    size_t part = jot_array_size(b) / 6;
    for (size_t k = 0; k < jot_array_size(b); k++) {
        size_t lane = k / part, from = lane % 3 * 2 + lane / 3;
        double have = ((const double *)jot_array_data(d))[from * part + k % part];
        double want = ((const double *)jot_array_data(b))[k];
        ck_assert_msg(fabs(have - want) <= 1e-13 * (1 + fabs(want)), "%s: %g, not %g", p->name,
                      have, want);
    }
    release_all(a, b, d, x[0]);
}
END_TEST

// ---- Derivatives inside of maps

static jot_value loss(jot_value w, jot_value x)
{
    return jot_sum(jot_square(jot_sub(jot_mul(w, x), 1)));
}
static jot_value mean_loss(jot_value w, jot_value x) { return jot_pmean(loss(w, x), "i"); }
static jot_value own_gradient(jot_value w, jot_value x) { return JOT_GRAD(loss, w, x); }
static jot_value summed_gradient(jot_value w, jot_value x)
{
    return jot_psum(JOT_GRAD(mean_loss, w, x), "i");
}

// A name alone changes nothing: gradients are those of each element.
START_TEST(test_names_alone)
{
    jot_array *in[] = {jot_array_full(JOT_F64, 0.7), NUMBERS(6, 3, 2)};
    jot_function plain = jot_vmap(jot_grad(jot_fn(loss)), JOT_NONE, 0);
    jot_array *want = one_result(plain, 2, in);
    jot_function same[] = {jot_vmap_named(jot_grad(jot_fn(loss)), "i", JOT_NONE, 0),
                           jot_vmap_named(jot_fn(own_gradient), "i", JOT_NONE, 0)};
    for (int i = 0; i < 2; i++) {
        jot_array *g = one_result(same[i], 2, in);
        check_alike("a gradient of each", g, want, 1e-15);
        jot_array_release(g);
    }
    // A loss that all lanes share: the sum of what each has of its gradient.
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += ((const double *)jot_array_data(want))[i] / 3;
    jot_array *g = one_result(jot_vmap_named(jot_fn(summed_gradient), "i", JOT_NONE, 0), 2, in);
    check_numbers(g, 3, (const double[]){sum, sum, sum}, 1e-14);
    release_all(g, want, in[0], in[1]);
}
END_TEST

static jot_value with_blocks(jot_value w, jot_value x)
{
    jot_value y, g;
    JOT_VMAP_NAMED("rows", (x), (y, g))
    {
        g = JOT_GRAD(loss, w, x);
        y = jot_psum(jot_mul(x, g), "rows");
    }
    return jot_add(jot_sum(y), jot_sum(g));
}
static jot_value with_blocks_plain(jot_value w, jot_value x)
{
    jot_value g = jot_sum(jot_mul(2, jot_mul(jot_sub(jot_mul(w, x), 1), x)), 1, JOT_KEEPDIMS);
    return jot_add(jot_mul(3, jot_sum(jot_mul(x, g))), jot_sum(g));
}

static jot_value product(jot_value x, jot_value y) { return jot_psum(jot_mul(x, y), "i"); }
static jot_value with_rule(jot_value x)
{
    return jot_psum(jot_softplus(jot_mul(x, jot_axis_index("i"))), "i");
}

START_TEST(test_blocks)
{
    jot_array *in[] = {jot_array_full(JOT_F64, 0.7), NUMBERS(6, 3, 2)};
    jot_array *a = one_result(jot_fn(with_blocks), 2, in),
              *b = one_result(jot_fn(with_blocks_plain), 2, in);
    check_alike("blocks", a, b, 1e-13);
    must(jot_check_grads(jot_fn(with_blocks), 2, JOT_FORWARD | JOT_REVERSE, 0, in[0], in[1]));
    // Tangents and cotangents inside of the map.
    jot_array *two[] = {in[1], in[1], in[1], in[1]}, *out[4] = {NULL};
    jot_executable *e = jot_jit(jot_vmap_named(jot_jvp(jot_fn(product)), "i"));
    must(jot_call_list(e, 4, two, 2, out));
    const double *x = jot_array_data(in[1]);
    double want[6];
    for (int i = 0; i < 6; i++)
        want[i] = 2 * (x[i % 2] * x[i % 2] + x[2 + i % 2] * x[2 + i % 2] +
                       x[4 + i % 2] * x[4 + i % 2]);
    check_numbers(out[1], 6, want, 1e-14);
    jot_arrays_release(2, out);
    jot_executable_release(e);
    // A lane's own cotangent of what all lanes have: each has the sum of them.
    e = jot_jit(jot_vmap_named(jot_vjp(jot_fn(product)), "i"));
    must(jot_call_list(e, 3, two, 3, out));
    for (int i = 0; i < 6; i++)
        want[i] = x[i] * (x[i % 2] + x[2 + i % 2] + x[4 + i % 2]);
    check_numbers(out[1], 6, want, 1e-14);
    jot_arrays_release(3, out);
    jot_executable_release(e);
    must(jot_check_grads(jot_vmap_named(jot_fn(with_rule), "i"), 2, JOT_FORWARD | JOT_REVERSE,
                         0, in[1]));
    release_all(a, b, in[0], in[1]);
}
END_TEST

// ---- Mistakes

static jot_value outside(jot_value x) { return jot_psum(x, "i"); }
static jot_value unknown(jot_value x) { return jot_psum(x, "k"); }
static jot_value listed_twice(jot_value x) { return jot_pmax(x, "i, i"); }
static jot_value no_list(jot_value x) { return jot_pmax(x, "i j"); }
static jot_value nested(jot_value x) { return jot_sum(x); }
static jot_value too_far(jot_value x) { return jot_pbroadcast(x, "i", 3); }
static jot_value twice_to(jot_value x) { return jot_ppermute(x, "i", 0, 1, 2, 1); }
static jot_value odd(jot_value x) { return jot_ppermute(x, "i", 0, 1, 2); }
static jot_value no_rows(jot_value x) { return jot_psum_scatter(x, "i"); }
static jot_value gather_to(jot_value x) { return jot_all_gather(x, "i", .to = 3); }
static jot_value scatter_to(jot_value x) { return jot_psum_scatter(x, "i", .to = -1); }
static jot_value gather_behind(jot_value x) { return jot_all_gather(x, "i", .axis = 2); }
static jot_value gather_onto(jot_value x)
{
    return jot_all_gather(x, "i", .axis = -2, .tiled = true);
}
static jot_value scatter_behind(jot_value x) { return jot_psum_scatter(x, "i", .axis = 1); }
static jot_value exchange_behind(jot_value x) { return jot_all_to_all(x, "i", .to = 1); }
static jot_value exchange_parts(jot_value x) { return jot_all_to_all(x, "i", .tiled = true); }
static jot_value too_low(jot_value x) { return jot_pbroadcast(x, "i", -1); }
static jot_value from_too_far(jot_value x) { return jot_ppermute(x, "i", 3, 1); }
static jot_value not_all(jot_value x) { return jot_pshuffle(x, "i", 0, 1); }
static jot_value one_twice(jot_value x) { return jot_pshuffle(x, "i", 0, 1, 1); }
static jot_value complex_max(jot_value x) { return jot_pmax(jot_complex(x, x), "i"); }
static jot_value lanes_disagree(jot_value x)
{
    jot_value y;
    JOT_IF (jot_greater(jot_sum(x), 0), (y)) {
        y = jot_psum(x, "i");
    } else {
        y = x;
    }
    return y;
}
static jot_value lanes_leave(jot_value x)
{
    JOT_WHILE ((x), jot_less(jot_sum(x), 10)) {
        x = jot_add(1, jot_pmean(x, "i"));
    }
    return x;
}
static jot_value twice_named(jot_value x)
{
    jot_value y;
    JOT_VMAP_NAMED("i", (x), (y)) { y = x; }
    return y;
}

START_TEST(test_mistakes)
{
    const struct {
        jot_function f;
        const char *says;
    } wrong[] = {
        {jot_fn(outside),
         "jot_psum(x, \"i\"): no map around it names an axis i: jot_vmap_named does"},
        {jot_vmap_named(jot_fn(unknown), "i"), "no map around it names an axis k: there is i"},
        {jot_vmap_named(jot_fn(listed_twice), "i"), "\"i, i\" lists i twice"},
        {jot_vmap_named(jot_fn(no_list), "i"),
         "\"i j\" lists no axes: write \"i\" or \"i, j\""},
        {jot_vmap_named(jot_vmap_named(jot_fn(nested), "i"), "i"),
         "an axis i inside of a map over i: give one another name"},
        {jot_vmap_named(jot_fn(twice_named), "i"),
         "an axis i inside of a map over i: give one another name"},
        {jot_vmap_named(jot_fn(nested), "i-1"),
         "the name \"i-1\" of an axis is NULL, or not letters, digits and _"},
        {jot_vmap_named(jot_fn(too_far), "i"), "from lane 3: lanes are 0 to 2"},
        {jot_vmap_named(jot_fn(twice_to), "i"), "to lane 1 twice"},
        {jot_vmap_named(jot_fn(odd), "i"), "3 numbers as pairs of 3 lanes"},
        {jot_vmap_named(jot_fn(no_rows), "i"),
         "axis 0 of f64[2]<i:3> for 3 lanes: its extent must be as many"},
        {jot_vmap_named(jot_fn(gather_to), "i"),
         "jot_all_gather(x, \"i\", .to = 3): to is 3, which jot_all_to_all alone takes: axis "
         "says where"},
        {jot_vmap_named(jot_fn(scatter_to), "i"), "to is -1, which jot_all_to_all alone takes"},
        {jot_vmap_named(jot_fn(gather_behind), "i"), "axis 2: axes are -2 to 1"},
        {jot_vmap_named(jot_fn(gather_onto), "i"), "axis -2: axes are -1 to 0"},
        {jot_vmap_named(jot_fn(scatter_behind), "i"), "axis 1: axes are -1 to 0"},
        {jot_vmap_named(jot_fn(exchange_behind), "i"), "axis 1: axes are -1 to 0"},
        {jot_vmap_named(jot_fn(exchange_parts), "i"),
         "axis 0 of f64[2]<i:3> for 3 lanes: its extent must be a multiple of that"},
        {jot_vmap_named(jot_fn(too_low), "i"), "from lane -1: lanes are 0 to 2"},
        {jot_vmap_named(jot_fn(from_too_far), "i"), "from lane 3: lanes are 0 to 2"},
        {jot_vmap_named(jot_fn(not_all), "i"), "2 numbers for 3 lanes"},
        {jot_vmap_named(jot_fn(one_twice), "i"), "from lane 1 twice"},
        {jot_vmap_named(jot_fn(complex_max), "i"), "pmax"},
        {jot_vmap_named(jot_fn(lanes_disagree), "i"), "psum at "},
        {jot_vmap_named(jot_fn(lanes_disagree), "i"), "which branch is taken varies over i"},
        {jot_vmap_named(jot_fn(lanes_leave), "i"), "the number of trips varies over i"},
    };
    jot_array *x[] = {NUMBERS(12, 3, 2, 2)};
    jot_array *rows[] = {NUMBERS(6, 3, 2)};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        jot_executable *e = jot_jit(wrong[i].f);
        jot_array *y = NULL;
        bool takes_rank_2 = i == 5 || i == 4;
        jot_status s =
            e ? jot_call_list(e, 1, takes_rank_2 ? x : rows, 1, &y) : JOT_ERR_ARGUMENT;
        ck_assert_msg(s != JOT_OK && strstr(jot_error_message(), wrong[i].says), "%zu: %s", i,
                      s == JOT_OK ? "no error" : jot_error_message());
        jot_executable_release(e);
    }
    jot_array_release(x[0]), jot_array_release(rows[0]);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_one_axis, 0, sizeof alike / sizeof *alike);
    tcase_add_loop_test(t, test_two_axes, 0, sizeof on_two / sizeof *on_two);
    tcase_add_test(t, test_names_alone);
    tcase_add_test(t, test_blocks);
    tcase_add_test(t, test_mistakes);
}

int main(void) { return run_by_both("trace/collectives", add); }
