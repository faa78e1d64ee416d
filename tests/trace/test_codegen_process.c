// SPDX-License-Identifier: Apache-2.0
// Compiling in a process of its own, and programs of the cache where there is no code generator.
#include "support/suite.h"
#include "trace/trace_support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[64];

static void make_folder(void)
{
    strcpy(folder, "/tmp/jot-compile-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("JOT_CACHE", "off", 1);
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static jot_value shifted(jot_value x) { return jot_add(jot_mul(jot_sin(x), 2.0), 1.5); }

// The result of the function as the executable computes it.
static jot_status run(jot_executable *f, float *out)
{
    const float at[3] = {0.1f, 2, 30};
    jot_array *x = jot_array_from(at, 3), *y = NULL;
    jot_status status = jot_call(f, JOT_IN(x), JOT_OUT(y));
    if (status == JOT_OK)
        memcpy(out, jot_array_data(y), 3 * sizeof *out);
    jot_array_release(x);
    jot_array_release(y);
    jot_executable_release(f);
    return status;
}

static void check_run(jot_executable *f)
{
    float inside[3], y[3];
    must(run(jot_jit(jot_fn(shifted), .compile = JOT_COMPILE_INSIDE), inside));
    must(run(f, y));
    ck_assert_mem_eq(y, inside, sizeof y);
}

START_TEST(gives_the_same_bits)
{
    check_run(jot_jit(jot_fn(shifted), .compile = JOT_COMPILE_PROCESS));
    setenv("JOT_COMPILE", "process", 1);
    check_run(jot_jit(jot_fn(shifted)));
}
END_TEST

static int ends_of_children;
static void count_end(int signal) { ends_of_children += signal == SIGCHLD; }

// A caller that does not want to hear of its processes, one that hears of all, and one that has
// closed the standard files.
START_TEST(works_whatever_the_caller_does)
{
    signal(SIGCHLD, SIG_IGN);
    check_run(jot_jit(jot_fn(shifted), .compile = JOT_COMPILE_PROCESS));
    signal(SIGCHLD, count_end);
    check_run(jot_jit(jot_fn(shifted), .compile = JOT_COMPILE_PROCESS));
    ck_assert_int_eq(ends_of_children, 1);
    signal(SIGCHLD, SIG_DFL);
    int files[3];
    for (int i = 0; i < 3; i++) {
        files[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    float y[3];
    jot_status status = run(jot_jit(jot_fn(shifted), .compile = JOT_COMPILE_PROCESS), y);
    for (int i = 0; i < 3; i++)
        dup2(files[i], i);
    must(status);
}
END_TEST

static void *run_often(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 3; i++) {
        float y[3];
        if (run(jot_jit(jot_fn(shifted), .compile = JOT_COMPILE_PROCESS), y) != JOT_OK)
            return "failed";
    }
    return NULL;
}

START_TEST(works_in_several_threads)
{
    pthread_t threads[4];
    void *fault;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run_often, NULL);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &fault);
        ck_assert_ptr_null(fault);
    }
}
END_TEST

static int count_files(void)
{
    int n = 0;
    DIR *stream = opendir("/proc/self/fd");
    while (readdir(stream))
        n++;
    closedir(stream);
    return n;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const struct fault {
    const char *name;
    jot_status status;
    const char *begin, *end; // of the message
} faults[] = {
    {"abort", JOT_ERR_LIBRARY, "the process that compiles ended by signal 6 (Aborted), within ",
     "t1998 t1999 the end"},
    {"segv", JOT_ERR_LIBRARY,
     "the process that compiles ended by signal 11 (Segmentation fault), within ", " bytes"},
    {"exit", JOT_ERR_LIBRARY, "the process that compiles ended without a result", "result"},
    {"garbage", JOT_ERR_LIBRARY, "the process that compiles ended without a result", "result"},
    {"deaf", JOT_ERR_LIBRARY, "the process that compiles ended by signal 9 (Killed)", " bytes"},
    {"hang", JOT_ERR_LIBRARY,
     "the process that compiles was ended after 0.5 seconds, its limit (JOT_COMPILE_SECONDS, "
     "or "
     "compile_seconds of jot_jit)",
     "jot_jit)"},
    {"memory", JOT_ERR_MEMORY,
     "the process that compiles ran out of memory: its limit is 300000000 bytes "
     "(JOT_COMPILE_BYTES, or compile_bytes of jot_jit)",
     "LLVM ERROR: out of memory"},
    {"heir", JOT_ERR_SHAPE, "a message of its own", "a message of its own"},
    {"message", JOT_ERR_SHAPE, "a message of its own", "a message of its own"},
};

// Whatever the code generator does is a status, and leaves no file open and no process behind.
START_TEST(makes_faults_statuses)
{
    setenv("JOT_CODEGEN", FAULTY_CODEGEN, 1);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const struct fault *f = &faults[i];
        float y[3];
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        if (!strcmp(f->name, "memory"))
            continue; // no limit holds there
#endif
        setenv("JOT_TEST_FAULT", f->name, 1);
        int before = count_files();
        double start = now();
        jot_status status = run(jot_jit(jot_fn(shifted), .compile = JOT_COMPILE_PROCESS,
                                        .compile_seconds = !strcmp(f->name, "hang") ? 0.5 : 60,
                                        .compile_bytes = 300000000),
                                y);
        const char *message = jot_error_message(), *tail = strstr(message, f->end);
        ck_assert_msg(status == f->status, "%s: %s", f->name, message);
        const char *at = strstr(message, f->begin);
        ck_assert_msg(at && tail, "%s: %s", f->name, message);
        ck_assert_int_eq(count_files(), before);
        ck_assert(now() - start < 50);
    }
    ck_assert(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}
END_TEST

// The environment's limits hold where the options say nothing.
START_TEST(takes_limits_from_the_environment)
{
    float y[3];
    setenv("JOT_CODEGEN", FAULTY_CODEGEN, 1);
    setenv("JOT_COMPILE", "process", 1);
    setenv("JOT_COMPILE_SECONDS", "1", 1);
    setenv("JOT_TEST_FAULT", "hang", 1);
    ck_assert_int_eq(run(jot_jit(jot_fn(shifted)), y), JOT_ERR_LIBRARY);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "was ended after 1 seconds"));
}
END_TEST

