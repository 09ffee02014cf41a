"""Predictions of a table, and the file they are written to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._require import require
from ..._typing import FloatArray
from ...errors import DataCollabError, ExchangeError, ObfuscationError
from ..project import Adjustments, Project, Task, encode_table, table_batches
from ._installation import are_targets
from ._scores import ClassificationScores, RankingScores, RegressionScores, SurvivalScores
from ._sides import Side, agreed_times, survival_names

__all__ = ["check_output", "predicted_frames", "scored"]

PREDICTION = "prediction"
_ROUNDING = 1e-6


def predicted_frames(
    project: Project,
    side: Side,
    source: Path,
    *,
    proba: bool,
    keep: Sequence[str],
    batch_rows: int,
    tell: Callable[[Adjustments], None],
) -> Iterator[Any]:
    """Predictions of a file as data frames; see `PartyFolder.predict_batches`."""
    if project.task.kind == "survival":
        if proba:
            raise ValueError("Probabilities of no event are there without being asked for. Leave out --proba.")
        names = survival_names(project)
    else:
        names = _probability_names(side) if proba else []
    if clashing := sorted({PREDICTION, *names} & set(keep)) or sorted(name for name in keep if keep.count(name) > 1):
        raise ValueError(f"{source}: the columns {clashing} would be written twice. Rename them, or do not keep them.")
    return _frames(project, side, source, names, list(keep), batch_rows, tell)


def _frames(
    project: Project,
    side: Side,
    source: Path,
    names: list[str],
    keep: list[str],
    batch_rows: int,
    tell: Callable[[Adjustments], None],
) -> Iterator[Any]:
    pandas = require("pandas", "cli")
    adjusted = Adjustments()
    for table in table_batches(source, batch_rows=batch_rows, project=project):
        if lacking := [name for name in keep if name not in table.columns]:
            raise ExchangeError(
                "SCHEMA_MISSING_COLUMN",
                f"{source} has no column {', '.join(map(repr, lacking))} to keep. Give the names of columns in the "
                "file's header.",
            )
        encoded = encode_table(
            project, table, where=str(source), with_target=False, first_row=adjusted.n_rows, before=adjusted
        )
        adjusted = encoded.adjusted
        columns = {name: table[name].array for name in keep}
        if not encoded.n_rows:
            yield pandas.DataFrame(columns | dict.fromkeys([PREDICTION, *names], ()))
            continue
        columns[PREDICTION] = _predicted(project, side, encoded.X, source)
        if names:
            find = _survival if project.task.kind == "survival" else _probabilities
            columns |= dict(zip(names, find(project, side, encoded.X, source).T, strict=True))
        yield pandas.DataFrame(columns)
    tell(adjusted)


def scored(
    project: Project, sides: Mapping[str, Side], source: Path, *, batch_rows: int, find: float
) -> dict[str, dict[str, Any]]:
    """How well each side predicts a file's targets; see `PartyFolder.evaluate`."""
    scores = {name: _scores_of(project.task) for name in sides}
    ranked = _ranked(project, sides, find)
    adjusted = Adjustments()
    for table in table_batches(source, batch_rows=batch_rows, project=project):
        encoded = encode_table(project, table, where=str(source), first_row=adjusted.n_rows, before=adjusted)
        adjusted = encoded.adjusted
        assert encoded.target is not None
        if encoded.n_rows:
            for name, side in sides.items():
                scores[name].add(encoded.target, _predicted(project, side, encoded.X, source))
                if name in ranked:
                    probabilities = _probabilities(project, side, encoded.X, source)
                    ranked[name].add(encoded.target, _of_class(side, project.task.classes[1], probabilities))
    told = {"task": project.task.kind, "target": project.task.target or project.task.words, "unit": project.task.unit}
    return {
        name: {**told, **each.to_dict(), "adjusted": adjusted.to_dict()}
        | ({"ranking": ranked[name].to_dict()} if name in ranked else {})
        for name, each in scores.items()
    }


def _scores_of(task: Task) -> ClassificationScores | RegressionScores | SurvivalScores:
    if task.kind == "classification":
        return ClassificationScores(task.classes)
    return RegressionScores() if task.is_single else SurvivalScores()


