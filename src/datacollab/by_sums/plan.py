"""The plan of one run: the statistics that parties add up, and a party's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from ..agreement import HAZARDS, META_ANALYSIS, Project, Task, are_declared_alike, find_factors
from ..study import (
    AdditiveHazards,
    CategoryColumn,
    Counts,
    Description,
    Effect,
    GroupedLogistic,
    GroupedPoisson,
    HazardRound,
    LeastSquares,
    LogisticRound,
    MetaAnalysis,
    ModelValidation,
    NumberColumn,
    PoissonRound,
    RidgeRegression,
    RoundsSoFar,
    Statistic,
    StudyPlan,
    Survival,
)
from ..sums import RidgeSums, read_mask_card
from ..sums._recommended import recommended
from .rounds import NextRound

__all__ = ["DELTA", "fewest_rows", "plan_of", "purpose_of_model", "study_columns", "study_statistics", "study_table"]


def study_columns(project: Project) -> dict[str, NumberColumn | CategoryColumn]:
    """Return the columns of a project and of its target, last, by name; an event that was seen is 1."""
    columns: dict[str, NumberColumn | CategoryColumn] = {}
    for each in project.columns:
        if each.minimum is not None and each.maximum is not None:
            columns[each.name] = NumberColumn(each.name, each.minimum, each.maximum)
        else:
            columns[each.name] = CategoryColumn(each.name, each.levels)
    task = project.task
    if task.treatment:
        columns[task.treatment] = CategoryColumn(task.treatment, _arms(task))
    if task.event:
        columns[task.event] = CategoryColumn(task.event, (0, 1))
    if task.classes:
        return columns | {task.target: CategoryColumn(task.target, task.classes)}
    assert task.maximum is not None
    number = task.target or task.outcome or task.time
    low = 0.0 if task.minimum is None else task.minimum
    return columns | {number: NumberColumn(number, low, task.maximum)}


def study_statistics(project: Project, *, n_components: int, so_far: RoundsSoFar | None = None) -> list[Statistic]:
    """Return the statistics that a project's parties add up; some need the columns of its common map.

    `so_far` is the state after the rounds before, in a round after the first.
    """
    sharing = project.sums
    if not sharing.is_study:
        return [_ridge_regression(project, n_components)]
    task = project.task
    columns = study_columns(project)
    # In this order, by which both sides find their numbers in the total.
    all_columns = tuple(columns.values())
    noise = sharing.noise
    covariates = [columns[each.name] for each in project.columns if each.name != sharing.outcome]
    explaining = _explaining(covariates, task, columns)
    outcome = columns[sharing.outcome or task.outcome or task.time or task.target]
    by = None if sharing.by is None else columns[sharing.by]
    assert not isinstance(by, NumberColumn)
    made: list[Statistic] = []
    if "counts" in sharing.statistics:
        made.append(Counts(all_columns, noise=noise))
    if "description" in sharing.statistics:
        made.append(Description(all_columns, by, noise=noise))
    if "least squares" in sharing.statistics:
        assert isinstance(outcome, NumberColumn)
        errors: Any = sharing.errors or "robust"
        # The clusters may be those of an effect beside classical errors.
        cluster = sharing.cluster if errors == "robust" else None
        made.append(LeastSquares(outcome, explaining, noise=noise, errors=errors, cluster=cluster))
    time = columns.get(task.time)
    if "survival" in sharing.statistics:
        assert isinstance(time, NumberColumn)
        made.append(Survival(time, task.event, by, noise=noise))
    if "additive hazards" in sharing.statistics:
        assert isinstance(time, NumberColumn)
        made.append(AdditiveHazards(time, task.event, explaining, noise=noise))
    if sharing.rounds is not None:
        return [_regression_round(project, columns, so_far)]
    factors: list[Any] = [columns[name] for name in find_factors(sharing, task, project.columns)]
    if "logistic regression" in sharing.statistics:
        made.append(GroupedLogistic(factors, _sought_last(task)))
    if "poisson regression" in sharing.statistics:
        event = columns[task.event]
        assert isinstance(event, CategoryColumn)
        assert isinstance(time, NumberColumn)
        made.append(GroupedPoisson(factors, event, time, noise=noise))
    if "effect" in sharing.statistics:
        assert isinstance(outcome, NumberColumn)
        made.append(_effect(project, columns[task.treatment], outcome, covariates, by, n_components))
    made += _validations(project, columns)
    assert {each.title for each in made} == {*sharing.statistics}, "no branch makes a statistic that is agreed on"
    return made


def _explaining(
    covariates: Sequence[NumberColumn | CategoryColumn],
    task: Task,
    columns: Mapping[str, NumberColumn | CategoryColumn],
) -> list[NumberColumn | CategoryColumn]:
    """Return the columns that explain an outcome: all others, and the treatment."""
    if not task.treatment:
        return [*covariates]
    return [*covariates, columns[task.treatment]]


def _effect(
    project: Project,
    treatment: NumberColumn | CategoryColumn,
    outcome: NumberColumn,
    covariates: Sequence[NumberColumn | CategoryColumn],
    by: CategoryColumn | None,
    n_components: int,
) -> Effect:
    """Return the effect of a treatment, in the common map of the covariates."""
    assert isinstance(treatment, CategoryColumn)
    # The two levels of one of the covariates are compared as well.
    differs = None
    if by is not None and by in covariates and len(by.levels) == 2:
        differs = by
    sharing = project.sums
    return Effect(treatment, outcome, n_components, covariates, sharing.cluster, differs, noise=sharing.noise)


def _regression_round(
    project: Project, columns: Mapping[str, NumberColumn | CategoryColumn], so_far: RoundsSoFar | None
) -> LogisticRound | PoissonRound | HazardRound:
    """Return a round of the regression that a project asks for; it is alone in its message."""
    sharing = project.sums
    task = project.task
    explaining = [columns[name] for name in find_factors(sharing, task, project.columns)]
    n_rounds = sharing.n_rounds
    if "logistic regression" in sharing.statistics:
        return LogisticRound(explaining, _sought_last(task), n_rounds, sharing.noise, so_far)
    event = columns[task.event]
    time = columns[task.time]
    assert isinstance(event, CategoryColumn)
    assert isinstance(time, NumberColumn)
    if HAZARDS in sharing.statistics:
        return HazardRound(explaining, event, n_rounds, sharing.noise, so_far, time=time)
    return PoissonRound(explaining, event, n_rounds, sharing.noise, so_far, time=time)


def _sought_last(task: Task) -> CategoryColumn:
    """Return a target of two classes, the sought one last."""
    return CategoryColumn(task.target, sorted(task.classes, key=lambda each: each == task.positive))


def _validations(project: Project, columns: Mapping[str, NumberColumn | CategoryColumn]) -> list[Statistic]:
    """Return the trial of a published model on the project's columns, if it has one, and how much parties differ."""
    sharing = project.sums
    if sharing.logistic_model is None:
        return []
    tried = [columns[each.name] for each in project.columns]
    validation = ModelValidation(_yes_or_no(project.task), tried, sharing.logistic_model)
    if META_ANALYSIS in sharing.statistics:
        return [validation, MetaAnalysis(validation)]
    return [validation]


