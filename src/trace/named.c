// SPDX-License-Identifier: Apache-2.0
#include "trace/named.h"

#include "base/strbuf.h"
#include "ir/collective.h"

bool trace_is_axis_name(const char *name)
{
    size_t n = 0;
    while (strbuf_is_word_char(name[n]))
        n++;
    return n && !name[n];
}

// The axis of that name in the set, or -1.
static int find_named(const struct ir_module *m, uint16_t axes, const char *name, size_t length)
{
    for (int i = 0; axes >> i; i++) {
        const char *known = axes >> i & 1 ? m->axes.at[i].name : "";
        if (strlen(known) == length && !memcmp(known, name, length))
            return i;
    }
    return -1;
}

int trace_name_axis(const char *op, uint16_t axes, const char *name, int64_t size,
                    jot_value *out_error)
{
    struct ir_module *m = trace_top()->module;
    if (find_named(m, axes, name, strlen(name)) >= 0) {
        *out_error =
            trace_fail(op, JOT_ERR_ARGUMENT,
                       "an axis %s inside of a map over %s: give one another name", name, name);
        return -1;
    }
    int axis = ir_axis_add(m, name, size);
    if (axis < 0)
        *out_error = trace_fail(op, JOT_ERR_ARGUMENT,
                                "axis %s of size %lld: there are %d named axes already", name,
                                (long long)size, IR_MAX_AXES);
    return axis;
}

bool trace_find_axes(const char *op, const char *text, int *out_n, int64_t *over,
                     jot_value *out_error)
{
    const struct trace *t = trace_top();
    *out_n = 0;
    for (const char *at = text;; at++) {
        while (*at == ' ')
            at++;
        size_t length = 0;
        while (strbuf_is_word_char(at[length]))
            length++;
        int axis = find_named(t->module, t->axes, at, length);
        if (length == 0) {
            *out_error = trace_fail(op, JOT_ERR_ARGUMENT,
                                    "\"%.60s\" lists no axes: write \"i\" or \"i, j\"", text);
            return false;
        }
        if (axis < 0) {
            const char *known = ir_axes_text(t->module, t->axes);
            *out_error = trace_fail(op, JOT_ERR_ARGUMENT,
                                    "no map around it names an axis %.*s: %s%s", (int)length,
                                    at, *known ? "there is " : "jot_vmap_named does", known);
            return false;
        }
        for (int i = 0; i < *out_n; i++)
            if (over[i] == axis) {
                *out_error = trace_fail(op, JOT_ERR_ARGUMENT, "\"%.60s\" lists %.*s twice",
                                        text, (int)length, at);
                return false;
            }
        over[(*out_n)++] = axis;
        at += length;
        while (*at == ' ')
            at++;
        if (!*at)
            return true;
        if (*at != ',') {
            *out_error = trace_fail(op, JOT_ERR_ARGUMENT,
                                    "\"%.60s\" lists no axes: write \"i\" or \"i, j\"", text);
            return false;
        }
    }
}
