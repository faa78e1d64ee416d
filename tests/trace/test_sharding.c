// SPDX-License-Identifier: Apache-2.0
// Functions on meshes, as one device runs them: against the same function of the whole, differentiated,
// mapped, and with mistakes.
#include "lanes_support.h"

#include <jot/parallel.h>

static jot_mesh *line, *grid;

static void set_up(void)
{
    must(jot_set_host_devices(8));
    line = jot_mesh_of(JOT_HOST, {"i", 4});
    grid = jot_mesh_of(JOT_HOST, {"x", 2}, {"y", 3});
    ck_assert_msg(line && grid, "%s", jot_error_message());
}

static void check_alike(const char *what, const jot_array *a, const jot_array *b)
{
    ck_assert_msg(jot_array_size(a) == jot_array_size(b), "%s: %zu and %zu elements", what,
                  jot_array_size(a), jot_array_size(b));
    const double *x = jot_array_data(a), *y = jot_array_data(b);
    for (size_t i = 0; i < jot_array_size(a); i++)
        ck_assert_msg(fabs(x[i] - y[i]) <= 1e-13 * (1 + fabs(y[i])),
                      "%s: element %zu is %.17g, not %.17g", what, i, x[i], y[i]);
}

// a: f64[8,6], b: f64[6,12]
static jot_value product(jot_value a, jot_value b) { return jot_matmul(a, b); }
static jot_value summed(jot_value a, jot_value b) { return jot_psum(jot_matmul(a, b), "x"); }
static jot_value summed_rows(jot_value a, jot_value b)
{
    return jot_psum_scatter(jot_matmul(a, b), "x", .tiled = true);
}
static jot_value gathered(jot_value a, jot_value b)
{
    jot_value rows = jot_all_gather(b, "x, y", .axis = 1, .tiled = true);
    return jot_matmul(a, rows);
}
static jot_value rolled(jot_value a, jot_value b)
{
    jot_value sum = jot_mul(0, jot_matmul(a, jot_concatenate(0, b, b, b, b)));
    JOT_FOR (k, 4, b, sum) {
        jot_value own = jot_mod(jot_sub(jot_axis_index("i"), k), 4);
        jot_value part = jot_dynamic_slice(a, jot_stack(0, 0, jot_mul(own, 2)), 2, 2);
        sum = jot_add(sum, jot_matmul(part, b));
        b = jot_ppermute(b, "i", 0, 1, 1, 2, 2, 3, 3, 0);
    }
    return sum;
}
static jot_value lanes(jot_value a, jot_value b)
{
    return jot_add(jot_matmul(a, b), jot_mul(jot_axis_index("x"), jot_pmean(jot_sum(a), "y")));
}
static jot_value lanes_plain(jot_value a, jot_value b)
{
    jot_value sum = jot_sum(jot_reshape(a, 2, 4, 6), 1, 2, JOT_KEEPDIMS);
    jot_value add = jot_mul(jot_reshape(jot_arange(JOT_F64, 2), 2, 1, 1), sum);
    return jot_reshape(jot_add(jot_reshape(jot_matmul(a, b), 2, 4, 12), add), 8, 12);
}

static jot_value copies(jot_value x, jot_value y)
{
    jot_value p = product(x, y);
    return jot_concatenate(0, p, p, p, p);
}

static const struct row {
    const char *name;
    jot_value (*f)(jot_value, jot_value), (*plain)(jot_value, jot_value);
    bool on_grid;
    const char *in[2], *out;
} rows[] = {
    {"rows", product, product, false, {"i", ""}, "i"},
    {"columns", product, product, false, {"", ", i"}, ", i"},
    {"both", product, product, true, {"x", ", y"}, "x, y"},
    {"rows of two axes", product, product, false, {"i", "_"}, "i, _"},
    {"two axes in one", product, product, true, {"", ", x y"}, ", x y"},
    {"other way round", product, product, true, {"", ", y x"}, ", y x"},
    {"inner", summed, product, true, {", x", "x, y"}, ", y"},
    {"inner and rows", summed_rows, product, true, {", x", "x"}, "x"},
    {"gathered", gathered, product, true, {"x", ", x y"}, "x"},
    {"nothing is split", product, product, false, {"", ""}, ""},
    {"a copy of each", product, copies, false, {"", ""}, "i"},
    {"lanes", lanes, lanes_plain, true, {"x", ", y"}, "x, y"},
};

