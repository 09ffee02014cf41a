"""What `datacollab demo` plays and shows: few own rows, some public ones, a risk to choose, and what it brings."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from .._validation import FloatArray, require
from ..analyst import ODC, Analyst
from ..anchor import SMOTEAnchor
from ..datasets import Dataset, PartySplit, split_parties
from ..linalg import median_gamma
from ..model import LandmarkRidgeClassifier
from ..party import Benefit, Party, obfuscator
from ..risk.audit import audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "SITUATIONS",
    "WAYS",
    "Demonstration",
    "Situation",
    "demonstrate",
    "demonstration_figure",
    "demonstration_page",
]

WAYS = ("alone", "collaboration", "pooled", "all rows in one place")
N_PUBLIC, N_ANCHORS, N_TEST, N_COMPONENTS = 100, 1000, 500, 48
N_JUDGING = 3
"""Parties that combine and are tested; all share."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What parties have besides their own rows, and how they share.

    Attributes
    ----------
    labelled : bool
        Whether the public rows have targets.
    private : bool
        Whether shares are defended, by `Party.private`.
    """

    labelled: bool
    private: bool

    @property
    def name(self) -> str:
        """In words."""
        rows = f"{N_PUBLIC} public rows {'with' if self.labelled else 'without'} targets"
        return f"{rows}, {'private' if self.private else 'undefended'}"


SITUATIONS = tuple(
    Situation(labelled=labelled, private=private) for labelled in (True, False) for private in (False, True)
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Demonstration:
    """Scores of all situations and ways.

    Attributes
    ----------
    n_parties, n_rows : int
        Parties, and rows of each.
    seeds : tuple of int
    accuracies : dict of (Situation, way) to ndarray of shape (n_seeds,)
        Means over parties, on common test rows.
    linked : dict of Situation to (float, float), or None
        Part of a party's rows that an attacker who holds the anchor links to the right shared row, and what targets
        alone give away; None where no shared row stands for an own one.
    benefits : dict of Situation to list of Benefit
        What the parties themselves say that collaboration brought, of the first draw.
    """

    n_parties: int
    n_rows: int
    seeds: tuple[int, ...]
    accuracies: dict[tuple[Situation, str], FloatArray]
    linked: dict[Situation, tuple[float, float] | None]
    benefits: dict[Situation, list[Benefit]]

    def interval(self, situation: Situation, way: str) -> tuple[float, float]:
        """Mean and half the width of its 95 % interval over the draws."""
        return _interval(self.accuracies[situation, way])

    def gain(self, situation: Situation) -> tuple[float, float]:
        """The pool's mean accuracy above what a party has alone, and half the width of its 95 % interval."""
        return _interval(self.accuracies[situation, "pooled"] - self.accuracies[situation, "alone"])

    def sentences(self) -> list[str]:
        """What came out, a sentence for each situation."""
        return [self._sentence(situation) for situation in SITUATIONS]

    def _sentence(self, situation: Situation) -> str:
        alone, pooled = (self.interval(situation, way)[0] for way in ("alone", "pooled"))
        gain, half_width = self.gain(situation)
        points = f"{100 * abs(gain):.1f} points of accuracy"
        if abs(gain) > half_width:
            verdict = f"collaborating {'brought' if gain > 0 else 'cost'} {points}"
        else:
            draws = "one draw" if len(self.seeds) == 1 else f"{len(self.seeds)} draws"
            verdict = f"the pool was {points} {'above' if gain > 0 else 'below'}, which {draws} cannot tell from chance"
        risk = self.linked[situation]
        told = (
            "no shared row stands for one of a party's"
            if risk is None
            else f"{100 * risk[0]:.0f} % of its rows can be linked, {100 * risk[1]:.0f} % by targets alone"
        )
        return f"{situation.name.capitalize()}: {verdict} ({alone:.3f} alone, {pooled:.3f} pooled); {told}."

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        return {
            "n_parties": self.n_parties,
            "n_rows": self.n_rows,
            "seeds": list(self.seeds),
            "situations": [
                {
                    "name": situation.name,
                    "labelled": situation.labelled,
                    "private": situation.private,
                    "accuracy": {way: self.accuracies[situation, way].tolist() for way in WAYS},
                    "linked": self.linked[situation],
                    "benefits": [benefit.to_dict() for benefit in self.benefits[situation]],
                }
                for situation in SITUATIONS
            ],
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
    """Play all situations: share, choose, combine, test.

    Parameters
    ----------
    data : Dataset
        Of classes.
    n_parties, n_rows : int
    seeds : sequence of int
        Draws of parties, public and test rows.
    progress : callable
        Called with what was played: once for each draw and situation.
    n_jobs : int, optional
        Draws and situations played at a time, by joblib's rules; scores do not depend on it.
    """
    scores = {(situation, way): np.full(len(seeds), np.nan) for situation in SITUATIONS for way in WAYS}
    linked: dict[Situation, tuple[float, float] | None] = {}
    benefits: dict[Situation, list[Benefit]] = {}
    plays = [(draw, situation) for draw in range(len(seeds)) for situation in SITUATIONS]
    for draw, situation, play in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_played)(data, n_parties, n_rows, situation, seeds, draw) for draw, situation in plays
    ):
        for way, score in play.scores.items():
            scores[situation, way][draw] = score
        if draw == 0:
            linked[situation], benefits[situation] = play.linked, play.benefits
        progress(f"draw {draw + 1} of {len(seeds)}: {situation.name}")
    return Demonstration(
        n_parties=n_parties,
        n_rows=n_rows,
        seeds=tuple(seeds),
        accuracies=scores,
        linked=linked,
        benefits=benefits,
    )


