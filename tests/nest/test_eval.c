// SPDX-License-Identifier: Apache-2.0
// The hand-written nests, interpreted, against plain loops: bit for bit.
#include "base/math/math.h"
#include "nest_support.h"
#include "support/nest_eval.h"

#include <math.h>

static struct arena *arena;

static void setup(void) { arena = arena_create(); }
static void teardown(void) { arena_release(arena); }

static uint64_t random_state;

static float next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(int32_t)(random_state >> 32) * 0x1p-30f;
}

static float *randoms(size_t n)
{
    float *x = arena_array(arena, float, n);
    for (size_t i = 0; i < n; i++)
        x[i] = next_random();
    return x;
}

static void run_file(const char *name, void *const *buffers)
{
    struct nest *n = parse_nest(arena, read_nest_file(arena, name));
    check_faultless(arena, n);
    ck_assert_msg(nest_eval(n, buffers) == JOT_OK, "%s", jot_error_message());
}

static void check_equal(const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(!memcmp(&got[i], &want[i], 4), "element %zu is %a, not %a", i,
                      (double)got[i], (double)want[i]);
}

// The order of docs/numerics.md, written from its words: sum of terms, or of products by fma.
static float ordered_sum(const float *x, const float *y, size_t n)
{
    float *blocks = arena_array(arena, float, n / 512 + 1);
    size_t count = 0, block = n <= 32768 ? 512 : 4096;
    for (size_t start = 0; start < n; start += block) {
        float lanes[64] = {0};
        for (size_t i = start; i < n && i < start + block; i++) {
            float *to = &lanes[(i - start) % 64];
            *to = y ? fmaf(x[i], y[i], *to) : *to + x[i];
        }
        for (int half = 32; half; half /= 2)
            for (int i = 0; i < half; i++)
                lanes[i] += lanes[i + half];
        blocks[count++] = lanes[0];
    }
    for (; count > 1; count = (count + 1) / 2)
        for (size_t i = 0; i < (count + 1) / 2; i++)
            blocks[i] = 2 * i + 1 < count ? blocks[2 * i] + blocks[2 * i + 1] : blocks[2 * i];
    return n ? blocks[0] : 0;
}

START_TEST(softmax)
{
    enum { R = 4, C = 4500 };
    float *x = randoms(R * C), *y = randoms(R * C), *want = randoms(R * C), *e = randoms(C);
    run_file("softmax", (void *[]){x, y});
    for (int r = 0; r < R; r++) {
        float m = -INFINITY;
        for (int c = 0; c < C; c++)
            m = fmaxf(m, x[r * C + c]);
        for (int c = 0; c < C; c++)
            e[c] = math_exp_f32(x[r * C + c] - m);
        float s = ordered_sum(e, NULL, C);
        for (int c = 0; c < C; c++)
            want[r * C + c] = e[c] / s;
    }
    check_equal(y, want, R * C);
}
END_TEST

START_TEST(energy_grad)
{
    enum { N = 4200, K = 6 };
    float *w = randoms(K), *a = randoms(K), *x = randoms(N * K), gw[K], ga[K];
    run_file("energy_grad", (void *[]){w, a, x, gw, ga});
    float *terms[2][K], products[K];
    for (int k = 0; k < K; k++)
        for (int g = 0; g < 2; g++)
            terms[g][k] = randoms(N);
    for (int n = 0; n < N; n++) {
        const float *row = x + n * K;
        for (int k = 0; k < K; k++)
            products[k] = row[k] * w[k];
        float u = ordered_sum(products, NULL, K);
        for (int k = 0; k < K; k++)
            products[k] = row[k] * a[k];
        float v = ordered_sum(products, NULL, K);
        float d = math_exp_f32(-v) / (float)N;
        for (int k = 0; k < K; k++) {
            terms[0][k][n] = d * row[k];
            terms[1][k][n] = -u * d * row[k];
        }
    }
    float want[2][K];
    for (int k = 0; k < K; k++)
        for (int g = 0; g < 2; g++)
            want[g][k] = ordered_sum(terms[g][k], NULL, N);
    check_equal(gw, want[0], K);
    check_equal(ga, want[1], K);
}
END_TEST

