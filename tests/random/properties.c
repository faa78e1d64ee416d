// SPDX-License-Identifier: Apache-2.0
#include "random/checker.h"

#include "base/status.h"
#include "harness/native.h"
#include "ir/cost.h"
#include "support/nest_eval.h"

const char *const program_property_names[PROGRAM_PROPERTIES] = {
    "verifies",   "prints",   "canonical", "simplifies", "schedules", "separate", "native",
    "transposes", "maps",     "commutes",  "unrolls",    "keeps",     "machine",  "checks",
    "compiles",   "unshards", "devices",   "shares",     "fault",
};

bool check_refuse(struct checker *c, const char *what)
{
    strbuf_printf(c->why, "%s: %s\n", what, jot_error_message());
    return false;
}

struct ir_tensor *check_run(struct checker *c, const struct ir_graph *g,
                            const struct ir_tensor *in)
{
    if (!g)
        return NULL;
    struct ir_tensor *out = arena_array(c->m->arena, struct ir_tensor, g->outputs.count + 1);
    if (ir_eval(c->m->arena, g, in, out) == JOT_OK)
        return out;
    check_refuse(c, "evaluator");
    return NULL;
}

// -- Bits -------------------------------------------------------------------------------------

bool check_outputs(struct checker *c, const char *what, const struct ir_tensor *got)
{
    // Sums over lanes and products have another shape in a map.
    double tolerance = c->kind & (PROGRAM_LANES | PROGRAM_PIECES) ? 1e-9 : 0;
    for (uint32_t i = 0; i < c->g->outputs.count; i++)
        if (!native_close(c->g, c->in, i, got[i], c->out[i], tolerance, c->why)) {
            strbuf_printf(c->why, "  output %u, %s\n", i, what);
            return false;
        }
    return true;
}

static bool same_graph(struct checker *c, const char *what, const struct ir_graph *g)
{
    struct strbuf faults = strbuf_make(c->m->arena);
    if (ir_verify(g, &faults)) {
        strbuf_printf(c->why, "%s: %s%s", what, faults.text, ir_graph_text(g));
        return false;
    }
    struct ir_tensor *out = check_run(c, g, c->in);
    return out && check_outputs(c, what, out);
}

static bool prints(struct checker *c)
{
    const char *text = ir_graph_text(c->g);
    struct ir_graph *again;
    if (ir_graph_parse(c->m, text, &again) != JOT_OK)
        return check_refuse(c, "parser");
    const char *second = ir_graph_text(again);
    if (ir_graph_equal(c->g, again) && !strcmp(text, second))
        return true;
    strbuf_printf(c->why, "parses to\n%s", second);
    return false;
}

static bool canonical(struct checker *c)
{
    struct ir_graph *once = ir_canonical(c->g), *twice = ir_canonical(once);
    if (!ir_graph_equal(once, twice)) {
        strbuf_printf(c->why, "canonical\n%s and of that\n%s", ir_graph_text(once),
                      ir_graph_text(twice));
        return false;
    }
    return same_graph(c, "canonical", once);
}

static bool simplifies(struct checker *c)
{
    return same_graph(c, "inlined", ir_function(c->m, pass_inline(c->m, c->f, 100000))) &&
           same_graph(c, "simplified", ir_function(c->m, pass_simplify(c->m, c->f)));
}

// Statements that a block executes.
static double work_of(const struct nest *n, uint32_t block)
{
    double work = 0;
    for (uint32_t i = 0; i < n->blocks.at[block].statements.count; i++) {
        const struct nest_statement *s =
            &n->statements.at[n->blocks.at[block].statements.at[i]];
        double times = 1;
        for (uint32_t k = 0; k < s->n_axes; k++)
            times *= (double)n->axes.at[s->axes[k]].extent;
        bool is_loop = s->kind == NEST_PAR || s->kind == NEST_MAP || s->kind == NEST_FOLD ||
                       s->kind == NEST_SCAN;
        work += is_loop ? 1 + times * work_of(n, s->body) : 1;
    }
    return work;
}

