// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: one step, which loops take.
#include "jot/random.h"
#include "library/formula.h"
#include "library/layer.h"

// n by gates n: an orthogonal matrix for each gate.
static jot_value hidden(struct layer *l, jot_value key, int64_t n, int64_t gates)
{
    if (l->is_wrong)
        return l->error;
    const int64_t each[] = {gates, JOT_END}, dims[] = {n, gates * n, JOT_END};
    jot_value q = jot_random_orthogonal_dims(key, l->o.dtype, n, n, each);
    q = jot_reshape_dims(jot_move_axis(q, 0, 1), dims);
    jot_place(q, l->where);
    return q;
}

struct gates {
    jot_value wx, wh, b;
};

static struct gates gates(struct layer *l, jot_value key, int64_t in, int64_t n, int64_t count)
{
    library_size(l, "in", in);
    library_size(l, "n", n);
    library_size(l, "the number of columns", n <= INT32_MAX ? count * n : n);
    jot_value keys = l->is_wrong ? l->error : jot_random_split(key, 2);
    const int64_t wx[] = {in, l->is_wrong ? 1 : count * n, JOT_END};
    return (struct gates){.wx = library_weights(l, jot_take_axis(keys, 0, 0), wx),
                          .wh = hidden(l, jot_take_axis(keys, 1, 0), n, count),
                          .b = library_bias(l, wx + 1)};
}

jot_gru jot_gru_init_with(jot_value key, int64_t in, int64_t n,
                          const jot_layer_options *options, const char *where)
{
    struct layer l =
        library_layer("jot_gru_init", where, options, TAKES_W, jot_lecun_normal_dims);
    struct gates g = gates(&l, key, in, n, 3);
    const int64_t dims[] = {n, JOT_END};
    return (jot_gru){.wx = g.wx, .wh = g.wh, .b = g.b, .bn = library_bias(&l, dims)};
}

jot_lstm jot_lstm_init_with(jot_value key, int64_t in, int64_t n,
                            const jot_layer_options *options, const char *where)
{
    struct layer l =
        library_layer("jot_lstm_init", where, options, TAKES_W, jot_lecun_normal_dims);
    struct gates g = gates(&l, key, in, n, 4);
    return (jot_lstm){.wx = g.wx, .wh = g.wh, .b = g.b};
}

jot_value jot_gru_step(jot_gru p, jot_value h, jot_value x)
{
    jot_value of_x[3], of_h[3];
    jot_split_into(library_add_bias(jot_dot(x, p.wx), p.b), -1, 3, of_x);
    jot_split_into(jot_dot(h, p.wh), -1, 3, of_h);
    jot_value r = jot_logistic(add(of_x[0], of_h[0])), z = jot_logistic(add(of_x[1], of_h[1]));
    jot_value m = jot_tanh(add(of_x[2], mul(r, library_add_bias(of_h[2], p.bn))));
    return add(mul(sub(num(1), z), m), mul(z, h));
}

jot_lstm_state jot_lstm_step_at(jot_lstm p, jot_lstm_state s, jot_value x, const char *where)
{
    jot_value gate[4];
    jot_value all = library_add_bias(add(jot_dot(x, p.wx), jot_dot(s.h, p.wh)), p.b);
    jot_split_into(all, -1, 4, gate);
    jot_value i = jot_logistic(gate[0]), f = jot_logistic(gate[1]), o = jot_logistic(gate[3]);
    s.c = add(mul(f, s.c), mul(i, jot_tanh(gate[2])));
    s.h = mul(o, jot_tanh(s.c));
    jot_place(s.c, where), jot_place(s.h, where);
    return s;
}
