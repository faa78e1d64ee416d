# SPDX-License-Identifier: Apache-2.0
"""Times a program under JAX: the other half of `jot time FILE --against python`.

    under_jax.py FILE INPUTS.npz PLATFORM full|tf32
"""
import os
import statistics
import sys
import time

path, inputs, platform, precision = sys.argv[1:]
os.environ.setdefault("JAX_PLATFORMS", platform)
import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "tensorfloat32" if precision == "tf32" else "float32")


def as_jax(a):
    if a.dtype.kind == "V":  # as NumPy gives back what it does not know
        import ml_dtypes
        a = a.view(ml_dtypes.bfloat16)
    return jax.device_put(a)


def of_export(data):
    exported = jax.export.deserialize(bytearray(data))
    return jax.jit(exported.call)


def of_mlir(data):
    from jax._src import xla_bridge
    from jax._src.lib import xla_client

    backend = xla_bridge.get_backend()
    devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
    program = data if data[:4] == b"ML\xefR" else data.decode()
    return backend.compile_and_load(program, devices, xla_client.CompileOptions())


def main():
    import jax.export

    with open(path, "rb") as f:
        data = f.read()
    with np.load(inputs) as z:
        args = [as_jax(z[n]) for n in z.files]
    jax.block_until_ready(args)
    # Bytecode, or text, which has no zeros.
    is_mlir = data[:4] == b"ML\xefR" or b"\0" not in data
    start = time.perf_counter()
    if is_mlir:
        executable = of_mlir(data)

        def call():
            out = executable.execute_sharded(args).disassemble_into_single_device_arrays()
            jax.block_until_ready(out)
    else:
        exported = of_export(data)
        tree = jax.export.deserialize(bytearray(data)).in_tree
        positional, named = jax.tree_util.tree_unflatten(tree, args)
        compiled = exported.lower(*positional, **named).compile()

        def call():
            jax.block_until_ready(compiled(*positional, **named))
    compile_seconds = time.perf_counter() - start
    call()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or (len(times) < 1000 and time.perf_counter() - begin < 2):
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    print("%-6s compile %10.3f ms   run %10.4f ms   (least %.4f ms, of %d calls)" % (
        "jax", 1e3 * compile_seconds, 1e3 * statistics.median(times), 1e3 * min(times), len(times)))


main()
