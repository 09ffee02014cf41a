"""Predict a table at home, evaluate predictions against known targets, and explain them: nothing leaves."""

from __future__ import annotations

import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..._notices import notices_to
from ..._require import require
from ..._threads import one_thread
from ..._typing import FloatArray
from ...agreement import Project, Task
from ...bundle import write_atomically
from ...errors import AgreementError, DataCollabError, ExchangeError, NumericalError, ObfuscationError
from ...linalg import entropy, log_losses, mean_with_interval, ranking_figures, wilson
from ...model import PartyModel
from ...survival import concordance_index
from ...table import Adjustments, encode_table, read_table, table_batches, table_format, write_table
from ..steps import leading_figure
from ._folder import Folder, check_shares_rows, record
from ._install import Side, agreed_times, are_targets, at_home

PREDICTION, FLAGGED = "prediction", "flagged"
FIND = 0.8
"""Share of the sought class's rows that a threshold is to find."""
BATCH_ROWS = 16_384
_ROUNDING = 1e-6
_LEVEL = 0.95


def predict_batches(
    folder: Folder,
    source: Path,
    *,
    using: str | None = None,
    flag_from: float | None = None,
    keep: Sequence[str] = (),
    batch_rows: int = BATCH_ROWS,
    tell: Callable[[Adjustments], None] = lambda adjusted: None,
) -> Iterator[Any]:
    """Predict a table of any length at home, a batch of rows at a time, in data frames with the column "prediction".

    Probabilities follow in columns "proba_CLASS", if the model has them.  For times to an event the prediction is the
    log risk, and columns "survival_TIME" follow: the probability of no event up to quarters of the longest time, empty
    beyond the end of the observation.

    Parameters
    ----------
    source : Path
        CSV, Excel, Parquet or Arrow; it needs no target.
    using : {"combined", "local", "own", "collaboration", "distilled"}, optional
        The side that predicts; by default the combined one, or the collaboration's if nothing was combined.  "local"
        are the party's own models with the public rows it has, "own" without them.
    flag_from : float, optional
        Of two classes, the probability of the sought one from which on rows are flagged, in a column "flagged".
    keep : sequence of str, default=()
        Columns of the table to be put in front, such as an identifier.
    batch_rows : int, default=16384
    tell : callable, optional
        Called after the last batch with the counts of entries that the project's rules changed.

    Raises
    ------
    ExchangeError
        NOT_SHARED, NOT_INSTALLED, NOT_POOLED, WRONG_SHARE, or of the kind "schema".
    """
    side, project, source = at_home(folder).side(using), folder.project, Path(source)
    if flag_from is not None and project.task.positive is None:
        raise ValueError(f"flag_from is for two classes, and the project has {project.task.words}. Leave it out.")
    names = [] if side.classes is None else [f"proba_{name}" for name in side.classes]
    if project.task.kind == "survival":
        names = [f"survival_{time:.10g}" for time in agreed_times(project)]
    flagged = [] if flag_from is None else [FLAGGED]
    check_written_once(source, keep, {PREDICTION, *names, *flagged})

    def frames() -> Iterator[Any]:
        pandas = require("pandas", "cli")
        adjusted = Adjustments()
        for table in table_batches(source, batch_rows=batch_rows, schema=project):
            check_kept(source, keep, table.columns)
            encoded = encode_table(project, table, where=str(source), with_target=False, before=adjusted)
            adjusted = encoded.adjusted
            columns = {name: table[name].array for name in keep}
            if not encoded.n_rows:
                columns |= dict.fromkeys([PREDICTION, *names, *flagged], ())
            else:
                columns[PREDICTION] = _predicted(project, side, encoded.X, source)
                if names:
                    find = _survival if project.task.kind == "survival" else _probabilities
                    columns |= dict(zip(names, find(project, side, encoded.X, source).T, strict=True))
                for name in flagged:
                    # In the single precision that the threshold was found in.
                    # A model that does not know the sought class gives it no probability.
                    likely = columns.get(f"proba_{project.task.positive}", np.zeros(encoded.n_rows))
                    columns[name] = likely.astype(np.float32) >= np.float32(flag_from)
            frame = pandas.DataFrame(columns)
            frame.attrs = table.attrs  # with semicolons if the table has them
            yield frame
        tell(adjusted)

    return frames()


