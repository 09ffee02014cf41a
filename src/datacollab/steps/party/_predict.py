"""Predict a table at home, and evaluate predictions against known targets: nothing leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ..._notices import notices_to
from ..._require import require
from ..._typing import FloatArray
from ...agreement import Project, Task
from ...errors import AgreementError, DataCollabError, ExchangeError, NumericalError, ObfuscationError
from ...folder.party import MappedModel, PartyWay, are_targets, list_times, record
from ...folder.step_table import leading_figure
from ...linalg import entropy, log_losses, mean_with_interval, ranking_figures, wilson
from ...table import Adjustments, Keeping, encode_table, is_same_file, table_batches, take_kept

PREDICTION = "prediction"
FLAGGED = "flagged"
FIND = 0.8
"""Share of the sought class's rows that a threshold is to find."""
BATCH_ROWS = 16_384
_ROUNDING = 1e-6
"""Probabilities may lie so far outside of 0 to 1."""
_LEVEL = 0.95


def predict_batches(
    way: PartyWay,
    source: Any,
    using: str | None,
    flag_from: float | None,
    keep: Sequence[str],
    batch_rows: int,
    tell: Callable[[Adjustments], None],
) -> Iterator[Any]:
    """Check the options, and return data frames of predictions; see `PartyFolder.predict_batches`."""
    side = way.at_home().side(using)
    project = way.folder.project
    if flag_from is not None and project.task.positive is None:
        raise ValueError(f"flag_from is for two classes, and the project has {project.task.words}. Leave it out.")
    names = _names_of_probabilities(project, side)
    columns = [PREDICTION, *names]
    if flag_from is not None:
        columns.append(FLAGGED)
    check_written_once(source, keep, set(columns))

    # A generator inside, so that what is wrong with the options is said at once, and not with the first batch.
    def frames() -> Iterator[Any]:
        pandas = require("pandas", "cli")
        adjusted = Adjustments()
        schema = Keeping(columns=project.columns, schema=project, kept=keep)
        for table in table_batches(source, batch_rows=batch_rows, schema=schema):
            check_kept(source, keep, table.columns)
            kept = {name: column.array for name, column in take_kept(table, keep).items()}
            encoded = encode_table(project, table, where=str(source), with_target=False, before=adjusted)
            adjusted = encoded.adjusted
            predicted: dict[str, Any] = dict.fromkeys(columns, ())
            if encoded.n_rows:
                predicted = _predict_columns(project, side, encoded.X, source, names, flag_from)
            frame = pandas.DataFrame(kept | predicted)
            # With semicolons if the table has them.
            frame.attrs = {**table.attrs, "kept": keep}
            yield frame
        tell(adjusted)

    return frames()


def _names_of_probabilities(project: Project, side: MappedModel) -> list[str]:
    if project.task.kind == "survival":
        return [f"survival_{time:.10g}" for time in list_times(project)]
    if side.classes is None:
        return []
    return [f"proba_{name}" for name in side.classes]


def _predict_columns(
    project: Project, side: MappedModel, X: FloatArray, source: Any, names: Sequence[str], flag_from: float | None
) -> dict[str, Any]:
    """Return the columns of a batch: predictions, probabilities by name, and flags."""
    columns: dict[str, Any] = {PREDICTION: _predict_targets(project, side, X, source)}
    if project.task.kind == "survival":
        columns |= dict(zip(names, _predict_survival(project, side, X, source).T, strict=True))
    elif names:
        columns |= dict(zip(names, _predict_proba(side, X, source).T, strict=True))
    if flag_from is not None:
        # A model that does not know the sought class gives it no probability.
        likely = columns.get(f"proba_{project.task.positive}", np.zeros(len(X)))
        # In the single precision that the threshold was found in.
        columns[FLAGGED] = likely.astype(np.float32) >= np.float32(flag_from)
    return columns


