// SPDX-License-Identifier: Apache-2.0
#include "interop/fuzz.h"

#include "base/hash.h"
#include "interop/tree.h"
#include "support/sample.h"

#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct fuzz_file fuzz_files[FUZZ_MOST];
size_t fuzz_n_files;

static glob_t found;
static uint64_t state;

// The case at hand, which the process that starts the test tells when the test's own has ended in it.
static struct {
    uint64_t seed;
    bool is_running;
} *at_hand;

static void tell_case(void)
{
    if (at_hand->is_running)
        printf("the case: JOT_TEST_SEED=%llu JOT_TEST_COUNT=1\n",
               (unsigned long long)at_hand->seed);
}

__attribute__((constructor)) static void share_case(void)
{
    at_hand =
        mmap(NULL, sizeof *at_hand, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    atexit(tell_case);
}

uint64_t fuzz_below(uint64_t n)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    return hash_mix(state) % n;
}

const struct fuzz_file *fuzz_any_file(void) { return &fuzz_files[fuzz_below(fuzz_n_files)]; }

unsigned char *fuzz_exact(const unsigned char *bytes, size_t n)
{
    unsigned char *exact = malloc(n + !n);
    memcpy(exact, bytes, n);
    return exact;
}

static void open_files(const char *names)
{
    ck_assert_int_eq(glob(names, GLOB_BRACE, NULL, &found), 0);
    ck_assert_uint_le(found.gl_pathc, FUZZ_MOST);
    fuzz_n_files = found.gl_pathc;
    for (size_t i = 0; i < fuzz_n_files; i++) {
        fuzz_files[i].name = found.gl_pathv[i];
        fuzz_files[i].bytes = tree_load(found.gl_pathv[i], &fuzz_files[i].n);
    }
}

static void close_files(void)
{
    for (size_t i = 0; i < fuzz_n_files; i++)
        free(fuzz_files[i].bytes);
    globfree(&found);
}

double fuzz_run(const char *names, int each, int count, fuzz_try *try)
{
    uint64_t first = number_from("JOT_TEST_SEED", 20261126 + sample_turn());
    uint64_t seconds = number_from("JOT_TEST_SECONDS", 0), n = 0, accepted = 0;
    uint64_t all = (uint64_t)each * number_from("JOT_TEST_COUNT", (uint64_t)count);
    time_t start = time(NULL);
    open_files(names);
    at_hand->is_running = true;
    for (; seconds ? (uint64_t)(time(NULL) - start) < seconds : n < all; n++) {
        at_hand->seed = first + n;
        state = hash_mix(at_hand->seed);
        accepted += try(fuzz_any_file());
    }
    at_hand->is_running = false;
    close_files();
    printf("JOT_TEST_SEED=%llu: %llu of %llu were taken\n", (unsigned long long)first,
           (unsigned long long)accepted, (unsigned long long)n);
    return n ? (double)accepted / (double)n : 1;
}
