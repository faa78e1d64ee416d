// SPDX-License-Identifier: Apache-2.0
// Statements, one after another.  Of a loop with an axis of lanes each is done for all lanes before the next.
#include "nest_eval.h"
#include "nest_eval_memory.h"

static jot_status run_block(struct machine_state *m, struct lane *l, uint32_t block);
static jot_status run_statement(struct machine_state *m, struct lane *l, nest_id id);

static const struct nest_statement *statement(const struct machine_state *m, nest_id id)
{
    return &m->nest->statements.at[id];
}

static jot_dtype dtype_of(const struct machine_state *m, nest_id value)
{
    return m->nest->values.at[value].dtype;
}

static struct eval_number wide(const struct machine_state *m, const struct lane *l, nest_id v)
{
    return eval_load_wide(dtype_of(m, v), l->values[v].bytes, 0);
}

static void set(const struct machine_state *m, struct lane *l, nest_id v, struct eval_number x)
{
    eval_store(dtype_of(m, v), l->values[v].bytes, 0, x);
}

static void set_integer(const struct machine_state *m, struct lane *l, nest_id v, int64_t x)
{
    jot_dtype d = dtype_of(m, v);
    scalar s = scalar_from_bits(d, (uint64_t)x);
    set(m, l, v, (struct eval_number){s, {0, d}});
}

static bool is_true(const struct lane *l, nest_id v)
{
    return v == NEST_NONE || l->values[v].bytes[0];
}

static int64_t index_at(const struct machine_state *m, const struct lane *l,
                        const struct nest_index *x)
{
    uint64_t at = (uint64_t)x->constant;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        uint64_t value = t->is_value ? wide(m, l, t->id).re.bits : (uint64_t)l->axes[t->id];
        at += (uint64_t)t->factor * value;
    }
    return (int64_t)at;
}

static int64_t extent(const struct machine_state *m, nest_id axis)
{
    return m->nest->axes.at[axis].extent;
}

// --- scalars

static void run_op(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    enum ir_op op = (enum ir_op)s->op;
    if (op == IR_bitcast) {
        l->values[s->result] = l->values[s->in[0]];
        return;
    }
    if (op == IR_threefry2x32) {
        uint32_t x[4];
        for (int i = 0; i < 4; i++)
            memcpy(&x[i], l->values[s->in[i]].bytes, 4);
        eval_threefry2x32(x, x + 2);
        memcpy(l->values[s->result].bytes, &x[2], 4);
        memcpy(l->values[s->result + 1].bytes, &x[3], 4);
        return;
    }
    struct eval_number x[3] = {0};
    for (uint32_t i = 0; i < s->n_in; i++)
        x[i] = scalar_is_on_storage(op)
                   ? eval_load(dtype_of(m, s->in[i]), l->values[s->in[i]].bytes, 0)
                   : wide(m, l, s->in[i]);
    jot_dtype last = dtype_of(m, s->in[s->n_in - 1]);
    struct machine machine = {.dtype = last, .attrs = m->attrs[id]};
    set(m, l, s->result,
        op == IR_convert ? eval_convert(last, s->dtype, x[0])
                         : eval_scalar(&machine, op, x[0], x[1], x[2]));
}

static jot_status run_load(struct machine_state *m, struct lane *l,
                           const struct nest_statement *s)
{
    struct cell *to = &l->values[s->result];
    void *from;
    *to = (struct cell){{0}};
    if (!is_true(l, s->guard))
        return JOT_OK;
    JOT_TRY(touch_read(m, l, s->buffer, index_at(m, l, &s->index), &from));
    memcpy(to->bytes, from, dtype_get(s->dtype)->bytes);
    return JOT_OK;
}

static void combine(struct eval_number *to, enum ir_op op, jot_dtype d, struct eval_number x)
{
    struct machine machine = {.dtype = d};
    *to = eval_scalar(&machine, op, *to, x, x);
}

