// SPDX-License-Identifier: Apache-2.0
// Programs that some part of a compiler makes much slower than their neighbours, each beside a
// neighbour that says what it should take: the same work written another way, or a part of it.
//
//     cliffs [--old DIRECTORY] [NAME ...]
//
// prints the least time of a call in us on one thread, what it should be (the neighbour's, times
// what the row says), and the ratio.  The two are called in turn.  --old names another build of
// jot: a process for each row and each library, in turn, and both tables side by side.
#include "measure.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION(name, ...)                                                                    \
    static jot_function name(void) { return __VA_ARGS__; }

// ---- rows of a product of three

static jot_value blend(jot_value w, jot_value t, jot_value p)
{
    return jot_einsum("vb,bij,vj->vi", w, t, p);
}
static jot_value turned(jot_value w, jot_value t, jot_value p, jot_value r)
{
    return jot_matmul(blend(w, t, p), r);
}
static jot_value turned_lanes(jot_value w, jot_value t, jot_value p, jot_value r)
{
    jot_value in[] = {w, t, p, r}, y;
    jot_apply(jot_vmap(jot_fn(turned), JOT_NONE, 0, JOT_NONE, JOT_NONE), 4, in, 1, &y);
    return jot_move_axis(y, 0, 2);
}
static jot_value turned_rows(jot_value w, jot_value t, jot_value p, jot_value r, jot_value i)
{
    return jot_take(turned_lanes(w, t, p, r), i, 0);
}
FUNCTION(rows_taken, jot_fn(turned_rows))
FUNCTION(rows_all, jot_fn(turned_lanes))

static jot_value three(jot_value w, jot_value t, jot_value p)
{
    return jot_einsum("vb,lbij,vj->lvi", w, t, p);
}
static jot_value two_and_one(jot_value w, jot_value t, jot_value p)
{
    jot_value mixed = jot_matmul(w, jot_reshape(jot_transpose(t, 1, 0, 2, 3), 22, -1));
    mixed = jot_mul(jot_reshape(mixed, 544, 26, 3, 4), jot_expand_dims(p, 1, 2));
    return jot_transpose(jot_sum(mixed, 3), 1, 0, 2);
}
FUNCTION(three_factors, jot_fn(three))
FUNCTION(three_by_hand, jot_fn(two_and_one))

// ---- parts in one array

static jot_value parts(jot_value x)
{
    jot_value s = jot_sum(jot_sin(x), 1, JOT_KEEPDIMS);
    return jot_concatenate(1, jot_mul(s, jot_exp(x)),
                           jot_mul(s, jot_cos(jot_slice(x, 1, 0, 3))), jot_log(jot_square(s)));
}
static jot_value joined(jot_value x, jot_value w)
{
    return jot_concatenate(0, jot_reshape(parts(x), -1), jot_mul(-2.0, w));
}
static jot_value energy(jot_value c)
{
    jot_value a = jot_slice(c, 0, 0, 3), b = jot_slice(c, 0, 3, 6), k = jot_slice(c, 0, 6, 11);
    jot_value r = jot_sin(jot_mul(a, jot_exp(b)));
    return jot_add(jot_sum(jot_mul(r, jot_dot(r, r))), jot_dot(k, jot_sin(k)));
}
static jot_value slopes(jot_value x)
{
    jot_value y;
    jot_apply(jot_vmap(jot_grad(jot_fn(energy))), 1, &x, 1, &y);
    return y;
}
static jot_value joined_slopes(jot_value x, jot_value w)
{
    return jot_concatenate(0, jot_reshape(slopes(x), -1), jot_mul(-2.0, w));
}
// Each element and its neighbours of rows between others, or of an array that has them all.
static jot_value around(jot_value all)
{
    jot_value x = jot_slice(all, 0, 1, -1), wide = jot_pad(x, 0, 1, 1, 1);
    jot_value sides = jot_add(jot_slice(wide, 1, 0, -2), jot_slice(wide, 1, 2, JOT_END));
    return jot_add(sides, jot_add(jot_slice(all, 0, 0, -2), jot_slice(all, 0, 2, JOT_END)));
}
static jot_value around_joined(jot_value above, jot_value x, jot_value below)
{
    return around(jot_concatenate(0, above, x, below));
}
FUNCTION(neighbours_joined, jot_fn(around_joined))
FUNCTION(neighbours, jot_fn(around))
FUNCTION(parts_joined, jot_fn(joined))
FUNCTION(parts_alone, jot_fn(parts))
FUNCTION(slopes_joined, jot_fn(joined_slopes))
FUNCTION(slopes_alone, jot_fn(slopes))

