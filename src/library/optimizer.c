// SPDX-License-Identifier: Apache-2.0
// What an optimiser does while tracing: its parts in their order over the leaves of a level,
// and levels inside of what stands around others.
//
// A state is the count of the outermost level and then, for each part, its values and its
// trees, before those of the parts that it stands around.
#include "library/optimizer.h"
#include "library/formula.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MOST_LEAVES = 1 << 20, MOST_MASKED = 8 * sizeof((jot_mask *)0)->bits };

// What is done with the state.
enum task { BEGIN, STEP, ASK };

// Leaves that some parts see.
struct level {
    size_t n;
    jot_value *g; // ASK: the parameters to use
    const jot_value *p;
    jot_value count; // of steps before this one
};

struct run {
    const jot_optimizer *o;
    const char *where;
    enum task task;
    jot_dtype real;
    jot_value *state; // from the part on that comes next
};

static void run_parts(struct run *r, const struct level *level, int first, int end);

static jot_value number_of(jot_dtype dtype, double x)
{
    return jot_full_dims(dtype, num(x), (const int64_t[]){JOT_END});
}

// One more, as long as there is a number.
static jot_value counted(jot_value count)
{
    return jot_add(count, jot_convert(jot_less(count, jot_from_int(INT32_MAX)), JOT_I32));
}

static jot_value rate_of(const struct run *r, const jot_optimizer_part *part, jot_value count)
{
    return library_schedule(part->n_pieces, r->o->piece + part->first_piece, count, r->real);
}

// ---------------------------------------------------------------------------------------
// Parts of a chain

static struct optimizer_leaf leaf_of(const struct run *r, const struct level *level,
                                     const jot_optimizer_part *part, size_t i)
{
    return (struct optimizer_leaf){.number = part->number,
                                   .real = r->real,
                                   .count = level->count,
                                   .g = level->g[i],
                                   .p = level->p[i]};
}

static void clip_global(const struct run *r, const struct level *level, double most)
{
    jot_value square = number_of(r->real, 0);
    for (size_t i = 0; i < level->n; i++)
        square =
            jot_add(square, jot_sum_axes(jot_square(jot_convert(level->g[i], r->real)), NULL));
    jot_value is_small = jot_less(jot_sqrt(square), num(most));
    jot_value norm = jot_sqrt(jot_where(is_small, num(1), square));
    for (size_t i = 0; i < level->n; i++) {
        jot_value *g = level->g + i, scaled = jot_div(*g, library_as(norm, *g));
        *g = jot_where(is_small, *g, jot_mul(scaled, num(most)));
    }
}

static void begin_trees(const struct run *r, const struct level *level,
                        const jot_optimizer_part *part, jot_value *trees)
{
    const struct optimizer_row *row = &library_optimizer_rows[part->kind];
    for (int k = 0; k < row->trees; k++)
        for (size_t i = 0; i < level->n; i++) {
            struct optimizer_leaf x = leaf_of(r, level, part, i);
            trees[(size_t)k * level->n + i] =
                row->begin ? row->begin(&x, k) : jot_zeros_like(x.p);
        }
}

static void step_leaves(const struct run *r, const struct level *level,
                        const jot_optimizer_part *part, jot_value *trees)
{
    const struct optimizer_row *row = &library_optimizer_rows[part->kind];
    jot_value rate = {0, 0};
    if (part->kind == PART_CLIP_GLOBAL)
        clip_global(r, level, part->number[0]);
    if (part->n_pieces)
        rate = rate_of(r, part, level->count);
    for (size_t i = 0; row->step && i < level->n; i++) {
        struct optimizer_leaf x = leaf_of(r, level, part, i);
        x.rate = rate;
        for (int k = 0; k < row->trees; k++)
            x.tree[k] = trees + (size_t)k * level->n + i;
        row->step(&x);
        level->g[i] = x.g;
    }
}

static void run_part(struct run *r, const struct level *level, const jot_optimizer_part *part)
{
    jot_value *trees = r->state;
    r->state += (size_t)library_optimizer_rows[part->kind].trees * level->n;
    if (r->task == BEGIN)
        begin_trees(r, level, part, trees);
    else if (r->task == STEP)
        step_leaves(r, level, part, trees);
    else if (part->kind == PART_PARAMS_EMA)
        memcpy(level->g, trees, sizeof *trees * level->n);
}

