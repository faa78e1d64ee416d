# SPDX-License-Identifier: Apache-2.0
"""Whole programs beside JAX: ./dev bench programs [NAME ...] [--size=cpu|gpu|tiny] [--tf32]

The programs are those of $JOT_CONFORMANCE/whole_programs, exported in that size by its programs.py.  For each `jot
time --against python` compiles and runs both, one after the other; the operations and bytes are XLA's count.  What
takes longer than a minute is stopped; of a program that jot does not end, the kernel is named that it stands in.

Products of f32 are those of f32 on both sides; with --tf32 they are TF32 on both, as JAX has them on a GPU unless told.

    programs.py PATH-OF-JOT [NAME ...] [--size=SIZE] [--tf32]
"""
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time

import jax
import jax.export
import numpy as np

MINUTE = 60


def export(folder, names, size):
    source = os.path.join(os.environ["JOT_CONFORMANCE"], "whole_programs", "programs.py")
    subprocess.run([sys.executable, source, "export", folder, *names, "--size=" + size], check=True,
                   stdout=subprocess.DEVNULL)


def write_inputs(folder, name):
    with np.load(os.path.join(folder, name + ".npz")) as arrays:
        inputs = [arrays["in%d" % i] for i in range(sum(n.startswith("in") for n in arrays.files))]
    paths = [os.path.join(folder, "%s.in%d.npy" % (name, i)) for i in range(len(inputs))]
    for path, array in zip(paths, inputs):
        np.save(path, array)
    return inputs, paths


# Operations and bytes as XLA counts them: a loop once, however many trips it has.
def count(path, inputs):
    with open(path, "rb") as file:
        exported = jax.export.deserialize(bytearray(file.read()))
    positional, named = jax.tree_util.tree_unflatten(exported.in_tree, inputs)
    cost = jax.jit(exported.call).lower(*positional, **named).compile().cost_analysis() or {}
    return cost.get("flops", 0.0), cost.get("bytes accessed", 0.0)


def times(output, who):
    found = re.search(who + r" +compile +([0-9.]+) ms +run +([0-9.]+) ms", output)
    return (float(found[1]), float(found[2])) if found else None


# Runs it for a minute, and one more once it has said what it takes jot.  Its status, or None, and what it said.
def run(command):
    with tempfile.TemporaryFile("w+") as output:
        def said():
            output.seek(0)
            return output.read()

        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
            try:
                try:
                    process.wait(MINUTE)
                except subprocess.TimeoutExpired:
                    if times(said(), "jot"):
                        process.wait(MINUTE)
            except subprocess.TimeoutExpired:
                pass
            status = process.poll()
            process.kill()
        return status, said()


# The step that a program is in after a minute, by JOT_DUMP=run.
def standing_in(command):
    last, end = b"", time.monotonic() + MINUTE
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env={**os.environ, "JOT_DUMP": "run"}) as process:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stderr, selectors.EVENT_READ)
            while time.monotonic() < end and selector.select(end - time.monotonic()):
                said = os.read(process.stderr.fileno(), 1 << 20)
                if not said:
                    break
                last = (last + said)[-4096:]
        process.kill()
    steps = re.findall(rb"---- run: (.*)\n", last)
    return steps[-1].decode() if steps else "the compiler"


def measure(jot, folder, name, options):
    path = os.path.join(folder, name + ".jaxexport")
    inputs, paths = write_inputs(folder, name)
    command = [jot, "time", path, *options]
    for p in paths:
        command += ["--input", p]
    status, output = run(command + ["--against", "python"])
    mine, theirs = times(output, "jot"), times(output, "jax")
    if status is None and mine:
        return "%-20s %9.0f %9s %10.3f   JAX is stopped after %d s" % (name, mine[0], "", mine[1], MINUTE)
    if status is None:
        return "%-20s stopped after %d s, in %s" % (name, MINUTE, standing_in(command))
    if status or not mine or not theirs:
        return "%-20s %s" % (name, output.strip()[-200:])
    operations, bytes_ = count(path, inputs)
    return "%-20s %9.0f %9.0f %10.3f %10.3f %7.2f %9.2e %9.2e" % (
        name, mine[0], theirs[0], mine[1], theirs[1], theirs[1] / mine[1], operations, bytes_)


def main():
    names = [a for a in sys.argv[2:] if not a.startswith("--")]
    tf32 = [a for a in sys.argv[2:] if a == "--tf32"]
    options = dict(a[2:].split("=") for a in sys.argv[2:] if a.startswith("--") and a not in tf32)
    size = options.get("size", "gpu" if os.environ.get("JOT_DEVICE", "").startswith("cuda") else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        export(folder, names, size)
        print("JAX %s, size %s%s; ms; ratio: JAX's run time over jot's" % (
            jax.__version__, size, ", TF32" if tf32 else ""))
        print("%-20s %9s %9s %10s %10s %7s %9s %9s" % (
            "program", "compile", "JAX", "run", "JAX", "ratio", "flops", "bytes"))
        for name in sorted(f[:-len(".jaxexport")] for f in os.listdir(folder) if f.endswith(".jaxexport")):
            print(measure(sys.argv[1], folder, name, tf32), flush=True)


main()
