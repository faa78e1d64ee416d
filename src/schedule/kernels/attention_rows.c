// SPDX-License-Identifier: Apache-2.0
// Kernels of rows as parts of attention: their statements again, in f32, with locals for what the
// products around them read and write; and those products.
//
// One shape: attention (docs/nests.md).
#include "schedule/kernels/attention_internal.h"

// ---- Statements, in f32

static nest_id fail(struct attention_rows *r)
{
    r->fails = true;
    return 0;
}

static jot_dtype widened(jot_dtype d) { return dtype_is_half(d) ? JOT_F32 : d; }

static struct nest_index moved(struct attention_rows *r, const struct nest_index *x)
{
    struct nest_term *terms = arena_array(r->p->arena, struct nest_term, x->count + 1);
    for (uint32_t i = 0; i < x->count; i++) {
        terms[i] = x->terms[i];
        if (terms[i].is_value)
            r->fails = true;
        else
            terms[i].id = r->axes[terms[i].id];
    }
    return nest_index_make(r->p->arena, x->constant, (int)x->count, terms);
}

static nest_id convert(struct attention_rows *r, nest_id value, jot_dtype to)
{
    return nest_op(r->b, IR_convert, to, 1, &value, (int64_t[2]){0});
}

static nest_id copy_const(struct attention_rows *r, const struct nest_statement *s)
{
    nest_id c = nest_const(r->b, s->dtype, s->bits);
    return dtype_is_half(s->dtype) ? convert(r, c, JOT_F32) : c;
}

struct nest_index attention_at(struct attention_rows *r, nest_id axis)
{
    return nest_index_make(r->p->arena, 0, 1, &(struct nest_term){1, axis, false});
}

nest_id attention_query(const struct attention_rows *r)
{
    return r->axes[r->loop->axes[r->loop->n_axes - 1]];
}

// The last of the axes that the index of rows walks one by one.
static nest_id key_of(const struct nest_index *x)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (!x->terms[i].is_value && x->terms[i].factor == 1)
            return x->terms[i].id;
    return NEST_NONE;
}

static struct nest_index index_in(struct attention_rows *r, const struct attention_part *part,
                                  const struct nest_index *x)
{
    nest_id key = key_of(x);
    if (key == NEST_NONE) {
        fail(r);
        return nest_index_make(r->p->arena, 0, 0, NULL);
    }
    struct nest_term terms[] = {{1, r->axes[key], false}, {r->keys, attention_query(r), false}};
    return nest_index_make(r->p->arena, 0, part->is_of_all ? 2 : 1, terms);
}

static nest_id copy_load(struct attention_rows *r, const struct nest_statement *s)
{
    const struct attention_part *part = &r->parts[s->buffer];
    bool is_half = r->from->buffers.at[s->buffer].role != NEST_LOCAL && dtype_is_half(s->dtype);
    if (s->guard != NEST_NONE || part->kind == ATTENTION_NOTHING ||
        (part->kind == ATTENTION_VALUE && part->value == NEST_NONE))
        return fail(r);
    if (part->kind == ATTENTION_VALUE)
        return part->value;
    if (part->kind == ATTENTION_ROWS) {
        nest_id x = nest_load(r->b, part->local, index_in(r, part, &s->index), NEST_NONE);
        return dtype_is_half(part->dtype) ? convert(r, x, JOT_F32) : x;
    }
    nest_id x = nest_load(r->b, r->buffers[s->buffer], moved(r, &s->index), NEST_NONE);
    return is_half ? convert(r, x, JOT_F32) : x;
}

static nest_id copy_op(struct attention_rows *r, const struct nest_statement *s)
{
    nest_id in[4];
    for (uint32_t i = 0; i < s->n_in; i++)
        in[i] = r->values[s->in[i]];
    if (s->n_results != 1)
        return fail(r);
    if (s->op == IR_convert &&
        r->b->nest->values.at[in[0]].dtype == widened(s->dtype)) // from a half type, or to one
        return in[0];
    return nest_op(r->b, (enum ir_op)s->op, widened(s->dtype), (int)s->n_in, in, s->bits);
}

