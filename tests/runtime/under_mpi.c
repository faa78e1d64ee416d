// SPDX-License-Identifier: Apache-2.0
// A program for under_mpi.sh: does what its argument says, and writes "well" where all is as it has to be.
#include <jot/jot.h>

#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VICTIM 1
#define SILENCE 2.0

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const char *what)
{
    fprintf(stderr, "process %d, %s: %s\n", jot_process_index(), what, jot_error_message());
    return 1;
}

// The numbers of all, of all together.
static int share(void)
{
    int own = jot_process_index(), count = jot_process_count();
    jot_array *a = jot_array_full(JOT_I32, own * own, 2), *all = jot_process_all_gather(a);
    jot_array *last = jot_process_broadcast(a, count - 1);
    if (!all || !last || jot_process_barrier() != JOT_OK)
        return fail("share");
    const int *x = jot_array_data(all), *y = jot_array_data(last);
    for (int i = 0; i < count; i++)
        if (x[2 * i + 1] != i * i || y[1] != (count - 1) * (count - 1))
            return fail("wrong numbers");
    jot_array_release(a), jot_array_release(all), jot_array_release(last);
    return 0;
}

static jot_value weigh(jot_value x) { return jot_div(x, jot_psum(x, "i")); }
static jot_value loss(jot_value w, jot_value x)
{
    return jot_pmean(jot_mean(jot_square(jot_sub(jot_mul(w, x), 1.0))), "i");
}

// Functions on a mesh of all devices, and a derivative, against this process alone.
static int compute(void)
{
    jot_mesh *mesh = jot_mesh_of(JOT_HOST, {"i", 0});
    int n = (int)jot_mesh_size(mesh);
    float x[64], sum = 0, slope = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] = 1.0F + (float)i;
    for (int i = 0; i < n; i++)
        slope += 2 * (0.5F * x[i] - 1) * x[i] / (float)n;
    jot_array *a = jot_array_copy(JOT_F32, x, (const int64_t[]){n, JOT_END}), *y, *w, *g;
    jot_executable *f = jot_jit(jot_pmap_on(mesh, jot_fn(weigh), "i"));
    jot_executable *df = jot_jit(
        jot_grad(jot_shard_map(jot_fn(loss), mesh, JOT_SPLITS("", "i"), JOT_SPLITS(""))));
    if (jot_call(f, JOT_IN(a), JOT_OUT(y)) != JOT_OK)
        return fail("a map");
    jot_array *all = jot_process_all_gather(y);
    w = jot_array_full(JOT_F32, 0.5);
    if (!all || jot_call(df, JOT_IN(w, a), JOT_OUT(g)) != JOT_OK)
        return fail("a gradient");
    const float *got = jot_array_data(all);
    for (int i = 0; i < n; i++)
        if (fabsf(got[i] - x[i] / sum) > 1e-6F)
            return fail("a wrong map");
    if (fabs(jot_array_item(g) - slope) > 1e-5)
        return fail("a wrong gradient");
    jot_array_release(a), jot_array_release(y), jot_array_release(all);
    jot_array_release(w), jot_array_release(g);
    jot_executable_release(f), jot_executable_release(df);
    return 0;
}

static jot_value scale_by(jot_value x) { return jot_mul(jot_psum(x, "i"), 2.0); }
static jot_value scale_more(jot_value x) { return jot_mul(jot_psum(x, "i"), 3.0); }

// One process calls another function than the others.
static int call_other(jot_function others, jot_function victims)
{
    jot_mesh *mesh = jot_mesh_of(JOT_HOST, {"i", 0});
    jot_function f = jot_process_index() == VICTIM ? victims : others;
    jot_executable *e = jot_jit(jot_pmap_on(mesh, f, "i"));
    jot_array *a = jot_array_full(JOT_F32, 1, (int64_t)jot_mesh_size(mesh)), *y;
    if (jot_call(e, JOT_IN(a), JOT_OUT(y)) != JOT_ERR_CHECK ||
        !strstr(jot_error_message(), "process 0 of") ||
        !strstr(jot_error_message(), "process 1 of"))
        return fail("another program");
    jot_array_release(a);
    jot_executable_release(e);
    return jot_process_barrier() == JOT_OK ? 0 : fail("after another program");
}

// Until something happens to the victim, which leaves behind when that was.
static int repeat(const char *path, int signal, const char *expected)
{
    double fell = 0;
    for (int i = 0; jot_process_barrier() == JOT_OK; i++) {
        if (jot_process_index() != VICTIM || i != 20)
            continue;
        FILE *f = fopen(path, "w");
        if (!f || fprintf(f, "%d %.6f\n", (int)getpid(), seconds()) < 0 || fclose(f) != 0)
            return fail(path);
        raise(signal);
    }
    double now = seconds();
    char name[64];
    snprintf(name, sizeof name, "process %d of %d (", VICTIM, jot_process_count());
    if (!strstr(jot_error_message(), name) || !strstr(jot_error_message(), expected) ||
        jot_distributed_check() != JOT_ERR_DEVICE)
        return fail("another message");
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%*d %lf", &fell) != 1 || fclose(f) != 0)
        return fail(path);
    if (jot_process_index() != VICTIM && now - fell > SILENCE) {
        fprintf(stderr, "process %d knows it after %g s\n", jot_process_index(), now - fell);
        return 1;
    }
    return 0;
}

static int differ(void)
{
    jot_array *a = jot_array_full(JOT_F32, 1, 3), *b;
    b = jot_process_index() == VICTIM ? jot_process_broadcast(a, 0) : jot_process_all_gather(a);
    jot_array_release(a), jot_array_release(b);
    if (jot_distributed_check() != JOT_ERR_CHECK ||
        !strstr(jot_error_message(), "at broadcast of f32[3]") ||
        !strstr(jot_error_message(), "at all_gather of f32[3]"))
        return fail("differ");
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    bool has_own_mpi = !strcmp(mode, "own");
    alarm(100);
    if (has_own_mpi)
        MPI_Init(&argc, &argv);
    jot_distributed_options options = {.silence_seconds = SILENCE};
    if (jot_distributed_start(&options) != JOT_OK)
        return fail("start");
    if (jot_distributed_start(NULL) != JOT_ERR_ARGUMENT)
        return fail("a second start");
    int fault = share() || (!strcmp(mode, "share") &&
                            (compute() || call_other(jot_fn(weigh), jot_fn(scale_by)) ||
                             call_other(jot_fn(scale_more), jot_fn(scale_by))));
    // What it does next ends the job for all, also for those that are not so far yet.
    if (jot_process_index() == VICTIM)
        usleep(500000);
    if (!fault && !strcmp(mode, "kill"))
        fault = repeat(argv[2], SIGKILL, "has died");
    else if (!fault && !strcmp(mode, "stop"))
        fault = repeat(argv[2], SIGSTOP, "has not been heard of for");
    else if (!fault && !strcmp(mode, "differ"))
        fault = differ();
    if (!strcmp(mode, "exit") && jot_process_index() == VICTIM)
        exit(7);
    else if (!fault && !strcmp(mode, "exit") &&
             (jot_process_barrier() != JOT_ERR_DEVICE ||
              !strstr(jot_error_message(), "has left")))
        fault = fail("exit");
    if (has_own_mpi) {
        int sum, one = 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        fault |= sum != jot_process_count();
        MPI_Finalize();
    }
    if (jot_process_index() % 2)
        jot_distributed_stop();
    if (!fault)
        printf("well\n");
    return fault;
}
