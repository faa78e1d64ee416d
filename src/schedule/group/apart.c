// SPDX-License-Identifier: Apache-2.0
// Fusion never loses: values that are not made in the kernel that wants them, by the price.
//
//     fold i < 80000, j < 2 { %0 = tanh ...  yield reduce_max %0 }      two lanes, for rows are short
//
//     par i < 80000, j < 2 { %0 = tanh ...  put t[2*i + j] = %0 }       64 lanes
//     fold i < 160000 { %0 = load t[i]  yield reduce_max %0 }
//
// What may be in one kernel is (group.c), for that takes less time as a rule.  Whether it does is known of the loops as
// they are written, with the lanes that they get.  So each kernel is written by itself, its values as a graph, and again
// with values of it apart: at first one, that which gains most, and then others beside it.  What two kernels read they
// may be merged over, so at last all of the program is priced, before and after.
#include "schedule/group/group.h"
#include "schedule/rewrites.h"

#include <math.h>
#include <stdlib.h>

#define MOST_CANDIDATES 24
#define MOST_APART 4

// A graph that is priced: the values of a kernel, or all of a program.
struct trial {
    struct schedule *s;
    const struct ir_graph *g;
    bool *is_apart; // by value
    bool is_all;
    ir_id *value;   // of a kernel, by value: what it is in the program
    uint64_t key;   // of the graph
    bool is_better; // with values apart
    uint32_t n;
    ir_id candidates[MOST_CANDIDATES];
};

// Nanoseconds of a product by the library of a GPU.
static double price_of_product(const struct nest_gemm *g)
{
    double batch = 1, m = (double)g->m, n = (double)g->n, k = (double)g->k;
    for (int i = 0; i < 4; i++)
        batch *= (double)g->batch[i];
    bool is_narrow = dtype_get(g->operands)->bytes < 4 || g->precision;
    double rate = COST_PRODUCT_PER_US * (is_narrow ? COST_PRODUCT_NARROW : 1);
    double bytes =
        (m * k + k * n) * dtype_get(g->operands)->bytes + m * n * dtype_get(g->dtype)->bytes;
    double us = fmax(batch * m * n * k / rate, batch * bytes / COST_BYTES_PER_US);
    return 1000 * (COST_TOGETHER_US + us);
}

// What the kernels of a schedule take that is made as the trial says; -1: nobody knows.
static double price_of_kernels(struct schedule *of, struct schedule trial, bool may_have_steps)
{
    struct arena_mark mark = arena_mark(of->arena), scratch = arena_mark(of->scratch);
    struct schedule_options options = *of->options;
    options.donated = NULL;
    struct nest_program program = {.arena = of->arena, .name = "trial"};
    trial.arena = of->arena;
    trial.scratch = trial.axes.scratch = of->scratch;
    trial.axes.g = trial.g;
    trial.options = &options;
    trial.program = &program;
    trial.kernels = arena_new(of->arena, struct hash_table);
    trial.points = of->points;
    trial.is_trial = true;
    schedule_trial(&trial);
    if (options.gpu_price)
        schedule_fission(&program, &options);
    double price = 0;
    double *prices = arena_array(of->arena, double, program.nests.count + 1);
    for (uint32_t i = 0; i < program.nests.count; i++)
        prices[i] = options.price ? COST_STEP + (double)options.price(program.nests.at[i])
                                  : 1000 * COST_TOGETHER_US +
                                        (double)options.gpu_price(program.nests.at[i]);
    for (uint32_t i = 0; i < program.steps.count; i++) {
        const struct nest_step *step = &program.steps.at[i];
        if (step->kind == NEST_STEP_KERNEL)
            price += prices[step->nest];
        if (step->kind == NEST_STEP_GEMM && options.gpu_price)
            price += price_of_product(&step->gemm);
    }
    arena_rewind(of->arena, mark);
    arena_rewind(of->scratch, scratch);
    return trial.is_refused || trial.has_steps > may_have_steps ? -1 : price;
}

// What those of the graph take, with the values apart that are so now.
static double price_of(const struct trial *t)
{
    struct schedule trial = {.g = t->g, .is_apart = t->is_apart};
    if (t->is_all) {
        trial.residents = t->s->residents;
        trial.axes.loops = t->s->axes.loops;
    }
    return price_of_kernels(t->s, trial, t->is_all);
}

