// SPDX-License-Identifier: Apache-2.0
// The object file of kernels.c, compiled when a test starts.
#ifndef TESTS_RUNTIME_OBJECT_H
#define TESTS_RUNTIME_OBJECT_H

#include <stddef.h>

// The bytes, to be freed; ends the test when there is no compiler.  The source lies in the
// folder JOT_TEST_SOURCE (environment) or tests/runtime.
char *test_object(size_t *out_size, const char *flags);

#endif
