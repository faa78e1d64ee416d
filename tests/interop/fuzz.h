// SPDX-License-Identifier: Apache-2.0
// Files whose bytes are changed at random, for tests that read any bytes.  JOT_TEST_SEED=n says with which case
// it begins, JOT_TEST_COUNT how many there are, JOT_TEST_SECONDS for how long there are some instead.
#ifndef TESTS_INTEROP_FUZZ_H
#define TESTS_INTEROP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_file {
    const char *name;
    unsigned char *bytes;
    size_t n;
};

enum { FUZZ_MOST = 100 }; // files
extern struct fuzz_file fuzz_files[FUZZ_MOST];
extern size_t fuzz_n_files;

uint64_t fuzz_below(uint64_t n); // a random number
const struct fuzz_file *fuzz_any_file(void);
// The bytes in a block that ends with them, so that a sanitizer sees what is read behind it.
unsigned char *fuzz_exact(const unsigned char *bytes, size_t n);

// Changes what it has a copy of and reads it; whether that was taken.
typedef bool fuzz_try(const struct fuzz_file *file);
// Tries `each` cases `count` times with files of these names, which is a pattern of glob.  A test that fails says
// which case it was.  Which part of the cases was taken.
double fuzz_run(const char *names, int each, int count, fuzz_try *try);

#endif