def predict(
    folder: Folder,
    source: Path,
    output: Path,
    *,
    using: str | None = None,
    flag_from: float | None = None,
    keep: Sequence[str] = (),
    force: bool = False,
    batch_rows: int = BATCH_ROWS,
    tell: Callable[[Adjustments], None] = lambda adjusted: None,
    look: Callable[[Any], None] = lambda frame: None,
) -> int:
    """Predict a table of any length at home, into a file that is closed to others, and return the number of rows.

    The output is CSV, Excel, Parquet or Arrow, by its name.  Predictions that are there already are replaced, and
    another file with `force` alone; ALREADY_THERE otherwise.  `look` is called with the predictions of each batch; all
    else is as in `predict_batches`.
    """
    check_output(Path(output), Path(source), folder.project, force=force)
    batches = predict_batches(
        folder, source, using=using, flag_from=flag_from, keep=keep, batch_rows=batch_rows, tell=tell
    )

    def seen() -> Iterator[Any]:
        for frame in batches:
            look(frame)
            yield frame

    n_rows = write_table(Path(output), seen(), mode=0o600)
    record(folder, "predict", file=Path(source).name, n_rows=n_rows)
    return n_rows


def threshold(folder: Folder, tested: Path, *, using: str | None = None, find: float = FIND) -> dict[str, Any]:
    """Choose, on rows that the model has not seen, the probability from which on rows may be flagged.

    Options are as in `evaluate`; `tested` is a table with known targets.  Return "positive", the sought one of two
    classes, and what `linalg.ranking_figures` says of its "threshold".  An AgreementError is raised if there are no
    probabilities of two classes, or not both among the rows.
    """
    ranking = evaluate(folder, tested, using=using, find=find).get("ranking")
    if ranking is None or ranking["threshold"] is None:
        raise AgreementError(
            f"{tested}: a threshold needs a model with probabilities of two classes, and rows of both. Take more rows "
            "with known targets, or leave out --tested."
        )
    return {"positive": ranking["positive"], **ranking["threshold"]}


