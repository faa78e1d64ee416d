// SPDX-License-Identifier: Apache-2.0
// A program for under_mpi.sh: does what its argument says, and writes "well" where all is as it has to be.
#include <jot/jot.h>

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
    int fault = share();
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