// ---------------------------------------------------------------------------------------
// What stands around others

static bool is_in(jot_mask mask, size_t i) { return mask.bits[i / 64] >> i % 64 & 1; }

static size_t count_masked(jot_mask mask, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += is_in(mask, i);
    return count;
}

static void run_masked(struct run *r, const struct level *level, int first, int end)
{
    jot_mask mask = r->o->part[first - 1].mask;
    jot_value g[MOST_MASKED], p[MOST_MASKED];
    struct level some = {0, g, p, level->count};
    for (size_t i = 0; i < level->n; i++)
        if (is_in(mask, i)) {
            g[some.n] = level->g[i];
            p[some.n++] = level->p[i];
        }
    run_parts(r, &some, first, end);
    for (size_t i = 0, k = 0; r->task != BEGIN && i < level->n; i++)
        if (is_in(mask, i))
            level->g[i] = g[k++];
}

// The parts where `holds`, with a count of their own; elsewhere nothing moves.
static void run_where(struct run *r, jot_value holds, const struct level *level,
                      jot_value *count, int first, int end, size_t n_state)
{
    jot_value *state = r->state;
    const jot_piece pieces[] = {{level->g, level->n, "the update"},
                                {count, 1, "the count"},
                                {state, n_state, "the state"},
                                {NULL, 0, NULL}};
    jot_block *b = jot_if_begin(pieces, holds, r->where);
    while (jot_block_next(b))
        if (jot_if_first(b)) {
            struct level inner = {level->n, level->g, level->p, *count};
            r->state = state;
            run_parts(r, &inner, first, end);
            *count = counted(*count);
        } else {
            for (size_t i = 0; i < level->n; i++)
                level->g[i] = jot_zeros_like(level->g[i]);
        }
    jot_block_leave(&b);
    r->state = state + n_state;
}

static size_t count_state(const jot_optimizer *o, size_t n, int first, int end);

static void run_multi_steps(struct run *r, const struct level *level, int first, int end)
{
    jot_value *kept = r->state, *mean = kept + 2;
    double every = r->o->part[first - 1].number[0];
    r->state += 2 + level->n;
    if (r->task != STEP) {
        struct level inner = *level;
        if (r->task == BEGIN) {
            kept[0] = kept[1] = number_of(JOT_I32, 0);
            for (size_t i = 0; i < level->n; i++)
                mean[i] = jot_zeros_like(jot_convert(level->p[i], r->real));
        }
        inner.count = kept[1];
        run_parts(r, &inner, first, end);
        return;
    }
    jot_value steps = jot_add(kept[0], jot_from_int(1));
    jot_value is_last = jot_equal(steps, jot_from_int((int64_t)every));
    for (size_t i = 0; i < level->n; i++) {
        jot_value more = jot_sub(jot_convert(level->g[i], r->real), mean[i]);
        mean[i] = jot_add(mean[i], jot_div(more, jot_convert(steps, r->real)));
        level->g[i] = library_as(mean[i], level->g[i]);
    }
    run_where(r, is_last, level, kept + 1, first, end, count_state(r->o, level->n, first, end));
    kept[0] = jot_where(is_last, jot_zeros_like(steps), steps);
    for (size_t i = 0; i < level->n; i++)
        mean[i] = jot_where(is_last, jot_zeros_like(mean[i]), mean[i]);
}

