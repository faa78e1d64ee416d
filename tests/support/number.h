// SPDX-License-Identifier: Apache-2.0
// Numbers that a test program is given by its environment.
#ifndef TESTS_NUMBER_H
#define TESTS_NUMBER_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

#endif
