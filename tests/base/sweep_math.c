// SPDX-License-Identifier: Apache-2.0
// The elementary functions at every single-precision argument and at many double-precision ones.
//
//     sweep_math [-j threads] [-n points] [-s seed] [-w 32 | -w 64] [function...]
//
// Prints a line for each function and width: points, largest error in units in the last place,
// where that is, what is allowed. `points` random ones (1e8) stand for all arguments in double
// precision and of two operands. Exit status 1: an error is larger than allowed.
#include "base/math_reference.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, MAX_THREADS = 256 };

// One function at one width. Threads take blocks of points until there are none.
struct sweep {
    const struct math_row *row;
    const struct math_function *f;
    int width;
    bool every;
    uint64_t seed, points;
    atomic_uint_fast64_t next_block;
    pthread_mutex_t lock;
    struct math_worst worst;
};

static void sweep_block(struct sweep *s, uint64_t first, struct math_worst *worst)
{
    uint64_t end = first + BLOCK < s->points ? first + BLOCK : s->points;
    uint64_t seed = s->seed + first * 8 * MATH_SEED_STEP; // 6 draws at most make a point.
    for (uint64_t i = first; i < end; i++) {
        if (s->width == 32) {
            float x =
                s->every ? math_float_of_bits((uint32_t)i) : math_random_float(&seed, s->row);
            float y = s->f->arity == 2 ? math_random_float(&seed, s->row) : 0;
            math_note(worst, math_measure_f32(s->row, s->f, x, y), x, y);
        } else {
            double x = math_random_double(&seed, s->row);
            double y = s->f->arity == 2 ? math_random_double(&seed, s->row) : 0;
            math_note(worst, math_measure_f64(s->row, s->f, x, y), x, y);
        }
    }
}

static void *sweep_blocks(void *argument)
{
    struct sweep *s = argument;
    struct math_worst worst = {0};
    for (;;) {
        uint64_t first = atomic_fetch_add(&s->next_block, 1) * BLOCK;
        if (first >= s->points)
            break;
        sweep_block(s, first, &worst);
    }
    pthread_mutex_lock(&s->lock);
    math_note(&s->worst, worst.error, worst.x, worst.y);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Returns whether all errors were within the bound.
static bool sweep(const struct math_row *row, int width, int threads, uint64_t points,
                  uint64_t seed)
{
    const struct math_function *f = math_find(row->name);
    bool every = width == 32 && f->arity == 1;
    struct sweep s = {.row = row,
                      .f = f,
                      .width = width,
                      .every = every,
                      .seed = seed,
                      .points = every ? UINT64_C(1) << 32 : points,
                      .lock = PTHREAD_MUTEX_INITIALIZER};
    double start = seconds();
    pthread_t ids[MAX_THREADS];
    int started = 0;
    while (started < threads - 1 && !pthread_create(&ids[started], NULL, sweep_blocks, &s))
        started++;
    sweep_blocks(&s);
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);

    bool good = s.worst.error <= row->bound;
    printf("%-9s f%d %11" PRIu64 " points %8.3f ULP at %a", row->name, width, s.points,
           s.worst.error, s.worst.x);
    if (f->arity == 2)
        printf(", %a", s.worst.y);
    printf("; allowed %g%s; %.1f s\n", row->bound, good ? "" : ": TOO LARGE",
           seconds() - start);
    fflush(stdout);
    return good;
}

static bool is_chosen(const char *name, int count, char **names)
{
    bool chosen = count == 0;
    for (int i = 0; i < count; i++)
        chosen |= strcmp(names[i], name) == 0;
    return chosen;
}

int main(int argc, char **argv)
{
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN), width = 0, option;
    uint64_t points = 100000000, seed = 20;
    while ((option = getopt(argc, argv, "j:n:s:w:")) != -1) {
        if (option == 'j')
            threads = atoi(optarg);
        else if (option == 'n')
            points = (uint64_t)strtod(optarg, NULL);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (option == 'w')
            width = atoi(optarg);
        else
            return 2;
    }
    threads = threads < 1 ? 1 : threads < MAX_THREADS ? threads : MAX_THREADS;
    for (int i = optind; i < argc; i++) {
        if (math_find(argv[i]) == NULL) {
            fprintf(stderr, "there is no function %s\n", argv[i]);
            return 2;
        }
    }
    bool good = true;
    for (const struct math_row *row = math_rows; row->name != NULL; row++) {
        if (!is_chosen(row->name, argc - optind, argv + optind))
            continue;
        if (width != 64)
            good &= sweep(row, 32, threads, points, seed);
        if (width != 32)
            good &= sweep(row, 64, threads, points, seed);
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
