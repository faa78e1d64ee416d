// SPDX-License-Identifier: Apache-2.0
// JSON, written as text that grows.
#ifndef INTEROP_JSON_WRITE_H
#define INTEROP_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_text {
    char *bytes; // for memory_release
    size_t n, room;
    bool is_lost; // memory is out: the text is not whole
};

void json_put(struct json_text *t, const char *text); // as it is
void json_put_count(struct json_text *t, uint64_t x);
void json_put_string(struct json_text *t, const char *text); // in quotes, with escapes

#endif
