// SPDX-License-Identifier: Apache-2.0
// Loops that are single kernels as machine code: the evaluator's bits.
#include "passes/resident_programs.h"

#include "support/run_native.h"

static void check_native(const char *what, uint32_t f)
{
    f = simplified(f);
    struct nest_program *p = schedule(f);
    struct ir_tensor *in = draw_inputs(f, seed), *want = evaluate(f, in);
    const struct ir_graph *g = graph(f);
    void **inputs = arena_array(module->arena, void *, g->n_params + 1);
    void **outputs = arena_array(module->arena, void *, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        inputs[i] = in[i].data;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        outputs[i] = arena_allocate(module->arena, tensor_bytes(want[i].type) + 64);
    require(run_native(module->arena, p, inputs, outputs));
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        struct ir_tensor got = {want[i].type, outputs[i]};
        require_of(bits_equal(got, want[i]) || distance(got, want[i]) == 0, what, f, p);
    }
}

START_TEST(programs_run)
{
    uint32_t f = parse(programs[_i].text), g;
    const char *name = programs[_i].name;
    check_native(name, f);
    check_native(name, mapped(f, all_inputs(f), LANES));
    check_native(name, mapped(f, 2, 3));
    check_native(name, mapped(mapped(f, all_inputs(f), 3), 1, LANES));
    check_native(name, mapped(forward(f), all_inputs(f), 5));
    if (programs[_i].has_while)
        return;
    require(pass_vjp(module, f, mask_of(graph(f)->n_params, inexact_bits(f)), &g));
    check_native(name, g);
    check_native(name, mapped(g, all_inputs(g), LANES));
}
END_TEST

START_TEST(random_loops_run)
{
    for (uint64_t i = 0; i < 6; i++) {
        uint32_t f = simplified(random_loop(seed + (uint64_t)_i * 1000 + i, 3 + (int)i));
        if (count_control(f) == 0)
            continue;
        check_native("random loop", f);
        check_native("random loop, mapped", mapped(f, all_inputs(f), 17));
        check_native("random loop, mapped over some", mapped(f, 1 + i, 17));
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, programs_run, 0, PROGRAMS);
    tcase_add_loop_test(t, random_loops_run, 0, 10);
}

int main(void) { return support_run("resident", add_tests); }
