// SPDX-License-Identifier: Apache-2.0
// Functions that several devices run, each a piece of it: against one device, and where pieces are.  They
// are parts of the host, or GPUs where that is the default device.
#include "lanes_support.h"

static int n_devices; // of the mesh "i"

static jot_device_kind kind(void) { return jot_device_kind_of(jot_default_device()); }

static jot_mesh *line(void)
{
    jot_mesh *mesh = jot_mesh_of(kind(), {"i", n_devices});
    ck_assert_msg(mesh != NULL, "%s", jot_error_message());
    return mesh;
}

static jot_value applied(jot_function f, jot_value x)
{
    jot_value y;
    jot_apply(f, 1, &x, 1, &y);
    return y;
}

// ---- Against one device; x: f64[24,3]

static jot_value shifted(jot_value x)
{
    jot_value mean = jot_pmean(jot_sum(x, 0, JOT_KEEPDIMS), "i");
    return jot_add(jot_sub(jot_sin(x), mean), jot_axis_index("i"));
}
static jot_value total(jot_value x) { return jot_psum(jot_sum(jot_square(x)), "i"); }
static jot_value largest(jot_value x) { return jot_pmax(jot_max(x), "i"); }

static jot_function in_pieces(jot_value (*f)(jot_value))
{
    return jot_shard_map(jot_function_plain("piece", "piece", 1, (void (*)(void))f), line(),
                         JOT_SPLITS("i"), JOT_SPLITS("i"));
}
static jot_function summed(jot_value (*f)(jot_value))
{
    return jot_shard_map(jot_function_plain("piece", "piece", 1, (void (*)(void))f), line(),
                         JOT_SPLITS("i"), JOT_SPLITS(""));
}
static jot_value wave(jot_value x) { return jot_cos(x); }
static jot_function columns_in_pieces(void)
{
    return jot_shard_map(jot_fn(wave), line(), JOT_SPLITS(", i"), JOT_SPLITS(", i"));
}
static jot_value columns(jot_value x)
{
    return jot_transpose(applied(columns_in_pieces(), jot_transpose(x)));
}