class _Tally:
    """Predictions of one side for a table, added batch by batch, and the figures of all of them."""

    def __init__(self, side: MappedModel, project: Project, source: Any) -> None:
        self._side = side
        self._project = project
        self._source = source
        self._is_ranked = side.classes is not None and project.task.positive is not None
        self._place = {name: place for place, name in enumerate(project.task.classes)}
        self._predicted: list[NDArray[Any]] = []
        # Probabilities of the true class, and of the sought one of two; in single precision, since tables may be long.
        self._of_true: list[NDArray[Any]] = []
        self._likely: list[NDArray[Any]] = []

    def add(self, X: FloatArray, target: NDArray[Any]) -> None:
        """Predict a batch of rows."""
        task = self._project.task
        self._predicted.append(_predict_targets(self._project, self._side, X, self._source))
        if self._side.classes is None or task.kind != "classification":
            return
        probabilities = _predict_proba(self._side, X, self._source)
        # One column for each class of the project; zeros for one that the model does not know.
        known = np.zeros((len(X), len(task.classes)), dtype=np.float32)
        known[:, [self._place[each] for each in np.asarray(self._side.classes).tolist()]] = probabilities
        true = [self._place[each] for each in target.tolist()]
        self._of_true.append(known[np.arange(len(X)), true])
        if self._is_ranked:
            assert task.positive is not None
            self._likely.append(known[:, self._place[task.positive]])

    def figures(self, target: NDArray[Any], find: float, adjusted: Adjustments) -> dict[str, Any]:
        """Compare all predictions with the targets of all batches."""
        task = self._project.task
        scores: dict[str, Any] = {"task": task.kind, "target": task.target or task.words, "unit": task.unit}
        scores |= figures_of(task, target, _join(self._predicted)) | {"adjusted": adjusted.to_dict()}
        if self._of_true:
            scores["log_loss"], scores["log_loss_interval"] = mean_with_interval(log_losses(_join(self._of_true)))
        if self._is_ranked:
            is_positive = np.asarray(target == task.positive, dtype=bool)
            ranking = ranking_figures(is_positive, _join(self._likely), find)
            scores["ranking"] = {"positive": task.positive, **ranking}
        return scores


def evaluate(way: PartyWay, source: Any, using: str | None, find: float, batch_rows: int) -> dict[str, Any]:
    """Evaluate predictions of all sides against the targets of a table; see `PartyFolder.evaluate`."""
    if not 0 < find <= 1:
        raise ValueError(f"find must be above 0 and at most 1; got {find}.")
    project = way.folder.project
    if project.task.kind == "none":
        raise AgreementError(f"Project {project.name!r} has no targets to compare predictions with.")
    home = way.at_home()
    home.side(using)  # refuses one that is not there
    tallies = {name: _Tally(side, project, source) for name, side in home.sides.items()}
    targets: list[NDArray[Any]] = []
    adjusted = Adjustments()
    for table in table_batches(source, batch_rows=batch_rows, schema=project):
        encoded = encode_table(project, table, where=str(source), before=adjusted)
        adjusted = encoded.adjusted
        assert encoded.target is not None
        if not encoded.n_rows:
            continue
        targets.append(encoded.target)
        for tally in tallies.values():
            tally.add(encoded.X, encoded.target)
    target = _join(targets)
    scores = {name: tally.figures(target, find, adjusted) for name, tally in tallies.items()}
    chosen = using or next(iter(scores))
    first = scores[chosen]
    holder, name, _ = leading_figure(first)
    record(way.folder, "evaluate", file=source.name, n_rows=first["n_rows"], using=chosen, **{name: holder[name]})
    return first | {"using": chosen, "sides": scores}


def check_kept(source: Any, keep: Sequence[str], columns: Sequence[str]) -> None:
    if missing := [name for name in keep if name not in columns]:
        raise ExchangeError(
            "SCHEMA_MISSING_COLUMN",
            f"{source} has no column {', '.join(map(repr, missing))} to keep. Give the names of columns in the "
            "file's header.",
        )


def check_written_once(source: Any, keep: Sequence[str], others: set[str]) -> None:
    if clashing := sorted(others & set(keep)) or sorted(name for name in keep if keep.count(name) > 1):
        raise ValueError(f"{source}: the columns {clashing} would be written twice. Rename them, or do not keep them.")


def _join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if not parts:
        return np.zeros(0)
    return np.concatenate(parts)


def _predict_targets(project: Project, side: MappedModel, X: FloatArray, source: Any) -> NDArray[Any]:
    """Return a target of the project for each row; a trial with the anchor says nothing of other rows."""
    result = _apply(side, "predict", X, source)
    if result.shape != (len(X),) or not are_targets(result, project):
        raise model_error(
            side, f"predicts for rows of {source} something other than project {project.name!r} has targets"
        )
    return result


def _predict_survival(project: Project, side: MappedModel, X: FloatArray, source: Any) -> NDArray[Any]:
    """Return probabilities of no event up to each agreed time; NaN beyond the observation."""
    times = list_times(project)
    result = _apply(side, "predict_survival", X, source, times)
    with_time = result[~np.isnan(result)]
    if result.shape != (len(X), len(times)) or not ((with_time >= 0) & (with_time <= 1)).all():
        raise model_error(side, f"gives for rows of {source} numbers that are no probabilities")
    return result


def _predict_proba(side: MappedModel, X: FloatArray, source: Any) -> NDArray[Any]:
    """Return a probability for each of the model's classes, shape (n_rows, n_classes)."""
    result = _apply(side, "predict_proba", X, source)
    assert side.classes is not None
    if result.shape != (len(X), len(side.classes)) or not ((result >= -_ROUNDING) & (result <= 1 + _ROUNDING)).all():
        raise model_error(side, f"gives for rows of {source} numbers that are no probabilities")
    return result


