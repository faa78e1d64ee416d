// SPDX-License-Identifier: Apache-2.0
// Heat in a plate that is cut into strips, one a device: before each step neighbours exchange borders.
// How warm the middle is at the end, and how that depends on the heat everywhere at the start: a gradient
// that goes back through all steps and exchanges.
//
//     JOT_HOST_DEVICES=4 ./heat_halo        JOT_DEVICE=cuda ./heat_halo
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 64, STEPS = 60, MOST = 64 };

static int down[2 * MOST + 1], up[2 * MOST + 1]; // lane, next lane; lane, lane before

// A step of the rows of u between the first and the last one; what is left and right is cold.
static jot_value step(jot_value u)
{
    jot_value inner = jot_slice(u, 0, 1, -1), wide = jot_pad(inner, 0.0, 1, 1, 1);
    jot_value sides = jot_add(jot_slice(wide, 1, 0, N), jot_slice(wide, 1, 2, N + 2));
    jot_value ends = jot_add(jot_slice(u, 0, 0, -2), jot_slice(u, 0, 2, JOT_END));
    jot_value around = jot_add(sides, ends);
    return jot_add(inner, jot_mul(0.2, jot_sub(around, jot_mul(4, inner))));
}

static jot_value plate(jot_value u)
{
    JOT_FOR (t, STEPS, u)
        u = step(jot_pad(u, 0.0, 0, 1, 1));
    return u;
}

// Of one strip: the row above comes from the lane before, and there is none above the first.
static jot_value strip(jot_value u)
{
    JOT_FOR (t, STEPS, u) {
        jot_value above = jot_ppermute_pairs(jot_slice(u, 0, -1, JOT_END), "i", down);
        jot_value below = jot_ppermute_pairs(jot_slice(u, 0, 0, 1), "i", up);
        u = step(jot_concatenate(0, above, u, below));
    }
    return u;
}

static jot_mesh *mesh;

static jot_value strips(jot_value u)
{
    jot_value y;
    jot_apply(jot_shard_map(jot_fn(strip), mesh, JOT_SPLITS("i"), JOT_SPLITS("i")), 1, &u, 1,
              &y);
    return y;
}

static jot_value middle(jot_value u)
{
    return jot_mean(jot_slice(jot_slice(u, 0, N / 4, 3 * N / 4), 1, N / 4, 3 * N / 4));
}
static jot_value warmth_of_plate(jot_value u) { return middle(plate(u)); }
static jot_value warmth_of_strips(jot_value u) { return middle(strips(u)); }

static jot_array *call(jot_executable *f, jot_array *x)
{
    jot_array *y = NULL;
    if (!f || jot_call(f, JOT_IN(x), JOT_OUT(y)) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
    jot_executable_release(f);
    return y;
}

static double difference(jot_array *a, jot_array *b)
{
    const double *x = jot_array_data(a), *y = jot_array_data(b);
    double worst = 0;
    for (int i = 0; i < N * N; i++)
        worst = fmax(worst, fabs(x[i] - y[i]));
    return worst;
}

int main(void)
{
    static double heat[N * N];
    mesh = jot_mesh_of(jot_device_kind_of(jot_default_device()), {"i", 0});
    int n = (int)jot_mesh_size(mesh), pair = 0;
    if (n == 0 || n > MOST || N % n) {
        fprintf(stderr, "%d devices: as many as divide %d\n", n, N);
        return 1;
    }
    for (int i = 0; i + 1 < n; i++, pair += 2) {
        down[pair] = up[pair + 1] = i;
        down[pair + 1] = up[pair] = i + 1;
    }
    down[pair] = up[pair] = JOT_END;
    for (int i = 0; i < N * N; i++)
        heat[i] = i / N < N / 3 ? 100 : 0;
    jot_device *one = jot_default_device();
    jot_array *u = jot_array_from(heat, N, N);
    jot_array *a = call(jot_jit(jot_fn(strips)), u);
    jot_array *b = call(jot_jit(jot_fn(plate), .device = one), u);
    jot_array *da = call(jot_jit(jot_grad(jot_fn(warmth_of_strips))), u);
    jot_array *db = call(jot_jit(jot_grad(jot_fn(warmth_of_plate)), .device = one), u);
    double worst = difference(a, b), slope = difference(da, db);
    printf("%d devices, %d steps: the middle is at %.2f degrees\n", n, STEPS,
           ((const double *)jot_array_data(a))[N / 2 * N + N / 2]);
    printf("differs from one device by %.1e, the gradient by %.1e\n", worst, slope);
    jot_arrays_release(5, (jot_array *[]){u, a, b, da, db});
    return worst < 1e-11 && slope < 1e-15 ? 0 : 1;
}
