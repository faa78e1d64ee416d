// SPDX-License-Identifier: Apache-2.0
// The volume of the ball in six dimensions, pi^3 / 6, by points that several processes throw.
//
//     mpirun -n 4 --enable-recovery ./monte_carlo_mpi
//
// Each process has random numbers of its own, by fold_in of its number, and estimates with its points
// alone; the mean of all estimates is theirs.  When a process is killed the others say which one, and
// give what they have of their own.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>

enum { POINTS = 1 << 18, DIMENSIONS = 6, ROUNDS = 16 };

// The volume of the cube of side 2 by the share of its points that are in the ball.
static jot_value volume(jot_value process, jot_value round)
{
    jot_value key = jot_random_fold_in(jot_random_key(0), process);
    key = jot_random_fold_in(key, round);
    jot_value x = jot_random_uniform_in(key, JOT_F32, -1.0, 1.0, POINTS, DIMENSIONS);
    jot_value is_inside = jot_less(jot_sum(jot_square(x), 1), 1.0);
    return jot_mul(jot_mean(jot_astype(is_inside, JOT_F32)), 1 << DIMENSIONS);
}

// The mean over processes of what each has.
static jot_value mean(jot_value of_all) { return jot_mean(of_all, 0); }

static int fail(void)
{
    fprintf(stderr, "process %d: %s\n", jot_process_index(), jot_error_message());
    return 1;
}

int main(void)
{
    if (jot_distributed_start(NULL) != JOT_OK)
        return fail();
    int own = jot_process_index(), count = jot_process_count();
    jot_executable *estimate = jot_jit(jot_fn(volume)), *reduce = jot_jit(jot_fn(mean));
    jot_array *process = jot_array_full(JOT_I32, own);
    double sum = 0, sum_of_squares = 0;
    int rounds = 0;
    bool is_alone = false;
    for (; rounds < ROUNDS && !is_alone; rounds++) {
        jot_array *round = jot_array_full(JOT_I32, rounds), *v, *all, *m = NULL;
        if (jot_call(estimate, JOT_IN(process, round), JOT_OUT(v)) != JOT_OK)
            return fail();
        all = jot_process_all_gather(v); // f32[count]
        is_alone = !all;
        if (all && jot_call(reduce, JOT_IN(all), JOT_OUT(m)) != JOT_OK)
            return fail();
        double x = all ? jot_array_item(m) : jot_array_item(v);
        sum += x, sum_of_squares += x * x;
        jot_array_release(m), jot_array_release(all);
        jot_array_release(round), jot_array_release(v);
    }
    if (is_alone)
        fail();
    double result = sum / rounds, exact = pow(acos(-1), 3) / 6;
    double error = sqrt((sum_of_squares / rounds - result * result) / (rounds - 1));
    if (own == 0 || is_alone)
        printf("%d processes, %d points: %.5f +- %.5f, exactly %.5f\n", count,
               count * rounds * POINTS, result, error, exact);
    jot_array_release(process);
    jot_executable_release(estimate), jot_executable_release(reduce);
    jot_distributed_stop();
    return is_alone || !(fabs(result - exact) < 5 * error);
}