// ---- loops

// Two layers of a recurrent cell without products, and how well each step tells the next; the weights of
// the layers are taken apart in each trip or before all, and so is the loss summed.
struct layer {
    jot_value w[8], h, c;
};
static void take_weights(struct layer *l, jot_value w, int k)
{
    jot_value rows = jot_take(w, k);
    for (int i = 0; i < 8; i++)
        l->w[i] = jot_take(rows, i);
}
static jot_value advance(struct layer *l, jot_value x)
{
    jot_value forget = jot_sigmoid(jot_add(jot_mul(x, l->w[0]), l->w[1]));
    jot_value ingate = jot_sigmoid(jot_add(jot_mul(l->h, l->w[2]), l->w[3]));
    jot_value outgate = jot_sigmoid(jot_add(jot_mul(x, l->w[4]), l->w[5]));
    jot_value change = jot_tanh(jot_add(jot_mul(l->h, l->w[6]), l->w[7]));
    l->c = jot_add(jot_mul(l->c, forget), jot_mul(ingate, change));
    return l->h = jot_mul(outgate, jot_tanh(l->c));
}
static jot_value told(jot_value y, jot_value next)
{
    jot_value norm = jot_log(jot_add(2, jot_sum(jot_exp(y), -1, JOT_KEEPDIMS)));
    return jot_sum(jot_mul(next, jot_sub(y, norm)));
}
static jot_value cell_split(jot_value w, jot_value x, jot_value next)
{
    struct layer a, b;
    a.h = a.c = b.h = b.c = jot_zeros(JOT_F64, 14);
    jot_value sum = jot_zeros(JOT_F64);
    JOT_SCAN ((a.h, a.c, b.h, b.c, sum), (x, next), ()) {
        take_weights(&a, w, 0), take_weights(&b, w, 1);
        sum = jot_add(sum, told(advance(&b, advance(&a, x)), next));
    }
    return sum;
}
static jot_value cell_whole(jot_value w, jot_value x, jot_value next)
{
    struct layer a, b;
    a.h = a.c = b.h = b.c = jot_zeros(JOT_F64, 14);
    jot_value y;
    take_weights(&a, w, 0), take_weights(&b, w, 1);
    JOT_SCAN ((a.h, a.c, b.h, b.c), (x), (y))
        y = advance(&b, advance(&a, x));
    return told(y, next);
}
FUNCTION(lstm_split, jot_grad(jot_fn(cell_split)))
FUNCTION(lstm, jot_grad(jot_fn(cell_whole)))

// What is left of a signal when each point is told by the two before.
static jot_value residuals(jot_value p, jot_value y)
{
    jot_value s = jot_from(0.0), u = jot_from(0.0), v = jot_from(0.0);
    JOT_SCAN ((s, u, v), (y), ()) {
        jot_value e =
            jot_sub(y, jot_add(jot_mul(jot_take(p, 0), u), jot_mul(jot_take(p, 1), v)));
        s = jot_add(s, jot_square(e));
        v = u, u = jot_sub(y, jot_mul(0.1, jot_sin(e)));
    }
    return s;
}
FUNCTION(long_scan_grad, jot_vmap(jot_grad(jot_fn(residuals)), 0, JOT_NONE))
FUNCTION(long_scan, jot_vmap(jot_fn(residuals), 0, JOT_NONE))

