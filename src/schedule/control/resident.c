// SPDX-License-Identifier: Apache-2.0
// Whether a loop or branch is one kernel, whose points are its lanes: what a lane takes, and what cannot be done.
#include "schedule/write/write.h"

#include "base/count.h"
#include "ir/control.h"
#include "schedule/control/control.h"

// A sum, and the node that adds most to it.
struct sum {
    int64_t all, most;
    const struct ir_node *by;
};

// What there is of values of a graph.
struct facts {
    uint8_t *uses;   // as operands and results, at most 2
    bool *read;      // as operands
    bool *kept;      // elements are those of a carry that is kept
    bool *waits;     // an update that is done where a carry is, after all else
    const bool *own; // parameters whose locals updates may take
};

// How much a lane takes.
struct survey {
    struct lanes *l;
    const struct ir_graph *g;      // that is looked at
    const struct ir_graph *joined; // the function of several loops, or NULL
    struct facts of;               // its values
    int64_t ops;                   // when elements are written out
    int64_t code;                  // when they are not
    int64_t held;                  // elements of carries and of results of loops
    int depth;                     // of the kernel's blocks here
    bool has_steps;                // a loop in which a lane goes through ops again
    bool mixes;                    // an element is computed of several
    struct sum bytes;              // of locals when they are looped over
    struct sum kept_bytes;         // of those whose elements are moved and set only
    struct sum tape; // bytes of the rows that a loop leaves for what comes after it
    const struct ir_node *looped; // a while whose lanes cannot be looped over
    const struct ir_node *by;     // what cannot be done, and why
    const char *why;
};

static void refuse(struct survey *u, const struct ir_node *n, const char *why)
{
    if (!u->why) {
        u->by = n;
        u->why = why;
    }
}

static void add(int64_t *sum, int64_t x) { *sum = count_plus(*sum, x); }

static void add_bytes(struct sum *s, const struct ir_node *n, int64_t x)
{
    add(&s->all, x);
    if (x > s->most) {
        s->most = x;
        s->by = n;
    }
}

static int64_t inner_of(const struct survey *u, const struct lane_graph *f, ir_id v)
{
    return lanes_inner_count(u->l, f->view[v]);
}

// Elements that one element of the folding node is made of.
static int64_t folded_of(const struct survey *u, const struct lane_graph *f,
                         const struct ir_node *n)
{
    ir_id x = ir_operand(u->g, n, 0);
    int count;
    const int64_t *axes = node_folded_axes(n, 0, &count);
    int64_t product = 1;
    (void)f;
    for (int i = 0; i < count; i++)
        product = count_times(product, ir_dims_of(u->g, x)[axes[i]]);
    return u->g == u->joined && product > COST_EXPANDED_STATE ? 1 : product;
}

// The operand that its first carry is of, or the number of its operands.
static uint32_t first_carry(const struct ir_node *n)
{
    return n->op == IR_while  ? (uint32_t)ir_while_of(n).n_consts
           : n->op == IR_scan ? (uint32_t)ir_scan_of(n).n_consts
                              : n->n_in;
}

static uint32_t n_carries(const struct ir_node *n)
{
    return n->op == IR_while  ? n->n_out
           : n->op == IR_scan ? (uint32_t)ir_scan_of(n).n_carry
                              : 0;
}

static const struct ir_graph *step_of(const struct ir_graph *g, const struct ir_node *n)
{
    return ir_body(g, n, n->op == IR_while);
}

// Whether elements of the result are those of the first operand, but for some that are set.
static bool moves_elements(const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    return n->n_in && (c == IR_CLASS_UPDATE || c == IR_CLASS_LAYOUT || c == IR_CLASS_INDEX);
}

// Whether a trip makes carry k of itself by updates, and by loops of which this is true as well,
// before which all may be moved: the slots of a while (unzip_online.c), stacks, tables.  It is so
// many loops deep.
static bool is_kept_at(const struct ir_graph *g, const struct ir_node *n, uint32_t k, int depth)
{
    if (depth > COST_STEP_DEPTH || k >= n_carries(n))
        return false;
    const struct ir_graph *step = step_of(g, n);
    ir_id v = step->outputs.at[k];
    for (bool is_in_loop = false;;) {
        const struct ir_node *m = ir_node_of(step, v);
        if (m->op == IR_param)
            return v == first_carry(n) + k;
        if (is_kept_at(step, m, v - m->out, depth + 1)) {
            v = ir_operand(step, m, first_carry(m) + (v - m->out));
            is_in_loop = true;
        } else if (ir_op_class((enum ir_op)m->op) == IR_CLASS_UPDATE ||
                   (is_in_loop && moves_elements(m))) {
            v = ir_operand(step, m, 0);
        } else {
            return false;
        }
    }
}

