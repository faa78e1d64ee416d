// SPDX-License-Identifier: Apache-2.0
// A product of matrices split by rows over all devices: each has some rows of a and all of b.
//
//     JOT_HOST_DEVICES=4 ./matmul_rows        JOT_DEVICE=cuda ./matmul_rows 8192
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static jot_value rows(jot_value a, jot_value b) { return jot_matmul(a, b); }

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

static jot_array *random_matrix(int n, int seed)
{
    jot_array *a;
    jot_scope *s = jot_scope_open();
    must(jot_eval(jot_random_normal(jot_random_key(seed), JOT_F32, n, n), &a));
    jot_scope_close(s);
    return a;
}

// The largest difference, in what rounding may make of a product: 4 K eps |a| |b|.
static double difference(jot_array *y, jot_array *z, int n)
{
    const float *p = jot_array_data(y), *q = jot_array_data(z);
    double worst = 0;
    for (size_t i = 0; i < (size_t)n * n; i++)
        worst = fmax(worst, fabs((double)p[i] - q[i]));
    return worst / (4 * sqrt(n) * 0x1p-24 * n); // |a| and |b| are about sqrt(n) a row
}

int main(int argc, char **argv)
{
    jot_device_kind kind = jot_device_kind_of(jot_default_device());
    jot_mesh *mesh = jot_mesh_of(kind, {"i", 0});
    int n = argc > 1 ? atoi(argv[1]) : 512 * (int)jot_mesh_size(mesh);
    if (!mesh) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    jot_array *a = random_matrix(n, 1), *b = random_matrix(n, 2), *y, *z;
    jot_executable *one = jot_jit(jot_fn(rows), .device = jot_default_device());
    jot_executable *all =
        jot_jit(jot_shard_map(jot_fn(rows), mesh, JOT_SPLITS("i", ""), JOT_SPLITS("i")));
    must(jot_call(one, JOT_IN(a, b), JOT_OUT(z)));
    must(jot_call(all, JOT_IN(a, b), JOT_OUT(y))); // y stays on the devices, in pieces
    double worst = difference(y, z, n);
    printf("%d x %d on %zu devices, split as \"%s\": ", n, n, jot_mesh_size(mesh),
           jot_array_spec(y));
    printf("differs by %.3g of what rounding may do\n", worst);
    jot_array_release(a), jot_array_release(b), jot_array_release(y), jot_array_release(z);
    jot_executable_release(one), jot_executable_release(all);
    return worst <= (kind == JOT_HOST ? 0 : 1) ? 0 : 1;
}
