# SPDX-License-Identifier: Apache-2.0
"""Writes optim.golden: what Optax makes of a small tree in 50 steps, and its schedules.

    python3 tests/library/make_optim.py > tests/library/optim.golden

A line is a name, a dtype, the number of steps done, and the elements of the leaves; of a schedule the number of COUNTS
and the values there.  Gradients and parameters are made of integers, the same here and in test_optim.c.
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax

SHAPES = {'a': (2, 3), 'b': (4,), 'c': ()}
STEPS, SHOWN = 50, (3, 50)
COUNTS = (0, 1, 2, 5, 9, 10, 11, 17, 24, 25, 30, 42, 49, 50, 80)


def number(step, k):
    x = (step * 7919 + k * 104729 + 12345) % 2**31
    x = (x * 1103515245 + 12345) % 2**31
    return ((x >> 8) % 8191 - 4095) / 4096 * (8 if step % 7 == 6 else 1)


def tree(step, dtype):
    leaves, k = {}, 0
    for name, shape in SHAPES.items():
        n = int(np.prod(shape))
        leaves[name] = jnp.array(np.reshape([number(step, k + i) for i in range(n)], shape), dtype)
        k += n
    return leaves


MASK = {'a': True, 'b': False, 'c': True}
OTHERS = {'a': False, 'b': True, 'c': False}

SCHEDULES = {
    'polynomial': optax.polynomial_schedule(0.5, 0.1, 2.0, 30),
    'linear': optax.linear_schedule(0.0, 0.3, 20),
    'exponential': optax.exponential_decay(0.5, 10, 0.7, transition_begin=5, end_value=0.1),
    'staircase': optax.exponential_decay(0.5, 10, 0.7, staircase=True),
    'cosine': optax.cosine_decay_schedule(0.5, 40),
    'cosine_options': optax.cosine_decay_schedule(0.5, 40, alpha=0.2, exponent=1.5),
    'warmup_cosine': optax.warmup_cosine_decay_schedule(0.01, 0.5, 10, 45, end_value=0.05),
    'cosine_onecycle': optax.cosine_onecycle_schedule(50, 0.4),
    'linear_onecycle': optax.linear_onecycle_schedule(50, 0.4, 0.2, 0.7, 10.0, 100.0),
    'join': optax.join_schedules([optax.constant_schedule(0.5), optax.linear_schedule(0.4, 0.1, 20),
                                  optax.constant_schedule(0.05)], [10, 25]),
    'piecewise': optax.piecewise_constant_schedule(0.5, {10: 0.5, 25: 0.1}),
}


def adafactor(dtype, rate, decay_rate=0.8, weight_decay=None, momentum=None, scaled=True, least=128):
    """optax.adafactor, which computes its decay in f32 whatever the dtype."""
    parts = [optax.scale_by_factored_rms(True, decay_rate, 0, least, 1e-30,
                                         decay_rate_fn=lambda i, e: 1.0 - jnp.array(i + 1, dtype) ** (-e)),
             optax.clip_by_block_rms(1.0), optax.scale_by_learning_rate(rate, flip_sign=False)]
    if scaled:
        parts.append(optax.scale_by_param_block_rms())
    if momentum:
        parts.append(optax.ema(momentum, debias=False))
    if weight_decay:
        parts.append(optax.add_decayed_weights(weight_decay))
    return optax.chain(*parts, optax.scale(-1))


def clip_by_norm(most):
    one = optax.clip_by_global_norm(most)
    return optax.GradientTransformation(
        lambda p: optax.EmptyState(),
        lambda g, s, p=None: (jax.tree.map(lambda x: one.update([x], None)[0][0], g), s))


def optimizers(dtype):
    # Optax has counts of 32 bits, of which JAX makes numbers in f32 whatever the dtype.
    def exact(schedule):
        return lambda count: schedule(jnp.asarray(count, dtype))

    s = {name: exact(schedule) for name, schedule in SCHEDULES.items()}
    warmup = exact(optax.linear_schedule(0.0, 1e-2, 10))
    return {
        'sgd': optax.sgd(0.1),
        'sgd_momentum': optax.sgd(0.1, momentum=0.9),
        'sgd_nesterov': optax.sgd(s['polynomial'], momentum=0.9, nesterov=True),
        'adam': optax.adam(1e-2),
        'adam_options': optax.adam(s['warmup_cosine'], b1=0.8, b2=0.95, eps=1e-6, eps_root=1e-8),
        'nadam': optax.nadam(1e-2),
        'adamw': optax.adamw(1e-2, weight_decay=0.1, mask=MASK),
        'adamax': optax.adamax(1e-2),
        'radam': optax.radam(1e-2, b2=0.9, threshold=4.5),
        'radam_defaults': optax.radam(1e-2),
        'radam_nesterov': optax.radam(1e-2, b2=0.9, nesterov=True),
        'lion': optax.lion(1e-2),
        'lamb': optax.lamb(1e-2, weight_decay=0.01),
        'lars': optax.lars(0.5, weight_decay=0.01, weight_decay_mask=MASK, trust_ratio_mask=MASK),
        'lars_nesterov': optax.lars(0.5, trust_coefficient=0.01, eps=1e-3, nesterov=True),
        'adagrad': optax.adagrad(0.1),
        'adadelta': optax.adadelta(1.0, weight_decay=0.01),
        'rmsprop': optax.rmsprop(1e-2, initial_scale=0.5),
        'rmsprop_centered': optax.rmsprop(1e-2, centered=True, momentum=0.9),
        'rmsprop_debiased': optax.rmsprop(1e-2, eps_in_sqrt=False, bias_correction=True, momentum=0.5,
                                          nesterov=True),
        'adafactor': adafactor(dtype, 1e-2),
        'adafactor_factored': adafactor(dtype, 1e-2, 0.7, 0.01, 0.9, False, 2),
        'clip_by_value': optax.chain(optax.clip(0.5), optax.sgd(0.1)),
        'clip_by_norm': optax.chain(clip_by_norm(1.0), optax.sgd(0.1)),
        'clip_by_global_norm': optax.chain(optax.clip_by_global_norm(3.0), optax.adam(1e-2)),
        'decayed_weights': optax.chain(optax.add_decayed_weights(s['linear'], MASK), optax.scale(-0.1)),
        'ema': optax.chain(optax.ema(0.9), optax.scale_by_learning_rate(s['staircase'])),
        'ema_biased': optax.chain(optax.ema(0.9, debias=False), optax.sgd(0.1)),
        'multi_steps': optax.MultiSteps(optax.adam(s['linear']), 4, accumulator_dtype=dtype),
        'groups': optax.chain(optax.masked(optax.adam(1e-2), MASK),
                              optax.masked(optax.sgd(0.1, momentum=0.5), OTHERS)),
        'schedule_free': optax.contrib.schedule_free_sgd(0.1),
        'schedule_free_adamw': optax.contrib.schedule_free(
            optax.chain(optax.scale_by_rms(decay=0.999, eps_in_sqrt=False, bias_correction=True),
                        optax.add_decayed_weights(0.01), optax.scale_by_learning_rate(warmup)), warmup),
    }


# Rows of f32 with the numbers of f64.  XLA multiplies by the rounded 1 / b1 in each step: in f32 that drifts away by
# more than the test allows.
DRIFTING = ('schedule_free', 'schedule_free_adamw', 'schedule_free_params')


def show(name, dtype, step, leaves):
    if name in DRIFTING and dtype == jnp.float32:
        return
    if name in DRIFTING:
        show_row(name, jnp.float32, step, leaves)
    show_row(name, dtype, step, leaves)


def show_row(name, dtype, step, leaves):
    numbers = np.concatenate([np.ravel(np.asarray(x, np.float64)) for x in leaves])
    print(name, np.dtype(dtype).name, step, *(("%.9g" if dtype == jnp.float32 else "%.17g") % x for x in numbers))


def run(name, dtype, optimizer, begin=lambda p: p, use=lambda p, s: p):
    p = begin(tree(1000, dtype))
    s = optimizer.init(p)

    @jax.jit
    def step(g, s, p):
        u, s = optimizer.update(g, s, p)
        return optax.apply_updates(p, u), s

    for i in range(STEPS):
        p, s = step(tree(i, dtype), s, p)
        if i + 1 in SHOWN:
            show(name, dtype, i + 1, use(p, s).values())
    return p, s


def run_params_ema(dtype):
    sgd, p = optax.sgd(0.1), tree(1000, dtype)
    mean = p
    for i in range(STEPS):
        p = optax.apply_updates(p, sgd.update(tree(i, dtype), sgd.init(p))[0])
        mean = optax.incremental_update(p, mean, 1 - 0.9)
        if i + 1 in SHOWN:
            show('params_ema', dtype, i + 1, mean.values())


def main():
    print('# By make_optim.py with optax %s and jax %s.' % (optax.__version__, jax.__version__))
    for dtype in (jnp.float32, jnp.float64):
        jax.config.update('jax_enable_x64', dtype == jnp.float64)
        for name, s in SCHEDULES.items():
            show(name, dtype, len(COUNTS), [jnp.asarray(s(jnp.asarray(c)), dtype) for c in COUNTS])
        for name, optimizer in optimizers(dtype).items():
            # In f32 its first steps are differences of large numbers.
            if name != 'radam_defaults' or dtype == jnp.float64:
                run(name, dtype, optimizer)
        run('lookahead', dtype, optax.lookahead(optax.adam(1e-2), 5, 0.5), optax.LookaheadParams.init_synced,
            lambda p, s: p.fast)
        run('schedule_free_params', dtype, optax.contrib.schedule_free_sgd(0.1),
            use=lambda p, s: optax.contrib.schedule_free_eval_params(s, p))
        run_params_ema(dtype)


if __name__ == '__main__':
    main()
