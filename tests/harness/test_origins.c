// SPDX-License-Identifier: Apache-2.0
// Which elements of operands make those of a result (ir/origin.h), for every case of the op table: an operand that
// differs at one index of an axis changes the result where the table says, and nowhere else.
#include "ir/origin.h"
#include "passes/pass_support.h"
#include "support/opcases.h"

// The elements at one index along an axis of t, as blocks.
struct slab {
    int64_t blocks, stride, bytes;
};
static struct slab slab_of(struct ir_type t, int axis)
{
    const int64_t *dims = ir_dims(module, t);
    struct slab s = {1, 0, dtype_get(ir_dtype(t))->bytes};
    for (int k = 0; k < axis; k++)
        s.blocks *= dims[k];
    for (int k = axis + 1; k < t.rank; k++)
        s.bytes *= dims[k];
    s.stride = s.bytes * dims[axis];
    return s;
}

// x with what `other` has at index `at` of the axis.
static struct ir_tensor with_slab(struct ir_tensor x, struct ir_tensor other, int axis,
                                  int64_t at)
{
    struct slab s = slab_of(x.type, axis);
    char *data = arena_copy(module->arena, x.data, (size_t)(s.blocks * s.stride));
    for (int64_t i = 0; i < s.blocks; i++)
        memcpy(data + i * s.stride + at * s.bytes,
               (const char *)other.data + i * s.stride + at * s.bytes, (size_t)s.bytes);
    x.data = data;
    return x;
}

static bool is_same_at(struct ir_tensor a, struct ir_tensor b, int axis, int64_t at)
{
    struct slab s = slab_of(a.type, axis);
    bool same = true;
    for (int64_t i = 0; i < s.blocks && same; i++)
        same = !memcmp((const char *)a.data + i * s.stride + at * s.bytes,
                       (const char *)b.data + i * s.stride + at * s.bytes, (size_t)s.bytes);
    return same;
}

static int checked;

static void check_axis(const struct opcase *c, uint32_t f, const struct ir_node *n, uint32_t i,
                       int axis, uint64_t *state)
{
    struct ir_origin from;
    const struct ir_graph *g = graph(f);
    if (!ir_origin_of(g, n, i, axis, &from) || from.axis < 0)
        return;
    struct ir_tensor in[OPCASE_OPERANDS], want = *evaluate(f, c->in);
    struct ir_tensor other =
        opcase_draw(module, c->in[i].type, ir_op_get(c->op)->domain, state);
    int64_t extent = ir_dims(module, c->in[i].type)[from.axis];
    for (int64_t at = 0; at < extent; at += extent > 3 ? extent - 1 : 1) {
        memcpy(in, c->in, sizeof in);
        in[i] = with_slab(c->in[i], other, from.axis, at);
        struct ir_tensor got = *evaluate(f, in);
        for (int64_t r = 0; r < ir_dims(module, got.type)[axis]; r++)
            ck_assert_msg(
                from.offset + from.step * r == at || is_same_at(got, want, axis, r),
                "%s: operand %u differs at index %lld of axis %d, and the result at index "
                "%lld of axis %d",
                c->text, i, (long long)at, from.axis, (long long)r, axis);
        checked++;
    }
}

START_TEST(elements_come_from_where_the_table_says)
{
    static const jot_dtype dtypes[] = {JOT_F64, JOT_I32};
    struct opcases cases = opcases_make(module, dtypes[_i], 5);
    uint64_t state = 77;
    checked = 0;
    for (uint32_t k = 0; k < cases.count; k++) {
        const struct opcase *c = &cases.at[k];
        uint32_t f = opcase_function(module, c);
        const struct ir_graph *g = graph(f);
        const struct ir_node *n = &g->nodes.at[g->nodes.count - 1];
        if (n->op != c->op || n->n_out != 1)
            continue;
        for (uint32_t i = 0; i < n->n_in; i++)
            for (int axis = 0; axis < ir_rank_of(g, n->out); axis++)
                check_axis(c, f, n, i, axis, &state);
    }
    ck_assert_int_gt(checked, 500);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, elements_come_from_where_the_table_says, 0, 2);
}

int main(void) { return support_run("origins", add_tests); }
