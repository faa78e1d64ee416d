// SPDX-License-Identifier: Apache-2.0
// Optimisers of first order, with the names, formulas and defaults of Optax: gradient
// transformations that chain, schedules, and a state that is a tree.
//
//     JOT_OPTIM_STATE(state, struct net, adam);  // struct state: what Adam keeps of a struct net
//
//     jot_optimizer adam = jot_chain(jot_clip_by_global_norm(1.0), jot_adam(1e-3, .b1 = 0.8));
//     struct state s;
//     jot_optimizer_init(adam, p, &s);
//     JOT_FOR (i, 1000, p, s)
//         jot_optimizer_step(adam, JOT_GRAD(loss, p, x, y), &p, &s);
//
// An optimiser is a plain value: it holds all that it was made of, owns nothing, and goes into
// structs and out of functions.  It is used while tracing.  Its parts take the gradient g of
// each leaf p of the parameters, one after the other, and what comes out of the last is the
// update u: a step is p + u.  Below, m <- x says that a tree m of the state becomes x, c is the
// number of steps before this one and t = c + 1.
//
// Leaves are values of floating types; a gradient has the shape of its parameter, and is
// converted to its type.  Trees of the state have the types of the parameters.  For half
// floats, where 1 - b2 and eps would be lost, f32 stands in for their type, unlike in Optax: of
// the state and of all formulas; the update is rounded to it at the end.  Counts, schedules and
// norms are computed in f64 where a leaf is of f64, and else in f32.
//
// Types and shapes of the state are those that jot_optimizer_init gives; another one is
// refused.
//
// The first mistake in an optimiser sticks to it, and is reported where it is used: the values
// that come out are errors (JOT_ERR_ARGUMENT; JOT_ERR_DTYPE and JOT_ERR_SHAPE of leaves).
#ifndef JOT_OPTIM_H
#define JOT_OPTIM_H

#include "jot/control.h"
#include "jot/struct.h"

// ---- schedules ----

// A number that depends on the count of steps.  Its parts are not for users.
typedef struct jot_schedule_piece {
    int kind;
    bool is_staircase;
    double begin, number[4]; // the count at which it begins
    jot_value value;
} jot_schedule_piece;
typedef struct jot_schedule {
    int n;
    jot_schedule_piece piece[8];
    char mistake[120];
} jot_schedule;

// Named options of the schedules below, `.end = 1e-5`.
typedef struct jot_schedule_options {
    double end;      // the least (of a rising one the most) value; 0: none
    double exponent; // of the cosine; 0: 1
    int64_t begin;   // of an exponential: steps before it begins
    bool staircase;  // of an exponential: only whole multiples of the steps count
    double rise;     // of a cycle: the share of its steps before the peak, below 1; 0: 0.3
    double fall;     // of a linear cycle: the share at the end of the fall, between rise and 1;
                     // 0: 0.85
    double first;    // of a cycle: peak / first is where it begins; 0: 25
    double last;     // of a cycle: that, again divided by last, is where it ends; 0: 1e4
    size_t size;     // of this struct, set by the macro; 0 is this version
} jot_schedule_options;

JOT_BEGIN_C

// value at all counts.
JOT_API jot_schedule jot_constant_schedule(double value);
// The same for one real value of the trace, of rank 0; JOT_ERR_SHAPE of another where it is
// used.
JOT_API jot_schedule jot_value_schedule(jot_value value);
// (first - last) (1 - c / steps)^power + last, with c at most steps; steps > 0.
JOT_API jot_schedule jot_polynomial_schedule(double first, double last, double power,
                                             int64_t steps);
JOT_API jot_schedule jot_linear_schedule(double first, double last, int64_t steps);
// first rate^((c - begin) / steps) from c = begin on, and first before; steps > 0, rate > 0.
// Options: end, begin, staircase.  jot_exponential_decay(0.1, 1000, 0.5, .staircase = true)
// halves the rate every 1000 steps.
JOT_API jot_schedule jot_exponential_decay_with(double first, int64_t steps, double rate,
                                                const jot_schedule_options *options);
