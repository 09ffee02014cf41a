"""Reconstruction attacks on the parties of a trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from .._validation import FloatArray, PartyName
from ..datasets import Dataset
from ..privacy import LinearRegressionAttack, MLPAttack, PseudoinverseAttack, ReconstructionAttack, label_match
from ._defended import published_rows
from ._definition import Attacks
from ._trial import Trial

__all__ = ["AttackScore", "Target", "make_target", "score_attack"]

_ATTACKS: Mapping[str, Callable[[int], ReconstructionAttack]] = {
    "LR": lambda seed: LinearRegressionAttack(),
    "MLP": lambda seed: MLPAttack(random_state=seed),
    "PINV": lambda seed: PseudoinverseAttack(),
}


@dataclass(frozen=True, eq=False)
class Target:
    """The parties' own rows that attacks are to reconstruct, and who judges the result.

    Attributes
    ----------
    originals, representations : dict of party to ndarray of shape (n_rows, ...)
        Own rows of the party, and what it shares of them; rows that a defence suppresses are not attacked.
    targets : ndarray of shape (n_rows_in_all,)
        In the order of the parties.
    leaked : ndarray of shape (n_leaked,)
        Numbers of the anchor rows that the attacker knows.
    judge : classifier
    """

    originals: dict[PartyName, FloatArray]
    representations: dict[PartyName, FloatArray]
    targets: NDArray[Any]
    leaked: NDArray[np.int64]
    judge: Any


@dataclass(frozen=True)
class AttackScore:
    """How one attack did in one trial.

    Attributes
    ----------
    scores : dict of str to float
        As in `Row`.
    steps : dict of str to float
        Wall times in seconds of "attack" and of "judge".
    images : ndarray of shape (2, n_targets, n_features) or None
        For each target one original and its reconstruction.
    """

    scores: dict[str, float]
    steps: dict[str, float]
    images: FloatArray | None = None


def make_target(trial: Trial, attacks: Attacks, data: Dataset) -> Target:
    """Choose the rows to reconstruct, and train the judge on rows that are nowhere in the trial.

    Parameters
    ----------
    trial : Trial
    attacks : Attacks
    data : Dataset

    Returns
    -------
    Target

    Raises
    ------
    ValueError
        When there are too few rows of a target, or for the judge.
    """
    if len(trial.unused) < attacks.n_judge:
        raise ValueError(
            f"The judge needs n_judge={attacks.n_judge} rows, but {data.name} has {len(trial.unused)} that are nowhere "
            "in the trial. Lower n_judge, or the numbers of parties, test rows or anchors."
        )
    random = np.random.RandomState([trial.seed, 1])
    judged = random.choice(trial.unused, attacks.n_judge, replace=False)
    owned = _draw_rows(trial, attacks, random)
    represented: dict[PartyName, FloatArray] = {}
    for name, own in trial.split.items():
        owned[name], represented[name] = published_rows(trial.parties[name], own.X, owned[name], trial.anchor)
    judge = RandomForestClassifier(random_state=trial.seed).fit(data.X[judged], data.y[judged])
    return Target(
        originals={name: own.X[owned[name]] for name, own in trial.split.items()},
        representations=represented,
        targets=np.concatenate([own.y[owned[name]] for name, own in trial.split.items()]),
        leaked=np.flatnonzero(np.isin(trial.anchor_target, attacks.leaked_targets)),
        judge=judge,
    )


def score_attack(trial: Trial, target: Target, name: str) -> AttackScore:
    """Attack each party with its own leaked pairs, and judge all reconstructions together.

    Parameters
    ----------
    trial : Trial
    target : Target
    name : {"LR", "MLP", "PINV"}

    Returns
    -------
    AttackScore
    """
    known = trial.anchor[target.leaked]
    start = time.perf_counter()
    reconstructed = np.vstack(
        [
            _ATTACKS[name](trial.seed)
            .fit(share.anchor_representation[target.leaked], known)
            .reconstruct(target.representations[share.party])
            for share in trial.shares
            if len(target.representations[share.party])
        ]
    )
    attacked = time.perf_counter()
    originals = np.vstack(list(target.originals.values()))
    match = label_match(target.judge, reconstructed, target.targets)
    mean_image = np.broadcast_to(known.mean(axis=0), originals.shape)
    scores = {
        "reconstruction_accuracy": match.accuracy,
        "most_common_share": match.most_common_share,
        "mean_image_accuracy": label_match(target.judge, mean_image, target.targets).accuracy,
        "original_accuracy": label_match(target.judge, originals, target.targets).accuracy,
    }
    _, first = np.unique(target.targets, return_index=True)
    return AttackScore(
        scores,
        {"attack": attacked - start, "judge": time.perf_counter() - attacked},
        np.stack([originals[first], reconstructed[first]]),
    )


def _draw_rows(trial: Trial, attacks: Attacks, random: np.random.RandomState) -> dict[PartyName, NDArray[np.int64]]:
    """Numbers of each party's rows that are attacked: as many of every target, wherever they are."""
    _, y, _ = trial.split.pooled()
    bounds = np.cumsum([0, *(len(own.y) for own in trial.split.values())])
    drawn = []
    for value in np.setdiff1d(y, attacks.leaked_targets):
        candidates = np.flatnonzero(y == value)
        if len(candidates) < attacks.n_per_target:
            raise ValueError(
                f"n_per_target={attacks.n_per_target} rows of each target are to be reconstructed, but one has "
                f"{len(candidates)} among the parties' {len(y)} rows. Lower n_per_target, or raise n_per_party."
            )
        drawn.append(random.choice(candidates, attacks.n_per_target, replace=False))
    rows = np.sort(np.concatenate(drawn))
    return {
        name: rows[(rows >= low) & (rows < high)] - low
        for name, low, high in zip(trial.split, bounds[:-1], bounds[1:], strict=True)
    }
