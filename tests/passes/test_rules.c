// SPDX-License-Identifier: Apache-2.0
// Every rule of every op, by walking the op table: tangents against central differences,
// cotangents against tangents, mapping against a loop, and transforms against each other.
#include "pass_support.h"

// Ops whose result does not follow its derivative by design: reduce_precision passes tangents
// through, stop_gradient stops them.
static bool is_smooth(enum ir_op op)
{
    return op != IR_reduce_precision && op != IR_stop_gradient && op != IR_bitcast &&
           op != IR_sign && op != IR_nextafter;
}

static const char *lane_domain(const struct opcase *c)
{
    const char *d = ir_op_get(c->op)->domain;
    return strcmp(d, "NONE") == 0 ? "ANY" : strcmp(d, "SHIFT") == 0 ? "POSITIVE" : d;
}

// Room for the operands of a derivative of g.
static struct ir_tensor *operands_of(const struct ir_graph *g)
{
    return arena_array(module->arena, struct ir_tensor, 2 * g->n_params + g->outputs.count + 1);
}

static const jot_dtype dtypes[] = {JOT_F64, JOT_C128};

#define for_each_case(c)                                                                       \
    for (int d_ = 0; d_ < 2; d_++)                                                             \
        for (struct opcases cases_ = opcases_make(module, dtypes[d_], seed), *once_ = &cases_; \
             once_; once_ = NULL)                                                              \
            for (const struct opcase *c = cases_.at; c < cases_.at + cases_.count; c++)

START_TEST(tangents_are_differences)
{
    uint64_t state = seed;
    for_each_case(c)
    {
        if (!is_smooth(c->op) || c->n_in == 0)
            continue;
        uint32_t f = opcase_function(module, c);
        const bool *all = inexact_inputs(graph(f));
        check_differences(c->text, f, all, c->in, &state);
        for (int i = 0; i < c->n_in && c->n_in > 1; i++)
            if (all[i])
                check_differences(c->text, f, mask_of((uint32_t)c->n_in, 1u << i), c->in,
                                  &state);
    }
}
END_TEST

START_TEST(cotangents_are_adjoint)
{
    uint64_t state = seed + 1;
    for_each_case(c)
    {
        if (c->op == IR_reduce_precision)
            continue; // rounds tangents, so it is linear only nearly
        uint32_t f = opcase_function(module, c);
        const bool *all = inexact_inputs(graph(f));
        check_transpose(c->text, f, all, c->in, &state);
        for (int i = 0; i < c->n_in && c->n_in > 1; i++)
            if (all[i])
                check_transpose(c->text, f, mask_of((uint32_t)c->n_in, 1u << i), c->in, &state);
    }
}
END_TEST

START_TEST(maps_are_loops)
{
    uint64_t state = seed + 2;
    for_each_case(c)
    {
        uint32_t f = opcase_function(module, c);
        for (uint64_t bits = 0; bits < 1u << c->n_in; bits++)
            for (int64_t size = 0; size < 4; size++)
                check_vmap(c->text, f, mask_of((uint32_t)c->n_in, bits), size, c->in,
                           c->op == IR_dot_general ? 1e-14 : 0, lane_domain(c), &state);
    }
}
END_TEST

// grad . grad: the vjp of a sum of vjp results, by differences of it.
START_TEST(second_derivatives_are_differences)
{
    uint64_t state = seed + 3;
    for_each_case(c)
    {
        if (!is_smooth(c->op) || c->n_in == 0 || dtype_is_complex(ir_dtype(c->in[0].type)) ||
            dtype_is_complex(ir_dtype(c->in[c->n_in - 1].type)))
            continue;
        uint32_t f = opcase_function(module, c), back;
        const struct ir_graph *g = graph(f);
        struct ir_type y = ir_type_of(g, g->outputs.at[0]);
        if (ir_dtype(y) != JOT_F64 || c->op == IR_barrier)
            continue;
        require(pass_vjp(module, f, inexact_inputs(g), &back));
        struct ir_tensor *in = operands_of(g);
        memcpy(in, c->in, sizeof *in * (size_t)c->n_in);
        uint32_t n = (uint32_t)c->n_in;
        for (uint32_t i = 0; i < g->outputs.count; i++)
            if (inexact(ir_type_of(g, g->outputs.at[i])))
                in[n++] = draw(ir_type_of(g, g->outputs.at[i]), &state);
        const bool *all = inexact_inputs(graph(back));
        check_differences(c->text, back, all, in, &state);
        check_transpose(c->text, back, all, in, &state);
    }
}
END_TEST

