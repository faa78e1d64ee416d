// SPDX-License-Identifier: Apache-2.0
// Optimisers as chains of parts, what stands around them, and what they may be told.
#include "library/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_PARTS = sizeof((jot_optimizer *)0)->part / sizeof(jot_optimizer_part),
    MOST_PIECES = sizeof((jot_optimizer *)0)->piece / sizeof(jot_schedule_piece),
    MOST_MASKED = 8 * sizeof((jot_mask *)0)->bits,
};

// ---------------------------------------------------------------------------------------
// Masks

jot_mask jot_mask_make(size_t n, const bool *is)
{
    jot_mask mask = {.n = n > MOST_MASKED ? MOST_MASKED + 1 : (int)n};
    for (size_t i = 0; i < n && i < MOST_MASKED; i++)
        mask.bits[i / 64] |= (uint64_t)(!is || is[i]) << i % 64;
    return mask;
}

jot_mask jot_mask_except(jot_mask mask)
{
    for (int i = 0; i < 4; i++)
        mask.bits[i] = ~mask.bits[i];
    return mask;
}

// ---------------------------------------------------------------------------------------
// Parts

static void mistake(jot_optimizer *o, const char *name, const char *what, double is,
                    const char *right)
{
    if (!o->mistake[0])
        snprintf(o->mistake, sizeof o->mistake, "%s: %s is %g: %s", name, what, is, right);
}

static void copy_mistake(jot_optimizer *o, const char *text)
{
    if (!o->mistake[0] && text[0])
        snprintf(o->mistake, sizeof o->mistake, "%s", text);
}

static jot_optimizer_part *append(jot_optimizer *o, jot_optimizer_part part)
{
    if (o->n == MOST_PARTS) {
        mistake(o, "jot_chain", "the number of parts", o->n + 1, "at most 16");
        return &o->part[MOST_PARTS - 1];
    }
    o->part[o->n] = part;
    return &o->part[o->n++];
}

static jot_optimizer_part *append_scheduled(jot_optimizer *o, jot_optimizer_part part,
                                            const jot_schedule *s)
{
    copy_mistake(o, s->mistake);
    part.first_piece = o->n_pieces;
    part.n_pieces = s->n;
    if (!library_is_schedule(s->n, s->piece)) {
        copy_mistake(o, "this is no schedule: a function of jot makes one");
        part.n_pieces = 0;
    } else if (s->n > MOST_PIECES - o->n_pieces) {
        mistake(o, "an optimiser", "the number of pieces of its schedules", o->n_pieces + s->n,
                "at most 16");
        part.n_pieces = 0;
    }
    memcpy(o->piece + o->n_pieces, s->piece, sizeof *s->piece * (size_t)part.n_pieces);
    o->n_pieces += part.n_pieces;
    return append(o, part);
}

static void append_chain(jot_optimizer *o, const jot_optimizer *chain)
{
    int pieces = o->n_pieces;
    copy_mistake(o, chain->mistake);
    if (chain->n < 0 || chain->n > MOST_PARTS || chain->n_pieces < 0 ||
        chain->n_pieces > MOST_PIECES - pieces) {
        mistake(o, "an optimiser", "the number of pieces of its schedules",
                pieces + chain->n_pieces, "at most 16");
        return;
    }
    memcpy(o->piece + pieces, chain->piece, sizeof *chain->piece * (size_t)chain->n_pieces);
    o->n_pieces += chain->n_pieces;
    for (int i = 0; i < chain->n; i++)
        append(o, chain->part[i])->first_piece += pieces;
}

static jot_optimizer around(jot_optimizer_part part, const jot_optimizer *inner)
{
    jot_optimizer o = {0};
    part.covers = inner->n;
    append(&o, part);
    append_chain(&o, inner);
    return o;
}

static jot_optimizer single(int kind, double a, double b)
{
    jot_optimizer o = {0};
    append(&o, (jot_optimizer_part){.kind = kind, .number = {a, b}});
    return o;
}

// ---------------------------------------------------------------------------------------
// Options

enum {
    B1 = 1 << 0,
    B2 = 1 << 1,
    EPS = 1 << 2,
    EPS_ROOT = 1 << 3,
    DECAY = 1 << 4,
    MOMENTUM = 1 << 5,
    WEIGHT_DECAY = 1 << 6,
    INITIAL = 1 << 7,
    THRESHOLD = 1 << 8,
    TRUST = 1 << 9,
    POWER = 1 << 10,
    MIN_FACTORED = 1 << 11,
    EVERY = 1 << 12,
    NESTEROV = 1 << 13,
    CENTERED = 1 << 14,
    DEBIASED = 1 << 15,
    UNSCALED = 1 << 16,
    MASK = 1 << 17,
    OF_ADAM = B1 | B2 | EPS | EPS_ROOT | NESTEROV,
    WITH_DECAY = WEIGHT_DECAY | MASK,
};

