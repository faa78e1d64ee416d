// SPDX-License-Identifier: Apache-2.0
// What each part of an optimiser does to a leaf: the formulas of Optax, in its order of
// operations.
#include "library/formula.h"
#include "library/optimizer.h"

#include <math.h>

typedef struct optimizer_leaf leaf;

jot_value library_as(jot_value x, jot_value like)
{
    return jot_convert(x, jot_value_dtype(like));
}

// ---------------------------------------------------------------------------------------
// Means

// decay m + (1 - decay) x.
static jot_value mean_with(jot_value m, jot_value x, double decay)
{
    return add(mul(num(1 - decay), x), mul(num(decay), m));
}

// The number of this step, counted from 1 + later.
static jot_value step_number(const leaf *x, int later)
{
    return jot_convert(add(x->count, jot_from_int(1 + later)), x->real);
}

// m / (1 - decay^t), where t is `later` steps ahead.
static jot_value debiased(const leaf *x, jot_value m, double decay, int later)
{
    jot_value power = jot_pow(num(decay), step_number(x, later));
    return over(m, library_as(sub(num(1), power), m));
}

static void momentum(leaf *x)
{
    jot_value *m = x->tree[0];
    *m = add(x->g, mul(num(x->number[0]), *m));
    x->g = x->number[1] != 0 ? add(x->g, mul(num(x->number[0]), *m)) : *m;
}

static void ema(leaf *x)
{
    *x->tree[0] = mean_with(*x->tree[0], x->g, x->number[0]);
    x->g = x->number[1] != 0 ? debiased(x, *x->tree[0], x->number[0], 0) : *x->tree[0];
}

static void params_ema(leaf *x)
{
    *x->tree[0] = mean_with(*x->tree[0], add(x->p, x->g), x->number[0]);
}

static jot_value begin_as_params(const leaf *x, int k)
{
    (void)k;
    return x->p;
}

static void lookahead(leaf *x)
{
    jot_value *slow = x->tree[0], fast = add(x->p, x->g);
    jot_value rest =
        jot_rem(add(x->count, jot_from_int(1)), jot_from_int((int64_t)x->number[0]));
    jot_value is_sync = jot_equal(rest, jot_from_int(0));
    *slow = jot_where(is_sync, add(*slow, mul(num(x->number[1]), sub(fast, *slow))), *slow);
    x->g = jot_where(is_sync, sub(*slow, x->p), x->g);
}

// ---------------------------------------------------------------------------------------
// Adam and its kin

static void update_moments(leaf *x)
{
    *x->tree[0] = mean_with(*x->tree[0], x->g, x->number[0]);
    *x->tree[1] = mean_with(*x->tree[1], jot_square(x->g), x->number[1]);
}

// The first moment without its bias; Nesterov's looks one step ahead.
static jot_value direction(const leaf *x, bool is_nesterov)
{
    double b1 = x->number[0];
    return is_nesterov
               ? mean_with(debiased(x, *x->tree[0], b1, 1), debiased(x, x->g, b1, 0), b1)
               : debiased(x, *x->tree[0], b1, 0);
}

static jot_value root_of_square(const leaf *x)
{
    jot_value v = debiased(x, *x->tree[1], x->number[1], 0);
    v = x->number[3] == 0 ? v : add(v, num(x->number[3]));
    return add(jot_sqrt(v), num(x->number[2]));
}

static void adam_like(leaf *x, bool is_nesterov)
{
    update_moments(x);
    x->g = over(direction(x, is_nesterov), root_of_square(x));
}

static void adam(leaf *x) { adam_like(x, false); }
static void nadam(leaf *x) { adam_like(x, true); }

static void radam_like(leaf *x, bool is_nesterov)
{
    double b2 = x->number[1], most = 2 / (1 - b2) - 1;
    jot_value t = jot_convert(add(x->count, jot_from_int(1)), JOT_F64),
              power = jot_pow(num(b2), t);
    jot_value r = sub(num(most), over(mul(mul(num(2), t), power), sub(num(1), power)));
    jot_value is_sure = jot_greater_equal(r, num(x->number[4]));
    // Where it is not used the root has any argument that it is defined for.
    jot_value s = jot_where(is_sure, r, num(fmax(x->number[4], 5)));
    jot_value factor = over(mul(mul(sub(s, num(4)), sub(s, num(2))), num(most)),
                            mul(num((most - 4) * (most - 2)), s));
    update_moments(x);
    jot_value d = direction(x, is_nesterov);
    jot_value sure = over(mul(library_as(jot_sqrt(factor), d), d), root_of_square(x));
    x->g = jot_where(is_sure, sure, d);
}

static void radam(leaf *x) { radam_like(x, false); }
static void radam_nesterov(leaf *x) { radam_like(x, true); }

