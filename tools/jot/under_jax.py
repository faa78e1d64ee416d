# SPDX-License-Identifier: Apache-2.0
"""Times a program under JAX: the other half of `jot time FILE --against python`.

    under_jax.py FILE INPUTS.npz PLATFORM full|tf32
"""
import dataclasses
import os
import statistics
import sys
import time

path, inputs, platform, precision = sys.argv[1:]
os.environ.setdefault("JAX_PLATFORMS", platform)
import jax
import numpy as np

jax.config.update("jax_enable_x64", True)


def as_jax(a):
    if a.dtype.kind == "V":  # as NumPy gives back what it does not know
        import ml_dtypes
        a = a.view(ml_dtypes.bfloat16)
    return jax.device_put(a)


# The program with products of f32 in full where it says nothing of their precision, which XLA takes for TF32 on a GPU.
# The precision stands in the operations: JAX's option says what those have that are traced under it.
def in_full(program):
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    def raise_precision(op):
        given = list(op.attributes["precision_config"]) if "precision_config" in op.attributes else []
        if op.name in ("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"):
            op.attributes["precision_config"] = ir.ArrayAttr.get([
                stablehlo.PrecisionAttr.get("HIGHEST") if "DEFAULT" in str(p) else p
                for p in given or [stablehlo.PrecisionAttr.get("DEFAULT")] * 2])
        return ir.WalkResult.ADVANCE

    with mlir.make_ir_context() as context:
        if program[:4] == b"ML\xefR":
            module = stablehlo.deserialize_portable_artifact(context, program)
        else:
            module = ir.Module.parse(program)
        module.operation.walk(raise_precision)
        # With what other dialects say, as JAX's own artefacts: calls of libraries have a sharding rule.
        return stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version(), True)


def of_export(data):
    exported = jax.export.deserialize(bytearray(data))
    if precision == "full":
        module = in_full(exported.mlir_module_serialized)
        exported = dataclasses.replace(exported, mlir_module_serialized=module)
    return exported


def of_mlir(data):
    from jax._src import xla_bridge
    from jax._src.lib import xla_client

    backend = xla_bridge.get_backend()
    devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
    if precision == "full":
        data = in_full(data)
    program = data if data[:4] == b"ML\xefR" else data.decode()
    # JAX readies its calls of LAPACK when it lowers one.
    jax.jit(jax.lax.linalg.cholesky).lower(np.eye(2))
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
        positional, named = jax.tree_util.tree_unflatten(exported.in_tree, args)
        compiled = jax.jit(exported.call).lower(*positional, **named).compile()

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
