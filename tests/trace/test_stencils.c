// SPDX-License-Identifier: Apache-2.0
// Loops whose trips make an array of its neighbours, of which a GPU makes several in one launch: bit for
// bit what C makes one after the other.
#include "trace_support.h"

enum border { TORUS, FAR, ZERO, FIXED, BORDERS };

struct stencil {
    enum border border;
    int height, width, trips;
};
static struct stencil stencil;

static const int offsets[BORDERS][4][2] = {
    [TORUS] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}},
    [FAR] = {{-2, 0}, {1, 0}, {0, -1}, {0, 2}},
    [ZERO] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}},
    [FIXED] = {{-1, 0}, {1, 1}, {0, -1}, {0, 1}},
};

static jot_value shifted(jot_value u, int row, int column)
{
    if (stencil.border != ZERO)
        return jot_roll(jot_roll(u, -row, 0), -column, 1);
    return jot_pad(jot_pad(u, 0.0f, 0, -row, row), 0.0f, 1, -column, column);
}

// No products, which machine code may join with sums.
static jot_value step(jot_value u)
{
    jot_value v[4];
    for (int i = 0; i < 4; i++)
        v[i] = shifted(u, offsets[stencil.border][i][0], offsets[stencil.border][i][1]);
    jot_value to = jot_add(jot_sub(jot_maximum(v[0], v[1]), jot_minimum(v[2], v[3])), u);
    if (stencil.border != FIXED)
        return to;
    jot_value row = jot_reshape(jot_arange(JOT_I32, stencil.height), stencil.height, 1);
    return jot_where(jot_less(row, stencil.height - 1), to, u);
}

static jot_value steps(jot_value u)
{
    JOT_FOR (i, stencil.trips, u)
        u = step(u);
    return u;
}

static float at(const float *u, int i, int j)
{
    int h = stencil.height, w = stencil.width;
    if (stencil.border == ZERO)
        return i < 0 || j < 0 || i >= h || j >= w ? 0 : u[i * w + j];
    return u[(i + h) % h * w + (j + w) % w];
}

static float point(const float *u, int i, int j)
{
    float v[4];
    if (stencil.border == FIXED && i == stencil.height - 1)
        return at(u, i, j);
    for (int k = 0; k < 4; k++)
        v[k] = at(u, i + offsets[stencil.border][k][0], j + offsets[stencil.border][k][1]);
    return fmaxf(v[0], v[1]) - fminf(v[2], v[3]) + at(u, i, j);
}

static void by_hand(float *u, float *next)
{
    size_t n = (size_t)stencil.height * (size_t)stencil.width;
    for (int t = 0; t < stencil.trips; t++) {
        for (int i = 0; i < stencil.height; i++)
            for (int j = 0; j < stencil.width; j++)
                next[i * stencil.width + j] = point(u, i, j);
        memcpy(u, next, n * sizeof *u);
    }
}

static const struct stencil stencils[] = {
    {TORUS, 128, 128, 10}, {TORUS, 133, 260, 15}, {TORUS, 130, 132, 9},
    {TORUS, 130, 132, 7},  {TORUS, 131, 130, 5},  {FAR, 129, 228, 6},
    {FAR, 136, 224, 15},   {ZERO, 133, 260, 10},  {FIXED, 128, 256, 5},
};

START_TEST(stencils_are_those_of_c)
{
    stencil = stencils[_i];
    int64_t shape[] = {stencil.height, stencil.width};
    size_t n = (size_t)(shape[0] * shape[1]);
    float *u = malloc(n * sizeof *u), *next = malloc(n * sizeof *u);
    uint32_t draw = 1;
    for (size_t i = 0; i < n; i++) {
        draw = draw * 1664525 + 1013904223;
        u[i] = (float)(draw >> 8) / 0x1p20f - 8;
    }
    jot_array *x = jot_array_from(u, shape[0], shape[1]), *y = NULL;
    jot_executable *f = jot_jit(jot_fn(steps));
    must(jot_call(f, JOT_IN(x), JOT_OUT(y)));
    const float *have = jot_array_data(y);
    by_hand(u, next);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(have[i] == u[i], "stencil %d, element %zu is %.9g, not %.9g", _i, i,
                      (double)have[i], (double)u[i]);
    jot_executable_release(f);
    jot_arrays_release(2, (jot_array *[]){x, y});
    free(u);
    free(next);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, stencils_are_those_of_c, 0, sizeof stencils / sizeof *stencils);
}

int main(void) { return run_suite("stencils", add); }
