"""FedDCL: data collaboration within groups, federated averaging between their analysts.

Four groups of three parties with 40 images each share once with their group's analyst (PCA with 24 columns, affine
LTI), and the four analysts average a logistic model. "FL" is the same averaging between all twelve parties on their
pixels. Our groups agree on one target exactly, through the centre; the paper's do so approximately.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orth
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.linalg import fix_signs

from .dealing import Array, FamilyRow, Figure, at_least, logistic_model

PAPER = (
    "A. Imakura and T. Sakurai (2024). FedDCL: a federated data collaboration learning as a hybrid-type "
    "privacy-preserving framework based on federated learning and data collaboration. arXiv:2409.18356."
)
TABLE = "digits 4x3x40"
N_GROUPS = 4
N_PARTIES = 12
N_ROWS = 40
N_ANCHORS = 500
N_COLUMNS = 24
N_ROUNDS = 20
N_PASSES = 5
_PRINTED = '"comparable to that of existing federated learning" (abstract)'
ROWS = (FamilyRow(PAPER, "FedDCL", TABLE, "accuracy", _PRINTED, (at_least(-0.02, "FL"), at_least(0.0, "Local"))),)

Labelled = tuple[Array, NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class GroupsDraw:
    """A draw of parties' rows, the shares that they sent, and rows to test on."""

    parties: dict[str, dc.Party]
    own: list[Labelled]
    shares: dict[str, dc.Share]
    test: Labelled


def draw_groups(seed: int) -> GroupsDraw:
    """Deal rows to parties, the anchor and the test, and let all parties share."""
    X, y = dc.datasets.load("digits")
    order = np.random.default_rng(seed).permutation(len(X))
    n_own = N_PARTIES * N_ROWS
    own = [(X[rows], y[rows]) for rows in np.split(order[:n_own], N_PARTIES)]
    anchor = order[n_own : n_own + N_ANCHORS]
    test = order[n_own + N_ANCHORS :]
    parties = {}
    for k, (rows, target) in enumerate(own):
        f = dc.obfuscator("pca", n_components=N_COLUMNS)
        parties[f"{k:02}"] = dc.Party(f"{k:02}", f, random_state=100 * seed + k).fit(rows, target)
    shares = {name: party.share(X[anchor]) for name, party in parties.items()}
    return GroupsDraw(parties, own, shares, (X[test], y[test]))


def factor_of(anchors: Sequence[Array]) -> Array:
    """Return a group's message F [Imakura2024]_: F Fᵀ sums projections onto its parties' centred anchor columns."""
    return np.hstack([orth(A - A.mean(axis=0)) for A in anchors])


def find_target(factors: Sequence[Array], n_components: int) -> Array:
    """Return the centre's target: the leading directions of the sum of all projections, as one affine LTI finds them.

    Sums do not depend on who adds up which part, so it is the target that one analyst with all shares would find.
    """
    U = np.linalg.svd(np.hstack(factors), full_matrices=False)[0][:, :n_components]
    return np.asarray(U * fix_signs(U))


def map_onto(target: Array, anchor: Array, rows: Array) -> Array:
    """Return rows under the affine map that brings a party's anchor representation nearest to the target."""
    middle = anchor.mean(axis=0)
    return np.asarray((rows - middle) @ np.linalg.lstsq(anchor - middle, target, rcond=None)[0])


def average_models(tables: Sequence[Labelled]) -> Pipeline:
    """Average a logistic model over clients with equally many rows; each passes over its rows five times a round.

    Columns are scaled by their spread over all clients' rows, which averaging in earnest would have to ask for as well.
    """
    scaler = StandardScaler().fit(np.vstack([rows for rows, _ in tables]))
    scaled = [(scaler.transform(rows), target) for rows, target in tables]
    classes = np.unique(np.concatenate([target for _, target in tables]))
    model = SGDClassifier(loss="log_loss", alpha=1e-3, learning_rate="constant", eta0=0.05, random_state=0)
    # This pass makes the coefficients' arrays, which begin at zero below.
    model.partial_fit(*scaled[0], classes=classes)
    coefficients = np.zeros_like(model.coef_)
    intercepts = np.zeros_like(model.intercept_)
    for _ in range(N_ROUNDS):
        updates = []
        for rows, target in scaled:
            model.coef_ = coefficients.copy()
            model.intercept_ = intercepts.copy()
            for _ in range(N_PASSES):
                model.partial_fit(rows, target)
            updates.append((model.coef_, model.intercept_))
        # Clients are equally large, so that the plain mean is the mean over rows.
        coefficients = np.mean([each for each, _ in updates], axis=0)
        intercepts = np.mean([each for _, each in updates], axis=0)
    model.coef_ = coefficients
    model.intercept_ = intercepts
    return make_pipeline(scaler, model)


def measure(seed: int, *, small: bool) -> Iterator[Figure]:
    world = draw_groups(seed)
    X_test, y_test = world.test
    anchors = {name: share.anchor_representation for name, share in world.shares.items()}
    groups = np.array_split(list(anchors), N_GROUPS)
    target = find_target([factor_of([anchors[name] for name in group]) for group in groups], N_COLUMNS)
    clients = []
    for group in groups:
        rows = [map_onto(target, anchors[name], world.shares[name].representation) for name in group]
        clients.append((np.vstack(rows), np.concatenate([world.shares[name].target for name in group])))
    averaged = average_models(clients)
    one_analyst = dc.Analyst(dc.LTI(N_COLUMNS, fit_intercept=True), logistic_model()).fit(world.shares.values())
    by_groups = []
    by_one = []
    for name, party in world.parties.items():
        seen = map_onto(target, anchors[name], party.obfuscate(X_test))
        by_groups.append(averaged.score(seen, y_test))
        by_one.append(np.mean(party.predict(X_test, one_analyst.party_model(name)) == y_test))
    pooled = [np.concatenate(parts) for parts in zip(*world.own, strict=True)]
    figures = {
        "FedDCL": np.mean(by_groups),
        "DC, one analyst": np.mean(by_one),
        "Local": np.mean([logistic_model().fit(*table).score(X_test, y_test) for table in world.own]),
        "Central": logistic_model().fit(*pooled).score(X_test, y_test),
        "FL": average_models(world.own).score(X_test, y_test),
    }
    for method, value in figures.items():
        yield TABLE, method, "accuracy", float(value)
