// SPDX-License-Identifier: Apache-2.0
// Loops whose steps are coupled: nanoseconds a step, beside the phases that a step has.
//
//     build/bench/loops [name]
#include "measure.h"

#include <string.h>

enum { STEPS = 2000, ROUNDS = 15, INPUTS = 16 };

// A recurrent cell over rows of inputs.
static jot_value cell(jot_value h, jot_value w, jot_value u, jot_value x, jot_value b)
{
    JOT_SCAN ((h), (x), ())
        h = jot_tanh(jot_add(jot_add(jot_matmul(w, h), jot_matmul(u, x)), b));
    return h;
}

// The vector that a matrix stretches most, as long as it moves; it does, to the last step.
static jot_value power_iteration(jot_value v, jot_value a)
{
    jot_value moved = jot_from(1.0), k = jot_from(0);
    JOT_WHILE ((v, moved, k), jot_logical_and(jot_greater(moved, -1), jot_less(k, STEPS))) {
        jot_value w = jot_matmul(a, v);
        w = jot_div(w, jot_sqrt(jot_sum(jot_square(w))));
        moved = jot_max(jot_abs(jot_sub(w, v)));
        v = w;
        k = jot_add(k, 1);
    }
    return v;
}

static jot_value force(jot_value x)
{
    jot_value d = jot_sub(jot_expand_dims(x, 0), jot_expand_dims(x, 1));
    jot_value r = jot_add(jot_sum(jot_square(d), -1), 0.01);
    return jot_sum(jot_div(d, jot_expand_dims(jot_mul(r, jot_sqrt(r)), -1)), 1);
}

static jot_value bodies(jot_value x, jot_value v)
{
    JOT_FOR (i, STEPS, x, v) {
        v = jot_add(v, jot_mul(1e-4, force(x)));
        x = jot_add(x, jot_mul(1e-4, v));
    }
    return x;
}

static jot_value heat(jot_value u)
{
    JOT_FOR (i, STEPS, u)
        u = jot_add(u, jot_mul(0.1, jot_sub(jot_add(jot_roll(u, 1, 0), jot_roll(u, -1, 0)),
                                            jot_mul(2, u))));
    return u;
}

// Oscillators that are pulled by the mean of all.
static jot_value oscillators(jot_value p, jot_value w)
{
    JOT_FOR (i, STEPS, p) {
        jot_value s = jot_mean(jot_sin(p)), c = jot_mean(jot_cos(p));
        jot_value pull = jot_sub(jot_mul(s, jot_cos(p)), jot_mul(c, jot_sin(p)));
        p = jot_add(p, jot_mul(0.01, jot_add(w, pull)));
    }
    return p;
}

// A square root of a matrix by Newton's method, without an end.
static jot_value orthogonal(jot_value x)
{
    JOT_FOR (i, STEPS, x)
        x = jot_mul(0.5, jot_matmul(x, jot_sub(jot_mul(3, jot_eye(JOT_F32, 16, 16)),
                                               jot_matmul(jot_transpose(x), x))));
    return x;
}

#define FUNCTION(name)                                                                         \
    static jot_function name##_fn(void) { return jot_fn(name); }
FUNCTION(cell)
FUNCTION(power_iteration)
FUNCTION(bodies)
FUNCTION(heat)
FUNCTION(oscillators)
FUNCTION(orthogonal)

#define CELL(h)                                                                                \
    {                                                                                          \
        "rnn " #h, cell_fn, 5,                                                                 \
        {                                                                                      \
            {h}, {h, h}, {h, INPUTS}, {STEPS, INPUTS}, { h }                                   \
        }                                                                                      \
    }

static const struct row {
    const char *name;
    jot_function (*function)(void);
    int n_in;
    int dims[5][2]; // of the inputs; 0 for no axis
} rows[] = {
    CELL(16),
    CELL(64),
    CELL(256),
    {"power iteration 16", power_iteration_fn, 2, {{16}, {16, 16}}},
    {"power iteration 64", power_iteration_fn, 2, {{64}, {64, 64}}},
    {"bodies 16", bodies_fn, 2, {{16, 3}, {16, 3}}},
    {"heat 64", heat_fn, 1, {{64}}},
    {"heat 4096", heat_fn, 1, {{4096}}},
    {"heat 65536", heat_fn, 1, {{65536}}},
    {"oscillators 64", oscillators_fn, 2, {{64}, {64}}},
    {"matrix 16", orthogonal_fn, 1, {{16, 16}}},
};

static jot_array *make_input(const int dims[2], int seed)
{
    size_t n = (size_t)dims[0] * (size_t)(dims[1] ? dims[1] : 1);
    float *x = malloc(n * sizeof *x);
    jot_array *a;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((i * 7919 + (size_t)seed * 104729) % 1009) / 1009 * 0.2f - 0.1f;
    a = dims[1] ? jot_array_from(x, dims[0], dims[1]) : jot_array_from(x, dims[0]);
    free(x);
    return a;
}

static double time_row(const struct row *r)
{
    jot_executable *f = jot_jit(r->function());
    jot_array *in[5], *out;
    double least = 1e9;
    for (int i = 0; i < r->n_in; i++)
        in[i] = make_input(r->dims[i], i);
    for (int i = 0; i <= ROUNDS; i++) {
        double start = seconds();
        must(jot_call_list(f, r->n_in, in, 1, &out));
        double time = seconds() - start;
        least = i && time < least ? time : least;
        jot_array_release(out);
    }
    jot_arrays_release(r->n_in, in);
    jot_executable_release(f);
    return 1e9 * least / STEPS;
}

int main(int argc, char **argv)
{
    printf("%-24s %12s\n", "loop", "ns a step");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (argc < 2 || strstr(rows[i].name, argv[1]))
            printf("%-24s %12.1f\n", rows[i].name, time_row(&rows[i]));
    return 0;
}