static void run_loss_scale(struct run *r, const struct level *level, int first, int end)
{
    const double *number = r->o->part[first - 1].number;
    jot_value *kept = r->state;
    r->state += 3;
    if (r->task != STEP) {
        struct level inner = *level;
        if (r->task == BEGIN) {
            kept[0] = number_of(r->real, number[0]);
            kept[1] = kept[2] = number_of(JOT_I32, 0);
        }
        inner.count = kept[2];
        run_parts(r, &inner, first, end);
        return;
    }
    jot_value scale = kept[0], is_finite = jot_from_bool(true);
    for (size_t i = 0; i < level->n; i++) {
        jot_value *g = level->g + i;
        *g = library_as(jot_div(jot_convert(*g, r->real), scale), *g);
        is_finite = jot_logical_and(is_finite, jot_all_axes(jot_is_finite(*g), NULL));
    }
    run_where(r, is_finite, level, kept + 2, first, end,
              count_state(r->o, level->n, first, end));
    jot_value steps = jot_add(kept[1], jot_from_int(1));
    jot_value is_last = jot_equal(steps, jot_from_int((int64_t)number[1]));
    jot_value doubled = jot_mul(scale, num(2));
    jot_value is_larger = jot_logical_and(is_last, jot_is_finite(doubled));
    jot_value larger = jot_where(is_larger, doubled, scale);
    jot_value smaller = jot_maximum(jot_mul(scale, num(0.5)), num(1));
    jot_value stays = jot_logical_and(is_finite, jot_logical_not(is_last));
    kept[0] = jot_where(is_finite, larger, smaller);
    kept[1] = jot_where(stays, steps, jot_zeros_like(steps));
}

static void run_schedule_free(struct run *r, const struct level *level, int first, int end)
{
    const jot_optimizer_part *part = &r->o->part[first - 1];
    double b1 = part->number[0];
    jot_value *kept = r->state, *z = kept + 2, share = {0, 0};
    r->state += 2 + level->n;
    if (r->task == BEGIN) {
        kept[0] = kept[1] = number_of(r->real, 0);
        begin_trees(r, level, part, z);
    }
    if (r->task == STEP) {
        jot_value rate = rate_of(r, part, counted(level->count));
        kept[1] = jot_maximum(kept[1], rate);
        jot_value weight = jot_pow(kept[1], num(part->number[1]));
        kept[0] = jot_add(kept[0], weight);
        jot_value is_some = jot_greater(kept[0], num(0));
        share =
            jot_where(is_some, jot_div(weight, jot_where(is_some, kept[0], num(1))), num(0));
    }
    run_parts(r, level, first, end);
    for (size_t i = 0; r->task != BEGIN && i < level->n; i++) {
        jot_value p = level->p[i], *g = level->g + i;
        jot_value x = jot_div(jot_sub(p, jot_mul(num(1 - b1), z[i])), num(b1));
        if (r->task == ASK) {
            *g = x;
            continue;
        }
        jot_value w = library_as(share, p);
        z[i] = jot_add(z[i], *g);
        x = jot_add(jot_mul(jot_sub(num(1), w), x), jot_mul(w, z[i]));
        *g = jot_sub(jot_add(jot_mul(num(b1), x), jot_mul(num(1 - b1), z[i])), p);
    }
}

static void run_parts(struct run *r, const struct level *level, int first, int end)
{
    for (int i = first; i < end; i += 1 + r->o->part[i].covers) {
        const jot_optimizer_part *part = &r->o->part[i];
        int inside = i + 1, behind = inside + part->covers;
        switch (part->kind) {
        case PART_MASKED:
            run_masked(r, level, inside, behind);
            break;
        case PART_MULTI_STEPS:
            run_multi_steps(r, level, inside, behind);
            break;
        case PART_LOSS_SCALE:
            run_loss_scale(r, level, inside, behind);
            break;
        case PART_SCHEDULE_FREE:
            run_schedule_free(r, level, inside, behind);
            break;
        default:
            run_part(r, level, part);
        }
    }
}

// ---------------------------------------------------------------------------------------
// The use

static size_t count_state(const jot_optimizer *o, size_t n, int first, int end)
{
    size_t count = 0;
    for (int i = first; i < end; i += 1 + o->part[i].covers) {
        const jot_optimizer_part *part = &o->part[i];
        const struct optimizer_row *row = &library_optimizer_rows[part->kind];
        size_t inside = part->kind == PART_MASKED ? count_masked(part->mask, n) : n;
        count += (size_t)row->values + (size_t)row->trees * n +
                 count_state(o, inside, i + 1, i + 1 + part->covers);
    }
    return count;
}

