"""The result of an audit."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._notebooks import card, chain
from ._facts import AuditFacts
from ._html import light_badge, text_html
from ._json import fields_of, to_text
from ._page import audit_page
from ._plot import findings_axes
from ._sentences import sentence_of
from ._table import findings_frame
from ._text import BY_LOT, STOPPED_EARLY, facts, proven_text, summary_text

__all__ = ["AuditResult"]


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult(AuditFacts):
    """What the attacks of an audit found at one party.

    Attributes
    ----------
    party, obfuscator : str
        The party's name, and its f_k in words.
    n_rows : int
        Rows of the party's table.
    n_attacked : int
        Rows under attack, in every seed.
    n_candidates : int
        Rows among which the attacker looks for the right one in the closed world: the originals.
    n_open_candidates : int
        The same in the open world, where others stand among the originals.
    n_anchors, n_components : int
        Rows of the anchor, columns of the representation.
    findings : tuple of Finding
    levels : tuple of Level
        Threat levels tried, in the order of the page.
    worst_records : tuple of Record
        Those singled out best, worst first.
    assumptions, not_tested : tuple of str
        Sentences.
    defences : tuple of DefenceEffect
    seeds : tuple of int or None
    seconds : float
        How long the audit took.
    version : str
        Of this library.
    complete : bool
        False where the time budget ended it early.
    guarantee : str or None
        The statement of a differential-privacy guarantee, where the party can give one.
    proven : dict of str to float
        What no attack on the share exceeds, by measure, where that is proven; findings are of the attacks tried.
    """

    def table(self) -> Any:
        """All findings as a pandas data frame.

        Raises
        ------
        MissingExtraError
            When pandas is not installed.
        """
        return findings_frame(self.findings)

    def plot(self, ax: ArrayLike | None = None) -> NDArray[np.object_]:
        """Draw the measures by threat level, beside what labels alone and guessing give.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, optional
            In which to draw, one for each measure; otherwise a figure is made, which no window shows.

        Returns
        -------
        ndarray of matplotlib Axes, shape (n_measures,)

        Raises
        ------
        MissingExtraError
            When matplotlib is not installed.
        ValueError
            When there is no finding to draw, or there are fewer Axes than measures.
        """
        return findings_axes(self, ax)

    def sentences(self) -> dict[str, str]:
        """Say in natural frequencies what every threat level comes to, keyed by its name."""
        return {level.name: sentence_of(self, level).text for level in self.levels}

    def summary(self) -> str:
        """Say in plain lines what was found."""
        return summary_text(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """Write the page for a data protection officer, and return it.

        Parameters
        ----------
        path : path-like or None

        Returns
        -------
        str
            One page that needs nothing from outside: the essentials on one printed sheet, then an appendix.
        """
        return _written(audit_page(self), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Write the result as JSON, and return it."""
        return _written(to_text(self), path)

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """Read a result back.

        Parameters
        ----------
        source : str or pathlib.Path
            What `to_json` returned, or the `Path` of the file it wrote.

        Raises
        ------
        ValueError
            When it is not the JSON of an audit.
        """
        text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
        return cls(**fields_of(text, {each.name for each in fields(cls)}))

    def __repr__(self) -> str:
        lights = ", ".join(f"{criterion.name}: {criterion.light}" for criterion in self.all_criteria())
        return f"<AuditResult of party {self.party!r}: {lights}>"

    def _repr_html_(self) -> str:
        stopped = f"<p>{STOPPED_EARLY}</p>" if not self.complete else ""
        lights = "".join(
            f"<tr><th>{criterion.name}</th><td>{light_badge(criterion.light)}</td>"
            f"<td>{text_html(criterion.reason + proven_text(self, criterion.name))}</td></tr>"
            for criterion in self.all_criteria()
        )
        return card(
            f"Privacy audit of party {self.party}",
            chain(held=["shared"], rows=f"{self.n_rows} rows", f=self.obfuscator, shared="under attack"),
            stopped,
            f"<table>{lights}</table>",
            f"<p>{BY_LOT}</p>" if BY_LOT in self.assumptions else "",
            f"<small>{text_html('; '.join(facts(self)))}. to_html() writes the page for a data protection officer."
            "</small>",
        )


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    return text
