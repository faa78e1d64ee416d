# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of ideas/.

    pictures.py FOLDER
"""
import os
import sys

COLOURS = {"value": ("#e3ecfb", "#3b6fd4"), "array": ("#e2f3e5", "#2f8f4e"), "code": ("#fdf0d5", "#b7791f"),
           "error": ("#fbe3e3", "#c53030"), "plain": ("#f3f4f6", "#6b7280")}
STYLE = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="13" fill="#1f2937"'


def box(kind, x, y, text, width=130, height=36):
    fill, line = COLOURS[kind]
    lines = text.split("\n")
    out = '<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="%s"/>' % (
        x, y, width, height, fill, line)
    for i, t in enumerate(lines):
        out += label(x + width / 2, y + height / 2 + 4.5 + 16 * (i - (len(lines) - 1) / 2), t)
    return out


def label(x, y, text, anchor="middle"):
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return '<text x="%g" y="%g" text-anchor="%s">%s</text>' % (x, y, anchor, text)


def arrow(x1, y1, x2, y2, text=""):
    return '<path d="M%g %g L%g %g" stroke="#374151" stroke-width="1.4" marker-end="url(#a)"/>' % (x1, y1, x2, y2) + (
        label((x1 + x2) / 2, (y1 + y2) / 2 - 6, text) if text else "")


def row(kind, x, y, texts, side=36):
    return "".join(box(kind, x + i * side, y, t, side, side) for i, t in enumerate(texts))


PICTURES = {
    "values": (560, 150, [
        box("value", 20, 15, "values"), arrow(150, 33, 210, 33), box("code", 210, 15, "C function", 140),
        arrow(350, 33, 410, 33), box("value", 410, 15, "value"), arrow(280, 51, 280, 99, ""),
        label(290, 78, "jot_jit(jot_fn(f))", "start"), box("array", 20, 99, "arrays"), arrow(150, 117, 210, 117),
        box("code", 210, 99, "compiled function", 140), arrow(350, 117, 410, 117), box("array", 410, 99, "array")]),
    "tracing": (640, 150, [
        box("code", 20, 30, "C function"), arrow(150, 48, 220, 48, "trace"), box("value", 220, 30, "graph"),
        arrow(350, 48, 440, 48, "compile"), box("code", 440, 30, "machine code", 150), label(85, 22, "runs once"),
        label(285, 22, "transformed, fused"), label(515, 22, "runs at each call"), box("array", 380, 100, "arrays", 80),
        arrow(440, 100, 490, 68), arrow(540, 68, 560, 98), box("array", 525, 100, "arrays", 80)]),
    "shapes": (560, 170, [
        row("value", 20, 30, "123"), label(74, 22, "[3]"), row("value", 190, 30, ["1"]), row("value", 190, 66, ["10"]),
        label(208, 22, "[2, 1]"), label(160, 70, "×"), label(270, 70, "="), row("array", 310, 30, ["1", "2", "3"]),
        row("array", 310, 66, ["10", "20", "30"]), label(364, 22, "[2, 3]"), label(20, 130, "1 2 3 is repeated for each row,",
                                                                                 "start"),
        label(20, 148, "1 and 10 are repeated along each row.", "start")]),
    "transforms": (560, 170, [
        box("code", 30, 15, "", 500, 140), label(80, 38, "jot_jit"), box("value", 130, 30, "", 380, 110),
        label(185, 53, "jot_vmap"), box("value", 240, 45, "", 250, 80), label(292, 68, "jot_grad"),
        box("plain", 350, 62, "jot_fn(f)", 120, 44)]),
    "random": (560, 190, [
        box("value", 20, 75, "key", 80), arrow(100, 85, 190, 40), arrow(100, 93, 190, 93), arrow(100, 101, 190, 146),
        label(120, 60, "split", "middle"), box("value", 190, 22, "key 0", 80), box("value", 190, 75, "key 1", 80),
        box("value", 190, 128, "key 2", 80), arrow(270, 40, 350, 40, "uniform"), arrow(270, 93, 350, 93, "normal"),
        arrow(270, 146, 350, 146, "split"), box("array", 350, 22, "0.53 0.31 0.90", 150),
        box("array", 350, 75, "-1.2 0.4 0.9", 150), box("value", 350, 128, "more keys", 150)]),
    "errors": (620, 130, [
        box("value", 20, 45, "a, b", 80), arrow(100, 63, 150, 63), box("error", 150, 45, "jot_matmul", 110),
        arrow(260, 63, 300, 63), box("plain", 300, 45, "jot_exp", 90), arrow(390, 63, 430, 63),
        box("plain", 430, 45, "jot_sum", 90), arrow(520, 63, 560, 63), label(590, 68, "status"),
        label(205, 34, "the first mistake"), label(400, 104, "pass the error on")]),
    "scopes": (560, 170, [
        box("array", 20, 60, "data", 80), arrow(100, 72, 150, 40), arrow(100, 84, 150, 120), box("value", 150, 20, "mean", 90),
        box("value", 150, 104, "square", 90), arrow(240, 38, 290, 60), arrow(240, 122, 290, 84),
        box("value", 290, 54, "spread", 90), arrow(380, 72, 440, 72), box("array", 440, 54, "a number", 100),
        label(410, 60, "jot_item"), label(280, 160, "operations make a graph; what is asked for is computed")]),
    "memory": (560, 150, [
        label(90, 22, "without donation"), box("array", 20, 34, "state", 90), arrow(110, 52, 180, 52, "step"),
        box("array", 180, 34, "next state", 90), label(100, 100, "memory for both"), label(420, 22, "with donation"),
        box("array", 370, 34, "state", 110), '<path d="M400 70 v30 H450 v-26" fill="none" stroke="#374151" '
        'stroke-width="1.4" marker-end="url(#a)"/>', label(425, 120, "step: the next state is in its place")]),
    "devices": (560, 180, [
        box("plain", 20, 30, "", 200, 130), label(120, 52, "host"), box("array", 40, 70, "array x", 75),
        box("array", 125, 70, "result y", 80), box("plain", 340, 30, "", 200, 130), label(440, 52, "GPU 0"),
        box("array", 360, 70, "x", 50), box("code", 415, 66, "f", 50, 44), box("array", 470, 70, "y", 50),
        arrow(220, 80, 338, 80, "for the call"), arrow(338, 120, 222, 120, "when it is read")]),
    "versions": (640, 150, [
        box("plain", 20, 70, "call with\ntypes", 100, 44), arrow(120, 92, 170, 92), box("value", 170, 70, "a version\nof these?", 110,
                                                                                     44),
        arrow(225, 70, 225, 40), label(240, 58, "yes", "start"), box("code", 170, 8, "run", 110, 30),
        arrow(280, 92, 350, 92, "no: trace"), box("value", 350, 70, "in the\ndisk cache?", 110, 44), arrow(405, 70, 405, 40),
        label(420, 58, "yes", "start"), box("code", 350, 8, "load, run", 110, 30), arrow(460, 92, 520, 92, "no"),
        box("code", 520, 70, "compile,\nkeep, run", 100, 44), label(225, 136, "microseconds"),
        label(405, 136, "milliseconds"), label(570, 136, "up to seconds")]),
}
PICTURES["trees"] = (560, 150, [
    box("value", 20, 15, "", 160, 90), label(100, 35, "struct line p"), box("plain", 30, 50, "slope", 66),
    box("plain", 104, 50, "offset", 66), arrow(180, 60, 380, 60, "JOT_GRAD(loss, p, x, y)"), box("value", 380, 15, "", 160, 90),
    label(460, 35, "struct line g"), box("plain", 390, 50, "slope", 66), box("plain", 464, 50, "offset", 66),
    label(280, 134, "the gradient has the type of what it is taken in")])
PICTURES["loops"] = (560, 210, [
    box("array", 215, 10, "rows in", 130, 30), arrow(280, 40, 280, 70), box("value", 20, 72, "state before"),
    arrow(150, 90, 215, 90), box("code", 215, 68, "body", 130, 44), arrow(345, 90, 410, 90),
    box("value", 410, 72, "state after"), arrow(240, 112, 240, 165), box("array", 175, 167, "rows out", 130, 30),
    '<path d="M375 90 v45 H300 v-21" fill="none" stroke="#374151" stroke-width="1.4" marker-end="url(#a)"/>',
    label(380, 152, "the next trip", "start")])


def numerics():
    out = [box("array", 20 + 110 * i, 30, "block %d" % i, 100) for i in range(4)]
    out += [label(70 + 110 * i, 22, "thread %d" % (i % 2 + 1)) for i in range(4)]
    out += [arrow(70, 66, 115, 98), arrow(180, 66, 135, 98), arrow(290, 66, 335, 98), arrow(400, 66, 355, 98)]
    out += [box("value", 110, 100, "+", 30, 26), box("value", 330, 100, "+", 30, 26), arrow(140, 118, 222, 144),
            arrow(330, 118, 252, 144), box("value", 222, 138, "+", 30, 26)]
    return out + [label(460, 100, "the order is fixed,", "start"), label(460, 118, "whoever adds", "start")]


PICTURES["numerics"] = (600, 175, numerics())


def main(folder):
    for name, (width, height, parts) in PICTURES.items():
        with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as f:
            f.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" %s>\n'
                    '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
                    'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#374151"/></marker></defs>\n'
                    '<rect width="100%%" height="100%%" rx="8" fill="#ffffff"/>\n%s\n</svg>\n' % (
                        width, height, width, height, STYLE, "\n".join(p for p in parts if p)))


if __name__ == "__main__":
    main(sys.argv[1])
