// SPDX-License-Identifier: Apache-2.0
// Machine code and the interpreter of nests against the evaluator, bit for bit: every op in every
// dtype alone, its derivatives and its map, library products, and large arrays on many threads.
//
// Of derivatives and maps a sample is taken, another for each seed.
#include "harness/native.h"
#include "passes/pass_support.h"
#include "support/sample.h"

#include <math.h>

static struct strbuf report;

static struct native begin(void)
{
    report = strbuf_make(module->arena);
    return native_make(module, &report);
}

static void end(struct native *n)
{
    int failures = native_finish(n);
    fprintf(stderr, "%s", report.text);
    ck_assert_msg(failures == 0, "seed %" PRIu64 ": %d failures", seed, failures);
}

static bool is_sampled(uint32_t i) { return sample_takes(hash_combine(seed, i), 5); }

static const char *label(const char *transform, const char *what)
{
    struct strbuf s = strbuf_make(module->arena);
    strbuf_printf(&s, "%s of %s", transform, what);
    return s.text;
}

// -- Comparing --------------------------------------------------------------------------------

// A sine of a large multiple is moved by roundings, one of the number itself is not.
START_TEST(what_roundings_move)
{
    static const char text[] = "jot ir 1\nfunction @0(%%0: f64[1]) {\n"
                               "  %%1 = const {data=[%d]} : f64[1]\n"
                               "  %%2 = mul %%0, %%1 : f64[1]\n  %%3 = sin %%2 : f64[1]\n"
                               "  return %%3\n}\n";
    static const int factors[] = {1, 1000000};
    for (int i = 0; i < 2; i++) {
        char of[sizeof text + 8];
        snprintf(of, sizeof of, text, factors[i]);
        const struct ir_graph *g = graph(parse(of));
        double x = 0.7, y = sin(factors[i] * x) + 1e-10;
        struct ir_tensor in = {ir_type_of(g, 0), &x}, got = {in.type, &y}, want;
        require(ir_eval(module->arena, g, &in, &want));
        ck_assert(!native_same(module, got, want, 1e-12, NULL));
        ck_assert_int_eq(native_close(g, &in, 0, got, want, 1e-12, NULL), factors[i] > 1);
        ck_assert(!native_close(g, &in, 0, got, want, 0, NULL));
    }
}
END_TEST

// -- Every op ---------------------------------------------------------------------------------

static void check_ops(int d, const struct native_how *how)
{
    struct native n = begin();
    struct opcases cases = opcases_make(module, (jot_dtype)d, seed);
    for (uint32_t i = 0; i < cases.count; i++)
        if (sample_takes(hash_combine(seed, i), 1))
            native_add(&n, cases.at[i].text, opcase_function(module, &cases.at[i]),
                       cases.at[i].in, how);
    end(&n);
}

START_TEST(every_op) { check_ops(_i, &(struct native_how){.interpret = true}); }
END_TEST

// -- Transforms -------------------------------------------------------------------------------

static const jot_dtype derivable[] = {JOT_F64, JOT_F32, JOT_C128, JOT_C64, JOT_F16, JOT_BF16};

static bool has_inexact_output(const struct ir_graph *g, uint32_t i)
{
    return dtype_is_inexact(ir_dtype_of(g, g->outputs.at[i]));
}