// (first - end) ((1 + cos(pi c / steps)) / 2)^exponent + end, with c at most steps; steps > 0.
// Options: end, exponent.
JOT_API jot_schedule jot_cosine_decay_schedule_with(double first, int64_t steps,
                                                    const jot_schedule_options *options);
// A line from first to peak over `warmup` steps, then that cosine down to end at `steps`, which
// counts from the beginning; 0 < warmup < steps.  Options: end, exponent.
JOT_API jot_schedule jot_warmup_cosine_decay_schedule_with(double first, double peak,
                                                           int64_t warmup, int64_t steps,
                                                           const jot_schedule_options *options);
// One cycle: up from peak / first to peak, and down again; by half cosines, to
// peak / first / last; or by lines, to peak / first at the share `fall` and on to that / last.
// Options: rise, first, last, and of the linear one fall.
// Smith and Topin, 2017, arXiv:1708.07120.
JOT_API jot_schedule jot_cosine_onecycle_schedule_with(int64_t steps, double peak,
                                                       const jot_schedule_options *options);
JOT_API jot_schedule jot_linear_onecycle_schedule_with(int64_t steps, double peak,
                                                       const jot_schedule_options *options);
// a before the count `boundary`, and from there on b, which counts from there.  A schedule in
// steps is joined of constants.  At most 8 pieces, of which a warm-up with a cosine has two.
JOT_API jot_schedule jot_join_schedules(jot_schedule a, int64_t boundary, jot_schedule b);

// The schedule at a count, one integer or float, in f32 or f64; another dtype is JOT_ERR_DTYPE.
JOT_API jot_value jot_schedule_value(jot_schedule s, jot_value count, jot_dtype dtype,
                                     const char *where);

JOT_END_C

// ---- optimisers ----

// Some leaves of a tree of n values, at most 256.  n = 0 is all of any tree.
//     JOT_MASK(struct net, w1, w2)              those of some members
//     JOT_MASK_EXCEPT(struct net, b1, b2)       all others
typedef struct jot_mask {
    int n;
    uint64_t bits[4];
} jot_mask;

// What an optimiser may be told; each says which it takes, and any other that is set is a
// mistake. 0 is the default, and a number below 0 stands for 0 where 0 makes sense.
typedef struct jot_optimizer_options {
    double b1, b2;       // how much of the means stays
    double eps;          // what keeps a division finite
    double eps_root;     // the same below the root
    double decay;        // how much of the mean of squares stays
    double momentum;     // how much of the last update stays
    double weight_decay; // so much of p is added to the direction
    double initial;      // what a tree or a number begins with
    double threshold;    // of jot_radam and jot_adafactor, described there
    double trust;        // of jot_lars, described there
    double power;        // of jot_schedule_free, described there
    int min_factored;    // of jot_adafactor, described there
    int every;           // of jot_dynamic_loss_scale, described there
    bool nesterov;       // looks ahead along the momentum
    bool centered;       // of jot_rmsprop: the variance instead of the mean square
    bool debiased;       // of jot_rmsprop, described there
    bool unscaled;       // of jot_adafactor: the rate is not relative to the size of p
    jot_mask mask;       // the leaves that weight_decay is for
    size_t size;         // of this struct, set by the macro; 0 is this version
} jot_optimizer_options;

// Its parts are not for users.
typedef struct jot_optimizer_part {
    int kind, covers; // how many parts behind it are inside
    double number[5];
    int first_piece, n_pieces; // of its schedule
    jot_mask mask;
} jot_optimizer_part;
typedef struct jot_optimizer {
    int n, n_pieces;
    jot_optimizer_part part[16];
    jot_schedule_piece piece[16];
    char mistake[120];
} jot_optimizer;

JOT_BEGIN_C

// The first n values, some of them; `is` has n entries; NULL: all.
JOT_API jot_mask jot_mask_make(size_t n, const bool *is);
// The others.  Of no mask, which is all values, it is no mask as well.
JOT_API jot_mask jot_mask_except(jot_mask mask);

