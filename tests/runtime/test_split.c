// SPDX-License-Identifier: Apache-2.0
// Meshes of parts of the host, and arrays in pieces on them.
#include "base/dtype.h"
#include "base/status.h"
#include "device_support.h"
#include "jot/parallel.h"
#include "runtime/mesh.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_RANK 4

static uint32_t draw;

static int random_below(int n)
{
    draw = draw * 1664525u + 1013904223u;
    return (int)((draw >> 8) % (uint32_t)n);
}

// A mesh of up to eight parts of the host, in any order.
static jot_mesh *random_mesh(void)
{
    static const char *const names[] = {"x", "y", "rows_of_all"};
    static const int sizes[] = {1, 2, 3, 4, 6, 8};
    jot_mesh_axis axes[3];
    jot_device *devices[8];
    size_t rank = 1 + (size_t)random_below(3), n = 1;
    for (size_t i = 0; i < rank; i++) {
        axes[i] =
            (jot_mesh_axis){names[i], rank == 1 ? sizes[random_below(6)] : 1 + random_below(2)};
        n *= (size_t)axes[i].size;
    }
    int first = random_below(8);
    for (size_t i = 0; i < n; i++)
        devices[i] = jot_host_device((first + 3 * (int)i) % 8);
    jot_mesh *m = jot_mesh_over(n, devices, rank, axes);
    ck_assert_msg(m, "%s", jot_error_message());
    return m;
}

// A text that gives each axis of the mesh to some dimension, or to none.
static void random_spec(const jot_mesh *m, int rank, char *out, size_t size)
{
    int dim_of[3];
    size_t n = 0;
    for (int axis = 0; axis < jot_mesh_rank(m); axis++)
        dim_of[axis] = random_below(rank + 1) - 1;
    out[0] = 0;
    bool is_backward = random_below(2);
    for (int dim = 0; dim < rank; dim++) {
        n += (size_t)snprintf(out + n, size - n, "%s", dim ? "," : "");
        for (int k = 0; k < jot_mesh_rank(m); k++) {
            int axis = is_backward ? jot_mesh_rank(m) - 1 - k : k;
            if (dim_of[axis] == dim)
                n += (size_t)snprintf(out + n, size - n, " %s", jot_mesh_axis_name(m, axis));
        }
    }
}

// Every size is one that each of these meshes divides.
static jot_array *random_array(void)
{
    static const jot_dtype dtypes[] = {JOT_I8, JOT_F16, JOT_I32, JOT_F64, JOT_C128};
    int64_t dims[MOST_RANK + 1];
    int rank = random_below(MOST_RANK);
    for (int i = 0; i < rank; i++)
        dims[i] = random_below(8) ? 24 * (1 + random_below(2)) : 0;
    dims[rank] = JOT_END;
    jot_array *a = jot_array_fill(dtypes[random_below(5)], 0, dims);
    for (size_t i = 0; i < a->bytes; i++)
        ((unsigned char *)a->data)[i] = (unsigned char)random_below(256);
    return a;
}

static void expect_same(jot_array *a, jot_array *b)
{
    const void *x = jot_array_data(a), *y = jot_array_data(b);
    ck_assert_msg(x && y, "%s", jot_error_message());
    ck_assert_uint_eq(jot_array_bytes(a), jot_array_bytes(b));
    ck_assert(!memcmp(x, y, jot_array_bytes(a)));
}

// Whether piece i has the elements of the whole that it is to have, one by one.
static void check_piece(jot_array *whole, jot_array *split, size_t i)
{
    int64_t start[MOST_RANK] = {0}, at[MOST_RANK] = {0};
    jot_array *piece = jot_array_shard_on(split, i);
    OK(jot_array_shard_start(split, i, start));
    ck_assert_ptr_eq(jot_array_device(piece), jot_mesh_device(jot_array_mesh(split), i));
    size_t size = dtype_get((jot_dtype)whole->dtype)->bytes, wrong = 0;
    for (size_t k = 0; k < jot_array_size(piece); k++) {
        int64_t rest = (int64_t)k, offset = 0;
        for (int axis = piece->rank; axis-- > 0; rest /= piece->dims[axis])
            at[axis] = rest % piece->dims[axis];
        for (int axis = 0; axis < piece->rank; axis++)
            offset = offset * whole->dims[axis] + start[axis] + at[axis];
        wrong += memcmp((const char *)piece->data + k * size,
                        (const char *)whole->data + (size_t)offset * size, size) != 0;
    }
    ck_assert_uint_eq(wrong, 0);
    jot_array_release(piece);
}

