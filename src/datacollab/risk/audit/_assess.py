"""What one way of sharing is worth to the party, and what it risks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing

from ...errors import DataCollabWarning
from ...party import Defence, Party
from ._findings import Finding

__all__ = ["Assessment", "Option", "Risk", "is_numeric_target", "local_utility", "risk_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Option:
    """One way of sharing.

    Attributes
    ----------
    name : str
    obfuscator : transformer
        Not fitted.
    n_components : int
    on_public : bool
        Whether f_k is fitted on public rows, with a secret rotation, rather than on the party's own.
    defences : sequence of Defence
    description : str
        What the defences do, in a sentence.
    """

    name: str
    obfuscator: Any
    n_components: int
    on_public: bool = False
    defences: Sequence[Defence] = ()
    description: str = ""

    def party(self, name: str, public: ArrayLike | None, random_state: Any = None) -> Party:
        """A party that shares in this way, not fitted."""
        fit_on = public if self.on_public else None
        defences = tuple(clone(defence) for defence in self.defences)
        return Party(name, clone(self.obfuscator), fit_on=fit_on, defences=defences, random_state=random_state)


@dataclass(frozen=True, kw_only=True)
class Risk:
    """The strongest attack on each measure, at the upper end of its 95 % interval; None where not measured.

    Attributes
    ----------
    linkage : float or None
        Share of the records that are linked right among a hundred.
    reidentification : float or None
        Share of the records that are told among a thousand, nearest first.
    membership : float or None
        Area under the curve of telling members from others.
    """

    linkage: float | None
    reidentification: float | None
    membership: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Assessment:
    """An option with its utility and risk.

    Attributes
    ----------
    option : Option
    utility : float
    risk : Risk
    allowed : bool
        Whether the risk is within the limits.
    on_frontier : bool
        Whether no other option has a utility as high at less linkage.
    """

    option: Option
    utility: float
    risk: Risk
    allowed: bool
    on_frontier: bool = False


def local_utility(
    option: Option,
    X: ArrayLike,
    y: NDArray[Any],
    public: ArrayLike | None,
    anchor: ArrayLike,
    *,
    anchor_target: ArrayLike | None = None,
    cv: int,
    seed: int,
) -> float:
    """Accuracy, or R2 for regression, of a model on the party's own representation, cross-validated.

    In every fold, the model learns from what the party would share of its training rows, and is tested on the other
    rows as the party would predict them: obfuscated, not defended.

    Parameters
    ----------
    option : Option
    X : array-like or dataframe of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    public : array-like or dataframe of shape (n_public, n_features) or None
    anchor : array-like or dataframe of shape (n_anchors, n_features)
    anchor_target : array-like of shape (n_anchors,), optional
        For defences that read it.
    cv : int
        Folds.
    seed : int
        Of folds, obfuscation and model.
    """
    numeric = is_numeric_target(y)
    folds = (
        KFold(cv, shuffle=True, random_state=seed) if numeric else StratifiedKFold(cv, shuffle=True, random_state=seed)
    )
    model = RandomForestRegressor if numeric else RandomForestClassifier
    scorer = get_scorer("r2" if numeric else "accuracy")
    scores = []
    for train, test in folds.split(np.zeros(len(y)), y):
        with warnings.catch_warnings():
            # Small classes and fixed seeds are no news in a rehearsal.
            warnings.simplefilter("ignore", DataCollabWarning)
            party = option.party("rehearsal", public, np.random.RandomState(seed))
            party.fit(_safe_indexing(X, train), y[train])
            rows = party.obfuscate(_safe_indexing(X, test))
            share = party.share(anchor, anchor_target)
        fitted = model(random_state=seed).fit(share.representation, share.target)
        scores.append(scorer(fitted, rows, y[test]))
    return float(np.mean(scores))


def is_numeric_target(y: NDArray[Any]) -> bool:
    """Whether a target is a number to be predicted rather than a class: floating-point, as for the attacks."""
    return y.dtype.kind == "f"


def risk_of(findings: Sequence[Finding]) -> Risk:
    """Read the risk off an audit's findings."""

    def worst(*metrics: str) -> float | None:
        values = [finding.upper for finding in findings if finding.metric in metrics and finding.is_measured]
        return max(values, default=None)

    return Risk(
        linkage=worst("linkage"),
        reidentification=worst("open-world re-identification"),
        membership=worst("membership AUC"),
    )
