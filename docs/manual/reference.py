# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers and writes a page of Sphinx's C domain for each.

A comment belongs to the declarations below it, up to the next blank line.  jot_sum_axes, the function under the
macro jot_sum, is shown below it.  Names that end in _ or in _ and a number are not public.
"""
import os
import re

PRIVATE = re.compile(r"_$|_\d+$|_H$")
SUFFIXES = r"_(axes|dims|axis|list|of|at|with|into|values?|tree|kind|trans)$"
CPP = re.compile(r"#if.*(?<!!)defined\((__cplusplus|JOT_NO_TEXT)\)")
CALL = r"\b(?:jot|JOT)_\w+(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?"


def c_lines(text):
    """The lines that a C compiler sees, each #define as one."""
    stack, lines = [], []
    for line in re.sub(r" *\\\n *", " ", text).split("\n"):
        if line.startswith("#if"):
            stack.append(not CPP.match(line))
        elif line.startswith("#el"):
            stack[-1] = not stack[-1]
        elif line.startswith("#endif"):
            stack.pop()
        elif all(stack):
            lines.append(line)
    return lines[1:]


def complete(text):
    code = re.sub(r"//.*|/\*.*?\*/", "", text).strip()
    return code.endswith((";", "}")) and all(code.count(a) == code.count(b) for a, b in ("()", "{}"))


def read(path):
    """The header as a list of (section, comment, declarations); one of section and comment may be None."""
    with open(path, encoding="utf-8") as f:
        lines = c_lines(f.read())
    parts, comment, group = [], [], None
    while lines:
        line = lines.pop(0)
        if re.match(r"// ---+ ", line):
            parts.append((line.strip("/- "), [], []))
        elif line.startswith("//"):
            comment, group = ([] if group else comment), None
            comment += [line[3:]] if "-----" not in line and "clang-format" not in line else []
        elif not line or line.startswith("#include"):
            if comment and not group and not comment[0].startswith("The convenient layer"):
                parts.append((None, comment, []))
            comment, group = [], None
        elif not re.match(r"JOT_(BEGIN|END)_C$|JOT_\w+_\(|#undef|#pragma", line):
            while not line.startswith("#") and not complete(line):
                line += "\n" + lines.pop(0)
            line = re.sub(r"JOT_STRUCT_TYPE\((\w+), ([\w, ]+)\);", r"struct \1 {\n    jot_value \2;\n}", line)
            if not line.startswith(("static", "__attribute__", "JOT_UNUSED static")):
                if not group:
                    group = (None, comment, [])
                    parts.append(group)
                group[2].append(line)
    return parts


def is_tag(d):
    return "{" in d and d[0] != "#"


def name_of(d):
    tag = re.match(r"(?:typedef )?(?:struct|enum) (\w+) (?:\{|\w+;)|struct (\w+);", d)
    call = re.search(r"(\w+)[(;]", re.sub(r"//.*", "", d))
    return tag[1] or tag[2] if tag else re.match(r"#define (\w+)", d)[1] if d[0] == "#" else call[1]


def signature(d, name, parameters):
    """The prototype, or that of its macro, which takes lists and options as further arguments."""
    text = re.sub(r"JOT_API |JOT_MUST_USE |;$", "", " ".join(re.sub(r"//.*", "", d).split()))
    if name != name_of(d):
        if parameters and "..." not in parameters:
            given = re.split(r", (?![^()]*\))", text[text.index("(") + 1:-1])
            return "%s%s(%s)" % (text.split(name_of(d))[0], name, ", ".join(
                next((g for g in given if re.search(r"\b%s(\)|$)" % p, g)), p) for p in parameters.split(", ")))
        text = re.sub(r"(, )?const char \*where", "", text.replace(name_of(d) + "(", name + "("))
        if name_of(d).endswith("_at"):
            return text
        text = re.sub(r"size_t n\w*, (?=jot_array \*const \*)", "", text)
        text = re.sub(r"size_t n\w*, (const )?(jot_\w+) \*(?:const \*)?(\w+)", r"\2 \3, ...", text)
        text = re.sub(r"const (int(64_t)? \*(axes|dims|args|counts|in_axes|sizes)|\w+ \*options).*", "...)", text)
        text = re.sub(r"\.\.\., .*\)", "...)", text)
    return text