// f of the case's operands and of whatever else it takes, drawn.
static void add_transformed(struct native *n, const char *what, uint32_t f,
                            const struct opcase *c, uint64_t *state)
{
    struct native_how how = {.separate = *state >> 32 & 1};
    uint32_t s = pass_simplify(module, pass_inline(module, f, 100000));
    const struct ir_graph *g = graph(s);
    struct ir_tensor *in = arena_array(module->arena, struct ir_tensor, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        in[i] = i < (uint32_t)c->n_in ? c->in[i] : draw(ir_type_of(g, i), state);
    native_add(n, what, s, in, &how);
}

START_TEST(forward)
{
    struct native n = begin();
    uint64_t state = seed;
    struct opcases cases = opcases_make(module, derivable[_i], seed);
    for (uint32_t i = 0; i < cases.count; i++) {
        const struct opcase *c = &cases.at[i];
        if (!is_sampled(i))
            continue;
        uint32_t f = opcase_function(module, c), j;
        bool *mask = inexact_inputs(graph(f));
        require(pass_jvp(module, f, mask, &j, NULL));
        if (j != f)
            add_transformed(&n, label("jvp", c->text), j, c, &state);
    }
    end(&n);
}
END_TEST

START_TEST(reverse)
{
    struct native n = begin();
    uint64_t state = seed + 1;
    struct opcases cases = opcases_make(module, derivable[_i], seed);
    for (uint32_t i = 0; i < cases.count; i++) {
        const struct opcase *c = &cases.at[i];
        if (!is_sampled(i))
            continue;
        uint32_t f = opcase_function(module, c), back;
        const struct ir_graph *g = graph(f);
        if (c->n_in == 0 || !has_inexact_output(g, 0))
            continue;
        require(pass_vjp(module, f, inexact_inputs(g), &back));
        add_transformed(&n, label("vjp", c->text), back, c, &state);
    }
    end(&n);
}
END_TEST

START_TEST(maps)
{
    struct native n = begin();
    uint64_t state = seed + 2;
    jot_dtype d = (jot_dtype)_i;
    struct opcases cases = opcases_make(module, d, seed);
    for (uint32_t i = 0; i < cases.count; i++) {
        const struct opcase *c = &cases.at[i];
        if (!is_sampled(i))
            continue;
        uint32_t f = opcase_function(module, c), mapped;
        uint64_t mask = c->n_in == 0 ? 0 : 1 + (state >> 40) % ((1u << c->n_in) - 1);
        require(pass_vmap(module, f, mask_of((uint32_t)c->n_in, mask), 3, &mapped, NULL));
        struct opcase wide = *c;
        const char *domain = ir_op_get(c->op)->domain;
        if (!strcmp(domain, "NONE"))
            domain = "ANY";
        for (int k = 0; k < c->n_in; k++) {
            struct ir_type t = ir_type_of(graph(mapped), (ir_id)k);
            wide.in[k] = opcase_draw(module, t, domain, &state);
            if (c->op == IR_lu)
                opcase_make_swapped(module, &wide.in[k], &state);
        }
        add_transformed(&n, label("vmap", c->text), mapped, &wide, &state);
    }
    end(&n);
}
END_TEST

// -- Products by the library ------------------------------------------------------------------

struct product {
    int rank[2];
    int64_t dims[2][4];
    struct ir_dot dot;
};
#define AXES(...) ((const int64_t[]){__VA_ARGS__})

static const struct product products[] = {
    {{2, 2}, {{64, 48}, {48, 80}}, {0, 1, NULL, NULL, AXES(1), AXES(0), 0}},
    {{2, 2}, {{48, 65}, {80, 48}}, {0, 1, NULL, NULL, AXES(0), AXES(1), 0}},
    {{2, 1}, {{300, 200}, {200}}, {0, 1, NULL, NULL, AXES(1), AXES(0), 0}},
    {{3, 3}, {{3, 40, 50}, {3, 50, 60}}, {1, 1, AXES(0), AXES(0), AXES(2), AXES(1), 0}},
    {{3, 3}, {{40, 3, 50}, {50, 61, 3}}, {1, 1, AXES(1), AXES(2), AXES(2), AXES(0), 0}},
    {{3, 2}, {{8, 30, 70}, {70, 33}}, {0, 1, NULL, NULL, AXES(2), AXES(0), 0}},
};
enum { PRODUCTS = sizeof products / sizeof *products };

static void check_products(bool gemm)
{
    static const jot_dtype dtypes[] = {JOT_F32, JOT_F64, JOT_C64, JOT_C128};
    struct native n = begin();
    uint64_t state = seed + 3;
    for (int i = 0; i < PRODUCTS * 4; i++) {
        if (!sample_takes((uint64_t)i, 1))
            continue;
        const struct product *p = &products[i / 4];
        jot_dtype d = dtypes[i % 4];
        struct ir_builder b = ir_builder_make(module, "product", IR_BUILD_PLAIN);
        ir_id v[2];
        struct ir_tensor in[2];
        for (int k = 0; k < 2; k++) {
            v[k] = ir_param(&b, ir_type_make(module, d, p->rank[k], p->dims[k]));
            in[k] = draw(ir_type_in(&b, v[k]), &state);
        }
        ir_output(&b, ir_dot_general(&b, v[0], v[1], &p->dot));
        struct native_how how = {.gemm = gemm, .threads = true};
        if (gemm)
            how.tolerance = dtype_real(d) == JOT_F32 ? 1e-5 : 1e-12;
        native_add(&n, "product", done(&b), in, &how);
    }
    end(&n);
}

START_TEST(library_products) { check_products(true); }
END_TEST

START_TEST(own_products) { check_products(false); }
END_TEST

// -- Networks over points ---------------------------------------------------------------------

// The sum of squares of what two layers make of rows of x: of $n points, in the type $t.
static const char layers[] =
    "jot ir 1\nfunction @0 net(%0: $t[$n,$i], %1: $t[$i,$h], %2: $t[$h], "
    "%3: $t[$h,$o]) {\n"
    "  %4 = dot_general %0, %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : $t[$n,$h]\n"
    "  %5 = broadcast_in_dim %2 {dims=[$n, $h], axes=[1]} : $t[$n,$h]\n"
    "  %6 = add %4, %5 : $t[$n,$h]\n"
    "  %7 = $f %6 : $t[$n,$h]\n"
    "  %8 = dot_general %7, %3 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : $t[$n,$o]\n"
    "  %9 = mul %8, %8 : $t[$n,$o]\n"
    "  %10 = reduce_sum %9 {axes=[0, 1]} : $t[]\n"
    "  return %10\n}\n";

struct network {
    const char *op;
    int points, inputs, hidden, outputs;
};

static const char *network_text(const struct network *w, const char *text, const char *dtype)
{
    struct strbuf s = strbuf_make(module->arena);
    for (const char *at = text; *at; at++) {
        if (*at != '$') {
            strbuf_printf(&s, "%c", *at);
            continue;
        }
        at++;
        if (*at == 't' || *at == 'f')
            strbuf_add(&s, *at == 't' ? dtype : w->op);
        else
            strbuf_printf(&s, "%d",
                          *at == 'n'   ? w->points
                          : *at == 'i' ? w->inputs
                          : *at == 'h' ? w->hidden
                                       : w->outputs);
    }
    return s.text;
}

static bool has_contract(const struct nest_program *p)
{
    for (uint32_t i = 0; i < p->nests.count; i++)
        for (uint32_t k = 0; k < p->nests.at[i]->statements.count; k++)
            if (p->nests.at[i]->statements.at[k].kind == NEST_CONTRACT)
                return true;
    return false;
}

START_TEST(networks)
{
    static const struct network all[] = {{"tanh", 300, 8, 20, 8},
                                         {"logistic", 700, 20, 50, 9},
                                         {"exp", 1000, 12, 32, 64},
                                         {"sin", 513, 64, 33, 20}};
    struct native n = begin();
    uint64_t state = seed + 9;
    for (int i = 0; i < 8; i++) {
        if (!sample_takes((uint64_t)i, 1))
            continue;
        const struct network *w = &all[i / 2];
        const char *text = network_text(w, layers, i % 2 ? "f64" : "f32");
        uint32_t f = parse(text), back;
        require(pass_vjp(module, f, (const bool[]){true, true, true, true}, &back));
        back = pass_simplify(module, pass_inline(module, back, 100000));
        struct ir_tensor in[5];
        for (uint32_t k = 0; k < graph(back)->n_params; k++)
            in[k] = draw(ir_type_of(graph(back), k), &state);
        struct native_how how = {.gemm = true,
                                 .threads = true,
                                 .interpret = true,
                                 .tolerance = i % 2 ? 1e-12 : 2e-5};
        native_add(&n, "network", f, in, &how);
        native_add(&n, "gradient of a network", back, in, &how);
        for (int k = 0; k < 2; k++) {
            struct schedule_options options = {.no_accumulation = k};
            struct nest_program *p;
            require(pass_schedule(module->arena, graph(back), &options, &p));
            ck_assert_msg(has_contract(p), "no kernel over points: %s", text);
        }
    }
    end(&n);
}
END_TEST

// A number of each point in front of every unit, and one sum.
static const char weighed[] =
    "jot ir 1\n"
    "function @0 weighed(%0: $t[$n,$i], %1: $t[$n], %2: $t[$i,$h], %3: $t[$h,$o]) {\n"
    "  %4 = dot_general %0, %2 {lhs_contract=[1], rhs_contract=[0]} : $t[$n,$h]\n"
    "  %5 = broadcast_in_dim %1 {dims=[$n, $h], axes=[0]} : $t[$n,$h]\n"
    "  %6 = mul %4, %5 : $t[$n,$h]\n"
    "  %7 = tanh %6 : $t[$n,$h]\n"
    "  %8 = dot_general %7, %3 {lhs_contract=[1], rhs_contract=[0]} : $t[$n,$o]\n"
    "  %9 = slice %8 {starts=[0, 0], limits=[$n, 1], strides=[1, 1]} : $t[$n,1]\n"
    "  %10 = mul %9, %9 : $t[$n,1]\n"
    "  %11 = reduce_sum %10 {axes=[0, 1]} : $t[]\n"
    "  return %11, %7\n}\n";

// Each unit three times: its gradient sums three numbers in front of every unit.
static const char repeated[] =
    "jot ir 1\n"
    "function @0 repeated(%0: $t[$n,$i], %1: $t[$i,$h]) {\n"
    "  %2 = dot_general %0, %1 {lhs_contract=[1], rhs_contract=[0]} : $t[$n,$h]\n"
    "  %3 = reduce_sum %0 {axes=[1]} : $t[$n]\n"
    "  %4 = broadcast_in_dim %3 {dims=[$n, $h], axes=[0]} : $t[$n,$h]\n"
    "  %5 = mul %2, %4 : $t[$n,$h]\n"
    "  %6 = tanh %5 : $t[$n,$h]\n"
    "  %7 = broadcast_in_dim %6 {dims=[$n, $h, $o], axes=[0, 1]} : $t[$n,$h,$o]\n"
    "  return %7\n}\n";

START_TEST(repeated_units)
{
    static const struct network w = {"", 600, 20, 20, 3};
    struct native n = begin();
    for (int i = 0; i < 2; i++) {
        uint64_t state = seed;
        uint32_t f = parse(network_text(&w, repeated, i ? "f64" : "f32")), back;
        require(pass_vjp(module, f, (const bool[]){true, true}, &back));
        back = pass_simplify(module, pass_inline(module, back, 100000));
        struct ir_tensor in[3];
        for (uint32_t k = 0; k < graph(back)->n_params; k++)
            in[k] = draw(ir_type_of(graph(back), k), &state);
        struct native_how how = {.gemm = true, .tolerance = i ? 1e-12 : 2e-5};
        native_add(&n, "units that are repeated", back, in, &how);
    }
    end(&n);
}
END_TEST

START_TEST(numbers_of_points)
{
    static const struct network w = {"", 300, 8, 20, 8};
    struct native n = begin();
    for (int i = 0; i < 2; i++) {
        uint64_t state = seed;
        uint32_t f = parse(network_text(&w, weighed, i ? "f64" : "f32"));
        struct ir_tensor in[4];
        for (int k = 0; k < 4; k++)
            in[k] = draw(ir_type_of(graph(f), (ir_id)k), &state);
        struct native_how how = {.threads = true, .tolerance = i ? 1e-12 : 2e-5};
        native_add(&n, "a network with numbers of points", f, in, &how);
        how.gemm = true;
        native_add(&n, "the same", f, in, &how);
    }
    end(&n);
}
END_TEST

// -- Large arrays -----------------------------------------------------------------------------

// Functions whose kernels are worth several threads, or have sums of several blocks.
static const char *const large[] = {
    "jot ir 1\nfunction @0 map(%0: f32[70001]) {\n  %1 = exp %0 : f32[70001]\n  %2 = tanh %1 : "
    "f32[70001]\n"
    "  return %2\n}\n",
    "jot ir 1\nfunction @0 total(%0: f32[300000]) {\n  %1 = sin %0 : f32[300000]\n"
    "  %2 = reduce_sum %1 {axes=[0]} : f32[]\n  return %2\n}\n",
    "jot ir 1\nfunction @0 columns(%0: f64[5003,37]) {\n  %1 = reduce_sum %0 {axes=[0]} : "
    "f64[37]\n"
    "  %2 = reduce_max %0 {axes=[0]} : f64[37]\n  return %1, %2\n}\n",
    "jot ir 1\nfunction @0 rows(%0: f32[129,1030]) {\n  %1 = reduce_sum %0 {axes=[1]} : "
    "f32[129]\n"
    "  %2 = argmax %0 {dtype=i32, axis=1} : i32[129]\n  return %1, %2\n}\n",
    "jot ir 1\nfunction @0 running(%0: f32[300,301]) {\n  %1 = cumsum %0 {axis=1, reverse=0} : "
    "f32[300,301]\n"
    "  %2 = cumsum %1 {axis=0, reverse=1} : f32[300,301]\n  return %2\n}\n",
    // Dear elements that a sum and outputs want: more than a block of a GPU has room for.
    "jot ir 1\nfunction @0 dear(%0: f32[20000,10]) {\n  %1 = tanh %0 : f32[20000,10]\n"
    "  %2 = tanh %1 : f32[20000,10]\n  %3 = atan %2 : f32[20000,10]\n"
    "  %4 = reduce_sum %3 {axes=[0]} : f32[10]\n  return %1, %2, %3, %4\n}\n",
    // The same of which only the last are, so that it alone has a row.
    "jot ir 1\nfunction @0 last(%0: f32[16384,8]) {\n  %1 = tanh %0 : f32[16384,8]\n"
    "  %2 = tanh %1 : f32[16384,8]\n  %3 = atan %2 : f32[16384,8]\n"
    "  %4 = reduce_sum %3 {axes=[0]} : f32[8]\n  return %3, %4\n}\n",
    "jot ir 1\nfunction @0 turned(%0: f32[301,257]) {\n  %1 = transpose %0 {axes=[1,0]} : "
    "f32[257,301]\n"
    "  %2 = rev %1 {axes=[1]} : f32[257,301]\n  %3 = exp %2 : f32[257,301]\n  return %3\n}\n",
    "jot ir 1\nfunction @0 half(%0: f16[9000]) {\n  %1 = mul %0, %0 : f16[9000]\n"
    "  %2 = reduce_sum %1 {axes=[0]} : f16[]\n  return %1, %2\n}\n",
    "jot ir 1\nfunction @0 whole(%0: i32[100000]) {\n  %1 = popcount %0 : i32[100000]\n"
    "  %2 = reduce_sum %1 {axes=[0]} : i32[]\n  return %1, %2\n}\n",
    // Running folds of rows beside folds of them, whose results are exact in any order.
    "jot ir 1\nfunction @0 runs(%0: i32[3,5000]) {\n"
    "  %1 = cumsum %0 {axis=1, reverse=0} : i32[3,5000]\n"
    "  %2 = reduce_max %0 {axes=[1]} : i32[3]\n"
    "  %3 = broadcast_in_dim %2 {dims=[3, 5000], axes=[0]} : i32[3,5000]\n"
    "  %4 = sub %0, %3 : i32[3,5000]\n"
    "  %5 = cummax %4 {axis=1, reverse=1} : i32[3,5000]\n  return %1, %5\n}\n",
    // Of columns, by parts whose number no block divides; of many rows, whose elements lie together or apart.
    "jot ir 1\nfunction @0 columns(%0: i32[2,2101,37]) {\n"
    "  %1 = cumsum %0 {axis=1, reverse=1} : i32[2,2101,37]\n"
    "  %2 = cummax %1 {axis=1, reverse=0} : i32[2,2101,37]\n  return %2\n}\n",
    "jot ir 1\nfunction @0 rows(%0: i32[1027,1029]) {\n"
    "  %1 = cumsum %0 {axis=1, reverse=1} : i32[1027,1029]\n  return %1\n}\n",
    "jot ir 1\nfunction @0 apart(%0: i32[400,1026,3]) {\n"
    "  %1 = cumsum %0 {axis=1, reverse=0} : i32[400,1026,3]\n  return %1\n}\n",
    "jot ir 1\nfunction @0 largest(%0: f32[2,2,2100]) {\n"
    "  %1 = reduce_sum %0 {axes=[2]} : f32[2,2]\n"
    "  %2 = broadcast_in_dim %1 {dims=[2, 2, 2100], axes=[0, 1]} : f32[2,2,2100]\n"
    "  %3 = sub %0, %2 : f32[2,2,2100]\n"
    "  %4 = cummax %3 {axis=2, reverse=0} : f32[2,2,2100]\n  return %4\n}\n",
    // A map of rows, long and short, fused with a sum over what is one number of a row.
    "jot ir 1\nfunction @0 weighed(%0: f32[4000,40]) {\n"
    "  %1 = slice %0 {starts=[0, 3], limits=[4000, 4], strides=[1, 1]} : f32[4000,1]\n"
    "  %2 = reshape %1 {dims=[4000]} : f32[4000]\n  %3 = sin %2 : f32[4000]\n"
    "  %4 = broadcast_in_dim %3 {dims=[4000, 40], axes=[0]} : f32[4000,40]\n"
    "  %5 = mul %0, %4 : f32[4000,40]\n  %6 = mul %3, %3 : f32[4000]\n"
    "  %7 = reduce_sum %6 {axes=[0]} : f32[]\n  return %5, %7\n}\n",
    "jot ir 1\nfunction @0 vectors(%0: f32[90,70,3]) {\n"
    "  %1 = mul %0, %0 : f32[90,70,3]\n  %2 = reduce_sum %1 {axes=[2]} : f32[90,70]\n"
    "  %3 = sqrt %2 : f32[90,70]\n"
    "  %4 = broadcast_in_dim %3 {dims=[90, 70, 3], axes=[0, 1]} : f32[90,70,3]\n"
    "  %5 = div %0, %4 : f32[90,70,3]\n"
    "  %6 = reduce_sum %3 {axes=[0, 1]} : f32[]\n  return %5, %6\n}\n",
    // Means of what rows give: of their own sums, and of indices of the largest of these.
    "jot ir 1\nfunction @0 nested(%0: f32[300,130]) {\n  %1 = exp %0 : f32[300,130]\n"
    "  %2 = reduce_sum %1 {axes=[1]} : f32[300]\n  %3 = log %2 : f32[300]\n"
    "  %4 = reduce_sum %3 {axes=[0]} : f32[]\n"
    "  %5 = argmax %3 {dtype=i32, axis=0} : i32[]\n  return %4, %5\n}\n",
    // Many updates into few elements, some of them outside: parts and a rest.
    "jot ir 1\nfunction @0 few(%0: f32[70003]) {\n"
    "  %1 = iota {dtype=i32, dims=[70003], axis=0} : i32[70003]\n"
    "  %2 = const {data=7919} : i32[]\n  %3 = const {data=43} : i32[]\n  %4 = const {data=2} : "
    "i32[]\n"
    "  %5 = mul %1, %2 : i32[70003]\n  %6 = rem %5, %3 : i32[70003]\n  %7 = sub %6, %4 : "
    "i32[70003]\n"
    "  %8 = reshape %7 {dims=[70003, 1]} : i32[70003,1]\n"
    "  %9 = const {data=-0} : f32[]\n  %10 = broadcast_in_dim %9 {dims=[40], axes=[]} : "
    "f32[40]\n"
    "  %11 = scatter_add %10, %8, %0 {collapsed_dims=[0], index_map=[0], mode=3} : f32[40]\n"
    "  return %11\n}\n",
    // As many as there are elements: 16 at once.
    "jot ir 1\nfunction @0 many(%0: f32[3001]) {\n"
    "  %1 = iota {dtype=i32, dims=[3001], axis=0} : i32[3001]\n"
    "  %2 = const {data=611} : i32[]\n  %3 = const {data=3000} : i32[]\n  %4 = const {data=5} "
    ": i32[]\n"
    "  %5 = mul %1, %2 : i32[3001]\n  %6 = rem %5, %3 : i32[3001]\n  %7 = sub %6, %4 : "
    "i32[3001]\n"
    "  %8 = reshape %7 {dims=[3001, 1]} : i32[3001,1]\n"
    "  %9 = exp %0 : f32[3001]\n  %10 = sin %0 : f32[3001]\n"
    "  %11 = scatter_add %9, %8, %10 {collapsed_dims=[0], index_map=[0], mode=3} : f32[3001]\n"
    "  %12 = scatter %9, %8, %0 {collapsed_dims=[0], index_map=[0], mode=0} : f32[3001]\n"
    "  %13 = scatter_max %12, %8, %10 {collapsed_dims=[0], index_map=[0], mode=3} : f32[3001]\n"
    "  return %11, %13\n}\n",
    "jot ir 1\nfunction @0 rows(%0: f32[501,130]) {\n"
    "  %1 = iota {dtype=i32, dims=[501], axis=0} : i32[501]\n"
    "  %2 = const {data=77} : i32[]\n  %3 = const {data=40} : i32[]\n  %4 = const {data=1} : "
    "i32[]\n"
    "  %5 = mul %1, %2 : i32[501]\n  %6 = rem %5, %3 : i32[501]\n  %7 = sub %6, %4 : i32[501]\n"
    "  %8 = reshape %7 {dims=[501, 1]} : i32[501,1]\n"
    "  %9 = slice %0 {starts=[0, 0], limits=[40, 130], strides=[1, 1]} : f32[40,130]\n"
    "  %10 = scatter_add %9, %8, %0 {offset_dims=[1], collapsed_dims=[0], index_map=[0], "
    "mode=3} : f32[40,130]\n"
    "  %11 = gather %10, %8 {offset_dims=[1], collapsed_dims=[0], index_map=[0], sizes=[1, "
    "130], mode=1} : f32[501,130]\n"
    "  return %10, %11\n}\n",
    "jot ir 1\nfunction @0 halves(%0: f16[300]) {\n"
    "  %1 = iota {dtype=i32, dims=[300], axis=0} : i32[300]\n"
    "  %2 = const {data=77} : i32[]\n  %3 = const {data=100} : i32[]\n  %4 = const {data=3} : "
    "i32[]\n"
    "  %5 = mul %1, %2 : i32[300]\n  %6 = rem %5, %3 : i32[300]\n  %7 = sub %6, %4 : i32[300]\n"
    "  %8 = reshape %7 {dims=[300, 1]} : i32[300,1]\n"
    "  %9 = slice %0 {starts=[0], limits=[99], strides=[1]} : f16[99]\n"
    "  %10 = scatter_add %9, %8, %0 {collapsed_dims=[0], index_map=[0], mode=3} : f16[99]\n"
    "  %11 = convert %0 {dtype=c64} : c64[300]\n  %12 = convert %9 {dtype=c64} : c64[99]\n"
    "  %13 = scatter_mul %12, %8, %11 {collapsed_dims=[0], index_map=[0], mode=0, unique=1} : "
    "c64[99]\n"
    "  return %10, %13\n}\n",
    // No two meet: side by side.
    "jot ir 1\nfunction @0 apart(%0: f32[4096]) {\n"
    "  %1 = iota {dtype=i32, dims=[4096], axis=0} : i32[4096]\n"
    "  %2 = const {data=611} : i32[]\n  %3 = const {data=4096} : i32[]\n  %4 = const {data=7} "
    ": i32[]\n"
    "  %5 = mul %1, %2 : i32[4096]\n  %6 = rem %5, %3 : i32[4096]\n  %7 = sub %6, %4 : "
    "i32[4096]\n"
    "  %8 = reshape %7 {dims=[4096, 1]} : i32[4096,1]\n"
    "  %9 = scatter_add %0, %8, %0 {collapsed_dims=[0], index_map=[0], mode=3, unique=1} : "
    "f32[4096]\n"
    "  return %9\n}\n",
};

START_TEST(large_arrays)
{
    struct native n = begin();
    uint64_t state = seed + 4;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        if (!sample_takes(i, 1))
            continue;
        uint32_t f = parse(large[i]);
        struct ir_tensor in = draw(ir_type_of(graph(f), 0), &state);
        native_add(&n, graph(f)->name, f, &in, &(struct native_how){.threads = true});
        native_add(&n, graph(f)->name, f, &in,
                   &(struct native_how){.threads = true, .separate = true});
        bool mask = dtype_is_inexact(ir_dtype_of(graph(f), 0));
        if (!mask)
            continue;
        uint32_t back;
        require(pass_vjp(module, f, &mask, &back));
        back = pass_simplify(module, back);
        struct ir_tensor *all =
            arena_array(module->arena, struct ir_tensor, graph(back)->n_params);
        all[0] = in;
        for (uint32_t k = 1; k < graph(back)->n_params; k++)
            all[k] = draw(ir_type_of(graph(back), k), &state);
        native_add(&n, label("vjp", graph(f)->name), back, all,
                   &(struct native_how){.threads = true});
    }
    end(&n);
}
END_TEST

