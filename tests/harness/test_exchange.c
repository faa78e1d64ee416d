// SPDX-License-Identifier: Apache-2.0
// Collectives over the axes of a mesh: the programs of its devices against the named map of the same
// function in the evaluator.
#include "ir/collective.h"
#include "jot/device.h"
#include "passes/body.h"
#include "passes/rules/rules.h"
#include "passes/transform.h"
#include "schedule/plan/plan.h"
#include "schedule/schedule_support.h"
#include "support/run_native.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

// What every lane has varies over all axes.
static const struct program {
    const char *name;
    int rank;
    int64_t mesh[2];
    const char *text;
    uint32_t packed; // collectives that are left when small ones are packed
} programs[] = {
    {"all of them",
     2,
     {2, 3},
     "jot ir 1\n"
     "function @0 f(%0: f32[6,4]<i:2,j:3>, %1: f32[2,3,5]<i:2,j:3>) {\n"
     "  %2 = psum %0 {over=[i:2]} : f32[6,4]<j:3>\n"
     "  %3 = psum %0 {over=[i:2, j:3]} : f32[6,4]\n"
     "  %4 = pmax %0 {over=[j:3]} : f32[6,4]<i:2>\n"
     "  %5 = pmin %0 {over=[j:3, i:2]} : f32[6,4]\n"
     "  %6 = all_gather %1 {over=[j:3, i:2]} : f32[6,2,3,5]\n"
     "  %7 = psum_scatter %0 {over=[i:2, j:3]} : f32[4]<i:2,j:3>\n"
     "  %8 = all_to_all %0 {over=[j:3, i:2]} : f32[6,4]<i:2,j:3>\n"
     "  %9 = ppermute %1 {over=[j:3, i:2], pairs=[0, 5, 3, 1, 5, 0]} : f32[2,3,5]<i:2,j:3>\n"
     "  %10 = all_to_all %1 {over=[i:2]} : f32[2,3,5]<i:2,j:3>\n"
     "  %11 = axis_index {over=[j:3]} : i32[]<j:3>\n"
     "  return %2, %3, %4, %5, %6, %7, %8, %9, %10, %11\n"
     "}\n",
     9},
    {"between kernels",
     1,
     {4},
     "jot ir 1\n"
     "function @0 f(%0: f32[5]<i:4>, %1: f32[5]) {\n"
     "  %2 = mul %0, %0 : f32[5]<i:4>\n"
     "  %3 = psum %2 {over=[i:4]} : f32[5]\n"
     "  %4 = add %3, %1 : f32[5]\n"
     "  %5 = pvary %4 {over=[i:4]} : f32[5]<i:4>\n"
     "  %6 = sub %5, %0 : f32[5]<i:4>\n"
     "  %7 = ppermute %6 {over=[i:4], pairs=[0, 1, 1, 2, 2, 3, 3, 0]} : f32[5]<i:4>\n"
     "  %8 = add %7, %6 : f32[5]<i:4>\n"
     "  return %4, %8\n"
     "}\n",
     2},
    {"side by side",
     1,
     {4},
     "jot ir 1\n"
     "function @0 f(%0: f32[3]<i:4>, %1: f32[4,2]<i:4>, %2: f32[4,3]<i:4>) {\n"
     "  %3 = psum %0 {over=[i:4]} : f32[3]\n"
     "  %4 = psum %1 {over=[i:4]} : f32[4,2]\n"
     "  %5 = all_gather %0 {over=[i:4]} : f32[4,3]\n"
     "  %6 = all_gather %1 {over=[i:4]} : f32[4,4,2]\n"
     "  %7 = psum_scatter %1 {over=[i:4]} : f32[2]<i:4>\n"
     "  %8 = psum_scatter %2 {over=[i:4]} : f32[3]<i:4>\n"
     "  %9 = all_to_all %1 {over=[i:4]} : f32[4,2]<i:4>\n"
     "  %10 = all_to_all %2 {over=[i:4]} : f32[4,3]<i:4>\n"
     "  %11 = ppermute %0 {over=[i:4], pairs=[0, 2, 3, 1]} : f32[3]<i:4>\n"
     "  %12 = ppermute %2 {over=[i:4], pairs=[0, 2, 3, 1]} : f32[4,3]<i:4>\n"
     "  %13 = psum %8 {over=[i:4]} : f32[3]\n"
     "  %14 = psum %11 {over=[i:4]} : f32[3]\n"
     "  return %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14\n"
     "}\n",
     6},
    {"in loops and branches",
     1,
     {3},
     "jot ir 1\n"
     "function @0 step(%0: f32[4]<i:3>, %1: f32[4]<i:3>, %2: f32[4]<i:3>) {\n"
     "  %3 = ppermute %1 {over=[i:3], pairs=[0, 1, 1, 2, 2, 0]} : f32[4]<i:3>\n"
     "  %4 = axis_index {over=[i:3]} : i32[]<i:3>\n"
     "  %5 = convert %4 {dtype=f32} : f32[]<i:3>\n"
     "  %6 = broadcast_in_dim %5 {dims=[4], axes=[]} : f32[4]<i:3>\n"
     "  %7 = add %3, %6 : f32[4]<i:3>\n"
     "  %8 = add %7, %2 : f32[4]<i:3>\n"
     "  %9 = sub %8, %0 : f32[4]<i:3>\n"
     "  return %9, %9\n"
     "}\n"
     "function @1 test(%0: f32[], %1: i32[], %2: f32[4]<i:3>) {\n"
     "  %3 = const {data=5} : i32[]\n"
     "  %4 = lt %1, %3 : bool[]\n"
     "  return %4\n"
     "}\n"
     "function @2 go(%0: f32[], %1: i32[], %2: f32[4]<i:3>) {\n"
     "  %3 = const {data=1} : i32[]\n"
     "  %4 = add %1, %3 : i32[]\n"
     "  %5 = psum %2 {over=[i:3]} : f32[4]\n"
     "  %6 = broadcast_in_dim %0 {dims=[4], axes=[]} : f32[4]\n"
     "  %7 = sub %6, %5 : f32[4]\n"
     "  %8 = pvary %7 {over=[i:3]} : f32[4]<i:3>\n"
     "  %9 = sub %8, %2 : f32[4]<i:3>\n"
     "  return %4, %9\n"
     "}\n"
     "function @3 one(%0: f32[4]<i:3>) {\n"
     "  %1 = pmax %0 {over=[i:3]} : f32[4]\n"
     "  %2 = pvary %1 {over=[i:3]} : f32[4]<i:3>\n"
     "  return %2\n"
     "}\n"
     "function @4 other(%0: f32[4]<i:3>) {\n"
     "  %1 = axis_index {over=[i:3]} : i32[]<i:3>\n"
     "  %2 = convert %1 {dtype=f32} : f32[]<i:3>\n"
     "  %3 = broadcast_in_dim %2 {dims=[4], axes=[]} : f32[4]<i:3>\n"
     "  %4 = mul %0, %3 : f32[4]<i:3>\n"
     "  return %4\n"
     "}\n"
     "function @5 f(%0: f32[4]<i:3>, %1: f32[6,4]<i:3>, %2: f32[], %3: i32[]) {\n"
     "  %4, %5 = scan %0, %0, %1 {reverse=0, length=6, n_consts=1, n_carry=1, functions=[@0]} "
     ": "
     "f32[4]<i:3>, f32[6,4]<i:3>\n"
     "  %6, %7 = while %2, %3, %4 {n_consts=1, functions=[@1, @2]} : "
     "i32[], f32[4]<i:3>\n"
     "  %8 = cond %3, %7 {functions=[@3, @4]} : f32[4]<i:3>\n"
     "  return %5, %6, %7, %8\n"
     "}\n",
     3},
    {"of borders",
     1,
     {4},
     "jot ir 1\n"
     "function @0 step(%0: f32[8,16]<i:4>) {\n"
     "  %1 = slice %0 {starts=[7, 0], limits=[8, 16], strides=[1, 1]} : f32[1,16]<i:4>\n"
     "  %2 = slice %0 {starts=[0, 0], limits=[1, 16], strides=[1, 1]} : f32[1,16]<i:4>\n"
     "  %3 = ppermute %1 {over=[i:4], pairs=[0, 1, 1, 2, 2, 3]} : f32[1,16]<i:4>\n"
     "  %4 = ppermute %2 {over=[i:4], pairs=[1, 0, 2, 1, 3, 2]} : f32[1,16]<i:4>\n"
     "  %5 = concatenate %3, %0, %4 {axis=0} : f32[10,16]<i:4>\n"
     "  %6 = slice %5 {starts=[0, 0], limits=[8, 16], strides=[1, 1]} : f32[8,16]<i:4>\n"
     "  %7 = slice %5 {starts=[2, 0], limits=[10, 16], strides=[1, 1]} : f32[8,16]<i:4>\n"
     "  %8 = sub %7, %6 : f32[8,16]<i:4>\n"
     "  %9 = add %0, %8 : f32[8,16]<i:4>\n"
     "  return %9\n"
     "}\n"
     "function @1 f(%0: f32[8,16]<i:4>) {\n"
     "  %1 = scan %0 {reverse=0, length=5, n_consts=0, n_carry=1, functions=[@0]} : "
     "f32[8,16]<i:4>\n"
     "  return %1\n"
     "}\n",
     2},
};

