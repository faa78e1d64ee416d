// SPDX-License-Identifier: Apache-2.0
// A product of matrices whose blocks are spread over a grid of devices, none of which ever has more than
// some blocks: SUMMA.  In turn k column k of a's blocks goes along the rows of the grid, row k of b's
// along its columns, and every device adds the product of what it got.
//
//         grid 2 x 2         a = [a00 a01]   b = [b00 b01]    device (x, y) has a_xy, b_xy, c_xy
//                                [a10 a11]       [b10 b11]
//
//     JOT_HOST_DEVICES=4 ./summa        JOT_DEVICE=cuda ./summa
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GRID = 2 };

static jot_value blocks(jot_value a, jot_value b)
{
    jot_value c = jot_from(0);
    for (int k = 0; k < GRID; k++)
        c = jot_add(c, jot_matmul(jot_pbroadcast(a, "y", k), jot_pbroadcast(b, "x", k)));
    return c;
}

static jot_value product(jot_value a, jot_value b) { return jot_matmul(a, b); }

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 256;
    jot_array *a, *b, *c, *d;
    jot_mesh *mesh =
        jot_mesh_of(jot_device_kind_of(jot_default_device()), {"x", GRID}, {"y", GRID});
    if (!mesh) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    jot_scope *s = jot_scope_open();
    must(jot_eval(jot_random_normal(jot_random_key(1), JOT_F32, n, n), &a));
    must(jot_eval(jot_random_normal(jot_random_key(2), JOT_F32, n, n), &b));
    jot_scope_close(s);

    // a and b are cut into blocks once and stay where they are.
    jot_array *in[] = {jot_array_shard(a, mesh, "x, y"), jot_array_shard(b, mesh, "x, y")};
    jot_executable *f = jot_jit(
        jot_shard_map(jot_fn(blocks), mesh, JOT_SPLITS("x, y", "x, y"), JOT_SPLITS("x, y")));
    jot_executable *g = jot_jit(jot_fn(product), .device = jot_default_device());
    must(jot_call(f, JOT_IN(in[0], in[1]), JOT_OUT(c)));
    must(jot_call(g, JOT_IN(a, b), JOT_OUT(d)));
    const float *p = jot_array_data(c), *q = jot_array_data(d);
    double worst = 0, size = 0;
    for (size_t i = 0; i < (size_t)n * n; i++) {
        worst = fmax(worst, fabs((double)p[i] - q[i]));
        size = fmax(size, fabs(q[i]));
    }
    printf("%d x %d on a grid of %d x %d, split as \"%s\": differs by %.1e of %.1f\n", n, n,
           GRID, GRID, jot_array_spec(c), worst, size);
    jot_arrays_release(2, in);
    jot_arrays_release(4, (jot_array *[]){a, b, c, d});
    jot_executable_release(f), jot_executable_release(g);
    return worst <= 4 * n * 0x1p-24 * size ? 0 : 1;
}
