// SPDX-License-Identifier: Apache-2.0
// Loop fission: a kernel with loops that a GPU would do one after the other, by one block of threads
// or one thread, becomes kernels of one loop each.
//
//     scan i < N { ... put y[i] = %2 }           scan i < N { ... put y[i] = %2 }
//     fold j < N { ... } -> %3             =>
//     put z[0] = %3                              fold j < N { ... } -> %3   put z[0] = %3
//
// A fold whose terms a thread does not make at once (nest_fold_is_leaf) is two loops, for the terms
// are independent:
//
//     fold i < N { map j { ... }                 par i < N { map j { ... }  put term[i] = %1 }
//         yield reduce_sum %1 } -> %2      =>    fold i < N { %1 = load term[i]
//                                                    yield reduce_sum %1 } -> %2
//
// What accumulates over a fold is a fold for each of its elements (fission_accumulations.c).  A running fold whose terms
// hold loops is two loops as well.  The same is done in the body of a par of few points, which stands
// around each of the loops then, and where one fold has sums whose terms lie along its points beside sums whose terms
// lie along itself: no threads have both together.
// Parts are split as any other kernel is.
// Values that go from one kernel to the next, a number or one for each point, are memories; what is
// made of operands alone is made again, and a local that one loop puts and later ones read is memory.
#include "schedule/kernels/fission.h"

#include "schedule/kernels/attention.h"
#include "schedule/rewrites.h"

#include <string.h>

#define MOST_ROUNDS 4 // in which parts are split again

// A kernel that another one becomes, and which of the buffers it has, in order.
struct part {
    struct nest *nest;
    uint32_t n_buffers;
    nest_id *buffers;
};

// The parts of a kernel, or none.
struct kernel_parts {
    const struct nest *old;
    struct part *parts;
    uint32_t n, first;           // the others are nests from `first` on
    struct nest_buffer *buffers; // all that they have
};

typedef VEC(struct nest_step) step_list;

// Drops what is put in locals that nobody reads.
static void drop_dead_puts(struct fission *f)
{
    struct fission_uses u = fission_no_uses(f);
    fission_use_block(f, 0, &u);
    for (uint32_t i = 0; i < f->n->blocks.count; i++) {
        struct nest_block *b = &f->n->blocks.at[i];
        uint32_t n = 0;
        for (uint32_t k = 0; k < b->statements.count; k++) {
            const struct nest_statement *s = fission_statement(f, b->statements.at[k]);
            bool is_dead = s->kind == NEST_PUT && !u.loads[s->buffer] &&
                           f->n->buffers.at[s->buffer].role == NEST_LOCAL;
            if (!is_dead)
                b->statements.at[n++] = b->statements.at[k];
        }
        b->statements.count = n;
    }
}

// ---- Parts

static void merge(struct fission *f, uint32_t first, uint32_t last)
{
    const struct nest_block *b = &f->n->blocks.at[f->block];
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (f->part[i] != NO_PART && f->part[i] > first)
            f->part[i] = f->part[i] <= last ? first : f->part[i] - (last - first);
    f->n_parts -= last - first;
}

// Loops that have to stay in one kernel over this buffer: the first and the last of them.  A local that
// is not of one of them may be memory where one loop puts it and later ones read it.
static bool find_together(struct fission *f, nest_id buffer, bool is_inner, uint32_t *first,
                          uint32_t *last)
{
    const struct nest_block *b = &f->n->blocks.at[f->block];
    uint32_t puts = 0, put = NO_PART, low = NO_PART, high = 0;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        struct fission_uses u = fission_no_uses(f);
        uint32_t part = f->part[i];
        fission_use(f, b->statements.at[i], &u);
        if (part == NO_PART || !(u.loads[buffer] || u.puts[buffer]))
            continue;
        low = part < low ? part : low;
        high = part > high ? part : high;
        puts += u.puts[buffer] && put != part;
        put = u.puts[buffer] ? part : put;
    }
    *first = low;
    *last = high;
    return low != NO_PART && low < high && (is_inner || puts > 1 || (puts == 1 && low < put));
}