static void copy_put(struct attention_rows *r, const struct nest_statement *s)
{
    struct attention_part *part = &r->parts[s->buffer];
    if (s->op || s->guard != NEST_NONE) {
        fail(r);
        return;
    }
    nest_id value = r->values[s->in[0]];
    switch (part->kind) {
    case ATTENTION_NOTHING:
        break;
    case ATTENTION_VALUE:
        part->value = value;
        break;
    case ATTENTION_ROWS:
        if (dtype_is_half(part->dtype))
            value = convert(r, value, part->dtype);
        nest_put(r->b, part->local, index_in(r, part, &s->index), value, NEST_NONE);
        break;
    default:
        nest_put(r->b, r->buffers[s->buffer], moved(r, &s->index), value, NEST_NONE);
    }
}

static void copy_block(struct attention_rows *r, uint32_t block);

static void copy_loop(struct attention_rows *r, const struct nest_statement *s)
{
    struct nest_combine c = {0};
    if (s->n_axes != 1 || s->n_combines > 1 || (s->kind != NEST_FOLD && s->kind != NEST_MAP)) {
        fail(r);
        return;
    }
    const struct nest_axis *axis = &r->from->axes.at[s->axes[0]];
    r->axes[s->axes[0]] = nest_axis(r->b, axis->name, axis->extent);
    nest_open(r->b, s->kind, 1, &r->axes[s->axes[0]]);
    copy_block(r, s->body);
    for (uint32_t i = 0; i < s->n_combines; i++) {
        c = s->combines[i];
        for (int k = 0; k < c.n; k++)
            c.value[k] = r->values[c.value[k]];
    }
    nest_id result = nest_close(r->b, (int)s->n_combines, &c);
    if (s->n_results)
        r->values[s->result] = result;
}

static void copy_statement(struct attention_rows *r, const struct nest_statement *s)
{
    r->b->where = s->where;
    nest_id result = NEST_NONE;
    switch (s->kind) {
    case NEST_CONST:
        result = copy_const(r, s);
        break;
    case NEST_INDEX:
        result = nest_index_value(r->b, moved(r, &s->index), s->dtype);
        break;
    case NEST_LOAD:
        result = copy_load(r, s);
        break;
    case NEST_OP:
        result = copy_op(r, s);
        break;
    case NEST_PUT:
        copy_put(r, s);
        return;
    default:
        copy_loop(r, s);
        return;
    }
    if (s->n_results)
        r->values[s->result] = result;
}

static void copy_block(struct attention_rows *r, uint32_t block)
{
    const struct nest_block *b = &r->from->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count && !r->fails; i++)
        copy_statement(r, &r->from->statements.at[b->statements.at[i]]);
}

void attention_rows_begin(struct attention_rows *r, uint32_t *memories, uint32_t *n)
{
    const struct nest *from = r->from;
    uint32_t argument = 0;
    for (nest_id i = 0; i < from->buffers.count; i++) {
        const struct nest_buffer *x = &from->buffers.at[i];
        if (x->role == NEST_LOCAL) {
            r->buffers[i] = nest_local(r->b, x->name, widened(x->dtype), x->count);
            continue;
        }
        uint32_t memory = r->step->memories[argument++];
        if (r->parts[i].kind != ATTENTION_OPERAND)
            continue;
        r->fails |= x->role != NEST_IN;
        memories[*n] = memory;
        ++*n;
        r->buffers[i] = nest_buffer(r->b, x->name, x->dtype, x->count, NEST_IN);
    }
    const struct nest_block *body = &from->blocks.at[0];
    for (uint32_t i = 0; i + 1 < body->statements.count && !r->fails; i++)
        copy_statement(r, &from->statements.at[body->statements.at[i]]);
}

void attention_rows_body(struct attention_rows *r) { copy_block(r, r->loop->body); }

// ---- The products

