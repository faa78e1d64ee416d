// SPDX-License-Identifier: Apache-2.0
// Tensors of DLPack in and out, on the host and, over the fake driver, on a GPU.
#include "interop/dlpack_abi.h"
#include "jot/jot.h"
#include "runtime/array.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static int deleted;

static void count_deleted(DLManagedTensorVersioned *t)
{
    deleted++;
    t->manager_ctx = NULL;
}

static void count_deleted_unversioned(DLManagedTensor *t)
{
    deleted++;
    t->manager_ctx = NULL;
}

static float numbers[24] __attribute__((aligned(64)));
static int64_t shape[3] = {2, 3, 4}, strides[3] = {12, 4, 1};

static DLTensor tensor_of_numbers(void)
{
    DLTensor t = {.data = numbers, .ndim = 3, .shape = shape};
    t.device.type = DL_CPU;
    t.dtype.code = DL_FLOAT;
    t.dtype.bits = 32;
    t.dtype.lanes = 1;
    for (int i = 0; i < 24; i++)
        numbers[i] = (float)i;
    return t;
}

static DLManagedTensorVersioned versioned(DLTensor t)
{
    DLManagedTensorVersioned v = {.deleter = count_deleted, .dl_tensor = t};
    v.version.major = 1;
    return v;
}

START_TEST(takes_tensors)
{
    DLTensor t = tensor_of_numbers();
    for (int with_strides = 0; with_strides < 2; with_strides++) {
        t.strides = with_strides ? strides : NULL;
        deleted = 0;
        DLManagedTensorVersioned v = versioned(t);
        jot_array *a = jot_array_from_dlpack(&v);
        ck_assert_msg(a, "%s", jot_error_message());
        ck_assert_ptr_eq(jot_array_data(a), numbers);
        ck_assert_int_eq(jot_array_rank(a), 3);
        ck_assert_int_eq(jot_array_dtype(a), JOT_F32);
        ck_assert_int_eq(jot_array_dim(a, 1), 3);
        ck_assert_int_eq(deleted, 0);
        jot_array_release(a);
        ck_assert_int_eq(deleted, 1);
        DLManagedTensor old = {.dl_tensor = t, .deleter = count_deleted_unversioned};
        a = jot_array_from_dlpack_unversioned(&old);
        ck_assert_msg(a, "%s", jot_error_message());
        jot_array_release(a);
        ck_assert_int_eq(deleted, 2);
    }
    // What starts behind the data, and what nobody deletes.
    t.byte_offset = 48;
    shape[0] = 1;
    strides[0] = 1000; // of one element: any
    DLManagedTensorVersioned v = versioned(t);
    v.deleter = NULL;
    jot_array *a = jot_array_from_dlpack(&v);
    ck_assert_msg(a, "%s", jot_error_message());
    ck_assert_float_eq(((const float *)jot_array_data(a))[0], 12);
    jot_array_release(a);
    shape[0] = 2;
    strides[0] = 12;
}
END_TEST

static void expect_refusal(DLManagedTensorVersioned v, const char *part)
{
    deleted = 0;
    ck_assert_ptr_null(jot_array_from_dlpack(&v));
    ck_assert_msg(strstr(jot_error_message(), part), "%s", jot_error_message());
    ck_assert_int_eq(deleted, 0);
}

START_TEST(refuses_tensors)
{
    DLManagedTensorVersioned good = versioned(tensor_of_numbers()), v;
    int64_t turned[3] = {1, 2, 6};
    v = good;
    v.version.major = 2;
    expect_refusal(v, "version");
    v = good;
    v.dl_tensor.strides = turned;
    expect_refusal(v, "dense");
    v = good;
    v.dl_tensor.dtype.lanes = 4;
    expect_refusal(v, "dtype");
    v = good;
    v.dl_tensor.dtype.bits = 128;
    expect_refusal(v, "dtype");
    v = good;
    v.dl_tensor.dtype.code = 3;
    expect_refusal(v, "dtype");
    v = good;
    v.dl_tensor.device.type = 8;
    expect_refusal(v, "device");
    v = good;
    v.dl_tensor.ndim = 100;
    expect_refusal(v, "axes");
    v = good;
    v.dl_tensor.byte_offset = 2;
    expect_refusal(v, "aligned");
    ck_assert_ptr_null(jot_array_from_dlpack(NULL));
    ck_assert_ptr_null(jot_array_from_dlpack_unversioned(NULL));
}
END_TEST

START_TEST(takes_empty_and_scalar_tensors)
{
    DLTensor t = tensor_of_numbers();
    int64_t empty[2] = {0, 5}, odd[2] = {7, 7};
    t.data = NULL;
    t.ndim = 2;
    t.shape = empty;
    t.strides = odd;
    DLManagedTensorVersioned v = versioned(t);
    jot_array *a = jot_array_from_dlpack(&v);
    ck_assert_msg(a, "%s", jot_error_message());
    ck_assert_int_eq(jot_array_size(a), 0);
    jot_array_release(a);
    t = tensor_of_numbers();
    t.ndim = 0;
    v = versioned(t);
    a = jot_array_from_dlpack(&v);
    ck_assert_msg(a, "%s", jot_error_message());
    ck_assert_double_eq(jot_array_item(a), 0);
    jot_array_release(a);
}
END_TEST

