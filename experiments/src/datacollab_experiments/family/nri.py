"""NRI: non-readily identifiable data collaboration.

A party shares its rows in a secret order, forgets its map, and learns a model of raw columns from what the analyst
predicts for the anchor. Five parties of 40 patients, 10 of 30 columns, affine LTI, a logistic model; "DC" is with PCA
and keeps the map. The paper's hospital table is not public.

Can a party that has forgotten link the rows of its share to patients? It still has its table, and knows how the map was
made. Leverages (Mahalanobis distances from the mean) stay the same under every invertible linear map. So the party
refits its principal components, and matches leverages within each class. A map of secret random directions leaves
nothing to refit; then the party takes the leverages of all columns. The paper asks for functions that cannot be
reconstructed: principal components with a secret rotation are none.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA

import datacollab as dc
from datacollab.party import DistilledModel

from .dealing import Array, FamilyRow, Figure, at_least, at_most, deal_rows, logistic_model, standardize

TABLE = "breast cancer 5x40"
N_COLUMNS = 10
ACCURACY = "accuracy"
LINKED = "rows linked"
PAPER = (
    "A. Imakura et al. (2023). Non-readily identifiable data collaboration analysis for multiple datasets including "
    "personal information. Information Fusion 98, 101826."
)
_KINDS = {"NRI, PCA": "pca", "NRI, random directions": "random-projection"}
_HIGH = '"maintaining a high recognition performance"; +.09 over Local on a private hospital table (abstract)'
_HIDDEN = '"non-readily identifiable", by "functions that cannot be reconstructed" (abstract)'
ROWS = tuple(
    FamilyRow(PAPER, method, TABLE, measure, printed, claims)
    for method in _KINDS
    for measure, printed, claims in (
        (ACCURACY, _HIGH, (at_least(-0.02, "DC"), at_least(0.0, "Local"))),
        (LINKED, _HIDDEN, (at_most(0.05, "a guess"),)),
    )
)


def share_and_forget(
    parties: Sequence[dc.Party], anchor: Array, analyst: dc.Analyst, estimator: Any = None
) -> dict[Any, DistilledModel]:
    """Let parties share, forget their maps, and distil the analyst's predictions for the anchor [Imakura2023b]_."""
    shares = [party.share(anchor) for party in parties]
    for party in parties:
        party.forget()
    collaboration = analyst.fit(shares)
    return {
        party.name: party.distil(anchor, collaboration.anchor_predictions(party.name), estimator) for party in parties
    }


def link_rows(shared: Array, shared_target: NDArray[Any], own: Array, target: NDArray[Any]) -> NDArray[np.intp]:
    """Guess for each shared row which own row it is: within a class, leverages are matched by rank.

    Parameters
    ----------
    shared : ndarray of shape (n_rows, n_intermediate)
    shared_target : ndarray of shape (n_rows,)
    own : ndarray of shape (n_rows, n_columns)
        The party's guess of its rows before a secret invertible linear map.
    target : ndarray of shape (n_rows,)
    """
    guess = np.empty(len(shared), dtype=np.intp)
    sent = _leverages(shared)
    kept = _leverages(own)
    for label in np.unique(target):
        theirs = np.flatnonzero(shared_target == label)
        mine = np.flatnonzero(target == label)
        guess[theirs[np.argsort(sent[theirs])]] = mine[np.argsort(kept[mine])]
    return guess


def _leverages(rows: Array) -> Array:
    # Diagonals of the projection onto the column space, which no invertible map changes.
    Q, _ = np.linalg.qr(rows - rows.mean(axis=0))
    return np.asarray((Q**2).sum(axis=1))


def measure(seed: int, *, small: bool) -> Iterator[Figure]:
    X, y = load_breast_cancer(return_X_y=True)
    deal = deal_rows(X, y, seed, n_parties=5, n_rows=40, n_public=150)
    anchor = deal.public[0]
    (X_test, y_test) = deal.test

    def parties(kind: str) -> list[dc.Party]:
        found = []
        for k, table in enumerate(deal.parties):
            # Maps and orders of rows stay secret from the attack below, which gets neither these numbers nor the party.
            f = dc.obfuscator(kind, N_COLUMNS, standardize=True, random_state=np.random.RandomState([seed, k, 1]))
            found.append(dc.Party(k, f, random_state=np.random.RandomState([seed, k])).fit(*table))
        return found

    analyst = dc.Analyst(dc.LTI(N_COLUMNS, fit_intercept=True), logistic_model())
    usual = parties("pca")
    collaboration = analyst.fit([party.share(anchor) for party in usual])
    found = {
        "Central": [logistic_model().fit(*deal.pooled).score(X_test, y_test)],
        "Local": [logistic_model().fit(X, y).score(X_test, y_test) for X, y in deal.parties],
        "DC": [np.mean(p.predict(X_test, collaboration.party_model(p.name)) == y_test) for p in usual],
    }
    for method, kind in _KINDS.items():
        models = share_and_forget(parties(kind), anchor, analyst)
        found[method] = [np.mean(model.predict(X_test) == y_test) for model in models.values()]
    for method, values in found.items():
        yield TABLE, method, ACCURACY, float(np.mean(values))
    for method, kind in _KINDS.items():
        hits = []
        for party, (X_own, y_own) in zip(parties(kind), deal.parties, strict=True):
            share = party.share(anchor)
            # Only the experiment knows this: a party that has forgotten cannot map its rows again.
            mapped = party.obfuscate(X_own)
            truth = ((share.representation[:, None] - mapped) ** 2).sum(axis=2).argmin(axis=1)
            own = standardize(X_own, X_own)
            refitted = PCA(N_COLUMNS).fit_transform(own) if kind == "pca" else own
            hits.append(np.mean(link_rows(share.representation, share.target, refitted, y_own) == truth))
        yield TABLE, method, LINKED, float(np.mean(hits))
    # Of a permutation within each class, one row is right on average.
    yield TABLE, "a guess", LINKED, float(np.mean([len(np.unique(y_own)) / len(y_own) for _, y_own in deal.parties]))