// A table that every second trip writes a row of.
static jot_value walk(jot_value q, jot_value a, bool chosen)
{
    jot_value t = jot_zeros(JOT_F64, 8, 10), n = jot_zeros(JOT_I32);
    JOT_WHILE ((q, t, n), jot_logical_and(jot_less(n, 200), jot_less(jot_take(q, 0), 5))) {
        q = jot_add(q, jot_mul(0.01, jot_dot(a, jot_sin(q))));
        jot_value even = jot_equal(jot_bitwise_and(n, 1), 0), i = jot_mod(n, 8);
        t = chosen ? jot_where(even, jot_at_set(t, i, q), t)
                   : jot_at_set(t, jot_where(even, i, 8), q);
        n = jot_add(n, 1);
    }
    return jot_sum(t);
}
static jot_value walk_chosen(jot_value q, jot_value a) { return walk(q, a, true); }
static jot_value walk_outside(jot_value q, jot_value a) { return walk(q, a, false); }
FUNCTION(update_chosen, jot_vmap(jot_fn(walk_chosen), 0, JOT_NONE))
FUNCTION(update_outside, jot_vmap(jot_fn(walk_outside), 0, JOT_NONE))

static jot_value relax(jot_value a, jot_value b, int bound)
{
    jot_value x = jot_zeros(JOT_F64, 32), n = jot_zeros(JOT_I32);
    JOT_WHILE ((x, n), jot_less(n, 20), .bound = bound) {
        x = jot_add(x, jot_mul(0.1, jot_tanh(jot_sub(b, jot_dot(a, x)))));
        n = jot_add(n, 1);
    }
    return jot_sum(jot_square(x));
}
static jot_value relax_far(jot_value a, jot_value b) { return relax(a, b, 1000); }
static jot_value relax_near(jot_value a, jot_value b) { return relax(a, b, 20); }
FUNCTION(bound_far, jot_grad(jot_fn(relax_far), 0, 1))
FUNCTION(bound_near, jot_grad(jot_fn(relax_near), 0, 1))

// The log-likelihood of a swinging pendulum's heights, by an extended Kalman filter.
static jot_value swing(jot_value x, jot_value drag)
{
    jot_value angle = jot_take(x, 0), speed = jot_take(x, 1);
    speed = jot_sub(
        speed, jot_mul(0.05, jot_add(jot_mul(9.81, jot_sin(angle)), jot_mul(drag, speed))));
    return jot_stack(0, jot_add(angle, jot_mul(0.05, speed)), speed);
}
static jot_value filter(jot_value p, jot_value ys, int64_t checkpoint)
{
    jot_value noise = jot_mul(jot_exp(jot_take(p, 0)), jot_eye(JOT_F64, 2, 2));
    jot_value drag = jot_take(p, 2),
              x = jot_stack(0, jot_full(JOT_F64, 1.0), jot_full(JOT_F64, 0.0));
    jot_value s = jot_mul(0.1, jot_eye(JOT_F64, 2, 2)), sum = jot_zeros(JOT_F64);
    JOT_SCAN ((x, s, sum), (ys), (), .checkpoint = checkpoint) {
        jot_value in[] = {x, drag}, f;
        jot_apply(jot_jacfwd(jot_fn(swing)), 2, in, 1, &f);
        x = swing(x, drag);
        s = jot_add(jot_dot(f, jot_dot(s, jot_transpose(f))), noise);
        jot_value h = jot_stack(0, jot_cos(jot_take(x, 0)), jot_full(JOT_F64, 0.0));
        jot_value e = jot_sub(ys, jot_sin(jot_take(x, 0))), sh = jot_dot(s, h);
        jot_value v = jot_add(jot_dot(h, sh), jot_exp(jot_take(p, 1)));
        sum = jot_sub(sum, jot_mul(0.5, jot_add(jot_div(jot_square(e), v), jot_log(v))));
        x = jot_add(x, jot_mul(sh, jot_div(e, v)));
        s = jot_sub(s, jot_div(jot_outer(sh, sh), v));
    }
    return sum;
}
static jot_value filter_plain(jot_value p, jot_value y) { return filter(p, y, 0); }
static jot_value filter_again(jot_value p, jot_value y) { return filter(p, y, 25); }
FUNCTION(filters, jot_vmap(jot_grad(jot_fn(filter_plain)), 0, JOT_NONE))
FUNCTION(filters_again, jot_vmap(jot_grad(jot_fn(filter_again)), 0, JOT_NONE))

