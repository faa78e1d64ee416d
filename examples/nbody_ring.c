// SPDX-License-Identifier: Apache-2.0
// Bodies that attract each other, some on each device.  To see all of them, each device hands those it
// has seen last on to the next one, until they have gone around the ring.
//
//     JOT_HOST_DEVICES=4 ./nbody_ring        JOT_DEVICE=cuda ./nbody_ring
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BODIES = 192, STEPS = 10, MOST = 64 };
static const double DT = 0.01;

static int ring[2 * MOST + 1]; // pairs of a lane and the next one
static int n_devices;

// What `others` do to each of x: f64[n,3] both.
static jot_value pull(jot_value x, jot_value others)
{
    jot_value d = jot_sub(jot_expand_dims(others, 0), jot_expand_dims(x, 1));
    jot_value r2 = jot_add(jot_sum(jot_square(d), 2), 0.01);
    jot_value weight = jot_div(1.0 / BODIES, jot_mul(r2, jot_sqrt(r2)));
    return jot_sum(jot_mul(d, jot_expand_dims(weight, 2)), 1);
}

static jot_value pull_of_all(jot_value x)
{
    jot_value force = jot_zeros_like(x), others = x;
    JOT_FOR (k, n_devices, force, others) {
        force = jot_add(force, pull(x, others));
        others = jot_ppermute_pairs(others, "i", ring);
    }
    return force;
}

static jot_value on_ring(jot_value x, jot_value v)
{
    JOT_FOR (t, STEPS, x, v) {
        v = jot_add(v, jot_mul(DT, pull_of_all(x)));
        x = jot_add(x, jot_mul(DT, v));
    }
    return x;
}

static jot_value on_one(jot_value x, jot_value v)
{
    JOT_FOR (t, STEPS, x, v) {
        v = jot_add(v, jot_mul(DT, pull(x, x)));
        x = jot_add(x, jot_mul(DT, v));
    }
    return x;
}

static jot_array *call(jot_executable *f, jot_array *x, jot_array *v)
{
    jot_array *y = NULL;
    if (!f || jot_call(f, JOT_IN(x, v), JOT_OUT(y)) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
    jot_executable_release(f);
    return y;
}

int main(void)
{
    static double at[BODIES][3], speed[BODIES][3];
    jot_mesh *mesh = jot_mesh_of(jot_device_kind_of(jot_default_device()), {"i", 0});
    n_devices = (int)jot_mesh_size(mesh);
    if (n_devices == 0 || n_devices > MOST || BODIES % n_devices) {
        fprintf(stderr, "%d devices: as many as divide %d\n", n_devices, BODIES);
        return 1;
    }
    for (int i = 0; i < n_devices; i++) {
        ring[2 * i] = i;
        ring[2 * i + 1] = (i + 1) % n_devices;
    }
    ring[2 * n_devices] = JOT_END;
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 3; k++) {
            at[i][k] = sin(1.3 * i + 2 * k);
            speed[i][k] = 0.1 * cos(0.7 * i * (k + 1));
        }
    jot_array *x = jot_array_from(&at[0][0], BODIES, 3);
    jot_array *v = jot_array_from(&speed[0][0], BODIES, 3);
    jot_array *a = call(
        jot_jit(jot_shard_map(jot_fn(on_ring), mesh, JOT_SPLITS("i", "i"), JOT_SPLITS("i"))), x,
        v);
    jot_array *b = call(jot_jit(jot_fn(on_one), .device = jot_default_device()), x, v);
    const double *p = jot_array_data(a), *q = jot_array_data(b);
    double worst = 0;
    for (int i = 0; i < 3 * BODIES; i++)
        worst = fmax(worst, fabs(p[i] - q[i]));
    printf("%d devices, %d bodies, %d steps: differs from one device by %.1e\n", n_devices,
           BODIES, STEPS, worst);
    jot_arrays_release(4, (jot_array *[]){x, v, a, b});
    return worst < 1e-13 ? 0 : 1;
}