class Writer:
    def __init__(self, headers, examples, uses):  # a call for some names, and the pages where they are used
        declarations = [d for parts in headers.values() for p in parts for d in p[2]]
        self.macros, self.parameters, self.examples, self.uses, self.shown = {}, {}, examples, uses, set()
        for _, comment, group in [p for parts in headers.values() for p in parts]:
            for d in group:
                if d[0] == "#":
                    self.parameters[name_of(d)] = re.match(r"#define \w+(?:\(([^)]*)\))?", d)[1]
                    self.macros.setdefault(name_of(d), comment if "." in " ".join(comment) else [])
        self.shown |= {name_of(d) for d in declarations if is_tag(d) and name_of(d) not in self.macros}
        self.names = set(self.macros) | {name_of(d) for d in declarations}
        self.names |= {n for d in declarations if "enum" in d for n in re.findall(r"\bJOT_[A-Z0-9_]+\b", d)}

    def base(self, name):
        short = re.sub(SUFFIXES, "", name)
        own = name.endswith("_tree") and self.macros.get(short)
        return short if short in self.macros and not own else name

    def inline(self, text):
        def code(call):
            name = re.match(r"\w+", call)[0]
            rest = call[len(name):]
            return "\\ :c:macro:`%s`\\ %s" % (name, rest and "``%s``\\ " % rest) if name in self.names and \
                not PRIVATE.search(name) else "\\ ``%s``\\ " % call
        pieces = re.split(r"(`[^`]+`|%s)" % CALL, text)
        return "".join(re.sub(r"([\\*|_`]|::|(?<=\w):(?=\w))", r"\\\1", p) if k % 2 == 0 else
                       "``%s``" % p.strip("`") if p[0] == "`" else code(p) for k, p in enumerate(pieces))

    def comment(self, lines, indent):
        """Paragraphs, lists, and examples, which stand four columns further in."""
        blocks = [("text", [])]
        for line in lines:
            kind = "code" if line.startswith("    ") or (blocks[-1][0] == "code" and not line) else "text"
            if kind != blocks[-1][0] or (kind == "text" and (not line or re.match(r" *(-|\d\.) ", line))):
                blocks.append((kind, []))
            blocks[-1][1].append(line)
        for kind, block in blocks:
            if kind == "code":
                self.out += ["", indent + ".. code-block:: c", indent + "   :force:", ""]
                self.out += [indent + "   " + b[4:] for b in "\n".join(block).strip("\n").split("\n")]
            elif "".join(block):
                self.out += ["", indent + self.inline(" ".join(b.strip() for b in block if b))]
        self.out.append("")

    def members(self, d):
        """The fields or constants between the braces, with their comments before or behind them."""
        body, is_enum, above = d[d.index("{") + 1:d.rindex("}")], "enum" in d.split("{")[0], []
        lines = (body if "\n" in body else re.sub("[,;]", r"\g<0>\n", body)).split("\n")
        while lines:
            code, _, behind = lines.pop(0).strip().partition("//")
            while not is_enum and code and ";" not in code:
                more, _, behind = lines.pop(0).strip().partition("//")
                code += " " + more
            code, above = code.strip().rstrip(",;"), above + [behind[1:]] if behind else above
            if code:
                first, *others = [code.split(" =")[0]] if is_enum or "(" in code else code.split(",")
                others = [re.match(r"(.*?\w) *\**\w+(\[\w+\])?$", first)[1] + o for o in others]
                self.out += [line for m in [first] + others for line in (
                    "", "   .. c:%s:: %s" % ("enumerator" if is_enum else "member", m))]
                self.comment(above, "      ")
                above = []

    def group(self, comment, declarations):
        kinds, texts, names = {}, [""], []
        for d in declarations:
            name = name_of(d)
            if is_tag(d):
                kind = re.match(r"(?:typedef )?(\w+)", d)[1]
                # A function may have the name of a struct; the domain has one name for both.
                self.out += ["", ".. %s:: %s" % (("describe", kind + " " + name) if name in self.macros else
                                                 ("c:" + kind, name))]
                self.comment(comment, "   ")
                self.members(d)
            elif name not in self.shown and not PRIVATE.search(name):
                base, code = self.base(name), d.split(";")[0]
                kind = "macro" if d[0] == "#" else "struct" if re.match("(typedef )?struct", d) else \
                    "type" if d.startswith("typedef") else "function"
                lines = [re.match(r"#define (\w+(\([^)]*\))?)", d)[1]] if kind == "macro" else \
                    [name] if kind == "struct" else [" ".join(code.split())[8:]] if kind == "type" else \
                    [signature(d, n, self.parameters.get(n)) for n in dict.fromkeys([base, name]) if n not in self.shown]
                kinds.setdefault(kind, []).extend(lines)
                own = self.macros.get(base, []) if base != name and base not in self.shown else []
                texts += own if base in " ".join(own) or not name.endswith("_dims") else []
                texts += [d.split("//")[1].strip()] if "//" in d and kind != "macro" else []
                self.shown |= {name, base}
                names.append((kind, base))
        for kind, lines in kinds.items():
            self.out += ["", ".. c:%s:: %s" % (kind, ("\n" + " " * (9 + len(kind))).join(lines))]
            self.comment(comment + texts, "   ")
            own = [n for k, n in names if k == kind]
            uses = list(dict.fromkeys(page for n in own for page in self.uses.get(n, [])))
            self.out += ["   | ``%s`` is ``%s`` of JAX." % self.examples.pop(n) for n in own if n in self.examples]
            self.out += ["", "   Used in %s." % ", ".join(":doc:`%s`" % page for page in uses[:4]) if uses else "", ""]

    def page(self, name, parts):
        self.out = [name + ".h", "=" * len(name + ".h")]
        self.comment(parts[0][1], "")
        for section, comment, declarations in parts[1:]:
            if section:
                self.out += ["", section[0].upper() + section[1:], "-" * len(section)]
            elif declarations:
                self.group(comment, declarations)
            else:
                self.comment(comment, "")
        return "\n".join(self.out) + "\n"


def read_all(folder):
    return {f[:-2]: read(os.path.join(folder, f)) for f in sorted(os.listdir(folder)) if f.endswith(".h")}
