// SPDX-License-Identifier: Apache-2.0
// Batches of rows: their order, epochs, ends, and going on from any of them.
#include "base/memory.h"
#include "interop/folder.h"
#include "jot/jot.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

enum { ROWS = 23, MOST = 4096 };

static jot_array *data[2]; // row i is {i, i + 0.5} and -i

static void set_up(void)
{
    float x[ROWS][2];
    int32_t y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        x[i][0] = (float)i, x[i][1] = (float)i + 0.5f;
        y[i] = -i;
    }
    data[0] = jot_array_from(*x, ROWS, 2);
    data[1] = jot_array_from(y, ROWS);
}

static void tear_down(void)
{
    jot_arrays_release(JOT_OUT(data));
    ck_assert_uint_eq(jot_memory().blocks, 0);
}

// The rows of the next batch, which both arrays agree on; 0 at the end.
static int64_t next_rows(jot_loader *l, int *rows)
{
    jot_array *batch[2];
    ck_assert_msg(jot_loader_next(l, JOT_OUT(batch)) == JOT_OK, "%s", jot_error_message());
    int64_t n = jot_array_dim(batch[0], 0);
    const float *x = jot_array_data(batch[0]);
    const int32_t *y = jot_array_data(batch[1]);
    ck_assert(!batch[0] == !batch[1] && jot_array_dim(batch[1], 0) == n);
    for (int64_t i = 0; i < n; i++) {
        rows[i] = (int)x[2 * i];
        ck_assert(x[2 * i + 1] == x[2 * i] + 0.5f && y[i] == -rows[i]);
    }
    jot_arrays_release(JOT_OUT(batch));
    return n;
}

// All rows up to the end, and the lengths of batches.
static int all_rows(jot_loader *l, int *rows, char *lengths)
{
    int n = 0;
    ck_assert_msg(l != NULL, "%s", jot_error_message());
    for (int64_t more; (more = next_rows(l, rows + n)); n += (int)more) {
        *lengths++ = (char)('0' + more);
        ck_assert_int_lt(n, MOST - 10);
    }
    *lengths = 0;
    jot_loader_release(l);
    return n;
}

START_TEST(batches_come_in_order)
{
    int rows[MOST];
    char lengths[100];
    jot_loader *l = jot_loader_create(data, 5, .epochs = 2);
    ck_assert_int_eq(jot_loader_batches(l), 5);
    ck_assert_int_eq(all_rows(l, rows, lengths), 2 * ROWS);
    ck_assert_str_eq(lengths, "5555355553");
    for (int i = 0; i < 2 * ROWS; i++)
        ck_assert_int_eq(rows[i], i % ROWS);
    l = jot_loader_create(data, 5, .epochs = 2, .drop_last = true, .ahead = 7);
    ck_assert_int_eq(jot_loader_batches(l), 4);
    ck_assert_int_eq(all_rows(l, rows, lengths), 40);
    ck_assert_str_eq(lengths, "55555555");
    ck_assert_int_eq(rows[20], 0);
}
END_TEST

START_TEST(epochs_are_permutations)
{
    int a[MOST], b[MOST], seen[3][ROWS] = {{0}}, n_same = 0;
    char lengths[100];
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            all_rows(jot_loader_create(data, 5, .epochs = 3, .shuffle = true, .seed = 7),
                     i ? b : a, lengths),
            3 * ROWS);
    ck_assert_int_eq(memcmp(a, b, 3 * ROWS * sizeof *a), 0);
    for (int i = 0; i < 3 * ROWS; i++)
        ck_assert_int_eq(seen[i / ROWS][a[i]]++, 0);
    for (int i = 0; i < ROWS; i++)
        n_same += (a[i] == a[i + ROWS]) + (a[i] == i);
    all_rows(jot_loader_create(data, 5, .epochs = 1, .shuffle = true, .seed = 8), b, lengths);
    for (int i = 0; i < ROWS; i++)
        n_same += a[i] == b[i];
    ck_assert_int_lt(n_same, 12); // three are expected
}
END_TEST

