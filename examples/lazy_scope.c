// SPDX-License-Identifier: Apache-2.0
// NumPy-like use: no function and no compile call.  A line is fitted in a scope that forgets as it
// goes; the learning rate changes at every step, and nothing is compiled again for that.
#include <jot/jot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct line {
    jot_value slope, offset;
};

static jot_value loss(struct line p, jot_value x, jot_value y)
{
    return jot_mean(jot_square(jot_sub(jot_add(jot_mul(p.slope, x), p.offset), y)));
}

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

int main(void)
{
    const double data[4] = {1, 2, 3, 4};
    jot_array *array = jot_array_from(data, 4), *r;

    jot_scope *s = jot_scope_open();
    jot_value b = jot_add(jot_sin(array), 1.0);
    must(jot_eval(b, &r));
    jot_array_print(r);
    jot_print(jot_reshape(jot_arange(JOT_I32, 6), 2, 3));
    jot_print(jot_mul(jot_arange(JOT_I32, 4), 0.5));

    struct {
        struct line p;
        jot_value x, y;
    } now = {{jot_full(JOT_F64, 0), jot_full(JOT_F64, 0)}, jot_from(array), {0, 0}};
    now.y = jot_sub(jot_mul(2, now.x), 3); // the line to be found
    for (int i = 0; i < 600; i++) {
        double rate = 0.12 / (1 + 0.0005 * i);
        struct line g = JOT_GRAD(loss, now.p, now.x, now.y);
        now.p.slope = jot_sub(now.p.slope, jot_mul(rate, g.slope));
        now.p.offset = jot_sub(now.p.offset, jot_mul(rate, g.offset));
        must(jot_scope_keep(s, JOT_TREE(now)));
    }
    double slope = jot_item(now.p.slope), offset = jot_item(now.p.offset);
    printf("slope %.6f, offset %.6f\n", slope, offset);
    double first = ((const double *)jot_array_data(r))[0];
    jot_scope_close(s);
    jot_array_release(r), jot_array_release(array);
    return fabs(slope - 2) < 1e-5 && fabs(offset + 3) < 1e-5 && fabs(first - 1 - sin(1)) < 1e-15
               ? 0
               : 1;
}
