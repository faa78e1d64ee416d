// SPDX-License-Identifier: Apache-2.0
// Devices and arrays over the driver of fake_cuda, and what is said where there is no driver.
#include "cuda_support.h"
#include "runtime/cuda/device.h"
#include "runtime/routine.h"
#include "support/suite.h"

#include <math.h>

_Static_assert(sizeof(CUlaunchAttribute) == 72, "CUlaunchAttribute");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");
_Static_assert(sizeof(CUgraphNodeParams) == 256, "CUgraphNodeParams");
_Static_assert(offsetof(CUgraphNodeParams, conditional.phGraph_out) == 32, "CUgraphNodeParams");
_Static_assert(sizeof(CUmemPoolProps) == 88, "CUmemPoolProps");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96,
               "cublasLtMatmulHeuristicResult_t");
_Static_assert(offsetof(CUlaunchConfig, hStream) == 32, "CUlaunchConfig");
_Static_assert(offsetof(CUlaunchAttribute, value.clusterDim.y) == 12, "CUlaunchAttribute");
_Static_assert(offsetof(CUmemPoolProps, location.id) == 12, "CUmemPoolProps");

// ---- drivers ----

START_TEST(names_a_missing_driver)
{
    setenv("JOT_CUDA_LIBRARIES", "/nonexistent", 1);
    if (jot_device_count(JOT_CUDA) > 0)
        return; // a machine with a GPU
    ck_assert(*jot_error_message());
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE, "CUDA driver");
    expect(jot_device_wait(jot_cuda(0)), JOT_ERR_DEVICE, "CUDA driver");
    ck_assert_ptr_null(jot_array_to(jot_array_full(JOT_F32, 1, 3), jot_cuda(0)));
    ck_assert_str_eq(jot_device_name(jot_cuda(0)), "cuda:0");
    ck_assert(strstr(jot_error_message(), "CUDA driver"));
    OK(jot_device_check(jot_host()));
    char text[8192];
    int n = jot_devices_format(text, sizeof text);
    ck_assert_int_eq(n, (int)strlen(text));
    ck_assert(strstr(text, "host") && strstr(text, "CUDA driver") && strstr(text, "cuBLAS"));
    ck_assert_int_eq(jot_devices_format(text, 5), n);
    ck_assert_uint_eq(strlen(text), 4);
}
END_TEST

START_TEST(tells_links)
{
    char text[8192];
    use_fake(_i ? "FAKE_CUDA_NO_PEERS" : NULL, "1");
    setenv("FAKE_CUDA_COUNT", "3", 1);
    jot_devices_format(text, sizeof text);
    ck_assert_msg(
        strstr(text, _i ? "cuda:0       links: by the host to cuda:1, cuda:2\n"
                        : "cuda:0       links: NVLink to cuda:1; peer access to cuda:2\n"),
        "%s", text);
}
END_TEST

START_TEST(names_an_old_driver)
{
    use_fake("FAKE_CUDA_VERSION", "11040");
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE,
           "too old: it is of CUDA 11.4, and jot needs 12.4");
    ck_assert_int_eq(jot_device_count(JOT_CUDA), 0);
}
END_TEST

START_TEST(names_a_driver_without_gpu)
{
    use_fake("FAKE_CUDA_COUNT", "0");
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE, "finds no GPU");
}
END_TEST

START_TEST(names_a_driver_that_does_not_start)
{
    use_fake("FAKE_CUDA_INIT", "803");
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
}
END_TEST

START_TEST(names_an_entry_point_that_is_missing)
{
    setenv("JOT_CUDA_LIBRARIES", getenv("JOT_TEST_LACKING_CUDA"), 1);
    expect(jot_device_check(jot_cuda(0)), JOT_ERR_DEVICE, "it has no cuInit");
    expect(cuda_library_open(CUDA_LIBRARY_nvjitlink), JOT_ERR_LIBRARY, "nvJitLinkVersion");
}
END_TEST

START_TEST(lists_devices)
{
    use_fake("FAKE_CUDA_COUNT", "2");
    ck_assert_int_eq(jot_device_count(JOT_CUDA), 2);
    ck_assert_int_eq(jot_device_count(JOT_HOST), 1);
    OK(jot_device_check(jot_cuda(0)));
    OK(jot_device_check(jot_cuda(1)));
    expect(jot_device_check(jot_cuda(2)), JOT_ERR_DEVICE, "cuda:2 is not there: this machine");
    expect(jot_device_check(jot_cuda(-1)), JOT_ERR_DEVICE, "is not there");
    expect(jot_device_check(jot_cuda(1000)), JOT_ERR_DEVICE, "is not there");
    ck_assert_int_eq(jot_device_kind_of(jot_cuda(1)), JOT_CUDA);
    ck_assert_int_eq(jot_device_kind_of(jot_host()), JOT_HOST);
    char text[8192];
    jot_devices_format(text, sizeof text);
    ck_assert_msg(strstr(text, "cuda:1       Fake GPU 1, 1.0 GiB, 4 multiprocessors, compute "
                               "capability 9.0"),
                  "%s", text);
    ck_assert_msg(strstr(text, "nvJitLink    99.1"), "%s", text);
}
END_TEST

