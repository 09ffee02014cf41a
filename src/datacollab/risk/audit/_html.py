"""Pieces of a page; every text is escaped here, and nowhere else."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from ._criteria import Light

__all__ = ["bullets", "light_badge", "light_class", "shape_html", "table_html", "text_html"]

_SHAPES: dict[Light, str] = {"red": "■", "amber": "▲", "green": "●", "inconclusive": "?", "not tested": "○"}


def text_html(text: object) -> str:
    """Escape a text; a number keeps its per cent sign where a line breaks."""
    return html.escape(str(text)).replace(" %", "\u00a0%")


def light_class(light: Light) -> str:
    """Name of a light's class."""
    return light.replace(" ", "-")


def shape_html(light: Light) -> str:
    """A light's shape, with its word for screen readers."""
    return (
        f'<span class="shape {light_class(light)}" aria-hidden="true">{_SHAPES[light]}</span>'
        f'<span class="unseen">{light}</span>'
    )


def light_badge(light: Light) -> str:
    """A light as shape, word and colour."""
    return (
        f'<span class="light {light_class(light)}"><span aria-hidden="true">{_SHAPES[light]}\u00a0</span>{light}</span>'
    )


def bullets(items: Iterable[str]) -> str:
    """A list of sentences."""
    return f"<ul>{''.join(f'<li>{text_html(item)}</li>' for item in items)}</ul>"


def table_html(
    names: Sequence[str],
    rows: Iterable[tuple[str, Sequence[str]]],
    *,
    caption: str,
    n_texts: int,
    kind: str = "",
) -> str:
    """A table whose first `n_texts` columns are texts, the first of them the row's heading, and the others numbers.

    Parameters
    ----------
    names : sequence of str
    rows : iterable of (str, sequence of str)
        Class of the row, and its entries.
    caption : str
    n_texts : int
    kind : str
        Classes of the table.
    """

    def cell(position: int, entry: str) -> str:
        tag, scope = ("th", ' scope="row"') if position == 0 else ("td", "")
        numeric = ' class="number"' if position >= n_texts else ""
        label = f' data-name="{text_html(names[position])}"' if position else ""
        return f"<{tag}{scope}{numeric}{label}>{text_html(entry)}</{tag}>"

    head = "".join(
        f'<th scope="col"{" class=number" if position >= n_texts else ""}>{text_html(name)}</th>'
        for position, name in enumerate(names)
    )
    body = "".join(
        f"<tr{f' class={text_html(name)}' if name else ''}>{''.join(cell(*pair) for pair in enumerate(entries))}</tr>"
        for name, entries in rows
    )
    return (
        f'<div class="wide" role="region" aria-label="{text_html(caption)}" tabindex="0"><table class="{kind}">'
        f"<caption>{text_html(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
