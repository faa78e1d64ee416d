// SPDX-License-Identifier: Apache-2.0
// The driver: types, places, blocks, and which family an operation is of.
#include "interop/to_graph.h"

#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>

// ---- types ----

bool graph_type(struct ir_builder *b, const struct mlir_type *t, struct ir_type *out)
{
    if (t->kind != MLIR_TENSOR) {
        ir_fail(b, JOT_ERR_DTYPE, "values of type %s are not taken",
                t->kind == MLIR_TOKEN   ? "token"
                : t->kind == MLIR_TUPLE ? "tuple"
                : t->text               ? t->text
                                        : "unknown");
        return false;
    }
    const struct mlir_element_row *e = &mlir_elements[t->element];
    if (e->kind == '-') {
        ir_fail(b, JOT_ERR_DTYPE, "elements of type %s are not taken", e->text);
        return false;
    }
    if (t->rank > IR_MAX_RANK) {
        ir_fail(b, JOT_ERR_SHAPE, "%d axes: at most %d", t->rank, IR_MAX_RANK);
        return false;
    }
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] < 0) {
            ir_fail(b, JOT_ERR_SHAPE, "axis %d has no extent that is known", i);
            return false;
        }
    *out = ir_type_make(b->module, e->dtype, t->rank, t->dims);
    return true;
}

// ---- places ----

const char *graph_where(const struct graph_frame *frame, const struct mlir_op *op)
{
    const struct mlir_program *p = frame->in->program;
    struct strbuf s = strbuf_make(frame->arena);
    if (op->place.line)
        strbuf_printf(&s, "%s:%u: %s", p->file, op->place.line, op->name);
    else
        strbuf_printf(&s, "%s: offset %llu: %s", p->file, (unsigned long long)op->place.column,
                      op->name);
    if (op->location && op->location->kind == MLIR_LOCATION && op->location->text)
        strbuf_printf(&s, " (%s)", op->location->text);
    return s.text;
}

void graph_refuse(struct graph_op *g, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    g->out[0] = ir_fail(g->b, JOT_ERR_ARGUMENT, "%s", text);
}

void graph_set_results(struct graph_frame *frame, const struct mlir_op *op, jot_value v)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        graph_set_result(frame, op, i, v);
}

void graph_fail(struct graph_frame *frame, const struct mlir_op *op, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    // Placed here, as an operation without results has none by which that is done later.
    jot_value error = trace_fail(op->name, JOT_ERR_ARGUMENT, "%s", text);
    jot_place(error, graph_where(frame, op));
    graph_set_results(frame, op, error);
}

void graph_take(struct graph_op *g, int i, jot_value v)
{
    if (trace_is_error(v))
        graph_refuse(g, "%s", jot_describe(v));
    else
        g->out[i] = trace_strong(v);
}

// ---- one operation ----

static bool read_operands(struct graph_op *g)
{
    const struct mlir_op *op = g->op;
    g->in = arena_array(g->b->module->arena, ir_id, op->n_operands + 1);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        jot_value v = trace_import(op->name, graph_operand(g->frame, op, i));
        if (trace_is_error(v)) {
            graph_set_results(g->frame, op, v);
            return false;
        }
        g->in[i] = trace_strong(v);
    }
    return true;
}

// Whether the results have the types that the program says.
static void verify_results(struct graph_op *g)
{
    for (uint32_t i = 0; i < g->op->n_results && g->b->status == JOT_OK; i++) {
        struct ir_type want;
        if (!graph_type(g->b, g->op->results[i]->type, &want))
            return;
        struct ir_type is = ir_type_in(g->b, g->out[i]);
        if (!ir_type_alike(is, want))
            ir_fail(g->b, JOT_ERR_SHAPE, "the operands give %s where the program says %s",
                    ir_type_text(g->b->module, is), ir_type_text(g->b->module, want));
    }
}

// Whether the results are more than elements of the operands.
static bool computes(const struct mlir_op *op, graph_convert *with)
{
    enum mlir_code code = op->row ? op->row->code : MLIR_N_CODES;
    return op->row && (graph_map_find(code) == with || graph_product_find(code) == with ||
                       graph_scatter_find(code) == with);
}