START_TEST(chooses_the_default_device)
{
    use_fake("JOT_DEVICE", "cuda:1");
    setenv("FAKE_CUDA_COUNT", "2", 1);
    ck_assert_ptr_eq(jot_default_device(), jot_cuda(1));
    jot_array *a = jot_array_full(JOT_F32, 3, 4);
    ck_assert_ptr_eq(jot_array_device(a), jot_cuda(1));
    jot_set_default_device(jot_host());
    ck_assert_ptr_eq(jot_default_device(), jot_host());
    jot_set_default_device(NULL);
    ck_assert_ptr_eq(jot_default_device(), jot_cuda(1));
    ck_assert_float_eq(((const float *)jot_array_data(a))[3], 3);
    jot_array_release(a);
}
END_TEST

// ---- arrays ----

START_TEST(moves_arrays)
{
    static const int64_t sizes[] = {0, 1, 3, 1000, 300000, 5000001};
    use_fake("FAKE_CUDA_COUNT", "2");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t n = sizes[i];
        jot_array *a = ramp(n), *b = jot_array_to(a, jot_cuda(0));
        jot_array *c = jot_array_to(b, jot_cuda(1)), *d = jot_array_to(c, jot_host());
        jot_array *same = jot_array_to(b, jot_cuda(0));
        ck_assert_msg(b && c && d, "%s", jot_error_message());
        ck_assert_ptr_eq(same, b);
        ck_assert_ptr_eq(jot_array_device(c), jot_cuda(1));
        ck_assert_ptr_eq(jot_array_device(d), jot_host());
        ck_assert_int_eq(memcmp(d->data, a->data, a->bytes), 0);
        OK(jot_array_wait(c));
        float *out = malloc(a->bytes + 4);
        OK(jot_array_read(c, out, (size_t)n));
        ck_assert_int_eq(memcmp(out, a->data, a->bytes), 0);
        const void *mirror = jot_array_data(c);
        ck_assert_int_eq(memcmp(mirror, a->data, a->bytes), 0);
        ck_assert_ptr_eq(jot_array_data(c), mirror);
        free(out);
        jot_arrays_release(5, (jot_array *[]){a, b, c, d, same});
    }
    expect_no_blocks();
    jot_device_memory_use use;
    OK(jot_device_memory(jot_cuda(0), &use));
    ck_assert_uint_eq(use.used, 0);
    ck_assert_uint_eq(use.total, 1u << 30);
}
END_TEST

START_TEST(shows_arrays)
{
    use_fake(NULL, NULL);
    jot_set_default_device(jot_cuda(0));
    jot_array *a = jot_array_from(((double[]){1, 2, 3}), 3);
    jot_array *b = jot_array_from(((bool[]){true, false}), 2), *c = jot_array_full(JOT_I32, 7);
    char text[100];
    jot_array_format(a, text, sizeof text);
    ck_assert_str_eq(text, "[1. 2. 3.]");
    jot_array_format(b, text, sizeof text);
    ck_assert_str_eq(text, "[ true false]");
    ck_assert_double_eq(jot_array_item(c), 7);
    ck_assert(isnan(jot_array_item(a)));
    expect(jot_array_copy_out(a, JOT_F32, text, 3), JOT_ERR_DTYPE, NULL);
    expect(jot_array_copy_out(a, JOT_F64, text, 2), JOT_ERR_SHAPE, NULL);
    jot_arrays_release(3, (jot_array *[]){a, b, c});
    expect_no_blocks();
}
END_TEST

static void note(const void *data, void *ctx)
{
    (void)data;
    ++*(int *)ctx;
}

START_TEST(borrows_memory_of_a_gpu)
{
    use_fake(NULL, NULL);
    int released = 0;
    jot_array *a = ramp(10), *b = jot_array_to(a, jot_cuda(0));
    jot_array *view =
        jot_array_borrow_on(jot_cuda(0), JOT_F32, (const char *)jot_array_device_data(b) + 8,
                            (int64_t[]){2, 4, JOT_END}, note, &released);
    ck_assert_msg(view, "%s", jot_error_message());
    ck_assert_float_eq(((const float *)jot_array_data(view))[7], 9);
    jot_array_release(view);
    ck_assert_int_eq(released, 1);
    ck_assert_ptr_null(
        jot_array_borrow_on(jot_cuda(5), JOT_F32, a, (int64_t[]){JOT_END}, note, &released));
    ck_assert_int_eq(released, 1);
    jot_arrays_release(2, (jot_array *[]){a, b});
}
END_TEST

