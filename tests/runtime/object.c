// SPDX-License-Identifier: Apache-2.0
#include "object.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *test_object(size_t *out_size, const char *flags)
{
    const char *folder = getenv("JOT_TEST_SOURCE"), *compiler = getenv("CC");
    char path[] = "/tmp/jot-test-XXXXXX", command[1024];
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    snprintf(command, sizeof command,
             "%s -c -O2 -fPIC -fno-stack-protector %s -o %s %s/kernels.c",
             compiler ? compiler : "cc", flags, path, folder ? folder : "tests/runtime");
    ck_assert_msg(system(command) == 0, "%s", command);
    FILE *stream = fopen(path, "rb");
    ck_assert_ptr_nonnull(stream);
    char *bytes = malloc(1 << 20);
    *out_size = fread(bytes, 1, 1 << 20, stream);
    ck_assert_uint_gt(*out_size, 0);
    fclose(stream);
    close(file);
    unlink(path);
    return bytes;
}