void graph_convert_op(struct graph_frame *frame, const struct mlir_op *op, graph_convert *with)
{
    struct graph_op own = {.frame = frame, .op = op, .b = trace_builder()}, *g = &own;
    struct ir_type type = {0};
    if (!read_operands(g))
        return;
    g->out = arena_array(g->b->module->arena, ir_id, op->n_results + 1);
    if (op->n_results && graph_type(g->b, op->results[0]->type, &type)) {
        g->dtype = ir_dtype(type);
        g->rank = type.rank;
        g->dims = ir_dims(g->b->module, type);
    }
    bool is_map = op->row && graph_map_find(op->row->code) == with;
    if (is_map)
        graph_widen_small(g);
    if (g->b->status == JOT_OK)
        with(g);
    if (computes(op, with))
        graph_narrow_small(g);
    verify_results(g);
    if (g->b->status != JOT_OK)
        graph_set_results(g->frame, op, trace_result(op->name, IR_NONE, false));
    else
        for (uint32_t i = 0; i < op->n_results; i++)
            graph_set_result(g->frame, op, i, trace_value(g->out[i], false));
}

static graph_convert *find_convert(enum mlir_code code)
{
    graph_convert *found = graph_map_find(code);
    found = found ? found : graph_shape_find(code);
    found = found ? found : graph_index_find(code);
    found = found ? found : graph_product_find(code);
    found = found ? found : graph_order_find(code);
    found = found ? found : graph_scatter_find(code);
    found = found ? found : graph_collective_find(code);
    return found ? found : graph_call_find(code);
}

static graph_trace *find_trace(enum mlir_code code)
{
    graph_trace *found = graph_control_find(code);
    found = found ? found : graph_fold_find(code);
    found = found ? found : graph_scan_find(code);
    return found ? found : graph_called_find(code);
}

// Sums of floats of few bits are rounded to these at the end.
static void round_folded(struct graph_frame *frame, const struct mlir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct mlir_type *t = op->results[i]->type;
        jot_value v = frame->values[op->results[i]->number];
        if (!graph_is_small_float(t) || trace_is_error(v))
            continue;
        ir_id x = graph_round_small(trace_builder(), trace_strong(v), t->element);
        graph_set_result(frame, op, i, trace_value(x, false));
    }
}

// Whether the results are given; then they are set.
static bool take_given(struct graph_frame *frame, const struct mlir_op *op)
{
    jot_array *const *given = frame->in->given;
    if (!given || !op->n_results || !given[op->results[0]->number])
        return false;
    for (uint32_t i = 0; i < op->n_results; i++)
        graph_set_result(frame, op, i, jot_from_array(given[op->results[i]->number]));
    return true;
}

bool graph_runs(const struct mlir_row *row)
{
    return find_convert(row->code) || find_trace(row->code);
}

void graph_trace_op(struct graph_frame *frame, const struct mlir_op *op)
{
    graph_convert *convert_with = op->row ? find_convert(op->row->code) : NULL;
    graph_trace *trace_with = op->row && !convert_with ? find_trace(op->row->code) : NULL;
    if (take_given(frame, op))
        return;
    if (convert_with)
        graph_convert_op(frame, op, convert_with);
    else if (trace_with)
        trace_with(frame, op);
    else
        graph_fail(frame, op, "jot does not run this operation");
    if (trace_with && trace_with == graph_fold_find(op->row->code))
        round_folded(frame, op);
    jot_place(op->n_results ? frame->values[op->results[0]->number] : (jot_value){0, 1},
              graph_where(frame, op));
}

// ---- blocks ----

const struct mlir_op *graph_block(struct graph_frame *frame, const struct mlir_block *block)
{
    for (uint32_t i = 0; i + 1 < block->n_ops; i++)
        graph_trace_op(frame, block->ops[i]);
    return block->ops[block->n_ops - 1];
}

void graph_region_step(struct graph_frame *frame, const struct mlir_block *block,
                       const jot_value *in, jot_value *out)
{
    for (uint32_t i = 0; i < block->n_args; i++)
        frame->values[block->args[i]->number] = in[i];
    const struct mlir_op *end = graph_block(frame, block);
    for (uint32_t i = 0; i < end->n_operands; i++)
        out[i] = graph_operand(frame, end, i);
}

struct region {
    struct graph_frame *frame;
    const struct mlir_block *block;
};

static void trace_region(const jot_value *in, jot_value *out, void *ctx)
{
    const struct region *r = ctx;
    graph_region_step(r->frame, r->block, in, out);
}

jot_function graph_region(struct graph_frame *frame, const struct mlir_block *block)
{
    struct region *r = arena_new(frame->arena, struct region);
    *r = (struct region){frame, block};
    const struct mlir_op *end = block->ops[block->n_ops - 1];
    return jot_function_uniform("region", "region", trace_region, (int)block->n_args,
                                (int)end->n_operands, r);
}

