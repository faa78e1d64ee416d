// SPDX-License-Identifier: Apache-2.0
// What must hold of a nest: scopes and the shape of statements.  nest/verify_values.c has what must
// hold of types, nest/verify_access.c of buffers, nest/verify_levels.c of who does what.
#include "nest/verify.h"

#include <stdarg.h>
#include <stdio.h>

// "put y" or "add".
static void describe(const struct verifier *v, char *out, size_t size)
{
    if (v->statement >= v->nest->statements.count) {
        snprintf(out, size, "body");
        return;
    }
    const struct nest_statement *s = &v->nest->statements.at[v->statement];
    const char *kind = (unsigned)s->kind < NEST_KIND_COUNT ? nest_kind_names[s->kind] : "?";
    if (s->kind == NEST_OP && s->op < IR_OP_COUNT)
        snprintf(out, size, "%s", ir_op_get((enum ir_op)s->op)->name);
    else if (s->buffer < v->nest->buffers.count)
        snprintf(out, size, "%s %s", kind, v->nest->buffers.at[s->buffer].name);
    else if (s->n_axes && s->axes[0] < v->nest->axes.count)
        snprintf(out, size, "%s %s", kind, v->nest->axes.at[s->axes[0]].name);
    else
        snprintf(out, size, "%s", kind);
}

void nest_fault(struct verifier *v, const char *format, ...)
{
    v->faults++;
    if (!v->report)
        return;
    char what[256], where[96];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    describe(v, where, sizeof where);
    strbuf_printf(v->report, "kernel %s: %s: %s\n", v->nest->name, where, what);
}

// --- buffers

static bool is_sure(const struct verifier *v, const struct nest_statement *s)
{
    bool sure = s->guard == NEST_NONE;
    for (uint32_t i = 0; i < v->path.count; i++) {
        const struct nest_statement *outer = &v->nest->statements.at[v->path.at[i]];
        sure &= outer->kind != NEST_IF && outer->kind != NEST_WHILE;
        for (uint32_t j = 0; j < outer->n_axes; j++)
            sure &= outer->axes[j] < v->nest->axes.count &&
                    v->nest->axes.at[outer->axes[j]].extent > 0;
    }
    for (uint32_t j = 0; s->kind == NEST_CONTRACT && j < s->n_axes; j++)
        sure &= v->nest->axes.at[s->axes[j]].extent > 0;
    return sure;
}

static bool add_access(struct verifier *v, const struct nest_statement *s, nest_id buffer,
                       const struct nest_index *index, bool is_put)
{
    if (buffer >= v->nest->buffers.count) {
        nest_fault(v, "there is no buffer %u", buffer);
        return false;
    }
    int before = v->faults;
    verify_index(v, index);
    if (v->faults != before)
        return true;
    vec_push(v->arena, &v->accesses,
             (struct nest_access){
                 .statement = v->statement,
                 .buffer = buffer,
                 .index = index,
                 .is_put = is_put,
                 .is_sure = is_sure(v, s),
                 .fold = is_put ? s->fold : NEST_NONE,
                 .depth = v->path.count,
                 .path = arena_copy(v->arena, v->path.at, v->path.count * sizeof(nest_id)),
             });
    return true;
}

static bool encloses(const struct verifier *v, nest_id statement)
{
    for (uint32_t i = 0; i < v->path.count; i++)
        if (v->path.at[i] == statement)
            return true;
    return false;
}

static void check_load(struct verifier *v, const struct nest_statement *s)
{
    if (!add_access(v, s, s->buffer, &s->index, false))
        return;
    if (s->guard != NEST_NONE)
        verify_type(v, s->guard, JOT_BOOL, "its guard");
    if (s->dtype != v->nest->buffers.at[s->buffer].dtype)
        nest_fault(v, "the elements are %s, not %s",
                   verify_dtype_text((int)v->nest->buffers.at[s->buffer].dtype),
                   verify_dtype_text((int)s->dtype));
    verify_define(v, s->result, (int)s->dtype);
}