static jot_status run_put(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    if (s->op) {
        struct accumulation *a = accumulation_find(m, id);
        int64_t at = index_at(m, l, &s->index);
        bool guarded = !is_true(l, s->guard);
        if (guarded && (at < 0 || at >= m->nest->buffers.at[s->buffer].count))
            return JOT_OK;
        JOT_TRY(check_place(m, s->buffer, at));
        jot_dtype d = dtype_of(m, s->in[0]);
        struct eval_number *to = accumulation_lane(m, a, at, (enum ir_op)s->op, d);
        if (guarded)
            return JOT_OK;
        if (s->op == IR_fma)
            multiply_add(to, wide(m, l, s->in[0]), wide(m, l, s->in[1]), dtype_is_complex(d));
        else
            combine(to, (enum ir_op)s->op, d, wide(m, l, s->in[0]));
        return JOT_OK;
    }
    if (!is_true(l, s->guard))
        return JOT_OK;
    void *to;
    JOT_TRY(touch_write(m, l, s->buffer, index_at(m, l, &s->index), &to));
    memcpy(to, l->values[s->in[0]].bytes, dtype_get(dtype_of(m, s->in[0]))->bytes);
    return JOT_OK;
}

// --- loops

// An iteration of the loop begins: locals that belong to it are new.
static void forget_locals(struct machine_state *m, struct lane *l, nest_id loop)
{
    for (uint32_t b = 0; b < m->nest->buffers.count; b++) {
        if (m->nest->buffers.at[b].role != NEST_LOCAL || m->scope[b] != loop)
            continue;
        struct instance *i = instance_of(m, l, b);
        instance_forget(m, i, b);
    }
}

static int64_t volume(const struct machine_state *m, uint32_t n, const nest_id *axes)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < n; i++)
        count *= extent(m, axes[i]);
    return count;
}

// Iteration number i, first axis slowest.
static void set_axes(const struct machine_state *m, struct lane *l, uint32_t n,
                     const nest_id *axes, int64_t i)
{
    for (uint32_t k = n; k-- > 0;) {
        l->axes[axes[k]] = i % extent(m, axes[k]);
        i /= extent(m, axes[k]);
    }
}

// Elements of a loop that go at once: one, or as many as its axis has lanes.
struct step {
    nest_id loop;
    uint32_t width;
    struct lane *lanes;
    uint32_t *point;      // by lane
    int64_t *iterations;  // by lane: its number in the sequence
    uint32_t first, last; // accumulations of the loop
};

// Locals of an iteration are of each lane, those from outside are shared.
static struct step step_make(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    const struct nest *nest = m->nest;
    nest_id axis = nest_vector_axis(nest, s);
    struct step t = {.loop = id, .width = axis == NEST_NONE ? 1 : nest->axes.at[axis].vector};
    t.lanes = arena_array(m->arena, struct lane, t.width);
    t.point = arena_array(m->arena, uint32_t, t.width);
    t.iterations = arena_array(m->arena, int64_t, t.width);
    for (uint32_t p = 0; p < t.width; p++) {
        t.lanes[p] = *l;
        if (axis == NEST_NONE)
            continue;
        t.lanes[p].values = arena_array(m->arena, struct cell, nest->values.count + 1);
        memcpy(t.lanes[p].values, l->values, nest->values.count * sizeof(struct cell));
        t.lanes[p].axes =
            arena_copy(m->arena, l->axes, (nest->axes.count + 1) * sizeof *l->axes);
        t.lanes[p].locals = arena_array(m->arena, struct instance, nest->buffers.count + 1);
        for (uint32_t b = 0; b < nest->buffers.count; b++)
            if (nest->buffers.at[b].role == NEST_LOCAL && m->scope[b] == id)
                instance_make(m, &t.lanes[p].locals[b], b);
            else if (l->locals)
                t.lanes[p].locals[b] = l->locals[b];
    }
    return t;
}

