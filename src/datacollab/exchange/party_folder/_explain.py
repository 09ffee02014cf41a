"""Explain the analyst's model in a party's own columns, by the package shap: nothing leaves."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._require import require
from ..._threads import one_thread
from ..._typing import FloatArray
from ...bundle import write_atomically
from ...errors import AgreementError, DataCollabError, ExchangeError
from ...model import PartyModel
from ..project import Column, Project, encode_table, read_table, table_format, write_table
from ._folder import Folder, check_shares_rows, record
from ._install import Side, at_home
from ._predict import check_kept, check_output, check_written_once

ROW, OUTPUT, BASE, ANSWER = "row", "class", "base_value", "answer"
FIGURES = (".png", ".pdf", ".svg")
MOST_EXACT = 10
"""Columns up to which all coalitions are taken; of more, random orders and their reverses."""
_N_ORDERS = 10
_BATCH = 8_192
"""Masked rows that are predicted together."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explained:
    """Shapley values of rows of a table, in the project's columns.

    Attributes
    ----------
    explanation : shap.Explanation
        Its `feature_names` are the project's columns; a category counts as one.  Values have the shape
        (n_rows, n_columns), or (n_rows, n_columns, n_outputs) if classes have names.
    rows : ndarray of shape (n_explained,)
        Numbers of the explained rows in the table, from 1 on, the header not included.
    n_rows : int
        Of the table.
    model : str
        The kind of h.
    exact : bool
        Whether all coalitions were taken, rather than random orders.
    adjusted : dict
        Counts of entries that the project's rules changed.
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
        """Return a data frame with a line for each explained row, or for each row and class.

        Parameters
        ----------
        kept : DataFrame of n_explained rows
            Columns beside the position of the row, such as an identifier; there may be none.
        """
        pandas, found = require("pandas", "cli"), self.explanation
        names = contribution_names(found.feature_names)
        outputs = found.output_names
        parts = []
        for place, name in enumerate([None] if outputs is None else outputs):
            values, base = (found.values, found.base_values) if name is None else _of(found, place)
            columns = {ROW: self.rows} | {each: kept[each].array for each in kept.columns}
            columns |= {} if name is None else {OUTPUT: [name] * len(values)}
            columns |= {BASE: base, ANSWER: base + values.sum(axis=1)}
            parts.append(pandas.DataFrame(columns | dict(zip(names, values.T, strict=True))))
        return pandas.concat(parts, ignore_index=True).sort_values(ROW, kind="stable", ignore_index=True)

    def save_figure(self, path: Path) -> None:
        """Draw the most important columns into a file that is closed to others; it shows private entries."""
        shap, found = _shap(), self.explanation
        axes = require("matplotlib.figure", "plots").Figure(figsize=(7.5, 5.0), layout="constrained").subplots()
        one = found if found.output_names is None else found[:, :, len(found.output_names) - 1]
        shap.plots.beeswarm(one, ax=axes, show=False, plot_size=None)
        drawn = io.BytesIO()
        axes.figure.savefig(drawn, format=path.suffix.lower()[1:], dpi=144)
        write_atomically(path, drawn.getvalue(), mode=0o600)

    def __repr__(self) -> str:
        return f"Explained({len(self.rows)} of {self.n_rows} rows, {len(self.explanation.feature_names)} columns)"


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
    folder : Folder
    source : Path
        CSV, Parquet or Arrow; it needs no target.
    output : Path
        CSV, Parquet or Arrow, by its name.  Has the columns "row" (its position, from 1), those of `keep`, "class" if
        the model gives probabilities, "base_value" (the mean output over the anchor), "answer", and
        "contribution_NAME" of each column of the project; these and the base value add up to the answer.
    of_class : str, optional
        Class whose probability is explained; by default the second of two, and otherwise all.
    most_rows : int, default=100
        So many rows of a longer table are explained, evenly spaced.
    keep : sequence of str, default=()
        Columns of the table to be put beside the position, such as an identifier.
    log_odds : bool, default=False
        Whether log odds are explained in place of probabilities.
    n_background : int, default=100
        How many rows of the anchor are taken, evenly spaced; at most all.
    figure : Path, optional
        PNG, PDF or SVG, by its name, of the most important columns.
    force : bool, default=False
        Whether files that hold something else may be replaced.
    progress : callable, optional
        Called with the number of rows that are done, and of all, after each.

    Returns
    -------
    Explained

    Raises
    ------
    ExchangeError
        NOT_SHARED, NOT_INSTALLED, WRONG_SHARE, ALREADY_THERE, MODEL_MALFORMED, or of the kind "schema".
    AgreementError
        If outputs of the model are no numbers to be explained, or the table has no rows.
    MissingExtraError
        If shap is not installed.
    NumericalError
        If a probability is 0 or 1, whose log odds are infinite.
    ValueError
        If a parameter is out of its range.
    FileNotFoundError
        If there is no folder for a file.

    Notes
    -----
    Leaves the party: nothing.  Contributions disclose their rows, and a figure shows entries by colours: treat both
    like the table.
    """
    check_shares_rows(folder.project)
    source, output = Path(source), Path(output)
    for name, value in (("most_rows", most_rows), ("n_background", n_background)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1; got {value!r}.")
    table_format(output)
    check_output(output, source, force=force, what="explanations", column=BASE)
    if figure is not None:
        check_figure(Path(figure), (source, output), force=force)
    home = at_home(folder)
    side = home.side("collaboration")
    assert home.party is not None
    assert isinstance(home.model, PartyModel)
    classes = _classes(side, of_class, log_odds, figure, folder.project.task.kind)
    _shap()
    table = read_table(source, project=folder.project)
    check_kept(source, keep, table.columns)
    names = [column.name for column in folder.project.columns]
    check_written_once(source, keep, {ROW, OUTPUT, BASE, ANSWER, *contribution_names(names)})
    encoded = encode_table(folder.project, table, where=str(source), with_target=False)
    if not encoded.n_rows:
        raise AgreementError(f"{source} has no rows to explain.")
    chosen = _evenly(encoded.n_rows, most_rows)
    anchor = folder.anchor.rows
    predictor = home.party.predictor(home.model)
    answer = predictor.log_odds if log_odds else predictor
    try:
        explanation = shapley_values(
            answer if classes is None else lambda X: answer(X)[:, [place for place, _ in classes]],
            encoded.X[chosen],
            anchor[_evenly(len(anchor), n_background)],
            groups=[list(places) for _, places in _places(folder.project)],
            progress=progress,
        )
    except DataCollabError:
        raise
    # A model that was tampered with may fail in any way, and with words that quote the rows.
    except Exception as error:
        raise ExchangeError(
            "MODEL_MALFORMED",
            f"The model {side.name} fails on rows of {source} and the anchor ({type(error).__name__}). Do not use "
            "it, and ask the analyst.",
        ) from None
    explanation.data = entries_of(folder.project, encoded.X[chosen])
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
    """Compute Shapley values of groups of columns by shap [Lundberg2017], as an Explanation without names and data.

    Of up to ten groups all coalitions are taken, and of more ten random orders and their reverses.  Columns of a group
    come and go together; each column is in one.  Masked columns are taken from the background.
    """
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


def entries_of(project: Project, X: FloatArray) -> NDArray[np.float64]:
    """Return rows in the project's columns, for figures; a category is its place among the project's."""
    return np.column_stack(
        [X[:, places[0]] if column.kind == "number" else X[:, places].argmax(1) for column, places in _places(project)]
    )


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
    side: Side, of_class: str | None, log_odds: bool, figure: Path | None, kind: str
) -> list[tuple[int, str]] | None:
    """Return positions and names of the classes to be explained, or raise if the model has no such outputs."""
    if side.classes is None:
        if of_class is not None or log_odds:
            raise ValueError(f"The model {side.name} gives no probabilities. Leave out the class and log odds.")
        if kind in ("classification", "none"):
            raise AgreementError(
                f"The model {side.name} names classes without probabilities, which cannot be added. Ask the analyst "
                "for a model that has them."
            )
        return None
    names = [str(each) for each in side.classes]
    if of_class is not None and of_class not in names:
        raise ValueError(f"The model knows the classes {', '.join(names)}; got {of_class!r}.")
    if figure is not None and of_class is None and len(names) != 2:
        raise ValueError(f"A figure is of one class: name one of {', '.join(names)}.")
    # Of two classes the second, as the first's values are its negatives.
    which = names[-1] if of_class is None and len(names) == 2 else of_class
    return [(place, name) for place, name in enumerate(names) if which in (None, name)]


def _evenly(n_rows: int, at_most: int) -> NDArray[np.intp]:
    return np.linspace(0, n_rows - 1, min(at_most, n_rows)).round().astype(np.intp)


def _places(project: Project) -> Iterator[tuple[Column, range]]:
    start = 0
    for column in project.columns:
        yield column, range(start, start + column.n_features)
        start += column.n_features


def _of(found: Any, place: int) -> tuple[FloatArray, FloatArray]:
    return found.values[:, :, place], found.base_values[:, place]