static bool is_kept(const struct ir_graph *g, const struct ir_node *n, uint32_t k)
{
    return is_kept_at(g, n, k, 0);
}

// What there is of the parameters of a body: as in struct facts.
struct parameters {
    bool *kept, *own;
};

static void survey_graph(struct survey *u, const struct lane_graph *f,
                         const struct parameters *p);

static const char too_deep[] = "loops and branches too deep in one another";

// Blocks that a loop or branch is deep: branches are chosen by halves.
static int blocks_of(const struct ir_node *n, struct lane_graph **bodies)
{
    int count = 0, blocks = 1;
    while (n->op == IR_cond && bodies[count])
        count++;
    for (; count > 2; count = (count + 1) / 2)
        blocks++;
    return blocks;
}

// Whether the result of an update or loop has the local of operand i (write/in_place.c).
static bool takes_local(const struct survey *u, const struct lane_graph *f,
                        const struct ir_node *n, uint32_t i)
{
    ir_id x = ir_operand(u->g, n, i);
    while (u->of.uses[x] == 1 && lanes_only_move(u->l, f, x))
        x = ir_operand(u->g, ir_node_of(u->g, x), 0);
    const struct ir_node *m = ir_node_of(u->g, x);
    if (u->of.uses[x] != 1 || u->of.waits[n->out])
        return u->of.waits[n->out];
    return m->op == IR_param ? u->of.own[x] : !node_is_index(m) || node_is_update(m);
}

// By operand, the index not counted: whether all branches make one result of it, by updates or not at all.
static bool *updated_of(struct arena *a, const struct ir_node *n, struct lane_graph **branches)
{
    bool *is_updated = arena_array(a, bool, n->n_in + 1);
    for (uint32_t k = 0; k < n->n_out; k++) {
        const struct ir_graph *g = branches[0]->g;
        ir_id x = write_updated_value(g, g->outputs.at[k]);
        bool is_one = x < g->n_params;
        for (int b = 1; is_one && branches[b]; b++) {
            g = branches[b]->g;
            is_one = write_updated_value(g, g->outputs.at[k]) == x;
        }
        if (is_one)
            is_updated[x] = true;
    }
    return is_updated;
}

static struct parameters parameters_of(const struct survey *u, const struct lane_graph *f,
                                       const struct ir_node *n, struct lane_graph **bodies)
{
    struct arena *a = u->l->space.scratch;
    uint32_t first = n->op == IR_cond, carry = first_carry(n), rows = carry + n_carries(n);
    struct parameters p = {arena_array(a, bool, n->n_in + 1),
                           arena_array(a, bool, n->n_in + 1)};
    bool is_inside = u->of.kept;
    const bool *is_updated = n->op == IR_cond ? updated_of(a, n, bodies) : NULL;
    for (uint32_t i = first; i < n->n_in; i++) {
        bool is_carry = i >= carry && i < rows;
        bool is_once = is_updated ? is_updated[i - 1] : n->op == IR_scan && carry == rows;
        p.kept[i - first] = is_carry
                                ? is_kept(u->g, n, i - carry)
                                : is_inside && i < carry && u->of.kept[ir_operand(u->g, n, i)];
        p.own[i - first] = is_carry || (is_inside && is_once && takes_local(u, f, n, i));
    }
    return p;
}

