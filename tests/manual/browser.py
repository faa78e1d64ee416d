# SPDX-License-Identifier: Apache-2.0
"""Opens the built manual as a reader does: links, search, colours of code, and the width of a phone.

    browser.py FOLDER           of ./dev docs; needs Playwright and Chromium
"""
import html.parser
import os
import shutil
import sys
import urllib.parse

from playwright.sync_api import sync_playwright

PHONE = {"width": 390, "height": 844}
NARROW = ["index", "start", "jax", "ideas/loops", "howto/index", "howto/speed", "reference/ops", "reference/compile"]
SEARCHES = {"jot_scan": "#c.jot_scan", "gradient": "", "donate": "memory.html", "kalman": "kalman.html", "recompile": "versions.html",
            "matrix product": "howto/products.html", "save weights": "save-load.html", "print values": "nan.html",
            "differential equation": "howto/ode.html", "free memory": "memory.html", "load csv": "save-load.html",
            "resume": "train-batches.html", "minibatch": "train-batches.html", "reproducible": "numerics.html",
            "backpropagation": "transforms.html", "memory leak": "memory.html", "cmake": "install.html", "C%2B%2B": "cpp.html",
            "norm": "#c.jot_norm", "seed": "random.html", "profile": "speed.html", "prior": "fit-curve.html",
            "hessian struct": "second-derivatives.html", "converged": "fit-curve.html"}


class Links(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], set()
        with open(path, encoding="utf-8") as f:
            self.feed(f.read())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.places.add(value)
            elif name in ("href", "src") and value and not value.startswith(("http:", "https:", "data:", "mailto:")):
                self.links.append(value)


def broken_links(folder):
    pages = {os.path.join(parent, f): None for parent, _, files in os.walk(folder) for f in files if f.endswith(".html")}
    pages = {path: Links(path) for path in pages}
    for path, page in pages.items():
        for link in page.links:
            file, _, place = urllib.parse.unquote(link).partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(path), file.split("?")[0])) if file else path
            if not os.path.exists(to):
                yield "%s: %s is not there" % (os.path.relpath(path, folder), link)
            elif place and to in pages and place not in pages[to].places:
                yield "%s: %s has no such place" % (os.path.relpath(path, folder), link)


def faults_in_browser(address, browser):
    page = browser.new_page()
    page.goto(address + "/index.html")
    page.wait_for_url("**/docs/manual/index.html")
    for words, wanted in SEARCHES.items():
        page.goto("%s/search.html?q=%s" % (address, words))
        page.wait_for_selector("#search-results ul.search li a")
        page.wait_for_timeout(500)
        found = page.eval_on_selector_all("#search-results ul.search li > a", "all => all.map(a => a.href)")
        if not any(wanted in link for link in found[:5]):
            yield "a search for %s finds %s" % (words, found[:5])
    page.goto(address + "/docs/manual/start.html")
    colours = page.eval_on_selector_all(".highlight-c pre span", "all => all.map(s => getComputedStyle(s).color)")
    if len(set(colours)) < 4:
        yield "code has the colours %s" % set(colours)
    page.set_viewport_size(PHONE)
    for name in NARROW:
        page.goto("%s/docs/manual/%s.html" % (address, name))
        width = page.evaluate("document.documentElement.scrollWidth")
        size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('article p')).fontSize)")
        if width > PHONE["width"] or size < 14:
            yield "%s: %d wide on a phone, letters of %g" % (name, width, size)


def main(folder):
    faults = list(broken_links(folder))
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
                                       args=["--no-sandbox"])
        faults += faults_in_browser("file://" + os.path.abspath(folder), browser)
        browser.close()
    for fault in faults:
        print(fault)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