// The options of one optimiser, with a mistake for each that it does not take.  Means keep less
// than all.
static jot_optimizer_options read(jot_optimizer *o, const char *name, unsigned takes,
                                  const jot_optimizer_options *options)
{
    jot_optimizer_options x = options ? *options : (jot_optimizer_options){0};
    const struct {
        const char *name;
        double is, most;
    } given[] = {
        {"b1", x.b1, 1},
        {"b2", x.b2, 1},
        {"eps", x.eps, INFINITY},
        {"eps_root", x.eps_root, INFINITY},
        {"decay", x.decay, 1},
        {"momentum", x.momentum, INFINITY},
        {"weight_decay", x.weight_decay, INFINITY},
        {"initial", x.initial, INFINITY},
        {"threshold", x.threshold, INFINITY},
        {"trust", x.trust, INFINITY},
        {"power", x.power, INFINITY},
        {"min_factored", x.min_factored, INFINITY},
        {"every", x.every, INFINITY},
        {"nesterov", x.nesterov, INFINITY},
        {"centered", x.centered, INFINITY},
        {"debiased", x.debiased, INFINITY},
        {"unscaled", x.unscaled, INFINITY},
        {"mask", x.mask.n, INFINITY},
    };
    for (unsigned i = 0; i < sizeof given / sizeof *given; i++) {
        if (given[i].is != 0 && !(takes >> i & 1))
            mistake(o, name, given[i].name, given[i].is, "it has no such option");
        else if (!(given[i].is < given[i].most))
            mistake(o, name, given[i].name, given[i].is, "below 1, or finite");
    }
    return x;
}

// 0 is the default, and a number below 0 is 0.
static double number(double x, double otherwise) { return x == 0 ? otherwise : x < 0 ? 0 : x; }

// ---------------------------------------------------------------------------------------
// Chains

static void append_scale(jot_optimizer *o, double sign, const jot_schedule *rate)
{
    append_scheduled(o, (jot_optimizer_part){.kind = PART_SCALE, .number = {sign}}, rate);
}

static void append_decay(jot_optimizer *o, double weight_decay, jot_mask mask)
{
    if (weight_decay <= 0)
        return;
    jot_schedule s = jot_constant_schedule(weight_decay);
    if (mask.n)
        append(o, (jot_optimizer_part){.kind = PART_MASKED, .covers = 1, .mask = mask});
    append_scheduled(o, (jot_optimizer_part){.kind = PART_DECAY}, &s);
}

static void append_momentum(jot_optimizer *o, double decay, bool is_nesterov)
{
    if (decay > 0)
        append(o, (jot_optimizer_part){.kind = PART_MOMENTUM, .number = {decay, is_nesterov}});
}

static void append_adam(jot_optimizer *o, int kind, const jot_optimizer_options *x, double eps)
{
    append(o, (jot_optimizer_part){.kind = kind,
                                   .number = {number(x->b1, 0.9), number(x->b2, 0.999),
                                              number(x->eps, eps), number(x->eps_root, 0),
                                              number(x->threshold, 5)}});
}

jot_optimizer jot_sgd_with(jot_schedule rate, const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x = read(&o, "jot_sgd", MOMENTUM | NESTEROV, options);
    append_momentum(&o, x.momentum, x.nesterov);
    append_scale(&o, -1, &rate);
    return o;
}

static jot_optimizer adam(const char *name, unsigned takes, bool is_nesterov,
                          double weight_decay, jot_schedule rate,
                          const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x = read(&o, name, takes, options);
    append_adam(&o, is_nesterov || x.nesterov ? PART_NADAM : PART_ADAM, &x, 1e-8);
    append_decay(&o, number(x.weight_decay, weight_decay), x.mask);
    append_scale(&o, -1, &rate);
    return o;
}

jot_optimizer jot_adam_with(jot_schedule rate, const jot_optimizer_options *options)
{
    return adam("jot_adam", OF_ADAM, false, 0, rate, options);
}

jot_optimizer jot_nadam_with(jot_schedule rate, const jot_optimizer_options *options)
{
    return adam("jot_nadam", OF_ADAM, true, 0, rate, options);
}

jot_optimizer jot_adamw_with(jot_schedule rate, const jot_optimizer_options *options)
{
    return adam("jot_adamw", OF_ADAM | WITH_DECAY, false, 1e-4, rate, options);
}

