# SPDX-License-Identifier: Apache-2.0
"""Writes layers.golden: what Flax, Optax and JAX make of layers and losses, and their gradients.

    python3 tests/library/make_layers.py > tests/library/layers.golden

A line is a name, what it is, and numbers: `y` the result, `g` the gradient of a weighted sum of it in all arguments, both
in f64; of initialisers `f32`.  Arguments are made of integers, the same here and in test_layers.c.
"""
import sys

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

jax.config.update('jax_enable_x64', True)
DTYPE = dict(dtype=jnp.float64, param_dtype=jnp.float64)


def number(step, k):
    x = (step * 7919 + k * 104729 + 12345) % 2**31
    x = (x * 1103515245 + 12345) % 2**31
    return ((x >> 8) % 8191 - 4095) / 4096


def numbers(step, first, shape):
    return np.reshape([number(step, first + i) for i in range(int(np.prod(shape)))], shape)


def at(n, most):
    """n integers below most, as in test_layers.c."""
    return np.arange(n) * 7 % most


def apply(module, x, **params):
    return module.apply({'params': params}, x)


def dense(x, w, b):
    return apply(nn.Dense(b.shape[0], **DTYPE), x, kernel=w, bias=b)


def conv(window, **options):
    def f(x, w, b=None):
        module = nn.Conv(w.shape[-1], window, use_bias=b is not None, **{'padding': 'VALID', **options}, **DTYPE)
        return apply(module, x, kernel=w, **({} if b is None else {'bias': b}))
    return f


def conv_transpose(window, **options):
    def f(x, w, b):
        return apply(nn.ConvTranspose(w.shape[-1], window, **options, **DTYPE), x, kernel=w, bias=b)
    return f


def batch_norm(x, scale, bias, mean, var):
    module = nn.BatchNorm(use_running_average=False, momentum=0.9, epsilon=1e-3, use_fast_variance=False, **DTYPE)
    stats = {'mean': mean, 'var': jnp.square(var)}
    y, new = module.apply({'params': {'scale': scale, 'bias': bias}, 'batch_stats': stats}, x, mutable=['batch_stats'])
    return y, new['batch_stats']['mean'], new['batch_stats']['var']


def batch_norm_apply(x, scale, bias, mean, var):
    module = nn.BatchNorm(use_running_average=True, epsilon=1e-5, **DTYPE)
    stats = {'mean': mean, 'var': jnp.square(var)}
    return module.apply({'params': {'scale': scale, 'bias': bias}, 'batch_stats': stats}, x)


def dropout(x):
    return jnp.where(jax.random.bernoulli(jax.random.PRNGKey(7), jnp.float32(1 - 0.25), x.shape), x / (1 - 0.25), 0.0)


NORM = dict(epsilon=1e-5, use_fast_variance=False, **DTYPE)

LAYERS = {
    'dense': (dense, (2, 3, 4), (4, 5), (5,)),
    'dense_no_bias': (lambda x, w: x @ w, (3, 4), (4, 5)),
    'mlp': (lambda x, w, b, v, c, u, d: dense(jnp.tanh(dense(jnp.tanh(dense(x, w, b)), v, c)), u, d),
            (3, 2), (2, 4), (4,), (4, 3), (3,), (3, 1), (1,)),
    'embedding': (lambda w: apply(nn.Embed(5, 3, **DTYPE), jnp.reshape(at(6, 5), (2, 3)), embedding=w), (5, 3)),
    'embedding_scores': (lambda w, x: nn.Embed(5, 3, **DTYPE).apply({'params': {'embedding': w}}, x,
                                                                     method=nn.Embed.attend), (5, 3), (2, 3)),
    'conv1': (conv((3,)), (2, 7, 3), (3, 3, 4), (4,)),
    'conv2': (conv((3, 2), strides=(2, 1), padding='SAME'), (2, 5, 6, 2), (3, 2, 2, 3), (3,)),
    'conv2_groups': (conv((2, 2), feature_group_count=2), (1, 4, 3, 4), (2, 2, 2, 6)),
    'conv2_dilated': (conv((2, 2), kernel_dilation=(2, 3)), (5, 6, 2), (2, 2, 2, 3), (3,)),
    'conv3': (conv((2, 2, 1)), (1, 3, 4, 2, 2), (2, 2, 1, 2, 3), (3,)),
    'conv_transpose1': (conv_transpose((3,), strides=(2,)), (2, 4, 3), (3, 3, 2), (2,)),
    'conv_transpose2': (conv_transpose((2, 3), strides=(2, 2), padding='VALID'), (1, 3, 2, 2), (2, 3, 2, 3), (3,)),
    'conv_transpose3': (conv_transpose((2, 2, 2), strides=(1, 2, 1)), (2, 2, 2, 1), (2, 2, 2, 1, 2), (2,)),
    'max_pool': (lambda x: nn.max_pool(x, (2, 2), strides=(2, 1)), (2, 4, 4, 3)),
    'avg_pool': (lambda x: nn.avg_pool(x, (2, 3), strides=(2, 3)), (2, 4, 6, 1)),
    'global_pool': (lambda x: jnp.concatenate([jnp.max(x, (1, 2)), jnp.mean(x, (1, 2))], -1), (2, 3, 3, 2)),
    'layer_norm': (lambda x, s, b: apply(nn.LayerNorm(**NORM), x, scale=s, bias=b), (2, 3, 5), (5,), (5,)),
    'rms_norm': (lambda x, s: apply(nn.RMSNorm(epsilon=1e-6, **DTYPE), x, scale=s), (2, 3, 5), (5,)),
    'group_norm': (lambda x, s, b: apply(nn.GroupNorm(2, **NORM), x, scale=s, bias=b), (2, 3, 2, 6), (6,), (6,)),
    'instance_norm': (lambda x, s, b: apply(nn.InstanceNorm(**NORM), x, scale=s, bias=b), (2, 4, 3), (3,), (3,)),
    'batch_norm': (batch_norm, (4, 2, 3), (3,), (3,), (3,), (3,)),
    'batch_norm_apply': (batch_norm_apply, (4, 2, 3), (3,), (3,), (3,), (3,)),
    'dropout': (dropout, (3, 40)),
}