// Makes memory of a local: for each point of the par its own, side by side where that is how other memory is read.
static void give_memory(struct fission *f, nest_id buffer)
{
    struct nest_buffer *b = &f->n->buffers.at[buffer];
    int64_t size = b->count, points, step = 1;
    struct nest_index point = fission_index_in(f, f->par, 0, NULL, &points);
    if (f->par != NEST_NONE) {
        struct nest_lines lines = nest_lines_in(f->n, fission_statement(f, f->par));
        step = nest_lies_along(lines) ? points : 1;
    }
    b->role = NEST_OUT;
    b->count = size * points;
    for (uint32_t i = 0; i < f->n->statements.count; i++) {
        struct nest_statement *s = &f->n->statements.at[i];
        if (s->buffer != buffer)
            continue;
        uint32_t n = s->index.count + point.count;
        struct nest_term *terms = arena_array(f->arena, struct nest_term, n + 1);
        for (uint32_t k = 0; k < n; k++) {
            bool is_point = k < point.count;
            terms[k] = is_point ? point.terms[k] : s->index.terms[k - point.count];
            terms[k].factor *= is_point ? (step == 1 ? size : 1) : step;
        }
        s->index = nest_index_make(f->arena, s->index.constant * step, (int)n, terms);
    }
}

static void find_parts(struct fission *f)
{
    const struct nest_block *b = &f->n->blocks.at[f->block];
    nest_id *scopes = arena_array(f->arena, nest_id, f->n->buffers.count + 1);
    uint32_t first, last;
    nest_local_scopes(f->n, scopes);
    f->part = arena_array(f->arena, uint32_t, b->statements.count + 1);
    f->n_parts = 0;
    // A map of a point is a loop over all points' elements where nothing of a point stands behind it (join_map).
    bool is_behind_map = false, is_behind_put = false; // of a point: in front of all loops
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = fission_statement(f, b->statements.at[i]);
        bool has_part = fission_is_loop(s) || fission_is_anchored(f, s);
        // What is dear is not made again for each element of a map.
        has_part |= f->n_parts && f->par != NEST_NONE && s->kind == NEST_OP &&
                    cost_is_expensive((enum ir_op)s->op, s->dtype);
        f->n_parts += fission_is_loop(s) || (has_part && is_behind_map);
        f->n_parts += s->kind == NEST_MAP && f->n_parts == 1 && is_behind_put;
        is_behind_put |= !f->n_parts && f->par != NEST_NONE && s->kind == NEST_PUT;
        if (has_part)
            is_behind_map = f->par != NEST_NONE && s->kind == NEST_MAP;
        f->part[i] = has_part ? f->n_parts - (f->n_parts > 0) : NO_PART;
    }
    for (nest_id i = 0; i < f->n->buffers.count; i++) {
        bool is_local = f->n->buffers.at[i].role == NEST_LOCAL;
        if (find_together(f, i, is_local && scopes[i] != f->par, &first, &last))
            merge(f, first, last);
    }
    for (nest_id i = 0; i < f->n->buffers.count; i++)
        if (f->n->buffers.at[i].role == NEST_LOCAL &&
            !find_together(f, i, false, &first, &last) && first != NO_PART && first < last)
            give_memory(f, i);
}

static void put_loop_last(struct fission *f, uint32_t block)
{
    struct nest_block *b = &f->n->blocks.at[block];
    uint32_t n = 0;
    nest_id loop = NEST_NONE;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        if (fission_is_loop(fission_statement(f, id)))
            loop = id;
        else
            b->statements.at[n++] = id;
    }
    b->statements.at[n] = loop;
}

// Whether the part opens an axis of the statement's loops again; `of`: by axis, the last part that does.
static bool opens_again(const struct fission *f, nest_id id, uint32_t part, uint32_t *of)
{
    const struct nest_statement *s = fission_statement(f, id);
    bool is = false;
    for (uint32_t k = 0; k < s->n_axes; k++) {
        is |= of[s->axes[k]] == part;
        of[s->axes[k]] = part;
    }
    nest_for_each (t, f->n, s->body)
        is |= opens_again(f, nest_id_of(f->n, t), part, of);
    nest_for_each (t, f->n, s->other)
        is |= opens_again(f, nest_id_of(f->n, t), part, of);
    return is;
}