// Carries that change places each trip, in loops of several steps: products keep them from being
// one kernel.  A while ends by its test, by its test at its bound, or not at all.
#define TURNING(op, more)                                                                      \
    "jot ir 1\n"                                                                               \
    "function @0 test(%%c: i32[], %%x: f64[5,5], %%y: f64[5,5], %%z: f64[5,5]) {\n"            \
    "  %%n = const {data=%d} : i32[]\n  %%p = lt %%c, %%n : bool[]\n  return %%p\n}\n"         \
    "function @1 step(%%c: i32[], %%x: f64[5,5], %%y: f64[5,5], %%z: f64[5,5]) {\n"            \
    "  %%o = const {data=1} : i32[]\n  %%d = add %%c, %%o : i32[]\n"                           \
    "  %%1 = dot_general %%x, %%y {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "         \
    "rhs_batch=[], precision=0} : f64[5,5]\n  %%2 = tanh %%1 : f64[5,5]\n"                     \
    "  return %%d, %%y, %%z, %%2\n}\n"                                                         \
    "function @2 turning(%%x: f64[5,5], %%y: f64[5,5], %%z: f64[5,5]) {\n"                     \
    "  %%c = const {data=0} : i32[]\n"                                                         \
    "  %%1, %%2, %%3, %%4 = " op " %%c, %%x, %%y, %%z {n_consts=0, " more "} : i32[], "        \
    "f64[5,5], f64[5,5], f64[5,5]\n  return %%2, %%4, %%1\n}\n"

