"""Predict a table at home, and evaluate predictions against known targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from ..._require import require
from ..._typing import FloatArray
from ...errors import AgreementError, DataCollabError, ExchangeError, NumericalError, ObfuscationError
from ...linalg import ranking_figures
from ...survival import concordance_index
from ..project import Adjustments, Project, Task, encode_table, table_batches, write_table
from ._folder import Folder, record
from ._install import Side, agreed_times, are_targets, at_home, survival_names

PREDICTION = "prediction"
BATCH_ROWS = 16_384
_ROUNDING = 1e-6
_LEVEL = 0.95


def predict_batches(
    folder: Folder,
    source: Path,
    *,
    using: str | None = None,
    proba: bool = False,
    keep: Sequence[str] = (),
    batch_rows: int = BATCH_ROWS,
    tell: Callable[[Adjustments], None] = lambda adjusted: None,
) -> Iterator[Any]:
    """Predict a table of any length at home, a batch of rows at a time.

    Parameters
    ----------
    folder : Folder
    source : Path
        CSV, Parquet or Arrow; it needs no target.
    using : {"combined", "local", "own", "collaboration", "distilled"}, optional
        The side that predicts; by default the combined one, or the collaboration's if nothing was combined.  "local"
        are the party's own models with the public rows it has, "own" without them.
    proba : bool, default=False
        Whether probabilities of the classes follow, in columns "proba_CLASS".  For times to an event the prediction is
        the log risk, and columns "survival_TIME" follow in any case: the probability of no event up to quarters of the
        longest time, empty beyond the end of the observation.
    keep : sequence of str, default=()
        Columns of the table to be put in front, such as an identifier.
    batch_rows : int, default=16384
    tell : callable, optional
        Called after the last batch with the counts of entries that the project's rules changed.

    Returns
    -------
    iterator of DataFrame
        With the column "prediction", in the order of the rows.

    Raises
    ------
    ExchangeError
        NOT_SHARED, NOT_INSTALLED, NOT_POOLED, WRONG_SHARE, or of the kind "schema".
    """
    side, project, source = at_home(folder).side(using), folder.project, Path(source)
    if project.task.kind == "survival":
        if proba:
            raise ValueError("Probabilities of no event are there without being asked for. Leave out --proba.")
        names = survival_names(project)
    else:
        names = []
        if proba:
            if side.classes is None:
                raise ValueError(f"The model {side.name} gives no probabilities. Leave out --proba.")
            names = [f"proba_{name}" for name in side.classes]
    check_written_once(source, keep, {PREDICTION, *names})
    return _frames(project, side, source, names, list(keep), batch_rows, tell)


def predict(
    folder: Folder,
    source: Path,
    output: Path,
    *,
    using: str | None = None,
    proba: bool = False,
    keep: Sequence[str] = (),
    force: bool = False,
    batch_rows: int = BATCH_ROWS,
    tell: Callable[[Adjustments], None] = lambda adjusted: None,
) -> int:
    """Predict a table of any length at home, into a file that is closed to others; see `predict_batches`.

    Return the number of rows.

    Parameters
    ----------
    folder, source, using, proba, keep, batch_rows, tell
        As in `predict_batches`.
    output : Path
        CSV, Parquet or Arrow, by its name.  Predictions that are there already are replaced.
    force : bool, default=False
        Whether another file may be replaced, too.

    Raises
    ------
    ExchangeError
        ALREADY_THERE, and the errors of `predict_batches`.
    FileNotFoundError
        If there is no folder for the output.
    """
    check_output(Path(output), Path(source), force=force)
    batches = predict_batches(folder, source, using=using, proba=proba, keep=keep, batch_rows=batch_rows, tell=tell)
    n_rows = write_table(Path(output), batches, mode=0o600)
    record(folder, "predict", file=Path(source).name, n_rows=n_rows)
    return n_rows


def evaluate(
    folder: Folder, source: Path, *, using: str | None = None, find: float = 0.8, batch_rows: int = BATCH_ROWS
) -> dict[str, Any]:
    """Evaluate predictions against the targets of a table.  Runs locally.

    Parameters
    ----------
    folder : Folder
    source : Path
    using : {"combined", "local", "own", "collaboration", "distilled"}, optional
        The side whose figures come first; as in `predict_batches`.
    find : float, default=0.8
        Of two classes, the share of the second one's rows that a threshold is to find; above 0, at most 1.
    batch_rows : int, default=16384

    Returns
    -------
    dict of str to object
        "n_rows", "task", and "adjusted", the counts of entries that the project's rules changed.  Intervals are of
        95 %.  "using" names the side, and "sides" has the same figures of all sides.

        * For a classification "accuracy", "accuracy_interval" (Wilson), "balanced_accuracy", "classes" and "confusion",
          a row for each true class.
        * For a regression "rmse", "mae" and "r2", the first two with t intervals.
        * For a survival "concordance" and "n_events".
        * With probabilities of two classes "ranking" of the second: "auc" with DeLong's interval, "average_precision",
          "prevalence", "expected" (the mean probability), "brier", and "threshold", the probability from which the
          share `find` is found.

    Raises
    ------
    ExchangeError
        NOT_SHARED, NOT_INSTALLED, NOT_POOLED, WRONG_SHARE, or of the kind "schema".
    """
    if not 0 < find <= 1:
        raise ValueError(f"find must be above 0 and at most 1; got {find}.")
    if folder.project.task.kind == "none":
        raise AgreementError(f"Project {folder.project.name!r} has no targets to compare predictions with.")
    home = at_home(folder)
    home.side(using)
    sides = home.sides
    chosen = using or next(iter(sides))
    scores = scored(folder.project, sides, Path(source), batch_rows=batch_rows, find=find)
    first = scores[chosen]
    figures = {name: first[name] for name in ("accuracy", "rmse", "concordance") if name in first}
    record(folder, "evaluate", file=Path(source).name, n_rows=first["n_rows"], using=chosen, **figures)
    return first | {"using": chosen, "sides": scores}


def check_kept(source: Path, keep: Sequence[str], columns: Sequence[str]) -> None:
    if lacking := [name for name in keep if name not in columns]:
        raise ExchangeError(
            "SCHEMA_MISSING_COLUMN",
            f"{source} has no column {', '.join(map(repr, lacking))} to keep. Give the names of columns in the "
            "file's header.",
        )


def check_written_once(source: Path, keep: Sequence[str], others: set[str]) -> None:
    if clashing := sorted(others & set(keep)) or sorted(name for name in keep if keep.count(name) > 1):
        raise ValueError(f"{source}: the columns {clashing} would be written twice. Rename them, or do not keep them.")


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
        check_kept(source, keep, table.columns)
        encoded = encode_table(project, table, where=str(source), with_target=False, before=adjusted)
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
    """Return how well each side predicts a file's targets; see `evaluate`."""
    task, adjusted = project.task, Adjustments()
    ranked = [name for name, side in sides.items() if side.classes is not None and len(task.classes) == 2]
    targets: list[NDArray[Any]] = []
    predicted: dict[str, list[NDArray[Any]]] = {name: [] for name in sides}
    likely: dict[str, list[FloatArray]] = {name: [] for name in ranked}
    for table in table_batches(source, batch_rows=batch_rows, project=project):
        encoded = encode_table(project, table, where=str(source), before=adjusted)
        adjusted = encoded.adjusted
        assert encoded.target is not None
        if not encoded.n_rows:
            continue
        targets.append(encoded.target)
        for name, side in sides.items():
            predicted[name].append(_predicted(project, side, encoded.X, source))
            if name in ranked:
                probabilities = _probabilities(project, side, encoded.X, source)
                # Single precision, since tables may be long.
                likely[name].append(_of_class(side, task.classes[1], probabilities).astype(np.float32))
    said = {"task": task.kind, "target": task.target or task.words, "unit": task.unit}
    target = _together(targets)
    scores = {}
    for name in sides:
        scores[name] = {**said, **figures_of(task, target, _together(predicted[name])), "adjusted": adjusted.to_dict()}
        if name in ranked:
            of_second = np.asarray(target == task.classes[1], dtype=bool)
            figures = ranking_figures(of_second, _together(likely[name]), find)
            scores[name]["ranking"] = {"positive": task.classes[1], **figures}
    return scores