static void check_put(struct verifier *v, const struct nest_statement *s)
{
    if (!add_access(v, s, s->buffer, &s->index, true))
        return;
    const struct nest_buffer *b = &v->nest->buffers.at[s->buffer];
    if (s->guard != NEST_NONE)
        verify_type(v, s->guard, JOT_BOOL, "its guard");
    if (!s->op) {
        if (s->n_in != 1)
            nest_fault(v, "it puts %u values", s->n_in);
        else
            verify_type(v, s->in[0], (int)b->dtype, "its value");
        return;
    }
    if (!verify_is_put_op(s->op)) {
        nest_fault(v, "its combiner is not one that accumulates");
        return;
    }
    verify_combine(v, s->op, s->n_in, s->in, (int)b->dtype, s->order, NEST_SUM64);
    if (s->fold >= v->nest->statements.count || !encloses(v, s->fold) ||
        v->nest->statements.at[s->fold].kind != NEST_FOLD)
        nest_fault(v, "the loop it accumulates over is not a fold around it");
}

// --- loops

static void check_block(struct verifier *v, uint32_t block,
                        void (*at_end)(struct verifier *, nest_id), nest_id owner);

static bool open_axes(struct verifier *v, const struct nest_statement *s)
{
    for (uint32_t i = 0; i < s->n_axes; i++) {
        nest_id a = s->axes[i];
        if (a >= v->nest->axes.count || v->axis_open[a]) {
            nest_fault(v,
                       a >= v->nest->axes.count ? "there is no axis %u"
                                                : "axis %u is that of a loop around it",
                       a);
            while (i-- > 0)
                v->axis_open[s->axes[i]] = 0;
            return false;
        }
        if (v->nest->axes.at[a].extent < 0)
            nest_fault(v, "axis %s has a negative extent", v->nest->axes.at[a].name);
        v->axis_open[a] = 1;
    }
    verify_levels(v, s);
    return true;
}

static void close_axes(struct verifier *v, const struct nest_statement *s)
{
    for (uint32_t i = 0; i < s->n_axes; i++)
        v->axis_open[s->axes[i]] = 0;
}

static bool is_inside(const struct verifier *v, unsigned kinds)
{
    for (uint32_t i = 0; i < v->path.count; i++)
        if (kinds >> v->nest->statements.at[v->path.at[i]].kind & 1)
            return true;
    return false;
}

// Combiners are seen from inside the loop.
static void end_fold(struct verifier *v, nest_id id)
{
    verify_combines(v, &v->nest->statements.at[id], verify_is_fold_op, NEST_SUM64);
}

static void check_fold_extent(struct verifier *v, const struct nest_statement *s)
{
    for (uint32_t i = 0; i < s->n_combines; i++)
        for (uint32_t j = 0; nest_combine_results(s->combines[i].op) == 2 && j < s->n_axes; j++)
            if (v->nest->axes.at[s->axes[j]].extent == 0)
                nest_fault(v, "it finds the position of an element among none");
}

static void check_scan(struct verifier *v, const struct nest_statement *s)
{
    uint32_t yields = 0;
    if (s->body < v->nest->blocks.count) {
        const struct nest_block *b = &v->nest->blocks.at[s->body];
        for (uint32_t i = 0; i < b->statements.count; i++)
            yields += b->statements.at[i] < v->nest->statements.count &&
                      v->nest->statements.at[b->statements.at[i]].kind == NEST_YIELD;
    }
    if (yields != 1)
        nest_fault(v, "a scan has one yield, not %u", yields);
}

static void check_loop(struct verifier *v, const struct nest_statement *s)
{
    nest_id id = v->statement;
    if (!open_axes(v, s))
        return;
    if (s->kind == NEST_PAR && is_inside(v, 1u << NEST_MAP | 1u << NEST_FOLD | 1u << NEST_SCAN))
        nest_fault(v, "a par is not inside an inner loop");
    if (s->kind == NEST_SCAN)
        check_scan(v, s);
    if (s->kind == NEST_FOLD)
        check_fold_extent(v, s);
    check_block(v, s->body, s->kind == NEST_FOLD ? end_fold : NULL, id);
    close_axes(v, s);
    if (s->kind == NEST_FOLD)
        verify_define_combines(v, s);
}

