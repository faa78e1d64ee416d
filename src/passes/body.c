// SPDX-License-Identifier: Apache-2.0
#include "passes/body.h"

struct body body_of(struct ir_module *m, uint32_t f)
{
    const struct ir_graph *g = ir_function(m, f);
    return (struct body){.b = ir_builder_make(m, g->name, IR_BUILD_ZEROS),
                         .f = g,
                         .in = pass_no_values(m, g->n_params),
                         .out = pass_no_values(m, g->outputs.count)};
}

void body_take(struct body *w, uint32_t i) { w->in[i] = ir_param(&w->b, ir_type_of(w->f, i)); }

void body_take_all(struct body *w)
{
    for (uint32_t i = 0; i < w->f->n_params; i++)
        body_take(w, i);
}

void body_run(struct body *w) { ir_inline(&w->b, w->f, w->in, w->out); }

void body_give(struct body *w, uint32_t i) { ir_output(&w->b, w->out[i]); }

void body_give_or_zeros(struct body *w, bool there, uint32_t i, struct ir_type t)
{
    if (there)
        body_give(w, i);
    else
        ir_output(&w->b, ir_zeros(&w->b, t));
}
