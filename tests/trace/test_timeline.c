// SPDX-License-Identifier: Apache-2.0
// JOT_TRACE: what a program writes, read and checked, and what becomes of a file that cannot be written.
#include "timeline_check.h"
#include "trace_support.h"

#include "support/suite.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[2][128];
    static int next;
    char *p = path[next++ % 2];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void make_folder(void)
{
    strcpy(folder, "/tmp/jot-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

#define N 96

static jot_value loop_and_product(jot_value a, jot_value b)
{
    jot_value x = a;
    JOT_FOR (i, 5, x)
        x = jot_sin(jot_add(x, jot_flip(x, 0)));
    return jot_sum(jot_matmul(x, b));
}

// Ends the process where the number is wrong.
static void call_once(const char *name)
{
    jot_array *a = jot_array_full(JOT_F64, 0.5, N, N), *b = jot_array_full(JOT_F64, 2, N, N);
    jot_array *y = NULL;
    double sum = 0, x = 0.5;
    for (int i = 0; i < 5; i++)
        x = sin(x + x);
    jot_executable *e = jot_jit(jot_fn(loop_and_product), .name = name);
    if (jot_call(e, JOT_IN(a, b), JOT_OUT(y)) != JOT_OK || jot_array_read(y, &sum, 1) != JOT_OK)
        exit(2);
    if (fabs(sum - x * 2 * N * N * N) > 1e-9 * sum)
        exit(3);
    jot_arrays_release(3, (jot_array *[]){a, b, y});
    jot_executable_release(e);
}

static void call_whole(void) { call_once("whole"); }

static void call_with_marks(void) { call_once("a \"b\" \\ \n\x01 \xc3\xa9 \xff"); }

static void *call_on_thread(void *unused)
{
    (void)unused;
    call_once("whole");
    return NULL;
}

static void call_on_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, call_on_thread, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    call_once("whole");
}

static jot_value sines(jot_value x) { return jot_sin(jot_sin(jot_sin(x))); }

static void call_in_parts(void)
{
    jot_array *x = jot_array_full(JOT_F32, 1, 4000000), *y = NULL;
    jot_executable *e = jot_jit(jot_fn(sines));
    for (int i = 0; i < 10; i++) {
        if (jot_call(e, JOT_IN(x), JOT_OUT(y)) != JOT_OK)
            exit(2);
        jot_array_release(y);
    }
    jot_array_release(x);
    jot_executable_release(e);
}

// In a process of its own, whose stderr goes to a file.
static void run(const char *trace, void (*call)(void))
{
    pid_t child = fork();
    if (child == 0) {
        setenv("JOT_TRACE", trace, 1);
        setenv("JOT_THREADS", "2", 1);
        setenv("JOT_CACHE", "on", 1);
        setenv("JOT_CACHE_DIR", path_of("cache"), 1);
        if (dup2(open(path_of("stderr"), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2) < 0)
            exit(4);
        call();
        exit(0);
    }
    int ended;
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    ck_assert_msg(WIFEXITED(ended) && !WEXITSTATUS(ended), "%x", ended);
}

static char *read_whole(const char *path)
{
    static char text[1 << 21];
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

static struct timeline timeline;

static const struct timeline_line *find(const char *kind, const char *name, const char *where)
{
    const struct timeline_line *l = timeline_find(&timeline, kind, name, where);
    ck_assert_msg(l != NULL, "no %s %s at %s", kind ? kind : "counter", name ? name : "",
                  where ? where : "");
    return l;
}

static bool is_on_gpu(void)
{
    const char *device = getenv("JOT_DEVICE");
    return device && !strncmp(device, "cuda", 4);
}

START_TEST(test_whole)
{
    const char *step = is_on_gpu() ? "launch" : "step";
    run(path_of("t.json"), call_whole);
    timeline_read(read_whole(path_of("t.json")), &timeline);
    const struct timeline_line *call = find("call", "whole", "test_timeline.c:");
    const struct timeline_line *trace = find("trace", "whole", NULL);
    const struct timeline_line *compile = find("compile", "whole", NULL);
    const struct timeline_line *pass = find("pass", "simplify", NULL);
    find("pass", "layout_products", NULL);
    find("cache", "cache miss", NULL);
    const struct timeline_line *generate = find("compile", "generate code", NULL);
    find(step, NULL, "JOT_FOR");
    const struct timeline_line *product = find(step, NULL, "jot_matmul(x, b)");
    ck_assert_double_ge(product->bytes, 2 * N * N * sizeof(double));
    ck_assert_double_eq(find("transfer", "download", NULL)->bytes, sizeof(double));
    ck_assert_double_gt(find(NULL, NULL, NULL)->bytes, 0);
    ck_assert(call->ts <= trace->ts && trace->ts + trace->dur <= compile->ts);
    ck_assert(compile->ts <= pass->ts && pass->ts + pass->dur <= generate->ts);
    ck_assert(generate->ts + generate->dur <= product->ts);
    ck_assert(product->ts + product->dur <= call->ts + call->dur);
    // Places are those of the program that runs, whoever has compiled it.
    run(path_of("t.json"), call_whole);
    timeline_read(read_whole(path_of("t.json")), &timeline);
    find("cache", "cache hit", NULL);
    find(step, NULL, "jot_matmul(x, b)");
    ck_assert_ptr_null(timeline_find(&timeline, "compile", "generate code", NULL));
}
END_TEST

// Bytes that are no UTF-8 are replaced.
START_TEST(test_text)
{
    run(path_of("t.json"), call_with_marks);
    timeline_read(read_whole(path_of("t.json")), &timeline);
    find("call", "a \"b\" \\ \n\x01 \xc3\xa9 ?", NULL);
}
END_TEST

START_TEST(test_threads)
{
    run(path_of("t.json"), call_on_threads);
    timeline_read(read_whole(path_of("t.json")), &timeline);
    double last = 0;
    int n = 0;
    for (int i = 0; i < timeline.n; i++)
        if (!strcmp(timeline.lines[i].cat, "call") && timeline.lines[i].tid != last) {
            last = timeline.lines[i].tid;
            n++;
        }
    ck_assert_int_eq(n, 5);
}
END_TEST

// What the second thread of the pool does of the steps.
START_TEST(test_parts)
{
    if (is_on_gpu())
        return;
    run(path_of("t.json"), call_in_parts);
    timeline_read(read_whole(path_of("t.json")), &timeline);
    const struct timeline_line *step = find("step", NULL, "jot_sin(");
    const struct timeline_line *part = find("part", step->name, NULL);
    ck_assert(part->tid != step->tid && part->ts + part->dur >= step->ts);
}
END_TEST

START_TEST(test_number_of_process)
{
    run(path_of("%p.json"), call_whole);
    char command[128];
    snprintf(command, sizeof command, "cd %s && mv [0-9]*.json t.json", folder);
    ck_assert_int_eq(system(command), 0);
    timeline_read(read_whole(path_of("t.json")), &timeline);
    find("call", "whole", NULL);
}
END_TEST

START_TEST(test_unwritable)
{
    run(path_of("none/t.json"), call_on_threads);
    const char *said = strstr(read_whole(path_of("stderr")), "no timeline is written");
    ck_assert_ptr_nonnull(said);
    ck_assert_ptr_nonnull(strstr(said, "none/t.json"));
    ck_assert_ptr_null(strstr(said + 1, "no timeline"));
}
END_TEST

static void add(TCase *t)
{
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_test(t, test_whole);
    tcase_add_test(t, test_text);
    tcase_add_test(t, test_threads);
    tcase_add_test(t, test_parts);
    tcase_add_test(t, test_number_of_process);
    tcase_add_test(t, test_unwritable);
}

int main(void) { return suite_run("trace/timeline", add); }