static jot_function sharded(const struct row *r)
{
    jot_function f = jot_function_plain(r->name, r->name, 2, (void (*)(void))r->f);
    return jot_shard_map_of(f, r->on_grid ? grid : line, NULL, 2, r->in, 1, &r->out);
}

START_TEST(test_sharded)
{
    const struct row *r = &rows[_i];
    set_up();
    jot_array *in[] = {NUMBERS(48, 8, 6), NUMBERS(72, 6, 12)};
    jot_function f = sharded(r);
    jot_function plain = jot_function_plain(r->name, r->name, 2, (void (*)(void))r->plain);
    jot_array *a = one_result(f, 2, in), *b = one_result(plain, 2, in);
    check_alike(r->name, a, b);
    must(jot_check_grads(f, 2, JOT_FORWARD | JOT_REVERSE, 0, in[0], in[1]));
    // Mapped, over an axis of one argument and over a named one.
    jot_array *many[] = {NUMBERS(96, 2, 8, 6), in[1]};
    jot_array *c = one_result(jot_vmap(f, 0, JOT_NONE), 2, many),
              *d = one_result(jot_vmap(plain, 0, JOT_NONE), 2, many),
              *e = one_result(jot_vmap_named(f, "k", 0, JOT_NONE), 2, many);
    check_alike("mapped", c, d);
    check_alike("mapped", e, d);
    release_all(a, b, c, d, e, in[0], in[1], many[0]);
}
END_TEST

// A ring: b goes around while each device adds up its products.
START_TEST(test_ring)
{
    set_up();
    jot_array *in[] = {NUMBERS(64, 8, 8), NUMBERS(32, 8, 4)};
    jot_function f = jot_shard_map(jot_fn(rolled), line, JOT_SPLITS("i", "i"), JOT_SPLITS("i"));
    jot_array *a = one_result(f, 2, in), *b = one_result(jot_fn(product), 2, in);
    check_alike("ring", a, b);
    must(jot_check_grads(f, 1, JOT_FORWARD | JOT_REVERSE, 0, in[0], in[1]));
    release_all(a, b, in[0], in[1]);
}
END_TEST

// ---- Networks: the gradient of what devices share is the sum of theirs

static jot_value error_of(jot_value w, jot_value x)
{
    return jot_mean(jot_square(jot_sub(jot_tanh(jot_matmul(x, w)), 0.3)));
}
static jot_value mean_error(jot_value w, jot_value x) { return jot_pmean(error_of(w, x), "i"); }
static jot_value gradient(jot_value w, jot_value x)
{
    return jot_pmean(JOT_GRAD(error_of, w, x), "i");
}
static jot_value step(jot_value w, jot_value x)
{
    return jot_sub(w, jot_mul(0.1, gradient(w, x)));
}
static jot_value own_error(jot_value w, jot_value x)
{
    return jot_mul(error_of(w, x), jot_add(jot_axis_index("i"), 1));
}

START_TEST(test_gradients)
{
    set_up();
    jot_array *in[] = {NUMBERS(3, 3), NUMBERS(24, 8, 3)};
    jot_array *want = one_result(jot_grad(jot_fn(error_of)), 2, in);
    // Outside of the map, and inside of it.
    jot_function outside =
        jot_grad(jot_shard_map(jot_fn(mean_error), line, JOT_SPLITS("", "i"), JOT_SPLITS("")));
    jot_function inside =
        jot_shard_map(jot_fn(gradient), line, JOT_SPLITS("", "i"), JOT_SPLITS(""));
    jot_array *a = one_result(outside, 2, in), *b = one_result(inside, 2, in);
    check_alike("outside", a, want);
    check_alike("inside", b, want);
    must(jot_check_grads(jot_shard_map(jot_fn(step), line, JOT_SPLITS("", "i"), JOT_SPLITS("")),
                         2, JOT_FORWARD | JOT_REVERSE, 0, in[0], in[1]));
    // A device for each element.
    jot_array *rows_in[] = {in[0], NUMBERS(12, 4, 1, 3)};
    jot_function each = jot_pmap(jot_fn(own_error), "i", JOT_NONE, 0);
    jot_function mapped = jot_vmap_named(jot_fn(own_error), "i", JOT_NONE, 0);
    jot_array *c = one_result(each, 2, rows_in), *d = one_result(mapped, 2, rows_in),
              *e = one_result(jot_pmap_on(line, jot_grad(jot_fn(own_error)), "i", JOT_NONE, 0),
                              2, rows_in),
              *f = one_result(jot_vmap_named(jot_grad(jot_fn(own_error)), "i", JOT_NONE, 0), 2,
                              rows_in);
    check_alike("pmap", c, d);
    check_alike("gradients in pmap", e, f);
    must(jot_check_grads(each, 2, JOT_FORWARD | JOT_REVERSE, 0, rows_in[0], rows_in[1]));
    release_all(want, a, b, c, d, e, f, in[0], in[1], rows_in[1]);
}
END_TEST

