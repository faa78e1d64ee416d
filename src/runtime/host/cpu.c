// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/cpu.h"

#include <stdio.h>

#if defined(__x86_64__)
#include <cpuid.h>

void rt_cpu_text(char *buffer, size_t size)
{
    unsigned a = 0, b = 0, c = 0, d = 0, features[6] = {0}, enabled = 0;
    __get_cpuid(1, &a, &b, &c, &d);
    features[0] = c;
    features[1] = d;
    unsigned model = a;
    if (c >> 27 & 1) // what the system saves of the vector registers
        __asm__("xgetbv" : "=a"(enabled), "=d"(d) : "c"(0));
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        features[2] = b;
        features[3] = c;
        features[4] = d;
    }
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d))
        features[5] = a;
    snprintf(buffer, size, "x86-64 %x %x %x %x %x %x %x %x", model, enabled, features[0],
             features[1], features[2], features[3], features[4], features[5]);
}
#else
void rt_cpu_text(char *buffer, size_t size) { snprintf(buffer, size, "generic"); }
#endif
