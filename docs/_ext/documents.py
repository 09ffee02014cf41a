"""The Markdown documents as pages: links that leave the folder, headings, codes as anchors, names as links."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api_pages import public_names
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import datacollab

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
PACKAGE = Path(datacollab.__file__).parent
PAGES_OF = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Documents of the root that have a page which includes them."""


def at_repository(app: Sphinx, target: str) -> str:
    kind = "tree" if (ROOT / target.partition("#")[0]).is_dir() else "blob"
    return f"{app.config.html_context['repository']}/{kind}/main/{target}"


def rewritten(app: Sphinx, text: str, folder: Path) -> str:
    """Return a Markdown document with links that leave the folder rewritten to where the site has them."""
    documents = Path(app.srcdir).resolve()

    def link(match: re.Match[str]) -> str:
        name, hash_mark, fragment = match[1].partition("#")
        if not name or re.match(r"[a-z]+:", name):
            return match[0]
        path = (folder / name).resolve()
        target = path.relative_to(documents.parent).as_posix()
        if target in PAGES_OF:
            path = documents / PAGES_OF[target]
        if path.is_relative_to(documents) and path.is_file():
            return f"](/{path.relative_to(documents).as_posix()}{hash_mark}{fragment})"
        return f"]({at_repository(app, target)}{hash_mark}{fragment})"

    # Blocks of code stay as they are.
    pieces = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        piece if number % 2 else re.sub(r"\]\(([^)\s]+)\)", link, piece) for number, piece in enumerate(pieces)
    )


def read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md":
        # A table that opens with its caption is a page with this heading.
        text = re.sub(r"\A\*\*(.+)\*\*$", r"# \1", source[0], count=1, flags=re.MULTILINE)
        source[0] = rewritten(app, text, path.parent)
    elif docname.startswith("gallery/"):
        source[0] = with_heading(source[0])


def read_included(app: Sphinx, relative: Path, _: str, content: list[str]) -> None:
    content[0] = rewritten(app, content[0], (Path(app.srcdir) / relative).resolve().parent)


def with_heading(source: str) -> str:
    """Return the page of an example; a first sentence without a heading becomes the heading."""
    return re.sub(
        r"^(\.\. _sphx_glr_gallery_\S+:\n\n)(\S.*)\n\n",
        lambda match: f"{match[1]}{match[2].rstrip('.')}\n{'=' * len(match[2])}\n\n",
        source,
        count=1,
        flags=re.MULTILINE,
    )


class CodesAsAnchors(SphinxTransform):
    """Give each row of the error codes an anchor, which the search finds by the code."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        """Look at all rows of the page."""
        if self.env.docname != "error-codes":
            return
        for row in self.document.findall(nodes.row):
            first = row[0].astext()
            if re.fullmatch(r"[A-Z][A-Z_]+", first):
                row["ids"].append(first)
                self.env.domains.standard_domain.note_object("error", first, first, location=row)


class NamesAsLinks(SphinxTransform):
    """Make links of the public names and the files of the package that documents mention."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        """Look at all that the document sets as code within a line."""
        if Path(self.env.doc2path(self.env.docname)).suffix != ".md":
            return
        for literal in list(self.document.findall(nodes.literal)):
            if not isinstance(literal.parent, (nodes.reference, nodes.title, addnodes.pending_xref)):
                link = self.link(literal.astext())
                if link is not None:
                    literal.replace_self(link)
                    link += literal

    def link(self, said: str) -> nodes.Element | None:
        """Return an empty link to the mentioned name or file, or None if it may be another word."""
        if re.fullmatch(r"[\w/]+/\w+\.\w+", said) and (PACKAGE / said).is_file():
            return nodes.reference("", "", refuri=at_repository(self.app, f"src/datacollab/{said}"), internal=False)
        target = full_name(said)
        if target is None:
            return None
        return addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=True, refdoc=self.env.docname
        )


@cache
def mentions() -> dict[str, str]:
    """Return how documents mention each public name, as `dc.KTI`, `analyst.KTI` or `KTI`, and its full name."""
    names = public_names().values()
    alone = Counter(name.short for name in names)
    found = {name.short: name.full for name in names if alone[name.short] == 1 and name.short[0].isupper()}
    for name in names:
        for each in (name.full, f"datacollab.{name.room}.{name.short}"):
            short = each.removeprefix("datacollab.")
            found |= dict.fromkeys((each, short, f"dc.{short}"), name.full)
    return found


def full_name(said: str) -> str | None:
    """Return the public name that `KTI` or `analyst.KTI.fit(shares)` mentions; None if it may be another word."""
    words = said.partition("(")[0].split(".")
    if len(words) == 1 and not said[0].isupper():
        return None
    starts = (".".join(words[:length]) for length in range(len(words), 0, -1))
    return next((mentions()[start] for start in starts if start in mentions()), None)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_object_type("error", "error", objname="error code")
    app.connect("source-read", read_source)
    app.connect("include-read", read_included)
    app.add_transform(CodesAsAnchors)
    app.add_transform(NamesAsLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