// Steps of a controller: a line search over rollouts, gains by a recursion backward.
static jot_value cart(jot_value x, jot_value u)
{
    jot_value v =
        jot_add(jot_take(x, 1), jot_mul(0.1, jot_sub(jot_take(u, 0), jot_sin(jot_take(x, 0)))));
    return jot_stack(0, jot_add(jot_take(x, 0), jot_mul(0.1, v)), v);
}
static jot_value cost(jot_value x, jot_value u)
{
    return jot_add(jot_sum(jot_square(x)), jot_mul(0.1, jot_sum(jot_square(u))));
}
static jot_value control(jot_value x0, jot_value us)
{
    jot_value x = x0, u = us, j = jot_zeros(JOT_F64), xs;
    JOT_SCAN ((x, j), (u), (xs)) {
        xs = x;
        j = jot_add(j, cost(x, u));
        x = cart(x, u);
    }
    jot_value in[] = {xs, us}, ab[2], g[2];
    jot_apply(jot_vmap(jot_jacfwd(jot_fn(cart), 0, 1)), 2, in, 2, ab);
    jot_apply(jot_vmap(jot_grad(jot_fn(cost), 0, 1)), 2, in, 2, g);
    jot_value a = ab[0], b = ab[1], gx = g[0], gu = g[1], k, kk;
    jot_value v = jot_mul(2, x), vv = jot_mul(2, jot_eye(JOT_F64, 2, 2));
    JOT_SCAN ((v, vv), (a, b, gx, gu), (k, kk), .reverse = true) {
        jot_value va = jot_dot(vv, a), vb = jot_dot(vv, b);
        jot_value qx = jot_add(gx, jot_dot(jot_transpose(a), v));
        jot_value qu = jot_add(gu, jot_dot(jot_transpose(b), v));
        jot_value quu = jot_add(jot_dot(jot_transpose(b), vb), jot_full(JOT_F64, 0.2, 1, 1));
        jot_value qux = jot_dot(jot_transpose(b), va);
        k = jot_neg(jot_solve(quu, qu)), kk = jot_neg(jot_solve(quu, qux));
        v = jot_add(qx, jot_dot(jot_transpose(kk), qu));
        vv = jot_add(jot_add(jot_dot(jot_transpose(a), va), jot_mul(2, jot_eye(JOT_F64, 2, 2))),
                     jot_dot(jot_transpose(qux), kk));
    }
    jot_value alpha = jot_full(JOT_F64, 2.0), n = jot_zeros(JOT_I32), best = us;
    jot_value least = jot_full(JOT_F64, INFINITY);
    JOT_WHILE ((alpha, n, least, best),
               jot_logical_and(jot_less(n, 8), jot_logical_not(jot_less(least, j)))) {
        alpha = jot_mul(0.5, alpha), n = jot_add(n, 1);
        jot_value y = x0, old = us, was = xs, sum = jot_zeros(JOT_F64), made;
        JOT_SCAN ((y, sum), (old, was, k, kk), (made)) {
            made = jot_add(old, jot_add(jot_mul(alpha, k), jot_dot(kk, jot_sub(y, was))));
            sum = jot_add(sum, cost(y, made));
            y = cart(y, made);
        }
        least = sum, best = made;
    }
    return best;
}
FUNCTION(controllers, jot_vmap(jot_fn(control)))
FUNCTION(controller, jot_fn(control))

