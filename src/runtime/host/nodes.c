// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/nodes.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// A list of numbers and ranges: 0-3,8,10-11.
static bool read_list(const char *path, cpu_set_t *out)
{
    char text[4096];
    FILE *file = fopen(path, "re");
    bool is_read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    CPU_ZERO(out);
    if (!is_read)
        return false;
    for (char *at = text; *at >= '0' && *at <= '9';) {
        unsigned long first = strtoul(at, &at, 10), last = first;
        if (*at == '-')
            last = strtoul(at + 1, &at, 10);
        for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            CPU_SET(cpu, out);
        at += *at == ',';
    }
    return true;
}

int rt_nodes_read(const char *directory, cpu_set_t cpus[RT_NODES_MOST])
{
    char path[PATH_MAX];
    cpu_set_t allowed, nodes;
    int n = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 0;
    snprintf(path, sizeof path, "%s/online", directory);
    if (!read_list(path, &nodes))
        return 0;
    for (int node = 0; node < CPU_SETSIZE && n < RT_NODES_MOST; node++) {
        snprintf(path, sizeof path, "%s/node%d/cpulist", directory, node);
        if (!CPU_ISSET(node, &nodes) || !read_list(path, &cpus[n]))
            continue;
        CPU_AND(&cpus[n], &cpus[n], &allowed);
        n += CPU_COUNT(&cpus[n]) > 0;
    }
    return n;
}
