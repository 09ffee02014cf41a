"""What `datacollab demo` plays and shows: what a party gains by sums under masks, beside what else there is."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from .._validation import FloatArray, require
from ..analyst import ODC
from ..anchor import SMOTEAnchor
from ..datasets import Dataset, split_parties
from ..estimators import DataCollaborationClassifier
from ..linalg import median_gamma
from ..model import LandmarkRidgeClassifier
from ..party import CommonSpace, obfuscator
from ..sums import MaskedMessage, MaskKey, SumsPlan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["WAYS", "Demonstration", "demonstrate", "demonstration_figure", "demonstration_page"]

SUMS, ROWS, AVERAGE, ALONE, ONE_PLACE = (
    *("sums under masks", "rows, undefended", "average of local models", "alone", "all rows in one place"),
)
WAYS = {
    SUMS: "one file; the total alone can be read, with noise",
    ROWS: "each row, in columns of a secret map",
    AVERAGE: "a model of its rows, which tells who is in them",
    ALONE: "nothing",
    ONE_PLACE: "each row as it is, which is not allowed",
}
"""Ways, and what leaves a party."""
N_PUBLIC, N_ANCHORS, N_TEST, N_COMPONENTS = 100, 1000, 500, 48
N_JUDGING = 3
"""Parties whose maps test rows go through, if rows are shared."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Demonstration:
    """Accuracies of all ways."""

    n_parties: int
    n_rows: int
    seeds: tuple[int, ...]
    accuracies: dict[str, FloatArray]

    def interval(self, way: str) -> tuple[float, float]:
        """Return the mean and half the width of its 95 % interval over the draws."""
        return _interval(self.accuracies[way])

    def gain(self, way: str) -> tuple[float, float]:
        """Return the mean accuracy above what a party has alone, and half the width of its 95 % interval."""
        return _interval(self.accuracies[way] - self.accuracies[ALONE])

    @property
    def sentence(self) -> str:
        """What sums brought."""
        gain, half_width = self.gain(SUMS)
        points = f"{100 * abs(gain):.1f} points of accuracy"
        if abs(gain) > half_width:
            return f"Sums under masks {'brought' if gain > 0 else 'cost'} a party {points}."
        draws = "one draw" if len(self.seeds) == 1 else f"{len(self.seeds)} draws"
        return f"Sums were {points} {'above' if gain > 0 else 'below'}, which {draws} cannot tell from chance."

    def as_dict(self) -> dict[str, Any]:
        """Return the same as what JSON can hold."""
        return {
            "n_parties": self.n_parties,
            "n_rows": self.n_rows,
            "seeds": list(self.seeds),
            "accuracy": {way: self.accuracies[way].tolist() for way in WAYS},
        }


def demonstrate(
    data: Dataset,
    *,
    n_parties: int,
    n_rows: int,
    seeds: Sequence[int],
    progress: Callable[[str], None],
    n_jobs: int | None = None,
) -> Demonstration:
    """Play all ways."""
    scores = []
    for each in Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_played)(data, n_parties, n_rows, seed) for seed in seeds
    ):
        scores.append(each)
        progress(f"draw {len(scores)} of {len(seeds)}")
    accuracies = {way: np.array([each[way] for each in scores]) for way in WAYS}
    return Demonstration(n_parties=n_parties, n_rows=n_rows, seeds=tuple(seeds), accuracies=accuracies)


def _played(data: Dataset, n_parties: int, n_rows: int, seed: int) -> dict[str, float]:
    return _Play(data, n_parties, n_rows, seed).scores


