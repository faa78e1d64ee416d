# SPDX-License-Identifier: Apache-2.0
# Writes the exported functions of this folder: python3 - < export.py, here, with JAX.
import jax
import jax.numpy as jnp
from jax import export, lax
from jax.sharding import PartitionSpec as P

jax.config.update('jax_num_cpu_devices', 4)


def save(name, function, *arguments, order=1, **options):
    exported = export.export(jax.jit(function), **options)(*arguments)
    with open(name + '.jaxexport', 'wb') as file:
        file.write(exported.serialize(vjp_order=order))


def model(x, unused, w):
    numbers = jnp.arange(x.shape[0], dtype=jnp.float32)
    return {'rows': jax.nn.softmax(jnp.tanh(x @ w) + numbers[:, None]), 'sum': jnp.sum(x)}


def tails(x, y):
    total, sums = lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(x.shape[1:]), x)
    return total, sums, x[1:-1, ::2], jnp.concatenate([x.reshape(-1), y]).astype(jnp.bfloat16)


def rules(x, n):
    return n + 1, lax.stop_gradient(x) * x


def on_mesh(x):
    mesh = jax.make_mesh((2, 2), ('x', 'y'), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def piece(p):
        k = lax.axis_index(('x', 'y'))
        first = lax.psum(jnp.where(k == 0, p, 0), ('y', 'x'))
        return lax.all_gather(p + k, 'y', axis=1, tiled=True), lax.psum(p, 'y'), first

    x = lax.with_sharding_constraint(
        x, jax.sharding.NamedSharding(mesh, P(P.UNCONSTRAINED, ('y', 'x'))))
    return jax.shard_map(piece, mesh=mesh, in_specs=P('x', 'y'),
                         out_specs=(P('x'), P('x'), P()), check_vma=False)(x)


n, m = export.symbolic_shape('n, m', constraints=['n >= 4'])
f32 = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
save('model', model, f32(n, 8), jax.ShapeDtypeStruct((2,), jnp.int32), f32(8, 5),
     platforms=('cpu', 'cuda'))
save('tails', tails, f32(n, m), f32(3 * m + 1))
save('named', lambda x, p: x * p['w'], f32(2, 3), {'w': f32(2, 3)})
save('kept', lambda x, unused, y: x - y, f32(2), f32(3), f32(2))
save('rules', rules, f32(3), jax.ShapeDtypeStruct((), jnp.int32))
save('factor', jnp.linalg.cholesky, f32(2, 2))
save('lgamma', lambda x, y: (lax.lgamma(x), lax.lgamma(y)), f32(3), f32(), order=0)
save('values', jnp.linalg.eigvalsh, f32(2, 2), platforms=('tpu', 'cpu'))
with jax.enable_x64(True):
    save('mesh', on_mesh, jax.ShapeDtypeStruct((8, 4), jnp.float64))