double group_price_of_order(struct schedule *s, int64_t block)
{
    struct schedule trial = {.g = s->g,
                             .is_apart = s->is_apart,
                             .residents = s->residents,
                             .axes.loops = s->axes.loops,
                             .apart = s->apart,
                             .has_loops = true,
                             .wanted_block = block};
    return price_of_kernels(s, trial, true);
}

// Values of the program, in order.
typedef VEC(ir_id) value_list;

// What is known of the program's values while kernels are taken from it, by value.
struct taken {
    uint32_t *by; // 1 + the group that was the last to make it or to read it
    ir_id *to;    // what it is in the graph of that group
};

static bool is_made_in(const struct schedule *s, ir_id v, uint32_t group)
{
    return v >= s->g->n_params &&
           (!s->is_stored[v] ||
            (s->decision[v] == DECIDE_MEMBER && group_root(s, s->group_of[v]) == group));
}

static int compare_values(const void *a, const void *b)
{
    ir_id x = *(const ir_id *)a, y = *(const ir_id *)b;
    return (x > y) - (x < y);
}

static void sort_values(value_list *values)
{
    if (values->count)
        qsort(values->at, values->count, sizeof *values->at, compare_values);
}

// What the kernel makes, and what it reads of others.
static void find_values(const struct schedule *s, uint32_t group, struct taken *taken,
                        value_list *made, value_list *read)
{
    const struct group *g = &s->groups.at[group];
    for (uint32_t i = 0; i < g->roots.count; i++) {
        taken->by[g->roots.at[i]] = group + 1;
        vec_push(s->scratch, made, g->roots.at[i]);
    }
    for (uint32_t i = 0; i < made->count; i++) {
        const struct ir_node *n = ir_node_of(s->g, made->at[i]);
        for (uint32_t k = 0; k < n->n_in; k++) {
            ir_id x = ir_operand(s->g, n, k);
            if (taken->by[x] == group + 1)
                continue;
            taken->by[x] = group + 1;
            vec_push(s->scratch, is_made_in(s, x, group) ? made : read, x);
        }
    }
    sort_values(made);
    sort_values(read);
}

// The values of the kernel as a graph; false when they are none.
static bool take_kernel(struct trial *t, uint32_t group, struct taken *taken)
{
    struct schedule *s = t->s;
    const struct ir_graph *g = s->g;
    value_list made = {0}, read = {0};
    struct ir_builder b = ir_builder_make(g->module, "kernel", IR_BUILD_PLAIN);
    find_values(s, group, taken, &made, &read);
    for (uint32_t i = 0; i < read.count; i++)
        taken->to[read.at[i]] = ir_param(&b, ir_type_of(g, read.at[i]));
    for (uint32_t i = 0; i < made.count; i++) {
        const struct ir_node *n = ir_node_of(g, made.at[i]);
        if (i && ir_node_of(g, made.at[i - 1]) == n)
            continue;
        ir_id *in = arena_array(s->scratch, ir_id, n->n_in + 1);
        for (uint32_t k = 0; k < n->n_in; k++)
            in[k] = taken->to[ir_operand(g, n, k)];
        ir_id first = ir_rebuild(&b, g, n, in);
        for (uint32_t k = 0; k < n->n_out; k++)
            taken->to[n->out + k] = first + k;
    }
    for (uint32_t i = 0; i < s->groups.at[group].roots.count; i++)
        ir_output(&b, taken->to[s->groups.at[group].roots.at[i]]);
    t->g = ir_finish(&b);
    if (!t->g)
        return false;
    t->is_apart = arena_array(s->scratch, bool, t->g->values.count + 1);
    t->value = arena_array(s->scratch, ir_id, t->g->values.count + 1);
    for (uint32_t i = 0; i < made.count; i++)
        t->value[taken->to[made.at[i]]] = made.at[i];
    return true;
}

