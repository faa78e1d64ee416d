# SPDX-License-Identifier: Apache-2.0
# Writes loss.jaxexport, the function of jax_function.c: python3 - < loss.py, here, with JAX.
import jax
import jax.numpy as jnp


def loss(w, x, y):  # of a logistic regression, for any number of samples
    return jnp.mean(jax.nn.softplus(-y * (x @ w)))


n, = jax.export.symbolic_shape("n")
f32 = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
artefact = jax.export.export(jax.jit(loss))(f32(3), f32(n, 3), f32(n))
open("loss.jaxexport", "wb").write(artefact.serialize())
