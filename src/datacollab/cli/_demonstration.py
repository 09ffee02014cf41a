"""What collaborating brings to parties as they are: few own rows, some public ones, and a risk to choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from .._validation import FloatArray
from ..analyst import Analyst
from ..anchor import SMOTEAnchor
from ..datasets import Dataset, PartySplit, split_parties
from ..linalg import median_gamma
from ..model import LandmarkRidgeClassifier
from ..party import Benefit, Party, obfuscator
from ..risk.audit import audit

__all__ = ["SITUATIONS", "WAYS", "Demonstration", "Situation", "demonstrate"]

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
