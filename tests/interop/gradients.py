#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulations of whole_programs with their gradients by JAX.

    gradients.py WHOLE_PROGRAMS FOLDER

Writes FOLDER/NAME.mlir, and NAME.npz with the inputs in0 ..., a cotangent of each result ct0 ..., and what JAX
pulls back to each input of floats, grad0 ...  JAX does not differentiate the while of neural_ode: its gradient
is that of the same steps written as a scan, and in f64 that of central differences.  Needs jax."""
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

sys.path.insert(0, sys.argv[1])
import programs

MOST_STEPS = 40  # that neural_ode takes in this size


def is_float(x):
    return jnp.issubdtype(x.dtype, jnp.inexact)


# A while as a scan that stands still once the while would have ended: the body runs from the start then, where
# its derivative is finite.
def scan_of_while(condition, body, start):
    def step(state, _):
        def choose(x, y):
            return jax.tree.map(lambda a, b: jnp.where(condition(state), a, b), x, y)

        return choose(body(choose(state, start)), state), None

    return lax.scan(step, start, None, length=MOST_STEPS)[0]


class Simulation:
    def __init__(self, name, dtype):
        self.f, arguments = programs.build(name, 'tiny')
        leaves, self.tree = jax.tree.flatten(arguments)
        self.inputs = [np.asarray(x, dtype) if np.asarray(x).dtype == np.float32 else np.asarray(x)
                       for x in leaves]
        self.text = jax.jit(self.flat, keep_unused=True).lower(*self.inputs).as_text()
        self.cotangents = [np.cos(1.0 + np.arange(y.size).reshape(y.shape)).astype(y.dtype)
                           if is_float(y) else np.zeros(y.shape, y.dtype)
                           for y in map(np.asarray, jax.jit(self.flat)(*self.inputs))]

    def flat(self, *leaves):
        return jax.tree.leaves(self.f(*jax.tree.unflatten(self.tree, leaves)))

    def product(self, *floats):
        left = iter(floats)
        results = self.flat(*[next(left) if is_float(x) else x for x in self.inputs])
        return sum(jnp.sum(y * c) for y, c in zip(results, self.cotangents) if is_float(y))

    def floats(self):
        return [x for x in self.inputs if is_float(x)]

    def by_jax(self):
        floats = self.floats()
        return jax.jit(jax.grad(self.product, argnums=tuple(range(len(floats)))))(*floats)

    def by_differences(self):
        floats, step, product = self.floats(), 1e-6, jax.jit(self.product)

        def moved(i, at, by):  # JAX may read an array after the call
            x = floats[i].copy()
            x[at] += by
            return product(*floats[:i], x, *floats[i + 1:])

        gradients = [np.zeros(x.shape) for x in floats]
        for i, g in enumerate(gradients):
            for at in np.ndindex(g.shape):
                g[at] = (moved(i, at, step) - moved(i, at, -step)) / (2 * step)
        return gradients

    def write(self, name, gradients):
        path = os.path.join(sys.argv[2], name)
        with open(path + '.mlir', 'w') as file:
            file.write(self.text)
        kinds = {'in': self.inputs, 'ct': self.cotangents, 'grad': gradients}
        np.savez(path + '.npz', **{kind + str(i): np.asarray(x) for kind, all in kinds.items()
                                   for i, x in enumerate(all)})


for name in ('lattice_boltzmann', 'navier_stokes', 'cloth_grad', 'kalman_grad'):
    s = Simulation(name, np.float32)
    s.write(name, s.by_jax())

with jax.enable_x64(True):
    exact = Simulation('neural_ode', np.float64)
    exact.write('neural_ode_f64', exact.by_differences())
ode = Simulation('neural_ode', np.float32)
programs.lax = type('lax', (), {'while_loop': scan_of_while})
ode.write('neural_ode', ode.by_jax())
