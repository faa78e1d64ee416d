// SPDX-License-Identifier: Apache-2.0
// Model predictive control: a cart is pushed to rest at 0, by forces of 1 at most.  Each step solves a
// quadratic program for the forces of the next second and a half and applies the first one; the closed
// loop is one compiled function, and its cost has a derivative in the price of force.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { AHEAD = 15, STEPS = 80 };
static const double DT = 0.1;

struct cart {
    jot_value x, v;
};

static struct cart pushed(struct cart c, jot_value force)
{
    jot_value v = jot_add(c.v, jot_mul(DT, force));
    return (struct cart){jot_add(c.x, jot_mul(DT, v)), v};
}

// Where the cart is, and how fast, in the steps ahead with these forces: linear in all of them.
static jot_value predicted(jot_value state, jot_value forces)
{
    struct cart c = {jot_take(state, 0), jot_take(state, 1)};
    jot_value x, v;
    JOT_SCAN ((c), (forces), (x, v)) {
        c = pushed(c, forces);
        x = c.x, v = c.v;
    }
    return jot_concatenate(0, x, v);
}

// The force for which the squares of positions, speeds and forces ahead cost least.
static jot_value best_force(struct cart c, jot_value price)
{
    jot_value none = jot_zeros(JOT_F64, AHEAD), state = jot_stack(0, c.x, c.v), free, by_force;
    jot_function map = jot_fn(predicted);
    jot_apply(map, 2, ((jot_value[]){state, none}), 1, &free);
    jot_apply(jot_jacfwd(map, 1), 2, ((jot_value[]){state, none}), 1, &by_force);
    jot_value eye = jot_eye(JOT_F64, AHEAD, AHEAD), t = jot_transpose(by_force);
    jot_value p = jot_add(jot_dot(t, by_force), jot_mul(price, eye)), q = jot_dot(t, free);
    jot_value most = jot_ones(JOT_F64, AHEAD);
    return jot_take(jot_quadratic_program(p, q, eye, jot_neg(most), most).x, 0);
}

struct run {
    jot_value cost, x, force; // x and force in each step
};

static struct run closed_loop(jot_value start, jot_value price)
{
    struct cart c = {start, jot_zeros(JOT_F64)};
    struct run run = {.cost = jot_zeros(JOT_F64)};
    JOT_SCAN ((c, run.cost), (), (run.x, run.force), .length = STEPS) {
        run.force = best_force(c, price);
        c = pushed(c, run.force);
        jot_value squares = jot_add(jot_square(c.x), jot_square(c.v));
        run.cost = jot_add(run.cost, squares);
        run.x = c.x;
    }
    return run;
}

static jot_value cost(jot_value start, jot_value price)
{
    return closed_loop(start, price).cost;
}

JOT_FUNCTION(loop_fn, closed_loop, struct run, jot_value, jot_value);

static double number(jot_executable *f, double start, double price)
{
    jot_array *in[] = {jot_array_from(&start), jot_array_from(&price)}, *out = NULL;
    if (jot_call(f, JOT_IN(in), JOT_OUT(out)) != JOT_OK)
        fprintf(stderr, "%s\n", jot_error_message());
    double y = out ? jot_array_item(out) : NAN;
    jot_arrays_release(JOT_OUT(in)), jot_array_release(out);
    return y;
}

int main(void)
{
    double start = 2, price = 0.1, x[STEPS], force[STEPS], most = 0;
    jot_array *in[] = {jot_array_from(&start), jot_array_from(&price)}, *out[3];
    jot_executable *loop = jot_jit(loop_fn), *value = jot_jit(jot_fn(cost));
    jot_executable *slope = jot_jit(jot_grad(jot_fn(cost), 1));
    if (jot_call(loop, JOT_IN(in), JOT_OUT(out)) != JOT_OK ||
        jot_array_read(out[1], x, STEPS) != JOT_OK ||
        jot_array_read(out[2], force, STEPS) != JOT_OK)
        return fprintf(stderr, "%s\n", jot_error_message()), 1;
    for (int i = 0; i < STEPS; i++) {
        if (i % 10 == 0)
            printf("t %.1f  x %8.5f  force %8.5f\n", DT * i, x[i], force[i]);
        most = fmax(most, fabs(force[i]));
    }
    double h = 1e-4, exact = number(slope, start, price);
    double rise = number(value, start, price + h) - number(value, start, price - h);
    printf("d cost / d price %.6f, by differences %.6f\n", exact, rise / (2 * h));
    jot_arrays_release(JOT_OUT(in)), jot_arrays_release(JOT_OUT(out));
    jot_executable_release(loop), jot_executable_release(value), jot_executable_release(slope);
    return fabs(x[STEPS - 1]) < 1e-2 && most > 0.999 && most < 1 + 1e-9 &&
                   fabs(rise / (2 * h) - exact) < 1e-4 * (1 + fabs(exact))
               ? 0
               : 1;
}
