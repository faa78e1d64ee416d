# SPDX-License-Identifier: Apache-2.0
"""Says what the manual lacks: comments of public names, from which the reference is made, and pages that no test runs.

    complete.py ROOT PAGE ...       the pages that tests run
"""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(sys.argv[1], "docs/manual"))
from reference import PRIVATE, SUFFIXES, name_of, read_all  # noqa: E402


def without_comment(headers):
    """Macros have the comments of the functions under them."""
    for header, parts in headers.items():
        functions = {n for p in parts for d in p[2] if d[0] != "#" for n in (
            name_of(d), re.sub(SUFFIXES, "", name_of(d)))}
        for d in [d for p in parts for d in p[2] if not p[1]]:
            if not PRIVATE.search(name_of(d)) and not (d[0] == "#" and name_of(d) in functions):
                yield "%s.h: %s has no comment" % (header, name_of(d))


def without_test(folder, tested):
    for parent, _, files in os.walk(folder):
        for path in [os.path.join(parent, f) for f in sorted(files) if f.endswith(".md")]:
            with open(path, encoding="utf-8") as f:
                if "\n```c\n" in f.read() and os.path.relpath(path, folder)[:-3] not in tested:
                    yield "%s: not in manual_pages of tests/meson.build" % os.path.relpath(path, folder)


def main(root, *tested):
    faults = list(without_comment(read_all(os.path.join(root, "include/jot"))))
    faults += without_test(os.path.join(root, "docs/manual"), tested)
    for fault in faults:
        print(fault)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