// Whether running it takes no longer than a test may.
bool check_is_quick(const struct nest_program *p, double limit)
{
    double work = 0;
    for (uint32_t i = 0; i < p->nests.count; i++)
        work += work_of(p->nests.at[i], 0);
    return work < limit;
}

uint32_t check_final(struct checker *c, uint32_t f)
{
    f = pass_inline(c->m, pass_simplify(c->m, f), 100000);
    return pass_simplify(c->m, pass_count_trips(c->m, f));
}

jot_status check_interpret(struct checker *c, const struct nest_program *p,
                           struct ir_tensor **out)
{
    void **in = arena_array(c->m->arena, void *, c->g->n_params + 1);
    void **data = arena_array(c->m->arena, void *, c->g->outputs.count + 1);
    *out = arena_array(c->m->arena, struct ir_tensor, c->g->outputs.count + 1);
    for (uint32_t i = 0; i < c->g->n_params; i++)
        in[i] = c->in[i].data;
    for (uint32_t i = 0; i < c->g->outputs.count; i++) {
        (*out)[i] = c->out[i];
        (*out)[i].data = data[i] =
            arena_allocate(c->m->arena, check_bytes(c->m, c->out[i].type) + 64);
    }
    return nest_program_eval(p, in, data);
}

int64_t check_price(struct nest *n)
{
    return COST_ALONE + (int64_t)(nest_hash(n) % (16 * COST_ALONE));
}

// stops: what the check that fails says, or NULL.
static bool schedules(struct checker *c, uint32_t f, bool separate, const char *stops)
{
    struct nest_program *p;
    struct schedule_options options = {
        .separate = separate, .no_gemm = true, .price = check_price};
    const struct ir_graph *g = ir_function(c->m, check_final(c, f));
    if (pass_schedule(c->m->arena, g, &options, &p) != JOT_OK)
        return check_refuse(c, "schedule");
    if (nest_program_verify(p, c->why) + plan_verify(p, c->why)) {
        schedule_print(c->why, p);
        return false;
    }
    if (!check_is_quick(p, 2e6) || nest_program_has_routines(p))
        return true;
    struct ir_tensor *out;
    jot_status status = check_interpret(c, p, &out);
    if (stops && status == JOT_ERR_CHECK && !strcmp(jot_error_message(), stops))
        return true;
    if (stops || status != JOT_OK) {
        schedule_print(c->why, p);
        strbuf_printf(c->why, "the evaluator says '%s'\n", stops ? stops : "");
        return check_refuse(c, "interpreter of nests");
    }
    if (check_outputs(c, separate ? "separate kernels" : "fused kernels", out))
        return true;
    schedule_print(c->why, p);
    return false;
}

static bool checks_numbers(struct checker *c)
{
    uint32_t f = pass_check_numbers(c->m, c->f, PASS_CHECK_NAN);
    struct ir_tensor *out = arena_array(c->m->arena, struct ir_tensor, c->g->outputs.count + 1);
    jot_status status = ir_eval(c->m->arena, ir_function(c->m, f), c->in, out);
    if (status != JOT_OK && status != JOT_ERR_CHECK)
        return check_refuse(c, "evaluator");
    return schedules(c, f, false, status ? arena_text(c->m->arena, jot_error_message()) : NULL);
}

static bool runs_native(struct checker *c)
{
    struct native n = native_make(c->m, c->why);
    uint32_t f = check_final(c, c->f);
    struct nest_program *p;
    struct schedule_options options = {.no_gemm = true};
    if (pass_schedule(c->m->arena, ir_function(c->m, f), &options, &p) != JOT_OK)
        return check_refuse(c, "schedule");
    if (check_has_chunks(p))
        return true;
    if (check_is_quick(p, 1e9))
        native_add(&n, "program", f, c->in, &(struct native_how){.separate = false});
    native_add(&n, "program", f, c->in, &(struct native_how){.separate = true});
    return native_finish(&n) == 0;
}

