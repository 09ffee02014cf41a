"""One measure as a bar: what is reached, its interval, and what labels alone would give."""

from __future__ import annotations

from ._findings import Finding

__all__ = ["bar_svg"]

_LEFT, _WIDTH, _TOP, _HEIGHT = 6.0, 240.0, 5.0, 12.0


def bar_svg(finding: Finding) -> str:
    """Draw a share as SVG.  It repeats what the text beside it says, and so is hidden from screen readers."""
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
