// SPDX-License-Identifier: Apache-2.0
// Kernels of one's own: an expression of C, which fuses and has derivatives, and one in CUDA C with what
// stands in for it where no GPU is.
#include <jot/jot.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };

// The Huber loss of residuals.
static jot_value huber(jot_value r)
{
    return jot_mean(jot_elementwise("r", "a = fabs(r); a < 1 ? r * r / 2 : a - 0.5", r));
}

static const char source[] =
    "__global__ void reverse(const float *x, float *y)"
    "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < 1000) y[i] = x[999 - i]; }";

static jot_status reverse_here(void *ctx, const jot_callback_call *call)
{
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    (void)ctx;
    for (int i = 0; i < N; i++)
        y[i] = x[N - 1 - i];
    return JOT_OK;
}

static jot_value reversed(jot_value x)
{
    const jot_type types[] = {JOT_TYPE(JOT_F32, N)};
    const jot_raw_kernel_spec reverse = {.name = "reverse",
                                         .source = source,
                                         .n_out = 1,
                                         .out = types,
                                         .grid = {4},
                                         .block = {256},
                                         .host = reverse_here};
    jot_value y;
    jot_raw_kernel(&reverse, &y, x);
    return y;
}

static void must(jot_status status)
{
    if (status == JOT_OK)
        return;
    fprintf(stderr, "%s\n", jot_error_message());
    exit(1);
}

int main(void)
{
    float numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = (float)i / 100 - 5;
    jot_array *x = jot_array_from(numbers, N), *g, *y;
    jot_executable *df = jot_jit(jot_grad(jot_fn(huber))), *f = jot_jit(jot_fn(reversed));
    must(jot_call(df, JOT_IN(x), JOT_OUT(g)));
    must(jot_call(f, JOT_IN(x), JOT_OUT(y)));
    const float *slope = jot_array_data(g), *back = jot_array_data(y);
    printf("slopes at -5, 0 and 0.5: %g %g %g\n", (double)slope[0] * N, (double)slope[500] * N,
           (double)slope[550] * N);
    printf("the first two from the end: %g %g\n", (double)back[0], (double)back[1]);
    bool is_right = slope[0] < 0 && slope[500] == 0 && back[0] == numbers[N - 1];
    jot_arrays_release(3, (jot_array *[]){x, g, y});
    jot_executable_release(df);
    jot_executable_release(f);
    return !is_right;
}