class _Outcome(NamedTuple):
    scores: dict[str, float]
    linked: tuple[float, float] | None
    benefits: list[Benefit]


def _played(
    data: Dataset, n_parties: int, n_rows: int, situation: Situation, seeds: Sequence[int], draw: int
) -> tuple[int, Situation, _Outcome]:
    """One draw in one situation; the first is attacked."""
    seed = seeds[draw]
    split = split_parties(data.X, data.y, n_parties=n_parties, n_per_party=n_rows, random_state=seed)
    play = _Play(data, split, situation, seed)
    scores = dict(play.scores())
    return draw, situation, _Outcome(scores, play.linked() if draw == 0 else None, play.benefits)


class _Play:
    """One draw in one situation."""

    def __init__(self, data: Dataset, split: PartySplit, situation: Situation, seed: int) -> None:
        self.data, self.split, self.situation, self.seed = data, split, situation, seed
        self.public, self.test = split.rest[:N_PUBLIC], split.rest[N_PUBLIC : N_PUBLIC + N_TEST]
        self.benefits: list[Benefit] = []
        # Secrets come from the operating system otherwise; here whoever plays it again is to find the same scores.
        self.secrets = np.random.RandomState(seed)
        target = self.data.y[self.public] if situation.labelled else None
        self.anchor, self.anchor_target = SMOTEAnchor(N_ANCHORS).sample(data.X[self.public], target, random_state=seed)
        self.parties = [self._party(name).fit(own.X, own.y) for name, own in split.items()]

    def scores(self) -> Iterator[tuple[str, float]]:
        """Mean accuracy of each way over the judging parties."""
        collaboration = Analyst().fit(party.share(self.anchor, self.anchor_target) for party in self.parties)
        X_test, y_test = self.data.X[self.test], self.data.y[self.test]
        public = self.data.X[self.public]
        public_target = self.data.y[self.public] if self.situation.labelled else None
        right: dict[str, list[float]] = {way: [] for way in WAYS[:3]}
        for party, own in list(zip(self.parties, self.split.values(), strict=True))[:N_JUDGING]:
            model = party.personalise(
                collaboration.party_model(party.name),
                own.X,
                own.y,
                public=public,
                public_target=public_target,
                random_state=self.seed,
            )
            self.benefits.append(model.benefit_)
            for way, found in right.items():
                found.append(float(np.mean(model.predict(X_test, using=way) == y_test)))
        yield from ((way, float(np.mean(found))) for way, found in right.items())
        yield WAYS[3], self._in_one_place(X_test, y_test)

    def linked(self) -> tuple[float, float] | None:
        """Linkage of the first party's rows by the strongest simple attack, beside targets alone; None if they stay."""
        if self.situation.private:
            return None
        own = next(iter(self.split.values()))
        found = audit(
            self.parties[0],
            own.X,
            self.anchor,
            y=own.y,
            anchor_target=self.anchor_target,
            public=self.data.X[self.public],
            levels=["T2"],
            attacks=["linear regression"],
            random_state=self.seed,
        ).headline("linkability")
        if found is None or found.baseline is None:
            return None
        return float(found.value), float(found.baseline)

    def _party(self, name: Any) -> Party:
        public = self.data.X[self.public]
        if self.situation.private:
            return Party.private(name, public, n_components=N_COMPONENTS, random_state=self.secrets)
        return Party(name, obfuscator("pca", N_COMPONENTS), fit_on=public, random_state=self.secrets)

    def _in_one_place(self, X_test: FloatArray, y_test: Any) -> float:
        """Kernel ridge regression on everybody's raw rows, which may not be."""
        X, y, _ = self.split.pooled()
        if self.situation.labelled:
            X, y = np.vstack([X, self.data.X[self.public]]), np.concatenate([y, self.data.y[self.public]])
        return float(LandmarkRidgeClassifier(X, gamma=median_gamma(X)).fit(X, y).score(X_test, y_test))