def evaluate(
    folder: Folder, source: Path, *, using: str | None = None, find: float = FIND, batch_rows: int = BATCH_ROWS
) -> dict[str, Any]:
    """Evaluate predictions against the targets of a table.  Runs locally.

    The figures of the side `using` come first; it is as in `predict_batches`.  Of two classes, `find` is the share of
    the sought one's new rows that a threshold is to find, above 0 and at most 1.

    Returns
    -------
    dict of str to object
        "n_rows", "task", and "adjusted", the counts of entries that rules changed.  Intervals are of 95 %.
        "using" names the side, and "sides" has the same figures of all sides.

        * For a classification "accuracy", "accuracy_interval" (Wilson), "balanced_accuracy", "classes" and
          "confusion", a row for each true class.  With probabilities "log_loss" and its interval.  "accuracy_baseline"
          and "log_loss_baseline" are those of always answering the most frequent class, and the classes' shares.
        * For a regression "rmse", "rmse_baseline" of always answering the mean, "mae", "r2", and "median_error" with
          the interval of the sign test.
        * For a survival "concordance" and "n_events".
        * With probabilities of two classes "ranking" of "positive", the sought one; see `linalg.ranking_figures`.
    """
    if not 0 < find <= 1:
        raise ValueError(f"find must be above 0 and at most 1; got {find}.")
    if folder.project.task.kind == "none":
        raise AgreementError(f"Project {folder.project.name!r} has no targets to compare predictions with.")
    home, project, source = at_home(folder), folder.project, Path(source)
    home.side(using)
    sides = home.sides
    task, adjusted = project.task, Adjustments()
    ranked = [name for name, side in sides.items() if side.classes is not None and task.positive is not None]
    place = {name: number for number, name in enumerate(task.classes)}
    targets: list[NDArray[Any]] = []
    predicted: dict[str, list[NDArray[Any]]] = {name: [] for name in sides}
    # Probabilities of the true class, and of the sought one of two; in single precision, since tables may be long.
    of_true: dict[str, list[NDArray[Any]]] = {name: [] for name, side in sides.items() if side.classes is not None}
    likely: dict[str, list[NDArray[Any]]] = {name: [] for name in ranked}
    for table in table_batches(source, batch_rows=batch_rows, schema=project):
        encoded = encode_table(project, table, where=str(source), before=adjusted)
        adjusted = encoded.adjusted
        assert encoded.target is not None
        if not encoded.n_rows:
            continue
        targets.append(encoded.target)
        for name, side in sides.items():
            predicted[name].append(_predicted(project, side, encoded.X, source))
            if side.classes is None or task.kind != "classification":
                continue
            probabilities = _probabilities(project, side, encoded.X, source)
            # One column for each class of the project; zeros for one that the model does not know.
            known = np.zeros((encoded.n_rows, len(task.classes)), dtype=np.float32)
            known[:, [place[each] for each in np.asarray(side.classes).tolist()]] = probabilities
            true = [place[each] for each in encoded.target.tolist()]
            of_true[name].append(known[np.arange(encoded.n_rows), true])
            if name in ranked:
                assert task.positive is not None
                likely[name].append(known[:, place[task.positive]])
    said = {"task": task.kind, "target": task.target or task.words, "unit": task.unit}
    target = _together(targets)
    scores = {}
    for name in sides:
        scores[name] = {**said, **figures_of(task, target, _together(predicted[name])), "adjusted": adjusted.to_dict()}
        if of_true.get(name):
            losses = log_losses(_together(of_true[name]))
            scores[name]["log_loss"], scores[name]["log_loss_interval"] = mean_with_interval(losses)
        if name in ranked:
            is_positive = np.asarray(target == task.positive, dtype=bool)
            figures = ranking_figures(is_positive, _together(likely[name]), find)
            scores[name]["ranking"] = {"positive": task.positive, **figures}
    chosen = using or next(iter(sides))
    first = scores[chosen]
    found, name, _ = leading_figure(first)
    record(folder, "evaluate", file=source.name, n_rows=first["n_rows"], using=chosen, **{name: found[name]})
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


def _together(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0)


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
    output: Path, source: Path, project: Project, *, force: bool, what: str = "predictions", column: str = PREDICTION
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
        "log_loss_baseline": entropy(per_class) if n_rows else None,
        "accuracy": right / n_rows if n_rows else None,
        "accuracy_baseline": int(per_class.max()) / n_rows if n_rows else None,
        "accuracy_interval": list(wilson(right / n_rows, n_rows)) if n_rows else None,
        "balanced_accuracy": float((confusion.diagonal()[there] / per_class[there]).mean()) if n_rows else None,
        "classes": list(classes),
        "confusion": confusion.tolist(),
    }