class _Play:
    """One draw."""

    def __init__(self, data: Dataset, n_parties: int, n_rows: int, seed: int) -> None:
        split = split_parties(data.X, data.y, n_parties=n_parties, n_per_party=n_rows, random_state=seed)
        public, test = split.rest[:N_PUBLIC], split.rest[N_PUBLIC : N_PUBLIC + N_TEST]
        self.seed, self.own, self.classes = seed, dict(split.items()), np.unique(data.y)
        self.public, self.target = data.X[public], data.y[public]
        X, y, self.names = split.pooled()
        self.X, self.y = X, y
        self.X_test, self.y_test = data.X[test], data.y[test]
        own, with_public = self._local_models(public=False), self._local_models(public=True)
        locals_ = [*own, *with_public]
        whole = _kernel_ridge(np.vstack([X, self.public]), np.concatenate([y, self.target]))
        self.scores = {
            SUMS: self._score(self._told_by_sums()),
            ROWS: float(np.mean([self._score(each) for each in self._told_by_rows()])),
            # Of four kinds of local models the best, chosen by what only hindsight knows.
            AVERAGE: max(self._score(self.classes[np.mean(local, axis=0).argmax(axis=1)]) for local in locals_),
            ALONE: max(
                float(np.mean([self._score(self.classes[each.argmax(axis=1)]) for each in local])) for local in locals_
            ),
            ONE_PLACE: self._score(whole.predict(self.X_test)),
        }

    def _score(self, predicted: Any) -> float:
        return float(np.mean(predicted == self.y_test))

    def _told_by_sums(self) -> Any:
        space, plan, messages = played_sums(self.own, self.public, self.target, self.classes, self.seed)
        return plan.solve(messages).predict(space.transform(self.X_test))

    def _told_by_rows(self) -> list[Any]:
        anchor, target = SMOTEAnchor(N_ANCHORS).sample(self.public, self.target, random_state=self.seed)
        model = DataCollaborationClassifier(
            obfuscator("pca", N_COMPONENTS), ODC(), SVC(C=10.0), fit_on=self.public, random_state=self.seed
        ).fit(self.X, self.y, groups=self.names, anchor=anchor, anchor_target=target)
        judging = list(self.own)[:N_JUDGING]
        return [model.predict(self.X_test, groups=[party] * len(self.X_test)) for party in judging]

    def _local_models(self, *, public: bool) -> list[list[FloatArray]]:
        """Return, for each kind of model, the probabilities that each party's own one gives the test rows."""
        kinds: tuple[Callable[[FloatArray, Any], Any], ...] = (_forest, _kernel_ridge)
        return [[self._probabilities(kind, rows, public=public) for rows in self.own.values()] for kind in kinds]

    def _probabilities(
        self, kind: Callable[[FloatArray, Any], Any], own: tuple[FloatArray, Any], *, public: bool
    ) -> FloatArray:
        X, y = own
        if public:
            X, y = np.vstack([X, self.public]), np.concatenate([y, self.target])
        model = kind(X, y)
        found = np.zeros((len(self.X_test), len(self.classes)))
        found[:, np.searchsorted(self.classes, model.classes_)] = model.predict_proba(self.X_test)
        return found


def played_sums(
    own: Mapping[Any, tuple[FloatArray, Any]], public: FloatArray, target: Any, classes: Any, seed: int
) -> tuple[CommonSpace, SumsPlan, list[MaskedMessage]]:
    """Play what parties do that share sums: the map, the plan, and each party's message."""
    # Secrets come from the operating system otherwise; here the same seed gives the same scores.
    draw = np.random.RandomState(seed).bytes
    space = CommonSpace(public, draw(32))
    keys = {name: MaskKey(draw(32)) for name in own}
    roster = {name: key.public for name, key in keys.items()}
    usual = space.recommended
    plan = SumsPlan(
        roster,
        n_components=space.n_components,
        classes=classes,
        noise=usual.noise,
        least_penalty=usual.least_penalty,
    )
    messages = []
    for place, (name, (X, y)) in enumerate(own.items()):
        v = space.transform(X)
        if place == 0:
            v, y = np.vstack([v, space.anchor]), np.concatenate([y, target])
        messages.append(plan.message(name, v, y, keys[name], noise_key=draw(32)))
    return space, plan, messages


def _forest(X: FloatArray, y: Any) -> Any:
    return RandomForestClassifier(random_state=0).fit(X, y)


def _kernel_ridge(X: FloatArray, y: Any) -> Any:
    return LandmarkRidgeClassifier(X, gamma=median_gamma(X)).fit(X, y)


def _interval(values: FloatArray) -> tuple[float, float]:
    if len(values) < 2:
        return float(values.mean()), float("nan")
    half_width = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(half_width)


