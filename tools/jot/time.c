// SPDX-License-Identifier: Apache-2.0
// jot time: how long a program compiles and runs, here and under JAX.
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// The program of Python that runs a program under JAX (under_jax.py).
static const char under_jax[] =
#include "under_jax.inc"
    ;

#define MOST_CALLS 1000
#define SECONDS 2.0 // of calls

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void tell(const char *who, double compile, double median, double least, int n)
{
    printf("%-6s compile %10.3f ms   run %10.4f ms   (least %.4f ms, of %d calls)\n", who,
           1e3 * compile, 1e3 * median, 1e3 * least, n);
    fflush(stdout);
}

static void forget_outputs(struct job *j) { jot_arrays_release(j->n_out, j->out); }

static bool time_calls(struct job *j, double compile)
{
    double times[MOST_CALLS], start = now();
    int n = 0;
    // The first one takes memory and wakes threads.
    if (!run_job(j))
        return false;
    forget_outputs(j);
    while (n < MOST_CALLS && (n < 3 || now() - start < SECONDS)) {
        double before = now();
        if (!run_job(j))
            return false;
        times[n++] = now() - before;
        forget_outputs(j);
    }
    qsort(times, (size_t)n, sizeof *times, compare);
    tell("jot", compile, n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2, times[0],
         n);
    return true;
}

// ---- under JAX ----

static bool save_inputs(const struct job *j, const char *path)
{
    char name[32];
    jot_archive *archive = jot_archive_create();
    bool is_well = archive != NULL;
    for (size_t i = 0; i < j->n_in && is_well; i++) {
        snprintf(name, sizeof name, "in%zu", i);
        is_well = jot_archive_add(archive, name, j->in[i]) == JOT_OK;
    }
    is_well = is_well && jot_archive_save(archive, path, false) == JOT_OK;
    jot_archive_release(archive);
    return is_well || fail_status();
}

static bool run_python(const struct job *j, const char *python, const char *inputs)
{
    jot_device *device = j->a->device ? j->a->device : jot_default_device();
    const char *platform = jot_device_kind_of(device) == JOT_HOST ? "cpu" : "cuda";
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        return fail("--against python: %s", strerror(errno));
    if (child == 0) {
        execlp(python, python, "-c", under_jax, j->a->files[0], inputs, platform,
               j->a->tf32 ? "tf32" : "full", (char *)NULL);
        fprintf(stderr, "jot time: JOT_PYTHON: %s: %s\n", python, strerror(errno));
        _exit(127);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
           fail("--against python: %s ended with status %d", python,
                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static bool time_jax(const struct job *j)
{
    const char *python = getenv("JOT_PYTHON"), *folder = getenv("TMPDIR");
    if (!python || !*python)
        return misuse("--against python: JOT_PYTHON names no Python that has JAX");
    if (strcmp(j->a->function, "main"))
        return misuse("--against python: JAX runs @main, not @%s", j->a->function);
    char path[4096];
    if (snprintf(path, sizeof path, "%s/jot-time-XXXXXX", folder ? folder : "/tmp") >=
        (int)sizeof path)
        return fail("TMPDIR is too long");
    int file = mkstemp(path);
    if (file < 0)
        return fail("%s: %s", path, strerror(errno));
    close(file);
    bool is_well = save_inputs(j, path) && run_python(j, python, path);
    unlink(path);
    return is_well;
}

bool command_time(const struct arguments *a)
{
    struct job j = {.a = a};
    setenv("JOT_CACHE", "off", 0);
    bool is_well = open_job(&j) && read_inputs(&j, true);
    double start = now();
    is_well = is_well &&
              compile_job(&j, jot_program_function(j.program, a->function), j.signature->n_out);
    double compile = now() - start;
    is_well = is_well && time_calls(&j, compile) && (!a->against_python || time_jax(&j));
    close_job(&j);
    return is_well;
}