jot_optimizer jot_adamax_with(jot_schedule rate, const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x = read(&o, "jot_adamax", B1 | B2 | EPS, options);
    append_adam(&o, PART_ADAMAX, &x, 1e-8);
    append_scale(&o, -1, &rate);
    return o;
}

jot_optimizer jot_radam_with(jot_schedule rate, const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x = read(&o, "jot_radam", OF_ADAM | THRESHOLD, options);
    append_adam(&o, x.nesterov ? PART_RADAM_NESTEROV : PART_RADAM, &x, 1e-8);
    append_scale(&o, -1, &rate);
    return o;
}

jot_optimizer jot_lion_with(jot_schedule rate, const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x = read(&o, "jot_lion", B1 | B2 | WITH_DECAY, options);
    append(&o, (jot_optimizer_part){.kind = PART_LION,
                                    .number = {number(x.b1, 0.9), number(x.b2, 0.99)}});
    append_decay(&o, number(x.weight_decay, 1e-3), x.mask);
    append_scale(&o, -1, &rate);
    return o;
}

jot_optimizer jot_lamb_with(jot_schedule rate, const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x =
        read(&o, "jot_lamb", (OF_ADAM | WITH_DECAY) & ~(unsigned)NESTEROV, options);
    append_adam(&o, PART_ADAM, &x, 1e-6);
    append_decay(&o, x.weight_decay, x.mask);
    append(&o, (jot_optimizer_part){.kind = PART_TRUST, .number = {1}});
    append_scale(&o, -1, &rate);
    return o;
}

jot_optimizer jot_lars_with(jot_schedule rate, const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x =
        read(&o, "jot_lars", WITH_DECAY | TRUST | EPS | MOMENTUM | NESTEROV, options);
    append_decay(&o, x.weight_decay, x.mask);
    if (x.mask.n)
        append(&o, (jot_optimizer_part){.kind = PART_MASKED, .covers = 1, .mask = x.mask});
    append(&o, (jot_optimizer_part){.kind = PART_TRUST,
                                    .number = {number(x.trust, 1e-3), number(x.eps, 0)}});
    append_scale(&o, -1, &rate);
    append_momentum(&o, number(x.momentum, 0.9), x.nesterov);
    return o;
}

jot_optimizer jot_adagrad_with(jot_schedule rate, const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x = read(&o, "jot_adagrad", INITIAL | EPS, options);
    append(&o, (jot_optimizer_part){.kind = PART_ADAGRAD,
                                    .number = {number(x.initial, 0.1), number(x.eps, 1e-7)}});
    append_scale(&o, -1, &rate);
    return o;
}

jot_optimizer jot_adadelta_with(jot_schedule rate, const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x = read(&o, "jot_adadelta", DECAY | EPS | WITH_DECAY, options);
    append_decay(&o, x.weight_decay, x.mask);
    append(&o, (jot_optimizer_part){.kind = PART_ADADELTA,
                                    .number = {number(x.decay, 0.9), number(x.eps, 1e-6)}});
    append_scale(&o, -1, &rate);
    return o;
}

jot_optimizer jot_rmsprop_with(jot_schedule rate, const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x =
        read(&o, "jot_rmsprop",
             DECAY | EPS | INITIAL | CENTERED | DEBIASED | MOMENTUM | NESTEROV, options);
    if (x.centered && x.debiased)
        mistake(&o, "jot_rmsprop", "debiased", 1, "not with centered");
    append(&o, (jot_optimizer_part){.kind = x.centered   ? PART_CENTERED_RMS
                                            : x.debiased ? PART_RMS_DEBIASED
                                                         : PART_RMS,
                                    .number = {number(x.initial, 0), number(x.decay, 0.9),
                                               number(x.eps, 1e-8)}});
    append_scale(&o, -1, &rate);
    append_momentum(&o, x.momentum, x.nesterov);
    return o;
}

jot_optimizer jot_adafactor_with(jot_schedule rate, const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x = read(
        &o, "jot_adafactor",
        MIN_FACTORED | DECAY | THRESHOLD | EPS | UNSCALED | MOMENTUM | WITH_DECAY, options);
    append(&o, (jot_optimizer_part){.kind = PART_FACTORED,
                                    .number = {number(x.min_factored, 128),
                                               number(x.decay, 0.8), number(x.eps, 1e-30)}});
    if (number(x.threshold, 1) > 0)
        append(&o,
               (jot_optimizer_part){.kind = PART_CLIP_RMS, .number = {number(x.threshold, 1)}});
    append_scale(&o, 1, &rate);
    if (!x.unscaled)
        append(&o, (jot_optimizer_part){.kind = PART_PARAM_RMS, .number = {1e-3}});
    if (x.momentum > 0)
        append(&o, (jot_optimizer_part){.kind = PART_EMA, .number = {x.momentum}});
    append_decay(&o, x.weight_decay, x.mask);
    jot_schedule one = jot_constant_schedule(1);
    append_scale(&o, -1, &one);
    return o;
}