_COLOURS = {SUMS: "#0072B2", ROWS: "#56B4E9", AVERAGE: "#56B4E9", ALONE: "#7f7f7f", ONE_PLACE: "#cccccc"}
"""From Okabe and Ito's palette, distinguished by readers with any colour vision."""
_BRIGHTEST = 0.98
"""Quantile of a picture's numbers from which on all are as bright."""


def demonstration_figure(data: Dataset, demonstration: Demonstration) -> Figure:
    """Draw one party's message, the total of all, and the accuracies of all ways."""
    figure: Figure = require("matplotlib.figure", "plots").Figure(figsize=(12, 3.6), layout="constrained")
    message, total, bars = figure.subplots(1, 3, width_ratios=(1, 1, 1.6))
    n_parties = demonstration.n_parties
    split = split_parties(data.X, data.y, n_parties=n_parties, n_per_party=demonstration.n_rows, random_state=0)
    public = split.rest[:N_PUBLIC]
    _, plan, messages = played_sums(dict(split.items()), data.X[public], data.y[public], np.unique(data.y), 0)
    shown = (
        (message, messages[0].words[1:, 0].astype(np.float64), "One party's file: masked sums"),
        (total, np.abs(plan.agreed.total(messages)), f"The total of all {n_parties}, with noise"),
    )
    for axes, numbers, title in shown:
        square = np.zeros((plan.statistic.size, plan.statistic.size))
        square[np.triu_indices(plan.statistic.size)] = numbers
        axes.imshow(np.maximum(square, square.T), cmap="gray_r", vmin=0, vmax=np.quantile(numbers, _BRIGHTEST))
        axes.set_title(title, fontsize=10.5)
        axes.set_xticks([])
        axes.set_yticks([])
    for place, way in enumerate(WAYS):
        mean, half_width = demonstration.interval(way)
        bars.barh(place, mean, 0.75, color=_COLOURS[way], xerr=np.nan_to_num(half_width),
                  error_kw={"elinewidth": 1, "ecolor": "#444444"})  # fmt: skip
        bars.annotate(f"{mean:.3f}", (0.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=9,
                      color="white" if way in (SUMS, ALONE) else "#222222")  # fmt: skip
    bars.set_yticks(range(len(WAYS)), list(WAYS), fontsize=9.5)
    bars.invert_yaxis()
    bars.set_xlim(0.5, 1)
    bars.set_xlabel("accuracy on new rows, mean and 95 % interval")
    bars.spines[["top", "right"]].set_visible(False)
    return figure


def demonstration_page(demonstration: Demonstration, dataset: str, figure: Figure, command: str) -> str:
    """Write the demonstration as a page without outside references; the command reproduces it."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144)
    page = Template(Path(__file__).with_name("demonstration.html").read_text(encoding="utf-8"))
    return page.substitute(
        parties=f"{demonstration.n_parties} parties with {demonstration.n_rows} rows each of {escape(dataset)}",
        sentence=escape(demonstration.sentence),
        rows="".join(_row(demonstration, way) for way in WAYS),
        picture=base64.b64encode(buffer.getvalue()).decode("ascii"),
        command=escape(command),
        n_draws=len(demonstration.seeds),
        **{"n_test": N_TEST, "n_public": N_PUBLIC, "n_components": N_COMPONENTS},
        **{"sums": SUMS, "ways_rows": ROWS, "average": AVERAGE, "alone": ALONE, "one_place": ONE_PLACE},
    )


def _row(demonstration: Demonstration, way: str) -> str:
    gain = "" if way == ALONE else in_words(*demonstration.gain(way), sign="+")
    numbers = "".join(f'<td class="number">{text}</td>' for text in (in_words(*demonstration.interval(way)), gain))
    return f"<tr><td>{escape(way)}</td>{numbers}<td>{escape(WAYS[way])}</td></tr>"


def in_words(mean: float, half_width: float, sign: str = "") -> str:
    """Write a mean and half the width of its interval, if there is one."""
    return f"{mean:{sign}.3f}" if math.isnan(half_width) else f"{mean:{sign}.3f} ± {half_width:.3f}"
