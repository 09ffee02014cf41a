"""Pictures as SVG without style of their own; each repeats what the text beside it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

__all__ = ["bars_svg", "beam_svgs", "interval_svgs", "people_svg"]

_ACROSS, _STEP, _RADIUS = 20, 12, 4.2
_HUNDRED = 100
_ROUNDING = 1e-9
_WIDTH, _ROW, _MARGIN = 180, 18, 6


def people_svg(found: float, limit: float | None = None) -> Markup:
    """Draw a hundred people, some of them found; a line stands after as many as are allowed."""
    n_found = min(_HUNDRED, math.ceil(_HUNDRED * found - _ROUNDING))
    dots = []
    for number in range(_HUNDRED):
        x, y = (number % _ACROSS + 0.5) * _STEP + 2, (number // _ACROSS + 0.5) * _STEP + 2
        kind = "found" if number < n_found else "other"
        dots.append(f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{_RADIUS}"/>')
    height = _HUNDRED // _ACROSS * _STEP + 4
    line = "" if limit is None or limit >= 1 else _limit_line(math.floor(_HUNDRED * limit + _ROUNDING))
    return Markup(
        f'<svg class="people" viewBox="0 0 {_ACROSS * _STEP + 4} {height}" aria-hidden="true" focusable="false">'
        f"{''.join(dots)}{line}</svg>"
    )


def _limit_line(allowed: int) -> str:
    """Draw a stair after the last of those who are allowed."""
    row, column = divmod(allowed, _ACROSS)
    x, top, bottom = column * _STEP + 2, row * _STEP + 2, (row + 1) * _STEP + 2
    left, right = 2, _ACROSS * _STEP + 2
    return f'<path class="limit" d="M{left} {bottom}H{x}V{top}H{right}"/>'


def bars_svg(values: Sequence[float]) -> Markup:
    """Draw numbers as bars to both sides of zero, on one scale."""
    most = max((abs(value) for value in values), default=0.0) or 1.0
    width, height = 14, 60
    middle = height / 2
    parts = [f'<line class="axis" x1="0" x2="{width * len(values)}" y1="{middle:g}" y2="{middle:g}"/>']
    for number, value in enumerate(values):
        size = abs(value) / most * (middle - 2)
        top = middle - size if value > 0 else middle
        parts.append(
            f'<rect class="bar" x="{number * width + 2}" y="{top:.1f}" width="{width - 4}" height="{size:.1f}"/>'
        )
    return Markup(
        f'<svg class="bars" viewBox="0 0 {width * max(1, len(values))} {height}" aria-hidden="true" '
        f'focusable="false">{"".join(parts)}</svg>'
    )


def beam_svgs(values: Sequence[float]) -> list[Markup]:
    """Draw numbers as beams to the left and right of zero, a picture for each row of a table and all on one scale.

    Examples
    --------
    >>> ['class="beam less"' in picture for picture in beam_svgs([0.5, -0.2])]
    [False, True]
    """
    at = _scale(min(0.0, *values, 0.0), max(0.0, *values, 0.0))
    pictures = []
    for value in values:
        left, right = sorted((at(0.0), at(value)))
        kind = "beam less" if value < 0 else "beam"
        beam = f'<rect class="{kind}" x="{left:.1f}" y="3" width="{right - left:.1f}" height="{_ROW - 6}"/>'
        pictures.append(_row(f'<path class="baseline" d="M{at(0.0):.1f} 0V{_ROW}"/>{beam}'))
    return pictures


def interval_svgs(rows: Sequence[tuple[float, float, float]], *, baseline: float | None = None) -> list[Markup]:
    """Draw figures with the ends of their intervals, a picture for each row of a table and all on one scale.

    A dashed line stands at the baseline, if there is one.

    Examples
    --------
    >>> [picture.count("circle") for picture in interval_svgs([(0.9, 0.8, 0.95), (0.7, 0.6, 0.8)])]
    [1, 1]
    """
    ends = [end for figures in rows for end in figures if math.isfinite(end)]
    ends += [] if baseline is None else [baseline]
    at, middle = _scale(min(ends, default=0.0), max(ends, default=1.0)), _ROW / 2
    dashed = "" if baseline is None else f'<path class="baseline" d="M{at(baseline):.1f} 0V{_ROW}"/>'
    return [
        _row(
            f'{dashed}<path class="whisker" d="M{at(bottom):.1f} {middle:g}H{at(top):.1f}"/>'
            f'<circle class="figure" cx="{at(value):.1f}" cy="{middle:g}" r="4"/>'
        )
        if all(map(math.isfinite, (value, bottom, top)))
        else Markup()
        for value, bottom, top in rows
    ]


def _scale(low: float, high: float) -> Callable[[float], float]:
    spread = (high - low) or 1.0
    return lambda value: _MARGIN + (_WIDTH - 2 * _MARGIN) * (value - low) / spread


def _row(drawn: str) -> Markup:
    head = f'<svg class="interval" viewBox="0 0 {_WIDTH} {_ROW}" aria-hidden="true" focusable="false">'
    return Markup(f"{head}{drawn}</svg>")
