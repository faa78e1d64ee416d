# SPDX-License-Identifier: Apache-2.0
"""jot and JAX side by side: the same inputs, alternating in one run, on the same cores.

    compare.py JOT_BENCH [--rounds N] [--seconds T] [--check] [NAME...]

A name chooses the cases that contain it.  --check compares the results and measures nothing.
The ratio is the median over rounds of JAX's median call over jot's; `reach` is what it is to be.
With JOT_DEVICE=cuda both run on the GPU, with calls queued, and `reach` is a time of jot in us.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile

# JAX's time of these is that of calls queued back to back.
QUEUED = ("layernorm",)
IS_GPU = os.environ.get("JOT_DEVICE", "").startswith("cuda")


class Peer:
    def __init__(self, command, env):
        self.process = subprocess.Popen(
            command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"it ended with status {self.process.wait()}")
        return line.strip()

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.line()
        if answer.startswith("error"):
            raise RuntimeError(answer[6:])
        return answer

    def numbers(self, *words):
        return [float(x) for x in self.ask(*words).split()[1:]]

    def list(self):
        answer, rows = self.ask("list"), []
        while answer != "end":
            rows.append(answer.split())
            answer = self.line()
        return [(name, float(reach)) for name, reach in rows]


def cpu_name():
    with open("/proc/cpuinfo") as f:
        names = [l.split(":")[1].strip() for l in f if l.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def environment(folder):
    env = dict(os.environ)
    env.pop("OPENBLAS_CORETYPE", None)
    env["JOT_CACHE_DIR"] = folder + "/cache"
    return env


def remove_files(folder, ending=""):
    for name in os.listdir(folder):
        if name.endswith(ending):
            os.remove(os.path.join(folder, name))


def compare(jot, jax, name, reach, options, folder):
    jot.ask("prepare", name)
    remove_files(folder + "/cache")
    cold, warm = jot.numbers("compile")[0], jot.numbers("compile")[0]
    jot.ask("save", folder)
    jax_cold = jax.numbers("prepare", name, folder)[0]
    deviation = jax.numbers("check", folder)[0]
    row = f"{name:24s} {deviation:9.1e} {cold:8.1f} {warm:6.2f} {jax_cold:8.1f}"
    if not options.check:
        how = "queue" if name.startswith(QUEUED) else "run"
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(jot.numbers("run", options.seconds)[0])
            theirs.append(jax.numbers(how, options.seconds)[0])
        ratios = sorted(b / a for a, b in zip(ours, theirs))
        ratio = statistics.median(ratios)
        row += f" {statistics.median(ours):11.2f} {statistics.median(theirs):11.2f} {ratio:7.2f}"
        reached = statistics.median(ours) <= reach if IS_GPU else ratio >= reach
        row += f" {ratios[0]:6.2f}..{ratios[-1]:<6.2f} {reach:6.1f} {'yes' if reached else 'NO'}"
    print(row, flush=True)
    jot.ask("drop")
    jax.ask("drop")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("jot_bench")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_intermixed_args()
    worker = [sys.executable, os.path.join(os.path.dirname(__file__), "jax_bench.py")]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        os.mkdir(env["JOT_CACHE_DIR"], 0o700)
        jot, jax = Peer([options.jot_bench], env), Peer(worker, env)
        print(f"{cpu_name()}, {jax.ask('version')}, {platform.platform()}")
        print("times in us, compilation in ms; deviation over the largest result")
        title = f"{'case':24s} {'deviation':>9s} {'cold':>8s} {'warm':>6s} {'JAX cold':>8s}"
        if not options.check:
            title += f" {'jot':>11s} {'JAX':>11s} {'ratio':>7s} {'spread':>14s} {'reach':>6s}"
        print(title)
        for name, reach in jot.list():
            if options.names and not any(n in name for n in options.names):
                continue
            remove_files(folder, ".npy")
            try:
                compare(jot, jax, name, reach, options, folder)
            except RuntimeError as e:
                failures += 1
                print(f"{name:24s} {e}", flush=True)
                if jot.process.poll() is not None:
                    jot = Peer([options.jot_bench], env)
                if jax.process.poll() is not None:
                    jax = Peer(worker, env)
        for peer in jot, jax:
            peer.process.stdin.close()
            peer.process.wait()
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
