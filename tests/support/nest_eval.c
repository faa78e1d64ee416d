// SPDX-License-Identifier: Apache-2.0
// Statements, one after another.  Of a loop with an axis of lanes each is done for all lanes before the next.
#include "nest_eval.h"
#include "nest_eval_memory.h"

static const struct nest_statement *statement(const struct machine_state *m, nest_id id)
{
    return &m->nest->statements.at[id];
}

static jot_dtype dtype_of(const struct machine_state *m, nest_id value)
{
    return m->nest->values.at[value].dtype;
}

struct eval_number wide_value(const struct machine_state *m, const struct lane *l, nest_id v)
{
    return eval_load_wide(dtype_of(m, v), l->values[v].bytes, 0);
}

void set_value(const struct machine_state *m, struct lane *l, nest_id v, struct eval_number x)
{
    eval_store(dtype_of(m, v), l->values[v].bytes, 0, x);
}

void set_integer(const struct machine_state *m, struct lane *l, nest_id v, int64_t x)
{
    jot_dtype d = dtype_of(m, v);
    scalar s = scalar_from_bits(d, (uint64_t)x);
    set_value(m, l, v, (struct eval_number){s, {0, d}});
}

int64_t index_at(const struct machine_state *m, const struct lane *l,
                 const struct nest_index *x)
{
    uint64_t at = (uint64_t)x->constant;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        uint64_t value =
            t->is_value ? wide_value(m, l, t->id).re.bits : (uint64_t)l->axes[t->id];
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
                   : wide_value(m, l, s->in[i]);
    jot_dtype last = dtype_of(m, s->in[s->n_in - 1]);
    struct machine machine = {.dtype = last, .attrs = m->attrs[id]};
    set_value(m, l, s->result,
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

static jot_status run_put(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    if (s->op) {
        struct accumulation *a = accumulation_find(m, id);
        int64_t at = index_at(m, l, &s->index);
        bool guarded = !is_true(l, s->guard);
        if (guarded && (at < 0 || at >= m->nest->buffers.at[s->buffer].count))
            return JOT_OK;
        JOT_TRY(check_access(m, s->buffer, at));
        jot_dtype d = dtype_of(m, s->in[0]);
        struct eval_number *to = accumulation_lane(m, a, at, (enum ir_op)s->op, d);
        if (guarded)
            return JOT_OK;
        if (s->op == IR_fma)
            multiply_add(to, wide_value(m, l, s->in[0]), wide_value(m, l, s->in[1]),
                         dtype_is_complex(d));
        else
            combine_number(to, (enum ir_op)s->op, d, wide_value(m, l, s->in[0]));
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
void forget_locals(struct machine_state *m, struct lane *l, nest_id loop)
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

// Iterations first, first + 1, ... of the axis of lanes, number `other` of those of the other axes.
static uint32_t step_begin(struct machine_state *m, struct step *t, int64_t other,
                           int64_t first)
{
    const struct nest_statement *s = statement(m, t->loop);
    nest_id axis = nest_vector_axis(m->nest, s);
    int64_t along = axis == NEST_NONE ? 1 : extent(m, axis);
    uint32_t count = along - first < t->width ? (uint32_t)(along - first) : t->width;
    for (uint32_t p = 0; p < count; p++) {
        int64_t rest = other;
        for (uint32_t k = s->n_axes; k-- > 0;) {
            nest_id a = s->axes[k];
            t->lanes[p].axes[a] = a == axis ? first + p : rest % extent(m, a);
            rest = a == axis ? rest : rest / extent(m, a);
        }
        t->iterations[p] = other * along + first + p;
        forget_locals(m, &t->lanes[p], t->loop);
    }
    return count;
}

// Each statement is done for all lanes before the next one.
static jot_status step_run(struct machine_state *m, struct step *t, const struct turns *turns,
                           const struct turn *turn, uint32_t count)
{
    const struct nest_block *b = &m->nest->blocks.at[statement(m, t->loop)->body];
    for (uint32_t i = 0; i < b->statements.count; i++)
        for (uint32_t p = 0; p < count; p++) {
            turn_begin(m, turns, turn, p);
            for (uint32_t a = t->first; a < t->last; a++)
                m->accumulations.at[a].position = t->iterations[p];
            JOT_TRY(run_statement(m, &t->lanes[p], b->statements.at[i]));
        }
    return JOT_OK;
}

static bool is_one_worker(const struct turn *a, const struct turn *b)
{
    return a->who.block == b->who.block && a->who.thread == b->who.thread;
}

// What the fold combines in an iteration, computed before by whoever does that: to and from memory.
static void move_terms(struct machine_state *m, struct lane *l, nest_id fold, struct cell *at,
                       bool is_kept)
{
    const struct nest_statement *s = statement(m, fold);
    for (uint32_t k = 0; k < s->n_combines; k++)
        for (uint32_t i = 0; i < s->combines[k].n; i++, at++)
            *(is_kept ? at : &l->values[s->combines[k].value[i]]) =
                *(is_kept ? &l->values[s->combines[k].value[i]] : at);
}

// Points, or a fold, of which each worker combines what it has.
static jot_status run_turns(struct machine_state *m, nest_id id, struct step *t,
                            const struct turns *turns)
{
    const struct nest_statement *s = statement(m, id);
    bool is_fold = s->kind == NEST_FOLD, has_terms = turns->is_shared && s->terms;
    uint32_t size = 2 * s->n_combines + 1;
    int64_t n = nest_extent(m->nest, s);
    struct cell *terms = has_terms ? arena_array(m->arena, struct cell, n * size) : NULL;
    struct turn last = {0};
    for (int64_t i = 0; i < turns->count; i++) {
        struct turn turn = turns_at(turns, i);
        uint32_t count = step_begin(m, t, turn.other, turn.first);
        if (is_fold && i && !is_one_worker(&turn, &last))
            fold_leave(m, id);
        last = turn;
        JOT_TRY(step_run(m, t, turns, &turn, count));
        for (uint32_t p = 0; is_fold && p < count; p++)
            if (has_terms)
                move_terms(m, &t->lanes[p], id, &terms[t->iterations[p] * size], true);
            else
                fold_take(m, &t->lanes[p], id, t->iterations[p]);
    }
    for (int64_t i = 0; has_terms && i < n; i++) {
        move_terms(m, &t->lanes[0], id, &terms[i * size], false);
        fold_take(m, &t->lanes[0], id, i);
    }
    if (is_fold)
        fold_leave(m, id);
    return JOT_OK;
}

static jot_status run_points(struct machine_state *m, struct lane *l, nest_id id)
{
    struct step t = step_make(m, l, id);
    struct turns turns = turns_open(m, id, t.width);
    jot_status status = run_turns(m, id, &t, &turns);
    turns_close(m, &turns);
    return status;
}

static jot_status run_fold(struct machine_state *m, struct lane *l, nest_id id)
{
    int64_t n = nest_extent(m->nest, statement(m, id));
    fold_open(m, id, n);
    struct step t = step_make(m, l, id);
    t.first = m->accumulations.count;
    accumulations_open(m, id, n);
    t.last = m->accumulations.count;
    struct turns turns = turns_open(m, id, t.width);
    jot_status status = run_turns(m, id, &t, &turns);
    turns_close(m, &turns);
    JOT_TRY(status);
    fold_close(m, l, id);
    return accumulations_close(m, l, id);
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

jot_status run_statement(struct machine_state *m, struct lane *l, nest_id id)
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
        return run_seq(m, l, id);
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

jot_status run_block(struct machine_state *m, struct lane *l, uint32_t block)
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
        .again.loop = NEST_NONE,
        .shared_loop = NEST_NONE,
        .is_mapped = n->threads[NEST_BLOCK_THREADS] && !n->special,
    };
    m.is_grid = m.is_mapped && n->threads[NEST_BLOCKS] != 1;
    m.team = !m.is_mapped ? 1 : m.is_grid ? 0 : n->threads[NEST_GROUP_THREADS];
    m.who.thread = m.team == 1 ? 0 : EVERY_THREAD;
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