def _of_numbers(target: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    """Return mean errors without intervals, the median error with one that holds for any errors, and R2.

    No interval of a mean holds where few large errors make most of it, and a sample may lack just these.
    """
    error, n_rows = np.sort(np.abs(predicted - target)), len(target)
    scatter = float(((target - target.mean()) ** 2).sum()) if n_rows else 0.0
    return {
        "rmse": float(np.sqrt((error**2).mean())) if n_rows else None,
        "rmse_baseline": float(target.std()) if n_rows else None,
        "mae": float(error.mean()) if n_rows else None,
        "median_error": float(np.median(error)) if n_rows else None,
        "median_error_interval": _median_interval(error),
        "r2": 1 - float((error**2).sum()) / scatter if scatter > 0 else None,
    }


def _median_interval(ascending: FloatArray) -> list[float] | None:
    """Return the interval of the median by the sign test: two of the values; None if so few values give none."""
    n = len(ascending)
    below = int(stats.binom.ppf((1 - _LEVEL) / 2, n, 0.5)) if n else 0
    return [float(ascending[below - 1]), float(ascending[n - below])] if below else None


ROW, OUTPUT, BASE, ANSWER = "row", "class", "base_value", "answer"
FIGURES = (".png", ".pdf", ".svg")
MOST_EXACT = 10
"""Columns up to which all coalitions are taken; of more, random orders and their reverses."""
_N_ORDERS = 10
_BATCH = 8_192
"""Masked rows that are predicted together."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explained:
    """Shapley values of rows of a table, in the project's columns; of a table's `rows`, counted from 1.

    `explanation` is a ``shap.Explanation`` of the project's columns, in which a category counts as one.  Values have
    the shape (n_rows, n_columns), or (n_rows, n_columns, n_outputs) if classes have names.  `exact` says whether all
    coalitions were taken, rather than random orders, and `model` is the kind of h.
    """

    explanation: Any
    rows: NDArray[np.intp]
    n_rows: int
    model: str
    exact: bool
    adjusted: dict[str, Any]

    def importance(self) -> dict[str, float]:
        """Return the mean absolute value of each column over rows and outputs, largest first."""
        values, names = self.explanation.values, self.explanation.feature_names
        means = np.abs(values).reshape(*values.shape[:2], -1).mean(axis=(0, 2))
        return {names[place]: float(means[place]) for place in np.argsort(-means, kind="stable")}

    def frame(self, kept: Any) -> Any:
        """Return a data frame with a line for each explained row, or row and class, beside the columns `kept`."""
        pandas, found = require("pandas", "cli"), self.explanation
        names = contribution_names(found.feature_names)
        outputs = found.output_names
        parts = []
        for place, name in enumerate([None] if outputs is None else outputs):
            one = found if name is None else found[:, :, place]
            values, base = one.values, one.base_values
            columns = {ROW: self.rows} | {each: kept[each].array for each in kept.columns}
            columns |= {} if name is None else {OUTPUT: [name] * len(values)}
            columns |= {BASE: base, ANSWER: base + values.sum(axis=1)}
            parts.append(pandas.DataFrame(columns | dict(zip(names, values.T, strict=True))))
        return pandas.concat(parts, ignore_index=True).sort_values(ROW, kind="stable", ignore_index=True)

    def save_figure(self, path: Path) -> None:
        """Draw the most important columns into a file that is closed to others; it shows private entries."""
        shap, found = _shap(), self.explanation
        axes = require("matplotlib.figure", "plots").Figure(figsize=(7.5, 5.0), layout="constrained").subplots()
        one = found if found.output_names is None else found[:, :, 0]  # A figure is of one class.
        shap.plots.beeswarm(one, ax=axes, show=False, plot_size=None)
        drawn = io.BytesIO()
        axes.figure.savefig(drawn, format=path.suffix.lower()[1:], dpi=144)
        write_atomically(path, drawn.getvalue(), mode=0o600)


@one_thread
def explain(
    folder: Folder,
    source: Path,
    output: Path,
    *,
    of_class: str | None = None,
    most_rows: int = 100,
    keep: Sequence[str] = (),
    log_odds: bool = False,
    n_background: int = 100,
    figure: Path | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] = lambda done, n_rows: None,
) -> Explained:
    """Write what each column adds to the model's outputs for rows of a table, into a file closed to others.

    The model is the collaboration's, h(g_k(f_k(x))), without the party's own models.  Masked columns are taken from the
    anchor, which is the same at every party.  Needs the package shap: ``pip install 'datacollab[shap]'``.

    Parameters
    ----------
    source, output : Path
        CSV, Excel, Parquet or Arrow.  The output has the columns "row" (its position, from 1), those of `keep`, "class"
        if the model gives probabilities, "base_value" (the mean output over the anchor), "answer", and
        "contribution_NAME" of each column of the project; these and the base value add up to the answer.
    of_class : str, optional
        Class whose probability is explained; by default the sought one of two, and otherwise all.
    most_rows, n_background : int, default=100
        So many rows of a longer table are explained, and so many of the anchor taken, evenly spaced.
    keep : sequence of str, default=()
        Columns of the table to be put beside the position, such as an identifier.
    log_odds : bool, default=False
        Whether log odds are explained in place of probabilities.
    figure : Path, optional
        PNG, PDF or SVG, by its name, of the most important columns; it shows entries by colours.
    force : bool, default=False
        Whether files that hold something else may be replaced.
    progress : callable, optional
        Called with the number of rows that are done, and of all, after each.

    Raises
    ------
    ExchangeError
        NOT_SHARED, NOT_INSTALLED, WRONG_SHARE, ALREADY_THERE, MODEL_MALFORMED, or of the kind "schema".
    AgreementError
        If outputs of the model are no numbers to be explained, or the table has no rows.
    NumericalError
        If a probability is 0 or 1, whose log odds are infinite.
    MissingExtraError, ValueError, FileNotFoundError
        If shap is not installed, a parameter is out of its range, or there is no folder for a file.
    """
    check_shares_rows(folder.project)
    source, output = Path(source), Path(output)
    for name, value in (("most_rows", most_rows), ("n_background", n_background)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1; got {value!r}.")
    table_format(output)
    check_output(output, source, folder.project, force=force, what="explanations", column=BASE)
    if figure is not None:
        check_figure(Path(figure), (source, output), force=force)
    home = at_home(folder)
    side = home.side("collaboration")
    assert home.party is not None
    assert isinstance(home.model, PartyModel)
    classes = _classes(side, of_class, log_odds, figure, folder.project.task)
    _shap()
    table = read_table(source, schema=folder.project)
    check_kept(source, keep, table.columns)
    names = [column.name for column in folder.project.columns]
    check_written_once(source, keep, {ROW, OUTPUT, BASE, ANSWER, *contribution_names(names)})
    encoded = encode_table(folder.project, table, where=str(source), with_target=False)
    if not encoded.n_rows:
        raise AgreementError(f"{source} has no rows to explain.")
    chosen = _evenly(encoded.n_rows, most_rows)
    groups = [places.tolist() for _, places in folder.project.blocks(np.arange(folder.project.n_features))]
    anchor = folder.anchor.rows
    predictor = home.party.predictor(home.model)
    answer = predictor.log_odds if log_odds else predictor
    try:
        explanation = shapley_values(
            answer if classes is None else lambda X: answer(X)[:, [place for place, _ in classes]],
            encoded.X[chosen],
            anchor[_evenly(len(anchor), n_background)],
            groups=groups,
            progress=progress,
        )
    except DataCollabError:
        raise
    # A model that was tampered with may fail in any way, and with words that quote the rows.
    except Exception as error:
        raise _malformed(side, f"fails on rows of {source} and the anchor ({type(error).__name__})") from None
    # In figures a category is its place among the project's.
    blocks = folder.project.blocks(encoded.X[chosen])
    explanation.data = np.column_stack(
        [block[:, 0] if column.kind == "number" else block.argmax(1) for column, block in blocks]
    )
    explanation.feature_names = names
    if classes is not None:
        explanation.values = explanation.values.reshape(len(chosen), len(names), len(classes))
        explanation.base_values = explanation.base_values.reshape(len(chosen), len(classes))
        explanation.output_names = [name for _, name in classes]
    result = Explained(
        explanation=explanation,
        rows=chosen + 1,
        n_rows=encoded.n_rows,
        model=side.name,
        exact=len(names) <= MOST_EXACT,
        adjusted=encoded.adjusted.to_dict(),
    )
    write_table(output, [result.frame(table.iloc[chosen][list(keep)])], mode=0o600)
    if figure is not None:
        result.save_figure(Path(figure))
    record(folder, "explain", file=source.name, n_rows=len(chosen))
    return result


def shapley_values(
    answer: Callable[[FloatArray], FloatArray],
    rows: FloatArray,
    background: FloatArray,
    *,
    groups: Sequence[Sequence[int]],
    progress: Callable[[int, int], None] = lambda done, n_rows: None,
) -> Any:
    """Compute Shapley values of groups of columns by shap [Lundberg2017], as an Explanation without names and data."""
    shap = _shap()
    n_background, n_columns = background.shape
    group_of = np.empty(n_columns, dtype=np.intp)
    for number, columns in enumerate(groups):
        group_of[list(columns)] = number
    # shap masks one number for each group: which row its columns come from.  So a group is one player, and nothing is
    # lost where shap takes entries that are nearly the same for the same.
    sources = np.repeat(np.arange(n_background, dtype=np.float64)[:, None], len(groups), axis=1)
    masker = shap.maskers.Independent(sources, max_samples=n_background)
    own, places, found = np.full((1, len(groups)), float(n_background)), np.arange(n_columns), []
    # shap draws its orders from numpy's global generator.
    state = np.random.get_state()  # noqa: NPY002
    try:
        for row in rows:
            stacked = np.vstack([background, row])

            def masked(numbers: FloatArray, stacked: FloatArray = stacked) -> FloatArray:
                rows_of = numbers.astype(np.intp)[:, group_of]
                blocks = range(0, len(rows_of), _BATCH)
                return np.concatenate([answer(stacked[rows_of[each : each + _BATCH], places]) for each in blocks])

            if len(groups) <= MOST_EXACT:
                one = shap.explainers.Exact(masked, masker)(own, silent=True)
            else:
                n_answers = _N_ORDERS * (2 * len(groups) + 1)
                one = shap.explainers.Permutation(masked, masker, seed=0)(own, max_evals=n_answers, silent=True)
            found.append(one)
            progress(len(found), len(rows))
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return shap.Explanation(
        np.concatenate([each.values for each in found]),
        base_values=np.concatenate([each.base_values for each in found]),
    )


def _shap() -> Any:
    with warnings.catch_warnings():
        # It sets up its colours in a way that matplotlib will deprecate.
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return require("shap", "shap")


def contribution_names(columns: Sequence[str]) -> list[str]:
    """Return the names of the project's columns in the table of contributions."""
    return [f"contribution_{name}" for name in columns]


def check_figure(figure: Path, others: Sequence[Path], *, force: bool) -> None:
    """Refuse a place for a figure, or a machine that draws none, before any work is done."""
    require("matplotlib.figure", "plots")
    if figure.suffix.lower() not in FIGURES:
        raise ValueError(f"A figure ends in one of {', '.join(FIGURES)}; got {figure.name!r}.")
    if not figure.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {figure.parent} for {figure.name}. Make it first.")
    if figure.resolve() in [other.resolve() for other in others]:
        raise ValueError(f"{figure} is the table, or the file of contributions; name another file for the figure.")
    if figure.exists() and not force:
        raise ExchangeError("ALREADY_THERE", f"{figure} exists. Name another file, or overwrite it with --force.")


def _classes(
    side: Side, of_class: str | None, log_odds: bool, figure: Path | None, task: Task
) -> list[tuple[int, str]] | None:
    """Return positions and names of the classes to be explained, or raise if the model has no such outputs."""
    if side.classes is None:
        if of_class is not None or log_odds:
            raise ValueError(f"The model {side.name} gives no probabilities. Leave out the class and log odds.")
        if task.kind in ("classification", "none"):
            raise AgreementError(
                f"The model {side.name} names classes without probabilities, which cannot be added. Ask the analyst "
                "for a model that has them."
            )
        return None
    names = [str(each) for each in side.classes]
    if of_class is not None and of_class not in names:
        raise ValueError(f"The model knows the classes {', '.join(names)}; got {of_class!r}.")
    # Of two classes one is enough, as the other's values are its negatives.
    which = str(task.positive) if of_class is None and str(task.positive) in names else of_class
    if figure is not None and which is None:
        raise ValueError(f"A figure is of one class: name one of {', '.join(names)}.")
    return [(place, name) for place, name in enumerate(names) if which in (None, name)]


def _evenly(n_rows: int, at_most: int) -> NDArray[np.intp]:
    return np.linspace(0, n_rows - 1, min(at_most, n_rows)).round().astype(np.intp)
