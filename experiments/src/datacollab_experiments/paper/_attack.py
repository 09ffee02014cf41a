"""Attacks on the parties of a trial: reconstructions, which a judge looks at, and the library's audit."""

import copy
import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import RandomForestClassifier

from datacollab._validation import FloatArray, PartyName
from datacollab.datasets import Dataset
from datacollab.errors import AgreementError
from datacollab.party import Party
from datacollab.risk.attacks import LinearRegressionAttack, ReconstructionAttack
from datacollab.risk.attacks._attack import check_rows
from datacollab.risk.audit import AuditResult, audit
from datacollab.risk.audit._findings import AVERAGED_NAME, FORWARD

from ._attackers import MLPAttack, PseudoinverseAttack
from ._condition import Condition
from ._definition import Attacks
from ._trial import Trial, list_published, make_obfuscator


@dataclass(frozen=True, kw_only=True)
class LabelMatch:
    """A judge's verdict on reconstructions.

    Attributes
    ----------
    accuracy : float
        Share of the reconstructions that the judge puts into the class of the original row.
    most_common_share : float
        Share of the reconstructions in the judge's most frequent class.  At 1 the judge sees one class only, and
        `accuracy` is that class's share of the targets, whatever the representation contains.
    """

    accuracy: float
    most_common_share: float
    n_rows: int