START_TEST(gives_tensors)
{
    jot_array *a = jot_array_from(((double[]){1, 2, 3, 4, 5, 6}), 2, 3);
    DLManagedTensorVersioned *v;
    DLManagedTensor *old;
    ck_assert_int_eq(jot_array_to_dlpack(a, &v), JOT_OK);
    ck_assert_int_eq(jot_array_to_dlpack_unversioned(a, &old), JOT_OK);
    ck_assert(!rt_array_is_unique(a));
    jot_array_release(a);
    ck_assert_uint_eq(v->version.major, 1);
    ck_assert_uint_eq(v->flags & DLPACK_READ_ONLY, DLPACK_READ_ONLY);
    const DLTensor *both[] = {&v->dl_tensor, &old->dl_tensor};
    for (int i = 0; i < 2; i++) {
        const DLTensor *t = both[i];
        ck_assert_int_eq(t->ndim, 2);
        ck_assert_int_eq(t->shape[0], 2);
        ck_assert_int_eq(t->shape[1], 3);
        ck_assert_int_eq(t->strides[0], 3);
        ck_assert_int_eq(t->strides[1], 1);
        ck_assert_int_eq(t->device.type, DL_CPU);
        ck_assert_int_eq(t->dtype.code, DL_FLOAT);
        ck_assert_int_eq(t->dtype.bits, 64);
        ck_assert_double_eq(((const double *)t->data)[5], 6);
    }
    // There and back is the same memory.
    const void *data = v->dl_tensor.data;
    jot_array *back = jot_array_from_dlpack(v);
    ck_assert_msg(back, "%s", jot_error_message());
    ck_assert_ptr_eq(jot_array_data(back), data);
    old->deleter(old);
    ck_assert_double_eq(((const double *)jot_array_data(back))[0], 1);
    jot_array_release(back); // deletes v, and with it the first array
    ck_assert_int_eq(jot_array_to_dlpack(NULL, &v), JOT_ERR_ARGUMENT);
    ck_assert_uint_eq(jot_memory().blocks, 0);
}
END_TEST

START_TEST(knows_all_dtypes)
{
    for (int d = JOT_BOOL; jot_dtype_name((jot_dtype)d) && jot_dtype_size((jot_dtype)d); d++) {
        jot_array *a = jot_array_full((jot_dtype)d, 1, 5);
        DLManagedTensorVersioned *v;
        ck_assert_int_eq(jot_array_to_dlpack(a, &v), JOT_OK);
        jot_array *b = jot_array_from_dlpack(v);
        ck_assert_msg(b, "%d: %s", d, jot_error_message());
        ck_assert_int_eq(jot_array_dtype(b), d);
        jot_array_release(a);
        jot_array_release(b);
        if (d == JOT_C128)
            break;
    }
}
END_TEST

static jot_value twice(jot_value x) { return jot_mul(2, x); }

// An array that another library may read is not overwritten, though it is donated.
START_TEST(is_not_overwritten)
{
    jot_array *a = jot_array_full(JOT_F32, 3, 1000), *y;
    DLManagedTensorVersioned *v;
    ck_assert_int_eq(jot_array_to_dlpack(a, &v), JOT_OK);
    jot_executable *f = jot_jit(jot_fn(twice), .donate = (int[]){0, JOT_END});
    ck_assert_msg(jot_call(f, JOT_IN(a), JOT_OUT(y)) == JOT_OK, "%s", jot_error_message());
    ck_assert_float_eq(((const float *)v->dl_tensor.data)[999], 3);
    ck_assert_float_eq(((const float *)jot_array_data(y))[999], 6);
    v->deleter(v);
    jot_array_release(a);
    jot_array_release(y);
    jot_executable_release(f);
}
END_TEST

START_TEST(works_on_a_gpu)
{
    if (getenv("JOT_TEST_FAKE_CUDA")) // else one that is there
        setenv("JOT_CUDA_LIBRARIES", getenv("JOT_TEST_FAKE_CUDA"), 1);
    jot_array *here = jot_array_from(((float[]){1, 2, 3}), 3);
    jot_array *there = jot_array_to(here, jot_cuda(0));
    ck_assert_msg(there, "%s", jot_error_message());
    DLManagedTensorVersioned *v;
    ck_assert_int_eq(jot_array_to_dlpack(there, &v), JOT_OK);
    ck_assert_int_eq(v->dl_tensor.device.type, DL_CUDA);
    ck_assert_int_eq(v->dl_tensor.device.id, 0);
    ck_assert_ptr_eq(v->dl_tensor.data, jot_array_device_data(there));
    jot_array *back = jot_array_from_dlpack(v);
    ck_assert_msg(back, "%s", jot_error_message());
    ck_assert_ptr_eq(jot_array_device(back), jot_cuda(0));
    ck_assert_ptr_eq(jot_array_device_data(back), jot_array_device_data(there));
    jot_array_release(there);
    ck_assert_float_eq(((const float *)jot_array_data(back))[2], 3);
    jot_array_release(back);
    jot_array_release(here);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, takes_tensors);
    tcase_add_test(t, refuses_tensors);
    tcase_add_test(t, takes_empty_and_scalar_tensors);
    tcase_add_test(t, gives_tensors);
    tcase_add_test(t, knows_all_dtypes);
    tcase_add_test(t, is_not_overwritten);
    tcase_add_test(t, works_on_a_gpu);
}

int main(void) { return suite_run("dlpack", add_tests); }