// ---- a decoding step

enum { WIDTH = 128, HEADS = 4, LENGTH = 128 };
static jot_value rescaled(jot_value x)
{
    return jot_mul(x, jot_rsqrt(jot_add(jot_mean(jot_square(x), -1, JOT_KEEPDIMS), 1e-5)));
}
static jot_value attend_to(jot_value x, jot_value *keys, jot_value *values, jot_value at,
                           jot_value wq, jot_value wk, jot_value wv, jot_value wo, bool whole)
{
    jot_value h = rescaled(x), start = jot_stack(0, at, 0, 0);
    jot_value q = jot_reshape(jot_dot(h, wq), 1, HEADS, -1);
    jot_value k =
        jot_dynamic_update_slice(*keys, jot_reshape(jot_dot(h, wk), 1, HEADS, -1), start);
    jot_value v =
        jot_dynamic_update_slice(*values, jot_reshape(jot_dot(h, wv), 1, HEADS, -1), start);
    jot_value s = jot_mul(jot_einsum("thd,shd->hts", q, k), 0.17);
    *keys = k, *values = v;
    s = jot_where(jot_less_equal(jot_arange(JOT_I32, LENGTH), at), s, -1e30);
    jot_value o = jot_reshape(jot_einsum("hts,shd->thd", jot_softmax(s, -1), v), 1, WIDTH);
    return whole ? jot_add(x, jot_dot(o, wo)) : o;
}
#define DECODE_VALUES                                                                          \
    jot_value x, jot_value keys, jot_value values, jot_value at, jot_value wq, jot_value wk,   \
        jot_value wv, jot_value wo
static jot_value decode(DECODE_VALUES)
{
    return attend_to(x, &keys, &values, at, wq, wk, wv, wo, true);
}
static jot_value decode_short(DECODE_VALUES)
{
    return attend_to(x, &keys, &values, at, wq, wk, wv, wo, false);
}
static jot_value decode_many(DECODE_VALUES)
{
    JOT_SCAN ((x, keys, values, at), (), (), .length = LENGTH) {
        x = attend_to(x, &keys, &values, at, wq, wk, wv, wo, true);
        at = jot_add(at, 1);
    }
    return x;
}
FUNCTION(decode_whole, jot_fn(decode))
FUNCTION(decode_part, jot_fn(decode_short))
FUNCTION(decode_scan, jot_fn(decode_many))

// ---- products

static jot_value network(jot_value x, jot_value w, jot_value u)
{
    return jot_mean(jot_square(jot_dot(jot_gelu(jot_dot(x, w)), u)));
}
FUNCTION(network_grad, jot_grad(jot_fn(network), 1, 2))
static jot_value times(jot_value x, jot_value w) { return jot_dot(x, w); }
static jot_value times_rows(jot_value x, jot_value w) { return jot_dot(x, jot_transpose(w)); }
FUNCTION(product, jot_fn(times))
FUNCTION(product_rows, jot_fn(times_rows))

// ---- windows

static jot_value depthwise(jot_value x, jot_value w)
{
    return jot_conv_general_dilated(x, w, .padding = JOT_PADDING_SAME, .x = "NHWC", .w = "HWIO",
                                    .out = "NHWC", .feature_group_count = 64);
}
static jot_value depthwise_loss(jot_value x, jot_value w)
{
    return jot_mean(jot_square(depthwise(x, w)));
}
static jot_value pooled(jot_value x)
{
    return jot_max_pool(x, .window = JOT_DIMS(1, 3, 3, 1), .strides = JOT_DIMS(1, 2, 2, 1),
                        .padding = JOT_PADDING_SAME);
}
static jot_value pooled_loss(jot_value x) { return jot_mean(jot_square(pooled(x))); }
FUNCTION(depthwise_fn, jot_fn(depthwise))
FUNCTION(depthwise_dx, jot_grad(jot_fn(depthwise_loss), 0))
FUNCTION(depthwise_dw, jot_grad(jot_fn(depthwise_loss), 1))
FUNCTION(pool, jot_fn(pooled))
FUNCTION(pool_dx, jot_grad(jot_fn(pooled_loss)))