void graph_elements(struct graph_frame *frame, const struct mlir_op *op,
                    const struct mlir_block *block, int rank, const jot_value *args,
                    jot_value *results)
{
    jot_function f = graph_region(frame, block);
    const struct mlir_op *end = block->ops[block->n_ops - 1];
    for (int i = 0; i < rank; i++)
        f = jot_vmap_of(f, "region", (const int[]){JOT_END});
    jot_apply_at(f, block->n_args, args, end->n_operands, results, graph_where(frame, op));
}

// ---- functions ----

struct call {
    const struct graph_function *f;
    const jot_value *in;
};

static const char *wanted_text(const jot_program_type *t)
{
    struct strbuf s = strbuf_make(trace_top()->module->arena);
    strbuf_printf(&s, "%s[", jot_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        t->dims[i] < 0 ? strbuf_printf(&s, "%s?", i ? "," : "")
                       : strbuf_printf(&s, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    strbuf_add(&s, "]");
    return s.text;
}

bool graph_check_argument(const char *function, uint32_t i, jot_value v,
                          const jot_program_type *want, jot_value *out_error)
{
    v = trace_import(function, v);
    *out_error = v;
    if (trace_is_error(v))
        return false;
    struct ir_type type = trace_type(v);
    const int64_t *dims = ir_dims(trace_top()->module, type);
    bool fits = ir_dtype(type) == want->dtype && type.rank == want->rank;
    for (int k = 0; fits && k < want->rank; k++)
        fits = want->dims[k] < 0 || want->dims[k] == dims[k];
    if (!fits)
        *out_error = trace_fail(function, JOT_ERR_SHAPE,
                                "argument %u is %s, and the program takes %s (numbered from 0)",
                                i, trace_type_text(v), wanted_text(want));
    return fits;
}

// Types that no value has are told by the first operation that takes them.
static bool check_arguments(const struct call *c, jot_value *out_error)
{
    const struct mlir_block *body = c->f->f->body;
    for (uint32_t i = 0; i < body->n_args; i++) {
        const struct mlir_type *t = body->args[i]->type;
        bool is_known = t->kind == MLIR_TENSOR && mlir_elements[t->element].kind != '-';
        jot_program_type want = {.rank = t->rank, .dims = t->dims};
        if (!is_known || trace_number_of(c->in[i]))
            continue;
        want.dtype = mlir_elements[t->element].dtype;
        if (!graph_check_argument(c->f->f->name, i, c->in[i], &want, out_error))
            return false;
    }
    return true;
}

static bool is_check(const struct mlir_op *op) { return graph_check_operands(op) > 0; }

static bool trace_body(void *ctx, jot_value *out, jot_value *out_error)
{
    const struct call *c = ctx;
    const struct mlir_block *body = c->f->f->body;
    struct arena *arena = trace_top()->module->arena;
    struct graph_frame *frame = arena_new(arena, struct graph_frame);
    if (!check_arguments(c, out_error))
        return false;
    *frame =
        (struct graph_frame){.in = c->f,
                             .arena = arena,
                             .values = arena_array(arena, jot_value, c->f->f->n_values + 1)};
    uint32_t n = body->ops[body->n_ops - 1]->n_operands;
    graph_region_step(frame, body, c->in, out);
    for (uint32_t i = 0; i < body->n_ops && c->f->has_checks; i++)
        for (uint32_t k = 0; k < body->ops[i]->n_operands && is_check(body->ops[i]); k++)
            out[n++] = graph_operand(frame, body->ops[i], k);
    return true;
}

static void trace_function(const jot_value *in, jot_value *out, void *ctx)
{
    struct call c = {ctx, in};
    trace_make(trace_body, &c, graph_results(c.f), out, NULL);
}

uint32_t graph_check_operands(const struct mlir_op *op)
{
    const char *target = mlir_text(op, "call_target_name");
    bool is_call = op->row && op->row->code == MLIR_OP_stablehlo_custom_call && target &&
                   !strncmp(target, "check.", 6);
    return is_call || (op->row && !strcmp(op->row->dialect, "check")) ? op->n_operands : 0;
}

uint32_t graph_results(const struct graph_function *f)
{
    const struct mlir_block *body = f->f->body;
    uint32_t n = body->ops[body->n_ops - 1]->n_operands;
    for (uint32_t i = 0; i < body->n_ops && f->has_checks; i++)
        n += graph_check_operands(body->ops[i]);
    return n;
}

jot_function graph_function_value(const struct graph_function *f)
{
    return jot_function_uniform(f->f->name, f->where, trace_function, (int)f->f->body->n_args,
                                (int)graph_results(f), (void *)(uintptr_t)f);
}
