"""ODC as published, and the exactness of its alignment in the authors' later work.

The published ODC has all parties map onto one subspace, each by an orthonormal basis of its own. Here the subspace is
that of the 50 principal components of the anchor, and each party's basis is turned at random in secret. Every target of
ODC is one party's representation. The targets of MPP, Imakura's method, are one orthonormal basis times ten random
matrices of normal numbers, or times the singular values. With these, MPP is ODC but for a rotation and a scale here.
The head is a support vector machine with an RBF kernel, which rotations do not change. Central and Local train it on
pixels. "Seconds" are of the alignment alone, for c = 50 parties, a = 1,000 anchor rows and l = 50 columns. By the
abstract, MPP costs min{a(cl)², a²cl} and ODC acl², so the ratio is at most about min{c, a/l}, here 20; how large the
paper's settings are, it does not say.

The later work adds translations and noise. Its table prints the largest relative difference between what ODC aligns and
what all parties would have shared under one party's map, over ten deployments, 2, 10 and 50 parties (10 for minimal
anchors) and five levels of noise. Ours are the largest of one deployment. Data are normal numbers, and the differences
are rounding errors, so they say that the alignment is exact.
"""

import time
from collections.abc import Iterator

import numpy as np
from sklearn.decomposition import PCA
from sklearn.svm import SVC

import datacollab as dc

from .dealing import Array, Deal, FamilyRow, Figure, at_least, at_most, deal_rows, draw_rotation, load_images

ACCURACY = "accuracy"
RANGE = "range over targets"
SPEED = "MPP's seconds over ODC's"
EXACT = "largest e_Z"
MNIST = "MNIST 10x100"
SPEED_DATA = "50x1000 normal numbers"
NORMAL = "normal numbers, {} columns, {} anchor"
PAPER = (
    "K. Nosaka, Y. Suetake, Y. Takano and A. Yoshise (2026). Data collaboration analysis with orthonormal basis "
    "selection and alignment. Computers and Electrical Engineering 135, 111192; arXiv:2403.02780v6."
)
LATER = (
    "K. Nosaka, Y. Suetake, Y. Takano and A. Yoshise (2026). Noisy Anchor Alignment, version 1.0.0. "
    "https://github.com/KU-Nosaka/noisy-anchor-alignment, commit eabd94d."
)
_PRINTED = {
    (10, "orthonormal"): "7.83e-16",
    (100, "orthonormal"): "1.65e-15",
    (10, "minimal"): "3.26e-15",
    (100, "minimal"): "1.39e-14",
}
_NOT_WORSE = (at_least(-0.01, "MPP"), at_least(-0.01, "MPP, singular values"))
ROWS = (
    FamilyRow(PAPER, "ODC", MNIST, ACCURACY, '"equal or better accuracy" (abstract)', _NOT_WORSE),
    FamilyRow(PAPER, "ODC", MNIST, RANGE, '"invariant to the target basis" (abstract)', (at_most(0.001),)),
    FamilyRow(PAPER, "ODC", SPEED_DATA, SPEED, '"up to 100× speed-ups" (abstract)', (at_least(1.0),)),
    *(
        FamilyRow(LATER, "ODC", NORMAL.format(d, kind), EXACT, f"{printed} (equivalence_table.tex)", (at_most(1e-10),))
        for (d, kind), printed in _PRINTED.items()
    ),
)


def measure(seed: int, *, small: bool) -> Iterator[Figure]:
    X, y = load_images(small=small)
    deal = deal_rows(X, y, seed, n_parties=10, n_rows=30 if small else 100, n_public=500)
    rng = np.random.default_rng([seed, 1])
    for method, accuracies in _accuracies(deal, 16 if small else 50, rng).items():
        yield MNIST, method, ACCURACY, float(np.mean(accuracies))
        if len(accuracies) > 1:
            yield MNIST, method, RANGE, float(np.ptp(accuracies))
    yield SPEED_DATA, "ODC", SPEED, _seconds(rng, small)
    for d, kind in _PRINTED:
        if small and d > 10:
            continue
        errors = [
            identity_error(d, n, noise, kind, rng)
            for n in ((2, 10, 50) if kind == "orthonormal" else (10,))
            for noise in (0.0, 0.01, 0.1, 1.0, 10.0)
        ]
        yield NORMAL.format(d, kind), "ODC", EXACT, max(errors)


