// SPDX-License-Identifier: Apache-2.0
// The names of the values of a struct.
#include "jot/struct.h"

#include <stdio.h>
#include <string.h>

int jot_value_name(const jot_members *members, size_t i, char *buffer, size_t size)
{
    if (!members || i >= members->values)
        return -1;
    size_t length = 0;
    size = buffer ? size : 0;
    while (members->n) {
        const jot_member *m = members->member;
        while (i >= m->values)
            i -= m++->values;
        members = m->of;
        char item[24] = "";
        size_t name = strcspn(m->name, "["), left = length < size ? size - length : 0;
        if (m->name[name])
            snprintf(item, sizeof item, "[%zu]", i / members->values);
        i %= members->values;
        length += (size_t)snprintf(left ? buffer + length : NULL, left, "%s%.*s%s",
                                   length ? "." : "", (int)name, m->name, item);
    }
    return (int)length;
}
