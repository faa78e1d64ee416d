# SPDX-License-Identifier: Apache-2.0
"""Writes transformer.npy: the losses of transformer.c in JAX and Optax, from the same start on the same text.

    python3 examples/data/transformer.py LICENSE examples/data/transformer.npy
"""
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

SIZE, HEADS, KV_HEADS, LAYERS, ROOM, BATCH, STEPS = 64, 4, 2, 2, 64, 8, 50
D = SIZE // HEADS
lecun = jax.nn.initializers.lecun_normal()


def block(attention, mlp):
    k, m = jax.random.split(attention, 4), jax.random.split(mlp, 2)
    return {
        'norm': [jnp.ones(SIZE)] * 2,
        'wq': lecun(k[0], (SIZE, SIZE)).reshape(SIZE, HEADS, D),
        'wk': lecun(k[1], (SIZE, KV_HEADS * D)).reshape(SIZE, KV_HEADS, D),
        'wv': lecun(k[2], (SIZE, KV_HEADS * D)).reshape(SIZE, KV_HEADS, D),
        'wo': lecun(k[3], (SIZE, SIZE)).reshape(HEADS, D, SIZE),
        'w': [lecun(m[0], (SIZE, 4 * SIZE)), lecun(m[1], (4 * SIZE, SIZE))],
        'b': [jnp.zeros(4 * SIZE), jnp.zeros(SIZE)],
    }


def norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def turned(x):
    angle = np.arange(x.shape[-3])[:, None, None] * 1e4 ** (-np.arange(D // 2) * 2 / D)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)


def scores(p, x):
    x = p['bytes'][x]
    for b in p['blocks']:
        y = norm(x, b['norm'][0])
        q, k, v = (jnp.einsum('bti,ihd->bthd', y, b[w]) for w in ('wq', 'wk', 'wv'))
        y = jax.nn.dot_product_attention(turned(q), turned(k), v, is_causal=True)
        x += jnp.einsum('bthd,hdo->bto', y, b['wo'])
        y = jax.nn.gelu(norm(x, b['norm'][1]) @ b['w'][0] + b['b'][0])
        x += y @ b['w'][1] + b['b'][1]
    return norm(x, p['norm']) @ p['bytes'].T


def loss(p, rows):
    return optax.softmax_cross_entropy_with_integer_labels(scores(p, rows[:, :-1]), rows[:, 1:]).mean()


def main():
    text = np.frombuffer(open(sys.argv[1], 'rb').read(), np.uint8).astype(np.int32)
    start, batches, _ = jax.random.split(jax.random.PRNGKey(0), 3)
    keys = jax.random.split(start, 2 * LAYERS + 1)
    p = {
        'bytes': 0.1 * jax.random.normal(keys[-1], (256, SIZE)),
        'blocks': [block(keys[2 * i], keys[2 * i + 1]) for i in range(LAYERS)],
        'norm': jnp.ones(SIZE),
    }
    optimizer = optax.chain(optax.clip_by_global_norm(1), optax.adamw(3e-3))
    state, losses = optimizer.init(p), []

    @jax.jit
    def step(p, state, rows):
        value, g = jax.value_and_grad(loss)(p, rows)
        u, state = optimizer.update(g, state, p)
        return value, optax.apply_updates(p, u), state

    for i in range(STEPS):
        begin = jax.random.randint(jax.random.fold_in(batches, i), (BATCH,), 0, len(text) - ROOM)
        value, p, state = step(p, state, jnp.asarray(text)[begin[:, None] + np.arange(ROOM + 1)])
        losses.append(value)
    np.save(sys.argv[2], np.array(losses, np.float32))


if __name__ == '__main__':
    main()