static jot_value twice(jot_value x)
{
    return applied(in_pieces(shifted), applied(in_pieces(shifted), x));
}
static jot_value mixed(jot_value x)
{
    jot_value y = applied(in_pieces(shifted), x);
    return jot_add(jot_mul(y, applied(summed(total), y)), columns(jot_mul(x, y)));
}
static jot_value between(jot_value x)
{
    return applied(in_pieces(shifted), jot_cumsum(applied(in_pieces(shifted), x), 0));
}
// By elements, with what is the same on all devices.
static jot_value by_elements(jot_value x)
{
    jot_value y = applied(in_pieces(shifted), jot_square(x)), row = jot_arange(JOT_F64, 3);
    y = jot_where(jot_greater(y, row), jot_maximum(jot_neg(y), 0.5), jot_mul(2, x));
    y = applied(columns_in_pieces(), jot_transpose(jot_add(y, jot_mul(row, 0.1))));
    return jot_exp(jot_neg(jot_transpose(y)));
}
static jot_value steps(jot_value x)
{
    JOT_FOR (k, 3, x)
        x = jot_add(x, jot_mul(0.1, applied(in_pieces(shifted), x)));
    return x;
}
// Of what is made of one value the whole is wanted three times.
static jot_value of_one(jot_value x)
{
    jot_value y = applied(in_pieces(shifted), x);
    return jot_add(jot_cumsum(jot_sin(y), 0),
                   jot_add(jot_cumsum(jot_cos(y), 0), jot_cumsum(jot_exp(y), 0)));
}
static jot_value in_a_scan(jot_value x)
{
    jot_value sums;
    JOT_SCAN ((x), (), (sums), .length = 4) {
        x = applied(in_pieces(shifted), jot_mul(0.5, x));
        sums = applied(summed(total), x);
    }
    return jot_mul(x, jot_sum(sums));
}
static jot_value carried(jot_value x)
{
    jot_value all = jot_stack(0, x, jot_neg(x)), rows;
    JOT_FOR (k, 3, x) {
        JOT_SCAN ((x), (all), (rows))
            rows = x = applied(in_pieces(shifted), applied(in_pieces(shifted), x));
        x = applied(in_pieces(shifted), x);
    }
    return x;
}
static jot_value in_a_while(jot_value x)
{
    JOT_WHILE ((x), jot_greater(applied(summed(largest), x), 0.1))
        x = jot_mul(0.5, applied(in_pieces(shifted), x));
    return x;
}
static jot_value in_a_branch(jot_value x)
{
    JOT_IF (jot_greater(jot_sum(x), 0), x) {
        x = applied(in_pieces(shifted), x);
    } else {
        x = jot_neg(x);
    }
    return x;
}
static jot_value of_gradients(jot_value x) { return applied(jot_grad(summed(total)), x); }
static jot_value same(jot_value x) { return x; }
static jot_value lane(jot_value x)
{
    return jot_mul(x, jot_add(1, jot_psum(jot_sum(jot_sin(x)), "i")));
}
static jot_value lane_total(jot_value x)
{
    return jot_sum(applied(jot_pmap(jot_fn(lane), "i"), x));
}
static jot_value of_a_pmap(jot_value x)
{
    jot_value rows = jot_reshape(x, n_devices, 72 / n_devices);
    return jot_reshape(applied(jot_grad(jot_fn(lane_total)), rows), 24, 3);
}
static jot_value mapped(jot_value x)
{
    jot_value y = applied(jot_vmap(in_pieces(shifted)), jot_stack(0, x, jot_mul(2, x)));
    return jot_sum(y, 0);
}
// Lanes of a map that take a branch, or leave a loop, by themselves; all devices do so alike.
static jot_value exchanged(jot_value x)
{
    jot_value own = jot_sum(x, 0), all = jot_all_gather(own, "i");
    jot_value each = jot_add(own, jot_zeros(JOT_F64, n_devices, 1));
    own = jot_add(jot_sum(jot_sin(all), 0), jot_psum_scatter(jot_cos(each), "i"));
    return jot_add(x, jot_add(own, jot_sum(jot_all_to_all(jot_sin(each), "i"), 0)));
}
static jot_value chooses(jot_value x)
{
    JOT_IF (jot_greater(jot_psum(jot_sum(x), "i"), 0), x) {
        x = jot_sin(exchanged(x));
    } else {
        x = jot_mul(x, jot_pmax(jot_max(x), "i"));
    }
    return x;
}
static jot_value shrinks(jot_value x)
{
    JOT_WHILE ((x), jot_greater(jot_psum(jot_sum(jot_square(x)), "i"), 1), .bound = 9)
        x = jot_sub(jot_mul(0.5, x), jot_mul(0.01, jot_pmean(jot_mean(x), "i")));
    return x;
}
static jot_value lanes_total(jot_value x)
{
    jot_value y = jot_stack(0, x, jot_mul(2, x), jot_neg(x));
    y = applied(jot_vmap(in_pieces(shrinks)), applied(jot_vmap(in_pieces(chooses)), y));
    return jot_sum(jot_mul(y, jot_sin(y)));
}
static jot_value by_lanes(jot_value x) { return applied(jot_grad(jot_fn(lanes_total)), x); }
static jot_value scaled(jot_value x) { return jot_mul(3, x); }
static jot_value scaled_rule(jot_value x, jot_value dx)
{
    return jot_add(jot_mul(jot_add(1, jot_axis_index("i")), dx), jot_mul(0, x));
}
static jot_value with_rule(jot_value x)
{
    return total(applied(jot_custom_jvp(jot_fn(scaled), jot_fn(scaled_rule)), x));
}
static jot_value of_a_rule(jot_value x) { return applied(jot_grad(summed(with_rule)), x); }

// Nothing of a mesh is left of these.
static jot_value as_it_is(jot_value x)
{
    return applied(jot_shard_map(jot_fn(same), line(), JOT_SPLITS(""), JOT_SPLITS("")), x);
}
static jot_value not_used(jot_value x)
{
    (void)applied(summed(total), x);
    return jot_sin(x);
}
static jot_value not_run(jot_value x)
{
    JOT_FOR (k, 0, x)
        x = applied(in_pieces(shifted), x);
    return jot_cos(x);
}

static const struct row {
    const char *name;
    jot_value (*f)(jot_value);
} rows[] = {
    {"twice", twice},
    {"mixed", mixed},
    {"between", between},
    {"by elements", by_elements},
    {"steps", steps},
    {"of one", of_one},
    {"in a scan", in_a_scan},
    {"carried", carried},
    {"in a while", in_a_while},
    {"in a branch", in_a_branch},
    {"of gradients", of_gradients},
    {"of a pmap", of_a_pmap},
    {"mapped", mapped},
    {"by lanes", by_lanes},
    {"of a rule", of_a_rule},
    {"as it is", as_it_is},
    {"not used", not_used},
    {"not run", not_run},
};

