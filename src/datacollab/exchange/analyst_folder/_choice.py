"""What an analyst who chose has tried, as JSON holds it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...analyst import Selection

__all__ = ["selection_facts", "selection_from"]


def selection_facts(selection: Selection) -> dict[str, Any]:
    """What was tried and taken; figures that are none are null.

    Parameters
    ----------
    selection : Selection
    """
    return {
        "metric": selection.metric,
        "judged_on": selection.judged_on,
        "n_judges": selection.n_judges,
        "chosen": _plain(asdict(selection.chosen)),
        "candidates": [_plain(asdict(candidate)) for candidate in selection.candidates],
    }


def selection_from(facts: Mapping[str, Any]) -> Selection:
    """What `selection_facts` took apart."""
    from ...analyst import Candidate, Selection

    return Selection(
        candidates=tuple(Candidate(**_figures(each)) for each in facts["candidates"]),
        metric=facts["metric"],
        judged_on=facts["judged_on"],
        n_judges=facts["n_judges"],
    )


_MAY_LACK = ("alpha", "failure")


def _plain(candidate: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in candidate.items()
    }


def _figures(candidate: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None and name not in _MAY_LACK else value for name, value in candidate.items()}