START_TEST(spring)
{
    enum { B = 16 };
    float *k = randoms(B), got[B], want[B];
    run_file("spring", (void *[]){k, got});
    for (int b = 0; b < B; b++) {
        float x = 1, v = 0;
        for (int t = 0; t < 1000; t++) {
            v = v + -k[b] * x * 0.01f;
            x = x + v * 0.01f;
        }
        want[b] = x;
    }
    check_equal(got, want, B);
}
END_TEST

START_TEST(contract)
{
    float *h = randoms(128), *w = randoms(32), got[64], want[64];
    run_file("contract", (void *[]){h, w, got});
    for (int n = 0; n < 16; n++)
        for (int j = 0; j < 4; j++) {
            float sum = 0;
            for (int i = 0; i < 8; i++)
                sum = fmaf(h[8 * n + i], w[4 * i + j], sum);
            want[4 * n + j] = math_tanh_f32(sum);
        }
    check_equal(got, want, 64);
}
END_TEST

START_TEST(cumsum)
{
    float *x = randoms(300), y[300], z[300], want[300], back[300];
    run_file("cumsum", (void *[]){x, y, z});
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 100; c++) {
            int i = 100 * r + c, j = 100 * r + 99 - c;
            want[i] = c ? want[i - 1] + x[i] : x[i];
            back[j] = c ? back[j + 1] + x[j] : x[j];
        }
    check_equal(y, want, 300);
    check_equal(z, back, 300);
}
END_TEST

START_TEST(scatter_add)
{
    enum { N = 5000, M = 50 };
    float *x = randoms(M), *u = randoms(N), got[M], want[M], *terms = randoms(N);
    int32_t *index = arena_array(arena, int32_t, N);
    for (int n = 0; n < N; n++) {
        // Some are outside; nothing goes to 7.
        index[n] = (int32_t)(next_random() * 30) + 22;
        index[n] += index[n] == 7;
    }
    run_file("scatter_add", (void *[]){x, index, u, got});
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++)
            terms[n] = index[n] == m ? u[n] : 0;
        want[m] = x[m] + ordered_sum(terms, NULL, N);
    }
    check_equal(got, want, M);
}
END_TEST

START_TEST(attention)
{
    enum { T = 10, S = 48, D = 8, B = 16 };
    float *q = randoms(T * D), *k = randoms(S * D), *v = randoms(S * D), got[T * D],
          want[T * D];
    run_file("attention", (void *[]){q, k, v, got});
    for (int t = 0; t < T; t++) {
        float m = -INFINITY, l = 0, acc[D] = {0};
        for (int b = 0; b < S / B; b++) {
            float s[B], e[B], column[B], largest = m;
            for (int j = 0; j < B; j++) {
                s[j] = ordered_sum(q + t * D, k + (b * B + j) * D, D);
                largest = fmaxf(largest, s[j]);
            }
            float scale = math_exp_f32(m - largest);
            for (int j = 0; j < B; j++)
                e[j] = math_exp_f32(s[j] - largest);
            l = l * scale + ordered_sum(e, NULL, B);
            for (int d = 0; d < D; d++) {
                for (int j = 0; j < B; j++)
                    column[j] = v[(b * B + j) * D + d];
                acc[d] = acc[d] * scale + ordered_sum(e, column, B);
            }
            m = largest;
        }
        for (int d = 0; d < D; d++)
            want[t * D + d] = acc[d] / l;
    }
    check_equal(got, want, T * D);
    // And it is attention: the plain formula gives nearly the same.
    for (int t = 0; t < T; t++) {
        double sum = 0, o[D] = {0};
        for (int j = 0; j < S; j++) {
            double s = 0;
            for (int d = 0; d < D; d++)
                s += (double)q[t * D + d] * (double)k[j * D + d];
            sum += exp(s);
            for (int d = 0; d < D; d++)
                o[d] += exp(s) * (double)v[j * D + d];
        }
        for (int d = 0; d < D; d++)
            ck_assert_double_eq_tol((double)got[t * D + d], o[d] / sum, 1e-4);
    }
}
END_TEST