// Split, split otherwise on another mesh, made anew of its pieces, and put together.
START_TEST(pieces_are_those_of_the_whole)
{
    OK(jot_set_host_devices(8));
    for (uint32_t seed = 0; seed < 500; seed++) {
        draw = seed * 2654435761u;
        jot_array *a = random_array(), *last = jot_array_retain(a);
        for (int turn = 0; turn < 3; turn++) {
            char spec[200], text[200];
            jot_mesh *m = random_mesh();
            random_spec(m, a->rank, spec, sizeof spec);
            jot_array *s = jot_array_shard(last, m, spec);
            ck_assert_msg(s, "%s: %s", spec, jot_error_message());
            ck_assert_int_eq(jot_array_rank(s), a->rank);
            for (size_t i = 0; i < jot_mesh_size(m); i++)
                check_piece(a, s, i);
            // Its own text says the same.
            snprintf(text, sizeof text, "%s", jot_array_spec(s));
            jot_array *same = jot_array_shard(s, m, text);
            ck_assert_ptr_eq(same, s);
            jot_array *whole = jot_array_to(s, jot_host_device(5));
            expect_same(whole, a);
            expect_same(s, a);
            jot_array *pieces[8];
            for (size_t i = 0; i < jot_mesh_size(m); i++)
                pieces[i] = jot_array_shard_on(s, i);
            jot_array *again = jot_array_from_shards(m, text, jot_mesh_size(m), pieces);
            ck_assert_msg(again, "%s", jot_error_message());
            expect_same(again, a);
            jot_arrays_release(jot_mesh_size(m), pieces);
            jot_arrays_release(4, (jot_array *[]){last, same, whole, again});
            last = s;
        }
        jot_arrays_release(2, (jot_array *[]){a, last});
    }
    ck_assert_uint_eq(jot_memory().blocks, 0);
}
END_TEST

// Rows of a whole array of the host, and copies, take no memory.
START_TEST(rows_and_copies_are_not_copied)
{
    OK(jot_set_host_devices(4));
    jot_mesh *m = jot_mesh_of(JOT_HOST, {"i", 4});
    jot_array *a = jot_array_full(JOT_F32, 1, 1024, 256);
    size_t before = jot_memory().bytes;
    jot_array *rows = jot_array_shard(a, m, "i"), *copies = jot_array_shard(a, m, NULL);
    ck_assert_uint_lt(jot_memory().bytes - before, 8192);
    jot_array *columns = jot_array_shard(a, m, ",i");
    ck_assert_uint_ge(jot_memory().bytes - before, a->bytes);
    jot_arrays_release(4, (jot_array *[]){a, rows, copies, columns});
}
END_TEST

START_TEST(meshes_are_one)
{
    OK(jot_set_host_devices(4));
    jot_mesh *m = jot_mesh_of(JOT_HOST, {"x", 2}, {"y", 0});
    jot_device *devices[] = {jot_host_device(0), jot_host_device(1), jot_host_device(2),
                             jot_host_device(3)};
    ck_assert_ptr_nonnull(m);
    ck_assert_ptr_eq(m, jot_mesh_over(4, devices, 2, (jot_mesh_axis[]){{"x", 2}, {"y", 2}}));
    ck_assert_ptr_ne(m, jot_mesh_over(4, devices, 2, (jot_mesh_axis[]){{"y", 2}, {"x", 2}}));
    ck_assert_int_eq(jot_mesh_axis_size(m, "y"), 2);
    ck_assert_int_eq(jot_mesh_axis_size(m, "z"), 0);
    ck_assert_str_eq(jot_mesh_axis_name(m, 1), "y");
    ck_assert_ptr_eq(jot_mesh_device(m, 3), devices[3]);
    char text[200];
    jot_mesh_format(m, text, sizeof text);
    ck_assert_str_eq(text, "mesh x 2, y 2\n  host:0 host:1\n  host:2 host:3\n");
    jot_array *coordinates = rt_mesh_coordinates(m);
    for (size_t i = 0; i < 4; i++) {
        jot_array *own = jot_array_shard_on(coordinates, i);
        ck_assert_int_eq(((const int32_t *)own->data)[0], (int)i / 2);
        ck_assert_int_eq(((const int32_t *)own->data)[1], (int)i % 2);
        jot_array_release(own);
    }
}
END_TEST

#define REFUSES(call, wanted_status, part)                                                     \
    do {                                                                                       \
        status_forget_nulls();                                                                 \
        ck_assert_ptr_null(call);                                                              \
        ck_assert_int_eq(status_last(), wanted_status);                                        \
        ck_assert_msg(strstr(jot_error_message(), part), "%s", jot_error_message());           \
    } while (0)

