# SPDX-License-Identifier: Apache-2.0
"""Minimax polynomials of src/base/math/gamma.inc, by Remez' exchange as in remez.c, of functions that only mpmath has.

    python3 special.py [name]

Prints for each fit log2 of the largest relative error, and the coefficients, rounded one by one.
"""
import sys

import mpmath as mp

mp.mp.prec = 200
ROOT = mp.findroot(mp.digamma, 1.46)


def minimax(f, a, b, n, rounds=5):
    """n coefficients of the polynomial with the least largest |1 - P / f| on [a, b], and that error."""
    middle, half = (mp.mpf(a) + b) / 2, (mp.mpf(b) - a) / 2
    x = [middle - half * mp.cos(mp.pi * i / n) for i in range(n + 1)]
    grid = [middle - half * mp.cos(mp.pi * i / (16 * n + 16)) for i in range(16 * n + 17)]
    values = [f(g) for g in grid]
    for _ in range(rounds):
        matrix, right = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
        for i, xi in enumerate(x):
            right[i] = f(xi)
            for k in range(n):
                matrix[i, k] = xi ** k
            matrix[i, n] = (-1) ** i * right[i]
        c = list(mp.lu_solve(matrix, right))[:n]
        runs = []  # the extremum of each run of errors of one sign
        for g, v in zip(grid, values):
            e = 1 - mp.polyval(c[::-1], g) / v
            if not runs or (e >= 0) != (runs[-1][1] >= 0):
                runs.append((g, e))
            elif abs(e) > abs(runs[-1][1]):
                runs[-1] = (g, e)
        worst = max(abs(e) for _, e in runs)
        while len(runs) > n + 1:
            runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
        if len(runs) < n + 1:
            break
        x = [g for g, _ in runs]
    return c, worst


def sin_pi(z):
    r = mp.sqrt(z)
    return mp.sin(mp.pi * r) / r if z else mp.pi


def log_gamma(u):
    z = u + mp.mpf(7) / 4
    d = (z - 1) * (z - 2)
    return mp.loggamma(z) / d if abs(d) > 1e-30 else mp.digamma(z) / (2 * z - 3)


def stirling(t):
    if t < 1e-12:
        return mp.mpf(1) / 12 - t / 360
    x = 1 / mp.sqrt(t)
    return x * (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def digamma(u):
    x = u + mp.mpf(31) / 20
    return mp.digamma(x) / (x - ROOT) if abs(x - ROOT) > 1e-25 else mp.polygamma(1, ROOT)


def digamma_far(t):
    if t < 1e-12:
        return mp.mpf(1) / 12 - t / 120
    x = 1 / mp.sqrt(t)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / t


# name, function, interval and number of terms in single and in double precision
FITS = [
    ("sin_pi", sin_pi, (0, 1 / 4, 6), (0, 1 / 4, 9)),
    ("gamma_near", log_gamma, (-0.5, 0.5, 10), (-0.5, 0.5, 20)),
    ("gamma_correction", stirling, (1e-14, 1 / 16, 4), (1e-14, mp.mpf(1) / 49, 8)),
    ("digamma_near", digamma, (-0.55, 0.55, 10), (-0.55, 0.55, 22)),
    ("digamma_far", digamma_far, (1e-14, 1 / 16, 5), (1e-14, mp.mpf(1) / 49, 9)),
]

for name, f, *widths in FITS:
    if len(sys.argv) < 2 or name in sys.argv[1:]:
        for bits, (a, b, n) in zip((24, 53), widths):
            c, error = minimax(f, a, b, n)
            with mp.workprec(bits):
                rounded = [float(+v).hex() for v in c]
            print(name, bits, mp.nstr(mp.log(error, 2), 5), *rounded, sep=", ")