// The rate is a C number, one value, or a schedule:
//     jot_adam(1e-3)  jot_adam(rate)  jot_adam(jot_cosine_decay_schedule(1e-3, 1000), .b2 = 0.95)
// With the rate -1 an optimiser gives its direction d as it is, for chains of one's own.
// Behind "keeps" stands what the state has of it, in the words of JOT_OPTIM_STATE.

// u = -rate g.  With momentum: m <- g + momentum m, u = -rate m; with nesterov
// u = -rate (g + momentum m).  Options: momentum, nesterov.  Keeps momentum, where it is set.
// Polyak, 1964; Nesterov, 1983; Sutskever and others, 2013.
JOT_API jot_optimizer jot_sgd_with(jot_schedule rate, const jot_optimizer_options *options);
// m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2,
//     d = m / (1 - b1^t) / (sqrt(v / (1 - b2^t) + eps_root) + eps),     u = -rate d;
// with nesterov b1 m / (1 - b1^(t + 1)) + (1 - b1) g / (1 - b1^t) stands for m / (1 - b1^t).
// Options: b1 0.9, b2 0.999, eps 1e-8, eps_root 0, nesterov.  Keeps adam.
// Kingma and Ba, 2014, arXiv:1412.6980; Dozat, 2016.
JOT_API jot_optimizer jot_adam_with(jot_schedule rate, const jot_optimizer_options *options);
// jot_adam with nesterov.
JOT_API jot_optimizer jot_nadam_with(jot_schedule rate, const jot_optimizer_options *options);
// u = -rate (d + weight_decay p) with the d of jot_adam.  Options: those, weight_decay 1e-4,
// mask.  Keeps adam.  Loshchilov and Hutter, 2017, arXiv:1711.05101.
JOT_API jot_optimizer jot_adamw_with(jot_schedule rate, const jot_optimizer_options *options);
// m <- b1 m + (1 - b1) g, v <- max(b2 v, |g| + eps), u = -rate m / (1 - b1^t) / v.
// Options: b1 0.9, b2 0.999, eps 1e-8.  Keeps adam.  Kingma and Ba, 2014.
JOT_API jot_optimizer jot_adamax_with(jot_schedule rate, const jot_optimizer_options *options);
// m and v of jot_adam; with s = 2 / (1 - b2) - 1 and r = s - 2 t b2^t / (1 - b2^t), d is that
// of jot_adam times sqrt((r - 4) (r - 2) s / ((s - 4) (s - 2) r)) where r >= threshold, and m /
// (1 - b1^t) elsewhere.  r is computed in f64, for it is a small difference.  Options: those of
// jot_adam, threshold 5.  Keeps adam.  Liu and others, 2019, arXiv:1908.03265.
JOT_API jot_optimizer jot_radam_with(jot_schedule rate, const jot_optimizer_options *options);
// u = -rate (sign(b1 m + (1 - b1) g) + weight_decay p), then m <- b2 m + (1 - b2) g.
// Options: b1 0.9, b2 0.99, weight_decay 1e-3, mask.  Keeps lion.
// Chen and others, 2023, arXiv:2302.06675.
JOT_API jot_optimizer jot_lion_with(jot_schedule rate, const jot_optimizer_options *options);
// u = -rate |p| / |e| e with e = d + weight_decay p and the d of jot_adam; where a norm is 0
// their quotient is 1.  Options: those of jot_adam, eps 1e-6, weight_decay 0, mask.  Keeps
// adam.  You and others, 2019, arXiv:1904.00962.
JOT_API jot_optimizer jot_lamb_with(jot_schedule rate, const jot_optimizer_options *options);
// e = g + weight_decay p, d = trust |p| / (|e| + eps) e (e where a norm is 0), both for the
// leaves of the mask only; m <- -rate d + momentum m, u = m; with nesterov u = -rate d +
// momentum m.  Options: weight_decay 0, trust 1e-3, eps 0, momentum 0.9, nesterov, mask.  Keeps
// momentum.  You and others, 2017, arXiv:1708.03888.
JOT_API jot_optimizer jot_lars_with(jot_schedule rate, const jot_optimizer_options *options);
// v <- v + g^2, u = -rate g / sqrt(v + eps), and 0 where v is 0.
// Options: initial (of v) 0.1, eps 1e-7.  Keeps adagrad.  Duchi and others, 2011.
JOT_API jot_optimizer jot_adagrad_with(jot_schedule rate, const jot_optimizer_options *options);
// With e = g + weight_decay p: v <- decay v + (1 - decay) e^2, d = sqrt(w + eps) / sqrt(v +
// eps) e, w <- decay w + (1 - decay) d^2, u = -rate d.  Options: decay 0.9, eps 1e-6,
// weight_decay 0, mask.  Keeps adadelta.  Zeiler, 2012, arXiv:1212.5701.
JOT_API jot_optimizer jot_adadelta_with(jot_schedule rate,
                                        const jot_optimizer_options *options);