START_TEST(everything)
{
    float *x = randoms(64), y[64], m[8];
    uint32_t key[4] = {1, 2, 3, 4};
    int64_t n[8] = {0, 1, 2, 3, -1, 0, 1, -5}, p[8];
    double z[16];
    run_file("everything", (void *[]){x, key, n, y, p, z, m});
    for (int i = 0; i < 8; i++) {
        ck_assert(p[i] == 0); // The first of equal values wins.
        ck_assert(z[2 * i + 1] == 1 && signbit(z[2 * i]) && z[2 * i] == 0);
        float sum = 0;
        for (int a = 0; a < 4; a++)
            sum += x[i + 5 * a] * x[i + 5 * a];
        ck_assert_float_eq_tol(m[i], sum, 1e-4f);
        for (int j = 0; j < 8 && i > 0; j++) // What is added does not depend on j.
            ck_assert_float_eq_tol(y[8 * i + j] - y[8 * i],
                                   n[i] < 0 ? 0 : x[8 * j + n[i]] - x[n[i]], 1e-5f);
    }
}
END_TEST

// --- what the interpreter finds

static void check_stops(const char *text, void *const *buffers, const char *message)
{
    struct nest *n = parse_nest(arena, text);
    ck_assert_msg(nest_eval(n, buffers) != JOT_OK, "no fault found in\n%s", text);
    ck_assert_msg(strstr(jot_error_message(), message), "%s", jot_error_message());
}

START_TEST(finds_faults)
{
    float x[8] = {0}, y[8];
    int32_t i[4] = {0, 9, 1, 1};
    check_stops("kernel f(x: f32[8], y: out f32[8]) {\n"
                "  par i < 4 {\n    %0 = load x[i] : f32\n    put y[i] = %0\n  }\n}\n",
                (void *[]){x, y}, "nothing is put into y[4]");
    check_stops("kernel f(x: f32[8], i: i32[4], y: out f32[4]) {\n"
                "  par a < 4 {\n    %0 = load i[a] : i32\n    %1 = load x[%0] : f32\n"
                "    put y[a] = %1\n  }\n}\n",
                (void *[]){x, i, y}, "x[9] is outside");
    check_stops("kernel f(x: f32[8], i: i32[4], y: out f32[4]) {\n"
                "  par a < 2 {\n    %0 = load i[a + 2] : i32\n    %1 = load x[a] : f32\n"
                "    put y[%0] = %1\n  }\n}\n",
                (void *[]){x, i, y}, "y[1] is written by two points");
    check_stops("kernel f(x: f32[8], y: out f32[8]) {\n  local t: f32[8]\n"
                "  par a < 8 {\n    %0 = load x[a] : f32\n    %1 = index a : i32\n"
                "    put t[%1] = %0\n    %2 = load t[7] : f32\n    put y[a] = %2\n  }\n}\n",
                (void *[]){x, y}, "t[7] is read and nothing wrote it");
    // An element is read by one point and written by another.
    check_stops("kernel f(x: inout f32[8], y: out f32[8]) {\n"
                "  par a < 8 {\n    %1 = index -a + 7 : i32\n    %0 = load x[%1] : f32\n"
                "    put y[a] = %0\n    put x[a] = %0 \n  }\n}\n",
                (void *[]){x, y}, "another point");
}
END_TEST

