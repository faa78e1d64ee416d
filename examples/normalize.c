// SPDX-License-Identifier: Apache-2.0
// Rows with mean 0 and variance 1.  docs/kernels.md follows this program from here to machine code.
//
//     normalize [rows [columns [axis]]]       with axis 1 it normalizes columns
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static jot_value normalize(jot_value x)
{
    jot_value scale = jot_rsqrt(jot_add(jot_var(x), 1e-5));
    return jot_mul(jot_sub(x, jot_mean(x)), scale);
}

int main(int argc, char **argv)
{
    int rows = argc > 1 ? atoi(argv[1]) : 4096, columns = argc > 2 ? atoi(argv[2]) : 1024;
    int axis = argc > 3 ? atoi(argv[3]) : 0; // whose elements are normalized apart
    size_t count = (size_t)rows * (size_t)columns;
    float *numbers = malloc(count * sizeof *numbers);
    for (size_t i = 0; numbers && i < count; i++)
        numbers[i] = (float)(i % 7);
    jot_array *x = jot_array_from(numbers, rows, columns), *y;
    jot_executable *f =
        jot_jit(jot_vmap_axes(jot_fn(normalize), JOT_AXES(axis), JOT_AXES(axis)));
    if (jot_call(f, JOT_IN(x), JOT_OUT(y)) != JOT_OK ||
        jot_array_read(y, numbers, count) != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        return 1;
    }
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        sum += numbers[i];
        squares += numbers[i] * numbers[i];
    }
    double mean = sum / (double)count, variance = squares / (double)count;
    printf("mean %.3f, variance %.3f\n", mean, variance);
    free(numbers);
    jot_array_release(x), jot_array_release(y);
    jot_executable_release(f);
    return !(fabs(mean) < 1e-4 && fabs(variance - 1) < 1e-4);
}