// Iterations place, place + 1, ... of the axis of lanes, number `other` of those of the other axes.
static uint32_t step_begin(struct machine_state *m, struct step *t, int64_t other,
                           int64_t place)
{
    const struct nest_statement *s = statement(m, t->loop);
    nest_id axis = nest_vector_axis(m->nest, s);
    int64_t along = axis == NEST_NONE ? 1 : extent(m, axis);
    uint32_t count = along - place < t->width ? (uint32_t)(along - place) : t->width;
    for (uint32_t p = 0; p < count; p++) {
        int64_t rest = other;
        for (uint32_t k = s->n_axes; k-- > 0;) {
            nest_id a = s->axes[k];
            t->lanes[p].axes[a] = a == axis ? place + p : rest % extent(m, a);
            rest = a == axis ? rest : rest / extent(m, a);
        }
        t->iterations[p] = other * along + place + p;
        forget_locals(m, &t->lanes[p], t->loop);
    }
    return count;
}

// Each statement is done for all lanes before the next one.
static jot_status step_run(struct machine_state *m, struct step *t, uint32_t count)
{
    const struct nest_block *b = &m->nest->blocks.at[statement(m, t->loop)->body];
    for (uint32_t i = 0; i < b->statements.count; i++)
        for (uint32_t p = 0; p < count; p++) {
            m->point = t->point[p];
            for (uint32_t a = t->first; a < t->last; a++)
                m->accumulations.at[a].position = t->iterations[p];
            JOT_TRY(run_statement(m, &t->lanes[p], b->statements.at[i]));
        }
    return JOT_OK;
}

static jot_status run_points(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    nest_id axis = nest_vector_axis(m->nest, s);
    int64_t n = volume(m, s->n_axes, s->axes), along = axis == NEST_NONE ? 1 : extent(m, axis);
    bool outermost = s->kind == NEST_PAR && !m->in_points;
    uint32_t before = m->point;
    if (outermost)
        m->first_point = m->last_point + 1;
    m->in_points |= s->kind == NEST_PAR;
    struct step t = step_make(m, l, id);
    for (int64_t other = 0; n && other < n / along; other++)
        for (int64_t place = 0; place < along; place += t.width) {
            uint32_t count = step_begin(m, &t, other, place);
            for (uint32_t p = 0; p < count; p++)
                t.point[p] = outermost ? ++m->last_point : before;
            JOT_TRY(step_run(m, &t, count));
        }
    m->point = before;
    if (outermost)
        m->in_points = false;
    return JOT_OK;
}

static bool is_arg(uint16_t op) { return nest_combine_results(op) == 2; }

static void take(struct machine_state *m, struct lane *l, struct running *r,
                 const struct nest_combine *c, int64_t position)
{
    jot_dtype d = dtype_of(m, c->value[0]);
    struct eval_number x = wide(m, l, c->value[0]);
    if (is_arg(c->op)) {
        struct machine machine = {.dtype = d};
        if (position == 0 ||
            eval_scalar(&machine, (enum ir_op)c->op, x, r->best, r->best).re.bits) {
            r->best = x;
            r->place = position;
        }
        return;
    }
    int64_t lane = c->order == NEST_SUM64 ? position % r->fold.block % FOLD_LANES : 0;
    struct eval_number *to = &r->fold.lanes[lane];
    if (c->op == IR_fma)
        multiply_add(to, x, wide(m, l, c->value[1]), dtype_is_complex(d));
    else
        combine(to, (enum ir_op)c->op, d, x);
}

// The combiners of a fold; a fold is never inside itself, so they are made once.
static struct running *running_of(struct machine_state *m, nest_id id, int64_t n)
{
    const struct nest_statement *s = statement(m, id);
    if (m->running[id])
        return m->running[id];
    struct running *state = arena_array(m->arena, struct running, s->n_combines + 1);
    for (uint32_t k = 0; k < s->n_combines; k++) {
        const struct nest_combine *c = &s->combines[k];
        enum ir_op op = c->op == IR_fma ? IR_reduce_sum : (enum ir_op)c->op;
        if (!is_arg(c->op))
            state[k].fold = eval_fold_make(m->arena, op, dtype_of(m, c->value[0]), n);
    }
    return m->running[id] = state;
}

