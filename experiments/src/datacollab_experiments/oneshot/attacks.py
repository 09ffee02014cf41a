r"""Attacks on the messages of a method: the same attackers for all methods.

Of one party, the victim, some rows are asked about.  In each of many worlds every other row, of all parties, is drawn
anew from the table, within the mix of its party.  Of the *members*, each is in the party or not by a coin, and another
row is there instead; those whose targets are *asked* for are always in it, with their own target or another one by a
coin.  The party's size is always the same.  The method is played in each world, all that is random in it anew.

An attacker knows the record, the table's other rows and how the method works, and sees the messages to the receiver,
to a party, or to both together.  The evidence of the messages on a record (`messages`), less its mean over worlds, goes
into linear discriminant analysis, with shrunken covariance, that learns from four fifths of the worlds and judges the
others, in turn: a likelihood ratio with shadow models (Carlini et al., 2022) for normal evidence.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..pays.draws import Draw, Rows
from ..pays.library import pooled
from ..pays.tables import Array
from .messages import Records
from .methods import VICTIM, Method

ATTACKERS = ("receiver", "party", "together")
QUESTIONS = ("membership", "target")

# Records of each question.
MOST_ASKED = 12
# Worlds that judge have no part in what is learnt.
N_FOLDS = 5
N_NEIGHBOURS = 4
N_SLICES = 10
# Standard deviation of neighbours, over the range of a column.
_NEARBY = 0.05
# The rate of false alarms at which hits are counted; by chance hits are as many.
LEAST_FALSE = 0.01


@dataclass(frozen=True, eq=False)
class World:
    """Everybody's rows, and the truth of each question.

    Attributes
    ----------
    states : mapping of str to ndarray of shape (n_asked,)
        Whether each member is in, and whether each target is the record's own.
    """

    drawn: Draw
    states: Mapping[str, NDArray[np.bool_]]


class Worlds:
    """Worlds of one draw, and the records that are asked about."""

    def __init__(self, drawn: Draw) -> None:
        self.drawn = drawn
        rng = np.random.default_rng([drawn.seed, 71])
        own = drawn.parties[VICTIM]
        # A third of the party's rows at most is asked for either question.
        n = min(MOST_ASKED, len(own) // 3)
        order = rng.permutation(len(own))
        # Members and asked targets are different rows, so that neither question answers the other.
        asked = order[: 2 * n]
        left = order[2 * n :]
        y = own.y[asked]
        # Any class but its own, each as likely.
        other = (y + rng.integers(1, drawn.n_classes, len(y))) % drawn.n_classes
        width = _NEARBY * (drawn.bounds[1] - drawn.bounds[0])
        near = own.X[asked] + width * rng.standard_normal((N_NEIGHBOURS, len(y), own.X.shape[1]))
        self.records = Records(own.X[asked], y, other, near)
        self.n_members = n
        others = {name: rows for name, rows in drawn.parties.items() if name != VICTIM}
        rest = Rows(own.X[left], own.y[left])
        self.pool = pooled({"rest": rest, **others, "test": drawn.test, "held": drawn.held})
        stratum = self._strata()
        self.strata = {each: np.flatnonzero(stratum == each) for each in np.unique(stratum)}
        ends = np.cumsum([len(rest), *map(len, others.values())])
        mixes = np.split(stratum[: ends[-1]], ends[:-1])
        self.mixes = dict(zip((VICTIM, *others), mixes, strict=True))

    def _strata(self) -> NDArray[np.intp]:
        """Return the strata that parties mix: one, classes, or slices along the first principal direction."""
        split = self.drawn.setting.split
        if split != "feature-shift":
            if split == "label-skew":
                return self.pool.y.astype(np.intp)
            return np.zeros(len(self.pool), dtype=np.intp)
        # The split deals slices along this direction, so the worlds keep each party's mix of them.
        place = PCA(1).fit_transform(StandardScaler().fit_transform(self.pool.X))[:, 0].argsort().argsort()
        return np.asarray(place * N_SLICES // len(place))

    def world(self, number: int) -> World:
        """Draw one world."""
        rng = np.random.default_rng([self.drawn.seed, 72, number])
        n = self.n_members
        # Coins: an attacker that knows nothing is right half of the time.
        inside, true = rng.random((2, n)) < 0.5
        records = self.records
        # Rows of a stratum are taken in turn: none comes twice while there are others.
        shuffled = {each: rng.permutation(rows) for each, rows in self.strata.items()}
        taken: dict[int, int] = defaultdict(int)

        def others(mix: NDArray[np.intp], n_rows: int) -> Rows:
            index = []
            for stratum in rng.choice(mix, n_rows):
                rows = shuffled[stratum]
                index.append(rows[taken[stratum] % len(rows)])
                taken[stratum] += 1
            return Rows(self.pool.X[index], self.pool.y[index])

        parties = {}
        for name, own in self.drawn.parties.items():
            if name != VICTIM:
                parties[name] = others(self.mixes[name], len(own))
                continue
            members = np.flatnonzero(inside)
            asked = Rows(records.X[n:], np.where(true, records.y[n:], records.other[n:]))
            # Other rows replace the members that are out: the party's size says nothing.
            filled = others(self.mixes[name], len(own) - n - len(members))
            parties[name] = pooled({"in": Rows(records.X[members], records.y[members]), "asked": asked, "": filled})
        drawn = replace(self.drawn, parties=parties, seed=int(rng.integers(2**31)))
        return World(drawn, {"membership": inside, "target": true})


@lru_cache(maxsize=1)
def _worlds(drawn: Draw, n_worlds: int) -> tuple[Worlds, list[World]]:
    """Return the worlds of a draw, in which all methods are played."""
    worlds = Worlds(drawn)
    return worlds, [worlds.world(number) for number in range(n_worlds)]


def attack_method(method: Method, drawn: Draw, n_worlds: int) -> dict[str, float]:
    """Attack a method, and measure the success.

    Returns
    -------
    dict of str to float
        "question|attacker|measure": the area under the curve "AUC" and its standard error "se", the rate of hits at
        1 % of false alarms "TPR", and "advantage", hits less false alarms of the attacker's own threshold.
    """
    worlds, every = _worlds(drawn, n_worlds)
    evidence: dict[str, list[Array]] = defaultdict(list)
    states: dict[str, list[NDArray[np.bool_]]] = defaultdict(list)
    for world in every:
        for attacker, messages in method.play(world.drawn, attacked=True).list_messages().items():
            # Where nothing is sent there is evidence of no numbers.
            nothing = np.empty((len(worlds.records.y), 0))
            evidence[attacker].append(np.hstack([nothing, *(each.evidence(worlds.records) for each in messages)]))
        for question, state in world.states.items():
            states[question].append(state)
    n = worlds.n_members
    scores = {}
    for attacker, found in evidence.items():
        for question, asked in zip(QUESTIONS, (slice(0, n), slice(n, 2 * n)), strict=True):
            for measure, value in judge_evidence(np.array(found)[:, asked], np.array(states[question])).items():
                scores[f"{question}|{attacker}|{measure}"] = value
    return scores


def judge_evidence(evidence: Array, state: NDArray[np.bool_]) -> dict[str, float]:
    """Return how well evidence tells states, learnt in some worlds and judged in the others.

    Parameters
    ----------
    evidence : ndarray of shape (n_worlds, n_records, n_numbers)
    state : ndarray of shape (n_worlds, n_records)
    """
    if evidence.shape[2] == 0:
        return {"AUC": 0.5, "se": 0.0, "TPR": LEAST_FALSE, "advantage": 0.0}
    # Whole worlds are left out: records of one world share all its rows.
    fold = np.arange(len(evidence)) % N_FOLDS
    scores = np.empty(state.shape)
    areas = []
    for each in range(N_FOLDS):
        learn = fold != each
        judge = fold == each
        # The mean of both states' means: records that were in more often are no different by it.
        middle = np.mean([_mean(evidence[learn], state[learn] == which) for which in (True, False)], axis=0)
        # Shrunken covariance: some evidence has more numbers than there are worlds.
        ratio = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"))
        ratio.fit(_flat(evidence[learn] - middle), state[learn].ravel())
        scores[judge] = ratio.decision_function(_flat(evidence[judge] - middle)).reshape(-1, state.shape[1])
        areas.append(float(roc_auc_score(state[judge].ravel(), scores[judge].ravel())))
    truth = state.ravel()
    said = scores.ravel()
    # Hits at few false alarms count more than the area: an attacker may point at one person only.
    false, hits, _ = roc_curve(truth, said)
    return {
        "AUC": float(np.mean(areas)),
        "se": float(np.std(areas, ddof=1) / N_FOLDS**0.5),
        "TPR": float(hits[false <= LEAST_FALSE].max()),
        "advantage": float((said[truth] > 0).mean() - (said[~truth] > 0).mean()),
    }


def _flat(evidence: Array) -> Array:
    return evidence.reshape(-1, evidence.shape[2])


def _mean(evidence: Array, which: NDArray[np.bool_]) -> Array:
    """Return each record's mean over some worlds, shape (n_records, n_numbers); 0 if there are none."""
    n = np.maximum(which.sum(axis=0), 1)[:, None]
    return np.asarray(np.einsum("wrk,wr->rk", evidence, which.astype(np.float64)) / n)