// LLVM itself, with less memory than it takes.
START_TEST(survives_llvm_without_memory)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    int failures = 0;
    for (size_t bytes = 1 << 20; bytes < (size_t)1 << 30; bytes += bytes / 2) {
        float y[3];
        jot_status status = run(
            jot_jit(jot_fn(shifted), .compile = JOT_COMPILE_PROCESS, .compile_bytes = bytes),
            y);
        ck_assert(status == JOT_OK || status == JOT_ERR_LIBRARY || status == JOT_ERR_MEMORY);
        failures += status != JOT_OK;
    }
    ck_assert_int_gt(failures, 0);
    check_run(jot_jit(jot_fn(shifted), .compile = JOT_COMPILE_PROCESS));
#endif
}
END_TEST

START_TEST(refuses_a_code_generator_of_another_build)
{
    float y[3];
    setenv("JOT_CODEGEN", OTHER_CODEGEN, 1);
    ck_assert_int_eq(run(jot_jit(jot_fn(shifted)), y), JOT_ERR_LIBRARY);
    ck_assert_ptr_nonnull(
        strstr(jot_error_message(), "was built from other sources than libjot"));
    ck_assert_int_eq(run(jot_jit(jot_fn(shifted), .compile = JOT_COMPILE_PROCESS), y),
                     JOT_ERR_LIBRARY);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "are not of one build"));
}
END_TEST

START_TEST(refuses_options_that_say_nothing)
{
    ck_assert_ptr_null(jot_jit(jot_fn(shifted), .compile = (jot_compile)3));
    ck_assert_ptr_null(jot_jit(jot_fn(shifted), .compile_seconds = -1));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "compile_seconds is -1"));
}
END_TEST

// In another process, for one looks for its code generator and its cache only once.
static int run_alone(const char *codegen)
{
    pid_t child = fork();
    if (child == 0) {
        float y[3];
        setenv("JOT_CODEGEN", codegen, 1);
        setenv("JOT_CACHE", "on", 1);
        setenv("JOT_CACHE_DIR", folder, 1);
        _exit(run(jot_jit(jot_fn(shifted)), y) == JOT_OK ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

// A program of the cache needs no code generator, whatever has become of its file.
START_TEST(cached_programs_need_no_code_generator)
{
    char copy[128], command[4096];
    snprintf(copy, sizeof copy, "%s/copy.so", folder);
    snprintf(command, sizeof command, "cp %s %s", getenv("JOT_CODEGEN"), copy);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_ne(run_alone("/nowhere.so"), 0);
    ck_assert_int_eq(run_alone(copy), 0);
    ck_assert_int_eq(remove(copy), 0);
    ck_assert_int_eq(run_alone(copy), 0);
    ck_assert_int_eq(run_alone("/nowhere.so"), 0);
    ck_assert_int_eq(run_alone(OTHER_CODEGEN), 0);
}
END_TEST

// JOT_DUMP=cache tells which entry was looked for and what came of it.
START_TEST(the_dump_tells_of_the_cache)
{
    char path[128], text[4096];
    snprintf(path, sizeof path, "%s/stderr", folder);
    int errors = dup(STDERR_FILENO), file = open(path, O_RDWR | O_CREAT, 0600);
    setenv("JOT_DUMP", "cache", 1);
    dup2(file, STDERR_FILENO);
    int made = run_alone(getenv("JOT_CODEGEN")), found = run_alone("/nowhere.so");
    dup2(errors, STDERR_FILENO);
    ck_assert(made == 0 && found == 0);
    ssize_t n = pread(file, text, sizeof text - 1, 0);
    ck_assert_int_gt((int)n, 0);
    text[n] = 0;
    char missing[256], kept[256];
    char name[64] = "";
    DIR *stream = opendir(folder);
    for (struct dirent *e; (e = readdir(stream));)
        if (strstr(e->d_name, ".jot"))
            snprintf(name, sizeof name, "%.60s", e->d_name);
    closedir(stream);
    snprintf(missing, sizeof missing, "---- cache of shifted\n%s/%s: is not there\n", folder,
             name);
    snprintf(kept, sizeof kept, "%s/%s: kept, ", folder, name);
    ck_assert_msg(!strncmp(text, missing, strlen(missing)), "%s", text);
    char *at = strstr(text, kept);
    ck_assert_msg(at != NULL, "%s", text);
    ck_assert_msg(strstr(at, ": found, ") != NULL, "%s", text);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, gives_the_same_bits);
    tcase_add_test(tests, works_whatever_the_caller_does);
    tcase_add_test(tests, works_in_several_threads);
    tcase_add_test(tests, makes_faults_statuses);
    tcase_add_test(tests, takes_limits_from_the_environment);
    tcase_add_test(tests, survives_llvm_without_memory);
    tcase_add_test(tests, refuses_a_code_generator_of_another_build);
    tcase_add_test(tests, refuses_options_that_say_nothing);
    tcase_add_test(tests, cached_programs_need_no_code_generator);
    tcase_add_test(tests, the_dump_tells_of_the_cache);
}

int main(void) { return suite_run("codegen_process", add_tests); }