def _apply(side: MappedModel, method: str, X: FloatArray, source: Any, *times: Any) -> NDArray[Any]:
    try:
        result: NDArray[Any] = getattr(side, method)(X, *times)
    except ObfuscationError:
        raise
    # A model that was tampered with may fail in any way, and with words that quote the rows.
    except Exception as error:
        raise model_error(side, f"fails on rows of {source} ({type(error).__name__})") from None
    return result


def model_error(side: MappedModel, fault: str) -> ExchangeError:
    return ExchangeError("MODEL_MALFORMED", f"The model {side.name} {fault}. Do not use it, and ask the analyst.")


def check_output(
    output: Path, source: Any, project: Project, *, force: bool, what: str = "predictions", column: str = PREDICTION
) -> None:
    """Refuse a place for predictions, or explanations, before any work is done.

    A file that holds `column` is of the same kind, and is overwritten without being asked.
    """
    if not output.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {output.parent} for {output.name}. Make it first.")
    if not output.exists():
        return
    if is_same_file(output, source):
        raise ValueError(f"{output} is the table itself; write the {what} to another file.")
    is_of_the_kind = False
    with suppress(DataCollabError), notices_to(lambda line, is_plain: None):
        is_of_the_kind = (
            output.is_file() and column in next(table_batches(output, batch_rows=1, schema=project)).columns
        )
    if not (force or is_of_the_kind):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{output} exists and does not hold {what}: it has no column {column!r}. Write to another file, or "
            "overwrite this one with --force.",
        )


def figures_of(task: Task, target: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    """Return the figures of predictions for a kind of task; None if there are too few rows for one."""
    n_rows = len(target)
    if task.kind == "classification":
        return {"n_rows": n_rows} | _of_classes(task.classes, target, predicted)
    if task.is_single:
        return {"n_rows": n_rows} | _of_numbers(target, predicted)
    if not n_rows:
        return {"n_rows": 0, "n_events": 0, "concordance": None}
    # Survival's estimators bring scikit-learn, which predictions by sums do without.
    from ...survival import concordance_index

    try:
        concordance: float | None = float(concordance_index(target, predicted))
    # The order of no pair of rows is known.
    except NumericalError:
        concordance = None
    return {"n_rows": n_rows, "n_events": int(np.count_nonzero(target["event"])), "concordance": concordance}


def _of_classes(classes: Sequence[str | int], target: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    """Return accuracy with its Wilson interval, balanced accuracy, and counts, over all classes of the project."""
    counts = Counter(zip(target.tolist(), predicted.tolist(), strict=True))
    confusion = np.array([[counts[true, called] for called in classes] for true in classes])
    per_class = confusion.sum(axis=1)
    n_right = int(confusion.trace())
    n_rows = len(target)
    names = ("log_loss_baseline", "accuracy", "accuracy_baseline", "accuracy_interval", "balanced_accuracy")
    figures: dict[str, Any] = dict.fromkeys(names)
    if n_rows:
        # Classes that no row has would count as wrong in the mean over classes.
        there = per_class > 0
        figures = {
            "log_loss_baseline": entropy(per_class),
            "accuracy": n_right / n_rows,
            "accuracy_baseline": int(per_class.max()) / n_rows,
            "accuracy_interval": list(wilson(n_right / n_rows, n_rows)),
            "balanced_accuracy": float((confusion.diagonal()[there] / per_class[there]).mean()),
        }
    return figures | {"classes": list(classes), "confusion": confusion.tolist()}


def _of_numbers(target: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    """Return mean errors without intervals, the median error with one that holds for any errors, and R2.

    No interval of a mean holds where few large errors make most of it, and a sample may lack just these.
    """
    if not len(target):
        names = ("rmse", "rmse_baseline", "mae", "median_error", "median_error_interval", "r2")
        return dict.fromkeys(names)
    error = np.sort(np.abs(predicted - target))
    scatter = float(((target - target.mean()) ** 2).sum())
    r2 = None
    # Where all targets are equal there is nothing to explain.
    if scatter > 0:
        r2 = 1 - float((error**2).sum()) / scatter
    return {
        "rmse": float(np.sqrt((error**2).mean())),
        "rmse_baseline": float(target.std()),
        "mae": float(error.mean()),
        "median_error": float(np.median(error)),
        "median_error_interval": _median_interval(error),
        "r2": r2,
    }


def _median_interval(ascending: FloatArray) -> list[float] | None:
    """Return the interval of the median by the sign test: two of the values; None if so few values give none."""
    n = len(ascending)
    below = int(scipy.stats.binom.ppf((1 - _LEVEL) / 2, n, 0.5))
    if below == 0:
        return None
    return [float(ascending[below - 1]), float(ascending[n - below])]
