// SPDX-License-Identifier: Apache-2.0
// A function made of another: its parameters in a new order, its results picked.  What
// transforms of loops and branches wrap around transformed bodies.
//
//     struct body w = body_of(m, f);
//     body_take(&w, 2); body_take(&w, 0); ...       every parameter of f, in the new order
//     body_run(&w);
//     body_give(&w, 1); ...                         results
//     JOT_TRY(pass_finish(&w.b, &made));
#ifndef PASSES_BODY_H
#define PASSES_BODY_H

#include "passes/transform.h"

struct body {
    struct ir_builder b;
    const struct ir_graph *f;
    ir_id *in, *out; // by parameter and result of f
};

struct body body_of(struct ir_module *m, uint32_t f);
// A new parameter for parameter i of f.
void body_take(struct body *w, uint32_t i);
// New parameters for all of them, in order.
void body_take_all(struct body *w);
// The nodes of f.
void body_run(struct body *w);
// Result i of f as a result.
void body_give(struct body *w, uint32_t i);
// The same, or zeros of the type when there is no such result.
void body_give_or_zeros(struct body *w, bool there, uint32_t i, struct ir_type t);

// -- Functions that use others ------------------------------------------------------------------

// The nodes of g that wanted values are made of, in b over what map has of its parameters; their values in map.
void body_copy_wanted(struct ir_builder *b, const struct ir_graph *g, const bool *wanted,
                      ir_id *map);

// How one node of g is made again in b.
typedef void body_copy(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                       ir_id *map);
// All nodes and the outputs of g; what its values have become.
ir_id *body_copy_all(struct ir_builder *b, const struct ir_graph *g, body_copy *copy);
// f with each node made again, remembered as of the kind.
uint32_t body_rewrite(struct ir_module *m, uint32_t f, enum memo_kind kind, body_copy *copy);
// The functions of a node, made again by rewrite; and its operands, with room for one more.
uint32_t *body_rewrite_all(struct ir_module *m, const struct ir_node *n,
                           uint32_t (*rewrite)(struct ir_module *m, uint32_t f));
ir_id *body_operands(struct ir_module *m, const struct ir_graph *g, const struct ir_node *n,
                     const ir_id *map);
// The results of the node, from y on; or none.
void body_set_results(const struct ir_node *n, ir_id y, ir_id *map);

// -- Masks ------------------------------------------------------------------------------------

// to[i] = to[i] or mask[i].
static inline void body_add_mask(bool *to, const bool *mask, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = to[i] || mask[i];
}
// n times false.
static inline bool *body_mask(struct ir_module *m, uint32_t n)
{
    return arena_array(m->arena, bool, n + 1);
}
static inline bool body_any(const bool *mask, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (mask[i])
            return true;
    return false;
}
// Adds the carries that come out to those that go in; whether there were new ones.
static inline bool body_grow(bool *carry_in, const bool *carry_out, uint32_t n)
{
    bool grows = false;
    for (uint32_t i = 0; i < n; i++) {
        grows = grows || (carry_out[i] && !carry_in[i]);
        carry_in[i] = carry_in[i] || carry_out[i];
    }
    return grows;
}
static inline struct ir_type body_result(const struct ir_graph *f, uint32_t i)
{
    return ir_type_of(f, f->outputs.at[i]);
}
// Appends the values first .. end - 1 whose mask is `which`; how many they are.
static inline int body_pick(const bool *mask, bool which, uint32_t first, uint32_t end,
                            const ir_id *from, ir_id *to)
{
    int n = 0;
    for (uint32_t i = first; i < end; i++)
        if (mask[i] == which)
            to[n++] = from[i];
    return n;
}
static inline uint32_t body_count(const bool *mask, bool which, uint32_t first, uint32_t end)
{
    uint32_t n = 0;
    for (uint32_t i = first; i < end; i++)
        n += mask[i] == which;
    return n;
}
// A node with its functions made again by rewrite.
void body_copy_rewritten(struct ir_builder *b, const struct ir_graph *g,
                         const struct ir_node *n, ir_id *map,
                         uint32_t (*rewrite)(struct ir_module *m, uint32_t f));

#endif