static void check_yield(struct verifier *v, const struct nest_statement *s)
{
    bool in_scan =
        v->path.count && v->nest->statements.at[vec_last(&v->path)].kind == NEST_SCAN;
    if (!in_scan)
        nest_fault(v, "a running value is that of the scan directly around it");
    verify_combines(v, s, verify_is_scan_op, NEST_SERIAL);
    verify_define_combines(v, s);
}

// Yields from, from + 1, ... have the types of the n values.
static void check_yields(struct verifier *v, const struct nest_statement *s, uint32_t from,
                         uint32_t n, const nest_id *like)
{
    for (uint32_t i = 0; i < n && from + i < s->n_yields; i++)
        verify_type(v, s->yields[from + i], verify_dtype_of(v, like[i]), "a value it yields");
}

static void end_seq(struct verifier *v, nest_id id)
{
    const struct nest_statement *s = &v->nest->statements.at[id];
    check_yields(v, s, s->kind == NEST_WHILE ? 1 : 0, s->n_in, s->in);
}

static void end_test(struct verifier *v, nest_id id)
{
    const struct nest_statement *s = &v->nest->statements.at[id];
    if (s->n_yields)
        verify_type(v, s->yields[0], JOT_BOOL, "its test");
}

static void define_carried(struct verifier *v, const struct nest_statement *s, nest_id first)
{
    for (uint32_t i = 0; i < s->n_in; i++)
        verify_define(v, first + i, verify_dtype_of(v, s->in[i]));
}

static void hide(struct verifier *v, nest_id first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (first + i < v->nest->values.count)
            v->value_state[first + i] = VALUE_OUT_OF_SCOPE;
}

static void check_carry_loop(struct verifier *v, const struct nest_statement *s)
{
    nest_id id = v->statement;
    bool is_while = s->kind == NEST_WHILE;
    for (uint32_t i = 0; i < s->n_in; i++)
        if (!verify_use(v, s->in[i]))
            return;
    if (s->n_yields != s->n_in + is_while) {
        nest_fault(v, "it has %u carries, %u yields", s->n_in, s->n_yields);
        return;
    }
    if (!open_axes(v, s))
        return;
    define_carried(v, s, s->first_carry);
    check_block(v, s->body, is_while ? end_test : end_seq, id);
    if (s->other != NEST_NONE)
        check_block(v, s->other, end_seq, id);
    hide(v, s->first_carry, s->n_in);
    close_axes(v, s);
    if (verify_results(v, s, s->n_in))
        define_carried(v, s, s->result);
}

static void end_first_branch(struct verifier *v, nest_id id)
{
    const struct nest_statement *s = &v->nest->statements.at[id];
    for (uint32_t i = 0; i < s->n_results && i < s->n_yields; i++)
        verify_type(v, s->yields[i], verify_dtype_of(v, s->result + i), "a value it yields");
}

static void end_second_branch(struct verifier *v, nest_id id)
{
    const struct nest_statement *s = &v->nest->statements.at[id];
    for (uint32_t i = 0; i < s->n_results && s->n_results + i < s->n_yields; i++)
        verify_type(v, s->yields[s->n_results + i], verify_dtype_of(v, s->result + i),
                    "a value it yields");
}

static void check_if(struct verifier *v, const struct nest_statement *s)
{
    nest_id id = v->statement;
    verify_type(v, s->in[0], JOT_BOOL, "its predicate");
    bool both = s->other != NEST_NONE;
    if (s->n_yields != (both ? 2 : 0) * s->n_results || (!both && s->n_results)) {
        nest_fault(v, "it has %u results and yields %u values in %d branches", s->n_results,
                   s->n_yields, both ? 2 : 1);
        return;
    }
    check_block(v, s->body, end_first_branch, id);
    if (both)
        check_block(v, s->other, end_second_branch, id);
    for (uint32_t i = 0; i < s->n_results; i++)
        verify_define(v, s->result + i, verify_dtype_of(v, s->result + i));
}