static void combine_iteration(struct machine_state *m, struct lane *l,
                              const struct nest_statement *s, struct running *state, int64_t i,
                              int64_t n)
{
    for (uint32_t k = 0; k < s->n_combines; k++) {
        bool arg = is_arg(s->combines[k].op);
        int64_t block = state[k].fold.block;
        if (!arg && i % block == 0)
            eval_fold_open_block(&state[k].fold);
        take(m, l, &state[k], &s->combines[k], i);
        if (!arg && (i + 1 == n || (i + 1) % block == 0))
            eval_fold_close_block(&state[k].fold);
    }
}

static jot_status run_fold(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    int64_t n = volume(m, s->n_axes, s->axes), last = extent(m, s->axes[s->n_axes - 1]);
    struct running *state = running_of(m, id, n);
    uint32_t point = m->point;
    struct step t = step_make(m, l, id);
    t.first = m->accumulations.count;
    accumulations_open(m, id, n);
    t.last = m->accumulations.count;
    int64_t along = nest_vector_axis(m->nest, s) == NEST_NONE ? 1 : last;
    for (int64_t other = 0; n && other < n / along; other++)
        for (int64_t place = 0; place < along; place += t.width) {
            uint32_t count = step_begin(m, &t, other, place);
            for (uint32_t p = 0; p < count; p++)
                t.point[p] = point;
            JOT_TRY(step_run(m, &t, count));
            for (uint32_t p = 0; p < count; p++)
                combine_iteration(m, &t.lanes[p], s, state, t.iterations[p], n);
        }
    nest_id result = s->result;
    for (uint32_t k = 0; k < s->n_combines; k++) {
        if (is_arg(s->combines[k].op)) {
            set(m, l, result++, state[k].best);
            set_integer(m, l, result++, state[k].place);
        } else {
            set(m, l, result++, eval_fold_finish(&state[k].fold));
        }
    }
    return accumulations_close(m, l, id);
}

// The first element is its own running value; what runs is not rounded to a half type.
static void run_yield(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    if (!m->running[id])
        m->running[id] = arena_array(m->arena, struct running, s->n_combines + 1);
    for (uint32_t k = 0; k < s->n_combines; k++) {
        struct running *r = &m->running[id][k];
        struct eval_number x = wide(m, l, s->combines[k].value[0]);
        if (m->scan_starts)
            r->best = x;
        else
            combine(&r->best, (enum ir_op)s->combines[k].op,
                    dtype_of(m, s->combines[k].value[0]), x);
        set(m, l, s->result + k, r->best);
    }
}

static jot_status run_scan(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    int64_t n = extent(m, s->axes[0]);
    bool outer = m->scan_starts;
    for (int64_t i = 0; i < n; i++) {
        l->axes[s->axes[0]] = s->reverse ? n - 1 - i : i;
        const struct nest_block *body = &m->nest->blocks.at[s->body];
        forget_locals(m, l, id);
        for (uint32_t k = 0; k < body->statements.count; k++) {
            m->scan_starts = i == 0; // A scan before the yield may have changed it.
            JOT_TRY(run_statement(m, l, body->statements.at[k]));
        }
    }
    m->scan_starts = outer;
    return JOT_OK;
}

// --- loops with state

// to[0 .. n) = from, all at once.
static void copy_values(struct machine_state *m, struct lane *l, uint32_t n, nest_id to,
                        const nest_id *from)
{
    struct arena_mark mark = arena_mark(m->arena);
    struct cell *values = arena_array(m->arena, struct cell, n);
    for (uint32_t i = 0; i < n; i++)
        values[i] = l->values[from[i]];
    for (uint32_t i = 0; i < n; i++)
        l->values[to + i] = values[i];
    arena_rewind(m->arena, mark);
}