def _ranked(project: Project, sides: Mapping[str, Side], find: float) -> dict[str, RankingScores]:
    """For two classes, of each side that gives probabilities."""
    if len(project.task.classes) != 2:
        return {}
    return {
        name: RankingScores(project.task.classes[1], find) for name, side in sides.items() if side.classes is not None
    }


def _of_class(side: Side, name: str | int, probabilities: NDArray[Any]) -> FloatArray:
    """The column of a class; zeros where the model does not know it."""
    assert side.classes is not None
    (there,) = np.nonzero(side.classes == name)
    return np.asarray(probabilities[:, there[0]] if len(there) else np.zeros(len(probabilities)))


def _predicted(project: Project, side: Side, X: FloatArray, source: Path) -> NDArray[Any]:
    """A target of the project for each row: what a trial with the anchor found may not hold for other rows."""
    result = _applied(side, "predict", X, source)
    if result.shape != (len(X),) or not are_targets(result, project):
        raise _malformed(
            side, f"predicts for rows of {source} something other than project {project.name!r} has targets"
        )
    return result


def _survival(project: Project, side: Side, X: FloatArray, source: Path) -> NDArray[Any]:
    """Of no event up to each agreed time; what no one observed is missing."""
    times = agreed_times(project)
    result = _applied(side, "predict_survival", X, source, times)
    with_time = result[~np.isnan(result)]
    if result.shape != (len(X), len(times)) or not ((with_time >= 0) & (with_time <= 1)).all():
        raise _malformed(side, f"gives for rows of {source} what are no probabilities")
    return result


def _probabilities(project: Project, side: Side, X: FloatArray, source: Path) -> NDArray[Any]:
    result = _applied(side, "predict_proba", X, source)
    assert side.classes is not None
    expected = len(X), len(side.classes)
    if result.shape != expected or not ((result >= -_ROUNDING) & (result <= 1 + _ROUNDING)).all():
        raise _malformed(side, f"gives for rows of {source} what are no probabilities")
    return result


def _applied(side: Side, method: str, X: FloatArray, source: Path, *further: Any) -> NDArray[Any]:
    try:
        result: NDArray[Any] = getattr(side, method)(X, *further)
    except ObfuscationError:
        raise
    # A model that was tampered with may fail in any way, and with words that quote the rows.
    except Exception as error:
        raise _malformed(side, f"fails on rows of {source} ({type(error).__name__})") from None
    return result


def _malformed(side: Side, what: str) -> ExchangeError:
    return ExchangeError("MODEL_MALFORMED", f"The model {side.name} {what}. Do not use it, and ask the analyst.")


def _probability_names(side: Side) -> list[str]:
    if side.classes is None:
        raise ValueError(f"The model {side.name} gives no probabilities. Leave out --proba.")
    return [f"proba_{name}" for name in side.classes]


def check_output(
    output: Path, source: Path, *, force: bool, what: str = "predictions", column: str = PREDICTION
) -> None:
    """Refuse a place for predictions, or explanations, before any work is done.

    Parameters
    ----------
    output : Path
    source : Path
        The table that is to be predicted.
    force : bool
        Whether any other file may be overwritten.
    what : str, default="predictions"
        That are to be written.
    column : str, default="prediction"
        By which a file of the same kind is known; it is overwritten without being asked.

    Raises
    ------
    ValueError
        When the file is the table itself.
    FileNotFoundError
        When there is no such folder.
    ExchangeError
        ALREADY_THERE, when the file exists and is not of this kind.
    """
    if not output.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {output.parent} for {output.name}. Make it first.")
    if not output.exists():
        return
    if output.samefile(source):
        raise ValueError(f"{output} is the table itself; write the {what} to another file.")
    if not (force or _has_column(output, column)):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{output} exists and does not hold {what}: it has no column {column!r}. Write to another file, or "
            "overwrite this one with --force.",
        )


def _has_column(file: Path, column: str) -> bool:
    try:
        return file.is_file() and column in next(table_batches(file, batch_rows=1)).columns
    except DataCollabError:
        return False