def label_match(judge: Any, reconstructions: ArrayLike, targets: ArrayLike) -> LabelMatch:
    """Count the reconstructions that a fitted classifier puts into the classes of their originals.

    **It is not a measure of risk**: the analyst knows the targets anyway; even the true class's mean row need not be
    recognised; and a reconstruction of a wrong class can still be nearest to its own original.  A rate at or below
    chance means that the attack was too weak, not that the representation is safe.

    Raises
    ------
    AgreementError
        If there is not one target per reconstruction, or the judge does not know all classes among the targets.
    """
    X = check_rows(reconstructions, "The table of reconstructions")
    y = np.asarray(targets)
    if y.shape != (X.shape[0],):
        raise AgreementError(
            f"targets has shape {y.shape}, but there are {X.shape[0]} reconstructions; give one target per row, shape "
            f"({X.shape[0]},)."
        )
    # Classes of another type would never match, and the attack would look harmless.
    unknown = set(y.tolist()) - set(judge.classes_.tolist())
    if unknown:
        raise AgreementError(
            f"The judge does not know {len(unknown)} of the {len(set(y.tolist()))} classes in targets; fit it on all "
            "classes, with labels of the same type."
        )
    predicted = judge.predict(X)
    # A judge that always says one class is right by that class's share alone.
    _, counts = np.unique(predicted, return_counts=True)
    return LabelMatch(
        accuracy=float(np.mean(predicted == y)), most_common_share=float(counts.max() / y.size), n_rows=y.size
    )


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
        Own rows of the party, and their shared representations; rows that a defence suppresses are not attacked.
    leaked_representations : dict of party to ndarray of shape (n_leaked, n_components)
        The leaked anchor rows through the party's f_k.
    targets : ndarray of shape (n_rows_in_all,)
        Targets in the order of the parties.
    leaked : ndarray of shape (n_leaked,)
        Numbers of the anchor rows that the attacker knows.
    """

    originals: dict[PartyName, FloatArray]
    representations: dict[PartyName, FloatArray]
    leaked_representations: dict[PartyName, FloatArray]
    targets: NDArray[Any]
    leaked: NDArray[np.int64]
    judge: Any


@dataclass(frozen=True)
class AttackScore:
    """How one attack did in one trial.

    Attributes
    ----------
    steps : dict of str to float
        Wall times in seconds of "attack" and of "judge".
    images : ndarray of shape (2, n_targets, n_features) or None
        An original and its reconstruction for each target.
    """

    scores: dict[str, float]
    steps: dict[str, float]
    images: FloatArray | None = None


def make_target(trial: Trial, attacks: Attacks, data: Dataset, condition: Condition) -> Target:
    """Choose the rows to reconstruct, and train the judge on rows that are nowhere in the trial.

    Raises
    ------
    ValueError
        When there are too few rows of a target, for the party that is attacked or for the judge, or when such a party
        is wanted beside a defence.
    """
    if len(trial.unused) < attacks.n_judge + attacks.n_attacked:
        further = ""
        if attacks.n_attacked:
            further = f" and a further party n_attacked={attacks.n_attacked}"
        raise ValueError(
            f"The judge needs n_judge={attacks.n_judge} rows{further}, but {data.name} has {len(trial.unused)} that "
            "are nowhere in the trial. Lower n_judge, or the numbers of parties, test rows or anchors."
        )
    # Streams of their own, so that attacks change no method's random numbers.
    random = np.random.RandomState([trial.seed, 1])
    judged = random.choice(trial.unused, attacks.n_judge, replace=False)
    # The judge sees rows that no party, anchor or test has.
    judge = RandomForestClassifier(random_state=trial.seed).fit(data.X[judged], data.y[judged])
    # The attacker knows the anchor rows of the leaked classes, and attacks rows of the others.
    leaked = np.flatnonzero(np.isin(trial.anchor_target, attacks.leaked_targets))
    if attacks.n_attacked:
        return _further_party(trial, attacks, data, condition, np.setdiff1d(trial.unused, judged), leaked, judge)
    owned = _draw_rows(trial, attacks, random)
    represented: dict[PartyName, FloatArray] = {}
    for name, own in trial.split.items():
        owned[name], represented[name] = list_published(trial.parties[name], own.X, owned[name], trial.anchor)
    return Target(
        originals={name: own.X[owned[name]] for name, own in trial.split.items()},
        representations=represented,
        leaked_representations={share.party: share.anchor_representation[leaked] for share in trial.shares},
        targets=np.concatenate([own.y[owned[name]] for name, own in trial.split.items()]),
        leaked=leaked,
        judge=judge,
    )


def score_attack(trial: Trial, target: Target, name: str) -> AttackScore:
    """Attack each party with its own leaked pairs, and judge all reconstructions together."""
    known = trial.anchor[target.leaked]
    start = time.perf_counter()
    reconstructed = np.vstack(
        [
            _ATTACKS[name](trial.seed).fit(target.leaked_representations[party], known).reconstruct(represented)
            for party, represented in target.representations.items()
            if len(represented)
        ]
    )
    attacked = time.perf_counter()
    originals = np.vstack(list(target.originals.values()))
    match = label_match(target.judge, reconstructed, target.targets)
    # An attack that learns nothing has the mean leaked row at best.
    mean_image = np.broadcast_to(known.mean(axis=0), originals.shape)
    scores = {
        "reconstruction_accuracy": match.accuracy,
        "most_common_share": match.most_common_share,
        "mean_image_accuracy": label_match(target.judge, mean_image, target.targets).accuracy,
        "original_accuracy": label_match(target.judge, originals, target.targets).accuracy,
    }
    # One image of each class is enough to look at.
    _, first = np.unique(target.targets, return_index=True)
    return AttackScore(
        scores,
        {"attack": attacked - start, "judge": time.perf_counter() - attacked},
        np.stack([originals[first], reconstructed[first]]),
    )


def _further_party(
    trial: Trial,
    attacks: Attacks,
    data: Dataset,
    condition: Condition,
    rows: NDArray[np.int64],
    leaked: NDArray[np.int64],
    judge: Any,
) -> Target:
    """One more party, which takes no part in the collaboration, and those of its rows that are attacked."""
    if condition.defence != "none":
        raise ValueError(f"n_attacked={attacks.n_attacked} is for parties without a defence; leave one of them out.")
    random = np.random.RandomState([trial.seed, 3])
    y = data.y[rows]
    attacked = _choose(y, attacks, random, "rows that are nowhere in the trial")
    if attacks.n_attacked < len(attacked):
        raise ValueError(
            f"A party of n_attacked={attacks.n_attacked} rows cannot have n_per_target={attacks.n_per_target} of every "
            f"target, {len(attacked)} in all. Raise n_attacked, or lower n_per_target."
        )
    # The party's other rows come as they are, whatever their class.
    others = np.setdiff1d(np.arange(len(rows)), attacked)
    others = random.choice(others, attacks.n_attacked - len(attacked), replace=False)
    X = data.X[rows[np.concatenate([attacked, others])]]
    # Which metric UMAP has goes by the party's number, and here by the seed: over the seeds it has all of them.
    f_k = make_obfuscator(condition, data, trial.seed, np.random.RandomState([trial.seed, 0, 3]))
    party = Party("attacked", f_k).fit(X, np.concatenate([y[attacked], y[others]]))
    return Target(
        originals={party.name: X[: len(attacked)]},
        representations={party.name: party.obfuscate(X)[: len(attacked)]},
        leaked_representations={party.name: party.obfuscate(trial.anchor[leaked])},
        targets=y[attacked],
        leaked=leaked,
        judge=judge,
    )


def _choose(y: NDArray[Any], attacks: Attacks, random: np.random.RandomState, whose: str) -> NDArray[np.int64]:
    """Numbers of the rows that are attacked: as many of every target that was not leaked."""
    drawn = []
    for value in np.setdiff1d(y, attacks.leaked_targets):
        candidates = np.flatnonzero(y == value)
        if len(candidates) < attacks.n_per_target:
            raise ValueError(
                f"n_per_target={attacks.n_per_target} rows of each target are to be reconstructed, but one has "
                f"{len(candidates)} among the {whose}. Lower n_per_target, or raise n_per_party."
            )
        drawn.append(random.choice(candidates, attacks.n_per_target, replace=False))
    return np.concatenate(drawn)


def _draw_rows(trial: Trial, attacks: Attacks, random: np.random.RandomState) -> dict[PartyName, NDArray[np.int64]]:
    """Numbers of each party's rows that are attacked: as many of every target, wherever they are."""
    _, y, _ = trial.split.pooled()
    bounds = np.cumsum([0, *(len(own.y) for own in trial.split.values())])
    rows = np.sort(_choose(y, attacks, random, f"parties' {len(y)} rows"))
    return {
        name: rows[(rows >= low) & (rows < high)] - low
        for name, low, high in zip(trial.split, bounds[:-1], bounds[1:], strict=True)
    }