def _together(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0)


def _of_class(side: Side, name: str | int, probabilities: NDArray[Any]) -> FloatArray:
    """Return the column of a class; zeros if the model does not know it."""
    assert side.classes is not None
    (there,) = np.nonzero(side.classes == name)
    return np.asarray(probabilities[:, there[0]] if len(there) else np.zeros(len(probabilities)))


def _predicted(project: Project, side: Side, X: FloatArray, source: Path) -> NDArray[Any]:
    """Return a target of the project for each row; a trial with the anchor says nothing of other rows."""
    result = _applied(side, "predict", X, source)
    if result.shape != (len(X),) or not are_targets(result, project):
        raise _malformed(
            side, f"predicts for rows of {source} something other than project {project.name!r} has targets"
        )
    return result


def _survival(project: Project, side: Side, X: FloatArray, source: Path) -> NDArray[Any]:
    """Return probabilities of no event up to each agreed time; NaN beyond the observation."""
    times = agreed_times(project)
    result = _applied(side, "predict_survival", X, source, times)
    with_time = result[~np.isnan(result)]
    if result.shape != (len(X), len(times)) or not ((with_time >= 0) & (with_time <= 1)).all():
        raise _malformed(side, f"gives for rows of {source} numbers that are no probabilities")
    return result


def _probabilities(project: Project, side: Side, X: FloatArray, source: Path) -> NDArray[Any]:
    result = _applied(side, "predict_proba", X, source)
    assert side.classes is not None
    expected = len(X), len(side.classes)
    if result.shape != expected or not ((result >= -_ROUNDING) & (result <= 1 + _ROUNDING)).all():
        raise _malformed(side, f"gives for rows of {source} numbers that are no probabilities")
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