static bool check_schedule(const jot_optimizer *o, const jot_optimizer_part *part)
{
    enum { PIECES = sizeof o->piece / sizeof *o->piece };
    int first = part->first_piece, n = part->n_pieces;
    return n == 0 || (first >= 0 && first < PIECES && n <= PIECES - first &&
                      library_is_schedule(n, o->piece + first));
}

// What is wrong with the parts for n leaves, in text; false where something is.
static bool check_parts(const jot_optimizer *o, size_t n, int first, int end, char *text,
                        size_t size)
{
    for (int i = first; i < end; i += 1 + o->part[i].covers) {
        const jot_optimizer_part *part = &o->part[i];
        bool is_masked = part->kind == PART_MASKED;
        if (part->kind < 0 || part->kind >= PART_KINDS || part->covers < 0 ||
            part->covers > end - i - 1 || !check_schedule(o, part)) {
            snprintf(text, size, "this is no optimiser: a function of jot makes one");
            return false;
        }
        if (is_masked && (part->mask.n < 0 || (size_t)part->mask.n != n || n > MOST_MASKED)) {
            snprintf(text, size,
                     "the mask is of %d values, and there are %zu: at most %d can be masked",
                     part->mask.n, n, (int)MOST_MASKED);
            return false;
        }
        if (!check_parts(o, is_masked ? count_masked(part->mask, n) : n, i + 1,
                         i + 1 + part->covers, text, size))
            return false;
    }
    return true;
}

static bool check_optimizer(const jot_optimizer *o, size_t n, char *text, size_t size)
{
    enum { PARTS = sizeof o->part / sizeof *o->part };
    if (o->mistake[0])
        snprintf(text, size, "%.*s", (int)sizeof o->mistake, o->mistake);
    else if (o->n < 0 || o->n > PARTS)
        snprintf(text, size, "this is no optimiser: a function of jot makes one");
    else if (n > MOST_LEAVES)
        snprintf(text, size, "n is %zu: at most %d", n, (int)MOST_LEAVES);
    else
        return check_parts(o, n, 0, o->n, text, size);
    return false;
}

size_t jot_optimizer_leaves(jot_optimizer optimizer, size_t n)
{
    char text[160];
    return check_optimizer(&optimizer, n, text, sizeof text)
               ? 1 + count_state(&optimizer, n, 0, optimizer.n)
               : 0;
}

// The words of what is kept, " adam momentum", for messages.
static void list_kept(const jot_optimizer *o, char *text, size_t size)
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < o->n && at < size; i++) {
        const struct optimizer_row *row = &library_optimizer_rows[o->part[i].kind];
        if (row->values + row->trees)
            at += (size_t)snprintf(text + at, size - at, " %s", row->name);
    }
}

// The word of value *i of what the parts keep, and its number there; where it is behind that,
// *i counts from its end.
static bool find_kept(const jot_optimizer *o, size_t n, int first, int end, size_t *i,
                      char *text, size_t size)
{
    for (int k = first; k < end; k += 1 + o->part[k].covers) {
        const jot_optimizer_part *part = &o->part[k];
        const struct optimizer_row *row = &library_optimizer_rows[part->kind];
        size_t own = (size_t)row->values + (size_t)row->trees * n;
        if (*i < own) {
            snprintf(text, size, "%s[%zu]", row->name, *i);
            return true;
        }
        *i -= own;
        size_t inside = part->kind == PART_MASKED ? count_masked(part->mask, n) : n;
        if (find_kept(o, inside, k + 1, k + 1 + part->covers, i, text, size))
            return true;
    }
    return false;
}

// Whether the values have one element type and one shape.
static bool is_alike(jot_value x, jot_value y)
{
    return jot_value_dtype(x) == jot_value_dtype(y) && has_shape_of(x, y);
}

static bool is_half(jot_dtype d) { return d == JOT_F16 || d == JOT_BF16; }

static bool is_floating(jot_dtype d) { return is_half(d) || d == JOT_F32 || d == JOT_F64; }

// Half floats are optimised in f32.
static jot_value widened(jot_value x)
{
    return is_half(jot_value_dtype(x)) ? jot_convert(x, JOT_F32) : x;
}