static void survey_bodies(struct survey *u, const struct lane_graph *f, const struct ir_node *n)
{
    const struct ir_graph *g = u->g;
    struct lane_graph **bodies = f->bodies[n - g->nodes.at];
    struct parameters p = parameters_of(u, f, n, bodies);
    u->depth += blocks_of(n, bodies);
    if (ir_op_class((enum ir_op)n->op) ==
        IR_CLASS_CONTROL) // rows out are put where they are made
        add(&u->code, (int64_t)COST_CODE_RESULT *
                          (n->op == IR_scan ? (uint32_t)ir_scan_of(n).n_carry : n->n_out));
    if (n->op == IR_while || n->op == IR_scan)
        add(&u->code, COST_CODE_LOOP);
    if (u->depth > COST_STEP_DEPTH)
        refuse(u, n, too_deep);
    struct parameters of_test = {p.kept, arena_array(u->l->space.scratch, bool, n->n_in + 1)};
    for (int i = 0; bodies[i] && !u->why; i++)
        survey_graph(u, bodies[i], n->op == IR_while && i == 0 ? &of_test : &p);
    u->depth -= blocks_of(n, bodies);
    u->g = g;
    u->has_steps |= n->op == IR_while || (n->op == IR_scan && ir_scan_of(n).n_carry);
    if (n->op == IR_scan && n->n_out && !ir_scan_of(n).n_carry) {
        struct atoms trips = axes_leaves(&u->l->space, f->view[n->out].dims[0]);
        uint32_t inner = lanes_inner(u->l, trips).count;
        if (inner && inner < trips.count)
            refuse(u, n, "it runs lane by lane");
    }
    if (n->op == IR_while && ir_while_of(n).max_trips != IR_NO_BOUND)
        refuse(u, n, "the loop has a bound");
    if (n->op == IR_while && inner_of(u, bodies[0], bodies[0]->g->outputs.at[0]) > 1)
        u->looped = n;
}

// Updates of a lane are written out, each for every element that it may meet.
static void survey_scatter(struct survey *u, const struct lane_graph *f,
                           const struct ir_node *n)
{
    const struct ir_graph *g = u->g;
    int64_t updates = inner_of(u, f, ir_operand(g, n, 2));
    add(&u->ops, count_times(4 * updates, inner_of(u, f, n->out)));
    if (updates > COST_EXPANDED_STATE)
        refuse(u, n, "too many updates in a lane");
    if (ir_scatter_parts(g->module, (enum ir_op)n->op, n->attrs,
                         ir_type_of(g, ir_operand(g, n, 0)), ir_type_of(g, ir_operand(g, n, 1)),
                         ir_type_of(g, ir_operand(g, n, 2))) > 1)
        refuse(u, n, "a sum so long that it is made in parts");
}

// Whether elements are computed of several that are computed: what is done with each, and parts of what
// there is in memory, are none.
static bool mixes_elements(const struct ir_graph *g, const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    if (c == IR_CLASS_MAP || !n->n_in)
        return false;
    if (c != IR_CLASS_LAYOUT && c != IR_CLASS_INDEX)
        return true;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (ir_node_of(g, ir_operand(g, n, i))->op != IR_param)
            return true;
    return false;
}

// Whether a trip gives carry k what has no local, or that of another carry: a copy of it is made.
static bool is_moved(const struct ir_graph *g, const struct ir_node *n, uint32_t k)
{
    if (k >= n_carries(n))
        return false;
    const struct ir_graph *step = step_of(g, n);
    ir_id v = step->outputs.at[k], x = write_updated_value(step, v);
    const struct ir_node *m = ir_node_of(step, x);
    return m->op == IR_param ? x != first_carry(n) + k : x == v && node_is_index(m);
}

