// SPDX-License-Identifier: Apache-2.0
// JSON (RFC 8259), read in order: the caller knows what comes next.
//
//     JOT_TRY(json_expect(j, '{'));
//     for (bool is_more = !json_take(j, '}'); is_more; ) {
//         JOT_TRY(json_key(j, &key));
//         ...
//         JOT_TRY(json_next(j, '}', &is_more));
//     }
#ifndef INTEROP_JSON_H
#define INTEROP_JSON_H

#include "interop/input.h"

#include <stdbool.h>

struct json {
    const struct input *in;
    uint64_t start; // offset of the text in the input
    const char *text;
    size_t n, at;
    char *room; // for strings, as many bytes as the text has
};

// Fails at the place where the reader is.
#define JSON_FAIL(j, ...) input_fail((j)->in, (j)->start + (j)->at, __VA_ARGS__)

// The next character that is no blank, or 0 at the end.
char json_peek(struct json *j);
bool json_take(struct json *j, char c);
jot_status json_expect(struct json *j, char c);
// Behind an element: a comma, or the bracket that closes.
jot_status json_next(struct json *j, char close, bool *out_is_more);

// The string, in the room: it ends in a zero byte and has none inside.
jot_status json_string(struct json *j, const char **out);
// A string and the colon behind it.
jot_status json_key(struct json *j, const char **out);
// An integer from 0 on without a fraction or an exponent.
jot_status json_count(struct json *j, uint64_t *out);
// Any value, which is not looked at, in at most 64 levels.
jot_status json_skip(struct json *j);
// Nothing but blanks is left.
jot_status json_end(struct json *j);

#endif