// v <- decay v + (1 - decay) g^2, e = -rate g / sqrt(v + eps); with centered v - m^2 for v,
// where m <- decay m + (1 - decay) g; with debiased g / (sqrt(v / (1 - decay^t)) + eps) is the
// quotient. u = e, or with momentum u = n, n <- e + momentum n, and e + momentum n with
// nesterov.  Options: decay 0.9, eps 1e-8, initial (of v) 0, centered or debiased, momentum,
// nesterov.  Keeps rms, or centered_rms where it is set; then momentum where that is.  Tieleman
// and Hinton, 2012.
JOT_API jot_optimizer jot_rmsprop_with(jot_schedule rate, const jot_optimizer_options *options);
// Squares of g in rows and columns.  b = 1 - t^-decay, q = g^2 + eps;  of leaves whose two
// largest axes both have min_factored elements or more
//     r <- b r + (1 - b) mean of q along the largest, s <- b s + (1 - b) that along the other,
//     d = g sqrt(mean of r / (r s)),
// of others v <- b v + (1 - b) q, d = g / sqrt(v).  e = rate d / max(1, rms(d) / threshold),
// times max(rms(p), 1e-3) unless unscaled.  u = -e, or with momentum -m, m <- momentum m + (1 -
// momentum) e; weight_decay p is added before the sign turns.  Options: min_factored 128, decay
// 0.8, threshold 1, eps 1e-30, unscaled, momentum, weight_decay, mask.  Keeps adafactor; then
// ema where momentum is set.  Shazeer and Stern, 2018, arXiv:1804.04235.
JOT_API jot_optimizer jot_adafactor_with(jot_schedule rate,
                                         const jot_optimizer_options *options);

// ---- parts of chains ----

// The parts of n optimisers, one after the other, at most 16 in all; NULL: none.
JOT_API jot_optimizer jot_chain_list(size_t n, const jot_optimizer *parts);
// u = rate g.
JOT_API jot_optimizer jot_scale_by_schedule(jot_schedule rate);
// u = g limited to [-most, most];  u = g min(1, most / |g|) of each leaf, or of all leaves as
// one vector.  most > 0.
JOT_API jot_optimizer jot_clip_by_value(double most);
JOT_API jot_optimizer jot_clip_by_norm(double most);
JOT_API jot_optimizer jot_clip_by_global_norm(double most);
// u = g + rate p.
JOT_API jot_optimizer jot_add_decayed_weights_to(jot_schedule rate, jot_mask mask);
// m <- decay m + (1 - decay) g, u = m / (1 - decay^t), or m unless is_debiased.  0 <= decay <
// 1.  Keeps ema.
JOT_API jot_optimizer jot_ema(double decay, bool is_debiased);
// m <- decay m + (1 - decay) (p + g), u = g: at the end of a chain, a mean of the parameters,
// which begins with the first ones.  jot_optimizer_params gives it.  0 <= decay < 1.  Keeps
// params_ema.
JOT_API jot_optimizer jot_params_ema(double decay);
// At the end of a chain: s begins as p, and where t is a multiple of `every`, s <- s + rate
// (p + g - s) and u = s - p; else u = g.  every > 0.  Keeps lookahead.
// Zhang and others, 2019, arXiv:1907.08610.
JOT_API jot_optimizer jot_lookahead(int every, double rate);

