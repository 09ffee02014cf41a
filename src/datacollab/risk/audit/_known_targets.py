"""Attackers whose list of candidates has their targets: what these give by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ..attacks import link_chances
from ._scenario import Scenario

__all__ = ["apart_by_class", "linked_by_targets", "target_columns", "told_by_targets"]


def linked_by_targets(scenario: Scenario, metric: str) -> float:
    """What is linked by whoever knows the candidates' targets and the shared ones, and no representation.

    Parameters
    ----------
    scenario : Scenario
        With `candidate_target`.
    metric : str
        "linkage" or "open-world linkage".
    """
    originals, strangers, shared = target_columns(scenario, scenario.target)
    decoys = strangers[: len(scenario.decoys) if metric.startswith("open-world") else 0]
    chances = [
        link_chances(np.vstack([originals[group], decoys]), shared[group], random_state=0) for group in scenario.groups
    ]
    return float(np.concatenate(chances).mean())


def target_columns(scenario: Scenario, shared: NDArray[Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Targets of originals, outsiders and shared rows: numbers as one column, classes as indicators."""
    known = scenario.candidate_target
    assert known is not None
    own, strangers = known[scenario.index], known[len(scenario.table) :]
    code = _code(np.concatenate([own, strangers, shared]))
    first, second, third = np.split(code, [len(own), len(own) + len(strangers)])
    return first, second, third


def apart_by_class(
    rows: tuple[FloatArray, FloatArray, FloatArray], columns: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Originals, strangers and shared rows with further columns, so that one class is farther from the next than else.

    There may be fewer strangers than columns of them.
    """
    gap = 10 * float(np.ptp(np.vstack(rows), axis=0).sum()) or 1.0
    first, second, third = (
        np.hstack([each, gap * code[: len(each)]]) for each, code in zip(rows, columns, strict=True)
    )
    return first, second, third


def told_by_targets(scenario: Scenario) -> float:
    """Share of the attacked rows that leave with their record's own target, which no other row has."""
    known = scenario.candidate_target
    if known is None or not scenario.is_paired:
        return 0.0
    values, counts = np.unique(scenario.shared_target, return_counts=True)
    single = np.isin(scenario.target, values[counts == 1])
    return float((single & (scenario.target == known[scenario.index])).mean())


def _code(target: NDArray[Any]) -> FloatArray:
    if target.dtype.kind == "f":
        return np.asarray(target[:, None])
    return np.asarray(target[:, None] == np.unique(target), dtype=np.float64)
