// SPDX-License-Identifier: Apache-2.0
#include "random/large.h"

#include "map/map.h"
#include "passes/passes.h"
#include "schedule/schedule.h"

uint32_t large_make(struct ir_module *m, uint64_t seed, int64_t stretch, bool is_gradient,
                    bool is_gpu)
{
    unsigned kind = PROGRAM_LARGE | (is_gradient ? PROGRAM_DERIVABLE : 0u);
    uint32_t f = program_make_stretched(m, seed, kind, stretch);
    if (is_gradient) {
        const struct ir_graph *g = ir_function(m, f);
        bool *wrt = arena_array(m->arena, bool, g->n_params + 1), any = false;
        for (uint32_t i = 0; i < g->n_params; i++)
            any |= wrt[i] = dtype_is_inexact(ir_dtype_of(g, i));
        if (!any || pass_vjp(m, f, wrt, &f) != JOT_OK)
            return IR_NONE;
    }
    f = pass_inline(m, pass_simplify(m, f), 100000);
    if (is_gpu)
        f = pass_sort_updates(m, f);
    return pass_simplify(m, pass_count_trips(m, f));
}

jot_status large_schedule(struct ir_module *m, uint32_t f, bool is_gpu, bool separate,
                          struct nest_program **out)
{
    if (is_gpu)
        f = pass_three_products(m, pass_relu_masks(m, f));
    struct schedule_options options = schedule_options_of(is_gpu);
    options.separate = options.no_gemm = separate;
    options.price = is_gpu ? NULL : map_price_of_all;
    options.gpu_price = is_gpu ? map_price_on_gpu : NULL;
    return pass_schedule(m->arena, ir_function(m, f), &options, out);
}
