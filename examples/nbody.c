// SPDX-License-Identifier: Apache-2.0
// Three bodies on the orbit that looks like an 8, by the leapfrog method: forces are gradients of
// the potential energy, and what is conserved is watched.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { BODIES = 3, STEPS = 10000 };
static const double PERIOD = 6.32591398, DT = 6.32591398 / STEPS;

// -sum 1 / |x_i - x_j| over pairs, for masses of 1 and a constant of gravity of 1.
static jot_value potential(jot_value x)
{
    jot_value self = jot_eye(JOT_F64, BODIES, BODIES);
    jot_value d = jot_sub(jot_expand_dims(x, 1), jot_expand_dims(x, 0));
    jot_value r = jot_sqrt(jot_add(self, jot_sum(jot_square(d), -1)));
    return jot_mul(-0.5, jot_sum(jot_div(jot_sub(1, self), r)));
}

static jot_value force(jot_value x) { return jot_neg(JOT_GRAD(potential, x)); }

struct orbit {
    jot_value x, v, energy; // at the end; the energy after each step
};

static struct orbit orbit(jot_value x, jot_value v)
{
    jot_value energy;
    JOT_SCAN ((x, v), (), (energy), .length = STEPS) {
        v = jot_add(v, jot_mul(DT / 2, force(x)));
        x = jot_add(x, jot_mul(DT, v));
        v = jot_add(v, jot_mul(DT / 2, force(x)));
        energy = jot_add(potential(x), jot_mul(0.5, jot_sum(jot_square(v))));
    }
    return (struct orbit){x, v, energy};
}

JOT_FUNCTION(orbit_fn, orbit, struct orbit, jot_value, jot_value);

int main(void)
{
    // Found by Moore, improved by Simo; Chenciner and Montgomery, Annals of Mathematics 152 (2000).
    const double start[] = {0.97000436, -0.24308753, -0.97000436, 0.24308753, 0, 0};
    const double speed[] = {0.466203685, 0.43236573,  0.466203685,
                            0.43236573,  -0.93240737, -0.86473146};
    double end[BODIES * 2], energy[STEPS], drift = 0, gap = 0;
    jot_executable *f = jot_jit(orbit_fn);
    jot_array *x = jot_array_from(start, BODIES, 2), *v = jot_array_from(speed, BODIES, 2);
    jot_array *out[3];
    if (jot_call(f, JOT_IN(x, v), JOT_OUT(out)) != JOT_OK ||
        jot_array_read(out[0], end, BODIES * 2) != JOT_OK ||
        jot_array_read(out[2], energy, STEPS) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    for (int i = 0; i < STEPS; i++)
        drift = fmax(drift, fabs(energy[i] / energy[0] - 1));
    for (int i = 0; i < BODIES * 2; i++)
        gap = fmax(gap, fabs(end[i] - start[i]));
    printf("after one period of %.4f: energy %.9f, its drift %.1e, bodies off by %.1e\n",
           PERIOD, energy[STEPS - 1], drift, gap);
    jot_arrays_release(JOT_OUT(out));
    jot_array_release(x), jot_array_release(v);
    jot_executable_release(f);
    return drift < 1e-6 && gap < 1e-5 && fabs(energy[0] + 1.287146) < 1e-5 ? 0 : 1;
}