// Whether loops that were one, and have one another's axes and statements, are in one kernel.
static bool are_mixed(const struct fission *f)
{
    const struct nest_block *b = &f->n->blocks.at[f->block];
    uint32_t *of = nest_no_numbers(f->arena, f->n->axes.count);
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (f->part[i] != NO_PART && opens_again(f, b->statements.at[i], f->part[i], of))
            return true;
    return false;
}

// Which statements a part has, and which values it has from others.
static void find_statements(const struct fission *f, uint32_t part, bool *has, bool *wants)
{
    const struct nest_block *b = &f->n->blocks.at[f->block];
    struct fission_uses u = fission_no_uses(f);
    for (uint32_t i = b->statements.count; i-- > 0;) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = fission_statement(f, id);
        bool is_used = false;
        for (uint32_t k = 0; s->result != NEST_NONE && k < s->n_results; k++)
            is_used |= u.values[s->result + k];
        has[i] = f->part[i] == part || (f->part[i] == NO_PART && is_used);
        if (has[i])
            fission_use(f, id, &u);
        for (uint32_t k = 0; !has[i] && is_used && k < s->n_results; k++)
            wants[s->result + k] |= u.values[s->result + k];
    }
}

static void find_crossing(struct fission *f)
{
    const struct nest_block *b = &f->n->blocks.at[f->block];
    bool *has = arena_array(f->arena, bool, b->statements.count + 1);
    f->is_crossing = arena_array(f->arena, bool, f->n->values.count + 1);
    for (uint32_t part = 0; part < f->n_parts; part++)
        find_statements(f, part, has, f->is_crossing);
    f->memory_of = arena_array(f->arena, nest_id, f->n->values.count + 1);
    int64_t count;
    fission_index_in(f, f->par, 0, NULL, &count);
    for (nest_id v = 0; v < f->n->values.count; v++)
        if (f->is_crossing[v])
            f->memory_of[v] = fission_add_buffer(f, f->n->values.at[v].dtype, count);
}

// The body of a part.
static uint32_t write_body(struct fission *f, uint32_t part)
{
    const struct nest_block old = f->n->blocks.at[f->block];
    bool *has = arena_array(f->arena, bool, old.statements.count + 1);
    bool *wants = arena_array(f->arena, bool, f->n->values.count + 1);
    uint32_t body = fission_new_block(f);
    int64_t count;
    struct nest_index at = fission_index_in(f, f->par, 0, NULL, &count);
    find_statements(f, part, has, wants);
    for (nest_id v = 0; v < f->n->values.count; v++)
        if (wants[v])
            fission_append_load_of(f, body, f->memory_of[v], at, v);
    for (uint32_t i = 0; i < old.statements.count; i++)
        if (has[i])
            fission_append(f, body, old.statements.at[i]);
    for (uint32_t i = 0; i < old.statements.count; i++) {
        const struct nest_statement *s = fission_statement(f, old.statements.at[i]);
        for (uint32_t k = 0; f->part[i] == part && k < s->n_results; k++) {
            nest_id v = s->result + k;
            if (f->is_crossing[v])
                fission_append_put(f, body, f->memory_of[v], at, v);
            s = fission_statement(f, old.statements.at[i]);
        }
    }
    if (fission_wants_loop_last(f, body))
        put_loop_last(f, body);
    return body;
}

// The axes of both loops, the inner's last.
static struct nest_statement joined(struct fission *f, const struct nest_statement *outer,
                                    const struct nest_statement *inner)
{
    struct nest_statement both = *outer;
    nest_id *axes = arena_array(f->arena, nest_id, outer->n_axes + inner->n_axes);
    memcpy(axes, outer->axes, outer->n_axes * sizeof *axes);
    memcpy(axes + outer->n_axes, inner->axes, inner->n_axes * sizeof *axes);
    both.axes = axes;
    both.n_axes += inner->n_axes;
    return both;
}

