# SPDX-License-Identifier: Apache-2.0
"""Builds the manual: copies the pages of the tree and those of the headers to a folder of their own, and has
Sphinx make HTML of it.

    build.py ROOT SOURCE OUTPUT
"""
import os
import re
import shutil
import subprocess
import sys

import reference

PAGES = ["docs", "src", "CONTRIBUTING.md", "CHANGELOG.md"]
KINDS = (".md", ".svg", ".css", ".js", ".py", "plot.h")


def copy(root, source):
    for start in PAGES:
        path = os.path.join(root, start)
        found = [(os.path.dirname(path), [start])] if os.path.isfile(path) else \
            [(folder, files) for folder, _, files in os.walk(path)]
        for folder, files in found:
            for name in files:
                if name.endswith(KINDS):
                    to = os.path.join(source, os.path.relpath(folder, root), name)
                    os.makedirs(os.path.dirname(to), exist_ok=True)
                    shutil.copy2(os.path.join(folder, name), to)


def examples_of(table):
    """Of each name its shortest row in the tested table of JAX's names."""
    examples = {}
    for jax, jot in re.findall(r"^\| `([^`]+)` \| `(jot_[^`;]+)` \|$", table, re.M):
        name = re.match(r"\w+", jot)[0]
        examples[name] = min((jot, jax), examples.get(name, (jot, jax)), key=lambda row: len("".join(row)))
    return examples


def uses_of(manual):
    """Of each name the pages whose programs have it, unless most have."""
    uses = {}
    for part in ("ideas", "howto", "gallery"):
        for file in sorted(os.listdir(os.path.join(manual, part))):
            if file.endswith(".md") and file != "index.md":
                with open(os.path.join(manual, part, file), encoding="utf-8") as f:
                    code = "".join(re.findall(r"^```c\n(.*?)^```$", f.read(), re.M | re.S))
                for name in set(re.findall(r"\b(?:jot|JOT)_\w+", code)):
                    uses.setdefault(name, []).append("/docs/manual/%s/%s" % (part, file[:-3]))
    return {name: pages for name, pages in uses.items() if len(pages) < 20}


def write_reference(headers, manual, table):
    """A page for each header, in the order of the tour in jot.h, and one that lists them."""
    writer = reference.Writer(headers, examples_of(table), uses_of(manual))
    folder = os.path.join(manual, "reference")
    os.makedirs(folder, exist_ok=True)
    tour = " ".join(c for p in headers["jot"] for c in p[1])
    order = [n for n in dict.fromkeys(["jot"] + re.findall(r"(\w+)\.h\b", tour) + list(headers)) if n in headers]
    pages = {n: writer.page(n, headers[n]) for n in order}
    pages["index"] = "Reference\n=========\n\nEvery public header has a page.  The :ref:`index <genindex>` has " \
        "every name.\n\n" + "".join(":doc:`%s`\n   %s\n\n" % (n, writer.inline(headers[n][0][1][0])) for n in order) \
        + ".. toctree::\n   :hidden:\n\n" + "".join("   %s\n" % n for n in order)
    for name, text in pages.items():
        with open(os.path.join(folder, name + ".rst"), "w", encoding="utf-8") as f:
            f.write(text)


def main(root, source, output):
    shutil.rmtree(source, ignore_errors=True)
    copy(root, source)
    with open(os.path.join(root, "docs/jax-to-jot.md"), encoding="utf-8") as table:
        write_reference(reference.read_all(os.path.join(root, "include/jot")),
                        os.path.join(source, "docs/manual"), table.read())
    done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto", "-c",
                           os.path.join(source, "docs/manual"), source, output])
    with open(os.path.join(output, "index.html"), "w", encoding="utf-8") as f:
        f.write('<!doctype html><meta charset="utf-8"><title>jot</title>'
                '<meta http-equiv="refresh" content="0; url=docs/manual/index.html">\n')
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
