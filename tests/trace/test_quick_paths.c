// SPDX-License-Identifier: Apache-2.0
// Where a GPU has a quick way for most numbers and another one for the rest: sizes that a root tells
// of, the arm of a select that few take; and where it writes a long body once.  The bits are
// those of the host.
#include "trace_support.h"

#include <math.h>

enum { BODIES = 70, NORMALS = 1 << 14 };

static jot_value energy(jot_value p)
{
    jot_value d = jot_sub(jot_expand_dims(p, 1), jot_expand_dims(p, 0));
    jot_value square = jot_add(jot_sum(jot_mul(d, d), -1), 0.01);
    return jot_sum(jot_div(1.0, jot_sqrt(square)));
}

// Roots, powers and quotients of the squares of distances, beside sums that 0 annihilates.
static jot_function forces(void) { return jot_grad(jot_fn(energy)); }

// The numbers of a tail are one in 300.
static jot_value normals_of(jot_value p)
{
    jot_value key =
        jot_random_key(jot_convert(jot_take(jot_reshape(p, 3 * BODIES), 0), JOT_I32));
    return jot_random_normal(key, JOT_F32, NORMALS);
}

static jot_function normals(void) { return jot_fn(normals_of); }

// Arms of both sides with a root, one in the other.
static jot_value bent(jot_value p)
{
    jot_value x = jot_reshape(p, 3 * BODIES), y = jot_sqrt(jot_add(jot_abs(x), 1.0)), z = y;
    for (int i = 0; i < 12; i++)
        z = jot_add(jot_mul(z, 0.25), 0.5);
    jot_value low = jot_where(jot_greater(x, 2.0), z, jot_sin(x));
    jot_value w = jot_sqrt(jot_add(jot_mul(low, low), 3.0));
    for (int i = 0; i < 12; i++)
        w = jot_sub(jot_mul(w, 0.5), low);
    return jot_where(jot_less(x, 1.0), jot_mul(x, 3.0), w);
}

static jot_function bends(void) { return jot_fn(bent); }

// A long body of several folds of rows that end inside of a window.
static jot_value dear(jot_value p)
{
    jot_value rows = jot_expand_dims(jot_arange(JOT_F32, 3), 1);
    jot_value x = jot_add(jot_tile(jot_reshape(p, 3 * BODIES), 25), rows);
    for (int i = 0; i < 12; i++)
        x = jot_add(jot_mul(jot_sin(x), jot_cos(x)), jot_sqrt(jot_abs(x)));
    jot_value first = jot_convert(jot_argmax(x, -1), JOT_F32);
    return jot_stack(0, jot_sum(x, -1), jot_max(x, -1), first);
}

static jot_function dears(void) { return jot_fn(dear); }

static jot_function (*const programs[])(void) = {forces, normals, bends, dears};

static jot_array *result_of(jot_function f, jot_device *device, jot_array *in)
{
    jot_executable *e = jot_jit(f, .device = device);
    ck_assert_msg(e != NULL, "%s", jot_error_message());
    struct {
        jot_array *y;
    } out;
    must(jot_call(e, JOT_IN(in), JOT_OUT(out)));
    jot_executable_release(e);
    return out.y;
}

// Distances that are 0, too large for a square, and at the ends of what is quick.
START_TEST(test_bits_of_host)
{
    float x[BODIES][3];
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 3; k++)
            x[i][k] = (float)((i * 37 + k * 11) % 64) / 8;
    x[1][0] = 1e9F, x[2][1] = -2e20F, x[3][2] = 0x1p30F, x[BODIES - 1][0] = 3e18F;
    jot_array *in = jot_array_from(&x[0][0], BODIES, 3);
    jot_array *a = result_of(programs[_i](), jot_host(), in);
    jot_array *b = result_of(programs[_i](), NULL, in);
    const float *want = jot_array_data(a), *have = jot_array_data(b);
    for (size_t i = 0; i < jot_array_size(a); i++)
        ck_assert_msg(memcmp(&want[i], &have[i], sizeof *want) == 0 ||
                          (isnan(want[i]) && isnan(have[i])),
                      "element %zu: %a, not %a", i, have[i], want[i]);
    jot_arrays_release(3, (jot_array *[]){in, a, b});
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, test_bits_of_host, 0, (int)(sizeof programs / sizeof *programs));
}

int main(void) { return run_suite("quick paths", add_tests); }