// A par of a map alone is one loop of the axes of both.
static void join_map(struct fission *f, nest_id par)
{
    struct nest_statement *s = &f->n->statements.at[par];
    const struct nest_block *b = &f->n->blocks.at[s->body];
    const struct nest_statement *map = fission_statement(f, vec_last(&b->statements));
    if (!fission_is_map_alone(f, s->body))
        return;
    // The axis that memory goes along comes last.
    struct nest_statement by_map = joined(f, s, map), by_point = joined(f, map, s);
    struct nest_lines all = {0};
    nest_for_each (t, f->n, map->body) {
        if (t->kind != NEST_LOAD && t->kind != NEST_PUT)
            continue;
        struct nest_lines one = nest_lines_of(f->n, &by_point, &by_map, t);
        all.of_points += one.of_points;
        all.of_inner += one.of_inner;
    }
    const struct nest_statement *both = all.of_points < all.of_inner ? &by_point : &by_map;
    uint32_t body = fission_new_block(f), count = b->statements.count;
    for (uint32_t i = 0; i + 1 < count; i++)
        fission_append(f, body, f->n->blocks.at[s->body].statements.at[i]);
    for (uint32_t i = 0; i < f->n->blocks.at[map->body].statements.count; i++)
        fission_append(f, body, f->n->blocks.at[map->body].statements.at[i]);
    s->axes = both->axes;
    s->n_axes = both->n_axes;
    s->body = body;
}

// The loop around the part, with what it needs of the statements before it.
static uint32_t write_outer(struct fission *f, uint32_t body)
{
    const struct nest_block old = f->n->blocks.at[0];
    struct nest_statement par = *fission_statement(f, f->par);
    par.body = body;
    nest_id id = fission_add_statement(f, par);
    join_map(f, id);
    uint32_t outer = fission_new_block(f), n = old.statements.count;
    bool *has = arena_array(f->arena, bool, n + 1);
    struct fission_uses u = fission_no_uses(f);
    for (uint32_t i = n; i-- > 0;) {
        const struct nest_statement *s = fission_statement(f, old.statements.at[i]);
        bool is_par = old.statements.at[i] == f->par;
        for (uint32_t k = 0; k < s->n_results; k++)
            has[i] |= u.values[s->result + k];
        has[i] |= is_par;
        if (has[i])
            fission_use(f, is_par ? id : old.statements.at[i], &u);
    }
    for (uint32_t i = 0; i < n; i++)
        if (has[i])
            fission_append(f, outer,
                           old.statements.at[i] == f->par ? id : old.statements.at[i]);
    return outer;
}

// A map that is the only loop of a kernel, and its last statement, is what threads share.
static void share_map(struct nest *n)
{
    uint32_t loops = 0;
    nest_id map = NEST_NONE;
    nest_for_each (s, n, 0) {
        loops += fission_is_loop(s);
        map = s->kind == NEST_MAP ? nest_id_of(n, s) : NEST_NONE;
    }
    if (loops == 1 && map != NEST_NONE)
        n->statements.at[map].kind = NEST_PAR;
}

// The kernel with block `body` alone, and in *out the numbers of its buffers that are no locals.
// What is not reached from it goes with the text.
static struct nest *write_kernel(struct fission *f, uint32_t body, uint32_t number,
                                 struct part *out)
{
    struct nest copy = *f->n;
    struct fission_uses u = fission_no_uses(f);
    nest_id *to = arena_array(f->arena, nest_id, copy.buffers.count + 1), count = 0;
    fission_use_block(f, body, &u);
    copy.buffers.at = arena_array(f->arena, struct nest_buffer, copy.buffers.count + 1);
    out->buffers = arena_array(f->arena, nest_id, copy.buffers.count + 1);
    for (nest_id i = 0; i < copy.buffers.count; i++) {
        struct nest_buffer buffer = f->n->buffers.at[i];
        if (!u.loads[i] && !u.puts[i])
            continue;
        if (buffer.role != NEST_LOCAL) {
            buffer.role = u.puts[i] ? buffer.role : NEST_IN;
            out->buffers[out->n_buffers++] = i;
        }
        copy.buffers.at[count] = buffer;
        to[i] = count++;
    }
    copy.buffers.count = count;
    copy.statements.at = arena_copy(f->arena, copy.statements.at,
                                    copy.statements.count * sizeof *copy.statements.at);
    for (uint32_t i = 0; i < copy.statements.count; i++) {
        struct nest_statement *s = &copy.statements.at[i];
        if (s->buffer != NEST_NONE)
            s->buffer = to[s->buffer];
        for (uint32_t k = 0; s->kind == NEST_CONTRACT && k < 2; k++)
            s->source[k] = to[s->source[k]];
    }
    copy.blocks.at =
        arena_copy(f->arena, copy.blocks.at, copy.blocks.count * sizeof *copy.blocks.at);
    copy.blocks.at[0] = copy.blocks.at[body];
    struct strbuf name = strbuf_make(f->arena), text = strbuf_make(f->arena);
    const char *rest = strchr(copy.name, '_');
    strbuf_printf(&name, "k%u%s", number, rest ? rest : "");
    copy.name = name.text;
    nest_print(&text, &copy);
    int parsed;
    struct nest **all;
    if (nest_parse(f->arena, text.text, &parsed, &all) != JOT_OK)
        return NULL;
    share_map(all[0]);
    nest_collapse(all[0]);
    all[0]->place = f->n->place;
    return all[0];
}

