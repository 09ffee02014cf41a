"""Pieces of the page for a data protection officer, without anything of a result."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from ._findings import Finding, Rating, decimal, grouped, metric_of, rating_of, shown

# Every rating has a shape and a word besides its colour; borders, not fills, carry it through a printer without ink.
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


_SHAPES: dict[Rating, str] = {"red": "■", "amber": "▲", "green": "●", "inconclusive": "?", "not tested": "○"}


def text_html(text: object) -> str:
    """Escape a text; a number keeps its per cent sign where a line breaks."""
    return html.escape(str(text)).replace(" %", "\u00a0%")


def rating_class(rating: Rating) -> str:
    return rating.replace(" ", "-")


def shape_html(rating: Rating) -> str:
    """Return a rating's shape, with its word for screen readers."""
    return (
        f'<span class="shape {rating_class(rating)}" aria-hidden="true">{_SHAPES[rating]}</span>'
        f'<span class="unseen">{rating}</span>'
    )


def rating_badge(rating: Rating) -> str:
    """Return a rating as shape, word and colour."""
    shape = f'<span aria-hidden="true">{_SHAPES[rating]}\u00a0</span>'
    return f'<span class="light {rating_class(rating)}">{shape}{rating}</span>'


def bullets(items: Sequence[str]) -> str:
    listed = "".join(f"<li>{text_html(item)}</li>" for item in items)
    return f"<ul>{listed}</ul>" if items else "<p>Nothing stated.</p>"


def table_html(
    names: Sequence[str],
    rows: Iterable[tuple[str, Sequence[str]]],
    *,
    caption: str,
    n_texts: int,
    kind: str = "",
) -> str:
    """Build a table of rows (class, entries); the first `n_texts` columns are texts, the first of them a heading."""

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


_LEFT, _WIDTH, _TOP, _HEIGHT = 6.0, 240.0, 5.0, 12.0


def bar_svg(finding: Finding) -> str:
    """Draw a share as SVG, hidden from screen readers, since the text beside it says the same."""
    middle, bottom = _TOP + _HEIGHT / 2, _TOP + _HEIGHT
    reached = _at(finding.value) - _LEFT
    parts = [
        f'<rect class="track" x="{_LEFT:g}" y="{_TOP:g}" width="{_WIDTH:g}" height="{_HEIGHT:g}"/>',
        f'<rect class="filled" x="{_LEFT:g}" y="{_TOP:g}" width="{reached:.1f}" height="{_HEIGHT:g}"/>',
    ]
    if finding.low is not None and finding.high is not None:
        low, high = _at(finding.low), _at(finding.high)
        ends = f"M{low:.1f} {middle - 4:g}v8M{high:.1f} {middle - 4:g}v8M{low:.1f} {middle:g}H{high:.1f}"
        parts += [f'<path class="whisker halo" d="{ends}"/>', f'<path class="whisker" d="{ends}"/>']
    x = _at(finding.floor)
    for name in ("halo", "without"):
        parts.append(f'<line class="{name}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4:g}" y2="{bottom + 4:g}"/>')
    for share in (0.25, 0.5, 0.75):
        at = _at(share)
        parts.insert(1, f'<line class="tick" x1="{at:g}" x2="{at:g}" y1="{_TOP:g}" y2="{bottom:g}"/>')
    return (
        f'<svg class="bar" viewBox="0 0 {2 * _LEFT + _WIDTH:g} {bottom + _TOP:g}" aria-hidden="true" '
        f'focusable="false">{"".join(parts)}</svg>'
    )


def _at(share: float) -> float:
    return _LEFT + _WIDTH * min(max(share, 0.0), 1.0)


_NAMES = (
    *("Level", "Leaked besides", "Measure", "Attack", "Value", "95 % interval", "Labels alone", "Guessing", "Mean row"),
    *("Other rows", "Rows", "By seed", "Rating"),
)


def findings_html(findings: Iterable[Finding], deciding: Sequence[Finding | None], caption: str) -> str:
    """Build the table of findings, those that decide a criterion in bold."""
    rows = [("headline" if one in deciding else "", _entries(one)) for one in findings]
    return table_html(_NAMES, rows, caption=caption, n_texts=4, kind="findings")


def _entries(finding: Finding) -> list[str]:
    def number(value: float | None) -> str:
        return shown(value, finding.metric)

    interval = "–"
    if finding.low is not None and finding.high is not None:
        interval = f"{number(finding.low).removesuffix(' %')} to {number(finding.high)}"
    return [
        finding.level,
        finding.leak,
        finding.metric,
        finding.attack,
        number(finding.value),
        interval,
        number(finding.baseline),
        number(finding.chance),
        number(finding.mean_reconstruction),
        number(finding.control),
        grouped(finding.n),
        " ".join(decimal(value) for value in finding.per_seed) or "–",
        rating_of(finding) if metric_of(finding.metric).criterion else "reported",
    ]