jot_optimizer jot_chain_list(size_t n, const jot_optimizer *parts)
{
    jot_optimizer o = {0};
    for (size_t i = 0; parts && i < n && !o.mistake[0]; i++)
        append_chain(&o, parts + i);
    return o;
}

jot_optimizer jot_scale_by_schedule(jot_schedule rate)
{
    jot_optimizer o = {0};
    append_scale(&o, 1, &rate);
    return o;
}

static jot_optimizer clip(const char *name, int kind, double most)
{
    jot_optimizer o = single(kind, most, 0);
    if (!(most > 0))
        mistake(&o, name, "most", most, "above 0");
    return o;
}

jot_optimizer jot_clip_by_value(double most)
{
    return clip("jot_clip_by_value", PART_CLIP_VALUE, most);
}

jot_optimizer jot_clip_by_norm(double most)
{
    return clip("jot_clip_by_norm", PART_CLIP_NORM, most);
}

jot_optimizer jot_clip_by_global_norm(double most)
{
    return clip("jot_clip_by_global_norm", PART_CLIP_GLOBAL, most);
}

jot_optimizer jot_add_decayed_weights_to(jot_schedule rate, jot_mask mask)
{
    jot_optimizer o = {0};
    if (mask.n)
        append(&o, (jot_optimizer_part){.kind = PART_MASKED, .covers = 1, .mask = mask});
    append_scheduled(&o, (jot_optimizer_part){.kind = PART_DECAY}, &rate);
    return o;
}

static jot_optimizer mean(const char *name, int kind, double decay, bool is_debiased)
{
    jot_optimizer o = single(kind, decay, is_debiased);
    if (!(decay >= 0 && decay < 1))
        mistake(&o, name, "decay", decay, "at least 0 and below 1");
    return o;
}

jot_optimizer jot_ema(double decay, bool is_debiased)
{
    return mean("jot_ema", PART_EMA, decay, is_debiased);
}

jot_optimizer jot_params_ema(double decay)
{
    return mean("jot_params_ema", PART_PARAMS_EMA, decay, false);
}

jot_optimizer jot_lookahead(int every, double rate)
{
    jot_optimizer o = single(PART_LOOKAHEAD, every, rate);
    if (every < 1)
        mistake(&o, "jot_lookahead", "every", every, "at least 1");
    if (!isfinite(rate))
        mistake(&o, "jot_lookahead", "rate", rate, "finite");
    return o;
}

jot_optimizer jot_masked(jot_optimizer inner, jot_mask mask)
{
    return mask.n ? around((jot_optimizer_part){.kind = PART_MASKED, .mask = mask}, &inner)
                  : inner;
}

jot_optimizer jot_multi_steps(jot_optimizer inner, int every)
{
    jot_optimizer o =
        around((jot_optimizer_part){.kind = PART_MULTI_STEPS, .number = {every}}, &inner);
    if (every < 1)
        mistake(&o, "jot_multi_steps", "every", every, "at least 1");
    return o;
}

jot_optimizer jot_dynamic_loss_scale_with(jot_optimizer inner,
                                          const jot_optimizer_options *options)
{
    jot_optimizer none = {0};
    jot_optimizer_options x = read(&none, "jot_dynamic_loss_scale", INITIAL | EVERY, options);
    if (x.every < 0)
        mistake(&none, "jot_dynamic_loss_scale", "every", x.every, "at least 1");
    if (x.initial < 0)
        mistake(&none, "jot_dynamic_loss_scale", "initial", x.initial, "above 0");
    jot_optimizer o = around(
        (jot_optimizer_part){.kind = PART_LOSS_SCALE,
                             .number = {number(x.initial, 32768), number(x.every, 2000)}},
        &inner);
    copy_mistake(&o, none.mistake);
    return o;
}

jot_optimizer jot_schedule_free_with(jot_optimizer inner, jot_schedule rate,
                                     const jot_optimizer_options *options)
{
    jot_optimizer o = {0};
    jot_optimizer_options x = read(&o, "jot_schedule_free", B1 | POWER, options);
    if (x.b1 < 0)
        mistake(&o, "jot_schedule_free", "b1", x.b1, "above 0");
    append_scheduled(&o,
                     (jot_optimizer_part){.kind = PART_SCHEDULE_FREE,
                                          .covers = inner.n,
                                          .number = {number(x.b1, 0.9), number(x.power, 2)}},
                     &rate);
    append_chain(&o, &inner);
    return o;
}