def _interval(values: FloatArray) -> tuple[float, float]:
    if len(values) < 2:
        return float(values.mean()), float("nan")
    half_width = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(half_width)


_MARKERS = ("o", "^", "s")
_COLOURS = ("#0072B2", "#D55E00", "#009E73")
"""Okabe and Ito's palette, told apart by readers with any colour vision."""
_WAY_COLOURS = {"alone": "#7f7f7f", "collaboration": "#56B4E9", "pooled": "#0072B2", "all rows in one place": "#cccccc"}
_N_CLASSES, _N_SHOWN, _N_SHOWN_PUBLIC = 3, 60, 300


def demonstration_figure(data: Dataset, demonstration: Demonstration) -> Figure:
    """Rows as they are shared, the same rows integrated, and accuracies beside what a party has alone.

    The first two panels are read by the same projection, learnt on the anchor: as the first party maps it, and as the
    collaboration does.

    Parameters
    ----------
    data : Dataset
        Of classes.
    demonstration : Demonstration
    """
    figure_module = require("matplotlib.figure", "plots")
    figure: Figure = figure_module.Figure(figsize=(13, 4.4), layout="constrained")
    before, after, bars = figure.subplots(1, 3, width_ratios=(1, 1, 1.5))
    _draw_alignment(before, after, data)
    _draw_bars(bars, demonstration)
    return figure


def _draw_alignment(before: Axes, after: Axes, data: Dataset) -> None:
    classes = np.unique(data.y)[:_N_CLASSES]
    kept = np.isin(data.y, classes)
    X, y = data.X[kept], data.y[kept]
    split = split_parties(X, y, n_parties=3, n_per_party=_N_SHOWN, random_state=0)
    public = split.rest[:_N_SHOWN_PUBLIC]
    anchor, target = X[public], y[public]
    parties = [Party(name, obfuscator("pca", 20), fit_on=anchor).fit(own.X, own.y) for name, own in split.items()]
    shares = {party.name: party.share(anchor, target) for party in parties}
    odc = ODC(reference="consensus").fit({name: share.anchor_representation for name, share in shares.items()})
    raw = {name: share.representation for name, share in shares.items()}
    first = next(iter(shares.values())).anchor_representation
    mapped = odc.transform({name: share.anchor_representation for name, share in shares.items()})
    common = np.mean(list(mapped.values()), axis=0)
    panels = ((before, raw, first), (after, odc.transform(raw), common))
    for axes, rows, reference in panels:
        flat = LinearDiscriminantAnalysis(n_components=2).fit(reference, target)
        for marker, (name, share) in zip(_MARKERS, shares.items(), strict=True):
            _draw_rows(axes, flat.transform(rows[name]), share.target, classes, marker)
        axes.set_xticks([])
        axes.set_yticks([])
    before.set_title("As shared: each party's map is its secret", fontsize=10.5)
    after.set_title("Integrated: a class is in one place", fontsize=10.5)
    lines = require("matplotlib.lines", "plots")
    handles = [
        lines.Line2D([], [], marker=marker, linestyle="", color="#444444", label=str(name))
        for marker, name in zip(_MARKERS, shares, strict=True)
    ]
    before.legend(handles=handles, fontsize=8, frameon=False, loc="best")


def _draw_rows(axes: Axes, rows: FloatArray, target: Any, classes: Any, marker: str) -> None:
    colours = np.array(_COLOURS)[np.searchsorted(classes, target)]
    axes.scatter(rows[:, 0], rows[:, 1], c=colours, marker=marker, s=24, linewidths=0.4, edgecolors="white", alpha=0.85)


def _draw_bars(axes: Axes, demonstration: Demonstration) -> None:
    height = 0.8 / len(_WAY_COLOURS)
    for number, situation in enumerate(SITUATIONS):
        for offset, (way, colour) in enumerate(_WAY_COLOURS.items()):
            mean, half_width = demonstration.interval(situation, way)
            position = number + (offset - (len(_WAY_COLOURS) - 1) / 2) * height
            axes.barh(position, mean, height, color=colour, label=way if number == 0 else None,
                      xerr=np.nan_to_num(half_width), error_kw={"elinewidth": 1, "ecolor": "#444444"})  # fmt: skip
            axes.annotate(f"{mean:.3f}", (0.02, position), xycoords=("axes fraction", "data"), va="center",
                          fontsize=7.5, color="white" if way in ("alone", "pooled") else "#222222")  # fmt: skip
    axes.set_yticks(
        range(len(SITUATIONS)), [_label(demonstration, situation) for situation in SITUATIONS], fontsize=8.5
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("accuracy on new rows, mean and 95 % interval")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.4, 1.0))


