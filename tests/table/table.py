# SPDX-License-Identifier: Apache-2.0
"""Reads docs/jax-to-jot.md.

    table.py DOCUMENT OUTPUT      writes the C functions of its calls, for test_table.c
"""
import re
import sys

ROW = re.compile(r"^\| (.+?) \| (.+) \|$")
CODE = re.compile(r"^`([^`]+)`$")


def read(path):
    """Of each row: line, calls of JAX, call of jot or None."""
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            row = ROW.match(line.rstrip("\n"))
            if not row or row[1] == "JAX" or row[1].startswith("-"):
                continue
            jax, jot = re.findall(r"`([^`]+)`", row[1]), CODE.match(row[2])
            if not jax or (jot and len(jax) != 1):
                sys.exit("%s:%d: a row is | `call of JAX` | `call of jot` | or | `name`, ... | reason |"
                         % (path, number))
            yield number, jax, jot and jot[1]


def write_calls(document, path):
    functions, rows = [], []
    for number, jax, jot in read(document):
        if not jot:
            continue
        *before, last = jot.split(";")
        body = "".join(s.strip() + "; " for s in before) + "return " + last.strip() + ";"
        functions.append('#line %d "docs/jax-to-jot.md"\nstatic jot_value row_%d(void) { %s }\n' % (
            number, number, body))
        rows.append('    {"%s", row_%d, %d},\n' % (jax[0].replace("\\", "\\\\").replace('"', '\\"'),
                                                  number, number))
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(functions))
        f.write("\nstatic const struct row rows[] = {\n%s};\n" % "".join(rows))


if __name__ == "__main__":
    write_calls(sys.argv[1], sys.argv[2])