def _accuracies(deal: Deal, n_columns: int, rng: np.random.Generator) -> dict[str, list[float]]:
    anchor = deal.public[0]
    (X_test, y_test) = deal.test
    # Of 784 columns, scikit-learn takes components at random.
    subspace = PCA(n_columns, random_state=0).fit(anchor)
    # A secret basis of the common subspace for each party.
    turns = {k: draw_rotation(n_columns, rng) for k in range(len(deal.parties))}
    seen = {k: subspace.transform(anchor) @ Q for k, Q in turns.items()}
    y = deal.pooled[1]

    def accuracy(integrator: dc.ODC | dc.MPP) -> float:
        g = integrator.fit(seen).integration_functions_
        rows = np.concatenate([g[k](subspace.transform(X) @ turns[k]) for k, (X, _) in enumerate(deal.parties)])
        head = _head(rows).fit(rows, y)
        # Each party predicts a part of the test rows.
        parts = [slice(k, None, len(turns)) for k in turns]
        said = [head.predict(g[k](subspace.transform(X_test[part]) @ turns[k])) for k, part in enumerate(parts)]
        return float(np.mean(np.concatenate(said) == np.concatenate([y_test[part] for part in parts])))

    bases = [rng.normal(size=(n_columns, n_columns)) for _ in turns]
    return {
        "ODC": [accuracy(dc.ODC(reference=k)) for k in turns],
        "MPP": [accuracy(dc.MPP(n_columns, basis=R)) for R in bases],
        "MPP, singular values": [accuracy(dc.MPP(n_columns, basis="singular_values"))],
        "Central": [_head(deal.pooled[0]).fit(*deal.pooled).score(*deal.test)],
        "Local": [float(np.mean([_head(X).fit(X, y).score(*deal.test) for X, y in deal.parties]))],
    }


def _head(rows: Array) -> SVC:
    # The usual width by the variance of all columns, so that a scale changes nothing.
    return SVC(C=10.0, gamma=float(1 / ((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean()))


def _seconds(rng: np.random.Generator, small: bool) -> float:
    n_parties, n_anchors, n_columns = (10, 200, 20) if small else (50, 1000, 50)
    A = rng.normal(size=(n_anchors, n_columns))
    seen = {k: A @ draw_rotation(n_columns, rng) for k in range(n_parties)}
    took: dict[type, float] = {}
    for integrator in (dc.MPP(n_columns), dc.ODC()):
        start = time.process_time()
        integrator.fit(seen)
        # Seconds of the processor: other work on the machine does not count.
        took[type(integrator)] = time.process_time() - start
    return took[dc.MPP] / took[dc.ODC]


def identity_error(d: int, n_parties: int, noise: float, kind: str, rng: np.random.Generator) -> float:
    """Return the relative difference between rows that ODC aligns and rows under the reference party's own map.

    Parties turn, shift and disturb their rows, and turn and shift the anchor.  Centred anchors are aligned.
    """
    A = rng.normal(size=(4 * d if kind == "orthonormal" else d + 1, d))
    # Orthonormal columns, as the published anchors have.
    A = np.linalg.qr(A - A.mean(axis=0))[0]
    if kind == "minimal":
        A = A * np.geomspace(1.0, 0.1, d) @ draw_rotation(d, rng) + rng.normal(size=d)
    turns = [draw_rotation(d, rng) for _ in range(n_parties)]
    shifts = rng.normal(size=(n_parties, d))
    anchors = {k: A @ Q + shift for k, (Q, shift) in enumerate(zip(turns, shifts, strict=True))}
    g = dc.ODC(reference=0).fit({k: seen - seen.mean(axis=0) for k, seen in anchors.items()}).integration_functions_
    aligned = []
    common = []
    for k, seen in anchors.items():
        X = rng.normal(size=(24 + 8 * (k % 3), d))
        # The noise is of the party's own frame, and turns with it into the reference's.
        W = noise * rng.normal(size=X.shape)
        aligned.append(g[k](X @ turns[k] + shifts[k] + W - seen.mean(axis=0)) + anchors[0].mean(axis=0))
        common.append(X @ turns[0] + shifts[0] + W @ turns[k].T @ turns[0])
    return float(np.linalg.norm(np.vstack(aligned) - np.vstack(common)) / np.linalg.norm(np.vstack(common)))