// Small numbers, whose sums are exact in any order.
static struct ir_tensor numbers(struct ir_type t, uint64_t *state)
{
    struct ir_tensor x = zeros(t);
    for (int64_t i = 0; i < ir_count(module, t); i++) {
        int number = (int)((*state += 7) % 11) - 4;
        if (ir_dtype(t) == JOT_F32)
            ((float *)x.data)[i] = (float)number;
        else
            ((int32_t *)x.data)[i] = number & 1;
    }
    return x;
}

static int64_t n_devices(const struct program *p)
{
    return p->rank == 1 ? p->mesh[0] : p->mesh[0] * p->mesh[1];
}

// The results for all lanes, along leading axes, one a named axis.
static struct ir_tensor *mapped(const struct program *p, uint32_t f, const struct ir_tensor *in)
{
    const struct ir_graph *g = graph(f);
    bool *batched = arena_array(module->arena, bool, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        batched[i] = ir_type_of(g, i).varies != 0;
    for (int axis = p->rank; axis-- > 0;) {
        bool *out = arena_array(module->arena, bool, g->outputs.count + 1);
        require(pass_vmap_named(module, f, batched, p->mesh[axis], axis, &f, out));
        struct body w = body_of(module, f);
        body_take_all(&w);
        body_run(&w);
        for (uint32_t i = 0; i < g->outputs.count; i++)
            ir_output(&w.b, out[i] ? w.out[i] : batch_repeat(&w.b, w.out[i], p->mesh[axis]));
        require(pass_finish(&w.b, &f));
    }
    return evaluate(f, in);
}

static char *block(struct ir_tensor x, struct ir_type lane_type, int64_t device)
{
    return (char *)x.data + (size_t)device * tensor_bytes(lane_type);
}

static struct ir_type lanes_of(const struct program *p, struct ir_type t)
{
    uint16_t varies = t.varies;
    t.varies = 0;
    for (int axis = p->rank; varies && axis-- > 0;)
        t = ir_type_stack(module, t, p->mesh[axis]);
    return t;
}

// By device: the arguments of each, and its coordinates.
enum { PLAIN, SEPARATE, PACKED, EARLY, LARGE, WAYS };

static void run_on_devices(const struct program *p, uint32_t f, const struct ir_tensor *in,
                           void **outputs, int way)
{
    const struct ir_graph *g = graph(f);
    uint32_t made, n = (uint32_t)n_devices(p), n_in = g->n_params + 1;
    int64_t axes[2] = {0, 1};
    const void **inputs = arena_array(module->arena, const void *, n *n_in);
    for (uint32_t d = 0; d < n; d++) {
        int32_t *coordinates = arena_array(module->arena, int32_t, 2);
        coordinates[0] = (int32_t)(p->rank == 1 ? d : d / p->mesh[1]);
        coordinates[1] = (int32_t)(p->rank == 1 ? 0 : d % p->mesh[1]);
        for (uint32_t i = 0; i < g->n_params; i++)
            inputs[d * n_in + i] =
                ir_type_of(g, i).varies ? block(in[i], ir_type_of(g, i), d) : in[i].data;
        inputs[d * n_in + g->n_params] = coordinates;
    }
    require(pass_exchange(module, f, p->rank, axes, &made));
    ck_assert_int_eq(graph(made)->names, 0);
    struct schedule_options options = {.mesh_rank = (uint32_t)p->rank,
                                       .mesh = p->mesh,
                                       .separate = way == SEPARATE,
                                       .large = way == LARGE,
                                       .early_exchanges = way == EARLY || way == LARGE};
    made = pass_simplify(module, made);
    if (way == PACKED)
        made = pass_simplify(module, pass_pack_exchanges(module, made));
    struct nest_program *program = schedule_with(made, &options);
    uint32_t count = 0;
    bool is_apart = false; // kernels copy what is exchanged
    for (uint32_t i = 0; i < program->steps.count; i++) {
        count += program->steps.at[i].kind == NEST_STEP_COLLECTIVE;
        is_apart |= program->steps.at[i].kind == NEST_STEP_COLLECTIVE &&
                    program->steps.at[i].ranges == NULL;
    }
    if (!strcmp(p->name, "of borders"))
        ck_assert_int_eq(is_apart, way == SEPARATE);
    if (way == PACKED)
        ck_assert_int_eq(count, p->packed);
    check_program(made, program);
    if (n <= run_native_devices())
        require(run_native_together(module->arena, program, NULL, n, inputs, outputs));
}

static void check_devices(const struct program *p, uint32_t f, int way)
{
    uint64_t state = 1;
    uint32_t n = (uint32_t)n_devices(p);
    const struct ir_graph *g = graph(f);
    struct ir_tensor *in = arena_array(module->arena, struct ir_tensor, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        in[i] = numbers(lanes_of(p, ir_type_of(g, i)), &state);
    struct ir_tensor *want = mapped(p, f, in);
    uint32_t n_out = g->outputs.count;
    void **outputs = arena_array(module->arena, void *, n *n_out);
    for (uint32_t k = 0; k < n * n_out; k++)
        outputs[k] = arena_allocate(module->arena,
                                    tensor_bytes(ir_type_of(g, g->outputs.at[k % n_out])) + 16);
    run_on_devices(p, f, in, outputs, way);
    if (n > run_native_devices())
        return;
    for (uint32_t k = 0; k < n * n_out; k++) {
        struct ir_type t = ir_type_of(g, g->outputs.at[k % n_out]);
        ck_assert_msg(
            !memcmp(outputs[k], block(want[k % n_out], t, k / n_out), tensor_bytes(t)),
            "%s: result %u of device %u", p->name, k % n_out, k / n_out);
    }
}

START_TEST(devices_do_what_lanes_do)
{
    const struct program *p = &programs[_i / WAYS];
    check_devices(p, parse(p->text), _i % WAYS);
}
END_TEST

static uint32_t pick(uint64_t *state, int64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % (uint64_t)n);
}

// Two values of a type, or the first one of it.
static ir_id combine(struct ir_builder *b, const ir_id *values, uint32_t count, uint64_t *state)
{
    ir_id x = values[pick(state, count)], y = values[pick(state, count)];
    bool fits = ir_type_equal(ir_type_in(b, x), ir_type_in(b, y));
    return fits ? ir_sub(b, x, y) : ir_neg(b, x);
}

// Another value of rows that are put together, cut out, padded, or combined.
static ir_id draw_rows(struct ir_builder *b, const ir_id *values, uint32_t count,
                       uint64_t *state)
{
    ir_id x = values[pick(state, count)], y = values[pick(state, count)];
    const int64_t *dims = ir_dims(b->module, ir_type_in(b, x));
    int64_t rows = dims[0], columns = dims[1], first = pick(state, rows), none[2] = {0},
            low[2] = {(int64_t)pick(state, 4) - 1, pick(state, 2)},
            high[2] = {pick(state, 3), 0},
            end[2] = {first + 1 + pick(state, rows - first), columns};
    switch (pick(state, 8)) {
    case 0:
    case 1:
        return columns == ir_dims(b->module, ir_type_in(b, y))[1] && rows < 40
                   ? ir_concatenate(b, 2, (ir_id[]){x, y}, 0)
                   : x;
    case 2:
        return ir_slice(b, x, (int64_t[]){first, 0}, end, NULL);
    case 3:
        return rows > 2 ? ir_pad(b, x, ir_scalar_like(b, x, 3), low, high, none) : x;
    case 4:
        return columns > 40
                   ? x
                   : ir_reshape(b,
                                ir_broadcast_in_dim(b, x, 3, (int64_t[]){rows, 2, columns},
                                                    (int64_t[]){0, 2}),
                                2, (int64_t[]){rows, 2 * columns});
    default:
        return combine(b, values, count, state);
    }
}

// Whatever is made of what is exchanged, and wherever that is in it.
START_TEST(rows_that_wait_are_made_apart)
{
    const struct program p = {.name = "rows", .rank = 1, .mesh = {3}};
    uint64_t state = (uint64_t)_i + 1;
    struct ir_builder b = ir_builder_make(module, "rows", IR_BUILD_PLAIN);
    struct ir_type t = type_of_dims(JOT_F32, 2, (int64_t[]){6, 5});
    t.varies = 1;
    ir_axis_add(module, "i", 3);
    ir_id values[24] = {ir_param(&b, t)};
    values[1] =
        ir_ppermute(&b, ir_slice(&b, values[0], (int64_t[]){5, 0}, (int64_t[]){6, 5}, NULL), 1,
                    (int64_t[]){0}, 2, (int64_t[]){0, 1, 2, 0});
    for (uint32_t i = 2; i < 24; i++)
        values[i] = draw_rows(&b, values, i, &state);
    for (uint32_t i = 20; i < 24; i++)
        ir_output(&b, values[i]);
    check_devices(&p, done(&b), LARGE);
}
END_TEST

// The rows between the borders run beside both exchanges, and others put rows of the same memory.
START_TEST(borders_are_made_apart)
{
    uint32_t f, text = 0;
    while (strcmp(programs[text].name, "of borders"))
        text++;
    int64_t axes[1] = {0};
    require(pass_exchange(module, parse(programs[text].text), 1, axes, &f));
    f = pass_simplify(module, f);
    for (int large = 0; large < 2; large++) {
        struct schedule_options options = {.mesh_rank = 1,
                                           .mesh = programs[text].mesh,
                                           .early_exchanges = true,
                                           .large = large};
        const struct nest_program *p = schedule_with(f, &options);
        uint32_t kernels = 0, first = 0;
        for (uint32_t i = p->steps.count; i-- > 0;) {
            kernels += p->steps.at[i].kind == NEST_STEP_KERNEL;
            first = p->steps.at[i].kind == NEST_STEP_COLLECTIVE ? i : first;
        }
        require_of(kernels == (large ? 3 : 1), "kernels", f, p);
        require_of(plan_beside_end(p, first) == first + 2 + (uint32_t)large, "beside", f, p);
    }
}
END_TEST

// The way back through two layers: what the last one's gradient is a sum of is exchanged before the first
// one's is made.
START_TEST(exchanges_come_early)
{
    uint32_t f,
        made = parse("jot ir 1\n"
                     "function @0 f(%0: f32[64,64], %1: f32[64,64], %2: f32[64,64]<i:2>) {\n"
                     "  %3 = pvary %0 {over=[i:2]} : f32[64,64]<i:2>\n"
                     "  %4 = pvary %1 {over=[i:2]} : f32[64,64]<i:2>\n"
                     "  %5 = dot_general %2, %4 {lhs_contract=[1], rhs_contract=[0], "
                     "lhs_batch=[], rhs_batch=[], "
                     "precision=0} : f32[64,64]<i:2>\n"
                     "  %6 = dot_general %5, %2 {lhs_contract=[0], rhs_contract=[0], "
                     "lhs_batch=[], rhs_batch=[], "
                     "precision=0} : f32[64,64]<i:2>\n"
                     "  %7 = dot_general %5, %3 {lhs_contract=[1], rhs_contract=[0], "
                     "lhs_batch=[], rhs_batch=[], "
                     "precision=0} : f32[64,64]<i:2>\n"
                     "  %8 = dot_general %7, %2 {lhs_contract=[0], rhs_contract=[0], "
                     "lhs_batch=[], rhs_batch=[], "
                     "precision=0} : f32[64,64]<i:2>\n"
                     "  %9 = psum %6 {over=[i:2]} : f32[64,64]\n"
                     "  %10 = psum %8 {over=[i:2]} : f32[64,64]\n"
                     "  %11 = sub %1, %9 : f32[64,64]\n"
                     "  %12 = sub %0, %10 : f32[64,64]\n"
                     "  return %12, %11\n"
                     "}\n");
    int64_t axes[1] = {0}, mesh[1] = {2};
    require(pass_exchange(module, made, 1, axes, &f));
    f = pass_simplify(module, f);
    for (int early = 0; early < 2; early++) {
        struct schedule_options options = {
            .mesh_rank = 1, .mesh = mesh, .no_accumulation = true, .early_exchanges = early};
        const struct nest_program *p = schedule_with(f, &options);
        uint32_t first = p->steps.count, last = 0;
        for (uint32_t i = 0; i < p->steps.count; i++) {
            bool is_exchange = p->steps.at[i].kind == NEST_STEP_COLLECTIVE;
            first = is_exchange && i < first ? i : first;
            last = p->steps.at[i].kind == NEST_STEP_GEMM ? i : last;
        }
        require_of(early ? first < last : first > last, "the order of the steps", f, p);
        require_of(!early || plan_beside_end(p, first) > last, "what is beside it", f, p);
    }
}
END_TEST

// Rows that a sort reads, of rows of so many numbers, the first of which is number `first`; what it gives is
// a result or, behind sums of rows, a part of one.
static uint32_t sorted_rows(int64_t columns, int64_t first, bool is_part)
{
    struct ir_builder b = ir_builder_make(module, "rows", IR_BUILD_ALL);
    int64_t dims[] = {400, columns}, start[] = {first, 0}, limit[] = {first + 200, columns};
    ir_id x = ir_param(&b, type_of_dims(JOT_F32, 2, dims));
    ir_id rows = ir_slice(&b, x, start, limit, NULL), y = ir_sort(&b, 1, &rows, 1);
    ir_id sums = ir_reduce(&b, IR_reduce_sum, x, 1, (int64_t[]){1});
    ir_id parts[] = {ir_mul(&b, x, ir_broadcast_in_dim(&b, sums, 2, dims, (int64_t[]){0})), y};
    ir_output(&b, is_part ? ir_concatenate(&b, 2, parts, 0) : y);
    return done(&b);
}

// Where rows begin as memory of their own might, a routine reads and writes them where they are.
START_TEST(routines_take_ranges)
{
    for (int is_part = 0; is_part < 2; is_part++)
        for (int64_t first = 0; first < 3; first++) {
            bool is_aligned = _i == 16 || first == 0;
            uint64_t state = 1;
            uint32_t f = sorted_rows(_i, first, is_part);
            struct nest_program *p = schedule(f);
            check_program(f, p);
            require_of(p->steps.count == (is_aligned ? 1u : 2u) + (uint32_t)is_part &&
                           (p->arena_bytes == 0) == is_aligned,
                       "ranges", f, p);
            struct ir_tensor in = numbers(ir_type_of(graph(f), 0), &state);
            struct ir_tensor want = *evaluate(f, &in), got = zeros(want.type);
            require(run_native(module->arena, p, &in.data, &got.data));
            ck_assert(!memcmp(got.data, want.data, tensor_bytes(want.type)));
        }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, routines_take_ranges, 16, 18);
    tcase_add_test(t, exchanges_come_early);
    tcase_add_test(t, borders_are_made_apart);
    tcase_add_loop_test(t, rows_that_wait_are_made_apart, 0, 60);
    tcase_add_loop_test(t, devices_do_what_lanes_do, 0, WAYS * (int)COUNT(programs));
}

int main(void)
{
    setenv("FAKE_CUDA_COUNT", "8", 1);
    return support_run("harness/exchange", add_tests);
}