// ---- Programs

#define COPY(arena, v)                                                                         \
    ((v).at = arena_copy(arena, (v).at, (v).count * sizeof *(v).at), (v).capacity = (v).count)

// What is one kernel for threads that divide its products by themselves (map/gpu_attention.c).
static bool is_attention(const struct nest *n)
{
    struct attention a;
    struct attention_gradient g;
    return attention_find(n, &a) || attention_find_gradient(n, &g);
}

// Nanoseconds of a kernel whose loops may be the worse for being one kernel, 0: nobody says, or nothing is lost.
static int64_t price_together(const struct fission *f, const struct schedule_options *options)
{
    uint32_t parts = 0;
    nest_for_each (s, f->n, f->block)
        parts += fission_is_loop(s) || s->kind == NEST_PUT;
    int64_t price = options->gpu_price && parts > 1 ? options->gpu_price(f->n) : 0;
    return price >= COST_SPLIT_NS ? price : 0;
}

static bool are_better(const struct kernel_parts *made, int64_t together,
                       const struct schedule_options *options)
{
    double apart = 0;
    for (uint32_t i = 0; i < made->n; i++)
        apart += (double)options->gpu_price(made->parts[i].nest) + 1000 * COST_TOGETHER_US;
    return (double)together > COST_SPLIT_BETTER * apart;
}

// The parts of the kernel, none when it stays as it is.
static struct kernel_parts split_kernel(struct nest_program *p,
                                        const struct kernel_steps *steps, uint32_t nest,
                                        const struct schedule_options *options)
{
    struct kernel_parts made = {.old = p->nests.at[nest], .first = p->nests.count};
    struct nest n = *made.old;
    struct fission f = {.program = p,
                        .arena = p->arena,
                        .always = options->large,
                        .n = &n,
                        .steps = steps,
                        .first_step = steps->first[nest]};
    fission_find_written(&f);
    fission_find_block(&f);
    if (!fission_is_plain(&f) || (!options->large && is_attention(&n)))
        return made;
    bool is_wanted = fission_is_wanted(&f);
    int64_t together = is_wanted ? 0 : price_together(&f, options);
    if (!is_wanted && !together)
        return made;
    COPY(p->arena, n.buffers);
    COPY(p->arena, n.axes);
    COPY(p->arena, n.statements);
    COPY(p->arena, n.values);
    COPY(p->arena, n.blocks);
    for (uint32_t i = 0; i < n.blocks.count; i++)
        COPY(p->arena, n.blocks.at[i].statements);
    drop_dead_puts(&f);
    bool turns = fission_wants_loop_last(&f, 0);
    if (turns)
        put_loop_last(&f, 0);
    fission_split_folds(&f);
    find_parts(&f);
    if ((f.n_parts < 2 && !fission_is_one_map(&f) && !turns) || are_mixed(&f))
        return made;
    find_crossing(&f);
    made.parts = arena_array(p->arena, struct part, f.n_parts);
    for (uint32_t i = 0; i < f.n_parts; i++) {
        struct part *part = &made.parts[i];
        uint32_t body = write_body(&f, i), number = i ? p->nests.count + i - 1 : nest;
        body = f.par == NEST_NONE ? body : write_outer(&f, body);
        part->nest = write_kernel(&f, body, number, part);
        if (!part->nest)
            return made;
    }
    made.buffers = n.buffers.at;
    made.n = f.n_parts;
    if (!is_wanted && !are_better(&made, together, options))
        made.n = 0;
    return made;
}