# ---- attention and recurrent layers ----


def turned(x, base, first=0):
    """The halves of the last axis as complex numbers, turned by their positions."""
    d = x.shape[-1]
    z = x[..., : d // 2] + 1j * x[..., d // 2:]
    angle = np.arange(first, first + x.shape[-3])[:, None] * base ** (-2 * np.arange(d // 2) / d)
    z = z * jnp.exp(1j * angle)[:, None, :]
    return jnp.concatenate([z.real, z.imag], -1)


def dot_product(q, k, v, bias=0.0, mask=True, is_causal=False, scale=None):
    """jax.nn.dot_product_attention, which has its scores in f32."""
    want = jax.nn.dot_product_attention(q, k, v, None if isinstance(bias, float) else bias,
                                        None if mask is True else mask, is_causal=is_causal, scale=scale)
    k, v = (jnp.repeat(x, q.shape[2] // x.shape[2], 2) for x in (k, v))
    score = jnp.einsum('btnd,bsnd->bnts', q, k) * (scale or q.shape[-1] ** -0.5) + bias
    if is_causal:
        mask = jnp.logical_and(mask, np.tri(q.shape[1], k.shape[1], dtype=bool))
    y = jnp.einsum('bnts,bsnd->btnd', jax.nn.softmax(jnp.where(mask, score, -1e300)), v)
    if not isinstance(y, jax.core.Tracer):
        np.testing.assert_allclose(y, want, 1e-5, 1e-6)
    return y


def heads(x, w, b):
    return jnp.einsum('...ti,ihd->...thd', x, w) + b


def attention(x, wq, wk, wv, wo, bq, bk, bv, bo, base=None, **options):
    q, k, v = heads(x, wq, bq), heads(x, wk, bk), heads(x, wv, bv)
    if base:
        q, k = turned(q, base), turned(k, base)
    return jnp.einsum('...thd,hdo->...to', dot_product(q, k, v, **options), wo) + bo


def flax_attention(x, y, wq, wk, wv, wo, bq, bk, bv, bo):
    params = {n: {'kernel': w, 'bias': b} for n, w, b in
              (('query', wq, bq), ('key', wk, bk), ('value', wv, bv), ('out', wo, bo))}
    return nn.MultiHeadDotProductAttention(2, qkv_features=6, **DTYPE).apply({'params': params}, x, y)


def parts(n, names, w):
    return dict(zip(names, jnp.split(w, n, -1)))


def gru(h, x, wx, wh, b, bn):
    wx, wh, b = (parts(3, 'rzn', w) for w in (wx, wh, b))
    params = {'i' + g: {'kernel': wx[g], 'bias': b[g]} for g in 'rzn'}
    params |= {'h' + g: {'kernel': wh[g]} | ({'bias': bn} if g == 'n' else {}) for g in 'rzn'}
    return nn.GRUCell(h.shape[-1], **DTYPE).apply({'params': params}, h, x)[1]


def lstm(h, c, x, wx, wh, b):
    wx, wh, b = (parts(4, 'ifgo', w) for w in (wx, wh, b))
    params = {'i' + g: {'kernel': wx[g]} for g in 'ifgo'}
    params |= {'h' + g: {'kernel': wh[g], 'bias': b[g]} for g in 'ifgo'}
    (c, h), _ = nn.LSTMCell(h.shape[-1], **DTYPE).apply({'params': params}, (c, h), x)
    return h, c


def gru_scan(x, wx, wh, b, bn):
    return jax.lax.scan(lambda h, row: 2 * (gru(h, row, wx, wh, b, bn),), jnp.zeros((2, 3)), x)[1]


ATTENTION = ((2, 5, 6), (6, 4, 4), (6, 2, 4), (6, 2, 4), (4, 4, 6), (4, 4), (2, 4), (2, 4), (6,))
MASK = np.reshape(at(20, 5), (4, 5)) != 3

RECURRENT = {
    'dot_product': (dot_product, (2, 3, 2, 4), (2, 5, 2, 4), (2, 5, 2, 4)),
    'dot_product_options': (lambda q, k, v, b: dot_product(
        q, k, v, b, jnp.asarray(MASK)[None, None], is_causal=True, scale=0.3),
        (1, 4, 4, 2), (1, 5, 2, 2), (1, 5, 2, 2), (1, 4, 4, 5)),
    'rotary': (lambda x: turned(x, 100.0), (2, 3, 2, 6)),
    'attention': (attention, *ATTENTION),
    'attention_causal': (lambda *x: attention(*x, base=1e4, is_causal=True), *ATTENTION),
    'attention_memory': (flax_attention, (3, 4), (5, 4), (4, 2, 3), (4, 2, 3), (4, 2, 3), (2, 3, 4), (2, 3), (2, 3),
                         (2, 3), (4,)),
    'gru': (gru, (2, 3), (2, 4), (4, 9), (3, 9), (9,), (3,)),
    'gru_scan': (gru_scan, (4, 2, 4), (4, 9), (3, 9), (9,), (3,)),
    'lstm': (lstm, (2, 3), (2, 3), (2, 4), (4, 12), (3, 12), (12,)),
}


# ---- losses ----


def ctc(scores):
    labels = np.reshape(at(8, 3) + 1, (2, 4))
    frames, counts = np.array([7, 5]), np.array([3, 2])
    return optax.ctc_loss(scores, 1.0 * (np.arange(7) >= frames[:, None]), labels,
                          1.0 * (np.arange(4) >= counts[:, None]), log_epsilon=-1e30)


def ctc_repeated(scores):
    return optax.ctc_loss(scores, np.zeros((1, 6)), np.array([[2, 2, 1]]), np.zeros((1, 3)), blank_id=3, log_epsilon=-1e30)


SIGNS = 2.0 * (at(6, 2) == 0) - 1
LOSSES = {
    'softmax_cross_entropy': (lambda x, y: optax.softmax_cross_entropy(x, jax.nn.softmax(y)), (3, 4), (3, 4)),
    'integer_labels': (lambda x: optax.softmax_cross_entropy_with_integer_labels(x, np.reshape(at(6, 4), (2, 3))), (2, 3, 4)),
    'sigmoid': (lambda x, y: optax.sigmoid_binary_cross_entropy(8 * x, y * y), (7,), (7,)),
    'hinge': (lambda x: optax.hinge_loss(2 * x, SIGNS), (6,)),
    'kl': (lambda x, y: optax.kl_divergence(jax.nn.log_softmax(x), jax.nn.softmax(y)), (3, 4), (3, 4)),
    'huber': (lambda x, y: optax.huber_loss(2 * x, y, delta=0.7), (9,), (9,)),
    'l2': (optax.l2_loss, (5,), (5,)),
    'cosine': (lambda x, y: optax.cosine_distance(x, y, epsilon=1e-3), (2, 3), (2, 3)),
    'ctc': (ctc, (2, 7, 4)),
    'ctc_repeated': (ctc_repeated, (1, 6, 4)),
}


def initializer(f, shape):
    return np.asarray(f(jax.random.PRNGKey(42), shape, jnp.float32))


INIT = jax.nn.initializers
INITIALIZERS = {
    'lecun_uniform': (INIT.lecun_uniform(), (4, 6)),
    'lecun_normal': (INIT.lecun_normal(), (3, 2, 2, 5)),
    'he_uniform': (INIT.he_uniform(), (2, 3, 4)),
    'he_normal': (INIT.he_normal(), (5, 4)),
    'glorot_uniform': (INIT.glorot_uniform(), (3, 3, 2, 1)),
    'glorot_normal': (INIT.glorot_normal(), (2, 10)),
    'truncated_normal': (INIT.truncated_normal(1.0), (7,)),
    'orthogonal': (INIT.orthogonal(), (2, 3, 4)),
}


def show(name, what, leaves):
    print(name, what, *('%.17g' % x for leaf in leaves for x in np.ravel(np.asarray(leaf, np.float64))))


def run(name, f, *shapes):
    arguments, first = [], 0
    for shape in shapes:
        arguments.append(jnp.asarray(numbers(1000, first, shape)))
        first += int(np.prod(shape))

    def all_of(*x):
        y = f(*x)
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(y)])

    y = all_of(*arguments)
    weights = numbers(5000, 0, y.shape)
    gradient = jax.grad(lambda *x: jnp.sum(all_of(*x) * weights), tuple(range(len(arguments))))(*arguments)
    show(name, 'y', [y])
    show(name, 'g', gradient)


def main():
    print('# By make_layers.py with flax %s, optax %s and jax %s.' % (flax.__version__, optax.__version__, jax.__version__))
    for name, (f, *shapes) in (LAYERS | RECURRENT | LOSSES).items():
        run(name, f, *shapes)
    for name, (f, shape) in INITIALIZERS.items():
        show(name, 'f32', [initializer(f, shape)])


if __name__ == '__main__':
    sys.exit(main())
