"""Figures of the risk as people out of a hundred."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from ...exchange.party_folder import ReleaseSummary
from ...exchange.party_folder._release_summary import FIGURES, figure_text, limit_text
from ..web import people_svg

__all__ = ["RiskPicture", "risk_pictures"]

_ROUNDING = 1e-9
_SENTENCES = {
    "linkage": "Of 100 people whose records the attacker has, up to {} would be linked to the row that is theirs.",
    "reidentification": "With strangers among the candidates, up to {} of 100 of your people would be told.",
    "membership": "Of 100 pairs of one who is in the table and one who is not, the attacker would point to the right "
    "one in up to {}; guessing gets 50.",
}


@dataclass(frozen=True, kw_only=True)
class RiskPicture:
    """One figure of the risk.

    Attributes
    ----------
    title, figure, sentence : str
    limit, known : str
        What the policy allows, and what is known besides; empty where there is nothing.
    is_above : bool
        Whether it is above its limit, or should have been measured.
    picture : Markup
    """

    title: str
    figure: str
    sentence: str
    limit: str
    known: str
    is_above: bool
    picture: Markup


def risk_pictures(summary: ReleaseSummary) -> list[RiskPicture]:
    """A picture of each figure; none where no attack was made."""
    return [] if summary.risk is None else [_picture(summary, name) for name in FIGURES]


def _picture(summary: ReleaseSummary, name: str) -> RiskPicture:
    assert summary.risk is not None
    told, limit = summary.risk.of(name), summary.limits.get(name)
    known = []
    if name in summary.risk.targets_alone:
        known.append(f"by targets alone: {figure_text(name, summary.risk.targets_alone[name])}")
    if name in summary.proven:
        known.append(f"proven for any attack: at most {figure_text(name, summary.proven[name])}")
    counted = "?" if told is None else str(math.ceil(100 * told - _ROUNDING))
    return RiskPicture(
        title=FIGURES[name],
        figure="not measured" if told is None else f"at most {figure_text(name, told)}",
        sentence="No figure, which is not the same as no risk." if told is None else _SENTENCES[name].format(counted),
        limit="" if limit is None else limit_text(name, limit),
        known="; ".join(known),
        is_above=name in summary.above_limits,
        picture=Markup() if told is None else people_svg(told, limit),
    )