static bool unshards(struct checker *c)
{
    uint32_t f;
    if (pass_unshard(c->m, c->f, &f) != JOT_OK)
        return check_refuse(c, "unshard");
    const struct ir_graph *g = ir_function(c->m, f);
    struct ir_tensor *out = ir_verify(g, c->why) ? NULL : check_run(c, g, c->in);
    if (out && check_outputs(c, "on one device", out))
        return true;
    strbuf_add(c->why, ir_graph_text(g));
    return false;
}

// -- A fault on purpose -----------------------------------------------------------------------

// A wrong compiler: operands of sub and of lt are swapped, and max becomes min.
static bool agrees_with_wrong_copy(struct checker *c)
{
    if (c->kind & (PROGRAM_LANES | PROGRAM_PIECES))
        return true;
    const struct ir_graph *g = ir_function(c->m, pass_inline(c->m, c->f, 100000));
    struct ir_builder b = ir_builder_make(c->m, "wrong", IR_BUILD_PLAIN);
    ir_id *map = arena_array(c->m->arena, ir_id, g->values.count + 1);
    ir_for_each_node (g, n) {
        ir_id in[64];
        if (n->n_in > 64)
            return true;
        bool swaps = n->op == IR_sub || n->op == IR_lt;
        for (uint32_t i = 0; i < n->n_in; i++)
            in[i] = map[ir_operand(g, n, swaps ? 1 - i : i)];
        ir_id v = n->op == IR_param ? ir_param(&b, ir_type_of(g, n->out))
                  : n->op == IR_max ? ir_build(&b, IR_min, 2, in, n->attrs)
                                    : ir_rebuild(&b, g, n, in);
        for (uint32_t i = 0; i < n->n_out; i++)
            map[n->out + i] = v + i;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(&b, map[g->outputs.at[i]]);
    struct ir_graph *wrong = ir_finish(&b);
    return !wrong || same_graph(c, "wrong copy", wrong);
}

// -- All --------------------------------------------------------------------------------------

static bool holds(struct checker *c, unsigned property)
{
    switch (property) {
    case PROGRAM_VERIFIES:
        return true;
    case PROGRAM_PRINTS:
        return prints(c);
    case PROGRAM_CANONICAL:
        return canonical(c);
    case PROGRAM_SIMPLIFIES:
        return simplifies(c);
    case PROGRAM_SCHEDULES:
        return schedules(c, c->f, false, NULL);
    case PROGRAM_SEPARATE:
        return schedules(c, c->f, true, NULL);
    case PROGRAM_NATIVE:
        return runs_native(c);
    case PROGRAM_TRANSPOSES:
        return check_transposes(c);
    case PROGRAM_MAPS:
        return check_maps(c);
    case PROGRAM_COMMUTES:
        return check_commutes(c);
    case PROGRAM_UNROLLS:
        return check_unrolls(c);
    case PROGRAM_KEEPS:
        return check_keeps(c);
    case PROGRAM_MACHINE:
        return check_machine(c);
    case PROGRAM_CHECKS:
        return checks_numbers(c);
    case PROGRAM_COMPILES:
        return check_compiles(c);
    case PROGRAM_UNSHARDS:
        return unshards(c);
    case PROGRAM_DEVICES:
        return check_devices(c);
    case PROGRAM_SHARES:
        return check_shares(c);
    default:
        return agrees_with_wrong_copy(c);
    }
}

unsigned program_check(struct ir_module *m, uint32_t f, uint64_t seed, unsigned kind,
                       unsigned properties, struct strbuf *why)
{
    struct checker c = {
        .m = m, .f = f, .g = ir_function(m, f), .state = seed, .kind = kind, .why = why};
    if (ir_verify(c.g, why)) {
        strbuf_printf(why, "%s", ir_graph_text(c.g));
        return PROGRAM_VERIFIES;
    }
    if (!(kind & PROGRAM_LARGE)) {
        c.in = program_inputs(m, c.g, seed, kind);
        c.out = check_run(&c, c.g, c.in);
        if (!c.out)
            return PROGRAM_VERIFIES;
    }
    for (unsigned p = 2; p < 1u << PROGRAM_PROPERTIES; p <<= 1)
        if (properties & p && !holds(&c, p))
            return p;
    return 0;
}