// ---- Mistakes

static jot_value same(jot_value x) { return x; }

START_TEST(test_mistakes)
{
    set_up();
    jot_mesh *eight = jot_mesh_of(JOT_HOST, {"i", 8});
    const struct {
        jot_function f;
        const char *says;
    } wrong[] = {
        {jot_shard_map(jot_fn(same), line, JOT_SPLITS("i"), JOT_SPLITS("")),
         "result 0 varies over i, which does not split it: devices along it would have to "
         "agree"},
        {jot_shard_map(jot_fn(same), line, JOT_SPLITS(", i"), JOT_SPLITS(", i")),
         "argument 0 of same is f64[8,6]: axis 1 is split by 4 devices, which 6 does "
         "not divide "
         "into: 4 or 8 would"},
        {jot_shard_map(jot_fn(same), line, JOT_SPLITS("k"), JOT_SPLITS("")),
         "argument 0 of same: \"k\" splits by k, and the mesh has i"},
        {jot_shard_map(jot_fn(same), line, JOT_SPLITS("i i"), JOT_SPLITS("")),
         "\"i i\" splits by i twice"},
        {jot_shard_map(jot_fn(same), line, JOT_SPLITS(",,i"), JOT_SPLITS("")),
         "argument 0 of same has 2 axes, and \",,i\" splits more"},
        {jot_shard_map(jot_fn(same), line, JOT_SPLITS("_, _, _"), JOT_SPLITS("")),
         "argument 0 of same has 2 axes, and \"_, _, _\" splits more"},
        {jot_shard_map(jot_fn(same), line, JOT_SPLITS("_ i"), JOT_SPLITS("i")),
         "argument 0 of same: \"_ i\" has _ beside an axis"},
        {jot_shard_map(jot_fn(same), line, JOT_SPLITS("i"), JOT_SPLITS(", , i")),
         "result 0 of same has 2 axes, and \", , i\" splits more"},
        {jot_shard_map(jot_fn(same), line, JOT_SPLITS("i"), JOT_SPLITS("i, i")),
         "\"i, i\" splits by i twice"},
        {jot_shard_map(jot_fn(same), line, JOT_SPLITS("i", "i"), JOT_SPLITS("i")),
         "2 and 1 splits for the 1 arguments and 1 results of"},
        {jot_shard_map(jot_fn(same), NULL, JOT_SPLITS("i"), JOT_SPLITS("i")), "mesh is NULL"},
        {jot_shard_map(jot_shard_map(jot_fn(same), line, JOT_SPLITS("i"), JOT_SPLITS("i")),
                       eight, JOT_SPLITS(""), JOT_SPLITS("")),
         "another mesh than that of "},
        {jot_shard_map(jot_shard_map(jot_fn(same), line, JOT_SPLITS("i"), JOT_SPLITS("i")),
                       line, JOT_SPLITS(""), JOT_SPLITS("")),
         "an axis i inside of a map over i"},
        {jot_pmap_on(line, jot_fn(same), "i"),
         "8 along the mapped axis, on a mesh of 4 devices and 1 axes: it takes one axis of as "
         "many"},
    };
    jot_array *x[] = {NUMBERS(48, 8, 6)};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        jot_executable *e = jot_jit(wrong[i].f);
        jot_array *y = NULL;
        jot_status s = e ? jot_call_list(e, 1, x, 1, &y) : JOT_ERR_ARGUMENT;
        ck_assert_msg(s != JOT_OK && strstr(jot_error_message(), wrong[i].says), "%zu: %s", i,
                      s == JOT_OK ? "no error" : jot_error_message());
        jot_executable_release(e);
    }
    jot_array_release(x[0]);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_sharded, 0, sizeof rows / sizeof *rows);
    tcase_add_test(t, test_ring);
    tcase_add_test(t, test_gradients);
    tcase_add_test(t, test_mistakes);
}

int main(void)
{
    setenv("FAKE_CUDA_COUNT", "8", 1);
    return run_by_both("trace/sharding", add);
}
