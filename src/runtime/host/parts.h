// SPDX-License-Identifier: Apache-2.0
// The host as several devices: each has its share of the threads, of the CPUs of one node where there
// are several nodes.  The memory is the same.
#ifndef RUNTIME_HOST_PARTS_H
#define RUNTIME_HOST_PARTS_H

#include "runtime/device.h"

struct rt_pool;

// Makes the threads of the device, where it is a part, those of the calling thread's loops; leaving
// takes what entering gave.
struct rt_pool *rt_host_enter(jot_device *device);
void rt_host_leave(struct rt_pool *before);

// A line for each part, where there are several.
void rt_host_describe(struct rt_text *text);

#endif