START_TEST(turning_carries)
{
    static const char *const forms[] = {
        TURNING("while", "functions=[@0, @1]"),
        TURNING("while", "functions=[@0, @1], max_trips=%d"),
        TURNING("scan", "n_carry=4, functions=[@1], length=%d, reverse=0"),
    };
    struct native n = begin();
    uint64_t state = seed + 5;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int trips = 0; trips < 5; trips++) {
            char text[2000];
            snprintf(text, sizeof text, forms[i], trips, trips);
            uint32_t f = parse(text);
            struct ir_tensor in[3];
            for (uint32_t k = 0; k < 3; k++)
                in[k] = draw(ir_type_of(graph(f), k), &state);
            native_add(&n, label("turning", text), f, in,
                       &(struct native_how){.interpret = true});
        }
    end(&n);
}
END_TEST

// Runs with several functions that hold in a range, on numbers of any bits; every second one is
// small, as all that follows from it is.
#define WAVES(d)                                                                               \
    "jot ir 1\nfunction @0 waves(%0: " d "[2048]) {\n"                                         \
    "  %1 = sin %0 : " d "[2048]\n  %2 = cos %0 : " d "[2048]\n"                               \
    "  %3 = mul %1, %2 : " d "[2048]\n  %4 = abs %0 : " d "[2048]\n"                           \
    "  %5 = sqrt %4 : " d "[2048]\n  %6 = fma %2, %1, %5 : " d "[2048]\n"                      \
    "  %7 = sin %6 : " d "[2048]\n  %8 = div %7, %0 : " d "[2048]\n"                           \
    "  return %6, %8, %3, %1\n}\n"

