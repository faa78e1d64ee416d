// SPDX-License-Identifier: Apache-2.0
// Wide values that are made of narrow ones with little arithmetic: memory is given to the narrow ones.
//
//     %w = ... : f32[n, n]            dear
//     %v = mul %w, sub %x[i], %x[j] : f32[n, n, 3]
//     reduce_sum over i of %v, reduce_sum over j of %v
//
// Kernels that want the wide value at different coordinates make it each for itself, and what goes through memory is %w.
#include "schedule/group/group.h"

#include "base/count.h"

// A wide value, and what is found behind it.
struct cut {
    struct schedule *s;
    int64_t bytes; // of the wide value
    int64_t read;  // bytes of what is found
    uint32_t ops;  // done again
    uint32_t visits;
    VEC(ir_id) seen;   // values between, and what is found
    VEC(ir_id) narrow; // of that: what gets memory
};

static int64_t bytes_of(const struct schedule *s, ir_id v)
{
    return count_times(value_count(s, v), dtype_get(ir_dtype_of(s->g, v))->bytes);
}

static bool is_seen(struct cut *c, ir_id v)
{
    for (uint32_t i = 0; i < c->seen.count; i++)
        if (c->seen.at[i] == v)
            return true;
    vec_push(c->s->scratch, &c->seen, v);
    return false;
}

// Changes of index of which an element is one of the operand.
static bool is_renamed(const struct ir_node *n)
{
    return n->op == IR_broadcast_in_dim || n->op == IR_reshape || n->op == IR_transpose;
}

static bool follow(struct cut *c, ir_id v);

static bool follow_operands(struct cut *c, ir_id v)
{
    const struct ir_node *n = ir_node_of(c->s->g, v);
    if (node_is_dear(c->s->g, n) || n->n_out != 1 || (node_is_index(n) && !is_renamed(n)))
        return false;
    c->ops += !node_is_index(n);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!follow(c, ir_operand(c->s->g, n, i)))
            return false;
    return c->ops <= COST_NARROW_OPS;
}

// Follows v to what is found; false when the way there is too long or dear.
static bool follow(struct cut *c, ir_id v)
{
    struct schedule *s = c->s;
    const struct ir_node *n = ir_node_of(s->g, v);
    int64_t bytes = bytes_of(s, v);
    if (n->op == IR_const || is_seen(c, v))
        return true;
    if (n->op == IR_param || bytes <= c->bytes / COST_EXPANSION) {
        c->read = count_plus(c->read, bytes);
        return true;
    }
    if (c->visits++ > COST_NARROW_VISITS)
        return false;
    if (bytes > c->bytes / 2)
        return follow_operands(c, v);
    struct cut before = *c;
    if (follow_operands(c, v) && c->read - before.read <= bytes)
        return true;
    before.visits = c->visits;
    *c = before;
    c->read = count_plus(c->read, bytes);
    vec_push(s->scratch, &c->narrow, v);
    return true;
}

bool group_find_narrow(struct schedule *s, ir_id v)
{
    struct cut c = {.s = s, .bytes = bytes_of(s, v)};
    if (c.bytes < (s->options->large ? 64 : COST_LARGE_BYTES) || !follow(&c, v) ||
        c.read > c.bytes / 4 * 3)
        return false;
    for (uint32_t i = 0; i < c.narrow.count; i++)
        s->is_narrow[c.narrow.at[i]] = true;
    return true;
}
