"""The times for which a party predicts survival: the same at all parties, by the project."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...model import PartyModel
from ..project import Project

__all__ = ["agreed_times", "survival_names", "times_within"]

_PARTS = 4


def agreed_times(project: Project) -> list[float]:
    """Quarters of the longest time that is possible, rounded up like the times themselves.

    Parameters
    ----------
    project : Project
        Of times to an event.

    Examples
    --------
    With a maximum of 1826 days, rounded to 30: 480, 930, 1380 and 1830 days.
    """
    task = project.task
    assert task.maximum is not None
    assert task.latest is not None
    step = task.time_step
    quarters = [task.maximum * part / _PARTS for part in range(1, _PARTS)]
    return [each if step is None else math.ceil(each / step * (1 - 1e-12)) * step for each in quarters] + [task.latest]


def survival_names(project: Project) -> list[str]:
    """Names of the columns with the probability of no event up to each agreed time."""
    return [f"survival_{time:.10g}" for time in agreed_times(project)]


def times_within(model: PartyModel, times: Sequence[float]) -> list[float]:
    """Those times, which ascend, of which a model knows something: beyond the end of the observation nothing is."""
    (baseline,) = model.estimator.baselines_.values()
    return [time for time in times if time <= baseline.times[-1]]
