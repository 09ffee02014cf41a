"""Rows as plain records: scores apart from seconds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from ..paper import SECONDS, Condition, Row
from ._render import write_csv

_SETTINGS = tuple(field.name for field in fields(Condition))


def canonical(rows: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """Sort rows, so that their order does not depend on how they came; experiments by name."""
    return {experiment: sorted(rows[experiment], key=_key) for experiment in sorted(rows) if rows[experiment]}


def error_type(row: Row) -> str:
    """Return the kind of error of a failed row, which stands before the first colon."""
    if row.error is None:
        return ""
    return row.error.partition(":")[0].strip()


def scores_csv(rows: Mapping[str, Sequence[Row]]) -> str:
    """All rows with their scores, without seconds and versions, which differ between runs."""
    return _csv(rows, lambda row: row.scores, lambda row: [error_type(row), row.cell], ["error", "cell"])


def seconds_csv(rows: Mapping[str, Sequence[Row]]) -> str:
    """All rows with their wall times, commits and versions."""

    def rest(row: Row) -> list[Any]:
        return [row.commit, " ".join(f"{library}={version}" for library, version in sorted(row.versions.items()))]

    return _csv(rows, lambda row: row.seconds, rest, ["commit", "versions"])


def all_csv(rows: Mapping[str, Sequence[Row]]) -> str:
    """All rows with their scores and times, as `datacollab_experiments.paper.take_rows` reads them."""

    def values(row: Row) -> dict[str, float]:
        return {**row.scores, **{f"{SECONDS}{step}": round(seconds, 3) for step, seconds in row.seconds.items()}}

    return _csv(rows, values, lambda row: [error_type(row), row.cell], ["error", "cell"])


def _csv(
    rows: Mapping[str, Sequence[Row]],
    values: Callable[[Row], Mapping[str, float]],
    rest: Callable[[Row], list[Any]],
    rest_head: list[str],
) -> str:
    ordered = [(row, values(row)) for part in canonical(rows).values() for row in part]
    measures = sorted({measure for _, found in ordered for measure in found})
    records = (
        [
            row.experiment,
            *("" if value is None else value for value in _settings(row)),
            row.kind,
            row.name,
            row.seed,
            # repr keeps all digits.
            *(repr(float(found[measure])) if measure in found else "" for measure in measures),
            *rest(row),
        ]
        for row, found in ordered
    )
    return write_csv(["experiment", *_SETTINGS, "kind", "name", "seed", *measures, *rest_head], records)


def _settings(row: Row) -> list[Any]:
    return [getattr(row.condition, setting) for setting in _SETTINGS]


def _key(row: Row) -> tuple[Any, ...]:
    settings = ((value is None, 0 if value is None else value) for value in _settings(row))
    return (*settings, row.kind, row.name, row.seed, row.cell)