static void survey_node(struct survey *u, const struct lane_graph *f, const struct ir_node *n)
{
    enum ir_op op = (enum ir_op)n->op;
    enum ir_class op_class = ir_op_class(op);
    bool is_held = op_class == IR_CLASS_CONTROL;
    u->mixes |= mixes_elements(u->g, n);
    if (op_class == IR_CLASS_EFFECT)
        refuse(u, n, "an effect");
    if (op_class == IR_CLASS_COLLECTIVE)
        refuse(u, n, "devices exchange something");
    if (op_class == IR_CLASS_LIBRARY)
        refuse(u, n, "a routine computes it");
    if (op_class == IR_CLASS_CONTROL || op_class == IR_CLASS_CALL)
        survey_bodies(u, f, n);
    for (ir_id v = n->out; v < n->out + n->n_out; v++) {
        int64_t count = inner_of(u, f, v), written = count, ops;
        jot_dtype d = ir_dtype_of(u->g, v);
        // What is done with rows between loops is done in loops.
        if (u->g == u->joined && count > COST_EXPANDED_STATE)
            written = 1;
        ops = written;
        if (op_class == IR_CLASS_MAP && n->n_in)
            add(&u->code, cost_code_of_op(op, d));
        if (op_class == IR_CLASS_MAP && n->n_in)
            ops = count_times(written, cost_size_of_op(op, d));
        else if (node_is_folding(n))
            ops = count_times(written, count_times(2, folded_of(u, f, n)));
        else if (op_class == IR_CLASS_INDEX || op_class == IR_CLASS_UPDATE)
            ops = count_times(written, 4);
        else if (op_class != IR_CLASS_CUMULATIVE)
            ops = 0;
        add(&u->ops, count_times(ops, dtype_is_complex(d) ? 4 : 1));
        if (ir_is_row(n, v)) {
            if (u->g != u->joined || u->of.read[v])
                add_bytes(&u->tape, n, count_times(count, dtype_get(d)->bytes));
            continue;
        }
        if (is_held)
            add(&u->held, count);
        bool stays = is_held && is_kept(u->g, n, v - n->out);
        int made = op_class == IR_CLASS_UPDATE ? !takes_local(u, f, n, 0)
                   : stays ? !takes_local(u, f, n, first_carry(n) + (v - n->out))
                           : !node_is_index(n);
        made += is_moved(u->g, n, v - n->out);
        if (op == IR_param)
            continue;
        u->of.kept[v] = stays || (moves_elements(n) && u->of.kept[ir_operand(u->g, n, 0)]);
        if (count > 1)
            add_bytes(u->of.kept[v] ? &u->kept_bytes : &u->bytes, n,
                      count_times(made * dtype_get(d)->bytes, count));
    }
    for (uint32_t i = 0; i < n->n_in && node_is_folding(n); i++) {
        ir_id x = ir_operand(u->g, n, i);
        int64_t count = inner_of(u, f, x);
        if (u->of.kept[x] && count > 1) // it is looped over all the same
            add_bytes(&u->bytes, n, count_times(count, dtype_get(ir_dtype_of(u->g, x))->bytes));
    }
    if (op_class == IR_CLASS_UPDATE && op != IR_dynamic_update_slice)
        survey_scatter(u, f, n);
}

// Finds the updates that wait (write_can_wait).
static void find_waiting(struct survey *u, const struct lane_graph *f)
{
    const struct ir_graph *g = f->g;
    for (uint32_t k = 0; k < g->outputs.count; k++) {
        ir_id v = g->outputs.at[k], end = write_updated_value(g, v);
        bool waits = end < g->n_params && u->of.own[end];
        for (; waits && v != end; v = ir_operand(g, ir_node_of(g, v), 0)) {
            ir_id updates = write_updates_of(g, ir_node_of(g, v));
            waits = u->of.waits[v] = u->of.uses[v] == 1 || inner_of(u, f, updates) == 1;
        }
    }
}

static void count_uses(struct survey *u, uint32_t n, const ir_id *v)
{
    for (uint32_t i = 0; i < n; i++)
        u->of.uses[v[i]] += u->of.uses[v[i]] < 2;
}

static void survey_graph(struct survey *u, const struct lane_graph *f,
                         const struct parameters *p)
{
    struct facts outer = u->of;
    struct arena *a = u->l->space.scratch;
    const struct ir_graph *g = f->g;
    u->g = g;
    u->of = (struct facts){arena_array(a, uint8_t, g->values.count + 1),
                           arena_array(a, bool, g->values.count + 1),
                           arena_array(a, bool, g->values.count + 1),
                           arena_array(a, bool, g->values.count + 1), p->own};
    memcpy(u->of.kept, p->kept, g->n_params * sizeof *p->kept);
    count_uses(u, g->operands.count, g->operands.at);
    count_uses(u, g->outputs.count, g->outputs.at);
    for (uint32_t i = 0; i < g->operands.count; i++)
        u->of.read[g->operands.at[i]] = true;
    find_waiting(u, f);
    ir_for_each_node (g, n)
        survey_node(u, f, n);
    u->of = outer;
}

// What a trip makes of a carry by updates takes its local; other things are made beside it.
static int locals_of_carry(const struct lanes *l, const struct ir_node *n, uint32_t k)
{
    if (n->op == IR_cond)
        return 2;
    const struct ir_graph *step = l->top->bodies[n - l->top->g->nodes.at][n->op == IR_while]->g;
    return write_updated_value(step, step->outputs.at[k]) == first_carry(n) + k ? 1 : 2;
}