// Numbers of a nest changed at random: what the verifier lets pass does not leave its buffers, but
// by an index that was read.
START_TEST(verified_nests_stay_inside)
{
    static const char *const names[] = {"cumsum", "contract", "energy_grad", "attention"};
    int ran = 0, refused = 0;
    for (int round = 0; round < 400; round++) {
        struct arena *a = arena_create();
        char *text = arena_text(a, read_nest_file(a, names[_i]));
        for (int k = 0; k < 2; k++) {
            char *c = text + (size_t)((next_random() + 2) / 4 * (float)strlen(text));
            c += strcspn(c, "0123456789");
            if (*c)
                *c = (char)('0' + (int)((next_random() + 2) * 2.4f));
        }
        int count;
        struct nest **nests;
        if (nest_parse(a, text, &count, &nests) == JOT_OK) {
            const struct nest *n = nests[0];
            void **buffers = arena_array(a, void *, n->buffers.count);
            int given = 0;
            for (uint32_t b = 0; b < n->buffers.count; b++)
                if (n->buffers.at[b].role != NEST_LOCAL)
                    buffers[given++] =
                        arena_allocate(a, (size_t)n->buffers.at[b].count * 16 + 1);
            bool passes = nest_verify(n, NULL) == 0;
            refused += !passes;
            ran += passes;
            if (passes && nest_eval(n, buffers) != JOT_OK) {
                bool expected = strstr(jot_error_message(), "nothing is put into") ||
                                strstr(jot_error_message(), "nothing wrote it") ||
                                strstr(jot_error_message(), "another point") ||
                                strstr(jot_error_message(), "two points or threads");
                ck_assert_msg(expected, "%s\n%s", jot_error_message(), text);
            }
        }
        arena_release(a);
    }
    ck_assert_msg(ran > 5 && refused > 5, "%d ran, %d refused", ran, refused);
}
END_TEST

// --- folds of other types

START_TEST(half_types_accumulate_in_f32)
{
    uint16_t x[4096], y[2];
    float z[2], want = 0;
    for (int i = 0; i < 4096; i++)
        x[i] = dtype_bf16_from_f32(1 + (float)(i % 7));
    struct nest *n = parse_nest(
        arena, "kernel f(x: bf16[4096], y: out bf16[2], z: out f32[2]) {\n"
               "  fold i < 64, j < 64 {\n"
               "    %0 = load x[64*i + j] : bf16\n"
               "    yield reduce_sum %0 sum64, fma %0 %0 sum64, reduce_sum %0 sum64\n"
               "  } -> %1 : f32, %2 : f32, %3 : f32\n"
               "  fold i < 4096 {\n"
               "    %4 = load x[i] : bf16\n"
               "    put y[1] reduce_max= %4 in @i free\n"
               "    put z[1] fma= %4, %4 in @i sum64\n"
               "  }\n"
               "  %5 = convert %1 : bf16\n"
               "  put y[0] = %5\n"
               "  put z[0] = %3\n"
               "}\n");
    check_faultless(arena, n);
    ck_assert_msg(nest_eval(n, (void *[]){x, y, z}) == JOT_OK, "%s", jot_error_message());
    float squares = 0;
    for (int i = 0; i < 4096; i++) {
        want += 1 + (float)(i % 7); // Small integers: every order is exact.
        squares += (1 + (float)(i % 7)) * (1 + (float)(i % 7));
    }
    ck_assert(z[0] == want);
    ck_assert(y[0] == dtype_bf16_from_f32(want));
    ck_assert(y[1] == dtype_bf16_from_f32(7));
    ck_assert(z[1] == squares);
}
END_TEST

START_TEST(argmax_takes_nan_then_the_first)
{
    float x[] = {1, 5, NAN, 5, 9, NAN, 1, 5, 5, -1, 0, -0.0f}, v[2];
    int64_t at[4];
    struct nest *n = parse_nest(arena, "kernel f(x: f32[12], at: out i64[4], v: out f32[2]) {\n"
                                       "  par r < 2 {\n"
                                       "    fold i < 6 {\n"
                                       "      %0 = load x[6*r + i] : f32\n"
                                       "      yield argmax %0 free, argmin %0 free\n"
                                       "    } -> %1 : f32, %2 : i64, %3 : f32, %4 : i64\n"
                                       "    put at[2*r] = %2\n"
                                       "    put at[2*r + 1] = %4\n"
                                       "    put v[r] = %1\n"
                                       "  }\n}\n");
    check_faultless(arena, n);
    ck_assert_msg(nest_eval(n, (void *[]){x, at, v}) == JOT_OK, "%s", jot_error_message());
    ck_assert(at[0] == 2 && at[1] == 2 && at[2] == 1 && at[3] == 3);
    ck_assert(isnan(v[0]) && v[1] == 5);
}
END_TEST

