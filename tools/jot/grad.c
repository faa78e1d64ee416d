// SPDX-License-Identifier: Apache-2.0
// jot grad: the gradient of the sum of one result.
#include "command.h"

#include <stdlib.h>

struct result {
    jot_function f;
    size_t n_in, n_out, which;
};

static void sum_of_result(const jot_value *in, jot_value *out, void *ctx)
{
    const struct result *r = ctx;
    jot_value *all = calloc(r->n_out, sizeof *all);
    if (!all)
        return; // a function that does not set its result is a status
    jot_apply(r->f, r->n_in, in, r->n_out, all);
    out[0] = jot_sum(all[r->which]);
    free(all);
}

static bool is_differentiable(jot_dtype d) { return d >= JOT_F16 && d <= JOT_C128; }

static bool check_numbers(const struct job *j)
{
    char text[256];
    const jot_program_signature *s = j->signature;
    for (const int *i = j->a->wrt; *i != JOT_END; i++) {
        if ((size_t)*i >= s->n_in)
            return misuse("--wrt %d: @%s takes %zu arguments (numbered from 0)", *i,
                          j->a->function, s->n_in);
        if (!is_differentiable(s->in[*i].dtype))
            return misuse(
                "--wrt %d: argument %d is %s, and gradients are in floats", *i, *i,
                type_text(s->in[*i].dtype, s->in[*i].rank, s->in[*i].dims, text, sizeof text));
        for (const int *k = j->a->wrt; k < i; k++)
            if (*k == *i)
                return misuse("--wrt has argument %d twice", *i);
    }
    if ((size_t)j->a->output >= s->n_out)
        return misuse("--output %d: @%s gives %zu results (numbered from 0)", j->a->output,
                      j->a->function, s->n_out);
    const jot_program_type *t = &s->out[j->a->output];
    if (t->dtype < JOT_F16 || t->dtype > JOT_F64)
        return misuse("--output %d: result %d is %s, and a gradient is that of real floats",
                      j->a->output, j->a->output,
                      type_text(t->dtype, t->rank, t->dims, text, sizeof text));
    return true;
}

static bool run_gradient(struct job *j)
{
    size_t n = 0;
    while (j->a->wrt[n] != JOT_END)
        n++;
    struct result r = {jot_program_function(j->program, j->a->function), j->n_in,
                       j->signature->n_out, (size_t)j->a->output};
    jot_function sum = jot_function_uniform(j->a->function, j->a->files[0], sum_of_result,
                                            (int)j->n_in, 1, &r);
    return compile_job(j, jot_grad_of(sum, j->a->files[0], j->a->wrt), n) && run_job(j) &&
           give_outputs(j, "grad");
}

bool command_grad(const struct arguments *a)
{
    struct job j = {.a = a};
    bool is_well =
        open_job(&j) && check_numbers(&j) && read_inputs(&j, false) && run_gradient(&j);
    close_job(&j);
    return is_well;
}