def check_output(
    output: Path, source: Path, *, force: bool, what: str = "predictions", column: str = PREDICTION
) -> None:
    """Refuse a place for predictions, or explanations, before any work is done.

    A file that holds `column` is of the same kind, and is overwritten without being asked.
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


def figures_of(task: Task, target: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    """Return the figures of predictions for a kind of task; None if there are too few rows for one."""
    n_rows = len(target)
    if task.kind == "classification":
        return {"n_rows": n_rows} | _of_classes(task.classes, target, predicted)
    if task.is_single:
        return {"n_rows": n_rows} | _of_numbers(target, predicted)
    try:
        concordance = float(concordance_index(target, predicted)) if n_rows else None
    except NumericalError:  # the order of no pair of rows is known
        concordance = None
    n_events = int(np.count_nonzero(target["event"])) if n_rows else 0
    return {"n_rows": n_rows, "n_events": n_events, "concordance": concordance}


def _of_classes(classes: Sequence[str | int], target: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    """Return accuracy with its Wilson interval, balanced accuracy, and counts, over all classes of the project."""
    counts = Counter(zip(target.tolist(), predicted.tolist(), strict=True))
    confusion = np.array([[counts[true, called] for called in classes] for true in classes])
    per_class, right, n_rows = confusion.sum(axis=1), int(confusion.trace()), len(target)
    there = per_class > 0
    return {
        "accuracy": right / n_rows if n_rows else None,
        "accuracy_interval": wilson(right, n_rows) if n_rows else None,
        "balanced_accuracy": float((confusion.diagonal()[there] / per_class[there]).mean()) if n_rows else None,
        "classes": list(classes),
        "confusion": confusion.tolist(),
    }


def _of_numbers(target: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    """Return root mean squared error and mean absolute error with Student's intervals, and R2."""
    error = predicted - target
    absolute, squares = np.abs(error), error**2
    interval, n_rows = _interval(squares), len(target)
    scatter = float(((target - target.mean()) ** 2).sum()) if n_rows else 0.0
    return {
        "rmse": float(np.sqrt(squares.mean())) if n_rows else None,
        "rmse_interval": None if interval is None else [float(np.sqrt(max(end, 0.0))) for end in interval],
        "mae": float(absolute.mean()) if n_rows else None,
        "mae_interval": _interval(absolute),
        "r2": 1 - n_rows * float(squares.mean()) / scatter if scatter > 0 else None,
    }


def _interval(values: FloatArray) -> list[float] | None:
    """Return Student's interval of the mean."""
    n, mean = len(values), float(values.mean()) if len(values) else 0.0
    if n < 2:
        return None
    scatter = float(((values - mean) ** 2).sum())
    half = stats.t.ppf((1 + _LEVEL) / 2, n - 1) * np.sqrt(scatter / (n - 1) / n)
    return [float(mean - half), float(mean + half)]


def wilson(right: int, n: int) -> list[float]:
    """Return Wilson's interval of a proportion."""
    z = float(special.ndtri((1 + _LEVEL) / 2))
    centre = (right + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(right * (n - right) / n + z**2 / 4)
    # At the ends rounding would leave the proportion just outside.
    return [float(centre - half) if right else 0.0, float(centre + half) if right < n else 1.0]