static jot_value resized(jot_value x)
{
    return jot_image_resize(x, JOT_RESIZE_LINEAR, 8, 112, 112, 16);
}
static jot_value resized_loss(jot_value x) { return jot_mean(jot_square(resized(x))); }
FUNCTION(resize, jot_fn(resized))
FUNCTION(resize_dx, jot_grad(jot_fn(resized_loss)))

// ---- the table

struct input {
    jot_dtype type;
    int64_t dims[5]; // up to 0
    double size;     // numbers are between -size and size, integers are from 0 to it; 0: 0.1
};
// The inputs of the neighbour are those of the program unless it has its own.
static const struct row {
    const char *name;
    jot_function (*function)(void), (*neighbour)(void);
    struct input in[9], in_neighbour[9];
    size_t n_out;  // 0: one
    double factor; // what the neighbour's time is multiplied by; 0: 1
} rows[] = {
#define IN(...) .in = {__VA_ARGS__}
#define IN_NEIGHBOUR(...) .in_neighbour = {__VA_ARGS__}
#define F64(...) {JOT_F64, {__VA_ARGS__}, 0}
#define F32(...) {JOT_F32, {__VA_ARGS__}, 0}
#define BF16(...) {JOT_BF16, {__VA_ARGS__}, 0}
#define F16(...) {JOT_F16, {__VA_ARGS__}, 0}
#define I32(most, ...) {JOT_I32, {__VA_ARGS__}, most}
#define BLEND F64(544, 22), F64(26, 22, 3, 4), F64(544, 4)
    {"rows of a product of three", rows_taken, rows_all, IN(BLEND, F64(3, 3), I32(544, 400)),
     IN_NEIGHBOUR(BLEND, F64(3, 3))},
    {"product of three", three_factors, three_by_hand, IN(BLEND)},
    {"parts joined", parts_joined, parts_alone, IN(F64(30000, 11), F64(30000)),
     IN_NEIGHBOUR(F64(30000, 11))},
    {"neighbours joined", neighbours_joined, neighbours,
     IN(F32(4, 512), F32(500, 512), F32(4, 512)), IN_NEIGHBOUR(F32(508, 512)), .factor = 2},
    {"gradients joined", slopes_joined, slopes_alone, IN(F64(30000, 11), F64(30000)),
     IN_NEIGHBOUR(F64(30000, 11))},
    {"recurrent weights split", lstm_split, lstm,
     IN(F64(2, 8, 14), F64(100, 14), F64(100, 14))},
    {"gradient of a long scan", long_scan_grad, long_scan, IN(F64(8, 2), F64(16392)),
     .factor = 4},
    {"update chosen in a while", update_chosen, update_outside, IN(F64(256, 10), F64(10, 10))},
    {"gradient of a bound of 1000", bound_far, bound_near, IN(F64(32, 32), F64(32)),
     .n_out = 2},
    {"gradients of 1000 filters", filters, filters_again, IN(F64(1000, 3), F64(500))},
    {"256 controllers", controllers, controller, IN(F64(256, 2), F64(256, 40, 1)),
     IN_NEIGHBOUR(F64(2), F64(40, 1)), .factor = 64},
#define SQUARE F32(WIDTH, WIDTH)
#define CACHE F32(LENGTH, HEADS, WIDTH / HEADS)
#define DECODING IN(F32(1, WIDTH), CACHE, CACHE, I32(LENGTH, 1), SQUARE, SQUARE, SQUARE, SQUARE)
    {"decoding step", decode_whole, decode_part, DECODING, .factor = 1.25},
    {"decoding steps in a scan", decode_scan, decode_whole, DECODING, .factor = LENGTH},
#define NETWORK(T) T(256, 512), T(512, 512), T(512, 128)
    {"network in bf16", network_grad, network_grad, IN(NETWORK(BF16)),
     IN_NEIGHBOUR(NETWORK(F32)), .n_out = 2, .factor = 1.25},
    {"network in f16", network_grad, network_grad, IN(NETWORK(F16)), IN_NEIGHBOUR(NETWORK(F32)),
     .n_out = 2, .factor = 1.25},
#define ROW_AND_MATRIX IN_NEIGHBOUR(F32(1, 1024), F32(1024, 1024))
    {"product of 2 rows", product, product, IN(F32(2, 1024), F32(1024, 1024)), ROW_AND_MATRIX},
    {"product of 4 rows", product, product, IN(F32(4, 1024), F32(1024, 1024)), ROW_AND_MATRIX},
    {"product of 1 row, turned", product_rows, product, ROW_AND_MATRIX,
     IN(F32(1, 1024), F32(1024, 1024))},
    {"product of 4 rows, turned", product_rows, product, IN(F32(4, 1024), F32(1024, 1024)),
     ROW_AND_MATRIX},
#define IMAGES F32(8, 56, 56, 64)
    {"d/dx of a depthwise conv", depthwise_dx, depthwise_fn, IN(IMAGES, F32(3, 3, 1, 64)),
     .factor = 3},
    {"d/dw of a depthwise conv", depthwise_dw, depthwise_fn, IN(IMAGES, F32(3, 3, 1, 64)),
     .factor = 3},
    {"gradient of a max pool", pool_dx, pool, IN(IMAGES), .factor = 8},
    {"gradient of a resize", resize_dx, resize, IN(F32(8, 56, 56, 16)), .factor = 3},
};
enum { ROWS = sizeof rows / sizeof *rows };

