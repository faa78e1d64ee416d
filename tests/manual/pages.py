# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs the C of a page of the manual, and compares what it prints with the page.

    pages.py PAGE NUMBER INCLUDE LIBRARY COMPILER ...

A block ```c with a main is a program.  All others of the page are one program, in their order: those that begin as
a declaration does stand before main, the others in it, behind check() of ideas/index.md.  <!-- c ... --> is C that
the reader does not see.  A block ```text behind one says what it prints; JOT_UPDATE_GOLDEN=1 writes it anew.  NUMBER counts the pages, for
JOT_TEST_FEW.
"""
import os
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(c|text)\n(.*?)^```$|^<!-- c\n(.*?)^-->$", re.M | re.S)
TOP = re.compile(r"\s*(//[^\n]*\n\s*)*(static|(struct|enum)( \w+)? \{|typedef|#|JOT_(STRUCT|FUNCTION)\()")
HEAD = '#include <jot/jot.h>\n#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n' \
    'static void check(jot_status s)\n{\n    if (s != JOT_OK) {\n        fprintf(stderr, "%s\\n", jot_error_message());\n' \
    '        exit(1);\n    }\n}\n'
MARK = "\x02%d\n"


def programs(text, page):
    """Of each program: its text, and what it prints behind each mark."""
    top, inside, wanted, count = [HEAD], [], {}, 0
    last = None
    for match in BLOCK.finditer(text):
        line = '#line %d "%s"\n' % (text[:match.start()].count("\n") + 2, page)
        kind, code = match[1], match[2] or match[3]
        if kind == "text":
            if last is not None:
                last.append(match)
            last = None
            continue
        last = None
        if re.search(r"^int main\(", code, re.M):
            last = []
            yield line + code, last
        elif TOP.match(code):
            top.append(line + code)
        else:
            count += 1
            inside.append('    fputs("%s", stdout);\n' % (MARK % count).replace("\n", "\\n") + line + code)
            wanted[count] = last = []
    if inside or len(top) > 1:
        yield "%sint main(void)\n{\n%s    return 0;\n}\n" % ("".join(top), "".join(inside)), wanted


def run(program, folder, include, library, compiler):
    source, binary = os.path.join(folder, "program.c"), os.path.join(folder, "program")
    with open(source, "w", encoding="utf-8") as f:
        f.write(program)
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-I" + include]
    subprocess.run(compiler + flags + [source, "-o", binary, "-L" + library, "-ljot", "-lm",
                                       "-Wl,-rpath," + library], check=True)
    done = subprocess.run([binary], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
    text = done.stdout.decode()
    if done.returncode:
        sys.exit("%s\nexit status %d of\n%s" % (text, done.returncode, program))
    return text


def same(got, wanted):
    """Line by line, but for blanks at ends; a line of three dots stands for any."""
    pattern = r"\n".join(r"(?:.*\n)*?.*" if line.strip() == "..." else re.escape(line.rstrip()) + r" *"
                         for line in wanted.rstrip("\n").split("\n"))
    return re.fullmatch(pattern + r"\n*", got) is not None


def main(page, number, include, library, *compiler):
    library = os.path.abspath(library)
    few = int(os.environ.get("JOT_TEST_FEW") or 1)
    if "JOT_TEST_FULL" not in os.environ and (int(number) + int(os.environ.get("JOT_TEST_TURN") or 0)) % few:
        return 77
    with open(page, encoding="utf-8") as f:
        text = f.read()
    wrong = []
    for program, wanted in list(programs(text, page)):
        with tempfile.TemporaryDirectory() as folder:
            got = run(program, folder, include, library, list(compiler))
        parts = re.split("\x02(\\d+)\n", got)
        pairs = [(got, wanted)] if isinstance(wanted, list) else \
            [(parts[2 * k], wanted[int(parts[2 * k - 1])]) for k in range(1, len(parts) // 2 + 1)]
        wrong += [(block, printed) for printed, blocks in pairs for block in blocks if not same(printed, block[2])]
    if wrong and "JOT_UPDATE_GOLDEN" in os.environ:
        for block, printed in sorted(wrong, key=lambda w: -w[0].start()):
            text = text[:block.start(2)] + printed.rstrip() + "\n" + text[block.end(2):]
        with open(page, "w", encoding="utf-8") as f:
            f.write(text)
        return 0
    for block, printed in wrong:
        print("%s: printed\n%s\nthe page says\n%s" % (page, printed, block[2]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
