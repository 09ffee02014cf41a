"""Data collaboration in one exchange, and what it costs; the baselines without collaboration beside it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from draws import Draw
from numpy.typing import NDArray
from perceptron import Perceptron
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score

import datacollab as dc
from datacollab.model import IntegrationFunction
from datacollab_experiments.paper import Condition, method

N_SOURCES = 100
"""Public rows that SMOTE makes its anchors from."""


@dataclass(frozen=True)
class Collaboration:
    """One way to collaborate.

    Attributes
    ----------
    obfuscator : {"pca", "umap"}
        f_k, fitted on the party's own rows.
    n_components : int
        Columns of intermediate and of collaboration representations.
    integrator : str
        A name that `datacollab_experiments.paper.method` knows, with its recommended hyperparameters.
    public : {"labelled", "rows", "smote"}
        What is public: 1,000 rows with classes, the same without, or 100 rows with classes, which SMOTE interpolates
        to 1,000 anchors.
    """

    obfuscator: str
    n_components: int
    integrator: str
    public: str

    @property
    def key(self) -> str:
        """Its name in files of results."""
        return f"DC-{self.obfuscator}-{self.n_components}-{self.integrator}-{self.public}"


COLLABORATIONS = (
    Collaboration("pca", 16, "KTI+TSL+Center", "labelled"),
    Collaboration("pca", 64, "KTI+TSL+Center", "labelled"),
    Collaboration("umap", 16, "KTI+TSL+Center", "labelled"),
    Collaboration("pca", 64, "KTI+Center", "rows"),
    Collaboration("pca", 64, "KTI+TSL+Center", "smote"),
)

BASELINES = ("Local", "Local+Public", "Central", "Central+Public")


@dataclass(frozen=True, eq=False)
class Exchange:
    """Shares made and integrated, before any model is trained.

    Attributes
    ----------
    drawn : Draw
    parties : list of Party
    shares : list of Share
    functions : mapping of party to IntegrationFunction
    seconds : float
        For all parties' f_k and shares, one after another, and for the integration functions.
    """

    drawn: Draw
    parties: list[dc.Party]
    shares: list[dc.Share]
    functions: Mapping[int | str, IntegrationFunction]
    seconds: float

    @cached_property
    def test_rows(self) -> list[NDArray[np.float64]]:
        """The test rows as each party's g_k and f_k map them, computed once for all models."""
        return [self.functions[party.name](party.obfuscate(self.drawn.X_test)) for party in self.parties]


def exchange(collaboration: Collaboration, drawn: Draw) -> Exchange:
    """Let every party obfuscate and share, and the analyst integrate."""
    anchor, anchor_target = make_anchor(collaboration, drawn)
    began = time.perf_counter()
    parties = [
        dc.Party(k, _obfuscator(collaboration, drawn.seed, k), random_state=np.random.RandomState([drawn.seed, k, 1]))
        for k in range(len(drawn.X))
    ]
    for party, (X, y) in zip(parties, drawn.parties, strict=True):
        party.fit(X, y)
    shares = [party.share(anchor, anchor_target) for party in parties]
    condition = Condition(obfuscator=collaboration.obfuscator, n_components=collaboration.n_components)
    integrator = method(collaboration.integrator, condition)
    integrator.fit({share.party: share.anchor_representation for share in shares}, anchor_target)
    return Exchange(drawn, parties, shares, integrator.integration_functions_, time.perf_counter() - began)


def make_anchor(collaboration: Collaboration, drawn: Draw) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """The anchor and its classes, where it has any."""
    if collaboration.public == "smote":
        smote = dc.SMOTEAnchor(len(drawn.X_public), n_neighbors=5, include_sources=True)
        anchor, target = smote.sample(drawn.X_public[:N_SOURCES], drawn.y_public[:N_SOURCES], random_state=drawn.seed)
        return anchor, np.asarray(target)
    return drawn.X_public, drawn.y_public if collaboration.public == "labelled" else None


def measure_collaboration(exchanged: Exchange, model: Any) -> dict[str, float]:
    """Train h and let every party predict the test rows: mean accuracy, bytes moved and seconds.

    The bytes are those of all arrays: the shares on their way to the analyst, and each party's g_k and h on their way
    back.
    """
    functions, shares = exchanged.functions, exchanged.shares
    began = time.perf_counter()
    rows = np.vstack([functions[share.party](share.representation) for share in shares])
    h = clone(model).fit(rows, np.concatenate([share.target for share in shares]))
    seconds = exchanged.seconds + time.perf_counter() - began
    scores = [accuracy_score(exchanged.drawn.y_test, h.predict(test_rows)) for test_rows in exchanged.test_rows]
    n_bytes = sum(share.nbytes for share in shares)
    n_bytes += sum(function_bytes(functions[share.party]) + model_bytes(h) for share in shares)
    return {"accuracy": float(np.mean(scores)), "bytes": n_bytes, "seconds": seconds}


def measure_baseline(name: str, model: Any, drawn: Draw) -> dict[str, float]:
    """Mean accuracy over the parties of a model without collaboration, and seconds for all of them."""
    sets = list(drawn.parties)
    if name.startswith("Central"):
        sets = [(np.vstack(list(drawn.X)), np.concatenate(list(drawn.y)))]
    if name.endswith("+Public"):
        sets = [(np.vstack([X, drawn.X_public]), np.append(y, drawn.y_public)) for X, y in sets]
    began = time.perf_counter()
    fitted = [clone(model).fit(X, y) for X, y in sets]
    seconds = time.perf_counter() - began
    scores = [accuracy_score(drawn.y_test, model.predict(drawn.X_test)) for model in fitted]
    return {"accuracy": float(np.mean(scores)), "seconds": seconds}


def models(settings: dict[str, Any], seed: int, *, standardize: bool) -> dict[str, Any]:
    """The perceptron as tuned, and scikit-learn's random forest as it comes."""
    return {
        "MLP": Perceptron(**settings, standardize=standardize, seed=seed),
        "RF": RandomForestClassifier(random_state=seed),
    }


def function_bytes(g_k: IntegrationFunction) -> int:
    """Size of the arrays of an integration function."""
    return sum(value.nbytes for value in vars(g_k).values() if isinstance(value, np.ndarray))


def model_bytes(h: Any) -> int:
    """Size of the arrays of a fitted perceptron or random forest."""
    if isinstance(h, RandomForestClassifier):
        states = [tree.tree_.__getstate__() for tree in h.estimators_]
        return sum(state["nodes"].nbytes + state["values"].nbytes for state in states)
    return sum(array.nbytes for array in h.arrays)


def warm_up(drawn: Draw) -> None:
    """Let UMAP's numerical code compile before anything is timed."""
    X, _ = drawn.parties[0]
    dc.obfuscator("umap", 2, random_state=np.random.RandomState(0)).fit(X).transform(X[:5])


def _obfuscator(collaboration: Collaboration, seed: int, k: int) -> Any:
    return dc.obfuscator(
        collaboration.obfuscator, collaboration.n_components, random_state=np.random.RandomState([seed, k])
    )
