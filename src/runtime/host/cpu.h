// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_HOST_CPU_H
#define RUNTIME_HOST_CPU_H

#include <stddef.h>

// What distinguishes this CPU for compiled code: family, model, stepping and feature bits, as
// text.  Cached code of another CPU is not found by it.
void rt_cpu_text(char *buffer, size_t size);

#endif
