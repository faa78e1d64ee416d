# SPDX-License-Identifier: Apache-2.0
"""The ends of stiff equations for test_ode_stiff.c, by a solver that has nothing of jot's: the linearly implicit
method of Euler, extrapolated (Deuflhard 1983; Hairer, Wanner: Solving Ordinary Differential Equations II, IV.9), in
40 digits and with errors below 1e-13 of each value a step.

    make_stiff.py > stiff.def

The problems are those of the Test Set for IVP Solvers (Mazzia, Magherini, Bari 2008).
"""
import sys

from mpmath import mp, mpf

mp.dps = 40
TOLERANCE, FLOOR, COLUMNS = mpf(10) ** -13, mpf(10) ** -27, 12


def robertson(y):
    a, b, c = mpf('0.04') * y[0], 10000 * y[1] * y[2], 30000000 * y[1] * y[1]
    return [b - a, a - b - c, c]


def hires(y):
    d = [mpf(x) for x in ('1.71', '0.43', '8.32', '0.0007', '8.75', '10.03', '0.035', '1.12', '1.745', '280', '0.69', '1.81')]
    bound = d[9] * y[5] * y[7]
    last = bound - d[11] * y[6]
    return [-d[0] * y[0] + d[1] * y[1] + d[2] * y[2] + d[3], d[0] * y[0] - d[4] * y[1],
            -d[5] * y[2] + d[1] * y[3] + d[6] * y[4], d[2] * y[1] + d[0] * y[2] - d[7] * y[3],
            -d[8] * y[4] + d[1] * (y[5] + y[6]), -bound + d[10] * y[3] + d[0] * y[4] - d[1] * y[5] + d[10] * y[6],
            last, -last]


def oregonator(y):
    s, q, w = mpf('77.27'), mpf('8.375e-6'), mpf('0.161')
    return [s * (y[1] + y[0] * (1 - q * y[0] - y[1])), (y[2] - (1 + y[0]) * y[1]) / s, w * (y[0] - y[2])]


def van_der_pol(y):
    return [y[1], 1000000 * ((1 - y[0] * y[0]) * y[1] - y[0])]


RATES = [mpf(x) for x in '.35 26.6 12300 .00086 .00082 15000 .00013 24000 16500 9000 .022 12000 1.88 16300 4800000 '
         '.00035 .0175 100000000 444000000000 1240 2.1 5.78 .0474 1780 3.12'.split()]
# Which values, counted from 1, a reaction takes (the product of all is its speed), and what it makes.
REACTIONS = [((1,), (2, 3)), ((2, 4), (1,)), ((5, 2), (1, 6)), ((7,), (5, 5, 8)), ((7,), (8,)), ((7, 6), (5, 8)),
             ((9,), (5, 8, 10)), ((9, 6), (11,)), ((11, 2), (1, 10, 12)), ((11, 1), (13,)), ((13,), (1, 11)),
             ((10, 2), (1, 14)), ((14,), (5, 7)), ((1, 6), (15,)), ((3,), (4,)), ((4,), (16,)), ((4,), (3,)),
             ((16,), (6, 6)), ((16,), (3,)), ((17, 6), (5, 18)), ((19,), (2,)), ((19,), (1, 3)), ((1, 4), (19,)),
             ((19, 1), (20,)), ((20,), (1, 19))]


def pollution(y):
    slope = [mpf(0)] * 20
    for rate, (taken, made) in zip(RATES, REACTIONS):
        for i in taken:
            rate *= y[i - 1]
        for i in taken:
            slope[i - 1] -= rate
        for i in made:
            slope[i - 1] += rate
    return slope


PROBLEMS = [
    (robertson, '1e11', '1 0 0'),
    (hires, '321.8122', '1 0 0 0 0 0 0 0.0057'),
    (oregonator, '360', '1 2 3'),
    (van_der_pol, '2', '2 0'),
    (pollution, '60', '0 .2 0 .04 0 0 .1 .3 .01 0 0 0 0 0 0 0 .007 0 0 0'),
]


def jacobian(f, y):
    columns, at = [], f(y)
    for j in range(len(y)):
        d = mpf(10) ** -18 * max(abs(y[j]), mpf(10) ** -6)
        columns.append([(b - a) / d for a, b in zip(at, f(y[:j] + [y[j] + d] + y[j + 1:]))])
    return [list(row) for row in zip(*columns)]


def factor(a):
    n, order = len(a), list(range(len(a)))
    for k in range(n):
        p = max(range(k, n), key=lambda i: abs(a[i][k]))
        a[k], a[p], order[k], order[p] = a[p], a[k], order[p], order[k]
        for i in range(k + 1, n):
            if a[i][k]:
                a[i][k] /= a[k][k]
                for j in range(k + 1, n):
                    a[i][j] -= a[i][k] * a[k][j]
    return a, order


def solve(factors, b):
    a, order = factors
    x = [b[i] for i in order]
    for i in range(len(x)):
        x[i] -= sum(a[i][j] * x[j] for j in range(i) if a[i][j])
    for i in reversed(range(len(x))):
        x[i] = (x[i] - sum(a[i][j] * x[j] for j in range(i + 1, len(x)) if a[i][j])) / a[i][i]
    return x


def step(f, y, h):
    """The next point and how many columns it took, or None."""
    n, matrix, rows = len(y), jacobian(f, y), []
    for j in range(COLUMNS):
        count = j + 2
        small = h / count
        factors = factor([[(i == k) - small * matrix[i][k] for k in range(n)] for i in range(n)])
        x = y
        for _ in range(count):
            x = [a + b for a, b in zip(x, solve(factors, [small * s for s in f(x)]))]
        row = [x]
        for k in range(j):
            ratio = mpf(count) / (j + 1 - k) - 1
            row.append([a + (a - b) / ratio for a, b in zip(row[k], rows[j - 1][k])])
        rows.append(row)
        if j > 2:
            error = max(abs(a - b) / (TOLERANCE * abs(a) + FLOOR) for a, b in zip(row[j], row[j - 1]))
            if error < 1:
                return row[j], j
            if not error < mpf(10) ** 60:
                return None
    return None


def end(f, last, y):
    t, h, steps = mpf(0), mpf(10) ** -8, 0
    while t < last:
        h = min(h, last - t)
        found = step(f, y, h)
        if not found:
            h /= 3
            continue
        y, columns = found
        t, steps = t + h, steps + 1
        h *= mpf(2) if columns < COLUMNS - 6 else mpf('1.2') if columns < COLUMNS - 2 else mpf('0.9')
    print(f.__name__, steps, 'steps', file=sys.stderr)
    return y


for f, last, start in PROBLEMS:
    if len(sys.argv) < 2 or f.__name__ in sys.argv[1:]:
        y = end(f, mpf(last), [mpf(x) for x in start.split()])
        print('STIFF(%s, %s, %s)' % (f.__name__, last, ', '.join(mp.nstr(x, 20) for x in y)), flush=True)