static void check_contract(struct verifier *v, const struct nest_statement *s)
{
    const struct nest *n = v->nest;
    if (!open_axes(v, s))
        return;
    bool known = add_access(v, s, s->source[0], &s->source_index[0], false) &&
                 add_access(v, s, s->source[1], &s->source_index[1], false) &&
                 add_access(v, s, s->buffer, &s->index, true);
    close_axes(v, s);
    if (!known)
        return;
    int a = (int)n->buffers.at[s->source[0]].dtype, b = (int)n->buffers.at[s->source[1]].dtype;
    if (a != b || a == JOT_BOOL)
        nest_fault(v, "its factors are %s and %s", verify_dtype_text(a), verify_dtype_text(b));
    verify_accumulated(v, IR_fma, a, (int)n->buffers.at[s->buffer].dtype);
}

// --- the walk

#define IN(part) (1u << NEST_PART_##part)

// How many of any of the parts.
static enum nest_number number_of(enum nest_kind kind, unsigned parts)
{
    for (enum nest_part part = 0; part < NEST_PARTS; part++)
        if (parts >> part & 1 && nest_has(kind, part))
            return (enum nest_number)nest_numbers[kind][part];
    return NEST_NO;
}

// That the statement has as many of everything as its kind has (statements.def): walks look at all fields alike.
static bool has_its_own(struct verifier *v, const struct nest_statement *s)
{
    bool has_buffer = s->buffer != NEST_NONE;
    bool has_index = has_buffer || s->index.count || s->index.constant;
    const struct {
        uint32_t number;
        unsigned parts;
        const char *what;
    } fields[] = {
        {s->op != 0, IN(op) | IN(combiner), "op"},
        {s->bits[0] || s->bits[1], IN(bits) | IN(element), "bits"},
        {s->n_in, IN(values) | IN(carries), "operands"},
        {has_buffer, IN(access) | IN(product), "buffer"},
        {has_index, IN(index) | IN(access) | IN(product), "index"},
        {s->source[0] != NEST_NONE || s->source[1] != NEST_NONE, IN(product), "factors"},
        {s->guard != NEST_NONE, IN(guard), "guard"},
        {s->fold != NEST_NONE || s->order, IN(over), "fold"},
        {s->level != NEST_NO_LEVEL, IN(level), "level"},
        {s->n_axes, IN(axes) | IN(product), "axes"},
        {s->reverse, IN(reverse), "direction"},
        {s->turns || s->at_once, IN(turns), "turns"},
        {s->terms != NEST_OWN, IN(terms), "terms"},
        {s->first_carry != NEST_NONE, IN(carries), "carries"},
        {s->body != NEST_NONE, IN(body), "body"},
        {s->other != NEST_NONE, IN(other), "second body"},
        {s->n_combines, IN(combined), "combiners"},
        {s->n_yields, IN(results), "yields"},
        {s->n_results, IN(type) | IN(combined) | IN(results), "results"},
    };
    int before = v->faults;
    if ((unsigned)s->kind >= NEST_KIND_COUNT)
        nest_fault(v, "there is no statement kind %d", (int)s->kind);
    for (size_t i = 0; v->faults == before && i < sizeof fields / sizeof *fields; i++) {
        enum nest_number wanted = number_of(s->kind, fields[i].parts);
        uint32_t number = fields[i].number;
        if (wanted == NEST_NO && number)
            nest_fault(v, "it has no %s", fields[i].what);
        else if ((wanted == NEST_ONE && number != 1) || (wanted == NEST_SOME && !number))
            nest_fault(v, "it has %u %s, not %s", number, fields[i].what,
                       wanted == NEST_ONE ? "one" : "some");
    }
    return v->faults == before;
}

