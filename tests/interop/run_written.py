#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs that jot has written under JAX, on the host, and compares what they give.

    run_written.py FOLDER

NAME.mlir or NAME.mlirbc is a program, NAME.npz its arguments, in0 ..., and the results that jot computes of them,
out0 ...; NAME begins with "op.".  Prints the version of jaxlib, what differs, and how many agree.  Needs jax."""
import collections
import glob
import os
import sys

os.environ.setdefault('JAX_PLATFORMS', 'cpu')
import jax
import jaxlib
import jaxlib.lapack
import ml_dtypes
import numpy as np
from jax._src import xla_bridge
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

jax.config.update('jax_enable_x64', True)
# Its routines of linear algebra find LAPACK when this has run.
jaxlib.lapack._lapack.initialize()
BACKEND = xla_bridge.get_backend('cpu')
DEVICES = jaxlib._jax.DeviceList(tuple(BACKEND.local_devices()[:1]))

# Results are not the only ones there are: these are compared by what they are factors of.
DECOMPOSITIONS = {'qr', 'eigh', 'svd', 'eig', 'schur'}
# Units in the last place of the largest number of a result, where it is not the one below.
UNITS = 64
WIDER = {'lgamma': 512, 'gamma': 512, 'digamma': 512, 'zeta': 4096, 'pow': 256, 'lu': 4096, 'cholesky': 4096,
         'triangular_solve': 4096, 'tridiagonal_solve': 4096,
         'loop': 8192}  # of which some make an error larger in each trip


def load(path):
    archive = np.load(path)
    arrays = {}
    for name in archive.files:
        a = archive[name]
        arrays[name] = a.view(ml_dtypes.bfloat16) if a.dtype == np.dtype('V2') else a
    return ([arrays[f'in{i}'] for i in range(len(arrays)) if f'in{i}' in arrays],
            [arrays[f'out{i}'] for i in range(len(arrays)) if f'out{i}' in arrays])


def parse(path):
    with open(path, 'rb') as file:
        program = file.read()
    if path.endswith('.mlirbc'):
        module = stablehlo.deserialize_portable_artifact(ir.Context.current, program)
    else:
        module = ir.Module.parse(program.decode())
    module.operation.verify()
    module.operation.attributes['sym_name'] = ir.StringAttr.get('written')
    return mlir.module_to_bytecode(module)


def run(path, inputs):
    with mlir.make_ir_context():
        module = parse(path)
    program = BACKEND.compile_and_load(module, DEVICES, jaxlib._jax.CompileOptions())
    device = BACKEND.local_devices()[0]
    got = program.execute_sharded([jax.device_put(x, device) for x in inputs])
    return [np.asarray(shards[0]) for shards in got.disassemble_into_single_device_arrays()]


def wide(x):
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def difference(got, want):
    """In units of the last place of the largest number."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return np.inf
    if want.dtype.kind in 'biu':
        return 0 if np.array_equal(got, want) else np.inf
    a, b = wide(got), wide(want)
    if np.iscomplexobj(a):
        a, b = (np.stack([x.real, x.imag]) for x in (a, b))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    part = np.array(0, want.dtype).real.dtype
    finite = np.abs(b[np.isfinite(b)])
    most = max(finite.max(initial=0), float(ml_dtypes.finfo(part).tiny))
    if same.all():
        return 0
    a, b = a[~same], b[~same]
    if not (np.isfinite(a) & np.isfinite(b)).all():
        return np.inf
    return np.abs(a - b).max() / (most * float(ml_dtypes.finfo(part).eps))


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def residual(op, inputs, got, want):
    """How far the factors are from what they are factors of, and the numbers from jot's."""
    a, eps = wide(inputs[0]), np.finfo(inputs[0].dtype).eps
    got, want = [wide(x) for x in got], [wide(x) for x in want]
    if any(x.shape != y.shape for x, y in zip(got, want)):
        return np.inf
    scale = max(np.abs(a).max(initial=0), 1e-300) * max(a.shape[-2:]) * eps
    errors = []
    if op == 'qr':
        errors = [got[0] @ got[1] - a]
    elif op == 'eigh':
        errors = [got[0] - want[0]]
        if len(got) > 1:
            low = np.tril(a, -1)  # of the diagonal only the real part is read
            low = low + adjoint(low) + np.where(np.eye(a.shape[-1]), a.real, 0)
            errors += [low @ got[1] - got[1] * got[0][..., None, :]]
    elif op == 'svd':
        errors = [got[0] - want[0]]
        if len(got) > 1:
            k = got[0].shape[-1]
            product = (got[1][..., :k] * got[0][..., None, :]) @ got[2][..., :k, :]
            same = (want[1][..., :k] * want[0][..., None, :]) @ want[2][..., :k, :]
            errors += [product - same]
    elif op == 'eig':
        values = [np.sort_complex(x[0].reshape(-1)) for x in (got, want)]
        errors = [] if max(a.shape[-2:]) > 1 else [values[0] - values[1]]
        if len(got) > 1:
            right = got[-1]
            errors += [a @ right - right * got[0][..., None, :]]
    else:
        errors = [got[1] @ got[0] @ adjoint(got[1]) - a]
    return max((np.abs(e).max(initial=0) / scale for e in errors), default=0)


def main(folder):
    failed, agree, worst = [], 0, collections.defaultdict(float)
    for path in sorted(glob.glob(os.path.join(folder, '*.mlir*'))):
        stem = os.path.splitext(path)[0]
        op = os.path.basename(stem).split('.')[0]
        inputs, want = load(stem + '.npz')
        try:
            got = run(path, inputs)
        except Exception as e:
            failed.append(f'{path}: {str(e)[:300]}')
            continue
        if op in DECOMPOSITIONS and want[0].size:
            by, limit = residual(op, inputs, got, want), 64
        else:
            by = max((difference(g, w) for g, w in zip(got, want)), default=0)
            limit = WIDER.get(op, UNITS)
        worst[op] = max(worst[op], by)
        if by <= limit:
            agree += 1
        else:
            failed.append(f'{path}: differs by {by:.3g}\n  {[x.dtype for x in inputs]} {got}\n  {want}'[:600])
    print('jaxlib', jaxlib.__version__)
    for op in sorted(worst, key=worst.get)[::-1][:12]:
        print(f'  {op}: {worst[op]:.3g}')
    for line in failed[:40]:
        print(line)
    print(f'{agree} agree, {len(failed)} do not')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
