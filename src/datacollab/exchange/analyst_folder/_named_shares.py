"""Targets of a share that are times to events or effects, or none: whether they are what was agreed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ExchangeError
from ...share import Share
from ..project import Project

__all__ = ["check_named"]

_ROUNDING = 1e-9


def check_named(share: Share, project: Project, party: str, where: str) -> None:
    """Refuse targets of another kind, out of their range, not rounded as agreed, or with too few of a sort.

    Parameters
    ----------
    share : Share
    project : Project
        Whose task is no classification or regression.
    party, where : str
        For errors: whose it is, and the name of the file.

    Raises
    ------
    ExchangeError
        TARGET_INVALID or CLASS_TOO_SMALL.
    """
    task = project.task
    if share.target_kind is not task.target_kind:
        raise _invalid(
            f"Party {party!r}: targets in {where} are of kind {share.target_kind.value!r}; project {project.name!r} "
            f"agreed on {task.target_kind.value!r}"
        )
    if share.anchor_target is not None:
        raise _invalid(f"Party {party!r}: {where} has targets of the anchor, and anchors of this kind have none")
    for name, wrong in _wrong(share.target, project).items():
        if n_wrong := int(np.count_nonzero(wrong)):
            raise _invalid(
                f"Party {party!r}: {n_wrong} of {len(share.target)} entries of {name} in {where} are not as project "
                f"{project.name!r} wants them ({_wanted(name, project)})"
            )
    for field in ("event", "treatment"):
        if field in task.fields:
            _check_counts(share.target[field], field, project, party)


def _wrong(target: NDArray[Any], project: Project) -> dict[str, NDArray[np.bool_]]:
    """Entries that cannot be, by the name of their part; that events are truth values, the share has checked."""
    task, wrong = project.task, {}
    if "outcome" in task.fields:
        assert task.minimum is not None
        assert task.maximum is not None
        wrong["outcome"] = (target["outcome"] < task.minimum) | (target["outcome"] > task.maximum)
    if "time" in task.fields:
        assert task.latest is not None
        wrong["time"] = target["time"] > task.latest * (1 + _ROUNDING)
        if task.time_step is not None:
            steps = target["time"] / task.time_step
            wrong["time"] |= np.abs(steps - np.round(steps)) > _ROUNDING * np.maximum(1.0, steps)
    return wrong


def _wanted(name: str, project: Project) -> str:
    task = project.task
    if name == "outcome":
        return f"from {task.minimum:.10g} to {task.maximum:.10g}"
    rounded = "" if task.time_step is None else f", multiples of {task.time_step:.10g}"
    return f"at most {task.latest:.10g}{rounded}"


def _check_counts(values: NDArray[Any], field: str, project: Project, party: str) -> None:
    n_yes = int(np.count_nonzero(values))
    small = [count for count in (n_yes, len(values) - n_yes) if 0 < count < project.min_class_rows]
    if small:
        raise ExchangeError(
            "CLASS_TOO_SMALL",
            f"Party {party!r} shares {min(small)} rows of one sort of {field}; project {project.name!r} wants "
            f"{project.min_class_rows}. Leave the share out, or ask for one with more rows.",
        )


def _invalid(sentence: str) -> ExchangeError:
    return ExchangeError("TARGET_INVALID", f"{sentence}. Have it made again with the project file as it is now.")
