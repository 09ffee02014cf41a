"""Formulas of docstrings as MathML, made while the pages are built: no script, no font and no other host is needed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)

SPELT_OTHERWISE = ((r"\\[Bb]igg?(?![A-Za-z])", ""), (r"\\textstyle\b", ""), (r"\\dots\b", r"\\ldots"))
"""LaTeX that docutils does not read, and its replacement; browsers size brackets themselves."""


def mathml(formula: str, *, displayed: bool) -> str:
    """Return the MathML of a formula in LaTeX."""
    for pattern, replacement in SPELT_OTHERWISE:
        formula = re.sub(pattern, replacement, formula)
    return latex2mathml.tex2mathml(formula, as_block=displayed)


def visit(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    displayed = isinstance(node, nodes.math_block)
    try:
        shown = mathml(node.astext(), displayed=displayed)
    except Exception as error:  # of any kind: the page must not be without its formula
        LOGGER.warning("no MathML of %r: %s", node.astext(), error, location=node)
        shown = ""
    translator.body.append(f'<div class="formula">{shown}</div>' if displayed else shown)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit, None), (visit, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