static struct survey survey_of(const struct schedule *s, struct lanes *l,
                               const struct ir_node *n)
{
    struct survey u = {.l = l, .g = s->g};
    bool is_joined = ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL;
    if (is_joined)
        u.joined = ir_body(s->g, n, 0);
    survey_bodies(&u, l->top, n);
    for (ir_id v = n->out; !is_joined && v < n->out + n->n_out; v++) {
        int64_t count = ir_is_row(n, v) ? 0 : inner_of(&u, l->top, v);
        add(&u.held, count);
        if (ir_is_row(n, v) && !u.has_steps)
            add(&u.ops, inner_of(&u, l->top, v)); // each is put
        if (count > 1)
            add_bytes(is_kept(s->g, n, v - n->out) ? &u.kept_bytes : &u.bytes, n,
                      count_times(count, locals_of_carry(l, n, v - n->out) *
                                             dtype_get(ir_dtype_of(s->g, v))->bytes));
    }
    return u;
}

const char *schedule_reason(struct schedule *s, const char *what, const struct ir_node *n)
{
    struct strbuf b = strbuf_make(s->program->arena);
    const char *where = n ? ir_where_text(s->g->module, n->where) : NULL;
    strbuf_printf(&b, where ? "%s at %s" : "%s", what, where);
    if (n)
        strbuf_printf(&b, where ? ", %s" : ": %s", ir_op_get((enum ir_op)n->op)->name);
    return b.text;
}

// The parameter that v is made of by updates alone, or v.
static ir_id updated_value(const struct ir_graph *g, ir_id v)
{
    while (ir_op_class((enum ir_op)ir_node_of(g, v)->op) == IR_CLASS_UPDATE)
        v = ir_operand(g, ir_node_of(g, v), 0);
    return v;
}

static int64_t bytes_of(const struct ir_graph *g, ir_id v)
{
    return count_times(ir_count_of(g, v), dtype_get(ir_dtype_of(g, v))->bytes);
}

// In a trip of n, or of a loop in it: a choice between a carry and that with updates, of the most bytes.
static void find_choice(const struct ir_graph *g, const struct ir_node *n, int64_t *most,
                        const struct ir_node **out)
{
    if (n->op != IR_while && n->op != IR_scan)
        return;
    const struct ir_graph *step = ir_body(g, n, n->op == IR_while);
    uint32_t first = first_carry(n),
             n_carry = n->op == IR_while ? n->n_in - first : (uint32_t)ir_scan_of(n).n_carry;
    for (uint32_t k = 0; k < n_carry; k++) {
        const struct ir_node *m = ir_node_of(step, step->outputs.at[k]);
        if (m->op != IR_select || bytes_of(step, m->out) <= *most)
            continue;
        ir_id x = ir_operand(step, m, 1), y = ir_operand(step, m, 2), carry = first + k;
        if (x != y && updated_value(step, x) == carry && updated_value(step, y) == carry) {
            *most = bytes_of(step, m->out);
            *out = m;
        }
    }
    ir_for_each_node (step, inner)
        find_choice(step, inner, most, out);
}

// The choice between an array and its updates that makes two of it, if that is what too much
// state is of.
static const struct ir_node *choice_of_state(const struct schedule *s, const struct ir_node *n,
                                             const struct ir_node *by)
{
    const struct ir_node *choice = NULL;
    int64_t bytes = 0;
    enum ir_class c = ir_op_class((enum ir_op)by->op);
    if (c == IR_CLASS_CONTROL || c == IR_CLASS_UPDATE || by->op == IR_select)
        find_choice(s->g, n, &bytes, &choice);
    return choice;
}

static bool is_for_gpu(const struct schedule *s)
{
    return s->options && s->options->many_lanes;
}

// Bytes that a lane may keep, of which many lanes side by side stay in the second cache of a core.  What
// all lanes leave for a later loop, so many bytes each, goes through memory where that is a loop of its
// own: where no cache holds it, fewer lanes side by side take less time.
static int64_t most_kept(const struct schedule *s, const struct lanes *l, int64_t tape)
{
    int64_t all = count_times(tape, axes_product(&l->space, l->lanes));
    return is_for_gpu(s) || all <= COST_TAPE_OF_ALL ? COST_TAPE_OF_LANE : COST_TAPE_OF_FEW;
}

