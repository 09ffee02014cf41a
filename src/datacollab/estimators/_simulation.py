"""Simulated parties: one table dealt to several, and their predictions alone and together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state

from .._encoder import TableEncoder
from .._frames import are_missing, plain_column, plain_table
from .._threads import one_thread
from .._validation import FloatArray, require
from ..datasets import split_parties
from ..errors import AgreementError, AnchorError
from ..model import probabilities_of
from ..own import CombinedModel, fit_own_model
from ..party import CommonSpace
from ..sums import FEWEST_PARTIES
from ._arguments import check_anchor, compare_targets, one_per_anchor_row
from ._data_collaboration import DataCollaborationClassifier, DataCollaborationRegressor, PlayedSums, SumsTask

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = {
    "local": ("one party alone", "#D55E00", "s"),
    "average": ("average of local models", "#E69F00", "D"),
    "sums": ("sums under masks", "#0072B2", "o"),
    "combined": ("sums and the own model together", "#009E73", "v"),
    "central": ("all rows in one place", "#222222", "^"),
}
"""Ways that are compared, beside a constant: in words, and the colour (Okabe and Ito's palette) and mark of each."""
_LOCAL = 1
_WITH_OTHERS: dict[Literal["sums", "combined"], int] = {"sums": 3, "combined": 4}
"""Places of the two that are compared with one party alone, among the scores."""
_LESS = ("sums less alone", "combined less alone")
_SIGN = {"AUC": 1, "accuracy": 1, "log loss": -1, "RMSE": -1}
_MOST_ROWS = 3000
_MOST_ANCHORS = 1000
"""Rows and public rows that are used: with more, a trial would take minutes, and its intervals hardly shrink."""
_USUAL_PUBLIC = 100
_FEWEST_ROWS = 20
"""Rows of a party, below which its own model is chance."""
_FEWEST_OF_A_CLASS = 10
"""Rows of a class, so that a third of them, held out, has some."""
_LEAST_PROBABILITY = 1e-3
"""Floor of probabilities in the log loss, or one row that was sure and wrong would decide it."""
_IN_MAP = "ridge regression in the common map, without noise"
_OWN = "the own model of `CombinedModel`"
_CHOSEN = (
    "Alone, average and one place are the best of three models: a linear one, ridge regression in the map of the sums, "
    "and the own model that is combined with the sums. The best one was picked on the rows held out, which favours "
    "these three."
)
_ALIKE = "Columns are all alike, as pixels are: no own model is combined with the sums, for there it costs accuracy."
_SIMULATED = (
    "These parties are simulated: their rows come from one table, so they are of one kind. Real parties may see other "
    "people and measure otherwise, which no table of one of them shows."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class PartySimulation:
    """Scores of simulated parties on rows held out, over several draws.

    Attributes
    ----------
    metrics : tuple of str
        "AUC" and "log loss" for two classes, "log loss" and "accuracy" for more, "RMSE" for numbers.
    settings : tuple of (int, int)
        Number of parties, and rows of each.
    scores : ndarray of shape (n_metrics, n_settings, 6, n_draws)
        Of a constant, one party alone (the mean over parties), the average of local models, sums, sums and the own
        model together (the mean over parties), and all rows in one place.
    notes : tuple of str
        Facts on the simulation, and its limits.
    n_numbers : int
        Numbers in the message of one party.
    """

    metrics: tuple[str, ...]
    settings: tuple[tuple[int, int], ...]
    scores: FloatArray
    notes: tuple[str, ...]
    n_numbers: int

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        n_draws = self.scores.shape[-1]
        return f"PartySimulation(metrics={self.metrics}, settings={self.settings}, n_draws={n_draws})"

    def difference(self, metric: str | None = None, way: Literal["sums", "combined"] = "sums") -> FloatArray:
        """Return the score of a way less that of one party alone, and its 95 % interval, shape (n_settings, 3).

        The interval is Student's over draws; the variance is corrected for the rows that draws share, as Nadeau and
        Bengio (2003) do.  By default it is of the first metric.
        """
        scores = self.scores[self.metrics.index(metric or self.metrics[0])]
        # Pairs of the same draw, so that how hard its rows are cancels out.
        less = scores[:, _WITH_OTHERS[way]] - scores[:, _LOCAL]
        mean = less.mean(axis=-1)
        half = stats.t.ppf(0.975, less.shape[-1] - 1) * _standard_error(less)
        return np.stack([mean, mean - half, mean + half], axis=-1)

    @property
    def sentence(self) -> str:
        """Say for each metric in how many settings the intervals of the differences exclude 0."""
        return " ".join((self._count_apart("sums", "sums are"), self._count_apart("combined", "both together are")))

    def _count_apart(self, way: Literal["sums", "combined"], words: str) -> str:
        parts = []
        for metric in self.metrics:
            low, _, high = np.sort(self.difference(metric, way) * _SIGN[metric]).T
            better = int((low > 0).sum())
            worse = int((high < 0).sum())
            count = "includes 0 in every setting"
            if n := better + worse:
                count = f"excludes 0 in {n} of {len(low)} settings: {words} better in {better}, worse in {worse}"
            parts.append(f"in {metric}, {count}")
        return f"In this simulation the 95 % interval of {WAYS[way][0]} less one party alone, {'; '.join(parts)}."

    def table(self) -> Any:
        """Return means, standard errors and differences as a pandas data frame, a row per metric and setting."""
        ways = ("constant", *WAYS)
        names = ["metric", "parties", "rows_each", *ways, *(f"{way}_standard_error" for way in ways)]
        means = self.scores.mean(axis=-1)
        errors = _standard_error(self.scores)
        rows = []
        for i, metric in enumerate(self.metrics):
            less = np.hstack([self.difference(metric, way) for way in _WITH_OTHERS])
            rows += [(metric, *each, *means[i, j], *errors[i, j], *less[j]) for j, each in enumerate(self.settings)]
        names += ["sums_less_local", "low", "high", "combined_less_local", "combined_low", "combined_high"]
        return require("pandas", "cli").DataFrame(rows, columns=names)

    def tables(self) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        """Return for each metric its name in words, the heads of its columns, and a row of texts for each setting."""
        heads = ("constant", "alone", "average", "sums", "combined", "one place", *_LESS)
        tables: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = []
        for metric, means, errors in zip(
            self.metrics, self.scores.mean(axis=-1), _standard_error(self.scores), strict=True
        ):
            rows: list[tuple[str, ...]] = []
            for place, (k, each) in enumerate(self.settings):
                entries = [_text(*pair) for pair in zip(means[place, 1:], errors[place, 1:], strict=True)]
                for way in _WITH_OTHERS:
                    mean, low, high = (_text(number, sign="+") for number in self.difference(metric, way)[place])
                    entries.append(f"{mean}   {low} to {high}")
                rows.append((f"{k} x {each}", _text(means[place, 0]), *entries))
            tables.append((_words(metric), heads, rows))
        return tables

    def summary(self) -> str:
        """Return scores, differences, their sentence and the notes, in plain lines."""
        lines: list[str] = []
        for words, heads, rows in self.tables():
            lines += [f"{words}: mean and standard error on rows held out", ""]
            table = (("parties", *heads), *rows)
            lines += [f"{row[0]:>9}" + "".join(f"{entry:>14}" for entry in row[2:7]) for row in table]
            lines += ["", f"{words.split(' (')[0]} less that of one party alone, and 95 % interval", ""]
            lines += [f"{row[0]:>9}{row[1]:>10}{row[-2]:>30}{row[-1]:>30}" for row in table]
            lines.append("")
        return "\n".join([*lines, self.sentence, *self.notes])

    def plot(self) -> Figure:
        """Draw scores by the first metric, and below them the differences of both ways with others from one party.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        n = len(self.settings)
        metric = self.metrics[0]
        style = {"markersize": 9, "elinewidth": 2}
        new: type[Figure] = require("matplotlib.figure", "plots").Figure
        figure = new(figsize=(5.4, 3.2 + 0.9 * n), layout="constrained")
        places = np.arange(n)
        above, below = figure.subplots(2, 1, height_ratios=(1.7, 1))
        means = self.scores[0].mean(axis=-1).T
        errors = _standard_error(self.scores[0]).T
        for way, (words, colour, mark) in enumerate(WAYS.values(), start=1):
            at = places + 0.16 * (way - 3)  # five marks beside one another, the middle one on the line
            above.errorbar(means[way], at, xerr=errors[way], fmt=mark, color=colour, label=words, **style)
        # Marks to one side of the line are better or worse than one party alone.
        below.axvline(0.0, color=WAYS["local"][1], linewidth=1.5, zorder=0)
        for name, at in zip(_WITH_OTHERS, (places - 0.12, places + 0.12), strict=True):
            _, colour, mark = WAYS[name]
            mean, low, high = self.difference(way=name).T
            below.errorbar(mean, at, xerr=[mean - low, high - mean], fmt=mark, color=colour, capsize=5, **style)
        above.set_xlabel(f"{_words(metric)}; a constant has {_text(means[0].mean())}", fontsize=11)
        below.set_xlabel(f"{metric} less that of one party alone, 95 % interval", fontsize=11)
        for axes in (above, below):
            axes.set_yticks(places, [f"{k} parties\nof {each} rows" for k, each in self.settings], fontsize=11)
            axes.set_ylim(n - 0.5, -0.5)
            axes.tick_params(labelsize=11, left=False)
            axes.locator_params(axis="x", nbins=5)
            axes.spines[["top", "right"]].set_visible(False)
            for edge in places[1:]:
                axes.axhline(edge - 0.5, color="0.88", linewidth=1, zorder=0)
        figure.legend(*above.get_legend_handles_labels(), loc="outside upper left", ncols=2, frameon=False, fontsize=11)
        return figure


def _standard_error(values: FloatArray) -> FloatArray:
    # A third is held out, so the rows held out are half as many as the others.
    return np.asarray(values.std(axis=-1, ddof=1) * np.sqrt(1 / values.shape[-1] + 1 / 2))


def _text(value: float, error: float | None = None, sign: str = "") -> str:
    # Three decimals of a score below one; four digits of an error in the units of y.
    text = f"{value:{sign}.3f}" if abs(value) < 10 else f"{value:{sign}.4g}"
    if error is None:
        return text
    return f"{text} ({_text(error)})"


def _words(metric: str) -> str:
    better = "higher" if _SIGN[metric] > 0 else "lower"
    return f"{metric} ({better} is better)"


@one_thread
def simulate_parties(  # noqa: PLR0913
    X: Any,
    y: ArrayLike,
    *,
    anchor: Any = None,
    anchor_target: ArrayLike | None = None,
    n_parties: int | Sequence[int] = (3, 5, 10),
    scheme: Literal["iid", "stratified", "label-skew", "feature-shift"] = "iid",
    estimator: Any = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    n_draws: int = 5,
    random_state: int | np.random.RandomState | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> PartySimulation:
    """Deal one table to simulated parties, and compare the predictions of each alone with those by sums.

    Each draw holds out a third of the rows, deals the others, and scores all ways on those held out.  For each number
    of parties, rows are as many as there are, and also as few as the most parties have.  Of more than 3,000 rows,
    3,000 are taken by chance.  Real parties may differ in ways that no table of one of them shows.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        Numbers and categories; entries may be missing.
    y : array-like of shape (n_samples,)
    anchor : array-like or dataframe of shape (n_anchors, n_features), optional
        Public rows.  None takes 100 rows of `X`, or a tenth of them if that is less, without their targets.
    anchor_target : array-like of shape (n_anchors,), optional
        Targets of the public rows, with None or NaN where there is none.  All ways learn from those labelled.
    n_parties : int or sequence of int, default=(3, 5, 10)
        At least 3.  Numbers that leave a party fewer than 20 rows are left out.
    scheme : {"iid", "stratified", "label-skew", "feature-shift"}, default="iid"
        How rows are dealt; see `datasets.split_parties`.
    estimator : estimator, default=None
        The model of one party, and of all rows in one place, on columns as numbers.  None takes the best of three,
        picked on the rows held out: logistic or ridge regression, ridge regression in the common map without noise, and
        the own model of `CombinedModel`.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes targets of a float type for a regression.
    n_draws : int, default=5
        At least 2.
    random_state : int, RandomState or None, default=None
    progress : callable, optional
        Called before each step: how many are done, how many there are, and its name.

    Returns
    -------
    PartySimulation
        ``print`` gives its `summary()`: means, differences, a sentence and notes.  `sentence` counts the settings with
        a difference beyond chance, `table()` is a data frame, and `plot()` a figure.  `scores` has every draw;
        `metrics` and `settings` name its axes.

    Raises
    ------
    ValueError
        If a parameter is out of range, or rows are too few.
    AgreementError, AnchorError
        If targets are missing, a class has fewer than 10 rows, or no common map can be made.

    Examples
    --------
    >>> import datacollab as dc
    >>> X, y = dc.datasets.load("digits")
    >>> found = dc.simulate_parties(X[:500], y[:500] >= 5, n_parties=4, n_draws=2, random_state=0)
    >>> found.metrics, found.settings
    (('AUC', 'log loss'), ((4, 71),))
    >>> constant, local, average, sums, combined, central = found.scores[0, 0].mean(axis=-1)
    >>> bool(local < sums < central)
    True
    """
    X = plain_table(X, "X")
    anchor = plain_table(anchor, "The anchor", AnchorError)
    random = check_random_state(random_state)
    numbers = sorted({*np.atleast_1d(np.asarray(n_parties)).tolist()})
    known_task = task in ("auto", "classification", "regression")
    # One draw has no interval, and sums of two parties tell each the other's.
    if n_draws < 2 or not numbers or numbers[0] < FEWEST_PARTIES or not known_task:
        raise ValueError(
            f"n_draws={n_draws}, n_parties={n_parties}, task={task!r}: expected at least 2 draws, at least "
            f"{FEWEST_PARTIES} parties, and task 'auto', 'classification' or 'regression'."
        )
    if task == "auto":
        task = "regression" if plain_column(y).dtype.kind == "f" else "classification"
    is_number = task == "regression"
    # The rules for targets are those of the estimators.
    like = DataCollaborationRegressor() if is_number else DataCollaborationClassifier()
    target = like._targets(y, "y")
    check_consistent_length(X, target)
    n_rows = len(target)
    taken = np.sort(random.permutation(n_rows)[:_MOST_ROWS])
    X = _safe_indexing(X, taken)
    target = target[taken]
    sums_task = like._sums_task(target)
    if not is_number:
        _check_classes(target)
    n_test = len(target) // 3
    n_public = 0
    n_anchors = 0
    if anchor is None:
        n_public = min(_USUAL_PUBLIC, len(target) // 10)
    else:
        n_anchors = np.shape(anchor)[0]
    n_dealt = len(target) - n_test - n_public
    settings = _choose_settings(numbers, n_dealt, len(target))
    learners = _make_learners(estimator, is_number)
    labels = None
    if anchor_target is not None:
        labels = like._targets(one_per_anchor_row(anchor_target, n_anchors), "anchor_target")
        compare_targets(target, labels, are_classes=not is_number)
    scores = []
    if anchor is not None:
        check_anchor(X, anchor)
        # A category that no public row has is refused at once, and not after half of the draws.
        TableEncoder(unknown="refuse").fit(anchor).transform(X)
    for place in range(n_draws):
        stratify = None if is_number else target
        seed = random.randint(2**31 - 1)
        # Each draw has its own rows held out, so that the interval also covers which rows these are.
        rest, test = train_test_split(np.arange(len(target)), test_size=n_test, stratify=stratify, random_state=seed)
        dealt = rest[n_public:]
        if anchor is None:
            public = _safe_indexing(X, rest[:n_public])
            known = None
        else:
            some = random.permutation(n_anchors)[:_MOST_ANCHORS]
            public = _safe_indexing(anchor, some)
            known = labels if labels is None else labels[some]
        # Chance decides which categories the public rows of a draw lack.
        space = CommonSpace(public, random.bytes(32), unknown="allow")
        draw = _Draw(X, target, test, public, known, space, sums_task)
        for setting, (k, each) in enumerate(settings):
            if progress is not None:
                progress(place * len(settings) + setting, n_draws * len(settings), f"{k} parties of {each} rows")
            split = split_parties(draw.Z[dealt], target[dealt], k, each, scheme=scheme, random_state=random)
            parties = {party: dealt[rows] for party, rows in split.indices.items()}
            scores.append(draw.scores(parties, learners, random))
    rows = f"{n_rows} rows" if n_rows == len(target) else f"{len(target)} of {n_rows} rows, taken by chance"
    of_public = _describe_public(n_public, n_anchors, labels)
    notes = [f"{rows}; each of {n_draws} draws holds out a third, {n_test} rows, and {of_public}."]
    notes += _list_limits(numbers, settings[-1][0], space.alike, estimator is None)
    # (n_draws, n_settings, n_ways, n_metrics) the other way round.
    by_metric = np.reshape(scores, (n_draws, len(settings), *np.shape(scores)[1:])).transpose(3, 1, 2, 0)
    return PartySimulation(
        metrics=draw.metrics, settings=tuple(settings), scores=by_metric, notes=tuple(notes), n_numbers=draw.n_numbers
    )


def _check_classes(target: NDArray[Any]) -> None:
    """Raise AgreementError for a single class, or one with too few rows to hold some out and deal the others."""
    counts = np.unique(target, return_counts=True)[1]
    n_rare = int((counts < _FEWEST_OF_A_CLASS).sum())
    if n_rare or len(counts) < 2:
        raise AgreementError(
            f"y has {len(counts)} classes, {n_rare} with fewer than {_FEWEST_OF_A_CLASS} rows; expected "
            f"at least two classes, each of {_FEWEST_OF_A_CLASS} rows or more. Merge rare classes; for numbers pass "
            "task='regression' to simulate_parties."
        )


def _choose_settings(numbers: Sequence[int], n_dealt: int, n_rows: int) -> list[tuple[int, int]]:
    """Return numbers of parties and rows of each; raise ValueError if even the fewest have too few rows."""
    feasible = [k for k in numbers if n_dealt // k >= _FEWEST_ROWS]
    if not feasible:
        raise ValueError(
            f"{numbers[0]} parties would have {n_dealt // numbers[0]} rows each, of {n_rows}; expected at least "
            f"{_FEWEST_ROWS}. Give more rows, or fewer parties."
        )
    # All rows dealt, and as few to each as the most parties have: then more parties also are more rows.
    return sorted({(k, each) for k in feasible for each in (n_dealt // feasible[-1], n_dealt // k)})


def _make_learners(estimator: Any, is_number: bool) -> tuple[Any, ...]:
    if estimator is not None:
        return (estimator,)
    linear = RidgeCV(np.geomspace(1e-2, 1e4, 13)) if is_number else LogisticRegression(max_iter=500)
    return make_pipeline(StandardScaler(), linear), _IN_MAP, _OWN


def _list_limits(numbers: Sequence[int], most: int, is_alike: bool, are_chosen: bool) -> list[str]:
    """Return sentences on parties and models that were left out, and on the limits of any simulation."""
    notes = [f"{k} parties: left out, with fewer than {_FEWEST_ROWS} rows each." for k in numbers if k > most]
    if is_alike:
        notes.append(_ALIKE)
    if are_chosen:
        notes.append(_CHOSEN)
    return [*notes, _SIMULATED]


def _describe_public(n_public: int, n_anchors: int, labels: NDArray[Any] | None) -> str:
    """Say how many public rows each draw takes, and how many have targets to learn from."""
    if not n_anchors:
        return f"{n_public} others play public rows without targets"
    some = f"{n_anchors}"
    among = ""
    if n_anchors > _MOST_ANCHORS:
        some = f"{_MOST_ANCHORS} of {n_anchors}"
        among = "those among "
    n_labelled = 0
    if labels is not None:
        n_labelled = int((~are_missing(labels)).sum())
    words = {0: "without targets", n_anchors: "from whose targets all learn"}
    some_of_them = f"and all learn from {among}the {n_labelled} with targets"
    return f"takes {some} public rows, {words.get(n_labelled, some_of_them)}"


class _Draw:
    """The rows of one draw: as given, as numbers, and in the common map; public rows with targets come last."""

    def __init__(self, X: Any, y: Any, test: Any, public: Any, labels: Any, space: CommonSpace, task: SumsTask) -> None:
        self.X = X
        self.test = test
        self.public = public
        self.labels = labels
        self.space = space
        self.task = task
        self.Z = space.encode(X)
        self.V = space.transform(X)
        self.y = y
        self.classes = task.classes
        if labels is not None:
            has = ~are_missing(labels)
            self.Z = np.vstack([self.Z, space.encode(public)[has]])
            self.V = np.vstack([self.V, space.anchor[has]])
            self.y = np.append(y, labels[has])
        self.shared = np.arange(len(y), len(self.y))
        self.metrics: tuple[str, ...] = ("log loss", "accuracy")
        if self.classes is None:
            self.metrics = ("RMSE",)
        elif len(self.classes) == 2:
            self.metrics = ("AUC", "log loss")
        self.n_numbers = 0

    def scores(self, parties: Any, learners: tuple[Any, ...], random: np.random.RandomState) -> FloatArray:
        """Return the scores of all ways with these parties' rows, shape (n_ways, n_metrics)."""
        setting: dict[str, Any] = {"task": self.task, "random_state": random, "space": self.space}
        sums = PlayedSums(self.X, self.y, parties, self.public, self.labels, **setting)
        self.n_numbers = sums.plan.statistic.n_numbers
        own = [np.concatenate([rows, self.shared]) for rows in parties.values()]
        # Labelled public rows are everybody's: all ways learn from them.
        everybody = np.concatenate([*parties.values(), self.shared])
        rivals = []
        for learner in learners:
            if learner is _OWN and self.space.alike:
                continue
            local = [self._fit_outputs(learner, *each) for each in zip(own, repeat(sums), sums.homes.values())]
            alone = np.mean([self._score(each) for each in local], axis=0)
            central = self._score(self._fit_outputs(learner, everybody, sums))
            rivals.append((alone, self._score(np.mean(local, axis=0)), central))
        # The best learner by each metric, for each way: sums have to beat strong rivals.
        signs = np.array([_SIGN[metric] for metric in self.metrics])
        alone, average, central = signs * np.max(signs * np.array(rivals), axis=0)
        y = self.y[everybody]
        usual = y.mean() if self.classes is None else (y[:, None] == self.classes).mean(axis=0)
        constant = self._score(np.broadcast_to(usual, (len(self.test), *np.shape(usual))))
        both = np.mean([self._score(self._outputs(home, self.X)) for home in sums.homes.values()], axis=0)
        return np.stack([constant, alone, average, self._score(self._outputs(sums.model, self.V)), both, central])

    def _fit_outputs(
        self, learner: Any, rows: NDArray[np.intp], sums: PlayedSums, home: CombinedModel | None = None
    ) -> FloatArray:
        """Return the outputs, for the rows held out, of a model of some rows; of a party `home` has its own model."""
        y = self.y[rows]
        statistic = sums.plan.statistic
        if learner is _IN_MAP:
            # The same model as the sums give, of these rows alone: any gain is by the others' rows.
            fit = statistic.solve(statistic.part(self.V[rows], y), noise=0.0)
            return self._outputs(replace(sums.model, fit=fit), self.V)
        if self.classes is not None and len(np.unique(y)) == 1:
            # Most classifiers refuse one class.
            return np.tile((self.classes == y[0]).astype(np.float64), (len(self.test), 1))
        if learner is _OWN:
            home = home or CombinedModel(self.space, sums.model, fit_own_model(statistic, (self.Z[rows], y)))
            return self._outputs(home, self.X, using="local")
        return self._outputs(clone(learner).fit(self.Z[rows], y), self.Z)

    def _outputs(self, model: Any, rows: Any, **using: str) -> FloatArray:
        """Return numbers, shape (n_test,), or probabilities, shape (n_test, n_classes)."""
        rows = _safe_indexing(rows, self.test)
        if self.classes is None:
            return np.asarray(model.predict(rows, **using), dtype=np.float64)
        # A party may lack classes; they get a probability of 0.
        known = getattr(model, "classes_", self.classes)
        return probabilities_of(model.predict_proba(rows, **using), known, self.classes)

    def _score(self, outputs: FloatArray) -> FloatArray:
        """Return the score of outputs by each metric, shape (n_metrics,)."""
        truth = self.y[self.test]
        if self.classes is None:
            return np.array([np.sqrt(mean_squared_error(truth, outputs))])
        raised = np.maximum(outputs, _LEAST_PROBABILITY)
        loss = log_loss(truth, raised / raised.sum(axis=1, keepdims=True), labels=self.classes)
        if len(self.classes) == 2:
            return np.array([roc_auc_score(truth == self.classes[1], outputs[:, 1]), loss])
        return np.array([loss, accuracy_score(truth, self.classes[outputs.argmax(axis=1)])])