START_TEST(devices_do_what_one_does)
{
    const struct row *r = &rows[_i];
    must(jot_set_host_devices(8));
    for (n_devices = 1; n_devices <= 8; n_devices++) {
        if (24 % n_devices || n_devices > jot_device_count(kind()))
            continue;
        jot_function f = jot_function_plain(r->name, r->name, 1, (void (*)(void))r->f);
        jot_executable *all = jot_jit(f), *one = jot_jit(f, .device = jot_host());
        jot_array *x = NUMBERS(72, 24, 3), *y = result_of(all, 1, &x),
                  *want = result_of(one, 1, &x);
        ck_assert(!jot_array_mesh(want));
        const double *a = jot_array_data(y), *b = jot_array_data(want);
        ck_assert_int_eq(jot_array_size(y), 72);
        for (int i = 0; i < 72; i++)
            ck_assert_msg(fabs(a[i] - b[i]) <= 1e-13 * (1 + fabs(b[i])),
                          "%s on %d: element %d is %.17g, not %.17g", r->name, n_devices, i,
                          a[i], b[i]);
        jot_executable_release(all), jot_executable_release(one);
        release_all(x, y, want);
    }
}
END_TEST

// ---- Where pieces are

static jot_value square(jot_value x) { return jot_square(x); }

static const void *memory(jot_array *a, size_t device)
{
    jot_array *piece = jot_array_shard_on(a, device);
    const void *at = jot_array_device_data(piece);
    jot_array_release(piece);
    return at;
}

START_TEST(results_stay_where_they_are)
{
    must(jot_set_host_devices(4));
    n_devices = 4;
    jot_executable *f = jot_jit(in_pieces(square), .donate = (const int[]){0, JOT_END});
    jot_executable *sum = jot_jit(summed(total));
    jot_array *x = NUMBERS(72, 24, 3), *y = result_of(f, 1, &x), *z, *s;
    ck_assert_ptr_eq(jot_array_mesh(y), line());
    ck_assert_str_eq(jot_array_spec(y), "i");
    const void *at[4];
    for (size_t d = 0; d < 4; d++)
        at[d] = memory(y, d);
    z = result_of(f, 1, &y);
    for (size_t d = 0; d < 4; d++)
        ck_assert_ptr_eq(memory(z, d), at[d]);
    s = result_of(sum, 1, &z);
    ck_assert_str_eq(jot_array_spec(s), "");
    double want = 0;
    for (int i = 0; i < 72; i++)
        want += pow(((const double *)jot_array_data(x))[i], 8);
    check_numbers(s, 1, &want, 1e-14);
    jot_executable_release(f), jot_executable_release(sum);
    release_all(x, y, z, s);
}
END_TEST