static void adamax(leaf *x)
{
    jot_value *v = x->tree[1];
    *x->tree[0] = mean_with(*x->tree[0], x->g, x->number[0]);
    *v = jot_maximum(add(jot_abs(x->g), num(x->number[2])), mul(num(x->number[1]), *v));
    x->g = over(direction(x, false), *v);
}

static void lion(leaf *x)
{
    jot_value u = jot_sign(mean_with(*x->tree[0], x->g, x->number[0]));
    *x->tree[0] = mean_with(*x->tree[0], x->g, x->number[1]);
    x->g = u;
}

// ---------------------------------------------------------------------------------------
// Squares

static jot_value begin_with_number(const leaf *x, int k)
{
    return k ? jot_zeros_like(x->p) : jot_full_like(x->p, num(x->number[0]));
}

static void adagrad(leaf *x)
{
    jot_value *v = x->tree[0];
    *v = add(jot_square(x->g), *v);
    jot_value is_some = jot_greater(*v, num(0));
    jot_value root = jot_rsqrt(jot_where(is_some, add(*v, num(x->number[1])), num(1)));
    x->g = mul(jot_where(is_some, root, num(0)), x->g);
}

static void adadelta(leaf *x)
{
    jot_value *v = x->tree[0], *w = x->tree[1], eps = num(x->number[1]);
    *v = mean_with(*v, jot_square(x->g), x->number[0]);
    x->g = mul(over(jot_sqrt(add(*w, eps)), jot_sqrt(add(*v, eps))), x->g);
    *w = mean_with(*w, jot_square(x->g), x->number[0]);
}

static void rms(leaf *x)
{
    jot_value *v = x->tree[0];
    *v = mean_with(*v, jot_square(x->g), x->number[1]);
    x->g = mul(jot_rsqrt(add(*v, num(x->number[2]))), x->g);
}

static void centered_rms(leaf *x)
{
    jot_value *v = x->tree[0], *m = x->tree[1];
    *m = mean_with(*m, x->g, x->number[1]);
    *v = mean_with(*v, jot_square(x->g), x->number[1]);
    x->g = mul(jot_rsqrt(add(sub(*v, jot_square(*m)), num(x->number[2]))), x->g);
}

static void debiased_rms(leaf *x)
{
    jot_value *v = x->tree[0];
    *v = mean_with(*v, jot_square(x->g), x->number[1]);
    jot_value root = jot_sqrt(debiased(x, *v, x->number[1], 0));
    x->g = mul(over(num(1), add(root, num(x->number[2]))), x->g);
}

// The largest axis of p and the next, the last of equal ones first; false where the next has
// fewer elements than a leaf that is factored.
static bool find_axes(const leaf *x, int *largest, int *next)
{
    int rank = jot_value_rank(x->p), a = -1, b = -1;
    for (int i = 0; i < rank; i++) {
        int64_t n = jot_value_dim(x->p, i);
        if (a < 0 || n >= jot_value_dim(x->p, a)) {
            b = a;
            a = i;
        } else if (b < 0 || n >= jot_value_dim(x->p, b)) {
            b = i;
        }
    }
    *largest = a;
    *next = b;
    return b >= 0 && (double)jot_value_dim(x->p, b) >= x->number[0];
}

static jot_value mean_along(jot_value x, int axis)
{
    return jot_mean_axes(x, (const int[]){axis, JOT_KEEPDIMS, JOT_END});
}

static jot_value begin_factored(const leaf *x, int k)
{
    int axis[2];
    jot_value zeros = jot_zeros_like(x->p);
    if (find_axes(x, &axis[0], &axis[1]))
        return jot_slice_axis(zeros, axis[k], 0, 1, 1);
    return k == 0 ? zeros : jot_zeros_dims(jot_value_dtype(x->p), (const int64_t[]){JOT_END});
}

static void factored(leaf *x)
{
    jot_value *r = x->tree[0], *s = x->tree[1];
    jot_value q = add(jot_square(x->g), num(x->number[2]));
    jot_value rest = jot_pow(step_number(x, 0), num(-x->number[1]));
    jot_value kept = sub(num(1), rest), decay = library_as(kept, q);
    jot_value some = library_as(sub(num(1), kept), q);
    int largest, next;
    if (!find_axes(x, &largest, &next)) {
        *r = add(mul(decay, *r), mul(some, q));
        x->g = mul(x->g, jot_rsqrt(*r));
        return;
    }
    *r = add(mul(decay, *r), mul(some, mean_along(q, largest)));
    *s = add(mul(decay, *s), mul(some, mean_along(q, next)));
    jot_value row = jot_rsqrt(over(*r, mean_along(*r, next)));
    x->g = mul(mul(x->g, row), jot_rsqrt(*s));
}

// ---------------------------------------------------------------------------------------
// Sizes

