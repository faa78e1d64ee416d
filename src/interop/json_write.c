// SPDX-License-Identifier: Apache-2.0
#include "interop/json_write.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put(struct json_text *t, const char *bytes, size_t n)
{
    if (!t->is_lost && n > t->room - t->n) {
        size_t room = 2 * t->room + n + 64;
        char *larger = memory_resize(t->bytes, room);
        t->is_lost = !larger;
        t->bytes = larger ? larger : t->bytes;
        t->room = larger ? room : t->room;
    }
    if (t->is_lost)
        return;
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
}

void json_put(struct json_text *t, const char *text) { put(t, text, strlen(text)); }

void json_put_count(struct json_text *t, uint64_t x)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRIu64, x);
    json_put(t, digits);
}

void json_put_string(struct json_text *t, const char *text)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    put(t, "\"", 1);
    for (; *text; text++) {
        char unit[8];
        const char *which = strchr(escaped, *text);
        if (which)
            snprintf(unit, sizeof unit, "\\%c", names[which - escaped]);
        else if ((unsigned char)*text < 0x20)
            snprintf(unit, sizeof unit, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            snprintf(unit, sizeof unit, "%c", *text);
        json_put(t, unit);
    }
    put(t, "\"", 1);
}