START_TEST(keeps_memory_for_reuse)
{
    use_fake(NULL, NULL);
    jot_device *d = jot_cuda(0);
    for (size_t bytes = 0; bytes < (size_t)1 << 20; bytes += bytes / 7 + 1) {
        jot_device_memory_use use;
        void *a, *b;
        OK(cuda_allocate(d, bytes, "a", &a));
        OK(cuda_memory(d, &use));
        size_t taken = use.total - use.free;
        ck_assert_uint_ge(taken, bytes);
        ck_assert_uint_le(taken, bytes + bytes / 8 + 512);
        ck_assert_uint_eq(use.used, bytes);
        cuda_release(d, a, bytes);
        OK(cuda_allocate(d, bytes, "b", &b));
        ck_assert_ptr_eq(a, b);
        cuda_release(d, b, bytes);
        expect_no_blocks();
    }
}
END_TEST

START_TEST(goes_on_when_memory_is_out)
{
    use_fake("FAKE_CUDA_MEMORY", "10000");
    jot_array *a = ramp(2000), *b = jot_array_to(a, jot_cuda(0)), *c;
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_null(jot_array_to(a, jot_cuda(0)));
    expect(jot_device_check(jot_cuda(0)), JOT_OK,
           "out of memory on cuda:0: an array of 8000 bytes, and 8000 of 10000 are in use");
    jot_array_release(b);
    c = jot_array_to(a, jot_cuda(0));
    ck_assert_msg(c, "%s", jot_error_message());
    ck_assert_float_eq(((const float *)jot_array_data(c))[1999], 1999);
    jot_array_release(c);
    // What is kept makes way for another size.
    jot_array *large = rt_array_create_on(jot_cuda(0), JOT_U8, 1, (int64_t[]){9000});
    ck_assert_msg(large, "%s", jot_error_message());
    jot_arrays_release(2, (jot_array *[]){a, large});
    // Nothing of that size is made on the host on the way.
    jot_set_default_device(jot_cuda(0));
    ck_assert_ptr_null(jot_array_full(JOT_F32, 1, INT64_C(1) << 40));
    ck_assert_msg(strstr(jot_error_message(), "out of memory on cuda:0"), "%s",
                  jot_error_message());
    expect_no_blocks();
}
END_TEST

START_TEST(opens_ahead_what_calls_need)
{
    use_fake("FAKE_CUDA_COUNT", "1");
    jot_device *device = jot_cuda(0);
    const struct cuda_device *d = cuda_device_of(device);
    OK(jot_device_check(device));
    struct rt_ahead_calls none = {0}, products = {.has_products = true};
    ck_assert_ptr_null(device->type->begin_ahead(device, &none));
    device->type->end_ahead(NULL);
    ck_assert_ptr_null(d->blas);
    device->type->end_ahead(device->type->begin_ahead(device, &products));
    ck_assert_ptr_nonnull(d->blas);
    // Sizes that are not the routine's do nothing: what loads the program says so.
    int64_t params[] = {JOT_F32, 1, 100, 1, JOT_F32};
    struct rt_ahead_call sort = {"sort",
                                 {.params = params,
                                  .param_count = 5,
                                  .operand_count = 2,
                                  .read_count = 1,
                                  .bytes = {400, 300}}};
    struct rt_ahead_calls sorts = {.count = 1, .at = &sort};
    device->type->end_ahead(device->type->begin_ahead(device, &sorts));
    ck_assert_ptr_null(d->own_modules);
    sort.call.bytes[1] = 400;
    device->type->end_ahead(device->type->begin_ahead(device, &sorts));
    ck_assert_ptr_nonnull(d->own_modules);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, opens_ahead_what_calls_need);
    tcase_add_test(tests, names_a_missing_driver);
    tcase_add_loop_test(tests, tells_links, 0, 2);
    tcase_add_test(tests, names_an_old_driver);
    tcase_add_test(tests, names_a_driver_without_gpu);
    tcase_add_test(tests, names_a_driver_that_does_not_start);
    tcase_add_test(tests, names_an_entry_point_that_is_missing);
    tcase_add_test(tests, lists_devices);
    tcase_add_test(tests, chooses_the_default_device);
    tcase_add_test(tests, moves_arrays);
    tcase_add_test(tests, shows_arrays);
    tcase_add_test(tests, borrows_memory_of_a_gpu);
    tcase_add_test(tests, keeps_memory_for_reuse);
    tcase_add_test(tests, goes_on_when_memory_is_out);
}

int main(void) { return suite_run("cuda", add_tests); }
