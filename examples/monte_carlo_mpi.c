// SPDX-License-Identifier: Apache-2.0
// The volume of the ball in six dimensions, pi^3 / 6, by points that all devices of all processes throw.
//
//     mpirun -n 4 --enable-recovery ./monte_carlo_mpi
//
// Each device has random numbers of its own, by fold_in of its place in the mesh; the mean of their estimates is
// a result of the program that they run together.  When a process is killed the others say which one,
// and what they have found until then.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { POINTS = 1 << 17, DIMENSIONS = 6, ROUNDS = 16 };

// The volume of the cube of side 2 by the share of its points that are in the ball.
static jot_value estimate(jot_value round)
{
    jot_value key = jot_random_fold_in(jot_random_key(0), round);
    key = jot_random_fold_in(key, jot_axis_index("i"));
    jot_value x = jot_random_uniform_in(key, JOT_F32, -1.0, 1.0, POINTS, DIMENSIONS);
    jot_value is_inside = jot_less(jot_sum(jot_square(x), 1), 1.0);
    jot_value volume = jot_mul(jot_mean(jot_astype(is_inside, JOT_F32)), 1 << DIMENSIONS);
    return jot_pmean(volume, "i");
}

static int fail(void)
{
    fprintf(stderr, "process %d: %s\n", jot_process_index(), jot_error_message());
    return 1;
}

int main(void)
{
    if (jot_distributed_start(NULL) != JOT_OK)
        return fail();
    jot_mesh *mesh = jot_mesh_of(JOT_HOST, {"i", 0});
    if (!mesh)
        return fail();
    jot_executable *f =
        jot_jit(jot_shard_map(jot_fn(estimate), mesh, JOT_SPLITS(""), JOT_SPLITS("")));
    double sum = 0, sum_of_squares = 0;
    int rounds = 0;
    for (; rounds < ROUNDS; rounds++) {
        jot_array *round = jot_array_full(JOT_I32, rounds), *v;
        jot_status status = jot_call(f, JOT_IN(round), JOT_OUT(v));
        jot_array_release(round);
        if (status != JOT_OK)
            break;
        double x = jot_array_item(v);
        sum += x, sum_of_squares += x * x;
        jot_array_release(v);
    }
    if (rounds < ROUNDS)
        fail();
    double result = sum / rounds, exact = pow(acos(-1), 3) / 6;
    double error = sqrt((sum_of_squares / rounds - result * result) / (rounds - 1));
    if (jot_process_index() == 0 || rounds < ROUNDS)
        printf("%d processes, %zu devices, %d rounds: %.5f +- %.5f, exactly %.5f\n",
               jot_process_count(), jot_mesh_size(mesh), rounds, result, error, exact);
    jot_executable_release(f);
    jot_distributed_stop();
    return rounds < ROUNDS || !(fabs(result - exact) < 5 * error);
}
