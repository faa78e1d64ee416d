// SPDX-License-Identifier: Apache-2.0
#include "trace/print.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/eval.h"
#include "runtime/array.h"

#include <stdio.h>
#include <string.h>

// The text is made twice: first its length is counted, then it is written into memory of that size,
// so that it comes out in one piece.
struct text {
    char *at; // NULL while it is counted
    size_t n;
};

static void add(struct text *t, const char *from, size_t n)
{
    if (t->at)
        memcpy(t->at + t->n, from, n);
    t->n += n;
}

int print_count(const char *format)
{
    int n = 0;
    for (const char *c = format; *c; c++) {
        if (*c != '{' && *c != '}')
            continue;
        if (*c == '{' && c[1] == '}')
            n++;
        else if (c[1] != *c)
            return -1;
        c++;
    }
    return n;
}

// Lane number `lane` of an array, of which the first n_lanes axes are lanes.
static jot_status add_value(struct text *t, const jot_callback_array *a, int n_lanes,
                            int64_t lane)
{
    int64_t count = 1;
    for (int axis = n_lanes; axis < a->rank; axis++)
        count *= a->dims[axis];
    const char *data = a->data;
    if (count)
        data += (size_t)(lane * count) * jot_dtype_size(a->dtype);
    jot_array *array =
        rt_array_create_over(a->dtype, a->rank - n_lanes, a->dims + n_lanes, data, NULL, NULL);
    if (!array)
        return status_last();
    int n = jot_array_format(array, t->at ? t->at + t->n : NULL, t->at ? SIZE_MAX : 0);
    jot_array_release(array);
    t->n += n > 0 ? (size_t)n : 0;
    return JOT_OK;
}

// "[3, 1] ": the lanes that it is run for one after the other stand among those that are axes.
static void add_lane(struct text *t, const struct ir_lane_call *c, int64_t lane)
{
    char text[32];
    const jot_callback_call *call = &c->call;
    int rank = call->n_lanes + c->n_named, axis = 0;
    for (int i = 0, named = 0; i < rank; i++) {
        int64_t step = 1, number;
        if (named < c->n_named && c->axes[named] == i) {
            number = *(const int64_t *)c->named[named++].data;
        } else {
            for (int later = axis + 1; later < call->n_lanes; later++)
                step *= call->in[0].dims[later];
            number = lane / step % call->in[0].dims[axis++];
        }
        int n = snprintf(text, sizeof text, "%s%lld%s", i ? ", " : "[", (long long)number,
                         i == rank - 1 ? "] " : "");
        add(t, text, (size_t)n);
    }
}

static jot_status add_lines(struct text *t, const char *format, const struct ir_lane_call *in)
{
    const jot_callback_call *call = &in->call;
    int64_t lanes = 1;
    for (int axis = 0; axis < call->n_lanes; axis++)
        lanes *= call->in[0].dims[axis];
    for (int64_t lane = 0; lane < lanes; lane++) {
        size_t value = 0;
        add_lane(t, in, lane);
        for (const char *c = format; *c; c++) {
            if (*c == '{' && c[1] == '}')
                JOT_TRY(add_value(t, &call->in[value++], call->n_lanes, lane));
            else
                add(t, c, 1);
            c += *c == '{' || *c == '}';
        }
    }
    return JOT_OK;
}

jot_status print_call(void *format, const jot_callback_call *call)
{
    struct text t = {0};
    const struct ir_lane_call *in = (const struct ir_lane_call *)(const void *)call;
    JOT_TRY(add_lines(&t, format, in));
    t = (struct text){.at = memory_allocate(t.n + 1)};
    if (!t.at)
        return status_out_of_memory();
    jot_status status = add_lines(&t, format, in);
    if (status == JOT_OK)
        fwrite(t.at, 1, t.n, stdout);
    memory_release(t.at);
    return status;
}