// ---- what stands around others ----

// The optimiser for some leaves; others pass as they are.  So groups have options of their own:
//     jot_chain(jot_masked(jot_adam(1e-3), JOT_MASK(struct net, body)),
//               jot_masked(jot_sgd(0.1), JOT_MASK(struct net, head)))
// Its trees have the leaves of the mask alone.
JOT_API jot_optimizer jot_masked(jot_optimizer inner, jot_mask mask);
// The mean of the gradients of every `every` steps makes one step of the inner optimiser, and
// the others leave p as it is.  every > 0.  Keeps multi_steps, then what is inside, which
// counts its own steps.
JOT_API jot_optimizer jot_multi_steps(jot_optimizer inner, int every);
// For gradients of a loss times a scale, as half types need: g / scale goes to the inner
// optimiser.  A step whose gradients are not all finite leaves p and the inner state as they
// are, and halves the scale, which stays at least 1; after `every` others in a row it doubles.
// The scale is the first value of what is kept:
//     loss = jot_mul(s.loss_scale[0], loss)
// Options: initial 32768, every 2000.  Keeps loss_scale, then what is inside, which counts its
// own steps.  Micikevicius and others, 2017, arXiv:1710.03740.
JOT_API jot_optimizer jot_dynamic_loss_scale_with(jot_optimizer inner,
                                                  const jot_optimizer_options *options);
// Averages in place of a schedule that falls.  p is y = b1 x + (1 - b1) z; the inner optimiser,
// which should have no momentum, moves z; w = (the largest rate so far)^power, x becomes
// (1 - w / sum of w) x + w / sum of w z.  The rate is that of the inner optimiser, at t in
// place of c.  jot_optimizer_params gives x.  Options: b1 0.9, power 2.  Keeps schedule_free,
// then what is inside.  Defazio and others, 2024, arXiv:2405.15682.
JOT_API jot_optimizer jot_schedule_free_with(jot_optimizer inner, jot_schedule rate,
                                             const jot_optimizer_options *options);

// ---- use ----

// A state is a tree: one i32 that counts the steps, then what each part keeps, in the order of
// the chain.  Any struct or array of so many values will do, as one with names for saving:
//     struct state { jot_value count; struct net mean, square; };           of jot_adam
// jot_optimizer_leaves is their number for n parameters, JOT_OPTIM_STATE declares such a
// struct.
JOT_API size_t jot_optimizer_leaves(jot_optimizer optimizer, size_t n);

// The state before the first step.
JOT_API void jot_optimizer_init_tree(jot_optimizer optimizer, size_t n, const jot_value *p,
                                     size_t n_state, jot_value *state, const char *where);
// g becomes the update u, and the state that after the step; p stays.
JOT_API void jot_optimizer_update_tree(jot_optimizer optimizer, size_t n, jot_value *g,
                                       const jot_value *p, size_t n_state, jot_value *state,
                                       const char *where);
// The same, and p becomes p + u.
JOT_API void jot_optimizer_step_tree(jot_optimizer optimizer, size_t n, jot_value *g,
                                     jot_value *p, size_t n_state, jot_value *state,
                                     const char *where);
// The parameters to use after training, in out: x of jot_schedule_free, the mean of
// jot_params_ema, else p.
JOT_API void jot_optimizer_params_tree(jot_optimizer optimizer, size_t n, const jot_value *p,
                                       size_t n_state, const jot_value *state, jot_value *out,
                                       const char *where);

JOT_END_C

// ---------------------------------------------------------------------------------------
// The convenient layer.