struct nest_index attention_matrix(struct attention_rows *r, const struct nest_gemm *g,
                                   const int64_t stride[4], const struct nest_index *of_s,
                                   int64_t matrix, struct nest_term row, nest_id column)
{
    // The axes of the loop around the rows are digits of the matrix's number.
    struct nest_term terms[IR_MAX_RANK + 2];
    int n = 0;
    for (uint32_t i = 0; i + 1 < r->loop->n_axes; i++) {
        nest_id axis = r->loop->axes[i];
        int64_t extent = r->from->axes.at[axis].extent, base = 1;
        int64_t step = nest_index_factor(of_s, axis) / matrix;
        int digit = 3;
        while (digit >= 0 && step >= base * g->batch[digit])
            base *= g->batch[digit--];
        if (step % base || digit < 0 || step * extent > base * g->batch[digit]) {
            r->fails |= extent != 1;
            continue;
        }
        terms[n++] = (struct nest_term){stride[digit] * (step / base), r->axes[axis], false};
    }
    terms[n++] = row;
    terms[n++] = (struct nest_term){1, column, false};
    return nest_index_make(r->p->arena, 0, n, terms);
}

void attention_write_product(struct attention_rows *r, const struct attention_product *x)
{
    struct nest_combine c = {.op = IR_fma, .n = 2, .dtype = JOT_F32, .order = NEST_SUM64};
    nest_open(r->b, NEST_MAP, 1, &x->across);
    nest_open(r->b, NEST_FOLD, 1, &x->along);
    for (int i = 0; i < 2; i++)
        c.value[i] =
            convert(r, nest_load(r->b, x->buffers[i], x->index[i], NEST_NONE), JOT_F32);
    nest_id sum = nest_close(r->b, 1, &c);
    if (x->dtype != JOT_F32)
        sum = convert(r, sum, x->dtype);
    nest_put(r->b, x->to, x->to_index, sum, NEST_NONE);
    nest_close(r->b, 0, NULL);
}

// ---- What the kernel is

nest_id attention_rows_buffer(const struct attention_rows *r, uint32_t memory)
{
    uint32_t argument = 0;
    for (nest_id b = 0; b < r->from->buffers.count; b++)
        if (r->from->buffers.at[b].role != NEST_LOCAL &&
            r->step->memories[argument++] == memory)
            return b;
    return NEST_NONE;
}

const struct nest_statement *attention_rows_access(const struct attention_rows *r,
                                                   nest_id buffer)
{
    nest_for_all (s, r->from)
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) && s->buffer == buffer)
            return s;
    return NULL;
}

static bool walks(const struct attention_rows *r, const struct nest_statement *s, int64_t width)
{
    nest_id query = r->loop->axes[r->loop->n_axes - 1];
    int64_t stride = width;
    if (s->index.constant || s->guard != NEST_NONE ||
        r->from->axes.at[query].extent != r->queries ||
        s->index.count > r->loop->n_axes + (width != 1) ||
        (width != 1 && key_of(&s->index) == NEST_NONE))
        return false;
    for (uint32_t i = r->loop->n_axes; i-- > 0;) {
        int64_t extent = r->from->axes.at[r->loop->axes[i]].extent;
        if (extent != 1 && nest_index_factor(&s->index, r->loop->axes[i]) != stride)
            return false;
        stride *= extent;
    }
    return stride == r->from->buffers.at[s->buffer].count;
}

bool attention_rows_walks(const struct attention_rows *r, nest_id buffer, int64_t width)
{
    nest_for_all (s, r->from)
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) && s->buffer == buffer &&
            !walks(r, s, width))
            return false;
    return true;
}

bool attention_rows_make(struct nest_program *p, uint32_t step, const struct nest_gemm *scores,
                         struct nest_builder *b, struct attention_rows *out)
{
    const struct nest_step *s = &p->steps.at[step];
    if (s->kind != NEST_STEP_KERNEL)
        return false;
    const struct nest *from = p->nests.at[s->nest];
    const struct nest_block *body = &from->blocks.at[0];
    *out = (struct attention_rows){.p = p, .b = b, .step = s, .from = from};
    out->loop = &from->statements.at[body->statements.at[body->statements.count - 1]];
    out->queries = scores->m;
    out->keys = scores->n;
    out->axes = arena_array(p->arena, nest_id, from->axes.count + 1);
    out->buffers = arena_array(p->arena, nest_id, from->buffers.count + 1);
    out->values = arena_array(p->arena, nest_id, from->values.count + 1);
    out->parts = arena_array(p->arena, struct attention_part, from->buffers.count + 1);
    return out->loop->kind == NEST_PAR && out->loop->n_axes <= IR_MAX_RANK &&
           from->axes.at[out->loop->axes[out->loop->n_axes - 1]].extent == out->queries;
}
