// SPDX-License-Identifier: Apache-2.0
// Loops over time by threads of a GPU: two chains of a thread, steps of which a part is the same in
// all threads, a way back that computes its tape again.  The bits are those of the host.
#include "trace_support.h"

enum { CHAINS = 132 * 4096 + 2, POINTS = 300, LANES = 45000 };

struct pair {
    jot_value x, y;
};

static jot_value turned(jot_value x)
{
    jot_value y = jot_mul(x, 0.5);
    JOT_FOR (i, 8, x, y) {
        jot_value t = jot_sub(x, jot_mul(y, 0.1));
        y = jot_add(y, jot_mul(x, 0.1));
        x = t;
    }
    return jot_add(x, y);
}

// The key does not differ from point to point; what is returned of it is its last value.
static struct pair walked(jot_value x)
{
    jot_value key = jot_random_key(7), count = jot_from(0.0);
    JOT_FOR (i, 140, key, x, count) {
        jot_value keys = jot_random_split(key, 2);
        jot_value step = jot_random_normal(jot_take(keys, 1), JOT_F32, jot_value_dim(x, 0));
        key = jot_take(keys, 0);
        count = jot_add(count, 1);
        x = jot_add(x, jot_mul(jot_div(step, count), 0.1));
    }
    return (struct pair){x, key};
}

JOT_FUNCTION(walked_fn, walked, struct pair, jot_value);

// The same forms with carries of two numbers.
static jot_value turned_complex(jot_value x)
{
    jot_value z = jot_complex(x, jot_mul(x, 0.5));
    JOT_FOR (i, 8, z) {
        z = jot_mul(z, jot_complex(jot_from(0.9), jot_from(0.1)));
    }
    return jot_add(jot_real(z), jot_imag(z));
}

static jot_value walked_complex(jot_value x)
{
    jot_value key = jot_random_key(7), z = jot_complex(x, jot_mul(x, 0.5));
    JOT_FOR (i, 140, key, z) {
        jot_value keys = jot_random_split(key, 2);
        jot_value step = jot_random_normal(jot_take(keys, 1), JOT_F32, jot_value_dim(x, 0));
        key = jot_take(keys, 0);
        z = jot_mul(z, jot_complex(jot_mul(step, 0.1), jot_from(0.9)));
    }
    return jot_add(jot_real(z), jot_imag(z));
}

static jot_value swung_complex(jot_value k)
{
    jot_value x = jot_from(1.0), v = jot_from(0.0), z = jot_complex(k, jot_from(0.5));
    JOT_FOR (i, 100, x, v, z) {
        v = jot_sub(v, jot_mul(jot_mul(k, x), 0.1));
        x = jot_add(x, jot_mul(v, jot_cos(jot_mul(x, 0.1))));
        z = jot_mul(z, jot_complex(jot_from(0.99), jot_from(0.1)));
    }
    return jot_add(jot_square(x), jot_mul(jot_real(z), jot_imag(z)));
}

// Carries of a half type, of i64 and of bool beside one another.
static jot_value turned_mixed(jot_value x)
{
    jot_value z = jot_astype(x, JOT_F16), k = jot_astype(x, JOT_I64), u = jot_greater(x, 0.5);
    JOT_FOR (i, 8, z, k, u) {
        z = jot_mul(z, jot_astype(jot_where(u, 0.9, 0.7), JOT_F16));
        k = jot_add(jot_mul(k, 3), 1);
        u = jot_logical_not(u);
    }
    return jot_add(jot_astype(z, JOT_F32), jot_astype(jot_rem(k, 1000), JOT_F32));
}

static jot_value swung(jot_value k)
{
    jot_value x = jot_from(1.0), v = jot_from(0.0);
    JOT_FOR (i, 100, x, v) {
        v = jot_sub(v, jot_mul(jot_mul(k, x), 0.1));
        x = jot_add(x, jot_mul(v, jot_cos(jot_mul(x, 0.1))));
    }
    return jot_square(x);
}

static jot_function swung_back(void) { return jot_vmap(jot_grad(jot_fn(swung))); }

static jot_function swung_complex_back(void)
{
    return jot_vmap(jot_grad(jot_fn(swung_complex)));
}

static jot_function turned_fn(void) { return jot_fn(turned); }

static jot_function turned_complex_fn(void) { return jot_fn(turned_complex); }

static jot_function turned_mixed_fn(void) { return jot_fn(turned_mixed); }

static jot_function walked_complex_fn(void) { return jot_fn(walked_complex); }

static jot_function walked_all(void) { return walked_fn; }

static const struct program {
    jot_function (*make)(void);
    int lanes, results;
} programs[] = {{turned_fn, CHAINS, 1},        {walked_all, POINTS, 2},
                {swung_back, LANES, 1},        {turned_complex_fn, CHAINS, 1},
                {turned_mixed_fn, CHAINS, 1},  {walked_complex_fn, POINTS, 1},
                {swung_complex_back, LANES, 1}};

static void run(const struct program *p, jot_device *device, jot_array *x, jot_array *out[2])
{
    jot_executable *f = jot_jit(p->make(), .device = device);
    ck_assert_msg(f != NULL, "%s", jot_error_message());
    struct {
        jot_array *one;
    } first;
    struct {
        jot_array *all[2];
    } both;
    must(p->results == 2 ? jot_call(f, JOT_IN(x), JOT_OUT(both))
                         : jot_call(f, JOT_IN(x), JOT_OUT(first)));
    out[0] = p->results == 2 ? both.all[0] : first.one;
    out[1] = p->results == 2 ? both.all[1] : NULL;
    jot_executable_release(f);
}

START_TEST(test_bits_of_host)
{
    const struct program *p = &programs[_i];
    float *x = malloc((size_t)p->lanes * sizeof *x);
    for (int i = 0; i < p->lanes; i++)
        x[i] = 0.1f + (float)(i % 1000) / 1000;
    jot_array *in = jot_array_from(x, p->lanes), *a[2], *b[2];
    run(p, jot_host(), in, a);
    run(p, NULL, in, b);
    for (int k = 0; k < p->results; k++) {
        size_t n = jot_array_size(a[k]);
        const uint32_t *want = jot_array_data(a[k]), *have = jot_array_data(b[k]);
        for (size_t i = 0; i < n; i++)
            ck_assert_msg(want[i] == have[i], "result %d, element %zu: %#x, not %#x", k, i,
                          have[i], want[i]);
        jot_array_release(a[k]), jot_array_release(b[k]);
    }
    jot_array_release(in);
    free(x);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, test_bits_of_host, 0, (int)(sizeof programs / sizeof *programs));
}

int main(void) { return run_suite("steps", add_tests); }
