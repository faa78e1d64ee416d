// SPDX-License-Identifier: Apache-2.0
// Several processes of one machine, which meet by shared memory instead of MPI: what they do together against one
// process that does it alone, and what becomes of the others when one dies, stops, leaves or does something else.
#include "base/dtype.h"
#include "job_collectives.h"
#include "job_team.h"
#include "runtime/array.h"
#include "runtime/host/combine.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VICTIM 3

static bool can_combine(enum collective_combiner combiner, jot_dtype dtype)
{
    struct collective c;
    int64_t mesh = 1;
    return !collective_read((int64_t[]){COLLECTIVE_ALL_REDUCE, combiner, dtype, 1, 0}, 5, 1,
                            &mesh, &c);
}

// Every type by every combiner, and every kind of collective.
static void check_types(int index, const void *ctx)
{
    static const int each[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct rt_group g = {8, each};
    (void)ctx;
    for (int d = 0; d < DTYPE_COUNT; d++)
        for (int combiner = 0; combiner < COLLECTIVE_COMBINER_COUNT; combiner++)
            for (int kind = 0; kind < KINDS; kind++) {
                struct shape s = {{(enum collective_combiner)combiner, (jot_dtype)d}, 1027};
                bool combines = kind == REDUCE_SCATTER || kind == ALL_REDUCE;
                if (combines ? can_combine(s.combine.combiner, s.combine.dtype) : combiner == 0)
                    check_one(index, (enum kind)kind, &g, &s);
            }
    job_note(index, JOT_OK);
}

START_TEST(test_types)
{
    struct test t = {.count = 8, .body = check_types};
    job_run(&t);
    job_all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

static void check_all(int index, const void *ctx)
{
    // One each; several; some; in another order; all on one.
    static const int each[] = {0, 1, 2, 3, 4, 5, 6, 7}, twice[] = {0, 0, 1, 1, 2, 2, 3, 3},
                     mixed[] = {5, 2, 5, 0, 2, 7, 5}, some[] = {6, 1, 3}, two[] = {4, 2},
                     one[] = {3, 3, 3};
    const struct rt_group groups[] = {{8, each}, {8, twice}, {7, mixed},
                                      {3, some}, {2, two},   {3, one}};
    static const size_t elements[] = {0, 1, 3, 1000, 40001};
    static const jot_dtype dtypes[] = {JOT_U8, JOT_BF16, JOT_F32, JOT_F64, JOT_C128};
    (void)ctx;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t k = 0; k < sizeof elements / sizeof *elements; k++) {
                struct shape s = {{COLLECTIVE_SUM, dtypes[(i + (size_t)kind + k) % 5]},
                                  elements[k]};
                check_one(index, (enum kind)kind, &groups[i], &s);
            }
    job_note(index, JOT_OK);
}

START_TEST(test_collectives)
{
    struct test t = {.count = 8, .body = check_all};
    job_run(&t);
    job_all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

// More than any buffer of a socket, from everybody to everybody.
static void check_large(int index, const void *ctx)
{
    struct rt_group all = rt_distributed_all();
    (void)ctx;
    for (int kind = 0; kind < BARRIER; kind++)
        check_one(index, (enum kind)kind, &all,
                  &(struct shape){{COLLECTIVE_SUM, JOT_F64}, 500000});
    job_note(index, JOT_OK);
}

START_TEST(test_large)
{
    struct test t = {.count = 3, .body = check_large};
    job_run(&t);
    job_all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

static void check_arrays(int index, const void *ctx)
{
    (void)ctx;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        jot_array *own =
            jot_array_fill((jot_dtype)d, index % 2, (const int64_t[]){2, 3, JOT_END});
        jot_array *all = jot_process_all_gather(own), *first = jot_process_broadcast(own, 1);
        ck_assert_msg(all && first, "%s", jot_error_message());
        ck_assert_int_eq(jot_array_rank(all), 3);
        ck_assert_int_eq(jot_array_dim(all, 0), jot_process_count());
        for (int i = 0; i < jot_process_count(); i++) {
            const char *row =
                (const char *)jot_array_data(all) + (size_t)i * jot_array_bytes(own);
            ck_assert_double_eq(rt_element_to_f64((jot_dtype)d, row), i % 2);
        }
        ck_assert_double_eq(rt_element_to_f64((jot_dtype)d, jot_array_data(first)), 1);
        jot_array_release(own);
        jot_array_release(all);
        jot_array_release(first);
    }
    ck_assert_int_eq(jot_process_barrier(), JOT_OK);
    job_note(index, JOT_OK);
}

START_TEST(test_arrays)
{
    struct test t = {.count = 4, .body = check_arrays, .has_strangers = true};
    job_run(&t);
    job_all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

static bool is_same(const jot_array *a, const jot_array *b)
{
    const void *x = jot_array_data(a), *y = jot_array_data(b);
    ck_assert_msg(x && y, "%s", jot_error_message());
    return jot_array_bytes(a) == jot_array_bytes(b) && !memcmp(x, y, jot_array_bytes(a));
}

static void check_pieces(int index, const void *ctx)
{
    (void)ctx;
    ck_assert_int_eq(jot_set_host_devices(PARTS), JOT_OK);
    jot_mesh *m = mesh_of(1, (const jot_mesh_axis[]){{"i", 0}});
    size_t n = (size_t)jot_process_count() * PARTS;
    ck_assert_uint_eq(jot_mesh_size(m), n);
    ck_assert_ptr_eq(jot_mesh_device(m, (size_t)index * PARTS + 1), jot_host_device(1));
    ck_assert_ptr_eq(jot_mesh_device(m, 0), jot_process_device(0, JOT_HOST, 0));
    jot_array *a = make_rows(n), *s = jot_array_shard(a, m, "i"), *pieces[2 * MOST] = {0};
    for (size_t i = 0; i < n; i++) {
        jot_array *piece = jot_array_shard_on(s, i);
        ck_assert_int_eq(jot_device_process(jot_mesh_device(m, i)), (int)i / PARTS);
        ck_assert_int_eq(jot_array_dim(piece, 0), ROW);
        const float *got = jot_array_data(piece), *all = jot_array_data(a);
        if ((int)i / PARTS == index) {
            ck_assert_int_eq(memcmp(got, all + i * ROW, ROW * sizeof *all), 0);
            pieces[i] = jot_array_retain(piece);
        } else {
            ck_assert_ptr_null(got);
            ck_assert_ptr_nonnull(strstr(jot_error_message(), "is a device of process"));
        }
        jot_array_release(piece);
    }
    ck_assert_ptr_null(jot_array_data(s));
    jot_array *again = jot_array_from_shards(m, "i", n, pieces);
    ck_assert_msg(again != NULL, "%s", jot_error_message());
    jot_array *whole = jot_process_all_gather(again), *copies = jot_array_shard(a, m, "");
    ck_assert_msg(whole && copies, "%s", jot_error_message());
    ck_assert(is_same(whole, a) && is_same(copies, a));
    // From copies any other form is made of what is here; from pieces it is not.
    jot_array *split = jot_array_shard(copies, m, "i"), *both = jot_process_all_gather(split);
    ck_assert(both && is_same(both, a));
    ck_assert_ptr_null(jot_array_shard(s, m, ""));
    jot_arrays_release(n, pieces);
    jot_array *made[] = {a, s, again, whole, copies, split, both};
    jot_arrays_release(sizeof made / sizeof *made, made);
    job_note(index, JOT_OK);
}

START_TEST(test_pieces)
{
    struct test t = {.count = 4, .body = check_pieces};
    job_run(&t);
    job_all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

// One program of all against its definition, with groups in a process, across, and both.
static void run_team(int index, const void *ctx)
{
    static const int64_t shapes[][3] = {{4, 2, 0}, {4, 2, 1}, {2, 4, 0}, {2, 4, 1}, {1, 8, 1}};
    (void)ctx;
    ck_assert_int_eq(jot_set_host_devices(PARTS), JOT_OK);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        int64_t rows = shapes[k][0], columns = shapes[k][1];
        jot_mesh *m = mesh_of(2, (const jot_mesh_axis[]){{"x", rows}, {"y", columns}});
        struct rt_team *team;
        float x[8][ROW], y[8][ROW], right[8][ROW];
        const void *inputs[8];
        void *outputs[8];
        jot_status status = load_team(m, (int)shapes[k][2], 2, &team);
        ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
        for (int d = 0; d < 8; d++) {
            fill(JOT_F32, d, ROW, x[d]);
            memcpy(right[d], x[d], sizeof right[d]);
            inputs[d] = x[d];
            outputs[d] = y[d];
        }
        for (int trip = 0; trip < 2; trip++) {
            float before[8][ROW];
            memcpy(before, right, sizeof before);
            for (int64_t d = 0; d < 8; d++) {
                const void *group[8];
                size_t n = 0;
                for (int64_t e = 0; e < 8; e++)
                    if (shapes[k][2] ? e / columns == d / columns : e % columns == d % columns)
                        group[n++] = before[e];
                host_combine(COLLECTIVE_SUM, JOT_F32, n, group, 0, ROW, 1, (void *[]){right[d]},
                             0, false);
            }
        }
        for (int turn = 0; turn < 3; turn++) {
            memset(y, 0, sizeof y);
            status = rt_team_run(team, inputs, outputs);
            ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
            for (int d = index * PARTS; d < (index + 1) * PARTS; d++)
                ck_assert_msg(!memcmp(y[d], right[d], sizeof y[d]), "device %d of mesh %zu", d,
                              k);
        }
        rt_team_release(team);
    }
    job_note(index, JOT_OK);
}

START_TEST(test_team)
{
    struct test t = {.count = 4, .body = run_team};
    job_run(&t);
    job_all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

// ---- GPUs of all ----

// Each process has one of its own, of fake_cuda, or with JOT_TEST_GPUS of those that are there.
static int open_gpu(int index)
{
    const char *fake = getenv("JOT_TEST_FAKE_CUDA");
    char number[16];
    snprintf(number, sizeof number, "%d", index);
    setenv("CUDA_VISIBLE_DEVICES", number, 1);
    if (!getenv("JOT_TEST_GPUS") && fake)
        setenv("JOT_CUDA_LIBRARIES", fake, 1);
    return getenv("JOT_TEST_GPUS") || fake ? jot_device_count(JOT_CUDA) : 0;
}

static void run_gpus(int index, const void *ctx)
{
    const int64_t *trips = ctx;
    if (!open_gpu(index)) {
        job_note(index, JOT_OK);
        return;
    }
    jot_mesh *m = jot_mesh_of_kind(JOT_CUDA, 2, (const jot_mesh_axis[]){{"x", 0}, {"y", 1}});
    ck_assert_msg(m != NULL, "%s", jot_error_message());
    size_t n = jot_mesh_size(m);
    jot_array *rows = make_rows(n), *x = jot_array_shard(rows, m, "x");
    jot_array *zeros = jot_array_fill(JOT_F32, 0, (const int64_t[]){(int64_t)n * ROW, JOT_END});
    jot_array *y = jot_array_shard(zeros, m, "x");
    ck_assert_msg(x && y, "%s", jot_error_message());
    struct rt_team *team;
    jot_status status = load_team(m, 0, *trips, &team);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    const void *inputs[2 * MOST], *blocks[2 * MOST];
    void *outputs[2 * MOST];
    for (size_t d = 0; d < n; d++) {
        inputs[d] = rt_array_split(x)->pieces[d]->data;
        outputs[d] = rt_array_split(y)->pieces[d]->data;
    }
    do {
        status = rt_team_run(team, inputs, outputs);
        if (status == JOT_OK)
            status = jot_device_wait(jot_cuda(0));
        if (index == VICTIM % 2 && *trips > 1) {
            atomic_store(&shared->fell, clock_ns());
            raise(SIGKILL);
        }
    } while (status == JOT_OK && *trips > 1);
    job_note(index, status);
    if (status == JOT_OK) {
        jot_array *sums = jot_process_all_gather(y), *here = jot_array_to(sums, jot_host());
        ck_assert_msg(here != NULL, "%s", jot_error_message());
        float right[ROW];
        for (size_t d = 0; d < n; d++)
            blocks[d] = (const float *)jot_array_data(rows) + d * ROW;
        host_combine(COLLECTIVE_SUM, JOT_F32, n, blocks, 0, ROW, 1, (void *[]){right}, 0,
                     false);
        for (size_t d = 0; d < n; d++)
            ck_assert_int_eq(
                memcmp((const float *)jot_array_data(here) + d * ROW, right, sizeof right), 0);
        jot_array_release(sums);
        jot_array_release(here);
    } else {
        ck_assert_int_eq(jot_array_copy_out(rows, JOT_F32, (float[2 * MOST * ROW]){0}, n * ROW),
                         JOT_OK);
    }
    rt_team_release(team);
    jot_array_release(rows), jot_array_release(zeros);
    jot_array_release(x), jot_array_release(y);
}

START_TEST(test_gpus)
{
    int64_t trips = 1;
    struct test t = {.count = 2, .body = run_gpus, .ctx = &trips};
    job_run(&t);
    job_all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

START_TEST(test_dead_gpus)
{
    int64_t trips = 3;
    struct test t = {.count = 2, .body = run_gpus, .ctx = &trips};
    if (!getenv("JOT_TEST_GPUS") && !getenv("JOT_TEST_FAKE_CUDA"))
        return;
    job_start(&t);
    job_finish(&t, VICTIM % 2);
    job_all_are(&t, VICTIM % 2, JOT_ERR_DEVICE, "process 1 of 2", "has died");
}
END_TEST

// Without a job.
START_TEST(test_alone)
{
    struct rt_group all = rt_distributed_all();
    ck_assert_int_eq(jot_process_index(), 0);
    ck_assert_int_eq(jot_process_count(), 1);
    ck_assert_int_eq(all.count, 1);
    ck_assert_int_eq(jot_distributed_check(), JOT_OK);
    jot_distributed_stop();
    static const int both[] = {0, 1}, own[] = {0, 0, 0};
    ck_assert_int_eq(rt_distributed_barrier(&(struct rt_group){2, both}, "x"),
                     JOT_ERR_ARGUMENT);
    ck_assert_str_eq(jot_error_message(), "barrier x: there is no process 1, but 1");
    for (int kind = 0; kind < KINDS; kind++)
        check_one(0, (enum kind)kind, &(struct rt_group){3, own},
                  &(struct shape){{COLLECTIVE_SUM, JOT_F32}, 5000});
    jot_array *a = jot_array_fill(JOT_F32, 2, (const int64_t[]){3, JOT_END});
    ck_assert_ptr_null(jot_process_broadcast(a, 1));
    ck_assert_str_eq(jot_error_message(),
                     "jot_process_broadcast: root is 1: the processes are 0 to 0");
    jot_array_release(a);
}
END_TEST

static void add(TCase *t)
{
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_alone);
    tcase_add_test(t, test_collectives);
    tcase_add_test(t, test_types);
    tcase_add_test(t, test_large);
    tcase_add_test(t, test_arrays);
    tcase_add_test(t, test_pieces);
    tcase_add_test(t, test_team);
    tcase_add_test(t, test_gpus);
    tcase_add_test(t, test_dead_gpus);
}

int main(void) { return suite_run("distributed", add); }
