"""Means of groups taken apart.

Five parties of 100 random MNIST rows each share means of at least five rows of a class; f_k is PCA with 16 columns,
fitted on half of 1,000 public rows, which are the anchor.  The attacker has the anchor, and tries a party's rows and
900 strangers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import datacollab as dc
from datacollab.party import Microaggregation
from datacollab.risk.attacks import AffineEstimate, demix, membership, representation_distance_scores

from ..solvers.mnist_parties import Array

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Demixed:
    """What became of parties' shares: sizes of groups, those of groups taken apart, how many of these wrongly, AUCs."""

    sizes: tuple[int, ...]
    solved: tuple[int, ...]
    n_wrong: int
    auc: float
    auc_by_distance: float
    seconds: float

    def cells(self) -> list[str]:
        counts = (len(self.sizes), len(self.solved), self.n_wrong)
        fives = f"{self.solved.count(5)} of {self.sizes.count(5)}"
        return [*map(str, counts), fives, f"{self.auc:.3f}", f"{self.auc_by_distance:.3f}", f"{self.seconds:.0f}"]


def demixed(
    X: Array,
    y: Labels,
    seed: int,
    *,
    n_own: int = 100,
    n_public: int = 1000,
    n_strangers: int = 900,
    n_columns: int = 16,
) -> Demixed:
    """One party's share attacked."""
    order = np.random.RandomState(seed).permutation(len(X))
    own, public, strangers = np.split(order[: n_own + n_public + n_strangers], [n_own, n_own + n_public])
    f = dc.obfuscator("pca", n_columns)
    random = np.random.RandomState(seed)
    party = dc.Party("attacked", f, fit_on=X[public], defences=[Microaggregation(5)], random_state=random)
    share, places = party.fit(X[own], y[own]).share_with_order(X[public], y[public])
    n_members = len(share.target)
    # Candidate i stands behind shared row i, as far as there are rows; of classes that are too small none is shared.
    people = np.vstack([X[own][places], X[strangers]])
    estimate = AffineEstimate(X[public], share.anchor_representation)
    started = time.process_time()
    found = demix(
        share.representation,
        share.target,
        people,
        estimate,
        anchor_representation=share.anchor_representation,
        anchor_target=y[public],
    )
    seconds = time.process_time() - started
    pairs = [(rows, each) for rows, each in zip(found.groups, found.members, strict=True) if each is not None]

    def auc(scores: Array) -> float:
        return membership(scores[:n_members], scores[n_members:]).auc

    distances = representation_distance_scores(estimate(people), share.representation)
    return Demixed(
        sizes=tuple(len(rows) for rows in found.groups),
        solved=tuple(len(rows) for rows, _ in pairs),
        n_wrong=sum(set(rows) != set(members) for rows, members in pairs),
        auc=auc(found.scores(distances)),
        auc_by_distance=auc(distances),
        seconds=seconds,
    )


def demixing_figures(found: Sequence[Demixed]) -> list[list[str]]:
    rows = [[str(number), *one.cells()] for number, one in enumerate(found, 1)]
    everybody = Demixed(
        sizes=tuple(size for one in found for size in one.sizes),
        solved=tuple(size for one in found for size in one.solved),
        n_wrong=sum(one.n_wrong for one in found),
        auc=float(np.mean([one.auc for one in found])),
        auc_by_distance=float(np.mean([one.auc_by_distance for one in found])),
        seconds=sum(one.seconds for one in found),
    )
    return [*rows, ["all", *everybody.cells()]]