// A struct of JOT_STRUCT that is the state of an optimiser for trees of the type TREE.  The
// words say what is kept, in the order of the chain; each is a member of that name, and
// stands there once:
//     JOT_OPTIM_STATE(state, struct net, multi_steps, adam);
// An optimiser that keeps nothing has one value as its state, the count.
#define JOT_OPTIM_STATE(NAME, TREE, ...)                                                       \
    JOT_STRUCT(NAME, count, JOT_EACH_(JOT_KEPT_, TREE, __VA_ARGS__))
#define JOT_KEPT_(TREE, word) word[JOT_KEPT_##word##_(sizeof(TREE) / sizeof(jot_value))]
#define JOT_KEPT_momentum_(n) (n)
#define JOT_KEPT_adam_(n) (2 * (n))
#define JOT_KEPT_lion_(n) (n)
#define JOT_KEPT_adagrad_(n) (n)
#define JOT_KEPT_adadelta_(n) (2 * (n))
#define JOT_KEPT_rms_(n) (n)
#define JOT_KEPT_centered_rms_(n) (2 * (n))
#define JOT_KEPT_adafactor_(n) (2 * (n))
#define JOT_KEPT_ema_(n) (n)
#define JOT_KEPT_params_ema_(n) (n)
#define JOT_KEPT_lookahead_(n) (n)
#define JOT_KEPT_multi_steps_(n) (2 + (n))
#define JOT_KEPT_loss_scale_(n) 3
#define JOT_KEPT_schedule_free_(n) (2 + (n))

#if defined(__GNUC__) && !defined(__cplusplus)
// The mask of members of the struct T of values, JOT_MASK(struct mlp, w1, w2), and that of all others.
#define JOT_MASK(T, ...)                                                                       \
    jot_mask_make(sizeof(T) / sizeof(jot_value),                                               \
                  __extension__((const bool[sizeof(T) / sizeof(jot_value)]){                   \
                      JOT_EACH_(JOT_IN_MASK_, T, __VA_ARGS__)}))
#define JOT_MASK_EXCEPT(T, ...) jot_mask_except(JOT_MASK(T, __VA_ARGS__))
#define JOT_IN_MASK_(T, member)                                                                \
    [offsetof(T, member) /                                                                     \
            sizeof(jot_value)...(offsetof(T, member) + sizeof(((T *)0)->member)) /             \
            sizeof(jot_value) -                                                                \
        1] = true
#endif

#if !defined(JOT_PLAIN)

// A rate, whatever it is, and options at the end, which C++ does not have.
#if defined(__cplusplus)
inline jot_schedule jot_rate_(jot_schedule s) { return s; }
inline jot_schedule jot_rate_(jot_value v) { return jot_value_schedule(v); }
inline jot_schedule jot_rate_(double x) { return jot_constant_schedule(x); }
inline jot_schedule jot_rate_(const jot_array *a)
{
    return jot_value_schedule(jot_from_array(a));
}
#define JOT_RATE_(x) jot_rate_(x)
#define JOT_NO_MASK_ jot_mask()
#else
static inline jot_schedule jot_rate_(jot_schedule s) { return s; }
static inline jot_schedule jot_rate_of_array_(const jot_array *a)
{
    return jot_value_schedule(jot_from_array(a));
}
#define JOT_RATE_(x)                                                                           \
    _Generic(x,                                                                                \
        jot_schedule: jot_rate_,                                                               \
        jot_value: jot_value_schedule,                                                         \
        jot_array *: jot_rate_of_array_,                                                       \
        const jot_array *: jot_rate_of_array_,                                                 \
        default: jot_constant_schedule)(x)
#define JOT_NO_MASK_ ((jot_mask){0})
#endif

// clang-format off
#define jot_exponential_decay(first, steps, ...)                                               \
    jot_exponential_decay_with(first, steps, JOT_AND_OPTIONS_(jot_schedule_options, "jot_exponential_decay", "(first, steps, rate)", __VA_ARGS__))
#define jot_cosine_decay_schedule(first, ...)                                                  \
    jot_cosine_decay_schedule_with(first, JOT_AND_OPTIONS_(jot_schedule_options, "jot_cosine_decay_schedule", "(first, steps)", __VA_ARGS__))
