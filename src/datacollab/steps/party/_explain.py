"""Explain predictions at home: how much each column adds to the answer for a row, by Shapley values."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._require import require
from ..._threads import one_thread
from ..._typing import FloatArray
from ...agreement import Project, Task
from ...bundle import write_atomically
from ...errors import AgreementError, DataCollabError, ExchangeError
from ...folder.party import MappedModel, PartyWay, record
from ...table import Keeping, encode_table, read_table, table_file, table_format, take_kept, write_table
from ._predict import check_kept, check_output, check_written_once, model_error

ROW = "row"
OUTPUT = "class"
BASE = "base_value"
ANSWER = "answer"
FIGURES = (".png", ".pdf", ".svg")
MOST_EXACT = 10
"""Columns up to which all coalitions are taken; of more, random orders and their reverses."""
_N_ORDERS = 10
_BATCH = 8_192
"""Masked rows that are predicted together."""


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """Options of `PartyFolder.explain`."""

    of_class: str | None = None
    most_rows: int = 100
    keep: Sequence[str] = ()
    log_odds: bool = False
    n_background: int = 100
    figure: Path | None = None
    force: bool = False

    def __post_init__(self) -> None:
        for name in ("most_rows", "n_background"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name} must be at least 1; got {value!r}.")


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
        values = self.explanation.values
        names = self.explanation.feature_names
        means = np.abs(values).reshape(*values.shape[:2], -1).mean(axis=(0, 2))
        return {names[place]: float(means[place]) for place in np.argsort(-means, kind="stable")}

    def frame(self, kept: Any) -> Any:
        """Return a data frame with a line for each explained row, or row and class, beside the columns `kept`."""
        pandas = require("pandas", "cli")
        names = contribution_names(self.explanation.feature_names)
        parts = []
        for output, one in self._outputs():
            columns = {ROW: self.rows} | {each: kept[each].array for each in kept.columns}
            if output is not None:
                columns[OUTPUT] = [output] * len(self.rows)
            columns |= {BASE: one.base_values, ANSWER: one.base_values + one.values.sum(axis=1)}
            parts.append(pandas.DataFrame(columns | dict(zip(names, one.values.T, strict=True))))
        return pandas.concat(parts, ignore_index=True).sort_values(ROW, kind="stable", ignore_index=True)

    def _outputs(self) -> list[tuple[str | None, Any]]:
        """Return the explanation of each output by its name; a model without classes has one without a name."""
        explanation = self.explanation
        if explanation.output_names is None:
            return [(None, explanation)]
        return [(name, explanation[:, :, place]) for place, name in enumerate(explanation.output_names)]

    def save_figure(self, path: Path) -> None:
        """Draw the most important columns into a file that is closed to others; it shows private entries."""
        shap = _shap()
        axes = require("matplotlib.figure", "plots").Figure(figsize=(7.5, 5.0), layout="constrained").subplots()
        _, one = self._outputs()[0]  # A figure is of one class.
        shap.plots.beeswarm(one, ax=axes, show=False, plot_size=None)
        drawn = io.BytesIO()
        axes.figure.savefig(drawn, format=path.suffix.lower()[1:], dpi=144)
        write_atomically(path, drawn.getvalue(), mode=0o600)


@one_thread
def explain(
    way: PartyWay, source: Any, output: Path, options: ExplainOptions, progress: Callable[[int, int], None]
) -> Explained:
    """Explain rows of a table, and write contributions and figure; see `PartyFolder.explain`."""
    project = way.folder.project
    way.check_explains()
    # All that can be refused is refused before any work is done.
    table_format(output)
    check_output(output, source, project, force=options.force, what="explanations", column=BASE)
    figure = options.figure and Path(options.figure)
    if figure is not None:
        check_figure(figure, [each for each in (table_file(source), output) if each], force=options.force)
    home = way.at_home()
    side = home.side("collaboration")
    classes = choose_classes(side, options, project.task)
    _shap()
    table = read_table(source, schema=Keeping(columns=project.columns, kept=options.keep, schema=project))
    check_kept(source, options.keep, table.columns)
    kept = require("pandas", "cli").DataFrame(take_kept(table, options.keep), index=table.index)
    names = [column.name for column in project.columns]
    check_written_once(source, options.keep, {ROW, OUTPUT, BASE, ANSWER, *contribution_names(names)})
    encoded = encode_table(project, table, where=str(source), with_target=False)
    if not encoded.n_rows:
        raise AgreementError(f"{source} has no rows to explain.")
    chosen = _evenly(encoded.n_rows, options.most_rows)
    groups = [columns.tolist() for _, columns in project.blocks(np.arange(project.n_features))]
    anchor = way.folder.anchor.rows
    predictor = home.party.predictor(home.model)
    answer: Callable[[FloatArray], FloatArray] = predictor
    if options.log_odds:
        answer = predictor.log_odds
    try:
        explanation = shapley_values(
            _only_of(answer, classes),
            encoded.X[chosen],
            anchor[_evenly(len(anchor), options.n_background)],
            groups=groups,
            progress=progress,
        )
    except DataCollabError:
        raise
    # A model that was tampered with may fail in any way, and with words that quote the rows.
    except Exception as error:
        raise model_error(side, f"fails on rows of {source} and the anchor ({type(error).__name__})") from None
    _name_outputs(explanation, project, encoded.X[chosen], classes)
    result = Explained(
        explanation=explanation,
        rows=chosen + 1,
        n_rows=encoded.n_rows,
        model=side.name,
        exact=len(names) <= MOST_EXACT,
        adjusted=encoded.adjusted.to_dict(),
    )
    frame = result.frame(kept.iloc[chosen])
    frame.attrs["kept"] = options.keep
    write_table(output, [frame], mode=0o600)
    if figure is not None:
        result.save_figure(figure)
    record(way.folder, "explain", file=source.name, n_rows=len(chosen))
    return result


def _only_of(
    answer: Callable[[FloatArray], FloatArray], classes: Sequence[tuple[int, str]] | None
) -> Callable[[FloatArray], FloatArray]:
    """Return a function of rows that gives the outputs of these classes alone."""
    if classes is None:
        return answer
    places = [place for place, _ in classes]
    return lambda X: answer(X)[:, places]


def _name_outputs(explanation: Any, project: Project, X: FloatArray, classes: Sequence[tuple[int, str]] | None) -> None:
    """Give an explanation the names of columns and classes, and the entries that its figure shows."""
    entries = []
    for column, block in project.blocks(X):
        # In figures a category is its place among the project's.
        entries.append(block[:, 0] if column.kind == "number" else block.argmax(1))
    explanation.data = np.column_stack(entries)
    explanation.feature_names = [column.name for column in project.columns]
    if classes is not None:
        explanation.values = explanation.values.reshape(len(X), len(entries), len(classes))
        explanation.base_values = explanation.base_values.reshape(len(X), len(classes))
        explanation.output_names = [name for _, name in classes]


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
    own = np.full((1, len(groups)), float(n_background))
    places = np.arange(n_columns)
    explained = []
    # shap draws its orders from numpy's global generator.
    state = np.random.get_state()  # noqa: NPY002
    try:
        for row in rows:
            stacked = np.vstack([background, row])

            def answer_masked(numbers: FloatArray, stacked: FloatArray = stacked) -> FloatArray:
                rows_of = numbers.astype(np.intp)[:, group_of]
                blocks = range(0, len(rows_of), _BATCH)
                return np.concatenate([answer(stacked[rows_of[each : each + _BATCH], places]) for each in blocks])

            # All coalitions are 2**n_groups: 1,024 for ten of them.
            if len(groups) <= MOST_EXACT:
                one = shap.explainers.Exact(answer_masked, masker)(own, silent=True)
            else:
                n_answers = _N_ORDERS * (2 * len(groups) + 1)
                one = shap.explainers.Permutation(answer_masked, masker, seed=0)(own, max_evals=n_answers, silent=True)
            explained.append(one)
            progress(len(explained), len(rows))
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return shap.Explanation(
        np.concatenate([each.values for each in explained]),
        base_values=np.concatenate([each.base_values for each in explained]),
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


def choose_classes(side: MappedModel, options: ExplainOptions, task: Task) -> list[tuple[int, str]] | None:
    """Return positions and names of the classes to be explained, or raise if the model has no such outputs."""
    of_class = options.of_class
    if side.classes is None:
        if of_class is not None or options.log_odds:
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
    if of_class is None and str(task.positive) in names:
        of_class = str(task.positive)
    if options.figure is not None and of_class is None:
        raise ValueError(f"A figure is of one class: name one of {', '.join(names)}.")
    return [(place, name) for place, name in enumerate(names) if of_class in (None, name)]


def _evenly(n_rows: int, at_most: int) -> NDArray[np.intp]:
    """Return positions of rows, evenly spaced: the same at each call, unlike rows drawn by chance."""
    return np.linspace(0, n_rows - 1, min(at_most, n_rows)).round().astype(np.intp)
