// SPDX-License-Identifier: Apache-2.0
#include "runtime/symbols.h"

#include "base/math/math.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// What LLVM calls on its own, for copies and for operations that a CPU lacks.
#define HELPERS(X)                                                                             \
    X(memcpy)                                                                                  \
    X(memmove)                                                                                 \
    X(memset)                                                                                  \
    X(memcmp)                                                                                  \
    X(fma)                                                                                     \
    X(fmaf)                                                                                    \
    X(fmod)                                                                                    \
    X(fmodf)                                                                                   \
    X(floor)                                                                                   \
    X(floorf)                                                                                  \
    X(ceil)                                                                                    \
    X(ceilf)                                                                                   \
    X(trunc)                                                                                   \
    X(truncf)                                                                                  \
    X(rint)                                                                                    \
    X(rintf)                                                                                   \
    X(nearbyint)                                                                               \
    X(nearbyintf)                                                                              \
    X(roundeven)                                                                               \
    X(roundevenf)                                                                              \
    X(round)                                                                                   \
    X(roundf)                                                                                  \
    X(sqrt)                                                                                    \
    X(sqrtf)

// Neither is in math.h before C23.
double roundeven(double x);
float roundevenf(float x);

static void *find_helper(const char *name)
{
#define HELPER(function)                                                                       \
    if (!strcmp(name, #function))                                                              \
        return (void *)(uintptr_t)function;
    HELPERS(HELPER)
#undef HELPER
    return NULL;
}

// math_<function>_f32 and math_<function>_f64.
static void *find_math(const char *name)
{
    char function[32];
    size_t length = strlen(name);
    if (length < 10 || length - 9 >= sizeof function || strncmp(name, "math_", 5))
        return NULL;
    memcpy(function, name + 5, length - 9);
    function[length - 9] = 0;
    const struct math_function *found = math_find(function);
    if (!found)
        return NULL;
    if (!strcmp(name + length - 4, "_f32"))
        return (void *)(uintptr_t)found->f32.unary;
    if (!strcmp(name + length - 4, "_f64"))
        return (void *)(uintptr_t)found->f64.unary;
    return NULL;
}

void *rt_symbol_find(const char *name)
{
    void *found = find_math(name);
    return found ? found : find_helper(name);
}