// What one gives and another takes in the same pieces is not put together, nor what is made of it by ops of
// which each device can do its part alone.  x: f64[24,8].
static jot_value rows_of(jot_value x)
{
    return applied(jot_shard_map(jot_fn(wave), line(), JOT_SPLITS("i"), JOT_SPLITS("i")), x);
}
static jot_value columns_of(jot_value x) { return applied(columns_in_pieces(), x); }
static jot_value sum_of_rows(jot_value x) { return rows_of(jot_sum(rows_of(x), 1)); }
static jot_value norms(jot_value x)
{
    jot_value y = rows_of(x), mean = jot_mean(y, 1, JOT_KEEPDIMS);
    return rows_of(jot_div(jot_sub(y, mean), jot_std(y, 1, JOT_KEEPDIMS)));
}
static jot_value turned(jot_value x) { return columns_of(jot_transpose(rows_of(x))); }
static jot_value reshaped(jot_value x)
{
    jot_value y = rows_of(jot_reshape(rows_of(x), 4, 6, 4, 2));
    return rows_of(jot_reshape(jot_transpose(y, 0, 2, 1, 3), 192));
}
static jot_value windows(jot_value x)
{
    jot_value y = rows_of(x);
    y = jot_concatenate(1, jot_slice(y, 1, 1, 6), jot_flip(y, 1));
    return rows_of(jot_pad(y, 0.5, 1, 1, 2));
}
static jot_value ordered(jot_value x)
{
    jot_value y = rows_of(x);
    return rows_of(
        jot_add(jot_add(jot_sort(y), jot_cumsum(y, 1)), jot_convert(jot_argsort(y), JOT_F64)));
}
static jot_value winners(jot_value x)
{
    return rows_of(jot_convert(jot_argmax(rows_of(x), 1), JOT_F64));
}
static jot_value products(jot_value x)
{
    jot_value y = rows_of(x), w = jot_reshape(jot_sin(jot_arange(JOT_F64, 40)), 8, 5);
    return rows_of(jot_einsum("nk,ni,kj->nij", y, y, w));
}
static jot_value transforms(jot_value x) { return rows_of(jot_abs(jot_fft(rows_of(x)))); }
static jot_value factors(jot_value x)
{
    jot_value y = jot_reshape(rows_of(x), 24, 2, 4);
    y = jot_add(jot_einsum("nij,nkj->nik", y, y), jot_eye(JOT_F64, 2, 2));
    return rows_of(jot_cholesky(y));
}
static jot_value coordinates(jot_value x)
{
    jot_value y = rows_of(x), first = jot_slice(jot_argsort(y), 1, 0, 3);
    jot_value table = jot_square(jot_arange(JOT_F64, 8));
    return rows_of(jot_add(jot_take_along_axis(y, first, 1), jot_take(table, first, 0)));
}
static jot_value images(jot_value x)
{
    jot_value w = jot_reshape(jot_cos(jot_arange(JOT_F64, 18)), 2, 1, 3, 3);
    return rows_of(
        jot_conv(jot_reshape(rows_of(x), 24, 1, 4, 2), w, JOT_DIMS(1, 1), JOT_PADDING_SAME));
}
static jot_value counted(jot_value x)
{
    return jot_add(rows_of(x), jot_sum(jot_greater(rows_of(x), 0.5), 0));
}
static jot_value extremes(jot_value x)
{
    jot_value y = rows_of(x), some = jot_any(jot_less(y, -0.9), 0);
    return jot_where(some, jot_sub(y, jot_max(y, 0)), jot_min(y, 0));
}
// Where an op mixes the axis that splits its operand, another one splits it there.
static jot_value down_columns(jot_value x) { return rows_of(jot_cumsum(rows_of(x), 0)); }
static jot_value sum_of_columns(jot_value x) { return rows_of(jot_sum(rows_of(x), 0)); }
// Loops and branches without a shard_map.
static jot_value steps_between(jot_value x)
{
    jot_value y = rows_of(x), z = jot_zeros(JOT_F64, 24), all;
    JOT_FOR (k, 3, y)
        y = jot_tanh(jot_add(y, jot_mul(0.1, jot_mean(y, 1, JOT_KEEPDIMS))));
    jot_value columns = jot_transpose(y);
    JOT_SCAN ((z), (columns), (all))
        all = z = jot_sin(jot_add(jot_mul(z, 0.5), columns));
    return rows_of(jot_add(jot_transpose(all), jot_expand_dims(z, 1)));
}
static jot_value chosen_between(jot_value x)
{
    jot_value y = rows_of(x);
    JOT_IF (jot_greater(jot_max(y), 0.5), y) {
        y = jot_sort(y);
    } else {
        y = jot_cumsum(y, 1);
    }
    return rows_of(y);
}
static jot_value down_in_a_loop(jot_value x)
{
    jot_value y = rows_of(x);
    JOT_FOR (k, 3, y)
        y = jot_cumsum(jot_sin(y), 0);
    return rows_of(y);
}
static jot_value mixes_in_a_loop(jot_value x)
{
    jot_value y = rows_of(x);
    JOT_FOR (k, 3, y)
        y = jot_sub(jot_mul(0.1, jot_cumsum(jot_cumsum(y, 0), 1)), y);
    return rows_of(y);
}
static jot_value both_ways(jot_value x) { return columns_of(rows_of(x)); }

static const struct gathers {
    jot_value (*f)(jot_value);
    int count;        // of exchanges
    const char *text; // of the schedule
    bool
        differs; // from one device, in bits: it has sums over devices, or a library may do them
} gathers[] = {
    {twice, 2, "all_reduce sum of 64 bytes over 4 devices", true},
    {carried, 3, "all_reduce", true},
    {in_a_while, 2, "all_reduce", true},
    {steps, 1, "all_reduce", true},
    {between, 4, "all_to_all of 384 bytes over 4 devices", true},
    {of_one, 2, "all_to_all of 384 bytes", true},
    {sum_of_rows, 0, NULL, false},
    {norms, 0, NULL, false},
    {turned, 0, NULL, false},
    {reshaped, 0, NULL, false},
    {windows, 0, NULL, false},
    {ordered, 0, NULL, false},
    {winners, 0, NULL, false},
    {products, 0, NULL, false},
    {transforms, 0, NULL, true},
    {factors, 0, NULL, true},
    {coordinates, 0, NULL, false},
    {images, 0, NULL, true},
    {counted, 1, "all_reduce sum of 32 bytes", false},
    {extremes, 3, "all_reduce max of 8 bytes", false},
    {down_columns, 2, "all_to_all of 384 bytes", false},
    {sum_of_columns, 1, "all_to_all of 384 bytes", false},
    {steps_between, 0, NULL, false},
    {chosen_between, 1, "all_reduce max of 8 bytes", false},
    {down_in_a_loop, 2, "all_to_all of 384 bytes", false},
    {mixes_in_a_loop, 1, "all_gather of 384 bytes", false},
    {both_ways, 1, "all_to_all of 384 bytes", false},
};

