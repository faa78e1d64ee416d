# SPDX-License-Identifier: Apache-2.0
# How Sphinx builds the manual; build.py says from what.
import os
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.c import CDomain
from sphinx.transforms.post_transforms import SphinxPostTransform

project = "jot"
html_title = "jot"
extensions = ["myst_parser"]
root_doc = "docs/manual/index"
html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["manual.css"]
html_search_scorer = os.path.join(os.path.dirname(__file__), "static", "scorer.js")
highlight_language = "none"
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
toc_object_entries = False


class LinkNames(SphinxPostTransform):
    """`jot_sum` in a page is a link to its entry of the reference."""

    default_priority = 5

    def run(self, **kwargs):
        for node in list(self.document.findall(nodes.literal)):
            name = re.fullmatch(r"((?:jot|JOT)_\w+)(\(.*\))?", node.astext())
            if name and not isinstance(node.parent, addnodes.pending_xref):
                link = addnodes.pending_xref(
                    "", node.deepcopy(), refdomain="c", reftype="macro", reftarget=name[1],
                    refdoc=self.env.docname, refwarn=False, refexplicit=True)
                node.replace_self(link)


class WithoutParameters(CDomain):
    """The search finds functions, not each of their parameters."""

    def get_objects(self):
        return (entry for entry in super().get_objects() if entry[2] != "functionParam")


def setup(app):
    app.add_domain(WithoutParameters, override=True)
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