START_TEST(says_what_would_fit)
{
    OK(jot_set_host_devices(4));
    jot_device *devices[] = {jot_host_device(0), jot_host_device(1), jot_host_device(0),
                             jot_cuda(0)};
    REFUSES(jot_mesh_of(JOT_HOST, {"i", 8}), JOT_ERR_DEVICE,
            "a mesh of 8 devices (i 8), but the host is 4: JOT_HOST_DEVICES=8");
    REFUSES(jot_mesh_of(JOT_HOST, {"i", 0}, {"j", 0}), JOT_ERR_ARGUMENT, "axes i and j");
    REFUSES(jot_mesh_of(JOT_HOST, {"i", 2}, {"i", 2}), JOT_ERR_ARGUMENT, "two axes");
    REFUSES(jot_mesh_of(JOT_HOST, {"2i", 2}), JOT_ERR_ARGUMENT, "'2i'");
    REFUSES(jot_mesh_of(JOT_HOST, {"i", -1}), JOT_ERR_ARGUMENT, "-1 devices");
    REFUSES(jot_mesh_of(JOT_HOST, {"i", 1 << 20}), JOT_ERR_ARGUMENT, "1048576");
    REFUSES(jot_mesh_over(3, devices, 1, (jot_mesh_axis[]){{"i", 3}}), JOT_ERR_ARGUMENT,
            "host:0 is in the mesh twice");
    REFUSES(jot_mesh_over(2, devices + 2, 1, (jot_mesh_axis[]){{"i", 2}}), JOT_ERR_ARGUMENT,
            "host:0 and cuda:0 are of different kinds");
    REFUSES(jot_mesh_over(2, devices, 1, (jot_mesh_axis[]){{"i", 3}}), JOT_ERR_ARGUMENT,
            "a mesh of 3 devices of 2");
    jot_mesh *m = jot_mesh_of(JOT_HOST, {"i", 2}, {"j", 2});
    jot_array *a = jot_array_full(JOT_F32, 1, 10, 4);
    REFUSES(
        jot_array_shard(a, m, "i j"), JOT_ERR_SHAPE,
        "dimension 0 of f32[10,4] has 10 elements, which 4 devices (i 2, j 2) do not divide: "
        "8 or 12 would fit, or 2 devices");
    REFUSES(jot_array_shard(a, m, "k"), JOT_ERR_ARGUMENT, "no axis k, only i 2, j 2");
    REFUSES(jot_array_shard(a, m, "i, i"), JOT_ERR_ARGUMENT, "dimensions 0 and 1");
    REFUSES(jot_array_shard(a, m, "i i"), JOT_ERR_ARGUMENT, "axis i splits dimension 0 twice");
    REFUSES(jot_array_to(a, jot_host_device(-1)), JOT_ERR_DEVICE, "host:? is not there");
    REFUSES(jot_array_shard(a, m, "_, _, j"), JOT_ERR_ARGUMENT, "dimension 2 of an array of 2");
    REFUSES(jot_array_shard(a, m, "_, _, _"), JOT_ERR_ARGUMENT,
            "\"_, _, _\" splits more than the 2 dimensions of the array");
    REFUSES(jot_array_shard(a, m, ", , ,"), JOT_ERR_ARGUMENT, "splits more than the 2");
    REFUSES(jot_array_shard(a, m, "_ i"), JOT_ERR_ARGUMENT, "\"_ i\" has _ beside an axis");
    REFUSES(jot_array_shard(a, NULL, ""), JOT_ERR_ARGUMENT, "mesh is NULL");
    REFUSES(jot_array_shard(NULL, m, ""), JOT_ERR_ARGUMENT, "array is NULL");
    jot_array *s = jot_array_shard(a, m, "i"), *p[4];
    for (size_t i = 0; i < 4; i++)
        p[i] = jot_array_shard_on(s, i);
    jot_array *swapped[] = {p[0], p[2], p[1], p[3]};
    REFUSES(jot_array_from_shards(m, "i", 4, swapped), JOT_ERR_ARGUMENT,
            "piece 1 is on host:2, and the mesh has host:1 there");
    REFUSES(jot_array_from_shards(m, "i", 3, p), JOT_ERR_ARGUMENT, "3 pieces for a mesh of 4");
    jot_array *larger = jot_array_to(a, jot_host_device(1));
    jot_array *uneven[] = {p[0], larger, p[2], p[3]};
    REFUSES(jot_array_from_shards(m, "i", 4, uneven), JOT_ERR_SHAPE, "piece 1 has other sizes");
    REFUSES(jot_array_shard_on(s, 4), JOT_ERR_ARGUMENT, "piece 4 of an array of 4");
    OK(jot_set_host_devices(2));
    REFUSES(jot_array_shard(a, m, "i"), JOT_ERR_DEVICE, "host:2 is not there");
    jot_arrays_release(4, p);
    jot_arrays_release(3, (jot_array *[]){a, s, larger});
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, pieces_are_those_of_the_whole);
    tcase_add_test(tests, rows_and_copies_are_not_copied);
    tcase_add_test(tests, meshes_are_one);
    tcase_add_test(tests, says_what_would_fit);
}

int main(void) { return suite_run("split", add); }