// Where row r comes in epochs without number: chi square of 25 counts with 16 degrees of
// freedom.
START_TEST(all_places_are_as_likely)
{
    enum { FEW = 5, EPOCHS = 4000 };
    int32_t numbers[FEW] = {0, 1, 2, 3, 4};
    int counts[FEW][FEW] = {{0}};
    jot_array *few[] = {jot_array_from(numbers, FEW)}, *batch[1];
    jot_loader *l = jot_loader_create(few, FEW, .shuffle = true, .seed = (uint64_t)_i);
    for (int i = 0; i < EPOCHS; i++) {
        ck_assert_int_eq(jot_loader_next(l, JOT_OUT(batch)), JOT_OK);
        for (int k = 0; k < FEW; k++)
            counts[k][((const int32_t *)jot_array_data(batch[0]))[k]]++;
        jot_arrays_release(JOT_OUT(batch));
    }
    double chi = 0, expected = EPOCHS / FEW;
    for (int i = 0; i < FEW; i++)
        for (int k = 0; k < FEW; k++)
            chi += (counts[i][k] - expected) * (counts[i][k] - expected) / expected;
    ck_assert_msg(chi < 45, "chi square is %g", chi); // above once in 10000 times
    jot_loader_release(l);
    jot_arrays_release(JOT_OUT(few));
}
END_TEST

START_TEST(goes_on_from_any_batch)
{
    int rows[MOST], again[MOST];
    char lengths[100];
    int n = all_rows(jot_loader_create(data, 4, .epochs = 3, .shuffle = true), rows, lengths);
    for (int first = 0; first <= 18; first++) {
        jot_loader *l =
            jot_loader_create(data, 4, .epochs = 3, .shuffle = true, .first = first);
        ck_assert_int_eq(jot_loader_position(l), first);
        int skipped = first / 6 * ROWS + first % 6 * 4;
        ck_assert_int_eq(all_rows(l, again, lengths), n - skipped);
        ck_assert_int_eq(memcmp(rows + skipped, again, (size_t)(n - skipped) * sizeof *rows),
                         0);
    }
}
END_TEST

// Rows of a file that is mapped; without an end, left in the middle.
START_TEST(reads_files)
{
    jot_array *batch[2], *mapped[2];
    int rows[MOST];
    folder_make();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(jot_array_save(folder_path(i ? "y" : "x"), data[i]), JOT_OK);
        mapped[i] = jot_array_map(folder_path(i ? "y" : "x"));
    }
    jot_loader *l = jot_loader_create(mapped, 6, .shuffle = true, .ahead = 4);
    jot_arrays_release(JOT_OUT(mapped));
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(next_rows(l, rows), i % 4 == 3 ? 5 : 6);
    ck_assert_int_eq(jot_loader_position(l), 100);
    ck_assert_int_eq(jot_loader_next(l, 1, batch), JOT_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "n is 1, and a batch has 2 arrays"));
    jot_loader_release(l);
    folder_remove();
}
END_TEST

static void refuses(jot_loader *l, const char *message)
{
    ck_assert_ptr_null(l);
    ck_assert_msg(strstr(jot_error_message(), message) != NULL, "'%s' is not '%s'",
                  jot_error_message(), message);
}

START_TEST(says_what_is_wrong)
{
    jot_array *other[] = {data[0], jot_array_full(JOT_F32, 1, ROWS + 1)};
    jot_array *scalar[] = {jot_array_full(JOT_F32, 1)}, *none[] = {NULL};
    refuses(jot_loader_create(other, 5),
            "array 1 has not as many rows as the first, which has 23");
    refuses(jot_loader_create(scalar, 5), "array 0 has not as many rows");
    refuses(jot_loader_create(none, 5), "array 0 is NULL");
    refuses(jot_loader_create(data, 0), "batch is 0");
    refuses(jot_loader_create(data, 24, .drop_last = true), "of 23 rows no batch has 24");
    refuses(jot_loader_create(data, 5, .epochs = -1), "epochs is -1");
    refuses(jot_loader_create(data, 5, .first = -2), "first is -2");
    refuses(jot_loader_create(data, 5, .ahead = 1025), "ahead is 1025: 0 to 1024");
    jot_array_release(other[1]);
    jot_arrays_release(JOT_OUT(scalar));
}
END_TEST

START_TEST(survives_lack_of_memory)
{
    int64_t blocks = memory_live_blocks();
    jot_loader *l = NULL;
    for (uint64_t n = 1; !l; n++) {
        memory_fail_after(n);
        l = jot_loader_create(data, 5, .shuffle = true);
        memory_fail_after(0);
        ck_assert(l ||
                  (strstr(jot_error_message(), "memory") && memory_live_blocks() == blocks));
    }
    jot_loader_release(l);
    ck_assert_int_eq(memory_live_blocks(), blocks);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, batches_come_in_order);
    tcase_add_test(t, epochs_are_permutations);
    tcase_add_loop_test(t, all_places_are_as_likely, 0, 3);
    tcase_add_test(t, goes_on_from_any_batch);
    tcase_add_test(t, reads_files);
    tcase_add_test(t, says_what_is_wrong);
    tcase_add_test(t, survives_lack_of_memory);
}

int main(void) { return suite_run("batches", add_tests); }