#define jot_warmup_cosine_decay_schedule(first, peak, warmup, ...)                             \
    jot_warmup_cosine_decay_schedule_with(first, peak, warmup, JOT_AND_OPTIONS_(jot_schedule_options, "jot_warmup_cosine_decay_schedule", "(first, peak, warmup, steps)", __VA_ARGS__))
#define jot_cosine_onecycle_schedule(steps, ...)                                               \
    jot_cosine_onecycle_schedule_with(steps, JOT_AND_OPTIONS_(jot_schedule_options, "jot_cosine_onecycle_schedule", "(steps, peak)", __VA_ARGS__))
#define jot_linear_onecycle_schedule(steps, ...)                                               \
    jot_linear_onecycle_schedule_with(steps, JOT_AND_OPTIONS_(jot_schedule_options, "jot_linear_onecycle_schedule", "(steps, peak)", __VA_ARGS__))
#define jot_schedule_value(s, count, dtype)                                                    \
    jot_schedule_value(s, JOT_VALUE_("jot_schedule_value", count), dtype, JOT_HERE ": jot_schedule_value(" #s ", " #count ", " #dtype ")")

// jot_adam(rate)  jot_adam(rate, .b1 = 0.8)
#if defined(__cplusplus)
#define JOT_RATED_(f, rate) f##_with(jot_rate_(rate), nullptr)
#else
#define JOT_RATED_(f, ...)                                                                     \
    f##_with(JOT_RATE_(JOT_FIRST_(__VA_ARGS__, 0)),                                            \
             JOT_OPTIONS_(jot_optimizer_options, #f " takes (rate), and named options", JOT_REST_(__VA_ARGS__, .size = sizeof(jot_optimizer_options))))
#endif
#define jot_sgd(...) JOT_RATED_(jot_sgd, __VA_ARGS__)
#define jot_adam(...) JOT_RATED_(jot_adam, __VA_ARGS__)
#define jot_nadam(...) JOT_RATED_(jot_nadam, __VA_ARGS__)
#define jot_adamw(...) JOT_RATED_(jot_adamw, __VA_ARGS__)
#define jot_adamax(...) JOT_RATED_(jot_adamax, __VA_ARGS__)
#define jot_radam(...) JOT_RATED_(jot_radam, __VA_ARGS__)
#define jot_lion(...) JOT_RATED_(jot_lion, __VA_ARGS__)
#define jot_lamb(...) JOT_RATED_(jot_lamb, __VA_ARGS__)
#define jot_lars(...) JOT_RATED_(jot_lars, __VA_ARGS__)
#define jot_adagrad(...) JOT_RATED_(jot_adagrad, __VA_ARGS__)
#define jot_adadelta(...) JOT_RATED_(jot_adadelta, __VA_ARGS__)
#define jot_rmsprop(...) JOT_RATED_(jot_rmsprop, __VA_ARGS__)
#define jot_adafactor(...) JOT_RATED_(jot_adafactor, __VA_ARGS__)

// jot_chain(jot_clip_by_global_norm(1.0), jot_adam(1e-3))
#if defined(__cplusplus)
template <class... T> inline jot_optimizer jot_chain(T... parts)
{
    const jot_optimizer list[] = {parts...};
    return jot_chain_list(sizeof...(parts), list);
}
#else
#define jot_chain(...)                                                                         \
    jot_chain_list(JOT_ARGUMENTS_(__VA_ARGS__), ((const jot_optimizer[]){__VA_ARGS__}))
#endif
// jot_scale(-1e-3)  jot_add_decayed_weights(1e-4)  jot_add_decayed_weights(1e-4, mask)
#define jot_scale(rate) jot_scale_by_schedule(JOT_RATE_(rate))
#define jot_add_decayed_weights(...)                                                           \
    jot_add_decayed_weights_to(JOT_RATE_(JOT_FIRST_(__VA_ARGS__, 0)), JOT_SECOND_(__VA_ARGS__, JOT_NO_MASK_, 0))
#if defined(__cplusplus)
#define jot_dynamic_loss_scale(inner) jot_dynamic_loss_scale_with(inner, nullptr)
#define jot_schedule_free(inner, rate) jot_schedule_free_with(inner, jot_rate_(rate), nullptr)
#else
#define jot_dynamic_loss_scale(...)                                                            \
    jot_dynamic_loss_scale_with(JOT_AND_OPTIONS_(jot_optimizer_options, "jot_dynamic_loss_scale", "(inner)", __VA_ARGS__))
#define jot_schedule_free(inner, ...)                                                          \
    jot_schedule_free_with(inner, JOT_RATE_(JOT_FIRST_(__VA_ARGS__, 0)),                       \
                           JOT_OPTIONS_(jot_optimizer_options, "jot_schedule_free takes (inner, rate), and named options", JOT_REST_(__VA_ARGS__, .size = sizeof(jot_optimizer_options))))
#endif
// clang-format on

// p is a tree; s, and p of a step and g of an update, point to one.
#define jot_optimizer_init(o, p, s)                                                            \
    jot_optimizer_init_tree(o, JOT_TREE_("jot_optimizer_init", p),                             \
                            JOT_TREE_("jot_optimizer_init", *(s)),                             \
                            JOT_HERE ": jot_optimizer_init(" #o ", " #p ", " #s ")")
#define jot_optimizer_update(o, g, p, s)                                                       \
    (JOT_ONE_TYPE_("jot_optimizer_update", g, &(p)),                                           \
     jot_optimizer_update_tree(o, JOT_TREE_("jot_optimizer_update", *(g)), JOT_LEAVES_(p),     \
                               JOT_TREE_("jot_optimizer_update", *(s)),                        \
                               JOT_HERE ": jot_optimizer_update(" #o ", " #g ", " #p ", " #s   \
                                        ")"))
#define JOT_ONE_TYPE_(name, g, p)                                                              \
    ((void)JOT_MUST_(JOT_SAME_TYPE_(g, p), name " takes a gradient of the type of the "        \
                                                "parameters"))
#if defined(JOT_AUTO_)
#define jot_optimizer_step(o, g, p, s)                                                         \
    JOT_OPTIMIZER_STEP_(o, g, p, s, JOT_CAT(jot_g_, __COUNTER__),                              \
                        "jot_optimizer_step(" #o ", " #g ", " #p ", " #s ")")
#define JOT_OPTIMIZER_STEP_(o, g, p, s, t, text)                                               \
    __extension__({                                                                            \
        JOT_AUTO_ t = (g);                                                                     \
        JOT_NO_ARRAY_("jot_optimizer_step", t);                                                \
        JOT_ONE_TYPE_("jot_optimizer_step", &t, p);                                            \
        jot_optimizer_step_tree(o, JOT_TREE_("jot_optimizer_step", t), JOT_LEAVES_(*(p)),      \
                                JOT_TREE_("jot_optimizer_step", *(s)), JOT_HERE ": " text);    \
    })
// The parameters to use, of the type of p; s is the state itself.
#define jot_optimizer_params(o, p, s)                                                          \
    JOT_OPTIMIZER_PARAMS_(o, p, s, JOT_CAT(jot_p_, __COUNTER__),                               \
                          "jot_optimizer_params(" #o ", " #p ", " #s ")")
#define JOT_OPTIMIZER_PARAMS_(o, p, s, t, text)                                                \
    __extension__({                                                                            \
        JOT_AUTO_ t = (p);                                                                     \
        JOT_NO_ARRAY_("jot_optimizer_params", t);                                              \
        jot_optimizer_params_tree(o, JOT_TREE_("jot_optimizer_params", t),                     \
                                  JOT_TREE_("jot_optimizer_params", s), JOT_LEAVES_(t),        \
                                  JOT_HERE ": " text);                                         \
        t;                                                                                     \
    })
#endif

#endif // JOT_PLAIN

#endif
