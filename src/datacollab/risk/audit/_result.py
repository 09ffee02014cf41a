"""The result of an audit, and its JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._notebooks import card, chain
from ._facts import AuditFacts, findings_frame
from ._findings import DefenceEffect, Finding, Level, Record
from ._page import audit_page, rating_badge, text_html
from ._plot import findings_axes
from ._sentences import STOPPED_EARLY, facts, proven_text, sentence_of, summary_text

__all__ = ["AuditResult"]

_FORMAT = 1
_PARTS = {"findings": Finding, "levels": Level, "worst_records": Record, "defences": DefenceEffect}


def to_text(result: AuditFacts) -> str:
    """Write a result as JSON; what is not a number becomes null."""
    return (
        json.dumps({"format": _FORMAT, **_plain(asdict(result))}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )


def fields_of(text: str, wanted: set[str]) -> dict[str, Any]:
    """Read the wanted fields of a result from JSON.

    Raises
    ------
    ValueError
        When the text is no JSON, of another format, or has other fields.
    """
    try:
        told = json.loads(text)
    except ValueError:
        raise ValueError(
            "This cannot be read as JSON. Give the text of an audit.json, or its path as a pathlib.Path."
        ) from None
    if not isinstance(told, dict) or told.get("format") != _FORMAT:
        found = told.get("format") if isinstance(told, dict) else None
        raise ValueError(
            f"This is not the JSON of an audit in format {_FORMAT}; found format {found!r}. Give the text of an "
            "audit.json that this version of datacollab wrote."
        )
    del told["format"]
    if set(told) != wanted:
        raise ValueError(f"The JSON of this audit lacks fields, or has others: {sorted(set(told) ^ wanted)}.")
    try:
        for name, kind in _PARTS.items():
            told[name] = tuple(_made(kind, part) for part in told[name])
        for name in ("assumptions", "not_tested", "seeds"):
            told[name] = None if told[name] is None else tuple(told[name])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"A part of this audit's JSON is not what it should be ({type(error).__name__}).") from None
    return told


def _made(kind: type, part: dict[str, Any]) -> Any:
    """One of the dataclasses; lists become tuples, and a value that is null NaN."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in part.items()}
    if "value" in {field.name for field in fields(kind)} and values["value"] is None:
        values["value"] = math.nan
    if "per_seed" in values:
        values["per_seed"] = tuple(math.nan if value is None else value for value in values["per_seed"])
    return kind(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    # NumPy's numbers are none to the json module.
    return value.item() if hasattr(value, "item") else value


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
        ratings = ", ".join(f"{criterion.name}: {criterion.rating}" for criterion in self.all_criteria())
        return f"<AuditResult of party {self.party!r}: {ratings}>"

    def _repr_html_(self) -> str:
        stopped = f"<p>{STOPPED_EARLY}</p>" if not self.complete else ""
        ratings = "".join(
            f"<tr><th>{criterion.name}</th><td>{rating_badge(criterion.rating)}</td>"
            f"<td>{text_html(criterion.reason + proven_text(self, criterion.name))}</td></tr>"
            for criterion in self.all_criteria()
        )
        return card(
            f"Privacy audit of party {self.party}",
            chain(held=["shared"], rows=f"{self.n_rows} rows", f=self.obfuscator, shared="under attack"),
            stopped,
            f"<table>{ratings}</table>",
            f"<small>{text_html('; '.join(facts(self)))}. to_html() writes the page for a data protection officer."
            "</small>",
        )


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    return text