// to[0 .. n) = first[0 .. n).
static void move_values(struct lane *l, uint32_t n, nest_id to, nest_id first)
{
    if (n)
        memmove(&l->values[to], &l->values[first], n * sizeof(struct cell));
}

static jot_status run_seq(struct machine_state *m, struct lane *l,
                          const struct nest_statement *s)
{
    int64_t n = extent(m, s->axes[0]);
    copy_values(m, l, s->n_in, s->first_carry, s->in);
    for (int64_t i = 0; i < n; i++) {
        l->axes[s->axes[0]] = s->reverse ? n - 1 - i : i;
        JOT_TRY(run_block(m, l, s->body));
        copy_values(m, l, s->n_in, s->first_carry, s->yields);
    }
    move_values(l, s->n_in, s->result, s->first_carry);
    return JOT_OK;
}

static jot_status run_while(struct machine_state *m, struct lane *l,
                            const struct nest_statement *s)
{
    copy_values(m, l, s->n_in, s->first_carry, s->in);
    for (;;) {
        JOT_TRY(run_block(m, l, s->body));
        if (!is_true(l, s->yields[0]))
            break;
        JOT_TRY(run_block(m, l, s->other));
        copy_values(m, l, s->n_in, s->first_carry, s->yields + 1);
    }
    move_values(l, s->n_in, s->result, s->first_carry);
    return JOT_OK;
}

static jot_status run_if(struct machine_state *m, struct lane *l,
                         const struct nest_statement *s)
{
    bool first = is_true(l, s->in[0]);
    uint32_t block = first ? s->body : s->other;
    if (block != NEST_NONE)
        JOT_TRY(run_block(m, l, block));
    copy_values(m, l, s->n_results, s->result, s->yields + (first ? 0 : s->n_results));
    return JOT_OK;
}

// --- contracts

static jot_status contract_term(struct machine_state *m, struct lane *l,
                                const struct nest_statement *s, struct eval_number *sum)
{
    struct eval_number x[2];
    jot_dtype d = m->nest->buffers.at[s->source[0]].dtype;
    for (int i = 0; i < 2; i++) {
        void *from;
        JOT_TRY(touch_read(m, l, s->source[i], index_at(m, l, &s->source_index[i]), &from));
        x[i] = eval_load_wide(d, from, 0);
    }
    multiply_add(sum, x[0], x[1], dtype_is_complex(d));
    return JOT_OK;
}

static jot_status run_contract(struct machine_state *m, struct lane *l,
                               const struct nest_statement *s)
{
    uint32_t kept = s->n_axes - 1;
    int64_t count = volume(m, kept, s->axes), length = extent(m, s->axes[kept]);
    for (int64_t i = 0; i < count; i++) {
        set_axes(m, l, kept, s->axes, i);
        struct eval_fold f =
            eval_fold_make(m->arena, IR_reduce_sum, m->nest->buffers.at[s->source[0]].dtype, 1);
        struct eval_number sum = f.identity;
        for (int64_t k = 0; k < length; k++) {
            l->axes[s->axes[kept]] = k;
            JOT_TRY(contract_term(m, l, s, &sum));
        }
        void *to;
        l->axes[s->axes[kept]] = 0;
        JOT_TRY(touch_write(m, l, s->buffer, index_at(m, l, &s->index), &to));
        eval_store(m->nest->buffers.at[s->buffer].dtype, to, 0, sum);
    }
    return JOT_OK;
}

// --- the walk