// The root of a sum or a mean of squares, whose derivative at 0 is 0.
static jot_value safe_root(jot_value square)
{
    jot_value is_some = jot_greater(square, num(0));
    return jot_where(is_some, jot_sqrt(jot_where(is_some, square, num(1))), num(0));
}

static jot_value norm(const leaf *x, jot_value v)
{
    return safe_root(jot_sum_axes(jot_square(jot_convert(v, x->real)), NULL));
}

static jot_value root_mean_square(const leaf *x, jot_value v)
{
    return safe_root(jot_mean_axes(jot_square(jot_convert(v, x->real)), NULL));
}

static void scale(leaf *x)
{
    jot_value rate = x->number[0] < 0 ? jot_neg(x->rate) : x->rate;
    x->g = mul(library_as(rate, x->g), x->g);
}

static void decay_weights(leaf *x) { x->g = add(x->g, mul(library_as(x->rate, x->p), x->p)); }

static void clip_value(leaf *x)
{
    x->g = jot_clip(x->g, num(-x->number[0]), num(x->number[0]));
}

static void clip_norm(leaf *x)
{
    jot_value size = norm(x, x->g);
    jot_value is_small = jot_less(size, num(x->number[0]));
    jot_value divisor = library_as(jot_where(is_small, num(1), size), x->g);
    x->g = jot_where(is_small, x->g, mul(over(x->g, divisor), num(x->number[0])));
}

static void clip_rms(leaf *x)
{
    jot_value size = over(root_mean_square(x, x->g), num(x->number[0]));
    x->g = over(x->g, library_as(jot_maximum(num(1), size), x->g));
}

static void param_rms(leaf *x)
{
    jot_value size = jot_maximum(root_mean_square(x, x->p), num(x->number[0]));
    x->g = mul(x->g, library_as(size, x->g));
}

static void trust(leaf *x)
{
    jot_value of_p = norm(x, x->p), of_g = norm(x, x->g);
    jot_value is_some = jot_logical_and(jot_greater(of_p, num(0)), jot_greater(of_g, num(0)));
    jot_value divisor = jot_where(is_some, add(of_g, num(x->number[1])), num(1));
    jot_value ratio = over(mul(num(x->number[0]), of_p), divisor);
    x->g = mul(x->g, library_as(jot_where(is_some, ratio, num(1)), x->g));
}

const struct optimizer_row library_optimizer_rows[PART_KINDS] = {
    [PART_SCALE] = {"scale", .step = scale},
    [PART_DECAY] = {"add_decayed_weights", .step = decay_weights},
    [PART_CLIP_VALUE] = {"clip_by_value", .step = clip_value},
    [PART_CLIP_NORM] = {"clip_by_norm", .step = clip_norm},
    [PART_CLIP_GLOBAL] = {"clip_by_global_norm"},
    [PART_CLIP_RMS] = {"clip_by_rms", .step = clip_rms},
    [PART_PARAM_RMS] = {"scale_by_rms_of_parameters", .step = param_rms},
    [PART_TRUST] = {"scale_by_trust_ratio", .step = trust},
    [PART_MOMENTUM] = {"momentum", 0, 1, momentum, NULL},
    [PART_ADAM] = {"adam", 0, 2, adam, NULL},
    [PART_NADAM] = {"adam", 0, 2, nadam, NULL},
    [PART_RADAM] = {"adam", 0, 2, radam, NULL},
    [PART_RADAM_NESTEROV] = {"adam", 0, 2, radam_nesterov, NULL},
    [PART_ADAMAX] = {"adam", 0, 2, adamax, NULL},
    [PART_LION] = {"lion", 0, 1, lion, NULL},
    [PART_ADAGRAD] = {"adagrad", 0, 1, adagrad, begin_with_number},
    [PART_ADADELTA] = {"adadelta", 0, 2, adadelta, NULL},
    [PART_RMS] = {"rms", 0, 1, rms, begin_with_number},
    [PART_CENTERED_RMS] = {"centered_rms", 0, 2, centered_rms, begin_with_number},
    [PART_RMS_DEBIASED] = {"rms", 0, 1, debiased_rms, begin_with_number},
    [PART_FACTORED] = {"adafactor", 0, 2, factored, begin_factored},
    [PART_EMA] = {"ema", 0, 1, ema, NULL},
    [PART_PARAMS_EMA] = {"params_ema", 0, 1, params_ema, begin_as_params},
    [PART_LOOKAHEAD] = {"lookahead", 0, 1, lookahead, begin_as_params},
    [PART_MASKED] = {"masked"},
    [PART_MULTI_STEPS] = {"multi_steps", 2, 1, NULL, NULL},
    [PART_LOSS_SCALE] = {"loss_scale", 3, 0, NULL, NULL},
    [PART_SCHEDULE_FREE] = {"schedule_free", 2, 1, NULL, begin_as_params},
};