START_TEST(pieces_are_put_together_where_all_is_wanted)
{
    const struct gathers *r = &gathers[_i];
    must(jot_set_host_devices(4));
    n_devices = 4;
    jot_function f = jot_function_plain("f", "f", 1, (void (*)(void))r->f);
    jot_executable *all = jot_jit(f), *one = jot_jit(f, .device = jot_host());
    jot_array *x = NUMBERS(192, 24, 8), *y = result_of(all, 1, &x),
              *want = result_of(one, 1, &x);
    const char *text = jot_executable_text(all, "schedule");
    int count = 0;
    for (const char *at = text; (at = strstr(at, " collective ")); at++)
        count += at[12] != '"';
    ck_assert_msg(count == r->count && (!r->text || strstr(text, r->text)),
                  "%d exchanges:\n%.2000s", count, text);
    check_numbers(y, (int)jot_array_size(want), jot_array_data(want), r->differs ? 1e-13 : 0);
    jot_executable_release(all), jot_executable_release(one);
    release_all(x, y, want);
}
END_TEST

static jot_array *captured;
static jot_value with_captured(jot_value x) { return jot_add(x, jot_from(captured)); }

START_TEST(what_is_captured_is_whole)
{
    must(jot_set_host_devices(4));
    n_devices = 4;
    captured = NUMBERS(3, 3);
    jot_executable *f = jot_jit(in_pieces(with_captured));
    jot_array *x = NUMBERS(72, 24, 3), *y = result_of(f, 1, &x), *z = result_of(f, 1, &y);
    const double *a = jot_array_data(x), *c = jot_array_data(captured), *b = jot_array_data(z);
    for (int i = 0; i < 72; i++)
        ck_assert_double_eq_tol(b[i], a[i] + c[i % 3] + c[i % 3], 1e-15);
    jot_executable_release(f);
    release_all(x, y, z, captured);
}
END_TEST

START_TEST(scopes_run_on_meshes)
{
    must(jot_set_host_devices(4));
    n_devices = jot_device_count(kind()) < 4 ? jot_device_count(kind()) : 4;
    jot_array *x = NUMBERS(72, 24, 3), *y, *want = NULL;
    jot_scope *s = jot_scope_open();
    must(jot_eval(applied(in_pieces(square), jot_from(x)), &y));
    jot_scope_close(s);
    ck_assert_msg(jot_array_mesh(y) == line(), "it is whole");
    jot_executable *f = jot_jit(jot_fn(square));
    want = result_of(f, 1, &x);
    check_numbers(y, 72, jot_array_data(want), 0);
    jot_executable_release(f);
    release_all(x, y, want);
}
END_TEST

START_TEST(meshes_have_devices)
{
    must(jot_set_host_devices(2));
    jot_array *x = NUMBERS(72, 24, 3), *y = NULL;
    jot_executable *f = jot_jit(jot_pmap(jot_fn(square), "i"));
    ck_assert(jot_call(f, JOT_IN(x), JOT_OUT(y)) != JOT_OK);
    ck_assert_msg(strstr(jot_error_message(), "24") && strstr(jot_error_message(), "2"), "%s",
                  jot_error_message());
    jot_executable_release(f);
    jot_array_release(x);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, devices_do_what_one_does, 0, sizeof rows / sizeof *rows);
    tcase_add_test(t, results_stay_where_they_are);
    tcase_add_loop_test(t, pieces_are_put_together_where_all_is_wanted, 0,
                        sizeof gathers / sizeof *gathers);
    tcase_add_test(t, what_is_captured_is_whole);
    tcase_add_test(t, scopes_run_on_meshes);
    tcase_add_test(t, meshes_have_devices);
}

int main(void)
{
    setenv("FAKE_CUDA_COUNT", "8", 1);
    return run_suite("trace/partition", add);
}