START_TEST(derivatives_map)
{
    uint64_t state = seed + 4;
    for_each_case(c)
    {
        if (c->n_in == 0)
            continue;
        uint32_t f = opcase_function(module, c), back, all_bits = (1u << c->n_in) - 1, forward;
        const struct ir_graph *g = graph(f);
        const bool *all = inexact_inputs(g);
        require(pass_vjp(module, f, all, &back));
        require(pass_jvp(module, f, all, &forward, NULL));
        struct ir_tensor *in = operands_of(g);
        uint32_t n = (uint32_t)c->n_in;
        memcpy(in, c->in, sizeof *in * n);
        for (uint32_t i = 0; i < g->outputs.count; i++)
            if (inexact(ir_type_of(g, g->outputs.at[i])))
                in[n++] = draw(ir_type_of(g, g->outputs.at[i]), &state);
        check_vmap(c->text, back, mask_of(n, all_bits), 2, in, 1e-13, lane_domain(c), &state);
        check_vmap(c->text, back, mask_of(n, ~(uint64_t)all_bits), 2, in, 1e-13, "ANY", &state);
        check_vmap(c->text, back, mask_of(n, 1), 3, in, 1e-13, lane_domain(c), &state);
        n = (uint32_t)c->n_in;
        for (int i = 0; i < c->n_in; i++)
            if (all[i])
                in[n++] = draw(c->in[i].type, &state);
        check_vmap(c->text, forward, mask_of(n, 1), 2, in, 1e-13, lane_domain(c), &state);
        check_vmap(c->text, forward, mask_of(n, ~(uint64_t)all_bits), 2, in, 1e-13, "ANY",
                   &state);
    }
}
END_TEST

// grad . vmap = vmap . grad with every input mapped.
START_TEST(grad_and_vmap_commute)
{
    uint64_t state = seed + 5;
    for_each_case(c)
    {
        if (c->n_in == 0)
            continue;
        uint32_t f = opcase_function(module, c), back, mapped, one, other;
        const struct ir_graph *g = graph(f);
        const bool *all = inexact_inputs(g);
        bool *batched = arena_array(module->arena, bool, g->outputs.count + 1);
        struct ir_tensor *in = operands_of(g), lanes[2];
        uint32_t n = (uint32_t)c->n_in;
        for (uint32_t i = 0; i < n; i++) {
            for (int k = 0; k < 2; k++)
                lanes[k] = opcase_draw(module, c->in[i].type, lane_domain(c), &state);
            in[i] = stack(c->in[i].type, 2, lanes);
        }
        require(pass_vjp(module, f, all, &back));
        require(pass_vmap(module, back, mask_of(graph(back)->n_params, ~UINT64_C(0)), 2, &one,
                          NULL));
        require(pass_vmap(module, f, mask_of(n, ~UINT64_C(0)), 2, &mapped, batched));
        require(pass_vjp(module, mapped, all, &other));
        ck_assert_int_eq(graph(one)->n_params, graph(other)->n_params);
        for (uint32_t i = n; i < graph(one)->n_params; i++)
            in[i] = draw(ir_type_of(graph(one), i), &state);
        struct ir_tensor *x = evaluate(one, in), *y = evaluate(other, in);
        for (uint32_t i = 0; i < graph(other)->outputs.count; i++) {
            // A zero cotangent needs no axis.
            struct ir_tensor a = x[i], b = y[i];
            if (a.type.rank < b.type.rank)
                b = lane(b, 0);
            double error = distance(a, b);
            ck_assert_msg(error < 1e-13, "seed %" PRIu64 ": %s: off by %g", seed, c->text,
                          error);
        }
    }
}
END_TEST

START_TEST(simplified_is_equal)
{
    uint64_t state = seed + 6;
    for_each_case(c)
    {
        uint32_t f = opcase_function(module, c), back;
        const struct ir_graph *g = graph(f);
        require(pass_vjp(module, f, inexact_inputs(g), &back));
        struct ir_tensor *in = operands_of(g);
        uint32_t n = (uint32_t)c->n_in;
        memcpy(in, c->in, sizeof *in * n);
        for (uint32_t i = 0; i < g->outputs.count; i++)
            if (inexact(ir_type_of(g, g->outputs.at[i])))
                in[n++] = draw(ir_type_of(g, g->outputs.at[i]), &state);
        check_simplify(c->text, f, in);
        check_simplify(c->text, back, in);
    }
}
END_TEST

// Rules hold for other dtypes too: types of tangents are checked as they are made.
START_TEST(all_dtypes_transform)
{
    for (int d = 0; d < DTYPE_COUNT; d++) {
        struct opcases cases = opcases_make(module, (jot_dtype)d, seed);
        for (uint32_t i = 0; i < cases.count; i++) {
            const struct opcase *c = &cases.at[i];
            uint32_t f = opcase_function(module, c), g;
            const bool *all = inexact_inputs(graph(f));
            require(pass_jvp(module, f, all, &g, NULL));
            require(pass_vjp(module, f, all, &g));
            ck_assert_int_eq(ir_verify(graph(g), NULL), 0);
            require(
                pass_vmap(module, g, mask_of(graph(g)->n_params, ~UINT64_C(0)), 3, &g, NULL));
            ck_assert_int_eq(ir_verify(graph(g), NULL), 0);
        }
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, tangents_are_differences);
    tcase_add_test(t, cotangents_are_adjoint);
    tcase_add_test(t, maps_are_loops);
    tcase_add_test(t, second_derivatives_are_differences);
    tcase_add_test(t, derivatives_map);
    tcase_add_test(t, grad_and_vmap_commute);
    tcase_add_test(t, simplified_is_equal);
    tcase_add_test(t, all_dtypes_transform);
}

int main(void) { return support_run("rules", add_tests); }
