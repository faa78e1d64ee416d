#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints, by JAX, the values that stand in examples/.

    pip install jax && JAX_PLATFORMS=cpu tests/golden/make_examples.py
"""
import jax
import jax.numpy as jnp
from jax import lax


def sde_paths(paths=4000, steps=100, mu=0.5, sigma=0.4):
    dt = 1.0 / steps

    def path(key):
        def step(i, x):
            dw = jnp.sqrt(dt) * jax.random.normal(jax.random.fold_in(key, i))
            return x + x * (mu * dt + sigma * dw)

        return lax.fori_loop(0, steps, step, jnp.float32(1))

    return jax.vmap(path)(jax.random.split(jax.random.PRNGKey(0), paths))[:8]


for function in (sde_paths,):
    print(f"{function.__name__}.c:", ", ".join(f"{x:#.9g}f" for x in function()))