// The type as f32[2,3].
static const char *write_type(jot_value x, char *text, size_t size)
{
    int rank = jot_value_rank(x),
        at = snprintf(text, size, "%s[", jot_dtype_name(jot_value_dtype(x)));
    for (int i = 0; i < rank && at < (int)size; i++)
        at += snprintf(text + at, size - (size_t)at, i ? ",%lld" : "%lld",
                       (long long)jot_value_dim(x, i));
    if (at < (int)size)
        snprintf(text + at, size - (size_t)at, "]");
    return text;
}

struct use {
    const char *name, *where;
    enum task task;
    const jot_optimizer *o;
    size_t n, n_state;
    jot_value *g, *state; // g: NULL where none is given
    const jot_value *p;
    jot_value *wide,
        *begin; // p in the types of the computation, and the state before the first step
};

static jot_value fail(const struct use *u, jot_status status, const char *text)
{
    return jot_error(status, u->name, text);
}

// Whether the lists are there and long enough; else an error.
static bool check_lists(const struct use *u, jot_value *out_error)
{
    char text[300], kept[160];
    if (!check_optimizer(u->o, u->n, text, sizeof text)) {
        *out_error = fail(u, JOT_ERR_ARGUMENT, text);
        return false;
    }
    size_t wanted = 1 + count_state(u->o, u->n, 0, u->o->n);
    list_kept(u->o, kept, sizeof kept);
    if (u->n && (!u->p || (!u->g && u->task != BEGIN)))
        snprintf(text, sizeof text, "%s is NULL", !u->p ? "p" : u->task == ASK ? "out" : "g");
    else if (u->n_state && !u->state)
        snprintf(text, sizeof text, "state is NULL");
    else if (u->n_state != wanted)
        snprintf(text, sizeof text,
                 "the state has %zu values; that of %zu parameters has %zu: the count, then "
                 "what is kept:%s",
                 u->n_state, u->n, wanted, kept[0] ? kept : " nothing");
    else
        return true;
    *out_error = fail(u, JOT_ERR_ARGUMENT, text);
    return false;
}

// Whether the leaves fit; gradients get the types of the computation.
static bool check_leaves(const struct use *u, jot_value *out_error)
{
    char text[200];
    for (size_t i = 0; i < u->n; i++) {
        if (jot_value_failed(u->p[i])) {
            *out_error = u->p[i];
            return false;
        }
        if (!is_floating(jot_value_dtype(u->p[i]))) {
            snprintf(text, sizeof text, "parameter %zu is %s: a floating type is optimised", i,
                     jot_describe(u->p[i]));
            *out_error = fail(u, JOT_ERR_DTYPE, text);
            return false;
        }
        u->wide[i] = widened(u->p[i]);
        if (u->task != STEP)
            continue;
        jot_value g = jot_convert(u->g[i], jot_value_dtype(u->wide[i]));
        if (jot_value_failed(g)) {
            *out_error = g;
            return false;
        }
        if (!is_alike(g, u->wide[i])) {
            int n = snprintf(text, sizeof text, "gradient %zu is %.60s, ", i,
                             jot_describe(u->g[i]));
            snprintf(text + n, sizeof text - (size_t)n, "its parameter %.60s",
                     jot_describe(u->p[i]));
            *out_error = fail(u, JOT_ERR_SHAPE, text);
            return false;
        }
        u->g[i] = g;
    }
    return true;
}

static void run_all(const struct use *u, enum task task, jot_value *g, jot_value *state)
{
    struct run r = {.o = u->o, .where = u->where, .task = task, .real = JOT_F32};
    for (size_t i = 0; i < u->n; i++)
        if (jot_value_dtype(u->p[i]) == JOT_F64)
            r.real = JOT_F64;
    if (task == BEGIN)
        state[0] = number_of(JOT_I32, 0);
    struct level level = {u->n, g, u->wide, state[0]};
    r.state = state + 1;
    run_parts(&r, &level, 0, u->o->n);
    if (task == STEP)
        state[0] = counted(state[0]);
}