def _yes_or_no(task: Task) -> CategoryColumn:
    """Return the outcome of a published model: the sought class last, or a number that is 0 or 1."""
    if task.classes:
        return _sought_last(task)
    return CategoryColumn(task.target or task.outcome, (0, 1))


def _ridge_regression(project: Project, n_components: int) -> RidgeRegression:
    """Return the statistic of a model, for classes or for a number within its declared limits."""
    task = project.task
    limits = None
    if not task.classes and task.minimum is not None and task.maximum is not None:
        limits = (float(task.minimum), float(task.maximum))
    sums = RidgeSums(n_components, task.classes or None, limits, project.sums.noise, task.scale)
    return RidgeRegression(sums, recommended(alike=are_declared_alike(project.columns)).least_penalty)


def study_table(
    project: Project, X: FloatArray, target: NDArray[Any], clusters: NDArray[Any] | None = None
) -> dict[str, NDArray[Any]]:
    """Return a party's columns from its matrix; an entry is missing only where a column of the matrix says so."""
    table: dict[str, NDArray[Any]] = {}
    if project.sums.cluster is not None and clusters is not None:
        table[project.sums.cluster] = clusters
    for column, own in project.blocks(X):
        # The last place of a column that may be missing is its flag.
        missing = (own[:, -1] == 1) & column.flag_missing
        if column.levels:
            levels = np.array(column.levels, dtype=object)
            table[column.name] = levels[np.argmax(own[:, : len(levels)], axis=1)]
            table[column.name][missing] = None
        else:
            table[column.name] = np.where(missing, np.nan, own[:, 0])
    task = project.task
    if target.dtype.names is None:
        return table | {task.target: target}
    fields = {name: target[part] for part, name in task.fields.items()}
    if task.treatment:
        fields[task.treatment] = np.array(_arms(task), dtype=object)[fields[task.treatment].astype(int)]
    for name, own in fields.items():
        # Events are 0 and 1 in the plan.
        table[name] = own.astype(int) if own.dtype == bool else own
    return table


def _arms(task: Task) -> tuple[str, str]:
    """Return the entries that mean untreated, and treated, in words."""
    return "/".join(map(str, task.untreated)), "/".join(map(str, task.treated))


# With fewer rows a party hides nobody, so no project may allow them.
_FEWEST_OWN_ROWS = 20
DELTA = 1e-5
"""Delta of the differential privacy that a project may ask for."""


def fewest_rows(project: Project) -> int:
    """Return the fewest own rows that a party may add."""
    return max(_FEWEST_OWN_ROWS, project.min_rows)


def plan_of(
    project: Project, *, anchor_commitment: str, n_components: int, next_round: NextRound | None = None
) -> StudyPlan:
    """Return the plan of a project that shares sums, in its first round or a later one.

    Its context, on which masks depend, depends on the whole agreement, and in a later round on all rounds before.
    """
    sharing = project.sums
    # Each card carries its party's signature: the project's owner cannot put in a key of its own.
    roster: dict[str | int, bytes] = {
        name: read_mask_card(card, project.parties[name]) for name, card in sharing.mask_keys.items()
    }
    facts = {
        "project_digest": project.digest,
        "anchor_commitment": anchor_commitment,
        "run": sharing.run,
        "purpose": project.purpose,
        "columns": list(project.feature_names),
    }
    so_far = None
    if next_round is not None:
        so_far = next_round.so_far
        facts["round"] = next_round.facts()
    statistics = study_statistics(project, n_components=n_components, so_far=so_far)
    return StudyPlan(roster, statistics, facts=facts, epsilon=sharing.epsilon, delta=DELTA)


def purpose_of_model(party: str, project: Project) -> str:
    """Return the purpose that is bound into the seal of a party's model."""
    return f"model of {party} in {project.digest}"
