# SPDX-License-Identifier: Apache-2.0
"""jot and its peers side by side: the same inputs, alternating in one run, on the same cores.

    compare.py JOT_BENCH [--rounds N] [--seconds T] [--check] [--peers jax,torch,cupy] [NAME...]

A name chooses the cases that contain it.  --check compares the results and measures nothing.
The ratio is the median over rounds of the best peer's median call over jot's; `reach` is what it is
to be.  With JOT_DEVICE=cuda all run on the GPU, with calls queued, and `reach` is a time of jot in
us; `floor` is what the bytes or the products of a call take by what the GPU was measured to do at
the beginning of the run (roofs.c).  A peer that this Python does not have, or that does not have a
case, is left out.
"""

import argparse
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

# JAX's time of these is that of calls queued back to back.
QUEUED = ("layernorm",)
# Seconds before each turn: threads of the libraries of who had the last one go on looking for work, some 0.1 s.
REST = 0.25
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
    env["CUDA_CACHE_DISABLE"] = "1"  # or nvJitLink finds on the disk what it once assembled
    return env


def remove_files(folder, ending=""):
    for name in os.listdir(folder):
        if name.endswith(ending):
            os.remove(os.path.join(folder, name))


class Peers:
    """Those of the peers that there are, in order, each started again when it has ended."""

    def __init__(self, names, env):
        self.env, self.at = env, {}
        for name in names:
            if importlib.util.find_spec(name) is None:
                print(f"no {name}: this Python does not have it")
                continue
            self.at[name] = self.start(name)
            print(self.at[name].ask("version"))

    def start(self, name):
        folder = os.path.dirname(os.path.abspath(__file__))
        return Peer([sys.executable, os.path.join(folder, f"{name}_bench.py")], self.env)

    def restart_ended(self):
        for name, peer in self.at.items():
            if peer.process.poll() is not None:
                self.at[name] = self.start(name)

    def prepare(self, name, folder):
        """By peer that has the case: milliseconds of compilation, and the deviation."""
        ready = {}
        for peer, process in self.at.items():
            try:
                answer = process.ask("prepare", name, folder)
                if answer != "absent":
                    ready[peer] = (float(answer.split()[1]), process.numbers("check", folder)[0])
            except (RuntimeError, BrokenPipeError) as e:
                print(f"{name:24s} {peer}: {e}", flush=True)
        return ready


def cells(width, digits, peers, of):
    """A number for each of the peers, or a dash."""
    return "".join(
        f" {of[p]:{width}.{digits}f}" if p in of else f" {'-':>{width}s}" for p in peers.at
    )


def measure(jot, peers, ready, name, options):
    """jot's medians, and those of each peer, by round."""
    how = "queue" if name.startswith(QUEUED) else "run"
    ours, theirs = [], {p: [] for p in ready}
    for _ in range(options.rounds):
        time.sleep(REST)
        ours.append(jot.numbers("run", options.seconds)[0])
        for p, times in theirs.items():
            time.sleep(REST)
            times.append(peers.at[p].numbers(how, options.seconds)[0])
    return ours, theirs


def compare(jot, peers, name, reach, options, folder):
    jot.ask("prepare", name)
    remove_files(folder + "/cache")
    cold, warm = jot.numbers("compile")[0], jot.numbers("compile")[0]
    floor = jot.numbers("save", folder)[0]
    ready = peers.prepare(name, folder)
    deviation = max((d for _, d in ready.values() if d == d), default=float("nan"))
    row = f"{name:24s} {deviation:9.1e} {cold:8.1f} {warm:6.2f}"
    row += cells(9, 1, peers, {p: c for p, (c, _) in ready.items()})
    if not options.check:
        ours, theirs = measure(jot, peers, ready, name, options)
        median = {p: statistics.median(times) for p, times in theirs.items()}
        own = statistics.median(ours)
        row += f" {floor:9.2f}" if IS_GPU else ""
        row += f" {own:11.2f}" + cells(11, 2, peers, median)
        ratio = 0.0
        if median:
            best = theirs[min(median, key=median.get)]
            ratios = sorted(b / a for a, b in zip(ours, best))
            ratio = statistics.median(ratios)
            row += f" {ratio:7.2f} {ratios[0]:6.2f}..{ratios[-1]:<6.2f}"
        else:
            row += f" {'-':>7s} {'-':>14s}"
        reached = own <= reach if IS_GPU else ratio >= reach
        row += f" {reach:6.1f} {'yes' if reached else 'NO'}"
    print(row, flush=True)


def title(peers, options):
    text = f"{'case':24s} {'deviation':>9s} {'cold':>8s} {'warm':>6s}"
    text += "".join(f" {p + ' cold':>9s}" for p in peers.at)
    if not options.check:
        text += f" {'floor':>9s}" if IS_GPU else ""
        text += f" {'jot':>11s}" + "".join(f" {p:>11s}" for p in peers.at)
        text += f" {'ratio':>7s} {'spread':>14s} {'reach':>6s}"
    return text


def print_roofs(jot):
    copy, read, *products = (x / 1e12 for x in jot.numbers("roofs"))
    print(f"a copy of 1 GiB: {copy:.2f} TB/s, a sum of it {read:.2f}; products of 8192: ", end="")
    print("{:.1f} Tflop/s in f32, {:.0f} in TF32, {:.0f} in bf16".format(*products))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("jot_bench")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--peers", default="jax,torch,cupy" if IS_GPU else "jax")
    options = parser.parse_intermixed_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        os.mkdir(env["JOT_CACHE_DIR"], 0o700)
        print(f"{cpu_name()}, {platform.platform()}")
        jot, peers = Peer([options.jot_bench], env), Peers(options.peers.split(","), env)
        if IS_GPU and not options.check:
            print_roofs(jot)
        print("times in us, compilation in ms; deviation over the largest result")
        print(title(peers, options))
        for name, reach in jot.list():
            if options.names and not any(n in name for n in options.names):
                continue
            remove_files(folder, ".npy")
            try:
                compare(jot, peers, name, reach, options, folder)
            except (RuntimeError, BrokenPipeError) as e:
                failures += 1
                print(f"{name:24s} {e}", flush=True)
            if jot.process.poll() is not None:
                jot = Peer([options.jot_bench], env)
            peers.restart_ended()
            for peer in (jot, *peers.at.values()):
                peer.ask("drop")
        for peer in (jot, *peers.at.values()):
            peer.process.stdin.close()
            peer.process.wait()
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
