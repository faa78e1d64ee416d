# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs the programs of a page of the manual, and compares what they print with the page.

    pages.py PAGE NUMBER INCLUDE LIBRARY COMPILER ...

A block ```c with a main is a program.  All others of the page are one program, in their order: those that begin as
a declaration does stand before main, the others in it, behind check() of ideas/index.md.  A block whose first line
is a comment with the name of a file is that file, and a block ```sh behind files says how they are run; it is left
out where a command of it is not here.  Pictures that they make lie beside the page.  A block ```text says what the one before it prints; JOT_UPDATE_GOLDEN=1
writes it anew, and a line of three dots stands for any.  NUMBER counts the pages, for JOT_TEST_FEW.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(c|cpp|fortran|python|sh|text)\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"(?://|!|#) (\w+\.\w+)\n")
TOP = re.compile(r"\s*(//[^\n]*\n\s*)*(static|(struct|enum)( \w+)? \{|typedef|#|JOT_\w+\((?!.*\{).*\);)")
HEAD = """#include <jot/jot.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static void check(jot_status s)
{
    if (s != JOT_OK) {
        fprintf(stderr, "%s\\n", jot_error_message());
        exit(1);
    }
}
"""
MARK = "\x02%d\n"


class Page:
    def __init__(self, path, include, library, compiler):
        self.path, self.compiler = path, compiler
        self.environment = dict(os.environ, C_INCLUDE_PATH=include + ":" + os.path.dirname(os.path.abspath(path)), CPLUS_INCLUDE_PATH=include, LIBRARY_PATH=library,
                                LD_LIBRARY_PATH=library)
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        self.wrong = []

    def run(self, command, folder):
        done = subprocess.run(command, cwd=folder, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=240)
        if done.returncode:
            sys.exit("%s\n%s: exit status %d of %s" % (done.stdout.decode(), self.path, done.returncode, command))
        return done.stdout.decode()

    def program(self, text):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "program.c"), "w", encoding="utf-8") as f:
                f.write(text)
            self.run(self.compiler + ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused",
                                      "-Wno-unused-parameter", "program.c", "-o", "program", "-ljot", "-lm"], folder)
            return self.run(["./program"], folder)

    def shell(self, files, commands):
        """What the commands print, or None where one is not here."""
        for line in commands.splitlines():
            words = line.split()
            if not words[0].startswith("./") and not shutil.which(words[0]):
                return None
        modules = re.findall(r"^import (\w+)", "".join(t for n, t in files.items() if n.endswith(".py")), re.M)
        if modules and subprocess.call(["python3", "-c", "import " + ", ".join(modules)], stderr=subprocess.DEVNULL):
            return None
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(text)
            printed = self.run(["sh", "-ec", commands], folder)
            for name in sorted(os.listdir(folder)):
                if name.endswith(".svg"):
                    self.picture(os.path.join(folder, name), os.path.join(os.path.dirname(self.path), name))
            return printed

    def picture(self, made, kept):
        """The lines are those of the picture beside the page, but for less than a pixel; fields have steps, which
        the last bits move."""
        if "JOT_UPDATE_GOLDEN" in os.environ:
            shutil.copy(made, kept)
        number = re.compile(r"-?\d+\.?\d*")
        with open(made, encoding="utf-8") as a, open(kept, encoding="utf-8") as b:
            one, other = (re.sub(r' d="[^"]+"', "", f.read()) for f in (a, b))
        pairs = list(zip(number.findall(one), number.findall(other)))
        if number.sub("", one) != number.sub("", other) or any(abs(float(x) - float(y)) >= 1 for x, y in pairs):
            sys.exit("%s is not what the program of the page makes" % kept)

    def compare(self, printed, block):
        pattern = r"\n".join(r"(?:.*\n)*?.*" if line.strip() == "..." else re.escape(line.rstrip()) + r" *"
                             for line in block[2].rstrip("\n").split("\n"))
        if not re.fullmatch(pattern + r"\n*", printed):
            self.wrong.append((block, printed))

    def check(self):
        top, inside, files, wanted, printed = [HEAD], [], {}, {}, None
        for block in BLOCK.finditer(self.text):
            line = '#line %d "%s"\n' % (self.text[:block.start()].count("\n") + 2, self.path)
            kind, code = block[1], block[2]
            if kind == "text":
                if printed == "inside":
                    wanted[len(inside)] = block
                elif printed is not None:
                    self.compare(printed, block)
                printed = None
                continue
            printed = None
            if FILE.match(code):
                files[FILE.match(code)[1]] = code
            elif kind == "sh":
                printed = self.shell(files, code) if files else None
                files = {}
            elif kind == "c" and re.search(r"^int main\(", code, re.M):
                printed = self.program(line + code)
            elif kind == "c" and TOP.match(code):
                top.append(line + code)
            elif kind == "c":
                inside.append('    fputs("%s", stdout);\n' % (MARK % (len(inside) + 1)).replace("\n", "\\n") +
                              line + code)
                printed = "inside"
        if inside or len(top) > 1:
            parts = re.split("\x02(\\d+)\n", self.program(
                "%sint main(void)\n{\n%s    return 0;\n}\n" % ("".join(top), "".join(inside))))
            for number, text in zip(parts[1::2], parts[2::2]):
                if int(number) in wanted:
                    self.compare(text, wanted[int(number)])

    def update(self):
        for block, printed in sorted(self.wrong, key=lambda w: -w[0].start()):
            self.text = self.text[:block.start(2)] + printed.rstrip() + "\n" + self.text[block.end(2):]
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(self.text)


def main(path, number, include, library, *compiler):
    few = int(os.environ.get("JOT_TEST_FEW") or 1)
    if "JOT_TEST_FULL" not in os.environ and (int(number) + int(os.environ.get("JOT_TEST_TURN") or 0)) % few:
        return 77
    page = Page(path, os.path.abspath(include), os.path.abspath(library), list(compiler))
    page.check()
    if page.wrong and "JOT_UPDATE_GOLDEN" in os.environ:
        page.update()
        return 0
    for block, printed in page.wrong:
        print("%s: printed\n%s\nthe page says\n%s" % (path, printed, block[2]))
    return bool(page.wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