START_TEST(ranged_runs)
{
    struct native n = begin();
    for (int k = 0; k < 2; k++) {
        uint32_t f = parse(k ? WAVES("f64") : WAVES("f32"));
        struct ir_tensor in = zeros(ir_type_of(graph(f), 0));
        for (uint32_t i = 0; i < 2048; i++) {
            uint64_t bits = hash_combine(seed, i);
            if (i % 2 && k)
                bits = (bits & UINT64_C(0x800fffffffffffff)) | (UINT64_C(0x3fe) << 52);
            else if (i % 2)
                bits = (bits & 0x807fffff) | (0x7e << 23);
            else if (i % 16 == 0)
                bits = 0;
            memcpy((char *)in.data + i * (k ? 8 : 4), &bits, k ? 8 : 4);
        }
        native_add(&n, graph(f)->name, f, &in, &(struct native_how){.interpret = true});
    }
    end(&n);
}
END_TEST

// Sums of many short rows, and of columns whose length ends inside of a block.
START_TEST(short_rows)
{
    static const char *const forms[] = {
        "jot ir 1\nfunction @0 rows(%0: f32[17000,100], %1: f32[100]) {\n"
        "  %2 = dot_general %0, %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
        "rhs_batch=[], precision=0} : f32[17000]\n"
        "  %3 = exp %2 : f32[17000]\n  return %3\n}\n",
        "jot ir 1\nfunction @0 columns(%0: f32[17000,128], %1: f32[128]) {\n"
        "  %2 = reduce_sum %0 {axes=[0]} : f32[128]\n"
        "  %3 = reduce_max %0 {axes=[1]} : f32[17000]\n"
        "  %4 = mul %1, %2 : f32[128]\n  return %4, %3\n}\n",
    };
    struct native n = begin();
    uint64_t state = seed + 6;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        uint32_t f = parse(forms[i]);
        struct ir_tensor in[2] = {draw(ir_type_of(graph(f), 0), &state),
                                  draw(ir_type_of(graph(f), 1), &state)};
        native_add(&n, graph(f)->name, f, in, &(struct native_how){0});
    }
    end(&n);
}
END_TEST

