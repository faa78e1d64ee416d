// SPDX-License-Identifier: Apache-2.0
// A parabola through points (t, b) by least squares, with a = q r and r x = q^T b, and how far its value at
// a place s moves with each point: the gradient through the decomposition.  In closed form, with
// v = (1, s, s^2), y = (a^T a)^-1 v and the residuals e = b - a x,
//     d value / d b_i = y . a_i    and    d value / d t_i = e_i y . a_i' - (y . a_i) (a_i' . x).
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { POINTS = 8, TERMS = 3 };

// The columns 1, t, t^2.
static jot_value powers(jot_value t)
{
    return jot_stack(-1, jot_ones_like(t), t, jot_square(t));
}

static jot_value value_at(jot_value t, jot_value b, jot_value s)
{
    jot_qr_factors f = jot_qr(powers(t));
    jot_value x = jot_solve_triangular(f.r, jot_matmul(jot_transpose(f.q), b));
    return jot_dot(powers(s), x);
}

static double dot(const double *x, const double *y)
{
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2];
}

// The solution of (a^T a) x = v by elimination.
static void solve_normal(double a[POINTS][TERMS], const double *v, double *x)
{
    double m[TERMS][TERMS + 1] = {{0}};
    for (int r = 0; r < TERMS; r++) {
        for (int i = 0; i < POINTS; i++)
            for (int c = 0; c < TERMS; c++)
                m[r][c] += a[i][r] * a[i][c];
        m[r][TERMS] = v[r];
    }
    for (int k = 0; k < TERMS; k++)
        for (int r = 0; r < TERMS; r++)
            for (int c = TERMS; c >= k && r != k; c--)
                m[r][c] -= m[r][k] / m[k][k] * m[k][c];
    for (int k = 0; k < TERMS; k++)
        x[k] = m[k][TERMS] / m[k][k];
}

int main(void)
{
    const double t[POINTS] = {-2, -1.4, -0.9, -0.2, 0.3, 1.1, 1.6, 2.2};
    const double b[POINTS] = {4.9, 3.1, 1.2, 1.1, 0.6, 1.4, 2.8, 4.4};
    const double place = 0.5;
    jot_executable *e = jot_jit(jot_value_and_grad(jot_fn(value_at), 0, 1));
    jot_array *in[] = {jot_array_from(t, POINTS), jot_array_from(b, POINTS),
                       jot_array_from(&place)};
    jot_array *out[3];
    double value, dt[POINTS], db[POINTS];
    if (jot_call(e, JOT_IN(in[0], in[1], in[2]), JOT_OUT(out)) != JOT_OK ||
        jot_array_read(out[0], &value, 1) != JOT_OK ||
        jot_array_read(out[1], dt, POINTS) != JOT_OK ||
        jot_array_read(out[2], db, POINTS) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    double a[POINTS][TERMS], atb[TERMS] = {0}, v[] = {1, place, place * place};
    double x[TERMS], y[TERMS];
    for (int i = 0; i < POINTS; i++)
        for (int k = 0; k < TERMS; k++) {
            a[i][k] = pow(t[i], k);
            atb[k] += a[i][k] * b[i];
        }
    solve_normal(a, atb, x);
    solve_normal(a, v, y);
    double worst = fabs(value - dot(v, x));
    printf("value at %.1f: %.10f, exact %.10f\n", place, value, dot(v, x));
    for (int i = 0; i < POINTS; i++) {
        const double slope[] = {0, 1, 2 * t[i]};
        double left = b[i] - dot(a[i], x);
        double exact = left * dot(y, slope) - dot(y, a[i]) * dot(slope, x);
        printf("t %4.1f  d/dt %13.10f, exact %13.10f   d/db %13.10f, exact %13.10f\n", t[i],
               dt[i], exact, db[i], dot(y, a[i]));
        worst = fmax(worst, fmax(fabs(dt[i] - exact), fabs(db[i] - dot(y, a[i]))));
    }
    jot_arrays_release(JOT_OUT(out));
    jot_arrays_release(JOT_OUT(in));
    jot_executable_release(e);
    return worst < 1e-10 ? 0 : 1;
}