static void check_statement(struct verifier *v, const struct nest_statement *s)
{
    if (!has_its_own(v, s))
        return;
    switch (s->kind) {
    case NEST_OP:
        verify_op(v, s);
        break;
    case NEST_CONST:
        verify_define(v, s->result, (int)s->dtype);
        break;
    case NEST_INDEX:
        verify_index(v, &s->index);
        if (!dtype_is_valid((int)s->dtype) || !dtype_is_integer(s->dtype))
            nest_fault(v, "an index is an integer, not %s", verify_dtype_text((int)s->dtype));
        verify_define(v, s->result, (int)s->dtype);
        break;
    case NEST_LOAD:
        check_load(v, s);
        break;
    case NEST_PUT:
        check_put(v, s);
        break;
    case NEST_PAR:
    case NEST_MAP:
    case NEST_FOLD:
    case NEST_SCAN:
        check_loop(v, s);
        break;
    case NEST_YIELD:
        check_yield(v, s);
        break;
    case NEST_SEQ:
    case NEST_WHILE:
        check_carry_loop(v, s);
        break;
    case NEST_IF:
        check_if(v, s);
        break;
    case NEST_CONTRACT:
        check_contract(v, s);
        break;
    case NEST_KIND_COUNT:
        break;
    }
}

// Values that the statements of a block define are gone behind it; what belongs to the end of the
// block is looked at before.
static void check_block(struct verifier *v, uint32_t block,
                        void (*at_end)(struct verifier *, nest_id), nest_id owner)
{
    const struct nest *n = v->nest;
    if (block >= n->blocks.count || v->block_seen[block]) {
        nest_fault(v, "block %u is missing or that of another statement", block);
        return;
    }
    if (v->path.count + 1 >= NEST_DEPTH) {
        nest_fault(v, "blocks nest more than %d deep", NEST_DEPTH);
        return;
    }
    v->block_seen[block] = 1;
    if (owner != NEST_NONE)
        vec_push(v->arena, &v->path, owner);
    const struct nest_block *b = &n->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        if (id >= n->statements.count || v->statement_seen[id]) {
            nest_fault(v, "statement %u is missing or in two blocks", id);
            continue;
        }
        v->statement_seen[id] = 1;
        v->statement = id;
        check_statement(v, &n->statements.at[id]);
        v->statement = owner;
    }
    if (at_end)
        at_end(v, owner);
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (b->statements.at[i] < n->statements.count)
            hide(v, n->statements.at[b->statements.at[i]].result,
                 n->statements.at[b->statements.at[i]].n_results);
    if (owner != NEST_NONE)
        v->path.count--;
}

static void check_buffers(struct verifier *v)
{
    for (uint32_t i = 0; i < v->nest->buffers.count; i++) {
        const struct nest_buffer *b = &v->nest->buffers.at[i];
        if (!dtype_is_valid((int)b->dtype) || b->count < 0 || (unsigned)b->role > NEST_LOCAL)
            nest_fault(v, "buffer %s has no size, type or space", b->name);
    }
}

int nest_verify(const struct nest *n, struct strbuf *report)
{
    struct arena_mark mark = arena_mark(n->arena);
    bool shares = report && report->arena == n->arena; // The report grows where we allocate.
    struct verifier v = {
        .nest = n,
        .arena = n->arena,
        .report = report,
        .statement = NEST_NONE,
        .value_state = arena_allocate(n->arena, n->values.count + 1),
        .axis_open = arena_allocate(n->arena, n->axes.count + 1),
        .block_seen = arena_allocate(n->arena, n->blocks.count + 1),
        .statement_seen = arena_allocate(n->arena, n->statements.count + 1),
    };
    check_buffers(&v);
    verify_threads(&v);
    if (!v.faults)
        check_block(&v, 0, NULL, NEST_NONE);
    if (!v.faults)
        nest_verify_accesses(&v);
    if (!v.faults)
        nest_verify_sharing(&v);
    if (!shares)
        arena_rewind(n->arena, mark);
    return v.faults;
}