// What is dear, wanted several times, or folded may be better apart, and so may each result beside others.
static void find_candidates(struct trial *t)
{
    const struct ir_graph *g = t->g;
    uint8_t *uses = arena_array(t->s->scratch, uint8_t, g->values.count + 1);
    bool *is_wanted = arena_array(t->s->scratch, bool, g->values.count + 1);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        is_wanted[g->outputs.at[i]] = g->outputs.count > 1;
    for (ir_id v = g->values.count; v-- > g->n_params;) {
        const struct ir_node *n = ir_node_of(g, v);
        bool takes_all = node_is_index(n) || node_is_folding(n) || node_is_scan(n);
        for (uint32_t i = 0; i < n->n_in; i++) {
            ir_id x = ir_operand(g, n, i);
            is_wanted[x] |= takes_all || uses[x] || node_is_dear(g, ir_node_of(g, x));
            uses[x] = 1;
        }
        if (is_wanted[v] && n->n_out == 1 && !node_is_index(n) && t->n < MOST_CANDIDATES)
            t->candidates[t->n++] = v;
    }
}

// Sets the values of a kernel apart that are better so; whether there are any.
static bool set_apart(struct trial *t)
{
    double joined = price_of(t), best = joined;
    if (joined < (t->s->options->price ? COST_ALONE : COST_SPLIT_NS))
        return false;
    find_candidates(t);
    for (uint32_t round = 0; round < MOST_APART; round++) {
        ir_id chosen = IR_NONE;
        for (uint32_t i = 0; i < t->n; i++) {
            ir_id v = t->candidates[i];
            if (t->is_apart[v])
                continue;
            t->is_apart[v] = true;
            double price = price_of(t);
            t->is_apart[v] = false;
            if (price < 0 || price * COST_APART_ONE > best)
                continue;
            best = price;
            chosen = v;
        }
        if (chosen == IR_NONE)
            break;
        t->is_apart[chosen] = true;
    }
    return best * COST_APART_BETTER <= joined;
}

typedef VEC(struct trial) trial_list;

// Prices the kernel, or takes what came of an equal one.
static void try_kernel(struct trial *t, const trial_list *before, struct hash_table *table)
{
    struct hash128 key = ir_graph_key(t->g);
    t->key = key.hi;
    for (struct hash_probe p = hash_probe(table, key.lo); hash_next(table, &p);)
        if (before->at[p.id].key == t->key) {
            t->is_apart = before->at[p.id].is_apart;
            t->is_better = before->at[p.id].is_better;
            return;
        }
    hash_insert(t->s->scratch, table, key.lo, before->count);
    t->is_better = set_apart(t);
}

// Tells the program which values of the kernel are apart, or that none are.
static void tell(const struct trial *t, bool is_apart)
{
    for (ir_id v = 0; v < t->g->values.count; v++)
        if (t->is_apart[v])
            t->s->is_apart[t->value[v]] = is_apart;
}

// Of kernels that are better so some are not where what they are apart from is merged: those that are not are joined.
static bool set_all_apart(struct schedule *s, const trial_list *l)
{
    struct trial all = {.s = s, .g = s->g, .is_apart = s->is_apart, .is_all = true};
    double before = price_of(&all), best = before;
    for (uint32_t i = 0; i < l->count; i++)
        tell(&l->at[i], true);
    if (price_of(&all) < before)
        return true;
    for (uint32_t i = 0; i < l->count; i++)
        tell(&l->at[i], false);
    for (uint32_t i = 0; i < l->count; i++) {
        tell(&l->at[i], true);
        double price = price_of(&all);
        if (price < best)
            best = price;
        else
            tell(&l->at[i], false);
    }
    return best < before;
}

bool group_find_apart(struct schedule *s)
{
    trial_list all = {0}, better = {0};
    struct hash_table table = {0};
    struct taken taken = {.by = arena_array(s->scratch, uint32_t, s->g->values.count + 1),
                          .to = arena_array(s->scratch, ir_id, s->g->values.count + 1)};
    for (uint32_t i = 0; i < s->groups.count; i++) {
        struct trial t = {.s = s};
        if (group_root(s, i) != i || s->groups.at[i].kind != GROUP_KERNEL ||
            !take_kernel(&t, i, &taken))
            continue;
        try_kernel(&t, &all, &table);
        vec_push(s->scratch, &all, t);
        if (t.is_better)
            vec_push(s->scratch, &better, t);
    }
    return better.count && set_all_apart(s, &better);
}
