"""HTML for notebooks, which may be sent on: it shows the shape of private data, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

_STYLE = """<style>
.dc-card{max-width:54em;font:14px/1.45 system-ui,sans-serif;color:inherit}
.dc-card h4{margin:.2em 0 .5em;font-size:1.05em}
.dc-card ol{display:flex;flex-wrap:wrap;gap:.35em .2em;align-items:stretch;list-style:none;margin:.3em 0 .6em;padding:0}
.dc-card li{display:flex;align-items:center;margin:0}
.dc-card li+li::before{content:"\\2192";padding:0 .35em 0 .2em;opacity:.75}
.dc-card li>span{padding:.25em .6em;border:1px solid rgba(128,128,128,.55);border-radius:.9em;text-align:center}
.dc-card li.dc-map>span{border-radius:.2em}
.dc-card li.dc-held>span{border:2px solid #0a7ac4;background:rgba(10,122,196,.16)}
.dc-card li b{display:block;font-family:Georgia,serif;font-style:italic}
.dc-card small{opacity:.85}
.dc-card table{border-collapse:collapse;margin:.2em 0;background:none;color:inherit;font-size:1em}
.dc-card th,.dc-card td{text-align:left!important;vertical-align:top;padding:.12em 1em .12em 0;font-weight:normal;
border:0;background:none;color:inherit;white-space:normal}
.dc-card th{opacity:.8}
</style>"""
"""Colours of its surroundings, so that it can be read in light and dark; nothing outside the card changes.

Notebooks push entries of tables to the right by a rule that weighs more; sentences belong on the left.
"""


class FittedUnseen:
    """A mixin before `BaseEstimator`: a notebook, which may be shared, shows parameters and nothing learnt."""

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        shown = super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        # Fitted attributes such as means and components are computed from private rows.
        shown.clear()
        return shown


def chain(*, held: Iterable[str] = (), **notes: str) -> str:
    """Draw the way from a private row to a prediction: X_k, f_k, the shared rows, g_k, the common rows, h.

    ``held`` names the stages that the shown object has, and ``notes`` gives words on stages, both by the names rows,
    f, shared, g, common and h.

    Examples
    --------
    >>> chain(held=["f"], f="PCA").count("dc-held")
    1
    """
    stages = [
        (symbol, notes.get(name, ""), name in ("f", "g", "h"), name in set(held)) for name, symbol in _STAGES.items()
    ]
    label = escape(", then ".join(f"{symbol} {note}".strip() for symbol, note, *_ in stages), quote=True)
    return f'<ol role="img" aria-label="{label}">{"".join(_draw(*each) for each in stages)}</ol>'


_STAGES = {"rows": "X_k", "f": "f_k", "shared": "X\u0303_k", "g": "g_k", "common": "X\u0302_k", "h": "h"}
"""Rows and maps on the way from a private row to a prediction, by their symbols in the paper."""


def _draw(symbol: str, note: str, is_map: bool, is_held: bool) -> str:
    """Draw rows round, and maps with corners; stages that the shown object has stand out."""
    letter, _, below = symbol.partition("_")
    kinds = " ".join(kind for kind, holds in (("dc-map", is_map), ("dc-held", is_held)) if holds)
    name = letter
    if below:
        name += f"<sub>{below}</sub>"
    label = f"<b>{name}</b>"
    if note:
        label += f"<small>{escape(note)}</small>"
    return f'<li class="{kinds}"><span>{label}</span></li>'


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return rows of texts as a table; the first text of each is its heading."""
    lines = (
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return f"<table>{''.join(lines)}</table>"


def card(title: str, *parts: str) -> str:
    """Return a card with a title, which is escaped, and parts, which are HTML already."""
    return f'{_STYLE}<div class="dc-card"><h4>{escape(title)}</h4>{"".join(parts)}</div>'


def class_names(estimator: Any) -> str:
    """Return the class names of an estimator and its steps, without parameters, which may be secret."""
    steps = getattr(estimator, "steps", None)
    if steps is None:
        return type(estimator).__name__
    return ", ".join(class_names(step) for _, step in steps)
