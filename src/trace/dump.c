// SPDX-License-Identifier: Apache-2.0
#include "trace/dump.h"

#include <stdio.h>
#include <stdlib.h>

bool dump_wants(const char *stage)
{
    const char *list = secure_getenv("JOT_DUMP");
    size_t n = strlen(stage);
    while (list && *list) {
        const char *end = strchr(list, ',');
        size_t length = end ? (size_t)(end - list) : strlen(list);
        if ((length == n && !memcmp(list, stage, n)) ||
            (length == 3 && !memcmp(list, "all", 3) && strcmp(stage, "run") != 0))
            return true;
        list = end ? end + 1 : NULL;
    }
    return false;
}

void dump_text(const char *stage, const char *name, const char *text)
{
    fprintf(stderr, "---- %s of %s\n%s", stage, name, text);
}

void dump_step(const char *name)
{
    static _Thread_local char last[128];
    if (!strncmp(last, name, sizeof last - 1))
        return;
    snprintf(last, sizeof last, "%s", name);
    fprintf(stderr, "---- run: %s\n", name);
}

void dump_function(const char *stage, const struct ir_module *m, uint32_t function)
{
    if (dump_wants(stage)) {
        const struct ir_graph *g = ir_function(m, function);
        dump_text(stage, g->name, ir_graph_text(g));
    }
}
