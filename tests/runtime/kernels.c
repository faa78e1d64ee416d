// SPDX-License-Identifier: Apache-2.0
// Compiled to an object file by the tests of the loader and of programs: one of everything that
// an object of kernels may hold.
#include <stdint.h>
#include <string.h>

typedef void *const *operands;

double jot_test_outside(double x);
extern const double jot_test_constant;

#if defined(OUTSIDE) // another object, which has these
double jot_test_outside(double x) { return 2 * x; }
const double jot_test_constant = 0.5;
#else

const float table[16] __attribute__((aligned(64))) = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
static int64_t counter;                        // .bss
static int64_t seven = 7;                      // .data
static char big[100000] __attribute__((used)); // more .bss

static int64_t one(void) { return 1; }
static int64_t two(void) { return 2; }
int64_t (*const functions[])(void) = {one, two}; // addresses in read-only data

int64_t use_sections(int64_t i)
{
    counter += seven;
    big[i] = 1;
    return counter + (int64_t)table[i] + functions[i & 1]();
}

#if !defined(NO_OUTSIDE) // symbols that only the test of the loader can give
double use_outside(double x) { return jot_test_outside(x) + jot_test_constant; }
#endif

int64_t use_switch(int64_t i)
{
    switch (i) {
    case 0:
        return 11;
    case 1:
        return 23;
    case 2:
        return 5;
    case 3:
        return 99;
    case 4:
        return one() + 41;
    case 5:
        return 7;
    case 6:
        return -3;
    default:
        return 0;
    }
}

void use_memcpy(char *to, const char *from, size_t n) { memcpy(to, from, n); }

// y = x + 1
void add_one(operands b, int64_t begin, int64_t end, int64_t chunk, void *scratch)
{
    const float *x = b[1];
    float *y = b[0];
    (void)chunk, (void)scratch;
    for (int64_t i = begin; i < end; i++)
        y[i] = x[i] + 1;
}

// partial[chunk] = sum of x over the chunk, by way of scratch.
void sum_chunk(operands b, int64_t begin, int64_t end, int64_t chunk, void *scratch)
{
    const double *x = b[1];
    double *s = scratch;
    *s = 0;
    for (int64_t i = begin; i < end; i++)
        *s += x[i];
    ((double *)b[0])[chunk] = *s;
}

// total = sum of the partials, whose number is in the constants.
void sum_partials(operands b, int64_t begin, int64_t end, int64_t chunk, void *scratch)
{
    const double *partial = b[1];
    const int64_t *count = b[2];
    double *total = b[0];
    (void)begin, (void)end, (void)chunk, (void)scratch;
    *total = 0;
    for (int64_t i = 0; i < *count; i++)
        *total += partial[i];
}

// state *= 2; flag = state < limit
void double_it(operands b, int64_t begin, int64_t end, int64_t chunk, void *scratch)
{
    double *state = b[0];
    unsigned char *flag = b[1];
    const double *limit = b[2];
    (void)begin, (void)end, (void)chunk, (void)scratch;
    *state *= 2;
    *flag = *state < *limit;
}

struct phases { // struct rt_phases of base/launch.h
    void (*run)(struct phases *, void (*kernel)(operands, int64_t, int64_t, int64_t, void *),
                operands buffers, int64_t total, int64_t grain);
    _Bool (*multiply)(struct phases *, operands buffers, int64_t index);
};

// x = y = ... of 1000 floats, from b[0] to b[1] and back, x + 1 each time; so often as *b[2] says.  In
// front of the trip *b[3], a product of matrices.
int64_t count_up(operands b, struct phases *phases, void *scratch)
{
    const int64_t *trips = b[2], *product = b[3];
    (void)scratch;
    for (int64_t i = 0; i < *trips; i++) {
        if (i == *product && !phases->multiply(phases, b + 4, 0))
            return -1;
        phases->run(phases, add_one, (void *const[]){b[(i + 1) & 1], b[i & 1]}, 1000, 64);
    }
    return *trips;
}
#endif