// Whether the state has the types that it begins with.
static bool check_state(const struct use *u, jot_value *out_error)
{
    char text[240], name[60] = "the count", is[60], begins[60];
    run_all(u, BEGIN, u->wide, u->begin);
    for (size_t i = 0; i < u->n_state; i++) {
        *out_error = u->state[i];
        if (jot_value_failed(u->state[i]))
            return false;
        if (is_alike(u->state[i], u->begin[i]))
            continue;
        size_t at = i - 1;
        if (i)
            find_kept(u->o, u->n, 0, u->o->n, &at, name, sizeof name);
        snprintf(text, sizeof text, "value %zu of the state, %s, is %s; it begins as %s", i,
                 name, write_type(u->state[i], is, sizeof is),
                 write_type(u->begin[i], begins, sizeof begins));
        bool is_type = jot_value_dtype(u->state[i]) != jot_value_dtype(u->begin[i]);
        *out_error = fail(u, is_type ? JOT_ERR_DTYPE : JOT_ERR_SHAPE, text);
        return false;
    }
    return true;
}

static void use(const struct use *u)
{
    for (size_t i = 0; u->task == ASK && i < u->n; i++)
        u->g[i] = u->wide[i];
    run_all(u, u->task, u->task == BEGIN ? u->wide : u->g, u->state);
    for (size_t i = 0; u->task != BEGIN && i < u->n; i++)
        u->g[i] = library_as(u->g[i], u->p[i]);
}

// Places all results, and makes all the error that there is.
static void finish(const struct use *u, size_t n, jot_value *out, bool ok, jot_value error)
{
    for (size_t i = 0; out && i < n && n <= MOST_LEAVES; i++) {
        out[i] = ok ? out[i] : error;
        jot_place(out[i], u->where);
    }
}

static bool make_lists(struct use *u, jot_value *out_error)
{
    u->wide = jot_trace_memory(sizeof *u->wide * (u->n + u->n_state));
    u->begin = u->wide + u->n;
    if (!u->wide)
        *out_error = fail(u, JOT_ERR_MEMORY, NULL);
    return u->wide;
}

static bool do_use(struct use *u, jot_value *out_error)
{
    bool ok = check_lists(u, out_error) && make_lists(u, out_error) &&
              check_leaves(u, out_error) && (u->task == BEGIN || check_state(u, out_error));
    if (ok)
        use(u);
    if (u->task != BEGIN)
        finish(u, u->n, u->g, ok, *out_error);
    if (u->task != ASK)
        finish(u, u->n_state, u->state, ok, *out_error);
    return ok;
}

void jot_optimizer_init_tree(jot_optimizer optimizer, size_t n, const jot_value *p,
                             size_t n_state, jot_value *state, const char *where)
{
    jot_value error;
    struct use u = {
        "jot_optimizer_init", where, BEGIN, &optimizer, n, n_state, NULL, state, p, NULL, NULL};
    do_use(&u, &error);
}

void jot_optimizer_update_tree(jot_optimizer optimizer, size_t n, jot_value *g,
                               const jot_value *p, size_t n_state, jot_value *state,
                               const char *where)
{
    jot_value error;
    struct use u = {
        "jot_optimizer_update", where, STEP, &optimizer, n, n_state, g, state, p, NULL, NULL};
    do_use(&u, &error);
}

void jot_optimizer_step_tree(jot_optimizer optimizer, size_t n, jot_value *g, jot_value *p,
                             size_t n_state, jot_value *state, const char *where)
{
    jot_value error = {0, 0};
    struct use u = {
        "jot_optimizer_step", where, STEP, &optimizer, n, n_state, g, state, p, NULL, NULL};
    bool ok = do_use(&u, &error);
    for (size_t i = 0; ok && i < n; i++)
        p[i] = jot_add(p[i], g[i]);
    finish(&u, n, p, ok, error);
}

void jot_optimizer_params_tree(jot_optimizer optimizer, size_t n, const jot_value *p,
                               size_t n_state, const jot_value *state, jot_value *out,
                               const char *where)
{
    jot_value error, *at = (jot_value *)(void *)state;
    struct use u = {
        "jot_optimizer_params", where, ASK, &optimizer, n, n_state, out, at, p, NULL, NULL};
    if (out && p && n <= MOST_LEAVES)
        memmove(out, p, sizeof *p * n);
    do_use(&u, &error);
}