// Whether a branch has much work for lanes that leave most of the device idle: kernels of its steps have all of it.
static bool leaves_idle(const struct schedule *s, const struct ir_node *n,
                        const struct resident *r, int64_t ops)
{
    int64_t lanes = axes_product(&r->lanes->space, r->lanes->lanes);
    return n->op == IR_cond && !r->is_expanded && ops > COST_BRANCH_OPS &&
           lanes < (is_for_gpu(s) ? COST_MULTIPROCESSORS : COST_CORES);
}

static const char *refusal(struct schedule *s, const struct ir_node *n, struct resident *r)
{
    struct survey u = survey_of(s, r->lanes, n);
    int64_t most = most_kept(s, r->lanes, u.tape.all);
    bool fits =
        u.bytes.all <= COST_LANE_BYTES && count_plus(u.tape.all, u.kept_bytes.all) <= most;
    // Loops over rows compute no element twice where none are mixed.
    bool may_loop = u.has_steps || (!u.mixes && fits);
    bool is_short = may_loop ? u.ops <= COST_EXPANDED_OPS : !cost_is_too_much_code(u.ops);
    r->is_expanded = is_short && u.held <= COST_EXPANDED_STATE;
    r->code = u.code;
    if (leaves_idle(s, n, r, u.ops))
        refuse(&u, n, "too much work for so few lanes");
    if (!r->is_expanded && u.looped)
        refuse(&u, u.looped, "too much state for lanes that end by themselves");
    if (u.tape.all > most)
        refuse(&u, u.tape.by, "too many rows are kept for a lane");
    if (cost_is_too_much_code(u.code))
        refuse(&u, n, "more than one kernel's code");
    if (is_for_gpu(s) && n->n_in + n->n_out > COST_OPERANDS)
        refuse(&u, n, "more arrays than a kernel takes");
    if (u.why)
        return schedule_reason(s, u.why, u.by);
    if (r->is_expanded || fits)
        return NULL;
    bool is_kept_too_much = u.bytes.all <= COST_LANE_BYTES;
    const struct ir_node *by = is_kept_too_much ? u.kept_bytes.by : u.bytes.by;
    const struct ir_node *choice = choice_of_state(s, n, by);
    const struct ir_node *lost = is_kept_too_much ? NULL : lanes_lost_to(r->lanes);
    return choice
               ? schedule_reason(s, "an array that is updated or not is too much state", choice)
           : lost ? schedule_reason(s, "lanes are mixed", lost)
                  : schedule_reason(s, "too much state for a lane", by);
}

struct question {
    const struct ir_graph *g;
    const struct ir_node *n;
    bool is_resident;
};

static jot_status ask(struct arena *scratch, void *ctx)
{
    struct question *q = ctx;
    struct nest_program program = {.arena = scratch};
    struct schedule s = {.arena = scratch,
                         .scratch = scratch,
                         .g = q->g,
                         .axes = {.scratch = scratch, .g = q->g},
                         .program = &program};
    s.residents = arena_array(scratch, const struct resident *, q->g->nodes.count + 1);
    q->is_resident = !schedule_residence(&s, q->n)->reason;
    return JOT_OK;
}

bool schedule_is_resident(const struct ir_graph *g, const struct ir_node *n)
{
    struct question q = {g, n, false};
    return arena_lend(ask, &q) == JOT_OK && q.is_resident;
}

// Short rows of lanes that end together are written out: a vector then has as many lanes that end
// by themselves, and a lane that is left alone goes on once for its row.
static bool keep_tested(struct schedule *s, const struct ir_node *n, struct resident *r)
{
    if (n->op != IR_while || (s->options && s->options->many_lanes))
        return false;
    r->lanes = lanes_of(&s->axes, n);
    return lanes_keep_tested(r->lanes, n) && !refusal(s, n, r) && r->is_expanded;
}

const struct resident *schedule_residence(struct schedule *s, const struct ir_node *n)
{
    uint32_t number = (uint32_t)(n - s->g->nodes.at);
    if (!s->residents[number]) {
        struct resident *r = arena_new(s->scratch, struct resident);
        // Else every loop of many in one another would be looked at with all that are in it.
        if (ir_control_depth_of(s->g, n) > COST_STEP_DEPTH) {
            r->reason = schedule_reason(s, too_deep, n);
        } else if (!keep_tested(s, n, r)) {
            *r = (struct resident){.lanes = lanes_of(&s->axes, n)};
            r->reason = refusal(s, n, r);
        }
        s->residents[number] = r;
    }
    return s->residents[number];
}