// A routine in each kind of body, what it reads and gives fused with what is around it; carries and rows
// that change places; results that take the memory of operands.
static const char *const routines[] = {
    "jot ir 1\nfunction @0 around(%0: f32[5,12]) {\n  %1 = sin %0 : f32[5,12]\n"
    "  %2 = fft %1 {sizes=[12], mode=2} : c64[5,7]\n  %3 = exp %2 : c64[5,7]\n"
    "  %4 = fft %3 {sizes=[12], mode=3} : f32[5,12]\n  %5 = add %4, %0 : f32[5,12]\n"
    "  return %5, %4, %4\n}\n",
    "jot ir 1\nfunction @0 body(%0: c128[3,10], %1: c128[3,10]) {\n"
    "  %2 = mul %0, %1 : c128[3,10]\n  %3 = fft %2 {sizes=[10], mode=1} : c128[3,10]\n"
    "  %4 = fft %1 {sizes=[3, 10], mode=0} : c128[3,10]\n  return %3, %4\n}\n"
    "function @1 rows(%0: c128[3,10], %1: c128[4,3,10]) {\n"
    "  %2, %3 = scan %0, %1 {n_consts=0, n_carry=1, functions=[@0], length=4, reverse=1} : "
    "c128[3,10], c128[4,3,10]\n  return %2, %3\n}\n",
    "jot ir 1\nfunction @0 test(%0: i32[], %1: c64[7], %2: c64[7]) {\n"
    "  %3 = const {data=5} : i32[]\n  %4 = lt %0, %3 : bool[]\n  return %4\n}\n"
    "function @1 step(%0: i32[], %1: c64[7], %2: c64[7]) {\n  %3 = const {data=1} : i32[]\n"
    "  %4 = add %0, %3 : i32[]\n  %5 = fft %1 {sizes=[7], mode=1} : c64[7]\n"
    "  return %4, %2, %5\n}\n"
    "function @2 turns(%0: c64[7], %1: c64[7]) {\n  %2 = const {data=0} : i32[]\n"
    "  %3, %4, %5 = while %2, %0, %1 {n_consts=0, functions=[@0, @1]} : i32[], c64[7], c64[7]\n"
    "  return %4, %5\n}\n",
    "jot ir 1\nfunction @0 there(%0: c64[6]) {\n  %1 = fft %0 {sizes=[6], mode=0} : c64[6]\n"
    "  return %1\n}\n"
    "function @1 back(%0: c64[6]) {\n  %1 = fft %0 {sizes=[6], mode=1} : c64[6]\n"
    "  %2 = add %1, %0 : c64[6]\n  return %2\n}\n"
    "function @2 either(%0: f32[6], %1: c64[6]) {\n  %2 = const {data=0} : f32[]\n"
    "  %3 = reduce_sum %0 {axes=[0]} : f32[]\n  %4 = lt %3, %2 : bool[]\n"
    "  %5 = convert %4 {dtype=i32} : i32[]\n  %6 = exp %1 : c64[6]\n"
    "  %7 = cond %5, %6 {functions=[@0, @1]} : c64[6]\n  return %7\n}\n",
    "jot ir 1\nfunction @0 large(%0: c64[96,200]) {\n"
    "  %1 = fft %0 {sizes=[96, 200], mode=0} : c64[96,200]\n  return %1\n}\n",
};