static jot_status run_statement(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    switch (s->kind) {
    case NEST_OP:
        run_op(m, l, id);
        return JOT_OK;
    case NEST_CONST:
        memcpy(l->values[s->result].bytes, s->bits, sizeof s->bits);
        return JOT_OK;
    case NEST_INDEX:
        set_integer(m, l, s->result, index_at(m, l, &s->index));
        return JOT_OK;
    case NEST_LOAD:
        return run_load(m, l, s);
    case NEST_PUT:
        return run_put(m, l, id);
    case NEST_PAR:
    case NEST_MAP:
        return run_points(m, l, id);
    case NEST_FOLD:
        return run_fold(m, l, id);
    case NEST_SCAN:
        return run_scan(m, l, id);
    case NEST_YIELD:
        run_yield(m, l, id);
        return JOT_OK;
    case NEST_SEQ:
        return run_seq(m, l, s);
    case NEST_WHILE:
        return run_while(m, l, s);
    case NEST_IF:
        return run_if(m, l, s);
    case NEST_CONTRACT:
        return run_contract(m, l, s);
    default:
        return status_fail(JOT_ERR_INTERNAL, "statement kind %d", (int)s->kind);
    }
}

static jot_status run_block(struct machine_state *m, struct lane *l, uint32_t block)
{
    const struct nest_block *b = &m->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++)
        JOT_TRY(run_statement(m, l, b->statements.at[i]));
    return JOT_OK;
}

// --- a run

static const struct ir_attrs *make_attrs(struct arena *arena, const struct nest_statement *s)
{
    struct ir_attrs *a = arena_allocate(arena, sizeof *a + 2 * sizeof a->fields[0]);
    bool pow = s->op == IR_integer_pow;
    a->count = pow ? 1 : 2;
    a->fields[0] = (struct ir_field){
        .key = pow ? IR_KEY_exponent : IR_KEY_exponent_bits, .count = 1, .ints = &s->bits[0]};
    if (!pow)
        a->fields[1] =
            (struct ir_field){.key = IR_KEY_mantissa_bits, .count = 1, .ints = &s->bits[1]};
    return a;
}

static jot_status check_outputs(const struct machine_state *m)
{
    for (uint32_t b = 0; b < m->nest->buffers.count; b++) {
        const struct nest_buffer *buffer = &m->nest->buffers.at[b];
        for (int64_t i = 0; buffer->role == NEST_OUT && i < buffer->count; i++)
            if (!m->shared[b].elements[i].is_written)
                return status_fail(JOT_ERR_INTERNAL, "kernel %s: nothing is put into %s[%lld]",
                                   m->nest->name, buffer->name, (long long)i);
    }
    return JOT_OK;
}

static jot_status run(struct arena *arena, const struct nest *n, void *const *buffers)
{
    struct machine_state m = {
        .arena = arena,
        .nest = n,
        .shared = arena_array(arena, struct instance, n->buffers.count + 1),
        .scope = arena_array(arena, nest_id, n->buffers.count + 1),
        .attrs = arena_array(arena, const struct ir_attrs *, n->statements.count + 1),
        .running = arena_array(arena, struct running *, n->statements.count + 1),
    };
    struct lane lane = {
        .values = arena_array(arena, struct cell, n->values.count + 1),
        .axes = arena_array(arena, int64_t, n->axes.count + 1),
    };
    uint32_t given = 0;
    for (uint32_t b = 0; b < n->buffers.count; b++) {
        instance_make(&m, &m.shared[b], b);
        if (n->buffers.at[b].role != NEST_LOCAL)
            m.shared[b].data = buffers[given++];
    }
    nest_local_scopes(n, m.scope);
    for (uint32_t i = 0; i < n->statements.count; i++)
        if (n->statements.at[i].kind == NEST_OP)
            m.attrs[i] = make_attrs(arena, &n->statements.at[i]);
    JOT_TRY(run_block(&m, &lane, 0));
    return check_outputs(&m);
}

jot_status nest_eval(const struct nest *n, void *const *buffers)
{
    struct arena *arena = arena_create();
    jot_status status = run(arena, n, buffers);
    arena_release(arena);
    return status;
}