// ---- measuring

struct program {
    jot_executable *f;
    jot_array *in[9];
    size_t n_in, n_out;
    double best;
};

static jot_array *make_input(const struct input *of, int seed)
{
    int64_t dims[6], n = 1;
    int rank = 0;
    for (; of->dims[rank]; rank++)
        n *= dims[rank] = of->dims[rank];
    bool is_int = of->type == JOT_I32;
    // Of one integer there is no axis.
    dims[is_int && n == 1 ? 0 : rank] = JOT_END;
    int32_t *k = malloc((size_t)n * sizeof *k);
    double *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        int64_t r = (i * 7919 + (seed + 1) * 104729) % 10007;
        k[i] = is_int ? (int32_t)(r % (int64_t)of->size) : 0;
        x[i] = (of->size ? of->size : 0.1) * ((double)r / 5003.5 - 1);
    }
    jot_array *a = is_int ? jot_array_copy(JOT_I32, k, dims) : jot_array_copy(JOT_F64, x, dims);
    free(k), free(x);
    if (!a)
        must(JOT_ERR_ARGUMENT);
    if (!is_int && of->type != JOT_F64) {
        jot_scope *s = jot_scope_open();
        jot_array *converted;
        must(jot_eval(jot_astype(a, of->type), &converted));
        jot_scope_close(s);
        jot_array_release(a);
        a = converted;
    }
    return a;
}

static void call(struct program *p)
{
    jot_array *out[4];
    must(jot_call_list(p->f, p->n_in, p->in, p->n_out, out));
    for (size_t i = 0; i < p->n_out; i++)
        must(jot_array_wait(out[i]));
    jot_arrays_release(p->n_out, out);
}

static struct program make_program(const struct row *r, bool neighbour)
{
    const struct input *in = neighbour && r->in_neighbour[0].dims[0] ? r->in_neighbour : r->in;
    struct program p = {.f = jot_jit((neighbour ? r->neighbour : r->function)())};
    p.n_out = r->n_out ? r->n_out : 1;
    p.best = INFINITY;
    if (!p.f)
        must(JOT_ERR_ARGUMENT);
    for (; p.n_in < 9 && in[p.n_in].dims[0]; p.n_in++)
        p.in[p.n_in] = make_input(&in[p.n_in], (int)p.n_in);
    call(&p);
    return p;
}

