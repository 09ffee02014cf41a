"""An estimated effect, and how to show it."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._notebooks import card, table
from .._validation import PartyName
from ..analyst import BaseIntegrator
from ._overlap import Overlap
from ._plots import overlap_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["METHODS", "TARGETS", "Effect"]

METHODS = {
    "plr": "partially linear regression",
    "aipw": "augmented inverse probability weighting (doubly robust)",
    "ipw": "inverse probability weighting",
}
TARGETS = {"ATE": "all rows", "ATT": "the treated rows"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Effect:
    """What treatment does to the outcome, given that all that matters for both is among the columns.

    Attributes
    ----------
    estimate : float
        Of the outcome with treatment less without; of times to an event, of the probability to be without it at the
        horizon.
    standard_error : float
    interval : tuple of float
    confidence : float
        Of the interval.
    p_value : float
        Two-sided, of no effect.
    target : {"ATE", "ATT"}
    method : {"plr", "aipw", "ipw"}
    horizon : float or None
        In the unit of the times.
    n_rows, n_treated : int
        That were counted, and the treated among them.
    n_groups : int
        Rows, or means of rows, that are independent.
    n_trimmed : int
        Rows left out for scores beyond `trim`.
    trim : float or None
    misalignment : float
        Part of the variance of the anchor's collaboration representation in which the parties differ; 0 where all are
        aligned.
    overlap : Overlap
    parties : tuple of str or int
    integrator_ : BaseIntegrator
        Fitted.

    Notes
    -----
    The interval is about which rows were observed.  It knows nothing of causes that are not among the columns, nor of
    columns that parties' maps have lost.
    """

    estimate: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float
    p_value: float
    target: str
    method: str
    horizon: float | None
    n_rows: int
    n_treated: int
    n_groups: int
    n_trimmed: int
    trim: float | None
    misalignment: float
    overlap: Overlap
    parties: tuple[PartyName, ...]
    integrator_: BaseIntegrator = field(repr=False)

    @property
    def sentence(self) -> str:
        """The estimate in words."""
        low, high = self.interval
        what = (
            "on the outcome"
            if self.horizon is None
            else f"on the probability to be without the event at {self.horizon:g}"
        )
        return (
            f"Effect of treatment {what}, on average over {TARGETS[self.target]}: {self.estimate:.4g} "
            f"({self.confidence:.0%} interval {low:.4g} to {high:.4g})."
        )

    def _rows(self) -> list[tuple[str, str]]:
        overlap = self.overlap
        rows = [
            ("method", METHODS[self.method]),
            ("standard error", f"{self.standard_error:.4g}"),
            ("p-value", "below 0.001" if self.p_value < 0.001 else f"{self.p_value:.3f}"),
            ("parties", f"{len(self.parties)}"),
            ("rows", f"{self.n_rows}, of which {self.n_treated} treated"),
            (
                "as many rows of equal weight",
                f"{overlap.effective_treated:.0f} treated, {overlap.effective_untreated:.0f} not",
            ),
            ("scores within 0.02 of 0 or 1", f"{overlap.n_clipped} rows"),
        ]
        if self.n_groups < self.n_rows:
            rows.append(("means of rows", f"{self.n_groups}; the standard error counts these"))
        if self.trim is not None:
            rows.append((f"left out, scores beyond {self.trim:g} and {1 - self.trim:g}", f"{self.n_trimmed} rows"))
        return rows

    def to_text(self) -> str:
        """All of it in lines."""
        return "\n".join([self.sentence, *(f"  {name}: {value}" for name, value in self._rows())])

    def to_html(self, path: str | Path | None = None) -> str:
        """All of it as a page, written to a file where a path is given."""
        rows = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in self._rows())
        page = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Effect of treatment</title>'
            "<style>body{font-family:sans-serif;max-width:42em;margin:2em auto}th{text-align:left;padding-right:2em;"
            f"font-weight:normal;color:#555}}</style><p>{html.escape(self.sentence)}</p><table>{rows}</table></html>"
        )
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        names = (
            *("estimate", "standard_error", "confidence", "p_value", "target", "method", "horizon", "n_rows"),
            *("n_treated", "n_groups", "n_trimmed", "trim", "misalignment"),
        )
        return {name: getattr(self, name) for name in names} | {
            "interval": list(self.interval),
            "overlap": self.overlap.to_dict(),
            "parties": list(self.parties),
            "sentence": self.sentence,
        }

    def plot_overlap(self, ax: Axes | None = None) -> Axes:
        """Draw how many rows of each arm have which score.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            In which to draw; otherwise a figure is made, which no window shows.

        Raises
        ------
        MissingExtraError
            When matplotlib is not installed.
        """
        return overlap_axes(self.overlap, ax)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return card("Effect of treatment", f"<p>{html.escape(self.sentence)}</p>", table(self._rows()))
