// SPDX-License-Identifier: Apache-2.0
// The NUMA nodes of the host.
#ifndef RUNTIME_HOST_NODES_H
#define RUNTIME_HOST_NODES_H

#include <sched.h>

#define RT_NODES_MOST 64

// The CPUs of each node that the process may run on, of nodes that have any; their number, or 0 where
// the directory, which is /sys/devices/system/node on Linux, does not tell.
int rt_nodes_read(const char *directory, cpu_set_t cpus[RT_NODES_MOST]);

#endif