_ZERO_LEAK = "T0"
_FULL_LEAK = "T2"
_MAP = "T2f"
# Those that are strongest on some obfuscator, so that a trial does not take minutes.
_AUDITED = ("Procrustes", "kernel ridge", "emulator", AVERAGED_NAME, FORWARD, "membership", "subspace")

# Rows that the attacker has beside the anchor, and strangers to tell the party's rows from.
_N_PUBLIC = 5000
_N_CONTROL = 500


def score_risks(trial: Trial, data: Dataset) -> AttackScore:
    """Audit one party: another one with every seed.

    The attacker is the analyst together with another party, and so knows the share and all anchor rows; it also has
    up to 5,000 rows of the same kind, with targets, that are nowhere in the trial.

    Returns
    -------
    AttackScore
        Each score is that of the strongest attack.  "linkage": share of the party's rows put together with their
        originals, when each is assigned another one; "linkage_labels": the same by targets alone;
        "open_world_linkage": the same, when nine strangers stand beside each original; "reidentification":
        share of the reconstructions that are nearest to their own original, "reidentification_labels" by targets
        alone; "r2c": variance within classes that reconstructions explain; "membership_auc": area under the curve of
        telling the party's rows from others by the share, and "map_membership_auc" by f_k alone;
        "zero_leak_reidentification": re-identification when no anchor row is known.
    """
    random = np.random.RandomState([trial.seed, 0, 1])
    # Over the seeds every party has its turn.
    name = list(trial.split)[trial.seed % len(trial.split)]
    own = trial.split[name]
    party = copy.copy(trial.parties[name])
    # The trial's own generator has moved by however many shares were made before.
    party.random_state = np.random.RandomState([trial.seed, 0, 2])
    held = random.permutation(trial.unused)[: _N_PUBLIC + _N_CONTROL]
    start = time.perf_counter()
    result = audit(
        party,
        own.X,
        trial.anchor,
        anchor_target=trial.anchor_target,
        public=data.X[held],
        public_target=data.y[held],
        levels=(_ZERO_LEAK, _FULL_LEAK, _MAP),
        attacks=_AUDITED,
        random_state=random,
    )
    # An attacker that knows more may also do what one that knows less does.
    every = (_ZERO_LEAK, _FULL_LEAK)
    scores = {
        "linkage": _strongest(result, "linkage", every),
        "linkage_labels": _labels_alone(result, "linkage"),
        "open_world_linkage": _strongest(result, "open-world linkage", every),
        "reidentification": _strongest(result, "re-identification@1", every),
        "reidentification_labels": _labels_alone(result, "re-identification@1"),
        "r2c": _strongest(result, "R2c", every),
        "membership_auc": _strongest(result, "membership AUC", (_FULL_LEAK,)),
        "map_membership_auc": _strongest(result, "membership AUC", (_MAP,)),
        "zero_leak_reidentification": _strongest(result, "re-identification@1", (_ZERO_LEAK,)),
    }
    return AttackScore(scores, {"attack": time.perf_counter() - start})


def _strongest(result: AuditResult, metric: str, levels: Collection[str]) -> float:
    found = [each.value for each in result.findings if each.metric == metric and each.level in levels]
    # An attack that does not apply has no number.
    return max(value for value in found if not math.isnan(value))


def _labels_alone(result: AuditResult, metric: str) -> float:
    return next(each.baseline for each in result.findings if each.metric == metric and each.baseline is not None)
