# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of docs/jax-to-jot.md and of cases.md.

    table.py OUTPUT DOCUMENT ...      writes the C functions of their calls, for test_table.c
"""
import os
import re
import sys

ROW = re.compile(r"^\| (.+?) \| (.+) \|$")
CODE = re.compile(r"^`([^`]+)`$")


def read(path):
    """Of each row: its place, the calls of JAX, and the call of jot or None."""
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            row, place = ROW.match(line.rstrip("\n")), (os.path.basename(path), number)
            if not row or row[1] == "JAX" or row[1].startswith("-"):
                continue
            jax, jot = re.findall(r"`([^`]+)`", row[1]), CODE.match(row[2])
            if not jax or (jot and len(jax) != 1):
                sys.exit("%s:%d: a row is | `call of JAX` | `call of jot` | or | `name`, ... | reason |"
                         % place)
            yield place, jax, jot and jot[1]


def quoted(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def statements(call):
    """Statements, and the expression behind them."""
    depth, end = 0, 0
    for at, c in enumerate(call):
        depth += (c in "({") - (c in ")}")
        if depth == 0 and (c == ";" or c == "}" and call[at + 1 : at + 2] != ";"):
            end = at + 1
    return call[:end], call[end:].strip()


def write_calls(path, documents):
    functions, rows = [], []
    for place, jax, jot in (row for d in documents for row in read(d)):
        if not jot:
            continue
        before, last = statements(jot)
        functions.append('#line %d "%s"\nstatic jot_value row_%d(void) { %s return %s; }\n' % (
            place[1], place[0], len(rows), before, last))
        rows.append('    {%s, row_%d, "%s:%d"},\n' % (quoted(jax[0]), len(rows), *place))
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(functions))
        f.write("\nstatic const struct row rows[] = {\n%s};\n" % "".join(rows))


if __name__ == "__main__":
    write_calls(sys.argv[1], sys.argv[2:])