START_TEST(routines_among_others)
{
    struct native n = begin();
    uint64_t state = seed + 7;
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++) {
        uint32_t f = parse(routines[i]);
        struct ir_tensor in[2];
        for (uint32_t k = 0; k < graph(f)->n_params; k++)
            in[k] = draw(ir_type_of(graph(f), k), &state);
        native_add(&n, graph(f)->name, f, in, &(struct native_how){.threads = true});
        native_add(&n, graph(f)->name, f, in, &(struct native_how){.separate = true});
    }
    end(&n);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, what_roundings_move);
    tcase_add_loop_test(t, every_op, 0, DTYPE_COUNT);
    tcase_add_loop_test(t, forward, 0, 6);
    tcase_add_loop_test(t, reverse, 0, 6);
    tcase_add_loop_test(t, maps, 0, DTYPE_COUNT);
    tcase_add_test(t, networks);
    tcase_add_test(t, numbers_of_points);
    tcase_add_test(t, repeated_units);
    tcase_add_test(t, library_products);
    tcase_add_test(t, own_products);
    tcase_add_test(t, large_arrays);
    tcase_add_test(t, routines_among_others);
    tcase_add_test(t, turning_carries);
    tcase_add_test(t, ranged_runs);
    tcase_add_test(t, short_rows);
}

int main(void) { return support_run("native", add_tests); }
