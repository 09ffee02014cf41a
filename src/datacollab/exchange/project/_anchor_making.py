"""The anchor by the project's recipe, from public rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...errors import ExchangeError
from ._anchor import Anchor
from ._encoding import encode_table
from ._numbers import NotNumericError, as_numbers
from ._project import Project
from ._target_encoding import encode_target

if TYPE_CHECKING:
    from ...anchor import AnchorSampler

__all__ = ["anchor_of_rows", "check_anchor", "make_anchor"]


def make_anchor(project: Project, table: Any, *, where: str, random_state: int | None = None) -> Anchor:
    """Make the anchor from public rows, with a fresh secret.

    The rows are first made the project's matrix; the anchor is made in its columns, so that a row of SMOTE may lie
    between two categories.  For SMOTE, numbers count in units of their declared range, or the neighbours of a row would
    be those in its largest column.

    Parameters
    ----------
    project : Project
    table : DataFrame
        Public rows.  Targets are used, and are in the anchor, where the table and the method have them.
    where : str
        What an error calls the table.
    random_state : int, optional
        For a repeatable anchor; the secret stays fresh.

    Raises
    ------
    ExchangeError
        When the rows are not as the project says.
    AnchorError
        When the recipe cannot be followed, such as too few public rows.
    """
    encoded = encode_table(project, table, where=where, with_target=_has_target(project, table))
    recipe = project.anchor
    scale = _scale(project) if recipe.method == "smote" else np.ones(project.n_features)
    sampler = _sampler(project)
    rows, target = sampler.sample(encoded.X / scale, encoded.target, random_state=random_state)
    return check_anchor(Anchor(rows=rows * scale, target=target), project, what=where)


def _sampler(project: Project) -> AnchorSampler:
    # Here, as the commands that only read a project should start at once.
    from ...anchor import GaussianAnchor, SampleAnchor, SMOTEAnchor, UniformAnchor

    recipe = project.anchor
    samplers: dict[str, AnchorSampler] = {
        "smote": SMOTEAnchor(recipe.n_rows, task=project.task.kind if project.task.is_single else "auto"),
        "uniform": UniformAnchor(recipe.n_rows),
        "gaussian": GaussianAnchor(recipe.n_rows),
        "sample": SampleAnchor(recipe.n_rows),
    }
    return samplers[recipe.method]


def anchor_of_rows(project: Project, table: Any, *, where: str) -> Anchor:
    """Take the rows of a table as the anchor, with a fresh secret.

    Parameters
    ----------
    project : Project
    table : DataFrame
        With the columns of the project's matrix (`Project.feature_names`), which are taken as they are, or else with
        the project's own columns.
    where : str
        What an error calls the table.

    Raises
    ------
    ExchangeError
        When the rows do not fit the project.
    """
    found = [str(name) for name in table.columns]
    if set(project.feature_names) - set(found):
        encoded = encode_table(project, table, where=where, with_target=_has_target(project, table))
        return check_anchor(Anchor(rows=encoded.X, target=encoded.target), project, what=where)
    try:
        features = [as_numbers(table.iloc[:, found.index(name)]) for name in project.feature_names]
    except NotNumericError as error:
        raise _unfit(where, f"a column {error}, and numbers are wanted") from None
    target = None
    if _has_target(project, table):
        entries = table.iloc[:, found.index(project.task.target)]
        target = encode_target(project.task, {project.task.target: entries}, where, n_rows=len(table))
    return check_anchor(Anchor(rows=np.column_stack(features), target=target), project, what=where)


def check_anchor(anchor: Anchor, project: Project, *, what: str) -> Anchor:
    """Check that an anchor fits the project; its targets get the type that the project's have.

    Raises
    ------
    ExchangeError
        When it does not.
    """
    wanted = (project.anchor.n_rows, project.n_features)
    if anchor.rows.shape != wanted:
        raise _unfit(
            what,
            f"{anchor.rows.shape[0]} rows in {anchor.rows.shape[-1]} columns; the project wants {wanted[0]} rows in "
            f"{wanted[1]}",
        )
    if not np.isfinite(anchor.rows).all():
        raise _unfit(what, "entries are missing or infinite")
    if anchor.target is None:
        return anchor
    return replace(anchor, target=_checked_target(anchor.target, project, what))


def _checked_target(target: NDArray[Any], project: Project, what: str) -> NDArray[Any]:
    task = project.task
    if not task.is_single:
        raise _unfit(what, f"it has targets, and anchors of kind {task.kind!r} have none")
    if target.shape != (project.anchor.n_rows,):
        raise _unfit(what, "it has another number of targets than rows")
    if task.kind == "regression":
        if target.dtype.kind not in "fi" or not np.isfinite(target).all():
            raise _unfit(what, "its targets are no finite numbers")
        return target.astype(np.float64)
    if target.dtype.kind != task.class_array.dtype.kind or not np.isin(target, task.class_array).all():
        raise _unfit(what, "its targets are other classes than the project's")
    return target.astype(task.class_array.dtype)


def _has_target(project: Project, table: Any) -> bool:
    """Whether anchor rows get targets: of times to events and effects nobody makes any use, so they stay without."""
    return project.task.is_single and project.task.target in map(str, table.columns)


def _scale(project: Project) -> FloatArray:
    """For each column of the matrix, the width of its declared range; 1 for zeros and ones."""
    scale = np.ones(project.n_features)
    start = 0
    for column in project.columns:
        if column.minimum is not None and column.maximum is not None:
            scale[start] = column.maximum - column.minimum
        start += column.n_features
    return scale


def _unfit(what: str, reason: str) -> ExchangeError:
    return ExchangeError("ANCHOR_UNFIT", f"The anchor from {what} does not fit the project: {reason}. Make it again.")
