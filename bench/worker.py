# SPDX-License-Identifier: Apache-2.0
"""What the peers of jot have in common: the protocol of jot_bench, over their own forms of the cases.

    version               "NAME VERSION"
    prepare NAME FOLDER   takes the inputs from FOLDER/inI.npy: "ready COLD_MS 0", or "absent"
    check FOLDER          compares with FOLDER/outI.npy: "checked DEVIATION"
    run SECONDS           "time MEDIAN_US LEAST_US"
    queue SECONDS         the same for calls that are queued back to back
    drop                  forgets the case: "dropped"

What fails answers "error MESSAGE".  The deviation is the largest difference over the largest size
of the result; of a chaotic case, where a rounding grows without bound in some elements, it is the
median difference; of random numbers that are other ones than jot's it is "nan".
"""

import glob
import os
import sys
import time

import numpy as np

IS_GPU = os.environ.get("JOT_DEVICE", "").startswith("cuda")
CHAOTIC = ("lorenz",)


def widened(a):
    """As f64, complex numbers as pairs; numbers of type V2 are bf16."""
    if a.dtype.kind == "V":
        a = (a.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if a.dtype.kind == "c":
        a = np.ascontiguousarray(a).view(a.real.dtype)
    return np.atleast_1d(a).astype(np.float64)


def same_type(a, b):
    """Whether they hold the same kind of numbers: integers may be of any size."""
    kind, other = a.dtype.kind, b.dtype.kind
    return kind == other and (kind in "iu" or a.dtype.itemsize == b.dtype.itemsize)


class Worker:
    """A peer says how it makes, compiles, awaits and returns things."""

    cases = {}  # names of cases begin with these, the longest that fits counts
    random = ()  # those whose results are random numbers of its own

    def __init__(self):
        self.drop()

    def array(self, a):
        """An array of NumPy as one of the peer's."""
        raise NotImplementedError

    def jit(self, name, function):
        """What is called with the arrays."""
        return function

    def compile(self):
        """Makes ready for calls; by the first call, where nothing else does."""
        self.call()

    def wait(self, result):
        """Until the result of the last of the calls is there."""
        return result

    def leaves(self, result):
        """Arrays of NumPy."""
        raise NotImplementedError

    def drop(self, *_):
        self.f = self.args = None
        return "dropped"

    def prepare(self, name, folder):
        self.drop()
        fits = [c for c in self.cases if name.startswith(c)]
        if not fits:
            return "absent"
        case = max(fits, key=len)
        n = len(glob.glob(folder + "/in*.npy"))
        self.args = [self.array(np.load(f"{folder}/in{i}.npy")) for i in range(n)]
        self.difference = np.median if name.startswith(CHAOTIC) else np.max
        self.is_random = name.startswith(self.random) if self.random else False
        self.f = self.jit(name, self.cases[case])
        start = time.perf_counter()
        self.compile()
        cold = time.perf_counter() - start
        self.call()
        return f"ready {1e3 * cold:.3f} 0"

    def call(self):
        return self.wait(self.f(*self.args))

    def check(self, folder):
        if self.is_random:
            return "checked nan"
        worst = 0.0
        for i, mine in enumerate(self.leaves(self.call())):
            other = np.load(f"{folder}/out{i}.npy")
            if mine.shape != other.shape or not same_type(mine, other):
                return f"error result {i}: {other.dtype}{other.shape}, the peer has {mine.dtype}{mine.shape}"
            mine, other = widened(mine), widened(other)
            size = np.max(np.abs(mine), initial=1e-30)
            difference = np.abs(mine - other)
            difference[np.isnan(mine) & np.isnan(other)] = 0
            worst = max(worst, float(self.difference(difference)) / size)
        return f"checked {worst:.2e}"

    def run(self, budget, calls=None):
        start = time.perf_counter()
        self.call()
        once = time.perf_counter() - start
        if IS_GPU:
            calls = int(10e-3 / once) + 1
        batch = calls or (int(40e-6 / once) + 1 if once < 20e-6 else 1)
        sample, end = [], time.perf_counter() + float(budget)
        while len(sample) < 2000 and (len(sample) < 3 or time.perf_counter() < end):
            start = time.perf_counter()
            if calls:
                for _ in range(batch):
                    result = self.f(*self.args)
                self.wait(result)
            else:
                for _ in range(batch):
                    self.call()
            sample.append((time.perf_counter() - start) / batch)
        sample.sort()
        return f"time {1e6 * sample[len(sample) // 2]:.4f} {1e6 * sample[0]:.4f}"

    def queue(self, budget):
        return self.run(budget, calls=20)


def serve(worker):
    for line in sys.stdin:
        command, *rest = line.split()
        try:
            answer = getattr(worker, command)(*rest)
        except Exception as e:  # what went wrong belongs to the case, not to the run
            answer = "error " + " ".join(str(e).split())[:300]
        print(answer, flush=True)