// Calls for some 20 ms.
static void time_calls(struct program *p)
{
    double start = seconds(), now = start;
    while (now < start + 0.02) {
        double last = now;
        call(p);
        now = seconds();
        p->best = now - last < p->best ? now - last : p->best;
    }
}

static void end_program(struct program *p)
{
    jot_arrays_release(p->n_in, p->in);
    jot_executable_release(p->f);
}

// us of the row and what it should be.
static void time_row(const struct row *r, double time[2])
{
    struct program p = make_program(r, false), q = make_program(r, true);
    for (int i = 0; i < 12; i++)
        time_calls(&p), time_calls(&q);
    time[0] = 1e6 * p.best;
    time[1] = 1e6 * q.best * (r->factor ? r->factor : 1);
    end_program(&p), end_program(&q);
}

// The same in a process with the library of a directory, or this one.
static void time_row_with(const char *self, const char *library, const char *row,
                          double time[2])
{
    int ends[2];
    double t[2] = {NAN, NAN};
    if (pipe(ends) != 0)
        must(JOT_ERR_MEMORY);
    pid_t child = fork();
    if (child == 0) {
        if (library)
            setenv("LD_LIBRARY_PATH", library, 1);
        dup2(ends[1], STDOUT_FILENO);
        execl(self, self, "--row", row, (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    FILE *f = fdopen(ends[0], "r");
    if (fscanf(f, "%lf %lf", &t[0], &t[1]) != 2)
        t[0] = t[1] = NAN;
    fclose(f);
    waitpid(child, NULL, 0);
    for (int i = 0; i < 2; i++)
        time[i] = fmin(time[i], t[i]);
}

static bool is_wanted(const char *name, int n, char **words)
{
    bool wanted = n == 0;
    for (int i = 0; i < n; i++)
        wanted |= strstr(name, words[i]) != NULL;
    return wanted;
}

int main(int argc, char **argv)
{
    char library[4096] = "";
    setenv("JOT_THREADS", "1", 1);
    if (argc == 3 && strcmp(argv[1], "--row") == 0) {
        double time[2];
        time_row(&rows[atoi(argv[2])], time);
        printf("%.17g %.17g\n", time[0], time[1]);
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "--old") == 0) {
        snprintf(library, sizeof library, "%s/src", argv[2]);
        argv += 2, argc -= 2;
        printf("%-32s %10s %10s %10s %8s %8s %8s\n", "us", "old jot", "jot", "should be", "old",
               "ratio", "speed-up");
    } else {
        printf("%-32s %10s %10s %8s\n", "us", "jot", "should be", "ratio");
    }
    for (int i = 0; i < ROWS; i++) {
        const char *name = rows[i].name;
        char row[16];
        double time[2] = {INFINITY, INFINITY}, old[2] = {INFINITY, INFINITY};
        if (!is_wanted(name, argc - 1, argv + 1))
            continue;
        snprintf(row, sizeof row, "%d", i);
        for (int k = 0; k < (*library ? 3 : 1); k++) {
            if (*library)
                time_row_with("/proc/self/exe", library, row, old);
            time_row_with("/proc/self/exe", NULL, row, time);
        }
        // What it should be is what either library does of the neighbour.
        double least = fmin(time[1], old[1]);
        if (*library)
            printf("%-32s %10.1f %10.1f %10.1f %8.2f %8.2f %8.2f\n", name, old[0], time[0],
                   least, old[0] / least, time[0] / least, old[0] / time[0]);
        else
            printf("%-32s %10.1f %10.1f %8.2f\n", name, time[0], time[1], time[0] / time[1]);
        fflush(stdout);
    }
    return 0;
}