def _label(demonstration: Demonstration, situation: Situation) -> str:
    risk = demonstration.linked[situation]
    public = "with targets" if situation.labelled else "without targets"
    told = "no own row leaves" if risk is None else f"rows linked: {100 * risk[0]:.0f} %"
    return f"public rows {public}\n{'private' if situation.private else 'undefended'}; {told}"


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; text-align: right; border-bottom: 1px solid #8886; }
th:first-child, td:first-child { text-align: left; min-width: 9rem; } td + td:not(:last-child) { white-space: nowrap; }
td.pooled { font-weight: 600; }
figure { margin: 1.5rem 0; } img { max-width: 100%; background: #fff; } .note { opacity: .8; font-size: .92rem; }
@media (max-width: 40rem) {
  table { font-size: .78rem; } th, td { padding: .2rem .25rem; } th:first-child, td:first-child { min-width: 5rem; }
  td + td:not(:last-child) { white-space: normal; }
  figure { overflow-x: auto; } img { max-width: none; width: 56rem; }
}
code { background: #8882; padding: 0 .25rem; overflow-wrap: anywhere; }
"""


def demonstration_page(demonstration: Demonstration, dataset: str, figure: Figure, command: str) -> str:
    """Write the demonstration as a page without outside references.

    Parameters
    ----------
    demonstration : Demonstration
    dataset : str
    figure : matplotlib.figure.Figure
    command : str
        What reproduces the page.
    """
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in demonstration.sentences())
    heads = "".join(f"<th>{escape(way)}</th>" for way in WAYS)
    rows = "".join(_row(demonstration, situation) for situation in SITUATIONS)
    told = "".join(f"<li>{escape(benefit.sentence)}</li>" for benefit in demonstration.benefits[SITUATIONS[2]])
    parties = f"{demonstration.n_parties} parties with {demonstration.n_rows} rows each of {escape(dataset)}"
    drawn = f"{N_JUDGING} parties and {len(demonstration.seeds)} draws"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>datacollab: does collaborating pay?</title><style>{_STYLE}</style></head><body>
<h1>Does collaborating pay? {parties}</h1>
<ul>{said}</ul>
<div class="wide"><table><tr><th>what parties have besides, and how they share</th>{heads}<th>pooled − alone</th>
<th>own rows linked (by targets alone)</th></tr>{rows}</table></div>
<figure><img alt="Rows of three parties as shared and integrated, and accuracies of all situations"
src="data:image/png;base64,{_png(figure)}"><figcaption class="note">Left and middle: rows of three parties (markers)
and three classes (colours), read by one projection. Right: accuracy on {N_TEST} new rows.</figcaption></figure>
<h2>How to read this</h2>
<p class="note"><b>alone</b>: the best that a party has without the others, of forests, kernel ridge and logistic
regressions on its own rows and on the {N_PUBLIC} public rows; where these have no targets, it learns from them by
self-training and label spreading. <b>collaboration</b>: the common model, chosen by the analyst among integration
methods and models. <b>pooled</b>: what the party uses in the end, both of them weighted by what they say of its own
rows when these are left out. <b>all rows in one place</b>: a kernel ridge regression on the raw rows of all parties,
which is what may not be done.</p>
<p class="note"><b>undefended</b>: PCA with {N_COMPONENTS} columns, fitted on the public rows and rotated in secret;
each shared row stands for one of a party's. <b>private</b>: as many of the anchor's rows as the party
has, labelled at the party; no row or target of its own, and nothing proven. The anchor has {N_ANCHORS}
rows, interpolated between the public ones. Means are over {drawn}, intervals Student's t over the draws. Linkage is
that of the first draw and one attacker who holds the anchor; <code>datacollab audit</code> tries more.</p>
<h2>What parties are told</h2>
<p class="note">Without looking at new rows; here with public rows without targets, undefended, in the first draw.</p>
<ul>{told}</ul>
<p class="note">Reproduce with <code>{escape(command)}</code></p>
</body></html>
"""


def _row(demonstration: Demonstration, situation: Situation) -> str:
    cells = "".join(
        f'<td class="{way.partition(" ")[0]}">{_number(*demonstration.interval(situation, way))}</td>' for way in WAYS
    )
    risk = demonstration.linked[situation]
    told = "none stands for one" if risk is None else f"{100 * risk[0]:.0f} % ({100 * risk[1]:.0f} %)"
    gain = _number(*demonstration.gain(situation), sign="+")
    return f"<tr><td>{escape(situation.name)}</td>{cells}<td>{gain}</td><td>{told}</td></tr>"


def _number(mean: float, half_width: float, sign: str = "") -> str:
    return f"{mean:{sign}.3f}" if math.isnan(half_width) else f"{mean:{sign}.3f} ±&nbsp;{half_width:.3f}"


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