// --- programs

START_TEST(program)
{
    // d = copy(relu(a b)), in the memory of a donated c.
    const char *text = "jot nest 1\n"
                       "program \"relu of a product\" {\n"
                       "  inputs 3\n"
                       "  outputs 1 donated 2\n"
                       "  arena 96\n"
                       "  constants 4\n"
                       "  memory input 0 : f32[6] \"a\"\n"
                       "  memory input 1 : f32[12]\n"
                       "  memory input 2 : f32[8] \"c\"\n"
                       "  memory output 0 : f32[8] \"d\"\n"
                       "  memory temporary at 0 : f32[8]\n"
                       "  memory temporary at 64 : f32[8]\n"
                       "  memory constant at 0 : f32[1] = 0000803f \"o\\\"ne\"\n"
                       "  step gemm f32 transpose_b m 2 n 4 k 3 lda 3 ldb 3 ldc 4 batch 1 1 1 "
                       "1 stride_a 0 0 0 0 "
                       "stride_b 0 0 0 0 stride_c 0 0 0 0 (0, 1, 4) \"large\"\n"
                       "  step kernel 0 (4, 2, 6, 5)\n"
                       "  step copy (3, 5) \"of no use\"\n"
                       "}\n"
                       "kernel relu(x: f32[8], c: f32[8], one: f32[1], y: out f32[8]) {\n"
                       "  par i < 8 {\n"
                       "    %0 = load x[i] : f32\n"
                       "    %1 = load c[i] : f32\n"
                       "    %2 = load one[0] : f32\n"
                       "    %3 = add %0, %1 : f32\n"
                       "    %4 = max %3, %2 : f32\n"
                       "    put y[i] = %4\n"
                       "  }\n"
                       "}\n";
    struct nest_program *p = NULL;
    ck_assert_msg(nest_program_parse(arena, text, &p) == JOT_OK, "%s", jot_error_message());
    struct strbuf printed = strbuf_make(arena), report = strbuf_make(arena);
    nest_program_print(&printed, p);
    ck_assert_str_eq(printed.text, text);
    ck_assert_msg(nest_program_verify(p, &report) == 0, "%s", report.text);
    float *a = randoms(6), *b = randoms(12), *c = randoms(8), d[8], before[8];
    memcpy(before, c, sizeof before);
    jot_status status = nest_program_eval(p, (void *[]){a, b, c}, (void *[]){d});
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) {
            float x = ordered_sum(a + 3 * i, b + 3 * j, 3) + before[4 * i + j];
            ck_assert(d[4 * i + j] == (x > 1 ? x : 1));
        }
    check_equal(c, before, 8);
}
END_TEST

int main(void)
{
    const char *given = getenv("JOT_TEST_SEED");
    random_state = given ? strtoull(given, NULL, 0) : 7;
    printf("seed %llu\n", (unsigned long long)random_state);
    Suite *s = suite_create("nest_eval");
    TCase *t = tcase_create("nests");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, softmax);
    tcase_add_test(t, energy_grad);
    tcase_add_test(t, spring);
    tcase_add_test(t, contract);
    tcase_add_test(t, cumsum);
    tcase_add_test(t, scatter_add);
    tcase_add_test(t, attention);
    tcase_add_test(t, everything);
    tcase_add_test(t, finds_faults);
    tcase_add_loop_test(t, verified_nests_stay_inside, 0, 4);
    tcase_add_test(t, half_types_accumulate_in_f32);
    tcase_add_test(t, argmax_takes_nan_then_the_first);
    tcase_add_test(t, program);
    suite_add_tcase(s, t);
    return run_suite(s);
}