// The steps of the parts in place of the one of the kernel.
static void add_steps(struct nest_program *p, struct nest_step t,
                      const struct kernel_parts *made, step_list *out)
{
    const struct part *parts = made->parts;
    const struct nest *old = made->old;
    uint32_t *memories = NULL, count = 0;
    for (uint32_t i = 0; i < made->n; i++)
        for (uint32_t k = 0; k < parts[i].n_buffers; k++)
            count = parts[i].buffers[k] >= count ? parts[i].buffers[k] + 1 : count;
    memories = arena_array(p->arena, uint32_t, count + old->buffers.count + 1);
    uint32_t operand = 0;
    for (nest_id i = 0; i < count || i < old->buffers.count; i++) {
        bool is_old = i < old->buffers.count && old->buffers.at[i].role != NEST_LOCAL;
        if (is_old) {
            memories[i] = t.memories[operand++];
            continue;
        }
        struct strbuf name = strbuf_make(p->arena);
        strbuf_printf(&name, "p%u", p->memories.count);
        vec_push(p->arena, &p->memories,
                 (struct nest_memory){.kind = NEST_TEMPORARY,
                                      .dtype = made->buffers[i].dtype,
                                      .count = made->buffers[i].count,
                                      .name = name.text});
        memories[i] = p->memories.count - 1;
    }
    for (uint32_t i = 0; i < made->n; i++) {
        uint32_t *of = arena_array(p->arena, uint32_t, parts[i].n_buffers + 1);
        for (uint32_t k = 0; k < parts[i].n_buffers; k++)
            of[k] = memories[parts[i].buffers[k]];
        if (i)
            t.nest = made->first + i - 1;
        t.n_memories = parts[i].n_buffers;
        t.memories = of;
        vec_push(p->arena, out, t);
    }
}

static struct kernel_steps steps_of_kernels(const struct nest_program *p)
{
    struct kernel_steps all = {arena_array(p->arena, uint32_t, p->nests.count + 1),
                               arena_array(p->arena, uint32_t, p->steps.count + 1)};
    for (uint32_t i = 0; i < p->nests.count; i++)
        all.first[i] = NEST_NONE;
    for (uint32_t i = p->steps.count; i-- > 0;) {
        const struct nest_step *t = &p->steps.at[i];
        if (t->kind == NEST_STEP_KERNEL) {
            all.next[i] = all.first[t->nest];
            all.first[t->nest] = i;
        }
    }
    return all;
}

// Splits the kernels that `is_new` says, and says of the parts that they are; whether there are any.
static bool split_kernels(struct nest_program *p, const struct schedule_options *options,
                          bool **is_new)
{
    uint32_t count = p->nests.count;
    struct kernel_steps steps = steps_of_kernels(p);
    struct kernel_parts *made = arena_array(p->arena, struct kernel_parts, count + 1);
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        if (!(*is_new)[i])
            continue;
        share_map(p->nests.at[i]);
        made[i] = split_kernel(p, &steps, i, options);
        any = any || made[i].n;
        for (uint32_t k = 0; k < made[i].n; k++) {
            if (k)
                vec_push(p->arena, &p->nests, made[i].parts[k].nest);
            else
                p->nests.at[i] = made[i].parts[k].nest;
        }
    }
    *is_new = arena_array(p->arena, bool, p->nests.count + 1);
    for (uint32_t i = 0; i < p->nests.count; i++)
        (*is_new)[i] = i >= count || made[i].n;
    step_list all = {0};
    for (uint32_t k = 0; any && k < p->steps.count; k++) {
        struct nest_step t = p->steps.at[k];
        if (t.kind == NEST_STEP_KERNEL && t.nest < count && made[t.nest].n)
            add_steps(p, t, &made[t.nest], &all);
        else
            vec_push(p->arena, &all, t);
    }
    if (any)
        p->steps.count = p->steps.capacity = 0;
    for (uint32_t k = 0; k < all.count; k++)
        vec_push(p->arena, &p->steps, all.at[k]);
    return any;
}

void schedule_fission(struct nest_program *p, const struct schedule_options *options)
{
    bool *is_new = arena_array(p->arena, bool, p->nests.count + 1);
    memset(is_new, true, p->nests.count);
    for (int i = 0; i < MOST_ROUNDS && split_kernels(p, options, &is_new); i++)
        ;
}
